"""What several methods share: scopes, and rounds of questions to the client.

Spec 2026-07-28, basic/patterns/mrtr, and basic/authorization: Scope Challenge.
"""

import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from mcpkit import App, Context, Result
from mcpkit.errors import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    INVALID_REQUEST,
    MISSING_REQUIRED_CLIENT_CAPABILITY,
)
from tests.calls import LEGACY, V_2025_11_25, call, reply, text
from tests.wire import MODERN

KEY = "k" * 32


@dataclass
class User:
    """Who calls."""

    id: str
    scopes: list[str] = field(default_factory=list)


REFUSED = {"code": INVALID_PARAMS, "message": "Invalid or expired requestState"}

FORM: dict[str, Any] = {
    "method": "elicitation/create",
    "params": {
        "message": "Sure?",
        "requestedSchema": {"type": "object", "properties": {}},
    },
}
URL: dict[str, Any] = {
    "method": "elicitation/create",
    "params": {
        "mode": "url",
        "message": "Sign in",
        "url": "https://example.com",
        "elicitationId": "1",
    },
}
SAMPLING: dict[str, Any] = {
    "method": "sampling/createMessage",
    "params": {"messages": [], "maxTokens": 5},
}
TOOLS: dict[str, Any] = {
    "method": "sampling/createMessage",
    "params": {"messages": [], "maxTokens": 5, "tools": []},
}
ROOTS: dict[str, Any] = {"method": "roots/list"}

ANSWER = {"action": "accept", "content": {}}


def asking(
    requests: Mapping[str, Any] | None = None,
    state: str | None = "secret",
    *,
    name: str = "tests",
    key: str = KEY,
) -> App:
    """Make an app that asks once, in each of the ways that may ask."""
    app = App(name, secret_key=key)
    requests = {"sure": FORM} if requests is None else requests

    def answer(ctx: Context) -> Any:
        if not ctx.input.responses and ctx.input.state is None:
            return Result.input_required(requests, state)
        answers = {key: dict(value) for key, value in ctx.input.responses.items()}
        return f"{answers} {ctx.input.state}"

    @app.tool
    def order(ctx: Context, isbn: str = "") -> Any:  # noqa: ARG001  # it is bound into the state
        return answer(ctx)

    @app.tool
    def cancel(ctx: Context, isbn: str = "") -> Any:  # noqa: ARG001
        return answer(ctx)

    @app.prompt
    def review(ctx: Context, isbn: str = "") -> Any:  # noqa: ARG001
        return answer(ctx)

    @app.resource("books://{isbn}")
    def book(isbn: str, ctx: Context) -> Any:  # noqa: ARG001
        return answer(ctx)

    return app


CLIENT: dict[str, Any] = {
    "elicitation": {"form": {}, "url": {}},
    "sampling": {},
    "roots": {},
}

ASKED = [
    # id, method, params, what the answer says
    (
        "a tool",
        "tools/call",
        {"name": "order", "arguments": {"isbn": "1"}},
        text,
    ),
    (
        "a prompt",
        "prompts/get",
        {"name": "review", "arguments": {"isbn": "1"}},
        lambda said: {
            "messages": [{"role": "user", "content": {"type": "text", "text": said}}]
        },
    ),
    (
        "a resource",
        "resources/read",
        {"uri": "books://1"},
        # The answer to a retry is for this client, and for now.
        lambda said: {
            "contents": [{"uri": "books://1", "mimeType": "text/plain", "text": said}],
            "ttlMs": 0,
            "cacheScope": "private",
        },
    ),
]


def table(rows: list[Any]) -> list[Any]:
    return [pytest.param(*row, id=name) for name, *row in rows]


@pytest.mark.parametrize(("method", "params", "answer"), table(ASKED))
async def test_a_question_is_asked_and_its_answer_comes_with_the_retry(
    method: str, params: dict[str, Any], answer: Any
) -> None:
    """Spec 2026-07-28, basic/patterns/mrtr: Input Required Result."""
    app = asking()
    asked = await call(app, method, client=CLIENT, **params)
    state = asked.pop("requestState")
    assert "secret" not in state.split(".")
    assert asked == {"resultType": "input_required", "inputRequests": {"sure": FORM}}
    responses = {"sure": ANSWER, "unknown": {}}
    answered = await call(
        app,
        method,
        client=CLIENT,
        inputResponses=responses,
        requestState=state,
        **params,
    )
    assert answered == answer(f"{responses} secret")


@pytest.mark.parametrize(("method", "params", "answer"), table(ASKED))
async def test_a_question_needs_no_state_and_a_state_no_question(
    method: str,
    params: dict[str, Any],
    answer: Any,  # noqa: ARG001  # a column of the table
) -> None:
    asked = await call(asking(state=None), method, client=CLIENT, **params)
    assert asked == {"resultType": "input_required", "inputRequests": {"sure": FORM}}
    waited = await call(asking({}), method, **params)
    assert waited.keys() == {"resultType", "requestState"}


