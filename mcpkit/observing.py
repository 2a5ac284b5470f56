"""What of a request is told to those who listen, and written to the log."""

import logging
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

from mcpkit.context import Context
from mcpkit.errors import INTERNAL_ERROR, ProtocolError
from mcpkit.protocol.jsonrpc import Encoded
from mcpkit.protocol.methods import METHODS
from mcpkit.protocol.modern import sendable
from mcpkit.protocol.results import Result
from mcpkit.telemetry import EventName, Telemetry, access, access_line, trace_keys

_RUNS: Final[Mapping[str, EventName]] = MappingProxyType(
    {
        "tools/call": "tool.execute",
        "resources/read": "resource.read",
        "prompts/get": "prompt.get",
    }
)
"""The events of the methods that run a handler."""


def tell(telemetry: Telemetry, context: Context, seconds: float) -> None:
    """Tell those who listen what came of a request.

    Args:
        telemetry: Those who listen.
        context: The request.
        seconds: How long it took.
    """
    outcome = context.outcome
    about = {"method": context.method, "target": target_of(context), **spoken(context)}
    if outcome is None:
        telemetry.emit("request.cancelled", **about)
        return
    code = _code_of(context, outcome)
    event = _RUNS.get(context.method)
    if event is not None:
        run = {key: value for key, value in about.items() if key != "method"}
        status = "error" if code is not None or _is_failure(outcome) else "ok"
        telemetry.emit(event, seconds, **run, status=status, code=code)
    if isinstance(outcome, Result) and outcome.kind == "input_required":
        questions = len(outcome.value.get("inputRequests", ()))
        telemetry.emit("mrtr.input_required", **about, questions=questions)
    # A stream is told of by its own events: its life is no latency.
    if context.method != "subscriptions/listen" or code is not None:
        status = "ok" if code is None else "error"
        telemetry.emit(
            "request.stop",
            seconds,
            **about,
            **trace_keys(context.meta),
            status=status,
            code=code,
        )


def write(context: Context, seconds: float) -> None:
    """Write the line of a request to the log of requests."""
    if not access.isEnabledFor(logging.INFO):
        return
    outcome = context.outcome
    code = None if outcome is None else _code_of(context, outcome)
    status = "cancelled" if outcome is None else "ok" if code is None else "error"
    line = access_line(
        method=context.method,
        seconds=seconds,
        status=status,
        target=target_of(context),
        code=code,
        principal=context.principal_id,
        **spoken(context),
    )
    access.info("%s", line)


def target_of(context: Context) -> str | None:
    """Return the name of the tool or prompt, or the URI of the resource."""
    method = METHODS.get(context.method)
    if method is None or method.named_by is None:
        return None
    target = context.params.get(method.named_by)
    return target if isinstance(target, str) else None


def spoken(context: Context) -> dict[str, Any]:
    """Return the era and the version that the client speaks."""
    return {"era": context.era, "version": context.revision.version}


def _code_of(context: Context, outcome: Any) -> int | None:
    """Return the code of the error that the client is sent, if it is one."""
    if isinstance(outcome, (Result, Encoded)):
        return None
    if not isinstance(outcome, ProtocolError):
        return INTERNAL_ERROR
    return sendable(outcome).code if context.era == "modern" else outcome.code


def _is_failure(outcome: Any) -> bool:
    if outcome.kind == "raw":
        return bool(outcome.value.get("isError"))
    return bool(outcome.kind == "error")
