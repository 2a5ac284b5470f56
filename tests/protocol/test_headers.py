"""Routing headers: the codec, and every way to agree or disagree with the body."""

import base64
import doctest
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from mcpkit.errors import HEADER_MISMATCH, ProtocolError
from mcpkit.protocol import headers as module
from mcpkit.protocol.headers import (
    HeaderParam,
    Headers,
    check_params,
    check_routing,
    check_version,
    collect,
    decode,
    encode,
    header_params,
    text,
)
from mcpkit.protocol.jsonrpc import error_response
from mcpkit.protocol.methods import METHODS
from tests.wire import check_response

MODERN = "2026-07-28"
POLISH = "file:///Załączniki/raport.pdf"


def wrapped(value: str) -> str:
    return f"=?base64?{base64.b64encode(value.encode()).decode()}?="


COLLECTED: list[tuple[str, list[tuple[bytes, bytes]], Headers]] = [
    # id, lines, headers by name
    ("nothing", [], {}),
    ("one line", [(b"host", b"a")], {b"host": b"a"}),
    (
        "lists are joined",
        [(b"accept", b"a/b"), (b"host", b"x"), (b"accept", b"c/d, e/f")],
        {b"accept": b"a/b, c/d, e/f", b"host": b"x"},
    ),
    (
        "HDR-07 equal MCP headers are one",
        [(b"mcp-name", b"a"), (b"mcp-name", b"a"), (b"mcp-method", b"b")],
        {b"mcp-name": b"a", b"mcp-method": b"b"},
    ),
    (
        "HDR-07 different MCP headers are no value",
        [(b"mcp-name", b"safe"), (b"mcp-name", b"evil")],
        {b"mcp-name": b"safe\nevil"},
    ),
    (
        "HDR-07 the good one last",
        [(b"mcp-param-region", b"evil"), (b"mcp-param-region", b"safe")],
        {b"mcp-param-region": b"evil\nsafe"},
    ),
    (
        "HDR-07 a version with another",
        [(b"mcp-protocol-version", b"a"), (b"mcp-protocol-version", b"b")],
        {b"mcp-protocol-version": b"a\nb"},
    ),
]


@pytest.mark.parametrize(
    ("lines", "headers"), [pytest.param(*row, id=name) for name, *row in COLLECTED]
)
def test_the_lines_of_a_header_become_one_value(
    lines: list[tuple[bytes, bytes]], headers: Headers
) -> None:
    """RFC 9110, section 5.3; ours: an MCP header given twice agrees with nothing."""
    assert collect(lines) == headers


TEXTS: list[tuple[str, bytes | None, str | None]] = [
    # id, header, text
    ("absent", None, None),
    ("empty", b"", ""),
    ("plain", b"a b", "a b"),
    ("HDR-06 space and tab around", b"  a \t", "a"),
    ("HDR-06 no other white space", b"\x0ba\xa0", "\x0ba\xa0"),
    ("not ASCII", b"\xfc", "\xfc"),
]


@pytest.mark.parametrize(
    ("header", "value"), [pytest.param(*row, id=name) for name, *row in TEXTS]
)
def test_a_header_is_trimmed_of_spaces_and_tabs(
    header: bytes | None, value: str | None
) -> None:
    """RFC 9110, section 5.6.3: Whitespace."""
    assert text(header) == value


