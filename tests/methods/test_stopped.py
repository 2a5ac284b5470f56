"""Handlers that are stopped by a question, and what they leave behind."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from typing import Annotated

import pytest
from fastapi import Depends

from mcpkit import App, Context, ToolError
from mcpkit.errors import (
    InputRequiredError,
)
from tests.calls import failed
from tests.rounds import (
    EVERY,
    Handler,
    Name,
    Target,
    app_of,
    ask,
    messages_of,
    named,
    retry,
    send,
    three,
    through,
)


async def swallowing(ctx: Context) -> str:
    try:
        return await ask(ctx, "First?")
    except BaseException:  # noqa: BLE001  # that is the test
        return "swallowed"


async def suppressed(ctx: Context) -> str:
    try:
        return await ask(ctx, "First?")
    except BaseException as error:
        raise ValueError from error


async def retrying(ctx: Context) -> str:
    while True:
        try:
            return await ask(ctx, "First?")
        except Exception:  # noqa: BLE001, S112  # that is the test
            continue


async def cleaning(ctx: Context) -> str:
    try:
        return await ask(ctx, "First?")
    finally:
        await asyncio.sleep(0)


async def timing(ctx: Context) -> str:
    async with asyncio.timeout(5):
        return await ask(ctx, "First?")


STUBBORN: dict[str, Handler] = {
    "it swallows all errors": swallowing,
    "it raises another": suppressed,
    "it tries again": retrying,
    "it waits while it cleans up": cleaning,
    "it has a time limit": timing,
}


@EVERY
@pytest.mark.parametrize("handler", STUBBORN.values(), ids=STUBBORN)
async def test_a_handler_is_stopped_by_its_question(
    handler: Handler, target: Target
) -> None:
    """Ours."""
    app = app_of(handler)
    asked = await send(app, target)
    assert messages_of(asked) == {"elicitation": "First?"}
    done = await retry(app, asked, {"elicitation": named("a")}, target)
    assert target.text(done) == "a"


async def test_the_finally_blocks_of_a_handler_run_in_each_round() -> None:
    """Ours."""
    closed: list[int] = []

    async def handler(ctx: Context) -> str:
        try:
            return await three(ctx)
        finally:
            closed.append(ctx.round)

    await through(app_of(handler))
    assert closed == [1, 2, 3, 4]


# Handlers in threads


def threaded(*, thread: bool = True) -> App:
    """Make an app whose handlers have no async."""
    app = App("tests", secret_key="k" * 32)

    def ask(about: str, ctx: Context) -> str:
        first = ctx.wait(ctx.elicit(f"First, {about}?", Name)).data.name
        number = ctx.wait(ctx.once("it", abs, -5))
        second = ctx.wait(ctx.elicit(f"Second, {first}?", Name)).data.name
        return f"{first} {second} {number}"

    app.add_tool(ask, thread=thread)
    app.add_resource("ask://{about}", ask, thread=thread)
    app.add_prompt(ask, thread=thread)
    return app


@EVERY
async def test_a_handler_in_a_thread_asks_too(target: Target) -> None:
    """Ours."""
    app = threaded()
    first = await send(app, target)
    assert messages_of(first) == {"elicitation": "First, tea?"}
    second = await retry(app, first, {"elicitation": named("a")}, target)
    assert messages_of(second) == {"elicitation-2": "Second, a?"}
    done = await retry(app, second, {"elicitation-2": named("b")}, target)
    assert target.text(done) == "a b 5"


NO_WAIT = (
    "ctx.wait is for a handler without async, in a thread; where there is an event "
    "loop, write await"
)


async def test_a_handler_in_the_event_loop_cannot_wait(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Ours: it would stop everything, for ever."""
    assert (await send(threaded(thread=False)))["isError"]
    assert NO_WAIT in caplog.text


async def test_an_async_handler_cannot_wait_either(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Ours."""

    async def handler(ctx: Context) -> str:
        ctx.wait(ctx.elicit("First?", Name))
        raise NotImplementedError

    assert (await send(app_of(handler)))["isError"]
    assert NO_WAIT in caplog.text


# Dependencies


def dependent(log: list[str]) -> App:
    """Make an app whose handlers have dependencies with yield, of both kinds."""
    app = App("tests", secret_key="k" * 32)

    def generator() -> Iterator[str]:
        log.append("sync opens")
        try:
            yield "sync"
        except InputRequiredError:
            log.append("sync sees the question")
            raise
        finally:
            log.append("sync closes")

    async def async_generator() -> AsyncIterator[str]:
        log.append("async opens")
        try:
            yield "async"
        except InputRequiredError:
            log.append("async sees the question")
            raise
        finally:
            log.append("async closes")

    async def ask_it(
        about: str,
        ctx: Context,
        one: Annotated[str, Depends(generator)],
        two: Annotated[str, Depends(async_generator)],
    ) -> str:
        return f"{about} {one} {two} {await ask(ctx, 'First?')}"

    app.add_tool(ask_it, name="ask")
    app.add_resource("ask://{about}", ask_it)
    app.add_prompt(ask_it, name="ask")
    return app


@EVERY
async def test_dependencies_are_ended_in_each_round(target: Target) -> None:
    """Ours."""
    log: list[str] = []
    app = dependent(log)
    asked = await send(app, target)
    assert messages_of(asked) == {"elicitation": "First?"}
    assert log == [
        "sync opens",
        "async opens",
        "async sees the question",
        "async closes",
        "sync sees the question",
        "sync closes",
    ]
    log.clear()
    done = await retry(app, asked, {"elicitation": named("a")}, target)
    assert target.text(done) == "tea sync async a"
    assert log == ["sync opens", "async opens", "async closes", "sync closes"]


async def test_a_dependency_that_fails_while_it_is_ended_is_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Ours: the question is asked all the same."""
    app = App("tests", secret_key="k" * 32)

    async def broken() -> AsyncIterator[str]:
        try:
            yield "x"
        finally:
            raise ConnectionError("the database is gone")

    @app.tool(name="ask")
    async def tool(
        about: str, ctx: Context, it: Annotated[str, Depends(broken)]
    ) -> str:
        return about + it + await ask(ctx, "First?")

    assert messages_of(await send(app)) == {"elicitation": "First?"}
    assert "the database is gone" in caplog.text


async def failing(_: Context) -> str:
    async def fail() -> None:
        raise ConnectionError("the database is gone")

    async with asyncio.TaskGroup() as group:
        group.create_task(fail())
    raise NotImplementedError


async def recovering(ctx: Context) -> str:
    try:
        await failing(ctx)
    except* ConnectionError:
        pass
    raise ToolError("Try again later.")


FAILED: dict[str, tuple[Handler, str]] = {
    "a group of tasks": (failing, "Tool ask failed"),
    "after a group of tasks": (recovering, "Try again later."),
}


@pytest.mark.parametrize(("handler", "said"), FAILED.values(), ids=FAILED)
async def test_a_group_of_tasks_that_fails_is_no_cancellation(
    handler: Handler, said: str
) -> None:
    """ERR-03. Until Python 3.13 it leaves the task as if it had been cancelled."""
    assert await send(app_of(handler)) == failed(said)
