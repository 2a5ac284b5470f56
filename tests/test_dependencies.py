"""FastAPI's dependencies in handlers: what fills them in, and when they end.

What is tested here holds on the newest FastAPI and on the oldest one that
mcpkit allows: `tests/oldest` runs this file there.
"""

import asyncio
import functools
import inspect
import logging
import subprocess
import sys
import threading
from collections.abc import (
    AsyncIterator,
    Callable,
    Coroutine,
    Generator,
    Iterator,
    Mapping,
)
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final, TypeAlias

import anyio
import httpx
import pytest
from fastapi import (
    BackgroundTasks,
    Body,
    Cookie,
    Depends,
    FastAPI,
    File,
    Form,
    Header,
    HTTPException,
    Path as PathParameter,
    Query,
    Request,
    Response,
    Security,
    WebSocket,
)
from fastapi.exceptions import RequestValidationError
from fastapi.requests import HTTPConnection
from fastapi.security import HTTPBearer, SecurityScopes
from pydantic import BaseModel
from starlette.types import ASGIApp, Message
from typing_extensions import TypeAliasType

from mcpkit import (
    App,
    Context,
    ProtocolError,
    Result,
    SetupError,
    Toolbox,
    ToolError,
    dispatch,
    handle_request,
)
from tests.http.client import (
    JSON_HEADERS,
    LEGACY,
    MODERN,
    call,
    error,
    headers_of,
    legacy,
    modern,
    post,
    result_of,
)
from tests.http.serving import connected, served, whole

ROOT: Final = Path(__file__).parent.parent
PATIENCE: Final = 20

Dependency: TypeAlias = Callable[..., Any]
Kept: TypeAlias = list[str]


@dataclass(frozen=True)
class Kind:
    """One kind of component, whose function returns what a dependency gave it."""

    register: Callable[[App, Dependency], None]
    method: str
    params: Mapping[str, Any]
    where: tuple[str | int, ...]
    what: str

    async def ask(
        self,
        app: ASGIApp,
        version: str = MODERN,
        headers: Mapping[str, str] | None = None,
        path: str = "/mcp",
    ) -> httpx.Response:
        """Call it over HTTP."""
        return await call(
            app, version, self.method, self.params, path=path, headers=headers
        )

    async def tell(self, app: App) -> Any:
        """Call it where there is no HTTP, and return the whole response."""
        return await handle_request(modern(self.method, self.params), app)

    def read(self, result: Any) -> Any:
        """Return what the function returned."""
        for step in self.where:
            result = result[step]
        return result


def tool(app: App, dependency: Dependency) -> None:
    @app.tool(name="x")
    async def x(value: Annotated[Any, Depends(dependency)]) -> str:
        return str(value)


def sync_tool(app: App, dependency: Dependency) -> None:
    @app.tool(name="x")
    def x(value: Annotated[Any, Depends(dependency)]) -> str:
        return str(value)


def resource(app: App, dependency: Dependency) -> None:
    @app.resource("a://x")
    async def x(value: Annotated[Any, Depends(dependency)]) -> str:
        return str(value)


def template(app: App, dependency: Dependency) -> None:
    @app.resource("a://{key}")
    async def x(key: str, value: Annotated[Any, Depends(dependency)]) -> str:
        assert key == "x"
        return str(value)


def prompt(app: App, dependency: Dependency) -> None:
    @app.prompt
    async def x(value: Annotated[Any, Depends(dependency)]) -> str:
        return str(value)


def completion(app: App, dependency: Dependency) -> None:
    @app.prompt
    async def x(name: str) -> str:
        raise NotImplementedError(name)

    @app.complete("x", "name")
    async def names(
        value: str, other: Annotated[Any, Depends(dependency)]
    ) -> list[str]:
        return [f"{other}{value}"]


IN_CONTENT: Final = ("content", 0, "text")
IN_CONTENTS: Final = ("contents", 0, "text")
IN_MESSAGES: Final = ("messages", 0, "content", "text")
TO_COMPLETE: Final = {
    "ref": {"type": "ref/prompt", "name": "x"},
    "argument": {"name": "name", "value": ""},
}

KINDS: dict[str, Kind] = {
    "tool": Kind(tool, "tools/call", {"name": "x"}, IN_CONTENT, "tool 'x'"),
    "sync tool": Kind(sync_tool, "tools/call", {"name": "x"}, IN_CONTENT, "tool 'x'"),
    "resource": Kind(
        resource, "resources/read", {"uri": "a://x"}, IN_CONTENTS, "resource 'a://x'"
    ),
    "template": Kind(
        template,
        "resources/read",
        {"uri": "a://x"},
        IN_CONTENTS,
        "resource 'a://{key}'",
    ),
    "prompt": Kind(prompt, "prompts/get", {"name": "x"}, IN_MESSAGES, "prompt 'x'"),
    "completion": Kind(
        completion,
        "completion/complete",
        TO_COMPLETE,
        ("completion", "values", 0),
        "completion of 'name' of 'x'",
    ),
}
every_kind = pytest.mark.parametrize(
    "kind", [pytest.param(kind, id=name) for name, kind in KINDS.items()]
)
every_era = pytest.mark.parametrize("version", [MODERN, LEGACY])


def build(dependency: Dependency, kind: str = "tool", **options: Any) -> App:
    """Build an app with one component, `x`, that has a dependency."""
    app = App("tests", **options)
    KINDS[kind].register(app, dependency)
    return app


async def ask(app: ASGIApp, path: str = "/mcp", **headers: str) -> httpx.Response:
    """Call the tool `x` over HTTP."""
    sent = {name.replace("_", "-"): value for name, value in headers.items()}
    return await KINDS["tool"].ask(app, headers=sent, path=path)


async def said(app: ASGIApp, path: str = "/mcp", **headers: str) -> str:
    """Call the tool `x` over HTTP, and return the text that it answers with."""
    text: str = result_of(await ask(app, path, **headers))["content"][0]["text"]
    return text


# What is filled in, and from what.


def token(x_token: Annotated[str, Header()]) -> str:
    return x_token


