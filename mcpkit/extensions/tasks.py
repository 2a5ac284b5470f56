"""Long work: `io.modelcontextprotocol/tasks`.

A tool that is declared with `task=` may answer with a handle, and go on working. What
it comes to is in a store, where every worker finds it:

    tools/call    → a handle, once the task is in the store
    tasks/get     → how it stands, and its result or error at the end
    tasks/update  ← answers to what the task asks
    tasks/cancel  ← nobody waits for it any more

A worker holds the tasks that it runs by a lease, which it renews. One whose worker is
gone is run again by another if the tool is resumable, with what was answered and done
before; if not, it has failed.

Spec ext-tasks, specification/draft/tasks.
"""

import asyncio
import json
import secrets
import time
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

from mcpkit.components import Tool
from mcpkit.context import Context
from mcpkit.errors import INTERNAL_ERROR, SERVER_ERROR, UNSET, ProtocolError, SetupError
from mcpkit.extensions.base import Extension, ExtensionMethod, Serve
from mcpkit.extensions.legacy_tasks import LegacyTasks
from mcpkit.extensions.task_run import LostError, TaskRun
from mcpkit.extensions.task_wire import IDENTIFIER, detailed, wire
from mcpkit.methods.common import (
    check_extension,
    internal_error,
    invalid_params,
    string_param,
)
from mcpkit.methods.tools import call_tool
from mcpkit.protocol.inputs import Journal
from mcpkit.protocol.jsonrpc import encode_result, is_object, notification
from mcpkit.protocol.results import Result
from mcpkit.protocol.versions import ERAS, REVISIONS, Era
from mcpkit.server import Server, logger
from mcpkit.stores.base import TERMINAL, Status, TaskRecord, TaskStore
from mcpkit.stores.memory import MemoryTaskStore
from mcpkit.subscriptions import Topic

SWEEP_EVERY: Final = 5.0
"""How often, in seconds, a worker looks for tasks that nobody runs any more."""

TICK: Final = 1.0
"""How often, in seconds, a worker looks at the tasks that it runs, at most."""

_BATCH: Final = 100
"""How many tasks are swept at once."""

_FILTER: Final = "taskIds"

_MODERN: Final[frozenset[Era]] = frozenset({"modern"})
_LEGACY: Final[frozenset[Era]] = frozenset({"legacy"})
_SHUT_DOWN: Final = ProtocolError(INTERNAL_ERROR, "The server was shut down")


@dataclass(frozen=True, slots=True)
class ResumedPrincipal:
    """Who called, when a task is run again: the request itself is gone."""

    id: str
    scopes: frozenset[str]


