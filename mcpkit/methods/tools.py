"""`tools/list` and `tools/call`. Spec 2026-07-28, server/tools."""

import asyncio
import inspect
from collections.abc import Mapping
from typing import Any, Final

from mcpkit.asking import PausedError
from mcpkit.components import HandlerError, Tool, abandon, leave
from mcpkit.context import Context
from mcpkit.errors import (
    AnswerError,
    InputRequiredError,
    ProtocolError,
    ToolError,
)
from mcpkit.extensions.apps import APPS
from mcpkit.extensions.task_wire import (
    IDENTIFIER as TASKS,
    asks_for_task,
    check_support,
    support_of,
)
from mcpkit.faults import ArgumentsError
from mcpkit.methods.common import (
    check_client,
    check_extension,
    check_scopes,
    is_visible,
    object_param,
    paginate,
    paused,
    read_answers,
    settle,
    string_param,
    unknown,
    warn_of_null,
)
from mcpkit.outputs import OutputError
from mcpkit.protocol.headers import check_params
from mcpkit.protocol.inputs import DECIDED
from mcpkit.protocol.results import Result
from mcpkit.server import Server, logger, printable

_UNSETTLED: Final = frozenset({"input_required", "task"})
"""The kinds of results that need more than to be sent."""


async def list_tools(server: Server, context: Context) -> Result:
    """Answer `tools/list`."""
    tools, cursor = paginate(server, context, server.registry.tools)
    has_ui = context.view is not None and APPS in context.view
    shown = [_with_ui(server, it) if has_ui else it.wire for it in tools]
    if context.revision.tasks and server.task_host is not None:
        shown = list(map(_with_support, tools, shown))
    return Result.tools(shown, cursor)


