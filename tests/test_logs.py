"""What the standard library logs while a request is served goes to its client alone."""

import asyncio
import contextvars
import gc
import json
import logging
import logging.config
import threading
import tracemalloc
import weakref
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final, cast

import httpx
import pytest

from mcpkit import App, Context, LogHandler, ProtocolError, Result, dispatch
from mcpkit.logs import MAX_WAITING
from mcpkit.protocol.era import LOG_LEVEL, LOG_LEVELS
from tests.http.client import Json, headers_of, legacy, modern, open_session, post
from tests.http.serving import served
from tests.http.streaming import (
    PATIENCE,
    acknowledged,
    changed,
    completed,
    idle,
    in_session,
    listen,
    stream,
)

NAME: Final = "shelves"
log: Final = logging.getLogger(NAME)


@pytest.fixture
def handler() -> Iterator[LogHandler]:
    # An example may have one of its own by now.
    others = LogHandler.in_use
    handler = LogHandler()
    log.addHandler(handler)
    log.setLevel(logging.DEBUG)
    yield handler
    log.removeHandler(handler)
    log.setLevel(logging.NOTSET)
    handler.close()
    assert LogHandler.in_use == others


@pytest.fixture
def root(handler: LogHandler) -> Iterator[LogHandler]:
    """The same handler, of everything that is logged."""
    logger = logging.getLogger()
    level = logger.level
    log.removeHandler(handler)
    logger.addHandler(handler)
    logger.setLevel(logging.DEBUG)
    yield handler
    logger.removeHandler(handler)
    logger.setLevel(level)


@contextmanager
def alone() -> Iterator[None]:
    """Have nobody else get what is logged: pytest keeps it all."""
    log.propagate = False
    try:
        yield
    finally:
        log.propagate = True


def of(function: Any, **options: Any) -> App:
    """Make an app of one function, as a tool, a resource and a prompt."""
    app = App("tests", version="1.0.0", **options)
    app.add_tool(function, name="run")
    app.add_resource("run://it", function)
    app.add_prompt(function, name="run")
    return app


TARGETS: Final[dict[str, tuple[str, dict[str, Any]]]] = {
    "a tool": ("tools/call", {"name": "run"}),
    "a resource": ("resources/read", {"uri": "run://it"}),
    "a prompt": ("prompts/get", {"name": "run"}),
}
CALL: Final = TARGETS["a tool"]


def asking(
    level: str | None = "debug",
    target: tuple[str, dict[str, Any]] = CALL,
    request_id: int = 1,
) -> Json:
    """Build a modern request that asks for log messages of a level."""
    message = modern(*target, request_id=request_id)
    if level is not None:
        message["params"]["_meta"][LOG_LEVEL] = level
    return message


def note(data: Any, level: str = "info", logger: str = NAME) -> Json:
    """Return the message that something was logged."""
    params = {"level": level, "logger": logger, "data": data}
    return {"jsonrpc": "2.0", "method": "notifications/message", "params": params}


async def received(
    app: Any, message: Json, headers: Mapping[str, str] | None = None
) -> list[Any]:
    """Return the messages that come before a response, which is not an error."""
    async with stream(app, message, headers) as opened:
        if opened.headers["content-type"] == "application/json":
            assert "result" in await opened.body()
            return []
        messages = [each for each in await opened.rest() if each is not None]
    assert "result" in messages[-1]
    return messages[:-1]


# What is sent


def says() -> str:
    log.info("one")
    log.info("%s and %d", "two", 3)
    return "done"


async def says_async() -> str:
    return says()


async def says_between() -> str:
    log.info("one")
    await asyncio.sleep(0)
    log.info("%s and %d", "two", 3)
    return "done"


async def says_in_a_child() -> str:
    return await asyncio.create_task(says_async())


async def says_in_a_thread() -> str:
    return await asyncio.to_thread(says)


async def says_in_a_thread_of_its_own() -> str:
    context = contextvars.copy_context()
    thread = threading.Thread(target=context.run, args=[says])
    thread.start()
    await asyncio.to_thread(thread.join)
    return "done"


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(
    "function",
    [
        says,
        says_async,
        says_between,
        says_in_a_child,
        says_in_a_thread,
        says_in_a_thread_of_its_own,
    ],
)
@pytest.mark.usefixtures("handler")
async def test_what_a_handler_logs_comes_in_order_and_before_the_response(
    function: Callable[[], Any], target: str
) -> None:
    """Spec 2026-07-28, server/utilities/logging."""
    app = of(function)
    sent = await received(app, asking(target=TARGETS[target]))
    assert sent == [note("one"), note("two and 3")]
    await idle(app)


