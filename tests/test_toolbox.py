"""An app in several parts, and what one part has of another."""

import doctest
import gc
import inspect
import weakref
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

import mcpkit.toolbox
from mcpkit import App, Cache, Context, Result, SetupError, Toolbox
from tests.calls import EVERY, call, call_tool, failed, text
from tests.wire import MODERN

KINDS = ("tools", "resources", "templates", "prompts", "completions")

# What each list calls its elements, and what an element is known by.
LISTS = {
    "tools": ("tools/list", "name"),
    "resources": ("resources/list", "uri"),
    "resourceTemplates": ("resources/templates/list", "uriTemplate"),
    "prompts": ("prompts/list", "name"),
}


def table(rows: list[Any]) -> list[Any]:
    return [pytest.param(*row, id=name) for name, *row in rows]


def test_the_examples_in_the_docstrings_run() -> None:
    assert doctest.testmod(mcpkit.toolbox).failed == 0


def test_what_registers_is_written_once() -> None:
    """Ours: an app is a toolbox that is served."""
    registering = {name for name in vars(Toolbox) if not name.startswith("_")}
    assert registering == {
        "add_completion",
        "add_directory",
        "add_prompt",
        "add_resource",
        "add_tool",
        "complete",
        "include",
        "prompt",
        "remove_completion",
        "remove_prompt",
        "remove_resource",
        "remove_tool",
        "resource",
        "tool",
    }
    assert all(getattr(App, name) is getattr(Toolbox, name) for name in registering)


def test_a_toolbox_takes_no_options() -> None:
    assert not inspect.signature(Toolbox).parameters


def say(word: str) -> Callable[[], str]:
    def x() -> str:
        return word

    return x


def of_value(value: str) -> list[str]:
    return [f"{value}!"]


def filled(word: str = "x", **options: Any) -> Toolbox:
    """Make a toolbox with one component of each kind."""
    box = Toolbox()
    box.add_tool(say(word), **options)
    box.add_resource("a://x", say(word), **options)
    box.add_resource("a://x/{value}", lambda value: f"{word} {value}", name="t")
    box.add_prompt(lambda title: f"{word} {title}", name="p", **options)
    box.add_completion("p", "title", of_value)
    box.add_completion("a://x/{value}", "value", of_value)
    return box


async def listed(app: App, *, at: str = MODERN) -> dict[str, list[str]]:
    found = {}
    for kind, (method, key) in LISTS.items():
        answer = await call(app, method, at=at)
        found[kind] = [item[key] for item in answer.get(kind, ())]
    return found


@pytest.mark.parametrize("version", EVERY)
async def test_what_is_included_is_served_under_a_prefix(version: str) -> None:
    """Ours: a prefix is for names. URIs stay as they are."""
    app = App("shop")
    app.include(filled(), prefix="b_")
    assert await listed(app, at=version) == {
        "tools": ["b_x"],
        "resources": ["a://x"],
        "resourceTemplates": ["a://x/{value}"],
        "prompts": ["b_p"],
    }
    assert await call_tool(app, "b_x", at=version) == text("x")
    read = await call(app, "resources/read", at=version, uri="a://x/1")
    assert read["contents"][0]["text"] == "x 1"
    got = await call(
        app, "prompts/get", at=version, name="b_p", arguments={"title": "1"}
    )
    assert got["messages"][0]["content"]["text"] == "x 1"
    for reference, name in (
        ({"type": "ref/prompt", "name": "b_p"}, "title"),
        ({"type": "ref/resource", "uri": "a://x/{value}"}, "value"),
    ):
        argument = {"name": name, "value": "y"}
        completed = await call(
            app, "completion/complete", at=version, ref=reference, argument=argument
        )
        assert completed["completion"]["values"] == ["y!"]
    assert (await call_tool(app, "x", at=version))["message"] == "Unknown tool: x"


async def test_what_is_included_keeps_its_names_at_home() -> None:
    box = filled()
    app = App("shop")
    app.include(box, prefix="b_")
    assert [*box.registry.tools, *box.registry.prompts] == ["x", "p"]
    assert box.registry.tools["x"].wire["name"] == "x"


