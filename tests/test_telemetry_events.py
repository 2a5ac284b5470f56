"""Events reach those who listen, and what they do with them no request."""

import asyncio
import doctest
import functools
import logging
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from typing import Any, get_args

import pytest

import mcpkit.telemetry
from mcpkit.errors import SetupError
from mcpkit.telemetry import (
    EVENTS,
    MAX_FIELD,
    MAX_TRACE_VALUE,
    Event,
    EventName,
    Telemetry,
    access_line,
    trace_keys,
)

TRACEPARENT = "00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01"


def test_the_examples_in_the_docstrings_run() -> None:
    assert doctest.testmod(mcpkit.telemetry).failed == 0


def test_every_name_of_an_event_is_in_the_table() -> None:
    """Seed: the conduit handler, telemetry."""
    assert tuple(EVENTS) == get_args(EventName)


@pytest.mark.parametrize("name", EVENTS)
def test_an_event_has_the_keys_of_its_name(name: EventName) -> None:
    telemetry, seen = listened()
    given = {key: f"a {key}" for key in EVENTS[name]}
    telemetry.emit(name, 0.5, **given)
    telemetry.emit(name)
    assert seen == [
        Event(name, 0.5, given),
        Event(name, None, dict.fromkeys(EVENTS[name])),
    ]


def listened() -> tuple[Telemetry, list[Event]]:
    telemetry = Telemetry()
    seen: list[Event] = []
    telemetry.listen(seen.append)
    return telemetry, seen


@pytest.mark.parametrize("name", EVENTS)
@pytest.mark.parametrize("key", ["arguments", "result", "error", "data", "_meta"])
def test_no_event_has_room_for_what_may_be_secret(name: EventName, key: str) -> None:
    telemetry, seen = listened()
    with pytest.raises(TypeError) as caught:
        telemetry.emit(name, **{key: "a secret"})
    assert str(caught.value) == f"{name} has no {key}"
    assert seen == []


def test_those_who_listen_are_told_in_the_order_in_which_they_began() -> None:
    telemetry = Telemetry()
    told = []

    @telemetry.listen
    def first(event: Event) -> None:
        told.append(("first", event.metadata["target"]))

    @telemetry.listen
    def second(event: Event) -> None:
        told.append(("second", event.metadata["target"]))

    assert telemetry.listeners == (first, second)
    telemetry.emit("prompt.get", target="review")
    assert told == [("first", "review"), ("second", "review")]


def test_nobody_listens_until_somebody_does() -> None:
    telemetry = Telemetry()
    assert telemetry.listeners == ()
    telemetry.emit("request.stop", 0.1, method="ping")


def test_who_begins_to_listen_during_an_event_hears_of_the_next() -> None:
    telemetry = Telemetry()
    seen: list[Event] = []

    def begin(event: Event) -> None:
        if event.duration == 1:
            telemetry.listen(seen.append)

    telemetry.listen(begin)
    telemetry.emit("prompt.get", 1)
    telemetry.emit("prompt.get", 2)
    assert [event.duration for event in seen] == [2]


def test_no_listener_can_change_what_the_next_is_told() -> None:
    telemetry = Telemetry()
    seen: list[Event] = []

    def change(event: Event) -> None:
        event.metadata["target"] = "another"  # type: ignore[index]

    telemetry.listen(change)
    telemetry.listen(seen.append)
    telemetry.emit("tool.execute", target="search")
    assert seen[0].metadata["target"] == "search"


RAISED = [ValueError("x"), SystemExit(3), GeneratorExit(), asyncio.CancelledError()]


