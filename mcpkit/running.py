"""The requests that a worker serves at this moment, and how they are cancelled.

A handler that never waits is run to its end in one go, and costs nothing here. Of
one that waits it is known from then on who may cancel it: the client that closes a
modern response, or sends a legacy `notifications/cancelled`.

Spec 2026-07-28, basic/patterns/cancellation; 2025-11-25, basic/utilities/cancellation.
"""

import asyncio
from collections import Counter
from collections.abc import Coroutine, Generator, Mapping
from functools import partial
from typing import Any, Final, TypeAlias, TypeVar

from mcpkit.bus import Bus
from mcpkit.context import Context, Session, principal_id
from mcpkit.errors import RequestCancelledError
from mcpkit.protocol.jsonrpc import RequestId

T = TypeVar("T")

MAX_CANCELLED: Final = 64
"""How many requests of one caller may be cancelled and not have ended."""

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
        run = self._begin(context)
        try:
            result: T = await _Resumed(work, waits_for)
        except GeneratorExit:
            raise
        except BaseException as error:
            if run.is_cancelled:
                raise run.outcome() from error
            raise
        finally:
            self._end(run)
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
            self._bus.tell("cancel", [caller, request_id])
            return True
        if not run.is_cancelled and self._cancelled[caller] >= MAX_CANCELLED:
            return False
        self._cancel(run)
        return True

    def _receive(self, content: Any) -> None:
        (kind, name), request_id = content
        run = self._runs.get(((kind, name), request_id))
        if run is not None:
            run.loop.call_soon_threadsafe(self._cancel, run)

    def _cancel(self, run: "_Run") -> None:
        # It may have ended since it was found.
        if not (run.is_cancelled or run.is_over):
            self._cancelled[run.caller] += 1
            run.cancel()

    def _begin(self, context: Context) -> "_Run":
        run = _Run(context)
        is_modern = context.era == "modern"
        if not is_modern:
            self._bus.join()
            self._runs[run.key] = run
        if context.channel is not None:
            cancel = partial(self._cancel, run) if is_modern else None
            context.channel.watch(context, cancel)
        return run

    def _end(self, run: "_Run") -> None:
        if run.context.channel is not None:
            run.context.channel.unwatch()
        run.end()
        # Another request may have the same id by now.
        if self._runs.get(run.key) is run:
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
    __slots__ = (
        "_cancelling",
        "_is_told",
        "caller",
        "context",
        "is_cancelled",
        "is_over",
        "key",
        "loop",
        "task",
    )

    def __init__(self, context: Context) -> None:
        self.context = context
        self.caller = caller_of(context.session, context.principal, context.scope)
        self.key = (self.caller, context.request_id)
        task = asyncio.current_task()
        assert task is not None  # noqa: S101  # whoever awaits is in a task
        self.task = task
        self._cancelling = task.cancelling()
        self.loop = asyncio.get_running_loop()
        self.is_cancelled = False
        self._is_told = False
        self.is_over = False

    def cancel(self) -> None:
        self.is_cancelled = True
        self.context.cancel()
        # Later, since it may be the task itself that runs now: cancelled then, it
        # could end before it is told, and whoever comes next in it would be.
        self.loop.call_soon_threadsafe(self._tell)

    def end(self) -> None:
        self.is_over = True
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


class _Resumed:
    """Waits for a coroutine that was begun, from what it waits for on."""

    __slots__ = ("_waits_for", "_work")

    def __init__(self, work: Coroutine[Any, Any, T], waits_for: Any) -> None:
        self._work = work
        self._waits_for = waits_for

    def __await__(self) -> Generator[Any, Any, Any]:
        work, waits_for = self._work, self._waits_for
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
                return done.value
