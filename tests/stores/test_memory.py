"""What the store in memory holds on to."""

import time
import tracemalloc

from mcpkit.stores.memory import MemoryTaskStore
from tests.stores.records import NOW, task


async def test_nothing_is_left_of_what_was_removed() -> None:
    store = MemoryTaskStore()
    tracemalloc.start()
    try:
        for n in range(500):
            # Text that nothing else holds, of 5 MB for all.
            owner = f"{n}".zfill(10_000)
            await store.add(task(f"{n}", owner=owner, ttl=1.0))
            ended = task(f"{n}", owner=owner, ttl=1.0, status="cancelled")
            assert await store.replace(ended, 0)
            assert await store.remove_expired(NOW + 1, 9) == [f"{n}"]
        left, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert left < 500_000


async def test_many_tasks_that_are_over_at_once_are_removed_in_no_time() -> None:
    store = MemoryTaskStore()
    for n in range(20_000):
        await store.add(task(f"{n}", ttl=1.0, status="completed"))
    begun = time.process_time()
    while await store.remove_expired(NOW + 1, 10):
        pass
    # The event loop serves nobody meanwhile. If each look went through all of them, it
    # would take ten seconds.
    assert time.process_time() - begun < 1


async def test_a_task_that_was_written_after_its_end_is_over_when_it_says_last() -> (
    None
):
    store = MemoryTaskStore()
    await store.add(task("longer", ttl=1.0, status="failed"))
    await store.add(task("sooner", ttl=9.0, status="failed"))
    assert await store.replace(task("longer", ttl=5.0, status="failed"), 0)
    assert await store.replace(task("sooner", ttl=2.0, status="failed"), 0)
    found = [await store.remove_expired(NOW + seconds, 9) for seconds in (1, 2, 5, 9)]
    assert found == [[], ["sooner"], ["longer"], []]
