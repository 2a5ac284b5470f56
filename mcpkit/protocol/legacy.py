"""A result as a response of 2025-11-25, 2025-06-18 or 2025-03-26.

Results are built as the newest revision has them, and cut down here by the row
of the revision that the client speaks.

Spec 2025-11-25, 2025-06-18 and 2025-03-26: server/tools, resources, prompts.
"""

import json
import re
from collections.abc import Mapping
from functools import cache
from types import MappingProxyType
from typing import Any, Final

from mcpkit.errors import INTERNAL_ERROR, ProtocolError
from mcpkit.protocol.era import SERVER_INFO
from mcpkit.protocol.jsonrpc import (
    Encoded,
    RequestId,
    encode_result,
    error_response,
    is_object,
    success_response,
)
from mcpkit.protocol.results import Outcome, Result
from mcpkit.protocol.versions import LATEST_LEGACY, Revision

_MODERN_ONLY: Final = frozenset({"resultType", "ttlMs", "cacheScope"})

# The members of definitions and of blocks that came with a field of `Revision`.
_CAME_WITH: Final[Mapping[str, frozenset[str]]] = MappingProxyType(
    {
        "icons": frozenset({"icons", "websiteUrl"}),
        "definitions": frozenset({"title", "outputSchema", "_meta"}),
    }
)

_REFUSED: Final[Mapping[str, str]] = MappingProxyType(
    {
        "input_required": "MRTR input requests require protocol 2026-07-28",
        "task": "Tasks require protocol 2026-07-28",
    }
)


def to_response(
    request_id: RequestId,
    outcome: Outcome,
    *,
    revision: Revision = LATEST_LEGACY,
) -> dict[str, Any]:
    """Build the response to one request.

    Args:
        request_id: The id of the request.
        outcome: What came of it.
        revision: The revision that the client speaks.

    Example:
        >>> to_response(1, Result.structured(3))["result"]["structuredContent"]
        {'result': 3}
    """
    try:
        if isinstance(outcome, ProtocolError):
            raise outcome
        shaped = shape(outcome, revision=revision)
    except ProtocolError as error:
        return error_response(error, request_id=request_id)
    # Not `decode`: its bounds are for what comes in.
    return success_response(json.loads(encode_result(shaped)), request_id)


def shape(result: Result, *, revision: Revision = LATEST_LEGACY) -> dict[str, Any]:
    """Return the members of a result, some of which may be `Encoded`.

    Raises:
        ProtocolError: -32603, the result asks for what the era does not have.
    """
    if result.kind in _REFUSED:
        raise ProtocolError(INTERNAL_ERROR, _REFUSED[result.kind])
    members = result.members()
    shaped = {key: value for key, value in members.items() if key not in _MODERN_ONLY}
    if result.metadata or "_meta" in shaped:
        _set_meta(shaped, result.metadata or {})
    if "structuredContent" in shaped:
        content = shaped.pop("structuredContent")
        if revision.definitions:
            shaped["structuredContent"] = as_object(
                content, object_schema=result.object_schema
            )
    for key in ("tools", "resources", "resourceTemplates", "prompts"):
        if key in shaped:
            shaped[key] = [definition(item, revision) for item in shaped[key]]
    if not revision.definitions or not revision.icons:
        _cut_content(shaped, revision)
    return shaped


def _set_meta(shaped: dict[str, Any], added: Mapping[str, Any]) -> None:
    meta = shaped.pop("_meta", None)
    own = {**(meta if is_object(meta) else {}), **added}
    own.pop(SERVER_INFO, None)
    if own:
        shaped["_meta"] = own


def as_object(content: Any, *, object_schema: bool | None) -> Any:
    """Return structured content as an object, as legacy clients demand.

    Args:
        content: The content, `Encoded` or not.
        object_schema: Whether the tool's output schema describes an object;
            `None` where it has none, and then the content itself decides.
    """
    encoded = isinstance(content, Encoded)
    if object_schema is None:
        object_schema = content.startswith(b"{") if encoded else is_object(content)
    if object_schema:
        return content
    return Encoded(b'{"result":%b}' % content) if encoded else {"result": content}


def definition(wire: Mapping[str, Any], revision: Revision) -> dict[str, Any]:
    """Return a definition without what a revision lacks.

    The output schema of a tool whose result is not an object is wrapped as its
    result is; one that is a reference to an object's says so itself.
    """
    cut = _without_later(wire, revision)
    if "outputSchema" in cut:
        schema = cut["outputSchema"]
        cut["outputSchema"] = (
            {"type": "object", **schema}
            if describes_object(schema)
            else _wrapped(schema)
        )
    if "arguments" in cut:
        cut["arguments"] = [
            _without_later(argument, revision) for argument in cut["arguments"]
        ]
    return cut


