"""What is registered, and what follows from it."""

import doctest
from collections.abc import Callable
from typing import Any

import pytest

import mcpkit.registry
from mcpkit import App, SetupError
from mcpkit.registry import suggestions
from tests.calls import call, call_tool, text


def test_the_examples_in_the_docstrings_run() -> None:
    assert doctest.testmod(mcpkit.registry).failed == 0


def say(word: str) -> Callable[[], str]:
    def x() -> str:
        return word

    return x


def complete(value: str) -> list[str]:
    return [value]


Add = Callable[..., Any]


def add_tool(app: App, **options: Any) -> None:
    app.add_tool(say("x"), **options)


def add_resource(app: App, **options: Any) -> None:
    app.add_resource("a://x", say("x"), **options)


def add_template(app: App, **options: Any) -> None:
    app.add_resource("a://{value}", complete, **options)


def add_prompt(app: App, **options: Any) -> None:
    app.add_prompt(say("x"), **options)


def add_completion(app: App, **options: Any) -> None:
    app.add_completion("p", "a", complete, **options)


TWICE = [
    # id, what registers it, what it is called
    ("a tool", add_tool, "tool 'x'"),
    ("a resource", add_resource, "resource 'a://x'"),
    ("a template", add_template, "resource template 'a://{value}'"),
    ("a prompt", add_prompt, "prompt 'x'"),
    ("a completion", add_completion, "completion ('p', 'a')"),
]


def table(rows: list[Any]) -> list[Any]:
    return [pytest.param(*row, id=name) for name, *row in rows]


@pytest.mark.parametrize(("add", "called"), table(TWICE))
def test_a_taken_name_is_refused(add: Add, called: str) -> None:
    """DEC-19. Spec 2026-07-28, server/tools: names are unique."""
    app = App("tests")
    add(app)
    with pytest.raises(SetupError) as caught:
        add(app)
    assert str(caught.value) == (
        f"{called} is already registered; remove it first, or pass replace=True"
    )


@pytest.mark.parametrize(("add", "called"), table(TWICE))
def test_a_taken_name_may_be_replaced(add: Add, called: str) -> None:  # noqa: ARG001  # a column of the table
    app = App("tests")
    add(app)
    add(app, replace=True)
    add(App("others"), replace=True)


async def test_a_replaced_tool_keeps_its_place_and_serves_at_once() -> None:
    app = App("tests")
    app.add_tool(say("one"), name="a")
    app.add_tool(say("two"), name="b")
    assert await call_tool(app, "a") == text("one")
    app.add_tool(say("three"), name="a", replace=True)
    assert await call_tool(app, "a") == text("three")
    listed = (await call(app, "tools/list"))["tools"]
    assert [tool["name"] for tool in listed] == ["a", "b"]


async def test_a_refused_registration_leaves_the_first_one() -> None:
    """DEC-19."""
    app = App("tests")
    app.add_tool(say("one"))
    with pytest.raises(SetupError):
        app.add_tool(say("two"))
    assert await call_tool(app, "x") == text("one")


async def test_kinds_have_names_of_their_own() -> None:
    """DEC-19."""
    app = App("tests")
    for add in (add_tool, add_resource, add_template, add_prompt, add_completion):
        add(app)
    assert app.registry.capabilities == {
        "tools",
        "resources",
        "prompts",
        "completions",
    }


REMOVED = [
    # id, what registers it, what removes it, the method that lists it, its key
    ("a tool", add_tool, lambda app: app.remove_tool("x"), "tools/list", "tools"),
    (
        "a resource",
        add_resource,
        lambda app: app.remove_resource("a://x"),
        "resources/list",
        "resources",
    ),
    (
        "a template",
        add_template,
        lambda app: app.remove_resource("a://{value}"),
        "resources/templates/list",
        "resourceTemplates",
    ),
    (
        "a prompt",
        add_prompt,
        lambda app: app.remove_prompt("x"),
        "prompts/list",
        "prompts",
    ),
]


