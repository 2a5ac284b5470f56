"""What a stream of events is in each revision that clients may have negotiated.

Conformance suites connect with the newest of the legacy revisions, whichever they are
told to test; the older ones are held to theirs here.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final

import httpx
import pytest

from mcpkit import App, Context
from mcpkit.protocol import headers as routing
from tests.http.client import (
    JSON_HEADERS,
    LEGACY_VERSIONS,
    MODERN,
    Json,
    initialize,
    legacy,
    request,
)
from tests.http.serving import served

# 2024-11-05 is served as 2025-03-26, to clients that ask for it.
VERSIONS: Final = [*LEGACY_VERSIONS, "2024-11-05"]

# The kinds of events: one to come back to, one that may be come back to, one that not.
PRIMING: Final = ("id", "retry", "data")
WITH_ID: Final = ("id", "data")
BARE: Final = ("data",)

CAPABILITIES: Final[Json] = {"sampling": {}}

Event = dict[str, str]


def build_app() -> App:
    app = App("streams")

    @app.tool
    async def report(ctx: Context) -> str:
        await ctx.progress(1, total=1)
        return "done"

    @app.tool
    async def leave(ctx: Context) -> str:
        await ctx.close_stream()
        return "done"

    @app.tool
    async def consult(ctx: Context) -> str:
        answer = await ctx.sample("Ready?", max_tokens=9)
        return f"{answer.model}: {answer.text}"

    @app.tool
    async def define() -> None:
        app.add_tool(report, name="another", replace=True)

    return app


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with served(build_app(), "h11") as port:
        yield f"http://127.0.0.1:{port}/mcp"


@pytest.fixture
async def http() -> AsyncIterator[httpx.AsyncClient]:
    async with asyncio.timeout(20), httpx.AsyncClient() as client:
        yield client


@asynccontextmanager
async def events(
    http: httpx.AsyncClient, url: str, message: Json | None, headers: Mapping[str, str]
) -> AsyncIterator[AsyncIterator[Event]]:
    """Post a message, or listen; and yield the events that come back."""
    verb = "GET" if message is None else "POST"
    async with http.stream(verb, url, json=message, headers=headers) as reply:
        assert reply.status_code == 200
        assert reply.headers["content-type"] == "text/event-stream"
        yield read(reply)


async def read(reply: httpx.Response) -> AsyncIterator[Event]:
    """Yield the fields of each event."""
    event: Event = {}
    async for line in reply.aiter_lines():
        if line:
            name, _, value = line.partition(":")
            event[name] = value.removeprefix(" ")
        elif event:
            yield event
            event = {}


async def open_session(
    http: httpx.AsyncClient, url: str, version: str
) -> dict[str, str]:
    """Open a session, and return the headers of the requests in it."""
    message = initialize(version, capabilities=CAPABILITIES)
    reply = await http.post(url, json=message, headers=JSON_HEADERS)
    assert reply.json()["result"]["protocolVersion"] == version
    session = {"mcp-session-id": reply.headers["mcp-session-id"]}
    return {**JSON_HEADERS, **session, routing.VERSION.decode(): version}


def call(tool: str) -> Json:
    return legacy("tools/call", {"name": tool, "_meta": {"progressToken": "p"}})


def done(text: str = "done") -> Json:
    result = {"content": [{"type": "text", "text": text}], "isError": False}
    return {"jsonrpc": "2.0", "id": 1, "result": result}


PROGRESS: Final = {
    "jsonrpc": "2.0",
    "method": "notifications/progress",
    "params": {"progressToken": "p", "progress": 1, "total": 1},
}


@pytest.mark.parametrize(
    ("version", "kinds"),
    [
        ("2025-11-25", [PRIMING, WITH_ID, WITH_ID]),
        ("2025-06-18", [WITH_ID, WITH_ID]),
        ("2025-03-26", [WITH_ID, WITH_ID]),
        ("2024-11-05", [WITH_ID, WITH_ID]),
    ],
)
async def test_only_the_newest_legacy_streams_begin_with_an_event_to_come_back_to(
    http: httpx.AsyncClient, url: str, version: str, kinds: list[tuple[str, ...]]
) -> None:
    """Spec 2025-11-25, basic/transports: Sending Messages to the Server.

    To a client of before, an event without data may be a malformed message.
    """
    headers = await open_session(http, url, version)
    async with events(http, url, call("report"), headers) as stream:
        seen = [event async for event in stream]
    assert [tuple(event) for event in seen] == kinds
    assert len({event["id"] for event in seen}) == len(seen)
    assert [json.loads(event["data"]) for event in seen if event["data"]] == [
        PROGRESS,
        done(),
    ]


@pytest.mark.parametrize("version", VERSIONS)
async def test_a_stream_without_a_session_has_no_ids(
    http: httpx.AsyncClient, url: str, version: str
) -> None:
    """Spec 2025-11-25, basic/transports: Resumability and Redelivery."""
    headers = {**JSON_HEADERS, routing.VERSION.decode(): version}
    async with events(http, url, call("report"), headers) as stream:
        seen = [event async for event in stream]
    assert [tuple(event) for event in seen] == [BARE, BARE]


async def test_a_modern_stream_has_no_ids(http: httpx.AsyncClient, url: str) -> None:
    """Spec 2026-07-28, basic/transports/streamable-http: there is no resumption."""
    params = {"name": "report", "_meta": {"progressToken": "p"}}
    message, headers = request(MODERN, "tools/call", params)
    message["params"]["_meta"]["progressToken"] = "p"
    async with events(http, url, message, headers) as stream:
        seen = [event async for event in stream]
    assert [tuple(event) for event in seen] == [BARE, BARE]


async def test_a_client_of_2025_11_25_comes_back_for_the_rest(
    http: httpx.AsyncClient, url: str
) -> None:
    """Spec 2025-11-25, basic/transports: Sending Messages to the Server."""
    headers = await open_session(http, url, "2025-11-25")
    async with events(http, url, call("leave"), headers) as stream:
        [first, *_] = [event async for event in stream]
    assert tuple(first) == PRIMING
    again = {**headers, "last-event-id": first["id"]}
    async with events(http, url, None, again) as stream:
        rest = [json.loads(event["data"]) async for event in stream]
    assert rest == [done()]


@pytest.mark.parametrize("version", [v for v in VERSIONS if v != "2025-11-25"])
async def test_nobody_is_left_who_would_not_come_back(
    http: httpx.AsyncClient, url: str, version: str
) -> None:
    """Spec 2025-06-18, basic/transports: the server should not close the stream."""
    headers = await open_session(http, url, version)
    reply = await http.post(url, json=call("leave"), headers=headers)
    assert reply.json() == done()


@pytest.mark.parametrize("version", VERSIONS)
async def test_the_stream_that_a_session_listens_on_begins_as_its_revision_has_it(
    http: httpx.AsyncClient, url: str, version: str
) -> None:
    """Spec 2025-11-25, basic/transports: Listening for Messages from the Server."""
    headers = await open_session(http, url, version)
    async with events(http, url, None, headers) as stream:
        seen = [await anext(stream)] if version == "2025-11-25" else []
        await http.post(url, json=call("define"), headers=headers)
        seen.append(await anext(stream))
    *begun, change = seen
    assert [tuple(event) for event in begun] == [PRIMING] * len(begun)
    assert tuple(change) == WITH_ID
    assert json.loads(change["data"]) == {
        "jsonrpc": "2.0",
        "method": "notifications/tools/list_changed",
        "params": {},
    }


def sampled(request_id: Any) -> Json:
    """Build what a client's model answers."""
    result = {
        "role": "assistant",
        "content": {"type": "text", "text": "Yes."},
        "model": "small",
    }
    return {"jsonrpc": "2.0", "id": request_id, "result": result}


