"""What an extension is: an identifier, settings, methods, results and notifications.

    installed     the app has it: its methods are known
    advertised    the server's capabilities name it, with its settings
    negotiated    the client of a request declared it too

A method of an extension that a client did not declare is refused with -32021, and the
extension named: the client learns what it would have to declare.

Spec 2026-07-28, SEP-2133; basic/index: Capabilities.
"""

import re
import reprlib
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Protocol, TypeAlias

from mcpkit.context import Context
from mcpkit.errors import SetupError
from mcpkit.protocol.jsonrpc import encode
from mcpkit.protocol.methods import METHODS, Method
from mcpkit.protocol.results import Result
from mcpkit.protocol.versions import ERAS, Era
from mcpkit.signature import is_async

Serve: TypeAlias = Callable[[Context], Awaitable[Result | Mapping[str, Any]]]
"""What serves a method of an extension."""

_LABEL: Final = r"[A-Za-z](?:[A-Za-z0-9-]*[A-Za-z0-9])?"
_IDENTIFIER: Final = re.compile(
    rf"{_LABEL}(?:\.{_LABEL})*/[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?"
)
_OWN_TYPES: Final = frozenset({"complete", "input_required"})
_OWN_FILTERS: Final = frozenset(
    {
        "toolsListChanged",
        "promptsListChanged",
        "resourcesListChanged",
        "resourceSubscriptions",
    }
)


class Filter(Protocol):
    """A member of the filter of `subscriptions/listen`: what may be followed by it.

    A stream begins with how things stand: `message` is called once for each topic when
    it opens, and after each change that `app.subscriptions.told` tells of.
    """

    async def read(self, context: Context, value: Any) -> Collection[str]:
        """Return the topics that a client may follow, of those that it asks for.

        Raises:
            ProtocolError: -32602, the value is malformed.
        """

    async def message(self, context: Context, topic: str) -> dict[str, Any] | None:
        """Return the notification of a topic; `None` when there is nothing to tell."""


@dataclass(frozen=True, kw_only=True)
class ExtensionMethod:
    """A method of an extension.

    Args:
        serve: An async function of the `Context`, which returns a `Result`, or the
            members of one.
        named_by: The member of `params` that the `Mcp-Name` header mirrors.
        eras: The eras that have it.
        negotiated: The eras in which it is there only for clients that declared the
            extension: with each modern request, or with their legacy session.
    """

    serve: Serve
    named_by: str | None = None
    eras: frozenset[Era] = ERAS
    negotiated: frozenset[Era] = ERAS


@dataclass(frozen=True, kw_only=True)
class Extension:
    """What `app.add_extension` takes.

    Example:
        >>> from mcpkit import App
        >>> async def count(ctx: Context) -> dict[str, int]:
        ...     return {"words": len(str(ctx.params.get("text")).split())}
        >>> app = App("words")
        >>> words = Extension(
        ...     identifier="com.example/words", methods={"words/count": count}
        ... )
        >>> app.add_extension(words)

    Args:
        identifier: Its name, such as `com.example/search`.
        settings: What is declared of it.
        methods: Its methods by name: an async function of the `Context`, or an
            `ExtensionMethod`.
        result_types: The `resultType`s of its results, which `Result.wire` carries.
        filters: The members that the filter of `subscriptions/listen` has by it.
        advertised: The server's capabilities name it.
        eras: The eras in which they do. By default both, as SEP-2133 has it.

    Raises:
        SetupError: One of them can't work.
    """

    identifier: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    methods: Mapping[str, Serve | ExtensionMethod] = field(default_factory=dict)
    result_types: frozenset[str] = frozenset()
    filters: Mapping[str, Filter] = field(default_factory=dict)
    advertised: bool = True
    eras: frozenset[Era] = ERAS

    def __post_init__(self) -> None:
        what = f"extension {self.identifier!r}"
        if not _IDENTIFIER.fullmatch(str(self.identifier)):
            raise SetupError(
                f"{what}: an identifier is a domain of yours, reversed, and a name, as "
                "in 'com.example/search'"
            )
        _check_settings(self.settings, what)
        for name, method in self.methods.items():
            if name in METHODS:
                raise SetupError(f"{what}: {name!r} is a method of the protocol")
            serve = method.serve if isinstance(method, ExtensionMethod) else method
            if not is_async(serve):
                raise SetupError(
                    f"{what}: {name!r} is served by an async function: "
                    "async def name(ctx: Context) -> Result"
                )
        given: object = self.result_types
        if isinstance(given, str):
            raise SetupError(f"{what}: result_types is a set: {{{given!r}}}")
        for kind, own in (("result_types", _OWN_TYPES), ("filters", _OWN_FILTERS)):
            taken = own & set(getattr(self, kind))
            if taken:
                raise SetupError(f"{what}: {min(taken)!r} is one of the protocol")

    def rows(self) -> list[Method]:
        """Return the rows of its methods, as the table of methods has them."""
        return [
            Method(
                name=name,
                eras=method.eras,
                named_by=method.named_by,
                extension=self.identifier,
                negotiated=method.negotiated,
            )
            for name, method in self._methods()
        ]

    def served(self) -> dict[str, Serve]:
        """Return what serves its methods, by name."""
        return {name: method.serve for name, method in self._methods()}

    def _methods(self) -> list[tuple[str, ExtensionMethod]]:
        return [
            (
                name,
                method
                if isinstance(method, ExtensionMethod)
                else ExtensionMethod(serve=method),
            )
            for name, method in self.methods.items()
        ]


def _check_settings(settings: object, what: str) -> None:
    """Refuse settings that would be missed when a client asks what the server has.

    Raises:
        SetupError: They are no JSON object.
    """
    is_json = isinstance(settings, Mapping)
    try:
        encode({"settings": settings})
    except ValueError:
        is_json = False
    if not is_json:
        shown = reprlib.repr(settings)
        raise SetupError(f"{what}: settings are a dict of what JSON has, not {shown}")
