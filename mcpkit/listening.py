"""The stream that a legacy session listens on, opened with GET.

A session has one in a worker, whichever connections to it are open: a message goes to
the latest of them, and when that is closed, to the one before. What happens while none
is open is kept for the client to come back for, with the id of the last event that it
has. After `LINGER` nobody listens any more; what was kept by then is still there.

Spec 2025-11-25, basic/transports: Listening for Messages from the Server, Multiple
Connections, Resumability and Redelivery.
"""

import asyncio
import time
from collections.abc import Coroutine
from typing import Any, Final

from mcpkit.context import Context, Session
from mcpkit.exchange import RETRY_MS, Exchange
from mcpkit.methods.subscriptions import News
from mcpkit.observing import streaming
from mcpkit.protocol import sse
from mcpkit.protocol.jsonrpc import encode
from mcpkit.protocol.notifications import LIST_CHANGED
from mcpkit.registry import ListKind
from mcpkit.replay import Buffer
from mcpkit.server import Server, logger
from mcpkit.subscriptions import Subscription

LINGER: Final = 60.0
"""How long a session is listened for, in seconds, while no connection is open."""

MAX_CONNECTIONS: Final = 100
"""How many connections a session may listen on in a worker; the oldest goes first."""


class Listening:
    """The sessions that listen in this worker.

    Args:
        server: The app.
    """

    def __init__(self, server: Server) -> None:
        self._server = server
        self._sessions: dict[str, _Listener] = {}
        server.bus.on("ended", self.end)

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
        found = None if after is None else self._server.replay.find(session.id, after)
        if found is not None and not found[0].listens:
            # What it had from a request of its own: the rest of that.
            rest = found[0].follow(found[1])
            try:
                await _until_closed(context, exchange, exchange.follow(context, rest))
            finally:
                rest.leave()
            return
        listener = self._sessions.get(session.id)
        if listener is None or listener.subscription.is_over:
            listener = self._listen(context, session)
        await _until_closed(context, exchange, listener.serve(context, exchange, found))

    def end(self, session_id: str) -> None:
        """End what a session hears: it has ended."""
        listener = self._sessions.get(session_id)
        if listener is not None:
            listener.subscription.call(listener.subscription.end, "session")

    def _listen(self, context: Context, session: Session) -> "_Listener":
        server = self._server
        kinds: frozenset[ListKind] = frozenset(LIST_CHANGED)  # type: ignore[arg-type]
        subscription = server.subscriptions.open(context.principal_id, kinds, None)
        listener = _Listener(server, context, session, subscription)
        self._sessions[session.id] = listener

        def forget(_: object) -> None:
            listener.forget()
            # Another may have begun by now.
            if self._sessions.get(session.id) is listener:
                del self._sessions[session.id]

        listener.task.add_done_callback(forget)
        return listener


class _Listener:
    """What one session hears in this worker."""

    def __init__(
        self,
        server: Server,
        context: Context,
        session: Session,
        subscription: Subscription,
    ) -> None:
        self.subscription = subscription
        self._telemetry = server.telemetry
        self._subscriptions = server.subscriptions
        self._news = News(server, context, subscription)
        self._buffer = server.replay.open(session.id, listens=True)
        # How much of it was sent.
        self._position = 0
        # The connections, the latest last, each set when it has its turn again.
        self._connections: list[asyncio.Event] = []
        self._lingering: asyncio.TimerHandle | None = None
        self._expiry = asyncio.get_running_loop().call_later(
            session.expires - time.time(), subscription.end, "session"
        )
        self.task = asyncio.create_task(self._listen(context, session))

    def forget(self) -> None:
        """Let go of what is held while the session listens."""
        self._expiry.cancel()
        if self._lingering is not None:
            self._lingering.cancel()
        self._subscriptions.close(self.subscription)

    async def serve(
        self, context: Context, exchange: Exchange, after: tuple[Buffer, int] | None
    ) -> None:
        """Send what is heard over a connection, while there is no later one.

        Args:
            context: Who listens, and how.
            exchange: The connection.
            after: The stream and the position that the client comes back to.
        """
        turn = self._enter(context)
        try:
            await exchange.start(context)
            if context.revision.polling:
                event_id = self._buffer.event_id(self._position)
                await exchange.write(sse.priming(event_id, RETRY_MS))
            position = await self._catch_up(exchange, after)
            while turn in self._connections and not await self._send(
                exchange, turn, position
            ):
                position = None
                await turn.wait()
        finally:
            self._leave(turn)

    async def _listen(self, context: Context, session: Session) -> None:
        try:
            with streaming(self._telemetry, context) as stream:
                while (messages := await self._news.take(session)) is not None:
                    for message in messages:
                        self._buffer.append(encode(message))
                stream.reason = self.subscription.reason
        # The backend may fail. Its client comes back, and is listened for anew.
        except Exception as error:  # noqa: BLE001
            logger.error("a session can't be told of changes", exc_info=error)
        finally:
            self._buffer.finish()

    async def _catch_up(
        self, exchange: Exchange, after: tuple[Buffer, int] | None
    ) -> int | None:
        """Send what is left of an earlier stream, and return where this one begins."""
        if after is None:
            return None
        buffer, position = after
        if buffer is self._buffer:
            return position
        for event_id, data in buffer.after(position):
            await exchange.write(sse.event(data, event_id=event_id))
        return None

    async def _send(
        self, exchange: Exchange, turn: asyncio.Event, position: int | None
    ) -> bool:
        """Send what is heard, and return whether that was all of it.

        Args:
            exchange: The connection.
            turn: The turn of the connection.
            position: Where to begin, other than where the one before has ended.
        """
        turn.clear()
        if turn is not self._connections[-1]:
            return False
        follower = self._buffer.follow(self._position if position is None else position)
        async for event_id, data in follower:
            # Before it is sent: who takes over meanwhile does not send it again.
            self._position = follower.position
            await exchange.write(sse.event(data, event_id=event_id))
        return not follower.displaced

    def _enter(self, context: Context) -> asyncio.Event:
        # What the caller may see is what it may see now.
        self._news.context = context
        if self._lingering is not None:
            self._lingering.cancel()
        self._subscriptions.hear(self.subscription)
        turn = asyncio.Event()
        self._connections.append(turn)
        if len(self._connections) > MAX_CONNECTIONS:
            self._connections.pop(0).set()
        return turn

    def _leave(self, turn: asyncio.Event) -> None:
        if turn in self._connections:
            self._connections.remove(turn)
        if self._connections:
            self._connections[-1].set()
        elif not self.task.done():
            self._subscriptions.leave(self.subscription)
            loop = asyncio.get_running_loop()
            self._lingering = loop.call_later(LINGER, self.subscription.end, "client")


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
