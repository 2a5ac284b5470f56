"""Who is told that the process is about to stop, and what the signals still do."""

import asyncio
import os
import re
import signal
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

import httpx
import pytest

from mcpkit.shutdown import on_shutdown

PATIENCE = 60
"""Seconds after which a test that hangs gives up."""

ROOT = Path(__file__).parent.parent


# In this process: what becomes of the handlers


class Server:
    """What a server does about SIGTERM, and how often it was asked to stop."""

    def __init__(self) -> None:
        self.asked = 0
        self.should_exit = False

    def handle(self, _number: int, _frame: FrameType | None) -> None:
        """Be asked to stop."""
        self.asked += 1


@pytest.fixture
def server() -> Iterator[Server]:
    """A server whose handler is installed, and what was there before put back."""
    running = Server()
    before = signal.signal(signal.SIGTERM, running.handle)
    yield running
    signal.signal(signal.SIGTERM, before)


@pytest.fixture
def told() -> asyncio.Event:
    """Set by whoever is told."""
    return asyncio.Event()


async def test_who_registers_is_told_and_then_the_server(
    server: Server, told: asyncio.Event
) -> None:
    on_shutdown(told.set)
    assert not told.is_set()
    signal.raise_signal(signal.SIGTERM)
    assert server.asked == 1
    async with asyncio.timeout(PATIENCE):
        await told.wait()


async def test_a_function_is_called_in_its_loop_and_once(server: Server) -> None:
    where: list[asyncio.AbstractEventLoop] = []
    on_shutdown(lambda: where.append(asyncio.get_running_loop()))
    signal.raise_signal(signal.SIGTERM)
    signal.raise_signal(signal.SIGTERM)
    assert (server.asked, where) == (2, [])
    await asyncio.sleep(0)
    assert where == [asyncio.get_running_loop()]


async def test_handlers_are_there_again_when_all_are_told(
    server: Server, told: asyncio.Event
) -> None:
    interrupt = signal.getsignal(signal.SIGINT)
    on_shutdown(told.set)
    assert signal.getsignal(signal.SIGTERM) != server.handle
    assert signal.getsignal(signal.SIGINT) != interrupt
    signal.raise_signal(signal.SIGTERM)
    assert signal.getsignal(signal.SIGTERM) == server.handle
    assert signal.getsignal(signal.SIGINT) == interrupt


async def test_functions_are_called_in_the_order_of_their_registration(
    server: Server,
) -> None:
    order: list[int] = []
    for number in range(3):
        on_shutdown(lambda number=number: order.append(number))  # type: ignore[misc]
    signal.raise_signal(signal.SIGTERM)
    await asyncio.sleep(0)
    assert (server.asked, order) == (1, [0, 1, 2])


@pytest.mark.usefixtures("server")
async def test_one_that_fails_keeps_nothing_from_others(told: asyncio.Event) -> None:
    failures: list[str] = []
    asyncio.get_running_loop().set_exception_handler(
        lambda _loop, context: failures.append(str(context["exception"]))
    )

    def fail() -> None:
        raise ValueError("no")

    on_shutdown(fail)
    on_shutdown(told.set)
    signal.raise_signal(signal.SIGTERM)
    async with asyncio.timeout(PATIENCE):
        await told.wait()
    assert failures == ["no"]


async def test_handlers_are_there_again_when_nobody_is_registered(
    server: Server,
) -> None:
    interrupt = signal.getsignal(signal.SIGINT)
    removals = [on_shutdown(_unexpected) for _ in range(2)]
    removals[0]()
    removals[0]()
    assert signal.getsignal(signal.SIGTERM) != server.handle
    removals[1]()
    assert signal.getsignal(signal.SIGTERM) == server.handle
    assert signal.getsignal(signal.SIGINT) == interrupt
    signal.raise_signal(signal.SIGTERM)
    assert server.asked == 1
    await asyncio.sleep(0)


async def test_a_server_that_starts_later_is_a_link_of_its_own(server: Server) -> None:
    told: list[str] = []
    on_shutdown(lambda: told.append("first"))
    later = Server()
    found = signal.signal(signal.SIGTERM, later.handle)
    on_shutdown(lambda: told.append("second"))
    signal.raise_signal(signal.SIGTERM)
    await asyncio.sleep(0)
    assert (told, later.asked, server.asked) == (["first", "second"], 1, 0)

    # As uvicorn does: what was found is put back, and the signal passed on to it.
    signal.signal(signal.SIGTERM, found)
    on_shutdown(lambda: told.append("third"))
    signal.raise_signal(signal.SIGTERM)
    await asyncio.sleep(0)
    assert (told[2:], later.asked, server.asked) == (["third"], 1, 1)
    assert signal.getsignal(signal.SIGTERM) == server.handle


