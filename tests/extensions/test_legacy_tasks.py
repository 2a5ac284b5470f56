"""Tasks of clients of 2025-11-25. Spec 2025-11-25, basic/utilities/tasks."""

import asyncio
import re
import signal
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import pytest
from anyio import wait_all_tasks_blocked

from mcpkit import UI, App, Context, ProtocolError, Result, ToolError
from mcpkit.errors import INVALID_PARAMS, INVALID_REQUEST, METHOD_NOT_FOUND
from mcpkit.extensions import legacy_tasks
from mcpkit.extensions.apps import IDENTIFIER as APPS
from mcpkit.extensions.legacy_tasks import PAGE
from mcpkit.extensions.task_wire import IDENTIFIER
from mcpkit.extensions.tasks import Tasks
from tests.calls import (
    EVERY,
    LEGACY,
    V_2025_11_25,
    call,
    failed,
    text,
)
from tests.extensions.legacy import RELATED, Peer, connect, stranger
from tests.http.client import legacy, post
from tests.http.streaming import PATIENCE
from tests.http.streams import Client
from tests.rounds import KEY, Name

pytestmark = pytest.mark.anyio

OLDER: Final = [version for version in LEGACY if version != V_2025_11_25]
WITH_TASKS: Final[Mapping[str, Any]] = {"extensions": {IDENTIFIER: {}}}

NOT_FOUND: Final = {"code": INVALID_PARAMS, "message": "Task not found"}
NO_METHOD: Final = {"code": METHOD_NOT_FOUND, "message": "Method not found"}
CANCELLED: Final = {"code": INVALID_REQUEST, "message": "The task was cancelled"}
ENDED: Final = {
    "code": INVALID_PARAMS,
    "message": "The task can't be cancelled: it has ended",
}

TIME: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")


@dataclass
class Point:
    """A place on a plane."""

    x: int
    y: int


class Works:
    """An app with tools that run as tasks, and what holds them up.

    Attributes:
        app: The app.
        go: Lets `hold` go on.
        stopped: `hold` was stopped.
        is_held: `hold` has begun.
    """

    def __init__(self, **options: Any) -> None:
        self.go = asyncio.Event()
        self.stopped = asyncio.Event()
        self.is_held = asyncio.Event()
        self.app = App("works", **{"secret_key": KEY, **options})
        for tool in (self.hold, self.stubborn, self.greet, self.double):
            self.app.add_tool(tool, task="optional")
        self.app.add_tool(self.only, task="required")
        self.app.add_tool(self.perhaps, task=lambda _: False)
        self.app.add_tool(self.plain)

    async def hold(self) -> str:
        """Wait to be let go."""
        self.is_held.set()
        try:
            await self.go.wait()
        except asyncio.CancelledError:
            self.stopped.set()
            raise
        return "held"

    async def stubborn(self) -> str:
        """Go on to the end, although it is stopped."""
        self.is_held.set()
        try:
            await self.go.wait()
        except asyncio.CancelledError:
            self.stopped.set()
        return "all the same"

    async def greet(self, ctx: Context) -> str:
        """Ask who is there."""
        answer = await ctx.elicit("Who?", Name)
        return f"Hello, {answer.data.name}" if answer.accepted else answer.action

    async def double(self, number: int) -> int:
        """Double a number."""
        return 2 * number

    async def only(self) -> str:
        """Do what takes long."""
        return "done"

    async def perhaps(self) -> str:
        """Do what takes long for some."""
        return "perhaps"

    async def plain(self) -> str:
        """Do what takes no time."""
        return "plain"


def related(task_id: str) -> dict[str, Any]:
    """Return the metadata that says which task a message is about."""
    return {RELATED: {"taskId": task_id}}


def of(task_id: str, result: Mapping[str, Any]) -> dict[str, Any]:
    """Return a result as that of a task."""
    meta = {**result.get("_meta", {}), **related(task_id)}
    return {**result, "_meta": meta}


def user(scope: Mapping[str, Any]) -> str | None:
    """Say who calls."""
    found = dict(scope["headers"]).get(b"x-user")
    return None if found is None else str(found.decode())


