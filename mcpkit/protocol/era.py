"""Which era does a message belong to, and is it well formed there?

The rules, first match wins:

    1  `params._meta` has `protocolVersion` or `clientCapabilities`   modern
    2  the method is `server/discover` or `subscriptions/listen`      modern
    3  the version header names a modern version, or one that is
       unknown, and the method is not `initialize`                    modern
    4  everything else                                                legacy

A modern request is then checked in this order: `_meta` is an object, its keys
are there and of the right type (-32602, `data.field` names the key), the
version header equals the body's version (-32020), the version is served
(-32022), the other routing headers agree with the body (-32020). Whatever
refuses it here is HTTP 400.

Spec 2026-07-28, basic/versioning and basic/index: `_meta`.
"""

from collections.abc import Mapping
from typing import Any, Final

from mcpkit.errors import (
    INVALID_PARAMS,
    UNSUPPORTED_PROTOCOL_VERSION,
    ProtocolError,
)
from mcpkit.protocol import headers as routing
from mcpkit.protocol.jsonrpc import is_object
from mcpkit.protocol.methods import METHODS, Method
from mcpkit.protocol.versions import (
    ASSUMED,
    ERAS,
    LATEST_MODERN,
    REVISIONS,
    Era,
    Revision,
    versions,
)

PROTOCOL_VERSION: Final = "io.modelcontextprotocol/protocolVersion"
CLIENT_CAPABILITIES: Final = "io.modelcontextprotocol/clientCapabilities"
CLIENT_INFO: Final = "io.modelcontextprotocol/clientInfo"
LOG_LEVEL: Final = "io.modelcontextprotocol/logLevel"
SERVER_INFO: Final = "io.modelcontextprotocol/serverInfo"

REQUEST_SCOPED: Final = frozenset(
    {PROTOCOL_VERSION, CLIENT_CAPABILITIES, CLIENT_INFO, LOG_LEVEL}
)
"""The keys of `_meta` that belong to a request and never come back."""

LOG_LEVELS: Final = (
    "debug",
    "info",
    "notice",
    "warning",
    "error",
    "critical",
    "alert",
    "emergency",
)
"""The levels of a log message, from the least severe."""

_NOTHING: Final[dict[str, Any]] = {}
_MODERN_METHODS: Final = frozenset({"server/discover", "subscriptions/listen"})


def era_of(
    message: Mapping[str, Any],
    headers: routing.Headers | None = None,
    *,
    eras: frozenset[Era] = ERAS,
) -> Era:
    """Tell the era of a message, which may be malformed.

    Args:
        message: The decoded message.
        headers: The HTTP headers as ASGI has them; `None` under a transport
            that has none.
        eras: The eras that the server speaks. A server of one era takes
            everything for its own, save a modern request at a legacy server.
    """
    if "legacy" not in eras:
        return "modern"
    params = message.get("params")
    if isinstance(params, dict):
        meta = params.get("_meta")
        if isinstance(meta, dict) and (
            PROTOCOL_VERSION in meta or CLIENT_CAPABILITIES in meta
        ):
            return "modern"
    method = message.get("method")
    if isinstance(method, str) and method in _MODERN_METHODS:
        return "modern"
    if headers and method != "initialize":
        return era_of_header(headers)
    return "legacy"


def era_of_header(headers: routing.Headers) -> Era:
    """Tell the era that the version header names, for want of a message."""
    version = routing.text(headers.get(routing.VERSION))
    if version is None:
        return "legacy"
    revision = REVISIONS.get(version)
    return "modern" if revision is None else revision.era


def legacy_revision(
    headers: routing.Headers | None, negotiated: str | None = None
) -> Revision:
    """Return the revision of a legacy message.

    Args:
        headers: The HTTP headers as ASGI has them, if there are any.
        negotiated: The version of the message's session, if it has one.
    """
    version = negotiated or routing.text((headers or {}).get(routing.VERSION))
    revision = ASSUMED if version is None else REVISIONS.get(version, ASSUMED)
    # Only `initialize` is legacy whatever its header says.
    return revision if revision.era == "legacy" else ASSUMED


