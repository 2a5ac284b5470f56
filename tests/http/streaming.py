"""Requests to an app in this process, whose responses are read as they are sent.

    async with stream(app, listen(toolsListChanged=True)) as opened:
        assert await opened.message() == ...

Leaving closes the connection, as a client does, and waits for the app to notice.
"""

import asyncio
import json
from asyncio import all_tasks
from collections.abc import AsyncIterator, Mapping, MutableMapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Final

from anyio import wait_all_tasks_blocked

from mcpkit import App
from tests.http.client import JSON_HEADERS, LEGACY, Json, headers_of, modern, post

PATIENCE: Final = 20
"""Seconds after which whatever hangs gives up."""

SUBSCRIPTION: Final = "io.modelcontextprotocol/subscriptionId"


@dataclass(frozen=True)
class Event:
    """One event of a stream.

    Attributes:
        data: The message; `None` where there is no data.
        id: Where to come back to.
        retry: When, in milliseconds.
    """

    data: Any
    id: str | None = None
    retry: int | None = None


class Stream:
    """One request and its response.

    Attributes:
        status: The status of the response.
        headers: Its headers.
        reads: Set while the client reads; the app waits while it does not.
        task: The app's work on it.
    """

    def __init__(
        self, app: Any, verb: str, headers: Mapping[str, str], content: bytes
    ) -> None:
        self.status = 0
        self.headers: dict[str, str] = {}
        self.reads = asyncio.Event()
        self.reads.set()
        self._chunks: asyncio.Queue[bytes | None] = asyncio.Queue()
        self._text = b""
        self._started = asyncio.Event()
        self._closed = asyncio.Event()
        self._requests = [{"type": "http.request", "body": content}]
        scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": verb,
            "path": "/mcp",
            "raw_path": b"/mcp",
            "query_string": b"",
            "root_path": "",
            "scheme": "http",
            "headers": [
                (name.lower().encode(), value.encode())
                for name, value in {"host": "localhost", **headers}.items()
            ],
            "client": ("127.0.0.1", 1),
            "server": ("127.0.0.1", 80),
        }
        self.task = asyncio.create_task(app(scope, self._receive, self._send))
        # However it ends, who waits is not kept waiting.
        self.task.add_done_callback(lambda _: self._end())

    async def event(self) -> Event:
        """Read the next event.

        Raises:
            EOFError: The stream has ended.
        """
        while True:
            while b"\n\n" not in self._text:
                chunk = await self._chunks.get()
                if chunk is None:
                    self._chunks.put_nowait(None)
                    raise EOFError(self._text.decode())
                self._text += chunk
            text, self._text = self._text.split(b"\n\n", 1)
            fields = dict(
                line.split(":", 1) for line in text.decode().split("\n") if line
            )
            fields.pop("", None)
            if fields:
                return _event(fields)

    async def message(self) -> Any:
        """Read the message of the next event."""
        return (await self.event()).data

    async def rest(self) -> list[Any]:
        """Read the messages that are left, to the end of the stream."""
        messages = []
        while True:
            try:
                messages.append(await self.message())
            except EOFError:
                return messages

    async def body(self) -> Any:
        """Read a response that is no stream."""
        body = b""
        while (chunk := await self._chunks.get()) is not None:
            body += chunk
        return json.loads(body) if body else None

    async def started(self) -> None:
        """Wait for the status and the headers."""
        await self._started.wait()

    async def close(self) -> None:
        """Close the connection, and wait for the app to be done with it."""
        self._closed.set()
        self.reads.set()
        await self.task

    async def _receive(self) -> MutableMapping[str, Any]:
        if self._requests:
            return self._requests.pop()
        await self._closed.wait()
        return {"type": "http.disconnect"}

    async def _send(self, message: MutableMapping[str, Any]) -> None:
        await self.reads.wait()
        if message["type"] == "http.response.start":
            self.status = message["status"]
            self.headers = {
                name.decode(): value.decode() for name, value in message["headers"]
            }
            self._started.set()
        elif not self._closed.is_set():
            self._chunks.put_nowait(message.get("body", b""))
            if not message.get("more_body", False):
                self._chunks.put_nowait(None)

    def _end(self) -> None:
        self._started.set()
        self._chunks.put_nowait(None)


