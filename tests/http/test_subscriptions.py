"""Streams of changes in the modern era, as a client reads them."""

import asyncio
import logging
import threading
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, Final

import httpx
import pytest
from anyio import wait_all_tasks_blocked

from mcpkit import App, Toolbox
from mcpkit.protocol.jsonrpc import encode
from mcpkit.subscriptions import MAX_PENDING, MAX_PER_PRINCIPAL, MAX_URIS
from tests.http.bookshop import bookshop
from tests.http.client import (
    MODERN,
    call,
    error,
    headers_of,
    modern,
    post,
    result_of,
)
from tests.http.serving import served
from tests.http.streaming import (
    PATIENCE,
    Stream,
    acknowledged,
    changed,
    closed,
    completed,
    idle,
    lifespan,
    listen,
    stream,
    updated,
)
from tests.wire import check_response

HOURS: Final = "shop://hours"
BOOK: Final = "books://1"
EVERYTHING: Final = {
    "toolsListChanged": True,
    "promptsListChanged": True,
    "resourcesListChanged": True,
    "resourceSubscriptions": [HOURS],
}


async def tell() -> str:
    return ""


def by_header(request: Any) -> Any:
    """Return the caller that a header names, with the scopes behind a colon."""
    name, _, scopes = request.headers.get("x-caller", "").partition(":")
    return SimpleNamespace(id=name, scopes=scopes.split()) if name else None


# What is honoured

HONOURED: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    ("all of it", EVERYTHING, EVERYTHING),
    ("one list", {"toolsListChanged": True}, {"toolsListChanged": True}),
    (
        "false is not asked for",
        {"toolsListChanged": True, "promptsListChanged": False},
        {"toolsListChanged": True},
    ),
    (
        "the URI of a template",
        {"resourceSubscriptions": [BOOK]},
        {"resourceSubscriptions": [BOOK]},
    ),
    (
        "a URI twice, and one that nothing serves",
        {"resourceSubscriptions": [BOOK, "no://where", BOOK]},
        {"resourceSubscriptions": [BOOK]},
    ),
    (
        "what is not known",
        {"toolsListChanged": True, "weatherChanged": True},
        {"toolsListChanged": True},
    ),
]


@pytest.mark.parametrize(
    ("asked", "honoured"), [pytest.param(*row, id=name) for name, *row in HONOURED]
)
async def test_the_first_message_is_what_is_honoured(
    asked: dict[str, Any], honoured: dict[str, Any]
) -> None:
    """Spec 2026-07-28, basic/patterns/subscriptions: Acknowledgment."""
    app = bookshop()
    async with stream(app, listen(**asked)) as opened:
        assert await opened.message() == acknowledged(**honoured)
        assert (opened.status, opened.headers["content-type"]) == (
            200,
            "text/event-stream",
        )
    await idle(app)


async def test_what_the_server_does_not_have_is_not_honoured() -> None:
    """STR-06. Spec 2026-07-28, basic/patterns/subscriptions: Acknowledgment."""
    app = App("bookshop")
    app.tool(tell)
    async with stream(app, listen(**EVERYTHING)) as opened:
        assert await opened.message() == acknowledged(toolsListChanged=True)


@pytest.mark.parametrize(
    "asked",
    [{"toolsListChanged": True}, {}, {"resourceSubscriptions": ["no://where"]}],
)
async def test_where_nothing_is_honoured_the_stream_ends_at_once(
    asked: dict[str, Any],
) -> None:
    """STR-06. Ours."""
    app = App("bookshop", version="1.0.0", max_streams=1)
    async with stream(app, listen(**asked)) as opened:
        assert await opened.rest() == [acknowledged(), completed()]
    declared = await call(app, MODERN, "server/discover")
    assert result_of(declared)["capabilities"] == {"logging": {}}


