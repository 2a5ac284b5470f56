"""What is wrong with arguments, in words for the model, and what can be mended."""

import math
import re
import types
import typing
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final

from pydantic_core import ErrorDetails, ValidationError, from_json, to_json
from pydantic_core.core_schema import ErrorType

from mcpkit.errors import MCPKitError

MAX_FAULTS: Final = 20
"""How many faults are told one by one."""

_MAX_LEAVES: Final = 1000
_MAX_MENDED: Final = 1000
"""How many faults are looked into: describing more costs more than it helps."""


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
        "named_tuple_type": "array",
        "dict_type": "object",
        "mapping_type": "object",
        "model_type": "object",
        "dataclass_type": "object",
        "arguments_type": "object",
        "model_attributes_type": "object",
        "date_type": "string with a date",
        "time_type": "string with a time",
        "datetime_type": "string with a date and time",
        "time_delta_type": "string with a duration",
        "uuid_type": "string with a UUID",
        "url_type": "string with a URL",
        "bytes_type": "string",
        "finite_number": "finite number",
    }
)
"""What pydantic's type errors expected, in the words of JSON."""

_CONTAINERS: Final = frozenset(
    kind for kind, expected in _EXPECTED.items() if expected in ("array", "object")
)

_MISSING: Final = frozenset(
    {
        "missing",
        "missing_argument",
        "missing_keyword_only_argument",
        "missing_positional_only_argument",
    }
)
_UNKNOWN: Final = frozenset(
    {
        "extra_forbidden",
        "unexpected_keyword_argument",
        "unexpected_positional_argument",
    }
)

# The messages of pydantic's own faults are made of the type alone; others are
# made by who knows, and may quote the value.
_OWN: Final = frozenset(typing.get_args(ErrorType)) - {
    "assertion_error",
    "import_error",
    "value_error",
}

_JSON_NUMBER: Final = re.compile(
    r"-?(0|[1-9]\d{0,999})(\.\d{1,999})?([eE][+-]?\d{1,3})?\Z"
)
_PREFIX: Final = re.compile(r"(Value error|Assertion failed), ")
_ADDRESS: Final = re.compile(r"[^.,]*https?://.*")
_MEMBER: Final = re.compile(r"<[\w.]+: ([^<>]*)>")
_CAPITAL: Final = re.compile(r"[A-Z](?![A-Z])")
_CLASS: Final = re.compile(r"[A-Za-z_]\w*\Z")


@dataclass(frozen=True, slots=True)
class _Fault:
    """One fault.

    Attributes:
        path: The keys and indices that lead to it.
        union: How many of them lead to the union that it is a fault of one
            member of; `None` outside of unions.
        member: The name of that member, where it is one that means something.
        expected: The JSON type that was expected, for a wrong type.
        words: What is wrong.
    """

    path: tuple[str, ...]
    union: int | None
    member: str
    expected: str | None
    words: str

    @property
    def is_alternative(self) -> bool:
        """Whether it is what one member of a union has against the whole value."""
        return self.union == len(self.path)


def describe_faults(error: ValidationError, arguments: Any) -> str:
    """Describe what is wrong with arguments: a line a fault, without the values.

    Args:
        error: What pydantic found.
        arguments: What it was given, to tell keys from the names of types.
    """
    count = error.error_count()
    # The details of very many faults cost more than their answer may.
    if count > _MAX_MENDED:
        return f"{count} values do not match the input schema"
    faults = [_read(detail, arguments) for detail in error.errors(include_url=False)]
    # Where a member of a union has the right type, the others do not matter.
    settled = {
        fault.path[: fault.union]
        for fault in faults
        if fault.union is not None and not fault.is_alternative
    }
    alternatives: dict[tuple[str, ...], list[_Fault]] = {}
    lines: dict[str, None] = {}
    for fault in faults:
        if not fault.is_alternative:
            lines[_line(fault.path, fault.words, fault.member)] = None
        elif fault.expected is None or fault.path not in settled:
            alternatives.setdefault(fault.path, []).append(fault)
    for path, several in alternatives.items():
        lines[_line(path, _either(several))] = None
    told = list(lines)
    if len(told) > MAX_FAULTS:
        told[MAX_FAULTS:] = [f"and {len(told) - MAX_FAULTS} more"]
    return "\n".join(told)


