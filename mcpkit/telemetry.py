"""What happens in an app, told to those who listen.

    request.stop          a request was answered; it took `duration`
    tool.execute          a tool was called; `duration` has no middleware in it
    resource.read         a resource was read
    prompt.get            a prompt was asked for
    mrtr.input_required   an answer asks the client for input
    subscription.start    a stream of notifications was opened
    subscription.stop     it ended; it was open for `duration`
    request.cancelled     the client cancelled a request that was being served

They are of requests whose method is looked for: what is refused before that, such as
what is malformed or has no session, is in the log of the HTTP server alone.

No event has arguments, results or messages of errors: those may be secret. A
request that opens a stream is measured by the events of a subscription alone, as
the life of a stream is no latency.

Beside the events there is one line a request for the log `mcpkit.access`.
"""

import inspect
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final, Literal, TypeAlias, TypeVar

from mcpkit.errors import SetupError

EventName: TypeAlias = Literal[
    "request.stop",
    "tool.execute",
    "resource.read",
    "prompt.get",
    "mrtr.input_required",
    "subscription.start",
    "subscription.stop",
    "request.cancelled",
]

StreamEnd: TypeAlias = Literal[
    "client", "empty", "error", "evicted", "overflow", "session", "shutdown"
]

TRACE_KEYS: Final = ("traceparent", "tracestate", "baggage")
"""The keys of `_meta` that say which trace a request belongs to.

They have no prefix. Spec 2026-07-28, basic/index: `_meta`.
"""

MAX_TRACE_VALUE: Final = 8192
"""How long a value under one of them may be, which is the bound of W3C Baggage."""

_OUTCOME: Final = ("status", "code")
_SPOKEN: Final = ("era", "version")
_RUN: Final = ("target", *_OUTCOME, *_SPOKEN)

EVENTS: Final[Mapping[EventName, tuple[str, ...]]] = MappingProxyType(
    {
        "request.stop": ("method", *_RUN, *TRACE_KEYS),
        "tool.execute": _RUN,
        "resource.read": _RUN,
        "prompt.get": _RUN,
        "mrtr.input_required": ("method", "target", "questions", *_SPOKEN),
        "subscription.start": ("method", *_SPOKEN, *TRACE_KEYS),
        "subscription.stop": ("method", "reason", *_SPOKEN, *TRACE_KEYS),
        "request.cancelled": ("method", "target", *_SPOKEN),
    }
)
"""The keys of each event's metadata. What has no value is there too, as `None`.

    method        such as "tools/call"
    target        the name of the tool or prompt, the URI of the resource
    status        "ok" or "error"; for a tool that is also one that reports a failure
    code          the code of a JSON-RPC error
    era, version  "modern" or "legacy", and the version of the protocol
    questions     how many input requests the answer has
    reason        why a stream ended:
                  "client"    it closed the stream, or did not come back to it
                  "session"   the legacy session has ended
                  "shutdown"  the app ends
                  "empty"     there is nothing of what was asked for to follow
                  "overflow"  the client reads too slowly
                  "evicted"   there were too many, and nobody was connected to it
                  "error"     something failed
    traceparent, tracestate, baggage  the trace, as the client sent it
"""

MAX_FIELD: Final = 200
"""How many characters of a line a text has that came from the client."""

access: Final = logging.getLogger("mcpkit.access")
"""The log of requests, one line each. It is written where its level is INFO."""

