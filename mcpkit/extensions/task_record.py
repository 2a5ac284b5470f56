"""The record of a task: what of its request is kept, and how it changes.

Spec ext-tasks, specification/draft/tasks: Task Status.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from mcpkit.context import Context, Session
from mcpkit.errors import INTERNAL_ERROR, UNSET, ProtocolError
from mcpkit.protocol.jsonrpc import is_object
from mcpkit.protocol.modern import own_meta
from mcpkit.protocol.results import Result
from mcpkit.stores.base import Status, TaskRecord

_SESSION: Final = ("id", "version", "capabilities", "expires")
"""What is kept of a session, as its arguments come."""

_ROUND: Final = frozenset({"inputResponses", "requestState"})
"""The params of a round of questions before the task, which were read by then."""

_NOBODY: Final = ""
"""Who runs a task that its worker left for others: it is abandoned at once."""

_SHUT_DOWN: Final = ProtocolError(INTERNAL_ERROR, "The server was shut down")


@dataclass(frozen=True, slots=True)
class ResumedPrincipal:
    """Who called, when a task is run again: the request itself is gone."""

    id: str
    scopes: frozenset[str]


def owner_of(context: Context) -> str | None:
    """Return who may know of a task: its principal, or its legacy session."""
    principal = context.principal_id
    if principal is not None:
        return f"principal:{principal}"
    session = context.session
    return None if session is None else f"session:{session.id}"


def kept_request(context: Context, app: str) -> dict[str, Any]:
    """Return what is kept of a request, to run it again.

    Args:
        context: The request.
        app: The name of the app that it came to.
    """
    params = {key: it for key, it in context.params.items() if key not in _ROUND}
    session = context.session
    return {
        "app": app,
        "params": params,
        "version": context.revision.version,
        "principal": context.principal_id,
        "scopes": sorted(context.scopes),
        "session": session and {name: getattr(session, name) for name in _SESSION},
    }


def tool_name(record: TaskRecord) -> str:
    """Return the name of the tool that was called."""
    name: str = record.request["params"]["name"]
    return name


def is_of(record: TaskRecord, app: str) -> bool:
    """Whether a task is of an app of this name: several may share a store."""
    return bool(record.request["app"] == app)


def principal_of(record: TaskRecord) -> ResumedPrincipal | None:
    """Return who called, as far as it was kept."""
    identity = record.request["principal"]
    if identity is None:
        return None
    return ResumedPrincipal(identity, frozenset(record.request["scopes"]))


def session_of(record: TaskRecord) -> Session | None:
    """Return the legacy session of the call: what its client can be asked, too."""
    kept = record.request["session"]
    return kept and Session(*(kept[name] for name in _SESSION))


def completed(record: TaskRecord, result: Result) -> TaskRecord:
    """Return the record of a task that came to a result, be it an error of the tool."""
    members = result.members()
    meta = members.pop("_meta", None)
    if result.metadata or is_object(meta):
        members["_meta"] = own_meta(meta, result.metadata or {})
    return _ended(record, "completed", None, result=members)


def failed(record: TaskRecord, error: ProtocolError) -> TaskRecord:
    """Return the record of a task whose request as such came to an error."""
    fault = {"code": error.code, "message": error.message}
    if error.data is not UNSET:
        fault["data"] = error.data
    return _ended(record, "failed", error.message, error=fault)


def cancelled(record: TaskRecord) -> TaskRecord:
    """Return the record of a task that was cancelled."""
    return _ended(record, "cancelled", None)


def cancelling(record: TaskRecord) -> TaskRecord:
    """Return the record of a task whose client wants it to end."""
    # Nobody here runs what is done elsewhere.
    if record.worker is None:
        return cancelled(record)
    return replace(record, cancelling=True)


def answered(record: TaskRecord, answers: Mapping[str, Any]) -> TaskRecord:
    """Return a record with the answers to what it asks; others are ignored."""
    new = {key: it for key, it in answers.items() if key in record.asked}
    if not new:
        return record
    asked = {key: it for key, it in record.asked.items() if key not in new}
    return replace(
        record,
        status="input_required" if asked else "working",
        asked=asked,
        answered={**record.answered, **new},
    )


def left(record: TaskRecord) -> TaskRecord:
    """Return the record of a task whose worker ends before it does."""
    if record.cancelling:
        return cancelled(record)
    if not record.resumable:
        return failed(record, _SHUT_DOWN)
    return replace(record, worker=_NOBODY, lease=0.0)


def _ended(
    record: TaskRecord,
    status: Status,
    message: str | None,
    *,
    result: Mapping[str, Any] | None = None,
    error: Mapping[str, Any] | None = None,
) -> TaskRecord:
    return replace(
        record,
        # It is not run again, and its arguments may be as large as any request.
        request={**record.request, "params": {"name": tool_name(record)}},
        status=status,
        message=message,
        result=result,
        error=error,
        asked={},
        answered={},
        journal=None,
    )
