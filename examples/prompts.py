from typing import Literal

from mcpkit import App, Message

app = App("prompts")
TITLES = ["Dune", "Emma", "Ulysses"]


@app.prompt
def review(title: str, tone: Literal["kind", "harsh"] = "kind") -> str:
    """Review a book."""
    return f"Write a {tone} review of {title}."


@app.prompt
def interview(author: str, questions: int = 3) -> list[Message]:
    """Interview an author."""
    return [
        Message(f"You are {author}. I have {questions} questions."),
        Message("Go ahead.", role="assistant"),
    ]


@app.complete("review", "title")
def titles(value: str) -> list[str]:
    """Suggest titles."""
    return [title for title in TITLES if title.lower().startswith(value.lower())]
