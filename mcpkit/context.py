"""What a handler is given: the request it serves, and who sent it."""

import asyncio
import math
from collections.abc import Callable, Coroutine, Mapping, Sequence
from concurrent.futures import CancelledError, Future
from copy import deepcopy
from functools import partial
from typing import (
    TYPE_CHECKING,
    Any,
    NamedTuple,
    NoReturn,
    Protocol,
    TypeVar,
    Unpack,
    overload,
)

from mcpkit.errors import ProtocolError
from mcpkit.protocol import notifications
from mcpkit.protocol.era import CLIENT_CAPABILITIES, CLIENT_INFO, LOG_LEVEL, LOG_LEVELS
from mcpkit.protocol.headers import Headers
from mcpkit.protocol.inputs import Journal
from mcpkit.protocol.jsonrpc import Encoded, RequestId, is_object, is_request_id
from mcpkit.protocol.results import Result
from mcpkit.protocol.versions import Era, Revision
from mcpkit.questions import (
    Answer,
    Elicit,
    ListRoots,
    Question,
    Root,
    Sample,
    Sampled,
    SampleOptions,
)

if TYPE_CHECKING:
    from starlette.requests import Request

    from mcpkit.cleanup import Cleanup

_NOTHING: Mapping[str, Any] = {}

T = TypeVar("T")
F = TypeVar("F")


class Channel(Protocol):
    """How messages reach the client while its request is served.

    It is told of the request each time, and does not keep it: the request has it.
    """

    @property
    def admits_stream(self) -> bool:
        """Whether the client takes messages before its response."""

    @property
    def away_since(self) -> float | None:
        """Since when the client has no connection over which they come.

        By `time.monotonic`; `None` while it has one, and where that can't be told.
        """

    async def send(self, context: "Context", message: Mapping[str, Any]) -> None:
        """Send a message, before the response to a request.

        It waits for a client that reads slowly, and does nothing when the client
        can't be reached or has its response already.
        """

    async def close(self, context: "Context") -> None:
        """Close the connection, for a client that comes back for the rest."""

    def watch(self, context: "Context", cancel: Callable[[], None] | None) -> None:
        """Look, from now on, whether the client still waits for its response.

        Args:
            context: The request.
            cancel: Called when it does not; `None` where that makes no difference.
        """

    def unwatch(self) -> None:
        """Look no more."""


class LongWork(Protocol):
    """A task: a request that was answered with a handle, and is still worked on."""

    async def ask(
        self, requests: Mapping[str, Any], journal: Journal
    ) -> dict[str, Any]:
        """Ask the client, whenever it looks, and return its answers by key."""

    async def save(self, journal: Journal) -> None:
        """Keep what was asked, answered and done, for whoever goes on with it."""

    async def report(
        self, progress: float, total: float | None, message: str | None
    ) -> None:
        """Tell the client how far it has come, whenever it looks."""


class Conversation(Protocol):
    """The questions of one request, and what was kept between its rounds.

    Attributes:
        asked: The input requests that the round ends with, by key.
        journal: What was asked, answered and kept.
    """

    asked: dict[str, Any]
    journal: Journal

    def check(self) -> None:
        """Stop a handler that went on although its client was asked something."""

    async def ask(self, questions: Mapping[str, Question[Any]]) -> dict[str, Any]:
        """Ask the client, and return its answers by the keys of the questions."""

    async def carry(self, requests: Mapping[str, Any]) -> dict[str, Any]:
        """Send input requests to a legacy client, and return its responses by key."""

    async def once(self, key: str, work: "partial[Any]") -> Any:
        """Return what the work came to, now or in an earlier round."""

    async def finish(self) -> None:
        """Wait for what the handler does once, when it was stopped meanwhile."""


