"""Servers that are asked to stop while streams are open."""

import asyncio
import json
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Final

import httpx
import pytest
from fastapi import FastAPI

from mcpkit import App
from mcpkit.server import SECRET_KEY
from tests.http.bookshop import bookshop
from tests.http.client import JSON_HEADERS, Json, headers_of, initialize, open_session
from tests.http.serving import connected, head, served
from tests.http.streaming import (
    PATIENCE,
    acknowledged,
    completed,
    in_session,
    lifespan,
    listen,
    stream,
)
from tests.test_shutdown import Running, python

SERVED: Final = """
import os
from mcpkit import App

class Named(App):
    async def __call__(self, scope, receive, send):
        async def send_named(message):
            if message["type"] == "http.response.start":
                message["headers"].append((b"x-pid", b"%d" % os.getpid()))
            await send(message)

        await super().__call__(scope, receive, send_named)

app = Named("bookshop", version="1.0.0")

@app.tool
async def tell() -> str:
    return ""
"""

LISTENING: Final = r"running on (?:http://|socket \(')127\.0\.0\.1(?::|', )(\d+)"
"""What uvicorn says of where it listens, or of a socket that it was given."""

PROMPTLY: Final = 5
"""Seconds in which a server stops that is asked to, on a machine that is busy."""

UVICORN: Final = ("-m", "uvicorn", "served:app")
MCPKIT: Final = (str(Path(sys.executable).with_name("mcpkit")), "run", "served.py")

WAYS: Final = [
    pytest.param(UVICORN, 1, id="uvicorn"),
    pytest.param((*UVICORN, "--workers", "2"), 2, id="uvicorn with workers"),
    pytest.param((*UVICORN, "--reload"), 1, id="uvicorn with reload"),
    pytest.param(MCPKIT, 1, id="mcpkit"),
    pytest.param((*MCPKIT, "--workers", "2"), 2, id="mcpkit with workers"),
    pytest.param((*MCPKIT, "--reload"), 1, id="mcpkit with reload"),
]
ASKED: Final = [
    pytest.param(signal.SIGTERM, id="SIGTERM"),
    pytest.param(signal.SIGINT, id="SIGINT"),
]
LISTEN: Final = listen(toolsListChanged=True)
ACKNOWLEDGED: Final = acknowledged(toolsListChanged=True)


@asynccontextmanager
async def running(
    folder: Path, command: tuple[str, ...], workers: int = 1
) -> AsyncIterator[tuple[Running, str]]:
    """Run a server, and yield it and the URL of its endpoint."""
    (folder / "served.py").write_text(SERVED)
    async with python(folder, *command, "--port", "0") as process:
        (port,) = await process.says(LISTENING)
        await process.says("Application startup complete", workers)
        yield process, f"http://127.0.0.1:{port}/mcp"


async def exit_code(
    folder: Path, command: tuple[str, ...], workers: int, asked: signal.Signals
) -> int:
    """Return the exit code of a server that was asked to stop and had no streams."""
    folder = folder / "plain"
    folder.mkdir()
    async with running(folder, command, workers) as (process, _):
        process.process.send_signal(asked)
        return await process.ends()


def messages(lines: str) -> list[Json]:
    return [
        json.loads(line.removeprefix("data: "))
        for line in lines.splitlines()
        if line.startswith("data: {")
    ]


