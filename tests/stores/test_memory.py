"""What the store in memory holds on to."""

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