def _with_support(tool: Tool, wire: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the definition of a tool for a client of 2025-11-25."""
    support = support_of(tool)
    return wire if support is None else {**wire, "execution": {"taskSupport": support}}


def _with_ui(server: Server, tool: Tool) -> Mapping[str, Any]:
    """Return the definition of a tool for a client that shows user interfaces."""
    ui = tool.ui
    if ui is None:
        return tool.wire
    # It may be registered after the tool, or where both are included.
    found = ui.uri is None or server.registry.find_resource(ui.uri) is not None
    if not found:
        logger.warning(
            "tool %r: there is no %r to show it, and clients are not told of it: "
            "register it with @app.resource(%r)",
            tool.name,
            ui.uri,
            ui.uri,
        )
    wire = ui.wire(found=found)
    if not wire:
        return tool.wire
    return {**tool.wire, "_meta": {**tool.wire.get("_meta", {}), "ui": wire}}


async def call_tool(server: Server, context: Context) -> Result:
    """Answer `tools/call`.

    Raises:
        ProtocolError: The tool is unknown, the params are malformed, a header
            disagrees with an argument, a scope or a capability is missing, or
            the tool raised it.
    """
    tool, arguments = _find(server, context)
    if context.is_retry:
        await read_answers(
            server, context, tool.name, arguments, single_use=tool.single_use
        )
    try:
        keywords = tool.signature.bind(arguments, coerce=server.options.coerce)
        if tool.task is not None and await _becomes_task(server, context, tool):
            return await _begin_task(server, context, tool)
        value = await tool.call(
            keywords, context, server.threads, server.dependency_overrides
        )
        result = tool.returns.result(value)
        if context.cleanup is not None:
            await leave(context, context.cleanup)
    # Whatever it is ends this request alone, an exit that a validator asks for too.
    except BaseException as error:  # noqa: BLE001
        return await _stopped(server, context, tool, arguments, error)
    if result.kind in _UNSETTLED:
        return await _settled(server, context, tool, arguments, result)
    content = result.value if result.kind == "structured" else _content(result)
    if b"null" in content:
        _warn_of_null(tool, value)
    return result


def _content(result: Result) -> bytes:
    """Return the structured content of a result that has more, if it has any."""
    content: bytes = b""
    if result.kind == "raw":
        content = result.value.get("structuredContent", b"")
    return content


def _warn_of_null(tool: Tool, value: Any) -> None:
    held = value.value if isinstance(value, Result) else value
    if isinstance(value, Result) and value.kind == "raw":
        held = held["structuredContent"]
    warn_of_null(f"tool {tool.name!r}", held)


async def _becomes_task(server: Server, context: Context, tool: Tool) -> bool:
    """Whether a call becomes a task.

    Raises:
        PausedError: The client is asked before it is told.
    """
    if server.task_host is None or context.task is not None:
        return False
    if context.era == "legacy":
        return asks_for_task(context)
    if context.extension(TASKS) is None:
        return False
    if not callable(tool.task):
        return True
    try:
        wanted = tool.task(context)
        if inspect.isawaitable(wanted):
            wanted = await wanted
    finally:
        conversation = context.conversation
        if conversation is not None and conversation.asked:
            # What it does once is kept for the next round.
            await conversation.finish()
    journal = None
    if conversation is not None:
        conversation.check()
        journal = conversation.journal
    # The tool asks from its first question on.
    context.conversation = server.converse(context, journal, first=first_question(tool))
    return bool(wanted)


def first_question(tool: Tool | None) -> int:
    """Return the number of a tool's first question.

    Those before it are of the function which tells whether a call becomes a task.
    """
    return DECIDED if tool is not None and callable(tool.task) else 0


async def _begin_task(server: Server, context: Context, tool: Tool) -> Result:
    assert server.task_host is not None  # noqa: S101  # or nothing becomes a task
    conversation = context.conversation
    journal = None if conversation is None else conversation.journal
    return await server.task_host.begin(context, tool, journal)


async def _stopped(
    server: Server,
    context: Context,
    tool: Tool,
    arguments: dict[str, Any],
    error: BaseException,
) -> Result:
    """Return the result of a call that did not come to its end.

    Raises:
        BaseException: What ends the request as a whole.
    """
    if isinstance(error, (ProtocolError, asyncio.CancelledError, GeneratorExit)):
        try:
            raise error
        finally:
            # Its traceback holds this frame, which would hold it.
            del error
    if isinstance(error, (InputRequiredError, PausedError)):
        return await _settled(server, context, tool, arguments, paused(context))
    if server.task_host is not None and context.task is None and asks_for_task(context):
        # A client that asks for a task is sent one: that the arguments do not fit is
        # what comes of it.
        return await _begin_task(server, context, tool)
    return await _failed(server, context, tool, error)


async def _settled(
    server: Server,
    context: Context,
    tool: Tool,
    arguments: dict[str, Any],
    result: Result,
) -> Result:
    try:
        return await settle(server, context, result, tool.name, arguments, call_tool)
    except AnswerError as error:
        return await _failed(server, context, tool, error)


def _find(server: Server, context: Context) -> tuple[Tool, dict[str, Any]]:
    """Find the tool of a call, and check what may be known before it runs."""
    params = context.params
    name = string_param(params, "name")
    arguments = object_param(params, "arguments")
    tools = server.registry.tools
    tool = tools.get(name)
    if tool is None or not (tool.visible is None or is_visible(server, context, tool)):
        raise unknown(server, context, "tool", name, tools)
    if tool.headers and context.headers is not None and context.era == "modern":
        check_params(context.headers, tool.headers, arguments)
    if tool.scopes:
        check_scopes(tool, context)
    if tool.needs:
        check_client(tool, context)
    if server.task_host is not None:
        _check_tasks(context, tool)
    return tool, arguments


def _check_tasks(context: Context, tool: Tool) -> None:
    """Refuse a client that may not call a tool so, with a task or without.

    Raises:
        ProtocolError: -32021, it has to have tasks; -32601, the tool has none, or is
            not called without.
    """
    if context.era == "legacy":
        check_support(context, tool)
    elif tool.task == "required":
        check_extension(context, TASKS)


async def _failed(
    server: Server, context: Context, tool: Tool, error: BaseException
) -> Result:
    """Return what the model reads of a call that failed."""
    match error:
        case ArgumentsError():
            return Result.error(str(error))
        case ToolError():
            text = _text(error)
            if text is not None:
                return Result.error(text, cause=error)
        case HandlerError():
            error = error.__cause__ or error
        case OutputError():
            await abandon(context, error)
            cause = printable(error)
            logger.error("tool %r breaks its output schema: %s", tool.name, cause)
            fault = "returned a value that does not match its output schema"
            return _told(server, tool, fault, error)
        # The value has no JSON form, or a validator or a serialiser of the
        # developer's raised something.
        case _:
            await abandon(context, error)
    server.fault(context, f"tool {tool.name!r} failed", error)
    return _told(server, tool, "failed", error)


def _told(server: Server, tool: Tool, fault: str, cause: BaseException) -> Result:
    text = f"Tool {tool.name} {fault}"
    if server.options.debug:
        told = _text(cause)
        name = type(cause).__name__
        text = f"{text}: {name}" if told is None else f"{text}: {name}: {told}"
    return Result.error(text, cause=cause)


def _text(error: BaseException) -> str | None:
    try:
        return str(error)
    # A broken `__str__` must not replace the error that it describes.
    except Exception:  # noqa: BLE001
        return None
