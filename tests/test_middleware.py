"""Middleware is around the method of each request, and costs nothing when not there."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator
from contextvars import ContextVar
from functools import partial
from typing import Annotated, Any

import httpx
import pytest
from fastapi import Depends, FastAPI

from mcpkit import App, Context, ProtocolError, Result, SetupError, ToolError, dispatch
from mcpkit.protocol.era import LOG_LEVEL
from mcpkit.protocol.jsonrpc import Encoded
from mcpkit.protocol.results import Outcome
from tests.calls import (
    EVERY,
    LEGACY,
    V_2025_11_25,
    call,
    call_tool,
    failed,
    reply,
    request,
    text,
)
from tests.http.client import headers_of, modern, open_session
from tests.http.streaming import (
    acknowledged,
    changed,
    completed,
    idle,
    in_session,
    listen,
    stream,
)
from tests.rounds import CLIENT, Name, form, named
from tests.wire import MODERN

Next = Callable[[], Awaitable[Result]]

INITIALIZE = {
    "protocolVersion": V_2025_11_25,
    "capabilities": {},
    "clientInfo": {"name": "tests", "version": "1"},
}


def shop(**options: Any) -> App:
    app = App("bookshop", version="1.0.0", **options)

    @app.tool
    async def search(query: str = "") -> str:
        return f"found {query}"

    @app.tool
    def broken() -> str:
        raise ToolError("no")

    @app.resource("books://all")
    def books() -> str:
        return "all"

    @app.prompt
    def review(title: str) -> str:
        return f"Review {title}"

    @app.complete("review", "title")
    def titles(value: str) -> list[str]:
        return [value]

    return app


@pytest.fixture
def app() -> App:
    return shop()


def watch(app: App) -> list[tuple[str, str, Any, str]]:
    """Note the era, the method, the caller and the kind of the result."""
    seen: list[tuple[str, str, Any, str]] = []

    @app.middleware
    async def note(ctx: Context, call_next: Next) -> Result:
        result = await call_next()
        seen.append((ctx.era, ctx.method, ctx.principal, result.kind))
        return result

    return seen


METHODS: list[tuple[str, dict[str, Any], tuple[str, ...], str]] = [
    # method, params, in which revisions, the kind of the result
    ("tools/call", {"name": "search"}, EVERY, "text"),
    ("tools/list", {}, EVERY, "tools"),
    ("resources/list", {}, EVERY, "resources"),
    ("resources/templates/list", {}, EVERY, "resource_templates"),
    ("resources/read", {"uri": "books://all"}, EVERY, "resource_read"),
    ("prompts/list", {}, EVERY, "prompts"),
    (
        "prompts/get",
        {"name": "review", "arguments": {"title": "x"}},
        EVERY,
        "prompt_get",
    ),
    (
        "completion/complete",
        {
            "ref": {"type": "ref/prompt", "name": "review"},
            "argument": {"name": "title", "value": "x"},
        },
        EVERY,
        "completion",
    ),
    ("server/discover", {}, (MODERN,), "wire"),
    ("initialize", INITIALIZE, LEGACY, "wire"),
    ("ping", {}, LEGACY, "wire"),
    ("logging/setLevel", {"level": "debug"}, LEGACY, "wire"),
    ("resources/subscribe", {"uri": "books://all"}, LEGACY, "wire"),
    ("resources/unsubscribe", {"uri": "books://all"}, LEGACY, "wire"),
]


@pytest.mark.parametrize(
    ("method", "params", "at", "kind"),
    [
        pytest.param(method, params, at, kind, id=f"{method} {at}")
        for method, params, versions, kind in METHODS
        for at in versions
    ],
)
async def test_middleware_sees_every_method_and_who_calls_it_each_time(
    app: App, method: str, params: dict[str, Any], at: str, kind: str
) -> None:
    seen = watch(app)
    plain = await call(shop(), method, at=at, by="ada", **params)
    for _ in range(2):
        assert await call(app, method, at=at, by="ada", **params) == plain
    era = "modern" if at == MODERN else "legacy"
    assert seen == [(era, method, "ada", kind)] * 2


@pytest.mark.parametrize("at", EVERY)
async def test_middleware_sees_what_does_not_exist_and_what_fails(
    app: App, at: str
) -> None:
    seen: list[tuple[str, Outcome]] = []

    @app.middleware
    async def note(ctx: Context, call_next: Next) -> Result:
        try:
            result = await call_next()
        except ProtocolError as error:
            seen.append((ctx.method, error))
            raise
        seen.append((ctx.method, result))
        return result

    unknown = await dispatch(
        request("no/such", at=at), app, headers=_headers(at), principal=None
    )
    assert unknown.status == (404 if at == MODERN else 200)
    await call(app, "tools/call", at=at, name="nosuch")
    assert await call_tool(app, "broken", at=at) == failed("no")
    codes = [
        (method, outcome.code if isinstance(outcome, ProtocolError) else outcome.kind)
        for method, outcome in seen
    ]
    assert codes == [
        ("no/such", -32601),
        ("tools/call", -32602),
        ("tools/call", "error"),
    ]


def _headers(at: str) -> dict[bytes, bytes] | None:
    return None if at == MODERN else {b"mcp-protocol-version": at.encode()}


async def test_what_is_added_first_is_outermost(app: App) -> None:
    order: list[str] = []

    def ordered(name: str) -> None:
        @app.middleware
        async def around(_ctx: Context, call_next: Next) -> Result:
            order.append(f"{name} before")
            result = await call_next()
            order.append(f"{name} after")
            return result

    ordered("first")
    ordered("second")
    await call_tool(app, "search")
    assert order == ["first before", "second before", "second after", "first after"]


async def test_what_is_added_while_a_request_is_served_is_there_for_the_next(
    app: App,
) -> None:
    seen: list[list[tuple[str, str, Any, str]]] = []

    @app.tool
    async def add() -> None:
        seen.append(watch(app))

    await call_tool(app, "add")
    assert seen == [[]]
    await call_tool(app, "search")
    assert seen == [[("modern", "tools/call", None, "text")]]


REFUSED: list[tuple[str, ProtocolError, str, int, int]] = [
    # id, what is raised, the revision, the code that is sent, the HTTP status
    ("as it is", ProtocolError(-32000, "Who are you?"), MODERN, -32000, 200),
    ("in a legacy one", ProtocolError(-32000, "No"), V_2025_11_25, -32000, 200),
    ("with a status", ProtocolError(-32601, "No"), MODERN, -32601, 404),
    ("with none in legacy", ProtocolError(-32601, "No"), V_2025_11_25, -32601, 200),
    ("of another era", ProtocolError(-32002, "No"), MODERN, -32602, 200),
    ("of its own era", ProtocolError(-32002, "No"), V_2025_11_25, -32002, 200),
    ("reserved", ProtocolError(-32050, "No"), MODERN, -32603, 200),
]


@pytest.mark.parametrize(
    ("error", "at", "code", "status"),
    [pytest.param(*row, id=name) for name, *row in REFUSED],
)
@pytest.mark.parametrize("method", ["tools/list", "tools/call"])
async def test_middleware_may_refuse_a_request(
    method: str, error: ProtocolError, at: str, code: int, status: int
) -> None:
    """Spec 2026-07-28, basic/index: error codes."""
    app = App("tests")

    @app.tool
    async def search() -> None:
        raise NotImplementedError

    @app.middleware
    async def refuse(_ctx: Context, _call_next: Next) -> Result:
        raise error

    replied = await reply(app, method, at=at, name="search")
    assert (replied.message["error"]["code"], replied.status) == (code, status)


async def test_what_else_middleware_raises_is_masked_and_logged(
    app: App, caplog: pytest.LogCaptureFixture
) -> None:
    @app.middleware
    async def crash(_ctx: Context, _call_next: Next) -> Result:
        raise ValueError("a secret")

    assert await call_tool(app, "search") == {
        "code": -32603,
        "message": "Internal error",
    }
    (record,) = caplog.records
    assert (record.levelno, record.getMessage()) == (logging.ERROR, "tools/call failed")
    assert record.exc_info is not None
    assert repr(record.exc_info[1]) == "ValueError('a secret')"


ENDS: list[tuple[str, BaseException]] = [
    ("an exit", SystemExit(3)),
    ("an interrupt", KeyboardInterrupt()),
]


@pytest.mark.parametrize(("error"), [pytest.param(e, id=name) for name, e in ENDS])
async def test_an_exit_of_middleware_ends_its_request_alone(
    app: App, error: BaseException, caplog: pytest.LogCaptureFixture
) -> None:
    @app.middleware
    async def leave(_ctx: Context, _call_next: Next) -> Result:
        raise error

    assert (await call_tool(app, "search"))["code"] == -32603
    assert "tools/call failed" in caplog.text


async def test_middleware_that_asks_its_client_is_a_fault(
    app: App, caplog: pytest.LogCaptureFixture
) -> None:
    @app.middleware
    async def ask(ctx: Context, call_next: Next) -> Result:
        await ctx.elicit("Who are you?", Name)
        return await call_next()

    asked = await call(app, "tools/call", client=CLIENT, name="search")
    assert asked == {"code": -32603, "message": "Internal error"}
    assert "middleware can't exit or ask its client: PausedError" in caplog.text


NO_RESULTS: list[Any] = [None, "text", {"content": []}, Encoded(b"{}"), Result]


@pytest.mark.parametrize("value", NO_RESULTS, ids=repr)
async def test_middleware_that_returns_no_result_is_a_fault(
    app: App, value: Any, caplog: pytest.LogCaptureFixture
) -> None:
    @app.middleware
    async def lose(_ctx: Context, call_next: Next) -> Any:
        await call_next()
        return value

    assert (await call_tool(app, "search"))["code"] == -32603
    name = type(value).__name__
    assert f"middleware returns a Result, not {name}" in caplog.text


@pytest.mark.parametrize("at", EVERY)
async def test_middleware_may_answer_itself(app: App, at: str) -> None:
    @app.middleware
    async def cached(ctx: Context, call_next: Next) -> Result:
        if ctx.method == "tools/list":
            return Result.tools([])
        if ctx.params.get("name") == "search":
            return Result.structured({"cached": True})
        return await call_next()

    answer = await call_tool(app, "search", at=at)
    assert answer["content"] == text('{"cached":true}')["content"]
    assert (await call(app, "tools/list", at=at))["tools"] == []
    assert await call_tool(app, "broken", at=at) == failed("no")


@pytest.mark.parametrize("at", EVERY)
async def test_lists_have_pages_and_what_the_caller_sees_within_middleware(
    at: str,
) -> None:
    app = App("tests", page_size=1)
    for name in ("one", "two", "three"):
        app.add_tool(
            lambda: None,
            name=name,
            visible=(lambda principal: principal == "ada") if name == "two" else None,
        )
    seen = watch(app)
    for by, names in (("ada", ["one", "two", "three"]), (None, ["one", "three"])):
        cursor: dict[str, Any] = {}
        for name in names:
            page = await call(app, "tools/list", at=at, by=by, **cursor)
            assert [tool["name"] for tool in page["tools"]] == [name]
            cursor = {"cursor": page.get("nextCursor")}
        assert cursor == {"cursor": None}
    assert len(seen) == 5


async def test_middleware_may_replace_a_result(app: App) -> None:
    @app.middleware
    async def marked(_ctx: Context, call_next: Next) -> Result:
        result = await call_next()
        result.metadata = {"com.example/seen": True}
        return result

    listed = await call(app, "tools/list")
    assert listed["_meta"] == {"com.example/seen": True}
    assert len(listed["tools"]) == 2
    searched = await call_tool(app, "search")
    assert searched == {**text("found "), "_meta": {"com.example/seen": True}}


async def test_middleware_may_change_the_params(app: App) -> None:
    @app.middleware
    async def normal(ctx: Context, call_next: Next) -> Result:
        ctx.params["arguments"]["query"] = ctx.params["arguments"]["query"].strip()
        return await call_next()

    @app.middleware
    async def renamed(ctx: Context, call_next: Next) -> Result:
        ctx.params = {**ctx.params, "name": "search"}
        return await call_next()

    assert await call_tool(app, "find", {"query": " dune "}) == text("found dune")
    # What it makes of them is checked as what a client sends.
    wrong = await call_tool(app, "search", {"query": " "})
    assert wrong == text("found ")


async def test_middleware_may_go_on_again(app: App) -> None:
    runs: list[str] = []

    def opened() -> Iterator[str]:
        runs.append("opened")
        yield "it"
        runs.append("closed")

    @app.tool
    async def flaky(what: Annotated[str, Depends(opened)]) -> str:
        runs.append(what)
        return "ok" if len(runs) > 3 else "not yet"

    @app.middleware
    async def again(_ctx: Context, call_next: Next) -> Result:
        result = await call_next()
        return result if result.value == "ok" else await call_next()

    assert await call_tool(app, "flaky") == text("ok")
    assert runs == ["opened", "it", "closed", "opened", "it", "closed"]


async def test_middleware_may_give_up_on_what_takes_long(
    app: App, caplog: pytest.LogCaptureFixture
) -> None:
    ended = []

    @app.tool
    async def slow() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("slow")

    @app.middleware
    async def hurry(_ctx: Context, call_next: Next) -> Result:
        try:
            async with asyncio.timeout(0):
                return await call_next()
        except TimeoutError:
            return Result.error("It took too long.")

    assert await call_tool(app, "slow") == failed("It took too long.")
    assert ended == ["slow"]
    assert caplog.records == []


user: ContextVar[str | None] = ContextVar("user", default=None)


def whoami() -> str:
    return str(user.get())


async def awaits() -> str:
    await asyncio.sleep(0)
    return whoami()


async def spawns() -> str:
    return await asyncio.create_task(awaits())


async def test_handlers_see_what_middleware_puts_into_context_variables() -> None:
    """CTX-03."""
    app = App("tests")
    for function in (whoami, awaits, spawns):
        app.add_tool(function)
    app.add_resource("user://me", whoami)
    app.add_prompt(whoami)

    @app.middleware
    async def known(ctx: Context, call_next: Next) -> Result:
        user.set(ctx.principal)
        await asyncio.sleep(0)
        return await call_next()

    async def serve(name: str) -> None:
        for tool in ("whoami", "awaits", "spawns"):
            assert await call_tool(app, tool, by=name) == text(name)
        read = await call(app, "resources/read", by=name, uri="user://me")
        assert read["contents"][0]["text"] == name
        got = await call(app, "prompts/get", by=name, name="whoami")
        assert got["messages"][0]["content"]["text"] == name

    await asyncio.gather(*(serve(f"user {number}") for number in range(50)))
    assert user.get() is None


@pytest.mark.parametrize("at", LEGACY)
async def test_params_that_are_no_object_are_refused_before_middleware(
    app: App, at: str
) -> None:
    @app.middleware
    async def unseen(_ctx: Context, _call_next: Next) -> Result:
        raise NotImplementedError

    for method, code in (("tools/list", -32602), ("no/such", -32601)):
        message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": [1]}
        replied = await dispatch(message, app, headers=_headers(at))
        assert replied.body
        assert replied.message["error"]["code"] == code  # type: ignore[union-attr]


async def asks(ctx: Context) -> str:
    answer = await ctx.elicit("Who are you?", Name)
    assert answer.data is not None
    return f"Hello, {answer.data.name}"


async def asks_by_hand(ctx: Context) -> Result:
    if "who" in ctx.input.responses:
        return Result.text(f"Hello, {ctx.input.responses['who']['content']['name']}")
    return Result.input_required({"who": form("Who are you?")})


@pytest.mark.parametrize("handler", [asks, asks_by_hand])
async def test_middleware_is_around_each_round_of_a_request_that_asks(
    app: App, handler: Any
) -> None:
    app.add_tool(handler, name="ask")
    seen = watch(app)
    asked = await call(app, "tools/call", client=CLIENT, name="ask", arguments={})
    assert seen == [("modern", "tools/call", None, "input_required")]
    (key,) = asked["inputRequests"]
    answered = await call(
        app,
        "tools/call",
        client=CLIENT,
        name="ask",
        arguments={},
        inputResponses={key: named("Ada")},
        **({"requestState": asked["requestState"]} if "requestState" in asked else {}),
    )
    assert answered == text("Hello, Ada")
    assert seen[1:] == [("modern", "tools/call", None, "text")]


@pytest.mark.parametrize("handler", [asks, asks_by_hand])
async def test_middleware_is_around_all_rounds_of_a_legacy_request(
    app: App, handler: Any
) -> None:
    app.add_tool(handler, name="ask")
    seen = watch(app)
    opened = await call_initialize(app)
    message = request("tools/call", at=V_2025_11_25, name="ask", arguments={})
    async with stream(app, message, in_session(opened)) as posted:
        await posted.event()
        question = await posted.message()
        assert seen == [("legacy", "initialize", None, "wire")]
        answer = {"jsonrpc": "2.0", "id": question["id"], "result": named("Ada")}
        async with stream(app, answer, in_session(opened)) as accepted:
            assert accepted.status == 202
        assert (await posted.message())["result"] == text("Hello, Ada")
    assert seen[1:] == [("legacy", "tools/call", None, "text")]


async def call_initialize(app: App) -> str:
    params: dict[str, Any] = {**INITIALIZE, "capabilities": {"elicitation": {}}}
    message = request("initialize", at=V_2025_11_25, **params)
    async with stream(app, message) as opened:
        assert "result" in await opened.body()
        return opened.headers["mcp-session-id"]


async def test_middleware_is_around_a_stream_until_that_ends(app: App) -> None:
    """Spec 2026-07-28, basic/patterns/subscriptions."""
    seen = watch(app)
    async with stream(app, listen(toolsListChanged=True)) as opened:
        assert await opened.message() == acknowledged(toolsListChanged=True)
        app.remove_tool("broken")
        assert await opened.message() == changed("tools", 1)
        assert seen == []
        app.close()
        assert await opened.rest() == [completed()]
    assert seen == [("modern", "subscriptions/listen", None, "subscription")]
    await idle(app)


async def test_a_cancellation_passes_through_middleware(app: App) -> None:
    """Spec 2026-07-28, basic/patterns/cancellation."""
    seen: list[str] = []

    @app.tool
    async def slow(ctx: Context) -> None:
        await ctx.log("info", "begun")
        await asyncio.Event().wait()

    @app.middleware
    async def stubborn(_ctx: Context, call_next: Next) -> Result:
        try:
            return await call_next()
        except asyncio.CancelledError:
            seen.append("cancelled")
            # Nobody hears of it.
            return Result.text("too late")

    async with stream(app, logged("slow")) as opened:
        await opened.message()
    assert seen == ["cancelled"]
    assert await opened.rest() == []
    await idle(app)


def logged(tool: str) -> dict[str, Any]:
    """Build a call that asks for log messages."""
    message = modern("tools/call", {"name": tool})
    message["params"]["_meta"][LOG_LEVEL] = "debug"
    return message


async def test_middleware_that_reports_leaves_a_new_session_its_id(app: App) -> None:
    @app.middleware
    async def report(ctx: Context, call_next: Next) -> Result:
        await ctx.log("error", "served")
        return await call_next()

    assert await open_session(app)


async def test_middleware_is_there_in_an_app_that_is_embedded(app: App) -> None:
    seen = watch(app)
    api = FastAPI()
    api.include_router(app.router, prefix="/shop")
    message = modern("tools/call", {"name": "search"})
    transport = httpx.ASGITransport(app=api)
    async with httpx.AsyncClient(transport=transport) as client:
        replied = await client.post(
            "http://localhost/shop/mcp", json=message, headers=headers_of(message)
        )
    assert replied.json()["result"]["content"] == text("found ")["content"]
    assert seen == [("modern", "tools/call", None, "text")]


# What can't be middleware


def sync(_ctx: Context, _call_next: Next) -> Result:
    raise NotImplementedError


async def narrow(_ctx: Context) -> Result:
    raise NotImplementedError


async def demanding(_ctx: Context, _call_next: Next, *, name: str) -> Result:
    raise NotImplementedError(name)


async def generator(_ctx: Context, call_next: Next) -> Any:
    yield await call_next()


class Class:
    """Not one of these: it is made, and not called."""

    def __init__(self, _ctx: Context, _call_next: Next) -> None:
        raise NotImplementedError


SHAPE = "async def name(ctx, call_next)"
NOT_ASYNC = f"middleware is an async function, {SHAPE}, not {{!r}}"
WRONG = "middleware {!r} takes a context and what comes next: " + SHAPE

MISTAKES: list[tuple[Any, str]] = [
    (sync, NOT_ASYNC),
    (generator, NOT_ASYNC),
    (Class, NOT_ASYNC),
    ("http", NOT_ASYNC),
    (None, NOT_ASYNC),
    (narrow, WRONG + " (too many positional arguments)"),
    (demanding, WRONG + " (missing a required argument: 'name')"),
]


@pytest.mark.parametrize(("function", "message"), MISTAKES)
def test_what_can_not_be_middleware_is_a_setup_error(
    app: App, function: Any, message: str
) -> None:
    with pytest.raises(SetupError) as caught:
        app.middleware(function)
    assert str(caught.value).replace("keyword-only ", "") == message.format(function)
    assert app.middlewares == ()


class Around:
    """Middleware that is an object."""

    async def __call__(self, ctx: Context, call_next: Next) -> Result:
        """Go on."""
        ctx.params["arguments"] = {"query": "an object"}
        return await call_next()

    async def method(self, ctx: Context, call_next: Next) -> Result:
        """Go on."""
        ctx.params["arguments"] = {"query": "a method"}
        return await call_next()


async def partly(word: str, ctx: Context, call_next: Next) -> Result:
    ctx.params["arguments"] = {"query": word}
    return await call_next()


@pytest.mark.parametrize(
    ("function", "word"),
    [
        (Around(), "an object"),
        (Around().method, "a method"),
        (partial(partly, "a partial"), "a partial"),
    ],
)
async def test_whatever_can_be_awaited_with_the_two_is_middleware(
    app: App, function: Any, word: str
) -> None:
    assert app.middleware(function) is function
    assert await call_tool(app, "search") == text(f"found {word}")


async def test_without_middleware_a_list_is_encoded_once(app: App) -> None:
    before = await reply(app, "tools/list")
    assert len(app.registry.answers) == 1
    watch(app)
    app.registry.answers.clear()
    assert (await reply(app, "tools/list")).body == before.body
    assert app.registry.answers == {}
