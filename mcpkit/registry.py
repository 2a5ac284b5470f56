"""What is registered, and the answers that follow from it alone."""

import difflib
from collections.abc import Callable, Iterable, Mapping
from itertools import islice
from typing import Final, Literal, TypeAlias, TypeVar

from mcpkit.components import Completion, Prompt, Resource, ResourceTemplate, Tool
from mcpkit.errors import SetupError
from mcpkit.protocol.jsonrpc import Encoded

ListKind: TypeAlias = Literal["tools", "resources", "prompts"]
"""The lists of which a client can be told that they changed."""

K = TypeVar("K")
T = TypeVar("T")

# What a misspelled name may cost: comparing takes time, and anybody can ask.
_MAX_CANDIDATES: Final = 64
_MAX_NAME: Final = 32


class Registry:
    """The components of an app, each kind in the order of registration.

    Attributes:
        tools: By name.
        resources: By URI.
        templates: By URI template.
        prompts: By name.
        completions: By the prompt's name or the template, and the argument.
        capabilities: The server capabilities of which something is registered.
        answers: Encoded answers that follow from what is registered; emptied
            by every change.
    """

    def __init__(self) -> None:
        self.tools: dict[str, Tool] = {}
        self.resources: dict[str, Resource] = {}
        self.templates: dict[str, ResourceTemplate] = {}
        self.prompts: dict[str, Prompt] = {}
        self.completions: dict[tuple[str, str], Completion] = {}
        self.capabilities: frozenset[str] = frozenset()
        self.answers: dict[tuple[str, str, str | None], Encoded] = {}
        self._by_literal: list[ResourceTemplate] | None = None
        self._listeners: list[Callable[[ListKind], None]] = []

    def add_tool(self, tool: Tool, *, replace: bool = False) -> None:
        """Add a tool.

        Raises:
            SetupError: Its name is taken, unless it replaces the one that has it.
        """
        _put(self.tools, tool.name, tool, "tool", replace=replace)
        self._changed("tools")

    def add_resource(
        self, resource: Resource | ResourceTemplate, *, replace: bool = False
    ) -> None:
        """Add a resource or a resource template.

        Raises:
            SetupError: Its URI is taken, unless it replaces the one that has it;
                or it is a template that matches what another one matches.
        """
        if isinstance(resource, Resource):
            _put(self.resources, resource.uri, resource, "resource", replace=replace)
        else:
            uri = resource.template.text
            for other, kept in self.templates.items():
                if other != uri and kept.template.shape == resource.template.shape:
                    raise SetupError(
                        f"resource template {uri!r} matches the same URIs as {other!r}"
                    )
            _put(self.templates, uri, resource, "resource template", replace=replace)
            self._by_literal = None
        self._changed("resources")

    def add_prompt(self, prompt: Prompt, *, replace: bool = False) -> None:
        """Add a prompt.

        Raises:
            SetupError: Its name is taken, unless it replaces the one that has it.
        """
        _put(self.prompts, prompt.name, prompt, "prompt", replace=replace)
        self._changed("prompts")

    def add_completion(self, completion: Completion, *, replace: bool = False) -> None:
        """Add a completion.

        Raises:
            SetupError: The argument has one, unless this one replaces it.
        """
        key = (completion.reference, completion.argument)
        _put(self.completions, key, completion, "completion", replace=replace)
        self._refresh()

    def remove_tool(self, name: str) -> None:
        """Remove a tool.

        Raises:
            KeyError: There is none of that name.
        """
        del self.tools[name]
        self._changed("tools")

    def remove_resource(self, uri: str) -> None:
        """Remove a resource, or a resource template by its text.

        Raises:
            KeyError: There is none with that URI.
        """
        if uri in self.templates:
            del self.templates[uri]
            self._drop_completions(uri)
            self._by_literal = None
        else:
            del self.resources[uri]
        self._changed("resources")

    def remove_prompt(self, name: str) -> None:
        """Remove a prompt.

        Raises:
            KeyError: There is none of that name.
        """
        del self.prompts[name]
        self._drop_completions(name)
        self._changed("prompts")

    def remove_completion(self, reference: str, argument: str) -> None:
        """Remove a completion.

        Raises:
            KeyError: The argument has none.
        """
        del self.completions[reference, argument]
        self._refresh()

    def _drop_completions(self, reference: str) -> None:
        self.completions = {
            key: kept for key, kept in self.completions.items() if key[0] != reference
        }

    def find_resource(
        self, uri: str
    ) -> tuple[Resource | ResourceTemplate, Mapping[str, str | list[str]]] | None:
        """Find what serves a URI, and the variables of the URI.

        A resource of its own wins over a template, and the template with the
        most literal text over the others.
        """
        resource = self.resources.get(uri)
        if resource is not None:
            return resource, {}
        if self._by_literal is None:
            self._by_literal = sorted(
                self.templates.values(), key=lambda item: item.template.rank
            )
        for candidate in self._by_literal:
            variables = candidate.template.match(uri)
            if variables is not None:
                return candidate, variables
        return None

    def arguments_of(self, reference: str) -> tuple[str, ...] | None:
        """Return the arguments of a prompt, or the variables of a template.

        Args:
            reference: The name of a prompt, or a URI template.

        Returns:
            Their names, or `None` when nothing of that name is registered yet.
        """
        if reference in self.prompts:
            return self.prompts[reference].signature.names
        if reference in self.templates:
            return self.templates[reference].template.variables
        return None

    def listen(self, callback: Callable[[ListKind], None]) -> Callable[[], None]:
        """Call back with the kind of a list after each change of it.

        Returns:
            A function that ends it.
        """
        self._listeners.append(callback)
        return lambda: self._listeners.remove(callback)

    def _changed(self, kind: ListKind) -> None:
        self._refresh()
        for callback in tuple(self._listeners):
            callback(kind)

    def _refresh(self) -> None:
        # A new dictionary: an answer that is being built from the old state
        # ends in the old one.
        self.answers = {}
        components = {
            "tools": self.tools,
            "resources": self.resources or self.templates,
            "prompts": self.prompts,
            "completions": self.completions or self._has_choices(),
        }
        self.capabilities = frozenset(name for name, kept in components.items() if kept)

    def _has_choices(self) -> bool:
        return any(prompt.choices for prompt in self.prompts.values()) or any(
            template.choices for template in self.templates.values()
        )


def suggestions(name: str, known: Iterable[str]) -> list[str]:
    """Return the known names that a misspelled one may stand for.

    Example:
        >>> suggestions("serch", ["search", "order"])
        ['search']
    """
    if len(name) > _MAX_NAME:
        return []
    return difflib.get_close_matches(name, islice(known, _MAX_CANDIDATES))


def _put(
    components: dict[K, T], key: K, component: T, what: str, *, replace: bool
) -> None:
    if key in components and not replace:
        raise SetupError(
            f"{what} {key!r} is already registered; remove it first, or pass "
            "replace=True"
        )
    components[key] = component
