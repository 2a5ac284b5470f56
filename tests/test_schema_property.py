"""What is published is what is enforced, whatever the signature.

A signature is drawn, then values of the schema that is published for it, and
values that are almost so. A validator of JSON Schema and `bind` must agree on
each of them.
"""

import enum
import inspect
import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import (
    Annotated,
    Any,
    Final,
    Generic,
    Literal,
    NamedTuple,
    NotRequired,
    TypeVar,
)
from uuid import UUID

import pytest
from hypothesis import assume, given, note, settings, strategies as st
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]  # no stubs
from pydantic import (
    AfterValidator,
    AliasChoices,
    BaseModel,
    ConfigDict,
    Field,
    Json,
)
from typing_extensions import TypeAliasType, TypedDict

from mcpkit.faults import ArgumentsError
from mcpkit.signature import Signature, read_signature
from mcpkit.strict import identity


class Color(enum.Enum):
    """A color."""

    RED = "red"
    BLUE = "blue"


class Priority(enum.IntEnum):
    """How urgent."""

    LOW = 1
    HIGH = 2


class Mixed(enum.Enum):
    """Of all kinds."""

    ONE = 1
    TWO = "two"
    NONE = None


class Point(BaseModel):
    """A place."""

    x: int
    y: float = Field(0, ge=-90, le=90, alias="latitude")


class Tree(BaseModel):
    """A tree."""

    model_config = ConfigDict(extra="forbid")

    value: int
    children: list["Tree"] = []


class Cat(BaseModel):
    """A cat."""

    kind: Literal["cat"]
    lives: int


class Dog(BaseModel):
    """A dog."""

    kind: Literal["dog"]
    name: str = Field(max_length=3)


@dataclass
class Item:
    """An item."""

    name: str
    count: int = 1


class Movie(TypedDict):
    """A movie."""

    title: str
    year: NotRequired[int]


class Place(NamedTuple):
    """A place of a map."""

    x: int
    y: str = ""


T = TypeVar("T")


class Page(BaseModel, Generic[T]):
    """A page."""

    items: list[T]


Nested = TypeAliasType("Nested", "dict[str, Nested] | list[Nested] | int | None")

HASHABLE: Final[list[Any]] = [int, str, float, bool, Color, Literal["a", 1], Priority]

LEAVES: Final[list[Any]] = [
    *HASHABLE,
    None,
    Any,
    Mixed,
    Literal["a", "b"],
    Literal[1, 2],
    Literal[True],
    Literal[0, True, "x", None],
    Literal[Color.RED],
    Annotated[int, Field(ge=0, le=10)],
    Annotated[int, Field(gt=-5, lt=5, multiple_of=2)],
    Annotated[int, AfterValidator(lambda value: value), Field(ge=0)],
    Annotated[float, Field(gt=0, le=1)],
    Annotated[str, Field(min_length=1, max_length=3)],
    Annotated[str, Field(pattern="^[a-c]+$")],
    date,
    datetime,
    timedelta,
    UUID,
    Decimal,
    Path,
    bytes,
    Point,
    Tree,
    Item,
    Movie,
    Place,
    Page[int],
    Page[Color],
    Nested,
    Cat | Dog,
    Annotated[Cat | Dog, Field(discriminator="kind")],
]


