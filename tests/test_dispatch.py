"""One message in, one reply out, for those who bring their own transport.

Seed: the conduit handler, `dispatch/3`, `handle_request/3`, `methods/0`.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping
from typing import Any

import pytest

import mcpkit
from mcpkit import (
    Accepted,
    App,
    Context,
    Response,
    Result,
    dispatch,
    handle_request,
)
from mcpkit.protocol.headers import VERSION, Headers
from tests.calls import V_2025_11_25, request
from tests.wire import MODERN, check_response

LEGACY_HEADERS: Headers = {VERSION: V_2025_11_25.encode()}


def shop() -> App:
    app = App("tests")

    @app.tool
    async def search(query: str = "") -> str:
        return f"found {query}"

    return app


def legacy(method: str, **params: Any) -> dict[str, Any]:
    return request(method, at=V_2025_11_25, **params)


def notification(method: str, params: Any = None) -> dict[str, Any]:
    message = {"jsonrpc": "2.0", "method": method}
    return message if params is None else {**message, "params": params}


def error(code: int, message: str, request_id: Any = 1, **data: Any) -> dict[str, Any]:
    body: dict[str, Any] = {"code": code, "message": message}
    if data:
        body["data"] = data
    return {"jsonrpc": "2.0", "id": request_id, "error": body}


def unidentified(code: int, message: str) -> dict[str, Any]:
    """Return an error of the modern era that answers no known request."""
    return {"jsonrpc": "2.0", "error": {"code": code, "message": message}}


FOUND = {"content": [{"type": "text", "text": "found "}], "isError": False}
NOT_FOUND = error(-32601, "Method not found")

ANSWERED = [
    # id, message, HTTP status, response
    (
        "a legacy request",
        legacy("tools/call", name="search"),
        200,
        {"jsonrpc": "2.0", "id": 1, "result": FOUND},
    ),
    (
        "a modern request",
        request("tools/call", name="search"),
        200,
        {
            "jsonrpc": "2.0",
            "id": 1,
            "result": {
                "resultType": "complete",
                **FOUND,
                "_meta": {
                    "io.modelcontextprotocol/serverInfo": {
                        "name": "tests",
                        "version": "0.1.0",
                    }
                },
            },
        },
    ),
    ("an unknown legacy method", legacy("tools/dance"), 200, NOT_FOUND),
    ("an unknown modern method", request("tools/dance"), 404, NOT_FOUND),
    ("a legacy method in the modern era", request("ping"), 404, NOT_FOUND),
    (
        "a stream where there is no way to the client",
        request("subscriptions/listen", notifications={}),
        404,
        NOT_FOUND,
    ),
    (
        "a notification with an id",
        {**legacy("notifications/initialized"), "id": 1},
        200,
        NOT_FOUND,
    ),
    (
        "a modern request without its capabilities",
        {
            "jsonrpc": "2.0",
            "id": 1,
            "method": "tools/list",
            "params": {"_meta": {"io.modelcontextprotocol/protocolVersion": MODERN}},
        },
        400,
        error(
            -32602,
            "Invalid params: io.modelcontextprotocol/clientCapabilities must be an "
            "object, in _meta",
            field="io.modelcontextprotocol/clientCapabilities",
        ),
    ),
    (
        "an unsupported version",
        request(
            "tools/list",
            _meta={"io.modelcontextprotocol/protocolVersion": "2099-01-01"},
        ),
        400,
        error(
            -32022,
            "Unsupported protocol version",
            supported=[MODERN],
            requested="2099-01-01",
        ),
    ),
    (
        "params that are no object",
        {**legacy("tools/list"), "params": [1]},
        200,
        error(-32602, "Invalid params: params must be an object"),
    ),
    (
        "no JSON-RPC",
        {"method": "ping", "id": 1},
        400,
        error(-32600, 'Expected "jsonrpc": "2.0"'),
    ),
    (
        "no message",
        5,
        400,
        unidentified(-32600, "Expected one JSON-RPC message"),
    ),
    (
        "a null id",
        {**legacy("ping"), "id": None},
        400,
        error(-32600, "The id is not a string or an integer", request_id=None),
    ),
    (
        "a malformed cancellation",
        notification("notifications/cancelled", [1]),
        200,
        error(-32602, "Invalid params: params must be an object", request_id=None),
    ),
    (
        "a cancellation of no id",
        notification("notifications/cancelled", {"requestId": {}}),
        200,
        error(
            -32602,
            "Invalid params: requestId must be an integer, or a string of at most 256 "
            "bytes",
            request_id=None,
        ),
    ),
    (
        "a cancellation of too long an id",
        notification("notifications/cancelled", {"requestId": "é" * 129}),
        200,
        error(
            -32602,
            "Invalid params: requestId must be an integer, or a string of at most 256 "
            "bytes",
            request_id=None,
        ),
    ),
]


def table(rows: list[Any]) -> list[Any]:
    return [pytest.param(*row, id=name) for name, *row in rows]


@pytest.mark.parametrize(("message", "status", "response"), table(ANSWERED))
async def test_a_message_is_answered(
    message: Any, status: int, response: dict[str, Any]
) -> None:
    """Seed: `{:reply, response}`, and `handle_request/3` that returns a map."""
    reply = await dispatch(message, shop())
    assert isinstance(reply, Response)
    assert (reply.status, reply.message, reply.headers) == (status, response, ())
    assert await handle_request(message, shop()) == response


META = {
    "io.modelcontextprotocol/protocolVersion": MODERN,
    "io.modelcontextprotocol/clientCapabilities": {},
}

DROPPED = [
    # id, message
    ("a legacy notification", notification("notifications/initialized")),
    ("an unknown notification", notification("notifications/dance", {"a": 1})),
    ("a modern notification", notification("notifications/cancelled", {"_meta": META})),
    (
        "a cancellation of what does not run",
        notification("notifications/cancelled", {"requestId": 5}),
    ),
    (
        "a cancellation of the longest id",
        notification("notifications/cancelled", {"requestId": "é" * 128}),
    ),
    ("a cancellation of nothing", notification("notifications/cancelled")),
    (
        "a cancellation of null",
        notification("notifications/cancelled", {"requestId": None}),
    ),
    ("a method without an id", notification("tools/call", {"name": "search"})),
    ("a client's response", {"jsonrpc": "2.0", "id": 1, "result": {}}),
    (
        "a client's error",
        {"jsonrpc": "2.0", "id": 1, "error": {"code": 1, "message": ""}},
    ),
]


@pytest.mark.parametrize("message", table(DROPPED))
async def test_a_message_that_asks_nothing_is_accepted(message: Any) -> None:
    """Seed: `:noreply`, and `handle_request/3` that returns `:ok`."""
    assert await dispatch(message, shop()) == Accepted()
    assert await handle_request(message, shop()) is None


async def test_an_unknown_notification_is_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG)
    await dispatch(notification("notifications/dance"), shop())
    assert [(record.levelno, record.getMessage()) for record in caplog.records] == [
        (logging.DEBUG, "unknown notification 'notifications/dance'")
    ]


@pytest.mark.parametrize("request_id", [0, -1, 2**63, 10**30, "", "a", "é\u2028", "00"])
async def test_an_id_comes_back_as_it_is(request_id: Any) -> None:
    """Spec 2026-07-28, basic/index: Requests."""
    for message in (request("server/discover"), legacy("ping")):
        response = await handle_request({**message, "id": request_id}, shop())
        assert response is not None
        assert response["id"] == request_id
        assert type(response["id"]) is type(request_id)


async def test_headers_tell_the_revision_of_a_legacy_request() -> None:
    app = App("tests")
    app.add_tool(lambda: [1], name="x")
    message = legacy("tools/call", name="x")
    first = await handle_request(message, app)
    later = await handle_request(message, app, headers=LEGACY_HEADERS)
    assert first is not None
    assert later is not None
    check_response(first, "tools/call", "2025-03-26")
    check_response(later, "tools/call", V_2025_11_25)
    assert "structuredContent" not in first["result"]
    assert later["result"]["structuredContent"] == {"result": [1]}


async def test_headers_are_checked_where_there_are_any() -> None:
    """Spec 2026-07-28, basic/transports/streamable-http: Header Mismatch."""
    reply = await dispatch(request("server/discover"), shop(), headers=LEGACY_HEADERS)
    assert isinstance(reply, Response)
    assert (reply.status, reply.message["error"]["code"]) == (400, -32020)


async def test_a_principal_reaches_the_handler() -> None:
    app = App("tests")

    @app.tool
    def who(ctx: mcpkit.Context) -> str:
        return str(ctx.principal)

    response = await handle_request(
        request("tools/call", name="who"), app, principal="ada"
    )
    assert response is not None
    assert response["result"]["content"][0]["text"] == "ada"


UNENCODABLE = [
    # id, result
    ("a raw result", Result.raw({"content": [object()]})),
    ("a wire result", Result.wire({"content": object()})),
    ("meta", Result.text("x", metadata={"a": object()})),
]


@pytest.mark.parametrize(
    "message", [request("tools/call", name="x"), legacy("tools/call", name="x")]
)
@pytest.mark.parametrize("result", table(UNENCODABLE))
async def test_a_result_without_a_json_form_is_an_internal_error(
    result: Result, message: Any, caplog: pytest.LogCaptureFixture
) -> None:
    app = App("tests")
    app.add_tool(lambda: result, name="x")
    reply = await dispatch(message, app)
    assert isinstance(reply, Response)
    assert (reply.status, reply.message) == (200, error(-32603, "Internal error"))
    assert "tools/call failed" in caplog.text


async def test_requests_are_served_side_by_side() -> None:
    """Seed: each request is independent and can run concurrently."""
    app = App("tests")
    everyone = asyncio.Barrier(50)

    @app.tool
    async def meet(number: int) -> str:
        await everyone.wait()
        return str(number)

    def ask(number: int) -> dict[str, Any]:
        message = request("tools/call", name="meet", arguments={"number": number})
        return {**message, "id": number}

    async with asyncio.timeout(10):
        responses = await asyncio.gather(
            *(handle_request(ask(number), app) for number in range(50))
        )
    texts = [
        (response["id"], response["result"]["content"][0]["text"])
        for response in responses
        if response is not None
    ]
    assert texts == [(number, str(number)) for number in range(50)]


class Line:
    """A way to the client that takes what is sent, and is never cut."""

    admits_stream = True
    away_since: float | None = None

    def __init__(self) -> None:
        self.sent: list[Mapping[str, Any]] = []

    async def send(self, _: Context, message: Mapping[str, Any]) -> None:
        """Take a message."""
        self.sent.append(message)

    async def close(self, _: Context) -> None:
        """Close nothing."""

    def watch(self, _: Context, cancel: Callable[[], None] | None) -> None:
        """Watch nothing."""

    def unwatch(self) -> None:
        """Watch nothing."""


async def test_a_stream_is_held_open_where_there_is_a_way_to_the_client() -> None:
    """Spec 2026-07-28, basic/patterns/subscriptions. Ours: over any transport."""
    line = Line()
    message = request("subscriptions/listen", notifications={})
    reply = await dispatch(message, shop(), channel=line)
    mark = {"io.modelcontextprotocol/subscriptionId": 1}
    assert line.sent == [
        {
            "jsonrpc": "2.0",
            "method": "notifications/subscriptions/acknowledged",
            "params": {"_meta": mark, "notifications": {}},
        }
    ]
    assert isinstance(reply, Response)
    assert reply.message["result"] == {
        "resultType": "complete",
        "_meta": {
            **mark,
            "io.modelcontextprotocol/serverInfo": {
                "name": "tests",
                "version": "0.1.0",
            },
        },
    }


async def test_every_method_is_served() -> None:
    """Seed: `methods/0` has every method that is routed, in either era."""
    app = shop()
    app.add_prompt(lambda title: title, name="p")
    app.add_resource("a://b", lambda: "x", name="r")
    app.add_completion("p", "title", lambda value: [value])
    for era in ("modern", "legacy"):
        for method in mcpkit.methods(era):
            message = request(method, at=MODERN if era == "modern" else V_2025_11_25)
            if method.startswith("notifications/"):
                continue
            reply = await dispatch(message, app, channel=Line())
            assert isinstance(reply, Response)
            assert reply.message != NOT_FOUND
    assert mcpkit.methods().keys() == {
        *mcpkit.methods("modern"),
        *mcpkit.methods("legacy"),
    }


CAPABILITIES = {
    "tools/list": "tools",
    "prompts/list": "prompts",
    "resources/list": "resources",
    "resources/templates/list": "resources",
    "completion/complete": "completions",
}


@pytest.mark.parametrize("method", CAPABILITIES)
async def test_a_declared_capability_alone_makes_no_method(method: str) -> None:
    """Ours: custom capabilities are what is said, and not what there is."""
    app = App("tests", capabilities={CAPABILITIES[method]: {}})
    assert await handle_request(request(method), app) == NOT_FOUND
