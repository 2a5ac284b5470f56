"""JSON Schemas without noise, and the validators behind them."""

import typing
from typing import Any, Final

from pydantic import TypeAdapter
from pydantic.errors import (
    PydanticInvalidForJsonSchema,
    PydanticSchemaGenerationError,
    PydanticUserError,
)
from pydantic.json_schema import GenerateJsonSchema
from pydantic_core import SchemaValidator

UNSCHEMATISABLE: Final = (
    PydanticSchemaGenerationError,
    PydanticUserError,
    PydanticInvalidForJsonSchema,
)


def validator_of(adapter: TypeAdapter[Any]) -> SchemaValidator:
    """Return the compiled validator of a type."""
    validator = adapter.validator
    # Plugins of pydantic wrap the validator in a class of their own.
    return typing.cast("SchemaValidator", validator)


class Untitled(GenerateJsonSchema):
    """Schemas without the titles that pydantic makes up from names."""

    def field_title_should_be_set(self, schema: Any) -> bool:  # noqa: ARG002
        """Say no: a title is what the developer gave."""
        return False


def tidy(schema: dict[str, Any]) -> dict[str, Any]:
    """Drop the titles that are names of classes, and what is empty."""
    for name, definition in schema.get("$defs", {}).items():
        title = definition.get("title")
        if title is not None and (name == title or name.endswith(f"__{title}")):
            del definition["title"]
    schema.pop("title", None)
    if not schema.get("properties", True):
        del schema["properties"]
    return {"type": "object", **schema} if "properties" in schema else schema
