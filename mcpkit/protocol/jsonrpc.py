"""JSON-RPC 2.0: bytes to messages and back, and the envelopes of MCP.

What is refused as "Parse error": anything that is not JSON after RFC 8259
(`NaN`, a trailing comma, invalid UTF-8, half a surrogate pair), numbers of more
than 4300 digits, nesting over `MAX_DEPTH`, and more than `MAX_CONTAINERS` arrays
and objects. A UTF-8 byte order mark is
skipped; of two equal keys the last one wins.

Spec 2026-07-28, basic/index: Messages.
"""

import contextlib
import re
from base64 import b64encode
from collections.abc import (
    Callable,
    Iterator,
    Mapping,
    Sequence,
    Set as AbstractSet,
    ValuesView,
)
from dataclasses import fields, is_dataclass
from enum import Enum
from itertools import accumulate
from types import MappingProxyType
from typing import Any, Final, Literal, TypeAlias, TypeGuard, overload

from pydantic_core import PydanticSerializationError, from_json, to_json

from mcpkit.errors import (
    HEADER_MISMATCH,
    INTERNAL_ERROR,
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    MISSING_REQUIRED_CLIENT_CAPABILITY,
    PARSE_ERROR,
    RESOURCE_NOT_FOUND,
    SERVER_ERROR,
    UNSET,
    UNSUPPORTED_PROTOCOL_VERSION,
    ProtocolError,
)

JSON: TypeAlias = "bool | int | float | str | list[JSON] | dict[str, JSON] | None"
"""Anything `decode` can return."""

RequestId: TypeAlias = str | int
"""The id of a request: a string or an integer, and never null."""

Kind: TypeAlias = Literal["request", "notification", "response"]

MAX_DEPTH: Final = 128
"""How deep arrays and objects may nest in a message."""

MAX_CONTAINERS: Final = 250_000
"""How many arrays and objects a message may hold."""

_STRING: Final = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)
_STEPS: Final = {ord("{"): 1, ord("["): 1, ord("}"): -1, ord("]"): -1}
_NO_BRACKETS: Final = bytes(byte for byte in range(256) if byte not in _STEPS)
_BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"

# Of the alphabet for URLs, what the standard one does not have.
_DASH: Final = ord("-")
_UNDERSCORE: Final = ord("_")

NAMED_ERRORS: Final[Mapping[str, tuple[int, str]]] = MappingProxyType(
    {
        "parse_error": (PARSE_ERROR, "Parse error"),
        "invalid_request": (INVALID_REQUEST, "Invalid request"),
        "method_not_found": (METHOD_NOT_FOUND, "Method not found"),
        "invalid_params": (INVALID_PARAMS, "Invalid params"),
        "internal_error": (INTERNAL_ERROR, "Internal error"),
        "server_error": (SERVER_ERROR, "Server error"),
        "resource_not_found": (RESOURCE_NOT_FOUND, "Resource not found"),
        "header_mismatch": (HEADER_MISMATCH, "Header mismatch"),
        "missing_required_client_capability": (
            MISSING_REQUIRED_CLIENT_CAPABILITY,
            "Missing required client capability",
        ),
        "unsupported_protocol_version": (
            UNSUPPORTED_PROTOCOL_VERSION,
            "Unsupported protocol version",
        ),
    }
)
"""The errors of MCP by name: their code, and what they say unless told."""


class Encoded(bytes):
    """A JSON value in its encoded form, which `encode_response` copies as it is."""

    __slots__ = ()


def is_object(value: object) -> TypeGuard[dict[str, Any]]:
    """Whether a decoded JSON value is an object."""
    return isinstance(value, dict)


def is_request_id(value: object) -> TypeGuard[RequestId]:
    """Whether a decoded JSON value may be the id of a request."""
    # A boolean is an int to `isinstance`, and no id.
    return isinstance(value, str) or type(value) is int


