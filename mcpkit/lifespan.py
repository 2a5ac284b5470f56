"""An app's lifespan, with or without a host that knows of it.

A server that speaks the ASGI lifespan protocol enters it at start-up. Where
nobody does, as under `mount`, the first request enters it, and it is left when
the event loop ends.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any


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
        self._loop: asyncio.AbstractEventLoop | None = None
        self._holder: asyncio.Task[None] | None = None
        self._entered: asyncio.Future[None] | None = None

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Hold the lifespan open, for a host that enters and leaves it.

        Raises:
            Exception: Whatever the lifespan raised while it was entered.
        """
        self._loop = asyncio.get_running_loop()
        self._entered = self._loop.create_future()
        async with self._factory(self._app) as value:
            self._publish(value)
            self._entered.set_result(None)
            try:
                yield
            finally:
                self._loop = None

    async def ensure(self) -> None:
        """Enter the lifespan, unless it was entered in this event loop.

        Raises:
            Exception: Whatever the lifespan raised while it was entered.
        """
        loop = asyncio.get_running_loop()
        if self._loop is not loop:
            self._loop = loop
            self._entered = loop.create_future()
            # Nobody may be waiting any more when it fails.
            self._entered.add_done_callback(_retrieve)
            self._holder = loop.create_task(self._hold(self._entered))
        assert self._entered is not None  # noqa: S101  # set together with the loop
        await asyncio.shield(self._entered)

    async def _hold(self, entered: asyncio.Future[None]) -> None:
        try:
            async with self._factory(self._app) as value:
                self._publish(value)
                entered.set_result(None)
                await asyncio.Event().wait()
        except BaseException as error:
            if entered.done():
                raise
            # The next request tries again.
            self._loop = None
            entered.set_exception(error)


def _retrieve(entered: asyncio.Future[None]) -> None:
    if not entered.cancelled():
        entered.exception()
