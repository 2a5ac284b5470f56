"""Notifications and responses: accepted, and never answered, save one."""

import json
from typing import Any

import pytest

from mcpkit.protocol.era import CLIENT_CAPABILITIES, PROTOCOL_VERSION
from tests.http.bookshop import bookshop
from tests.http.client import (
    JSON_HEADERS,
    LEGACY,
    LEGACY_VERSIONS,
    MODERN,
    error,
    headers_of,
    modern,
    open_session,
    post,
)

META = {PROTOCOL_VERSION: MODERN, CLIENT_CAPABILITIES: {}}
NO_PARAMS = object()


def note(method: str, params: Any = NO_PARAMS) -> dict[str, Any]:
    message = {"jsonrpc": "2.0", "method": method}
    return message if params is NO_PARAMS else {**message, "params": params}


NOTES: list[tuple[str, dict[str, Any]]] = [
    ("initialized", note("notifications/initialized")),
    ("cancelled", note("notifications/cancelled", {"requestId": 1})),
    ("RPC-09 unknown", note("notifications/unknown", {"a": 1})),
    ("progress", note("notifications/progress", {"progressToken": 1, "progress": 1})),
    ("roots", note("notifications/roots/list_changed")),
    ("without a prefix", note("x")),
    ("an empty method", note("")),
    ("null params", note("notifications/unknown", None)),
    ("array params", note("notifications/unknown", [1])),
    ("RPC-09 tools/call", note("tools/call", {"name": "whoami"})),
    ("tools/list", note("tools/list")),
    ("initialize", note("initialize", {})),
    ("ping", note("ping")),
    ("a result", {"jsonrpc": "2.0", "id": 1, "result": {}}),
    ("a result of null", {"jsonrpc": "2.0", "id": 1, "result": None}),
    ("an error", {"jsonrpc": "2.0", "id": "a", "error": {"code": 1, "message": ""}}),
    ("an error of null", {"jsonrpc": "2.0", "id": None, "error": {}}),
]
notes = pytest.mark.parametrize(
    "message", [pytest.param(row, id=name) for name, row in NOTES]
)

HEADERS: list[tuple[str, dict[str, str]]] = [
    ("bare", JSON_HEADERS),
    ("modern", {**JSON_HEADERS, "mcp-protocol-version": MODERN}),
    *(
        (version, {**JSON_HEADERS, "mcp-protocol-version": version})
        for version in LEGACY_VERSIONS
    ),
]


@notes
@pytest.mark.parametrize(
    "headers", [pytest.param(row, id=name) for name, row in HEADERS]
)
async def test_what_asks_nothing_is_accepted_and_runs_nothing(
    message: dict[str, Any], headers: dict[str, str]
) -> None:
    """RPC-09. Spec 2026-07-28 and 2025-11-25: Sending Messages."""
    calls: list[str] = []
    reply = await post(bookshop(calls), json.dumps(message).encode(), headers)
    assert (reply.status_code, reply.content, calls) == (202, b"", [])
    assert "content-type" not in reply.headers


@notes
async def test_what_asks_nothing_is_accepted_in_a_session(
    message: dict[str, Any],
) -> None:
    """RPC-09. Spec 2025-11-25, basic/transports: Session Management."""
    app = bookshop(require_session=True)
    headers = {**JSON_HEADERS, "mcp-session-id": await open_session(app)}
    reply = await post(app, json.dumps(message).encode(), headers)
    assert (reply.status_code, reply.content) == (202, b"")


@notes
async def test_what_asks_nothing_is_not_heard_without_a_session_that_is_required(
    message: dict[str, Any],
) -> None:
    """SES-01. `initialize` itself opens one."""
    reply = await post(bookshop(require_session=True), json.dumps(message).encode())
    opens = message.get("method") == "initialize"
    assert reply.status_code == (202 if opens else 400)


@pytest.mark.parametrize("request_id", [1, "a", None, [], 1.5])
async def test_the_refusal_of_a_response_answers_no_request(request_id: Any) -> None:
    """Ours: the id of a response is one of the server's own."""
    response = {"jsonrpc": "2.0", "id": request_id, "result": {}}
    reply = await post(bookshop(require_session=True), response, JSON_HEADERS)
    fault = "Mcp-Session-Id is missing: send initialize first"
    expected = error(-32600, fault, request_id=None)
    assert (reply.status_code, reply.json()) == (400, expected)


MODERN_NOTES: list[tuple[str, dict[str, Any], dict[str, str], int]] = [
    # The message, its headers, and the status.
    ("RPC-09 no headers", note("notifications/cancelled", {"_meta": META}), {}, 202),
    (
        "other routing headers",
        note("notifications/cancelled", {"_meta": META}),
        {"mcp-method": "tools/call", "mcp-name": "x"},
        202,
    ),
    (
        "a malformed cancellation",
        note("notifications/cancelled", {"_meta": META, "requestId": {}}),
        {},
        202,
    ),
    ("no capabilities", note("x", {"_meta": {PROTOCOL_VERSION: MODERN}}), {}, 202),
    ("another header", note("x", {"_meta": META}), {"mcp-protocol-version": "x"}, 202),
    (
        "an unsupported version in the body",
        note("x", {"_meta": {**META, PROTOCOL_VERSION: "2099-01-01"}}),
        {},
        400,
    ),
    (
        "an unsupported version in the header",
        note("x"),
        {"mcp-protocol-version": "2099-01-01"},
        400,
    ),
]


