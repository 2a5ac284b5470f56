"""The official client, at servers that speak one era alone."""

import pytest
from mcp import Client, MCPError
from mcp_types import TextContent

from tests.clients.processes import serving
from tests.clients.test_tour import Mode


@pytest.mark.parametrize(
    ("target", "mode", "version"),
    [
        pytest.param(*row, id=f"{row[0]}, {row[1]}")
        for row in (
            ("tests.clients.single:modern", "auto", "2026-07-28"),
            ("tests.clients.single:modern", "2026-07-28", "2026-07-28"),
            ("tests.clients.single:legacy", "auto", "2025-11-25"),
            ("tests.clients.single:legacy", "legacy", "2025-11-25"),
        )
    ],
)
async def test_a_client_that_speaks_the_era_is_served(
    target: str, mode: Mode, version: str
) -> None:
    """Spec 2026-07-28, basic/versioning: Compatibility Matrix."""
    with serving(target) as url:
        async with Client(url, mode=mode) as client:
            result = await client.call_tool("greet", {"name": "Ada"})
            assert client.protocol_version == version
    assert result.content == [TextContent(text="Hello, Ada!")]


async def test_a_legacy_client_learns_what_a_modern_server_speaks() -> None:
    """Spec 2026-07-28, basic/versioning: Backward Compatibility."""

    def names_the_version(error: MCPError) -> bool:
        return error.error.code == -32022 and error.error.data == {
            "supported": ["2026-07-28"],
            "requested": "2025-11-25",
        }

    refused = pytest.RaisesExc(MCPError, check=names_the_version)
    with (
        serving("tests.clients.single:modern") as url,
        pytest.RaisesGroup(refused, flatten_subgroups=True),
    ):
        async with Client(url, mode="legacy"):
            raise NotImplementedError


async def test_a_modern_client_learns_what_a_legacy_server_speaks() -> None:
    """Spec 2026-07-28, basic/versioning: Compatibility Matrix."""
    with serving("tests.clients.single:legacy") as url:
        async with Client(url, mode="2026-07-28") as client:
            with pytest.raises(MCPError) as caught:
                await client.call_tool("greet", {"name": "Ada"})
    assert caught.value.error.code == -32022
    assert caught.value.error.data == {
        "supported": ["2025-11-25", "2025-06-18", "2025-03-26"],
        "requested": "2026-07-28",
    }
