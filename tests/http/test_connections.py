"""Clients that go away: what they asked for ends, and nothing of them is kept."""

import asyncio
import json
from contextlib import AsyncExitStack
from typing import Any, Final

from mcpkit import App
from tests.http.client import LEGACY, MODERN, request
from tests.http.serving import Connection, connected, served, whole

CALLS: Final = 40


def build_app() -> App:
    """Build an app whose tools wait for one another, and count the tasks there are."""
    app = App("waiting")
    started: list[str] = []
    ended: list[str] = []
    go = asyncio.Event()

    @app.tool
    async def wait(text: str) -> str:
        started.append(text)
        try:
            await go.wait()
        finally:
            ended.append(text)
        return text

    @app.tool
    async def all_started(count: int) -> int:
        while len(started) < count:
            await asyncio.sleep(0)
        return len(asyncio.all_tasks())

    @app.tool
    async def release(tasks: int) -> list[str]:
        go.set()
        while len(asyncio.all_tasks()) > tasks:
            await asyncio.sleep(0)
        return sorted(ended)

    return app


async def ask(connection: Connection, version: str, name: str, arguments: Any) -> None:
    params = {"name": name, "arguments": arguments}
    message, headers = request(version, "tools/call", params)
    await connection.send(whole(json.dumps(message).encode(), headers))


async def result(connection: Connection) -> Any:
    reply = await connection.reply()
    assert reply.status == 200, reply
    return json.loads(reply.body)["result"]["structuredContent"]


async def text(connection: Connection) -> Any:
    reply = await connection.reply()
    return json.loads(reply.body)["result"]["content"][0]["text"]


def test_clients_that_go_away_in_the_middle_of_a_call_leave_nothing_behind() -> None:
    """SES-04, RPC-18. Ours; spec 2025-11-25: a disconnect is no cancellation."""
    app = build_app()
    texts = [f"{number:02}" for number in range(CALLS)]

    async def run(port: int) -> None:
        async with connected(port) as control, AsyncExitStack() as stack:
            await ask(control, MODERN, "all_started", {"count": 0})
            before = await result(control)
            callers = [await stack.enter_async_context(connected(port)) for _ in texts]
            for number, (caller, name) in enumerate(zip(callers, texts, strict=True)):
                version = MODERN if number % 4 < 2 else LEGACY
                await ask(caller, version, "wait", {"text": name})
            await ask(control, MODERN, "all_started", {"count": CALLS})
            assert await result(control) >= before + CALLS
            for gone in callers[::2]:
                gone.writer.transport.abort()
            await ask(control, MODERN, "release", {"tasks": before})
            assert await result(control) == texts
            assert [await text(caller) for caller in callers[1::2]] == texts[1::2]

    with served(app, "h11") as port:
        asyncio.run(run(port))
