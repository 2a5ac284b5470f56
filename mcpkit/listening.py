"""The stream that a legacy session listens on, opened with GET.

A session has one in a worker, whichever connections to it are open: a message goes to
the latest of them. What happens while none is open is kept for the client to come
back for, with the id of the last event that it has.

Spec 2025-11-25, basic/transports: Listening for Messages from the Server, Multiple
Connections, Resumability and Redelivery.
"""

import asyncio
from collections.abc import Coroutine
from typing import Any, Final

from mcpkit.context import Context, Session
from mcpkit.exchange import RETRY_MS, Exchange
from mcpkit.methods.subscriptions import News
from mcpkit.protocol import sse
from mcpkit.protocol.jsonrpc import encode
from mcpkit.protocol.notifications import LIST_CHANGED
from mcpkit.registry import ListKind
from mcpkit.replay import Buffer
from mcpkit.server import Server
from mcpkit.subscriptions import Subscription

LINGER: Final = 60.0
"""How long a session is listened for, in seconds, while no connection is open."""


class Listening:
    """The sessions that listen in this worker.

    Args:
        server: The app.
    """

    def __init__(self, server: Server) -> None:
        self._server = server
        self._sessions: dict[str, _Listener] = {}

    def __len__(self) -> int:
        return len(self._sessions)

    async def serve(
        self, context: Context, session: Session, exchange: Exchange, after: str | None
    ) -> None:
        """Send a session what it is to hear, until its client closes the connection.

        Args:
            context: Who listens, and how.
            session: The session.
            exchange: The connection.
            after: The id of the last event that the client has.

        Raises:
            HTTPError: 503, there are too many streams.
        """
        stream = None if after is None else self._server.replay.find(session.id, after)
        listener = self._sessions.get(session.id)
        if stream is not None and (
            listener is None or stream[0] is not listener.buffer
        ):
            # What it had from a request of its own: the rest of that.
            await _until_closed(
                context, exchange, exchange.follow(context, stream[0].follow(stream[1]))
            )
            return
        if listener is None:
            listener = self._listen(context, session)
        elif stream is not None:
            listener.position = stream[1]
        await _until_closed(context, exchange, listener.serve(context, exchange))

    def end(self, session_id: str) -> None:
        """End what a session hears: it has ended."""
        listener = self._sessions.get(session_id)
        if listener is not None:
            listener.subscription.end()

    def _listen(self, context: Context, session: Session) -> "_Listener":
        server = self._server
        kinds: frozenset[ListKind] = frozenset(LIST_CHANGED)  # type: ignore[arg-type]
        subscription = server.subscriptions.open(context.principal_id, kinds, None)
        listener = _Listener(
            News(server, context, subscription),
            subscription,
            server.replay.open(session.id),
        )
        self._sessions[session.id] = listener

        def forget(_: object) -> None:
            server.subscriptions.close(subscription)
            del self._sessions[session.id]

        listener.task.add_done_callback(forget)
        return listener


class _Listener:
    """What one session hears in this worker.

    Attributes:
        position: How much of it was sent.
    """

    def __init__(self, news: News, subscription: Subscription, buffer: Buffer) -> None:
        self.subscription = subscription
        self.buffer = buffer
        self.position = 0
        self.task = asyncio.create_task(self._listen(news))
        self._connections = 0
        # The connections that have no turn, the latest last.
        self._idle: list[asyncio.Future[None]] = []
        self._lingering: asyncio.TimerHandle | None = None

    async def serve(self, context: Context, exchange: Exchange) -> None:
        """Send what is heard over a connection, while there is no later one."""
        self._connections += 1
        if self._lingering is not None:
            self._lingering.cancel()
        try:
            await exchange.start(context)
            if context.revision.polling:
                await exchange.write(
                    sse.priming(self.buffer.event_id(self.position), RETRY_MS)
                )
            while not await self._send(exchange):
                await self._turn()
        finally:
            self._leave()

    async def _listen(self, news: News) -> None:
        try:
            while (message := await news.next()) is not None:
                self.buffer.append(encode(message))
        finally:
            self.buffer.finish()

    async def _send(self, exchange: Exchange) -> bool:
        """Send what is heard, and return whether that was all of it."""
        follower = self.buffer.follow(self.position)
        async for event_id, data in follower:
            await exchange.write(sse.event(data, event_id=event_id))
            self.position = int(event_id.rpartition(".")[2])
        return not follower.displaced

    async def _turn(self) -> None:
        """Wait until there is no later connection."""
        turn = asyncio.get_running_loop().create_future()
        self._idle.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn in self._idle:
                self._idle.remove(turn)
            raise

    def _leave(self) -> None:
        self._connections -= 1
        if self._idle:
            turn = self._idle.pop()
            turn.set_result(None)
        elif not self._connections:
            loop = asyncio.get_running_loop()
            self._lingering = loop.call_later(LINGER, self.subscription.end)


async def _until_closed(
    context: Context, exchange: Exchange, work: Coroutine[Any, Any, None]
) -> None:
    """Do the work of a connection, until it is done or the client closes it."""
    task = asyncio.current_task()
    assert task is not None  # noqa: S101  # whoever awaits is in a task
    is_closed = False

    def close() -> None:
        nonlocal is_closed
        is_closed = True
        task.cancel()

    exchange.watch(context, close)
    try:
        await work
    except asyncio.CancelledError:
        if not is_closed:
            raise
        task.uncancel()
    finally:
        exchange.unwatch()
    await exchange.end()