BOTH_WAYS: list[tuple[str, str, str]] = [
    # id, value, header
    ("plain ASCII", "us-west1", "us-west1"),
    ("not ASCII", "Hello, 世界", "=?base64?SGVsbG8sIOS4lueVjA==?="),
    ("spaces around", " padded ", "=?base64?IHBhZGRlZCA=?="),
    ("a line break", "line1\nline2", "=?base64?bGluZTEKbGluZTI=?="),
    (
        "the pattern itself",
        "=?base64?literal?=",
        "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?=",
    ),
    ("nothing", "", ""),
    ("spaces inside", "a b", "a b"),
    ("a tab inside", "a\tb", "a\tb"),
    ("a tab around", "a\t", wrapped("a\t")),
    ("a control character", "a\x0bb", wrapped("a\x0bb")),
    ("a character that is deleted", "\x7f", wrapped("\x7f")),
    ("Latin-1", "über", wrapped("über")),
    ("HDR-03 a URI in Polish", POLISH, wrapped(POLISH)),
    ("HDR-04 the pattern around base64", wrapped("test"), wrapped(wrapped("test"))),
    ("the pattern without an end", "=?base64?literal", "=?base64?literal"),
    ("the pattern without a start", "literal?=", "literal?="),
    ("the pattern in capitals", "=?BASE64?dGVzdA==?=", "=?BASE64?dGVzdA==?="),
    ("a pattern that shares its marks", "=?base64?=", "=?base64?="),
]


@pytest.mark.parametrize(
    ("value", "header"), [pytest.param(*row, id=name) for name, *row in BOTH_WAYS]
)
def test_a_value_and_its_header_are_one(value: str, header: str) -> None:
    """Spec 2026-07-28, basic/transports/streamable-http: Value Encoding."""
    assert (encode(value), decode(header)) == (header, value)


DECODED: list[tuple[str, str, str]] = [
    # id, header, value
    ("HDR-06 spaces and tabs around", " \ta b\t ", "a b"),
    ("spaces around base64", " =?base64?YQ==?=\t", "a"),
    ("needless base64", wrapped("us-west1"), "us-west1"),
    ("empty base64", "=?base64??=", ""),
]


@pytest.mark.parametrize(
    ("header", "value"), [pytest.param(*row, id=name) for name, *row in DECODED]
)
def test_a_header_that_need_not_be_so_is_decoded(header: str, value: str) -> None:
    """Spec 2026-07-28, basic/transports/streamable-http: Value Encoding."""
    assert decode(header) == value


UNDECODABLE: list[tuple[str, str, str]] = [
    # id, header, what is said
    ("HDR-04 raw Latin-1", "\xfcber", "invalid characters"),
    ("HDR-06 a no-break space around", "a\xa0", "invalid characters"),
    ("HDR-06 a vertical tab around", "a\x0b", "invalid characters"),
    ("a line break at the end", "a\n", "invalid characters"),
    ("a zero character", "\x00", "invalid characters"),
    ("base64 in letters of no alphabet", "=?base64?!!!!?=", "invalid base64"),
    ("base64 for URLs", "=?base64?_-8=?=", "invalid base64"),
    ("base64 without its padding", "=?base64?YQ?=", "invalid base64"),
    ("base64 with a space", "=?base64?YQ ==?=", "invalid base64"),
    ("base64 with too much padding", "=?base64?YWI==?=", "canonical|invalid"),
    ("base64 with stray bits", "=?base64?YR==?=", "canonical"),
    ("base64 of no UTF-8", "=?base64?/w==?=", "utf-8"),
    ("base64 of half a pair", "=?base64?7aCA?=", "utf-8"),
]


@pytest.mark.parametrize(
    ("header", "fault"), [pytest.param(*row, id=name) for name, *row in UNDECODABLE]
)
def test_a_header_that_is_malformed_is_refused(header: str, fault: str) -> None:
    """Spec 2026-07-28, basic/transports/streamable-http: Value Encoding."""
    with pytest.raises(ValueError, match=fault):
        decode(header)


@settings(max_examples=300, deadline=None)
@given(st.text() | st.text(" \t=?base64", max_size=24))
def test_decode_undoes_encode(value: str) -> None:
    """Ours, for any text; what is encoded fits a header as it is."""
    header = encode(value)
    assert decode(header) == value
    assert header.isascii()
    assert header == header.strip(" \t")
    assert not any(ord(character) < 32 and character != "\t" for character in header)


