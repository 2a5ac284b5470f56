"""`tools/list` and `tools/call`: definitions, results, and failures.

Spec 2026-07-28, server/tools.
"""

import asyncio
import copy
import enum
import functools
import logging
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import (
    Annotated,
    Any,
    Generic,
    Literal,
    NamedTuple,
    NewType,
    NotRequired,
    TypeVar,
)
from uuid import UUID

import pytest
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]  # no stubs
from pydantic import BaseModel, ConfigDict, Field, computed_field, field_serializer
from typing_extensions import TypedDict

from mcpkit import (
    App,
    Audio,
    Context,
    File,
    Image,
    ProtocolError,
    ResourceLink,
    Result,
    SetupError,
    Text,
    ToolError,
    dispatch,
)
from mcpkit.errors import INVALID_PARAMS
from mcpkit.protocol.era import SERVER_INFO
from mcpkit.protocol.jsonrpc import Encoded
from tests.calls import (
    EVERY,
    V_2025_03_26,
    V_2025_06_18,
    V_2025_11_25,
    call,
    call_tool,
    failed,
    reply,
    request,
    structured,
    text,
)
from tests.wire import MODERN

T = TypeVar("T")
WHEN = datetime(2020, 1, 2, tzinfo=UTC)


class Color(enum.Enum):
    """A color."""

    RED = "red"


class Point(BaseModel):
    """A place."""

    x: int
    y: float = 0


class Named(BaseModel):
    """Something with a name."""

    first_name: str = Field(alias="firstName")


class Odd(BaseModel):
    """A number that travels as a text."""

    n: int

    @field_serializer("n")
    def _as_text(self, n: int) -> str:
        return str(n)


class Tree(BaseModel):
    """A tree."""

    value: int
    children: list["Tree"] = []


class Movie(TypedDict):
    """A movie."""

    title: str
    year: NotRequired[int]


class Page(BaseModel, Generic[T]):
    """A page of a list."""

    items: list[T]

    @computed_field  # type: ignore[prop-decorator]  # as pydantic has it
    @property
    def count(self) -> int:
        """How many there are."""
        return len(self.items)


class Pair(NamedTuple):
    """A pair."""

    left: int
    right: str = "r"


@dataclass
class Item:
    """An item."""

    count: int


class Plain:
    """What has no JSON form."""


HOW = ("async", "thread", "loop")


def returning(value: Any, hint: Any = Any, how: str = "async", **options: Any) -> App:
    """Make an app whose tool `t` returns a value, under an annotation."""
    app = App("tests", **options)

    def in_function() -> Any:
        # It is read once, and there are several requests.
        return copy.copy(value) if isinstance(value, Iterator) else value

    async def in_coroutine() -> Any:
        return in_function()

    tool = in_coroutine if how == "async" else in_function
    tool.__annotations__ = {"return": hint}
    app.add_tool(tool, name="t", thread=how == "thread")
    return app


def raising(error: BaseException, how: str = "async", **options: Any) -> App:
    """Make an app whose tool `t` raises: async, in a thread, or on the loop."""
    app = App("tests", **options)

    async def in_coroutine() -> str:
        raise error

    def in_function() -> str:
        raise error

    if how == "async":
        app.add_tool(in_coroutine, name="t")
    else:
        app.add_tool(in_function, name="t", thread=how == "thread")
    return app


IMAGE = {"type": "image", "data": "/w==", "mimeType": "image/png"}
AUDIO = {"type": "audio", "data": "/w==", "mimeType": "audio/wav"}
FILE = {"type": "resource", "resource": {"uri": "a://b", "text": "c"}}
LINK = {"type": "resource_link", "uri": "a://b", "name": "b"}


def content(*blocks: dict[str, Any]) -> dict[str, Any]:
    return {"content": list(blocks), "isError": False}