class Host(Protocol):
    """What a context needs of its app."""

    state: Any

    def converse(
        self, context: "Context", journal: Journal | None = None
    ) -> Conversation:
        """Begin a conversation with the client of a request, or go on with one."""

    async def log_threshold(self, context: "Context") -> str | None:
        """Return the lowest level of log messages for a request, if it has any."""


class Input(NamedTuple):
    """What a client brings back with a retry.

    Attributes:
        responses: Its answers to the input requests of the round before, by key.
        state: The `request_state` of that round.
    """

    responses: Mapping[str, Any]
    state: Any


_NO_INPUT = Input(_NOTHING, None)


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
        headers: The HTTP headers as ASGI has them, or `None` without HTTP.
        session: The legacy session, if there is one.
        opened: The legacy session that this request opened.
        after: The key of the last definition that the client has of a list.
        view: Which rules of visibility admit the caller, of those that a list has.
        is_retry: It brings answers to the questions of an earlier round.
        input: The answers, and the state that the handler gave the client to bring
            back with them. For those who return `Result.input_required`.
        cancelled: Nobody waits for the result any more. A handler in a thread can't
            be stopped from outside: one that works for long looks at this.
        scope: The ASGI scope of the HTTP request, or `None` without HTTP.
        cleanup: What the dependencies of the handler leave to be done.
        channel: How messages reach the client; `None` where none can.
        conversation: What was asked, or kept, until now.
        task: The task that the request has become, if it has.
        round: Which round of questions this is, from 1.
        loop: The event loop of the request, for a handler in a thread.
        is_stream: It opened a stream of notifications, and is answered when that ends.
        took: How long the method took, in seconds, within middleware; `None` while it
            has not run.
        outcome: What came of it: a result or an error; `None` until then, and when
            it was cancelled.
    """

    __slots__ = (
        "__weakref__",
        "_host",
        "_reported",
        "_waits",
        "after",
        "cancelled",
        "channel",
        "cleanup",
        "conversation",
        "headers",
        "input",
        "is_retry",
        "is_stream",
        "loop",
        "method",
        "opened",
        "outcome",
        "params",
        "principal",
        "request_id",
        "revision",
        "round",
        "scope",
        "session",
        "task",
        "took",
        "view",
    )

    def __init__(
        self,
        *,
        request_id: RequestId,
        method: str,
        params: dict[str, Any],
        revision: Revision,
        host: Host,
        principal: Any = None,
        headers: Headers | None = None,
        session: Session | None = None,
        scope: Mapping[str, Any] | None = None,
        channel: Channel | None = None,
    ) -> None:
        self._host = host
        self.request_id = request_id
        self.method = method
        self.params = params
        self.revision = revision
        self.principal = principal
        self.headers = headers
        self.session = session
        self.channel = channel
        self.opened: Session | None = None
        self.input = _NO_INPUT
        self.after: str | None = None
        self.view: frozenset[Any] | None = None
        self.is_retry = revision.era == "modern" and (
            "inputResponses" in params or "requestState" in params
        )
        self.cleanup: Cleanup | None = None
        self.scope = scope
        self.cancelled = False
        self.task: LongWork | None = None
        self.conversation: Conversation | None = None
        self.round = 1
        self.loop: asyncio.AbstractEventLoop | None = None
        self.is_stream = False
        self.took: float | None = None
        self.outcome: Result | Encoded | ProtocolError | None = None
        self._reported: float | None = None
        self._waits: set[Future[Any]] | None = None

    @property
    def state(self) -> Any:
        """What `App(lifespan=...)` yielded."""
        return self._host.state

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

    def extension(self, identifier: str) -> Mapping[str, Any] | None:
        """Return what the client declared of an extension, if it has it.

        Args:
            identifier: The extension, such as `io.modelcontextprotocol/ui`.
        """
        declared = self.client_capabilities.get("extensions")
        settings = declared.get(identifier) if is_object(declared) else None
        return settings if is_object(settings) else None

    @property
    def log_level(self) -> str | None:
        """The lowest level of log messages that the request asks for, if any."""
        return self.meta.get(LOG_LEVEL)

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

    async def progress(
        self, progress: float, total: float | None = None, message: str | None = None
    ) -> None:
        """Report how far the request has come, to a client that asked for it.

        What does not increase is dropped. Spec 2026-07-28, basic/patterns/progress.

        Args:
            progress: How much is done.
            total: How much there is to do, when that is known.
            message: What is going on, for people.

        Raises:
            ValueError: A number is NaN or infinite.
        """
        if not (math.isfinite(progress) and (total is None or math.isfinite(total))):
            raise ValueError(f"progress is finite, not {progress!r} of {total!r}")
        if self.task is not None:
            await self.task.report(progress, total, message)
            return
        token = self.meta.get("progressToken")
        increases = self._reported is None or progress > self._reported
        if self.channel is None or not is_request_id(token) or not increases:
            return
        self._reported = progress
        sent = notifications.progress(token, progress, total, message)
        await self.channel.send(self, sent)

    async def log(self, level: str, data: Any, *, logger: str | None = None) -> None:
        """Send a log message, to a client that asked for its level.

        Spec 2026-07-28, server/utilities/logging.

        Args:
            level: One of debug, info, notice, warning, error, critical, alert and
                emergency.
            data: What is to be logged: a text, or any JSON value.
            logger: Who logs it.

        Raises:
            ValueError: There is no such level, or the data has no JSON form.
        """
        if level not in LOG_LEVELS:
            raise ValueError(
                f"a level is one of {', '.join(LOG_LEVELS)}, not {level!r}"
            )
        if self.channel is None:
            return
        threshold = await self._host.log_threshold(self)
        if threshold is None or LOG_LEVELS.index(level) < LOG_LEVELS.index(threshold):
            return
        await self.channel.send(self, notifications.log_message(level, data, logger))

    async def close_stream(self) -> None:
        """Close the connection of a legacy client, which comes back for the rest.

        A client that polls spares the server a connection while a request takes
        long. In the modern era, and without a session, nothing happens.

        Spec 2025-11-25, basic/transports: Sending Messages to the Server.
        """
        if self.channel is not None:
            await self.channel.close(self)

    @overload
    async def elicit(self, message: str, schema: type[F]) -> Answer[F]: ...

    @overload
    async def elicit(
        self, message: str, schema: Mapping[str, Any]
    ) -> Answer[dict[str, Any]]: ...

    @overload
    async def elicit(self, message: str, *, url: str) -> Answer[None]: ...

    async def elicit(
        self, message: str, schema: Any = None, *, url: str | None = None
    ) -> Answer[Any]:
        """Ask the user to fill in a form, or to visit a page.

        In the modern era the handler is stopped here, and run again from its first
        line once the client has the answer: see `once`. Spec 2026-07-28,
        client/elicitation.

        Args:
            message: Why it is asked.
            schema: The form: a model, a dataclass or a TypedDict of strings,
                numbers, booleans and enums, or their JSON Schema.
            url: The page, in place of a form. That it was accepted says no more
                than that the user agreed to go there.

        Returns:
            What the user did: `accepted`, `declined` or `cancelled`, and the `data`
            of the form.

        Raises:
            SetupError: It is no form that a client could show.
            ProtocolError: -32021, the client can't ask its user.
            AnswerError: A legacy client did not answer.
        """
        question = Elicit(message, schema, url=url)
        answers = await self.ask({"elicitation": question})
        answer: Answer[Any] = answers["elicitation"]
        return answer

    async def sample(
        self,
        messages: str | Sequence[Any],
        *,
        max_tokens: int = 1024,
        **options: Unpack[SampleOptions],
    ) -> Sampled:
        """Ask the client's model for a message. Spec 2026-07-28, client/sampling.

        Args:
            messages: A text, or the messages so far.
            max_tokens: How many tokens the model may write.
            options: The others of `Sample`.

        Raises:
            ValueError: The messages or the options are malformed.
            ProtocolError: -32021, the client has no model to ask.
            AnswerError: A legacy client did not answer.
        """
        question = Sample(messages, max_tokens=max_tokens, **options)
        answers = await self.ask({"sampling": question})
        answer: Sampled = answers["sampling"]
        return answer

    async def list_roots(self) -> list[Root]:
        """Ask the client which directories and files it works with.

        Spec 2026-07-28, client/roots.

        Raises:
            ProtocolError: -32021, the client has no roots.
            AnswerError: A legacy client did not answer.
        """
        answers = await self.ask({"roots": ListRoots()})
        roots: list[Root] = answers["roots"]
        return roots

    async def ask(self, questions: Mapping[str, Question[Any]]) -> dict[str, Any]:
        """Ask several questions in one round.

        Args:
            questions: Each an `Elicit`, a `Sample` or a `ListRoots`, under a key.

        Returns:
            The answers, under the same keys.

        Raises:
            ValueError: There are too many of them, or none.
            ProtocolError: -32021, the client can't answer one of them.
            AnswerError: A legacy client did not answer.
        """
        return await self._conversation().ask(questions)

    async def once(
        self, key: str, function: Callable[..., Any], /, *args: Any, **kwargs: Any
    ) -> Any:
        """Call a function, and don't call it again in later rounds of questions.

        A handler that asks runs again from its first line in each round. What
        it does beside asking, it does once if it is done here. The result travels
        with the client, sealed: it has a JSON form, and is not large.

        Args:
            key: Which effect it is, unique within the handler.
            function: The function, async or not. One that is not runs in a thread.
            args: Its arguments.
            kwargs: The same by name.

        Returns:
            What it returned: the value itself, and in later rounds one of the type
            that the function is annotated with.

        Raises:
            SetupError: The function is annotated with what can't be kept.
            ValueError: The result has no JSON form, or is of another type.
            Exception: Whatever the function raised: it is called again in the next
                round.
        """
        work = partial(function, *args, **kwargs)
        return await self._conversation().once(key, work)

    def wait(self, work: Coroutine[Any, Any, T]) -> T:
        """Wait for one of the other methods, in a handler that runs in a thread.

        Example:
            >>> def order(isbn: str, ctx: Context) -> str:
            ...     answer = ctx.wait(ctx.elicit(f"Order {isbn}?", Confirm))

        Raises:
            RuntimeError: The handler does not run in a thread: `await` is what
                it needs.
            CancelledError: Nobody waits for the result any more.
        """
        future = asyncio.run_coroutine_threadsafe(work, self._loop_of(work))
        if self._waits is None:
            self._waits = set()
        self._waits.add(future)
        # Who cancels before it is added does not see it.
        if self.cancelled:
            future.cancel()
        try:
            return future.result()
        except CancelledError:
            raise asyncio.CancelledError from None
        finally:
            self._waits.discard(future)

    def cancel(self) -> bool:
        """Note that nobody waits for the result, and end what a thread waits for.

        Returns:
            Whether that was known already.
        """
        was_known, self.cancelled = self.cancelled, True
        for future in tuple(self._waits or ()):
            future.cancel()
        return was_known

    def _loop_of(self, work: Coroutine[Any, Any, T]) -> asyncio.AbstractEventLoop:
        """Return the event loop that work of a thread is done in, if it can be."""
        if self.loop is None or _running_loop() is self.loop:
            work.close()
            raise RuntimeError(
                "ctx.wait is for a handler without async, in a thread; where there is "
                "an event loop, write await"
            )
        if self.cancelled:
            work.close()
            raise asyncio.CancelledError
        return self.loop

    def _conversation(self) -> Conversation:
        if self.conversation is None:
            self.conversation = self._host.converse(self)
        return self.conversation


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


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
