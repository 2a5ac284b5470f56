"""The arguments of a function: what is published of them, and what validates them."""

import contextlib
import enum
import inspect
import types
import typing
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any, Final, Literal, NotRequired

from pydantic import (
    AfterValidator,
    ConfigDict,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    TypeAdapter,
)
from pydantic.errors import PydanticUndefinedAnnotation
from pydantic.fields import FieldInfo
from pydantic_core import (
    PydanticCustomError,
    PydanticSerializationError,
    SchemaError,
    SchemaValidator,
    ValidationError,
    to_json,
    to_jsonable_python,
)
from pydantic_core.core_schema import CoreSchema, no_info_after_validator_function
from typing_extensions import TypedDict

from mcpkit.errors import SetupError
from mcpkit.faults import non_finite
from mcpkit.hints import REMEDY
from mcpkit.protocol.headers import ANNOTATION, MAX_SAFE_INTEGER
from mcpkit.schemas import (
    UNSCHEMATISABLE,
    Untitled,
    hasty_validator_of,
    tidy,
    validator_of,
)

_ITERABLES: Final = (Iterable, Collection)


@dataclass(frozen=True, slots=True)
class Header:
    """Marks an argument of a tool that travels in an HTTP header, too.

    Proxies can route by it without reading the body. The argument is a string, a
    boolean or an integer, and no union; integers are bounded to those that all
    clients can tell apart.

    Example:
        >>> def query(region: Annotated[str, Header("Region")], sql: str) -> str:
        ...     return f"{sql} in {region}"

    Args:
        name: The header is `Mcp-Param-{name}`.
    """

    name: str

    def __get_pydantic_core_schema__(
        self, source: Any, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        """Refuse integers that no header can hold."""
        return no_info_after_validator_function(_check_safe, handler(source))

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        """Publish the header, and what it can hold."""
        # In place of a reference: only `properties` may lead to the annotation.
        reference = handler(schema)
        published = dict(handler.resolve_ref_schema(reference))
        if "$ref" in reference:
            published.pop("title", None)
        published[ANNOTATION] = self.name
        if published.get("type") == "integer" and not published.keys() & _VALUES:
            published.setdefault("minimum", -MAX_SAFE_INTEGER)
            published.setdefault("maximum", MAX_SAFE_INTEGER)
        return published


_VALUES: Final = frozenset({"const", "enum"})


def _check_safe(value: Any) -> Any:
    if isinstance(value, int) and abs(value) > MAX_SAFE_INTEGER:
        bound = "less" if value > 0 else "greater"
        limit = MAX_SAFE_INTEGER if value > 0 else -MAX_SAFE_INTEGER
        raise PydanticCustomError(
            "safe_integer", f"Input should be {bound} than or equal to {limit}"
        )
    return value


def read_arguments(
    hints: Mapping[str, Any],
    defaults: Mapping[str, Any],
    descriptions: Mapping[str, str],
    what: str,
) -> tuple[dict[str, Any], SchemaValidator, Callable[[], SchemaValidator]]:
    """Work out the schema of the arguments of a function, and their validators.

    The second, made when it is first asked for, stops at the first fault of a
    collection: it is for much input.

    Args:
        hints: The annotations of the parameters, in order.
        defaults: The defaults of those that have one, and maybe of others.
        descriptions: What is said of parameters apart from their annotations.
        what: What the function is registered as, for messages.

    Raises:
        SetupError: A parameter has a type that no JSON can become.
    """
    fields = {}
    for name, hint in hints.items():
        default = defaults.get(name, inspect.Parameter.empty)
        marks = getattr(hint, "__metadata__", ())
        if isinstance(default, Header) or any(mark is Header for mark in marks):
            raise SetupError(
                f"{what}: the parameter {name!r} has its Header where it does not "
                "work; write Annotated[str, Header('Region')]"
            )
        fields[name] = _field(_readable(hint), default)
    adapter = _adapter(fields, what)
    schema = _input_schema(adapter, fields, defaults, descriptions, what)
    return schema, validator_of(adapter), cache(lambda: hasty_validator_of(adapter))


def _readable(hint: Any) -> Any:
    """Return the annotation of a parameter, as pydantic can read it from JSON.

    Iterable[T]          list[T]: it would be validated when it is read
    Literal[Color.RED]   the values of the members, which become members
    """
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if hint in _ITERABLES or origin in _ITERABLES:
        return list[arguments] if arguments else list  # type: ignore[valid-type]
    if origin is Literal:
        plain = any(map(_is_plain_member, arguments))
        return _literal(arguments) if plain else hint
    if origin is Annotated:
        return Annotated[(_readable(arguments[0]), *arguments[1:])]
    readable = tuple(map(_readable, arguments))
    if readable == arguments:
        return hint
    if origin in (typing.Union, types.UnionType):
        return typing.Union[readable]  # noqa: UP007  # of a tuple
    return origin[readable]


def _is_plain_member(value: Any) -> bool:
    return isinstance(value, enum.Enum) and not isinstance(value, (int, str))


def _literal(members: Sequence[Any]) -> Any:
    by_value = {
        member.value if isinstance(member, enum.Enum) else member: member
        for member in members
    }
    return Annotated[Literal[tuple(by_value)], AfterValidator(by_value.__getitem__)]


def _field(hint: Any, default: Any) -> Any:
    required = default is inspect.Parameter.empty
    if isinstance(default, FieldInfo):
        hint = Annotated[hint, default]
        required = default.is_required()
    if typing.get_origin(hint) is Annotated:
        # A header comes last, and so knows all constraints.
        inner, *marks = typing.get_args(hint)
        marks.sort(key=lambda mark: isinstance(mark, Header))
        hint = Annotated[(inner, *marks)]
    return hint if required else NotRequired[hint]


def _adapter(fields: Mapping[str, Any], what: str) -> TypeAdapter[dict[str, Any]]:
    made = _typed_dict(fields, what)
    made.__pydantic_config__ = ConfigDict(extra="forbid", allow_inf_nan=False)
    try:
        adapter: TypeAdapter[dict[str, Any]] = TypeAdapter(made)
        adapter.json_schema(schema_generator=Untitled)
    except UNSCHEMATISABLE as error:
        if getattr(error, "code", None) == "typed-dict-version":
            raise SetupError(
                f"{what}: import TypedDict from typing_extensions, in place of typing"
            ) from error
        raise SetupError(f"{what}: {_culprits(fields)}") from error
    # A type that needs a package that is not there.
    except ImportError as error:
        raise SetupError(f"{what}: {error}") from error
    # A constraint that pydantic takes and can't compile, such as a pattern that its
    # engine does not have.
    except (SchemaError, PydanticSerializationError, AssertionError) as error:
        told = str(error).strip().splitlines()[-1].strip() if str(error) else "it"
        named = ", ".join(map(repr, fields))
        raise SetupError(
            f"{what}: a type of the parameters {named} can't be used: {told}"
        ) from error
    return adapter


def _typed_dict(fields: Mapping[str, Any], what: str) -> Any:
    try:
        # mypy takes the name for the class that a literal would make.
        return TypedDict("made", fields)  # type: ignore[operator]
    except TypeError as error:
        if len(fields) == 1:
            raise SetupError(
                f"{what}: the annotation of the parameter {min(fields)!r} is none of "
                f"a parameter: {error}"
            ) from error
    # One of them is at fault.
    return [_typed_dict({name: hint}, what) for name, hint in fields.items()]


def _culprits(fields: Mapping[str, Any]) -> str:
    culprits = []
    for name, wrapped in fields.items():
        is_wrapped = typing.get_origin(wrapped) is NotRequired
        hint = typing.get_args(wrapped)[0] if is_wrapped else wrapped
        culprit = f"the parameter {name!r} has the type {_shown(hint)}"
        # Not a type by itself: some of what annotates a field is for fields alone.
        made = _typed_dict({name: wrapped}, name)
        unresolved = _unresolved(made)
        if unresolved is not None:
            return (
                f"{culprit}, in which the annotation {unresolved!r} can't be resolved; "
                f"{REMEDY}"
            )
        if not _has_schema(made):
            culprits.append(culprit)
    return (
        f"{' and '.join(culprits)}, which no JSON can become; take a pydantic model, "
        "a dataclass, a TypedDict, or the types that they are made of"
    )


def _shown(hint: Any) -> str:
    return inspect.formatannotation(hint).replace("typing.", "")


def _unresolved(hint: Any) -> str | None:
    """Return a name inside of a type that can't be resolved, if there is one."""
    try:
        TypeAdapter(hint).rebuild(force=True, raise_errors=True)
    except PydanticUndefinedAnnotation as error:
        return error.name
    except UNSCHEMATISABLE:
        return None
    return None


def _has_schema(hint: Any) -> bool:
    try:
        TypeAdapter(hint).json_schema(schema_generator=Untitled)
    except UNSCHEMATISABLE:
        return False
    return True


def _input_schema(
    adapter: TypeAdapter[Any],
    fields: Mapping[str, Any],
    defaults: Mapping[str, Any],
    descriptions: Mapping[str, str],
    what: str,
) -> dict[str, Any]:
    schema = adapter.json_schema(schema_generator=Untitled)
    properties = schema["properties"]
    if len(properties) < len(fields):
        raise SetupError(f"{what}: two parameters have the same alias; rename one")
    # Properties have the names of the wire, and the order of the parameters.
    for name, (alias, published) in zip(fields, properties.items(), strict=True):
        if name in defaults and not isinstance(defaults[name], FieldInfo):
            _set_default(published, defaults[name])
        if name in descriptions:
            published.setdefault("description", descriptions[name])
        if "default" in published and not _is_default(published, alias, adapter):
            del published["default"]
    return tidy(schema)


def _set_default(schema: dict[str, Any], default: Any) -> None:
    # What has no JSON form still is the default; it just is not published.
    with contextlib.suppress(ValueError):
        if not isinstance(default, Iterator):
            schema["default"] = to_jsonable_python(default)


def _is_default(
    published: Mapping[str, Any], alias: str, adapter: TypeAdapter[Any]
) -> bool:
    """Whether a client that sends a default is served as one that sends nothing.

    `None` may be the default of a string, and a secret is not told.
    """
    default = published["default"]
    if published.get("writeOnly") or non_finite(default) is not None:
        return False
    try:
        validator_of(adapter).validate_json(to_json({alias: default}), strict=True)
    except ValidationError as error:
        return all(fault["loc"][0] != alias for fault in error.errors())
    except PydanticSerializationError:
        return False
    return True
