from typing import Literal

from mcpkit import App

app = App("docstrings")
RATES = {"NOK": 11.5, "USD": 1.1}


@app.tool
def convert(euros: float, to: Literal["NOK", "USD"] = "NOK") -> str:
    """Convert an amount of euros.

    The rates are those of this morning.

    Args:
        euros: How many there are.
        to: The currency that is asked for.
    """
    return f"{euros * RATES[to]:.2f} {to}"
