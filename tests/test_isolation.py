"""What surrounds a request is seen by its handler, and by no other.

What is tested here holds on the newest FastAPI and on the oldest one that
mcpkit allows: `tests/oldest` runs this file there.
"""

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Annotated, Any, Final

import httpx
import pytest
from fastapi import Depends, FastAPI, Header, Request
from starlette.types import ASGIApp, Receive, Scope, Send

from mcpkit import App, Context
from tests.http.client import (
    JSON_HEADERS,
    LEGACY,
    MODERN,
    call,
    initialize,
    request,
    result_of,
)
from tests.http.serving import served

PATIENCE: Final = 60
MANY: Final = 200
THREADS: Final = 40

user: ContextVar[str] = ContextVar("user", default="nobody")
place: ContextVar[str] = ContextVar("place", default="nowhere")


def seen() -> str:
    return f"{user.get()}, {place.get()}"


@dataclass(frozen=True)
class SetsUser:
    """Middleware that sets a context variable, and a principal, from a header."""

    app: ASGIApp

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        headers = dict(scope.get("headers", ()))
        if b"x-user" in headers:
            name = headers[b"x-user"].decode()
            user.set(name)
            scope.setdefault("state", {})["principal"] = name
        await self.app(scope, receive, send)


@asynccontextmanager
async def here(app: App) -> AsyncIterator[None]:
    """Set a context variable for the life of an app."""
    assert app.name == "isolated"
    place.set("here")
    yield


async def seen_async() -> str:
    return seen()


async def seen_in_an_async_generator() -> AsyncIterator[str]:
    yield seen()


def seen_in_a_generator() -> Iterator[str]:
    yield seen()


def register(app: App) -> dict[str, tuple[str, Mapping[str, Any]]]:
    """Register what says what it sees, and return how each is called, by name."""
    app.add_tool(seen_async, name="async tool")
    app.add_tool(seen, name="sync tool")
    app.add_tool(seen, name="sync tool on the loop", thread=False)
    app.add_resource("a://async", seen_async)
    app.add_resource("a://sync", seen)

    @app.resource("b://{kind}")
    def template(kind: str) -> str:
        assert kind == "sync"
        return seen()

    @app.prompt(name="async prompt")
    async def async_prompt(name: str = "") -> str:
        assert not name
        return seen()

    @app.prompt(name="sync prompt")
    def sync_prompt(name: str = "") -> str:
        assert not name
        return seen()

    @app.complete("async prompt", "name")
    async def async_completion(value: str) -> list[str]:
        return [value + seen()]

    @app.complete("sync prompt", "name")
    def sync_completion(value: str) -> list[str]:
        return [value + seen()]

    for name, dependency in DEPENDENCIES.items():

        async def depends(given: Annotated[str, Depends(dependency)]) -> str:
            assert given == seen()
            return given

        app.add_tool(depends, name=name)

    tools = ("async tool", "sync tool", "sync tool on the loop", *DEPENDENCIES)
    uris = ("a://async", "a://sync", "b://sync")
    prompts = ("async prompt", "sync prompt")
    return {
        **{name: ("tools/call", {"name": name}) for name in tools},
        **{uri: ("resources/read", {"uri": uri}) for uri in uris},
        **{name: ("prompts/get", {"name": name}) for name in prompts},
        **{
            f"completion of {name}": (
                "completion/complete",
                {
                    "ref": {"type": "ref/prompt", "name": name},
                    "argument": {"name": "name", "value": ""},
                },
            )
            for name in prompts
        },
    }


DEPENDENCIES: Final[Mapping[str, Callable[[], Any]]] = {
    "sync dependency": seen,
    "async dependency": seen_async,
    "sync dependency with yield": seen_in_a_generator,
    "async dependency with yield": seen_in_an_async_generator,
}
CALLS: Final = register(App("names"))


def said(result: Any) -> str:
    """Return the text of a result of any kind."""
    match result:
        case {"content": [{"text": text}]} | {"contents": [{"text": text}]}:
            return str(text)
        case {"messages": [{"content": {"text": text}}]}:
            return str(text)
        case {"completion": {"values": [text]}}:
            return str(text)
        case _:
            raise AssertionError(result)


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
@pytest.mark.parametrize("version", [MODERN, LEGACY])
@pytest.mark.parametrize("name", CALLS)
async def test_context_variables_are_visible_in_what_is_called(
    name: str, version: str, embed: Callable[[App], ASGIApp]
) -> None:
    """CTX-03."""
    app = App("isolated", lifespan=here)
    method, params = register(app)[name]
    host = SetsUser(embed(app))
    reply = await call(host, version, method, params, headers={"x-user": "ada"})
    assert said(result_of(reply)) == "ada, here"


async def post(client: httpx.AsyncClient, name: str, who: str, version: str) -> str:
    method, params = CALLS[name]
    message, headers = request(version, method, params)
    reply = await client.post("/mcp", json=message, headers={**headers, "x-user": who})
    return said(result_of(reply))