@pytest.mark.parametrize("request_id", [0, 1, "s-1", "", "1", -1, 2**63], ids=repr)
async def test_every_message_has_the_id_of_the_subscription(request_id: Any) -> None:
    """STR-07. Spec 2026-07-28, basic/patterns/subscriptions.

    Receiving Notifications; Graceful Closure.
    """
    app = bookshop()
    async with stream(app, listen(request_id, **EVERYTHING)) as opened:
        assert await opened.message() == acknowledged(request_id, **EVERYTHING)
        app.tool(tell)
        app.notify_resource_updated(HOURS)
        assert await opened.message() == changed("tools", request_id)
        assert await opened.message() == updated(HOURS, request_id)
        app.close()
        (last,) = await opened.rest()
    assert last == completed(request_id)
    assert type(last["id"]) is type(request_id)
    check_response(last, "subscriptions/listen", MODERN)
    await idle(app)


async def test_two_streams_are_told_each_of_its_own() -> None:
    """STR-07. Spec 2026-07-28, basic/patterns/subscriptions.

    Multiple Concurrent Subscriptions.
    """
    app = bookshop()
    async with (
        stream(app, listen("tools", toolsListChanged=True)) as one,
        stream(app, listen(2, resourceSubscriptions=[BOOK])) as two,
        stream(app, listen(2, resourceSubscriptions=[BOOK])) as twin,
    ):
        for opened in (one, two, twin):
            await opened.message()
        app.tool(tell)
        app.notify_resource_updated(BOOK)
        app.notify_resource_updated(HOURS)
        assert await two.message() == await twin.message() == updated(BOOK, 2)
        app.close()
        assert await one.rest() == [changed("tools", "tools"), completed("tools")]
        assert await two.rest() == await twin.rest() == [completed(2)]


@pytest.mark.parametrize(
    "publish",
    [
        pytest.param(lambda app: app.notify_resource_updated(HOURS), id="a resource"),
        pytest.param(lambda app: app.tool(tell), id="a list"),
    ],
)
async def test_a_change_at_the_moment_of_listening_is_not_lost(
    publish: Callable[[App], Any],
) -> None:
    """STR-07. The client does not take the acknowledgement yet."""
    app = bookshop()
    asked = {"toolsListChanged": True, "resourceSubscriptions": [HOURS]}
    opened = Stream(app, "POST", headers_of(listen(**asked)), encode(listen(**asked)))
    opened.reads.clear()
    await wait_all_tasks_blocked()
    publish(app)
    async with asyncio.timeout(PATIENCE):
        opened.reads.set()
        assert await opened.message() == acknowledged(**asked)
        assert await opened.message() in (changed("tools", 1), updated(HOURS, 1))
        await opened.close()
    await idle(app)


# What is refused before there is a stream

NO_URIS: tuple[Any, ...] = (None, HOURS, {}, [HOURS, 1], [None])
MALFORMED: list[tuple[str, Any, str]] = [
    ("none", ..., "notifications must be an object"),
    ("null", None, "notifications must be an object"),
    ("an array", [], "notifications must be an object"),
    *(
        (f"{value!r} as {kind}", {kind: value}, f"{kind} must be a boolean")
        for kind in ("toolsListChanged", "promptsListChanged", "resourcesListChanged")
        for value in (None, 1, "true")
    ),
    *(
        (
            f"{uris!r} as URIs",
            {"resourceSubscriptions": uris},
            "resourceSubscriptions must be an array of strings",
        )
        for uris in NO_URIS
    ),
]


@pytest.mark.parametrize(
    ("wanted", "fault"), [pytest.param(*row, id=name) for name, *row in MALFORMED]
)
async def test_a_malformed_filter_opens_no_stream(wanted: Any, fault: str) -> None:
    """Spec 2026-07-28, basic/patterns/subscriptions: Notification Filter."""
    params = {} if wanted is ... else {"notifications": wanted}
    reply = await post(bookshop(), modern("subscriptions/listen", params))
    refused = error(-32602, f"Invalid params: {fault}", request_id=1)
    assert (reply.status_code, reply.json()) == (200, refused)


async def test_a_stream_follows_a_thousand_resources() -> None:
    """Ours."""
    app = bookshop()
    uris = [f"books://{number}" for number in range(MAX_URIS)]
    async with stream(app, listen(resourceSubscriptions=uris)) as opened:
        expected = acknowledged(resourceSubscriptions=sorted(uris))
        assert await opened.message() == expected
    reply = await post(app, listen(resourceSubscriptions=[*uris, HOURS]))
    fault = "resourceSubscriptions has more than 1000 URIs"
    refused = error(-32603, fault, request_id=1)
    assert (reply.status_code, reply.json()) == (503, refused)


