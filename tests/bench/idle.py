"""A FastAPI app that does nothing, to compare an idle server with."""

from fastapi import FastAPI, Request

app = FastAPI()


@app.post("/mcp")
async def nothing(request: Request) -> dict[str, str]:  # noqa: ARG001  # spares the body
    return {}