# What is declared.


async def test_tasks_are_declared_to_clients_of_2025_11_25() -> None:
    """Spec 2025-11-25, basic/utilities/tasks: Server Capabilities."""
    peer = await connect(Works().app)
    assert peer.capabilities["tasks"] == {
        "list": {},
        "cancel": {},
        "requests": {"tools": {"call": {}}},
    }
    assert "extensions" not in peer.capabilities


@pytest.mark.parametrize("version", OLDER)
async def test_tasks_are_not_declared_to_older_clients(version: str) -> None:
    peer = await connect(Works().app, version)
    assert peer.capabilities.keys() == {"logging", "tools"}


async def test_no_tasks_are_declared_where_there_are_none() -> None:
    app = App("tests")
    app.add_tool(Works().plain)
    peer = await connect(app)
    assert peer.capabilities.keys() == {"logging", "tools"}


async def test_tools_tell_clients_of_2025_11_25_how_they_run() -> None:
    """Spec 2025-11-25, basic/utilities/tasks: Tool-Level Negotiation."""
    tools = (await call(Works().app, "tools/list", at=V_2025_11_25))["tools"]
    assert {tool["name"]: tool.get("execution") for tool in tools} == {
        "hold": {"taskSupport": "optional"},
        "stubborn": {"taskSupport": "optional"},
        "greet": {"taskSupport": "optional"},
        "double": {"taskSupport": "optional"},
        "only": {"taskSupport": "required"},
        "perhaps": {"taskSupport": "optional"},
        "plain": None,
    }


@pytest.mark.parametrize("version", [it for it in EVERY if it != V_2025_11_25])
async def test_tools_tell_no_other_client_how_they_run(version: str) -> None:
    tools = (await call(Works().app, "tools/list", at=version))["tools"]
    assert len(tools) == 7
    assert all("execution" not in tool for tool in tools)


# How a task begins.


@pytest.mark.parametrize(
    ("task", "ttl"),
    [
        pytest.param({}, 3_600_000, id="none"),
        pytest.param({"ttl": None}, 3_600_000, id="null"),
        pytest.param({"ttl": 60_000}, 60_000, id="less than the app's"),
        pytest.param({"ttl": 1500.0}, 1500, id="a whole number with a point"),
        pytest.param({"ttl": 86_400_000}, 3_600_000, id="more than the app's"),
        pytest.param({"ttl": 10**400}, 3_600_000, id="more than a float holds"),
        pytest.param({"poll": 1}, 3_600_000, id="with what we don't know"),
    ],
)
async def test_a_task_is_kept_as_long_as_is_asked_up_to_what_the_app_has(
    task: Any, ttl: int
) -> None:
    """Spec 2025-11-25, basic/utilities/tasks: TTL and Resource Management."""
    works = Works()
    peer = await connect(works.app)
    made = await peer.send("tools/call", name="hold", task=task)
    state = made["task"]
    assert made == {"task": state}
    assert TIME.fullmatch(state["createdAt"])
    assert state == {
        "taskId": state["taskId"],
        "status": "working",
        "createdAt": state["createdAt"],
        "lastUpdatedAt": state["createdAt"],
        "ttl": ttl,
        "pollInterval": 1000,
    }
    assert len(state["taskId"]) >= 22
    assert await peer.state(state["taskId"]) == state
    works.go.set()
    await peer.result(state["taskId"])


@pytest.mark.parametrize(
    ("asked", "ttl"), [({}, None), ({"ttl": 10**400}, 2**53), ({"ttl": 5}, 5)]
)
async def test_an_app_may_keep_tasks_for_ever(asked: Any, ttl: int | None) -> None:
    works = Works(tasks=Tasks(ttl=None, poll=0.25))
    peer = await connect(works.app)
    made = await peer.send("tools/call", name="hold", task=asked)
    assert (made["task"]["ttl"], made["task"]["pollInterval"]) == (ttl, 250)
    works.go.set()


