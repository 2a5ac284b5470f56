import asyncio
import json
import sys

from mcpkit import App, handle_request

app = App("transport")


@app.tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


async def serve() -> None:
    """Answer JSON lines: one message a line in, one response a line out."""
    while line := await asyncio.to_thread(sys.stdin.readline):
        response = await handle_request(json.loads(line), app)
        if response is not None:
            print(json.dumps(response), flush=True)


if __name__ == "__main__":
    asyncio.run(serve())
