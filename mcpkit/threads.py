"""Where sync handlers run, so that one that blocks does not stop the others."""

import asyncio
import contextlib
import contextvars
from collections.abc import Callable
from functools import partial
from queue import SimpleQueue
from threading import Lock, Thread
from typing import Any, Final, TypeAlias

from anyio import CancelScope

GRACE: Final = 5.0
"""How long a call is waited for, in seconds, whose caller the server or a host cancels.

They do so when the process is to end, which no handler can keep it from for ever.
"""

# What a call came to: a value or what it raised. Not set on the future as they are,
# which can't hold a StopIteration.
_Outcome: TypeAlias = tuple[Any, BaseException | None]
_Future: TypeAlias = "asyncio.Future[_Outcome]"


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
        self._work: SimpleQueue[_Call] = SimpleQueue()
        self._lock = Lock()
        self._started = 0
        self._idle = 0

    async def run(
        self, function: Callable[..., Any], /, *args: Any, **kwargs: Any
    ) -> Any:
        """Call a function in a thread, in the context of the caller.

        `call` has the rest.
        """
        return await self.call(partial(function, *args, **kwargs))

    async def call(
        self, function: Callable[[], Any], cancel: Callable[[], bool] | None = None
    ) -> Any:
        """Call a function in a thread, in the context of the caller.

        A call whose caller is cancelled before a thread takes it is not made. One
        that was taken is waited for, so that what the function uses is not taken
        from it: as long as it takes when nobody waits for its request, and for
        `GRACE` when somebody else cancels the caller. When the caller is cancelled
        again, it is not waited for any more.

        Args:
            function: What is called.
            cancel: Called when the caller is cancelled, to tell the function. It
                returns whether that is because nobody waits for the request.

        Raises:
            CancelledError: The caller was cancelled, whatever became of the call.
            BaseException: Whatever the function raised.
        """
        call = _Call(function)
        self._reserve()
        self._work.put(call)
        try:
            value, error = await call.future
        except asyncio.CancelledError:
            is_unheard = cancel is not None and cancel()
            await call.ended(None if is_unheard else GRACE)
            raise
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
            call = self._work.get()
            if call.take():
                call.deliver(call.make())
            del call
            with self._lock:
                if self._work.empty():
                    self._idle += 1


class _Call:
    """One call of a function, which a thread takes unless it is given up before."""

    __slots__ = ("_context", "_function", "_is_over", "_taken", "future")

    def __init__(self, function: Callable[[], Any]) -> None:
        self._function = function
        self._context = contextvars.copy_context()
        self._taken = Lock()
        self._is_over = False
        self.future: _Future = asyncio.get_running_loop().create_future()

    def take(self) -> bool:
        """Take it, and return whether it was still there to be taken."""
        return self._taken.acquire(blocking=False)

    def make(self) -> _Outcome:
        """Call the function."""
        try:
            return self._context.run(self._function), None
        # An exit or an interrupt is the caller's to deal with, and not the thread's.
        except BaseException as error:  # noqa: BLE001
            return None, error

    def deliver(self, outcome: _Outcome) -> None:
        """Tell who waits, in the event loop of the future."""
        # The loop may be closed by now: nobody waits any more.
        with contextlib.suppress(RuntimeError):
            self.future.get_loop().call_soon_threadsafe(self._settle, outcome)

    async def ended(self, seconds: float | None) -> None:
        """Give it up, or wait for the thread that took it."""
        if self.take() or self._is_over:
            return
        self.future = self.future.get_loop().create_future()
        # A scope of anyio cancels what it has cancelled again and again.
        with CancelScope(shield=True), contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self.future

    def _settle(self, outcome: _Outcome) -> None:
        self._is_over = True
        if not self.future.done():
            self.future.set_result(outcome)
