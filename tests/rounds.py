"""Handlers that ask, in each kind of component, and a client that answers by hand."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import pytest

from mcpkit import App, Context
from mcpkit.errors import INTERNAL_ERROR
from tests.calls import call

Handler: TypeAlias = Callable[[Context], Awaitable[str]]

KEY: Final = "k" * 32

CLIENT: Final[Mapping[str, Any]] = {
    "elicitation": {"form": {}, "url": {}},
    "sampling": {"tools": {}, "context": {}},
    "roots": {},
}
"""What a client declares that can be asked everything."""


@dataclass
class Name:
    """What somebody is called."""

    name: str


NAME: Final = {
    "type": "object",
    "properties": {"name": {"type": "string"}},
    "required": ["name"],
}


def form(message: str) -> dict[str, Any]:
    """Return the request that asks for a `Name`."""
    params = {"mode": "form", "message": message, "requestedSchema": NAME}
    return {"method": "elicitation/create", "params": params}


def named(name: str) -> dict[str, Any]:
    """Return the answer of a user who gives a `Name`."""
    return {"action": "accept", "content": {"name": name}}


@dataclass(frozen=True)
class Target:
    """A request that a handler serves."""

    method: str
    params: Mapping[str, Any]

    def text(self, result: Any) -> str:
        """Return the text that the handler returned, out of the whole result."""
        match self.method:
            case "tools/call":
                assert result == {**result, "isError": False}, result
                [block] = result["content"]
            case "prompts/get":
                [message] = result["messages"]
                block = message["content"]
            case _:
                [block] = result["contents"]
        text: str = block["text"]
        return text


TOOL: Final = Target("tools/call", {"name": "ask", "arguments": {"about": "tea"}})
TEMPLATE: Final = Target("resources/read", {"uri": "ask://tea"})
PROMPT: Final = Target("prompts/get", {"name": "ask", "arguments": {"about": "tea"}})

TARGETS: Final[Mapping[str, Target]] = {
    "a tool": TOOL,
    "a template": TEMPLATE,
    "a prompt": PROMPT,
}


EVERY: Final = pytest.mark.parametrize("target", TARGETS.values(), ids=TARGETS)

INTERNAL: Final = {"code": INTERNAL_ERROR, "message": "Internal error"}


async def ask(ctx: Context, message: str) -> str:
    """Return the name that the user gives."""
    answer = await ctx.elicit(message, Name)
    return answer.data.name if answer.accepted else answer.action


async def three(ctx: Context) -> str:
    """Ask three questions, one after the other."""
    first = await ask(ctx, "First?")
    second = await ask(ctx, f"Second, {first}?")
    third = await ask(ctx, f"Third, {second}?")
    return f"{first} {second} {third}, round {ctx.round}"


def app_of(handler: Handler, *, single_use: bool = False, **options: Any) -> App:
    """Make an app with one handler, as a tool, a resource template and a prompt."""
    app = App("tests", **{"secret_key": KEY, **options})

    async def ask(about: str, ctx: Context) -> str:
        assert about == "tea"
        return await handler(ctx)

    app.add_tool(ask, single_use=single_use)
    app.add_resource("ask://{about}", ask, single_use=single_use)
    app.add_prompt(ask, single_use=single_use)
    return app


async def send(
    app: App,
    target: Target = TOOL,
    /,
    *,
    by: str | None = None,
    client: Mapping[str, Any] = CLIENT,
    **params: Any,
) -> Any:
    """Send the request, or a retry of it; return the result, or the error."""
    return await call(
        app, target.method, by=by, client=client, **{**target.params, **params}
    )


async def retry(
    app: App,
    asked: Mapping[str, Any],
    responses: Mapping[str, Any],
    target: Target = TOOL,
    /,
    **options: Any,
) -> Any:
    """Send the request again, with answers to what was asked."""
    return await send(
        app,
        target,
        requestState=asked["requestState"],
        inputResponses=responses,
        **options,
    )


def requests_of(asked: Mapping[str, Any]) -> Any:
    """Return the requests of a result that asks, and is nothing else."""
    assert asked.keys() == {"resultType", "inputRequests", "requestState"}, asked
    assert asked["resultType"] == "input_required"
    return asked["inputRequests"]


def messages_of(asked: Mapping[str, Any]) -> dict[str, str]:
    """Return the messages of the questions to the user, by key."""
    requests = requests_of(asked)
    return {key: request["params"]["message"] for key, request in requests.items()}


async def through(app: App, target: Target = TOOL) -> Any:
    """Answer all questions with the name "a", and return what comes in the end."""
    asked = await send(app, target)
    while asked.get("resultType") == "input_required":
        responses = {key: named("a") for key in requests_of(asked)}
        asked = await retry(app, asked, responses, target)
    return asked
