"""Tools that bring their own JSON Schemas."""

import doctest
import functools
import socket
import sys
import time
from collections.abc import Callable
from typing import Annotated, Any

import pytest
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]  # no stubs
from pydantic import BaseModel, Field

import mcpkit.given
import mcpkit.keywords
import mcpkit.validation
from mcpkit import App, Context, Image, Result, SetupError
from mcpkit.validation import MAX_DEPTH, MAX_OBJECTS, GivenSchema
from tests.calls import EVERY, LEGACY, call, call_tool, failed, structured, text
from tests.http.client import MODERN, call as post_call

DRAFT_7 = "http://json-schema.org/draft-07/schema#"
DRAFT_4 = "http://json-schema.org/draft-04/schema#"
DRAFT_3 = "http://json-schema.org/draft-03/schema#"
DRAFT_2019 = "https://json-schema.org/draft/2019-09/schema"
DRAFT_2020 = "https://json-schema.org/draft/2020-12/schema"

ORDER = {
    "$schema": DRAFT_2020,
    "type": "object",
    "properties": {
        "isbn": {"type": "string", "pattern": "^[0-9]+$"},
        "count": {"type": "integer", "minimum": 1, "maximum": 9},
        "address": {"$ref": "#/$defs/address"},
    },
    "required": ["isbn"],
    "additionalProperties": False,
    "$defs": {
        "address": {
            "$anchor": "address",
            "type": "object",
            "properties": {"street": {"type": "string"}},
            "required": ["street"],
        }
    },
}


def test_the_examples_in_the_docstrings_run() -> None:
    for module in (mcpkit.validation, mcpkit.keywords, mcpkit.given):
        assert doctest.testmod(module).failed == 0


