"""`completion/complete`. Spec 2026-07-28, server/utilities/completion."""

from collections.abc import Mapping, Sequence
from typing import Any

from mcpkit.context import Context
from mcpkit.methods.common import (
    check_kind,
    check_scopes,
    invalid_params,
    is_visible,
    object_param,
    run,
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
    reference, choices = _reference(server, context, object_param(params, "ref"))
    argument = object_param(params, "argument")
    name = string_param(argument, "name")
    value = string_param(argument, "value")
    settled = object_param(object_param(params, "context"), "arguments")
    for key in settled:
        string_param(settled, key)
    completion = server.registry.completions.get((reference, name))
    if completion is None:
        typed = value.casefold()
        chosen = [item for item in choices.get(name, ()) if _begins(item, typed)]
        return Result.completion(chosen)
    given = {"value": value, "arguments": settled}
    keywords = {key: given[key] for key in completion.takes}
    what = f"completion of {name!r}"
    return await run(server, context, completion, keywords, what, _result)


def _reference(
    server: Server, context: Context, reference: dict[str, Any]
) -> tuple[str, Mapping[str, Sequence[str]]]:
    """Return what is to be completed, and the choices that it has by itself."""
    registry = server.registry
    match reference.get("type"):
        case "ref/prompt":
            name = string_param(reference, "name")
            prompt = registry.prompts.get(name)
            if prompt is None or not is_visible(server, context, prompt):
                raise invalid_params(f"Unknown prompt: {shortened(name)}")
            check_scopes(prompt, context)
            return name, prompt.choices
        case "ref/resource":
            uri = string_param(reference, "uri")
            template = registry.templates.get(uri)
            resource = template or registry.resources.get(uri)
            if resource is None or not is_visible(server, context, resource):
                raise invalid_params(f"Unknown resource: {shortened(uri)}")
            check_scopes(resource, context)
            return uri, {} if template is None else template.choices
        case _:
            raise invalid_params(
                "Invalid params: ref.type must be ref/prompt or ref/resource"
            )


def _begins(choice: str, typed: str) -> bool:
    return choice.casefold().startswith(typed)


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
