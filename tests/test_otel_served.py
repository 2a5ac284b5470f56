"""An instrumented app records what it serves, whichever way it is asked."""

import asyncio
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from opentelemetry import context as otel, trace
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanContext, TraceFlags

from mcpkit import App, Result, ToolError, dispatch
from mcpkit.otel import instrument
from mcpkit.protocol.headers import VERSION
from tests.calls import V_2025_11_25, call, call_tool, request, text
from tests.http.streaming import listen, stream
from tests.wire import MODERN

ROOT = Path(__file__).parent.parent
CONFIDENTIAL = "a value that nobody else may read"


class Shop:
    """An instrumented app, and what it recorded."""

    def __init__(self) -> None:
        self.exporter = InMemorySpanExporter()
        self.reader = InMemoryMetricReader()
        self.tracers = TracerProvider(shutdown_on_exit=False)
        self.tracers.add_span_processor(SimpleSpanProcessor(self.exporter))
        self.meters = MeterProvider([self.reader], shutdown_on_exit=False)
        self.app = App("tests")
        instrument(self.app, tracer_provider=self.tracers, meter_provider=self.meters)

    @property
    def spans(self) -> list[ReadableSpan]:
        """The spans that ended, in the order in which they did."""
        return list(self.exporter.get_finished_spans())

    @property
    def span(self) -> ReadableSpan:
        """The one span that ended."""
        (span,) = self.spans
        return span


@pytest.fixture
def shop() -> Iterator[Shop]:
    shop = Shop()
    app = shop.app

    @app.tool
    async def search(query: str = "") -> str:
        return f"found {query}"

    @app.tool
    def fail(query: str = "") -> str:
        raise ToolError(query)

    @app.tool
    def crash(query: str = "") -> str:
        raise ValueError(query)

    @app.resource("books://all")
    def books() -> str:
        return "all"

    @app.prompt
    def review(title: str) -> str:
        return f"Review {title}"

    @app.complete("review", "title")
    def titles(value: str) -> list[str]:
        return [value]

    yield shop
    shop.tracers.shutdown()
    shop.meters.shutdown()


REQUESTS: list[tuple[str, str, dict[str, Any], str]] = [
    # method, version, params, the name of the span
    ("tools/call", MODERN, {"name": "search"}, "tools/call search"),
    ("tools/call", V_2025_11_25, {"name": "search"}, "tools/call search"),
    ("resources/read", MODERN, {"uri": "books://all"}, "resources/read"),
    (
        "prompts/get",
        MODERN,
        {"name": "review", "arguments": {"title": "x"}},
        "prompts/get review",
    ),
    (
        "completion/complete",
        MODERN,
        {
            "ref": {"type": "ref/prompt", "name": "review"},
            "argument": {"name": "title", "value": "x"},
        },
        "completion/complete",
    ),
    ("server/discover", MODERN, {}, "server/discover"),
    ("tools/list", MODERN, {}, "tools/list"),
    ("resources/list", MODERN, {}, "resources/list"),
    ("resources/templates/list", MODERN, {}, "resources/templates/list"),
    ("prompts/list", V_2025_11_25, {}, "prompts/list"),
    ("ping", V_2025_11_25, {}, "ping"),
]


@pytest.mark.parametrize(("method", "at", "params", "name"), REQUESTS)
async def test_every_method_is_recorded_each_time(
    method: str, at: str, params: dict[str, Any], name: str, shop: Shop
) -> None:
    for _ in range(2):
        assert "code" not in await call(shop.app, method, at=at, **params)
    assert [(span.name, span.status.is_unset) for span in shop.spans] == [
        (name, True),
        (name, True),
    ]
    for span in shop.spans:
        assert span.attributes is not None
        assert span.attributes["mcp.protocol.version"] == at


FAILURES: list[tuple[str, dict[str, Any], str, dict[str, str]]] = [
    # id, params of tools/call, the name of the span, what is said of the failure
    (
        "an unknown tool",
        {"name": "nosuch"},
        "tools/call",
        {"error.type": "-32602", "rpc.response.status_code": "-32602"},
    ),
    (
        "arguments that do not fit",
        {"name": "search", "arguments": {"query": 5}},
        "tools/call search",
        {"error.type": "tool_error"},
    ),
    ("a failure", {"name": "fail"}, "tools/call fail", {"error.type": "tool_error"}),
    ("a crash", {"name": "crash"}, "tools/call crash", {"error.type": "tool_error"}),
]


@pytest.mark.parametrize(
    ("params", "name", "failure"),
    [pytest.param(*row, id=name) for name, *row in FAILURES],
)
async def test_what_failed_is_recorded_as_failed(
    params: dict[str, Any], name: str, failure: dict[str, str], shop: Shop
) -> None:
    await call(shop.app, "tools/call", **params)
    span = shop.span
    assert (span.name, span.status.status_code.name) == (name, "ERROR")
    assert span.attributes is not None
    keys = ("error.type", "rpc.response.status_code")
    assert {k: span.attributes[k] for k in keys if k in span.attributes} == failure


