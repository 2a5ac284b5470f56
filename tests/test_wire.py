"""The check of messages lets good ones pass, and truly fails on bad ones."""

from typing import Any

import pytest

from mcpkit.protocol.versions import REVISIONS
from tests.wire import LATER, check_response

MODERN, LATEST, MIDDLE, OLD = "2026-07-28", "2025-11-25", "2025-06-18", "2025-03-26"
SERVER_INFO = {"io.modelcontextprotocol/serverInfo": {"name": "s", "version": "1"}}
CACHE = {"ttlMs": 0, "cacheScope": "private"}
TEXT = {"type": "text", "text": "3"}
LINK = {"type": "resource_link", "uri": "a:b", "name": "n"}
TOOL = {"name": "add", "inputSchema": {"type": "object"}}
BAD_SCHEMA = {"type": "object", "properties": {"a": {"type": "text"}}}
ICONS = [{"src": "https://example.com/a.png", "mimeType": "image/png"}]
ASK = {
    "method": "elicitation/create",
    "params": {
        "mode": "form",
        "message": "Really?",
        "requestedSchema": {"type": "object", "properties": {}},
    },
}
TASK = {
    "taskId": "t",
    "status": "working",
    "createdAt": "2026-07-28T00:00:00Z",
    "lastUpdatedAt": "2026-07-28T00:00:00Z",
    "ttlMs": None,
}
LEGACY_TASK = {
    **{key: value for key, value in TASK.items() if key != "ttlMs"},
    "ttl": None,
}


def ok(result: Any, **members: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 1, "result": result, **members}


def complete(**members: Any) -> dict[str, Any]:
    return ok({"resultType": "complete", **members})


def failed(code: Any, **members: Any) -> dict[str, Any]:
    error = {"code": code, "message": "No", **members}
    return {"jsonrpc": "2.0", "id": 1, "error": error}


VALID = [
    # id, version, method, message
    (
        "modern call",
        MODERN,
        "tools/call",
        complete(content=[TEXT], structuredContent=[1, None], isError=False),
    ),
    ("modern link", MODERN, "tools/call", complete(content=[LINK])),
    ("modern list", MODERN, "tools/list", complete(tools=[TOOL], **CACHE)),
    (
        "modern icons",
        MODERN,
        "tools/list",
        complete(tools=[{**TOOL, "icons": ICONS}], **CACHE),
    ),
    (
        "modern discover",
        MODERN,
        "server/discover",
        complete(
            supportedVersions=[MODERN],
            capabilities={"tools": {"listChanged": True}},
            _meta=SERVER_INFO,
            **CACHE,
        ),
    ),
    (
        "modern question",
        MODERN,
        "tools/call",
        ok({"resultType": "input_required", "inputRequests": {"ask": ASK}}),
    ),
    (
        "modern state alone",
        MODERN,
        "resources/read",
        ok({"resultType": "input_required", "requestState": "s"}),
    ),
    ("modern task", MODERN, "tools/call", ok({"resultType": "task", **TASK})),
    ("modern error", MODERN, "foo/bar", failed(-32601)),
    (
        "modern error with no id",
        MODERN,
        "",
        {"jsonrpc": "2.0", "error": {"code": -32700, "message": "Parse error"}},
    ),
    (
        "modern unsupported version",
        MODERN,
        "tools/list",
        failed(-32022, data={"supported": [MODERN], "requested": "1900-01-01"}),
    ),
    ("falsy id", LATEST, "ping", ok({}, id="")),
    ("legacy call", LATEST, "tools/call", ok({"content": [LINK], "isError": False})),
    ("legacy icons", LATEST, "tools/list", ok({"tools": [{**TOOL, "icons": ICONS}]})),
    ("legacy title", MIDDLE, "tools/list", ok({"tools": [{**TOOL, "title": "Add"}]})),
    ("old call", OLD, "tools/call", ok({"content": [TEXT]})),
    (
        "old annotations have a title",
        OLD,
        "tools/list",
        ok({"tools": [{**TOOL, "annotations": {"title": "Add"}}]}),
    ),
    ("legacy task", LATEST, "tools/call", ok({"task": LEGACY_TASK})),
    ("legacy state of a task", LATEST, "tasks/get", ok(LEGACY_TASK)),
    ("legacy tasks", LATEST, "tasks/list", ok({"tasks": [LEGACY_TASK]})),
    ("legacy error code", LATEST, "resources/read", failed(-32002, data={"uri": "a:"})),
    ("legacy error with a null id", LATEST, "", {**failed(-32600), "id": None}),
    (
        "legacy initialize",
        LATEST,
        "initialize",
        ok(
            {
                "protocolVersion": LATEST,
                "capabilities": {},
                "serverInfo": {"name": "s", "version": "1"},
            }
        ),
    ),
]


