"""Forms: what is published of them, what can't be one, and how answers are read."""

import doctest
import enum
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import (
    Annotated,
    Any,
    ClassVar,
    Generic,
    Literal,
    NotRequired,
    TypeVar,
    assert_type,
)
from uuid import UUID

import pytest
from pydantic import BaseModel, ConfigDict, Field, SecretStr, field_validator
from typing_extensions import TypedDict

from mcpkit import SetupError, forms as module
from mcpkit.forms import Form, read_form
from mcpkit.protocol.versions import REVISIONS

T = TypeVar("T")


class Colour(enum.Enum):  # noqa: D101  # it must have none
    RED = "#F00"
    GREEN = "#0F0"


class Only(enum.Enum):  # noqa: D101  # it must have none
    ONE = "one"


class Size(enum.IntEnum):  # noqa: D101  # it must have none
    SMALL = 1
    LARGE = 2


Titled = (
    Annotated[Literal["#F00"], Field(title="Red")]
    | Annotated[Literal["#0F0"], Field(title="Green")]
)
TITLES = [{"const": "#F00", "title": "Red"}, {"const": "#0F0", "title": "Green"}]


class Confirm(BaseModel):
    """Whether it is to be done."""

    model_config = ConfigDict(title="Confirmation")

    ok: bool


@dataclass
class Contact:
    """Who it is."""

    name: str
    age: int = 30
    tags: list[Colour] = field(default_factory=list)


class Stay(TypedDict):
    """When it is."""

    arrival: date
    nights: NotRequired[int]


@dataclass
class Box(Generic[T]):
    """One field."""

    item: T


def form_of(hint: Any, default: Any = ...) -> Form[Any]:
    """A form with one field."""
    made = type("Made", (BaseModel,), {"__annotations__": {"it": hint}, "it": default})
    return read_form(made, "the form")


def published(hint: Any, default: Any = ...) -> Any:
    return form_of(hint, default).schema["properties"]["it"]


PROPERTIES: list[tuple[str, Any, dict[str, Any]]] = [
    # id, annotation, property
    ("a string", str, {"type": "string"}),
    (
        "a string with all that it can have",
        Annotated[
            str,
            Field(title="Name", description="In full", min_length=3, max_length=50),
        ],
        {
            "type": "string",
            "title": "Name",
            "description": "In full",
            "minLength": 3,
            "maxLength": 50,
        },
    ),
    (
        "a format by hand",
        Annotated[str, Field(json_schema_extra={"format": "email"})],
        {"type": "string", "format": "email"},
    ),
    ("a date", date, {"type": "string", "format": "date"}),
    ("a time on a date", datetime, {"type": "string", "format": "date-time"}),
    ("a format that forms lack", UUID, {"type": "string"}),
    ("a pattern", Annotated[str, Field(pattern="^a")], {"type": "string"}),
    ("an integer", int, {"type": "integer"}),
    (
        "a number in bounds",
        Annotated[float, Field(ge=0, le=1)],
        {"type": "number", "minimum": 0, "maximum": 1},
    ),
    ("a bound that forms lack", Annotated[int, Field(gt=0)], {"type": "integer"}),
    ("a boolean", bool, {"type": "boolean"}),
    ("a literal", Literal["a", "b"], {"type": "string", "enum": ["a", "b"]}),
    ("a literal of one", Literal["a"], {"type": "string", "enum": ["a"]}),
    ("a literal or none", Literal["a", None], {"type": "string", "enum": ["a"]}),
    ("an enum", Colour, {"type": "string", "enum": ["#F00", "#0F0"]}),
    ("an enum of one", Only, {"type": "string", "enum": ["one"]}),
    ("titled choices", Titled, {"type": "string", "oneOf": TITLES}),
    ("titled choices or none", Titled | None, {"type": "string", "oneOf": TITLES}),
    (
        "titled choices by hand",
        Annotated[Colour, Field(json_schema_extra={"oneOf": TITLES})],  # type: ignore[dict-item]
        {"type": "string", "oneOf": TITLES},
    ),
    (
        "several choices",
        Annotated[list[Colour], Field(min_length=1, max_length=2)],
        {
            "type": "array",
            "items": {"type": "string", "enum": ["#F00", "#0F0"]},
            "minItems": 1,
            "maxItems": 2,
        },
    ),
    (
        "a set of one choice",
        set[Literal["a"]],
        {"type": "array", "items": {"type": "string", "enum": ["a"]}},
    ),
    (
        "several titled choices",
        list[Titled],
        {"type": "array", "items": {"anyOf": TITLES}},
    ),
    ("a string or none", str | None, {"type": "string"}),
    ("an enum or none", Colour | None, {"type": "string", "enum": ["#F00", "#0F0"]}),
]