@pytest.mark.parametrize("error", RAISED, ids=lambda error: type(error).__name__)
def test_what_a_listener_raises_is_logged_once_and_stops_nobody(
    error: BaseException, caplog: pytest.LogCaptureFixture
) -> None:
    telemetry = Telemetry()
    seen: list[Event] = []

    def bad(_event: Event) -> None:
        raise error

    telemetry.listen(bad)
    telemetry.listen(seen.append)
    telemetry.emit("request.stop", method="ping")
    assert [event.name for event in seen] == ["request.stop"]
    (record,) = caplog.records
    assert (record.name, record.levelno) == ("mcpkit", logging.ERROR)
    assert record.getMessage() == f"request.stop: a listener failed: {bad!r}"
    assert record.exc_info is not None
    assert record.exc_info[1] is error


def test_an_interrupt_goes_through() -> None:
    telemetry = Telemetry()

    def interrupted(_event: Event) -> None:
        raise KeyboardInterrupt

    telemetry.listen(interrupted)
    with pytest.raises(KeyboardInterrupt):
        telemetry.emit("prompt.get")


def test_a_listener_that_returns_a_coroutine_is_a_fault_in_the_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def work() -> None:
        raise NotImplementedError

    telemetry = Telemetry()
    telemetry.listen(lambda _event: work())
    telemetry.emit("prompt.get")
    (record,) = caplog.records
    assert record.exc_info is not None
    assert str(record.exc_info[1]) == "it returned what must be awaited"


class Called:
    """A listener that is an object."""

    def __init__(self) -> None:
        self.seen: list[EventName] = []

    def __call__(self, event: Event) -> None:
        """Note an event."""
        self.seen.append(event.name)

    def method(self, event: Event) -> None:
        """Note an event."""
        self.seen.append(event.name)


def test_whatever_can_be_called_with_an_event_may_listen() -> None:
    telemetry = Telemetry()
    called = Called()
    telemetry.listen(called)
    telemetry.listen(called.method)
    telemetry.listen(functools.partial(lambda seen, event: seen(event), called))
    # It has no signature.
    builtin: Callable[[Event], Any] = vars
    telemetry.listen(builtin)
    telemetry.emit("prompt.get")
    assert called.seen == ["prompt.get"] * 3


async def coroutine(_event: Event) -> None:
    raise NotImplementedError


def generator(event: Event) -> Iterator[Event]:
    yield event


async def stream(event: Event) -> AsyncIterator[Event]:
    yield event


class Awaited:
    """A listener that is an object, and has to be awaited."""

    async def __call__(self, _event: Event) -> None:
        """Do nothing that can be waited for."""
        raise NotImplementedError


PLAIN = (
    "it is a plain function, without await or yield; put the event into a queue, "
    "and have a task of your own work on that"
)


def nothing() -> None:
    raise NotImplementedError


def test_what_can_not_listen_is_a_setup_error() -> None:
    awaited = Awaited()
    partial = functools.partial(coroutine)
    refused = [
        (coroutine, f"listener coroutine: {PLAIN}"),
        (generator, f"listener generator: {PLAIN}"),
        (stream, f"listener stream: {PLAIN}"),
        (awaited, f"listener {awaited!r}: {PLAIN}"),
        (partial, f"listener {partial!r}: {PLAIN}"),
        (
            nothing,
            "listener nothing: it is called with the event alone, as in "
            "def nothing(event) (too many positional arguments)",
        ),
        (5, "a listener is a function of one event, not 5"),
    ]
    telemetry = Telemetry()
    for callback, message in refused:
        with pytest.raises(SetupError) as caught:
            telemetry.listen(callback)  # type: ignore[type-var]
        assert str(caught.value) == message
    assert telemetry.listeners == ()


TRACED: list[tuple[str, Mapping[str, Any], dict[str, str]]] = [
    # id, _meta, what it says of the trace
    ("nothing", {}, {}),
    ("a parent", {"traceparent": TRACEPARENT}, {"traceparent": TRACEPARENT}),
    (
        "all of them, and others",
        {
            "baggage": "user=ada",
            "traceparent": TRACEPARENT,
            "tracestate": "a=1",
            "com.example/traceparent": "x",
            "progressToken": 1,
        },
        {"traceparent": TRACEPARENT, "tracestate": "a=1", "baggage": "user=ada"},
    ),
    ("no texts", {"traceparent": 5, "tracestate": None, "baggage": ["a=1"]}, {}),
    ("other cases", {"Traceparent": TRACEPARENT}, {}),
    (
        "as long as may be",
        {"baggage": "x" * MAX_TRACE_VALUE},
        {"baggage": "x" * MAX_TRACE_VALUE},
    ),
    ("too long", {"baggage": "x" * (MAX_TRACE_VALUE + 1)}, {}),
]


