"""Tasks that are done elsewhere: created by a handler, completed by their id."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from mcpkit import App, Context, ProtocolError, Result, ToolError
from mcpkit.extensions.tasks import Tasks
from mcpkit.outputs import OutputError
from mcpkit.stores.sqlite import SQLiteTaskStore
from tests.calls import V_2025_06_18, call, failed, structured, text
from tests.extensions.tasking import (
    CLIENT,
    NOT_FOUND,
    PATIENCE,
    TASKS,
    cancel,
    completed,
    ended,
    failed_with,
    look,
    shown,
    started,
)

pytestmark = pytest.mark.anyio

INTERNAL = {"code": -32603, "message": "Internal error"}


def jobs(**options: Any) -> App:
    """Make an app whose tool `work` is done elsewhere."""
    app = App("tests", **options)

    @app.tool
    async def work(ctx: Context) -> Result[int]:
        """Have it counted elsewhere."""
        return await app.tasks.create(ctx, message="It waits its turn.")

    return app


async def test_a_handler_creates_a_task_and_something_else_completes_it() -> None:
    """Spec ext-tasks, tasks: Task Creation."""
    app = jobs()
    handle = await call(app, "tools/call", client=TASKS, name="work")
    waiting = {"status": "working", "statusMessage": "It waits its turn."}
    assert shown(handle) == {"resultType": "task", **waiting}
    task_id = handle["taskId"]
    assert await look(app, task_id) == waiting
    await app.tasks.update(task_id, "Counting.")
    assert await look(app, task_id) == {**waiting, "statusMessage": "Counting."}
    await app.tasks.complete(task_id, 3)
    assert await look(app, task_id) == completed(structured("3"))


async def test_a_task_says_when_its_client_saw_it_change() -> None:
    """Spec ext-tasks, tasks: Tasks."""
    app = jobs()
    task_id = (await call(app, "tools/call", client=TASKS, name="work"))["taskId"]
    made = await app.tasks.store.get(task_id)
    assert made is not None
    async with asyncio.timeout(PATIENCE):
        # Clocks of some machines stand still for a while.
        while time.time() == made.updated:
            await asyncio.sleep(0)
    await app.tasks.update(task_id, "Counting.")
    changed = await app.tasks.store.get(task_id)
    assert changed is not None
    assert changed.created == made.updated < changed.updated <= time.time()


FAILURES = [
    ("a text", "It rains.", completed(failed("It rains."))),
    ("an error of the tool", ToolError("It rains."), completed(failed("It rains."))),
    ("a fault", ValueError("secret"), completed(failed("Tool work failed"))),
    (
        "an error of the request",
        ProtocolError(-32000, "Closed.", {"until": 9}),
        failed_with(-32000, "Closed.", data={"until": 9}),
    ),
    (
        "a code that is not sent",
        ProtocolError(-32050, "Odd."),
        failed_with(-32603, "Internal error"),
    ),
]


@pytest.mark.parametrize(
    ("error", "outcome"), [pytest.param(*row, id=name) for name, *row in FAILURES]
)
async def test_a_task_fails_elsewhere_as_its_tool_would_have_failed(
    error: Exception | str, outcome: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """Spec ext-tasks, tasks: Task Execution Errors."""
    app = jobs()
    task_id = await started(app, "work")
    with caplog.at_level(logging.ERROR):
        await app.tasks.fail(task_id, error)
    assert await look(app, task_id) == outcome
    assert ("secret" in caplog.text) is isinstance(error, ValueError)


VALUES = [
    ("another type", "many", OutputError),
    ("a question", Result.input_required(request_state="a"), ValueError),
    ("another task", Result.task({"taskId": "1"}), ValueError),
]


@pytest.mark.parametrize(
    ("value", "error"), [pytest.param(*row, id=name) for name, *row in VALUES]
)
async def test_a_task_is_not_completed_with_what_its_tool_may_not_return(
    value: Any, error: type[Exception]
) -> None:
    """Ours. Whoever did it may try again."""
    app = jobs()
    task_id = await started(app, "work")
    with pytest.raises(error):
        await app.tasks.complete(task_id, value)
    await app.tasks.complete(task_id, 3)
    assert await look(app, task_id) == completed(structured("3"))


Change = Callable[[Tasks, str], Awaitable[None]]
CHANGES: dict[str, Change] = {
    "complete": lambda tasks, task_id: tasks.complete(task_id, 3),
    "fail": lambda tasks, task_id: tasks.fail(task_id, "It rains."),
    "update": lambda tasks, task_id: tasks.update(task_id, "Counting."),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
async def test_what_is_not_under_way_elsewhere_can_not_be_changed(
    change: Change,
) -> None:
    """Ours: an unknown id, a task that has ended, one that a worker runs."""
    app = jobs()
    go = asyncio.Event()

    @app.tool(task="optional")
    async def here() -> int:
        """Count here."""
        await go.wait()
        return 1

    cancelled = await started(app, "work")
    assert await cancel(app, cancelled) == {}
    assert await look(app, cancelled) == {"status": "cancelled"}
    over = await started(app, "work")
    await app.tasks.complete(over, 1)
    running = await started(app, "here")
    for task_id in ("unknown", cancelled, over, running):
        with pytest.raises(KeyError):
            await change(app.tasks, task_id)
    go.set()
    assert await ended(app, running) == completed(structured("1"))


async def test_another_thread_completes_a_task() -> None:
    """Ours: in an event loop of its own."""
    app = jobs()
    task_id = await started(app, "work")

    def job() -> None:
        asyncio.run(app.tasks.complete(task_id, 3))

    await asyncio.to_thread(job)
    assert await ended(app, task_id) == completed(structured("3"))


async def test_another_app_completes_a_task_of_the_same_store(tmp_path: Any) -> None:
    """Ours: as another process does."""
    here, there = (
        jobs(tasks=Tasks(SQLiteTaskStore(tmp_path / "tasks.db"))) for _ in range(2)
    )
    task_id = await started(here, "work")
    await there.tasks.complete(task_id, 3)
    assert await look(here, task_id) == completed(structured("3"))
    for app in (here, there):
        await app.tasks.stop()


async def test_a_handle_is_for_clients_that_have_tasks() -> None:
    """Spec ext-tasks, tasks: Capability Negotiation."""
    app = jobs()
    told = await call(app, "tools/call", name="work")
    assert told["code"] == -32021
    assert await app.tasks.store.count(None) == 0


async def test_older_clients_have_no_such_handles() -> None:
    """Ours."""
    app = jobs()
    told = await call(app, "tools/call", at=V_2025_06_18, name="work")
    fault = "Tasks require protocol 2026-07-28"
    assert told == {"code": -32603, "message": fault}


NO_HANDLES: list[tuple[str, dict[str, Any], dict[str, Any], Any]] = [
    ("an unknown id", {"taskId": "unknown"}, {}, INTERNAL),
    ("no id", {}, {}, INTERNAL),
    ("an id that is none", {"taskId": 1}, {}, INTERNAL),
]


@pytest.mark.parametrize(
    ("handle", "options", "outcome"),
    [pytest.param(*row, id=name) for name, *row in NO_HANDLES],
)
async def test_a_handle_is_of_a_task_that_is_there(
    handle: Any, options: Any, outcome: Any
) -> None:
    """Ours."""
    app = jobs()

    @app.tool(**options)
    def made_up() -> Result:
        """Make one up."""
        return Result.task(handle)

    assert await call(app, "tools/call", client=TASKS, name="made_up") == outcome


async def test_a_handle_of_another_caller_is_none() -> None:
    """Ours."""
    app = jobs()
    task_id = await started(app, "work", by="ada")

    @app.tool
    def stolen() -> Result:
        """Return what is not the caller's."""
        return Result.task({"taskId": task_id})

    told = await call(app, "tools/call", by="ben", client=TASKS, name="stolen")
    assert told == INTERNAL
    # Its own it may be given again.
    handle = await call(app, "tools/call", by="ada", client=TASKS, name="stolen")
    assert handle["taskId"] == task_id


