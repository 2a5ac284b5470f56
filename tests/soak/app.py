"""The app that is soaked: a tool for each way that a request can go."""

import asyncio
import os
import sys
import time
from typing import Annotated, Final

from fastapi import Request
from pydantic import BaseModel, Field

from mcpkit import App, Context

CLIENT: Final = "x-client"
"""The header that says who calls."""

CLOCK: Final = "soak://clock"
"""The resource that everybody follows."""

ITEM: Final = "soak://items/{number}"
"""A resource that one stream follows."""

STEPS: Final = 3
"""How often `report` tells how far it has come."""

PATIENCE: Final = 30.0
"""How long a handler works, in seconds, that is to be cancelled."""


class Consent(BaseModel):
    """What a person is asked."""

    ok: bool


def _client(request: Request) -> str | None:
    return request.headers.get(CLIENT)


app = App("soak", principal=_client, max_streams=20_000)

_seen: Final = {"ticks": 0, "begun": 0, "ended": 0}


@app.tool
async def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@app.tool
def add_in_thread(a: int, b: int) -> int:
    """Add two numbers, in a thread."""
    return a + b


@app.tool
async def report(ctx: Context) -> str:
    """Tell how far it has come."""
    for step in range(1, STEPS + 1):
        await ctx.progress(step, STEPS)
        await asyncio.sleep(0)
    return "done"


@app.tool
async def confirm(what: str, ctx: Context) -> str:
    """Ask whether to do something."""
    answer = await ctx.elicit(f"Really {what}?", Consent)
    agreed = answer.accepted and answer.data.ok
    return f"{what}: {'yes' if agreed else 'no'}"


@app.tool
async def linger() -> None:
    """Work for longer than anybody waits."""
    _seen["begun"] += 1
    try:
        await asyncio.sleep(PATIENCE)
    finally:
        _seen["ended"] += 1


@app.tool
def linger_in_thread(ctx: Context) -> None:
    """Work for longer than anybody waits, in a thread that looks whether one does."""
    _seen["begun"] += 1
    until = time.monotonic() + PATIENCE
    while not ctx.cancelled and time.monotonic() < until:
        time.sleep(0.01)
    _seen["ended"] += 1


@app.resource(CLOCK)
async def clock() -> str:
    """Return how often it has ticked."""
    return str(_seen["ticks"])


@app.resource(ITEM)
async def item(number: Annotated[int, Field(ge=0)]) -> str:
    """Return one of many."""
    return str(number)


@app.tool
async def tick(number: int) -> None:
    """Update what everybody follows, and the item that one stream follows."""
    _seen["ticks"] += 1
    app.notify_resource_updated(CLOCK)
    app.notify_resource_updated(ITEM.format(number=number))


@app.tool
async def change_list() -> None:
    """Add a tool, or remove it again."""
    if "extra" in app.registry.tools:
        app.remove_tool("extra")
    else:
        app.add_tool(add, name="extra")


@app.tool
async def measure() -> dict[str, int]:
    """Count what the process holds at this moment, and what it was asked for."""
    return {
        "tasks": len(asyncio.all_tasks()),
        "fds": len(os.listdir("/dev/fd")),
        "subscriptions": len(app.subscriptions),
        "running": len(app.running),
        "questions": len(app.questions),
        "blocks": sys.getallocatedblocks(),
        **_seen,
    }
