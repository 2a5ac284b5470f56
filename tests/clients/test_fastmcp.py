"""What FastMCP's client makes of the answers, beyond what was sent."""

from dataclasses import asdict

import fastmcp
import pytest
from fastmcp.exceptions import ToolError
from mcp import MCPError
from mcp_types import (
    BlobResourceContents,
    PromptReference,
    TextContent,
    TextResourceContents,
)

from tests.clients import tour
from tests.clients.test_tour import PIXEL, WEATHER, Mode

MODES: list[Mode] = ["auto", "legacy"]


@pytest.mark.parametrize("mode", MODES)
async def test_an_output_schema_becomes_an_object(url: str, mode: Mode) -> None:
    async with fastmcp.Client(url, mode=mode) as client:
        result = await client.call_tool("test_structured_content", tour.CITY)
    assert result.structured_content == WEATHER
    assert asdict(result.data) == WEATHER


@pytest.mark.parametrize("mode", MODES)
async def test_a_failed_tool_raises_its_text(url: str, mode: Mode) -> None:
    async with fastmcp.Client(url, mode=mode) as client:
        with pytest.raises(ToolError, match=r"^This tool intentionally returns"):
            await client.call_tool("test_error_handling")


@pytest.mark.parametrize("mode", MODES)
async def test_an_unknown_tool_raises_the_error(url: str, mode: Mode) -> None:
    """Spec 2026-07-28, server/tools: Error Handling."""
    async with fastmcp.Client(url, mode=mode) as client:
        with pytest.raises(MCPError, match=r"^Unknown tool: no_such_tool$"):
            await client.call_tool("no_such_tool")


@pytest.mark.parametrize("mode", MODES)
async def test_lists_and_contents_are_what_was_sent(url: str, mode: Mode) -> None:
    async with fastmcp.Client(url, mode=mode) as client:
        assert [tool.name for tool in await client.list_tools()] == tour.TOOLS
        assert [str(item.uri) for item in await client.list_resources()] == [
            "test://static-text",
            "test://static-binary",
            "test://watched-resource",
        ]
        assert await client.read_resource("test://static-text") == [
            TextResourceContents(
                uri="test://static-text",
                mime_type="text/plain",
                text="This is the content of the static text resource.",
            )
        ]
        assert await client.read_resource("test://static-binary") == [
            BlobResourceContents(
                uri="test://static-binary", mime_type="image/png", blob=PIXEL
            )
        ]
        prompt = await client.get_prompt(tour.PROMPT, tour.WORDS)
        assert [message.content for message in prompt.messages] == [
            TextContent(text="Prompt with arguments: arg1='one', arg2='two'")
        ]
        completion = await client.complete(
            PromptReference(name=tour.PROMPT), {"name": "arg1", "value": "pari"}
        )
        assert completion.values == ["paris"]