def _event(fields: Mapping[str, str]) -> Event:
    data = fields.get("data", "").strip()
    return Event(
        data=json.loads(data) if data else None,
        id=fields["id"].strip() if "id" in fields else None,
        retry=int(fields["retry"]) if "retry" in fields else None,
    )


@asynccontextmanager
async def stream(
    app: Any,
    message: Json | None = None,
    headers: Mapping[str, str] | None = None,
) -> AsyncIterator[Stream]:
    """Post a message, or listen where there is none, and read what comes.

    Args:
        app: Any ASGI application.
        message: What is posted.
        headers: Headers beside those that go with it.
    """
    usual = headers_of(message) if message else {"accept": "text/event-stream"}
    content = json.dumps(message).encode() if message else b""
    opened = Stream(
        app, "POST" if message else "GET", {**usual, **(headers or {})}, content
    )
    async with asyncio.timeout(PATIENCE):
        try:
            await opened.started()
            yield opened
        except BaseException:
            # What the app waits for may never come any more.
            opened.task.cancel()
            raise
        else:
            await opened.close()


def listen(request_id: Any = 1, **notifications: Any) -> Json:
    """Build the modern request that opens a stream of changes."""
    params = {"notifications": notifications}
    return modern("subscriptions/listen", params, request_id=request_id)


def acknowledged(subscription: Any = 1, **honoured: Any) -> Json:
    """Return what is to come first in a stream of changes."""
    params = {"_meta": {SUBSCRIPTION: subscription}, "notifications": honoured}
    return _notification("subscriptions/acknowledged", params)


def changed(kind: str, subscription: Any = None) -> Json:
    """Return the message that a list has changed, to a subscription or a session."""
    return _notification(f"{kind}/list_changed", _of(subscription))


def updated(uri: str, subscription: Any = None) -> Json:
    """Return the message that a resource was updated."""
    return _notification("resources/updated", {**_of(subscription), "uri": uri})


def completed(subscription: Any = 1, name: str = "bookshop") -> Json:
    """Return what ends a stream of changes of a server at version 1.0.0."""
    info = {"name": name, "version": "1.0.0"}
    meta = {SUBSCRIPTION: subscription, "io.modelcontextprotocol/serverInfo": info}
    result = {"resultType": "complete", "_meta": meta}
    return {"jsonrpc": "2.0", "id": subscription, "result": result}


def _of(subscription: Any) -> Json:
    return {} if subscription is None else {"_meta": {SUBSCRIPTION: subscription}}


def _notification(name: str, params: Json) -> Json:
    return {"jsonrpc": "2.0", "method": f"notifications/{name}", "params": params}


def in_session(token: str, after: str | None = None) -> dict[str, str]:
    """Return the headers of a request in a session, after an event of it."""
    last = {} if after is None else {"last-event-id": after}
    return {"mcp-session-id": token, **last}


async def request(app: Any, token: str, message: Json) -> Any:
    """Post a message in a session, and return the answer."""
    headers = {**JSON_HEADERS, **in_session(token)}
    reply = await post(app, message, headers, version=LEGACY)
    return reply.json()


@asynccontextmanager
async def lifespan(app: Any) -> AsyncIterator[None]:
    """Run the lifespan of an app, as a server does."""
    asked: asyncio.Queue[MutableMapping[str, Any]] = asyncio.Queue()
    said: asyncio.Queue[MutableMapping[str, Any]] = asyncio.Queue()
    running = asyncio.create_task(app({"type": "lifespan"}, asked.get, said.put))
    asked.put_nowait({"type": "lifespan.startup"})
    assert (await said.get())["type"] == "lifespan.startup.complete"
    yield
    asked.put_nowait({"type": "lifespan.shutdown"})
    assert (await said.get())["type"] == "lifespan.shutdown.complete"
    await running


async def closed(app: App) -> None:
    """Wait until no stream is open."""
    async with asyncio.timeout(PATIENCE):
        while len(app.subscriptions):
            await asyncio.sleep(0.001)


async def idle(app: App) -> None:
    """Wait until no stream is open, and check that no task is left of one."""
    await closed(app)
    await wait_all_tasks_blocked()
    names = [getattr(task.get_coro(), "__qualname__", "") for task in all_tasks()]
    assert [name for name in names if not name.startswith("TestRunner.")] == []
