"""What is told and logged of requests over HTTP that stream, or are cancelled."""

import asyncio
import logging
import threading
from typing import Any, Final

import pytest
from anyio import wait_all_tasks_blocked
from fastapi import FastAPI

from mcpkit import App, Context
from mcpkit.subscriptions import MAX_PENDING, MAX_PER_PRINCIPAL
from tests.http.client import (
    LEGACY,
    MODERN,
    Json,
    call,
    headers_of,
    legacy,
    modern,
    open_session,
    post,
    send,
)
from tests.http.streaming import (
    PATIENCE,
    acknowledged,
    completed,
    idle,
    in_session,
    lifespan,
    listen,
    stream,
)
from tests.told import NO_TRACE, TRACE, lines, spoken, stop, told_by

LISTEN: Final = "subscriptions/listen"
TOOLS: Final[dict[str, Any]] = {"toolsListChanged": True}


async def search() -> str:
    return "found"


def shop(**options: Any) -> App:
    app = App("bookshop", version="1.0.0", access_log=True, **options)
    app.add_tool(search)
    app.add_resource("books://{isbn}", lambda isbn: isbn, name="book")
    return app


@pytest.fixture(autouse=True)
def _is_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "mcpkit.access")


def opened_stream(method: str, at: str, **trace: str) -> tuple[str, Json]:
    """Return the event that a stream was opened."""
    return "subscription.start", {"method": method, **spoken(at), **NO_TRACE, **trace}


def ended_stream(method: str, at: str, reason: str, **trace: str) -> tuple[str, Json]:
    """Return the event that a stream has ended."""
    about = {"method": method, "reason": reason, **spoken(at)}
    return "subscription.stop", {**about, **NO_TRACE, **trace}


OPENED: Final = opened_stream(LISTEN, MODERN)


def line(status: str, principal: str = "-") -> str:
    return f"{LISTEN} - modern/{MODERN} {status} T {principal}"


# Streams of changes


