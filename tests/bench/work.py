"""The work: functions that every subject serves, and one request for each kind.

All subjects serve the same functions and are sent the same bytes, and the same
is expected of their answers.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from pydantic import BaseModel
from pydantic_core import from_json, to_json

MODERN: Final = "2026-07-28"
LEGACY: Final = "2025-11-25"
NAME: Final = "bench"
URI: Final = "bench://greeting"
GREETING: Final = "Hello from the bench. " * 8
HOW_MANY_TOOLS: Final = 50

_IO: Final = "io.modelcontextprotocol/"


class Total(BaseModel):
    """A sum."""

    total: int


class Line(BaseModel):
    """A line of an order."""

    isbn: str
    quantity: int
    cents: int


class Address(BaseModel):
    """Where books are sent."""

    street: str
    city: str
    country: str = "NO"


class Order(BaseModel):
    """What is ordered, a model of models."""

    customer: str
    lines: list[Line]
    ship_to: Address


class Receipt(BaseModel):
    """What came of an order."""

    customer: str
    cents: int
    ship_to: Address


async def add(a: int, b: int) -> Total:
    """Add two numbers."""
    return Total(total=a + b)


def add_sync(a: int, b: int) -> Total:
    """Add two numbers, in a function that is not async."""
    return Total(total=a + b)


async def order(order: Order) -> Receipt:
    """Order books."""
    cents = sum(line.quantity * line.cents for line in order.lines)
    return Receipt(customer=order.customer, cents=cents, ship_to=order.ship_to)


async def greeting() -> str:
    """A text."""
    return GREETING


def tools(count: int = HOW_MANY_TOOLS) -> dict[str, Callable[..., Any]]:
    """Return the tools by name: those that are called, and others to fill a list."""
    named: dict[str, Callable[..., Any]] = {"add": add}
    if count > 1:
        named |= {"add_sync": add_sync, "order": order}
    return named | {f"add_{number:03}": add for number in range(len(named), count)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """One request, and what its answer must be.

    Attributes:
        name: What it is called in the tables.
        method: The method.
        params: The params, without `_meta`.
        picked: Takes what matters out of a result.
        expected: What that must be.
        version: The revision that the client speaks.
    """

    name: str
    method: str
    params: Mapping[str, Any]
    picked: Callable[[dict[str, Any]], Any]
    expected: Any
    version: str = MODERN

    @property
    def body(self) -> bytes:
        """The body of the request."""
        params = dict(self.params)
        if self.version == MODERN:
            params["_meta"] = {
                f"{_IO}protocolVersion": MODERN,
                f"{_IO}clientInfo": {"name": "bench", "version": "1"},
                f"{_IO}clientCapabilities": {"elicitation": {}, "sampling": {}},
            }
        return to_json(
            {"jsonrpc": "2.0", "id": 1, "method": self.method, "params": params}
        )

    def headers(self, host: str, session: bytes | None) -> list[tuple[bytes, bytes]]:
        """Return the headers of the request.

        Args:
            host: The value of the Host header.
            session: The legacy session, where the server gave one.
        """
        found = {
            b"host": host.encode(),
            b"user-agent": b"bench",
            b"accept": b"application/json, text/event-stream",
            b"content-type": b"application/json",
            b"content-length": b"%d" % len(self.body),
            b"mcp-protocol-version": self.version.encode(),
        }
        if self.version == MODERN:
            found[b"mcp-method"] = self.method.encode()
            for key in ("name", "uri"):
                if key in self.params:
                    found[b"mcp-name"] = self.params[key].encode()
        if session is not None:
            found[b"mcp-session-id"] = session
        return list(found.items())

    def fault(self, status: int, body: bytes) -> str | None:
        """Tell what is wrong with an answer, or return `None`."""
        shown = f"{status} {body[:500]!r}"
        if status != 200:
            return shown
        message = from_json(body)
        result = message.get("result")
        if message.get("id") != 1 or not isinstance(result, dict):
            return shown
        if self.version == MODERN:
            info = result.get("_meta", {}).get(f"{_IO}serverInfo", {})
            if result.get("resultType") != "complete" or info.get("name") != NAME:
                return shown
        return None if self.picked(result) == self.expected else shown


def _called(result: dict[str, Any]) -> Any:
    (block,) = result["content"]
    failed = result.get("isError", False)
    return failed, from_json(block["text"]), result["structuredContent"]


def _names(result: dict[str, Any]) -> Any:
    definitions = result["tools"]
    if not all(
        "inputSchema" in item and "outputSchema" in item for item in definitions
    ):
        return None
    return {item["name"] for item in definitions}


def _discovered(result: dict[str, Any]) -> Any:
    offered = {"tools", "resources"} <= result["capabilities"].keys()
    return offered and MODERN in result["supportedVersions"]


def _texts(result: dict[str, Any]) -> Any:
    return [(item["uri"], item["text"]) for item in result["contents"]]


_SUM: Final = {"total": 5}
_SHIP_TO: Final = {"street": "Karl Johans gate 1", "city": "Oslo", "country": "NO"}
_ORDER: Final = {
    "customer": "Ada Lovelace",
    "lines": [
        {"isbn": f"978-0-441-17271-{number}", "quantity": number, "cents": 999}
        for number in (1, 2, 3)
    ],
    "ship_to": _SHIP_TO,
}
_RECEIPT: Final = {"customer": "Ada Lovelace", "cents": 5994, "ship_to": _SHIP_TO}

CALL: Final = Work(
    name="call",
    method="tools/call",
    params={"name": "add", "arguments": {"a": 2, "b": 3}},
    picked=_called,
    expected=(False, _SUM, _SUM),
)
LIST: Final = Work(
    name="list of 50",
    method="tools/list",
    params={},
    picked=_names,
    expected=set(tools()),
)
DISCOVER: Final = Work(
    name="discover",
    method="server/discover",
    params={},
    picked=_discovered,
    expected=True,
)
LEGACY_CALL: Final = replace(CALL, name="legacy call", version=LEGACY)

WORKS: Final[Sequence[Work]] = (
    CALL,
    Work(
        name="sync call",
        method="tools/call",
        params={"name": "add_sync", "arguments": {"a": 2, "b": 3}},
        picked=_called,
        expected=(False, _SUM, _SUM),
    ),
    Work(
        name="nested call",
        method="tools/call",
        params={"name": "order", "arguments": {"order": _ORDER}},
        picked=_called,
        expected=(False, _RECEIPT, _RECEIPT),
    ),
    LIST,
    DISCOVER,
    Work(
        name="read",
        method="resources/read",
        params={"uri": URI},
        picked=_texts,
        expected=[(URI, GREETING)],
    ),
    LEGACY_CALL,
)

INITIALIZE: Final = Work(
    name="initialize",
    method="initialize",
    params={
        "protocolVersion": LEGACY,
        "capabilities": {},
        "clientInfo": {"name": "bench", "version": "1"},
    },
    picked=lambda result: (result["protocolVersion"], result["serverInfo"]["name"]),
    expected=(LEGACY, NAME),
    version=LEGACY,
)