@pytest.mark.parametrize(
    ("version", "in_batch"),
    [*((version, False) for version in VERSIONS), ("2025-03-26", True)],
)
async def test_a_legacy_client_is_asked_on_the_stream_of_its_request(
    http: httpx.AsyncClient,
    url: str,
    version: str,
    in_batch: bool,  # noqa: FBT001  # a column of the table
) -> None:
    """Spec 2025-03-26 and later, client/sampling; 2025-03-26, basic: Batching."""
    headers = await open_session(http, url, version)
    async with events(http, url, call("consult"), headers) as stream:
        if version == "2025-11-25":
            assert tuple(await anext(stream)) == PRIMING
        asked = json.loads((await anext(stream))["data"])
        answer = sampled(asked["id"])
        reply = await http.post(
            url, json=[answer] if in_batch else answer, headers=headers
        )
        [last] = [json.loads(event["data"]) async for event in stream]
    assert asked == {
        "jsonrpc": "2.0",
        "id": asked["id"],
        "method": "sampling/createMessage",
        "params": {
            "messages": [
                {"role": "user", "content": {"type": "text", "text": "Ready?"}}
            ],
            "maxTokens": 9,
        },
    }
    assert (reply.status_code, reply.content) == (202, b"")
    assert last == done("small: Yes.")
