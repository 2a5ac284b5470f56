"""`subscriptions/listen`, and legacy `resources/subscribe` and `resources/unsubscribe`.

Spec 2026-07-28, basic/patterns/subscriptions; 2025-11-25, server/resources.
"""

import json
import time
from collections.abc import Callable, Mapping
from typing import Any, Final

from mcpkit.components import Component
from mcpkit.context import Context, Session
from mcpkit.errors import (
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    HTTPError,
    ProtocolError,
    ResourceNotFoundError,
)
from mcpkit.methods.common import (
    invalid_params,
    is_visible,
    string_param,
)
from mcpkit.protocol import notifications
from mcpkit.protocol.jsonrpc import RequestId, is_object
from mcpkit.protocol.notifications import LIST_CHANGED, SUBSCRIPTION_ID
from mcpkit.protocol.results import Result
from mcpkit.registry import ListKind
from mcpkit.server import Server
from mcpkit.subscriptions import MAX_URIS, Subscription

_FOLLOWED: Final = "session-follows:"


async def listen(server: Server, context: Context) -> Result:
    """Answer `subscriptions/listen`, when it has ended.

    Raises:
        ProtocolError: The filter is malformed; 406, the client takes no stream;
            503, there are too many of them; -32601, there is no way to stream.
    """
    channel = context.channel
    if channel is None:
        raise ProtocolError(METHOD_NOT_FOUND, "Method not found")
    if not channel.admits_stream:
        raise HTTPError(406, INVALID_REQUEST, "Accept must admit text/event-stream")
    kinds, uris = _read_filter(server, context)
    subscription = server.subscriptions.open(context.principal_id, kinds, uris)
    news = News(server, context, subscription)
    try:
        await channel.send(
            context,
            notifications.acknowledged(context.request_id, _honoured(kinds, uris)),
        )
        # Where nothing is followed, nothing will ever come.
        if kinds or uris:
            while (message := await news.next(context.request_id)) is not None:
                await channel.send(context, message)
    finally:
        server.subscriptions.close(subscription)
    return Result.subscription({SUBSCRIPTION_ID: context.request_id})


class News:
    """The changes of one stream that its caller may know of.

    Args:
        server: The app.
        context: The request that opened the stream.
        subscription: What it follows.
    """

    def __init__(
        self, server: Server, context: Context, subscription: Subscription
    ) -> None:
        self._server = server
        self._context = context
        self._subscription = subscription
        self._lists = {kind: self._listed(kind) for kind in subscription.kinds}

    async def next(self, request_id: RequestId | None = None) -> dict[str, Any] | None:
        """Return the notification of the next change; `None` at the end.

        Args:
            request_id: The id that it carries, of a modern subscription.
        """
        while (change := await self._subscription.next()) is not None:
            what, _, name = change.partition(" ")
            if what == "list" and self._is_other(name):
                return notifications.list_changed(name, request_id)
            if what == "uri" and await self._may_know(name):
                return notifications.resource_updated(name, request_id)
        return None

    def _is_other(self, kind: Any) -> bool:
        """Whether a list is another for the caller, and not for others alone."""
        before, self._lists[kind] = self._lists[kind], self._listed(kind)
        # Those who see all are told of all, changes elsewhere among them.
        if not self._server.registry.rules(kind):
            return True
        return before != self._lists[kind]

    async def _may_know(self, uri: str) -> bool:
        if not may_read(self._server, self._context, uri):
            return False
        session = self._context.session
        return session is None or uri in await followed(self._server, session)

    def _listed(self, kind: ListKind) -> list[Component]:
        registry = self._server.registry
        kept: dict[str, list[Mapping[str, Component]]] = {
            "tools": [registry.tools],
            "prompts": [registry.prompts],
            "resources": [registry.resources, registry.templates],
        }
        return [
            component
            for components in kept[kind]
            for component in list(components.values())
            if is_visible(self._server, self._context, component)
        ]


def may_read(server: Server, context: Context, uri: str) -> bool:
    """Whether the caller may read what is at a URI."""

    def admits(component: Component) -> bool:
        return is_visible(server, context, component)

    found = server.registry.find_resource(uri, admits)
    return found is not None and found[0].scopes <= context.scopes


def _read_filter(
    server: Server, context: Context
) -> tuple[frozenset[ListKind], frozenset[str]]:
    """Return what of the filter is honoured: lists, and resources.

    Raises:
        ProtocolError: -32602, it is malformed.
    """
    wanted = context.params.get("notifications")
    if not is_object(wanted):
        raise invalid_params("Invalid params: notifications must be an object")
    for member in LIST_CHANGED.values():
        if not isinstance(wanted.get(member, False), bool):
            raise invalid_params(f"Invalid params: {member} must be a boolean")
    uris = wanted.get("resourceSubscriptions", [])
    if not isinstance(uris, list) or not all(isinstance(uri, str) for uri in uris):
        raise invalid_params(
            "Invalid params: resourceSubscriptions must be an array of strings"
        )
    if len(uris) > MAX_URIS:
        raise invalid_params(
            f"Invalid params: resourceSubscriptions has more than {MAX_URIS} URIs"
        )
    kinds: frozenset[Any] = frozenset(
        kind
        for kind, member in LIST_CHANGED.items()
        if wanted.get(member) and server.has(kind)
    )
    return kinds, frozenset(uri for uri in uris if may_read(server, context, uri))


def _honoured(kinds: frozenset[ListKind], uris: frozenset[str]) -> dict[str, Any]:
    lists: dict[str, Any] = {LIST_CHANGED[kind]: True for kind in sorted(kinds)}
    return {**lists, "resourceSubscriptions": sorted(uris)} if uris else lists


async def subscribe(server: Server, context: Context) -> Result:
    """Answer `resources/subscribe`: the stream of the session tells of updates.

    Raises:
        ProtocolError: -32002, there is no such resource; -32602, the session
            follows too many.
    """
    uri = string_param(context.params, "uri")
    if not may_read(server, context, uri):
        raise ResourceNotFoundError(data={"uri": uri})

    def add(uris: list[str]) -> list[str]:
        if uri not in uris and len(uris) >= MAX_URIS:
            raise invalid_params(f"A session follows at most {MAX_URIS} resources")
        return [*uris, uri] if uri not in uris else uris

    await _change(server, context.session, add)
    return Result.wire({})


async def unsubscribe(server: Server, context: Context) -> Result:
    """Answer `resources/unsubscribe`."""
    uri = string_param(context.params, "uri")

    def remove(uris: list[str]) -> list[str]:
        return [kept for kept in uris if kept != uri]

    await _change(server, context.session, remove)
    return Result.wire({})


async def followed(server: Server, session: Session) -> list[str]:
    """Return the resources that a legacy session follows."""
    uris: list[str] = json.loads(
        await server.backend.get(_FOLLOWED + session.id) or "[]"
    )
    return uris


async def _change(
    server: Server,
    session: Session | None,
    change: Callable[[list[str]], list[str]],
) -> None:
    # Without a session there is no stream to be told on.
    if session is None:
        return
    key, ttl = _FOLLOWED + session.id, session.expires - time.time()
    while True:
        old = await server.backend.get(key)
        new = json.dumps(change(json.loads(old or "[]")))
        if await server.backend.replace(key, old, new, ttl):
            return
