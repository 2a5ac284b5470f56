"""How values of a declared type become JSON, under a schema that describes it."""

import dataclasses
import doctest
import enum
import math
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, Generic, Literal, NamedTuple, NotRequired, TypeVar

import pytest
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]  # no stubs
from pydantic import (
    AfterValidator,
    AliasChoices,
    Base64Bytes,
    BaseModel,
    ConfigDict,
    Field,
    PlainSerializer,
    RootModel,
    SecretStr,
    computed_field,
    field_serializer,
    field_validator,
)
from pydantic.dataclasses import dataclass as pydantic_dataclass
from pydantic_core import from_json
from typing_extensions import TypedDict

from mcpkit import outputs as module
from mcpkit.outputs import Output, OutputError

T = TypeVar("T")
WHEN = datetime(2020, 1, 2, 3, 4, 5, tzinfo=UTC)


class Color(enum.Enum):
    """A color."""

    RED = "red"


class Level(enum.IntEnum):
    """A level."""

    LOW = 1


class Point(BaseModel):
    """A place."""

    x: int
    y: float = 0


class Everything(BaseModel):
    """One of each type that an instance may hold a few of."""

    i: int = 1
    f: float = 1.5
    s: str = "s"
    b: bool = True
    n: None = None
    d: date = date(2020, 1, 2)
    t: time = time(3, 4)
    at: datetime = WHEN
    td: timedelta = timedelta(seconds=90)
    u: uuid.UUID = uuid.UUID(int=1)
    m: Decimal = Decimal("1.10")
    e: Color = Color.RED
    c: Literal["a", "b"] = "a"
    maybe: int | None = None
    data: bytes = b"a"
    point: Point = Point(x=1)

    @field_validator("s")
    @classmethod
    def _stripped(cls, value: str) -> str:
        return value.strip()

    @computed_field  # type: ignore[prop-decorator]  # as pydantic has it
    @property
    def twice(self) -> int:
        """Twice the number."""
        return 2 * self.i


EVERYTHING = (
    '{"i":1,"f":1.5,"s":"s","b":true,"n":null,"d":"2020-01-02","t":"03:04:00",'
    '"at":"2020-01-02T03:04:05Z","td":"PT1M30S",'
    '"u":"00000000-0000-0000-0000-000000000001","m":"1.10","e":"red","c":"a",'
    '"maybe":null,"data":"a","point":{"x":1,"y":0.0},"twice":2}'
)


class Tree(BaseModel):
    """A tree."""

    value: int
    children: list["Tree"] = []


class Page(BaseModel, Generic[T]):
    """A page of a list."""

    items: list[T]
    more: bool = False


class Named(BaseModel):
    """Something that is called otherwise on the wire."""

    first_name: str = Field(
        validation_alias=AliasChoices("firstName", "first_name"),
        serialization_alias="firstName",
    )


class Odd(BaseModel):
    """A number that travels as a text."""

    n: int

    @field_serializer("n")
    def _as_text(self, n: int) -> str:
        return str(n)


class Priced(BaseModel):
    """Something whose default nobody validates."""

    price: float | Literal["free"] = 0


class Blob(BaseModel):
    """Bytes that the model has its own form for."""

    model_config = ConfigDict(ser_json_bytes="hex")
    data: bytes


class Lax(BaseModel):
    """Something that may hold more."""

    model_config = ConfigDict(extra="allow")
    a: int


class Movie(TypedDict):
    """A movie."""

    title: str
    year: NotRequired[int]
    poster: NotRequired[bytes]
    # Names that a core schema has keys of.
    default: NotRequired[int]
    metadata: NotRequired[bytes]


class Renamed(TypedDict):
    """Something whose key is another on the wire, and anything."""

    a: Annotated[Any, Field(serialization_alias="b")]


class Pair(NamedTuple):
    """A pair."""

    left: int
    right: str = "r"


@dataclasses.dataclass
class Item:
    """An item."""

    count: int
    data: bytes = b""


