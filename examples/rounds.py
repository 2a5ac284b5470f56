from dataclasses import dataclass

from mcpkit import App, Context, Elicit, Result

app = App("rounds")
TAKEN = {"ada", "grace"}


@dataclass
class Name:
    """The form."""

    name: str


@app.tool
def register(ctx: Context) -> str | Result:
    """Ask for a name, until it is one that nobody has. Each round is a call."""
    tries = ctx.input.state or 0
    question = Elicit("What is your name?" if tries == 0 else "And another?", Name)
    response = ctx.input.responses.get("name")
    if response is not None:
        answer = question.read(response)
        if not answer.accepted:
            return "Nobody was registered."
        if answer.data.name not in TAKEN:
            return f"You are {answer.data.name}, at try {tries}."
    return Result.input_required({"name": question}, tries + 1)
