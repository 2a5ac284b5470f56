"""The methods: which era has each one, and what is true of it there.

Routing, capabilities, cache hints and routing headers all read this table; a
method that is not in it is answered "Method not found".
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

from mcpkit.protocol.versions import ERAS, Era


@dataclass(frozen=True, slots=True, kw_only=True)
class Method:
    """One method of the protocol: a row of the table.

    Attributes:
        name: Its name on the wire.
        eras: The eras that have it.
        capability: The server capability it belongs to, if any.
        cacheable: Its complete results carry cache hints (modern).
        listing: Its answer depends on what is registered and on a cursor, and
            on nothing else of the request.
        may_ask: Its result may ask the client for input.
        named_by: The member of `params` that the `Mcp-Name` header mirrors.
        notification: It is sent without an id, and never answered.
        extension: The identifier of the extension it belongs to, if any.
        negotiated: The eras in which a client must have declared that.
        header: Its name, as a header has it.
    """

    name: str
    eras: frozenset[Era]
    capability: str | None = None
    cacheable: bool = False
    listing: bool = False
    may_ask: bool = False
    named_by: str | None = None
    notification: bool = False
    extension: str | None = None
    negotiated: frozenset[Era] = ERAS
    header: bytes = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "header", self.name.encode())

    @property
    def internal(self) -> str:
        """The name of the function that serves it.

        Example:
            >>> METHODS["resources/templates/list"].internal
            'resources_templates_list'
        """
        return self.name.replace("/", "_")


_MODERN: Final[frozenset[Era]] = frozenset({"modern"})
_LEGACY: Final[frozenset[Era]] = frozenset({"legacy"})


def _list(name: str, capability: str) -> Method:
    return Method(
        name=name, eras=ERAS, capability=capability, cacheable=True, listing=True
    )


METHODS: Final[Mapping[str, Method]] = MappingProxyType(
    {
        method.name: method
        for method in (
            Method(name="server/discover", eras=_MODERN, cacheable=True, listing=True),
            Method(name="initialize", eras=_LEGACY),
            Method(name="ping", eras=_LEGACY),
            Method(name="logging/setLevel", eras=_LEGACY, capability="logging"),
            _list("tools/list", "tools"),
            Method(
                name="tools/call",
                eras=ERAS,
                capability="tools",
                may_ask=True,
                named_by="name",
            ),
            _list("resources/list", "resources"),
            _list("resources/templates/list", "resources"),
            Method(
                name="resources/read",
                eras=ERAS,
                capability="resources",
                cacheable=True,
                may_ask=True,
                named_by="uri",
            ),
            Method(name="resources/subscribe", eras=_LEGACY, capability="resources"),
            Method(name="resources/unsubscribe", eras=_LEGACY, capability="resources"),
            Method(name="subscriptions/listen", eras=_MODERN),
            _list("prompts/list", "prompts"),
            Method(
                name="prompts/get",
                eras=ERAS,
                capability="prompts",
                may_ask=True,
                named_by="name",
            ),
            Method(name="completion/complete", eras=ERAS, capability="completions"),
            Method(name="notifications/initialized", eras=_LEGACY, notification=True),
            Method(name="notifications/cancelled", eras=_LEGACY, notification=True),
            Method(
                name="notifications/roots/list_changed",
                eras=_LEGACY,
                notification=True,
            ),
        )
    }
)
"""Every method that is routed, by its name on the wire."""


def methods(era: Era | None = None) -> dict[str, str]:
    """Map every routed method to its internal name.

    Args:
        era: Only the methods of this era; the legacy ones include its
            notifications.

    Example:
        >>> methods()["tools/call"]
        'tools_call'
        >>> "initialize" in methods("modern")
        False
    """
    return {
        name: method.internal
        for name, method in METHODS.items()
        if era is None or era in method.eras
    }