ROOMY = "a" * 255

LARGE: dict[str, Any] = {
    "what it follows": listen(
        resourceSubscriptions=[f"books://{ROOMY}{number:04}" for number in range(1000)]
    ),
    "what it has besides": {
        **listen(toolsListChanged=True),
        "params": {**listen(toolsListChanged=True)["params"], "more": ROOMY * 1100},
    },
}


@pytest.mark.parametrize("row", LARGE)
async def test_a_request_that_is_large_opens_no_stream(row: str) -> None:
    """Ours: it would be kept for as long as the stream is open."""
    app = bookshop()
    reply = await post(app, LARGE[row])
    fault = "The params are larger than 262144 bytes"
    refused = error(-32603, fault, request_id=1)
    assert (reply.status_code, reply.json()) == (503, refused)
    await idle(app)


@pytest.mark.parametrize("accept", ["application/json", "text/event-stream;q=0"])
async def test_a_client_that_takes_no_stream_gets_none(accept: str) -> None:
    """Ours."""
    app = bookshop()
    message = listen(toolsListChanged=True)
    headers = {**headers_of(message), "accept": f"application/json, {accept}"}
    reply = await post(app, message, headers)
    refused = error(-32600, "Accept must admit text/event-stream", request_id=1)
    assert (reply.status_code, reply.json()) == (406, refused)
    await idle(app)


async def refusal(app: App, caller: str = "") -> tuple[int, str, Any]:
    async with stream(
        app, listen(7, toolsListChanged=True), {"x-caller": caller}
    ) as opened:
        return opened.status, opened.headers["content-type"], await opened.body()


FULL: Final = (
    503,
    "application/json",
    error(-32603, "Too many open streams", request_id=7),
)


async def test_a_worker_has_so_many_streams() -> None:
    """Ours."""
    app = bookshop(max_streams=2)
    message = listen(toolsListChanged=True)
    async with stream(app, message) as first:
        await first.message()
        async with stream(app, message) as second:
            await second.message()
            assert await refusal(app) == FULL
        async with stream(app, message) as third:
            assert await third.message() == acknowledged(toolsListChanged=True)
    await idle(app)


async def test_a_principal_has_a_hundred_streams() -> None:
    """Ours."""
    app = bookshop(principal=by_header)
    message = listen(toolsListChanged=True)
    mine = {"x-caller": "me"}
    opened = [
        Stream(app, "POST", {**headers_of(message), **mine}, encode(message))
        for _ in range(MAX_PER_PRINCIPAL)
    ]
    async with asyncio.timeout(PATIENCE):
        for each in opened:
            await each.message()
        assert await refusal(app, "me") == FULL
        for headers in ({"x-caller": "you"}, {}):
            async with stream(app, message, headers) as other:
                assert await other.message() == acknowledged(toolsListChanged=True)
        await opened.pop().close()
        async with stream(app, message, mine) as again:
            assert await again.message() == acknowledged(toolsListChanged=True)
        for each in opened:
            await each.close()
    await idle(app)


# What is told, and to whom


def add_prompt(app: App) -> None:
    app.prompt(tell)


def add_resource(app: App) -> None:
    app.resource("shop://news")(tell)


def add_template(app: App) -> None:
    @app.resource("authors://{name}")
    async def author(name: str) -> str:
        return name


def include(app: App) -> None:
    toolbox = Toolbox()
    toolbox.tool(tell)
    app.include(toolbox)


CHANGES: list[tuple[str, Callable[[App], Any], str]] = [
    ("a tool comes", lambda app: app.tool(tell), "tools"),
    ("a tool goes", lambda app: app.remove_tool("add"), "tools"),
    (
        "a tool is another",
        lambda app: app.add_tool(tell, name="add", replace=True),
        "tools",
    ),
    ("a toolbox comes", include, "tools"),
    ("a prompt comes", add_prompt, "prompts"),
    ("a prompt goes", lambda app: app.remove_prompt("review"), "prompts"),
    ("a resource comes", add_resource, "resources"),
    ("a resource goes", lambda app: app.remove_resource(HOURS), "resources"),
    ("a template comes", add_template, "resources"),
    ("a template goes", lambda app: app.remove_resource("books://{isbn}"), "resources"),
    ("the app says so", lambda app: app.notify_list_changed("prompts"), "prompts"),
]


