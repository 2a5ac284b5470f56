"""What only some callers see: lists and calls obey alike.

Ours: what a caller does not see is answered as if it did not exist.
"""

import asyncio
import logging
import operator
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Annotated, Any

import pytest

from mcpkit import App, Cache, Context, Header, Result, SetupError, Toolbox, dispatch
from mcpkit.protocol.content import resource_contents
from mcpkit.protocol.headers import METHOD, NAME, VERSION
from mcpkit.registry import MAX_ANSWERS
from tests.calls import EVERY, call, call_tool, reply, request, text
from tests.wire import MODERN


@dataclass(frozen=True)
class User:
    """Who calls."""

    id: str
    staff: bool = False
    scopes: frozenset[str] = field(default_factory=frozenset)


ADA = User("ada", staff=True)
BOB = User("bob")


def is_staff(caller: User | None) -> bool:
    return caller is not None and caller.staff


def table(rows: list[Any]) -> list[Any]:
    return [pytest.param(*row, id=name) for name, *row in rows]


def of_nothing() -> str:
    return "x"


def of_value(value: str) -> list[str]:
    return [value]


def add_open(app: Toolbox) -> None:
    """Register what everybody sees."""
    app.add_tool(of_nothing, name="search")
    app.add_resource("a://open", of_nothing, name="open")
    app.add_resource("a://open/{value}", of_value, name="opens")
    app.add_prompt(lambda title: title, name="review")
    app.add_completion("review", "title", of_value)


def add_secret(app: Toolbox, **options: Any) -> None:
    """Register what only some see, under names that are close to the others."""
    app.add_tool(lambda number: f"{number}", name="searches", **options)
    app.add_resource("a://secret", of_nothing, name="secret", **options)
    app.add_resource("a://secret/{value}", of_value, name="secrets", **options)
    app.add_prompt(lambda title: title, name="reviews", **options)
    app.add_completion("reviews", "title", of_value)
    app.add_completion("a://secret/{value}", "value", of_value)


def shop(**options: Any) -> App:
    app = App("shop", secret_key="k" * 32, **options)
    add_open(app)
    add_secret(app, visible=is_staff)
    return app


LISTS = [
    # method, the key of its list, what everybody sees, what the staff sees
    ("tools/list", "tools", ["search"], ["searches"]),
    ("resources/list", "resources", ["open"], ["secret"]),
    ("resources/templates/list", "resourceTemplates", ["opens"], ["secrets"]),
    ("prompts/list", "prompts", ["review"], ["reviews"]),
]


async def names(app: App, method: str, key: str, **options: Any) -> list[str]:
    return [item["name"] for item in (await call(app, method, **options))[key]]


@pytest.mark.parametrize("version", EVERY)
@pytest.mark.parametrize(("method", "key", "seen", "unseen"), LISTS)
async def test_a_list_has_what_its_caller_sees(
    method: str, key: str, seen: list[str], unseen: list[str], version: str
) -> None:
    app = shop()
    # The second time they come out of what was kept.
    for _ in range(2):
        for caller in (BOB, None):
            assert await names(app, method, key, at=version, by=caller) == seen
        assert await names(app, method, key, at=version, by=ADA) == seen + unseen


@pytest.mark.parametrize("version", EVERY)
async def test_what_a_caller_sees_is_served(version: str) -> None:
    app = shop()
    ask = partial(call, app, at=version, by=ADA)
    assert await call_tool(
        app, "searches", {"number": "3"}, at=version, by=ADA
    ) == text("3")
    read = await ask("resources/read", uri="a://secret")
    assert read["contents"][0]["text"] == "x"
    read = await ask("resources/read", uri="a://secret/1")
    assert read["contents"][0]["text"] == '["1"]'
    got = await ask("prompts/get", name="reviews", arguments={"title": "y"})
    assert got["messages"][0]["content"]["text"] == "y"
    completed = await ask("completion/complete", **REFERENCES["a prompt"])
    assert completed["completion"]["values"] == ["v"]


ARGUMENT = {"name": "title", "value": "v"}
REFERENCES: dict[str, dict[str, Any]] = {
    "a prompt": {"ref": {"type": "ref/prompt", "name": "reviews"}},
    "a template": {"ref": {"type": "ref/resource", "uri": "a://secret/{value}"}},
    "a resource": {"ref": {"type": "ref/resource", "uri": "a://secret"}},
}
for reference in REFERENCES.values():
    reference["argument"] = ARGUMENT

