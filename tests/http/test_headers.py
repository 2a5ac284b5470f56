"""Headers: what a client may send and take, and what mirrors a modern body."""

import base64
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from mcpkit import App
from tests.http.bookshop import bookshop
from tests.http.client import (
    JSON_HEADERS,
    LEGACY,
    LEGACY_VERSIONS,
    MODERN,
    Lines,
    call,
    error,
    headers_of,
    legacy,
    modern,
    open_session,
    post,
    result_of,
)

ACCEPTED = [
    ("both", ["application/json, text/event-stream"]),
    ("HTTP-01 anything", ["*/*"]),
    ("HTTP-01 any application", ["application/*"]),
    ("HTTP-01 q-values", ["text/event-stream;q=0.5, application/json;q=0.9"]),
    ("HTTP-01 upper case", ["APPLICATION/JSON, text/event-stream"]),
    ("HTTP-01 JSON alone", ["application/json"]),
    ("HTTP-01 none", []),
    ("two lines", ["text/event-stream", "application/json"]),
    ("two lines, JSON first", ["application/json", "text/event-stream"]),
    ("the lowest q-value", ["application/json;q=0.001"]),
    ("a q-value in upper case", ["application/json;Q=1"]),
    ("white space", ["  text/html ,\tapplication/json ; q=1 "]),
    ("a parameter", ["application/json;charset=utf-8"]),
    ("a browser", ["text/html,application/xhtml+xml,*/*;q=0.8"]),
    ("no text, but the rest", ["text/*;q=0, */*;q=0.1"]),
    ("empty elements", [", ,application/json,,"]),
]

REFUSED = [
    ("another type", ["text/html"]),
    ("events alone", ["text/event-stream"]),
    ("a longer name", ["application/jsonx, application/json-seq"]),
    ("a q-value of zero", ["application/json;q=0"]),
    ("a q-value of 0.000", ["application/json;q=0.000, text/event-stream"]),
    ("all but JSON", ["application/json;q=0, */*"]),
    ("all but applications", ["application/*;q=0, */*;q=1"]),
    ("nothing is admitted", ["*/*;q=0"]),
    ("empty", [""]),
    ("two lines of others", ["text/html", "text/event-stream"]),
]


def rows(table: Sequence[tuple[str, list[str]]]) -> list[Any]:
    return [pytest.param(values, id=name) for name, values in table]


def with_lines(name: str, values: Sequence[str | bytes], version: str) -> Lines:
    """Return the headers of a `tools/list` with these lines of one header."""
    usual = headers_of(modern("tools/list")) if version == MODERN else JSON_HEADERS
    rest = [(key, value) for key, value in usual.items() if key != name]
    return [*rest, *((name, value) for value in values)]


def listing(version: str) -> dict[str, Any]:
    return modern("tools/list") if version == MODERN else legacy("tools/list")


eras = pytest.mark.parametrize("version", [MODERN, LEGACY])


@eras
@pytest.mark.parametrize("values", rows(ACCEPTED))
async def test_an_accept_header_that_admits_json_is_served(
    values: list[str], version: str
) -> None:
    """RFC 9110, section 12.5.1. Spec 2026-07-28: Sending Messages."""
    headers = with_lines("accept", values, version)
    assert "tools" in result_of(await post(bookshop(), listing(version), headers))


@eras
@pytest.mark.parametrize("values", rows(REFUSED))
async def test_an_accept_header_that_admits_no_json_is_406(
    values: list[str], version: str
) -> None:
    """RFC 9110, section 12.5.1."""
    headers = with_lines("accept", values, version)
    reply = await post(bookshop(), listing(version), headers)
    assert (reply.status_code, reply.json()) == (
        406,
        error(-32600, "Accept must admit application/json"),
    )


