"""The calls of a soak: a mix of what clients do, each answer looked at."""

import asyncio
import time
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from itertools import count
from random import Random
from types import MappingProxyType
from typing import Any, Final

from tests.soak.app import CLOCK, STEPS
from tests.soak.wire import (
    IO,
    LEGACY,
    Connection,
    Request,
    WrongError,
    expect,
    in_session,
    legacy,
    modern,
)

PATIENCE: Final = 30.0
"""How long a call may take, in seconds, a whole session too."""

_CLIENTS: Final = 50
_THINKS: Final = 0.2
_MOST_AT_ONCE: Final = 500
_TOOLS: Final = {
    "add",
    "add_in_thread",
    "change_list",
    "confirm",
    "linger",
    "linger_in_thread",
    "measure",
    "report",
    "tick",
}
_ACCEPTED: Final = {"action": "accept", "content": {"ok": True}}


class Failures:
    """What went wrong, counted, and in words."""

    def __init__(self) -> None:
        self.seen: Counter[str] = Counter()

    def note(self, where: str, error: BaseException) -> None:
        """Count a failure."""
        self.seen[f"{where}: {type(error).__name__}: {error}"[:400]] += 1


class Calls:
    """The calls of one soak.

    Args:
        port: Where the server listens.
        failures: Where failures are noted.

    Attributes:
        seconds: How long each call took from the moment that it was due, by kind.
        cancelled: How many handlers were left alone.
    """

    def __init__(self, port: int, failures: Failures) -> None:
        self._port = port
        self._failures = failures
        self._ids = count(1)
        self._idle: list[Connection] = []
        self._opened = 0
        self.seconds: defaultdict[str, list[float]] = defaultdict(list)
        self.cancelled = 0

    @property
    def done(self) -> int:
        """How many calls were answered well."""
        return sum(map(len, self.seconds.values()))

    async def run(self, rate: float, seconds: float) -> None:
        """Make so many calls a second, for so long, whatever becomes of them."""
        turns = [kind for kind, share in MIX.items() for _ in range(share)]
        Random(1).shuffle(turns)  # noqa: S311  # the same in every run
        began = time.perf_counter()
        at_once = asyncio.Semaphore(_MOST_AT_ONCE)
        async with asyncio.TaskGroup() as group:
            for number in range(int(rate * seconds)):
                due = began + number / rate
                await asyncio.sleep(due - time.perf_counter())
                await at_once.acquire()
                call = group.create_task(self._call(turns[number % len(turns)], due))
                call.add_done_callback(lambda _: at_once.release())
            await asyncio.sleep(began + seconds - time.perf_counter())

    async def call(self, tool: str, **arguments: Any) -> Any:
        """Call a tool, and return the structured content of its result."""
        async with self.connected() as connection:
            result = await self.ask(
                connection, "tools/call", {"name": tool, "arguments": arguments}
            )
            return result.get("structuredContent")

    async def ask(
        self, connection: Connection, method: str, params: Mapping[str, Any]
    ) -> Any:
        """Send a request of the modern era, and return its result.

        Raises:
            WrongError: It is answered with something else.
        """
        request_id = next(self._ids)
        answer = await connection.ask(modern(request_id, method, params))
        expect(answer.status, 200)
        return _result(await answer.message(), request_id)

    def close(self) -> None:
        """Close the connections that are kept alive."""
        while self._idle:
            self._idle.pop().close()

    @asynccontextmanager
    async def connected(self) -> AsyncIterator[Connection]:
        """Lend a connection, which is kept alive unless something goes wrong."""
        if self._idle:
            connection = self._idle.pop()
        else:
            connection = await self.connect()
        try:
            yield connection
        except BaseException:
            connection.close()
            raise
        self._idle.append(connection)

    async def connect(self, client: str | None = None) -> Connection:
        """Open a connection, for one of the clients."""
        if client is None:
            self._opened += 1
            client = f"caller-{self._opened % _CLIENTS}"
        return await Connection.open(self._port, client)

    def next_id(self) -> int:
        """Return an id that no other request has."""
        return next(self._ids)

    async def _call(self, kind: str, due: float) -> None:
        try:
            async with asyncio.timeout(PATIENCE):
                await _KINDS[kind](self)
        except (WrongError, OSError, EOFError, TimeoutError, ValueError) as error:
            self._failures.note(kind, error)
        else:
            self.seconds[kind].append(time.perf_counter() - due)


