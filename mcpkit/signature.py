"""A function as a tool sees it: a schema, a validator, and how to call it.

Everything is worked out once, when the function is registered; a function that
can't work is a `SetupError` there, which says what to write instead.
"""

import contextlib
import functools
import inspect
import math
import re
import types
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Final, Literal, NotRequired

from pydantic import ConfigDict, TypeAdapter
from pydantic.errors import (
    PydanticInvalidForJsonSchema,
    PydanticSchemaGenerationError,
    PydanticUserError,
)
from pydantic.fields import FieldInfo
from pydantic.json_schema import GenerateJsonSchema
from pydantic_core import (
    ErrorDetails,
    PydanticSerializationError,
    SchemaSerializer,
    SchemaValidator,
    ValidationError,
    from_json,
    to_json,
    to_jsonable_python,
)
from typing_extensions import TypedDict

from mcpkit.context import Context
from mcpkit.errors import MCPKitError, SetupError
from mcpkit.protocol.content import Block
from mcpkit.protocol.jsonrpc import Encoded, encode
from mcpkit.protocol.legacy import describes_object
from mcpkit.protocol.results import Result, normalize

_UNSCHEMATISABLE: Final = (
    PydanticSchemaGenerationError,
    PydanticUserError,
    PydanticInvalidForJsonSchema,
)

_MAX_FAULTS: Final = 20

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

# The module of Depends, Header and the others; importing it takes long.
_FASTAPI_MARKERS: Final = "fastapi.params"


class ArgumentsError(MCPKitError):
    """The arguments of a call do not match the schema; a line for each fault.

    The lines are written for the model: they name the path and what was
    expected, and hold nothing of the value.
    """


class OutputError(MCPKitError):
    """A tool returned what its output schema does not describe. For the log."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Signature:
    """How to call a function with the arguments of a request.

    Attributes:
        schema: The JSON Schema of the arguments, an object at the root.
        names: The names of the arguments, in order, as clients send them.
        required: The names of those without a default.
        context: The parameter that takes the `Context`, if there is one.
        positional: The parameters that are passed by position, in order.
        is_async: The function is a coroutine function.
    """

    schema: dict[str, Any]
    names: tuple[str, ...]
    required: tuple[str, ...]
    context: str | None
    positional: tuple[str, ...]
    is_async: bool
    _validator: SchemaValidator
    _defaults: Mapping[str, Any] = field(default_factory=dict)

    def bind(
        self, arguments: Mapping[str, Any], *, coerce: bool = False
    ) -> dict[str, Any]:
        """Validate decoded JSON, strictly, and return keyword arguments.

        JSON's own types do not turn into one another, save that `3.0` is an
        integer. A string still becomes a date, an enum member or what else the
        parameter says.

        Args:
            arguments: The arguments of the request.
            coerce: Accept numbers in strings where a number is expected.

        Raises:
            ArgumentsError: The arguments do not match the schema.
        """
        encoded = to_json(arguments, inf_nan_mode="constants")
        # A number that is too large for a float decodes to an infinity.
        if b"Infinity" in encoded and (path := non_finite(arguments)) is not None:
            raise ArgumentsError(f"{path}: expected finite number, got number")
        try:
            return self._validator.validate_json(encoded, strict=True)  # type: ignore[no-any-return]
        except ValidationError as error:
            mended = _mended(encoded, error, coerce=coerce)
            if mended is None:
                raise ArgumentsError(describe_faults(error)) from None
        try:
            return self._validator.validate_json(mended, strict=True)  # type: ignore[no-any-return]
        except ValidationError as error:
            raise ArgumentsError(describe_faults(error)) from None

    def bind_strings(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """Validate strings, which take the type of their parameter.

        What no string can become, such as a list, is written as JSON.

        Raises:
            ArgumentsError: An argument is missing, unknown, or not of its type.
        """
        try:
            return self._validator.validate_strings(arguments)  # type: ignore[no-any-return]
        except ValidationError as error:
            decoded = _decoded(arguments, error)
            if decoded is None:
                raise ArgumentsError(describe_faults(error)) from None
        try:
            return self._validator.validate_json(to_json(decoded))  # type: ignore[no-any-return]
        except ValidationError as error:
            raise ArgumentsError(describe_faults(error)) from None

    def place(self, keywords: dict[str, Any]) -> list[Any]:
        """Take the positional arguments out of the keyword arguments."""
        return [
            keywords.pop(name) if name in keywords else self._defaults[name]
            for name in self.positional
        ]


def read_signature(function: Callable[..., Any], what: str) -> Signature:
    """Work out how to call a function.

    Args:
        function: Any callable.
        what: What it is registered as, for messages: "tool 'search'".

    Raises:
        SetupError: The function can't be called with named JSON arguments.
    """
    if is_generator(function):
        raise SetupError(
            f"{what}: a generator can't be a handler; return a list, or report "
            "progress through the Context"
        )
    hints = _hints(function, what)
    fields: dict[str, Any] = {}
    defaults: dict[str, Any] = {}
    positional: list[str] = []
    context = None
    for parameter in _parameters(function):
        name = parameter.name
        hint = hints.get(name, Any)
        _check_parameter(parameter, hint, what)
        if parameter.kind is parameter.POSITIONAL_ONLY:
            positional.append(name)
        if parameter.default is not parameter.empty:
            defaults[name] = parameter.default
        if _is_context(hint):
            if context is not None:
                raise SetupError(f"{what}: both {context!r} and {name!r} are a Context")
            context = name
            continue
        fields[name] = _field(hint, parameter.default)
    adapter = _adapter(fields, what)
    schema = _input_schema(adapter, fields, defaults, what)
    names = tuple(schema.get("properties", ()))
    required = frozenset(schema.get("required", ()))
    return Signature(
        schema=schema,
        names=names,
        required=tuple(name for name in names if name in required),
        context=context,
        positional=tuple(positional),
        is_async=is_async(function),
        _validator=_validator(adapter),
        _defaults=defaults,
    )


def innermost(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function that was written, inside partials and wrappers."""
    while True:
        function = inspect.unwrap(function)
        if isinstance(function, functools.partial):
            function = function.func
        elif inspect.ismethod(function):
            function = function.__func__
        elif inspect.isroutine(function) or inspect.isclass(function):
            return function
        else:
            function = type(function).__call__