def _line(path: Sequence[str], words: str, member: str = "") -> str:
    line = f"{'.'.join(path) or 'arguments'}: {words}"
    return f"{line} (as {member})" if member else line


def _either(faults: Sequence[_Fault]) -> str:
    """Put the faults of several members of a union, with one value, into one."""
    expected = [fault.expected for fault in faults if fault.expected is not None]
    words = [fault.words for fault in faults if fault.expected is None]
    if expected:
        got = next(fault.words for fault in faults if fault.expected is not None)
        got = got.rpartition(", got ")[2]
        words.append(f"expected {listed(dict.fromkeys(expected))}, got {got}")
    return "; or ".join(dict.fromkeys(words))


def listed(words: Iterable[str]) -> str:
    """Join alternatives.

    Example:
        >>> listed(["array", "string", "null"])
        'array, string or null'
    """
    *head, last = words
    return f"{', '.join(head)} or {last}" if head else last


def _read(detail: ErrorDetails, arguments: Any) -> _Fault:
    path, union, member = _locate(detail, arguments)
    kind = detail["type"]
    expected = _EXPECTED.get(kind)
    if expected is not None:
        words = f"expected {expected}, got {json_type(detail['input'])}"
    elif kind in ("union_tag_invalid", "union_tag_not_found"):
        path, words = _tag_fault(detail, path)
    else:
        words = _words(detail)
    return _Fault(path, union, member, expected, words)


def _locate(
    detail: ErrorDetails, arguments: Any
) -> tuple[tuple[str, ...], int | None, str]:
    """Tell the keys of a location from the names of the members of unions."""
    path: list[str] = []
    union, member = None, ""
    found = arguments
    steps = detail["loc"]
    for index, step in enumerate(steps):
        is_key = isinstance(found, dict) and step in found
        is_index = isinstance(step, int)
        is_last = index == len(steps) - 1
        if is_key or is_index or (is_last and detail["type"] in _MISSING):
            path.append(step_of(step))
            found = _at(found, step)
        elif step == "[key]":
            path.append(step)
        else:
            union, member = len(path), str(step)
    if union == len(path) or not _CLASS.match(member):
        member = ""
    return tuple(path), union, member


def step_of(key: int | str) -> str:
    r"""Return a key of the client's, at a length and in the one line of a fault.

    Example:
        >>> print(step_of("a" + chr(9) + "b: missing"))
        a\tb: missing
    """
    text = str(key)[:100]
    return text if text.isprintable() else repr(text)[1:-1]


def _at(holder: Any, key: Any) -> Any:
    try:
        return holder[key]
    except (IndexError, KeyError, TypeError):
        return None


def _tag_fault(
    detail: ErrorDetails, path: tuple[str, ...]
) -> tuple[tuple[str, ...], str]:
    context = detail["ctx"]
    tag = context["discriminator"].removesuffix("()")
    if not tag.startswith("'"):
        return path, "does not match any of the expected forms"
    if "expected_tags" not in context:
        return (*path, tag.strip("'")), "missing"
    return (*path, tag.strip("'")), f"input should be one of {context['expected_tags']}"


def _words(detail: ErrorDetails) -> str:
    kind = detail["type"]
    if kind in _MISSING:
        return "missing"
    if kind in _UNKNOWN:
        return "unknown argument"
    if kind in ("too_short", "too_long"):
        return _length_fault(detail)
    message = _PREFIX.sub("", detail["msg"])
    if kind.endswith("_parsing"):
        # The rest of such a message quotes the value.
        message = message.partition(",")[0]
    if kind not in _OWN and _quotes(message, detail["input"]):
        return "input is not valid"
    message = _MEMBER.sub(r"\1", _ADDRESS.sub("", message)).strip()
    if _CAPITAL.match(message):
        return message[:1].lower() + message[1:]
    return message or "input is not valid"


