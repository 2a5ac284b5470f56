"""A function as a tool sees it: what is published, and what is enforced."""

import doctest
import enum
import functools
import inspect
import math
import time
import typing
from collections.abc import Callable, Collection, Coroutine, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time as clock, timedelta, timezone
from decimal import Decimal
from ipaddress import IPv4Address
from pathlib import Path
from typing import (
    Annotated,
    Any,
    Generic,
    Literal,
    NamedTuple,
    NewType,
    NotRequired,
    Optional,
    TypeVar,
)
from uuid import UUID
from zoneinfo import ZoneInfo

import pytest
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]  # no stubs
from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Discriminator,
    Field,
    Json,
    RootModel,
    SecretStr,
    Tag,
)
from typing_extensions import TypeAliasType, TypedDict

import mcpkit.faults
import mcpkit.strict
from mcpkit import Context, SetupError
from mcpkit.faults import ArgumentsError
from mcpkit.signature import Signature, read_signature
from tests import postponed


class Color(enum.Enum):
    """A color."""

    RED = "red"
    BLUE = "blue"


class Priority(enum.IntEnum):
    """How urgent."""

    LOW = 1
    HIGH = 2


class Point(BaseModel):
    """A place."""

    x: int
    y: float = 0


class Tree(BaseModel):
    """A tree."""

    value: int
    children: list["Tree"] = []


class Cat(BaseModel):
    """A cat."""

    kind: Literal["cat"]
    lives: int


class Dog(BaseModel):
    """A dog."""

    kind: Literal["dog"]
    name: str


class Movie(TypedDict):
    """A movie."""

    title: str
    year: NotRequired[int]


class Place(NamedTuple):
    """A place of a map."""

    x: int
    y: int = 0


T = TypeVar("T")


class Page(BaseModel, Generic[T]):  # noqa: D101  # it must have none
    items: list[T]


@dataclass
class Box(Generic[T]):
    """A box."""

    item: T


class Ids(RootModel[list[int]]):
    """Some ids."""


class Untold(BaseModel):  # noqa: D101  # it must have none
    a: int


class Titled(BaseModel):  # noqa: D101  # it must have none
    model_config = ConfigDict(title="A title")

    a: float = math.nan


@dataclass
class UntoldItem:  # noqa: D101  # it must have none
    a: int


Nested = TypeAliasType("Nested", "list[Nested] | int")
UserId = NewType("UserId", int)


@dataclass
class Item:
    """An item."""

    name: str
    count: int = 1


class Plain:
    """What pydantic does not know."""


NOTHING: Any = inspect.Parameter.empty


def function_of(hint: Any, default: Any = NOTHING) -> Callable[..., Any]:
    """Make a function of one parameter `a`, which it returns."""

    def f(a: Any) -> Any:
        return a

    f.__annotations__ = {"a": hint}
    if default is not NOTHING:
        f.__defaults__ = (default,)
    return f


def signature_of(hint: Any, default: Any = NOTHING) -> Signature:
    return read_signature(function_of(hint, default), "tool 'f'")


def schema(
    properties: dict[str, Any], *required: str, **definitions: Any
) -> dict[str, Any]:
    return {
        "type": "object",
        **({"$defs": definitions} if definitions else {}),
        "additionalProperties": False,
        "properties": properties,
        **({"required": list(required)} if required else {}),
    }


def refusal(signature: Signature, arguments: Any, *, coerce: bool = False) -> str:
    with pytest.raises(ArgumentsError) as caught:
        signature.bind(arguments, coerce=coerce)
    return str(caught.value)


def test_the_examples_in_the_docstrings_run() -> None:
    assert doctest.testmod(mcpkit.faults).failed == 0
    assert doctest.testmod(mcpkit.strict).failed == 0