@pytest.mark.parametrize(
    ("task", "fault"),
    [
        (5, "task must be an object"),
        ([], "task must be an object"),
        (False, "task must be an object"),
        ("ttl", "task must be an object"),
        ({"ttl": "60000"}, "task.ttl must be a number, 0 or more"),
        ({"ttl": True}, "task.ttl must be a number, 0 or more"),
        ({"ttl": -1}, "task.ttl must be a number, 0 or more"),
        ({"ttl": {}}, "task.ttl must be a number, 0 or more"),
    ],
)
async def test_a_malformed_wish_for_a_task_is_refused(task: Any, fault: str) -> None:
    peer = await connect(Works().app)
    told = await peer.send("tools/call", name="only", task=task)
    assert told == {"code": INVALID_PARAMS, "message": f"Invalid params: {fault}"}
    assert await peer.send("tasks/list") == {"tasks": []}


async def test_a_tool_that_may_run_as_a_task_is_called_as_ever_too() -> None:
    """Spec 2025-11-25, basic/utilities/tasks: Tool-Level Negotiation, 2.2."""
    peer = await connect(Works().app)
    assert await peer.call("double", number=4) == {
        "content": [{"type": "text", "text": "8"}],
        "structuredContent": {"result": 8},
        "isError": False,
    }
    assert await peer.send("tools/call", name="perhaps", task=None) == text("perhaps")


async def test_a_client_decides_even_where_the_tool_would_not() -> None:
    peer = await connect(Works().app)
    task_id = await peer.begin("perhaps")
    assert await peer.result(task_id) == of(task_id, text("perhaps"))


@pytest.mark.parametrize("task", [{}, {"ttl": 5}, 5])
async def test_a_tool_that_does_not_run_as_a_task_is_no_task(task: Any) -> None:
    """Spec 2025-11-25, basic/utilities/tasks: Tool-Level Negotiation, 2.1."""
    peer = await connect(Works().app)
    assert await peer.send("tools/call", name="plain", task=task) == {
        "code": METHOD_NOT_FOUND,
        "message": "Tool plain does not run as a task",
    }


@pytest.mark.parametrize("version", LEGACY)
async def test_a_tool_that_runs_as_a_task_alone_is_not_called_without(
    version: str,
) -> None:
    """Spec 2025-11-25, basic/utilities/tasks: Tool-Level Negotiation, 2.3."""
    peer = await connect(Works().app, version)
    assert await peer.call("only") == {
        "code": METHOD_NOT_FOUND,
        "message": "Tool only runs as a task alone",
    }


@pytest.mark.parametrize("version", OLDER)
async def test_what_older_clients_say_of_tasks_is_ignored(version: str) -> None:
    """Spec 2025-11-25, basic/utilities/tasks: Task Support and Handling, 1."""
    peer = await connect(Works().app, version)
    for name in ("perhaps", "plain"):
        told = await peer.send("tools/call", name=name, task={"ttl": "?"})
        assert told == text(name)


async def test_what_is_said_of_tasks_is_ignored_where_none_are_declared() -> None:
    """Spec 2025-11-25, basic/utilities/tasks: Task Support and Handling, 1."""
    app = App("tests")
    app.add_tool(Works().plain)
    peer = await connect(app)
    told = await peer.send("tools/call", name="plain", task={"ttl": "?"})
    assert told == text("plain")


async def test_arguments_that_do_not_fit_are_the_result_of_a_task() -> None:
    """A client that asked for a task is sent one. Spec: Result Retrieval, 1."""
    peer = await connect(Works().app)
    directly = await peer.call("double", number="four")
    assert directly["isError"] is True
    task_id = await peer.begin("double", number="four")
    assert await peer.result(task_id) == of(task_id, directly)
    state = await peer.state(task_id)
    assert state["status"] == "failed"
    assert state["statusMessage"] == directly["content"][0]["text"]


async def test_a_task_may_be_refused_when_there_are_too_many() -> None:
    works = Works(tasks=Tasks(max_per_caller=1))
    peer = await connect(works.app)
    task_id = await peer.begin("hold")
    told = await peer.send("tools/call", name="hold", task={})
    assert told == {"code": -32000, "message": "Too many tasks"}
    works.go.set()
    assert await peer.result(task_id) == of(task_id, text("held"))


