"""JSON Schemas without noise, and the validators behind them.

What pydantic publishes, save for

    titles that are names of classes and parameters    left out
    constraints beside a validator, by Python's names  by those of JSON Schema
    `discriminator`, which is OpenAPI's                left out
    a default that has no JSON form                    left out
    which texts become a decimal                       their pattern
    `oneOf`, where several members may match           `anyOf`
    the keys of a dict that are no mere strings        their pattern, and no others
    an enum whose values JSON does not have            refused
    a literal of a member that is no text or number    refused
    an iterator, which is validated when it is read    refused
    a class as a value                                 refused
"""

import enum
import typing
from collections.abc import Callable, Iterator
from typing import Any, Final

from pydantic import TypeAdapter
from pydantic.errors import (
    PydanticInvalidForJsonSchema,
    PydanticSchemaGenerationError,
    PydanticUserError,
)
from pydantic.json_schema import GenerateJsonSchema
from pydantic_core import PydanticSerializationError, SchemaValidator
from pydantic_core.core_schema import CoreSchema

from mcpkit.faults import non_finite

UNSCHEMATISABLE: Final = (
    PydanticSchemaGenerationError,
    PydanticUserError,
    PydanticInvalidForJsonSchema,
)

_INTEGER_KEY: Final = "^(0|-?[1-9][0-9]*)$"


def validator_of(adapter: TypeAdapter[Any]) -> SchemaValidator:
    """Return the compiled validator of a type."""
    validator = adapter.validator
    # Plugins of pydantic wrap the validator in a class of their own.
    return typing.cast("SchemaValidator", validator)


def hasty_validator_of(adapter: TypeAdapter[Any]) -> SchemaValidator:
    """Return a validator of a type that stops at the first fault of a collection.

    The usual one describes every fault, each at some hundred bytes: a few
    megabytes of wrong items would cost seconds, and gigabytes.
    """
    core = adapter.core_schema
    schema: CoreSchema = rewritten(core, _hasty, leave=lambda _, __: False)
    try:
        # Those of models that are compiled already describe every fault, too.
        return SchemaValidator(schema, _use_prebuilt=False)
    except TypeError:
        # Older releases do not have the choice.
        return SchemaValidator(schema)


_COLLECTIONS: Final = frozenset({"list", "dict", "set", "frozenset", "tuple"})

# What a node of a core schema holds that is no schema.
OPAQUE: Final = frozenset(
    {"cls", "config", "default", "expected", "members", "metadata", "serialization"}
)
# What holds schemas by names of the developer's.
NAMED: Final = frozenset({"choices", "fields"})


def rewritten(
    schema: Any,
    change: Callable[[dict[str, Any]], dict[str, Any]],
    *,
    leave: Callable[[str, dict[str, Any]], bool],
) -> Any:
    """Return a core schema with its nodes changed.

    Args:
        schema: The schema, or a part of one.
        change: Makes a node of one, whose parts are changed already.
        leave: Whether a node under a key stays as it is, with all its parts.
    """

    def walk(key: str, part: Any) -> Any:
        if isinstance(part, (list, tuple)):
            return type(part)(walk(key, item) for item in part)
        if not isinstance(part, dict) or leave(key, part):
            return part
        return change({name: inside(name, item) for name, item in part.items()})

    def inside(key: str, part: Any) -> Any:
        if key in OPAQUE:
            return part
        if key in NAMED and isinstance(part, dict):
            return {name: walk(key, item) for name, item in part.items()}
        return walk(key, part)

    return walk("", schema)


def _hasty(node: dict[str, Any]) -> dict[str, Any]:
    return {**node, "fail_fast": True} if node.get("type") in _COLLECTIONS else node


