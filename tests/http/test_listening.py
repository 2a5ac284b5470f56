"""The stream that a legacy session listens on, as a client reads it."""

import asyncio
from collections.abc import Iterator
from contextlib import AsyncExitStack
from types import SimpleNamespace
from typing import Any, Final

import pytest
from anyio import wait_all_tasks_blocked

from mcpkit import App, subscriptions as streams
from mcpkit.backends.memory import MemoryBackend
from mcpkit.methods import lifecycle, subscriptions
from mcpkit.replay import MAX_EVENTS
from mcpkit.subscriptions import MAX_PENDING
from tests.http.bookshop import bookshop
from tests.http.client import (
    LEGACY_VERSIONS,
    MODERN,
    call,
    error,
    legacy,
    open_session,
    send,
)
from tests.http.streaming import (
    PATIENCE,
    Event,
    Stream,
    changed,
    idle,
    in_session,
    listen,
    request,
    stream,
    updated,
)
from tests.shared_backend import SocketBackend, serving

HOURS: Final = "shop://hours"
BOOK: Final = "books://1"
KEY: Final = "k" * 32
SSE: Final = {"accept": "text/event-stream"}
DONE: Final = {"jsonrpc": "2.0", "id": 1, "result": {}}

POLLING: Final = "2025-11-25"
versions = pytest.mark.parametrize("version", LEGACY_VERSIONS)


async def tell() -> str:
    return ""


async def subscribe(app: App, token: str, uri: str) -> Any:
    return await request(app, token, legacy("resources/subscribe", {"uri": uri}))


async def unsubscribe(app: App, token: str, uri: str) -> Any:
    return await request(app, token, legacy("resources/unsubscribe", {"uri": uri}))


async def delete(app: App, token: str) -> int:
    return (await send(app, "DELETE", in_session(token))).status_code


@pytest.fixture
def brief(monkeypatch: pytest.MonkeyPatch) -> None:
    """A session that nobody is connected to is soon no longer listened for."""
    monkeypatch.setattr("mcpkit.listening.LINGER", 0.01)


# Who may listen


async def test_listening_needs_a_session() -> None:
    """SES-01. Spec 2025-11-25, basic/transports: Session Management."""
    app = bookshop(principal=lambda request: request.headers.get("x-caller"))
    ended = await open_session(app)
    assert await delete(app, ended) == 200
    other = await open_session(app, headers={"x-caller": "you"})
    rows = [
        ({}, 400, "Mcp-Session-Id is missing"),
        (in_session("bogus"), 404, "Session not found"),
        (in_session("\xfc"), 404, "Session not found"),
        (in_session(ended), 404, "Session not found"),
        (in_session(other), 404, "Session not found"),
    ]
    for headers, status, fault in rows:
        accept = {"accept": "text/event-stream"}
        raw = {name: value.encode("latin-1") for name, value in headers.items()}
        reply = await send(app, "GET", [*accept.items(), *raw.items()])
        assert reply.status_code == status
        assert reply.json() == error(-32600, fault, request_id=None)
    await idle(app)


@pytest.mark.parametrize("accept", ["application/json", "text/plain", "text/html"])
async def test_listening_needs_a_client_that_takes_streams(accept: str) -> None:
    """Spec 2025-11-25, basic/transports: Listening for Messages from the Server."""
    app = bookshop()
    headers = {**in_session(await open_session(app)), "accept": accept}
    reply = await send(app, "GET", headers)
    fault = "Accept must admit text/event-stream"
    refused = error(-32600, fault, request_id=None)
    assert (reply.status_code, reply.json()) == (406, refused)


@pytest.mark.parametrize("verb", ["GET", "DELETE"])
@pytest.mark.parametrize("version", ["2099-01-01", MODERN, ""])
async def test_who_names_a_version_that_has_no_sessions_is_refused(
    version: str, verb: str
) -> None:
    """Spec 2025-11-25, basic/transports: Protocol Version Header."""
    app = bookshop()
    token = await open_session(app)
    headers = {**in_session(token), **SSE, "mcp-protocol-version": version}
    reply = await send(app, verb, headers)
    refused = error(-32600, "Unsupported MCP-Protocol-Version", request_id=None)
    assert (reply.status_code, reply.json()) == (400, refused)
    # Nothing has come of it.
    assert await delete(app, token) == 200


