"""Two workers behind one port: what one has sealed, the other opens."""

import asyncio
import json
import os
import re
import socket
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, Final

import pytest

from mcpkit.server import SECRET_KEY
from tests.http.client import LEGACY, initialize, legacy, modern, request
from tests.http.serving import Connection, connected, whole

ROOT: Final = Path(__file__).parent.parent.parent
SECONDS: Final = 30
LISTENING: Final = re.compile(
    r"running on (?:http://|socket \(')127\.0\.0\.1(?::|', )(\d+)"
)

SERVER = """
import os, socket
from mcpkit import App

app = App("workers", page_size=1)

@app.tool
async def pid() -> int:
    return os.getpid()

@app.tool(thread=False)
def hold(port: int) -> int:
    # In the event loop, so that this worker takes no other connection.
    with socket.create_connection(("127.0.0.1", port)) as line:
        line.recv(1)
    return os.getpid()
"""


@contextmanager
def running(target: Path, workers: int) -> Iterator[int]:
    """Run `mcpkit run`, and yield the port that the system picked."""
    program = Path(sys.executable).with_name("mcpkit")
    command: list[str | Path] = [program, "run", target, "--port", "0"]
    command += ["--workers", str(workers)]
    environment = {k: v for k, v in os.environ.items() if k != SECRET_KEY}
    with subprocess.Popen(  # noqa: S603  # the command is ours
        command, env=environment, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr is not None
        # A server that never comes up ends here, and so does the wait for it.
        watch = threading.Timer(SECONDS, process.kill)
        watch.start()
        log: list[str] = []
        for line in process.stderr:
            log.append(line)
            if found := LISTENING.search(line):
                break
        watch.cancel()
        assert found is not None, "".join(log)
        drain = threading.Thread(target=log.extend, args=[process.stderr])
        drain.start()
        try:
            await_listener(int(found[1]))
            yield int(found[1])
        finally:
            process.terminate()
            process.wait(SECONDS)
            drain.join()
    assert "Traceback" not in "".join(log), "".join(log)


def await_listener(port: int) -> None:
    """Wait for the first worker: uvicorn binds the port before, and says no more."""
    end = time.monotonic() + SECONDS
    while True:
        try:
            socket.create_connection(("127.0.0.1", port)).close()
        except ConnectionRefusedError:
            assert time.monotonic() < end, "no worker listens"
            time.sleep(0.05)
        else:
            return


@pytest.fixture(scope="module")
def port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    target = tmp_path_factory.mktemp("workers") / "workers_app.py"
    target.write_text(SERVER, encoding="utf-8")
    with running(target, 2) as number:
        yield number


async def ask(
    connection: Connection,
    message: Mapping[str, Any],
    headers: Mapping[str, str] | None = None,
) -> Any:
    """Send a legacy request over a connection, and return the result."""
    body = json.dumps(message).encode()
    named = {"mcp-protocol-version": LEGACY, **(headers or {})}
    await connection.send(whole(body, named))
    reply = await connection.reply()
    assert reply.status == 200, reply
    return json.loads(reply.body)["result"]


async def pid_of(connection: Connection, session: Mapping[str, str]) -> int:
    result = await ask(connection, legacy("tools/call", {"name": "pid"}), session)
    number: int = result["structuredContent"]["result"]
    return number


async def open_session(connection: Connection) -> dict[str, str]:
    await connection.send(whole(json.dumps(initialize()).encode()))
    reply = await connection.reply()
    return {"mcp-session-id": reply.headers["mcp-session-id"]}


@asynccontextmanager
async def held(connection: Connection) -> AsyncIterator[None]:
    """Keep the worker of a connection busy, so that it takes no other one."""
    calling: asyncio.Future[asyncio.StreamWriter] = asyncio.Future()

    def answer(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        calling.set_result(writer)

    line = await asyncio.start_server(answer, "127.0.0.1", 0)
    port = line.sockets[0].getsockname()[1]
    call = legacy("tools/call", {"name": "hold", "arguments": {"port": port}})
    asked = asyncio.ensure_future(ask(connection, call))
    writer = await calling
    try:
        yield
    finally:
        writer.close()
        await asked
        line.close()


@asynccontextmanager
async def both(port: int) -> AsyncIterator[tuple[Connection, Connection]]:
    """Open a connection to each of the two workers."""
    async with AsyncExitStack() as stack:
        first = await stack.enter_async_context(connected(port))
        async with held(first):
            second = await stack.enter_async_context(connected(port))
            # It is taken by the other worker before the first one is free.
            await ask(second, legacy("ping"))
        yield first, second


async def test_a_session_of_one_worker_is_served_by_the_other(port: int) -> None:
    """SES-06. Ours: `mcpkit run` gives its workers one key."""
    async with both(port) as workers:
        for opener in workers:
            session = await open_session(opener)
            pids = {await pid_of(connection, session) for connection in workers}
            assert len(pids) == 2


async def test_a_session_is_served_over_every_new_connection(port: int) -> None:
    """SES-06."""
    async with connected(port) as connection:
        session = await open_session(connection)
    for _ in range(20):
        async with connected(port) as connection:
            assert await pid_of(connection, session)


async def test_a_cursor_of_one_worker_is_served_by_the_other(port: int) -> None:
    """Ours: cursors are the same in every process."""
    listing = legacy("tools/list", {})
    async with both(port) as workers:
        pages = [await ask(connection, listing) for connection in workers]
        cursors = [page["nextCursor"] for page in pages]
        following = [
            await ask(connection, legacy("tools/list", {"cursor": cursor}))
            for connection in workers
            for cursor in cursors
        ]
    assert [tool["name"] for page in pages for tool in page["tools"]] == ["pid"] * 2
    assert [page["tools"][0]["name"] for page in following] == ["hold"] * 4
    assert len(set(cursors)) == 1


async def test_modern_requests_are_served_by_every_worker(port: int) -> None:
    """SES-06. Spec 2026-07-28: requests stand alone."""
    message, headers = request("2026-07-28", "tools/call", {"name": "pid"})
    assert message == modern("tools/call", {"name": "pid"})
    async with both(port) as workers:
        results = [await ask(connection, message, headers) for connection in workers]
    assert len({result["structuredContent"] for result in results}) == 2
