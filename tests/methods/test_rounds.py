"""Rounds of questions in the modern era: the handler runs again with the answers."""

import asyncio
from dataclasses import dataclass
from typing import Any

import anyio
import pytest

from mcpkit import App, Context, Result
from mcpkit.errors import (
    INVALID_PARAMS,
    MISSING_REQUIRED_CLIENT_CAPABILITY,
    ProtocolError,
)
from mcpkit.protocol.inputs import MAX_QUESTIONS, MAX_ROUNDS
from mcpkit.questions import Elicit, ListRoots, Question, Sample
from tests.calls import reply, text
from tests.rounds import (
    EVERY,
    INTERNAL,
    TEMPLATE,
    Handler,
    Name,
    Target,
    app_of,
    ask,
    form,
    messages_of,
    named,
    requests_of,
    retry,
    send,
    three,
)

DECLINED: dict[str, Any] = {"action": "decline"}
CANCELLED: dict[str, Any] = {"action": "cancel"}
SAMPLED = {
    "role": "assistant",
    "content": {"type": "text", "text": "Tea."},
    "model": "parrot",
}
ROOTS = {"roots": [{"uri": "file:///home/ada"}]}


@EVERY
async def test_three_questions_take_three_rounds(target: Target) -> None:
    """Spec 2026-07-28, basic/patterns/mrtr: Basic Workflow."""
    app = app_of(three)
    first = await send(app, target)
    second = await retry(app, first, {"elicitation": named("a")}, target)
    third = await retry(app, second, {"elicitation-2": named("b")}, target)
    assert [requests_of(asked) for asked in (first, second, third)] == [
        {"elicitation": form("First?")},
        {"elicitation-2": form("Second, a?")},
        {"elicitation-3": form("Third, b?")},
    ]
    states = {asked["requestState"] for asked in (first, second, third)}
    assert len(states) == 3
    done = await retry(app, third, {"elicitation-3": named("c")}, target)
    assert target.text(done) == "a b c, round 4"


async def test_the_answer_to_a_retry_is_not_to_be_kept() -> None:
    """Spec 2026-07-28, server/utilities/caching. Interim results have no hints."""
    app = App("tests", secret_key="k" * 32)

    @app.resource("ask://{about}", ttl_ms=5000)
    async def read(about: str, ctx: Context) -> str:
        return await ask(ctx, about)

    asked = await send(app, TEMPLATE)
    assert asked.keys() == {"resultType", "inputRequests", "requestState"}
    done = await retry(app, asked, {"elicitation": named("a")}, TEMPLATE)
    assert (done["ttlMs"], done["cacheScope"]) == (0, "private")


SIX: dict[str, Question[Any]] = {
    "first": Elicit("First?", Name),
    "page": Elicit("Visit", url="https://example.com/x"),
    "model": Sample("What to drink?", max_tokens=9),
    "roots": ListRoots(),
}


@EVERY
async def test_several_questions_are_asked_in_one_round(target: Target) -> None:
    """Spec 2026-07-28, basic/patterns/mrtr: InputRequests."""

    async def several(ctx: Context) -> str:
        answers = await ctx.ask(SIX)
        return (
            f"{answers['first'].data.name} {answers['page'].action} "
            f"{answers['model'].text} {answers['roots'][0].uri} {list(answers)}"
        )

    app = app_of(several)
    asked = await send(app, target)
    assert requests_of(asked) == {
        "first": form("First?"),
        "page": {
            "method": "elicitation/create",
            "params": {
                "mode": "url",
                "message": "Visit",
                "url": "https://example.com/x",
            },
        },
        "model": {
            "method": "sampling/createMessage",
            "params": {
                "messages": [
                    {
                        "role": "user",
                        "content": {"type": "text", "text": "What to drink?"},
                    }
                ],
                "maxTokens": 9,
            },
        },
        "roots": {"method": "roots/list", "params": {}},
    }
    responses = {
        "roots": ROOTS,
        "model": SAMPLED,
        "page": {"action": "accept"},
        "first": named("a"),
    }
    done = await retry(app, asked, responses, target)
    assert target.text(done) == (
        "a accept Tea. file:///home/ada ['first', 'page', 'model', 'roots']"
    )


