"""The questions to legacy clients that wait for an answer.

An answer is posted to any worker, and reaches the one where the handler waits. Only
whoever holds the session can answer: a question has a random id, and is looked for
in the session that the answer came with.

Spec 2025-11-25, basic/transports: Sending Messages to the Server.
"""

import asyncio
import secrets
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import Any, Final, TypeAlias

from mcpkit.bus import Bus
from mcpkit.errors import AnswerError

GRACE: Final = 60.0
"""How long a client may be away, in seconds, before its answer is not waited for."""

Key: TypeAlias = tuple[str, str]

_PREFIX: Final = "q-"
"""What the id of a question begins with."""


class Questions:
    """The questions of this worker.

    Args:
        bus: What tells the other workers.
    """

    def __init__(self, bus: Bus) -> None:
        self._bus = bus
        self._waiting: dict[Key, asyncio.Future[Mapping[str, Any]]] = {}
        bus.on("answer", self._receive)

    def __len__(self) -> int:
        return len(self._waiting)

    async def ask(
        self,
        session_id: str,
        send: Callable[[str], Awaitable[None]],
        seconds: float,
        away_since: Callable[[], float | None],
    ) -> Mapping[str, Any]:
        """Ask a question, and wait for the response.

        Args:
            session_id: The session of the client.
            send: Sends the question under an id.
            seconds: How long the client has.
            away_since: Tells since when the client has no connection over which the
                question comes, by `time.monotonic`; `None` while it has one.

        Raises:
            AnswerError: The client did not answer in time, went away, or has ended
                its session.
        """
        self._bus.join()
        request_id = f"{_PREFIX}{secrets.token_urlsafe(12)}"
        key = (session_id, request_id)
        future = asyncio.get_running_loop().create_future()
        self._waiting[key] = future
        try:
            async with asyncio.timeout(seconds):
                await send(request_id)
                return await _answered(future, away_since)
        except TimeoutError as error:
            raise AnswerError("The client did not answer in time") from error
        finally:
            del self._waiting[key]

    def answer(self, session_id: str, response: Mapping[str, Any]) -> None:
        """Pass on a response of a client, to whichever worker waits for it."""
        if _is_of_question(response) and not self._settle(session_id, response):
            self._bus.tell("answer", [session_id, response])

    def end(self, session_id: str) -> None:
        """Fail what waits for the answers of a session that has ended."""
        for (session, _), future in tuple(self._waiting.items()):
            if session == session_id:
                gone = AnswerError("The client has ended its session")
                _in_its_loop(future, future.set_exception, gone)

    def _receive(self, content: Any) -> None:
        self._settle(*content)

    def _settle(self, session_id: str, response: Mapping[str, Any]) -> bool:
        future = self._waiting.get((session_id, response["id"]))
        if future is None:
            return False
        _in_its_loop(future, future.set_result, response)
        return True


def _is_of_question(response: Mapping[str, Any]) -> bool:
    """Whether a response may be to a question of a worker; others are not told."""
    request_id = response.get("id")
    return isinstance(request_id, str) and request_id.startswith(_PREFIX)


async def _answered(
    future: "asyncio.Future[Mapping[str, Any]]", away_since: Callable[[], float | None]
) -> Mapping[str, Any]:
    while not future.done():
        since = away_since()
        left = GRACE if since is None else since + GRACE - time.monotonic()
        if left <= 0:
            raise AnswerError("The client went away")
        await asyncio.wait([future], timeout=left)
    return future.result()


def _in_its_loop(
    future: "asyncio.Future[Any]", settle: Callable[[Any], None], outcome: Any
) -> None:
    def deliver() -> None:
        if not future.done():
            settle(outcome)

    # Nobody is left in a loop that is closed.
    with suppress(RuntimeError):
        future.get_loop().call_soon_threadsafe(deliver)