POINT = {
    "description": "A place.",
    "properties": {"x": {"type": "integer"}, "y": {"default": 0, "type": "number"}},
    "required": ["x"],
    "type": "object",
}
TREE = {
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
ITEM = {
    "description": "An item.",
    "additionalProperties": False,
    "properties": {
        "name": {"type": "string"},
        "count": {"default": 1, "type": "integer"},
    },
    "required": ["name"],
    "type": "object",
}
MOVIE = {
    "description": "A movie.",
    "additionalProperties": False,
    "properties": {"title": {"type": "string"}, "year": {"type": "integer"}},
    "required": ["title"],
    "type": "object",
}
CAT = {
    "description": "A cat.",
    "properties": {
        "kind": {"const": "cat", "type": "string"},
        "lives": {"type": "integer"},
    },
    "required": ["kind", "lives"],
    "type": "object",
}
DOG = {
    "description": "A dog.",
    "properties": {
        "kind": {"const": "dog", "type": "string"},
        "name": {"type": "string"},
    },
    "required": ["kind", "name"],
    "type": "object",
}
COLOR = {"description": "A color.", "enum": ["red", "blue"], "type": "string"}

PLACE = {
    "maxItems": 2,
    "minItems": 1,
    "prefixItems": [{"type": "integer"}, {"default": 0, "type": "integer"}],
    "type": "array",
}
INTEGERS = {"items": {"type": "integer"}, "type": "array"}
PAGE = {
    "properties": {"items": INTEGERS},
    "required": ["items"],
    "type": "object",
}
BOX = {
    "description": "A box.",
    "additionalProperties": False,
    "properties": {"item": {"type": "integer"}},
    "required": ["item"],
    "type": "object",
}
UNTOLD = {
    "properties": {"a": {"type": "integer"}},
    "required": ["a"],
    "type": "object",
}
NESTED = {
    "anyOf": [
        {"items": {"$ref": "#/$defs/Nested"}, "type": "array"},
        {"type": "integer"},
    ]
}


def tag(value: Any) -> str:
    return "one" if isinstance(value, int) else "many"


Few = Annotated[
    Annotated[int, Tag("one")] | Annotated[list[int], Tag("many")], Discriminator(tag)
]
Pet = Annotated[Cat | Dog, Field(discriminator="kind")]
Short = Annotated[str, Field(min_length=1, max_length=5, pattern="^[a-z]+$")]
Rating = Annotated[int, Field(ge=1, le=5, description="Stars.", title="Rating")]

PUBLISHED = [
    # id, annotation, schema of the parameter, definitions
    ("int", int, {"type": "integer"}, {}),
    ("float", float, {"type": "number"}, {}),
    ("bool", bool, {"type": "boolean"}, {}),
    ("str", str, {"type": "string"}, {}),
    ("None", None, {"type": "null"}, {}),
    ("Any", Any, {}, {}),
    ("list", list[int], {"items": {"type": "integer"}, "type": "array"}, {}),
    ("bare list", list, {"items": {}, "type": "array"}, {}),
    (
        "set",
        set[str],
        {"items": {"type": "string"}, "type": "array", "uniqueItems": True},
        {},
    ),
    (
        "tuple",
        tuple[int, str],
        {
            "maxItems": 2,
            "minItems": 2,
            "prefixItems": [{"type": "integer"}, {"type": "string"}],
            "type": "array",
        },
        {},
    ),
    (
        "dict",
        dict[str, int],
        {"additionalProperties": {"type": "integer"}, "type": "object"},
        {},
    ),
    ("bare dict", dict, {"additionalProperties": True, "type": "object"}, {}),
    ("Literal", Literal["a", "b"], {"enum": ["a", "b"], "type": "string"}, {}),
    ("one Literal", Literal["a"], {"const": "a", "type": "string"}, {}),
    (
        "optional",
        Optional[int],  # noqa: UP045  # the older spelling is read too
        {"anyOf": [{"type": "integer"}, {"type": "null"}]},
        {},
    ),
    ("union", int | str, {"anyOf": [{"type": "integer"}, {"type": "string"}]}, {}),
    ("datetime", datetime, {"format": "date-time", "type": "string"}, {}),
    ("date", date, {"format": "date", "type": "string"}, {}),
    ("time", clock, {"format": "time", "type": "string"}, {}),
    ("timedelta", timedelta, {"format": "duration", "type": "string"}, {}),
    ("UUID", UUID, {"format": "uuid", "type": "string"}, {}),
    ("bytes", bytes, {"format": "binary", "type": "string"}, {}),
    ("Path", Path, {"format": "path", "type": "string"}, {}),
    ("enum", Color, {"$ref": "#/$defs/Color"}, {"Color": COLOR}),
    ("model", Point, {"$ref": "#/$defs/Point"}, {"Point": POINT}),
    ("recursive model", Tree, {"$ref": "#/$defs/Tree"}, {"Tree": TREE}),
    ("dataclass", Item, {"$ref": "#/$defs/Item"}, {"Item": ITEM}),
    ("TypedDict", Movie, {"$ref": "#/$defs/Movie"}, {"Movie": MOVIE}),
    (
        "list of models",
        list[Point],
        {"items": {"$ref": "#/$defs/Point"}, "type": "array"},
        {"Point": POINT},
    ),
    (
        "discriminated union",
        Pet,
        {"oneOf": [{"$ref": "#/$defs/Cat"}, {"$ref": "#/$defs/Dog"}]},
        {"Cat": CAT, "Dog": DOG},
    ),
    ("a discriminating function", Few, {"anyOf": [{"type": "integer"}, INTEGERS]}, {}),
    ("NamedTuple", Place, {"$ref": "#/$defs/Place"}, {"Place": PLACE}),
    ("generic model", Page[int], {"$ref": "#/$defs/Page_int_"}, {"Page_int_": PAGE}),
    ("generic dataclass", Box[int], {"$ref": "#/$defs/Box_int_"}, {"Box_int_": BOX}),
    ("type variable", list[T], {"items": {}, "type": "array"}, {}),  # type: ignore[valid-type]  # what a generic has
    (
        "root model",
        Ids,
        {"$ref": "#/$defs/Ids"},
        {"Ids": {"description": "Some ids.", **INTEGERS}},
    ),
    ("undescribed", Untold, {"$ref": "#/$defs/Untold"}, {"Untold": UNTOLD}),
    (
        "undescribed dataclass",
        UntoldItem,
        {"$ref": "#/$defs/UntoldItem"},
        {"UntoldItem": {"additionalProperties": False, **UNTOLD}},
    ),
    ("recursive alias", Nested, {"$ref": "#/$defs/Nested"}, {"Nested": NESTED}),
    ("NewType", UserId, {"type": "integer"}, {}),
    ("Sequence", Sequence[int], INTEGERS, {}),
    ("Iterable", Iterable[int], INTEGERS, {}),
    ("older Iterable", typing.Iterable[int], INTEGERS, {}),
    (
        "a list of Iterables",
        list[Iterable[int]],
        {"items": INTEGERS, "type": "array"},
        {},
    ),
    (
        "members among others",
        dict[str, Literal[Color.RED, "x"]],
        {
            "additionalProperties": {"enum": ["red", "x"], "type": "string"},
            "type": "object",
        },
        {},
    ),
    (
        "constraints beside a validator",
        Annotated[dict[str, int], AfterValidator(dict), Field(min_length=1)],
        {
            "additionalProperties": {"type": "integer"},
            "minProperties": 1,
            "type": "object",
        },
        {},
    ),
    (
        "constraints of numbers beside a validator",
        list[Annotated[int, AfterValidator(abs), Field(gt=1, le=5, multiple_of=2)]],
        {
            "items": {
                "exclusiveMinimum": 1,
                "maximum": 5,
                "multipleOf": 2,
                "type": "integer",
            },
            "type": "array",
        },
        {},
    ),
    (
        "keys of a pattern",
        dict[Annotated[str, Field(pattern="^k")], int],
        {
            "additionalProperties": False,
            "patternProperties": {"^k": {"type": "integer"}},
            "type": "object",
        },
        {},
    ),
    (
        "a title of a class",
        Titled,
        {"$ref": "#/$defs/Titled"},
        {
            "Titled": {
                "properties": {"a": {"type": "number"}},
                "title": "A title",
                "type": "object",
            }
        },
    ),
    ("bare Iterable", Iterable, {"items": {}, "type": "array"}, {}),
    ("Collection", Collection[int], INTEGERS, {}),
    (
        "optional Iterable",
        Iterable[int] | None,
        {"anyOf": [INTEGERS, {"type": "null"}]},
        {},
    ),
    (
        "annotated Iterable",
        Annotated[Iterable[int], Field(title="A")],
        {"title": "A", **INTEGERS},
        {},
    ),
    (
        "Mapping",
        Mapping[str, int],
        {"additionalProperties": {"type": "integer"}, "type": "object"},
        {},
    ),
    (
        "integer keys",
        dict[int, str],
        {
            "additionalProperties": {"type": "string"},
            "propertyNames": {"pattern": "^(0|-?[1-9][0-9]*)$"},
            "type": "object",
        },
        {},
    ),
    (
        "keys of an enum",
        dict[Color, Any],
        {
            "additionalProperties": True,
            "propertyNames": {"$ref": "#/$defs/Color"},
            "type": "object",
        },
        {"Color": COLOR},
    ),
    ("Literal of a member", Literal[Color.RED], {"const": "red", "type": "string"}, {}),
    (
        "Literals of all kinds",
        Literal[1, "a", None, True],
        {"enum": [1, "a", None, True]},
        {},
    ),
    (
        "secret",
        SecretStr,
        {"format": "password", "type": "string", "writeOnly": True},
        {},
    ),
    (
        "constraints and description",
        Rating,
        {
            "description": "Stars.",
            "maximum": 5,
            "minimum": 1,
            "title": "Rating",
            "type": "integer",
        },
        {},
    ),
    (
        "constraints of a text",
        Short,
        {"maxLength": 5, "minLength": 1, "pattern": "^[a-z]+$", "type": "string"},
        {},
    ),
]


@pytest.mark.parametrize(
    ("hint", "published", "definitions"),
    [pytest.param(*row, id=name) for name, *row in PUBLISHED],
)
def test_a_parameter_is_published(
    hint: Any, published: dict[str, Any], definitions: dict[str, Any]
) -> None:
    """Spec 2026-07-28, server/tools: Tool, `inputSchema`."""
    assert signature_of(hint).schema == schema({"a": published}, "a", **definitions)


class Opaque:
    """A default without a JSON form."""


DEFAULTS = [
    # id, annotation, default, schema of the parameter, definitions
    ("int", int, 5, {"type": "integer", "default": 5}, {}),
    ("zero", int, 0, {"type": "integer", "default": 0}, {}),
    ("false", bool, False, {"type": "boolean", "default": False}, {}),
    ("empty text", str, "", {"type": "string", "default": ""}, {}),
    (
        "null",
        int | None,
        None,
        {"anyOf": [{"type": "integer"}, {"type": "null"}], "default": None},
        {},
    ),
    ("null, unannounced", str, None, {"type": "string"}, {}),
    ("of another type", int, "x", {"type": "integer"}, {}),
    ("null, unannounced, in Field", str, Field(None), {"type": "string"}, {}),
    ("NaN", float, math.nan, {"type": "number"}, {}),
    ("half a surrogate pair", str, "\ud800", {"type": "string"}, {}),
    (
        "bytes that are no text",
        bytes,
        b"\xff",
        {"format": "binary", "type": "string"},
        {},
    ),
    ("an iterator", Any, iter([1]), {}, {}),
    (
        "a secret",
        SecretStr,
        SecretStr("hunter2"),
        {"format": "password", "type": "string", "writeOnly": True},
        {},
    ),
    (
        "a tuple",
        Sequence[str],
        ("a",),
        {"items": {"type": "string"}, "type": "array", "default": ["a"]},
        {},
    ),
    (
        "DEC-21 datetime",
        datetime,
        datetime(2020, 1, 1),  # noqa: DTZ001  # what a user writes
        {"format": "date-time", "type": "string", "default": "2020-01-01T00:00:00"},
        {},
    ),
    (
        "DEC-21 enum",
        Color,
        Color.RED,
        {"$ref": "#/$defs/Color", "default": "red"},
        {"Color": COLOR},
    ),
    (
        "DEC-21 Path",
        Path,
        Path("data"),
        {"format": "path", "type": "string", "default": "data"},
        {},
    ),
    (
        "model",
        Point,
        Point(x=1),
        {"$ref": "#/$defs/Point", "default": {"x": 1, "y": 0}},
        {"Point": POINT},
    ),
    ("DEC-21 no JSON form", Any, Opaque(), {}, {}),
    (
        "in Field",
        int,
        Field(3, ge=1),
        {"default": 3, "minimum": 1, "type": "integer"},
        {},
    ),
    (
        "made by Field",
        list,
        Field(default_factory=list),
        {"items": {}, "type": "array"},
        {},
    ),
    (
        "in the annotation",
        Annotated[int, Field(default=3)],
        NOTHING,
        {"default": 3, "type": "integer"},
        {},
    ),
]


@pytest.mark.parametrize(
    ("hint", "default", "published", "definitions"),
    [pytest.param(*row, id=name) for name, *row in DEFAULTS],
)
def test_a_default_makes_a_parameter_optional_and_is_published(
    hint: Any, default: Any, published: dict[str, Any], definitions: dict[str, Any]
) -> None:
    signature = signature_of(hint, default)
    assert signature.schema == schema({"a": published}, **definitions)
    assert signature.required == ()


def test_a_field_as_the_default_without_a_value_leaves_the_parameter_required() -> None:
    signature = signature_of(int, Field(ge=1))
    assert signature.schema == schema({"a": {"minimum": 1, "type": "integer"}}, "a")


def test_defaults_of_python_types_reach_the_function_as_they_are() -> None:
    """DEC-21, DEC-22."""

    def f(
        when: datetime = datetime(2020, 1, 1),  # noqa: DTZ001  # what a user writes
        mode: Color = Color.RED,
        path: Path = Path("data"),
        price: Decimal = Decimal("1.5"),
    ) -> tuple[Any, ...]:
        return when, mode, path, price

    signature = read_signature(f, "tool 'f'")
    assert f(**signature.bind({})) == (
        datetime(2020, 1, 1),  # noqa: DTZ001
        Color.RED,
        Path("data"),
        Decimal("1.5"),
    )
    given = {"mode": "blue", "path": "a/b", "price": "2.50"}
    assert f(**signature.bind(given))[1:] == (Color.BLUE, Path("a/b"), Decimal("2.50"))


def test_a_default_arrives_as_the_same_object() -> None:
    """DEC-21."""
    nothing, many = object(), [1]

    def f(a: Any = nothing, /, b: list[int] = many, *, c: Any = nothing) -> Any:
        return a, b, c

    signature = read_signature(f, "tool 'f'")
    keywords = signature.bind({})
    a, b, c = f(*signature.place(keywords), **keywords)
    assert a is nothing
    assert b is many
    assert c is nothing


def test_no_parameters_publish_an_object_without_properties() -> None:
    """DEC-27. Spec 2026-07-28, server/tools: Tool, no parameters."""

    def now() -> str:
        raise NotImplementedError

    signature = read_signature(now, "tool 'now'")
    assert signature.schema == {"type": "object", "additionalProperties": False}
    assert signature.bind({}) == {}
    assert refusal(signature, {"a": 1}) == "a: unknown argument"


ACCEPTED = [
    # id, annotation, JSON value, what the function gets
    ("an integer", int, 3, 3),
    ("a negative integer", int, -3, -3),
    ("ARG-10 an integral float", int, 3.0, 3),
    ("a large integral float", int, 2.0**60, 2**60),
    ("ARG-09 an integer past 2**53", int, 9007199254740993, 9007199254740993),
    ("an integer past 2**64", int, 10**30, 10**30),
    ("an integer for a number", float, 3, 3.0),
    ("a number", float, 1.5, 1.5),
    ("true", bool, True, True),
    ("false", bool, False, False),
    ("a text", str, "x", "x"),
    ("an empty text", str, "", ""),
    ("ARG-01 a text that is an object in JSON", str, '{"a":1}', '{"a":1}'),
    ("ARG-01 a text that is an array in JSON", str, "[1,2]", "[1,2]"),
    ("ARG-01 a text that is null in JSON", str, "null", "null"),
    ("ARG-03 leading zeros", str, "00123", "00123"),
    (
        "ARG-03 a long number in a text",
        str,
        "12345678901234567890",
        "12345678901234567890",
    ),
    ("ARG-03 an exponent in a text", str, "1e5", "1e5"),
    ("ARG-03 a truth in a text", str, "true", "true"),
    ("a text that says Infinity", str, "Infinity", "Infinity"),
    ("null", None, None, None),
    ("null for an optional", int | None, None, None),
    ("a value for an optional", int | None, 1, 1),
    ("an integral float for an optional", int | None, 1.0, 1),
    ("the first of a union", int | str, 1, 1),
    ("the second of a union", int | str, "1", "1"),
    ("an integral float in a union", int | str, 1.0, 1),
    ("anything", Any, {"a": [None, 1, "x"]}, {"a": [None, 1, "x"]}),
    ("a literal", Literal["a", "b"], "b", "b"),
    ("an integer literal", Literal[1, 2], 2, 2),
    ("an integral float for a literal", Literal[1, 2], 2.0, 2),
    ("an enum member", Color, "blue", Color.BLUE),
    ("an integer enum member", Priority, 2, Priority.HIGH),
    ("an integral float for a member", Priority, 2.0, Priority.HIGH),
    ("an array", list[int], [1, 2], [1, 2]),
    ("integral floats in an array", list[int], [1.0, 2], [1, 2]),
    ("an empty array", list[int], [], []),
    ("an array for a set", set[int], [1, 2], {1, 2}),
    ("an array for a frozenset", frozenset[str], ["a"], frozenset({"a"})),
    ("an array for a tuple", tuple[int, str], [1, "a"], (1, "a")),
    ("an array for a NamedTuple", Place, [1, 2.0], Place(1, 2)),
    ("a default of a NamedTuple", Place, [1], Place(1)),
    ("an item twice, where a list may hold it", set[str] | list[int], [1, 1.0], [1, 1]),
    ("the same of numbers", set[str] | list[float], [1, 1.0], [1.0, 1.0]),
    ("a list beside a literal", set[int] | Literal["x"], [1], {1}),
    ("an array for an iterable", Iterable[int], [1], [1]),
    ("thousands of integral floats", list[int], [1.0] * 1001, [1] * 1001),
    ("the same number twice, and its text", set[Any], [1, "1"], {1, "1"}),
    ("a truth and a number", list[Literal[1, True]], [True, 1], [True, 1]),
    ("a truth that is listed", Literal[2, True], True, True),
    ("a truth for anything", dict[str, Any] | Priority, {"a": True}, {"a": True}),
    ("a member of an enum of all kinds", Literal[Color.RED], "red", Color.RED),
    ("a recursive alias", Nested, [[1.0], 2], [[1], 2]),
    ("a generic", Page[int], {"items": [1.0]}, Page[int](items=[1])),
    ("an object", dict[str, int], {"k": 1}, {"k": 1}),
    ("an integral float in an object", dict[str, int], {"k": 1.0}, {"k": 1}),
    ("integer keys", dict[int, str], {"1": "a"}, {1: "a"}),
    ("a model", Point, {"x": 1, "y": 2.5}, Point(x=1, y=2.5)),
    ("an integral float in a model", Point, {"x": 1.0}, Point(x=1)),
    ("a list of models", list[Point], [{"x": 1}, {"x": 2.0}], [Point(x=1), Point(x=2)]),
    (
        "a recursive model",
        Tree,
        {"value": 1, "children": [{"value": 2.0}]},
        Tree(value=1, children=[Tree(value=2)]),
    ),
    ("a dataclass", Item, {"name": "a"}, Item("a")),
    (
        "a TypedDict",
        Movie,
        {"title": "a", "year": 1999.0},
        {"title": "a", "year": 1999},
    ),
    ("a tagged model", Pet, {"kind": "cat", "lives": 9.0}, Cat(kind="cat", lives=9)),
    (
        "a date and time",
        datetime,
        "2020-01-02T03:04:05Z",
        datetime(2020, 1, 2, 3, 4, 5, tzinfo=timezone.utc),  # noqa: UP017
    ),
    ("a date", date, "2020-01-02", date(2020, 1, 2)),
    ("a time", clock, "03:04", clock(3, 4)),
    ("a duration", timedelta, "PT90S", timedelta(seconds=90)),
    (
        "a UUID",
        UUID,
        "12345678-1234-5678-1234-567812345678",
        UUID("12345678-1234-5678-1234-567812345678"),
    ),
    ("a decimal in a text", Decimal, "1.10", Decimal("1.10")),
    ("a decimal in a number", Decimal, 1.5, Decimal("1.5")),
    ("bytes", bytes, "aé", "aé".encode()),
    ("a path", Path, "a/b", Path("a/b")),
    ("a number in its bounds", Rating, 5, 5),
    ("an integral float in its bounds", Rating, 5.0, 5),
    ("a text after its pattern", Short, "abc", "abc"),
    ("JSON that is asked for as a text", Json[list[int]], "[1, 2]", [1, 2]),
]


@pytest.mark.parametrize(
    ("hint", "value", "received"),
    [pytest.param(*row, id=name) for name, *row in ACCEPTED],
)
def test_a_value_is_accepted(hint: Any, value: Any, received: Any) -> None:
    """Ours: JSON's own types are strict; what JSON lacks, a string becomes."""
    signature = signature_of(hint)
    bound = signature.bind({"a": value})["a"]
    assert (bound, type(bound)) == (received, type(received))
    assert Draft202012Validator(signature.schema).is_valid({"a": value})


REFUSED = [
    # id, annotation, JSON value, what the model reads
    ("ARG-10 a fraction", int, 3.7, "a: expected integer, got number"),
    ("ARG-10 a truth", int, True, "a: expected integer, got boolean"),
    ("ARG-10 a number in a text", int, "3", "a: expected integer, got string"),
    ("DEC-22 a text", int, "abc", "a: expected integer, got string"),
    ("DEC-24 null", int, None, "a: expected integer, got null"),
    ("an array for an integer", int, [], "a: expected integer, got array"),
    ("an object for an integer", int, {}, "a: expected integer, got object"),
    ("a truth for a number", float, True, "a: expected number, got boolean"),
    ("a text for a number", float, "1", "a: expected number, got string"),
    ("ARG-10 a text for a truth", bool, "yes", "a: expected boolean, got string"),
    ("an integer for a truth", bool, 1, "a: expected boolean, got integer"),
    ("an integer for a text", str, 3, "a: expected string, got integer"),
    ("null for a text", str, None, "a: expected string, got null"),
    ("something for null", None, 0, "a: expected null, got integer"),
    ("ARG-04 an array in a text", list[str], '["us"]', "a: expected array, got string"),
    (
        "ARG-04 an optional one",
        list[str] | None,
        '["us"]',
        "a: expected array, got string",
    ),
    ("an object for an array", list[int], {}, "a: expected array, got object"),
    ("one item of an array", list[int], [1, "x"], "a.1: expected integer, got string"),
    ("an array for an object", dict[str, int], [1], "a: expected object, got array"),
    (
        "one value of an object",
        dict[str, int],
        {"k": "x"},
        "a.k: expected integer, got string",
    ),
    ("a text for a set", set[int], "x", "a: expected array, got string"),
    (
        "an item twice in a set",
        set[float],
        [1, 2, 1.0],
        "a: array should not hold an item twice",
    ),
    (
        "an item twice, where no list may hold it",
        set[int] | list[str],
        [1, 1],
        "a: array should not hold an item twice",
    ),
    (
        "an item twice in an inner set",
        dict[str, list[frozenset[str]]],
        {"k": [["a"], ["b", "b"]]},
        "a.k.1: array should not hold an item twice",
    ),
    ("a truth for a literal", Literal[1, 2], True, "a: expected number, got boolean"),
    ("a number for a truth", Literal[True], 1, "a: expected boolean, got integer"),
    (
        "a number for a truth, and out of bounds",
        Literal[True] | Annotated[int, Field(ge=5)],
        1,
        "a: expected boolean, got integer",
    ),
    (
        "a truth behind a key of a pattern",
        dict[Annotated[str, Field(pattern="^k")], Literal[1]],
        {"k": True},
        "a.k: expected number, got boolean",
    ),
    ("a truth for an enum", Priority, True, "a: expected number, got boolean"),
    (
        "a truth in a union",
        Priority | list[str],
        True,
        "a: expected number, got boolean",
    ),
    (
        "a truth for an inner literal",
        list[Annotated[Literal[0], Field(title="Zero")]],
        [0, False],
        "a.1: expected number, got boolean",
    ),
    (
        "an object for a NamedTuple",
        list[Place],
        [[1], {"x": 1}],
        "a.1: expected array, got object",
    ),
    ("a long NamedTuple", Place, [1, 2, 3], "a: array should have at most 2 items"),
    (
        "too few items",
        Annotated[list[int], Field(min_length=1)],
        [],
        "a: array should have at least 1 item",
    ),
    (
        "too many members",
        Annotated[dict[str, int], Field(max_length=0)],
        {"k": 1},
        "a: object should have at most 0 members",
    ),
    (
        "a literal of a member",
        Literal[Color.RED],
        "blue",
        "a: input should be 'red'",
    ),
    ("a short tuple", tuple[int, str], [1], "a.1: missing"),
    ("a literal that is none", Literal["a", "b"], "c", "a: input should be 'a' or 'b'"),
    ("a fraction for a literal", Literal[1, 2], 1.5, "a: input should be 1 or 2"),
    (
        "an enum member that is none",
        Color,
        "green",
        "a: input should be 'red' or 'blue'",
    ),
    (
        "neither of a union",
        int | str,
        [],
        "a: expected integer or string, got array",
    ),
    (
        "none of a union",
        int | list[int] | None,
        "x",
        "a: expected integer or array, got string",
    ),
    (
        "neither type nor value of a union",
        int | Literal["b", "c"],
        "x",
        "a: input should be 'b' or 'c'; or expected integer, got string",
    ),
    (
        "neither value of a union",
        Color | Literal["x"],
        "hunter2",
        "a: input should be 'red' or 'blue'; or input should be 'x'",
    ),
    (
        "an item of the member of a union that has the type",
        int | list[Point],
        [{}],
        "a.0.x: missing",
    ),
    (
        "two members of a union",
        Cat | Point,
        {"kind": "cat"},
        "a.lives: missing (as Cat)\na.x: missing (as Point)",
    ),
    ("a tag that is missing", Pet, {}, "a.kind: missing"),
    ("a member of the tagged", Pet, {"kind": "cat"}, "a.lives: missing (as cat)"),
    (
        "several faults",
        Point,
        {"x": "q", "y": "r"},
        "a.x: expected integer, got string\na.y: expected number, got string",
    ),
    ("a member that is missing", Point, {}, "a.x: missing"),
    ("a text for a model", Point, '{"x": 1}', "a: expected object, got string"),
    (
        "a fault deep down",
        Tree,
        {"value": 1, "children": [{"value": "x"}]},
        "a.children.0.value: expected integer, got string",
    ),
    (
        "an unknown member of a dataclass",
        Item,
        {"name": "a", "b": 1},
        "a.b: unknown argument",
    ),
    (
        "an unknown key of a TypedDict",
        Movie,
        {"title": "a", "b": 1},
        "a.b: unknown argument",
    ),
    (
        "an unknown tag",
        Pet,
        {"kind": "fish"},
        "a.kind: input should be one of 'cat', 'dog'",
    ),
    ("an integer for a date", date, 5, "a: expected string with a date, got integer"),
    ("an integer for a time", clock, 5, "a: expected string with a time, got integer"),
    (
        "an integer for a date and time",
        datetime,
        5,
        "a: expected string with a date and time, got integer",
    ),
    (
        "an integer for a duration",
        timedelta,
        5,
        "a: expected string with a duration, got integer",
    ),
    ("an integer for a UUID", UUID, 5, "a: expected string with a UUID, got integer"),
    ("an integer for bytes", bytes, 5, "a: expected string, got integer"),
    ("a truth for a decimal", Decimal, True, "a: expected number, got boolean"),
    ("a number out of bounds", Rating, 6, "a: input should be less than or equal to 5"),
    (
        "an integral float out of bounds",
        Rating,
        0.0,
        "a: input should be greater than or equal to 1",
    ),
    (
        "a text against its pattern",
        Short,
        "ABC",
        "a: string should match pattern '^[a-z]+$'",
    ),
    ("too short a text", Short, "", "a: string should have at least 1 character"),
]


@pytest.mark.parametrize(
    ("hint", "value", "message"),
    [pytest.param(*row, id=name) for name, *row in REFUSED],
)
def test_a_value_is_refused(hint: Any, value: Any, message: str) -> None:
    """Spec 2026-07-28, server/tools: Error Handling. The words are ours."""
    signature = signature_of(hint)
    assert refusal(signature, {"a": value}) == message
    assert not Draft202012Validator(signature.schema).is_valid({"a": value})


def refuse(value: str) -> str:
    raise ValueError(f"A letter is missing{f' in {value}' if len(value) > 1 else ''}")


def odd(value: int) -> int:
    if value % 2 == 0:
        raise ValueError("Even numbers are not odd")
    return value


BEYOND_THE_SCHEMA = [
    # id, annotation, JSON value, what the model reads
    ("no date", date, "x", "a: input should be a valid date in the format YYYY-MM-DD"),
    ("no time", clock, "x", "a: input should be in a valid time format"),
    ("no date and time", datetime, "x", "a: input should be a valid datetime"),
    ("no duration", timedelta, "x", "a: input should be a valid duration"),
    ("no UUID", UUID, "x", "a: input should be a valid UUID"),
    ("no decimal", Decimal, "x", "a: input should be a valid decimal"),
    ("no finite decimal", Decimal, "NaN", "a: expected finite number, got string"),
    (
        "no integer key",
        dict[int, str],
        {"x": "a"},
        "a.x.[key]: input should be a valid integer",
    ),
    (
        "an integral float in JSON that is asked for as a text",
        Json[list[int]],
        "[1.0]",
        "a.0: expected integer, got number",
    ),
    ("no address", IPv4Address, "hunter2", "a: input is not valid"),
    ("no time zone", ZoneInfo, "hunter2", "a: input is not valid"),
    ("no complex number", complex, "x", "a: input is not valid"),
    (
        "a tag of a function",
        Annotated[
            Annotated[int, Tag("a")] | Annotated[str, Tag("b")],
            Discriminator(lambda value: "c"),  # noqa: ARG005
        ],
        1,
        "a: does not match any of the expected forms",
    ),
    (
        "a short text of a validator",
        Annotated[str, AfterValidator(refuse)],
        "a",
        "a: a letter is missing",
    ),
    (
        "a validator that quotes",
        Annotated[str, AfterValidator(refuse)],
        "hunter2",
        "a: input is not valid",
    ),
    (
        "a validator's words",
        Annotated[int, AfterValidator(odd)],
        2,
        "a: even numbers are not odd",
    ),
    (
        "a number no float holds",
        float,
        10**400,
        "a: expected finite number, got integer",
    ),
]


@pytest.mark.parametrize(
    ("hint", "value", "message"),
    [pytest.param(*row, id=name) for name, *row in BEYOND_THE_SCHEMA],
)
def test_a_value_is_refused_for_what_no_schema_says(
    hint: Any, value: Any, message: str
) -> None:
    """Ours. In JSON Schema a `format` is an annotation, and checks nothing."""
    assert refusal(signature_of(hint), {"a": value}) == message


@pytest.mark.parametrize(
    "hint", [pytest.param(hint, id=name) for name, hint, *_ in PUBLISHED]
)
def test_an_infinity_is_refused_everywhere(hint: Any) -> None:
    """Ours: JSON has no infinity, and a number that becomes one is too large."""
    expected = "a.0: expected finite number, got number"
    assert refusal(signature_of(hint), {"a": [float("inf")]}) == expected


@pytest.mark.parametrize(
    "hint",
    [
        pytest.param(hint, id=name)
        for name, hint, *_ in PUBLISHED
        if name not in ("str", "Any", "union", "bytes", "Path")
    ],
)
def test_a_refusal_holds_neither_the_value_nor_an_address(hint: Any) -> None:
    """Ours: arguments hold secrets, and models read what they are answered."""
    for value in ("hunter2", ["hunter2"], {"x": "hunter2", "kind": "hunter2"}):
        try:
            message = refusal(signature_of(hint), {"a": value})
        except pytest.fail.Exception:
            continue
        assert "hunter2" not in message
        assert "http" not in message


def test_unknown_arguments_are_named() -> None:
    """ARG-06."""

    def read(topic: str = "") -> str:
        raise NotImplementedError

    signature = read_signature(read, "tool 'read'")
    message = refusal(signature, {"path": "x", "topik": "y"})
    assert message == "path: unknown argument\ntopik: unknown argument"


def test_a_name_of_several_lines_makes_one_line() -> None:
    message = refusal(signature_of(int), {"a": 1, "b: missing\nc": 1})
    assert message == "b: missing\\nc: unknown argument"


def test_a_long_path_is_shortened() -> None:
    message = refusal(signature_of(int), {"a": 1, "k" * 5000: 1})
    assert message == f"{'k' * 100}: unknown argument"


def test_the_first_faults_of_many_are_told() -> None:
    """Ours: a model mends what it is told of."""
    message = refusal(signature_of(list[int]), {"a": ["x"] * 22})
    lines = message.split("\n")
    assert lines[:2] == [f"a.{index}: expected integer, got string" for index in (0, 1)]
    assert (len(lines), lines[-1]) == (21, "and 2 more")


def test_the_faults_of_a_union_count_once() -> None:
    message = refusal(signature_of(list[int | bool | list[int]]), {"a": ["x"] * 7})
    assert message.split("\n") == [
        f"a.{index}: expected integer, boolean or array, got string"
        for index in range(7)
    ]


def test_many_faults_are_counted() -> None:
    points = [{"x": "hunter2"}] * 2_000
    message = refusal(signature_of(list[Point]), {"a": points}, coerce=True)
    assert message == "2000 values do not match the input schema"


MANY = [
    # id, annotation, value, what is told
    ("of a list", list[int], [""] * 500_000, "a.0: expected integer, got string"),
    (
        "of models",
        list[Point],
        [{"x": ""}] * 200_000,
        "a.0.x: expected integer, got string",
    ),
    (
        "of a dict",
        dict[str, int],
        dict.fromkeys(map(str, range(200_000)), ""),
        "a.0: expected integer, got string",
    ),
]


@pytest.mark.parametrize(
    ("hint", "value", "message"), [pytest.param(*row, id=name) for name, *row in MANY]
)
def test_very_many_faults_cost_little(hint: Any, value: Any, message: str) -> None:
    """Ours: describing all of them takes seconds and gigabytes; one is told."""
    signature = signature_of(hint)
    start = time.process_time()
    assert refusal(signature, {"a": value}) == message
    assert time.process_time() - start < 1


def test_very_many_integral_floats_are_integers() -> None:
    """ARG-10."""
    bound = signature_of(list[int]).bind({"a": [3.0] * 50_000})
    assert bound == {"a": [3] * 50_000}
    assert all(type(item) is int for item in bound["a"])


def test_very_many_unknown_arguments_are_counted() -> None:
    arguments = dict.fromkeys(map(str, range(100_000)), 1)
    assert (
        refusal(signature_of(int), arguments) == "arguments: 100000 unknown arguments"
    )


def test_twenty_faults_are_told_one_by_one() -> None:
    message = refusal(signature_of(list[int]), {"a": ["x"] * 20})
    assert message.split("\n") == [
        f"a.{index}: expected integer, got string" for index in range(20)
    ]


COERCED = [
    # id, annotation, JSON value, what the function gets
    ("an integer", int, "3", 3),
    ("a negative integer", int, "-3", -3),
    ("an integral number", int, "3.0", 3),
    ("an exponent", int, "1e2", 100),
    ("a huge integer", int, "1" * 400, int("1" * 400)),
    ("a number", float, "1.5", 1.5),
    ("an integer for a number", float, "1", 1),
    ("in an array", list[int], ["1", 2, 3.0], [1, 2, 3]),
    ("in a model", Point, {"x": "1", "y": "2.5"}, Point(x=1, y=2.5)),
    ("an optional", int | None, "1", 1),
    ("a text stays a text", int | str, "1", "1"),
    ("a text stays as it is", str, "1", "1"),
]


@pytest.mark.parametrize(
    ("hint", "value", "received"),
    [pytest.param(*row, id=name) for name, *row in COERCED],
)
def test_coerce_accepts_numbers_in_strings(
    hint: Any, value: Any, received: Any
) -> None:
    """Ours: `App(coerce=True)`."""
    assert signature_of(hint).bind({"a": value}, coerce=True) == {"a": received}


NOT_COERCED = [
    # id, annotation, JSON value, what the model reads
    ("a fraction", int, "3.5", "a: expected integer, got string"),
    ("no number", int, "x", "a: expected integer, got string"),
    ("white space", int, " 3", "a: expected integer, got string"),
    ("a leading zero", int, "03", "a: expected integer, got string"),
    ("hexadecimal", int, "0x1", "a: expected integer, got string"),
    ("underscores", int, "1_0", "a: expected integer, got string"),
    ("too many digits", int, "1" * 5000, "a: expected integer, got string"),
    ("NaN", float, "NaN", "a: expected number, got string"),
    ("an infinity", float, "Infinity", "a: expected number, got string"),
    ("too large", float, "1e999", "a: expected number, got string"),
    (
        "too large, in digits",
        float,
        "1" * 400,
        "a: expected finite number, got integer",
    ),
    ("a truth", bool, "true", "a: expected boolean, got string"),
    ("a truth for an integer", int, True, "a: expected integer, got boolean"),
    ("an array in a text", list[int], "[1]", "a: expected array, got string"),
]


@pytest.mark.parametrize(
    ("hint", "value", "message"),
    [pytest.param(*row, id=name) for name, *row in NOT_COERCED],
)
def test_coerce_accepts_nothing_else(hint: Any, value: Any, message: str) -> None:
    assert refusal(signature_of(hint), {"a": value}, coerce=True) == message


def plain(a: int, b: int = 2) -> Any:
    return a, b


def positional(a: int, /, b: int = 2, *, c: int = 3) -> Any:
    return a, b, c


def positional_default(a: int = 1, /, b: int = 2) -> Any:
    return a, b


def positional_field(a: int = Field(3, ge=1), /) -> Any:
    return a


def keyword_only(*, a: int, b: int = 2) -> Any:
    return a, b


def selfish(self: int) -> Any:
    return self


def resigned(**arguments: Any) -> Any:
    return arguments


resigned.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
    [
        inspect.Parameter(
            "a", inspect.Parameter.KEYWORD_ONLY, default=1, annotation=int
        ),
        inspect.Parameter("b", inspect.Parameter.KEYWORD_ONLY, annotation="int"),
    ]
)


