"""One uvicorn that serves one application: `python -m tests.bench.serve TARGET CPU`.

TARGET is a subject, or MODULE:NAME of an application. The port, which the
system chooses, is printed when it accepts connections.
"""

import os
import socket
import sys
from typing import TYPE_CHECKING

import uvicorn

if TYPE_CHECKING:
    from tests.bench.subjects import ASGI


def main(target: str, cpu: str) -> None:
    """Serve until the process is told to end."""
    if cpu:
        os.sched_setaffinity(0, {int(cpu)})
    application: str | ASGI = target
    if ":" not in target:
        # An application of its own must not hold what builds the subjects.
        from tests.bench.subjects import SUBJECTS  # noqa: PLC0415

        application = SUBJECTS[target].build()
    listener = socket.create_server(("127.0.0.1", 0), backlog=128)
    sys.stdout.write(f"{listener.getsockname()[1]}\n")
    sys.stdout.flush()
    config = uvicorn.Config(
        application,
        loop="uvloop",
        http="httptools",
        log_level="critical",
        access_log=False,
    )
    uvicorn.Server(config).run(sockets=[listener])


if __name__ == "__main__":
    main(*sys.argv[1:])