@pydantic_dataclass
class Part:
    """A part, which pydantic knows."""

    count: int
    data: bytes = b""


Labelled = Annotated[int, PlainSerializer(lambda n: f"no. {n}", return_type=str)]

ENCODED: list[tuple[str, Any, Any, str]] = [
    # id, type, value, JSON
    ("an integer", int, 3, "3"),
    ("a large integer", int, 2**70, "1180591620717411303424"),
    ("an integral float", int, 3.0, "3"),
    ("an integral decimal", int, Decimal(3), "3"),
    ("a member that is an integer", int, Level.LOW, "1"),
    ("an integer for a number", float, 3, "3.0"),
    ("a decimal for a number", float, Decimal("1.5"), "1.5"),
    ("a truth", bool, True, "true"),
    ("falsehood", bool, False, "false"),
    ("zero", int, 0, "0"),
    ("null", int | None, None, "null"),
    ("an empty text beside null", str | int, "", '""'),
    ("an empty list", list[int], [], "[]"),
    ("an empty object", dict[str, int], {}, "{}"),
    ("a tuple for a list", list[int], (1, 2), "[1,2]"),
    ("a view for a list", list[int], {"a": 1}.values(), "[1]"),
    ("a set for a list", list[int], {1}, "[1]"),
    ("a list for a tuple", tuple[int, str], [1, "a"], '[1,"a"]'),
    ("a tuple of any length", tuple[int, ...], (1, 2, 3), "[1,2,3]"),
    ("an iterator", Iterable[int], iter([1, 2]), "[1,2]"),
    ("a generator", Iterable[int], (n for n in (1, 2)), "[1,2]"),
    ("a sequence", Sequence[int], [1], "[1]"),
    ("a mapping", Mapping[str, int], {"a": 1}, '{"a":1}'),
    ("a frozenset", frozenset[str], frozenset({"a"}), '["a"]'),
    ("RES-06 integer keys", dict[int, str], {1: "a"}, '{"1":"a"}'),
    ("keys that are integers as texts", dict[int, str], {"1": "a"}, '{"1":"a"}'),
    ("keys that are dates", dict[date, int], {date(2020, 1, 2): 1}, '{"2020-01-02":1}'),
    ("RES-10 a date and time", datetime, WHEN, '"2020-01-02T03:04:05Z"'),
    ("a text for a date", date, "2020-01-02", '"2020-01-02"'),
    ("RES-10 a UUID", uuid.UUID, uuid.UUID(int=1), f'"{uuid.UUID(int=1)}"'),
    ("RES-10 a decimal", Decimal, Decimal("1.10"), '"1.10"'),
    ("RES-10 a path", Path, Path("a/b"), '"a/b"'),
    ("RES-10 a member", Color, Color.RED, '"red"'),
    ("the value of a member", Color, "red", '"red"'),
    ("RES-10 bytes", bytes, b"\xfb\xff", '"+/8="'),
    ("bytes in a list", list[bytes], [b"\xfb\xff"], '["+/8="]'),
    ("bytes in anything", dict[str, Any], {"a": [b"\xfb\xff"]}, '{"a":["+/8="]}'),
    (
        "bytes in anything beside an instance",
        dict[str, Any] | Point,
        {"a": [b"\xfb\xff"], "b": 1, "c": Point(x=1)},
        '{"a":["+/8="],"b":1,"c":{"x":1,"y":0.0}}',
    ),
    ("bytes of a model", Blob, Blob(data=b"\xff"), '{"data":"ff"}'),
    ("bytes in base64 by their type", Base64Bytes, b"+/8=", '"+/8="'),
    ("a secret", SecretStr, SecretStr("x"), '"**********"'),
    ("half a pair", list[str], ["\ud800"], '["\ufffd"]'),
    (
        "half a pair in a model",
        Named,
        Named(first_name="\ud800"),
        '{"firstName":"\ufffd"}',
    ),
    ("an instance of everything", Everything, Everything(), EVERYTHING),
    ("a dict for everything", Everything, {"i": 1}, EVERYTHING),
    ("everything in a list", list[Everything], [Everything()], f"[{EVERYTHING}]"),
    ("an optional instance", Everything | None, None, "null"),
    ("a dict for a model", Point, {"x": 1}, '{"x":1,"y":0.0}'),
    (
        "models and dicts",
        list[Point],
        (Point(x=1), {"x": 2}),
        '[{"x":1,"y":0.0},{"x":2,"y":0.0}]',
    ),
    ("RES-06 a model or a text", Point | str, "s", '"s"'),
    (
        "DEC-25 a recursive model",
        Tree,
        Tree(value=1, children=[Tree(value=2)]),
        '{"value":1,"children":[{"value":2,"children":[]}]}',
    ),
    (
        "a generic model",
        Page[Point],
        Page(items=[Point(x=1)]),
        '{"items":[{"x":1,"y":0.0}],"more":false}',
    ),
    ("a model of a list", RootModel[list[int]], RootModel[list[int]]([1]), "[1]"),
    ("a list for a model of one", RootModel[list[int]], [1], "[1]"),
    ("an alias", Named, Named(first_name="x"), '{"firstName":"x"}'),
    ("a serializer of its own", Odd, Odd(n=1), '{"n":"1"}'),
    ("a serializer of the type's", list[Labelled], [1], '["no. 1"]'),
    ("an integer for a number or a text", Priced, Priced(), '{"price":0}'),
    ("more than is declared", Lax, Lax(a=1, b=2), '{"a":1,"b":2}'),  # type: ignore[call-arg]  # it may
    ("RES-10 a dataclass", Item, Item(1, b"\xff"), '{"count":1,"data":"/w=="}'),
    ("a dict for a dataclass", Item, {"count": 1}, '{"count":1,"data":""}'),
    ("a dataclass of pydantic", Part, Part(1, b"a"), '{"count":1,"data":"a"}'),
    ("a TypedDict", Movie, {"title": "x"}, '{"title":"x"}'),
    (
        "all of a TypedDict",
        Movie,
        {
            "title": "x",
            "year": 1.0,
            "poster": b"\xff",
            "default": 2,
            "metadata": b"\xff",
        },
        '{"title":"x","year":1,"poster":"/w==","default":2,"metadata":"/w=="}',
    ),
    ("an alias of a TypedDict", Renamed, {"a": 1}, '{"b":1}'),
    ("a NamedTuple", Pair, Pair(1), '[1,"r"]'),
    ("a list for a NamedTuple", Pair, [1, "a"], '[1,"a"]'),
    ("a number that need not be one", dict[str, Any], {"a": math.nan}, '{"a":null}'),
    (
        "the word null beside numbers",
        Page[float | str],
        Page(items=["null"]),
        '{"items":["null"],"more":false}',
    ),
    (
        "null beside numbers",
        list[Page[float | None]],
        [Page(items=[None, 1.5])],
        '[{"items":[null,1.5],"more":false}]',
    ),
]