async def test_a_name_of_its_own_shows_in_no_prefixed_answer() -> None:
    box = Toolbox()

    @box.tool
    def broken() -> None:
        raise RuntimeError

    app = App("shop")
    app.include(box, prefix="b_")
    assert await call_tool(app, "b_broken") == failed("Tool b_broken failed")


async def test_a_question_is_answered_under_a_prefix() -> None:
    """Ours: request state is bound to the name that the client knows."""
    box = Toolbox()

    @box.tool
    def order(ctx: Context) -> Any:
        if ctx.input.state is None:
            return Result.input_required(None, "kept")
        return ctx.input.state

    app = App("shop", secret_key="k" * 32)
    app.include(box, prefix="a_")
    app.include(box, prefix="b_")
    asked = await call_tool(app, "a_order")
    state = asked["requestState"]
    again = await call(app, "tools/call", name="a_order", requestState=state)
    assert again == text("kept")
    other = await call(app, "tools/call", name="b_order", requestState=state)
    assert other["message"] == "Invalid or expired requestState"


Act = Callable[[Toolbox], Any]

ADDED: list[tuple[str, Act, str, list[str]]] = [
    # id, what registers it, its kind, its keys where it is included
    ("a tool", lambda box: box.add_tool(say("n"), name="n"), "tools", ["b_n"]),
    (
        "a resource",
        lambda box: box.add_resource("n://x", say("n")),
        "resources",
        ["n://x"],
    ),
    (
        "a template",
        lambda box: box.add_resource("n://{value}", of_value),
        "templates",
        ["n://{value}"],
    ),
    ("a prompt", lambda box: box.add_prompt(say("n"), name="n"), "prompts", ["b_n"]),
]
REMOVE: dict[str, Act] = {
    "a tool": lambda box: box.remove_tool("n"),
    "a resource": lambda box: box.remove_resource("n://x"),
    "a template": lambda box: box.remove_resource("n://{value}"),
    "a prompt": lambda box: box.remove_prompt("n"),
}


def keys(app: Toolbox, kind: str) -> list[Any]:
    return list(getattr(app.registry, kind))


@pytest.mark.parametrize(
    ("add", "kind", "there", "remove"),
    table([(*row, REMOVE[row[0]]) for row in ADDED]),
)
def test_what_changes_later_changes_where_it_is_included(
    add: Act, kind: str, there: list[str], remove: Act
) -> None:
    box, middle, app = Toolbox(), Toolbox(), App("shop")
    middle.include(box)
    app.include(middle, prefix="b_")
    heard: list[str] = []
    app.registry.listen(heard.append)
    told = ["resources" if kind == "templates" else kind]
    add(box)
    assert keys(app, kind) == there
    remove(box)
    assert keys(app, kind) == []
    assert heard == told * 2


def test_completions_that_change_later_change_where_they_are_included() -> None:
    box, app = Toolbox(), App("shop")
    app.include(box, prefix="b_")
    box.add_completion("p", "title", of_value)
    box.add_completion("n://{value}", "value", of_value)
    assert keys(app, "completions") == [("b_p", "title"), ("n://{value}", "value")]
    completion = app.registry.completions["b_p", "title"]
    assert (completion.reference, completion.argument) == ("b_p", "title")
    box.remove_completion("p", "title")
    assert keys(app, "completions") == [("n://{value}", "value")]


def test_completions_leave_with_a_prompt_that_is_included() -> None:
    box, app = filled(), App("shop")
    app.include(box, prefix="b_")
    app.add_prompt(lambda title: title, name="own")
    box.remove_prompt("p")
    box.remove_resource("a://x/{value}")
    assert keys(app, "completions") == []
    assert app.registry.capabilities == {"tools", "resources", "prompts"}


async def test_a_prompt_that_is_included_may_be_completed_by_the_app() -> None:
    box, app = Toolbox(), App("shop")
    box.add_prompt(lambda title: title, name="p")
    app.include(box, prefix="b_")
    with pytest.raises(SetupError, match="has no argument 'x' to complete"):
        app.add_completion("b_p", "x", of_value)
    app.add_completion("b_p", "title", of_value)
    with pytest.raises(SetupError, match="would be two"):
        box.add_completion("p", "title", of_value)
    box.remove_prompt("p")
    assert keys(app, "completions") == []


