from datetime import date
from typing import Annotated, Literal

from pydantic import BaseModel, Field

from mcpkit import App, Context, Elicit, ListRoots, Message, Sample

app = App("questions")


class Trip(BaseModel):
    """A form with most of what a form may have."""

    to: Annotated[str, Field(title="City", min_length=2, max_length=80)]
    leaves: date
    people: Annotated[int, Field(ge=1, le=9)] = 1
    food: Literal["any", "vegetarian"] = "any"
    extras: list[Literal["guide", "bicycle"]] = []
    insured: bool = False


@app.tool
async def book(ctx: Context) -> str:
    """Ask the user to fill in a form."""
    trip = await ctx.elicit("Where do you want to go?", Trip)
    if trip.declined:
        return "The user does not want to go anywhere."
    if trip.cancelled:
        return "The user has closed the form. Ask again later."
    return f"{trip.data.people} to {trip.data.to}, on {trip.data.leaves}."


@app.tool
async def connect(ctx: Context) -> str:
    """Send the user to a page: the one place for passwords, keys and payments."""
    page = await ctx.elicit(
        "Connect your calendar", url="https://example.com/connect/7f3a"
    )
    # What happened on the page, only the page knows.
    return "Is it connected? Call status." if page.accepted else "Not connected."


@app.tool
async def summarise(text: str, ctx: Context) -> str:
    """Ask the client's model."""
    answer = await ctx.sample(f"In one sentence: {text}", max_tokens=100)
    return answer.text


@app.tool
async def plan(ctx: Context) -> str:
    """Ask several things in one round."""
    answers = await ctx.ask(
        {
            "trip": Elicit("Where do you want to go?", Trip),
            "packing": Sample("What do I pack for a week?", max_tokens=100),
            "folders": ListRoots(),
        }
    )
    if not answers["trip"].accepted:
        return "There is nothing to plan."
    folders = [root.uri for root in answers["folders"]]
    return f"{answers['trip'].data.to}: {answers['packing'].text} Files: {folders}"


@app.tool
def blocking(ctx: Context) -> str:
    """Ask from a function without async, which runs in a thread."""
    roots = ctx.wait(ctx.list_roots())
    return ", ".join(root.uri for root in roots)


@app.prompt
async def postcard(ctx: Context) -> list[Message]:
    """Ask before there is a prompt. Resources and templates do it as well."""
    trip = await ctx.elicit("From where?", Trip)
    place = trip.data.to if trip.accepted else "somewhere"
    return [Message(f"Write a postcard from {place}.")]
