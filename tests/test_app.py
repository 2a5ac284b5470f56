"""The object that a developer decorates."""

import doctest
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

import mcpkit.app
from mcpkit import App, Cache, Context, SetupError
from tests.calls import call, call_tool, text


def test_the_examples_in_the_docstrings_run() -> None:
    assert doctest.testmod(mcpkit.app).failed == 0


def of_nothing() -> str:
    return "x"


def of_isbn(isbn: str) -> str:
    return isbn


def of_value(value: str) -> list[str]:
    return [value]


Decorate = Callable[[App, Any], Any]

DECORATORS: list[tuple[str, Any, Decorate]] = [
    # id, function, how it is decorated
    ("DEC-06 @app.tool", of_nothing, lambda app, f: app.tool(f)),
    ("DEC-06 @app.tool()", of_nothing, lambda app, f: app.tool()(f)),
    ("@app.tool(...)", of_nothing, lambda app, f: app.tool(name="y", title="Y")(f)),
    ("@app.prompt", of_nothing, lambda app, f: app.prompt(f)),
    ("@app.prompt()", of_nothing, lambda app, f: app.prompt()(f)),
    ("@app.prompt(...)", of_nothing, lambda app, f: app.prompt(name="y")(f)),
    ("@app.resource(uri)", of_nothing, lambda app, f: app.resource("a://b")(f)),
    (
        "@app.resource(uri, ...)",
        of_nothing,
        lambda app, f: app.resource("a://b", name="y")(f),
    ),
    ("a template", of_isbn, lambda app, f: app.resource("a://{isbn}")(f)),
    ("@app.complete", of_value, lambda app, f: app.complete("x", "y")(f)),
]


def table(rows: list[Any]) -> list[Any]:
    return [pytest.param(*row, id=name) for name, *row in rows]


@pytest.mark.parametrize(("function", "decorate"), table(DECORATORS))
def test_a_decorated_function_is_still_that_function(
    function: Any, decorate: Decorate
) -> None:
    """DEC-06."""
    assert decorate(App("tests"), function) is function


OPTIONS: dict[str, Any] = {
    "name": "y",
    "title": "Y",
    "description": "Says y.",
    "icons": [{"src": "https://example.com/a.png"}],
    "meta": {"com.example/a": 1},
    "scopes": ["a"],
    "thread": False,
}
HINTS: dict[str, Any] = {"annotations": {"readOnlyHint": True}}
READ: dict[str, Any] = {
    "mime_type": "text/css",
    "annotations": {"priority": 1},
    "size": 3,
    "ttl_ms": 5,
    "cache_scope": "private",
}

SUGAR: list[tuple[str, Decorate, Decorate]] = [
    # id, by decorator, by hand
    (
        "a tool",
        lambda app, f: app.tool(**OPTIONS, **HINTS)(f),
        lambda app, f: app.add_tool(f, **OPTIONS, **HINTS),
    ),
    (
        "a prompt",
        lambda app, f: app.prompt(**OPTIONS)(f),
        lambda app, f: app.add_prompt(f, **OPTIONS),
    ),
    (
        "a resource",
        lambda app, f: app.resource("a://b", **OPTIONS, **READ)(f),
        lambda app, f: app.add_resource("a://b", f, **OPTIONS, **READ),
    ),
]


def registered(app: App) -> list[Any]:
    registry = app.registry
    kinds = (registry.tools, registry.resources, registry.prompts)
    return [component for kind in kinds for component in kind.values()]


@pytest.mark.parametrize(("decorate", "add"), table(SUGAR))
def test_a_decorator_is_sugar(decorate: Decorate, add: Decorate) -> None:
    by_decorator, by_hand = App("tests"), App("tests")
    decorate(by_decorator, of_nothing)
    returned = add(by_hand, of_nothing)
    (decorated,) = registered(by_decorator)
    (added,) = registered(by_hand)
    assert added is returned
    assert decorated.wire == added.wire
    assert (decorated.name, decorated.scopes, decorated.thread) == (
        "y",
        frozenset({"a"}),
        False,
    )
    assert (added.name, added.scopes, added.thread) == ("y", frozenset({"a"}), False)


