"""A client of the tasks extension: it has a task begun, looks at it, and answers it."""

import asyncio
import re
from collections.abc import Mapping
from typing import Any, Final

from mcpkit import App
from mcpkit.extensions.task_wire import IDENTIFIER
from tests.calls import call

PATIENCE: Final = 20
"""Seconds after which whatever hangs gives up."""

TASKS: Final[Mapping[str, Any]] = {"extensions": {IDENTIFIER: {}}}
"""The capabilities of a client that has tasks, and can't be asked anything."""

CLIENT: Final[Mapping[str, Any]] = {
    **TASKS,
    "elicitation": {"form": {}, "url": {}},
    "sampling": {},
    "roots": {},
}
"""Those of one that has all."""

ENDED: Final = ("completed", "failed", "cancelled")

NOT_FOUND: Final = {"code": -32602, "message": "Task not found"}

_TIME: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")


async def started(
    app: App,
    name: str,
    /,
    *,
    by: Any = None,
    client: Mapping[str, Any] = CLIENT,
    **arguments: Any,
) -> str:
    """Call a tool that becomes a task, and return the id of it."""
    params: dict[str, Any] = {"name": name, "arguments": arguments}
    handle = await call(app, "tools/call", by=by, client=client, **params)
    assert handle.get("resultType") == "task", handle
    task_id: str = handle["taskId"]
    return task_id


async def look(
    app: App, task_id: str, *, by: Any = None, client: Mapping[str, Any] = CLIENT
) -> Any:
    """Return what `tasks/get` answers, without what differs each time."""
    return shown(await call(app, "tasks/get", by=by, client=client, taskId=task_id))


async def answer(
    app: App,
    task_id: str,
    answers: Any,
    *,
    by: Any = None,
    client: Mapping[str, Any] = CLIENT,
) -> Any:
    """Send answers to a task."""
    params = {"taskId": task_id, "inputResponses": answers}
    return await call(app, "tasks/update", by=by, client=client, **params)


async def cancel(app: App, task_id: str, *, by: Any = None) -> Any:
    """Cancel a task."""
    return await call(app, "tasks/cancel", by=by, client=CLIENT, taskId=task_id)


async def until(app: App, task_id: str, *states: str, by: Any = None) -> Any:
    """Return how a task stands, once it is in one of some states."""
    async with asyncio.timeout(PATIENCE):
        while True:
            record = await app.tasks.store.get(task_id)
            assert record is not None, "the task is gone"
            if record.status in states:
                return await look(app, task_id, by=by)
            await app.tasks.wait(task_id, record.revision)


async def ended(app: App, task_id: str, *, by: Any = None) -> Any:
    """Return how a task stands, once it has ended."""
    return await until(app, task_id, *ENDED, by=by)


async def came_to(app: App, name: str, /, **arguments: Any) -> Any:
    """Call a tool that becomes a task, and return how that ends."""
    return await ended(app, await started(app, name, **arguments))


def shown(task: Any) -> Any:
    """Return the state of a task without its id, its times and the usual numbers."""
    if "taskId" not in task:
        return task
    rest = {key: value for key, value in task.items() if key != "taskId"}
    for name in ("createdAt", "lastUpdatedAt"):
        assert _TIME.fullmatch(rest.pop(name)), name
    if rest["ttlMs"] == 3_600_000 and rest["pollIntervalMs"] == 1000:
        del rest["ttlMs"], rest["pollIntervalMs"]
    return rest


def completed(result: Mapping[str, Any]) -> dict[str, Any]:
    """Return how a task stands that came to a result."""
    whole = {"resultType": "complete", **result}
    return {"status": "completed", "result": whole}


def failed_with(code: int, message: str, **data: Any) -> dict[str, Any]:
    """Return how a task stands that failed with an error."""
    error = {"code": code, "message": message, **data}
    return {"status": "failed", "statusMessage": message, "error": error}


def asking(**requests: Any) -> dict[str, Any]:
    """Return how a task stands that asks."""
    return {"status": "input_required", "inputRequests": requests}
