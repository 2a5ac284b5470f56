"""`subscriptions/listen`, and legacy `resources/subscribe` and `resources/unsubscribe`.

Spec 2026-07-28, basic/patterns/subscriptions; 2025-11-25, server/resources.
"""

import hashlib
import json
import time
from collections.abc import Callable, Collection
from typing import Any, Final

from mcpkit.components import Component
from mcpkit.context import Context, Session
from mcpkit.errors import (
    INTERNAL_ERROR,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    HTTPError,
    ProtocolError,
    ResourceNotFoundError,
)
from mcpkit.extensions.base import Filter
from mcpkit.methods.common import (
    check_extension,
    invalid_params,
    is_visible,
    string_param,
    view_of,
)
from mcpkit.observing import streaming
from mcpkit.protocol import notifications
from mcpkit.protocol.jsonrpc import RequestId, encode, is_object
from mcpkit.protocol.notifications import LIST_CHANGED, SUBSCRIPTION_ID
from mcpkit.protocol.results import Result
from mcpkit.registry import ListKind
from mcpkit.server import Server
from mcpkit.subscriptions import (
    ANY_URI,
    MAX_FILTER_BYTES,
    MAX_URIS,
    Change,
    Subscription,
    Topic,
)

_FOLLOWED: Final = "session-follows:"


async def listen(server: Server, context: Context) -> Result:
    """Answer `subscriptions/listen`, when it has ended.

    A stream that the server ends has this answer, as the page of subscriptions asks.
    The page of cancellation has `notifications/cancelled` in its place, which clients
    take for a stream that is lost.

    Raises:
        ProtocolError: -32602, the filter is malformed; -32601, there is no way to
            stream.
        HTTPError: 406, the client takes no stream; 503, there are too many of them,
            or it would follow too much.
    """
    channel = context.channel
    if channel is None:
        raise ProtocolError(METHOD_NOT_FOUND, "Method not found")
    if not channel.admits_stream:
        raise HTTPError(406, INVALID_REQUEST, "Accept must admit text/event-stream")
    request_id = context.request_id
    kinds, uris = _read_filter(server, context)
    topics = await _read_topics(server, context)
    honoured = _honoured(kinds, uris, topics)
    acknowledged = notifications.acknowledged(request_id, honoured)
    completed = Result.subscription({SUBSCRIPTION_ID: request_id})
    # Where nothing is followed, nothing will ever come.
    if not (kinds or uris or topics):
        with streaming(server.telemetry, context) as stream:
            await channel.send(context, acknowledged)
            stream.reason = "empty"
        return completed
    subscription = server.subscriptions.open(context.principal_id, kinds, uris, topics)
    try:
        with streaming(server.telemetry, context) as stream:
            news = News(server, context, subscription)
            await channel.send(context, acknowledged)
            for topic in sorted(topics):
                # What changed before it was followed is not told of again.
                message = await news.standing(topic, request_id)
                if message is not None:
                    await channel.send(context, message)
            while (message := await news.next(request_id)) is not None:
                await channel.send(context, message)
            stream.reason = subscription.reason
    finally:
        server.subscriptions.close(subscription)
    return completed