RETURNED: list[tuple[str, Any, Any, dict[str, Any]]] = [
    # id, annotation, value, result
    ("a text", str, "x", text("x")),
    ("an empty text", str, "", text("")),
    ("a text, unannounced", Any, "x", text("x")),
    ("nothing", None, None, content()),
    ("nothing, unannounced", Any, None, content()),
    ("a text or nothing", str | None, None, content()),
    ("a block", Text, Text("x"), text("x")),
    ("an image", Image, Image(b"\xff"), content(IMAGE)),
    ("a recording", Audio, Audio(b"\xff"), content(AUDIO)),
    ("a file", File, File("a://b", "c"), content(FILE)),
    ("a link", ResourceLink, ResourceLink("a://b", "b"), content(LINK)),
    (
        "DEC-28 blocks",
        list[Text | Image],
        [Text("x"), Image(b"\xff")],
        content({"type": "text", "text": "x"}, IMAGE),
    ),
    ("DEC-28 a tuple of blocks", tuple[Audio, ...], (Audio(b"\xff"),), content(AUDIO)),
    ("RES-07 no blocks", list[Text | Image], [], content()),
    (
        "blocks and texts",
        Any,
        ["x", Image(b"\xff")],
        content({"type": "text", "text": "x"}, IMAGE),
    ),
    ("texts where blocks may be", list[str | Image], ["x"], text("x")),
    ("an optional block", Image | None, None, content()),
    (
        "RES-07 one block in a list",
        list[Image],
        [Image(b"\xff")],
        content(IMAGE),
    ),
    ("an iterator of blocks", Iterator[Text], iter([Text("x")]), text("x")),
    ("blocks or one", list[Image] | Image, Image(b"\xff"), content(IMAGE)),
    (
        "DEC-28 blocks, and none between them",
        list[Text | None],
        [Text("x"), None],
        text("x"),
    ),
    (
        "blocks and other values",
        Any,
        ["x", Image(b"\xff"), {"a": 1}, Point(x=1), None, 2],
        content(
            {"type": "text", "text": "x"},
            IMAGE,
            {"type": "text", "text": '{"a":1}'},
            {"type": "text", "text": '{"x":1,"y":0.0}'},
            {"type": "text", "text": "2"},
        ),
    ),
    (
        "blocks or models",
        list[Image | Point],
        [Image(b"\xff"), Point(x=1)],
        content(IMAGE, {"type": "text", "text": '{"x":1,"y":0.0}'}),
    ),
    (
        "a block in a dict",
        dict[str, Image],
        {"a": Image(b"\xff")},
        structured('{"a":{"type":"image","data":"/w==","mimeType":"image/png"}}'),
    ),
    ("an integer", int, 3, structured("3")),
    ("zero", int, 0, structured("0")),
    ("false", bool, False, structured("false")),
    ("a number", float, 1.5, structured("1.5")),
    ("null for an optional", int | None, None, structured("null")),
    ("ARG-09 a large integer", int, 2**63, structured("9223372036854775808")),
    ("RES-07 an empty list", list[int], [], structured("[]")),
    ("RES-07 a list of one", list[int], [1], structured("[1]")),
    ("RES-07 a list of two", list[int], [1, 2], structured("[1,2]")),
    ("RES-07 an empty list, unannounced", Any, [], structured("[]")),
    ("a list of an iterator", Iterator[int], iter([1, 2]), structured("[1,2]")),
    ("an iterator, unannounced", Any, iter([1, 2]), structured("[1,2]")),
    ("values of a dict, unannounced", Any, {"a": 1}.values(), structured("[1]")),
    ("a name for a text", NewType("UserId", str), "x", text("x")),
    ("a name for a number", NewType("Age", int), 3, structured("3")),
    ("a text of some length", Annotated[str, Field(max_length=3)], "x", text("x")),
    ("a value that is awaited", Awaitable[int], 3, structured("3")),
    ("RES-07 a list of one, unannounced", Any, ["a"], structured('["a"]')),
    ("an empty object", dict, {}, structured("{}")),
    ("RES-06 an object", dict[str, int], {"a": 1}, structured('{"a":1}')),
    ("RES-06 integer keys", dict[int, str], {1: "a"}, structured('{"1":"a"}')),
    (
        "a dict that looks like a block",
        Any,
        {"type": "text", "text": "x"},
        structured('{"type":"text","text":"x"}'),
    ),
    ("a model", Point, Point(x=1), structured('{"x":1,"y":0.0}')),
    ("a model, unannounced", Any, Point(x=1, y=2), structured('{"x":1,"y":2.0}')),
    ("a dict for a model", Point, {"x": 1, "y": 2}, structured('{"x":1,"y":2.0}')),
    ("DEC-15 an alias", Named, Named(firstName="x"), structured('{"firstName":"x"}')),
    ("a serializer of the model's own", Odd, Odd(n=1), structured('{"n":"1"}')),
    (
        "RES-06 a list of models",
        list[Point],
        [Point(x=1)],
        structured('[{"x":1,"y":0.0}]'),
    ),
    ("RES-06 a model or a text", Point | str, "s", structured('"s"')),
    ("an optional model", Point | None, None, structured("null")),
    ("no optional model", Point | None, Point(x=1), structured('{"x":1,"y":0.0}')),
    (
        "a generic model",
        Page[Point],
        Page(items=[Point(x=1)]),
        structured('{"items":[{"x":1,"y":0.0}],"count":1}'),
    ),
    ("a NamedTuple", Pair, Pair(1), structured('[1,"r"]')),
    ("a TypedDict without all", Movie, {"title": "x"}, structured('{"title":"x"}')),
    (
        "RES-10 a UUID",
        UUID,
        UUID(int=1),
        structured('"00000000-0000-0000-0000-000000000001"'),
    ),
    ("RES-10 a path", Path, Path("a/b"), structured('"a/b"')),
    (
        "DEC-25 a recursive model",
        Tree,
        Tree(value=1),
        structured('{"value":1,"children":[]}'),
    ),
    ("a dataclass", Item, Item(1), structured('{"count":1}')),
    ("RES-10 a dataclass, unannounced", Any, Item(1), structured('{"count":1}')),
    ("a TypedDict", Movie, {"title": "x"}, structured('{"title":"x"}')),
    ("an enum member", Color, Color.RED, structured('"red"')),
    ("a literal", Literal["a", "b"], "a", structured('"a"')),
    ("RES-10 a date and time", datetime, WHEN, structured('"2020-01-02T00:00:00Z"')),
    ("RES-10 a set", set[int], {1}, structured("[1]")),
    ("a tuple", tuple[int, str], (1, "a"), structured('[1,"a"]')),
    ("RES-10 a decimal", Decimal, Decimal("1.10"), structured('"1.10"')),
    ("RES-10 bytes", bytes, b"\xff", structured('"/w=="')),
    ("bytes that are a text", bytes, b"a", structured('"YQ=="')),
    ("RES-10 bytes, unannounced", Any, {"b": b"\xff"}, structured('{"b":"/w=="}')),
    (
        "RES-10 bytes in a dict",
        dict[str, Any],
        {"b": b"\xff"},
        structured('{"b":"/w=="}'),
    ),
    (
        "RES-10 all of them, unannounced",
        Any,
        {
            "t": WHEN,
            "u": UUID(int=1),
            "d": Decimal("1.10"),
            "s": {1},
            "e": Color.RED,
            "p": Path("a/b"),
            "td": timedelta(seconds=90),
        },
        structured(
            '{"t":"2020-01-02T00:00:00Z","u":"00000000-0000-0000-0000-000000000001",'
            '"d":"1.10","s":[1],"e":"red","p":"a/b","td":"PT1M30S"}'
        ),
    ),
    ("RES-01 NaN, unannounced", Any, {"a": float("nan")}, structured('{"a":null}')),
    ("RES-01 NaN in a dict", dict, {"a": float("nan")}, structured('{"a":null}')),
    ("half a surrogate pair", str, "\ud800", text("\ufffd")),
    ("half a pair, unannounced", Any, ["\ud800"], structured('["\ufffd"]')),
    ("half a pair in a list", list[str], ["\ud800"], structured('["\ufffd"]')),
    ("text beyond ASCII", str, "é\u2028🦀", text("é\u2028🦀")),
    ("a result of text", Result, Result.text("x"), text("x")),
    ("a result of structure", Result, Result.structured([1]), structured("[1]")),
    ("RES-04 an error result", Result, Result.error("No."), failed("No.")),
    (
        "RES-03 an error result under a schema",
        Point,
        Result.error("No."),
        failed("No."),
    ),
    (
        "a result of a model",
        Result[Point],
        Result.structured(Point(x=1)),
        structured('{"x":1,"y":0.0}'),
    ),
    ("a model for a result", Result[Point], Point(x=1), structured('{"x":1,"y":0.0}')),
    ("a text for a result", Result[str], "x", text("x")),
    (
        "a result of a list under a schema",
        list[Point],
        Result.structured([{"x": 1}]),
        structured('[{"x":1,"y":0.0}]'),
    ),
    (
        "a result of what is encoded already",
        Point,
        Result.structured(Encoded(b'{"x":1}')),
        structured('{"x":1,"y":0.0}'),
    ),
    (
        "a result with content of its own",
        Result[Point],
        Result.structured(Point(x=1), content=["Here.", Image(b"\xff")]),
        {
            **content({"type": "text", "text": "Here."}, IMAGE),
            "structuredContent": {"x": 1, "y": 0.0},
        },
    ),
    (
        "a result with content of its own, of a list",
        Any,
        Result.structured([1], content="One."),
        {**text("One."), "structuredContent": [1]},
    ),
    (
        "RES-03 an error of blocks",
        Result[Point],
        Result.error(["No.", Image(b"\xff")]),
        {**content({"type": "text", "text": "No."}, IMAGE), "isError": True},
    ),
    (
        "RES-03 a raw error under a schema",
        Point,
        Result.raw({"content": [{"type": "text", "text": "No."}], "isError": True}),
        failed("No."),
    ),
    (
        "a raw result under a schema",
        Point,
        Result.raw({"content": [Text("Here.")], "structuredContent": {"x": 1}}),
        {**text("Here."), "structuredContent": {"x": 1, "y": 0.0}},
    ),
    (
        "a raw result of a model",
        Any,
        Result.raw({"structuredContent": Point(x=1)}),
        {"content": [], "isError": False, "structuredContent": {"x": 1, "y": 0.0}},
    ),
    (
        "RES-09 a raw result without content",
        Result,
        Result.raw({"structuredContent": {"a": 1}}),
        {"content": [], "isError": False, "structuredContent": {"a": 1}},
    ),
    (
        "a result of content",
        Result,
        Result.content(["x", Image(b"\xff")]),
        content({"type": "text", "text": "x"}, IMAGE),
    ),
]


