"""Tasks in one file, which the workers of a machine share and a restart does not lose.

The file is in the mode of a write-ahead log: who reads does not wait for who writes,
and writers wait for each other. A change is synced to the disk before it returns, so
that one which was told to a client survives a loss of power, as far as the disk keeps
its word. The disk must be of this machine: over a network the log can't be shared.

The row of a task is its fields. Those that are JSON are text; `ended` is derived from
`status`, for the indexes.
"""

import asyncio
import os
import sqlite3
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from pathlib import Path
from queue import SimpleQueue
from threading import Lock, Thread
from typing import Any, Final, TypeAlias, TypeVar

from mcpkit.errors import SetupError
from mcpkit.stores.base import (
    TERMINAL,
    TaskRecord,
    decode_record,
    encode_record,
    position,
)

_T = TypeVar("_T")
_Call: TypeAlias = tuple[Callable[[sqlite3.Connection], Any], Future[Any]]

_PATIENCE: Final = 10.0
"""How long a change waits for the changes of other workers, in seconds."""

_APPLICATION: Final = int.from_bytes(b"mcpk")
"""Tells that a file is one of ours: the `application_id` of SQLite."""

_VERSION: Final = 1
"""The version of the tables: the `user_version` of SQLite."""

_TABLES: Final = (
    """
    CREATE TABLE tasks (
        task_id TEXT NOT NULL PRIMARY KEY,
        owner TEXT,
        method TEXT NOT NULL,
        request TEXT NOT NULL,
        status TEXT NOT NULL,
        message TEXT,
        created REAL NOT NULL,
        updated REAL NOT NULL,
        ttl REAL,
        poll_ms INTEGER,
        result TEXT,
        error TEXT,
        asked TEXT NOT NULL,
        answered TEXT NOT NULL,
        journal TEXT,
        resumable INTEGER NOT NULL,
        worker TEXT,
        lease REAL NOT NULL,
        cancelling INTEGER NOT NULL,
        revision INTEGER NOT NULL,
        ended INTEGER NOT NULL
    )
    """,
    """
    CREATE INDEX tasks_held ON tasks (ended, lease, task_id)
    WHERE ended = 0 AND worker IS NOT NULL
    """,
    "CREATE INDEX tasks_due ON tasks (ended, created + ttl, task_id)",
    "CREATE INDEX tasks_owned ON tasks (owner, created, task_id)",
    "CREATE INDEX tasks_unended ON tasks (ended, owner) WHERE ended = 0",
    f"PRAGMA application_id = {_APPLICATION}",
    f"PRAGMA user_version = {_VERSION}",
)

_ADD: Final = """
    INSERT INTO tasks VALUES (
        :task_id, :owner, :method, :request, :status, :message, :created, :updated,
        :ttl, :poll_ms, :result, :error, :asked, :answered, :journal, :resumable,
        :worker, :lease, :cancelling, :revision, :ended
    )
    ON CONFLICT (task_id) DO NOTHING
"""

_GET: Final = "SELECT * FROM tasks WHERE task_id = ?"

_REPLACE: Final = """
    UPDATE tasks SET
        owner = :owner, method = :method, request = :request, status = :status,
        message = :message, created = :created, updated = :updated, ttl = :ttl,
        poll_ms = :poll_ms, result = :result, error = :error, asked = :asked,
        answered = :answered, journal = :journal, resumable = :resumable,
        worker = :worker,
        lease = CASE WHEN worker IS :worker THEN max(lease, :lease) ELSE :lease END,
        cancelling = :cancelling, revision = :revision + 1, ended = :ended
    WHERE task_id = :task_id AND revision = :revision
"""

_HELD: Final = """
    SELECT revision FROM tasks WHERE task_id = ? AND worker = ? AND ended = 0
"""

_RENEW: Final = "UPDATE tasks SET lease = ? WHERE task_id = ?"

_ABANDONED: Final = """
    SELECT * FROM tasks
    WHERE ended = 0 AND worker IS NOT NULL AND lease <= :now
    ORDER BY lease, task_id LIMIT :limit
"""

