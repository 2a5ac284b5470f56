"""`python -m tests.soak`: streams and calls, for minutes, with flat memory; and kills.

The streams come first, and then workers are killed, over whose end no task is lost.
"""

import argparse
import asyncio
import resource
import sys
from collections.abc import Sequence
from typing import Final

import uvloop

from tests.soak import kills
from tests.soak.report import Plan, as_text, checks
from tests.soak.run import soak
from tests.soak.serve import serving

QUICK: Final = Plan(streams=100, rate=50, seconds=12, warm_up=4, growth=0.03)
"""A short form: enough to see that all is there, and a leak that is not small."""

_SPARE_FDS: Final = 500


def main(arguments: Sequence[str] | None = None) -> int:
    """Soak a server, kill others, print what was seen, and return 1 if all is not well.

    Args:
        arguments: Those of the command line.
    """
    options = _parser().parse_args(arguments)
    code = 0 if options.only == "kills" else _soak(_plan(options))
    if options.only != "streams":
        code |= kills.main(["--quick"] if options.quick else [])
    return code


def _soak(plan: Plan) -> int:
    _allow_fds(plan.streams + _SPARE_FDS)
    with (
        serving() as process,
        asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner,
    ):
        results = runner.run(soak(plan, process))
    sys.stdout.write(as_text(results))
    return 0 if all(check.holds for check in checks(results)) else 1


def _plan(options: argparse.Namespace) -> Plan:
    if options.quick:
        return QUICK
    seconds = options.minutes * 60
    return Plan(
        streams=options.streams,
        rate=options.rate,
        seconds=seconds,
        warm_up=min(60, seconds / 3),
        update_every=options.update_every,
    )


def _allow_fds(needed: int) -> None:
    """Raise the limit of open files, here and for the server, as far as it goes."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < needed:
        raise SystemExit(f"{needed} open files are needed, and `ulimit -n` is {hard}")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, needed), hard))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="make soak ARGS=...", description=__doc__)
    plan = Plan()
    parser.add_argument(
        "--minutes", type=float, default=plan.seconds / 60, help="how long"
    )
    parser.add_argument(
        "--streams", type=int, default=plan.streams, help="how many are open"
    )
    parser.add_argument("--rate", type=float, default=plan.rate, help="calls a second")
    parser.add_argument(
        "--update-every",
        type=float,
        default=plan.update_every,
        metavar="SECONDS",
        help="how often all streams are told of an update",
    )
    parser.add_argument(
        "--only", choices=["streams", "kills"], help="one of the two parts"
    )
    parser.add_argument(
        "--quick", action="store_true", help="a short form, and nothing else counts"
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
