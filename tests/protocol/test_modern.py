"""A result as a response of 2026-07-28, and its HTTP status."""

import doctest
from typing import Any

import pytest
from mcp_types.methods import CACHEABLE_METHODS

from mcpkit.errors import ProtocolError, ScopeError
from mcpkit.protocol import modern as module
from mcpkit.protocol.content import Text, resource_contents
from mcpkit.protocol.jsonrpc import Encoded
from mcpkit.protocol.methods import METHODS, methods
from mcpkit.protocol.modern import (
    HTTP_STATUS,
    cacheable_methods,
    default_cache,
    http_status,
    resource_not_found,
    sendable,
    shape,
    to_response,
)
from mcpkit.protocol.results import Cache, Result
from tests.wire import NEVER_SENT, check_response

VERSION = "2026-07-28"
INFO = {"name": "bookshop", "version": "1"}
SERVER_INFO = {"io.modelcontextprotocol/serverInfo": INFO}
REQUEST_META: dict[str, Any] = {
    "io.modelcontextprotocol/protocolVersion": VERSION,
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/clientInfo": {"name": "c", "version": "1"},
    "io.modelcontextprotocol/logLevel": "info",
}
TEXT = {"type": "text", "text": "3"}
TOOL = {
    "name": "add",
    "title": "Add",
    "inputSchema": {"type": "object"},
    "outputSchema": {"type": "array"},
    "icons": [{"src": "https://example.com/a.png"}],
    "_meta": {"a": 1},
}
CONTENTS = resource_contents("a:b", "3", meta={"a": 1})
DEFAULT = {"ttlMs": 60_000, "cacheScope": "private"}
ASKED = {"ask": {"method": "roots/list"}}
TASK = {
    "taskId": "t",
    "status": "working",
    "createdAt": "2026-07-28T00:00:00Z",
    "lastUpdatedAt": "2026-07-28T00:00:00Z",
    "ttlMs": 60_000,
    "pollIntervalMs": 500,
}

SHAPED: list[tuple[str, str, Result, dict[str, Any]]] = [
    # id, method, result, members beside `_meta`
    (
        "a text",
        "tools/call",
        Result.text("3"),
        {"resultType": "complete", "content": [TEXT], "isError": False},
    ),
    (
        "structured content of any type",
        "tools/call",
        Result.structured([1]),
        {
            "resultType": "complete",
            "content": [{"type": "text", "text": "[1]"}],
            "structuredContent": [1],
            "isError": False,
        },
    ),
    (
        "structured content that is null",
        "tools/call",
        Result.structured(None),
        {
            "resultType": "complete",
            "content": [{"type": "text", "text": "null"}],
            "structuredContent": None,
            "isError": False,
        },
    ),
    (
        "NaN",
        "tools/call",
        Result.structured({"a": float("nan")}),
        {
            "resultType": "complete",
            "content": [{"type": "text", "text": '{"a":null}'}],
            "structuredContent": {"a": None},
            "isError": False,
        },
    ),
    (
        "content blocks",
        "tools/call",
        Result.content([Text("3"), {**TEXT, "_meta": {}}]),
        {
            "resultType": "complete",
            "content": [TEXT, {**TEXT, "_meta": {}}],
            "isError": False,
        },
    ),
    (
        "a failure",
        "tools/call",
        Result.error("3", cause=RuntimeError("secret")),
        {"resultType": "complete", "content": [TEXT], "isError": True},
    ),
    (
        "what has its form already",
        "tools/call",
        Result.raw({"structuredContent": {"a": 1}}),
        {
            "resultType": "complete",
            "content": [],
            "isError": False,
            "structuredContent": {"a": 1},
        },
    ),
    (
        "a list of tools, whole",
        "tools/list",
        Result.tools([TOOL], "c"),
        {"resultType": "complete", "tools": [TOOL], "nextCursor": "c", **DEFAULT},
    ),
    (
        "a list of resources",
        "resources/list",
        Result.resources([]),
        {"resultType": "complete", "resources": [], **DEFAULT},
    ),
    (
        "a list of templates",
        "resources/templates/list",
        Result.resource_templates([]),
        {"resultType": "complete", "resourceTemplates": [], **DEFAULT},
    ),
    (
        "a list of prompts",
        "prompts/list",
        Result.prompts([{"name": "p", "title": "P"}]),
        {
            "resultType": "complete",
            "prompts": [{"name": "p", "title": "P"}],
            **DEFAULT,
        },
    ),
    (
        "a resource",
        "resources/read",
        Result.resource_read(CONTENTS),
        {"resultType": "complete", "contents": [CONTENTS], **DEFAULT},
    ),
    (
        "a resource, for a time",
        "resources/read",
        Result.resource_read([], ttl_ms=0),
        {
            "resultType": "complete",
            "contents": [],
            "ttlMs": 0,
            "cacheScope": "private",
        },
    ),
    (
        "a resource, for everyone",
        "resources/read",
        Result.resource_read([], cache_scope="public"),
        {
            "resultType": "complete",
            "contents": [],
            "ttlMs": 60_000,
            "cacheScope": "public",
        },
    ),
    (
        "a discovery",
        "server/discover",
        Result.wire({"supportedVersions": [VERSION], "capabilities": {}}),
        {
            "resultType": "complete",
            "supportedVersions": [VERSION],
            "capabilities": {},
            **DEFAULT,
        },
    ),
    (
        "a prompt",
        "prompts/get",
        Result.prompt_get("3"),
        {
            "resultType": "complete",
            "messages": [{"role": "user", "content": TEXT}],
        },
    ),
    (
        "a completion",
        "completion/complete",
        Result.completion(["a"]),
        {"resultType": "complete", "completion": {"values": ["a"]}},
    ),
    (
        "a question",
        "tools/call",
        Result.input_required(ASKED, "s"),
        {
            "resultType": "input_required",
            "inputRequests": ASKED,
            "requestState": "s",
        },
    ),
    (
        "META-03 a question on a cacheable method",
        "resources/read",
        Result.input_required(request_state="s"),
        {"resultType": "input_required", "requestState": "s"},
    ),
    (
        "a question in wire form",
        "resources/read",
        Result.wire({"resultType": "input_required", "requestState": "s", **DEFAULT}),
        {"resultType": "input_required", "requestState": "s"},
    ),
    (
        "a task, flat, with its own ttlMs",
        "tools/call",
        Result.task(TASK),
        {"resultType": "task", **TASK},
    ),
    (
        "a task without an end",
        "tools/call",
        Result.task({**TASK, "ttlMs": None}),
        {"resultType": "task", **TASK, "ttlMs": None},
    ),
    (
        "a task in wire form",
        "tools/call",
        Result.wire({"resultType": "task", **TASK}),
        {"resultType": "task", **TASK},
    ),
]