FAULTS: list[tuple[str, Any, Any, list[str]]] = [
    # id, schema, value, what the model reads
    ("a match", ORDER, {"isbn": "1", "address": {"street": "x"}}, []),
    ("a missing member", ORDER, {}, ["isbn: missing"]),
    (
        "several faults",
        ORDER,
        {"isbn": 5, "count": 10, "address": {}, "colour": 1},
        [
            "isbn: expected string, got integer",
            "count: input should be less than or equal to 9",
            "address.street: missing",
            "colour: unknown argument",
        ],
    ),
    ("two missing", {"required": ["a", "b"]}, {}, ["a: missing", "b: missing"]),
    ("a type", {"type": "object"}, [], ["arguments: expected object, got array"]),
    (
        "types",
        {"items": {"type": ["integer", "null"]}},
        [1, None, "x"],
        ["2: expected integer or null, got string"],
    ),
    ("an integral float", {"type": "integer"}, 3.0, []),
    (
        "a truth for a number",
        {"type": "number"},
        True,
        ["arguments: expected number, got boolean"],
    ),
    (
        "a format is not enforced",
        {"format": "email", "type": "string"},
        "x",
        [],
    ),
    (
        "an enum",
        {"enum": ["a", 1, None, {"b": [1]}]},
        "c",
        ["arguments: input should be 'a', 1, null or {\"b\":[1]}"],
    ),
    (
        "a long enum",
        {"enum": list(range(30))},
        "c",
        ["arguments: input should be one of the values that the schema lists"],
    ),
    ("a constant", {"const": "a\n"}, "c", ["arguments: input should be 'a\\n'"]),
    (
        "a long constant",
        {"const": "a" * 200},
        "c",
        [f"arguments: input should be '{'a' * 99}…"],
    ),
    (
        "an exclusive minimum",
        {"exclusiveMinimum": 1},
        1,
        ["arguments: input should be greater than 1"],
    ),
    (
        "an exclusive minimum of draft 4",
        {"$schema": DRAFT_4, "minimum": 1, "exclusiveMinimum": True},
        1,
        ["arguments: input should be greater than 1"],
    ),
    (
        "an exclusive maximum",
        {"exclusiveMaximum": 1},
        1,
        ["arguments: input should be less than 1"],
    ),
    (
        "a multiple",
        {"multipleOf": 5},
        3,
        ["arguments: input should be a multiple of 5"],
    ),
    (
        "a short text",
        {"minLength": 1},
        "",
        ["arguments: string should have at least 1 character"],
    ),
    (
        "a long text",
        {"maxLength": 2},
        "abc",
        ["arguments: string should have at most 2 characters"],
    ),
    (
        "a pattern",
        {"pattern": "^[a-z]$"},
        "hunter2",
        ["arguments: string should match pattern '^[a-z]$'"],
    ),
    (
        "a line break is no end",
        {"pattern": "^a$"},
        "a\n",
        ["arguments: string should match pattern '^a$'"],
    ),
    ("a pattern that Python lacks", {"pattern": r"^\p{Lu}"}, "É", []),
    ("a pattern that looks ahead", {"pattern": r"^(?=.*\d)"}, "a1", []),
    ("a pattern is for texts", {"pattern": "^a$"}, 1, []),
    (
        "few items",
        {"minItems": 1},
        [],
        ["arguments: array should have at least 1 item"],
    ),
    (
        "an item twice",
        {"uniqueItems": True},
        [{"a": 1}, {"a": 1.0}],
        ["arguments: array should not hold an item twice"],
    ),
    ("items that differ", {"uniqueItems": True}, [1, True, "1", [1], {"a": 1}], []),
    ("items that need not differ", {"uniqueItems": False}, [1, 1], []),
    (
        "more than the first items",
        {"prefixItems": [{"type": "integer"}], "items": False},
        [1, 2],
        ["arguments: array has more items than are allowed"],
    ),
    (
        "RES-12 items of draft 7",
        {"$schema": DRAFT_7, "items": [{"type": "integer"}, {"type": "string"}]},
        ["a", "a", None],
        ["0: expected integer, got string"],
    ),
    (
        "RES-12 no items beyond those of draft 7",
        {"$schema": DRAFT_7, "items": [{}], "additionalItems": False},
        [1, 2],
        ["arguments: array has more items than are allowed"],
    ),
    (
        "a recursive reference of draft 2019-09",
        {
            "$schema": DRAFT_2019,
            "$recursiveAnchor": True,
            "properties": {"v": {"type": "integer"}, "next": {"$recursiveRef": "#"}},
        },
        {"next": {"v": "x"}},
        ["next.v: expected integer, got string"],
    ),
    (
        "a dynamic reference",
        {
            "$dynamicAnchor": "node",
            "properties": {"v": {"type": "integer"}, "next": {"$dynamicRef": "#node"}},
        },
        {"next": {"v": "x"}},
        ["next.v: expected integer, got string"],
    ),
    (
        "a reference by an id",
        {
            "$id": "https://example.com/s",
            "$defs": {"a": {"$id": "a", "type": "integer"}},
            "properties": {"x": {"$ref": "a"}, "y": {"$ref": "https://example.com/a"}},
        },
        {"x": "q", "y": "q"},
        ["x: expected integer, got string", "y: expected integer, got string"],
    ),
    (
        "a reference to where no schema is expected",
        {"$ref": "#/components/a", "components": {"a": {"type": "integer"}}},
        "x",
        ["arguments: expected integer, got string"],
    ),
    (
        "items that are to be contained",
        {"contains": {"type": "integer"}},
        ["x"],
        ["arguments: array does not contain the items that it should"],
    ),
    (
        "many members",
        {"maxProperties": 1},
        {"a": 1, "b": 2},
        ["arguments: object should have at most 1 member"],
    ),
    (
        "the name of a member",
        {"properties": {"a": {"propertyNames": {"pattern": "^b"}}}},
        {"a": {"c": 1}},
        ["a.c.[key]: string should match pattern '^b'"],
    ),
    (
        "a member by a pattern",
        {
            "patternProperties": {"^n_": {"type": "integer"}},
            "additionalProperties": False,
        },
        {"n_a": "x", "m": 1},
        ["n_a: expected integer, got string", "m: unknown argument"],
    ),
    (
        "other members",
        {"properties": {"a": {}}, "additionalProperties": {"type": "integer"}},
        {"a": "x", "b": "x"},
        ["b: expected integer, got string"],
    ),
    (
        "a member that is not to be there",
        {"properties": {"a": False}, "patternProperties": {"^b": False, "^c": True}},
        {"a": 1, "b": 2, "c": 3},
        ["a: is not allowed here", "b: is not allowed here"],
    ),
    (
        "needs of an array",
        {"required": ["a"], "dependentRequired": {"a": ["b"]}},
        ["a"],
        [],
    ),
    ("members of an array", {"properties": {"a": False}}, ["a"], []),
    ("patterns of an array", {"patternProperties": {"a": False}}, ["a"], []),
    ("no members of an array", {"additionalProperties": False}, ["a"], []),
    (
        "nothing at all",
        {"not": {}},
        1,
        ["arguments: is of a form that is not allowed"],
    ),
    (
        "false",
        {"allOf": [False]},
        1,
        ["arguments: is not allowed here"],
    ),
    (
        "members that no part knows",
        {"allOf": [{"properties": {"a": True}}], "unevaluatedProperties": False},
        {"a": 1, "b": 1},
        ["arguments: object has members that are not allowed"],
    ),
    (
        "a member that another needs",
        {"dependentRequired": {"a": ["b", "c"], "d": ["e"]}},
        {"a": 1, "c": 2},
        ["b: missing"],
    ),
    (
        "the same in draft 7",
        {"$schema": DRAFT_7, "dependencies": {"a": ["b"], "c": {"required": ["d"]}}},
        {"a": 1, "c": 2},
        ["b: missing", "d: missing"],
    ),
    (
        "if",
        {"if": {"required": ["a"]}, "then": {"required": ["b"]}},
        {"a": 1},
        ["b: missing"],
    ),
    (
        "no type of a union",
        {"anyOf": [{"type": "integer"}, {"type": ["array", "null"]}]},
        "x",
        ["arguments: expected integer, array or null, got string"],
    ),
    (
        "the member of a union that has the type",
        {
            "properties": {
                "a": {
                    "anyOf": [
                        {"type": "null"},
                        {"type": "object", "properties": {"b": {"type": "integer"}}},
                    ]
                }
            }
        },
        {"a": {"b": "x"}},
        ["a.b: expected integer, got string"],
    ),
    (
        "two members of a union",
        {"anyOf": [{"required": ["phone"]}, {"required": ["email", "name"]}]},
        {},
        ["arguments: phone: missing; or email: missing, name: missing"],
    ),
    (
        "many members of a union",
        {"oneOf": [{"required": [name]} for name in "abcde"]},
        {},
        ["arguments: matches none of the forms that are allowed"],
    ),
    (
        "members of a union with much to say",
        {"oneOf": [{"required": [name * 300]} for name in "abcd"]},
        {},
        ["arguments: matches none of the forms that are allowed"],
    ),
    (
        "more than one of a union",
        {"oneOf": [{"type": "integer"}, {"minimum": 1}]},
        2,
        ["arguments: matches more than one of the forms, of which it may match one"],
    ),
    (
        "a name of several lines",
        {"additionalProperties": False},
        {"a\nb: missing": 1},
        ["a\\nb: missing: unknown argument"],
    ),
    (
        "a property called $schema",
        {"properties": {"$schema": {"type": "string"}}},
        {"$schema": 1},
        ["$schema: expected string, got integer"],
    ),
    (
        "data that looks like a dialect",
        {"const": {"$schema": "x"}},
        {"$schema": "x"},
        [],
    ),
    (
        "a dialect that is named twice",
        {"$schema": DRAFT_7, "properties": {"a": {"$schema": DRAFT_7.rstrip("#")}}},
        {},
        [],
    ),
    (
        "many faults",
        {"items": {"type": "integer"}},
        ["x"] * 21,
        ["more than 20 values do not match the schema"],
    ),
    (
        "a number that is too large",
        {"multipleOf": 0.1},
        10**400,
        ["arguments: a number is too large to be checked"],
    ),
]


