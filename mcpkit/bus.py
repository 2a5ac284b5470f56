"""What the workers of an app tell each other, over the backend that they share.

A message has a subject and JSON content; the worker that sends is told too. A worker
joins when it has somebody to pass a message on to, so that an app that has no streams
never connects to anything.
"""

import asyncio
import json
from collections.abc import Callable
from contextlib import suppress
from threading import Lock
from typing import Any, Literal, TypeAlias

from mcpkit.backends.base import Backend

Subject: TypeAlias = Literal[
    "answer", "cancel", "changed", "ended", "left", "task", "updated"
]
Receiver: TypeAlias = Callable[[Any], None]


class Bus:
    """Passes messages between the workers of one app.

    Args:
        backend: What the workers share.
        name: The name of the app: several may share a backend.
    """

    def __init__(self, backend: Backend, name: str) -> None:
        self._backend = backend
        self._name = name
        self._receivers: dict[Subject, list[Receiver]] = {}
        self._lock = Lock()
        self._has_joined = False
        # The latest to join comes first.
        self._loops: list[asyncio.AbstractEventLoop] = []

    def on(self, subject: Subject, receiver: Receiver) -> None:
        """Have a receiver called with the content of messages, after those before."""
        self._receivers.setdefault(subject, []).append(receiver)

    def join(self) -> None:
        """Receive messages from now on, in the event loop that runs."""
        loop = asyncio.get_running_loop()
        if self._has_joined and self._loops[0] is loop:
            return
        with self._lock:
            others = [it for it in self._loops if it is not loop and not it.is_closed()]
            self._loops = [loop, *others]
            if not self._has_joined:
                self._backend.subscribe(self._receive)
                self._has_joined = True

    def tell(self, subject: Subject, content: Any) -> None:
        """Tell all workers, from any thread; those that have joined receive it."""
        self._backend.publish(json.dumps([self._name, subject, content]))

    def _receive(self, message: str) -> None:
        name, subject, content = json.loads(message)
        if name != self._name:
            return
        # A worker of another release may have more to say.
        for receiver in self._receivers.get(subject, ()):
            self._call(receiver, content)

    def _call(self, receiver: Receiver, content: Any) -> None:
        for loop in self._loops:
            # Nobody is left in a loop that is closed.
            with suppress(RuntimeError):
                loop.call_soon_threadsafe(receiver, content)
                return