async def test_a_handler_that_calls_what_it_found_makes_no_circle(
    server: Server, told: asyncio.Event
) -> None:
    on_shutdown(told.set)
    found = signal.getsignal(signal.SIGTERM)

    def outer(number: int, frame: FrameType | None) -> None:
        assert callable(found)
        found(number, frame)

    signal.signal(signal.SIGTERM, outer)
    remove = on_shutdown(told.set)
    signal.raise_signal(signal.SIGTERM)
    assert server.asked == 1
    async with asyncio.timeout(PATIENCE):
        await told.wait()
    remove()
    assert signal.getsignal(signal.SIGTERM) == outer


async def test_a_handler_that_another_has_installed_since_is_left_there(
    server: Server,
) -> None:
    remove = on_shutdown(_unexpected)
    later = Server()
    signal.signal(signal.SIGTERM, later.handle)
    remove()
    assert signal.getsignal(signal.SIGTERM) == later.handle
    assert server.asked == 0


@pytest.mark.usefixtures("server")
@pytest.mark.parametrize("disposition", [signal.SIG_IGN, signal.SIG_DFL])
async def test_a_signal_that_nobody_handles_is_left_alone(
    disposition: signal.Handlers,
) -> None:
    signal.signal(signal.SIGTERM, disposition)
    remove = on_shutdown(_unexpected)
    assert signal.getsignal(signal.SIGTERM) == disposition
    remove()
    assert signal.getsignal(signal.SIGTERM) == disposition


async def test_who_comes_while_the_server_stops_is_told_at_once(
    server: Server, told: asyncio.Event
) -> None:
    remove = on_shutdown(_unexpected)
    # As a server of uvicorn does, whose handler has run before anybody registered.
    server.should_exit = True
    on_shutdown(told.set)
    remove()
    assert not told.is_set()
    async with asyncio.timeout(PATIENCE):
        await told.wait()
    assert server.asked == 0
    server.should_exit = False
    on_shutdown(_unexpected)()


async def test_outside_of_the_main_thread_nothing_is_registered(
    server: Server,
) -> None:
    async def register() -> Callable[[], None]:
        return on_shutdown(_unexpected)

    remove = await asyncio.to_thread(asyncio.run, register())
    assert signal.getsignal(signal.SIGTERM) == server.handle
    remove()


async def test_a_registration_is_taken_back_in_any_thread(server: Server) -> None:
    remove = on_shutdown(_unexpected)
    await asyncio.to_thread(remove)
    signal.raise_signal(signal.SIGTERM)
    await asyncio.sleep(0)
    assert server.asked == 1
    assert signal.getsignal(signal.SIGTERM) == server.handle


def test_a_loop_that_is_gone_need_not_be_told(server: Server) -> None:
    async def register() -> Callable[[], None]:
        return on_shutdown(_unexpected)

    remove = asyncio.run(register())
    signal.raise_signal(signal.SIGTERM)
    assert server.asked == 1
    remove()


def test_without_an_event_loop_nothing_can_be_registered() -> None:
    with pytest.raises(RuntimeError, match="no running event loop"):
        on_shutdown(_unexpected)


def _unexpected() -> None:
    raise NotImplementedError


# In processes of their own: what the signals do


SERVED = """
import asyncio, os
from mcpkit.shutdown import on_shutdown

async def app(scope, receive, send):
    assert scope["type"] == "http"
    headers = [(b"content-type", b"text/event-stream")]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    if scope["path"] == "/stream":
        await stream(send)
    elif scope["path"] == "/registered":
        on_shutdown(lambda: None)
    await send({"type": "http.response.body", "body": b""})

async def stream(send):
    async def event(data):
        body = f"data: {data}\\n\\n".encode()
        await send({"type": "http.response.body", "body": body, "more_body": True})

    closed = asyncio.Event()
    remove = on_shutdown(closed.set)
    await event(os.getpid())
    await closed.wait()
    remove()
    await event("closed")
"""

WAYS = [
    pytest.param([], 1, id="one process"),
    pytest.param(["--loop", "asyncio"], 1, id="the loop of the standard library"),
    pytest.param(["--workers", "2"], 2, id="two workers"),
    pytest.param(["--reload"], 1, id="reload"),
]
ASKED = [
    pytest.param(signal.SIGTERM, id="SIGTERM"),
    pytest.param(signal.SIGINT, id="SIGINT"),
]


@dataclass
class Running:
    """A process, and what it has said so far."""

    process: asyncio.subprocess.Process
    said: str = ""

    async def says(self, pattern: str, times: int = 1) -> list[str]:
        """Wait until the process has said something so often, and return it."""
        assert self.process.stdout is not None
        while len(found := re.findall(pattern, self.said)) < times:
            line = await self.process.stdout.readline()
            assert line, self.said
            self.said += line.decode()
        return found

    async def ends(self) -> int:
        """Wait for the end of the process, and return its exit code."""
        output, _ = await self.process.communicate()
        self.said += output.decode()
        assert self.process.returncode is not None
        return self.process.returncode


