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
import secrets
import time
from collections.abc import Callable, Coroutine, Mapping
from contextlib import suppress
from contextvars import copy_context
from dataclasses import replace
from functools import partial
from typing import Any, Final
from weakref import WeakKeyDictionary

from mcpkit.components import Tool
from mcpkit.context import Context
from mcpkit.errors import (
    INTERNAL_ERROR,
    SERVER_ERROR,
    ProtocolError,
    SetupError,
    ToolError,
)
from mcpkit.extensions.base import Extension, ExtensionMethod, Serve
from mcpkit.extensions.legacy_tasks import LegacyTasks
from mcpkit.extensions.task_filter import FILTER, TaskFilter
from mcpkit.extensions.task_record import (
    answered,
    cancelled,
    cancelling,
    completed,
    failed,
    is_of,
    kept_request,
    left,
    owner_of,
    principal_of,
    session_of,
    tool_name,
)
from mcpkit.extensions.task_run import LostError, TaskRun, is_seen_in, stamped
from mcpkit.extensions.task_wire import IDENTIFIER, detailed, is_expired, wire
from mcpkit.methods.common import (
    check_extension,
    check_result_type,
    internal_error,
    invalid_params,
    string_param,
)
from mcpkit.methods.tools import call_tool, first_question
from mcpkit.protocol.inputs import Journal
from mcpkit.protocol.jsonrpc import is_object
from mcpkit.protocol.modern import sendable, sent_as
from mcpkit.protocol.results import Result, normalize
from mcpkit.protocol.versions import ERAS, REVISIONS, Era
from mcpkit.server import Server, logger
from mcpkit.stores.base import TERMINAL, TaskRecord, TaskStore
from mcpkit.stores.memory import MemoryTaskStore

SWEEP_EVERY: Final = 2.0
"""How often, in seconds, a worker looks for tasks that nobody runs any more."""

TICK: Final = 1.0
"""How often, in seconds, a worker looks at the tasks that it runs, at most."""

KEPT_SECONDS: Final = 60.0
"""How long, in seconds, a task is kept that has failed for want of time."""

STOP_SECONDS: Final = 5.0
"""How long, in seconds, tasks are waited for that are stopped with their worker."""

_BATCH: Final = 100
"""How many tasks are swept, or looked at for those who follow them, at once."""

_ENDLESS: Final = 1e300
"""What is as much as infinite: in milliseconds it may be."""

