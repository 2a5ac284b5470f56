import logging
from collections.abc import Awaitable, Callable

from mcpkit import App, Context, Event, ProtocolError, Result

logging.basicConfig(level=logging.INFO)
app = App("watching", access_log=True)


@app.telemetry.listen
def measure(event: Event) -> None:
    """Hear what happened, once it has: here is the place for metrics."""
    if event.name == "tool.execute":
        print(event.metadata["target"], event.metadata["status"], event.duration)


@app.middleware
async def opening_hours(
    ctx: Context, call_next: Callable[[], Awaitable[Result]]
) -> Result:
    """Stand around each request: refuse it, or go on and see what came of it."""
    if ctx.method == "tools/call" and ctx.params.get("name") == "order":
        raise ProtocolError(-32000, "The shop is closed")
    return await call_next()


@app.tool
def search(title: str) -> str:
    """Search the catalogue."""
    return f"There is one copy of {title}."


@app.tool
def order(title: str) -> str:
    """Order a book."""
    return f"Ordered {title}."
