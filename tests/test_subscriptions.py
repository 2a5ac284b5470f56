"""The open streams of a worker, and what waits in them."""

import asyncio
from typing import Any, Final

import pytest

from mcpkit import subscriptions as module
from mcpkit.backends.memory import MemoryBackend
from mcpkit.bus import Bus
from mcpkit.errors import HTTPError
from mcpkit.subscriptions import (
    ANY_URI,
    MAX_PENDING,
    MAX_PER_PRINCIPAL,
    Change,
    Subscription,
    Subscriptions,
)

PATIENCE: Final = 10
"""Seconds after which a test that hangs gives up."""

TOOLS: Final = Change("list", "tools")
BOOK: Final = Change("uri", "books://1")
NOTHING: Final[frozenset[Any]] = frozenset()
TOOLS_ALONE: Final[frozenset[Any]] = frozenset({"tools"})


def build(limit: int = 1000) -> Subscriptions:
    return Subscriptions(Bus(MemoryBackend(), "shop"), limit)


async def rest(subscription: Subscription) -> list[tuple[Change, bool]]:
    """End a stream, and return what was waiting in it until then."""
    told = []
    async with asyncio.timeout(PATIENCE):
        while subscription._pending:  # noqa: SLF001  # `next` would wait for more
            change = await subscription.next()
            assert change is not None
            told.append(change)
        subscription.end()
        assert await subscription.next() is None
        assert await subscription.take() is None
    return told


async def test_each_stream_is_told_of_what_it_follows() -> None:
    """Spec 2026-07-28, basic/patterns/subscriptions: Opening a Stream."""
    streams = build()
    tools = streams.open(None, TOOLS_ALONE)
    book = streams.open(None, NOTHING, frozenset({BOOK.name}))
    every = streams.open(None, NOTHING, None)
    streams.changed("tools")
    streams.changed("prompts")
    streams.updated(BOOK.name)
    streams.updated("books://2")
    assert await rest(tools) == [(TOOLS, False)]
    assert await rest(book) == [(BOOK, True)]
    assert await rest(every) == [(BOOK, True), (Change("uri", "books://2"), True)]


async def test_a_change_waits_once_and_is_for_all_if_it_ever_was() -> None:
    streams = build()
    stream = streams.open(None, TOOLS_ALONE)
    streams.changed("tools")
    streams.announced("tools")
    streams.changed("tools")
    assert await rest(stream) == [(TOOLS, True)]


async def test_what_waits_is_taken_together() -> None:
    streams = build()
    stream = streams.open(None, TOOLS_ALONE, None)
    async with asyncio.timeout(PATIENCE):
        taking = asyncio.create_task(stream.take())
        await asyncio.sleep(0)
        streams.updated(BOOK.name)
        streams.changed("tools")
        assert await taking == {BOOK: True, TOOLS: False}
        streams.changed("tools")
        assert await stream.take() == {TOOLS: False}


async def test_a_stream_that_is_told_too_much_ends() -> None:
    """Spec 2026-07-28, basic/patterns/subscriptions: Graceful Closure."""
    streams = build()
    uris = [f"books://{number}" for number in range(MAX_PENDING + 1)]
    stream = streams.open(None, TOOLS_ALONE, frozenset(uris))
    ended = []
    for uri in uris:
        streams.updated(uri)
        ended.append(stream.is_over)
    assert ended == [False] * MAX_PENDING + [True]
    streams.changed("tools")
    assert await rest(stream) == []


async def test_a_stream_of_everything_is_told_that_anything_may_be_another() -> None:
    streams = build()
    stream = streams.open(None, TOOLS_ALONE, None)
    streams.changed("tools")
    for number in range(3 * MAX_PENDING):
        streams.updated(f"books://{number}")
    assert await rest(stream) == [(TOOLS, False), (ANY_URI, True)]


async def test_a_stream_is_told_from_any_thread() -> None:
    streams = build()
    stream = streams.open(None, TOOLS_ALONE)
    await asyncio.to_thread(streams.changed, "tools")
    async with asyncio.timeout(PATIENCE):
        assert await stream.next() == (TOOLS, False)
        await asyncio.to_thread(streams.end)
        assert await stream.next() is None


def test_a_loop_that_was_left_need_not_be_told() -> None:
    streams = build()

    async def follow() -> Subscription:
        return streams.open(None, TOOLS_ALONE)

    left = asyncio.run(follow())
    streams.changed("tools")
    streams.end()
    assert not left.is_over
    streams.close(left)
    assert len(streams) == 0


async def test_streams_are_counted_until_they_are_closed() -> None:
    streams = build(limit=2)
    first, second = (streams.open("me", TOOLS_ALONE) for _ in range(2))
    with pytest.raises(HTTPError) as refused:
        streams.open(None, TOOLS_ALONE)
    error = refused.value
    assert (error.status, error.code, error.message) == (
        503,
        -32603,
        "Too many open streams",
    )
    for _ in range(2):
        streams.close(first)
    assert len(streams) == 1
    streams.open("me", TOOLS_ALONE)
    with pytest.raises(HTTPError):
        streams.open("me", TOOLS_ALONE)
    assert not second.is_over


async def test_principals_are_counted_apart() -> None:
    streams = build()
    mine = [streams.open("me", TOOLS_ALONE) for _ in range(MAX_PER_PRINCIPAL)]
    with pytest.raises(HTTPError):
        streams.open("me", TOOLS_ALONE)
    for owner in ("you", None):
        streams.open(owner, TOOLS_ALONE)
    for stream in mine:
        streams.close(stream)
    for _ in range(MAX_PER_PRINCIPAL):
        streams.open("me", TOOLS_ALONE)


async def test_those_that_nobody_hears_make_room_the_longest_unheard_first() -> None:
    streams = build(limit=3)
    first, second, third = (streams.open(None, TOOLS_ALONE) for _ in range(3))
    for stream in (second, first, third):
        streams.leave(stream)
    streams.hear(third)
    for gone in (second, first):
        streams.open(None, TOOLS_ALONE)
        assert gone.is_over
    # What has gone is not there to be left.
    streams.leave(first)
    with pytest.raises(HTTPError):
        streams.open(None, TOOLS_ALONE)
    assert (third.is_over, len(streams)) == (False, 3)


async def test_a_principal_makes_room_for_itself(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "MAX_PER_PRINCIPAL", 2)
    streams = build()
    yours = streams.open("you", TOOLS_ALONE)
    mine = [streams.open("me", TOOLS_ALONE) for _ in range(2)]
    for stream in (yours, mine[1]):
        streams.leave(stream)
    streams.open("me", TOOLS_ALONE)
    assert [stream.is_over for stream in (yours, *mine)] == [False, False, True]


async def test_streams_that_are_opened_after_the_end_are_over() -> None:
    streams = build()
    streams.end()
    assert streams.open(None, TOOLS_ALONE).is_over
    streams.reopen()
    assert not streams.open(None, TOOLS_ALONE).is_over


def test_another_event_loop_begins_anew() -> None:
    streams = build()

    async def follow() -> Subscription:
        return streams.open(None, TOOLS_ALONE)

    async def end() -> None:
        streams.end()
        assert (await follow()).is_over

    asyncio.run(end())
    assert not asyncio.run(follow()).is_over