# How a task stands, and what it came to.


async def test_a_task_works_and_completes() -> None:
    """Spec 2025-11-25, basic/utilities/tasks: Basic Task Lifecycle."""
    works = Works()
    peer = await connect(works.app)
    task_id = await peer.begin("hold", {"ttl": 60_000})
    working = await peer.state(task_id)
    assert working["status"] == "working"
    works.go.set()
    completed = await peer.until(task_id, "completed")
    assert completed == {
        **working,
        "status": "completed",
        "lastUpdatedAt": completed["lastUpdatedAt"],
    }
    assert completed["lastUpdatedAt"] >= working["lastUpdatedAt"]
    assert await peer.result(task_id) == of(task_id, text("held"))
    assert await peer.result(task_id) == of(task_id, text("held"))


def number() -> int:
    """Return a number."""
    return 3


def point() -> Point:
    """Return an object."""
    return Point(1, 2)


def points() -> list[Point]:
    """Return a list."""
    return [Point(1, 2)]


def anything() -> dict[str, Any] | list[int]:
    """Return what may be an object."""
    return {"a": 1}


def nothing() -> None:
    """Return nothing."""


def own() -> Result[str]:
    """Return a result with metadata."""
    return Result.text("own", metadata={"com.example/key": 1})


def untyped() -> Any:
    """Return a structure that no schema tells of."""
    return Result.structured([1, 2])


def tells() -> str:
    """Tell the model of a fault."""
    raise ToolError("The shelf is empty")


def breaks() -> str:
    """Break."""
    raise RuntimeError("secret")


def refuses() -> str:
    """Fail as a request."""
    raise ProtocolError(-31000, "No", {"why": "so"})


@pytest.mark.parametrize(
    "tool",
    [number, point, points, anything, nothing, own, untyped, tells, breaks, refuses],
)
async def test_a_task_results_in_what_the_call_would_have(tool: Any) -> None:
    """Spec 2025-11-25, basic/utilities/tasks: Result Retrieval, 4."""
    app = App("tests")
    app.add_tool(tool, task="optional")
    peer = await connect(app)
    directly = await peer.call(tool.__name__)
    task_id = await peer.begin(tool.__name__)
    expected = directly if "code" in directly else of(task_id, directly)
    assert await peer.result(task_id) == expected


@pytest.mark.parametrize(
    ("tool", "result", "message"),
    [
        (tells, failed("The shelf is empty"), "The shelf is empty"),
        (breaks, failed("Tool breaks failed"), "Tool breaks failed"),
    ],
)
async def test_a_task_has_failed_when_its_tool_has(
    tool: Any, result: Any, message: str
) -> None:
    """Spec 2025-11-25, basic/utilities/tasks: Task Execution Errors."""
    app = App("tests")
    app.add_tool(tool, task="required")
    peer = await connect(app)
    task_id = await peer.begin(tool.__name__)
    assert await peer.result(task_id) == of(task_id, result)
    state = await peer.state(task_id)
    assert (state["status"], state["statusMessage"]) == ("failed", message)
    assert await peer.send("tasks/list") == {"tasks": [state]}
    assert await peer.send("tasks/cancel", taskId=task_id) == ENDED


PICTURE: Final = {"type": "image", "data": "AAAA", "mimeType": "image/png"}


@pytest.mark.parametrize("content", [[], [PICTURE]])
async def test_a_task_that_failed_without_a_text_says_nothing(content: Any) -> None:
    app = App("tests")

    @app.tool(task="required")
    def fails() -> Result[str]:
        return Result.raw({"content": content, "isError": True})

    peer = await connect(app)
    task_id = await peer.begin("fails")
    await peer.result(task_id)
    state = await peer.state(task_id)
    assert state["status"] == "failed"
    assert "statusMessage" not in state


async def test_a_task_has_failed_with_a_protocol_error() -> None:
    """Spec 2025-11-25, basic/utilities/tasks: Task Execution Errors."""
    app = App("tests")
    app.add_tool(refuses, task="required")
    peer = await connect(app)
    task_id = await peer.begin("refuses")
    state = await peer.until(task_id, "failed")
    assert state["statusMessage"] == "No"
    fault = {"code": -31000, "message": "No", "data": {"why": "so"}}
    assert await peer.result(task_id) == fault


