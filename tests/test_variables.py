"""What travels as a string, after the parameter that takes it. Ours."""

import enum
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from pydantic import DirectoryPath, Field

from mcpkit import SetupError
from mcpkit.signature import read_signature
from mcpkit.uris import UriTemplate
from mcpkit.variables import read_choices, read_template


class Color(enum.Enum):
    """A color."""

    RED = "red"
    BLUE = "blue"


class Level(enum.IntEnum):
    """A level."""

    LOW = 1
    HIGH = 2


def taking(hint: Any, default: Any = None) -> Callable[..., Any]:
    """Make a function with one parameter, which has a default unless it is `...`."""

    def required(x: Any) -> None:
        raise NotImplementedError

    def optional(x: Any = default) -> None:
        raise NotImplementedError

    function = required if default is ... else optional
    function.__annotations__["x"] = hint
    return function


def template_of(
    uri: str, function: Callable[..., Any], what: str = "resource 'r'"
) -> UriTemplate | None:
    return read_template(uri, read_signature(function, what), what)


def table(rows: list[Any]) -> list[Any]:
    return [pytest.param(*row, id=name) for name, *row in rows]


LISTS: list[tuple[str, Any, bool]] = [
    # id, type, whether it is a list
    ("a list", list[str], True),
    ("a list of anything", list, True),
    ("a set", frozenset[int], True),
    ("a tuple", tuple[str, ...], True),
    ("an optional list", list[str] | None, True),
    ("lists of two kinds", list[int] | list[str], True),
    ("an annotated list", Annotated[list[str], Field(max_length=3)], True),
    ("a string", str, False),
    ("a string or a list", str | list[str], False),
    ("a dict", dict[str, str], False),
    ("anything", Any, False),
    ("nothing", None, False),
]


@pytest.mark.parametrize(("hint", "is_list"), table(LISTS))
def test_a_variable_is_a_list_where_the_parameter_is(hint: Any, is_list: bool) -> None:  # noqa: FBT001  # a column of the table
    template = template_of("a://{x}", taking(hint))
    assert template is not None
    assert template.lists == ({"x"} if is_list else set())


PATHS: list[tuple[str, Any, bool]] = [
    # id, type, whether it is a path
    ("a path", Path, True),
    ("an optional path", Path | None, True),
    ("the path of a folder", DirectoryPath, True),
    ("a string", str, False),
]


@pytest.mark.parametrize(("hint", "is_path"), table(PATHS))
def test_a_query_is_a_path_where_the_parameter_is(hint: Any, is_path: bool) -> None:  # noqa: FBT001  # a column of the table
    """URI-01."""
    template = template_of("a://b{?x}", taking(hint))
    assert template is not None
    assert (template.match("a://b?x=../c") is None) == is_path


def test_a_uri_without_variables_is_no_template() -> None:
    assert template_of("a://b", taking(str)) is None


MISTAKES: list[tuple[str, str, Callable[..., Any], str]] = [
    # id, URI, function, message
    (
        "URI-12 a variable that is no parameter",
        "a://{y}",
        taking(str),
        "the template's variable 'y' is no parameter of the function",
    ),
    (
        "URI-12 a parameter that is no variable",
        "a://b",
        taking(str, ...),
        "the parameter 'x' is no variable of the URI; write {x} into it, or give the "
        "parameter a default",
    ),
    (
        "URI-12 a query without a default",
        "a://b{?x}",
        taking(str, ...),
        "a URI may leave out 'x', which is in its query; give the parameter a default",
    ),
    (
        "a list in the query that is none",
        "a://b{?x*}",
        taking(str),
        "the variable 'x' has a star and so is a list; write x: list[str]",
    ),
    (
        "URI-12 a template that is malformed",
        "a://{x",
        taking(str),
        "the URI template 'a://{x' has a brace without its pair",
    ),
]


@pytest.mark.parametrize(("uri", "function", "message"), table(MISTAKES))
def test_a_template_and_a_function_that_do_not_fit_are_refused(
    uri: str, function: Callable[..., Any], message: str
) -> None:
    with pytest.raises(SetupError) as caught:
        template_of(uri, function)
    assert str(caught.value) == f"resource 'r': {message}"


CHOICES: list[tuple[str, Any, tuple[str, ...]]] = [
    # id, type, choices
    ("an enum", Color, ("red", "blue")),
    ("an enum of numbers", Level, ("1", "2")),
    ("a literal", Literal["a", "b"], ("a", "b")),
    ("one literal", Literal["a"], ("a",)),
    ("truths and numbers", Literal[True, 1], ("true", "1")),
    ("two of them", Color | Literal["a"], ("red", "blue", "a")),
    ("what may be missing", Color | None, ("red", "blue")),
]


@pytest.mark.parametrize(("hint", "choices"), table(CHOICES))
def test_an_enum_or_a_literal_has_few_values(
    hint: Any, choices: tuple[str, ...]
) -> None:
    assert read_choices(read_signature(taking(hint), "p")) == {"x": choices}


@pytest.mark.parametrize("hint", [str, bool, list[Color], Color | int, Any, None])
def test_other_types_have_many_values(hint: Any) -> None:
    assert read_choices(read_signature(taking(hint), "p")) == {}