async def says_at_each_level() -> str:
    for level in (5, 10, 20, 25, 30, 40, 50, 60):
        log.log(level, "%d", level)
    return "done"


AT_EACH: Final = [
    note("10", "debug"),
    note("20", "info"),
    note("25", "info"),
    note("30", "warning"),
    note("40", "error"),
    note("50", "critical"),
    note("60", "critical"),
]


def at_least(level: str) -> list[Json]:
    least = LOG_LEVELS.index(level)
    return [
        each for each in AT_EACH if LOG_LEVELS.index(each["params"]["level"]) >= least
    ]


@pytest.mark.parametrize("level", LOG_LEVELS)
@pytest.mark.usefixtures("handler")
async def test_a_modern_client_is_sent_the_levels_that_it_asks_for(level: str) -> None:
    """STR-10. Spec 2026-07-28, server/utilities/logging: Requesting Log Messages."""
    app = of(says_at_each_level)
    assert await received(app, asking(level)) == at_least(level)


@pytest.mark.usefixtures("handler")
async def test_a_modern_client_that_asks_for_nothing_is_sent_json() -> None:
    """STR-10. Spec 2026-07-28, server/utilities/logging."""
    async with stream(of(says_at_each_level), asking(None)) as opened:
        assert opened.headers["content-type"] == "application/json"


@pytest.mark.usefixtures("handler")
async def test_what_is_logged_is_sent_while_the_handler_goes_on() -> None:
    heard = asyncio.Semaphore(0)

    async def run() -> str:
        for word in ("one", "two", "three"):
            log.info(word)
            await heard.acquire()
        return "done"

    async with stream(of(run), asking()) as opened:
        for word in ("one", "two", "three"):
            assert await opened.message() == note(word)
            heard.release()
        assert [each["id"] for each in await opened.rest()] == [1]


@pytest.mark.usefixtures("handler")
async def test_a_client_that_takes_json_alone_is_sent_nothing() -> None:
    """STR-10."""
    headers = {"accept": "application/json"}
    async with stream(of(says), asking(), headers) as opened:
        assert opened.headers["content-type"] == "application/json"
        assert (await opened.body())["result"]["content"][0]["text"] == "done"


@pytest.mark.usefixtures("handler")
async def test_where_the_app_does_not_log_nothing_is_sent() -> None:
    assert await received(of(says, logging=False), asking()) == []


@pytest.mark.usefixtures("handler")
async def test_a_transport_without_a_way_to_the_client_is_served() -> None:
    replied = await dispatch(asking(), of(says))
    assert b"done" in replied.body


async def set_level(app: App, token: str, level: str) -> None:
    message = legacy("logging/setLevel", {"level": level})
    replied = await post(app, message, {**headers_of(message), **in_session(token)})
    assert replied.json()["result"] == {}


@pytest.mark.parametrize("level", LOG_LEVELS)
@pytest.mark.usefixtures("handler")
async def test_a_legacy_session_is_sent_the_level_that_it_has_set(level: str) -> None:
    """STR-10. Spec 2025-11-25, server/utilities/logging: Setting Log Level."""
    app = of(says_at_each_level)
    token, other = await open_session(app), await open_session(app)
    call_ = legacy(*CALL)
    assert await received(app, call_, in_session(token)) == at_least("info")
    await set_level(app, token, level)
    assert await received(app, call_, in_session(token)) == at_least(level)
    assert await received(app, call_, in_session(other)) == at_least("info")
    assert await received(app, call_) == at_least("info")


@pytest.mark.usefixtures("handler")
async def test_the_level_of_a_session_is_that_in_all_workers() -> None:
    """Spec 2025-11-25, server/utilities/logging: Setting Log Level."""
    first = of(says_at_each_level, secret_key="k" * 32)
    second = of(says_at_each_level, secret_key="k" * 32, backend=first.backend)
    token = await open_session(first)
    await set_level(second, token, "error")
    for worker in (first, second):
        sent = await received(worker, legacy(*CALL), in_session(token))
        assert sent == at_least("error")