async def test_several_may_wait_for_a_result() -> None:
    works = Works()
    peer = await connect(works.app)
    task_id = await peer.begin("hold")
    waiting = [asyncio.create_task(peer.result(task_id)) for _ in range(3)]
    async with asyncio.timeout(PATIENCE):
        while len(works.app.running) < 3:
            await asyncio.sleep(0)
    works.go.set()
    assert await asyncio.gather(*waiting) == [of(task_id, text("held"))] * 3


async def test_who_stops_waiting_stops_no_task() -> None:
    """Spec 2025-11-25, basic/utilities/tasks: Retrieving Task Results."""
    works = Works()
    peer = await connect(works.app)
    task_id = await peer.begin("hold")
    message = legacy("tasks/result", {"taskId": task_id}, request_id="waits")
    waits = asyncio.create_task(post(works.app, message, peer.headers))
    async with asyncio.timeout(PATIENCE):
        while not len(works.app.running):
            await asyncio.sleep(0)
    notice = {"jsonrpc": "2.0", "method": "notifications/cancelled"}
    params = {"requestId": "waits"}
    reply = await post(works.app, {**notice, "params": params}, peer.headers)
    assert reply.status_code == 202
    assert (await waits).content == b""
    assert (await peer.state(task_id))["status"] == "working"
    works.go.set()
    assert await peer.result(task_id) == of(task_id, text("held"))


async def test_metadata_of_a_request_names_no_task() -> None:
    """Spec 2025-11-25, basic/utilities/tasks: Associating Task-Related Messages."""
    works = Works()
    peer = await connect(works.app)
    one, two = await peer.begin("only"), await peer.begin("hold")
    meta = related(two)
    told = await peer.send("tasks/result", taskId=one, _meta=meta)
    assert told == of(one, text("done"))
    assert (await peer.send("tasks/get", taskId=one, _meta=meta))["taskId"] == one
    await peer.send("tasks/cancel", taskId=two, _meta=related(one))
    assert (await peer.state(two))["status"] == "cancelled"


async def test_progress_is_how_a_task_stands() -> None:
    """Spec 2025-11-25, basic/utilities/progress: none need be sent."""
    works = Works()
    reported = asyncio.Event()

    @works.app.tool(task="optional")
    async def climb(ctx: Context) -> str:
        await ctx.progress(1, 3, "One of three steps")
        reported.set()
        await works.go.wait()
        return "up"

    peer = await connect(works.app)
    task_id = await peer.begin("climb", meta={"progressToken": "p"})
    await reported.wait()
    state = await peer.state(task_id)
    assert (state["status"], state["statusMessage"]) == (
        "working",
        "One of three steps",
    )
    waiting = asyncio.create_task(peer.result(task_id))
    async with asyncio.timeout(PATIENCE):
        while not len(works.app.running):
            await asyncio.sleep(0)
    works.go.set()
    # It is no stream: nothing came before it.
    assert await waiting == of(task_id, text("up"))


# Whose tasks they are.


async def test_tasks_are_listed_in_the_order_of_their_creation() -> None:
    """Spec 2025-11-25, basic/utilities/tasks: Listing Tasks."""
    works = Works(tasks=Tasks(max_per_caller=300))
    peer = await connect(works.app)
    begun = [await peer.begin("hold") for _ in range(PAGE + 1)]
    first = await peer.send("tasks/list")
    assert first.keys() == {"tasks", "nextCursor"}
    assert [task["taskId"] for task in first["tasks"]] == begun[:PAGE]
    assert first["tasks"][7] == await peer.state(begun[7])
    second = await peer.send("tasks/list", cursor=first["nextCursor"])
    assert second == {"tasks": [await peer.state(begun[PAGE])]}
    works.go.set()
    await asyncio.gather(*map(peer.result, begun))


