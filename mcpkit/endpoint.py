"""The MCP endpoint over HTTP: bytes and headers in, one reply out.

The order of checks, each before what follows costs anything:

    Host, Origin (403) → method (405) → principal → Content-Type (415),
    Accept (406) → size, while reading (413) → JSON (400) → `dispatch`

Spec 2026-07-28, basic/transports/streamable-http; 2025-11-25, basic/transports.
"""

import inspect
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from typing import Any, Final, TypeAlias

from starlette.exceptions import HTTPException
from starlette.requests import Request

from mcpkit.dispatch import Response, SessionError, dispatch, refuse, unread_era
from mcpkit.errors import INTERNAL_ERROR, INVALID_REQUEST, ProtocolError
from mcpkit.guard import Guard, accepts, is_json
from mcpkit.lifespan import Lifespan
from mcpkit.methods.lifecycle import end_session, find_session
from mcpkit.protocol import headers as routing, jsonrpc
from mcpkit.server import Server, logger

Scope: TypeAlias = MutableMapping[str, Any]
Message: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]
RawHeaders: TypeAlias = list[tuple[bytes, bytes]]
Principal: TypeAlias = Callable[[Request], Any]

METHODS: Final = ("POST", "DELETE", "OPTIONS")
"""The HTTP methods of the endpoint. OPTIONS is for the preflights of browsers."""

DEFAULT_MAX_BODY: Final = 4 * 1024 * 1024
"""How large a body may be, in bytes, unless `App(max_body=...)` says otherwise."""

_JSON: Final = (b"content-type", b"application/json")
_EMPTY: Final = (b"content-length", b"0")

# What a page may read of a reply, and send with a request.
_EXPOSED: Final = b"mcp-session-id, www-authenticate"
_ALLOWED: Final = frozenset(
    {
        b"accept",
        b"authorization",
        b"content-type",
        b"last-event-id",
        routing.VERSION,
        routing.METHOD,
        routing.NAME,
        routing.SESSION,
    }
)
_PREFLIGHT_SECONDS: Final = b"600"


