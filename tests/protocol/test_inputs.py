"""The capabilities that questions to the client need."""

import doctest
from typing import Any

import pytest

from mcpkit.protocol import inputs as module
from mcpkit.protocol.inputs import INPUT_KINDS, required_capabilities


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


def test_the_examples_hold() -> None:
    result = doctest.testmod(module)
    assert (result.failed, result.attempted > 0) == (0, True)
