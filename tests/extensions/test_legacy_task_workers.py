"""Tasks of clients of 2025-11-25, whose requests reach several workers.

Here the workers are apps in one process. They share a key and the file of a store, and
where it says so, a backend.
"""

import asyncio
import json
import signal
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any, Final

import httpx
import pytest

from mcpkit import App, Context
from mcpkit.backends.base import Backend
from mcpkit.backends.memory import MemoryBackend
from mcpkit.extensions import tasks
from mcpkit.extensions.tasks import Tasks
from mcpkit.stores.sqlite import SQLiteTaskStore
from tests.calls import text
from tests.extensions.legacy import RELATED, connect
from tests.http.client import JSON_HEADERS, Json, initialize, legacy
from tests.http.streaming import PATIENCE
from tests.rounds import CLIENT, KEY, ask, named
from tests.test_shutdown import python

pytestmark = pytest.mark.anyio

SERVED: Final = """
import asyncio
from mcpkit import App, Context
from tests.rounds import Name

app = App("served")

@app.tool(task="required")
async def hold(ctx: Context) -> None:
    await ctx.elicit("Who?", Name)
    await asyncio.sleep(3600)
"""

SOON: Final = 4
"""Seconds in which a worker sees what another one that tells it nothing has done.

It looks each second; the rest is for a machine that is busy.
"""


PROMPTLY: Final = 5
"""Seconds in which a server stops that is asked to, on a machine that is busy."""


class Worker:
    """A worker.

    Attributes:
        app: Its app.
        go: Lets `hold` go on.
        is_held: `hold` has begun.
        stopped: `hold` was stopped.
        sessions: The sessions of those who had `greet` called.
    """

    def __init__(self, path: Path, backend: Backend | None = None) -> None:
        self.go = asyncio.Event()
        self.is_held = asyncio.Event()
        self.stopped = asyncio.Event()
        self.sessions: list[Any] = []
        self.store = SQLiteTaskStore(path)
        kept = Tasks(self.store)
        self.app = App("workers", secret_key=KEY, tasks=kept, backend=backend)
        self.app.add_tool(self.hold, task="optional")
        self.app.add_tool(self.greet, task="optional", resumable=True)

    async def hold(self) -> str:
        """Wait to be let go."""
        self.is_held.set()
        try:
            await self.go.wait()
        except asyncio.CancelledError:
            self.stopped.set()
            raise
        return "held"

    async def greet(self, ctx: Context) -> str:
        """Ask two things."""
        assert ctx.session is not None
        self.sessions.append((ctx.session.id, ctx.session.version))
        first = await ask(ctx, "Who?")
        second = await ask(ctx, f"And who, {first}?")
        return f"Hello, {first} and {second}"


@pytest.fixture
def alone(tmp_path: Path) -> Iterator[tuple[Worker, Worker]]:
    """Two workers that share the store alone."""
    path = tmp_path / "tasks.db"
    workers = Worker(path), Worker(path)
    yield workers
    for worker in workers:
        worker.store.close()


@pytest.fixture
def together(tmp_path: Path) -> Iterator[tuple[Worker, Worker]]:
    """Two workers that share a backend too."""
    path, backend = tmp_path / "tasks.db", MemoryBackend()
    workers = Worker(path, backend), Worker(path, backend)
    yield workers
    for worker in workers:
        worker.store.close()


def told(task_id: str, result: str) -> dict[str, Any]:
    """Return the result of a task."""
    return {**text(result), "_meta": {RELATED: {"taskId": task_id}}}


async def test_a_result_is_there_soon_in_a_worker_that_is_told_nothing(
    alone: tuple[Worker, Worker],
) -> None:
    runs, waits = alone
    peer = await connect(runs.app)
    task_id = await peer.begin("hold")
    other = peer.over(waits.app)
    assert (await other.state(task_id))["status"] == "working"
    assert await other.send("tasks/list") == await peer.send("tasks/list")
    waiting = asyncio.create_task(other.result(task_id))
    await asyncio.wait([waiting], timeout=0.05)
    runs.go.set()
    began = time.monotonic()
    assert await waiting == told(task_id, "held")
    assert time.monotonic() - began < SOON


async def test_a_task_of_another_worker_asks_who_waits_here(
    alone: tuple[Worker, Worker],
) -> None:
    runs, waits = alone
    peer = await connect(runs.app)
    task_id = await peer.begin("greet")
    other = peer.over(waits.app)
    async with other.waiting(task_id) as waiting:
        for message, name in (("Who?", "Ada"), ("And who, Ada?", "Bob")):
            began = time.monotonic()
            question = await waiting.message()
            assert question["params"]["message"] == message
            assert time.monotonic() - began < SOON
            await other.answer(question["id"], result=named(name))
        assert await waiting.end() == told(task_id, "Hello, Ada and Bob")