@pytest.mark.parametrize(
    ("hint", "expected"), [pytest.param(*row, id=name) for name, *row in PROPERTIES]
)
def test_a_field_is_published_in_the_restricted_subset(
    hint: Any, expected: dict[str, Any]
) -> None:
    """Spec 2026-07-28, client/elicitation: Requested Schema."""
    assert published(hint) == expected


DEFAULTS: list[tuple[str, Any, Any, dict[str, Any]]] = [
    # id, annotation, default, property
    ("a string", str, "a", {"type": "string", "default": "a"}),
    ("a number", float, 1.5, {"type": "number", "default": 1.5}),
    ("a boolean", bool, False, {"type": "boolean", "default": False}),
    (
        "a choice",
        Colour,
        Colour.RED,
        {"type": "string", "enum": ["#F00", "#0F0"], "default": "#F00"},
    ),
    (
        "choices",
        list[Literal["a"]],
        ["a"],
        {
            "type": "array",
            "items": {"type": "string", "enum": ["a"]},
            "default": ["a"],
        },
    ),
    ("none", str | None, None, {"type": "string"}),
    ("none, where no null may be sent", str, None, {"type": "string"}),
    ("one that breaks the constraints", Annotated[int, Field(ge=1)], 0, {}),
    ("an infinity", float, float("inf"), {"type": "number"}),
]


@pytest.mark.parametrize(
    ("hint", "default", "expected"),
    [pytest.param(*row, id=name) for name, *row in DEFAULTS],
)
def test_a_default_is_published_where_it_can_be_sent_back(
    hint: Any, default: Any, expected: dict[str, Any]
) -> None:
    """Spec 2026-07-28, client/elicitation: Requested Schema."""
    form = form_of(hint, default)
    assert "required" not in form.schema
    expected = expected or {"type": "integer", "minimum": 1}
    assert form.schema["properties"]["it"] == expected
    assert form.read({}).it == default


ROOTS: list[tuple[str, Any, dict[str, Any]]] = [
    # id, form, requestedSchema
    (
        "a model, without what only describes the class",
        Confirm,
        {
            "type": "object",
            "properties": {"ok": {"type": "boolean"}},
            "required": ["ok"],
        },
    ),
    (
        "a dataclass",
        Contact,
        {
            "type": "object",
            "properties": {
                "name": {"type": "string"},
                "age": {"type": "integer", "default": 30},
                "tags": {
                    "type": "array",
                    "items": {"type": "string", "enum": ["#F00", "#0F0"]},
                },
            },
            "required": ["name"],
        },
    ),
    (
        "a TypedDict",
        Stay,
        {
            "type": "object",
            "properties": {
                "arrival": {"type": "string", "format": "date"},
                "nights": {"type": "integer"},
            },
            "required": ["arrival"],
        },
    ),
    (
        "a generic dataclass",
        Box[bool],
        {
            "type": "object",
            "properties": {"item": {"type": "boolean"}},
            "required": ["item"],
        },
    ),
    ("nothing but a button", type("Empty", (BaseModel,), {}), {}),
]


@pytest.mark.parametrize(
    ("schema", "expected"), [pytest.param(*row, id=name) for name, *row in ROOTS]
)
def test_a_type_is_published_as_a_flat_object(
    schema: Any, expected: dict[str, Any]
) -> None:
    """Spec 2026-07-28, client/elicitation: Requested Schema."""
    assert read_form(schema, "the form").schema == (
        expected or {"type": "object", "properties": {}}
    )