_MODERN: Final[frozenset[Era]] = frozenset({"modern"})
_LEGACY: Final[frozenset[Era]] = frozenset({"legacy"})
_INTERRUPTED: Final = ProtocolError(INTERNAL_ERROR, "The server was interrupted")
_TOO_LONG: Final = ProtocolError(INTERNAL_ERROR, "The task took too long")


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
            if value is None and name == "ttl":
                continue
            is_number = isinstance(value, (int, float)) and value is not True
            if not (is_number and value and 0 < value < _ENDLESS):
                raise SetupError(
                    f"Tasks: {name} is more than 0 and finite, not {value!r}"
                )
        if store is not None and not hasattr(store, "owned"):
            raise SetupError(
                "Tasks: store is a TaskStore, such as SQLiteTaskStore('tasks.db'), not "
                f"{store!r}"
            )
        self.store: TaskStore = MemoryTaskStore() if store is None else store
        self._ttl = ttl
        self._poll_ms = round(poll * 1000)
        self._lease = lease
        self._max_running = max_running
        self._max_per_caller = max_per_caller
        self._workers: WeakKeyDictionary[asyncio.AbstractEventLoop, str] = (
            WeakKeyDictionary()
        )
        self._beginning = 0
        self._runs: dict[str, TaskRun] = {}
        self._server: Server
        # When tasks are looked at next; no timer while they are.
        self._timers: dict[
            asyncio.AbstractEventLoop, tuple[asyncio.Handle | None, float]
        ] = {}
        self._helping: set[asyncio.Task[None]] = set()
        self._outside = copy_context()
        self._swept = 0.0
        self._waiting: dict[str, set[asyncio.Future[None]]] = {}

    def install(self, server: Server) -> None:
        """Install the extension in an app.

        Raises:
            SetupError: The app has it already.
        """
        if server.task_host is not None or hasattr(self, "_server"):
            raise SetupError("Tasks are those of one app, and an app has them once")
        self._server = server
        legacy = LegacyTasks(server, self)
        self._legacy = legacy
        self._filter = TaskFilter(self.store, server.subscriptions, self.keep_going)
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
                        serve=serve,
                        named_by="taskId" if "modern" in eras else None,
                        eras=eras,
                        negotiated=_MODERN,
                    )
                    for name, (serve, eras) in methods.items()
                },
                result_types=frozenset({"task"}),
                filters={FILTER: self._filter},
                eras=_MODERN,
            )
        )
        server.bus.on("task", self._told)
        server.bus.on("left", self._look_now)

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
        if len(self._runs) + self._beginning >= self._max_running:
            raise _too_many()
        self._server.bus.join()
        self._beginning += 1
        try:
            await self._add(context, record)
        finally:
            self._beginning -= 1
        self._start(record, context.principal, context)

    async def _add(self, context: Context, record: TaskRecord) -> None:
        """Keep a new task.

        Raises:
            ProtocolError: -32000, its caller has too many; -32603, it can't be kept.
        """
        most: int | None = self._max_per_caller
        if record.owner is None:
            # Those who are nobody in particular are many. What runs here is counted.
            most = self._max_running if record.worker is None else None
        try:
            admitted = await self.store.add(record, most)
        # Nobody is told of a task that is not there.
        except Exception as error:
            self._server.fault(context, "a task can't be kept", error)
            raise internal_error() from error
        if not admitted:
            raise _too_many()

    async def create(self, context: Context, *, message: str | None = None) -> Result:
        """Create a task that is done elsewhere, and return its handle.

        A handler that hands its work to a job system returns the handle, and gives
        its id to the job: `handle.value["taskId"]`. The job calls `complete`, `fail`
        and `update` in any process that has the app and shares its store.

        Example:
            >>> from mcpkit import App
            >>> app = App("reports")
            >>> @app.tool
            ... async def report(year: int, ctx: Context) -> Result[str]:
            ...     handle = await app.tasks.create(ctx, message="It waits its turn.")
            ...     print("to the queue:", handle.value["taskId"], year)
            ...     return handle

        Args:
            context: The request.
            message: How it stands, for people.

        Raises:
            RuntimeError: The request is no call of a tool, or a task already.
            ProtocolError: -32021, the client has no tasks; -32000, there are too
                many; -32603, the task can't be kept, or the client is of a revision
                that has no such handles.
        """
        if context.method != "tools/call" or context.task is not None:
            raise RuntimeError(
                "app.tasks.create is for a call of a tool that is no task itself: "
                "register the tool without task="
            )
        if context.era == "legacy":
            raise ProtocolError(INTERNAL_ERROR, "Tasks require protocol 2026-07-28")
        check_extension(context, IDENTIFIER)
        tool = self._server.registry.tools[string_param(context.params, "name")]
        record = replace(
            self._record(context, tool, None), worker=None, lease=0.0, message=message
        )
        await self._add(context, record)
        self.keep_going()
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
            KeyError: There is no such task, or it has ended: its client may have
                cancelled it.
            OutputError: The value does not match the tool's output schema.
            ValueError: It has no JSON form, or is a question or another task.
        """
        record = await self._open(task_id)
        tool = self._tool(record)
        result = normalize(value) if tool is None else tool.returns.result(value)
        if result.kind in ("input_required", "task"):
            raise ValueError(f"a task does not end with a result of {result.kind!r}")
        await self._elsewhere(task_id, partial(completed, result=result))

    async def fail(self, task_id: str, error: Exception | str) -> None:
        """Let a task fail that was done elsewhere.

        Args:
            task_id: Its id.
            error: What the tool would have raised. A text stands for a `ToolError`,
                which the model reads. So it does of any other exception that the
                tool has failed, and no more. With a `ProtocolError` the request as
                such has failed.

        Raises:
            KeyError: There is no such task, or it has ended.
        """
        if isinstance(error, ProtocolError):
            edit = partial(failed, error=sendable(error))
        elif isinstance(error, (str, ToolError)):
            edit = partial(completed, result=Result.error(str(error)))
        else:
            name = tool_name(await self._open(task_id))
            logger.error("tool %r failed elsewhere", name, exc_info=error)
            told = Result.error(f"Tool {name} failed")
            edit = partial(completed, result=told)
        await self._elsewhere(task_id, edit)

    async def update(self, task_id: str, message: str) -> None:
        """Say how a task stands that is done elsewhere.

        Raises:
            KeyError: There is no such task, or it has ended.
        """
        await self._elsewhere(task_id, lambda found: replace(found, message=message))

    async def open(self) -> None:
        """Look after tasks from now on, those that others left first.

        Raises:
            SetupError: The store can't be used.
            Exception: Whatever else the store raises.
        """
        await self.store.count(None)
        self._server.bus.join()
        self.keep_going()

    async def stop(self) -> None:
        """Stop the tasks of this worker, as it is about to end.

        Those that are resumable are free for others at once, once what they do once
        is done; the others have failed.
        """
        loop = asyncio.get_running_loop()
        timer, _ = self._timers.pop(loop, (None, 0.0))
        if timer is not None:
            timer.cancel()
        # Those that are looked after at this moment are left in the middle by nobody.
        helping = [task for task in self._helping if task.get_loop() is loop]
        if helping:
            await asyncio.wait(helping, timeout=STOP_SECONDS)
        runs = self._runs_of(loop)
        works = [run.work for run in runs]
        works += [loop.create_task(run.stop()) for run in runs]
        if works:
            await asyncio.wait(works, timeout=STOP_SECONDS)
        for run in runs:
            await self._leave(run)
        if runs:
            self._server.bus.tell("left", None)
        await asyncio.to_thread(self.store.close)

    async def _leave(self, run: TaskRun) -> None:
        try:
            await run.change(left)
        except LostError:
            # It came to its end.
            pass
        # Its lease runs out then.
        except Exception as error:  # noqa: BLE001
            what = f"the task {run.record.task_id} can't be left"
            _log_fault(run, what, error)

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
            await self._edit(task_id, partial(answered, answers=answers))

    async def end(self, task_id: str) -> TaskRecord:
        """Cancel a task, here and now: what becomes of it changes nothing any more.

        Raises:
            KeyError: There is no such task, or it has ended.
        """
        return await self._edit(task_id, cancelled)

    async def wait(self, task_id: str, revision: int) -> TaskRecord | None:
        """Wait until a task may not be what it was any more, for a second at most.

        Returns:
            How it stood last; `None` when it is gone.
        """
        told = asyncio.get_running_loop().create_future()
        waiting = self._waiting.setdefault(task_id, set())
        waiting.add(told)
        try:
            record = await self.store.get(task_id)
            if record is not None and record.revision == revision:
                # Another worker that shares nothing but the store does not tell.
                await asyncio.wait([told], timeout=TICK)
            return record
        finally:
            waiting.discard(told)
            if not waiting:
                self._waiting.pop(task_id, None)

    async def _cancel(self, context: Context) -> Result:
        record = await self.find(context)
        with suppress(KeyError):
            await self._edit(record.task_id, cancelling)
        return Result.wire({})

    async def find(self, context: Context) -> TaskRecord:
        """Return the task of a request.

        Raises:
            ProtocolError: -32602, there is none that the caller may know of.
        """
        task_id = string_param(context.params, "taskId")
        record = await self.store.get(task_id)
        if record is None or is_expired(record) or record.owner != owner_of(context):
            raise invalid_params("Task not found")
        self.keep_going()
        return record

    # Running.

    @property
    def _worker(self) -> str:
        """The name of this worker: an event loop, of whichever process."""
        loop = asyncio.get_running_loop()
        if loop not in self._workers:
            self._workers[loop] = secrets.token_urlsafe(16)
        return self._workers[loop]

    def _runs_of(self, loop: asyncio.AbstractEventLoop) -> list[TaskRun]:
        return [run for run in self._runs.values() if run.work.get_loop() is loop]

    def _record(
        self, context: Context, tool: Tool, journal: Journal | None
    ) -> TaskRecord:
        now = time.time()
        return TaskRecord(
            # 128 bits and more: nobody guesses it.
            task_id=secrets.token_urlsafe(24),
            owner=owner_of(context),
            method=context.method,
            request=kept_request(context, self._server.name),
            created=now,
            updated=now,
            ttl=self._ttl,
            poll_ms=self._poll_ms,
            journal=None if journal is None else journal.dump(),
            resumable=tool.resumable,
            worker=self._worker,
            lease=now + self._lease,
        )

    def _start(
        self, record: TaskRecord, principal: Any, origin: Context | None
    ) -> None:
        request = record.request
        context = Context(
            request_id="" if origin is None else origin.request_id,
            method=record.method,
            params=request["params"],
            revision=REVISIONS[request["version"]],
            host=self._server,
            principal=principal,
            headers=None if origin is None else origin.headers,
            session=session_of(record) if origin is None else origin.session,
            scope=None if origin is None else origin.scope,
        )
        run = TaskRun(record, self.store, context, self._changed)
        context.task = run
        context.conversation = self._server.converse(
            context,
            None if record.journal is None else Journal.load(record.journal),
            first=first_question(self._tool(record)),
        )
        run.work = asyncio.get_running_loop().create_task(self._run(run))
        self._runs[record.task_id] = run
        self.keep_going()

    async def _run(self, run: TaskRun) -> None:
        """Run a task to its end, and write what it came to."""
        context = run.context
        try:
            edit = await self._outcome(run)
            run.end()
            await self._finish(run, edit)
        except LostError as error:
            logger.warning("%s", error)
        finally:
            run.end()
            if self._runs.get(run.record.task_id) is run:
                del self._runs[run.record.task_id]
            try:
                if context.cleanup is not None:
                    await context.cleanup.finish()
            finally:
                # It has the run, and both would wait for the garbage collector.
                del run.context

    async def _outcome(self, run: TaskRun) -> Callable[[TaskRecord], TaskRecord]:
        """Return how the record of a task changes by what its handler came to.

        Raises:
            CancelledError: It was stopped, and not by its client.
        """
        context = run.context
        try:
            result = await call_tool(self._server, context)
            check_result_type(self._server, context, result)
            return partial(completed, result=result)
        except ProtocolError as error:
            fault = error
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if not run.record.cancelling or task is None:
                raise
            task.uncancel()
            return cancelled
        except Exception as error:  # noqa: BLE001  # one task never ends another
            self._server.fault(context, f"the task {run.record.task_id} failed", error)
            fault = internal_error()
        return partial(failed, error=sent_as(fault, context.era))

    async def _finish(
        self, run: TaskRun, edit: Callable[[TaskRecord], TaskRecord]
    ) -> None:
        """Write what a task came to. A store that is out of order is waited for.

        Raises:
            LostError: The task is another worker's, or has ended.
        """
        while True:
            try:
                return await run.change(edit)
            except LostError:
                raise
            except ValueError as error:
                what = f"what the task {run.record.task_id} came to has no JSON form"
                _log_fault(run, what, error)
                edit = partial(failed, error=internal_error())
            except Exception as error:  # noqa: BLE001  # what was done is not lost
                what = f"the end of the task {run.record.task_id} can't be kept yet"
                _log_fault(run, what, error)
                await asyncio.sleep(TICK)

    def _wake(self, task_id: str) -> None:
        for told in tuple(self._waiting.get(task_id, ())):
            # Nobody is left in a loop that is closed.
            with suppress(RuntimeError):
                told.get_loop().call_soon_threadsafe(_settle, told)

    def _changed(self, record: TaskRecord, *, is_seen: bool = True) -> None:
        """Tell all workers that a task was changed, from any thread."""
        self._wake(record.task_id)
        self._server.bus.tell("task", [record.task_id, record.revision, is_seen])

    def _told(self, content: Any) -> None:
        """Take note that a task was changed, in whichever worker."""
        task_id, revision, is_seen = content
        self._filter.told(task_id, revision, is_seen=is_seen)
        self._wake(task_id)
        run = self._runs.get(task_id)
        if run is not None and run.record.revision < revision:
            # Another event loop of this process may be told of it.
            with suppress(RuntimeError):
                run.work.get_loop().call_soon_threadsafe(self._note_soon, run)

    def _note_soon(self, run: TaskRun) -> None:
        self._do(self._note(run))

    async def _note(self, run: TaskRun) -> None:
        """Take note of what others wrote of a task that runs in this event loop."""
        try:
            await run.read()
        except LostError:
            run.cancel()
        # The lease is renewed later, and it is read again then.
        except Exception as error:  # noqa: BLE001
            what = f"the task {run.record.task_id} can't be read"
            _log_fault(run, what, error)

    def _do(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        # The event loop does not hold it.
        self._helping.add(task)
        task.add_done_callback(self._helping.discard)

    async def _edit(
        self, task_id: str, edit: Callable[[TaskRecord], TaskRecord]
    ) -> TaskRecord:
        """Change a task, whoever runs it, and return how it stands then.

        Raises:
            KeyError: There is no such task, or it has ended.
        """
        while True:
            record = await self._open(task_id)
            edited = edit(record)
            if edited == record:
                return record
            written = await self._replace(record, edited)
            if written is not None:
                run = self._runs.get(task_id)
                if run and run.work.get_loop() is asyncio.get_running_loop():
                    await self._note(run)
                return written

    async def _replace(
        self, record: TaskRecord, edited: TaskRecord
    ) -> TaskRecord | None:
        """Write a task, and tell of it; return it, unless somebody else has written."""
        is_seen = is_seen_in(record, edited)
        if is_seen:
            edited = stamped(edited, time.time())
        if not await self.store.replace(edited, record.revision):
            return None
        written = replace(edited, revision=record.revision + 1)
        self._changed(written, is_seen=is_seen)
        return written

    async def _open(self, task_id: str) -> TaskRecord:
        record = await self.store.get(task_id)
        if record is None or record.status in TERMINAL:
            raise KeyError(task_id)
        return record

    async def _elsewhere(
        self, task_id: str, edit: Callable[[TaskRecord], TaskRecord]
    ) -> None:
        """Change a task that is done elsewhere.

        Raises:
            KeyError: There is no such task, or it has ended.
        """

        def checked(record: TaskRecord) -> TaskRecord:
            if record.worker is not None:
                raise KeyError(task_id)
            return edit(record)

        await self._edit(task_id, checked)

    def _tool(self, record: TaskRecord) -> Tool | None:
        return self._server.registry.tools.get(tool_name(record))

    # Keeping.

    def keep_going(self) -> None:
        """Look after tasks from now on, as long as the event loop runs."""
        loop = asyncio.get_running_loop()
        if loop not in self._timers:
            for closed in [each for each in self._timers if each.is_closed()]:
                del self._timers[closed]
            self._wait(0.0)
        elif self._timers[loop][0] is not None:
            self._wait(self._pause())

    def _wait(self, seconds: float) -> None:
        """Look at tasks after so many seconds, or earlier, if that was to be."""
        loop = asyncio.get_running_loop()
        timer, at = self._timers.get(loop, (None, 0.0))
        due = loop.time() + seconds
        if timer is not None:
            if at <= due:
                return
            timer.cancel()
        # Not in the context of whoever came first.
        timer = loop.call_later(seconds, self._tick, context=self._outside)
        self._timers[loop] = timer, due

    def _tick(self) -> None:
        self._timers[asyncio.get_running_loop()] = None, 0.0
        self._do(self._keep())

    def _look_now(self, _: Any) -> None:
        """Look for tasks that another worker has left."""
        self._swept = float("-inf")
        if asyncio.get_running_loop() in self._timers:
            self._wait(0.0)

    async def _keep(self) -> None:
        for look in (self._renew, self._follow, self._sweep):
            try:
                await look()
            # The store is out of order: the next time may do.
            except Exception:  # noqa: BLE001
                logger.exception("tasks can't be looked after")
        if asyncio.get_running_loop() in self._timers:
            self._wait(self._pause())

    def _pause(self) -> float:
        is_busy = self._runs or self._filter.followed
        return min(TICK, self._lease / 3) if is_busy else SWEEP_EVERY

    async def _renew(self) -> None:
        runs = {
            run.record.task_id: run for run in self._runs_of(asyncio.get_running_loop())
        }
        if not runs:
            return
        lease = time.time() + self._lease
        held = await self.store.renew(self._worker, lease, [*runs])
        for task_id, run in runs.items():
            if held.get(task_id) != run.record.revision and task_id in self._runs:
                await self._note(run)

    async def _follow(self) -> None:
        await self._filter.look(self._runs, _BATCH)

    async def _sweep(self) -> None:
        if time.monotonic() - self._swept < SWEEP_EVERY:
            return
        self._swept = time.monotonic()
        now = time.time()
        while len(await self.store.remove_expired(now, _BATCH)) == _BATCH:
            pass
        for record in await self.store.overdue(now, _BATCH):
            over = failed(record, _TOO_LONG)
            # Whoever looks again reads what became of it.
            kept = now - record.created + KEPT_SECONDS
            await self._replace(record, replace(over, ttl=kept))
        for record in await self.store.abandoned(now, _BATCH):
            await self._take_over(record)

    async def _take_over(self, record: TaskRecord) -> None:
        """Run a task again whose worker is gone, or let it end."""
        tool = self._tool(record)
        if record.cancelling:
            await self._replace(record, cancelled(record))
        elif record.resumable and not is_of(record, self._server.name):
            # A tool of this name would be another one here.
            return
        elif not record.resumable or tool is None or not tool.resumable:
            await self._replace(record, failed(record, _INTERRUPTED))
        elif len(self._runs) < self._max_running:
            await self._resume(record)

    async def _resume(self, record: TaskRecord) -> None:
        # What it asks stands: who answers now, answers what is asked again.
        if asyncio.get_running_loop() not in self._timers:
            # It is about to end itself.
            return
        self._server.bus.join()
        lease = time.time() + self._lease
        taken = replace(record, worker=self._worker, lease=lease)
        mine = await self._replace(record, taken)
        if mine is None:
            return
        try:
            self._start(mine, principal_of(record), None)
        # It was kept by another release.
        except Exception:  # noqa: BLE001
            logger.exception("the task %s can't be run again", record.task_id)
            await self._replace(mine, failed(mine, _INTERRUPTED))


def _too_many() -> ProtocolError:
    return ProtocolError(SERVER_ERROR, "Too many tasks")


def _settle(told: asyncio.Future[None]) -> None:
    if not told.done():
        told.set_result(None)


def _either(modern: Serve, legacy: Serve) -> Serve:
    """Return what serves a method that both eras have."""

    async def serve(context: Context) -> Result | Mapping[str, Any]:
        return await (modern if context.era == "modern" else legacy)(context)

    return serve


def _log_fault(run: TaskRun, what: str, error: BaseException) -> None:
    # The request may be gone by now.
    logger.error("%s: %s", run.record.method, what, exc_info=error)
