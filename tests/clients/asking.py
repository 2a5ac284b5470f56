"""A server whose handlers ask three things, one after the other.

    uvicorn tests.clients.asking:app --workers 4

Its workers share the key, and a backend where the environment names one.
"""

import os
import socket
from dataclasses import dataclass
from typing import Literal

from mcpkit import App, Context
from tests.shared_backend import VARIABLE, shared


@dataclass
class Guest:
    """Who comes."""

    name: str


@dataclass
class Count:
    """How many come along."""

    number: int


@dataclass
class Food:
    """What they eat."""

    kind: Literal["meat", "fish", "neither"]


@dataclass
class Reservation:
    """What was reserved, and in which processes each round of it ran."""

    words: str
    processes: list[int]


app = App("asking", backend=shared() if VARIABLE in os.environ else None)


async def converse(place: str, ctx: Context) -> Reservation:
    """Ask for a name, a number and a kind, and remember where each was asked."""
    processes = [await ctx.once("first", os.getpid)]
    guest = await ctx.elicit(f"Who comes to {place}?", Guest)
    processes.append(await ctx.once("second", os.getpid))
    count = await ctx.elicit(f"How many come with {guest.data.name}?", Count)
    processes.append(await ctx.once("third", os.getpid))
    food = await ctx.elicit(f"What do the {count.data.number} eat?", Food)
    processes.append(os.getpid())
    words = f"{place}: {guest.data.name}, {count.data.number}, {food.data.kind}"
    return Reservation(words, processes)


@app.tool
async def reserve(place: str, ctx: Context) -> Reservation:
    """Reserve a table."""
    return await converse(place, ctx)


@app.tool(single_use=True)
async def reserve_once(place: str, ctx: Context) -> Reservation:
    """Reserve a table, with states that are good for one retry."""
    return await converse(place, ctx)


@app.resource("tables://{place}")
async def table(place: str, ctx: Context) -> str:
    """Describe a reserved table."""
    return (await converse(place, ctx)).words


@app.prompt
async def invitation(place: str, ctx: Context) -> str:
    """Write an invitation."""
    return (await converse(place, ctx)).words


@app.tool(thread=False)
def hold(port: int) -> int:
    """Keep this worker from taking another connection, until it is let go."""
    with socket.create_connection(("127.0.0.1", port)) as line:
        line.recv(1)
    return os.getpid()
