"""The annotations of a function, as the function's own module sees them.

Where an annotation is a string, the names in it are looked up

    1  in what the function closes over
    2  in the functions around it that are running, as a factory is
    3  in its module, and in builtins
"""

import contextlib
import functools
import inspect
import types
import typing
from collections.abc import Callable, Iterator
from typing import Any, Final

from mcpkit.errors import SetupError

REMEDY: Final = "define or import it at module level, not under TYPE_CHECKING"


def read_hints(
    function: Callable[..., Any], what: str, *, returns: bool = True
) -> dict[str, Any]:
    """Return the annotations of a function, resolved.

    Args:
        function: Any callable.
        what: What it is registered as, for messages: "tool 'search'".
        returns: Resolve the annotation of what it returns, too.

    Raises:
        SetupError: An annotation can't be resolved.
    """
    target = innermost(function)
    if inspect.isclass(target):
        raise SetupError(f"{what}: register a function that builds it, not a class")
    variables = _enclosing(target)
    hints: dict[str, Any] = {}
    owner = "a parameter"
    try:
        # Python 3.14 evaluates the annotations here, all at once.
        annotations = getattr(target, "__annotations__", None) or {}
        for name, annotation in annotations.items():
            owner = "what it returns" if name == "return" else f"the parameter {name!r}"
            if returns or name != "return":
                hints[name] = _resolved(annotation, target, variables)
    except NameError as error:
        raise SetupError(
            f"{what}: the annotation {error.name!r} of {owner} can't be resolved; "
            f"{REMEDY}"
        ) from error
    except (AttributeError, SyntaxError, TypeError) as error:
        raise SetupError(
            f"{what}: the annotation of {owner} can't be resolved: {error}"
        ) from error
    return hints


def read_return(function: Callable[..., Any], what: str) -> Any:
    """Return the annotation of what a function returns, resolved; `Any` without one.

    Args:
        function: A function that was written, and no partial or wrapper.
        what: What it is for, for messages: "ctx.once('order')".

    Raises:
        SetupError: The annotation can't be resolved.
    """
    annotations = getattr(function, "__annotations__", None) or {}
    try:
        return _resolved(annotations.get("return", Any), function, _enclosing(function))
    except (AttributeError, NameError, SyntaxError, TypeError) as error:
        raise SetupError(
            f"{what}: the annotation of what it returns can't be resolved: {error}; "
            f"{REMEDY}"
        ) from error


def _resolved(
    annotation: Any, target: Callable[..., Any], variables: dict[str, Any]
) -> Any:
    # A function that has this annotation alone, so that a fault has an owner.
    holder = types.FunctionType(_nothing.__code__, getattr(target, "__globals__", {}))
    holder.__annotations__ = {"it": annotation}
    with contextlib.suppress(AttributeError):
        holder.__type_params__ = target.__type_params__  # type: ignore[attr-defined]  # Python 3.12
    hints = typing.get_type_hints(holder, localns=variables, include_extras=True)
    return hints["it"]


def _nothing() -> None: ...


def _enclosing(function: Callable[..., Any]) -> dict[str, Any]:
    """Return the variables of the enclosing functions that have a value by now."""
    if not isinstance(function, types.FunctionType):
        return {}
    variables: dict[str, Any] = {}
    for frame in _frames_around(function):
        variables.update(frame.f_locals)
    cells = function.__closure__ or ()
    for name, cell in zip(function.__code__.co_freevars, cells, strict=True):
        with contextlib.suppress(ValueError):
            variables[name] = cell.cell_contents
    return variables


def _frames_around(function: types.FunctionType) -> Iterator[types.FrameType]:
    """Return the running calls of the functions that a function is written in.

    The outermost function comes first, whose variables the others hide.
    """
    scopes = function.__code__.co_qualname.split(".<locals>.")[:-1]
    names = [".<locals>.".join(scopes[: end + 1]) for end in range(len(scopes))]
    running: dict[str, types.FrameType] = {}
    frame = inspect.currentframe() if names else None
    while frame is not None:
        name = frame.f_code.co_qualname
        if name in names and frame.f_globals is function.__globals__:
            running.setdefault(name, frame)
        frame = frame.f_back
    return (running[name] for name in names if name in running)


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
