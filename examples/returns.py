from datetime import date

from pydantic import BaseModel

from mcpkit import App, Image, Result, Text

app = App("returns")
DOT = bytes.fromhex("47494638396101000100800000ff0000ffffff2c00000000010001000002")


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
def blocks() -> list[Text | Image]:
    """Return content blocks, in the order in which they are shown."""
    return [Text("Here it is:", annotations={"audience": ["user"]}), Image(DOT)]


@app.tool
def both() -> Result[Forecast]:
    """Return a structure, with words of its own for the model, and a `_meta`."""
    made_by = {"example.com/model": "v2"}
    return Result.structured(numbers(), content="21 and a half.", metadata=made_by)
