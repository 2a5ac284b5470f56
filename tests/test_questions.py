"""The questions of a handler as values: on the wire, and how answers are read."""

import doctest
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, assert_type

import pytest

from mcpkit import Image, Message, SetupError, questions as module
from mcpkit.protocol.versions import REVISIONS
from mcpkit.questions import (
    Answer,
    Elicit,
    ListRoots,
    ModelPreferences,
    Question,
    Root,
    Sample,
    Sampled,
)


@dataclass
class Confirm:
    """Whether it is to be done."""

    ok: bool


FORM = {
    "type": "object",
    "properties": {"ok": {"type": "boolean"}},
    "required": ["ok"],
}
PAGE = "https://example.com/connect?to=calendar"
TOOL = {"name": "add", "inputSchema": {"type": "object"}}
USE = {"type": "tool_use", "id": "1", "name": "add", "input": {"a": 1}}
RESULT = {
    "type": "tool_result",
    "toolUseId": "1",
    "content": [{"type": "text", "text": "2"}],
}
HELLO = {"role": "user", "content": {"type": "text", "text": "Hello"}}

REQUESTS: list[tuple[str, Question[Any], str, dict[str, Any]]] = [
    # id, question, version, params
    (
        "a form",
        Elicit("Sure?", Confirm),
        "2026-07-28",
        {"mode": "form", "message": "Sure?", "requestedSchema": FORM},
    ),
    (
        "a form of a JSON Schema",
        Elicit("Sure?", FORM),
        "2025-11-25",
        {"mode": "form", "message": "Sure?", "requestedSchema": FORM},
    ),
    (
        "a form before there were modes",
        Elicit("Sure?", Confirm),
        "2025-06-18",
        {"message": "Sure?", "requestedSchema": FORM},
    ),
    (
        "a page",
        Elicit("Connect", url=PAGE),
        "2026-07-28",
        {"mode": "url", "message": "Connect", "url": PAGE},
    ),
    (
        "a page with an id",
        Elicit("Connect", url=PAGE),
        "2025-11-25",
        {"mode": "url", "message": "Connect", "url": PAGE, "elicitationId": "id-1"},
    ),
    ("roots", ListRoots(), "2026-07-28", {}),
    (
        "a text",
        Sample("Hello"),
        "2026-07-28",
        {"messages": [HELLO], "maxTokens": 1024},
    ),
    (
        "messages of all kinds",
        Sample(
            [
                "Hello",
                Message("Hi", role="assistant"),
                Message([Image(b"GIF89a"), "What is it?"]),
                Sampled("assistant", [{"type": "text", "text": "A dot"}], "model"),
                {"role": "user", "content": "Why?", "_meta": {"a": 1}},
            ],
            max_tokens=9,
        ),
        "2026-07-28",
        {
            "messages": [
                HELLO,
                {"role": "assistant", "content": {"type": "text", "text": "Hi"}},
                {
                    "role": "user",
                    "content": [
                        {"type": "image", "data": "R0lGODlh", "mimeType": "image/gif"},
                        {"type": "text", "text": "What is it?"},
                    ],
                },
                {"role": "assistant", "content": {"type": "text", "text": "A dot"}},
                {
                    "role": "user",
                    "content": {"type": "text", "text": "Why?"},
                    "_meta": {"a": 1},
                },
            ],
            "maxTokens": 9,
        },
    ),
    (
        "all options",
        Sample(
            "Hello",
            max_tokens=9,
            system_prompt="Be brief.",
            model_preferences=ModelPreferences(
                hints=["sonnet", "claude"], cost=0, speed=0.5, intelligence=1
            ),
            temperature=0.1,
            stop_sequences=["."],
            tools=[TOOL],
            tool_choice="required",
            include_context="none",
            metadata={"seed": 1},
        ),
        "2026-07-28",
        {
            "messages": [HELLO],
            "maxTokens": 9,
            "systemPrompt": "Be brief.",
            "modelPreferences": {
                "hints": [{"name": "sonnet"}, {"name": "claude"}],
                "costPriority": 0,
                "speedPriority": 0.5,
                "intelligencePriority": 1,
            },
            "temperature": 0.1,
            "stopSequences": ["."],
            "tools": [TOOL],
            "toolChoice": {"mode": "required"},
            "includeContext": "none",
            "metadata": {"seed": 1},
        },
    ),
    (
        "names of models",
        Sample("Hello", model_preferences=["sonnet"]),
        "2026-07-28",
        {
            "messages": [HELLO],
            "maxTokens": 1024,
            "modelPreferences": {"hints": [{"name": "sonnet"}]},
        },
    ),
    (
        "preferences in a dict",
        Sample("Hello", model_preferences={"speed": 1}),
        "2026-07-28",
        {
            "messages": [HELLO],
            "maxTokens": 1024,
            "modelPreferences": {"speedPriority": 1},
        },
    ),
    (
        "a tool and its result",
        Sample(
            [
                "Hello",
                {"role": "assistant", "content": [USE]},
                {"role": "user", "content": [RESULT]},
            ],
            tools=[{**TOOL, "outputSchema": {"type": "string"}}],
        ),
        "2025-11-25",
        {
            "messages": [
                HELLO,
                {"role": "assistant", "content": USE},
                {"role": "user", "content": RESULT},
            ],
            "maxTokens": 1024,
            "tools": [
                {
                    **TOOL,
                    "outputSchema": {
                        "type": "object",
                        "properties": {"result": {"type": "string"}},
                        "required": ["result"],
                    },
                }
            ],
        },
    ),
    (
        "several blocks before a message had them",
        Sample(Message(["Hello", "Ada"])),
        "2025-03-26",
        {
            "messages": [
                HELLO,
                {"role": "user", "content": {"type": "text", "text": "Ada"}},
            ],
            "maxTokens": 1024,
        },
    ),
]