async def says_through_its_context(ctx: Context) -> str:
    for level in LOG_LEVELS:
        await ctx.log(level, f"at {level}", logger=NAME)
    return "done"


def through_context(least: str) -> list[Json]:
    levels = LOG_LEVELS[LOG_LEVELS.index(least) :]
    return [note(f"at {level}", level) for level in levels]


@pytest.mark.parametrize("level", LOG_LEVELS)
async def test_the_level_of_a_session_holds_for_what_a_context_logs(level: str) -> None:
    """STR-10. Spec 2025-11-25, server/utilities/logging: Setting Log Level."""
    first = of(says_through_its_context, secret_key="k" * 32)
    second = of(says_through_its_context, secret_key="k" * 32, backend=first.backend)
    token, other = await open_session(first), await open_session(second)
    usual = through_context("info")
    assert await received(first, legacy(*CALL), in_session(token)) == usual
    await set_level(second, token, level)
    for worker in (first, second):
        sent = await received(worker, legacy(*CALL), in_session(token))
        assert sent == through_context(level)
        assert await received(worker, legacy(*CALL), in_session(other)) == usual


# What is not


async def test_nothing_is_sent_between_requests(handler: LogHandler) -> None:
    log.info("nobody")
    app = of(says)
    assert len(await received(app, asking())) == 2
    log.info("nobody")
    assert len(await received(app, asking())) == 2
    assert handler in log.handlers


@pytest.mark.usefixtures("handler")
async def test_requests_at_the_same_time_are_sent_their_own_alone() -> None:
    """CTX-01, CTX-03."""
    app = App("tests")
    together = asyncio.Barrier(100)

    @app.tool
    async def run(who: str) -> str:
        log.info("%s begins", who)
        await together.wait()
        await asyncio.create_task(child(who))
        await asyncio.to_thread(log.info, "%s in a thread", who)
        return who

    async def child(who: str) -> None:
        await asyncio.sleep(0)
        log.info("%s in a task", who)

    async def one(number: int) -> None:
        who = f"caller {number}"
        target = ("tools/call", {"name": "run", "arguments": {"who": who}})
        level = "info" if number % 2 else None
        sent = await received(app, asking(level, target, number))
        expected = [f"{who} begins", f"{who} in a task", f"{who} in a thread"]
        assert sent == [note(each) for each in expected if level]

    await asyncio.gather(*map(one, range(100)))
    await idle(app)


@pytest.mark.usefixtures("handler")
async def test_what_outlives_its_request_is_sent_to_nobody() -> None:
    """CTX-04."""
    go, left = asyncio.Event(), set()

    async def later() -> None:
        log.info("in time")
        await go.wait()
        log.info("too late")
        await asyncio.to_thread(log.info, "too late")

    async def run() -> str:
        left.add(asyncio.create_task(later()))
        await asyncio.sleep(0)
        return "done"

    app = of(run)
    assert await received(app, asking()) == [note("in time")]
    async with stream(app, asking()) as opened:
        assert await opened.message() == note("in time")
        go.set()
        await asyncio.gather(*left)
        assert [each["id"] for each in await opened.rest()] == [1]
    await idle(app)


@pytest.mark.usefixtures("handler")
async def test_what_outlives_its_request_does_not_hold_it() -> None:
    left: set[asyncio.Task[None]] = set()
    stop = asyncio.Event()

    async def later() -> None:
        await stop.wait()

    async def run() -> str:
        log.info("one")
        left.add(asyncio.create_task(later()))
        return "done"

    class Caller(str):
        """Who calls."""

    app, channel = of(run), cast("Any", Noisy())
    caller = Caller("ada")
    held = weakref.ref(caller)
    await dispatch(asking(), app, principal=caller, channel=channel)
    assert channel.sent == [note("one")]
    del caller
    gc.collect()
    assert held() is None
    stop.set()
    await asyncio.gather(*left)


@pytest.mark.parametrize("level", ["debug", None])
@pytest.mark.usefixtures("handler")
async def test_a_request_within_another_is_sent_its_own(level: str | None) -> None:
    inner = of(says)

    async def run() -> str:
        log.info("before")
        assert b"done" in (await dispatch(asking(level), inner)).body
        log.info("after")
        return "done"

    assert await received(of(run), asking()) == [note("before"), note("after")]