async def gathered(ctx: Context) -> str:
    """Ask two things at once."""
    return " ".join(await asyncio.gather(ask(ctx, "First?"), ask(ctx, "Second?")))


async def grouped(ctx: Context) -> str:
    """Do the same in a task group of asyncio."""
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(ask(ctx, m)) for m in ("First?", "Second?")]
    return " ".join(task.result() for task in tasks)


async def nursed(ctx: Context) -> str:
    """Do the same in a task group of anyio."""
    found = {}

    async def put(message: str) -> None:
        found[message] = await ask(ctx, message)

    async with anyio.create_task_group() as group:
        group.start_soon(put, "First?")
        group.start_soon(put, "Second?")
    return f"{found['First?']} {found['Second?']}"


AT_ONCE: dict[str, Handler] = {"gather": gathered, "asyncio": grouped, "anyio": nursed}


@EVERY
@pytest.mark.parametrize("handler", AT_ONCE.values(), ids=AT_ONCE)
async def test_questions_at_the_same_time_are_asked_in_one_round(
    handler: Handler, target: Target
) -> None:
    """Ours: groups of tasks raise groups of errors, which stop the handler too."""
    app = app_of(handler)
    asked = await send(app, target)
    assert messages_of(asked) == {"elicitation": "First?", "elicitation-2": "Second?"}
    responses = {"elicitation": named("a"), "elicitation-2": named("b")}
    assert target.text(await retry(app, asked, responses, target)) == "a b"


async def test_two_threads_of_questions_go_on_side_by_side() -> None:
    """Ours: their order is the same in each round, so that none is asked twice."""

    async def flow(ctx: Context, name: str, count: int) -> str:
        return "".join([await ask(ctx, f"{name}{n}?") for n in range(count)])

    async def handler(ctx: Context) -> str:
        flows = asyncio.gather(flow(ctx, "a", 2), flow(ctx, "b", 3))
        return " ".join(await flows)

    app = app_of(handler)
    asked = await send(app)
    seen = []
    while asked.get("resultType") == "input_required":
        messages = messages_of(asked)
        seen.append([*messages.values()])
        responses = {key: named(it[:2]) for key, it in messages.items()}
        asked = await retry(app, asked, responses)
    assert seen == [["a0?", "b0?"], ["a1?", "b1?"], ["b2?"]]
    assert asked == text("a0a1 b0b1b2")


@EVERY
async def test_what_is_not_answered_is_asked_again(target: Target) -> None:
    """MRTR-10. Spec 2026-07-28, basic/patterns/mrtr: Error Handling."""
    app = app_of(gathered)
    asked = await send(app, target)
    again = await retry(app, asked, {"elicitation-2": named("b")}, target)
    assert messages_of(again) == {"elicitation": "First?"}
    nothing = await retry(app, again, {}, target)
    assert messages_of(nothing) == {"elicitation": "First?"}
    done = await retry(app, nothing, {"elicitation": named("a")}, target)
    assert target.text(done) == "a b"


@EVERY
async def test_answers_that_nobody_asked_for_are_ignored(target: Target) -> None:
    """MRTR-10. Spec 2026-07-28, basic/patterns/mrtr: Error Handling."""
    app = app_of(three)
    asked = await send(app, target)
    responses = {"unknown": named("x"), "elicitation-2": named("x"), "": {}}
    again = await retry(app, asked, responses, target)
    assert messages_of(again) == {"elicitation": "First?"}
    responses["elicitation"] = named("a")
    second = await retry(app, again, responses, target)
    assert messages_of(second) == {"elicitation-2": "Second, a?"}


async def test_an_answer_is_bound_to_its_question() -> None:
    """MRTR-09: the key of another question does not count for this one."""
    app = app_of(three)
    first = await send(app)
    second = await retry(app, first, {"elicitation": named("a")})
    again = await retry(app, second, {"elicitation": named("b")})
    assert messages_of(again) == {"elicitation-2": "Second, a?"}


async def test_an_answer_without_a_state_answers_nothing() -> None:
    """Spec 2026-07-28, basic/patterns/mrtr: the state says what was asked."""
    app = app_of(three)
    asked = await send(app, inputResponses={"elicitation": named("a")})
    assert messages_of(asked) == {"elicitation": "First?"}


