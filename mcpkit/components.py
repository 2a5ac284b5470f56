"""What is registered: tools, resources, templates, prompts and completions.

Each is built once from a function, with its definition as the newest revision
has it, and knows how to validate arguments, inject, and call.
"""

import asyncio
import inspect
import re
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, Literal, TypeAlias, TypedDict, cast

from mcpkit.cleanup import Cleanup
from mcpkit.context import Context
from mcpkit.docstrings import Docstring, docstring_of, read_docstring
from mcpkit.errors import (
    InputRequiredError,
    MCPKitError,
    ProtocolError,
    RequestCancelledError,
    SetupError,
    StoppedError,
    ToolError,
)
from mcpkit.extensions.apps import (
    APPS,
    SCHEME,
    UI,
    AppsRule,
    UIOptions,
    is_page,
    read_page,
    read_ui,
)
from mcpkit.files import guess_type
from mcpkit.forms import read_form
from mcpkit.given import read_given_returns, read_given_signature
from mcpkit.hints import innermost
from mcpkit.protocol.content import read_annotations, without_none
from mcpkit.protocol.headers import HeaderParam, header_params
from mcpkit.protocol.jsonrpc import encode
from mcpkit.protocol.results import Cache, CacheScope
from mcpkit.returns import Returns, read_returns
from mcpkit.signature import Signature, read_signature
from mcpkit.threads import Threads
from mcpkit.uris import UriTemplate
from mcpkit.variables import read_choices, read_template
from mcpkit.visibility import Rule, Visible, read_visible

Handler = Callable[..., Any]

_NO_OVERRIDES: Final[Mapping[Handler, Handler]] = {}

TaskMode: TypeAlias = (
    Literal["optional", "required"] | Callable[[Context], bool | Awaitable[bool]]
)
"""Whether a call becomes a task."""

MAX_NAME: Final = 128
"""How many characters a name may have."""

_SCOPE: Final = re.compile(r"[\x21\x23-\x5b\x5d-\x7e]+\Z")
# What an option is, where a wrong one would go on the wire and spoil a whole list.
_OPTION_TYPES: Final[Mapping[str, tuple[type[Any] | tuple[type[Any], ...], str]]] = (
    MappingProxyType(
        {
            "title": (str, "a string"),
            "description": (str, "a string"),
            "mime_type": (str, "a string"),
            "icons": (Sequence, "a list of dicts"),
            "meta": (Mapping, "a dict"),
            "annotations": (Mapping, "a dict"),
            "scopes": (Collection, "a list of strings"),
            "tags": (Collection, "a list of strings"),
            "thread": (bool, "True or False"),
            "resumable": (bool, "True or False"),
            "single_use": (bool, "True or False"),
            "asks": ((list, tuple), "a list"),
        }
    )
)
_ASKS: Final[Mapping[str, Mapping[str, Mapping[str, Any]]]] = MappingProxyType(
    {
        "elicitation": {"elicitation": {"form": {}}},
        "url": {"elicitation": {"url": {}}},
        "sampling": {"sampling": {}},
        "roots": {"roots": {}},
    }
)
"""What a client needs for each kind of question."""

_TOOL_HINTS: Final = frozenset(
    {"title", "readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"}
)


class HandlerError(MCPKitError):
    """A handler raised something that is not meant for the client.

    The exception itself is the `__cause__`.
    """


class CommonOptions(TypedDict, total=False):
    """What every component may be given.

    Attributes:
        name: What clients call it; the function's name by default.
        title: Its name for people.
        description: What it is for; the function's docstring by default.
        icons: Its icons, each a dict with `src`, `mimeType`, `sizes`, `theme`.
        meta: Its `_meta`.
        scopes: The scopes that a caller needs, all of them.
        tags: Words by which `include` selects it. They are not sent.
        visible: A function of the caller, as `ctx.principal` has it, that tells
            whether the component exists for that caller; or "scopes", for those
            who have its scopes.
        thread: Run a sync function in a thread, which is the default.
        asks: What the function can't do without asking its client: the types of
            forms, which are checked when it is registered, and any of "elicitation",
            "url", "sampling" and "roots". It is not called for a client that can't
            answer.
        single_use: The state that a client holds between two rounds of questions is
            good for one retry. By default it may be sent again until it expires.
    """

    name: str | None
    title: str | None
    description: str | None
    icons: Sequence[Mapping[str, Any]] | None
    meta: Mapping[str, Any] | None
    scopes: Sequence[str]
    tags: Collection[str]
    visible: Visible | None
    thread: bool
    asks: Sequence[Any]
    single_use: bool