def test_completions_are_added_by_decorator_and_by_hand() -> None:
    app = App("tests")
    app.complete("x", "y", thread=False)(of_value)
    app.add_completion("x", "z", of_value, thread=False)
    assert [item.thread for item in app.registry.completions.values()] == [False, False]


async def test_one_function_may_be_registered_several_times() -> None:
    app = App("tests")

    @app.tool
    @app.tool(name="same")
    @app.prompt
    @app.resource("a://b")
    def say() -> str:
        return "x"

    assert say() == "x"
    assert await call_tool(app, "say") == await call_tool(app, "same") == text("x")


async def test_what_is_registered_while_serving_serves_at_once() -> None:
    app = App("tests")

    @app.tool
    async def learn(name: str) -> str:
        app.add_tool(of_nothing, name=name)
        return "learned"

    assert await call_tool(app, "learn", {"name": "y"}) == text("learned")
    assert await call_tool(app, "y") == text("x")


async def generator(_: App) -> AsyncIterator[None]:
    yield


IMPOSSIBLE: list[tuple[str, dict[str, Any], str]] = [
    # id, options, the whole message
    ("no name", {"name": ""}, "an app needs a name: App('bookshop'), not ''"),
    (
        "a path without a slash",
        {"path": "mcp"},
        "path starts with a slash, as in '/mcp', not 'mcp'",
    ),
    ("no body", {"max_body": 0}, "max_body is one or more, not 0"),
    ("no eras", {"eras": []}, "eras are some of ['legacy', 'modern'], not frozenset()"),
    (
        "an unknown era",
        {"eras": ["future"]},
        "eras are some of ['legacy', 'modern'], not frozenset({'future'})",
    ),
    ("a body in words", {"max_body": "10"}, "max_body is one or more, not '10'"),
    ("a page in words", {"page_size": "10"}, "page_size is one or more, not '10'"),
    ("threads in words", {"threads": "10"}, "threads is one or more, not '10'"),
    ("a number for a version", {"version": 1}, "version is a string, not 1"),
    ("a number for a title", {"title": 5}, "title is a string, not 5"),
    (
        "a lifespan without its decorator",
        {"lifespan": generator},
        "lifespan 'generator' is a generator: decorate it with "
        "contextlib.asynccontextmanager",
    ),
    (
        "cache hints in a dict",
        {"cache": {"tools/list": {"ttl_ms": 1}}},
        "cache: 'tools/list' needs a Cache, not {'ttl_ms': 1}",
    ),
    ("an empty page", {"page_size": 0}, "page_size is one or more, not 0"),
    ("a negative time", {"ttl_ms": -1}, "ttl_ms is an integer of zero or more, not -1"),
    (
        "half a millisecond",
        {"ttl_ms": 0.5},
        "ttl_ms is an integer of zero or more, not 0.5",
    ),
    (
        "a truth as time",
        {"ttl_ms": True},
        "ttl_ms is an integer of zero or more, not True",
    ),
    (
        "an unknown cache scope",
        {"cache_scope": "shared"},
        'scope is "private" or "public", not \'shared\'',
    ),
    (
        "hints for a method that has none",
        {"cache": {"tools/call": Cache(ttl_ms=1, scope="private")}},
        "cache: 'tools/call' is none of prompts/list, resources/list, resources/read, "
        "resources/templates/list, server/discover, tools/list",
    ),
    (
        "a short key",
        {"secret_key": "secret"},
        "a key in secret_key or MCPKIT_SECRET_KEY needs at least 32 bytes; "
        "python -c 'import secrets; print(secrets.token_urlsafe(32))' makes one",
    ),
    (
        "one short key of two",
        {"secret_key": ["k" * 32, b"short"]},
        "a key in secret_key or MCPKIT_SECRET_KEY needs at least 32 bytes; "
        "python -c 'import secrets; print(secrets.token_urlsafe(32))' makes one",
    ),
]


