"""Sync handlers run in a bounded pool of threads, and block nobody else."""

import asyncio
import contextvars
import functools
import threading
from collections.abc import Callable
from typing import Any

import pytest

from mcpkit import App, Context, SetupError
from mcpkit.threads import Threads
from tests.calls import call, call_tool, structured, text

PATIENCE = 10
"""Seconds after which a test that hangs gives up."""

user: contextvars.ContextVar[str] = contextvars.ContextVar("user", default="nobody")


def blocking(app: App, kind: str, block: Callable[[], Any]) -> Callable[[], Any]:
    """Register a sync function of a kind, and return how to call it."""

    def x() -> str:
        block()
        return "done"

    def completes(value: str) -> list[str]:
        block()
        return [value]

    match kind:
        case "tool":
            app.add_tool(x)
            return functools.partial(call, app, "tools/call", name="x")
        case "resource":
            app.add_resource("a://x", x)
            return functools.partial(call, app, "resources/read", uri="a://x")
        case "prompt":
            app.add_prompt(x)
            return functools.partial(call, app, "prompts/get", name="x")
        case _:
            app.add_prompt(lambda y: y, name="x")
            app.add_completion("x", "y", completes)
            return functools.partial(
                call,
                app,
                "completion/complete",
                ref={"type": "ref/prompt", "name": "x"},
                argument={"name": "y", "value": "done"},
            )


@pytest.mark.parametrize("kind", ["tool", "resource", "prompt", "completion"])
async def test_ten_blocking_calls_overlap_while_a_fast_one_is_served(kind: str) -> None:
    """DEC-16."""
    app = App("tests")
    together = threading.Barrier(11)
    release = threading.Event()

    def block() -> None:
        together.wait(PATIENCE)
        assert release.wait(PATIENCE)

    slow = blocking(app, kind, block)

    @app.tool
    async def fast() -> str:
        return "fast"

    calls = [asyncio.create_task(slow()) for _ in range(10)]
    # All ten are running once they meet this one at the barrier.
    await asyncio.to_thread(together.wait, PATIENCE)
    try:
        assert await call_tool(app, "fast") == text("fast")
        assert not any(task.done() for task in calls)
    finally:
        release.set()
    assert all("done" in str(result) for result in await asyncio.gather(*calls))


async def test_no_more_threads_run_at_once_than_the_app_allows() -> None:
    app = App("tests", threads=2)
    lock = threading.Lock()
    pairs = threading.Barrier(2)
    running = 0
    most = 0

    @app.tool
    def x() -> str:
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        pairs.wait(PATIENCE)
        with lock:
            running -= 1
        # Nobody leaves before both have said so.
        pairs.wait(PATIENCE)
        return "done"

    await asyncio.gather(*(call_tool(app, "x") for _ in range(6)))
    assert most == 2


async def test_threads_start_when_they_are_first_needed() -> None:
    def ours() -> set[threading.Thread]:
        return {
            thread
            for thread in threading.enumerate()
            if thread.name.startswith("mcpkit")
        }

    before = ours()
    app = App("tests")

    @app.tool
    def x() -> str:
        return "done"

    assert ours() == before
    await call_tool(app, "x")
    assert len(ours() - before) == 1


async def test_context_variables_are_visible_in_a_thread() -> None:
    """CTX-03."""
    app = App("tests")

    @app.tool
    def who() -> str:
        return user.get()

    async def ask(name: str) -> Any:
        user.set(name)
        return await call_tool(app, "who")

    names = [f"user {number}" for number in range(20)]
    answers = await asyncio.gather(*(ask(name) for name in names))
    assert answers == [text(name) for name in names]
    assert user.get() == "nobody"


async def test_what_a_thread_sets_stays_in_its_call() -> None:
    app = App("tests", threads=1)

    @app.tool
    def become(name: str) -> str:
        before = user.get()
        user.set(name)
        return before

    for name in ("ada", "bob"):
        assert await call_tool(app, "become", {"name": name}) == text("nobody")


@pytest.mark.parametrize(("thread", "same"), [(True, False), (False, True)])
async def test_a_function_may_stay_on_the_thread_of_the_loop(
    thread: bool,  # noqa: FBT001  # a column of the table
    same: bool,  # noqa: FBT001
) -> None:
    app = App("tests")

    def where(ctx: Context | None = None) -> bool:
        assert ctx is not None
        return threading.current_thread() is threading.main_thread()

    app.add_tool(where, thread=thread)
    assert threading.current_thread() is threading.main_thread()
    assert await call_tool(app, "where") == structured("true" if same else "false")


async def test_a_coroutine_function_runs_on_the_loop() -> None:
    app = App("tests")
    loop = asyncio.get_running_loop()

    @app.tool
    async def here() -> bool:
        return asyncio.get_running_loop() is loop

    assert await call_tool(app, "here") == structured("true")


@pytest.mark.parametrize("thread", [True, False])
async def test_a_sync_wrapper_around_a_coroutine_function_is_awaited(
    thread: bool,  # noqa: FBT001  # a column of the table
) -> None:
    """DEC-03, DEC-10."""
    app = App("tests")
    loop = asyncio.get_running_loop()

    async def here() -> bool:
        return asyncio.get_running_loop() is loop

    @functools.wraps(here)
    def wrapper() -> Any:
        return here()

    app.add_tool(wrapper, thread=thread)
    assert await call_tool(app, "here") == structured("true")


def test_a_pool_serves_one_event_loop_after_another() -> None:
    """CTX-04."""
    app = App("tests")

    @app.tool
    def x() -> str:
        return "done"

    for _ in range(2):
        assert asyncio.run(call_tool(app, "x")) == text("done")


async def test_arguments_are_passed_on() -> None:
    assert await Threads(1).run(lambda *a, **k: (a, k), 1, b=2) == ((1,), {"b": 2})


@pytest.mark.parametrize("limit", [0, -1])
def test_there_is_at_least_one_thread(limit: int) -> None:
    with pytest.raises(SetupError) as caught:
        App("tests", threads=limit)
    assert str(caught.value) == f"threads is one or more, not {limit}"
