"""JSON Schemas that are given, and not read from a function.

They are read once, when the tool is registered:

    one of JSON's own values, in bounds          depth, number of objects
    a dialect that is known                      `$schema`, 2020-12 without it
    valid in that dialect
    references that stay inside of the schema    nothing is ever fetched
    no reference that leads back to itself       before it gets to a part of a value
    patterns that are regular expressions        searched in linear time if they can be

and validate in a bounded number of steps. The library is jsonschema, an extra,
`mcpkit[schema]`.
"""

import functools
import math
import re
from collections.abc import Callable, Iterator, Mapping
from contextvars import ContextVar
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from pydantic_core import SchemaError, SchemaValidator
from pydantic_core.core_schema import str_schema

from mcpkit.errors import SetupError
from mcpkit.faults import MAX_FAULTS
from mcpkit.keywords import describe
from mcpkit.protocol.jsonrpc import is_object
from mcpkit.strict import identity

if TYPE_CHECKING:
    from referencing import Specification
    from referencing._core import Resolved, Resolver

MAX_DEPTH: Final = 64
"""How deep a schema may nest, in objects and arrays."""

MAX_OBJECTS: Final = 2_000
"""How many objects a schema may consist of."""

MAX_STEPS: Final = 200_000
"""How many keywords are looked at for one value; some count as several."""

MAX_CHAIN: Final = 64
"""How many schemas may be about one and the same value, each inside of another."""

DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"
"""The dialect of a schema that does not name one."""

_REFERENCES: Final = ("$ref", "$dynamicRef", "$recursiveRef")

# Keywords whose schemas are about the value itself, and not about a part of it.
_IN_PLACE: Final = ("not", "if", "then", "else")
_IN_PLACE_LISTS: Final = ("allOf", "anyOf", "oneOf")
_IN_PLACE_MAPS: Final = ("dependentSchemas", "dependencies")

# Keywords that make and drop many an error, or look at a value twice.
_COSTLY: Final = frozenset(
    {
        *_REFERENCES,
        *_IN_PLACE,
        *_IN_PLACE_LISTS,
        *_IN_PLACE_MAPS,
        "contains",
        "unevaluatedItems",
        "unevaluatedProperties",
    }
)
_COST: Final = 10

# Keywords whose value is data.
_DATA: Final = frozenset({"const", "default", "enum", "examples"})

_steps: ContextVar[list[int]] = ContextVar("steps")


class _TooMuchError(Exception):
    """A value takes more steps to validate than it may."""


class GivenSchema:
    """A JSON Schema, ready to validate.

    Args:
        schema: The schema. It is copied.
        what: What it is, for messages: "tool 'search': input_schema".
        root: What a value is called that it describes.

    Raises:
        SetupError: It is no schema that can be published and enforced.

    Example:
        >>> GivenSchema({"type": "integer"}, "input_schema", "arguments").faults("x")
        ['arguments: expected integer, got string']
    """

    def __init__(self, schema: Mapping[str, Any], what: str, root: str) -> None:
        if not isinstance(schema, Mapping):
            raise SetupError(f"{what} is a dict, not {schema!r}")
        self.schema: dict[str, Any] = _copied(schema, what)
        # What validates is another copy, since `$schema` in it would undo the bounds.
        self._validator = _read(_copied(schema, what), what)
        self._root = root

    def faults(self, value: Any) -> list[str]:
        """Return what the schema has against a value: a line a fault.

        Args:
            value: Decoded JSON.
        """
        token = _steps.set([MAX_STEPS])
        try:
            errors = list(islice(self._validator.iter_errors(value), MAX_FAULTS + 1))
        except _TooMuchError:
            return [f"{self._root}: too much to be checked"]
        except RecursionError:
            return [f"{self._root}: nested too deep to be checked"]
        except OverflowError:
            return [f"{self._root}: a number is too large to be checked"]
        finally:
            _steps.reset(token)
        if len(errors) > MAX_FAULTS:
            return [f"more than {MAX_FAULTS} values do not match the schema"]
        lines = [line for error in errors for line in describe(error, self._root)]
        return list(dict.fromkeys(lines))


def _copied(value: Any, what: str) -> Any:
    """Return a copy of a value of JSON that is small enough."""
    return _copy(value, what, MAX_DEPTH, [MAX_OBJECTS])


def _copy(value: Any, what: str, depth: int, objects: list[int]) -> Any:
    if isinstance(value, (str, bool, int, type(None))):
        return value
    if isinstance(value, float) and math.isfinite(value):
        return value
    if depth == 0:
        raise SetupError(f"{what} nests deeper than {MAX_DEPTH} objects and arrays")
    if isinstance(value, (list, tuple)):
        return [_copy(item, what, depth - 1, objects) for item in value]
    if not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value):
        raise SetupError(f"{what} holds {value!r}, which is no JSON")
    objects[0] -= 1
    if objects[0] < 0:
        raise SetupError(f"{what} has more than {MAX_OBJECTS} objects")
    return {key: _copy(item, what, depth - 1, objects) for key, item in value.items()}


