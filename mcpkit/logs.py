"""The records of the standard library's logging, sent to the client of a request.

    logging.getLogger("shop").addHandler(LogHandler())

What is logged while a request is served, in the handler or in a thread of it, goes to
the client of that request, if it asked for log messages of the level. Nothing else
does: not what is logged between requests, nor mcpkit's own records, nor tracebacks.

Spec 2026-07-28, server/utilities/logging.
"""

import asyncio
import logging
from contextvars import ContextVar
from typing import Final

from mcpkit.context import Context
from mcpkit.protocol.era import LOG_LEVELS

MAX_WAITING: Final = 256
"""How many records of a request may wait to be sent. Further ones are dropped."""

_LEVELS: Final = (
    (logging.CRITICAL, "critical"),
    (logging.ERROR, "error"),
    (logging.WARNING, "warning"),
    (logging.INFO, "info"),
)

_current: Final[ContextVar[Context | None]] = ContextVar("mcpkit_request", default=None)


class LogHandler(logging.Handler):
    """Sends what is logged while a request is served to the client of the request.

    Put it on the loggers of your own: what others log, a client has no use for, and
    may not be allowed to see. With a formatter, its text is sent, and with that what
    it makes of a traceback; without one, the message alone.

    Args:
        level: The lowest level that is sent.
    """

    is_used = False
    """Whether there is any, so that requests are to be told apart."""

    def __init__(self, level: int | str = logging.NOTSET) -> None:
        super().__init__(level)
        LogHandler.is_used = True

    def emit(self, record: logging.LogRecord) -> None:
        """Send a record, once the request gets to it; wait for nothing."""
        context = _current.get()
        if context is None or record.name.partition(".")[0] == "mcpkit":
            return
        level = next(
            (name for least, name in _LEVELS if record.levelno >= least), "debug"
        )
        if not _is_wanted(context, level):
            return
        try:
            text = self.format(record) if self.formatter else record.getMessage()
        except Exception:  # noqa: BLE001  # as handlers of the standard library do
            self.handleError(record)
            return
        _in_its_loop(context, level, text, record.name)


def follow(context: Context) -> None:
    """Have what is logged from now on sent to the client of a request."""
    context.loop = asyncio.get_running_loop()
    _current.set(context)


async def flush(context: Context) -> None:
    """Wait until what was logged is sent, and send nothing more."""
    _current.set(None)
    if context.records:
        await asyncio.wait(context.records)


def _is_wanted(context: Context, level: str) -> bool:
    """Whether the client may want a message: of a legacy one it is not known here."""
    if context.channel is None:
        return False
    if context.era == "legacy":
        return True
    asked = context.log_level
    return asked is not None and LOG_LEVELS.index(level) >= LOG_LEVELS.index(asked)


def _in_its_loop(context: Context, level: str, text: str, logger: str) -> None:
    loop = context.loop
    if loop is None or loop.is_closed():
        return
    try:
        here = asyncio.get_running_loop() is loop
    except RuntimeError:
        here = False
    if here:
        _begin(context, level, text, logger)
    else:
        loop.call_soon_threadsafe(_begin, context, level, text, logger)


def _begin(context: Context, level: str, text: str, logger: str) -> None:
    if context.records is None:
        context.records = set()
    if len(context.records) >= MAX_WAITING:
        return
    task = asyncio.get_running_loop().create_task(_send(context, level, text, logger))
    context.records.add(task)
    task.add_done_callback(context.records.discard)


async def _send(context: Context, level: str, text: str, logger: str) -> None:
    # What is logged while this is sent is not of the request.
    _current.set(None)
    await context.log(level, text, logger=logger)