CONTENT_TYPES = [
    ("plain", ["application/json"], 200),
    ("a charset", ["application/json; charset=utf-8"], 200),
    ("a charset without a space", ["application/json;charset=UTF-8"], 200),
    # RFC 8259, section 11: no charset is defined, and none changes anything.
    ("another charset", ["application/json; charset=iso-8859-1"], 200),
    ("upper case", ["Application/JSON"], 200),
    ("white space", [" application/json "], 200),
    ("a parameter of one's own", ["application/json; profile=mcp"], 200),
    ("none", [], 415),
    ("empty", [""], 415),
    ("text", ["text/plain"], 415),
    ("a form", ["application/x-www-form-urlencoded"], 415),
    ("JSON of another kind", ["application/json-rpc"], 415),
    ("a suffix", ["application/mcp+json"], 415),
    ("a prefix", ["x-application/json"], 415),
    ("two", ["application/json, text/plain"], 415),
    ("two lines", ["application/json", "text/plain"], 415),
    ("two equal lines", ["application/json", "application/json"], 415),
]


@eras
@pytest.mark.parametrize(
    ("values", "status"),
    [pytest.param(*row, id=name) for name, *row in CONTENT_TYPES],
)
async def test_the_body_is_json_by_its_content_type(
    values: list[str], status: int, version: str
) -> None:
    """RFC 9110, section 15.5.16."""
    headers = with_lines("content-type", values, version)
    reply = await post(bookshop(), listing(version), headers)
    assert reply.status_code == status
    if status == 415:
        assert reply.json() == error(-32600, "Content-Type must be application/json")


CONTENT_ENCODINGS = [
    ("none", [], 200),
    ("identity", ["identity"], 200),
    ("identity in upper case", ["Identity"], 200),
    ("gzip", ["gzip"], 415),
    ("deflate", ["deflate"], 415),
    ("br", ["br"], 415),
    ("two", ["identity, gzip"], 415),
    ("two lines", ["identity", "gzip"], 415),
]


@eras
@pytest.mark.parametrize(
    ("values", "status"),
    [pytest.param(*row, id=name) for name, *row in CONTENT_ENCODINGS],
)
async def test_a_compressed_body_is_refused(
    values: list[str], status: int, version: str
) -> None:
    """RFC 9110, section 8.4. Ours: what is unpacked is not bounded by its size."""
    headers = with_lines("content-encoding", values, version)
    reply = await post(bookshop(), listing(version), headers)
    assert reply.status_code == status
    if status == 415:
        assert reply.json() == error(-32600, "Content-Encoding must be identity")


# Routing headers: spec 2026-07-28, basic/transports/streamable-http.

CALL = modern("tools/call", {"name": "add", "arguments": {"a": 1, "b": 2}})
READ = modern("resources/read", {"uri": "books://1"})
GET = modern("prompts/get", {"name": "review", "arguments": {"title": "Dune"}})
LIST = modern("tools/list")


def routed(message: Mapping[str, Any], **changes: Any) -> Lines:
    """Return the headers of a request, some of them in other lines.

    A change is a value, a list of values, a line each, or `None` for no line.
    """
    names = {"version": "mcp-protocol-version", "method": "mcp-method"}
    names["name"] = "mcp-name"
    lines: dict[str, Any] = {**headers_of(message)}
    for key, value in changes.items():
        lines[names.get(key, key.replace("_", "-"))] = value
    return [
        (name, value)
        for name, values in lines.items()
        if values is not None
        for value in (values if isinstance(values, list) else [values])
    ]


def sentinel(value: str | bytes) -> str:
    raw = value.encode() if isinstance(value, str) else value
    return f"=?base64?{base64.b64encode(raw).decode()}?="


AGREE = [
    ("as they are", CALL, {}),
    ("HDR-06 spaces around the method", CALL, {"method": "  tools/call \t"}),
    ("HDR-06 a tab before the version", CALL, {"version": f"\t{MODERN}"}),
    ("HDR-06 white space around the name", CALL, {"name": " \t add \t "}),
    ("two equal names", CALL, {"name": ["add", "add"]}),
    ("two equal methods", CALL, {"method": ["tools/call", "tools/call"]}),
    ("two equal versions", CALL, {"version": [MODERN, MODERN]}),
    ("an encoded name", CALL, {"name": sentinel("add")}),
    ("an encoded URI", READ, {"name": sentinel("books://1")}),
    ("a prompt", GET, {}),
    ("no name where none is asked for", LIST, {}),
    ("a name where none is asked for", LIST, {"name": "whatever"}),
    ("parameters of no tool", LIST, {"mcp-param-region": "north"}),
    ("an unknown parameter", CALL, {"mcp-param-other": "\xff"}),
    ("a session id", CALL, {"mcp-session-id": "bogus"}),
    ("an event id", CALL, {"last-event-id": "7"}),
]