def _read(schema: dict[str, Any], what: str) -> Any:
    """Return the validator of a schema, which is changed."""
    try:
        import jsonschema  # type: ignore[import-untyped]  # noqa: PLC0415  # an extra
        from referencing import Registry  # noqa: PLC0415
        from referencing.jsonschema import specification_with  # noqa: PLC0415
    except ImportError as error:
        raise SetupError(
            f"{what} needs the library jsonschema: pip install 'mcpkit[schema]'"
        ) from error
    dialect = schema.get("$schema", DIALECT)
    known = None
    if isinstance(dialect, str):
        known = jsonschema.validators.validator_for({"$schema": dialect}, default=None)
    if known in (None, jsonschema.Draft3Validator):
        raise SetupError(
            f"{what} has the dialect {dialect!r}, which is not supported; leave "
            f"$schema out, or write {DIALECT!r}"
        )
    try:
        # Patterns are looked at below: not all of them are Python's.
        known.check_schema(schema, format_checker=jsonschema.FormatChecker(formats=[]))
    except jsonschema.SchemaError as error:
        where = "/".join(map(str, error.absolute_path))
        raise SetupError(
            f"{what} is no JSON Schema, at '#/{where}': {error.message}"
        ) from error
    _drop_dialect(schema, dialect, what)
    specification = specification_with(dialect)
    resource = specification.create_resource(schema)
    registry = Registry().with_resource(resource.id() or "", resource).crawl()
    walk = _Walk(specification, what)
    walk.check(schema, registry.resolver_with_root(resource))
    walk.check_chains()
    return _bounded(known)(schema, registry=registry)


def _drop_dialect(value: Any, dialect: str, what: str) -> None:
    """Remove `$schema` everywhere: jsonschema would take its own validator there."""
    if isinstance(value, list):
        for item in value:
            _drop_dialect(item, dialect, what)
    elif is_object(value):
        if isinstance(value.get("$schema"), str):
            named = value.pop("$schema")
            if named.rstrip("#") != dialect.rstrip("#"):
                raise SetupError(
                    f"{what} has the dialect {dialect!r}, and parts of another: "
                    f"{named!r}"
                )
        for keyword, inner in value.items():
            if keyword not in _DATA:
                _drop_dialect(inner, dialect, what)


class _Walk:
    """A walk over all schemas that make up a schema.

    Args:
        specification: What tells which keywords hold schemas.
        what: What the schema is, for messages.
    """

    def __init__(self, specification: "Specification[Any]", what: str) -> None:
        self._specification = specification
        self._what = what
        # By the identity of a schema, those that are about the same value.
        self._in_place: dict[int, list[int]] = {}

    def check(self, contents: Any, resolver: "Resolver[Any]") -> None:
        """Check a schema, and all that it holds or refers to."""
        waiting = [(contents, resolver)]
        while waiting:
            contents, resolver = waiting.pop()
            if is_object(contents) and id(contents) not in self._in_place:
                waiting += self._visit(contents, resolver)

    def _visit(
        self, contents: dict[str, Any], resolver: "Resolver[Any]"
    ) -> Iterator[tuple[Any, "Resolver[Any]"]]:
        in_place = self._in_place[id(contents)] = [
            *map(id, _schemas_in_place(contents))
        ]
        for pattern in _patterns(contents):
            self._check_pattern(pattern)
        for keyword in _REFERENCES:
            if isinstance(contents.get(keyword), str):
                target = self._resolve(contents[keyword], resolver)
                in_place.append(id(target.contents))
                yield target.contents, target.resolver
        for inner in self._specification.subresources_of(contents):
            resource = self._specification.create_resource(inner)
            yield inner, resolver.in_subresource(resource)

    def _resolve(self, reference: str, resolver: "Resolver[Any]") -> "Resolved[Any]":
        from referencing.exceptions import Unresolvable  # noqa: PLC0415  # an extra

        try:
            return resolver.lookup(reference)
        except (Unresolvable, ValueError) as error:
            raise SetupError(
                f"{self._what} refers to {reference!r}, which is not inside of it; "
                "nothing is fetched: copy what it refers to into $defs"
            ) from error

    def _check_pattern(self, pattern: str) -> None:
        try:
            searcher(pattern)
        except re.error as error:
            raise SetupError(
                f"{self._what} has the pattern {pattern!r}, which is no regular "
                f"expression: {error}"
            ) from error

    def check_chains(self) -> None:
        """Refuse schemas that lead to each other for one and the same value.

        Those that do so without end would never be done with any value.
        """
        lengths: dict[int, int] = {}
        for start in self._in_place:
            chain = {start: iter(self._in_place[start])}
            while chain:
                current, following = next(reversed(chain.items()))
                target = next(following, None)
                if target is None:
                    targets = self._in_place.get(current, [])
                    lengths[current] = 1 + max(
                        (lengths[it] for it in targets), default=0
                    )
                    del chain[current]
                elif target in chain:
                    raise SetupError(f"{self._what} refers to itself without end")
                elif target not in lengths:
                    chain[target] = iter(self._in_place.get(target, ()))
        if max(lengths.values()) > MAX_CHAIN:
            raise SetupError(
                f"{self._what} chains more than {MAX_CHAIN} schemas about one value"
            )


