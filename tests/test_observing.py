"""Each event is told once of what really happened, and each request has its line."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import pytest

from mcpkit import App, Context, ProtocolError, ResourceNotFoundError, Result, ToolError
from mcpkit.dispatch import dispatch
from mcpkit.telemetry import Event
from tests.calls import EVERY, LEGACY, V_2025_11_25, call, headers_of, request
from tests.rounds import CLIENT, Name, named
from tests.told import TRACE, lines, ran, spoken, stop, told_by
from tests.wire import MODERN

Next = Callable[[], Awaitable[Result]]


async def search(query: str = "") -> str:
    return f"found {query}"


def fail() -> str:
    raise ToolError("a secret")


def crash() -> str:
    raise ValueError("a secret")


def report_failure() -> Result:
    return Result.raw({"content": [], "isError": True})


def report_on_the_wire() -> Result:
    return Result.wire({"content": [], "isError": True})


def refuse(code: int) -> str:
    raise ProtocolError(code, "a secret")


def lose() -> Any:
    return object()


async def ask(ctx: Context) -> str:
    answers = await asyncio.gather(
        ctx.elicit("Who are you?", Name), ctx.elicit("And you?", Name)
    )
    return str(len(answers))


def book(isbn: str) -> str:
    if isbn == "none":
        raise ResourceNotFoundError
    if isbn == "broken":
        raise ValueError("a secret")
    return isbn


def review(title: str) -> str:
    return f"Review {title}"


def shop(**options: Any) -> App:
    app = App("bookshop", **options)
    for tool in (
        search,
        fail,
        crash,
        report_failure,
        report_on_the_wire,
        refuse,
        lose,
        ask,
    ):
        app.add_tool(tool)
    app.add_resource("books://{isbn}", book)
    app.add_prompt(review)
    return app


RUNS: list[tuple[str, str, str, dict[str, Any], str, Any, Any]] = [
    # id, event, method, params, target, its status, the code in each era
    ("a call", "tool.execute", "tools/call", {"name": "search"}, "search", "ok", None),
    (
        "a failure",
        "tool.execute",
        "tools/call",
        {"name": "fail"},
        "fail",
        "error",
        None,
    ),
    (
        "a crash",
        "tool.execute",
        "tools/call",
        {"name": "crash"},
        "crash",
        "error",
        None,
    ),
    ("no JSON", "tool.execute", "tools/call", {"name": "lose"}, "lose", "error", None),
    (
        "a failure in wire form",
        "tool.execute",
        "tools/call",
        {"name": "report_failure"},
        "report_failure",
        "error",
        None,
    ),
    (
        "a failure in a shape of its own",
        "tool.execute",
        "tools/call",
        {"name": "report_on_the_wire"},
        "report_on_the_wire",
        "error",
        None,
    ),
    (
        "arguments that do not fit",
        "tool.execute",
        "tools/call",
        {"name": "search", "arguments": {"query": 5}},
        "search",
        "error",
        None,
    ),
    (
        "an error",
        "tool.execute",
        "tools/call",
        {"name": "refuse", "arguments": {"code": -32000}},
        "refuse",
        "error",
        -32000,
    ),
    (
        "an error that one era does not have",
        "tool.execute",
        "tools/call",
        {"name": "refuse", "arguments": {"code": -32050}},
        "refuse",
        "error",
        {MODERN: -32603, V_2025_11_25: -32050},
    ),
    ("unknown", "tool.execute", "tools/call", {"name": "no"}, "no", "error", -32602),
    (
        "a resource",
        "resource.read",
        "resources/read",
        {"uri": "books://1"},
        "books://1",
        "ok",
        None,
    ),
    (
        "no resource",
        "resource.read",
        "resources/read",
        {"uri": "books://none"},
        "books://none",
        "error",
        {MODERN: -32602, V_2025_11_25: -32002},
    ),
    (
        "a broken resource",
        "resource.read",
        "resources/read",
        {"uri": "books://broken"},
        "books://broken",
        "error",
        -32603,
    ),
    (
        "a prompt",
        "prompt.get",
        "prompts/get",
        {"name": "review", "arguments": {"title": "x"}},
        "review",
        "ok",
        None,
    ),
    (
        "a prompt without its argument",
        "prompt.get",
        "prompts/get",
        {"name": "review"},
        "review",
        "error",
        -32602,
    ),
]


@pytest.mark.parametrize("at", [MODERN, V_2025_11_25])
@pytest.mark.parametrize(
    ("event", "method", "params", "target", "status", "codes"),
    [pytest.param(*row, id=name) for name, *row in RUNS],
)
async def test_what_runs_a_handler_is_told_of_twice_with_the_code_that_is_sent(
    event: str,
    method: str,
    params: dict[str, Any],
    target: str,
    status: str,
    codes: Any,
    at: str,
) -> None:
    app = shop()
    told = told_by(app)
    answer = await call(app, method, at=at, **params)
    code = codes[at] if isinstance(codes, dict) else codes
    assert answer.get("code") == code
    assert told == [
        ran(event, at, target, status, code),
        stop(at, method, target, code),
    ]
    assert "a secret" not in repr(told)


@pytest.mark.parametrize("at", EVERY)
@pytest.mark.parametrize(
    ("method", "code"), [("tools/list", None), ("no/such", -32601), ("ping", None)]
)
async def test_what_runs_no_handler_is_told_of_once(
    method: str, code: int | None, at: str
) -> None:
    app = shop()
    told = told_by(app)
    if method == "ping" and at == MODERN:
        code = -32601
    await dispatch(request(method, at=at), app, headers=headers_of(at))
    await dispatch(request(method, at=at), app, headers=headers_of(at))
    assert told == [stop(at, method, code=code)] * 2


async def test_a_new_session_is_told_of_with_the_version_that_it_has() -> None:
    app = shop()
    told = told_by(app)
    info: Any = {"name": "tests", "version": "1"}
    params = {"protocolVersion": "1999-01-01", "capabilities": {}, "clientInfo": info}
    await call(app, "initialize", at=V_2025_11_25, **params)
    assert told == [stop(V_2025_11_25, "initialize")]


@pytest.mark.parametrize("at", EVERY)
async def test_the_trace_of_a_request_is_told(at: str) -> None:
    """Spec 2026-07-28, basic/index: OpenTelemetry trace context."""
    app = shop()
    told = told_by(app)
    await call(app, "tools/list", at=at, _meta=TRACE)
    await call(app, "tools/list", at=at, _meta={**TRACE, "baggage": 5})
    assert told == [
        stop(at, "tools/list", **TRACE),
        stop(at, "tools/list", **{**TRACE, "baggage": None}),
    ]


@pytest.mark.parametrize("at", LEGACY)
@pytest.mark.parametrize("params", [[1], "x", None, 5], ids=repr)
async def test_a_request_whose_params_are_no_object_is_told_of_too(
    params: Any, at: str
) -> None:
    app = shop(access_log=True)
    told = told_by(app)
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    replied = await dispatch(message, app, headers=headers_of(at))
    assert replied.message["error"]["code"] == -32602  # type: ignore[union-attr]
    assert told == [
        ran("tool.execute", at, None, "error", -32602),
        stop(at, "tools/call", None, -32602),
    ]


async def test_a_question_to_the_client_is_told_with_how_many_there_are() -> None:
    app = shop()
    told = told_by(app)
    asked = await call(app, "tools/call", client=CLIENT, name="ask")
    assert len(asked["inputRequests"]) == 2
    about = {"method": "tools/call", "target": "ask"}
    assert told == [
        ran("tool.execute", MODERN, "ask"),
        ("mrtr.input_required", {**about, "questions": 2, **spoken(MODERN)}),
        stop(MODERN, "tools/call", "ask"),
    ]
    told.clear()
    await call(
        app,
        "tools/call",
        client=CLIENT,
        name="ask",
        requestState=asked["requestState"],
        inputResponses={key: named("Ada") for key in asked["inputRequests"]},
    )
    assert told == [
        ran("tool.execute", MODERN, "ask"),
        stop(MODERN, "tools/call", "ask"),
    ]


async def test_a_state_alone_is_told_as_no_question() -> None:
    app = App("tests")
    told = told_by(app)

    @app.tool
    async def wait() -> Result:
        return Result.input_required(request_state="later")

    await call(app, "tools/call", name="wait")
    about = {"method": "tools/call", "target": "wait"}
    assert told[1] == (
        "mrtr.input_required",
        {**about, "questions": 0, **spoken(MODERN)},
    )


async def test_each_message_of_a_batch_is_told_of() -> None:
    app = shop()
    told = told_by(app)
    at = LEGACY[-1]
    batch = [request("tools/list", at=at), request("ping", at=at)]
    await dispatch(batch, app, headers=headers_of(at))
    assert told == [stop(at, "tools/list"), stop(at, "ping")]


async def test_a_notification_is_told_of_by_nothing() -> None:
    app = shop(access_log=True)
    told = told_by(app)
    message = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    await dispatch(message, app, headers=headers_of(V_2025_11_25))
    assert told == []


async def test_a_handler_that_middleware_did_not_let_run_is_not_told_of() -> None:
    app = shop()
    told = told_by(app)

    @app.middleware
    async def guard(ctx: Context, call_next: Next) -> Result:
        if ctx.principal is None:
            raise ProtocolError(-32000, "Who are you?")
        if ctx.principal == "cached":
            return Result.text("found it before")
        await call_next()
        return Result.error("not that")

    for by in (None, "cached", "ada"):
        await call(app, "tools/call", by=by, name="search")
    assert told == [
        stop(MODERN, "tools/call", "search", -32000),
        stop(MODERN, "tools/call", "search"),
        ran("tool.execute", MODERN, "search", "error"),
        stop(MODERN, "tools/call", "search"),
    ]


async def test_the_duration_of_a_tool_has_no_middleware_in_it() -> None:
    app = shop()
    durations: dict[str, float | None] = {}

    @app.telemetry.listen
    def note(event: Event) -> None:
        durations[event.name] = event.duration

    @app.middleware
    async def measure(_ctx: Context, call_next: Next) -> Result:
        began = time.perf_counter()
        result = await call_next()
        durations["inner"] = time.perf_counter() - began
        return result

    await call(app, "tools/call", name="search")
    by_length = sorted(durations, key=lambda name: durations[name] or 0)
    assert by_length == ["tool.execute", "inner", "request.stop"]


async def test_a_listener_that_fails_fails_no_request(
    caplog: pytest.LogCaptureFixture,
) -> None:
    app = shop()

    @app.telemetry.listen
    def bad(_event: Event) -> None:
        raise SystemExit(3)

    told = told_by(app)
    answer = await call(app, "tools/call", name="search")
    assert answer["content"] == [{"type": "text", "text": "found "}]
    assert len(told) == 2
    assert [record.getMessage() for record in caplog.records] == [
        f"tool.execute: a listener failed: {bad!r}",
        f"request.stop: a listener failed: {bad!r}",
    ]


async def test_what_is_cancelled_from_outside_is_told_of_as_cancelled() -> None:
    app = shop(access_log=True)
    told = told_by(app)
    began = asyncio.Event()

    @app.tool
    async def slow() -> None:
        began.set()
        await asyncio.Event().wait()

    task = asyncio.create_task(dispatch(request("tools/call", name="slow"), app))
    await began.wait()
    task.cancel()
    await asyncio.wait([task])
    about = {"method": "tools/call", "target": "slow", **spoken(MODERN)}
    assert told == [("request.cancelled", about)]


# The log of requests

LINES: list[tuple[str, str, dict[str, Any], str | None, str]] = [
    # method, version, params, caller, the line, with T for the time
    ("tools/list", MODERN, {}, None, f"tools/list - modern/{MODERN} ok T -"),
    (
        "tools/call",
        MODERN,
        {"name": "search"},
        "ada",
        f"tools/call search modern/{MODERN} ok T ada",
    ),
    (
        "tools/call",
        V_2025_11_25,
        {"name": "fail"},
        None,
        f"tools/call fail legacy/{V_2025_11_25} ok T -",
    ),
    (
        "tools/call",
        MODERN,
        {"name": "no such\ntool"},
        "a b",
        rf"tools/call no\x20such\ntool modern/{MODERN} error/-32602 T a\x20b",
    ),
    (
        "resources/read",
        MODERN,
        {"uri": "books://none"},
        None,
        f"resources/read books://none modern/{MODERN} error/-32602 T -",
    ),
    (
        "resources/read",
        V_2025_11_25,
        {"uri": "books://none"},
        None,
        f"resources/read books://none legacy/{V_2025_11_25} error/-32002 T -",
    ),
]


@pytest.mark.parametrize(("method", "at", "params", "by", "line"), LINES)
async def test_each_request_has_a_line_in_the_log(
    method: str,
    at: str,
    params: Mapping[str, Any],
    by: str | None,
    line: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO, "mcpkit.access")
    await call(shop(access_log=True), method, at=at, by=by, **params)
    assert lines(caplog) == [line]


async def test_what_is_cancelled_has_a_line_too(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO, "mcpkit.access")
    await test_what_is_cancelled_from_outside_is_told_of_as_cancelled()
    assert lines(caplog) == [f"tools/call slow modern/{MODERN} cancelled T -"]


@pytest.mark.parametrize("level", [logging.DEBUG, logging.INFO])
async def test_without_the_option_no_line_is_written(
    level: int, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(level, "mcpkit.access")
    app = shop()
    told_by(app)
    await call(app, "tools/call", name="search")
    assert lines(caplog) == []


async def test_where_the_log_is_not_wanted_no_line_is_written(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.WARNING, "mcpkit.access")
    await call(shop(access_log=True), "tools/call", name="search")
    assert lines(caplog) == []
