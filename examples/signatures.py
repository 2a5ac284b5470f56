from dataclasses import dataclass
from datetime import date
from functools import partial

from mcpkit import App

app = App("signatures")


@dataclass
class Guest:
    """Who stays: for the client, an object with these members."""

    name: str
    children: int = 0


@app.tool
def book(guest: Guest, arrival: date, *, nights: int = 1) -> str:
    """Book a room."""
    return f"A room for {guest.name}, {nights} nights from {arrival}."


class Hotel:
    """A hotel. Its methods can be registered once there is one."""

    rooms = 12

    def free(self, arrival: date) -> int:
        """Count the free rooms."""
        return arrival.day % self.rooms


def price(nights: int, rate: float) -> float:
    """Say what a stay costs."""
    return nights * rate


app.add_tool(Hotel().free)
app.add_tool(partial(price, rate=95.0), name="price")
