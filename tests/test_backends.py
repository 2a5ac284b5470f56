"""What workers share: one contract, and each backend that claims to keep it."""

import asyncio
import importlib
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from queue import SimpleQueue
from uuid import uuid4

import pytest

from mcpkit.backends import memory
from mcpkit.backends.base import Backend
from mcpkit.backends.memory import _SWEEP_EVERY, MemoryBackend
from tests.shared_backend import ROOT, SocketBackend, environment, serving

HOUR = 3600.0
PATIENCE = 30
"""Seconds after which a test that hangs gives up."""


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with serving() as found:
        yield found


@pytest.fixture(params=["memory", "socket", "the example's"])
def backend(request: pytest.FixtureRequest) -> Iterator[Backend]:
    if request.param == "memory":
        yield MemoryBackend()
    elif request.param == "the example's":
        example = importlib.import_module("examples.workers")
        yield example.FileBackend(
            str(request.getfixturevalue("tmp_path") / "kept.sqlite3")
        )
    else:
        with closing(SocketBackend(request.getfixturevalue("address"))) as shared:
            yield shared


@pytest.fixture
def key() -> str:
    """A key that no other test has."""
    return uuid4().hex


class Received(SimpleQueue[str]):
    """What a receiver was called with, from whatever thread."""

    def take(self, count: int) -> list[str]:
        """Wait for so many messages."""
        return [self.get(timeout=PATIENCE) for _ in range(count)]


# Keys


async def test_a_value_is_kept_under_its_key(backend: Backend, key: str) -> None:
    await backend.put(key, "1", HOUR)
    await backend.put(key + "b", "", HOUR)
    keys = [key, key + "b", key + "c"]
    assert [await backend.get(each) for each in keys] == ["1", "", None]


async def test_a_later_value_takes_the_place_of_an_earlier_one(
    backend: Backend, key: str
) -> None:
    await backend.put(key, "1", HOUR)
    await backend.put(key, "é\n2", HOUR)
    assert await backend.get(key) == "é\n2"


@pytest.mark.parametrize("ttl", [0, -HOUR])
async def test_a_value_whose_time_is_over_is_not_there(
    backend: Backend, key: str, ttl: float
) -> None:
    await backend.put(key, "1", ttl)
    assert await backend.get(key) is None
    assert await backend.replace(key, None, "2", ttl)
    assert await backend.get(key) is None
    assert not await backend.replace(key, "2", "3", HOUR)


async def test_a_value_goes_after_so_many_seconds(backend: Backend, key: str) -> None:
    begun = time.monotonic()
    await backend.put(key, "1", 0.05)
    async with asyncio.timeout(PATIENCE):
        while await backend.get(key) is not None:
            await asyncio.sleep(0)
    assert time.monotonic() - begun >= 0.05


async def test_a_later_value_lives_for_a_time_of_its_own(
    backend: Backend, key: str
) -> None:
    await backend.put(key, "1", HOUR)
    assert await backend.replace(key, "1", "2", 0)
    assert await backend.get(key) is None
    await backend.put(key, "3", HOUR)
    assert await backend.get(key) == "3"


REPLACED = [
    # id, value that is there, old, new, done, value after that
    ("the value known", "1", "1", "2", True, "2"),
    ("another value", "1", "0", "2", False, "1"),
    ("a value where none is known", "1", None, "2", False, "1"),
    ("none where one is known", None, "1", "2", False, None),
    ("none, as is known", None, None, "2", True, "2"),
    ("the value known, by none", "1", "1", None, True, None),
    ("another value, by none", "1", "0", None, False, "1"),
    ("none by none", None, None, None, True, None),
    ("none where an empty one is known", None, "", "2", False, None),
    ("an empty value where none is known", "", None, "2", False, ""),
    ("a value by itself", "1", "1", "1", True, "1"),
]