def unannotated(a, b=2):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN201
    return a, b


def aliased(from_: Annotated[int, Field(alias="from")], to: int = 2) -> Any:
    return from_, to


def aliased_default(from_: Annotated[int, Field(alias="from")] = 5) -> Any:
    return from_


def tenanted(tenant: str, q: str) -> Any:
    return tenant, q


def odd_names(_private: int, model_config: int = 1, schema: str = "s") -> Any:
    return _private, model_config, schema


def timed(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        return ["timed", function(*args, **kwargs)]

    return wrapper


class Toolbox:
    """A class whose methods are tools."""

    factor = 10

    def scale(self, x: int) -> int:
        """Scale."""
        return x * self.factor

    @classmethod
    def from_class(cls, x: int) -> int:
        """Scale, too."""
        return x * cls.factor

    @staticmethod
    def from_nothing(x: int) -> int:
        """Do nothing."""
        return x

    def __call__(self, x: int) -> int:
        """Add."""
        return x + self.factor


INTEGER: dict[str, Any] = {"type": "integer"}
STRING: dict[str, Any] = {"type": "string"}


def default(schema: dict[str, Any], value: Any) -> dict[str, Any]:
    return {**schema, "default": value}


CALLED = [
    # id, function, properties, required, arguments, what it returns
    ("plain", plain, {"a": INTEGER, "b": default(INTEGER, 2)}, ["a"], {"a": 1}, (1, 2)),
    (
        "DEC-12 positional-only",
        positional,
        {"a": INTEGER, "b": default(INTEGER, 2), "c": default(INTEGER, 3)},
        ["a"],
        {"a": 1, "c": 4},
        (1, 2, 4),
    ),
    (
        "DEC-12 positional-only with a default",
        positional_default,
        {"a": default(INTEGER, 1), "b": default(INTEGER, 2)},
        [],
        {"b": 5},
        (1, 5),
    ),
    (
        "positional-only with a Field",
        positional_field,
        {"a": {"default": 3, "minimum": 1, "type": "integer"}},
        [],
        {},
        3,
    ),
    (
        "no annotations",
        unannotated,
        {"a": {}, "b": {"default": 2}},
        ["a"],
        {"a": [1]},
        ([1], 2),
    ),
    (
        "DEC-15 an alias",
        aliased,
        {"from": INTEGER, "to": default(INTEGER, 2)},
        ["from"],
        {"from": 1},
        (1, 2),
    ),
    (
        "an alias with a default",
        aliased_default,
        {"from": default(INTEGER, 5)},
        [],
        {},
        5,
    ),
    (
        "odd names",
        odd_names,
        {
            "_private": INTEGER,
            "model_config": default(INTEGER, 1),
            "schema": default(STRING, "s"),
        },
        ["_private"],
        {"_private": 1},
        (1, 1, "s"),
    ),
    (
        "DEC-09 a partial by name",
        functools.partial(tenanted, tenant="acme"),
        {"q": STRING},
        ["q"],
        {"q": "x"},
        ("acme", "x"),
    ),
    (
        "DEC-09 a partial by position",
        functools.partial(tenanted, "acme"),
        {"q": STRING},
        ["q"],
        {"q": "x"},
        ("acme", "x"),
    ),
    (
        "DEC-09 a partial that looks like its function",
        functools.update_wrapper(functools.partial(tenanted, tenant="acme"), tenanted),
        {"q": STRING},
        ["q"],
        {"q": "x"},
        ("acme", "x"),
    ),
    (
        "a partial by position that looks like its function",
        functools.update_wrapper(functools.partial(tenanted, "acme"), tenanted),
        {"q": STRING},
        ["q"],
        {"q": "x"},
        ("acme", "x"),
    ),
    (
        "a partial of a partial",
        functools.partial(functools.partial(positional, 1), b=9),
        {"c": default(INTEGER, 3)},
        [],
        {"c": 4},
        (1, 9, 4),
    ),
    ("DEC-07 a bound method", Toolbox().scale, {"x": INTEGER}, ["x"], {"x": 2}, 20),
    ("a class method", Toolbox.from_class, {"x": INTEGER}, ["x"], {"x": 2}, 20),
    ("a static method", Toolbox.from_nothing, {"x": INTEGER}, ["x"], {"x": 2}, 2),
    ("a callable object", Toolbox(), {"x": INTEGER}, ["x"], {"x": 2}, 12),
    ("a lambda", lambda x: x, {"x": {}}, ["x"], {"x": 2}, 2),
    (
        "a static method in the body of its class",
        staticmethod(plain),
        {"a": INTEGER, "b": default(INTEGER, 2)},
        ["a"],
        {"a": 1},
        (1, 2),
    ),
    ("a function that is not written in Python", abs, {"x": {}}, ["x"], {"x": -2}, 2),
    (
        "a signature that is given",
        resigned,
        {"a": default(INTEGER, 1), "b": {}},
        ["b"],
        {"b": 2},
        {"b": 2},
    ),
    (
        "a first parameter called self",
        selfish,
        {"self": INTEGER},
        ["self"],
        {"self": 1},
        1,
    ),
    (
        "a parameter called self",
        lambda a, self: a + self,
        {"a": {}, "self": {}},
        ["a", "self"],
        {"a": 1, "self": 2},
        3,
    ),
    (
        "keyword-only",
        keyword_only,
        {"a": INTEGER, "b": default(INTEGER, 2)},
        ["a"],
        {"a": 1},
        (1, 2),
    ),
    (
        "functools.wraps",
        timed(plain),
        {"a": INTEGER, "b": default(INTEGER, 2)},
        ["a"],
        {"a": 1},
        ["timed", (1, 2)],
    ),
    (
        "wraps around a partial",
        timed(functools.partial(plain, b=7)),
        {"a": INTEGER},
        ["a"],
        {"a": 1},
        ["timed", (1, 7)],
    ),
    (
        "DEC-01 postponed annotations",
        postponed.pick,
        {
            "kind": {"enum": ["a", "b"], "type": "string"},
            "n": {"minimum": 1, "type": "integer", "default": 1},
        },
        ["kind"],
        {"kind": "a"},
        "a1",
    ),
    (
        "DEC-03 a wrapper around postponed annotations",
        timed(postponed.pick),
        {
            "kind": {"enum": ["a", "b"], "type": "string"},
            "n": {"minimum": 1, "type": "integer", "default": 1},
        },
        ["kind"],
        {"kind": "a"},
        ["timed", "a1"],
    ),
]


@pytest.mark.parametrize(
    ("function", "properties", "required", "arguments", "returned"),
    [pytest.param(*row, id=name) for name, *row in CALLED],
)
def test_a_function_is_called_with_what_its_schema_says(
    function: Callable[..., Any],
    properties: dict[str, Any],
    required: list[str],
    arguments: dict[str, Any],
    returned: Any,
) -> None:
    signature = read_signature(function, "tool 'f'")
    assert signature.schema == schema(properties, *required)
    assert signature.names == tuple(properties)
    assert signature.required == tuple(required)
    keywords = signature.bind(arguments)
    assert function(*signature.place(keywords), **keywords) == returned


def test_what_a_partial_binds_is_not_for_the_client() -> None:
    """DEC-09."""
    bound = functools.partial(tenanted, tenant="acme")
    signature = read_signature(bound, "tool 't'")
    message = refusal(signature, {"q": "x", "tenant": "evil"})
    assert message == "tenant: unknown argument"


def test_the_name_of_an_aliased_parameter_is_unknown() -> None:
    """DEC-15."""
    signature = read_signature(aliased, "tool 'f'")
    message = refusal(signature, {"from_": 1})
    assert message == "from: missing\nfrom_: unknown argument"


def test_types_of_an_enclosing_function_are_found() -> None:
    """DEC-04."""
    signature = read_signature(postponed.make_enclosed(), "tool 'enclosed'")
    assert signature.bind({"a": {"n": 1}})["a"].n == 1


FACTORIES = [
    # id, what registers a function, arguments
    ("in a factory", postponed.Registers.in_a_factory, {"a": {"n": 1}}),
    (
        "in a factory of a factory",
        postponed.Registers.in_a_factory_of_a_factory,
        {"a": {"n": 1}, "b": {"m": 2}},
    ),
    ("over a global", postponed.Registers.over_a_global, {"a": {"n": 1}}),
    ("in a method", postponed.Registers.in_a_method, {"a": {"n": 1}}),
    ("in a wrapper", postponed.Registers.wrapped, {"a": {"n": 1}}),
]


@pytest.mark.parametrize(
    ("factory", "arguments"), [pytest.param(*row, id=name) for name, *row in FACTORIES]
)
def test_types_of_the_function_that_registers_are_found(
    factory: Callable[[postponed.Registers], Signature], arguments: dict[str, Any]
) -> None:
    """DEC-04."""
    registers = postponed.Registers(lambda function: read_signature(function, "f"))
    assert factory(registers).bind(arguments)["a"].n == 1


def test_types_of_a_function_that_only_calls_the_decorator_are_not() -> None:
    """DEC-04."""
    registers = postponed.Registers(lambda function: read_signature(function, "f"))
    with pytest.raises(SetupError) as caught:
        registers.elsewhere()
    assert str(caught.value) == (
        "f: the annotation 'Local' of the parameter 'a' can't be resolved; define or "
        "import it at module level, not under TYPE_CHECKING"
    )


def test_what_a_function_returns_need_not_be_resolved_for_its_arguments() -> None:
    assert read_signature(postponed.page, "resource").names == ("name",)


def test_a_variable_that_is_assigned_later_does_not_disturb() -> None:
    def ask(a: int) -> int:
        return a + later

    signature = read_signature(ask, "tool 'ask'")
    later = 1
    assert ask(**signature.bind({"a": 1})) == 2


async def coroutine(a: int) -> int:
    return a


class AsyncCallable:
    """A tool that is an object."""

    async def __call__(self, a: int) -> int:
        """Do nothing."""
        raise NotImplementedError


def sync_around(a: int) -> Coroutine[Any, Any, int]:
    return coroutine(a)


ASYNC = [
    # id, function, whether it is awaited
    ("a function", plain, False),
    ("a coroutine function", coroutine, True),
    ("DEC-09 a partial of one", functools.partial(coroutine, 1), True),
    ("DEC-10 an object with an async call", AsyncCallable(), True),
    ("an object", Toolbox(), False),
    ("a sync wrapper around one", functools.wraps(coroutine)(sync_around), False),
    ("a bound method", Toolbox().scale, False),
    ("a static method", staticmethod(plain), False),
    ("a static method of a coroutine function", staticmethod(coroutine), True),
]


@pytest.mark.parametrize(
    ("function", "awaited"), [pytest.param(*row, id=name) for name, *row in ASYNC]
)
def test_what_is_awaited(function: Callable[..., Any], awaited: bool) -> None:  # noqa: FBT001  # a column of a table
    assert read_signature(function, "tool 'f'").is_async is awaited


def with_context(x: int, ctx: Context) -> Any:
    raise NotImplementedError


def with_optional_context(x: int, ctx: Context | None = None) -> Any:
    raise NotImplementedError


def with_annotated_context(ctx: Annotated[Context, "the request"], x: int) -> Any:
    raise NotImplementedError


def with_positional_context(ctx: Context, /, x: int) -> Any:
    raise NotImplementedError


CONTEXTS = [
    ("by annotation", with_context),
    ("optional", with_optional_context),
    ("annotated", with_annotated_context),
    ("positional-only", with_positional_context),
]


@pytest.mark.parametrize(
    "function", [pytest.param(function, id=name) for name, function in CONTEXTS]
)
def test_the_context_is_never_published(function: Callable[..., Any]) -> None:
    signature = read_signature(function, "tool 'f'")
    assert signature.schema == schema({"x": INTEGER}, "x")
    assert signature.context == "ctx"
    assert refusal(signature, {"x": 1, "ctx": {}}) == "ctx: unknown argument"


def star_args(*queries: str) -> None: ...


def star_kwargs(a: int, **options: int) -> None: ...


def generator() -> Any:
    yield "1"


async def async_generator() -> Any:
    yield "1"


def plain_class(b: int, a: Plain) -> None: ...


def two_plain_classes(a: Plain, b: int, c: Plain | None = None) -> None: ...


def nested_plain_class(a: list[Plain]) -> None: ...


def a_callable(a: Callable[[int], int]) -> None: ...


def undefined(a: "Nowhere") -> None: ...  # type: ignore[name-defined]  # noqa: F821


def no_expression(a: "not a type") -> None: ...  # type: ignore[valid-type]  # noqa: F722


class Pairs(enum.Enum):
    """Pairs."""

    FIRST = (1, 2)


class Streaming(BaseModel):
    """It holds what is validated when it is read."""

    values: Iterable[int]


class Picky(BaseModel):
    """It holds a member of an enum."""

    color: Literal[Color.RED]


class Incomplete(BaseModel):
    """It holds what is nowhere."""

    value: "list[Nowhere]"  # type: ignore[name-defined]  # noqa: F821


class Lacking:
    """It needs what is not installed."""

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: Any) -> Any:
        """Fail, as a type does whose package is missing."""
        raise ImportError("lacking is not installed, run `pip install lacking`")


