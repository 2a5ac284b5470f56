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

from mcpkit.errors import SetupError
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

    Attributes:
        stopping: The round ends, and what has begun is brought to its end.
    """

    def __init__(self, journal: Journal, threads: Threads) -> None:
        self.stopping = False
        self._journal = journal
        self._threads = threads
        self._begun: dict[str, asyncio.Future[Any]] = {}

    async def once(self, key: str, work: "partial[Any]") -> Any:
        """Return what the work came to, now or in an earlier round.

        Raises:
            SetupError: It can't be told what the function returns.
            ValueError: The result has no JSON form.
            Exception: Whatever the work raised.
        """
        kept_as = _adapter(work.func, key)
        if self._journal.has(key):
            return kept_as.validate_json(encode([self._journal.kept[key]]))[0]
        effect = self._begun.get(key)
        if effect is None:
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
            if is_async(work):
                value = await work()
            else:
                value = await self._threads.run(work)
                value = await value if inspect.isawaitable(value) else value
            self._journal.keep(key, _json(value, key, kept_as))
            return value
        finally:
            del self._begun[key]


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
