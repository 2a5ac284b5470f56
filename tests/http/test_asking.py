"""Questions to legacy clients: requests on the stream of the request that asks."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Annotated, Any

import pytest
from anyio import wait_all_tasks_blocked
from fastapi import BackgroundTasks, Depends

from mcpkit import App, Context, MemoryBackend, Result, pending
from mcpkit.errors import (
    INTERNAL_ERROR,
    MISSING_REQUIRED_CLIENT_CAPABILITY,
    AnswerError,
)
from mcpkit.questions import Elicit, ListRoots, ModelPreferences, Sample
from tests.http.client import (
    JSON_HEADERS,
    Json,
    initialize,
    legacy,
    modern,
    post,
    send as send_http,
)
from tests.http.streaming import PATIENCE, Stream, idle, stream
from tests.http.streams import Client
from tests.rounds import (
    CLIENT,
    EVERY,
    NAME,
    PROMPT,
    TEMPLATE,
    TOOL,
    Name,
    Target,
    app_of,
    ask,
    named,
    three,
)

V_2025_11_25, V_2025_06_18, V_2025_03_26 = "2025-11-25", "2025-06-18", "2025-03-26"

WITH_FORMS = pytest.mark.parametrize("version", [V_2025_11_25, V_2025_06_18])
LEGACY = pytest.mark.parametrize("version", [V_2025_11_25, V_2025_06_18, V_2025_03_26])

NO_CARRIER = {
    "code": INTERNAL_ERROR,
    "message": "MRTR input requests require protocol 2026-07-28",
}


async def session_of(
    app: App,
    version: str = V_2025_11_25,
    capabilities: Mapping[str, Any] = CLIENT,
) -> dict[str, str]:
    """Open a session, and return the headers of its requests."""
    reply = await post(app, initialize(version, capabilities=capabilities))
    token = reply.headers["mcp-session-id"]
    return {**JSON_HEADERS, "mcp-session-id": token, "mcp-protocol-version": version}


@asynccontextmanager
async def asking(
    app: App, session: Mapping[str, str], target: Target = TOOL
) -> AsyncIterator[Stream]:
    """Send the request, and read what comes; nothing is left in the end."""
    message = legacy(target.method, target.params, request_id=7)
    async with stream(app, message, session) as opened:
        yield opened
    await nothing_left(app)


async def nothing_left(app: App) -> None:
    """Check that nothing is left of a request; a thread of it may still end."""
    me = asyncio.current_task()
    ending = {it for it in asyncio.all_tasks() - {me} if "elicit" in repr(it)}
    if ending:
        await asyncio.wait(ending, timeout=PATIENCE)
    await idle(app)
    assert (len(app.questions), len(app.running)) == (0, 0)


async def message_of(opened: Stream) -> Json:
    """Read the next message; an event may be there for its id alone."""
    while (message := await opened.message()) is None:
        pass
    found: Json = message
    return found


async def answer(
    app: App, session: Mapping[str, str], request_id: Any, **response: Any
) -> None:
    """Post a response, which is accepted whatever it is."""
    message = {"jsonrpc": "2.0", "id": request_id, **response}
    reply = await post(app, message, dict(session))
    assert (reply.status_code, reply.content) == (202, b"")


async def go_through(
    app: App, session: Mapping[str, str], opened: Stream, answers: Mapping[str, Json]
) -> tuple[list[Json], Json]:
    """Answer all questions by their messages; return them, and the response."""
    asked = []
    while "method" in (message := await message_of(opened)):
        params = message["params"]
        asked.append(message)
        await answer(app, session, message["id"], result=answers[params["message"]])
    assert message["id"] == 7
    return asked, message


ANSWERS = {"First?": named("a"), "Second, a?": named("b"), "Third, b?": named("c")}


@EVERY
@WITH_FORMS
async def test_the_same_handlers_ask_on_their_stream(
    version: str, target: Target
) -> None:
    """Spec 2025-11-25 and 2025-06-18, client/elicitation and basic/transports."""
    app = app_of(three)
    session = await session_of(app, version)
    async with asking(app, session, target) as opened:
        asked, response = await go_through(app, session, opened, ANSWERS)
    mode = {"mode": "form"} if version == V_2025_11_25 else {}
    assert asked == [
        {
            "jsonrpc": "2.0",
            "id": message["id"],
            "method": "elicitation/create",
            "params": {**mode, "message": text, "requestedSchema": NAME},
        }
        for message, text in zip(asked, ANSWERS, strict=True)
    ]
    assert len({message["id"] for message in asked}) == 3
    assert target.text(response["result"]) == "a b c, round 1"


@WITH_FORMS
async def test_a_handler_in_a_thread_asks_on_its_stream(version: str) -> None:
    """Ours."""
    app = App("tests", secret_key="k" * 32)

    @app.tool(name="ask")
    def handler(about: str, ctx: Context) -> str:
        first = ctx.wait(ctx.elicit("First?", Name)).data.name
        second = ctx.wait(ctx.elicit(f"Second, {first}?", Name)).data.name
        return f"{about} {first} {second}"

    session = await session_of(app, version)
    async with asking(app, session) as opened:
        asked, response = await go_through(app, session, opened, ANSWERS)
    assert len(asked) == 2
    assert TOOL.text(response["result"]) == "tea a b"


PREFERENCES = ModelPreferences(hints=["sonnet"], cost=0.1, speed=0.2, intelligence=0.9)
ADD = {"name": "add", "inputSchema": {"type": "object"}}
SAMPLED = {
    "role": "assistant",
    "content": {"type": "text", "text": "Tea."},
    "model": "parrot",
}


async def test_a_model_is_asked_with_tools_and_preferences() -> None:
    """Spec 2025-11-25, client/sampling."""

    async def handler(ctx: Context) -> str:
        sampled = await ctx.sample(
            "What to drink?",
            max_tokens=9,
            tools=[ADD],
            tool_choice="auto",
            model_preferences=PREFERENCES,
        )
        return f"{sampled.text} {sampled.model}"

    app = app_of(handler)
    session = await session_of(app)
    async with asking(app, session) as opened:
        message = await message_of(opened)
        assert message["method"] == "sampling/createMessage"
        assert message["params"] == {
            "messages": [
                {"role": "user", "content": {"type": "text", "text": "What to drink?"}}
            ],
            "maxTokens": 9,
            "tools": [ADD],
            "toolChoice": {"mode": "auto"},
            "modelPreferences": {
                "hints": [{"name": "sonnet"}],
                "costPriority": 0.1,
                "speedPriority": 0.2,
                "intelligencePriority": 0.9,
            },
        }
        await answer(app, session, message["id"], result=SAMPLED)
        response = await message_of(opened)
    assert TOOL.text(response["result"]) == "Tea. parrot"


@EVERY
@LEGACY
async def test_sampling_and_roots_are_asked_in_every_revision(
    version: str, target: Target
) -> None:
    """Spec 2025-03-26 and later, client/sampling and client/roots."""

    async def handler(ctx: Context) -> str:
        answers = await ctx.ask({"model": Sample("Hi"), "roots": ListRoots()})
        return f"{answers['model'].text} {answers['roots'][0].uri}"

    app = app_of(handler)
    session = await session_of(app, version)
    results = {
        "sampling/createMessage": SAMPLED,
        "roots/list": {"roots": [{"uri": "file:///home/ada"}]},
    }
    async with asking(app, session, target) as opened:
        # Both are there before one of them is answered.
        asked = [await message_of(opened) for _ in range(2)]
        for message in reversed(asked):
            result = results[message["method"]]
            await answer(app, session, message["id"], result=result)
        response = await message_of(opened)
    assert [message["method"] for message in asked] == [*results]
    assert target.text(response["result"]) == "Tea. file:///home/ada"


@EVERY
async def test_a_legacy_handler_learns_that_the_user_declined(target: Target) -> None:
    """Spec 2025-11-25, client/elicitation: Response Actions."""
    app = app_of(lambda ctx: ask(ctx, "First?"))
    session = await session_of(app)
    async with asking(app, session, target) as opened:
        message = await message_of(opened)
        await answer(app, session, message["id"], result={"action": "decline"})
        response = await message_of(opened)
    assert target.text(response["result"]) == "decline"


def failed(text: str) -> Json:
    content = [{"type": "text", "text": text}]
    return {"jsonrpc": "2.0", "id": 7, "result": {"content": content, "isError": True}}


REFUSED: dict[str, tuple[Json, str]] = {
    # id: the response, what the model reads
    "an error": (
        {"error": {"code": -1, "message": "User rejected sampling request"}},
        "The client did not answer: User rejected sampling request",
    ),
    "an error without words": (
        {"error": {"code": -1, "message": 5}},
        "The client did not answer: its response is malformed",
    ),
    "no object": (
        {"result": "yes"},
        "The client did not answer: its response is malformed",
    ),
}


@pytest.mark.parametrize(("response", "text"), REFUSED.values(), ids=REFUSED)
async def test_a_client_that_refuses_fails_the_tool(response: Json, text: str) -> None:
    """Spec 2025-11-25, client/sampling: Error Handling."""
    app = app_of(three)
    session = await session_of(app)
    async with asking(app, session) as opened:
        message = await message_of(opened)
        await answer(app, session, message["id"], **response)
        assert await message_of(opened) == failed(text)


async def builds(ctx: Context) -> Any:  # noqa: ARG001  # a handler takes it
    return Result.input_required({"sure": FORM})


@pytest.mark.parametrize("handler", [three, builds], ids=["asks", "returns"])
@pytest.mark.parametrize("target", [TEMPLATE, PROMPT], ids=["a template", "a prompt"])
async def test_a_client_that_refuses_fails_the_others_too(
    handler: Any, target: Target, caplog: pytest.LogCaptureFixture
) -> None:
    """Ours: as all that goes wrong there, it is told to the log alone."""
    app = app_of(handler)
    session = await session_of(app)
    async with asking(app, session, target) as opened:
        message = await message_of(opened)
        await answer(app, session, message["id"], error={"code": -1, "message": "no"})
        response = await message_of(opened)
    assert response["error"] == {"code": INTERNAL_ERROR, "message": "Internal error"}
    assert "The client did not answer: no" in caplog.text


async def test_a_client_that_left_before_it_was_asked_is_not_waited_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Ours: there is no stream that it could come back for."""
    monkeypatch.setattr(pending, "GRACE", 0.01)
    failures: list[str] = []

    async def handler(ctx: Context) -> str:
        assert ctx.channel is not None
        while ctx.channel.away_since is None:
            await asyncio.sleep(0.001)
        try:
            return await three(ctx)
        except AnswerError as error:
            failures.append(str(error))
            raise

    app = app_of(handler)
    session = await session_of(app)
    client = Client(app)
    message = legacy(TOOL.method, TOOL.params, request_id=7)
    serving = asyncio.create_task(client.ask(message, session))
    client.gone.set()
    await serving
    assert failures == ["The client went away"]
    await nothing_left(app)