class Annotating:
    """It annotates what others leave out."""

    def add(self: "Annotating", x: int) -> int:
        """Add."""
        raise NotImplementedError


def odd_enum(a: Pairs) -> None: ...


def streaming(a: Streaming) -> None: ...


def picky(a: Picky) -> None: ...


def a_class(a: type[int]) -> None: ...


def incomplete(b: int, a: Incomplete) -> None: ...


def lacking(a: Lacking) -> None: ...


def final(b: int, a: typing.Final[int]) -> None: ...  # type: ignore[valid-type]  # what is refused


def two_contexts(a: Context, b: Context) -> None: ...


def same_alias(
    a: Annotated[int, Field(alias="x")], b: Annotated[int, Field(alias="x")]
) -> None: ...


NO_JSON = (
    "which no JSON can become; take a pydantic model, a dataclass, a TypedDict, or "
    "the types that they are made of"
)

IMPOSSIBLE = [
    # id, function, the whole message
    (
        "variable arguments",
        star_args,
        "tool 'f': *queries: str takes arguments without a name; write out the "
        "parameters, or take one dict",
    ),
    (
        "variable keywords",
        star_kwargs,
        "tool 'f': **options: int takes arguments without a name; write out the "
        "parameters, or take one dict",
    ),
    (
        "DEC-07 an unbound method",
        Toolbox.scale,
        "tool 'f': the parameter 'self' is of a method that is not bound; register the "
        "bound method of an instance instead, below the class",
    ),
    (
        "DEC-13 a generator",
        generator,
        "tool 'f': a generator can't be a handler; return a list, and report progress "
        "with ctx.progress",
    ),
    (
        "DEC-13 an async generator",
        async_generator,
        "tool 'f': a generator can't be a handler; return a list, and report progress "
        "with ctx.progress",
    ),
    ("a class", Plain, "tool 'f': register a function that builds it, not a class"),
    (
        "a class that pydantic does not know",
        plain_class,
        "tool 'f': the parameter 'a' has the type tests.test_signature.Plain, "
        f"{NO_JSON}",
    ),
    (
        "two of them",
        two_plain_classes,
        "tool 'f': the parameter 'a' has the type tests.test_signature.Plain and the "
        "parameter 'c' has the type tests.test_signature.Plain | None, "
        f"{NO_JSON}",
    ),
    (
        "a list of them",
        nested_plain_class,
        "tool 'f': the parameter 'a' has the type list[tests.test_signature.Plain], "
        f"{NO_JSON}",
    ),
    (
        "DEC-07 an unbound method that annotates itself",
        Annotating.add,
        "tool 'f': the parameter 'self' is of a method that is not bound; register the "
        "bound method of an instance instead, below the class",
    ),
    (
        "a function that does not say what it takes",
        max,
        "tool 'f': the parameters of <built-in function max> can't be read; register a "
        "function with annotations that calls it",
    ),
    (
        "an enum whose values JSON lacks",
        odd_enum,
        "tool 'f': the parameter 'a' has the type tests.test_signature.Pairs, "
        f"{NO_JSON}",
    ),
    (
        "an iterator inside of a model",
        streaming,
        "tool 'f': the parameter 'a' has the type tests.test_signature.Streaming, "
        f"{NO_JSON}",
    ),
    (
        "a literal of a member inside of a model",
        picky,
        "tool 'f': the parameter 'a' has the type tests.test_signature.Picky, "
        f"{NO_JSON}",
    ),
    (
        "a class as a value",
        a_class,
        f"tool 'f': the parameter 'a' has the type type[int], {NO_JSON}",
    ),
    (
        "a model that is not complete",
        incomplete,
        "tool 'f': the parameter 'a' has the type tests.test_signature.Incomplete, in "
        "which the annotation 'Nowhere' can't be resolved; define or import it at "
        "module level, not under TYPE_CHECKING",
    ),
    (
        "a type that needs a package",
        lacking,
        "tool 'f': lacking is not installed, run `pip install lacking`",
    ),
    (
        "an annotation that is none of a parameter",
        final,
        "tool 'f': the annotation of the parameter 'a' is none of a parameter: "
        "typing.Final[int] is not valid as type argument",
    ),
    (
        "a callable",
        a_callable,
        "tool 'f': the parameter 'a' has the type "
        f"collections.abc.Callable[[int], int], {NO_JSON}",
    ),
    (
        "DEC-04 a name that is nowhere",
        undefined,
        "tool 'f': the annotation 'Nowhere' of the parameter 'a' can't be resolved; "
        "define or import it at module level, not under TYPE_CHECKING",
    ),
    (
        "DEC-01 a name for the type checker alone",
        postponed.unresolved,
        "tool 'f': the annotation 'Decimal' of the parameter 'price' can't be "
        "resolved; define or import it at module level, not under TYPE_CHECKING",
    ),
    (
        "DEC-04 a type in the body of a function",
        postponed.make_local(),
        "tool 'f': the annotation 'Local' of the parameter 'a' can't be resolved; "
        "define or import it at module level, not under TYPE_CHECKING",
    ),
    (
        "an annotation that is no expression",
        no_expression,
        "tool 'f': the annotation of the parameter 'a' can't be resolved: Forward "
        "reference must be an expression -- got 'not a type'",
    ),
    ("two contexts", two_contexts, "tool 'f': both 'a' and 'b' are a Context"),
    (
        "one alias for two",
        same_alias,
        "tool 'f': two parameters have the same alias; rename one",
    ),
]