def implementation(wire: Mapping[str, Any], revision: Revision) -> dict[str, Any]:
    """Return an `Implementation` without what a revision lacks."""
    cut = _without_later(wire, revision)
    # Unlike a definition's, its description is as young as its icons.
    if not revision.icons:
        cut.pop("description", None)
    return cut


@cache
def _lacking(revision: Revision) -> frozenset[str]:
    return frozenset().union(
        *(keys for name, keys in _CAME_WITH.items() if not getattr(revision, name))
    )


def _without_later(wire: Mapping[str, Any], revision: Revision) -> dict[str, Any]:
    lacking = _lacking(revision)
    cut = {key: value for key, value in wire.items() if key not in lacking}
    if not revision.definitions and is_object(cut.get("annotations")):
        cut["annotations"] = {
            key: value
            for key, value in cut["annotations"].items()
            if key != "lastModified"
        }
    return cut


def describes_object(schema: Mapping[str, Any]) -> bool:
    """Whether a JSON Schema admits objects alone, as legacy clients demand.

    Example:
        >>> describes_object({"$ref": "#/$defs/A", "$defs": {"A": {"type": "object"}}})
        True
        >>> describes_object({"type": "array"})
        False
    """
    reference = schema.get("$ref", "")
    if "type" not in schema and reference.startswith("#/$defs/"):
        target = schema.get("$defs", {}).get(reference.removeprefix("#/$defs/"), {})
        return bool(target.get("type") == "object")
    return schema.get("type") == "object"


_POINTER: Final = re.compile(r"#/(?!\$defs/)")
_DATA: Final = frozenset({"const", "default", "enum", "examples"})
_MAPS: Final = frozenset(
    {"$defs", "definitions", "dependentSchemas", "patternProperties", "properties"}
)

# The second is for references of draft 2019-09, which are to the root alone.
_REFERENCES: Final[Mapping[str, str]] = MappingProxyType(
    {"$ref": "$ref", "$recursiveRef": "$ref", "$dynamicRef": "$dynamicRef"}
)


def _wrapped(schema: Mapping[str, Any]) -> dict[str, Any]:
    # With an `$id`, it is a document of its own, and its definitions stay in it.
    stays = "$id" in schema
    inner = {
        key: value
        for key, value in schema.items()
        if key != "$schema" and (stays or key != "$defs")
    }
    wrapped = {
        "type": "object",
        "properties": {"result": _moved(inner)},
        "required": ["result"],
    }
    if "$defs" in schema and not stays:
        wrapped |= _moved({"$defs": schema["$defs"]})
    return {
        **wrapped,
        **({"$schema": schema["$schema"]} if "$schema" in schema else {}),
    }


def _moved(schema: Any) -> Any:
    """Return a schema whose references follow what was the root of the document."""
    if isinstance(schema, list):
        return [_moved(item) for item in schema]
    if not is_object(schema) or "$id" in schema:
        return schema
    moved: dict[str, Any] = {}
    for keyword, value in schema.items():
        if keyword in _REFERENCES and isinstance(value, str):
            moved[_REFERENCES[keyword]] = _moved_reference(value)
        elif keyword in _MAPS and is_object(value):
            moved[keyword] = {name: _moved(inner) for name, inner in value.items()}
        else:
            moved[keyword] = value if keyword in _DATA else _moved(value)
    return moved


def _moved_reference(reference: str) -> str:
    # An anchor, or what is in `$defs`, stays where it is.
    if reference == "#" or _POINTER.match(reference):
        return f"#/properties/result{reference[1:]}"
    return reference


def _cut_content(shaped: dict[str, Any], revision: Revision) -> None:
    if "content" in shaped:
        shaped["content"] = [_block(block, revision) for block in shaped["content"]]
    if "contents" in shaped:
        shaped["contents"] = [
            _without_later(contents, revision) for contents in shaped["contents"]
        ]
    if "messages" in shaped:
        shaped["messages"] = [
            {**message, "content": _block(message["content"], revision)}
            for message in shaped["messages"]
        ]


def _block(block: Mapping[str, Any], revision: Revision) -> dict[str, Any]:
    if block.get("type") == "resource_link" and not revision.definitions:
        return {"type": "text", "text": f"{block['name']}: {block['uri']}"}
    cut = _without_later(block, revision)
    if is_object(cut.get("resource")):
        cut["resource"] = _without_later(cut["resource"], revision)
    return cut
