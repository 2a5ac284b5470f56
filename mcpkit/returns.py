"""What a tool returns, after its annotation: text, content, or a structure."""

import inspect
import types
import typing
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, Final, Literal

from pydantic import ConfigDict, TypeAdapter
from pydantic.errors import PydanticUserError
from pydantic_core import (
    PydanticSerializationError,
    SchemaSerializer,
    SchemaValidator,
    ValidationError,
    to_json,
)

from mcpkit.errors import MCPKitError
from mcpkit.faults import non_finite
from mcpkit.hints import read_hints
from mcpkit.protocol.content import Block
from mcpkit.protocol.jsonrpc import Encoded, encode
from mcpkit.protocol.legacy import describes_object
from mcpkit.protocol.results import Result, normalize
from mcpkit.schemas import UNSCHEMATISABLE, Untitled, validator_of

_KINDS: Final = frozenset(
    {
        "text",
        "structured",
        "resource",
        "error",
        "raw",
        "wire",
        "input_required",
        "task",
    }
)
"""The kinds of results that a tool may return."""


class OutputError(MCPKitError):
    """A tool returned what its output schema does not describe. For the log."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Returns:
    """What a tool returns, after its annotation.

    Attributes:
        schema: The output schema, or `None` when none is declared.
        object_schema: Whether the schema describes an object.
    """

    schema: dict[str, Any] | None = None
    object_schema: bool | None = None
    _validator: SchemaValidator | None = None
    _serializer: SchemaSerializer | None = None
    _has_numbers: bool = False
    _has_instances: bool = False
    _texts: tuple[type, ...] = ()
    _blocks: bool = False

    def result(self, value: Any) -> Result:
        """Make a result of what the tool returned.

        Raises:
            OutputError: The value is not of the declared type.
            ValueError: The value has no JSON form.
        """
        if isinstance(value, Result):
            if value.kind not in _KINDS:
                raise ValueError(f"a {value.kind} result is no result of a tool")
            return _encoded(value)
        if self._validator is None:
            return self._unstructured(value)
        try:
            value = self._validator.validate_python(value)
        except ValidationError as error:
            raise OutputError(str(error)) from error
        return Result(
            kind="structured",
            value=Encoded(self._to_json(value)),
            object_schema=self.object_schema,
        )

    def _unstructured(self, value: Any) -> Result:
        if self._texts and not isinstance(value, self._texts):
            raise OutputError(f"a {type(value).__name__} is not what was declared")
        if self._blocks and isinstance(value, (list, tuple)):
            if not all(isinstance(item, (str, Block)) for item in value):
                raise OutputError("not every item of the list is content")
            return Result.content(value)
        return _encoded(normalize(value))

    def _to_json(self, value: Any) -> bytes:
        serializer = self._serializer
        assert serializer is not None  # noqa: S101  # set together with the validator
        try:
            # What was validated fits, save an instance that was changed since it was
            # made. Looking for one costs as much as all the rest here.
            if self._has_instances:
                encoded = serializer.to_json(value, by_alias=True, warnings="error")
            else:
                encoded = serializer.to_json(value, by_alias=True)
        except PydanticSerializationError:
            # Half a surrogate pair, which `encode` replaces; or a fault indeed.
            encoded = encode(self._to_python(value, mode="json"))
        # NaN and the infinities became null, which is no number.
        if self._has_numbers and b"null" in encoded:
            path = non_finite(self._to_python(value, mode="python"))
            if path is not None:
                raise OutputError(f"{path or 'the value'} is not a finite number")
        return encoded

    def _to_python(self, value: Any, *, mode: Literal["json", "python"]) -> Any:
        serializer = self._serializer
        assert serializer is not None  # noqa: S101  # set together with the validator
        try:
            return serializer.to_python(
                value, mode=mode, by_alias=True, warnings="error"
            )
        except ValueError as error:
            raise OutputError(str(error)) from error


def _encoded(result: Result) -> Result:
    if result.kind != "structured" or isinstance(result.value, Encoded):
        return result
    return replace(result, value=Encoded(encode(result.value)))


def read_returns(function: Callable[..., Any], what: str) -> Returns:
    """Work out what a tool returns: a declared structure, or anything."""
    hint = read_hints(function, what).get("return", Any)
    leaves = _leaves(hint)
    if all(leaf in (str, None, type(None)) for leaf in leaves):
        texts = tuple(str if leaf is str else type(None) for leaf in leaves)
        return Returns(_texts=texts)
    if any(
        leaf in (Any, object) or _is_subclass(leaf, (Block, Result)) for leaf in leaves
    ):
        return Returns(_blocks=any(_is_subclass(leaf, (Block,)) for leaf in leaves))
    try:
        adapter = _output_adapter(hint)
        schema = adapter.json_schema(schema_generator=Untitled, mode="serialization")
    except UNSCHEMATISABLE:
        # A type that pydantic does not know makes no promise about the output.
        return Returns()
    schema = _output_schema(schema)
    return Returns(
        schema=schema,
        object_schema=describes_object(schema),
        _validator=validator_of(adapter),
        _serializer=adapter.serializer,
        _has_numbers=b'"number"' in to_json(schema),
        _has_instances=_holds_instances(adapter.core_schema),
    )


def _holds_instances(schema: Any) -> bool:
    """Whether a core schema is about models or dataclasses, at any depth."""
    if isinstance(schema, dict):
        if schema.get("type") in ("model", "dataclass"):
            return True
        return any(_holds_instances(value) for value in schema.values())
    return isinstance(schema, (list, tuple)) and any(map(_holds_instances, schema))


def _output_adapter(hint: Any) -> TypeAdapter[Any]:
    try:
        # Bytes travel as `encode` has them.
        return TypeAdapter(hint, config=ConfigDict(ser_json_bytes="base64"))
    except PydanticUserError:
        # A model or a dataclass says itself what becomes of its bytes.
        return TypeAdapter(hint)


def _output_schema(schema: dict[str, Any]) -> dict[str, Any]:
    if describes_object(schema) and "type" not in schema:
        schema = {"type": "object", **schema}
    definitions = schema.get("$defs", {})
    for name, definition in definitions.items():
        if definition.get("title") == name:
            del definition["title"]
    schema.pop("title", None)
    return schema


def _leaves(hint: Any) -> list[Any]:
    """Return the types a return annotation is about: members of unions and lists."""
    origin = typing.get_origin(hint)
    if origin is Annotated:
        return _leaves(typing.get_args(hint)[0])
    arguments = typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        return [leaf for argument in arguments for leaf in _leaves(argument)]
    if origin in (list, tuple, Sequence) and any(
        _is_subclass(leaf, (Block,))
        for argument in arguments
        if argument is not Ellipsis
        for leaf in _leaves(argument)
    ):
        return [Block]
    return [hint]


def _is_subclass(hint: Any, classes: tuple[type, ...]) -> bool:
    return inspect.isclass(hint) and issubclass(hint, classes)
