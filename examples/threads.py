import asyncio
import time

from mcpkit import App

app = App("threads", threads=8)


@app.tool
def blocking() -> str:
    """Block. A sync function runs in a thread, so that it holds up nobody."""
    time.sleep(0.1)
    return "done"


@app.tool
async def waiting() -> str:
    """Wait. An async function runs in the event loop, and must never block it."""
    await asyncio.sleep(0.1)
    return "done"


@app.tool(thread=False)
def instant(a: int, b: int) -> int:
    """Add. It is over at once, so that a thread would cost more than it does."""
    return a + b
