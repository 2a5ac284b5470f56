"""What the methods know of an app: its options, its registry, its keys."""

import inspect
import logging
import multiprocessing
import os
import secrets
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final, Protocol, TypeAlias, TypeVar

from mcpkit.asking import Conversation, LongConversation
from mcpkit.backends.base import Backend
from mcpkit.backends.memory import MemoryBackend
from mcpkit.bus import Bus
from mcpkit.components import Component, Tool
from mcpkit.context import Context, Session
from mcpkit.errors import SetupError
from mcpkit.extensions.base import Extension, Serve
from mcpkit.pending import Questions
from mcpkit.protocol.capabilities import server_capabilities
from mcpkit.protocol.content import without_none
from mcpkit.protocol.inputs import Journal
from mcpkit.protocol.jsonrpc import ResponseTemplate
from mcpkit.protocol.methods import METHODS, Method
from mcpkit.protocol.modern import cacheable_methods, default_cache
from mcpkit.protocol.notifications import LIST_CHANGED
from mcpkit.protocol.results import Cache, Result
from mcpkit.protocol.sealing import MIN_KEY_BYTES, Codec, Sealer, SealError
from mcpkit.protocol.versions import ERAS, Era
from mcpkit.registry import Kind, ListKind
from mcpkit.replay import Replay
from mcpkit.running import Running
from mcpkit.signature import is_async
from mcpkit.subscriptions import Subscriptions
from mcpkit.telemetry import Telemetry
from mcpkit.threads import Threads
from mcpkit.toolbox import Toolbox

SECRET_KEY: Final = "MCPKIT_SECRET_KEY"  # noqa: S105  # the name of a variable
"""The environment variable with the keys, comma separated, the sealing one first."""

LEVEL: Final = "session-level:"
"""The key of the level of a session's log messages, without the session's id."""

STATE_SECONDS: Final = 600
"""How long a client may take to answer a round of questions."""

USUAL_LEVEL: Final = "info"
"""The lowest level of log messages for legacy clients that did not set one."""

_STATE: Final = "request-state"
_USED: Final = "state-used:"

# No handler of its own: until the developer sets up logging, warnings and errors
# are printed to stderr, and the traceback of a tool that failed is never lost.
logger = logging.getLogger("mcpkit")


