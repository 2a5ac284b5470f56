"""A client that takes nothing on trust: requests as bytes, replies checked.

Every JSON-RPC response that comes back is held against the models of its
revision, where those are installed.
"""

import importlib.util
import json
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from typing import Any, Final, TypeAlias

import httpx

from mcpkit import App
from mcpkit.protocol import headers as routing
from mcpkit.protocol.era import CLIENT_CAPABILITIES, PROTOCOL_VERSION
from mcpkit.protocol.methods import METHODS
from mcpkit.protocol.versions import (
    ASSUMED,
    LATEST_LEGACY,
    LATEST_MODERN,
    REVISIONS,
    versions,
)

if importlib.util.find_spec("mcp_types") is None:
    # The environment of the oldest releases has what mcpkit needs, and no more.
    def check_response(message: Mapping[str, Any], method: str, version: str) -> None:
        """Check nothing."""
else:
    from tests.wire import check_response

MODERN: Final = LATEST_MODERN.version
LEGACY: Final = LATEST_LEGACY.version
MODERN_VERSIONS: Final = versions("modern")
LEGACY_VERSIONS: Final = versions("legacy")
VERSIONS: Final = versions()

HOST: Final = "http://localhost"

Json: TypeAlias = dict[str, Any]
Lines: TypeAlias = Sequence[tuple[str | bytes, str | bytes]]
Headers: TypeAlias = Mapping[str, str] | Lines
Content: TypeAlias = Json | list[Any] | bytes | AsyncIterator[bytes]

JSON_HEADERS: Final = {
    "content-type": "application/json",
    "accept": "application/json, text/event-stream",
}


def modern(
    method: str,
    params: Mapping[str, Any] | None = None,
    *,
    request_id: Any = 1,
    version: str = MODERN,
    capabilities: Mapping[str, Any] | None = None,
) -> Json:
    """Build a modern request."""
    meta = {PROTOCOL_VERSION: version, CLIENT_CAPABILITIES: dict(capabilities or {})}
    return legacy(method, {**(params or {}), "_meta": meta}, request_id=request_id)


def legacy(
    method: str, params: Mapping[str, Any] | None = None, *, request_id: Any = 1
) -> Json:
    """Build a legacy request."""
    message: Json = {"jsonrpc": "2.0", "id": request_id, "method": method}
    return message if params is None else {**message, "params": dict(params)}


def initialize(version: str = LEGACY, **params: Any) -> Json:
    """Build the request that opens a session."""
    usual = {
        "protocolVersion": version,
        "capabilities": {},
        "clientInfo": {"name": "tests", "version": "1"},
    }
    return legacy("initialize", {**usual, **params})


def headers_of(message: Mapping[str, Any]) -> dict[str, str]:
    """Return the headers that go with a request: a modern one mirrors its body."""
    meta = message.get("params", {}).get("_meta", {})
    if PROTOCOL_VERSION not in meta:
        return dict(JSON_HEADERS)
    headers = {
        **JSON_HEADERS,
        routing.VERSION.decode(): meta[PROTOCOL_VERSION],
        routing.METHOD.decode(): message["method"],
    }
    row = METHODS.get(message["method"])
    name = message["params"].get(row.named_by) if row and row.named_by else None
    if isinstance(name, str):
        headers[routing.NAME.decode()] = routing.encode(name)
    return headers


def request(
    version: str, method: str, params: Mapping[str, Any] | None = None, **options: Any
) -> tuple[Json, dict[str, str]]:
    """Build a request of any revision, and the headers that go with it."""
    if version in MODERN_VERSIONS:
        message = modern(method, params, version=version, **options)
        return message, headers_of(message)
    message = legacy(method, params, **options)
    return message, {**JSON_HEADERS, routing.VERSION.decode(): version}


async def call(
    app: Any,
    version: str,
    method: str,
    params: Mapping[str, Any] | None = None,
    *,
    path: str = "/mcp",
    headers: Mapping[str, str] | None = None,
    **options: Any,
) -> httpx.Response:
    """Send a request of any revision, and return the reply."""
    message, usual = request(version, method, params, **options)
    return await post(app, message, {**usual, **(headers or {})}, path=path)