@pytest.mark.usefixtures("root")
async def test_mcpkits_own_records_are_not_sent() -> None:
    async def run() -> str:
        logging.getLogger("mcpkit").error("ours")
        logging.getLogger("mcpkit.access").error("ours")
        logging.getLogger("mcpkit_shop").error("theirs")
        return "done"

    sent = await received(of(run, access_log=True), asking())
    assert sent == [note("theirs", "error", "mcpkit_shop")]


async def fails() -> str:
    try:
        int("a secret")
    except ValueError:
        log.exception("it failed")
        log.info("here", stack_info=True)
    return "done"


@pytest.mark.usefixtures("handler")
async def test_tracebacks_are_not_sent() -> None:
    sent = await received(of(fails), asking())
    assert sent == [note("it failed", "error"), note("here")]


async def test_a_formatter_says_what_is_sent(handler: LogHandler) -> None:
    handler.setFormatter(logging.Formatter("%(levelname)s %(message)s"))
    first, second = await received(of(fails), asking())
    assert first["params"]["data"].startswith("ERROR it failed\nTraceback ")
    assert second["params"]["data"].startswith("INFO here\nStack ")


async def test_a_handler_has_a_level_and_filters(handler: LogHandler) -> None:
    handler.setLevel("WARNING")
    handler.addFilter(lambda record: record.levelno != logging.ERROR)
    sent = await received(of(says_at_each_level), asking())
    assert sent == [each for each in at_least("warning") if each != note("40", "error")]


