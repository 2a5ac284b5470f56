"""One HTTP request that may become a stream of events.

A handler that never waits and never reports is answered with JSON, and nothing here
is used. One that reports, or takes longer than 15 seconds, is answered with a stream
from then on; what it sends, it sends to the client itself, so that a slow reader
slows it down.

    modern    closing the response cancels the handler
    legacy    it does not: the stream has event ids, and what the client misses is
              kept for it to come back for

Spec 2026-07-28, basic/transports/streamable-http: Receiving Messages; 2025-11-25,
basic/transports.
"""

import asyncio
import re
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Iterable,
    Mapping,
    MutableMapping,
)
from typing import Any, Final, TypeAlias

from mcpkit.context import Context
from mcpkit.guard import accepts
from mcpkit.protocol import sse
from mcpkit.protocol.headers import Headers
from mcpkit.protocol.jsonrpc import encode
from mcpkit.replay import Buffer, Follower, Replay

Scope: TypeAlias = MutableMapping[str, Any]
Message: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]
RawHeaders: TypeAlias = list[tuple[bytes, bytes]]

WATCH_AFTER: Final = 0.02
"""How long a request waits, in seconds, before its client is watched."""

KEEP_ALIVE: Final = 15.0
"""How long a client hears nothing, in seconds, before it is told that all is well."""

RETRY_MS: Final = 1000
"""When a client whose connection was closed may come back, in milliseconds."""

_CONTROL: Final = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")

# What only who sends the body can say of it.
_OF_THE_BODY: Final = frozenset({"content-length", "content-type", "transfer-encoding"})


class Exchange:
    """One HTTP request and what is sent back, the channel of its handler.

    Args:
        receive: Where what the client does comes from.
        send: Where what is sent goes.
        headers: The headers of the request.
        cors: Headers of the response, for the page that asks.
        replay: Where what legacy clients miss is kept.

    Attributes:
        began: It is a stream by now.
    """

    began = False
    _is_open = True
    _buffer: Buffer | None = None
    _turn: Follower | None = None
    _lock: asyncio.Lock | None = None
    _cancel: Callable[[], None] | None = None
    _timer: asyncio.TimerHandle | None = None
    _watcher: asyncio.Task[None] | None = None
    _speaker: asyncio.Task[None] | None = None

    def __init__(
        self,
        receive: Receive,
        send: Send,
        headers: Headers,
        cors: RawHeaders,
        replay: Replay,
    ) -> None:
        self._receive = receive
        self._send = send
        self._headers = headers
        self._cors = cors
        self._replay = replay

    @property
    def admits_stream(self) -> bool:
        """Whether the client takes a stream of events."""
        return accepts(self._headers.get(b"accept"), b"text/event-stream")

    async def send(self, context: Context, message: Mapping[str, Any]) -> None:
        """Send a message before the response, if the client takes a stream."""
        if await self.begin(context):
            await self._put(encode(message))

    async def close(self, context: Context) -> None:
        """Close the connection of a client that can come back for the rest."""
        if await self.begin(context) and self._buffer is not None:
            await self.write(sse.retry(RETRY_MS))
            await self.end()

    async def finish(self, body: bytes) -> None:
        """End the stream with the response, or with none if it was cancelled."""
        if body:
            await self._put(body)
        if self._buffer is not None:
            self._buffer.finish()
        await self.end()

    async def follow(
        self, context: Context, events: AsyncIterator[tuple[str, bytes]]
    ) -> None:
        """Send events under the ids that they have, as they come."""
        await self.start(context)
        async for event_id, data in events:
            await self.write(sse.event(data, event_id=event_id))

    async def write(self, event: bytes) -> None:
        """Send an encoded event."""
        async with self._locked():
            await self._write(event)

    async def end(self) -> None:
        """End the stream as it is."""
        async with self._locked():
            await self._end()

    async def begin(self, context: Context) -> bool:
        """Make it a stream, and return whether it is one."""
        if not self.began:
            if not self.admits_stream:
                return False
            async with self._locked():
                if not self.began:
                    await self._begin(context)
        return True

    def watch(self, context: Context, cancel: Callable[[], None] | None) -> None:
        """Look whether the client is still there, once some time has passed."""
        self._cancel = cancel
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(WATCH_AFTER, self._begin_watching, context)

    def unwatch(self) -> None:
        """Look no more."""
        self._cancel = None
        if self._timer is not None:
            self._timer.cancel()
        for task in (self._watcher, self._speaker):
            if task is not None:
                task.cancel()

    async def start(self, context: Context) -> None:
        """Begin a stream that nothing is kept of."""
        headers = [*sse.HEADERS, *self._cors]
        if context.cleanup is not None:
            headers += raw_headers(context.cleanup.headers)
        await self._send(
            {"type": "http.response.start", "status": 200, "headers": headers}
        )
        self.began = True

    async def _begin(self, context: Context) -> None:
        await self.start(context)
        session = context.session
        if context.era == "modern" or session is None:
            return
        self._buffer = self._replay.open(session.id)
        self._turn = self._buffer.follow()
        if context.revision.polling:
            await self._write(sse.priming(self._buffer.event_id(0), RETRY_MS))

    async def _put(self, data: bytes) -> None:
        async with self._locked():
            event_id = None if self._buffer is None else self._buffer.append(data)
            await self._write(sse.event(data, event_id=event_id))

    async def _write(self, body: bytes) -> None:
        # A client that came back for the rest has it over another connection.
        if self._is_open and not (self._turn is not None and self._turn.displaced):
            await self._send(
                {"type": "http.response.body", "body": body, "more_body": True}
            )

    async def _end(self) -> None:
        if self._is_open:
            self._is_open = False
            await self._send({"type": "http.response.body", "body": b""})

    def _locked(self) -> asyncio.Lock:
        if self._lock is None:
            self._lock = asyncio.Lock()
        return self._lock

    def _begin_watching(self, context: Context) -> None:
        loop = asyncio.get_running_loop()
        self._watcher = loop.create_task(self._watch())
        self._timer = loop.call_later(KEEP_ALIVE, self._say_something, context)

    async def _watch(self) -> None:
        """Wait for the client to close the connection."""
        while (await self._receive())["type"] != "http.disconnect":
            pass
        # A connection that was closed here is not one that the client closed.
        if not self._is_open:
            return
        self._is_open = False
        if self._cancel is not None:
            self._cancel()

    def _say_something(self, context: Context) -> None:
        loop = asyncio.get_running_loop()
        self._speaker = loop.create_task(self._keep_alive(context))

    async def _keep_alive(self, context: Context) -> None:
        if await self.begin(context):
            async with self._locked():
                await self._write(sse.COMMENT)
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(KEEP_ALIVE, self._say_something, context)


def raw_headers(headers: Iterable[tuple[str, str]]) -> RawHeaders:
    """Return headers as ASGI has them, those of the body left out.

    What a host puts into an HTTPException must not break the response.
    """
    return [
        (
            name.lower().encode("latin-1"),
            _CONTROL.sub(" ", value).encode("latin-1", "replace"),
        )
        for name, value in headers
        if name.lower() not in _OF_THE_BODY
    ]
