"""The default store of tasks: the memory of one process."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from heapq import heappop, heappush, nsmallest
from threading import Lock
from typing import Any, Final

from mcpkit.stores.base import (
    TERMINAL,
    Row,
    TaskRecord,
    decode_record,
    encode_record,
    position,
)

_START: Final = (float("-inf"), "")


class MemoryTaskStore:
    """Keeps tasks in a dictionary, for as long as the process lives.

    It has no bound of its own: whoever adds tasks counts them, and removes those that
    have expired. Threads and event loops may share it.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._rows: dict[str, Row] = {}
        # Those are looked through every other second: the others, of which there may
        # be a thousand times as many, are not.
        self._unended: dict[str, Row] = {}
        # When those that have ended are due, the earliest first.
        self._due: list[tuple[float, str]] = []
        # Asked for whenever a task is made, so it is not counted each time.
        self._counts: Counter[str | None] = Counter()

    async def add(self, record: TaskRecord, most: int | None = None) -> bool:
        """Keep a new task: see `TaskStore.add`."""
        row = encode_record(record)
        with self._lock:
            if record.task_id in self._rows:
                raise ValueError("there is a task of this id already")
            if most is not None and self._counts[record.owner] >= most:
                return False
            self._put(row)
            return True

    async def get(self, task_id: str) -> TaskRecord | None:
        """Return a task, ended or not, or `None` when there is none."""
        with self._lock:
            row = self._rows.get(task_id)
            return None if row is None else decode_record(row)

    async def replace(self, record: TaskRecord, revision: int) -> bool:
        """Write a task that is at this revision still: see `TaskStore.replace`."""
        row = encode_record(record) | {"revision": revision + 1}
        with self._lock:
            kept = self._rows.get(record.task_id)
            if kept is None or kept["revision"] != revision:
                return False
            if kept["worker"] == record.worker:
                row["lease"] = max(kept["lease"], record.lease)
            self._drop(record.task_id)
            self._put(row)
            return True

    async def renew(
        self, worker: str, lease: float, task_ids: Sequence[str]
    ) -> Mapping[str, int]:
        """Hold tasks for longer: see `TaskStore.renew`."""
        with self._lock:
            held = [
                row
                for row in map(self._rows.get, task_ids)
                if row and row["worker"] == worker and not _has_ended(row)
            ]
            for row in held:
                row["lease"] = lease
            return {row["task_id"]: row["revision"] for row in held}

    async def abandoned(self, now: float, limit: int) -> list[TaskRecord]:
        """Return tasks whose worker let the lease run out, the longest ago first."""
        return self._first(
            limit,
            lambda row: (row["lease"], row["task_id"]),
            lambda row: row["worker"] is not None and row["lease"] <= now,
            self._unended,
        )

    async def overdue(self, now: float, limit: int) -> list[TaskRecord]:
        """Return tasks that have not ended in their time, the longest ago first."""
        return self._first(limit, _due, lambda row: _is_due(row, now), self._unended)

    async def remove_expired(self, now: float, limit: int) -> list[str]:
        """Remove tasks that have ended and were kept for their time."""
        removed: list[str] = []
        with self._lock:
            while len(removed) < limit and self._due and self._due[0][0] <= now:
                due = heappop(self._due)
                row = self._rows.get(due[1])
                # It may have been written anew since.
                if row is not None and _has_ended(row) and _due(row) == due:
                    self._drop(due[1])
                    removed.append(due[1])
        return removed

    async def owned(
        self, owner: str | None, after: str | None, limit: int
    ) -> list[TaskRecord]:
        """Return the tasks of an owner in order: see `TaskStore.owned`."""
        start = _START if after is None else position(after)
        return self._first(
            limit,
            _place,
            lambda row: row["owner"] == owner and _place(row) > start,
            self._rows,
        )

    async def count(self, owner: str | None) -> int:
        """Count the tasks of an owner that have not ended; of all for `None`."""
        with self._lock:
            return len(self._unended) if owner is None else self._counts[owner]

    def close(self) -> None:
        """Do nothing: what is kept in memory is kept on."""

    def _put(self, row: Row) -> None:
        self._rows[row["task_id"]] = row
        if not _has_ended(row):
            self._unended[row["task_id"]] = row
            self._counts[row["owner"]] += 1
        elif row["ttl"] is not None:
            heappush(self._due, _due(row))

    def _drop(self, task_id: str) -> None:
        row = self._rows.pop(task_id)
        if self._unended.pop(task_id, None) is None:
            return
        self._counts[row["owner"]] -= 1
        if not self._counts[row["owner"]]:
            del self._counts[row["owner"]]

    def _first(
        self,
        limit: int,
        order: Callable[[Row], Any],
        wanted: Callable[[Row], bool],
        rows: Mapping[str, Row],
    ) -> list[TaskRecord]:
        with self._lock:
            found = nsmallest(limit, filter(wanted, rows.values()), order)
            return [decode_record(row) for row in found]


def _has_ended(row: Row) -> bool:
    return row["status"] in TERMINAL


def _is_due(row: Row, now: float) -> bool:
    return row["ttl"] is not None and row["created"] + row["ttl"] <= now


def _due(row: Row) -> tuple[float, str]:
    return row["created"] + row["ttl"], row["task_id"]


def _place(row: Row) -> tuple[float, str]:
    return row["created"], row["task_id"]