@pytest.mark.parametrize(
    ("function", "message"), [pytest.param(*row, id=name) for name, *row in IMPOSSIBLE]
)
def test_a_function_that_cannot_work_is_refused(
    function: Callable[..., Any], message: str
) -> None:
    with pytest.raises(SetupError) as caught:
        read_signature(function, "tool 'f'")
    assert str(caught.value) == message


STRINGS = [
    # id, annotation, string, what the function gets
    ("PRM-01 an integer", int, "3", 3),
    ("PRM-01 a truth", bool, "true", True),
    ("a number", float, "1.5", 1.5),
    ("a text", str, "3", "3"),
    ("a text that is JSON", str, "[1,2]", "[1,2]"),
    ("an enum member", Color, "red", Color.RED),
    ("a date", date, "2020-01-02", date(2020, 1, 2)),
    ("a literal", Literal["a", "b"], "a", "a"),
    ("an optional", int | None, "3", 3),
    ("PRM-01 a list", list[int], "[1, 2]", [1, 2]),
    ("an optional list", list[int] | None, "[1, 2]", [1, 2]),
    ("a set", set[str], '["a"]', {"a"}),
    ("a dict", dict[str, int], '{"a": 1}', {"a": 1}),
    ("a model", Point, '{"x": 1, "y": 2.5}', Point(x=1, y=2.5)),
    ("a dataclass", Item, '{"name": "a"}', Item("a")),
    ("a list or a text", list[int] | str, "[1, 2]", "[1, 2]"),
    ("a list or an object", list[int] | dict[str, int], "[1, 2]", [1, 2]),
]


