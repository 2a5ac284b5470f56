"""A task as it goes on the wire. Spec ext-tasks, specification/draft/tasks: Tasks."""

import time
from collections.abc import Mapping
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Any, Final

from mcpkit.components import Tool
from mcpkit.context import Context
from mcpkit.errors import METHOD_NOT_FOUND, ProtocolError
from mcpkit.protocol.content import without_none
from mcpkit.stores.base import TERMINAL, Status, TaskRecord

IDENTIFIER: Final = "io.modelcontextprotocol/tasks"
"""The extension, by which clients declare it."""

CAPABILITY: Final[Mapping[str, Any]] = {
    "list": {},
    "cancel": {},
    "requests": {"tools": {"call": {}}},
}
"""What `initialize` declares, in 2025-11-25."""

_INLINE: Final[Mapping[Status, tuple[str, str]]] = MappingProxyType(
    {
        "input_required": ("inputRequests", "asked"),
        "completed": ("result", "result"),
        "failed": ("error", "error"),
    }
)
"""What a task has beside its state: the member, and where the record has it."""


def wire(record: TaskRecord) -> dict[str, Any]:
    """Return the state of a task."""
    optional = without_none(
        {"statusMessage": record.message, "pollIntervalMs": record.poll_ms}
    )
    return {
        "taskId": record.task_id,
        "status": record.status,
        "createdAt": timestamp(record.created),
        "lastUpdatedAt": timestamp(record.updated),
        "ttlMs": None if record.ttl is None else round(record.ttl * 1000),
        **optional,
    }


def detailed(record: TaskRecord) -> dict[str, Any]:
    """Return the state of a task, with what it asks or what it came to."""
    inline = _INLINE.get(record.status)
    if inline is None:
        return wire(record)
    member, name = inline
    value = getattr(record, name)
    if member == "result":
        # It is all that the request would have been answered with.
        value = {"resultType": "complete", **value}
    return {**wire(record), member: value}


def timestamp(seconds: float) -> str:
    """Return a time as ISO 8601 has it.

    Example:
        >>> timestamp(0)
        '1970-01-01T00:00:00.000Z'
    """
    moment = datetime.fromtimestamp(seconds, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def is_expired(record: TaskRecord) -> bool:
    """Whether a task has ended, and was kept for its time."""
    is_over = record.ttl is not None and record.created + record.ttl <= time.time()
    return is_over and record.status in TERMINAL


def support_of(tool: Tool) -> str | None:
    """Return the `taskSupport` that a tool is listed with in 2025-11-25, if any."""
    return "optional" if callable(tool.task) else tool.task


def asks_for_task(context: Context) -> bool:
    """Whether a call of a legacy client is to become a task."""
    return context.revision.tasks and context.params.get("task") is not None


def check_support(context: Context, tool: Tool) -> None:
    """Refuse a legacy client that calls a tool with a task, or without, and may not.

    Spec 2025-11-25, basic/utilities/tasks: Tool-Level Negotiation.

    Raises:
        ProtocolError: -32601, the tool does not run so.
    """
    asks = asks_for_task(context)
    if asks and tool.task is None:
        fault = f"Tool {tool.name} does not run as a task"
        raise ProtocolError(METHOD_NOT_FOUND, fault)
    if not asks and tool.task == "required":
        fault = f"Tool {tool.name} runs as a task alone"
        raise ProtocolError(METHOD_NOT_FOUND, fault)