@settings(max_examples=300, deadline=None)
@given(
    st.text(st.characters(max_codepoint=255)) | st.text("=?base64 /+AQ", max_size=24)
)
def test_any_header_is_a_value_or_a_value_error(header: str) -> None:
    """Ours."""
    try:
        value = decode(header)
    except ValueError:
        return
    assert decode(encode(value)) == value


def mismatch(check: Callable[[], None]) -> str:
    """Return what a check says, without what every mismatch says."""
    with pytest.raises(ProtocolError) as caught:
        check()
    response = error_response(caught.value, request_id=1)
    check_response(response, "tools/call", MODERN)
    assert response["error"]["code"] == HEADER_MISMATCH
    message: str = response["error"]["message"]
    assert message.startswith("Header mismatch: ")
    return message.removeprefix("Header mismatch: ")


VERSIONS: list[tuple[str, bytes]] = [
    # id, header
    ("equal", b"2026-07-28"),
    ("HDR-06 a tab before it", b"\t2026-07-28"),
    ("HDR-06 spaces around it", b"  2026-07-28 "),
]


@pytest.mark.parametrize(
    "header", [pytest.param(header, id=name) for name, header in VERSIONS]
)
def test_the_version_header_equals_the_body(header: bytes) -> None:
    """Spec 2026-07-28, basic/transports/streamable-http: Protocol Version Header."""
    check_version({b"mcp-protocol-version": header}, MODERN)


OTHER_VERSIONS: list[tuple[str, Headers, str]] = [
    # id, headers, what is said
    ("HDR-01 none", {}, "is missing"),
    ("HDR-01 empty", {b"mcp-protocol-version": b""}, "does not match the body"),
    ("another", {b"mcp-protocol-version": b"2025-11-25"}, "does not match the body"),
    (
        "HDR-07 two",
        {b"mcp-protocol-version": b"2026-07-28\n2025-11-25"},
        "does not match the body",
    ),
    (
        "HDR-06 a no-break space",
        {b"mcp-protocol-version": b"2026-07-28\xa0"},
        "does not match the body",
    ),
    (
        "base64, which is not for it",
        {b"mcp-protocol-version": wrapped(MODERN).encode()},
        "does not match the body",
    ),
]


@pytest.mark.parametrize(
    ("headers", "fault"), [pytest.param(*row, id=name) for name, *row in OTHER_VERSIONS]
)
def test_another_version_header_is_refused(headers: Headers, fault: str) -> None:
    """Spec 2026-07-28, basic/transports/streamable-http: Server Validation."""
    said = mismatch(lambda: check_version(headers, MODERN))
    assert said == f"MCP-Protocol-Version {fault}"


def routing(method: str, name: bytes | None = None) -> Headers:
    named = {} if name is None else {b"mcp-name": name}
    return {b"mcp-method": method.encode(), **named}


AGREEING: list[tuple[str, str, dict[str, Any], Headers]] = [
    # id, method, params, headers
    ("a method without a name", "tools/list", {}, routing("tools/list")),
    ("a name that is not asked for", "tools/list", {}, routing("tools/list", b"x")),
    ("a tool's name", "tools/call", {"name": "a"}, routing("tools/call", b"a")),
    ("a prompt's name", "prompts/get", {"name": "a"}, routing("prompts/get", b"a")),
    (
        "a resource's URI",
        "resources/read",
        {"uri": "a:b", "name": "other"},
        routing("resources/read", b"a:b"),
    ),
    ("an empty name", "tools/call", {"name": ""}, routing("tools/call", b"")),
    (
        "HDR-06 white space around both",
        "tools/call",
        {"name": "a"},
        {b"mcp-method": b"  tools/call \t", b"mcp-name": b"\ta "},
    ),
    (
        "HDR-03 a URI in base64",
        "resources/read",
        {"uri": POLISH},
        routing("resources/read", wrapped(POLISH).encode()),
    ),
    (
        "HDR-03 a padded name in base64",
        "tools/call",
        {"name": " x "},
        routing("tools/call", wrapped(" x ").encode()),
    ),
    (
        "HDR-03 a padded prompt in base64",
        "prompts/get",
        {"name": " x "},
        routing("prompts/get", wrapped(" x ").encode()),
    ),
    (
        "a plain name in base64",
        "tools/call",
        {"name": "a"},
        routing("tools/call", wrapped("a").encode()),
    ),
    (
        "HDR-04 a name like the pattern, encoded",
        "tools/call",
        {"name": wrapped("test")},
        routing("tools/call", wrapped(wrapped("test")).encode()),
    ),
    ("no name in the body", "tools/call", {}, routing("tools/call")),
    ("a name of another type", "tools/call", {"name": 5}, routing("tools/call", b"x")),
    ("an unknown method", "foo/bar", {"name": "a"}, routing("foo/bar")),
]