def printable(value: object) -> str:
    """Return a text for the log, in one line and without control characters."""
    return str(value).encode("unicode_escape").decode()


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How an app behaves.

    Attributes:
        instructions: How a model best uses the server.
        eras: The eras that are spoken.
        page_size: How many definitions a list answer has at most.
        cache: The cache hints of a response that is given none.
        caches: The same by method, for those that differ.
        coerce: Numbers in strings are accepted where a number is expected.
        debug: What a handler raised is sent to the client.
        require_session: Legacy requests need a session.
        logging: The logging capability is declared.
        ask_seconds: How long a legacy client has to answer a question.
        access_log: A line a request is written to the log `mcpkit.access`.
        capabilities: Declared beside those that follow from the registry, or in
            their place; `None` takes one away.
    """

    instructions: str | None = None
    eras: frozenset[Era] = ERAS
    page_size: int | None = None
    cache: Cache = field(default_factory=default_cache)
    caches: Mapping[str, Cache] = field(default_factory=dict)
    coerce: bool = False
    debug: bool = False
    require_session: bool = False
    logging: bool = True
    ask_seconds: float = STATE_SECONDS
    access_log: bool = False
    capabilities: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.eras or not self.eras <= ERAS:
            raise SetupError(f"eras are some of {sorted(ERAS)}, not {self.eras!r}")
        for method, cache in self.caches.items():
            if not isinstance(cache, Cache):
                raise SetupError(f"cache: {method!r} needs a Cache, not {cache!r}")
            if method not in cacheable_methods():
                known = ", ".join(cacheable_methods())
                raise SetupError(f"cache: {method!r} is none of {known}")


_READ: Final = "resources/read"
_ANSWERS: Final[Mapping[Kind, tuple[str, ...]]] = MappingProxyType(
    {
        "tools": ("tools/list",),
        "resources": ("resources/list", _READ),
        "templates": ("resources/templates/list", _READ),
        "prompts": ("prompts/list",),
        "completions": (),
    }
)
"""The answers that clients may keep, and in which a component shows."""

Middleware: TypeAlias = Callable[
    [Context, Callable[[], Awaitable[Result]]], Awaitable[Result]
]
"""What is called around a method: with the request, and with what comes next."""

M = TypeVar("M", bound=Middleware)


class TaskHost(Protocol):
    """What makes tasks of calls."""

    async def begin(
        self, context: Context, tool: Tool, journal: Journal | None
    ) -> Result:
        """Create a task for a call, begin it, and return its handle."""

    async def handle(self, context: Context, result: Result) -> Result:
        """Return the handle that a handler returned, of a task done elsewhere."""

    def keep_going(self) -> None:
        """Look after tasks from now on, as long as the event loop runs."""


Lifespan = Callable[[Any], AbstractAsyncContextManager[Any]]


class Server(Toolbox):
    """An app without its ways in.

    Attributes:
        name: What the server calls itself. Tokens are bound to it.
        info: Its `Implementation`, as the newest revision has it.
        options: How it behaves.
        backend: What its workers share.
        threads: Where sync handlers run.
        bus: What the workers tell each other.
        telemetry: Those who listen to what happens: `@app.telemetry.listen`.
        extensions: Those that are installed, by their identifiers.
        methods: The methods, those of extensions among them.
        served: What serves the methods of extensions.
        task_host: What makes tasks of calls, if the app has any.
        middlewares: What is called around methods, the outermost first.
        running: The requests that wait for something.
        questions: The questions to legacy clients that wait for an answer.
        subscriptions: The open streams of changes.
        replay: What legacy clients that lost their connection may be sent again.
        state: What the lifespan yielded.
        dependency_overrides: Which dependencies of handlers are called in place of
            others, as a FastAPI app has them.
        templates: What is around the structured results of tools, by version.
        sessions: Legacy sessions by token and principal, to spare opening a token
            again. Forgetting one costs time alone.
    """

    def __init__(
        self,
        name: str,
        info: Mapping[str, Any],
        options: Options,
        *,
        secret_key: str | bytes | Sequence[str | bytes] | None,
        codec: Codec | None,
        encrypt: bool,
        threads: int,
        backend: Backend | None,
        max_streams: int,
    ) -> None:
        if not name:
            raise SetupError(f"an app needs a name: App('bookshop'), not {name!r}")
        super().__init__()
        self.name = name
        self.info = without_none(info)
        self.options = options
        self.registry.check = self._check
        self.backend: Backend = MemoryBackend() if backend is None else backend
        self.threads = Threads(threads)
        self.telemetry = Telemetry()
        self.task_host: TaskHost | None = None
        self.extensions: dict[str, Extension] = {}
        self.methods: Mapping[str, Method] = METHODS
        self.served: dict[str, Serve] = {}
        self.middlewares: tuple[Middleware, ...] = ()
        self.bus = Bus(self.backend, name)
        self.running = Running(self.bus)
        self.questions = Questions(self.bus)
        self.subscriptions = Subscriptions(self.bus, max_streams)
        self.replay = Replay()
        self.registry.listen(self.subscriptions.changed)
        self.bus.on("ended", self.questions.end)
        self.bus.on("ended", self.replay.end)
        keys = _keys(secret_key)
        self._key_is_drawn = not keys
        self._pid = os.getpid()
        keys = keys or [secrets.token_bytes(MIN_KEY_BYTES)]
        self._sealer = Sealer(keys)
        self._state_sealer = Sealer(keys, _codec(codec, keys, encrypt=encrypt))
        self.state: Any = None
        self.dependency_overrides: dict[Callable[..., Any], Callable[..., Any]] = {}
        self.templates: dict[str, ResponseTemplate] = {}
        self.sessions: dict[tuple[str, str | None], Session] = {}

    def has(self, capability: str) -> bool:
        """Whether the server has a capability, so that its methods exist."""
        if capability == "logging":
            return self.options.logging
        return capability in self.registry.capabilities

    def declared(self, era: Era) -> dict[str, Any]:
        """Return the capabilities to declare to a client of an era."""
        registered = self.registry.capabilities
        if self.options.logging:
            registered |= {"logging"}
        custom = dict(self.options.capabilities)
        advertised = {
            extension.identifier: extension.settings
            for extension in self.extensions.values()
            if extension.advertised and era in extension.eras
        }
        given = custom.get("extensions", {})
        if advertised and given is not None:
            custom["extensions"] = {**advertised, **given}
        return server_capabilities(registered, era, custom=custom)

    def add_extension(self, extension: Extension) -> None:
        """Install an extension: its methods, results and notifications.

        Raises:
            SetupError: It is installed already, or another one has something of
                the same name.
        """
        what = f"extension {extension.identifier!r}"
        if extension.identifier in self.extensions:
            raise SetupError(f"{what} is installed already")
        for other in self.extensions.values():
            for kind in ("methods", "result_types", "filters"):
                shared = set(getattr(extension, kind)) & set(getattr(other, kind))
                if shared:
                    raise SetupError(
                        f"{what} and {other.identifier!r} both have {min(shared)!r} "
                        f"among their {kind}"
                    )
        self.extensions[extension.identifier] = extension
        rows = {row.name: row for row in extension.rows()}
        self.methods = MappingProxyType({**self.methods, **rows})
        self.served |= extension.served()
        # What was answered does not name it.
        self.registry.answers.clear()

    def middleware(self, function: M) -> M:
        """Call a function around the method of each request.

        It is given the request as a `Context`, and a function that goes on and
        returns the `Result`. It may return another one, raise a `ProtocolError` to
        refuse, or change `ctx.params` before it goes on: those of a tool are checked
        after that, and the headers of HTTP before. What else it raises is logged,
        and is -32603 to the client.

        A handler that asks its client is called in each round, and middleware with
        it; middleware itself can't ask. Around `subscriptions/listen` it is there
        until the stream ends. What is added first is outermost. While there is any,
        lists are built anew for each request.

        Example:
            >>> from mcpkit import App, ProtocolError
            >>> app = App("bookshop")
            >>> @app.middleware
            ... async def no_lists(ctx, call_next):
            ...     if ctx.method == "tools/list" and ctx.principal is None:
            ...         raise ProtocolError(-32000, "Who are you?")
            ...     return await call_next()

        Raises:
            SetupError: It is no async function of the two.
        """
        shape = "async def name(ctx, call_next)"
        if not is_async(function):
            raise SetupError(
                f"middleware is an async function, {shape}, not {function!r}"
            )
        try:
            inspect.signature(function).bind(None, None)
        except TypeError as error:
            raise SetupError(
                f"middleware {function!r} takes a context and what comes next: "
                f"{shape} ({error})"
            ) from error
        self.middlewares = (*self.middlewares, function)
        return function

    def notify_resource_updated(self, uri: str) -> None:
        """Tell the clients of all workers that follow a resource to read it anew.

        From any thread, with or without an event loop. Who does not follow the
        resource, or may not read it, is not told.

        Example:
            >>> from mcpkit import App
            >>> App("bookshop").notify_resource_updated("books://stock")
        """
        self.bus.tell("updated", uri)

    def notify_list_changed(self, kind: ListKind) -> None:
        """Tell the clients of all workers that a list is to be read anew.

        Of what is registered or removed here the clients of this worker are told
        without it, those alone who see the difference. This is for what changes
        elsewhere, such as who may see what, and all are told who follow the list.

        Args:
            kind: Which list: "tools", "resources" or "prompts".

        Raises:
            ValueError: There is no such list.
        """
        if kind not in LIST_CHANGED:
            raise ValueError(
                f"a list is one of {', '.join(LIST_CHANGED)}, not {kind!r}"
            )
        self.bus.tell("changed", kind)

    def converse(
        self, context: Context, journal: Journal | None = None, *, first: int = 0
    ) -> Conversation:
        """Begin a conversation with the client of a request, or go on with one.

        Args:
            context: The request.
            journal: What was asked, answered and kept before.
            first: The number of the first question.
        """
        kind = Conversation if context.task is None else LongConversation
        seconds = self.options.ask_seconds
        return kind(context, self.questions, self.threads, seconds, journal, first)

    async def log_threshold(self, context: Context) -> str | None:
        """Return the lowest level of log messages that a client is to be sent."""
        if not self.options.logging:
            return None
        if context.era == "modern":
            return context.log_level
        if context.session is None:
            return USUAL_LEVEL
        return await self.backend.get(LEVEL + context.session.id) or USUAL_LEVEL

    def _check(self, kind: Kind, component: Component) -> None:
        """Refuse what differs by the caller in an answer that all of them share."""
        if not component.rules:
            return
        for method in _ANSWERS[kind]:
            if method == _READ and component.visible is None:
                # A page is for whoever has its URI.
                continue
            cache = self.options.caches.get(method, self.options.cache)
            # A resource may say for itself how it is kept.
            own = getattr(component, "cache_scope", None)
            scope = own if own and method == _READ else cache.scope
            if scope == "public":
                differs = (
                    "only some callers see it"
                    if component.visible
                    else "clients that show user interfaces have it otherwise"
                )
                raise SetupError(
                    f"{component.name!r}: {differs}, and {self.name!r} "
                    f"has answers to {method} cached as public; make them private, "
                    f"as in App(cache={{{method!r}: Cache(ttl_ms={cache.ttl_ms}, "
                    "scope='private')})"
                )

    def seal(
        self, purpose: str, binding: Any, payload: Any, *, dated: bool = True
    ) -> str:
        """Seal a payload into a token, which is the same every time unless dated.

        `Sealer.seal` has the rest.
        """
        self._warn_of_drawn_key()
        now = time.time() if dated else 0
        return self._sealer.seal(purpose, binding, payload, now=now)

    def open(
        self, purpose: str, binding: Any, token: object, *, max_age: float | None = None
    ) -> tuple[Any, float]:
        """Return the payload of a token and when it was sealed, in seconds.

        Raises:
            SealError: For any fault at all.
        """
        return self._sealer.open_dated(
            purpose, binding, token, now=time.time(), max_age=max_age
        )

    def seal_state(self, binding: Any, payload: Any) -> str:
        """Seal what a handler keeps between two rounds of questions.

        The token has an id of its own, so that it can be for single use.

        Args:
            binding: What the request is, and who sent it. It must be equal when
                the token is opened.
            payload: What is kept, as JSON.

        Raises:
            SealError: The payload is too large, or the app's codec failed.
            TypeError: The payload has no JSON form.
        """
        self._warn_of_drawn_key()
        kept = [secrets.token_urlsafe(16), payload]
        return self._state_sealer.seal(_STATE, binding, kept, now=time.time())

    async def open_state(
        self, binding: Any, token: object, *, single_use: bool = False
    ) -> Any:
        """Return what `seal_state` sealed, for `STATE_SECONDS`.

        Args:
            binding: What the request is, and who sent it.
            token: What the client sent.
            single_use: Open it this once, in whichever worker.

        Raises:
            SealError: For any fault of the token at all, or a second use.
        """
        state, payload = self._state_sealer.open(
            _STATE, binding, token, now=time.time(), max_age=STATE_SECONDS
        )
        # Twice as long as the token lives, for workers whose clocks differ.
        if single_use and not await self.backend.replace(
            _USED + state, None, "1", 2 * STATE_SECONDS
        ):
            raise SealError("it was used before")
        return payload

    def _warn_of_drawn_key(self) -> None:
        # Workers that `mcpkit run` starts are given a key that all of them have.
        forked = self._pid != os.getpid()
        if self._key_is_drawn and (forked or multiprocessing.parent_process()):
            self._key_is_drawn = False
            logger.warning(
                "this process seals tokens that no other worker can open; set %s to "
                "the same value for all of them",
                SECRET_KEY,
            )

    def fault(self, context: Context, message: str, cause: BaseException) -> None:
        """Log what went wrong while a request was served, with its traceback."""
        logger.error("%s: %s", context.method, message, exc_info=cause)


def _keys(given: str | bytes | Sequence[str | bytes] | None) -> list[bytes]:
    if given is None:
        environment = os.environ.get(SECRET_KEY, "")
        given = [key.strip() for key in environment.split(",") if key.strip()]
    elif isinstance(given, (str, bytes)):
        given = [given]
    keys = [key.encode() if isinstance(key, str) else key for key in given]
    if any(len(key) < MIN_KEY_BYTES for key in keys):
        raise SetupError(
            f"a key in secret_key or {SECRET_KEY} needs at least {MIN_KEY_BYTES} "
            "bytes; python -c 'import secrets; print(secrets.token_urlsafe(32))' "
            "makes one"
        )
    return keys


def _codec(
    given: Codec | None, keys: Sequence[bytes], *, encrypt: bool
) -> Codec | None:
    """Return what carries request states; `None` where they are signed alone."""
    if given is not None and encrypt:
        raise SetupError(
            "codec and encrypt=True are two ways to carry a request state: give one"
        )
    if given is not None:
        return _check_codec(given)
    if not encrypt:
        return None
    try:
        from mcpkit.crypto import Cipher  # noqa: PLC0415  # an extra
    except ImportError as error:
        raise SetupError(
            "encrypt=True needs the library cryptography: pip install 'mcpkit[crypto]'"
        ) from error
    return Cipher(keys, _STATE)


def _check_codec(given: Codec) -> Codec:
    for name in ("seal", "open"):
        method = getattr(given, name, None)
        is_class = inspect.isclass(given)
        if is_class or not callable(method) or inspect.iscoroutinefunction(method):
            raise SetupError(
                "codec is an object with the methods seal(data: bytes) -> str and "
                f"open(token: str) -> bytes, neither of them async, not {given!r}"
            )
    return given
