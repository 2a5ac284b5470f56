from dataclasses import dataclass

from fastapi import Request

from mcpkit import App


@dataclass(frozen=True)
class User:
    """Who calls."""

    id: str
    staff: bool = False
    scopes: frozenset[str] = frozenset()


ALICE = User("alice", staff=True, scopes=frozenset({"refunds"}))
USERS = {"Bearer alice-token": ALICE, "Bearer bob-token": User("bob")}


def who(request: Request) -> User | None:
    """Tell who calls, or that it is nobody in particular."""
    return USERS.get(request.headers.get("authorization", ""))


app = App("visible", principal=who)


@app.tool(visible=lambda user: user is not None and user.staff)
def restock(title: str) -> str:
    """Order more copies. For everybody but the staff there is no such tool."""
    return f"Ordered {title}."


@app.tool(scopes=["refunds"], visible="scopes")
def refund(order: str) -> str:
    """Give the money back. Who lacks the scope does not see it."""
    return f"Refunded {order}."
