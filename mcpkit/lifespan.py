"""An app's lifespan, with or without a host that knows of it.

A server that speaks the ASGI lifespan protocol enters it at start-up. Where
nobody does, as under `mount`, the first request enters it, and it is left when
the event loop ends.

The context variables that it sets are visible in the requests, unless they have
a value of their own; those of the request that enters it are not visible in it.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from contextvars import Context, ContextVar, copy_context
from typing import Any, Final

_UNSET: Final = object()


class Lifespan:
    """Enters an app's lifespan once an event loop.

    Args:
        factory: What `App(lifespan=...)` was given.
        app: What the factory is called with.
        publish: Called with what the lifespan yields, before the first request.
    """

    def __init__(
        self,
        factory: Callable[[Any], AbstractAsyncContextManager[Any]],
        app: Any,
        publish: Callable[[Any], None],
    ) -> None:
        self._factory = factory
        self._app = app
        self._publish = publish
        self._entered: dict[asyncio.AbstractEventLoop, asyncio.Future[None]] = {}
        self._holders: set[asyncio.Task[None]] = set()
        self._outside = copy_context()
        # Each with the value that it had before, and the one that it was given.
        self._variables: list[tuple[ContextVar[Any], Any, Any]] = []

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Hold the lifespan open, for a host that enters and leaves it.

        A host that includes the app several times enters it several times; the
        first time holds it for all.

        Raises:
            Exception: Whatever the lifespan raised while it was entered.
        """
        loop = asyncio.get_running_loop()
        if loop in self._entered:
            await self.ensure()
            yield
        else:
            async with self._open(loop, self._begin(loop)):
                yield

    async def ensure(self) -> None:
        """Enter the lifespan, unless it was entered in this event loop.

        The context variables that it set are set for the caller.

        Raises:
            Exception: Whatever the lifespan raised while it was entered.
        """
        loop = asyncio.get_running_loop()
        entered = self._entered.get(loop)
        if entered is None:
            entered = self._begin(loop)
            holder = loop.create_task(
                self._hold(loop, entered), context=self._outside.copy()
            )
            self._holders.add(holder)
            holder.add_done_callback(self._holders.discard)
        await asyncio.shield(entered)
        for variable, before, value in self._variables:
            if variable.get(_UNSET) is before:
                variable.set(value)

    def _begin(self, loop: asyncio.AbstractEventLoop) -> asyncio.Future[None]:
        entered = self._entered[loop] = loop.create_future()
        # Nobody may be waiting any more when it fails.
        entered.add_done_callback(asyncio.Future.exception)
        return entered

    @asynccontextmanager
    async def _open(
        self, loop: asyncio.AbstractEventLoop, entered: asyncio.Future[None]
    ) -> AsyncIterator[None]:
        before = copy_context()
        try:
            async with self._factory(self._app) as value:
                self._variables = _changes(before, copy_context())
                self._publish(value)
                entered.set_result(None)
                yield
        except BaseException as error:
            if not entered.done():
                entered.set_exception(error)
            raise
        finally:
            # Whoever comes next enters it again.
            del self._entered[loop]

    async def _hold(
        self, loop: asyncio.AbstractEventLoop, entered: asyncio.Future[None]
    ) -> None:
        try:
            async with self._open(loop, entered):
                # The end of the loop is one like any other, not an error.
                with suppress(asyncio.CancelledError):
                    await asyncio.Event().wait()
        except BaseException:
            # Whoever waits for it raises what happened before it was entered.
            if entered.exception() is None:
                raise


def _changes(before: Context, after: Context) -> list[tuple[ContextVar[Any], Any, Any]]:
    return [
        (variable, before.get(variable, _UNSET), value)
        for variable, value in after.items()
        if before.get(variable, _UNSET) is not value
    ]