class Tasks:
    """The tasks of an app: `App(tasks=Tasks(...))`.

    Args:
        store: Where they are kept. By default in the memory of the worker.
        ttl: How long a task may be asked for, in seconds from its creation; `None`
            for ever.
        poll: How often a client ought to ask for it, in seconds.
        lease: How long after its last sign of life, in seconds, a worker is taken
            for gone.
        max_running: How many tasks a worker runs at once.
        max_per_caller: How many tasks of one caller may be under way.

    Raises:
        SetupError: One of them is out of its range.
    """

    def __init__(
        self,
        store: TaskStore | None = None,
        *,
        ttl: float | None = 3600.0,
        poll: float = 1.0,
        lease: float = 15.0,
        max_running: int = 1000,
        max_per_caller: int = 100,
    ) -> None:
        for name, value in (
            ("ttl", ttl),
            ("poll", poll),
            ("lease", lease),
            ("max_running", max_running),
            ("max_per_caller", max_per_caller),
        ):
            if value is not None and not value > 0:
                raise SetupError(f"Tasks: {name} is more than 0, not {value!r}")
        self.store: TaskStore = MemoryTaskStore() if store is None else store
        self._ttl = ttl
        self._poll_ms = round(poll * 1000)
        self._lease = lease
        self._max_running = max_running
        self._max_per_caller = max_per_caller
        self._worker = secrets.token_urlsafe(16)
        self._runs: dict[str, TaskRun] = {}
        self._server: Server
        self._timer: asyncio.TimerHandle | None = None
        self._keeping: asyncio.Task[None] | None = None
        self._swept = 0.0
        self._waiting: dict[str, set[asyncio.Future[None]]] = {}

    def install(self, server: Server) -> None:
        """Install the extension in an app.

        Raises:
            SetupError: The app has it already.
        """
        self._server = server
        legacy = LegacyTasks(server, self)
        self._legacy = legacy
        server.task_host = self
        both = {"get": (self._get, legacy.get), "cancel": (self._cancel, legacy.cancel)}
        methods = {
            **{name: (_either(*serves), ERAS) for name, serves in both.items()},
            "update": (self._update, _MODERN),
            "list": (legacy.list, _LEGACY),
            "result": (legacy.result, _LEGACY),
        }
        server.add_extension(
            Extension(
                identifier=IDENTIFIER,
                methods={
                    f"tasks/{name}": ExtensionMethod(
                        serve=serve, named_by="taskId", eras=eras
                    )
                    for name, (serve, eras) in methods.items()
                },
                result_types=frozenset({"task"}),
                filters={_FILTER: self},
            )
        )
        server.bus.on("task", self._told)

    async def begin(
        self, context: Context, tool: Tool, journal: Journal | None
    ) -> Result:
        """Create a task for a call, begin it, and return its handle.

        Args:
            context: The request.
            tool: What is called.
            journal: What was asked and answered before.

        Raises:
            ProtocolError: -32000, there are too many.
        """
        if context.era == "legacy":
            return await self._legacy.begin(context, tool)
        record = self._record(context, tool, journal)
        await self._begin(context, record)
        return Result.task(wire(record))

    async def start(
        self, context: Context, tool: Tool, *, ttl: float | None
    ) -> TaskRecord:
        """Create a task for a call of a legacy client, and begin it.

        Args:
            context: The request.
            tool: What is called.
            ttl: How long the client would like it to be kept, in seconds.

        Raises:
            ProtocolError: -32000, there are too many.
        """
        record = self._record(context, tool, None)
        if ttl is not None:
            kept = ttl if record.ttl is None else min(ttl, record.ttl)
            record = replace(record, ttl=kept)
        await self._begin(context, record)
        return record

    async def _begin(self, context: Context, record: TaskRecord) -> None:
        owner = record.owner
        if len(self._runs) >= self._max_running or (
            owner is not None and await self.store.count(owner) >= self._max_per_caller
        ):
            raise ProtocolError(SERVER_ERROR, "Too many tasks")
        await self.store.add(record)
        self._start(record, context.principal, context)

    async def create(self, context: Context, *, message: str | None = None) -> Result:
        """Create a task that is done elsewhere, and return its handle.

        A handler that hands its work to a job system returns the handle, and gives
        its `taskId` to the job: see `complete`, `fail` and `update`.

        Args:
            context: The request.
            message: How it stands, for people.

        Raises:
            ProtocolError: -32021, the client has no tasks.
        """
        check_extension(context, IDENTIFIER)
        tool = self._server.registry.tools[string_param(context.params, "name")]
        record = replace(
            self._record(context, tool, None), worker=None, lease=0.0, message=message
        )
        await self.store.add(record)
        return Result.task(wire(record))

    async def handle(self, context: Context, result: Result) -> Result:
        """Return the handle that a handler returned, of a task that is done elsewhere.

        Raises:
            ProtocolError: -32021, the client has no tasks; -32603, it is none.
        """
        if context.era == "legacy" or context.task is not None:
            raise internal_error()
        check_extension(context, IDENTIFIER)
        task_id = result.value.get("taskId")
        record = await self.store.get(task_id) if isinstance(task_id, str) else None
        if record is None or record.owner != owner_of(context):
            logger.error("Result.task takes what app.tasks.create returned")
            raise internal_error()
        return Result.task(wire(record))

    async def complete(self, task_id: str, value: Any) -> None:
        """Complete a task that was done elsewhere.

        Args:
            task_id: Its id.
            value: What the tool would have returned.

        Raises:
            KeyError: There is no such task, or it has ended.
            OutputError: The value does not match the tool's output schema.
        """
        record = await self._open(task_id)
        tool = self._server.registry.tools[record.request["params"]["name"]]
        result = tool.returns.result(value)
        await self._edit(task_id, lambda found: _completed(found, result))

    async def fail(self, task_id: str, error: ProtocolError | str) -> None:
        """Let a task fail that was done elsewhere.

        Raises:
            KeyError: There is no such task, or it has ended.
        """
        if isinstance(error, str):
            error = ProtocolError(INTERNAL_ERROR, error)
        fault = error
        await self._edit(task_id, lambda found: _failed(found, fault))

    async def update(self, task_id: str, message: str) -> None:
        """Say how a task stands that is done elsewhere.

        Raises:
            KeyError: There is no such task, or it has ended.
        """
        await self._edit(task_id, lambda found: replace(found, message=message))

    async def stop(self) -> None:
        """Leave the tasks of this worker, as it is about to end.

        Those that are resumable are free for others at once; the others have failed.
        """
        if self._timer is not None:
            self._timer.cancel()
        for run in tuple(self._runs.values()):
            try:
                if run.record.resumable:
                    await run.change(lambda record: replace(record, lease=0.0))
                else:
                    await run.change(partial(_failed, error=_SHUT_DOWN))
            except LostError:
                pass
            run.cancel()

    # The methods.

    async def _get(self, context: Context) -> Result:
        record = await self.find(context)
        return Result.wire(detailed(record))

    async def _update(self, context: Context) -> Result:
        answers = context.params.get("inputResponses")
        if not is_object(answers) or not all(map(is_object, answers.values())):
            raise invalid_params(
                "Invalid params: inputResponses must be an object of objects"
            )
        record = await self.find(context)
        await self.take_answers(record.task_id, answers)
        return Result.wire({})

    async def take_answers(self, task_id: str, answers: Mapping[str, Any]) -> None:
        """Take answers to what a task asks; what it does not ask is ignored."""
        with suppress(KeyError):
            await self._edit(task_id, partial(_answered, answers=answers))

    async def end(self, task_id: str) -> TaskRecord:
        """Cancel a task, here and now: what becomes of it changes nothing any more.

        Raises:
            KeyError: There is no such task, or it has ended.
        """
        return await self._edit(task_id, _cancelled)

    async def wait(self, task_id: str, revision: int) -> TaskRecord | None:
        """Wait until a task is not what it was.

        Returns:
            How it stands; `None` when it is gone.
        """
        while True:
            told = asyncio.get_running_loop().create_future()
            waiting = self._waiting.setdefault(task_id, set())
            waiting.add(told)
            try:
                record = await self.store.get(task_id)
                if record is None or record.revision != revision:
                    return record
                # Another worker that shares nothing but the store does not tell.
                await asyncio.wait([told], timeout=TICK)
            finally:
                waiting.discard(told)
                if not waiting:
                    self._waiting.pop(task_id, None)

    def owner_of(self, context: Context) -> str | None:
        """Return who may know of the tasks of a request."""
        return owner_of(context)

    async def _cancel(self, context: Context) -> Result:
        record = await self.find(context)
        with suppress(KeyError):
            await self._edit(record.task_id, _cancelling)
        return Result.wire({})

    async def find(self, context: Context) -> TaskRecord:
        """Return the task of a request.

        Raises:
            ProtocolError: -32602, there is none that the caller may know of.
        """
        task_id = string_param(context.params, "taskId")
        record = await self.store.get(task_id)
        if record is None or record.owner != owner_of(context):
            raise invalid_params("Task not found")
        self._keep_going()
        return record

    # What may be followed.

    async def read(self, context: Context, value: Any) -> Collection[str]:
        """Return the ids of tasks that a client may follow."""
        if not isinstance(value, list) or not all(isinstance(it, str) for it in value):
            raise invalid_params("Invalid params: taskIds must be an array of strings")
        owner = owner_of(context)
        found = {task_id: await self.store.get(task_id) for task_id in value}
        return [
            task_id
            for task_id, record in found.items()
            if record is not None and record.owner == owner
        ]

    async def message(self, context: Context, topic: str) -> dict[str, Any] | None:
        """Return the notification of how a task stands."""
        record = await self.store.get(topic)
        if record is None or record.owner != owner_of(context):
            return None
        return notification("notifications/tasks", detailed(record))

    # Running.

    def _record(
        self, context: Context, tool: Tool, journal: Journal | None
    ) -> TaskRecord:
        now = time.time()
        params = {
            key: value
            for key, value in context.params.items()
            if key not in ("inputResponses", "requestState")
        }
        return TaskRecord(
            # 128 bits and more: nobody guesses it.
            task_id=secrets.token_urlsafe(24),
            owner=owner_of(context),
            method=context.method,
            request={
                "params": params,
                "version": context.revision.version,
                "principal": context.principal_id,
                "scopes": sorted(context.scopes),
            },
            status="working",
            message=None,
            created=now,
            updated=now,
            ttl=self._ttl,
            poll_ms=self._poll_ms,
            result=None,
            error=None,
            asked={},
            answered={},
            journal=None if journal is None else journal.dump(),
            resumable=tool.resumable,
            worker=self._worker,
            lease=now + self._lease,
            cancelling=False,
            revision=0,
        )

    def _start(
        self, record: TaskRecord, principal: Any, origin: Context | None
    ) -> None:
        run = TaskRun(record, self.store, self._changed)
        request = record.request
        run.context = Context(
            request_id="" if origin is None else origin.request_id,
            method=record.method,
            params=request["params"],
            revision=REVISIONS[request["version"]],
            host=self._server,
            principal=principal,
            headers=None if origin is None else origin.headers,
            session=None if origin is None else origin.session,
            scope=None if origin is None else origin.scope,
        )
        run.context.task = run
        if record.journal is not None:
            journal = Journal.load(record.journal)
            run.context.conversation = self._server.converse(run.context, journal)
        self._server.bus.join()
        self._runs[record.task_id] = run
        run.work = asyncio.get_running_loop().create_task(self._run(run))
        self._keep_going()

    async def _run(self, run: TaskRun) -> None:
        """Run a task to its end, and write what it came to."""
        context = run.context
        assert context is not None  # noqa: S101  # `_start` has set it
        try:
            edit = await self._outcome(run, context)
            await run.change(edit)
        except LostError as error:
            logger.warning("%s", error)
        finally:
            del self._runs[run.record.task_id]
            if context.cleanup is not None:
                await context.cleanup.finish()

    async def _outcome(
        self, run: TaskRun, context: Context
    ) -> Callable[[TaskRecord], TaskRecord]:
        try:
            result = await call_tool(self._server, context)
        except ProtocolError as error:
            fault = error
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if not run.record.cancelling or task is None:
                raise
            task.uncancel()
            return _cancelled
        except LostError:
            raise
        except Exception as error:  # noqa: BLE001  # one task never ends another
            logger.error("the task %s failed", run.record.task_id, exc_info=error)
            fault = ProtocolError(INTERNAL_ERROR, "Internal error")
        else:
            return lambda record: _completed(record, result)
        return lambda record: _failed(record, fault)

    def _wake(self, task_id: str) -> None:
        for told in self._waiting.get(task_id, ()):
            if not told.done():
                told.set_result(None)

    def _changed(self, task_id: str) -> None:
        self._wake(task_id)
        self._server.subscriptions.told(Topic(_FILTER, task_id))
        self._server.bus.tell("task", task_id)

    def _told(self, task_id: str) -> None:
        """Take note that a task was changed, in whichever worker."""
        self._server.subscriptions.told(Topic(_FILTER, task_id))
        self._wake(task_id)
        run = self._runs.get(task_id)
        if run is not None:
            asyncio.get_running_loop().create_task(self._read(run))

    async def _read(self, run: TaskRun) -> None:
        try:
            await run.read()
        except LostError:
            run.cancel()

    async def _edit(
        self, task_id: str, edit: Callable[[TaskRecord], TaskRecord]
    ) -> TaskRecord:
        """Change a task, whoever runs it, and return how it stands then.

        Raises:
            KeyError: There is no such task, or it has ended.
        """
        while True:
            record = await self._open(task_id)
            edited = replace(edit(record), updated=time.time())
            if await self.store.replace(edited, record.revision):
                self._changed(task_id)
                run = self._runs.get(task_id)
                if run is not None:
                    await self._read(run)
                return replace(edited, revision=record.revision + 1)

    async def _open(self, task_id: str) -> TaskRecord:
        record = await self.store.get(task_id)
        if record is None or record.status in TERMINAL:
            raise KeyError(task_id)
        return record

    # Keeping.

    def _keep_going(self) -> None:
        """Look after tasks from now on, as long as the event loop runs."""
        if self._timer is None:
            self._wait()

    def _wait(self) -> None:
        loop = asyncio.get_running_loop()
        delay = min(TICK, self._lease / 3) if self._runs else SWEEP_EVERY
        self._timer = loop.call_later(delay, self._tick)

    def _tick(self) -> None:
        self._keeping = asyncio.get_running_loop().create_task(self._keep())

    async def _keep(self) -> None:
        try:
            await self._renew()
            if time.monotonic() - self._swept >= SWEEP_EVERY:
                self._swept = time.monotonic()
                await self._sweep()
        # The store is out of order: the next time may do.
        except Exception:  # noqa: BLE001
            logger.exception("tasks can't be looked after")
        self._wait()

    async def _renew(self) -> None:
        runs = dict(self._runs)
        if not runs:
            return
        lease = time.time() + self._lease
        held = await self.store.renew(self._worker, lease, [*runs])
        for task_id, run in runs.items():
            if held.get(task_id) != run.record.revision and task_id in self._runs:
                await self._read(run)

    async def _sweep(self) -> None:
        now = time.time()
        for record in await self.store.abandoned(now, _BATCH):
            await self._take_over(record)
        for record in await self.store.overdue(now, _BATCH):
            expired = ProtocolError(INTERNAL_ERROR, "The task took too long")
            await self.store.replace(_failed(record, expired), record.revision)
            self._changed(record.task_id)
        await self.store.remove_expired(now, _BATCH)

    async def _take_over(self, record: TaskRecord) -> None:
        """Run a task again whose worker is gone, or let it fail."""
        tool = self._server.registry.tools.get(record.request["params"]["name"])
        if not record.resumable or tool is None:
            gone = ProtocolError(INTERNAL_ERROR, "The server was interrupted")
            if await self.store.replace(_failed(record, gone), record.revision):
                self._changed(record.task_id)
            return
        if len(self._runs) >= self._max_running:
            return
        mine = replace(
            record,
            worker=self._worker,
            lease=time.time() + self._lease,
            status="working",
            asked={},
        )
        if await self.store.replace(mine, record.revision):
            identity = record.request["principal"]
            scopes = frozenset(record.request["scopes"])
            principal = None if identity is None else ResumedPrincipal(identity, scopes)
            self._start(replace(mine, revision=record.revision + 1), principal, None)


