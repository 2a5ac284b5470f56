"""A module of a user's with postponed annotations, for tests of signatures."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import BaseModel, Field

if TYPE_CHECKING:
    from decimal import Decimal


class Money(BaseModel):
    """Some money."""

    cents: int


def pick(kind: Literal["a", "b"], n: Annotated[int, Field(ge=1)] = 1) -> str:
    return f"{kind}{n}"


async def add(a: Money, b: Money) -> Money:
    return Money(cents=a.cents + b.cents)


def unresolved(price: Decimal) -> str:
    raise NotImplementedError


def make_local() -> Callable[..., int]:
    class Local(BaseModel):
        n: int

    def local(a: Local) -> int:
        return a.n

    return local


def make_enclosed() -> Callable[..., int]:
    class Enclosed(BaseModel):
        n: int

    def enclosed(a: Enclosed) -> int:
        return Enclosed.model_validate(a).n

    return enclosed
