"""Forms: what a user may be asked for, and what reads the answer.

A form is a model, a dataclass or a TypedDict, or a JSON Schema. What is published
of it is the subset that clients show to their users: an object with properties
that are

    strings         `minLength`, `maxLength`, and four formats
    numbers         `minimum`, `maximum`
    booleans
    one choice      `enum`, or `oneOf` with titles
    some choices    an array whose items are `enum`, or `anyOf` with titles

The rest of what a type says is left out, and holds for the answer all the same.

Spec 2026-07-28, client/elicitation: Requested Schema.
"""

import typing
from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import dataclass
from functools import cache, lru_cache
from types import MappingProxyType
from typing import (
    Annotated,
    Any,
    ClassVar,
    Final,
    Generic,
    Literal,
    NotRequired,
    TypeVar,
    overload,
)

from pydantic import Field, TypeAdapter, WrapValidator
from pydantic.errors import PydanticUndefinedAnnotation
from pydantic_core import (
    SchemaError,
    SchemaValidator,
    ValidationError,
    from_json,
    to_json,
)
from typing_extensions import TypedDict

from mcpkit.errors import SetupError
from mcpkit.faults import describe_faults, mend_numbers, non_finite
from mcpkit.hints import REMEDY
from mcpkit.protocol.jsonrpc import is_object
from mcpkit.protocol.versions import Revision
from mcpkit.schemas import (
    UNSCHEMATISABLE,
    Untitled,
    hasty_validator_of,
    validator_of,
)

T = TypeVar("T")

_FORMATS: Final = ("email", "uri", "date", "date-time")

_COMMON: Final = frozenset({"type", "title", "description", "default"})
_KEYWORDS: Final[Mapping[str, frozenset[str]]] = MappingProxyType(
    {
        "string": _COMMON | {"minLength", "maxLength", "format"},
        "number": _COMMON | {"minimum", "maximum"},
        "integer": _COMMON | {"minimum", "maximum"},
        "boolean": _COMMON,
        "one choice": _COMMON | {"enum", "enumNames", "oneOf"},
        "some choices": _COMMON | {"items", "minItems", "maxItems"},
    }
)
"""What a property may hold, by its kind."""

_PRIMITIVES: Final = ("string", "number", "integer", "boolean")

_ITEMS: Final = frozenset({"type", "enum", "anyOf"})

_ROOT: Final = frozenset(
    {
        "$schema",
        "additionalProperties",
        "description",
        "properties",
        "required",
        "title",
        "type",
    }
)

_REMEDY: Final = (
    "a form takes str, int, float, bool, dates, a Literal or an Enum of strings, and "
    "lists of the last two"
)

_ROOT_NAME: Final = "content"

_MUCH: Final = 64 * 1024
"""The size of an answer, in bytes, from which on one fault is told for all."""


@dataclass(frozen=True, slots=True)
class Form(Generic[T]):
    """What is published of a form, and what reads the answers.

    Attributes:
        schema: The `requestedSchema`, as the newest revision has it.
    """

    schema: dict[str, Any]
    _validator: SchemaValidator
    _hasty: Callable[[], SchemaValidator]
    _given: Mapping[str, Any] | None = None

    def wire(self, revision: Revision) -> dict[str, Any]:
        """Return the `requestedSchema` for a revision.

        Older revisions have no titles of choices but `enumNames`, and no defaults
        but those of booleans. They do not have several choices at once either:
        such a property is left out, and has its default.

        Raises:
            ValueError: Such a property is required.
        """
        if revision.rich_forms:
            return deepcopy(self.schema)
        required = self.schema.get("required", ())
        properties = {}
        for name, published in self.schema["properties"].items():
            if published["type"] != "array":
                properties[name] = _plain(published)
            elif name in required:
                raise ValueError(
                    f"{revision.version} has no form for several choices at once, as "
                    f"{name!r} takes"
                )
        kept = {key: self.schema[key] for key in self.schema if key != "$schema"}
        return {**kept, "properties": properties}

    def read(self, content: object) -> T:
        """Validate the content of an answer.

        JSON's own types do not turn into one another, save that `3.0` is an
        integer. A string still becomes a date, or a member of an enum.

        Returns:
            An instance of the form's type; of a JSON Schema, a dict.

        Raises:
            ValueError: The content does not match; a line a fault.
        """
        answer = {_ROOT_NAME: content}
        encoded = to_json(answer, inf_nan_mode="constants")
        # A number that is too large for a float decodes to an infinity.
        if b"Infinity" in encoded and (path := non_finite(content)) is not None:
            raise ValueError(f"{path}: expected finite number, got number")
        hasty = len(encoded) > _MUCH
        validator = self._hasty() if hasty else self._validator
        try:
            try:
                read = validator.validate_json(encoded, strict=True)
            except ValidationError as error:
                mended = mend_numbers(encoded, error, coerce=False, hasty=hasty)
                if mended is None:
                    raise
                read = validator.validate_json(mended, strict=True)
        except ValidationError as error:
            lines = describe_faults(error, answer).split("\n")
            prefix = f"{_ROOT_NAME}."
            told = "\n".join(line.removeprefix(prefix) for line in lines)
            raise ValueError(told) from None
        value = read[_ROOT_NAME]
        if self._given is not None:
            # Of a type, pydantic fills them in.
            value = {**deepcopy(dict(self._given)), **value}
        return value  # type: ignore[no-any-return]


