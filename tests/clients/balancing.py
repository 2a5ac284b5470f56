"""A balancer before several servers, which gives each request to the next of them."""

import asyncio
import json
from collections.abc import Awaitable, Callable, MutableMapping, Sequence
from contextlib import suppress
from itertools import cycle
from typing import Any, Final, NamedTuple, TypeAlias

import httpx

Message: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]

_OF_THE_CONNECTION: Final = frozenset(
    {b"connection", b"content-length", b"host", b"transfer-encoding"}
)


class Passed(NamedTuple):
    """What was passed on: to which server, and the message in its body."""

    server: int
    message: Any


class Balancer:
    """An ASGI application that passes on what it gets, and streams what comes back.

    Args:
        servers: Their addresses.

    Attributes:
        passed: What was passed on, in order.
    """

    def __init__(self, servers: Sequence[str]) -> None:
        self.passed: list[Passed] = []
        self._turns = cycle(enumerate(servers))

    async def __call__(self, scope: Any, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            raise NotImplementedError
        body = await _body(receive)
        index, server = next(self._turns)
        self.passed.append(Passed(index, json.loads(body) if body else None))
        headers = _without(scope["headers"])
        request = httpx.Request(scope["method"], server, headers=headers, content=body)
        passing = asyncio.create_task(_pass_on(request, send))
        gone = asyncio.create_task(_until_gone(receive))
        await asyncio.wait({passing, gone}, return_when=asyncio.FIRST_COMPLETED)
        gone.cancel()
        if not passing.done():
            passing.cancel()
        with suppress(asyncio.CancelledError):
            await passing


async def _body(receive: Receive) -> bytes:
    body, more = b"", True
    while more:
        event = await receive()
        body += event.get("body", b"")
        more = event.get("more_body", False)
    return body


async def _until_gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def _pass_on(request: httpx.Request, send: Send) -> None:
    async with httpx.AsyncClient(timeout=30, trust_env=False) as client:
        response = await client.send(request, stream=True)
        await send(
            {
                "type": "http.response.start",
                "status": response.status_code,
                "headers": _without(response.headers.raw),
            }
        )
        async for chunk in response.aiter_raw():
            event = {"type": "http.response.body", "body": chunk, "more_body": True}
            await send(event)
        await response.aclose()
        await send({"type": "http.response.body", "body": b""})


def _without(headers: Sequence[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    return [
        (name.lower(), value)
        for name, value in headers
        if name.lower() not in _OF_THE_CONNECTION
    ]
