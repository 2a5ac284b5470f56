"""A request whose handler has something to say before its result."""

import asyncio
import json
import tracemalloc
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Annotated, Any, Final

import pytest
from fastapi import Depends, HTTPException, Response

from mcpkit import App, Context, ProtocolError, ToolError, exchange, running
from mcpkit.protocol.era import LOG_LEVEL, LOG_LEVELS
from tests.http.client import (
    LEGACY,
    MODERN,
    Json,
    legacy,
    modern,
    open_session,
)
from tests.http.serving import HTTPS, Connection, Http, connected, served, whole
from tests.http.streams import WAYS, Client, events

every_way = pytest.mark.parametrize("serve", WAYS.values(), ids=WAYS.keys())

TOKEN: Final = {"progressToken": "t"}
TEXTS: Final = ["a\nb", "a\r\nb", "a\rb", "a\u2028b", "a\u2029b", "a\u0085b", "🎼 é"]


def call(
    name: str,
    arguments: Mapping[str, Any] | None = None,
    meta: Mapping[str, Any] | None = None,
    request_id: Any = 1,
) -> Json:
    """Build a modern call of a tool."""
    params = {"name": name, "arguments": arguments or {}}
    message = modern("tools/call", params, request_id=request_id)
    message["params"]["_meta"] |= meta or {}
    return message


def progress(done: float, token: Any = TOKEN["progressToken"], **more: Any) -> Json:
    """Build the notification of progress that a test expects."""
    params = {"progressToken": token, "progress": done, **more}
    return {"jsonrpc": "2.0", "method": "notifications/progress", "params": params}


def logged(level: str, data: Any = "x", **more: Any) -> Json:
    """Build the notification of a log message that a test expects."""
    params = {"level": level, **more, "data": data}
    return {"jsonrpc": "2.0", "method": "notifications/message", "params": params}


def answer(text: str, request_id: Any = 1, *, is_error: bool = False) -> Json:
    """Build what a response says of a result that is a text."""
    content = [{"type": "text", "text": text}]
    return {"id": request_id, "content": content, "isError": is_error}


def told(message: Any) -> Any:
    """Return what a response says, without what every result has."""
    result = message["result"]
    content, is_error = result["content"], result["isError"]
    return {"id": message["id"], "content": content, "isError": is_error}


def reporter(**options: Any) -> App:
    """Build an app whose tool reports what it is told to."""
    app = App("reporter", **{"logging": True, **options})

    @app.tool
    async def report(ctx: Context, steps: list[Any]) -> str:
        for kind, *arguments in steps:
            await (ctx.progress if kind == "progress" else ctx.log)(*arguments)
        return "done"

    return app


LEVELS: Final = [["log", level, "x"] for level in LOG_LEVELS]
TOKENS: Final[list[Any]] = [0, "", -1, 2**63, "é"]
NO_TOKENS: Final[list[Any]] = [None, True, 1.5, [1], {}]
STEPS: Final = [["progress", 1, 3, "first"], ["log", "warning", {"a": [None]}]]


@pytest.mark.parametrize(
    ("steps", "meta", "heard"),
    [
        pytest.param([], TOKEN, [], id="says nothing"),
        pytest.param(STEPS, {}, [], id="asked for neither"),
        pytest.param(
            STEPS,
            {**TOKEN, LOG_LEVEL: "debug"},
            [progress(1, total=3, message="first"), logged("warning", {"a": [None]})],
            id="asked for both",
        ),
        *(
            pytest.param(
                [["progress", 0.5]], {"progressToken": token}, [progress(0.5, token)],
                id=f"token {token!r}",
            )
            for token in TOKENS
        ),
        *(
            pytest.param(
                [["progress", 1]], {"progressToken": token}, [],
                id=f"no token {token!r}",
            )
            for token in NO_TOKENS
        ),
        pytest.param(
            [["progress", done] for done in (1, 1, 0.5, -1, 2, 2.5, 2.5)],
            TOKEN,
            [progress(1), progress(2), progress(2.5)],
            id="does not increase",
        ),
        pytest.param(LEVELS, {}, [], id="no level"),
        pytest.param(
            LEVELS,
            {LOG_LEVEL: "warning"},
            [logged(level) for level in LOG_LEVELS[LOG_LEVELS.index("warning") :]],
            id="from warning on",
        ),
        pytest.param(
            LEVELS,
            {LOG_LEVEL: "debug"},
            [logged(level) for level in LOG_LEVELS],
            id="from debug on",
        ),
    ],
)  # fmt: skip
async def test_a_client_hears_what_it_asked_for_and_then_the_response(
    steps: list[Any], meta: Json, heard: list[Json]
) -> None:
    """STR-10, SES-09. Spec 2026-07-28, basic/patterns/progress, server/utilities."""
    client = await Client(reporter()).ask(call("report", {"steps": steps}, meta))
    *notifications, response = client.messages
    assert notifications == heard
    assert told(response) == answer("done")
    assert client.is_stream == bool(heard)


