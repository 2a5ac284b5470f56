from typing import Any

from mcpkit import ProtocolError, Result
from mcpkit.errors import UNSET
from mcpkit.protocol import era, headers as routing, jsonrpc, modern

INFO = {"name": "sans-io", "version": "1.0.0"}


def run(method: str) -> Result | ProtocolError:
    """Say what comes of a method: a result, or the error it fails with."""
    match method:
        case "tools/list":
            return Result.tools([{"name": "greet", "inputSchema": {"type": "object"}}])
        case "tools/call":
            return Result.text("Hello!")
    return ProtocolError(-32601, "Method not found")


def answer(body: bytes, headers: routing.Headers) -> tuple[int, bytes]:
    """Turn a request into a status and a body: no network, no clock, no await."""
    request_id: Any = UNSET
    try:
        message = jsonrpc.decode(body)
        if jsonrpc.kind_of(message) != "request":
            return 202, b""
        request_id, method = message["id"], message["method"]
        era.check_modern(message, headers)
    except ProtocolError as error:
        return 400, jsonrpc.encode(jsonrpc.error_response(error, request_id=request_id))
    response = modern.to_response(request_id, method, run(method), server_info=INFO)
    return modern.http_status(response), jsonrpc.encode(response)


async def app(scope: dict[str, Any], receive: Any, send: Any) -> None:
    """Serve it, here under ASGI."""
    event = await receive()
    status, body = answer(event["body"], routing.collect(scope["headers"]))
    await send({"type": "http.response.start", "status": status, "headers": []})
    await send({"type": "http.response.body", "body": body})