class ToolOptions(CommonOptions, total=False):
    """What a tool may be given.

    Attributes:
        annotations: Hints for the client: `readOnlyHint`, `destructiveHint`,
            `idempotentHint`, `openWorldHint`.
        input_schema: A JSON Schema of the arguments, in place of the function's.
            The function takes them as one dict.
        output_schema: A JSON Schema of the structured content that the function
            returns, in place of its annotation.
        task: A call becomes a task, for clients that have them: "optional" for
            those alone, "required" to refuse others, or a function of the
            `Context` that tells. It may ask the client before it does; what it
            asks, the tool asks again in the same words, and has the answer.
        resumable: A task whose worker is gone is run again by another, from the
            first line, with what was answered and what `ctx.once` did.
        ui: The page that shows what it returns, such as "ui://books/card", or a `UI`.
            Clients that show none have the tool without it.
    """

    annotations: Mapping[str, Any] | None
    input_schema: Mapping[str, Any] | None
    output_schema: Mapping[str, Any] | None
    task: TaskMode | None
    resumable: bool
    ui: str | UI | None


class ResourceOptions(CommonOptions, total=False):
    """What a resource or a resource template may be given.

    Attributes:
        mime_type: The type of its contents; of what is at `ui://`, it is known.
        annotations: Hints for the client: `audience`, `priority`, `lastModified`.
        size: The size of the contents in bytes, when it is known.
        ttl_ms: Milliseconds a client may keep the contents.
        cache_scope: "public" when the contents are the same for every caller.
        ui: What a page, at `ui://`, needs of the host that shows it.
    """

    mime_type: str | None
    annotations: Mapping[str, Any] | None
    size: int | None
    ttl_ms: int | None
    cache_scope: CacheScope | None
    ui: UIOptions | None


