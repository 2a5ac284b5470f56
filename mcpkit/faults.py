"""What is wrong with arguments, in words for the model, and what can be mended."""

import math
import re
import types
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from pydantic_core import ErrorDetails, ValidationError, from_json, to_json

from mcpkit.errors import MCPKitError

_MAX_FAULTS: Final = 20


class ArgumentsError(MCPKitError):
    """The arguments of a call do not match the schema; a line for each fault.

    The lines are written for the model: they name the path and what was
    expected, and hold nothing of the value.
    """


_EXPECTED: Final[Mapping[str, str]] = types.MappingProxyType(
    {
        "int_type": "integer",
        "float_type": "number",
        "decimal_type": "number",
        "string_type": "string",
        "bool_type": "boolean",
        "none_required": "null",
        "list_type": "array",
        "tuple_type": "array",
        "set_type": "array",
        "frozen_set_type": "array",
        "dict_type": "object",
        "model_type": "object",
        "dataclass_type": "object",
        "arguments_type": "object",
        "model_attributes_type": "object",
        "date_type": "string with a date",
        "time_type": "string with a time",
        "datetime_type": "string with a date and time",
        "time_delta_type": "string with a duration",
        "uuid_type": "string with a UUID",
        "bytes_type": "string",
        "finite_number": "finite number",
    }
)
"""What pydantic's type errors expected, in the words of JSON."""

_CONTAINERS: Final = frozenset(
    kind for kind, expected in _EXPECTED.items() if expected in ("array", "object")
)

_JSON_NUMBER: Final = re.compile(
    r"-?(0|[1-9]\d{0,999})(\.\d{1,999})?([eE][+-]?\d{1,3})?\Z"
)


def describe_faults(error: ValidationError) -> str:
    """Describe what is wrong with arguments: a line a fault, without the values."""
    count = error.error_count()
    # The details of very many faults cost more than their answer may.
    if count > _MAX_FAULTS:
        return f"{count} values do not match the input schema"
    details = error.errors(include_url=False, include_context=False)
    return "\n".join(_describe(detail) for detail in details)


def _describe(detail: ErrorDetails) -> str:
    path = ".".join(str(step)[:100] for step in detail["loc"]) or "arguments"
    kind = detail["type"]
    if kind == "missing":
        return f"{path}: missing"
    if kind in ("extra_forbidden", "unexpected_keyword_argument"):
        return f"{path}: unknown argument"
    if kind in _EXPECTED:
        return f"{path}: expected {_EXPECTED[kind]}, got {_json_type(detail['input'])}"
    if kind == "union_tag_invalid":
        return f"{path}: does not match any of the expected tags"
    message = detail["msg"].removeprefix("Value error, ")
    if kind.endswith("_parsing"):
        # The rest of such a message quotes the value.
        message = message.partition(",")[0]
    return f"{path}: {message[:1].lower()}{message[1:]}"


def _json_type(value: Any) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case int():
            return "integer"
        case float():
            return "number"
        case str():
            return "string"
        case dict():
            return "object"
        case _:
            return "array"


def mend_numbers(
    encoded: bytes, error: ValidationError, *, coerce: bool
) -> bytes | None:
    """Return the arguments with integral floats as integers, where that is a fault."""
    if error.error_count() > _MAX_FAULTS:
        return None
    arguments = from_json(encoded)
    mended = False
    for detail in error.errors(include_url=False, include_context=False):
        number = _number(detail, coerce=coerce)
        if number is not None:
            mended |= _replace(arguments, detail["loc"], detail["input"], number)
    return to_json(arguments) if mended else None


def decode_strings(
    arguments: Mapping[str, Any], error: ValidationError
) -> dict[str, Any] | None:
    """Return the strings, decoded from JSON where they can't be strings."""
    if error.error_count() > _MAX_FAULTS:
        return None
    decoded = dict(arguments)
    for detail in error.errors(include_url=False, include_context=False):
        name = str(detail["loc"][0])
        if detail["type"] in _CONTAINERS and isinstance(decoded.get(name), str):
            try:
                decoded[name] = from_json(decoded[name], allow_inf_nan=False)
            except ValueError:
                return None
    return None if decoded == arguments else decoded


def _number(detail: ErrorDetails, *, coerce: bool) -> int | float | None:
    value = detail["input"]
    kind = detail["type"]
    if coerce and isinstance(value, str) and kind in ("int_type", "float_type"):
        value = from_json(value) if _JSON_NUMBER.match(value) else None
        if isinstance(value, int):
            return value
        if isinstance(value, float) and kind == "float_type":
            return value if math.isfinite(value) else None
    if isinstance(value, float) and kind in ("int_type", "literal_error", "enum"):
        return int(value) if value.is_integer() else None
    return None


def _replace(
    arguments: Any, location: Sequence[int | str], value: Any, number: float
) -> bool:
    """Put a number in place of a value; labels of union members are no keys."""
    holder: Any = None
    last: int | str = ""
    found: Any = arguments
    for step in location:
        is_key = isinstance(found, dict) and step in found
        is_index = isinstance(found, list) and isinstance(step, int)
        if is_key or is_index:
            holder, last = found, step
            found = holder[last]
    if holder is None or type(found) is not type(value) or found != value:
        return False
    holder[last] = number
    return True


def non_finite(value: Any, path: str = "") -> str | None:
    """Return the dotted path of a NaN or an infinity in a value, if it holds one.

    Example:
        >>> non_finite({"a": [1, float("nan")]})
        'a.1'
        >>> non_finite([0.5]) is None
        True
    """
    match value:
        case float():
            return None if math.isfinite(value) else path
        case Mapping():
            steps: Iterable[tuple[Any, Any]] = value.items()
        case list() | tuple() | set() | frozenset():
            steps = enumerate(value)
        case _:
            return None
    for step, item in steps:
        found = non_finite(item, f"{path}.{step}" if path else str(step))
        if found is not None:
            return found
    return None
