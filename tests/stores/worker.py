"""A process that uses a store of tasks, for tests: `start` runs one of the below.

It prints a line for what it has done, after the store has said so.
"""

import asyncio
import os
import resource
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Final

from mcpkit.errors import SetupError
from mcpkit.stores.base import TaskRecord
from mcpkit.stores.sqlite import SQLiteTaskStore
from tests.stores.records import task

ROOT: Final = Path(__file__).parent.parent.parent
PATIENCE: Final = 60
"""Seconds after which who waits for a process gives up."""

# A bare package, so that the process need not import the whole framework.
_MAIN: Final = """
import sys, types
package = types.ModuleType("mcpkit")
package.__path__ = ["mcpkit"]
sys.modules["mcpkit"] = package
from tests.stores import worker
worker.run(*sys.argv[1:])
"""


def start(
    does: Callable[..., None], path: Path, *arguments: str
) -> subprocess.Popen[str]:
    """Start a process that does one of the things below to the store of a file."""
    return subprocess.Popen(  # noqa: S603 - it is our own
        [sys.executable, "-c", _MAIN, does.__name__, str(path), *arguments],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        encoding="utf-8",
    )


def run(name: str, path: str, *arguments: str) -> None:
    """Do one of the below. Nothing closes the store, so the process ends without."""
    does: Callable[..., None] = globals()[name]
    does(SQLiteTaskStore(path), *arguments)


def made(name: str, number: int, revision: int) -> TaskRecord:
    """Return a task of `write`, at one of its revisions; some fill several pages."""
    message = f"{name} {revision} " * (1 + number * 397 % 2000)
    return task(f"{name} {number}", message=message, revision=revision)


def _tell(*values: object) -> None:
    sys.stdout.write(" ".join(map(str, values)) + "\n")
    sys.stdout.flush()


def write(store: SQLiteTaskStore, name: str, count: str) -> None:
    """Add tasks and write each once more, with a line for each time."""

    async def go() -> None:
        for number in range(int(count)):
            await store.add(made(name, number, 0))
            _tell(number, 0)
            assert await store.replace(made(name, number, 1), 0)
            _tell(number, 1)

    asyncio.run(go())


def compare(store: SQLiteTaskStore, count: str) -> None:
    """Try to add one to a number so many times, and print how often it was done.

    It begins when it is sent a line, for which it asks with one.
    """

    async def go() -> None:
        await store.get("t")
        _tell("ready")
        sys.stdin.readline()
        done = 0
        for _ in range(int(count)):
            found = await store.get("t")
            assert found is not None
            assert found.journal is not None
            journal = {"n": found.journal["n"] + 1}
            done += await store.replace(replace(found, journal=journal), found.revision)
        _tell(done)

    asyncio.run(go())


def fill(store: SQLiteTaskStore) -> None:
    """Add tasks to a disk that has little room, then to one that has more.

    It prints how many were kept, what the next one failed with, and what was kept
    when there was room again.
    """

    async def go() -> None:
        await store.get("t")
        _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, hard))
        kept = 0
        try:
            for number in range(100):
                await store.add(made("fill", number, 0))
                kept += 1
        except sqlite3.OperationalError as error:
            _tell(kept, error.sqlite_errorname)
        resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
        await store.add(made("fill", kept, 0))
        _tell(await store.count(None))

    asyncio.run(go())


def fork(store: SQLiteTaskStore) -> None:
    """Use the store in children: before the first use, after it, and after a close."""

    def forked() -> None:
        process = os.fork()
        if process:
            os.waitpid(process, 0)
            return
        signal.alarm(PATIENCE // 2)
        try:
            _tell("child:", asyncio.run(store.count(None)))
        except SetupError as error:
            _tell("child:", str(error).replace(str(store.path), "it"))
        store.close()
        os._exit(0)

    forked()
    asyncio.run(store.add(task()))
    forked()
    asyncio.run(store.add(task("t2")))
    _tell("parent:", asyncio.run(store.count(None)))
    store.close()
    forked()
    _tell("parent:", asyncio.run(store.count(None)))