def in_the_loop(work: Callable[[], Any]) -> None:
    work()


def in_a_thread(work: Callable[[], Any]) -> None:
    thread = threading.Thread(target=work)
    thread.start()
    thread.join(PATIENCE)


def in_another_loop(work: Callable[[], Any]) -> None:
    async def run() -> None:
        work()

    in_a_thread(lambda: asyncio.run(run()))


@pytest.mark.parametrize("where", [in_the_loop, in_a_thread, in_another_loop])
@pytest.mark.parametrize(
    ("change", "kind"), [pytest.param(*row, id=name) for name, *row in CHANGES]
)
async def test_a_change_is_told_wherever_it_is_made(
    change: Callable[[App], Any],
    kind: str,
    where: Callable[[Callable[[], Any]], None],
) -> None:
    """Spec 2026-07-28, server/tools: List Changed Notification, and its siblings."""
    app = bookshop()
    async with stream(app, listen(**EVERYTHING)) as opened:
        await opened.message()
        where(lambda: change(app))
        assert await opened.message() == changed(kind, 1)
        app.close()
        assert await opened.rest() == [completed()]


@pytest.mark.parametrize("where", [in_the_loop, in_a_thread, in_another_loop])
async def test_an_update_is_told_wherever_it_is_made(
    where: Callable[[Callable[[], Any]], None],
) -> None:
    """Spec 2026-07-28, server/resources: Subscriptions."""
    app = bookshop()
    async with stream(app, listen(resourceSubscriptions=[BOOK, HOURS])) as opened:
        await opened.message()
        for uri in ("books://2", BOOK):
            where(lambda uri=uri: app.notify_resource_updated(uri))  # type: ignore[misc]
        assert await opened.message() == updated(BOOK, 1)


async def test_a_handler_may_change_what_there_is() -> None:
    """Ours."""
    app = bookshop()

    @app.tool
    async def learn() -> str:
        app.tool(tell)
        return "learnt"

    @app.tool
    def forget() -> str:
        app.remove_tool("tell")
        app.notify_resource_updated(HOURS)
        return "forgotten"

    asked = {"toolsListChanged": True, "resourceSubscriptions": [HOURS]}
    async with stream(app, listen(**asked)) as opened:
        await opened.message()
        await call(app, MODERN, "tools/call", {"name": "learn"})
        assert await opened.message() == changed("tools", 1)
        await call(app, MODERN, "tools/call", {"name": "forget"})
        assert await opened.message() == changed("tools", 1)
        assert await opened.message() == updated(HOURS, 1)


async def test_only_what_was_asked_for_is_told() -> None:
    """Spec 2026-07-28, basic/patterns/subscriptions: Opening a Stream."""
    app = bookshop()
    async with stream(app, listen(promptsListChanged=True)) as opened:
        await opened.message()
        app.tool(tell)
        add_resource(app)
        app.notify_resource_updated(HOURS)
        app.notify_list_changed("tools")
        add_prompt(app)
        assert await opened.message() == changed("prompts", 1)
        app.close()
        assert await opened.rest() == [completed()]


async def test_what_comes_up_often_waits_once() -> None:
    """Ours."""
    app = bookshop()
    asked = {"toolsListChanged": True, "resourceSubscriptions": [BOOK, HOURS]}
    async with stream(app, listen(**asked)) as opened:
        await opened.message()
        opened.reads.clear()
        app.notify_resource_updated(HOURS)
        await wait_all_tasks_blocked()
        # The one that is being sent, and those that wait for it.
        for _ in range(2 * MAX_PENDING):
            app.notify_resource_updated(HOURS)
            app.notify_resource_updated(BOOK)
            app.notify_list_changed("tools")
        await wait_all_tasks_blocked()
        opened.reads.set()
        told = [await opened.message() for _ in range(4)]
        app.close()
        assert await opened.rest() == [completed()]
    assert told == [
        updated(HOURS, 1),
        updated(HOURS, 1),
        updated(BOOK, 1),
        changed("tools", 1),
    ]