def test_a_form_is_worked_out_once() -> None:
    assert read_form(Confirm, "the form") is read_form(Confirm, "the form")


class Node(BaseModel):
    """A form in a form."""

    next: "Node | None" = None


@dataclass
class Lost:
    """A name that is nowhere."""

    it: "Nowhere"  # type: ignore[name-defined]  # noqa: F821  # the point


class Unreadable:
    """No JSON can become this."""


@dataclass
class Unread:
    """Fields that no JSON can become."""

    kind: ClassVar[Unreadable]
    good: int
    bad: Unreadable
    worse: Annotated[str, Field(pattern="(")]


class Loose(BaseModel):
    """A model that takes anything."""

    model_config = ConfigDict(arbitrary_types_allowed=True)

    good: int = 1
    bad: Unreadable


class Partial(TypedDict):
    """A field that may be missing, and one that can't be."""

    good: NotRequired[int]
    bad: Unreadable


MISTAKES: list[tuple[str, Any, str]] = [
    # id, form, fault
    ("a nested object", Box[Confirm], "no form can ask for 'item' of"),
    ("itself", Node, "no form can ask for 'next' of Node"),
    ("a list of strings", Box[list[str]], "lists of the last two"),
    ("a list of anything", Box[list[Any]], "no form can ask for 'item'"),
    ("a tuple", Box[tuple[str, int]], "no form can ask for 'item'"),
    ("an enum of integers", Box[Size], "a Literal or an Enum of strings"),
    ("a list of those", Box[list[Size]], "no form can ask for 'item'"),
    ("a literal of true", Box[Literal[True]], "no form can ask for 'item'"),
    ("a dict", Box[dict[str, int]], "no form can ask for 'item'"),
    ("anything", Box[Any], "no form can ask for 'item'"),
    ("bytes", Box[bytes], "no form can ask for 'item'"),
    ("a union", Box[int | str], "no form can ask for 'item'"),
    ("a union or none", Box[int | str | None], "no form can ask for 'item'"),
    ("a decimal", Box[Decimal], "a form takes str, int, float, bool"),
    ("a secret", Box[SecretStr], "send the user to a url"),
    ("fields without a schema", Unread, "ask for 'bad' and 'worse' of Unread"),
    ("a model's field", Loose, "no form can ask for 'bad' of Loose; a form takes"),
    ("a TypedDict's", Partial, "no form can ask for 'bad' of Partial; a form takes"),
    ("a generic of such a class", Box[Unreadable], "is no form"),
    ("an unknown name", Lost, "the annotation 'Nowhere' of Lost can't be resolved"),
    ("a string", str, "str is no form; take a pydantic model"),
    ("a list", list[Confirm], "is no form"),
    ("an enum itself", Colour, "Colour is no form"),
    ("a class without a schema", Unreadable, "Unreadable is no form"),
    ("a dict of anything", dict[str, int], "is no form"),
    ("an instance", Confirm(ok=True), "is no form"),
    ("a name", "Confirm", "'Confirm' is no form"),
]


@pytest.mark.parametrize(
    ("schema", "fault"), [pytest.param(*row, id=name) for name, *row in MISTAKES]
)
def test_what_no_form_can_ask_for_is_a_setup_error(schema: Any, fault: str) -> None:
    """Spec 2026-07-28, client/elicitation: Requested Schema."""
    with pytest.raises(SetupError) as caught:
        read_form(schema, "the form")
    assert str(caught.value).startswith("the form: ")
    assert fault in str(caught.value)


GIVEN: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "title": "A visit",
    "properties": {
        "name": {"type": "string", "minLength": 2, "maxLength": 9},
        "mail": {"type": "string", "format": "email"},
        "age": {"type": "number", "minimum": 18, "maximum": 99},
        "nights": {"type": "integer", "default": 2},
        "quiet": {"type": "boolean", "default": True},
        "bed": {"type": "string", "enum": ["a", "b"], "enumNames": ["A", "B"]},
        "view": {"type": "string", "oneOf": TITLES, "default": "#F00"},
        "meals": {
            "type": "array",
            "items": {"type": "string", "enum": ["x", "y"]},
            "minItems": 1,
            "maxItems": 2,
            "default": ["x"],
        },
        "walls": {"type": "array", "items": {"anyOf": TITLES}},
    },
    "required": ["name"],
    "additionalProperties": False,
}


