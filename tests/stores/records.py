"""Tasks for the tests of stores."""

from typing import Any, Final

from mcpkit.stores.base import TaskRecord

NOW: Final = 1_750_000_000.0
"""When tests begin, in seconds since the epoch."""


def task(task_id: str = "t", **changes: Any) -> TaskRecord:
    """Return a task that has just been made, save for the changes."""
    values: dict[str, Any] = {
        "task_id": task_id,
        "owner": "ada",
        "method": "tools/call",
        "request": {"name": "order", "arguments": {"isbn": "0-441-17271-7"}},
        "created": NOW,
        "updated": NOW,
    }
    return TaskRecord(**values | changes)