def _patterns(contents: dict[str, Any]) -> list[str]:
    patterns = list(contents.get("patternProperties", ()))
    if isinstance(contents.get("pattern"), str):
        patterns.append(contents["pattern"])
    return patterns


def _schemas_in_place(contents: dict[str, Any]) -> Iterator[Any]:
    """Return the schemas in a schema that are about the same value."""
    for keyword in _IN_PLACE:
        if keyword in contents:
            yield contents[keyword]
    for keyword in _IN_PLACE_LISTS:
        yield from contents.get(keyword, ())
    for keyword in _IN_PLACE_MAPS:
        yield from contents.get(keyword, {}).values()


@functools.lru_cache(maxsize=1024)
def searcher(pattern: str) -> Callable[[str], Any]:
    """Return what searches a text for a pattern, in linear time if it can be.

    Raises:
        re.error: It is no regular expression.

    Example:
        >>> bool(searcher("b+")("abc"))
        True
    """
    try:
        return SchemaValidator(str_schema(pattern=pattern)).isinstance_python
    # It looks ahead or behind, say, or is none at all.
    except SchemaError:
        return re.compile(pattern).search


@functools.cache
def _bounded(known: Any) -> Any:
    """Return the validator of a dialect, with the steps of a validation counted."""
    from jsonschema import validators  # noqa: PLC0415  # an extra

    keywords = {
        **known.VALIDATORS,
        "additionalProperties": _additional_properties,
        "dependentRequired": _dependencies,
        "pattern": _pattern,
        "patternProperties": _pattern_properties,
        "properties": _properties,
        "required": _required,
        "uniqueItems": _unique_items,
    }
    if "dependencies" in known.VALIDATORS:
        keywords["dependencies"] = _dependencies
    counted = {
        name: _counted(check, _COST if name in _COSTLY else 1)
        for name, check in keywords.items()
    }
    return validators.extend(known, counted)


def _counted(check: Callable[..., Any], cost: int) -> Callable[..., Any]:
    def count(validator: Any, value: Any, instance: Any, schema: Any) -> Any:
        steps = _steps.get()
        steps[0] -= cost
        if steps[0] < 0:
            raise _TooMuchError
        return check(validator, value, instance, schema)

    return count


def _fault(message: str, *path: str) -> Any:
    from jsonschema import ValidationError  # noqa: PLC0415  # an extra

    return ValidationError(message, path=path)


def _additional_properties(
    validator: Any, value: Any, instance: Any, schema: Any
) -> Iterator[Any]:
    if not is_object(instance):
        return
    declared = schema.get("properties", {})
    searchers = [searcher(pattern) for pattern in schema.get("patternProperties", ())]
    for key, item in instance.items():
        if key in declared or any(search(key) for search in searchers):
            continue
        if value is False:
            yield _fault("unknown", key)
        else:
            yield from validator.descend(item, value, path=key)


def _required(
    validator: Any,  # noqa: ARG001  # as the library calls it
    value: Any,
    instance: Any,
    schema: Any,  # noqa: ARG001
) -> Iterator[Any]:
    if is_object(instance):
        yield from (_fault("missing", name) for name in value if name not in instance)


def _dependencies(
    validator: Any, value: Any, instance: Any, schema: Any
) -> Iterator[Any]:
    if not is_object(instance):
        return
    for name, needed in value.items():
        if name not in instance:
            continue
        if isinstance(needed, list):
            yield from _required(validator, needed, instance, schema)
        else:
            yield from validator.descend(instance, needed, schema_path=name)


def _properties(
    validator: Any,
    value: Any,
    instance: Any,
    schema: Any,  # noqa: ARG001  # as the library calls it
) -> Iterator[Any]:
    if not is_object(instance):
        return
    for key, subschema in value.items():
        if key in instance:
            yield from _member(validator, key, instance[key], subschema, key)


def _member(
    validator: Any, key: str, item: Any, schema: Any, keyword: str
) -> Iterator[Any]:
    if schema is False:
        # The library would not say where.
        yield _fault("not allowed", key)
    else:
        yield from validator.descend(item, schema, path=key, schema_path=keyword)


def _pattern(validator: Any, value: Any, instance: Any, schema: Any) -> Iterator[Any]:  # noqa: ARG001  # as the library calls it
    if isinstance(instance, str) and not searcher(value)(instance):
        yield _fault("pattern")


def _pattern_properties(
    validator: Any,
    value: Any,
    instance: Any,
    schema: Any,  # noqa: ARG001  # as the library calls it
) -> Iterator[Any]:
    if not is_object(instance):
        return
    for pattern, subschema in value.items():
        for key, item in instance.items():
            if searcher(pattern)(key):
                yield from _member(validator, key, item, subschema, pattern)


def _unique_items(
    validator: Any,  # noqa: ARG001  # as the library calls it
    value: Any,
    instance: Any,
    schema: Any,  # noqa: ARG001
) -> Iterator[Any]:
    # The library compares each with each where they can't be sorted.
    unique = not value or not isinstance(instance, list)
    if not unique and len(set(map(identity, instance))) < len(instance):
        yield _fault("twice")
