"""Routing headers: what mirrors the body, and whether it agrees.

    MCP-Protocol-Version   `_meta` protocolVersion          every modern request
    Mcp-Method             `method`                         every modern request
    Mcp-Name               `params.name`, `.uri`, `.taskId` what `METHODS` says
    Mcp-Param-{Name}       an argument with `x-mcp-header`  when it has a value

Values compare exactly, after optional white space is trimmed and the base64
form is decoded where it is allowed (names and parameters). Integers compare as
numbers.

Spec 2026-07-28, basic/transports/streamable-http: Request Metadata.
"""

import base64
import binascii
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from mcpkit.errors import HEADER_MISMATCH, ProtocolError
from mcpkit.protocol.jsonrpc import is_object
from mcpkit.protocol.methods import Method

Headers: TypeAlias = Mapping[bytes, bytes]
"""HTTP headers as ASGI has them, by lowercase name; `collect` makes one."""

VERSION: Final = b"mcp-protocol-version"
METHOD: Final = b"mcp-method"
NAME: Final = b"mcp-name"
SESSION: Final = b"mcp-session-id"
PARAM_PREFIX: Final = b"mcp-param-"

ANNOTATION: Final = "x-mcp-header"
"""The key of a property's schema that names its `Mcp-Param-` header."""

MAX_SAFE_INTEGER: Final = 2**53 - 1

_OPTIONAL_WHITE_SPACE: Final = " \t"
_PREFIX, _SUFFIX = "=?base64?", "?="
_TOKEN: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+\Z")
_PLAIN: Final = re.compile(r"[\t\x20-\x7e]*\Z")
_DECIMAL: Final = re.compile(r"-?[0-9]{1,400}(\.0{1,400})?\Z")


def collect(raw: Sequence[tuple[bytes, bytes]]) -> dict[bytes, bytes]:
    """Return the headers of an HTTP request by name, each name once.

    Several lines of one header are joined by commas (RFC 9110, section 5.3). Of
    an MCP header, equal lines are one; different ones are joined by a line
    break, which no value can hold, so that they never equal anything.

    Args:
        raw: Names and values as ASGI has them, the names in lowercase.

    Example:
        >>> collect([(b"accept", b"a/b"), (b"accept", b"c/d")])
        {b'accept': b'a/b, c/d'}
    """
    headers = dict(raw)
    if len(headers) != len(raw):
        lines: dict[bytes, list[bytes]] = {}
        for name, value in raw:
            lines.setdefault(name, []).append(value)
        for name, values in lines.items():
            if not name.startswith(b"mcp-"):
                headers[name] = b", ".join(values)
            elif len(set(values)) > 1:
                headers[name] = b"\n".join(values)
    return headers


def text(header: bytes | None) -> str | None:
    """Return the value of a header without the white space around it."""
    if header is None:
        return None
    return header.decode("latin-1").strip(_OPTIONAL_WHITE_SPACE)


def encode(value: str) -> str:
    """Encode a value for `Mcp-Name` or `Mcp-Param-*`.

    Example:
        >>> encode("us-west1")
        'us-west1'
        >>> encode(" padded ")
        '=?base64?IHBhZGRlZCA=?='
    """
    plain = _PLAIN.match(value) and value == value.strip(_OPTIONAL_WHITE_SPACE)
    if plain and not _is_encoded(value):
        return value
    return f"{_PREFIX}{base64.b64encode(value.encode()).decode()}{_SUFFIX}"


def decode(header: str) -> str:
    """Decode the value of an `Mcp-Name` or `Mcp-Param-*` header.

    Raises:
        ValueError: It has characters that no header may have, or its base64
            form is not canonical base64 of UTF-8.

    Example:
        >>> decode("=?base64?SGVsbG8sIOS4lueVjA==?=")
        'Hello, 世界'
    """
    value = header.strip(_OPTIONAL_WHITE_SPACE)
    if not _PLAIN.match(value):
        raise ValueError("invalid characters")
    if not _is_encoded(value):
        return value
    payload = value[len(_PREFIX) : -len(_SUFFIX)]
    try:
        decoded = base64.b64decode(payload, validate=True)
    except binascii.Error as error:
        raise ValueError("invalid base64") from error
    if base64.b64encode(decoded).decode() != payload:
        raise ValueError("base64 that is not canonical")
    return decoded.decode("utf-8")