async def test_a_state_holds_in_another_process_with_the_key() -> None:
    params: dict[str, Any] = {"name": "order", "arguments": {"isbn": "1"}}
    asked = await call(asking(), "tools/call", client=CLIENT, **params)
    answered = await call(
        asking(), "tools/call", requestState=asked["requestState"], **params
    )
    assert answered == text("{} secret")


@dataclass(frozen=True)
class Retry:
    """A retry that differs from the request that was asked in one respect."""

    name: str = "order"
    isbn: str = "1"
    by: str | None = "ada"
    app: str = "tests"
    key: str = KEY
    method: str = "tools/call"


RETRIES = [
    # id, the retry
    ("another tool", Retry(name="cancel")),
    ("other arguments", Retry(isbn="2")),
    ("another principal", Retry(by="bob")),
    ("nobody in the place of a principal", Retry(by=None)),
    ("another app", Retry(app="others")),
    ("another key", Retry(key="x" * 32)),
    ("another method", Retry(name="review", method="prompts/get")),
]


async def state_of(by: str | None = "ada") -> str:
    params: dict[str, Any] = {"name": "order", "arguments": {"isbn": "1"}}
    asked = await call(asking(), "tools/call", client=CLIENT, by=by, **params)
    state: str = asked["requestState"]
    return state


async def retry(state: Any, how: Retry = Retry()) -> Any:  # it is frozen
    return await call(
        asking(name=how.app, key=how.key),
        how.method,
        client=CLIENT,
        by=how.by,
        name=how.name,
        arguments={"isbn": how.isbn},
        requestState=state,
    )


async def test_the_same_request_opens_its_state() -> None:
    assert await retry(await state_of()) == text("{} secret")


@pytest.mark.parametrize("how", table(RETRIES))
async def test_a_state_is_bound_to_its_request(
    how: Retry, caplog: pytest.LogCaptureFixture
) -> None:
    """Spec 2026-07-28, basic/patterns/mrtr: `requestState` must be verified."""
    caplog.set_level(logging.INFO)
    assert await retry(await state_of(), how) == REFUSED
    assert "requestState is refused: " in caplog.text


TAMPERED: dict[str, Callable[[str], Any]] = {
    "cut": lambda state: state[:-1],
    "grown": lambda state: f"{state}A",
    "changed in front": lambda state: f"{'A' if state[0] != 'A' else 'B'}{state[1:]}",
    "without its signature": lambda state: state.rpartition(".")[0],
    "only its signature": lambda state: state.rpartition(".")[2],
    "empty": lambda _: "",
    "the payload alone": lambda _: "secret",
    "beyond ASCII": lambda state: f"{state}é",
    "half a surrogate pair": lambda state: f"{state}\ud800",
    "with white space": lambda state: f" {state}",
    "too long": lambda state: state * 2000,
    "a number": lambda _: 5,
    "false": lambda _: False,
    "an object": lambda state: {"state": state},
    "an array": lambda state: [state],
}


@pytest.mark.parametrize("name", TAMPERED)
async def test_a_tampered_state_is_refused_in_the_same_words(name: str) -> None:
    """Ours: the same bytes for every cause."""
    state = TAMPERED[name](await state_of())
    assert await retry(state) == REFUSED


async def test_a_state_of_null_is_none() -> None:
    asked = await retry(None)
    assert asked["resultType"] == "input_required"


async def test_a_state_that_is_too_old_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    state = await state_of()
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + 601)
    assert await retry(state) == REFUSED


WRONG_RESPONSES = [
    ("an array", []),
    ("a text", "x"),
    ("a number", 5),
    ("false", False),
    ("a text in an object", {"sure": "yes"}),
    ("null in an object", {"sure": None}),
    ("an array in an object", {"sure": []}),
]


@pytest.mark.parametrize("responses", table(WRONG_RESPONSES))
async def test_answers_are_an_object_of_objects(responses: Any) -> None:
    answer = await call(
        asking(), "tools/call", at=MODERN, name="order", inputResponses=responses
    )
    assert answer == {
        "code": INVALID_PARAMS,
        "message": "Invalid params: inputResponses must be an object of objects",
    }