def test_a_json_schema_is_published_as_it_is() -> None:
    """Spec 2026-07-28, client/elicitation: Requested Schema."""
    assert read_form(GIVEN, "the form").schema == GIVEN


def test_a_json_schema_is_read_as_a_dict_with_its_defaults() -> None:
    """Spec 2026-07-28, client/elicitation: Requested Schema."""
    form = read_form(GIVEN, "the form")
    filled = {
        "name": "Ada",
        "age": 30,
        "bed": "b",
        "view": "#0F0",
        "meals": ["y"],
        "walls": ["#F00"],
    }
    rest = {"nights": 2, "quiet": True}
    assert form.read({**filled, "unasked": 1}) == {**filled, **rest}
    assert form.read({"name": "Ada"}) == {
        "name": "Ada",
        "view": "#F00",
        "meals": ["x"],
        **rest,
    }


def test_answers_do_not_share_a_default() -> None:
    form = read_form(GIVEN, "the form")
    form.read({"name": "Ada"})["meals"].append("y")
    assert form.read({"name": "Ada"})["meals"] == ["x"]


def test_a_number_of_a_json_schema_is_as_it_was_sent() -> None:
    read = read_form(GIVEN, "the form").read
    ages = [read({"name": "Ada", "age": age})["age"] for age in (30, 30.5)]
    assert [(age, type(age)) for age in ages] == [(30, int), (30.5, float)]