def table(rows: Iterable[Any]) -> list[Any]:
    return [pytest.param(*row, id=name) for name, *row in rows]


@pytest.mark.parametrize(("hint", "value", "encoded"), table(ENCODED))
def test_a_value_of_the_type_has_json_that_the_schema_describes(
    hint: Any, value: Any, encoded: str
) -> None:
    """Spec 2026-07-28, server/tools: Output Schema, a MUST."""
    output = Output(hint)
    assert output.encode(value).decode() == encoded
    Draft202012Validator.check_schema(output.schema)
    Draft202012Validator(output.schema).validate(from_json(encoded))


def changed(value: Any, **changes: Any) -> Any:
    """Change an instance to what its class does not declare."""
    for name, change in changes.items():
        setattr(value, name, change)
    return value


REFUSED: list[tuple[str, Any, Any, str]] = [
    # id, type, value, what the log says
    (
        "a text for an integer",
        int,
        "3",
        "the value: Input should be a valid integer, not str",
    ),
    (
        "a truth for an integer",
        int,
        True,
        "the value: Input should be a valid integer, not bool",
    ),
    (
        "a fraction for an integer",
        int,
        3.5,
        "the value: Input should be a valid integer, not float",
    ),
    (
        "a text for a number",
        float,
        "1.5",
        "the value: Input should be a valid number, not str",
    ),
    (
        "a truth for a number",
        float,
        True,
        "the value: Input should be a valid number, not bool",
    ),
    (
        "an integer for a truth",
        bool,
        1,
        "the value: Input should be a valid boolean, not int",
    ),
    (
        "a text for a truth",
        bool,
        "yes",
        "the value: Input should be a valid boolean, not str",
    ),
    (
        "an integer for a text",
        list[str],
        [1],
        "0: Input should be a valid string, not int",
    ),
    (
        "bytes for a text",
        list[str],
        [b"a"],
        "0: Input should be a valid string, not bytes",
    ),
    (
        "a text among integers",
        dict[str, list[int]],
        {"a": [1, "2"]},
        "a.1: Input should be a valid integer, not str",
    ),
    (
        "RES-01 NaN",
        float,
        math.nan,
        "the value: Input should be a finite number, not float",
    ),
    (
        "RES-01 an infinity",
        list[float],
        [1.0, math.inf],
        "1: Input should be a finite number, not float",
    ),
    (
        "RES-01 NaN in an instance",
        Point,
        Point(x=1, y=math.nan),
        "y: not a finite number",
    ),
    (
        "RES-01 NaN in a list of instances",
        list[Point],
        [Point(x=1, y=-math.inf)],
        "0.y: not a finite number",
    ),
    (
        "RES-01 NaN beside null",
        Page[float | None],
        Page(items=[None, math.nan]),
        "items.1: not a finite number",
    ),
    ("RES-04 the wrong keys", Point, {"wrong": 1}, "x: Field required, not dict"),
    (
        "RES-04 nothing",
        Point,
        None,
        "the value: Input should be a valid dictionary or instance of Point, not None",
    ),
    (
        "a bound that is passed",
        Annotated[int, Field(le=3)],
        4,
        "the value: Input should be less than or equal to 3, not int",
    ),
    ("an unknown member", Color, "blue", "the value: Input should be 'red', not str"),
    ("no JSON form", dict[str, Any], {"a": object()}, "a object has no JSON form"),
    ("very many faults", list[int], ["x"] * 100_000, "200000 faults"),
]


