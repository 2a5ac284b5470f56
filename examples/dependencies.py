from collections.abc import AsyncIterator
from typing import Annotated

from fastapi import Depends, Header, HTTPException

from mcpkit import App

app = App("shop")

USERS = {"Bearer alice-token": "alice"}
ORDERS: dict[str, list[str]] = {"alice": []}


async def user(authorization: Annotated[str, Header()]) -> str:
    """Tell who calls."""
    if authorization not in USERS:
        raise HTTPException(401, "Log in.", {"WWW-Authenticate": "Bearer"})
    return USERS[authorization]


async def basket(user: Annotated[str, Depends(user)]) -> AsyncIterator[list[str]]:
    """Hold a basket open, and order what is in it unless the tool fails."""
    titles: list[str] = []
    yield titles
    ORDERS[user] += titles


@app.tool
async def order(title: str, basket: Annotated[list[str], Depends(basket)]) -> str:
    """Order a book."""
    basket.append(title)
    return f"Ordered {title}."


@app.resource("shop://orders")
async def orders(user: Annotated[str, Depends(user)]) -> list[str]:
    """List what you have ordered."""
    return ORDERS[user]