@pytest.mark.parametrize(("add", "remove", "method", "key"), table(REMOVED))
async def test_what_is_removed_is_gone(
    add: Add, remove: Callable[[App], None], method: str, key: str
) -> None:
    app = App("tests")
    add(app)
    assert len((await call(app, method))[key]) == 1
    remove(app)
    assert (await call(app, method))["message"] == "Method not found"
    with pytest.raises(KeyError):
        remove(app)
    add(app)
    assert len((await call(app, method))[key]) == 1


async def test_a_template_that_is_removed_matches_no_more() -> None:
    app = App("tests")
    add_resource(app)
    add_template(app)
    assert "contents" in await call(app, "resources/read", uri="a://y")
    app.remove_resource("a://{value}")
    missing = await call(app, "resources/read", uri="a://y")
    assert missing["message"] == "Resource not found"


CHANGES = [
    # id, what registers it, the list that changes
    ("a tool", add_tool, ["tools"]),
    ("a resource", add_resource, ["resources"]),
    ("a template", add_template, ["resources"]),
    ("a prompt", add_prompt, ["prompts"]),
    ("a completion", add_completion, []),
]


@pytest.mark.parametrize(("add", "kinds"), table(CHANGES))
def test_a_change_is_told(add: Add, kinds: list[str]) -> None:
    """Spec 2026-07-28, server/tools: List Changed Notification."""
    app = App("tests")
    heard: list[str] = []
    stop = app.registry.listen(heard.append)
    add(app)
    assert heard == kinds
    add(app, replace=True)
    assert heard == kinds * 2
    stop()
    add(app, replace=True)
    assert heard == kinds * 2


@pytest.mark.parametrize(("add", "remove", "method", "key"), table(REMOVED))
def test_a_removal_is_told(
    add: Add,
    remove: Callable[[App], None],
    method: str,
    key: str,  # noqa: ARG001  # a column of the table
) -> None:
    app = App("tests")
    add(app)
    heard: list[str] = []
    app.registry.listen(heard.append)
    remove(app)
    assert heard == [method.partition("/")[0]]


def test_a_refused_registration_is_not_told() -> None:
    app = App("tests")
    add_tool(app)
    heard: list[str] = []
    app.registry.listen(heard.append)
    with pytest.raises(SetupError):
        add_tool(app)
    assert heard == []


def test_every_listener_is_told_and_one_may_leave_while_it_is() -> None:
    app = App("tests")
    heard: list[str] = []

    def once(kind: str) -> None:
        heard.append(f"once {kind}")
        stop()

    stop = app.registry.listen(once)
    app.registry.listen(heard.append)
    add_tool(app)
    add_prompt(app)
    assert heard == ["once tools", "tools", "prompts"]


async def test_a_listener_sees_the_list_as_it_is_then() -> None:
    app = App("tests")
    seen: list[list[str]] = []
    app.registry.listen(lambda _: seen.append(list(app.registry.tools)))
    add_tool(app)
    app.remove_tool("x")
    assert seen == [["x"], []]


async def test_a_list_is_encoded_once_until_it_changes() -> None:
    """Ours: lists are bytes."""
    app = App("tests")
    add_tool(app)
    await call(app, "tools/list")
    (kept,) = app.registry.answers.values()
    await call(app, "tools/list")
    assert list(app.registry.answers.values()) == [kept]
    app.add_tool(say("y"), name="y")
    assert app.registry.answers == {}
    listed = (await call(app, "tools/list"))["tools"]
    assert [tool["name"] for tool in listed] == ["x", "y"]


SUGGESTED = [
    # id, name, known names, suggestions
    ("a letter too few", "serch", ["search", "order"], ["search"]),
    ("another case", "Search", ["search"], ["search"]),
    (
        "the closest first",
        "read_file",
        ["read_files", "read_line", "x"],
        ["read_files", "read_line"],
    ),
    ("none that is close", "zzz", ["search"], []),
    ("none at all", "search", [], []),
    ("too long to be one", "s" * 65, ["s" * 64], []),
]


@pytest.mark.parametrize(("name", "known", "suggested"), table(SUGGESTED))
def test_suggestions(name: str, known: list[str], suggested: list[str]) -> None:
    assert suggestions(name, known) == suggested
