"""An app inside a FastAPI app, in every way that there is.

What is tested here holds on the newest FastAPI and on the oldest one that
mcpkit allows: `tests/oldest` runs this file there.
"""

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any

import pytest
import uvicorn
from fastapi import (
    APIRouter,
    BackgroundTasks,
    Body,
    Depends,
    FastAPI,
    HTTPException,
    Request,
)
from starlette.middleware.cors import CORSMiddleware
from starlette.types import ASGIApp, Receive, Scope, Send

from mcpkit import App, Context
from tests.http.client import (
    LEGACY,
    MODERN,
    call,
    code_of,
    error,
    legacy,
    open_session,
    post,
    result_of,
    send,
)
from tests.http.serving import connected, served, whole

WHOAMI = {"name": "whoami"}


def build_app(calls: list[str] | None = None, **options: Any) -> App:
    """Build an app with a tool that says who calls, and notes that it ran."""
    app = App(**{"name": "embedded", **options})

    @app.tool
    async def whoami(ctx: Context) -> str:
        if calls is not None:
            calls.append("tool")
        return f"{ctx.principal_id} at {app.name}"

    return app


async def whoami(host: ASGIApp, path: str = "/mcp", version: str = MODERN) -> str:
    """Call the tool, and return what it says."""
    reply = await call(host, version, "tools/call", WHOAMI, path=path)
    text: str = result_of(reply)["content"][0]["text"]
    return text


# Ways to put an app into a FastAPI app, and the address where it is then.


def included(app: App) -> FastAPI:
    api = FastAPI()
    api.include_router(app.router)
    return api


def included_with_prefix(app: App) -> FastAPI:
    api = FastAPI()
    api.include_router(app.router, prefix="/api/v1")
    return api


def included_in_a_router(app: App) -> FastAPI:
    outer = APIRouter(prefix="/outer")
    outer.include_router(app.router, prefix="/inner")
    api = FastAPI()
    api.include_router(outer, prefix="/api")
    return api


def mounted(app: App) -> FastAPI:
    api = FastAPI()
    api.mount("/x", app)
    return api


def mounted_at_the_root(app: App) -> FastAPI:
    api = FastAPI()

    @api.get("/health")
    def health() -> str:
        return "fine"

    api.mount("/", app)
    return api


def mounted_in_a_mounted_app(app: App) -> FastAPI:
    api = FastAPI()
    api.mount("/a", mounted(app))
    return api


def alone(app: App) -> App:
    return app


WAYS: list[tuple[str, Callable[[App], ASGIApp], str, str]] = [
    # A name, how it is served, `App(path=...)`, and the address.
    ("alone", alone, "/mcp", "/mcp"),
    ("alone, deeper", alone, "/a/b", "/a/b"),
    ("alone, path ends in a slash", alone, "/mcp/", "/mcp"),
    ("included", included, "/mcp", "/mcp"),
    ("included, deeper", included, "/a/b", "/a/b"),
    ("included with a prefix", included_with_prefix, "/mcp", "/api/v1/mcp"),
    ("HTTP-04 included, bare", included_with_prefix, "", "/api/v1"),
    ("included in a router", included_in_a_router, "/mcp", "/api/outer/inner/mcp"),
    ("included in a router, bare", included_in_a_router, "", "/api/outer/inner"),
    ("mounted", mounted, "/mcp", "/x/mcp"),
    ("HTTP-04 mounted, bare", mounted, "", "/x/"),
    ("HTTP-04 mounted, the mount itself", mounted, "/mcp", "/x/"),
    ("mounted at the root", mounted_at_the_root, "/mcp", "/mcp"),
    ("mounted in a mounted app", mounted_in_a_mounted_app, "/mcp", "/a/x/mcp"),
]
ways = pytest.mark.parametrize(
    ("embed", "path", "address"), [pytest.param(*row, id=name) for name, *row in WAYS]
)


@ways
@pytest.mark.parametrize("version", [MODERN, LEGACY])
async def test_an_app_answers_at_its_address_however_it_is_served(
    embed: Callable[[App], ASGIApp], path: str, address: str, version: str
) -> None:
    """Ours."""
    host = embed(build_app(path=path))
    assert await whoami(host, address, version) == "None at embedded"