async def test_an_app_without_logging_sends_no_log_message() -> None:
    message = call("report", {"steps": STEPS}, {**TOKEN, LOG_LEVEL: "debug"})
    client = await Client(reporter(logging=False)).ask(message)
    assert client.messages[:-1] == [progress(1, total=3, message="first")]


@pytest.mark.parametrize("level", ["WARN", "Warning", 5, "", None])
async def test_a_level_that_is_none_is_refused_before_anything_runs(
    level: Any,
) -> None:
    """STR-10. Spec 2026-07-28, server/utilities/logging."""
    message = call("report", {"steps": STEPS}, {**TOKEN, LOG_LEVEL: level})
    client = await Client(reporter()).ask(message)
    assert client.status == 400
    assert json.loads(client.body)["error"]["code"] == -32602


@every_way
async def test_a_stream_has_its_headers_and_one_line_of_data_an_event(
    serve: Callable[[App], Any],
) -> None:
    """Spec 2026-07-28, basic/transports/streamable-http: Receiving Messages."""
    client = Client(serve(reporter()))
    message = call("report", {"steps": STEPS}, {**TOKEN, LOG_LEVEL: "info"})
    await client.ask(message)
    assert client.headers == {
        "content-type": "text/event-stream",
        "cache-control": "no-cache, no-transform",
        "x-accel-buffering": "no",
    }
    response = client.messages[-1]
    assert client.body == b"".join(
        b"data: %b\n\n" % json.dumps(sent, separators=(",", ":")).encode()
        for sent in (
            progress(1, total=3, message="first"),
            logged("warning", {"a": [None]}),
            response,
        )
    )
    assert told(response) == answer("done")


async def test_what_is_sent_is_on_one_line_and_comes_back_as_it_was() -> None:
    """STR-12."""
    app = reporter()

    @app.tool
    async def echo(ctx: Context, text: str, times: int) -> str:
        await ctx.log("info", text * times)
        return text * times

    for text, times in [*((text, 1) for text in TEXTS), ("é\u2028\n", 1_000_000)]:
        message = call("echo", {"text": text, "times": times}, {LOG_LEVEL: "info"})
        notification, response = (await Client(app).ask(message)).messages
        assert notification == logged("info", text * times)
        assert told(response) == answer(text * times)


@pytest.mark.parametrize("accept", ["application/json", "application/json, text/html"])
async def test_a_client_that_takes_no_stream_gets_the_response_alone(
    accept: str,
) -> None:
    """STR-10. Ours: nothing that the handler says is an error."""
    client = Client(reporter())
    message = call("report", {"steps": STEPS}, {**TOKEN, LOG_LEVEL: "debug"})
    await client.ask(message, {"accept": accept})
    assert not client.is_stream
    assert [told(sent) for sent in client.messages] == [answer("done")]


@pytest.mark.parametrize("accept", ["*/*", "text/event-stream;q=0.1, application/json"])
async def test_a_client_that_takes_anything_takes_a_stream(accept: str) -> None:
    client = Client(reporter())
    await client.ask(call("report", {"steps": STEPS}, TOKEN), {"accept": accept})
    assert client.is_stream