class PromptOptions(CommonOptions, total=False):
    """What a prompt may be given."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Component:
    """What all components have.

    Attributes:
        name: What clients call it.
        handler: The function.
        signature: How to call it.
        wire: Its definition, as the newest revision has it.
        scopes: The scopes that a caller needs.
        tags: Words by which it is selected.
        visible: Which callers see it; `None` for all.
        listed: Which of them have it in a list; `None` for all.
        thread: It runs in a thread.
        needs: The client capabilities without which it is not called.
        single_use: The state of a round of questions is good for one retry.
    """

    name: str
    handler: Handler
    signature: Signature
    wire: Mapping[str, Any]
    scopes: frozenset[str] = frozenset()
    tags: frozenset[str] = frozenset()
    visible: Rule | None = None
    listed: Rule | None = None
    thread: bool = False
    needs: Mapping[str, Any] = field(default_factory=dict)
    single_use: bool = False

    def __post_init__(self) -> None:
        # What can't be sent would break the list of all the others.
        try:
            encode(self.wire)
        except ValueError as error:
            raise SetupError(
                f"{self.name!r}: its definition has no JSON form: {error}"
            ) from error

    @property
    def rules(self) -> tuple[Rule, ...]:
        """The rules by which a list has it for some otherwise than for others."""
        return () if self.listed is None else (self.listed,)

    async def call(
        self,
        keywords: dict[str, Any],
        context: Context,
        threads: Threads,
        overrides: Mapping[Handler, Handler] = _NO_OVERRIDES,
    ) -> Any:
        """Call the function.

        Args:
            keywords: Its validated arguments.
            context: The request.
            threads: Where a sync function runs.
            overrides: Which dependencies are called in place of others.

        Raises:
            ToolError: As the function, or a dependency of it, raised it.
            ProtocolError: The same; an HTTP error of a dependency becomes one.
            InputRequiredError: The client is to be asked something.
            HandlerError: One of them raised anything else.
        """
        signature = self.signature
        if signature.context is not None:
            keywords[signature.context] = context
        try:
            if signature.dependencies is not None:
                keywords |= await signature.dependencies.solve(context, overrides)
            positional = signature.place(keywords) if signature.positional else ()
            if signature.is_async:
                value = await self.handler(*positional, **keywords)
            else:
                value = await self._call_sync(context, threads, positional, keywords)
            if context.cancelled or context.conversation is not None:
                _check_stopped(context)
        # An exit that a handler asks for ends its request, and not the server.
        except BaseException as error:  # noqa: BLE001  # it is raised again
            raise await _outcome(error, context)  # noqa: B904  # it has its cause
        return value

    async def _call_sync(
        self,
        context: Context,
        threads: Threads,
        positional: Sequence[Any],
        keywords: Mapping[str, Any],
    ) -> Any:
        if self.thread:
            context.loop = asyncio.get_running_loop()
            function = partial(self.handler, *positional, **keywords)
            value = await threads.call(function, context.cancel)
        else:
            value = self.handler(*positional, **keywords)
        # A sync wrapper may be around an async function.
        return await value if inspect.isawaitable(value) else value


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool(Component):
    """A tool.

    Attributes:
        returns: What it returns, after its annotation.
        headers: The arguments that travel in headers too.
        task: Whether a call becomes a task.
        resumable: Such a task may be run again.
        ui: How it is shown.
    """

    returns: Returns
    headers: tuple[HeaderParam, ...] = ()
    task: TaskMode | None = None
    resumable: bool = False
    ui: UI | None = None

    @property
    def rules(self) -> tuple[Rule, ...]:
        """The rules by which a list has it for some otherwise than for others."""
        listed = () if self.listed is None else (self.listed,)
        return listed if self.ui is None else (*listed, APPS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Resource(Component):
    """A resource with a URI of its own.

    Attributes:
        uri: Its URI.
        mime_type: The type of its contents, if it is declared.
        ttl_ms: Milliseconds a client may keep the contents.
        cache_scope: Who may share them.
    """

    uri: str
    mime_type: str | None = None
    ttl_ms: int | None = None
    cache_scope: CacheScope | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceTemplate(Component):
    """A family of resources, whose URIs a template describes.

    Attributes:
        template: The template.
        mime_type: The type of the contents, if it is declared.
        ttl_ms: Milliseconds a client may keep the contents.
        cache_scope: Who may share them.
        choices: The values of the variables that have few.
    """

    template: UriTemplate
    mime_type: str | None = None
    ttl_ms: int | None = None
    cache_scope: CacheScope | None = None
    choices: Mapping[str, Sequence[str]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt(Component):
    """A prompt.

    Attributes:
        description: What it is for.
        choices: The values of the arguments that have few.
    """

    description: str | None = None
    choices: Mapping[str, Sequence[str]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Completion(Component):
    """Suggestions for one argument of a prompt or a template.

    Attributes:
        reference: The name of the prompt, or the template.
        argument: The name of the argument.
        takes: Which of `value` and `arguments` the function takes.
    """

    reference: str
    argument: str
    takes: frozenset[str] = field(default_factory=frozenset)


def build_tool(handler: Handler, options: ToolOptions) -> Tool:
    """Build a tool from a function.

    Raises:
        SetupError: The function or an option can't work.
    """
    _check_options(options, ToolOptions.__optional_keys__, "tool")
    name = _name(handler, options, "tool")
    what = f"tool {name!r}"
    given = options.get("input_schema")
    if given is None:
        docstring = read_docstring(handler)
        signature = read_signature(handler, what, docstring.parameters)
    else:
        docstring = Docstring(docstring_of(handler))
        signature = read_given_signature(handler, given, what)
    returns = _returns(handler, options, what)
    annotations = _hints(options.get("annotations"), _TOOL_HINTS, what)
    headers = _headers(signature, what)
    ui = read_ui(options.get("ui"), options.get("meta"), what)
    wire = without_none(
        {
            **_definition(name, docstring.text, options),
            "inputSchema": signature.schema,
            "outputSchema": returns.schema,
            "annotations": annotations,
        }
    )
    return Tool(
        name=name,
        handler=handler,
        signature=signature,
        wire=wire,
        **_tool_access(options, ui, what),
        thread=_thread(signature, options),
        returns=returns,
        headers=headers,
        task=_task(options, what),
        resumable=bool(options.get("resumable", False)),
        ui=ui,
    )


def _tool_access(options: ToolOptions, ui: UI | None, what: str) -> dict[str, Any]:
    access = _access(options, what)
    if ui is None or ui.for_model:
        return access
    # Who has no pages would offer it to a model.
    rule = AppsRule(access["visible"])
    return {**access, "visible": rule, "listed": rule}


def _task(options: ToolOptions, what: str) -> TaskMode | None:
    task = options.get("task")
    if options.get("resumable") and task is None:
        raise SetupError(f"{what}: resumable needs task='optional' or 'required'")
    if task is None or callable(task) or task in ("optional", "required"):
        return task
    raise SetupError(
        f"{what}: task is 'optional', 'required' or a function of the Context, not "
        f"{task!r}"
    )


def _returns(handler: Handler, options: ToolOptions, what: str) -> Returns:
    given = options.get("output_schema")
    if given is None:
        return read_returns(handler, what)
    return read_given_returns(given, what)


def build_resource(
    uri: str, handler: Handler | Path | str, options: ResourceOptions
) -> Resource | ResourceTemplate:
    """Build a resource from a function, or a template when the URI has variables.

    A file may take the place of the function: its name, its size and its type
    are published. So may the HTML of a page, at `ui://`.

    Raises:
        SetupError: The function, the URI or an option can't work.
    """
    if not uri:
        raise SetupError(
            "a resource needs its URI: write @app.resource('scheme://name')"
        )
    what = f"resource {uri!r}"
    _check_options(options, ResourceOptions.__optional_keys__, "resource")
    options = _page(uri, options, what)
    handler, options = _function(uri, handler, options, what)
    name = _name(handler, options, "resource")
    signature = read_signature(handler, what)
    template = read_template(uri, signature, what)
    _check_no_headers(signature, what)
    ttl_ms, cache_scope = options.get("ttl_ms"), options.get("cache_scope")
    try:
        Cache(ttl_ms=ttl_ms or 0, scope=cache_scope or "private")
    except ValueError as error:
        raise SetupError(f"{what}: {error}") from error
    access = _access(options, what)
    if cache_scope == "public" and (access["scopes"] or access["visible"]):
        kind = "needs scopes" if access["scopes"] else "only some callers see"
        raise SetupError(f"{what}: what {kind} can't be cached as public")
    if is_page(uri):
        access["listed"] = AppsRule(access["visible"])
    wire = without_none(
        {
            ("uri" if template is None else "uriTemplate"): uri,
            **_definition(name, docstring_of(handler), options),
            "mimeType": options.get("mime_type"),
            "annotations": _annotations(options.get("annotations"), what),
            "size": _size(options.get("size"), what),
        }
    )
    common: dict[str, Any] = {
        "name": name,
        "handler": handler,
        "signature": signature,
        "wire": wire,
        **access,
        "thread": _thread(signature, options),
        "mime_type": options.get("mime_type"),
        "ttl_ms": ttl_ms,
        "cache_scope": cache_scope,
    }
    if template is None:
        return Resource(uri=uri, **common)
    if options.get("size") is not None:
        raise SetupError(f"{what}: a template has no size, only its resources have")
    choices = read_choices(signature)
    return ResourceTemplate(template=template, choices=choices, **common)


def build_prompt(handler: Handler, options: PromptOptions) -> Prompt:
    """Build a prompt from a function.

    Raises:
        SetupError: The function or an option can't work.
    """
    _check_options(options, PromptOptions.__optional_keys__, "prompt")
    name = _name(handler, options, "prompt")
    what = f"prompt {name!r}"
    docstring = read_docstring(handler)
    signature = read_signature(handler, what, docstring.parameters)
    _check_no_headers(signature, what)
    properties = signature.schema.get("properties", {})
    arguments = [
        without_none(
            {
                "name": argument,
                "title": schema.get("title"),
                "description": schema.get("description"),
                "required": argument in signature.schema.get("required", ()),
            }
        )
        for argument, schema in properties.items()
    ]
    definition = _definition(name, docstring.text, options)
    return Prompt(
        name=name,
        handler=handler,
        signature=signature,
        wire={**definition, "arguments": arguments} if arguments else definition,
        **_access(options, what),
        thread=_thread(signature, options),
        description=definition.get("description"),
        choices=read_choices(signature),
    )


def build_completion(
    reference: str, argument: str, handler: Handler, *, thread: bool = True
) -> Completion:
    """Build a completion from a function.

    The function takes `value`, what was typed so far, and may take `arguments`,
    a dict of the arguments that are settled already, and a `Context`.

    Raises:
        SetupError: The function can't work.
    """
    what = f"completion of {argument!r} of {reference!r}"
    signature = read_signature(handler, what)
    _check_no_headers(signature, what)
    unknown = set(signature.names) - {"value", "arguments"}
    if unknown:
        raise SetupError(
            f"{what}: the parameter {min(unknown)!r} is none of value, arguments "
            "and a Context"
        )
    return Completion(
        name=f"{reference}#{argument}",
        handler=handler,
        signature=signature,
        wire={},
        thread=thread and not signature.is_async,
        reference=reference,
        argument=argument,
        takes=frozenset(signature.names),
    )


async def leave(context: Context, cleanup: Cleanup) -> None:
    """End what dependencies keep open until the result of their function is made.

    Raises:
        ToolError: As a dependency raised it.
        ProtocolError: The same; an HTTP error becomes one.
        HandlerError: A dependency raised anything else.
    """
    try:
        await cleanup.leave()
    except BaseException as error:  # noqa: BLE001  # it is raised again
        raise await _outcome(error, context)  # noqa: B904  # it has its cause


async def abandon(context: Context, error: BaseException) -> None:
    """End what dependencies keep open when their function's result can't be sent."""
    cleanup, context.cleanup = context.cleanup, None
    if cleanup is not None:
        await cleanup.abandon(error)


def _check_stopped(context: Context) -> None:
    """Stop a handler that went on to its end although it had been stopped.

    Raises:
        CancelledError: Nobody waits for the result.
        BaseException: The client was asked something.
    """
    if context.cancelled:
        raise asyncio.CancelledError
    if context.conversation is not None:
        context.conversation.check()


async def _outcome(error: BaseException, context: Context) -> BaseException:
    """Return what a call ends with, given what was raised in it."""
    if isinstance(error, GeneratorExit):
        # Nothing can be waited for any more.
        return error
    stopped = await _stopped(context, error)
    cleanup, context.cleanup = context.cleanup, None
    if cleanup is not None and stopped is not None:
        # Dependencies see an ordinary error, which all of them clean up after.
        await cleanup.abandon(stopped)
    elif cleanup is not None:
        error = await cleanup.fail(error)
    if isinstance(stopped, RequestCancelledError):
        # Whatever the handler made of it, nobody waits for an answer.
        outcome: BaseException = asyncio.CancelledError()
    elif stopped is not None:
        return stopped
    elif isinstance(error, (ToolError, ProtocolError)):
        return error
    else:
        outcome = HandlerError()
    outcome.__cause__ = error
    return outcome


async def _stopped(context: Context, error: BaseException) -> StoppedError | None:
    """Return why a handler was stopped before its end, if it was."""
    conversation = context.conversation
    is_asking = conversation is not None and conversation.asked
    if conversation is not None and is_asking:
        try:
            await conversation.finish()
        except asyncio.CancelledError as cancelled:
            error = cancelled
    if context.cancelled or _is_cancelled(error):
        return RequestCancelledError()
    return InputRequiredError() if is_asking else None


def _is_cancelled(error: BaseException) -> bool:
    """Whether somebody cancelled the task that raised an error, and led to it."""
    task = asyncio.current_task()
    if task is None or not task.cancelling():
        return False
    # A group of tasks of which one failed may leave its own as if it were cancelled,
    # until Python 3.13, and says that its error does not come of that.
    seen: set[int] = set()
    cause: BaseException | None = error
    while cause is not None and id(cause) not in seen:
        if isinstance(cause, asyncio.CancelledError):
            return True
        seen.add(id(cause))
        follows = None if cause.__suppress_context__ else cause.__context__
        cause = cause.__cause__ or follows
    return False


def read_icons(icons: Sequence[Any], what: str) -> list[dict[str, Any]]:
    """Return icons as they go on the wire.

    Args:
        icons: What the developer gave.
        what: What they are the icons of, for messages.

    Raises:
        SetupError: One of them is no icon.
    """
    for icon in icons:
        if not isinstance(icon, Mapping) or not isinstance(icon.get("src"), str):
            raise SetupError(f"{what}: an icon is a dict with a src, not {icon!r}")
    return [dict(icon) for icon in icons]


def _headers(signature: Signature, what: str) -> tuple[HeaderParam, ...]:
    try:
        return header_params(signature.schema)
    except ValueError as error:
        raise SetupError(f"{what}: {error}") from error


def _check_no_headers(signature: Signature, what: str) -> None:
    for param in _headers(signature, what):
        raise SetupError(
            f"{what}: the parameter {param.path[0]!r} has a Header, which mirrors "
            "arguments of tools alone"
        )


def _check_options(
    options: Mapping[str, Any], known: frozenset[str], what: str
) -> None:
    for key, value in options.items():
        if key not in known:
            raise SetupError(
                f"a {what} has no option {key!r}; it has {', '.join(sorted(known))}"
            )
        expected, words = _OPTION_TYPES.get(key, (object, ""))
        if value is not None and not isinstance(value, expected):
            raise SetupError(f"the {key} of a {what} is {words}, not {value!r}")


def _name(handler: Handler, options: Mapping[str, Any], what: str) -> str:
    if isinstance(handler, str):
        raise SetupError(f"the name of a {what} is an option: name={handler!r}")
    if isinstance(handler, classmethod):
        raise SetupError(
            f"a {what} is a function, not a classmethod: register the method of the "
            "class instead, below the class"
        )
    if not callable(handler):
        raise SetupError(f"a {what} is a function, not {handler!r}")
    given = options.get("name")
    name = given if given is not None else getattr(innermost(handler), "__name__", "")
    if given is None and not _is_named(handler):
        raise SetupError(f"a {what} from {handler!r} needs a name: give it name='...'")
    if not isinstance(name, str) or not 0 < len(name) <= MAX_NAME:
        raise SetupError(
            f"the name of a {what} has 1 to {MAX_NAME} characters, not {name!r}"
        )
    return name


def _is_named(handler: Handler) -> bool:
    name = getattr(handler, "__name__", None)
    return isinstance(name, str) and name != "<lambda>"


def _definition(
    name: str, docstring: str | None, options: Mapping[str, Any]
) -> dict[str, Any]:
    description = options.get("description")
    if description is None:
        description = docstring
    icons = options.get("icons")
    return without_none(
        {
            "name": name,
            "title": options.get("title"),
            "description": description or None,
            "icons": None if icons is None else read_icons(icons, name),
            "_meta": options.get("meta"),
        }
    )


def _hints(
    annotations: Mapping[str, Any] | None, known: frozenset[str], what: str
) -> dict[str, Any] | None:
    if annotations is None:
        return None
    for key in annotations:
        if key not in known:
            raise SetupError(
                f"{what}: {key!r} is none of the annotations {', '.join(sorted(known))}"
            )
        kind, words = (str, "a string") if key == "title" else (bool, "True or False")
        if not isinstance(annotations[key], kind):
            shown = repr(annotations[key])
            raise SetupError(f"{what}: the annotation {key} is {words}, not {shown}")
    return dict(annotations)


def _annotations(
    annotations: Mapping[str, Any] | None, what: str
) -> dict[str, Any] | None:
    """Return the annotations of a resource, as they go on the wire."""
    if annotations is None:
        return None
    try:
        return read_annotations(annotations)
    except ValueError as error:
        raise SetupError(f"{what}: {error}") from error


def _size(size: int | None, what: str) -> int | None:
    if size is not None and (type(size) is not int or size < 0):
        raise SetupError(f"{what}: size is a number of bytes, not {size!r}")
    return size


def _page(uri: str, options: ResourceOptions, what: str) -> ResourceOptions:
    """Return the options of a resource, with those that a page has by itself."""
    ui, meta = options.get("ui"), options.get("meta")
    if is_page(uri):
        known = read_page(ui, meta, options.get("mime_type"), what)
        return cast("ResourceOptions", {**options, **known})
    if ui is not None:
        raise SetupError(
            f"{what}: ui is for pages alone, whose URI is one such as 'ui://books/card'"
        )
    return options


def _function(
    uri: str, handler: Handler | Path | str, options: ResourceOptions, what: str
) -> tuple[Handler, ResourceOptions]:
    """Return the function of a resource, which may be given as what it returns."""
    if isinstance(handler, Path):
        return _file(handler, options, what)
    if isinstance(handler, str) and is_page(uri):
        known: ResourceOptions = {"name": uri.removeprefix(SCHEME), "thread": False}
        return lambda: handler, {**known, **options}
    # What is no function is refused with its name.
    return cast("Handler", handler), options


def _file(
    path: Path, options: ResourceOptions, what: str
) -> tuple[Handler, ResourceOptions]:
    """Return a function that returns a file, and what is known of the file."""
    if not path.is_file():
        raise SetupError(f"{what}: there is no file {str(path)!r}")
    found = path.resolve()
    known: ResourceOptions = {
        "name": path.name,
        "mime_type": guess_type(path.name),
        "size": found.stat().st_size,
        "thread": False,
    }
    return lambda: found, {**known, **options}


def _access(options: Mapping[str, Any], what: str) -> dict[str, Any]:
    """Return what selects a component, and who may have it how often."""
    scopes = _scopes(options, what)
    visible = read_visible(options.get("visible"), scopes, what)
    return {
        "scopes": scopes,
        "tags": read_tags(options.get("tags") or (), what),
        "visible": visible,
        "listed": visible,
        "needs": _needs(options.get("asks") or (), what),
        "single_use": bool(options.get("single_use", False)),
    }


def _needs(asks: Sequence[Any], what: str) -> dict[str, Any]:
    """Return the client capabilities that the questions of a function need."""
    needs: dict[str, Any] = {}
    for item in asks:
        kind = item
        if not isinstance(item, str):
            read_form(item, what)
            kind = "elicitation"
        if kind not in _ASKS:
            raise SetupError(
                f"{what}: asks has types of forms and any of {', '.join(_ASKS)}, not "
                f"{item!r}"
            )
        for capability, modes in _ASKS[kind].items():
            needs[capability] = {**needs.get(capability, {}), **modes}
    return needs


def read_tags(tags: Collection[str], what: str) -> frozenset[str]:
    """Return tags, or those that are selected.

    Raises:
        SetupError: They are no strings.
    """
    if isinstance(tags, (str, bytes)) or not all(isinstance(tag, str) for tag in tags):
        raise SetupError(f"{what}: tags is a list of strings, not {tags!r}")
    return frozenset(tags)


def _scopes(options: Mapping[str, Any], what: str) -> frozenset[str]:
    scopes = options.get("scopes") or ()
    if isinstance(scopes, str) or not all(isinstance(item, str) for item in scopes):
        raise SetupError(f"{what}: scopes is a list of strings, not {scopes!r}")
    for scope in scopes:
        if not _SCOPE.match(scope):
            raise SetupError(f"{what}: {scope!r} is no scope; RFC 6749, section 3.3")
    return frozenset(scopes)


def _thread(signature: Signature, options: Mapping[str, Any]) -> bool:
    return bool(options.get("thread", True)) and not signature.is_async
