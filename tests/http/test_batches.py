"""Batches: answered in 2025-03-26, which has them, and refused everywhere else."""

import json
from typing import Any

import pytest

from mcpkit.dispatch import MAX_BATCH
from tests.http.bookshop import bookshop
from tests.http.client import (
    JSON_HEADERS,
    LEGACY,
    MODERN,
    error,
    initialize,
    legacy,
    modern,
    open_session,
    post,
)

WITH_BATCHES = "2025-03-26"


def add(request_id: Any, a: int = 1) -> dict[str, Any]:
    params = {"name": "add", "arguments": {"a": a, "b": 1}}
    return legacy("tools/call", params, request_id=request_id)


def sum_of(request_id: Any, value: int) -> dict[str, Any]:
    content = [{"type": "text", "text": str(value)}]
    result = {"content": content, "isError": False}
    return {"jsonrpc": "2.0", "id": request_id, "result": result}


def note(method: str = "notifications/initialized") -> dict[str, Any]:
    return {"jsonrpc": "2.0", "method": method}


PONG = {"jsonrpc": "2.0", "id": 1, "result": {}}
RESPONSE = {"jsonrpc": "2.0", "id": 7, "result": {}}
NOT_IN_A_BATCH = "Not possible in a batch"

ANSWERED: list[tuple[str, list[Any], list[Any]]] = [
    ("one", [legacy("ping")], [PONG]),
    ("two, in turn", [add(1, 1), add("b", 2)], [sum_of(1, 2), sum_of("b", 3)]),
    ("the same id twice", [add(1, 1), add(1, 2)], [sum_of(1, 2), sum_of(1, 3)]),
    (
        "notifications and responses between requests",
        [note(), add(1), RESPONSE, add(2), note("notifications/unknown")],
        [sum_of(1, 2), sum_of(2, 2)],
    ),
    (
        "an error does not end it",
        [legacy("nope", request_id=0), add(1)],
        [error(-32601, "Method not found", request_id=0), sum_of(1, 2)],
    ),
    (
        "a malformed message does not end it",
        [1, {"jsonrpc": "2.0"}, {**add(3), "jsonrpc": "1.0"}, add(1)],
        [
            error(-32600, NOT_IN_A_BATCH, request_id=None),
            error(-32600, "Expected a method", request_id=None),
            error(-32600, 'Expected "jsonrpc": "2.0"', request_id=3),
            sum_of(1, 2),
        ],
    ),
    (
        "an id that is none",
        [{**add(1), "id": None}, add(1)],
        [
            error(-32600, "The id is not a string or an integer", request_id=None),
            sum_of(1, 2),
        ],
    ),
    (
        "a batch in a batch",
        [[add(1)], add(2)],
        [error(-32600, NOT_IN_A_BATCH, request_id=None), sum_of(2, 2)],
    ),
    (
        "initialize is sent alone",
        [initialize(), add(2)],
        [error(-32600, NOT_IN_A_BATCH, request_id=1), sum_of(2, 2)],
    ),
    (
        "a modern request is sent alone",
        [modern("tools/list", request_id="m"), add(2)],
        [error(-32600, NOT_IN_A_BATCH, request_id="m"), sum_of(2, 2)],
    ),
    (
        "server/discover is sent alone",
        [legacy("server/discover"), add(2)],
        [error(-32600, NOT_IN_A_BATCH, request_id=1), sum_of(2, 2)],
    ),
    (
        "a malformed cancellation",
        [{**note("notifications/cancelled"), "params": []}, add(2)],
        [
            error(-32602, "Invalid params: params must be an object", request_id=None),
            sum_of(2, 2),
        ],
    ),
    (
        "a request without an id never runs",
        [{key: value for key, value in add(1).items() if key != "id"}, add(2)],
        [sum_of(2, 2)],
    ),
]

HEADERS = [
    ("the version", {**JSON_HEADERS, "mcp-protocol-version": WITH_BATCHES}),
    ("no version", JSON_HEADERS),
    ("an older version", {**JSON_HEADERS, "mcp-protocol-version": "2024-11-05"}),
]
headers = pytest.mark.parametrize(
    "headers", [pytest.param(row, id=name) for name, row in HEADERS]
)


@headers
@pytest.mark.parametrize(
    ("batch", "answers"), [pytest.param(*row, id=name) for name, *row in ANSWERED]
)
async def test_a_batch_is_answered_in_the_revision_that_has_them(
    batch: list[Any], answers: list[Any], headers: dict[str, str]
) -> None:
    """Spec 2025-03-26, basic/index: Batching."""
    calls: list[str] = []
    reply = await post(bookshop(calls), batch, headers)
    assert (reply.status_code, reply.json()) == (200, answers)
    ran = [answer for answer in answers if "content" in answer.get("result", ())]
    assert calls == ["add"] * len(ran)


