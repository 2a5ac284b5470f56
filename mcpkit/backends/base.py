"""What an app needs of a store that its workers share."""

from collections.abc import Callable
from typing import Protocol


class Backend(Protocol):
    """Keys that live for a time, and messages that reach every worker.

    A key with an empty value is a key: `""` is not `None`. Times are in seconds; a
    value whose `ttl` is 0 or less is over at once. Whoever asks after `put` or
    `replace` has returned, in any worker, sees what it did.

    A message reaches each receiver once at most: those that are lost on the way, such
    as by a connection that breaks, are not sent again. The messages of one publisher
    arrive in the order in which they were published; those of several interleave.
    """

    async def put(self, key: str, value: str, ttl: float) -> None:
        """Keep a value under a key, for `ttl` seconds, whatever was there before."""

    async def get(self, key: str) -> str | None:
        """Return the value under a key, or `None` when there is none any more."""

    async def replace(
        self, key: str, old: str | None, new: str | None, ttl: float
    ) -> bool:
        """Change the value under a key, if it is still what the caller knows it to be.

        Nothing happens between the look and the change: of several that replace the
        same value, in whichever workers, one succeeds.

        Args:
            key: Where the value is kept.
            old: The value to replace. `None` for a key that has none.
            new: The value from now on. `None` to remove the key.
            ttl: For how long the new value is kept, in seconds.

        Returns:
            Whether the value was `old`, and is `new` now. When not, nothing changed.
        """

    def publish(self, message: str) -> None:
        """Tell all workers, this one included.

        From any thread, with or without an event loop. It waits for nobody who is
        elsewhere.
        """

    def subscribe(self, receive: Callable[[str], None]) -> Callable[[], None]:
        """Receive each message that is published from now on.

        Args:
            receive: Called with a message, from any thread, one message after the
                other. It must return soon: the messages behind it wait. What it raises
                is logged, and no other receiver misses anything by it.

        Returns:
            What ends it, from any thread and as often as one likes. A call of
            `receive` that has begun in another thread is not waited for.
        """