@pytest.mark.parametrize(
    ("there", "old", "new", "done", "after"),
    [pytest.param(*row, id=name) for name, *row in REPLACED],
)
async def test_only_a_value_that_is_the_old_one_is_replaced(
    backend: Backend,
    key: str,
    there: str | None,
    old: str | None,
    new: str | None,
    done: bool,  # noqa: FBT001  # a column of the table
    after: str | None,
) -> None:
    if there is not None:
        await backend.put(key, there, HOUR)
    assert await backend.replace(key, old, new, HOUR) is done
    assert await backend.get(key) == after


@pytest.mark.parametrize("old", [None, "free"])
async def test_of_many_that_replace_a_value_one_succeeds(
    backend: Backend, key: str, old: str | None
) -> None:
    if old is not None:
        await backend.put(key, old, HOUR)
    won = await asyncio.gather(
        *(backend.replace(key, old, str(number), HOUR) for number in range(50))
    )
    assert won.count(True) == 1
    assert await backend.get(key) == str(won.index(True))


def test_of_many_threads_that_count_none_loses_a_step(
    backend: Backend, key: str
) -> None:
    async def count(steps: int) -> None:
        for _ in range(steps):
            done = False
            while not done:
                now = await backend.get(key)
                after = str(int(now or 0) + 1)
                done = await backend.replace(key, now, after, HOUR)

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(lambda _: asyncio.run(count(25)), range(4)))
    assert asyncio.run(backend.get(key)) == "100"


# Messages


def test_a_message_reaches_who_subscribed_before_and_has_not_ended(
    backend: Backend,
) -> None:
    first, second = Received(), Received()
    backend.subscribe(first.put)
    backend.publish("before")
    end = backend.subscribe(second.put)
    backend.publish("during")
    assert second.take(1) == ["during"]
    end()
    end()
    backend.publish("after")
    assert first.take(3) == ["before", "during", "after"]
    assert second.empty()


async def test_a_message_may_be_published_from_an_event_loop(backend: Backend) -> None:
    received = Received()
    backend.subscribe(received.put)
    backend.publish("é\n")
    assert await asyncio.to_thread(received.take, 1) == ["é\n"]


def test_the_same_function_subscribed_twice_is_called_twice(backend: Backend) -> None:
    received = Received()
    ends = [backend.subscribe(received.put) for _ in range(2)]
    backend.publish("1")
    assert received.take(2) == ["1", "1"]
    ends[0]()
    backend.publish("2")
    backend.publish("3")
    assert received.take(2) == ["2", "3"]


def test_what_a_receiver_publishes_comes_after_what_it_received(
    backend: Backend,
) -> None:
    received = Received()

    def answer(message: str) -> None:
        if message == "question":
            backend.publish("answer")

    backend.subscribe(answer)
    backend.subscribe(received.put)
    backend.publish("question")
    assert received.take(2) == ["question", "answer"]


def test_messages_of_a_publisher_arrive_in_order(backend: Backend) -> None:
    received = Received()
    backend.subscribe(received.put)

    def publish(name: str) -> None:
        for number in range(200):
            backend.publish(f"{name}{number}")

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(publish, "abcd"))
    messages = received.take(800)
    for name in "abcd":
        assert [message for message in messages if message[0] == name] == [
            f"{name}{number}" for number in range(200)
        ]


def test_a_receiver_that_fails_keeps_nothing_from_others(
    backend: Backend, caplog: pytest.LogCaptureFixture
) -> None:
    called, received = Received(), Received()

    def fail(message: str) -> None:
        called.put(message)
        raise ValueError(message)

    end = backend.subscribe(fail)
    backend.subscribe(received.put)
    backend.publish("1")
    backend.publish("2")
    assert called.take(2) == ["1", "2"]
    assert received.take(2) == ["1", "2"]
    end()
    assert caplog.messages[0] == "A receiver of published messages failed"


# What is a backend's own