@pytest.mark.parametrize(
    ("step", "fault"),
    [
        (["progress", float("nan")], "ValueError: progress is finite, not nan of None"),
        (["progress", 1, float("inf")], "ValueError: progress is finite, not 1 of inf"),
        (["log", "loud", "x"], "ValueError: a level is one of debug, info, "),
    ],
)
@pytest.mark.parametrize("meta", [{}, {**TOKEN, LOG_LEVEL: "debug"}])
async def test_what_can_not_be_reported_is_an_error_whoever_listens(
    step: list[Any], fault: str, meta: Json
) -> None:
    app = App("reporter", logging=True, debug=True)

    @app.tool
    async def report(ctx: Context) -> None:
        await getattr(ctx, step[0])(*step[1:])

    [response] = (await Client(app).ask(call("report", {}, meta))).messages
    assert response["result"]["isError"]
    assert fault in response["result"]["content"][0]["text"]


async def test_a_log_message_without_a_json_form_begins_no_stream() -> None:
    app = App("reporter", logging=True, debug=True)

    @app.tool
    async def report(ctx: Context) -> None:
        await ctx.log("info", object())

    client = await Client(app).ask(call("report", {}, {LOG_LEVEL: "info"}))
    assert not client.is_stream
    assert client.messages[0]["result"]["isError"]


async def test_a_thread_reports_too() -> None:
    app = App("reporter")

    @app.tool
    def report(ctx: Context) -> str:
        for done in (1, 2):
            ctx.wait(ctx.progress(done))
        return "done"

    client = await Client(app).ask(call("report", {}, TOKEN))
    assert client.messages[:-1] == [progress(1), progress(2)]
    assert told(client.messages[-1]) == answer("done")


async def test_a_legacy_client_without_a_stream_of_its_own_hears_of_its_request() -> (
    None
):
    """SES-09. Spec 2025-11-25, basic/transports: Sending Messages to the Server."""
    app = reporter()
    arguments = {"name": "report", "arguments": {"steps": STEPS}, "_meta": TOKEN}
    message = legacy("tools/call", arguments)
    headers = {"mcp-protocol-version": LEGACY}
    client = await Client(app).ask(message, headers)
    assert client.messages[:-1] == [
        progress(1, total=3, message="first"),
        logged("warning", {"a": [None]}),
    ]
    headers["mcp-session-id"] = await open_session(app)
    client = await Client(app).ask(message, headers)
    sent = [
        json.loads(line.removeprefix("data: "))
        for line in client.body.decode().split("\n")
        if line.startswith("data: {")
    ]
    assert sent[:-1] == [
        progress(1, total=3, message="first"),
        logged("warning", {"a": [None]}),
    ]
    assert told(sent[-1]) == answer("done")


async def test_who_speaks_first_is_heard_first() -> None:
    app = App("reporter")

    @app.tool
    async def report(ctx: Context) -> str:
        await asyncio.gather(*(ctx.progress(done) for done in range(1, 9)))
        return "done"

    client = Client(app)
    client.reads.clear()
    asking = asyncio.create_task(client.ask(call("report", {}, TOKEN)))
    asyncio.get_running_loop().call_later(0, client.reads.set)
    await asking
    assert client.messages[:-1] == [progress(done) for done in range(1, 9)]


# What fails when the stream has begun


def fails(app: App, error: BaseException) -> None:
    @app.tool
    async def x(ctx: Context) -> str:
        await ctx.progress(1)
        raise error


def can_not_be_sent(app: App) -> None:
    @app.tool(output_schema={"type": "object"})
    async def x(ctx: Context) -> Any:
        await ctx.progress(1)
        return {"value": object()}


def fails_in_the_clean_up(app: App) -> None:
    async def session() -> AsyncIterator[None]:
        yield
        raise HTTPException(409, "taken", headers={"retry-after": "1"})

    @app.tool
    async def x(
        ctx: Context, _: Annotated[None, Depends(session, scope="function")]
    ) -> str:
        await ctx.progress(1)
        return "done"


