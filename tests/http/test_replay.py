"""Responses of a legacy session whose connection has broken, and what comes back."""

import asyncio
import json
import re
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Final

import httpx
import pytest
from anyio import wait_all_tasks_blocked

from mcpkit import App, Context
from mcpkit.protocol.jsonrpc import encode
from tests.http.client import (
    LEGACY_VERSIONS,
    Json,
    call,
    legacy,
    open_session,
    result_of,
    send,
)
from tests.http.serving import HTTPS, Http, connected, served, whole
from tests.http.streaming import (
    PATIENCE,
    Event,
    Stream,
    changed,
    idle,
    in_session,
    request,
    stream,
)

POLLING: Final = "2025-11-25"
OLDER: Final = tuple(name for name in LEGACY_VERSIONS if name != POLLING)
versions = pytest.mark.parametrize("version", LEGACY_VERSIONS)


@dataclass
class Steps:
    """What the handler of a request waits for, and whether it came to its end."""

    request_id: Any = 1
    go: "asyncio.Queue[None]" = field(default_factory=asyncio.Queue)
    ended: asyncio.Event = field(default_factory=asyncio.Event)


def build(*requests: Steps) -> App:
    """Build an app with a tool that reports three times, each when it may."""
    app = App("bookshop", version="1.0.0")
    steps_of = {steps.request_id: steps for steps in requests}

    @app.tool
    async def work(ctx: Context) -> str:
        steps = steps_of[ctx.request_id]
        for number in (1, 2, 3):
            await steps.go.get()
            await ctx.progress(number)
        await steps.go.get()
        steps.ended.set()
        return "done"

    @app.tool
    async def retire(ctx: Context) -> str:
        await ctx.progress(1)
        await ctx.close_stream()
        await steps_of[ctx.request_id].go.get()
        await ctx.progress(2)
        return "done"

    @app.tool
    async def add(a: int, b: int) -> int:
        return a + b

    return app


def run(tool: str, request_id: Any = 1) -> Json:
    meta = {"progressToken": request_id}
    params = {"name": tool, "arguments": {}, "_meta": meta}
    return legacy("tools/call", params, request_id=request_id)


def progress(number: int, token: Any = 1) -> Json:
    params = {"progressToken": token, "progress": number}
    return {"jsonrpc": "2.0", "method": "notifications/progress", "params": params}


def done(request_id: Any = 1) -> Json:
    result = {"content": [{"type": "text", "text": "done"}], "isError": False}
    return {"jsonrpc": "2.0", "id": request_id, "result": result}


@asynccontextmanager
async def working(app: App, steps: Steps, token: str) -> AsyncIterator[Stream]:
    """Begin to work, and yield the stream once there is something in it."""
    steps.go.put_nowait(None)
    async with stream(app, run("work", steps.request_id), in_session(token)) as opened:
        yield opened


def broken(opened: Stream) -> asyncio.Task[None]:
    """Break a connection: its handler goes on, and the app's work with it."""
    return asyncio.ensure_future(opened.close())


async def last_of(opened: Stream, count: int) -> str:
    """Read so many events, and return the id of the last."""
    for _ in range(count):
        event = await opened.event()
    assert event.id is not None
    return event.id


# What a stream has ids for


@versions
async def test_a_stream_of_a_session_has_ids(version: str) -> None:
    """SES-09. Spec 2025-11-25, basic/transports: Resumability and Redelivery."""
    steps = Steps()
    app = build(steps)
    token = await open_session(app, version)
    for _ in range(4):
        steps.go.put_nowait(None)
    async with stream(app, run("work"), in_session(token)) as opened:
        first = None
        if version == POLLING:
            first = await opened.event()
            assert first == Event(None, first.id, retry=1000)
        events = [await opened.event() for _ in range(4)]
        assert await opened.rest() == []
    sent = [progress(number) for number in (1, 2, 3)]
    assert [each.data for each in events] == [*sent, done()]
    ids = [str(each.id).rpartition(".") for each in events]
    assert [int(number) for *_, number in ids] == [1, 2, 3, 4]
    assert len({stream_id for stream_id, *_ in ids}) == 1


async def test_without_a_session_there_is_nothing_to_come_back_to() -> None:
    """Ours."""
    steps = Steps()
    app = build(steps)
    for _ in range(4):
        steps.go.put_nowait(None)
    headers = {"mcp-protocol-version": POLLING}
    async with stream(app, run("work"), headers) as opened:
        events = [await opened.event() for _ in range(4)]
    sent = [progress(number) for number in (1, 2, 3)]
    assert events == [Event(each) for each in (*sent, done())]
    assert len(app.replay) == 0