async def test_a_value_of_the_memory_goes_when_its_clock_says_so() -> None:
    now = 100.0
    backend = MemoryBackend(now=lambda: now)
    await backend.put("a", "1", 10)
    now = 109.9
    assert await backend.get("a") == "1"
    now = 110.0
    assert await backend.get("a") is None


async def test_values_whose_time_is_over_take_no_memory() -> None:
    backend = MemoryBackend()
    for number in range(5 * _SWEEP_EVERY):
        await backend.put(f"ended {number}", "", 0)
        await backend.replace(f"ended too {number}", None, "", 0)
    assert len(backend) <= _SWEEP_EVERY


async def test_values_that_are_removed_take_no_memory() -> None:
    backend = MemoryBackend()
    await backend.put("a", "1", HOUR)
    await backend.replace("a", "1", None, HOUR)
    assert len(backend) == 0


async def test_values_that_live_survive_the_sweeps() -> None:
    backend = MemoryBackend()
    for number in range(4 * _SWEEP_EVERY):
        await backend.put(f"alive {number}", str(number), HOUR)
        await backend.put(f"ended {number}", "", 0)
    assert await backend.get("alive 0") == "0"
    assert await backend.get(f"alive {4 * _SWEEP_EVERY - 1}") == str(
        4 * _SWEEP_EVERY - 1
    )
    assert len(backend) <= 8 * _SWEEP_EVERY


def test_who_ends_before_a_message_is_theirs_does_not_get_it() -> None:
    backend, received = MemoryBackend(), Received()
    ends = list[Callable[[], None]]()
    backend.subscribe(lambda _message: ends[0]())
    ends.append(backend.subscribe(received.put))
    backend.publish("1")
    assert received.empty()


def test_a_receiver_that_is_interrupted_does_not_silence_those_after_it() -> None:
    backend, received = MemoryBackend(), Received()

    def interrupt(_message: str) -> None:
        raise KeyboardInterrupt

    end = backend.subscribe(interrupt)
    with pytest.raises(KeyboardInterrupt):
        backend.publish("1")
    end()
    backend.subscribe(received.put)
    backend.publish("2")
    assert received.take(1) == ["2"]


OTHER = """
import asyncio, sys
from tests.shared_backend import shared
backend = shared()
backend.subscribe(lambda message: print(message, flush=True))
print("subscribed", asyncio.run(backend.replace(sys.argv[1], "1", "2", 60)), flush=True)
sys.stdin.readline()
backend.publish("from the other")
sys.stdin.readline()
"""


async def test_processes_share_values_and_messages(address: str, key: str) -> None:
    received = Received()
    with (
        closing(SocketBackend(address)) as backend,
        subprocess.Popen(  # noqa: S603  # the program is above
            [sys.executable, "-c", OTHER, key],
            cwd=ROOT,
            env=environment(address),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            bufsize=1,
        ) as other,
    ):
        assert other.stdin is not None
        assert other.stdout is not None
        await backend.put(key, "1", HOUR)
        backend.subscribe(received.put)
        assert other.stdout.readline() == "subscribed True\n"
        assert await backend.get(key) == "2"
        backend.publish("from one")
        assert other.stdout.readline() == "from one\n"
        other.stdin.write("\n")
        assert received.take(2) == ["from one", "from the other"]
        assert other.stdout.readline() == "from the other\n"


async def test_a_store_in_memory_takes_so_many_keys(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Ours: clients can have keys kept for a day, and may not fill the memory."""
    monkeypatch.setattr(memory, "MAX_KEYS", 2)
    backend = MemoryBackend()
    await backend.put("a", "1", 60)
    await backend.put("b", "1", 60)
    with pytest.raises(OverflowError, match="2 keys are kept already"):
        await backend.put("c", "1", 60)
    await backend.put("a", "2", 60)
    assert await backend.replace("b", "1", None, 60)
    assert await backend.replace("c", None, "1", 60)
    assert [await backend.get(key) for key in "abc"] == ["2", None, "1"]
