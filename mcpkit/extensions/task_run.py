"""One task while a worker runs it: what it writes to the store, asks and is told."""

import asyncio
import logging
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

POLLS: Final = 2
"""How many times a client may look at what became of a task, at least."""

_SHOWN: Final = ("status", "message", "asked", "result", "error")
"""What of a task its client sees change."""

_logger: Final = logging.getLogger("mcpkit")


class LostError(MCPKitError):
    """The task is another worker's by now, or has ended: nothing may be written."""


class TaskRun:
    """A task that this worker runs.

    Args:
        record: How it stands.
        store: Where it is kept.
        context: Its request.
        changed: Called with the task after each change that its client sees.

    Attributes:
        record: How it stood when it was written or read last.
        context: Its request, until nothing runs it here any more.
        work: What runs it.
        is_over: The handler has ended, and is not to be stopped any more.
    """

    work: asyncio.Task[None]

    def __init__(
        self,
        record: TaskRecord,
        store: TaskStore,
        context: Context,
        changed: Callable[[TaskRecord], None],
    ) -> None:
        self.record = record
        self.context = context
        self.is_over = False
        self._store = store
        self._changed = changed
        self._stops = False
        self._told = asyncio.Event()
        self._taken: set[str] = set()
        self._text: str | None = None
        self._reported = float("-inf")
        self._timer: asyncio.TimerHandle | None = None
        self._reporting: asyncio.Task[None] | None = None

    async def change(self, edit: Callable[[TaskRecord], TaskRecord]) -> None:
        """Change the record in the store, as long as the task is this worker's.

        Raises:
            LostError: It is not, or has ended.
            ValueError: A value has no JSON form.
        """
        while True:
            record = self.record
            if record.status in TERMINAL or not record.worker:
                raise LostError(f"the task {record.task_id} is over here")
            edited = edit(record)
            is_seen = is_seen_in(record, edited)
            if is_seen:
                edited = stamped(edited, time.time())
            if await self._store.replace(edited, record.revision):
                self.record = replace(edited, revision=record.revision + 1)
                if is_seen:
                    self._changed(self.record)
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
        self.record = record
        if record.status in TERMINAL:
            raise LostError(f"the task {self.record.task_id} has ended")
        self._told.set()
        if record.cancelling:
            self.cancel()

    def cancel(self) -> None:
        """Stop the handler; one in a thread is told."""
        if self.is_over or self.context.cancelled:
            return
        self.context.cancel()
        # Later, since it may not have begun, and could not say how it ended then.
        self.work.get_loop().call_soon(self._stop)

    async def stop(self) -> None:
        """Stop the handler, after what it does once and has begun."""
        if self.is_over:
            return
        self.context.cancel()
        conversation = self.context.conversation
        assert conversation is not None  # noqa: S101  # each task has one
        await conversation.finish()
        self.work.get_loop().call_soon(self._stop)

    def end(self) -> None:
        """Note that the handler has ended."""
        self.is_over = True
        if self._timer is not None:
            self._timer.cancel()

    async def ask(
        self, requests: Mapping[str, Any], journal: Journal
    ) -> dict[str, Any]:
        """Ask the client, and wait for its answers.

        They stay in the store until `save` has written what became of them.

        Args:
            requests: Input requests, under keys that no other question had.
            journal: What was asked, answered and done.
        """
        text = self._text
        edit = partial(_asking, requests=requests, journal=journal, text=text)
        await self._write(edit)
        while True:
            self._told.clear()
            answered = self.record.answered
            if requests.keys() <= answered.keys():
                break
            await self._told.wait()
        self._taken |= requests.keys()
        return {key: answered[key] for key in requests}

    async def save(self, journal: Journal) -> None:
        """Keep what was asked, answered and done."""
        await self._write(partial(_saved, journal=journal, taken=self._taken))

    async def report(
        self, progress: float, total: float | None, message: str | None
    ) -> None:
        """Make progress the message of the task, at most so often."""
        amount = f"{progress:g}" if total is None else f"{progress:g} of {total:g}"
        self._text = amount if message is None else message
        wait = self._reported + PROGRESS_EVERY - time.monotonic()
        if wait <= 0:
            await self._tell()
        elif self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(wait, self._tell_later)

    def _stop(self) -> None:
        # What cleans up is not broken off.
        if not (self.is_over or self._stops):
            self.work.cancel()

    async def _write(self, edit: Callable[[TaskRecord], TaskRecord]) -> None:
        """Change the record for the handler, which is stopped when that can't be.

        Raises:
            CancelledError: The task is another worker's, or has ended.
        """
        try:
            await self.change(edit)
        except LostError:
            if asyncio.current_task() is self.work:
                # It stops here, and need not be told.
                self._stops = True
                self.context.cancel()
            self.cancel()
            raise asyncio.CancelledError from None

    async def _tell(self) -> None:
        self._reported = time.monotonic()
        text = self._text
        if text == self.record.message:
            return
        try:
            await self._write(lambda record: replace(record, message=text))
        # Work does not fail because nobody can be told how far it has come.
        except Exception:
            _logger.exception("the progress of a task can't be kept")

    def _tell_later(self) -> None:
        self._timer = None
        self._reporting = self.work.get_loop().create_task(self._tell())


def stamped(record: TaskRecord, now: float) -> TaskRecord:
    """Return a record that was changed now, in a way that its client sees.

    Args:
        record: The record.
        now: The time, in seconds since the epoch.
    """
    ttl = record.ttl
    if ttl is not None and record.status in TERMINAL:
        looks = POLLS * (record.poll_ms or 0) / 1000
        ttl = max(ttl, now - record.created + looks)
    return replace(record, updated=now, ttl=ttl)


def is_seen_in(before: TaskRecord, after: TaskRecord) -> bool:
    """Whether a client sees the difference between two states of a task."""
    return any(getattr(before, name) != getattr(after, name) for name in _SHOWN)


def _asking(
    record: TaskRecord,
    requests: Mapping[str, Any],
    journal: Journal,
    text: str | None,
) -> TaskRecord:
    """Return a record that asks; what was answered already is not asked again."""
    asked = {
        # What an earlier run asked stands, until this one turns out not to ask it.
        **{key: it for key, it in record.asked.items() if journal.asked.get(key)},
        **{key: it for key, it in requests.items() if key not in record.answered},
    }
    status: Status = "input_required" if asked else "working"
    return replace(
        record,
        status=status,
        # Whoever is asked knows how far it has come.
        message=record.message if text is None else text,
        asked=asked,
        journal=journal.dump(),
    )


def _saved(record: TaskRecord, journal: Journal, taken: set[str]) -> TaskRecord:
    answered = {key: it for key, it in record.answered.items() if key not in taken}
    return replace(record, answered=answered, journal=journal.dump())
