"""Requests are recorded as the semantic conventions for MCP say, and no more."""

import asyncio
import importlib
import logging
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest
from opentelemetry import baggage, context as otel, propagate, trace
from opentelemetry.propagators.composite import CompositePropagator
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import HistogramDataPoint, InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanContext, SpanKind, TraceFlags

from mcpkit import App, Context, ProtocolError, Result
from mcpkit.context import Session
from mcpkit.errors import SetupError
from mcpkit.otel import BOUNDARIES, MAX_VALUE, METRIC, CallNext, recorder
from mcpkit.protocol.versions import REVISIONS
from tests.calls import V_2025_11_25
from tests.wire import MODERN

TRACE_ID = 0x0AF7651916CD43DD8448EB211C80319C
PARENT_ID = 0x00F067AA0BA902B7
TRACEPARENT = "00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01"


def shop() -> App:
    app = App("tests")

    @app.tool
    def search(query: str = "") -> str:
        raise NotImplementedError

    @app.prompt
    def review(title: str) -> str:
        raise NotImplementedError

    return app


@dataclass
class Seen:
    """Where spans and measurements go, and what came there."""

    exporter: InMemorySpanExporter = field(default_factory=InMemorySpanExporter)
    reader: InMemoryMetricReader = field(default_factory=InMemoryMetricReader)

    def __post_init__(self) -> None:
        self.tracers = TracerProvider(shutdown_on_exit=False)
        self.tracers.add_span_processor(SimpleSpanProcessor(self.exporter))
        self.meters = MeterProvider([self.reader], shutdown_on_exit=False)

    @property
    def span(self) -> ReadableSpan:
        """The one span that came."""
        (span,) = self.exporter.get_finished_spans()
        return span

    @property
    def point(self) -> HistogramDataPoint:
        """The measurements, which have the same attributes."""
        data = self.reader.get_metrics_data()
        assert data is not None
        (metric,) = data.resource_metrics[0].scope_metrics[0].metrics
        assert (metric.name, metric.unit) == (METRIC, "s")
        (point,) = metric.data.data_points
        assert isinstance(point, HistogramDataPoint)
        return point


@pytest.fixture
def seen() -> Iterator[Seen]:
    seen = Seen()
    yield seen
    seen.tracers.shutdown()
    seen.meters.shutdown()


def context_of(
    method: str,
    params: Mapping[str, Any] | None = None,
    *,
    at: str = MODERN,
    **given: Any,
) -> Context:
    host: Any = shop()
    return Context(
        request_id=given.pop("request_id", 7),
        method=method,
        params=dict(params or {}),
        revision=REVISIONS[at],
        host=host,
        **given,
    )


async def nothing() -> Result:
    return Result.content([])


def identity(span: ReadableSpan) -> SpanContext:
    found = span.get_span_context()
    assert found is not None
    return found


async def record(seen: Seen, context: Context, call_next: CallNext = nothing) -> Result:
    recorded = recorder(shop().registry, seen.tracers, seen.meters)
    return await recorded(context, call_next)


SESSION = Session("the id", V_2025_11_25, {}, 0)
HTTP = {"type": "http", "http_version": "1.1"}
STDIO = {"network.transport": "pipe"}

SPANS: list[tuple[str, Context, str, dict[str, str]]] = [
    # id, the request, the name of the span, its attributes
    (
        "a tool",
        context_of("tools/call", {"name": "search", "arguments": {"query": "dune"}}),
        "tools/call search",
        {
            "mcp.protocol.version": "2026-07-28",
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": "search",
            **STDIO,
        },
    ),
    (
        "a prompt",
        context_of("prompts/get", {"name": "review", "arguments": {"title": "x"}}),
        "prompts/get review",
        {
            "mcp.protocol.version": "2026-07-28",
            "gen_ai.prompt.name": "review",
            **STDIO,
        },
    ),
    (
        "a resource, whose URI would make too many names",
        context_of("resources/read", {"uri": "books://1"}),
        "resources/read",
        {
            "mcp.protocol.version": "2026-07-28",
            "mcp.resource.uri": "books://1",
            **STDIO,
        },
    ),
    (
        "a list, over HTTP",
        context_of("tools/list", scope=HTTP),
        "tools/list",
        {
            "mcp.protocol.version": "2026-07-28",
            "network.transport": "tcp",
            "network.protocol.name": "http",
            "network.protocol.version": "1.1",
        },
    ),
    (
        "HTTP/3",
        context_of("tools/list", scope={**HTTP, "http_version": "3"}),
        "tools/list",
        {
            "mcp.protocol.version": "2026-07-28",
            "network.transport": "quic",
            "network.protocol.name": "http",
            "network.protocol.version": "3",
        },
    ),
    (
        "a session",
        context_of("ping", at=V_2025_11_25, session=SESSION),
        "ping",
        {
            "mcp.protocol.version": "2025-11-25",
            "mcp.session.id": "the id",
            **STDIO,
        },
    ),
    (
        "a tool that there is not",
        context_of("tools/call", {"name": "nosuch"}),
        "tools/call",
        {
            "mcp.protocol.version": "2026-07-28",
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": "nosuch",
            **STDIO,
        },
    ),
    (
        "a name that is none",
        context_of("tools/call", {"name": ["search"]}),
        "tools/call",
        {
            "mcp.protocol.version": "2026-07-28",
            "gen_ai.operation.name": "execute_tool",
            **STDIO,
        },
    ),
    (
        "no name",
        context_of("prompts/get"),
        "prompts/get",
        {"mcp.protocol.version": "2026-07-28", **STDIO},
    ),
    (
        "a long URI",
        context_of("resources/subscribe", {"uri": "x" * 2000}, at=V_2025_11_25),
        "resources/subscribe",
        {
            "mcp.protocol.version": "2025-11-25",
            "mcp.resource.uri": "x" * MAX_VALUE,
            **STDIO,
        },
    ),
]