def _is_encoded(value: str) -> bool:
    return (
        value.startswith(_PREFIX)
        and value.endswith(_SUFFIX)
        and len(value) >= len(_PREFIX) + len(_SUFFIX)
    )


def check_version(headers: Headers, version: str) -> None:
    """Check that the version header is there and equals the body's version.

    Raises:
        ProtocolError: -32020, it is missing or differs.
    """
    _check("MCP-Protocol-Version", headers.get(VERSION), version)


def check_routing(
    headers: Headers,
    name: str,
    params: Mapping[str, Any],
    method: Method | None,
) -> None:
    """Check that `Mcp-Method` and `Mcp-Name` agree with the body.

    Args:
        headers: What `collect` returned.
        name: The method of the body.
        params: The params of the body.
        method: The method's row, or `None` when there is none.

    Raises:
        ProtocolError: -32020, a header is missing, malformed or different.
    """
    header = headers.get(METHOD)
    if method is None:
        return _check("Mcp-Method", header, name)
    if header != method.header:
        _check("Mcp-Method", header, name)
    if method.named_by is None:
        return None
    value = params.get(method.named_by)
    # Where the body has no name there is none to mirror: the params are wrong.
    if isinstance(value, str):
        _check_decoded("Mcp-Name", headers.get(NAME), value)
    return None


def _check(name: str, header: bytes | None, value: str) -> None:
    if header is None:
        raise _mismatch(name, "is missing")
    if text(header) != value:
        raise _mismatch(name, "does not match the body")


def _check_decoded(name: str, header: bytes | None, value: str) -> None:
    # The usual case, which needs no decoding: what is printable has no controls.
    plain = value.isascii() and value.isprintable() and value == value.strip(" ")
    if plain and header == value.encode() and not value.startswith(_PREFIX):
        return
    if _decoded(name, header) != value:
        raise _mismatch(name, "does not match the body")


def _decoded(name: str, header: bytes | None) -> str:
    if header is None:
        raise _mismatch(name, "is missing")
    try:
        return decode(header.decode("latin-1"))
    except ValueError as error:
        raise _mismatch(name, "is malformed") from error


def _mismatch(name: str, fault: str) -> ProtocolError:
    return ProtocolError(HEADER_MISMATCH, f"Header mismatch: {name} {fault}")


@dataclass(frozen=True, slots=True, kw_only=True)
class HeaderParam:
    """One argument of a tool that travels in a header too.

    Attributes:
        header: The name of the header, in full.
        path: The keys that lead to the argument.
        key: The name of the header, as ASGI has it.
    """

    header: str
    path: tuple[str, ...]
    key: bytes = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "key", self.header.lower().encode())


def header_params(schema: Mapping[str, Any]) -> tuple[HeaderParam, ...]:
    """Find the `x-mcp-header` annotations of an input schema.

    Raises:
        ValueError: An annotation breaks a rule of the specification.

    Example:
        >>> region = {"type": "string", "x-mcp-header": "Region"}
        >>> header_params({"properties": {"r": region}})
        (HeaderParam(header='Mcp-Param-Region', path=('r',)),)
    """
    found: list[HeaderParam] = []
    for path, subschema in _subschemas(schema, ()):
        if ANNOTATION not in subschema:
            continue
        if not path:
            raise ValueError(
                f"{ANNOTATION} {subschema[ANNOTATION]!r} is on a schema that is not "
                "reached through properties alone"
            )
        _check_annotation(subschema, ".".join(path))
        found.append(
            HeaderParam(header=f"Mcp-Param-{subschema[ANNOTATION]}", path=path)
        )
    lowered = [param.header.lower() for param in found]
    for param in found:
        if lowered.count(param.header.lower()) > 1:
            raise ValueError(f"{param.header} is named by more than one parameter")
    return tuple(found)


