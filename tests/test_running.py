"""A handler that waits runs on as if nothing had been looked at in between."""

import asyncio
import contextlib
import contextvars
import importlib.util
import traceback
from collections.abc import Awaitable, Callable, Coroutine, Generator
from typing import Any, Final

import anyio
import anyio.to_thread
import pytest

from mcpkit import App, Context, dispatch
from tests.calls import call_tool, failed, request, text

LOOPS: Final = {"asyncio": asyncio.new_event_loop}
if importlib.util.find_spec("uvloop") is not None:
    import uvloop

    LOOPS["uvloop"] = uvloop.new_event_loop

variable: contextvars.ContextVar[str] = contextvars.ContextVar("variable", default="-")


class Once:
    """What gives the event loop a turn, and then a value."""

    def __await__(self) -> Generator[None, None, str]:
        """Wait for one turn."""
        yield
        return "value"


async def values() -> str:
    """Wait for futures, for none, and for what is there already."""
    loop = asyncio.get_running_loop()
    future = loop.create_future()
    loop.call_soon(future.set_result, "a")
    done = loop.create_future()
    done.set_result("b")
    await asyncio.sleep(0)
    return str([await future, await done, await Once(), await asyncio.sleep(0, "c")])


async def variables() -> str:
    """Set a context variable before and after waiting."""
    variable.set("before")
    await asyncio.sleep(0)
    seen = variable.get()
    variable.set("after")
    await asyncio.sleep(0)
    in_task = await asyncio.create_task(_variable())
    in_thread = await asyncio.to_thread(variable.get)
    return str([seen, variable.get(), in_task, in_thread])


async def _variable() -> str:
    return variable.get()


async def tasks() -> str:
    """Be in one task all the time."""
    before = asyncio.current_task()
    await asyncio.sleep(0)
    return str([before is not None, before is asyncio.current_task()])


async def errors() -> str:
    """Catch what is raised by what it waits for."""
    future = asyncio.get_running_loop().create_future()
    asyncio.get_running_loop().call_soon(future.set_exception, KeyError("a"))
    try:
        await future
    except KeyError as error:
        return repr(error)
    raise NotImplementedError


async def timeouts() -> str:
    """Give up what takes too long, and go on."""
    seen = []
    try:
        async with asyncio.timeout(0):
            await asyncio.Event().wait()
    except TimeoutError:
        seen.append("timeout")
    try:
        await asyncio.wait_for(asyncio.Event().wait(), 0.001)
    except TimeoutError:
        seen.append("wait_for")
    task = asyncio.current_task()
    assert task is not None
    return str([*seen, task.cancelling(), await asyncio.sleep(0, "on")])


async def scopes() -> str:
    """Use the scopes, groups and threads of anyio."""
    seen = []
    with anyio.move_on_after(0) as scope:
        await anyio.sleep_forever()
    seen.append(scope.cancelled_caught)
    async with anyio.create_task_group() as group:
        group.start_soon(anyio.sleep_forever)
        await anyio.sleep(0)
        group.cancel_scope.cancel()
    with anyio.CancelScope(shield=True):
        seen.append(await anyio.to_thread.run_sync(lambda: True))
    event = anyio.Event()
    with anyio.fail_after(5):
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(event.wait())
            event.set()
    return str(seen)


async def child() -> str:
    """Wait for a task that was cancelled, and is not this one."""
    task = asyncio.create_task(asyncio.Event().wait())
    await asyncio.sleep(0)
    task.cancel()
    try:
        await task
    except asyncio.CancelledError:
        return "cancelled"
    raise NotImplementedError


async def generators() -> str:
    """Leave an async generator that waits."""
    seen = []

    async def numbers() -> Any:
        try:
            for number in range(3):
                await asyncio.sleep(0)
                yield number
        finally:
            await asyncio.sleep(0)
            seen.append("closed")

    async with contextlib.aclosing(numbers()) as several:
        async for number in several:
            seen.append(number)
            break
    return str(seen)