@pytest.mark.parametrize(
    ("question", "version", "params"),
    [pytest.param(*row, id=name) for name, *row in REQUESTS],
)
def test_a_question_is_a_request_of_the_revision_that_the_client_speaks(
    question: Question[Any], version: str, params: dict[str, Any]
) -> None:
    """Spec 2026-07-28, client/elicitation, client/sampling and client/roots.

    Also of 2025-11-25, 2025-06-18 and 2025-03-26.
    """
    request = question.request(REVISIONS[version], elicitation_id="id-1")
    assert request == {"method": question.method, "params": params}


def test_the_questions_have_the_methods_of_the_wire() -> None:
    """Spec 2026-07-28, basic/patterns/mrtr: Input Requests."""
    assert [kind.method for kind in (Elicit, Sample, ListRoots)] == [
        "elicitation/create",
        "sampling/createMessage",
        "roots/list",
    ]


UNKNOWN: list[tuple[str, Question[Any], str, str]] = [
    # id, question, version, fault
    ("a form", Elicit("?", Confirm), "2025-03-26", "2025-03-26 has no elicitation"),
    (
        "a page",
        Elicit("?", url=PAGE),
        "2025-06-18",
        "2025-06-18 has no elicitation with a URL",
    ),
    (
        "a page without an id",
        Elicit("?", url=PAGE),
        "2025-11-25",
        "2025-11-25 needs an elicitation_id",
    ),
    (
        "tools",
        Sample("Hello", tools=[TOOL]),
        "2025-06-18",
        "2025-06-18 has no tools in sampling",
    ),
    (
        "a choice of tools",
        Sample("Hello", tool_choice="none"),
        "2025-06-18",
        "2025-06-18 has no tools in sampling",
    ),
    (
        "the result of a tool",
        Sample(
            [
                {"role": "assistant", "content": USE},
                {"role": "user", "content": RESULT},
            ]
        ),
        "2025-03-26",
        "2025-03-26 has no tools in sampling",
    ),
]


@pytest.mark.parametrize(
    ("question", "version", "fault"),
    [pytest.param(*row, id=name) for name, *row in UNKNOWN],
)
def test_what_a_revision_does_not_have_is_not_asked(
    question: Question[Any], version: str, fault: str
) -> None:
    """Spec 2025-11-25 and 2025-06-18, changelog."""
    with pytest.raises(ValueError, match=r"\A2025-") as caught:
        question.request(REVISIONS[version])
    assert str(caught.value) == fault