def table(rows: list[Any]) -> list[Any]:
    return [pytest.param(*row, id=name) for name, *row in rows]


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize(("hint", "value", "result"), table(RETURNED))
async def test_what_a_tool_returns_becomes_a_result(
    hint: Any, value: Any, result: dict[str, Any], how: str
) -> None:
    """Spec 2026-07-28, server/tools: Tool Result. The mapping is ours."""
    app = returning(value, hint, how)
    assert await call_tool(app, "t") == result


@pytest.mark.parametrize(("hint", "value", "result"), table(RETURNED))
async def test_structured_content_is_an_object_for_legacy_clients(
    hint: Any, value: Any, result: dict[str, Any]
) -> None:
    """RES-06. Spec 2025-11-25, server/tools: Structured Content."""
    if "structuredContent" in result:
        held = result["structuredContent"]
        # A schema that admits more than objects wraps every value alike.
        if not isinstance(held, dict) or hint in (Point | str, Point | None):
            result = {**result, "structuredContent": {"result": held}}
    app = returning(value, hint)
    assert await call_tool(app, "t", at=V_2025_11_25) == result
    assert await call_tool(app, "t", at=V_2025_06_18) == result


@pytest.mark.parametrize(("hint", "value", "result"), table(RETURNED))
async def test_the_first_revision_has_content_alone(
    hint: Any, value: Any, result: dict[str, Any]
) -> None:
    """Spec 2025-03-26, server/tools: there is neither structure nor a link."""
    result = {key: item for key, item in result.items() if key != "structuredContent"}
    if LINK in result["content"]:
        result = text("b: a://b")
    app = returning(value, hint)
    assert await call_tool(app, "t", at=V_2025_03_26) == result