@every_way
@pytest.mark.parametrize(
    ("build", "last"),
    [
        (lambda app: fails(app, ToolError("Sold out.")), "Sold out."),
        (lambda app: fails(app, ZeroDivisionError("secret")), "Tool x failed"),
        (lambda app: fails(app, SystemExit()), "Tool x failed"),
        (lambda app: fails(app, asyncio.CancelledError()), "Tool x failed"),
        (can_not_be_sent, "Tool x failed"),
        (
            lambda app: fails(app, ProtocolError(-32602, "No.", data={"a": 1})),
            {"code": -32602, "message": "No.", "data": {"a": 1}},
        ),
        (
            lambda app: fails(app, ProtocolError(-32602, "No.", data=object())),
            {"code": -32602, "message": "No."},
        ),
        (fails_in_the_clean_up, {"code": -32600, "message": "taken"}),
    ],
    ids=[
        "ToolError",
        "Exception",
        "SystemExit",
        "CancelledError",
        "result",
        "ProtocolError",
        "ProtocolError with data",
        "HTTPError",
    ],
)
async def test_a_stream_whose_handler_fails_ends_with_that_as_its_response(
    build: Callable[[App], None], last: Any, serve: Callable[[App], Any]
) -> None:
    """STR-13."""
    app = App("reporter")
    build(app)
    client = await Client(serve(app)).ask(call("x", {}, TOKEN, request_id="7"))
    first, response = client.messages
    assert first == progress(1)
    if isinstance(last, str):
        assert told(response) == answer(last, "7", is_error=True)
    else:
        assert response == {"jsonrpc": "2.0", "id": "7", "error": last}


async def test_a_resource_that_fails_ends_its_stream_with_an_error() -> None:
    """STR-13."""
    app = App("reporter")

    @app.resource("a://b")
    async def b(ctx: Context) -> str:
        await ctx.progress(1)
        raise ZeroDivisionError

    message = modern("resources/read", {"uri": "a://b"}, request_id=0)
    message["params"]["_meta"] |= TOKEN
    client = await Client(app).ask(message)
    error = {"code": -32603, "message": "Internal error"}
    assert client.messages == [
        progress(1),
        {"jsonrpc": "2.0", "id": 0, "error": error},
    ]


# A context that outlives its request


@pytest.mark.parametrize("begins", [True, False])
@every_way
async def test_a_context_says_nothing_once_there_is_a_response(
    serve: Callable[[App], Any],
    begins: bool,  # noqa: FBT001  # a column of the table
) -> None:
    """CTX-04."""
    app = App("reporter", logging=True)
    kept: list[Context] = []

    @app.tool
    async def keep(ctx: Context) -> str:
        kept.append(ctx)
        if begins:
            await ctx.progress(1)
        return "kept"

    client = await Client(serve(app)).ask(
        call("keep", {}, {**TOKEN, LOG_LEVEL: "info"})
    )
    before = list(client.sent)
    assert client.is_stream == begins
    [ctx] = kept
    await ctx.progress(2)
    await ctx.log("info", "x")
    await ctx.close_stream()
    await asyncio.to_thread(asyncio.run, ctx.progress(3))
    assert client.sent == before


async def test_a_task_that_outlives_its_request_says_nothing_and_does_not_fail() -> (
    None
):
    """CTX-04."""
    app = App("reporter")
    go = asyncio.Event()
    tasks: list[asyncio.Task[None]] = []

    @app.tool
    async def begin(ctx: Context) -> str:
        async def later() -> None:
            await go.wait()
            await ctx.progress(1)

        tasks.append(asyncio.create_task(later()))
        return "begun"

    client = await Client(app).ask(call("begin", {}, TOKEN))
    go.set()
    await tasks[0]
    assert [told(message) for message in client.messages] == [answer("begun")]


