"""Tasks over HTTP: headers, streams of notifications, and connections that close."""

import asyncio
from typing import Any

import pytest
from anyio import wait_all_tasks_blocked

from mcpkit import App, Context
from mcpkit.extensions.task_wire import IDENTIFIER
from mcpkit.extensions.tasks import Tasks
from tests.calls import text
from tests.extensions.tasking import (
    CLIENT,
    TASKS,
    answer,
    asking,
    completed,
    ended,
    look,
    shown,
    started,
    until,
)
from tests.http.client import call, modern, post
from tests.http.streaming import (
    SUBSCRIPTION,
    Stream,
    acknowledged,
    idle,
    lifespan,
    stream,
)
from tests.rounds import ask, form, named
from tests.wire import MODERN

pytestmark = pytest.mark.anyio


def caller(request: Any) -> str | None:
    """Return the caller that a header names."""
    name: str | None = request.headers.get("x-caller")
    return name


class Office:
    """An app with a tool that waits, reports and asks when it is told to."""

    def __init__(self) -> None:
        self.go = asyncio.Event()
        self.app = App("tests", principal=caller, secret_key="k" * 32)

        @self.app.tool(task="optional")
        async def wait() -> str:
            """Wait."""
            await self.go.wait()
            return "Done."

        @self.app.tool(task="optional")
        async def who(ctx: Context) -> str:
            """Ask."""
            return await ask(ctx, "Who?")

        @self.app.tool(task="optional")
        async def report(ctx: Context) -> str:
            """Report and log."""
            await ctx.progress(1, 2, "Half of it.")
            await ctx.log("error", "Look.")
            await self.go.wait()
            return "Done."


def follow(*task_ids: Any, client: Any = TASKS, **others: Any) -> Any:
    """Build the request that follows tasks."""
    wanted = {"taskIds": list(task_ids), **others}
    return modern(
        "subscriptions/listen", {"notifications": wanted}, capabilities=client
    )


async def told(opened: Stream) -> Any:
    """Return the state of a task that the next notification has."""
    message = await opened.message()
    assert message["method"] == "notifications/tasks"
    params = dict(message["params"])
    assert params.pop("_meta") == {SUBSCRIPTION: 1}
    return params


METHODS: list[tuple[str, dict[str, Any]]] = [
    ("tasks/get", {}),
    ("tasks/update", {"inputResponses": {}}),
    ("tasks/cancel", {}),
]


@pytest.mark.parametrize(("method", "params"), METHODS)
async def test_a_header_names_the_task(method: str, params: dict[str, Any]) -> None:
    """Spec ext-tasks, tasks: Streamable HTTP: Routing Headers."""
    office = Office()
    task_id = await started(office.app, "wait")
    sent = {"taskId": task_id, **params}
    for header, status in ((task_id, 200), ("another", 400), (None, 400)):
        headers = {} if header is None else {"mcp-name": header}
        message = modern(method, sent, capabilities=CLIENT)
        usual = {
            "accept": "application/json, text/event-stream",
            "content-type": "application/json",
            "mcp-protocol-version": MODERN,
            "mcp-method": method,
        }
        reply = await post(office.app, message, {**usual, **headers})
        assert reply.status_code == status
        if status != 200:
            assert reply.json()["error"]["code"] == -32020
    office.go.set()


async def test_who_follows_a_task_is_told_how_it_stands_and_of_each_change() -> None:
    """Spec ext-tasks, tasks: Task Status Notifications."""
    office = Office()
    app = office.app
    task_id = await started(app, "who")
    asked = await until(app, task_id, "input_required")
    async with stream(app, follow(task_id)) as opened:
        assert await opened.message() == acknowledged(taskIds=[task_id])
        state = await told(opened)
        assert state["taskId"] == task_id
        assert shown(state) == asked == asking(elicitation=form("Who?"))
        await answer(app, task_id, {"elicitation": named("Ada")})
        while shown(state).get("status") != "completed":
            state = await told(opened)
        assert shown(state) == await look(app, task_id) == completed(text("Ada"))
    await app.tasks.stop()
    await idle(app)


async def test_a_task_that_ended_before_it_was_followed_is_told_of() -> None:
    """Ours: nobody waits for what has happened already."""
    office = Office()
    office.go.set()
    task_id = await started(office.app, "wait")
    await ended(office.app, task_id)
    async with stream(office.app, follow(task_id)) as opened:
        await opened.message()
        assert shown(await told(opened)) == completed(text("Done."))


async def test_only_the_tasks_of_the_caller_are_followed() -> None:
    """Spec ext-tasks, tasks: Task Status Notifications, Security Considerations."""
    office = Office()
    app = office.app
    hers, his = [await started(app, "wait", by=name) for name in ("ada", "ben")]
    message = follow(hers, his, "unknown", hers)
    async with stream(app, message, {"x-caller": "ada"}) as opened:
        assert await opened.message() == acknowledged(taskIds=[hers])
        assert (await told(opened))["taskId"] == hers
        office.go.set()
        state = await told(opened)
        assert (state["taskId"], state["status"]) == (hers, "completed")