@every_era
@every_kind
async def test_a_dependency_is_filled_in(kind: Kind, version: str) -> None:
    app = App("tests")
    kind.register(app, token)
    reply = await kind.ask(app, version, {"x-token": "secret"})
    assert kind.read(result_of(reply)) == "secret"


class Page:
    """What may be called, or has what may be called."""

    def __init__(self, size: int = 10) -> None:
        self.size = size

    def __str__(self) -> str:
        return f"page of {self.size}"

    def method(self) -> str:
        """Be a dependency."""
        return f"method of {self.size}"

    async def __call__(self) -> str:
        """Be a dependency."""
        return f"call of {self.size}"


def sync() -> str:
    return "sync"


async def coroutine() -> str:
    return "coroutine"


def generator() -> Iterator[str]:
    yield "generator"


async def async_generator() -> AsyncIterator[str]:
    yield "async generator"


def of_others(
    one: Annotated[str, Depends(sync)], two: str = Depends(async_generator)
) -> str:
    return f"{one}, {two}"


def of_a_request(request: Request) -> str:
    return request.url.path


def of_a_connection(connection: HTTPConnection) -> str:
    return connection.headers["x-token"]


def of_a_cookie(flavour: Annotated[str, Cookie()]) -> str:
    return flavour


def of_a_query(size: Annotated[int, Query(le=100)], page: int = 1) -> str:
    return f"{size} of {page}"


def of_a_class(page: Annotated[Page, Depends()]) -> str:
    return str(page)


def of_two_scopes(scopes: SecurityScopes) -> str:
    return scopes.scope_str


def of_security(
    scopes: Annotated[str, Security(of_two_scopes, scopes=["a", "b"])],
    bearer: Annotated[Any, Security(HTTPBearer())],
) -> str:
    return f"{scopes}, {bearer.credentials}"


def of_the_state(request: Request) -> str:
    assert request.state.principal == "ada"
    return str(request.state.principal)


DEPENDENCIES: list[tuple[str, Dependency, str]] = [
    # name, dependency, what it gives
    ("a function", sync, "sync"),
    ("a coroutine function", coroutine, "coroutine"),
    ("a generator", generator, "generator"),
    ("an async generator", async_generator, "async generator"),
    ("a class", Page, "page of 20"),
    ("a class, from its annotation", of_a_class, "page of 20"),
    ("a bound method", Page(3).method, "method of 3"),
    ("an object that is called", Page(4), "call of 4"),
    ("a partial", functools.partial(Page, size=5), "page of 20"),
    ("others", of_others, "sync, async generator"),
    ("the request", of_a_request, "/mcp"),
    ("the connection", of_a_connection, "secret"),
    ("a cookie", of_a_cookie, "mint"),
    ("the query", of_a_query, "20 of 1"),
    ("scopes, and a scheme", of_security, "a b, key"),
]


@pytest.mark.parametrize(
    ("dependency", "given"),
    [pytest.param(*row, id=name) for name, *row in DEPENDENCIES],
)
async def test_a_dependency_is_all_that_fastapi_takes_for_one(
    dependency: Dependency, given: str
) -> None:
    headers = {
        "x-token": "secret",
        "cookie": "flavour=mint",
        "authorization": "Bearer key",
    }
    app = build(dependency)
    reply = await KINDS["tool"].ask(app, headers=headers, path="/mcp?size=20")
    assert KINDS["tool"].read(result_of(reply)) == given


Alias = TypeAliasType("Alias", Annotated[str, Depends(sync)])


class Methods:
    """What has a method that has a dependency."""

    async def method(self, value: Annotated[str, Depends(sync)]) -> str:
        """Return what the dependency gave."""
        return value


async def annotated(value: Annotated[str, Depends(sync)]) -> str:
    return value


async def quoted(value: "Annotated[str, Depends(sync)]") -> str:
    return value


async def by_default(value: str = Depends(sync)) -> str:
    return value


async def optional(value: Annotated[str | None, Depends(sync)] = None) -> str:
    return str(value)


async def aliased(value: Alias) -> str:
    return value


async def by_position(value: Annotated[str, Depends(sync)], /) -> str:
    return value


async def by_keyword(*, value: Annotated[str, Depends(sync)]) -> str:
    return value


async def beside_a_context(ctx: Context, value: Annotated[str, Depends(sync)]) -> str:
    assert ctx.method == "tools/call"
    return value


async def through_the_context(
    value: Annotated[Context | str, Depends(sync)],
) -> str:
    return str(value)


async def described(value: Annotated[str, "ours", Depends(sync), "more"]) -> str:
    return value


async def bound(other: int, value: Annotated[str, Depends(sync)]) -> str:
    assert other == 1
    return value


@functools.wraps(annotated)
def wrapping(*args: Any, **kwargs: Any) -> Any:
    return annotated(*args, **kwargs)


FUNCTIONS: list[tuple[str, Callable[..., Any]]] = [
    ("by annotation", annotated),
    ("by an annotation that is a string", quoted),
    ("by default", by_default),
    ("with a default of its own", optional),
    ("by an alias of an annotation", aliased),
    ("by position", by_position),
    ("by keyword", by_keyword),
    ("beside a Context", beside_a_context),
    ("a dependency that a Context may be", through_the_context),
    ("among other annotations", described),
    ("in a partial", functools.partial(bound, 1)),
    ("in a partial, by name", functools.partial(bound, other=1)),
    ("in a method", Methods().method),
    ("in a wrapped function", wrapping),
]


@pytest.mark.parametrize(
    "function", [pytest.param(function, id=name) for name, function in FUNCTIONS]
)
async def test_a_dependency_is_written_as_in_fastapi(
    function: Callable[..., Any],
) -> None:
    app = App("tests")
    built = app.add_tool(function, name="x")
    assert built.wire["inputSchema"] == {
        "type": "object",
        "additionalProperties": False,
    }
    assert await said(app) == "sync"