async def test_a_replaced_tool_is_replaced_where_it_is_included() -> None:
    box, app = Toolbox(), App("shop")
    box.add_tool(say("one"), name="a")
    box.add_tool(say("two"), name="b")
    app.include(box)
    box.add_tool(say("three"), name="a", replace=True)
    assert keys(app, "tools") == ["a", "b"]
    assert await call_tool(app, "a") == text("three")


async def test_a_list_that_was_kept_is_made_again() -> None:
    """Ours: lists are bytes, made again when the registry changes."""
    box, app = filled(), App("shop")
    app.include(box)
    before = await listed(app)
    box.add_tool(say("n"), name="n")
    assert await listed(app) == {**before, "tools": ["x", "n"]}


def test_an_inclusion_is_told_once_for_each_list() -> None:
    app = App("shop")
    heard: list[str] = []
    app.registry.listen(heard.append)
    app.include(filled())
    assert heard == ["tools", "resources", "prompts"]
    app.include(Toolbox())
    assert len(heard) == 3


async def test_cursors_survive_what_is_registered_elsewhere() -> None:
    """Ours: what is new comes last, in whichever part it is."""
    app, box = App("shop", page_size=2), Toolbox()
    box.add_tool(say("x"), name="a")
    app.include(box)
    app.add_tool(say("x"), name="b")
    app.add_tool(say("x"), name="c")
    first = await call(app, "tools/list")
    box.add_tool(say("x"), name="d")
    second = await call(app, "tools/list", cursor=first["nextCursor"])
    names = [tool["name"] for page in (first, second) for tool in page["tools"]]
    assert names == ["a", "b", "c", "d"]


async def test_a_toolbox_may_be_included_under_two_prefixes() -> None:
    """Ours: its resources, whose URIs are the same, are there once."""
    box, app = filled(), App("shop")
    app.include(box, prefix="a_")
    app.include(box, prefix="b_")
    assert await listed(app) == {
        "tools": ["a_x", "b_x"],
        "resources": ["a://x"],
        "resourceTemplates": ["a://x/{value}"],
        "prompts": ["a_p", "b_p"],
    }
    box.add_resource("a://x", say("other"), replace=True)
    box.add_resource("a://y", say("y"), name="y")
    read = await call(app, "resources/read", uri="a://x")
    assert read["contents"][0]["text"] == "other"
    assert keys(app, "resources") == ["a://x", "a://y"]
    box.remove_resource("a://x")
    box.remove_tool("x")
    assert keys(app, "resources") == ["a://y"]
    assert keys(app, "tools") == []


def test_what_two_parts_include_is_there_once() -> None:
    """Ours: the same component is no collision with itself."""
    shared, left, right, app = filled(), Toolbox(), Toolbox(), App("shop")
    left.include(shared)
    right.include(shared)
    app.include(left)
    heard: list[str] = []
    app.registry.listen(heard.append)
    app.include(right)
    app.include(right)
    assert heard == []
    for kind in KINDS:
        assert keys(app, kind) == keys(shared, kind)
    shared.add_tool(say("y"), replace=True)
    shared.remove_prompt("p")
    assert (keys(app, "tools"), keys(app, "prompts")) == (["x"], [])
    assert app.registry.tools == shared.registry.tools
    assert heard == ["tools", "prompts"]


def test_what_comes_in_two_ways_stays_while_one_of_them_is_left() -> None:
    box, app = Toolbox(), App("shop")
    box.add_resource("a://x", say("x"), tags=["one", "two"])
    app.include(box, prefix="a_", tags=["one"])
    app.include(box, prefix="b_", tags=["two"])
    box.add_resource("a://x", say("y"), tags=["two"], replace=True)
    assert app.registry.resources == box.registry.resources
    box.add_resource("a://x", say("z"), tags=["one"], replace=True)
    assert app.registry.resources == box.registry.resources
    box.add_resource("a://x", say("z"), tags=["three"], replace=True)
    assert app.registry.resources == {}


