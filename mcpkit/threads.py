"""Where sync handlers run, so that one that blocks does not stop the others."""

import asyncio
import contextvars
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

# What an exception is set on: a future can't hold a StopIteration, and an exit
# or an interrupt must not leave the thread.
_Outcome = tuple[Any, BaseException | None]


class Threads:
    """A bounded pool of threads, which start when they are first needed.

    Args:
        limit: How many run at once; further calls wait for one.
    """

    def __init__(self, limit: int) -> None:
        self._pool = ThreadPoolExecutor(limit, thread_name_prefix="mcpkit")

    async def run(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Call a function in a thread, in the context of the caller."""
        context = contextvars.copy_context()

        def call() -> _Outcome:
            try:
                return context.run(function, *args, **kwargs), None
            except BaseException as error:  # noqa: BLE001  # raised again, where it is awaited
                return None, error

        loop = asyncio.get_running_loop()
        value, error = await loop.run_in_executor(self._pool, call)
        if error is not None:
            raise error
        return value