@pytest.mark.parametrize(
    ("schema", "value", "lines"), [pytest.param(*row, id=name) for name, *row in FAULTS]
)
def test_a_value_is_held_against_a_given_schema(
    schema: dict[str, Any], value: Any, lines: list[str]
) -> None:
    """Spec 2026-07-28, basic: JSON Schema Usage. The words are ours."""
    assert GivenSchema(schema, "schema", "arguments").faults(value) == lines


def deep(levels: int) -> dict[str, Any]:
    schema: dict[str, Any] = {}
    for _ in range(levels):
        schema = {"not": schema}
    return schema


def chain(length: int) -> dict[str, Any]:
    links = {f"a{index}": {"$ref": f"#/$defs/a{index + 1}"} for index in range(length)}
    return {"$ref": "#/$defs/a0", "$defs": {**links, f"a{length}": {}}}


OUTSIDE = (
    "which is not inside of it; nothing is fetched: copy what it refers to into $defs"
)
UNSUPPORTED = (
    "which is not supported; leave $schema out, or write "
    "'https://json-schema.org/draft/2020-12/schema'"
)

REFUSED: list[tuple[str, Any, str]] = [
    # id, schema, what is said
    ("no object", ["a"], "is a dict, not ['a']"),
    (
        "RES-12 too old a dialect",
        {"$schema": DRAFT_3},
        f"has the dialect {DRAFT_3!r}, {UNSUPPORTED}",
    ),
    (
        "RES-12 an unknown dialect",
        {"$schema": "urn:x"},
        f"has the dialect 'urn:x', {UNSUPPORTED}",
    ),
    ("no dialect", {"$schema": ["a"]}, f"has the dialect ['a'], {UNSUPPORTED}"),
    (
        "two dialects",
        {"properties": {"a": {"$schema": DRAFT_7}}},
        f"has the dialect {DRAFT_2020!r}, and parts of another: {DRAFT_7!r}",
    ),
    (
        "no schema",
        {"properties": {"a": {"type": "strin"}}},
        "is no JSON Schema, at '#/properties/a/type': 'strin' is not valid under any "
        "of the given schemas",
    ),
    (
        "RES-12 no schema of its dialect",
        {"$schema": DRAFT_7, "minimum": "1"},
        "is no JSON Schema, at '#/minimum': '1' is not of type 'number'",
    ),
    (
        "RES-12 a reference to the network",
        {"$ref": "http://169.254.169.254/x"},
        f"refers to 'http://169.254.169.254/x', {OUTSIDE}",
    ),
    (
        "a reference to a file",
        {"items": {"$ref": "other.json"}},
        f"refers to 'other.json', {OUTSIDE}",
    ),
    (
        "a reference to a schema of schemas",
        {"$ref": DRAFT_2020},
        f"refers to {DRAFT_2020!r}, {OUTSIDE}",
    ),
    (
        "a reference to nowhere",
        {"$ref": "#/$defs/a"},
        f"refers to '#/$defs/a', {OUTSIDE}",
    ),
    ("a reference to no anchor", {"$dynamicRef": "#a"}, f"refers to '#a', {OUTSIDE}"),
    (
        "a reference that is none",
        {"$ref": "http://[x"},
        f"refers to 'http://[x', {OUTSIDE}",
    ),
    (
        "a reference in what another refers to",
        {"$ref": "#/x", "x": {"$ref": "https://example.com"}},
        f"refers to 'https://example.com', {OUTSIDE}",
    ),
    ("a reference to itself", {"$ref": "#"}, "refers to itself without end"),
    (
        "references to each other",
        {
            "items": {"$ref": "#/$defs/a"},
            "$defs": {
                "a": {"allOf": [{}, {"$ref": "#/$defs/b"}]},
                "b": {"if": {"$ref": "#/$defs/a"}},
            },
        },
        "refers to itself without end",
    ),
    ("a chain", chain(100), "chains more than 64 schemas about one value"),
    ("depth", deep(MAX_DEPTH), "nests deeper than 64 objects and arrays"),
    (
        "size",
        {"properties": {str(index): {} for index in range(MAX_OBJECTS)}},
        "has more than 2000 objects",
    ),
    (
        "a pattern that is none",
        {"properties": {"a": {"pattern": "["}}},
        "has the pattern '[', which is no regular expression: unterminated character "
        "set at position 0",
    ),
    (
        "a pattern of names that is none",
        {"patternProperties": {"*": {}}},
        "has the pattern '*', which is no regular expression: nothing to repeat at "
        "position 0",
    ),
    ("no JSON", {"const": {1, 2}}, "holds {1, 2}, which is no JSON"),
    (
        "a key that is no text",
        {"properties": {1: {}}},
        "holds {1: {}}, which is no JSON",
    ),
    ("no number", {"maximum": float("inf")}, "holds inf, which is no JSON"),
]