@pytest.mark.parametrize(
    ("hint", "value", "received"),
    [pytest.param(*row, id=name) for name, *row in STRINGS],
)
def test_a_string_takes_the_type_of_its_parameter(
    hint: Any, value: str, received: Any
) -> None:
    """Ours: the arguments of prompts and the variables of URIs are strings."""
    bound = signature_of(hint).bind_strings({"a": value})["a"]
    assert (bound, type(bound)) == (received, type(received))


NO_STRINGS = [
    # id, annotation, string, what the client reads
    ("PRM-01 no integer", int, "hunter2", "a: input should be a valid integer"),
    ("no truth", bool, "hunter2", "a: input should be a valid boolean"),
    ("no JSON", list[int], "hunter2", "a: expected array, got string"),
    ("another JSON", list[int], '{"a": 1}', "a: expected array, got object"),
    ("a wrong item", list[int], "[1, null]", "a.1: expected integer, got null"),
    ("an unknown member", Item, '{"n": 1}', "a.name: missing\na.n: unknown argument"),
]


@pytest.mark.parametrize(
    ("hint", "value", "message"),
    [pytest.param(*row, id=name) for name, *row in NO_STRINGS],
)
def test_a_string_that_is_not_of_its_type_is_refused(
    hint: Any, value: str, message: str
) -> None:
    with pytest.raises(ArgumentsError) as caught:
        signature_of(hint).bind_strings({"a": value})
    assert str(caught.value) == message


