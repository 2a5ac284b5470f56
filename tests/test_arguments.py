"""The arguments of tools that travel in a header, too."""

import doctest
import enum
from typing import Annotated, Any, Literal

import pytest
from fastapi import Header as FastAPIHeader
from pydantic import AfterValidator, BaseModel, Field

import mcpkit.arguments
from mcpkit import App, Header, SetupError
from mcpkit.faults import ArgumentsError
from tests.calls import call_tool, text
from tests.http.client import MODERN, call

SAFE = 2**53 - 1


class Region(enum.Enum):
    """Where."""

    EAST = "east"
    WEST = "west"


class Shelf(BaseModel):
    """A shelf."""

    region: Annotated[str, Header("Region")]


def test_the_examples_in_the_docstrings_run() -> None:
    assert doctest.testmod(mcpkit.arguments).failed == 0


def tool_of(hint: Any, default: Any = ...) -> Any:
    def query(a: Any) -> str:
        return str(a)

    query.__annotations__ = {"a": hint, "return": str}
    if default is not ...:
        query.__defaults__ = (default,)
    return App("tests").add_tool(query)


PUBLISHED = [
    # id, annotation, default, schema
    ("a string", Annotated[str, Header("A")], ..., {"type": "string"}),
    ("a boolean", Annotated[bool, Header("A")], ..., {"type": "boolean"}),
    (
        "HDR-09 an integer",
        Annotated[int, Header("A")],
        ...,
        {"type": "integer", "minimum": -SAFE, "maximum": SAFE},
    ),
    (
        "an integer with a bound",
        Annotated[int, Header("A"), Field(ge=1)],
        ...,
        {"type": "integer", "minimum": 1, "maximum": SAFE},
    ),
    (
        "an integer with a validator",
        Annotated[int, AfterValidator(abs), Header("A")],
        ...,
        {"type": "integer", "minimum": -SAFE, "maximum": SAFE},
    ),
    (
        "an integer with a default",
        Annotated[int, Header("A")],
        Field(3, le=5),
        {"type": "integer", "minimum": -SAFE, "maximum": 5, "default": 3},
    ),
    (
        "a literal",
        Annotated[Literal["a", "b"], Header("A")],
        "a",
        {"type": "string", "enum": ["a", "b"], "default": "a"},
    ),
    (
        "a literal number",
        Annotated[Literal[1, 2], Header("A")],
        ...,
        {"type": "integer", "enum": [1, 2]},
    ),
    (
        "an enum",
        Annotated[Region, Header("A")],
        ...,
        {"type": "string", "enum": ["east", "west"], "description": "Where."},
    ),
    (
        "a title",
        Annotated[str, Field(title="A title", description="Words."), Header("A")],
        ...,
        {"type": "string", "title": "A title", "description": "Words."},
    ),
]


@pytest.mark.parametrize(
    ("hint", "default", "published"),
    [pytest.param(*row, id=name) for name, *row in PUBLISHED],
)
def test_an_argument_that_a_header_mirrors_is_published(
    hint: Any, default: Any, published: dict[str, Any]
) -> None:
    """Spec 2026-07-28, server/tools: x-mcp-header."""
    tool = tool_of(hint, default)
    assert tool.wire["inputSchema"] == {
        "type": "object",
        "additionalProperties": False,
        "properties": {"a": {**published, "x-mcp-header": "A"}},
        **({"required": ["a"]} if default is ... else {}),
    }
    assert [param.path for param in tool.headers] == [("a",)]


UNSAFE = [
    (2**53, f"a: input should be less than or equal to {SAFE}"),
    (-(2**53), f"a: input should be greater than or equal to -{SAFE}"),
    (2.0**53, f"a: input should be less than or equal to {SAFE}"),
]


@pytest.mark.parametrize(("value", "message"), UNSAFE)
def test_an_integer_that_no_header_can_hold_is_refused(
    value: float, message: str
) -> None:
    """HDR-09. Spec 2026-07-28, server/tools: x-mcp-header."""
    signature = tool_of(Annotated[int, Header("A")]).signature
    with pytest.raises(ArgumentsError) as caught:
        signature.bind({"a": value})
    assert str(caught.value) == message
    assert signature.bind({"a": SAFE}) == {"a": SAFE}


NEEDS = "needs the type string, integer or boolean, not"
NOT_REACHED = "is on a schema that is not reached through properties alone"

REFUSED = [
    # id, annotation, default, the whole message
    ("HDR-09 a number", Annotated[float, Header("A")], ..., f"of a {NEEDS} 'number'"),
    (
        "HDR-09 an array",
        Annotated[list[str], Header("A")],
        ...,
        f"of a {NEEDS} 'array'",
    ),
    (
        "HDR-09 an optional",
        Annotated[str | None, Header("A")],
        None,
        f"of a {NEEDS} 'a union'",
    ),
    (
        "HDR-09 inside an optional",
        Annotated[str, Header("A")] | None,
        None,
        f"'A' {NOT_REACHED}",
    ),
    (
        "HDR-09 the items of an array",
        list[Annotated[str, Header("A")]],
        ...,
        f"'A' {NOT_REACHED}",
    ),
    ("HDR-09 inside a model", Shelf, ..., f"'Region' {NOT_REACHED}"),
    (
        "HDR-09 an empty name",
        Annotated[str, Header("")],
        ...,
        "of a is '', not a header name",
    ),
    (
        "HDR-09 a line break",
        Annotated[str, Header("A\r\nB")],
        ...,
        "of a is 'A\\r\\nB', not a header name",
    ),
    (
        "HDR-10 a space",
        Annotated[str, Header("a b")],
        ...,
        "of a is 'a b', not a header name",
    ),
    (
        "HDR-10 a number as a name",
        Annotated[str, Header(5)],  # type: ignore[arg-type]
        ...,
        "of a is 5, not a header name",
    ),
    (
        "HDR-09 an integer that may be larger",
        Annotated[int, Header("A"), Field(le=2**53)],
        ...,
        "of a is on integers beyond 2^53 - 1 either way",
    ),
]