MALFORMED: dict[str, Any] = {
    "an array": [],
    "a text": "x",
    "a number": 5,
    "false": False,
    "a number in an object": {"elicitation": 5},
    "null in an object": {"elicitation": None},
    "an array in an object": {"elicitation": [named("a")]},
    "one that nobody asked for": {"elicitation": named("a"), "unknown": "x"},
}


@EVERY
@pytest.mark.parametrize("responses", MALFORMED.values(), ids=MALFORMED)
async def test_malformed_answers_are_refused(responses: Any, target: Target) -> None:
    """MRTR-10."""

    async def handler(ctx: Context) -> str:
        if ctx.round > 1:
            raise NotImplementedError
        return await three(ctx)

    app = app_of(handler)
    asked = await send(app, target)
    assert await retry(app, asked, responses, target) == {
        "code": INVALID_PARAMS,
        "message": "Invalid params: inputResponses must be an object of objects",
    }


MISFITS: dict[str, tuple[dict[str, Any], str]] = {
    # id: the answer, why it does not fit
    "no action": ({}, "action: input should be accept, decline or cancel"),
    "an unknown action": (
        {"action": "maybe", "content": {"name": "a"}},
        "action: input should be accept, decline or cancel",
    ),
    "no content": ({"action": "accept"}, "name: missing"),
    "null for content": ({"action": "accept", "content": None}, "name: missing"),
    "nothing in it": ({"action": "accept", "content": {}}, "name: missing"),
    "another type": (
        {"action": "accept", "content": {"name": 5}},
        "name: expected string",
    ),
}


@EVERY
@pytest.mark.parametrize(("response", "fault"), MISFITS.values(), ids=MISFITS)
async def test_an_answer_that_does_not_fit_is_asked_for_twice_more(
    response: dict[str, Any], fault: str, target: Target
) -> None:
    """MRTR-10."""
    app = app_of(three)
    asked = await send(app, target)
    for _ in range(2):
        asked = await retry(app, asked, {"elicitation": response}, target)
        [(key, message)] = messages_of(asked).items()
        assert key == "elicitation"
        assert message.startswith(f"First?\n\n{fault}"), message
    refused = await retry(app, asked, {"elicitation": response}, target)
    assert refused["code"] == INVALID_PARAMS
    assert refused["message"].startswith(
        f"Invalid params: inputResponses: elicitation: {fault}"
    )
    # The state of the last round is good for an answer that fits.
    second = await retry(app, asked, {"elicitation": named("a")}, target)
    assert messages_of(second) == {"elicitation-2": "Second, a?"}


@EVERY
async def test_an_answer_that_does_not_fit_counts_once(target: Target) -> None:
    """Ours: it is not held against a client that says nothing more."""
    app = app_of(three)
    asked = await send(app, target)
    asked = await retry(
        app, asked, {"elicitation": named("a") | {"content": {}}}, target
    )
    for _ in range(3):
        asked = await retry(app, asked, {}, target)
        assert messages_of(asked) == {"elicitation": "First?"}


async def test_a_malformed_message_of_the_model_is_asked_for_again() -> None:
    """MRTR-10. It has no words of ours to put a reason into."""

    async def handler(ctx: Context) -> str:
        return (await ctx.sample("What to drink?")).text

    app = app_of(handler)
    asked = await send(app)
    again = await retry(app, asked, {"sampling": {"role": "assistant"}})
    assert requests_of(again) == requests_of(asked)
    assert await retry(app, again, {"sampling": SAMPLED}) == text("Tea.")


@EVERY
@pytest.mark.parametrize("response", [DECLINED, CANCELLED], ids=["no", "turned away"])
async def test_a_handler_learns_that_it_got_no_answer(
    response: dict[str, Any], target: Target
) -> None:
    """MRTR-10. Spec 2026-07-28, client/elicitation: Response Actions."""
    app = app_of(lambda ctx: ask(ctx, "First?"))
    asked = await send(app, target)
    done = await retry(app, asked, {"elicitation": response}, target)
    assert target.text(done) == response["action"]


