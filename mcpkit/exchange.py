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
import time
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

KEEP_ALIVE: Final = 15.0
"""How long a client hears nothing, in seconds, before it is told that all is well."""

RETRY_MS: Final = 1000
"""When a client whose connection was closed may come back, in milliseconds."""

_PAUSE: Final = 0.02
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
        takes_json: The response can be plain JSON: no stream began, and the client
            is there.
        is_over: There is a response, and no message can come before it any more.
    """

    takes_json = True
    is_over = False
    _began = False
    _is_open = True
    _has_left = False
    _left_at: float | None = None
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

    @property
    def away_since(self) -> float | None:
        """Since when the client has no connection, by `time.monotonic`.

        One that lost it may come back for the rest over another.
        """
        return self._left_at if self._buffer is None else self._buffer.away_since

    async def send(self, context: Context, message: Mapping[str, Any]) -> None:
        """Send a message before the response, if the client takes a stream."""
        if self.is_over or not self._can_stream:
            return
        data = encode(message)
        # Who comes first begins, and is the first to be heard.
        async with self._locked():
            await self._begin(context)
            await self._put(data)

    async def close(self, context: Context) -> None:
        """Close the connection of a client that can come back for the rest."""
        comes_back = context.session is not None and context.revision.polling
        if self.is_over or not (comes_back and self._can_stream):
            return
        async with self._locked():
            await self._begin(context)
            await self._write(sse.retry(RETRY_MS))
            await self._end()

    async def finish(self, body: bytes) -> bool:
        """End the stream with the response, or with none if it was cancelled.

        Returns:
            Whether there was a stream.
        """
        async with self._locked():
            if body:
                await self._put(body)
            if self._buffer is not None:
                self._buffer.finish()
            if self._began:
                await self._end()
        return self._began

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

    def watch(self, context: Context, cancel: Callable[[], None] | None) -> None:
        """Look whether the client is still there, and tell it that all is well."""
        self._cancel = cancel
        if self._has_left:
            self._leave()
            return
        loop = asyncio.get_running_loop()
        self._watcher = loop.create_task(self._watch())
        if self._can_stream:
            self._timer = loop.call_later(KEEP_ALIVE, self._say_something, context)

    def unwatch(self) -> None:
        """Look no more."""
        self._cancel = None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._watcher is not None:
            self._watcher.cancel()
            # It holds what receives, which may hold this.
            self._watcher = None

    async def start(self, context: Context) -> None:
        """Begin a stream that nothing is kept of."""
        headers = [*sse.HEADERS, *self._cors]
        if context.cleanup is not None:
            headers += raw_headers(context.cleanup.headers)
        # Before it is sent: while that takes its time, there may be a response.
        self._began, self.takes_json = True, False
        try:
            await self._transmit(
                {"type": "http.response.start", "status": 200, "headers": headers}
            )
        except asyncio.CancelledError:
            self._began, self.takes_json = False, self._is_open
            raise

    @property
    def _can_stream(self) -> bool:
        return self._began or (self._is_open and self.admits_stream)

    async def _begin(self, context: Context) -> None:
        if self._began:
            return
        await self.start(context)
        session = context.session
        if context.era == "modern" or session is None:
            return
        self._buffer = self._replay.open(session.id)
        self._turn = self._buffer.follow()
        if context.revision.polling:
            await self._write(sse.priming(self._buffer.event_id(0), RETRY_MS))

    async def _put(self, data: bytes) -> None:
        event_id = None if self._buffer is None else self._buffer.append(data)
        await self._write(sse.event(data, event_id=event_id))

    async def _write(self, body: bytes) -> None:
        # A client that came back for the rest has it over another connection.
        if self._is_open and not (self._turn is not None and self._turn.displaced):
            await self._transmit(
                {"type": "http.response.body", "body": body, "more_body": True}
            )

    async def _end(self) -> None:
        if self._is_open:
            self._is_open = False
            self._disconnect()
            await self._transmit({"type": "http.response.body", "body": b""})

    async def _transmit(self, message: Message) -> None:
        try:
            await self._send(message)
        except OSError:
            # So some servers say that the client has gone. A handler that is
            # cancelled by it must not be running meanwhile.
            asyncio.get_running_loop().call_soon(self._leave)

    def _locked(self) -> asyncio.Lock:
        if self._lock is None:
            self._lock = asyncio.Lock()
        return self._lock

    async def _watch(self) -> None:
        """Wait for the client to close the connection."""
        while (await self._receive())["type"] != "http.disconnect":
            # There are middlewares that give the body again and again.
            await asyncio.sleep(_PAUSE)
        self._leave()

    def _leave(self) -> None:
        # A connection that was closed here is not one that the client closed.
        if self._is_open:
            self._is_open = self.takes_json = False
            self._has_left = True
            self._disconnect()
        if self._has_left and self._cancel is not None:
            self._cancel()

    def _disconnect(self) -> None:
        self._left_at = time.monotonic()
        if self._turn is not None:
            self._turn.leave()

    def _say_something(self, context: Context) -> None:
        loop = asyncio.get_running_loop()
        self._speaker = loop.create_task(self._keep_alive(context))

    async def _keep_alive(self, context: Context) -> None:
        async with self._locked():
            # The response may have been made while it had to wait.
            if self._timer is None or not self._can_stream:
                return
            await self._begin(context)
            await self._write(sse.COMMENT)
        if self._timer is not None:
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
