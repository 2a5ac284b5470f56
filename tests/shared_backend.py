"""A backend that several processes share, for tests: a small server on a socket.

    with serving() as address:
        backend = SocketBackend(address)

A process that a test starts with `environment(address)` gets at the same one with
`shared()`. Lines of JSON travel: a call is `[name, *arguments]`.

    put, get, replace    answered with what they return
    publish              a message to all who listen; not answered
    listen, start        a connection is to carry messages under a name, then does; each
                         answered on that connection. `start` travels behind what its
                         backend has published, so none of that is heard.
"""

import asyncio
import json
import logging
import os
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from threading import Lock, Thread
from typing import Any, Final
from uuid import uuid4

from mcpkit.backends.memory import MemoryBackend

VARIABLE: Final = "MCPKIT_TEST_BACKEND"
"""The environment variable that holds the address."""

ROOT: Final = Path(__file__).parent.parent
PATIENCE: Final = 30
"""Seconds after which who waits for the server gives up."""


@contextmanager
def serving() -> Iterator[str]:
    """Serve a backend from a process of its own, and return its address."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.shared_backend"],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    # Leaving closes its input, which it takes for the end.
    with process:
        assert process.stdout is not None
        yield process.stdout.readline().strip()


def environment(address: str) -> dict[str, str]:
    """Return the environment of a process that is to find the backend by `shared`."""
    return {**os.environ, VARIABLE: address, "PYTHONPATH": str(ROOT)}


def shared() -> "SocketBackend":
    """Return the backend that the environment names."""
    return SocketBackend(os.environ[VARIABLE])


class SocketBackend:
    """A backend whose values are in another process, and whose messages pass there.

    It connects where it is first used, and serves any number of event loops.

    Args:
        address: The host and the port, with a colon between them.
    """

    def __init__(self, address: str) -> None:
        self._address = address
        self._asking = _Line(address)
        self._telling = _Line(address)
        self._listening: dict[_Line, Thread] = {}

    async def put(self, key: str, value: str, ttl: float) -> None:
        """Keep a value under a key, for `ttl` seconds, whatever was there before."""
        await asyncio.to_thread(self._asking.ask, "put", key, value, ttl)

    async def get(self, key: str) -> str | None:
        """Return the value under a key, or `None` when there is none any more."""
        value: str | None = await asyncio.to_thread(self._asking.ask, "get", key)
        return value

    async def replace(
        self, key: str, old: str | None, new: str | None, ttl: float
    ) -> bool:
        """Change the value under a key, if it is still `old`: see `Backend.replace`."""
        done: bool = await asyncio.to_thread(
            self._asking.ask, "replace", key, old, new, ttl
        )
        return done

    def publish(self, message: str) -> None:
        """Tell all workers, this one included."""
        self._telling.tell("publish", message)

    def subscribe(self, receive: Callable[[str], None]) -> Callable[[], None]:
        """Receive each message from now on, until what is returned is called."""
        line, name = _Line(self._address), uuid4().hex
        line.ask("listen", name)
        self._telling.tell("start", name)
        line.hear()
        thread = Thread(target=line.pass_on, args=[receive], daemon=True)
        self._listening[line] = thread
        thread.start()
        return line.end

    def close(self) -> None:
        """End all connections, and wait for the threads that listened."""
        for line, thread in self._listening.items():
            line.end()
            thread.join(PATIENCE)
        for line in (self._asking, self._telling, *self._listening):
            line.close()


class _Line:
    """A connection, from its first use on."""

    def __init__(self, address: str) -> None:
        self._address = address
        self._lock = Lock()
        self._socket: socket.socket | None = None
        self._ended = False

    def ask(self, *call: Any) -> Any:
        with self._lock:
            self._send(call)
            return self.hear()

    def tell(self, *call: Any) -> None:
        with self._lock:
            self._send(call)

    def hear(self) -> Any:
        return json.loads(self._input.readline())

    def pass_on(self, receive: Callable[[str], None]) -> None:
        for line in self._input:
            if self._ended:
                return
            try:
                receive(json.loads(line))
            except Exception:
                logging.getLogger("mcpkit").exception(
                    "A receiver of published messages failed"
                )

    def end(self) -> None:
        self._ended = True
        # It may have ended from the other side, or be closed by now.
        if self._socket is not None:
            with suppress(OSError):
                self._socket.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        if self._socket is not None:
            self._input.close()
            self._socket.close()

    def _send(self, call: tuple[Any, ...]) -> None:
        if self._socket is None:
            host, _, port = self._address.rpartition(":")
            self._socket = socket.create_connection((host, int(port)), PATIENCE)
            # Messages may be long in coming.
            self._socket.settimeout(None)
            self._input = self._socket.makefile("rb")
        self._socket.sendall(_encoded(call))


def _encoded(value: object) -> bytes:
    return json.dumps(value).encode() + b"\n"


class _Server:
    """What the process holds: the values, and who listens."""

    def __init__(self) -> None:
        self._values = MemoryBackend()
        self._waiting: dict[str, asyncio.StreamWriter] = {}
        self._listening: dict[str, asyncio.StreamWriter] = {}

    async def connected(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        with closing(writer):
            async for line in reader:
                name, *arguments = json.loads(line)
                match name:
                    case "listen":
                        self._waiting[arguments[0]] = writer
                        writer.write(_encoded(None))
                    case "start":
                        self._start(*arguments)
                    case "publish":
                        self._publish(*arguments)
                    case _:
                        call = getattr(self._values, name)
                        writer.write(_encoded(await call(*arguments)))
        for name in [
            name for name, other in self._listening.items() if other is writer
        ]:
            del self._listening[name]

    def _start(self, name: str) -> None:
        listener = self._listening[name] = self._waiting.pop(name)
        listener.write(_encoded(None))

    def _publish(self, message: str) -> None:
        for listener in self._listening.values():
            listener.write(_encoded(message))


async def _serve() -> None:
    server = await asyncio.start_server(
        _Server().connected, "127.0.0.1", 0, limit=2**24
    )
    host, port = server.sockets[0].getsockname()
    print(f"{host}:{port}", flush=True)  # noqa: T201  # what `serving` reads
    await asyncio.to_thread(sys.stdin.read)


if __name__ == "__main__":
    asyncio.run(_serve())