async def test_a_stream_that_the_client_closes_is_told_of_when_it_opens_and_ends(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Spec 2026-07-28, basic/patterns/subscriptions: Closure."""
    app = shop()
    told = told_by(app)
    async with stream(app, listen(**TOOLS)) as opened:
        assert await opened.message() == acknowledged(**TOOLS)
        assert told == [OPENED]
        assert lines(caplog) == []
    assert told == [OPENED, ended_stream(LISTEN, MODERN, "client")]
    assert lines(caplog) == [line("cancelled")]
    await idle(app)


async def test_a_stream_that_the_app_closes_ends_by_shutdown(
    caplog: pytest.LogCaptureFixture,
) -> None:
    app = shop()
    told = told_by(app)
    async with lifespan(app), stream(app, listen(**TOOLS)) as opened:
        assert await opened.message() == acknowledged(**TOOLS)
        app.close()
        assert await opened.rest() == [completed()]
    assert told == [OPENED, ended_stream(LISTEN, MODERN, "shutdown")]
    assert lines(caplog) == [line("ok")]


async def test_a_stream_that_follows_nothing_ends_as_an_empty_one(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """STR-06."""
    app = shop()
    told = told_by(app)
    async with stream(app, listen(promptsListChanged=True)) as opened:
        assert await opened.rest() == [acknowledged(), completed()]
    assert told == [OPENED, ended_stream(LISTEN, MODERN, "empty")]
    assert lines(caplog) == [line("ok")]


async def test_a_stream_whose_client_does_not_read_ends_by_overflow() -> None:
    app = shop()
    told = told_by(app)
    uris = [f"books://{number}" for number in range(MAX_PENDING + 2)]
    async with stream(app, listen(resourceSubscriptions=uris)) as opened:
        assert "params" in await opened.message()
        opened.reads.clear()
        for uri in uris:
            app.notify_resource_updated(uri)
        await wait_all_tasks_blocked()
        opened.reads.set()
        assert (await opened.rest())[-1] == completed()
    assert told == [OPENED, ended_stream(LISTEN, MODERN, "overflow")]


async def test_a_stream_in_which_something_fails_ends_by_an_error(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    app = shop()
    told = told_by(app)

    async def down(_subscription: object) -> None:
        raise OSError("it is down")

    monkeypatch.setattr("mcpkit.subscriptions.Subscription.next", down)
    async with stream(app, listen(**TOOLS)) as opened:
        _, answer = await opened.rest()
    assert answer["error"] == {"code": -32603, "message": "Internal error"}
    assert told == [OPENED, ended_stream(LISTEN, MODERN, "error")]
    assert lines(caplog) == [line("error/-32603")]


async def test_the_trace_of_a_stream_is_told_at_both_ends() -> None:
    app = shop()
    told = told_by(app)
    message = listen(**TOOLS)
    message["params"]["_meta"] |= TRACE
    async with stream(app, message) as opened:
        await opened.message()
    assert told == [
        opened_stream(LISTEN, MODERN, **TRACE),
        ended_stream(LISTEN, MODERN, "client", **TRACE),
    ]


@pytest.mark.parametrize(
    ("message", "accept", "code"),
    [
        (listen(toolsListChanged="yes"), "application/json, text/event-stream", -32602),
        (listen(**TOOLS), "application/json", -32600),
    ],
)
async def test_a_stream_that_was_not_opened_is_told_of_as_a_request(
    message: Json, accept: str, code: int, caplog: pytest.LogCaptureFixture
) -> None:
    app = shop()
    told = told_by(app)
    replied = await post(app, message, {**headers_of(message), "accept": accept})
    assert replied.json()["error"]["code"] == code
    assert told == [stop(MODERN, LISTEN, code=code)]
    assert lines(caplog) == [line(f"error/{code}")]


async def test_why_a_stream_ended_is_what_ended_it_first() -> None:
    app = shop()
    subscription = app.subscriptions.open(None, frozenset())
    subscription.end("overflow")
    app.close()
    assert subscription.reason == "overflow"
    app.subscriptions.close(subscription)


# The stream of a legacy session

HEARD: Final = opened_stream("GET", LEGACY)


async def test_the_stream_of_a_session_that_is_ended_says_so() -> None:
    """Spec 2025-11-25, basic/transports: Session Management."""
    app = shop()
    told = told_by(app)
    token = await open_session(app)
    async with stream(app, headers=in_session(token)) as opened:
        await opened.event()
        assert told == [stop(LEGACY, "initialize"), HEARD]
        await send(app, "DELETE", in_session(token))
        assert await opened.rest() == []
    await idle(app)
    assert told[2:] == [ended_stream("GET", LEGACY, "session")]


async def test_the_stream_of_a_session_ends_by_shutdown() -> None:
    app = shop()
    told = told_by(app)
    token = await open_session(app)
    async with stream(app, headers=in_session(token)) as opened:
        await opened.event()
        app.close()
        assert await opened.rest() == []
    await idle(app)
    assert told[1:] == [HEARD, ended_stream("GET", LEGACY, "shutdown")]


async def test_the_stream_of_a_session_whose_client_stays_away_is_the_clients_to_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("mcpkit.listening.LINGER", 0)
    app = shop()
    told = told_by(app)
    over = asyncio.Event()
    app.telemetry.listen(
        lambda event: over.set() if event.name == "subscription.stop" else None
    )
    token = await open_session(app)
    async with stream(app, headers=in_session(token)) as opened:
        await opened.event()
        # A second connection is no second stream.
        async with stream(app, headers=in_session(token)) as another:
            await another.event()
        assert told[1:] == [HEARD]
    async with asyncio.timeout(PATIENCE):
        await over.wait()
    await idle(app)
    assert told[1:] == [HEARD, ended_stream("GET", LEGACY, "client")]


async def test_a_session_that_gives_way_to_another_is_told_of_as_evicted() -> None:
    app = shop(principal=lambda _: "ada")
    told = told_by(app)
    for _ in range(MAX_PER_PRINCIPAL + 1):
        token = await open_session(app)
        async with stream(app, headers=in_session(token)) as opened:
            await opened.event()
    ended = [each for each in told if each[0] == "subscription.stop"]
    assert ended == [ended_stream("GET", LEGACY, "evicted")]
    app.close()
    await idle(app)


# Requests that are cancelled, or become streams


def cancelled(at: str) -> tuple[str, Json]:
    """Return the event that a request was cancelled."""
    about = {"method": "tools/call", "target": "slow"}
    return "request.cancelled", {**about, **spoken(at)}


def slow_shop(began: asyncio.Event) -> App:
    app = shop()

    @app.tool
    async def slow(ctx: Context) -> str:
        await ctx.progress(1)
        began.set()
        await asyncio.Event().wait()
        return "never"

    return app


async def test_a_request_whose_client_goes_is_told_of_as_cancelled_and_no_more(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Spec 2026-07-28, basic/patterns/cancellation."""
    app = slow_shop(asyncio.Event())
    told = told_by(app)
    message = modern("tools/call", {"name": "slow"})
    message["params"]["_meta"]["progressToken"] = 0
    async with stream(app, message) as opened:
        await opened.message()
    assert told == [cancelled(MODERN)]
    assert lines(caplog) == [f"tools/call slow modern/{MODERN} cancelled T -"]


async def test_a_request_that_a_notification_cancels_is_told_of_as_that_and_no_more(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Spec 2025-11-25, basic/utilities/cancellation."""
    began = asyncio.Event()
    app = slow_shop(began)
    token = await open_session(app)
    told = told_by(app)
    caplog.clear()

    async def cancel() -> None:
        await began.wait()
        params = {"requestId": 7}
        message = {
            "jsonrpc": "2.0",
            "method": "notifications/cancelled",
            "params": params,
        }
        async with stream(app, message, in_session(token)) as accepted:
            assert accepted.status == 202

    message = legacy("tools/call", {"name": "slow"}, request_id=7)
    cancelling = asyncio.create_task(cancel())
    async with stream(app, message, in_session(token)) as opened:
        await cancelling
        assert opened.status == 202
    assert told == [cancelled(LEGACY)]
    assert lines(caplog) == [f"tools/call slow legacy/{LEGACY} cancelled T -"]


async def test_a_request_that_became_a_stream_is_measured_as_any_other(
    caplog: pytest.LogCaptureFixture,
) -> None:
    app = shop()
    told = told_by(app)

    @app.tool
    async def report(ctx: Context) -> str:
        await ctx.progress(1)
        return "done"

    message = modern("tools/call", {"name": "report"})
    message["params"]["_meta"]["progressToken"] = 0
    async with stream(app, message) as opened:
        assert len(await opened.rest()) == 2
    run = {"target": "report", "status": "ok", "code": None, **spoken(MODERN)}
    assert told == [("tool.execute", run), stop(MODERN, "tools/call", "report")]
    assert lines(caplog) == [f"tools/call report modern/{MODERN} ok T -"]


async def test_requests_of_an_app_that_is_embedded_are_told_of(
    caplog: pytest.LogCaptureFixture,
) -> None:
    app = shop()
    told = told_by(app)
    api = FastAPI()
    api.include_router(app.router)
    await call(api, MODERN, "tools/list")
    async with stream(api, listen(**TOOLS)) as opened:
        await opened.message()
    assert told == [
        stop(MODERN, "tools/list"),
        OPENED,
        ended_stream(LISTEN, MODERN, "client"),
    ]
    assert lines(caplog) == [f"tools/list - modern/{MODERN} ok T -", line("cancelled")]


async def test_who_calls_is_in_the_line_of_a_request(
    caplog: pytest.LogCaptureFixture,
) -> None:
    app = shop(principal=lambda _: "ada")
    await call(app, MODERN, "tools/list")
    async with stream(app, listen(**TOOLS)) as opened:
        await opened.message()
    assert lines(caplog) == [
        f"tools/list - modern/{MODERN} ok T ada",
        line("cancelled", "ada"),
    ]


async def test_listeners_are_told_in_the_thread_of_the_event_loop() -> None:
    app = shop()
    threads: list[threading.Thread] = []
    app.telemetry.listen(lambda _event: threads.append(threading.current_thread()))
    app.add_tool(lambda: "done", name="blocks")
    await call(app, MODERN, "tools/call", {"name": "blocks"})
    assert threads == [threading.current_thread()] * 2
