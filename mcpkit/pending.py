"""The questions to legacy clients that wait for an answer.

An answer is posted to any worker, and reaches the one where the handler waits. Only
whoever holds the session can answer: a question has a random id, and is looked for
in the session that the answer came with.

Spec 2025-11-25, basic/transports: Sending Messages to the Server.
"""

import asyncio
import secrets
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from mcpkit.bus import Bus
from mcpkit.errors import AnswerError

Key: TypeAlias = tuple[str, str]


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
        send: Callable[[str], Any],
        seconds: float,
    ) -> Mapping[str, Any]:
        """Ask a question, and wait for the response.

        Args:
            session_id: The session of the client.
            send: Sends the question under an id; awaited.
            seconds: How long the client has.

        Raises:
            TimeoutError: The client did not answer in time.
            AnswerError: The session has ended.
        """
        self._bus.join()
        request_id = f"q-{secrets.token_urlsafe(12)}"
        key = (session_id, request_id)
        future = asyncio.get_running_loop().create_future()
        self._waiting[key] = future
        try:
            async with asyncio.timeout(seconds):
                await send(request_id)
                response: Mapping[str, Any] = await future
                return response
        finally:
            del self._waiting[key]

    def answer(self, session_id: str, response: Mapping[str, Any]) -> None:
        """Pass on a response of a client, to whichever worker waits for it."""
        if not self._settle(session_id, response):
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
        request_id = response.get("id")
        if not isinstance(request_id, str):
            return False
        future = self._waiting.get((session_id, request_id))
        if future is None:
            return False
        _in_its_loop(future, future.set_result, response)
        return True


def _in_its_loop(
    future: "asyncio.Future[Any]", settle: Callable[[Any], None], outcome: Any
) -> None:
    def deliver() -> None:
        if not future.done():
            settle(outcome)

    loop = future.get_loop()
    if not loop.is_closed():
        loop.call_soon_threadsafe(deliver)