async def test_tasks_are_listed_in_pages_of_the_app() -> None:
    """Spec 2025-11-25, basic/utilities/tasks: Task Listing."""
    works = Works(page_size=2)
    peer = await connect(works.app)
    begun = [await peer.begin("only") for _ in range(4)]
    first = await peer.send("tasks/list")
    assert [task["taskId"] for task in first["tasks"]] == begun[:2]
    # What comes later does not move the page.
    begun.append(await peer.begin("only"))
    second = await peer.send("tasks/list", cursor=first["nextCursor"])
    assert [task["taskId"] for task in second["tasks"]] == begun[2:4]
    third = await peer.send("tasks/list", cursor=second["nextCursor"])
    assert third == {"tasks": [await peer.state(begun[4])]}


@pytest.mark.parametrize("cursor", ["", "abc", 5, {}, True])
async def test_a_cursor_that_is_none_is_refused(cursor: Any) -> None:
    """Spec 2025-11-25, basic/utilities/tasks: Protocol Errors."""
    peer = await connect(Works().app)
    told = await peer.send("tasks/list", cursor=cursor)
    assert told == {"code": INVALID_PARAMS, "message": "Invalid cursor"}


async def test_a_cursor_is_good_for_its_own_list_alone() -> None:
    works = Works(page_size=1)
    mine, theirs = await connect(works.app), await connect(works.app)
    for peer in (mine, theirs):
        await peer.begin("only")
        await peer.begin("only")
    cursor = (await mine.send("tasks/list"))["nextCursor"]
    refused = {"code": INVALID_PARAMS, "message": "Invalid cursor"}
    assert await theirs.send("tasks/list", cursor=cursor) == refused
    cursor = (await mine.send("tools/list"))["nextCursor"]
    assert await mine.send("tasks/list", cursor=cursor) == refused


BY_ID: Final = ("tasks/get", "tasks/result", "tasks/cancel")


async def test_a_session_knows_nothing_of_the_tasks_of_another() -> None:
    """Spec 2025-11-25, basic/utilities/tasks: Task Isolation and Access Control."""
    works = Works()
    mine, theirs = await connect(works.app), await connect(works.app)
    task_id = await mine.begin("hold")
    for peer in (theirs, stranger(works.app)):
        for method in BY_ID:
            assert await peer.send(method, taskId=task_id) == NOT_FOUND
            assert await peer.send(method, taskId="none") == NOT_FOUND
        assert await peer.send("tasks/list") == {"tasks": []}
    assert (await mine.state(task_id))["status"] == "working"
    works.go.set()


async def test_a_principal_has_its_tasks_in_all_of_its_sessions() -> None:
    works = Works(principal=user)
    one, two = await connect(works.app, by="ada"), await connect(works.app, by="ada")
    other = await connect(works.app, by="bob")
    task_id = await one.begin("only")
    assert await two.result(task_id) == of(task_id, text("done"))
    state = await two.state(task_id)
    assert await two.send("tasks/list") == {"tasks": [state]}
    assert await other.send("tasks/list") == {"tasks": []}
    for method in BY_ID:
        assert await other.send(method, taskId=task_id) == NOT_FOUND


async def test_who_is_nobody_asks_by_the_id_and_lists_nothing() -> None:
    """Spec 2025-11-25, basic/utilities/tasks: Task Isolation and Access Control."""
    works = Works()
    peer = stranger(works.app)
    task_id = await peer.begin("only")
    assert await peer.result(task_id) == of(task_id, text("done"))
    assert (await stranger(works.app).state(task_id))["status"] == "completed"
    assert await peer.send("tasks/list") == {"tasks": []}


async def test_a_task_of_the_other_era_is_that_of_its_principal() -> None:
    works = Works(principal=user)
    ada, bob = await connect(works.app, by="ada"), await connect(works.app, by="bob")
    params: dict[str, Any] = {"name": "double", "arguments": {"number": 4}}
    made = await call(works.app, "tools/call", by="ada", client=WITH_TASKS, **params)
    task_id = made["taskId"]
    assert await bob.state(task_id) == NOT_FOUND
    assert await ada.result(task_id) == of(task_id, await ada.call("double", number=4))
    begun = await ada.begin("double", number=5)
    await ada.result(begun)
    listed = (await ada.send("tasks/list"))["tasks"]
    assert [task["taskId"] for task in listed] == [task_id, begun]
    session = await connect(works.app)
    assert await session.state(task_id) == NOT_FOUND


