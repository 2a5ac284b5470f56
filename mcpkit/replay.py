"""What legacy clients that lost their connection may be sent again.

Each stream of a session keeps its latest events, whoever is connected. An event id
is a cursor within its stream: `<stream id>.<number>`, from 1 on; number 0 stands for
the start of the stream. What is kept is bounded in count, size and time:

    a stream        `MAX_EVENTS` and `MAX_BYTES`; the oldest events go first
    a worker        `MAX_STREAMS` and `MAX_TOTAL_BYTES`; the streams that finished
                    longest ago go first, then the least recently used
    when finished   `KEPT_SECONDS`

A stream that goes can't be found any more. Those who hold it go on as before, so
that no response is lost to a client that is still connected.

A `Replay` and its buffers belong to one event loop, and are used in its thread.

Spec 2025-11-25, basic/transports: Resumability and Redelivery, Multiple Connections.
"""

import asyncio
import re
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count
from typing import Final
from weakref import WeakSet

MAX_EVENTS: Final = 256
"""How many events a stream keeps."""

MAX_BYTES: Final = 1024 * 1024
"""How much a stream keeps, in bytes of data. One larger event is kept alone."""

MAX_STREAMS: Final = 1000
"""How many streams can be found."""

MAX_TOTAL_BYTES: Final = 64 * 1024 * 1024
"""How much the streams that can be found keep together, in bytes of data."""

KEPT_SECONDS: Final = 300
"""How long a finished stream can be found, in seconds."""

_EVENT_ID: Final = re.compile(
    r"(?P<stream>[A-Za-z0-9_-]{16})\.(?P<number>0|[1-9][0-9]{0,14})"
)


class Replay:
    """The streams of all sessions that a worker serves.

    Args:
        clock: Tells the time in seconds.

    Example:
        >>> replay = Replay()
        >>> stream = replay.open("session")
        >>> last_seen = stream.append(b"{}")
        >>> _ = stream.append(b"[]")
        >>> found, position = replay.find("session", last_seen)
        >>> [data for _, data in found.after(position)]
        [b'[]']
    """

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._shelf = _Shelf(clock)
        # With those that can't be found, but are still in use.
        self._alive: WeakSet[Buffer] = WeakSet()

    def __len__(self) -> int:
        """How many streams can be found."""
        return len(self._shelf)

    def open(self, session_id: str, *, listens: bool = False) -> "Buffer":
        """Return a new stream of a session.

        Args:
            session_id: The session.
            listens: It is what the session listens on.
        """
        buffer = Buffer(session_id, self._shelf, listens=listens)
        self._shelf.add(buffer)
        self._alive.add(buffer)
        return buffer

    def find(self, session_id: str, last_event_id: str) -> "tuple[Buffer, int] | None":
        """Return the stream of an event, and the position after that event.

        `None` when the id is not of an event, or of one of another session, or the
        stream is gone. A client can't tell which.
        """
        # Each part has a bound: however long the id is, no more of it is read.
        match = _EVENT_ID.fullmatch(last_event_id)
        if match is None:
            return None
        buffer, position = self._shelf.find(match["stream"]), int(match["number"])
        if buffer is None or buffer.session_id != session_id or position > buffer.last:
            return None
        return buffer, position

    def end(self, session_id: str) -> None:
        """Drop the streams of a session, and end those who follow them."""
        for buffer in [*self._alive]:
            if buffer.session_id == session_id:
                buffer.end()


class Buffer:
    """One stream: its latest events, and who is connected to it.

    Attributes:
        stream_id: A random name for it, which no other stream has.
        session_id: The session it belongs to.
        listens: Whether it is what its session listens on, and not the answer to one
            request: who comes back for it listens on.
        finished: Whether nothing more comes.
        last: The number of the latest event, which is the position after it.
        away_since: Since when nobody is connected to it; `None` while somebody is.
        size: How much is kept, in bytes of data.
    """

    def __init__(
        self, session_id: str, shelf: "_Shelf", *, listens: bool = False
    ) -> None:
        self.stream_id: Final = secrets.token_urlsafe(12)
        self.session_id: Final = session_id
        self.listens: Final = listens
        self.finished = False
        self.last = 0
        self.away_since: float | None = None
        self.size = 0
        self._shelf = shelf
        self._events: list[bytes] = []
        self._turn: _Turn | None = None

    def event_id(self, position: int) -> str:
        """Return the id of the event before a position; 0 is the start."""
        return f"{self.stream_id}.{position}"

    def append(self, data: bytes) -> str:
        """Add an event, and return its id.

        A stream that has finished takes no more: nothing is kept or sent, as when
        a session has ended while a handler of it still works.
        """
        if self.finished:
            return self.event_id(self.last + 1)
        before = self.size
        self._events.append(data)
        self.last += 1
        self.size += len(data)
        self._trim()
        self._shelf.use(self, grown=self.size - before)
        self._wake()
        return self.event_id(self.last)

    def finish(self) -> None:
        """Say that nothing more comes; what is there is kept for `KEPT_SECONDS`."""
        self.finished = True
        self._shelf.finish(self)
        self._wake()

    def end(self) -> None:
        """Finish and keep nothing."""
        self._shelf.drop(self)
        self._events.clear()
        self.size = 0
        self.finished = True
        self._wake()

    def after(self, position: int) -> list[tuple[str, bytes]]:
        """Return the ids and data of the kept events after a position, in order.

        There is a gap where the oldest of them were dropped.
        """
        first = self._first_after(position)
        kept = self._events[first - self.last - 1 :] if first <= self.last else []
        return list(zip(map(self.event_id, count(first)), kept, strict=False))

    def next_after(self, position: int) -> tuple[int, bytes] | None:
        """Return the first kept event after a position, and the position after it."""
        first = self._first_after(position)
        if first > self.last:
            return None
        return first, self._events[first - self.last - 1]

    def follow(self, position: int = 0) -> "Follower":
        """Return the events after a position, kept ones first and then live.

        Whoever followed before is displaced, from now on: an event goes to one
        connection only. A follower that takes events more slowly than they come
        misses those that are dropped meanwhile.
        """
        if self._turn is not None:
            self._turn.over = True
            self._turn.wake.set()
        self._turn = _Turn()
        self.away_since = None
        return Follower(self, position, self._turn)

    def leave(self) -> None:
        """Note that the connection of whoever follows has ended."""
        self.away_since = time.monotonic()

    def _first_after(self, position: int) -> int:
        return max(position, self.last - len(self._events)) + 1

    def _trim(self) -> None:
        while len(self._events) > MAX_EVENTS or (
            self.size > MAX_BYTES and len(self._events) > 1
        ):
            self.size -= len(self._events.pop(0))

    def _wake(self) -> None:
        if self._turn is not None:
            self._turn.wake.set()


