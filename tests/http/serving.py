"""An app behind a real uvicorn, and a connection to it that is nothing but bytes."""

import asyncio
import socket
import threading
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import Any, Final, Literal

import uvicorn

Http = Literal["h11", "httptools"]

HTTPS: Final[tuple[Http, ...]] = ("h11", "httptools")
"""The ways in which uvicorn reads HTTP."""

_SECONDS: Final = 20


@contextmanager
def served(app: Any, http: Http) -> Iterator[int]:
    """Serve an app in a thread, and yield its port."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        # It listens before the server starts: early connections wait their turn.
        config = uvicorn.Config(app, http=http, ws="none", log_config=None)
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, args=[[listener]])
        thread.start()
        try:
            yield listener.getsockname()[1]
        finally:
            server.should_exit = True
            thread.join(_SECONDS)
            assert not thread.is_alive()


@dataclass(frozen=True)
class Reply:
    """One HTTP response, as it was read from a connection."""

    status: int
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True)
class Connection:
    """One connection to a server, over which requests follow one another."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    async def send(self, *parts: bytes) -> None:
        """Write bytes, each part by itself."""
        for part in parts:
            self.writer.write(part)
            await self.writer.drain()

    async def reply(self) -> Reply:
        """Read the next response.

        Raises:
            asyncio.IncompleteReadError: The server closed the connection.
        """
        head = (await self.reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        first, *lines = head.strip().split("\r\n")
        headers = {
            name.lower(): value
            for name, _, value in (line.partition(": ") for line in lines)
        }
        body = await self.reader.readexactly(int(headers.get("content-length", "0")))
        return Reply(int(first.split(" ")[1]), headers, body)

    async def is_closed(self) -> bool:
        """Whether the server ended the connection and sent nothing more."""
        try:
            return await self.reader.read() == b""
        except ConnectionResetError:
            return True


@asynccontextmanager
async def connected(port: int) -> AsyncIterator[Connection]:
    """Open a connection; what happens over it is bounded in time."""
    async with asyncio.timeout(_SECONDS):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        try:
            yield Connection(reader, writer)
        finally:
            writer.close()


def head(
    verb: str = "POST", path: str = "/mcp", headers: Mapping[str, str] | None = None
) -> bytes:
    """Encode the head of a request, with the headers that a POST needs."""
    usual = {
        "host": "localhost",
        "content-type": "application/json",
        "accept": "application/json, text/event-stream",
    }
    lines = "".join(
        f"{name}: {value}\r\n" for name, value in {**usual, **(headers or {})}.items()
    )
    return f"{verb} {path} HTTP/1.1\r\n{lines}\r\n".encode("latin-1")


def whole(
    body: bytes, headers: Mapping[str, str] | None = None, *, path: str = "/mcp"
) -> bytes:
    """Encode a POST with its body."""
    length = {"content-length": str(len(body))}
    return head(path=path, headers={**length, **(headers or {})}) + body
