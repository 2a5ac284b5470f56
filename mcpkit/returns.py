"""What a tool returns, after its annotation.

    str, or nothing                      a text            no output schema
    a block, a list of blocks and str    content           no output schema
    Any, Result, what has no schema      whatever it is    no output schema
    Result[T], Awaitable[T]              as T
    Iterator[T]                          as list[T]
    anything else                        structured        the schema of the type

A `Result` may be returned in place of any of them. Under an output schema it holds
what the schema describes, unless it reports an error.
"""

import inspect
import types
import typing
from collections.abc import Awaitable, Callable, Coroutine, Generator, Iterator
from dataclasses import dataclass, replace
from typing import Annotated, Any, Final, Protocol, TypeVar

from pydantic.errors import PydanticErrorMixin, PydanticUndefinedAnnotation
from pydantic_core import from_json

from mcpkit.errors import SetupError
from mcpkit.hints import REMEDY, read_hints
from mcpkit.markers import resolve_alias
from mcpkit.outputs import Output, OutputError
from mcpkit.protocol.content import Block
from mcpkit.protocol.jsonrpc import Encoded, encode_value
from mcpkit.protocol.legacy import describes_object
from mcpkit.protocol.results import Result, normalize
from mcpkit.schemas import UNSCHEMATISABLE

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


