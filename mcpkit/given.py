"""Tools that bring their own schemas, in place of those of a function.

The function takes the arguments as one dict, and a `Context` where it asks for
one:

    def query(arguments: dict[str, Any], ctx: Context) -> Any: ...

They are as the client sent them: no type of Python takes part, unless the
parameter has one of its own, such as a model, which then applies as well.
"""

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic_core import from_json

from mcpkit.errors import SetupError
from mcpkit.faults import ArgumentsError, non_finite
from mcpkit.outputs import OutputError
from mcpkit.protocol.jsonrpc import encode_value
from mcpkit.protocol.legacy import describes_object
from mcpkit.returns import Returns
from mcpkit.signature import Signature, read_signature
from mcpkit.validation import GivenSchema


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenSignature(Signature):
    """How to call a function that takes all arguments as one.

    Attributes:
        parameter: The parameter that takes them.
    """

    parameter: str
    _inner: Signature
    _given: GivenSchema

    def bind(
        self,
        arguments: Mapping[str, Any],
        *,
        coerce: bool = False,  # noqa: ARG002  # the schema says what is accepted
    ) -> dict[str, Any]:
        """Validate decoded JSON, and return it as one keyword argument.

        Raises:
            ArgumentsError: The arguments do not match the schema.
        """
        path = non_finite(arguments)
        if path is not None:
            raise ArgumentsError(f"{path}: expected finite number, got number")
        faults = self._given.faults(arguments)
        if faults:
            raise ArgumentsError("\n".join(faults))
        try:
            # A copy, so that the function can't change the request.
            return self._inner.bind({self.parameter: arguments})
        except ArgumentsError as error:
            lines = str(error).split("\n")
            prefix = f"{self.parameter}."
            raise ArgumentsError(
                "\n".join(line.removeprefix(prefix) for line in lines)
            ) from None


def read_given_signature(
    function: Callable[..., Any], schema: Mapping[str, Any], what: str
) -> GivenSignature:
    """Work out how to call a function with arguments that a given schema describes.

    Args:
        function: Any callable.
        schema: The JSON Schema of the arguments.
        what: What it is registered as, for messages: "tool 'search'".

    Raises:
        SetupError: The schema can't be enforced, or the function takes something
            else than one dict.
    """
    given = GivenSchema(schema, f"{what}: input_schema", "arguments")
    if given.schema.get("type") != "object":
        raise SetupError(f'{what}: input_schema needs "type": "object" at its root')
    inner = read_signature(function, what)
    if len(inner.names) != 1 or not _takes_object(inner):
        raise SetupError(
            f"{what}: a tool with an input_schema takes the arguments as one dict: "
            "def handler(arguments: dict[str, Any])"
        )
    kept = {
        field.name: getattr(inner, field.name) for field in dataclasses.fields(inner)
    }
    required = given.schema.get("required", ())
    return GivenSignature(
        **{
            **kept,
            "schema": given.schema,
            "names": tuple(given.schema.get("properties", ())),
            "required": tuple(required),
            "parameter": inner.names[0],
            "_inner": inner,
            "_given": given,
        }
    )


def _takes_object(signature: Signature) -> bool:
    (name,) = signature.names
    published = signature.schema["properties"][name]
    definitions = signature.schema.get("$defs", {})
    if not published.keys() & {"type", "$ref"}:
        return True
    return describes_object({**published, "$defs": definitions})


class GivenOutput:
    """The structured content that a given schema describes."""

    def __init__(self, given: GivenSchema) -> None:
        self._given = given

    def encode(self, value: Any) -> bytes:
        """Return the JSON of a value.

        Raises:
            OutputError: The value does not match the schema.
            ValueError: The value has no JSON form.
        """
        encoded = encode_value(value)
        faults = self._given.faults(from_json(encoded))
        if faults:
            raise OutputError("; ".join(faults))
        return encoded


def read_given_returns(schema: Mapping[str, Any], what: str) -> Returns:
    """Work out what a tool returns, after a given schema.

    Args:
        schema: The JSON Schema of the structured content.
        what: What the tool is registered as, for messages: "tool 'search'".

    Raises:
        SetupError: The schema can't be enforced.
    """
    given = GivenSchema(schema, f"{what}: output_schema", "value")
    return Returns(
        schema=given.schema,
        object_schema=describes_object(given.schema),
        encoder=GivenOutput(given),
    )