@pytest.mark.parametrize(("hint", "value", "told"), table(REFUSED))
def test_a_value_that_is_not_of_the_type_is_refused(
    hint: Any, value: Any, told: str
) -> None:
    """Ours: JSON's own types are as strict as those of arguments."""
    with pytest.raises(OutputError) as caught:
        Output(hint).encode(value)
    assert told in str(caught.value)


CHANGED: list[tuple[str, Any, Callable[[], Any]]] = [
    # id, type, an instance that is not as its class has it
    ("a text for an integer", Point, lambda: changed(Point(x=1), x="1")),
    ("a text for a number", Point, lambda: changed(Point(x=1), y="1")),
    (
        "inside of another",
        Everything,
        lambda: Everything(point=changed(Point(x=1), x="1")),
    ),
    ("something else for one", Everything, lambda: changed(Everything(), point=3)),
    ("in a list", list[Point], lambda: [changed(Point(x=1), x="1")]),
    ("in a dict", dict[str, Point], lambda: {"a": changed(Point(x=1), x="1")}),
    ("beside a default", Priced, lambda: changed(Priced(), price="1")),
    ("an optional one", Point | None, lambda: changed(Point(x=1), x="1")),
    ("in a recursive one", Tree, lambda: changed(Tree(value=1), children=[3])),
    ("a dataclass", Item, lambda: changed(Item(1), count="1")),
    ("a dataclass of pydantic", Part, lambda: changed(Part(1), count="1")),
    (
        "one that is made without validation",
        Point,
        lambda: Point.model_construct(x="1"),
    ),
]