async def test_a_change_that_was_taken_back_is_none() -> None:
    """Ours."""
    app = bookshop()
    async with stream(
        app, listen(toolsListChanged=True, promptsListChanged=True)
    ) as opened:
        await opened.message()
        app.tool(tell)
        app.remove_tool("tell")
        add_prompt(app)
        assert await opened.message() == changed("prompts", 1)


async def test_a_stream_ends_when_too_much_waits() -> None:
    """Ours."""
    app = bookshop()
    uris = [f"books://{number}" for number in range(MAX_URIS)]
    async with stream(app, listen(resourceSubscriptions=uris)) as opened:
        await opened.message()
        opened.reads.clear()
        app.notify_resource_updated(uris[0])
        await wait_all_tasks_blocked()
        for uri in uris[1 : MAX_PENDING + 1]:
            app.notify_resource_updated(uri)
        await wait_all_tasks_blocked()
        assert len(app.subscriptions) == 1
        opened.reads.set()
        told = [await opened.message() for _ in range(MAX_PENDING + 1)]
        assert told == [updated(uri, 1) for uri in uris[: MAX_PENDING + 1]]
        opened.reads.clear()
        app.notify_resource_updated(uris[0])
        await wait_all_tasks_blocked()
        for uri in uris[1 : MAX_PENDING + 2]:
            app.notify_resource_updated(uri)
        await wait_all_tasks_blocked()
        opened.reads.set()
        assert await opened.rest() == [updated(uris[0], 1), completed()]
    await idle(app)


# Who may know


def guarded(**options: Any) -> App:
    """Build an app with something for everybody, and something for admins."""
    app = App("bookshop", version="1.0.0", principal=by_header, **options)
    app.add_tool(tell, name="open")
    app.add_prompt(tell, name="opening")
    app.resource("open://x")(tell)
    app.resource("secret://x", visible=is_admin)(tell)
    app.resource("scoped://x", scopes=["read"])(tell)

    @app.resource("scoped://{name}/y", scopes=["read"])
    async def scoped(name: str) -> str:
        return name

    return app


def is_admin(caller: Any) -> bool:
    return caller is not None and caller.id == "admin"


URIS: Final = ["open://x", "secret://x", "scoped://x", "scoped://a/y"]

READERS: list[tuple[str, str, list[str]]] = [
    ("nobody", "", ["open://x"]),
    ("an admin", "admin", ["open://x", "secret://x"]),
    ("a reader", "me:read", ["open://x", "scoped://x", "scoped://a/y"]),
    ("an admin who reads", "admin:read", URIS),
]


@pytest.mark.parametrize(
    ("caller", "readable"), [pytest.param(*row, id=name) for name, *row in READERS]
)
async def test_what_a_caller_may_not_read_is_not_followed(
    caller: str, readable: list[str]
) -> None:
    """STR-09."""
    app = guarded()
    message = listen(resourceSubscriptions=URIS)
    async with stream(app, message, {"x-caller": caller}) as opened:
        honoured = acknowledged(resourceSubscriptions=sorted(readable))
        assert await opened.message() == honoured
        for uri in URIS:
            app.notify_resource_updated(uri)
        for uri in readable:
            assert await opened.message() == updated(uri, 1)
        app.close()
        assert await opened.rest() == [completed()]


async def test_who_may_no_longer_read_is_no_longer_told() -> None:
    """STR-09."""
    callers = {"me": SimpleNamespace(id="me", scopes=["read"])}
    app = App("bookshop", version="1.0.0", principal=lambda _: callers["me"])
    app.resource("scoped://x", scopes=["read"])(tell)
    app.resource("open://x")(tell)
    asked = ["open://x", "scoped://x"]
    async with stream(app, listen(resourceSubscriptions=asked)) as opened:
        assert await opened.message() == acknowledged(resourceSubscriptions=asked)
        callers["me"].scopes.clear()
        app.notify_resource_updated("scoped://x")
        app.notify_resource_updated("open://x")
        assert await opened.message() == updated("open://x", 1)
        callers["me"].scopes.append("read")
        app.notify_resource_updated("scoped://x")
        assert await opened.message() == updated("scoped://x", 1)