def _quotes(message: str, value: Any) -> bool:
    """Whether a message holds a value, or a part of it that is one."""
    # Very much is not looked through: the message is not told then.
    leaves = list(islice(_leaves(value), _MAX_LEAVES))
    return len(leaves) == _MAX_LEAVES or any(_holds(message, leaf) for leaf in leaves)


def _leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (list, tuple, set, frozenset)):
        for item in value:
            yield from _leaves(item)
    else:
        yield value


def _holds(message: str, leaf: Any) -> bool:
    if isinstance(leaf, bool) or not isinstance(leaf, (str, int, float)):
        return False
    shown = str(leaf)
    # A short value may be a part of a word, or a bound.
    return (
        repr(leaf) in message
        if len(shown) < 3 and isinstance(leaf, str)
        else (len(shown) > 2 and shown in message)
    )


def _length_fault(detail: ErrorDetails) -> str:
    context = detail["ctx"]
    least = "min_length" in context
    limit = context["min_length"] if least else context["max_length"]
    return length_fault(json_type(detail["input"]), limit, least=least)


def length_fault(kind: str, limit: int, *, least: bool) -> str:
    """Say that an array, an object or a string is too short or too long.

    Example:
        >>> length_fault("array", 1, least=True)
        'array should have at least 1 item'
    """
    noun = {"string": "character", "object": "member"}.get(kind, "item")
    bound = "least" if least else "most"
    return f"{kind} should have at {bound} {limit} {noun}{'' if limit == 1 else 's'}"


def json_type(value: Any) -> str:
    """Return the name that JSON Schema has for the type of a value.

    Example:
        >>> json_type(1.5)
        'number'
    """
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
    encoded: bytes, error: ValidationError, *, coerce: bool, hasty: bool = False
) -> bytes | None:
    """Return the arguments with integral floats as integers, where that is a fault.

    Args:
        encoded: The arguments.
        error: What pydantic found.
        coerce: Numbers in strings are numbers, too.
        hasty: Only the first fault of a collection was looked for.

    Returns:
        The mended arguments, or `None` when there is nothing to mend.
    """
    arguments = from_json(encoded)
    if hasty or error.error_count() > _MAX_MENDED:
        # Where the faults are costs more to find out than to mend them all.
        mended = to_json(_with_integers(arguments))
        return None if mended == encoded else mended
    changed = False
    for detail in error.errors(include_url=False, include_context=False):
        number = _number(detail, coerce=coerce)
        if number is not None:
            changed |= _replace(arguments, detail["loc"], detail["input"], number)
    return to_json(arguments) if changed else None


def _with_integers(value: Any) -> Any:
    match value:
        case float():
            return int(value) if value.is_integer() else value
        case dict():
            return {key: _with_integers(item) for key, item in value.items()}
        case list():
            return [_with_integers(item) for item in value]
        case _:
            return value


def decode_strings(
    arguments: Mapping[str, Any], error: ValidationError
) -> dict[str, Any] | None:
    """Return the strings, decoded from JSON where they can't be strings."""
    decoded = dict(arguments)
    for detail in error.errors(include_url=False, include_context=False):
        name = str(detail["loc"][0])
        # A literal may be a number.
        literal = detail["type"] == "literal_error"
        if not literal and detail["type"] not in _CONTAINERS:
            continue
        if isinstance(decoded.get(name), str):
            try:
                decoded[name] = from_json(decoded[name], allow_inf_nan=False)
            except ValueError:
                if not literal:
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


def find_non_finite(value: Any) -> str | None:
    """Return what `non_finite` does, at once where a large value holds none.

    Args:
        value: What was encoded before, so that its iterators are read.
    """
    try:
        constants = to_json(value, inf_nan_mode="constants", fallback=str)
    # There is half a surrogate pair in it.
    except ValueError:
        return non_finite(value)
    if b"NaN" in constants or b"Infinity" in constants:
        return non_finite(value)
    return None


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
