"""What tasks ask clients of 2025-11-25, on the stream of who waits for the result.

Spec 2025-11-25, basic/utilities/tasks: Input Required Status.
"""

import asyncio
import json
import logging
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

import pytest
from anyio import wait_all_tasks_blocked

from mcpkit import AnswerError, App, Context, Result
from mcpkit.errors import MISSING_REQUIRED_CLIENT_CAPABILITY
from mcpkit.extensions.task_wire import IDENTIFIER
from mcpkit.questions import Elicit, ListRoots
from mcpkit.stores.base import TaskRecord
from tests.calls import call, failed, text
from tests.extensions.legacy import RELATED, Peer, Waiting, connect, stranger
from tests.http.client import legacy
from tests.http.streaming import PATIENCE, idle
from tests.http.streams import Client
from tests.rounds import CLIENT, KEY, Handler, Name, ask, form, named, three

pytestmark = pytest.mark.anyio

GONE: Final = "The answer is not waited for any more"


def app_of(handler: Handler, **options: Any) -> App:
    """Make an app with a tool that asks as a task."""
    app = App("tests", **{"secret_key": KEY, **options})

    @app.tool(task="optional")
    async def talk(ctx: Context) -> str:
        return await handler(ctx)

    return app


def user(scope: Mapping[str, Any]) -> str | None:
    """Say who calls."""
    found = dict(scope["headers"]).get(b"x-user")
    return None if found is None else str(found.decode())


def related(task_id: str) -> dict[str, Any]:
    """Return the metadata that says which task a message is about."""
    return {RELATED: {"taskId": task_id}}


def told(task_id: str, *texts: str) -> dict[str, Any]:
    """Return the result of a task that comes to texts."""
    return {**text(*texts), "_meta": related(task_id)}


async def question(waiting: Waiting, task_id: str) -> tuple[Any, dict[str, Any]]:
    """Read a question about a task, and return its id and the request without."""
    message = await waiting.message()
    assert message.keys() == {"jsonrpc", "id", "method", "params"}, message
    params = dict(message["params"])
    assert params.pop("_meta") == related(task_id)
    return message["id"], {"method": message["method"], "params": params}


def withdrawn(task_id: str, request_id: Any) -> dict[str, Any]:
    """Return the notification that a question about a task is asked no more."""
    return {
        "jsonrpc": "2.0",
        "method": "notifications/cancelled",
        "params": {
            "_meta": related(task_id),
            "requestId": request_id,
            "reason": GONE,
        },
    }


async def asked(peer: Peer, task_id: str) -> tuple[Client, "asyncio.Task[Client]"]:
    """Ask for the result of a task, until the client is asked, as one who may go."""
    client = Client(peer.app)
    message = legacy("tasks/result", {"taskId": task_id}, request_id="goes")
    waiting = asyncio.create_task(client.ask(message, peer.headers))
    await client.until(lambda it: b"elicitation/create" in it.body)
    return client, waiting


def id_of(client: Client) -> Any:
    """Return the id of the question that a client was asked."""
    [data] = re.findall(rb"^data: (.+)$", client.body, re.MULTILINE)
    return json.loads(data)["id"]


async def nothing_left(app: App) -> None:
    """Wait until nothing is left of what was asked."""
    async with asyncio.timeout(PATIENCE):
        while len(app.questions) or len(app.running):
            await asyncio.sleep(0)


async def visit(ctx: Context) -> str:
    """Send the user to a page."""
    return (await ctx.elicit("Pay", url="https://example.com/pay")).action


async def think(ctx: Context) -> str:
    """Ask the model."""
    return (await ctx.sample("Hello?", max_tokens=9)).text


async def look_around(ctx: Context) -> str:
    """Ask for directories."""
    return " ".join(root.uri for root in await ctx.list_roots())


async def greet(ctx: Context) -> str:
    """Ask the user."""
    return f"Hello, {await ask(ctx, 'Who?')}"


WHO: Final = form("Who?")
MODEL: Final = {
    "role": "assistant",
    "content": {"type": "text", "text": "Hi"},
    "model": "m",
}


