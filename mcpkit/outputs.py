"""How a value of a declared type becomes JSON, under the schema that is published.

Pydantic validates and encodes it, save that

    true, 1 and "1" are not one another     as in arguments; `3.0` is an integer
    bytes                                   base64, with the standard alphabet
    an iterator                             a list, read before anything is sent
    NaN and the infinities                  refused where a number is declared

A model, and a dataclass of pydantic's, has its own say of what is in it: an
instance passes as it is, if nothing in it was changed to another type since, and
what else may become one is validated as the class has it.
"""

import contextlib
from base64 import b64encode
from collections.abc import Callable, Iterator
from typing import Any, Final

from pydantic import TypeAdapter
from pydantic.dataclasses import is_pydantic_dataclass
from pydantic_core import (
    PydanticSerializationError,
    SchemaSerializer,
    SchemaValidator,
    ValidationError,
    core_schema,
    from_json,
    to_json,
)

from mcpkit.errors import MCPKitError
from mcpkit.faults import MAX_FAULTS, find_non_finite
from mcpkit.protocol.jsonrpc import encode, encode_value
from mcpkit.schemas import NAMED, OPAQUE, Untitled, rewritten


class OutputError(MCPKitError):
    """A tool returned what its output schema does not describe. For the log."""


class Output:
    """The values of one type.

    Args:
        hint: The type, an annotation.

    Raises:
        PydanticUserError: No JSON Schema describes it.
        PydanticUndefinedAnnotation: A name in it can't be resolved.

    Attributes:
        schema: The JSON Schema of the values.

    Example:
        >>> Output(list[bytes]).encode([b"a"])
        b'["YQ=="]'
    """

    __slots__ = ("_encode", "_has_floats", "_serializer", "_validator", "schema")

    def __init__(self, hint: Any) -> None:
        adapter = TypeAdapter(hint)
        # What was not complete, when it was written, may be now.
        adapter.rebuild()
        core = adapter.core_schema
        published = rewritten(core, _as_published, leave=_stays)
        self.schema = _Published().generate(published, mode="serialization")
        self._validator = SchemaValidator(
            rewritten(published, _as_strict, leave=_stays)
        )
        kinds = frozenset(_kinds(core))
        # What an instance holds of any type is encoded after the outermost
        # configuration, and what functions of the developer's return, too.
        holds_any = "any" in kinds and "serialization" not in kinds
        self._serializer = SchemaSerializer(
            published, {"ser_json_bytes": "base64" if holds_any else "utf8"}
        )
        self._encode = self._choose(published, kinds)
        # Outside of instances, validation refuses what is not finite.
        self._has_floats = "float" in kinds and not kinds.isdisjoint(_INSTANCES)

    def encode(self, value: Any) -> bytes:
        """Return the JSON of a value.

        Raises:
            OutputError: It is not of the type.
        """
        try:
            value = self._validator.validate_python(value)
        except ValidationError as error:
            raise OutputError(_described(error)) from error
        encoded = self._encode(value)
        if self._has_floats and b"null" in encoded:
            self._check_finite(value)
        return encoded

    def _choose(self, schema: Any, kinds: frozenset[str]) -> Callable[[Any], bytes]:
        """Return what encodes validated values: the more is known, the faster."""
        if kinds <= _VALUES | _CONTAINERS:
            # Pydantic has just made these values: they are as declared.
            return self._encode_anything if "any" in kinds else self._encode_made
        if kinds <= _VALUES | _OF_INSTANCES:
            return self._encode_instance(schema)
        return self._encode_checked

    def _encode_anything(self, value: Any) -> bytes:
        try:
            return encode_value(value)
        except ValueError as error:
            raise OutputError(str(error)) from error

    def _encode_made(self, value: Any) -> bytes:
        try:
            return self._serializer.to_json(value, by_alias=True)
        except PydanticSerializationError:
            return self._encode_checked(value)

    def _encode_instance(self, schema: Any) -> Callable[[Any], bytes]:
        """Return what encodes an instance that has few values, if it is as declared.

        A union asks its members to be strict, at a third of what it costs to make
        warnings errors. It builds them in Python first, which many would be too
        many for. What is not as declared, or of a subclass, falls to the other
        member.
        """
        other = core_schema.any_schema(
            serialization=core_schema.plain_serializer_function_ser_schema(_not_it)
        )
        union = SchemaSerializer(core_schema.union_schema([schema, other]))

        def encode_instance(value: Any) -> bytes:
            try:
                encoded = union.to_json(value, by_alias=True, warnings=False)
            except PydanticSerializationError:
                encoded = _NOT_IT_ENCODED
            if encoded == _NOT_IT_ENCODED:
                return self._encode_checked(value)
            return encoded

        return encode_instance

    def _encode_checked(self, value: Any) -> bytes:
        """Encode what was made by anybody, and may have been changed since."""
        options: Any = {"by_alias": True, "warnings": "error"}
        try:
            return self._serializer.to_json(value, **options)
        except PydanticSerializationError:
            # Half a surrogate pair, which `encode` replaces; or a fault indeed.
            try:
                return encode(self._serializer.to_python(value, mode="json", **options))
            except ValueError as error:
                encoded = self._encode_doubtful(value)
                if encoded is None:
                    raise OutputError(str(error)) from error
                return encoded

    def _encode_doubtful(self, value: Any) -> bytes | None:
        """Encode what pydantic warns of, if it is valid all the same.

        Such is an integer where `float | str` is declared, which is a default that
        nobody validates.
        """
        try:
            encoded = self._serializer.to_json(value, by_alias=True, warnings=False)
            self._validator.validate_json(encoded, strict=True)
        except (PydanticSerializationError, ValidationError):
            return None
        return encoded

    def _check_finite(self, value: Any) -> None:
        """Refuse NaN and the infinities, which became null: that is no number."""
        options: Any = {"by_alias": True, "warnings": False}
        # What is left where `None` is left out is rarely anything else, and then
        # nothing is built to find out.
        with contextlib.suppress(PydanticSerializationError):
            encoded = self._serializer.to_json(value, exclude_none=True, **options)
            if b"null" not in encoded:
                return
        dumped = self._serializer.to_python(value, mode="json", **options)
        path = find_non_finite(dumped)
        if path is not None:
            raise OutputError(f"{path or 'the value'}: not a finite number")