async def _add(calls: Calls) -> None:
    a = calls.next_id()
    expect(await calls.call("add", a=a, b=2), a + 2)


async def _add_in_thread(calls: Calls) -> None:
    a = calls.next_id()
    expect(await calls.call("add_in_thread", a=a, b=3), a + 3)


async def _read(calls: Calls) -> None:
    async with calls.connected() as connection:
        result = await calls.ask(connection, "resources/read", {"uri": CLOCK})
    (contents,) = result["contents"]
    expect((contents["uri"], contents["text"].isdigit()), (CLOCK, True))


async def _list(calls: Calls) -> None:
    async with calls.connected() as connection:
        result = await calls.ask(connection, "tools/list", {})
    expect({tool["name"] for tool in result["tools"]} - {"extra"}, _TOOLS)


async def _report(calls: Calls) -> None:
    request_id, token = calls.next_id(), "a token"
    request = modern(request_id, "tools/call", {"name": "report"}, token=token)
    async with calls.connected() as connection:
        answer = await connection.ask(request)
        *reports, last = [message async for message in answer.events()]
    told = [report["params"] for report in reports]
    expected = [
        {"progressToken": token, "progress": step, "total": STEPS}
        for step in range(1, STEPS + 1)
    ]
    expect(told, expected)
    expect(_result(last, request_id)["content"][0]["text"], "done")


async def _confirm(calls: Calls) -> None:
    what = f"order {calls.next_id()}"
    params = {"name": "confirm", "arguments": {"what": what}}
    async with calls.connected() as connection:
        asked = await calls.ask(connection, "tools/call", params)
        expect(asked["resultType"], "input_required")
        ((key, question),) = asked["inputRequests"].items()
        expect(question["params"]["message"], f"Really {what}?")
        answers = {"inputResponses": {key: _ACCEPTED}}
        answers["requestState"] = asked["requestState"]
        result = await calls.ask(connection, "tools/call", {**params, **answers})
    expect(result["content"][0]["text"], f"{what}: yes")


async def _listen(calls: Calls) -> None:
    connection = await calls.connect()
    wanted = {"notifications": {"toolsListChanged": True}}
    answer = await connection.ask(
        modern(calls.next_id(), "subscriptions/listen", wanted)
    )
    events = answer.events()
    first = await anext(events)
    connection.close()
    expect(first["method"], "notifications/subscriptions/acknowledged")


async def _leave(calls: Calls) -> None:
    await _leave_alone(calls, "linger")


async def _leave_thread(calls: Calls) -> None:
    await _leave_alone(calls, "linger_in_thread")


async def _leave_alone(calls: Calls, tool: str) -> None:
    """Close the connection while a handler works: at once, or later."""
    number = calls.next_id()
    connection = await calls.connect()
    connection.send(modern(number, "tools/call", {"name": tool}))
    calls.cancelled += 1
    await asyncio.sleep((0.005, 0.1)[number % 2])
    connection.close()


async def _session(calls: Calls) -> None:
    """Open a legacy session, listen, call, be asked, be told, and end it."""
    client = f"session-{calls.next_id()}"
    connection, listening = await calls.connect(client), await calls.connect(client)
    try:
        token = await _initialize(connection)
        answer = await listening.ask(Request("GET", in_session(token)))
        events = answer.events()
        await _legacy(connection, token, "resources/subscribe", {"uri": CLOCK})
        summed = {"name": "add", "arguments": {"a": 1, "b": 2}}
        result = await _legacy(connection, token, "tools/call", summed)
        expect(result["structuredContent"], {"result": 3})
        await _confirm_in_session(connection, token, await calls.connect(client))
        await _told(events)
        ended = await connection.ask(Request("DELETE", in_session(token)))
        expect((ended.status, await ended.message()), (200, None))
        async for message in events:
            _check_told(message)
    finally:
        connection.close()
        listening.close()


