"""What is kept of a stream, for whom, for how long, and who is sent it."""

import asyncio
import doctest
import gc
import weakref

import pytest
from anyio import wait_all_tasks_blocked

from mcpkit import replay as module
from mcpkit.replay import (
    KEPT_SECONDS,
    MAX_BYTES,
    MAX_EVENTS,
    MAX_STREAMS,
    MAX_TOTAL_BYTES,
    Buffer,
    Follower,
    Replay,
)

PATIENCE = 10
"""Seconds after which a test that hangs gives up."""

MINE, OTHER = "session 1", "session 2"
FULL = b"x" * MAX_BYTES


class Clock:
    """A clock that is moved by hand."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        """Tell the time."""
        return self.now


def data_of(buffer: Buffer, position: int = 0) -> list[bytes]:
    return [data for _, data in buffer.after(position)]


def found(replay: Replay, *buffers: Buffer) -> list[bool]:
    """Whether each stream can be found, by the id of its start."""
    return [
        replay.find(buffer.session_id, buffer.event_id(0)) is not None
        for buffer in buffers
    ]


async def taken(follower: Follower) -> list[bytes]:
    """Take all events of a follower, to its end."""
    async with asyncio.timeout(PATIENCE):
        return [data async for _, data in follower]


def test_a_client_is_sent_again_what_came_after_its_last_event() -> None:
    """Spec 2025-11-25, basic/transports: Resumability and Redelivery."""
    replay = Replay()
    stream = replay.open(MINE)
    ids = [stream.append(data) for data in (b"1", b"2", b"3")]
    assert [replay.find(MINE, event_id) for event_id in ids] == [
        (stream, 1),
        (stream, 2),
        (stream, 3),
    ]
    assert stream.after(1) == [(ids[1], b"2"), (ids[2], b"3")]
    assert stream.after(3) == []


def test_the_start_of_a_stream_has_an_id() -> None:
    """Spec 2025-11-25, basic/transports: Sending Messages to the Server."""
    replay = Replay()
    stream = replay.open(MINE)
    assert replay.find(MINE, stream.event_id(0)) == (stream, 0)
    assert stream.after(0) == []
    assert stream.append(b"1") == stream.event_id(1)
    assert replay.find(MINE, stream.event_id(0)) == (stream, 0)
    assert stream.after(0) == [(stream.event_id(1), b"1")]


def test_no_two_events_of_a_session_have_one_id() -> None:
    """Spec 2025-11-25, basic/transports: Resumability and Redelivery."""
    replay = Replay()
    streams = [replay.open(MINE) for _ in range(100)]
    ids = {stream.append(b"{}") for stream in streams for _ in range(3)}
    assert len(ids) == 300


def test_a_stream_is_found_only_by_its_own_session() -> None:
    """Spec 2025-11-25, basic/transports: Resumability and Redelivery."""
    replay = Replay()
    mine, other = replay.open(MINE), replay.open(OTHER)
    event_id = mine.append(b"secret")
    assert replay.find(OTHER, event_id) is None
    assert replay.find("", event_id) is None
    assert replay.find(OTHER, other.event_id(0)) == (other, 0)


@pytest.mark.parametrize(
    "shape",
    [
        "",
        ".",
        "{stream}",
        "{stream}.",
        ".1",
        "{stream}.2",
        "{stream}.01",
        "{stream}.-1",
        "{stream}.+1",
        "{stream}. 1",
        "{stream}.1 ",
        "{stream}.1\n",
        "{stream}.1.1",
        "{stream}.1_0",
        "{stream}.\u0661",
        "{stream}.\u00b9",
        " {stream}.1",
        "{stream}é.1",
        "AAAAAAAAAAAAAAAA.1",
        # More digits than Python makes a number of.
        "{stream}.1" + "0" * 5000,
        "{stream}" * 100_000 + ".1",
    ],
    ids=lambda shape: ascii(shape[:24]),
)
def test_what_is_not_an_id_of_an_event_finds_nothing(shape: str) -> None:
    """Ours."""
    replay = Replay()
    stream = replay.open(MINE)
    assert replay.find(MINE, stream.append(b"1")) == (stream, 1)
    assert replay.find(MINE, shape.format(stream=stream.stream_id)) is None


def test_a_stream_keeps_its_latest_events() -> None:
    """Ours."""
    replay = Replay()
    stream = replay.open(MINE)
    ids = [stream.append(b"%d" % number) for number in range(MAX_EVENTS + 2)]
    expected = [b"%d" % number for number in range(2, MAX_EVENTS + 2)]
    assert data_of(stream) == expected
    # There is a gap after the first, and none after the third.
    assert data_of(stream, 1) == expected
    assert data_of(stream, 3) == expected[1:]
    assert replay.find(MINE, ids[0]) == (stream, 1)
    assert stream.after(MAX_EVENTS + 1) == [(ids[-1], expected[-1])]


@pytest.mark.parametrize(
    ("sizes", "kept"),
    [
        ([MAX_BYTES - 1, 1], [MAX_BYTES - 1, 1]),
        ([MAX_BYTES - 1, 1, 1], [1, 1]),
        ([5, 5, MAX_BYTES - 5], [5, MAX_BYTES - 5]),
        ([5, MAX_BYTES], [MAX_BYTES]),
        # One that is larger is the response, more likely than not.
        ([5, 5 * MAX_BYTES], [5 * MAX_BYTES]),
        ([5 * MAX_BYTES, 5], [5]),
        ([0] * (MAX_EVENTS + 1), [0] * MAX_EVENTS),
    ],
    ids=str,
)
def test_a_stream_keeps_a_mebibyte_or_one_event(
    sizes: list[int], kept: list[int]
) -> None:
    """Ours."""
    stream = Replay().open(MINE)
    for size in sizes:
        stream.append(b"x" * size)
    assert [len(data) for data in data_of(stream)] == kept
    assert (stream.size, stream.last) == (sum(kept), len(sizes))


def test_a_finished_stream_is_kept_for_a_time() -> None:
    """Ours."""
    clock = Clock()
    replay = Replay(clock=clock)
    early, late, never = (replay.open(MINE) for _ in range(3))
    early.append(b"1")
    early.finish()
    clock.now += 100
    late.finish()
    # That it has finished again changes nothing.
    early.finish()
    clock.now += KEPT_SECONDS - 100 - 0.5
    assert found(replay, early, late, never) == [True, True, True]
    clock.now += 0.5
    assert found(replay, early, late, never) == [False, True, True]
    clock.now += 100
    assert found(replay, early, late, never) == [False, False, True]
    clock.now += 1e9
    assert found(replay, early, late, never) == [False, False, True]


def test_the_longest_finished_streams_go_first() -> None:
    """Ours."""
    replay = Replay()
    unused, first, second = (replay.open(MINE) for _ in range(3))
    second.finish()
    first.finish()
    for _ in range(MAX_STREAMS - 3):
        replay.open(MINE)
    assert found(replay, unused, first, second) == [True, True, True]
    replay.open(MINE)
    assert found(replay, unused, first, second) == [True, True, False]
    replay.open(MINE)
    assert found(replay, unused, first, second) == [True, False, False]


def test_then_the_least_recently_used_ones_go() -> None:
    """Ours."""
    replay = Replay()
    asked_for, unused, written = (replay.open(MINE) for _ in range(3))
    rest = [replay.open(OTHER) for _ in range(MAX_STREAMS - 3)]
    written.append(b"1")
    assert found(replay, asked_for) == [True]
    replay.open(MINE)
    replay.open(MINE)
    assert found(replay, unused, rest[0]) == [False, False]
    assert found(replay, asked_for, written, rest[1]) == [True, True, True]


def test_streams_go_when_they_keep_too_much_together() -> None:
    """Ours."""
    replay = Replay()
    streams = [replay.open(MINE) for _ in range(MAX_TOTAL_BYTES // MAX_BYTES)]
    for stream in streams:
        stream.append(FULL)
    assert found(replay, *streams) == [True] * len(streams)
    streams[5].finish()
    another = replay.open(MINE)
    assert found(replay, streams[5]) == [True]
    another.append(b"x")
    assert found(replay, streams[5]) == [False]
    # What went is not counted any more, and has room for another.
    another.append(b"x" * (MAX_BYTES - 1))
    rest = [stream for stream in streams if stream is not streams[5]]
    assert found(replay, another, *rest) == [True] * len(streams)


def test_what_was_dropped_of_a_stream_leaves_room_for_others() -> None:
    """Ours."""
    replay = Replay()
    idle, busy = replay.open(MINE), replay.open(MINE)
    for _ in range(2 * MAX_TOTAL_BYTES // MAX_BYTES):
        busy.append(FULL)
    assert found(replay, idle, busy) == [True, True]


def test_what_ended_leaves_room_for_others() -> None:
    """Ours."""
    clock = Clock()
    replay = Replay(clock=clock)
    idle = replay.open(MINE)
    for finished in (True, False) * (2 * MAX_TOTAL_BYTES // MAX_BYTES):
        stream = replay.open(OTHER)
        stream.append(FULL)
        if finished:
            stream.finish()
            clock.now += KEPT_SECONDS
        else:
            replay.end(OTHER)
    assert found(replay, idle) == [True]


def test_an_event_that_is_too_large_for_all_can_not_be_found() -> None:
    """Ours."""
    replay = Replay()
    idle, stream = replay.open(MINE), replay.open(MINE)
    stream.append(b"x" * (MAX_TOTAL_BYTES + 1))
    assert found(replay, idle, stream) == [False, False]
    assert found(replay, replay.open(MINE)) == [True]
    assert [len(data) for data in data_of(stream)] == [MAX_TOTAL_BYTES + 1]


@pytest.mark.parametrize("finishes", [True, False])
def test_ten_thousand_streams_leave_no_more_than_the_bounds(*, finishes: bool) -> None:
    """Ours: counted without the garbage collector, and by the streams there are."""
    replay = Replay()
    streams: list[weakref.ref[Buffer]] = []
    gc.disable()
    try:
        for number in range(10_000):
            stream = replay.open(f"session {number}")
            stream.follow()
            stream.append(b"x" * 100_000)
            if finishes:
                stream.finish()
            streams.append(weakref.ref(stream))
        del stream
        left = [kept for ref in streams if (kept := ref()) is not None]
    finally:
        gc.enable()
    assert found(replay, *left) == [True] * len(left)
    assert len(left) == MAX_TOTAL_BYTES // 100_000
    assert sum(len(data) for stream in left for data in data_of(stream)) == (
        len(left) * 100_000
    )


def test_ten_thousand_small_streams_are_a_thousand() -> None:
    """Ours."""
    replay = Replay()
    streams: list[weakref.ref[Buffer]] = []
    for _ in range(10_000):
        stream = replay.open(MINE)
        stream.append(b"{}")
        stream.finish()
        streams.append(weakref.ref(stream))
    del stream
    alive = [ref() is not None for ref in streams]
    assert alive == [False] * 9_000 + [True] * 1_000


async def test_a_follower_has_what_was_kept_and_then_what_comes() -> None:
    """Spec 2025-11-25, basic/transports: Resumability and Redelivery."""
    stream = Replay().open(MINE)
    ids = [stream.append(b"1"), stream.append(b"2")]
    follower = stream.follow(1)
    task = asyncio.ensure_future(collect(follower))
    await wait_all_tasks_blocked()
    ids.append(stream.append(b"3"))
    await wait_all_tasks_blocked()
    ids += [stream.append(b"4"), stream.append(b"5")]
    stream.finish()
    assert await asyncio.wait_for(task, PATIENCE) == [
        (ids[1], b"2"),
        (ids[2], b"3"),
        (ids[3], b"4"),
        (ids[4], b"5"),
    ]
    assert not follower.displaced


async def collect(follower: Follower) -> list[tuple[str, bytes]]:
    return [event async for event in follower]


async def test_who_follows_a_finished_stream_has_what_is_kept() -> None:
    """Ours."""
    stream = Replay().open(MINE)
    stream.append(b"1")
    stream.append(b"2")
    stream.finish()
    assert stream.finished
    assert await taken(stream.follow()) == [b"1", b"2"]
    assert await taken(stream.follow(1)) == [b"2"]
    assert await taken(stream.follow(2)) == []


async def test_a_follower_that_waits_ends_when_the_stream_finishes() -> None:
    """Ours."""
    stream = Replay().open(MINE)
    task = asyncio.ensure_future(collect(stream.follow()))
    await wait_all_tasks_blocked()
    assert not task.done()
    stream.finish()
    assert await asyncio.wait_for(task, PATIENCE) == []


async def test_the_newest_follower_displaces_one_that_waits() -> None:
    """Spec 2025-11-25, basic/transports: Multiple Connections."""
    stream = Replay().open(MINE)
    older = stream.follow()
    task = asyncio.ensure_future(collect(older))
    await wait_all_tasks_blocked()
    newer = stream.follow()
    stream.append(b"1")
    stream.finish()
    assert await asyncio.wait_for(task, PATIENCE) == []
    assert await taken(newer) == [b"1"]
    assert (older.displaced, newer.displaced) == (True, False)


async def test_a_displaced_follower_takes_nothing_more() -> None:
    """Spec 2025-11-25, basic/transports: Multiple Connections."""
    stream = Replay().open(MINE)
    for data in (b"1", b"2", b"3"):
        stream.append(data)
    stream.finish()
    older = stream.follow()
    assert await anext(older) == (stream.event_id(1), b"1")
    newer = stream.follow(1)
    assert await taken(older) == []
    assert await taken(newer) == [b"2", b"3"]


async def test_streams_of_a_session_are_followed_side_by_side() -> None:
    """Spec 2025-11-25, basic/transports: Multiple Connections."""
    replay = Replay()
    one, two = replay.open(MINE), replay.open(MINE)
    first, second = one.follow(), two.follow()
    one.append(b"1")
    two.append(b"2")
    one.finish()
    two.finish()
    assert (await taken(first), await taken(second)) == ([b"1"], [b"2"])


async def test_a_follower_that_gave_up_waiting_has_lost_nothing() -> None:
    """Ours."""
    stream = Replay().open(MINE)
    follower = stream.follow()
    for data in (b"1", b"2"):
        task = asyncio.ensure_future(collect(follower))
        await wait_all_tasks_blocked()
        task.cancel()
        await asyncio.wait([task])
        assert task.cancelled()
        event_id = stream.append(data)
        assert await anext(follower) == (event_id, data)


async def test_a_slow_follower_misses_what_was_dropped() -> None:
    """Ours."""
    stream = Replay().open(MINE)
    follower = stream.follow()
    stream.append(b"first")
    assert await anext(follower) == (stream.event_id(1), b"first")
    for number in range(MAX_EVENTS + 7):
        stream.append(b"%d" % number)
    stream.finish()
    expected = [b"%d" % number for number in range(7, MAX_EVENTS + 7)]
    assert await taken(follower) == expected


async def test_the_end_of_a_session_ends_its_streams_alone() -> None:
    """Spec 2025-11-25, basic/transports: Session Management."""
    replay = Replay()
    mine, finished, other = replay.open(MINE), replay.open(MINE), replay.open(OTHER)
    waiting = asyncio.ensure_future(collect(mine.follow()))
    behind, unconcerned = finished.follow(), other.follow()
    for stream in (finished, other):
        stream.append(b"1")
    finished.finish()
    await wait_all_tasks_blocked()
    replay.end(MINE)
    replay.end(MINE)
    replay.end("never seen")
    assert found(replay, mine, finished, other) == [False, False, True]
    assert await asyncio.wait_for(waiting, PATIENCE) == []
    assert await taken(behind) == []
    assert (data_of(finished), finished.size) == ([], 0)
    assert await anext(unconcerned) == (other.event_id(1), b"1")


@pytest.mark.parametrize(("ends", "kept"), [(False, [b"1"]), (True, [])])
async def test_a_stream_takes_nothing_once_it_has_stopped(
    *, ends: bool, kept: list[bytes]
) -> None:
    """Ours: a handler may say something after its response, or its session's end."""
    replay = Replay()
    stream = replay.open(MINE)
    stream.append(b"1")
    stream.finish()
    if ends:
        replay.end(MINE)
    event_id = stream.append(b"late")
    stream.finish()
    assert event_id == stream.event_id(2)
    assert replay.find(stream.session_id, event_id) is None
    assert data_of(stream) == await taken(stream.follow()) == kept
    assert found(replay, stream) == [not ends]