HIDDEN: list[tuple[str, str, dict[str, Any]]] = [
    # id, method, params
    ("a tool", "tools/call", {"name": "searches", "arguments": {"number": "1"}}),
    ("a tool with bad arguments", "tools/call", {"name": "searches"}),
    (
        "a tool with arguments that are no object",
        "tools/call",
        {"name": "searches", "arguments": 1},
    ),
    (
        "a tool on a retry",
        "tools/call",
        {"name": "searches", "inputResponses": 1, "requestState": "x"},
    ),
    ("a name that is close to it", "tools/call", {"name": "searche"}),
    ("a resource", "resources/read", {"uri": "a://secret"}),
    ("a URI of a template", "resources/read", {"uri": "a://secret/1"}),
    ("a prompt", "prompts/get", {"name": "reviews", "arguments": {"title": "1"}}),
    ("a prompt without its arguments", "prompts/get", {"name": "reviews"}),
    *(
        (f"a completion of {name}", "completion/complete", params)
        for name, params in REFERENCES.items()
    ),
]

WAYS: list[tuple[str, dict[str, Any]]] = [
    # id, the options by which the caller does not see it
    ("a predicate", {"visible": is_staff}),
    ("a predicate and scopes", {"visible": is_staff, "scopes": ["admin"]}),
    ("scopes", {"visible": "scopes", "scopes": ["admin"]}),
    ("a predicate that fails", {"visible": lambda caller: caller.nothing}),
]


@pytest.mark.parametrize("version", EVERY)
@pytest.mark.parametrize("options", table(WAYS))
@pytest.mark.parametrize(("method", "params"), table(HIDDEN))
async def test_what_a_caller_does_not_see_is_answered_as_what_does_not_exist(
    method: str, params: dict[str, Any], options: dict[str, Any], version: str
) -> None:
    """RPC-13. Ours: to the byte, and no name that is hidden is suggested."""
    hidden, absent = App("shop"), App("shop")
    add_open(hidden)
    add_secret(hidden, **options)
    add_open(absent)
    for caller in (None, BOB, User("eve", scopes=frozenset({"other"}))):
        known = await reply(hidden, method, at=version, by=caller, **params)
        unknown = await reply(absent, method, at=version, by=caller, **params)
        assert (known.status, known.body, known.headers) == (
            unknown.status,
            unknown.body,
            unknown.headers,
        )
        assert "error" in known.message


async def test_what_is_hidden_takes_no_place_among_suggestions() -> None:
    """Ours: suggestions are looked for among a bounded number of names."""
    app = App("shop")
    for index in range(100):
        app.add_tool(of_nothing, name=f"secret{index}", visible=is_staff)
    app.add_tool(of_nothing, name="search")
    error = await call_tool(app, "serch", by=BOB)
    assert error["data"] == {"suggestions": ["search"]}


async def test_a_header_of_what_is_hidden_is_not_asked_for() -> None:
    """Spec 2026-07-28, basic/transports/streamable-http: `Mcp-Param-*`."""
    app, absent = App("shop"), App("shop")

    @app.tool(visible=is_staff)
    def route(region: Annotated[str, Header("Region")]) -> str:
        raise NotImplementedError

    absent.add_tool(of_nothing)
    app.add_tool(of_nothing)
    sent = request("tools/call", name="route", arguments={"region": "x"})
    headers = {
        VERSION: MODERN.encode(),
        METHOD: b"tools/call",
        NAME: b"route",
    }
    answers = [
        await dispatch(sent, app, headers=headers, principal=caller)
        for caller in (ADA, BOB)
    ]
    answers.append(await dispatch(sent, absent, headers=headers, principal=BOB))
    bodies = [answer.body for answer in answers]
    assert b"-32020" in bodies[0]
    assert bodies[1] == bodies[2]
    assert b"Unknown tool: route" in bodies[1]