@pytest.mark.parametrize(
    ("method", "params", "headers"),
    [pytest.param(*row, id=name) for name, *row in AGREEING],
)
def test_routing_headers_that_agree_are_accepted(
    method: str, params: dict[str, Any], headers: Headers
) -> None:
    """Spec 2026-07-28, basic/transports/streamable-http: Standard Request Headers."""
    check_routing(headers, method, params, METHODS.get(method))


DISAGREEING: list[tuple[str, str, dict[str, Any], Headers, str]] = [
    # id, method, params, headers, what is said
    ("HDR-01 no method", "tools/list", {}, {}, "Mcp-Method is missing"),
    (
        "HDR-01 an empty method",
        "tools/list",
        {},
        routing(""),
        "Mcp-Method does not match the body",
    ),
    (
        "another method",
        "tools/list",
        {},
        routing("tools/call"),
        "Mcp-Method does not match the body",
    ),
    (
        "the method in capitals",
        "tools/list",
        {},
        routing("Tools/List"),
        "Mcp-Method does not match the body",
    ),
    (
        "HDR-06 a vertical tab after the method",
        "tools/list",
        {},
        routing("tools/list\x0b"),
        "Mcp-Method does not match the body",
    ),
    (
        "base64, which is not for methods",
        "tools/list",
        {},
        routing(wrapped("tools/list")),
        "Mcp-Method does not match the body",
    ),
    ("an unknown method, unnamed", "foo/bar", {}, {}, "Mcp-Method is missing"),
    (
        "an unknown method, misnamed",
        "foo/bar",
        {},
        routing("tools/list"),
        "Mcp-Method does not match the body",
    ),
    (
        "HDR-01 no name",
        "tools/call",
        {"name": "a"},
        routing("tools/call"),
        "is missing",
    ),
    (
        "HDR-01 an empty name",
        "tools/call",
        {"name": "a"},
        routing("tools/call", b""),
        "Mcp-Name does not match the body",
    ),
    (
        "another name",
        "tools/call",
        {"name": "a"},
        routing("tools/call", b"b"),
        "Mcp-Name does not match the body",
    ),
    (
        "HDR-07 two names",
        "tools/call",
        {"name": "evil"},
        {
            **routing("tools/call"),
            **collect([(b"mcp-name", b"safe"), (b"mcp-name", b"evil")]),
        },
        "Mcp-Name is malformed",
    ),
    (
        "HDR-03 base64 of another name",
        "tools/call",
        {"name": "a"},
        routing("tools/call", wrapped("b").encode()),
        "Mcp-Name does not match the body",
    ),
    (
        "HDR-03 a padded name as it is",
        "tools/call",
        {"name": " x "},
        routing("tools/call", b" x "),
        "Mcp-Name does not match the body",
    ),
    (
        "HDR-04 a name like the pattern as it is",
        "tools/call",
        {"name": wrapped("test")},
        routing("tools/call", wrapped("test").encode()),
        "Mcp-Name does not match the body",
    ),
    (
        "HDR-04 a name in raw UTF-8",
        "tools/call",
        {"name": "über"},
        routing("tools/call", "über".encode()),
        "Mcp-Name is malformed",
    ),
    (
        "HDR-04 a name in raw Latin-1",
        "tools/call",
        {"name": "über"},
        routing("tools/call", "über".encode("latin-1")),
        "Mcp-Name is malformed",
    ),
    (
        "a name with a control character as it is",
        "tools/call",
        {"name": "a\x0bb"},
        routing("tools/call", b"a\x0bb"),
        "Mcp-Name is malformed",
    ),
    (
        "a name with half a pair of surrogates",
        "tools/call",
        {"name": "\ud800"},
        routing("tools/call", b"?"),
        "Mcp-Name does not match the body",
    ),
    (
        "base64 that is none",
        "tools/call",
        {"name": "a"},
        routing("tools/call", b"=?base64?YQ?="),
        "Mcp-Name is malformed",
    ),
    (
        "the name of a resource, not its URI",
        "resources/read",
        {"uri": "a:b", "name": "other"},
        routing("resources/read", b"other"),
        "Mcp-Name does not match the body",
    ),
]


