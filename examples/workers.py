import logging
import os
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from threading import Event, Thread

from mcpkit import App, Context

log = logging.getLogger(__name__)

TABLES = """
CREATE TABLE IF NOT EXISTS kept (key TEXT PRIMARY KEY, value TEXT, expires REAL);
CREATE TABLE IF NOT EXISTS told (number INTEGER PRIMARY KEY AUTOINCREMENT, text TEXT);
"""


class FileBackend:
    """What the workers of one machine share, in a SQLite file.

    A write takes part of a millisecond, so that nothing here needs a thread of its own
    but who listens.
    """

    def __init__(self, path: str) -> None:
        self._path = path

    async def put(self, key: str, value: str, ttl: float) -> None:
        """Keep a value for `ttl` seconds."""
        with self._writing() as db:
            keep(db, key, value, ttl)

    async def get(self, key: str) -> str | None:
        """Return what is kept, unless its time is over."""
        with self._writing() as db:
            return current(db, key)

    async def replace(
        self, key: str, old: str | None, new: str | None, ttl: float
    ) -> bool:
        """Change a value if it is still `old`. Two workers never both succeed."""
        with self._writing() as db:
            if current(db, key) != old:
                return False
            if new is None:
                db.execute("DELETE FROM kept WHERE key = ?", (key,))
            else:
                keep(db, key, new, ttl)
            return True

    def publish(self, message: str) -> None:
        """Tell all workers."""
        with self._writing() as db:
            db.execute("INSERT INTO told (text) VALUES (?)", (message,))
            db.execute("DELETE FROM told WHERE number < last_insert_rowid() - 1000")

    def subscribe(self, receive: Callable[[str], None]) -> Callable[[], None]:
        """Listen in a thread, until what is returned is called."""
        with self._writing() as db:
            heard = db.execute("SELECT ifnull(max(number), 0) FROM told").fetchone()[0]
        over = Event()
        Thread(target=self._listen, args=(receive, heard, over), daemon=True).start()
        return over.set

    def _listen(self, receive: Callable[[str], None], heard: int, over: Event) -> None:
        new = "SELECT number, text FROM told WHERE number > ? ORDER BY number"
        with closing(sqlite3.connect(self._path)) as db:
            while not over.wait(0.02):
                for number, text in db.execute(new, (heard,)).fetchall():
                    heard = number
                    try:
                        if not over.is_set():
                            receive(text)
                    except Exception:
                        log.exception("A receiver of published messages failed")

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        """Open the file; nobody else writes until it is closed."""
        with closing(sqlite3.connect(self._path, isolation_level=None)) as db:
            db.executescript("PRAGMA journal_mode = WAL; PRAGMA synchronous = OFF;")
            db.executescript(TABLES)
            db.execute("BEGIN IMMEDIATE")
            yield db
            db.execute("COMMIT")


def current(db: sqlite3.Connection, key: str) -> str | None:
    """Return the value of a key."""
    found = "SELECT value FROM kept WHERE key = ? AND expires > ?"
    row = db.execute(found, (key, time.time())).fetchone()
    return None if row is None else str(row[0])


def keep(db: sqlite3.Connection, key: str, value: str, ttl: float) -> None:
    """Keep the value of a key, and drop what is over."""
    now = time.time()
    db.execute("DELETE FROM kept WHERE expires <= ?", (now,))
    db.execute("REPLACE INTO kept VALUES (?, ?, ?)", (key, value, now + ttl))


app = App("workers", backend=FileBackend("workers.sqlite3"))


@dataclass
class Sure:
    """Yes or no."""

    sure: bool


@app.tool(single_use=True)
async def approve(ctx: Context) -> str:
    """Ask. The client may post its answer to another worker than this one."""
    answer = await ctx.elicit("Sure?", Sure)
    return f"Worker {os.getpid()} was told: {answer.action}."


@app.resource("shop://news")
async def news() -> str:
    """Read the news."""
    return "There is news."


@app.tool
def announce() -> str:
    """Tell those who follow the news, in whichever worker their streams are."""
    app.notify_resource_updated("shop://news")
    return "They know."
