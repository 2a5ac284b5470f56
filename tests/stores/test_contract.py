"""What every store of tasks does, and each store that claims to."""

import asyncio
import threading
from collections.abc import Iterator
from contextlib import closing
from dataclasses import fields, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, get_args

import pytest

from mcpkit.protocol.jsonrpc import Encoded
from mcpkit.stores.base import TERMINAL, Status, TaskRecord, TaskStore
from mcpkit.stores.memory import MemoryTaskStore
from mcpkit.stores.sqlite import SQLiteTaskStore
from tests.stores.records import NOW, task

STATUSES: Final[tuple[Status, ...]] = get_args(Status)
ENDED: Final = sorted(TERMINAL)
UNENDED: Final = sorted(set(STATUSES) - TERMINAL)

CHANGES: Final[dict[str, Any]] = {
    "owner": None,
    "method": "prompts/get",
    "request": {"name": "é\0", "arguments": {"deep": [[{"a": None}], 1.5, True]}},
    "status": "input_required",
    "message": "Half way: é\n\0",
    "created": NOW + 0.1,
    "updated": NOW + 1e-6,
    "ttl": 0.25,
    "poll_ms": 2**53,
    "result": {"content": [], "structuredContent": {"n": 2**80}},
    "error": {"code": -32603, "message": "Internal error", "data": [None]},
    "asked": {"q-1": {"method": "roots/list"}, "q-2": {}},
    "answered": {"q-0": {"action": "accept", "content": {"ok": True}}},
    "journal": {},
    "resumable": True,
    "worker": "w1",
    "lease": NOW + 30.5,
    "cancelling": True,
    "revision": 7,
}
"""Another value than a new task has, for each field but the id."""


