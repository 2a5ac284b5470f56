"""What is kept of a task, and what runs tasks needs of a store of them.

A task is written whole, by whoever knows its revision, which each write raises by one.
That is all that keeps workers apart: one that lost its task knows an old revision, and
loses every write from then on. A worker holds a task until its lease is over, and sets
the lease anew in the meantime, which is no revision.

    held         not ended, `worker` is set
    abandoned    held, and `lease` is over
    overdue      not ended, and `created + ttl` is over
    expired      ended, and `created + ttl` is over

A time is over from that very moment on: `over <= now`. All times are in seconds since
the epoch, so that the workers and what comes after a restart agree on them; durations
are in seconds, save for `poll_ms`.

Spec ext-tasks, tasks: Tasks, Task Creation, Task Polling.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Final, Literal, Protocol, TypeAlias

from mcpkit.protocol.jsonrpc import encode, encode_result

Status: TypeAlias = Literal[
    "working", "input_required", "completed", "failed", "cancelled"
]
"""The states of a task, as on the wire."""

TERMINAL: Final[frozenset[Status]] = frozenset({"completed", "failed", "cancelled"})
"""The states of a task that has ended. It changes no more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskRecord:
    """One task, as it is at one revision.

    Its values are kept in their JSON form, the one that `jsonrpc.encode_result` sends:
    a tuple comes back as a list, a date as a string, and an integer of more than 4300
    digits, which hardly anybody reads, as infinite.

    Attributes:
        task_id: Names the task. Whoever makes it sees to its being hard to guess.
        owner: Who may see it. `None` when nobody is asked who they are.
        method: The method of the request that became the task.
        request: What is run, with all that is needed to run it again.
        status: Where it is.
        message: Tells a person where it is.
        created: When it was made, in seconds since the epoch.
        updated: When a client would last have seen it change, in the same seconds.
        ttl: For how long after `created` it is kept, in seconds. `None` for ever.
        poll_ms: How long a client should wait between two looks, in milliseconds.
        result: What the request came to, of a completed task.
        error: The JSON-RPC error of a failed task: code, message, data.
        asked: The input requests that wait for an answer, by their key.
        answered: The input responses that came and were not taken yet, by that key.
        journal: What a run that starts anew has of the one before it.
        resumable: Whether another worker may run it again.
        worker: Who runs it.
        lease: Until when that worker holds it, in seconds since the epoch; 0 when
            nobody does.
        cancelling: Whether its client wants it to end.
        revision: How often it was replaced.
    """

    task_id: str
    owner: str | None
    method: str
    request: Mapping[str, Any]
    status: Status = "working"
    message: str | None = None
    created: float
    updated: float
    ttl: float | None = None
    poll_ms: int | None = None
    result: Mapping[str, Any] | None = None
    error: Mapping[str, Any] | None = None
    asked: Mapping[str, Any] = field(default_factory=dict)
    answered: Mapping[str, Any] = field(default_factory=dict)
    journal: Mapping[str, Any] | None = None
    resumable: bool = False
    worker: str | None = None
    lease: float = 0.0
    cancelling: bool = False
    revision: int = 0

    @property
    def key(self) -> str:
        """Its place in the order of creation, which outlives it."""
        return f"{self.created!r} {self.task_id}"


