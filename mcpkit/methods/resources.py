"""`resources/list`, `resources/templates/list`, `resources/read`.

Spec 2026-07-28, server/resources.
"""

from collections.abc import Coroutine, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Final

from mcpkit.components import Resource, ResourceTemplate
from mcpkit.context import Context
from mcpkit.errors import (
    RESOURCE_NOT_FOUND,
    UNSET,
    ProtocolError,
    ResourceNotFoundError,
)
from mcpkit.extensions.apps import as_page, is_page
from mcpkit.faults import ArgumentsError
from mcpkit.files import read_file
from mcpkit.methods.common import (
    check_client,
    check_kind,
    check_scopes,
    is_visible,
    paginate,
    read_answers,
    run,
    settle,
    string_param,
    warn_of_null,
)
from mcpkit.protocol.content import Block, as_contents, resource_contents
from mcpkit.protocol.jsonrpc import encode, encode_value
from mcpkit.protocol.results import Result
from mcpkit.server import Server
from mcpkit.threads import Threads

_CONTENTS: Final = (Block, Path, bytes, bytearray, memoryview)
"""Of what a list is contents, and no JSON."""


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
    resource, variables, private = _find(server, context, uri)
    check_scopes(resource, context)
    check_client(resource, context)
    if context.is_retry:
        await read_answers(server, context, uri, {}, single_use=resource.single_use)
    try:
        keywords = resource.signature.bind_strings(_strings(variables))
    # A variable that is not of its type names nothing that exists.
    except ArgumentsError as error:
        raise _not_found(uri) from error
    try:
        result = await run(
            server,
            context,
            resource,
            keywords,
            f"resource {uri!r}",
            lambda value: _result(
                value, uri, resource, server.threads, private=private
            ),
        )
    except ProtocolError as error:
        raise _located(error, uri) from error.__cause__
    if result.kind != "input_required":
        return result
    return await settle(server, context, result, uri, {}, read_resource)


def _find(
    server: Server, context: Context, uri: str
) -> tuple[Resource | ResourceTemplate, Mapping[str, str | list[str]], bool]:
    """Find what serves a URI to the caller, and whether that is for the caller alone.

    Raises:
        ResourceNotFoundError: There is nothing that the caller sees.
    """
    registry = server.registry
    found = registry.find_resource(uri)
    if found is not None and found[0].visible is None:
        # What not everybody may read must not be passed on by a cache.
        return *found, bool(found[0].scopes)
    if found is not None:
        found = registry.find_resource(uri, partial(is_visible, server, context))
    if found is None:
        raise _not_found(uri)
    return *found, True


def _strings(variables: Mapping[str, str | list[str]]) -> dict[str, str]:
    """Return the variables as strings, of which a list is one as JSON."""
    return {
        name: value if isinstance(value, str) else encode(value).decode()
        for name, value in variables.items()
    }


def _not_found(uri: str) -> ProtocolError:
    return ResourceNotFoundError(data={"uri": uri})


def _located(error: ProtocolError, uri: str) -> ProtocolError:
    """Return the error of a function, which names the URI when nothing is found."""
    if error.code == RESOURCE_NOT_FOUND and error.data is UNSET:
        return ProtocolError(error.code, error.message, {"uri": uri})
    return error


def _result(
    value: Any,
    uri: str,
    resource: Resource | ResourceTemplate,
    threads: Threads,
    *,
    private: bool,
) -> Result | Coroutine[Any, Any, Result]:
    """Make a result of what the function returned, which awaits files if it has any.

    Raises:
        ResourceNotFoundError: It is `None`.
        TypeError: It is no contents.
        ValueError: It has no JSON form.
    """
    if isinstance(value, Result):
        # A copy: what the function returned may be one result for all requests.
        result = replace(check_kind(value, "resource_read", "wire", "input_required"))
    else:
        result = Result.resource_read(_items(value, uri, resource.mime_type))
    if result.ttl_ms is None:
        result.ttl_ms = resource.ttl_ms
    if private:
        result.cache_scope = "private"
    elif result.cache_scope is None:
        result.cache_scope = resource.cache_scope
    if result.kind != "resource_read":
        return result
    items = result.value["contents"]
    if any(isinstance(item, Path) for item in items):
        return _with_files(result, uri, resource, threads)
    contents = [as_contents(item, uri, resource.mime_type) for item in items]
    result.value = {"contents": _finished(contents, uri, resource)}
    return result


def _finished(
    contents: list[dict[str, Any]], uri: str, resource: Resource | ResourceTemplate
) -> list[dict[str, Any]]:
    """Return contents with what those of a page have beside themselves."""
    if not is_page(uri):
        return contents
    described = resource.wire.get("_meta", {}).get("ui")
    return [as_page(item, described) for item in contents]


def _items(value: Any, uri: str, mime_type: str | None) -> list[Any]:
    """Return what the contents are made of: the value or its items, or its JSON."""
    match value:
        case str() | Block() | bytes() | bytearray() | memoryview() | Path():
            return [value]
        case None:
            raise ResourceNotFoundError
        case list() | tuple() if any(isinstance(item, _CONTENTS) for item in value):
            return list(value)
        case _:
            encoded = encode_value(value)
            if b"null" in encoded:
                warn_of_null(f"resource {uri!r}", value)
            kind = mime_type or "application/json"
            return [resource_contents(uri, encoded.decode(), kind)]


async def _with_files(
    result: Result, uri: str, resource: Resource | ResourceTemplate, threads: Threads
) -> Result:
    """Put what the files hold in their place, read where it holds nobody up."""
    contents, mime_type = [], resource.mime_type
    for item in result.value["contents"]:
        if isinstance(item, Path):
            try:
                data, kind = await threads.run(read_file, item, mime_type)
            except FileNotFoundError as error:
                raise ResourceNotFoundError from error
            contents.append(resource_contents(uri, data, kind))
        else:
            contents.append(as_contents(item, uri, mime_type))
    result.value = {"contents": _finished(contents, uri, resource)}
    return result