class Encoder(Protocol):
    """Makes JSON of what an output schema describes."""

    def encode(self, value: Any) -> bytes:
        """Return the JSON of a value.

        Raises:
            OutputError: The schema does not describe it.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class Returns:
    """What a tool returns, after its annotation.

    Attributes:
        schema: The output schema, or `None` when none is declared.
        object_schema: Whether the schema describes an object.
        encoder: Makes JSON of what the schema describes.
    """

    schema: dict[str, Any] | None = None
    object_schema: bool | None = None
    encoder: Encoder | None = None
    _classes: tuple[Any, ...] = (object,)
    _items: tuple[Any, ...] | None = None

    def result(self, value: Any) -> Result:
        """Make a result of what the tool returned.

        Raises:
            OutputError: The value is not of the declared type.
            ValueError: The value has no JSON form.
        """
        if isinstance(value, Result):
            return self._built(value)
        if self.encoder is None:
            return self._unstructured(value)
        return Result(
            kind="structured",
            value=Encoded(self.encoder.encode(value)),
            object_schema=self.object_schema,
        )

    def _unstructured(self, value: Any) -> Result:
        if not isinstance(value, self._classes):
            raise OutputError(f"a {type(value).__name__} is not what was declared")
        if isinstance(value, str):
            return Result.text(value)
        if isinstance(value, Iterator):
            value = list(value)
        if self._items is not None and isinstance(value, (list, tuple)):
            for item in value:
                if not isinstance(item, self._items):
                    kind = type(item).__name__
                    raise OutputError(f"a {kind} in the list is not what was declared")
            return Result.content([item for item in value if item is not None])
        result = normalize(value)
        if result.kind == "structured":
            result.value = Encoded(encode_value(result.value))
        return result

    def _built(self, result: Result) -> Result:
        """Return a result that the tool built, with its structure encoded."""
        kind, held = result.kind, result.value
        if kind not in _KINDS:
            raise ValueError(f"a {kind} result is no result of a tool")
        if kind == "structured":
            return replace(
                result,
                value=self._encoded(held),
                object_schema=self.object_schema,
            )
        if kind == "raw" and "structuredContent" in held:
            # What went wrong need not be what the schema describes.
            failed = held.get("isError") is True
            content = held["structuredContent"]
            encoded = _encoded(content) if failed else self._encoded(content)
            return replace(
                result,
                value={**held, "structuredContent": encoded},
                object_schema=None if failed else self.object_schema,
            )
        if self.encoder is not None and _succeeds_without_structure(result):
            raise OutputError(f"a {kind} result has no structured content")
        return result

    def _encoded(self, value: Any) -> Encoded:
        if self.encoder is None:
            return _encoded(value)
        if isinstance(value, Encoded):
            value = from_json(value)
        return Encoded(self.encoder.encode(value))


def _encoded(value: Any) -> Encoded:
    return value if isinstance(value, Encoded) else Encoded(encode_value(value))


def _succeeds_without_structure(result: Result) -> bool:
    if result.kind == "raw":
        return result.value.get("isError") is not True
    return result.kind in ("text", "resource")


def read_returns(function: Callable[..., Any], what: str) -> Returns:
    """Work out what a tool returns: a declared structure, or anything.

    Args:
        function: Any callable.
        what: What it is registered as, for messages: "tool 'search'".

    Raises:
        SetupError: The annotation can't be resolved, or is no result of a tool.
    """
    hint = _unwrapped(read_hints(function, what).get("return", Any))
    members = _members(hint)
    if any(member in (Any, object, Result) for member in members):
        return Returns()
    if _mentions(hint, Result):
        raise SetupError(f"{what}: a tool returns one Result, and none inside of it")
    if all(member in (str, None, types.NoneType) for member in members):
        return Returns(_classes=_classes(members))
    if _mentions(hint, Block):
        return _content(members)
    try:
        output = Output(hint)
    except (*UNSCHEMATISABLE, PydanticUndefinedAnnotation) as error:
        _check_definition(error, what)
        # A type that pydantic does not know makes no promise about the output.
        return Returns()
    schema = output.schema
    if not schema:
        return Returns()
    if describes_object(schema) and "type" not in schema:
        schema = {"type": "object", **schema}
    return Returns(
        schema=schema, object_schema=describes_object(schema), encoder=output
    )


def _unwrapped(hint: Any) -> Any:
    """Return the type of the value, without what is around it."""
    named = resolve_alias(hint)
    if named is not hint:
        unwrapped = _unwrapped(named)
        # A type may be made of itself, by its name.
        return hint if unwrapped == named else unwrapped
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if isinstance(hint, typing.NewType):
        return _unwrapped(hint.__supertype__)
    if isinstance(hint, TypeVar):
        return Any
    if origin in (Result, Awaitable, Coroutine):
        return _unwrapped(arguments[-1])
    if origin in (Iterator, Generator):
        return list[arguments[0]]  # type: ignore[valid-type]  # worked out here
    if origin is Annotated:
        return Annotated[(_unwrapped(arguments[0]), *arguments[1:])]
    if origin in (typing.Union, types.UnionType):
        return typing.Union[tuple(map(_unwrapped, arguments))]  # noqa: UP007  # of a tuple
    return hint


def _members(hint: Any) -> list[Any]:
    """Return the types of which a union is one, or the only type."""
    hint = resolve_alias(hint)
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is Annotated:
        return _members(arguments[0])
    if origin in (typing.Union, types.UnionType):
        return [member for argument in arguments for member in _members(argument)]
    return [hint]


def _mentions(hint: Any, wanted: type) -> bool:
    """Whether an annotation is about a class, at any depth."""
    return any(
        inspect.isclass(part) and issubclass(part, wanted)
        for part in _parts(hint, set())
    )


def _parts(hint: Any, seen: set[int]) -> Iterator[Any]:
    """Yield all that an annotation is made of; an alias may be made of itself."""
    hint = resolve_alias(hint)
    if id(hint) not in seen:
        seen.add(id(hint))
        yield hint
        yield typing.get_origin(hint)
        for part in hint if isinstance(hint, list) else typing.get_args(hint):
            yield from _parts(part, seen)


def _content(members: list[Any]) -> Returns:
    """Return what a tool returns whose annotation is about content."""
    lists = [member for member in members if _is_list(member)]
    items = [
        item
        for member in lists
        for argument in typing.get_args(member)
        if argument is not Ellipsis
        for item in _members(_unwrapped(argument))
    ]
    single = [member for member in members if not _is_list(member)]
    if not all(map(_is_content, [*single, *items])):
        # What is beside content travels as it is.
        return Returns()
    classes = _classes(single)
    if not lists:
        return Returns(_classes=classes)
    return Returns(_classes=(*classes, list, tuple, Iterator), _items=_classes(items))


def _is_list(hint: Any) -> bool:
    origin = typing.get_origin(hint)
    return inspect.isclass(origin) and any(
        issubclass(one, origin) for one in (list, tuple)
    )


def _is_content(hint: Any) -> bool:
    return hint in (str, None, types.NoneType) or (
        inspect.isclass(hint) and issubclass(hint, Block)
    )


def _classes(hints: list[Any]) -> tuple[type, ...]:
    return tuple(types.NoneType if hint is None else hint for hint in hints)


def _check_definition(error: PydanticErrorMixin, what: str) -> None:
    """Tell the developer of a type that would have a schema if it were written so.

    Raises:
        SetupError: It is one.
    """
    remedy = _REMEDIES.get(error.code or "")
    if remedy is not None:
        raise SetupError(
            f"{what}: the type that it returns has no schema yet; {remedy}: "
            f"{error.message}"
        )


_REMEDIES: Final = {
    "class-not-fully-defined": REMEDY,
    "typed-dict-version": "import TypedDict from typing_extensions",
    "undefined-annotation": REMEDY,
}
