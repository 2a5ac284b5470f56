"""What travels as a string: the variables of a URI, the arguments of a prompt.

What becomes of one is decided by the parameter that takes it, of which the
schema tells.
"""

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

from mcpkit.errors import SetupError
from mcpkit.signature import Signature
from mcpkit.uris import UriTemplate

_PATHS: Final = frozenset({"path", "file-path", "directory-path"})


def read_template(uri: str, signature: Signature, what: str) -> UriTemplate | None:
    """Return the template that a URI is, or `None` when it has no variables.

    Args:
        uri: The URI, or the URI template.
        signature: Of the function that takes the variables.
        what: What it is registered as, for messages: "resource 'a://{b}'".

    Raises:
        SetupError: The template is malformed, or its variables and the function's
            parameters are not the same.
    """
    schema = signature.schema
    properties = schema.get("properties", {})
    kinds = {name: list(_leaves(properties[name], schema)) for name in properties}
    lists = {name for name, leaves in kinds.items() if _is_list(leaves)}
    paths = {name for name, leaves in kinds.items() if _is_path(leaves)}
    template = None
    if "{" in uri or "}" in uri:
        try:
            template = UriTemplate(uri, lists=lists, paths=paths)
        except ValueError as error:
            raise SetupError(f"{what}: {error}") from error
        _check_kinds(template, lists, signature, what)
    variables = set() if template is None else set(template.variables)
    for name in sorted(set(signature.required) - variables):
        raise SetupError(
            f"{what}: the parameter {name!r} is no variable of the URI; write "
            f"{{{name}}} into it, or give the parameter a default"
        )
    return template


def _check_kinds(
    template: UriTemplate, lists: set[str], signature: Signature, what: str
) -> None:
    for name in template.variables:
        if name not in signature.names:
            raise SetupError(
                f"{what}: the template's variable {name!r} is no parameter of the "
                "function"
            )
        if name in template.optional and name in signature.required:
            raise SetupError(
                f"{what}: a URI may leave out {name!r}, which is in its query; give "
                "the parameter a default"
            )
    for name in sorted(template.lists - lists):
        raise SetupError(
            f"{what}: the variable {name!r} has a star and so is a list; write "
            f"{name}: list[str]"
        )


def read_choices(signature: Signature) -> dict[str, tuple[str, ...]]:
    """Return the values of the parameters that have few: enums and literals."""
    schema = signature.schema
    choices = {}
    for name, published in schema.get("properties", {}).items():
        leaves = list(_leaves(published, schema))
        if leaves and all("enum" in leaf or "const" in leaf for leaf in leaves):
            values = [
                value
                for leaf in leaves
                for value in leaf.get("enum", (leaf.get("const"),))
            ]
            choices[name] = tuple(_as_string(value) for value in values)
    return choices


def _leaves(
    schema: Mapping[str, Any], root: Mapping[str, Any]
) -> Iterator[Mapping[str, Any]]:
    """Yield the types that a value may have, other than null."""
    reference = schema.get("$ref")
    if reference is not None:
        yield from _leaves(root["$defs"][reference.removeprefix("#/$defs/")], root)
        return
    members = [*schema.get("anyOf", ()), *schema.get("oneOf", ())]
    for member in members:
        yield from _leaves(member, root)
    if not members and schema.get("type") != "null":
        yield schema


def _is_list(leaves: list[Mapping[str, Any]]) -> bool:
    return bool(leaves) and all(leaf.get("type") == "array" for leaf in leaves)


def _is_path(leaves: list[Mapping[str, Any]]) -> bool:
    return any(leaf.get("format") in _PATHS for leaf in leaves)


def _as_string(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)
