"""What a soak has seen, what is asked of it, and the tables that a person reads."""

import platform
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from os import getloadavg
from statistics import linear_regression, mean, quantiles
from typing import Final

HELD: Final = ("tasks", "fds", "subscriptions", "running", "questions")
"""What is held for clients, and is as before when they have gone."""

STOPS_IN: Final = 3.0
"""How long a server with open streams may take to stop, in seconds."""

MOST_MEMORY: Final = 400.0
"""How much a server may hold, in MB, with 10,000 streams."""

_ROWS: Final = 24
_MB: Final = 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What is done.

    Attributes:
        streams: How many streams are open.
        rate: How many calls are made a second.
        seconds: How long.
        warm_up: How much of that goes by before memory must be flat, in seconds.
        update_every: How often all streams are told of an update, in seconds.
        growth: By which part of itself memory may grow after that.
        megabytes: By how many MB it may at most.
        stopping: How many streams are open when the server is asked to stop.
    """

    streams: int = 1000
    rate: float = 200
    seconds: float = 300
    warm_up: float = 60
    update_every: float = 1
    growth: float = 0.05
    megabytes: float = 8
    stopping: int = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """The server at one moment.

    Attributes:
        at: When, in seconds since the load began.
        rss: Its resident memory, in bytes.
        cpu: The processor time it has taken, in seconds.
        calls: How many calls were answered by then.
        counts: What the app counts itself.
    """

    at: float
    rss: int
    cpu: float
    calls: int
    counts: Mapping[str, int]

    def held(self) -> dict[str, int]:
        """Return how much is held for clients."""
        return {name: self.counts[name] for name in HELD}


@dataclass(slots=True, kw_only=True)
class Results:
    """What was seen.

    Attributes:
        plan: What was to be done.
        before: The server before anything was opened.
        opened: The same when the streams had just been opened.
        samples: The same while it was loaded.
        after: The same when all clients had gone.
        seconds: How long calls took, by kind.
        cancelled: How many handlers were left alone.
        lags: How long it took until all streams were told of a change, in seconds.
        told: How many messages the streams were sent that they were due.
        failures: What went wrong, and how often.
        stopped_in: How long it took to stop, in seconds; `None` if it did not.
        completed: How many streams ended with their completion result then.
        said: What the server wrote to its log.
    """

    plan: Plan
    before: Sample
    opened: Sample
    samples: Sequence[Sample]
    after: Sample
    seconds: Mapping[str, Sequence[float]]
    cancelled: int
    lags: Sequence[float]
    told: int
    failures: Mapping[str, int] = field(default_factory=dict)
    stopped_in: float | None = None
    completed: int = 0
    said: str = ""

    @property
    def calls(self) -> int:
        """How many calls were answered well."""
        return sum(map(len, self.seconds.values()))


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that is asked.

    Attributes:
        name: What is looked at.
        asked: The bound.
        measured: What it was.
        holds: Whether that is within it.
    """

    name: str
    asked: str
    measured: str
    holds: bool


def growth(points: Sequence[tuple[float, float]]) -> float:
    """Return by how much a line through points rises from the first to the last."""
    times = [at for at, _ in points]
    slope, _ = linear_regression(times, [value for _, value in points])
    return float(slope) * (times[-1] - times[0])


def checks(results: Results) -> list[Check]:
    """Return what is asked, and whether it holds."""
    plan = results.plan
    errors = sum(results.failures.values())
    wanted, rounds = plan.rate * plan.seconds, plan.seconds / plan.update_every - 1
    counts = results.after.counts
    peak = max(sample.rss for sample in results.samples) / _MB
    return [
        Check("errors", "0", str(errors), errors == 0),
        _at_least("calls answered well", 0.95 * wanted, results.calls),
        _at_least("changes told to all streams", 0.9 * rounds, len(results.lags)),
        *_flat(results),
        _at_most("peak memory, MB", MOST_MEMORY, peak),
        _same("handlers left alone: begun", results.cancelled, counts["begun"]),
        _same("handlers left alone: ended", results.cancelled, counts["ended"]),
        *(
            _same(f"{name} when all have gone", before, results.after.held()[name])
            for name, before in results.before.held().items()
        ),
        _same("streams completed at the stop", plan.stopping, results.completed),
        _stopped(results.stopped_in),
        Check("lines of the server's log", "0", *_said(results.said)),
    ]


def _at_least(name: str, bound: float, measured: float) -> Check:
    return Check(name, f"≥ {bound:,.0f}", f"{measured:,.0f}", measured >= bound)


def _at_most(name: str, bound: float, measured: float) -> Check:
    return Check(name, f"≤ {bound:,.0f}", f"{measured:,.0f}", measured <= bound)


def _same(name: str, expected: int, measured: int) -> Check:
    return Check(name, f"{expected:,}", f"{measured:,}", measured == expected)


def _stopped(seconds: float | None) -> Check:
    measured = "never" if seconds is None else f"{seconds:.2f}"
    holds = seconds is not None and seconds <= STOPS_IN
    return Check("seconds until it stopped", f"≤ {STOPS_IN:g}", measured, holds)


