"""In process: the ASGI callable itself, without a server or a socket."""

import asyncio
import gc
import time
from collections.abc import AsyncIterator, Coroutine, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from random import Random
from typing import Any, Final

from uvloop import new_event_loop

from tests.bench.samples import Samples
from tests.bench.subjects import ASGI, SUBJECTS, Message, Scope, mcpkit_app
from tests.bench.work import CALL, INITIALIZE, LEGACY, LIST, WORKS, Work

GROWTH: Final = (1, 10, 100, 1000)
"""How many tools are registered when growth is measured."""

_HOST: Final = "127.0.0.1:8000"
_WARM_UP: Final = 20


class Exchange:
    """One request and its response, as a server passes them to an application."""

    __slots__ = ("_body", "_over", "_read", "chunks", "headers", "status")

    def __init__(self, body: bytes) -> None:
        self._body = body
        self._read = False
        self._over: asyncio.Event | None = None
        self.status = 0
        self.headers: Sequence[tuple[bytes, bytes]] = ()
        self.chunks: list[bytes] = []

    async def receive(self) -> Message:
        """Return the whole body, and then nothing until the response is over."""
        if not self._read:
            self._read = True
            return {"type": "http.request", "body": self._body, "more_body": False}
        self._over = self._over or asyncio.Event()
        await self._over.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: Message) -> None:
        """Take a part of the response."""
        if message["type"] == "http.response.start":
            self.status = message["status"]
            self.headers = message.get("headers", ())
            return
        self.chunks.append(message.get("body", b""))
        if self._over is not None and not message.get("more_body", False):
            self._over.set()


class Client:
    """Sends one kind of request to an application, again and again.

    Args:
        app: The application.
        path: Where it is served.
        work: The request.
        session: The legacy session, where the application gave one.
    """

    def __init__(
        self, app: ASGI, path: str, work: Work, session: bytes | None = None
    ) -> None:
        self._app = app
        self._body = work.body
        self._scope = {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": "2.3"},
            "http_version": "1.1",
            "server": ("127.0.0.1", 8000),
            "client": ("127.0.0.1", 50000),
            "scheme": "http",
            "root_path": "",
            "method": "POST",
            "path": path,
            "raw_path": path.encode(),
            "query_string": b"",
            "headers": work.headers(_HOST, session),
        }

    async def exchange(self) -> Exchange:
        """Send the request once, and return the exchange."""
        exchange = Exchange(self._body)
        scope = {**self._scope, "state": {}}
        await self._app(scope, exchange.receive, exchange.send)
        return exchange

    async def time(self, count: int) -> float:
        """Send the request so many times, and return the microseconds of one.

        They are of processor time, so that other work on the machine does not
        count.

        Raises:
            RuntimeError: The last of them was not served.
        """
        app, body, base = self._app, self._body, self._scope
        started = time.process_time_ns()
        for _ in range(count):
            exchange = Exchange(body)
            await app({**base, "state": {}}, exchange.receive, exchange.send)
        elapsed = time.process_time_ns() - started
        if exchange.status != 200:
            raise RuntimeError(f"answered {exchange.status} while it was measured")
        return elapsed / count / 1000


async def checked_client(app: ASGI, path: str, work: Work, *, floor: bool) -> Client:
    """Return a client whose request is answered rightly.

    A legacy client opens a session first, and uses it if it is given one.

    Raises:
        RuntimeError: The answer is wrong.
    """
    session = None
    if work.version == LEGACY and not floor:
        opened = await Client(app, path, INITIALIZE).exchange()
        _check(INITIALIZE, opened)
        session = dict(opened.headers).get(b"mcp-session-id")
    client = Client(app, path, work, session)
    _check(work, await client.exchange())
    return client


def _check(work: Work, exchange: Exchange) -> None:
    fault = work.fault(exchange.status, b"".join(exchange.chunks))
    if fault is not None:
        raise RuntimeError(f"{work.name}: {fault}")


@asynccontextmanager
async def running(app: ASGI) -> AsyncIterator[None]:
    """Hold an application's lifespan open, where it has one."""
    to_app: asyncio.Queue[Message] = asyncio.Queue()
    from_app: asyncio.Queue[Message] = asyncio.Queue()
    scope: Scope = {"type": "lifespan", "asgi": {"version": "3.0"}, "state": {}}

    async def live() -> None:
        try:
            await app(scope, to_app.get, from_app.put)
        except NotImplementedError:
            await from_app.put({"type": "lifespan.startup.complete"})

    task = asyncio.ensure_future(live())
    await to_app.put({"type": "lifespan.startup"})
    started = await from_app.get()
    if started["type"] != "lifespan.startup.complete":
        raise RuntimeError(started.get("message"))
    try:
        yield
    finally:
        await to_app.put({"type": "lifespan.shutdown"})
        await task


async def measure(*, rounds: int, seconds: float) -> Samples:
    """Measure every subject at every kind of work, in microseconds a request.

    Args:
        rounds: How often each is measured, in turns.
        seconds: How long each turn takes, about.
    """
    samples = Samples(
        notes=["sync call: mcpkit and its peers call the function in a thread"]
    )
    clients: dict[tuple[str, str], Client] = {}
    async with AsyncExitStack() as stack:
        for key, subject in SUBJECTS.items():
            app = subject.build()
            await stack.enter_async_context(running(app))
            for work in WORKS:
                if work.name in subject.blank:
                    continue
                clients[work.name, key] = await checked_client(
                    app, subject.path, work, floor=subject.floor
                )
        await _measure(clients, samples, rounds, seconds)
    return samples


async def measure_growth(*, rounds: int, seconds: float) -> Samples:
    """Measure a call and a list of mcpkit with few tools and with many."""
    samples = Samples()
    clients: dict[tuple[str, str], Client] = {}
    for count in GROWTH:
        app = mcpkit_app(count)
        for work in (CALL, LIST):
            client = Client(app, "/mcp", work)
            clients[work.method, str(count)] = client
            await client.exchange()
    await _measure(clients, samples, rounds, seconds)
    return samples


async def _measure(
    clients: Mapping[tuple[str, str], Client],
    samples: Samples,
    rounds: int,
    seconds: float,
) -> None:
    counts = {}
    for key, client in clients.items():
        await client.time(_WARM_UP)
        counts[key] = max(5, int(seconds * 1e6 / await client.time(_WARM_UP)))
    # What was built is not looked at again, so that the collector, which stays
    # on, works on what the requests leave alone.
    gc.collect()
    gc.freeze()
    turns = list(clients)
    for number in range(rounds):
        Random(number).shuffle(turns)  # noqa: S311  # the same turns in every run
        for key in turns:
            gc.collect()
            samples.add(*key, await clients[key].time(counts[key]))
    gc.unfreeze()


def run(measuring: Coroutine[Any, Any, Samples], *, uvloop: bool = False) -> Samples:
    """Run one of the measurements in a new event loop, asyncio's unless told."""
    factory = new_event_loop if uvloop else None
    with asyncio.Runner(loop_factory=factory) as runner:
        return runner.run(measuring)