@pytest.mark.parametrize("tool", ["search", "fail", "crash"])
async def test_neither_arguments_nor_results_are_recorded(
    tool: str, shop: Shop
) -> None:
    await call_tool(shop.app, tool, {"query": CONFIDENTIAL})
    data = shop.reader.get_metrics_data()
    assert data is not None
    assert f"tools/call {tool}" in shop.span.to_json()
    assert CONFIDENTIAL not in shop.span.to_json() + data.to_json()


async def test_the_spans_of_a_handler_are_children_of_its_request(shop: Shop) -> None:
    tracer = trace.get_tracer("shop", tracer_provider=shop.tracers)
    here = threading.get_ident()

    @shop.app.tool
    async def waits() -> bool:
        with tracer.start_as_current_span("inner"):
            await asyncio.sleep(0)
        return threading.get_ident() == here

    @shop.app.tool
    def blocks() -> bool:
        with tracer.start_as_current_span("inner"):
            return threading.get_ident() == here

    for tool, is_here in (("waits", "true"), ("blocks", "false")):
        shop.exporter.clear()
        assert (await call_tool(shop.app, tool))["content"] == text(is_here)["content"]
        inner, outer = shop.spans
        assert (inner.name, outer.name) == ("inner", f"tools/call {tool}")
        assert inner.parent == outer.get_span_context()


async def test_the_requests_of_a_session_are_recorded_with_it(shop: Shop) -> None:
    client = {"name": "client", "version": "1"}
    message = request(
        "initialize",
        at=V_2025_11_25,
        protocolVersion=V_2025_11_25,
        capabilities={},
        clientInfo=client,
    )
    opened = await dispatch(message, shop.app, headers={VERSION: b"2025-11-25"})
    token = dict(opened.headers)["mcp-session-id"]
    headers = {VERSION: b"2025-11-25", b"mcp-session-id": token.encode()}
    await dispatch(request("ping", at=V_2025_11_25), shop.app, headers=headers)
    ids = [(span.attributes or {})["mcp.session.id"] for span in shop.spans]
    assert ids[0] == ids[1]
    # The token opens the session: it is a secret.
    assert token not in shop.spans[0].to_json() + shop.spans[1].to_json()


async def test_over_http_the_span_of_the_http_request_is_linked(shop: Shop) -> None:
    around = SpanContext(0xA, 0xB, is_remote=False, trace_flags=TraceFlags(1))

    async def traced(scope: Any, receive: Any, send: Any) -> None:
        """Serve as an instrumentation of ASGI does."""
        held = trace.set_span_in_context(trace.NonRecordingSpan(around))
        token = otel.attach(held)
        try:
            await shop.app(scope, receive, send)
        finally:
            otel.detach(token)

    parent = "00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01"
    transport = httpx.ASGITransport(app=traced)
    async with httpx.AsyncClient(
        transport=transport, base_url="http://localhost"
    ) as client:
        for meta in ({"traceparent": parent}, {}):
            answer = await client.post(
                "/mcp",
                json=request("tools/list", _meta=meta),
                headers={
                    "mcp-protocol-version": MODERN,
                    "mcp-method": "tools/list",
                },
            )
            assert answer.status_code == 200
    linked, child = shop.spans
    assert linked.parent is not None
    assert linked.parent.span_id == 0x00F067AA0BA902B7
    assert [link.context for link in linked.links] == [around]
    assert (child.parent, child.links) == (around, ())
    for span in (linked, child):
        assert span.attributes is not None
        assert span.attributes["network.transport"] == "tcp"


async def test_a_question_to_the_client_is_no_error(shop: Shop) -> None:
    @shop.app.tool
    def asks() -> Result:
        return Result.input_required(request_state="x")

    assert (await call_tool(shop.app, "asks"))["resultType"] == "input_required"
    assert (shop.span.name, shop.span.status.is_unset) == ("tools/call asks", True)


@pytest.mark.parametrize("ends", ["by its client", "by the app"])
async def test_a_stream_is_a_span_and_no_measurement(ends: str, shop: Shop) -> None:
    async with stream(shop.app, listen(toolsListChanged=True)) as opened:
        await opened.message()
        if ends == "by the app":
            shop.app.close()
            await opened.rest()
    assert (shop.span.name, shop.span.status.is_unset) == ("subscriptions/listen", True)
    assert shop.reader.get_metrics_data() is None


LATE = """
import asyncio
from mcpkit import App, handle_request
from mcpkit.otel import instrument

app = App("tests")
instrument(app)

from opentelemetry import metrics, trace
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

exporter, reader = InMemorySpanExporter(), InMemoryMetricReader()
provider = TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(exporter))
trace.set_tracer_provider(provider)
metrics.set_meter_provider(MeterProvider([reader]))

message = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
asyncio.run(handle_request(message, app))
(span,) = exporter.get_finished_spans()
(metric,) = reader.get_metrics_data().resource_metrics[0].scope_metrics[0].metrics
print(span.name, metric.name)
"""


def test_the_providers_of_the_process_may_be_set_later() -> None:
    done = subprocess.run(  # noqa: S603  # the script is ours
        [sys.executable, "-c", LATE],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert done.stdout == "ping mcp.server.operation.duration\n"