DISAGREE = [
    ("HDR-01 no version", CALL, {"version": None}, "MCP-Protocol-Version is missing"),
    ("HDR-01 no method", CALL, {"method": None}, "Mcp-Method is missing"),
    ("HDR-01 no name", CALL, {"name": None}, "Mcp-Name is missing"),
    ("HDR-01 an empty version", CALL, {"version": ""}, "MCP-Protocol-Version"),
    ("HDR-01 an empty method", CALL, {"method": ""}, "Mcp-Method"),
    ("HDR-01 an empty name", CALL, {"name": ""}, "Mcp-Name"),
    ("no name of a resource", READ, {"name": None}, "Mcp-Name is missing"),
    ("no name of a prompt", GET, {"name": None}, "Mcp-Name is missing"),
    ("another legacy version", CALL, {"version": LEGACY}, "MCP-Protocol-Version"),
    ("an unknown version", CALL, {"version": "2099-01-01"}, "MCP-Protocol-Version"),
    ("another method", CALL, {"method": "tools/list"}, "Mcp-Method"),
    ("the method in upper case", CALL, {"method": "Tools/Call"}, "Mcp-Method"),
    ("an encoded method", CALL, {"method": sentinel("tools/call")}, "Mcp-Method"),
    ("an encoded version", CALL, {"version": sentinel(MODERN)}, "MCP-Protocol-Version"),
    ("another name", CALL, {"name": "echo"}, "Mcp-Name"),
    ("the name in upper case", CALL, {"name": "ADD"}, "Mcp-Name"),
    ("another encoded name", CALL, {"name": sentinel("echo")}, "Mcp-Name"),
    ("HDR-06 NBSP", CALL, {"name": b"\xa0add"}, "Mcp-Name is malformed"),
    ("HDR-06 a vertical tab", CALL, {"method": b"\x0btools/call"}, "Mcp-Method"),
    ("HDR-06 NBSP at the version", CALL, {"version": f"{MODERN}\xa0"}, "MCP-Protocol"),
    ("HDR-07 two names", CALL, {"name": ["add", "echo"]}, "Mcp-Name"),
    ("HDR-07 two names, last", CALL, {"name": ["echo", "add"]}, "Mcp-Name"),
    ("HDR-07 two versions", CALL, {"version": [MODERN, LEGACY]}, "MCP-Protocol"),
    (
        "HDR-07 two methods",
        CALL,
        {"method": ["tools/call", "tools/list"]},
        "Mcp-Method",
    ),
    ("a list of names", CALL, {"name": "add, add"}, "Mcp-Name"),
    ("the base64 of no UTF-8", CALL, {"name": sentinel(b"\xff")}, "Mcp-Name"),
    ("base64 without padding", CALL, {"name": "=?base64?YWRk\n?="}, "Mcp-Name"),
    ("base64 that is none", CALL, {"name": "=?base64?!!!?="}, "Mcp-Name"),
    ("an upper-case sentinel", CALL, {"name": "=?BASE64?YWRk?="}, "Mcp-Name"),
]


@pytest.mark.parametrize(
    ("message", "changes"), [pytest.param(*row, id=name) for name, *row in AGREE]
)
async def test_routing_headers_that_agree_with_the_body_are_served(
    message: dict[str, Any], changes: dict[str, Any]
) -> None:
    """Spec 2026-07-28, basic/transports/streamable-http: Request Metadata."""
    reply = await post(bookshop(), message, routed(message, **changes))
    assert reply.status_code == 200
    assert "mcp-session-id" not in reply.headers


