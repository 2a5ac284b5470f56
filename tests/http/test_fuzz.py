"""Whatever comes, the endpoint answers with JSON-RPC or a bare refusal, at once."""

import asyncio
import json
from collections.abc import Sequence
from typing import Any, Final

import anyio
import httpx
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from mcpkit import App
from mcpkit.protocol.era import (
    CLIENT_CAPABILITIES,
    CLIENT_INFO,
    LOG_LEVEL,
    PROTOCOL_VERSION,
)
from mcpkit.protocol.methods import METHODS
from tests.http.bookshop import bookshop
from tests.http.client import (
    JSON_HEADERS,
    LEGACY,
    MODERN,
    VERSIONS,
    check,
    headers_of,
    initialize,
    legacy,
    modern,
)
from tests.http.serving import HTTPS, Http, connected, head, served

Lines = Sequence[tuple[bytes, bytes]]

SECONDS: Final = 5
MAX_BODY: Final = 4096

bounded = settings(
    max_examples=100,
    deadline=None,
    # The app keeps nothing of a request, so that examples may share one.
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


@pytest.fixture(scope="module", params=["both", "modern", "legacy", "strict"])
def app(request: pytest.FixtureRequest) -> App:
    options: dict[str, dict[str, Any]] = {
        "both": {"page_size": 2, "allowed_hosts": ["*"], "allowed_origins": ["*"]},
        "modern": {"eras": {"modern"}},
        "legacy": {"eras": {"legacy"}},
        "strict": {"require_session": True, "coerce": True, "logging": False},
    }
    return bookshop(max_body=MAX_BODY, **options[request.param])


async def drive(
    app: App, verb: str, lines: Lines, parts: Sequence[bytes]
) -> httpx.Response:
    """Send what may be no HTTP at all as events of ASGI, and check the reply."""
    events = [
        {"type": "http.request", "body": part, "more_body": True} for part in parts
    ]
    events.append({"type": "http.request", "body": b"", "more_body": False})
    sent: list[Any] = []
    streams = asyncio.Event()

    async def receive() -> Any:
        if events:
            return events.pop(0)
        # Nobody reads more of a stream than how it begins.
        await streams.wait()
        return {"type": "http.disconnect"}

    async def send(event: Any) -> None:
        sent.append(event)
        if event.get("more_body", False):
            streams.set()

    scope = {"type": "http", "method": verb, "path": "/mcp", "headers": list(lines)}
    with anyio.fail_after(SECONDS):
        await app(scope, receive, send)
    start, *rest = sent
    assert start["type"] == "http.response.start"
    assert {event["type"] for event in rest} == {"http.response.body"}
    for name, value in start["headers"]:
        assert name == name.lower()
        assert not {*b"\r\n\0"} & {*value}
    body = b"".join(event["body"] for event in rest)
    reply = httpx.Response(start["status"], headers=start["headers"], content=body)
    assert reply.status_code in {200, 202, 204} or 400 <= reply.status_code < 500
    if reply.headers.get("content-type") == "text/event-stream":
        assert (reply.status_code, b"data: {" in body) == (200, True)
    elif reply.content:
        check(reply, b"".join(parts), lines)
    else:
        assert reply.status_code in {200, 202, 204}
    return reply


NAMES = [
    *(b"host", b"origin", b"accept", b"content-type", b"content-length"),
    *(b"content-encoding", b"mcp-protocol-version", b"mcp-method", b"mcp-name"),
    *(b"mcp-session-id", b"mcp-param-region", b"mcp-param-count", b"mcp-"),
    *(b"access-control-request-headers", b"authorization", b"x", b""),
]
VALUES = [
    *(b"localhost", b"http://localhost", b"*/*", b"application/json", b"identity"),
    *(b"gzip", b"tools/call", b"add", b"ship", b"mcp-param-x, x", b"0", b"99999"),
    *(version.encode() for version in VERSIONS),
    *(b"=?base64?", b"=?base64?YWRk?=", b"=?base64?_w==?=", b"?=", b";q=", b",;,="),
]
# What no header can hold: servers refuse it before the app sees it.
line_values = st.binary(max_size=40).filter(lambda raw: not {*b"\r\n\0"} & {*raw})
lines_of_anything = st.lists(
    st.tuples(
        st.sampled_from(NAMES) | st.binary(max_size=10).map(bytes.lower),
        st.sampled_from(VALUES) | line_values,
    ),
    max_size=8,
)
VERBS = ["POST", "GET", "DELETE", "OPTIONS", "HEAD", "PUT", "PATCH", "X", ""]
scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=12)
    | st.sampled_from([*METHODS, *VERSIONS, "info", "add", "books://1", "ref/prompt"])
)
KEYS = ["_meta", "name", "arguments", "uri", "ref", "cursor", "requestState", "level"]
anything = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(KEYS) | st.text(max_size=5), inner, max_size=3
        )
    ),
    max_leaves=8,
)
bodies = (
    st.binary(max_size=200)
    | anything.map(json.dumps).map(str.encode)
    | st.sampled_from([b"", b"[]", b"{}", b"[" * 500, b"\xef\xbb\xbf{}", b"x" * 5000])
)