async def test_a_handler_can_go_on_without_an_answer() -> None:
    """Ours."""

    async def handler(ctx: Context) -> str:
        try:
            return await ask(ctx, "First?")
        except AnswerError as error:
            return f"without: {error}"

    app = app_of(handler)
    session = await session_of(app)
    async with asking(app, session) as opened:
        message = await message_of(opened)
        refusal = {"code": -1, "message": "no"}
        await answer(app, session, message["id"], error=refusal)
        response = await message_of(opened)
    assert TOOL.text(response["result"]) == "without: The client did not answer: no"


async def test_a_legacy_answer_that_does_not_fit_is_asked_for_twice_more() -> None:
    """MRTR-10."""
    app = app_of(three)
    session = await session_of(app)
    messages = []
    async with asking(app, session) as opened:
        for _ in range(3):
            message = await message_of(opened)
            messages.append(message["params"]["message"])
            result = {"action": "accept", "content": {}}
            await answer(app, session, message["id"], result=result)
        response = await message_of(opened)
    again = "First?\n\nname: missing"
    assert messages == ["First?", again, again]
    assert response == failed("The client's answer does not fit: name: missing")


async def test_an_answer_that_fits_at_last_is_taken() -> None:
    """MRTR-10."""
    app = app_of(lambda ctx: ask(ctx, "First?"))
    session = await session_of(app)
    async with asking(app, session) as opened:
        for result in ({"action": "maybe"}, {"action": "accept"}, named("a")):
            message = await message_of(opened)
            await answer(app, session, message["id"], result=result)
        response = await message_of(opened)
    assert TOOL.text(response["result"]) == "a"