@pytest.mark.parametrize(("options", "message"), table(IMPOSSIBLE))
def test_an_option_that_cannot_work_is_a_setup_error(
    options: dict[str, Any], message: str
) -> None:
    with pytest.raises(SetupError) as caught:
        App(**{"name": "tests", **options})
    assert str(caught.value) == message


async def test_cache_hints_are_set_by_method() -> None:
    """Spec 2026-07-28, server/utilities/caching."""
    app = App(
        "tests",
        ttl_ms=5,
        cache_scope="public",
        cache={"tools/list": Cache(ttl_ms=7, scope="private")},
    )
    app.add_tool(of_nothing)
    app.add_prompt(of_nothing)
    tools, prompts = await call(app, "tools/list"), await call(app, "prompts/list")
    assert (tools["ttlMs"], tools["cacheScope"]) == (7, "private")
    assert (prompts["ttlMs"], prompts["cacheScope"]) == (5, "public")


async def test_a_key_comes_from_the_environment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Ours: the first key seals, and all of them open."""

    async def cursor_of(app: App, cursor: str | None = None) -> Any:
        return (await call(app, "tools/list", cursor=cursor)).get("nextCursor")

    def paged() -> App:
        app = App("tests", page_size=1)
        for name in "abc":
            app.add_tool(of_nothing, name=name)
        return app

    old, new = "o" * 32, "n" * 32
    monkeypatch.setenv("MCPKIT_SECRET_KEY", old)
    first = await cursor_of(paged())
    monkeypatch.setenv("MCPKIT_SECRET_KEY", f" {new} , {old} ,")
    rotated = paged()
    assert await cursor_of(rotated) != first
    assert await cursor_of(rotated, first) == await cursor_of(
        rotated, await cursor_of(rotated)
    )
    monkeypatch.setenv("MCPKIT_SECRET_KEY", new)
    assert await cursor_of(paged(), first) is None
    monkeypatch.delenv("MCPKIT_SECRET_KEY")
    assert await cursor_of(paged()) != await cursor_of(paged())


async def asgi(app: App, scope: dict[str, Any], *received: str) -> list[dict[str, Any]]:
    """Run an app on a scope, and return what it sends."""
    sent: list[dict[str, Any]] = []
    messages = iter(received)

    async def receive() -> dict[str, Any]:
        return {"type": next(messages)}

    async def send(message: Any) -> None:
        sent.append(message)

    await app(scope, receive, send)
    return sent


LIFESPAN = ("lifespan.startup", "lifespan.shutdown")


async def test_the_lifespan_is_entered_and_left_with_the_server() -> None:
    """Spec ASGI, lifespan."""
    events = []

    @asynccontextmanager
    async def lifespan(app: App) -> AsyncIterator[str]:
        events.append("entered")
        yield f"state of {app.name}"
        events.append("left")

    app = App("tests", lifespan=lifespan)

    @app.tool
    def state(ctx: Context) -> str:
        return str(ctx.state)

    sent = await asgi(app, {"type": "lifespan"}, *LIFESPAN)
    assert [message["type"] for message in sent] == [
        "lifespan.startup.complete",
        "lifespan.shutdown.complete",
    ]
    assert events == ["entered", "left"]
    assert await call_tool(app, "state") == text("state of tests")


async def test_an_app_without_a_lifespan_starts_too() -> None:
    sent = await asgi(App("tests"), {"type": "lifespan"}, *LIFESPAN)
    assert [message["type"] for message in sent] == [
        "lifespan.startup.complete",
        "lifespan.shutdown.complete",
    ]


async def test_a_websocket_is_closed() -> None:
    sent = await asgi(App("tests"), {"type": "websocket"})
    assert sent == [{"type": "websocket.close", "code": 1000}]
