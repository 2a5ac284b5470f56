"""`python -m tests.soak.kills`: workers are killed at random, and no task is lost.

Some workers share a store, and nothing else. A client has tasks begun, looks at them
and answers what they ask, each time at another worker, while one worker after the other
is killed by SIGKILL and started again. Now and then one is stopped for longer than its
tasks are held for it, and goes on when others run them. At the end:

    each task that was acknowledged is found, and has ended
    nothing that is done once was done twice, and nothing of a completed task is missing
    one that failed says how: its worker was interrupted, or that step of it was
    those of workers that were left alone have completed
"""

import argparse
import asyncio
import random
import secrets
import sqlite3
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import httpx

from tests.soak.workers import ENDED, Cluster, Worker, cluster

INTERRUPTED: Final = "The server was interrupted"
"""What a task fails with whose worker is gone, and that can't be run again."""

_COLOURS: Final = ("red", "green", "blue")
_LOOK_EVERY: Final = 0.15
_SETTLES_IN: Final = 30.0
"""Within how many seconds after the last kill all tasks must have ended."""

_SHOWN: Final = 4000


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What is done.

    Attributes:
        kills: How many workers are killed.
        seed: Makes the moments and the tasks what they are.
        workers: How many there are at once.
        lease: The lease of a task, in seconds.
        tasks: How many tasks are under way at once.
        pause: How long it is from one kill to the next, in seconds, at most.
        stalls: How many kills there are to a worker that is held up.
    """

    kills: int = 200
    seed: int = 0
    workers: int = 3
    lease: float = 1.5
    tasks: int = 12
    pause: float = 2.0
    stalls: int = 4


QUICK: Final = Plan(kills=8, lease=2.5, tasks=8, pause=1.5)
"""A short form."""


@dataclass(slots=True, kw_only=True)
class Errand:
    """A task, and what the client knows of it.

    Attributes:
        name: Its name.
        tool: What runs it.
        steps: How many steps it has.
        colour: What the client answers; `None` when it is asked nothing.
        task_id: Its id.
        worker: Who acknowledged it.
        ended: How it stood at its end.
        was_harmed: Its worker was, before it was seen to have ended.
    """

    name: str
    tool: str
    steps: int
    colour: str | None
    task_id: str
    worker: Worker | None = field(default=None, repr=False)
    ended: dict[str, Any] = field(default_factory=dict)
    was_harmed: bool = False


@dataclass(slots=True, kw_only=True)
class Results:
    """What was seen.

    Attributes:
        plan: What was done.
        seconds: How long it took.
        settled: How long it took until all tasks had ended, after the last kill.
        errands: The tasks that were acknowledged.
        counts: What became of them, and how often.
        faults: What is not as it should be.
    """

    plan: Plan
    seconds: float = 0.0
    settled: float = 0.0
    errands: list[Errand] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)


async def kill(plan: Plan, directory: Path) -> Results:
    """Kill workers at random, and return what became of their tasks.

    Args:
        plan: How often, and of how many.
        directory: Where the store is.
    """
    results = Results(plan=plan)
    began = time.monotonic()
    async with cluster(directory, lease=plan.lease) as workers:
        try:
            await _Run(plan, workers, results).go()
        except* (AssertionError, TimeoutError) as group:
            # What else is wrong may say why.
            results.faults += [repr(error) for error in group.exceptions]
        results.seconds = time.monotonic() - began
        _check(results, workers)
    return results


class _Run:
    def __init__(self, plan: Plan, workers: Cluster, results: Results) -> None:
        self._plan = plan
        self._cluster = workers
        self._results = results
        # Two of them, so that how many tasks there are does not move the kills.
        self._moments = random.Random(plan.seed)  # noqa: S311  # not for secrets
        self._tasks = random.Random(plan.seed + 1)  # noqa: S311
        self._workers: list[Worker] = []
        self._starting: set[asyncio.Task[None]] = set()
        self._stalled: list[asyncio.Task[None]] = []
        self._is_over = False

    async def go(self) -> None:
        """Kill, and have all come to an end."""
        for _ in range(self._plan.workers):
            await self._start()
        await asyncio.gather(*self._starting)
        async with asyncio.TaskGroup() as group:
            numbers = range(self._plan.tasks)
            busy = [group.create_task(self._keep_busy(number)) for number in numbers]
            await self._kill()
            self._is_over = True
            last = time.monotonic()
            async with asyncio.timeout(_SETTLES_IN):
                await asyncio.wait(busy)
        self._results.settled = time.monotonic() - last
        for worker in self._workers:
            code = await worker.terminate()
            if code not in (0, -15):
                self._results.faults.append(f"a worker ended with {code}")

    async def _kill(self) -> None:
        for number in range(self._plan.kills):
            await asyncio.sleep(self._moments.uniform(0, self._plan.pause))
            victim = self._moments.randrange(len(self._workers))
            self._workers.pop(victim).kill()
            await self._start()
            if number % self._plan.stalls == 0:
                self._hold_up(self._moments.choice(self._workers))
        await asyncio.gather(*self._starting)
        await asyncio.gather(*self._stalled)

    def _hold_up(self, worker: Worker) -> None:
        """Stop a worker for longer than its tasks are held."""
        worker.hold_up()
        self._results.counts["workers held up"] += 1
        seconds = self._plan.lease * self._moments.uniform(1, 2)

        async def go_on() -> None:
            await asyncio.sleep(seconds)
            worker.go_on()

        self._stalled.append(asyncio.create_task(go_on()))

    async def _start(self) -> None:
        worker = await self._cluster.start()
        self._workers.append(worker)
        starting = asyncio.create_task(worker.ready())
        self._starting.add(starting)
        starting.add_done_callback(self._starting.discard)

    async def _keep_busy(self, number: int) -> None:
        laps = 0
        while not self._is_over:
            laps += 1
            errand = await self._begin(f"{number}.{laps}")
            if errand is not None:
                self._results.errands.append(errand)
                await self._follow(errand)

    async def _begin(self, name: str) -> Errand | None:
        """Have a task begun; `None` when nobody acknowledged it."""
        chance = self._tasks
        tool = "errand" if chance.random() < 2 / 3 else "chore"
        steps = chance.randint(2, 5)
        ask_at = chance.randrange(steps) if chance.random() < 1 / 2 else -1
        pause, effect = chance.uniform(0, 0.5), chance.uniform(0, 0.1)
        worker = await self._any()
        try:
            task_id = await self._cluster.begin(
                worker,
                tool,
                name=name,
                steps=steps,
                ask_at=ask_at,
                pause=pause,
                effect=effect,
            )
        except httpx.TransportError:
            return None
        return Errand(
            name=name,
            tool=tool,
            steps=steps,
            colour=None if ask_at < 0 else chance.choice(_COLOURS),
            task_id=task_id,
            worker=worker,
        )

    async def _follow(self, errand: Errand) -> None:
        """Look at a task at any worker, and answer it, until it has ended."""
        while not errand.ended:
            await asyncio.sleep(_LOOK_EVERY)
            try:
                await self._look(errand, await self._any())
            except httpx.TransportError:
                continue

    async def _look(self, errand: Errand, worker: Worker) -> None:
        task = await self._cluster.get(worker, errand.task_id)
        if task["status"] in ENDED:
            errand.ended = task
            errand.was_harmed = errand.worker is None or errand.worker.is_harmed
        elif task["status"] == "input_required":
            assert errand.colour is not None
            await self._cluster.answer(await self._any(), task, errand.colour)

    async def _any(self) -> Worker:
        """Return a worker that accepts connections, or did a moment ago."""
        while True:
            ready = [worker for worker in self._workers if worker.port]
            if ready:
                return self._tasks.choice(ready)
            await asyncio.sleep(_LOOK_EVERY)


def _check(results: Results, workers: Cluster) -> None:
    """Count what became of the tasks, and note what is not as it should be."""
    noted: dict[str, list[tuple[str, str]]] = {}
    for name, step, process in workers.noted():
        noted.setdefault(name, []).append((step, process))
    for name, lines in noted.items():
        if len({step for step, _ in lines}) < len(lines):
            results.faults.append(f"{name}: done twice: {lines}")
    for errand in results.errands:
        lines = noted.get(errand.name, [])
        outcome = outcome_of(errand, [step for step, _ in lines])
        if outcome is None:
            results.faults.append(f"{errand}: {lines}")
            continue
        results.counts[f"{errand.tool}: {outcome}"] += 1
        results.counts["done by several workers"] += len(set(dict(lines).values())) > 1
    results.faults += _left(workers, {errand.task_id for errand in results.errands})
    if "Traceback" in workers.said():
        results.faults.append(workers.said()[-_SHOWN:])


def _left(workers: Cluster, acknowledged: set[str]) -> list[str]:
    """Return what is wrong with the store."""
    with closing(sqlite3.connect(workers.store)) as connection:
        found = connection.execute("PRAGMA integrity_check").fetchall()
        left = connection.execute(
            "SELECT task_id, status, request FROM tasks WHERE ended = 0"
        ).fetchall()
    broken = [] if found == [("ok",)] else [f"the store is broken: {found}"]
    return broken + [
        f"it has not ended: {row}"
        for row in left
        # Nobody answers one that nobody was told of.
        if row[0] in acknowledged or row[1] != "input_required"
    ]


def outcome_of(errand: Errand, steps: list[str]) -> str | None:
    """Return what became of a task; `None` if that can't be."""
    ended, every = errand.ended, [f"step-{number}" for number in range(errand.steps)]
    if ended.get("status") == "completed":
        came_to = {"steps": every, "colour": errand.colour}
        is_right = ended["result"].get("structuredContent") == came_to
        return "completed" if is_right and steps == every else None
    error, done = ended.get("error", {}), len(steps)
    # Of a step that was interrupted nobody knows whether it was done.
    in_the_middle = [
        f"{INTERRUPTED} in the middle of {step!r}"
        for step in every[max(done - 1, 0) : done + 1]
    ]
    expected = {"errand": in_the_middle, "chore": [INTERRUPTED]}[errand.tool]
    is_right = (
        errand.was_harmed
        and steps == every[:done]
        and error.get("code") == -32603
        and error.get("message") in expected
    )
    return "failed" if is_right else None