def test_what_changes_its_tags_may_come_in_another_way() -> None:
    shared, left, right, app = Toolbox(), Toolbox(), Toolbox(), App("shop")
    left.include(shared)
    right.include(shared)
    app.include(left, tags=["left"])
    app.include(right, tags=["right"])
    app.add_completion("p", "title", of_value)
    for tag in ("left", "right", "left"):
        shared.add_tool(say(tag), name="x", tags=[tag], replace=True)
        shared.add_prompt(lambda title: title, name="p", tags=[tag], replace=True)
        assert app.registry.tools == shared.registry.tools
        assert keys(app, "completions") == [("p", "title")]


def with_tool(name: str) -> Toolbox:
    box = Toolbox()
    box.add_tool(say(name), name=name)
    return box


def with_template(uri: str, function: Callable[..., Any] = of_value) -> Toolbox:
    box = Toolbox()
    box.add_resource(uri, function, name="t")
    return box


def with_completion() -> Toolbox:
    box = Toolbox()
    box.add_completion("p", "title", of_value)
    return box


X = f"{__name__}.say.<locals>.x"
OF_VALUE = f"{__name__}.of_value"

COLLISIONS: list[tuple[str, Act, Toolbox, str, str]] = [
    # id, what the app has, what is included, under which prefix, the message
    (
        "a tool of the app",
        lambda app: app.add_tool(say("x"), name="a_b"),
        with_tool("b"),
        "a_",
        f"tool 'a_b' would be two, {X} and {X}, included with the prefix 'a_': "
        "include it with another prefix, or rename one of them",
    ),
    (
        "a tool that is included",
        lambda app: app.include(with_tool("a_b")),
        with_tool("b"),
        "a_",
        f"tool 'a_b' would be two, {X}, included and {X}, included with the prefix "
        "'a_': include it with another prefix, or rename one of them",
    ),
    (
        "a prompt",
        lambda app: app.add_prompt(of_value, name="p"),
        filled(),
        "",
        f"prompt 'p' would be two, {OF_VALUE} and "
        f"{__name__}.filled.<locals>.<lambda>, included: include it with another "
        "prefix, or rename one of them",
    ),
    (
        "a resource",
        lambda app: app.add_resource("a://x", say("x")),
        filled(),
        "b_",
        f"resource 'a://x' would be two, {X} and {X}, included with the prefix 'b_': "
        "change one of the URIs, to which no prefix is added",
    ),
    (
        "a template",
        lambda app: app.add_resource("a://{value}", of_value),
        with_template("a://{value}"),
        "",
        f"resource template 'a://{{value}}' would be two, {OF_VALUE} and {OF_VALUE}, "
        "included: change one of the URIs, to which no prefix is added",
    ),
    (
        "a template that matches the same",
        lambda app: app.add_resource("a://{value}", of_value),
        with_template("a://{other}", lambda other: other),
        "",
        "resource template 'a://{other}' matches the same URIs as 'a://{value}'",
    ),
    (
        "a completion",
        lambda app: app.add_completion("p", "title", of_value),
        with_completion(),
        "",
        f"completion ('p', 'title') would be two, {OF_VALUE} and {OF_VALUE}, "
        "included: remove one of them",
    ),
]


@pytest.mark.parametrize(("prepare", "box", "prefix", "message"), table(COLLISIONS))
def test_a_collision_names_both_sides_and_changes_nothing(
    prepare: Act, box: Toolbox, prefix: str, message: str
) -> None:
    """DEC-19. Spec 2026-07-28, server/tools: names are unique."""
    app = App("shop")
    prepare(app)
    before = {kind: keys(app, kind) for kind in KINDS}
    heard: list[str] = []
    app.registry.listen(heard.append)
    with pytest.raises(SetupError) as caught:
        app.include(box, prefix=prefix)
    assert str(caught.value) == message
    assert {kind: keys(app, kind) for kind in KINDS} == before
    box.add_tool(say("later"), name="later")
    assert (heard, "later" in app.registry.tools) == ([], False)


