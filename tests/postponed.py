"""A module of a user's with postponed annotations, for tests of signatures."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import BaseModel, Field

if TYPE_CHECKING:
    from decimal import Decimal


class Money(BaseModel):
    """Some money."""

    cents: int


def pick(kind: Literal["a", "b"], n: Annotated[int, Field(ge=1)] = 1) -> str:
    return f"{kind}{n}"


def listed(value: Annotated[str, Field(min_length=1)]) -> list[str]:
    return [value]


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


def page(name: str) -> Decimal:
    raise NotImplementedError


class Registers:
    """What a decorator does: it is called while the function around it runs."""

    def __init__(self, register: Callable[[Callable[..., Any]], Any]) -> None:
        self.register = register

    def in_a_factory(self) -> Any:
        """Register a function whose type is beside it."""

        class Local(BaseModel):
            n: int

        def local(a: Local) -> int:
            return a.n

        return self.register(local)

    def in_a_factory_of_a_factory(self) -> Any:
        """Register one with types of two functions around it."""

        class Local(BaseModel):
            n: int

        def inner() -> Any:
            class Nearer(BaseModel):
                m: int

            def local(a: Local, b: Nearer) -> int:
                return a.n + b.m

            return self.register(local)

        return inner()

    def over_a_global(self) -> Any:
        """Register one whose type hides that of the module."""

        class Money(BaseModel):
            n: int

        def local(a: Money) -> int:
            return a.n

        return self.register(local)

    def in_a_method(self) -> Any:
        """Register a method whose type is around its class."""

        class Local(BaseModel):
            n: int

        class Tools:
            def local(self, a: Local) -> int:
                return a.n

        return self.register(Tools().local)

    def wrapped(self) -> Any:
        """Register one that another module's decorator wraps."""

        class Local(BaseModel):
            n: int

        def local(a: Local) -> int:
            return a.n

        return self.register(wrap(local))

    def elsewhere(self) -> Any:
        """Register one in a function that it is not written in."""
        return beside(self.register, make_local())


def beside(register: Callable[[Callable[..., Any]], Any], local: Any) -> Any:
    class Local(BaseModel):
        n: int

    assert Local(n=1).n
    return register(local)


def wrap(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    return wrapper