@pytest.mark.parametrize(
    ("method", "result", "members"),
    [pytest.param(*row, id=name) for name, *row in SHAPED],
)
def test_a_result_becomes_a_response(
    method: str, result: Result, members: dict[str, Any]
) -> None:
    """Seed ConduitMcp.Protocol.Modern: to_response/4.

    Spec 2026-07-28, basic/index: Responses, and server/utilities/caching.
    """
    response = to_response(1, method, result, server_info=INFO)
    assert response == {
        "jsonrpc": "2.0",
        "id": 1,
        "result": {**members, "_meta": SERVER_INFO},
    }
    check_response(response, method, VERSION)


@pytest.mark.parametrize("result", [pytest.param(row[2], id=row[0]) for row in SHAPED])
def test_a_server_that_is_unknown_is_not_named(result: Result) -> None:
    """Seed ConduitMcp.Protocol.Modern: `:server_info`, omitted when absent."""
    assert "_meta" not in to_response(1, "tools/call", result)["result"]


def test_to_response_keeps_the_example_of_the_seed() -> None:
    """Seed ConduitMcp.Protocol.Modern: to_response/4, its first example."""
    assert to_response(1, "tools/call", Result.wire({"content": []})) == {
        "jsonrpc": "2.0",
        "id": 1,
        "result": {"content": [], "resultType": "complete"},
    }


def test_to_response_rewrites_the_error_of_the_seed() -> None:
    """Seed ConduitMcp.Protocol.Modern: to_response/4, its second example."""
    missing = ProtocolError(-32002, "Resource not found")
    assert to_response(1, "resources/read", missing) == {
        "jsonrpc": "2.0",
        "id": 1,
        "error": {"code": -32602, "message": "Resource not found"},
    }


def test_a_result_that_nests_deeper_than_a_message_may_is_sent() -> None:
    """Ours: the bounds are for what comes in."""
    value: Any = 1
    for _ in range(200):
        value = [value]
    result = to_response(1, "tools/call", Result.structured(value))["result"]
    assert result["structuredContent"] == value


@pytest.mark.parametrize("request_id", [0, "", "1", -1, 2**63], ids=repr)
def test_a_response_has_the_id_of_its_request(request_id: str | int) -> None:
    """Spec 2026-07-28, basic/index: Responses; RPC-03, RPC-04."""
    response = to_response(request_id, "tools/call", Result.text(""))
    assert repr(response["id"]) == repr(request_id)


