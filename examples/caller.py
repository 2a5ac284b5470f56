from dataclasses import dataclass

from fastapi import HTTPException, Request

from mcpkit import App, Context


@dataclass(frozen=True)
class User:
    """Who calls: an `id`, and the scopes that were granted."""

    id: str
    scopes: frozenset[str] = frozenset()


ALICE = User("alice", frozenset({"orders:write"}))
USERS = {"Bearer alice-token": ALICE, "Bearer bob-token": User("bob")}


def who(request: Request) -> User:
    """Tell who calls. Yours looks into a database, or at a signature."""
    user = USERS.get(request.headers.get("authorization", ""))
    if user is None:
        raise HTTPException(401, "Who are you?", {"WWW-Authenticate": "Bearer"})
    return user


app = App("caller", principal=who)


@app.tool
def whoami(ctx: Context) -> str:
    """Say who calls."""
    return f"You are {ctx.principal_id}."


@app.tool(scopes=["orders:write"])
def order(isbn: str) -> str:
    """Order one copy."""
    return f"Ordered {isbn}."