def test_a_collision_that_comes_later_is_one_where_it_is_registered() -> None:
    box, middle, app, other = Toolbox(), Toolbox(), App("shop"), App("other")
    other.include(box)
    middle.include(box)
    app.include(middle, prefix="b_")
    app.add_tool(say("x"), name="b_x")
    heard: list[str] = []
    for registry in (box.registry, other.registry, middle.registry):
        registry.listen(heard.append)
    with pytest.raises(SetupError) as caught:
        box.add_tool(say("y"))
    assert str(caught.value) == (
        f"tool 'b_x' would be two, {X} and {X}, included with the prefix 'b_': include "
        "it with another prefix, or rename one of them"
    )
    assert keys(box, "tools") == keys(other, "tools") == keys(middle, "tools") == []
    assert (keys(app, "tools"), heard) == (["b_x"], [])


def test_an_app_takes_no_name_that_it_includes() -> None:
    app = App("shop")
    app.include(filled(), prefix="b_")
    with pytest.raises(SetupError, match="tool 'b_x' would be two"):
        app.add_tool(say("y"), name="b_x")
    with pytest.raises(SetupError, match="tool 'b_x' would be two"):
        app.add_tool(say("y"), name="b_x", replace=True)


def test_prefixes_that_make_one_name_of_two_are_a_collision() -> None:
    box, app = with_tool("x"), App("shop")
    box.add_tool(say("b_x"), name="b_x")
    app.include(box, prefix="a_b_")
    with pytest.raises(SetupError, match="tool 'a_b_x' would be two"):
        app.include(box, prefix="a_")
    middle, whole = Toolbox(), App("whole")
    whole.include(middle, prefix="a_b_")
    whole.include(middle, prefix="a_")
    with pytest.raises(SetupError, match="tool 'a_b_x' would be two"):
        middle.include(box)
    assert keys(whole, "tools") == keys(middle, "tools") == []


REMOVALS: list[tuple[str, Act, str]] = [
    # id, what is removed where it is included, what it is
    ("a tool", lambda app: app.remove_tool("b_x"), f"tool 'b_x' is {X}"),
    ("a resource", lambda app: app.remove_resource("a://x"), "resource 'a://x' is "),
    (
        "a template",
        lambda app: app.remove_resource("a://x/{value}"),
        "resource template 'a://x/{value}' is ",
    ),
    ("a prompt", lambda app: app.remove_prompt("b_p"), "prompt 'b_p' is "),
    (
        "a completion",
        lambda app: app.remove_completion("b_p", "title"),
        "completion ('b_p', 'title') is ",
    ),
]


@pytest.mark.parametrize(("remove", "beginning"), table(REMOVALS))
def test_what_is_included_is_removed_where_it_is_registered(
    remove: Act, beginning: str
) -> None:
    app = App("shop")
    app.include(filled(), prefix="b_")
    with pytest.raises(SetupError) as caught:
        remove(app)
    assert str(caught.value).startswith(beginning)
    assert str(caught.value).endswith(
        "included with the prefix 'b_'; remove it where it is registered"
    )


CYCLES: list[tuple[str, Callable[[list[Toolbox]], Any]]] = [
    # id, what closes the circle of three that include one another in turn
    ("itself", lambda boxes: boxes[0].include(boxes[0])),
    ("two", lambda boxes: boxes[1].include(boxes[0])),
    ("three", lambda boxes: boxes[2].include(boxes[0], prefix="x_")),
]


@pytest.mark.parametrize("close", table(CYCLES))
def test_what_would_include_itself_is_a_setup_error(
    close: Callable[[list[Toolbox]], Any],
) -> None:
    boxes = [App("shop"), filled(), Toolbox()]
    boxes[0].include(boxes[1])
    boxes[1].include(boxes[2])
    with pytest.raises(SetupError) as caught:
        close(boxes)
    assert str(caught.value) == (
        "what is included includes what it would be included in, or is the same; put "
        "what both need into a Toolbox of its own"
    )
    boxes[2].add_tool(say("n"), name="n")
    assert keys(boxes[0], "tools") == ["x", "n"]


