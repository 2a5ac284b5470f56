from mcpkit import App, ResourceNotFoundError

app = App("subscriptions")
STOCK = {"dune": 3, "emma": 1}


@app.resource("stock://{title}")
def stock(title: str) -> int:
    """Read how many copies of a book there are."""
    if title not in STOCK:
        raise ResourceNotFoundError
    return STOCK[title]


@app.tool
def sell(title: str) -> str:
    """Sell a copy, and tell those who follow the stock of that book."""
    STOCK[title] -= 1
    app.notify_resource_updated(f"stock://{title}")
    return f"Sold a copy of {title}."


@app.tool
async def close_shop() -> str:
    """Stop selling. Those who follow the list of tools are told by themselves."""
    app.remove_tool("sell")
    return "Closed."
