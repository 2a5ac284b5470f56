"""Worker processes that tests kill, stop and start again, and a client of theirs.

`python -m tests.soak.workers` serves `tests.soak.errands`, and prints its port when it
accepts connections.
"""

import asyncio
import os
import secrets
import signal
import socket
import sys
import tempfile
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path
from typing import IO, Any, Final

import httpx
import uvicorn

from mcpkit.extensions.task_wire import IDENTIFIER
from mcpkit.server import SECRET_KEY
from tests import shared_backend
from tests.http.client import headers_of, modern

ROOT: Final = Path(__file__).parents[2]

STORE: Final = "MCPKIT_TEST_STORE"
"""The environment variable with the path of the store."""

NOTES: Final = "MCPKIT_TEST_NOTES"
"""The environment variable with the path of the file."""

LEASE: Final = "MCPKIT_TEST_LEASE"
"""The environment variable with the lease, in seconds."""

PATIENCE: Final = 30.0
"""Seconds after which whatever hangs gives up."""

ENDED: Final = ("completed", "failed", "cancelled")

CLIENT: Final[Mapping[str, Any]] = {
    "extensions": {IDENTIFIER: {}},
    "elicitation": {"form": {}},
}
"""The capabilities of the client."""

_ids: Final = count(1)


class Worker:
    """A process that serves the app.

    Attributes:
        process: It.
        port: Where it listens; 0 until it does.
        is_harmed: Somebody has killed it, or held it up.
    """

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self.port = 0
        self.is_harmed = False

    @property
    def pid(self) -> int:
        """The id of the process."""
        return self.process.pid

    async def ready(self) -> None:
        """Wait until it accepts connections, or has ended."""
        assert self.process.stdout is not None
        line = await self.process.stdout.readline()
        self.port = int(line) if line else 0

    def kill(self) -> None:
        """Kill it, at this very moment."""
        self.is_harmed = True
        self.process.kill()

    def hold_up(self) -> None:
        """Stop it, until it is told to go on."""
        self.is_harmed = True
        self.process.send_signal(signal.SIGSTOP)

    def go_on(self) -> None:
        """Have it go on, unless it was killed meanwhile."""
        if self.process.returncode is None:
            self.process.send_signal(signal.SIGCONT)

    async def terminate(self) -> int:
        """Ask it to stop, and return how it has ended."""
        self.process.send_signal(signal.SIGTERM)
        async with asyncio.timeout(PATIENCE):
            return await self.process.wait()


class Cluster:
    """The workers of one store, and a client.

    Args:
        directory: Where the store and the notes are.
        lease: The lease of a task, in seconds.
        said: Where the workers write their logs to.
        backend: The address of the backend that they share, if any.
    """

    def __init__(
        self, directory: Path, lease: float, said: IO[str], backend: str | None
    ) -> None:
        self.store = directory / "tasks.db"
        self.notes = directory / "notes"
        self._said = said
        self._workers: list[Worker] = []
        self._environment = {
            **os.environ,
            SECRET_KEY: secrets.token_hex(32),
            STORE: str(self.store),
            NOTES: str(self.notes),
            LEASE: str(lease),
        }
        if backend is not None:
            self._environment[shared_backend.VARIABLE] = backend
        self.client = httpx.AsyncClient(timeout=PATIENCE)

    async def start(self, *options: str) -> Worker:
        """Start a worker, which is not ready yet."""
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            *("-m", __name__, *options),
            cwd=ROOT,
            env=self._environment,
            stdout=asyncio.subprocess.PIPE,
            stderr=self._said,
        )
        self._workers.append(Worker(process))
        return self._workers[-1]

    async def started(self, *options: str) -> Worker:
        """Start a worker, and wait until it is ready."""
        worker = await self.start(*options)
        async with asyncio.timeout(PATIENCE):
            await worker.ready()
        assert worker.port, self.said()
        return worker

    def said(self) -> str:
        """Return what the workers have written to their logs."""
        self._said.seek(0)
        return self._said.read()

    def noted(self) -> list[list[str]]:
        """Return the lines of the notes: a name, a step, and a process."""
        if not self.notes.exists():
            return []
        lines = self.notes.read_text(encoding="utf-8").splitlines()
        return [line.split() for line in lines]

    def steps(self, name: str) -> list[str]:
        """Return the steps that were noted of a task, in order."""
        return [step for of, step, _ in self.noted() if of == name]

    async def send(self, worker: Worker, method: str, /, **params: Any) -> Any:
        """Send a request, and return its result.

        Raises:
            httpx.TransportError: The worker is gone.
        """
        message = modern(method, params, request_id=next(_ids), capabilities=CLIENT)
        headers = headers_of(message)
        if "taskId" in params:
            headers["mcp-name"] = params["taskId"]
        url = f"http://127.0.0.1:{worker.port}/mcp"
        reply = await self.client.post(url, json=message, headers=headers)
        answer = reply.json()
        assert "result" in answer, answer
        return answer["result"]

    async def begin(self, worker: Worker, tool: str, /, **arguments: Any) -> str:
        """Have a task begun, and return its id."""
        params = {"name": tool, "arguments": arguments}
        handle = await self.send(worker, "tools/call", **params)
        assert handle["resultType"] == "task", handle
        task_id: str = handle["taskId"]
        return task_id

    async def get(self, worker: Worker, task_id: str) -> Any:
        """Return how a task stands."""
        return await self.send(worker, "tasks/get", taskId=task_id)

    async def answer(self, worker: Worker, task: Mapping[str, Any], colour: str) -> Any:
        """Answer all that a task asks."""
        answers = {
            key: {"action": "accept", "content": {"colour": colour}}
            for key in task["inputRequests"]
        }
        params = {"taskId": task["taskId"], "inputResponses": answers}
        return await self.send(worker, "tasks/update", **params)

    async def close(self) -> None:
        """Kill the workers that are left."""
        await self.client.aclose()
        for worker in self._workers:
            if worker.process.returncode is None:
                worker.process.kill()
            await worker.process.wait()

    async def until(self, worker: Worker, task_id: str, *states: str) -> Any:
        """Return how a task stands, once it is in one of some states."""
        async with asyncio.timeout(PATIENCE):
            while True:
                task = await self.get(worker, task_id)
                if task["status"] in states:
                    return task
                await asyncio.sleep(0.02)

    async def noted_by(self, name: str, steps: int) -> None:
        """Wait until a task has noted so many steps."""
        async with asyncio.timeout(PATIENCE):
            while len(self.steps(name)) < steps:
                await asyncio.sleep(0.01)


@asynccontextmanager
async def cluster(
    directory: Path, *, lease: float, backend: str | None = None
) -> AsyncIterator[Cluster]:
    """Have workers, and kill those that are left at the end."""
    with tempfile.TemporaryFile("w+", encoding="utf-8", dir=directory) as said:
        made = Cluster(directory, lease, said, backend)
        try:
            yield made
        finally:
            await made.close()


def main() -> None:
    """Serve until the process is told to end."""
    config = uvicorn.Config(
        "tests.soak.errands:app",
        lifespan="off" if "--no-lifespan" in sys.argv else "on",
        log_level="warning",
        access_log=False,
    )
    listener = socket.create_server(("127.0.0.1", 0), backlog=1024)
    server = uvicorn.Server(config)
    config.load()
    sys.stdout.write(f"{listener.getsockname()[1]}\n")
    sys.stdout.flush()
    server.run(sockets=[listener])


if __name__ == "__main__":
    main()
