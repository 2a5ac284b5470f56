from typing import Literal

from mcpkit import App

app = App("search")
BOOKS = [
    {"title": "Dune", "year": 1965, "lang": "en"},
    {"title": "Emma", "year": 1815, "lang": "en"},
    {"title": "Candide", "year": 1759, "lang": "fr"},
]


@app.resource("books://search{?q,lang,year*}")
def search(
    q: str = "", lang: Literal["en", "fr"] | None = None, year: list[int] | None = None
) -> list[str]:
    """Search by title, language and years: books://search?lang=en&year=1965."""
    return [
        str(book["title"])
        for book in BOOKS
        if q.lower() in str(book["title"]).lower()
        and lang in (None, book["lang"])
        and (not year or book["year"] in year)
    ]


@app.resource("shelves://{floor}{/path*}")
def shelf(floor: int, path: list[str]) -> dict[str, object]:
    """Look at a shelf: shelves://2/fiction/a-to-d."""
    return {"floor": floor, "shelf": path}