def _said(said: str) -> tuple[str, bool]:
    lines = len(said.splitlines())
    return str(lines), lines == 0


def _flat(results: Results) -> Iterator[Check]:
    """Return what is asked of what must not grow."""
    plan = results.plan
    for name, most, points in (
        ("memory, MB", plan.megabytes, _memory(results)),
        ("Python's memory blocks, thousands", float("inf"), _blocks(results)),
    ):
        bound = min(most, plan.growth * mean(value for _, value in points))
        measured = growth(points)
        asked = f"< {bound:.1f}"
        yield Check(f"growth of {name}", asked, f"{measured:+.2f}", measured < bound)


def _memory(results: Results) -> list[tuple[float, float]]:
    return [(sample.at, sample.rss / _MB) for sample in _warm(results)]


def _blocks(results: Results) -> list[tuple[float, float]]:
    return [(sample.at, sample.counts["blocks"] / 1000) for sample in _warm(results)]


def _warm(results: Results) -> list[Sample]:
    return [each for each in results.samples if each.at >= results.plan.warm_up]


def as_text(results: Results) -> str:
    """Return all that was seen, for people."""
    return "\n\n".join(
        [
            _heading(results),
            _table(_course(results)),
            _table(_latencies(results)),
            _table(_costs(results)),
            _table(_checks(results)),
            *_complaints(results),
            "",
        ]
    )


def _heading(results: Results) -> str:
    plan = results.plan
    return (
        f"{plan.streams:,} streams, {plan.rate:g} calls a second, "
        f"{plan.seconds:g} seconds, an update every {plan.update_every:g} s.\n"
        f"uvicorn {version('uvicorn')}, one worker; uvloop {version('uvloop')}; "
        f"Python {platform.python_version()}, {platform.system()}."
    )


def _course(results: Results) -> Iterator[Sequence[str]]:
    yield (
        "second",
        "memory, MB",
        "blocks, k",
        *HELD,
        "cores",
        "calls/s",
    )
    samples = results.samples
    last = results.opened
    step = -(-len(samples) // _ROWS)
    for sample in samples[step - 1 :: step]:
        yield _row(sample, last)
        last = sample
    yield ("gone", *_row(results.after, last)[1:-2], "", "")


def _row(sample: Sample, last: Sample) -> Sequence[str]:
    seconds = sample.at - last.at or 1
    return (
        f"{sample.at:.0f}",
        f"{sample.rss / _MB:.1f}",
        f"{sample.counts['blocks'] / 1000:.1f}",
        *map(str, sample.held().values()),
        f"{(sample.cpu - last.cpu) / seconds:.2f}",
        f"{(sample.calls - last.calls) / seconds:.0f}",
    )


def _latencies(results: Results) -> Iterator[Sequence[str]]:
    yield "call, milliseconds since due", "count", "median", "99 %", "longest"
    named = {**results.seconds, "a change, told to all streams": results.lags}
    for name, seconds in named.items():
        if len(seconds) > 1:
            hundredths = quantiles(seconds, n=100, method="inclusive")
            shown = (hundredths[49], hundredths[98], max(seconds))
            yield name, f"{len(seconds):,}", *(f"{each * 1000:.1f}" for each in shown)


def _costs(results: Results) -> Iterator[Sequence[str]]:
    plan, warm = results.plan, _warm(results)
    first, last = warm[0], warm[-1]
    before = results.before.rss
    opened = (results.opened.rss - before) / 1024 / plan.streams
    peak = (max(sample.rss for sample in warm) - before) / 1024 / plan.streams
    kept = growth(_blocks(results)) * 1000 / max(last.calls - first.calls, 1)
    cores = (last.cpu - first.cpu) / (last.at - first.at)
    yield "cost", ""
    yield "memory before, MB", f"{before / _MB:.1f}"
    yield "memory a stream, just opened, KB", f"{opened:.1f}"
    yield "memory a stream, with all that goes on, KB", f"{peak:.1f}"
    yield "memory blocks that a call leaves", f"{kept:.2f}"
    yield "messages to streams", f"{results.told:,}"
    yield "cores used by the server", f"{cores:.2f}"
    yield "load of the machine, 5 minutes", f"{getloadavg()[1]:.1f}"


def _checks(results: Results) -> Iterator[Sequence[str]]:
    yield "check", "asked", "measured", ""
    for check in checks(results):
        verdict = "ok" if check.holds else "BROKEN"
        yield check.name, check.asked, check.measured, verdict


def _complaints(results: Results) -> Iterator[str]:
    if results.failures:
        lines = [f"{count:,} times: {what}" for what, count in results.failures.items()]
        yield "What went wrong:\n" + "\n".join(lines[:_ROWS])
    if results.said:
        yield f"What the server said:\n{results.said}"


def _table(rows: Iterable[Sequence[str]]) -> str:
    """Return rows as Markdown, the first as its head, in columns that line up."""
    head, *body = [list(row) for row in rows]
    widths = [max(map(len, column)) for column in zip(head, *body, strict=True)]
    rule = ["-" * width for width in widths]
    return "\n".join(
        "| " + " | ".join(map(str.ljust, row, widths)) + " |"
        for row in (head, rule, *body)
    )
