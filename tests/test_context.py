"""What a handler is given: the request that it serves, and no other."""

import asyncio
import contextvars
import doctest
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

import mcpkit.context
from mcpkit import App, Context, Response, dispatch
from mcpkit.protocol.headers import VERSION
from tests.calls import (
    EVERY,
    V_2025_03_26,
    V_2025_11_25,
    call,
    call_tool,
    request,
    text,
)
from tests.wire import MODERN

user: contextvars.ContextVar[str] = contextvars.ContextVar("user", default="nobody")


@dataclass
class User:
    """Who calls."""

    id: Any
    scopes: list[str] | None = field(default_factory=list)


def test_the_examples_in_the_docstrings_run() -> None:
    assert doctest.testmod(mcpkit.context).failed == 0


async def seen(
    look: Callable[[Context], Any],
    *,
    headers: Mapping[bytes, bytes] | None = None,
    principal: Any = None,
    scope: Mapping[str, Any] | None = None,
    **of_request: Any,
) -> Any:
    """Return what a tool sees of the request that it serves."""
    app = App("tests")
    found = []

    @app.tool
    async def x(ctx: Context) -> None:
        found.append(look(ctx))

    message = request("tools/call", name="x", **of_request)
    replied = await dispatch(
        message, app, headers=headers, principal=principal, scope=scope
    )
    assert isinstance(replied, Response)
    assert replied.message["result"]["isError"] is False, replied.message
    (value,) = found
    return value


async def test_a_context_tells_of_its_request() -> None:
    def look(ctx: Context) -> Any:
        return ctx.request_id, ctx.method, ctx.params["name"], ctx.era, ctx.headers

    assert await seen(look) == (1, "tools/call", "x", "modern", None)
    headers = {VERSION: V_2025_11_25.encode()}
    assert await seen(look, at=V_2025_11_25, headers=headers) == (
        1,
        "tools/call",
        "x",
        "legacy",
        headers,
    )


@pytest.mark.parametrize("version", EVERY)
async def test_a_context_tells_the_revision(version: str) -> None:
    headers = None if version == MODERN else {VERSION: version.encode()}
    found = await seen(lambda ctx: ctx.revision.version, at=version, headers=headers)
    assert found == version


async def test_a_request_without_a_version_is_of_the_first_one() -> None:
    """Spec 2025-11-25, basic/transports: Protocol Version Header."""
    found = await seen(lambda ctx: ctx.revision.version, at=V_2025_11_25)
    assert found == V_2025_03_26


INFO = {"name": "client", "version": "1"}
META = {
    "io.modelcontextprotocol/clientInfo": INFO,
    "io.modelcontextprotocol/logLevel": "error",
    "com.example/a": 1,
}


async def test_a_context_tells_of_its_client() -> None:
    """Spec 2026-07-28, basic/index: `_meta`."""

    def look(ctx: Context) -> Any:
        return (
            ctx.client_info,
            ctx.client_capabilities,
            ctx.log_level,
            ctx.meta.get("com.example/a"),
        )

    client: dict[str, Any] = {"roots": {}}
    assert await seen(look, client=client, _meta=META) == (INFO, client, "error", 1)
    assert await seen(look) == (None, {}, None, None)
    assert await seen(look, at=V_2025_11_25) == (None, {}, None, None)


PRINCIPALS = [
    # id, principal, its id, its scopes
    ("nobody", None, None, frozenset()),
    ("a name", "ada", "ada", frozenset()),
    ("an empty name", "", "", frozenset()),
    ("an object", User("ada", ["a", "b"]), "ada", frozenset({"a", "b"})),
    ("a number as id", User(5), "5", frozenset()),
    ("no scopes", User("ada", None), "ada", frozenset()),
]


@pytest.mark.parametrize(
    ("principal", "identity", "scopes"),
    [pytest.param(*row, id=name) for name, *row in PRINCIPALS],
)
async def test_a_context_tells_who_calls(
    principal: Any, identity: str | None, scopes: frozenset[str]
) -> None:
    found = await seen(
        lambda ctx: (ctx.principal, ctx.principal_id, ctx.scopes), principal=principal
    )
    assert found == (principal, identity, scopes)


