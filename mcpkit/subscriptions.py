"""The open streams of a worker, and the changes that they wait for.

A change waits in the stream once, however often it comes up before it is sent: for a
client it makes no difference. So the queue of a stream is bounded by what it follows,
and by `MAX_PENDING`.

Spec 2026-07-28, basic/patterns/subscriptions.
"""

import asyncio
from collections import Counter
from collections.abc import Callable
from typing import Any, Final

from mcpkit.bus import Bus
from mcpkit.errors import INTERNAL_ERROR, HTTPError
from mcpkit.registry import ListKind
from mcpkit.shutdown import on_shutdown

MAX_PER_PRINCIPAL: Final = 100
"""How many streams one principal may have open."""

MAX_PENDING: Final = 256
"""How many changes may wait in a stream for a client that reads slowly."""

MAX_URIS: Final = 1000
"""How many resources one stream may follow."""


class Subscriptions:
    """The streams that are open in this worker.

    Args:
        bus: What tells of changes elsewhere.
        limit: How many may be open.
    """

    def __init__(self, bus: Bus, limit: int) -> None:
        self._bus = bus
        self._limit = limit
        bus.on("changed", self.changed)
        bus.on("updated", self.updated)
        self._open: set[Subscription] = set()
        self._owners: Counter[str] = Counter()

    def __len__(self) -> int:
        return len(self._open)

    def open(
        self,
        owner: str | None,
        kinds: frozenset[ListKind],
        uris: frozenset[str] | None = frozenset(),
    ) -> "Subscription":
        """Follow changes, from now on.

        Args:
            owner: The id of the principal, where there is one.
            kinds: The lists to follow.
            uris: The resources to follow; `None` to be told of all.

        Raises:
            HTTPError: 503, there are too many streams.
        """
        mine = 0 if owner is None else self._owners[owner]
        if len(self._open) >= self._limit or mine >= MAX_PER_PRINCIPAL:
            raise HTTPError(503, INTERNAL_ERROR, "Too many open streams")
        self._bus.join()
        subscription = Subscription(owner, kinds, uris)
        self._open.add(subscription)
        if owner is not None:
            self._owners[owner] += 1
        subscription.forget = on_shutdown(subscription.end)
        return subscription

    def close(self, subscription: "Subscription") -> None:
        """Follow nothing any more."""
        if subscription not in self._open:
            return
        self._open.discard(subscription)
        subscription.forget()
        owner = subscription.owner
        if owner is not None:
            self._owners[owner] -= 1
            if not self._owners[owner]:
                del self._owners[owner]

    def changed(self, kind: ListKind) -> None:
        """Tell those who follow a list that it has changed, from any thread."""
        for subscription in tuple(self._open):
            if kind in subscription.kinds:
                subscription.tell(f"list {kind}")

    def updated(self, uri: str) -> None:
        """Tell those who follow a resource that it was updated, from any thread."""
        for subscription in tuple(self._open):
            if subscription.uris is None or uri in subscription.uris:
                subscription.tell(f"uri {uri}")

    def end(self) -> None:
        """End all streams, each with what its client is told at the end."""
        for subscription in tuple(self._open):
            subscription.call(subscription.end)


class Subscription:
    """One stream, and the changes that wait to be sent in it.

    Attributes:
        owner: The id of the principal.
        kinds: The lists that it follows.
        uris: The resources that it follows; `None` for all.
        forget: Ends that it is told of a shutdown.
    """

    def __init__(
        self,
        owner: str | None,
        kinds: frozenset[ListKind],
        uris: frozenset[str] | None,
    ) -> None:
        self.owner = owner
        self.kinds = kinds
        self.uris = uris
        self.forget: Callable[[], None]
        self._loop = asyncio.get_running_loop()
        self._pending: dict[str, None] = {}
        self._is_over = False
        self._waiter: asyncio.Future[None] | None = None

    def tell(self, change: str) -> None:
        """Tell of a change, from any thread."""
        self.call(self._add, change)

    def end(self) -> None:
        """End the stream; what waits in it is dropped."""
        self._is_over = True
        self._pending.clear()
        self._wake()

    def call(self, function: Callable[..., None], *args: Any) -> None:
        """Call a function in the event loop of the stream."""
        try:
            here = asyncio.get_running_loop() is self._loop
        except RuntimeError:
            here = False
        if here:
            function(*args)
        elif not self._loop.is_closed():
            self._loop.call_soon_threadsafe(function, *args)

    async def next(self) -> str | None:
        """Return the next change: a kind and its name; `None` at the end."""
        while not self._pending:
            if self._is_over:
                return None
            self._waiter = self._loop.create_future()
            await self._waiter
        change = next(iter(self._pending))
        del self._pending[change]
        return change

    def _add(self, change: str) -> None:
        if self._is_over:
            return
        self._pending[change] = None
        # A client that does not read has missed something: it is to look anew.
        if len(self._pending) > MAX_PENDING:
            self.end()
        self._wake()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)
