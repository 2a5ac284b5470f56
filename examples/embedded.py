from fastapi import Depends, FastAPI, HTTPException, Request

from mcpkit import App, Context

TOKENS = {"Bearer alice-token": "alice"}


async def user(request: Request) -> str:
    """Tell who calls, for every route that depends on it."""
    name = TOKENS.get(request.headers.get("authorization", ""))
    if name is None:
        raise HTTPException(401, "Who are you?")
    request.state.principal = name
    return name


app = App("embedded")


@app.tool
def whoami(ctx: Context) -> str:
    """Say who calls."""
    return f"You are {ctx.principal}."


api = FastAPI()
api.include_router(app.router, prefix="/api", dependencies=[Depends(user)])


@api.get("/api/me")
async def me(name: str = Depends(user)) -> dict[str, str]:
    """Say who calls, without MCP."""
    return {"name": name}
