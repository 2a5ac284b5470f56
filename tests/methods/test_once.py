"""What a handler does once, however many rounds of questions there are."""

import asyncio
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import date
from typing import Any

import pytest
from pydantic import BaseModel

from mcpkit import Context
from tests.calls import text
from tests.rounds import (
    EVERY,
    INTERNAL,
    Target,
    app_of,
    ask,
    named,
    retry,
    send,
    three,
    through,
)


@EVERY
async def test_code_before_a_question_runs_in_each_round(target: Target) -> None:
    """MRTR-13: so it is documented."""
    ran: list[int] = []

    async def handler(ctx: Context) -> str:
        ran.append(ctx.round)
        return await three(ctx)

    app = app_of(handler)
    asked = await send(app, target)
    for key in ("elicitation", "elicitation-2", "elicitation-3"):
        asked = await retry(app, asked, {key: named("a")}, target)
    assert ran == [1, 2, 3, 4]


class Order(BaseModel):
    """A model."""

    number: int
    placed: date
    label: bytes = b"x"


@dataclass
class Parcel:
    """A dataclass."""

    weight: float
    to: tuple[str, ...]


def order(number: int) -> Order:
    return Order(number=number, placed=date(2026, 7, 28))


async def parcel() -> Parcel:
    return Parcel(1.5, ("Ada", "Bob"))


def today() -> date:
    return date(2026, 7, 28)


def nothing() -> None:
    pass


def raw() -> bytes:
    return bytes(range(256))


def many() -> list[Order]:
    return [order(1)]


def infinite() -> float:
    return float("inf")


def delegating() -> Awaitable[Parcel]:
    return parcel()


def by_name(*, number: int) -> Order:
    return order(number)


EFFECTS: dict[str, tuple[Callable[..., Any], dict[str, Any], Any]] = {
    # id: function, its arguments, what it returns
    "a model": (order, {"number": 1}, order(1)),
    "arguments by name": (by_name, {"number": 2}, order(2)),
    "a dataclass, async": (parcel, {}, Parcel(1.5, ("Ada", "Bob"))),
    "a function that returns what is awaited": (
        delegating,
        {},
        Parcel(1.5, ("Ada", "Bob")),
    ),
    "a date": (today, {}, date(2026, 7, 28)),
    "nothing": (nothing, {}, None),
    "bytes": (raw, {}, bytes(range(256))),
    "a list of models": (many, {}, [order(1)]),
    "infinity": (infinite, {}, float("inf")),
    "a class": (Order, {"number": 1, "placed": today()}, order(1)),
}


@EVERY
@pytest.mark.parametrize(("function", "kwargs", "value"), EFFECTS.values(), ids=EFFECTS)
async def test_an_effect_happens_once_and_its_value_stays_what_it_is(
    function: Callable[..., Any], kwargs: dict[str, Any], value: Any, target: Target
) -> None:
    """MRTR-13."""
    values = []

    async def handler(ctx: Context) -> str:
        values.append(await ctx.once("it", function, **kwargs))
        return await three(ctx)

    assert target.text(await through(app_of(handler), target)) == "a a a, round 4"
    assert values == [value] * 4
    assert {type(it) for it in values} == {type(value)}


@EVERY
async def test_an_effect_happens_once_over_all_rounds(target: Target) -> None:
    """MRTR-13: sync, async, and at the same time as others."""
    done: list[str] = []

    def sync(name: str) -> str:
        done.append(name)
        return name

    async def slowly(name: str) -> str:
        await asyncio.sleep(0)
        return sync(name)

    async def handler(ctx: Context) -> str:
        await ctx.once("a", sync, "a")
        await ask(ctx, "First?")
        await asyncio.gather(
            ctx.once("b", sync, "b"), ctx.once("c", slowly, "c"), ask(ctx, "Second?")
        )
        await ctx.once("d", lambda: slowly("d"))
        await ask(ctx, "Third?")
        await ctx.once("e", slowly, "e")
        return " ".join(sorted(done))

    assert target.text(await through(app_of(handler), target)) == "a b c d e"


@EVERY
@pytest.mark.parametrize("waits", ["for all", "for the first", "for none"])
async def test_an_effect_that_has_begun_ends_before_the_client_is_asked(
    waits: str, target: Target
) -> None:
    """MRTR-13: that it was done is not forgotten because a question came first."""
    done: list[str] = []

    async def charge() -> str:
        done.append("begun")
        for _ in range(20):
            await asyncio.sleep(0)
        done.append("done")
        return "charged"

    async def handler(ctx: Context) -> str:
        charging = ctx.once("charge", charge)
        match waits:
            case "for all":
                async with asyncio.TaskGroup() as group:
                    charged = group.create_task(charging)
                    asked = group.create_task(ask(ctx, "First?"))
                return f"{charged.result()} {asked.result()}"
            case "for the first":
                return " ".join(await asyncio.gather(charging, ask(ctx, "First?")))
            case _:
                task = asyncio.create_task(charging)
                await asyncio.sleep(0)
                name = await ask(ctx, "First?")
                return f"{await task} {name}"

    assert target.text(await through(app_of(handler), target)) == "charged a"
    assert done == ["begun", "done"]


