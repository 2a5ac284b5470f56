"""Events as they are read, by readers that split lines in every way there is."""

import doctest
import json
import re
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings, strategies as st

from mcpkit.protocol import sse
from mcpkit.protocol.jsonrpc import decode, encode
from mcpkit.protocol.sse import COMMENT, HEADERS, event, priming


class Read(NamedTuple):
    """What a client has of an event."""

    data: str
    event_id: str = ""
    retry_ms: int | None = None


Split = Callable[[bytes], list[str]]


def as_the_standard(stream: bytes) -> list[str]:
    return re.split("\r\n|\n|\r", stream.decode().removeprefix("\ufeff"))


def as_text(stream: bytes) -> list[str]:
    return stream.decode().splitlines()


def as_bytes(stream: bytes) -> list[str]:
    return [line.decode() for line in stream.splitlines()]


def at_newlines(stream: bytes) -> list[str]:
    return stream.decode().split("\n")


SPLITS = pytest.mark.parametrize(
    "split", [as_the_standard, as_text, as_bytes, at_newlines]
)


def read(stream: bytes, split: Split = as_the_standard) -> list[Read]:
    """Read a stream by the rules of the HTML standard, given its lines."""
    return list(_dispatched(split(stream)))


def _dispatched(lines: list[str]) -> Iterator[Read]:
    data: list[str] = []
    event_id, retry_ms = "", None
    for line in lines:
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if line == "":
            if data:
                yield Read("\n".join(data), event_id, retry_ms)
            data, retry_ms = [], None
        elif name == "data":
            data.append(value)
        elif name == "id" and "\0" not in value:
            event_id = value
        elif name == "retry" and value.isdecimal():
            retry_ms = int(value)
        else:
            assert name == "", f"no such field: {line!r}"


# What some reader takes for the end of a line, and what may be beside it.
SEPARATORS = "\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029"
TEXTS = st.text() | st.text(SEPARATORS + '\\"u: a\ufeff\U0001f600')
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXTS,
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4)
    ),
    max_leaves=12,
)


@SPLITS
@settings(max_examples=200, deadline=None)
@given(VALUES, VALUES)
def test_every_value_arrives_as_one_event_whoever_reads(
    split: Split, first: Any, second: Any
) -> None:
    """STR-12."""
    stream = event(encode(first)) + COMMENT + event(encode(second), event_id="s.2")
    one, two = read(stream, split)
    assert (repr(decode(one.data.encode())), one.event_id) == (repr(first), "")
    assert (repr(decode(two.data.encode())), two.event_id) == (repr(second), "s.2")


@SPLITS
@pytest.mark.parametrize(
    "piece",
    ["a", "\n", "\r\n", "\r", "\u2028", "\x85", "é", "\U0001f600", SEPARATORS],
    ids=ascii,
)
def test_five_mebibytes_arrive_as_one_event(split: Split, piece: str) -> None:
    """STR-12."""
    text = piece * (5 * 1024 * 1024 // len(piece.encode()))
    message = {"jsonrpc": "2.0", "id": 1, "result": {"text": text}}
    (one,) = read(event(encode(message)), split)
    # Not compared by the assertion, which would explain a difference for minutes.
    same = json.loads(one.data) == message
    assert same


@pytest.mark.parametrize(
    ("data", "line"),
    [
        (b'{"a":1}', b'{"a":1}'),
        (b'{\n  "a": 1\r\n}\r', b'{   "a": 1  } '),
        (b'{\n"\xc3\xa9":\n1}', b'{ "\xc3\xa9": 1}'),
        (rb'"\n\r"', rb'"\n\r"'),
        ('"\u0085"'.encode(), rb'"\u0085"'),
        ('"\u2028\u2029"'.encode(), rb'"\u2028\u2029"'),
        # The backslash before it is the end of an escape of its own.
        ('"\\\\\u2028"'.encode(), rb'"\\\u2028"'),
        # They share bytes with a separator, and are none.
        ('"\u2027\u202a\u0084\u00c2"'.encode(), '"\u2027\u202a\u0084\u00c2"'.encode()),
    ],
    ids=ascii,
)
def test_the_data_of_an_event_is_on_one_line(data: bytes, line: bytes) -> None:
    """Spec 2025-11-25, basic/transports: Receiving Messages."""
    assert event(data) == b"data: " + line + b"\n\n"
    assert json.loads(line) == json.loads(data)


@settings(max_examples=100, deadline=None)
@given(VALUES, st.sampled_from(["\n", "\r\n", "\r"]))
def test_a_text_of_many_lines_becomes_one_line(value: Any, newline: str) -> None:
    """Ours."""
    lines = json.dumps(value, indent=2, ensure_ascii=False).split("\n")
    (one,) = read(event(newline.join(lines).encode()), as_text)
    assert repr(json.loads(one.data)) == repr(value)


@pytest.mark.parametrize(
    ("event_id", "retry_ms", "expected"),
    [
        (None, None, Read("{}")),
        ("s.1", None, Read("{}", "s.1")),
        (None, 0, Read("{}", "", 0)),
        ("", 1500, Read("{}", "", 1500)),
        ("a b:c", 1500, Read("{}", "a b:c", 1500)),
    ],
)
def test_an_event_has_the_fields_that_it_was_given(
    event_id: str | None, retry_ms: int | None, expected: Read
) -> None:
    """Spec 2025-11-25, basic/transports: Sending Messages to the Server."""
    assert read(event(b"{}", event_id=event_id, retry_ms=retry_ms)) == [expected]


def test_a_client_is_primed_by_an_id_without_data() -> None:
    """Spec 2025-11-25, basic/transports: Sending Messages to the Server."""
    assert priming("s.0", 2000) == b"id: s.0\nretry: 2000\ndata:\n\n"
    assert read(priming("s.0", 2000)) == [Read("", "s.0", 2000)]


@pytest.mark.parametrize(
    "event_id", ["a\n", "a\rdata: {}", "a\0", "\u2028", "\x85", "é", "\ud800", "\x7f"]
)
def test_an_id_that_would_be_more_than_an_id_is_refused(event_id: str) -> None:
    """Ours."""
    with pytest.raises(ValueError, match="the id of an event is printable ASCII"):
        event(b"{}", event_id=event_id)
    with pytest.raises(ValueError, match="the id of an event is printable ASCII"):
        priming(event_id, 0)


def test_a_comment_is_no_event_even_after_an_id() -> None:
    """Spec 2026-07-28, basic/transports/streamable-http: Receiving Messages."""
    assert COMMENT == b":\n"
    stream = COMMENT + event(b"{}", event_id="s.1") + COMMENT + COMMENT
    assert read(stream) == [Read("{}", "s.1")]
    assert stream.count(b"\n\n") == 1


def test_a_stream_is_neither_stored_nor_changed_nor_held_back() -> None:
    """Spec 2026-07-28, basic/transports/streamable-http: Receiving Messages."""
    assert HEADERS == (
        (b"content-type", b"text/event-stream"),
        (b"cache-control", b"no-cache, no-transform"),
        (b"x-accel-buffering", b"no"),
    )


def test_the_examples_hold() -> None:
    results = doctest.testmod(sse)
    assert results == (0, results.attempted)
    assert results.attempted > 0