def as_text(results: Results) -> str:
    """Return what a person reads."""
    plan = results.plan
    lines = [
        f"seed {plan.seed}: {plan.kills} kills of {plan.workers} workers,"
        f" a lease of {plan.lease:g} s",
        f"{len(results.errands)} tasks in {results.seconds:.1f} s,"
        f" the last of them ended {results.settled:.1f} s after the last kill",
        *(f"{number:6} {what}" for what, number in sorted(results.counts.items())),
        *(f"BROKEN {fault}" for fault in results.faults),
    ]
    return "\n".join(lines) + "\n"


def main(arguments: Sequence[str] | None = None) -> int:
    """Kill workers, print what became of tasks, and return 1 if one was lost."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=Plan().kills, help="how many")
    parser.add_argument("--seed", type=int, help="the same moments again")
    parser.add_argument("--quick", action="store_true", help="a short form")
    options = parser.parse_args(arguments)
    seed = secrets.randbelow(10**6) if options.seed is None else options.seed
    plan = QUICK if options.quick else Plan(kills=options.kills)
    # At once, since it may not come to its end.
    sys.stdout.write(f"seed {seed}\n")
    sys.stdout.flush()
    with tempfile.TemporaryDirectory() as directory:
        results = asyncio.run(kill(replace(plan, seed=seed), Path(directory)))
    sys.stdout.write(as_text(results))
    return 1 if results.faults else 0


if __name__ == "__main__":
    sys.exit(main())
