"""The default backend: the memory of one process."""

import logging
import time
from collections import deque
from collections.abc import Callable
from threading import Lock
from typing import Final, TypeAlias

_SWEEP_EVERY: Final = 256
"""How many values are kept between two sweeps of what has expired."""

MAX_KEYS: Final = 200_000
"""How many keys may be kept."""

_logger: Final = logging.getLogger("mcpkit")

_Receivers: TypeAlias = dict[object, Callable[[str], None]]


class MemoryBackend:
    """Keeps values in a dictionary, and drops them when their time is over.

    Its messages reach the receivers of this process, and `publish` calls them itself,
    unless another thread or an outer `publish` is at it and takes the message along.

    A client can have keys kept for a day: how many there are is bounded, and a new one
    beyond that is refused.

    Args:
        now: The clock, in seconds.
    """

    def __init__(self, *, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._lock = Lock()
        self._values: dict[str, tuple[str, float]] = {}
        self._until_sweep = _SWEEP_EVERY
        # One call of a dict or a deque is atomic, so these need no lock. With one, a
        # finaliser that publishes could wait for the thread that it interrupts.
        self._receivers: _Receivers = {}
        self._messages: deque[tuple[str, _Receivers]] = deque()
        self._delivering = Lock()

    async def put(self, key: str, value: str, ttl: float) -> None:
        """Keep a value under a key, for `ttl` seconds, whatever was there before.

        Raises:
            OverflowError: There are `MAX_KEYS` others.
        """
        with self._lock:
            self._keep(key, value, ttl)

    async def get(self, key: str) -> str | None:
        """Return the value under a key, or `None` when there is none any more."""
        with self._lock:
            return self._current(key)

    async def replace(
        self, key: str, old: str | None, new: str | None, ttl: float
    ) -> bool:
        """Change the value under a key, if it is still `old`: see `Backend.replace`."""
        with self._lock:
            if self._current(key) != old:
                return False
            if new is None:
                self._values.pop(key, None)
            else:
                self._keep(key, new, ttl)
            return True

    def publish(self, message: str) -> None:
        """Tell the receivers of this process."""
        self._messages.append((message, self._receivers.copy()))
        # Looked at again after the release, for a message that came in between.
        while self._messages and self._delivering.acquire(blocking=False):
            try:
                self._deliver()
            finally:
                self._delivering.release()

    def subscribe(self, receive: Callable[[str], None]) -> Callable[[], None]:
        """Receive each message from now on, until what is returned is called."""
        subscription = object()
        self._receivers[subscription] = receive

        def end() -> None:
            self._receivers.pop(subscription, None)

        return end

    def __len__(self) -> int:
        return len(self._values)

    def _current(self, key: str) -> str | None:
        value, expires = self._values.get(key, (None, 0.0))
        return value if self._now() < expires else None

    def _keep(self, key: str, value: str, ttl: float) -> None:
        self._until_sweep -= 1
        if self._until_sweep <= 0:
            self._sweep()
        if key not in self._values and len(self._values) >= MAX_KEYS:
            raise OverflowError(f"{MAX_KEYS} keys are kept already")
        self._values[key] = (value, self._now() + ttl)

    def _sweep(self) -> None:
        now = self._now()
        self._values = {
            key: kept for key, kept in self._values.items() if now < kept[1]
        }
        # Sweeping as often as the store doubles keeps its cost a constant a put.
        self._until_sweep = max(_SWEEP_EVERY, len(self._values))

    def _deliver(self) -> None:
        while self._messages:
            message, receivers = self._messages.popleft()
            for subscription, receive in receivers.items():
                if subscription not in self._receivers:
                    continue
                try:
                    receive(message)
                except Exception:  # other receivers get it all the same
                    _logger.exception("A receiver of published messages failed")
