"""The annotations of a function, as the function's own module sees them."""

import contextlib
import functools
import inspect
import types
import typing
from collections.abc import Callable
from typing import Any

from mcpkit.errors import SetupError


def read_hints(function: Callable[..., Any], what: str) -> dict[str, Any]:
    """Return the annotations of a function, resolved.

    Args:
        function: Any callable.
        what: What it is registered as, for messages: "tool 'search'".

    Raises:
        SetupError: An annotation can't be resolved.
    """
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
