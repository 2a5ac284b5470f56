"""A function as a tool sees it: a schema, a validator, and how to call it.

Everything is worked out once, when the function is registered; a function that
can't work is a `SetupError` there, which says what to write instead.
"""

import functools
import inspect
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Final, NotRequired

from pydantic import ConfigDict, TypeAdapter
from pydantic.fields import FieldInfo
from pydantic_core import (
    PydanticSerializationError,
    SchemaValidator,
    ValidationError,
    to_json,
    to_jsonable_python,
)
from typing_extensions import TypedDict

from mcpkit.context import Context
from mcpkit.errors import SetupError
from mcpkit.faults import (
    ArgumentsError,
    decode_strings,
    describe_faults,
    mend_numbers,
    non_finite,
)
from mcpkit.hints import read_hints
from mcpkit.schemas import UNSCHEMATISABLE, Untitled, tidy, validator_of

# The module of Depends, Header and the others; importing it takes long.
_FASTAPI_MARKERS: Final = "fastapi.params"


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
            mended = mend_numbers(encoded, error, coerce=coerce)
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
            decoded = decode_strings(arguments, error)
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
    hints = read_hints(function, what)
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
        _validator=validator_of(adapter),
        _defaults=defaults,
    )


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
    except UNSCHEMATISABLE as error:
        raise SetupError(
            f"{what}: {_culprits(fields)}, which no JSON can become; take a pydantic "
            "model, a dataclass, a TypedDict, or the types that they are made of"
        ) from error
    return adapter


def _culprits(fields: Mapping[str, Any]) -> str:
    hints = {
        name: typing.get_args(hint)[0]
        if typing.get_origin(hint) is NotRequired
        else hint
        for name, hint in fields.items()
    }
    return " and ".join(
        f"the parameter {name!r} has the type {inspect.formatannotation(hint)}"
        for name, hint in hints.items()
        if not _has_schema(hint)
    )


def _has_schema(hint: Any) -> bool:
    try:
        TypeAdapter(hint).json_schema()
    except UNSCHEMATISABLE:
        return False
    return True


def _input_schema(
    adapter: TypeAdapter[Any],
    fields: Mapping[str, Any],
    defaults: Mapping[str, Any],
    what: str,
) -> dict[str, Any]:
    schema = adapter.json_schema(schema_generator=Untitled)
    properties = schema["properties"]
    if len(properties) < len(fields):
        raise SetupError(f"{what}: two parameters have the same alias; rename one")
    # Properties have the names of the wire, and the order of the parameters.
    for name, published in zip(fields, properties.values(), strict=True):
        if name in defaults and not isinstance(defaults[name], FieldInfo):
            _set_default(published, defaults[name])
    return tidy(schema)


def _set_default(schema: dict[str, Any], default: Any) -> None:
    try:
        schema["default"] = to_jsonable_python(default)
    except PydanticSerializationError:
        # What has no JSON form still is the default; it just is not published.
        return