_OVERDUE: Final = """
    SELECT * FROM tasks WHERE ended = 0 AND created + ttl <= :now
    ORDER BY created + ttl, task_id LIMIT :limit
"""

_EXPIRED: Final = """
    SELECT task_id FROM tasks WHERE ended = 1 AND created + ttl <= :now
    ORDER BY created + ttl, task_id LIMIT :limit
"""

_REMOVE: Final = "DELETE FROM tasks WHERE task_id = ?"

_OWNED: Final = """
    SELECT * FROM tasks
    WHERE owner IS :owner AND (created, task_id) > (:created, :task_id)
    ORDER BY created, task_id LIMIT :limit
"""

_COUNT: Final = "SELECT count(*) FROM tasks WHERE ended = 0 AND owner IS ?"

_COUNT_ALL: Final = "SELECT count(*) FROM tasks WHERE ended = 0"


_WHAT_IT_IS: Final = """
    SELECT application_id, user_version, (SELECT count(*) FROM sqlite_master)
    FROM pragma_application_id, pragma_user_version
"""


class SQLiteTaskStore:
    """Keeps tasks in a file, for any number of processes, threads and event loops.

    It opens the file where it is first used, in two threads of its own: one that reads
    and one that writes. A process that is forked from one which uses the store can't
    use it; one that is spawned, or forked before the first use, opens the file anew.

    The first use raises `SetupError` when the file is not one of tasks, or was written
    by a newer version. What SQLite raises later passes: an `sqlite3.OperationalError`
    for a full disk, or for another worker that writes for longer than 10 seconds.

    Args:
        path: The file. It is made when there is none, for this user alone.

    Raises:
        SetupError: There can't be such a file.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path: Final = _checked(os.fspath(path))
        self._lock = Lock()
        self._process = 0
        self._lanes: tuple[_Lane, _Lane] | None = None

    async def add(self, record: TaskRecord, most: int | None = None) -> bool:
        """Keep a new task: see `TaskStore.add`."""
        row = _row(record)

        def add(connection: sqlite3.Connection) -> bool:
            if most is not None:
                counted = connection.execute(_COUNT, (record.owner,)).fetchone()[0]
                if counted >= most:
                    return False
            if connection.execute(_ADD, row).rowcount != 1:
                raise ValueError("there is a task of this id already")
            return True

        return await self._write(add)

    async def get(self, task_id: str) -> TaskRecord | None:
        """Return a task, ended or not, or `None` when there is none."""
        found = await self._select(_GET, (task_id,))
        return found[0] if found else None

    async def replace(self, record: TaskRecord, revision: int) -> bool:
        """Write a task that is at this revision still: see `TaskStore.replace`."""
        row = _row(record) | {"revision": revision}

        def replace(connection: sqlite3.Connection) -> bool:
            return connection.execute(_REPLACE, row).rowcount == 1

        return await self._write(replace)

    async def renew(
        self, worker: str, lease: float, task_ids: Sequence[str]
    ) -> Mapping[str, int]:
        """Hold tasks for longer: see `TaskStore.renew`."""
        ids = tuple(task_ids)

        def renew(connection: sqlite3.Connection) -> dict[str, int]:
            held: dict[str, int] = {}
            for task_id in ids:
                for (revision,) in connection.execute(_HELD, (task_id, worker)):
                    held[task_id] = revision
            connection.executemany(_RENEW, [(lease, task_id) for task_id in held])
            return held

        return await self._write(renew)

    async def abandoned(self, now: float, limit: int) -> list[TaskRecord]:
        """Return tasks whose worker let the lease run out, the longest ago first."""
        return await self._select(_ABANDONED, {"now": now, "limit": limit})

    async def overdue(self, now: float, limit: int) -> list[TaskRecord]:
        """Return tasks that have not ended in their time, the longest ago first."""
        return await self._select(_OVERDUE, {"now": now, "limit": limit})

    async def remove_expired(self, now: float, limit: int) -> list[str]:
        """Remove tasks that have ended and were kept for their time."""

        def remove(connection: sqlite3.Connection) -> list[str]:
            rows = connection.execute(_EXPIRED, {"now": now, "limit": limit})
            expired = [row["task_id"] for row in rows]
            connection.executemany(_REMOVE, [(task_id,) for task_id in expired])
            return expired

        return await self._write(remove)

    async def owned(
        self, owner: str | None, after: str | None, limit: int
    ) -> list[TaskRecord]:
        """Return the tasks of an owner in order: see `TaskStore.owned`."""
        created, task_id = (float("-inf"), "") if after is None else position(after)
        start = {"created": created, "task_id": task_id}
        return await self._select(_OWNED, {"owner": owner, "limit": limit} | start)

    async def count(self, owner: str | None) -> int:
        """Count the tasks of an owner that have not ended; of all for `None`."""
        asked = (_COUNT_ALL, ()) if owner is None else (_COUNT, (owner,))

        def count(connection: sqlite3.Connection) -> int:
            counted: int = connection.execute(*asked).fetchone()[0]
            return counted

        return await self._read(count)

    def close(self) -> None:
        """Close the file, when what was begun is done.

        It waits for that, from any thread. Whoever uses the store afterwards opens the
        file anew.
        """
        with self._lock:
            if self._process != os.getpid():
                return
            lanes, self._lanes = self._lanes or (), None
        for lane in lanes:
            lane.end()

    async def _select(
        self, statement: str, values: tuple[Any, ...] | dict[str, Any]
    ) -> list[TaskRecord]:
        def select(connection: sqlite3.Connection) -> list[TaskRecord]:
            # All rows first: one that is not read to its end keeps the log from
            # being cleared.
            rows = connection.execute(statement, values).fetchall()
            return [decode_record(dict(row)) for row in rows]

        return await self._read(select)

    async def _read(self, call: Callable[[sqlite3.Connection], _T]) -> _T:
        return await asyncio.wrap_future(self._put(0, call))

    async def _write(self, call: Callable[[sqlite3.Connection], _T]) -> _T:
        def write(connection: sqlite3.Connection) -> _T:
            with connection:
                connection.execute("BEGIN IMMEDIATE")
                return call(connection)

        return await asyncio.wrap_future(self._put(1, write))

    def _put(self, lane: int, call: Callable[[sqlite3.Connection], _T]) -> "Future[_T]":
        with self._lock:
            if self._lanes is None:
                self._lanes = (_Lane(self.path), _Lane(self.path))
                self._process = os.getpid()
            # SQLite knows of a file that is open in the parent, takes its locks for
            # locks of this process, and loses what either writes.
            if self._process != os.getpid():
                raise SetupError(
                    f"{self.path} was opened before this process was forked, and"
                    " can't be used in both: use the store after the fork for the"
                    " first time, close it before, or spawn processes instead"
                )
            return self._lanes[lane].put(call)


class _Lane:
    """A thread with a connection of its own, which makes one call after the other.

    It is a daemon, so that a process that ends does not wait for another that writes.

    Args:
        path: The file, which is opened at the first call.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._connection: sqlite3.Connection | None = None
        self._calls: SimpleQueue[_Call | None] = SimpleQueue()
        self._thread = Thread(target=self._serve, name="mcpkit-tasks", daemon=True)
        self._thread.start()

    def put(self, call: Callable[[sqlite3.Connection], _T]) -> "Future[_T]":
        """Return what will be the outcome of a call."""
        future: Future[_T] = Future()
        self._calls.put((call, future))
        return future

    def end(self) -> None:
        """Make the calls that were put, and no others."""
        self._calls.put(None)
        self._thread.join()

    def _serve(self) -> None:
        while (item := self._calls.get()) is not None:
            self._make(*item)
            del item
        if self._connection is not None:
            self._connection.close()

    def _make(
        self, call: Callable[[sqlite3.Connection], Any], future: "Future[Any]"
    ) -> None:
        if not future.set_running_or_notify_cancel():
            return
        try:
            if self._connection is None:
                self._connection = _open(self._path)
            outcome = call(self._connection)
        # Whatever it is, it is for the caller, and the thread goes on.
        except BaseException as error:  # noqa: BLE001
            future.set_exception(error)
        else:
            future.set_result(outcome)