@pytest.mark.parametrize("method", BY_ID)
@pytest.mark.parametrize("params", [{}, {"taskId": None}, {"taskId": 5}])
async def test_a_request_names_its_task(method: str, params: Any) -> None:
    """Spec 2025-11-25, basic/utilities/tasks: Protocol Errors."""
    peer = await connect(Works().app)
    assert await peer.send(method, **params) == {
        "code": INVALID_PARAMS,
        "message": "Invalid params: taskId must be a string",
    }


# Which methods there are.


@pytest.mark.parametrize("version", OLDER)
@pytest.mark.parametrize("method", [*BY_ID, "tasks/list", "tasks/update"])
async def test_older_clients_have_no_methods_of_tasks(
    version: str, method: str
) -> None:
    peer = await connect(Works().app, version)
    assert await peer.send(method, taskId="t") == NO_METHOD


async def test_a_client_of_2025_11_25_can_not_update_a_task() -> None:
    peer = await connect(Works().app)
    told = await peer.send("tasks/update", taskId="t", inputResponses={})
    assert told == NO_METHOD


@pytest.mark.parametrize("method", ["tasks/list", "tasks/result"])
@pytest.mark.parametrize("client", [{}, WITH_TASKS])
async def test_a_modern_client_has_no_list_of_tasks(method: str, client: Any) -> None:
    told = await call(Works().app, method, client=client, taskId="t")
    assert told == NO_METHOD


@pytest.mark.parametrize("method", [*BY_ID, "tasks/list"])
async def test_where_there_are_no_tasks_there_are_no_methods(method: str) -> None:
    peer = await connect(App("tests"))
    assert await peer.send(method, taskId="t") == NO_METHOD


@pytest.mark.parametrize("name", ["", "another", "=?base64?!?="])
async def test_no_header_has_to_name_the_task_of_a_legacy_request(name: str) -> None:
    works = Works()
    peer = await connect(works.app)
    task_id = await peer.begin("only")
    odd = Peer(works.app, {**peer.headers, "mcp-name": name}, {})
    assert await odd.result(task_id) == of(task_id, text("done"))
    assert (await odd.state(task_id))["taskId"] == task_id


# How a task is cancelled.


@pytest.mark.parametrize("name", ["hold", "stubborn"])
async def test_a_cancelled_task_stays_so_whatever_becomes_of_it(name: str) -> None:
    """Spec 2025-11-25, basic/utilities/tasks: Task Cancellation."""
    works = Works()
    peer = await connect(works.app)
    task_id = await peer.begin(name)
    await works.is_held.wait()
    working = await peer.state(task_id)
    cancelled = await peer.send("tasks/cancel", taskId=task_id)
    assert cancelled == {
        **working,
        "status": "cancelled",
        "lastUpdatedAt": cancelled["lastUpdatedAt"],
    }
    async with asyncio.timeout(PATIENCE):
        await works.stopped.wait()
    works.go.set()
    await wait_all_tasks_blocked()
    assert await peer.state(task_id) == cancelled
    assert await peer.result(task_id) == CANCELLED
    assert await peer.send("tasks/cancel", taskId=task_id) == ENDED
    assert await peer.send("tasks/list") == {"tasks": [cancelled]}


async def test_who_waits_for_a_task_is_told_that_it_was_cancelled() -> None:
    works = Works()
    peer = await connect(works.app)
    task_id = await peer.begin("hold")
    waiting = asyncio.create_task(peer.result(task_id))
    async with asyncio.timeout(PATIENCE):
        while not len(works.app.running):
            await asyncio.sleep(0)
    await peer.send("tasks/cancel", taskId=task_id)
    assert await waiting == CANCELLED