def decode(raw: bytes | bytearray) -> Any:
    """Decode one JSON text.

    Raises:
        ProtocolError: -32700, `raw` is not JSON or exceeds a bound.
    """
    if raw[:3] == _BYTE_ORDER_MARK:
        raw = raw[3:]
    # A short text without arrays can't nest too deeply: `{"":}` is a level. Counting
    # brackets is cheap, and their nesting asked for only past the bound.
    if (
        (len(raw) > 5 * MAX_DEPTH or b"[" in raw)
        and raw.count(b"{") + raw.count(b"[") > MAX_DEPTH
        and _exceeds_bounds(raw)
    ):
        raise ProtocolError(PARSE_ERROR, "Parse error")
    try:
        return from_json(raw, allow_inf_nan=False)
    except ValueError as error:
        raise ProtocolError(PARSE_ERROR, "Parse error") from error


def _exceeds_bounds(raw: bytes | bytearray) -> bool:
    """Whether a text nests too deeply, or has too many arrays and objects.

    What is not JSON may count as either; it is refused for one or the other.
    """
    brackets = _STRING.sub(b"", raw).translate(None, _NO_BRACKETS)
    if len(brackets) > 2 * MAX_CONTAINERS:
        return True
    return max(accumulate(map(_STEPS.__getitem__, brackets)), default=0) > MAX_DEPTH


def kind_of(message: object) -> Kind:
    """Tell what a decoded message is, or that it is none.

    Raises:
        ProtocolError: -32600, it is not one JSON-RPC request, notification or
            response.
    """
    if not isinstance(message, dict):
        raise ProtocolError(INVALID_REQUEST, "Expected one JSON-RPC message")
    if message.get("jsonrpc") != "2.0":
        raise ProtocolError(INVALID_REQUEST, 'Expected "jsonrpc": "2.0"')
    if "method" not in message:
        if ("result" in message) != ("error" in message) and "id" in message:
            return "response"
        raise ProtocolError(INVALID_REQUEST, "Expected a method")
    if not isinstance(message["method"], str):
        raise ProtocolError(INVALID_REQUEST, "The method is not a string")
    if "id" not in message:
        return "notification"
    if not is_request_id(message["id"]):
        raise ProtocolError(INVALID_REQUEST, "The id is not a string or an integer")
    return "request"


def readable_id(message: object) -> RequestId | None:
    """Return the id of a message that may be malformed, if it has a valid one."""
    request_id = message.get("id") if is_object(message) else None
    return request_id if is_request_id(request_id) else None


def encode(value: Any) -> bytes:
    """Encode a JSON value compactly, as UTF-8.

    NaN and the infinities become null, half a surrogate pair U+FFFD, bytes base64
    with the alphabet for URLs; datetimes, UUIDs, models and dataclasses take their
    JSON form, and so do collections of every kind.

    Raises:
        ValueError: The value has no JSON form.
    """
    try:
        return _to_json(value)
    except PydanticSerializationError:
        return _to_json(_mended(value))


def encode_value(value: Any) -> bytes:
    """Encode what a handler returned: as `encode` does, save for bytes.

    They become base64 with the standard alphabet, as they do in content blocks.

    Raises:
        ValueError: The value has no JSON form.

    Example:
        >>> encode(bytes([255])), encode_value(bytes([255]))
        (b'"_w=="', b'"/w=="')
    """
    # Asking an abstract class takes as long as encoding what is small.
    if type(value) not in (dict, list) and isinstance(value, Iterator):
        value = list(value)
    encoded = encode(value)
    may_differ = _DASH in encoded or _UNDERSCORE in encoded
    if may_differ and _holds_bytes(value, encoded):
        # What it iterates over was encoded, and is gone.
        with contextlib.suppress(_IteratorError):
            return _to_json(_mended(value))
    return encoded


def _to_json(value: Any, bytes_mode: Literal["base64", "hex"] = "base64") -> bytes:
    return to_json(
        value, inf_nan_mode="null", bytes_mode=bytes_mode, fallback=_as_collection
    )


def _holds_bytes(value: Any, encoded: bytes) -> bool:
    """Whether a value holds bytes: then it is another when they are encoded so."""
    try:
        return _to_json(value, bytes_mode="hex") != encoded
    except PydanticSerializationError:
        return False


def _as_collection(value: Any) -> Any:
    """Return what JSON has in place of a collection that pydantic does not know."""
    match value:
        case Mapping():
            return dict(value)
        case memoryview():
            return bytes(value)
        case Sequence() | AbstractSet() | ValuesView():
            return list(value)
        case _:
            raise ValueError(f"a {type(value).__name__} has no JSON form")


class _IteratorError(ValueError):
    """What can be read once can't be mended."""