def _row(record: TaskRecord) -> dict[str, Any]:
    return encode_record(record) | {"ended": record.status in TERMINAL}


def _checked(path: str) -> Path:
    if path in ("", ":memory:") or path.startswith("file:"):
        raise SetupError(
            f"SQLiteTaskStore({path!r}): the path of a file is needed, which the"
            " workers share; MemoryTaskStore keeps tasks in memory"
        )
    # As of now: what changes the directory later does not change the file.
    file = Path(path).absolute()
    if file.is_dir():
        raise SetupError(f"SQLiteTaskStore: {file} is a directory, and not a file")
    if not file.parent.is_dir():
        raise SetupError(
            f"SQLiteTaskStore: there is no directory {file.parent}; make it first"
        )
    return file


def _open(path: Path) -> sqlite3.Connection:
    """Open the file, and make what it must have.

    Raises:
        SetupError: It is not a file of tasks, or one of a newer version.
    """
    is_new = not path.exists()
    connection = sqlite3.connect(path, timeout=_PATIENCE, isolation_level=None)
    try:
        if is_new:
            # What goes with the file, such as its log, is made with the same mode.
            path.chmod(0o600)
        _prepare(connection, path)
    except BaseException:
        connection.close()
        raise
    connection.row_factory = sqlite3.Row
    return connection