async def test_what_is_filled_in_stands_beside_arguments() -> None:
    app = App("tests")

    @app.tool
    async def x(
        request: Request,
        connection: HTTPConnection,
        response: Response,
        tasks: BackgroundTasks,
        scopes: SecurityScopes,
        x_token: Annotated[str, Header()],
        flavour: Annotated[str, Cookie()] = "mint",
        number: int = 3,
        value: str = Depends(sync),
    ) -> str:
        assert (type(response), type(tasks)) == (Response, BackgroundTasks)
        assert (request, scopes.scopes) == (connection, [])
        return f"{request.method} {x_token} {flavour} {number} {value}"

    listed = result_of(await call(app, MODERN, "tools/list"))
    assert listed["tools"][0]["inputSchema"] == {
        "type": "object",
        "properties": {"number": {"type": "integer", "default": 3}},
        "additionalProperties": False,
    }
    assert await said(app, x_token="secret") == "POST secret mint 3 sync"  # noqa: S106


async def test_a_client_can_not_choose_what_is_filled_in() -> None:
    arguments = {"name": "x", "arguments": {"value": "mine"}}
    reply = await call(build(sync), MODERN, "tools/call", arguments)
    assert result_of(reply)["isError"] is True
    assert result_of(reply)["content"][0]["text"] == "value: unknown argument"


async def test_the_arguments_of_a_prompt_are_those_of_the_client() -> None:
    listed = result_of(await call(build(sync, "prompt"), MODERN, "prompts/list"))
    assert listed["prompts"] == [{"name": "x"}]


async def test_a_request_is_that_of_the_context() -> None:
    app = App("tests", principal=lambda request: request.headers["x-token"])

    @app.tool
    def x(request: Request, ctx: Context) -> str:
        request.state.seen = True
        assert ctx.request.state.seen
        assert ctx.request.headers == request.headers
        return str(ctx.principal)

    assert await said(app, x_token="ada") == "ada"  # noqa: S106


