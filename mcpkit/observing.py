"""What of a request is told to those who listen, and written to the log."""

import asyncio
import logging
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

from mcpkit.context import Context
from mcpkit.errors import ProtocolError
from mcpkit.protocol.jsonrpc import Encoded, is_object
from mcpkit.protocol.methods import METHODS
from mcpkit.protocol.modern import sent_as
from mcpkit.protocol.results import Result
from mcpkit.server import Server
from mcpkit.telemetry import (
    EventName,
    StreamEnd,
    Telemetry,
    access,
    access_line,
    trace_keys,
)

_RUNS: Final[Mapping[str, EventName]] = MappingProxyType(
    {
        "tools/call": "tool.execute",
        "resources/read": "resource.read",
        "prompts/get": "prompt.get",
    }
)
"""The events of the methods that run a handler."""


def tell(server: Server, context: Context, seconds: float) -> None:
    """Tell those who listen what came of a request.

    Args:
        server: The app.
        context: The request.
        seconds: How long it took.
    """
    # A stream is told of by its own events: its life is no latency.
    if context.is_stream:
        return
    emit, outcome = server.telemetry.emit, context.outcome
    about = {"method": context.method, "target": target_of(context), **spoken(context)}
    if outcome is None:
        emit("request.cancelled", **about)
        return
    code = _code_of(context, outcome)
    _tell_run(server, context, outcome, seconds, code)
    if isinstance(outcome, Result) and outcome.kind == "input_required":
        questions = len(outcome.value.get("inputRequests", ()))
        emit("mrtr.input_required", **about, questions=questions)
    status = "ok" if code is None else "error"
    trace = _trace(context)
    emit("request.stop", seconds, **about, **trace, status=status, code=code)


def _tell_run(
    server: Server, context: Context, outcome: Any, seconds: float, code: int | None
) -> None:
    """Tell of the handler that a request has run, where middleware has let it."""
    event = _RUNS.get(context.method)
    if event is None or (server.middlewares and context.took is None):
        return
    failed = code is not None or outcome.is_error
    server.telemetry.emit(
        event,
        seconds if context.took is None else context.took,
        target=target_of(context),
        **spoken(context),
        status="error" if failed else "ok",
        code=code,
    )


@dataclass(slots=True)
class Stream:
    """A stream of notifications that is open.

    Attributes:
        reason: Why it ends.
    """

    reason: StreamEnd


@contextmanager
def streaming(telemetry: Telemetry, context: Context) -> Iterator[Stream]:
    """Tell those who listen of a stream of notifications, when it opens and ends.

    Args:
        telemetry: Those who listen.
        context: The request that opens it.

    Yields:
        The stream, which is to be told why it ends.
    """
    stream, began = Stream("client"), time.perf_counter()
    context.is_stream = True
    about = {"method": context.method, **spoken(context), **_trace(context)}
    telemetry.emit("subscription.start", **about)
    try:
        yield stream
    except asyncio.CancelledError:
        stream.reason = "client"
        raise
    except BaseException:
        stream.reason = "error"
        raise
    finally:
        seconds = time.perf_counter() - began
        telemetry.emit("subscription.stop", seconds, **about, reason=stream.reason)


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
    if method is None or method.named_by is None or not is_object(context.params):
        return None
    target = context.params.get(method.named_by)
    return target if isinstance(target, str) else None


def spoken(context: Context) -> dict[str, Any]:
    """Return the era and the version that the client speaks."""
    return {"era": context.era, "version": context.revision.version}


def _trace(context: Context) -> dict[str, str]:
    return trace_keys(context.meta) if is_object(context.params) else {}


def _code_of(context: Context, outcome: Result | Encoded | ProtocolError) -> int | None:
    """Return the code of the error that the client is sent, if it is one."""
    if isinstance(outcome, (Result, Encoded)):
        return None
    return sent_as(outcome, context.era).code
