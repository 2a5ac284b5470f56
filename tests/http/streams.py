"""One request to an app in this process, by a client that may go, or not read.

And the ways in which an app can be served, for what must hold in each of them.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from fastapi import Depends, FastAPI, Request, Response

from mcpkit import App
from tests.http.client import JSON_HEADERS, Json, headers_of

PATIENCE: Final = 20
"""Seconds after which what hangs is given up."""

Event: TypeAlias = Mapping[str, Any]
Message: TypeAlias = dict[str, Any]


@dataclass
class Client:
    """A client of one request.

    Attributes:
        app: What it speaks to.
        sent: What it was sent: events of ASGI.
        gone: It has closed the connection.
        reads: It reads what it is sent. As long as it does not, the server waits.
    """

    app: Any
    sent: list[Event] = field(default_factory=list)
    gone: asyncio.Event = field(default_factory=asyncio.Event)
    reads: asyncio.Event = field(default_factory=asyncio.Event)
    _changed: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        self.reads.set()

    async def ask(
        self,
        message: Json,
        headers: Mapping[str, str] | None = None,
        *,
        address: str = "127.0.0.1",
    ) -> "Client":
        """Send a request, and return when the app is done with it."""
        has_params = isinstance(message.get("params"), dict)
        usual = headers_of(message) if has_params else JSON_HEADERS
        lines = {"host": "localhost", **usual, **(headers or {})}
        scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": "POST",
            "scheme": "http",
            "path": "/mcp",
            "raw_path": b"/mcp",
            "root_path": "",
            "query_string": b"",
            "headers": [(name.encode(), text.encode()) for name, text in lines.items()],
            "client": (address, 1234),
            "server": ("localhost", 80),
        }
        body: list[Message] = [
            {"type": "http.request", "body": json.dumps(message).encode()}
        ]

        async def receive() -> Message:
            if body:
                return body.pop()
            await self.gone.wait()
            return {"type": "http.disconnect"}

        async with asyncio.timeout(PATIENCE):
            await self.app(scope, receive, self._send)
        return self

    async def until(self, holds: Callable[["Client"], object]) -> None:
        """Wait until something holds of what was sent."""
        async with asyncio.timeout(PATIENCE):
            while not holds(self):
                self._changed.clear()
                await self._changed.wait()

    async def _send(self, event: Event) -> None:
        await self.reads.wait()
        # What is sent to one who is gone arrives nowhere.
        if not self.gone.is_set():
            self.sent.append(event)
            self._changed.set()

    @property
    def status(self) -> int:
        """The status of the response."""
        return int(self.sent[0]["status"])

    @property
    def headers(self) -> dict[str, str]:
        """The headers of the response."""
        return {
            name.decode(): value.decode() for name, value in self.sent[0]["headers"]
        }

    @property
    def body(self) -> bytes:
        """The body, as far as it came."""
        return b"".join(event.get("body", b"") for event in self.sent[1:])

    @property
    def is_stream(self) -> bool:
        """Whether the response is a stream of events."""
        return self.headers["content-type"] == "text/event-stream"

    @property
    def has_ended(self) -> bool:
        """Whether the response has come to its end."""
        return bool(self.sent) and not self.sent[-1].get("more_body", False)

    @property
    def messages(self) -> list[Any]:
        """The JSON-RPC messages of a response that is whole: notifications, then it."""
        assert self.status == 200, self.sent
        assert [event["type"] for event in self.sent] == [
            "http.response.start",
            *["http.response.body"] * (len(self.sent) - 1),
        ]
        assert self.has_ended
        if self.is_stream:
            assert "content-length" not in self.headers
            return events(self.body)
        assert self.headers["content-length"] == str(len(self.body))
        return [json.loads(self.body)]


def events(body: bytes) -> list[Any]:
    """Return the messages of a stream whose events have one line of data and no more.

    Comments are passed over.
    """
    blocks = body.replace(b":\n", b"").decode().split("\n\n")
    assert blocks.pop() == ""
    for block in blocks:
        assert block.startswith("data: "), block
        assert block.splitlines() == [block]
    return [json.loads(block.removeprefix("data: ")) for block in blocks]


async def yielding(request: Request) -> AsyncIterator[None]:
    """Be a dependency of the host that is open as long as its request."""
    yield
    request.app.state.closed.append(request.url.path)


def alone(app: App) -> Any:
    """Serve an app by itself."""
    return app


def mounted(app: App) -> FastAPI:
    """Serve an app at the root of another."""
    host = FastAPI()
    host.mount("/", app)
    return host


def included(app: App) -> FastAPI:
    """Include the router of an app, with dependencies that yield."""
    host = FastAPI()
    host.state.closed = []
    host.include_router(app.router, dependencies=[Depends(yielding)])
    return host


def behind(app: Callable[[App], FastAPI]) -> Callable[[App], FastAPI]:
    """Serve an app so, behind a middleware of the host."""

    def serve(served: App) -> FastAPI:
        host = app(served)

        @host.middleware("http")
        async def _(
            request: Request, call_next: Callable[[Request], Awaitable[Response]]
        ) -> Response:
            return await call_next(request)

        return host

    return serve


WAYS: Final[Mapping[str, Callable[[App], Any]]] = {
    "alone": alone,
    "mounted": mounted,
    "included": included,
    "mounted behind a middleware": behind(mounted),
    "included behind a middleware": behind(included),
}
"""The ways in which an app is served."""