@pytest.mark.parametrize(
    ("message", "changes", "fault"),
    [pytest.param(*row, id=name) for name, *row in DISAGREE],
)
async def test_routing_headers_that_disagree_with_the_body_are_refused(
    message: dict[str, Any], changes: dict[str, Any], fault: str
) -> None:
    """Spec 2026-07-28, basic/transports/streamable-http: Server Validation."""
    calls: list[str] = []
    reply = await post(bookshop(calls), message, routed(message, **changes))
    answer = reply.json()
    text: str = answer["error"]["message"]
    assert (reply.status_code, calls) == (400, [])
    assert answer == error(-32020, text, request_id=1)
    assert text.startswith(f"Header mismatch: {fault}")


NAMES = [
    # What is called, and the header that names it: encoded where it must be.
    ("HDR-03 padded", " x ", sentinel(" x ")),
    ("HDR-03 beyond ASCII", "Załącznik", sentinel("Załącznik")),
    ("HDR-04 like a sentinel", "=?base64?dGVzdA==?=", sentinel("=?base64?dGVzdA==?=")),
    ("like half a sentinel", "=?base64?", "=?base64?"),
    ("a line break", "a\nb", sentinel("a\nb")),
    ("a comma", "a, b", "a, b"),
    ("an emoji", "🐟", sentinel("🐟")),
]


def named(name: str) -> App:
    app = App("named")

    @app.prompt(name=name)
    def prompt() -> str:
        return "found"

    return app


@pytest.mark.parametrize(
    ("name", "header"), [pytest.param(*row, id=label) for label, *row in NAMES]
)
async def test_a_name_that_fits_no_header_travels_encoded(
    name: str, header: str
) -> None:
    """Spec 2026-07-28, basic/transports/streamable-http: Value Encoding."""
    message = modern("prompts/get", {"name": name})
    assert dict(headers_of(message))["mcp-name"] == header
    reply = await post(named(name), message)
    assert result_of(reply)["messages"][0]["content"]["text"] == "found"


@pytest.mark.parametrize(
    ("name", "header"),
    [
        pytest.param(" x ", " x ", id="padded"),
        pytest.param("über", "über".encode(), id="HDR-04 raw UTF-8"),
        pytest.param("über", "über".encode("latin-1"), id="HDR-04 raw latin-1"),
        pytest.param(
            "=?base64?dGVzdA==?=", "=?base64?dGVzdA==?=", id="HDR-04 like a sentinel"
        ),
        pytest.param("test", "=?base64?dGVzdA?=", id="no canonical base64"),
        pytest.param("test", "=?base64?dGVzdB==?=", id="base64 with spare bits"),
        pytest.param("x", "x\x00", id="a NUL"),
    ],
)
async def test_a_name_that_should_travel_encoded_is_refused_as_it_is(
    name: str, header: str | bytes
) -> None:
    """Spec 2026-07-28, basic/transports/streamable-http: Value Encoding."""
    message = modern("prompts/get", {"name": name})
    reply = await post(named(name), message, routed(message, name=header))
    text = reply.json()["error"]["message"]
    assert (reply.status_code, reply.json()) == (
        400,
        error(-32020, text, request_id=1),
    )


async def test_the_uri_of_a_resource_beyond_ascii_is_found() -> None:
    """HDR-03. Spec 2026-07-28: Value Encoding."""
    app = App("files")
    uri = "file:///Załączniki/raport.pdf"

    @app.resource(uri)
    def report() -> str:
        return "found"

    reply = await post(app, modern("resources/read", {"uri": uri}))
    assert result_of(reply)["contents"][0]["text"] == "found"


async def test_the_value_that_is_compared_is_the_one_that_runs() -> None:
    """RPC-15. Keys are matched exactly, and of two equal ones the last counts."""
    calls: list[str] = []
    body = (
        b'{"jsonrpc":"2.0","id":1,"method":"tools/call","Method":"x","params":{'
        b'"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",'
        b'"io.modelcontextprotocol/clientCapabilities":{}},'
        b'"name":"whoami","Name":"fail","name\\u0000":"fail","name":"%b",'
        b'"arguments":{}}}'
    )
    app = bookshop(calls)
    headers = routed(modern("tools/call", {"name": "whoami"}))
    served = await post(app, body % b"whoami", headers, version=MODERN)
    refused = await post(app, body % b"fail", headers, version=MODERN)
    statuses = (served.status_code, refused.status_code)
    assert (statuses, calls) == ((200, 400), ["whoami"])