@pytest.mark.parametrize("principal", [object(), User(None), 5])
def test_a_principal_without_an_id_is_an_error(principal: Any) -> None:
    with pytest.raises(TypeError) as caught:
        mcpkit.context.principal_id(principal)
    assert str(caught.value) == (
        "a principal is a string, an object with an id, or None, not "
        f"{type(principal).__name__}"
    )


async def test_a_context_holds_the_state_of_the_app() -> None:
    app = App("tests")
    app.state = {"database": 1}

    @app.tool
    def x(ctx: Context) -> str:
        return str(ctx.state)

    assert await call_tool(app, "x") == text("{'database': 1}")


async def test_the_http_request_is_there_over_http() -> None:
    scope = {
        "type": "http",
        "method": "POST",
        "path": "/mcp",
        "query_string": b"a=1",
        "headers": [(b"x-user", b"ada")],
    }

    def look(ctx: Context) -> Any:
        return ctx.request.headers["x-user"], dict(ctx.request.query_params)

    assert await seen(look, scope=scope) == ("ada", {"a": "1"})


async def test_the_http_request_is_an_error_without_http() -> None:
    def look(ctx: Context) -> str:
        with pytest.raises(RuntimeError) as caught:
            _ = ctx.request
        return str(caught.value)

    assert await seen(look) == "this message did not come over HTTP"


def kinds() -> App:
    """Make an app that says who calls, in every kind of handler."""
    app = App("tests")

    @app.tool
    async def coroutine() -> str:
        return user.get()

    @app.tool
    def function() -> str:
        return user.get()

    @app.resource("a://x")
    def resource() -> str:
        return user.get()

    @app.prompt
    def prompt() -> str:
        return user.get()

    return app


KINDS = [
    # method, params, where the answer is
    ("tools/call", {"name": "coroutine"}, lambda r: r["content"][0]["text"]),
    ("tools/call", {"name": "function"}, lambda r: r["content"][0]["text"]),
    ("resources/read", {"uri": "a://x"}, lambda r: r["contents"][0]["text"]),
    ("prompts/get", {"name": "prompt"}, lambda r: r["messages"][0]["content"]["text"]),
]


@pytest.mark.parametrize(("method", "params", "answer"), KINDS)
async def test_context_variables_of_the_caller_are_visible(
    method: str, params: dict[str, Any], answer: Callable[[Any], str]
) -> None:
    """CTX-03."""
    app = kinds()

    async def ask(name: str) -> str:
        user.set(name)
        return answer(await call(app, method, **params))

    names = [f"user {number}" for number in range(20)]
    assert await asyncio.gather(*(ask(name) for name in names)) == names


async def test_two_hundred_requests_at_once_see_their_own_caller() -> None:
    """CTX-01."""
    app = App("tests")
    everyone = asyncio.Barrier(200)

    @app.tool
    async def who(ctx: Context) -> list[str | None]:
        first = ctx.principal_id
        await everyone.wait()
        in_thread = await asyncio.to_thread(lambda: ctx.principal_id)

        async def child() -> str | None:
            return ctx.principal_id

        async with asyncio.TaskGroup() as group:
            task = group.create_task(child())
        return [first, in_thread, task.result(), ctx.principal_id]

    names = [f"user {number}" for number in range(200)]
    answers = await asyncio.gather(*(call_tool(app, "who", by=name) for name in names))
    assert [answer["structuredContent"] for answer in answers] == [
        [name] * 4 for name in names
    ]


async def test_a_context_outlives_its_request() -> None:
    """CTX-04."""
    app = App("tests")
    kept = []

    @app.tool
    def keep(ctx: Context) -> None:
        kept.append(ctx)

    await call_tool(app, "keep", by="ada")
    await call_tool(app, "keep", by="bob")
    assert [ctx.principal_id for ctx in kept] == ["ada", "bob"]
    assert [ctx.client_capabilities for ctx in kept] == [{}, {}]
