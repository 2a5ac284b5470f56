"""The phases of a soak: open, load, close, and stop."""

import asyncio
import os
import signal
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Final

from tests.bench.load import cpu_seconds
from tests.soak.app import CLOCK, ITEM
from tests.soak.calls import Calls, Failures
from tests.soak.report import STOPS_IN, Plan, Results, Sample
from tests.soak.serve import Process
from tests.soak.streams import TOOLS, Streams

LIST_EVERY: Final = 10
"""How many updates there are to one change of a list."""

_SAMPLES: Final = 60
_LONGEST_PAUSE: Final = 5.0
_SETTLES_IN: Final = 15.0
_POLL: Final = 0.1


async def soak(plan: Plan, process: Process) -> Results:
    """Load a server, let go of it, and have it stop.

    Args:
        plan: How much of what.
        process: The server, which nobody else uses, and which is stopped.
    """
    failures = Failures()
    pause = min(_LONGEST_PAUSE, plan.seconds / _SAMPLES)
    watcher = _Watcher(process, Calls(process.port, failures), pause)
    before = await watcher.look()
    streams, calls = Streams(process.port, failures), Calls(process.port, failures)
    await streams.open(plan.streams)
    watcher.begin(lambda: calls.done)
    opened = await watcher.look()
    samples: list[Sample] = []
    lags: list[float] = []
    over = asyncio.Event()
    async with asyncio.TaskGroup() as group:
        group.create_task(watcher.follow(samples, over))
        group.create_task(_tell(plan, streams, calls, lags, over))
        # Some calls wait for an update: they go on until all calls are done.
        await calls.run(plan.rate, plan.seconds)
        over.set()
    calls.close()
    streams.close()
    after = await watcher.settle(before)
    results = Results(
        plan=plan,
        before=before,
        opened=opened,
        samples=samples,
        after=after,
        seconds=calls.seconds,
        cancelled=calls.cancelled,
        lags=lags,
        told=streams.told,
    )
    await _stop(results, process, failures)
    watcher.control.close()
    results.failures = failures.seen
    results.said = process.said()
    return results


class _Watcher:
    """Looks at the server from outside, and asks it how it is."""

    def __init__(self, process: Process, control: Calls, pause: float) -> None:
        self._process = process
        self._pause = pause
        self._began = time.perf_counter()
        self._done: Callable[[], int] = int
        self.control = control

    def begin(self, done: Callable[[], int]) -> None:
        """Count the time from now on, and how many calls are done."""
        self._began, self._done = time.perf_counter(), done

    async def look(self) -> Sample:
        """Return how the server is at this moment."""
        counts = await self.control.call("measure")
        return Sample(
            at=time.perf_counter() - self._began,
            rss=_resident(self._process.pid),
            cpu=cpu_seconds(self._process.pid),
            calls=self._done(),
            counts=counts,
        )

    async def follow(self, samples: list[Sample], over: asyncio.Event) -> None:
        """Look again and again, until all is over."""
        while not over.is_set():
            samples.append(await self.look())
            await asyncio.sleep(self._pause)

    async def settle(self, before: Sample) -> Sample:
        """Wait until nothing is held for clients, and return what is held then."""
        until = time.perf_counter() + _SETTLES_IN
        sample = await self.look()
        while sample.held() != before.held() and time.perf_counter() < until:
            await asyncio.sleep(_POLL)
            sample = await self.look()
        return sample


def _resident(pid: int) -> int:
    """Return the resident memory of a process, in bytes."""
    pages = Path(f"/proc/{pid}/statm")
    if pages.exists():
        resident = int(pages.read_text(encoding="ascii").split()[1])
        return resident * os.sysconf("SC_PAGE_SIZE")
    told = subprocess.run(  # noqa: S603  # a number
        ["ps", "-o", "rss=", "-p", str(pid)],  # noqa: S607  # wherever it is
        capture_output=True,
        text=True,
        check=True,
    )
    return int(told.stdout) * 1024


async def _tell(
    plan: Plan,
    streams: Streams,
    calls: Calls,
    lags: list[float],
    over: asyncio.Event,
) -> None:
    """Change things, and wait each time until all streams were told."""
    began = time.perf_counter()
    for number in count(1):
        due = began + number * plan.update_every - time.perf_counter()
        with suppress(TimeoutError):
            await asyncio.wait_for(over.wait(), max(due, 0))
        if over.is_set():
            return
        item = number % plan.streams

        async def tick(item: int = item) -> None:
            await calls.call("tick", number=item)

        lags.append(await streams.announce(tick, CLOCK, ITEM.format(number=item)))
        if number % LIST_EVERY == 0:
            await streams.announce(lambda: calls.call("change_list"), TOOLS)


async def _stop(results: Results, process: Process, failures: Failures) -> None:
    """Open streams, ask the server to stop, and see them and it end."""
    streams = Streams(process.port, failures)
    await streams.open(results.plan.stopping)
    streams.may_end = True
    began = time.perf_counter()
    process.terminate()
    while process.poll() is None and time.perf_counter() - began < 2 * STOPS_IN:
        await asyncio.sleep(_POLL / 10)
    if process.poll() is not None:
        results.stopped_in = time.perf_counter() - began
        _check_ended(process, failures)
    await streams.all_ended()
    streams.close()
    results.completed = streams.ended


def _check_ended(process: Process, failures: Failures) -> None:
    """Note an end that is none of a server that was asked to stop."""
    code = process.poll()
    if code not in (0, -signal.SIGTERM):
        failures.note("the server", RuntimeError(f"it ended with {code}"))