async def post(
    app: Any,
    content: Content,
    headers: Headers | None = None,
    *,
    path: str = "/mcp",
    version: str | None = None,
    message: Json | None = None,
) -> httpx.Response:
    """Post a body, and return the reply.

    Args:
        app: Any ASGI application.
        content: The body: a message, a batch, bytes, or bytes in parts.
        headers: The headers, and no others; by default those that go with the
            message.
        path: Where.
        version: The revision of the reply, where the request does not tell.
        message: The message that the body holds, where it comes in parts.
    """
    if headers is None:
        headers = headers_of(content) if isinstance(content, dict) else JSON_HEADERS
    raw = json.dumps(content) if isinstance(content, (dict, list)) else content
    reply = await send(app, "POST", headers, raw, path=path)
    check(reply, message or content, headers, version=version)
    return reply


async def send(
    app: Any,
    verb: str,
    headers: Headers | None = None,
    content: str | bytes | AsyncIterator[bytes] = b"",
    *,
    path: str = "/mcp",
) -> httpx.Response:
    """Send an HTTP request with these headers alone, besides Host and the length."""
    transport = httpx.ASGITransport(app=app)
    async with httpx.AsyncClient(transport=transport) as client:
        return await client.send(
            httpx.Request(verb, HOST + path, headers=_lines(headers), content=content)
        )


def _lines(headers: Headers | None) -> list[tuple[bytes, bytes]]:
    pairs: Iterable[tuple[str | bytes, str | bytes]] = (
        headers.items() if isinstance(headers, Mapping) else headers or ()
    )
    return [(_bytes(name), _bytes(value)) for name, value in pairs]


def _bytes(value: str | bytes) -> bytes:
    return value if isinstance(value, bytes) else value.encode("latin-1")


def check(
    reply: httpx.Response,
    content: Content,
    headers: Headers,
    *,
    version: str | None = None,
) -> None:
    """Check that a reply is JSON-RPC of its revision, or has no body."""
    if not reply.content:
        return
    assert reply.headers["content-type"] == "application/json"
    assert reply.headers["content-length"] == str(len(reply.content))
    answer = reply.json()
    sent = _read(content) if isinstance(content, bytes) else content
    asked = {
        json.dumps(message.get("id")): message
        for message in (sent if isinstance(sent, list) else [sent])
        if isinstance(message, dict)
    }
    for response in answer if isinstance(answer, list) else [answer]:
        message = asked.get(json.dumps(response.get("id")), {})
        method = message.get("method")
        check_response(
            response,
            method if isinstance(method, str) else "",
            version or _version_of(response, message, headers),
        )


def _read(content: bytes) -> Any:
    try:
        return json.loads(content)
    except (ValueError, RecursionError):
        return None


def _version_of(response: Json, message: Json, headers: Headers) -> str:
    if "id" not in response:
        return MODERN
    if response["id"] is None:
        return LEGACY
    if message.get("method") == "initialize" and "result" in response:
        return str(response["result"]["protocolVersion"])
    params = message.get("params")
    meta = params.get("_meta") if isinstance(params, dict) else None
    if isinstance(meta, dict) and meta.keys() & {PROTOCOL_VERSION, CLIENT_CAPABILITIES}:
        return MODERN
    named = dict(_lines(headers)).get(routing.VERSION, b"").decode("latin-1").strip()
    if not named:
        return MODERN if message.get("method") == "server/discover" else ASSUMED.version
    revision = REVISIONS.get(named)
    return MODERN if revision is None else revision.version


def error(
    code: int, message: str, *, request_id: Any = ..., data: Any = ...
) -> Mapping[str, Any]:
    """Build the error response that a test expects; no id unless it is given."""
    body = {"code": code, "message": message}
    if data is not ...:
        body["data"] = data
    identified = {} if request_id is ... else {"id": request_id}
    return {"jsonrpc": "2.0", **identified, "error": body}


def result_of(reply: httpx.Response) -> Any:
    """Return the result of a reply that must be one."""
    assert reply.status_code == httpx.codes.OK, reply.text
    return reply.json()["result"]


def code_of(reply: httpx.Response) -> int:
    """Return the error code of a reply that must be one."""
    code: int = reply.json()["error"]["code"]
    return code


async def open_session(
    app: App, version: str = LEGACY, headers: Mapping[str, str] | None = None
) -> str:
    """Open a legacy session, and return its id."""
    reply = await post(app, initialize(version), {**JSON_HEADERS, **(headers or {})})
    assert result_of(reply)["protocolVersion"] == version
    return str(reply.headers["mcp-session-id"])
