"""The requests that a worker serves at this moment, and how they are cancelled.

A handler that never waits is run to its end in one go, and costs nothing here. Of
one that waits it is known from then on who may cancel it: the client that closes a
modern response, or sends a legacy `notifications/cancelled`.

Spec 2026-07-28, basic/patterns/cancellation; 2025-11-25, basic/utilities/cancellation.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Coroutine, Generator, Mapping
from functools import partial
from types import coroutine
from typing import Any, Final, TypeAlias, TypeVar

from mcpkit.bus import Bus
from mcpkit.context import Context, Session, principal_id
from mcpkit.errors import RequestCancelledError
from mcpkit.protocol.jsonrpc import RequestId

T = TypeVar("T")

WATCH_AFTER: Final = 0.02
"""How long a request waits, in seconds, before its client is watched.

Twice as long at most: all that wait are looked at together, since a timer for each
costs more than most requests do.
"""

MAX_CANCELLED: Final = 64
"""How many requests of one caller may be cancelled and not have ended."""

_logger: Final = logging.getLogger("mcpkit")

Caller: TypeAlias = tuple[str, str | None]
"""Who may cancel a request: its session, its principal, or its address."""


class Running:
    """The requests of this worker that wait for something.

    Args:
        bus: What tells the other workers.
    """

    def __init__(self, bus: Bus) -> None:
        self._bus = bus
        bus.on("cancel", self._receive)
        self._runs: dict[tuple[Caller, RequestId], _Run] = {}
        self._cancelled: Counter[Caller] = Counter()
        self._rounds: _Rounds | None = None

    def __len__(self) -> int:
        return len(self._runs)

    async def finish(
        self, context: Context, work: Coroutine[Any, Any, T], waits_for: Any
    ) -> T:
        """Run a method to its end that began and waits for something.

        Args:
            context: The request.
            work: The method, which was begun.
            waits_for: What it gave to the event loop to wait for.

        Raises:
            RequestCancelledError: The request was cancelled.
            BaseException: Whatever the method raised.
        """
        run = _Run(context)
        if context.revision.era == "legacy":
            self._register(run)
        if context.channel is not None:
            self._look_after(run)
        try:
            result: T = await _resume(work, waits_for)
        except GeneratorExit:
            raise
        except BaseException as error:
            if run.is_cancelled:
                raise run.outcome() from error
            raise
        finally:
            run.end()
            if run.key is not None or run.is_cancelled:
                self._forget(run)
        # Whatever a handler makes of it that it was cancelled, nobody waits for it.
        if run.is_cancelled:
            raise run.outcome()
        return result

    def cancel(self, caller: Caller, request_id: RequestId) -> bool:
        """Cancel a request of a caller, in whichever worker it runs.

        Returns:
            Whether it may: not, when too many of the caller's requests were
            cancelled already and do not end.
        """
        run = self._runs.get((caller, request_id))
        if run is None:
            # An address is that of many: what is asked of it stays in this worker.
            if caller[0] != "address":
                self._bus.tell("cancel", [caller, request_id])
            return True
        if not run.is_cancelled and self._cancelled[caller] >= MAX_CANCELLED:
            return False
        self._cancel(run)
        return True

    def _receive(self, content: Any) -> None:
        (kind, name), request_id = content
        caller = (kind, name)
        run = self._runs.get((caller, request_id))
        if run is not None and self._cancelled[caller] < MAX_CANCELLED:
            run.loop.call_soon_threadsafe(self._cancel, run)

    def _cancel(self, run: "_Run") -> None:
        # It may have ended since it was found.
        if not (run.is_cancelled or run.is_over):
            self._cancelled[run.caller] += 1
            run.cancel()

    def _register(self, run: "_Run") -> None:
        run.key = run.caller, run.context.request_id
        self._runs[run.key] = run
        try:
            self._bus.join()
        # What has begun goes on, and can be cancelled from here.
        except Exception:
            method = run.context.method
            _logger.exception("%s: no other worker can cancel it", method)

    def _look_after(self, run: "_Run") -> None:
        rounds = self._rounds
        if rounds is None or rounds.loop is not run.loop:
            rounds = self._rounds = _Rounds(run.loop, self._cancel)
        rounds.add(run)

    def _forget(self, run: "_Run") -> None:
        # Another request may have the same id by now.
        if run.key is not None and self._runs.get(run.key) is run:
            del self._runs[run.key]
        if not run.is_cancelled:
            return
        if self._cancelled[run.caller] > 1:
            self._cancelled[run.caller] -= 1
        else:
            del self._cancelled[run.caller]


def caller_of(
    session: Session | None, principal: Any, scope: Mapping[str, Any] | None
) -> Caller:
    """Return who may cancel a request, from what is known of it."""
    if session is not None:
        return "session", session.id
    identity = principal_id(principal)
    if identity is not None:
        return "principal", identity
    client = (scope or {}).get("client")
    return "address", client[0] if client else None


class _Run:
    """A request that waits.

    Attributes:
        context: The request.
        task: The task that serves it.
        loop: The event loop of the task.
        key: Who may cancel it by its id, and the id; `None` for a modern one.
        round: Those that began to wait when it did, if anybody looks after them.
        is_watched: It has waited for long.
        is_cancelled: Nobody waits for it any more.
        is_over: It has come to its end.
    """

    # Of most requests they stay so, and need not be set for each.
    key: "tuple[Caller, RequestId] | None" = None
    round: "set[_Run] | None" = None
    is_watched = False
    is_cancelled = False
    is_over = False
    _is_told = False

    def __init__(self, context: Context) -> None:
        task = asyncio.current_task()
        assert task is not None  # noqa: S101  # whoever awaits is in a task
        self.context = context
        self.task = task
        self.loop = task.get_loop()
        self._cancelling = task.cancelling()

    @property
    def caller(self) -> Caller:
        """Who may cancel it."""
        context = self.context
        return caller_of(context.session, context.principal, context.scope)

    def watch(self, cancel: "Callable[[_Run], None]") -> None:
        """Have the client looked after; a legacy one may go, and cancels nothing."""
        self.is_watched = True
        channel = self.context.channel
        assert channel is not None  # noqa: S101  # or nobody would look after it
        is_legacy = self.key is not None
        channel.watch(self.context, None if is_legacy else partial(cancel, self))

    def cancel(self) -> None:
        """Cancel it, as soon as it waits for something."""
        self.is_cancelled = True
        self.context.cancel()
        # Later, since it may be the task itself that runs now: cancelled then, it
        # could end before it is told, and whoever comes next in it would be.
        self.loop.call_soon_threadsafe(self._tell)

    def end(self) -> None:
        """Note that it has come to its end."""
        self.is_over = True
        if self.round is not None:
            self.round.discard(self)
        if self.is_watched:
            assert self.context.channel is not None  # noqa: S101  # it was watched
            self.context.channel.unwatch()
        if self._is_told:
            self._is_told = False
            self.task.uncancel()

    def outcome(self) -> BaseException:
        """Return what a cancelled request ends with: was it cancelled here alone?"""
        others = self.task.cancelling() - self._is_told - self._cancelling
        return asyncio.CancelledError() if others > 0 else RequestCancelledError()

    def _tell(self) -> None:
        if not self.is_over:
            self._is_told = True
            self.task.cancel()


class _Rounds:
    """Has requests watched that have waited for a while, those of one event loop.

    Args:
        loop: The event loop.
        cancel: What cancels a request whose client has gone.
    """

    def __init__(
        self, loop: asyncio.AbstractEventLoop, cancel: Callable[[_Run], None]
    ) -> None:
        self.loop = loop
        self._cancel = cancel
        self._is_on = False
        # Since the last round, and since the one before.
        self._new: set[_Run] = set()
        self._old: set[_Run] = set()

    def add(self, run: _Run) -> None:
        run.round = self._new
        run.round.add(run)
        if not self._is_on:
            self._is_on = True
            self.loop.call_later(WATCH_AFTER, self._go)

    def _go(self) -> None:
        old, self._old, self._new = self._old, self._new, set()
        for run in old:
            run.watch(self._cancel)
        self._is_on = bool(self._old)
        if self._is_on:
            self.loop.call_later(WATCH_AFTER, self._go)


@coroutine
def _resume(work: Coroutine[Any, Any, T], waits_for: Any) -> Generator[Any, Any, T]:
    """Wait for a coroutine that was begun, from what it waits for on."""
    while True:
        thrown: BaseException | None = None
        sent = None
        try:
            sent = yield waits_for
        except GeneratorExit:
            work.close()
            raise
        except BaseException as error:  # noqa: BLE001  # it is the work's
            thrown = error
        # Not inside of `except`: else all that the work raises later would come of
        # what was thrown into it.
        try:
            waits_for = work.send(sent) if thrown is None else work.throw(thrown)
        except StopIteration as done:
            result: T = done.value
            return result
        finally:
            # It may come out again, with this frame in its traceback.
            thrown = None
