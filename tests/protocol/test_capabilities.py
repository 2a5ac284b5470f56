"""What a server declares, and what a client lacks."""

import doctest
from typing import Any

import pytest

from mcpkit.errors import MISSING_REQUIRED_CLIENT_CAPABILITY, ProtocolError
from mcpkit.protocol import capabilities as module
from mcpkit.protocol.capabilities import (
    check_capabilities,
    missing_capabilities,
    server_capabilities,
)
from mcpkit.protocol.jsonrpc import error_response
from mcpkit.protocol.versions import Era
from tests.wire import check_response

FULL: dict[str, dict[str, Any]] = {
    "tools": {"listChanged": True},
    "resources": {"listChanged": True, "subscribe": True},
    "prompts": {"listChanged": True},
    "completions": {},
    "logging": {},
}

DECLARED: list[tuple[str, set[str], dict[str, Any] | None, dict[str, Any]]] = [
    # id, what is registered, custom capabilities, what is declared
    ("nothing", set(), None, {}),
    *((kind, {kind}, None, {kind: declared}) for kind, declared in FULL.items()),
    ("everything", {*FULL}, None, FULL),
    (
        "custom ones beside it",
        {"tools"},
        {"experimental": {"x": {}}, "extensions": {"com.example/a": {}}},
        {
            "tools": {"listChanged": True},
            "experimental": {"x": {}},
            "extensions": {"com.example/a": {}},
        },
    ),
    (
        "custom ones in place of it",
        {"tools", "prompts"},
        {"tools": {"listChanged": False}},
        {"tools": {"listChanged": False}, "prompts": {"listChanged": True}},
    ),
]


@pytest.mark.parametrize("era", ["modern", "legacy"])
@pytest.mark.parametrize(
    ("registered", "custom", "declared"),
    [pytest.param(*row, id=name) for name, *row in DECLARED],
)
def test_what_is_registered_is_declared(
    registered: set[str],
    custom: dict[str, Any] | None,
    declared: dict[str, Any],
    era: Era,
) -> None:
    """Spec 2026-07-28, server/discover; 2025-11-25, basic/lifecycle: Negotiation.

    Also 2026-07-28, basic/patterns/subscriptions; 2025-11-25, server/resources.
    Seed ConduitMcp.Handler: Capability detection.
    """
    assert server_capabilities(registered, era, custom=custom) == declared


@pytest.mark.parametrize(
    ("era", "others"),
    [("modern", "resources/subscribe"), ("legacy", "subscriptions/listen")],
)
def test_changes_are_declared_to_those_alone_who_can_follow_them(
    era: Era, others: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spec 2026-07-28, basic/patterns/subscriptions; 2025-11-25, server/resources."""
    monkeypatch.setattr(module, "methods", lambda _: {others: "follow"})
    assert server_capabilities(FULL, era) == {kind: {} for kind in FULL}


FORM: dict[str, Any] = {"elicitation": {"form": {}}}
URL: dict[str, Any] = {"elicitation": {"url": {}}}

MISSING: list[tuple[str, dict[str, Any], dict[str, Any], dict[str, Any]]] = [
    # id, what is required, what is declared, what is missing
    ("nothing required", {}, {}, {}),
    ("nothing declared", {"roots": {}}, {}, {"roots": {}}),
    ("declared", {"roots": {}}, {"roots": {}}, {}),
    ("declared in detail", {"roots": {}}, {"roots": {"listChanged": True}}, {}),
    ("another declared", {"roots": {}}, {"sampling": {}}, {"roots": {}}),
    ("declared as null", {"roots": {}}, {"roots": None}, {"roots": {}}),
    ("declared as true", {"roots": {}}, {"roots": True}, {"roots": {}}),
    ("a form, of a client without modes", FORM, {"elicitation": {}}, {}),
    ("a form, of a client that has it", FORM, FORM, {}),
    ("a form, of a client with URLs", FORM, URL, FORM),
    ("a URL, of a client without modes", URL, {"elicitation": {}}, URL),
    ("a URL, of a client with forms", URL, FORM, URL),
    (
        "both, of a client with forms",
        {"elicitation": {"form": {}, "url": {}}},
        {"elicitation": {"form": {}}},
        URL,
    ),
    (
        "details of a capability",
        {"sampling": {"tools": {}, "context": {}}},
        {"sampling": {"tools": {}}},
        {"sampling": {"context": {}}},
    ),
    (
        "an extension",
        {"extensions": {"io.modelcontextprotocol/tasks": {}}},
        {"extensions": {"com.example/a": {}}},
        {"extensions": {"io.modelcontextprotocol/tasks": {}}},
    ),
    (
        "an extension that is declared",
        {"extensions": {"io.modelcontextprotocol/tasks": {}}},
        {"extensions": {"io.modelcontextprotocol/tasks": {}}},
        {},
    ),
    (
        "of several those that are missing",
        {"sampling": {}, **FORM, "roots": {}},
        {"sampling": {}},
        {**FORM, "roots": {}},
    ),
]


@pytest.mark.parametrize(
    ("required", "declared", "missing"),
    [pytest.param(*row, id=name) for name, *row in MISSING],
)
def test_what_a_client_has_not_declared_is_missing(
    required: dict[str, Any], declared: dict[str, Any], missing: dict[str, Any]
) -> None:
    """Spec 2026-07-28, basic/index: `_meta`; client/elicitation: Capabilities."""
    assert missing_capabilities(required, declared) == missing


def test_a_request_whose_client_has_declared_enough_passes() -> None:
    check_capabilities({"sampling": {}, **FORM}, {"sampling": {}, "elicitation": {}})


def test_a_request_whose_client_lacks_something_is_refused_with_all_of_it() -> None:
    """Spec 2026-07-28, basic/index: `_meta`, and schema."""
    with pytest.raises(ProtocolError) as caught:
        check_capabilities(
            {"sampling": {"tools": {}}, **URL, "roots": {}}, {"roots": {}}
        )
    response = error_response(caught.value, request_id=1)
    assert response["error"] == {
        "code": MISSING_REQUIRED_CLIENT_CAPABILITY,
        "message": "Missing required client capability: sampling, elicitation",
        "data": {"requiredCapabilities": {"sampling": {"tools": {}}, **URL}},
    }
    check_response(response, "tools/call", "2026-07-28")


def test_the_examples_hold() -> None:
    result = doctest.testmod(module)
    assert (result.failed, result.attempted > 0) == (0, True)