# What ends the wait


async def test_a_question_has_a_time_limit() -> None:
    """Spec 2025-11-25, basic/lifecycle: Timeouts."""
    app = app_of(three, ask_seconds=0.01)
    session = await session_of(app)
    async with asking(app, session) as opened:
        message = await message_of(opened)
        assert await message_of(opened) == {
            "jsonrpc": "2.0",
            "method": "notifications/cancelled",
            "params": {
                "requestId": message["id"],
                "reason": "The answer is not waited for any more",
            },
        }
        assert await message_of(opened) == failed("The client did not answer in time")
        # It comes too late.
        await answer(app, session, message["id"], result=named("a"))


async def test_the_time_limit_of_a_handler_withdraws_its_question() -> None:
    """Spec 2025-11-25, basic/utilities/cancellation."""

    async def handler(ctx: Context) -> str:
        try:
            async with asyncio.timeout(0.01):
                return await ask(ctx, "First?")
        except TimeoutError:
            return "never mind"

    app = app_of(handler)
    session = await session_of(app)
    async with asking(app, session) as opened:
        message = await message_of(opened)
        withdrawn = await message_of(opened)
        response = await message_of(opened)
    assert withdrawn["params"]["requestId"] == message["id"]
    assert TOOL.text(response["result"]) == "never mind"


