"""How deep a value of a recursive union may nest.

A union tries each of its members, and one whose members hold it again tries them
at every level: what that costs grows with the power of the depth, whether or not
the value fits. A type with a discriminator does not try, and has no such limit.
"""

import math
from collections.abc import Iterator, Mapping
from typing import Any, Final

from mcpkit.protocol.jsonrpc import is_object

_MAX_TRIES: Final = 4096
"""How often the members of a union may be tried for one value at the bottom."""


def depth_limit(schema: Mapping[str, Any]) -> int | None:
    """Return how deep arguments may nest, or `None` when that costs nothing.

    Example:
        >>> tree = {"anyOf": [{"$ref": "#/$defs/A"}, {"$ref": "#/$defs/B"}]}
        >>> node = {"type": "object", "properties": {"kid": tree}}
        >>> depth_limit({"$defs": {"A": node, "B": node}, "properties": {"a": tree}})
        13
        >>> depth_limit({"properties": {"a": {"type": "object"}}}) is None
        True
    """
    definitions = schema.get("$defs", {})
    recursive = {name for name in definitions if name in _reached(name, definitions)}
    widths = [
        width
        for name in recursive
        for width in _widths(definitions[name], recursive, definitions)
    ]
    widest = max(widths, default=1)
    return None if widest < 2 else 1 + int(math.log(_MAX_TRIES, widest))


def depth_of(value: Any) -> int:
    """Return how deep arrays and objects nest in a value.

    Example:
        >>> depth_of({"a": [1]})
        2
    """
    depth, level = 0, [value]
    while level := [item for item in level if isinstance(item, (dict, list))]:
        depth += 1
        level = [
            child
            for item in level
            for child in (item.values() if isinstance(item, dict) else item)
        ]
    return depth


def _reached(name: str, definitions: Mapping[str, Any]) -> set[str]:
    """Return the definitions that one leads to."""
    reached: set[str] = set()
    waiting = [name]
    while waiting:
        for target in _references(definitions.get(waiting.pop())):
            if target not in reached:
                reached.add(target)
                waiting.append(target)
    return reached


def _references(schema: Any) -> Iterator[str]:
    if isinstance(schema, list):
        for item in schema:
            yield from _references(item)
    elif is_object(schema):
        if isinstance(schema.get("$ref"), str):
            yield schema["$ref"].removeprefix("#/$defs/")
        for value in schema.values():
            yield from _references(value)


def _widths(
    schema: Any, recursive: set[str], definitions: Mapping[str, Any]
) -> Iterator[int]:
    """Yield how many members of each union lead back into the recursion."""
    if isinstance(schema, list):
        for item in schema:
            yield from _widths(item, recursive, definitions)
    elif is_object(schema):
        # `oneOf` is how a discriminator is published.
        members = schema.get("anyOf", [])
        yield sum(
            any(target in recursive for target in _references(member))
            for member in members
        )
        for value in schema.values():
            yield from _widths(value, recursive, definitions)
