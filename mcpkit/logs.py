"""The records of the standard library's logging, sent to the client of a request.

    logging.getLogger("shop").addHandler(LogHandler())

What is logged while a request is served, in the handler, in its tasks or in a thread
of it, goes to the client of that request, if it asked for log messages of the level.
Nothing else does: not what is logged between requests, nor mcpkit's own records, nor
tracebacks.

A record waits for nothing. It is sent when the request next waits for something, and
before the response at the latest; a client that reads slowly misses some of many.

Spec 2026-07-28, server/utilities/logging.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from contextvars import ContextVar
from functools import partial
from threading import Lock
from typing import Any, Final, Protocol, TypeVar

from mcpkit.context import Channel, Context, Host
from mcpkit.protocol.era import LOG_LEVELS
from mcpkit.protocol.notifications import log_message

MAX_WAITING: Final = 256
"""How many records of a request may wait to be sent. Further ones are dropped."""

_LEVELS: Final = (
    (logging.CRITICAL, "critical"),
    (logging.ERROR, "error"),
    (logging.WARNING, "warning"),
    (logging.INFO, "info"),
)

_logger: Final = logging.getLogger("mcpkit")
_counting: Final = Lock()
_current: Final[ContextVar["_Records | None"]] = ContextVar("mcpkit_log", default=None)


class LogHandler(logging.Handler):
    """Sends what is logged while a request is served to the client of the request.

    Put it on the loggers of your own: what others log, a client has no use for, and
    may not be allowed to see. With a formatter, its text is sent, and with that what
    it makes of a traceback; without one, the message alone.

    Args:
        level: The lowest level that is sent.
    """

    in_use = 0
    """How many there are that were not closed: while there is none, requests need not
    be told apart."""

    def __init__(self, level: int | str = logging.NOTSET) -> None:
        super().__init__(level)
        self._is_open = True
        with _counting:
            LogHandler.in_use += 1

    def emit(self, record: logging.LogRecord) -> None:
        """Send a record, once the request gets to it; wait for nothing."""
        records = _current.get()
        if records is None or record.name.partition(".")[0] == "mcpkit":
            return
        level = next(
            (name for least, name in _LEVELS if record.levelno >= least), "debug"
        )
        if not records.take(level):
            return
        try:
            text = self.format(record) if self.formatter else record.getMessage()
        except Exception:  # noqa: BLE001  # as handlers of the standard library do
            self.handleError(record)
        else:
            records.add(log_message(level, text, record.name))

    def close(self) -> None:
        """Send nothing more, of the requests that begin from now on."""
        with _counting:
            if self._is_open:
                self._is_open = False
                LogHandler.in_use -= 1
        super().close()


class _Reply(Protocol):
    @property
    def status(self) -> int: ...


R = TypeVar("R", bound=_Reply)


async def followed(
    host: Host, context: Context, serve: Callable[[], Awaitable[R]]
) -> R:
    """Serve a request, and send its client what is logged meanwhile.

    Args:
        host: Tells which level the client wants.
        context: The request.
        serve: Serves it.
    """
    records = await _records(host, context)
    # What is served within another request is not for the client of that.
    around = _current.get()
    _current.set(records)
    try:
        reply = await serve()
        # An answer with a status of its own stays one. Who cancelled hears nothing.
        if records is not None and reply.status == 200:
            await records.flush()
        return reply
    finally:
        _current.set(around)
        if records is not None:
            records.end()


async def _records(host: Host, context: Context) -> "_Records | None":
    """Return what takes the records of a request; `None` when its client wants none."""
    channel = context.channel
    # The id of a new session is in a header, which a stream would be sent before.
    if channel is None or context.method == "initialize":
        return None
    try:
        threshold = await host.log_threshold(context)
    # Of a backend that can't be reached, say. The request may not need it.
    except Exception:
        _logger.exception("%s: the level of its log is not known", context.method)
        return None
    if threshold is None or not channel.admits_stream:
        return None
    return _Records(channel, context, LOG_LEVELS.index(threshold))


class _Records:
    """What was logged while one request is served, and waits to be sent.

    Args:
        channel: How it is sent.
        context: The request.
        least: The lowest level that is sent, by its place in `LOG_LEVELS`.
    """

    def __init__(self, channel: Channel, context: Context, least: int) -> None:
        self._send: Callable[[Mapping[str, Any]], Awaitable[None]] | None
        self._send = partial(channel.send, context)
        self._least = least
        self._loop = asyncio.get_running_loop()
        self._lock = Lock()
        self._waiting: deque[Mapping[str, Any]] = deque()
        self._is_over = False
        self._is_sending = False
        self._sender: asyncio.Task[None] | None = None

    def take(self, level: str) -> bool:
        """Whether a record of a level would be sent."""
        return not self._is_full() and LOG_LEVELS.index(level) >= self._least

    def add(self, message: Mapping[str, Any]) -> None:
        """Have a message sent, from any thread."""
        with self._lock:
            if self._is_full():
                return
            self._waiting.append(message)
            if self._is_sending:
                return
            self._is_sending = True
        # Nobody is left in a loop that is closed.
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._begin)

    async def flush(self) -> None:
        """Send what waits, and take nothing more."""
        self._is_over = True
        if self._sender is not None:
            await self._sender
        await self._send_all()

    def end(self) -> None:
        """Send nothing more."""
        self._is_over = True
        # What lives on holds this, and must not hold the request.
        self._send = None
        self._waiting.clear()
        if self._sender is not None:
            self._sender.cancel()

    def _is_full(self) -> bool:
        return self._is_over or len(self._waiting) >= MAX_WAITING

    def _begin(self) -> None:
        if not self._is_over:
            self._sender = self._loop.create_task(self._send_all())

    async def _send_all(self) -> None:
        # What is logged while this is sent is not of the request.
        _current.set(None)
        try:
            while (message := self._next()) is not None and self._send is not None:
                await self._send(message)
        except Exception:
            self._is_over = True
            self._waiting.clear()
            _logger.exception("what was logged could not be sent")

    def _next(self) -> Mapping[str, Any] | None:
        with self._lock:
            if self._waiting:
                return self._waiting.popleft()
            self._is_sending = False
            return None
