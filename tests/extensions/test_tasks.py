"""Tasks from their creation to their end, as a modern client sees them."""

import asyncio
import gc
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextvars import ContextVar
from dataclasses import replace
from threading import Event
from types import SimpleNamespace
from typing import Annotated, Any

import pytest
from anyio import wait_all_tasks_blocked
from fastapi import Depends

from mcpkit import App, Context, ProtocolError, Result, SetupError, ToolError
from mcpkit.extensions.task_wire import IDENTIFIER
from mcpkit.extensions.tasks import Tasks
from mcpkit.questions import Elicit, Sample
from mcpkit.stores.base import TaskRecord
from mcpkit.stores.memory import MemoryTaskStore
from tests.calls import V_2025_06_18, call, call_tool, failed, structured, text
from tests.extensions.tasking import (
    CLIENT,
    ENDED,
    NOT_FOUND,
    PATIENCE,
    TASKS,
    answer,
    asking,
    came_to,
    cancel,
    completed,
    ended,
    failed_with,
    look,
    shown,
    started,
    until,
)
from tests.rounds import Name, ask, form, named

pytestmark = pytest.mark.anyio

MISSING = {
    "code": -32021,
    "message": "Missing required client capability: io.modelcontextprotocol/tasks",
    "data": {"requiredCapabilities": {"extensions": {IDENTIFIER: {}}}},
}
INTERNAL = {"code": -32603, "message": "Internal error"}

ADA = SimpleNamespace(id="ada", scopes=[])
BEN = SimpleNamespace(id="ben", scopes=[])


def app_with(handler: Callable[..., Any], **options: Any) -> App:
    """Make an app with one tool, `work`, of which a call becomes a task."""
    app = App("tests", secret_key="k" * 32)
    options = {"task": "optional", **options}
    app.add_tool(handler, name="work", **options)
    return app


async def done() -> str:
    """Do nothing."""
    return "Done."


# Whether a call becomes a task.


async def test_a_handle_is_the_state_of_a_task_and_no_more() -> None:
    """Spec ext-tasks, tasks: Task Creation."""
    app = app_with(done)
    handle = await call(app, "tools/call", client=CLIENT, name="work")
    assert shown(handle) == {"resultType": "task", "status": "working"}
    assert len(handle["taskId"]) >= 22


async def test_two_tasks_have_different_ids() -> None:
    """Spec ext-tasks, tasks: Security Considerations."""
    app = app_with(done)
    assert len({await started(app, "work") for _ in range(20)}) == 20


def sync_no(ctx: Context) -> bool:
    assert ctx.method == "tools/call"
    return False


async def async_no(ctx: Context) -> bool:
    return sync_no(ctx)


def sync_yes(ctx: Context) -> bool:
    return not sync_no(ctx)


async def async_yes(ctx: Context) -> bool:
    return sync_yes(ctx)


DECISIONS = [
    ("optional, declared", "optional", TASKS, "task"),
    ("optional, not declared", "optional", {}, "result"),
    ("optional, of another extension", "optional", {"extensions": {"a/b": {}}}, None),
    ("required, declared", "required", TASKS, "task"),
    ("required, not declared", "required", {}, "refusal"),
    ("a function says yes", sync_yes, TASKS, "task"),
    ("an async function says yes", async_yes, TASKS, "task"),
    ("a function says no", sync_no, TASKS, "result"),
    ("an async function says no", async_no, TASKS, "result"),
    ("a function is not asked without the extension", sync_yes, {}, "result"),
]


@pytest.mark.parametrize(
    ("task", "client", "outcome"),
    [pytest.param(*row, id=name) for name, *row in DECISIONS],
)
async def test_the_server_alone_decides_and_never_against_the_client(
    task: Any, client: Any, outcome: str | None
) -> None:
    """Spec ext-tasks, tasks: Capability Negotiation."""
    app = app_with(done, task=task)
    told = await call(app, "tools/call", client=client, name="work")
    if outcome == "task":
        assert shown(told) == {"resultType": "task", "status": "working"}
    else:
        assert told == (MISSING if outcome == "refusal" else text("Done."))


async def test_a_tool_that_needs_tasks_refuses_before_it_looks_at_arguments() -> None:
    """Ours: a capability is asked for before what it would be used for."""
    app = app_with(done, task="required")
    assert await call_tool(app, "work", {"unknown": 1}) == MISSING


REFUSED: list[tuple[str, dict[str, Any], str | None]] = [
    ("an unknown tool", {"name": "other"}, None),
    ("no name", {}, None),
    ("no arguments", {"name": "work", "arguments": []}, None),
    ("wrong arguments", {"name": "work", "arguments": {"a": 1}}, "isError"),
]


@pytest.mark.parametrize(
    ("params", "member"), [pytest.param(*row, id=name) for name, *row in REFUSED]
)
async def test_what_can_not_be_called_is_answered_at_once(
    params: Any, member: str | None
) -> None:
    """Ours: a task is of a call that could be made."""
    app = app_with(done, task="required")
    told = await call(app, "tools/call", client=TASKS, **params)
    if member is None:
        assert told["code"] == -32602
    else:
        assert told[member] is True
    assert await app.tasks.store.count(None) == 0


async def test_a_function_that_decides_and_fails_is_a_tool_that_failed() -> None:
    """Ours."""

    def decide(_: Context) -> bool:
        raise ToolError("Not on Sundays.")

    app = app_with(done, task=decide)
    told = await call(app, "tools/call", client=TASKS, name="work")
    assert told == failed("Not on Sundays.")


async def test_a_task_param_of_older_clients_changes_nothing() -> None:
    """Spec ext-tasks, tasks: Capability Negotiation."""
    app = app_with(done)
    app.add_tool(done, name="plain")
    params: dict[str, Any] = {"name": "plain", "task": {"ttl": 1}}
    assert await call(app, "tools/call", client=CLIENT, **params) == text("Done.")


async def test_the_methods_of_tasks_are_not_there_in_older_revisions() -> None:
    """Ours: the extension is of 2026-07-28."""
    app = app_with(done)
    params: dict[str, Any] = {"taskId": "1", "inputResponses": {}}
    told = await call(app, "tasks/update", at=V_2025_06_18, **params)
    assert told == {"code": -32601, "message": "Method not found"}