def is_async(function: Callable[..., Any]) -> bool:
    """Whether calling the function gives a coroutine."""
    return inspect.iscoroutinefunction(_called(function))


def is_generator(function: Callable[..., Any]) -> bool:
    """Whether calling the function gives a generator, of either kind."""
    called = _called(function)
    return inspect.isgeneratorfunction(called) or inspect.isasyncgenfunction(called)


def _called(function: Callable[..., Any]) -> Callable[..., Any]:
    # What decides is the outermost function: a wrapper may be sync around async.
    while isinstance(function, functools.partial):
        function = function.func
    if inspect.isroutine(function) or inspect.isclass(function):
        return function
    return type(function).__call__


def _parameters(function: Callable[..., Any]) -> list[inspect.Parameter]:
    """Return the parameters that are left for the client."""
    bound: set[str] = set()
    inner = inspect.unwrap(function, stop=_is_partial)
    if isinstance(inner, functools.partial):
        # A bare copy: a signature that `update_wrapper` left is that of before.
        function = functools.partial(inner.func, *inner.args, **inner.keywords)
        bound.update(inner.keywords)
    parameters = inspect.signature(function).parameters
    return [parameters[name] for name in parameters if name not in bound]


def _is_partial(function: Callable[..., Any]) -> bool:
    return isinstance(function, functools.partial)


def _hints(function: Callable[..., Any], what: str) -> dict[str, Any]:
    target = innermost(function)
    if inspect.isclass(target):
        raise SetupError(f"{what}: register a function that builds it, not a class")
    try:
        return typing.get_type_hints(
            target, localns=_enclosing(target), include_extras=True
        )
    except NameError as error:
        raise SetupError(
            f"{what}: the annotation {error.name!r} can't be resolved; define or "
            "import it at module level, not under TYPE_CHECKING"
        ) from error
    except (AttributeError, SyntaxError, TypeError) as error:
        raise SetupError(f"{what}: an annotation can't be resolved: {error}") from error


def _enclosing(function: Callable[..., Any]) -> dict[str, Any]:
    """Return the variables of the enclosing functions that have a value by now."""
    if not isinstance(function, types.FunctionType):
        return {}
    variables = {}
    cells = function.__closure__ or ()
    for name, cell in zip(function.__code__.co_freevars, cells, strict=True):
        with contextlib.suppress(ValueError):
            variables[name] = cell.cell_contents
    return variables