async def test_the_body_of_a_request_can_not_be_read_again(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def read(request: Request) -> bytes:
        return await request.body()

    assert await said(build(read)) == "Tool x failed"
    assert "the body of the request was read: it is the MCP message" in caplog.text


# How often they are worked out.


@dataclass(eq=False)
class Counter:
    """A dependency that says how often it was worked out."""

    count: int = 0

    def __call__(self) -> int:
        """Be a dependency."""
        self.count += 1
        return self.count


@pytest.mark.parametrize(("use_cache", "given"), [(True, "1 1"), (False, "1 2")])
async def test_a_dependency_is_worked_out_once_a_request_unless_it_says_otherwise(
    use_cache: bool,  # noqa: FBT001  # a column of the table
    given: str,
) -> None:
    counter = Counter()

    def one(count: Annotated[int, Depends(counter)]) -> int:
        return count

    def both(
        one: int = Depends(one), two: int = Depends(counter, use_cache=use_cache)
    ) -> str:
        return f"{one} {two}"

    assert await said(build(both)) == given


async def test_a_dependency_is_worked_out_anew_for_each_request() -> None:
    app = build(Counter())
    assert [await said(app) for _ in range(3)] == ["1", "2", "3"]


# When they end.


@dataclass
class Session:
    """What a dependency keeps open, and what it kept of it."""

    steps: Kept

    async def opened(self) -> AsyncIterator[Kept]:
        """Be a dependency that keeps something open."""
        self.steps.append("opened")
        try:
            yield self.steps
        except BaseException as error:
            self.steps.append(type(error).__name__)
            raise
        finally:
            self.steps.append("closed")

    def opened_in_a_thread(self) -> Iterator[Kept]:
        """Be a dependency that keeps something open in a thread."""
        self.steps.append("opened")
        try:
            yield self.steps
        except BaseException as error:
            self.steps.append(type(error).__name__)
            raise
        finally:
            self.steps.append("closed")


@pytest.mark.parametrize("sync", [False, True])
@every_kind
async def test_what_is_open_is_ended_after_the_function(
    kind: Kind,
    sync: bool,  # noqa: FBT001  # a column of the table
) -> None:
    session = Session([])
    app = App("tests")
    kind.register(app, session.opened_in_a_thread if sync else session.opened)
    assert kind.read(result_of(await kind.ask(app))) == "['opened']"
    assert session.steps == ["opened", "closed"]


def alone(app: App) -> ASGIApp:
    return app


def included(app: App) -> ASGIApp:
    api = FastAPI()
    api.include_router(app.router)
    return api


def mounted(app: App) -> ASGIApp:
    api = FastAPI()
    api.mount("/", app)
    return api


every_way = pytest.mark.parametrize("embed", [alone, included, mounted])


@every_way
async def test_what_is_open_is_ended_once_the_answer_is_sent(
    embed: Callable[[App], ASGIApp],
) -> None:
    """Ours, as FastAPI has it since 0.118."""
    answered = threading.Event()
    ended = threading.Event()
    steps: Kept = []

    async def session() -> AsyncIterator[str]:
        yield "open"
        await asyncio.to_thread(answered.wait, PATIENCE)
        steps.append("closed")

    def task() -> None:
        assert answered.wait(PATIENCE)
        steps.append("task")
        ended.set()

    def depends(tasks: BackgroundTasks, session: str = Depends(session)) -> str:
        tasks.add_task(task)
        return session

    message = modern("tools/call", {"name": "x"})
    async with asyncio.timeout(PATIENCE):
        with served(embed(build(depends)), "h11") as port:
            async with connected(port) as connection:
                await connection.send(
                    whole(
                        httpx.Request("POST", "/", json=message).content,
                        headers_of(message),
                    )
                )
                reply = await connection.reply()
                assert (reply.status, steps) == (200, [])
                answered.set()
                await asyncio.to_thread(ended.wait, PATIENCE)
    assert steps == ["task", "closed"]


@every_kind
async def test_what_is_open_is_ended_before_a_transport_without_http_has_the_answer(
    kind: Kind,
) -> None:
    session = Session([])
    app = App("tests")
    kind.register(app, session.opened)
    assert kind.read((await kind.tell(app))["result"]) == "['opened']"
    assert session.steps == ["opened", "closed"]


async def test_a_transport_may_end_what_is_open_itself() -> None:
    session = Session([])
    message = modern("tools/call", {"name": "x"})
    reply = await dispatch(message, build(session.opened), cleans_up=True)
    assert session.steps == ["opened"]
    assert reply.cleanup is not None
    await reply.cleanup.finish()
    assert session.steps == ["opened", "closed"]


async def test_each_request_of_a_batch_ends_what_it_opened() -> None:
    """Spec 2025-03-26, basic: Batching."""
    session = Session([])
    batch = [
        legacy("tools/call", {"name": "x"}, request_id=number) for number in range(2)
    ]
    headers = {**JSON_HEADERS, "mcp-protocol-version": "2025-03-26"}
    reply = await post(build(session.opened), batch, headers)
    assert [answer["id"] for answer in reply.json()] == [0, 1]
    assert session.steps == ["opened", "closed"] * 2


async def test_dependencies_end_in_the_opposite_order() -> None:
    steps: Kept = []

    def opens(name: str) -> Callable[[], Iterator[str]]:
        def opened() -> Iterator[str]:
            steps.append(f"open {name}")
            yield name
            steps.append(f"close {name}")

        return opened

    outer = opens("outer")

    def inner(outer: str = Depends(outer)) -> Iterator[str]:
        steps.append("open inner")
        yield outer
        steps.append("close inner")

    assert await said(build(inner)) == "outer"
    assert steps == ["open outer", "open inner", "close inner", "close outer"]


def raising(raised: BaseException, kind: str, dependency: Dependency) -> App:
    """Build an app whose function fails, and has a dependency."""

    async def fails(value: Annotated[Any, Depends(dependency)]) -> str:
        assert value is not None
        raise raised

    app = App("tests")
    match kind:
        case "tool":
            app.add_tool(fails, name="x")
        case "resource":
            app.add_resource("a://x", fails)
        case _:
            app.add_prompt(fails, name="x")
    return app


FAILURES: list[tuple[str, BaseException, str]] = [
    # name, what the function raises, what the client is told of a tool
    ("any other", ValueError("secret"), "Tool x failed"),
    ("a tool's", ToolError("No."), "No."),
    ("an exit", SystemExit(1), "Tool x failed"),
]


@pytest.mark.parametrize("sync", [False, True])
@pytest.mark.parametrize(
    ("raised", "text"), [pytest.param(*row, id=name) for name, *row in FAILURES]
)
async def test_an_error_of_the_function_reaches_the_dependency(
    raised: BaseException,
    text: str,
    sync: bool,  # noqa: FBT001  # a column of the table
) -> None:
    session = Session([])
    # A generator in a thread is not told of exits, in older releases.
    threaded = sync and isinstance(raised, Exception)
    opened = session.opened_in_a_thread if threaded else session.opened
    assert await said(raising(raised, "tool", opened)) == text
    assert session.steps == ["opened", type(raised).__name__, "closed"]


@pytest.mark.parametrize("kind", ["resource", "prompt"])
async def test_an_error_of_what_is_no_tool_reaches_the_dependency_too(
    kind: str,
) -> None:
    session = Session([])
    app = raising(ValueError("secret"), kind, session.opened)
    reply = await KINDS[kind].ask(app)
    assert reply.json() == error(-32603, "Internal error", request_id=1)
    assert session.steps == ["opened", "ValueError", "closed"]


async def test_a_dependency_may_make_another_error_of_it() -> None:
    async def session() -> AsyncIterator[str]:
        try:
            yield "open"
        except ValueError as raised:
            raise HTTPException(409, "Somebody was faster.") from raised

    reply = await ask(raising(ValueError("secret"), "tool", session))
    assert reply.status_code == httpx.codes.CONFLICT
    assert reply.json() == error(-32600, "Somebody was faster.", request_id=1)


async def test_a_dependency_may_tell_the_model_of_it() -> None:
    async def session() -> AsyncIterator[str]:
        try:
            yield "open"
        except ValueError as raised:
            raise ToolError("Try again.") from raised

    assert await said(raising(ValueError("secret"), "tool", session)) == "Try again."


async def test_an_error_that_a_dependency_swallows_is_one_all_the_same(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Ours, as FastAPI has it."""

    async def session() -> AsyncIterator[str]:
        with suppress(ValueError):
            yield "open"

    app = raising(ValueError("secret"), "tool", session)
    assert await said(app) == "Tool x failed"
    assert (
        "a dependency with yield caught the error and did not raise it" in caplog.text
    )
    assert "ValueError: secret" in caplog.text


async def test_a_dependency_that_fails_ends_those_before_it() -> None:
    session = Session([])

    def fails(opened: Annotated[Kept, Depends(session.opened)]) -> str:
        raise HTTPException(403, str(opened))

    reply = await ask(build(fails))
    assert reply.json() == error(-32600, "['opened']", request_id=1)
    assert session.steps == ["opened", "HTTPException", "closed"]


async def test_what_fails_after_the_answer_is_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def session() -> AsyncIterator[str]:
        yield "open"
        raise SystemExit("secret")

    app = build(session)
    assert [await said(app), await said(app)] == ["open", "open"]
    assert [record.message for record in caplog.records] == [
        "tool 'x': after the answer",
        "tool 'x': after the answer",
    ]
    assert "SystemExit: secret" in caplog.text


async def test_a_result_that_can_not_be_sent_is_an_error_for_the_dependency() -> None:
    session = Session([])
    app = App("tests")

    @app.tool
    async def x(opened: Annotated[Kept, Depends(session.opened)]) -> int:
        assert opened == ["opened"]
        return "three"  # type: ignore[return-value]  # the mistake

    text = "Tool x returned a value that does not match its output schema"
    assert await said(app) == text
    assert session.steps == ["opened", "OutputError", "closed"]


async def test_a_result_without_a_json_form_is_an_error_for_the_dependency() -> None:
    session = Session([])
    app = App("tests")

    @app.tool(name="x")
    async def unsendable(opened: Annotated[Kept, Depends(session.opened)]) -> Any:
        return [opened, object()]

    @app.prompt(name="x")
    async def no_message(opened: Annotated[Kept, Depends(session.opened)]) -> Any:
        return len(opened)

    assert await said(app) == "Tool x failed"
    reply = await KINDS["prompt"].ask(app)
    assert reply.json() == error(-32603, "Internal error", request_id=1)
    assert session.steps[1] != "closed"
    assert session.steps[3:] == ["opened", "TypeError", "closed"]


async def test_a_question_that_can_not_be_asked_is_an_error_for_the_dependency() -> (
    None
):
    session = Session([])
    app = App("tests")

    @app.tool
    async def x(opened: Annotated[Kept, Depends(session.opened)]) -> Any:
        question = {"method": "roots/list"}
        return Result.input_required({opened[0]: question})

    assert (await ask(app)).json()["error"]["code"] == -32021
    assert session.steps == ["opened", "ProtocolError", "closed"]


async def test_what_fails_on_the_way_out_of_a_failure_is_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def session() -> AsyncIterator[str]:
        try:
            yield "open"
        finally:
            raise ConnectionError("lost")

    app = App("tests")

    @app.prompt
    async def x(opened: Annotated[str, Depends(session)]) -> Any:
        return len(opened)

    reply = await KINDS["prompt"].ask(app)
    assert reply.json() == error(-32603, "Internal error", request_id=1)
    assert "prompt 'x': in the clean-up" in caplog.text
    assert "ConnectionError: lost" in caplog.text


@pytest.mark.parametrize("sync", [False, True])
async def test_a_request_that_is_cancelled_ends_what_it_opened(
    sync: bool,  # noqa: FBT001  # a column of the table
) -> None:
    """Ours: with an ordinary error, which sync dependencies clean up after too."""
    session = Session([])
    app = App("tests")
    waits = asyncio.Event()
    opens = session.opened_in_a_thread if sync else session.opened

    @app.tool
    async def x(opened: Annotated[Kept, Depends(opens)]) -> str:
        waits.set()
        await asyncio.Event().wait()
        raise NotImplementedError(opened)

    task = asyncio.create_task(ask(app))
    await waits.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert session.steps == ["opened", "RequestCancelledError", "closed"]


class Pause:
    """What never comes to an end."""

    def __await__(self) -> Generator[None, None, None]:
        """Wait, once."""
        yield


def test_a_request_that_is_dropped_waits_for_nothing() -> None:
    app = App("tests")

    @app.tool
    async def x(value: Annotated[str, Depends(coroutine)]) -> str:
        await Pause()
        raise NotImplementedError(value)

    async def begin() -> Coroutine[Any, Any, Any]:
        begun = handle_request(modern("tools/call", {"name": "x"}), app)
        begun.send(None)
        return begun

    asyncio.run(begin()).close()


@every_way
async def test_an_answer_that_can_not_be_sent_ends_what_is_open(
    embed: Callable[[App], ASGIApp],
) -> None:
    session = Session([])
    message = modern("tools/call", {"name": "x"})
    scope = {
        "type": "http",
        "method": "POST",
        "path": "/mcp",
        "raw_path": b"/mcp",
        "root_path": "",
        "query_string": b"",
        "headers": [
            (name.encode(), value.encode())
            for name, value in {"host": "localhost", **headers_of(message)}.items()
        ],
    }

    async def receive() -> Message:
        body = httpx.Request("POST", "/", json=message).content
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(_: Message) -> None:
        raise ConnectionError("gone")

    with pytest.raises(ConnectionError, match="gone"):
        await embed(build(session.opened))(scope, receive, send)
    assert session.steps[0] == "opened"
    assert session.steps[-1] == "closed"


if "scope" in inspect.signature(Depends).parameters:

    async def test_a_dependency_may_end_before_the_answer_is_sent() -> None:
        """FastAPI 0.121: `Depends(scope="function")`."""
        session = Session([])
        outer = Session(session.steps)

        async def x(
            opened: Annotated[Any, Depends(session.opened, scope="function")],
            outer: Annotated[Any, Depends(outer.opened_in_a_thread)],
        ) -> str:
            assert opened is outer
            return str(opened)

        app = App("tests")
        app.add_tool(x)
        message = modern("tools/call", {"name": "x"})
        reply = await dispatch(message, app, cleans_up=True)
        assert session.steps == ["opened", "opened", "closed"]
        assert reply.cleanup is not None
        await reply.cleanup.finish()
        assert session.steps == ["opened", "opened", "closed", "closed"]

    @pytest.mark.parametrize(
        ("raised", "kind", "answer"),
        [
            (
                ValueError("secret"),
                "prompt",
                error(-32603, "Internal error", request_id=1),
            ),
            (HTTPException(409, "No."), "prompt", error(-32600, "No.", request_id=1)),
            (HTTPException(409, "No."), "tool", error(-32600, "No.", request_id=1)),
        ],
    )
    async def test_what_fails_as_it_ends_before_the_answer_is_answered(
        raised: Exception, kind: str, answer: Mapping[str, Any]
    ) -> None:
        outer = Session([])

        async def session(
            opened: Annotated[Any, Depends(outer.opened)],
        ) -> AsyncIterator[Any]:
            yield opened
            raise raised

        async def x(value: Annotated[Any, Depends(session, scope="function")]) -> str:
            return str(value)

        app = App("tests")
        app.add_tool(x)
        app.add_prompt(x)
        assert (await KINDS[kind].ask(app)).json() == answer
        assert outer.steps == ["opened", type(raised).__name__, "closed"]

    async def test_dependencies_end_before_those_of_the_host() -> None:
        steps: Kept = []

        async def theirs() -> AsyncIterator[None]:
            async with anyio.create_task_group():
                yield
            steps.append("theirs closed")

        async def ours() -> AsyncIterator[str]:
            async with anyio.create_task_group():
                yield "open"
            steps.append("ours closed")

        host = FastAPI()
        depends = Depends(theirs, scope="function")
        host.include_router(build(ours).router, dependencies=[depends])
        assert await said(host) == "open"
        assert steps == ["ours closed", "theirs closed"]

    async def test_a_commit_that_fails_before_the_answer_fails_the_tool() -> None:
        async def session() -> AsyncIterator[str]:
            yield "open"
            raise ValueError("secret")

        app = App("tests")

        @app.tool
        async def x(value: Annotated[Any, Depends(session, scope="function")]) -> str:
            return str(value)

        assert await said(app) == "Tool x failed"


# What they raise.

CHALLENGE: Final = {"WWW-Authenticate": 'Bearer realm="books"', "Content-Length": "7"}

RAISED: list[tuple[str, Exception, int, dict[str, Any]]] = [
    # name, what a dependency raises, status, error
    (
        "401",
        HTTPException(401, "Log in.", CHALLENGE),
        401,
        {"code": -32600, "message": "Log in."},
    ),
    (
        "429",
        HTTPException(429, "Wait.", {"Retry-After": 5}),  # type: ignore[dict-item]
        429,
        {"code": -32600, "message": "Wait."},
    ),
    ("403", HTTPException(403), 403, {"code": -32600, "message": "Forbidden"}),
    ("404", HTTPException(404, "No."), 404, {"code": -32600, "message": "No."}),
    ("599", HTTPException(599, "Odd."), 599, {"code": -32603, "message": "Odd."}),
    (
        "503",
        HTTPException(503, {"retry": True}),
        503,
        {"code": -32603, "message": "Service Unavailable", "data": {"retry": True}},
    ),
    (
        "a status that nobody knows, with data that has no JSON form",
        HTTPException(499, {"x": object()}),
        499,
        {"code": -32600, "message": "HTTP status 499"},
    ),
    (
        "a validation error of its own",
        RequestValidationError(
            [
                {
                    "loc": ("header", "x-id"),
                    "msg": "Value error, Odd.",
                    "type": "value_error",
                }
            ]
        ),
        400,
        {"code": -32602, "message": "Invalid params: header x-id: odd."},
    ),
    (
        "a validation error without a word",
        RequestValidationError([{}]),
        400,
        {"code": -32602, "message": "Invalid params: request: invalid"},
    ),
    (
        "an error of the protocol",
        ProtocolError(7, "Not today.", {"day": 1}),
        200,
        {"code": 7, "message": "Not today.", "data": {"day": 1}},
    ),
]


@every_era
@every_kind
@pytest.mark.parametrize(
    ("raised", "status", "answer"),
    [pytest.param(*row, id=name) for name, *row in RAISED],
)
async def test_an_http_error_of_a_dependency_is_an_error_of_the_protocol(
    raised: Exception, status: int, answer: dict[str, Any], kind: Kind, version: str
) -> None:
    async def fails() -> str:
        raise raised

    app = App("tests")
    kind.register(app, fails)
    reply = await kind.ask(app, version)
    assert reply.status_code == status
    assert reply.json() == {"jsonrpc": "2.0", "id": 1, "error": answer}
    challenge = 'Bearer realm="books"' if status == httpx.codes.UNAUTHORIZED else None
    assert reply.headers.get("www-authenticate") == challenge


@every_way
async def test_an_http_error_keeps_its_status_however_the_app_is_served(
    embed: Callable[[App], ASGIApp],
) -> None:
    async def fails() -> str:
        raise HTTPException(401, "Log in.", CHALLENGE)

    reply = await ask(embed(build(fails)))
    assert reply.status_code == httpx.codes.UNAUTHORIZED
    assert reply.json() == error(-32600, "Log in.", request_id=1)
    assert reply.headers["www-authenticate"] == CHALLENGE["WWW-Authenticate"]


async def test_an_http_error_without_http_is_an_error_of_the_protocol() -> None:
    async def fails() -> str:
        raise HTTPException(403, "No.")

    told = await KINDS["tool"].tell(build(fails))
    assert told == error(-32600, "No.", request_id=1)


MASKED: list[tuple[str, BaseException]] = [
    ("any exception", ValueError("secret")),
    ("a redirect, which is no error", HTTPException(307, "secret")),
    ("an exit", SystemExit("secret")),
]


@every_era
@every_kind
@pytest.mark.parametrize(
    "raised", [pytest.param(raised, id=name) for name, raised in MASKED]
)
async def test_what_else_a_dependency_raises_is_masked(
    raised: BaseException,
    kind: Kind,
    version: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def fails() -> str:
        raise raised

    app = App("tests")
    kind.register(app, fails)
    reply = await kind.ask(app, version)
    assert reply.status_code == httpx.codes.OK
    if kind.method == "tools/call":
        result = reply.json()["result"]
        assert (result["isError"], kind.read(result)) == (True, "Tool x failed")
    else:
        assert reply.json() == error(-32603, "Internal error", request_id=1)
    assert "secret" in caplog.text


async def test_a_dependency_may_tell_the_model_what_is_wrong() -> None:
    async def fails() -> str:
        raise ToolError("Ask for less.")

    assert await said(build(fails)) == "Ask for less."


async def test_an_http_error_of_the_function_itself_is_masked_as_ever() -> None:
    app = raising(HTTPException(401, "secret"), "tool", sync)
    assert await said(app) == "Tool x failed"


def strict(
    x_token: Annotated[str, Header()],
    x_count: Annotated[int, Header(le=9)],
    size: int,
    flavour: Annotated[str, Cookie(max_length=4)],
) -> str:
    return f"{x_token} {x_count} {size} {flavour}"


@every_era
@every_kind
async def test_what_is_wrong_with_the_http_request_is_told_in_words(
    kind: Kind, version: str
) -> None:
    app = App("tests")
    kind.register(app, strict)
    headers = {"x-count": "many", "cookie": "flavour=vanilla"}
    reply = await kind.ask(app, version, headers, path="/mcp?size=10")
    assert reply.status_code == httpx.codes.BAD_REQUEST
    assert reply.json() == error(
        -32602,
        "Invalid params: header x-token: missing; header x-count: input should be a "
        "valid integer; cookie flavour: string should have at most 4 characters",
        request_id=1,
    )


# Where there is no HTTP.


@every_kind
async def test_a_dependency_that_needs_no_request_works_without_http(
    kind: Kind,
) -> None:
    app = App("tests")
    kind.register(app, of_others)
    assert kind.read((await kind.tell(app))["result"]) == "sync, async generator"


def of_the_tasks(
    tasks: BackgroundTasks, response: Response, scopes: SecurityScopes
) -> str:
    response.headers["x-ours"] = "unseen"
    tasks.add_task(sync)
    return scopes.scope_str or "none"


async def test_what_is_no_part_of_the_request_is_there_without_http() -> None:
    told = await KINDS["tool"].tell(build(of_the_tasks))
    assert KINDS["tool"].read(told["result"]) == "none"


def deeper(request: Annotated[str, Depends(of_a_request)]) -> str:
    raise NotImplementedError(request)


def of_a_path(name: Annotated[str, PathParameter()]) -> str:
    raise NotImplementedError(name)


ASKING: list[tuple[str, Dependency]] = [
    ("the request", of_a_request),
    ("the connection", of_a_connection),
    ("a header", token),
    ("a cookie", of_a_cookie),
    ("the query", of_a_query),
    ("the path", of_a_path),
    ("a scheme", of_security),
    ("one that another asks for", deeper),
]


@every_kind
@pytest.mark.parametrize(
    "dependency", [pytest.param(dependency, id=name) for name, dependency in ASKING]
)
async def test_a_dependency_that_needs_the_request_says_so_without_http(
    dependency: Dependency, kind: Kind
) -> None:
    app = App("tests")
    kind.register(app, dependency)
    assert await kind.tell(app) == error(
        -32603,
        f"{kind.what} needs the HTTP request, and this message did not come over HTTP",
        request_id=1,
    )


# Overrides.


def replaced(x_other: Annotated[str, Header()] = "none") -> str:
    return f"replaced, {x_other}"


@every_kind
async def test_a_dependency_is_overridden(kind: Kind) -> None:
    app = App("tests")
    kind.register(app, token)
    app.dependency_overrides[token] = replaced
    reply = await kind.ask(app, headers={"x-other": "seen"})
    assert kind.read(result_of(reply)) == "replaced, seen"
    app.dependency_overrides.clear()
    assert (await kind.ask(app)).status_code == httpx.codes.BAD_REQUEST


async def test_a_dependency_of_a_dependency_is_overridden() -> None:
    app = build(of_others)
    app.dependency_overrides[sync] = coroutine
    assert await said(app) == "coroutine, async generator"


async def test_an_override_may_need_no_request_where_the_original_does() -> None:
    app = build(deeper)
    app.dependency_overrides[of_a_request] = sync
    app.dependency_overrides[deeper] = of_others
    told = await KINDS["tool"].tell(app)
    assert KINDS["tool"].read(told["result"]) == "sync, async generator"


async def test_an_override_may_need_the_request_where_the_original_does_not() -> None:
    app = build(of_others)
    app.dependency_overrides[sync] = of_a_request
    assert (
        "needs the HTTP request" in (await KINDS["tool"].tell(app))["error"]["message"]
    )


@pytest.mark.parametrize("embed", [included, mounted])
async def test_the_overrides_of_the_host_hold_too(
    embed: Callable[[App], FastAPI],
) -> None:
    app = build(of_others)
    host = embed(app)
    host.dependency_overrides[sync] = coroutine
    assert await said(host) == "coroutine, async generator"
    app.dependency_overrides[async_generator] = generator
    assert await said(host) == "coroutine, generator"


async def test_the_overrides_of_the_app_come_first() -> None:
    app = build(sync)
    host = FastAPI(dependencies=[Depends(sync)])
    host.include_router(app.router)
    host.dependency_overrides[sync] = coroutine
    app.dependency_overrides[sync] = generator
    assert await said(host) == "generator"


async def test_the_overrides_of_an_app_hold_for_what_it_includes() -> None:
    toolbox = Toolbox()
    toolbox.add_tool(annotated, name="x")
    app = App("tests")
    app.include(toolbox)
    assert await said(app) == "sync"
    app.dependency_overrides[sync] = coroutine
    assert await said(app) == "coroutine"


async def test_dependencies_of_the_host_and_of_a_handler_stand_beside_each_other() -> (
    None
):
    steps: Kept = []
    ours = Session(steps)

    async def theirs(request: Request) -> AsyncIterator[None]:
        steps.append("theirs opened")
        request.state.principal = "ada"
        yield
        steps.append("theirs closed")

    def both(
        name: Annotated[str, Depends(of_the_state)],
        opened: Annotated[Kept, Depends(ours.opened)],
    ) -> str:
        assert opened is steps
        return name

    host = FastAPI()
    host.include_router(
        build(both).router, prefix="/{tenant}", dependencies=[Depends(theirs)]
    )
    assert await said(host, "/books/mcp") == "ada"
    assert sorted(steps) == ["closed", "opened", "theirs closed", "theirs opened"]
    assert steps[:2] == ["theirs opened", "opened"]


async def test_a_part_of_the_path_of_the_host_is_filled_in() -> None:
    def of_the_prefix(tenant: Annotated[str, PathParameter()]) -> str:
        return tenant

    host = FastAPI()
    host.include_router(build(of_the_prefix).router, prefix="/{tenant}")
    assert await said(host, "/books/mcp") == "books"


# What is done with the answer.


@every_way
async def test_headers_are_those_of_the_answer(embed: Callable[[App], ASGIApp]) -> None:
    def sets(response: Response) -> str:
        response.headers["x-left"] = "3"
        response.set_cookie("flavour", "mint")
        response.headers["content-length"] = "7"
        response.headers["content-type"] = "text/html"
        return "set"

    reply = await ask(embed(build(sets)))
    assert result_of(reply)["content"][0]["text"] == "set"
    assert reply.headers["x-left"] == "3"
    assert reply.headers["set-cookie"].startswith("flavour=mint")
    assert reply.headers["content-type"] == "application/json"


async def test_tasks_of_a_failure_are_not_run() -> None:
    steps: Kept = []

    def adds(tasks: BackgroundTasks) -> str:
        tasks.add_task(steps.append, "task")
        return "added"

    assert await said(build(adds)) == "added"
    assert steps == ["task"]
    assert await said(raising(ValueError(), "tool", adds)) == "Tool x failed"
    assert steps == ["task"]


async def test_a_task_that_fails_is_logged_and_reaches_the_dependency(
    caplog: pytest.LogCaptureFixture,
) -> None:
    session = Session([])

    def fail() -> None:
        raise ValueError("late")

    def adds(
        tasks: BackgroundTasks, opened: Annotated[Any, Depends(session.opened)]
    ) -> str:
        tasks.add_task(fail)
        return str(opened)

    assert await said(build(adds)) == "['opened']"
    assert session.steps == ["opened", "ValueError", "closed"]
    assert "tool 'x': after the answer" in caplog.text


# What can't be filled in, and what it costs not to need it.


class Model(BaseModel):
    """What would be read from a body."""

    name: str


def of_the_body(model: Model) -> str:
    raise NotImplementedError(model)


def of_a_websocket(socket: WebSocket) -> str:
    raise NotImplementedError(socket)


def of_nothing_known(x: object = Depends("nothing")) -> str:  # type: ignore[arg-type]
    raise NotImplementedError(x)


def with_a_query(limit: Annotated[int, Query(le=9)] = 3) -> str:
    raise NotImplementedError(limit)


def with_a_path(name: str = PathParameter()) -> str:
    raise NotImplementedError(name)


def with_a_body(model: Annotated[Model, Body()]) -> str:
    raise NotImplementedError(model)


def with_a_form(name: Annotated[str, Form()]) -> str:
    raise NotImplementedError(name)


def with_a_file(data: Annotated[bytes, File()]) -> str:
    raise NotImplementedError(data)


def with_a_websocket(socket: WebSocket) -> str:
    raise NotImplementedError(socket)


def uncalled(value: Annotated[str, Depends]) -> str:
    raise NotImplementedError(value)


def uncalled_by_default(value: Any = Header) -> str:
    raise NotImplementedError(value)


def inside(value: Annotated[str, Depends(sync)] | None = None) -> str:
    raise NotImplementedError(value)


def deep_inside(values: list[dict[str, Alias]]) -> str:
    raise NotImplementedError(values)


def needs(dependency: Dependency) -> Callable[..., Any]:
    def x(value: Annotated[Any, Depends(dependency)]) -> str:
        raise NotImplementedError(value)

    return x


MARKED: Final = (
    "is marked as a part of an HTTP request; for an argument write Annotated[..., "
    "Field(...)] with pydantic's Field, and for a part of the URL take a Depends, "
    "whose function has that parameter"
)
INSIDE: Final = (
    "has a marker of FastAPI inside its annotation, where FastAPI does not look; "
    "write it around the whole: Annotated[T | None, Depends(f)]"
)
UNCALLED: Final = "has a marker of FastAPI that is not called: add ()"

REFUSED: list[tuple[str, Callable[..., Any], str]] = [
    ("a query", with_a_query, f"the parameter 'limit' {MARKED}"),
    ("a part of the path", with_a_path, f"the parameter 'name' {MARKED}"),
    ("a body", with_a_body, f"the parameter 'model' {MARKED}"),
    ("a form", with_a_form, f"the parameter 'name' {MARKED}"),
    ("a file", with_a_file, f"the parameter 'data' {MARKED}"),
    (
        "a WebSocket",
        with_a_websocket,
        "the parameter 'socket' is a WebSocket, over which no MCP comes",
    ),
    ("a marker that is not called", uncalled, f"the parameter 'value' {UNCALLED}"),
    ("the same, by default", uncalled_by_default, f"the parameter 'value' {UNCALLED}"),
    ("a marker in a union", inside, f"the parameter 'value' {INSIDE}"),
    ("a marker in an alias in a list", deep_inside, f"the parameter 'values' {INSIDE}"),
    (
        "the body in a dependency",
        needs(of_the_body),
        "the dependency 'of_the_body' takes 'model' from the body of the request, "
        "which is the MCP message; make it a parameter of the handler",
    ),
    (
        "a WebSocket in a dependency",
        needs(of_a_websocket),
        "the dependency 'of_a_websocket' takes a WebSocket, over which no MCP comes; "
        "take an HTTPConnection",
    ),
]


@pytest.mark.parametrize(
    ("function", "message"), [pytest.param(*row, id=name) for name, *row in REFUSED]
)
def test_what_can_not_be_filled_in_is_a_setup_error(
    function: Callable[..., Any], message: str
) -> None:
    with pytest.raises(SetupError) as caught:
        App("tests").add_tool(function, name="x")
    assert str(caught.value) == f"tool 'x': {message}"


def of_a_context(ctx: Context) -> str:
    raise NotImplementedError(ctx)


@pytest.mark.parametrize(
    ("function", "fault"),
    [
        (of_nothing_known, ".*nothing"),
        (
            needs(of_a_context),
            "one of them takes a Context, which the handler alone can have",
        ),
    ],
)
def test_what_fastapi_makes_no_sense_of_is_a_setup_error(
    function: Callable[..., Any], fault: str
) -> None:
    message = f"tool 'x': FastAPI can't work out its dependencies: {fault}"
    with pytest.raises(SetupError, match=message):
        App("tests").add_tool(function, name="x")


Json = TypeAliasType("Json", "dict[str, Json] | str")


def of_json(value: Json) -> str:
    raise NotImplementedError(value)


def test_an_annotation_may_be_made_of_itself() -> None:
    assert App("tests").add_tool(of_json).signature.dependencies is None


IMPORTS: Final = """
import sys
from mcpkit import App, Context
app = App("tests")
@app.tool
def x(ctx: Context, number: int = 3) -> str:
    return "done"
print("fastapi" in sys.modules)
from starlette.requests import Request
@app.tool
def y(request: Request) -> str:
    return "done"
print("fastapi" in sys.modules)
"""


def test_fastapi_is_loaded_for_those_who_need_it_alone() -> None:
    done = subprocess.run(  # noqa: S603  # the arguments are ours
        [sys.executable, "-c", IMPORTS],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == ["False", "True"]


def test_a_dependency_does_not_reach_the_log_of_a_success(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG, "mcpkit")
    assert asyncio.run(said(build(sync))) == "sync"
    assert [record.name for record in caplog.records if record.name == "mcpkit"] == []
