"""Tasks in a file: several processes, those that are killed, and what goes wrong."""

import asyncio
import random
import signal
import sqlite3
import statistics
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, Final

import pytest

from mcpkit.errors import SetupError
from mcpkit.stores import sqlite
from mcpkit.stores.sqlite import (
    _ABANDONED,
    _ADD,
    _COUNT,
    _COUNT_ALL,
    _EXPIRED,
    _GET,
    _HELD,
    _OVERDUE,
    _OWNED,
    _REMOVE,
    _RENEW,
    _REPLACE,
    SQLiteTaskStore,
    _make_tables,
    _row,
)
from tests.stores import worker
from tests.stores.records import NOW, task
from tests.stores.worker import PATIENCE, made, start

SOON: Final = 5
"""Seconds within which who need not wait is done: half of how long a store waits."""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "tasks.db"


@pytest.fixture
def store(path: Path) -> Iterator[SQLiteTaskStore]:
    with closing(SQLiteTaskStore(path)) as opened:
        yield opened


@pytest.fixture
def direct(store: SQLiteTaskStore, path: Path) -> Iterator[sqlite3.Connection]:
    """The file of the store, as another process may have it open."""
    asyncio.run(store.count(None))
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        yield connection


def output(process: "subprocess.Popen[str]") -> list[str]:
    """Return the lines that a process prints until it ends well."""
    with process:
        try:
            printed, _ = process.communicate("\n", timeout=PATIENCE)
        finally:
            process.kill()
    assert process.returncode == 0
    return printed.splitlines()


# Several processes


def test_processes_that_come_at_once_make_one_file(path: Path) -> None:
    processes = [start(worker.write, path, str(n), "5") for n in range(6)]
    lines = [output(process) for process in processes]
    assert lines == [[f"{n} {revision}" for n in range(5) for revision in (0, 1)]] * 6
    with closing(SQLiteTaskStore(path)) as store:
        assert asyncio.run(store.count(None)) == 30


def test_each_write_that_succeeds_counts_once(
    path: Path, store: SQLiteTaskStore
) -> None:
    asyncio.run(store.add(task(journal={"n": 0})))
    processes = [start(worker.compare, path, "200") for _ in range(2)]
    for process in processes:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    done = sum(int(line) for process in processes for line in output(process))
    assert 200 <= done <= 400
    counted = task(journal={"n": done}, revision=done)
    assert asyncio.run(store.get("t")) == counted


def test_what_was_acknowledged_outlives_kills(tmp_path: Path) -> None:
    """Spec ext-tasks, tasks: Task Creation."""
    moments = random.Random(30)  # noqa: S311 - not for secrets
    acknowledged = 0
    for lap in range(10):
        # Every other lap begins without a file, and may be killed while it is made.
        path = tmp_path / f"{lap // 2}.db"
        names = [f"{lap}{letter}" for letter in "abc"]
        lines = _killed(path, names, moments)
        acknowledged += sum(map(len, lines.values()))
        with closing(SQLiteTaskStore(path)) as store:
            for name in names:
                asyncio.run(_check(store, name, lines[name]))
        with closing(sqlite3.connect(path)) as connection:
            assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    assert acknowledged > 100


def _killed(
    path: Path, names: list[str], moments: random.Random
) -> dict[str, list[str]]:
    """Return what processes have printed, which write until they are killed."""
    processes = [start(worker.write, path, name, "100000") for name in names]
    lines: dict[str, list[str]] = {}
    for process in processes:
        # It is the moment that is random, so it is not one after a certain line.
        time.sleep(moments.uniform(0.05, 0.4))
        process.kill()
    for name, process in zip(names, processes, strict=True):
        with process:
            printed, _ = process.communicate(timeout=PATIENCE)
        assert process.returncode == -signal.SIGKILL
        # A last line that was cut off is none.
        lines[name] = printed.split("\n")[:-1]
    return lines