@pytest.mark.parametrize(("hint", "make"), table(CHANGED))
def test_an_instance_that_was_changed_to_another_type_is_refused(
    hint: Any, make: Callable[[], Any]
) -> None:
    """Ours: pydantic asks an instance nothing, and warns when it encodes it."""
    with pytest.raises(OutputError, match="serialized value may not be as expected"):
        Output(hint).encode(make())


def test_an_instance_of_a_subclass_is_sent_as_the_class_is() -> None:
    class Place(Point):
        z: int = 3

    class Home(BaseModel):
        at: Point

    assert Output(Point).encode(Place(x=1)) == b'{"x":1,"y":0.0}'
    assert Output(Home).encode(Home(at=Place(x=1))) == b'{"at":{"x":1,"y":0.0}}'


def test_a_validator_that_turns_a_value_into_another_type_breaks_the_schema() -> None:
    """Ours: what is published is what is sent."""
    with pytest.raises(OutputError, match="Expected `int`"):
        Output(Annotated[int, AfterValidator(str)]).encode(3)


SCHEMAS: list[tuple[str, Any, dict[str, Any]]] = [
    # id, type, schema
    ("an integer", int, {"type": "integer"}),
    ("a number", float, {"type": "number"}),
    ("bytes", bytes, {"type": "string", "contentEncoding": "base64"}),
    ("an iterator", Iterable[int], {"type": "array", "items": {"type": "integer"}}),
    (
        "bytes of a model",
        Blob,
        {
            "type": "object",
            "description": "Bytes that the model has its own form for.",
            "properties": {"data": {"type": "string", "format": "binary"}},
            "required": ["data"],
        },
    ),
    (
        "a TypedDict",
        Renamed,
        {
            "type": "object",
            "description": "Something whose key is another on the wire, and anything.",
            "properties": {"b": {}},
            "required": ["b"],
        },
    ),
]


@pytest.mark.parametrize(("hint", "schema"), table(SCHEMAS))
def test_a_schema_says_what_is_sent(hint: Any, schema: dict[str, Any]) -> None:
    """Spec 2026-07-28, server/tools: Output Schema."""
    assert Output(hint).schema == schema


PROPERTIES = [
    # id, model, property, schema
    (
        "a computed field",
        Everything,
        "twice",
        {"type": "integer", "readOnly": True, "description": "Twice the number."},
    ),
    ("an alias", Named, "firstName", {"type": "string"}),
    ("a serializer of its own", Odd, "n", {"type": "string"}),
    (
        "a generic model",
        Page[int],
        "items",
        {"type": "array", "items": {"type": "integer"}},
    ),
    (
        "what a class calls its members",
        Everything,
        "e",
        {"$ref": "#/$defs/Color", "default": "red"},
    ),
]


@pytest.mark.parametrize(("hint", "name", "schema"), table(PROPERTIES))
def test_a_schema_says_what_is_sent_of_a_model(
    hint: Any, name: str, schema: dict[str, Any]
) -> None:
    """Spec 2026-07-28, server/tools: Output Schema."""
    assert Output(hint).schema["properties"][name] == schema


def test_a_title_is_what_the_developer_gave() -> None:
    class Titled(BaseModel):
        model_config = ConfigDict(title="A title")
        a: int = Field(title="Of a field")

    assert Output(Titled).schema == {
        "type": "object",
        "title": "A title",
        "properties": {"a": {"type": "integer", "title": "Of a field"}},
        "required": ["a"],
    }


def test_what_pydantic_was_told_of_strictness_holds() -> None:
    loose = Annotated[int, Field(strict=False)]
    assert Output(list[loose]).encode(["3"]) == b"[3]"


def test_the_examples_hold() -> None:
    result = doctest.testmod(module)
    assert (result.failed, result.attempted > 0) == (0, True)
