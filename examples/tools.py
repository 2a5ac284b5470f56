from typing import Annotated, Literal

from pydantic import BaseModel, Field

from mcpkit import App

app = App("bookshop")


class Book(BaseModel):
    """A book of the shop."""

    isbn: str
    title: str
    price: float


BOOKS = [
    Book(isbn="978-0441013593", title="Dune", price=9.99),
    Book(isbn="978-0553293357", title="Foundation", price=8.5),
]


@app.tool(annotations={"readOnlyHint": True})
def search(
    title: Annotated[str, Field(min_length=1, description="A part of the title.")],
    order: Literal["title", "price"] = "title",
    limit: Annotated[int, Field(ge=1, le=50)] = 10,
) -> list[Book]:
    """Search the catalogue."""
    found = [book for book in BOOKS if title.lower() in book.title.lower()]
    return sorted(found, key=lambda book: getattr(book, order))[:limit]