async def test_what_a_request_reports_is_not_heard_where_its_session_listens() -> None:
    """SES-09. Spec 2025-11-25, basic/transports: Listening for Messages."""
    steps = Steps()
    app = build(steps)
    token = await open_session(app)
    async with stream(app, None, in_session(token)) as heard:
        await heard.event()
        async with working(app, steps, token) as opened:
            await last_of(opened, 2)
            for _ in range(3):
                steps.go.put_nowait(None)
            assert await opened.rest() == [progress(2), progress(3), done()]
        app.notify_list_changed("tools")
        assert await heard.message() == changed("tools")


# Who comes back


@versions
async def test_a_broken_connection_loses_nothing(version: str) -> None:
    """Spec 2025-11-25, basic/transports: Resumability and Redelivery."""
    steps = Steps()
    app = build(steps)
    token = await open_session(app, version)
    async with working(app, steps, token) as opened:
        seen = await last_of(opened, 2 if version == POLLING else 1)
        closing = broken(opened)
        steps.go.put_nowait(None)
        await wait_all_tasks_blocked()
        async with stream(app, None, in_session(token, seen)) as again:
            assert await again.message() == progress(2)
            steps.go.put_nowait(None)
            assert await again.message() == progress(3)
            steps.go.put_nowait(None)
            assert await again.rest() == [done()]
        await closing
    await idle(app)


async def test_a_response_is_kept_for_who_comes_late() -> None:
    """Spec 2025-11-25, basic/transports: Resumability and Redelivery."""
    steps = Steps()
    app = build(steps)
    token = await open_session(app)
    async with working(app, steps, token) as opened:
        seen = await last_of(opened, 2)
        closing = broken(opened)
        for _ in range(3):
            steps.go.put_nowait(None)
        await closing
        assert steps.ended.is_set()
    for _ in range(2):
        async with stream(app, None, in_session(token, seen)) as again:
            assert await again.rest() == [progress(2), progress(3), done()]
    start = seen.replace(".1", ".0")
    async with stream(app, None, in_session(token, start)) as again:
        assert (await again.rest())[0] == progress(1)
    await idle(app)


async def test_a_connection_may_break_again() -> None:
    """Ours."""
    steps = Steps()
    app = build(steps)
    token = await open_session(app)
    async with working(app, steps, token) as opened:
        seen = await last_of(opened, 2)
        closing = broken(opened)
        for number in (2, 3):
            steps.go.put_nowait(None)
            async with stream(app, None, in_session(token, seen)) as again:
                event = await again.event()
                assert event.data == progress(number)
                seen = str(event.id)
        async with stream(app, None, in_session(token, seen)) as again:
            steps.go.put_nowait(None)
            assert await again.rest() == [done()]
        await closing


async def test_who_comes_back_is_sent_the_rest_alone() -> None:
    """Spec 2025-11-25: a message goes to one stream only, also where both are open."""
    steps = Steps()
    app = build(steps)
    token = await open_session(app)
    async with working(app, steps, token) as opened:
        seen = await last_of(opened, 2)
        async with stream(app, None, in_session(token, seen)) as again:
            await wait_all_tasks_blocked()
            for _ in range(3):
                steps.go.put_nowait(None)
            assert await again.rest() == [progress(2), progress(3), done()]
        assert await opened.rest() == []


async def test_several_streams_are_come_back_to_one_by_one() -> None:
    """Spec 2025-11-25, basic/transports: Multiple Connections."""
    steps = [Steps("a"), Steps("b")]
    app = build(*steps)
    token = await open_session(app)
    async with (
        working(app, steps[0], token) as one,
        working(app, steps[1], token) as two,
    ):
        seen = {"a": await last_of(one, 2), "b": await last_of(two, 2)}
        closing = [broken(one), broken(two)]
        for each in steps:
            for _ in range(3):
                each.go.put_nowait(None)
        for name, after in seen.items():
            async with stream(app, None, in_session(token, after)) as again:
                rest = [progress(2, name), progress(3, name), done(name)]
                assert await again.rest() == rest
        await asyncio.gather(*closing)


async def test_a_handler_may_close_its_stream() -> None:
    """Spec 2025-11-25, basic/transports: Sending Messages to the Server."""
    steps = Steps()
    app = build(steps)
    token = await open_session(app)
    async with stream(app, run("retire"), in_session(token)) as opened:
        seen = await last_of(opened, 2)
        assert await opened.event() == Event(None, retry=1000)
        assert await opened.rest() == []
        async with stream(app, None, in_session(token, seen)) as again:
            await wait_all_tasks_blocked()
            steps.go.put_nowait(None)
            assert await again.rest() == [progress(2), done()]
    await idle(app)


