"""The capabilities that questions need, and the journal of a call's rounds."""

import doctest
import json
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from mcpkit.protocol import inputs as module
from mcpkit.protocol.inputs import (
    INPUT_KINDS,
    MAX_QUESTIONS,
    MAX_ROUNDS,
    MAX_TRIES,
    Asked,
    Entry,
    Journal,
    required_capabilities,
)


def asked(method: str, **params: Any) -> dict[str, Any]:
    return {"method": method, "params": params}


FORM, SAMPLE = asked("elicitation/create"), asked("sampling/createMessage")

REQUIRED: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    # id, requests, capabilities
    ("nothing asked", {}, {}),
    ("roots", {"a": {"method": "roots/list"}}, {"roots": {}}),
    ("a form by default", {"a": FORM}, {"elicitation": {"form": {}}}),
    (
        "a form",
        {"a": asked("elicitation/create", mode="form")},
        {"elicitation": {"form": {}}},
    ),
    (
        "a URL",
        {"a": asked("elicitation/create", mode="url", url="https://example.com")},
        {"elicitation": {"url": {}}},
    ),
    ("a message", {"a": SAMPLE}, {"sampling": {}}),
    (
        "a message with tools",
        {"a": asked("sampling/createMessage", tools=[])},
        {"sampling": {"tools": {}}},
    ),
    (
        "a message with a choice of tools",
        {"a": asked("sampling/createMessage", toolChoice={"mode": "none"})},
        {"sampling": {"tools": {}}},
    ),
    (
        "a message with context",
        {"a": asked("sampling/createMessage", includeContext="thisServer")},
        {"sampling": {"context": {}}},
    ),
    (
        "a message without context",
        {"a": asked("sampling/createMessage", includeContext="none")},
        {"sampling": {}},
    ),
    (
        "all of a round merged",
        {
            "a": FORM,
            "b": asked("elicitation/create", mode="url"),
            "c": asked("sampling/createMessage", tools=[]),
            "d": asked("sampling/createMessage", includeContext="allServers"),
            "e": SAMPLE,
            "f": {"method": "roots/list", "params": None},
        },
        {
            "elicitation": {"form": {}, "url": {}},
            "sampling": {"tools": {}, "context": {}},
            "roots": {},
        },
    ),
]


@pytest.mark.parametrize(
    ("requests", "capabilities"),
    [pytest.param(*row, id=name) for name, *row in REQUIRED],
)
def test_a_question_needs_capabilities(
    requests: dict[str, Any], capabilities: dict[str, Any]
) -> None:
    """Spec 2026-07-28, basic/patterns/mrtr: Server Requirements.

    Also client/elicitation: Capabilities, and client/sampling: Capabilities.
    """
    assert required_capabilities(requests) == capabilities


REFUSED: list[tuple[str, Any]] = [
    # id, request
    ("a method of the server's", asked("tools/call")),
    ("an unknown method", asked("foo/bar")),
    ("no method", {}),
    ("a method that is a list", {"method": ["roots/list"]}),
    ("a string", "roots/list"),
    ("null", None),
]


@pytest.mark.parametrize(
    "request_", [pytest.param(request, id=name) for name, request in REFUSED]
)
def test_what_is_no_question_is_refused_by_its_key(request_: Any) -> None:
    """Spec 2026-07-28, basic/patterns/mrtr: Input Requests."""
    with pytest.raises(ValueError, match="the input request 'b' needs a method of"):
        required_capabilities({"a": FORM, "b": request_})


def test_there_are_three_kinds_of_question() -> None:
    """Spec 2026-07-28, basic/patterns/mrtr: Input Requests."""
    assert dict(INPUT_KINDS) == {
        "elicitation/create": "elicitation",
        "sampling/createMessage": "sampling",
        "roots/list": "roots",
    }


def test_the_bounds_of_a_call() -> None:
    """Ours: a call has an end, and its state a size."""
    assert (MAX_ROUNDS, MAX_QUESTIONS, MAX_TRIES) == (10, 16, 2)


SURE = asked("elicitation/create", message="Sure?", mode="form")

SAME: list[tuple[str, dict[str, Any]]] = [
    # id, question
    ("in another order", asked("elicitation/create", mode="form", message="Sure?")),
    (
        "with the id of a round",
        asked(**SURE["params"], method=SURE["method"], elicitationId="7"),
    ),
]

OTHER: list[tuple[str, dict[str, Any]]] = [
    # id, question
    ("in other words", asked("elicitation/create", message="Sure??", mode="form")),
    ("in another mode", asked("elicitation/create", message="Sure?", mode="url")),
    ("without a part", asked("elicitation/create", message="Sure?")),
    ("of another kind", asked("sampling/createMessage", message="Sure?", mode="form")),
]


