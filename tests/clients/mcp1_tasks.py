"""The official 1.x client has tasks, in a process of its own environment.

    .venv-mcp1/bin/python -m tests.clients.mcp1_tasks URL

prints what it saw, as JSON.
"""

import asyncio
import json
import sys
from typing import Any

from mcp import types
from mcp.client import session as sessions, streamable_http
from mcp.shared import exceptions

from tests.clients.answers import ANSWERS, PLACE


async def fill_in(
    context: Any,  # noqa: ARG001  # the client passes it
    params: Any,
) -> Any:
    """Answer as the user does."""
    about = (params.meta.model_extra or {})["io.modelcontextprotocol/related-task"]
    ASKED.append((about["taskId"], params.message))
    return types.ElicitResult(action="accept", content=ANSWERS[params.message])


ASKED: list[tuple[str, str]] = []


async def main(url: str) -> None:
    """Begin tasks, wait for them, and print what came of it."""
    # Checked against the 2.x release, which has no tasks of 2025-11-25.
    library: Any = streamable_http
    made: Any = types
    session: Any = sessions.ClientSession
    error: Any = exceptions
    async with (
        library.streamable_http_client(url) as (receive, send, _),
        session(receive, send, elicitation_callback=fill_in) as client,
    ):
        opened = await client.initialize()
        tasks = client.experimental
        listed = (await client.list_tools()).tools
        begun = await tasks.call_tool_as_task("prepare", PLACE, ttl=60_000)
        task_id = begun.task.taskId
        states = []
        async for state in tasks.poll_task(task_id):
            states.append((state.status, state.statusMessage))
            if state.status == "input_required":
                break
        result = await tasks.get_task_result(task_id, made.CallToolResult)
        counted = await tasks.call_tool_as_task("count", {"number": 3})
        numbers = await tasks.get_task_result(counted.task.taskId, made.CallToolResult)
        try:
            await tasks.cancel_task(task_id)
        except error.McpError as refused:
            fault = refused.error.message
        waits = await tasks.call_tool_as_task("prepare", {"place": "nowhere"})
        cancelled = await tasks.cancel_task(waits.task.taskId)
        all_of_them = (await tasks.list_tasks()).tasks
        seen = {
            "declared": opened.capabilities.tasks.model_dump(exclude_none=True),
            "support": {it.name: it.execution.taskSupport for it in listed},
            "begun": (begun.task.status, begun.task.ttl),
            "last state": states[-1],
            "asked": [message for about, message in ASKED if about == task_id],
            "result": result.content[0].text,
            "numbers": numbers.structuredContent,
            "refused": fault,
            "cancelled": cancelled.status,
            "listed": [it.status for it in all_of_them],
        }
    sys.stdout.write(json.dumps(seen))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