@ways
async def test_a_trailing_slash_is_never_a_redirect(
    embed: Callable[[App], ASGIApp], path: str, address: str
) -> None:
    """HTTP-03. A redirect of a POST loses its body at many clients. Ours."""
    host = embed(build_app(path=path))
    # What a mount without a path is asked for without its slash is up to the host.
    other = address if address.endswith("/") else f"{address}/"
    assert await whoami(host, other) == "None at embedded"


@ways
async def test_what_is_beside_the_address_is_not_found(
    embed: Callable[[App], ASGIApp], path: str, address: str
) -> None:
    """Ours."""
    host = embed(build_app(path=path))
    for wrong in (f"{address.rstrip('/')}x", f"{address.rstrip('/')}/x"):
        reply = await send(host, "POST", path=wrong)
        assert reply.status_code == 404


@pytest.mark.parametrize("verb", ["PUT", "PATCH"])
@pytest.mark.parametrize("embed", [alone, included, mounted_at_the_root])
async def test_a_method_that_is_not_served_is_refused_by_the_app(
    embed: Callable[[App], ASGIApp], verb: str
) -> None:
    """HTTP-12. RFC 9110, section 15.5.6."""
    reply = await send(embed(build_app()), verb)
    assert (reply.status_code, reply.headers["allow"]) == (405, "GET, POST, DELETE")
    assert reply.json() == error(-32600, f"{verb} is not allowed here")


@pytest.mark.parametrize("verb", ["GET", "DELETE"])
@pytest.mark.parametrize("embed", [alone, included, mounted_at_the_root])
async def test_what_needs_a_session_is_refused_without_one(
    embed: Callable[[App], ASGIApp], verb: str
) -> None:
    """HTTP-12. Spec 2025-11-25, basic/transports: Session Management."""
    reply = await send(embed(build_app()), verb)
    expected = error(-32600, "Mcp-Session-Id is missing", request_id=None)
    assert (reply.status_code, reply.json()) == (400, expected)


@pytest.mark.parametrize("verb", ["GET", "DELETE"])
@pytest.mark.parametrize("embed", [alone, included, mounted_at_the_root])
async def test_a_modern_app_serves_post_alone(
    embed: Callable[[App], ASGIApp], verb: str
) -> None:
    """HTTP-12. Spec 2026-07-28, basic/transports/streamable-http."""
    reply = await send(embed(build_app(eras={"modern"})), verb)
    assert (reply.status_code, reply.headers["allow"]) == (405, "POST")
    assert reply.json() == error(-32600, f"{verb} is not allowed here")


async def test_the_endpoint_is_not_in_the_openapi_of_its_host() -> None:
    """Ours."""
    assert included(build_app()).openapi()["paths"] == {}


async def test_the_routes_of_the_host_stay_its_own() -> None:
    """Ours."""
    host = mounted_at_the_root(build_app())
    assert (await send(host, "GET", path="/health")).json() == "fine"


async def test_several_apps_live_in_one_host() -> None:
    """Ours."""
    api = FastAPI()
    api.include_router(build_app(name="one").router, prefix="/one")
    api.include_router(build_app(name="two", path="/two/mcp").router)
    api.mount("/three", build_app(name="three"))
    api.mount("/", build_app(name="four"))
    addresses = ["/one/mcp", "/two/mcp", "/three/mcp", "/mcp"]
    assert [await whoami(api, address) for address in addresses] == [
        "None at one",
        "None at two",
        "None at three",
        "None at four",
    ]


async def test_a_session_of_one_app_is_not_one_of_its_neighbour() -> None:
    """Ours."""
    key = "k" * 32
    api = FastAPI()
    one, two = (build_app(name=name, secret_key=key) for name in ("one", "two"))
    api.include_router(one.router, prefix="/one")
    api.include_router(two.router, prefix="/two")
    session = {"mcp-session-id": await open_session(one)}
    statuses = [
        (await call(api, LEGACY, "ping", path=path, headers=session)).status_code
        for path in ("/one/mcp", "/two/mcp")
    ]
    assert statuses == [200, 404]