@pytest.mark.parametrize(
    ("message", "headers", "status"),
    [pytest.param(*row, id=name) for name, *row in MODERN_NOTES],
)
async def test_of_a_modern_notification_only_the_version_matters(
    message: dict[str, Any], headers: dict[str, str], status: int
) -> None:
    """RPC-09. Spec 2026-07-28: header requirements of them are not defined."""
    reply = await post(bookshop(), message, {**JSON_HEADERS, **headers})
    assert reply.status_code == status
    if status == 202:
        assert reply.content == b""
    else:
        data = {"supported": [MODERN], "requested": "2099-01-01"}
        expected = error(-32022, "Unsupported protocol version", data=data)
        assert reply.json() == expected


async def test_a_modern_request_without_an_id_runs_nothing() -> None:
    """RPC-09."""
    calls: list[str] = []
    message = modern("tools/call", {"name": "whoami"})
    headers = headers_of(message)
    del message["id"]
    reply = await post(bookshop(calls), message, headers)
    assert (reply.status_code, reply.content, calls) == (202, b"", [])


CANCELLED: list[tuple[str, Any]] = [
    ("an integer", {"requestId": 1}),
    ("zero", {"requestId": 0}),
    ("negative", {"requestId": -1}),
    ("a string", {"requestId": "a"}),
    ("empty", {"requestId": ""}),
    ("256 bytes", {"requestId": "x" * 256}),
    ("256 bytes of two each", {"requestId": "ü" * 128}),
    ("a great integer", {"requestId": 2**70}),
    ("a reason", {"requestId": 1, "reason": "Too slow."}),
    ("no id", {}),
    # As ConduitMCP has it: null counts as missing here.
    ("null", {"requestId": None}),
    ("no params", NO_PARAMS),
]

MALFORMED: list[tuple[str, Any, str]] = [
    ("null params", None, "params"),
    ("array params", [], "params"),
    ("a string as params", "1", "params"),
    ("a number as params", 1, "params"),
    ("a decimal", {"requestId": 1.5}, "requestId"),
    ("an integral decimal", {"requestId": 1.0}, "requestId"),
    ("a boolean", {"requestId": True}, "requestId"),
    ("an object", {"requestId": {}}, "requestId"),
    ("an array", {"requestId": [1]}, "requestId"),
    ("257 bytes", {"requestId": "x" * 257}, "requestId"),
    ("258 bytes of two each", {"requestId": "ü" * 129}, "requestId"),
]
FAULTS = {
    "params": "Invalid params: params must be an object",
    "requestId": "Invalid params: requestId must be an integer, or a string of at "
    "most 256 bytes",
}


@pytest.mark.parametrize(
    "params", [pytest.param(row, id=name) for name, row in CANCELLED]
)
async def test_a_cancellation_of_what_does_not_run_is_accepted(params: Any) -> None:
    """Seed: ConduitMcp.Handler. Spec 2025-11-25, basic/utilities/cancellation."""
    reply = await post(bookshop(), note("notifications/cancelled", params))
    assert (reply.status_code, reply.content) == (202, b"")


@pytest.mark.parametrize(
    ("params", "field"), [pytest.param(*row, id=name) for name, *row in MALFORMED]
)
@pytest.mark.parametrize("version", [None, *LEGACY_VERSIONS])
async def test_a_malformed_cancellation_is_told_so(
    params: Any, field: str, version: str | None
) -> None:
    """Seed: ConduitMcp.Handler. Ours: 200, and an error with a null id."""
    named = {} if version is None else {"mcp-protocol-version": version}
    raw = json.dumps(note("notifications/cancelled", params)).encode()
    reply = await post(bookshop(), raw, {**JSON_HEADERS, **named})
    expected = error(-32602, FAULTS[field], request_id=None)
    assert (reply.status_code, reply.json()) == (200, expected)


async def test_a_notification_with_a_null_id_is_a_request_with_a_bad_one() -> None:
    """RPC-01. Spec 2025-11-25, basic/index: Notifications have no id."""
    message = {**note("notifications/initialized"), "id": None}
    headers = {**JSON_HEADERS, "mcp-protocol-version": LEGACY}
    reply = await post(bookshop(), message, headers)
    expected = error(-32600, "The id is not a string or an integer", request_id=None)
    assert (reply.status_code, reply.json()) == (400, expected)


@pytest.mark.parametrize(
    "method", ["notifications/initialized", "notifications/cancelled"]
)
@pytest.mark.parametrize("version", [MODERN, LEGACY])
async def test_a_notification_with_an_id_is_no_method(
    method: str, version: str
) -> None:
    """RPC-10. Ours."""
    message = {**note(method, {"_meta": META} if version == MODERN else {}), "id": 1}
    headers = {**JSON_HEADERS, "mcp-protocol-version": version, "mcp-method": method}
    reply = await post(bookshop(), message, headers)
    expected = error(-32601, "Method not found", request_id=1)
    assert (reply.status_code, reply.json()) == (
        404 if version == MODERN else 200,
        expected,
    )
