"""The tour with the official 1.x client, in a process of its own environment.

    .venv-mcp1/bin/python -m tests.clients.mcp1 URL

prints what it saw as JSON.
"""

import asyncio
import json
import sys
from typing import Any

from mcp import ClientSession, types
from mcp.client import streamable_http
from mcp.shared import exceptions
from pydantic import AnyUrl

from tests.clients import tour


async def main(url: str) -> None:
    """Take the tour, and print what was seen."""
    # Checked against the 2.x release, whose names differ.
    library: Any = streamable_http
    errors: Any = exceptions
    async with (
        library.streamable_http_client(url) as (receive, send, get_session_id),
        ClientSession(receive, send) as client,
    ):
        opened = await client.initialize()
        seen = await tour.take(
            client,
            types.PromptReference(type="ref/prompt", name=tour.PROMPT),
            types.ResourceTemplateReference(type="ref/resource", uri=tour.TEMPLATE),
            errors.McpError,
            as_uri=AnyUrl,
        )
        answer = {
            "version": opened.protocolVersion,  # type: ignore[attr-defined]
            "server": tour.dump(opened.serverInfo),  # type: ignore[attr-defined]
            "capabilities": tour.dump(opened.capabilities),
            "instructions": opened.instructions,
            "has a session": get_session_id() is not None,
            "ping": tour.dump(await client.send_ping()),
            "seen": seen,
        }
    sys.stdout.write(json.dumps(answer))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