REFUSED: list[tuple[str, Act, str]] = [
    # id, what is written, the message
    (
        "what is no toolbox",
        lambda app: app.include("billing"),  # type: ignore[arg-type]
        "include takes a Toolbox or an App, not 'billing'",
    ),
    (
        "a prefix that is no string",
        lambda app: app.include(Toolbox(), prefix=None),  # type: ignore[arg-type]
        "include: prefix is a string, not None",
    ),
    (
        "tags that are a string",
        lambda app: app.include(Toolbox(), tags="public"),
        "include: tags is a list of strings, not 'public'",
    ),
    (
        "tags that are no strings",
        lambda app: app.include(Toolbox(), tags=[1]),  # type: ignore[list-item]
        "include: tags is a list of strings, not [1]",
    ),
    (
        "no tags",
        lambda app: app.include(Toolbox(), tags=()),
        "include: no tag selects nothing; leave tags out for all",
    ),
    (
        "a prefix that is too long",
        lambda app: app.include(with_tool("x"), prefix="b" * 128),
        f"{'b' * 128 + 'x'!r} is too long for a name, which has at most 128 "
        "characters; include it with a shorter prefix",
    ),
    (
        "a tag of a tool that is a string",
        lambda app: app.add_tool(say("x"), tags="public"),
        "tool 'x': tags is a list of strings, not 'public'",
    ),
    (
        "a tag of a resource that is no string",
        lambda app: app.add_resource("a://x", say("x"), tags=[None]),  # type: ignore[list-item]
        "resource 'a://x': tags is a list of strings, not [None]",
    ),
]


@pytest.mark.parametrize(("mistake", "message"), table(REFUSED))
def test_a_mistake_is_a_setup_error(mistake: Act, message: str) -> None:
    with pytest.raises(SetupError) as caught:
        mistake(App("shop"))
    assert str(caught.value) == message


def tagged() -> Toolbox:
    """Make a toolbox with components of several tags."""
    box = Toolbox()
    box.add_completion("both", "title", of_value)
    for name, tags in (("none", []), ("one", ["a"]), ("both", {"a", "b"})):
        box.add_tool(say(name), name=name, tags=tags)
        box.add_prompt(lambda title: title, name=name, tags=tags)
        box.add_resource(f"{name}://x", say(name), tags=tags)
        box.add_resource(f"{name}://x/{{value}}", of_value, tags=tags)
    box.add_completion("none", "title", of_value)
    box.add_completion("one://x/{value}", "value", of_value)
    return box


SELECTED: list[tuple[str, list[str] | None, list[str], list[Any]]] = [
    # id, tags, what is there, what of it is completed
    (
        "all",
        None,
        ["none", "one", "both"],
        [("both", "title"), ("none", "title"), ("one://x/{value}", "value")],
    ),
    ("one", ["b"], ["both"], [("both", "title")]),
    (
        "several",
        ["a", "b"],
        ["one", "both"],
        [("both", "title"), ("one://x/{value}", "value")],
    ),
    ("unknown", ["c"], [], []),
]


@pytest.mark.parametrize(("tags", "names", "completed"), table(SELECTED))
def test_tags_select(
    tags: list[str] | None, names: list[str], completed: list[Any]
) -> None:
    early, late = App("early"), App("late")
    box = Toolbox()
    early.include(box, tags=tags)
    box.include(tagged())
    late.include(box, tags=tags)
    for app in (early, late):
        assert keys(app, "tools") == keys(app, "prompts") == names
        assert keys(app, "resources") == [f"{name}://x" for name in names]
        assert keys(app, "templates") == [f"{name}://x/{{value}}" for name in names]
        assert sorted(keys(app, "completions")) == sorted(completed)


def test_what_is_replaced_is_selected_anew() -> None:
    box, app = Toolbox(), App("shop")
    app.include(box, prefix="b_", tags=["a"])
    box.add_completion("p", "title", of_value)
    seen = []
    for tags in (["a"], ["b"], ["a", "b"], None):
        box.add_prompt(lambda title: title, name="p", tags=tags or (), replace=True)
        seen.append((keys(app, "prompts"), keys(app, "completions")))
    there = (["b_p"], [("b_p", "title")])
    assert seen == [there, ([], []), there, ([], [])]