def _check_parameter(parameter: inspect.Parameter, hint: Any, what: str) -> None:
    if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
        raise SetupError(
            f"{what}: {parameter} takes arguments without a name; write out the "
            "parameters, or take one dict"
        )
    if parameter.name in ("self", "cls") and parameter.annotation is parameter.empty:
        raise SetupError(
            f"{what}: the parameter {parameter.name!r} looks like an unbound method; "
            "register the bound method of an instance instead"
        )
    # What the host would fill in must never become what the client may choose.
    markers = (parameter.default, *getattr(hint, "__metadata__", ()))
    if any(type(marker).__module__ == _FASTAPI_MARKERS for marker in markers):
        raise SetupError(
            f"{what}: the parameter {parameter.name!r} is one that FastAPI fills in, "
            "which a handler can't have; take a Context, and read ctx.request or "
            "ctx.principal"
        )


def _is_context(hint: Any) -> bool:
    if typing.get_origin(hint) is Annotated:
        hint = typing.get_args(hint)[0]
    return hint is Context or any(
        argument is Context for argument in typing.get_args(hint)
    )


def _field(hint: Any, default: Any) -> Any:
    if default is inspect.Parameter.empty:
        return hint
    if isinstance(default, FieldInfo):
        annotated = Annotated[hint, default]
        return annotated if default.is_required() else NotRequired[annotated]
    return NotRequired[hint]


def _adapter(fields: Mapping[str, Any], what: str) -> TypeAdapter[dict[str, Any]]:
    # mypy takes the name for the class that a literal would make.
    made: Any = TypedDict("made", fields)  # type: ignore[misc]
    made.__pydantic_config__ = ConfigDict(  # type: ignore[attr-defined]
        extra="forbid", allow_inf_nan=False
    )
    try:
        adapter: TypeAdapter[dict[str, Any]] = TypeAdapter(typing.cast("Any", made))
        adapter.json_schema()
    except _UNSCHEMATISABLE as error:
        raise SetupError(
            f"{what}: {_culprit(fields)}, which no JSON can become; take a pydantic "
            "model, a dataclass, a TypedDict, or the types that they are made of"
        ) from error
    return adapter


def _culprit(fields: Mapping[str, Any]) -> str:
    for name, hint in fields.items():
        wrapped = typing.get_origin(hint) is NotRequired
        inner = typing.get_args(hint)[0] if wrapped else hint
        try:
            TypeAdapter(inner).json_schema()
        except _UNSCHEMATISABLE:
            shown = inspect.formatannotation(inner)
            return f"the parameter {name!r} has the type {shown}"
    return "a parameter has a type"


def _validator(adapter: TypeAdapter[Any]) -> SchemaValidator:
    validator = adapter.validator
    # Plugins of pydantic wrap the validator in a class of their own.
    return typing.cast("SchemaValidator", validator)


class _Untitled(GenerateJsonSchema):
    """Schemas without the titles that pydantic makes up from names."""

    def field_title_should_be_set(self, schema: Any) -> bool:  # noqa: ARG002
        return False


def _input_schema(
    adapter: TypeAdapter[Any],
    fields: Mapping[str, Any],
    defaults: Mapping[str, Any],
    what: str,
) -> dict[str, Any]:
    schema = adapter.json_schema(schema_generator=_Untitled)
    properties = schema["properties"]
    if len(properties) < len(fields):
        raise SetupError(f"{what}: two parameters have the same alias; rename one")
    # Properties have the names of the wire, and the order of the parameters.
    for name, published in zip(fields, properties.values(), strict=True):
        if name in defaults and not isinstance(defaults[name], FieldInfo):
            _set_default(published, defaults[name])
    return _tidy(schema)


def _set_default(schema: dict[str, Any], default: Any) -> None:
    try:
        schema["default"] = to_jsonable_python(default)
    except PydanticSerializationError:
        # What has no JSON form still is the default; it just is not published.
        return


def _tidy(schema: dict[str, Any]) -> dict[str, Any]:
    """Drop the titles that are names of classes, and what is empty."""
    for name, definition in schema.get("$defs", {}).items():
        title = definition.get("title")
        if title is not None and (name == title or name.endswith(f"__{title}")):
            del definition["title"]
    schema.pop("title", None)
    if not schema.get("properties", True):
        del schema["properties"]
    return {"type": "object", **schema} if "properties" in schema else schema


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
        "dict_type": "object",
        "model_type": "object",
        "dataclass_type": "object",
        "arguments_type": "object",
        "model_attributes_type": "object",
        "date_type": "string with a date",
        "time_type": "string with a time",
        "datetime_type": "string with a date and time",
        "time_delta_type": "string with a duration",
        "uuid_type": "string with a UUID",
        "bytes_type": "string",
        "finite_number": "finite number",
    }
)
"""What pydantic's type errors expected, in the words of JSON."""

