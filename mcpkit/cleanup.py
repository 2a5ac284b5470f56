"""What the dependencies of a function leave to be done after it.

    the function → its result → clean-up of scope "function"
        → the answer is sent → background tasks → clean-up

An error on the way goes through the clean-up first, and what comes out of that
is answered.
"""

import logging
from collections.abc import Callable
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from starlette.background import BackgroundTasks
    from starlette.responses import Response

_logger: Final = logging.getLogger("mcpkit")


class Cleanup:
    """What is kept open for one function; it is ended in the task that opened it.

    Args:
        what: Whose dependencies they are, for messages: "tool 'search'".
        translate: Turns what a dependency raised into what is answered.

    Attributes:
        for_request: What is kept open until the answer is sent.
        for_function: What is kept open until the result is made.
    """

    __slots__ = (
        "_response",
        "_running",
        "_tasks",
        "_translate",
        "_what",
        "for_function",
        "for_request",
    )

    def __init__(
        self, what: str, translate: Callable[[BaseException], BaseException]
    ) -> None:
        self.for_request: AsyncExitStack[bool] = AsyncExitStack()
        self.for_function: AsyncExitStack[bool] = AsyncExitStack()
        self._what = what
        self._translate = translate
        self._running = False
        self._tasks: BackgroundTasks | None = None
        self._response: Response | None = None

    def begin(self, tasks: "BackgroundTasks | None", response: "Response") -> None:
        """Note that all is open and the function runs.

        Args:
            tasks: What is to be done in the background, later.
            response: What has the headers that the answer is given.
        """
        self._running = True
        self._tasks = tasks
        self._response = response

    @property
    def headers(self) -> tuple[tuple[str, str], ...]:
        """The headers that the answer is given, as far as they are known by now."""
        if self._response is None:
            return ()
        return tuple(
            (name.decode("latin-1"), value.decode("latin-1"))
            for name, value in self._response.raw_headers
        )

    async def leave(self) -> None:
        """End what is kept open until the result is made.

        Raises:
            BaseException: Whatever a dependency raised.
        """
        self._running = False
        await self.for_function.aclose()

    async def finish(self) -> None:
        """End what is kept open until the answer is sent. What fails is logged."""
        try:
            async with self.for_request:
                if self._tasks is not None:
                    await self._tasks()
        # An exit that a dependency asks for must not end the server.
        except (Exception, SystemExit, KeyboardInterrupt):
            _logger.exception("%s: after the answer", self._what)

    async def fail(self, error: BaseException) -> BaseException:
        """End everything with an error, and return the error to be answered."""
        outcome = await self._unwind(error)
        # What the function itself raised is left as it is.
        own = self._running and outcome is error
        return outcome if own else self._translate(outcome)

    async def abandon(self, error: BaseException) -> None:
        """End everything with an error that is answered whatever comes of it."""
        outcome = await self._unwind(error)
        if outcome is not error:
            _logger.error("%s: in the clean-up", self._what, exc_info=outcome)

    async def _unwind(self, error: BaseException) -> BaseException:
        try:
            async with self.for_request, self.for_function:
                raise error  # noqa: TRY301  # where the clean-up sees it
        except BaseException as outcome:  # noqa: BLE001  # it is returned
            return outcome
        swallowed = RuntimeError(
            f"{self._what}: a dependency with yield caught the error and did not "
            "raise it again, so that there is no result"
        )
        swallowed.__cause__ = error
        return swallowed
