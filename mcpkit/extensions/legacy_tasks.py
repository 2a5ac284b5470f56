"""Tasks as clients of 2025-11-25 know them, over the same store.

    tools/call with `task`  → a handle
    tasks/get, tasks/list   → how tasks stand
    tasks/result            → waits for the end, and asks what the task asks meanwhile
    tasks/cancel            → the task is cancelled

A caller sees the tasks of its principal, or of its session. One that has neither can
ask for a task whose id it knows, and lists none.

What a task asks goes to whoever waits for its result, and can answer it. If several
do, the first answer counts, and the others are told that it is not waited for any more.

How far a task has come is in its `statusMessage`, and is not notified: the worker that
runs it need not be the one where its client waits.

Spec 2025-11-25, basic/utilities/tasks.
"""

import asyncio
import time
from collections.abc import Iterable, Mapping
from typing import Any, Final, Protocol

from mcpkit.asking import RefusedError
from mcpkit.components import Tool
from mcpkit.context import Context
from mcpkit.errors import (
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    SERVER_ERROR,
    AnswerError,
    ProtocolError,
)
from mcpkit.extensions.task_record import owner_of, tool_name
from mcpkit.extensions.task_wire import is_expired, timestamp
from mcpkit.methods.common import invalid_params, object_param
from mcpkit.pending import GRACE
from mcpkit.protocol.content import without_none
from mcpkit.protocol.results import Result
from mcpkit.protocol.sealing import SealError
from mcpkit.server import Server
from mcpkit.shutdown import on_shutdown
from mcpkit.stores.base import TERMINAL, TaskRecord, TaskStore

RELATED: Final = "io.modelcontextprotocol/related-task"
"""The key of `_meta` that says which task a message is about."""

PAGE: Final = 100
"""How many tasks an answer to `tasks/list` has, unless the app has pages."""

_LONGEST_MS: Final = 2**53
"""More than that, in milliseconds, no client can mean: it is 285,000 years."""


class Host(Protocol):
    """What is needed of the tasks of an app."""

    store: TaskStore

    async def find(self, context: Context) -> TaskRecord:
        """Return the task of a request."""

    async def start(
        self, context: Context, tool: Tool, *, ttl: float | None
    ) -> TaskRecord:
        """Create a task for a call, and begin it."""

    async def take_answers(self, task_id: str, answers: Mapping[str, Any]) -> None:
        """Take answers to what a task asks."""

    async def end(self, task_id: str) -> TaskRecord:
        """Cancel a task, here and now."""

    async def wait(self, task_id: str, revision: int) -> TaskRecord | None:
        """Wait until a task may not be what it was any more, for a second at most."""


class LegacyTasks:
    """What a client of 2025-11-25 does with tasks.

    Args:
        server: The app.
        host: Its tasks.
    """

    def __init__(self, server: Server, host: Host) -> None:
        self._server = server
        self._host = host

    async def begin(self, context: Context, tool: Tool) -> Result:
        """Return the handle of the task that a call asks for.

        Raises:
            ProtocolError: -32602, what it asks for is malformed.
        """
        ttl = object_param(context.params, "task").get("ttl")
        if ttl is not None and (type(ttl) not in (int, float) or not ttl >= 0):
            raise invalid_params("Invalid params: task.ttl must be a number, 0 or more")
        seconds = None if ttl is None else min(ttl, _LONGEST_MS) / 1000
        record = await self._host.start(context, tool, ttl=seconds)
        return Result.wire({"task": state_of(record)})

    async def get(self, context: Context) -> Result:
        """Answer `tasks/get`."""
        _check(context)
        return Result.wire(state_of(await self._host.find(context)))

    async def list(self, context: Context) -> Result:
        """Answer `tasks/list`."""
        _check(context)
        owner = owner_of(context)
        if owner is None:
            return Result.wire({"tasks": []})
        binding = [self._server.name, context.method, owner]
        after, cursor = None, context.params.get("cursor")
        if cursor is not None:
            try:
                after, _ = self._server.open("cursor", binding, cursor)
            except SealError as error:
                raise invalid_params("Invalid cursor") from error
        size = self._server.options.page_size or PAGE
        found = await self._host.store.owned(owner, after, size + 1)
        page = found[:size]
        following = None
        if len(found) > size:
            key = page[-1].key
            following = self._server.seal("cursor", binding, key, dated=False)
        tasks = [state_of(record) for record in page if not is_expired(record)]
        return Result.wire(without_none({"tasks": tasks, "nextCursor": following}))

    async def result(self, context: Context) -> Result:
        """Answer `tasks/result`, once the task has ended.

        Raises:
            ProtocolError: The task failed with it, or was cancelled; -32000, the server
                stops before the task has ended.
        """
        _check(context)
        record = await self._host.find(context)
        if record.status in TERMINAL:
            return self._ended(record)
        waiting = asyncio.ensure_future(self._end_of(context, record))
        is_stopping = False

        def stop() -> None:
            nonlocal is_stopping
            is_stopping = True
            waiting.cancel()

        # A server that is asked to stop waits for its responses first, and the task
        # may take an hour.
        forget = on_shutdown(stop)
        try:
            return self._ended(await waiting)
        except asyncio.CancelledError:
            if is_stopping:
                fault = "The server is stopping: ask for the result again"
                raise ProtocolError(SERVER_ERROR, fault) from None
            raise
        finally:
            forget()

    async def cancel(self, context: Context) -> Result:
        """Answer `tasks/cancel`.

        Raises:
            ProtocolError: -32602, the task has ended.
        """
        _check(context)
        record = await self._host.find(context)
        try:
            return Result.wire(state_of(await self._host.end(record.task_id)))
        except KeyError as error:
            fault = "The task can't be cancelled: it has ended"
            raise invalid_params(fault) from error

    async def _end_of(self, context: Context, record: TaskRecord) -> TaskRecord:
        """Wait for a task to end, and ask what it asks meanwhile."""
        found: TaskRecord | None = record
        asking = _Asking(self._server, self._host, context)
        try:
            while found is not None and found.status not in TERMINAL:
                _check_is_there(context)
                asking.follow(found)
                found = await self._host.wait(found.task_id, found.revision)
        finally:
            await asking.end()
        if found is None:
            raise invalid_params("Task not found")
        return found

    def _ended(self, record: TaskRecord) -> Result:
        if record.status == "cancelled" or record.result is None:
            error = record.error or {
                "code": INVALID_REQUEST,
                "message": "The task was cancelled",
            }
            raise ProtocolError(
                error["code"],
                error["message"],
                *([error["data"]] if "data" in error else []),
            )
        tool = self._server.registry.tools.get(tool_name(record))
        result = Result.wire(
            record.result, metadata={RELATED: {"taskId": record.task_id}}
        )
        result.object_schema = None if tool is None else tool.returns.object_schema
        return result