_logger: Final = logging.getLogger("mcpkit")


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened.

    Attributes:
        name: What.
        duration: How long it took, in seconds, where it took time.
        metadata: The rest, under the keys that `EVENTS` has for the name.
    """

    name: EventName
    duration: float | None
    metadata: Mapping[str, Any]


Listener: TypeAlias = Callable[[Event], Any]
L = TypeVar("L", bound=Listener)


class Telemetry:
    """Who listens to an app.

    Example:
        >>> telemetry = Telemetry()
        >>> @telemetry.listen
        ... def show(event: Event) -> None:
        ...     print(event.name, event.duration, event.metadata["target"])
        >>> telemetry.emit("tool.execute", 0.25, target="search", status="ok")
        tool.execute 0.25 search

    Attributes:
        listeners: Those who listen, in the order in which they began. While there
            are none nothing needs to be emitted.
    """

    __slots__ = ("listeners",)

    def __init__(self) -> None:
        self.listeners: tuple[Listener, ...] = ()

    def listen(self, callback: L) -> L:
        """Call a function with each event from now on, and return the function.

        It is called in the event loop, between the requests: it must not block.

        Raises:
            SetupError: It is no plain function of one event.
        """
        _check_listener(callback)
        self.listeners = (*self.listeners, callback)
        return callback

    def emit(
        self, name: EventName, duration: float | None = None, /, **metadata: Any
    ) -> None:
        """Tell those who listen of an event. What they raise is logged.

        Args:
            name: The name of the event.
            duration: How long it took, in seconds.
            metadata: What `EVENTS` has for the name; what is left out is `None`.

        Raises:
            TypeError: The event has no such metadata.
            KeyboardInterrupt: It came while somebody was told.
        """
        keys = EVENTS[name]
        if unknown := metadata.keys() - keys:
            raise TypeError(f"{name} has no {', '.join(sorted(unknown))}")
        known = {key: metadata.get(key) for key in keys}
        event = Event(name, duration, MappingProxyType(known))
        for listener in self.listeners:
            _tell(listener, event)


def trace_keys(meta: Mapping[str, Any]) -> dict[str, str]:
    """Return what the `_meta` of a request says of its trace.

    What is no text, or too long for one of these, is left out.

    Example:
        >>> trace_keys({"traceparent": "00-1-2-01", "baggage": 5})
        {'traceparent': '00-1-2-01'}
    """
    return {
        key: value
        for key in TRACE_KEYS
        if isinstance(value := meta.get(key), str) and len(value) <= MAX_TRACE_VALUE
    }


def access_line(
    *,
    method: str,
    seconds: float,
    status: str,
    target: str | None = None,
    era: str | None = None,
    version: str | None = None,
    code: int | None = None,
    principal: str | None = None,
) -> str:
    """Return what the log of requests has about one of them.

    The fields have no spaces, whatever the client sent; `-` stands for what is
    not known.

    Args:
        method: The method of the request.
        seconds: How long it took.
        status: "ok", "error" or "cancelled".
        target: The tool, the prompt or the resource.
        era: The era.
        version: The version of the protocol.
        code: The code of the error.
        principal: The id of the caller.

    Example:
        >>> access_line(
        ...     method="tools/call", target="search", era="modern",
        ...     version="2026-07-28", status="error", code=-32602, seconds=0.00125,
        ... )
        'tools/call search modern/2026-07-28 error/-32602 1.25ms -'
    """
    outcome = status if code is None else f"{status}/{code}"
    spoken = f"{_field(era)}/{_field(version)}"
    return (
        f"{_field(method)} {_field(target)} {spoken} {outcome} "
        f"{seconds * 1000:.2f}ms {_field(principal)}"
    )


def _check_listener(callback: Callable[..., Any]) -> None:
    name = getattr(callback, "__qualname__", None) or repr(callback)
    if not callable(callback):
        raise SetupError(f"a listener is a function of one event, not {callback!r}")
    if any(
        asks(called)
        for asks in (
            inspect.iscoroutinefunction,
            inspect.isgeneratorfunction,
            inspect.isasyncgenfunction,
        )
        for called in (callback, type(callback).__call__)
    ):
        raise SetupError(
            f"listener {name}: it is a plain function, without await or yield; put "
            "the event into a queue, and have a task of your own work on that"
        )
    try:
        inspect.signature(callback).bind(None)
    except TypeError as error:
        raise SetupError(
            f"listener {name}: it is called with the event alone, as in "
            f"def {name}(event) ({error})"
        ) from error
    # Some of what is built in has no signature.
    except ValueError:
        pass


def _tell(listener: Listener, event: Event) -> None:
    try:
        outcome = listener(event)
        if inspect.iscoroutine(outcome):
            outcome.close()
            raise TypeError("it returned what must be awaited")  # noqa: TRY301
    except KeyboardInterrupt:
        raise
    # The request is served whatever a listener wants, an exit included.
    except BaseException:
        _logger.exception("%s: a listener failed: %r", event.name, listener)


def _field(text: str | None) -> str:
    if text is None:
        return "-"
    if not text:
        return '""'
    escaped = text[:MAX_FIELD].encode("unicode_escape").decode().replace(" ", r"\x20")
    if len(text) <= MAX_FIELD and len(escaped) <= MAX_FIELD:
        return escaped
    return f"{escaped[: MAX_FIELD - 3]}..."