def _prepare(connection: sqlite3.Connection, path: Path) -> None:
    with connection:
        connection.execute("BEGIN")
        has_tables = _has_tables(connection, path)
    if not has_tables:
        _make_tables(connection, path)
    _keep_a_log(connection)
    # NORMAL is three times as fast, at 0.07 ms a write where this takes 0.2, and may
    # lose the latest writes with the power, of which a client has been told.
    connection.execute("PRAGMA synchronous = FULL")


def _keep_a_log(connection: sqlite3.Connection) -> None:
    """Have writes go to a log first, so that nobody waits for them to read.

    The file stays so. SQLite waits for other connections in everything but this, so
    that it is tried again while another worker is at it.

    Raises:
        sqlite3.OperationalError: The file was locked for all of `_PATIENCE`.
    """
    deadline = time.monotonic() + _PATIENCE
    while connection.execute("PRAGMA journal_mode").fetchone()[0] != "wal":
        try:
            connection.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError:
            if time.monotonic() >= deadline:
                raise
            time.sleep(0.01)


def _has_tables(connection: sqlite3.Connection, path: Path) -> bool:
    """Tell whether a file has our tables, or is empty.

    Raises:
        SetupError: It is neither.
    """
    try:
        application, version, tables = connection.execute(_WHAT_IT_IS).fetchone()
    except sqlite3.DatabaseError as error:
        if error.sqlite_errorcode != sqlite3.SQLITE_NOTADB:
            raise
        application, version, tables = None, 0, 1
    if (application, version, tables) == (0, 0, 0):
        return False
    if application != _APPLICATION:
        raise SetupError(
            f"SQLiteTaskStore: {path} is not a file of tasks; give it one of its own"
        )
    if version > _VERSION:
        raise SetupError(
            f"SQLiteTaskStore: {path} was written by a newer mcpkit, and has tables of"
            f" version {version}; this one knows version {_VERSION}"
        )
    return True


def _make_tables(connection: sqlite3.Connection, path: Path) -> None:
    with connection:
        connection.execute("BEGIN IMMEDIATE")
        # Another worker may have made them in the meantime.
        if not _has_tables(connection, path):
            for statement in _TABLES:
                connection.execute(statement)