async def test_a_stream_that_went_goes_on_for_those_who_hold_it() -> None:
    """Ours: there is no response for a client but the one it waits for."""
    replay = Replay()
    stream = replay.open(MINE)
    follower = stream.follow()
    stream.append(b"1")
    for _ in range(MAX_STREAMS):
        replay.open(OTHER)
    assert found(replay, stream) == [False]
    stream.append(b"2")
    stream.finish()
    assert found(replay, stream) == [False]
    assert await taken(follower) == [b"1", b"2"]


async def test_a_stream_that_went_ends_with_its_session() -> None:
    """Spec 2025-11-25, basic/transports: Session Management."""
    replay = Replay()
    stream = replay.open(MINE)
    task = asyncio.ensure_future(collect(stream.follow()))
    await wait_all_tasks_blocked()
    for _ in range(MAX_STREAMS):
        replay.open(OTHER)
    replay.end(MINE)
    assert await asyncio.wait_for(task, PATIENCE) == []


def test_the_examples_hold() -> None:
    results = doctest.testmod(module)
    assert results == (0, results.attempted)
    assert results.attempted > 0


async def test_a_stream_is_left_when_who_follows_it_now_leaves() -> None:
    buffer = Replay().open(MINE)
    before, now = buffer.follow(), buffer.follow()
    before.leave()
    assert buffer.away_since is None
    now.leave()
    assert buffer.away_since is not None