async def test_only_a_call_of_a_tool_has_a_task_that_is_done_elsewhere() -> None:
    """Ours."""
    app = jobs()

    @app.prompt
    async def ask(ctx: Context) -> Any:
        """Ask."""
        return await app.tasks.create(ctx)

    @app.prompt
    def made() -> Any:
        """Return a handle."""
        return Result.task({"taskId": "1"})

    @app.tool(task="optional")
    async def within(ctx: Context) -> Result:
        """Be a task already."""
        return await app.tasks.create(ctx)

    for name in ("ask", "made"):
        assert await call(app, "prompts/get", client=TASKS, name=name) == INTERNAL
    told = await ended(app, await started(app, "within"))
    assert told == completed(failed("Tool within failed"))


async def test_tasks_elsewhere_are_counted_for_their_caller() -> None:
    """Ours."""
    app = jobs(tasks=Tasks(max_per_caller=1))
    task_id = await started(app, "work", by="ada")
    told = await call(app, "tools/call", by="ada", client=CLIENT, name="work")
    assert told == {"code": -32000, "message": "Too many tasks"}
    await app.tasks.complete(task_id, 1)
    await started(app, "work", by="ada")


async def test_a_stranger_does_not_know_of_a_task_elsewhere() -> None:
    """Spec ext-tasks, tasks: Security Considerations."""
    app = jobs()
    task_id = await started(app, "work", by="ada")
    assert await look(app, task_id, by="ben") == NOT_FOUND


async def test_a_tool_without_an_annotation_is_completed_with_anything() -> None:
    """Ours."""
    app = App("tests")

    @app.tool
    async def work(ctx: Context) -> Result:
        """Have it done elsewhere."""
        return await app.tasks.create(ctx)

    for value, result in (("Done.", text("Done.")), ({"a": 1}, structured('{"a":1}'))):
        task_id = await started(app, "work")
        await app.tasks.complete(task_id, value)
        assert await look(app, task_id) == completed(result)


async def test_callers_who_are_nobody_in_particular_have_a_bound_together() -> None:
    """Ours: nobody runs these tasks here, and each is kept for its time."""
    app = jobs(tasks=Tasks(max_running=2))
    for _ in range(2):
        await call(app, "tools/call", client=TASKS, name="work")
    refused = await call(app, "tools/call", client=TASKS, name="work")
    assert refused == {"code": -32000, "message": "Too many tasks"}


async def test_what_came_of_a_task_can_be_looked_at_when_its_time_is_over() -> None:
    """Spec ext-tasks, tasks: Tasks, where the value of ttlMs may change."""
    app = jobs(tasks=Tasks(ttl=0.2, poll=30))
    task_id = (await call(app, "tools/call", client=TASKS, name="work"))["taskId"]
    await app.tasks.complete(task_id, 3)
    record = await app.tasks.store.get(task_id)
    assert record is not None
    assert record.ttl == pytest.approx(record.updated - record.created + 60)