async def test_an_effect_is_cancelled_with_who_waits_for_it() -> None:
    """Ours: as whatever is awaited is. It is not done, and is tried again."""
    ends: list[str] = []

    async def charge() -> str:
        try:
            if not ends:
                await asyncio.Event().wait()
        finally:
            ends.append("ended")
        return "charged"

    async def handler(ctx: Context) -> str:
        try:
            async with asyncio.timeout(0.01):
                return f"{await ctx.once('charge', charge)}"
        except TimeoutError:
            await asyncio.sleep(0)
            return f"{ends} {await ctx.once('charge', charge)}"

    assert await send(app_of(handler)) == text("['ended'] charged")


async def test_nothing_is_done_once_after_a_question() -> None:
    """Ours: it is done in the round that has the answer."""
    done: list[int] = []

    async def handler(ctx: Context) -> str:
        try:
            return await ask(ctx, "First?")
        finally:
            await ctx.once("it", done.append, ctx.round)

    assert await through(app_of(handler)) == text("a")
    assert done == [2]


async def test_an_effect_that_fails_is_tried_again() -> None:
    """Ours."""
    tried: list[int] = []

    async def unsteady() -> str:
        tried.append(1)
        if len(tried) == 1:
            raise ConnectionError
        return "done"

    async def handler(ctx: Context) -> str:
        found = "not yet"
        try:
            found = await ctx.once("it", unsteady)
        except ConnectionError:
            await ask(ctx, "First?")
        return f"{found} {len(tried)}"

    assert await through(app_of(handler)) == text("done 2")


def leave() -> None:
    raise SystemExit(3)


async def leave_later() -> None:
    await asyncio.sleep(0)
    raise KeyboardInterrupt


@pytest.mark.parametrize("effect", [leave, leave_later])
async def test_an_effect_that_exits_ends_its_request_and_not_the_server(
    effect: Callable[..., Any],
) -> None:
    """Ours: it is in a task, and an exit out of one ends the event loop."""

    async def handler(ctx: Context) -> str:
        await ctx.once("exit", effect)
        return "not reached"

    failed = await send(app_of(handler))
    assert failed == {**text("Tool ask failed"), "isError": True}


async def test_the_same_effect_at_the_same_time_happens_once() -> None:
    """Ours."""
    done: list[int] = []

    async def count() -> int:
        done.append(1)
        await asyncio.sleep(0)
        return len(done)

    async def handler(ctx: Context) -> str:
        both = await asyncio.gather(ctx.once("it", count), ctx.once("it", count))
        return f"{both}"

    assert await send(app_of(handler)) == text("[1, 1]")


class Socket:
    """What has no JSON form."""


def connect() -> Socket:
    return Socket()


def untold():  # type: ignore[no-untyped-def]  # noqa: ANN201
    return Socket()


def liar() -> str:
    return 5  # type: ignore[return-value]


def unresolved() -> "NoSuchType":  # type: ignore[name-defined]  # noqa: F821
    raise NotImplementedError


UNKEPT: dict[str, tuple[Callable[..., Any], str]] = {
    # id: function, what the log says
    "an unknown class": (connect, "what connect returns can't be kept between two"),
    "not annotated": (untold, "ctx.once('it'): what the function returned has no"),
    "not what it says": (liar, "or is not of the type that it is annotated with"),
    "unresolved": (unresolved, "the annotation of what it returns can't be resolved"),
}


@pytest.mark.parametrize(("function", "said"), UNKEPT.values(), ids=UNKEPT)
async def test_an_effect_whose_result_cannot_be_kept_fails_at_once(
    function: Callable[..., Any], said: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Ours: in the first round, whether or not there will be another."""

    async def handler(ctx: Context) -> str:
        await ctx.once("it", function)
        raise NotImplementedError

    failed = await send(app_of(handler))
    assert failed == {**text("Tool ask failed"), "isError": True}
    assert said in caplog.text


@EVERY
async def test_answers_that_are_too_large_to_go_on_with_are_the_clients_fault(
    target: Target, caplog: pytest.LogCaptureFixture
) -> None:
    """Ours: there is no error of ours, and nothing for the log, in what it sends."""
    app = app_of(three)
    asked = await send(app, target)
    noise = random.Random(1).randbytes(48 * 1024).hex()  # noqa: S311  # as above
    fault = "Invalid params: inputResponses are too large"
    for responses in (
        {"elicitation": named(noise)},
        {"elicitation": named("a"), "unasked": {"noise": noise}},
    ):
        answer = await retry(app, asked, responses, target)
        assert answer == {"code": -32602, "message": fault}
    assert caplog.records == []


@EVERY
async def test_what_is_too_large_for_a_state_is_an_internal_error(
    target: Target, caplog: pytest.LogCaptureFixture
) -> None:
    """MRTR-13. 64 KiB, and noise that can't be compressed."""

    def noise() -> bytes:
        return random.Random(1).randbytes(64 * 1024)  # noqa: S311  # the same each time

    async def handler(ctx: Context) -> str:
        await ctx.once("noise", noise)
        return await three(ctx)

    assert await send(app_of(handler), target) == INTERNAL
    assert "can't go on asking" in caplog.text
    assert "what is to be kept is too large: its token has" in caplog.text
