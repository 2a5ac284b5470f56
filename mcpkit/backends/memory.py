"""The default backend: the memory of one process."""

import time
from typing import Final

_SWEEP_EVERY: Final = 256
"""How many values are kept between two sweeps of what has expired."""


class MemoryBackend:
    """Keeps values in a dictionary, and drops them when their time is over."""

    def __init__(self) -> None:
        self._values: dict[str, tuple[str, float]] = {}
        self._until_sweep = _SWEEP_EVERY

    async def put(self, key: str, value: str, ttl: float) -> None:
        """Keep a value under a key, for `ttl` seconds."""
        self._until_sweep -= 1
        if self._until_sweep <= 0:
            self._sweep()
        self._values[key] = (value, time.monotonic() + ttl)

    async def get(self, key: str) -> str | None:
        """Return the value under a key, or `None` when there is none any more."""
        value, expires = self._values.get(key, (None, 0.0))
        return value if time.monotonic() < expires else None

    def __len__(self) -> int:
        return len(self._values)

    def _sweep(self) -> None:
        now = time.monotonic()
        self._values = {
            key: kept for key, kept in self._values.items() if now < kept[1]
        }
        # Sweeping as often as the store doubles keeps its cost a constant a put.
        self._until_sweep = max(_SWEEP_EVERY, len(self._values))
