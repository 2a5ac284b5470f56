from dataclasses import dataclass
from pathlib import Path

from mcpkit import UI, App, ToolError, UIOptions

app = App("ui")
STOCK = {"Dune": 3, "Emma": 1}


@dataclass
class Card:
    """A book, and how many copies there are."""

    title: str
    copies: int


@app.tool(ui="ui://books/card")
def look_up(title: str) -> Card:
    """Look a book up. A client without user interfaces has the text alone."""
    if title not in STOCK:
        raise ToolError(f"There is no {title}.")
    return Card(title, STOCK[title])


@app.tool(ui=UI(visibility=["app"]))
def sell(title: str) -> Card:
    """Sell a copy. The button of the page calls this, and no model."""
    if STOCK.get(title, 0) == 0:
        raise ToolError(f"There is no copy of {title}.")
    STOCK[title] -= 1
    return Card(title, STOCK[title])


app.add_resource(
    "ui://books/card",
    Path(__file__).with_name("card.html"),
    ui=UIOptions(prefers_border=True),
)
