"""The open streams of a worker, and the changes that they wait for.

A change waits in the stream once, however often it comes up before it is sent: for a
client it makes no difference. So the queue of a stream is bounded by what it follows,
and by `MAX_PENDING`:

    a modern stream    ends when more is waiting: its client is to look anew
    a legacy session   is told that any of the resources it follows may be another

Spec 2026-07-28, basic/patterns/subscriptions.
"""

import asyncio
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final, Literal, NamedTuple
from weakref import WeakSet

from mcpkit.bus import Bus
from mcpkit.errors import INTERNAL_ERROR, HTTPError
from mcpkit.registry import ListKind
from mcpkit.shutdown import on_shutdown
from mcpkit.telemetry import StreamEnd

MAX_PER_PRINCIPAL: Final = 100
"""How many streams one principal may have open."""

MAX_PENDING: Final = 256
"""How many changes may wait in a stream for a client that reads slowly."""

MAX_URIS: Final = 1000
"""How many resources one stream may follow."""

MAX_FILTER_BYTES: Final = 256 * 1024
"""How large the params may be that open a stream, and the URIs that a session follows.

They are kept for as long as it is open.
"""


class Topic(NamedTuple):
    """What an extension lets clients follow.

    Attributes:
        member: The member of the filter that asks for it.
        name: Its name among what that member asks for.
    """

    member: str
    name: str


class Change(NamedTuple):
    """What has changed: a list, by its kind, a resource, by its URI, or a topic."""

    what: Literal["list", "uri", "topic"]
    name: str
    member: str = ""


ANY_URI: Final = Change("uri", "*")
"""Resources were updated, and it is not known which."""


class Subscriptions:
    """The streams that are open in this worker.

    Args:
        bus: What tells of changes elsewhere.
        limit: How many may be open.
    """

    def __init__(self, bus: Bus, limit: int) -> None:
        self._bus = bus
        self._limit = limit
        bus.on("changed", self.announced)
        bus.on("updated", self.updated)
        self._open: set[Subscription] = set()
        self._owners: Counter[str] = Counter()
        # Those that can go when there are too many, the longest unheard first.
        self._unheard: dict[Subscription, None] = {}
        self._closed: WeakSet[asyncio.AbstractEventLoop] = WeakSet()

    def __len__(self) -> int:
        return len(self._open)

    def open(
        self,
        owner: str | None,
        kinds: frozenset[ListKind],
        uris: frozenset[str] | None = frozenset(),
        topics: frozenset[Topic] = frozenset(),
    ) -> "Subscription":
        """Follow changes, from now on.

        Args:
            owner: The id of the principal, where there is one.
            kinds: The lists to follow.
            uris: The resources to follow; `None` to be told of all.
            topics: What to follow of extensions.

        Raises:
            HTTPError: 503, there are too many streams.
        """
        self._make_room(owner)
        self._bus.join()
        subscription = Subscription(owner, kinds, uris, topics)
        self._open.add(subscription)
        if owner is not None:
            self._owners[owner] += 1
        subscription.forget = on_shutdown(subscription.end)
        if subscription.loop in self._closed:
            subscription.end()
        return subscription

    def close(self, subscription: "Subscription") -> None:
        """Follow nothing any more."""
        if subscription not in self._open:
            return
        self._open.discard(subscription)
        self._unheard.pop(subscription, None)
        subscription.forget()
        owner = subscription.owner
        if owner is not None:
            self._owners[owner] -= 1
            if not self._owners[owner]:
                del self._owners[owner]

    def hear(self, subscription: "Subscription") -> None:
        """Note that somebody is connected to a stream."""
        self._unheard.pop(subscription, None)

    def leave(self, subscription: "Subscription") -> None:
        """Note that nobody is: the stream ends when room is needed for another."""
        if subscription in self._open:
            self._unheard[subscription] = None

    def changed(self, kind: ListKind) -> None:
        """Tell those for whom a list is another one now, from any thread."""
        self._tell_of_list(kind, to_all=False)

    def announced(self, kind: ListKind) -> None:
        """Tell all who follow a list that it has changed, from any thread."""
        self._tell_of_list(kind, to_all=True)

    def updated(self, uri: str) -> None:
        """Tell those who follow a resource that it was updated, from any thread."""
        for subscription in tuple(self._open):
            if subscription.uris is None or uri in subscription.uris:
                subscription.tell(Change("uri", uri), to_all=True)

    def told(self, topic: Topic) -> None:
        """Tell those who follow a topic that there is news of it, from any thread."""
        for subscription in tuple(self._open):
            if topic in subscription.topics:
                change = Change("topic", topic.name, topic.member)
                subscription.tell(change, to_all=True)

    def followed(self, member: str) -> set[str]:
        """Return the names of the topics that are followed by a member of filters."""
        topics = (topic for each in tuple(self._open) for topic in each.topics)
        return {topic.name for topic in topics if topic.member == member}

    def end(self) -> None:
        """End all streams, each with what its client is told at the end.

        One that is opened later in an event loop which had some, or from which this
        is called, ends at once.
        """
        with suppress(RuntimeError):
            self._closed.add(asyncio.get_running_loop())
        for subscription in tuple(self._open):
            self._closed.add(subscription.loop)
            subscription.call(subscription.end)

    def reopen(self) -> None:
        """Have streams in this event loop again."""
        self._closed.discard(asyncio.get_running_loop())

    def _tell_of_list(self, kind: ListKind, *, to_all: bool) -> None:
        for subscription in tuple(self._open):
            if kind in subscription.kinds:
                subscription.tell(Change("list", kind), to_all=to_all)

    def _make_room(self, owner: str | None) -> None:
        if owner is not None and self._owners[owner] >= MAX_PER_PRINCIPAL:
            may_go = [each for each in self._unheard if each.owner == owner]
        elif len(self._open) >= self._limit:
            may_go = list(self._unheard)
        else:
            return
        if not may_go:
            raise HTTPError(503, INTERNAL_ERROR, "Too many open streams")
        may_go[0].end("evicted")
        self.close(may_go[0])