@pytest.mark.parametrize("asked", ASKED)
@pytest.mark.parametrize(("command", "workers"), WAYS)
async def test_open_streams_end_and_so_does_the_server(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    command: tuple[str, ...],
    workers: int,
    asked: signal.Signals,
) -> None:
    """Spec 2026-07-28, basic/patterns/subscriptions: Graceful Closure."""
    monkeypatch.setenv(SECRET_KEY, "k" * 32)
    plain = asyncio.create_task(exit_code(tmp_path, command, workers, asked))
    async with (
        running(tmp_path, command, workers) as (process, url),
        httpx.AsyncClient(timeout=PATIENCE) as client,
        AsyncExitStack() as stack,
    ):
        opening = await client.post(url, json=initialize(), headers=JSON_HEADERS)
        session = in_session(opening.headers["mcp-session-id"])
        modern: list[tuple[AsyncIterator[str], str]] = []
        legacy: list[tuple[AsyncIterator[str], str]] = []
        for verb, body, headers, opened in (
            ("POST", LISTEN, headers_of(LISTEN), modern),
            ("GET", None, {**session, "accept": "text/event-stream"}, legacy),
        ):
            pids = set[str]()
            while len(pids) < workers:
                reply = await stack.enter_async_context(
                    client.stream(verb, url, json=body, headers=headers)
                )
                assert reply.status_code == 200
                chunks = reply.aiter_text()
                opened.append((chunks, await anext(chunks)))
                pids.add(reply.headers["x-pid"])
        process.process.send_signal(asked)
        async with asyncio.timeout(PROMPTLY):
            for chunks, first in modern:
                told = messages("".join([first, *[text async for text in chunks]]))
                assert told == [ACKNOWLEDGED, completed()]
            for chunks, _ in legacy:
                assert [text async for text in chunks] == []
            ended = await process.ends()
    assert "Traceback" not in process.said
    assert ended == await plain


@pytest.mark.parametrize("has_others", [False, True], ids=["alone", "with others"])
async def test_a_stream_that_comes_after_the_signal_ends_too(
    tmp_path: Path, *, has_others: bool
) -> None:
    """Ours: its request was on its way when the signal came."""
    async with (
        running(tmp_path, UVICORN) as (process, url),
        httpx.AsyncClient(timeout=PATIENCE) as client,
        AsyncExitStack() as stack,
        connected(int(url.split(":")[2].split("/")[0])) as late,
    ):
        if has_others:
            other = await stack.enter_async_context(
                client.stream("POST", url, json=LISTEN, headers=headers_of(LISTEN))
            )
            assert other.status_code == 200
        body = json.dumps(LISTEN).encode()
        expects = {"expect": "100-continue", "content-length": str(len(body))}
        await late.send(head(headers={**headers_of(LISTEN), **expects}))
        # So the app has begun to read the body.
        await late.reader.readuntil(b"100 Continue\r\n\r\n")
        process.process.send_signal(signal.SIGTERM)
        await process.says("Shutting down")
        async with asyncio.timeout(PROMPTLY):
            await late.send(body)
            rest = (await late.reader.read()).decode()
            assert messages(rest) == [ACKNOWLEDGED, completed()]
            if has_others:
                assert messages((await other.aread()).decode())[-1] == completed()
            await process.ends()
    assert "Traceback" not in process.said


async def test_a_server_that_is_stopped_by_itself_needs_a_closed_app() -> None:
    """Ours."""
    app = bookshop()
    token = await open_session(app)
    with served(app, "h11") as port:
        url = f"http://127.0.0.1:{port}/mcp"
        accept = {"accept": "text/event-stream"}
        async with (
            httpx.AsyncClient(timeout=PATIENCE) as client,
            client.stream(
                "POST", url, json=LISTEN, headers=headers_of(LISTEN)
            ) as modern,
            client.stream(
                "GET", url, headers={**in_session(token), **accept}
            ) as legacy,
        ):
            app.close()
            async with asyncio.timeout(PROMPTLY):
                told = messages((await modern.aread()).decode())
                assert told == [ACKNOWLEDGED, completed()]
                assert messages((await legacy.aread()).decode()) == []
    assert len(app.subscriptions) == 0


def embedded(app: App) -> FastAPI:
    host = FastAPI()
    host.include_router(app.router)
    return host


@pytest.mark.parametrize("is_embedded", [False, True], ids=["alone", "in a host"])
async def test_the_end_of_the_lifespan_ends_the_streams(*, is_embedded: bool) -> None:
    """Ours: a server may end the lifespan before it waits for what is open."""
    app = bookshop()
    host = embedded(app) if is_embedded else app
    token = await open_session(app)
    for _ in range(2):
        async with AsyncExitStack() as stack:
            async with lifespan(host):
                modern = await stack.enter_async_context(stream(host, LISTEN))
                legacy = await stack.enter_async_context(
                    stream(host, None, in_session(token))
                )
                assert await modern.message() == ACKNOWLEDGED
                assert (await legacy.event()).data is None
            assert await modern.rest() == [completed()]
            assert await legacy.rest() == []
