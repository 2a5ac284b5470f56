"""`server/discover`. Spec 2026-07-28, server/discover."""

from mcpkit.context import Context
from mcpkit.protocol.content import without_none
from mcpkit.protocol.results import Result
from mcpkit.protocol.versions import versions
from mcpkit.server import Server


async def discover(server: Server, context: Context) -> Result:
    """Answer `server/discover`."""
    return Result.wire(
        without_none(
            {
                "supportedVersions": versions("modern"),
                "capabilities": server.declared(context.era),
                "instructions": server.options.instructions,
            }
        )
    )
