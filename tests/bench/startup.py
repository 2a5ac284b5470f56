"""Start-up: how long an import takes, and what an idle server holds."""

import subprocess
import sys
from http.client import HTTPConnection
from pathlib import Path
from typing import Final

from tests.bench.samples import Samples
from tests.bench.sockets import ROOT, serving
from tests.bench.work import LIST

IMPORT: Final = "import, in ms"
MEMORY: Final = "idle server, in MB"

_PROBE: Final = """
import time
started = time.process_time()
import {module}
print((time.process_time() - started) * 1000)
"""
_IDLE: Final = {"mcpkit": "examples.hello:app", "fastapi": "tests.bench.idle:app"}


def measure(*, rounds: int, servers: int) -> Samples:
    """Measure `import mcpkit` and `import fastapi`, and a server of each.

    Args:
        rounds: How often each is imported, in an interpreter of its own.
        servers: How often each is served.

    Raises:
        RuntimeError: A server does not answer.
    """
    samples = Samples()
    for _ in range(rounds):
        for module in _IDLE:
            samples.add(IMPORT, module, _import_milliseconds(module))
    for _ in range(servers):
        for module, target in _IDLE.items():
            samples.add(MEMORY, module, _idle_megabytes(target))
    return samples


def _import_milliseconds(module: str) -> float:
    done = subprocess.run(  # noqa: S603  # ourselves
        [sys.executable, "-c", _PROBE.format(module=module)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    return float(done.stdout)


def _idle_megabytes(target: str) -> float:
    with serving(target) as (port, pid):
        connection = HTTPConnection("127.0.0.1", port, timeout=30)
        # Whatever is made for the first request is a part of it.
        headers = LIST.headers(f"127.0.0.1:{port}", None)
        named = {name.decode(): value.decode() for name, value in headers}
        connection.request("POST", "/mcp", LIST.body, named)
        answer = connection.getresponse()
        if answer.status != 200:
            raise RuntimeError(f"{target}: {answer.status} {answer.read()!r}")
        connection.close()
        status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
    (line,) = [line for line in status.splitlines() if line.startswith("VmRSS")]
    return int(line.split()[1]) / 1024
