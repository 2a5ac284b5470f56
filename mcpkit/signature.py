"""A function as a tool sees it: a schema, a validator, and how to call it.

Everything is worked out once, when the function is registered; a function that
can't work is a `SetupError` there, which says what to write instead.
"""

import functools
import inspect
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, Final

from pydantic_core import SchemaValidator, ValidationError, to_json

from mcpkit.arguments import read_arguments
from mcpkit.context import Context
from mcpkit.errors import SetupError
from mcpkit.faults import (
    MAX_FAULTS,
    ArgumentsError,
    decode_strings,
    describe_faults,
    mend_numbers,
    non_finite,
)
from mcpkit.hints import innermost, read_hints
from mcpkit.markers import is_filled, resolve_alias
from mcpkit.recursion import depth_limit, depth_of
from mcpkit.strict import find_confusion, is_confusable

if TYPE_CHECKING:
    from mcpkit.dependencies import Dependencies


_MUCH: Final = 64 * 1024
"""The size of arguments, in bytes, from which on one fault is told for all."""


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
        dependencies: The parameters that FastAPI fills in, if there are any.
    """

    schema: dict[str, Any]
    names: tuple[str, ...]
    required: tuple[str, ...]
    context: str | None
    positional: tuple[str, ...]
    is_async: bool
    dependencies: "Dependencies | None"
    _validator: SchemaValidator
    _hasty: Callable[[], SchemaValidator]
    _confusable: bool
    _depth: int | None = None
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
        self._check_size(arguments)
        encoded = to_json(arguments, inf_nan_mode="constants")
        # A number that is too large for a float decodes to an infinity.
        if b"Infinity" in encoded and (path := non_finite(arguments)) is not None:
            raise ArgumentsError(f"{path}: expected finite number, got number")
        # Describing the faults of much input costs more than their answer may.
        validator = self._validator if len(encoded) <= _MUCH else self._hasty()
        try:
            keywords: dict[str, Any] = validator.validate_json(encoded, strict=True)
        except ValidationError as error:
            keywords = self._mend(arguments, encoded, error, coerce=coerce)
        if self._confusable:
            confusion = find_confusion(arguments, self.schema)
            if confusion is not None:
                raise ArgumentsError(confusion)
        return keywords

    def _mend(
        self,
        arguments: Mapping[str, Any],
        encoded: bytes,
        error: ValidationError,
        *,
        coerce: bool,
    ) -> dict[str, Any]:
        hasty = len(encoded) > _MUCH
        mended = mend_numbers(encoded, error, coerce=coerce, hasty=hasty)
        if mended is None:
            raise ArgumentsError(describe_faults(error, arguments)) from None
        try:
            validator = self._hasty() if hasty else self._validator
            return validator.validate_json(mended, strict=True)  # type: ignore[no-any-return]
        except ValidationError as remaining:
            raise ArgumentsError(describe_faults(remaining, arguments)) from None

    def _check_size(self, arguments: Mapping[str, Any]) -> None:
        if self._depth is not None and depth_of(arguments) > self._depth:
            raise ArgumentsError(f"arguments: nested over {self._depth} levels")
        # A few unknown arguments are named one by one.
        if len(arguments) > len(self.names) + MAX_FAULTS:
            unknown = len(arguments.keys() - frozenset(self.names))
            raise ArgumentsError(f"arguments: {unknown} unknown arguments")

    def bind_strings(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """Validate strings, which take the type of their parameter.

        What no string can become, such as a list, is written as JSON.

        Raises:
            ArgumentsError: An argument is missing, unknown, or not of its type.
        """
        self._check_size(arguments)
        try:
            return self._validator.validate_strings(arguments)  # type: ignore[no-any-return]
        except ValidationError as error:
            decoded = decode_strings(arguments, error)
            if decoded is None:
                raise ArgumentsError(describe_faults(error, arguments)) from None
        try:
            return self._validator.validate_json(to_json(decoded))  # type: ignore[no-any-return]
        except ValidationError as error:
            raise ArgumentsError(describe_faults(error, decoded)) from None

    def place(self, keywords: dict[str, Any]) -> list[Any]:
        """Take the positional arguments out of the keyword arguments."""
        return [
            keywords.pop(name) if name in keywords else self._defaults[name]
            for name in self.positional
        ]


def read_signature(
    function: Callable[..., Any],
    what: str,
    descriptions: Mapping[str, str] | None = None,
) -> Signature:
    """Work out how to call a function.

    Args:
        function: Any callable.
        what: What it is registered as, for messages: "tool 'search'".
        descriptions: What its docstring says of its parameters.

    Raises:
        SetupError: The function can't be called with named JSON arguments.
    """
    if is_generator(function):
        raise SetupError(
            f"{what}: a generator can't be a handler; return a list, and report "
            "progress with ctx.progress"
        )
    hints = read_hints(function, what, returns=False)
    arguments: dict[str, Any] = {}
    defaults: dict[str, Any] = {}
    positional: list[str] = []
    filled: list[inspect.Parameter] = []
    context = None
    for parameter in _parameters(function, what):
        name = parameter.name
        hint = hints.get(name, _annotation(parameter))
        _check_parameter(parameter, what)
        if parameter.kind is parameter.POSITIONAL_ONLY:
            positional.append(name)
        if parameter.default is not parameter.empty:
            defaults[name] = parameter.default
        if is_filled(hint, parameter.default, f"{what}: the parameter {name!r}"):
            filled.append(parameter.replace(annotation=resolve_alias(hint)))
            continue
        if _is_context(hint):
            if context is not None:
                raise SetupError(f"{what}: both {context!r} and {name!r} are a Context")
            context = name
            continue
        arguments[name] = hint
    schema, validator, hasty = read_arguments(
        arguments, defaults, descriptions or {}, what
    )
    names = tuple(schema.get("properties", ()))
    required = frozenset(schema.get("required", ()))
    return Signature(
        schema=schema,
        names=names,
        required=tuple(name for name in names if name in required),
        context=context,
        positional=tuple(positional),
        is_async=is_async(function),
        dependencies=_dependencies(filled, what),
        _validator=validator,
        _hasty=hasty,
        _confusable=is_confusable(schema),
        _depth=depth_limit(schema),
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
    if isinstance(function, staticmethod):
        function = function.__func__
    if inspect.isroutine(function) or inspect.isclass(function):
        return function
    return type(function).__call__


def _parameters(function: Callable[..., Any], what: str) -> list[inspect.Parameter]:
    """Return the parameters that are left for the client."""
    bound: set[str] = set()
    inner = inspect.unwrap(function, stop=_is_partial)
    if isinstance(inner, functools.partial):
        # A bare copy: a signature that `update_wrapper` left is that of before.
        function = functools.partial(inner.func, *inner.args, **inner.keywords)
        bound.update(inner.keywords)
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except ValueError as error:
        raise SetupError(
            f"{what}: the parameters of {function!r} can't be read; register a "
            "function with annotations that calls it"
        ) from error
    _check_bound(parameters, function, what)
    return [parameter for parameter in parameters if parameter.name not in bound]


def _is_partial(function: Callable[..., Any]) -> bool:
    return isinstance(function, functools.partial)


def _check_bound(
    parameters: Sequence[inspect.Parameter], function: Callable[..., Any], what: str
) -> None:
    if not parameters or parameters[0].name not in ("self", "cls"):
        return
    first = parameters[0]
    scope = getattr(innermost(function), "__qualname__", "").rpartition(".")[0]
    in_class = scope and not scope.endswith("<locals>")
    if in_class or first.annotation is first.empty:
        raise SetupError(
            f"{what}: the parameter {first.name!r} is of a method that is not bound; "
            "register the bound method of an instance instead, below the class"
        )


def _annotation(parameter: inspect.Parameter) -> Any:
    """Return the annotation in a `__signature__`, which no function has."""
    annotation = parameter.annotation
    unknown = annotation is parameter.empty or isinstance(annotation, str)
    return Any if unknown else annotation


def _check_parameter(parameter: inspect.Parameter, what: str) -> None:
    if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
        raise SetupError(
            f"{what}: {parameter} takes arguments without a name; write out the "
            "parameters, or take one dict"
        )


def _dependencies(
    filled: Sequence[inspect.Parameter], what: str
) -> "Dependencies | None":
    if not filled:
        return None
    # It loads FastAPI, slowly, which those who have no dependencies are spared.
    from mcpkit.dependencies import read_dependencies  # noqa: PLC0415

    return read_dependencies(filled, what)


def _is_context(hint: Any) -> bool:
    if typing.get_origin(hint) is Annotated:
        hint = typing.get_args(hint)[0]
    is_union = typing.get_origin(hint) in (typing.Union, types.UnionType)
    return hint is Context or (is_union and Context in typing.get_args(hint))