META: list[tuple[str, Result, dict[str, Any]]] = [
    # id, result, `_meta` beside the server's
    ("none", Result.text("3"), {}),
    ("META-01 keys of the handler", Result.text("3", metadata={"a": 1}), {"a": 1}),
    ("keys of a raw result", Result.raw({"_meta": {"a": 1}}), {"a": 1}),
    (
        "both, of which metadata wins",
        Result.raw({"_meta": {"a": 1, "b": 2}}, metadata={"a": 3}),
        {"a": 3, "b": 2},
    ),
    ("`_meta` that is no object", Result.raw({"_meta": "x"}), {}),
    ("a null `_meta`", Result.raw({"_meta": None}, metadata={"a": 1}), {"a": 1}),
    ("keys of the request", Result.text("3", metadata=REQUEST_META), {}),
    ("keys of the request in a raw result", Result.raw({"_meta": REQUEST_META}), {}),
    (
        "keys of the request and others",
        Result.text("3", metadata={**REQUEST_META, "progressToken": 0, "a": None}),
        {"progressToken": 0, "a": None},
    ),
    (
        "another key of the protocol",
        Result.subscription({"io.modelcontextprotocol/subscriptionId": 0}),
        {"io.modelcontextprotocol/subscriptionId": 0},
    ),
    (
        "another server",
        Result.text("3", metadata=dict.fromkeys(SERVER_INFO, 1)),
        {},
    ),
]


@pytest.mark.parametrize(
    ("result", "meta"), [pytest.param(*row, id=name) for name, *row in META]
)
def test_a_result_has_the_keys_of_its_handler_and_the_server(
    result: Result, meta: dict[str, Any]
) -> None:
    """Seed ConduitMcp.Protocol.Modern: the reserved-key rule.

    Spec 2026-07-28, basic/index: `_meta`, per-response protocol fields.
    """
    shaped = shape("tools/call", result, server_info=INFO)
    assert shaped["_meta"] == {**meta, **SERVER_INFO}


def test_shaping_leaves_the_result_as_it_was() -> None:
    meta = {**REQUEST_META, "a": 1}
    given = {
        "resultType": "input_required",
        "_meta": meta,
        "ttlMs": 1,
        "cacheScope": "x",
    }
    shape("resources/read", Result.wire(given, metadata=meta), server_info=INFO)
    assert given == {
        "resultType": "input_required",
        "_meta": {**REQUEST_META, "a": 1},
        "ttlMs": 1,
        "cacheScope": "x",
    }


def test_encoded_members_stay_encoded() -> None:
    """Ours: a structured value is encoded once."""
    shaped = shape("tools/call", Result.structured({"a": 1}))
    assert shaped["structuredContent"] == Encoded(b'{"a":1}')


APP = Cache(ttl_ms=5, scope="public")

HINTS: list[tuple[str, dict[str, Any], Cache | None, bool, tuple[int, str]]] = [
    # id, hints of the result, hints of the app, whether it is a retry, what is sent
    ("none", {}, None, False, (60_000, "private")),
    ("the app's", {}, APP, False, (5, "public")),
    ("the result's time", {"ttl_ms": 0}, APP, False, (0, "public")),
    ("the result's scope", {"cache_scope": "private"}, APP, False, (5, "private")),
    (
        "the result's",
        {"ttl_ms": 7, "cache_scope": "private"},
        APP,
        False,
        (7, "private"),
    ),
    ("on a retry", {}, None, True, (0, "private")),
    ("on a retry, whatever the app has", {}, APP, True, (0, "private")),
    (
        "on a retry, whatever the result has",
        {"ttl_ms": 7, "cache_scope": "public"},
        APP,
        True,
        (0, "private"),
    ),
]


@pytest.mark.parametrize(
    ("own", "cache", "retry", "sent"),
    [pytest.param(*row, id=name) for name, *row in HINTS],
)
def test_the_closest_cache_hints_are_sent(
    own: dict[str, Any], cache: Cache | None, *, retry: bool, sent: tuple[int, str]
) -> None:
    """Seeds ConduitMcp.Protocol.Modern: `:cache`; Snodo.Result: resource_read/2.

    Spec 2026-07-28, server/utilities/caching: Cache Key.
    """
    result = Result.resource_read(CONTENTS, **own)
    shaped = shape("resources/read", result, cache=cache, retry=retry)
    assert (shaped["ttlMs"], shaped["cacheScope"]) == sent


@pytest.mark.parametrize("method", [*methods("modern"), "foo/bar", None])
def test_only_cacheable_methods_have_cache_hints(method: str | None) -> None:
    """Spec 2026-07-28, server/utilities/caching: Cacheable Results; META-03."""
    shaped = shape(method, Result.wire({}))
    hinted = method is not None and method in METHODS and METHODS[method].cacheable
    assert shaped == {"resultType": "complete", **(DEFAULT if hinted else {})}