@pytest.mark.parametrize(
    ("meta", "found"), [pytest.param(*row, id=name) for name, *row in TRACED]
)
def test_the_trace_is_under_bare_keys(
    meta: Mapping[str, Any], found: dict[str, str]
) -> None:
    """Spec 2026-07-28, basic/index: OpenTelemetry trace context."""
    assert trace_keys(meta) == found
    telemetry, seen = listened()
    telemetry.emit("request.stop", **trace_keys(meta))
    assert {k: v for k, v in seen[0].metadata.items() if v is not None} == found


def line(**given: Any) -> str:
    known = {
        "method": "tools/call",
        "target": "search",
        "era": "modern",
        "version": "2026-07-28",
        "status": "ok",
        "seconds": 0.0123,
    }
    return access_line(**{**known, **given})


LINES: list[tuple[str, dict[str, Any], str]] = [
    # id, what differs, the line
    ("a call", {}, "tools/call search modern/2026-07-28 ok 12.30ms -"),
    (
        "an error",
        {"status": "error", "code": -32602, "principal": "ada"},
        "tools/call search modern/2026-07-28 error/-32602 12.30ms ada",
    ),
    (
        "what could not be read",
        {"target": None, "era": None, "version": None, "seconds": 0.00000123},
        "tools/call - -/- ok 0.00ms -",
    ),
    (
        "a forged line",
        {"target": "a\nping - modern/x ok 0.10ms admin", "principal": "b\r\x1b[2J"},
        r"tools/call a\nping\x20-\x20modern/x\x20ok\x200.10ms\x20admin "
        r"modern/2026-07-28 ok 12.30ms b\r\x1b[2J",
    ),
    (
        "other alphabets",
        {"target": "é\u2028\\n", "method": "a b"},
        r"a\x20b \xe9\u2028\\n modern/2026-07-28 ok 12.30ms -",
    ),
    (
        "nothing at all",
        {"target": "", "principal": ""},
        'tools/call "" modern/2026-07-28 ok 12.30ms ""',
    ),
]


@pytest.mark.parametrize(
    ("given", "expected"), [pytest.param(*row, id=name) for name, *row in LINES]
)
def test_a_line_of_the_log_has_six_fields(given: dict[str, Any], expected: str) -> None:
    assert line(**given) == expected
    assert len(line(**given).split(" ")) == 6


LONG: list[tuple[str, str]] = [
    ("x" * MAX_FIELD, "x" * MAX_FIELD),
    ("x" * (MAX_FIELD + 1), "x" * (MAX_FIELD - 3) + "..."),
    ("x" * 4_000_000, "x" * (MAX_FIELD - 3) + "..."),
    (" " * 50, r"\x20" * 50),
    (" " * 51, r"\x20" * 49 + r"\..."),
]


@pytest.mark.parametrize(("sent", "written"), LONG, ids=lambda text: str(len(text)))
@pytest.mark.parametrize("name", ["method", "target", "principal"])
def test_a_field_of_a_line_is_bounded(sent: str, written: str, name: str) -> None:
    assert len(written) <= MAX_FIELD
    assert line(**{name: sent}) == line(**{name: "?"}).replace("?", written)


def test_the_log_of_requests_is_a_child_of_the_log_of_the_package() -> None:
    assert mcpkit.telemetry.access.name == "mcpkit.access"


USUAL: Callable[..., Any] = print


def test_a_function_that_listens_is_returned_as_it_is() -> None:
    assert Telemetry().listen(USUAL) is USUAL
