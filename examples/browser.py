from fastapi import Depends, FastAPI, HTTPException, Request
from fastapi.middleware.cors import CORSMiddleware

from mcpkit import App

PAGES = ["https://chat.example.com"]

app = App("browser", allowed_origins=PAGES)


@app.tool
def ping() -> str:
    """Answer."""
    return "pong"


async def user(request: Request) -> None:
    """Refuse whoever shows no token, as a browser that only asks does."""
    if "authorization" not in request.headers:
        raise HTTPException(401, "Who are you?")


api = FastAPI()
api.include_router(app.router, dependencies=[Depends(user)])
api.add_middleware(
    CORSMiddleware,
    allow_origins=PAGES,
    allow_methods=["*"],
    allow_headers=["*"],
    expose_headers=["Mcp-Session-Id"],
)