@pytest.mark.parametrize(
    ("embed", "address"),
    [
        pytest.param(alone, "/api/mcp", id="alone"),
        pytest.param(included, "/api/mcp", id="included"),
        pytest.param(mounted, "/api/x/mcp", id="mounted"),
        pytest.param(alone, "/mcp", id="alone, the proxy strips the prefix"),
        pytest.param(included, "/mcp", id="included, the proxy strips the prefix"),
    ],
)
async def test_a_root_path_in_front_of_the_server_changes_nothing(
    embed: Callable[[App], ASGIApp], address: str
) -> None:
    """HTTP-03. A proxy serves the host under /api. Ours."""
    host = embed(build_app())

    async def behind_a_proxy(scope: Scope, receive: Receive, send: Send) -> None:
        await host({**scope, "root_path": "/api"}, receive, send)

    assert await whoami(behind_a_proxy, address) == "None at embedded"


def test_the_address_of_a_bare_app_has_a_name_at_its_host() -> None:
    """Ours."""
    host = included_with_prefix(build_app(path=""))
    assert [host.url_path_for("serve", slash=slash) for slash in ("", "/")] == [
        "/api/v1",
        "/api/v1/",
    ]


async def test_the_path_of_the_host_may_have_parameters() -> None:
    """Ours."""
    app = App("tenants")

    @app.tool
    def tenant(ctx: Context) -> str:
        return str(ctx.request.path_params["tenant"])

    api = FastAPI()
    api.include_router(app.router, prefix="/{tenant}")
    reply = await call(api, MODERN, "tools/call", {"name": "tenant"}, path="/acme/mcp")
    assert result_of(reply)["content"][0]["text"] == "acme"


# Dependencies, wherever they are declared.


def deny() -> None:
    raise HTTPException(401, "No.", {"WWW-Authenticate": "Bearer"})


def denied_at_the_router(app: App, dependency: Any) -> FastAPI:
    outer = APIRouter(dependencies=[dependency])
    outer.include_router(app.router)
    api = FastAPI()
    api.include_router(outer)
    return api


def denied_at_include_router(app: App, dependency: Any) -> FastAPI:
    api = FastAPI()
    api.include_router(app.router, dependencies=[dependency])
    return api


def denied_at_the_app(app: App, dependency: Any) -> FastAPI:
    api = FastAPI(dependencies=[dependency])
    api.include_router(app.router)
    return api


def denied_at_an_outer_include(app: App, dependency: Any) -> FastAPI:
    inner, outer = APIRouter(prefix="/a"), APIRouter(prefix="/b")
    inner.include_router(app.router)
    outer.include_router(inner, prefix="/c")
    api = FastAPI()
    api.include_router(outer, dependencies=[dependency])
    return api


def denied_at_an_outer_router(app: App, dependency: Any) -> FastAPI:
    inner, outer = APIRouter(), APIRouter(dependencies=[dependency])
    inner.include_router(app.router)
    outer.include_router(inner)
    api = FastAPI()
    api.include_router(outer)
    return api


PLACES = [
    ("APIRouter", denied_at_the_router, "/mcp"),
    ("include_router", denied_at_include_router, "/mcp"),
    ("FastAPI", denied_at_the_app, "/mcp"),
    ("include_router of an outer router", denied_at_an_outer_include, "/b/c/a/mcp"),
    ("an outer router", denied_at_an_outer_router, "/mcp"),
]
places = pytest.mark.parametrize(
    ("embed", "address"), [pytest.param(*row, id=name) for name, *row in PLACES]
)
Embed = Callable[[App, Any], FastAPI]