async def test_who_does_not_see_a_tool_is_not_told_of_it() -> None:
    """Ours: its coming, its going and its change show to those alone who see it."""
    app = guarded()
    message = listen(toolsListChanged=True, promptsListChanged=True)

    def steps() -> None:
        app.add_tool(tell, name="hidden", visible=is_admin)

    def other() -> None:
        app.remove_tool("hidden")
        app.add_tool(tell, name="hidden", visible=is_admin, description="Other.")

    async with (
        stream(app, message) as stranger,
        stream(app, message, {"x-caller": "admin"}) as admin,
    ):
        for opened in (stranger, admin):
            await opened.message()
        for step in (steps, other, lambda: app.remove_tool("hidden")):
            step()
            assert await admin.message() == changed("tools", 1)
        add_prompt(app)
        for opened in (stranger, admin):
            assert await opened.message() == changed("prompts", 1)
        # What the app says, it says to all.
        app.notify_list_changed("tools")
        for opened in (stranger, admin):
            assert await opened.message() == changed("tools", 1)


async def test_a_tool_that_a_caller_sees_no_longer_is_a_change() -> None:
    """Ours."""
    app = guarded()
    async with stream(app, listen(toolsListChanged=True)) as opened:
        await opened.message()
        app.add_tool(tell, name="open", visible=is_admin, replace=True)
        assert await opened.message() == changed("tools", 1)


async def test_a_rule_that_fails_hides_and_ends_no_stream(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Ours."""

    def fail(_: Any) -> bool:
        raise ValueError("no")

    app = guarded()
    message = listen(toolsListChanged=True, promptsListChanged=True)
    async with stream(app, message) as opened:
        await opened.message()
        with caplog.at_level(logging.CRITICAL, "mcpkit"):
            app.add_tool(tell, name="broken", visible=fail)
            add_prompt(app)
            assert await opened.message() == changed("prompts", 1)


# What is left


async def test_closed_streams_leave_nothing() -> None:
    """Spec 2026-07-28, basic/patterns/subscriptions: Cancellation."""
    app = bookshop()
    for _ in range(20):
        async with stream(app, listen(**EVERYTHING)) as opened:
            await opened.message()
            assert len(app.subscriptions) == 1
    await idle(app)
    # What is told to nobody is no fault.
    app.notify_resource_updated(HOURS)
    app.tool(tell)


@pytest.mark.parametrize("http", ["h11", "httptools"])
async def test_streams_are_served_over_connections(http: Any) -> None:
    """SES-10. An open stream keeps nobody else waiting."""
    app = bookshop()
    message = listen(**EVERYTHING)
    with served(app, http) as port:
        url = f"http://127.0.0.1:{port}/mcp"
        async with asyncio.timeout(PATIENCE), httpx.AsyncClient() as client:
            async with client.stream(
                "POST", url, json=message, headers=headers_of(message)
            ) as reply:
                lines = reply.aiter_lines()
                assert (await anext(lines)).startswith("data: ")
                await asyncio.to_thread(app.tool, tell)
                ping = modern("tools/call", {"name": "tell"})
                answer = await client.post(url, json=ping, headers=headers_of(ping))
                assert answer.status_code == 200
                assert await anext(lines) == ""
                assert "tools/list_changed" in await anext(lines)
            # The server sees by itself that the connection has closed.
            await closed(app)


async def test_a_closed_app_ends_what_is_opened_later() -> None:
    """Ours: a request may be on its way while a server is stopped."""
    app = bookshop()
    async with stream(app, listen(toolsListChanged=True)) as opened:
        await opened.message()
        await asyncio.to_thread(app.close)
        assert await opened.rest() == [completed()]
    async with stream(app, listen(toolsListChanged=True)) as opened:
        late = [acknowledged(toolsListChanged=True), completed()]
        assert await opened.rest() == late
    async with lifespan(app), stream(app, listen(toolsListChanged=True)) as opened:
        assert await opened.message() == acknowledged(toolsListChanged=True)
    await idle(app)