class Subscription:
    """One stream, and the changes that wait to be sent in it.

    Attributes:
        owner: The id of the principal.
        kinds: The lists that it follows.
        uris: The resources that it follows; `None` for all.
        topics: What it follows of extensions.
        loop: The event loop that it is read in.
        is_over: Nothing more comes.
        reason: Why it has ended, once it has.
        forget: Ends that it is told of a shutdown.
    """

    def __init__(
        self,
        owner: str | None,
        kinds: frozenset[ListKind],
        uris: frozenset[str] | None,
        topics: frozenset[Topic] = frozenset(),
    ) -> None:
        self.owner = owner
        self.kinds = kinds
        self.uris = uris
        self.topics = topics
        self.loop = asyncio.get_running_loop()
        self.reason: StreamEnd = "client"
        self.forget: Callable[[], None]
        # Each with whether all are told of it, whatever they see.
        self._pending: dict[Change, bool] = {}
        self.is_over = False
        self._waiter: asyncio.Future[None] | None = None

    def tell(self, change: Change, *, to_all: bool) -> None:
        """Tell of a change, from any thread."""
        self.call(self._add, change, to_all)

    def end(self, reason: StreamEnd = "shutdown") -> None:
        """End the stream; what waits in it is dropped."""
        if not self.is_over:
            self.reason = reason
        self.is_over = True
        self._pending.clear()
        self._wake()

    def call(self, function: Callable[..., None], *args: Any) -> None:
        """Call a function in the event loop of the stream."""
        try:
            here = asyncio.get_running_loop() is self.loop
        except RuntimeError:
            here = False
        if here:
            function(*args)
        else:
            # Nobody is left in a loop that is closed.
            with suppress(RuntimeError):
                self.loop.call_soon_threadsafe(function, *args)

    async def next(self) -> tuple[Change, bool] | None:
        """Return the next change; `None` at the end.

        Returns:
            The change, and whether all are to be told of it, whatever they see.
        """
        await self._wait()
        if self.is_over:
            return None
        change = next(iter(self._pending))
        return change, self._pending.pop(change)

    async def take(self) -> dict[Change, bool] | None:
        """Return all changes that wait, once there are any; `None` at the end."""
        await self._wait()
        if self.is_over:
            return None
        taken, self._pending = self._pending, {}
        return taken

    async def _wait(self) -> None:
        while not (self._pending or self.is_over):
            self._waiter = self.loop.create_future()
            await self._waiter

    def _add(self, change: Change, to_all: bool) -> None:  # noqa: FBT001  # `call` has no names
        if self.is_over or (change.what == "uri" and ANY_URI in self._pending):
            return
        self._pending[change] = to_all or self._pending.get(change, False)
        if len(self._pending) > MAX_PENDING:
            self._overflow()
        self._wake()

    def _overflow(self) -> None:
        if self.uris is not None:
            # A client that does not read has missed something: it is to look anew.
            self.end("overflow")
            return
        lists = {
            change: to_all
            for change, to_all in self._pending.items()
            if change.what == "list"
        }
        self._pending = {**lists, ANY_URI: True}

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)
