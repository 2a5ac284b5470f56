"""One task while a worker runs it: what it writes to the store, asks and is told."""

import asyncio
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, Final

from mcpkit.context import Context
from mcpkit.errors import MCPKitError
from mcpkit.protocol.inputs import Journal
from mcpkit.stores.base import TERMINAL, Status, TaskRecord, TaskStore

PROGRESS_EVERY: Final = 0.5
"""How often, in seconds, progress is written to the store at most."""


class LostError(MCPKitError):
    """The task is another worker's by now, or has ended: nothing may be written."""


class TaskRun:
    """A task that this worker runs.

    Args:
        record: How it stands.
        store: Where it is kept.
        changed: Called with the id of the task after each change.

    Attributes:
        record: How it stood when it was written or read last.
        work: What runs it.
        context: Its request.
    """

    def __init__(
        self, record: TaskRecord, store: TaskStore, changed: Callable[[str], None]
    ) -> None:
        self.record = record
        self.work: asyncio.Task[None] | None = None
        self.context: Context | None = None
        self._store = store
        self._changed = changed
        self._told = asyncio.Event()
        self._reported = 0.0

    async def change(self, edit: Callable[[TaskRecord], TaskRecord]) -> None:
        """Change the record in the store, as long as the task is this worker's.

        Raises:
            LostError: It is not, or has ended.
        """
        while True:
            record = self.record
            edited = replace(edit(record), updated=time.time())
            if await self._store.replace(edited, record.revision):
                self.record = replace(edited, revision=record.revision + 1)
                self._changed(record.task_id)
                return
            # Somebody answered or cancelled it, or took it over.
            await self.read()

    async def read(self) -> None:
        """Read how the task stands, and take note of what others wrote.

        Raises:
            LostError: It is another worker's, or has ended.
        """
        record = await self._store.get(self.record.task_id)
        if record is None or record.worker != self.record.worker:
            raise LostError(f"the task {self.record.task_id} is another worker's")
        if record.status in TERMINAL:
            raise LostError(f"the task {self.record.task_id} has ended")
        self.record = record
        self._told.set()
        if record.cancelling:
            self.cancel()

    def cancel(self) -> None:
        """Stop the handler; one in a thread is told."""
        if self.context is not None and not self.context.cancelled:
            self.context.cancel()
            if self.work is not None:
                self.work.cancel()

    async def ask(
        self, requests: Mapping[str, Any], journal: Journal
    ) -> dict[str, Any]:
        """Ask the client, and wait for its answers.

        Args:
            requests: Input requests, under keys that no other question had.
            journal: What was asked, answered and done.

        Raises:
            LostError: The task is another worker's.
        """
        await self.change(lambda record: _asking(record, requests, journal))
        answers: dict[str, Any] = {}
        while len(answers) < len(requests):
            self._told.clear()
            taken = {
                key: answer
                for key, answer in self.record.answered.items()
                if key in requests
            }
            if taken:
                await self.change(partial(_without, taken=taken))
                answers |= taken
            else:
                await self._told.wait()
        return answers

    async def save(self, journal: Journal) -> None:
        """Keep what was asked, answered and done.

        Raises:
            LostError: The task is another worker's.
        """
        dumped = journal.dump()
        await self.change(lambda record: replace(record, journal=dumped))

    async def report(
        self, progress: float, total: float | None, message: str | None
    ) -> None:
        """Make progress the message of the task. What comes too soon is dropped."""
        now = time.monotonic()
        if now - self._reported < PROGRESS_EVERY:
            return
        self._reported = now
        amount = f"{progress:g}" if total is None else f"{progress:g} of {total:g}"
        text = amount if message is None else message
        await self.change(lambda record: replace(record, message=text))


def _asking(
    record: TaskRecord, requests: Mapping[str, Any], journal: Journal
) -> TaskRecord:
    """Return a record that asks; what was answered already is not asked again."""
    new = {key: it for key, it in requests.items() if key not in record.answered}
    asked = {**record.asked, **new}
    status: Status = "input_required" if asked else "working"
    return replace(record, status=status, asked=asked, journal=journal.dump())


def _without(record: TaskRecord, taken: Mapping[str, Any]) -> TaskRecord:
    answered = {key: it for key, it in record.answered.items() if key not in taken}
    return replace(record, answered=answered)
