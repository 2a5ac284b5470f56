"""A result as a response of 2026-07-28, and its HTTP status.

Every result gets `resultType` and, in `_meta`, the server's name and version.
Complete results of the cacheable methods get `ttlMs` and `cacheScope`; an
interim result never does, and the answer to a retry may not be kept at all.

Spec 2026-07-28, basic/index: Responses, and server/utilities/caching.
"""

import json
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

from mcpkit.errors import (
    HEADER_MISMATCH,
    INTERNAL_ERROR,
    INVALID_PARAMS,
    METHOD_NOT_FOUND,
    MISSING_REQUIRED_CLIENT_CAPABILITY,
    RESOURCE_NOT_FOUND,
    UNSUPPORTED_PROTOCOL_VERSION,
    URL_ELICITATION_REQUIRED,
    ProtocolError,
)
from mcpkit.protocol.era import REQUEST_SCOPED, SERVER_INFO
from mcpkit.protocol.jsonrpc import (
    RequestId,
    encode_result,
    error_response,
    is_object,
    success_response,
)
from mcpkit.protocol.methods import METHODS
from mcpkit.protocol.results import Cache, Outcome, Result
from mcpkit.protocol.versions import Era

HTTP_STATUS: Final[Mapping[int, int]] = MappingProxyType(
    {
        HEADER_MISMATCH: 400,
        MISSING_REQUIRED_CLIENT_CAPABILITY: 400,
        UNSUPPORTED_PROTOCOL_VERSION: 400,
        METHOD_NOT_FOUND: 404,
    }
)
"""The HTTP status of an error that came up while a method ran, when it is not 200."""

_RESULT_TYPES: Final[Mapping[str, str]] = MappingProxyType(
    {"input_required": "input_required", "task": "task"}
)
_DEFAULT_CACHE: Final = Cache(ttl_ms=60_000, scope="private")
_NO_CACHE: Final = Cache(ttl_ms=0, scope="private")
_RESERVED: Final = range(-32099, -32019)
_CACHEABLE: Final = frozenset(name for name, row in METHODS.items() if row.cacheable)


def to_response(
    request_id: RequestId,
    method: str | None,
    outcome: Outcome,
    *,
    server_info: Mapping[str, Any] | None = None,
    cache: Cache | None = None,
) -> dict[str, Any]:
    """Build the response to one request.

    Args:
        request_id: The id of the request.
        method: The method of the request, where there was one.
        outcome: What came of it.
        server_info: The server's `Implementation`; left out when absent.
        cache: The cache hints of this response, in place of the default.

    Example:
        >>> to_response(1, "tools/call", Result.wire({"content": []}))
        {'jsonrpc': '2.0', 'id': 1, 'result': {'resultType': 'complete', 'content': []}}
        >>> missing = ProtocolError(-32002, "Resource not found")
        >>> to_response(1, "resources/read", missing)["error"]
        {'code': -32602, 'message': 'Resource not found'}
    """
    if isinstance(outcome, ProtocolError):
        return error_response(sendable(outcome), request_id=request_id)
    shaped = shape(method, outcome, server_info=server_info, cache=cache)
    # Not `decode`: its bounds are for what comes in.
    return success_response(json.loads(encode_result(shaped)), request_id)


def shape(
    method: str | None,
    result: Result,
    *,
    server_info: Mapping[str, Any] | None = None,
    cache: Cache | None = None,
    retry: bool = False,
) -> dict[str, Any]:
    """Return the members of a result, some of which may be `Encoded`.

    Args:
        method: The method of the request.
        result: The neutral result.
        server_info: The server's `Implementation`; left out when absent.
        cache: The cache hints, in place of the default, for a result that has
            none of its own.
        retry: The request carried answers to questions.
    """
    result_type = _RESULT_TYPES.get(result.kind, "complete")
    shaped = {"resultType": result_type, **result.members()}
    meta = {}
    if result.metadata or "_meta" in shaped:
        meta = own_meta(shaped.pop("_meta", None), result.metadata or {})
    if server_info is not None:
        meta[SERVER_INFO] = server_info
    if meta:
        shaped["_meta"] = meta
    if shaped["resultType"] == "input_required":
        shaped.pop("ttlMs", None)
        shaped.pop("cacheScope", None)
    elif shaped["resultType"] == "complete" and method in _CACHEABLE:
        hints = _NO_CACHE if retry else _hints(result, cache or _DEFAULT_CACHE)
        shaped["ttlMs"] = hints.ttl_ms
        shaped["cacheScope"] = hints.scope
    return shaped


def own_meta(meta: object, added: Mapping[str, Any]) -> dict[str, Any]:
    """Return the `_meta` of a result: its own, what is added, and none of requests."""
    merged = {**meta, **added} if is_object(meta) else added
    return {key: value for key, value in merged.items() if key not in REQUEST_SCOPED}


def _hints(result: Result, default: Cache) -> Cache:
    if result.ttl_ms is None and result.cache_scope is None:
        return default
    return Cache(
        ttl_ms=default.ttl_ms if result.ttl_ms is None else result.ttl_ms,
        scope=result.cache_scope or default.scope,
    )


def sendable(error: ProtocolError) -> ProtocolError:
    """Return the error under a code that a modern server may send.

    "Resource not found" has its modern code; the codes that the specification
    keeps for itself and has not defined, or has retired, become -32603.
    """
    code = error.code
    if code == RESOURCE_NOT_FOUND:
        return ProtocolError(resource_not_found(), error.message, error.data)
    if (
        code in _RESERVED and code not in HTTP_STATUS
    ) or code == URL_ELICITATION_REQUIRED:
        return ProtocolError(INTERNAL_ERROR, "Internal error")
    return error


def sent_as(error: ProtocolError, era: Era) -> ProtocolError:
    """Return the error as a client of an era is sent it; a legacy one, as it is.

    Example:
        >>> sent_as(ProtocolError(-32002, "Resource not found"), "legacy").code
        -32002
    """
    return sendable(error) if era == "modern" else error


def http_status(response: Mapping[str, Any] | int) -> int:
    """Return the HTTP status of a response, or of an error code.

    It holds for what came up while a method ran. A refusal before that is
    always 400.

    Example:
        >>> http_status(-32601), http_status({"result": {}})
        (404, 200)
    """
    if isinstance(response, int):
        return HTTP_STATUS.get(response, 200)
    error = response.get("error")
    return HTTP_STATUS.get(error["code"], 200) if is_object(error) else 200


def cacheable_methods() -> list[str]:
    """List the methods whose complete results carry cache hints."""
    return sorted(_CACHEABLE)


def default_cache() -> Cache:
    """Return the cache hints of a response that is given none."""
    return _DEFAULT_CACHE


def resource_not_found() -> int:
    """Return the code of "Resource not found" in this era."""
    return INVALID_PARAMS
