from typing import Annotated, Literal

from pydantic import BaseModel, Field

from mcpkit import App, File, Message, Text

app = App("briefing")
TOPICS = {"law": ["Contracts", "Copyright"], "biology": ["Cells", "Corals"]}


class Style(BaseModel):
    """How a briefing is written."""

    words: int = 200
    jargon: bool = False


@app.prompt(title="Briefing")
def brief(
    field: Literal["law", "biology"],
    topic: Annotated[str, Field(title="Topic", description="What it is about.")],
    style: Style = Style(),  # noqa: B008  # it is never changed
) -> list[Message]:
    """Brief somebody on a topic."""
    jargon = "jargon" if style.jargon else "plain words"
    notes = File(f"notes://{field}/{topic}", f"Notes on {topic}.", "text/plain")
    return [
        Message([notes, Text(f"Write {style.words} words on {topic}, in {jargon}.")]),
        Message("For whom is it?", role="assistant"),
    ]


@app.complete("brief", "topic")
def topics(value: str, arguments: dict[str, str]) -> list[str]:
    """Suggest topics of the field that was chosen."""
    known = TOPICS.get(arguments.get("field", ""), [])
    return [topic for topic in known if topic.lower().startswith(value.lower())]