@pytest.mark.parametrize(
    ("context", "name", "attributes"),
    [pytest.param(*row, id=name) for name, *row in SPANS],
)
async def test_a_request_has_a_span(
    context: Context, name: str, attributes: dict[str, str], seen: Seen
) -> None:
    """OpenTelemetry, semantic conventions for MCP: Server."""
    assert (await record(seen, context)).kind == "resource"
    span = seen.span
    assert (span.name, span.kind) == (name, SpanKind.SERVER)
    assert span.attributes == {
        "mcp.method.name": context.method,
        "jsonrpc.request.id": "7",
        **attributes,
    }
    assert (span.status.is_unset, span.events, span.links) == (True, (), ())
    assert span.instrumentation_scope is not None
    assert span.instrumentation_scope.name == "mcpkit"


@pytest.mark.parametrize("request_id", [0, "", "a", -1, 2**63])
async def test_the_id_of_a_request_is_a_text(request_id: Any, seen: Seen) -> None:
    await record(seen, context_of("ping", at=V_2025_11_25, request_id=request_id))
    assert seen.span.attributes is not None
    assert seen.span.attributes["jsonrpc.request.id"] == str(request_id)


async def test_a_session_that_a_request_opens_is_its_own(seen: Seen) -> None:
    context = context_of("initialize", at=V_2025_11_25)

    async def opening() -> Result:
        context.opened = SESSION
        return Result.wire({})

    await record(seen, context, opening)
    assert seen.span.attributes is not None
    assert seen.span.attributes["mcp.session.id"] == "the id"


FAILED: list[tuple[str, str, str, Exception, str, str]] = [
    # id, method, version, what is raised, the code, the description
    (
        "an error",
        "tools/call",
        MODERN,
        ProtocolError(-32602, "Unknown tool: x", {"secret": 1}),
        "-32602",
        "Unknown tool: x",
    ),
    (
        "a code that the modern era has not",
        "resources/read",
        MODERN,
        ProtocolError(-32002, "Resource not found"),
        "-32602",
        "Resource not found",
    ),
    (
        "the same code in the legacy era",
        "resources/read",
        V_2025_11_25,
        ProtocolError(-32002, "Resource not found"),
        "-32002",
        "Resource not found",
    ),
    (
        "a fault of ours",
        "prompts/get",
        MODERN,
        ValueError("a secret"),
        "-32603",
        "Internal error",
    ),
]


@pytest.mark.parametrize(
    ("method", "at", "error", "code", "description"),
    [pytest.param(*row, id=name) for name, *row in FAILED],
)
async def test_an_error_is_the_status_of_its_span(
    method: str, at: str, error: Exception, code: str, description: str, seen: Seen
) -> None:
    async def failing() -> Result:
        raise error

    with pytest.raises(type(error)) as caught:
        await record(seen, context_of(method, at=at), failing)
    assert caught.value is error
    failure = {"error.type": code, "rpc.response.status_code": code}
    assert seen.span.attributes is not None
    assert failure.items() <= seen.span.attributes.items()
    assert (seen.span.status.status_code.name, seen.span.status.description) == (
        "ERROR",
        description,
    )
    assert seen.span.events == ()
    assert seen.point.attributes is not None
    assert failure.items() <= seen.point.attributes.items()


TOOL_ERRORS = [
    # id, method, the result, the kind of its error
    ("an error", "tools/call", Result.error("a secret"), "tool_error"),
    ("raw", "tools/call", Result.raw({"isError": True}), "tool_error"),
    ("wire", "tools/call", Result.wire({"isError": True, "content": []}), "tool_error"),
    ("raw, but none", "tools/call", Result.raw({"isError": False}), None),
    ("raw, without saying so", "tools/call", Result.raw({}), None),
    ("no flag", "tools/call", Result.raw({"isError": 1}), None),
    ("a value", "tools/call", Result.structured({"isError": True}), None),
    ("a question", "tools/call", Result.input_required({}), None),
    ("another method", "tasks/get", Result.wire({"isError": True}), None),
]