# Mcp-Param-*: spec 2026-07-28, Custom Headers from Tool Parameters.

SHIPPED = [
    # Arguments, and the lines of the headers that mirror them.
    ("a string", {"region": "north"}, {"region": "north"}),
    ("in upper case", {"region": "north"}, {"REGION": "north"}),
    ("white space", {"region": "north"}, {"region": " north\t"}),
    ("two equal lines", {"region": "north"}, {"region": ["north", "north"]}),
    ("encoded", {"region": "north"}, {"region": sentinel("north")}),
    ("empty", {"region": ""}, {"region": ""}),
    ("beyond ASCII", {"region": "世界"}, {"region": sentinel("世界")}),
    ("padded", {"region": " padded "}, {"region": "=?base64?IHBhZGRlZCA=?="}),
    (
        "a line break",
        {"region": "line1\nline2"},
        {"region": "=?base64?bGluZTEKbGluZTI=?="},
    ),
    (
        "like a sentinel",
        {"region": "=?base64?literal?="},
        {"region": "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?="},
    ),
    ("an integer", {"region": "n", "count": 42}, {"region": "n", "count": "42"}),
    (
        "HDR-09 an integer as a decimal",
        {"region": "n", "count": 42},
        {"region": "n", "count": "42.0"},
    ),
    (
        "HDR-09 an integer with a zero in front",
        {"region": "n", "count": 42},
        {"region": "n", "count": "042"},
    ),
    (
        "a decimal as an integer",
        {"region": "n", "count": 42.0},
        {"region": "n", "count": "42"},
    ),
    ("negative", {"region": "n", "count": -7}, {"region": "n", "count": "-7"}),
    (
        "the greatest",
        {"region": "n", "count": 2**53 - 1},
        {"region": "n", "count": "9007199254740991"},
    ),
    ("true", {"region": "n", "rush": True}, {"region": "n", "rush": "true"}),
    ("false", {"region": "n", "rush": False}, {"region": "n", "rush": "false"}),
]

NOT_SHIPPED = [
    # Arguments, the lines of the headers, and what is wrong.
    ("no header", {"region": "n"}, {}, "Region is missing"),
    ("no header of a number", {"region": "n", "count": 1}, {"region": "n"}, "Count"),
    ("another value", {"region": "n"}, {"region": "s"}, "Region does not match"),
    ("another case", {"region": "n"}, {"region": "N"}, "Region does not match"),
    ("no such argument", {}, {"region": "n"}, "Region is not in the body"),
    ("a null", {"region": None}, {"region": "n"}, "Region is not in the body"),
    ("HDR-07 two lines", {"region": "n"}, {"region": ["n", "s"]}, "Region"),
    (
        "no ASCII",
        {"region": "世界"},
        {"region": "世界".encode()},
        "Region is malformed",
    ),
    ("bad base64", {"region": "n"}, {"region": "=?base64?n?="}, "Region is malformed"),
    (
        "another number",
        {"region": "n", "count": 42},
        {"region": "n", "count": "43"},
        "Count does not match",
    ),
    (
        "a number in letters",
        {"region": "n", "count": 42},
        {"region": "n", "count": "forty-two"},
        "Count",
    ),
    (
        "another decimal",
        {"region": "n", "count": 42},
        {"region": "n", "count": "42.5"},
        "Count",
    ),
    (
        "HDR-09 beyond the safe integers",
        {"region": "n", "count": 2**53 + 1},
        {"region": "n", "count": "9007199254740993"},
        "Count",
    ),
    (
        "digits without end",
        {"region": "n", "count": 1},
        {"region": "n", "count": "1" * 5000},
        "Count",
    ),
    (
        "a boolean in upper case",
        {"region": "n", "rush": True},
        {"region": "n", "rush": "True"},
        "Rush",
    ),
    (
        "a boolean as a number",
        {"region": "n", "rush": True},
        {"region": "n", "rush": "1"},
        "Rush",
    ),
]


