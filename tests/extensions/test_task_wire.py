"""A task as a modern client is sent it."""

from typing import Any

import pytest

from mcpkit.extensions.task_wire import detailed, timestamp, wire
from mcpkit.stores.base import TaskRecord

RECORD: dict[str, Any] = {
    "task_id": "a1",
    "owner": "principal:ada",
    "method": "tools/call",
    "request": {"params": {"name": "work"}},
    "created": 0.0,
    "updated": 1.5,
    "ttl": 60.0,
    "poll_ms": 500,
    "worker": "w1",
    "journal": {"e": []},
}
STATE: dict[str, Any] = {
    "taskId": "a1",
    "status": "working",
    "createdAt": "1970-01-01T00:00:00.000Z",
    "lastUpdatedAt": "1970-01-01T00:00:01.500Z",
    "ttlMs": 60_000,
    "pollIntervalMs": 500,
}
ASKED = {"who": {"method": "roots/list", "params": {}}}
RESULT = {"content": [], "isError": False}
ERROR = {"code": -32000, "message": "Closed."}

ROWS: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    ("as it was made", {}, {}),
    ("with a message", {"message": "Half of it."}, {"statusMessage": "Half of it."}),
    ("kept for ever", {"ttl": None}, {"ttlMs": None}),
    ("for part of a millisecond", {"ttl": 0.0004}, {"ttlMs": 0}),
]


@pytest.mark.parametrize(
    ("kept", "sent"), [pytest.param(*row, id=name) for name, *row in ROWS]
)
def test_a_state_has_its_members_and_no_others(kept: Any, sent: Any) -> None:
    """Spec ext-tasks, tasks: Tasks. What has no value is left out."""
    assert wire(TaskRecord(**{**RECORD, **kept})) == {**STATE, **sent}


def test_how_often_to_ask_may_be_left_open() -> None:
    """Spec ext-tasks, tasks: Tasks."""
    record = TaskRecord(**{**RECORD, "poll_ms": None})
    assert wire(record).keys() == STATE.keys() - {"pollIntervalMs"}


DETAILS: list[tuple[Any, dict[str, Any], dict[str, Any]]] = [
    ("working", {}, {}),
    ("input_required", {"asked": ASKED}, {"inputRequests": ASKED}),
    (
        "completed",
        {"result": RESULT},
        {"result": {"resultType": "complete", **RESULT}},
    ),
    (
        "failed",
        {"error": ERROR, "message": "Closed."},
        {"error": ERROR, "statusMessage": "Closed."},
    ),
    ("cancelled", {}, {}),
]


@pytest.mark.parametrize(("status", "kept", "sent"), DETAILS)
def test_each_state_has_a_member_of_its_own(status: Any, kept: Any, sent: Any) -> None:
    """Spec ext-tasks, tasks: Task Status. What others have of it is not shown."""
    everything = {"asked": {}, "answered": {"who": {}}, **kept}
    record = TaskRecord(**{**RECORD, **everything, "status": status})
    assert detailed(record) == {**STATE, "status": status, **sent}


def test_a_result_of_a_type_of_its_own_keeps_it() -> None:
    """Spec ext-tasks, tasks: Task Status."""
    result = {"resultType": "com.example/partial"}
    record = TaskRecord(**{**RECORD, "status": "completed", "result": result})
    assert detailed(record)["result"] == result


TIMES = [
    (1_764_500_400.0, "2025-11-30T11:00:00.000Z"),
    (1_764_500_400.9994, "2025-11-30T11:00:00.999Z"),
]


@pytest.mark.parametrize(("seconds", "text"), TIMES)
def test_a_time_has_milliseconds_and_is_in_utc(seconds: float, text: str) -> None:
    """Spec ext-tasks, tasks: Tasks."""
    assert timestamp(seconds) == text