@pytest.mark.parametrize("method", sorted(CACHEABLE_METHODS))
def test_what_is_not_complete_has_no_cache_hints_on_any_method(method: str) -> None:
    """Seed ConduitMcp.Protocol.Modern: never `ttlMs`/`cacheScope`, on any method."""
    interim = [Result.input_required(ASKED), Result.wire({"resultType": "task"})]
    assert [shape(method, result, cache=APP) for result in interim] == [
        {"resultType": "input_required", "inputRequests": ASKED},
        {"resultType": "task"},
    ]


def test_cacheable_methods_lists_the_six() -> None:
    """Seed ConduitMcp.Protocol.Modern: cacheable_methods/0."""
    assert cacheable_methods() == [
        "prompts/list",
        "resources/list",
        "resources/read",
        "resources/templates/list",
        "server/discover",
        "tools/list",
    ]


def test_default_cache_is_a_minute_in_private() -> None:
    """Seed ConduitMcp.Protocol.Modern: default_cache/0."""
    assert default_cache() == Cache(ttl_ms=60_000, scope="private")


def test_resource_not_found_is_invalid_params() -> None:
    """Seed ConduitMcp.Protocol.Modern: resource_not_found/0."""
    assert resource_not_found() == -32602


VERBATIM: list[tuple[str, ProtocolError]] = [
    # id, error
    *(
        (str(code), ProtocolError(code, "No", {"a": None}))
        for code in (-32700, -32600, -32601, -32602, -32603)
    ),
    ("-32020", ProtocolError(-32020, "No", None)),
    ("-32021", ProtocolError(-32021, "No", {"requiredCapabilities": {}})),
    ("-32022", ProtocolError(-32022, "No", {"supported": [], "requested": ""})),
    *((str(code), ProtocolError(code, "No")) for code in (-32000, -32019, -32100)),
    *((str(code), ProtocolError(code, "No")) for code in (0, 1, -1, 2**40)),
    ("a missing scope", ScopeError(["b", "a"])),
    ("null data", ProtocolError(-32602, "No", None)),
]


@pytest.mark.parametrize(
    "error", [pytest.param(error, id=name) for name, error in VERBATIM]
)
def test_an_error_is_sent_as_it_is(error: ProtocolError) -> None:
    """Spec 2026-07-28, basic/index: Error Codes."""
    assert sendable(error) is error
    response = to_response(1, "tools/call", error)
    assert response["error"]["code"] == error.code
    assert response["error"]["message"] == error.message
    check_response(response, "tools/call", VERSION)


@pytest.mark.parametrize("code", sorted(NEVER_SENT - {-32002}))
def test_a_code_that_may_not_be_sent_is_an_internal_error(code: int) -> None:
    """Spec 2026-07-28, basic/index: Error Codes; ERR-04."""
    response = to_response(1, "tools/call", ProtocolError(code, "secret", {"a": 1}))
    assert response["error"] == {"code": -32603, "message": "Internal error"}


def test_a_missing_resource_keeps_its_message_and_data() -> None:
    """Seed ConduitMcp.Protocol.Modern: -32002 becomes -32602; ERR-04."""
    missing = ProtocolError(-32002, "Resource not found", {"uri": "a:b"})
    assert to_response(1, "resources/read", missing) == {
        "jsonrpc": "2.0",
        "id": 1,
        "error": {
            "code": -32602,
            "message": "Resource not found",
            "data": {"uri": "a:b"},
        },
    }


STATUSES: list[tuple[int, int]] = [
    # code, status
    (-32020, 400),
    (-32021, 400),
    (-32022, 400),
    (-32601, 404),
    (-32700, 200),
    (-32600, 200),
    (-32602, 200),
    (-32603, 200),
    (-32000, 200),
    (-32002, 200),
    (-32042, 200),
    (-32023, 200),
    (0, 200),
    (1, 200),
]


@pytest.mark.parametrize(("code", "status"), STATUSES)
def test_a_code_and_its_response_have_one_status(code: int, status: int) -> None:
    """Seed ConduitMcp.Protocol.Modern: http_status/1.

    Spec 2026-07-28, basic/transports/streamable-http, and basic/index: `_meta`.
    """
    response = {"jsonrpc": "2.0", "id": 1, "error": {"code": code, "message": "No"}}
    assert (http_status(code), http_status(response)) == (status, status)


@pytest.mark.parametrize("result", [pytest.param(row[2], id=row[0]) for row in SHAPED])
def test_every_result_has_status_200(result: Result) -> None:
    """Seed ConduitMcp.Protocol.Modern: http_status/1, results are 200."""
    assert http_status(to_response(1, "tools/call", result)) == 200


def test_the_table_of_statuses_has_nothing_else() -> None:
    assert dict(HTTP_STATUS) == {
        code: status for code, status in STATUSES if status != 200
    }


def test_the_examples_hold() -> None:
    """Seed ConduitMcp.Protocol.Modern: its examples are the doctests."""
    result = doctest.testmod(module)
    assert (result.failed, result.attempted > 0) == (0, True)