def _described(error: ValidationError) -> str:
    count = error.error_count()
    # The details of very many faults cost more than a log is worth.
    if count > MAX_FAULTS:
        return f"{count} faults"
    faults = []
    for fault in error.errors(include_url=False, include_context=False):
        path = [str(step) for step in fault["loc"] if step != _INTEGER]
        if _INTEGRAL not in path:
            kind = type(fault["input"]).__name__
            faults.append(
                f"{'.'.join(path) or 'the value'}: {fault['msg']}, not {kind}"
            )
    return "; ".join(faults)


_NOT_IT: Final = "This is not what the type declares."
_NOT_IT_ENCODED: Final = to_json(_NOT_IT)

_VALUES: Final = frozenset(
    {
        "bool",
        "bytes",
        "date",
        "datetime",
        "decimal",
        "enum",
        "float",
        "int",
        "literal",
        "none",
        "nullable",
        "str",
        "time",
        "timedelta",
        "uuid",
    }
)
_CONTAINERS: Final = frozenset(
    {
        "any",
        "definition-ref",
        "definitions",
        "dict",
        "frozenset",
        "generator",
        "list",
        "named-tuple",
        "named-tuple-field",
        "set",
        "tuple",
        "typed-dict",
        "typed-dict-field",
        "union",
    }
)
_INSTANCES: Final = frozenset({"dataclass", "model"})
_OF_INSTANCES: Final = _INSTANCES | {
    "computed-field",
    "dataclass-args",
    "dataclass-field",
    "default",
    "function-after",
    "function-before",
    "function-wrap",
    "model-field",
    "model-fields",
    "no-info",
    "serialization_alias",
    "serialization_exclude",
    "with-info",
}


def _not_it(value: Any) -> str:  # noqa: ARG001  # whatever it is
    return _NOT_IT


# Keys of a node that make it more than its type.
_REMARKABLE: Final = frozenset(
    {"serialization", "serialization_alias", "serialization_exclude"}
)


def _parts(schema: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    return ((key, part) for key, part in schema.items() if key not in OPAQUE)


def _kinds(schema: Any) -> Iterator[str]:
    """Yield the types of all nodes of a core schema."""
    if isinstance(schema, (list, tuple)):
        for item in schema:
            yield from _kinds(item)
    elif isinstance(schema, dict):
        yield schema.get("type", "")
        yield from _REMARKABLE & schema.keys()
        for key, part in _parts(schema):
            named = key in NAMED and isinstance(part, dict)
            yield from _kinds(list(part.values()) if named else part)


def _stays(key: str, node: dict[str, Any]) -> bool:
    # Of JSON, keys are texts, whatever they are in Python.
    return key == "keys_schema" or _is_instance(node)


def _is_instance(schema: dict[str, Any]) -> bool:
    kind = schema.get("type")
    return kind == "model" or (
        kind == "dataclass" and is_pydantic_dataclass(schema["cls"])
    )


def _as_published(node: dict[str, Any]) -> dict[str, Any]:
    match node.get("type"):
        case "generator":
            return {**node, "type": "list"}
        case "bytes":
            return {"serialization": _BYTES, **node}
        case "any":
            return {"serialization": _ANYTHING, **node}
        case _:
            return node


def _as_json(value: Any) -> Any:
    simple = isinstance(value, (str, int, float, type(None)))
    return value if simple else from_json(encode_value(value))


def _as_base64(data: bytes) -> str:
    return b64encode(data).decode()


_BYTES: Final = core_schema.plain_serializer_function_ser_schema(
    _as_base64,
    return_schema=core_schema.str_schema(metadata={"contentEncoding": "base64"}),
)
_ANYTHING: Final = core_schema.plain_serializer_function_ser_schema(
    _as_json, return_schema=core_schema.any_schema()
)


# What the members of the union are called in errors.
_INTEGER: Final = "(integer)"
_INTEGRAL: Final = "(integral)"


def _as_strict(node: dict[str, Any]) -> dict[str, Any]:
    """Return a node that does not turn JSON's own types into one another."""
    if "strict" in node:
        return node
    match node.get("type"):
        case "bool" | "str":
            return {**node, "strict": True}
        case "float":
            return {**node, "strict": True, "allow_inf_nan": False}
        case "int":
            # Not a float first: a large integer would lose its last digits.
            strict: Any = {**node, "strict": True}
            lax: Any = node
            integral = core_schema.chain_schema(
                [core_schema.float_schema(strict=True), lax]
            )
            union = core_schema.union_schema(
                [(strict, _INTEGER), (integral, _INTEGRAL)], mode="left_to_right"
            )
            return dict(union)
        case _:
            return node


class _Published(Untitled):
    """Schemas as they are published of what is sent."""

    def str_schema(self, schema: Any) -> dict[str, Any]:
        """Say which texts are base64."""
        published = super().str_schema(schema)
        if "contentEncoding" in schema.get("metadata", {}):
            published["contentEncoding"] = "base64"
        return published
