import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing

from mcpkit import App, Context


@asynccontextmanager
async def database(_: App) -> AsyncIterator[sqlite3.Connection]:
    """Open the database when the server starts, and close it when it stops."""
    with closing(sqlite3.connect(":memory:", check_same_thread=False)) as db:
        db.execute("CREATE TABLE notes (text TEXT)")
        yield db


app = App("notes", lifespan=database)


@app.tool
def add_note(text: str, ctx: Context) -> str:
    """Keep a note."""
    ctx.state.execute("INSERT INTO notes VALUES (?)", (text,))
    return "Kept."


@app.tool
def read_notes(ctx: Context) -> list[str]:
    """Return every note."""
    return [text for (text,) in ctx.state.execute("SELECT text FROM notes")]