async def test_a_modern_server_has_no_sessions_to_listen_for() -> None:
    """Ours."""
    app = bookshop(eras={"modern"})
    for verb in ("GET", "DELETE"):
        reply = await send(app, verb, in_session("x"))
        assert (reply.status_code, reply.headers["allow"]) == (405, "POST")


async def test_a_modern_client_names_no_session() -> None:
    """SES-01. What it names is not looked at."""
    app = bookshop()
    message = listen(toolsListChanged=True)
    async with stream(app, message, in_session("bogus")) as opened:
        await opened.message()
        assert "mcp-session-id" not in opened.headers


# What is heard


@versions
async def test_a_stream_begins_with_a_place_to_come_back_to(version: str) -> None:
    """Spec 2025-11-25, basic/transports. Older revisions know of no such event."""
    app = bookshop()
    token = await open_session(app, version)
    async with stream(app, None, in_session(token)) as opened:
        assert (opened.status, opened.headers["content-type"]) == (
            200,
            "text/event-stream",
        )
        if version == POLLING:
            first = await opened.event()
            assert first.id is not None
            assert first == Event(None, first.id, retry=1000)
        app.tool(tell)
        event = await opened.event()
        assert event.id is not None
        assert event == Event(changed("tools"), event.id)


async def listening(opened: Stream) -> str:
    """Read the first event of a stream, and return its id."""
    first = await opened.event()
    assert first.data is None
    assert first.id is not None
    return first.id


async def test_changes_are_heard_in_their_order() -> None:
    """Spec 2025-11-25, server/tools: List Changed Notification, and its siblings."""
    app = bookshop()
    async with stream(app, None, in_session(await open_session(app))) as opened:
        ids = [await listening(opened)]
        for change, kind in (
            (lambda: app.tool(tell), "tools"),
            (lambda: app.prompt(tell), "prompts"),
            (lambda: app.resource("shop://news")(tell), "resources"),
            (lambda: app.remove_resource("books://{isbn}"), "resources"),
            (lambda: app.notify_list_changed("tools"), "tools"),
        ):
            await asyncio.to_thread(change)
            event = await opened.event()
            assert event == Event(changed(kind), event.id)
            ids.append(str(event.id))
    names = [name.rpartition(".") for name in ids]
    assert len({stream_id for stream_id, *_ in names}) == 1
    assert [int(number) for *_, number in names] == [0, 1, 2, 3, 4, 5]


async def test_updates_are_heard_of_what_the_session_follows() -> None:
    """Spec 2025-11-25, server/resources: Subscriptions."""
    app = bookshop()
    token, other = await open_session(app), await open_session(app)
    assert await subscribe(app, token, HOURS) == DONE
    async with (
        stream(app, None, in_session(token)) as mine,
        stream(app, None, in_session(other)) as theirs,
    ):
        for opened in (mine, theirs):
            await listening(opened)
        assert await subscribe(app, token, BOOK) == DONE
        assert await subscribe(app, token, BOOK) == DONE
        for uri in ("books://2", BOOK):
            app.notify_resource_updated(uri)
        assert await mine.message() == updated(BOOK)
        app.notify_resource_updated(HOURS)
        assert await mine.message() == updated(HOURS)
        for _ in range(2):
            assert await unsubscribe(app, token, HOURS) == DONE
        for uri in (HOURS, BOOK):
            app.notify_resource_updated(uri)
        assert await mine.message() == updated(BOOK)
        app.tool(tell)
        assert await mine.message() == await theirs.message() == changed("tools")


async def test_a_resource_that_is_not_there_can_not_be_followed() -> None:
    """Spec 2025-11-25, server/resources: Error Handling."""
    app = bookshop()
    token = await open_session(app)
    unknown = error(
        -32002, "Resource not found", request_id=1, data={"uri": "no://where"}
    )
    assert await subscribe(app, token, "no://where") == unknown
    assert await unsubscribe(app, token, "no://where") == DONE
    for method in ("resources/subscribe", "resources/unsubscribe"):
        answer = await request(app, token, legacy(method, {"uri": 1}))
        assert answer["error"]["code"] == -32602