@pytest.mark.parametrize(
    "request_", [pytest.param(request, id=name) for name, request in SAME]
)
def test_the_same_question_has_the_same_digest(request_: dict[str, Any]) -> None:
    """Ours: the order of keys is no part of JSON, and ids are drawn anew."""
    assert Journal.digest(request_) == Journal.digest(SURE)


@pytest.mark.parametrize(
    "request_", [pytest.param(request, id=name) for name, request in OTHER]
)
def test_another_question_has_another_digest(request_: dict[str, Any]) -> None:
    """Ours: it is asked for itself."""
    assert Journal.digest(request_) != Journal.digest(SURE)


def test_a_question_may_have_no_params_or_half_a_surrogate_pair() -> None:
    """Spec 2026-07-28, client/roots: the params are optional."""
    assert Journal.digest({"method": "roots/list"}) == Journal.digest(
        {"method": "roots/list", "params": {}}
    )
    assert len(Journal.digest(asked("elicitation/create", message="\ud800"))) == 16


A, B, C = (Journal.digest(asked("elicitation/create", message=it)) for it in "ABC")
YES, NO = {"action": "accept", "content": {}}, {"action": "decline"}


def sent(journal: Journal) -> Journal:
    """Return the journal of the next round, as the client brings it back."""
    returned = Journal.load(json.loads(json.dumps(journal.dump())))
    assert returned == journal
    returned.advance()
    return returned


def test_answers_survive_later_rounds() -> None:
    """Spec 2026-07-28, basic/patterns/mrtr: Basic Workflow."""
    journal = Journal()
    assert journal.answer_at(0, A) is None
    assert journal.ask(0, A, "first") == "first"
    journal = sent(journal)
    assert journal.pending_for(0, A) == ("first", 0)
    journal.record(0, A, YES)
    assert journal.ask(1, B, "second") == "second"
    journal = sent(journal)
    assert (journal.answer_at(0, A), journal.answer_at(1, B)) == (YES, None)
    journal.record(1, B, NO)
    journal = sent(journal)
    assert (journal.answer_at(0, A), journal.answer_at(1, B)) == (YES, NO)
    assert (journal.round, journal.changed) == (4, False)


def test_of_two_questions_in_a_round_either_may_be_answered_first() -> None:
    """Spec 2026-07-28, basic/patterns/mrtr: Error Handling.

    What is missing is asked again.
    """
    journal = Journal()
    assert [journal.ask(0, A, "a"), journal.ask(1, B, "b")] == ["a", "b"]
    journal = sent(journal)
    journal.record(1, B, NO)
    assert (journal.answer_at(0, A), journal.answer_at(1, B)) == (None, NO)
    assert journal.ask(0, A, "a") == "a"
    journal = sent(journal)
    journal.record(0, A, YES)
    assert (journal.answer_at(0, A), journal.answer_at(1, B)) == (YES, NO)
    assert journal.changed is False


def test_the_same_question_at_two_positions_has_two_answers() -> None:
    """Ours: who declines one question does not decline the other."""
    journal = Journal()
    assert [journal.ask(0, A, "a"), journal.ask(1, A, "a")] == ["a", "a-2"]
    journal = sent(journal)
    assert (journal.pending_for(0, A), journal.pending_for(1, A)) == (
        ("a", 0),
        ("a-2", 0),
    )
    journal.record(0, A, NO)
    assert (journal.answer_at(0, A), journal.answer_at(1, A)) == (NO, None)


def test_a_reworded_question_is_asked_again_and_so_is_what_follows() -> None:
    """Ours: a consent is to what was asked, and after what was said before."""
    journal = Journal()
    for position, it in enumerate((A, B, C)):
        journal.ask(position, it, "key")
    journal = sent(journal)
    for position, it in enumerate((A, B)):
        journal.record(position, it, YES)
    reworded = Journal.digest(SURE)
    assert (journal.answer_at(0, A), journal.answer_at(1, reworded)) == (YES, None)
    assert journal.changed is True
    assert (journal.answer_at(0, A), journal.answer_at(2, C)) == (YES, None)
    assert [
        journal.pending_for(1, B),
        journal.pending_for(1, reworded),
        journal.pending_for(2, C),
    ] == [None, None, None]
    # A late answer to the first wording comes under a key that is not asked for.
    assert journal.ask(1, reworded, "key") == "key-4"
    assert sent(journal).pending_for(1, reworded) == ("key-4", 0)


