"""The object that a developer decorates, serves and embeds."""

import inspect
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import nullcontext
from functools import partial
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, Unpack, overload

from mcpkit.components import (
    Completion,
    Prompt,
    PromptOptions,
    Resource,
    ResourceOptions,
    ResourceTemplate,
    Tool,
    ToolOptions,
    build_completion,
    build_prompt,
    build_resource,
    build_tool,
    read_icons,
)
from mcpkit.directory import MAX_FILE, Directory
from mcpkit.endpoint import DEFAULT_MAX_BODY, Endpoint, Principal, Receive, Scope, Send
from mcpkit.errors import SetupError
from mcpkit.files import guess_type
from mcpkit.guard import Guard
from mcpkit.lifespan import Lifespan
from mcpkit.protocol.results import Cache, CacheScope
from mcpkit.protocol.versions import ERAS, Era
from mcpkit.server import Lifespan as LifespanFactory, Options, Server

if TYPE_CHECKING:
    from fastapi import APIRouter

F = TypeVar("F", bound=Callable[..., Any])


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
    ) -> None:
        if isinstance(eras, str):
            raise SetupError(f"eras is a set: write {{{eras!r}}}")
        _check_count("threads", threads)
        if page_size is not None:
            _check_count("page_size", page_size)
        for text, given in (("version", version), ("title", title)):
            if not isinstance(given, (str, type(None))):
                raise SetupError(f"{text} is a string, not {given!r}")
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
                capabilities=dict(capabilities or {}),
            ),
            secret_key=secret_key,
            threads=threads,
        )
        if path and not path.startswith("/"):
            raise SetupError(f"path starts with a slash, as in '/mcp', not {path!r}")
        _check_count("max_body", max_body)
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

    def _publish(self, state: Any) -> None:
        self.state = state

    @overload
    def tool(self, handler: F, /) -> F: ...

    @overload
    def tool(self, /, **options: Unpack[ToolOptions]) -> Callable[[F], F]: ...

    def tool(
        self, handler: F | None = None, /, **options: Unpack[ToolOptions]
    ) -> F | Callable[[F], F]:
        """Register a function as a tool, and return it unchanged.

        Works bare (`@app.tool`) and called (`@app.tool(name="x")`); the options
        are those of `add_tool`.

        Raises:
            SetupError: The function or an option can't work, or the name is taken.
        """
        return _decorate(self.add_tool, handler, options)

    def add_tool(
        self,
        handler: Callable[..., Any],
        /,
        *,
        replace: bool = False,
        **options: Unpack[ToolOptions],
    ) -> Tool:
        """Register a function as a tool.

        Args:
            handler: The function. Its parameters are the arguments, and its
                return annotation is the output schema.
            replace: Take the place of the tool that has the name.
            options: The options of `ToolOptions`.

        Raises:
            SetupError: The function or an option can't work, or the name is taken.
        """
        tool = build_tool(handler, options)
        self.registry.add_tool(tool, replace=replace)
        return tool

    def remove_tool(self, name: str) -> None:
        """Remove a tool.

        Raises:
            KeyError: There is none of that name.
        """
        self.registry.remove_tool(name)

    def resource(
        self, uri: str, /, **options: Unpack[ResourceOptions]
    ) -> Callable[[F], F]:
        """Register a function as a resource, and return it unchanged.

        A URI with variables, such as `books://{isbn}`, makes a resource
        template; the variables are the function's parameters. The options are
        those of `add_resource`.

        Raises:
            SetupError: The function, the URI or an option can't work, or the
                URI is taken.
        """
        if callable(uri):
            raise SetupError(
                "a resource needs its URI: write @app.resource('scheme://name')"
            )

        def register(function: F) -> F:
            self.add_resource(uri, function, **options)
            return function

        return register

    def add_resource(
        self,
        uri: str,
        handler: Callable[..., Any] | Path,
        /,
        *,
        replace: bool = False,
        **options: Unpack[ResourceOptions],
    ) -> Resource | ResourceTemplate:
        """Register a function as a resource, or as a resource template.

        Args:
            uri: The URI, or a URI template.
            handler: The function that returns the contents; or a file, whose
                size and type are published as they are now.
            replace: Take the place of the resource that has the URI.
            options: The options of `ResourceOptions`.

        Raises:
            SetupError: The function, the URI or an option can't work, or the
                URI is taken.
        """
        resource = build_resource(uri, handler, options)
        if resource.scopes and options.get("cache_scope") == "public":
            raise SetupError(
                f"resource {uri!r}: what needs scopes can't be cached as public"
            )
        self.registry.add_resource(resource, replace=replace)
        return resource

    def add_directory(
        self,
        uri: str,
        path: str | PathLike[str],
        /,
        *,
        list_files: bool = False,
        hidden: bool = False,
        max_size: int = MAX_FILE,
        replace: bool = False,
        **options: Unpack[ResourceOptions],
    ) -> ResourceTemplate:
        """Register a directory as resources, whose paths follow the URI.

        It becomes a template, `docs://{+path}`, the path of which is completed.
        Nothing outside of the directory can be read, whether by the path or by
        a link.

        Args:
            uri: The URI of the directory, such as `docs://`.
            path: The directory.
            list_files: List each file that is there now as a resource, too.
            hidden: Read what begins with a dot, too.
            max_size: How large a file may be, in bytes; a larger one is not found.
            replace: Take the place of what has the URIs.
            options: The options of `ResourceOptions`. A `mime_type` is that of
                all files; by default each has its own.

        Raises:
            SetupError: There is no such directory, an option can't work, or a
                URI is taken.
        """
        if "{" in uri or not uri:
            raise SetupError(
                f"the URI of a directory is one such as 'docs://', not {uri!r}; its "
                "variable is added"
            )
        mime_type = options.get("mime_type")
        directory = Directory(
            path, hidden=hidden, max_size=max_size, mime_type=mime_type
        )
        options = {
            "name": directory.root.name,
            "description": f"The files in {directory.root.name}.",
            **options,
        }
        base = uri if uri.endswith(("/", ":")) else f"{uri}/"
        text = f"{base}{{+path}}"
        files = directory.files() if list_files else []
        template = self.add_resource(text, directory.read, replace=replace, **options)
        assert isinstance(template, ResourceTemplate)  # noqa: S101  # it has a variable
        for file in files:
            listed: ResourceOptions = {
                **options,
                "name": file,
                "description": "",
                "mime_type": mime_type or guess_type(file),
                "size": directory.size(file),
            }
            handler = partial(directory.read, file)
            self.add_resource(
                template.template.expand({"path": file}),
                handler,
                replace=replace,
                **listed,
            )
        self.add_completion(text, "path", directory.complete, replace=replace)
        return template

    def remove_resource(self, uri: str) -> None:
        """Remove a resource, or a resource template by its text.

        Raises:
            KeyError: There is none with that URI.
        """
        self.registry.remove_resource(uri)

    @overload
    def prompt(self, handler: F, /) -> F: ...

    @overload
    def prompt(self, /, **options: Unpack[PromptOptions]) -> Callable[[F], F]: ...

    def prompt(
        self, handler: F | None = None, /, **options: Unpack[PromptOptions]
    ) -> F | Callable[[F], F]:
        """Register a function as a prompt, and return it unchanged.

        Works bare (`@app.prompt`) and called (`@app.prompt(name="x")`); the
        options are those of `add_prompt`.

        Raises:
            SetupError: The function or an option can't work, or the name is taken.
        """
        return _decorate(self.add_prompt, handler, options)

    def add_prompt(
        self,
        handler: Callable[..., Any],
        /,
        *,
        replace: bool = False,
        **options: Unpack[PromptOptions],
    ) -> Prompt:
        """Register a function as a prompt.

        Args:
            handler: The function that returns the messages.
            replace: Take the place of the prompt that has the name.
            options: The options of `PromptOptions`.

        Raises:
            SetupError: The function or an option can't work, or the name is taken.
        """
        prompt = build_prompt(handler, options)
        self.registry.add_prompt(prompt, replace=replace)
        return prompt

    def remove_prompt(self, name: str) -> None:
        """Remove a prompt.

        Raises:
            KeyError: There is none of that name.
        """
        self.registry.remove_prompt(name)

    def complete(
        self, reference: str, argument: str, /, *, thread: bool = True
    ) -> Callable[[F], F]:
        """Register a function that completes an argument, and return it unchanged.

        Args:
            reference: The name of a prompt, or a resource template.
            argument: The name of the prompt's argument or the template's variable.
            thread: Run a sync function in a thread.

        Raises:
            SetupError: The function can't work, or the argument has a completion.
        """

        def register(function: F) -> F:
            self.add_completion(reference, argument, function, thread=thread)
            return function

        return register

    def add_completion(
        self,
        reference: str,
        argument: str,
        handler: Callable[..., Any],
        /,
        *,
        thread: bool = True,
        replace: bool = False,
    ) -> Completion:
        """Register a function that completes an argument.

        Args:
            reference: The name of a prompt, or a resource template.
            argument: The name of the prompt's argument or the template's variable.
            handler: The function, from what was typed to a list of strings.
            thread: Run a sync function in a thread.
            replace: Take the place of the completion that the argument has.

        Raises:
            SetupError: The function can't work, or the argument has a completion.
        """
        completion = build_completion(reference, argument, handler, thread=thread)
        known = self.registry.arguments_of(reference)
        if known is not None and argument not in known:
            raise SetupError(
                f"{reference!r} has no argument {argument!r} to complete; it has "
                f"{', '.join(known) or 'none'}"
            )
        self.registry.add_completion(completion, replace=replace)
        return completion

    def remove_completion(self, reference: str, argument: str, /) -> None:
        """Remove the completion of an argument.

        Raises:
            KeyError: The argument has none.
        """
        self.registry.remove_completion(reference, argument)

    @property
    def router(self) -> "APIRouter":
        """The endpoint as a FastAPI router, for `include_router`.

        It takes `prefix=` and `dependencies=` as every router does, answers
        with and without a trailing slash, and needs no lifespan of the host.
        """
        if self._router is None:
            # FastAPI is needed by those who embed the app, and loads slowly.
            from mcpkit.router import build_router  # noqa: PLC0415

            self._router = build_router(self._endpoint, self.path, self._lifespan)
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
        held = nullcontext() if self._lifespan is None else self._lifespan.running()
        phase = "startup"
        try:
            async with held:
                await send({"type": "lifespan.startup.complete"})
                phase = "shutdown"
                await receive()
        except Exception as error:
            await send({"type": f"lifespan.{phase}.failed", "message": str(error)})
            raise
        await send({"type": "lifespan.shutdown.complete"})


def _check_count(name: str, value: object) -> None:
    if type(value) is not int or value < 1:
        raise SetupError(f"{name} is one or more, not {value!r}")


def _decorate(
    add: Callable[..., Any], handler: F | None, options: Mapping[str, Any]
) -> F | Callable[[F], F]:
    """Return what a decorator returns that works bare and called."""

    def register(function: F) -> F:
        add(function, **options)
        return function

    return register if handler is None else register(handler)


async def _not_found(send: Send, served: str) -> None:
    body = f"Not Found: MCP is served at {served or '/'}".encode()
    headers = [
        (b"content-type", b"text/plain; charset=utf-8"),
        (b"content-length", b"%d" % len(body)),
    ]
    await send({"type": "http.response.start", "status": 404, "headers": headers})
    await send({"type": "http.response.body", "body": body})
