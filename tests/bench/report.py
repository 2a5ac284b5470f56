"""The results as JSON and as Markdown, and the targets they are held against."""

import os
import platform
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

from tests.bench.inprocess import GROWTH
from tests.bench.samples import Samples, Summary
from tests.bench.startup import IMPORT, MEMORY
from tests.bench.subjects import SUBJECTS
from tests.bench.work import CALL, DISCOVER, LEGACY_CALL, LIST, WORKS

_LIBRARIES: Final = (
    "mcpkit",
    "fastapi",
    "starlette",
    "pydantic-core",
    "uvicorn",
    "uvloop",
    "httptools",
    "mcp",
    "fastmcp",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Results:
    """What one run measured, each part `None` where it was left out.

    Attributes:
        inprocess: Microseconds a request.
        sockets: Requests a second.
        growth: Microseconds a request, by method and number of tools.
        startup: Milliseconds of an import, megabytes of a server.
    """

    inprocess: Samples | None = None
    sockets: Samples | None = None
    growth: Samples | None = None
    startup: Samples | None = None

    def as_json(self) -> dict[str, Any]:
        """Return the results for a file."""
        parts = {
            name: None if part is None else part.values
            for name, part in self._parts().items()
        }
        return {
            "machine": machine(),
            **parts,
            "targets": [
                {
                    "target": target.name,
                    "asked": target.asked,
                    **_measured(self, target),
                }
                for target in TARGETS
            ],
        }

    def _parts(self) -> dict[str, Samples | None]:
        return {
            "inprocess": self.inprocess,
            "sockets": self.sockets,
            "growth": self.growth,
            "startup": self.startup,
        }


def machine() -> dict[str, str]:
    """Describe the machine and the libraries."""
    return {
        "CPU": f"{_cpu()}, {os.cpu_count()} cores",
        "Python": f"{platform.python_version()}, {platform.system()}",
        **{name: version(name) for name in _LIBRARIES},
    }


def _cpu() -> str:
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.machine()


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """What is asked of mcpkit.

    Attributes:
        name: What is measured.
        asked: The bound, as the table says it.
        measure: Takes it out of the results.
        holds: Whether a value keeps the bound.
    """

    name: str
    asked: str
    measure: Callable[[Results], Summary | None]
    holds: Callable[[float], bool]


def _at_most(bound: float) -> dict[str, Any]:
    return {"asked": f"≤ {bound:g}", "holds": lambda value: value <= bound}


def _at_least(bound: float) -> dict[str, Any]:
    return {"asked": f"≥ {bound:g}", "holds": lambda value: value >= bound}


def _ratio(
    part: str, over: tuple[str, str], under: tuple[str, str]
) -> Callable[[Results], Summary | None]:
    def measure(results: Results) -> Summary | None:
        samples: Samples | None = getattr(results, part)
        return None if samples is None else samples.ratio(over, under)

    return measure


def _more_memory(results: Results) -> Summary | None:
    if results.startup is None:
        return None
    return results.startup.difference((MEMORY, "mcpkit"), (MEMORY, "fastapi"))


_CALL, _LEGACY = CALL.name, LEGACY_CALL.name

_READING: Final = (
    "Times are of the processor, and rates over it: on an idle machine those of the "
    "clock. ±: half the distance of the quartiles. Ratios are medians of the rounds."
)

TARGETS: Final[Sequence[Target]] = (
    Target(
        name="in process: call, time over the bare floor's",
        measure=_ratio("inprocess", (_CALL, "mcpkit"), (_CALL, "bare")),
        **_at_most(2.5),
    ),
    Target(
        name="in process: call, the SDK's time over mcpkit's",
        measure=_ratio("inprocess", (_CALL, "sdk"), (_CALL, "mcpkit")),
        **_at_least(20),
    ),
    Target(
        name="in process: legacy call, the SDK's time over mcpkit's",
        measure=_ratio("inprocess", (_LEGACY, "sdk"), (_LEGACY, "mcpkit")),
        **_at_least(20),
    ),
    Target(
        name="in process: list of 50, time over a call's",
        measure=_ratio("inprocess", (LIST.name, "mcpkit"), (_CALL, "mcpkit")),
        **_at_most(1),
    ),
    Target(
        name="in process: discover, time over a call's",
        measure=_ratio("inprocess", (DISCOVER.name, "mcpkit"), (_CALL, "mcpkit")),
        **_at_most(1),
    ),
    Target(
        name="sockets: call, standalone, rate over the bare floor's",
        measure=_ratio("sockets", (_CALL, "mcpkit"), (_CALL, "bare")),
        **_at_least(0.85),
    ),
    Target(
        name="sockets: call, mounted, rate over the bare floor's",
        measure=_ratio("sockets", (_CALL, "mounted"), (_CALL, "bare")),
        **_at_least(0.75),
    ),
    Target(
        name="sockets: call, include_router, rate over a FastAPI endpoint's",
        measure=_ratio("sockets", (_CALL, "router"), (_CALL, "fastapi")),
        **_at_least(0.9),
    ),
    Target(
        name="sockets: the same, over a FastAPI endpoint's under include_router",
        measure=_ratio("sockets", (_CALL, "router"), (_CALL, "fastapi_router")),
        **_at_least(0.9),
    ),
    Target(
        name="sockets: call, rate over the SDK's",
        measure=_ratio("sockets", (_CALL, "mcpkit"), (_CALL, "sdk")),
        **_at_least(8),
    ),
    Target(
        name="sockets: call, rate over FastMCP's",
        measure=_ratio("sockets", (_CALL, "mcpkit"), (_CALL, "fastmcp")),
        **_at_least(20),
    ),
    Target(
        name="sockets: legacy call, rate over the SDK's",
        measure=_ratio("sockets", (_LEGACY, "mcpkit"), (_LEGACY, "sdk")),
        **_at_least(8),
    ),
    Target(
        name="sockets: legacy call, rate over FastMCP's",
        measure=_ratio("sockets", (_LEGACY, "mcpkit"), (_LEGACY, "fastmcp")),
        **_at_least(20),
    ),
    Target(
        name="growth: call with 1,000 tools, time over that with 1",
        measure=_ratio(
            "growth", (CALL.method, str(GROWTH[-1])), (CALL.method, str(GROWTH[0]))
        ),
        **_at_most(1.1),
    ),
    Target(
        name="start-up: import mcpkit, time over import fastapi",
        measure=_ratio("startup", (IMPORT, "mcpkit"), (IMPORT, "fastapi")),
        **_at_most(1.2),
    ),
    Target(
        name="start-up: idle server, MB more than FastAPI's",
        measure=_more_memory,
        **_at_most(15),
    ),
)
"""What is asked of mcpkit, a row each."""


def _measured(results: Results, target: Target) -> dict[str, Any]:
    summary = target.measure(results)
    if summary is None:
        return {"measured": None}
    return {
        "measured": summary.median,
        "quartiles": [summary.low, summary.high],
        "holds": target.holds(summary.median),
    }


def as_markdown(results: Results) -> str:
    """Return the results as Markdown tables."""
    sections = [_section_of_targets(results)]
    if results.inprocess is not None:
        title = "In process: microseconds a request (times the bare floor's)"
        sections.append(_section_of_works(title, results.inprocess))
    if results.sockets is not None:
        title = "Over sockets: requests a second of a core (parts of the bare floor's)"
        sections.append(_section_of_works(title, results.sockets))
    if results.growth is not None:
        sections.append(_section_of_growth(results.growth))
    if results.startup is not None:
        sections.append(_section_of_startup(results.startup))
    described = ", ".join(f"{name} {value}" for name, value in machine().items())
    sections.append(f"{described}.\n{_READING}")
    return "\n\n".join(sections) + "\n"


def _section_of_targets(results: Results) -> str:
    rows = []
    for target in TARGETS:
        summary = target.measure(results)
        if summary is not None:
            verdict = "ok" if target.holds(summary.median) else "missed"
            shown = f"{summary.median:.2f} ({summary.low:.2f} to {summary.high:.2f})"
            rows.append([target.name, target.asked, shown, verdict])
    heads = ["target", "asked", "measured (quartiles)", ""]
    return _section("Targets", heads, rows)


def _section_of_works(title: str, samples: Samples) -> str:
    works = [work.name for work in WORKS if work.name in samples.values]
    notes = dict.fromkeys(samples.notes)
    rows = []
    for key, subject in SUBJECTS.items():
        cells = []
        for work in works:
            cells.append(_cell(samples, work, key))
            if work in subject.blank:
                notes[f"{subject.name}: {subject.blank[work]}"] = None
        rows.append([subject.name, *cells])
    table = _section(title, ["", *works], rows)
    return "\n".join([table, *(f"\n{note}." for note in notes)])


def _cell(samples: Samples, work: str, key: str) -> str:
    summary = samples.get(work, key)
    if summary is None:
        return ""
    shown = f"{_number(summary.median)} ±{summary.spread:.0%}"
    ratio = samples.ratio((work, key), (work, "bare"))
    if ratio is None or key == "bare":
        return shown
    return f"{shown} ({_number(ratio.median)})"


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _section_of_growth(samples: Samples) -> str:
    rows = []
    for work in (CALL, LIST):
        cells = []
        for count in GROWTH:
            summary = samples.get(work.method, str(count))
            cells.append("" if summary is None else _spread(summary))
        rows.append([work.method, *cells])
    heads = ["", *(f"{count:,}" for count in GROWTH)]
    return _section("Growth: microseconds a request, by number of tools", heads, rows)


def _section_of_startup(samples: Samples) -> str:
    rows = []
    for work in (IMPORT, MEMORY):
        cells = []
        for key in ("mcpkit", "fastapi"):
            summary = samples.get(work, key)
            cells.append("" if summary is None else _spread(summary))
        rows.append([work, *cells])
    return _section("Start-up", ["", "mcpkit", "FastAPI"], rows)


def _spread(summary: Summary) -> str:
    return f"{_number(summary.median)} ±{summary.spread:.0%}"


def _section(title: str, heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [heads, ["---", *("---:" for _ in heads[1:])], *rows]
    table = "\n".join(f"| {' | '.join(cells)} |" for cells in lines)
    return f"### {title}\n\n{table}"
