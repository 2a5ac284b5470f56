"""Ids: every one that is allowed comes back exactly, and no other is taken."""

import asyncio
import json
from typing import Any

import pytest

from mcpkit import App
from tests.http.bookshop import bookshop
from tests.http.client import (
    JSON_HEADERS,
    LEGACY,
    MODERN,
    VERSIONS,
    call,
    check,
    error,
    legacy,
    modern,
    post,
    request,
    send,
)

IDS: list[tuple[str, Any]] = [
    ("one", 1),
    ("RPC-03 one as a string", "1"),
    ("RPC-04 zero", 0),
    ("RPC-04 zero as a string", "0"),
    ("RPC-04 empty", ""),
    ("negative", -1),
    ("2^53 + 1", 2**53 + 1),
    ("2^63 - 1", 2**63 - 1),
    ("2^63", 2**63),
    ("-2^63 - 1", -(2**63) - 1),
    ("2^64", 2**64),
    ("a hundred digits", int("9" * 100)),
    ("as many digits as are read", int("9" * 4300)),
    ("a space", " "),
    ("null as a string", "null"),
    ("beyond ASCII", "größe 日本 🐟"),
    ("a NUL", "\x00"),
    ("quotes and slashes", '"\\/'),
    ("a line separator", "\u2028"),
    ("a line break", "a\r\nb"),
    ("looks like JSON", '{"id":1}'),
    ("long", "x" * 100_000),
]
ids = pytest.mark.parametrize(
    "request_id", [pytest.param(row, id=name) for name, row in IDS]
)

NO_IDS: list[tuple[str, str]] = [
    ("RPC-01 null", "null"),
    ("true", "true"),
    ("false", "false"),
    ("a decimal", "1.5"),
    ("an integral decimal", "1.0"),
    ("an exponent", "1e2"),
    ("minus zero as a decimal", "-0.0"),
    ("beyond a double", "1e999"),
    ("an object", "{}"),
    ("an array", "[]"),
    ("an id in an array", "[1]"),
]
no_ids = pytest.mark.parametrize(
    "literal", [pytest.param(row, id=name) for name, row in NO_IDS]
)
NOT_AN_ID = "The id is not a string or an integer"


@ids
@pytest.mark.parametrize("version", VERSIONS)
async def test_an_id_comes_back_exactly_with_a_result(
    request_id: Any, version: str
) -> None:
    """Spec 2026-07-28, basic/index: Responses carry the id of the request."""
    reply = await call(bookshop(), version, "tools/list", request_id=request_id)
    answer = reply.json()
    assert (answer["id"], type(answer["id"])) == (request_id, type(request_id))
    assert "result" in answer


@ids
@pytest.mark.parametrize("version", VERSIONS)
async def test_an_id_comes_back_exactly_with_an_error(
    request_id: Any, version: str
) -> None:
    """Spec 2026-07-28, basic/index: Error Responses carry the id of the request."""
    reply = await call(bookshop(), version, "nope", request_id=request_id)
    answer = reply.json()
    assert (answer["id"], type(answer["id"])) == (request_id, type(request_id))
    assert answer == error(-32601, "Method not found", request_id=request_id)


@ids
async def test_an_id_comes_back_exactly_with_a_refusal(request_id: Any) -> None:
    """Ours: what is malformed is answered with its id, where that can be read."""
    message = {**legacy("ping", request_id=request_id), "jsonrpc": "1.0"}
    reply = await post(bookshop(), message, JSON_HEADERS)
    expected = error(-32600, 'Expected "jsonrpc": "2.0"', request_id=request_id)
    assert (reply.status_code, reply.json()) == (400, expected)


def with_id(message: dict[str, Any], literal: str) -> bytes:
    return json.dumps({**message, "id": "@"}).replace('"@"', literal).encode()


@no_ids
async def test_no_id_is_answered_without_one_in_the_modern_era(literal: str) -> None:
    """RPC-01. Spec 2026-07-28, basic/index: Requests; schema: id is optional."""
    calls: list[str] = []
    message, headers = request(MODERN, "tools/call", {"name": "whoami"})
    reply = await post(bookshop(calls), with_id(message, literal), headers)
    assert (reply.status_code, reply.json()) == (400, error(-32600, NOT_AN_ID))
    assert calls == []


@no_ids
async def test_no_id_is_answered_with_null_in_the_legacy_era(literal: str) -> None:
    """RPC-01. Spec 2025-11-25, basic/index: Requests."""
    calls: list[str] = []
    message, headers = request(LEGACY, "tools/call", {"name": "whoami"})
    reply = await post(bookshop(calls), with_id(message, literal), headers)
    expected = error(-32600, NOT_AN_ID, request_id=None)
    assert (reply.status_code, reply.json()) == (400, expected)
    assert calls == []


async def test_requests_that_share_an_id_are_each_answered() -> None:
    """RPC-03. Over HTTP each reply is that of its own request."""
    app = App("slow")
    both = asyncio.Barrier(4)

    @app.tool
    async def wait(text: str) -> str:
        await both.wait()
        return text

    async def ask(request_id: Any, text: str) -> tuple[Any, str]:
        params = {"name": "wait", "arguments": {"text": text}}
        reply = await post(app, modern("tools/call", params, request_id=request_id))
        answer = reply.json()
        return answer["id"], answer["result"]["content"][0]["text"]

    async with asyncio.timeout(10):
        answers = await asyncio.gather(
            ask(1, "a"), ask("1", "b"), ask(1, "c"), ask("1", "d")
        )
    assert list(answers) == [(1, "a"), ("1", "b"), (1, "c"), ("1", "d")]


async def test_the_last_of_two_ids_counts() -> None:
    """RPC-15. Ours: of two equal keys the last one wins."""
    raw = b'{"jsonrpc":"2.0","id":1,"method":"ping","id":"two"}'
    reply = await send(bookshop(), "POST", JSON_HEADERS, raw)
    check(reply, {"method": "ping", "id": "two"}, JSON_HEADERS)
    assert reply.json() == {"jsonrpc": "2.0", "id": "two", "result": {}}