@pytest.mark.parametrize(
    ("schema", "message"), [pytest.param(*row, id=name) for name, *row in REFUSED]
)
@pytest.mark.parametrize("option", ["input_schema", "output_schema"])
def test_a_schema_that_cannot_be_enforced_is_refused(
    option: str, schema: Any, message: str
) -> None:
    """Spec 2026-07-28, basic: JSON Schema Usage."""

    def query(arguments: Any) -> Any:
        raise NotImplementedError

    options: Any = {option: schema}
    with pytest.raises(SetupError) as caught:
        App("tests").add_tool(query, **options)
    assert str(caught.value) == f"tool 'query': {option} {message}"


def test_a_schema_in_bounds_is_accepted() -> None:
    """Ours."""
    GivenSchema(deep(MAX_DEPTH - 1), "schema", "arguments")
    GivenSchema(chain(60), "schema", "arguments")


def test_nothing_is_fetched() -> None:
    """RES-12. Spec 2026-07-28, basic: `$ref` Resolution."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0)
        address = f"http://127.0.0.1:{server.getsockname()[1]}/schema.json"
        for schema in ({"$ref": address}, {"$id": address, "items": {"$ref": "b"}}):
            with pytest.raises(SetupError):
                GivenSchema(schema, "schema", "arguments")
        GivenSchema({"$id": address, "items": {"$ref": "#"}}, "schema", "a").faults(
            [[]]
        )
        with pytest.raises(BlockingIOError):
            server.accept()


def nested(levels: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(levels):
        value = [value]
    return value


def doubling(levels: int) -> dict[str, Any]:
    """Build a schema that looks at a value twice, and so twice again."""
    definitions: dict[str, Any] = {
        f"a{index}": {"anyOf": [{"$ref": f"#/$defs/a{index + 1}"}] * 2}
        for index in range(levels)
    }
    definitions[f"a{levels}"] = {"type": "integer"}
    return {"$ref": "#/$defs/a0", "$defs": definitions}


TOO_MUCH: list[tuple[str, Any, Any, list[str]]] = [
    # id, schema, value, what is said
    ("a schema that doubles", doubling(30), "x", ["value: too much to be checked"]),
    (
        "many items",
        {"items": {"type": "integer"}},
        [1] * 300_000,
        ["value: too much to be checked"],
    ),
    (
        "items to tell apart",
        {"uniqueItems": True},
        [{"a": index} for index in range(20_000)],
        [],
    ),
    (
        "a pattern that backtracks",
        {"pattern": "^(a+)+$"},
        "a" * 5000 + "b",
        ["value: string should match pattern '^(a+)+$'"],
    ),
    (
        "names and a pattern that backtracks",
        {"patternProperties": {"^(a+)+$": {}}, "additionalProperties": False},
        {"a" * 5000 + "b": 1},
        [f"{'a' * 100}: unknown argument"],
    ),
    (
        "depth",
        {"items": {"allOf": [{"allOf": [{"$ref": "#"}]}]}},
        nested(120),
        ["value: nested too deep to be checked"],
    ),
]


@pytest.mark.parametrize(
    ("schema", "value", "lines"),
    [pytest.param(*row, id=name) for name, *row in TOO_MUCH],
)
def test_a_validation_is_bounded(schema: Any, value: Any, lines: list[str]) -> None:
    """Spec 2026-07-28, basic: Composition-Keyword Resource Use."""
    given = GivenSchema(schema, "schema", "value")
    started = time.process_time()
    assert given.faults(value) == lines
    assert time.process_time() - started < 3


def test_without_the_library_the_extra_is_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Ours."""
    monkeypatch.setitem(sys.modules, "jsonschema", None)
    with pytest.raises(SetupError) as caught:
        App("tests").add_tool(take, input_schema=ORDER)
    assert str(caught.value) == (
        "tool 'take': input_schema needs the library jsonschema: "
        "pip install 'mcpkit[schema]'"
    )