@pytest.mark.parametrize("method", ["tasks/get", "tasks/update", "tasks/cancel"])
async def test_the_methods_of_tasks_are_for_clients_that_declare_them(
    method: str,
) -> None:
    """Spec ext-tasks, tasks: Protocol Errors."""
    app = app_with(done)
    task_id = await started(app, "work")
    params: dict[str, Any] = {"taskId": task_id, "inputResponses": {}}
    assert await call(app, method, **params) == MISSING


@pytest.mark.parametrize("method", ["tasks/list", "tasks/result"])
async def test_the_methods_of_older_tasks_are_not_there(method: str) -> None:
    """Spec ext-tasks, tasks: Reservations."""
    app = app_with(done)
    told = await call(app, method, client=TASKS, taskId="1")
    assert told == {"code": -32601, "message": "Method not found"}


# The round of questions before there is a task.


async def name_first(ctx: Context) -> bool:
    return await ask(ctx, "Who?") == "Ada"


async def who(ctx: Context) -> str:
    """Work for somebody."""
    return await ask(ctx, "Who?")


async def rounds(app: App, first: Any, **answers: Any) -> Any:
    """Send a call again, with the answers to what it was answered with."""
    state = first["requestState"]
    params = {"name": "work", "requestState": state, "inputResponses": answers}
    return await call(app, "tools/call", client=CLIENT, **params)


async def test_a_function_that_decides_may_ask_first() -> None:
    """Spec ext-tasks, tasks: Task Creation."""
    app = app_with(who, task=name_first)
    first = await call(app, "tools/call", client=CLIENT, name="work")
    assert first["inputRequests"] == {"elicitation": form("Who?")}
    assert "taskId" not in first
    handle = await rounds(app, first, elicitation=named("Ada"))
    assert shown(handle) == {"resultType": "task", "status": "working"}
    assert await ended(app, handle["taskId"]) == completed(text("Ada"))


async def test_the_tool_has_the_answer_when_there_is_no_task() -> None:
    """Ours."""
    app = app_with(who, task=name_first)
    first = await call(app, "tools/call", client=CLIENT, name="work")
    assert await rounds(app, first, elicitation=named("Ben")) == text("Ben")


async def test_a_tool_that_asks_something_else_asks_it_once() -> None:
    """Ours: what is asked before a call is not among its own questions."""

    async def favourite(ctx: Context) -> str:
        return await ask(ctx, "Which colour?")

    app = app_with(favourite, task=name_first)
    first = await call(app, "tools/call", client=CLIENT, name="work")
    second = await rounds(app, first, elicitation=named("Ben"))
    assert second["inputRequests"] == {"elicitation-2": form("Which colour?")}
    third = await rounds(app, second, **{"elicitation-2": named("Red")})
    assert third == text("Red")


async def test_questions_in_the_same_words_have_their_answers_in_turn() -> None:
    """Ours."""

    async def twice(ctx: Context) -> str:
        return " ".join([await ask(ctx, "Who?"), await ask(ctx, "Who?")])

    async def decide(ctx: Context) -> bool:
        return bool(await twice(ctx))

    app = app_with(twice, task=decide)
    first = await call(app, "tools/call", client=CLIENT, name="work")
    second = await rounds(app, first, elicitation=named("Ada"))
    handle = await rounds(app, second, **{"elicitation-2": named("Ben")})
    assert await ended(app, handle["taskId"]) == completed(text("Ada Ben"))


async def test_what_is_done_once_while_it_is_decided_is_done_once() -> None:
    """Ours: beside a question as well, and the tool has it too."""
    made: list[int] = []
    asked = asyncio.Event()

    async def reserve() -> int:
        await asked.wait()
        # By then the function that decides has been stopped.
        for _ in range(10):
            await asyncio.sleep(0)
        made.append(1)
        return len(made)

    async def decide(ctx: Context) -> bool:
        question = asyncio.create_task(ask(ctx, "Who?"))
        question.add_done_callback(lambda _: asked.set())
        number, _ = await asyncio.gather(ctx.once("reserve", reserve), question)
        return bool(number)

    async def work(ctx: Context) -> str:
        """Tell what was reserved."""
        return f"{await ctx.once('reserve', reserve)} {await ask(ctx, 'Who?')}"

    app = app_with(work, task=decide)
    first = await call(app, "tools/call", client=CLIENT, name="work")
    handle = await rounds(app, first, elicitation=named("Ada"))
    assert await ended(app, handle["taskId"]) == completed(text("1 Ada"))
    assert made == [1]


# What a task comes to.


def raises(error: BaseException) -> Callable[[], Any]:
    def work() -> None:
        """Fail."""
        raise error

    return work


def returns(value: Any) -> Callable[[], Any]:
    def work() -> Result:
        """Return something."""
        return value  # type: ignore[no-any-return]  # of whatever type

    return work


META = {"com.example/a": 1}
OUTCOMES = [
    ("a text", returns("Done."), completed(text("Done."))),
    ("nothing", returns(None), completed({"content": [], "isError": False})),
    ("a structure", returns({"a": [1]}), completed(structured('{"a":[1]}'))),
    (
        "an error of the tool",
        raises(ToolError("It rains.")),
        completed(failed("It rains.")),
    ),
    ("a fault", raises(ValueError("secret")), completed(failed("Tool work failed"))),
    ("an exit", raises(SystemExit(3)), completed(failed("Tool work failed"))),
    (
        "metadata",
        returns(Result.text("Done.", metadata=META)),
        completed({**text("Done."), "_meta": META}),
    ),
    (
        "a result in wire form",
        returns(Result.raw({"content": [], "_meta": META}, metadata={"b": 2})),
        completed({"content": [], "isError": False, "_meta": {**META, "b": 2}}),
    ),
    (
        "an error of the request",
        raises(ProtocolError(-32000, "Closed.", {"until": 9})),
        failed_with(-32000, "Closed.", data={"until": 9}),
    ),
    (
        "a code that is not sent",
        raises(ProtocolError(-32002, "No such book.")),
        failed_with(-32602, "No such book."),
    ),
    (
        "a code that nobody has defined",
        raises(ProtocolError(-32050, "Odd.")),
        failed_with(-32603, "Internal error"),
    ),
    (
        "the data of an error without a JSON form",
        raises(ProtocolError(-32000, "Closed.", object())),
        failed_with(-32603, "Internal error"),
    ),
    (
        "a result without a JSON form",
        returns(Result.raw({"content": [object()]})),
        failed_with(-32603, "Internal error"),
    ),
    (
        "another task",
        returns(Result.task({"taskId": "1", "status": "working"})),
        failed_with(-32603, "Internal error"),
    ),
    (
        "a result of an unknown type",
        returns(Result.wire({"resultType": "com.example/other"})),
        failed_with(-32603, "Internal error"),
    ),
]


