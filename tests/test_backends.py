"""The memory of one process as a store that forgets."""

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