def _plain(published: Mapping[str, Any]) -> dict[str, Any]:
    """Return a property as the revision has it that forms came with."""
    plain = dict(published)
    if plain["type"] != "boolean":
        plain.pop("default", None)
    if "oneOf" in plain:
        choices = plain.pop("oneOf")
        plain["enum"] = [choice["const"] for choice in choices]
        plain["enumNames"] = [choice["title"] for choice in choices]
    return plain


@overload
def read_form(schema: type[T], what: str) -> Form[T]: ...


@overload
def read_form(schema: Mapping[str, Any], what: str) -> Form[dict[str, Any]]: ...


def read_form(schema: Any, what: str) -> Form[Any]:
    """Work out what is published of a form, and what reads its answers.

    Args:
        schema: A pydantic model, a dataclass, a TypedDict, or the JSON Schema of a
            flat object.
        what: What it is, for messages.

    Raises:
        SetupError: It can't be a form.

    Example:
        >>> @dataclass
        ... class Confirm:
        ...     ok: bool
        >>> form = read_form(Confirm, "confirm")
        >>> form.schema["properties"]
        {'ok': {'type': 'boolean'}}
        >>> form.read({"ok": True})
        Confirm(ok=True)
    """
    if isinstance(schema, Mapping):
        return _read_given(schema, what)
    if isinstance(typing.get_origin(schema) or schema, type):
        return _read_type(schema, what)
    raise _no_form(schema, what)


def _no_form(schema: Any, what: str) -> SetupError:
    return SetupError(
        f"{what}: {_name(schema)} is no form; take a pydantic model, a dataclass, a "
        "TypedDict (of typing_extensions), or the JSON Schema of a flat object"
    )


def _name(schema: Any) -> str:
    return schema.__name__ if isinstance(schema, type) else repr(schema)


@lru_cache(maxsize=1024)
def _read_type(schema: Any, what: str) -> Form[Any]:
    try:
        adapter: TypeAdapter[Any] = TypeAdapter(schema)
        generated = adapter.json_schema(schema_generator=Untitled)
    except _UNUSABLE as error:
        raise _unusable(schema, what) from error
    definitions = generated.get("$defs", {})
    root = _inlined(generated, definitions)
    if root.get("type") != "object" or "properties" not in root:
        raise _no_form(schema, what)
    reading = _reading(schema)
    properties = {}
    for name, published in root["properties"].items():
        field = _published(_inlined(published, definitions), definitions)
        if field is None:
            raise SetupError(
                f"{what}: no form can ask for {name!r} of {_name(schema)}; "
                f"{_remedy(published)}"
            )
        if "default" in field and not _is_default(name, field["default"], reading):
            del field["default"]
        properties[name] = field
    published = {"type": "object", "properties": properties}
    if "required" in root:
        published["required"] = root["required"]
    return _form(published, reading)


def _form(
    schema: dict[str, Any],
    reading: TypeAdapter[Any],
    given: Mapping[str, Any] | None = None,
) -> Form[Any]:
    hasty = cache(lambda: hasty_validator_of(reading))
    return Form(schema, validator_of(reading), hasty, given)


_UNUSABLE: Final = (*UNSCHEMATISABLE, PydanticUndefinedAnnotation, SchemaError)


def _unusable(schema: Any, what: str) -> SetupError:
    """Say which fields of a type have no schema."""
    try:
        hints = typing.get_type_hints(schema, include_extras=True)
    except NameError as error:
        return SetupError(
            f"{what}: the annotation {error.name!r} of {_name(schema)} can't be "
            f"resolved; {REMEDY}"
        )
    # It is no class.
    except TypeError:
        hints = {}
    culprits = [repr(name) for name, hint in hints.items() if not _has_schema(hint)]
    if not culprits:
        return _no_form(schema, what)
    return SetupError(
        f"{what}: no form can ask for {' and '.join(culprits)} of {_name(schema)}; "
        f"{_REMEDY}"
    )


