"""The app whose workers are killed: its tasks note in a file what they do.

    errand    resumable: some steps, each once, with a question in between
    chore     the same, which no other worker goes on with

A line of the file is the name of the task, the step, and the process. It is synced to
the disk before the step has ended.
"""

import asyncio
import logging
import os
import time
from typing import Final

from pydantic import BaseModel

from mcpkit import App, Context
from mcpkit.extensions.tasks import Tasks
from mcpkit.stores.sqlite import SQLiteTaskStore
from tests import shared_backend
from tests.soak.workers import LEASE, NOTES, STORE

_logger: Final = logging.getLogger("errands")


class Colour(BaseModel):
    """What is asked."""

    colour: str


class Done(BaseModel):
    """What a task comes to: its steps, and what was answered."""

    steps: list[str]
    colour: str | None


app = App(
    "errands",
    backend=shared_backend.shared() if shared_backend.VARIABLE in os.environ else None,
    tasks=Tasks(
        SQLiteTaskStore(os.environ[STORE]), lease=float(os.environ[LEASE]), poll=0.1
    ),
)


def note(name: str, step: str, seconds: float) -> str:
    """Note a step, which takes a while before it is noted and after that."""
    time.sleep(seconds / 2)
    file = os.open(os.environ[NOTES], os.O_APPEND | os.O_CREAT | os.O_WRONLY, 0o600)
    try:
        os.write(file, f"{name} {step} {os.getpid()}\n".encode())
        os.fsync(file)
    finally:
        os.close(file)
    time.sleep(seconds / 2)
    return step


async def _work(
    ctx: Context, name: str, steps: int, ask_at: int, pause: float, effect: float
) -> Done:
    done: list[str] = []
    colour = None
    try:
        for number in range(steps):
            await ctx.progress(number, steps)
            await asyncio.sleep(pause)
            if number == ask_at:
                answer = await ctx.elicit(f"Which colour has {name}?", Colour)
                colour = answer.data.colour if answer.accepted else None
            step = f"step-{number}"
            done.append(await ctx.once(step, note, name, step, effect))
    except asyncio.CancelledError:
        _logger.warning("%s was stopped in %d", name, os.getpid())
        raise
    return Done(steps=done, colour=colour)


@app.tool(task="required", resumable=True)
async def errand(
    ctx: Context,
    name: str,
    steps: int = 3,
    ask_at: int = -1,
    pause: float = 0.1,
    effect: float = 0.0,
) -> Done:
    """Do some steps, each once, whichever workers are killed meanwhile."""
    return await _work(ctx, name, steps, ask_at, pause, effect)


@app.tool(task="required")
async def chore(
    ctx: Context,
    name: str,
    steps: int = 3,
    ask_at: int = -1,
    pause: float = 0.1,
    effect: float = 0.0,
) -> Done:
    """Do some steps, each once, in one worker."""
    return await _work(ctx, name, steps, ask_at, pause, effect)
