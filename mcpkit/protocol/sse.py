"""Server-sent events: one JSON text an event, on one line.

Readers differ in what ends a line. The standard says CR, LF or both; others split at
U+0085, U+2028 and U+2029 too, as Python's `str.splitlines` does. So none of them is
in what is sent, and each event parses back to the value it was made of.

Spec 2026-07-28, basic/transports/streamable-http: Receiving Messages;
2025-11-25, basic/transports: Resumability and Redelivery.
"""

from typing import Final

HEADERS: Final = (
    (b"content-type", b"text/event-stream"),
    (b"cache-control", b"no-cache, no-transform"),
    (b"x-accel-buffering", b"no"),
)
"""The headers of a stream, as ASGI has them: nobody may store, change or hold it."""

# No empty line after it: to some readers that is an event, once one had an id.
COMMENT: Final = b":\n"
"""A line that says nothing, to keep a quiet connection open between events."""

# Each can only be inside a string, where its escape is the same text.
_ESCAPES: Final = (
    ("\u0085".encode(), rb"\u0085"),
    ("\u2028".encode(), rb"\u2028"),
    ("\u2029".encode(), rb"\u2029"),
)


def event(
    data: bytes, *, event_id: str | None = None, retry_ms: int | None = None
) -> bytes:
    r"""Return one event.

    Args:
        data: One JSON text, in UTF-8.
        event_id: Where a client that comes back asks to go on: printable ASCII.
        retry_ms: How long it is to wait before it comes back, in milliseconds.

    Raises:
        ValueError: The id is not printable ASCII.

    Example:
        >>> event(b'{"a":1}', event_id="s.1")
        b'id: s.1\ndata: {"a":1}\n\n'
    """
    # Joined, which copies what is large once; formatting copies it again.
    return b"".join((_fields(event_id, retry_ms), b"data: ", _one_line(data), b"\n\n"))


def priming(event_id: str, retry_ms: int) -> bytes:
    r"""Return an event without data, that a client can come back to.

    Raises:
        ValueError: The id is not printable ASCII.

    Example:
        >>> priming("s.0", 1000)
        b'id: s.0\nretry: 1000\ndata:\n\n'
    """
    return b"%bdata:\n\n" % _fields(event_id, retry_ms)


def retry(milliseconds: int) -> bytes:
    r"""Return what tells a client when to come back, before its connection closes.

    Example:
        >>> retry(1000)
        b'retry: 1000\n\n'
    """
    return b"%b\n" % _fields(None, milliseconds)


def _one_line(data: bytes) -> bytes:
    # Between tokens, where JSON allows a raw line break, a space means the same.
    if b"\n" in data or b"\r" in data:
        data = data.replace(b"\n", b" ").replace(b"\r", b" ")
    if data.isascii():
        return data
    for separator, escape in _ESCAPES:
        if separator in data:
            data = data.replace(separator, escape)
    return data


def _fields(event_id: str | None, retry_ms: int | None) -> bytes:
    fields = b""
    if event_id is not None:
        if not (event_id.isascii() and event_id.isprintable()):
            raise ValueError(f"the id of an event is printable ASCII, not {event_id!r}")
        fields += b"id: %b\n" % event_id.encode("ascii")
    if retry_ms is not None:
        fields += b"retry: %d\n" % retry_ms
    return fields