REQUIRED: list[tuple[str, Question[Any], dict[str, Any]]] = [
    # id, question, capabilities
    ("a form", Elicit("?", Confirm), {"elicitation": {"form": {}}}),
    ("a page", Elicit("?", url=PAGE), {"elicitation": {"url": {}}}),
    ("a message", Sample("Hello"), {"sampling": {}}),
    ("tools", Sample("Hello", tools=[TOOL]), {"sampling": {"tools": {}}}),
    (
        "context",
        Sample("Hello", include_context="thisServer"),
        {"sampling": {"context": {}}},
    ),
    ("roots", ListRoots(), {"roots": {}}),
]


@pytest.mark.parametrize(
    ("question", "capabilities"),
    [pytest.param(*row, id=name) for name, *row in REQUIRED],
)
def test_a_question_knows_what_the_client_must_be_able_to_do(
    question: Question[Any], capabilities: dict[str, Any]
) -> None:
    """Spec 2026-07-28, client/elicitation and client/sampling: Capabilities."""
    assert question.required == capabilities


ANSWERS: list[tuple[str, Question[Any], dict[str, Any], Any]] = [
    # id, question, response, answer
    (
        "a form",
        Elicit("?", Confirm),
        {"action": "accept", "content": {"ok": True}},
        Answer("accept", Confirm(ok=True)),
    ),
    (
        "a form of a JSON Schema",
        Elicit("?", FORM),
        {"action": "accept", "content": {"ok": True}, "_meta": {}},
        Answer("accept", {"ok": True}),
    ),
    (
        "a form with nothing filled in",
        Elicit("?", {**FORM, "required": []}),
        {"action": "accept"},
        Answer("accept", {}),
    ),
    (
        "null for nothing",
        Elicit("?", {**FORM, "required": []}),
        {"action": "accept", "content": None},
        Answer("accept", {}),
    ),
    (
        "declined, whatever came with it",
        Elicit("?", Confirm),
        {"action": "decline", "content": {"ok": True}},
        Answer("decline"),
    ),
    ("cancelled", Elicit("?", Confirm), {"action": "cancel"}, Answer("cancel")),
    (
        "a page, whatever came with it",
        Elicit("?", url=PAGE),
        {"action": "accept", "content": {"ok": True}},
        Answer("accept"),
    ),
    (
        "a message",
        Sample("Hello"),
        {
            "role": "assistant",
            "content": {"type": "text", "text": "Hi"},
            "model": "m",
            "stopReason": "endTurn",
        },
        Sampled("assistant", [{"type": "text", "text": "Hi"}], "m", "endTurn"),
    ),
    (
        "blocks",
        Sample("Hello"),
        {"role": "assistant", "content": [USE, USE], "model": "m"},
        Sampled("assistant", [USE, USE], "m"),
    ),
    (
        "roots",
        ListRoots(),
        {"roots": [{"uri": "file:///a", "name": "A"}, {"uri": "file:///b"}]},
        [Root("file:///a", "A"), Root("file:///b")],
    ),
    ("no roots", ListRoots(), {"roots": []}, []),
]


@pytest.mark.parametrize(
    ("question", "response", "answer"),
    [pytest.param(*row, id=name) for name, *row in ANSWERS],
)
def test_a_response_is_read_as_an_answer(
    question: Question[Any], response: dict[str, Any], answer: Any
) -> None:
    """Spec 2026-07-28, client/elicitation: Response Actions.

    Also client/sampling: Result Fields, and client/roots.
    """
    assert question.read(response) == answer