def _mended(value: Any) -> Any:
    """Return a value without half pairs, and without bytes.

    Raises:
        ValueError: It can't be told what is in it.
    """
    try:
        return _mend(value)
    except RecursionError as error:
        raise ValueError("it nests too deeply, or holds itself") from error


def _mend(value: Any) -> Any:
    match value:
        case Enum():
            return _mend(value.value)
        case str():
            # UTF-16 is where half a pair can be, and be replaced by U+FFFD.
            return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        case bytes() | bytearray() | memoryview():
            return b64encode(value).decode()
        case Mapping():
            return {
                _mend(key) if isinstance(key, (str, bytes)) else key: _mend(item)
                for key, item in value.items()
            }
        case Sequence() | AbstractSet() | ValuesView():
            return [_mend(item) for item in value]
        case Iterator():
            raise _IteratorError("an iterator can't be read again")
        case _ if _is_plain_dataclass(value):
            names = [field.name for field in fields(value)]
            return {name: _mend(getattr(value, name)) for name in names}
        case _:
            return value


def _is_plain_dataclass(value: Any) -> bool:
    # What pydantic made knows itself how it is encoded.
    return (
        is_dataclass(value)
        and not isinstance(value, type)
        and not hasattr(value, "__pydantic_serializer__")
    )


def encode_response(request_id: RequestId, result: dict[str, Any] | Encoded) -> bytes:
    """Encode a success response.

    Args:
        request_id: The id of the request.
        result: The result, encoded already or as `encode_result` takes it.

    Raises:
        ValueError: A member of the result has no JSON form.
    """
    encoded = result if isinstance(result, Encoded) else encode_result(result)
    return b'{"jsonrpc":"2.0","id":%b,"result":%b}' % (encode(request_id), encoded)


def encode_result(result: dict[str, Any]) -> Encoded:
    """Encode a result, of which `structuredContent` may be `Encoded` already.

    Raises:
        ValueError: A member of the result has no JSON form.

    Example:
        >>> encode_result({"a": [2], "structuredContent": Encoded(b"[3]")})
        b'{"a":[2],"structuredContent":[3]}'
    """
    content = result.get("structuredContent")
    if type(content) is not Encoded:
        return Encoded(encode(result))
    plain = {**result}
    del plain["structuredContent"]
    head = encode(plain)[:-1]
    comma = b"," if plain else b""
    return Encoded(b'%b%b"structuredContent":%b}' % (head, comma, content))


class ResponseTemplate:
    """The bytes around a tool's structured result, which are the same every time.

    It is cut from what a shaper makes of one such result, so that the shape is
    known there alone.

    Args:
        shape: Makes the members of a result of a structured value.
    """

    __slots__ = ("_parts",)

    def __init__(self, shape: Callable[[Encoded], dict[str, Any]]) -> None:
        # Marks that no server's name can hold, for they are made here and now.
        content = Encoded(encode(f"content {id(self)}"))
        whole = encode_response(0, shape(content))
        head, rest = whole.split(b":0,", 1)
        before, between, after = (
            rest.replace(encode(content.decode()), b"\0")
            .replace(content, b"\0")
            .split(b"\0")
        )
        self._parts = (head + b":", b"," + before, between, after)

    def fill(self, request_id: RequestId, text: Encoded, content: Encoded) -> bytes:
        """Return the response to a request.

        Args:
            request_id: The id of the request.
            text: The structured value, which its text block shows.
            content: The structured value, as `structuredContent` has it.
        """
        head, before, between, after = self._parts
        shown = encode(text.decode())
        return b"".join(
            (head, encode(request_id), before, shown, between, content, after)
        )


def success_response(result: Any, request_id: RequestId) -> dict[str, Any]:
    """Build the response to a request that succeeded.

    Example:
        >>> success_response({"tools": []}, 123)
        {'jsonrpc': '2.0', 'id': 123, 'result': {'tools': []}}
    """
    return {"jsonrpc": "2.0", "id": request_id, "result": result}


@overload
def error_response(
    error: ProtocolError, /, *, request_id: Any = ...
) -> dict[str, Any]: ...


@overload
def error_response(
    code: int, message: str, data: Any = ..., /, *, request_id: Any = ...
) -> dict[str, Any]: ...


