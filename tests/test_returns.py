"""What is read of the annotation of what a tool returns."""

import sys
import typing
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Coroutine,
    Generator,
    Iterable,
    Iterator,
    Sequence,
)
from typing import Annotated, Any, Literal, NewType, TypeVar

import pytest
from pydantic import BaseModel, Field, JsonValue
from typing_extensions import TypeAliasType, TypedDict

from mcpkit import Audio, File, Image, ResourceLink, Result, SetupError, Text
from mcpkit.errors import MCPKitError
from mcpkit.returns import read_returns

T = TypeVar("T")


class Point(BaseModel):
    """A place."""

    x: int


class Movie(TypedDict):
    """A movie."""

    title: str


class Plain:
    """What has no JSON form."""


Age = NewType("Age", int)
Name = NewType("Name", str)
Numbers = TypeAliasType("Numbers", list[int])
Words = TypeAliasType("Words", str)
Pictures = TypeAliasType("Pictures", list[Image])
Json = TypeAliasType("Json", "dict[str, Json] | list[Json] | int")

INTEGERS = {"type": "array", "items": {"type": "integer"}}
POINT = {
    "type": "object",
    "description": "A place.",
    "properties": {"x": {"type": "integer"}},
    "required": ["x"],
}


def annotated(hint: Any) -> Callable[..., Any]:
    """Make a function that returns something, by its annotation."""

    def function() -> None:
        raise NotImplementedError

    function.__annotations__ = {"return": hint}
    return function


SCHEMAS: list[tuple[str, Any, dict[str, Any], bool]] = [
    # id, annotation, schema, whether it is that of an object
    ("an integer", int, {"type": "integer"}, False),
    ("a model", Point, POINT, True),
    (
        "an optional text or a number",
        str | int | None,
        {"anyOf": [{"type": "string"}, {"type": "integer"}, {"type": "null"}]},
        False,
    ),
    ("a literal", Literal["a", "b"], {"type": "string", "enum": ["a", "b"]}, False),
    (
        "a list of texts",
        list[str],
        {"type": "array", "items": {"type": "string"}},
        False,
    ),
    ("a dict", dict, {"type": "object", "additionalProperties": True}, True),
    ("a list", list, {"type": "array", "items": {}}, False),
    (
        "RES-06 a dict of integers",
        dict[str, int],
        {"type": "object", "additionalProperties": {"type": "integer"}},
        True,
    ),
    ("a name for a number", Age, {"type": "integer"}, False),
    ("an alias", Numbers, INTEGERS, False),
    ("a sequence", Sequence[int], INTEGERS, False),
    ("an iterable", Iterable[int], INTEGERS, False),
    ("an iterator", Iterator[int], INTEGERS, False),
    ("a generator", Generator[int, None, None], INTEGERS, False),
    ("what is awaited", Awaitable[int], {"type": "integer"}, False),
    ("a coroutine", Coroutine[Any, Any, Point], POINT, True),
    ("a result of a model", Result[Point], POINT, True),
    ("a result or a model", Result[Point] | Point, POINT, True),
    ("a result of a list", Result[list[int]], INTEGERS, False),
    ("an awaited result", Awaitable[Result[int]], {"type": "integer"}, False),
    (
        "a described number",
        Annotated[int, Field(ge=1, description="d")],
        {"type": "integer", "minimum": 1, "description": "d"},
        False,
    ),
    (
        "a described result",
        Annotated[Result[int], Field(ge=1)],
        {"type": "integer", "minimum": 1},
        False,
    ),
]


def table(rows: Iterable[Any]) -> list[Any]:
    return [pytest.param(*row, id=name) for name, *row in rows]


@pytest.mark.parametrize(("hint", "schema", "is_object"), table(SCHEMAS))
def test_an_annotation_has_an_output_schema(
    hint: Any,
    schema: dict[str, Any],
    is_object: bool,  # noqa: FBT001  # a column
) -> None:
    """Spec 2026-07-28, server/tools: Output Schema."""
    returns = read_returns(annotated(hint), "tool 't'")
    assert (returns.schema, returns.object_schema) == (schema, is_object)