# Quiet requests


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have a quiet request speak up at once, and all the time."""
    monkeypatch.setattr(running, "WATCH_AFTER", 0)
    monkeypatch.setattr(exchange, "KEEP_ALIVE", 0)


def waiting() -> tuple[App, asyncio.Event]:
    """Build an app whose tools wait for an event, and return both."""
    app = App("waiting")
    go = asyncio.Event()

    @app.tool
    async def wait() -> str:
        await go.wait()
        return "done"

    async def session() -> str:
        await go.wait()
        return "done"

    @app.tool
    async def depend(opened: Annotated[str, Depends(session)]) -> str:
        return opened

    return app, go


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("name", ["wait", "depend"])
@every_way
async def test_a_quiet_request_becomes_a_stream_of_comments_and_its_response(
    serve: Callable[[App], Any], name: str
) -> None:
    """Spec 2026-07-28, basic/transports/streamable-http: Receiving Messages."""
    app, go = waiting()
    client = Client(serve(app))
    asking = asyncio.create_task(client.ask(call(name)))
    await client.until(lambda client: client.body.count(b":\n") >= 3)
    assert client.body.replace(b":\n", b"") == b""
    go.set()
    await asking
    assert client.is_stream
    assert [told(message) for message in client.messages] == [answer("done")]
    before = list(client.sent)
    # As often as a comment came before, and more.
    for _ in range(20):
        await asyncio.sleep(0)
    assert client.sent == before


@pytest.mark.usefixtures("impatient")
async def test_a_quiet_request_of_a_client_that_takes_no_stream_stays_quiet() -> None:
    app, go = waiting()
    client = Client(app)
    message, headers = call("wait"), {"accept": "application/json"}
    asking = asyncio.create_task(client.ask(message, headers))
    other = Client(app)
    others = asyncio.create_task(other.ask(call("wait")))
    await other.until(lambda other: other.body.count(b":\n") >= 3)
    assert client.sent == []
    go.set()
    await asyncio.gather(asking, others)
    assert not client.is_stream


@pytest.mark.usefixtures("impatient")
async def test_a_response_waits_for_a_stream_that_is_about_to_begin() -> None:
    app, go = waiting()
    client = Client(app)
    client.reads.clear()
    asking = asyncio.create_task(client.ask(call("wait")))
    begun = asyncio.Event()
    send = client._send  # noqa: SLF001  # to see that it was begun

    async def noted(event: Any) -> None:
        begun.set()
        await send(event)

    client._send = noted  # type: ignore[method-assign]  # noqa: SLF001
    await begun.wait()
    go.set()
    # The handler has its turn, and the response is made.
    await asyncio.sleep(0)
    client.reads.set()
    await asking
    assert client.is_stream
    assert [told(message) for message in client.messages] == [answer("done")]


def test_a_client_hears_something_every_fifteen_seconds() -> None:
    """Ours."""
    assert exchange.KEEP_ALIVE == 15


# Clients that read slowly


async def test_a_client_that_does_not_read_slows_its_handler_and_no_other() -> None:
    """SES-10."""
    app = reporter()
    said: list[int] = []

    @app.tool
    async def count(ctx: Context) -> str:
        for number in range(1, 4):
            await ctx.progress(number)
            said.append(number)
        return "done"

    slow = Client(app)
    slow.reads.clear()
    asking = asyncio.create_task(slow.ask(call("count", {}, TOKEN)))
    quick = await Client(app).ask(call("report", {"steps": STEPS}, TOKEN))
    assert told(quick.messages[-1]) == answer("done")
    assert said == []
    slow.reads.set()
    await asking
    assert said == [1, 2, 3]
    assert slow.messages[:-1] == [progress(number) for number in said]


LINES: Final = 800
LINE: Final = "x" * 65_536


def flooding() -> App:
    """Build an app that logs more than any buffer holds, and tells how far it is."""
    app = App("flooding", logging=True)
    sent: list[int] = []

    @app.tool
    async def flood(ctx: Context) -> str:
        for number in range(LINES):
            await ctx.log("info", [number, LINE])
            sent.append(number)
        return "done"

    @app.tool
    async def count() -> int:
        return len(sent)

    return app


async def read_stream(connection: Connection) -> tuple[str, bytes]:
    """Read a chunked response, and return its head and its body."""
    head = (await connection.reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
    assert "transfer-encoding: chunked" in head
    body = bytearray()
    while size := int(await connection.reader.readuntil(b"\r\n"), 16):
        body += await connection.reader.readexactly(size)
        assert await connection.reader.readexactly(2) == b"\r\n"
    assert await connection.reader.readexactly(2) == b"\r\n"
    return head, bytes(body)


def raw(message: Json) -> bytes:
    """Encode a modern call as an HTTP request."""
    headers = {
        "mcp-protocol-version": MODERN,
        "mcp-method": message["method"],
        "mcp-name": message["params"]["name"],
    }
    return whole(json.dumps(message).encode(), headers)


@pytest.mark.parametrize("http", HTTPS)
@every_way
def test_a_server_holds_little_of_what_a_client_does_not_read(
    http: Http, serve: Callable[[App], Any]
) -> None:
    """SES-10."""

    async def run(port: int) -> None:
        async with connected(port) as slow, connected(port) as other:
            await slow.send(raw(call("flood", {}, {LOG_LEVEL: "info"})))
            counts = [0]
            # It stands still, once the buffers of the connection are full.
            while len(counts) < 40 or len(set(counts[-40:])) > 1:
                await other.send(raw(call("count")))
                reply = await other.reply()
                result = json.loads(reply.body)["result"]
                counts.append(result["structuredContent"])
            assert 0 < counts[-1] < LINES / 2
            assert tracemalloc.get_traced_memory()[1] < 16 * 1024 * 1024
            _, body = await read_stream(slow)
        *lines, response = events(body)
        assert [line["params"]["data"][0] for line in lines] == [*range(LINES)]
        assert told(response) == answer("done")

    tracemalloc.start(1)
    try:
        with served(serve(flooding()), http) as port:
            asyncio.run(run(port))
    finally:
        tracemalloc.stop()


# Over real connections


@pytest.mark.parametrize("http", HTTPS)
@every_way
def test_a_connection_serves_streams_and_plain_responses_in_turn(
    http: Http, serve: Callable[[App], Any]
) -> None:
    async def run(port: int) -> None:
        async with connected(port) as connection:
            for _ in range(3):
                await connection.send(
                    raw(call("report", {"steps": STEPS}, TOKEN)),
                )
                head, body = await read_stream(connection)
                assert head.startswith("http/1.1 200 ok\r\n")
                assert "content-type: text/event-stream\r\n" in head
                first, response = events(body)
                assert first == progress(1, total=3, message="first")
                assert told(response) == answer("done")
                await connection.send(raw(call("report", {"steps": STEPS})))
                reply = await connection.reply()
                assert told(json.loads(reply.body)) == answer("done")

    with served(serve(reporter()), http) as port:
        asyncio.run(run(port))


# What a host has open meanwhile


@pytest.mark.parametrize("way", [name for name in WAYS if "included" in name])
async def test_what_a_host_holds_open_is_open_until_the_stream_has_ended(
    way: str,
) -> None:
    app = App("reporter")
    host = WAYS[way](app)
    seen: list[list[str]] = []

    @app.tool
    async def look(ctx: Context) -> str:
        await ctx.progress(1)
        seen.append(list(host.state.closed))
        return "done"

    client = await Client(host).ask(call("look", {}, TOKEN))
    assert client.is_stream
    assert seen == [[]]
    assert host.state.closed == ["/mcp"]


async def test_a_stream_has_the_headers_that_dependencies_have_set_by_then() -> None:
    app = App("reporter")

    async def sets(response: Response) -> None:
        response.headers["x-shelf"] = "7"

    @app.tool
    async def x(ctx: Context, _: Annotated[None, Depends(sets)]) -> str:
        await ctx.progress(1)
        return "done"

    client = Client(app)
    await client.ask(call("x", {}, TOKEN), {"origin": "http://localhost"})
    assert client.headers["x-shelf"] == "7"
    assert client.headers["access-control-allow-origin"] == "http://localhost"