_CONTAINERS: Final = frozenset(
    kind for kind, expected in _EXPECTED.items() if expected in ("array", "object")
)

_JSON_NUMBER: Final = re.compile(
    r"-?(0|[1-9]\d{0,999})(\.\d{1,999})?([eE][+-]?\d{1,3})?\Z"
)


def describe_faults(error: ValidationError) -> str:
    """Describe what is wrong with arguments: a line a fault, without the values."""
    count = error.error_count()
    # The details of very many faults cost more than their answer may.
    if count > _MAX_FAULTS:
        return f"{count} values do not match the input schema"
    details = error.errors(include_url=False, include_context=False)
    return "\n".join(_describe(detail) for detail in details)


def _describe(detail: ErrorDetails) -> str:
    path = ".".join(str(step)[:100] for step in detail["loc"]) or "arguments"
    kind = detail["type"]
    if kind == "missing":
        return f"{path}: missing"
    if kind in ("extra_forbidden", "unexpected_keyword_argument"):
        return f"{path}: unknown argument"
    if kind in _EXPECTED:
        return f"{path}: expected {_EXPECTED[kind]}, got {_json_type(detail['input'])}"
    if kind == "union_tag_invalid":
        return f"{path}: does not match any of the expected tags"
    message = detail["msg"].removeprefix("Value error, ")
    if kind.endswith("_parsing"):
        # The rest of such a message quotes the value.
        message = message.partition(",")[0]
    return f"{path}: {message[:1].lower()}{message[1:]}"


def _json_type(value: Any) -> str:
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


def _mended(encoded: bytes, error: ValidationError, *, coerce: bool) -> bytes | None:
    """Return the arguments with integral floats as integers, where that is a fault."""
    if error.error_count() > _MAX_FAULTS:
        return None
    arguments = from_json(encoded)
    mended = False
    for detail in error.errors(include_url=False, include_context=False):
        number = _number(detail, coerce=coerce)
        if number is not None:
            mended |= _replace(arguments, detail["loc"], detail["input"], number)
    return to_json(arguments) if mended else None


def _decoded(
    arguments: Mapping[str, Any], error: ValidationError
) -> dict[str, Any] | None:
    """Return the strings, decoded from JSON where they can't be strings."""
    if error.error_count() > _MAX_FAULTS:
        return None
    decoded = dict(arguments)
    for detail in error.errors(include_url=False, include_context=False):
        name = str(detail["loc"][0])
        if detail["type"] in _CONTAINERS and isinstance(decoded.get(name), str):
            try:
                decoded[name] = from_json(decoded[name], allow_inf_nan=False)
            except ValueError:
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
        encoded = Encoded(self._to_json(value))
        return Result(
            kind="structured", value=encoded, object_schema=self.object_schema
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
            encoded = serializer.to_json(value, by_alias=True, warnings="error")
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


def read_returns(function: Callable[..., Any], what: str) -> Returns:
    """Work out what a tool returns: a declared structure, or anything."""
    hint = _hints(function, what).get("return", Any)
    leaves = _leaves(hint)
    if all(leaf in (str, None, type(None)) for leaf in leaves):
        texts = tuple(str if leaf is str else type(None) for leaf in leaves)
        return Returns(_texts=texts)
    if any(leaf is Any or _is_subclass(leaf, (Block, Result)) for leaf in leaves):
        return Returns(_blocks=any(_is_subclass(leaf, (Block,)) for leaf in leaves))
    try:
        adapter = _output_adapter(hint)
        schema = adapter.json_schema(schema_generator=_Untitled, mode="serialization")
    except _UNSCHEMATISABLE:
        # A type that pydantic does not know makes no promise about the output.
        return Returns()
    schema = _output_schema(schema)
    return Returns(
        schema=schema,
        object_schema=describes_object(schema),
        _validator=_validator(adapter),
        _serializer=adapter.serializer,
        _has_numbers=b'"number"' in to_json(schema),
    )


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
