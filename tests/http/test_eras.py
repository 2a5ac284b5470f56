"""One app, every behaviour, every revision: who is answered what.

The rows are methods, the columns revisions. A cell is the whole result, built
from that of the newest revision and what the older ones lack.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from pydantic import BaseModel

from mcpkit import App, ResourceLink, Result, ToolError
from mcpkit.protocol.capabilities import server_capabilities
from mcpkit.protocol.era import CLIENT_CAPABILITIES, PROTOCOL_VERSION, SERVER_INFO
from mcpkit.protocol.methods import METHODS
from mcpkit.protocol.versions import REVISIONS
from tests.http.bookshop import ASKED, bookshop
from tests.http.client import (
    JSON_HEADERS,
    LEGACY,
    LEGACY_VERSIONS,
    MODERN,
    VERSIONS,
    call,
    code_of,
    error,
    headers_of,
    initialize,
    legacy,
    modern,
    open_session,
    post,
    request,
    result_of,
    send,
)

ICONS = [{"src": "https://example.com/i.png", "mimeType": "image/png"}]
META = {"example.com/a": 1}
INFO = {
    "name": "shapes",
    "version": "1.0.0",
    "title": "Shapes",
    "description": "One of each.",
    "websiteUrl": "https://example.com",
    "icons": ICONS,
}
KINDS = ["tools", "resources", "prompts", "completions", "logging"]


class Total(BaseModel):
    """A result with a schema of its own."""

    sum: int


def shapes(**options: Any) -> App:
    """Build an app that uses all that only some revisions have."""
    app = App(
        "shapes",
        version="1.0.0",
        title="Shapes",
        description="One of each.",
        website_url="https://example.com",
        icons=ICONS,
        instructions="Add up.",
        **options,
    )

    @app.tool(title="Add", icons=ICONS, meta=META, annotations={"readOnlyHint": True})
    async def total(numbers: list[int]) -> Total:
        """Add numbers up."""
        return Total(sum=sum(numbers))

    @app.tool
    async def count() -> int:
        return 3

    @app.tool
    async def link() -> ResourceLink:
        return ResourceLink("shop://hours", name="hours", title="Hours")

    @app.tool
    async def fail() -> str:
        raise ToolError("Sold out.")

    @app.tool
    async def ask() -> Result:
        return Result.input_required({"sure": ASKED})

    add_what_is_read(app)
    return app


def add_what_is_read(app: App) -> None:
    @app.resource(
        "shop://hours", title="Hours", icons=ICONS, meta=META, mime_type="text/plain"
    )
    async def hours() -> str:
        return "9 to 5"

    @app.resource("books://{isbn}", title="Book", icons=ICONS, ttl_ms=5)
    async def book(isbn: str) -> dict[str, str]:
        return {"isbn": isbn}

    @app.prompt(title="Review", icons=ICONS, meta=META)
    async def review(title: str) -> str:
        """Review a book."""
        return f"Review {title}."

    @app.complete("review", "title")
    async def titles(value: str) -> list[str]:
        return [f"{value} Messiah"]


Cell = Mapping[str, Any]

SINCE_2025_11_25 = {"icons"}
SINCE_2025_06_18 = {"title", "outputSchema", "_meta", "structuredContent"}


def lacks(version: str) -> set[str]:
    revision = REVISIONS[version]
    lacking: set[str] = set()
    if not revision.icons:
        lacking |= SINCE_2025_11_25
    if not revision.definitions:
        lacking |= SINCE_2025_06_18
    return lacking


def cut(version: str, members: Cell) -> Cell:
    return {key: value for key, value in members.items() if key not in lacks(version)}


TOTAL = {
    "name": "total",
    "title": "Add",
    "description": "Add numbers up.",
    "icons": ICONS,
    "_meta": META,
    "inputSchema": {
        "type": "object",
        "properties": {"numbers": {"type": "array", "items": {"type": "integer"}}},
        "required": ["numbers"],
        "additionalProperties": False,
    },
    "outputSchema": {
        "description": "A result with a schema of its own.",
        "type": "object",
        "properties": {"sum": {"type": "integer"}},
        "required": ["sum"],
    },
    "annotations": {"readOnlyHint": True},
}
NO_ARGUMENTS = {"type": "object", "additionalProperties": False}
WRAPPED = {
    "type": "object",
    "properties": {"result": {"type": "integer"}},
    "required": ["result"],
}


def tools(version: str) -> Cell:
    schema = {"type": "integer"} if version == MODERN else WRAPPED
    count = {"name": "count", "inputSchema": NO_ARGUMENTS, "outputSchema": schema}
    plain = [
        {"name": name, "inputSchema": NO_ARGUMENTS} for name in ("link", "fail", "ask")
    ]
    every: list[Cell] = [TOTAL, count, *plain]
    return {"tools": [cut(version, tool) for tool in every]}


def text(value: str, *, failed: bool = False) -> Cell:
    return {"content": [{"type": "text", "text": value}], "isError": failed}


def counted(version: str) -> Cell:
    content = 3 if version == MODERN else {"result": 3}
    return cut(version, {**text("3"), "structuredContent": content})


def linked(version: str) -> Cell:
    link = {
        "type": "resource_link",
        "uri": "shop://hours",
        "name": "hours",
        "title": "Hours",
    }
    if not REVISIONS[version].definitions:
        return text("hours: shop://hours")
    return {"content": [link], "isError": False}


HOURS = {
    "uri": "shop://hours",
    "name": "hours",
    "title": "Hours",
    "icons": ICONS,
    "_meta": META,
    "mimeType": "text/plain",
}
BOOK = {"uriTemplate": "books://{isbn}", "name": "book", "title": "Book"}
REVIEW = {
    "name": "review",
    "title": "Review",
    "description": "Review a book.",
    "icons": ICONS,
    "_meta": META,
    "arguments": [{"name": "title", "required": True}],
}
REVIEWED = {
    "description": "Review a book.",
    "messages": [{"role": "user", "content": {"type": "text", "text": "Review Dune."}}],
}

# A name, the method, its params, the result of each revision, the cache hint.
RESULTS: list[tuple[str, str, dict[str, Any], Any, int | None]] = [
    ("list tools", "tools/list", {}, tools, 60_000),
    (
        "an object",
        "tools/call",
        {"name": "total", "arguments": {"numbers": [1, 2]}},
        lambda version: cut(
            version, {**text('{"sum":3}'), "structuredContent": {"sum": 3}}
        ),
        None,
    ),
    ("no object", "tools/call", {"name": "count"}, counted, None),
    ("a link", "tools/call", {"name": "link"}, linked, None),
    (
        "a tool that fails",
        "tools/call",
        {"name": "fail"},
        lambda _: text("Sold out.", failed=True),
        None,
    ),
    (
        "bad arguments",
        "tools/call",
        {"name": "total"},
        lambda _: text("numbers: missing", failed=True),
        None,
    ),
    (
        "list resources",
        "resources/list",
        {},
        lambda version: {"resources": [cut(version, HOURS)]},
        60_000,
    ),
    (
        "list templates",
        "resources/templates/list",
        {},
        lambda version: {"resourceTemplates": [cut(version, {**BOOK, "icons": ICONS})]},
        60_000,
    ),
    (
        "read a resource",
        "resources/read",
        {"uri": "shop://hours"},
        lambda _: {
            "contents": [
                {"uri": "shop://hours", "mimeType": "text/plain", "text": "9 to 5"}
            ]
        },
        60_000,
    ),
    (
        "read by a template",
        "resources/read",
        {"uri": "books://1"},
        lambda _: {
            "contents": [
                {
                    "uri": "books://1",
                    "mimeType": "application/json",
                    "text": '{"isbn":"1"}',
                }
            ]
        },
        5,
    ),
    (
        "list prompts",
        "prompts/list",
        {},
        lambda version: {"prompts": [cut(version, REVIEW)]},
        60_000,
    ),
    (
        "get a prompt",
        "prompts/get",
        {"name": "review", "arguments": {"title": "Dune"}},
        lambda _: REVIEWED,
        None,
    ),
    (
        "complete",
        "completion/complete",
        {
            "ref": {"type": "ref/prompt", "name": "review"},
            "argument": {"name": "title", "value": "Dune"},
        },
        lambda _: {"completion": {"values": ["Dune Messiah"]}},
        None,
    ),
]


def marked(result: Cell, ttl_ms: int | None) -> Cell:
    """Return a result with what only a modern one has."""
    hints = {} if ttl_ms is None else {"ttlMs": ttl_ms, "cacheScope": "private"}
    meta = {"_meta": {SERVER_INFO: INFO}}
    return {"resultType": "complete", **result, **hints, **meta}


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    ("method", "params", "cell", "ttl_ms"),
    [pytest.param(*row, id=name) for name, *row in RESULTS],
)
async def test_each_revision_gets_the_result_in_its_own_shape(
    method: str, params: dict[str, Any], cell: Any, ttl_ms: int | None, version: str
) -> None:
    """META-03, META-04, RPC-12. Spec of each revision: server."""
    reply = await call(shapes(), version, method, params)
    expected = cell(version)
    assert result_of(reply) == (
        marked(expected, ttl_ms) if version == MODERN else expected
    )


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    ("method", "params"),
    [pytest.param(*row[:2], id=name) for name, *row in RESULTS],
)
async def test_no_response_has_a_null_for_what_is_absent(
    method: str, params: dict[str, Any], version: str
) -> None:
    """RPC-12. Ours."""
    answer = (await call(shapes(), version, method, params)).json()
    assert set(answer) == {"jsonrpc", "id", "result"}
    assert None not in list(values(answer))


def values(value: Any) -> Iterator[Any]:
    yield value
    items = value.values() if isinstance(value, dict) else value
    if isinstance(value, (dict, list)):
        for item in items:
            yield from values(item)


ERRORS: list[tuple[str, str, dict[str, Any], Any, Any]] = [
    # A name, the method, its params, the error of the modern era and the legacy.
    (
        "RPC-13 unknown tool",
        "tools/call",
        {"name": "nope"},
        (200, -32602, "Unknown tool: nope"),
        (200, -32602, "Unknown tool: nope"),
    ),
    (
        "RPC-13 unknown prompt",
        "prompts/get",
        {"name": "nope"},
        (200, -32602, "Unknown prompt: nope"),
        (200, -32602, "Unknown prompt: nope"),
    ),
    (
        "RPC-13 unknown resource",
        "resources/read",
        {"uri": "nope://1"},
        (200, -32602, "Resource not found", {"uri": "nope://1"}),
        (200, -32002, "Resource not found", {"uri": "nope://1"}),
    ),
    (
        "no name",
        "tools/call",
        {},
        (200, -32602, "Invalid params: name must be a string"),
        (200, -32602, "Invalid params: name must be a string"),
    ),
    (
        "a bad cursor",
        "tools/list",
        {"cursor": "garbage"},
        (200, -32602, "Invalid cursor"),
        (200, -32602, "Invalid cursor"),
    ),
    (
        "RPC-10 unknown method",
        "foo/bar",
        {},
        (404, -32601, "Method not found"),
        (200, -32601, "Method not found"),
    ),
    (
        "an internal name of a method",
        "tools_list",
        {},
        (404, -32601, "Method not found"),
        (200, -32601, "Method not found"),
    ),
    (
        "a method in upper case",
        "Tools/List",
        {},
        (404, -32601, "Method not found"),
        (200, -32601, "Method not found"),
    ),
    (
        "an empty method",
        "",
        {},
        (404, -32601, "Method not found"),
        (200, -32601, "Method not found"),
    ),
    (
        "a question that cannot be asked",
        "tools/call",
        {"name": "ask"},
        (
            400,
            -32021,
            "Missing required client capability: elicitation",
            {"requiredCapabilities": {"elicitation": {"form": {}}}},
        ),
        (200, -32603, "MRTR input requests require protocol 2026-07-28"),
    ),
]


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    ("method", "params", "of_modern", "of_legacy"),
    [pytest.param(*row, id=name) for name, *row in ERRORS],
)
async def test_each_era_gets_its_own_errors(
    method: str,
    params: dict[str, Any],
    of_modern: tuple[Any, ...],
    of_legacy: tuple[Any, ...],
    version: str,
) -> None:
    """RPC-10, RPC-13. Spec 2026-07-28, basic/index: Error Codes."""
    reply = await call(shapes(), version, method, params)
    status, code, message, *data = of_modern if version == MODERN else of_legacy
    given = {"data": data[0]} if data else {}
    expected = error(code, message, request_id=1, **given)
    assert (reply.status_code, reply.json()) == (status, expected)


LEGACY_ALONE: list[tuple[str, dict[str, Any]]] = [
    ("initialize", initialize()["params"]),
    ("ping", {}),
    ("logging/setLevel", {"level": "info"}),
]


@pytest.mark.parametrize(
    ("method", "params"), [pytest.param(*row, id=row[0]) for row in LEGACY_ALONE]
)
async def test_what_only_the_legacy_era_has_is_no_modern_method(
    method: str, params: dict[str, Any]
) -> None:
    """RPC-10. Spec 2026-07-28, changelog."""
    for version in VERSIONS:
        reply = await call(shapes(), version, method, params)
        if version == MODERN:
            expected = error(-32601, "Method not found", request_id=1)
            assert (reply.status_code, reply.json()) == (404, expected)
        else:
            assert "error" not in reply.json()


UNROUTED = [
    "subscriptions/listen",
    "resources/subscribe",
    "resources/unsubscribe",
    "tasks/get",
    "sampling/createMessage",
    "elicitation/create",
    "roots/list",
]


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("method", [name for name in UNROUTED if name not in METHODS])
async def test_what_is_not_routed_is_not_found(method: str, version: str) -> None:
    """RPC-10. What comes with streams, and what a server does not serve."""
    params = {"uri": "shop://hours", "taskId": "1"}
    reply = await call(shapes(), version, method, params)
    if version != MODERN and method == "subscriptions/listen":
        # Its name says that the request is modern, and then it is malformed.
        assert (reply.status_code, code_of(reply)) == (400, -32602)
    else:
        expected = error(-32601, "Method not found", request_id=1)
        status = 404 if version == MODERN else 200
        assert (reply.status_code, reply.json()) == (status, expected)


async def test_discover_names_the_modern_versions() -> None:
    """Spec 2026-07-28, server/discover."""
    reply = await call(shapes(), MODERN, "server/discover")
    found = {
        "supportedVersions": [MODERN],
        "capabilities": server_capabilities(KINDS, "modern"),
        "instructions": "Add up.",
    }
    assert result_of(reply) == marked(found, 60_000)


IMPLEMENTATION = {
    "2025-11-25": INFO,
    "2025-06-18": {"name": "shapes", "version": "1.0.0", "title": "Shapes"},
    "2025-03-26": {"name": "shapes", "version": "1.0.0"},
}


@pytest.mark.parametrize("version", LEGACY_VERSIONS)
async def test_initialize_describes_the_server_as_the_revision_can(
    version: str,
) -> None:
    """Spec of each revision, basic/lifecycle: Initialization."""
    assert result_of(await post(shapes(), initialize(version))) == {
        "protocolVersion": version,
        "capabilities": server_capabilities(KINDS, "legacy"),
        "serverInfo": IMPLEMENTATION[version],
        "instructions": "Add up.",
    }


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    "method", ["tools/list", "resources/read", "prompts/get", "completion/complete"]
)
async def test_the_methods_of_a_kind_that_is_not_there_are_not_found(
    method: str, version: str
) -> None:
    """Ours: what is not declared does not exist."""
    params = {"name": "x", "uri": "x://y"}
    reply = await call(App("empty"), version, method, params)
    assert reply.json() == error(-32601, "Method not found", request_id=1)


# Which era a message is of.

UNVERSIONED: dict[str, Any] = {CLIENT_CAPABILITIES: {}}
ERA_OF: list[tuple[str, dict[str, Any], dict[str, str], int, int | None]] = [
    # A message, the version header, the status, and the error code if any.
    ("nothing says so", legacy("tools/list"), {}, 200, None),
    (
        "META-01 only the capabilities",
        legacy("tools/list", {"_meta": UNVERSIONED}),
        {},
        400,
        -32602,
    ),
    (
        "META-01 only the version",
        legacy("tools/list", {"_meta": {PROTOCOL_VERSION: MODERN}}),
        {},
        400,
        -32602,
    ),
    ("meta of another kind", legacy("tools/list", {"_meta": {"a": 1}}), {}, 200, None),
    ("meta that is none", legacy("tools/list", {"_meta": "x"}), {}, 200, None),
    (
        "META-01 meta that is none, modern",
        legacy("tools/list", {"_meta": "x"}),
        {"mcp-protocol-version": MODERN},
        400,
        -32602,
    ),
    ("SES-12 discover without meta", legacy("server/discover"), {}, 400, -32602),
    (
        "SES-12 discover with a legacy header",
        legacy("server/discover"),
        {"mcp-protocol-version": LEGACY},
        400,
        -32602,
    ),
    (
        "a modern header without meta",
        legacy("tools/list"),
        {"mcp-protocol-version": MODERN},
        400,
        -32602,
    ),
    (
        "an unknown header",
        legacy("tools/list"),
        {"mcp-protocol-version": "2099-01-01"},
        400,
        -32602,
    ),
    (
        "a legacy header",
        legacy("tools/list"),
        {"mcp-protocol-version": LEGACY},
        200,
        None,
    ),
    (
        "SES-12 initialize with meta of the modern era",
        initialize(_meta=modern("x")["params"]["_meta"]),
        {"mcp-protocol-version": MODERN, "mcp-method": "initialize"},
        404,
        -32601,
    ),
    (
        "initialize with a modern header",
        initialize(),
        {"mcp-protocol-version": MODERN},
        200,
        None,
    ),
]


@pytest.mark.parametrize(
    ("message", "headers", "status", "code"),
    [pytest.param(*row, id=name) for name, *row in ERA_OF],
)
async def test_the_era_of_a_message_is_in_itself(
    message: dict[str, Any], headers: dict[str, str], status: int, code: int | None
) -> None:
    """SES-12. Spec 2026-07-28, basic/versioning."""
    reply = await post(bookshop(), message, {**JSON_HEADERS, **headers})
    assert reply.status_code == status
    assert reply.json().get("error", {}).get("code") == code


META_FAULTS: list[tuple[str, dict[str, Any], str]] = [
    # What is changed in `_meta`, and the key that is told.
    ("no capabilities", {CLIENT_CAPABILITIES: None}, CLIENT_CAPABILITIES),
    ("capabilities in an array", {CLIENT_CAPABILITIES: []}, CLIENT_CAPABILITIES),
    ("a string as capabilities", {CLIENT_CAPABILITIES: "x"}, CLIENT_CAPABILITIES),
    ("a number as the version", {PROTOCOL_VERSION: 5}, PROTOCOL_VERSION),
    ("no version", {PROTOCOL_VERSION: None}, PROTOCOL_VERSION),
    (
        "half a client",
        {"io.modelcontextprotocol/clientInfo": {"name": "x"}},
        "io.modelcontextprotocol/clientInfo",
    ),
    (
        "a null client",
        {"io.modelcontextprotocol/clientInfo": None},
        "io.modelcontextprotocol/clientInfo",
    ),
    (
        "a level that is none",
        {"io.modelcontextprotocol/logLevel": "loud"},
        "io.modelcontextprotocol/logLevel",
    ),
    (
        "a list as the level",
        {"io.modelcontextprotocol/logLevel": ["info"]},
        "io.modelcontextprotocol/logLevel",
    ),
]


@pytest.mark.parametrize(
    ("changes", "key"), [pytest.param(*row, id=name) for name, *row in META_FAULTS]
)
async def test_a_malformed_envelope_is_told_by_its_key(
    changes: dict[str, Any], key: str
) -> None:
    """META-01. Spec 2026-07-28, basic/index: `_meta`."""
    calls: list[str] = []
    message = modern("tools/call", {"name": "whoami"})
    headers = headers_of(message)
    message["params"]["_meta"].update(changes)
    reply = await post(bookshop(calls), message, headers)
    answer = reply.json()
    text: str = answer["error"]["message"]
    assert (reply.status_code, calls) == (400, [])
    assert answer == error(-32602, text, request_id=1, data={"field": key})
    assert text.startswith(f"Invalid params: {key} must be ")


async def test_what_else_is_in_an_envelope_is_let_through() -> None:
    """META-01. Spec 2026-07-28, basic/index: `_meta`."""
    message = modern("tools/list")
    message["params"]["_meta"] |= {
        "io.modelcontextprotocol/clientInfo": {"name": "x", "version": "1", "a": 1},
        "io.modelcontextprotocol/logLevel": "debug",
        "example.com/trace": [1],
        "traceparent": "00-1-2-3",
    }
    assert result_of(await post(bookshop(), message))["_meta"] == {
        SERVER_INFO: {"name": "bookshop", "version": "1.0.0"}
    }


async def test_the_eras_take_turns_on_one_endpoint() -> None:
    """SES-12. A failed request never decides the era."""
    app = bookshop()
    broken = modern("tools/list")
    del broken["params"]["_meta"][CLIENT_CAPABILITIES]
    replies = []
    for _ in range(2):
        replies += [await post(app, message) for message in (broken, initialize())]
        replies += [
            await call(app, version, "tools/list")
            for version in (MODERN, LEGACY, MODERN)
        ]
    assert [reply.status_code for reply in replies] == [400, 200, 200, 200, 200] * 2


# An app of one era.


@pytest.mark.parametrize("version", [*LEGACY_VERSIONS, MODERN, "2099-01-01"])
async def test_a_modern_app_tells_who_initializes_what_it_speaks(version: str) -> None:
    """RPC-10, SES-12. Spec 2026-07-28, basic/versioning."""
    app = bookshop(eras={"modern"})
    reply = await post(app, initialize(version), JSON_HEADERS)
    data = {"supported": [MODERN], "requested": version}
    expected = error(-32022, "Unsupported protocol version", request_id=1, data=data)
    assert (reply.status_code, reply.json()) == (400, expected)


@pytest.mark.parametrize("version", LEGACY_VERSIONS)
@pytest.mark.parametrize("method", ["tools/list", "tools/call", "ping"])
async def test_a_modern_app_takes_no_legacy_request(method: str, version: str) -> None:
    """Spec 2026-07-28, basic/transports/streamable-http: Backward Compatibility."""
    calls: list[str] = []
    app = bookshop(calls, eras={"modern"})
    message, headers = request(version, method, {"name": "whoami"})
    reply = await post(app, message, headers, version=MODERN)
    assert (reply.status_code, code_of(reply), calls) == (400, -32602, [])
    assert reply.json()["error"]["data"] == {"field": PROTOCOL_VERSION}


async def test_a_modern_app_serves_the_modern_era() -> None:
    reply = await call(shapes(eras={"modern"}), MODERN, "tools/list")
    assert result_of(reply) == marked(tools(MODERN), 60_000)


async def test_a_modern_app_ends_no_session() -> None:
    """HTTP-12. Spec 2026-07-28: DELETE is 405."""
    reply = await send(bookshop(eras={"modern"}), "DELETE", {"mcp-session-id": "x"})
    assert (reply.status_code, reply.headers["allow"]) == (405, "POST")


@pytest.mark.parametrize("method", ["tools/list", "server/discover"])
async def test_a_legacy_app_takes_no_modern_request(method: str) -> None:
    """Spec 2026-07-28, basic/versioning: the client falls back."""
    reply = await call(bookshop(eras={"legacy"}), MODERN, method)
    data = {"supported": LEGACY_VERSIONS, "requested": MODERN}
    expected = error(-32022, "Unsupported protocol version", request_id=1, data=data)
    assert (reply.status_code, reply.json()) == (400, expected)


@pytest.mark.parametrize("version", LEGACY_VERSIONS)
async def test_a_legacy_app_serves_the_legacy_era(version: str) -> None:
    app = shapes(eras={"legacy"})
    await open_session(app, version)
    assert result_of(await call(app, version, "tools/list")) == tools(version)


# Cache hints.

RETRIES: list[tuple[str, dict[str, Any], tuple[int, str]]] = [
    ("a first request", {}, (60_000, "public")),
    ("answers", {"inputResponses": {}}, (0, "private")),
]


@pytest.mark.parametrize(
    ("extra", "hints"), [pytest.param(*row, id=name) for name, *row in RETRIES]
)
async def test_the_answer_to_a_retry_is_kept_by_nobody(
    extra: dict[str, Any], hints: tuple[int, str]
) -> None:
    """META-03. Spec 2026-07-28, server/utilities/caching."""
    app = shapes(cache_scope="public")
    reply = await call(app, MODERN, "resources/read", {"uri": "shop://hours", **extra})
    result = result_of(reply)
    assert (result["ttlMs"], result["cacheScope"]) == hints


async def test_a_question_is_kept_by_nobody() -> None:
    """META-03. Spec 2026-07-28, server/utilities/caching."""
    app = App("asks", cache_scope="public")

    @app.resource("shop://secret")
    async def secret() -> Result:
        return Result.input_required({"sure": ASKED})

    params = {"uri": "shop://secret"}
    able: dict[str, Any] = {"elicitation": {}}
    reply = await call(app, MODERN, "resources/read", params, capabilities=able)
    assert result_of(reply) == {
        "resultType": "input_required",
        "inputRequests": {"sure": ASKED},
        "_meta": {SERVER_INFO: {"name": "asks", "version": "0.1.0"}},
    }


async def test_a_question_is_answered_and_the_tool_run_again() -> None:
    """Spec 2026-07-28, basic/patterns/mrtr."""
    calls: list[str] = []
    app = bookshop(calls)
    params: dict[str, Any] = {"name": "order"}
    able: dict[str, Any] = {"elicitation": {}}
    first = await call(app, MODERN, "tools/call", params, capabilities=able)
    state = result_of(first)["requestState"]
    answers = {"sure": {"action": "accept", "content": {}}}
    retry = {**params, "requestState": state, "inputResponses": answers}
    second = await call(app, MODERN, "tools/call", retry, capabilities=able)
    assert result_of(second)["content"] == [{"type": "text", "text": "ordered"}]
    assert calls == ["order", "order"]


@pytest.mark.parametrize("version", VERSIONS)
async def test_pages_follow_one_another_in_every_revision(version: str) -> None:
    """PAG-01. Spec 2026-07-28, server/utilities/pagination."""
    app = shapes(page_size=2)
    names: list[str] = []
    params: dict[str, Any] = {}
    for _ in range(3):
        result = result_of(await call(app, version, "tools/list", params))
        names += [tool["name"] for tool in result["tools"]]
        params = {"cursor": result.get("nextCursor")}
    assert names == ["total", "count", "link", "fail", "ask"]
    assert params == {"cursor": None}


CURSORS: list[Any] = ["", "garbage", "eyJwYWdlIjotMX0", 5, True, [], {}]


@pytest.mark.parametrize("version", [MODERN, LEGACY])
@pytest.mark.parametrize("cursor", CURSORS)
@pytest.mark.parametrize("method", ["tools/list", "resources/list", "prompts/list"])
async def test_a_cursor_that_is_none_is_refused(
    method: str, cursor: Any, version: str
) -> None:
    """PAG-01. Spec 2026-07-28, server/utilities/pagination: Error Handling."""
    reply = await call(shapes(page_size=1), version, method, {"cursor": cursor})
    expected = error(-32602, "Invalid cursor", request_id=1)
    assert (reply.status_code, reply.json()) == (200, expected)


async def test_the_cursor_of_another_list_is_refused() -> None:
    """PAG-01. Ours."""
    app = shapes(page_size=1)
    cursor = result_of(await call(app, MODERN, "tools/list"))["nextCursor"]
    reply = await call(app, MODERN, "prompts/list", {"cursor": cursor})
    assert code_of(reply) == -32602