BAD_ACTION = "action: input should be accept, decline or cancel"
BLOCK = "content: expected a block of text, image, audio, tool_use or tool_result"
SAID: dict[str, Any] = {
    "role": "assistant",
    "content": {"type": "text", "text": "Hi"},
    "model": "m",
}
UNREADABLE: list[tuple[str, Question[Any], dict[str, Any], str]] = [
    # id, question, response, fault
    ("no action", Elicit("?", Confirm), {}, BAD_ACTION),
    ("an unknown action", Elicit("?", url=PAGE), {"action": "hush"}, BAD_ACTION),
    ("an action that is a list", Elicit("?", Confirm), {"action": []}, BAD_ACTION),
    ("no content", Elicit("?", Confirm), {"action": "accept"}, "ok: missing"),
    (
        "content that does not fit",
        Elicit("?", Confirm),
        {"action": "accept", "content": {"ok": "hush"}},
        "ok: expected boolean, got string",
    ),
    (
        "content that is a list",
        Elicit("?", Confirm),
        {"action": "accept", "content": []},
        "content: expected object, got array",
    ),
    (
        "no role",
        Sample("Hello"),
        {**SAID, "role": None},
        "role: input should be user or assistant",
    ),
    (
        "no model",
        Sample("Hello"),
        {**SAID, "model": 1},
        "model: input should be a string",
    ),
    (
        "a reason that is none",
        Sample("Hello"),
        {**SAID, "stopReason": 1},
        "stopReason: input should be a string",
    ),
    ("no message", Sample("Hello"), {**SAID, "content": None}, BLOCK),
    (
        "no blocks",
        Sample("Hello"),
        {**SAID, "content": []},
        "content: input should be a content block, or several",
    ),
    ("a bare text", Sample("Hello"), {**SAID, "content": "hush"}, BLOCK),
    ("another block", Sample("Hello"), {**SAID, "content": {"type": "hush"}}, BLOCK),
    ("an odd block", Sample("Hello"), {**SAID, "content": {"type": []}}, BLOCK),
    (
        "a block without its text",
        Sample("Hello"),
        {**SAID, "content": [{"type": "text"}]},
        "content: a text block needs its text",
    ),
    (
        "a use without its input",
        Sample("Hello"),
        {**SAID, "content": [{**USE, "input": "hush"}]},
        "content: a tool_use block needs its input",
    ),
    ("no roots", ListRoots(), {}, "roots: input should be an array"),
    (
        "a root that is none",
        ListRoots(),
        {"roots": ["hush"]},
        "roots.0: input should be an object",
    ),
    (
        "a root without a URI",
        ListRoots(),
        {"roots": [{"uri": "file:///a"}, {"name": "hush"}]},
        "roots.1.uri: input should be a string",
    ),
    (
        "a name that is none",
        ListRoots(),
        {"roots": [{"uri": "file:///a", "name": 1}]},
        "roots.0.name: input should be a string",
    ),
]


@pytest.mark.parametrize(
    ("question", "response", "fault"),
    [pytest.param(*row, id=name) for name, *row in UNREADABLE],
)
def test_a_response_that_does_not_fit_is_refused_without_its_values(
    question: Question[Any], response: dict[str, Any], fault: str
) -> None:
    """Spec 2026-07-28, basic/patterns/mrtr: Error Handling."""
    with pytest.raises(ValueError, match=":") as caught:
        question.read(response)
    assert str(caught.value) == fault


@pytest.mark.parametrize(
    ("action", "said"),
    [
        ("accept", (True, False, False)),
        ("decline", (False, True, False)),
        ("cancel", (False, False, True)),
    ],
)
def test_an_answer_says_what_the_user_did(
    action: Literal["accept", "decline", "cancel"], said: tuple[bool, bool, bool]
) -> None:
    """Spec 2026-07-28, client/elicitation: Response Actions."""
    answer: Answer[None] = Answer(action)
    assert (answer.accepted, answer.declined, answer.cancelled) == said


@pytest.mark.parametrize(
    ("answer", "shown"),
    [
        (Answer("accept", {"ok": True}), "Answer(action='accept', data={'ok': True})"),
        (Answer[None]("accept"), "Answer(action='accept', data=None)"),
        (Answer[None]("decline"), "Answer(action='decline')"),
        (Answer[None]("cancel"), "Answer(action='cancel')"),
    ],
)
def test_an_answer_is_shown_as_it_is_made(answer: Answer[Any], shown: str) -> None:
    assert repr(answer) == shown
    assert eval(shown) == answer  # noqa: S307  # the point


@pytest.mark.parametrize("action", ["decline", "cancel"])
def test_an_answer_that_was_not_accepted_has_no_data(
    action: Literal["decline", "cancel"],
) -> None:
    """Ours: who forgets to look is told, and does not go on without the user."""
    answer: Answer[Confirm] = Answer(action)
    with pytest.raises(ValueError, match="the user did not accept: there is no data"):
        _ = answer.data


@pytest.mark.parametrize("ok", [True, False])
def test_the_data_of_an_accepted_answer_is_what_was_filled_in(
    ok: bool,  # noqa: FBT001  # a column of the table
) -> None:
    """Ours: the type checker lets it be used as it is."""
    answer: Answer[Confirm] = Answer("accept", Confirm(ok=ok))
    assert (answer.accepted and answer.data.ok) is ok


