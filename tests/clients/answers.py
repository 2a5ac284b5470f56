"""What the clients are asked by `tests.clients.asking`, and what comes of it.

It runs in the environment of the 1.x client too, and imports nothing of ours.
"""

from collections.abc import Callable
from typing import Any

ANSWERS: dict[str, dict[str, Any]] = {
    "Who comes to Rome?": {"name": "Ada"},
    "How many come with Ada?": {"number": 3},
    "What do the 3 eat?": {"kind": "fish"},
}
"""What the user fills in, by what is asked."""

WORDS = "Rome: Ada, 3, fish"

PLACE = {"place": "Rome"}
URI = "tables://Rome"


async def take(client: Any, *, as_uri: Callable[[str], Any] = str) -> list[str]:
    """Call the tool, read the resource and get the prompt; return what each says.

    Args:
        client: It has the methods of the official clients, and answers by itself.
        as_uri: Makes what it takes for a URI.
    """
    called = await client.call_tool("reserve", PLACE)
    read = await client.read_resource(as_uri(URI))
    [message] = (await client.get_prompt("invitation", PLACE)).messages
    [content] = called.content
    [contents] = read.contents
    return [content.text, contents.text, message.content.text]