@places
@pytest.mark.parametrize("slash", ["", "/"], ids=["", "slash"])
@pytest.mark.parametrize("version", [MODERN, LEGACY])
async def test_a_dependency_that_denies_is_obeyed_wherever_it_is_declared(
    embed: Embed, address: str, slash: str, version: str
) -> None:
    """Ours: routers that are resolved late hide what is in force from a route."""
    calls: list[str] = []
    host = embed(build_app(calls), Depends(deny))
    for verb in ("POST", "DELETE", "GET"):
        reply = await send(host, verb, path=address + slash)
        assert (reply.status_code, reply.json()) == (401, {"detail": "No."})
        assert reply.headers["www-authenticate"] == "Bearer"
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": WHOAMI}
    headers = {"content-type": "application/json", "mcp-protocol-version": version}
    reply = await send(
        host, "POST", headers, str(message).replace("'", '"'), path=address + slash
    )
    assert (reply.status_code, calls) == (401, [])


@places
async def test_a_dependency_that_yields_is_open_while_the_tool_runs(
    embed: Embed, address: str
) -> None:
    """Ours: a tool needs what the dependency holds open, on every FastAPI."""
    calls: list[str] = []

    async def session() -> AsyncIterator[None]:
        calls.append("open")
        yield
        calls.append("closed")

    await whoami(embed(build_app(calls), Depends(session)), address)
    assert calls == ["open", "tool", "closed"]


@places
async def test_a_sync_dependency_that_yields_is_open_while_the_tool_runs(
    embed: Embed, address: str
) -> None:
    """Ours."""
    calls: list[str] = []

    def session() -> Iterator[None]:
        calls.append("open")
        yield
        calls.append("closed")

    await whoami(embed(build_app(calls), Depends(session)), address)
    assert calls == ["open", "tool", "closed"]


async def test_the_background_tasks_of_a_dependency_run_once_a_request() -> None:
    """Ours."""
    calls: list[str] = []

    def audit(tasks: BackgroundTasks) -> None:
        tasks.add_task(calls.append, "audit")

    host = denied_at_include_router(build_app(calls), Depends(audit))
    await whoami(host)
    await whoami(host)
    assert calls == ["tool", "audit", "tool", "audit"]


async def read_bytes(request: Request) -> None:
    assert await request.body()


async def read_json(request: Request) -> None:
    assert (await request.json())["jsonrpc"] == "2.0"


async def read_model(method: str = Body(embed=True)) -> None:
    assert method == "tools/call"


@pytest.mark.parametrize("read", [read_bytes, read_json, read_model])
async def test_a_dependency_may_read_the_body_first(
    read: Callable[..., Awaitable[None]],
) -> None:
    """Ours: the server sends the body once, and the endpoint needs it too."""
    host = denied_at_include_router(build_app(), Depends(read))
    async with asyncio.timeout(10):
        assert await whoami(host) == "None at embedded"


async def test_a_body_that_a_dependency_read_as_a_stream_is_gone() -> None:
    """Ours: an error of the host at once, where a wait would never end."""

    async def drain(request: Request) -> None:
        assert [part async for part in request.stream()]

    calls: list[str] = []
    host = denied_at_include_router(build_app(calls), Depends(drain))
    async with asyncio.timeout(10):
        with pytest.raises(RuntimeError, match="Stream consumed"):
            await call(host, MODERN, "tools/call", WHOAMI)
    assert calls == []


async def test_a_dependency_is_overridden_as_on_any_route() -> None:
    """Ours."""
    host = denied_at_include_router(build_app(), Depends(deny))
    host.dependency_overrides[deny] = lambda: None
    assert await whoami(host) == "None at embedded"


async def test_a_dependency_that_the_request_fails_is_the_hosts_answer() -> None:
    """Ours."""

    def needs_a_tenant(tenant: int) -> int:
        raise NotImplementedError

    calls: list[str] = []
    host = denied_at_include_router(build_app(calls), Depends(needs_a_tenant))
    reply = await send(host, "POST", path="/mcp")
    assert (reply.status_code, calls) == (422, [])


# Who calls.


@dataclass(frozen=True)
class User:
    """A caller as a host may have one."""

    id: int
    scopes: tuple[str, ...] = ()


def set_by_a_dependency(app: App, principal: Any) -> ASGIApp:
    def user(request: Request) -> None:
        request.state.principal = principal

    return denied_at_include_router(app, Depends(user))