@pytest.mark.parametrize(
    ("method", "result", "kind"),
    [pytest.param(*row, id=name) for name, *row in TOOL_ERRORS],
)
async def test_a_tool_that_reports_a_failure_failed(
    method: str, result: Result, kind: str | None, seen: Seen
) -> None:
    async def returning() -> Result:
        return result

    assert await record(seen, context_of(method), returning) is result
    span, labels = seen.span, seen.point.attributes
    assert span.attributes is not None
    assert labels is not None
    assert span.attributes.get("error.type") == kind
    assert labels.get("error.type") == kind
    assert "rpc.response.status_code" not in {**span.attributes, **labels}
    assert (span.status.status_code.name, span.status.description) == (
        "UNSET" if kind is None else "ERROR",
        None,
    )


async def test_what_is_cancelled_has_no_answer(seen: Seen) -> None:
    began = asyncio.Event()

    async def waiting() -> Result:
        began.set()
        await asyncio.Event().wait()
        raise NotImplementedError

    task = asyncio.create_task(record(seen, context_of("tools/call"), waiting))
    await began.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert seen.span.attributes is not None
    assert seen.span.attributes["error.type"] == "CancelledError"
    assert "rpc.response.status_code" not in seen.span.attributes
    assert seen.span.status.status_code.name == "ERROR"


async def test_a_request_is_measured(seen: Seen) -> None:
    """OpenTelemetry, semantic conventions for MCP: mcp.server.operation.duration."""
    context = context_of("tools/call", {"name": "search"}, scope=HTTP, session=SESSION)
    await record(seen, context)
    point = seen.point
    assert point.attributes == {
        "mcp.method.name": "tools/call",
        "mcp.protocol.version": "2026-07-28",
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "search",
        "network.transport": "tcp",
        "network.protocol.name": "http",
        "network.protocol.version": "1.1",
    }
    assert (point.count, tuple(point.explicit_bounds)) == (1, BOUNDARIES)
    assert 0 < point.sum < 1
    (exemplar,) = point.exemplars
    assert exemplar.span_id == identity(seen.span).span_id


async def test_what_clients_make_up_makes_no_measurements(seen: Seen) -> None:
    for number in range(5):
        await record(seen, context_of("tools/call", {"name": f"x{number}"}))
        await record(
            seen, context_of("tools/call", {"name": f"y{number}"}, request_id=number)
        )
    assert seen.point.count == 10
    names = {span.name for span in seen.exporter.get_finished_spans()}
    assert names == {"tools/call"}


@contextmanager
def ambient() -> Iterator[SpanContext]:
    """Make the span of an HTTP request current."""
    around = SpanContext(0xA, 0xB, is_remote=False, trace_flags=TraceFlags(1))
    held = trace.set_span_in_context(trace.NonRecordingSpan(around))
    token = otel.attach(baggage.set_baggage("user", "of the host", held))
    try:
        yield around
    finally:
        otel.detach(token)


def meta(**given: Any) -> Context:
    return context_of("ping", {"_meta": given}, at=V_2025_11_25)


async def test_the_parent_is_what_the_client_says(seen: Seen) -> None:
    """Spec 2026-07-28, basic/index: OpenTelemetry trace context."""
    inside: list[Any] = []

    async def looking() -> Result:
        current = trace.get_current_span()
        inside.append((current.get_span_context(), baggage.get_all()))
        return Result.content([])

    traced = meta(traceparent=TRACEPARENT, tracestate="a=1", baggage="user=ada")
    await record(seen, traced, looking)
    span = seen.span
    own = identity(span)
    assert own.trace_id == TRACE_ID
    assert own.trace_state == {"a": "1"}
    assert span.parent is not None
    assert (span.parent.span_id, span.parent.is_remote) == (PARENT_ID, True)
    assert span.links == ()
    assert inside == [(own, {"user": "ada"})]
    assert trace.get_current_span() is trace.INVALID_SPAN
    assert baggage.get_all() == {}


async def test_the_span_around_is_linked_where_the_client_has_a_parent(
    seen: Seen,
) -> None:
    """OpenTelemetry, semantic conventions for MCP: Context propagation."""
    with ambient() as around:
        await record(seen, meta(traceparent=TRACEPARENT))
        assert trace.get_current_span().get_span_context() == around
    assert seen.span.parent is not None
    assert seen.span.parent.span_id == PARENT_ID
    assert [link.context for link in seen.span.links] == [around]