def test_a_recursive_alias_has_an_output_schema() -> None:
    schema = read_returns(annotated(Json), "tool 't'").schema
    assert schema is not None
    assert schema["$defs"].keys() == {"Json"}


NONE: list[tuple[str, Any]] = [
    # id, annotation
    ("a text", str),
    ("nothing", None),
    ("a text or nothing", str | None),
    ("a name for a text", Name),
    ("an alias of a text", Words),
    ("a text of some length", Annotated[str, Field(max_length=3)]),
    ("anything", Any),
    ("an object", object),
    ("anything that has JSON", JsonValue),
    ("a type variable", T),
    ("a result", Result),
    ("a result or a model", Result | Point),
    ("a result of a text", Result[str]),
    ("a result of anything", Result[Any]),
    ("a text or a result", str | Result),
    ("an image", Image),
    ("a recording or nothing", Audio | None),
    ("a result of an image", Result[Image]),
    ("DEC-28 a list of blocks", list[Text | Image]),
    ("DEC-28 a tuple of blocks", tuple[Audio, ...]),
    ("DEC-28 blocks of several kinds", tuple[Text, File, ResourceLink]),
    ("an alias of blocks", Pictures),
    ("an iterator of blocks", Iterator[Text]),
    ("blocks beside models", list[Image | Point]),
    ("a block or a model", Image | Point),
    ("blocks in a dict", dict[str, list[Image]]),
    ("DEC-28 a class that pydantic does not know", Plain),
    ("DEC-28 a list of them", list[Plain]),
    ("an iterator that is awaited", AsyncIterator[int]),
    ("a function", Callable[[], int]),
]


@pytest.mark.parametrize("hint", table(NONE))
def test_an_annotation_has_no_output_schema(hint: Any) -> None:
    """DEC-28. Ours."""
    returns = read_returns(annotated(hint), "tool 't'")
    assert (returns.schema, returns.object_schema, returns.encoder) == (None,) * 3


def test_no_annotation_has_no_output_schema() -> None:
    def function():  # type: ignore[no-untyped-def]  # noqa: ANN202  # that is it
        raise NotImplementedError

    assert read_returns(function, "tool 't'").schema is None


class Unfinished(BaseModel):
    """A model with a name in it that nobody defines."""

    a: "Nowhere"  # type: ignore[name-defined]  # noqa: F821  # that is it


MISTAKES: list[tuple[str, Any, str]] = [
    # id, annotation, what is told
    (
        "results in a list",
        list[Result[int]],
        "a tool returns one Result, and none inside of it",
    ),
    (
        "a result in a result",
        Result[list[Result[int]]],
        "a tool returns one Result, and none inside of it",
    ),
    (
        "a name",
        "Nowhere",
        "the annotation 'Nowhere' of what it returns can't be resolved",
    ),
    (
        "a name in a model",
        Unfinished,
        "has no schema yet; define or import it at module level",
    ),
    ("a name in a list of models", list[Unfinished], "name 'Nowhere' is not defined"),
]


@pytest.mark.parametrize(("hint", "told"), table(MISTAKES))
def test_an_annotation_that_can_not_work_is_a_setup_error(hint: Any, told: str) -> None:
    """Ours."""
    with pytest.raises(SetupError) as caught:
        read_returns(annotated(hint), "tool 't'")
    assert str(caught.value).startswith("tool 't': ")
    assert told in str(caught.value)
    assert isinstance(caught.value, MCPKitError)


Film = typing.TypedDict("Film", {"title": str})  # noqa: UP013  # mypy has one of each


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="it is known from 3.12 on")
def test_a_typed_dict_that_pydantic_does_not_know_is_a_setup_error() -> None:
    """Ours."""
    with pytest.raises(SetupError, match="import TypedDict from typing_extensions"):
        read_returns(annotated(list[Film]), "tool 't'")