def set_by_a_nested_dependency(app: App, principal: Any) -> ASGIApp:
    async def user(request: Request) -> None:
        request.state.principal = principal

    return denied_at_an_outer_router(app, Depends(user))


def told(app: ASGIApp, principal: Any) -> ASGIApp:
    """Wrap an app in a middleware that tells who calls."""

    async def middleware(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            scope.setdefault("state", {})["principal"] = principal
        await app(scope, receive, send)

    return middleware


def set_by_a_middleware(app: App, principal: Any) -> ASGIApp:
    api = included(app)
    api.add_middleware(told, principal=principal)
    return api


def set_by_a_middleware_over_a_mount(app: App, principal: Any) -> ASGIApp:
    api = mounted_at_the_root(app)
    api.add_middleware(told, principal=principal)
    return api


def set_by_an_http_middleware(app: App, principal: Any) -> ASGIApp:
    api = included(app)

    @api.middleware("http")
    async def user(request: Request, call_next: Any) -> Any:
        request.state.principal = principal
        return await call_next(request)

    return api


def set_around_the_app(app: App, principal: Any) -> ASGIApp:
    return told(app, principal)


@pytest.mark.parametrize(
    "embed",
    [
        set_by_a_dependency,
        set_by_a_nested_dependency,
        set_by_a_middleware,
        set_by_a_middleware_over_a_mount,
        set_by_an_http_middleware,
        set_around_the_app,
    ],
)
@pytest.mark.parametrize(
    ("principal", "named"),
    [
        pytest.param("ada", "ada", id="a string"),
        pytest.param(User(7), "7", id="an object"),
        pytest.param(None, "None", id="nobody"),
    ],
)
async def test_the_caller_whom_the_host_names_reaches_the_tool(
    embed: Callable[[App, Any], ASGIApp], principal: Any, named: str
) -> None:
    """Ours."""
    assert await whoami(embed(build_app(), principal)) == f"{named} at embedded"


@pytest.mark.parametrize("embed", [set_by_a_dependency, set_around_the_app])
async def test_a_caller_of_the_host_has_the_scopes_that_it_says(
    embed: Callable[[App, Any], ASGIApp],
) -> None:
    """Ours."""
    app = build_app()

    @app.tool(scopes=["write"])
    def write() -> str:
        return "written"

    statuses = [
        (await call(embed(app, user), MODERN, "tools/call", {"name": "write"}))
        for user in (User(1, ("write", "read")), User(1, ("read",)), None)
    ]
    assert [reply.status_code for reply in statuses] == [200, 403, 403]


async def test_a_session_belongs_to_the_caller_whom_the_host_names() -> None:
    """Spec 2025-11-25, basic/security_best_practices: Session Hijacking."""
    app = build_app()
    ada, bob = set_by_a_dependency(app, "ada"), set_by_a_dependency(app, "bob")
    opened = await post(
        ada,
        {
            "jsonrpc": "2.0",
            "id": 1,
            "method": "initialize",
            "params": {
                "protocolVersion": LEGACY,
                "capabilities": {},
                "clientInfo": {"name": "c", "version": "1"},
            },
        },
    )
    session = {"mcp-session-id": opened.headers["mcp-session-id"]}
    statuses = [
        (await call(host, LEGACY, "ping", headers=session)).status_code
        for host in (ada, bob, app)
    ]
    assert statuses == [200, 404, 404]


def sync_principal(request: Request) -> str:
    return request.headers["x-user"]


async def async_principal(request: Request) -> str:
    await asyncio.sleep(0)
    return request.headers["x-user"]


def principal_of_an_http_connection(request: Request) -> User:
    return User(int(request.headers["x-user"]))


@pytest.mark.parametrize(
    ("principal", "user", "named"),
    [
        pytest.param(sync_principal, "ada", "ada", id="sync"),
        pytest.param(async_principal, "ada", "ada", id="async"),
        pytest.param(principal_of_an_http_connection, "7", "7", id="object"),
    ],
)
@pytest.mark.parametrize(
    "embed", [alone, included, mounted_at_the_root], ids=["alone", "included", "mount"]
)
async def test_the_callable_of_the_app_tells_who_calls(
    embed: Callable[[App], ASGIApp], principal: Any, user: str, named: str
) -> None:
    """Ours."""
    host = embed(build_app(principal=principal))
    reply = await call(host, MODERN, "tools/call", WHOAMI, headers={"x-user": user})
    assert result_of(reply)["content"][0]["text"] == f"{named} at embedded"


async def test_the_callable_of_the_app_wins_over_the_host() -> None:
    """Ours."""
    host = set_by_a_dependency(build_app(principal=lambda _: "app"), "host")
    assert await whoami(host) == "app at embedded"


@pytest.mark.parametrize(
    ("raised", "status", "code", "message", "challenge"),
    [
        pytest.param(
            HTTPException(401, "Log in.", {"WWW-Authenticate": "Bearer"}),
            401,
            -32600,
            "Log in.",
            "Bearer",
            id="unauthorized",
        ),
        pytest.param(
            HTTPException(403, "Not you."), 403, -32600, "Not you.", None, id="no"
        ),
        pytest.param(
            HTTPException(
                401, "Log in.", {"WWW-Authenticate": 'Bearer e="ü€\r\nX: y"'}
            ),
            401,
            -32600,
            "Log in.",
            'Bearer e="ü?  X: y"',
            id="AUTH-04 a header that is none",
        ),
        pytest.param(
            RuntimeError("the password is hunter2"),
            500,
            -32603,
            "Internal error",
            None,
            id="a crash admits nobody",
        ),
    ],
)
@pytest.mark.parametrize("verb", ["POST", "DELETE"])
@pytest.mark.parametrize("embed", [alone, included])
async def test_a_callable_that_raises_admits_nobody(
    embed: Callable[[App], ASGIApp],
    verb: str,
    raised: Exception,
    status: int,
    code: int,
    message: str,
    challenge: str | None,
) -> None:
    """Ours."""

    async def principal(_: Request) -> str:
        raise raised

    calls: list[str] = []
    host = embed(build_app(calls, principal=principal))
    reply = await send(host, verb, {"mcp-session-id": "x"})
    assert (reply.status_code, reply.json()) == (status, error(code, message))
    assert reply.headers.get("www-authenticate") == challenge
    assert calls == []


@pytest.mark.parametrize(
    "principal",
    [
        pytest.param({"sub": "ada"}, id="a dict"),
        pytest.param(7, id="a number"),
        pytest.param(User(None), id="an id of None"),  # type: ignore[arg-type]
    ],
)
@pytest.mark.parametrize("set_by", ["the app", "the host"])
async def test_a_caller_without_an_id_is_an_error_of_the_server(
    principal: Any, set_by: str
) -> None:
    """Ours: callers who can't be told apart would share what is sealed for one."""
    calls: list[str] = []
    if set_by == "the app":
        host: ASGIApp = build_app(calls, principal=lambda _: principal)
    else:
        host = set_by_a_dependency(build_app(calls), principal)
    reply = await call(host, MODERN, "tools/call", WHOAMI)
    assert (reply.status_code, reply.json()) == (500, error(-32603, "Internal error"))
    assert calls == []


# CORS of the host.


async def test_the_cors_of_the_host_does_not_double_that_of_the_app() -> None:
    """Ours: a browser refuses a reply with two values."""
    api = included(build_app())
    api.add_middleware(CORSMiddleware, allow_origins=["http://localhost:5173"])
    reply = await call(
        api, MODERN, "tools/list", headers={"origin": "http://localhost:5173"}
    )
    assert reply.headers.get_list("access-control-allow-origin") == [
        "http://localhost:5173"
    ]


# The lifespan.


@dataclass
class Life:
    """What happens to a lifespan."""

    events: list[str]
    fails: bool = False

    @asynccontextmanager
    async def of(self, app: Any) -> AsyncIterator[dict[str, str]]:
        """Be the lifespan of an app."""
        self.events.append(f"enter {app.name}")
        if self.fails:
            raise RuntimeError("the database is down")
        yield {"database": "open"}
        self.events.append(f"leave {app.name}")


def with_state(life: Life, **options: Any) -> App:
    app = App("embedded", lifespan=life.of, **options)

    @app.tool
    def state(ctx: Context) -> dict[str, str]:
        return dict(ctx.state)

    return app


@asynccontextmanager
async def running(host: ASGIApp) -> AsyncIterator[list[str]]:
    """Run the lifespan protocol as a server does; yields what the app sent."""
    sent: list[str] = []
    started, stopping = asyncio.Event(), asyncio.Event()
    began = False

    async def receive() -> dict[str, str]:
        nonlocal began
        if not began:
            began = True
            return {"type": "lifespan.startup"}
        await stopping.wait()
        return {"type": "lifespan.shutdown"}

    async def send(message: Any) -> None:
        sent.append(message["type"])
        started.set()

    scope = {"type": "lifespan", "asgi": {"version": "3.0"}, "state": {}}
    task = asyncio.ensure_future(host(scope, receive, send))
    task.add_done_callback(lambda _: started.set())
    await started.wait()
    try:
        yield sent
    finally:
        stopping.set()
        await task


async def state_of(host: ASGIApp, path: str, version: str = MODERN) -> Any:
    reply = await call(host, version, "tools/call", {"name": "state"}, path=path)
    return result_of(reply)["structuredContent"]


def included_twice(app: App) -> FastAPI:
    api = FastAPI()
    api.include_router(app.router)
    api.include_router(app.router, prefix="/again")
    return api


@pytest.mark.parametrize(
    ("embed", "paths"),
    [
        pytest.param(alone, ["/mcp"], id="alone"),
        pytest.param(included, ["/mcp"], id="included"),
        pytest.param(included_in_a_router, ["/api/outer/inner/mcp"], id="in a router"),
        pytest.param(included_twice, ["/mcp", "/again/mcp"], id="included twice"),
    ],
)
async def test_a_lifespan_is_entered_once_with_that_of_the_host(
    embed: Callable[[App], ASGIApp], paths: list[str]
) -> None:
    """HTTP-06. Ours."""
    life = Life([])
    host = embed(with_state(life))
    async with running(host) as sent:
        assert life.events == ["enter embedded"]
        for path in paths * 3:
            assert await state_of(host, path) == {"database": "open"}
            assert await state_of(host, path, LEGACY) == {"database": "open"}
        assert life.events == ["enter embedded"]
    assert life.events == ["enter embedded", "leave embedded"]
    assert sent == ["lifespan.startup.complete", "lifespan.shutdown.complete"]


@pytest.mark.parametrize(
    ("embed", "path"),
    [
        pytest.param(mounted, "/x/mcp", id="mounted"),
        pytest.param(included, "/mcp", id="included"),
        pytest.param(alone, "/mcp", id="alone"),
    ],
)
async def test_a_lifespan_is_entered_once_without_that_of_the_host(
    embed: Callable[[App], ASGIApp], path: str
) -> None:
    """HTTP-06. Ours: nobody runs the lifespan of a mounted app."""
    life = Life([])
    host = embed(with_state(life))
    states = await asyncio.gather(*(state_of(host, path) for _ in range(5)))
    assert (states, life.events) == ([{"database": "open"}] * 5, ["enter embedded"])


def test_a_lifespan_is_entered_once_in_each_event_loop_and_left_with_it() -> None:
    """Ours."""
    life = Life([])
    host = mounted(with_state(life))

    async def serve() -> None:
        await state_of(host, "/x/mcp")
        await state_of(host, "/x/mcp")

    asyncio.run(serve())
    asyncio.run(serve())
    assert life.events == ["enter embedded", "leave embedded"] * 2


async def test_the_lifespans_of_the_host_and_of_several_apps_run_together() -> None:
    """Ours."""
    events: list[str] = []
    api = FastAPI(lifespan=lambda _: Life(events).of(App("host")))
    for name in ("one", "two"):
        api.include_router(
            App(name, lifespan=Life(events).of).router, prefix=f"/{name}"
        )
    api.include_router(build_app().router)
    async with running(api):
        assert events == ["enter host", "enter one", "enter two"]
    assert events[3:] == ["leave two", "leave one", "leave host"]


@pytest.mark.parametrize("embed", [alone, included, included_twice])
async def test_a_lifespan_that_fails_aborts_the_start(
    embed: Callable[[App], ASGIApp],
) -> None:
    """HTTP-06. Ours."""
    host = embed(with_state(Life([], fails=True)))
    sent: list[str] = []
    with pytest.raises(RuntimeError, match="the database is down"):
        async with running(host) as sent:
            pass
    assert sent == ["lifespan.startup.failed"]


async def test_a_lifespan_that_fails_at_its_end_says_so() -> None:
    """Ours: `lifespan.startup.failed` would come too late to be understood."""

    @asynccontextmanager
    async def life(_: Any) -> AsyncIterator[None]:
        yield
        raise RuntimeError("the database is gone")

    sent: list[str] = []
    with pytest.raises(RuntimeError, match="the database is gone"):
        async with running(App("a", lifespan=life)) as sent:
            pass
    assert sent == ["lifespan.startup.complete", "lifespan.shutdown.failed"]


async def test_a_lifespan_that_fails_is_tried_again_by_the_next_request() -> None:
    """Ours."""
    life = Life([], fails=True)
    host = mounted(with_state(life))
    async with asyncio.timeout(10):
        reply = await call(host, MODERN, "tools/call", {"name": "state"}, path="/x/mcp")
        assert (reply.status_code, code_of(reply)) == (500, -32603)
        life.fails = False
        assert await state_of(host, "/x/mcp") == {"database": "open"}
    assert life.events == ["enter embedded"] * 2


async def test_a_failed_start_does_not_hang_who_asks_nevertheless() -> None:
    """Ours."""
    life = Life([], fails=True)
    app = with_state(life)
    with pytest.raises(RuntimeError, match="the database is down"):
        async with running(app):
            pass
    life.fails = False
    async with asyncio.timeout(10):
        assert await state_of(app, "/mcp") == {"database": "open"}


def test_a_lifespan_that_no_host_runs_is_left_when_the_server_stops() -> None:
    """Ours."""
    life = Life([])

    async def ask(port: int) -> None:
        message = legacy("tools/call", {"name": "state"})
        async with connected(port) as connection:
            await connection.send(whole(json.dumps(message).encode(), path="/x/mcp"))
            assert (await connection.reply()).status == 200

    with served(mounted(with_state(life)), "h11") as port:
        asyncio.run(ask(port))
        assert life.events == ["enter embedded"]
    assert life.events == ["enter embedded", "leave embedded"]


def test_a_lifespan_that_no_host_runs_and_that_fails_at_its_end_is_told() -> None:
    """Ours: to the event loop, since nobody else is there any more."""

    @asynccontextmanager
    async def life(_: Any) -> AsyncIterator[None]:
        yield
        raise RuntimeError("the database is gone")

    told: list[str] = []

    async def serve() -> None:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(
            lambda _, context: told.append(str(context["exception"]))
        )
        await whoami(mounted(build_app(lifespan=life)), "/x/mcp")

    asyncio.run(serve())
    assert told == ["the database is gone"]


def start(server: uvicorn.Server) -> None:
    """Run a server, which may end the process when it can't start."""
    with suppress(SystemExit):
        server.run()


def test_a_server_does_not_start_when_the_lifespan_fails() -> None:
    """HTTP-06. Ours."""
    for embed in (alone, included):
        life = Life([], fails=True)
        config = uvicorn.Config(embed(with_state(life)), port=0, log_config=None)
        server = uvicorn.Server(config)
        # A server takes the signals of the main thread for its own.
        thread = threading.Thread(target=start, args=[server])
        thread.start()
        thread.join(20)
        assert not thread.is_alive()
        assert (server.started, life.events) == (False, ["enter embedded"])
