"""Whatever a tool returns, its answer is valid, and as its schema says.

An annotation is drawn, and a value of it; or a value alone, for a tool that has no
annotation. The answers of every revision are checked.
"""

import copy
import dataclasses
import enum
import json
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from types import MappingProxyType
from typing import (
    Annotated,
    Any,
    Final,
    Generic,
    Literal,
    NamedTuple,
    TypeVar,
    Union,
)
from uuid import UUID

from hypothesis import given, settings, strategies as st
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]  # no stubs
from pydantic import BaseModel, ConfigDict, Field, create_model
from typing_extensions import TypedDict

from mcpkit import App, Result
from tests.calls import (
    EVERY,
    V_2025_03_26,
    V_2025_06_18,
    V_2025_11_25,
    call,
    call_tool,
)
from tests.wire import MODERN

T = TypeVar("T")


class Color(enum.Enum):
    """A color."""

    RED = "red"
    BLUE = "blue"


class Level(enum.IntEnum):
    """A level."""

    LOW = 1
    HIGH = 2


class Tree(BaseModel):
    """A tree."""

    value: int
    children: list["Tree"] = []


class Page(BaseModel, Generic[T]):
    """A page of a list."""

    model_config = ConfigDict(ser_json_bytes="base64")
    items: list[T]
    total: float | None = None


@dataclasses.dataclass
class Item:
    """An item."""

    count: int
    data: bytes = b""


class Pair(NamedTuple):
    """A pair."""

    left: int
    right: str = "r"


FINITE: Final = st.floats(allow_nan=False, allow_infinity=False)
# With halves of surrogate pairs.
TEXTS: Final = st.text(st.characters(codec=None), max_size=8)
TREES: Final[st.SearchStrategy[Tree]] = st.recursive(
    st.builds(Tree, value=st.integers(), children=st.just([])),
    lambda trees: st.builds(
        Tree, value=st.integers(), children=st.lists(trees, max_size=3)
    ),
    max_leaves=5,
)

Drawn = tuple[Any, st.SearchStrategy[Any]]
"""A type, and values of it."""

SCALARS: Final[Sequence[Drawn]] = (
    (int, st.integers()),
    (float, FINITE | st.integers(-(2**53), 2**53)),
    (bool, st.booleans()),
    (str, TEXTS),
    (None, st.none()),
    (bytes, st.binary(max_size=8)),
    (date, st.dates()),
    (datetime, st.datetimes()),
    (time, st.times()),
    (timedelta, st.timedeltas(timedelta(-999), timedelta(999))),
    (UUID, st.uuids()),
    (Decimal, st.decimals(allow_nan=False, allow_infinity=False, places=3)),
    (Color, st.sampled_from(Color)),
    (Level, st.sampled_from(Level)),
    (Literal["a", 1, None], st.sampled_from(["a", 1, None])),
    (Annotated[int, Field(ge=0, le=9)], st.integers(0, 9)),
    (Any, TEXTS | st.integers() | st.binary(max_size=4)),
    (Tree, TREES),
    (Item, st.builds(Item, st.integers(), st.binary(max_size=4))),
    (Pair, st.builds(Pair, st.integers(), TEXTS)),
)
NAMES: Final = ("a", "b_c", "default")


def _model(hint: Any, values: st.SearchStrategy[Any]) -> Drawn:
    fields: dict[str, Any] = dict.fromkeys(NAMES, (hint, ...))
    # What is not UTF-8 has no other form in a model.
    config = ConfigDict(ser_json_bytes="base64")
    model = create_model("Drawn", __config__=config, **fields)
    members = st.fixed_dictionaries(dict.fromkeys(NAMES, values))
    return model, members.map(lambda given: model.model_construct(**given))


def _page(hint: Any, values: st.SearchStrategy[Any]) -> Drawn:
    page = of(Page, hint)
    items = st.lists(values, max_size=3)
    return page, items.map(lambda items: page.model_construct(items=items, total=None))


def _typed_dict(hint: Any, values: st.SearchStrategy[Any]) -> Drawn:
    # mypy takes the name for the class that a literal would make.
    made = TypedDict("made", dict.fromkeys(NAMES, hint), total=False)  # type: ignore[misc]
    return made, st.fixed_dictionaries({}, optional=dict.fromkeys(NAMES, values))


def _dataclass(hint: Any, values: st.SearchStrategy[Any]) -> Drawn:
    made = dataclasses.make_dataclass("Made", [("a", hint)])
    return made, st.builds(made, values)


def of(generic: Any, *arguments: Any) -> Any:
    """Return a generic type of types, which mypy knows nothing of."""
    return generic[arguments]