class Follower:
    """An async iterator over the ids and data of a stream's events.

    It ends when the stream has finished and all is taken, when the session has
    ended, or when it is displaced. An `anext` that is cancelled takes nothing, so
    it may have a timeout and be called again.

    Attributes:
        position: How much of the stream was taken.
    """

    def __init__(self, buffer: Buffer, position: int, turn: "_Turn") -> None:
        self._buffer = buffer
        self.position = position
        self._turn = turn

    @property
    def displaced(self) -> bool:
        """Whether another follows the stream now."""
        return self._turn.over

    def leave(self) -> None:
        """Note that the connection has ended. Who has followed since is not gone."""
        if not self._turn.over:
            self._buffer.leave()

    def __aiter__(self) -> "Follower":
        return self

    async def __anext__(self) -> tuple[str, bytes]:
        while not self._turn.over:
            taken = self._buffer.next_after(self.position)
            if taken is not None:
                self.position, data = taken
                return self._buffer.event_id(self.position), data
            if self._buffer.finished:
                break
            self._turn.wake.clear()
            await self._turn.wake.wait()
        raise StopAsyncIteration


# Apart from the follower: a stream that held it would be held by it, and neither
# would be freed before the garbage collector comes.
@dataclass(slots=True)
class _Turn:
    """The time that one follower has at a stream."""

    wake: asyncio.Event = field(default_factory=asyncio.Event)
    over: bool = False


class _Shelf:
    """The streams that can be found, within the bounds that they share."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._size = 0
        # The least recently used first.
        self._open: OrderedDict[str, Buffer] = OrderedDict()
        # The longest finished first, each with the time until which it is kept.
        self._finished: OrderedDict[str, tuple[float, Buffer]] = OrderedDict()

    def __len__(self) -> int:
        self._expire()
        return len(self._open) + len(self._finished)

    def add(self, buffer: Buffer) -> None:
        self._open[buffer.stream_id] = buffer
        self._fit()

    def find(self, stream_id: str) -> Buffer | None:
        self._expire()
        if (buffer := self._open.get(stream_id)) is not None:
            self._open.move_to_end(stream_id)
            return buffer
        if (kept := self._finished.get(stream_id)) is not None:
            return kept[1]
        return None

    def use(self, buffer: Buffer, *, grown: int) -> None:
        if buffer.stream_id in self._open:
            self._open.move_to_end(buffer.stream_id)
            self._size += grown
            self._fit()

    def finish(self, buffer: Buffer) -> None:
        if self._open.pop(buffer.stream_id, None) is not None:
            until = self._clock() + KEPT_SECONDS
            self._finished[buffer.stream_id] = until, buffer

    def drop(self, buffer: Buffer) -> None:
        stream_id = buffer.stream_id
        if stream_id in self._open:
            del self._open[stream_id]
        elif stream_id in self._finished:
            del self._finished[stream_id]
        else:
            return
        self._size -= buffer.size

    def _fit(self) -> None:
        self._expire()
        while (
            len(self._open) + len(self._finished) > MAX_STREAMS
            or self._size > MAX_TOTAL_BYTES
        ):
            self.drop(self._next_to_go())

    def _next_to_go(self) -> Buffer:
        if self._finished:
            return next(iter(self._finished.values()))[1]
        return next(iter(self._open.values()))

    def _expire(self) -> None:
        now = self._clock()
        while self._finished:
            until, buffer = next(iter(self._finished.values()))
            if now < until:
                break
            self.drop(buffer)