NO_PARENT: list[tuple[str, dict[str, Any]]] = [
    ("nothing", {}),
    ("no parent", {"baggage": "user=ada", "tracestate": "a=1"}),
    ("not of the form", {"traceparent": "x"}),
    ("zeros", {"traceparent": f"00-{'0' * 32}-{'0' * 16}-01"}),
    ("no text", {"traceparent": 5, "tracestate": [], "baggage": {}}),
    ("too long", {"traceparent": TRACEPARENT + " " * 10_000}),
]


@pytest.mark.parametrize(
    "given", [pytest.param(given, id=name) for name, given in NO_PARENT]
)
async def test_the_span_around_is_the_parent_where_the_client_has_none(
    given: dict[str, Any], seen: Seen
) -> None:
    with ambient() as around:
        await record(seen, meta(**given))
    assert (seen.span.parent, seen.span.links) == (around, ())


@pytest.mark.parametrize(
    "given", [pytest.param(given, id=name) for name, given in NO_PARENT]
)
async def test_a_request_of_no_trace_begins_one(
    given: dict[str, Any], seen: Seen
) -> None:
    await record(seen, meta(**given))
    assert (seen.span.parent, seen.span.links) == (None, ())


async def test_the_span_is_current_in_tasks_and_threads_of_a_handler(
    seen: Seen,
) -> None:
    app = shop()

    def current() -> SpanContext:
        return trace.get_current_span().get_span_context()

    async def looking() -> Result:
        async def child() -> SpanContext:
            return current()

        task = asyncio.create_task(child())
        found = [await task, await app.threads.run(current), current()]
        return Result.wire({"found": found})

    result = await record(seen, context_of("tools/call"), looking)
    assert result.value["found"] == [identity(seen.span)] * 3


async def test_requests_at_once_have_spans_of_their_own(seen: Seen) -> None:
    everyone = asyncio.Barrier(50)

    async def meeting() -> Result:
        before = trace.get_current_span()
        await everyone.wait()
        assert trace.get_current_span() is before
        return Result.content([])

    requests = [context_of("ping", at=V_2025_11_25, request_id=n) for n in range(50)]
    await asyncio.gather(*(record(seen, one, meeting) for one in requests))
    spans = seen.exporter.get_finished_spans()
    assert len({identity(span).trace_id for span in spans}) == 50
    assert all(span.parent is None for span in spans)


class Broken(SpanProcessor):
    """A way for spans that does not work."""

    def __init__(self, *, at: str) -> None:
        self.at = at

    def on_start(self, span: Any, parent_context: Any = None) -> None:  # noqa: ARG002
        """Fail."""
        if self.at == "start":
            raise RuntimeError(self.at)

    def on_end(self, span: Any) -> None:  # noqa: ARG002
        """Fail."""
        if self.at == "end":
            raise RuntimeError(self.at)


@pytest.mark.parametrize("at", ["start", "end"])
async def test_what_goes_wrong_in_recording_fails_no_request(
    at: str, seen: Seen, caplog: pytest.LogCaptureFixture
) -> None:
    seen.tracers.add_span_processor(Broken(at=at))
    served = await record(seen, context_of("ping", at=V_2025_11_25))
    assert served.kind == "resource"
    (logged,) = caplog.records
    assert (logged.name, logged.levelno, logged.getMessage()) == (
        "mcpkit",
        logging.ERROR,
        "a request could not be recorded",
    )
    assert trace.get_current_span() is trace.INVALID_SPAN


class Unreadable(CompositePropagator):
    """A propagator that does not work."""

    def extract(self, *_args: Any, **_options: Any) -> otel.Context:
        """Fail."""
        raise RuntimeError("no")


async def test_a_propagator_that_fails_fails_no_request(
    seen: Seen, caplog: pytest.LogCaptureFixture
) -> None:
    usual = propagate.get_global_textmap()
    propagate.set_global_textmap(Unreadable([]))
    try:
        served = await record(seen, meta(traceparent=TRACEPARENT))
    finally:
        propagate.set_global_textmap(usual)
    assert served.kind == "resource"
    assert [logged.getMessage() for logged in caplog.records] == [
        "a request could not be recorded"
    ]
    assert seen.exporter.get_finished_spans() == ()


async def test_nothing_is_recorded_where_the_process_has_no_providers() -> None:
    recorded = recorder(shop().registry)
    served = await recorded(context_of("ping", at=V_2025_11_25), nothing)
    assert served.kind == "resource"


def test_without_the_library_it_is_a_setup_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry", None)
    monkeypatch.delitem(sys.modules, "mcpkit.otel")
    with pytest.raises(SetupError) as caught:
        importlib.import_module("mcpkit.otel")
    assert str(caught.value) == (
        "mcpkit.otel needs OpenTelemetry: pip install 'mcpkit[otel]'"
    )