def test_an_answer_of_a_page_has_none_for_data() -> None:
    """Spec 2026-07-28, client/elicitation: URL Mode."""
    data: list[object] = [Elicit("?", url=PAGE).read({"action": "accept"}).data]
    assert data == [None]


def test_a_sampled_message_gives_its_texts_and_its_uses_of_tools() -> None:
    """Spec 2026-07-28, client/sampling: Sampling with Tools."""
    texts = [{"type": "text", "text": "I "}, {"type": "text", "text": "add."}]
    sampled = Sampled("assistant", [texts[0], USE, texts[1]], "m", "toolUse")
    assert (sampled.text, sampled.tool_uses) == ("I add.", [USE])


def test_a_question_is_generic_in_its_answer() -> None:
    """Ours: mypy tells what data an answer has."""
    accepted = {"action": "accept", "content": {"ok": True}}
    typed = Elicit("?", Confirm).read(accepted)
    assert_type(typed, Answer[Confirm])
    given = Elicit("?", FORM).read(accepted)
    assert_type(given, Answer[dict[str, Any]])
    page = Elicit("?", url=PAGE).read(accepted)
    assert_type(page, Answer[None])
    assert_type(Sample("Hello").read(SAID), Sampled)
    assert_type(ListRoots().read({"roots": []}), list[Root])
    question: Question[Answer[Confirm]] = Elicit[Confirm]("?", Confirm)
    assert question.read(accepted) == typed == Answer[Confirm]("accept", typed.data)


def test_questions_are_equal_when_they_ask_the_same() -> None:
    assert Elicit("?", Confirm) == Elicit("?", Confirm)
    assert Elicit("?", Confirm) != Elicit("!", Confirm)
    assert Sample("Hello") == Sample("Hello")
    assert ListRoots() == ListRoots()


def test_a_sample_does_not_follow_its_arguments() -> None:
    messages: list[Any] = ["Hello"]
    sample = Sample(messages)
    messages.append("More")
    assert sample.request(REVISIONS["2026-07-28"])["params"]["messages"] == [HELLO]


MISTAKES: list[tuple[str, Callable[[], Any], str]] = [
    # id, what is made, fault
    ("neither", lambda: Elicit("?", None, url=None), "either the schema of a form or"),
    ("both", lambda: Elicit("?", Confirm, url=PAGE), "either the schema of a form or"),
    ("no message", lambda: Elicit(None, Confirm), "the message of an Elicit is a str"),  # type: ignore[call-overload]
    ("no form", lambda: Elicit("?", int), "Elicit: int is no form; take a pydantic"),
    ("a relative URL", lambda: Elicit("?", url="/a"), "is an absolute http or https"),
    ("another scheme", lambda: Elicit("?", url="file:///a"), "absolute http or https"),
    ("no host", lambda: Elicit("?", url="https://"), "absolute http or https"),
    ("no URL", lambda: Elicit("?", url="https://[a"), "absolute http or https"),
    ("a space", lambda: Elicit("?", url="https://a b"), "absolute http or https"),
    ("a line", lambda: Elicit("?", url=f"{PAGE}\n"), "absolute http or https"),
    ("bytes", lambda: Elicit("?", url=b"https://a"), "absolute http or https"),  # type: ignore[call-overload]
    ("a password", lambda: Elicit("?", url="https://a:b@c"), "may hold no password"),
]


@pytest.mark.parametrize(
    ("make", "fault"), [pytest.param(*row, id=name) for name, *row in MISTAKES]
)
def test_an_elicit_that_can_not_work_is_a_setup_error(
    make: Callable[[], Any], fault: str
) -> None:
    """Spec 2026-07-28, client/elicitation: URL Mode, Safe URL Handling."""
    with pytest.raises(SetupError) as caught:
        make()
    assert fault in str(caught.value)


