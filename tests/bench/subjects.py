"""The subjects: mcpkit in its ways in, its peers, and the floors under them.

What a subject needs is imported where it is built, so that a server process
holds nothing of the others.
"""

import inspect
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, TypeAlias, get_type_hints

from pydantic import ConfigDict, TypeAdapter
from pydantic_core import SchemaSerializer, SchemaValidator, from_json, to_json
from typing_extensions import TypedDict

from tests.bench.work import CALL, NAME, URI, WORKS, greeting, tools

if TYPE_CHECKING:
    from fastapi import APIRouter, FastAPI

    from mcpkit import App

Scope: TypeAlias = MutableMapping[str, Any]
Message: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]
ASGI: TypeAlias = Callable[[Scope, Receive, Send], Awaitable[None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """One thing that is measured.

    Attributes:
        name: What it is called in the tables.
        build: Makes its ASGI application.
        path: Where it is served.
        floor: It does the work and no more: it knows no protocol.
        blank: The work it can't do, by name, and why.
    """

    name: str
    build: Callable[[], ASGI]
    path: str = "/mcp"
    floor: bool = False
    blank: Mapping[str, str] = field(default_factory=dict)


class _Floor:
    """Parses, validates, calls, serialises the whole result, and nothing else."""

    def __init__(self) -> None:
        self._info = {"io.modelcontextprotocol/serverInfo": {"name": NAME}}
        self._tools = {name: _compile(function) for name, function in tools().items()}
        listed = mcpkit_app().registry.tools.values()
        self._definitions = [tool.wire for tool in listed]

    async def answer(self, body: bytes) -> bytes:
        """Return the body of the answer to a request."""
        message = from_json(body)
        params = message["params"]
        match message["method"]:
            case "tools/call":
                result = await self._call(params["name"], params["arguments"])
            case "resources/read":
                text = await greeting()
                contents = {"uri": params["uri"], "mimeType": "text/plain"}
                result = {"contents": [{**contents, "text": text}]}
            case "tools/list":
                result = {"tools": self._definitions}
            case _:
                offered: dict[str, Any] = {"tools": {}, "resources": {}}
                versions = ["2026-07-28"]
                result = {"supportedVersions": versions, "capabilities": offered}
        if "_meta" in params:
            result["resultType"] = "complete"
            result["_meta"] = self._info
        return to_json({"jsonrpc": "2.0", "id": message["id"], "result": result})

    async def _call(self, name: str, arguments: Any) -> dict[str, Any]:
        function, is_async, validator, serializer = self._tools[name]
        value = function(**validator.validate_python(arguments))
        if is_async:
            value = await value
        text = serializer.to_json(value).decode()
        return {
            "content": [{"type": "text", "text": text}],
            "structuredContent": value,
            "isError": False,
        }


def _compile(
    function: Callable[..., Any],
) -> tuple[Callable[..., Any], bool, SchemaValidator, SchemaSerializer]:
    hints = get_type_hints(function)
    returned = hints.pop("return")
    # mypy takes the name for the class that a literal would make.
    made: Any = TypedDict("made", hints)  # type: ignore[misc]
    made.__pydantic_config__ = ConfigDict(extra="forbid")  # type: ignore[attr-defined]
    validator: Any = TypeAdapter(made).validator
    serializer: Any = TypeAdapter(returned).serializer
    return function, inspect.iscoroutinefunction(function), validator, serializer


async def _respond(send: Send, body: bytes) -> None:
    headers = [
        (b"content-type", b"application/json"),
        (b"content-length", b"%d" % len(body)),
    ]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": body})


def _build_fixed() -> ASGI:
    result = {
        "resultType": "complete",
        "content": [{"type": "text", "text": '{"total":5}'}],
        "structuredContent": {"total": 5},
        "isError": False,
        "_meta": {"io.modelcontextprotocol/serverInfo": {"name": NAME}},
    }
    fixed = to_json({"jsonrpc": "2.0", "id": 1, "result": result})

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        _http_only(scope)
        await receive()
        await _respond(send, fixed)

    return app


def _build_bare() -> ASGI:
    floor = _Floor()

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        _http_only(scope)
        message = await receive()
        await _respond(send, await floor.answer(message["body"]))

    return app


def _http_only(scope: Scope) -> None:
    if scope["type"] != "http":
        raise NotImplementedError


def _build_bare_mounted() -> ASGI:
    from fastapi import FastAPI  # noqa: PLC0415

    api = FastAPI()
    api.mount("/api", _build_bare())
    return api


def _build_fastapi() -> ASGI:
    from fastapi import FastAPI  # noqa: PLC0415

    api = FastAPI()
    _add_endpoint(api)
    return api


def _build_fastapi_router() -> ASGI:
    from fastapi import APIRouter, FastAPI  # noqa: PLC0415

    api, router = FastAPI(), APIRouter()
    _add_endpoint(router)
    api.include_router(router)
    return api


def _add_endpoint(router: "APIRouter | FastAPI") -> None:
    from fastapi import Request, Response  # noqa: PLC0415

    floor = _Floor()

    @router.post("/mcp")
    async def endpoint(request: Request) -> Response:
        body = await floor.answer(await request.body())
        return Response(body, media_type="application/json")


def mcpkit_app(count: int | None = None, *, path: str = "/mcp") -> "App":
    """Build the app, with so many tools."""
    from mcpkit import App  # noqa: PLC0415

    app = App(NAME, path=path)
    served = tools() if count is None else tools(count)
    for name, function in served.items():
        app.add_tool(function, name=name)
    app.add_resource(URI, greeting, mime_type="text/plain")
    return app


def _build_router() -> ASGI:
    from fastapi import FastAPI  # noqa: PLC0415

    api = FastAPI()
    api.include_router(mcpkit_app().router)
    return api


def _build_dependency() -> ASGI:
    from fastapi import Depends, FastAPI, Request  # noqa: PLC0415

    async def user(request: Request) -> None:
        request.state.principal = "ada"

    api = FastAPI()
    api.include_router(mcpkit_app().router, dependencies=[Depends(user)])
    return api


def _build_mounted() -> ASGI:
    from fastapi import FastAPI  # noqa: PLC0415

    api = FastAPI()
    api.mount("/api", mcpkit_app())
    return api


def _build_sdk() -> ASGI:
    from mcp.server import MCPServer  # noqa: PLC0415

    server: MCPServer[Any] = MCPServer(NAME, version="1", log_level="ERROR")
    for name, function in tools().items():
        server.add_tool(function, name=name)
    server.resource(URI, mime_type="text/plain")(greeting)
    app: ASGI = server.streamable_http_app(json_response=True, stateless_http=True)
    return app


def _build_fastmcp() -> ASGI:
    import fastmcp  # noqa: PLC0415

    fastmcp.settings.log_level = "ERROR"
    server = fastmcp.FastMCP(NAME, version="1")
    for name, function in tools().items():
        server.tool(function, name=name)
    server.resource(URI, mime_type="text/plain")(greeting)
    app: ASGI = server.http_app(json_response=True, stateless_http=True)
    return app


def _but_call(reason: str) -> dict[str, str]:
    return {work.name: reason for work in WORKS if work is not CALL}


SUBJECTS: Final[Mapping[str, Subject]] = {
    "fixed": Subject(
        name="fixed bytes",
        build=_build_fixed,
        floor=True,
        blank=_but_call("it answers every request with the bytes of `call`"),
    ),
    "bare": Subject(name="bare ASGI floor", build=_build_bare, floor=True),
    "bare_mounted": Subject(
        name="bare ASGI floor, mounted",
        build=_build_bare_mounted,
        path="/api/mcp",
        floor=True,
        blank=_but_call("it shows what a mount alone costs"),
    ),
    "fastapi": Subject(name="FastAPI endpoint", build=_build_fastapi, floor=True),
    "fastapi_router": Subject(
        name="FastAPI endpoint, include_router",
        build=_build_fastapi_router,
        floor=True,
        blank=_but_call("it shows what include_router alone costs"),
    ),
    "mcpkit": Subject(name="mcpkit", build=mcpkit_app),
    "mounted": Subject(name="mcpkit, mounted", build=_build_mounted, path="/api/mcp"),
    "router": Subject(name="mcpkit, include_router", build=_build_router),
    "dependency": Subject(
        name="mcpkit, include_router, one dependency", build=_build_dependency
    ),
    "sdk": Subject(name="official SDK", build=_build_sdk),
    "fastmcp": Subject(name="FastMCP", build=_build_fastmcp),
}
"""Every subject, the floors first."""
