from mcpkit import App, ResourceNotFoundError

app = App("catalog")
BOOKS = {"dune": "Dune, by Frank Herbert", "emma": "Emma, by Jane Austen"}


@app.resource("shop://hours")
def hours() -> str:
    """Say when the shop is open."""
    return "Monday to Friday, 9 to 17"


@app.resource("shop://stock")
def stock() -> dict[str, int]:
    """Count the copies of each book."""
    return dict.fromkeys(BOOKS, 3)


@app.resource("books://{key}", mime_type="text/plain")
def book(key: str) -> str:
    """Read about one book."""
    if key not in BOOKS:
        raise ResourceNotFoundError(f"There is no book {key}")
    return BOOKS[key]


@app.resource("books://{key}/cover", mime_type="image/svg+xml")
def cover(key: str) -> bytes:
    """Look at the cover of one book."""
    svg = f'<svg xmlns="http://www.w3.org/2000/svg"><text>{key}</text></svg>'
    return svg.encode()


@app.complete("books://{key}", "key")
def keys(value: str) -> list[str]:
    """Suggest keys."""
    return [key for key in BOOKS if key.startswith(value)]
