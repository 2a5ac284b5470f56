"""Programs that the tests start: a server, and what speaks to it from outside."""

import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NoReturn

import pytest

ROOT: Final = Path(__file__).parent.parent.parent

_LISTENING: Final = re.compile(r"running on (http://127\.0\.0\.1:\d+) ")
_READY: Final = "Application startup complete"
_START_SECONDS: Final = 30


@contextmanager
def serving(
    target: str, *, workers: int = 1, environment: Mapping[str, str] = os.environ
) -> Iterator[str]:
    """Serve an app as `uvicorn TARGET` does, and yield the address of its endpoint.

    The port is one that the system picked, and all workers are there. When the block
    ends so does the server, which must not have logged a traceback.
    """
    command = [sys.executable, "-m", "uvicorn", target, "--port", "0"]
    command += ["--no-access-log", "--workers", str(workers)]
    with subprocess.Popen(  # noqa: S603  # the command is ours
        command, cwd=ROOT, env=environment, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr is not None
        log: list[str] = []
        # A server that never comes up ends here, and so does the wait for it.
        watch = threading.Timer(_START_SECONDS, process.kill)
        watch.start()
        found, ready = None, 0
        for line in process.stderr:
            log.append(line)
            found = found or _LISTENING.search(line)
            ready += _READY in line
            if found and ready == workers:
                break
        watch.cancel()
        assert found is not None, "".join(log)
        drain = threading.Thread(target=log.extend, args=[process.stderr])
        drain.start()
        try:
            yield f"{found[1]}/mcp"
        finally:
            process.terminate()
            drain.join()
    assert "Traceback" not in "".join(log), "".join(log)


def missing(what: str) -> NoReturn:
    """Skip a test for want of a program, or fail where nothing may be missing."""
    reason = f"{what} is missing: run `make install`"
    if os.environ.get("CI") == "true":
        pytest.fail(reason)
    pytest.skip(reason)