@pytest.mark.parametrize(
    ("hint", "value"),
    [
        pytest.param(hint, value, id=name)
        for name, hint, value, result in RETURNED
        if "structuredContent" in result and hint not in (Any, Result, dict[str, Image])
    ],
)
@pytest.mark.parametrize("version", [MODERN, V_2025_11_25, V_2025_06_18])
async def test_structured_content_is_valid_after_the_published_schema(
    hint: Any, value: Any, version: str
) -> None:
    """Spec 2026-07-28, server/tools: Output Schema, a MUST."""
    app = returning(value, hint)
    (tool,) = (await call(app, "tools/list", at=version))["tools"]
    result = await call_tool(app, "t", at=version)
    Draft202012Validator(tool["outputSchema"]).validate(result["structuredContent"])


async def test_a_value_that_admits_objects_and_more_is_always_wrapped() -> None:
    """RES-06. One schema is published, so one shape is sent."""
    app = returning(Point(x=1), Point | str)
    result = await call_tool(app, "t", at=V_2025_11_25)
    assert result["structuredContent"] == {"result": {"x": 1, "y": 0.0}}


MISMATCHED: list[tuple[str, Any, Any, str]] = [
    # id, annotation, value, what the log says
    ("RES-04 a list for a text", str, [], "a list is not what was declared"),
    ("RES-04 nothing for a text", str, None, "a NoneType is not what was declared"),
    ("something for nothing", None, 3, "a int is not what was declared"),
    ("a fraction for an integer", int, 3.5, "valid integer"),
    ("a text for an integer", int, "x", "valid integer"),
    ("a text that looks like an integer", int, "3", "valid integer"),
    ("an integer for a truth", bool, 1, "valid boolean"),
    ("a text for an image", Image, "x", "a str is not what was declared"),
    ("nothing for an image", Image, None, "a NoneType is not what was declared"),
    ("a structure for an image", Image, {"a": 1}, "a dict is not what was declared"),
    ("a list for one image", Image, [Image(b"")], "a list is not what was declared"),
    ("RES-04 the wrong keys for a model", Point, {"wrong": 1}, "Field required"),
    ("RES-04 nothing for a model", Point, None, "Point"),
    ("a list for an object", dict, [], "valid dictionary"),
    ("an unknown literal", Literal["a"], "b", "'a'"),
    ("a name in place of the alias", Named, {"first_name": "x"}, "firstName"),
    ("a dataclass with the wrong type inside", Item, Item("x"), "Expected `int`"),  # type: ignore[arg-type]
    ("RES-01 an infinity", float, float("inf"), "the value: Input should be a finite"),
    ("RES-01 NaN", float, float("nan"), "the value: Input should be a finite number"),
    (
        "RES-01 NaN in a list",
        list[float],
        [1.0, float("nan")],
        "1: Input should be a finite number",
    ),
    (
        "RES-01 NaN in a model",
        Point,
        Point(x=1, y=float("nan")),
        "y: not a finite number",
    ),
    ("no JSON form in a dict", dict[str, Any], {"a": Plain()}, "Plain has no JSON"),
    (
        "no block in a list of blocks",
        list[Text],
        [1],
        "a int in the list is not what was declared",
    ),
    (
        "another block in a list of blocks",
        list[Text],
        [Image(b"")],
        "a Image in the list is not what was declared",
    ),
    (
        "a result of another structure",
        Point,
        Result.structured({"wrong": 1}),
        "x: Field required",
    ),
    ("a result of another type", Result[Point], Result.structured(3), "instance of"),
    (
        "RES-01 a result of NaN",
        Result[list[float]],
        Result.structured([float("nan")]),
        "0: Input should be a finite number",
    ),
    (
        "a result of text, under a schema",
        Point,
        Result.text("x"),
        "a text result has no structured content",
    ),
    (
        "a result of content, under a schema",
        Result[Point],
        Result.content([]),
        "a resource result has no structured content",
    ),
    (
        "RES-09 a raw result without structure, under a schema",
        Point,
        Result.raw({"content": []}),
        "a raw result has no structured content",
    ),
    (
        "a raw result of another structure",
        Point,
        Result.raw({"structuredContent": {"wrong": 1}, "isError": False}),
        "x: Field required",
    ),
    (
        "a result with content of its own, of another structure",
        Point,
        Result.structured({"wrong": 1}, content="x"),
        "x: Field required",
    ),
]


