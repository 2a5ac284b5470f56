"""Who is told that the process is about to stop, while its streams are still open?

A server that is asked to stop waits for open responses before it ends an app's
lifespan: a stream that never ends by itself would keep it waiting for ever. So
`on_shutdown` listens to the same signals, ahead of the server.

The handler of a signal is replaced by one that tells who registered, and then calls
the one it replaced: what the signal did before, it still does. When nobody is
registered any more, the old handler is back. Signals that are ignored, or that end a
process on the spot, are left alone: there is nothing to tell.

A request that was on its way when the signal came may open a stream after it. uvicorn
notes in `should_exit` that it is about to stop, and the handler of the signals is a
method of what has the note: who registers then is told at once. Other servers have a
limit of their own to the time that they wait.
"""

import asyncio
import contextlib
import signal
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any, Final, TypeAlias

_SIGNALS: Final = [
    getattr(signal, name)
    for name in ("SIGINT", "SIGTERM", "SIGBREAK")
    if hasattr(signal, name)
]
"""What asks a process to stop. SIGBREAK is there on Windows only."""

_Registration: TypeAlias = tuple[asyncio.AbstractEventLoop, Callable[[], object]]

_registered: Final[dict[object, _Registration]] = {}


def on_shutdown(close: Callable[[], object]) -> Callable[[], None]:
    """Have a function called when the process is asked to stop.

    To be called with an event loop running. The server must have installed its own
    handlers by then, as it has when it serves a request.

    Outside of the main thread nothing is registered: Python lets no other thread
    handle signals, and servers don't either there.

    Args:
        close: Called once at most, in the event loop that runs now, and not before
            this returns. It must return soon; what it raises goes to the exception
            handler of the loop.

    Returns:
        What takes the registration back, as often as one likes.

    Raises:
        RuntimeError: No event loop is running.
    """
    loop = asyncio.get_running_loop()
    registration = object()
    if _in_main_thread():
        if _is_stopping():
            loop.call_soon(close)
            return _nothing
        _registered[registration] = (loop, close)
        _install()

    def remove() -> None:
        _registered.pop(registration, None)
        if not _registered and _in_main_thread():
            _uninstall()

    return remove


class _Told:
    """A handler that tells of a signal before the handler that was there does its part.

    Each installation is one of its own. A server that starts later, and puts back what
    it found when it ends, finds the chain as it left it.
    """

    def __init__(self, previous: Callable[[int, FrameType | None], Any]) -> None:
        self.previous = previous

    def __call__(self, number: int, frame: FrameType | None) -> None:
        waiting = list(_registered.values())
        _registered.clear()
        for loop, close in waiting:
            # Who has left its loop without a word need not be told.
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(close)
        _uninstall()
        self.previous(number, frame)


def _in_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()


def _nothing() -> None:
    """Take back what was not registered."""


def _is_stopping() -> bool:
    """Whether a server that handles the signals is stopping already."""
    return any(
        getattr(getattr(_behind(number), "__self__", None), "should_exit", False)
        for number in _SIGNALS
    )


def _behind(number: int) -> object:
    """Return the handler of a signal without what is ahead of it here."""
    handler: object = signal.getsignal(number)
    while isinstance(handler, _Told):
        handler = handler.previous
    return handler


def _install() -> None:
    for number in _SIGNALS:
        current = signal.getsignal(number)
        if callable(current) and not isinstance(current, _Told):
            signal.signal(number, _Told(current))


def _uninstall() -> None:
    for number in _SIGNALS:
        current = signal.getsignal(number)
        if isinstance(current, _Told):
            signal.signal(number, current.previous)