@pytest.mark.parametrize("version", EVERY)
async def test_tags_are_not_sent(version: str) -> None:
    app = App("shop")
    app.include(tagged())
    for kind, (method, _) in LISTS.items():
        answer = await call(app, method, at=version)
        for item in answer[kind]:
            assert "tags" not in item
            assert "_meta" not in item


async def test_of_an_app_that_is_included_its_components_count_alone() -> None:
    inner = App("inner", coerce=True, cache_scope="public")
    inner.state = "inner"

    @inner.tool
    def state(ctx: Context, number: int = 0) -> str:
        return f"{ctx.state} {number}"

    app = App("outer")
    app.state = "outer"
    app.include(inner, prefix="inner_")
    assert await call_tool(app, "inner_state") == text("outer 0")
    refused = await call_tool(app, "inner_state", {"number": "1"})
    assert refused["isError"] is True
    assert await call_tool(inner, "state", {"number": "1"}) == text("inner 1")
    assert (await call(app, "tools/list"))["cacheScope"] == "private"


def test_a_public_resource_may_be_included_by_a_private_app() -> None:
    box = Toolbox()
    box.add_resource("a://x", say("x"), cache_scope="public")
    app = App("shop", cache={"resources/read": Cache(ttl_ms=1, scope="private")})
    app.include(box)
    assert app.registry.resources == box.registry.resources


def test_an_app_that_is_gone_is_not_kept_by_what_it_included() -> None:
    """Ours: one toolbox for the apps of many tests."""
    box = filled()
    app = App("shop")
    app.include(box)
    app.add_tool(say("n"), name="n")
    gone = weakref.ref(app.registry)
    del app
    gc.collect()
    assert gone() is None
    box.add_tool(say("n"), name="n")


def test_an_app_keeps_what_it_includes() -> None:
    app = App("shop")
    app.include(with_tool("x"), prefix="b_")
    gc.collect()
    assert keys(app, "tools") == ["b_x"]


@dataclass
class Model:
    """What was registered in each toolbox, and what includes what.

    Attributes:
        own: By toolbox, kind and key: which registration it is, and its tags.
        included: By toolbox: which others, under which prefix, by which tags.
    """

    own: list[dict[tuple[str, Any], tuple[int, frozenset[str]]]]
    included: list[list[tuple[int, str, frozenset[str] | None]]]

    def state(self, index: int) -> dict[tuple[str, Any], tuple[int, frozenset[str]]]:
        """Return what a toolbox has.

        Raises:
            LookupError: Two registrations would have one key.
        """
        found = dict(self.own[index])
        for other, prefix, tags in self.included[index]:
            state = self.state(other)
            for (kind, key), kept in state.items():
                selected = kept[1]
                if kind == "completions":
                    selected = state.get(("prompts", key[0]), (0, frozenset()))[1]
                if tags is not None and not tags & selected:
                    continue
                there = (kind, _prefixed(kind, key, prefix))
                if found.setdefault(there, kept)[0] != kept[0]:
                    raise LookupError
        return found

    def states(self) -> list[Any]:
        """Return what each of them has."""
        return [self.state(index) for index in range(len(self.own))]

    def drop_completions(self, before: list[Any]) -> None:
        """Take away the completions of prompts that are gone."""
        for own, old, new in zip(self.own, before, self.states(), strict=True):
            gone = {key for key in old if key[0] == "prompts"} - new.keys()
            for place in list(own):
                if place[0] == "completions" and ("prompts", place[1][0]) in gone:
                    del own[place]


def _prefixed(kind: str, key: Any, prefix: str) -> Any:
    if kind == "completions":
        return f"{prefix}{key[0]}", key[1]
    return key if kind == "resources" else f"{prefix}{key}"


def of_title(title: str) -> str:
    raise NotImplementedError


