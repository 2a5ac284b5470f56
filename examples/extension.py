from typing import Any

from mcpkit import App, Context, Extension, ProtocolError

app = App("extension")

PRICES = "com.example/prices"
EUROS = {"Dune": 10, "Emma": 8}
RATES = {"EUR": 1.0, "NOK": 11.5}


def priced(title: str, ctx: Context) -> str:
    """Say a price, in the currency that the client has declared, if any."""
    currency = (ctx.extension(PRICES) or {}).get("currency", "EUR")
    return f"{EUROS[title] * RATES.get(currency, 1.0):.2f} {currency}"


@app.tool
def look_up(title: str, ctx: Context) -> str:
    """Look a book up. Any client may call it."""
    return f"{title} is {priced(title, ctx)}."


async def quote(ctx: Context) -> dict[str, Any]:
    """Serve `prices/quote`, for clients that have declared the extension."""
    title = ctx.params.get("title")
    if title not in EUROS:
        raise ProtocolError(-32602, "There is no such book")
    return {"title": title, "price": priced(title, ctx)}


app.add_extension(
    Extension(
        identifier=PRICES,
        settings={"currencies": [*RATES]},
        methods={"prices/quote": quote},
    )
)