@asynccontextmanager
async def clients(port: int) -> AsyncIterator[httpx.AsyncClient]:
    """Open as many connections as there are calls at once."""
    limits = httpx.Limits(max_connections=MANY)
    url = f"http://localhost:{port}"
    async with asyncio.timeout(PATIENCE):
        async with httpx.AsyncClient(
            base_url=url, limits=limits, timeout=PATIENCE
        ) as client:
            yield client


@every_way
async def test_two_hundred_calls_at_once_see_their_own_variables(
    embed: Callable[[App], ASGIApp],
) -> None:
    """CTX-01, CTX-03: every kind, and both eras, side by side."""
    app = App("isolated", lifespan=here)
    register(app)
    names = list(CALLS)
    with served(SetsUser(embed(app)), "h11") as port:
        async with clients(port) as client:
            answers = await asyncio.gather(
                *(
                    post(
                        client,
                        names[number % len(names)],
                        f"user {number}",
                        (MODERN, LEGACY)[number % 2],
                    )
                    for number in range(MANY)
                )
            )
    assert answers == [f"user {number}, here" for number in range(MANY)]


@dataclass
class Gathering:
    """Lets nobody leave before all have come."""

    expected: int
    came: int = 0
    all_came: asyncio.Event = field(default_factory=asyncio.Event)

    async def meet(self) -> None:
        """Wait for all the others."""
        self.came += 1
        if self.came == self.expected:
            self.all_came.set()
        await self.all_came.wait()


def bearer(authorization: Annotated[str, Header()]) -> str:
    return authorization


async def who_is_asked(
    ctx: Context,
    request: Request,
    header: Annotated[str, Depends(bearer)],
) -> list[str]:
    """Say who calls, after all that there is to read it from."""
    token = ctx.request.headers["authorization"]
    assert ctx.headers is not None
    readings = [
        user.get(),
        str(ctx.principal),
        str(ctx.params["_meta"]["who"]),
        request.state.principal,
    ]
    assert {token, header, ctx.headers[b"authorization"].decode()} == {header}
    return [*readings, header]


@every_way
async def test_two_hundred_calls_that_meet_see_their_own_caller_throughout(
    embed: Callable[[App], ASGIApp],
) -> None:
    """CTX-01: after two waits, in a thread and in a task of its own."""
    app = App("isolated")
    begin, end = Gathering(MANY), Gathering(MANY)

    @app.tool
    async def who(
        ctx: Context, request: Request, header: Annotated[str, Depends(bearer)]
    ) -> list[list[str]]:
        first = await who_is_asked(ctx, request, header)
        await begin.meet()
        second = await who_is_asked(ctx, request, header)
        await end.meet()
        child = await asyncio.create_task(who_is_asked(ctx, request, header))
        thread = await asyncio.to_thread(
            lambda: [user.get(), ctx.request.headers["authorization"]]
        )
        assert thread == [child[0], child[-1]]
        return [first, second, child]

    async def ask(client: httpx.AsyncClient, number: int) -> Any:
        name = f"user {number}"
        params = {"name": "who", "_meta": {"who": name}}
        message, headers = request(MODERN, "tools/call", {"name": "who"})
        message["params"]["_meta"].update(params["_meta"])
        headers |= {"x-user": name, "authorization": f"Bearer {number}"}
        reply = await client.post("/mcp", json=message, headers=headers)
        return json.loads(said(result_of(reply)))

    with served(SetsUser(embed(app)), "h11") as port:
        async with clients(port) as client:
            answers = await asyncio.gather(*(ask(client, n) for n in range(MANY)))
    for number, answer in enumerate(answers):
        reading = [f"user {number}"] * 4 + [f"Bearer {number}"]
        assert answer == [reading] * 3


async def test_two_hundred_calls_in_threads_see_their_own_caller() -> None:
    """CTX-01: as many at once as there are threads."""
    app = App("isolated", threads=THREADS)
    meet = threading.Barrier(THREADS)

    @app.tool
    def who(ctx: Context) -> list[str]:
        before = [user.get(), str(ctx.principal)]
        meet.wait(PATIENCE)
        return [*before, user.get(), str(ctx.principal)]

    async def ask(client: httpx.AsyncClient, number: int) -> Any:
        message, headers = request(MODERN, "tools/call", {"name": "who"})
        headers["x-user"] = f"user {number}"
        reply = await client.post("/mcp", json=message, headers=headers)
        return json.loads(said(result_of(reply)))

    with served(SetsUser(app), "h11") as port:
        async with clients(port) as client:
            answers = await asyncio.gather(*(ask(client, n) for n in range(MANY)))
    assert answers == [[f"user {number}"] * 4 for number in range(MANY)]