async def test_a_stream_that_follows_nothing_ends() -> None:
    """Spec ext-tasks, tasks: Task Status Notifications."""
    async with stream(Office().app, follow("unknown")) as opened:
        assert await opened.message() == acknowledged()
        assert [message["id"] for message in await opened.rest()] == [1]


async def test_lists_and_tasks_are_followed_in_one_stream() -> None:
    """Spec 2026-07-28, basic/patterns/subscriptions."""
    office = Office()
    task_id = await started(office.app, "wait")
    async with stream(office.app, follow(task_id, toolsListChanged=True)) as opened:
        expected = acknowledged(toolsListChanged=True, taskIds=[task_id])
        assert await opened.message() == expected
        office.app.add_tool(lambda: None, name="new")
        methods = {(await opened.message())["method"] for _ in range(2)}
        assert methods == {"notifications/tasks", "notifications/tools/list_changed"}


async def test_who_did_not_declare_tasks_may_not_follow_them() -> None:
    """Spec ext-tasks, tasks: Task Status Notifications."""
    reply = await post(Office().app, follow("1", client={}))
    assert reply.status_code == 400
    error = reply.json()["error"]
    assert (error["code"], error["data"]) == (
        -32021,
        {"requiredCapabilities": {"extensions": {IDENTIFIER: {}}}},
    )


@pytest.mark.parametrize("wanted", ["a", {}, None, [1], [None]], ids=str)
async def test_a_malformed_filter_is_refused(wanted: Any) -> None:
    """Spec 2026-07-28, basic/patterns/subscriptions."""
    params = {"notifications": {"taskIds": wanted}}
    message = modern("subscriptions/listen", params, capabilities=TASKS)
    reply = await post(Office().app, message)
    fault = "Invalid params: taskIds must be an array of strings"
    assert reply.json()["error"] == {"code": -32602, "message": fault}


async def test_too_many_tasks_are_not_followed() -> None:
    """Ours."""
    message = follow(*(str(number) for number in range(1001)))
    reply = await post(Office().app, message)
    assert reply.status_code == 503


async def test_a_client_that_reads_slowly_is_told_how_a_task_stands_by_then() -> None:
    """Ours: what it would have read in between makes no difference."""
    office = Office()
    app = office.app
    task_id = await started(app, "who")
    await until(app, task_id, "input_required")
    async with stream(app, follow(task_id)) as opened:
        await opened.message()
        opened.reads.clear()
        await answer(app, task_id, {"elicitation": named("Ada")})
        await ended(app, task_id)
        await wait_all_tasks_blocked()
        opened.reads.set()
        # One message may be on its way already.
        states = [shown(await told(opened)) for _ in range(2)]
    assert states == [asking(elicitation=form("Who?")), completed(text("Ada"))]


async def test_progress_and_logs_of_a_task_are_no_notifications() -> None:
    """Spec ext-tasks, tasks: Task Status Notifications."""
    office = Office()
    app = office.app
    params = {
        "name": "report",
        "_meta": {"progressToken": 1, "io.modelcontextprotocol/logLevel": "debug"},
    }
    message = modern("tools/call", params, capabilities=TASKS)
    reply = await post(app, message)
    assert reply.headers["content-type"] == "application/json"
    task_id = reply.json()["result"]["taskId"]
    async with stream(app, follow(task_id)) as opened:
        await opened.message()
        state = await told(opened)
        while "statusMessage" not in state:
            state = await told(opened)
        assert state["statusMessage"] == "Half of it."
        office.go.set()
        assert shown(await told(opened)) == completed(text("Done."))


async def test_a_closed_connection_does_not_cancel_a_task() -> None:
    """Ours."""
    office = Office()
    message = modern("tools/call", {"name": "wait"}, capabilities=TASKS)
    async with stream(office.app, message) as opened:
        task_id = (await opened.body())["result"]["taskId"]
    await wait_all_tasks_blocked()
    assert await look(office.app, task_id) == {"status": "working"}
    office.go.set()
    assert await ended(office.app, task_id) == completed(text("Done."))


async def test_tasks_end_with_the_lifespan() -> None:
    """Ours."""
    office = Office()
    async with lifespan(office.app):
        task_id = await started(office.app, "wait")
    told = await look(office.app, task_id)
    assert (told["status"], told["statusMessage"]) == (
        "failed",
        "The server was shut down",
    )


async def test_tasks_are_declared_where_a_tool_has_them() -> None:
    """Spec ext-tasks, tasks: Capability Negotiation."""
    plain = App("tests")
    declared = [
        (await call(app, MODERN, "server/discover")).json()["result"]["capabilities"]
        for app in (Office().app, plain, App("tests", tasks=Tasks()))
    ]
    found = [each.get("extensions") for each in declared]
    assert found == [{IDENTIFIER: {}}, None, {IDENTIFIER: {}}]