@pytest.mark.parametrize(
    ("handler", "outcome"), [pytest.param(*row, id=name) for name, *row in OUTCOMES]
)
async def test_a_task_ends_with_what_the_call_would_have_been_answered_with(
    handler: Callable[..., Any], outcome: Any
) -> None:
    """Spec ext-tasks, tasks: Task Execution Errors."""
    assert await came_to(app_with(handler), "work") == outcome


async def test_a_value_that_breaks_the_output_schema_is_an_error_of_the_tool() -> None:
    """Ours."""

    def count() -> int:
        """Count."""
        return "many"  # type: ignore[return-value]  # which is the point

    told = "Tool work returned a value that does not match its output schema"
    assert await came_to(app_with(count), "work") == completed(failed(told))


async def test_a_task_stands_in_its_handle_as_it_does_when_it_is_looked_at() -> None:
    """Spec ext-tasks, tasks: Task Creation. Looked at right away, it is there."""
    go = asyncio.Event()

    async def wait() -> str:
        await go.wait()
        return "Done."

    app = app_with(wait)
    handle = await call(app, "tools/call", client=CLIENT, name="work")
    found = await call(app, "tasks/get", client=CLIENT, taskId=handle["taskId"])
    assert found == {key: it for key, it in handle.items() if key != "resultType"}
    go.set()
    assert await ended(app, handle["taskId"]) == completed(text("Done."))


class Broken(MemoryTaskStore):
    """A store with methods that fail, as often as they are told to."""

    def __init__(self, **failing: int) -> None:
        super().__init__()
        self.failing = failing

    def _fail(self, method: str) -> None:
        if self.failing.get(method, 0):
            self.failing[method] -= 1
            raise OSError("disk full: secret")

    async def add(self, record: TaskRecord, most: int | None = None) -> bool:
        """See `TaskStore`."""
        self._fail("add")
        return await super().add(record, most)

    async def get(self, task_id: str) -> TaskRecord | None:
        """See `TaskStore`."""
        self._fail("get")
        return await super().get(task_id)

    async def replace(self, record: TaskRecord, revision: int) -> bool:
        """See `TaskStore`."""
        self._fail("replace")
        return await super().replace(record, revision)


async def test_nobody_is_given_the_handle_of_a_task_that_is_not_kept() -> None:
    """Spec ext-tasks, tasks: Task Creation, Protocol Errors."""
    began = []
    app = App("tests", tasks=Tasks(Broken(add=1)))
    app.add_tool(lambda: began.append(1), name="work", task="optional")
    told = await call(app, "tools/call", client=TASKS, name="work")
    assert (told, began) == (INTERNAL, [])


async def test_a_store_that_can_not_be_read_is_an_internal_error() -> None:
    """Spec ext-tasks, tasks: Protocol Errors."""
    app = App("tests", tasks=Tasks(Broken(get=1)))
    told = await call(app, "tasks/get", client=TASKS, taskId="1")
    assert told == INTERNAL