class _Asking:
    """What one request for a result asks its client, as long as it waits.

    Args:
        server: The app.
        host: Its tasks.
        context: The request.
    """

    def __init__(self, server: Server, host: Host, context: Context) -> None:
        self._server = server
        self._host = host
        self._context = context
        self._questions: dict[str, asyncio.Task[None]] = {}
        self._answered: set[str] = set()

    def follow(self, record: TaskRecord) -> None:
        """Ask what a task asks by now, and withdraw what it asks no more."""
        self._withdraw(self._questions.keys() - record.asked.keys())
        for key in record.asked.keys() - self._questions.keys():
            question = asyncio.create_task(self._ask(record, key))
            self._questions[key] = question

    async def end(self) -> None:
        """Withdraw what is asked still, and wait until the client is told."""
        self._withdraw(self._questions.keys())
        outcomes = await asyncio.gather(
            *self._questions.values(), return_exceptions=True
        )
        for error in outcomes:
            if isinstance(error, Exception):
                what = "an answer to a task can't be kept"
                self._server.fault(self._context, what, error)

    def _withdraw(self, keys: Iterable[str]) -> None:
        for key in keys:
            question = self._questions[key]
            # One that is withdrawn already is about to tell its client.
            if key not in self._answered and not question.cancelling():
                question.cancel()

    async def _ask(self, record: TaskRecord, key: str) -> None:
        """Ask the client what a task asks, on the stream of its request."""
        request = record.asked[key]
        params = request.get("params", {})
        meta = {**params.get("_meta", {}), RELATED: {"taskId": record.task_id}}
        if params.get("mode") == "url":
            # What a modern client began asks without.
            params = {"elicitationId": f"{record.task_id} {key}", **params}
        sent = {**request, "params": {**params, "_meta": meta}}
        conversation = self._server.converse(self._context)
        try:
            answers = await conversation.carry({key: sent})
        except RefusedError as error:
            answers = {key: {"error": {"message": error.reason}}}
        # It is not this client that can answer, or not this time. Whoever waits for
        # the result next is asked again.
        except (AnswerError, ProtocolError):
            return
        self._answered.add(key)
        await self._host.take_answers(record.task_id, answers)


def state_of(record: TaskRecord) -> dict[str, Any]:
    """Return the state of a task, as 2025-11-25 has it.

    There a task has failed when its tool tells of a fault. In the modern era it has
    completed then, and so it is kept.
    """
    status, message = record.status, record.message
    if record.result is not None and record.result.get("isError"):
        status, message = "failed", _fault(record.result) or message
    optional = without_none({"statusMessage": message, "pollInterval": record.poll_ms})
    return {
        "taskId": record.task_id,
        "status": status,
        "createdAt": timestamp(record.created),
        "lastUpdatedAt": timestamp(record.updated),
        "ttl": None if record.ttl is None else round(record.ttl * 1000),
        **optional,
    }


def _fault(result: Mapping[str, Any]) -> str | None:
    """Return what a result that tells of a fault says, if it has a text."""
    blocks = result.get("content", ())
    return next((it["text"] for it in blocks if it.get("type") == "text"), None)


def _check_is_there(context: Context) -> None:
    """Wait no more for a client that has gone, and asks again when it is back.

    Raises:
        ProtocolError: -32000, it has.
    """
    channel = context.channel
    since = None if channel is None else channel.away_since
    if since is not None and time.monotonic() >= since + GRACE:
        raise ProtocolError(SERVER_ERROR, "The client went away")


def _check(context: Context) -> None:
    """Refuse a client of a revision that has no tasks.

    Raises:
        ProtocolError: -32601, it is.
    """
    if not context.revision.tasks:
        raise ProtocolError(METHOD_NOT_FOUND, "Method not found")