@pytest.mark.parametrize(
    ("handler", "request_", "answer", "result"),
    [
        pytest.param(greet, WHO, named("Ada"), "Hello, Ada", id="form"),
        pytest.param(greet, WHO, {"action": "decline"}, "Hello, decline", id="no"),
        pytest.param(
            look_around,
            {"method": "roots/list", "params": {}},
            {"roots": [{"uri": "file:///a"}]},
            "file:///a",
            id="roots",
        ),
        pytest.param(
            think,
            {
                "method": "sampling/createMessage",
                "params": {
                    "messages": [
                        {"role": "user", "content": {"type": "text", "text": "Hello?"}}
                    ],
                    "maxTokens": 9,
                },
            },
            MODEL,
            "Hi",
            id="model",
        ),
        pytest.param(
            visit,
            {
                "method": "elicitation/create",
                "params": {
                    "mode": "url",
                    "message": "Pay",
                    "url": "https://example.com/pay",
                },
            },
            {"action": "accept"},
            "accept",
            id="url",
        ),
    ],
)
async def test_a_task_asks_who_waits_for_its_result(
    handler: Handler, request_: Any, answer: Any, result: str
) -> None:
    """Spec: Task-Augmented Tool Call With Elicitation; Related Task Metadata."""
    app = app_of(handler)
    peer = await connect(app)
    task_id = await peer.begin("talk")
    await peer.until(task_id, "input_required")
    async with peer.waiting(task_id) as waiting:
        request_id, asked = await question(waiting, task_id)
        if asked["params"].get("mode") == "url":
            assert len(asked["params"].pop("elicitationId")) >= 16
        assert asked == request_
        meta = related(task_id)
        await peer.answer(request_id, result={**answer, "_meta": meta})
        assert await waiting.end() == told(task_id, result)
        assert await waiting.stream.rest() == []
    assert await peer.result(task_id) == told(task_id, result)
    await nothing_left(app)
    await idle(app)


async def test_a_task_asks_one_thing_after_another() -> None:
    app = app_of(three)
    peer = await connect(app)
    task_id = await peer.begin("talk")
    # It is there before there is a question.
    async with peer.waiting(task_id) as waiting:
        for message, name in (("First?", "a"), ("Second, a?", "b"), ("Third, b?", "c")):
            request_id, asked = await question(waiting, task_id)
            assert asked == form(message)
            assert (await peer.state(task_id))["status"] == "input_required"
            await peer.answer(request_id, result=named(name))
        assert await waiting.end() == told(task_id, "a b c, round 1")
    await nothing_left(app)


async def test_a_client_may_leave_once_it_has_answered() -> None:
    """Spec: Task-Augmented Tool Call With Elicitation."""
    go = asyncio.Event()

    async def slow(ctx: Context) -> str:
        name = await ask(ctx, "Who?")
        await go.wait()
        return name

    app = app_of(slow)
    peer = await connect(app)
    task_id = await peer.begin("talk")
    client, waiting = await asked(peer, task_id)
    await peer.answer(id_of(client), result=named("Ada"))
    client.gone.set()
    assert (await peer.until(task_id, "working"))["status"] == "working"
    go.set()
    await waiting
    assert (await peer.until(task_id, "completed"))["status"] == "completed"
    assert await peer.result(task_id) == told(task_id, "Ada")
    await nothing_left(app)


async def both(ctx: Context) -> str:
    """Ask for two things at once."""
    answers = await ctx.ask({"who": Elicit("Who?", Name), "where": ListRoots()})
    return f"{answers['who'].data.name} {len(answers['where'])}"


async def test_a_task_asks_several_things_at_once() -> None:
    app = app_of(both)
    peer = await connect(app)
    task_id = await peer.begin("talk")
    async with peer.waiting(task_id) as waiting:
        asked = dict([await question(waiting, task_id) for _ in range(2)])
        ids = {request["method"]: request_id for request_id, request in asked.items()}
        assert asked[ids["elicitation/create"]] == WHO
        await peer.answer(ids["roots/list"], result={"roots": []})
        async with asyncio.timeout(PATIENCE):
            while len(app.questions) == 2:
                await asyncio.sleep(0)
        assert (await peer.state(task_id))["status"] == "input_required"
        await peer.answer(ids["elicitation/create"], result=named("Ada"))
        assert await waiting.end() == told(task_id, "Ada 0")
    await nothing_left(app)


async def test_a_tool_that_builds_its_questions_asks_them_as_a_task() -> None:
    app = App("tests")

    @app.tool(task="optional")
    async def build(ctx: Context) -> Result[str]:
        if not ctx.input.responses:
            return Result.input_required({"who": WHO}, "kept")
        name = ctx.input.responses["who"]["content"]["name"]
        return Result.text(f"{name} {ctx.input.state}")

    peer = await connect(app)
    task_id = await peer.begin("build")
    async with peer.waiting(task_id) as waiting:
        request_id, asked = await question(waiting, task_id)
        assert asked == WHO
        await peer.answer(request_id, result=named("Ada"))
        assert await waiting.end() == told(task_id, "Ada kept")


async def test_the_first_answer_counts_where_two_wait() -> None:
    app = app_of(greet)
    peer = await connect(app)
    task_id = await peer.begin("talk")
    async with peer.waiting(task_id) as one, peer.waiting(task_id) as two:
        first, asked = await question(one, task_id)
        second, again = await question(two, task_id)
        assert asked == again == WHO
        await peer.answer(second, result=named("Ada"))
        assert await two.end() == told(task_id, "Hello, Ada")
        assert await one.message() == withdrawn(task_id, first)
        # It comes too late, and is accepted as all answers are.
        await peer.answer(first, result=named("Bob"))
        assert await one.end() == told(task_id, "Hello, Ada")
    await nothing_left(app)