@pytest.mark.parametrize(
    ("version", "method", "message"),
    [pytest.param(*row, id=name) for name, *row in VALID],
)
def test_a_valid_response_passes(
    version: str, method: str, message: dict[str, Any]
) -> None:
    check_response(message, method, version)


INVALID = [
    # id, version, method, message, what is said
    ("no JSON-RPC", MODERN, "ping", {"id": 1, "result": {}}, "no JSON-RPC"),
    ("an array", MODERN, "ping", [complete()], "not an object"),
    ("an id that is null", LATEST, "ping", ok({}, id=None), "no request id"),
    ("an id that is true", LATEST, "ping", ok({}, id=True), "no request id"),
    ("an id that is a fraction", LATEST, "ping", ok({}, id=1.5), "no request id"),
    ("a null error", LATEST, "ping", ok({}, error=None), "unknown keys"),
    ("a stray key", LATEST, "ping", ok({}, method="ping"), "unknown keys"),
    ("a null result", LATEST, "ping", ok(None), "no result"),
    ("an unknown version", "1900-01-01", "ping", ok({}), "not a revision"),
    ("a legacy method", MODERN, "ping", complete(), "has no ping"),
    ("a modern method", LATEST, "server/discover", ok({}), "has no server/discover"),
    ("no resultType", MODERN, "tools/call", ok({"content": []}), "no resultType"),
    (
        "an odd resultType",
        MODERN,
        "tools/call",
        ok({"resultType": "partial", "content": []}),
        "no resultType",
    ),
    (
        "content with the type of a question",
        MODERN,
        "tools/call",
        ok({"resultType": "input_required", "content": []}),
        "neither inputRequests",
    ),
    (
        "a question that may be cached",
        MODERN,
        "resources/read",
        ok({"resultType": "input_required", "requestState": "s", **CACHE}),
        "Additional properties",
    ),
    (
        "a question where none may be",
        MODERN,
        "tools/list",
        ok({"resultType": "input_required", "requestState": "s"}),
        "no result of type",
    ),
    (
        "a task without its ttlMs",
        MODERN,
        "tools/call",
        ok(
            {
                "resultType": "task",
                **{key: value for key, value in TASK.items() if key != "ttlMs"},
            }
        ),
        "'ttlMs' is a required property",
    ),
    (
        "a legacy task with the ttlMs of a modern one",
        LATEST,
        "tools/call",
        ok({"task": {**LEGACY_TASK, "ttlMs": None}}),
        "Additional properties",
    ),
    (
        "a legacy state that is wrapped",
        LATEST,
        "tasks/get",
        ok({"task": LEGACY_TASK}),
        "Additional properties",
    ),
    ("tasks in 2025-06-18", MIDDLE, "tasks/list", ok({"tasks": []}), "has no tasks"),
    ("no ttlMs", MODERN, "tools/list", complete(tools=[]), "required property"),
    (
        "a negative ttlMs",
        MODERN,
        "tools/list",
        complete(tools=[], ttlMs=-1, cacheScope="private"),
        "minimum",
    ),
    (
        "a ttlMs in a string",
        MODERN,
        "tools/list",
        complete(tools=[], ttlMs="0", cacheScope="private"),
        "not of type 'integer'",
    ),
    (
        "an odd cacheScope",
        MODERN,
        "tools/list",
        complete(tools=[], ttlMs=0, cacheScope="shared"),
        "not one of",
    ),
    (
        "cache hints on a call",
        MODERN,
        "tools/call",
        complete(content=[], **CACHE),
        "Additional properties",
    ),
    (
        "icons that are a string",
        MODERN,
        "tools/list",
        complete(tools=[{**TOOL, "icons": "a.png"}], **CACHE),
        "not of type 'array'",
    ),
    (
        "a null cursor",
        MODERN,
        "tools/list",
        complete(tools=[], nextCursor=None, **CACHE),
        "not of type 'string'",
    ),
    (
        "a null description",
        LATEST,
        "tools/list",
        ok({"tools": [{**TOOL, "description": None}]}),
        "not of type 'string'",
    ),
    (
        "an input schema that is none",
        LATEST,
        "tools/list",
        ok({"tools": [{"name": "add", "inputSchema": BAD_SCHEMA}]}),
        "inputSchema of add",
    ),
    (
        "a request's key in _meta",
        MODERN,
        "tools/call",
        complete(content=[], _meta={"io.modelcontextprotocol/logLevel": "info"}),
        "_meta of a result has",
    ),
    (
        "a server with no version",
        MODERN,
        "tools/call",
        complete(
            content=[],
            _meta={"io.modelcontextprotocol/serverInfo": {"name": "s"}},
        ),
        "serverInfo",
    ),
    (
        "an odd block",
        MODERN,
        "tools/call",
        complete(content=[{"type": "txt", "text": "3"}]),
        "content",
    ),
    (
        "a block with an odd key",
        MODERN,
        "tools/call",
        complete(content=[{**TEXT, "icons": []}]),
        "content",
    ),
    (
        "modern marks on legacy",
        LATEST,
        "tools/call",
        ok({"content": [], "resultType": "complete"}),
        "Additional properties",
    ),
    (
        "cache hints on legacy",
        LATEST,
        "tools/list",
        ok({"tools": [], **CACHE}),
        "Additional properties",
    ),
    ("a ping that says something", LATEST, "ping", ok({"a": 1}), "Additional"),
    (
        "structured content that is no object",
        LATEST,
        "tools/call",
        ok({"content": [], "structuredContent": [1]}),
        "not of type 'object'",
    ),
    (
        "an output schema that is no object's",
        LATEST,
        "tools/list",
        ok({"tools": [{**TOOL, "outputSchema": {"type": "array"}}]}),
        "'object' was expected",
    ),
    (
        "icons before their time",
        MIDDLE,
        "tools/list",
        ok({"tools": [{**TOOL, "icons": ICONS}]}),
        "'icons' was unexpected",
    ),
    (
        "a website before its time",
        MIDDLE,
        "initialize",
        ok(
            {
                "protocolVersion": MIDDLE,
                "capabilities": {},
                "serverInfo": {
                    "name": "s",
                    "version": "1",
                    "websiteUrl": "https://example.com",
                },
            }
        ),
        "'websiteUrl' was unexpected",
    ),
    (
        "a title before its time",
        OLD,
        "tools/list",
        ok({"tools": [{**TOOL, "title": "Add"}]}),
        "'title' was unexpected",
    ),
    ("a link before its time", OLD, "tools/call", ok({"content": [LINK]}), "content"),
    (
        "structured content before its time",
        OLD,
        "tools/call",
        ok({"content": [], "structuredContent": {}}),
        "'structuredContent' was unexpected",
    ),
    ("a code in a string", LATEST, "ping", failed("-32600"), "not an error code"),
    ("a code that is true", LATEST, "ping", failed(code=True), "not an error code"),
    ("an odd error", LATEST, "ping", {**failed(-32600), "error": "No"}, "error object"),
    ("an error with an odd key", LATEST, "ping", failed(-32600, cause=""), "unknown"),
    (
        "an error without a message",
        LATEST,
        "ping",
        {"jsonrpc": "2.0", "id": 1, "error": {"code": 1}},
        "no message",
    ),
    ("a modern error with a null id", MODERN, "", {**failed(-32600), "id": None}, "id"),
    (
        "a legacy error with no id",
        LATEST,
        "",
        {"jsonrpc": "2.0", "error": {"code": -32700, "message": "Parse error"}},
        "not an id",
    ),
    ("an error without its data", MODERN, "tools/list", failed(-32022), "no data"),
    (
        "an error with other data",
        MODERN,
        "tools/list",
        failed(-32022, data={"supported": MODERN, "requested": ""}),
        "data of -32022",
    ),
]


@pytest.mark.parametrize(
    ("version", "method", "message", "fault"),
    [pytest.param(*row, id=name) for name, *row in INVALID],
)
def test_an_invalid_response_fails(
    version: str, method: str, message: Any, fault: str
) -> None:
    with pytest.raises(AssertionError, match=fault):
        check_response(message, method, version)


@pytest.mark.parametrize("code", [-32002, -32042, -32023, -32050, -32099])
def test_a_retired_or_undefined_code_fails_in_the_modern_era(code: int) -> None:
    """Spec 2026-07-28, basic/index: Error Codes."""
    with pytest.raises(AssertionError, match="is not sent"):
        check_response(failed(code), "tools/call", MODERN)


def test_the_table_names_every_revision_that_is_served() -> None:
    assert LATER.keys() == REVISIONS.keys()
