"""`tools/list` and `tools/call`. Spec 2026-07-28, server/tools."""

from typing import Any

from mcpkit.components import HandlerError, Tool
from mcpkit.context import Context
from mcpkit.errors import ToolError
from mcpkit.faults import ArgumentsError
from mcpkit.methods.common import (
    ask,
    check_scopes,
    invalid_params,
    object_param,
    paginate,
    read_answers,
    shortened,
    string_param,
    warn_of_null,
)
from mcpkit.protocol.headers import check_params
from mcpkit.protocol.results import Result
from mcpkit.registry import suggestions
from mcpkit.returns import OutputError
from mcpkit.server import Server, logger


async def list_tools(server: Server, context: Context) -> Result:
    """Answer `tools/list`."""
    tools, cursor = paginate(server, context, server.registry.tools)
    return Result.tools([tool.wire for tool in tools], cursor)


async def call_tool(server: Server, context: Context) -> Result:
    """Answer `tools/call`.

    Raises:
        ProtocolError: The tool is unknown, the params are malformed, a header
            disagrees with an argument, a scope or a capability is missing, or
            the tool raised it.
    """
    tool, arguments = _find(server, context)
    try:
        keywords = tool.signature.bind(arguments, coerce=server.options.coerce)
        value = await tool.call(keywords, context, server.threads)
        result = tool.returns.result(value)
    except ArgumentsError as error:
        return Result.error(str(error))
    except ToolError as error:
        return Result.error(str(error), cause=error)
    except OutputError as error:
        logger.error("tool %r breaks its output schema: %s", tool.name, error)
        return Result.error(
            f"Tool {tool.name} returned a value that does not match its output schema",
            cause=error,
        )
    except HandlerError as error:
        return _failed(server, context, tool, error.__cause__ or error)
    # The value has no JSON form.
    except (ValueError, RecursionError) as error:
        return _failed(server, context, tool, error)
    if result.kind == "input_required":
        return ask(server, context, result, tool.name, arguments)
    if result.kind == "structured" and b"null" in result.value:
        held = value.value if isinstance(value, Result) else value
        warn_of_null(f"tool {tool.name!r}", held)
    return result


def _find(server: Server, context: Context) -> tuple[Tool, dict[str, Any]]:
    """Find the tool of a call, and check what may be known before it runs."""
    params = context.params
    name = string_param(params, "name")
    arguments = object_param(params, "arguments")
    tool = server.registry.tools.get(name)
    if tool is None:
        similar = suggestions(name, server.registry.tools)
        data = {"suggestions": similar} if similar else {}
        raise invalid_params(f"Unknown tool: {shortened(name)}", **data)
    if tool.headers and context.headers is not None and context.era == "modern":
        check_params(context.headers, tool.headers, arguments)
    if tool.scopes:
        check_scopes(tool, context)
    if "inputResponses" in params or "requestState" in params:
        read_answers(server, context, name, arguments)
    return tool, arguments


def _failed(
    server: Server, context: Context, tool: Tool, cause: BaseException
) -> Result:
    server.fault(context, f"tool {tool.name!r} failed", cause)
    text = f"Tool {tool.name} failed"
    if server.options.debug:
        text = f"{text}: {_describe(cause)}"
    return Result.error(text, cause=cause)


def _describe(error: BaseException) -> str:
    try:
        return f"{type(error).__name__}: {error}"
    # A broken `__str__` must not replace the error that it describes.
    except Exception:  # noqa: BLE001
        return type(error).__name__