async def test_two_answers_at_once_are_one() -> None:
    app = app_of(three)
    peer = await connect(app)
    task_id = await peer.begin("talk")
    async with peer.waiting(task_id) as one, peer.waiting(task_id) as two:
        ids = [(await question(it, task_id))[0] for it in (one, two)]
        await asyncio.gather(*(peer.answer(it, result=named(it)) for it in ids))
        message = await one.message()
        while message["method"] == "notifications/cancelled":
            message = await one.message()
        # The second question is asked, and not what the second answer would be to.
        assert message["params"]["message"] in [f"Second, {it}?" for it in ids]
        await peer.send("tasks/cancel", taskId=task_id)
    await nothing_left(app)


async def test_an_answer_that_does_not_fit_is_asked_for_again() -> None:
    app = app_of(greet)
    peer = await connect(app)
    task_id = await peer.begin("talk")
    async with peer.waiting(task_id) as waiting:
        request_id, _ = await question(waiting, task_id)
        await peer.answer(request_id, result={"action": "accept", "content": {}})
        request_id, asked = await question(waiting, task_id)
        message = asked["params"]["message"]
        assert message.startswith("Who?\n\n")
        assert asked == form(message)
        await peer.answer(request_id, result=named("Ada"))
        assert await waiting.end() == told(task_id, "Hello, Ada")


REFUSED: Final = {"code": -1, "message": "User rejected sampling request"}


@pytest.mark.parametrize(
    ("response", "reason"),
    [
        ({"error": REFUSED}, "User rejected sampling request"),
        ({"error": {}}, "its response is malformed"),
        ({"result": 5}, "its response is malformed"),
    ],
)
@pytest.mark.parametrize("handler", [greet, both], ids=["one", "several"])
async def test_a_tool_is_told_that_its_client_answers_with_an_error(
    handler: Handler, response: Any, reason: str
) -> None:
    """Spec 2025-11-25, client/sampling: Error Handling."""
    app = app_of(handler)
    peer = await connect(app)
    task_id = await peer.begin("talk")
    async with peer.waiting(task_id) as waiting:
        for _ in range(2 if handler is both else 1):
            request_id, _ = await question(waiting, task_id)
            await peer.answer(request_id, **response)
        fault = f"The client did not answer: {reason}"
        end = await waiting.end()
        assert end == {**failed(fault), "_meta": related(task_id)}
    state = await peer.state(task_id)
    assert (state["status"], state["statusMessage"]) == ("failed", fault)
    await nothing_left(app)


async def test_a_tool_may_go_on_when_its_client_does_not_answer() -> None:
    async def insists(ctx: Context) -> str:
        try:
            return await ask(ctx, "Who?")
        except AnswerError:
            return await ask(ctx, "Who?")

    app = app_of(insists)
    peer = await connect(app)
    task_id = await peer.begin("talk")
    async with peer.waiting(task_id) as waiting:
        request_id, _ = await question(waiting, task_id)
        await peer.answer(request_id, error=REFUSED)
        request_id, asked = await question(waiting, task_id)
        assert asked == WHO
        await peer.answer(request_id, result=named("Ada"))
        assert await waiting.end() == told(task_id, "Ada")


LACKS: Final = {
    "code": MISSING_REQUIRED_CLIENT_CAPABILITY,
    "message": "Missing required client capability: elicitation",
    "data": {"requiredCapabilities": {"elicitation": {"form": {}}}},
}


async def test_a_task_fails_that_asks_what_its_client_can_not_answer() -> None:
    app = app_of(greet)
    for peer in (await connect(app, client={}), stranger(app)):
        task_id = await peer.begin("talk")
        assert await peer.result(task_id) == LACKS
        state = await peer.state(task_id)
        assert (state["status"], state["statusMessage"]) == ("failed", LACKS["message"])


async def test_who_can_not_answer_is_not_asked(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.WARNING)
    app = app_of(greet, principal=user)
    able, unable = await connect(app, by="a"), await connect(app, by="a", client={})
    mute = Peer(app, {**able.headers, "accept": "application/json"}, {})
    task_id = await able.begin("talk")
    await able.until(task_id, "input_required")
    others = [asyncio.create_task(it.result(task_id)) for it in (unable, mute)]
    async with asyncio.timeout(PATIENCE):
        while len(app.running) < 2:
            await asyncio.sleep(0)
    async with able.waiting(task_id) as waiting:
        request_id, _ = await question(waiting, task_id)
        assert len(app.questions) == 1
        await able.answer(request_id, result=named("Ada"))
        assert await waiting.end() == told(task_id, "Hello, Ada")
    assert await asyncio.gather(*others) == [told(task_id, "Hello, Ada")] * 2
    await nothing_left(app)
    assert caplog.records == []