def _has_schema(hint: Any) -> bool:
    if typing.get_origin(hint) is ClassVar:
        return True
    try:
        # Not by itself, since `NotRequired` is no type.
        TypeAdapter(_typed_dict({"it": hint})).json_schema(schema_generator=Untitled)
    except _UNUSABLE:
        return False
    return True


def _inlined(
    schema: Mapping[str, Any], definitions: Mapping[str, Any]
) -> dict[str, Any]:
    inlined = dict(schema)
    while "$ref" in inlined:
        name = inlined.pop("$ref").removeprefix("#/$defs/")
        inlined = {**definitions[name], **inlined}
    return inlined


def _remedy(published: Mapping[str, Any]) -> str:
    if published.get("writeOnly"):
        return "a secret may not pass through the client: send the user to a url"
    return _REMEDY


def _published(
    schema: dict[str, Any], definitions: Mapping[str, Any]
) -> dict[str, Any] | None:
    """Return what is published of a property, if a form can ask for it."""
    schema = _without_null(schema, definitions)
    _name_choices(schema, definitions)
    kind = _kind(schema)
    if kind is None:
        return None
    if kind == "some choices":
        schema["items"] = _items(schema["items"])
    elif kind == "one choice":
        schema["type"] = "string"
    if schema.get("format", "email") not in _FORMATS:
        del schema["format"]
    return {
        keyword: value
        for keyword, value in schema.items()
        if keyword in _KEYWORDS[kind]
    }


