"""Which callers see a component.

A rule says so, and is worked out when the component is registered:

    visible=None          everybody
    visible=predicate     those of whom the predicate is true
    visible="scopes"      those who have the scopes of the component

For everybody else the component does not exist.
"""

import inspect
from collections.abc import Callable
from typing import Any, Literal, TypeAlias

from mcpkit.context import Context
from mcpkit.errors import SetupError
from mcpkit.signature import is_async, is_generator

Predicate: TypeAlias = Callable[[Any], Any]
"""A function of the caller, as `ctx.principal` has it, that is true of some."""

Visible: TypeAlias = Predicate | Literal["scopes"]
"""What a developer writes."""


class Rule:
    """Which callers see a component. Two rules are equal when they ask the same.

    Args:
        predicate: What must be true of the caller; `None` where scopes decide.
        scopes: The scopes that the caller must have.
    """

    __slots__ = ("predicate", "scopes")

    def __init__(
        self, predicate: Predicate | None, scopes: frozenset[str] = frozenset()
    ) -> None:
        self.predicate = predicate
        self.scopes = scopes

    def __eq__(self, other: object) -> bool:
        # A predicate may be an object with an idea of its own of what is equal.
        return (
            isinstance(other, Rule)
            and self.predicate is other.predicate
            and self.scopes == other.scopes
        )

    def __hash__(self) -> int:
        return hash((id(self.predicate), self.scopes))

    def __str__(self) -> str:
        if self.predicate is None:
            return "scopes"
        named = self.predicate
        if not hasattr(named, "__qualname__"):
            named = type(named)
        return f"{named.__module__}.{named.__qualname__}"

    def admits(self, context: Context) -> bool:
        """Whether the caller sees what has this rule.

        Raises:
            TypeError: The predicate returned what must be awaited.
            Exception: Whatever the predicate raised.
        """
        if self.predicate is None:
            return self.scopes <= context.scopes
        seen = self.predicate(context.principal)
        # Anything else may be true too, a coroutine among it.
        if not isinstance(seen, bool) and inspect.isawaitable(seen):
            if inspect.iscoroutine(seen):
                seen.close()
            raise TypeError("it returned what must be awaited")
        return bool(seen)


def read_visible(
    visible: Visible | None, scopes: frozenset[str], what: str
) -> Rule | None:
    """Return the rule that a developer wrote, or `None` for everybody.

    Args:
        visible: What the developer gave.
        scopes: The scopes of the component.
        what: What it is, for messages: "tool 'search'".

    Raises:
        SetupError: It is no rule, or one that can't be asked.
    """
    if visible is None:
        return None
    if visible == "scopes":
        if not scopes:
            raise SetupError(f"{what}: visible='scopes' needs scopes=[...] beside it")
        return Rule(None, scopes)
    if not callable(visible):
        raise SetupError(
            f"{what}: visible is a function of the caller, or 'scopes', not {visible!r}"
        )
    if is_async(visible) or is_generator(visible):
        raise SetupError(
            f"{what}: visible is a plain function, without await or yield; look up "
            "what it needs in App(principal=...), and put it on the principal"
        )
    try:
        inspect.signature(visible).bind(None)
    except TypeError as error:
        raise SetupError(
            f"{what}: visible is called with the caller alone, as in "
            f"visible=lambda caller: caller is not None ({error})"
        ) from error
    # Some of what is built in has no signature, such as `bool`.
    except ValueError:
        pass
    return Rule(visible)
