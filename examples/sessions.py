import asyncio
import sys

from mcpkit import App, Response, dispatch
from mcpkit.protocol import jsonrpc

app = App("sessions")


@app.tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


async def serve() -> None:
    """Serve one client over a pipe, which is one connection, and so one session."""
    session = None
    while line := await asyncio.to_thread(sys.stdin.buffer.readline):
        message = jsonrpc.decode(line)
        reply = await dispatch(message, app, session=session, cleans_up=True)
        if isinstance(reply, Response):
            # What an older client negotiates in `initialize` holds from then on.
            session = reply.session or session
            sys.stdout.buffer.write(reply.body + b"\n")
            sys.stdout.buffer.flush()
        if reply.cleanup is not None:
            await reply.cleanup.finish()


if __name__ == "__main__":
    asyncio.run(serve())