SCOPED: list[tuple[str, dict[str, Any], Any, bool, int]] = [
    # id, the options of a tool, who calls, whether it is listed, the HTTP status
    ("scopes", {"scopes": ["a"]}, BOB, True, 403),
    ("scopes that the caller has", {"scopes": ["a"]}, {"a"}, True, 200),
    ("hidden", {"scopes": ["a"], "visible": "scopes"}, BOB, False, 200),
    ("hidden from nobody", {"scopes": ["a"], "visible": "scopes"}, None, False, 200),
    ("seen", {"scopes": ["a"], "visible": "scopes"}, {"a"}, True, 200),
    (
        "one of two scopes",
        {"scopes": ["a", "b"], "visible": "scopes"},
        {"a"},
        False,
        200,
    ),
    (
        "more scopes",
        {"scopes": ["a", "b"], "visible": "scopes"},
        {"a", "b", "c"},
        True,
        200,
    ),
    ("seen, without the scope", {"scopes": ["a"], "visible": is_staff}, ADA, True, 403),
]


@pytest.mark.parametrize("version", EVERY)
@pytest.mark.parametrize(("options", "caller", "listed", "status"), table(SCOPED))
async def test_scopes_hide_where_they_are_told_to(
    options: dict[str, Any], caller: Any, *, listed: bool, status: int, version: str
) -> None:
    """Spec 2026-07-28, basic/authorization: Scope Challenge. Ours: visibility."""
    if isinstance(caller, set):
        caller = User("eve", scopes=frozenset(caller))
    app = App("shop")
    app.add_tool(of_nothing, name="x", **options)
    found = await names(app, "tools/list", "tools", at=version, by=caller)
    assert found == (["x"] if listed else [])
    called = await reply(app, "tools/call", at=version, by=caller, name="x")
    assert called.status == status
    assert ("result" in called.message) == (listed and status == 200)


CALLERS: list[tuple[str, Any]] = [
    # id, who calls
    ("nobody", None),
    ("a string", "ada"),
    ("an object", ADA),
]


@pytest.mark.parametrize("caller", table(CALLERS))
async def test_a_predicate_is_asked_about_the_principal(caller: Any) -> None:
    """Ours: what it is given is `ctx.principal`."""
    app = App("shop")
    asked: list[Any] = []

    def rule(principal: Any) -> bool:
        asked.append(principal)
        return True

    @app.tool(visible=rule)
    def who(ctx: Context) -> bool:
        return ctx.principal is caller

    called = await call_tool(app, "who", by=caller)
    assert called["structuredContent"] is True
    await call(app, "tools/list", by=caller)
    assert asked == [caller, caller]


def is_of_the_staff(caller: User, *, staff: bool = True) -> bool:
    return caller.staff is staff


TRUTHS: list[tuple[str, Callable[[Any], Any], bool]] = [
    # id, predicate, whether the tool is seen
    ("an object", lambda caller: caller, True),
    ("nothing", lambda _: None, False),
    ("an empty set", lambda caller: caller.scopes & {"a"}, False),
    ("one", lambda _: 1, True),
    ("a partial", partial(operator.eq, ADA), True),
    ("a built-in", bool, True),
    ("with a default", is_of_the_staff, True),
]


@pytest.mark.parametrize(("predicate", "seen"), table(TRUTHS))
async def test_a_predicate_returns_what_is_true_or_false(
    predicate: Callable[[Any], Any], *, seen: bool
) -> None:
    app = App("shop")
    app.add_tool(of_nothing, name="x", visible=predicate)
    assert await names(app, "tools/list", "tools", by=ADA) == ["x"] * seen


LAMBDA = f"{__name__}.<lambda>"


async def asynchronous(_: Any) -> bool:
    return True


FAULTS: list[tuple[str, Callable[[Any], Any], str, str]] = [
    # id, predicate, what is logged of the cause, and of what failed
    ("it raises", lambda caller: caller.nothing, "AttributeError", LAMBDA),
    (
        "an object that raises",
        operator.attrgetter("nothing"),
        "AttributeError",
        "operator.attrgetter",
    ),
    ("it returns a coroutine", lambda _: asynchronous(ADA), "TypeError", LAMBDA),
    ("it returns what can be awaited", lambda _: Awaitable(), "TypeError", LAMBDA),
    ("what it returns has no truth", lambda _: Untrue(), "ArithmeticError", LAMBDA),
]


class Awaitable:
    """What is no coroutine, and must be awaited all the same."""

    def __await__(self) -> Any:
        raise NotImplementedError


class Untrue:
    """Neither true nor false."""

    def __bool__(self) -> bool:
        raise ArithmeticError