def owner_of(context: Context) -> str | None:
    """Return who may know of a task: its principal, or its legacy session."""
    principal = context.principal_id
    if principal is not None:
        return f"principal:{principal}"
    session = context.session
    return None if session is None else f"session:{session.id}"


def _completed(record: TaskRecord, result: Result) -> TaskRecord:
    members = json.loads(encode_result(result.members()))
    if result.metadata:
        members["_meta"] = {**members.get("_meta", {}), **result.metadata}
    return replace(
        record, status="completed", result=members, asked={}, answered={}, journal=None
    )


def _failed(record: TaskRecord, error: ProtocolError) -> TaskRecord:
    fault = {"code": error.code, "message": error.message}
    if error.data is not UNSET:
        fault["data"] = error.data
    return replace(
        record,
        status="failed",
        message=error.message,
        error=fault,
        asked={},
        answered={},
        journal=None,
    )


def _either(modern: Serve, legacy: Serve) -> Serve:
    """Return what serves a method that both eras have."""

    async def serve(context: Context) -> Result | Mapping[str, Any]:
        return await (modern if context.era == "modern" else legacy)(context)

    return serve


def _answered(record: TaskRecord, answers: Mapping[str, Any]) -> TaskRecord:
    """Return a record with the answers to what it asks."""
    new = {key: it for key, it in answers.items() if key in record.asked}
    asked = {key: it for key, it in record.asked.items() if key not in new}
    status: Status = "input_required" if asked else "working"
    return replace(
        record,
        status=status if record.asked else record.status,
        asked=asked,
        answered={**record.answered, **new},
    )


def _cancelling(record: TaskRecord) -> TaskRecord:
    # Nobody here runs what is done elsewhere.
    if record.worker is None:
        return _cancelled(record)
    return replace(record, cancelling=True)


def _cancelled(record: TaskRecord) -> TaskRecord:
    return replace(record, status="cancelled", asked={}, answered={}, journal=None)
