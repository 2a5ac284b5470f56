"""The official client has tasks by an extension, which is written here.

It brings no extension of its own for them: what it has is a place for one.
"""

import asyncio
from collections.abc import Iterator, Sequence
from typing import Any, Literal

import pytest
from mcp import Client, MCPError
from mcp.client import ClaimContext, ClientExtension, ClientRequestContext, ResultClaim
from mcp_types import (
    CallToolResult,
    ElicitRequest,
    ElicitRequestFormParams,
    ElicitRequestParams,
    ElicitResult,
    Request,
    RequestParams,
    Result,
    TextContent,
)
from pydantic import Field

from mcpkit.extensions.task_wire import IDENTIFIER
from tests.clients.processes import serving

pytestmark = pytest.mark.anyio

ENDED = ("completed", "failed", "cancelled")


class Handle(Result):
    """What a call is answered with that becomes a task."""

    result_type: Literal["task"] = Field(alias="resultType")
    task_id: str = Field(alias="taskId")


class State(Result):
    """How a task stands."""

    status: str
    result: dict[str, Any] | None = None
    error: dict[str, Any] | None = None
    message: str | None = Field(None, alias="statusMessage")
    asked: dict[str, Any] = Field({}, alias="inputRequests")


class OfTask(RequestParams):
    """The params of what is asked of a task."""

    task_id: str = Field(serialization_alias="taskId")


class Answers(OfTask):
    """The answers to what a task asks."""

    responses: dict[str, Any] = Field(serialization_alias="inputResponses")


class Get(Request[OfTask, Literal["tasks/get"]]):
    """`tasks/get`."""

    name_param = "taskId"
    method: Literal["tasks/get"] = "tasks/get"
    params: OfTask


class Update(Request[Answers, Literal["tasks/update"]]):
    """`tasks/update`."""

    name_param = "taskId"
    method: Literal["tasks/update"] = "tasks/update"
    params: Answers


class Tasks(ClientExtension):
    """Waits for the end of tasks, and answers what they ask."""

    identifier = IDENTIFIER

    def __init__(self) -> None:
        self.messages: list[str | None] = []

    def claims(self) -> Sequence[ResultClaim[Any]]:
        """Take handles of tasks for results."""
        return [ResultClaim(result_type="task", model=Handle, resolve=self._resolve)]

    async def _resolve(self, handle: Handle, context: ClaimContext) -> CallToolResult:
        state = await self._ended(handle.task_id, context)
        if state.error is not None:
            raise MCPError(**{"data": None, **state.error})
        return CallToolResult.model_validate(state.result)

    async def _ended(self, task_id: str, context: ClaimContext) -> State:
        session = context.session
        while True:
            request = Get(params=OfTask(task_id=task_id))
            state = await session.send_request(request, State)
            self.messages.append(state.message)
            if state.status in ENDED:
                return state
            responses: dict[str, Any] = {}
            for key, asked in state.asked.items():
                question = ElicitRequest.model_validate(asked)
                asking = ClientRequestContext(session=session, request_id=key)
                answer = await session.dispatch_input_request(asking, question)
                responses[key] = answer.model_dump(
                    by_alias=True, mode="json", exclude_none=True
                )
            if responses:
                params = Answers(task_id=task_id, responses=responses)
                await session.send_request(Update(params=params), Result)
            await asyncio.sleep(0.01)


class User:
    """Fills in forms, and notes what was asked."""

    def __init__(self, **fields: Any) -> None:
        self.fields = fields
        self.asked: list[str] = []

    async def fill_in(
        self, context: ClientRequestContext, params: ElicitRequestParams
    ) -> ElicitResult:
        """Give what the form asks for."""
        assert context.session is not None
        assert isinstance(params, ElicitRequestFormParams)
        self.asked.append(params.message)
        names = params.requested_schema["properties"]
        content = {name: self.fields[name] for name in names}
        return ElicitResult(action="accept", content=content)


@pytest.fixture(scope="module")
def library() -> Iterator[str]:
    with serving("examples.tasks:app") as address:
        yield address


async def test_a_task_asks_in_the_middle_and_comes_to_its_end(library: str) -> None:
    """Spec ext-tasks, tasks: Example Message Flow."""
    tasks, user = Tasks(), User(keep=True)
    async with Client(
        library, extensions=[tasks], elicitation_callback=user.fill_in
    ) as client:
        result = await client.call_tool("take_stock", {"shelves": 4})
    assert result.content == [TextContent(text="4 shelves, and 1 books twice.")]
    assert user.asked == ["Shelf 3 has a book twice. Keep?"]
    assert "Shelf 3 of 4" in tasks.messages


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_who_has_no_tasks_waits_for_the_result(
    library: str, mode: Literal["auto", "legacy"]
) -> None:
    """Spec ext-tasks, tasks: Capability Negotiation."""
    user = User(keep=False)
    async with Client(library, mode=mode, elicitation_callback=user.fill_in) as client:
        result = await client.call_tool("take_stock", {"shelves": 3})
    assert result.content == [TextContent(text="3 shelves, and 0 books twice.")]


# the tool, its arguments, the text or the error in the end, what was asked
CALLS: list[tuple[str, dict[str, Any], str, list[str]]] = [
    ("slow_compute", {"seconds": 0, "label": "pi"}, "Computed pi for 0 s.", []),
    ("confirm_delete", {"filename": "a.txt"}, "a.txt is deleted.", ["Delete a.txt?"]),
    (
        "multi_input",
        {},
        "Ada and Ada know each other.",
        ["What is your name?", "What is your friend's name?"],
    ),
    ("test_tool_with_task", {}, "Worked for Ada.", ["What is your name?"]),
    ("failing_job", {}, "This job intentionally fails for testing.", []),
    ("greet", {"name": "Ada"}, "Hello, Ada!", []),
]


@pytest.mark.parametrize(("tool", "arguments", "text", "asked"), CALLS)
async def test_a_client_drives_each_kind_of_task(
    url: str, tool: str, arguments: dict[str, Any], text: str, asked: list[str]
) -> None:
    """Spec ext-tasks, tasks: Task Polling, Task Update Requests."""
    user = User(name="Ada", confirm=True)
    async with Client(
        url, extensions=[Tasks()], elicitation_callback=user.fill_in
    ) as client:
        result = await client.call_tool(tool, arguments)
    assert result.content == [TextContent(text=text)]
    assert result.is_error is (tool == "failing_job")
    assert user.asked == asked


async def test_a_task_that_failed_is_an_error(url: str) -> None:
    """Spec ext-tasks, tasks: Task Execution Errors."""
    fault = "This job intentionally breaks for testing."
    async with Client(url, extensions=[Tasks()]) as client:
        with pytest.raises(MCPError, match=fault):
            await client.call_tool("protocol_error_job", {})
