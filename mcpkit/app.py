"""The object that a developer decorates, serves and embeds."""

import inspect
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from contextlib import asynccontextmanager, nullcontext
from typing import TYPE_CHECKING, Any

from mcpkit.backends.base import Backend
from mcpkit.components import Component, Tool, read_icons
from mcpkit.endpoint import DEFAULT_MAX_BODY, Endpoint, Principal
from mcpkit.errors import SetupError
from mcpkit.exchange import Receive, Scope, Send
from mcpkit.extensions import apps
from mcpkit.guard import Guard
from mcpkit.lifespan import Lifespan
from mcpkit.protocol.results import Cache, CacheScope
from mcpkit.protocol.sealing import Codec
from mcpkit.protocol.versions import ERAS, Era
from mcpkit.registry import Kind
from mcpkit.server import STATE_SECONDS, Lifespan as LifespanFactory, Options, Server

if TYPE_CHECKING:
    from fastapi import APIRouter

    from mcpkit.extensions.tasks import Tasks


class App(Server):
    """An MCP server, built by decorating functions.

    It is an ASGI application, served at `path` by `uvicorn server:app`, and has
    a `router` for `include_router` of a FastAPI app.

    Example:
        >>> app = App("weather")
        >>> @app.tool
        ... def forecast(city: str) -> str:
        ...     '''Say what the weather will be.'''
        ...     return f"Sun over {city}"
        >>> forecast("Oslo")
        'Sun over Oslo'

    Args:
        name: What the server calls itself. Tokens are bound to it.
        version: Its version.
        title: Its name for people.
        description: What it is for.
        website_url: Where people read about it.
        icons: Its icons, each a dict with `src`, `mimeType`, `sizes`, `theme`.
        instructions: How a model best uses it.
        path: Where it is served, with and without a trailing slash.
        lifespan: A function of the app that returns an async context manager,
            entered once a process. What it yields is `ctx.state`.
        principal: A function of the HTTP request that tells who calls: a
            string, an object with an `id` and `scopes`, or `None`. It may be
            async, and may raise an `HTTPException`. By default the caller is
            `request.state.principal`, where the host sets it.
        allowed_hosts: The Host headers that are admitted, such as
            `mcp.example.com` or `*.example.com`; `*` for all. By default those
            of this machine alone.
        allowed_origins: The origins of pages that are admitted, such as
            `https://app.example.com`; `*` for all. By default pages of this
            machine alone.
        max_body: How large a request may be, in bytes.
        eras: The eras that are spoken, "modern" and "legacy" by default.
        secret_key: The key that signs tokens, or several of which the first
            signs and all open, each of at least 32 bytes. By default those of
            the environment variable `MCPKIT_SECRET_KEY`, else one of this
            process alone.
        codec: An object that carries the state of a request in a form of its
            own, such as encrypted by a service for keys: `seal(data: bytes) ->
            str`, at most 64 KiB of ASCII, and `open(token: str) -> bytes`. What
            it carries is signed, bound and dated anyway.
        encrypt: Encrypt the state of a request, so that the client which holds
            it can't read it. It needs `mcpkit[crypto]`.
        require_session: Refuse legacy requests without a session.
        page_size: How many definitions a list answer has at most. By default
            all are in one answer.
        ttl_ms: Milliseconds a client may keep a list or a resource.
        cache_scope: "public" when they are the same for every caller.
        cache: The same by method, such as `{"tools/list": Cache(...)}`, for the
            methods that differ.
        coerce: Accept numbers in strings where a tool expects a number.
        debug: Send what a tool raised to the client. For development alone.
        logging: Declare the logging capability.
        capabilities: Server capabilities declared beside those that follow from
            what is registered, or in their place; `None` takes one away.
        threads: How many sync handlers run at once.
        backend: What several workers share. By default the memory of each alone.
        max_streams: How many streams of changes may be open in a worker.
        ask_seconds: How long a legacy client has to answer a question.
        access_log: Write a line a request to the log `mcpkit.access`.
        tasks: Where tasks are kept, and for how long. By default in the memory of
            the worker, for an hour.

    Raises:
        SetupError: An option can't work.
    """

    def __init__(
        self,
        name: str,
        *,
        version: str = "0.1.0",
        title: str | None = None,
        description: str | None = None,
        website_url: str | None = None,
        icons: Sequence[Mapping[str, Any]] | None = None,
        instructions: str | None = None,
        path: str = "/mcp",
        lifespan: LifespanFactory | None = None,
        principal: Principal | None = None,
        allowed_hosts: Sequence[str] | None = None,
        allowed_origins: Sequence[str] | None = None,
        max_body: int = DEFAULT_MAX_BODY,
        eras: Collection[Era] = ERAS,
        secret_key: str | bytes | Sequence[str | bytes] | None = None,
        codec: Codec | None = None,
        encrypt: bool = False,
        require_session: bool = False,
        page_size: int | None = None,
        ttl_ms: int = 60_000,
        cache_scope: CacheScope = "private",
        cache: Mapping[str, Cache] | None = None,
        coerce: bool = False,
        debug: bool = False,
        logging: bool = True,
        capabilities: Mapping[str, Any] | None = None,
        threads: int = 40,
        backend: Backend | None = None,
        max_streams: int = 1000,
        ask_seconds: float = STATE_SECONDS,
        access_log: bool = False,
        tasks: "Tasks | None" = None,
    ) -> None:
        if isinstance(eras, str):
            raise SetupError(f"eras is a set: write {{{eras!r}}}")
        _check_counts(
            threads=threads,
            max_streams=max_streams,
            max_body=max_body,
            page_size=page_size,
        )
        if not ask_seconds > 0:
            raise SetupError(f"ask_seconds is more than 0, not {ask_seconds!r}")
        _check_text("version", version)
        _check_text("title", title)
        try:
            default_cache = Cache(ttl_ms=ttl_ms, scope=cache_scope)
        except ValueError as error:
            raise SetupError(str(error)) from error
        super().__init__(
            name,
            {
                "name": name,
                "version": version,
                "title": title,
                "description": description,
                "websiteUrl": website_url,
                "icons": None if icons is None else read_icons(icons, name),
            },
            Options(
                instructions=instructions,
                eras=frozenset(eras),
                page_size=page_size,
                cache=default_cache,
                caches=dict(cache or {}),
                coerce=coerce,
                debug=debug,
                require_session=require_session,
                logging=logging,
                ask_seconds=ask_seconds,
                access_log=access_log,
                capabilities=dict(capabilities or {}),
            ),
            secret_key=secret_key,
            codec=codec,
            encrypt=encrypt,
            threads=threads,
            backend=backend,
            max_streams=max_streams,
        )
        self._tasks: Tasks | None = None
        if tasks is not None:
            self._install(tasks)
        if path and not path.startswith("/"):
            raise SetupError(f"path starts with a slash, as in '/mcp', not {path!r}")
        if lifespan is not None and inspect.isasyncgenfunction(lifespan):
            raise SetupError(
                f"lifespan {lifespan.__name__!r} is a generator: decorate it with "
                "contextlib.asynccontextmanager"
            )
        self.path = path.rstrip("/")
        self._lifespan = (
            None if lifespan is None else Lifespan(lifespan, self, self._publish)
        )
        self._endpoint = Endpoint(
            self,
            Guard(allowed_hosts, allowed_origins),
            principal=principal,
            lifespan=self._lifespan,
            max_body=max_body,
        )
        self._paths = frozenset({self.path, f"{self.path}/"})
        self._router: APIRouter | None = None

    @property
    def tasks(self) -> "Tasks":
        """The tasks of the app, which has the extension from now on."""
        if self._tasks is None:
            return self._install(None)
        return self._tasks

    def _install(self, tasks: "Tasks | None") -> "Tasks":
        # Loaded by those alone who have tasks.
        from mcpkit.extensions.tasks import Tasks  # noqa: PLC0415

        if tasks is None:
            tasks = Tasks()
        if not isinstance(tasks, Tasks):
            raise SetupError(
                "tasks is a Tasks, such as Tasks(SQLiteTaskStore('tasks.db')), not "
                f"{tasks!r}"
            )
        tasks.install(self)
        self._tasks = tasks
        return tasks

    def _check(self, kind: Kind, component: Component) -> None:
        super()._check(kind, component)
        if isinstance(component, Tool) and component.task is not None:
            _ = self.tasks
        shown = any(isinstance(rule, apps.AppsRule) for rule in component.rules)
        if shown and apps.IDENTIFIER not in self.extensions:
            self.add_extension(apps.EXTENSION)

    def close(self) -> None:
        """End the open streams, each with what its client is told at the end.

        A process that is asked to stop by a signal does it by itself, and a server
        that ends the app's lifespan. It is for those who stop a server otherwise.
        From any thread. Streams that are opened later end at once, until the app is
        served in another event loop, or its lifespan begins again.
        """
        self.subscriptions.end()

    def _publish(self, state: Any) -> None:
        self.state = state

    @property
    def router(self) -> "APIRouter":
        """The endpoint as a FastAPI router, for `include_router`.

        It takes `prefix=` and `dependencies=` as every router does, answers
        with and without a trailing slash, and needs no lifespan of the host.
        """
        if self._router is None:
            # FastAPI is needed by those who embed the app, and loads slowly.
            from mcpkit.router import build_router  # noqa: PLC0415

            self._router = build_router(self._endpoint, self.path, self._running)
        return self._router

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve as an ASGI application."""
        if scope["type"] == "http":
            if self._is_endpoint(scope):
                return await self._endpoint(scope, receive, send)
            return await _not_found(send, scope.get("root_path", "") + self.path)
        if scope["type"] == "lifespan":
            return await self._serve_lifespan(receive, send)
        return await send({"type": "websocket.close", "code": 1000})

    @asynccontextmanager
    async def _running(self) -> AsyncIterator[None]:
        self.subscriptions.reopen()
        held = nullcontext() if self._lifespan is None else self._lifespan.running()
        async with held:
            if self._tasks is not None:
                await self._tasks.open()
            try:
                yield
            finally:
                self.close()
                if self._tasks is not None:
                    await self._tasks.stop()

    def _is_endpoint(self, scope: Scope) -> bool:
        path: str = scope["path"]
        root: str = scope.get("root_path", "")
        if not root:
            return path in self._paths
        # Under `mount` the path begins with the place where the app is mounted,
        # and that place itself is the endpoint too.
        path = path.removeprefix(root)
        return path in self._paths or path in ("", "/")

    async def _serve_lifespan(self, receive: Receive, send: Send) -> None:
        await receive()
        phase = "startup"
        try:
            async with self._running():
                await send({"type": "lifespan.startup.complete"})
                phase = "shutdown"
                await receive()
        except Exception as error:
            await send({"type": f"lifespan.{phase}.failed", "message": str(error)})
            raise
        await send({"type": "lifespan.shutdown.complete"})


def _check_text(name: str, value: object) -> None:
    if not isinstance(value, (str, type(None))):
        raise SetupError(f"{name} is a string, not {value!r}")


def _check_counts(**counts: int | None) -> None:
    for name, value in counts.items():
        if value is not None and (type(value) is not int or value < 1):
            raise SetupError(f"{name} is one or more, not {value!r}")


async def _not_found(send: Send, served: str) -> None:
    body = f"Not Found: MCP is served at {served or '/'}".encode()
    headers = [
        (b"content-type", b"text/plain; charset=utf-8"),
        (b"content-length", b"%d" % len(body)),
    ]
    await send({"type": "http.response.start", "status": 404, "headers": headers})
    await send({"type": "http.response.body", "body": body})
