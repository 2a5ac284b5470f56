import asyncio
import logging
import time

from mcpkit import App, Context, LogHandler

app = App("streaming")

# What is logged here while a request is served goes to its client too.
log = logging.getLogger("shop")
log.setLevel(logging.INFO)
log.addHandler(LogHandler())


@app.tool
async def stocktake(shelves: int, ctx: Context) -> str:
    """Count the books, and say how far it is."""
    for shelf in range(1, shelves + 1):
        await asyncio.sleep(0.1)
        await ctx.progress(shelf, total=shelves, message=f"Shelf {shelf}")
    await ctx.log("warning", {"missing": ["Emma"]})
    log.info("Counted %d shelves", shelves)
    return "One book is missing."


@app.tool
async def export() -> str:
    """Export, until it is done or nobody waits for it any more."""
    try:
        await asyncio.sleep(60)
    finally:
        # When the client has cancelled, too: put things back here.
        print("The file is closed.", flush=True)
    return "Exported."


@app.tool
def index(pages: int, ctx: Context) -> str:
    """Work in a thread, which nobody can stop from outside: so it looks."""
    for page in range(pages):
        if ctx.cancelled:
            break
        time.sleep(0.1)
        ctx.wait(ctx.progress(page + 1, total=pages))
    return f"Indexed {pages} pages."