async def test_a_task_is_stopped_soon_that_another_worker_cancels(
    alone: tuple[Worker, Worker],
) -> None:
    runs, cancels = alone
    peer = await connect(runs.app)
    task_id = await peer.begin("hold")
    await runs.is_held.wait()
    cancelled = await peer.over(cancels.app).send("tasks/cancel", taskId=task_id)
    assert cancelled["status"] == "cancelled"
    async with asyncio.timeout(SOON):
        await runs.stopped.wait()
    assert await peer.state(task_id) == cancelled


async def test_workers_that_share_a_backend_tell_each_other_at_once(
    together: tuple[Worker, Worker], monkeypatch: pytest.MonkeyPatch
) -> None:
    # Who only looks sees nothing in time.
    monkeypatch.setattr(tasks, "TICK", 10 * PATIENCE)
    runs, waits = together
    peer = await connect(runs.app)
    task_id = await peer.begin("greet")
    other = peer.over(waits.app)
    async with other.waiting(task_id) as waiting:
        for name in ("Ada", "Bob"):
            question = await waiting.message()
            # It reaches the worker where nobody waits for it.
            await peer.answer(question["id"], result=named(name))
        assert await waiting.end() == told(task_id, "Hello, Ada and Bob")


async def test_a_task_that_another_worker_runs_again_asks_the_same_client(
    alone: tuple[Worker, Worker],
) -> None:
    leaves, resumes = alone
    peer = await connect(leaves.app)
    task_id = await peer.begin("greet")
    async with peer.waiting(task_id) as waiting:
        question = await waiting.message()
        await peer.answer(question["id"], result=named("Ada"))
        question = await waiting.message()
        assert question["params"]["message"] == "And who, Ada?"
        await leaves.app.tasks.stop()
        other = peer.over(resumes.app)
        async with other.waiting(task_id) as again, asyncio.timeout(PATIENCE):
            question = await again.message()
            assert question["params"]["message"] == "And who, Ada?"
            await other.answer(question["id"], result=named("Bob"))
            assert await again.end() == told(task_id, "Hello, Ada and Bob")
        assert (await waiting.message())["method"] == "notifications/cancelled"
        assert await waiting.end() == told(task_id, "Hello, Ada and Bob")
    assert leaves.sessions == resumes.sessions


async def test_a_server_that_stops_does_not_wait_for_those_who_wait_for_tasks(
    tmp_path: Path,
) -> None:
    (tmp_path / "served.py").write_text(SERVED)
    command = ["-m", "uvicorn", "served:app", "--port", "0"]
    async with python(tmp_path, *command) as server:
        (port,) = await server.says(r"running on http://127\.0\.0\.1:(\d+)")
        url = f"http://127.0.0.1:{port}/mcp"
        async with httpx.AsyncClient(timeout=PATIENCE, base_url=url) as client:

            async def send(message: Json) -> httpx.Response:
                return await client.post("", json=message, headers=headers)

            headers = dict(JSON_HEADERS)
            opened = await send(initialize(capabilities=CLIENT))
            headers["mcp-session-id"] = opened.headers["mcp-session-id"]
            params = {"name": "hold", "task": {}}
            made = (await send(legacy("tools/call", params))).json()
            assert "result" in made, made
            task_id = made["result"]["task"]["taskId"]
            message = legacy("tasks/result", {"taskId": task_id})
            async with client.stream(
                "POST", "", json=message, headers=headers
            ) as reply:
                lines = reply.aiter_lines()
                asked = await _message(lines)
                assert asked["method"] == "elicitation/create"
                server.process.send_signal(signal.SIGTERM)
                withdrawn = await _message(lines)
                assert withdrawn["method"] == "notifications/cancelled"
                assert await _message(lines) == {
                    "jsonrpc": "2.0",
                    "id": 1,
                    "error": {
                        "code": -32000,
                        "message": "The server is stopping: ask for the result again",
                    },
                }
        async with asyncio.timeout(PROMPTLY):
            await server.ends()
        assert "Traceback" not in server.said


async def _message(lines: AsyncIterator[str]) -> Any:
    """Read the next message of a stream."""
    async for line in lines:
        if line.startswith("data: {"):
            return json.loads(line.removeprefix("data: "))
    raise EOFError