def take(arguments: dict[str, Any]) -> Any:
    return arguments


async def take_async(arguments: dict[str, Any], ctx: Context) -> Any:
    return [ctx.method, arguments]


def take_by_position(arguments: Any, /) -> Any:
    return arguments


def take_by_keyword(*, given: Annotated[dict[str, Any], Field(description="x")]) -> Any:
    return given


def take_bound(prefix: str, arguments: dict[str, Any]) -> Any:
    return [prefix, arguments]


class Order(BaseModel):
    """An order."""

    isbn: str
    count: int = 1


def take_model(order: Order) -> Any:
    return order


class Taker:
    """Takes."""

    def take(self, arguments: dict[str, Any]) -> Any:
        """Take."""
        return arguments


HANDLERS: list[tuple[str, Callable[..., Any], str]] = [
    # id, function, the JSON that it returns for {"isbn": "1"}
    ("a function", take, '{"isbn":"1"}'),
    ("a coroutine with a context", take_async, '["tools/call",{"isbn":"1"}]'),
    ("by position", take_by_position, '{"isbn":"1"}'),
    ("by keyword", take_by_keyword, '{"isbn":"1"}'),
    ("a partial", functools.partial(take_bound, "a"), '["a",{"isbn":"1"}]'),
    ("a method", Taker().take, '{"isbn":"1"}'),
    ("a model", take_model, '{"isbn":"1","count":1}'),
]