@bounded
@given(
    verb=st.sampled_from(VERBS) | st.just("POST"),
    lines=lines_of_anything,
    parts=st.lists(bodies, max_size=3),
)
async def test_anything_at_all_is_answered(
    app: App, verb: str, lines: Lines, parts: list[bytes]
) -> None:
    """Ours: no 5xx, no exception, no hang."""
    await drive(app, verb, lines, parts)


def encoded(headers: Any) -> list[tuple[bytes, bytes]]:
    return [
        (b"host", b"localhost"),
        *((k.encode(), v.encode()) for k, v in headers.items()),
    ]


@bounded
@given(body=bodies, version=st.sampled_from([None, *VERSIONS]))
async def test_any_body_in_good_form_is_answered(
    app: App, body: bytes, version: str | None
) -> None:
    """Ours."""
    named = {} if version is None else {"mcp-protocol-version": version}
    await drive(app, "POST", encoded({**JSON_HEADERS, **named}), [body])


CALLS: list[tuple[str, dict[str, Any]]] = [
    ("server/discover", {}),
    ("ping", {}),
    ("logging/setLevel", {"level": "info"}),
    ("tools/list", {"cursor": "x"}),
    ("tools/call", {"name": "add", "arguments": {"a": 1, "b": 2}}),
    ("tools/call", {"name": "echo", "arguments": {"text": "x"}}),
    ("tools/call", {"name": "ship", "arguments": {"region": "n", "count": 1}}),
    (
        "tools/call",
        {"name": "order", "inputResponses": {"sure": {}}, "requestState": "x"},
    ),
    ("resources/list", {}),
    ("resources/templates/list", {}),
    ("resources/read", {"uri": "books://1"}),
    ("resources/subscribe", {"uri": "books://1"}),
    ("resources/unsubscribe", {"uri": "books://1"}),
    (
        "subscriptions/listen",
        {
            "notifications": {
                "toolsListChanged": True,
                "resourceSubscriptions": ["books://1"],
            }
        },
    ),
    ("prompts/list", {}),
    ("prompts/get", {"name": "review", "arguments": {"title": "Dune"}}),
    (
        "completion/complete",
        {
            "ref": {"type": "ref/prompt", "name": "review"},
            "argument": {"name": "title", "value": "D"},
            "context": {"arguments": {}},
        },
    ),
    ("notifications/cancelled", {"requestId": 1, "reason": "x"}),
    ("notifications/roots/list_changed", {}),
]
MESSAGES = [
    initialize(),
    *(legacy(method, params) for method, params in CALLS),
    *(modern(method, params) for method, params in CALLS),
    {"jsonrpc": "2.0", "id": 1, "result": {}},
    {"jsonrpc": "2.0", "id": 1, "error": {"code": 1, "message": ""}},
    {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}},
]
META_KEYS = [PROTOCOL_VERSION, CLIENT_CAPABILITIES, CLIENT_INFO, LOG_LEVEL]


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """List the paths to every member of a message, itself included."""
    members = value.items() if isinstance(value, dict) else ()
    return [path, *(inner for k, v in members for inner in places(v, (*path, k)))]


def replaced(value: Any, path: tuple[Any, ...], other: Any) -> Any:
    if not path:
        return other
    return {**value, path[0]: replaced(value[path[0]], path[1:], other)}


def without(value: Any, path: tuple[Any, ...]) -> Any:
    key, *rest = path
    if not rest:
        return {k: v for k, v in value.items() if k != key}
    return {**value, key: without(value[key], tuple(rest))}


