"""Where sync handlers run, so that one that blocks does not stop the others."""

import asyncio
import contextlib
import contextvars
from collections.abc import Callable
from queue import SimpleQueue
from threading import Lock, Thread
from typing import Any, TypeAlias

# What a call came to: a value or what it raised. Not set on the future as they are,
# which can't hold a StopIteration.
_Outcome: TypeAlias = tuple[Any, BaseException | None]
_Future: TypeAlias = "asyncio.Future[_Outcome]"
_Work: TypeAlias = tuple[_Future, contextvars.Context, Callable[[], Any]]


class Threads:
    """A bounded pool of threads, which start when they are first needed.

    The threads are daemons: a handler that blocks for ever does not keep the
    process from ending. The executors of the standard library do, and take
    several times as long to pass a call on.

    Args:
        limit: How many run at once; further calls wait for one.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._work: SimpleQueue[_Work] = SimpleQueue()
        self._lock = Lock()
        self._started = 0
        self._idle = 0

    async def run(
        self, function: Callable[..., Any], /, *args: Any, **kwargs: Any
    ) -> Any:
        """Call a function in a thread, in the context of the caller.

        A call whose caller is cancelled before a thread takes it is not made.
        """
        future: _Future = asyncio.get_running_loop().create_future()
        context = contextvars.copy_context()
        self._reserve()
        self._work.put((future, context, lambda: function(*args, **kwargs)))
        value, error = await future
        if error is not None:
            raise error
        return value

    def _reserve(self) -> None:
        """Make sure that a thread will take what is put next, or that all are busy."""
        with self._lock:
            if self._idle > 0:
                self._idle -= 1
            elif self._started < self._limit:
                self._started += 1
                name = f"mcpkit-{self._started}"
                Thread(target=self._serve, name=name, daemon=True).start()

    def _serve(self) -> None:
        while True:
            future, context, call = self._work.get()
            if not future.cancelled():
                _deliver(future, _call(context, call))
            del future, context, call
            with self._lock:
                if self._work.empty():
                    self._idle += 1


def _call(context: contextvars.Context, call: Callable[[], Any]) -> _Outcome:
    try:
        return context.run(call), None
    # An exit or an interrupt is the caller's to deal with, and not the thread's.
    except BaseException as error:  # noqa: BLE001
        return None, error


def _deliver(future: _Future, outcome: _Outcome) -> None:
    # The loop may be closed by now: nobody waits any more.
    with contextlib.suppress(RuntimeError):
        future.get_loop().call_soon_threadsafe(_settle, future, outcome)


def _settle(future: _Future, outcome: _Outcome) -> None:
    if not future.done():
        future.set_result(outcome)