@pytest.mark.parametrize(
    ("function", "returned"), [pytest.param(*row, id=name) for name, *row in HANDLERS]
)
async def test_a_function_takes_the_arguments_as_one(
    function: Callable[..., Any], returned: str
) -> None:
    """Ours."""
    app = App("tests")
    tool = app.add_tool(function, name="take", input_schema=ORDER)
    assert tool.wire["inputSchema"] == ORDER
    answer = await call_tool(app, "take", {"isbn": "1"})
    assert answer == structured(returned)


@pytest.mark.parametrize("at", EVERY)
async def test_a_given_schema_is_published_as_it_is(at: str) -> None:
    """Spec 2026-07-28, server/tools: Tool, `inputSchema`."""
    schema = {**ORDER, "properties": {**ORDER["properties"]}}  # type: ignore[dict-item]
    app = App("tests")
    app.add_tool(take, input_schema=schema)
    schema["properties"]["more"] = {}  # type: ignore[index]
    listed = await call(app, "tools/list", at=at)
    assert [tool["inputSchema"] for tool in listed["tools"]] == [ORDER]


@pytest.mark.parametrize("at", EVERY)
async def test_arguments_that_do_not_match_are_told(at: str) -> None:
    """Spec 2026-07-28, server/tools: Error Handling."""
    app = App("tests")
    app.add_tool(take, input_schema=ORDER)
    answer = await call_tool(app, "take", {"count": 0, "x": "hunter2"}, at=at)
    assert answer == failed(
        "count: input should be greater than or equal to 1\n"
        "isbn: missing\n"
        "x: unknown argument"
    )
    assert await call_tool(app, "take", {"isbn": "1", "count": float("inf")}) == failed(
        "count: expected finite number, got number"
    )


async def test_what_the_type_of_the_parameter_adds_is_told_in_the_same_words() -> None:
    """Ours."""
    app = App("tests", coerce=True)
    app.add_tool(take_model, input_schema={"type": "object"})
    answer = await call_tool(app, "take_model", {"count": "3"})
    assert answer == failed("isbn: missing\ncount: expected integer, got string")


async def test_a_function_cannot_change_the_request() -> None:
    """Ours."""
    seen = []
    app = App("tests")

    @app.tool(input_schema={"type": "object"})
    def change(arguments: dict[str, Any], ctx: Context) -> str:
        arguments["list"].append(1)
        seen.append(ctx.params["arguments"])
        return "done"

    assert await call_tool(app, "change", {"list": []}) == text("done")
    assert seen == [{"list": []}]


