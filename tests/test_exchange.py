"""What an HTTP request does while it waits, and what is left of it."""

import asyncio
import gc
from collections.abc import Awaitable, Callable
from typing import Any, Final

import pytest

from mcpkit import App, Context, exchange, running
from mcpkit.protocol.era import CLIENT_CAPABILITIES
from tests.http.client import LEGACY, Json, legacy, open_session
from tests.http.streams import Client
from tests.http.test_streams import TOKEN, answer, call, told


@pytest.fixture
def attentive(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have a client looked after from the start."""
    monkeypatch.setattr(running, "WATCH_AFTER", 0)


def build_app() -> App:
    """Build an app with tools that return at once, wait, report, and do all of it."""
    app = App("tests")

    @app.tool
    async def returns() -> str:
        return "done"

    @app.tool
    async def waits() -> str:
        for _ in range(3):
            await asyncio.sleep(0)
        return "done"

    @app.tool
    async def reports(ctx: Context) -> str:
        await ctx.progress(1)
        return "done"

    @app.tool
    async def waits_and_reports(ctx: Context) -> str:
        await asyncio.sleep(0)
        await ctx.progress(1)
        await asyncio.sleep(0)
        return "done"

    @app.tool
    def in_a_thread() -> str:
        return "done"

    return app


NAMES: Final = ["returns", "waits", "reports", "waits_and_reports", "in_a_thread"]


async def garbage_of(ask: Callable[[], Awaitable[None]]) -> int:
    """Return how many objects 50 requests leave for the garbage collector."""
    for _ in range(5):
        await ask()
    await asyncio.sleep(0)
    gc.collect()
    gc.disable()
    try:
        for _ in range(50):
            await ask()
        await asyncio.sleep(0)
        return gc.collect()
    finally:
        gc.enable()


@pytest.mark.parametrize("name", NAMES)
async def test_nothing_is_left_for_the_garbage_collector(name: str) -> None:
    """SES-04. What refers to itself stays until it comes, however much that is."""
    app = build_app()

    async def ask() -> None:
        client = Client(app)
        await client.ask(call(name, {}, TOKEN))
        assert told(client.messages[-1]) == answer("done")

    assert await garbage_of(ask) < 50


async def test_rounds_of_questions_leave_nothing_for_the_garbage_collector() -> None:
    """Ours: an answer may hold much, and so may the arguments of a call."""
    app = App("tests")

    @app.tool
    async def asks(ctx: Context) -> str:
        (root,) = await ctx.list_roots()
        return root.uri

    async def ask() -> None:
        message = call("asks", meta={CLIENT_CAPABILITIES: {"roots": {}}})
        (asked,) = (await Client(app).ask(message)).messages
        roots = {"roots": [{"uri": "file:///srv"}]}
        message["params"] |= {
            "inputResponses": dict.fromkeys(asked["result"]["inputRequests"], roots),
            "requestState": asked["result"]["requestState"],
        }
        (last,) = (await Client(app).ask(message)).messages
        assert told(last) == answer("file:///srv")

    assert await garbage_of(ask) < 50


@pytest.mark.usefixtures("attentive")
async def test_a_cancelled_request_leaves_nothing_for_the_garbage_collector() -> None:
    app = App("tests")
    asking: list[Client] = []

    @app.tool
    async def waits() -> None:
        asking[-1].gone.set()
        await asyncio.Event().wait()

    async def ask() -> None:
        asking[:] = [Client(app)]
        await asking[0].ask(call("waits"))
        assert asking[0].sent == []

    assert await garbage_of(ask) < 50


@pytest.mark.usefixtures("attentive")
async def test_a_request_that_ends_soon_is_not_looked_after() -> None:
    received: list[Any] = []
    app = build_app()

    async def noting(scope: Any, receive: Any, send: Any) -> None:
        async def note() -> Any:
            received.append(await receive())
            return received[-1]

        await app(scope, note, send)

    await Client(noting).ask(call("returns"))
    await asyncio.sleep(0)
    assert [event["type"] for event in received] == ["http.request"]


@pytest.mark.usefixtures("attentive")
async def test_a_middleware_that_gives_the_body_again_and_again_stops_nothing() -> None:
    """Ours: some middlewares have read it, and give it whoever asks."""
    app = App("tests")
    asked = 0
    enough = asyncio.Event()

    @app.tool
    async def waits() -> str:
        await enough.wait()
        return "done"

    async def repeating(scope: Any, receive: Any, send: Any) -> None:
        event = await receive()

        async def repeat() -> Any:
            nonlocal asked
            asked += 1
            if asked > 5:
                enough.set()
            return event

        await app(scope, repeat, send)

    client = await Client(repeating).ask(call("waits"))
    assert [told(message) for message in client.messages] == [answer("done")]


@pytest.mark.usefixtures("attentive")
async def test_a_comment_that_had_to_wait_does_not_follow_the_response(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(exchange, "KEEP_ALIVE", 0)
    app = App("tests")
    waits = asyncio.Event()

    @app.tool
    async def report(ctx: Context) -> str:
        await asyncio.sleep(0)
        waits.set()
        await ctx.progress(1)
        return "done"

    client = Client(app)
    client.reads.clear()
    asking = asyncio.create_task(client.ask(call("report", {}, TOKEN)))
    await waits.wait()
    # Somebody has something to say, and waits for the handler to have said its own.
    for _ in range(20):
        await asyncio.sleep(0)
    client.reads.set()
    await asking
    before = client.body
    for _ in range(20):
        await asyncio.sleep(0)
    assert client.body == before
    assert told(client.messages[-1]) == answer("done")
    assert len(client.messages) == 2


@pytest.mark.usefixtures("attentive")
@pytest.mark.usefixtures("attentive")
@pytest.mark.parametrize("turns", range(12))
async def test_a_comment_that_comes_too_late_begins_no_stream(
    turns: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whenever the response is made, there is one."""
    monkeypatch.setattr(exchange, "KEEP_ALIVE", 0)
    app = App("tests")

    @app.tool
    async def waits() -> str:
        for _ in range(turns):
            await asyncio.sleep(0)
        return "done"

    client = await Client(app).ask(call("waits"))
    for _ in range(20):
        await asyncio.sleep(0)
    assert told(client.messages[-1]) == answer("done")


async def test_a_stream_that_is_cancelled_as_it_begins_is_none() -> None:
    app = App("tests")
    waits = asyncio.Event()

    @app.tool
    async def report(ctx: Context) -> str:
        waits.set()
        await ctx.progress(1)
        raise NotImplementedError

    client = Client(app)
    client.reads.clear()
    headers = {"mcp-protocol-version": LEGACY}
    params = {"name": "report", "_meta": TOKEN}
    asking = asyncio.create_task(client.ask(legacy("tools/call", params), headers))
    await waits.wait()
    cancelled = {"requestId": 1}
    message: Json = {"jsonrpc": "2.0", "method": "notifications/cancelled"}
    await Client(app).ask({**message, "params": cancelled}, headers)
    for _ in range(5):
        await asyncio.sleep(0)
    client.reads.set()
    await asking
    assert (client.status, client.body) == (202, b"")


# Closing a stream that the client comes back for


def closing(app: App) -> None:
    @app.tool
    async def close(ctx: Context) -> str:
        await ctx.close_stream()
        await ctx.progress(1)
        return "done"


@pytest.mark.parametrize(
    ("version", "has_session", "closes"),
    [
        (LEGACY, True, True),
        (LEGACY, False, False),
        ("2025-06-18", True, False),
        ("2025-03-26", True, False),
    ],
)
async def test_a_stream_is_closed_where_a_client_comes_back_for_the_rest(
    version: str,
    has_session: bool,  # noqa: FBT001  # a column of the table
    closes: bool,  # noqa: FBT001
) -> None:
    """Spec 2025-11-25, basic/transports: Sending Messages to the Server."""
    app = App("tests")
    closing(app)
    headers = {"mcp-protocol-version": version}
    if has_session:
        headers["mcp-session-id"] = await open_session(app, version)
    params = {"name": "close", "_meta": TOKEN}
    client = await Client(app).ask(legacy("tools/call", params), headers)
    assert client.has_ended
    assert client.is_stream
    if closes:
        fields = [line.partition(":")[0] for line in client.body.decode().split("\n")]
        assert fields == ["id", "retry", "data", "", "retry", "", ""]
    else:
        assert client.body.count(b"data: {") == 2


async def test_a_modern_stream_is_not_closed_and_does_not_begin_for_that() -> None:
    app = App("tests")

    @app.tool
    async def close(ctx: Context) -> str:
        await ctx.close_stream()
        return "done"

    client = await Client(app).ask(call("close", {}, TOKEN))
    assert not client.is_stream
    assert told(client.messages[0]) == answer("done")


async def test_a_client_that_takes_no_stream_has_none_to_be_closed() -> None:
    app = App("tests")
    closing(app)
    headers = {"accept": "application/json", "mcp-protocol-version": LEGACY}
    headers["mcp-session-id"] = await open_session(app)
    client = Client(app)
    await client.ask(legacy("tools/call", {"name": "close"}), headers)
    assert not client.is_stream
    assert told(client.messages[0]) == answer("done")