def test_strings_beside_a_list_keep_their_types() -> None:
    """PRM-01."""

    def p(nums: list[int], n: int, text: str, flag: bool = False) -> Any:  # noqa: FBT001, FBT002  # what a user writes
        return nums, n, text, flag

    signature = read_signature(p, "prompt 'p'")
    given = {"nums": "[1,2]", "n": "3", "text": "[1]", "flag": "true"}
    assert p(**signature.bind_strings(given)) == ([1, 2], 3, "[1]", True)


def test_many_strings_that_are_unknown_are_counted() -> None:
    with pytest.raises(ArgumentsError) as caught:
        signature_of(int).bind_strings({f"k{n}": "x" for n in range(5000)})
    assert str(caught.value) == "arguments: 5000 unknown arguments"


class Corner(NamedTuple):
    """A tuple whose items have no defaults."""

    x: int
    y: int


class Shelf(BaseModel):
    """A model whose defaults look like schemas, and are none."""

    corner: Corner = Corner(1, 2)
    layout: dict[str, str] = {"type": "list"}


@pytest.mark.parametrize("padding", [0, 100_000], ids=["little", "much"])
def test_defaults_arrive_as_they_are_however_much_else_there_is(padding: int) -> None:
    """Ours: what stops early for much input is otherwise the same."""

    def f(shelf: Shelf, pad: str) -> None:
        raise NotImplementedError

    signature = read_signature(f, "tool 'f'")
    bound = signature.bind({"shelf": {}, "pad": "x" * padding})
    assert bound["shelf"] == Shelf()
    assert bound["shelf"].layout == {"type": "list"}
