from dataclasses import dataclass
from typing import Literal

from mcpkit import App, Context

app = App("asking")
PRICES = {"Dune": 9.99, "Emma": 8.5}


@dataclass
class Delivery:
    """A form: where a book goes, and how."""

    city: str
    speed: Literal["normal", "express"] = "normal"


@dataclass
class Confirmation:
    """Another form: yes or no."""

    sure: bool


def look_up(title: str) -> float:
    """Look up a price, which may be another one in a minute."""
    print("  looks up the price")
    return PRICES[title]


def place(title: str, city: str) -> int:
    """Place an order, and return its number. This must not happen twice."""
    print(f"  orders {title} for {city}")
    return 7


@app.tool(asks=[Delivery, Confirmation], single_use=True)
async def order(title: str, ctx: Context) -> str:
    """Order a book, once the user has said where it goes, and agreed to the price."""
    print(f"order runs, round {ctx.round}")
    price = await ctx.once("price", look_up, title)
    where = await ctx.elicit(f"Where should {title} go?", Delivery)
    if not where.accepted:
        return "Nothing was ordered."
    print(f"  knows that it goes to {where.data.city}")
    agreed = await ctx.elicit(f"{title} is {price} euros. Order it?", Confirmation)
    if not (agreed.accepted and agreed.data.sure):
        return "Nothing was ordered."
    number = await ctx.once("place", place, title, where.data.city)
    return f"Order {number} goes to {where.data.city}."
