"""The official 1.x client is asked, in a process of its own environment.

    .venv-mcp1/bin/python -m tests.clients.mcp1_asking URL

prints what it was told in the end, as JSON.
"""

import asyncio
import json
import sys
from typing import Any

from mcp import ClientSession, types
from mcp.client import streamable_http
from pydantic import AnyUrl

from tests.clients.answers import ANSWERS, take


async def fill_in(
    context: Any,  # noqa: ARG001  # the client passes it
    params: Any,
) -> types.ElicitResult:
    """Answer as the user does."""
    return types.ElicitResult(action="accept", content=ANSWERS[params.message])


async def main(url: str) -> None:
    """Ask for everything that asks, and print what came of it."""
    # Checked against the 2.x release, whose names differ.
    library: Any = streamable_http
    session: Any = ClientSession
    async with (
        library.streamable_http_client(url) as (receive, send, _),
        session(receive, send, elicitation_callback=fill_in) as client,
    ):
        await client.initialize()
        told = await take(client, as_uri=AnyUrl)
    sys.stdout.write(json.dumps(told))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
