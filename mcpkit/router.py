"""The endpoint as a FastAPI router, for those who embed an app."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final

from fastapi import APIRouter, Request, Response
from starlette.types import Receive, Scope, Send

from mcpkit.endpoint import Endpoint
from mcpkit.lifespan import Lifespan

# All of them: what the endpoint does not serve, it refuses itself.
_METHODS: Final = ["DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT"]


class _Handover(Response):
    """A response that leaves the request to the endpoint.

    FastAPI has solved the dependencies by then: those of the router, of every
    `include_router` above it and of the app.
    """

    def __init__(self, endpoint: Endpoint) -> None:
        super().__init__()
        self._endpoint = endpoint

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._endpoint(scope, receive, send)


def build_router(endpoint: Endpoint, path: str, lifespan: Lifespan | None) -> APIRouter:
    """Build the router of an app.

    Args:
        endpoint: What serves the requests.
        path: Where, without a trailing slash.
        lifespan: The app's lifespan; the host runs it when it runs any.
    """

    @asynccontextmanager
    async def hold(_: Any) -> AsyncIterator[None]:
        if lifespan is None:
            yield
        else:
            async with lifespan.running():
                yield

    router = APIRouter(lifespan=hold)
    handover = _Handover(endpoint)

    async def serve(request: Request) -> Response:  # noqa: ARG001  # spares FastAPI the body
        return handover

    # Both are routes, so that neither is a redirect to the other.
    for served in (path, f"{path}/"):
        if served:
            router.add_api_route(
                served,
                serve,
                methods=_METHODS,
                include_in_schema=False,
                response_model=None,
            )
    return router