@pytest.mark.parametrize(("predicate", "cause", "named"), table(FAULTS))
async def test_a_predicate_that_fails_hides_and_is_logged(
    predicate: Callable[[Any], Any],
    cause: str,
    named: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    app = shop()
    app.add_tool(of_nothing, name="x", visible=predicate)
    app.add_tool(of_nothing, name="y", visible=predicate)
    seen = ["search", "searches"]
    assert await names(app, "tools/list", "tools", by=ADA) == seen
    assert (await call_tool(app, "x", by=ADA))["message"] == "Unknown tool: x"
    for record in caplog.records:
        assert record.levelno == logging.ERROR
        assert record.exc_info is not None
        assert record.exc_info[0].__name__ == cause  # type: ignore[union-attr]
    # Once for the list, where two tools ask the same; twice for the call, of the
    # tool and of what might be suggested in its place.
    fault = f"visible={named} failed, and hides what it is given to"
    assert [record.getMessage() for record in caplog.records] == [
        f"tools/list: {fault}",
        f"tools/call: {fault}",
        f"tools/call: {fault}",
    ]


async def test_scopes_that_can_not_be_read_hide_and_are_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    app = App("shop")
    app.add_tool(of_nothing, name="x", scopes=["a"], visible="scopes")
    caller = User("eve", scopes=7)  # type: ignore[arg-type]
    assert await names(app, "tools/list", "tools", by=caller) == []
    assert [record.getMessage() for record in caplog.records] == [
        "tools/list: visible=scopes failed, and hides what it is given to"
    ]


async def generator(_: Any) -> Any:
    yield True


class Asynchronous:
    """A predicate that must be awaited, as an object."""

    async def __call__(self, caller: Any) -> bool:
        """Say yes, later."""
        raise NotImplementedError


PLAIN = (
    "tool 'x': visible is a plain function, without await or yield; look up what it "
    "needs in App(principal=...), and put it on the principal"
)
MISTAKES: list[tuple[str, dict[str, Any], str]] = [
    # id, options, the message
    ("a coroutine function", {"visible": asynchronous}, PLAIN),
    ("a partial of one", {"visible": partial(asynchronous)}, PLAIN),
    ("an object like one", {"visible": Asynchronous()}, PLAIN),
    ("a generator", {"visible": generator}, PLAIN),
    (
        "a truth",
        {"visible": True},
        "tool 'x': visible is a function of the caller, or 'scopes', not True",
    ),
    (
        "another word",
        {"visible": "staff"},
        "tool 'x': visible is a function of the caller, or 'scopes', not 'staff'",
    ),
    (
        "no scopes",
        {"visible": "scopes"},
        "tool 'x': visible='scopes' needs scopes=[...] beside it",
    ),
    (
        "no parameter",
        {"visible": lambda: True},
        "tool 'x': visible is called with the caller alone, as in visible=lambda "
        "caller: caller is not None (too many positional arguments)",
    ),
    (
        "two parameters",
        {"visible": lambda caller, request: caller is request},
        "tool 'x': visible is called with the caller alone, as in visible=lambda "
        "caller: caller is not None (missing a required argument: 'request')",
    ),
]


@pytest.mark.parametrize(("options", "message"), table(MISTAKES))
def test_a_rule_that_can_not_be_asked_is_a_setup_error(
    options: dict[str, Any], message: str
) -> None:
    app = App("shop")
    with pytest.raises(SetupError) as caught:
        app.add_tool(of_nothing, name="x", **options)
    assert str(caught.value) == message
    assert app.registry.tools == {}


PUBLIC = Cache(ttl_ms=5, scope="public")
PRIVATE = Cache(ttl_ms=5, scope="private")

Add = Callable[[Toolbox], Any]
ADD_TOOL: Add = lambda box: box.add_tool(of_nothing, name="x", visible=is_staff)  # noqa: E731
ADD_PROMPT: Add = lambda box: box.add_prompt(of_nothing, name="x", visible=is_staff)  # noqa: E731


def add_resource(box: Toolbox, **options: Any) -> None:
    box.add_resource("a://x", of_nothing, name="x", visible=is_staff, **options)


def add_template(box: Toolbox, **options: Any) -> None:
    box.add_resource("a://{value}", of_value, name="x", visible=is_staff, **options)


SHARED: list[tuple[str, dict[str, Any], Add, str]] = [
    # id, options of the app, what is added, the method whose answers are public
    ("a tool, by the app", {"cache_scope": "public"}, ADD_TOOL, "tools/list"),
    (
        "a tool, by the method",
        {"cache": {"tools/list": PUBLIC}},
        ADD_TOOL,
        "tools/list",
    ),
    (
        "a prompt, by the method",
        {"cache": {"prompts/list": PUBLIC}},
        ADD_PROMPT,
        "prompts/list",
    ),
    (
        "a resource, by the list",
        {"cache": {"resources/list": PUBLIC}},
        partial(add_resource, cache_scope="private"),
        "resources/list",
    ),
    (
        "a resource, by the reading",
        {"cache": {"resources/read": PUBLIC}},
        add_resource,
        "resources/read",
    ),
    (
        "a template, by the list",
        {"cache": {"resources/templates/list": PUBLIC}},
        add_template,
        "resources/templates/list",
    ),
    (
        "a template, by the app, of which the list is private",
        {"cache_scope": "public", "cache": {"resources/templates/list": PRIVATE}},
        add_template,
        "resources/read",
    ),
]


@pytest.mark.parametrize(("options", "add", "method"), table(SHARED))
def test_what_only_some_see_is_in_no_public_answer(
    options: dict[str, Any], add: Add, method: str
) -> None:
    """Spec 2026-07-28, server/utilities/caching: Security Considerations."""
    message = (
        f"'x': only some callers see it, and 'shop' has answers to {method} cached as "
        f"public; make them private, as in App(cache={{{method!r}: Cache(ttl_ms="
    )
    app, including, open_ended = (App("shop", **options) for _ in range(3))
    boxed, later = Toolbox(), Toolbox()
    add(boxed)
    open_ended.include(later)
    refused: list[Callable[[], Any]] = [
        lambda: add(app),
        lambda: including.include(boxed),
        lambda: add(later),
    ]
    for mistake in refused:
        with pytest.raises(SetupError) as caught:
            mistake()
        assert str(caught.value).startswith(message)
    for registry in (app.registry, including.registry, later.registry):
        assert registry.capabilities == frozenset()
        assert registry.guards == 0


ALLOWED: list[tuple[str, dict[str, Any], Add]] = [
    # id, options of the app, what is added
    (
        "a tool, where resources are public",
        {"cache": {"resources/read": PUBLIC}},
        ADD_TOOL,
    ),
    (
        "a tool, where its list alone is private",
        {"cache_scope": "public", "cache": {"tools/list": PRIVATE}},
        ADD_TOOL,
    ),
    (
        "a tool, where discovery is public",
        {"cache": {"server/discover": PUBLIC}},
        ADD_TOOL,
    ),
    (
        "a template, where resources are listed in public",
        {"cache": {"resources/list": PUBLIC}},
        add_template,
    ),
    (
        "a resource that is private itself",
        {"cache": {"resources/read": PUBLIC}},
        partial(add_resource, cache_scope="private"),
    ),
]


@pytest.mark.parametrize(("options", "add"), table(ALLOWED))
def test_what_only_some_see_may_be_beside_public_answers(
    options: dict[str, Any], add: Add
) -> None:
    app = App("shop", **options)
    add(app)
    assert app.registry.guards == 1


def test_a_resource_that_only_some_see_is_not_public() -> None:
    app = App("shop")
    with pytest.raises(SetupError) as caught:
        add_resource(app, cache_scope="public")
    assert str(caught.value) == (
        "resource 'a://x': what only some callers see can't be cached as public"
    )


async def test_what_only_some_read_is_private_whatever_is_returned() -> None:
    app = App("shop")

    @app.resource("a://x", visible=is_staff)
    def secret() -> Result:
        contents = resource_contents("a://x", "s")
        return Result.resource_read(contents, cache_scope="public")

    read = await call(app, "resources/read", by=ADA, uri="a://x")
    assert read["cacheScope"] == "private"


@pytest.mark.parametrize("version", EVERY)
async def test_a_hidden_resource_stands_in_the_way_of_nothing(version: str) -> None:
    """Ours: for who does not see it, the template that matches serves its URI."""
    app = App("shop")
    app.add_resource("a://x", lambda: "one", name="x", visible=is_staff)
    app.add_resource("a://x{value}", of_value, name="y", visible=is_staff)
    app.add_resource("a://{value}", lambda value: value, cache_scope="public", name="z")
    read = []
    for caller, uri in ((ADA, "x"), (BOB, "x"), (BOB, "xy"), (BOB, "y")):
        result = await call(
            app, "resources/read", at=version, by=caller, uri=f"a://{uri}"
        )
        read.append((result["contents"][0]["text"], result.get("cacheScope")))
    private, public = ("private", "public") if version == MODERN else (None, None)
    # What another caller reads under the URI is not this, so that none may share it.
    assert read == [("one", private), ("x", private), ("xy", private), ("y", public)]


async def test_what_is_declared_does_not_depend_on_the_caller() -> None:
    """Ours: capabilities follow what is registered, for whomever it is."""
    app = App("shop")
    add_secret(app, visible=is_staff)
    for method, key, _, unseen in LISTS:
        assert await names(app, method, key, by=BOB) == []
        assert await names(app, method, key, by=ADA) == unseen
    discovered = [await reply(app, "server/discover", by=by) for by in (ADA, BOB, None)]
    assert len({answer.body for answer in discovered}) == 1
    params: dict[str, Any] = {
        "protocolVersion": "2025-11-25",
        "clientInfo": {"name": "tests", "version": "1"},
        "capabilities": {},
    }
    opened = [
        await call(app, "initialize", at="2025-11-25", by=by, **params)
        for by in (ADA, BOB)
    ]
    assert opened[0]["capabilities"] == opened[1]["capabilities"]


async def test_an_answer_is_kept_once_for_all_who_see_the_same() -> None:
    """Ours: lists are bytes, by what is seen and not by who sees it."""
    app = shop()
    for caller in (None, BOB, ADA, User("eve"), User("zoe", staff=True)):
        await call(app, "tools/list", by=caller)
    answers = app.registry.answers
    assert len(answers) == 2
    kept = list(answers.values())
    await call(app, "tools/list", by=BOB)
    assert all(any(answer is old for old in kept) for answer in answers.values())


async def test_what_is_kept_is_bounded_and_the_latest_is() -> None:
    """Ours: as many views as there are callers must not fill the memory."""
    app = App("shop")
    for bit in range(9):
        app.add_tool(
            of_nothing,
            name=f"t{bit}",
            visible=lambda caller, bit=bit: caller[bit] == "1",
        )
    callers = [f"{number:09b}" for number in range(2**9)]
    often = callers[7]
    for caller in callers:
        for by in (caller, often):
            found = await names(app, "tools/list", "tools", by=by)
            assert found == [f"t{bit}" for bit in range(9) if by[bit] == "1"]
    answers = app.registry.answers
    assert len(answers) == MAX_ANSWERS
    views = [key[3] for key in answers]
    assert len(set(views)) == MAX_ANSWERS
    kept = answers[list(answers)[-1]]
    await call(app, "tools/list", by=often)
    assert answers[list(answers)[-1]] is kept


async def test_an_app_without_rules_asks_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(*_: Any) -> Any:
        raise NotImplementedError

    app = App("shop")
    add_open(app)
    monkeypatch.setattr(app.registry, "rules", fail)
    for method, key, seen, _ in LISTS:
        assert await names(app, method, key, by=ADA) == seen
    assert app.registry.guards == 0


async def test_a_rule_is_asked_once_for_each_request() -> None:
    asked: list[Any] = []

    def rule(caller: Any) -> bool:
        asked.append(caller)
        return True

    app = App("shop")
    for name in ("a", "b", "c"):
        app.add_tool(of_nothing, name=name, visible=rule)
        app.add_prompt(of_nothing, name=name, visible=rule)
    await call(app, "tools/list", by="list")
    await call_tool(app, "a", by="call")
    await call_tool(app, "d", by="unknown")
    await call(app, "prompts/get", by="get", name="a")
    await call(app, "server/discover", by="discover")
    assert asked == ["list", "call", "unknown", "get"]


async def test_pages_have_what_the_caller_sees() -> None:
    """Spec 2026-07-28, server/utilities/pagination. Ours: for each view."""
    app = App("shop", page_size=2, secret_key="k" * 32)
    for index in range(6):
        rule = is_staff if index % 2 else None
        app.add_tool(of_nothing, name=f"t{index}", visible=rule)

    async def pages(caller: Any) -> list[list[str]]:
        found = []
        params: dict[str, Any] = {}
        while True:
            result = await call(app, "tools/list", by=caller, **params)
            found.append([tool["name"] for tool in result["tools"]])
            if "nextCursor" not in result:
                return found
            params = {"cursor": result["nextCursor"]}

    for _ in range(2):
        assert await pages(ADA) == [["t0", "t1"], ["t2", "t3"], ["t4", "t5"]]
        assert await pages(BOB) == [["t0", "t2"], ["t4"]]
    # A cursor says after which tool a page begins: who does not see it has none.
    first = await call(app, "tools/list", by=ADA)
    refused = await call(app, "tools/list", by=BOB, cursor=first["nextCursor"])
    assert refused["message"] == "Invalid cursor"
    first = await call(app, "tools/list", by=BOB)
    following = await call(app, "tools/list", by=ADA, cursor=first["nextCursor"])
    assert [tool["name"] for tool in following["tools"]] == ["t3", "t4"]


async def test_a_caller_who_is_promoted_sees_more_at_once() -> None:
    """Ours: what is kept is what is seen, and who sees it is asked each time."""
    staff: set[str] = set()
    app = App("shop")
    app.add_tool(of_nothing, name="x", visible=staff.__contains__)
    assert await names(app, "tools/list", "tools", by="bob") == []
    staff.add("bob")
    assert await names(app, "tools/list", "tools", by="bob") == ["x"]
    staff.clear()
    assert await names(app, "tools/list", "tools", by="bob") == []
    assert "error" in (await reply(app, "tools/call", by="bob", name="x")).message


async def test_rules_come_and_go_with_what_has_them() -> None:
    app, box = App("shop"), Toolbox()
    add_open(app)
    app.include(box, prefix="b_")
    expected = ["search"]
    assert await names(app, "tools/list", "tools", by=BOB) == expected
    box.add_tool(of_nothing, name="x", visible=is_staff)
    assert await names(app, "tools/list", "tools", by=BOB) == expected
    assert await names(app, "tools/list", "tools", by=ADA) == [*expected, "b_x"]
    box.add_tool(of_nothing, name="x", replace=True)
    assert app.registry.guards == box.registry.guards == 0
    assert await names(app, "tools/list", "tools", by=BOB) == [*expected, "b_x"]
    box.add_tool(of_nothing, name="x", visible=is_staff, replace=True)
    assert await names(app, "tools/list", "tools", by=BOB) == expected
    box.remove_tool("x")
    assert app.registry.guards == box.registry.guards == 0
    assert await names(app, "tools/list", "tools", by=ADA) == expected


async def test_callers_at_the_same_time_see_what_is_theirs() -> None:
    app = shop()
    meeting = asyncio.Barrier(20)

    @app.tool(visible=is_staff)
    async def whoami(ctx: Context) -> str:
        await meeting.wait()
        return str(ctx.principal_id)

    callers = [ADA if index % 2 else BOB for index in range(40)]
    calls = [call_tool(app, "whoami", by=caller) for caller in callers]
    lists = [names(app, "tools/list", "tools", by=caller) for caller in callers]
    called = await asyncio.gather(*calls)
    listed = await asyncio.gather(*lists)
    for caller, answer, found in zip(callers, called, listed, strict=True):
        if caller is ADA:
            assert answer == text("ada")
            assert found == ["search", "searches", "whoami"]
        else:
            assert answer["message"] == "Unknown tool: whoami"
            assert found == ["search"]


async def test_what_is_registered_in_a_thread_is_never_seen_too_early() -> None:
    app = App("shop")
    add_open(app)
    ready, done = threading.Event(), threading.Event()

    def register() -> None:
        ready.wait()
        for _ in range(300):
            app.add_tool(of_nothing, name="x", visible=is_staff)
            app.remove_tool("x")
        done.set()

    thread = threading.Thread(target=register)
    thread.start()
    ready.set()
    found = []
    while not done.is_set():
        found.append(await names(app, "tools/list", "tools", by=BOB))
        called = await call_tool(app, "x", by=BOB)
        assert called["message"] == "Unknown tool: x"
        await asyncio.sleep(0)
    thread.join()
    assert all(names == ["search"] for names in found)


def leave(_: Any) -> bool:
    raise SystemExit(3)


async def test_a_predicate_that_asks_for_an_exit_hides(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Ours: one request never ends the server."""
    app = App("shop")

    @app.tool(visible=leave)
    def secret() -> str:
        raise NotImplementedError

    assert (await call(app, "tools/list"))["tools"] == []
    assert "failed, and hides" in caplog.text