def given(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


BAD_SCHEMAS: list[tuple[str, Any, str]] = [
    # id, schema, fault
    ("no object", {"type": "string"}, 'has "type": "object" and "properties"'),
    ("no properties", {"type": "object"}, 'has "type": "object" and "properties"'),
    ("a keyword of other schemas", {**given(), "$defs": {}}, "the form has $defs"),
    ("an unknown name", {**given(), "required": ["a"]}, '"required" is a list'),
    ("required by a string", {**given(), "required": "a"}, '"required" is a list'),
    ("no JSON", given(a={"type": "string", "title": object()}), "no JSON"),
    ("a title that is none", {**given(), "title": 1}, "the form has no title"),
    ("no property", given(a="string"), "the property 'a' is no string, number"),
    ("no type", given(a={}), "the property 'a' is no string, number"),
    ("a kind of ours", given(a={"type": "one choice"}), "'a' is no string"),
    ("two types", given(a={"type": ["string", "null"]}), "'a' is no string"),
    ("an object", given(a={"type": "object"}), "'a' is no string"),
    ("an array", given(a={"type": "array"}), "'a' is no string"),
    (
        "an array of strings",
        given(a={"type": "array", "items": {"type": "string"}}),
        "'a' is no string",
    ),
    ("integers to choose", given(a={"type": "integer", "enum": [1]}), "is no string"),
    ("nothing to choose", given(a={"type": "string", "enum": []}), "is no string"),
    ("a choice without a type", given(a={"enum": ["a"]}), 'needs "type": "string"'),
    (
        "titles without choices",
        given(a={"type": "string", "oneOf": [{"title": "A"}]}),
        "'a' is no string",
    ),
    ("a password", given(a={"type": "string", "format": "password"}), "is no string"),
    (
        "another format",
        given(a={"type": "string", "format": "ipv4"}),
        "has no format that clients can read",
    ),
    (
        "a pattern",
        given(a={"type": "string", "pattern": "a"}),
        "the property 'a' has pattern, which forms don't have; they have default, ",
    ),
    (
        "a length that is none",
        given(a={"type": "string", "minLength": -1}),
        "has no minLength that clients can read",
    ),
    (
        "a bound that is none",
        given(a={"type": "number", "maximum": True}),
        "has no maximum that clients can read",
    ),
    (
        "keywords of items",
        given(a={"type": "array", "items": {"enum": ["a"], "minLength": 1}}),
        "has minLength, which forms don't have",
    ),
    (
        "a default of another type",
        given(a={"type": "string", "default": 1}),
        "the default of 'a' does not fit it",
    ),
    (
        "a default that is too much",
        given(a={"type": "number", "maximum": 1, "default": 2}),
        "the default of 'a' does not fit it",
    ),
]


@pytest.mark.parametrize(
    ("schema", "fault"), [pytest.param(*row, id=name) for name, *row in BAD_SCHEMAS]
)
def test_a_json_schema_of_anything_else_is_a_setup_error(
    schema: Any, fault: str
) -> None:
    """Spec 2026-07-28, client/elicitation: Requested Schema."""
    with pytest.raises(SetupError) as caught:
        read_form(schema, "the form")
    assert str(caught.value).startswith("the form")
    assert fault in str(caught.value)


def test_an_older_revision_has_the_form_without_what_it_lacks() -> None:
    """Spec 2025-06-18, client/elicitation: Requested Schema."""
    assert read_form(GIVEN, "the form").wire(REVISIONS["2025-06-18"]) == {
        "type": "object",
        "title": "A visit",
        "properties": {
            "name": {"type": "string", "minLength": 2, "maxLength": 9},
            "mail": {"type": "string", "format": "email"},
            "age": {"type": "number", "minimum": 18, "maximum": 99},
            "nights": {"type": "integer"},
            "quiet": {"type": "boolean", "default": True},
            "bed": {"type": "string", "enum": ["a", "b"], "enumNames": ["A", "B"]},
            "view": {
                "type": "string",
                "enum": ["#F00", "#0F0"],
                "enumNames": ["Red", "Green"],
            },
        },
        "required": ["name"],
        "additionalProperties": False,
    }


@pytest.mark.parametrize("version", ["2026-07-28", "2025-11-25"])
def test_a_newer_revision_has_the_whole_form(version: str) -> None:
    """Spec 2025-11-25, client/elicitation: Requested Schema."""
    form = read_form(GIVEN, "the form")
    wired = form.wire(REVISIONS[version])
    assert wired == GIVEN
    wired["properties"].clear()
    assert form.schema == GIVEN


def test_choices_that_are_required_can_not_be_asked_for_in_an_older_revision() -> None:
    """Spec 2025-06-18, client/elicitation: Requested Schema."""
    form = form_of(list[Colour])
    with pytest.raises(ValueError, match=r"2025-06-18 has no form for .* as 'it' tak"):
        form.wire(REVISIONS["2025-06-18"])


def test_an_answer_is_an_instance_of_the_type_of_the_form() -> None:
    """Spec 2026-07-28, client/elicitation: Response Actions."""
    contact = read_form(Contact, "the form")
    assert_type(contact, Form[Contact])
    assert contact.read({"name": "Ada", "tags": ["#F00"]}) == Contact(
        "Ada", 30, [Colour.RED]
    )
    stay = read_form(Stay, "the form")
    assert_type(stay.read({"arrival": "2026-07-28"}), Stay)
    assert stay.read({"arrival": "2026-07-28"}) == {"arrival": date(2026, 7, 28)}
    raw = read_form(GIVEN, "the form")
    assert_type(raw, Form[dict[str, Any]])
    assert read_form(Confirm, "the form").read({"ok": True}) == Confirm(ok=True)


READ: list[tuple[str, Any, Any, Any]] = [
    # id, annotation, sent, read
    ("an integer with a point", int, 3.0, 3),
    ("an integer for a number", float, 3, 3.0),
    ("a date", date, "2026-07-28", date(2026, 7, 28)),
    (
        "a time",
        datetime,
        "2026-07-28T10:00:00Z",
        datetime(2026, 7, 28, 10, tzinfo=UTC),
    ),
    ("a member", Colour, "#F00", Colour.RED),
    ("members of a set", set[Colour], ["#F00", "#F00"], {Colour.RED}),
    ("null for none", str | None, None, None),
    ("a text that looks like a number", str, "Infinity", "Infinity"),
]


@pytest.mark.parametrize(
    ("hint", "sent", "read"), [pytest.param(*row, id=name) for name, *row in READ]
)
def test_an_answer_is_read_strictly_as_json(hint: Any, sent: Any, read: Any) -> None:
    """Ours: as the arguments of tools are."""
    value = form_of(hint).read({"it": sent}).it
    assert (value, type(value)) == (read, type(read))


class Picky(BaseModel):
    """A validator that quotes what it is given."""

    model_config = ConfigDict(extra="forbid")

    it: str = ""

    @field_validator("it")
    @classmethod
    def check_it(cls, it: str) -> str:
        """Refuse all."""
        raise ValueError(f"{it} is taken")


FAULTS: list[tuple[str, Any, Any, list[str]]] = [
    # id, form, content, lines
    (
        "a string for an integer",
        Contact,
        {"name": "A", "age": "3"},
        ["age: expected integer, got string"],
    ),
    (
        "a part of an integer",
        Contact,
        {"name": "A", "age": 3.5},
        ["age: expected integer, got number"],
    ),
    (
        "a string for a boolean",
        Confirm,
        {"ok": "true"},
        ["ok: expected boolean, got string"],
    ),
    (
        "a number for a boolean",
        Confirm,
        {"ok": 1},
        ["ok: expected boolean, got integer"],
    ),
    ("null", Confirm, {"ok": None}, ["ok: expected boolean, got null"]),
    ("nothing", Confirm, {}, ["ok: missing"]),
    ("no object", Confirm, ["ok"], ["content: expected object, got array"]),
    ("null for an object", Confirm, None, ["content: expected object, got null"]),
    (
        "no choice",
        Box[Literal["a", "b"]],
        {"item": "hush"},
        ["item: input should be 'a' or 'b'"],
    ),
    (
        "one of the choices",
        Contact,
        {"name": "A", "tags": ["#F00", "hush"]},
        ["tags.1: input should be '#F00' or '#0F0'"],
    ),
    (
        "no date",
        Stay,
        {"arrival": "hush"},
        ["arrival: input should be a valid date in the format YYYY-MM-DD"],
    ),
    (
        "an infinity",
        Box[float],
        {"item": float("inf")},
        ["item: expected finite number, got number"],
    ),
    ("a validator that quotes", Picky, {"it": "hush"}, ["it: input is not valid"]),
    ("what is not asked", Picky, {"hush": 1}, ["hush: unknown argument"]),
    (
        "several",
        Contact,
        {"age": True},
        ["name: missing", "age: expected integer, got boolean"],
    ),
    (
        "a JSON Schema",
        GIVEN,
        {"name": "A", "age": "30", "meals": []},
        [
            "name: string should have at least 2 characters",
            "age: expected number, got string",
            "meals: array should have at least 1 item",
        ],
    ),
    (
        "a boolean for a number",
        GIVEN,
        {"name": "Ada", "age": True},
        ["age: expected number, got boolean"],
    ),
]


@pytest.mark.parametrize(
    ("schema", "content", "lines"),
    [pytest.param(*row, id=name) for name, *row in FAULTS],
)
def test_faults_are_a_line_each_without_the_values(
    schema: Any, content: Any, lines: list[str]
) -> None:
    """Ours: as the faults of arguments are told."""
    with pytest.raises(ValueError, match=":") as caught:
        read_form(schema, "the form").read(content)
    assert str(caught.value).split("\n") == lines


def test_of_a_large_answer_one_fault_is_told() -> None:
    """Ours: each fault costs some hundred bytes."""
    tags = ["#F00"] * 20_000 + [1, 2]
    with pytest.raises(ValueError, match=r"\Atags\.20000: [^\n]*\Z"):
        read_form(Contact, "the form").read({"name": "A", "tags": tags})


def test_the_examples_hold() -> None:
    result = doctest.testmod(module)
    assert (result.failed, result.attempted > 0) == (0, True)
