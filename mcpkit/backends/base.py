"""What an app needs of a store that its workers share."""

from typing import Protocol


class Backend(Protocol):
    """Keys that live for a time: ended sessions, the log levels of sessions."""

    async def put(self, key: str, value: str, ttl: float) -> None:
        """Keep a value under a key, for `ttl` seconds."""

    async def get(self, key: str) -> str | None:
        """Return the value under a key, or `None` when there is none any more."""