def _without_null(
    schema: dict[str, Any], definitions: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the schema of `X | None` as that of `X`."""
    members = schema.get("anyOf", ())
    others = [member for member in members if member != {"type": "null"}]
    if len(others) < len(members):
        del schema["anyOf"]
        single = _inlined(others[0], definitions) if len(others) == 1 else None
        schema = {**(single or {"anyOf": others}), **schema}
    if None in schema.get("enum", ()):
        schema["enum"] = [value for value in schema["enum"] if value is not None]
    if schema.get("default", "") is None:
        del schema["default"]
    return schema


def _name_choices(schema: dict[str, Any], definitions: Mapping[str, Any]) -> None:
    """Write the choices of a property, or of its items, in one way."""
    if "const" in schema:
        schema["enum"] = [schema.pop("const")]
    if "anyOf" in schema and (choices := _titled(schema["anyOf"])):
        schema["oneOf"] = choices
    if "oneOf" in schema:
        schema.pop("enum", None)
    if is_object(schema.get("items")):
        schema["items"] = _inlined(schema["items"], definitions)
        _name_choices(schema["items"], definitions)


def _titled(members: list[Any]) -> list[dict[str, str]] | None:
    """Return choices with titles, if a union consists of them."""
    choices = [
        {"const": member.get("const"), "title": member.get("title")}
        for member in members
    ]
    return choices if _are_choices(choices) else None


def _items(items: Mapping[str, Any]) -> dict[str, Any]:
    if "oneOf" in items:
        return {"anyOf": items["oneOf"]}
    return {"type": "string", "enum": items["enum"]}


def _kind(schema: Mapping[str, Any]) -> str | None:
    """Return the kind of a property, if forms have it."""
    kind = schema.get("type")
    if schema.get("format") in ("binary", "password"):
        return None
    if schema.keys() & {"enum", "oneOf"}:
        return "one choice" if _is_choice(schema, "oneOf") else None
    if kind == "array":
        items = schema.get("items")
        one_of = is_object(items) and ("oneOf" if "oneOf" in items else "anyOf")
        return "some choices" if one_of and _is_choice(items, one_of) else None
    return kind if kind in _PRIMITIVES else None


def _is_choice(schema: Any, titled: str) -> bool:
    if titled in schema:
        return _are_choices(schema[titled])
    return _are_strings(schema.get("enum"))


def _are_strings(values: Any) -> bool:
    is_list = isinstance(values, (list, tuple)) and len(values) > 0
    return is_list and all(isinstance(value, str) for value in values)


def _are_choices(members: Any) -> bool:
    return (
        isinstance(members, list)
        and len(members) > 0
        and all(
            is_object(member)
            and isinstance(member.get("const"), str)
            and isinstance(member.get("title"), str)
            for member in members
        )
    )


def _reading(schema: Any) -> TypeAdapter[Any]:
    """Return what reads an answer, under a name that faults begin with."""
    return TypeAdapter(_typed_dict({_ROOT_NAME: schema}))


def _typed_dict(fields: Mapping[str, Any]) -> Any:
    # mypy takes the name for the class that a literal would make.
    return TypedDict("made", fields)  # type: ignore[operator]


def _is_default(name: str, default: Any, reading: TypeAdapter[Any]) -> bool:
    """Whether a user that leaves a default as it is, is understood."""
    encoded = to_json({_ROOT_NAME: {name: default}})
    try:
        validator_of(reading).validate_json(encoded, strict=True)
    except ValidationError as error:
        return all(fault["loc"][1:2] != (name,) for fault in error.errors())
    return True


def _read_given(schema: Mapping[str, Any], what: str) -> Form[dict[str, Any]]:
    try:
        # A copy, so that what is checked is what is published.
        given = from_json(to_json(dict(schema)))
    except ValueError as error:
        raise SetupError(f"{what}: the schema holds what is no JSON") from error
    properties = given.get("properties")
    required = given.get("required", [])
    if given.get("type") != "object" or not is_object(properties):
        raise SetupError(
            f'{what}: a schema of a form has "type": "object" and "properties"'
        )
    _check_keywords(given, _ROOT, what)
    if not isinstance(required, list) or not all(it in properties for it in required):
        raise SetupError(f'{what}: "required" is a list of names of properties')
    hints = {}
    for name, published in properties.items():
        hint = _hint(published, f"{what}: the property {name!r}")
        hints[name] = hint if name in required else NotRequired[hint]
    reading = _reading(_typed_dict(hints))
    defaults = {
        name: published["default"]
        for name, published in properties.items()
        if "default" in published
    }
    for name, default in defaults.items():
        if not _is_default(name, default, reading):
            raise SetupError(f"{what}: the default of {name!r} does not fit it")
    return _form(given, reading, defaults)


def _check_keywords(
    schema: Mapping[str, Any], allowed: frozenset[str], what: str
) -> None:
    unknown = schema.keys() - allowed
    if unknown:
        raise SetupError(
            f"{what} has {', '.join(sorted(unknown))}, which forms don't have; they "
            f"have {', '.join(sorted(allowed))}"
        )
    for keyword, value in schema.items():
        if not _VALUES.get(keyword, _is_anything)(value):
            raise SetupError(f"{what} has no {keyword} that clients can read")


def _hint(schema: Any, what: str) -> Any:
    """Return the type of a property of a given schema."""
    kind = _kind(schema) if is_object(schema) else None
    if kind is None:
        raise SetupError(
            f"{what} is no string, number, integer, boolean or choice of strings"
        )
    _check_keywords(schema, _KEYWORDS[kind], what)
    if kind == "one choice":
        _check_type(schema, "string", what)
        return _choice(schema, "oneOf")
    if kind == "some choices":
        _check_keywords(schema["items"], _ITEMS, what)
        least, most = schema.get("minItems"), schema.get("maxItems")
        item = _choice(schema["items"], "anyOf")
        return Annotated[list[item], Field(min_length=least, max_length=most)]  # type: ignore[valid-type]
    limits = {
        argument: schema[keyword]
        for keyword, argument in _LIMITS.items()
        if keyword in schema
    }
    return Annotated[_TYPES[kind], Field(**limits)]


def _check_type(schema: Mapping[str, Any], kind: str, what: str) -> None:
    if schema.get("type") != kind:
        raise SetupError(f'{what} needs "type": "{kind}"')


def _choice(schema: Mapping[str, Any], titled: str) -> Any:
    if titled in schema:
        return Literal[tuple(member["const"] for member in schema[titled])]
    return Literal[tuple(schema["enum"])]


def _as_sent(value: Any, validate: Callable[[Any], Any]) -> Any:
    """Keep 3 as 3, which would become 3.0."""
    validate(value)
    return value


_TYPES: Final[Mapping[str, Any]] = MappingProxyType(
    {
        "string": str,
        "number": Annotated[float, WrapValidator(_as_sent)],
        "integer": int,
        "boolean": bool,
    }
)
_LIMITS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "minLength": "min_length",
        "maxLength": "max_length",
        "minimum": "ge",
        "maximum": "le",
    }
)


def _is_anything(value: Any) -> bool:  # noqa: ARG001  # as others in the table
    return True


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_count(value: Any) -> bool:
    return type(value) is int and value >= 0


def _is_number(value: Any) -> bool:
    return type(value) in (int, float)


_VALUES: Final[Mapping[str, Callable[[Any], bool]]] = MappingProxyType(
    {
        "$schema": _is_text,
        "additionalProperties": lambda value: isinstance(value, bool),
        "description": _is_text,
        "enumNames": _are_strings,
        "format": _FORMATS.__contains__,
        "maxItems": _is_count,
        "maxLength": _is_count,
        "maximum": _is_number,
        "minItems": _is_count,
        "minLength": _is_count,
        "minimum": _is_number,
        "title": _is_text,
    }
)
"""What the value of a keyword is, where a client could not do with another."""
