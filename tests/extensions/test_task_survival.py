"""Tasks outlive their worker: one that is killed, stopped, held up, or asked to end.

Spec ext-tasks, tasks: Task Creation; what becomes of a task whose worker is gone is
ours.
"""

import asyncio
import gc
import os
import signal
import sqlite3
import time
import weakref
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Final

import pytest
from anyio import wait_all_tasks_blocked
from fastapi import Depends, Request
from pydantic import BaseModel

from mcpkit import App, Context
from mcpkit.backends.base import Backend
from mcpkit.backends.memory import MemoryBackend
from mcpkit.errors import SetupError
from mcpkit.extensions import tasks as extension
from mcpkit.extensions.tasks import Tasks
from mcpkit.protocol.inputs import Journal
from mcpkit.stores.base import TERMINAL, TaskRecord, TaskStore
from mcpkit.stores.memory import MemoryTaskStore
from mcpkit.stores.sqlite import SQLiteTaskStore
from tests.calls import call
from tests.http.client import headers_of, modern, post
from tests.http.streaming import Stream, acknowledged, lifespan, stream
from tests.soak.workers import CLIENT, ENDED, Cluster, Worker, cluster

PATIENCE: Final = 20
"""Seconds after which what hangs gives up."""

SOON: Final = 5.0
"""Seconds within which a worker sees what another has written, twice over."""

NEVER: Final = 3600.0

INTERRUPTED: Final = {"code": -32603, "message": "The server was interrupted"}
SHUT_DOWN: Final = {"code": -32603, "message": "The server was shut down"}


# Processes


async def test_a_worker_that_was_held_up_writes_nothing_and_stops(
    tmp_path: Path,
) -> None:
    async with cluster(tmp_path, lease=1) as workers:
        first, second = await asyncio.gather(workers.started(), workers.started())
        task_id = await workers.begin(first, "errand", name="it", ask_at=1)
        await workers.until(first, task_id, "input_required")
        hold_up(first, workers)
        held = (await kept(workers, task_id)).worker

        async def is_taken_over() -> bool:
            return (await kept(workers, task_id)).worker != held

        await until(is_taken_over)
        # What the first has asked stands, and can be answered.
        asking = await workers.until(second, task_id, "input_required")
        await workers.answer(second, asking, "red")
        ended = await workers.until(second, task_id, *ENDED)
        first.process.send_signal(signal.SIGCONT)
        await until(lambda: f"it was stopped in {first.pid}" in workers.said())
        assert await workers.get(first, task_id) == ended
        assert came_to(ended) == {"steps": STEPS, "colour": "red"}
        done = [("step-0", first), ("step-1", second), ("step-2", second)]
        assert workers.noted() == [["it", step, str(it.pid)] for step, it in done]


async def test_what_was_interrupted_in_the_middle_is_not_done_again(
    tmp_path: Path,
) -> None:
    """The worker does it to its end, once it goes on, and can't say so any more."""
    async with cluster(tmp_path, lease=1) as workers:
        first, second = await asyncio.gather(workers.started(), workers.started())
        task_id = await workers.begin(first, "errand", name="it", effect=1)
        await until(lambda: workers.steps("it") == ["step-0"])
        hold_up(first, workers)
        ended = await workers.until(second, task_id, *ENDED)
        message = "The server was interrupted in the middle of 'step-0'"
        assert ended["error"] == {"code": -32603, "message": message}
        first.process.send_signal(signal.SIGCONT)
        await until(lambda: f"it was stopped in {first.pid}" in workers.said())
        assert await workers.get(first, task_id) == ended
        assert workers.steps("it") == ["step-0"]


@pytest.mark.parametrize(
    "options",
    [
        pytest.param([], id="with a lifespan"),
        pytest.param(["--no-lifespan"], id="from its first request on"),
    ],
)
async def test_a_restart_goes_on_with_what_is_resumable_before_the_lease_is_over(
    tmp_path: Path, options: list[str]
) -> None:
    async with cluster(tmp_path, lease=NEVER) as workers:
        old = await workers.started()
        errand = await workers.begin(old, "errand", name="errand", pause=0.5)
        chore = await workers.begin(old, "chore", name="chore", pause=0.5)
        await until(lambda: len(workers.noted()) >= 2)
        assert await old.terminate() in (0, -signal.SIGTERM)
        assert (await kept(workers, chore)).error == SHUT_DOWN
        new = await workers.started(*options)
        if options:
            await workers.send(new, "server/discover")
        # Nobody asks for the tasks meanwhile.
        await until(lambda: workers.steps("errand") == STEPS)
        ended = await workers.until(new, errand, *ENDED)
        assert came_to(ended) == {"steps": STEPS, "colour": None}
        assert (await workers.get(new, chore))["error"] == SHUT_DOWN
        assert len(workers.steps("chore")) < len(STEPS)


