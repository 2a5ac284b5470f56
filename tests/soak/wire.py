"""A lean MCP client: HTTP/1.1 over raw streams, in both eras.

It costs a fraction of what a whole client does, so that the server is what is
loaded, and looks at every byte all the same.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from pydantic_core import from_json, to_json

from tests.soak.app import CLIENT

MODERN: Final = "2026-07-28"
LEGACY: Final = "2025-11-25"
IO: Final = "io.modelcontextprotocol/"

_LIMIT: Final = 1 << 16
_NAMED_BY: Final = ("name", "uri")
_META: Final = {
    f"{IO}protocolVersion": MODERN,
    f"{IO}clientInfo": {"name": "soak", "version": "1"},
    f"{IO}clientCapabilities": {"elicitation": {"form": {}}},
}


class WrongError(Exception):
    """The server did not say what it should."""


def expect(found: object, expected: object) -> None:
    """Compare what the server said with what it should.

    Raises:
        WrongError: They differ.
    """
    if found != expected:
        raise WrongError(f"{str(found)[:300]} is not {str(expected)[:300]}")


@dataclass(frozen=True, slots=True)
class Request:
    """One HTTP request.

    Attributes:
        method: The HTTP method.
        headers: Its headers, beside those that each has.
        body: Its body.
    """

    method: str
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""


def modern(
    request_id: int | str,
    method: str,
    params: Mapping[str, Any],
    *,
    token: str | None = None,
) -> Request:
    """Build a request of the modern era.

    Args:
        request_id: Its id.
        method: The MCP method.
        params: Its params, without `_meta`.
        token: Asks for progress.
    """
    meta = _META if token is None else {**_META, "progressToken": token}
    message = {
        "jsonrpc": "2.0",
        "id": request_id,
        "method": method,
        "params": {**params, "_meta": meta},
    }
    headers = {"mcp-protocol-version": MODERN, "mcp-method": method}
    for key in _NAMED_BY:
        if key in params:
            headers["mcp-name"] = params[key]
    return Request("POST", headers, to_json(message))


def legacy(session: str | None, message: Mapping[str, Any]) -> Request:
    """Build a request that carries a message of the legacy era."""
    body = to_json({"jsonrpc": "2.0", **message})
    return Request("POST", in_session(session), body)


def in_session(session: str | None) -> dict[str, str]:
    """Return the headers of what is of a legacy session."""
    if session is None:
        return {}
    return {"mcp-protocol-version": LEGACY, "mcp-session-id": session}


class Connection:
    """A connection to the server, of one client.

    Args:
        reader: Where what the server says comes from.
        writer: Where what it is sent goes.
        port: Where the server listens.
        client: Who the client is.
    """

    def __init__(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        port: int,
        client: str,
    ) -> None:
        self._reader = reader
        self._writer = writer
        self._common = (
            f"host: 127.0.0.1:{port}\r\n{CLIENT}: {client}\r\n"
            "accept: application/json, text/event-stream\r\n"
            "content-type: application/json\r\n"
        )

    @classmethod
    async def open(cls, port: int, client: str) -> "Connection":
        """Connect to the server."""
        made = await asyncio.open_connection("127.0.0.1", port, limit=_LIMIT)
        return cls(*made, port, client)

    def send(self, request: Request) -> None:
        """Send a request, whose answer is read later or never."""
        lines = [f"{request.method} /mcp HTTP/1.1\r\n{self._common}"]
        lines += [f"{name}: {value}\r\n" for name, value in request.headers.items()]
        head = "".join([*lines, f"content-length: {len(request.body)}\r\n\r\n"])
        self._writer.write(head.encode() + request.body)

    async def ask(self, request: Request) -> "Answer":
        """Send a request, and return its answer as it begins."""
        self.send(request)
        head = await self._reader.readuntil(b"\r\n\r\n")
        first, *lines = head.decode("latin-1").split("\r\n")[:-2]
        headers = {}
        for line in lines:
            name, _, value = line.partition(":")
            headers[name.lower()] = value.strip()
        return Answer(self._reader, int(first.split(" ", 2)[1]), headers)

    def close(self) -> None:
        """Close the connection, whatever is under way."""
        self._writer.close()


class Answer:
    """An HTTP response, to be read once.

    Attributes:
        status: Its status.
        headers: Its headers, by name in lower case.
    """

    def __init__(
        self, reader: asyncio.StreamReader, status: int, headers: Mapping[str, str]
    ) -> None:
        self._reader = reader
        self.status = status
        self.headers = headers

    async def message(self) -> Any:
        """Return the JSON of the body; `None` when there is no body.

        Raises:
            WrongError: It is no JSON.
        """
        length = int(self.headers.get("content-length", -1))
        if length == 0:
            return None
        expect(self.headers.get("content-type"), "application/json")
        return from_json(await self._reader.readexactly(length))

    async def events(self) -> AsyncIterator[Any]:
        """Return the messages of a stream, as they come, until it ends.

        Raises:
            WrongError: It is no stream of events.
        """
        expect(self.status, 200)
        expect(self.headers.get("content-type"), "text/event-stream")
        rest = b""
        async for chunk in self._chunks():
            *lines, rest = (rest + chunk).split(b"\n")
            for line in lines:
                # One line an event; one without data only has an id.
                if line.startswith(b"data: "):
                    yield from_json(line[6:])
        expect(rest, b"")

    async def _chunks(self) -> AsyncIterator[bytes]:
        while size := int(await self._reader.readuntil(b"\r\n"), 16):
            yield (await self._reader.readexactly(size + 2))[:-2]
        await self._reader.readexactly(2)
