"""`python -m tests.bench`: measure mcpkit, its peers and the floors in one run."""

import argparse
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

from tests.bench import inprocess, sockets, startup
from tests.bench.report import Results, as_markdown
from tests.bench.samples import Samples
from tests.bench.work import CALL, WORKS

RESULTS: Final = Path(__file__).parent / "results" / "latest.json"


def measure_inprocess(options: argparse.Namespace) -> Samples:
    rounds, seconds = (5, 0.01) if options.quick else (25, 0.025)
    measuring = inprocess.measure(rounds=rounds, seconds=seconds)
    return inprocess.run(measuring, uvloop=options.uvloop)


def measure_growth(options: argparse.Namespace) -> Samples:
    rounds, seconds = (9, 0.01) if options.quick else (25, 0.025)
    measuring = inprocess.measure_growth(rounds=rounds, seconds=seconds)
    return inprocess.run(measuring, uvloop=options.uvloop)


def measure_sockets(options: argparse.Namespace) -> Samples:
    if options.quick:
        return sockets.measure(works=[CALL], rounds=2, seconds=0.5)
    return sockets.measure(works=WORKS, rounds=4, seconds=0.7)


def measure_startup(options: argparse.Namespace) -> Samples:
    rounds, servers = (5, 1) if options.quick else (15, 3)
    return startup.measure(rounds=rounds, servers=servers)


PARTS: Final[Mapping[str, Callable[[argparse.Namespace], Samples]]] = {
    "startup": measure_startup,
    "inprocess": measure_inprocess,
    "growth": measure_growth,
    "sockets": measure_sockets,
}


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, print the tables, and keep the numbers."""
    options = _parser().parse_args(arguments)
    names = PARTS if options.only is None else [options.only.replace("-", "")]
    measured = {}
    for name in names:
        sys.stderr.write(f"measuring {name} …\n")
        measured[name] = PARTS[name](options)
    results = Results(**measured)
    options.json.parent.mkdir(parents=True, exist_ok=True)
    options.json.write_text(json.dumps(results.as_json(), indent=1), encoding="utf-8")
    sys.stdout.write(as_markdown(results))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="make bench ARGS=...", description=__doc__)
    parser.add_argument(
        "--quick", action="store_true", help="a minute, and numbers that are rough"
    )
    parser.add_argument(
        "--only",
        choices=["in-process", "sockets", "growth", "startup"],
        help="one part of the run",
    )
    parser.add_argument(
        "--uvloop", action="store_true", help="use uvloop in process too"
    )
    parser.add_argument(
        "--json",
        type=Path,
        default=RESULTS,
        metavar="PATH",
        help="where the numbers are kept",
    )
    return parser


if __name__ == "__main__":
    main()
