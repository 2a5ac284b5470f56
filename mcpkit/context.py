"""What a handler is given: the request it serves, and who sent it."""

from collections.abc import Mapping
from copy import deepcopy
from typing import TYPE_CHECKING, Any, NoReturn

from mcpkit.protocol.era import CLIENT_CAPABILITIES, CLIENT_INFO, LOG_LEVEL
from mcpkit.protocol.headers import Headers
from mcpkit.protocol.jsonrpc import RequestId, is_object
from mcpkit.protocol.versions import Era, Revision

if TYPE_CHECKING:
    from starlette.requests import Request

    from mcpkit.cleanup import Cleanup

_NOTHING: Mapping[str, Any] = {}


class Session:
    """What a legacy `initialize` negotiated, out of a sealed `Mcp-Session-Id`.

    Attributes:
        id: A random id, the same for the life of the session.
        version: The negotiated version.
        capabilities: What the client declared.
        expires: When it ends, in seconds since the epoch.
    """

    __slots__ = ("capabilities", "expires", "id", "version")

    def __init__(
        self,
        session_id: str,
        version: str,
        capabilities: Mapping[str, Any],
        expires: float,
    ) -> None:
        self.id = session_id
        self.version = version
        self.capabilities = capabilities
        self.expires = expires


class Context:
    """The request that is being served. A handler asks for it by annotation.

    Example:
        >>> async def whoami(ctx: Context) -> str:
        ...     return f"You are {ctx.principal_id}"

    Attributes:
        request_id: The JSON-RPC id of the request.
        method: Its method, such as `tools/call`.
        params: Its params, as they came.
        revision: The revision of the protocol that the client speaks.
        principal: Who calls, as the host or `App(principal=...)` decided; `None`
            for nobody in particular.
        state: What `App(lifespan=...)` yielded.
        headers: The HTTP headers as ASGI has them, or `None` without HTTP.
        session: The legacy session, if there is one.
        opened: The legacy session that this request opened.
        after: The key of the last definition that the client has of a list.
        view: Which rules of visibility admit the caller, of those that a list has.
        is_retry: It brings answers to the questions of an earlier round.
        request_state: What the handler gave the client to bring back with its
            answers, in an earlier round.
        scope: The ASGI scope of the HTTP request, or `None` without HTTP.
        cleanup: What the dependencies of the handler leave to be done.
    """

    __slots__ = (
        "after",
        "cleanup",
        "headers",
        "is_retry",
        "method",
        "opened",
        "params",
        "principal",
        "request_id",
        "request_state",
        "revision",
        "scope",
        "session",
        "state",
        "view",
    )

    def __init__(
        self,
        *,
        request_id: RequestId,
        method: str,
        params: dict[str, Any],
        revision: Revision,
        principal: Any = None,
        state: Any = None,
        headers: Headers | None = None,
        session: Session | None = None,
        scope: Mapping[str, Any] | None = None,
    ) -> None:
        self.request_id = request_id
        self.method = method
        self.params = params
        self.revision = revision
        self.principal = principal
        self.state = state
        self.headers = headers
        self.session = session
        self.opened: Session | None = None
        self.request_state: Any = None
        self.after: str | None = None
        self.view: frozenset[Any] | None = None
        self.is_retry = revision.era == "modern" and (
            "inputResponses" in params or "requestState" in params
        )
        self.cleanup: Cleanup | None = None
        self.scope = scope

    @property
    def principal_id(self) -> str | None:
        """The id of the principal: the principal itself when it is a string."""
        return principal_id(self.principal)

    @property
    def scopes(self) -> frozenset[str]:
        """The scopes that the principal was granted."""
        scopes = getattr(self.principal, "scopes", None) or ()
        # OAuth has them in one string, with spaces between.
        return frozenset(scopes.split() if isinstance(scopes, str) else scopes)

    @property
    def era(self) -> Era:
        """The era of the revision that the client speaks."""
        return self.revision.era

    @property
    def meta(self) -> Mapping[str, Any]:
        """The `_meta` of the request."""
        meta = self.params.get("_meta")
        return meta if is_object(meta) else _NOTHING

    @property
    def client_info(self) -> Mapping[str, Any] | None:
        """The client's name and version, where it says so. It is not verified."""
        return self.meta.get(CLIENT_INFO)

    @property
    def client_capabilities(self) -> Mapping[str, Any]:
        """What the client declared: with this request, or with its session."""
        if self.revision.era == "modern":
            declared: Mapping[str, Any] = self.meta[CLIENT_CAPABILITIES]
            return declared
        if self.session is None:
            return _NOTHING
        # A copy: the session is that of other requests too.
        return deepcopy(self.session.capabilities)

    @property
    def log_level(self) -> str | None:
        """The lowest level of log messages that the request asks for, if any."""
        return self.meta.get(LOG_LEVEL)

    @property
    def input_responses(self) -> Mapping[str, Any]:
        """The client's answers to the input requests of an earlier round, by key."""
        responses = self.params.get("inputResponses") if self.is_retry else None
        return responses if is_object(responses) else _NOTHING

    @property
    def request(self) -> "Request":
        """The HTTP request.

        Raises:
            RuntimeError: The message did not come over HTTP.
        """
        if self.scope is None:
            raise RuntimeError("this message did not come over HTTP")
        # Starlette is not needed by those who bring their own transport.
        from starlette.requests import Request  # noqa: PLC0415

        if "state" not in self.scope:
            # All that is made of the request shares it.
            self.scope = {**self.scope, "state": {}}
        return Request(dict(self.scope), _receive)


async def _receive() -> NoReturn:
    raise RuntimeError("the body of the request was read: it is the MCP message")


def principal_id(principal: Any) -> str | None:
    """Return the id of a principal: a string, an object with an `id`, or `None`.

    Raises:
        TypeError: It is something else, or its `id` is `None`.
    """
    if principal is None or isinstance(principal, str):
        return principal
    identity = getattr(principal, "id", None)
    if identity is None:
        raise TypeError(
            "a principal is a string, an object with an id, or None, not "
            f"{type(principal).__name__}"
        )
    return str(identity)
