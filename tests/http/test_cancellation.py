"""Requests for whose result nobody waits any more."""

import asyncio
import contextlib
import gc
import json
import logging
import threading
import tracemalloc
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import Annotated, Any, Final

import anyio
import pytest
from fastapi import Depends
from starlette.types import Receive, Scope, Send

from mcpkit import (
    App,
    Context,
    MemoryBackend,
    Result,
    ToolError,
    running,
    threads,
)
from mcpkit.running import MAX_CANCELLED
from tests.http.client import (
    JSON_HEADERS,
    LEGACY,
    Json,
    initialize,
    legacy,
    open_session,
    post,
)
from tests.http.serving import HTTPS, Http, connected, head, served
from tests.http.streams import PATIENCE, WAYS, Client
from tests.http.test_streams import TOKEN, answer, call, progress, raw, told

every_way = pytest.mark.parametrize("serve", WAYS.values(), ids=WAYS.keys())


@pytest.fixture(autouse=True)
def attentive(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have a client looked after from the start."""
    monkeypatch.setattr(running, "WATCH_AFTER", 0)


@dataclass
class Shop:
    """An app whose tools wait, and what becomes of them.

    Attributes:
        steps: What happened, in order.
        waits: A tool waits by now.
        go: What the tools wait for.
    """

    app: App = field(default_factory=lambda: App("waiting"))
    steps: list[str] = field(default_factory=list)
    waits: asyncio.Event = field(default_factory=asyncio.Event)
    go: asyncio.Event = field(default_factory=asyncio.Event)

    @contextlib.contextmanager
    def waiting(self) -> Iterator[None]:
        """Note how a tool that waits ends."""
        self.waits.set()
        try:
            yield
        except BaseException as error:
            self.steps.append(type(error).__name__)
            raise
        else:
            self.steps.append("returned")
        finally:
            self.steps.append("finally")

    async def session(self) -> AsyncIterator[str]:
        """Be a dependency that is to be closed."""
        try:
            yield "open"
        except BaseException as error:
            self.steps.append(f"dependency: {type(error).__name__}")
            raise
        finally:
            self.steps.append("closed")


def plain(shop: Shop) -> None:
    @shop.app.tool
    async def x() -> str:
        with shop.waiting():
            await shop.go.wait()
        return "done"


def streaming(shop: Shop) -> None:
    @shop.app.tool
    async def x(ctx: Context) -> str:
        await ctx.progress(1)
        with shop.waiting():
            await shop.go.wait()
        return "done"


def swallowing(shop: Shop) -> None:
    @shop.app.tool
    async def x(ctx: Context) -> str:
        with contextlib.suppress(asyncio.CancelledError), shop.waiting():
            await shop.go.wait()
        await ctx.progress(1)
        # It can wait as ever.
        await asyncio.sleep(0)
        return "done"


def failing(shop: Shop) -> None:
    @shop.app.tool
    async def x() -> str:
        try:
            with shop.waiting():
                await shop.go.wait()
        except asyncio.CancelledError as error:
            raise ToolError("Sold out.") from error
        return "done"


def in_a_group(shop: Shop) -> None:
    @shop.app.tool
    async def x() -> str:
        async with anyio.create_task_group() as group:
            group.start_soon(anyio.sleep_forever)
            with shop.waiting():
                await shop.go.wait()
            group.cancel_scope.cancel()
        return "done"


def in_time(shop: Shop) -> None:
    @shop.app.tool
    async def x() -> str:
        async with asyncio.timeout(PATIENCE):
            with anyio.fail_after(PATIENCE), shop.waiting():
                await shop.go.wait()
        return "done"


ASYNC: Final[dict[str, Callable[[Shop], None]]] = {
    "waits": plain,
    "has begun a stream": streaming,
    "swallows it": swallowing,
    "raises something else": failing,
    "waits in a task group": in_a_group,
    "waits for a time": in_time,
}


def of_mcpkit(caplog: pytest.LogCaptureFixture) -> list[str]:
    """Return what a log of usual detail has."""
    return [
        f"{record.levelname}: {record.message}"
        for record in caplog.records
        if record.levelno >= logging.INFO
    ]


@every_way
@pytest.mark.parametrize("build", ASYNC.values(), ids=ASYNC.keys())
async def test_a_client_that_closes_a_modern_response_cancels_its_handler(
    build: Callable[[Shop], None],
    serve: Callable[[App], Any],
    caplog: pytest.LogCaptureFixture,
) -> None:
    """STR-03, STR-01. Spec 2026-07-28, basic/patterns/cancellation."""
    caplog.set_level(logging.INFO, "mcpkit")
    shop = Shop()
    build(shop)
    client = Client(serve(shop.app))
    asking = asyncio.create_task(client.ask(call("x", {}, TOKEN)))
    await shop.waits.wait()
    client.gone.set()
    await asking
    assert shop.steps == ["CancelledError", "finally"]
    assert of_mcpkit(caplog) == ["INFO: tools/call was cancelled"]
    assert len(shop.app.running) == 0
    assert not client.has_ended
    assert client.body.count(b"data:") == (build is streaming)


@every_way
@pytest.mark.parametrize("build", ASYNC.values(), ids=ASYNC.keys())
async def test_what_a_handler_makes_of_being_cancelled_matters_to_it_alone(
    build: Callable[[Shop], None], serve: Callable[[App], Any]
) -> None:
    """What ends by itself is not disturbed by what looks after it."""
    shop = Shop()
    build(shop)
    client = Client(serve(shop.app))
    asking = asyncio.create_task(client.ask(call("x")))
    await shop.waits.wait()
    shop.go.set()
    await asking
    assert shop.steps == ["returned", "finally"]
    assert [told(message) for message in client.messages] == [answer("done")]


@every_way
async def test_nobody_looks_after_a_request_that_was_answered(
    serve: Callable[[App], Any],
) -> None:
    app = App("quick")

    @app.tool
    async def x() -> str:
        await asyncio.sleep(0)
        return "done"

    tasks = asyncio.all_tasks()
    client = await Client(serve(app)).ask(call("x"))
    # As many rounds as it would take.
    for _ in range(20):
        await asyncio.sleep(0)
    assert asyncio.all_tasks() == tasks
    assert [told(message) for message in client.messages] == [answer("done")]


@every_way
async def test_middleware_that_swallows_a_cancellation_answers_nobody(
    serve: Callable[[App], Any], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "mcpkit")
    shop = Shop()
    plain(shop)

    @shop.app.middleware
    async def swallow(_: Context, call_next: Callable[[], Any]) -> Result[Any]:
        with contextlib.suppress(asyncio.CancelledError):
            await call_next()
        return Result.text("whatever")

    client = Client(serve(shop.app))
    asking = asyncio.create_task(client.ask(call("x")))
    await shop.waits.wait()
    client.gone.set()
    await asking
    assert shop.steps == ["CancelledError", "finally"]
    assert of_mcpkit(caplog) == ["INFO: tools/call was cancelled"]
    assert client.body == b""


async def test_nothing_at_all_is_sent_to_a_client_that_has_gone() -> None:
    sent: list[Any] = []
    shop = Shop()
    plain(shop)

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        async def note(event: Any) -> None:
            sent.append(event)
            await send(event)

        await shop.app(scope, receive, note)

    client = Client(app)
    asking = asyncio.create_task(client.ask(call("x")))
    await shop.waits.wait()
    client.gone.set()
    await asking
    assert sent == []


async def test_who_goes_before_a_stream_begins_is_sent_nothing_in_its_place() -> None:
    sent: list[str] = []
    shop = Shop()
    streaming(shop)

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        async def note(event: Any) -> None:
            sent.append(event["type"])
            await send(event)

        await shop.app(scope, receive, note)

    client = Client(app)
    client.reads.clear()
    asking = asyncio.create_task(client.ask(call("x", {}, TOKEN)))
    for _ in range(20):
        await asyncio.sleep(0)
    client.gone.set()
    for _ in range(20):
        await asyncio.sleep(0)
    client.reads.set()
    await asking
    assert sent == ["http.response.start"]


async def test_a_server_may_say_so_that_a_client_has_gone_when_it_is_sent_something(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """ASGI: send raises an OSError then."""
    caplog.set_level(logging.INFO, "mcpkit")
    shop = Shop()

    @shop.app.tool
    async def x(ctx: Context) -> str:
        for number in range(3):
            await ctx.progress(number)
        with shop.waiting():
            await shop.go.wait()
        return "done"

    async def fail(_: Any) -> None:
        raise BrokenPipeError

    async def app(scope: Scope, receive: Receive, _: Send) -> None:
        await shop.app(scope, receive, fail)

    await Client(app).ask(call("x", {}, TOKEN))
    assert shop.steps == ["CancelledError", "finally"]
    assert of_mcpkit(caplog) == ["INFO: tools/call was cancelled"]


# Handlers in threads


@every_way
async def test_a_handler_in_a_thread_learns_that_nobody_waits_for_it(
    serve: Callable[[App], Any],
) -> None:
    """STR-03. What it uses is open until it has ended."""
    shop = Shop()
    loop = asyncio.get_running_loop()
    goes_on = threading.Event()

    @shop.app.tool
    def x(ctx: Context, opened: Annotated[str, Depends(shop.session)]) -> str:
        loop.call_soon_threadsafe(shop.waits.set)
        assert goes_on.wait(PATIENCE)
        while not ctx.cancelled:
            pass
        with contextlib.suppress(asyncio.CancelledError), shop.waiting():
            ctx.wait(ctx.progress(1))
        shop.steps.append(opened)
        return "done"

    client = Client(serve(shop.app))
    asking = asyncio.create_task(client.ask(call("x", {}, TOKEN)))
    await shop.waits.wait()
    client.gone.set()
    # What would close the session has its turn.
    for _ in range(20):
        await asyncio.sleep(0)
    assert shop.steps == []
    goes_on.set()
    await asking
    assert shop.steps == [
        "CancelledError",
        "finally",
        "open",
        "dependency: RequestCancelledError",
        "closed",
    ]
    assert client.body == b""


async def test_what_a_thread_waits_for_is_cancelled() -> None:
    shop = Shop()
    loop = asyncio.get_running_loop()

    @shop.app.tool
    def x(ctx: Context) -> str:
        async def wait() -> None:
            with shop.waiting():
                await shop.go.wait()

        try:
            ctx.wait(wait())
        except asyncio.CancelledError:
            loop.call_soon_threadsafe(shop.steps.append, "cancelled")
            raise
        return "done"

    client = Client(shop.app)
    asking = asyncio.create_task(client.ask(call("x")))
    await shop.waits.wait()
    client.gone.set()
    await asking
    assert sorted(shop.steps) == ["CancelledError", "cancelled", "finally"]


async def test_a_call_that_has_no_thread_yet_is_not_made() -> None:
    shop = Shop(App("waiting", threads=1))
    loop = asyncio.get_running_loop()
    goes_on = threading.Event()

    @shop.app.tool
    def x(name: str) -> str:
        loop.call_soon_threadsafe(shop.waits.set)
        assert goes_on.wait(PATIENCE)
        shop.steps.append(name)
        return name

    first, second = Client(shop.app), Client(shop.app)
    asking = asyncio.create_task(first.ask(call("x", {"name": "first"})))
    await shop.waits.wait()
    second.gone.set()
    await second.ask(call("x", {"name": "second"}))
    goes_on.set()
    await asking
    assert shop.steps == ["first"]
    assert [told(message) for message in first.messages] == [answer("first")]


# Who else cancels


@every_way
@pytest.mark.parametrize("also", [False, True])
@pytest.mark.parametrize("kind", ["asyncio", "anyio"])
async def test_a_host_that_cancels_a_request_gets_its_way(
    serve: Callable[[App], Any],
    kind: str,
    also: bool,  # noqa: FBT001  # a column of the table
) -> None:
    shop = Shop()
    limits: list[Any] = []

    @shop.app.tool
    async def x(_: Annotated[str, Depends(shop.session)]) -> str:
        with shop.waiting():
            await shop.go.wait()
        return "done"

    app = serve(shop.app)

    async def limited(scope: Scope, receive: Receive, send: Send) -> None:
        if kind == "asyncio":
            async with asyncio.timeout(None) as timeout:
                limits.append(lambda: timeout.reschedule(0))
                await app(scope, receive, send)
        else:
            with anyio.fail_after(PATIENCE) as scope_:
                limits.append(lambda: setattr(scope_, "deadline", 0))
                await app(scope, receive, send)

    client = Client(limited)
    asking = asyncio.create_task(client.ask(call("x")))
    await shop.waits.wait()
    if also:
        client.gone.set()
    limits[0]()
    with pytest.raises(TimeoutError):
        await asking
    assert shop.steps[:2] == ["CancelledError", "finally"]
    assert shop.steps[-1] == "closed"


@pytest.mark.parametrize("kind", ["asyncio", "anyio"])
async def test_a_thread_has_what_it_uses_when_its_host_cancels_the_request(
    kind: str,
) -> None:
    shop = Shop()
    loop = asyncio.get_running_loop()
    goes_on = threading.Event()

    @shop.app.tool
    def x(ctx: Context, opened: Annotated[str, Depends(shop.session)]) -> str:
        loop.call_soon_threadsafe(shop.waits.set)
        assert goes_on.wait(PATIENCE)
        shop.steps.append(f"{opened}, {ctx.cancelled}")
        return "done"

    async def ask() -> None:
        await Client(shop.app).ask(call("x"))

    scope = anyio.CancelScope()

    async def ask_in_scope() -> None:
        with scope:
            await ask()

    asking = asyncio.create_task(ask() if kind == "asyncio" else ask_in_scope())
    await shop.waits.wait()
    (asking if kind == "asyncio" else scope).cancel()
    for _ in range(20):
        await asyncio.sleep(0)
    assert shop.steps == []
    goes_on.set()
    await asyncio.wait({asking})
    assert shop.steps[0] == "open, True"
    assert shop.steps[-1] == "closed"


@pytest.mark.parametrize("times", [1, 2])
async def test_a_thread_does_not_keep_a_host_waiting_for_ever(
    times: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ours: a process that is to end does, whatever its threads do."""
    monkeypatch.setattr(threads, "GRACE", 0.001 if times == 1 else PATIENCE)
    shop = Shop()
    loop = asyncio.get_running_loop()
    goes_on = threading.Event()

    @shop.app.tool
    def x() -> str:
        loop.call_soon_threadsafe(shop.waits.set)
        assert goes_on.wait(PATIENCE)
        return "done"

    asking = asyncio.create_task(Client(shop.app).ask(call("x")))
    await shop.waits.wait()
    for _ in range(times):
        asking.cancel()
        await asyncio.sleep(0)
    with pytest.raises(asyncio.CancelledError):
        await asking
    goes_on.set()


# Over real connections


def going_on() -> App:
    """Build an app whose tools go on until they are cancelled, and which notes it."""
    app = App("waiting")
    noted: list[str] = []

    @app.tool
    async def wait(ctx: Context, name: str) -> str:
        noted.append(f"{name} begins")
        try:
            await ctx.progress(1)
            await asyncio.Event().wait()
        finally:
            noted.append(f"{name} ends")
        return name

    @app.tool
    def block(ctx: Context, name: str) -> str:
        noted.append(f"{name} begins")
        try:
            ctx.wait(asyncio.Event().wait())
        finally:
            noted.append(f"{name} ends")
        return name

    @app.tool
    async def note(count: int) -> list[str]:
        while len(noted) < count or (count == NOTES and len(app.running) > 0):
            await asyncio.sleep(0)
        return sorted(noted)

    return app


NOTES: Final = 6


async def note(port: int, count: int) -> Any:
    """Wait until so much is noted, and return it."""
    async with connected(port) as control:
        await control.send(raw(call("note", {"count": count})))
        return json.loads((await control.reply()).body)["result"]["structuredContent"]


async def go_away(port: int) -> None:
    """Close connections: while the body is read, while a tool runs, in a stream."""
    async with connected(port) as part:
        await part.send(head(headers={"content-length": "100"}), b"0123456789")
        part.writer.transport.abort()
    async with AsyncExitStack() as stack:
        callers = [await stack.enter_async_context(connected(port)) for _ in "123"]
        plain, blocked, stream = callers
        await plain.send(raw(call("wait", {"name": "plain"})))
        await blocked.send(raw(call("block", {"name": "blocked"})))
        await stream.send(raw(call("wait", {"name": "stream"}, TOKEN)))
        await stream.reader.readuntil(b"\n\n")
        await note(port, len(callers))
        for caller in callers:
            caller.writer.transport.abort()


@pytest.mark.parametrize("http", HTTPS)
@every_way
def test_clients_that_go_away_leave_no_traceback(
    serve: Callable[[App], Any], http: Http, caplog: pytest.LogCaptureFixture
) -> None:
    """STR-01."""
    caplog.set_level(logging.INFO, "mcpkit")

    async def run(port: int) -> Any:
        await go_away(port)
        return await note(port, NOTES)

    with served(serve(going_on()), http) as port:
        noted = asyncio.run(run(port))
    names = ["blocked", "plain", "stream"]
    assert noted == [f"{name} {does}" for name in names for does in ("begins", "ends")]
    assert of_mcpkit(caplog) == ["INFO: tools/call was cancelled"] * 3


# Legacy requests


def cancelled(request_id: Any, **params: Any) -> Json:
    """Build the notification that cancels a request."""
    return {
        "jsonrpc": "2.0",
        "method": "notifications/cancelled",
        "params": {"requestId": request_id, **params},
    }


def legacy_call(name: str, request_id: Any = 1, **params: Any) -> Json:
    """Build a legacy call of a tool."""
    return legacy("tools/call", {"name": name, **params}, request_id=request_id)


@dataclass(frozen=True)
class Caller:
    """Who sends a legacy message: the headers and the address that tell."""

    headers: dict[str, str]
    address: str = "127.0.0.1"

    async def send(self, app: App, message: Json) -> Client:
        """Send a message."""
        headers = {"mcp-protocol-version": LEGACY, **self.headers}
        return await Client(app).ask(message, headers, address=self.address)


async def callers(app: App, kind: str) -> list[Caller]:
    """Return two callers that are told apart by what they are."""
    if kind == "session":
        return [Caller({"mcp-session-id": await open_session(app)}) for _ in "12"]
    if kind == "principal":
        return [Caller({"x-user": user}) for user in ("ada", "bob")]
    return [Caller({}, "10.0.0.1"), Caller({}, "10.0.0.2")]


def who(request: Any) -> str | None:
    """Return who calls, as a proxy in front says."""
    user: str | None = request.headers.get("x-user")
    return user


@every_way
@pytest.mark.parametrize("build", ASYNC.values(), ids=ASYNC.keys())
async def test_a_legacy_client_cancels_by_saying_so(
    build: Callable[[Shop], None],
    serve: Callable[[App], Any],
    caplog: pytest.LogCaptureFixture,
) -> None:
    """STR-03. Spec 2025-11-25, basic/utilities/cancellation."""
    caplog.set_level(logging.INFO, "mcpkit")
    shop = Shop()
    build(shop)
    app = serve(shop.app)
    client = Client(app)
    message = legacy_call("x", _meta=TOKEN)
    headers = {"mcp-protocol-version": LEGACY}
    asking = asyncio.create_task(client.ask(message, headers))
    await shop.waits.wait()
    said = await Client(app).ask(cancelled(1, reason="Changed my mind"), headers)
    assert (said.status, said.body) == (202, b"")
    await asking
    assert shop.steps == ["CancelledError", "finally"]
    assert of_mcpkit(caplog) == ["INFO: tools/call was cancelled"]
    assert client.has_ended
    if build in (streaming, swallowing):
        assert client.messages == [progress(1)]
    else:
        assert (client.status, client.body) == (202, b"")


async def test_a_legacy_client_that_goes_away_cancels_nothing() -> None:
    """Spec 2025-11-25, basic/transports: Sending Messages to the Server."""
    shop = Shop()
    plain(shop)
    client = Client(shop.app)
    headers = {"mcp-protocol-version": LEGACY}
    asking = asyncio.create_task(client.ask(legacy_call("x"), headers))
    await shop.waits.wait()
    client.gone.set()
    for _ in range(20):
        await asyncio.sleep(0)
    assert shop.steps == []
    shop.go.set()
    await asking
    assert shop.steps == ["returned", "finally"]


async def test_a_request_goes_on_although_no_other_worker_can_cancel_it(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Ours: the backend has failed."""

    class Failing(MemoryBackend):
        def subscribe(self, receive: Callable[[str], None]) -> Callable[[], None]:
            raise OSError(receive)

    shop = Shop(App("waiting", backend=Failing()))
    plain(shop)
    asking = asyncio.create_task(Caller({}).send(shop.app, legacy_call("x")))
    await shop.waits.wait()
    shop.go.set()
    assert told((await asking).messages[0]) == answer("done")
    assert shop.steps == ["returned", "finally"]
    assert of_mcpkit(caplog) == ["ERROR: tools/call: no other worker can cancel it"]


@pytest.mark.parametrize("kind", ["session", "principal", "address"])
async def test_a_request_is_cancelled_by_its_caller_alone(kind: str) -> None:
    """STR-03. Ours: another caller may have a request of the same id."""
    shop = Shop(App("waiting", principal=who))
    plain(shop)
    one, other = await callers(shop.app, kind)
    asking = asyncio.create_task(one.send(shop.app, legacy_call("x")))
    await shop.waits.wait()
    assert (await other.send(shop.app, cancelled(1))).status == 202
    assert (await one.send(shop.app, cancelled("1"))).status == 202
    assert (await one.send(shop.app, cancelled(2))).status == 202
    for _ in range(20):
        await asyncio.sleep(0)
    assert shop.steps == []
    assert (await one.send(shop.app, cancelled(1))).status == 202
    assert (await asking).status == 202
    assert shop.steps == ["CancelledError", "finally"]


async def test_a_caller_that_uses_an_id_twice_cancels_the_later_request() -> None:
    shop = Shop()
    plain(shop)

    @shop.app.tool
    async def first() -> str:
        shop.waits.set()
        await goes.wait()
        return "done"

    goes = asyncio.Event()
    [caller, _] = await callers(shop.app, "session")
    ending = asyncio.create_task(caller.send(shop.app, legacy_call("first")))
    await shop.waits.wait()
    shop.waits.clear()
    asking = asyncio.create_task(caller.send(shop.app, legacy_call("x")))
    await shop.waits.wait()
    goes.set()
    assert told((await ending).messages[0]) == answer("done")
    await caller.send(shop.app, cancelled(1))
    assert (await asking).status == 202
    assert shop.steps == ["CancelledError", "finally"]


@pytest.mark.parametrize("request_id", [0, "", "1", -1, 2**63, "é" * 128])
async def test_an_id_is_what_it_is(request_id: Any) -> None:
    shop = Shop()
    plain(shop)
    [caller, _] = await callers(shop.app, "session")
    asking = asyncio.create_task(caller.send(shop.app, legacy_call("x", request_id)))
    await shop.waits.wait()
    await caller.send(shop.app, cancelled(request_id))
    assert (await asking).status == 202


@pytest.mark.parametrize(
    "params",
    [
        [1],
        "1",
        None,
        {"requestId": 1.0},
        {"requestId": True},
        {"requestId": [1]},
        {"requestId": "é" * 129},
    ],
)
async def test_a_malformed_cancellation_is_answered_and_cancels_nothing(
    params: Any,
) -> None:
    """Ours; spec 2025-11-25: Error Handling."""
    shop = Shop()
    plain(shop)
    [caller, _] = await callers(shop.app, "session")
    asking = asyncio.create_task(caller.send(shop.app, legacy_call("x")))
    await shop.waits.wait()
    message = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}
    said = await caller.send(shop.app, message)
    assert said.messages[0]["id"] is None
    assert said.messages[0]["error"]["code"] == -32602
    shop.go.set()
    assert told((await asking).messages[0]) == answer("done")


@pytest.mark.parametrize("params", [{}, {"requestId": None}, {"reason": "x"}])
async def test_a_cancellation_of_nothing_is_taken(params: Json) -> None:
    message = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}
    said = await Caller({}).send(Shop().app, message)
    assert (said.status, said.body) == (202, b"")


async def test_what_has_ended_is_not_cancelled() -> None:
    shop = Shop()
    plain(shop)
    shop.go.set()
    caller = Caller({})
    client = await caller.send(shop.app, legacy_call("x"))
    assert (await caller.send(shop.app, cancelled(1))).status == 202
    assert told(client.messages[0]) == answer("done")


async def test_what_was_cancelled_may_be_cancelled_again() -> None:
    shop = Shop()
    swallowing(shop)
    caller = Caller({})
    asking = asyncio.create_task(caller.send(shop.app, legacy_call("x")))
    await shop.waits.wait()
    for _ in range(3):
        assert (await caller.send(shop.app, cancelled(1))).status == 202
    assert (await asking).status == 202
    assert shop.steps == ["CancelledError", "finally"]


async def test_too_many_requests_that_were_cancelled_and_do_not_end() -> None:
    """Ours: 64 of one caller."""
    shop = Shop()
    started = 0

    @shop.app.tool
    async def stubborn() -> str:
        nonlocal started
        started += 1
        shop.waits.set()
        while not shop.go.is_set():
            with contextlib.suppress(asyncio.CancelledError):
                await shop.go.wait()
        return "done"

    one, other = await callers(shop.app, "session")
    message = [legacy_call("stubborn", number) for number in range(MAX_CANCELLED + 1)]
    asking = [asyncio.create_task(one.send(shop.app, each)) for each in message]
    others = asyncio.create_task(other.send(shop.app, message[0]))
    while started < len(asking) + 1:
        await asyncio.sleep(0)
    for number in range(MAX_CANCELLED):
        assert (await one.send(shop.app, cancelled(number))).status == 202
    refused = await one.send(shop.app, cancelled(MAX_CANCELLED))
    error = {"code": -32000, "message": "Too many cancelled requests still run"}
    assert refused.messages == [{"jsonrpc": "2.0", "id": None, "error": error}]
    # What was cancelled already, and those of others, are not counted.
    assert (await one.send(shop.app, cancelled(0))).status == 202
    assert (await other.send(shop.app, cancelled(0))).status == 202
    shop.go.set()
    statuses = [client.status for client in await asyncio.gather(*asking, others)]
    assert statuses == [*[202] * MAX_CANCELLED, 200, 202]
    again = asyncio.create_task(one.send(shop.app, legacy_call("stubborn", 0)))
    assert (await one.send(shop.app, cancelled(MAX_CANCELLED))).status == 202
    assert told((await again).messages[0]) == answer("done", 0)


async def test_the_handshake_is_not_cancelled() -> None:
    """Spec 2025-11-25, basic/utilities/cancellation: it MUST NOT be."""
    app = App("waiting")
    asking = asyncio.create_task(post(app, initialize()))
    said = await post(app, cancelled(1), JSON_HEADERS)
    assert said.status_code == 202
    assert (await asking).json()["result"]["protocolVersion"] == LEGACY


async def test_a_batch_has_no_answer_to_what_was_cancelled_of_it() -> None:
    """Spec 2025-03-26, basic/utilities/cancellation."""
    shop = Shop()
    plain(shop)
    headers = {**JSON_HEADERS, "mcp-protocol-version": "2025-03-26"}
    batch = [legacy_call("x"), legacy("ping", request_id=2)]
    asking = asyncio.create_task(post(shop.app, batch, headers))
    await shop.waits.wait()
    await post(shop.app, cancelled(1), headers)
    assert (await asking).json() == [{"jsonrpc": "2.0", "id": 2, "result": {}}]


async def test_a_tool_that_cancels_itself_harms_nobody_who_comes_after() -> None:
    shop = Shop()
    headers = {**JSON_HEADERS, "mcp-protocol-version": LEGACY}

    @shop.app.tool
    async def x(waits: bool) -> str:  # noqa: FBT001  # what clients send
        await asyncio.sleep(0)
        await post(shop.app, cancelled(1), headers)
        with shop.waiting():
            if waits:
                await shop.go.wait()
        return "done"

    for waits in (True, False):
        message = legacy_call("x", arguments={"waits": waits})
        assert (await post(shop.app, message, headers)).status_code == 202
        await asyncio.sleep(0)
    assert shop.steps == ["CancelledError", "finally", "returned", "finally"]


# Nothing is left of them


CALLS: Final = 10_000
AT_ONCE: Final = 50


def timers(loop: Any) -> int:
    """Return how many timers of a loop are still to come."""
    return sum(not timer.cancelled() for timer in loop._scheduled)  # noqa: SLF001


async def test_nothing_is_left_of_ten_thousand_calls_that_were_cancelled() -> None:
    """SES-04."""
    app = App("waiting", threads=AT_ONCE)
    loop = asyncio.get_running_loop()
    waiting: dict[Any, Client] = {}

    def leave(number: int) -> None:
        waiting.pop(number).gone.set()

    @app.tool
    async def x(ctx: Context, number: int) -> str:
        await ctx.progress(1)
        leave(number)
        await asyncio.Event().wait()
        raise NotImplementedError

    @app.tool
    def y(ctx: Context, number: int) -> str:
        loop.call_soon_threadsafe(leave, number)
        ctx.wait(asyncio.Event().wait())
        raise NotImplementedError

    async def some(numbers: range) -> None:
        for number in numbers:
            waiting[number] = client = Client(app)
            name = "xy"[number % 2]
            await client.ask(call(name, {"number": number}, TOKEN, number))

    async def many(count: int) -> None:
        await asyncio.gather(
            *(some(range(start, count, AT_ONCE)) for start in range(AT_ONCE))
        )
        await asyncio.sleep(0)
        gc.collect()

    await many(AT_ONCE * 4)
    tasks, before = len(asyncio.all_tasks()), timers(loop)
    tracemalloc.start(1)
    try:
        await many(AT_ONCE * 4)
        held = tracemalloc.get_traced_memory()[0]
        await many(CALLS)
        grown = tracemalloc.get_traced_memory()[0] - held
    finally:
        tracemalloc.stop()
    assert len(asyncio.all_tasks()) == tasks
    assert timers(loop) == before
    assert len(app.running) == 0
    assert waiting == {}
    assert grown < 512 * 1024
