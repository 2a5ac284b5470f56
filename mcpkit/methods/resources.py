"""`resources/list`, `resources/templates/list`, `resources/read`.

Spec 2026-07-28, server/resources.
"""

from typing import Any

from mcpkit.components import HandlerError, Resource, ResourceTemplate
from mcpkit.context import Context
from mcpkit.errors import (
    RESOURCE_NOT_FOUND,
    UNSET,
    ProtocolError,
    ResourceNotFoundError,
)
from mcpkit.faults import ArgumentsError
from mcpkit.methods.common import (
    ask,
    check_kind,
    check_scopes,
    internal_error,
    paginate,
    read_answers,
    string_param,
    warn_of_null,
)
from mcpkit.protocol.content import (
    Audio,
    Block,
    File,
    Image,
    Text,
    resource_contents,
)
from mcpkit.protocol.jsonrpc import encode
from mcpkit.protocol.results import Result
from mcpkit.server import Server


async def list_resources(server: Server, context: Context) -> Result:
    """Answer `resources/list`."""
    resources, cursor = paginate(server, context, server.registry.resources)
    return Result.resources([resource.wire for resource in resources], cursor)


async def list_templates(server: Server, context: Context) -> Result:
    """Answer `resources/templates/list`."""
    templates, cursor = paginate(server, context, server.registry.templates)
    return Result.resource_templates([template.wire for template in templates], cursor)


async def read_resource(server: Server, context: Context) -> Result:
    """Answer `resources/read`.

    Raises:
        ProtocolError: There is no such resource, a scope or a capability is
            missing, the function raised it, or it failed.
    """
    params = context.params
    uri = string_param(params, "uri")
    found = server.registry.find_resource(uri)
    if found is None:
        raise _not_found(uri)
    resource, variables = found
    check_scopes(resource, context)
    read_answers(server, context, uri, {})
    try:
        keywords = resource.signature.bind_strings(dict(variables))
    # A variable that is not of its type names nothing that exists.
    except ArgumentsError as error:
        raise _not_found(uri) from error
    try:
        value = await resource.call(keywords, context, server.threads)
        result = _result(value, uri, resource)
    except HandlerError as error:
        cause = error.__cause__ or error
        server.fault(context, f"resource {uri!r} failed", cause)
        raise internal_error() from error
    except ProtocolError as error:
        raise _located(error, uri) from error.__cause__
    # What the function returned has no JSON form, or it raised a ToolError.
    except Exception as error:
        server.fault(context, f"resource {uri!r} failed", error)
        raise internal_error() from error
    if result.kind == "input_required":
        return ask(server, context, result, uri, {})
    return result


def _not_found(uri: str) -> ProtocolError:
    return ResourceNotFoundError(data={"uri": uri})


def _located(error: ProtocolError, uri: str) -> ProtocolError:
    """Return the error of a function, which names the URI when nothing is found."""
    if error.code == RESOURCE_NOT_FOUND and error.data is UNSET:
        return ProtocolError(error.code, error.message, {"uri": uri})
    return error


def _result(value: Any, uri: str, resource: Resource | ResourceTemplate) -> Result:
    if isinstance(value, Result):
        return check_kind(value, "resource_read", "wire", "input_required")
    return Result.resource_read(
        _contents(value, uri, resource.mime_type),
        ttl_ms=resource.ttl_ms,
        cache_scope=resource.cache_scope,
    )


def _contents(value: Any, uri: str, mime_type: str | None) -> list[dict[str, Any]]:
    several = value if isinstance(value, (list, tuple)) else [value]
    if several and all(isinstance(item, Block) for item in several):
        return [_from_block(item, uri, mime_type) for item in several]
    match value:
        case str():
            return [resource_contents(uri, value, mime_type or "text/plain")]
        case bytes() | bytearray() | memoryview():
            return [resource_contents(uri, value, mime_type)]
        case _:
            warn_of_null(f"resource {uri!r}", value)
            text = encode(value).decode()
            return [resource_contents(uri, text, mime_type or "application/json")]


def _from_block(block: Block, uri: str, mime_type: str | None) -> dict[str, Any]:
    match block:
        case File(meta=meta):
            return resource_contents(block.uri, block.data, block.mime_type, meta)
        case Text(meta=meta):
            kind = mime_type or "text/plain"
            return resource_contents(uri, block.text, kind, meta)
        case Image(meta=meta) | Audio(meta=meta):
            return resource_contents(uri, block.data, block.mime_type, meta)
        case _:
            raise TypeError(f"a {type(block).__name__} is no contents of a resource")
