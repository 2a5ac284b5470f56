"""Programs that the tests start: a server, and what speaks to it from outside."""

import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NoReturn

import pytest

ROOT: Final = Path(__file__).parent.parent.parent

_LISTENING: Final = re.compile(r"running on (http://127\.0\.0\.1:\d+) ")
_START_SECONDS: Final = 30


@contextmanager
def serving(target: str) -> Iterator[str]:
    """Serve an app as `uvicorn TARGET` does, and yield the address of its endpoint.

    The port is one that the system picked. When the block ends so does the
    server, which must not have logged a traceback.
    """
    command = [sys.executable, "-m", "uvicorn", target, "--port", "0"]
    with subprocess.Popen(  # noqa: S603  # the command is ours
        [*command, "--no-access-log"], cwd=ROOT, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr is not None
        log: list[str] = []
        # A server that never comes up ends here, and so does the wait for it.
        watch = threading.Timer(_START_SECONDS, process.kill)
        watch.start()
        for line in process.stderr:
            log.append(line)
            if found := _LISTENING.search(line):
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