@pytest.fixture(params=["memory", "sqlite"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[TaskStore]:
    if request.param == "memory":
        yield MemoryTaskStore()
    else:
        with closing(SQLiteTaskStore(tmp_path / "tasks.db")) as shared:
            yield shared


def ids(records: list[TaskRecord]) -> list[str]:
    return [record.task_id for record in records]


# One task


async def test_a_task_that_was_added_is_there(store: TaskStore) -> None:
    """Spec ext-tasks, tasks: Task Creation."""
    await store.add(task())
    await store.add(task("t2", owner="bob"))
    assert await store.get("t") == task()
    assert await store.get("t2") == task("t2", owner="bob")
    assert await store.get("t3") is None


def test_the_table_of_changes_has_every_field() -> None:
    names = {field.name for field in fields(TaskRecord)} - {"task_id"}
    assert CHANGES.keys() == names
    assert [name for name in names if CHANGES[name] == getattr(task(), name)] == []


@pytest.mark.parametrize("name", CHANGES)
async def test_every_field_is_kept(store: TaskStore, name: str) -> None:
    changed = task(**{name: CHANGES[name]})
    await store.add(changed)
    assert await store.get("t") == changed


@pytest.mark.parametrize("name", sorted(CHANGES.keys() - {"revision"}))
async def test_every_field_is_replaced(store: TaskStore, name: str) -> None:
    changed = task(**{name: CHANGES[name]})
    await store.add(task())
    assert await store.replace(changed, 0)
    assert await store.get("t") == replace(changed, revision=1)


async def test_a_task_whose_fields_are_all_set_is_kept(store: TaskStore) -> None:
    changed = task(**CHANGES)
    await store.add(changed)
    found = await store.get("t")
    assert found == changed
    assert found is not None
    assert (type(found.resumable), type(found.cancelling)) == (bool, bool)
    assert (type(found.lease), type(found.revision)) == (float, int)


async def test_an_id_is_taken_once(store: TaskStore) -> None:
    await store.add(task())
    with pytest.raises(ValueError, match="there is a task of this id already"):
        await store.add(task(owner="bob"))
    assert await store.get("t") == task()
    assert await store.count(None) == 1


BEYOND: Final = {"a": [float("inf"), float("-inf"), 7]}
KEPT_AS: Final = [
    # id, value of a field, what is read back
    ("a tuple", {"a": (1, 2)}, {"a": [1, 2]}),
    ("another mapping", MappingProxyType({"a": 1}), {"a": 1}),
    ("a number that JSON does not have", {"a": float("nan")}, {"a": None}),
    ("integers of too many digits", {"a": [10**5000, -(10**5000), 7]}, BEYOND),
    ("half a surrogate pair", {"a": "\ud800"}, {"a": "\N{REPLACEMENT CHARACTER}"}),
    (
        "what is encoded already",
        {"content": [], "structuredContent": Encoded(b"[1]")},
        {"content": [], "structuredContent": [1]},
    ),
]


@pytest.mark.parametrize(
    ("value", "kept"), [pytest.param(*row, id=name) for name, *row in KEPT_AS]
)
async def test_values_are_kept_in_the_form_they_have_on_the_wire(
    store: TaskStore, value: Any, kept: Any
) -> None:
    await store.add(task(result=value))
    assert await store.get("t") == task(result=kept)


async def test_half_a_surrogate_pair_in_a_message_is_replaced(store: TaskStore) -> None:
    await store.add(task(message="a\udcffb"))
    found = await store.get("t")
    assert found is not None
    assert found.message == "a\N{REPLACEMENT CHARACTER}b"


async def test_what_has_no_json_form_is_not_kept(store: TaskStore) -> None:
    await store.add(task())
    with pytest.raises(ValueError, match="JSON form"):
        await store.add(task("t2", result={"a": object()}))
    with pytest.raises(ValueError, match="JSON form"):
        await store.replace(task(result={"a": object()}), 0)
    assert await store.get("t2") is None
    assert await store.get("t") == task()


async def test_many_digits_in_a_string_are_kept(store: TaskStore) -> None:
    many = task(result={"a": "1" * 5000})
    await store.add(many)
    assert await store.get("t") == many


async def test_nobody_changes_what_is_kept_but_by_a_write(store: TaskStore) -> None:
    arguments = {"isbn": "1"}
    await store.add(task(request={"arguments": arguments}))
    arguments["isbn"] = "2"
    found = await store.get("t")
    assert found is not None
    found.request["arguments"]["isbn"] = "3"
    assert await store.get("t") == task(request={"arguments": {"isbn": "1"}})


# Compare and set


async def test_a_write_raises_the_revision(store: TaskStore) -> None:
    await store.add(task())
    assert await store.replace(task(message="1"), 0)
    # The revision of the record itself is nobody's business.
    assert await store.replace(task(message="2", revision=40), 1)
    assert await store.get("t") == task(message="2", revision=2)


@pytest.mark.parametrize("revision", [-1, 0, 2, 7])
async def test_a_write_at_another_revision_changes_nothing(
    store: TaskStore, revision: int
) -> None:
    await store.add(task())
    assert await store.replace(task(message="1", worker="w1", lease=NOW), 0)
    late = task(message="2", status="completed", result={}, revision=revision)
    assert not await store.replace(late, revision)
    kept = task(message="1", worker="w1", lease=NOW, revision=1)
    assert await store.get("t") == kept
    assert await store.count("ada") == 1


async def test_a_task_that_is_not_there_is_not_written(store: TaskStore) -> None:
    assert not await store.replace(task(), 0)
    assert await store.get("t") is None


async def test_of_many_writers_at_one_revision_one_succeeds(store: TaskStore) -> None:
    await store.add(task())
    writes = [store.replace(task(message=str(n)), 0) for n in range(20)]
    done = await asyncio.gather(*writes)
    assert sum(done) == 1
    winner = task(message=str(done.index(True)), revision=1)
    assert await store.get("t") == winner


# Leases

HELD: Final = task(worker="w1", lease=NOW + 10)

LEASES: Final = [
    # id, worker and lease of the record, lease after the write
    ("the same worker, from before the renewal", "w1", NOW + 10, NOW + 30),
    ("the same worker, for longer", "w1", NOW + 40, NOW + 40),
    ("another worker, for less", "w2", NOW + 20, NOW + 20),
    ("nobody from now on", None, 0.0, 0.0),
]


@pytest.mark.parametrize(
    ("worker", "lease", "after"),
    [pytest.param(*row, id=name) for name, *row in LEASES],
)
async def test_a_write_of_the_same_worker_does_not_undo_a_renewal(
    store: TaskStore, worker: str | None, lease: float, after: float
) -> None:
    await store.add(HELD)
    assert await store.renew("w1", NOW + 30, ["t"]) == {"t": 0}
    assert await store.replace(task(worker=worker, lease=lease), 0)
    assert await store.get("t") == task(worker=worker, lease=after, revision=1)


async def test_a_renewal_is_no_revision(store: TaskStore) -> None:
    await store.add(HELD)
    assert await store.renew("w1", NOW + 60, ["t"]) == {"t": 0}
    assert await store.get("t") == replace(HELD, lease=NOW + 60)
    assert await store.replace(HELD, 0)


async def test_a_renewal_tells_what_others_have_written(store: TaskStore) -> None:
    await store.add(HELD)
    assert await store.replace(replace(HELD, cancelling=True), 0)
    assert await store.renew("w1", NOW + 60, ["t"]) == {"t": 1}


LOST: Final = [
    # id, what became of the task
    ("another worker's", {"worker": "w2", "lease": NOW + 5}),
    ("nobody's", {"worker": None, "lease": 0.0}),
    *((status, {"status": status}) for status in ENDED),
]


@pytest.mark.parametrize(
    "changes", [pytest.param(changes, id=name) for name, changes in LOST]
)
async def test_a_task_that_was_lost_is_not_renewed(
    store: TaskStore, changes: dict[str, Any]
) -> None:
    lost = replace(HELD, **changes)
    await store.add(lost)
    await store.add(replace(HELD, task_id="t2"))
    renewed = await store.renew("w1", NOW + 60, ["t", "t2", "gone", "t2"])
    assert renewed == {"t2": 0}
    assert await store.get("t") == lost
    assert await store.get("gone") is None


async def test_a_renewal_of_nothing_renews_nothing(store: TaskStore) -> None:
    await store.add(HELD)
    assert await store.renew("w1", NOW + 60, []) == {}
    assert await store.get("t") == HELD


ABANDONED: Final = [
    # id, the task, is it abandoned
    ("lease over", {"worker": "w1", "lease": NOW - 1}, True),
    ("lease over now", {"worker": "w1", "lease": NOW}, True),
    ("lease runs", {"worker": "w1", "lease": NOW + 0.001}, False),
    ("nobody has it", {"worker": None, "lease": 0.0}, False),
    (
        "waits for input",
        {"status": "input_required", "worker": "w1", "lease": NOW - 1},
        True,
    ),
    *(
        (status, {"status": status, "worker": "w1", "lease": NOW - 1}, False)
        for status in ENDED
    ),
]


@pytest.mark.parametrize(
    ("changes", "is_abandoned"),
    [pytest.param(*row, id=name) for name, *row in ABANDONED],
)
async def test_a_task_is_abandoned_when_its_lease_is_over(
    store: TaskStore, changes: dict[str, Any], *, is_abandoned: bool
) -> None:
    await store.add(task(**changes))
    found = await store.abandoned(NOW, 10)
    assert found == [task(**changes)] * is_abandoned


async def test_the_longest_abandoned_come_first(store: TaskStore) -> None:
    for name, lease in [("b", 2), ("c", 1), ("a", 2), ("d", 3)]:
        await store.add(task(name, worker="w1", lease=NOW + lease))
    assert ids(await store.abandoned(NOW + 3, 3)) == ["c", "a", "b"]
    assert await store.renew("w1", NOW + 60, ["c", "a"]) == {"c": 0, "a": 0}
    assert ids(await store.abandoned(NOW + 3, 3)) == ["b", "d"]


# Time to live

DUE: Final = [
    # id, ttl, is it over at NOW + 10
    ("unlimited", None, False),
    ("over", 9.0, True),
    ("over now", 10.0, True),
    ("not over", 10.001, False),
    ("over from the start", 0.0, True),
]
DUE_ROWS = [pytest.param(*row, id=name) for name, *row in DUE]


@pytest.mark.parametrize("status", ENDED)
@pytest.mark.parametrize(("ttl", "is_over"), DUE_ROWS)
async def test_a_task_that_ended_is_removed_when_its_time_is_over(
    store: TaskStore, status: Status, ttl: float | None, *, is_over: bool
) -> None:
    """Spec ext-tasks, tasks: Task Polling."""
    ended = task(status=status, ttl=ttl)
    await store.add(ended)
    assert await store.overdue(NOW + 10, 10) == []
    assert await store.remove_expired(NOW + 10, 10) == ["t"] * is_over
    assert await store.get("t") == (None if is_over else ended)
    assert await store.remove_expired(NOW + 10, 10) == []


@pytest.mark.parametrize("status", UNENDED)
@pytest.mark.parametrize(("ttl", "is_over"), DUE_ROWS)
async def test_a_task_that_has_not_ended_in_its_time_is_overdue_and_stays(
    store: TaskStore, status: Status, ttl: float | None, *, is_over: bool
) -> None:
    """Spec ext-tasks, tasks: Task Polling."""
    late = task(status=status, ttl=ttl)
    await store.add(late)
    assert await store.remove_expired(NOW + 10, 10) == []
    assert await store.overdue(NOW + 10, 10) == [late] * is_over
    assert await store.get("t") == late


async def test_a_task_that_has_been_failed_for_its_time_is_removed(
    store: TaskStore,
) -> None:
    await store.add(task(ttl=1.0))
    (late,) = await store.overdue(NOW + 1, 1)
    failed = replace(late, status="failed", error={"code": -32603, "message": "Late"})
    assert await store.replace(failed, late.revision)
    assert await store.overdue(NOW + 1, 1) == []
    assert await store.remove_expired(NOW + 1, 1) == ["t"]


async def test_what_was_over_the_longest_goes_first(store: TaskStore) -> None:
    for name, ttl in [("b", 2.0), ("c", 1.0), ("a", 2.0), ("d", 3.0)]:
        await store.add(task(name, ttl=ttl, status="completed", result={}))
        await store.add(task(name + "2", ttl=ttl))
    assert ids(await store.overdue(NOW + 9, 3)) == ["c2", "a2", "b2"]
    assert await store.remove_expired(NOW + 9, 3) == ["c", "a", "b"]
    assert await store.remove_expired(NOW + 9, 3) == ["d"]
    assert await store.count(None) == 4


# Whose they are


async def test_an_owner_has_its_tasks_and_no_others(store: TaskStore) -> None:
    """Spec 2025-11-25, basic/utilities/tasks: Task Isolation and Access Control."""
    await store.add(task("a"))
    await store.add(task("b", owner="bob"))
    await store.add(task("c", owner=None))
    await store.add(task("d", owner=""))
    owners = ["ada", "bob", None, "", "eve"]
    found = [ids(await store.owned(owner, None, 10)) for owner in owners]
    assert found == [["a"], ["b"], ["c"], ["d"], []]


async def test_tasks_are_listed_by_creation_a_page_at_a_time(store: TaskStore) -> None:
    made = [("d", 0.1), ("a", 0.3), ("c", 0.1), ("e", 0.2), ("b", 0.3)]
    for name, seconds in made:
        await store.add(task(name, created=NOW + seconds))
        await store.add(task(name + "2", created=NOW + seconds, owner=None))
    pages: list[list[str]] = []
    after: str | None = None
    while page := await store.owned("ada", after, 2):
        pages.append(ids(page))
        after = page[-1].key
    assert pages == [["c", "d"], ["e", "a"], ["b"]]


async def test_a_page_goes_on_after_a_task_that_is_gone(store: TaskStore) -> None:
    for n in range(3):
        ended = task(str(n), created=NOW + n, ttl=0.5, status="completed", result={})
        await store.add(ended)
    (first,) = await store.owned("ada", None, 1)
    assert await store.remove_expired(NOW + 0.5, 10) == ["0"]
    assert ids(await store.owned("ada", first.key, 10)) == ["1", "2"]


async def test_what_is_no_key_begins_no_page(store: TaskStore) -> None:
    with pytest.raises(ValueError, match="could not convert"):
        await store.owned("ada", "t", 1)


@pytest.mark.parametrize("owner", ["ada", None])
async def test_an_owner_has_so_many_tasks_under_way_and_no_more(
    store: TaskStore, owner: str | None
) -> None:
    other = "eve" if owner is None else None
    await store.add(task("other", owner=other))
    await store.add(task("ended", owner=owner, status="completed"))
    tasks = [task(str(number), owner=owner) for number in range(9)]
    kept = await asyncio.gather(*(store.add(each, 3) for each in tasks))
    found = [await store.get(each.task_id) is not None for each in tasks]
    assert (kept.count(True), found) == (3, kept)
    assert await store.add(task("more", owner=owner))


async def test_tasks_that_have_not_ended_are_counted(store: TaskStore) -> None:
    for n, status in enumerate(STATUSES):
        await store.add(task(f"a{n}", status=status))
        await store.add(task(f"n{n}", status=status, owner=None))
    assert [await store.count(owner) for owner in ["ada", "eve", None]] == [2, 0, 4]
    assert await store.replace(task("a0", status="completed", result={}), 0)
    assert await store.replace(task("a1", owner="eve"), 0)
    assert [await store.count(owner) for owner in ["ada", "eve", None]] == [0, 1, 3]


# Who uses it


def test_threads_with_event_loops_of_their_own_share_a_store(store: TaskStore) -> None:
    barrier = threading.Barrier(4)
    done: list[int] = []

    async def count_up() -> int:
        successes = 0
        while successes < 25:
            found = await store.get("t")
            assert found is not None
            changed = replace(found, journal={"n": found.revision + 1})
            successes += await store.replace(changed, found.revision)
        return successes

    def run() -> None:
        barrier.wait(30)
        done.append(asyncio.run(asyncio.wait_for(count_up(), 60)))

    asyncio.run(store.add(task()))
    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(90)
    assert done == [25] * 4
    assert asyncio.run(store.get("t")) == task(journal={"n": 100}, revision=100)