def shipped(arguments: dict[str, Any], lines: dict[str, Any]) -> tuple[Any, Lines]:
    message = modern("tools/call", {"name": "ship", "arguments": arguments})
    named = {f"mcp-param-{name}".lower(): value for name, value in lines.items()}
    return message, routed(message, **named)


@pytest.mark.parametrize(
    ("arguments", "lines"), [pytest.param(*row, id=name) for name, *row in SHIPPED]
)
async def test_parameter_headers_that_mirror_the_arguments_are_served(
    arguments: dict[str, Any], lines: dict[str, Any]
) -> None:
    """Spec 2026-07-28: Server Behavior for Custom Headers."""
    calls: list[str] = []
    reply = await post(bookshop(calls), *shipped(arguments, lines))
    assert (result_of(reply)["isError"], calls) == (False, ["ship"])


@pytest.mark.parametrize(
    ("arguments", "lines", "fault"),
    [pytest.param(*row, id=name) for name, *row in NOT_SHIPPED],
)
async def test_parameter_headers_that_contradict_the_arguments_are_refused(
    arguments: dict[str, Any], lines: dict[str, Any], fault: str
) -> None:
    """Spec 2026-07-28: Server Behavior for Custom Headers."""
    calls: list[str] = []
    reply = await post(bookshop(calls), *shipped(arguments, lines))
    text: str = reply.json()["error"]["message"]
    assert (reply.status_code, calls) == (400, [])
    assert reply.json() == error(-32020, text, request_id=1)
    assert text.startswith(f"Header mismatch: Mcp-Param-{fault}")


async def test_the_annotation_of_a_parameter_is_in_its_schema() -> None:
    """Spec 2026-07-28, server/tools: x-mcp-header."""
    reply = await post(bookshop(), modern("tools/list"))
    tools = {tool["name"]: tool for tool in result_of(reply)["tools"]}
    properties = tools["ship"]["inputSchema"]["properties"]
    assert {name: schema["x-mcp-header"] for name, schema in properties.items()} == {
        "region": "Region",
        "count": "Count",
        "rush": "Rush",
    }


@pytest.mark.parametrize("version", LEGACY_VERSIONS)
async def test_legacy_requests_are_not_held_against_routing_headers(
    version: str,
) -> None:
    """Spec 2025-11-25, basic/transports: only the version header is known."""
    strange = {"mcp-method": "x", "mcp-name": "x", "mcp-param-region": "x"}
    params = {"name": "ship", "arguments": {"region": "north"}}
    reply = await call(bookshop(), version, "tools/call", params, headers=strange)
    assert result_of(reply)["isError"] is False


LEGACY_VERSION_HEADERS = [
    # The lines of the version header of a `ping`, and what comes of it.
    ("none", [], 200),
    ("2025-11-25", ["2025-11-25"], 200),
    ("2024-11-05", ["2024-11-05"], 200),
    ("white space", [" 2025-06-18\t"], 200),
    ("two equal lines", ["2025-06-18", "2025-06-18"], 200),
    ("unknown", ["2099-01-01"], 400),
    ("empty", [""], 400),
    ("no version", ["x"], 400),
    ("modern, without an envelope", [MODERN], 400),
    ("two different lines", ["2025-06-18", "2025-11-25"], 400),
    ("a list", ["2025-06-18, 2025-06-18"], 400),
    ("beyond ASCII", ["\xff"], 400),
]


@pytest.mark.parametrize(
    ("lines", "status"),
    [pytest.param(*row, id=name) for name, *row in LEGACY_VERSION_HEADERS],
)
@pytest.mark.parametrize("in_session", [False, True], ids=["bare", "session"])
async def test_a_version_header_that_is_no_version_is_refused(
    lines: list[str], status: int, *, in_session: bool
) -> None:
    """Spec 2025-11-25, basic/transports: Protocol Version Header."""
    app = bookshop()
    headers = with_lines("mcp-protocol-version", lines, LEGACY)
    if in_session:
        headers = [*headers, ("mcp-session-id", await open_session(app))]
    reply = await post(app, legacy("ping"), headers)
    assert reply.status_code == status
    if status == 400:
        assert reply.json()["error"]["code"] in (-32602, -32020, -32022)