async def test_what_a_task_came_to_waits_for_a_store_that_is_out_of_order(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Ours: what was done is not lost."""
    monkeypatch.setattr("mcpkit.extensions.tasks.TICK", 0.001)
    app = App("tests", tasks=Tasks(Broken(replace=3)))
    app.add_tool(done, name="work", task="optional")
    assert await came_to(app, "work") == completed(text("Done."))


# Questions.


async def test_a_task_asks_and_goes_on_with_the_answer() -> None:
    """Spec ext-tasks, tasks: Task Update Requests."""
    app = app_with(who)
    task_id = await started(app, "work")
    asked = await until(app, task_id, "input_required")
    assert asked == asking(elicitation=form("Who?"))
    # It is asked the same until it is answered.
    assert await look(app, task_id) == asked
    assert await answer(app, task_id, {"elicitation": named("Ada")}) == {}
    assert await ended(app, task_id) == completed(text("Ada"))


async def test_a_function_in_a_thread_asks_as_well() -> None:
    """Ours."""

    def work(ctx: Context) -> str:
        """Ask."""
        return ctx.wait(ask(ctx, "Who?"))

    app = app_with(work)
    task_id = await started(app, "work")
    await until(app, task_id, "input_required")
    await answer(app, task_id, {"elicitation": named("Ada")})
    assert await ended(app, task_id) == completed(text("Ada"))


async def two(ctx: Context) -> str:
    """Ask two questions at once."""
    questions = {key: Elicit(f"{key}?", Name) for key in ("first", "second")}
    answers = await ctx.ask(questions)
    return " ".join(answers[key].data.name for key in questions)


async def test_questions_may_be_answered_one_after_the_other() -> None:
    """Spec ext-tasks, tasks: Task Update Requests."""
    app = app_with(two)
    task_id = await started(app, "work")
    asked = await until(app, task_id, "input_required")
    assert asked == asking(first=form("first?"), second=form("second?"))
    # One after the other, in whatever order.
    await answer(app, task_id, {"second": named("Ben")})
    assert await look(app, task_id) == asking(first=form("first?"))
    await answer(app, task_id, {"first": named("Ada")})
    assert await ended(app, task_id) == completed(text("Ada Ben"))


async def test_questions_of_concurrent_work_are_asked_together() -> None:
    """Ours."""

    async def work(ctx: Context) -> str:
        """Ask two at the same time."""
        names = await asyncio.gather(ask(ctx, "First?"), ask(ctx, "Second?"))
        return " ".join(names)

    app = app_with(work)
    task_id = await started(app, "work")
    async with asyncio.timeout(PATIENCE):
        while len((await look(app, task_id)).get("inputRequests", {})) < 2:
            await wait_all_tasks_blocked()
    answers = {"elicitation-2": named("Ben"), "elicitation": named("Ada")}
    for key, given in answers.items():
        await answer(app, task_id, {key: given})
    assert await ended(app, task_id) == completed(text("Ada Ben"))


IGNORED = [
    ("a key that was never asked", {"other": named("Eve")}),
    ("no answer at all", {}),
    ("one that was answered", {"elicitation": named("Eve")}),
]


@pytest.mark.parametrize(
    "answers", [pytest.param(answers, id=name) for name, answers in IGNORED]
)
async def test_answers_to_what_is_not_asked_are_ignored(answers: Any) -> None:
    """Spec ext-tasks, tasks: Task Update Requests."""

    async def work(ctx: Context) -> str:
        """Ask two in turn."""
        return f"{await ask(ctx, 'First?')} {await ask(ctx, 'Second?')}"

    app = app_with(work)
    task_id = await started(app, "work")
    await until(app, task_id, "input_required")
    await answer(app, task_id, {"elicitation": named("Ada")})
    await until(app, task_id, "input_required")
    before = await call(app, "tasks/get", client=CLIENT, taskId=task_id)
    assert await answer(app, task_id, answers) == {}
    assert await call(app, "tasks/get", client=CLIENT, taskId=task_id) == before
    await answer(app, task_id, {"elicitation-2": named("Ben")})
    assert await ended(app, task_id) == completed(text("Ada Ben"))
    # After its end nothing is asked any more.
    assert await answer(app, task_id, answers) == {}
    assert await look(app, task_id) == completed(text("Ada Ben"))


MALFORMED: list[Any] = [None, [], "a", 1, {"a": 1}, {"elicitation": None}]


@pytest.mark.parametrize("answers", MALFORMED, ids=str)
async def test_malformed_answers_are_refused(answers: Any) -> None:
    """Spec ext-tasks, tasks: Protocol Errors."""
    app = app_with(who)
    task_id = await started(app, "work")
    asked = await until(app, task_id, "input_required")
    fault = "Invalid params: inputResponses must be an object of objects"
    told = await answer(app, task_id, answers)
    assert told == {"code": -32602, "message": fault}
    assert await look(app, task_id) == asked


async def test_what_does_not_fit_is_asked_again_under_another_key() -> None:
    """Spec ext-tasks, tasks: Task Update Requests. Keys are never used again."""
    app = app_with(who)
    task_id = await started(app, "work")
    keys = []
    for _ in range(3):
        asked = await until(app, task_id, "input_required")
        [(key, asks)] = asked["inputRequests"].items()
        keys.append((key, asks["params"]["message"].partition("\n")[0]))
        await answer(app, task_id, {key: {"action": "accept", "content": {}}})
    assert keys == [
        ("elicitation", "Who?"),
        ("elicitation-2", "Who?"),
        ("elicitation-3", "Who?"),
    ]
    told = await ended(app, task_id)
    assert told["result"]["isError"] is True
    assert "does not fit" in told["result"]["content"][0]["text"]


async def test_a_question_in_the_same_words_has_another_key() -> None:
    """Spec ext-tasks, tasks: Task Update Requests."""

    async def work(ctx: Context) -> str:
        """Ask the same twice."""
        return f"{await ask(ctx, 'Who?')} {await ask(ctx, 'Who?')}"

    app = app_with(work)
    task_id = await started(app, "work")
    for key, name in (("elicitation", "Ada"), ("elicitation-2", "Ben")):
        asked = await until(app, task_id, "input_required")
        assert asked == asking(**{key: form("Who?")})
        await answer(app, task_id, {key: named(name)})
    assert await ended(app, task_id) == completed(text("Ada Ben"))


async def test_an_answer_that_was_read_is_not_kept_twice() -> None:
    """Ours: it is in the journal from then on."""

    async def work(ctx: Context) -> str:
        """Ask two in turn."""
        return f"{await ask(ctx, 'First?')} {await ask(ctx, 'Second?')}"

    app = app_with(work)
    task_id = await started(app, "work")
    await until(app, task_id, "input_required")
    await answer(app, task_id, {"elicitation": named("Ada")})
    await until(app, task_id, "input_required")
    record = await app.tasks.store.get(task_id)
    assert record is not None
    assert record.answered == {}
    assert record.journal is not None
    [[position, _, response]] = record.journal["e"]
    assert (position, response) == (0, named("Ada"))


async def test_questions_built_by_hand_have_other_keys_each_time() -> None:
    """Spec ext-tasks, tasks: Task Update Requests."""

    def work(ctx: Context) -> str | Result:
        """Ask until somebody says their name."""
        given = ctx.input.responses.get("who", {}).get("content", {})
        if given.get("name"):
            return f"{given['name']}, after {ctx.input.state}"
        return Result.input_required({"who": form("Who?")}, f"{ctx.round} rounds")

    app = app_with(work)
    task_id = await started(app, "work")
    for key, name in (("who", ""), ("who-2", "Ada")):
        asked = await until(app, task_id, "input_required")
        assert asked == asking(**{key: form("Who?")})
        await answer(app, task_id, {key: named(name)})
    assert await ended(app, task_id) == completed(text("Ada, after 2 rounds"))


async def test_what_the_client_can_not_answer_fails_the_task() -> None:
    """Spec ext-tasks, tasks: Task Execution Errors; 2026-07-28, basic/index."""

    async def work(ctx: Context) -> str:
        """Ask the model."""
        answers = await ctx.ask({"model": Sample("Who?"), "user": Elicit("W", Name)})
        return str(answers)

    client = {**TASKS, "elicitation": {"form": {}}}
    app = app_with(work)
    told = await ended(app, await started(app, "work", client=client))
    assert told == failed_with(
        -32021,
        "Missing required client capability: sampling",
        data={"requiredCapabilities": {"sampling": {}}},
    )


async def test_what_is_done_once_is_done_once_with_questions_around_it() -> None:
    """Ours."""
    made: list[int] = []

    def order() -> int:
        made.append(len(made))
        return len(made)

    async def work(ctx: Context) -> str:
        """Ask, do and ask."""
        before = await ask(ctx, "First?")
        number = await ctx.once("order", order)
        after = await ask(ctx, "Second?")
        return f"{before} {number} {after} {await ctx.once('order', order)}"

    app = app_with(work)
    task_id = await started(app, "work")
    for key in ("elicitation", "elicitation-2"):
        await until(app, task_id, "input_required")
        await answer(app, task_id, {key: named(key)})
    said = "elicitation 1 elicitation-2 1"
    assert await ended(app, task_id) == completed(text(said))


# Progress.


async def test_progress_is_the_message_of_a_task(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Spec ext-tasks, tasks: Tasks. What was reported last is seen in the end."""
    monkeypatch.setattr("mcpkit.extensions.task_run.PROGRESS_EVERY", 0.01)
    steps: asyncio.Queue[tuple[Any, ...]] = asyncio.Queue()

    async def work(ctx: Context) -> str:
        """Report."""
        while step := await steps.get():
            await ctx.progress(*step)
        return "Done."

    app = app_with(work)
    task_id = await started(app, "work")
    for given, message in (
        ([(1,)], "1"),
        ([(2, 4)], "2 of 4"),
        ([(3, 4, "Nearly there.")], "Nearly there."),
        ([(3.1,), (3.2,), (3.5, 4)], "3.5 of 4"),
    ):
        for step in given:
            steps.put_nowait(step)
        async with asyncio.timeout(PATIENCE):
            while (await look(app, task_id)).get("statusMessage") != message:
                record = await app.tasks.store.get(task_id)
                assert record is not None
                await app.tasks.wait(task_id, record.revision)
    steps.put_nowait(())
    assert await ended(app, task_id) == completed(text("Done."))


async def test_work_does_not_fail_because_its_progress_can_not_be_kept() -> None:
    """Ours."""

    async def work(ctx: Context) -> str:
        """Report."""
        await ctx.progress(1)
        return "Done."

    app = App("tests", tasks=Tasks(Broken(replace=1)))
    app.add_tool(work, task="optional")
    assert await came_to(app, "work") == completed(text("Done."))


# Cancellation.


class Held:
    """A handler that waits until it is told, and notes what becomes of it."""

    def __init__(self) -> None:
        self.began = asyncio.Event()
        self.go = asyncio.Event()
        self.notes: list[str] = []

    async def work(self) -> str:
        """Wait."""
        self.began.set()
        try:
            await self.go.wait()
        finally:
            self.notes.append("cleaned up")
        return "Done."


async def test_a_task_is_cancelled_and_cleans_up() -> None:
    """Spec ext-tasks, tasks: Task Cancellation."""
    held = Held()
    app = app_with(held.work)
    task_id = await started(app, "work")
    await held.began.wait()
    assert await cancel(app, task_id) == {}
    assert await ended(app, task_id) == {"status": "cancelled"}
    assert held.notes == ["cleaned up"]
    # Again, and for a task that has ended, it makes no difference.
    assert await cancel(app, task_id) == {}
    assert await look(app, task_id) == {"status": "cancelled"}


async def test_a_task_that_has_not_begun_is_cancelled() -> None:
    """Spec ext-tasks, tasks: Task Cancellation."""
    app = app_with(done)
    task_id = await started(app, "work")
    # Nothing has waited until now, so that the handler has had no turn.
    assert await cancel(app, task_id) == {}
    assert await ended(app, task_id) == {"status": "cancelled"}


async def test_a_task_that_came_to_its_end_is_not_cancelled_any_more() -> None:
    """Spec ext-tasks, tasks: Task Cancellation."""
    app = app_with(done)
    task_id = await started(app, "work")
    assert await ended(app, task_id) == completed(text("Done."))
    assert await cancel(app, task_id) == {}
    assert await look(app, task_id) == completed(text("Done."))


async def test_a_task_that_asks_is_cancelled_and_asks_nothing_any_more() -> None:
    """Spec ext-tasks, tasks: Task Cancellation."""
    app = app_with(who)
    task_id = await started(app, "work")
    await until(app, task_id, "input_required")
    await cancel(app, task_id)
    assert await ended(app, task_id) == {"status": "cancelled"}


async def test_a_function_in_a_thread_is_told_that_it_is_cancelled() -> None:
    """Ours: a thread can't be stopped from outside."""
    began = Event()

    def work(ctx: Context) -> str:
        """Look out for it."""
        began.set()
        while not ctx.cancelled:
            pass
        return "Too late."

    app = app_with(work)
    task_id = await started(app, "work")
    await asyncio.to_thread(began.wait, PATIENCE)
    await cancel(app, task_id)
    assert await ended(app, task_id) == {"status": "cancelled"}


async def test_whatever_a_handler_makes_of_it_it_was_cancelled() -> None:
    """Ours: nobody waits for its result."""
    began = asyncio.Event()

    async def work() -> str:
        """Finish what was begun."""
        began.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            return "Done all the same."
        return "Not reached."

    app = app_with(work)
    task_id = await started(app, "work")
    await began.wait()
    await cancel(app, task_id)
    assert await ended(app, task_id) == {"status": "cancelled"}


class Slow(MemoryTaskStore):
    """A store that waits before it writes how a task ended."""

    def __init__(self) -> None:
        super().__init__()
        self.writing = asyncio.Event()
        self.go = asyncio.Event()

    async def replace(self, record: TaskRecord, revision: int) -> bool:
        """See `TaskStore`."""
        if record.status in ENDED:
            self.writing.set()
            await self.go.wait()
        return await super().replace(record, revision)


async def test_the_end_of_a_task_is_written_although_it_is_cancelled_then() -> None:
    """Ours."""
    store = Slow()
    app = App("tests", tasks=Tasks(store))
    app.add_tool(done, name="work", task="optional")
    task_id = await started(app, "work")
    await store.writing.wait()
    assert await cancel(app, task_id) == {}
    store.go.set()
    assert await ended(app, task_id) == completed(text("Done."))


async def test_what_ends_while_it_is_answered_or_cancelled_is_acknowledged() -> None:
    """Ours: no difference to one that ended just before."""

    class Ending(MemoryTaskStore):
        async def get(self, task_id: str) -> TaskRecord | None:
            record = await super().get(task_id)
            if record is not None and record.status not in ENDED:
                gone = replace(record, status="cancelled", asked={})
                await super().replace(gone, record.revision)
            return record

    app = App("tests", tasks=Tasks(Ending()))
    app.add_tool(who, name="work", task="optional")
    task_id = await started(app, "work")
    assert await answer(app, task_id, {"elicitation": named("Ada")}) == {}
    assert await cancel(app, await started(app, "work")) == {}


# Who may know of a task.


def calls_of(app: App, task_id: str, by: Any) -> list[Awaitable[Any]]:
    return [
        call(app, "tasks/get", by=by, client=CLIENT, taskId=task_id),
        answer(app, task_id, {}, by=by),
        cancel(app, task_id, by=by),
    ]


OWNERS = [
    ("another principal", ADA, BEN),
    ("nobody in particular", ADA, None),
    ("somebody, of a task that is nobody's", None, ADA),
    ("one whose id looks like it", ADA, "principal:ada"),
]


@pytest.mark.parametrize(
    ("owner", "stranger"), [pytest.param(*row, id=name) for name, *row in OWNERS]
)
async def test_the_task_of_another_is_as_if_there_were_none(
    owner: Any, stranger: Any
) -> None:
    """Spec ext-tasks, tasks: Security Considerations."""
    held = Held()
    app = app_with(held.work)
    task_id = await started(app, "work", by=owner)
    for told in calls_of(app, task_id, stranger) + calls_of(app, "unknown", owner):
        assert await told == NOT_FOUND
    held.go.set()
    assert await ended(app, task_id, by=owner) == completed(text("Done."))


async def test_who_has_the_id_of_a_task_that_is_nobodys_may_know_of_it() -> None:
    """Spec ext-tasks, tasks: Security Considerations: bearer tokens."""
    app = app_with(done)
    assert await came_to(app, "work") == completed(text("Done."))


@pytest.mark.parametrize("task_id", [None, 1, [], {}], ids=str)
async def test_an_id_is_a_string(task_id: Any) -> None:
    """Spec ext-tasks, tasks: Protocol Errors."""
    app = app_with(done)
    told = await call(app, "tasks/get", client=CLIENT, taskId=task_id)
    fault = "Invalid params: taskId must be a string"
    assert told == {"code": -32602, "message": fault}


async def test_a_task_knows_who_called() -> None:
    """Ours."""

    async def work(ctx: Context) -> list[Any]:
        """Say who calls."""
        return [ctx.principal_id, ctx.method, ctx.params["name"], ctx.era]

    app = app_with(work)
    task_id = await started(app, "work", by=ADA)
    told = await ended(app, task_id, by=ADA)
    assert told["result"]["structuredContent"] == [
        "ada",
        "tools/call",
        "work",
        "modern",
    ]


# What is around a task.


async def test_dependencies_are_there_until_a_task_has_ended() -> None:
    """Ours."""
    held = Held()

    async def opened() -> AsyncIterator[str]:
        held.notes.append("opened")
        yield "database"
        held.notes.append("closed")

    async def work(of: Annotated[str, Depends(opened)]) -> str:
        """Work with something that is open."""
        await held.work()
        return of

    app = app_with(work)
    task_id = await started(app, "work")
    await held.began.wait()
    assert held.notes == ["opened"]
    held.go.set()
    assert await ended(app, task_id) == completed(text("database"))
    await wait_all_tasks_blocked()
    assert held.notes == ["opened", "cleaned up", "closed"]


CALLER: ContextVar[str] = ContextVar("CALLER", default="nobody")


async def test_a_task_has_the_context_variables_of_its_call() -> None:
    """Ours."""
    held = Held()

    async def work() -> str:
        """Tell who called."""
        await held.work()
        return CALLER.get()

    app = app_with(work)

    async def begin(name: str) -> str:
        CALLER.set(name)
        return await started(app, "work")

    ids = [await asyncio.create_task(begin(name)) for name in ("ada", "ben")]
    held.go.set()
    told = [await ended(app, task_id) for task_id in ids]
    assert told == [completed(text("ada")), completed(text("ben"))]


async def test_the_call_that_ends_does_not_end_its_task() -> None:
    """Ours."""
    held = Held()
    app = app_with(held.work)
    beginning = asyncio.create_task(started(app, "work"))
    task_id = await beginning
    await wait_all_tasks_blocked()
    assert beginning.done()
    assert await look(app, task_id) == {"status": "working"}
    held.go.set()
    assert await ended(app, task_id) == completed(text("Done."))


async def test_middleware_and_listeners_see_the_call_and_its_handle() -> None:
    """Ours."""
    app = app_with(done)
    seen: list[Any] = []

    @app.middleware
    async def watch(ctx: Context, call_next: Any) -> Any:
        result = await call_next()
        seen.append((ctx.method, result.kind))
        return result

    await came_to(app, "work")
    assert ("tools/call", "task") in seen
    assert ("tasks/get", "wire") in seen


async def test_middleware_that_refuses_leaves_no_task() -> None:
    """Ours."""
    app = app_with(done)

    @app.middleware
    async def refuse(_: Context, _next: Any) -> Any:
        raise ProtocolError(-32000, "Closed.")

    told = await call(app, "tools/call", client=TASKS, name="work")
    assert told == {"code": -32000, "message": "Closed."}
    assert await app.tasks.store.count(None) == 0


# Time and number.


async def test_a_task_says_how_long_it_is_kept_and_how_often_to_ask() -> None:
    """Spec ext-tasks, tasks: Tasks. Both are whole milliseconds."""
    app = App("tests", tasks=Tasks(ttl=0.5004, poll=0.2501))
    app.add_tool(done, name="work", task="optional")
    handle = await call(app, "tools/call", client=CLIENT, name="work")
    assert (handle["ttlMs"], handle["pollIntervalMs"]) == (500, 250)


async def test_a_task_may_be_kept_for_ever() -> None:
    """Spec ext-tasks, tasks: Tasks."""
    app = App("tests", tasks=Tasks(ttl=None))
    app.add_tool(done, name="work", task="optional")
    handle = await call(app, "tools/call", client=CLIENT, name="work")
    assert handle["ttlMs"] is None


async def aged(app: App, task_id: str) -> None:
    """Let the time of a task be over."""
    async with asyncio.timeout(PATIENCE):
        while True:
            record = await app.tasks.store.get(task_id)
            assert record is not None
            old = replace(record, created=record.created - 3600)
            if await app.tasks.store.replace(old, record.revision):
                return


async def test_a_task_whose_time_is_over_is_not_found() -> None:
    """Spec ext-tasks, tasks: Protocol Errors."""
    app = app_with(done)
    task_id = await started(app, "work")
    await ended(app, task_id)
    await aged(app, task_id)
    assert await look(app, task_id) == NOT_FOUND
    assert await cancel(app, task_id) == NOT_FOUND


@pytest.fixture
def hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("TICK", "SWEEP_EVERY"):
        monkeypatch.setattr(f"mcpkit.extensions.tasks.{name}", 0.001)


@pytest.mark.usefixtures("hurry")
async def test_a_task_that_takes_too_long_has_failed_and_is_stopped() -> None:
    """Spec ext-tasks, tasks: Task Polling. Its client can read so for a while."""
    held = Held()
    app = app_with(held.work)
    task_id = await started(app, "work")
    await held.began.wait()
    await aged(app, task_id)
    told = await ended(app, task_id)
    assert told.pop("ttlMs") > 3_600_000
    del told["pollIntervalMs"]
    assert told == failed_with(-32603, "The task took too long")
    async with asyncio.timeout(PATIENCE):
        while not held.notes:
            await wait_all_tasks_blocked()


@pytest.mark.usefixtures("hurry")
async def test_tasks_whose_time_is_over_are_removed() -> None:
    """Ours."""
    app = app_with(done)
    task_id = await started(app, "work")
    await ended(app, task_id)
    await aged(app, task_id)
    async with asyncio.timeout(PATIENCE):
        while await app.tasks.store.get(task_id):
            await wait_all_tasks_blocked()


LIMITS = [
    ("of a worker", {"max_running": 2}, None),
    ("of a caller", {"max_per_caller": 2}, ADA),
]


@pytest.mark.parametrize(
    ("limits", "by"), [pytest.param(*row, id=name) for name, *row in LIMITS]
)
async def test_there_are_so_many_tasks_and_no_more(limits: Any, by: Any) -> None:
    """Ours."""
    held = Held()
    app = App("tests", tasks=Tasks(**limits))
    app.add_tool(held.work, task="optional")
    ids = [await started(app, "work", by=by) for _ in range(2)]
    told = await call(app, "tools/call", by=by, client=TASKS, name="work")
    assert told == {"code": -32000, "message": "Too many tasks"}
    if by is not None:
        # Others have theirs.
        ids.append(await started(app, "work", by=BEN))
    held.go.set()
    for task_id in ids[:2]:
        await ended(app, task_id, by=by)
    await wait_all_tasks_blocked()
    await ended(app, await started(app, "work", by=by), by=by)


WRONG = [
    ("ttl", {"ttl": 0}),
    ("poll", {"poll": -1}),
    ("lease", {"lease": 0}),
    ("max_running", {"max_running": 0}),
    ("max_per_caller", {"max_per_caller": 0}),
    ("ttl", {"ttl": "1 h"}),
]


@pytest.mark.parametrize(("name", "options"), WRONG)
def test_options_that_can_not_work_are_refused(name: str, options: Any) -> None:
    """Ours."""
    with pytest.raises(SetupError, match=f"{name} is more than 0"):
        Tasks(**options)


def test_a_path_is_no_store() -> None:
    """Ours."""
    store: Any = "tasks.db"
    with pytest.raises(SetupError, match=r"SQLiteTaskStore\('tasks.db'\)"):
        Tasks(store)


def test_tasks_are_those_of_one_app() -> None:
    """Ours."""
    tasks = Tasks()
    App("one", tasks=tasks)
    with pytest.raises(SetupError, match="of one app"):
        App("another", tasks=tasks)


# The end of a worker.


async def test_tasks_end_with_their_worker(caplog: pytest.LogCaptureFixture) -> None:
    """Ours: those that another can run again wait for it, the others have failed."""
    held = Held()
    app = app_with(held.work)
    app.add_tool(held.work, name="again", task="optional", resumable=True)
    work, again = [await started(app, name) for name in ("work", "again")]
    await held.began.wait()
    await wait_all_tasks_blocked()
    with caplog.at_level(logging.ERROR):
        await app.tasks.stop()
    assert caplog.messages == []
    assert held.notes == ["cleaned up", "cleaned up"]
    assert await look(app, work) == failed_with(-32603, "The server was shut down")
    assert await look(app, again) == {"status": "working"}
    [record] = await app.tasks.store.abandoned(0.0, 10)
    assert record.task_id == again


async def test_a_worker_goes_on_with_what_another_left() -> None:
    """Ours."""
    store = MemoryTaskStore()
    made: list[int] = []

    async def work(ctx: Context) -> str:
        """Ask, do and ask."""
        before = await ask(ctx, "First?")
        await ctx.once("made", lambda: made.append(1))
        return f"{before} {await ask(ctx, 'Second?')} {ctx.principal_id}"

    def worker() -> App:
        app = App("tests", tasks=Tasks(store))
        app.add_tool(work, task="optional", resumable=True)
        return app

    first, second = worker(), worker()
    task_id = await started(first, "work", by=ADA)
    await until(first, task_id, "input_required", by=ADA)
    await answer(first, task_id, {"elicitation": named("Ada")}, by=ADA)
    asked = await until(first, task_id, "input_required", by=ADA)
    assert asked == asking(**{"elicitation-2": form("Second?")})
    await first.tasks.stop()
    # It asks the same as before, and takes an answer although nobody runs it.
    assert await look(second, task_id, by=ADA) == asked
    await answer(second, task_id, {"elicitation-2": named("Ben")}, by=ADA)
    told = await ended(second, task_id, by=ADA)
    assert (told, made) == (completed(text("Ada Ben ada")), [1])
    await second.tasks.stop()


async def test_an_answer_is_not_lost_with_the_worker_that_read_it() -> None:
    """Ours: it leaves the store together with what became of it."""
    store = MemoryTaskStore()
    app = App("tests", tasks=Tasks(store))
    app.add_tool(two, name="work", task="optional", resumable=True)
    task_id = await started(app, "work")
    await until(app, task_id, "input_required")
    await answer(app, task_id, {"first": named("Ada")})
    await app.tasks.stop()
    after = App("tests", tasks=Tasks(store))
    after.add_tool(two, name="work", task="optional", resumable=True)
    assert await look(after, task_id) == asking(second=form("second?"))
    await answer(after, task_id, {"second": named("Ben")})
    assert await ended(after, task_id) == completed(text("Ada Ben"))
    await after.tasks.stop()


async def test_a_task_that_is_cancelled_is_not_run_again() -> None:
    """Ours."""
    store = MemoryTaskStore()
    held = Held()

    def worker() -> App:
        app = App("tests", tasks=Tasks(store))
        app.add_tool(held.work, task="optional", resumable=True)
        return app

    first, second = worker(), worker()
    task_id = await started(first, "work")
    await first.tasks.stop()
    record = await store.get(task_id)
    assert record is not None
    await store.replace(replace(record, cancelling=True), record.revision)
    held.began.clear()
    second.tasks.keep_going()
    assert await ended(second, task_id) == {"status": "cancelled"}
    assert not held.began.is_set()
    await second.tasks.stop()


async def test_a_worker_that_lost_a_task_stops_and_writes_nothing() -> None:
    """Ours: another has it by now."""
    held = Held()
    over = asyncio.Event()

    async def work(ctx: Context) -> str:
        """Wait, and report."""
        try:
            await held.work()
            await ctx.progress(1)
            held.notes.append("went on")
        finally:
            try:
                # What cleans up is not broken off.
                for _ in range(10):
                    await asyncio.sleep(0)
                held.notes.append("stopped")
            finally:
                over.set()
        return "Done."

    app = app_with(work)
    task_id = await started(app, "work")
    await held.began.wait()
    record = await app.tasks.store.get(task_id)
    assert record is not None
    await app.tasks.store.replace(replace(record, worker="other"), record.revision)
    held.go.set()
    await asyncio.wait_for(over.wait(), PATIENCE)
    assert held.notes == ["cleaned up", "stopped"]
    assert await look(app, task_id) == {"status": "working"}


async def test_no_context_variable_of_a_request_is_seen_in_a_task_run_again() -> None:
    """Ours."""
    store = MemoryTaskStore()
    held = Held()

    async def work() -> str:
        """Tell who called."""
        await held.work()
        return CALLER.get()

    def worker() -> App:
        app = App("tests", tasks=Tasks(store))
        app.add_tool(work, task="optional", resumable=True)
        return app

    first, second = worker(), worker()
    CALLER.set("ada")
    task_id = await started(first, "work")
    await first.tasks.stop()
    held.go.set()
    assert await look(second, task_id) == {"status": "working"}
    assert await ended(second, task_id) == completed(text("nobody"))
    await second.tasks.stop()


MISTAKEN: dict[str, tuple[Callable[[], object], str]] = {
    "a store for tasks": (
        lambda: App("mistaken", tasks=MemoryTaskStore()),  # type: ignore[arg-type]
        "tasks is a Tasks, such as Tasks(SQLiteTaskStore('tasks.db')), not ",
    ),
    "no poll": (
        lambda: Tasks(poll=None),  # type: ignore[arg-type]
        "Tasks: poll is more than 0 and finite, not None",
    ),
    "a switch for a ttl": (
        lambda: Tasks(ttl=True),
        "Tasks: ttl is more than 0 and finite, not True",
    ),
    "a ttl without end": (
        lambda: Tasks(ttl=float("inf")),
        "Tasks: ttl is more than 0 and finite, not inf",
    ),
}


@pytest.mark.parametrize("row", MISTAKEN)
def test_what_can_not_be_an_option_of_tasks_is_a_setup_error(row: str) -> None:
    make, message = MISTAKEN[row]
    with pytest.raises(SetupError) as raised:
        make()
    assert str(raised.value).startswith(message)


async def test_what_a_tool_was_given_is_kept_until_its_task_has_ended() -> None:
    """Ours: what is kept of tasks that have ended is what their clients may ask for."""
    app = App("tests")

    @app.tool(task="required")
    async def find(words: str) -> str:
        return f"{len(words)} letters"

    task_id = await started(app, "find", words="w" * 1000)
    begun = await app.tasks.store.get(task_id)
    await ended(app, task_id)
    left = await app.tasks.store.get(task_id)
    assert begun is not None
    assert begun.request["params"]["arguments"] == {"words": "w" * 1000}
    assert left is not None
    assert left.request["params"] == {"name": "find"}


@pytest.mark.parametrize("name", ["returns", "asks"])
async def test_a_task_leaves_nothing_for_the_garbage_collector(name: str) -> None:
    """Ours: it may hold as much as a request may be large."""
    app = App("tests")

    @app.tool(task="required")
    async def returns(ctx: Context) -> str:
        await ctx.progress(1)
        return "done"

    @app.tool(task="required")
    async def asks(ctx: Context) -> str:
        await ctx.list_roots()
        return "done"

    async def one() -> None:
        task_id = await started(app, name)
        if name == "asks":
            await until(app, task_id, "input_required")
            await answer(app, task_id, {"roots": {"roots": []}})
        assert await ended(app, task_id) == completed(text("done"))
        await wait_all_tasks_blocked()

    for _ in range(5):
        await one()
    gc.collect()
    gc.disable()
    try:
        for _ in range(20):
            await one()
        assert gc.collect() < 20
    finally:
        gc.enable()
    await app.tasks.stop()
