"""What workers tell each other, and who of them receives it."""

import asyncio
import json
import logging
from typing import Any

import pytest

from mcpkit.backends.memory import MemoryBackend
from mcpkit.bus import Bus

PATIENCE = 10
"""Seconds after which a test that hangs gives up."""


def listener(bus: Bus, subject: Any = "updated") -> "asyncio.Queue[Any]":
    """Return a queue of what a bus receives."""
    received: asyncio.Queue[Any] = asyncio.Queue()
    bus.on(subject, received.put_nowait)
    return received


async def test_all_workers_of_an_app_that_have_joined_are_told() -> None:
    backend = MemoryBackend()
    workers = [Bus(backend, "shop") for _ in range(2)]
    late, other = Bus(backend, "shop"), Bus(backend, "library")
    heard = [listener(bus) for bus in workers]
    unheard = [listener(bus) for bus in (late, other)]
    for bus in (*workers, other):
        bus.join()
    workers[0].tell("updated", ["é", 1, None])
    async with asyncio.timeout(PATIENCE):
        for queue in heard:
            assert await queue.get() == ["é", 1, None]
    assert all(queue.empty() for queue in unheard)


async def test_each_subject_has_its_receivers_in_order() -> None:
    bus = Bus(MemoryBackend(), "shop")
    received: list[tuple[str, Any]] = []
    done = asyncio.Event()
    bus.on("changed", lambda content: received.append(("first", content)))
    bus.on("changed", lambda content: received.append(("second", content)))
    bus.on("ended", lambda _: done.set())
    bus.join()
    # Joining again makes nothing twice.
    bus.join()
    bus.tell("changed", 1)
    bus.tell("cancel", 2)
    bus.tell("ended", 3)
    async with asyncio.timeout(PATIENCE):
        await done.wait()
    assert received == [("first", 1), ("second", 1)]


async def test_it_may_be_told_from_any_thread() -> None:
    bus = Bus(MemoryBackend(), "shop")
    received = listener(bus)
    bus.join()
    await asyncio.to_thread(bus.tell, "updated", 1)
    async with asyncio.timeout(PATIENCE):
        assert await received.get() == 1


def test_nobody_needs_to_be_there() -> None:
    """No event loop, nobody who has joined, nobody whose loop is still there."""
    bus = Bus(MemoryBackend(), "shop")
    received: list[Any] = []
    bus.on("updated", received.append)

    async def join() -> None:
        bus.join()

    bus.tell("updated", 1)
    asyncio.run(join())
    bus.tell("updated", 2)
    assert received == []

    async def again() -> None:
        bus.join()
        bus.tell("updated", 3)
        await asyncio.sleep(0)

    asyncio.run(again())
    assert received == [3]


async def test_an_event_loop_that_was_closed_takes_nobody_else_along() -> None:
    """Two servers in one process, in threads of their own, and one of them ends."""
    bus = Bus(MemoryBackend(), "shop")
    received = listener(bus)
    bus.join()

    async def join() -> None:
        bus.join()

    await asyncio.to_thread(asyncio.run, join())
    bus.tell("updated", 1)
    async with asyncio.timeout(PATIENCE):
        assert await received.get() == 1


async def test_what_a_worker_of_another_release_tells_is_passed_over(
    caplog: pytest.LogCaptureFixture,
) -> None:
    backend = MemoryBackend()
    bus = Bus(backend, "shop")
    received = listener(bus)
    bus.join()
    with caplog.at_level(logging.DEBUG, "mcpkit"):
        backend.publish(json.dumps(["shop", "weather", "rain"]))
    bus.tell("updated", 1)
    async with asyncio.timeout(PATIENCE):
        assert await received.get() == 1
    assert caplog.records == []


async def test_who_could_not_join_may_try_again() -> None:
    class Failing(MemoryBackend):
        fails = True

        def subscribe(self, receive: Any) -> Any:
            if self.fails:
                raise OSError("no connection")
            return super().subscribe(receive)

    backend = Failing()
    bus = Bus(backend, "shop")
    received = listener(bus)
    with pytest.raises(OSError, match="no connection"):
        bus.join()
    backend.fails = False
    bus.join()
    bus.tell("updated", 1)
    async with asyncio.timeout(PATIENCE):
        assert await received.get() == 1
