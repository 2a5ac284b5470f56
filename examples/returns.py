from datetime import date

from pydantic import BaseModel

from mcpkit import App, File, ResourceLink, Result, Text

app = App("returns")


class Forecast(BaseModel):
    """The weather of one day."""

    day: date
    degrees: float


@app.tool
def words() -> str:
    """Return a text: what most tools need."""
    return "Sun over Oslo."


@app.tool
def numbers() -> Forecast:
    """Return a structure: it has an output schema, and travels as JSON."""
    return Forecast(day=date(2026, 7, 28), degrees=21.5)


@app.tool
def blocks() -> list[Text | File | ResourceLink]:
    """Return content blocks, in the order in which they are shown."""
    map_of_oslo = ResourceLink("maps://oslo", "Map of Oslo", mime_type="image/png")
    return [Text("Here:"), File("notes://1", "Bring a hat."), map_of_oslo]


@app.tool
def by_hand() -> Result:
    """Return a result that is built by hand, with `_meta` of its own."""
    return Result.text("Sun.", metadata={"example.com/model": "v2"})