HOLDERS: Final[Sequence[Callable[[Any, st.SearchStrategy[Any]], Drawn]]] = (
    lambda hint, values: (of(list, hint), st.lists(values, max_size=3)),
    lambda hint, values: (
        of(tuple, hint, ...),
        st.lists(values, max_size=3).map(tuple),
    ),
    lambda hint, values: (
        of(dict, str, hint),
        st.dictionaries(TEXTS, values, max_size=3),
    ),
    lambda hint, values: (
        of(dict, int, hint),
        st.dictionaries(st.integers(), values, max_size=3),
    ),
    lambda hint, values: (of(Union, hint, None), st.none() | values),
    _model,
    _page,
    _typed_dict,
    _dataclass,
)
JOINERS: Final[Sequence[Callable[[Drawn, Drawn], Drawn]]] = (
    lambda left, right: (of(Union, left[0], right[0]), left[1] | right[1]),
    lambda left, right: (
        of(tuple, left[0], right[0]),
        st.tuples(left[1], right[1]),
    ),
)
WRAPPERS: Final[Sequence[Callable[[Any, st.SearchStrategy[Any]], Drawn]]] = (
    lambda hint, values: (hint, values),
    lambda hint, values: (of(Result, hint), values),
    lambda hint, values: (of(Result, hint), values.map(Result.structured)),
    lambda hint, values: (
        hint,
        values.map(lambda value: Result.structured(value, content="In words.")),
    ),
    lambda hint, values: (
        of(Iterable, hint),
        st.lists(values, max_size=3).map(iter),
    ),
)


def made_of(inner: st.SearchStrategy[Drawn]) -> st.SearchStrategy[Drawn]:
    """Draw types that are made of others."""
    held = st.builds(lambda hold, one: hold(*one), st.sampled_from(HOLDERS), inner)
    joined = st.builds(
        lambda join, *both: join(*both), st.sampled_from(JOINERS), inner, inner
    )
    return held | joined


TYPES: Final[st.SearchStrategy[Drawn]] = st.builds(
    lambda wrap, drawn: wrap(*drawn),
    st.sampled_from(WRAPPERS),
    st.recursive(st.sampled_from(SCALARS), made_of, max_leaves=4),
)


def returning(hint: Any, make: Callable[[], Any], *, is_async: bool) -> App:
    """Make an app whose tool `t` returns a value, under an annotation."""
    app = App("tests")

    async def in_coroutine() -> Any:
        return make()

    def in_function() -> Any:
        return make()

    tool = in_coroutine if is_async else in_function
    tool.__annotations__ = {"return": hint}
    app.add_tool(tool, name="t", thread=False)
    return app


TYPED_VALUES: Final = TYPES.flatmap(
    lambda drawn: st.tuples(st.just(drawn[0]), drawn[1])
)


@settings(max_examples=200, deadline=None)
@given(TYPED_VALUES, st.booleans())
async def test_a_value_of_the_declared_type_is_as_the_schema_says(
    drawn: tuple[Any, Any],
    is_async: bool,  # noqa: FBT001  # what is drawn
) -> None:
    """Spec 2026-07-28, server/tools: Output Schema, a MUST."""
    hint, value = drawn
    app = returning(hint, lambda: copy.deepcopy(value), is_async=is_async)
    for version in (MODERN, V_2025_11_25, V_2025_06_18):
        (tool,) = (await call(app, "tools/list", at=version))["tools"]
        result = await call_tool(app, "t", at=version)
        assert result["isError"] is False
        if "outputSchema" in tool:
            schema = tool["outputSchema"]
            Draft202012Validator.check_schema(schema)
            Draft202012Validator(schema).validate(result["structuredContent"])
            assert version == MODERN or schema["type"] == "object"
        if "structuredContent" in result:
            check_agreement(result, version)
    result = await call_tool(app, "t", at=V_2025_03_26)
    assert result["isError"] is False


def check_agreement(result: dict[str, Any], version: str) -> None:
    """Check that the text of a result is what its structured content is."""
    (block,) = result["content"]
    if block["text"] == "In words.":
        return
    held = json.loads(block["text"])
    sent = result["structuredContent"]
    if version != MODERN and sent != held:
        assert sent == {"result": held}
    else:
        assert sent == held


KEYS: Final = TEXTS | st.integers() | st.booleans() | st.none() | FINITE | st.dates()
LEAVES: Final = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | TEXTS
    | st.binary(max_size=8)
    | st.dates()
    | st.datetimes()
    | st.uuids()
    | st.decimals(places=2, allow_nan=False, allow_infinity=False)
    | st.sampled_from([Color.RED, Level.HIGH, Item(1, b"\xff"), Pair(1)])
    | TREES
)
VALUES: Final = st.recursive(
    LEAVES,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.lists(inner, max_size=4).map(tuple)
        | st.lists(inner, max_size=4).map(deque)
        | st.dictionaries(KEYS, inner, max_size=4)
        | st.dictionaries(KEYS, inner, max_size=4).map(MappingProxyType)
        | st.lists(inner, max_size=4).map(lambda items: Item(items, b""))  # type: ignore[arg-type]
    ),
    max_leaves=10,
)


@settings(max_examples=200, deadline=None)
@given(VALUES, st.booleans())
async def test_any_value_with_a_json_form_is_a_valid_result(
    value: Any,
    is_async: bool,  # noqa: FBT001  # what is drawn
) -> None:
    """Ours. Spec 2026-07-28, server/tools: Structured Content, and older ones."""
    app = returning(Any, lambda: value, is_async=is_async)
    for version in EVERY:
        result = await call_tool(app, "t", at=version)
        assert result["isError"] is False
        if isinstance(value, str):
            text = value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
            assert result["content"] == [{"type": "text", "text": text}]
        elif value is None:
            assert result["content"] == []
        elif version == V_2025_03_26:
            assert "structuredContent" not in result
            json.loads(result["content"][0]["text"])
        else:
            check_agreement(result, version)
            assert version == MODERN or isinstance(result["structuredContent"], dict)
