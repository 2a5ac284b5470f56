import asyncio
from dataclasses import dataclass

from mcpkit import App, Context, Tasks

app = App("library", tasks=Tasks(ttl=86_400))


@dataclass
class Found:
    """The form."""

    keep: bool


@app.tool(task="optional", asks=[Found])
async def take_stock(shelves: int, ctx: Context) -> str:
    """Look through the shelves, which takes a while."""
    kept = 0
    for shelf in range(1, shelves + 1):
        await ctx.progress(shelf, shelves, f"Shelf {shelf} of {shelves}")
        await asyncio.sleep(0.05)
        if shelf % 3 == 0:
            answer = await ctx.elicit(f"Shelf {shelf} has a book twice. Keep?", Found)
            kept += answer.accepted and answer.data.keep
    return f"{shelves} shelves, and {kept} books twice."