@pytest.mark.parametrize("new_loop", LOOPS.values(), ids=LOOPS.keys())
@pytest.mark.parametrize(
    ("handler", "expected"),
    [
        (values, ["a", "b", "value", "c"]),
        (variables, ["before", "after", "after", "after"]),
        (tasks, [True, True]),
        (errors, "KeyError('a')"),
        (timeouts, ["timeout", "wait_for", 0, "on"]),
        (scopes, [True, True]),
        (child, "cancelled"),
        (generators, [0, "closed"]),
    ],
)
def test_a_handler_can_wait_for_anything(
    handler: Callable[[], Awaitable[str]],
    expected: Any,
    new_loop: Callable[[], asyncio.AbstractEventLoop],
) -> None:
    """CTX-03. The same as without the app."""
    app = App("tests")
    app.add_tool(handler, name="x")
    with asyncio.Runner(loop_factory=new_loop) as runner:
        assert runner.run(_alone(handler)) == str(expected)
        assert runner.run(call_tool(app, "x")) == text(str(expected))
    assert len(app.running) == 0


async def _alone(handler: Callable[[], Awaitable[str]]) -> str:
    return await handler()


async def test_what_a_handler_sets_stays_in_its_request() -> None:
    """CTX-01."""
    app = App("tests")

    @app.tool
    async def become(name: str) -> str:
        before = variable.get()
        variable.set(name)
        await asyncio.sleep(0)
        return f"{before} {variable.get()}"

    async def ask(name: str) -> Any:
        return await call_tool(app, "become", {"name": name})

    names = [f"user {number}" for number in range(20)]
    answers = await asyncio.gather(*(ask(name) for name in names))
    assert answers == [text(f"- {name}") for name in names]


@pytest.mark.parametrize("waits", [False, True])
async def test_an_error_has_the_lines_of_its_handler(
    waits: bool,  # noqa: FBT001  # a column of the table
    caplog: pytest.LogCaptureFixture,
) -> None:
    app = App("tests")

    @app.tool
    async def x() -> str:
        if waits:
            await asyncio.sleep(0)
        raise LookupError("lost")

    assert await call_tool(app, "x") == failed("Tool x failed")
    [record] = caplog.records
    assert record.exc_info is not None
    lines = "".join(traceback.format_exception(record.exc_info[1]))
    assert 'raise LookupError("lost")' in lines


async def test_a_child_that_was_cancelled_fails_its_handler_alone() -> None:
    app = App("tests")

    @app.tool
    async def x() -> str:
        task = asyncio.create_task(asyncio.Event().wait())
        asyncio.get_running_loop().call_soon(task.cancel)
        await task
        raise NotImplementedError

    assert await call_tool(app, "x") == failed("Tool x failed")


async def test_a_task_that_is_cancelled_cancels_what_it_waits_for() -> None:
    app = App("tests")
    steps: list[str] = []
    waits = asyncio.Event()

    @app.tool
    async def x() -> str:
        waits.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            steps.append("cancelled")
            raise
        raise NotImplementedError

    task = asyncio.create_task(call_tool(app, "x"))
    await waits.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert steps == ["cancelled"]
    assert len(app.running) == 0


def test_a_request_that_is_dropped_closes_its_handler() -> None:
    app = App("tests")
    steps: list[str] = []

    @app.tool
    async def x(ctx: Context) -> str:
        try:
            await Once()
        except GeneratorExit:
            steps.append("closed")
            raise
        finally:
            steps.append(f"finally, {ctx.cancelled}")
        raise NotImplementedError

    async def begin() -> Coroutine[Any, Any, Any]:
        begun = dispatch(request("tools/call", name="x"), app)
        begun.send(None)
        return begun

    begun = asyncio.run(begin())
    begun.close()
    assert steps == ["closed", "finally, False"]
    assert len(app.running) == 0


def test_what_a_loop_still_runs_when_it_ends_is_cancelled() -> None:
    app = App("tests")
    kept: list[asyncio.Task[Any]] = []
    steps: list[str] = []

    waits = asyncio.Event()

    @app.tool
    async def x() -> str:
        waits.set()
        try:
            await asyncio.Event().wait()
        finally:
            steps.append("finally")
        raise NotImplementedError

    async def begin() -> None:
        kept.append(asyncio.create_task(call_tool(app, "x")))
        await waits.wait()

    asyncio.run(begin())
    assert steps == ["finally"]
    assert kept[0].cancelled()


async def test_a_handler_that_never_waits_is_not_looked_after() -> None:
    app = App("tests")
    seen: list[int] = []

    @app.tool
    async def x() -> str:
        seen.append(len(app.running))
        return "done"

    assert await call_tool(app, "x", at="2025-11-25") == text("done")
    assert seen == [0]