@headers
@pytest.mark.parametrize(
    "batch",
    [
        pytest.param([note()], id="a notification"),
        pytest.param([note(), note("notifications/unknown")], id="notifications"),
        pytest.param([RESPONSE], id="a response"),
        pytest.param([RESPONSE, note()], id="both"),
    ],
)
async def test_a_batch_that_asks_nothing_is_accepted(
    batch: list[Any], headers: dict[str, str]
) -> None:
    """Spec 2025-03-26, basic/transports: Sending Messages, 202 with no body."""
    reply = await post(bookshop(), batch, headers)
    assert (reply.status_code, reply.content) == (202, b"")


@pytest.mark.parametrize(
    ("size", "status"), [(1, 200), (MAX_BATCH, 200), (MAX_BATCH + 1, 400), (0, 400)]
)
async def test_a_batch_has_a_bounded_number_of_messages(size: int, status: int) -> None:
    """RPC-07. Ours; JSON-RPC 2.0: an empty array is an Invalid Request."""
    calls: list[str] = []
    reply = await post(bookshop(calls), [add(number) for number in range(size)])
    assert (reply.status_code, len(calls)) == (status, size if status == 200 else 0)
    if status == 400:
        fault = f"A batch has 1 to {MAX_BATCH} messages"
        assert reply.json() == error(-32600, fault, request_id=None)


REFUSED = [
    # The version header, and the one error: nothing of the batch is run.
    (
        "2025-11-25",
        error(
            -32600,
            "Batch requests are not supported in protocol version 2025-11-25",
            request_id=None,
        ),
    ),
    (
        "2025-06-18",
        error(
            -32600,
            "Batch requests are not supported in protocol version 2025-06-18",
            request_id=None,
        ),
    ),
    (MODERN, error(-32600, "Batch requests are not supported")),
    ("2099-01-01", error(-32600, "Batch requests are not supported")),
]
BATCHES: list[tuple[str, list[Any]]] = [
    ("requests", [add(1), add(2)]),
    ("RPC-07 modern requests", [modern("tools/list"), modern("tools/list")]),
    ("RPC-07 empty", []),
    ("notifications", [note()]),
    ("initialize", [initialize()]),
    ("no messages", [1, None]),
]


@pytest.mark.parametrize(
    ("version", "answer"), [pytest.param(*row, id=row[0]) for row in REFUSED]
)
@pytest.mark.parametrize("batch", [pytest.param(row, id=name) for name, row in BATCHES])
async def test_a_batch_is_refused_whole_where_there_are_none(
    batch: list[Any], version: str, answer: dict[str, Any]
) -> None:
    """RPC-07. Spec 2025-06-18, changelog: batching is removed."""
    calls: list[str] = []
    headers = {**JSON_HEADERS, "mcp-protocol-version": version}
    reply = await post(bookshop(calls), batch, headers)
    assert (reply.status_code, reply.json(), calls) == (400, answer, [])


@pytest.mark.parametrize("batch", [pytest.param(row, id=name) for name, row in BATCHES])
async def test_a_modern_only_app_has_no_batches(batch: list[Any]) -> None:
    """RPC-07. Spec 2026-07-28: Sending Messages, a single request."""
    calls: list[str] = []
    reply = await post(bookshop(calls, eras={"modern"}), batch)
    expected = error(-32600, "Batch requests are not supported")
    assert (reply.status_code, reply.json(), calls) == (400, expected, [])


@pytest.mark.parametrize("version", [WITH_BATCHES, LEGACY])
async def test_the_session_tells_the_revision_of_a_batch(version: str) -> None:
    """Ours: what was negotiated goes before what a header says."""
    app = bookshop()
    session = await open_session(app, version)
    headers = {**JSON_HEADERS, "mcp-session-id": session}
    reply = await post(app, [add(1)], headers)
    if version == WITH_BATCHES:
        assert (reply.status_code, reply.json()) == (200, [sum_of(1, 2)])
    else:
        assert (reply.status_code, reply.json()["error"]["code"]) == (400, -32600)


async def test_a_batch_of_an_unknown_session_is_not_found() -> None:
    """SES-01."""
    calls: list[str] = []
    headers = {**JSON_HEADERS, "mcp-session-id": "bogus"}
    reply = await post(bookshop(calls), [add(1), add(2)], headers)
    expected = error(-32600, "Session not found", request_id=None)
    assert (reply.status_code, reply.json(), calls) == (404, expected, [])


async def test_a_batch_needs_a_session_where_one_is_required() -> None:
    """Ours."""
    calls: list[str] = []
    reply = await post(bookshop(calls, require_session=True), [add(1)])
    fault = "Mcp-Session-Id is missing: send initialize first"
    expected = error(-32600, fault, request_id=None)
    assert (reply.status_code, reply.json(), calls) == (400, expected, [])


async def test_the_byte_order_mark_of_a_batch_is_skipped() -> None:
    """Ours."""
    raw = b"\xef\xbb\xbf" + json.dumps([legacy("ping")]).encode()
    assert (await post(bookshop(), raw, message=legacy("ping"))).json() == [PONG]