class News:
    """The changes of one stream that its caller may know of.

    Args:
        server: The app.
        context: The request that opened the stream.
        subscription: What it follows.

    Attributes:
        context: The request that asked last to be told.
    """

    def __init__(
        self, server: Server, context: Context, subscription: Subscription
    ) -> None:
        self._server = server
        self.context = context
        self._subscription = subscription
        self._lists = {kind: self._listed(kind) for kind in subscription.kinds}
        self._stands: dict[Topic, bytes] = {}

    async def next(self, request_id: RequestId) -> dict[str, Any] | None:
        """Return the notification of the next change; `None` at the end.

        Args:
            request_id: The id of the subscription.
        """
        while (told := await self._subscription.next()) is not None:
            change, to_all = told
            if change.what == "list" and (self._is_other(change.name) or to_all):
                return notifications.list_changed(change.name, request_id)
            if change.what == "uri" and self._may_read(change.name):
                return notifications.resource_updated(change.name, request_id)
            if change.what == "topic":
                topic = Topic(change.member, change.name)
                message = await self.standing(topic, request_id)
                if message is not None:
                    return message
        return None

    async def standing(
        self, topic: Topic, request_id: RequestId
    ) -> dict[str, Any] | None:
        """Return the notification of how a topic of an extension stands.

        Returns:
            `None` when there is none, or none that differs from the last one.
        """
        found = _filter_of(self._server, topic.member)
        if found is None:
            return None
        message = await found[1].message(self.context, topic.name)
        if message is None:
            return None
        mark = hashlib.sha256(encode(message)).digest()
        if self._stands.get(topic) == mark:
            return None
        self._stands[topic] = mark
        return notifications.of_subscription(message, request_id)

    async def take(self, session: Session) -> list[dict[str, Any]] | None:
        """Return the notifications of all changes that wait; `None` at the end.

        Args:
            session: The legacy session, which says what resources it follows.
        """
        changes = await self._subscription.take()
        if changes is None:
            return None
        lists = [
            notifications.list_changed(change.name)
            for change, to_all in changes.items()
            if change.what == "list" and (self._is_other(change.name) or to_all)
        ]
        updated = [
            notifications.resource_updated(uri)
            for uri in await self._followed(session, changes)
            if self._may_read(uri)
        ]
        return lists + updated

    async def _followed(
        self, session: Session, changes: Collection[Change]
    ) -> list[str]:
        """Return the resources that have changed and that a session follows."""
        uris = [change.name for change in changes if change.what == "uri"]
        if not uris:
            return []
        following = await followed(self._server, session)
        if ANY_URI in changes:
            return following
        kept = frozenset(following)
        return [uri for uri in uris if uri in kept]

    def _is_other(self, kind: Any) -> bool:
        """Whether a list is another for the caller, and not for others alone."""
        before, self._lists[kind] = self._lists[kind], self._listed(kind)
        return before != self._lists[kind]

    def _may_read(self, uri: str) -> bool:
        return may_read(self._server, self.context, uri)

    def _listed(self, kind: ListKind) -> list[Component]:
        view = view_of(self._server, self.context, kind)
        return self._server.registry.listed(kind, view)


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
        HTTPError: 503, it has too many resources, or is too large.
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
        fault = f"resourceSubscriptions has more than {MAX_URIS} URIs"
        raise HTTPError(503, INTERNAL_ERROR, fault)
    # The request is there until the stream ends, with all that is in it.
    if len(encode(context.params)) > MAX_FILTER_BYTES:
        fault = f"The params are larger than {MAX_FILTER_BYTES} bytes"
        raise HTTPError(503, INTERNAL_ERROR, fault)
    kinds: frozenset[Any] = frozenset(
        kind
        for kind, member in LIST_CHANGED.items()
        if wanted.get(member) and server.has(kind)
    )
    return kinds, frozenset(uri for uri in uris if may_read(server, context, uri))


async def _read_topics(server: Server, context: Context) -> frozenset[Topic]:
    """Return what of the filter is honoured by extensions.

    Raises:
        ProtocolError: -32602, it is malformed; -32021, the client did not declare
            the extension.
        HTTPError: 503, it has too many topics.
    """
    wanted = context.params["notifications"]
    topics: set[Topic] = set()
    for member in wanted:
        found = _filter_of(server, member)
        if found is None:
            continue
        identifier, reader = found
        check_extension(context, identifier)
        asked = wanted[member]
        if isinstance(asked, list) and len(asked) > MAX_URIS:
            raise _too_much()
        names = await reader.read(context, wanted[member])
        topics |= {Topic(member, name) for name in names}
    if len(topics) > MAX_URIS:
        raise _too_much()
    return frozenset(topics)


def _too_much() -> HTTPError:
    return HTTPError(503, INTERNAL_ERROR, "The filter has too many members")


def _filter_of(server: Server, member: str) -> tuple[str, Filter] | None:
    """Return the extension that has a member of the filter, and what reads it."""
    for extension in server.extensions.values():
        if member in extension.filters:
            return extension.identifier, extension.filters[member]
    return None


def _honoured(
    kinds: frozenset[ListKind], uris: frozenset[str], topics: frozenset[Topic]
) -> dict[str, Any]:
    honoured: dict[str, Any] = {LIST_CHANGED[kind]: True for kind in sorted(kinds)}
    if uris:
        honoured["resourceSubscriptions"] = sorted(uris)
    for topic in sorted(topics):
        honoured.setdefault(topic.member, []).append(topic.name)
    return honoured


async def subscribe(server: Server, context: Context) -> Result:
    """Answer `resources/subscribe`: the stream of the session tells of updates.

    Raises:
        ProtocolError: -32002, there is no such resource; -32602, the session
            follows too many, or their URIs are too long together.
    """
    uri = string_param(context.params, "uri")
    if not may_read(server, context, uri):
        raise ResourceNotFoundError(data={"uri": uri})

    def add(uris: list[str]) -> list[str]:
        if uri in uris:
            return uris
        if len(uris) >= MAX_URIS:
            raise invalid_params(f"A session follows at most {MAX_URIS} resources")
        if sum(map(len, uris)) + len(uri) > MAX_FILTER_BYTES:
            raise invalid_params("The URIs that the session follows are too long")
        return [*uris, uri]

    await _change(server, context.session, add)
    return Result.wire({})


async def unsubscribe(server: Server, context: Context) -> Result:
    """Answer `resources/unsubscribe`."""
    uri = string_param(context.params, "uri")

    def remove(uris: list[str]) -> list[str]:
        return [kept for kept in uris if kept != uri]

    await _change(server, context.session, remove)
    return Result.wire({})


async def unfollow(server: Server, session: Session) -> None:
    """Forget what a session follows: it has ended."""
    await _change(server, session, lambda _: [])


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
        before = json.loads(old or "[]")
        after = change(before)
        if after == before:
            return
        new = json.dumps(after) if after else None
        if await server.backend.replace(key, old, new, ttl):
            return