async def test_a_task_that_has_completed_is_not_cancelled() -> None:
    """Spec 2025-11-25, basic/utilities/tasks: Task Cancellation, 1."""
    peer = await connect(Works().app)
    task_id = await peer.begin("only")
    result = await peer.result(task_id)
    assert await peer.send("tasks/cancel", taskId=task_id) == ENDED
    assert await peer.result(task_id) == result


async def test_a_task_is_gone_after_its_time() -> None:
    """Spec 2025-11-25, basic/utilities/tasks: TTL and Resource Management."""
    works = Works()
    peer = await connect(works.app)
    kept = await peer.begin("only")
    task_id = await peer.begin("only", {"ttl": 1})
    await peer.result(kept)
    async with asyncio.timeout(PATIENCE):
        while await peer.state(task_id) != NOT_FOUND:
            await asyncio.sleep(0.001)
    assert await peer.send("tasks/list") == {"tasks": [await peer.state(kept)]}
    for method in BY_ID:
        assert await peer.send(method, taskId=task_id) == NOT_FOUND


async def test_a_tool_with_a_page_tells_how_it_runs_too() -> None:
    works = Works()
    page = UI("ui://page")
    works.app.add_tool(works.hold, name="shown", task="optional", ui=page)
    works.app.add_resource("ui://page", lambda: "<p>", name="page")
    client = {"extensions": {APPS: {"mimeTypes": ["text/html;profile=mcp-app"]}}}
    peer = await connect(works.app, client=client)
    tools = (await peer.send("tools/list"))["tools"]
    [shown] = [tool for tool in tools if tool["name"] == "shown"]
    assert shown["execution"] == {"taskSupport": "optional"}
    assert shown["_meta"]["ui"]["resourceUri"] == "ui://page"


async def test_who_has_gone_is_not_waited_with_for_ever(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Spec 2025-11-25, basic/utilities/tasks: Retrieving Task Results."""
    works = Works()
    peer = await connect(works.app)
    task_id = await peer.begin("hold")
    client = Client(works.app)
    message = legacy("tasks/result", {"taskId": task_id})
    waiting = asyncio.create_task(client.ask(message, peer.headers))
    async with asyncio.timeout(PATIENCE):
        while not len(works.app.running):
            await asyncio.sleep(0)
    client.gone.set()
    # Over a second later it still does: it may be back.
    await asyncio.wait([waiting], timeout=1.2)
    assert not waiting.done()
    monkeypatch.setattr(legacy_tasks, "GRACE", 0.1)
    await waiting
    assert (await peer.state(task_id))["status"] == "working"
    works.go.set()
    assert await peer.result(task_id) == of(task_id, text("held"))


async def test_who_waits_is_told_that_a_task_is_gone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Spec 2025-11-25, basic/utilities/tasks: Protocol Errors."""
    works = Works()
    peer = await connect(works.app)
    task_id = await peer.begin("hold")
    waiting = asyncio.create_task(peer.result(task_id))
    async with asyncio.timeout(PATIENCE):
        while not len(works.app.running):
            await asyncio.sleep(0)

    async def nothing(_: str) -> None:
        return None

    with monkeypatch.context() as patch:
        patch.setattr(works.app.tasks.store, "get", nothing)
        assert await waiting == NOT_FOUND
    works.go.set()
    assert await peer.result(task_id) == of(task_id, text("held"))


@pytest.fixture
def handled() -> Iterator[None]:
    """Handle the signal that asks the process to stop, as a server does."""
    before = signal.signal(signal.SIGTERM, lambda *_: None)
    yield
    signal.signal(signal.SIGTERM, before)


@pytest.mark.usefixtures("handled")
async def test_who_waits_is_told_that_the_server_stops() -> None:
    works = Works()
    peer = await connect(works.app)
    task_id = await peer.begin("hold")
    waiting = asyncio.create_task(peer.result(task_id))
    async with asyncio.timeout(PATIENCE):
        while not len(works.app.running):
            await asyncio.sleep(0)
    signal.raise_signal(signal.SIGTERM)
    stopping = "The server is stopping: ask for the result again"
    assert await waiting == {"code": -32000, "message": stopping}
    works.go.set()
    assert await peer.result(task_id) == of(task_id, text("held"))
