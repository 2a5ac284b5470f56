"""Clients that answer what they are asked: in a result, or on a stream."""

from typing import Any, Literal

import fastmcp
import pytest
from mcp import Client, MCPError
from mcp_types import (
    CreateMessageRequestParams,
    CreateMessageResult,
    ElicitRequestFormParams,
    ElicitRequestParams,
    ElicitResult,
    ListRootsResult,
    Root,
    TextContent,
)
from pydantic import FileUrl

# What the user of these clients fills in, whatever the form.
FILLED_IN: dict[str, Any] = {
    "name": "Ada",
    "color": "green",
    "ok": True,
    "username": "ada",
    "email": "ada@example.com",
    "context": "tea",
    "age": 30,
    "score": 95.5,
    "status": "active",
    "verified": True,
    "untitledSingle": "option1",
    "titledSingle": "value1",
    "legacyEnum": "a",
    "untitledMulti": ["option1", "option2"],
    "titledMulti": ["value2"],
}

SETTINGS = {
    "name": "Ada",
    "age": 30,
    "score": 95.5,
    "status": "active",
    "verified": True,
}
CHOICES = {
    "untitledSingle": "option1",
    "titledSingle": "value1",
    "legacyEnum": "a",
    "untitledMulti": ["option1", "option2"],
    "titledMulti": ["value2"],
}

# what is asked, the tool, its arguments, the text in the end
ASKED = [
    ("the user", "test_input_required_result_elicitation", {}, "Hello, Ada!"),
    (
        "the model",
        "test_input_required_result_sampling",
        {},
        "The model says: You said: What is the capital of France?",
    ),
    (
        "for folders",
        "test_input_required_result_list_roots",
        {},
        "Roots: file:///home/ada",
    ),
    (
        "with a state",
        "test_input_required_result_request_state",
        {},
        "state-ok: you were asked to confirm.",
    ),
    (
        "three things at once",
        "test_input_required_result_multiple_inputs",
        {},
        "You said: How do you greet someone? Ada, you work in 1 folders.",
    ),
    (
        "twice",
        "test_input_required_result_multi_round",
        {},
        "Ada likes green.",
    ),
    (
        "with a state that nobody changed",
        "test_input_required_result_tampered_state",
        {},
        "The state is as it was.",
    ),
    (
        "what the client can answer",
        "test_input_required_result_capabilities",
        {},
        "Answered: sampling, elicitation, roots.",
    ),
    ("whether it is there", "test_missing_capability", {}, "The client can sample."),
    ("to confirm", "test_streaming_elicitation", {}, "Confirmed."),
    (
        "by a tool with arguments, the model",
        "test_sampling",
        {"prompt": "Hi"},
        "LLM response: You said: Hi",
    ),
    (
        "by a tool with arguments, the user",
        "test_elicitation",
        {"message": "Who are you?"},
        "User response: ada, ada@example.com",
    ),
    (
        "with defaults",
        "test_elicitation_sep1034_defaults",
        {},
        f"Elicitation completed: {SETTINGS}",
    ),
    (
        "to choose",
        "test_elicitation_sep1330_enums",
        {},
        f"Elicitation completed: {CHOICES}",
    ),
]


async def fill_in(
    context: Any,  # noqa: ARG001  # the client passes it by name
    params: ElicitRequestParams,
) -> ElicitResult:
    assert isinstance(params, ElicitRequestFormParams)
    content = {name: FILLED_IN[name] for name in params.requested_schema["properties"]}
    return ElicitResult(action="accept", content=content)


async def decline(
    context: Any,  # noqa: ARG001  # the client passes it by name
    params: ElicitRequestParams,  # noqa: ARG001
) -> ElicitResult:
    return ElicitResult(action="decline")


async def sample(
    context: Any,  # noqa: ARG001  # the client passes it by name
    params: CreateMessageRequestParams,
) -> CreateMessageResult:
    [message] = params.messages
    assert isinstance(message.content, TextContent)
    text = f"You said: {message.content.text}"
    return CreateMessageResult(
        role="assistant", model="parrot", content=TextContent(text=text)
    )


async def list_roots(
    context: Any,  # noqa: ARG001  # the client passes it by name
) -> ListRootsResult:
    return ListRootsResult(roots=[Root(uri=FileUrl("file:///home/ada"))])


MODES: list[Literal["auto", "legacy"]] = ["auto", "legacy"]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    ("tool", "arguments", "text"), [pytest.param(*row, id=name) for name, *row in ASKED]
)
async def test_the_official_client_answers(
    url: str,
    tool: str,
    arguments: dict[str, Any],
    text: str,
    mode: Literal["auto", "legacy"],
) -> None:
    """Spec 2026-07-28, basic/patterns/mrtr; 2025-11-25, client/elicitation."""
    async with Client(
        url,
        mode=mode,
        elicitation_callback=fill_in,
        sampling_callback=sample,
        list_roots_callback=list_roots,
    ) as client:
        result = await client.call_tool(tool, arguments)
    assert result.content == [TextContent(text=text)]
    assert not result.is_error


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    ("tool", "arguments", "text"), [pytest.param(*row, id=name) for name, *row in ASKED]
)
async def test_fastmcp_answers(
    url: str,
    tool: str,
    arguments: dict[str, Any],
    text: str,
    mode: Literal["auto", "legacy"],
) -> None:
    """Spec 2026-07-28, basic/patterns/mrtr; 2025-11-25, client/elicitation."""

    async def elicit(_: str, __: Any, params: Any, context: Any) -> ElicitResult:
        return await fill_in(context, params)

    async def reply(_: Any, params: Any, context: Any) -> CreateMessageResult:
        return await sample(context, params)

    async with fastmcp.Client(
        url,
        mode=mode,
        elicitation_handler=elicit,
        sampling_handler=reply,
        roots=["file:///home/ada"],
    ) as client:
        result = await client.call_tool(tool, arguments)
    assert result.content == [TextContent(text=text)]


async def test_a_prompt_asks_too(url: str) -> None:
    """Spec 2026-07-28, basic/patterns/mrtr: Supported Requests."""
    async with Client(url, elicitation_callback=fill_in) as client:
        result = await client.get_prompt("test_input_required_result_prompt")
    [message] = result.messages
    assert message.content == TextContent(text="Tell me about tea.")


async def test_a_tool_learns_that_the_user_declined(url: str) -> None:
    """Spec 2026-07-28, client/elicitation: Response Actions."""
    async with Client(url, elicitation_callback=decline) as client:
        result = await client.call_tool("test_input_required_result_elicitation")
    assert result.content == [TextContent(text="The user would rather not say.")]
    assert result.is_error


async def test_a_client_is_not_asked_what_it_cannot_answer(url: str) -> None:
    """Spec 2026-07-28, basic/index: `_meta`, capabilities that were not declared."""
    async with Client(url) as client:
        with pytest.raises(MCPError) as caught:
            await client.call_tool("test_missing_capability")
    assert caught.value.error.code == -32021
    assert caught.value.error.data == {"requiredCapabilities": {"sampling": {}}}


async def test_a_tool_asks_only_what_the_client_declared(url: str) -> None:
    """Spec 2026-07-28, basic/index: `_meta`."""
    async with Client(url, sampling_callback=sample) as client:
        result = await client.call_tool("test_input_required_result_capabilities")
    assert result.content == [TextContent(text="Answered: sampling.")]
