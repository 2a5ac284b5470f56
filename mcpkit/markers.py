"""Which parameters of a function does FastAPI fill in?

    Annotated[T, Depends(f)], = Depends(f), Security(f)     filled in
    Annotated[T, Header()], Annotated[T, Cookie()]          filled in
    Request, HTTPConnection, Response, BackgroundTasks,
    SecurityScopes                                          filled in
    Query(), Path(), Body(), Form(), File(), WebSocket      refused
    a marker that is not called, as in Annotated[T, Depends]   refused
    a marker further inside an annotation                   refused

It is told without importing FastAPI, which loads slowly: of a module that is not
loaded, nobody has a marker. What is filled in never becomes an argument, which
the client would choose.
"""

import inspect
import sys
import typing
from collections.abc import Iterable, Iterator
from typing import Annotated, Any, Final

from mcpkit.errors import SetupError

_MARKERS: Final = "fastapi.params"
_FILLED: Final = ("Depends", "Header", "Cookie")
_REFUSED: Final = ("Param", "Body")

# FastAPI's classes of parameters are those of Starlette, save the last.
_CLASSES: Final = (
    ("starlette.requests", "HTTPConnection"),
    ("starlette.responses", "Response"),
    ("starlette.background", "BackgroundTasks"),
    ("fastapi.security", "SecurityScopes"),
)


def is_filled(hint: Any, default: Any, what: str) -> bool:
    """Whether FastAPI fills a parameter in.

    Args:
        hint: Its annotation.
        default: Its default.
        what: Which parameter it is, for messages: "tool 'search': the parameter
            'user'".

    Raises:
        SetupError: It is marked in a way that a handler can't have.
    """
    hint = resolve_alias(hint)
    markers = (default, *getattr(hint, "__metadata__", ()))
    if any(map(_is_uncalled, markers)):
        raise SetupError(f"{what} has a marker of FastAPI that is not called: add ()")
    if _has(markers, _FILLED):
        return True
    if _has(markers, _REFUSED):
        raise SetupError(
            f"{what} is marked as a part of an HTTP request; for an argument write "
            "Annotated[..., Field(...)] with pydantic's Field, and for a part of the "
            "URL take a Depends, whose function has that parameter"
        )
    plain = typing.get_args(hint)[0] if _is_annotated(hint) else hint
    if _has(_parts(plain, set()), (*_FILLED, *_REFUSED)):
        raise SetupError(
            f"{what} has a marker of FastAPI inside its annotation, where FastAPI "
            "does not look; write it around the whole: Annotated[T | None, Depends(f)]"
        )
    if _is_subclass(plain, "starlette.websockets", "WebSocket"):
        raise SetupError(f"{what} is a WebSocket, over which no MCP comes")
    return any(_is_subclass(plain, *known) for known in _CLASSES)


def resolve_alias(hint: Any) -> Any:
    """Return what a name made by `type X = ...` stands for."""
    while type(hint).__name__ == "TypeAliasType":
        hint = hint.__value__
    return hint


def _is_uncalled(marker: Any) -> bool:
    if not inspect.isfunction(marker) and not inspect.isclass(marker):
        return False
    return marker.__module__ in (_MARKERS, "fastapi.param_functions")


def _has(markers: Iterable[Any], names: tuple[str, ...]) -> bool:
    params = sys.modules.get(_MARKERS)
    classes = tuple(getattr(params, name, ()) for name in names)
    return any(isinstance(marker, classes) for marker in markers)


def _parts(hint: Any, seen: set[int]) -> Iterator[Any]:
    """Return all that an annotation is made of; an alias may be made of itself."""
    if id(hint) in seen:
        return
    seen.add(id(hint))
    parts = hint if isinstance(hint, list) else typing.get_args(resolve_alias(hint))
    for part in parts:
        yield part
        yield from _parts(part, seen)


def _is_annotated(hint: Any) -> bool:
    return typing.get_origin(hint) is Annotated


def _is_subclass(hint: Any, module: str, name: str) -> bool:
    cls = getattr(sys.modules.get(module), name, None)
    return cls is not None and inspect.isclass(hint) and issubclass(hint, cls)
