"""`prompts/list` and `prompts/get`. Spec 2026-07-28, server/prompts."""

from typing import Any

from mcpkit.components import Prompt
from mcpkit.context import Context
from mcpkit.faults import ArgumentsError
from mcpkit.methods.common import (
    check_client,
    check_kind,
    check_scopes,
    invalid_params,
    is_visible,
    object_param,
    paginate,
    read_answers,
    run,
    settle,
    shortened,
    string_param,
    unknown,
)
from mcpkit.protocol.content import Block, Message
from mcpkit.protocol.results import Result
from mcpkit.server import Server


async def list_prompts(server: Server, context: Context) -> Result:
    """Answer `prompts/list`."""
    prompts, cursor = paginate(server, context, server.registry.prompts)
    return Result.prompts([prompt.wire for prompt in prompts], cursor)


async def get_prompt(server: Server, context: Context) -> Result:
    """Answer `prompts/get`.

    Raises:
        ProtocolError: The prompt is unknown, its arguments are wrong, a scope
            or a capability is missing, the function raised it, or it failed.
    """
    params = context.params
    name = string_param(params, "name")
    arguments = object_param(params, "arguments")
    prompts = server.registry.prompts
    prompt = prompts.get(name)
    if prompt is None or not is_visible(server, context, prompt):
        raise unknown(server, context, "prompt", name, prompts)
    check_scopes(prompt, context)
    check_client(prompt, context)
    if context.is_retry:
        await read_answers(
            server, context, name, arguments, single_use=prompt.single_use
        )
    keywords = _bind(prompt, arguments)
    result = await run(
        server,
        context,
        prompt,
        keywords,
        f"prompt {name!r}",
        lambda value: _result(value, prompt),
    )
    if result.kind != "input_required":
        return result
    return await settle(server, context, result, name, arguments, get_prompt)


def _bind(prompt: Prompt, arguments: dict[str, Any]) -> dict[str, Any]:
    for argument, value in arguments.items():
        if not isinstance(value, str):
            raise invalid_params(
                f"Invalid params: the argument {shortened(argument)} must be a string"
            )
    missing = [key for key in prompt.signature.required if key not in arguments]
    if missing:
        raise invalid_params(f"Missing required arguments: {', '.join(missing)}")
    try:
        return prompt.signature.bind_strings(arguments)
    except ArgumentsError as error:
        raise invalid_params(f"Invalid arguments: {error}") from error


def _result(value: Any, prompt: Prompt) -> Result:
    if isinstance(value, Result):
        return check_kind(value, "prompt_get", "wire", "input_required")
    several = value if isinstance(value, (list, tuple)) else [value]
    messages = [_message(item) for item in several]
    return Result.prompt_get(messages, description=prompt.description)


def _message(value: Any) -> Message:
    match value:
        case Message(role="user" | "assistant"):
            return value
        case str() | Block() | {"type": str()}:
            return Message(value)
        case {"role": "user" | "assistant" as role, "content": content}:
            return Message(content, role=role)
        case _:
            raise TypeError(
                "a prompt returns texts, content blocks and messages, not "
                f"{type(value).__name__}"
            )
