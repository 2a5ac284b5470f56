"""A span and a measurement for each request, by OpenTelemetry.

    from mcpkit import App
    from mcpkit.otel import instrument

    app = App("bookshop")
    instrument(app)

Where spans go is for the process to say. Nothing is written about that in the
code when it is started by `opentelemetry-instrument`:

    pip install 'mcpkit[otel]' opentelemetry-distro opentelemetry-exporter-otlp
    OTEL_SERVICE_NAME=bookshop opentelemetry-instrument uvicorn server:app

It reads `OTEL_EXPORTER_OTLP_ENDPOINT` and the like, and sets the providers that
`instrument` uses unless it is given others. `opentelemetry-bootstrap -a install`
adds instrumentations of what handlers use, such as httpx, whose spans become
children of the request's; `OTEL_TRACES_EXPORTER=console` shows them all. An
instrumentation of FastAPI or ASGI has a span for the HTTP request around.

What is recorded follows the semantic conventions for MCP, which are under
development still:

    span     `{method} {tool or prompt}`, kind SERVER; `{method}` for others
    metric   `mcp.server.operation.duration`, a histogram in seconds, which streams
             of changes are not in
    parent   what `_meta` says in `traceparent`, `tracestate` and `baggage`, read by
             the propagators of the process; the span of the HTTP request, if there
             is one, is linked. Without those keys that span is the parent.

Arguments, results and the messages of tools that failed are never recorded. Nor
is a name that the client made up in the name of a span or in a metric, which
would grow without bounds.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final, NamedTuple, Protocol, TypeAlias

from mcpkit.context import Context
from mcpkit.errors import INTERNAL_ERROR, ProtocolError, SetupError
from mcpkit.protocol.modern import sent_as
from mcpkit.protocol.results import Result
from mcpkit.registry import Registry
from mcpkit.telemetry import trace_keys

try:
    from opentelemetry import context as otel, metrics, propagate, trace
    from opentelemetry.trace import Link, Span, SpanKind, Status, StatusCode
except ImportError as error:
    raise SetupError(
        "mcpkit.otel needs OpenTelemetry: pip install 'mcpkit[otel]'"
    ) from error

METRIC: Final = "mcp.server.operation.duration"

BOUNDARIES: Final = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 120, 300)
"""The boundaries of the histogram, in seconds, as the conventions have them."""

MAX_VALUE: Final = 1024
"""How many characters an attribute has of a text that came from the client."""

_SCOPE: Final = "mcpkit"
_FAILED: Final = "a request could not be recorded"
_logger: Final = logging.getLogger("mcpkit")

Attributes: TypeAlias = dict[str, str]
CallNext: TypeAlias = Callable[[], Awaitable[Result]]
Middleware: TypeAlias = Callable[[Context, CallNext], Awaitable[Result]]


class Served(Protocol):
    """What `instrument` needs of an app."""

    registry: Registry

    def middleware(self, function: Middleware, /) -> Any:
        """Add what is called around the method of each request."""


class _Target(NamedTuple):
    """What a method is about.

    Attributes:
        member: The member of `params` that names it.
        attribute: The attribute that has the name.
        registered: What has such names; `None` where they are never few.
    """

    member: str
    attribute: str
    registered: Callable[[Registry], Mapping[str, Any]] | None = None


_RESOURCE: Final = _Target("uri", "mcp.resource.uri")
_TARGETS: Final[Mapping[str, _Target]] = MappingProxyType(
    {
        "tools/call": _Target("name", "gen_ai.tool.name", lambda all_: all_.tools),
        "prompts/get": _Target("name", "gen_ai.prompt.name", lambda all_: all_.prompts),
        "resources/read": _RESOURCE,
        "resources/subscribe": _RESOURCE,
        "resources/unsubscribe": _RESOURCE,
    }
)


def instrument(
    app: Served,
    *,
    tracer_provider: trace.TracerProvider | None = None,
    meter_provider: metrics.MeterProvider | None = None,
) -> None:
    """Record the requests of an app. What goes wrong in that fails no request.

    Args:
        app: The app, of which every method is recorded.
        tracer_provider: Where spans go, by default to that of the process, which
            may be set later.
        meter_provider: Where measurements go, likewise.
    """
    app.middleware(recorder(app.registry, tracer_provider, meter_provider))


def recorder(
    registry: Registry,
    tracer_provider: trace.TracerProvider | None = None,
    meter_provider: metrics.MeterProvider | None = None,
) -> Middleware:
    """Make the middleware that `instrument` adds to an app.

    Args:
        registry: What is registered in the app.
        tracer_provider: Where spans go.
        meter_provider: Where measurements go.
    """
    tracer = trace.get_tracer(_SCOPE, tracer_provider=tracer_provider)
    duration = metrics.get_meter(_SCOPE, meter_provider=meter_provider)
    histogram = duration.create_histogram(
        METRIC,
        unit="s",
        description="How long a request took, until its result was made",
        explicit_bucket_boundaries_advisory=BOUNDARIES,
    )
    return _Recorder(registry, tracer, histogram).record


@dataclass(slots=True)
class _Operation:
    """A request that is being served.

    Attributes:
        span: Its span.
        token: What was current before the span.
        labels: The attributes of its measurement.
        started: When it began.
    """

    span: Span
    token: Any
    labels: Attributes
    started: float


class _Failure(NamedTuple):
    """How a request failed.

    Attributes:
        type: A class of failures.
        code: The code of the JSON-RPC error that is answered, if one is.
        description: Its message.
    """

    type: str
    code: str | None = None
    description: str | None = None

    @property
    def attributes(self) -> Attributes:
        found = {"error.type": self.type}
        if self.code is not None:
            found["rpc.response.status_code"] = self.code
        return found


class _Recorder:
    def __init__(
        self, registry: Registry, tracer: trace.Tracer, duration: metrics.Histogram
    ) -> None:
        self._registry = registry
        self._tracer = tracer
        self._duration = duration

    async def record(self, context: Context, call_next: CallNext) -> Result:
        operation = self._begin(context)
        if operation is None:
            return await call_next()
        try:
            result = await call_next()
        except BaseException as error:
            self._end(operation, context, error)
            raise
        self._end(operation, context, result)
        return result

    def _begin(self, context: Context) -> _Operation | None:
        try:
            name, labels = self._labels(context)
            around = otel.get_current()
            parent = propagate.extract(trace_keys(context.meta), context=around)
            span = self._tracer.start_span(
                name,
                context=parent,
                kind=SpanKind.SERVER,
                attributes={**_details(context), **labels},
                links=_links(around, parent),
            )
        except Exception:
            _logger.exception(_FAILED)
            return None
        token = otel.attach(trace.set_span_in_context(span, parent))
        return _Operation(span, token, labels, time.perf_counter())

    def _labels(self, context: Context) -> tuple[str, Attributes]:
        """Return the name of the span, and the attributes that have few values."""
        name = context.method
        labels = {
            "mcp.method.name": name,
            "mcp.protocol.version": context.revision.version,
            **_transport(context),
        }
        if name == "tools/call":
            labels["gen_ai.operation.name"] = "execute_tool"
        target = _TARGETS.get(name)
        if target is not None and target.registered is not None:
            asked = context.params.get(target.member)
            if isinstance(asked, str) and asked in target.registered(self._registry):
                labels[target.attribute] = asked
                name = f"{name} {asked}"
        return name, labels

    def _end(
        self, operation: _Operation, context: Context, outcome: Result | BaseException
    ) -> None:
        span, labels = operation.span, operation.labels
        seconds = time.perf_counter() - operation.started
        with _harmless():
            if context.opened is not None:
                span.set_attribute("mcp.session.id", context.opened.id)
            failure = _failure(context, outcome)
            if failure is not None:
                span.set_attributes(failure.attributes)
                span.set_status(Status(StatusCode.ERROR, failure.description))
                labels = {**labels, **failure.attributes}
        with _harmless():
            # While the span is current, so that the measurement can refer to it. The
            # life of a stream is no latency.
            if not context.is_stream:
                self._duration.record(seconds, labels)
        with _harmless():
            span.end()
        otel.detach(operation.token)


@contextmanager
def _harmless() -> Iterator[None]:
    try:
        yield
    except Exception:
        _logger.exception(_FAILED)


def _transport(context: Context) -> Attributes:
    """Return how the request came: over HTTP, or else over the pipes of stdio."""
    if context.scope is None:
        return {"network.transport": "pipe"}
    version = str(context.scope.get("http_version", "1.1"))
    return {
        "network.transport": "quic" if version.startswith("3") else "tcp",
        "network.protocol.name": "http",
        "network.protocol.version": version,
    }


def _details(context: Context) -> Attributes:
    """Return the attributes that may have any value."""
    found: dict[str, Any] = {"jsonrpc.request.id": str(context.request_id)}
    if context.session is not None:
        found["mcp.session.id"] = context.session.id
    target = _TARGETS.get(context.method)
    if target is not None:
        found[target.attribute] = context.params.get(target.member)
    return {
        key: value[:MAX_VALUE] for key, value in found.items() if isinstance(value, str)
    }


def _links(around: otel.Context, parent: otel.Context) -> Sequence[Link]:
    """Link the span around, where another one is the parent."""
    ambient = trace.get_current_span(around).get_span_context()
    remote = trace.get_current_span(parent).get_span_context()
    return [Link(ambient)] if ambient.is_valid and remote != ambient else []


def _failure(context: Context, outcome: Result | BaseException) -> _Failure | None:
    match outcome:
        case Result():
            failed = context.method == "tools/call" and outcome.is_error
            return _Failure("tool_error") if failed else None
        case ProtocolError():
            sent = sent_as(outcome, context.era)
            return _Failure(str(sent.code), str(sent.code), sent.message)
        case Exception():
            return _Failure(str(INTERNAL_ERROR), str(INTERNAL_ERROR), "Internal error")
        case asyncio.CancelledError() if context.is_stream:
            # So ends a stream that its client has closed.
            return None
        case _:
            # Such as a cancellation: it is not answered.
            return _Failure(type(outcome).__qualname__)
