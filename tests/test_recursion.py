"""What a recursive union may cost."""

import doctest
import time
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, Field
from typing_extensions import TypeAliasType

import mcpkit.recursion
from mcpkit import App, SetupError
from mcpkit.faults import ArgumentsError
from mcpkit.recursion import depth_of
from mcpkit.signature import read_signature


class Not(BaseModel):
    """A node that may hold either."""

    arg: "Not | Neg | int"


class Neg(BaseModel):
    """A node that may hold either."""

    arg: "Not | Neg | int"


class Add(BaseModel):
    """A node that says what it is."""

    op: Literal["add"]
    arg: "Annotated[Add | Sub, Field(discriminator='op')] | int"


class Sub(BaseModel):
    """A node that says what it is."""

    op: Literal["sub"]
    arg: "Annotated[Add | Sub, Field(discriminator='op')] | int"


class Tree(BaseModel):
    """A node without a union."""

    kids: list["Tree"] = []


R = TypeAliasType("R", "list[R] | dict[str, R] | int")


def nested(depth: int, bottom: object, **members: object) -> Any:
    value = bottom
    for _ in range(depth):
        value = {**members, "arg": value}
    return value


def test_the_examples_in_the_docstrings_run() -> None:
    assert doctest.testmod(mcpkit.recursion).failed == 0


COSTLY: list[tuple[str, Any, Any]] = [
    # id, annotation, value
    ("a wrong leaf", Not | Neg, nested(60, "bad")),
    ("a right leaf", Not | Neg, nested(60, 1)),
    ("an alias", R, [[[[[[[[[[[[[[[[[[["bad"]]]]]]]]]]]]]]]]]]]),
]


@pytest.mark.parametrize(
    ("hint", "value"), [pytest.param(*row, id=name) for name, *row in COSTLY]
)
def test_a_recursive_union_is_not_followed_for_ever(hint: Any, value: Any) -> None:
    """Ours: trying every member at every level doubles the cost with each."""

    def f(e: hint) -> None:
        raise NotImplementedError

    signature = read_signature(f, "tool 'f'")
    started = time.process_time()
    with pytest.raises(ArgumentsError, match="nested over 13 levels"):
        signature.bind({"e": value})
    with pytest.raises(ArgumentsError):
        signature.bind({"e": nested(11, "bad")})
    assert time.process_time() - started < 2


CHEAP: list[tuple[str, Any, Any]] = [
    # id, annotation, value
    ("a discriminator", Add | Sub, nested(60, 1, op="add")),
    ("no union", Tree, {"kids": [{"kids": [{}]}]}),
    ("few levels", Not | Neg, nested(11, 1)),
]


@pytest.mark.parametrize(
    ("hint", "value"), [pytest.param(*row, id=name) for name, *row in CHEAP]
)
def test_what_costs_little_nests_as_it_likes(hint: Any, value: Any) -> None:
    def f(e: hint) -> None:
        raise NotImplementedError

    assert "e" in read_signature(f, "tool 'f'").bind({"e": value})


def test_the_depth_of_a_value_is_that_of_its_arrays_and_objects() -> None:
    values: list[Any] = [1, [], {"a": [1, {}]}]
    assert [depth_of(value) for value in values] == [0, 1, 3]


IMPOSSIBLE: dict[str, Any] = {
    "a look-ahead": Annotated[str, Field(pattern="(?=.*[A-Z]).{8,}")],
    "no pattern": Annotated[str, Field(pattern="(")],
    "a negative length": Annotated[str, Field(min_length=-1)],
    "no JSON": Annotated[int, Field(examples=[object()])],
}


@pytest.mark.parametrize("hint", IMPOSSIBLE.values(), ids=IMPOSSIBLE)
def test_a_constraint_that_cannot_be_compiled_is_a_setup_error(hint: Any) -> None:
    """Ours: a mistake is found when the function is registered."""

    def f(a: hint) -> None:
        raise NotImplementedError

    with pytest.raises(SetupError, match=r"tool 'f': .*'a'"):
        App("shop").add_tool(f)


def test_a_sync_tool_may_name_its_parameters_as_it_likes() -> None:
    """Ours: the pool of threads takes none of the names."""
    app = App("shop")

    @app.tool
    def f(function: int, this: int = 1) -> int:
        return function + this

    assert app.registry.tools["f"].signature.names == ("function", "this")
