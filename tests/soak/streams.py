"""The open streams of a soak, each told exactly what it is due."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any, Final

from tests.soak.app import CLOCK, ITEM
from tests.soak.calls import Failures
from tests.soak.wire import IO, Connection, WrongError, expect, modern

PATIENCE: Final = 15.0
"""How long a stream may wait for what it is due, in seconds."""

TOOLS: Final = "notifications/tools/list_changed"
"""What the streams are due when the list of tools has changed."""

_UPDATED: Final = "notifications/resources/updated"
_ID: Final = f"{IO}subscriptionId"
_A_CLIENT: Final = 50
_AT_ONCE: Final = 32


class Streams:
    """All streams, and who of them is still due what.

    Args:
        port: Where the server listens.
        failures: Where failures are noted.

    Attributes:
        ended: How many ended with their completion result.
        may_end: The server is about to stop.
        told: How many messages came that were due.
    """

    def __init__(self, port: int, failures: Failures) -> None:
        self._port = port
        self._failures = failures
        self._streams: list[_Stream] = []
        self._reading: set[asyncio.Task[None]] = set()
        self._due = 0
        self._all_told = asyncio.Event()
        self.ended = 0
        self.may_end = False
        self.told = 0

    def __len__(self) -> int:
        return len(self._streams)

    async def open(self, count: int) -> None:
        """Open so many streams, and read what they are told from then on."""
        at_once = asyncio.Semaphore(_AT_ONCE)

        async def begin(number: int) -> None:
            stream = _Stream(number)
            async with at_once, asyncio.timeout(PATIENCE):
                events = await stream.open(self._port)
            self._streams.append(stream)
            self._read(stream, events)

        async with asyncio.TaskGroup() as group:
            for number in range(count):
                group.create_task(begin(number))

    async def announce(
        self, act: Callable[[], Awaitable[Any]], everybody: str, *one: str
    ) -> float:
        """Do what the streams are to be told of, and wait until they are.

        Args:
            act: What is done.
            everybody: What all streams are due: a URI, or `TOOLS`.
            one: What only those are due that follow it.

        Returns:
            How long it took until the last one was told, in seconds.
        """
        self._all_told.clear()
        self._due = 0
        for stream in self._streams:
            stream.due = {everybody, *stream.follows.intersection(one)}
            self._due += len(stream.due)
        began = time.perf_counter()
        try:
            async with asyncio.timeout(PATIENCE):
                await act()
                if self._due:
                    await self._all_told.wait()
        except TimeoutError:
            for stream in self._streams:
                for missing in stream.due:
                    self._failures.note("a stream", WrongError(f"not told {missing}"))
        return time.perf_counter() - began

    def close(self) -> None:
        """Close all streams from this side."""
        for stream in self._streams:
            stream.close()
        self._streams.clear()

    async def all_ended(self) -> None:
        """Wait until nothing is read any more."""
        if self._reading:
            await asyncio.wait(self._reading, timeout=PATIENCE)

    def _read(self, stream: "_Stream", events: Any) -> None:
        task = asyncio.create_task(self._follow(stream, events))
        self._reading.add(task)
        task.add_done_callback(self._reading.discard)

    async def _follow(self, stream: "_Stream", events: Any) -> None:
        try:
            async for message in events:
                if "method" not in message:
                    stream.check_end(message)
                    self.ended += self.may_end
                    continue
                stream.take(message)
                self.told += 1
                self._due -= 1
                if not self._due:
                    self._all_told.set()
            if not self.may_end:
                raise WrongError("ended by the server")  # noqa: TRY301  # noted below
        except (WrongError, OSError, EOFError, KeyError, ValueError) as error:
            # Those that were closed from here are read no further.
            if stream.is_open:
                self._failures.note("a stream", error)


class _Stream:
    """One stream: what it follows, and what it is still due."""

    def __init__(self, number: int) -> None:
        self.request_id: int | str = f"stream-{number}" if number % 2 else number
        self.follows = {CLOCK, ITEM.format(number=number)}
        self.due: set[str] = set()
        self.is_open = False
        self._client = f"listener-{number // _A_CLIENT}"

    async def open(self, port: int) -> Any:
        """Open it, and return its messages after the acknowledgement."""
        self._connection = await Connection.open(port, self._client)
        uris = sorted(self.follows)
        wanted = {"toolsListChanged": True, "resourceSubscriptions": uris}
        answer = await self._connection.ask(
            modern(self.request_id, "subscriptions/listen", {"notifications": wanted})
        )
        events = answer.events()
        first = await anext(events)
        expect(first["method"], "notifications/subscriptions/acknowledged")
        expect(first["params"]["notifications"], wanted)
        self._check_id(first["params"])
        self.is_open = True
        return events

    def take(self, message: Any) -> None:
        """Strike off what it was due.

        Raises:
            WrongError: It was not due that.
        """
        method, params = message["method"], message["params"]
        self._check_id(params)
        told = params["uri"] if method == _UPDATED else method
        if told not in self.due:
            raise WrongError(f"told {told}, which was not due")
        self.due.discard(told)

    def check_end(self, message: Any) -> None:
        """Look at the completion result.

        Raises:
            WrongError: It is something else.
        """
        expect(
            (message["id"], message["result"]["resultType"]),
            (self.request_id, "complete"),
        )
        self._check_id(message["result"])

    def close(self) -> None:
        """Close it from this side."""
        self.is_open = False
        self._connection.close()

    def _check_id(self, params: Any) -> None:
        found = params["_meta"][_ID]
        expect((type(found), found), (type(self.request_id), self.request_id))
