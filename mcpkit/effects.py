"""What a handler does once, however often it runs: `ctx.once`.

What came of it is kept in the journal, as JSON, and travels with the client between
the rounds. In later rounds it is made again, as the type that the function is
annotated with.
"""

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Coroutine
from functools import partial
from typing import Any, Final, get_args, get_origin

from pydantic import ConfigDict, PydanticUserError, TypeAdapter
from pydantic_core import PydanticSerializationError, from_json

from mcpkit.errors import INTERNAL_ERROR, ProtocolError, SetupError
from mcpkit.hints import innermost, read_return
from mcpkit.protocol.inputs import Journal
from mcpkit.protocol.jsonrpc import encode
from mcpkit.signature import is_async
from mcpkit.threads import Threads

_AWAITED: Final = (Awaitable, Coroutine)

# What JSON does not have comes back as it was. A model has its own way.
_KEPT: Final = ConfigDict(
    ser_json_bytes="base64", val_json_bytes="base64", ser_json_inf_nan="strings"
)


class Effects:
    """The effects of one request.

    Args:
        journal: Where what came of them is kept.
        threads: Where functions without async run.
        save: Keeps the journal, before a function begins and after it has ended, so
            that one which was interrupted is known to have begun.

    Attributes:
        stopping: The round ends, and what has begun is brought to its end.
    """

    def __init__(
        self,
        journal: Journal,
        threads: Threads,
        save: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        self.stopping = False
        self._journal = journal
        self._threads = threads
        self._save = save
        self._begun: dict[str, asyncio.Future[Any]] = {}

    async def once(self, key: str, work: "partial[Any]") -> Any:
        """Return what the work came to, now or in an earlier round.

        Raises:
            SetupError: It can't be told what the function returns.
            ValueError: The result has no JSON form.
            ProtocolError: -32603, a worker was interrupted while it did it: nobody
                knows whether it is done.
            Exception: Whatever the work raised.
        """
        kept_as = _adapter(work.func, key)
        if self._journal.has(key):
            return kept_as.validate_json(encode([self._journal.kept[key]]))[0]
        effect = self._begun.get(key)
        if effect is None:
            if key in self._journal.begun:
                fault = f"The server was interrupted in the middle of {key!r}"
                raise ProtocolError(INTERNAL_ERROR, fault)
            if self.stopping:
                # Nothing begins any more: nobody waits for what comes of it.
                raise asyncio.CancelledError
            effect = asyncio.ensure_future(self._perform(key, work, kept_as))
            self._begun[key] = effect
        try:
            return await asyncio.shield(effect)
        except asyncio.CancelledError:
            if not self.stopping:
                effect.cancel()
            raise

    async def finish(self) -> None:
        """Wait for what was begun. When it fails, it is done again in the next round.

        Raises:
            CancelledError: It is waited for no more, and cancelled.
        """
        self.stopping = True
        begun = [*self._begun.values()]
        try:
            await asyncio.gather(*begun, return_exceptions=True)
        except asyncio.CancelledError:
            for effect in begun:
                effect.cancel()
            raise

    async def _perform(
        self, key: str, work: Callable[[], Any], kept_as: TypeAdapter[list[Any]]
    ) -> Any:
        try:
            await self._note(key, begun=True)
            try:
                value = await self._call(work)
                self._journal.keep(key, _json(value, key, kept_as))
            # Of one that was cancelled nobody knows whether it is done.
            except Exception:
                await self._note(key, begun=False)
                raise
            await self._note(key, begun=False)
            return value
        finally:
            del self._begun[key]

    async def _call(self, work: Callable[[], Any]) -> Any:
        try:
            if is_async(work):
                return await work()
            value = await self._threads.run(work)
            return await value if inspect.isawaitable(value) else value
        # Out of a task of its own, an exit would end the server with all it serves.
        except (SystemExit, KeyboardInterrupt) as error:
            raise RuntimeError(f"it wanted to exit: {error!r}") from error

    async def _note(self, key: str, *, begun: bool) -> None:
        if self._save is None:
            return
        if begun:
            self._journal.begun.add(key)
        else:
            self._journal.begun.discard(key)
        try:
            await self._save()
        except Exception:
            # What can't be noted does not begin; what has ended has.
            self._journal.begun.discard(key)
            raise


def _adapter(function: Callable[..., Any], key: str) -> TypeAdapter[list[Any]]:
    """Return what makes JSON of a function's result and the other way round.

    It is one of lists, since some types take no configuration by themselves.
    """
    what = f"ctx.once({key!r})"
    target = innermost(function)
    returned = target if inspect.isclass(target) else read_return(target, what)
    if get_origin(returned) in _AWAITED:
        returned = get_args(returned)[-1]
    try:
        return TypeAdapter(list[returned], config=_KEPT)  # type: ignore[valid-type]
    except PydanticUserError as error:
        raise SetupError(
            f"{what}: what {target.__qualname__} returns can't be kept between two "
            f"rounds; return a model, a dataclass, or what JSON has: {error.message}"
        ) from error


def _json(value: Any, key: str, kept_as: TypeAdapter[list[Any]]) -> Any:
    try:
        encoded = kept_as.dump_json([value], by_alias=True, warnings="error")
    except PydanticSerializationError as error:
        raise ValueError(
            f"ctx.once({key!r}): what the function returned has no JSON form, or is "
            f"not of the type that it is annotated with: {error}"
        ) from error
    return from_json(encoded)[0]