async def test_what_a_worker_does_once_is_done_before_it_ends(tmp_path: Path) -> None:
    async with cluster(tmp_path, lease=NEVER) as workers:
        old = await workers.started()
        task_id = await workers.begin(old, "errand", name="it", effect=1, pause=0)
        await until(lambda: workers.steps("it") == ["step-0"])
        assert await old.terminate() in (0, -signal.SIGTERM)
        new = await workers.started()
        ended = await workers.until(new, task_id, *ENDED)
        assert came_to(ended) == {"steps": STEPS, "colour": None}
        done = [("step-0", old), ("step-1", new), ("step-2", new)]
        assert workers.noted() == [["it", step, str(it.pid)] for step, it in done]


STEPS: Final = ["step-0", "step-1", "step-2"]


def hold_up(worker: Worker, workers: Cluster) -> None:
    """Stop a process, at a moment when it does not write to the store."""
    with closing(sqlite3.connect(workers.store, isolation_level=None)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        os.kill(worker.pid, signal.SIGSTOP)
        connection.execute("ROLLBACK")


async def kept(workers: Cluster, task_id: str) -> TaskRecord:
    """Return a task as the store has it."""
    with closing(SQLiteTaskStore(workers.store)) as store:
        found = await store.get(task_id)
    assert found is not None
    return found


def came_to(task: Mapping[str, Any]) -> Any:
    """Return what the tool of a completed task returned."""
    assert task["status"] == "completed", task
    return task["result"]["structuredContent"]


async def until(holds: Callable[[], bool | Awaitable[bool]]) -> None:
    """Wait until something holds."""
    async with asyncio.timeout(PATIENCE):
        while True:
            found = holds()
            if found if isinstance(found, bool) else await found:
                return
            await asyncio.sleep(0.01)


# Workers in this process


class User(BaseModel):
    """Who calls."""

    id: str
    scopes: list[str]


def user(_: Request) -> User:
    return User(id="ada", scopes=["books"])


def worker(store: TaskStore, backend: Backend | None = None, **options: Any) -> App:
    """Return an app that stands for one of several workers."""
    tasks = Tasks(store, **{"lease": NEVER, **options})
    return App("bookshop", backend=backend, principal=user, tasks=tasks)


def waiting(app: App) -> asyncio.Event:
    """Have a tool that waits for ever, and return what tells that it does."""
    begun = asyncio.Event()

    @app.tool(task="required", resumable=True)
    async def errand(city: str = "Oslo") -> str:
        begun.set()
        await asyncio.Event().wait()
        return city

    return begun


async def begin(app: App, **arguments: Any) -> str:
    """Call the tool over HTTP, and return the id of its task."""
    params = {"name": "errand", "arguments": arguments}
    request = modern("tools/call", params, capabilities=CLIENT)
    task_id: str = (await post(app, request, headers_of(request))).json()["result"][
        "taskId"
    ]
    return task_id


async def left(store: TaskStore, **arguments: Any) -> str:
    """Return a task that a worker has begun, and left when it ended."""
    app = worker(store)
    begun = waiting(app)
    async with lifespan(app):
        task_id = await begin(app, **arguments)
        await begun.wait()
    return task_id


async def ended(store: TaskStore, task_id: str) -> TaskRecord:
    """Return a task once it has ended."""
    async with asyncio.timeout(PATIENCE):
        while True:
            record = await store.get(task_id)
            assert record is not None
            if record.status in TERMINAL:
                return record
            await asyncio.sleep(0.001)


async def test_a_task_is_run_again_by_an_app_of_the_same_name_alone() -> None:
    """Ours: where two apps share a store, a tool of the same name is another one."""
    store = MemoryTaskStore()
    task_id = await left(store, city="Oslo")
    mine = await store.get(task_id)
    assert mine is not None
    # Looked at after it, since it was left later.
    own = {**mine.request, "app": "library"}
    await store.add(replace(mine, task_id="own", request=own, lease=1.0))
    other = App("library", tasks=Tasks(store, lease=NEVER))

    @other.tool(name="errand", task="required", resumable=True)
    async def other_errand(city: str) -> str:
        return f"To {city}!"

    async with lifespan(other):
        await ended(store, "own")
    assert await store.get(task_id) == mine
    app = worker(store)

    @app.tool(task="required", resumable=True)
    async def errand(city: str) -> str:
        return f"In {city}."

    async with lifespan(app):
        record = await ended(store, task_id)
    assert record.result is not None
    assert record.result["content"] == [{"type": "text", "text": "In Oslo."}]


async def test_a_task_that_is_run_again_has_its_request_without_http() -> None:
    store = MemoryTaskStore()
    task_id = await left(store, city="Oslo")
    app = worker(store)

    @app.tool(name="errand", task="required", resumable=True)
    async def look(city: str, ctx: Context) -> dict[str, Any]:
        with pytest.raises(RuntimeError, match="did not come over HTTP"):
            _ = ctx.request
        await ctx.progress(1)
        await ctx.log("info", "here")
        return {
            "city": city,
            "principal": ctx.principal_id,
            "scopes": sorted(ctx.scopes),
            "arguments": ctx.params["arguments"],
            "capabilities": ctx.client_capabilities,
            "version": ctx.revision.version,
            "http": [ctx.session, ctx.headers, ctx.scope, ctx.channel],
            "is_cancelled": ctx.cancelled,
        }

    async with lifespan(app):
        record = await ended(store, task_id)
    assert record.result is not None
    assert record.result["structuredContent"] == {
        "city": "Oslo",
        "principal": "ada",
        "scopes": ["books"],
        "arguments": {"city": "Oslo"},
        "capabilities": CLIENT,
        "version": "2026-07-28",
        "http": [None] * 4,
        "is_cancelled": False,
    }


def of_request(request: Request) -> str:
    raise NotImplementedError


def needs_request(app: App) -> None:
    @app.tool(task="required", resumable=True)
    async def errand(path: Annotated[str, Depends(of_request)]) -> None:
        raise NotImplementedError


def needs_scope(app: App) -> None:
    @app.tool(task="required", resumable=True, scopes=["orders"])
    async def errand() -> None:
        raise NotImplementedError


def is_hidden(app: App) -> None:
    @app.tool(task="required", resumable=True, visible=lambda _: False)
    async def errand() -> None:
        raise NotImplementedError


def knows_the_principal(app: App) -> None:
    # An attribute of the principal that the host made, and that is not kept.
    @app.tool(task="required", resumable=True, visible=lambda ctx: ctx.principal.is_in)
    async def errand() -> None:
        raise NotImplementedError


def takes_another_argument(app: App) -> None:
    @app.tool(task="required", resumable=True)
    async def errand(city: int) -> None:
        raise NotImplementedError


def is_not_resumable(app: App) -> None:
    @app.tool(task="required")
    async def errand() -> None:
        raise NotImplementedError


def is_gone(_: App) -> None:
    """Have no tool."""


FAILING: Final = [
    (
        needs_request,
        {
            "code": -32603,
            "message": "tool 'errand' needs the HTTP request, and this message did not"
            " come over HTTP",
        },
    ),
    (
        needs_scope,
        {
            "code": -32600,
            "message": "Insufficient scope: orders needed",
            "data": {"requiredScopes": ["orders"]},
        },
    ),
    (is_hidden, {"code": -32602, "message": "Unknown tool: errand"}),
    (knows_the_principal, {"code": -32602, "message": "Unknown tool: errand"}),
    (is_not_resumable, INTERRUPTED),
    (is_gone, INTERRUPTED),
]


@pytest.mark.parametrize(
    ("register", "error"),
    [pytest.param(*row, id=row[0].__name__) for row in FAILING],
)
async def test_a_task_that_can_t_be_run_again_fails(
    register: Callable[[App], None], error: Any
) -> None:
    store = MemoryTaskStore()
    task_id = await left(store)
    app = worker(store)
    register(app)
    async with lifespan(app):
        assert (await ended(store, task_id)).error == error


async def test_arguments_are_checked_again() -> None:
    store = MemoryTaskStore()
    task_id = await left(store, city="Oslo")
    app = worker(store)
    takes_another_argument(app)
    async with lifespan(app):
        result = (await ended(store, task_id)).result
    assert result is not None
    assert result["isError"] is True


async def test_a_first_request_has_tasks_looked_after_without_a_lifespan() -> None:
    store = MemoryTaskStore()
    task_id = await left(store)
    app = App("bookshop", tasks=Tasks(store))

    @app.tool(task="required", resumable=True)
    async def errand() -> str:
        return "done"

    request = modern("server/discover")
    await post(app, request, headers_of(request))
    assert (await ended(store, task_id)).status == "completed"


async def test_a_task_that_can_t_be_read_is_not_in_the_way_of_others(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """As one of another release may be."""
    store = MemoryTaskStore()
    task_id = await left(store)
    record = await store.get(task_id)
    assert record is not None
    unread = {
        "journal": replace(record, task_id="1", journal={"v": 2}),
        "version": replace(
            record, task_id="2", request={**record.request, "version": "2030-01-01"}
        ),
    }
    for each in unread.values():
        await store.add(each)
    app = worker(store)

    @app.tool(task="required", resumable=True)
    async def errand() -> str:
        return "done"

    async with lifespan(app):
        assert (await ended(store, task_id)).status == "completed"
        for each in unread.values():
            assert (await ended(store, each.task_id)).error == INTERRUPTED
    assert "the task 1 can't be run again" in caplog.text


# What is done once, while the worker ends


Once = Callable[[Context, str, Callable[[], Awaitable[str]]], Awaitable[str]]


def in_the_loop(app: App, effect: Callable[[str], Awaitable[str]]) -> None:
    @app.tool(task="required", resumable=True)
    async def errand(ctx: Context) -> list[str]:
        return [await ctx.once(step, effect, step) for step in ("first", "second")]


def in_a_thread(app: App, effect: Callable[[str], Awaitable[str]]) -> None:
    @app.tool(task="required", resumable=True)
    def errand(ctx: Context) -> list[str]:
        return [ctx.wait(ctx.once(step, effect, step)) for step in ("first", "second")]


@pytest.mark.parametrize("register", [in_the_loop, in_a_thread])
async def test_a_worker_that_ends_does_to_the_end_what_it_does_once_and_no_more(
    register: Callable[[App, Callable[[str], Awaitable[str]]], None],
) -> None:
    store = MemoryTaskStore()
    begun, go_on = asyncio.Event(), asyncio.Event()
    done: list[tuple[str, str]] = []

    async def slow(step: str) -> str:
        begun.set()
        await go_on.wait()
        done.append(("old", step))
        return f"{step} of the old"

    async def quick(step: str) -> str:
        done.append(("new", step))
        return f"{step} of the new"

    old, new = worker(store), worker(store)
    register(old, slow)
    register(new, quick)
    async with asyncio.timeout(PATIENCE):
        task_id = await begin(old)
        await begun.wait()
        stopping = asyncio.create_task(old.tasks.stop())
        await wait_all_tasks_blocked()
        go_on.set()
        await stopping
    async with lifespan(new):
        record = await ended(store, task_id)
    assert done == [("old", "first"), ("new", "second")]
    assert record.result is not None
    kept = {"result": ["first of the old", "second of the new"]}
    assert record.result["structuredContent"] in (kept, kept["result"])


async def test_what_had_begun_is_not_begun_again() -> None:
    """As above, in the process whose coverage is measured."""
    store = MemoryTaskStore()
    task_id = await left(store)
    record = await store.get(task_id)
    assert record is not None
    journal = Journal(begun={"effect"}).dump()
    assert await store.replace(replace(record, journal=journal), record.revision)
    app = worker(store)

    async def effect() -> None:
        raise NotImplementedError

    @app.tool(task="required", resumable=True)
    async def errand(ctx: Context) -> None:
        await ctx.once("effect", effect)

    async with lifespan(app):
        message = "The server was interrupted in the middle of 'effect'"
        error = (await ended(store, task_id)).error
    assert error == {"code": -32603, "message": message}


async def test_a_task_that_was_to_be_cancelled_is_not_left_for_others() -> None:
    store = MemoryTaskStore()
    app = worker(store)
    begun = waiting(app)
    async with lifespan(app):
        task_id = await begin(app)
        await begun.wait()
        record = await store.get(task_id)
        assert record is not None
        # By a worker that does not tell.
        assert await store.replace(replace(record, cancelling=True), record.revision)
    assert (await ended(store, task_id)).status == "cancelled"


# Workers that share a store


@dataclass
class Pair:
    """Two workers: one that runs a task, and another that a client speaks to."""

    runs: App
    other: App
    stopped: asyncio.Event
    task_id: str = ""

    async def send(self, method: str, **params: Any) -> Any:
        """Send a request about the task to the other worker."""
        params = {"taskId": self.task_id, **params}
        return await call(
            self.other, method, by=User(id="ada", scopes=[]), client=CLIENT, **params
        )


class Colour(BaseModel):
    """What is asked."""

    colour: str


def pair(stores: tuple[TaskStore, TaskStore], backend: Backend | None) -> Pair:
    stopped = asyncio.Event()
    runs, other = (worker(store, backend) for store in stores)
    for app in (runs, other):

        @app.tool(task="required", resumable=True)
        async def errand(ctx: Context) -> str | None:
            try:
                answer = await ctx.elicit("Which colour?", Colour)
            except asyncio.CancelledError:
                stopped.set()
                raise
            return answer.data.colour if answer.accepted else None

    return Pair(runs, other, stopped)


@pytest.fixture(params=["a file", "a store and a backend"])
def shared(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> tuple[tuple[TaskStore, TaskStore], Backend | None]:
    """What two workers share: a file alone, or a store and a backend.

    With a backend they tell each other, and never need to look.
    """
    if request.param == "a file":
        path = tmp_path / "tasks.db"
        return (SQLiteTaskStore(path), SQLiteTaskStore(path)), None
    monkeypatch.setattr(extension, "TICK", NEVER)
    monkeypatch.setattr(extension, "SWEEP_EVERY", NEVER)
    store = MemoryTaskStore()
    return (store, store), MemoryBackend()


Shared = tuple[tuple[TaskStore, TaskStore], Backend | None]


async def test_another_worker_takes_answers_and_tells_what_becomes_of_them(
    shared: Shared,
) -> None:
    """Spec ext-tasks, tasks: Task Status Notifications."""
    workers = pair(*shared)
    async with lifespan(workers.runs), lifespan(workers.other):
        task_id = workers.task_id = await begin(workers.runs)
        params = {"notifications": {"taskIds": [task_id]}}
        listen = modern("subscriptions/listen", params, capabilities=CLIENT)
        async with stream(workers.other, listen) as opened, asyncio.timeout(SOON):
            assert await opened.message() == acknowledged(taskIds=[task_id])
            asking = await workers.send("tasks/get")
            while asking["status"] == "working":
                await asyncio.sleep(0.01)
                asking = await workers.send("tasks/get")
            [key] = asking["inputRequests"]
            answer = {"action": "accept", "content": {"colour": "red"}}
            await workers.send("tasks/update", inputResponses={key: answer})
            states: list[str] = []
            while not states or states[-1] not in ENDED:
                message = await opened.message()
                assert message["params"]["taskId"] == task_id
                states.append(message["params"]["status"])
        task = await workers.send("tasks/get")
    # Each state is told once, and some may be over before they are told.
    assert states[-1] == "completed"
    assert len(states) <= len(set(states)) + 1
    assert task["result"]["content"] == [{"type": "text", "text": "red"}]


async def test_another_worker_cancels(shared: Shared) -> None:
    workers = pair(*shared)
    async with lifespan(workers.runs), lifespan(workers.other):
        workers.task_id = await begin(workers.runs)
        while (await workers.send("tasks/get"))["status"] == "working":
            await asyncio.sleep(0.01)
        async with asyncio.timeout(SOON):
            await workers.send("tasks/cancel")
            await workers.stopped.wait()
            record = await ended(workers.other.tasks.store, workers.task_id)
    assert record.status == "cancelled"


async def test_another_worker_goes_on_when_one_ends(shared: Shared) -> None:
    workers = pair(*shared)
    async with lifespan(workers.other), asyncio.timeout(SOON):
        async with lifespan(workers.runs):
            workers.task_id = await begin(workers.runs)
            while (await workers.send("tasks/get"))["status"] == "working":
                await asyncio.sleep(0.01)
            held = (await kept_by(workers)).worker
        while (await kept_by(workers)).worker in ("", held):
            await asyncio.sleep(0.01)
        [key] = (await workers.send("tasks/get"))["inputRequests"]
        answer = {"action": "accept", "content": {"colour": "red"}}
        await workers.send("tasks/update", inputResponses={key: answer})
        record = await ended(workers.other.tasks.store, workers.task_id)
    assert record.result is not None
    assert record.result["content"] == [{"type": "text", "text": "red"}]


async def kept_by(workers: Pair) -> TaskRecord:
    """Return the task as the other worker reads it."""
    record = await workers.other.tasks.store.get(workers.task_id)
    assert record is not None
    return record


# A store that fails


class FailingStore(MemoryTaskStore):
    """A store one of whose methods fails once, after some calls that do not.

    Attributes:
        fails: The method, and how many calls of it go well.
        failed: Set when it has failed.
    """

    def __init__(self) -> None:
        super().__init__()
        self.fails: tuple[str, int] | None = None
        self.failed = asyncio.Event()

    def _count(self, name: str) -> None:
        if self.fails is None or self.fails[0] != name:
            return
        if self.fails[1] > 0:
            self.fails = name, self.fails[1] - 1
            return
        self.fails = None
        self.failed.set()
        raise sqlite3.OperationalError("disk I/O error")

    async def add(self, record: TaskRecord, most: int | None = None) -> bool:
        """Keep a new task, or fail."""
        self._count("add")
        return await super().add(record, most)

    async def get(self, task_id: str) -> TaskRecord | None:
        """Return a task, or fail."""
        self._count("get")
        return await super().get(task_id)

    async def replace(self, record: TaskRecord, revision: int) -> bool:
        """Write a task, or fail."""
        self._count("replace")
        return await super().replace(record, revision)

    async def renew(
        self, worker: str, lease: float, task_ids: Sequence[str]
    ) -> Mapping[str, int]:
        """Hold tasks for longer, or fail."""
        self._count("renew")
        return await super().renew(worker, lease, task_ids)

    async def abandoned(self, now: float, limit: int) -> list[TaskRecord]:
        """Return tasks whose lease is over, or fail."""
        self._count("abandoned")
        return await super().abandoned(now, limit)


@pytest.fixture
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have workers look at their tasks all the time."""
    monkeypatch.setattr(extension, "TICK", 0.01)
    monkeypatch.setattr(extension, "SWEEP_EVERY", 0.01)


def doing_once(app: App, store: FailingStore, *, waits: bool) -> list[str]:
    """Have a tool that does something once, and return what it has done."""
    done: list[str] = []

    async def effect() -> str:
        done.append("done")
        return "done"

    @app.tool(task="required", resumable=True)
    async def errand(ctx: Context) -> str:
        if waits:
            await store.failed.wait()
        did: str = await ctx.once("effect", effect)
        return did

    return done


TEXT: Final = (("done", False), ["done"])
TOLD: Final = ("Tool errand failed", True)

FAILURES: Final = [
    # what fails, after how many calls, does the tool wait for it, outcome, log
    ("before it is done", "replace", 0, False, (TOLD, []), "tool 'errand' failed"),
    ("after it", "replace", 1, False, (TOLD, ["done"]), "tool 'errand' failed"),
    ("at the end", "replace", 2, False, TEXT, "can't be kept yet"),
    ("the lease", "renew", 0, True, TEXT, "tasks can't be looked after"),
    ("the sweep", "abandoned", 0, True, TEXT, "tasks can't be looked after"),
]


@pytest.mark.usefixtures("often")
@pytest.mark.parametrize(
    ("method", "after", "waits", "outcome", "log"),
    [pytest.param(*row, id=name) for name, *row in FAILURES],
)
async def test_a_task_ends_and_the_log_says_what_failed_in_the_store(
    method: str,
    after: int,
    waits: bool,  # noqa: FBT001  # a column
    outcome: tuple[Any, list[str]],
    log: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    store = FailingStore()
    app = worker(store)
    done = doing_once(app, store, waits=waits)
    store.fails = method, after
    async with lifespan(app):
        record = await ended(store, await begin(app))
    assert store.failed.is_set()
    assert record.result is not None
    [block] = record.result["content"]
    told = block["text"], record.result["isError"]
    assert (told, done) == outcome
    assert log in caplog.text


@pytest.mark.usefixtures("often")
@pytest.mark.parametrize("method", ["abandoned", "replace"])
async def test_a_task_is_taken_over_when_the_store_has_recovered(
    method: str, caplog: pytest.LogCaptureFixture
) -> None:
    store = FailingStore()
    task_id = await left(store)
    app = worker(store)
    done = doing_once(app, store, waits=False)
    store.fails = method, 0
    async with lifespan(app):
        assert (await ended(store, task_id)).status == "completed"
    assert done == ["done"]
    assert "tasks can't be looked after" in caplog.text


async def test_a_task_that_can_t_be_kept_is_not_begun(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Spec ext-tasks, tasks: Task Creation."""
    store = FailingStore()
    app = worker(store)
    done = doing_once(app, store, waits=False)
    store.fails = "add", 0
    params = {"name": "errand", "arguments": {}}
    request = modern("tools/call", params, capabilities=CLIENT)
    async with lifespan(app):
        answer = (await post(app, request, headers_of(request))).json()
        assert answer["error"] == {"code": -32603, "message": "Internal error"}
        assert await store.count(None) == 0
        assert done == []
        assert (await ended(store, await begin(app))).status == "completed"
    assert "a task can't be kept" in caplog.text


async def test_what_could_not_be_noted_may_be_done_again() -> None:
    store = FailingStore()
    app = worker(store)
    done: list[str] = []

    def effect() -> str:
        done.append("done")
        return "done"

    @app.tool(task="required")
    async def errand(ctx: Context) -> str:
        with pytest.raises(sqlite3.OperationalError):
            await ctx.once("effect", effect)
        assert done == []
        did: str = await ctx.once("effect", effect)
        return did

    store.fails = "replace", 0
    async with lifespan(app):
        record = await ended(store, await begin(app))
    assert record.result is not None
    assert record.result["content"] == [{"type": "text", "text": "done"}]
    assert done == ["done"]


@pytest.mark.usefixtures("often")
async def test_what_another_has_written_is_read_when_the_store_has_recovered(
    caplog: pytest.LogCaptureFixture,
) -> None:
    store = FailingStore()
    app = worker(store)
    begun = waiting(app)
    async with lifespan(app):
        task_id = await begin(app)
        await begun.wait()
        record = await store.get(task_id)
        assert record is not None
        store.fails = "get", 0
        assert await store.replace(replace(record, cancelling=True), record.revision)
        await store.failed.wait()
        assert (await ended(store, task_id)).status == "cancelled"
    assert f"the task {task_id} can't be read" in caplog.text


async def test_a_task_that_can_t_be_left_is_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Its lease runs out then."""
    store = FailingStore()
    app = worker(store)
    begun = waiting(app)
    async with lifespan(app):
        task_id = await begin(app)
        await begun.wait()
        store.fails = "replace", 0
    assert f"the task {task_id} can't be left" in caplog.text


# A task that is another worker's by now


async def test_what_a_task_came_to_is_not_written_over_what_another_worker_does(
    caplog: pytest.LogCaptureFixture,
) -> None:
    store = MemoryTaskStore()
    app = worker(store)
    go_on = asyncio.Event()

    @app.tool(task="required")
    async def errand() -> str:
        await go_on.wait()
        return "too late"

    async with lifespan(app):
        task_id = await begin(app)
        record = await store.get(task_id)
        assert record is not None
        taken = replace(record, worker="another", revision=1)
        assert await store.replace(taken, 0)
        go_on.set()
        await until(lambda: f"{task_id} is another worker's" in caplog.text)
        assert await store.get(task_id) == taken


async def test_a_handler_that_does_not_stop_does_nothing_once_any_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(extension, "STOP_SECONDS", 0.01)
    store = MemoryTaskStore()
    app = worker(store)
    begun, go_on, is_over = asyncio.Event(), asyncio.Event(), asyncio.Event()

    @app.tool(task="required", resumable=True)
    async def errand(ctx: Context) -> None:
        try:
            begun.set()
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            await go_on.wait()
        try:
            await ctx.task.save(Journal())  # type: ignore[union-attr]
        finally:
            is_over.set()

    async with asyncio.timeout(PATIENCE):
        task_id = await begin(app)
        await begun.wait()
        await app.tasks.stop()
        left_as = await store.get(task_id)
        go_on.set()
        await is_over.wait()
    await wait_all_tasks_blocked()
    assert await store.get(task_id) == left_as


class MeetingStore(MemoryTaskStore):
    """A store where two workers find the same tasks before either takes one."""

    def __init__(self) -> None:
        super().__init__()
        self._found = 0
        self._met = asyncio.Event()

    async def abandoned(self, now: float, limit: int) -> list[TaskRecord]:
        """Return what is abandoned, once two workers have found that."""
        found = await super().abandoned(now, limit)
        if found:
            self._found += 1
            if self._found == 2:
                self._met.set()
            await self._met.wait()
        return found


async def test_a_task_that_two_workers_find_is_run_by_one() -> None:
    store = MeetingStore()
    task_id = await left(store)
    runs: list[int] = []

    def register(app: App, number: int) -> App:
        @app.tool(task="required", resumable=True)
        async def errand() -> str:
            runs.append(number)
            return "done"

        return app

    first, second = (register(worker(store), number) for number in range(2))
    async with asyncio.timeout(PATIENCE), lifespan(first), lifespan(second):
        assert (await ended(store, task_id)).status == "completed"
        await wait_all_tasks_blocked()
    assert len(runs) == 1


class WaitingStore(MemoryTaskStore):
    """A store that takes its time to find what is abandoned.

    Attributes:
        is_asked: Set when it was looked for.
        go_on: Set when it may be found.
    """

    def __init__(self) -> None:
        super().__init__()
        self.is_asked, self.go_on = asyncio.Event(), asyncio.Event()

    async def abandoned(self, now: float, limit: int) -> list[TaskRecord]:
        """Return tasks whose lease is over, in time."""
        self.is_asked.set()
        await self.go_on.wait()
        return await super().abandoned(now, limit)


async def test_a_worker_that_is_about_to_end_takes_nothing_over() -> None:
    store = WaitingStore()
    store.go_on.set()
    task_id = await left(store)
    left_as = await store.get(task_id)
    store.is_asked.clear()
    store.go_on.clear()
    app = worker(store)
    waiting(app)
    async with asyncio.timeout(PATIENCE):
        app.tasks.keep_going()
        await store.is_asked.wait()
        stopping = asyncio.create_task(app.tasks.stop())
        await wait_all_tasks_blocked()
        store.go_on.set()
        await stopping
    assert await store.get(task_id) == left_as


class CountingStore(MemoryTaskStore):
    """A store that counts how often it is looked for abandoned tasks.

    Attributes:
        looks: How often.
    """

    def __init__(self) -> None:
        super().__init__()
        self.looks = 0

    async def abandoned(self, now: float, limit: int) -> list[TaskRecord]:
        """Return tasks whose lease is over."""
        self.looks += 1
        return await super().abandoned(now, limit)


@pytest.mark.usefixtures("often")
async def test_a_worker_that_has_enough_to_do_takes_nothing_over() -> None:
    store = CountingStore()
    app = worker(store, max_running=1)
    begun, go_on = asyncio.Event(), asyncio.Event()

    @app.tool(task="required", resumable=True)
    async def errand(city: str = "Oslo") -> str:
        begun.set()
        await go_on.wait()
        return city

    own = await begin(app, city="Rome")
    await begun.wait()
    task_id = await left(store)
    store.looks = 0
    await until(lambda: store.looks > 2)
    record = await store.get(task_id)
    assert record is not None
    assert record.worker == ""
    go_on.set()
    assert (await ended(store, own)).status == "completed"
    assert (await ended(store, task_id)).status == "completed"
    await app.tasks.stop()


# Those who follow a task


@pytest.mark.usefixtures("often")
async def test_who_follows_a_task_anew_is_told_of_it_where_the_store_alone_is_shared(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """One task a look, so that they take turns."""
    monkeypatch.setattr(extension, "_BATCH", 1)
    store = MemoryTaskStore()
    app = worker(store)
    app.tasks.keep_going()
    made = TaskRecord(
        task_id="1",
        owner="principal:ada",
        method="tools/call",
        request={},
        created=time.time(),
        updated=1.0,
    )
    records = {name: replace(made, task_id=name) for name in ("1", "2", "3")}
    for record in records.values():
        await store.add(record)
    params = {"notifications": {"taskIds": [*records]}}
    listen = modern("subscriptions/listen", params, capabilities=CLIENT)
    for lap in range(2):
        async with stream(app, listen) as opened:
            assert await opened.message() == acknowledged(taskIds=[*records])
            for record in records.values():
                assert (await stands(opened)) == (record.task_id, record.message)
            # Nobody sees the first write, and only the store tells of the second.
            for name, record in records.items():
                unseen = replace(record, journal={})
                assert await store.replace(unseen, 2 * lap)
                records[name] = replace(record, message=f"lap {lap}")
                assert await store.replace(records[name], 2 * lap + 1)
            told = {await stands(opened) for _ in records}
            assert told == {(name, f"lap {lap}") for name in records}
    await app.tasks.stop()


async def stands(opened: Stream) -> tuple[str, str | None]:
    """Read the id and the message of the next task that a stream tells of."""
    params = (await opened.message())["params"]
    return params["taskId"], params.get("statusMessage")


# The store of an app


async def test_an_app_whose_store_can_t_be_used_does_not_start(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("these are no tasks, and they are kept", encoding="utf-8")
    app = worker(SQLiteTaskStore(path))
    said: list[Any] = []

    async def receive() -> Any:
        return {"type": "lifespan.startup"}

    async def send(message: Any) -> None:
        said.append(message)

    fault = f"SQLiteTaskStore: {path} is not a file of tasks; give it one of its own"
    with pytest.raises(SetupError, match="is not a file of tasks"):
        await app({"type": "lifespan"}, receive, send)
    assert said == [{"type": "lifespan.startup.failed", "message": fault}]


async def test_a_store_is_closed_with_its_app_and_opened_again(tmp_path: Path) -> None:
    store = SQLiteTaskStore(tmp_path / "tasks.db")
    app = worker(store)
    log = tmp_path / "tasks.db-wal"
    for _ in range(2):
        async with lifespan(app):
            assert log.exists()
        assert not log.exists()


async def test_all_that_has_expired_is_removed_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(extension, "_BATCH", 2)
    store = MemoryTaskStore()
    task_id = await left(store)
    record = await store.get(task_id)
    assert record is not None
    for number in range(5):
        ended = replace(record, task_id=str(number), status="cancelled", ttl=0.0)
        await store.add(ended)
    async with lifespan(worker(store)):
        async with asyncio.timeout(SOON):
            while await store.get("4") is not None:
                await asyncio.sleep(0.001)
        assert [await store.get(str(number)) for number in range(4)] == [None] * 4


# Two event loops of one process


async def test_a_worker_stops_the_tasks_of_its_own_event_loop_alone() -> None:
    """CTX-04."""
    app = worker(MemoryTaskStore())
    here = waiting(app)

    async def elsewhere() -> str:
        async with lifespan(app):
            return await begin(app)

    async with lifespan(app):
        task_id = await begin(app)
        await here.wait()
        other = await asyncio.to_thread(asyncio.run, elsewhere())
        states = [await app.tasks.store.get(each) for each in (task_id, other)]
    workers = [record.worker if record else None for record in states]
    assert workers[0]
    assert workers[1] == ""


async def test_a_task_hears_in_its_own_event_loop_what_came_in_another(
    caplog: pytest.LogCaptureFixture,
) -> None:
    app = worker(MemoryTaskStore())
    begun = waiting(app)
    loop = asyncio.get_running_loop()
    # It raises where another thread calls what is not for it.
    loop.set_debug(True)

    async def elsewhere(task_id: str) -> Any:
        ada = User(id="ada", scopes=[])
        async with lifespan(app):
            return await call(
                app, "tasks/cancel", by=ada, client=CLIENT, taskId=task_id
            )

    try:
        async with lifespan(app):
            task_id = await begin(app)
            await begun.wait()
            sent = await asyncio.to_thread(asyncio.run, elsewhere(task_id))
            record = await ended(app.tasks.store, task_id)
    finally:
        loop.set_debug(False)
    assert (sent, record.status, caplog.messages) == ({}, "cancelled", [])


def test_an_event_loop_that_is_over_is_not_held() -> None:
    app = worker(MemoryTaskStore())
    loops: list[weakref.ref[asyncio.AbstractEventLoop]] = []

    async def serve() -> None:
        loops.append(weakref.ref(asyncio.get_running_loop()))
        app.tasks.keep_going()

    asyncio.run(serve())
    asyncio.run(serve())
    gc.collect()
    assert loops[0]() is None