async def test_a_record_that_has_no_text_is_left_out(
    handler: LogHandler, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def run() -> str:
        log.info("%d", "no number")
        log.info("a number")
        return "done"

    refused: list[logging.LogRecord] = []
    monkeypatch.setattr(handler, "handleError", refused.append)
    with alone():
        assert await received(of(run), asking()) == [note("a number")]
    assert [record.msg for record in refused] == ["%d"]


@pytest.mark.usefixtures("handler")
async def test_what_is_no_unicode_is_sent_as_far_as_it_is() -> None:
    async def run() -> str:
        log.info("a \ud800 b\u2028c\nd")
        return "done"

    (sent,) = await received(of(run), asking())
    assert sent["params"]["data"].endswith("b\u2028c\nd")


@pytest.mark.usefixtures("handler")
async def test_an_answer_with_a_status_of_its_own_keeps_it() -> None:
    app = App("tests")

    @app.tool(scopes=["orders:write"])
    async def run() -> None:
        raise NotImplementedError

    @app.middleware
    async def noisy(_ctx: Context, call_next: Any) -> Result:
        log.error("noise")
        result: Result = await call_next()
        return result

    async with stream(app, asking()) as opened:
        assert (opened.status, opened.headers["content-type"]) == (
            403,
            "application/json",
        )
        assert "insufficient_scope" in opened.headers["www-authenticate"]
    assert await open_session(app)


@pytest.mark.usefixtures("handler")
async def test_what_was_logged_before_an_error_comes_before_it() -> None:
    async def run() -> str:
        log.warning("it goes wrong")
        raise ProtocolError(-32000, "It went wrong")

    async with stream(of(run), asking()) as opened:
        assert await opened.rest() == [
            note("it goes wrong", "warning"),
            {
                "jsonrpc": "2.0",
                "id": 1,
                "error": {"code": -32000, "message": "It went wrong"},
            },
        ]


@pytest.mark.usefixtures("handler")
async def test_who_cancels_hears_nothing_more() -> None:
    ended = asyncio.Event()

    async def run() -> str:
        log.info("begun")
        try:
            await asyncio.Event().wait()
        finally:
            log.info("ended")
            ended.set()
        return "done"

    app = of(run)
    async with stream(app, asking()) as opened:
        assert await opened.message() == note("begun")
    assert ended.is_set()
    assert await opened.rest() == []
    await idle(app)


@pytest.mark.usefixtures("handler")
async def test_what_is_logged_around_a_stream_of_changes_is_sent_as_it_comes() -> None:
    app = of(says)
    more = asyncio.Event()

    @app.middleware
    async def noisy(_ctx: Context, call_next: Any) -> Result:
        async def later() -> None:
            await more.wait()
            log.info("later")

        task = asyncio.create_task(later())
        result: Result = await call_next()
        await task
        return result

    message = listen(toolsListChanged=True)
    message["params"]["_meta"][LOG_LEVEL] = "info"
    async with stream(app, message) as opened:
        assert await opened.message() == acknowledged(toolsListChanged=True)
        more.set()
        assert await opened.message() == note("later")
        app.remove_tool("run")
        assert await opened.message() == changed("tools", 1)
        app.close()
        assert await opened.rest() == [completed(name="tests")]
    await idle(app)


# Bounds

FLOOD: Final = 100_000


@pytest.mark.parametrize("in_a_thread", [True, False])
@pytest.mark.usefixtures("handler")
async def test_of_a_flood_the_first_are_sent_and_the_rest_costs_no_memory(
    *, in_a_thread: bool
) -> None:
    channel: Any = Slow()
    over = asyncio.Event()
    loop = asyncio.get_running_loop()

    def run() -> str:
        with alone():
            for number in range(FLOOD):
                log.info("%d", number)
        loop.call_soon_threadsafe(over.set)
        return "done"

    async def run_async() -> str:
        return run()

    app = of(run if in_a_thread else run_async)
    tracemalloc.start()
    try:
        task = asyncio.create_task(dispatch(asking(), app, channel=channel))
        await over.wait()
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 2 * 2**20
    channel.reads.set()
    assert b"done" in (await task).body
    first = [note(str(number)) for number in range(MAX_WAITING)]
    assert channel.sent[:MAX_WAITING] == first
    # Once one of them was taken to be sent, there was room for another.
    assert len(channel.sent) in (MAX_WAITING, MAX_WAITING + 1)


@pytest.mark.usefixtures("handler")
async def test_a_client_that_does_not_read_does_not_hold_up_the_handler() -> None:
    stopped, logged = asyncio.Event(), asyncio.Event()

    async def run() -> str:
        log.info("0")
        await stopped.wait()
        for number in range(1, 3 * MAX_WAITING):
            log.info("%d", number)
            await asyncio.sleep(0)
        logged.set()
        return "done"

    async with stream(of(run), asking()) as opened:
        assert await opened.message() == note("0")
        opened.reads.clear()
        stopped.set()
        await logged.wait()
        opened.reads.set()
        messages = await opened.rest()
    sent = [int(each["params"]["data"]) for each in messages[:-1]]
    # One more was taken to be sent.
    assert len(sent) in (MAX_WAITING, MAX_WAITING + 1)
    assert sent == list(range(1, len(sent) + 1))
    assert messages[-1]["result"]["content"][0]["text"] == "done"


@pytest.mark.usefixtures("root")
async def test_what_a_server_logs_of_a_response_is_not_sent_in_it() -> None:
    app = of(says_between)
    with served(app, "h11") as port:
        message = asking()
        async with httpx.AsyncClient() as client:
            replied = await client.post(
                f"http://127.0.0.1:{port}/mcp",
                json=message,
                headers=headers_of(message),
            )
    events = [line for line in replied.text.splitlines() if line.startswith("data:")]
    sent = [json.loads(line.removeprefix("data:")) for line in events]
    assert sent[:-1] == [note("one"), note("two and 3")]


class Slow:
    """A channel whose client reads when it is told to."""

    away_since = None

    def __init__(self, *, admits_stream: bool = True) -> None:
        self.admits_stream = admits_stream
        self.sent: list[Any] = []
        self.waits = asyncio.Event()
        self.reads = asyncio.Event()

    async def send(self, _context: Context, message: Mapping[str, Any]) -> None:
        """Note a message, once it is read."""
        self.waits.set()
        await self.reads.wait()
        self.sent.append(message)

    def watch(self, _context: Context, _cancel: Callable[[], None] | None) -> None:
        """Do nothing."""

    def unwatch(self) -> None:
        """Do nothing."""


async def says_and_waits() -> str:
    says()
    await asyncio.Event().wait()
    return "done"


@pytest.mark.parametrize("function", [says_async, says_between, says_and_waits])
@pytest.mark.usefixtures("handler")
async def test_a_request_that_is_cancelled_leaves_nothing_that_sends(
    function: Any,
) -> None:
    channel: Any = Slow()
    app = of(function)
    task = asyncio.create_task(dispatch(asking(), app, channel=channel))
    async with asyncio.timeout(PATIENCE):
        await channel.waits.wait()
        task.cancel()
        await asyncio.wait([task])
    assert task.cancelled()
    await idle(app)


@pytest.mark.usefixtures("handler")
async def test_a_channel_that_takes_no_messages_is_given_none() -> None:
    channel: Any = Slow(admits_stream=False)
    async with asyncio.timeout(PATIENCE):
        replied = await dispatch(asking(), of(says), channel=channel)
    assert b"done" in replied.body


class Noisy:
    """A channel that logs whatever it does, and may fail."""

    admits_stream = True
    away_since = None

    def __init__(self, error: Exception | None = None) -> None:
        self.sent: list[Any] = []
        self._error = error

    async def send(self, _context: Context, message: Mapping[str, Any]) -> None:
        """Note a message."""
        log.debug("before it is sent")
        await asyncio.sleep(0)
        await asyncio.to_thread(log.debug, "while it is sent")
        if self._error is not None:
            raise self._error
        self.sent.append(message)

    async def close(self, _context: Context) -> None:
        """Do nothing."""

    def watch(self, _context: Context, _cancel: Callable[[], None] | None) -> None:
        """Do nothing."""
        log.debug("it waits")

    def unwatch(self) -> None:
        """Do nothing."""
        log.debug("it waits no more")


@pytest.mark.parametrize("function", [says, says_async, says_between])
@pytest.mark.usefixtures("root")
async def test_what_is_logged_while_sending_is_not_sent(function: Any) -> None:
    channel: Any = Noisy()
    asyncio.get_running_loop().set_debug(True)
    try:
        replied = await dispatch(asking(), of(function), channel=channel)
    finally:
        asyncio.get_running_loop().set_debug(False)
    assert b"done" in replied.body
    said = [each for each in channel.sent if each["params"]["level"] == "info"]
    assert said == [note("one"), note("two and 3")]
    # That it waits is said in the request itself.
    assert {each["params"]["data"] for each in channel.sent} <= {
        "one",
        "two and 3",
        "it waits",
        "it waits no more",
    }


@pytest.mark.usefixtures("handler")
async def test_what_can_not_be_sent_fails_no_request(
    caplog: pytest.LogCaptureFixture,
) -> None:
    channel: Any = Noisy(OSError("it is gone"))
    for function in (says, says_async, says_between):
        replied = await dispatch(asking(), of(function), channel=channel)
        assert b"done" in replied.body
    own = [each.getMessage() for each in caplog.records if each.name == "mcpkit"]
    assert own == ["what was logged could not be sent"] * 3


@pytest.mark.usefixtures("handler")
async def test_a_backend_that_fails_fails_no_request(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def down(_context: Context) -> str | None:
        raise OSError("it is down")

    app = of(says)
    monkeypatch.setattr(app, "log_threshold", down)
    assert await received(app, asking()) == []
    assert "tools/call: the level of its log is not known" in caplog.text


# Whether there is any


async def test_only_while_there_is_a_handler_are_requests_told_apart() -> None:
    others = LogHandler.in_use
    first, second = LogHandler(), LogHandler("ERROR")
    assert LogHandler.in_use == others + 2
    first.close()
    first.close()
    assert LogHandler.in_use == others + 1
    second.close()
    assert LogHandler.in_use == others


async def test_a_handler_can_be_configured_and_goes_with_its_configuration() -> None:
    # It closes the handlers that there are.
    configuration = {
        "version": 1,
        "disable_existing_loggers": False,
        "incremental": False,
        "handlers": {"client": {"class": "mcpkit.LogHandler", "level": "WARNING"}},
        "loggers": {NAME: {"handlers": ["client"], "level": "DEBUG"}},
    }
    try:
        logging.config.dictConfig(configuration)
        assert LogHandler.in_use == 1
        sent = await received(of(says_at_each_level), asking())
        assert sent == at_least("warning")
    finally:
        (configured,) = log.handlers
        log.removeHandler(configured)
        log.setLevel(logging.NOTSET)
        configured.close()
    assert LogHandler.in_use == 0
