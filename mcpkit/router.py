"""The endpoint as a FastAPI router, for those who embed an app."""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, Final

from fastapi import APIRouter, Request, Response
from starlette.convertors import Convertor, register_url_convertor

from mcpkit.endpoint import Answer, Endpoint
from mcpkit.exchange import Message, Receive, Scope, Send

# All of them: what the endpoint does not serve, it refuses itself.
_METHODS: Final = ["DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT"]


class _Slash(Convertor[str]):
    regex = "/?"

    def convert(self, value: str) -> str:
        return value

    def to_string(self, value: str) -> str:
        return value


register_url_convertor("mcpkit_slash", _Slash())

# An app at the path "" is where its router is included. FastAPI takes an empty
# path only under a prefix, which is not known here.
_BARE: Final = "{slash:mcpkit_slash}"


class _Answer(Response):
    """An answer of the endpoint, which has all its headers already."""

    def __init__(self, answer: Answer) -> None:
        self.status_code, self.raw_headers, self.body, self.cleanup = answer
        self.background = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            await self.finish()

    async def finish(self) -> None:
        cleanup, self.cleanup = self.cleanup, None
        if cleanup is not None:
            await cleanup.finish()


class _Sent(Response):
    """An answer that was sent already, as a stream."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send nothing."""


def build_router(
    endpoint: Endpoint,
    path: str,
    running: Callable[[], AbstractAsyncContextManager[None]],
) -> APIRouter:
    """Build the router of an app.

    Args:
        endpoint: What serves the requests.
        path: Where, without a trailing slash.
        running: What the app does while a host runs it that runs lifespans.
    """

    @asynccontextmanager
    async def hold(_: Any) -> AsyncIterator[None]:
        async with running():
            yield

    router = APIRouter(lifespan=hold)

    async def serve(request: Request) -> Response:
        # The whole reply is made here, not while it is sent: dependencies that
        # yield may end in between, and a handler needs what they hold open. So a
        # stream is sent from here too.
        send = request._send  # noqa: SLF001  # Starlette has no other way to it
        made = await endpoint.answer(request.scope, _receive(request), send)
        if made is None:
            return _Sent()
        answer = _Answer(made)
        if answer.cleanup is not None and _ends_early(request.scope):
            await answer.finish()
        return answer

    # Both are routes, so that neither is a redirect to the other.
    for served in (path, f"{path}/") if path else (_BARE,):
        router.add_api_route(
            served,
            serve,
            methods=_METHODS,
            include_in_schema=False,
            response_model=None,
        )
    return router


def _ends_early(scope: Scope) -> bool:
    """Whether dependencies of the host end before the answer is sent.

    What is opened last must end first, so that those of the handler then do too.
    """
    held = getattr(scope.get("fastapi_function_astack"), "_exit_callbacks", ())
    return bool(held)


def _receive(request: Request) -> Receive:
    """Return where the endpoint receives the body from.

    A dependency may have read it already, and the server sends it only once.
    """
    if not (hasattr(request, "_body") or getattr(request, "_stream_consumed", False)):
        return request.receive

    was_given = False

    async def receive() -> Message:
        nonlocal was_given
        if was_given:
            return await request.receive()
        was_given = True
        # Where a dependency consumed the stream, this raises.
        body = await request.body()
        return {"type": "http.request", "body": body, "more_body": False}

    return receive
