"""Rounds of questions over HTTP: who may come back with an answer, and to whom."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import httpx
import pytest
from starlette.requests import Request

from mcpkit import App, Context, Result
from mcpkit.errors import INVALID_PARAMS
from tests.http.client import MODERN, call, request
from tests.http.streaming import idle, stream
from tests.http.streams import Client
from tests.rounds import (
    CLIENT,
    EVERY,
    KEY,
    TARGETS,
    TOOL,
    Target,
    app_of,
    form,
    named,
    three,
)

REFUSED = {"code": INVALID_PARAMS, "message": "Invalid or expired requestState"}
INFO = "io.modelcontextprotocol/clientInfo"


@dataclass
class User:
    """Who calls, as a token says."""

    id: str
    scopes: list[str] = field(default_factory=list)


TOKENS = {
    "Bearer ada": User("ada"),
    "Bearer ada, refreshed": User("ada", ["more"]),
    "Bearer bob": User("bob"),
}


def principal(request: Request) -> User | None:
    """Tell who calls by the token."""
    token = request.headers.get("authorization")
    if token is not None and token.endswith("broken"):
        raise ConnectionError("the issuer is not there")
    return None if token is None else TOKENS[token]


async def post(
    app: App,
    target: Target = TOOL,
    *,
    token: str | None = None,
    client: Mapping[str, Any] = CLIENT,
    **params: Any,
) -> httpx.Response:
    """Send the request, or a retry of it."""
    headers = {} if token is None else {"authorization": token}
    return await call(
        app,
        MODERN,
        target.method,
        {**target.params, **params},
        headers=headers,
        capabilities=client,
    )


def retry_of(reply: httpx.Response, name: str = "a") -> dict[str, Any]:
    """Return the params with which a client answers what it is asked."""
    result = reply.json()["result"]
    [key] = result["inputRequests"]
    return {
        "inputResponses": {key: named(name)},
        "requestState": result["requestState"],
    }


def question_of(reply: httpx.Response) -> str:
    """Return the message of the one question of a reply."""
    assert reply.status_code == 200
    [asked] = reply.json()["result"]["inputRequests"].values()
    message: str = asked["params"]["message"]
    return message


CALLERS: dict[str, tuple[str | None, bool]] = {
    # id: token, whether it may come back with the answer
    "the same": ("Bearer ada", True),
    "the same, with a refreshed token": ("Bearer ada, refreshed", True),
    "another": ("Bearer bob", False),
    "nobody": (None, False),
}


@EVERY
@pytest.mark.parametrize(("token", "may"), CALLERS.values(), ids=CALLERS)
async def test_only_who_was_asked_comes_back_with_the_answer(
    token: str | None,
    may: bool,  # noqa: FBT001  # a column of the table
    target: Target,
) -> None:
    """MRTR-03. Spec 2026-07-28, basic/patterns/mrtr: the authenticated principal."""
    app = app_of(three, principal=principal)
    asked = await post(app, target, token="Bearer ada")  # noqa: S106
    reply = await post(app, target, token=token, **retry_of(asked))
    if may:
        assert question_of(reply) == "Second, a?"
    else:
        assert (reply.status_code, reply.json()["error"]) == (200, REFUSED)


async def test_what_a_client_calls_itself_changes_nothing() -> None:
    """MRTR-03."""
    app = app_of(three)
    asked = await post(app)
    message, headers = request(
        MODERN, TOOL.method, {**TOOL.params, **retry_of(asked)}, capabilities=CLIENT
    )
    message["params"]["_meta"][INFO] = {"name": "another", "version": "2"}
    async with stream(app, message, headers) as opened:
        result = (await opened.body())["result"]
    [question] = result["inputRequests"].values()
    assert question["params"]["message"] == "Second, a?"
    await idle(app)


async def test_who_can_not_be_told_is_nobody() -> None:
    """MRTR-04: a callable that raises is no reason to take a caller for anonymous."""
    app = app_of(three, principal=principal)
    asked = await post(app)
    reply = await post(app, token="Bearer broken", **retry_of(asked))  # noqa: S106
    assert reply.status_code == 500
    assert question_of(await post(app, **retry_of(asked))) == "Second, a?"


KEYS: dict[str, tuple[Any, Any, bool]] = {
    # id: the keys of the worker that asks and of the next one, whether it goes on
    "one key": (KEY, KEY, True),
    "keys of their own": ("a" * 32, "b" * 32, False),
    "a new key, and the old one": ("a" * 32, ["b" * 32, "a" * 32], True),
    "the old key, where others have a new one": (
        ["b" * 32, "a" * 32],
        "a" * 32,
        False,
    ),
}


@EVERY
@pytest.mark.parametrize(("first", "then", "goes_on"), KEYS.values(), ids=KEYS)
async def test_any_worker_with_the_key_goes_on(
    first: Any,
    then: Any,
    goes_on: bool,  # noqa: FBT001  # a column of the table
    target: Target,
) -> None:
    """MRTR-06."""
    asked = await post(app_of(three, secret_key=first), target)
    reply = await post(app_of(three, secret_key=then), target, **retry_of(asked))
    if goes_on:
        assert question_of(reply) == "Second, a?"
    else:
        assert (reply.status_code, reply.json()["error"]) == (200, REFUSED)


@EVERY
async def test_a_client_that_lacks_a_capability_gets_400(target: Target) -> None:
    """Spec 2026-07-28, basic/index: Error Codes."""
    reply = await post(app_of(three), target, client={"sampling": {}})
    assert reply.status_code == 400
    assert reply.json()["error"]["data"] == {
        "requiredCapabilities": {"elicitation": {"form": {}}}
    }


OTHERS = ["tools/list", "prompts/list", "resources/list", "server/discover"]


@pytest.mark.parametrize("method", OTHERS)
async def test_other_methods_ask_nothing(method: str) -> None:
    """MRTR-12. Spec 2026-07-28, basic/patterns/mrtr: Supported Requests.

    What a retry would bring is not looked at either.
    """
    app = app_of(three)
    reply = await call(app, MODERN, method, {"inputResponses": 5, "requestState": "x"})
    assert reply.status_code == 200
    result = reply.json()["result"]
    assert result["resultType"] == "complete"
    assert result["ttlMs"] == 60_000


async def test_a_completion_can_not_ask() -> None:
    """MRTR-12. Spec 2026-07-28, basic/patterns/mrtr: Supported Requests."""
    app = app_of(three)

    async def complete(value: str, ctx: Context) -> Any:
        if value == "result":
            return Result.input_required({"a": form("First?")})
        return [await three(ctx)]

    app.add_completion("ask", "about", complete)
    for value in ("result", "context"):
        params = {
            "ref": {"type": "ref/prompt", "name": "ask"},
            "argument": {"name": "about", "value": value},
        }
        reply = await call(
            app, MODERN, "completion/complete", params, capabilities=CLIENT
        )
        error = {"code": -32603, "message": "Internal error"}
        assert (reply.status_code, reply.json()["error"]) == (200, error)


async def test_the_retry_of_another_request_is_refused() -> None:
    """Spec 2026-07-28, basic/patterns/mrtr: an identifier for the request."""
    app = app_of(three)
    asked = {name: await post(app, target) for name, target in TARGETS.items()}
    for name, target in TARGETS.items():
        for other, reply in asked.items():
            retried = await post(app, target, **retry_of(reply))
            went_on = "result" in retried.json()
            assert went_on == (name == other), (name, other)


async def test_a_question_may_end_a_stream() -> None:
    """Spec 2026-07-28, basic/transports/streamable-http: Receiving Messages."""

    async def handler(ctx: Context) -> str:
        await ctx.progress(ctx.round)
        return await three(ctx)

    app = app_of(handler)
    params = {**TOOL.params, "_meta": {}}
    message, headers = request(MODERN, TOOL.method, params, capabilities=CLIENT)
    message["params"]["_meta"]["progressToken"] = 5
    async with stream(app, message, headers) as opened:
        progress, asked = await opened.rest()
    assert progress["params"] == {"progressToken": 5, "progress": 1}
    [question] = asked["result"]["inputRequests"].values()
    assert question["params"]["message"] == "First?"
    await idle(app)


async def test_a_client_that_goes_ends_what_its_round_waits_for() -> None:
    """Spec 2026-07-28, basic/patterns/cancellation."""
    begun, ended = asyncio.Event(), asyncio.Event()

    async def charge() -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    async def both(ctx: Context) -> str:
        await asyncio.gather(ctx.once("charge", charge), three(ctx))
        raise NotImplementedError

    app = app_of(both)
    message, headers = request(MODERN, TOOL.method, TOOL.params, capabilities=CLIENT)
    client = Client(app)
    serving = asyncio.create_task(client.ask(message, headers))
    await begun.wait()
    client.gone.set()
    await serving
    assert ended.is_set()
    await idle(app)