@pytest.mark.parametrize("response", [named("a"), DECLINED], ids=["yes", "no"])
async def test_a_question_that_has_changed_is_asked_again(
    response: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    """MRTR-09: neither a yes nor a no to one question answers another."""
    files = ["1 file", "100 files", "100 files", "100 files"]

    async def handler(ctx: Context) -> str:
        first = await ask(ctx, f"Delete {files.pop(0)}?")
        return f"{first} {await ask(ctx, 'Sure?')}"

    app = app_of(handler)
    asked = await send(app)
    assert caplog.text == ""
    again = await retry(app, asked, {"elicitation": response})
    assert messages_of(again) == {"elicitation-2": "Delete 100 files?"}
    assert [record.message for record in caplog.records] == [
        "the questions of 'ask' are not those of the round before: they are asked again"
    ]
    sure = await retry(app, again, {"elicitation-2": named("b")})
    assert messages_of(sure) == {"elicitation-3": "Sure?"}
    assert await retry(app, sure, {"elicitation-3": named("c")}) == text("b c")
    assert len(caplog.records) == 1


async def test_what_follows_a_changed_question_is_asked_again() -> None:
    """MRTR-09: "Sure?" was said of another question."""
    files = ["1 file"] * 3 + ["100 files"] * 3

    async def handler(ctx: Context) -> str:
        message = f"Delete {files.pop(0)}?"
        return "".join([await ask(ctx, it) for it in (message, "Sure?", "Really?")])

    app = app_of(handler)
    asked = await send(app)
    asked = await retry(app, asked, {"elicitation": named("a")})
    asked = await retry(app, asked, {"elicitation-2": named("b")})
    assert messages_of(asked) == {"elicitation-3": "Really?"}
    asked = await retry(app, asked, {"elicitation-3": named("c")})
    assert messages_of(asked) == {"elicitation-4": "Delete 100 files?"}
    asked = await retry(app, asked, {"elicitation-4": named("d")})
    assert messages_of(asked) == {"elicitation-5": "Sure?"}


@EVERY
async def test_rounds_come_to_an_end(
    target: Target, caplog: pytest.LogCaptureFixture
) -> None:
    """MRTR-13: rounds are bounded."""

    async def handler(ctx: Context) -> str:
        while True:
            await ask(ctx, f"Round {ctx.round}?")

    app = app_of(handler)
    asked = await send(app, target)
    for number in range(2, MAX_ROUNDS):
        [key] = requests_of(asked)
        asked = await retry(app, asked, {key: named("a")}, target)
        assert [*messages_of(asked).values()] == [f"Round {number}?"]
    [key] = requests_of(asked)
    caplog.clear()
    assert await retry(app, asked, {key: named("a")}, target) == INTERNAL
    assert f"can't go on asking\n{'Traceback'}" in caplog.text
    assert "more than 10 rounds of questions" in caplog.text


async def test_a_round_has_at_most_sixteen_questions(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Ours."""

    async def handler(ctx: Context) -> str:
        count = MAX_QUESTIONS + 1
        await ctx.ask({str(n): Elicit(f"{n}?", Name) for n in range(count)})
        raise NotImplementedError

    failed = await send(app_of(handler))
    assert failed == {**text("Tool ask failed"), "isError": True}
    assert "a round has 1 to 16 questions" in caplog.text


async def test_more_questions_at_once_than_a_round_has_take_another() -> None:
    """Ours."""

    async def handler(ctx: Context) -> str:
        asking = (ask(ctx, f"{n}?") for n in range(20))
        return " ".join(await asyncio.gather(*asking))

    app = app_of(handler)
    asked = await send(app)
    assert [*messages_of(asked).values()] == [f"{n}?" for n in range(16)]
    responses = {key: named(it[:-1]) for key, it in messages_of(asked).items()}
    asked = await retry(app, asked, responses)
    assert [*messages_of(asked).values()] == [f"{n}?" for n in range(16, 20)]
    responses = {key: named(it[:-1]) for key, it in messages_of(asked).items()}
    done = await retry(app, asked, responses)
    assert done == text(" ".join(map(str, range(20))))


MISTAKES: dict[str, tuple[Any, str]] = {
    # id: what is asked, what the log says
    "nothing": ({}, "a round has 1 to 16 questions"),
    "a text": ({"a": "Sure?"}, "takes a dict of Elicit, Sample and ListRoots by"),
    "a class": ({"a": ListRoots}, "not <class 'mcpkit.questions.ListRoots'> by 'a'"),
    "a number for a name": ({1: ListRoots()}, "not ListRoots() by 1"),
}


@pytest.mark.parametrize(("questions", "said"), MISTAKES.values(), ids=MISTAKES)
async def test_what_is_asked_has_a_form(
    questions: Any, said: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Ours."""

    async def handler(ctx: Context) -> str:
        await ctx.ask(questions)
        raise NotImplementedError

    failed = await send(app_of(handler))
    assert failed == {**text("Tool ask failed"), "isError": True}
    assert said in caplog.text


# Single use


@EVERY
async def test_a_state_for_single_use_is_accepted_once(target: Target) -> None:
    """MRTR-15: of two that come at the same time, one is refused."""
    app = app_of(three, single_use=True)
    asked = await send(app, target)
    answers = {"elicitation": named("a")}
    both = await asyncio.gather(*(retry(app, asked, answers, target) for _ in range(2)))
    refused = {"code": INVALID_PARAMS, "message": "Invalid or expired requestState"}
    assert both.count(refused) == 1
    [accepted] = [it for it in both if it != refused]
    assert messages_of(accepted) == {"elicitation-2": "Second, a?"}


async def test_a_malformed_retry_does_not_use_up_a_state() -> None:
    """MRTR-15."""
    app = app_of(three, single_use=True)
    asked = await send(app)
    assert (await retry(app, asked, {"elicitation": 5}))["code"] == INVALID_PARAMS
    second = await retry(app, asked, {"elicitation": named("a")})
    assert messages_of(second) == {"elicitation-2": "Second, a?"}


async def test_by_default_a_state_is_good_for_several_retries() -> None:
    """MRTR-15: so it is documented."""
    app = app_of(three)
    asked = await send(app)
    for name in "ab":
        second = await retry(app, asked, {"elicitation": named(name)})
        assert messages_of(second) == {"elicitation-2": f"Second, {name}?"}


# Capabilities


LACKING: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    # id: what the client declares, what it lacks of what is asked
    "nothing declared": (
        {},
        {"elicitation": {"form": {}, "url": {}}, "sampling": {}, "roots": {}},
    ),
    "forms alone": (
        {"elicitation": {}, "sampling": {}, "roots": {}},
        {"elicitation": {"url": {}}},
    ),
    "pages alone": (
        {"elicitation": {"url": {}}},
        {"elicitation": {"form": {}}, "sampling": {}, "roots": {}},
    ),
}


@EVERY
@pytest.mark.parametrize(("client", "lacking"), LACKING.values(), ids=LACKING)
async def test_a_client_is_not_asked_what_it_cannot_answer(
    client: dict[str, Any], lacking: dict[str, Any], target: Target
) -> None:
    """Spec 2026-07-28, basic/patterns/mrtr: Server Requirements; -32021 is 400."""

    async def handler(ctx: Context) -> str:
        await ctx.ask(SIX)
        raise NotImplementedError

    replied = await reply(
        app_of(handler), target.method, client=client, **target.params
    )
    assert replied.status == 400
    assert replied.message["error"] == {
        "code": MISSING_REQUIRED_CLIENT_CAPABILITY,
        "message": f"Missing required client capability: {', '.join(lacking)}",
        "data": {"requiredCapabilities": lacking},
    }


async def test_tools_of_the_model_are_a_capability() -> None:
    """Spec 2026-07-28, client/sampling: Capabilities."""

    async def handler(ctx: Context) -> str:
        tool = {"name": "add", "inputSchema": {"type": "object"}}
        await ctx.sample("1 + 1?", tools=[tool], tool_choice="required")
        raise NotImplementedError

    refused = await send(app_of(handler), client={"sampling": {}})
    assert refused["data"] == {"requiredCapabilities": {"sampling": {"tools": {}}}}


@EVERY
async def test_a_handler_can_do_without_an_answer(target: Target) -> None:
    """Ours: it asks the model where there is no user, and under its own key."""
    codes: list[int] = []

    async def handler(ctx: Context) -> str:
        try:
            return await ask(ctx, "What to drink?")
        except ProtocolError as error:
            codes.append(error.code)
        return (await ctx.sample("What to drink?")).text

    app = app_of(handler)
    model: dict[str, Any] = {"sampling": {}}
    asked = await send(app, target, client=model)
    assert [*requests_of(asked)] == ["sampling"]
    answers = {"sampling": SAMPLED, "elicitation": named("x")}
    done = await retry(app, asked, answers, target, client=model)
    assert target.text(done) == "Tea."
    assert codes == [MISSING_REQUIRED_CLIENT_CAPABILITY] * 2


# Rounds that the handler drives itself


def driven(done: list[str]) -> App:
    """Make an app whose handlers build the results that ask."""
    app = App("tests", secret_key="k" * 32)

    def place(about: str) -> str:
        done.append(about)
        return f"order of {about}"

    async def drive(about: str, ctx: Context) -> Any:
        placed = await ctx.once("place", place, about)
        match ctx.input.state:
            case None:
                return Result.input_required({"sure": form("Sure?")}, "sure")
            case "sure" if ctx.input.responses["sure"]["action"] == "accept":
                name = await ask(ctx, "Your name?")
                return Result.input_required({"more": form("More?")}, name)
            case str() as name:
                again = await ask(ctx, "Your name?")
                more = ctx.input.responses["more"]["content"]["name"]
                return f"{placed} for {name}, {again}, {more}"

    app.add_tool(drive, name="ask")
    app.add_resource("ask://{about}", drive)
    app.add_prompt(drive, name="ask")
    return app


@EVERY
async def test_rounds_of_both_ways_mix(target: Target) -> None:
    """Ours: what the handler was given in its own round, it is given again."""
    done: list[str] = []
    app = driven(done)
    first = await send(app, target)
    assert messages_of(first) == {"sure": "Sure?"}
    second = await retry(app, first, {"sure": named("x")}, target)
    assert messages_of(second) == {"elicitation": "Your name?"}
    third = await retry(app, second, {"elicitation": named("Ada")}, target)
    assert messages_of(third) == {"more": "More?"}
    last = await retry(app, third, {"more": named("milk")}, target)
    assert target.text(last) == "order of tea for Ada, Ada, milk"
    assert done == ["tea"]


@dataclass
class Weather:
    """What the output schema describes."""

    degrees: int


async def test_the_output_schema_is_not_that_of_a_question() -> None:
    """MRTR-12. Spec 2026-07-28, server/tools: Output Schema."""
    app = App("tests", secret_key="k" * 32)

    @app.tool(name="ask")
    async def tool(about: str, ctx: Context) -> Weather:
        if about and ctx.round == 1:
            built: Any = Result.input_required({"a": form("First?")}, "x")
            return built  # type: ignore[no-any-return]
        return Weather(len(await ask(ctx, "Second?")))

    first = await send(app)
    assert messages_of(first) == {"a": "First?"}
    second = await retry(app, first, {"a": named("x")})
    assert messages_of(second) == {"elicitation": "Second?"}
    done = await retry(app, second, {"elicitation": named("abc")})
    assert done["structuredContent"] == {"degrees": 3}


BROKEN: dict[str, Any] = {
    "nothing at all": {},
    "another method": {"a": {"method": "tools/call"}},
    "no request": {"a": "x"},
    "too many": {str(n): form(f"{n}?") for n in range(17)},
}


@EVERY
@pytest.mark.parametrize("requests", BROKEN.values(), ids=BROKEN)
async def test_a_result_that_asks_nothing_that_can_be_asked_is_an_error(
    requests: Any, target: Target, caplog: pytest.LogCaptureFixture
) -> None:
    """MRTR-12. Spec 2026-07-28, basic/patterns/mrtr: Server Requirements."""
    app = App("tests")

    def handler(about: str) -> Any:  # noqa: ARG001  # the template has it
        return Result.input_required(requests)

    app.add_tool(handler, name="ask")
    app.add_resource("ask://{about}", handler)
    app.add_prompt(handler, name="ask")
    failed = await send(app, target)
    assert failed == INTERNAL or failed == {**text("Tool ask failed"), "isError": True}
    assert caplog.text


async def test_a_state_is_enough() -> None:
    """Spec 2026-07-28, basic/patterns/mrtr: the client may retry at once."""

    async def handler(ctx: Context) -> Any:
        if ctx.input.state is None:
            return Result.input_required(request_state="x")
        return f"{ctx.input.state} {ctx.round}"

    app = app_of(handler)
    waits = await send(app)
    assert waits.keys() == {"resultType", "requestState"}
    assert await send(app, requestState=waits["requestState"]) == text("x 2")