def error_response(
    error: ProtocolError | int,
    message: str = "",
    data: Any = UNSET,
    /,
    *,
    request_id: Any = UNSET,
) -> dict[str, Any]:
    """Build the response to a request that failed.

    Args:
        error: A `ProtocolError`, or the code of the error.
        message: The message that goes with a code.
        data: The data that goes with a code; left out when it is not given.
        request_id: The id of the request. Left out when it is not given, null
            when it is `None`.

    Example:
        >>> response = error_response(-32601, "Method not found", request_id=123)
        >>> response["id"], response["error"]
        (123, {'code': -32601, 'message': 'Method not found'})
        >>> error_response(-32602, "Invalid params", {"expected": "string"})["error"]
        {'code': -32602, 'message': 'Invalid params', 'data': {'expected': 'string'}}
        >>> error_response(ProtocolError(-32601, "Method not found"))
        {'jsonrpc': '2.0', 'error': {'code': -32601, 'message': 'Method not found'}}
    """
    if not isinstance(error, ProtocolError):
        error = ProtocolError(error, message, data)
    body = {"code": error.code, "message": error.message}
    if error.data is not UNSET:
        body["data"] = error.data
    identified = {} if request_id is UNSET else {"id": request_id}
    return {"jsonrpc": "2.0", **identified, "error": body}


def mcp_error(
    name: str, request_id: Any, message: str | None = None, data: Any = UNSET
) -> dict[str, Any]:
    """Build an error response from the name of an error, one of `NAMED_ERRORS`.

    Raises:
        KeyError: There is no error of that name.

    Example:
        >>> mcp_error("method_not_found", 123)["error"]
        {'code': -32601, 'message': 'Method not found'}
        >>> mcp_error("invalid_params", 123, "Missing required field")["error"]
        {'code': -32602, 'message': 'Missing required field'}
    """
    code, usual = NAMED_ERRORS[name]
    return error_response(code, message or usual, data, request_id=request_id)


def tool_error(
    text: str, request_id: RequestId, *, is_error: bool = True
) -> dict[str, Any]:
    """Build the response to a `tools/call` whose tool failed.

    Example:
        >>> result = tool_error("Tool execution failed", 123)["result"]
        >>> result["content"], result["isError"]
        ([{'type': 'text', 'text': 'Tool execution failed'}], True)
    """
    content = [{"type": "text", "text": text}]
    return success_response({"content": content, "isError": is_error}, request_id)


def notification(method: str, params: Mapping[str, Any]) -> dict[str, Any]:
    """Build a notification: a message without an id, which nobody answers.

    Example:
        >>> notification("resources/list_changed", {})
        {'jsonrpc': '2.0', 'method': 'resources/list_changed', 'params': {}}
    """
    return {"jsonrpc": "2.0", "method": method, "params": params}


def request(
    method: str, params: Mapping[str, Any], request_id: RequestId
) -> dict[str, Any]:
    """Build a request, such as a legacy server's question to its client.

    Example:
        >>> asked = request("tools/call", {"name": "test"}, "req-123")
        >>> asked["id"], asked["method"], asked["params"]
        ('req-123', 'tools/call', {'name': 'test'})
    """
    return {"jsonrpc": "2.0", "id": request_id, "method": method, "params": params}


def batch_error(version: str) -> dict[str, Any]:
    """Build the answer to a batch, in a revision that has none.

    Example:
        >>> batch_error("2025-06-18")["error"]["message"]
        'Batch requests are not supported in protocol version 2025-06-18'
        >>> batch_error("2025-06-18")["id"] is None
        True
    """
    message = f"Batch requests are not supported in protocol version {version}"
    return error_response(INVALID_REQUEST, message, request_id=None)


def is_error_response(message: Mapping[str, Any]) -> bool:
    """Whether a message is an error response.

    Example:
        >>> is_error_response({"error": {"code": -32601}})
        True
        >>> is_error_response({"result": {}})
        False
    """
    return "error" in message


def is_notification(message: Mapping[str, Any]) -> bool:
    """Whether a message is a notification: it has a method and no id.

    Example:
        >>> is_notification({"jsonrpc": "2.0", "method": "test"})
        True
        >>> is_notification({"jsonrpc": "2.0", "id": 1, "method": "test"})
        False
    """
    return "method" in message and "id" not in message