async def test_a_session_follows_so_many_resources(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Ours."""
    monkeypatch.setattr(subscriptions, "MAX_URIS", 3)
    app = bookshop()
    token = await open_session(app)
    for number in range(3):
        assert await subscribe(app, token, f"books://{number}") == DONE
    refused = error(-32602, "A session follows at most 3 resources", request_id=1)
    assert await subscribe(app, token, HOURS) == refused
    assert await subscribe(app, token, "books://0") == DONE
    assert await unsubscribe(app, token, "books://0") == DONE
    assert await subscribe(app, token, HOURS) == DONE


@versions
async def test_who_has_no_session_follows_nothing(version: str) -> None:
    """Ours: it is accepted, as there is nothing to be told on."""
    backend = MemoryBackend()
    app = bookshop(backend=backend)
    for method in ("resources/subscribe", "resources/unsubscribe"):
        reply = await call(app, version, method, {"uri": HOURS})
        assert reply.json() == DONE
    assert len(backend) == 0


async def test_what_is_followed_is_known_to_all_workers() -> None:
    """Ours."""
    backend = MemoryBackend()
    one, two = (bookshop(backend=backend, secret_key=KEY) for _ in range(2))
    token = await open_session(one)
    async with stream(two, None, in_session(token)) as opened:
        await listening(opened)
        await subscribe(one, token, HOURS)
        one.notify_resource_updated(HOURS)
        assert await opened.message() == updated(HOURS)
        one.notify_list_changed("tools")
        assert await opened.message() == changed("tools")
    async with stream(one, None, in_session(token)) as opened:
        await listening(opened)
        two.notify_resource_updated(HOURS)
        assert await opened.message() == updated(HOURS)


async def test_a_burst_of_updates_hides_none_that_is_followed() -> None:
    """Ours: where it is too much to tell, what is followed may be another."""
    app = bookshop()
    token = await open_session(app)
    for uri in (HOURS, BOOK):
        await subscribe(app, token, uri)
    async with stream(app, None, in_session(token)) as opened:
        await listening(opened)
        app.notify_resource_updated(BOOK)
        app.notify_list_changed("tools")
        for number in range(2 * MAX_PENDING):
            app.notify_resource_updated(f"books://other-{number}")
        told = [await opened.message() for _ in range(3)]
        assert told == [changed("tools"), updated(HOURS), updated(BOOK)]
        app.notify_resource_updated(BOOK)
        assert await opened.message() == updated(BOOK)


async def test_a_failing_backend_ends_a_stream_alone(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ours."""
    app = bookshop()
    headers = in_session(await open_session(app))

    async def fail(key: str) -> str | None:
        raise OSError(key)

    async with stream(app, None, headers) as opened:
        await listening(opened)
        with monkeypatch.context() as patched:
            patched.setattr(app.backend, "get", fail)
            app.notify_resource_updated(HOURS)
            assert await opened.rest() == []
    assert "a session can't be told of changes" in caplog.text
    async with stream(app, None, headers) as opened:
        await listening(opened)
        app.tool(tell)
        assert await opened.message() == changed("tools")


# Who may know


async def test_a_session_hears_what_its_caller_may_know() -> None:
    """STR-09. Who comes back may see what it may see by then."""
    caller = SimpleNamespace(id="me", scopes=[])
    app = App("bookshop", principal=lambda _: caller)
    app.resource("scoped://x", scopes=["read"], visible="scopes")(tell)
    app.resource("open://x")(tell)
    token = await open_session(app)
    answer = await subscribe(app, token, "scoped://x")
    assert answer["error"]["code"] == -32002
    caller = SimpleNamespace(id="me", scopes=["read"])
    for uri in ("open://x", "scoped://x"):
        assert await subscribe(app, token, uri) == DONE
    async with AsyncExitStack() as stack:
        for scopes in ([], ["read"], []):
            caller = SimpleNamespace(id="me", scopes=scopes)
            opened = await stack.enter_async_context(
                stream(app, None, in_session(token))
            )
            await listening(opened)
            for uri in ("scoped://x", "open://x"):
                app.notify_resource_updated(uri)
            if scopes:
                assert await opened.message() == updated("scoped://x")
            assert await opened.message() == updated("open://x")
            app.add_tool(tell, name="hidden", scopes=["read"], visible="scopes")
            if scopes:
                assert await opened.message() == changed("tools")
            app.remove_tool("hidden")
            if scopes:
                assert await opened.message() == changed("tools")


# Several connections


async def test_a_message_goes_to_the_latest_connection() -> None:
    """Spec 2025-11-25, basic/transports: Multiple Connections."""
    app = bookshop()
    headers = in_session(await open_session(app))
    async with AsyncExitStack() as stack:
        first, second, third = [
            await stack.enter_async_context(stream(app, None, headers))
            for _ in range(3)
        ]
        for opened in (first, second, third):
            await listening(opened)
        app.notify_list_changed("tools")
        assert await third.message() == changed("tools")
        # One that has no turn goes: nothing is different.
        await first.close()
        app.notify_list_changed("prompts")
        assert await third.message() == changed("prompts")
        await third.close()
        app.notify_list_changed("resources")
        assert await second.message() == changed("resources")
        fourth = await stack.enter_async_context(stream(app, None, headers))
        await listening(fourth)
        app.notify_list_changed("tools")
        assert await fourth.message() == changed("tools")
        app.close()
        for opened in (second, fourth):
            assert await opened.rest() == []


async def test_connections_that_close_together_leave_nothing_behind(
    brief: None,  # noqa: ARG001
) -> None:
    """Ours."""
    app = bookshop()
    headers = in_session(await open_session(app))
    async with AsyncExitStack() as stack:
        opened = [
            await stack.enter_async_context(stream(app, None, headers))
            for _ in range(3)
        ]
        for each in opened:
            await listening(each)
        await asyncio.gather(*(each.close() for each in reversed(opened)))
    await idle(app)


async def test_the_latest_connection_is_the_one_that_came_last() -> None:
    """Ours: whichever was first to have its head sent."""
    app = bookshop()
    headers = {**in_session(await open_session(app)), **SSE}
    early = Stream(app, "GET", headers, b"")
    early.reads.clear()
    await wait_all_tasks_blocked()
    async with stream(app, None, headers) as late:
        await listening(late)
        early.reads.set()
        await listening(early)
        app.notify_list_changed("tools")
        assert await late.message() == changed("tools")
    async with asyncio.timeout(PATIENCE):
        app.notify_list_changed("prompts")
        assert await early.message() == changed("prompts")
        await early.close()


async def test_the_oldest_connection_makes_room_for_the_latest(
    brief: None,  # noqa: ARG001
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Ours: however many a session opens, so many are open."""
    monkeypatch.setattr("mcpkit.listening.MAX_CONNECTIONS", 3)
    app = bookshop()
    headers = in_session(await open_session(app, "2025-06-18"))
    async with AsyncExitStack() as stack:
        opened = []
        for _ in range(5):
            opened.append(await stack.enter_async_context(stream(app, None, headers)))
            await wait_all_tasks_blocked()
        for gone in opened[:2]:
            assert await gone.rest() == []
        app.tool(tell)
        assert await opened[-1].message() == changed("tools")
        assert [one.task.done() for one in opened] == [True, True, False, False, False]
    await idle(app)


async def test_a_host_that_cancels_a_request_gets_its_way() -> None:
    """Ours."""
    app = bookshop()
    headers = {**in_session(await open_session(app)), **SSE}
    opened = Stream(app, "GET", headers, b"")
    async with asyncio.timeout(PATIENCE):
        await listening(opened)
        opened.task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await opened.task
    app.close()
    await idle(app)


async def test_what_one_connection_was_sent_the_next_is_not() -> None:
    """Spec 2025-11-25, basic/transports: a message goes to one stream only."""
    app = bookshop()
    headers = in_session(await open_session(app))
    async with stream(app, None, headers) as slow:
        await listening(slow)
        slow.reads.clear()
        app.notify_list_changed("tools")
        # It is on its way to the one that does not read.
        await wait_all_tasks_blocked()
        async with stream(app, None, headers) as quick:
            await listening(quick)
            app.notify_list_changed("prompts")
            assert await quick.message() == changed("prompts")
            slow.reads.set()
            assert await slow.message() == changed("tools")
            app.notify_list_changed("resources")
            assert await quick.message() == changed("resources")


# Who comes back


async def test_who_comes_back_hears_what_it_missed() -> None:
    """Spec 2025-11-25, basic/transports: Resumability and Redelivery."""
    app = bookshop()
    token = await open_session(app)
    async with stream(app, None, in_session(token)) as opened:
        start = await listening(opened)
        app.notify_list_changed("tools")
        seen = (await opened.event()).id
        app.notify_list_changed("prompts")
        assert await opened.message() == changed("prompts")
    app.notify_list_changed("resources")
    for after, missed in ((seen, ["prompts"]), (start, ["tools", "prompts"])):
        async with stream(app, None, in_session(token, after)) as opened:
            await listening(opened)
            for kind in (*missed, "resources"):
                assert await opened.message() == changed(kind)
    # One that has no id hears what nobody was sent.
    app.notify_list_changed("tools")
    await wait_all_tasks_blocked()
    async with stream(app, None, in_session(token)) as opened:
        await listening(opened)
        assert await opened.message() == changed("tools")
        app.notify_list_changed("prompts")
        assert await opened.message() == changed("prompts")


async def test_who_comes_back_may_find_its_old_connection_open() -> None:
    """Ours: a server learns last that a connection is broken."""
    app = bookshop()
    token = await open_session(app)
    async with stream(app, None, in_session(token)) as broken:
        start = await listening(broken)
        for kind in ("tools", "prompts"):
            app.notify_list_changed(kind)
        await wait_all_tasks_blocked()
        async with stream(app, None, in_session(token, start)) as opened:
            await listening(opened)
            for kind in ("tools", "prompts"):
                assert await opened.message() == changed(kind)
            app.notify_list_changed("resources")
            assert await opened.message() == changed("resources")


async def test_who_comes_back_late_finds_what_was_kept(
    brief: None,  # noqa: ARG001
) -> None:
    """Ours: what happens in a stream that nobody listens to is still there."""
    app = bookshop()
    token = await open_session(app)
    async with stream(app, None, in_session(token)) as opened:
        start = await listening(opened)
        app.notify_list_changed("tools")
        await opened.message()
    await idle(app)
    async with stream(app, None, in_session(token, start)) as opened:
        assert await listening(opened) != start
        assert await opened.message() == changed("tools")
        app.notify_list_changed("prompts")
        last = await opened.event()
        assert last == Event(changed("prompts"), last.id)
    async with stream(app, None, in_session(token, last.id)) as opened:
        await listening(opened)
        app.notify_list_changed("resources")
        assert await opened.message() == changed("resources")


async def test_an_id_of_nobody_begins_a_new_stream() -> None:
    """Ours."""
    app = bookshop()
    token, other = await open_session(app), await open_session(app)
    async with stream(app, None, in_session(other)) as opened:
        theirs = await listening(opened)
        app.notify_list_changed("tools")
        secret = str((await opened.event()).id)
    for after in ("", "x", "1", "é", theirs, secret, secret + "0", "x" * 9000):
        async with stream(app, None, in_session(token, after)) as opened:
            await listening(opened)
            app.notify_list_changed("prompts")
            assert await opened.message() == changed("prompts")


# Those who read slowly


async def test_a_slow_reader_keeps_nobody_waiting() -> None:
    """Ours: it misses the oldest of what it does not read."""
    app = bookshop()
    tokens = [await open_session(app) for _ in range(2)]
    async with (
        stream(app, None, in_session(tokens[0])) as slow,
        stream(app, None, in_session(tokens[1])) as quick,
    ):
        for opened in (slow, quick):
            await listening(opened)
        slow.reads.clear()
        count = MAX_EVENTS + 50
        for _ in range(count):
            app.notify_list_changed("tools")
            assert await quick.message() == changed("tools")
        slow.reads.set()
        numbers = [
            int(str((await slow.event()).id).rpartition(".")[2])
            for _ in range(MAX_EVENTS + 1)
        ]
        # The first was on its way.
        assert numbers == [1, *range(count - MAX_EVENTS + 1, count + 1)]


# The end


async def test_a_session_that_ends_is_heard_no_more() -> None:
    """Spec 2025-11-25, basic/transports: Session Management."""
    app = bookshop()
    token = await open_session(app)
    await subscribe(app, token, HOURS)
    async with (
        stream(app, None, in_session(token)) as first,
        stream(app, None, in_session(token)) as second,
    ):
        for opened in (first, second):
            start = await listening(opened)
        assert await delete(app, token) == 200
        for opened in (first, second):
            assert await opened.rest() == []
    await idle(app)
    assert len(app.replay) == 0
    assert await delete(app, token) == 404
    reply = await send(app, "GET", in_session(token, start))
    assert reply.status_code == 404


async def test_who_comes_at_the_end_is_not_kept_by_what_has_ended() -> None:
    """Ours."""
    app = bookshop()
    headers = {**in_session(await open_session(app)), **SSE}
    async with stream(app, None, headers) as opened:
        await listening(opened)
        app.close()
        late = Stream(app, "GET", headers, b"")
        async with asyncio.timeout(PATIENCE):
            await listening(late)
            assert await late.rest() == await opened.rest() == []
            await late.close()
    await idle(app)


@pytest.fixture
def address() -> Iterator[str]:
    with serving() as given:
        yield given


async def test_a_session_ends_in_all_workers(address: str) -> None:
    """SES-06. Two apps over a backend that each reaches by itself."""
    backends = [SocketBackend(address) for _ in range(2)]
    one, two = (bookshop(backend=each, secret_key=KEY) for each in backends)
    token, other = await open_session(one), await open_session(two)
    async with (
        stream(one, None, in_session(token)) as here,
        stream(two, None, in_session(token)) as there,
        stream(two, None, in_session(other)) as bystander,
    ):
        for opened in (here, there, bystander):
            await listening(opened)
        assert await subscribe(two, token, HOURS) == DONE
        one.notify_resource_updated(HOURS)
        assert await here.message() == await there.message() == updated(HOURS)
        assert await delete(two, token) == 200
        for opened in (here, there):
            assert await opened.rest() == []
        one.notify_list_changed("tools")
        assert await bystander.message() == changed("tools")
        two.close()
        assert await bystander.rest() == []
    for app in (one, two):
        await idle(app)
        assert (await send(app, "GET", in_session(token))).status_code == 404
    for each in backends:
        await asyncio.to_thread(each.close)


async def test_a_stream_ends_when_its_session_is_over(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Ours."""
    monkeypatch.setattr(lifecycle, "SESSION_SECONDS", 2)
    app = bookshop()
    token = await open_session(app)
    async with stream(app, None, in_session(token)) as opened:
        assert opened.status == 200
        await listening(opened)
        assert await opened.rest() == []
        assert await delete(app, token) == 404
    await idle(app)


async def test_sessions_leave_nothing(brief: None) -> None:  # noqa: ARG001
    """SES-03."""
    backend = MemoryBackend()
    app = bookshop(backend=backend)
    for number in range(100):
        token = await open_session(app)
        await subscribe(app, token, HOURS)
        if number % 3:
            async with stream(app, None, in_session(token)) as opened:
                await listening(opened)
                app.notify_list_changed("tools")
                await opened.message()
        # Every third is left as it is.
        if number % 3 < 2:
            assert await delete(app, token) == 200
    await idle(app)
    kept = [key.partition(":")[0] for key in backend._values]  # noqa: SLF001
    # That a session has ended is known until it would have expired.
    assert kept.count("session-ended") == 67
    assert kept.count("session-follows") == 33
    assert len(kept) == 100


async def test_who_listens_no_more_makes_room() -> None:
    """Ours: a client that left without a word does not keep others out."""
    app = bookshop(max_streams=2)
    left, busy = await open_session(app), await open_session(app)
    async with stream(app, None, in_session(left)) as opened:
        start = await listening(opened)
        app.notify_list_changed("tools")
        await opened.message()
    async with (
        stream(app, None, in_session(busy)) as heard,
        stream(app, listen(toolsListChanged=True)) as modern,
    ):
        await listening(heard)
        await modern.message()
        assert len(app.subscriptions) == 2
        reply = await send(app, "GET", {**in_session(left), **SSE})
        full = error(-32603, "Too many open streams", request_id=None)
        assert (reply.status_code, reply.json()) == (503, full)
    async with stream(app, None, in_session(left, start)) as opened:
        await listening(opened)
        assert await opened.message() == changed("tools")


async def test_a_principal_makes_room_of_its_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Ours."""
    monkeypatch.setattr(streams, "MAX_PER_PRINCIPAL", 3)
    app = bookshop(principal=lambda request: request.headers.get("x-caller"))

    async def come(caller: str) -> str:
        headers = {"x-caller": caller}
        token = await open_session(app, headers=headers)
        async with stream(app, None, {**in_session(token), **headers}) as opened:
            await listening(opened)
        return token

    await come("you")
    for _ in range(5):
        await come("me")
    assert len(app.subscriptions) == 3 + 1
    app.close()
    await idle(app)
