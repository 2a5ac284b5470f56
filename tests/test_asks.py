"""What a function can't do without asking is known before it is called."""

from dataclasses import dataclass
from typing import Any

import pytest

from mcpkit import App, SetupError
from tests.calls import reply


@dataclass
class Confirm:
    """Whether it may be done."""

    ok: bool


@dataclass
class Nested:
    """A form that is none: what it asks for is no plain value."""

    inner: Confirm


NEEDS: dict[str, tuple[list[Any], dict[str, Any]]] = {
    "a form": ([Confirm], {"elicitation": {"form": {}}}),
    "a given form": (
        [{"type": "object", "properties": {"ok": {"type": "boolean"}}}],
        {"elicitation": {"form": {}}},
    ),
    "an elicitation": (["elicitation"], {"elicitation": {"form": {}}}),
    "a page": (["url"], {"elicitation": {"url": {}}}),
    "a form and a page": ([Confirm, "url"], {"elicitation": {"form": {}, "url": {}}}),
    "the model": (["sampling"], {"sampling": {}}),
    "the roots": (["roots"], {"roots": {}}),
    "several": (["sampling", "roots"], {"sampling": {}, "roots": {}}),
    "nothing": ([], {}),
}


@pytest.mark.parametrize("row", NEEDS)
async def test_a_client_that_lacks_what_is_asked_of_it_is_refused_first(
    row: str,
) -> None:
    """Spec 2026-07-28, basic/patterns/mrtr: Server Requirements."""
    asks, needed = NEEDS[row]
    app = App("asking")
    called = []

    @app.tool(asks=asks)
    def tool() -> str:
        called.append("tool")
        return ""

    @app.prompt(asks=asks)
    def prompt() -> str:
        called.append("prompt")
        return ""

    @app.resource("x://{name}", asks=asks)
    def template(name: str) -> str:
        called.append("template")
        return name

    calls: tuple[tuple[str, dict[str, Any]], ...] = (
        ("tools/call", {"name": "tool"}),
        ("prompts/get", {"name": "prompt"}),
        ("resources/read", {"uri": "x://a"}),
    )
    answers = [await reply(app, method, **params) for method, params in calls]
    if not needed:
        assert called == ["tool", "prompt", "template"]
        return
    assert called == []
    assert [
        (
            answer.status,
            answer.message["error"]["code"],
            answer.message["error"]["data"],
        )
        for answer in answers
    ] == [(400, -32021, {"requiredCapabilities": needed})] * 3


MISTAKES: dict[str, tuple[Any, str]] = {
    "no form": (
        [Nested],
        "tool 'f': no form can ask for 'inner' of Nested; a form takes str, int, "
        "float, bool, dates, a Literal or an Enum of strings, and lists of the last "
        "two",
    ),
    "no question": (
        ["consent"],
        "tool 'f': asks has types of forms and any of elicitation, url, sampling, "
        "roots, not 'consent'",
    ),
    "no list": ("sampling", "the asks of a tool is a list, not 'sampling'"),
}


@pytest.mark.parametrize("row", MISTAKES)
def test_a_question_that_can_not_be_asked_is_a_setup_error(row: str) -> None:
    asks, message = MISTAKES[row]

    def f() -> None: ...

    with pytest.raises(SetupError) as raised:
        App("asking").tool(asks=asks)(f)
    assert str(raised.value) == message