LACKING = [
    # id, questions, what the client declares, what it lacks
    ("no capabilities", {"a": FORM}, {}, {"elicitation": {"form": {}}}),
    (
        "an empty elicitation is a form",
        {"a": URL},
        {"elicitation": {}},
        {"elicitation": {"url": {}}},
    ),
    (
        "a url and no form",
        {"a": FORM},
        {"elicitation": {"url": {}}},
        {"elicitation": {"form": {}}},
    ),
    (
        "merged over all questions",
        {"a": FORM, "b": URL, "c": SAMPLING, "d": ROOTS},
        {},
        {"elicitation": {"form": {}, "url": {}}, "sampling": {}, "roots": {}},
    ),
    (
        "those that it has are left out",
        {"a": FORM, "b": ROOTS},
        {"elicitation": {}},
        {"roots": {}},
    ),
    ("tools of sampling", {"a": TOOLS}, {"sampling": {}}, {"sampling": {"tools": {}}}),
]


@pytest.mark.parametrize(("requests", "client", "lacking"), table(LACKING))
async def test_a_question_that_a_client_cannot_answer_is_not_asked(
    requests: dict[str, Any], client: dict[str, Any], lacking: dict[str, Any]
) -> None:
    """Spec 2026-07-28, basic/index: Missing Required Client Capability."""
    app = asking(requests)
    replied = await reply(app, "tools/call", client=client, name="order")
    assert replied.status == 400
    assert replied.message["error"] == {
        "code": MISSING_REQUIRED_CLIENT_CAPABILITY,
        "message": f"Missing required client capability: {', '.join(lacking)}",
        "data": {"requiredCapabilities": lacking},
    }


async def test_a_question_that_is_none_is_an_internal_error(
    caplog: pytest.LogCaptureFixture,
) -> None:
    app = asking({"a": {"method": "tools/call"}})
    assert await call(app, "tools/call", name="order") == {
        "code": INTERNAL_ERROR,
        "message": "Internal error",
    }
    assert "the questions of 'order' are malformed" in caplog.text


@pytest.mark.parametrize("version", LEGACY)
@pytest.mark.parametrize(("method", "params", "answer"), table(ASKED))
async def test_a_question_in_a_result_needs_the_modern_era(
    method: str,
    params: dict[str, Any],
    answer: Any,  # noqa: ARG001  # a column of the table
    version: str,
) -> None:
    """Seed: the conduit handler, "Multi round-trip requests"."""
    assert await call(asking(), method, at=version, **params) == {
        "code": INTERNAL_ERROR,
        "message": "MRTR input requests require protocol 2026-07-28",
    }


def guarded() -> App:
    """Make an app whose components need scopes."""
    app = App("tests")
    scopes = ["orders:write", "books:read"]

    @app.tool(scopes=scopes)
    def order() -> str:
        return "ordered"

    @app.prompt(scopes=scopes)
    def review(title: str = "") -> str:
        return title or "ordered"

    @app.resource("books://{isbn}", scopes=scopes)
    def book(isbn: str) -> str:
        return isbn

    app.add_completion("review", "title", lambda value: [value])
    app.add_completion("books://{isbn}", "isbn", lambda value: [value])
    return app


ARGUMENT = {"name": "title", "value": ""}
GUARDED = [
    # id, method, params
    ("a tool", "tools/call", {"name": "order"}),
    ("a prompt", "prompts/get", {"name": "review"}),
    ("a resource", "resources/read", {"uri": "books://1"}),
    (
        "the completion of a prompt",
        "completion/complete",
        {"ref": {"type": "ref/prompt", "name": "review"}, "argument": ARGUMENT},
    ),
    (
        "the completion of a template",
        "completion/complete",
        {
            "ref": {"type": "ref/resource", "uri": "books://{isbn}"},
            "argument": ARGUMENT,
        },
    ),
]
CALLERS: list[tuple[str, Any, bool]] = [
    # id, who calls, whether that is enough
    ("nobody", None, False),
    ("a name", "ada", False),
    ("one without scopes", User("ada"), False),
    ("one with a scope", User("ada", ["books:read"]), False),
    ("one with all", User("ada", ["books:read", "orders:write", "x"]), True),
]


@pytest.mark.parametrize("version", [MODERN, V_2025_11_25])
@pytest.mark.parametrize(("method", "params"), table(GUARDED))
@pytest.mark.parametrize(("caller", "enough"), table(CALLERS))
async def test_a_caller_needs_every_scope(
    caller: Any,
    enough: bool,  # noqa: FBT001  # a column of the table
    method: str,
    params: dict[str, Any],
    version: str,
) -> None:
    """Spec 2026-07-28, basic/authorization: Scope Challenge Handling."""
    replied = await reply(guarded(), method, at=version, by=caller, **params)
    if enough:
        assert (replied.status, "result" in replied.message) == (200, True)
        return
    needed = ["books:read", "orders:write"]
    assert replied.status == 403
    assert replied.headers == (
        (
            "www-authenticate",
            'Bearer error="insufficient_scope", scope="books:read orders:write"',
        ),
    )
    assert replied.message["error"] == {
        "code": INVALID_REQUEST,
        "message": "Insufficient scope: books:read orders:write needed",
        "data": {"requiredScopes": needed},
    }
