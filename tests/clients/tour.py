"""What every client is asked to do, and what it then holds in its hands.

It runs in the environment of the 1.x client too, and imports nothing of ours.
"""

from collections.abc import Awaitable, Callable
from typing import Any

CITY = {"city": "Oslo", "degrees": 3}
WORDS = {"arg1": "one", "arg2": "two"}
PROMPT = "test_prompt_with_arguments"
TEMPLATE = "test://template/{id}/data"

TOOLS = [
    "test_simple_text",
    "test_image_content",
    "test_audio_content",
    "test_embedded_resource",
    "test_multiple_content_types",
    "test_error_handling",
    "test_structured_content",
    "test_x_mcp_header",
    "json_schema_2020_12_tool",
    "test_tool_with_progress",
    "test_tool_with_logging",
    "test_logging_tool",
    "test_reconnection",
    "test_trigger_tool_change",
    "test_trigger_prompt_change",
    "test_trigger_resource_update",
    "test_sampling",
    "test_elicitation",
    "test_elicitation_sep1034_defaults",
    "test_elicitation_sep1330_enums",
    "test_streaming_elicitation",
    "test_missing_capability",
    "test_input_required_result_sampling",
    "test_input_required_result_list_roots",
    "test_input_required_result_multiple_inputs",
    "test_input_required_result_multi_round",
    "test_input_required_result_capabilities",
    "test_input_required_result_elicitation",
    "test_input_required_result_request_state",
    "test_input_required_result_tampered_state",
    "greet",
    "slow_compute",
    "failing_job",
    "protocol_error_job",
    "confirm_delete",
    "multi_input",
    "test_tool_with_task",
]


async def take(
    client: Any,
    prompt_reference: Any,
    template_reference: Any,
    refused: type[Exception],
    *,
    as_uri: Callable[[str], Any] = str,
) -> dict[str, Any]:
    """Visit everything with a client, and return what it saw, as JSON.

    Args:
        client: It has the methods of the official clients.
        prompt_reference: The prompt, as its completions take it.
        template_reference: The resource template, as its completions take it.
        refused: What it raises for a JSON-RPC error; it has an `error`.
        as_uri: Makes what it takes for a URI.
    """
    number = await client.complete(template_reference, {"name": "id", "value": "12"})
    word = await client.complete(prompt_reference, {"name": "arg1", "value": "par"})
    return {
        "tools": dump(await client.list_tools()),
        "resources": dump(await client.list_resources()),
        "templates": dump(await client.list_resource_templates()),
        "prompts": dump(await client.list_prompts()),
        "text": dump(await client.call_tool("test_simple_text", {})),
        "structured": dump(await client.call_tool("test_structured_content", CITY)),
        "image": dump(await client.call_tool("test_image_content", {})),
        "error": dump(await client.call_tool("test_error_handling", {})),
        "bad arguments": dump(await client.call_tool("test_structured_content", {})),
        "mirrored": dump(
            await client.call_tool("test_x_mcp_header", {"region": "Zürich 1"})
        ),
        "read text": dump(await client.read_resource(as_uri("test://static-text"))),
        "read blob": dump(await client.read_resource(as_uri("test://static-binary"))),
        "read template": dump(
            await client.read_resource(as_uri("test://template/a%20b/data"))
        ),
        "prompt": dump(await client.get_prompt(PROMPT, WORDS)),
        "completed word": dump(word),
        "completed number": dump(number),
        "unknown tool": await _refusal(client.call_tool("no_such_tool", {}), refused),
        "unknown resource": await _refusal(
            client.read_resource(as_uri("test://nowhere")), refused
        ),
        "unknown prompt": await _refusal(client.get_prompt("nothing", {}), refused),
    }


def dump(model: Any) -> dict[str, Any]:
    """Return a model as the JSON it stands for."""
    dumped: dict[str, Any] = model.model_dump(
        mode="json", by_alias=True, exclude_none=True
    )
    return dumped


async def _refusal(call: Awaitable[Any], refused: type[Exception]) -> dict[str, Any]:
    try:
        answer = await call
    except refused as error:
        return dump(error.error)  # type: ignore[attr-defined]
    return {"not refused": dump(answer)}
