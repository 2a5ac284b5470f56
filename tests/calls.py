"""One request to an app, in a revision, and its checked response."""

import json
from collections.abc import Mapping
from typing import Any, Final

from mcpkit import App, Response, dispatch
from mcpkit.protocol.era import (
    CLIENT_CAPABILITIES,
    PROTOCOL_VERSION,
    SERVER_INFO,
)
from mcpkit.protocol.headers import VERSION, Headers
from tests.wire import MODERN, check_response

V_2025_11_25: Final = "2025-11-25"
V_2025_06_18: Final = "2025-06-18"
V_2025_03_26: Final = "2025-03-26"

LEGACY: Final = (V_2025_11_25, V_2025_06_18, V_2025_03_26)
EVERY: Final = (MODERN, *LEGACY)


def request(
    method: str,
    /,
    *,
    at: str = MODERN,
    client: Mapping[str, Any] | None = None,
    **params: Any,
) -> dict[str, Any]:
    """Build a request of a revision.

    Args:
        method: Its method.
        at: The revision.
        client: The capabilities that the client declares, in the modern era.
        params: Its params.
    """
    if at == MODERN:
        meta = {PROTOCOL_VERSION: at, CLIENT_CAPABILITIES: client or {}}
        params = {**params, "_meta": {**meta, **params.get("_meta", {})}}
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}


def headers_of(at: str) -> Headers | None:
    """Return the headers without which a request is not one of a revision."""
    return None if at == MODERN else {VERSION: at.encode()}


async def reply(
    app: App,
    method: str,
    /,
    *,
    at: str = MODERN,
    by: Any = None,
    client: Mapping[str, Any] | None = None,
    **params: Any,
) -> Response:
    """Send a request, and return the reply, whose message is valid in the revision."""
    message = request(method, at=at, client=client, **params)
    replied = await dispatch(message, app, headers=headers_of(at), principal=by)
    assert isinstance(replied, Response)
    check_response(replied.message, method, at)
    return replied


async def call(
    app: App,
    method: str,
    /,
    *,
    at: str = MODERN,
    by: Any = None,
    client: Mapping[str, Any] | None = None,
    **params: Any,
) -> Any:
    """Send a request, and return its result, or its error where it failed.

    A modern result comes without the marks that all of them have alike:
    `resultType` when it is "complete", and the server's info.
    """
    replied = await reply(app, method, at=at, by=by, client=client, **params)
    message = replied.message
    if "error" in message:
        return message["error"]
    result = message["result"]
    if result.get("resultType") == "complete":
        del result["resultType"]
    meta = result.get("_meta", {})
    if meta.pop(SERVER_INFO, None) is not None and not meta:
        del result["_meta"]
    return result


async def call_tool(
    app: App, name: str, arguments: Any = None, /, *, at: str = MODERN, by: Any = None
) -> Any:
    """Call a tool, and return its result, or the error where the call failed."""
    given = {} if arguments is None else {"arguments": arguments}
    return await call(app, "tools/call", at=at, by=by, name=name, **given)


def text(*texts: str) -> dict[str, Any]:
    """Return the result of a tool that answers with texts."""
    content = [{"type": "text", "text": item} for item in texts]
    return {"content": content, "isError": False}


def failed(message: str) -> dict[str, Any]:
    """Return the result of a tool that failed."""
    return {"content": [{"type": "text", "text": message}], "isError": True}


def structured(encoded: str) -> dict[str, Any]:
    """Return the result of a tool that answers with a structure, given its JSON."""
    return {**text(encoded), "structuredContent": json.loads(encoded)}
