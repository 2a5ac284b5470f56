"""The server of a soak: one uvicorn worker on the loopback, in a process of its own.

`python -m tests.soak.serve` prints the port, which the system chooses, when it
accepts connections.
"""

import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Final

import uvicorn

ROOT: Final = Path(__file__).parents[2]

KEEP_ALIVE: Final = 600
"""How long an idle connection is kept, in seconds: no client here uses one later."""

_PATIENCE: Final = 10.0
_SHOWN: Final = 4000


class Process:
    """A server process.

    Attributes:
        port: Where it listens.
        pid: Its id.
    """

    def __init__(self, popen: "subprocess.Popen[str]", said: IO[str]) -> None:
        assert popen.stdout is not None
        self._popen = popen
        self._said = said
        line = popen.stdout.readline()
        if not line:
            raise RuntimeError(f"the app can't be served:\n{self.said()}")
        self.port = int(line)
        self.pid = popen.pid

    def terminate(self) -> None:
        """Ask it to stop."""
        self._popen.terminate()

    def poll(self) -> int | None:
        """Return how it has ended; `None` while it runs."""
        return self._popen.poll()

    def said(self) -> str:
        """Return what it has written to the log so far, the end of it."""
        self._said.seek(0)
        return self._said.read()[-_SHOWN:]


@contextmanager
def serving() -> Iterator[Process]:
    """Serve the app in a process of its own.

    Raises:
        RuntimeError: It can't be served.
    """
    with (
        tempfile.TemporaryFile("w+", encoding="utf-8") as said,
        subprocess.Popen(
            [sys.executable, "-m", "tests.soak.serve"],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=said,
            text=True,
        ) as popen,
    ):
        try:
            yield Process(popen, said)
        finally:
            popen.terminate()
            try:
                popen.wait(_PATIENCE)
            except subprocess.TimeoutExpired:
                popen.kill()


def main() -> None:
    """Serve until the process is told to end."""
    config = uvicorn.Config(
        "tests.soak.app:app",
        loop="uvloop",
        http="httptools",
        log_level="warning",
        access_log=False,
        timeout_keep_alive=KEEP_ALIVE,
    )
    listener = socket.create_server(("127.0.0.1", 0), backlog=1024)
    sys.stdout.write(f"{listener.getsockname()[1]}\n")
    sys.stdout.flush()
    uvicorn.Server(config).run(sockets=[listener])


if __name__ == "__main__":
    main()
