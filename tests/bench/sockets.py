"""Over sockets: every subject behind its own uvicorn, on one core.

The load comes from a process on another core, over connections kept alive.
"""

import gc
import multiprocessing
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack, contextmanager
from http.client import HTTPConnection
from pathlib import Path
from random import Random
from typing import Final

from tests.bench.load import load
from tests.bench.samples import Samples
from tests.bench.subjects import SUBJECTS
from tests.bench.work import CALL, INITIALIZE, LEGACY, WORKS, Work

ROOT: Final = Path(__file__).parents[2]

_PATIENCE: Final = 60.0
_SATURATED: Final = 0.95


def cores() -> tuple[str, str]:
    """Return the core of the servers and that of the load, where there are two."""
    if not hasattr(os, "sched_getaffinity"):
        return "", ""
    allowed = sorted(os.sched_getaffinity(0))
    return (str(allowed[0]), str(allowed[1])) if len(allowed) > 1 else ("", "")


@contextmanager
def serving(target: str, cpu: str = "") -> Iterator[tuple[int, int]]:
    """Serve an application in a process of its own.

    Yields:
        Its port, and the id of its process.

    Raises:
        RuntimeError: It can't be served.
    """
    process = subprocess.Popen(  # noqa: S603  # ourselves
        [sys.executable, "-m", "tests.bench.serve", target, cpu],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        if not line:
            raise RuntimeError(f"{target} can't be served")
        yield int(line), process.pid
    finally:
        process.terminate()
        try:
            process.wait(_PATIENCE)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        if process.stdout is not None:
            process.stdout.close()


def measure(*, works: Sequence[Work] = WORKS, rounds: int, seconds: float) -> Samples:
    """Measure every subject at every kind of work, in requests a second of its core.

    Args:
        works: The kinds of work. `CALL` is measured in twice as many rounds.
        rounds: How often each is measured, in turns.
        seconds: How long each turn takes.
    """
    samples = Samples()
    server_core, load_core = cores()
    with ExitStack() as stack:
        servers = {
            key: stack.enter_context(serving(key, server_core)) for key in SUBJECTS
        }
        requests = {
            (work.name, key): (
                *servers[key],
                checked_request(servers[key][0], work, key),
            )
            for key, subject in SUBJECTS.items()
            for work in works
            if work.name not in subject.blank
        }
        pool = stack.enter_context(
            ProcessPoolExecutor(
                1,
                mp_context=multiprocessing.get_context("spawn"),
                initializer=_prepare,
                initargs=(load_core,),
            )
        )
        shares = []
        for number in range(rounds * 2):
            turns = [key for key in requests if number % 2 == 0 or key[0] == CALL.name]
            Random(number).shuffle(turns)  # noqa: S311  # the same in every run
            for key in turns:
                rate = pool.submit(load, *requests[key], seconds).result(_PATIENCE)
                samples.add(*key, rate.requests)
                shares.append(rate.share)
    disturbed = sum(share < _SATURATED for share in shares)
    if disturbed:
        samples.notes.append(
            f"In {disturbed} of {len(shares)} turns the server had less than "
            f"{_SATURATED:.0%} of its core, which brings the fast ones closer together"
        )
    return samples


def checked_request(port: int, work: Work, key: str) -> bytes:
    """Return the bytes of a request that is answered rightly.

    A legacy client opens a session first, and uses it if it is given one.

    Raises:
        RuntimeError: The answer is wrong.
    """
    session = None
    if work.version == LEGACY and not SUBJECTS[key].floor:
        session = _check(port, INITIALIZE, key, None)
    _check(port, work, key, session)
    lines = [f"POST {SUBJECTS[key].path} HTTP/1.1".encode()]
    lines += [b"%b: %b" % pair for pair in work.headers(f"127.0.0.1:{port}", session)]
    return b"\r\n".join([*lines, b"", work.body])


def _check(port: int, work: Work, key: str, session: bytes | None) -> bytes | None:
    headers = work.headers(f"127.0.0.1:{port}", session)
    connection = HTTPConnection("127.0.0.1", port, timeout=_PATIENCE)
    connection.request(
        "POST",
        SUBJECTS[key].path,
        work.body,
        {name.decode(): value.decode() for name, value in headers},
    )
    response = connection.getresponse()
    fault = work.fault(response.status, response.read())
    connection.close()
    if fault is not None:
        raise RuntimeError(f"{key}, {work.name}: {fault}")
    opened = response.getheader("mcp-session-id")
    return None if opened is None else opened.encode()


def _prepare(cpu: str) -> None:
    """Make the most of the process of the load."""
    gc.disable()
    if cpu:
        os.sched_setaffinity(0, {int(cpu)})