async def test_a_session_sees_the_token_of_the_request_not_of_its_opening() -> None:
    """CTX-01."""
    app = App("isolated", principal=lambda _: "ada")
    meeting = Gathering(MANY)

    @app.tool
    async def token(ctx: Context, given: Annotated[str, Depends(bearer)]) -> str:
        await meeting.meet()
        assert ctx.session is not None
        assert ctx.request.headers["authorization"] == given
        return given

    async def ask(client: httpx.AsyncClient, session: str, number: int) -> str:
        message, headers = request(LEGACY, "tools/call", {"name": "token"})
        headers |= {"mcp-session-id": session, "authorization": f"Bearer {number}"}
        reply = await client.post("/mcp", json=message, headers=headers)
        return said(result_of(reply))

    with served(app, "h11") as port:
        async with clients(port) as client:
            headers = {**JSON_HEADERS, "authorization": "Bearer of the opening"}
            opened = await client.post("/mcp", json=initialize(), headers=headers)
            session = opened.headers["mcp-session-id"]
            answers = await asyncio.gather(
                *(ask(client, session, number) for number in range(MANY))
            )
    assert answers == [f"Bearer {number}" for number in range(MANY)]


@pytest.mark.parametrize("thread", [True, False])
async def test_what_a_call_sets_is_gone_with_it(
    thread: bool,  # noqa: FBT001  # a column of the table
) -> None:
    """CTX-01: over one connection, one request after another."""
    app = App("isolated", threads=1)

    def session(request: Request) -> Iterator[str]:
        before = f"{seen()}, {getattr(request.state, 'mark', 'unmarked')}"
        request.state.mark = "marked"
        user.set("the dependency's")
        yield before

    async def marks(request: Request) -> None:
        user.set("the other dependency's")
        place.set("there")
        assert request.state.mark == "marked"

    def x(
        before: Annotated[str, Depends(session)],
        marked: Annotated[None, Depends(marks)],
    ) -> str:
        assert marked is None
        user.set("the tool's")
        return before

    app.add_tool(x, thread=thread)
    message, headers = request(MODERN, "tools/call", {"name": "x"})
    with served(app, "h11") as port:
        async with clients(port) as client:
            replies = [
                await client.post("/mcp", json=message, headers=headers)
                for _ in range(3)
            ]
    answers = [said(result_of(reply)) for reply in replies]
    assert answers == ["nobody, nowhere, unmarked"] * 3


async def test_a_variable_of_a_request_comes_before_that_of_the_lifespan() -> None:
    @asynccontextmanager
    async def sets_both(_: App) -> AsyncIterator[None]:
        user.set("the lifespan's")
        place.set("here")
        yield

    app = App("isolated", lifespan=sets_both)
    app.add_tool(seen, name="seen")
    host = SetsUser(app)
    arguments = {"name": "seen"}

    async def ask(**headers: str) -> str:
        # In a task of its own, as servers serve each request.
        asking = call(host, MODERN, "tools/call", arguments, headers=headers)
        return said(result_of(await asyncio.create_task(asking)))

    assert await ask(**{"x-user": "ada"}) == "ada, here"
    assert await ask() == "the lifespan's, here"


async def test_a_lifespan_does_not_see_the_request_that_enters_it() -> None:
    found: list[str] = []

    @asynccontextmanager
    async def looks(_: App) -> AsyncIterator[None]:
        found.append(seen())
        yield

    app = App("isolated", lifespan=looks)
    app.add_tool(seen, name="seen")
    headers = {"x-user": "ada"}
    reply = await call(
        SetsUser(app), MODERN, "tools/call", {"name": "seen"}, headers=headers
    )
    assert said(result_of(reply)) == "ada, nowhere"
    assert found == ["nobody, nowhere"]


def test_an_app_serves_one_event_loop_after_another() -> None:
    """CTX-04."""
    app = App("isolated", lifespan=here)
    register(app)
    host = SetsUser(mounted(app))

    async def ask() -> list[str]:
        return [
            said(result_of(await call(host, MODERN, *CALLS[name]))) for name in CALLS
        ]

    for _ in range(2):
        assert asyncio.run(ask()) == ["nobody, here"] * len(CALLS)


async def test_a_context_that_is_kept_tells_what_it_told(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """CTX-04: used after the end of its request, in another thread and loop."""
    app = App("isolated")
    kept: list[Context] = []
    late: list[Awaitable[Any]] = []
    ended = asyncio.Event()

    def told(ctx: Context) -> dict[str, Any]:
        return {
            "principal": ctx.principal,
            "scopes": ctx.scopes,
            "era": ctx.era,
            "meta": dict(ctx.meta),
            "client": ctx.client_info,
            "capabilities": ctx.client_capabilities,
            "level": ctx.log_level,
            "answers": ctx.input.responses,
            "user": ctx.request.headers["x-user"],
            "url": str(ctx.request.url),
        }

    @app.tool
    async def keep(
        ctx: Context, other: Annotated[str, Depends(seen_in_an_async_generator)]
    ) -> str:
        async def later() -> dict[str, Any]:
            await ended.wait()
            return told(ctx)

        kept.append(ctx)
        late.append(asyncio.create_task(later()))
        return other

    headers = {"x-user": "ada"}
    host = SetsUser(app)
    reply = await call(host, MODERN, "tools/call", {"name": "keep"}, headers=headers)
    assert said(result_of(reply)) == "ada, nowhere"
    ended.set()
    first = await late[0]
    assert (first["principal"], first["user"]) == ("ada", "ada")
    assert (
        await asyncio.to_thread(lambda: asyncio.run(asyncio.to_thread(told, kept[0])))
        == first
    )
    assert caplog.records == []