class Untitled(GenerateJsonSchema):
    """Schemas as they are published."""

    # What has no JSON form is no mistake: it can't be sent, that is all.
    ignored_warning_kinds = {"skipped-choice", "non-serializable-default"}  # noqa: RUF012  # as the base class has it

    def field_title_should_be_set(self, schema: Any) -> bool:  # noqa: ARG002
        """Say no: a title is what the developer gave."""
        return False

    def generate(self, schema: Any, mode: Any = "validation") -> dict[str, Any]:
        """Generate a schema, and mend what no single step of it can."""
        published = super().generate(schema, mode)
        for name, definition in published.get("$defs", {}).items():
            # What an enum is called is added after its schema is made.
            title = definition.get("title")
            if title is not None and (name == title or name.endswith(f"__{title}")):
                del definition["title"]
        _rename_constraints(published)
        return published

    def model_schema(self, schema: Any) -> dict[str, Any]:
        """Leave out the name of the class."""
        return _untitled(super().model_schema(schema), schema["cls"])

    def dataclass_schema(self, schema: Any) -> dict[str, Any]:
        """Leave out the name of the class."""
        return _untitled(super().dataclass_schema(schema), schema["cls"])

    def typed_dict_schema(self, schema: Any) -> dict[str, Any]:
        """Leave out the name of the class."""
        return _untitled(super().typed_dict_schema(schema), schema.get("cls"))

    def enum_schema(self, schema: Any) -> dict[str, Any]:
        """Refuse values that JSON lacks, and flags, whose sums are not listed."""
        if issubclass(schema["cls"], enum.Flag):
            self.handle_invalid_for_json_schema(schema, repr(schema["cls"]))
        if self.mode == "validation" and "missing" not in schema:
            for member in schema["members"]:
                if not isinstance(member.value, (str, int, float, type(None))):
                    self.handle_invalid_for_json_schema(schema, repr(member))
        return super().enum_schema(schema)

    def literal_schema(self, schema: Any) -> dict[str, Any]:
        """Refuse members of an enum, which pydantic does not find by their values."""
        if self.mode == "validation":
            for value in schema["expected"]:
                if not isinstance(value, (str, int, type(None))):
                    self.handle_invalid_for_json_schema(schema, repr(value))
        return super().literal_schema(schema)

    def dict_schema(self, schema: Any) -> dict[str, Any]:
        """Publish what keys look like that become integers, or match a pattern."""
        published = super().dict_schema(schema)
        if "patternProperties" in published:
            published["additionalProperties"] = False
        keys = schema.get("keys_schema", {})
        if self.mode == "validation" and keys.get("type") == "int":
            published["propertyNames"] = {"pattern": _INTEGER_KEY}
        return published

    def get_decimal_pattern(self, schema: Any) -> str | None:
        """Publish which texts become a decimal."""
        if self.mode == "validation":
            return self.build_decimal_pattern(schema)
        return super().get_decimal_pattern(schema)

    def tagged_union_schema(self, schema: Any) -> dict[str, Any]:
        """Leave out OpenAPI's keyword, and promise no more than holds."""
        published = super().tagged_union_schema(schema)
        published.pop("discriminator", None)
        # A function tells the members apart by what their schemas may not show.
        if callable(schema["discriminator"]):
            published["anyOf"] = published.pop("oneOf")
        return published

    def generator_schema(self, schema: Any) -> dict[str, Any]:
        """Refuse what would not be validated before the function runs."""
        return self.handle_invalid_for_json_schema(schema, "an iterator")

    def is_subclass_schema(self, schema: Any) -> dict[str, Any]:
        """Refuse a class: no JSON is one."""
        return self.handle_invalid_for_json_schema(schema, "a class")

    def encode_default(self, dft: Any) -> Any:
        """Return a default as JSON.

        Raises:
            PydanticSerializationError: It has no JSON form.
        """
        encoded = super().encode_default(dft)
        if non_finite(encoded) is not None:
            raise PydanticSerializationError("JSON has no such number")
        return encoded


def _untitled(published: dict[str, Any], cls: Any) -> dict[str, Any]:
    if cls is not None and published.get("title") == cls.__name__:
        del published["title"]
    return published


_MAPS: Final = ("$defs", "patternProperties", "properties")
_LISTS: Final = ("allOf", "anyOf", "oneOf", "prefixItems")
_SINGLE: Final = ("additionalProperties", "items", "propertyNames")
_CONSTRAINTS: Final = (
    ("ge", "minimum"),
    ("gt", "exclusiveMinimum"),
    ("le", "maximum"),
    ("lt", "exclusiveMaximum"),
    ("multiple_of", "multipleOf"),
)
_LENGTHS: Final = (("minLength", "minProperties"), ("maxLength", "maxProperties"))


def _rename_constraints(schema: dict[str, Any]) -> None:
    lengths = _LENGTHS if schema.get("type") == "object" else ()
    for name, renamed in (*_CONSTRAINTS, *lengths):
        if name in schema:
            schema[renamed] = schema.pop(name)
    for inner in _inner(schema):
        if isinstance(inner, dict):
            _rename_constraints(inner)


def _inner(schema: dict[str, Any]) -> Iterator[Any]:
    """Return the schemas right inside of a schema."""
    for keyword in _MAPS:
        yield from schema.get(keyword, {}).values()
    for keyword in _LISTS:
        yield from schema.get(keyword, ())
    for keyword in _SINGLE:
        yield schema.get(keyword)


def tidy(schema: dict[str, Any]) -> dict[str, Any]:
    """Drop what is empty, and say that it is an object."""
    if not schema.get("properties", True):
        del schema["properties"]
    return {"type": "object", **schema} if "properties" in schema else schema