def test_a_question_that_was_not_answered_may_be_reworded() -> None:
    """Ours: the answer to the first wording is none to the second, or the third."""
    journal = Journal()
    journal.ask(0, A, "key")
    journal = sent(journal)
    assert (journal.answer_at(0, B), journal.ask(0, B, "key")) == (None, "key-2")
    journal = sent(journal)
    assert (journal.answer_at(0, A), journal.ask(0, A, "key")) == (None, "key-3")
    journal = sent(journal)
    journal.record(0, A, YES)
    assert (journal.answer_at(0, A), journal.changed) == (YES, False)


def test_an_answer_that_does_not_fit_is_asked_for_again_twice() -> None:
    """Ours: then the call fails."""
    journal = Journal()
    key = journal.ask(0, A, "key")
    for tries in range(MAX_TRIES):
        journal = sent(journal)
        assert journal.pending_for(0, A) == (key, tries)
        journal.fail(key)
        assert journal.ask(0, A, "key") == key
    with pytest.raises(ValueError, match="no answer to 'key' fits"):
        sent(journal).fail(key)


def test_what_is_kept_outlives_a_changed_question() -> None:
    """Ours: what was done is done, whatever is asked then."""
    journal = Journal()
    journal.keep("order", None)
    journal.ask(0, A, "a")
    journal = sent(journal)
    journal.answer_at(0, B)
    assert (journal.has("order"), journal.has("other")) == (True, False)
    assert (journal.kept, journal.changed) == ({"order": None}, True)


def test_a_call_has_ten_rounds() -> None:
    """Ours: a handler that asks without end is stopped."""
    journal = Journal()
    for _ in range(1, MAX_ROUNDS):
        journal = sent(journal)
    assert journal.round == MAX_ROUNDS
    with pytest.raises(ValueError, match="more than 10 rounds of questions"):
        journal.advance()


FULL = Journal(
    entries={0: Entry(A, YES)},
    asked={"a": Asked(0, A), "b": None, "c": Asked(1, B, 2)},
    kept={"order": {"id": 7}},
    begun={"pay"},
    round=3,
)
DUMPED: dict[str, Any] = {
    "e": [[0, A, YES]],
    "a": {"a": [0, A, 0], "b": None, "c": [1, B, 2]},
    "k": {"order": {"id": 7}},
    "b": ["pay"],
    "r": 3,
}


def test_a_journal_is_dumped_as_json() -> None:
    assert FULL.dump() == DUMPED
    assert Journal.load(DUMPED) == FULL
    assert Journal.load(Journal().dump()) == Journal()


def without(key: str) -> Callable[[Mapping[str, Any]], Any]:
    return lambda dumped: {name: dumped[name] for name in dumped if name != key}


def with_(**members: Any) -> Callable[[Mapping[str, Any]], Any]:
    return lambda dumped: {**dumped, **members}


BREAKS: list[tuple[str, Callable[[Mapping[str, Any]], Any]]] = [
    # id, what is done to a dumped journal
    ("null", lambda _: None),
    ("an array", lambda dumped: [*dumped]),
    ("no entries", without("e")),
    ("no questions", without("a")),
    ("nothing kept", without("k")),
    ("no round", without("r")),
    ("something else", with_(x=1)),
    ("entries by key", with_(e={})),
    ("a short entry", with_(e=[[0, A]])),
    ("a position that is a string", with_(e=[["0", A, YES]])),
    ("a position that is true", with_(e=[[True, A, YES]])),
    ("a position below 0", with_(e=[[-1, A, YES]])),
    ("a digest that is none", with_(e=[[0, "A", YES]])),
    ("a digest with a line", with_(e=[[0, f"{A}\n", YES]])),
    ("a response that is none", with_(e=[[0, A, "accept"]])),
    ("two at a position", with_(e=[[0, A, YES], [0, B, NO]])),
    ("a long question", with_(a={"a": [0, A, 0, 0]})),
    ("tries below 0", with_(a={"a": [0, A, -1]})),
    ("kept in a list", with_(k=[])),
    ("round 0", with_(r=0)),
    ("round 11", with_(r=11)),
    ("a round that is a string", with_(r="1")),
]


@pytest.mark.parametrize(
    "break_", [pytest.param(break_, id=name) for name, break_ in BREAKS]
)
def test_what_is_no_journal_is_not_loaded(
    break_: Callable[[Mapping[str, Any]], Any],
) -> None:
    """Spec 2026-07-28, basic/patterns/mrtr: Basic Workflow.

    What a client brings back is the input of an attacker.
    """
    with pytest.raises(ValueError, match=r"\Athis is no journal\Z"):
        Journal.load(break_(DUMPED))


def test_the_examples_hold() -> None:
    result = doctest.testmod(module)
    assert (result.failed, result.attempted > 0) == (0, True)