async def _check(store: SQLiteTaskStore, name: str, lines: list[str]) -> None:
    """Check that each task is whole, and as new as was acknowledged or newer."""
    known = {int(number): int(revision) for number, revision in map(str.split, lines)}
    # The one that was being written may be there, and none after it.
    for number in range(len(known) + 2):
        found = await store.get(f"{name} {number}")
        states = [made(name, number, n) for n in range(known.get(number, 0), 2)]
        assert found in (states if number in known else [*states, None])
        assert found is None or number <= len(known)


def test_a_child_opens_the_file_anew_and_never_shares_it(path: Path) -> None:
    told = (
        "child: it was opened before this process was forked, and can't be used in"
        " both: use the store after the fork for the first time, close it before, or"
        " spawn processes instead"
    )
    lines = output(start(worker.fork, path))
    assert lines == ["child: 0", told, "parent: 2", "child: 2", "parent: 2"]


def test_a_store_of_another_process_is_neither_used_nor_closed(
    store: SQLiteTaskStore, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As above, in the process whose coverage is measured."""
    asyncio.run(store.add(task()))
    with monkeypatch.context() as patch:
        patch.setattr("os.getpid", lambda: 1)
        with pytest.raises(SetupError, match="before this process was forked"):
            asyncio.run(store.get("t"))
        store.close()
    assert path.with_name("tasks.db-wal").exists()
    assert asyncio.run(store.get("t")) == task()


def test_who_finds_the_tables_made_meanwhile_makes_none(
    store: SQLiteTaskStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    def make_late(connection: sqlite3.Connection, path: Path) -> None:
        monkeypatch.undo()
        with closing(SQLiteTaskStore(path)) as another:
            asyncio.run(another.add(task()))
        _make_tables(connection, path)

    monkeypatch.setattr(sqlite, "_make_tables", make_late)
    assert asyncio.run(store.get("t")) == task()


# While others write


async def test_who_reads_does_not_wait_for_who_writes(
    store: SQLiteTaskStore, direct: sqlite3.Connection
) -> None:
    await store.add(task())
    direct.execute("BEGIN IMMEDIATE")
    direct.execute("UPDATE tasks SET method = 'x'")
    write = asyncio.create_task(store.replace(task(message="1"), 0))
    async with asyncio.timeout(SOON):
        assert await store.get("t") == task()
        assert await store.owned("ada", None, 1) == [task()]
        assert await store.count("ada") == 1
    assert not write.done()
    direct.execute("COMMIT")
    assert await write
    assert await store.get("t") == task(message="1", revision=1)


async def test_a_file_is_opened_while_others_write(
    store: SQLiteTaskStore, direct: sqlite3.Connection, path: Path
) -> None:
    await store.add(task())
    direct.execute("BEGIN IMMEDIATE")
    with closing(SQLiteTaskStore(path)) as another:
        async with asyncio.timeout(SOON):
            assert await another.get("t") == task()
    direct.execute("ROLLBACK")


async def test_who_waits_too_long_to_write_is_told(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite, "_PATIENCE", 0.01)
    with (
        closing(SQLiteTaskStore(path)) as store,
        closing(sqlite3.connect(path, isolation_level=None)) as direct,
    ):
        await store.add(task())
        direct.execute("BEGIN IMMEDIATE")
        with pytest.raises(sqlite3.OperationalError, match="database is locked"):
            await store.replace(task(message="1"), 0)
        direct.execute("ROLLBACK")
        assert await store.replace(task(message="2"), 0)


async def test_who_waits_too_long_to_open_is_told_and_may_try_again(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite, "_PATIENCE", 0.01)
    with (
        closing(SQLiteTaskStore(path)) as store,
        closing(sqlite3.connect(path, isolation_level=None)) as direct,
    ):
        direct.execute("BEGIN EXCLUSIVE")
        with pytest.raises(sqlite3.OperationalError, match="database is locked"):
            await store.get("t")
        direct.execute("ROLLBACK")
        assert await store.get("t") is None


async def test_a_write_whose_caller_is_gone_before_its_turn_is_not_made(
    store: SQLiteTaskStore, direct: sqlite3.Connection
) -> None:
    direct.execute("BEGIN IMMEDIATE")
    first = asyncio.create_task(store.add(task("1")))
    second = asyncio.create_task(store.add(task("2")))
    third = asyncio.create_task(store.add(task("3")))
    # One turn of the loop, in which each has put what it wants.
    await asyncio.sleep(0)
    second.cancel()
    await asyncio.wait([second])
    direct.execute("ROLLBACK")
    await asyncio.gather(first, third)
    found = await store.owned("ada", None, 9)
    assert [record.task_id for record in found] == ["1", "3"]


# Opening and closing


async def test_a_store_that_was_closed_has_done_what_was_begun(
    store: SQLiteTaskStore, path: Path
) -> None:
    before = set(threading.enumerate())
    adding = [asyncio.create_task(store.add(task(str(n)))) for n in range(20)]
    await asyncio.sleep(0)
    store.close()
    assert set(threading.enumerate()) <= before
    assert [each.name for each in path.parent.iterdir()] == [path.name]
    await asyncio.gather(*adding)
    assert await store.count("ada") == 20


def test_closing_what_is_not_open_does_nothing(
    store: SQLiteTaskStore, path: Path
) -> None:
    store.close()
    store.close()
    assert not path.exists()


def test_a_file_is_for_its_user_alone(direct: sqlite3.Connection, path: Path) -> None:
    assert direct.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    modes = {each.name: each.stat().st_mode & 0o777 for each in path.parent.iterdir()}
    names = ["tasks.db", "tasks.db-shm", "tasks.db-wal"]
    assert modes == dict.fromkeys(names, 0o600)


async def test_an_empty_file_is_taken_with_the_mode_it_has(path: Path) -> None:
    path.touch()
    path.chmod(0o640)
    with closing(SQLiteTaskStore(path)) as store:
        await store.add(task())
    assert path.stat().st_mode & 0o777 == 0o640


async def test_a_relative_path_is_that_of_when_the_store_was_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)
    with closing(SQLiteTaskStore("tasks.db")) as store:
        monkeypatch.chdir("elsewhere")
        await store.add(task())
    assert (tmp_path / "tasks.db").exists()


NO_FILES: Final = [
    # id, path below a directory, what is said
    ("no directory", "a/tasks.db", "there is no directory {}/a; make it first"),
    ("a directory", "", "{} is a directory, and not a file"),
]


@pytest.mark.parametrize(
    ("name", "said"), [pytest.param(*row, id=name) for name, *row in NO_FILES]
)
def test_what_can_be_no_file_is_refused_at_once(
    tmp_path: Path, name: str, said: str
) -> None:
    with pytest.raises(SetupError) as caught:
        SQLiteTaskStore(tmp_path / name)
    assert str(caught.value) == "SQLiteTaskStore: " + said.format(tmp_path)


@pytest.mark.parametrize("name", ["", ":memory:", "file:tasks.db?mode=memory"])
def test_what_workers_can_not_share_is_refused_at_once(name: str) -> None:
    with pytest.raises(SetupError) as caught:
        SQLiteTaskStore(name)
    assert str(caught.value) == (
        f"SQLiteTaskStore({name!r}): the path of a file is needed, which the workers"
        " share; MemoryTaskStore keeps tasks in memory"
    )


def _text(path: Path) -> None:
    path.write_text("A file of tasks it is not.\n" * 100)


def _other_tables(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE tasks (name)")


def _other_application(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA application_id = 1")


def _newer(path: Path) -> None:
    with closing(SQLiteTaskStore(path)) as store:
        asyncio.run(store.count(None))
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA user_version = 2")


FOREIGN = "is not a file of tasks; give it one of its own"
REFUSED: Final = [
    # what makes the file, what is said of it
    (_text, FOREIGN),
    (_other_tables, FOREIGN),
    (_other_application, FOREIGN),
    (
        _newer,
        "was written by a newer mcpkit, and has tables of version 2; this one knows"
        " version 1",
    ),
]


@pytest.mark.parametrize(("make", "said"), REFUSED)
def test_another_file_is_refused_and_left_as_it_is(
    path: Path, make: Any, said: str
) -> None:
    make(path)
    before = path.read_bytes()
    with closing(SQLiteTaskStore(path)) as store:
        for use in (store.get("t"), store.add(task())):
            with pytest.raises(SetupError) as caught:
                asyncio.run(use)
            assert str(caught.value) == f"SQLiteTaskStore: {path} {said}"
    assert path.read_bytes() == before


# What goes wrong later


def test_a_full_disk_is_told_and_loses_nothing(path: Path) -> None:
    kept_and_error, after = output(start(worker.fill, path))
    kept, error = kept_and_error.split()
    assert error in {"SQLITE_FULL", "SQLITE_IOERR_WRITE"}
    assert 0 < int(kept) < 100
    assert int(after) == int(kept) + 1
    with closing(SQLiteTaskStore(path)) as store:
        found = asyncio.run(store.owned("ada", None, 200))
    expected = [made("fill", n, 0) for n in range(int(kept) + 1)]
    assert sorted(found, key=lambda record: int(record.task_id[5:])) == expected


async def test_a_broken_file_is_told(path: Path) -> None:
    with closing(SQLiteTaskStore(path)) as store:
        for n in range(50):
            await store.add(task(str(n), message="x" * 1000))
    content = path.read_bytes()
    path.write_bytes(content[:4096] + b"\xa5" * (len(content) - 4096))
    with closing(SQLiteTaskStore(path)) as store:
        with pytest.raises(sqlite3.DatabaseError, match="malformed"):
            await store.get("7")
        with pytest.raises(sqlite3.DatabaseError, match="malformed"):
            await store.replace(task("7"), 0)


# What it costs


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SQLiteTaskStore]:
    """A store of 10,000 tasks, of which every tenth has not ended."""
    path = tmp_path_factory.mktemp("large") / "tasks.db"
    records = (
        task(
            f"{n:032x}",
            owner=f"owner {n % 100}",
            status="completed" if n % 10 else "working",
            result={"content": []} if n % 10 else None,
            created=NOW + n,
            ttl=3600.0,
            worker="w1",
            lease=NOW + n,
        )
        for n in range(10_000)
    )
    with closing(SQLiteTaskStore(path)) as store:
        asyncio.run(store.count(None))
        with closing(sqlite3.connect(path)) as connection, connection:
            connection.executemany(_ADD, map(_row, records))
        yield store


async def test_a_task_among_many_is_read_within_a_millisecond(
    large: SQLiteTaskStore,
) -> None:
    seconds: list[float] = []
    for n in range(0, 10_000, 50):
        begun = time.perf_counter()
        found = await large.get(f"{n:032x}")
        seconds.append(time.perf_counter() - begun)
        assert found is not None
    assert statistics.median(seconds) < 0.001


PLANS: Final = [
    # statement, index that finds its rows
    (_GET, "sqlite_autoindex_tasks_1"),
    (_REPLACE, "sqlite_autoindex_tasks_1"),
    (_HELD, "sqlite_autoindex_tasks_1"),
    (_RENEW, "sqlite_autoindex_tasks_1"),
    (_REMOVE, "sqlite_autoindex_tasks_1"),
    (_ABANDONED, "tasks_held"),
    (_OVERDUE, "tasks_due"),
    (_EXPIRED, "tasks_due"),
    (_OWNED, "tasks_owned"),
    (_COUNT, "tasks_unended"),
    (_COUNT_ALL, "tasks_unended"),
]


@pytest.mark.parametrize(("statement", "index"), PLANS)
def test_a_statement_finds_its_rows_by_an_index(
    direct: sqlite3.Connection, statement: str, index: str
) -> None:
    named = dict.fromkeys((*_row(task()), "now", "limit"), 0)
    values = named if ":" in statement else (0,) * statement.count("?")
    rows = direct.execute(f"EXPLAIN QUERY PLAN {statement}", values).fetchall()
    # One step: nothing is sorted, and no other table or index is looked at.
    (step,) = [detail for *_, detail in rows]
    assert index in step.replace("(", " ").split()
    assert step.startswith("SEARCH")