def containers(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Draw types that are made of others."""
    key = st.sampled_from([str, int, Color, Annotated[str, Field(pattern="^k")]])
    hashable = st.sampled_from(HASHABLE)
    return st.one_of(
        inner.map(lambda hint: of(list, hint)),
        inner.map(lambda hint: of(list, hint, min_length=1, max_length=2)),
        inner.map(lambda hint: of(tuple, (hint, ...))),
        st.tuples(inner, inner).map(lambda hints: of(tuple, hints)),
        st.tuples(key, inner).map(lambda hints: of(dict, hints)),
        inner.map(lambda hint: of(dict, (str, hint), max_length=2)),
        hashable.map(lambda hint: of(set, hint)),
        hashable.map(lambda hint: of(frozenset, hint, min_length=2)),
        st.tuples(inner, st.one_of(st.none(), inner)).map(_union),
    )


def of(container: Any, arguments: Any, **constraints: Any) -> Any:
    """Return the type of a container that holds others."""
    hint = container[arguments]
    return Annotated[hint, Field(**constraints)] if constraints else hint


def _union(hints: tuple[Any, Any]) -> Any:
    first, second = hints
    return first if first is None and second is None else first | second


TYPES: Final = st.recursive(st.sampled_from(LEAVES), containers, max_leaves=4)

DEFAULTS: Final = st.sampled_from(
    [None, 0, "", [], Color.RED, Point(x=1, latitude=2), object()]
)


@st.composite
def signatures(draw: st.DrawFn) -> Signature:
    """Draw the signature of a function of up to three parameters."""
    names = ["a", "b", "c"][: draw(st.integers(1, 3))]
    parameters = []
    for name in names:
        hint = draw(TYPES)
        if draw(st.integers(0, 4)) == 0:
            hint = Annotated[hint, Field(alias=f"{name}-{name}")]
        default = draw(st.one_of(st.just(inspect.Parameter.empty), DEFAULTS))
        parameters.append(
            inspect.Parameter(
                name,
                inspect.Parameter.KEYWORD_ONLY,
                annotation=hint,
                default=default,
            )
        )

    def function(**_: Any) -> None:
        raise NotImplementedError

    function.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    function.__annotations__ = {}
    return read_signature(function, "tool 'f'")


def signature_of(hint: Any) -> Signature:
    """Read the signature of a function of one parameter, `a`."""

    def function(a: Any) -> None:
        raise NotImplementedError

    function.__annotations__ = {"a": hint}
    return read_signature(function, "tool 'f'")


FORMATS: Final[dict[str, st.SearchStrategy[str]]] = {
    "date": st.dates().map(str),
    "date-time": st.datetimes().map(lambda moment: f"{moment.isoformat()}Z"),
    "duration": st.sampled_from(["PT1S", "P1D", "P1DT2H3M"]),
    "uuid": st.uuids().map(str),
    "path": st.text("ab/.", max_size=5),
    "binary": st.text(max_size=5),
}
"""Texts of a format: what else is one is beyond the schema, see `EXCEPTIONS`."""

DECIMAL: Final = signature_of(Decimal).schema["properties"]["a"]["anyOf"][1]["pattern"]

PATTERNS: Final[dict[str, st.SearchStrategy[str]]] = {
    "^[a-c]+$": st.text("abc", min_size=1, max_size=5),
    "^k": st.text("abc", max_size=3).map("k{}".format),
    "^(0|-?[1-9][0-9]*)$": st.integers(-20, 20).map(str),
    DECIMAL: st.sampled_from(["1", "-0.50", ".5", "1e5", "+2."]),
}

TEXTS: Final = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\n"), max_size=5
)
JSON: Final = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-3, 3),
        st.integers(-(2**70), 2**70),
        st.sampled_from([0.5, 1.0, -2.0, 1e300]),
        TEXTS,
        st.sampled_from(["red", "cat", "dog", "a", "two"]),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=2),
        st.dictionaries(
            st.sampled_from(["x", "kind", "name", "value", "k", "1"]), inner, max_size=2
        ),
    ),
    max_leaves=3,
)


@st.composite
def instances(
    draw: st.DrawFn, schema: Any, definitions: dict[str, Any], depth: int = 5
) -> Any:
    """Draw a value that a schema describes, of those that are published here."""

    def inner(schema: Any) -> Any:
        return draw(instances(schema, definitions, depth - 1))

    if "$ref" in schema:
        return inner(definitions[schema["$ref"].removeprefix("#/$defs/")])
    members = schema.get("anyOf") or schema.get("oneOf")
    if members:
        # Where types nest without end, the last member is a leaf.
        return inner(draw(st.sampled_from(members)) if depth > 0 else members[-1])
    if "const" in schema or "enum" in schema:
        return draw(st.sampled_from(schema.get("enum") or [schema["const"]]))
    kind = schema.get("type", "anything")
    if kind == "array":
        return _array(draw, schema, inner, depth)
    if kind == "object":
        return _object(draw, schema, inner, definitions, depth)
    return draw(SCALARS[kind](schema))


def _strings(schema: dict[str, Any]) -> st.SearchStrategy[str]:
    if "pattern" in schema:
        return PATTERNS[schema["pattern"]]
    if "format" in schema:
        return FORMATS[schema["format"]]
    least, most = schema.get("minLength", 0), schema.get("maxLength", 5)
    return st.text(min_size=least, max_size=most)


def _integers(schema: dict[str, Any]) -> st.SearchStrategy[Any]:
    least = schema.get("minimum", schema.get("exclusiveMinimum", -(2**65) - 1) + 1)
    most = schema.get("maximum", schema.get("exclusiveMaximum", 2**65 + 1) - 1)
    step = schema.get("multipleOf", 1)
    whole = st.integers(-(-least // step), most // step).map(lambda value: value * step)
    small = whole.filter(lambda value: abs(value) < 2**53)
    return st.one_of(whole, small.map(float))


def _numbers(schema: dict[str, Any]) -> st.SearchStrategy[Any]:
    least = schema.get("minimum", schema.get("exclusiveMinimum", -(10**6)))
    most = schema.get("maximum", schema.get("exclusiveMaximum", 10**6))
    inside = st.floats(
        least,
        most,
        exclude_min="exclusiveMinimum" in schema,
        exclude_max="exclusiveMaximum" in schema,
    )
    return st.one_of(inside, st.just(most))


SCALARS: Final[dict[str, Callable[[Any], st.SearchStrategy[Any]]]] = {
    "anything": lambda _: JSON,
    "boolean": lambda _: st.booleans(),
    "integer": _integers,
    "null": lambda _: st.none(),
    "number": _numbers,
    "string": _strings,
}


def _array(
    draw: st.DrawFn, schema: dict[str, Any], inner: Callable[[Any], Any], depth: int
) -> list[Any]:
    first = schema.get("prefixItems", [])
    least = schema.get("minItems", 0)
    most = schema.get("maxItems", max(least, 2 if depth > 0 else 0))
    size = draw(st.integers(least, most))
    items = schema.get("items", {})
    drawn = [inner(first[n] if n < len(first) else items) for n in range(size)]
    if schema.get("uniqueItems"):
        drawn = list({identity(item): item for item in drawn}.values())
        assume(len(drawn) >= least)
    return drawn


def _object(
    draw: st.DrawFn,
    schema: dict[str, Any],
    inner: Callable[[Any], Any],
    definitions: dict[str, Any],
    depth: int,
) -> dict[str, Any]:
    properties = schema.get("properties", {})
    required = schema.get("required", [])
    drawn = {
        name: inner(property_)
        for name, property_ in properties.items()
        if name in required or (depth > 0 and draw(st.booleans()))
    }
    others = schema.get("additionalProperties", True)
    patterns = schema.get("patternProperties", {})
    if patterns:
        ((pattern, others),) = patterns.items()
        names: st.SearchStrategy[str] = PATTERNS[pattern]
    elif "propertyNames" in schema:
        names = instances({"type": "string", **schema["propertyNames"]}, definitions)
    else:
        names = TEXTS.filter(lambda name: name not in properties)
    if others is not False and depth > 0:
        most = min(2, schema.get("maxProperties", 2))
        for name in draw(st.lists(names, max_size=most, unique=True)):
            drawn[name] = inner({} if others is True else others)
    return drawn


@st.composite
def changed(draw: st.DrawFn, value: Any) -> Any:
    """Draw a value that differs from another in one place."""
    if value and draw(st.booleans()):
        if isinstance(value, dict):
            key = draw(st.sampled_from(sorted(value)))
            return {**value, key: draw(changed(value[key]))}
        if isinstance(value, list):
            index = draw(st.integers(0, len(value) - 1))
            return [*value[:index], draw(changed(value[index])), *value[index + 1 :]]
    return draw(st.one_of(JSON, st.sampled_from(_neighbours(value))))


def _neighbours(value: Any) -> list[Any]:
    match value:
        case dict():
            without = [
                {name: value[name] for name in value if name != key} for key in value
            ]
            return [{**value, "extra": 1}, *without]
        case list():
            return [[*value, *value[:1]], value[:-1], [*value, 0]]
        case bool() | None:
            return [1, 0]
        case int() | float():
            numbers = [value + 1, value - 1, value + 0.5, -value]
            return [*numbers, bool(value), str(value), [value]]
        case _:
            return [f"{value}x", value[:-1], value.upper(), [value]]


UNTOLD: Final = (
    "should be a valid date",
    "should be a valid datetime",
    "should be in a valid time format",
    "should be a valid duration",
    "should be a valid UUID",
    "expected finite number",
)
"""What is refused although the schema does not say so: see `EXCEPTIONS`."""


def verdict(signature: Signature, arguments: dict[str, Any]) -> bool | None:
    """Tell whether `bind` accepts arguments; `None` when no schema could tell."""
    try:
        signature.bind(arguments)
    except ArgumentsError as error:
        note(str(error))
        lines = str(error).split("\n")
        untold = all(any(words in line for words in UNTOLD) for line in lines)
        return None if untold else False
    return True


@settings(max_examples=1000, deadline=None)
@given(st.data())
def test_what_is_published_is_what_is_enforced(data: st.DataObject) -> None:
    """Spec 2026-07-28, server/tools: Tool, `inputSchema`; ours: it is kept."""
    signature = data.draw(signatures())
    schema = signature.schema
    validator = Draft202012Validator(schema)
    arguments = data.draw(instances(schema, schema.get("$defs", {})))
    note(json.dumps([schema, arguments]))
    assert validator.is_valid(arguments)
    assert verdict(signature, arguments) is True
    other = data.draw(changed(arguments))
    assume(isinstance(other, dict))
    note(json.dumps(other))
    assert verdict(signature, other) in (validator.is_valid(other), None)


@pytest.mark.parametrize("hint", LEAVES, ids=str)
def test_what_is_published_is_json_schema(hint: Any) -> None:
    """Spec 2026-07-28, server/tools: Tool, `inputSchema`."""
    schema = signature_of(hint).schema
    Draft202012Validator.check_schema(schema)
    assert (schema["type"], schema["additionalProperties"]) == ("object", False)


class Chosen(BaseModel):
    """Its member has two names."""

    first: int = Field(validation_alias=AliasChoices("a", "b"))


class Filled(BaseModel):
    """It is filled by the names of its members, too."""

    model_config = ConfigDict(validate_by_name=True)

    first: int = Field(alias="firstName")


def refuse(value: Any) -> Any:
    raise ValueError(f"{value} is out of the question.")


EXCEPTIONS: Final[list[tuple[str, Any, Any, bool]]] = [
    # why, annotation, value, whether the schema admits it; `bind` does the opposite
    #
    # What the schema does not say. A format is an annotation in JSON Schema, and
    # what a validator does is known to nobody else.
    ("a format checks nothing", date, "x", True),
    ("a format of a name checks nothing", dict[date, int], {"x": 1}, True),
    ("no schema knows a validator", Annotated[int, AfterValidator(refuse)], 1, True),
    ("no schema knows JSON in a text", Json[list[int]], "x", True),
    ("no bound is that of floats", float, 10**400, True),
    ("a text has no bounds", Annotated[Decimal, Field(ge=1)], "0", True),
    ("a name has no bounds", dict[Annotated[int, Field(ge=1)], int], {"0": 1}, True),
    #
    # What is accepted beyond the schema, and means the same.
    ("an integer as a name, written in another way", dict[int, int], {"+1": 1}, False),
    ("a decimal, written in another way", Decimal, "1_000", False),
    ("another of the names that a model has", Chosen, {"b": 1}, False),
    ("the name that a model says it is filled by", Filled, {"first": 1}, False),
    #
    # The validator of these tests has `$` match before a line break; that of JSON
    # Schema, ECMA-262, matches at the end alone, as pydantic's does.
    ("a line break", Annotated[str, Field(pattern="^a$")], "a\n", True),
]
"""Where a validator of JSON Schema and `bind` do not agree, and why."""


@pytest.mark.parametrize(
    ("hint", "value", "admitted"),
    [pytest.param(*row, id=name) for name, *row in EXCEPTIONS],
)
def test_the_exceptions_are_known(
    hint: Any,
    value: Any,
    admitted: bool,  # noqa: FBT001  # a column of a table
) -> None:
    """Ours."""
    signature = signature_of(hint)
    assert Draft202012Validator(signature.schema).is_valid({"a": value}) is admitted
    try:
        signature.bind({"a": value})
    except ArgumentsError:
        accepted = False
    else:
        accepted = True
    assert accepted is not admitted