# Keywords whose value is data, or a map from names to schemas.
_DATA: Final = frozenset({"const", "default", "enum", "examples"})
_MAPS: Final = frozenset(
    {"properties", "patternProperties", "$defs", "definitions", "dependentSchemas"}
)


_Path: TypeAlias = tuple[str, ...] | None
"""The properties that lead to a schema; `None` where anything else leads there."""


def _subschemas(schema: Any, path: _Path) -> Iterator[tuple[_Path, dict[str, Any]]]:
    """Return a schema and all schemas inside of it; the path of the root is empty."""
    if isinstance(schema, list):
        for item in schema:
            yield from _subschemas(item, None)
    elif is_object(schema):
        yield path, schema
        for keyword, value in schema.items():
            if keyword in _MAPS and is_object(value):
                reached = path if keyword == "properties" else None
                for name, subschema in value.items():
                    inner = None if reached is None else (*reached, name)
                    yield from _subschemas(subschema, inner)
            elif keyword not in _DATA:
                yield from _subschemas(value, None)


def _check_annotation(subschema: Mapping[str, Any], where: str) -> None:
    name = subschema[ANNOTATION]
    if not isinstance(name, str) or not _TOKEN.match(name):
        raise ValueError(f"{ANNOTATION} of {where} is {name!r}, not a header name")
    kind = subschema.get("type", "a union" if "anyOf" in subschema else None)
    if kind not in ("string", "integer", "boolean"):
        raise ValueError(
            f"{ANNOTATION} of {where} needs the type string, integer or boolean, "
            f"not {kind!r}"
        )
    if kind == "integer" and not all(map(_is_safe, _bounds(subschema))):
        raise ValueError(
            f"{ANNOTATION} of {where} is on integers beyond 2^53 - 1 either way"
        )


def _bounds(subschema: Mapping[str, Any]) -> list[Any]:
    """Return the values that a schema of integers names, if it names any."""
    named = [
        subschema[key] for key in ("minimum", "maximum", "const") if key in subschema
    ]
    return [*named, *subschema.get("enum", ())]


def _is_safe(value: Any) -> bool:
    return not isinstance(value, (int, float)) or abs(value) <= MAX_SAFE_INTEGER


def check_params(
    headers: Headers,
    params: Iterable[HeaderParam],
    arguments: Mapping[str, Any],
) -> None:
    """Check that `Mcp-Param-*` headers agree with the arguments of a call.

    Raises:
        ProtocolError: -32020, a header is missing, malformed or different.
    """
    for param in params:
        value = _value_at(param.path, arguments)
        header = headers.get(param.key)
        if value is None:
            if header is not None:
                raise _mismatch(param.header, "is not in the body")
        elif isinstance(value, bool):
            _check_decoded(param.header, header, "true" if value else "false")
        elif isinstance(value, int) or _is_integral(value):
            _check_integer(param.header, header, int(value))
        elif isinstance(value, str):
            _check_decoded(param.header, header, value)
        elif header is not None:
            # No value of this type has a header's form: the arguments are wrong.
            _decoded(param.header, header)


def _value_at(path: tuple[str, ...], arguments: Mapping[str, Any]) -> Any:
    value: Any = arguments
    for key in path:
        value = value.get(key) if is_object(value) else None
    return value


def _is_integral(value: object) -> bool:
    return isinstance(value, float) and value.is_integer()


def _check_integer(name: str, header: bytes | None, value: int) -> None:
    if abs(value) > MAX_SAFE_INTEGER:
        raise _mismatch(name, "can't hold an integer beyond 2^53 - 1 either way")
    decimal = _decoded(name, header)
    # `_DECIMAL` bounds the digits, so that `int` takes what it is given.
    matches = _DECIMAL.match(decimal) and int(decimal.partition(".")[0]) == value
    if not matches:
        raise _mismatch(name, "does not match the body")