@st.composite
def near_valid(draw: st.DrawFn) -> tuple[Any, list[tuple[bytes, bytes]]]:
    """Draw a message that is almost one, and headers that almost go with it."""
    message: Any = draw(st.sampled_from(MESSAGES))
    headers = encoded(headers_of(message))
    for _ in range(draw(st.integers(0, 2))):
        path = draw(st.sampled_from(places(message)))
        match draw(st.sampled_from(["replace", "remove", "add"])):
            case "replace":
                message = replaced(message, path, draw(anything))
            case "remove" if path:
                message = without(message, path)
            case _ if isinstance(message, dict):
                extra = draw(st.sampled_from(["params", "id", "method", "_meta"]))
                message = {**message, extra: draw(anything)}
    if draw(st.booleans()):
        name = st.sampled_from([name for name, _ in headers] + NAMES)
        headers.append((draw(name), draw(st.sampled_from(VALUES) | line_values)))
    if draw(st.booleans()):
        headers.pop(draw(st.integers(0, len(headers) - 1)))
    return message, headers


@settings(bounded, max_examples=250)
@given(drawn=near_valid(), batch=st.integers(0, 3))
async def test_a_message_that_is_almost_valid_is_answered(
    app: App, drawn: tuple[Any, list[tuple[bytes, bytes]]], batch: int
) -> None:
    """RPC-18. Ours."""
    message, lines = drawn
    sent = [message] * batch if batch > 1 else message
    reply = await drive(app, "POST", lines, [json.dumps(sent).encode()])
    if reply.headers.get("content-type") != "application/json":
        return
    for answer in reply.json() if batch > 1 and reply.is_success else [reply.json()]:
        if isinstance(message, dict) and answer.get("id") is not None:
            assert answer["id"] == message["id"]


@bounded
@given(
    meta=st.dictionaries(st.sampled_from(META_KEYS), anything, max_size=4),
    version=st.sampled_from(VERSIONS),
)
async def test_any_envelope_is_answered(
    app: App, meta: dict[str, Any], version: str
) -> None:
    """META-01. Ours."""
    message = legacy("tools/list", {"_meta": meta})
    headers = {**JSON_HEADERS, "mcp-protocol-version": version}
    reply = await drive(app, "POST", encoded(headers), [json.dumps(message).encode()])
    assert reply.json()["id"] == 1


@bounded
@given(token=st.text(st.characters(max_codepoint=255), max_size=60))
async def test_any_session_id_is_answered(app: App, token: str) -> None:
    """SES-01. Ours."""
    lines = [
        *encoded({**JSON_HEADERS, "mcp-protocol-version": LEGACY}),
        (b"mcp-session-id", token.encode("latin-1")),
    ]
    body = json.dumps(legacy("ping")).encode()
    assert (await drive(app, "POST", lines, [body])).status_code in {400, 404}
    assert (await drive(app, "DELETE", lines, [])).status_code in {404, 405}


REPEATED = [b"\xff", b"\x80 a", b"a\tb", b"", b"a b", b"\"'<>\\", b"=?x?=", b"x" * 500]


@pytest.mark.parametrize("http", HTTPS)
async def test_what_is_repeated_to_a_page_is_fit_to_be_sent(http: Http) -> None:
    """Ours: an origin and header names come back, over a real server too."""
    app = bookshop(allowed_origins=["*"])
    body = json.dumps(modern("tools/list")).encode()
    with served(app, http) as port:
        async with connected(port) as connection:
            for value in REPEATED:
                text = value.decode("latin-1")
                headers = {
                    **headers_of(modern("tools/list")),
                    "origin": text,
                    "access-control-request-headers": f"mcp-param-{text}",
                }
                length = {"content-length": str(len(body))}
                await connection.send(head(headers={**headers, **length}) + body)
                assert (await connection.reply()).status == 200
                await connection.send(head("OPTIONS", headers=headers))
                reply = await connection.reply()
                assert reply.status == 204
                assert reply.headers["access-control-allow-origin"] == text.strip()


def test_every_message_is_one_that_some_app_serves() -> None:
    """What is spoiled above is worth spoiling."""
    assert {message.get("method") for message in MESSAGES} - {None} == set(METHODS) - {
        "notifications/initialized"
    }
    assert MODERN in VERSIONS