def take_two(isbn: str, count: int) -> Any:
    raise NotImplementedError


def take_none(ctx: Context) -> Any:
    raise NotImplementedError


def take_text(isbn: str) -> Any:
    raise NotImplementedError


def take_list(arguments: list[Any]) -> Any:
    raise NotImplementedError


def take_keywords(**arguments: Any) -> Any:
    raise NotImplementedError


ONE_DICT = (
    "a tool with an input_schema takes the arguments as one dict: "
    "def handler(arguments: dict[str, Any])"
)

NOT_ONE: list[tuple[str, Callable[..., Any], str]] = [
    ("two parameters", take_two, ONE_DICT),
    ("none", take_none, ONE_DICT),
    ("a text", take_text, ONE_DICT),
    ("a list", take_list, ONE_DICT),
    (
        "keywords",
        take_keywords,
        "**arguments: Any takes arguments without a name; write out the parameters, or "
        "take one dict",
    ),
]


@pytest.mark.parametrize(
    ("function", "message"), [pytest.param(*row, id=name) for name, *row in NOT_ONE]
)
def test_a_function_that_takes_something_else_is_refused(
    function: Callable[..., Any], message: str
) -> None:
    """Ours."""
    with pytest.raises(SetupError) as caught:
        App("tests").add_tool(function, name="take", input_schema=ORDER)
    assert str(caught.value) == f"tool 'take': {message}"


@pytest.mark.parametrize("schema", [{}, {"type": "array"}, {"type": ["object"]}])
def test_an_input_schema_is_an_objects(schema: dict[str, Any]) -> None:
    """Spec 2026-07-28, schema: Tool, `inputSchema`."""
    with pytest.raises(SetupError) as caught:
        App("tests").add_tool(take, input_schema=schema)
    assert str(caught.value) == (
        'tool \'take\': input_schema needs "type": "object" at its root'
    )


REGIONAL = {
    "type": "object",
    "properties": {"region": {"type": "string", "x-mcp-header": "Region"}},
}


async def test_a_given_schema_may_name_headers() -> None:
    """Spec 2026-07-28, basic/transports/streamable-http: Custom Headers."""
    app = App("tests")
    app.add_tool(take, input_schema=REGIONAL)
    params = {"name": "take", "arguments": {"region": "east"}}
    served = await post_call(
        app, MODERN, "tools/call", params, headers={"Mcp-Param-Region": "east"}
    )
    refused = await post_call(app, MODERN, "tools/call", params)
    assert (served.status_code, refused.status_code) == (200, 400)


def test_a_given_schema_names_headers_where_they_may_be() -> None:
    """HDR-10."""
    with pytest.raises(SetupError) as caught:
        App("tests").add_tool(
            take,
            input_schema={
                "type": "object",
                "properties": {"a": {"type": "string", "x-mcp-header": ["A"]}},
            },
        )
    assert str(caught.value) == (
        "tool 'take': x-mcp-header of a is ['A'], not a header name"
    )


TREE = {
    "type": "object",
    "properties": {"v": {"type": "integer"}, "next": {"$ref": "#"}},
    "required": ["v"],
    "additionalProperties": False,
}
LISTS = {"type": "array", "items": {"anyOf": [{"type": "integer"}, {"$ref": "#"}]}}

RETURNED: list[tuple[str, dict[str, Any], Any, str]] = [
    # id, schema, what the function returns, its JSON
    ("an object", TREE, {"v": 1, "next": {"v": 2}}, '{"v":1,"next":{"v":2}}'),
    ("a model", {"type": "object"}, Order(isbn="1"), '{"isbn":"1","count":1}'),
    ("a list", LISTS, [1, [2, []]], "[1,[2,[]]]"),
    ("a text", {"type": "string"}, "a", '"a"'),
    ("falsy values", {"enum": [0, "", False, None, []]}, 0, "0"),
    ("nothing", {"type": "null"}, None, "null"),
]


