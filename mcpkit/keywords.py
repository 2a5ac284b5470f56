"""What a keyword of JSON Schema has against a value, in words for the model.

The words are those of `faults`: the dotted path, what was expected, and nothing
of the value.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from types import MappingProxyType
from typing import Any, Final, Protocol

from mcpkit.faults import json_type, length_fault, listed, step_of
from mcpkit.protocol.jsonrpc import encode

_MAX_LISTED: Final = 20
_MAX_BRANCHES: Final = 4
_MAX_SHOWN: Final = 100
_MAX_WORDS: Final = 400
_NO_FORM: Final = "matches none of the forms that are allowed"


class KeywordError(Protocol):
    """What a validator found: an error of the library jsonschema.

    Attributes:
        validator: The keyword; `None` for a schema that is `false`.
        validator_value: Its value.
        instance: The value that breaks it.
        schema: The schema that it is in.
        absolute_path: The keys and indices that lead to the value.
        absolute_schema_path: Those that lead to the keyword.
        schema_path: Those that lead to it from the keyword that it is a part of.
        context: What the members of a union have against the value.
    """

    validator: str | None
    validator_value: Any
    instance: Any
    schema: Any
    context: Sequence["KeywordError"]
    schema_path: Sequence[int | str]

    @property
    def absolute_path(self) -> Sequence[int | str]: ...  # noqa: D102

    @property
    def absolute_schema_path(self) -> Sequence[int | str]: ...  # noqa: D102


def describe(error: KeywordError, root: str) -> Iterator[str]:
    """Describe an error: a line a fault, most often one.

    Args:
        error: The error.
        root: What the whole value is called.
    """
    path = [step_of(step) for step in error.absolute_path]
    if "propertyNames" in error.absolute_schema_path and isinstance(
        error.instance, str
    ):
        path += [step_of(error.instance), "[key]"]
    if error.validator in ("anyOf", "oneOf") and error.context:
        yield from _union(error, path, root)
    else:
        words = _WORDS.get(error.validator or "", _NOT_ALLOWED)
        yield f"{'.'.join(path) or root}: {words(error)}"


def _type(error: KeywordError) -> str:
    types = error.validator_value
    names = types if isinstance(types, list) else [types]
    return f"expected {listed(map(str, names))}, got {json_type(error.instance)}"


def _enum(error: KeywordError) -> str:
    values = error.validator_value
    if len(values) > _MAX_LISTED:
        return "input should be one of the values that the schema lists"
    return f"input should be {listed(map(_shown, values))}"


def _const(error: KeywordError) -> str:
    return f"input should be {_shown(error.validator_value)}"


def _shown(value: Any) -> str:
    if isinstance(value, str):
        shown = f"'{value}'" if value.isprintable() else repr(value)
    else:
        shown = encode(value).decode()
    return shown if len(shown) <= _MAX_SHOWN else f"{shown[:_MAX_SHOWN]}…"


def _pattern(error: KeywordError) -> str:
    return f"string should match pattern {_shown(error.validator_value)}"


def _compared(comparison: str) -> Callable[[KeywordError], str]:
    def words(error: KeywordError) -> str:
        keyword = str(error.validator)
        # In draft 4, a keyword of its own tells that the bound is left out.
        exclusive = f"exclusive{keyword.capitalize()}"
        bare = keyword.startswith("exclusive") or error.schema.get(exclusive) is True
        equal = "" if bare else " or equal to"
        limit = _shown(error.validator_value)
        return f"input should be {comparison} than{equal} {limit}"

    return words


def _multiple(error: KeywordError) -> str:
    return f"input should be a multiple of {_shown(error.validator_value)}"


def _length(kind: str, *, least: bool) -> Callable[[KeywordError], str]:
    return lambda error: length_fault(kind, error.validator_value, least=least)


def _said(words: str) -> Callable[[KeywordError], str]:
    return lambda _: words


_NOT_ALLOWED: Final = _said("is not allowed here")

_WORDS: Final[Mapping[str, Callable[[KeywordError], str]]] = MappingProxyType(
    {
        "additionalItems": _said("array has more items than are allowed"),
        "additionalProperties": _said("unknown argument"),
        "anyOf": _said(_NO_FORM),
        "const": _const,
        "contains": _said("array does not contain the items that it should"),
        "dependencies": _said("missing"),
        "dependentRequired": _said("missing"),
        "enum": _enum,
        "exclusiveMaximum": _compared("less"),
        "exclusiveMinimum": _compared("greater"),
        "items": _said("array has more items than are allowed"),
        "maxContains": _said("array does not contain the items that it should"),
        "maxItems": _length("array", least=False),
        "maxLength": _length("string", least=False),
        "maxProperties": _length("object", least=False),
        "maximum": _compared("less"),
        "minContains": _said("array does not contain the items that it should"),
        "minItems": _length("array", least=True),
        "minLength": _length("string", least=True),
        "minProperties": _length("object", least=True),
        "minimum": _compared("greater"),
        "multipleOf": _multiple,
        "not": _said("is of a form that is not allowed"),
        "oneOf": _said("matches more than one of the forms, of which it may match one"),
        "pattern": _pattern,
        "required": _said("missing"),
        "type": _type,
        "unevaluatedItems": _said("array has more items than are allowed"),
        "unevaluatedProperties": _said("object has members that are not allowed"),
        "uniqueItems": _said("array should not hold an item twice"),
    }
)
"""What is wrong, by the keyword that says so."""


def _union(error: KeywordError, path: Sequence[str], root: str) -> Iterator[str]:
    """Describe what all members of a union have against a value."""
    members: dict[Any, list[KeywordError]] = {}
    for fault in error.context:
        members.setdefault(fault.schema_path[0], []).append(fault)
    where = ".".join(path) or root
    depth = len(path)
    # Those that the value is not even of the type of matter no more, if others do.
    fitting = [
        faults for faults in members.values() if not _is_of_another_type(faults, depth)
    ]
    if not fitting:
        types = [_types(faults, depth) for faults in members.values()]
        expected = listed(dict.fromkeys(name for names in types for name in names))
        yield f"{where}: expected {expected}, got {json_type(error.instance)}"
    elif len(fitting) == 1:
        for fault in fitting[0]:
            yield from describe(fault, root)
    else:
        yield f"{where}: {_alternatives(fitting, root)}"


def _is_of_another_type(faults: Sequence[KeywordError], depth: int) -> bool:
    return bool(_types(faults, depth))


def _types(faults: Sequence[KeywordError], depth: int) -> list[str]:
    for fault in faults:
        if fault.validator == "type" and len(fault.absolute_path) == depth:
            types = fault.validator_value
            return [*map(str, types)] if isinstance(types, list) else [str(types)]
    return []


def _alternatives(members: Sequence[Sequence[KeywordError]], root: str) -> str:
    if len(members) > _MAX_BRANCHES:
        return _NO_FORM
    said = [
        ", ".join(
            line
            for fault in islice(faults, _MAX_BRANCHES)
            for line in describe(fault, root)
        )
        for faults in members
    ]
    words = "; or ".join(dict.fromkeys(said))
    return words if len(words) <= _MAX_WORDS else _NO_FORM