@asynccontextmanager
async def python(folder: Path, *arguments: str) -> AsyncIterator[Running]:
    """Run Python in a folder, and end it at the end if it has not by then."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *arguments,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    try:
        async with asyncio.timeout(PATIENCE):
            yield Running(process)
    finally:
        if process.returncode is None:
            # Not killed: a supervisor must end its workers.
            process.terminate()
            async with asyncio.timeout(PATIENCE):
                await process.communicate()


@asynccontextmanager
async def uvicorn(
    folder: Path, *flags: str, workers: int = 1
) -> AsyncIterator[tuple[Running, httpx.AsyncClient]]:
    """Serve the app on a free port, with a client that keeps no connection."""
    (folder / "served.py").write_text(SERVED)
    run = ["-m", "uvicorn", "served:app", "--port", "0", "--lifespan", "off"]
    async with python(folder, *run, *flags) as running:
        (port,) = await running.says(r"running on http://127\.0\.0\.1:(\d+)")
        await running.says("Started server process", workers)
        async with httpx.AsyncClient(
            base_url=f"http://127.0.0.1:{port}",
            limits=httpx.Limits(max_keepalive_connections=0),
            transport=httpx.AsyncHTTPTransport(retries=5),
            timeout=PATIENCE,
        ) as client:
            yield running, client


async def exit_code(
    folder: Path, path: str, asked: signal.Signals, *flags: str, workers: int
) -> int:
    """The exit code of a server that is asked to stop after it has served a path."""
    async with uvicorn(folder, *flags, workers=workers) as (running, client):
        assert (await client.get(path)).status_code == 200
        running.process.send_signal(asked)
        return await running.ends()


@pytest.mark.parametrize("asked", ASKED)
@pytest.mark.parametrize(("flags", "workers"), WAYS)
async def test_open_streams_end_when_the_server_is_asked_to_stop(
    tmp_path: Path, flags: list[str], workers: int, asked: signal.Signals
) -> None:
    async with (
        uvicorn(tmp_path, *flags, workers=workers) as (running, client),
        AsyncExitStack() as stack,
    ):
        streams, served = [], set[str]()
        while len(served) < workers:
            response = await stack.enter_async_context(client.stream("GET", "/stream"))
            events = response.aiter_text()
            streams.append(events)
            served.add(await anext(events))
        running.process.send_signal(asked)
        for events in streams:
            assert [text async for text in events] == ["data: closed\n\n"]
        ended = await running.ends()
    assert "Traceback" not in running.said
    assert ended == await exit_code(tmp_path, "/", asked, *flags, workers=workers)


@pytest.mark.parametrize("asked", ASKED)
async def test_a_server_without_open_streams_stops_as_before(
    tmp_path: Path, asked: signal.Signals
) -> None:
    plain, registered = await asyncio.gather(
        *(exit_code(tmp_path, path, asked, workers=1) for path in ("/", "/registered"))
    )
    assert registered == plain


async def test_a_reload_does_not_wait_for_an_open_stream(tmp_path: Path) -> None:
    async with (
        uvicorn(tmp_path, "--reload") as (running, client),
        client.stream("GET", "/stream") as response,
    ):
        events = response.aiter_text()
        first = await anext(events)
        (tmp_path / "served.py").touch()
        again = asyncio.create_task(running.says("Started server process", 2))
        # A change before the first look at the file is none: touch it again.
        while not (await asyncio.wait([again], timeout=5))[0]:
            (tmp_path / "served.py").touch()
        await again
        assert [text async for text in events] == ["data: closed\n\n"]
        async with client.stream("GET", "/stream") as after:
            assert await anext(after.aiter_text()) != first
            running.process.send_signal(signal.SIGTERM)
            assert (await running.ends()) in {0, -signal.SIGTERM}


WITHOUT_SERVER = """
import asyncio
from mcpkit.shutdown import on_shutdown

async def main():
    on_shutdown(lambda: print("told", flush=True))
    print("ready", flush=True)
    await asyncio.Event().wait()

try:
    asyncio.run(main())
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""

UNSERVED = [
    # id, signal, what is said, exit code
    ("Ctrl-C", signal.SIGINT, "ready\ntold\ninterrupted\n", 0),
    ("SIGTERM", signal.SIGTERM, "ready\n", -signal.SIGTERM),
]


@pytest.mark.parametrize(
    ("asked", "said", "code"), [pytest.param(*row, id=name) for name, *row in UNSERVED]
)
async def test_without_a_server_signals_do_what_they_do(
    tmp_path: Path, asked: signal.Signals, said: str, code: int
) -> None:
    async with python(tmp_path, "-c", WITHOUT_SERVER) as running:
        await running.says("ready")
        running.process.send_signal(asked)
        assert (await running.ends(), running.said) == (code, said)