async def test_a_client_that_went_away_is_asked_again_when_it_waits_again() -> None:
    """Spec: Retrieving Task Results."""
    app = app_of(greet)
    peer = await connect(app)
    task_id = await peer.begin("talk")
    client, left = await asked(peer, task_id)
    client.gone.set()
    async with peer.waiting(task_id) as waiting:
        request_id, again = await question(waiting, task_id)
        assert (request_id == id_of(client), again) == (False, WHO)
        await peer.answer(request_id, result=named("Ada"))
        assert await waiting.end() == told(task_id, "Hello, Ada")
    await left
    await nothing_left(app)


async def test_who_went_away_may_answer_what_it_was_asked() -> None:
    app = app_of(greet)
    peer = await connect(app)
    task_id = await peer.begin("talk")
    client, left = await asked(peer, task_id)
    client.gone.set()
    await wait_all_tasks_blocked()
    await peer.answer(id_of(client), result=named("Ada"))
    await left
    assert await peer.result(task_id) == told(task_id, "Hello, Ada")
    await nothing_left(app)


async def test_a_question_that_is_not_answered_in_time_is_asked_who_waits_next() -> (
    None
):
    app = app_of(greet, ask_seconds=0.05)
    peer = await connect(app)
    task_id = await peer.begin("talk")
    async with peer.waiting(task_id) as waiting:
        request_id, _ = await question(waiting, task_id)
        assert await waiting.message() == withdrawn(task_id, request_id)
        assert (await peer.state(task_id))["status"] == "input_required"
        app.options = replace(app.options, ask_seconds=PATIENCE)
        async with peer.waiting(task_id) as next_:
            request_id, _ = await question(next_, task_id)
            await peer.answer(request_id, result=named("Ada"))
            for it in (waiting, next_):
                assert await it.end() == told(task_id, "Hello, Ada")


async def test_a_question_of_a_cancelled_task_is_withdrawn() -> None:
    """Spec: Task Cancellation."""
    app = app_of(greet)
    peer = await connect(app)
    task_id = await peer.begin("talk")
    async with peer.waiting(task_id) as waiting:
        request_id, _ = await question(waiting, task_id)
        await peer.send("tasks/cancel", taskId=task_id)
        assert await waiting.message() == withdrawn(task_id, request_id)
        end = {"code": -32600, "message": "The task was cancelled"}
        assert await waiting.end() == end
        await peer.answer(request_id, result=named("Ada"))
    assert (await peer.state(task_id))["status"] == "cancelled"
    await nothing_left(app)


@pytest.mark.parametrize(
    ("handler", "answer", "result"),
    [(greet, named("Ada"), "Hello, Ada"), (visit, {"action": "accept"}, "accept")],
)
async def test_a_task_of_the_other_era_asks_its_principal_too(
    handler: Handler, answer: Any, result: str
) -> None:
    app = app_of(handler, principal=user)
    peer = await connect(app, by="ada")
    client = {**CLIENT, "extensions": {IDENTIFIER: {}}}
    made = await call(app, "tools/call", by="ada", client=client, name="talk")
    task_id = made["taskId"]
    async with peer.waiting(task_id) as waiting:
        request_id, asked = await question(waiting, task_id)
        is_page = asked["params"]["mode"] == "url"
        assert ("elicitationId" in asked["params"]) is is_page
        await peer.answer(request_id, result=answer)
        assert await waiting.end() == told(task_id, result)


async def test_an_answer_that_can_not_be_kept_is_asked_for_of_who_waits_next(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    app = app_of(greet)
    peer = await connect(app)
    task_id = await peer.begin("talk")
    store = app.tasks.store
    replace_record = store.replace
    is_full = asyncio.Event()

    async def full(record: TaskRecord, revision: int) -> bool:
        if record.answered:
            is_full.set()
            raise OSError("the disk is full")
        return await replace_record(record, revision)

    async with peer.waiting(task_id) as waiting:
        request_id, _ = await question(waiting, task_id)
        with monkeypatch.context() as patch:
            patch.setattr(store, "replace", full)
            await peer.answer(request_id, result=named("Ada"))
            await is_full.wait()
        assert (await peer.state(task_id))["status"] == "input_required"
        async with peer.waiting(task_id) as next_:
            request_id, asked = await question(next_, task_id)
            assert asked == WHO
            await peer.answer(request_id, result=named("Ada"))
            for it in (waiting, next_):
                assert await it.end() == told(task_id, "Hello, Ada")
    [record] = caplog.records
    assert record.getMessage() == "tasks/result: an answer to a task can't be kept"
