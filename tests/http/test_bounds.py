"""What bad input may cost: no more than its answer."""

import time
from collections.abc import Callable

import pytest

from mcpkit import App, handle_request
from mcpkit.errors import PARSE_ERROR, ProtocolError
from mcpkit.guard import Guard, accepts, form_fault
from mcpkit.protocol.headers import collect
from mcpkit.protocol.jsonrpc import MAX_CONTAINERS, decode
from mcpkit.registry import suggestions


def many_headers() -> None:
    raw = [(b"%d" % index, b"") for index in range(20_000)]
    assert len(collect([*raw, (b"1", b"")])) == 20_000


def deep_lists() -> None:
    with pytest.raises(ProtocolError) as caught:
        decode(b"[" + b"[" * 128 + b"]" * 128 + b"]" + b",[]" * 1_000_000)
    assert caught.value.code == PARSE_ERROR


def many_lists() -> None:
    with pytest.raises(ProtocolError) as caught:
        decode(b"[" + b"[]," * MAX_CONTAINERS + b"[]]")
    assert caught.value.code == PARSE_ERROR


def brackets_in_a_text() -> None:
    assert decode(b'["' + b'\\"[' * 100_000 + b'"]') == ['"[' * 100_000]


def misspelt() -> None:
    names = [f"get_the_current_weather_{index:03}" for index in range(1000)]
    assert suggestions("get_the_current_weather_x00", names)


COSTS: list[Callable[[], None]] = [
    many_headers,
    deep_lists,
    many_lists,
    brackets_in_a_text,
    misspelt,
]


@pytest.mark.parametrize("attempt", COSTS, ids=[cost.__name__ for cost in COSTS])
def test_what_is_refused_costs_little(attempt: Callable[[], None]) -> None:
    """Ours: each of these took seconds where work grew with the square of the input."""
    started = time.process_time()
    attempt()
    assert time.process_time() - started < 0.5


def test_no_header_is_remembered_that_is_too_long_to_be_one() -> None:
    """Ours: what is remembered is bounded in bytes, too."""
    guard = Guard(["*"], ["*"])
    assert not guard.admits_host(b"x" * 513)
    assert not guard.admits_origin(b"x" * 513, b"localhost")
    assert form_fault(b"application/json", None, b"x" * 513) == (
        406,
        "Accept is too long",
    )
    assert form_fault(b"x" * 513, None, None) == (415, "Content-Type is too long")
    assert accepts(b"*/*", b"application/json")


async def test_half_a_surrogate_pair_is_no_crash_of_a_transport() -> None:
    """Ours: a transport of one's own may decode what `decode` refuses."""
    message = {
        "jsonrpc": "2.0",
        "method": "notifications/cancelled",
        "params": {"requestId": "\ud800"},
    }
    assert await handle_request(message, App("shop")) is None