@pytest.mark.parametrize("version", OLDER)
async def test_a_client_that_does_not_poll_keeps_its_stream(version: str) -> None:
    """Ours: older revisions know of no stream that a server closes."""
    steps = Steps()
    app = build(steps)
    token = await open_session(app, version)
    async with stream(app, run("retire"), in_session(token)) as opened:
        assert await opened.message() == progress(1)
        steps.go.put_nowait(None)
        assert await opened.rest() == [progress(2), done()]


async def test_streams_of_others_can_not_be_come_back_to() -> None:
    """Ours: it is an id of nobody, and the stream one to listen on."""
    steps = Steps()
    app = build(steps)
    token, other = await open_session(app), await open_session(app)
    async with working(app, steps, token) as opened:
        seen = await last_of(opened, 2)
        async with stream(app, None, in_session(other, seen)) as theirs:
            assert (await theirs.event()).retry == 1000
            for _ in range(3):
                steps.go.put_nowait(None)
            assert await opened.rest() == [progress(2), progress(3), done()]
            app.notify_list_changed("tools")
            assert await theirs.message() == changed("tools")


async def test_a_session_that_ends_takes_its_streams_along() -> None:
    """SES-03. Spec 2025-11-25, basic/transports: Session Management."""
    steps = Steps()
    app = build(steps)
    token = await open_session(app)
    async with working(app, steps, token) as opened:
        seen = await last_of(opened, 2)
        closing = broken(opened)
        async with stream(app, None, in_session(token, seen)) as again:
            assert (await send(app, "DELETE", in_session(token))).status_code == 200
            assert await again.rest() == []
        assert len(app.replay) == 0
        # The handler is not cancelled, and nobody hears of it.
        for _ in range(3):
            steps.go.put_nowait(None)
        await closing
        assert steps.ended.is_set()
    reply = await send(app, "GET", in_session(token, seen))
    assert reply.status_code == 404
    assert len(app.replay) == 0
    await idle(app)


async def test_what_never_waited_is_dropped_with_its_session() -> None:
    """SES-03."""
    steps = Steps()
    app = build(steps)
    token = await open_session(app)
    for _ in range(4):
        steps.go.put_nowait(None)
    async with stream(app, run("work"), in_session(token)) as opened:
        assert (await opened.rest())[-1] == done()
    assert len(app.replay) == 1
    assert (await send(app, "DELETE", in_session(token))).status_code == 200
    assert len(app.replay) == 0


async def test_a_stream_that_is_not_read_keeps_no_other_request_waiting() -> None:
    """SES-10."""
    steps = Steps()
    app = build(steps)
    token = await open_session(app)
    async with working(app, steps, token) as opened:
        await last_of(opened, 2)
        opened.reads.clear()
        steps.go.put_nowait(None)
        await wait_all_tasks_blocked()
        arguments = {"name": "add", "arguments": {"a": 1, "b": 2}}
        message = legacy("tools/call", arguments, request_id=2)
        answer = await request(app, token, message)
        assert answer["result"]["structuredContent"] == {"result": 3}
        other = await call(app, "2026-07-28", "tools/call", arguments)
        assert result_of(other)["structuredContent"] == 3
        opened.reads.set()
        for _ in range(2):
            steps.go.put_nowait(None)
        assert await opened.rest() == [progress(2), progress(3), done()]


@pytest.mark.parametrize("http", HTTPS)
async def test_a_client_comes_back_over_another_connection(http: Http) -> None:
    """Ours: the first is cut in the middle of the stream."""
    app = App("bookshop", version="1.0.0")
    may_go_on = threading.Event()

    @app.tool
    async def work(ctx: Context) -> str:
        await ctx.progress(1)
        await asyncio.to_thread(may_go_on.wait, PATIENCE)
        await ctx.progress(2)
        return "done"

    token = await open_session(app)
    with served(app, http) as port:
        async with connected(port) as connection:
            await connection.send(whole(encode(run("work")), in_session(token)))
            heard = await connection.reader.readuntil(encode(progress(1)))
            connection.writer.transport.abort()
        seen = re.findall(rb"id: (\S+)\n", heard)[-1].decode()
        may_go_on.set()
        async with httpx.AsyncClient(timeout=PATIENCE) as client:
            reply = await client.get(
                f"http://127.0.0.1:{port}/mcp",
                headers={**in_session(token, seen), "accept": "text/event-stream"},
            )
    told = re.findall(r"data: (.*)\n", reply.text)
    assert [json.loads(data) for data in told] == [progress(2), done()]