@pytest.mark.parametrize(
    ("schema", "value", "encoded"),
    [pytest.param(*row, id=name) for name, *row in RETURNED],
)
@pytest.mark.parametrize("at", EVERY)
async def test_what_a_tool_returns_matches_its_given_schema(
    at: str, schema: dict[str, Any], value: Any, encoded: str
) -> None:
    """Spec 2026-07-28, server/tools: Output Schema."""

    def give() -> str:
        return value  # type: ignore[no-any-return]

    app = App("tests")
    app.add_tool(give, output_schema=schema)
    listed = await call(app, "tools/list", at=at)
    answer = await call_tool(app, "give", at=at)
    expected = structured(encoded)
    published = schema
    if at in LEGACY and schema.get("type") != "object":
        expected["structuredContent"] = {"result": expected["structuredContent"]}
        published = listed["tools"][0].get("outputSchema", {})
        assert Draft202012Validator(published).is_valid(expected["structuredContent"])
    if at == "2025-03-26":
        del expected["structuredContent"]
        assert "outputSchema" not in listed["tools"][0]
    else:
        assert listed["tools"][0]["outputSchema"] == published
    assert answer == expected


WRAPPED: list[tuple[str, Any, bool]] = [
    ("lists", [1, [2]], True),
    ("an empty list", [], True),
    ("a text", "x", False),
    ("an inner text", [["x"]], False),
]


@pytest.mark.parametrize(
    ("value", "matches"), [pytest.param(*row, id=name) for name, *row in WRAPPED]
)
@pytest.mark.parametrize("at", ["2025-11-25", "2025-06-18"])
async def test_a_schema_that_refers_to_itself_stays_itself_for_legacy_clients(
    at: str,
    value: Any,
    matches: bool,  # noqa: FBT001  # a column of a table
) -> None:
    """Ours: the schema is wrapped as the value is."""
    app = App("tests")
    app.add_tool(take_none, output_schema=LISTS)
    (tool,) = (await call(app, "tools/list", at=at))["tools"]
    validator = Draft202012Validator(tool["outputSchema"])
    assert validator.is_valid({"result": value}) is matches
    assert Draft202012Validator(LISTS).is_valid(value) is matches


async def test_what_does_not_match_the_given_schema_is_logged_and_not_sent(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Spec 2026-07-28, server/tools: Output Schema. The words are ours."""
    app = App("tests")
    app.add_tool(take, input_schema={"type": "object"}, output_schema=TREE)
    answer = await call_tool(app, "take", {"v": "hunter2", "next": {}})
    assert answer == failed(
        "Tool take returned a value that does not match its output schema"
    )
    (record,) = caplog.records
    assert record.getMessage() == (
        "tool 'take' breaks its output schema: v: expected integer, got string; "
        "next.v: missing"
    )


MISMATCH = failed("Tool give returned a value that does not match its output schema")


@pytest.mark.parametrize(
    ("value", "answer"),
    [
        (Result.error("no"), failed("no")),
        (Result.structured({"v": 1}), structured('{"v":1}')),
        (Result.structured({"v": "x"}), MISMATCH),
        (Result.text("no structure"), MISMATCH),
    ],
    ids=["an error", "a structure", "another structure", "a text"],
)
async def test_a_result_holds_what_the_schema_describes(
    value: Any, answer: dict[str, Any]
) -> None:
    """Ours, after the seed Snodo.Result: structured/2, raw/1 and error/2."""

    def give() -> Any:
        return value

    app = App("tests")
    app.add_tool(give, output_schema=TREE)
    assert await call_tool(app, "give") == answer


async def test_content_is_no_structure() -> None:
    """Ours."""

    def give() -> Any:
        return Image(b"", "image/png")

    app = App("tests")
    app.add_tool(give, output_schema={"type": "string"})
    answer = await call_tool(app, "give")
    assert answer["isError"] is True


def test_the_docstring_of_a_tool_with_a_schema_stays_whole() -> None:
    """Ours: the schema describes the arguments."""

    def query(arguments: dict[str, Any]) -> str:
        """Query.

        Args:
            arguments: What to look for.
        """
        raise NotImplementedError

    tool = App("tests").add_tool(query, input_schema=ORDER)
    assert tool.wire["description"] == (
        "Query.\n\nArgs:\n    arguments: What to look for."
    )
    assert tool.wire["inputSchema"] == ORDER