async def test_one_of_several_that_fails_withdraws_the_others() -> None:
    """Ours."""

    async def handler(ctx: Context) -> str:
        await ctx.ask({"a": Elicit("First?", Name), "b": Elicit("Second?", Name)})
        raise NotImplementedError

    app = app_of(handler)
    session = await session_of(app)
    async with asking(app, session) as opened:
        first, second = [await message_of(opened) for _ in range(2)]
        refusal = {"code": -1, "message": "no"}
        await answer(app, session, first["id"], error=refusal)
        withdrawn = await message_of(opened)
        response = await message_of(opened)
    assert withdrawn["method"] == "notifications/cancelled"
    assert withdrawn["params"]["requestId"] == second["id"]
    assert response == failed("The client did not answer: no")


async def test_a_client_that_comes_back_still_answers() -> None:
    """Spec 2025-11-25, basic/transports: Resumability and Redelivery."""
    app = app_of(three)
    session = await session_of(app)
    message = legacy(TOOL.method, TOOL.params, request_id=7)
    async with stream(app, message, session) as opened:
        while (event := await opened.event()).data is None:
            pass
        assert event.id is not None
        question, seen = event.data, event.id
        # The connection is lost, and the request goes on without it.
        opened._closed.set()  # noqa: SLF001  # `close` waits for the request
        await wait_all_tasks_blocked()
        assert len(app.questions) == 1
        back = {**session, "last-event-id": seen, "accept": "text/event-stream"}
        async with stream(app, None, back) as resumed:
            await answer(app, session, question["id"], result=named("a"))
            asked, response = await go_through(app, session, resumed, ANSWERS)
    assert [it["params"]["message"] for it in asked] == ["Second, a?", "Third, b?"]
    assert TOOL.text(response["result"]) == "a b c, round 1"
    await nothing_left(app)


async def test_a_question_is_sent_again_to_a_client_that_missed_it() -> None:
    """Spec 2025-11-25, basic/transports: Resumability and Redelivery."""
    app = app_of(three)
    session = await session_of(app)
    message = legacy(TOOL.method, TOOL.params, request_id=7)
    async with stream(app, message, session) as opened:
        seen = (await opened.event()).id
        assert seen is not None
        opened._closed.set()  # noqa: SLF001
        await wait_all_tasks_blocked()
        back = {**session, "last-event-id": seen, "accept": "text/event-stream"}
        async with stream(app, None, back) as resumed:
            asked, response = await go_through(app, session, resumed, ANSWERS)
    assert [it["params"]["message"] for it in asked] == [*ANSWERS]
    assert TOOL.text(response["result"]) == "a b c, round 1"
    await nothing_left(app)


async def closing(ctx: Context) -> str:
    """Close the connection of a client that polls, and ask it."""
    await ctx.close_stream()
    return await three(ctx)