@pytest.mark.parametrize(
    ("method", "params", "headers", "fault"),
    [pytest.param(*row, id=name) for name, *row in DISAGREEING],
)
def test_routing_headers_that_disagree_are_refused(
    method: str, params: dict[str, Any], headers: Headers, fault: str
) -> None:
    """Spec 2026-07-28, basic/transports/streamable-http: Server Validation."""
    said = mismatch(lambda: check_routing(headers, method, params, METHODS.get(method)))
    assert said.endswith(fault)


REGION = {"type": "string", "x-mcp-header": "Region"}


def schema(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


ANNOTATED: list[tuple[str, dict[str, Any], list[tuple[str, tuple[str, ...]]]]] = [
    # id, input schema, headers and paths
    ("no properties", {"type": "object"}, []),
    ("none annotated", schema(region={"type": "string"}), []),
    ("a string", schema(region=REGION), [("Region", ("region",))]),
    (
        "an integer and a boolean",
        schema(
            count={"type": "integer", "x-mcp-header": "Count"},
            dry={"type": "boolean", "x-mcp-header": "Dry-Run"},
        ),
        [("Count", ("count",)), ("Dry-Run", ("dry",))],
    ),
    (
        "every character of a token",
        schema(a={"type": "string", "x-mcp-header": "!#$%&'*+-.^_`|~09azAZ"}),
        [("!#$%&'*+-.^_`|~09azAZ", ("a",))],
    ),
    (
        "through nested objects",
        schema(place=schema(region=REGION)),
        [("Region", ("place", "region"))],
    ),
    (
        "a property of that very name",
        schema(**{"x-mcp-header": {"type": "string"}}),
        [],
    ),
    (
        "a property called properties",
        schema(properties=schema(region=REGION)),
        [("Region", ("properties", "region"))],
    ),
    (
        "data that looks like an annotation",
        schema(
            region={
                "type": "object",
                "default": {"x-mcp-header": "Region"},
                "examples": [{"x-mcp-header": "Region"}],
                "enum": [{"x-mcp-header": "Region"}],
            }
        ),
        [],
    ),
    ("a schema that is true", {"properties": {"a": True}, "items": False}, []),
    (
        "HDR-09 integers that are safe",
        schema(
            a={
                "type": "integer",
                "minimum": 1 - 2**53,
                "maximum": 2**53 - 1,
                "x-mcp-header": "A",
            },
            b={"type": "integer", "enum": [1, 2**53 - 1], "x-mcp-header": "B"},
        ),
        [("A", ("a",)), ("B", ("b",))],
    ),
]


@pytest.mark.parametrize(
    ("annotated", "found"), [pytest.param(*row, id=name) for name, *row in ANNOTATED]
)
def test_annotations_are_found_where_they_may_be(
    annotated: dict[str, Any], found: list[tuple[str, tuple[str, ...]]]
) -> None:
    """Spec 2026-07-28, basic/transports/streamable-http: Schema Extension."""
    assert header_params(annotated) == tuple(
        HeaderParam(header=f"Mcp-Param-{name}", path=path) for name, path in found
    )


def on(type_: Any, name: Any = "Region") -> dict[str, Any]:
    return schema(a={"type": type_, "x-mcp-header": name})


MISANNOTATED: list[tuple[str, dict[str, Any], str]] = [
    # id, input schema, what is said
    ("HDR-10 an empty name", on("string", ""), "x-mcp-header of a is '', not a"),
    ("HDR-10 a number", on("string", 5), "x-mcp-header of a is 5, not a"),
    ("HDR-10 a list", on("string", ["A"]), "not a header name"),
    ("HDR-10 a space", on("string", "a b"), "not a header name"),
    ("null", on("string", None), "not a header name"),
    ("a colon", on("string", "a:b"), "not a header name"),
    ("a letter that is not ASCII", on("string", "Größe"), "not a header name"),
    ("HDR-09 a line break", on("string", "a\r\nb"), "not a header name"),
    ("HDR-09 a line break at the end", on("string", "a\n"), "not a header name"),
    ("HDR-09 a number's type", on("number"), "needs the type .* not 'number'"),
    ("HDR-09 an array's type", on("array"), "needs the type .* not 'array'"),
    ("an object's type", on("object"), "needs the type .* not 'object'"),
    ("the type of null", on("null"), "needs the type .* not 'null'"),
    ("a list of types", on(["string", "null"]), "needs the type"),
    (
        "no type",
        schema(a={"x-mcp-header": "Region"}),
        "x-mcp-header of a needs the type .* not None",
    ),
    (
        "HDR-09 a choice of types",
        schema(a={"anyOf": [{"type": "string"}], "x-mcp-header": "Region"}),
        "needs the type",
    ),
    (
        "HDR-09 inside a choice",
        schema(a={"anyOf": [REGION, {"type": "null"}]}),
        "not reached through properties alone",
    ),
    *(
        (f"under {keyword}", schema(a={keyword: [schema(region=REGION)]}), "reached")
        for keyword in ("oneOf", "allOf", "prefixItems")
    ),
    *(
        (f"HDR-09 under {keyword}", schema(a={keyword: schema(r=REGION)}), "reached")
        for keyword in (
            "items",
            "not",
            "if",
            "then",
            "else",
            "contains",
            "additionalProperties",
            "propertyNames",
        )
    ),
    *(
        (f"in {keyword}", {keyword: {"region": REGION}}, "reached")
        for keyword in (
            "$defs",
            "definitions",
            "patternProperties",
            "dependentSchemas",
        )
    ),
    ("at the root", {"type": "string", "x-mcp-header": "Region"}, "reached"),
    (
        "HDR-09 two names that differ in case",
        schema(a=REGION, b={"type": "integer", "x-mcp-header": "REGION"}),
        "named by more than one parameter",
    ),
    (
        "one object in two places, of which one is none for it",
        schema(a=REGION, b={"type": "array", "items": REGION}),
        "reached",
    ),
    (
        "one object in two places that are for it",
        schema(a=REGION, b=REGION),
        "named by more than one parameter",
    ),
    *(
        (
            f"HDR-09 integers that are not safe, by {keyword}",
            schema(a={"type": "integer", keyword: value, "x-mcp-header": "A"}),
            "is on integers beyond",
        )
        for keyword, value in (
            ("minimum", -(2**53)),
            ("maximum", 2**53),
            ("const", 2**60),
            ("enum", [1, 2**60]),
        )
    ),
    (
        "a name at two depths",
        schema(a=REGION, b=schema(c={**REGION})),
        "named by more than one parameter",
    ),
]


@pytest.mark.parametrize(
    ("annotated", "fault"), [pytest.param(*row, id=name) for name, *row in MISANNOTATED]
)
def test_an_annotation_that_breaks_a_rule_is_refused(
    annotated: dict[str, Any], fault: str
) -> None:
    """Spec 2026-07-28, basic/transports/streamable-http: Schema Extension."""
    with pytest.raises(ValueError, match=fault):
        header_params(annotated)


PARAM = HeaderParam(header="Mcp-Param-Value", path=("value",))
DEEP = HeaderParam(header="Mcp-Param-Value", path=("place", "value"))
SAFE = 2**53 - 1

MIRRORED: list[tuple[str, HeaderParam, dict[str, Any], bytes | None]] = [
    # id, parameter, arguments, header
    ("a string", PARAM, {"value": "us-west1"}, b"us-west1"),
    ("an empty string", PARAM, {"value": ""}, b""),
    ("HDR-06 white space around it", PARAM, {"value": "a"}, b" a\t"),
    ("base64", PARAM, {"value": "世界"}, wrapped("世界").encode()),
    ("needless base64", PARAM, {"value": "a"}, wrapped("a").encode()),
    ("a string of digits", PARAM, {"value": "042"}, b"042"),
    ("true", PARAM, {"value": True}, b"true"),
    ("false", PARAM, {"value": False}, b"false"),
    ("an integer", PARAM, {"value": 42}, b"42"),
    ("a negative integer", PARAM, {"value": -7}, b"-7"),
    ("zero", PARAM, {"value": 0}, b"0"),
    ("HDR-09 a fraction of zero", PARAM, {"value": 42}, b"42.0"),
    ("HDR-09 zeros in front", PARAM, {"value": 42}, b"042"),
    ("an integral fraction in the body", PARAM, {"value": 42.0}, b"42"),
    ("an integer in base64", PARAM, {"value": 42}, wrapped("42").encode()),
    ("the largest safe integer", PARAM, {"value": SAFE}, str(SAFE).encode()),
    ("the smallest safe integer", PARAM, {"value": -SAFE}, str(-SAFE).encode()),
    ("null and no header", PARAM, {"value": None}, None),
    ("no argument and no header", PARAM, {}, None),
    ("an argument at depth", DEEP, {"place": {"value": "a"}}, b"a"),
    ("nothing at depth", DEEP, {"place": {}}, None),
    ("no depth", DEEP, {"place": "value"}, None),
    ("a fraction, which its schema refuses", PARAM, {"value": 0.5}, b"0.5"),
    ("a list, which its schema refuses", PARAM, {"value": []}, None),
]


def param_headers(header: bytes | None) -> Headers:
    other = {b"mcp-param-other": b"\xff"}
    return other if header is None else {**other, b"mcp-param-value": header}


@pytest.mark.parametrize(
    ("param", "arguments", "header"),
    [pytest.param(*row, id=name) for name, *row in MIRRORED],
)
def test_a_parameter_header_that_agrees_is_accepted(
    param: HeaderParam, arguments: dict[str, Any], header: bytes | None
) -> None:
    """Spec 2026-07-28, basic/transports/streamable-http: Custom Headers.

    Ours: integers compare as numbers, and a header that is unknown is ignored.
    """
    check_params(param_headers(header), [param], arguments)


CONTRARY: list[tuple[str, HeaderParam, dict[str, Any], bytes | None, str]] = [
    # id, parameter, arguments, header, what is said
    ("a string without its header", PARAM, {"value": "a"}, None, "is missing"),
    ("another string", PARAM, {"value": "a"}, b"b", "does not match the body"),
    ("a string in capitals", PARAM, {"value": "a"}, b"A", "does not match the body"),
    (
        "base64 of another string",
        PARAM,
        {"value": "a"},
        wrapped("b").encode(),
        "does not match the body",
    ),
    ("HDR-07 two values", PARAM, {"value": "a"}, b"a\nb", "is malformed"),
    ("raw UTF-8", PARAM, {"value": "é"}, "é".encode(), "is malformed"),
    ("base64 that is none", PARAM, {"value": "a"}, b"=?base64?YQ?=", "is malformed"),
    (
        "HDR-04 the pattern as it is",
        PARAM,
        {"value": wrapped("a")},
        wrapped("a").encode(),
        "does not match the body",
    ),
    ("a boolean without its header", PARAM, {"value": False}, None, "is missing"),
    ("the other boolean", PARAM, {"value": True}, b"false", "does not match"),
    ("a boolean in capitals", PARAM, {"value": True}, b"True", "does not match"),
    ("a boolean as a number", PARAM, {"value": True}, b"1", "does not match"),
    ("an integer without its header", PARAM, {"value": 0}, None, "is missing"),
    ("another integer", PARAM, {"value": 42}, b"43", "does not match the body"),
    ("an integer with a fraction", PARAM, {"value": 42}, b"42.5", "does not match"),
    ("an integer with an exponent", PARAM, {"value": 42}, b"4.2e1", "does not match"),
    ("an integer with a plus sign", PARAM, {"value": 42}, b"+42", "does not match"),
    ("an integer with an underscore", PARAM, {"value": 42}, b"4_2", "does not match"),
    ("a bare point", PARAM, {"value": 42}, b"42.", "does not match the body"),
    ("an empty header", PARAM, {"value": 42}, b"", "does not match the body"),
    ("words for an integer", PARAM, {"value": 42}, b"true", "does not match the body"),
    ("digits without end", PARAM, {"value": 42}, b"9" * 5000, "does not match"),
    (
        "HDR-09 an integer that is not safe",
        PARAM,
        {"value": 9007199254740993},
        b"9007199254740993",
        "can't hold an integer beyond 2^53 - 1 either way",
    ),
    (
        "a fraction that is too large",
        PARAM,
        {"value": 1e300},
        str(int(1e300)).encode(),
        "can't hold an integer beyond 2^53 - 1 either way",
    ),
    ("a header for null", PARAM, {"value": None}, b"null", "is not in the body"),
    ("a header for nothing", PARAM, {}, b"a", "is not in the body"),
    ("an empty header for nothing", PARAM, {}, b"", "is not in the body"),
    ("a header for nothing at depth", DEEP, {"value": "a"}, b"a", "is not in the body"),
    ("no header at depth", DEEP, {"place": {"value": "a"}}, None, "is missing"),
    (
        "invalid characters for a list",
        PARAM,
        {"value": []},
        b"\xff",
        "is malformed",
    ),
]


@pytest.mark.parametrize(
    ("param", "arguments", "header", "fault"),
    [pytest.param(*row, id=name) for name, *row in CONTRARY],
)
def test_a_parameter_header_that_disagrees_is_refused(
    param: HeaderParam, arguments: dict[str, Any], header: bytes | None, fault: str
) -> None:
    """Spec 2026-07-28, basic/transports/streamable-http: Custom Headers."""
    said = mismatch(lambda: check_params(param_headers(header), [param], arguments))
    assert said.startswith("Mcp-Param-Value ")
    assert fault in said


def test_every_parameter_is_checked() -> None:
    region = HeaderParam(header="Mcp-Param-Region", path=("region",))
    headers = {b"mcp-param-value": b"a", b"mcp-param-region": b"b"}
    arguments = {"value": "a", "region": "c"}
    said = mismatch(lambda: check_params(headers, [PARAM, region], arguments))
    assert said == "Mcp-Param-Region does not match the body"


@settings(max_examples=200, deadline=None)
@given(st.text(), st.binary(max_size=24))
def test_any_name_and_header_agree_or_are_a_mismatch(name: str, header: bytes) -> None:
    """Ours: no header is a crash, and an encoded name always agrees."""
    call = METHODS["tools/call"]
    check_routing(
        routing("tools/call", encode(name).encode()), call.name, {"name": name}, call
    )
    try:
        check_routing(routing("tools/call", header), call.name, {"name": name}, call)
    except ProtocolError as error:
        assert error.code == HEADER_MISMATCH  # noqa: PT017  # it may agree as well
    else:
        assert decode(header.decode("latin-1")) == name


def test_the_examples_hold() -> None:
    result = doctest.testmod(module)
    assert (result.failed, result.attempted > 0) == (0, True)