BOXES = 3
NAMES = st.sampled_from(["x", "a_x"])
TAGS = st.frozensets(st.sampled_from("pq"))
WHICH = st.integers(0, BOXES - 1)
STEPS = st.lists(
    st.one_of(
        st.tuples(
            st.just("include"),
            WHICH,
            WHICH,
            st.sampled_from(["", "a_"]),
            st.none() | st.frozensets(st.sampled_from("pq"), min_size=1),
        ),
        st.tuples(
            st.just("add"),
            WHICH,
            st.sampled_from(["tools", "prompts", "resources", "completions"]),
            NAMES,
            TAGS,
        ),
        st.tuples(
            st.just("remove"),
            WHICH,
            st.sampled_from(["tools", "prompts", "resources", "completions"]),
            NAMES,
        ),
    ),
    min_size=10,
    max_size=40,
)


@settings(max_examples=60, deadline=None)
@given(steps=STEPS)
def test_any_parts_have_what_follows_from_each_other(steps: list[Any]) -> None:
    """Ours: a change that is refused in one of them is made in none."""
    boxes = [Toolbox() for _ in range(BOXES)]
    model = Model([{} for _ in boxes], [[] for _ in boxes])
    heard: list[list[str]] = [[] for _ in boxes]
    for box, kinds in zip(boxes, heard, strict=True):
        box.registry.listen(kinds.append)
    numbers = {}
    for number, step in enumerate(steps, 1):
        planned = deepcopy(model)
        for kinds in heard:
            kinds.clear()
        before = model.states()
        allowed = _plan(planned, step, number)
        try:
            _take(boxes, step)
        except (SetupError, KeyError):
            assert not allowed
        else:
            assert allowed
            planned.drop_completions(before)
            model = planned
        if step[0] == "add" and allowed:
            box = boxes[step[1]]
            place = _place(step)
            numbers[id(getattr(box.registry, place[0])[place[1]].signature)] = number
        for box, kinds, old, new in zip(
            boxes, heard, before, model.states(), strict=True
        ):
            found = {
                (kind, key): numbers[id(component.signature)]
                for kind in ("tools", "prompts", "resources", "completions")
                for key, component in getattr(box.registry, kind).items()
            }
            assert found == {place: kept[0] for place, kept in new.items()}
            changed = {
                kind
                for kind, key in old.keys() | new.keys()
                if old.get((kind, key)) != new.get((kind, key))
            }
            assert sorted(kinds) == sorted(changed - {"completions"})


def _place(step: Any) -> tuple[str, Any]:
    _, _, kind, name, *_ = step
    if kind == "completions":
        return kind, (name, "title")
    return kind, f"{name}://x" if kind == "resources" else name


def _plan(model: Model, step: Any, number: int) -> bool:
    """Make a step in the model, and tell whether it may be made."""
    index = step[1]
    if step[0] == "include":
        _, _, other, prefix, tags = step
        model.included[index].append((other, prefix, tags))
    elif step[0] == "add":
        model.own[index][_place(step)] = (number, step[4])
    elif model.own[index].pop(_place(step), None) is None:
        return False
    try:
        model.states()
    except (LookupError, RecursionError):
        return False
    return True


def _take(boxes: list[Toolbox], step: Any) -> None:
    """Make a step."""
    box = boxes[step[1]]
    match step:
        case "include", _, other, prefix, tags:
            box.include(boxes[other], prefix=prefix, tags=tags)
        case "add", _, kind, name, tags:
            ADD[kind](box, name, tags)
        case _, _, kind, name:
            TAKE_AWAY[kind](box, name)


ADD: dict[str, Callable[[Toolbox, str, Any], Any]] = {
    "tools": lambda box, name, tags: box.add_tool(
        say(name), name=name, tags=tags, replace=True
    ),
    "prompts": lambda box, name, tags: box.add_prompt(
        of_title, name=name, tags=tags, replace=True
    ),
    "resources": lambda box, name, tags: box.add_resource(
        f"{name}://x", say(name), tags=tags, replace=True
    ),
    "completions": lambda box, name, _: box.add_completion(
        name, "title", of_value, replace=True
    ),
}
TAKE_AWAY: dict[str, Callable[[Toolbox, str], Any]] = {
    "tools": lambda box, name: box.remove_tool(name),
    "prompts": lambda box, name: box.remove_prompt(name),
    "resources": lambda box, name: box.remove_resource(f"{name}://x"),
    "completions": lambda box, name: box.remove_completion(name, "title"),
}