@pytest.mark.parametrize(
    ("hint", "default", "message"),
    [pytest.param(*row, id=name) for name, *row in REFUSED],
)
def test_a_header_where_none_can_be_is_refused(
    hint: Any, default: Any, message: str
) -> None:
    """Spec 2026-07-28, server/tools: x-mcp-header."""
    with pytest.raises(SetupError) as caught:
        tool_of(hint, default)
    assert str(caught.value) == f"tool 'query': x-mcp-header {message}"


def test_two_arguments_do_not_share_a_header() -> None:
    """HDR-09. Spec 2026-07-28, server/tools: x-mcp-header."""

    def query(
        a: Annotated[str, Header("Region")], b: Annotated[str, Header("region")]
    ) -> str:
        raise NotImplementedError

    with pytest.raises(SetupError) as caught:
        App("tests").add_tool(query)
    assert str(caught.value) == (
        "tool 'query': Mcp-Param-Region is named by more than one parameter"
    )


MISPLACED = [
    ("as a default", str, Header("Region")),
    ("without a name", Annotated[str, Header], ...),
]


@pytest.mark.parametrize(
    ("hint", "default"), [pytest.param(*row, id=name) for name, *row in MISPLACED]
)
def test_a_header_that_is_not_in_an_annotation_is_refused(
    hint: Any, default: Any
) -> None:
    """Ours."""
    with pytest.raises(SetupError) as caught:
        tool_of(hint, default)
    assert str(caught.value) == (
        "tool 'query': the parameter 'a' has its Header where it does not work; write "
        "Annotated[str, Header('Region')]"
    )


def mirrored(value: Annotated[str, Header("Value")] = "") -> list[str]:
    raise NotImplementedError


OTHERS = [
    ("prompt 'mirrored'", lambda app: app.add_prompt(mirrored)),
    ("resource 'a://{value}'", lambda app: app.add_resource("a://{value}", mirrored)),
    (
        "completion of 'value' of 'p'",
        lambda app: app.add_completion("p", "value", mirrored),
    ),
]


@pytest.mark.parametrize(
    ("what", "add"), [pytest.param(*row, id=row[0]) for row in OTHERS]
)
def test_only_the_arguments_of_tools_travel_in_headers(what: str, add: Any) -> None:
    """Spec 2026-07-28, basic/transports/streamable-http: Custom Headers."""
    with pytest.raises(SetupError) as caught:
        add(App("tests"))
    assert str(caught.value) == (
        f"{what}: the parameter 'value' has a Header, which mirrors arguments of tools "
        "alone"
    )


def regional() -> App:
    app = App("regional")

    @app.tool
    def query(
        region: Annotated[Region, Header("Region")],
        limit: Annotated[int, Header("Limit")] = 10,
    ) -> str:
        return f"{region.name} {limit}"

    return app


SENT = [
    # id, arguments, headers, status, text
    ("one", {"region": "east"}, {"Region": "east"}, 200, "EAST 10"),
    (
        "two",
        {"region": "east", "limit": 5.0},
        {"Region": "=?base64?ZWFzdA==?=", "Limit": "5"},
        200,
        "EAST 5",
    ),
    ("none", {"region": "east"}, {}, 400, "Mcp-Param-Region is missing"),
    (
        "another",
        {"region": "east"},
        {"Region": "west"},
        400,
        "Mcp-Param-Region does not match the body",
    ),
    (
        "HDR-09 one that no header can hold",
        {"region": "east", "limit": 2**53 + 1},
        {"Region": "east", "Limit": str(2**53 + 1)},
        400,
        "Mcp-Param-Limit can't hold an integer beyond 2^53 - 1 either way",
    ),
]


@pytest.mark.parametrize(
    ("arguments", "headers", "status", "said"),
    [pytest.param(*row, id=name) for name, *row in SENT],
)
async def test_a_header_agrees_with_its_argument(
    arguments: dict[str, Any], headers: dict[str, str], status: int, said: str
) -> None:
    """Spec 2026-07-28, basic/transports/streamable-http: Custom Headers."""
    params = {"name": "query", "arguments": arguments}
    mirrors = {f"Mcp-Param-{name}": value for name, value in headers.items()}
    reply = await call(regional(), MODERN, "tools/call", params, headers=mirrors)
    answer = reply.json()
    if status == 200:
        told = answer["result"]["content"][0]["text"]
    else:
        told = answer["error"]["message"].removeprefix("Header mismatch: ")
    assert (reply.status_code, told) == (status, said)


async def test_without_http_there_is_no_header_to_agree_with() -> None:
    """Ours."""
    answer = await call_tool(regional(), "query", {"region": "west"})
    assert answer == text("WEST 10")


def test_the_header_of_fastapi_is_another() -> None:
    """Ours: FastAPI fills a parameter in from any header; no client is told of it."""

    def query(agent: Annotated[str, FastAPIHeader()], sql: str) -> str:
        raise NotImplementedError

    tool = App("tests").add_tool(query)
    assert list(tool.wire["inputSchema"]["properties"]) == ["sql"]
    assert tool.headers == ()
