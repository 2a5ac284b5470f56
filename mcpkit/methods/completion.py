"""`completion/complete`. Spec 2026-07-28, server/utilities/completion."""

from collections.abc import Sequence
from typing import Any

from mcpkit.components import HandlerError
from mcpkit.context import Context
from mcpkit.errors import ProtocolError
from mcpkit.methods.common import (
    check_kind,
    check_scopes,
    internal_error,
    invalid_params,
    object_param,
    shortened,
    string_param,
)
from mcpkit.protocol.results import Result
from mcpkit.server import Server


async def complete(server: Server, context: Context) -> Result:
    """Answer `completion/complete`.

    Raises:
        ProtocolError: What is to be completed is unknown, the params are
            malformed, the function raised it, or it failed.
    """
    params = context.params
    reference = _reference(server, context, object_param(params, "ref"))
    argument = object_param(params, "argument")
    name = string_param(argument, "name")
    value = string_param(argument, "value")
    settled = object_param(object_param(params, "context"), "arguments")
    completion = server.registry.completions.get((reference, name))
    if completion is None:
        return Result.completion([])
    given = {"value": value, "arguments": settled}
    keywords = {key: given[key] for key in completion.takes}
    try:
        values = await completion.call(keywords, context, server.threads)
        return _result(values)
    except HandlerError as error:
        cause = error.__cause__ or error
        server.fault(context, f"completion of {name!r} failed", cause)
        raise internal_error() from error
    except ProtocolError:
        raise
    # What the function returned are no strings, or it raised a ToolError.
    except Exception as error:
        server.fault(context, f"completion of {name!r} failed", error)
        raise internal_error() from error


def _reference(server: Server, context: Context, reference: dict[str, Any]) -> str:
    registry = server.registry
    match reference.get("type"):
        case "ref/prompt":
            name = string_param(reference, "name")
            prompt = registry.prompts.get(name)
            if prompt is None:
                raise invalid_params(f"Unknown prompt: {shortened(name)}")
            check_scopes(prompt, context)
            return name
        case "ref/resource":
            uri = string_param(reference, "uri")
            resource = registry.templates.get(uri) or registry.resources.get(uri)
            if resource is None:
                raise invalid_params(f"Unknown resource: {shortened(uri)}")
            check_scopes(resource, context)
            return uri
        case _:
            raise invalid_params(
                "Invalid params: ref.type must be ref/prompt or ref/resource"
            )


def _result(values: Any) -> Result:
    if isinstance(values, Result):
        return check_kind(values, "completion", "wire")
    if isinstance(values, str) or not isinstance(values, Sequence):
        raise TypeError(
            f"a completion returns a list of strings, not {type(values).__name__}"
        )
    if not all(isinstance(value, str) for value in values):
        raise TypeError("a completion returns a list of strings")
    return Result.completion(values)
