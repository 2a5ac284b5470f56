"""A server whose tool takes long, and asks in the middle.

uvicorn tests.clients.tasking:app
"""

from dataclasses import dataclass

from mcpkit import App, Context


@dataclass
class Guest:
    """Who comes."""

    name: str


app = App("tasking")


@app.tool(task="required")
async def prepare(place: str, ctx: Context) -> str:
    """Prepare a dinner, once it is known for whom."""
    await ctx.progress(1, 2, "The table is laid")
    guest = await ctx.elicit(f"Who comes to {place}?", Guest)
    return f"{guest.data.name} comes to {place}"


@app.tool(task="optional")
async def count(number: int) -> list[int]:
    """Count to a number."""
    return list(range(1, number + 1))