class TaskStore(Protocol):
    """Keeps tasks, for all workers that are given the same store.

    Whoever asks after a change has returned, in any worker, sees it. A caller that is
    cancelled while it waits for a change does not learn whether it was made.

    Any method may raise what the place where tasks are kept raises: a disk that is
    full, a file that is broken. Nothing was changed then.
    """

    async def add(self, record: TaskRecord, most: int | None = None) -> bool:
        """Keep a new task, at the revision that it has.

        When it returns, the task outlives the process, as far as the store outlives
        anything.

        Args:
            record: The task.
            most: How many tasks of its owner may be under way, with this one. `None`
                for any number.

        Returns:
            Whether it is kept. When not, there are so many already.

        Raises:
            ValueError: There is a task of this id, or a value has no JSON form.
        """

    async def get(self, task_id: str) -> TaskRecord | None:
        """Return a task, ended or not, or `None` when there is none."""

    async def replace(self, record: TaskRecord, revision: int) -> bool:
        """Write a task, if nobody else has since it was read.

        It is kept at `revision + 1`, whatever revision the record has. While its worker
        stays the same, its lease is the later of the one kept and the record's, so that
        a copy from before a `renew` does not undo it.

        Args:
            record: The task from now on.
            revision: The revision that the caller knows.

        Returns:
            Whether the task was at that revision. When not, or when it is gone, nothing
            has changed.

        Raises:
            ValueError: A value has no JSON form.
        """

    async def renew(
        self, worker: str, lease: float, task_ids: Sequence[str]
    ) -> Mapping[str, int]:
        """Hold tasks for longer, without a new revision.

        A lease that is over can be renewed until somebody else has taken the task.

        Args:
            worker: Who holds them.
            lease: Until when, in seconds since the epoch.
            task_ids: The tasks that the worker believes it holds.

        Returns:
            Of those that it does hold, the revision by id: an unknown one tells that
            somebody has cancelled or answered the task. The others it has lost: they
            have ended, are gone, or are another worker's.
        """

    async def abandoned(self, now: float, limit: int) -> list[TaskRecord]:
        """Return tasks whose worker let the lease run out, the longest ago first."""

    async def overdue(self, now: float, limit: int) -> list[TaskRecord]:
        """Return tasks that have not ended in their time, the longest ago first.

        They are not removed: clients are told that a task has failed.
        """

    async def remove_expired(self, now: float, limit: int) -> list[str]:
        """Remove tasks that have ended and were kept for their time.

        Returns:
            The ids of those removed, which were over the longest; `limit` at most.
        """

    async def owned(
        self, owner: str | None, after: str | None, limit: int
    ) -> list[TaskRecord]:
        """Return the tasks of an owner, ended or not, in the order of creation.

        Args:
            owner: Whose. `None` for those without an owner, and no others.
            after: The `key` of the task after which to begin, there or not. `None`
                for the first.
            limit: How many at most.

        Raises:
            ValueError: `after` is not a key.
        """

    async def count(self, owner: str | None) -> int:
        """Count the tasks of an owner that have not ended; of all for `None`."""

    def close(self) -> None:
        """Let go of the place where tasks are kept, when what was begun is done.

        From any thread. Whoever uses the store afterwards opens it anew.
        """


Row: TypeAlias = dict[str, Any]
"""The fields of a task by name, those that are JSON as text: what a store keeps."""

_JSON: Final = (
    "message",
    "request",
    "result",
    "error",
    "asked",
    "answered",
    "journal",
)
_NAMES: Final = tuple(each.name for each in fields(TaskRecord))

_MAX_DIGITS: Final = 4300
"""How many digits an integer may have that Python reads, unless it is told to."""


def encode_record(record: TaskRecord) -> Row:
    """Return what is to be kept of a task, which shares nothing with it.

    Raises:
        ValueError: A value has no JSON form.
    """
    row = {name: getattr(record, name) for name in _NAMES}
    row.update((name, _text(row[name])) for name in _JSON if row[name] is not None)
    return row


def decode_record(row: Mapping[str, Any]) -> TaskRecord:
    """Return the task of which something was kept."""
    values = {name: row[name] for name in _NAMES}
    values.update(
        (name, _value(values[name])) for name in _JSON if values[name] is not None
    )
    values["resumable"] = bool(values["resumable"])
    values["cancelling"] = bool(values["cancelling"])
    return TaskRecord(**values)


def position(key: str) -> tuple[float, str]:
    """Return when the task of a key was created, and its id.

    Raises:
        ValueError: It is not the key of a task.

    Example:
        >>> position("1750000000.5 4f1c")
        (1750000000.5, '4f1c')
    """
    created, _, task_id = key.partition(" ")
    return float(created), task_id


def _text(value: str | Mapping[str, Any]) -> str:
    encoded = encode(value) if isinstance(value, str) else encode_result(dict(value))
    return encoded.decode()


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        # One task that can't be read would stand in the way of every sweep.
        return json.loads(text, parse_int=_number)


def _number(digits: str) -> float:
    is_read = len(digits.removeprefix("-")) <= _MAX_DIGITS
    return int(digits) if is_read else float(digits)
