"""The memory of one process as a store that forgets."""

import pytest

from mcpkit.backends.memory import _SWEEP_EVERY, MemoryBackend

HOUR = 3600.0


async def test_a_value_is_kept_under_its_key() -> None:
    backend = MemoryBackend()
    await backend.put("a", "1", HOUR)
    await backend.put("b", "", HOUR)
    assert [await backend.get(key) for key in ("a", "b", "c")] == ["1", "", None]


async def test_a_later_value_takes_the_place_of_an_earlier_one() -> None:
    backend = MemoryBackend()
    await backend.put("a", "1", HOUR)
    await backend.put("a", "2", HOUR)
    assert (await backend.get("a"), len(backend)) == ("2", 1)


async def test_a_value_goes_when_its_time_is_over() -> None:
    backend = MemoryBackend()
    await backend.put("a", "1", 0)
    await backend.put("b", "1", -HOUR)
    assert [await backend.get(key) for key in ("a", "b")] == [None, None]


async def test_values_whose_time_is_over_take_no_memory() -> None:
    backend = MemoryBackend()
    for number in range(10 * _SWEEP_EVERY):
        await backend.put(f"ended {number}", "", 0)
    assert len(backend) <= _SWEEP_EVERY


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


async def test_only_a_value_that_is_the_old_one_is_replaced() -> None:
    backend = MemoryBackend()
    assert not await backend.replace("a", "1", "2", HOUR)
    assert await backend.replace("a", None, "1", HOUR)
    assert not await backend.replace("a", None, "2", HOUR)
    assert await backend.get("a") == "1"
    assert await backend.replace("a", "1", None, HOUR)
    assert await backend.get("a") is None


def test_a_message_reaches_who_subscribed_before_and_has_not_ended() -> None:
    backend, received = MemoryBackend(), list[str]()
    backend.publish("before")
    end = backend.subscribe(received.append)
    backend.publish("during")
    end()
    end()
    backend.publish("after")
    assert received == ["during"]


def test_what_a_receiver_publishes_comes_after_what_it_received() -> None:
    backend, received = MemoryBackend(), list[str]()

    def answer(message: str) -> None:
        if message == "question":
            backend.publish("answer")

    backend.subscribe(answer)
    backend.subscribe(received.append)
    backend.publish("question")
    assert received == ["question", "answer"]


def test_a_receiver_that_fails_keeps_nothing_from_others(
    caplog: pytest.LogCaptureFixture,
) -> None:
    backend, received = MemoryBackend(), list[str]()

    def fail(message: str) -> None:
        raise ValueError(message)

    backend.subscribe(fail)
    backend.subscribe(received.append)
    backend.publish("news")
    assert received == ["news"]
    assert caplog.messages == ["A receiver of published messages failed"]