UNBALANCED = "each use of a tool has its result in the next message"
MALFORMED: list[tuple[str, Any, dict[str, Any], str]] = [
    # id, messages, options, fault
    ("no messages", [], {}, "messages is empty"),
    ("a number for messages", 1, {}, "messages is a list, not 1"),
    ("a number for a message", ["a", 1], {}, "messages.1: a message is a text, a Mes"),
    ("no content", {"role": "user"}, {}, "messages.0: a message is a text, a Mes"),
    ("a number for content", {"role": "user", "content": 1}, {}, "messages.0: "),
    (
        "another role",
        {"role": "system", "content": "a"},
        {},
        "messages.0.role: input should be user or assistant",
    ),
    (
        "a block that models do not read",
        {"role": "user", "content": {"type": "resource_link"}},
        {},
        "messages.0.content: expected a block of text, image, audio, tool_use",
    ),
    (
        "no blocks",
        {"role": "user", "content": []},
        {},
        "messages.0.content: input should be a content block, or several",
    ),
    (
        "a result among others",
        [
            {"role": "assistant", "content": USE},
            {"role": "user", "content": [RESULT, "a"]},
        ],
        {},
        "messages.1: tool results stand alone, in a user message",
    ),
    (
        "a result of the assistant's",
        [
            {"role": "assistant", "content": USE},
            {"role": "assistant", "content": RESULT},
        ],
        {},
        "messages.1: tool results stand alone, in a user message",
    ),
    (
        "a use of the user's",
        {"role": "user", "content": USE},
        {},
        "messages.0: tools are used in",
    ),
    (
        "a use without a result",
        {"role": "assistant", "content": USE},
        {},
        f"messages: {UNBALANCED}",
    ),
    (
        "a use and no result next",
        [{"role": "assistant", "content": USE}, "a"],
        {},
        f"messages.1: {UNBALANCED}",
    ),
    (
        "one result of two",
        [
            {"role": "assistant", "content": [USE, {**USE, "id": "2"}]},
            {"role": "user", "content": RESULT},
        ],
        {},
        f"messages.1: {UNBALANCED}",
    ),
    (
        "a result without a use",
        {"role": "user", "content": RESULT},
        {},
        f"messages.0: {UNBALANCED}",
    ),
    ("no tokens", "a", {"max_tokens": 0}, "max_tokens is at least 1, not 0"),
    ("true tokens", "a", {"max_tokens": True}, "max_tokens is at least 1, not True"),
    ("as many as there are", "a", {"max_tokens": None}, "max_tokens is at least 1"),
    ("a prompt", "a", {"system_prompt": 1}, "system_prompt is a string, not 1"),
    ("a temperature", "a", {"temperature": float("nan")}, "temperature is a number"),
    (
        "a bare text",
        "a",
        {"stop_sequences": "."},
        "stop_sequences is a list of strings",
    ),
    ("a bare tool", "a", {"tools": TOOL}, "tools is a list of definitions"),
    (
        "a tool without a schema",
        "a",
        {"tools": [{"name": "a"}]},
        "tools is a list of def",
    ),
    ("a choice", "a", {"tool_choice": "any"}, "tool_choice is auto, required or none"),
    (
        "a context",
        "a",
        {"include_context": "all"},
        "include_context is none, thisServer",
    ),
    ("metadata", "a", {"metadata": []}, "metadata is a dict, not []"),
    ("no JSON", "a", {"metadata": {"a": object()}}, "has no JSON form"),
    ("a bare name", "a", {"model_preferences": "sonnet"}, "hints is a list of names"),
    (
        "a priority",
        "a",
        {"model_preferences": {"cost": 2}},
        "cost is a number from 0 to 1",
    ),
    (
        "a true one",
        "a",
        {"model_preferences": {"speed": True}},
        "speed is a number from",
    ),
    (
        "names of the wire",
        "a",
        {"model_preferences": {"costPriority": 1}},
        "model_preferences takes hints, cost, speed and intelligence",
    ),
]


@pytest.mark.parametrize(
    ("messages", "options", "fault"),
    [pytest.param(*row, id=name) for name, *row in MALFORMED],
)
def test_a_malformed_sample_is_refused_when_it_is_made(
    messages: Any, options: dict[str, Any], fault: str
) -> None:
    """Spec 2026-07-28, client/sampling: Message Content Constraints."""
    with pytest.raises(ValueError, match=r".") as caught:
        Sample(messages, **options)
    assert fault in str(caught.value)


def test_the_examples_hold() -> None:
    result = doctest.testmod(module)
    assert (result.failed, result.attempted > 0) == (0, True)
