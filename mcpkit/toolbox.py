"""A set of components, by decorators and by hand."""

from collections.abc import Callable, Collection, Mapping
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any, TypeVar, Unpack, overload

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
    read_tags,
)
from mcpkit.directory import MAX_FILE, Directory
from mcpkit.errors import SetupError
from mcpkit.files import guess_type
from mcpkit.registry import Registry

F = TypeVar("F", bound=Callable[..., Any])


class Toolbox:
    """Components without a server, to split an app over files.

    An app includes it, and has then what it has at any moment.

    Example:
        >>> billing = Toolbox()
        >>> @billing.tool
        ... def refund(order: str) -> str:
        ...     '''Give the money back.'''
        ...     return f"Refunded {order}"
        >>> shop = Toolbox()
        >>> shop.include(billing, prefix="billing_")
        >>> list(shop.registry.tools)
        ['billing_refund']

    Attributes:
        registry: What is registered.
    """

    def __init__(self) -> None:
        self.registry = Registry()

    def include(
        self,
        other: "Toolbox",
        /,
        *,
        prefix: str = "",
        tags: Collection[str] | None = None,
    ) -> None:
        """Have what another toolbox or app has, now and later.

        What is registered there later appears here, and what is removed there
        disappears. Of an app that is included, its components count alone, and
        not its options, its lifespan or its callers.

        Args:
            other: The other one. It may be included several times, under
                different prefixes.
            prefix: What the names of its tools and prompts begin with here. The
                completions of a prompt follow it; resources keep their URIs.
            tags: Only what has one of these tags; by default everything.

        Raises:
            SetupError: A name or a URI is taken, or is later taken by what is
                registered; an option can't work; or each would include the
                other.
        """
        if not isinstance(other, Toolbox):
            raise SetupError(f"include takes a Toolbox or an App, not {other!r}")
        if not isinstance(prefix, str):
            raise SetupError(f"include: prefix is a string, not {prefix!r}")
        selected = None if tags is None else read_tags(tags, "include")
        if selected is not None and not selected:
            raise SetupError("include: no tag selects nothing; leave tags out for all")
        self.registry.include(other.registry, prefix=prefix, tags=selected)

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
        handler: Callable[..., Any] | Path | str,
        /,
        *,
        replace: bool = False,
        **options: Unpack[ResourceOptions],
    ) -> Resource | ResourceTemplate:
        """Register a function as a resource, or as a resource template.

        Args:
            uri: The URI, or a URI template.
            handler: The function that returns the contents, or `None` when there
                are none to be found; or a file, whose size and type are published
                as they are now; or the HTML of a page, at `ui://`.
            replace: Take the place of the resource that has the URI.
            options: The options of `ResourceOptions`.

        Raises:
            SetupError: The function, the URI or an option can't work, or the
                URI is taken.
        """
        resource = build_resource(uri, handler, options)
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


def _decorate(
    add: Callable[..., Any], handler: F | None, options: Mapping[str, Any]
) -> F | Callable[[F], F]:
    """Return what a decorator returns that works bare and called."""

    def register(function: F) -> F:
        add(function, **options)
        return function

    return register if handler is None else register(handler)