async def _initialize(connection: Connection) -> str:
    params = {
        "protocolVersion": LEGACY,
        "capabilities": {"elicitation": {}},
        "clientInfo": {"name": "soak", "version": "1"},
    }
    message = {"id": 0, "method": "initialize", "params": params}
    answer = await connection.ask(legacy(None, message))
    result = _result(await answer.message(), 0)
    expect((result["protocolVersion"], result["serverInfo"]["name"]), (LEGACY, "soak"))
    token = answer.headers["mcp-session-id"]
    await _accepted(connection, token, {"method": "notifications/initialized"})
    return token


async def _confirm_in_session(
    connection: Connection, token: str, other: Connection
) -> None:
    call = {"name": "confirm", "arguments": {"what": "go"}}
    message = {"id": "asks", "method": "tools/call", "params": call}
    answer = await connection.ask(legacy(token, message))
    events = answer.events()
    question = await anext(events)
    expect(question["method"], "elicitation/create")
    await asyncio.sleep(_THINKS)
    await _accepted(other, token, {"id": question["id"], "result": _ACCEPTED})
    other.close()
    (last,) = [message async for message in events]
    expect(_result(last, "asks")["content"][0]["text"], "go: yes")


async def _accepted(
    connection: Connection, token: str, message: Mapping[str, Any]
) -> None:
    answer = await connection.ask(legacy(token, message))
    expect((answer.status, await answer.message()), (202, None))


async def _legacy(
    connection: Connection, token: str, method: str, params: Mapping[str, Any]
) -> Any:
    message = {"id": method, "method": method, "params": params}
    answer = await connection.ask(legacy(token, message))
    return _result(await answer.message(), method)


async def _told(events: AsyncIterator[Any]) -> None:
    """Wait until the session is told of an update."""
    async for message in events:
        _check_told(message)
        if message["method"] == "notifications/resources/updated":
            return
    raise WrongError("the stream of a session has ended")


def _check_told(message: Any) -> None:
    if message["method"] != "notifications/tools/list_changed":
        expect(message["method"], "notifications/resources/updated")
        expect(message["params"], {"uri": CLOCK})


def _result(message: Any, request_id: int | str) -> Any:
    """Return the result of a response.

    Raises:
        WrongError: It is no result, or that of another request.
    """
    if "result" not in message or message["id"] != request_id:
        raise WrongError(f"{str(message)[:300]} is no answer to {request_id!r}")
    result = message["result"]
    if result.get("isError") or ("resultType" in result) != (
        f"{IO}serverInfo" in result.get("_meta", {})
    ):
        raise WrongError(f"{str(message)[:300]} is no success")
    return result


MIX: Final[Mapping[str, int]] = MappingProxyType(
    {
        "async tool": 55,
        "sync tool, in a thread": 12,
        "read": 10,
        "progress, streamed": 10,
        "question and retry": 7,
        "tools/list": 1,
        "listen and leave": 1,
        "left alone": 2,
        "left alone, in a thread": 1,
        "legacy session": 1,
    }
)
"""The kinds of calls, and how many of each there are in a hundred."""

_KINDS: Final[Mapping[str, Callable[[Calls], Awaitable[None]]]] = MappingProxyType(
    {
        "async tool": _add,
        "sync tool, in a thread": _add_in_thread,
        "read": _read,
        "progress, streamed": _report,
        "question and retry": _confirm,
        "tools/list": _list,
        "listen and leave": _listen,
        "left alone": _leave,
        "left alone, in a thread": _leave_thread,
        "legacy session": _session,
    }
)
