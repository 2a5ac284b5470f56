"""The notifications that a server sends.

Those of a request travel with it; those of changes on the stream of a subscription,
whose id they carry. Spec 2026-07-28, basic/patterns/progress, server/utilities/logging
and basic/patterns/subscriptions.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

from mcpkit.protocol.content import without_none
from mcpkit.protocol.jsonrpc import RequestId, notification

SUBSCRIPTION_ID: Final = "io.modelcontextprotocol/subscriptionId"
"""The key of `_meta` that has the id of the request which opened the stream."""

LIST_CHANGED: Final[Mapping[str, str]] = MappingProxyType(
    {
        "tools": "toolsListChanged",
        "prompts": "promptsListChanged",
        "resources": "resourcesListChanged",
    }
)
"""The member of a filter that asks for the changes of a list."""


def progress(
    token: str | int, done: float, total: float | None, message: str | None
) -> dict[str, Any]:
    """Build the notification of how far a request has come.

    Example:
        >>> progress("t", 1, 3, None)["params"]
        {'progressToken': 't', 'progress': 1, 'total': 3}
    """
    params = {
        "progressToken": token,
        "progress": done,
        "total": total,
        "message": message,
    }
    return notification("notifications/progress", without_none(params))


def log_message(level: str, data: Any, logger: str | None) -> dict[str, Any]:
    """Build the notification of a log message, whose data may be any JSON value."""
    named = {} if logger is None else {"logger": logger}
    params = {"level": level, **named, "data": data}
    return notification("notifications/message", params)


def acknowledged(
    subscription: RequestId, honoured: Mapping[str, Any]
) -> dict[str, Any]:
    """Build the first message of a subscription: what of its filter is honoured."""
    params = {"_meta": {SUBSCRIPTION_ID: subscription}, "notifications": honoured}
    return notification("notifications/subscriptions/acknowledged", params)


def list_changed(kind: str, subscription: RequestId | None = None) -> dict[str, Any]:
    """Build the notification that a list has changed.

    Args:
        kind: Which one: tools, prompts or resources.
        subscription: The id of the subscription; a legacy client has none.

    Example:
        >>> list_changed("tools")
        {'jsonrpc': '2.0', 'method': 'notifications/tools/list_changed', 'params': {}}
    """
    return notification(
        f"notifications/{kind}/list_changed", _of_subscription(subscription)
    )


def resource_updated(uri: str, subscription: RequestId | None = None) -> dict[str, Any]:
    """Build the notification that a resource was updated."""
    params = {**_of_subscription(subscription), "uri": uri}
    return notification("notifications/resources/updated", params)


def of_subscription(
    message: Mapping[str, Any], subscription: RequestId
) -> dict[str, Any]:
    """Return a notification as one of a subscription, whose id it carries."""
    params = message.get("params", {})
    meta = {**params.get("_meta", {}), SUBSCRIPTION_ID: subscription}
    return {**message, "params": {**params, "_meta": meta}}


def cancelled(
    request_id: RequestId, reason: str, meta: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Build the notification that nobody waits for a request any more.

    Args:
        request_id: The id of the request.
        reason: Why.
        meta: The `_meta` of the request, which may tell what it is about.
    """
    params = {"_meta": meta, "requestId": request_id, "reason": reason}
    return notification("notifications/cancelled", without_none(params))


def _of_subscription(subscription: RequestId | None) -> dict[str, Any]:
    return {} if subscription is None else {"_meta": {SUBSCRIPTION_ID: subscription}}