async def test_a_client_that_polls_is_asked_when_it_comes_back() -> None:
    """Spec 2025-11-25, basic/transports: Sending Messages to the Server."""
    app = app_of(closing)
    session = await session_of(app)
    message = legacy(TOOL.method, TOOL.params, request_id=7)
    async with stream(app, message, session) as opened:
        seen = (await opened.event()).id
        assert seen is not None
        back = {**session, "last-event-id": seen, "accept": "text/event-stream"}
        async with stream(app, None, back) as resumed:
            asked, response = await go_through(app, session, resumed, ANSWERS)
    assert [it["params"]["message"] for it in asked] == [*ANSWERS]
    assert TOOL.text(response["result"]) == "a b c, round 1"
    await nothing_left(app)


@pytest.mark.parametrize("returns", [False, True], ids=["at once", "when it was back"])
async def test_a_client_that_does_not_come_back_is_not_waited_for(
    returns: bool,  # noqa: FBT001  # a column of the table
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Ours: what it would be answered is kept, and everything else is cleaned up."""
    monkeypatch.setattr(pending, "GRACE", 0.05)
    failures: list[str] = []

    async def handler(ctx: Context) -> str:
        try:
            return await three(ctx)
        except AnswerError as error:
            failures.append(str(error))
            raise

    app = app_of(handler)
    session = await session_of(app)
    message = legacy(TOOL.method, TOOL.params, request_id=7)
    async with stream(app, message, session) as opened:
        while (event := await opened.event()).data is None:
            pass
        seen = str(event.id)
        back = {**session, "last-event-id": seen, "accept": "text/event-stream"}
        opened._closed.set()  # noqa: SLF001
        if returns:
            async with stream(app, None, back):
                await wait_all_tasks_blocked()
                assert len(app.questions) == 1
        await opened.task
    assert failures == ["The client went away"]
    await nothing_left(app)
    async with stream(app, None, back) as resumed:
        rest = await resumed.rest()
    assert rest[-1] == failed("The client went away")
    assert rest[0]["method"] == "notifications/cancelled"


async def test_a_client_that_is_there_is_waited_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Ours: how long it may be away is not how long it may take."""
    monkeypatch.setattr(pending, "GRACE", 0.01)
    app = app_of(three, ask_seconds=0.2)
    session = await session_of(app)
    async with asking(app, session) as opened:
        question = await message_of(opened)
        assert question["params"]["message"] == "First?"
        assert (await message_of(opened))["method"] == "notifications/cancelled"
        assert await message_of(opened) == failed("The client did not answer in time")


async def test_the_end_of_the_session_ends_the_wait() -> None:
    """Spec 2025-11-25, basic/transports: Session Management."""
    failures: list[str] = []

    async def handler(ctx: Context) -> str:
        try:
            return await three(ctx)
        except AnswerError as error:
            failures.append(str(error))
            raise

    app = app_of(handler)
    session = await session_of(app)
    async with asking(app, session) as opened:
        await message_of(opened)
        reply = await send_http(app, "DELETE", session)
        assert reply.status_code == 200
        await opened.task
    assert failures == ["The client has ended its session"]


async def test_the_end_of_a_session_leaves_others_alone() -> None:
    """Ours."""
    app = app_of(lambda ctx: ask(ctx, "First?"))
    session, other = await session_of(app), await session_of(app)
    async with asking(app, session) as opened:
        message = await message_of(opened)
        await send_http(app, "DELETE", other)
        await answer(app, session, message["id"], result=named("a"))
        response = await message_of(opened)
    assert TOOL.text(response["result"]) == "a"


async def test_of_two_answers_at_the_same_time_the_first_is_taken() -> None:
    """Ours."""
    app = app_of(lambda ctx: ask(ctx, "First?"))
    session = await session_of(app)
    async with asking(app, session) as opened:
        message = await message_of(opened)
        await asyncio.gather(
            *(
                answer(app, session, message["id"], result=named(name))
                for name in ("a", "b", "c")
            )
        )
        response = await message_of(opened)
    assert TOOL.text(response["result"]) == "a"


async def test_a_client_that_reads_nothing_is_not_waited_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Ours: neither for its answer, nor to hear that it is too late."""
    monkeypatch.setattr("mcpkit.asking.WITHDRAWING", 0.01)
    gone = asyncio.Event()

    async def handler(ctx: Context) -> str:
        try:
            return await ask(ctx, "First?")
        except AnswerError as error:
            gone.set()
            return str(error)

    app = app_of(handler, ask_seconds=0.01)
    session = await session_of(app)
    async with asking(app, session) as opened:
        opened.reads.clear()
        async with asyncio.timeout(PATIENCE):
            await gone.wait()
        opened.reads.set()
        *_, response = await opened.rest()
    assert TOOL.text(response["result"]) == "The client did not answer in time"


async def test_a_cancelled_request_waits_for_no_answer() -> None:
    """Spec 2025-11-25, basic/utilities/cancellation."""
    stopped: list[str] = []

    async def handler(ctx: Context) -> str:
        try:
            return await three(ctx)
        finally:
            stopped.append(f"{ctx.cancelled}")

    app = app_of(handler)
    session = await session_of(app)
    async with asking(app, session) as opened:
        await message_of(opened)
        cancelled = {
            "jsonrpc": "2.0",
            "method": "notifications/cancelled",
            "params": {"requestId": 7},
        }
        reply = await post(app, cancelled, session)
        assert reply.status_code == 202
        assert await opened.rest() == []
    assert stopped == ["True"]


async def test_a_handler_that_was_cancelled_asks_nothing_more() -> None:
    """Spec 2025-11-25, basic/utilities/cancellation: it stops, and is heard no more."""
    stopped: list[str] = []

    async def handler(ctx: Context) -> str:
        try:
            return await ask(ctx, "First?")
        finally:
            try:
                await ask(ctx, "Are you sure?")
            except asyncio.CancelledError:
                stopped.append("cancelled")

    app = app_of(handler)
    session = await session_of(app)
    async with asking(app, session) as opened:
        await message_of(opened)
        cancelled = {**legacy("notifications/cancelled", {"requestId": 7})}
        del cancelled["id"]
        await post(app, cancelled, session)
        assert await opened.rest() == []
    assert stopped == ["cancelled"]


@pytest.mark.parametrize("era", ["modern", "legacy"])
async def test_nothing_is_asked_once_the_request_is_answered(
    era: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Ours: nobody would hear the question. The host is told, and goes on."""
    app = App("tests", secret_key="k" * 32)
    done: list[str] = []

    async def later(ctx: Context) -> None:
        try:
            await ctx.elicit("First?", Name)
        except RuntimeError as error:
            done.append(str(error))

    @app.tool(name="ask")
    async def handler(about: str, ctx: Context, tasks: BackgroundTasks) -> str:
        tasks.add_task(later, ctx)
        return about

    session = await session_of(app)
    params = TOOL.params
    reply = await (
        post(app, legacy(TOOL.method, params, request_id=7), session)
        if era == "legacy"
        else post(app, modern(TOOL.method, params, capabilities=CLIENT))
    )
    assert TOOL.text(reply.json()["result"]) == "tea"
    assert done == ["the request was answered: its client can't be asked"]
    assert caplog.records == []
    await nothing_left(app)


async def test_a_cancelled_handler_in_a_thread_waits_for_no_answer() -> None:
    """Ours."""
    app = App("tests", secret_key="k" * 32)
    stopped = []

    @app.tool(name="ask")
    def handler(about: str, ctx: Context) -> str:
        try:
            return about + str(ctx.wait(ctx.elicit("First?", Name)))
        finally:
            stopped.append(ctx.cancelled)

    session = await session_of(app)
    async with asking(app, session) as opened:
        await message_of(opened)
        params = {"requestId": 7}
        cancelled = {**legacy("notifications/cancelled", params)}
        del cancelled["id"]
        await post(app, cancelled, session)
        await opened.task
    assert stopped == [True]


async def test_only_the_session_that_was_asked_can_answer() -> None:
    """Ours: whoever else answers is told nothing, and changes nothing."""
    app = app_of(lambda ctx: ask(ctx, "First?"))
    session, other = await session_of(app), await session_of(app)
    async with asking(app, session) as opened:
        message = await message_of(opened)
        await answer(app, other, message["id"], result=named("mallory"))
        await answer(app, session, "q-unknown", result=named("mallory"))
        await answer(app, session, 7, result=named("mallory"))
        await answer(app, JSON_HEADERS, message["id"], result=named("mallory"))
        await wait_all_tasks_blocked()
        assert len(app.questions) == 1
        await answer(app, session, message["id"], result=named("ada"))
        await answer(app, session, message["id"], result=named("mallory"))
        response = await message_of(opened)
        await answer(app, session, message["id"], result=named("mallory"))
    assert TOOL.text(response["result"]) == "ada"


async def test_the_other_workers_are_told_of_answers_alone() -> None:
    """Ours: a response to nothing that was asked is nobody's, however large it is."""
    backend = MemoryBackend()
    heard: list[str] = []
    backend.subscribe(heard.append)
    app = App("shop", backend=backend)
    session = await session_of(app)
    for request_id in (7, "7", "Q-1"):
        await answer(app, session, request_id, result=named("ada"))
    assert heard == []
    await answer(app, session, "q-1", result=named("ada"))
    assert len(heard) == 1


# What can't be asked


async def outcome(
    app: App, session: Mapping[str, str], target: Target = TOOL
) -> tuple[int, Any]:
    """Return the status, and the error of a request that is answered with JSON."""
    message = legacy(target.method, target.params, request_id=7)
    async with stream(app, message, session) as opened:
        body = await opened.body()
        assert opened.headers["content-type"] == "application/json"
    await nothing_left(app)
    return opened.status, body["error"]


@EVERY
@LEGACY
async def test_without_a_session_nothing_can_be_asked(
    version: str, target: Target
) -> None:
    """Ours: there is nobody whose answer it would be."""
    headers = {**JSON_HEADERS, "mcp-protocol-version": version}
    assert await outcome(app_of(three), headers, target) == (200, NO_CARRIER)


@EVERY
async def test_a_client_that_takes_no_stream_cannot_be_asked(target: Target) -> None:
    """Ours."""
    app = app_of(three)
    session = {**await session_of(app), "accept": "application/json"}
    assert await outcome(app, session, target) == (200, NO_CARRIER)


async def test_nothing_can_be_asked_in_a_batch() -> None:
    """Spec 2025-03-26, basic: a batch is answered as a whole."""
    app = app_of(three)
    session = await session_of(app, V_2025_03_26)
    reply = await post(
        app, [legacy(TOOL.method, TOOL.params)], session, version=V_2025_03_26
    )
    [response] = reply.json()
    assert response["error"] == NO_CARRIER
    await nothing_left(app)


@EVERY
@LEGACY
async def test_a_legacy_client_is_not_asked_what_it_did_not_declare(
    version: str, target: Target
) -> None:
    """Spec 2025-11-25, basic/lifecycle: Capability Negotiation."""

    async def handler(ctx: Context) -> str:
        return (await ctx.sample("Hi")).text

    app = app_of(handler)
    session = await session_of(app, version, {"roots": {}})
    status, error = await outcome(app, session, target)
    assert (status, error) == (
        200,
        {
            "code": MISSING_REQUIRED_CLIENT_CAPABILITY,
            "message": "Missing required client capability: sampling",
            "data": {"requiredCapabilities": {"sampling": {}}},
        },
    )


async def visiting(ctx: Context) -> str:
    return (await ctx.elicit("Visit", url="https://example.com/x")).action


async def with_tools(ctx: Context) -> str:
    return (await ctx.sample("1 + 1?", tools=[ADD])).text


UNKNOWN: dict[str, tuple[Any, str, str]] = {
    # id: handler, version, message
    "a page": (visiting, V_2025_06_18, "2025-06-18 has no elicitation with a URL"),
    "a form": (three, V_2025_03_26, "2025-03-26 has no elicitation"),
    "tools": (with_tools, V_2025_06_18, "2025-06-18 has no tools in sampling"),
}


@EVERY
@pytest.mark.parametrize(
    ("handler", "version", "message"), UNKNOWN.values(), ids=UNKNOWN
)
async def test_a_revision_without_a_question_cannot_be_asked_it(
    handler: Any, version: str, message: str, target: Target
) -> None:
    """Ours: -32603, as wherever a legacy client can't be asked."""
    app = app_of(handler)
    error = {"code": INTERNAL_ERROR, "message": message}
    session = await session_of(app, version)
    assert await outcome(app, session, target) == (200, error)


async def test_a_page_is_asked_for_with_an_id() -> None:
    """Spec 2025-11-25, client/elicitation: URL Mode."""
    app = app_of(visiting)
    session = await session_of(app)
    async with asking(app, session) as opened:
        message = await message_of(opened)
        identifier = message["params"].pop("elicitationId")
        assert message["params"] == {
            "mode": "url",
            "message": "Visit",
            "url": "https://example.com/x",
        }
        assert isinstance(identifier, str)
        await answer(app, session, message["id"], result={"action": "accept"})
        response = await message_of(opened)
    assert TOOL.text(response["result"]) == "accept"


# Rounds that the handler drives itself


FORM = {
    "method": "elicitation/create",
    "params": {"message": "Sure?", "requestedSchema": NAME},
}
ROOTS = {"method": "roots/list"}


def driven(log: list[str]) -> App:
    """Make an app whose handlers build the results that ask."""
    app = App("tests", secret_key="k" * 32)

    async def opened() -> AsyncIterator[str]:
        log.append("opens")
        yield "x"
        log.append("closes")

    def place(about: str) -> str:
        log.append(f"places {about}")
        return f"order of {about}"

    async def drive(
        about: str, ctx: Context, it: Annotated[str, Depends(opened)]
    ) -> Any:
        placed = await ctx.once("place", place, about)
        name = await ask(ctx, "First?")
        if ctx.input.state is None:
            return Result.input_required({"sure": FORM, "where": ROOTS}, it)
        responses = ctx.input.responses
        sure = responses["sure"]["content"]["name"]
        uri = responses["where"]["roots"][0]["uri"]
        return f"{placed} {name} {ctx.input.state} {sure} {uri}, round {ctx.round}"

    app.add_tool(drive, name="ask")
    app.add_resource("ask://{about}", drive)
    app.add_prompt(drive, name="ask")
    return app


@EVERY
async def test_a_result_that_asks_is_carried_over_the_stream(target: Target) -> None:
    """Seed: the conduit handler. Each is asked once, and nothing is held meanwhile."""
    log: list[str] = []
    app = driven(log)
    session = await session_of(app)
    async with asking(app, session, target) as opened:
        first = await message_of(opened)
        assert first["params"]["message"] == "First?"
        await answer(app, session, first["id"], result=named("ada"))
        asked = [await message_of(opened) for _ in range(2)]
        assert log == ["opens", "places tea", "closes"]
        results = {
            "elicitation/create": named("b"),
            "roots/list": {"roots": [{"uri": "file:///x"}]},
        }
        for message in asked:
            result = results[message["method"]]
            await answer(app, session, message["id"], result=result)
        response = await message_of(opened)
    assert target.text(response["result"]) == "order of tea ada x b file:///x, round 2"
    assert log == ["opens", "places tea", "closes", "opens", "closes"]


async def test_a_result_that_asks_and_is_refused_fails_the_tool() -> None:
    """Ours."""

    async def handler(ctx: Context) -> Any:  # noqa: ARG001
        return Result.input_required({"sure": FORM})

    app = app_of(handler)
    session = await session_of(app)
    async with asking(app, session) as opened:
        message = await message_of(opened)
        await answer(app, session, message["id"], error={"code": -1, "message": "no"})
        assert await message_of(opened) == failed("The client did not answer: no")


async def test_rounds_over_a_stream_come_to_an_end(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """MRTR-13: ten rounds, as in the modern era."""

    async def handler(ctx: Context) -> Any:  # noqa: ARG001
        return Result.input_required({"sure": FORM})

    app = app_of(handler)
    session = await session_of(app)
    asked = 0
    async with asking(app, session) as opened:
        while "method" in (message := await message_of(opened)):
            asked += 1
            await answer(app, session, message["id"], result=named("a"))
    assert asked == 9
    assert message["error"] == {"code": INTERNAL_ERROR, "message": "Internal error"}
    assert "'ask' can't go on asking" in caplog.text