def check_modern(
    message: Mapping[str, Any],
    headers: routing.Headers | None = None,
    *,
    eras: frozenset[Era] = ERAS,
    methods: Mapping[str, Method] = METHODS,
) -> Revision:
    """Check a modern request, and return the revision it speaks.

    Args:
        message: A request that `era_of` found to be modern.
        headers: The HTTP headers as ASGI has them; `None` under a transport
            that has none, and then nothing is asked of them.
        eras: The eras that the server speaks.
        methods: The methods that it has.

    Raises:
        ProtocolError: -32602, -32020 or -32022, as the module says.
    """
    method = message["method"]
    if method == "initialize" and "legacy" not in eras:
        raise _initialize_refused(message)
    params = message.get("params", _NOTHING)
    if not is_object(params):
        raise _invalid("params", "an object")
    version = _checked_version(params)
    revision = REVISIONS.get(version)
    if headers is not None and (
        revision is None or headers.get(routing.VERSION) != revision.header
    ):
        routing.check_version(headers, version)
    if revision is None or revision.era != "modern" or "modern" not in eras:
        raise unsupported_version(version, eras)
    if headers is not None:
        routing.check_routing(headers, method, params, methods.get(method))
    return revision


def check_modern_notification(
    message: Mapping[str, Any],
    headers: routing.Headers | None = None,
    *,
    eras: frozenset[Era] = ERAS,
) -> Revision:
    """Check the version of a modern notification, or of a client's response.

    Nothing else is checked of what is dropped.

    Args:
        message: A message without an id, or a response.
        headers: The HTTP headers as ASGI has them, if there are any.
        eras: The eras that the server speaks.

    Raises:
        ProtocolError: -32022, there is no such version.
    """
    params = message.get("params")
    meta = params.get("_meta") if is_object(params) else None
    claimed = meta.get(PROTOCOL_VERSION) if is_object(meta) else None
    version = claimed or routing.text((headers or {}).get(routing.VERSION))
    if version is None:
        return LATEST_MODERN
    revision = REVISIONS.get(version) if isinstance(version, str) else None
    if revision is None:
        raise unsupported_version(str(version), eras)
    return revision


def _checked_version(params: Mapping[str, Any]) -> str:
    meta = params.get("_meta", _NOTHING)
    if not isinstance(meta, dict):
        raise _invalid("_meta", "an object")
    version = meta.get(PROTOCOL_VERSION)
    if not isinstance(version, str):
        raise _invalid(PROTOCOL_VERSION, "a string, in _meta")
    if not isinstance(meta.get(CLIENT_CAPABILITIES), dict):
        raise _invalid(CLIENT_CAPABILITIES, "an object, in _meta")
    if CLIENT_INFO in meta and not is_implementation(meta[CLIENT_INFO]):
        raise _invalid(CLIENT_INFO, "an object with the strings name and version")
    if LOG_LEVEL in meta and meta[LOG_LEVEL] not in LOG_LEVELS:
        raise _invalid(LOG_LEVEL, f"one of {', '.join(LOG_LEVELS)}")
    return version


def is_implementation(value: object) -> bool:
    """Whether a decoded JSON value is an `Implementation`: a name and a version."""
    return (
        is_object(value)
        and isinstance(value.get("name"), str)
        and isinstance(value.get("version"), str)
    )


def unsupported_version(requested: str, eras: frozenset[Era] = ERAS) -> ProtocolError:
    """Return the error for a version that is not served.

    Its data names what the client may retry with. That is no legacy version,
    which `_meta` can't carry, unless the server speaks nothing else.
    """
    supported = versions("modern" if "modern" in eras else "legacy")
    return ProtocolError(
        UNSUPPORTED_PROTOCOL_VERSION,
        "Unsupported protocol version",
        {"supported": supported, "requested": requested},
    )


def _initialize_refused(message: Mapping[str, Any]) -> ProtocolError:
    params = message.get("params")
    version = params.get("protocolVersion") if is_object(params) else None
    return unsupported_version(
        version if isinstance(version, str) else "", frozenset({"modern"})
    )


def _invalid(field: str, expected: str) -> ProtocolError:
    message = f"Invalid params: {field} must be {expected}"
    return ProtocolError(INVALID_PARAMS, message, {"field": field})
