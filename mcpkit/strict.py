"""What JSON tells apart and Python, and so pydantic, does not.

    true and the number 1, false and 0      literals and enums of either
    an array that holds an item twice       a set
    an object for an array                  a NamedTuple, filled by name

The published schema refuses these, so they are looked for after pydantic is
done, with the few schemas where they can happen.
"""

import operator
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from mcpkit.faults import json_type, step_of
from mcpkit.protocol.jsonrpc import is_object

_ANYTHING: Final[Mapping[str, Any]] = {}
_BOUNDS: Final[Sequence[tuple[str, Callable[[Any, Any], bool]]]] = (
    ("minimum", operator.ge),
    ("exclusiveMinimum", operator.gt),
    ("maximum", operator.le),
    ("exclusiveMaximum", operator.lt),
    ("multipleOf", lambda value, step: not value % step),
)


def is_confusable(schema: Any) -> bool:
    """Whether pydantic may accept what a schema that it made does not admit."""
    if isinstance(schema, list):
        return any(map(is_confusable, schema))
    if not is_object(schema):
        return False
    return (
        "uniqueItems" in schema
        or "prefixItems" in schema
        or any(isinstance(item, (bool, int, float)) for item in _listed(schema))
        or any(map(is_confusable, schema.values()))
    )


def find_confusion(arguments: Any, schema: Mapping[str, Any]) -> str | None:
    """Find what pydantic accepted and the schema does not admit.

    Returns:
        Its dotted path and what was expected, or `None` when there is nothing.

    Example:
        >>> numbers = {"properties": {"a": {"enum": [1, 2]}}}
        >>> find_confusion({"a": True}, numbers)
        'a: expected number, got boolean'
        >>> find_confusion({"a": 1}, numbers) is None
        True
    """
    return _find(arguments, [schema], schema.get("$defs", {}), ())


def _find(
    value: Any,
    schemas: Iterable[Any],
    definitions: Mapping[str, Any],
    path: tuple[Any, ...],
) -> str | None:
    # A member of a union that might match is enough: this is no validator.
    members = [member for schema in schemas for member in _members(schema, definitions)]
    fault = _fault(value, members)
    if fault is not None:
        return f"{'.'.join(map(step_of, path))}: {fault}"
    for key, item, candidates in _children(value, members):
        found = _find(item, candidates, definitions, (*path, key))
        if found is not None:
            return found
    return None


def _members(
    schema: Any, definitions: Mapping[str, Any]
) -> Iterator[Mapping[str, Any]]:
    """Return the members of a union, its references followed."""
    if not is_object(schema):
        yield _ANYTHING
    elif "$ref" in schema:
        name = schema["$ref"].removeprefix("#/$defs/")
        yield from _members(definitions.get(name), definitions)
    elif "anyOf" in schema or "oneOf" in schema:
        for member in schema.get("anyOf") or schema["oneOf"]:
            yield from _members(member, definitions)
    else:
        yield schema


def _fault(value: Any, members: list[Mapping[str, Any]]) -> str | None:
    if isinstance(value, (bool, int, float)):
        listed = (item for member in members for item in _listed(member))
        mistaken = any(item == value and not _is_same(item, value) for item in listed)
        if mistaken and not any(_admits_number(member, value) for member in members):
            expected = "number" if isinstance(value, bool) else "boolean"
            return f"expected {expected}, got {json_type(value)}"
    elif isinstance(value, dict):
        tuples = any("prefixItems" in member for member in members)
        if tuples and not any(_admits(member, "object") for member in members):
            return "expected array, got object"
    elif isinstance(value, list):
        arrays = [member for member in members if _may_hold(member, value)]
        unique = arrays and all("uniqueItems" in member for member in arrays)
        if unique and len({identity(item) for item in value}) < len(value):
            return "array should not hold an item twice"
    return None


def _children(
    value: Any, members: list[Mapping[str, Any]]
) -> Iterator[tuple[Any, Any, list[Any]]]:
    if isinstance(value, dict):
        objects = [member for member in members if _admits(member, "object")]
        for key, item in value.items():
            yield key, item, [_property(member, key) for member in objects]
    elif isinstance(value, list):
        arrays = [member for member in members if _admits(member, "array")]
        for index, item in enumerate(value):
            yield index, item, [_item(member, index) for member in arrays]


def _property(member: Mapping[str, Any], key: str) -> Any:
    properties = member.get("properties", {})
    if key in properties:
        return properties[key]
    # Pydantic publishes one pattern, which every key matches.
    for schema in member.get("patternProperties", {}).values():
        return schema
    return member.get("additionalProperties", True)


def _item(member: Mapping[str, Any], index: int) -> Any:
    first = member.get("prefixItems", ())
    return first[index] if index < len(first) else member.get("items", True)


def _admits(member: Mapping[str, Any], kind: str) -> bool:
    if "type" in member:
        return bool(member["type"] == kind)
    if "enum" in member or "const" in member:
        return any(json_type(item) == kind for item in _listed(member))
    return True


def _may_hold(member: Mapping[str, Any], items: list[Any]) -> bool:
    """Whether a member of a union may be the one of an array, by its items' types."""
    if not _admits(member, "array"):
        return False
    inner = member.get("items")
    expected = inner.get("type") if is_object(inner) else None
    if expected is None or "prefixItems" in member:
        return True
    kinds = {_kind(item) for item in items}
    if expected == "number":
        kinds.discard("integer")
    return kinds <= {expected}


def _kind(item: Any) -> str:
    # JSON has one kind of number: 1.0 is an integer.
    integral = isinstance(item, float) and item.is_integer()
    return "integer" if integral else json_type(item)


def _admits_number(member: Mapping[str, Any], value: float) -> bool:
    """Whether a member of a union admits a number or a boolean."""
    if "enum" in member or "const" in member:
        return any(_is_same(item, value) for item in _listed(member))
    if isinstance(value, bool):
        return _admits(member, "boolean")
    integral = isinstance(value, int) or value.is_integer()
    typed = _admits(member, "number") or (integral and _admits(member, "integer"))
    return typed and all(
        holds(value, member[bound]) for bound, holds in _BOUNDS if bound in member
    )


def _is_same(item: Any, value: Any) -> bool:
    return bool(identity(item) == identity(value))


def _listed(member: Mapping[str, Any]) -> list[Any]:
    """Return the values that a schema lists, if it lists them."""
    values = member["enum"] if "enum" in member else [member.get("const")]
    return values if isinstance(values, list) else []


def identity(value: Any) -> Any:
    """Return what equal JSON values, and no others, have in common.

    Example:
        >>> identity([1, {"a": None}]) == identity([1.0, {"a": None}])
        True
        >>> identity(1) == identity(True)
        False
    """
    if isinstance(value, bool):
        return bool, value
    if isinstance(value, dict):
        return dict, frozenset((key, identity(item)) for key, item in value.items())
    if isinstance(value, (list, tuple)):
        return list, tuple(map(identity, value))
    return value
