"""A lean HTTP client: one request, over and over, on connections kept alive."""

import asyncio
import sys
import time
from dataclasses import dataclass
from typing import Final, cast

import httptools
import uvloop

CONNECTIONS: Final = 32

_GRACE: Final = 30.0


class _Connection(asyncio.Protocol):
    """Sends the request whenever the response to the last one is complete."""

    def __init__(self, request: bytes) -> None:
        self._request = request
        self._parser = httptools.HttpResponseParser(self)
        self._transport: asyncio.Transport | None = None
        self.closed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.served = 0
        self.stopping = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # Those of uvloop are no subclasses of those of asyncio.
        self._transport = cast("asyncio.Transport", transport)
        self._transport.write(self._request)

    def data_received(self, data: bytes) -> None:
        self._parser.feed_data(data)

    def on_message_complete(self) -> None:
        assert self._transport is not None
        if self._parser.get_status_code() != 200:
            self._transport.abort()
        elif self.stopping:
            self._transport.close()
        else:
            self.served += 1
            self._transport.write(self._request)

    def end(self) -> None:
        """Close the connection, whatever is under way."""
        self.stopping = True
        if self._transport is not None:
            self._transport.abort()

    def connection_lost(self, error: Exception | None) -> None:
        if self.closed.done():
            return
        if self.stopping and error is None:
            self.closed.set_result(None)
        else:
            self.closed.set_exception(error or ConnectionError("no longer served"))


@dataclass(frozen=True, slots=True)
class Rate:
    """How fast a server was.

    Attributes:
        requests: How many requests it answered in a second of its core: over
            the processor time that it took, so that other work on the machine
            does not count. On an idle machine that is its throughput.
        share: The part of a core that it had. Well under 1 says that other work
            took the rest, or that the load was too little.
    """

    requests: float
    share: float


def load(port: int, pid: int, request: bytes, seconds: float) -> Rate:
    """Send the request for so long, and return how fast it was answered.

    A fifth of that time goes before it, uncounted, to warm the server up.

    Args:
        port: Where the server listens.
        pid: Its process.
        request: The request.
        seconds: How long.

    Raises:
        ConnectionError: A connection ended, or an answer was not 200.
    """
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(_load(port, pid, request, seconds))


async def _load(port: int, pid: int, request: bytes, seconds: float) -> Rate:
    loop = asyncio.get_running_loop()
    connections: list[_Connection] = []
    try:
        for _ in range(CONNECTIONS):
            _, connection = await loop.create_connection(
                lambda: _Connection(request), "127.0.0.1", port
            )
            connections.append(connection)
        return await _rate(connections, pid, seconds)
    finally:
        for connection in connections:
            connection.end()


async def _rate(connections: list[_Connection], pid: int, seconds: float) -> Rate:
    ended = asyncio.gather(*(connection.closed for connection in connections))
    await _passed(ended, seconds / 5)
    started, used = time.perf_counter(), cpu_seconds(pid)
    before = sum(connection.served for connection in connections)
    await _passed(ended, seconds)
    elapsed, taken = time.perf_counter() - started, cpu_seconds(pid) - used
    served = sum(connection.served for connection in connections) - before
    for connection in connections:
        connection.stopping = True
    await asyncio.wait_for(ended, _GRACE)
    return Rate(served / taken, taken / elapsed)


async def _passed(ended: "asyncio.Future[list[None]]", seconds: float) -> None:
    """Wait for so long, or for what ends before it should."""
    await asyncio.wait([ended], timeout=seconds)
    if ended.done():
        ended.result()


def cpu_seconds(pid: int) -> float:
    """Return the processor time of a process; elsewhere than on Linux, the time."""
    if sys.platform != "linux":
        return time.perf_counter()
    # What `clock_getcpuclockid` of the C library returns, which Python has not.
    return time.clock_gettime((~pid << 3) | 2)