@pytest.mark.parametrize("version", EVERY)
@pytest.mark.parametrize(("hint", "value", "logged"), table(MISMATCHED))
async def test_a_value_that_is_not_of_the_declared_type_is_an_error(
    hint: Any, value: Any, logged: str, version: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Ours. Spec 2026-07-28, server/tools: Output Schema, a MUST."""
    result = await call_tool(returning(value, hint), "t", at=version)
    assert result == failed(
        "Tool t returned a value that does not match its output schema"
    )
    (record,) = caplog.records
    assert record.levelno == logging.ERROR
    assert record.getMessage().startswith("tool 't' breaks its output schema: ")
    assert logged in record.getMessage()


def circular() -> dict[str, Any]:
    value: dict[str, Any] = {}
    value["itself"] = value
    return value


def deep() -> list[Any]:
    value: list[Any] = []
    for _ in range(100_000):
        value = [value]
    return value


UNSERIALISABLE = [
    # id, value
    ("an object", Plain()),
    ("a function", print),
    ("an object in a dict", {"a": Plain()}),
    ("RES-10 a circle", circular()),
    ("a list of a deep list", deep()),
]


@pytest.mark.parametrize("value", table(UNSERIALISABLE))
async def test_a_value_without_a_json_form_is_an_error(
    value: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """RES-10. Ours."""
    assert await call_tool(returning(value), "t") == failed("Tool t failed")
    assert [record.getMessage() for record in caplog.records] == [
        "tools/call: tool 't' failed"
    ]


OTHERS = [
    Result.tools([]),
    Result.resource_read([]),
    Result.prompt_get("x"),
    Result.completion([]),
]


@pytest.mark.parametrize("value", OTHERS, ids=lambda result: result.kind)
async def test_a_result_of_another_method_is_a_fault_of_the_tool(
    value: Result, caplog: pytest.LogCaptureFixture
) -> None:
    """Ours."""
    assert await call_tool(returning(value), "t") == failed("Tool t failed")
    (record,) = caplog.records
    assert record.exc_info is not None
    assert str(record.exc_info[1]) == f"a {value.kind} result is no result of a tool"


async def test_a_circle_under_a_schema_is_an_error() -> None:
    result = await call_tool(returning(circular(), dict[str, Any]), "t")
    assert result == failed(
        "Tool t returned a value that does not match its output schema"
    )


NULLED = [
    # id, value, where the log says it is
    ("alone", float("nan"), "it"),
    ("in a dict", {"a": [1, float("inf")]}, "a.1"),
    ("in a result", Result.structured({"b": float("-inf")}), "b"),
    (
        "in a result with content of its own",
        Result.structured([float("nan")], content="x"),
        "0",
    ),
    ("among much that is null", [None] * 1000 + [float("nan")], "1000"),
    ("beside half a pair", ["\ud800", float("nan")], "1"),
]


@pytest.mark.parametrize(("value", "where"), table(NULLED))
async def test_a_number_that_becomes_null_is_logged(
    value: Any, where: str, caplog: pytest.LogCaptureFixture
) -> None:
    """RES-01. Ours."""
    await call_tool(returning(value), "t")
    assert [record.getMessage() for record in caplog.records] == [
        f"tool 't': NaN or an infinity became null: {where}"
    ]


MINE = {"com.example/x": 1}

WITH_META: list[tuple[str, Any, Any, dict[str, Any]]] = [
    # id, annotation, result, the rest of it
    ("a text", Any, Result.text("x", metadata=MINE), text("x")),
    (
        "content",
        Any,
        Result.content(Image(b"\xff"), metadata=MINE),
        content(IMAGE),
    ),
    (
        "a structure under a schema",
        Result[Point],
        Result.structured(Point(x=1), metadata=MINE),
        structured('{"x":1,"y":0.0}'),
    ),
    (
        "a structure with content of its own",
        Result[Point],
        Result.structured(Point(x=1), content="Here.", metadata=MINE),
        {**text("Here."), "structuredContent": {"x": 1, "y": 0.0}},
    ),
    ("an error", Result[Point], Result.error("No.", metadata=MINE), failed("No.")),
    ("in wire form", Any, Result.raw({"_meta": MINE}), content()),
    (
        "in wire form, and beside it",
        Any,
        Result.raw({"_meta": {"com.example/x": 0}}, metadata=MINE),
        content(),
    ),
]


@pytest.mark.parametrize("version", EVERY)
@pytest.mark.parametrize(("hint", "value", "rest"), table(WITH_META))
async def test_members_of_meta_survive(
    hint: Any, value: Any, rest: dict[str, Any], version: str
) -> None:
    """RES-13. Spec 2026-07-28, basic/index: `_meta`."""
    app = returning(value, hint)
    result = await call_tool(app, "t", at=version)
    if version == V_2025_03_26:
        rest = without(rest, "structuredContent")
    assert result == {**rest, "_meta": MINE}
    if version == MODERN:
        replied = await reply(app, "tools/call", name="t")
        assert replied.message["result"]["_meta"] == {
            **MINE,
            SERVER_INFO: {"name": "tests", "version": "0.1.0"},
        }


class UnspeakableError(Exception):
    """An exception that can't be shown."""

    def __str__(self) -> str:
        raise RuntimeError

    __repr__ = __str__


class SpeechlessError(ToolError):
    """What the model should hear of, in words that fail."""

    def __str__(self) -> str:
        raise RuntimeError


RAISED: list[tuple[str, Callable[[], BaseException], str]] = [
    # id, exception, how `debug` describes it
    (
        "an error",
        lambda: RuntimeError("postgres://user:pw@host"),
        "RuntimeError: postgres://user:pw@host",
    ),
    ("a time-out", TimeoutError, "TimeoutError: "),
    ("too little memory", MemoryError, "MemoryError: "),
    ("the end of an async iterator", StopAsyncIteration, "StopAsyncIteration: "),
    ("an interrupt", KeyboardInterrupt, "KeyboardInterrupt: "),
    ("an exit", lambda: SystemExit(1), "SystemExit: 1"),
    ("a cancellation of its own", asyncio.CancelledError, "CancelledError: "),
    (
        "a group",
        lambda: ExceptionGroup("several", [ValueError("v")]),
        "ExceptionGroup: several (1 sub-exception)",
    ),
    (
        "a group of interrupts",
        lambda: BaseExceptionGroup("several", [KeyboardInterrupt()]),
        "BaseExceptionGroup: several (1 sub-exception)",
    ),
    ("one that can't be shown", UnspeakableError, "UnspeakableError"),
    ("one that the model can't be told", SpeechlessError, "SpeechlessError"),
]


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize(("error", "described"), table(RAISED))
async def test_what_a_tool_raises_is_masked_and_logged(
    error: Callable[[], BaseException],
    described: str,  # noqa: ARG001  # the next test's
    how: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """ERR-01, ERR-03. Ours: a stranger's text never reaches the client."""
    raised = error()
    app = raising(raised, how)
    assert await call_tool(app, "t") == failed("Tool t failed")
    (record,) = caplog.records
    assert record.getMessage() == "tools/call: tool 't' failed"
    assert record.exc_info is not None
    assert record.exc_info[1] is raised
    assert record.exc_info[2] is not None
    app.add_tool(lambda: "alive", name="next")
    assert await call_tool(app, "next") == text("alive")


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize(("error", "described"), table(RAISED))
async def test_debug_tells_what_a_tool_raised(
    error: Callable[[], BaseException], described: str, how: str
) -> None:
    """Ours: `App(debug=True)`."""
    app = raising(error(), how, debug=True)
    assert await call_tool(app, "t") == failed(f"Tool t failed: {described}")


@pytest.mark.parametrize("how", HOW)
async def test_the_end_of_an_iterator_is_an_error(how: str) -> None:
    """ERR-03. Python turns it into a RuntimeError where a coroutine raises it."""
    assert await call_tool(raising(StopIteration(3), how), "t") == failed(
        "Tool t failed"
    )


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("version", EVERY)
async def test_a_tool_error_is_told_verbatim(
    version: str, how: str, caplog: pytest.LogCaptureFixture
) -> None:
    """ERR-01, RES-03. Spec 2026-07-28, server/tools: Error Handling."""
    app = raising(ToolError("Pick a later date."), how)
    assert await call_tool(app, "t", at=version) == failed("Pick a later date.")
    assert caplog.records == []


async def test_a_tool_error_under_an_output_schema_has_no_structure() -> None:
    """RES-03."""
    app = App("tests")

    @app.tool
    async def t() -> Point:
        raise ToolError("Resource not found")

    assert await call_tool(app, "t") == failed("Resource not found")


async def test_an_error_code_that_is_none_is_a_fault_of_the_tool() -> None:
    """ERR-04. It never gets to the wire."""
    app = App("tests")

    @app.tool
    async def t() -> str:
        code: Any = "x"
        raise ProtocolError(code, "m")

    assert await call_tool(app, "t") == failed("Tool t failed")


async def test_a_time_out_inside_a_tool_is_an_error() -> None:
    """ERR-03."""
    app = App("tests")

    @app.tool
    async def t() -> str:
        async with asyncio.timeout(0):
            await asyncio.Event().wait()
        raise NotImplementedError

    assert await call_tool(app, "t") == failed("Tool t failed")


class Ended(Exception):  # noqa: N818  # a handler's own
    """What a handler makes of it that it is cancelled."""


@pytest.mark.parametrize("raised", [asyncio.CancelledError, Ended])
async def test_a_cancelled_request_stays_cancelled(raised: type[BaseException]) -> None:
    """ERR-03. An error that a tool turns it into is not an answer either."""
    app = App("tests")
    started = asyncio.Event()
    cleaned = []

    @app.tool
    async def t() -> str:
        try:
            started.set()
            await asyncio.Event().wait()
        except asyncio.CancelledError as error:
            raise raised from error
        finally:
            cleaned.append("up")
        raise NotImplementedError

    task = asyncio.create_task(dispatch(request("tools/call", name="t"), app))
    await started.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert cleaned == ["up"]


PROTOCOL_ERRORS = [
    # id, error, error of the response, modern; of a legacy response
    (
        "verbatim",
        ProtocolError(-32602, "m", {"a": 1}),
        {"code": -32602, "message": "m", "data": {"a": 1}},
        None,
    ),
    ("without data", ProtocolError(5, "m"), {"code": 5, "message": "m"}, None),
    (
        "null as data",
        ProtocolError(5, "m", None),
        {"code": 5, "message": "m", "data": None},
        None,
    ),
    (
        "a server error",
        ProtocolError(-32000, "m"),
        {"code": -32000, "message": "m"},
        None,
    ),
    (
        "ERR-04 data without a JSON form",
        ProtocolError(5, "m", Plain()),
        {"code": 5, "message": "m"},
        None,
    ),
    (
        "ERR-04 a code of the first revisions",
        ProtocolError(-32002, "m", {"uri": "a"}),
        {"code": -32602, "message": "m", "data": {"uri": "a"}},
        {"code": -32002, "message": "m", "data": {"uri": "a"}},
    ),
    (
        "ERR-04 a retired code",
        ProtocolError(-32042, "m"),
        {"code": -32603, "message": "Internal error"},
        {"code": -32042, "message": "m"},
    ),
    (
        "ERR-04 an undefined code",
        ProtocolError(-32050, "m", {"a": 1}),
        {"code": -32603, "message": "Internal error"},
        {"code": -32050, "message": "m", "data": {"a": 1}},
    ),
]


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize(("error", "modern", "legacy"), table(PROTOCOL_ERRORS))
async def test_a_protocol_error_is_sent_under_the_rules_of_its_code(
    error: ProtocolError,
    modern: dict[str, Any],
    legacy: dict[str, Any] | None,
    how: str,
) -> None:
    """Spec 2026-07-28, basic/index: Error Codes."""
    app = raising(error, how)
    assert await call_tool(app, "t") == modern
    assert await call_tool(app, "t", at=V_2025_11_25) == (legacy or modern)


def shop() -> App:
    app = App("tests")

    @app.tool
    def search(query: str, limit: int = 10) -> str:
        return f"{limit} of {query}"

    return app


MALFORMED = [
    # id, params, error
    ("ARG-07 no name", {}, "Invalid params: name must be a string"),
    ("ARG-07 an object as name", {"name": {}}, "Invalid params: name must be a string"),
    ("ARG-07 an array as name", {"name": [1]}, "Invalid params: name must be a string"),
    ("ARG-07 a truth as name", {"name": True}, "Invalid params: name must be a string"),
    ("null as name", {"name": None}, "Invalid params: name must be a string"),
    (
        "ARG-07 a number as arguments",
        {"name": "search", "arguments": 5},
        "Invalid params: arguments must be an object",
    ),
    (
        "ARG-07 an array as arguments",
        {"name": "search", "arguments": [1]},
        "Invalid params: arguments must be an object",
    ),
    (
        "ARG-07 a text as arguments",
        {"name": "search", "arguments": "x"},
        "Invalid params: arguments must be an object",
    ),
    (
        "false as arguments",
        {"name": "search", "arguments": False},
        "Invalid params: arguments must be an object",
    ),
    ("an unknown name", {"name": "zzz"}, "Unknown tool: zzz"),
    ("an empty name", {"name": ""}, "Unknown tool: "),
    ("a long name", {"name": "z" * 5000}, f"Unknown tool: {'z' * 200}…"),
]


@pytest.mark.parametrize("version", EVERY)
@pytest.mark.parametrize(("params", "message"), table(MALFORMED))
async def test_a_malformed_call_is_a_protocol_error(
    params: dict[str, Any], message: str, version: str
) -> None:
    """Spec 2026-07-28, server/tools: Error Handling, protocol errors."""
    error = await call(shop(), "tools/call", at=version, **params)
    assert error == {"code": INVALID_PARAMS, "message": message}


async def test_a_misspelled_tool_is_answered_with_what_it_may_stand_for() -> None:
    """Ours."""
    assert await call_tool(shop(), "serch") == {
        "code": INVALID_PARAMS,
        "message": "Unknown tool: serch",
        "data": {"suggestions": ["search"]},
    }


@pytest.mark.parametrize("version", EVERY)
async def test_wrong_arguments_are_told_to_the_model(version: str) -> None:
    """ARG-06, DEC-22. Spec 2026-07-28, server/tools: Error Handling, tool errors."""
    arguments = {"limit": "abc", "querry": "x"}
    assert await call_tool(shop(), "search", arguments, at=version) == failed(
        "query: missing\nlimit: expected integer, got string\nquerry: unknown argument"
    )


@pytest.mark.parametrize("arguments", [None, {}])
async def test_arguments_may_be_missing_null_or_empty(arguments: Any) -> None:
    """DEC-27."""
    app = returning("now")
    assert await call_tool(app, "t", arguments) == text("now")
    assert await call(app, "tools/call", name="t", arguments=None) == text("now")


async def test_coerce_is_an_option_of_the_app() -> None:
    app = App("tests", coerce=True)

    @app.tool
    def double(n: int) -> int:
        return 2 * n

    assert await call_tool(app, "double", {"n": "3"}) == structured("6")


async def test_a_coroutine_tool_of_a_callable_object_is_awaited() -> None:
    """DEC-10."""
    app = App("tests")

    class Adder:
        async def __call__(self, x: int) -> int:
            return x + 1

    app.add_tool(Adder(), name="t")
    assert await call_tool(app, "t", {"x": 1}) == structured("2")


async def test_a_wrapper_runs_on_each_call() -> None:
    """DEC-03."""
    app = App("tests")
    calls = []

    def counted(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        async def wrapper(*args: Any, **kwargs: Any) -> Any:
            calls.append(kwargs)
            return await function(*args, **kwargs)

        return wrapper

    @app.tool
    @counted
    async def add(a: int, b: int) -> int:
        return a + b

    assert await call_tool(app, "add", {"a": 1, "b": 2}) == structured("3")
    assert calls == [{"a": 1, "b": 2}]


def catalogued() -> App:
    app = App("tests")

    @app.tool(
        title="Search",
        icons=[{"src": "https://example.com/a.png", "mimeType": "image/png"}],
        annotations={"readOnlyHint": True},
        meta={"com.example/a": 1},
    )
    def search(query: str) -> list[str]:
        """Search the catalogue.

        By title or author.
        """
        raise NotImplementedError

    @app.tool
    def ping(ctx: Context) -> str:
        raise NotImplementedError

    return app


SEARCH = {
    "name": "search",
    "title": "Search",
    "description": "Search the catalogue.\n\nBy title or author.",
    "icons": [{"src": "https://example.com/a.png", "mimeType": "image/png"}],
    "inputSchema": {
        "type": "object",
        "properties": {"query": {"type": "string"}},
        "required": ["query"],
        "additionalProperties": False,
    },
    "outputSchema": {"type": "array", "items": {"type": "string"}},
    "annotations": {"readOnlyHint": True},
    "_meta": {"com.example/a": 1},
}
PING = {
    "name": "ping",
    "inputSchema": {"type": "object", "additionalProperties": False},
}
WRAPPED = {
    "type": "object",
    "properties": {"result": {"type": "array", "items": {"type": "string"}}},
    "required": ["result"],
}


def without(definition: dict[str, Any], *keys: str) -> dict[str, Any]:
    return {key: value for key, value in definition.items() if key not in keys}


LISTED = [
    # revision, the definition of `search`
    (MODERN, SEARCH),
    (V_2025_11_25, {**SEARCH, "outputSchema": WRAPPED}),
    (V_2025_06_18, without({**SEARCH, "outputSchema": WRAPPED}, "icons")),
    (V_2025_03_26, without(SEARCH, "icons", "title", "outputSchema", "_meta")),
]


@pytest.mark.parametrize(("version", "search"), LISTED)
async def test_definitions_are_listed_as_the_revision_has_them(
    version: str, search: dict[str, Any]
) -> None:
    """DEC-18. Spec 2026-07-28, server/tools: Listing Tools, and older ones."""
    listed = await call(catalogued(), "tools/list", at=version)
    expected: dict[str, Any] = {"tools": [search, PING]}
    if version == MODERN:
        expected |= {"ttlMs": 60_000, "cacheScope": "private"}
    assert listed == expected


async def test_a_recursive_output_schema_is_an_object_at_the_root() -> None:
    """DEC-25. Spec 2025-11-25, schema: Tool, `outputSchema`."""
    tree = {
        "description": "A tree.",
        "properties": {
            "value": {"type": "integer"},
            "children": {
                "default": [],
                "items": {"$ref": "#/$defs/Tree"},
                "type": "array",
            },
        },
        "required": ["value"],
        "type": "object",
    }
    schema = {"type": "object", "$ref": "#/$defs/Tree", "$defs": {"Tree": tree}}
    app = returning(None, Tree)
    for version in (MODERN, V_2025_11_25, V_2025_06_18):
        (tool,) = (await call(app, "tools/list", at=version))["tools"]
        assert tool["outputSchema"] == schema


class Unsendable(BaseModel):
    """A model whose schema nobody can encode."""

    model_config = ConfigDict(json_schema_extra={"x": Plain()})  # type: ignore[dict-item]
    a: int


ODD: list[tuple[str, Any, dict[str, Any]]] = [
    # id, annotation, options
    ("a schema", Unsendable, {}),
    ("its meta", str, {"meta": {"com.example/a": Plain()}}),
    ("an icon", str, {"icons": [{"src": "a:b", "sizes": Plain()}]}),
]


@pytest.mark.parametrize(("hint", "options"), table(ODD))
async def test_a_tool_that_can_not_be_listed_does_not_break_the_list(
    hint: Any, options: dict[str, Any]
) -> None:
    """DEC-25."""
    app = returning("x")

    def odd() -> None:
        raise NotImplementedError

    odd.__annotations__ = {"return": hint}
    with pytest.raises(SetupError, match=r"'odd'.* no JSON form: .*Plain"):
        app.add_tool(odd, **options)
    for version in EVERY:
        (tool,) = (await call(app, "tools/list", at=version))["tools"]
        assert tool["name"] == "t"


NO_SCHEMA = [
    # id, return annotation
    ("a text", str),
    ("a text or nothing", str | None),
    ("nothing", None),
    ("anything", Any),
    ("a result", Result),
    ("a result or a model", Result | Point),
    ("a block", Image),
    ("an optional block", Image | None),
    ("DEC-28 blocks", list[Text | Image]),
    ("DEC-28 a tuple of blocks", tuple[Audio, ...]),
    ("DEC-28 a class that pydantic does not know", Plain),
]


@pytest.mark.parametrize("hint", table(NO_SCHEMA))
async def test_no_output_schema_is_published_for(hint: Any) -> None:
    """DEC-28. Ours."""
    (tool,) = (await call(returning(None, hint), "tools/list"))["tools"]
    assert "outputSchema" not in tool


async def test_tools_are_unknown_methods_where_there_are_none() -> None:
    """Spec 2026-07-28, server/tools: Capabilities."""
    app = App("tests")
    for method in ("tools/list", "tools/call"):
        assert await call(app, method, name="x") == {
            "code": -32601,
            "message": "Method not found",
        }