class Endpoint:
    """The ASGI application behind the path of an app.

    Args:
        server: The app.
        guard: Who may speak to it.
        principal: Tells who calls, from the HTTP request.
        lifespan: The app's lifespan, if it has one.
        max_body: How large a body may be, in bytes.
    """

    def __init__(
        self,
        server: Server,
        guard: Guard,
        *,
        principal: Principal | None,
        lifespan: Lifespan | None,
        max_body: int,
    ) -> None:
        self._server = server
        self._guard = guard
        self._principal = principal
        self._lifespan = lifespan
        self._max_body = max_body
        legacy = "legacy" in server.options.eras
        methods = METHODS if legacy else ("POST", "OPTIONS")
        self._allow = (b"allow", ", ".join(methods).encode())
        self._methods = frozenset(methods)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one HTTP request."""
        headers = routing.collect(scope["headers"])
        host, origin = headers.get(b"host"), headers.get(b"origin")
        cors: RawHeaders = []
        if not self._guard.admits_host(host):
            fault = _setting("Host", host, "allowed_hosts")
            return await _refuse(send, 403, fault)
        if origin is not None:
            if not self._guard.admits_origin(origin, host):
                fault = _setting("Origin", origin, "allowed_origins")
                return await _refuse(send, 403, fault)
            cors = [
                (b"access-control-allow-origin", origin),
                (b"access-control-expose-headers", _EXPOSED),
                (b"vary", b"Origin"),
            ]
        method = scope["method"]
        if method == "POST":
            return await self._post(scope, receive, send, headers, cors)
        if method not in self._methods or (method == "OPTIONS" and origin is None):
            fault = f"{method} is not allowed here"
            return await _refuse(send, 405, fault, [self._allow, *cors])
        if method == "OPTIONS":
            return await _preflight(send, headers, [*cors, self._allow])
        return await self._delete(scope, send, headers, cors)

    async def _post(
        self,
        scope: Scope,
        receive: Receive,
        send: Send,
        headers: routing.Headers,
        cors: RawHeaders,
    ) -> None:
        try:
            principal = await self._ready(scope)
            _check_form(headers)
            body = await self._read(receive, headers)
        except _Refused as refused:
            return await refused.send(send, cors)
        if body is None:
            return None
        try:
            message = jsonrpc.decode(body)
        except ProtocolError as error:
            reply = refuse(error, unread_era(headers, self._server))
            return await _send(send, reply, cors)
        answer = await dispatch(
            message, self._server, headers=headers, principal=principal, scope=scope
        )
        if isinstance(answer, Response):
            return await _send(send, answer, cors)
        await send(
            {"type": "http.response.start", "status": 202, "headers": [_EMPTY, *cors]}
        )
        return await send({"type": "http.response.body", "body": b""})

    async def _ready(self, scope: Scope) -> Any:
        """Enter the lifespan where it was not, and return who calls.

        Raises:
            _Refused: The host's callable says no, or something failed.
        """
        try:
            if self._lifespan is not None:
                await self._lifespan.ensure()
            if self._principal is None:
                state = scope.get("state")
                return None if state is None else state.get("principal")
            principal = self._principal(Request(scope))
            return await principal if inspect.isawaitable(principal) else principal
        except HTTPException as error:
            raise _Refused(
                error.status_code, str(error.detail), error.headers
            ) from error
        # A caller who can't be told is nobody's caller: the request is not served.
        except Exception as error:
            logger.error("a request could not be prepared", exc_info=error)
            raise _Refused(500, "Internal error") from error

    async def _read(self, receive: Receive, headers: routing.Headers) -> bytes | None:
        """Return the body, or `None` when the client went away before its end.

        Raises:
            _Refused: The body is larger than it may be.
        """
        length = headers.get(b"content-length", b"")
        # Digits beyond those of any limit need not be read as a number.
        if length.isdigit() and int(length[:18]) > self._max_body:
            raise self._too_large()
        message = await receive()
        body: bytes = message.get("body", b"")
        if not message.get("more_body", False):
            if len(body) > self._max_body:
                raise self._too_large()
            return None if message["type"] == "http.disconnect" else body
        chunks = bytearray(body)
        while message.get("more_body", False):
            message = await receive()
            chunks += message.get("body", b"")
            if len(chunks) > self._max_body:
                raise self._too_large()
        return None if message["type"] == "http.disconnect" else bytes(chunks)

    def _too_large(self) -> "_Refused":
        # The rest of the body is not read, so that the connection must end.
        fault = f"The body is larger than {self._max_body} bytes"
        return _Refused(413, fault, {"connection": "close"})

    async def _delete(
        self,
        scope: Scope,
        send: Send,
        headers: routing.Headers,
        cors: RawHeaders,
    ) -> None:
        """End the session that the request names."""
        try:
            principal = await self._ready(scope)
        except _Refused as refused:
            return await refused.send(send, cors)
        token = headers.get(routing.SESSION)
        if token is None:
            fault = SessionError(400, "Mcp-Session-Id is missing")
            return await _send(send, refuse(fault, "legacy", status=400), cors)
        session = await find_session(self._server, token.decode("latin-1"), principal)
        if session is None:
            fault = SessionError(404, "Session not found")
            return await _send(send, refuse(fault, "legacy", status=404), cors)
        await end_session(self._server, session)
        await send(
            {"type": "http.response.start", "status": 200, "headers": [_EMPTY, *cors]}
        )
        return await send({"type": "http.response.body", "body": b""})


class _Refused(Exception):  # noqa: N818  # an outcome, which carries its reply
    """A request is not served."""

    def __init__(
        self, status: int, message: str, headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(message)
        self.status = status
        self.headers = headers or {}

    async def send(self, send: Send, cors: RawHeaders) -> None:
        code = INTERNAL_ERROR if self.status >= 500 else INVALID_REQUEST
        error = ProtocolError(code, str(self))
        headers = tuple(self.headers.items())
        reply = refuse(error, "modern", status=self.status, headers=headers)
        await _send(send, reply, cors)


def _check_form(headers: routing.Headers) -> None:
    """Check what the client sends and what it takes.

    Raises:
        _Refused: It is not JSON.
    """
    if not is_json(headers.get(b"content-type")):
        raise _Refused(415, "Content-Type must be application/json")
    if headers.get(b"content-encoding", b"identity").lower() != b"identity":
        raise _Refused(415, "Content-Encoding must be identity")
    if not accepts(headers.get(b"accept"), b"application/json"):
        raise _Refused(406, "Accept must admit application/json")


def _setting(header: str, value: bytes | None, setting: str) -> str:
    shown = "" if value is None else value[:100].decode("ascii", "replace")
    return (
        f"{header} {shown!r} is not allowed. To admit it, name it in "
        f"App({setting}=[...])"
    )


async def _refuse(
    send: Send, status: int, message: str, headers: RawHeaders | None = None
) -> None:
    reply = refuse(ProtocolError(INVALID_REQUEST, message), "modern", status=status)
    await _send(send, reply, headers or [])


async def _send(send: Send, reply: Response, headers: RawHeaders) -> None:
    sent = [_JSON, (b"content-length", b"%d" % len(reply.body)), *headers]
    if reply.headers:
        sent += [
            (name.lower().encode("latin-1"), value.encode("latin-1"))
            for name, value in reply.headers
        ]
    await send({"type": "http.response.start", "status": reply.status, "headers": sent})
    await send({"type": "http.response.body", "body": reply.body})


async def _preflight(send: Send, headers: routing.Headers, common: RawHeaders) -> None:
    """Answer a browser that asks what a page may send."""
    asked = headers.get(b"access-control-request-headers", b"")
    names = [name.strip().lower() for name in asked.split(b",")]
    allowed = [
        name
        for name in names
        if name in _ALLOWED or name.startswith(routing.PARAM_PREFIX)
    ]
    sent = [
        *common,
        (b"access-control-allow-methods", b"POST, DELETE"),
        (b"access-control-allow-headers", b", ".join(allowed)),
        (b"access-control-max-age", _PREFLIGHT_SECONDS),
        _EMPTY,
    ]
    await send({"type": "http.response.start", "status": 204, "headers": sent})
    await send({"type": "http.response.body", "body": b""})
