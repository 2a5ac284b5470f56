"""What is registered, and the answers that follow from it alone.

A registry may be included in others. They have then, beside what is their own,
whatever it has at any moment: each change is planned for all of them first, and
is made in none when one of them can't have it.
"""

import dataclasses
import difflib
import weakref
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from types import MappingProxyType
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from mcpkit.components import (
    MAX_NAME,
    Completion,
    Component,
    Prompt,
    Resource,
    ResourceTemplate,
    Tool,
)
from mcpkit.errors import SetupError
from mcpkit.hints import innermost
from mcpkit.protocol.jsonrpc import Encoded
from mcpkit.visibility import Rule

ListKind: TypeAlias = Literal["tools", "resources", "prompts"]
"""The lists of which a client can be told that they changed."""

Kind: TypeAlias = Literal["tools", "resources", "templates", "prompts", "completions"]
"""What is registered, each kind under keys of its own."""

Key: TypeAlias = str | tuple[str, str]
"""A name, a URI or a URI template; of a completion, that and the argument."""

View: TypeAlias = frozenset[Rule]
"""The rules of a list that admit a caller: callers with one view see the same."""

AnswerKey: TypeAlias = tuple[str, str, str | None, View | None]
"""A revision, a method, where the page begins, and a view where there are several."""

MAX_ANSWERS: Final = 256
"""How many answers are kept where not all callers get the same."""

_WHAT: Final[Mapping[Kind, str]] = MappingProxyType(
    {
        "tools": "tool",
        "resources": "resource",
        "templates": "resource template",
        "prompts": "prompt",
        "completions": "completion",
    }
)
_LIST: Final[Mapping[Kind, ListKind | None]] = MappingProxyType(
    {
        "tools": "tools",
        "resources": "resources",
        "templates": "resources",
        "prompts": "prompts",
        "completions": None,
    }
)
_REMEDY: Final[Mapping[Kind, str]] = MappingProxyType(
    {
        "tools": "include it with another prefix, or rename one of them",
        "resources": "change one of the URIs, to which no prefix is added",
        "templates": "change one of the URIs, to which no prefix is added",
        "prompts": "include it with another prefix, or rename one of them",
        "completions": "remove one of them",
    }
)
_PREFIXED: Final = frozenset({"tools", "prompts"})

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
        guards: How many of them only some callers see.
        answers: Encoded answers that follow from what is registered; emptied
            by every change.
        check: Refuses, with a `SetupError`, a component that can't be had here.
    """

    def __init__(self) -> None:
        self.tools: dict[str, Tool] = {}
        self.resources: dict[str, Resource] = {}
        self.templates: dict[str, ResourceTemplate] = {}
        self.prompts: dict[str, Prompt] = {}
        self.completions: dict[tuple[str, str], Completion] = {}
        self.capabilities: frozenset[str] = frozenset()
        self.guards = 0
        self.answers: dict[AnswerKey, Encoded] = {}
        self.check: Callable[[Kind, Component], None] | None = None
        self._kept: Mapping[Kind, dict[Any, Any]] = {
            "tools": self.tools,
            "resources": self.resources,
            "templates": self.templates,
            "prompts": self.prompts,
            "completions": self.completions,
        }
        self._rules: dict[ListKind, tuple[Rule, ...]] = {}
        self._by_literal: list[ResourceTemplate] | None = None
        self._listeners: list[Callable[[ListKind], None]] = []
        # How each component came here that is not registered here.
        self._sources: dict[tuple[Kind, Key], frozenset[Inclusion]] = {}
        self._included: list[Inclusion] = []
        # Weak, so that an app that is gone is not kept by what it included.
        self._included_in: list[weakref.ref[Inclusion]] = []

    def add_tool(self, tool: Tool, *, replace: bool = False) -> None:
        """Add a tool.

        Raises:
            SetupError: Its name is taken, unless it replaces the one that has it.
        """
        self._add("tools", tool.name, tool, replace=replace)

    def add_resource(
        self, resource: Resource | ResourceTemplate, *, replace: bool = False
    ) -> None:
        """Add a resource or a resource template.

        Raises:
            SetupError: Its URI is taken, unless it replaces the one that has it;
                or it is a template that matches what another one matches.
        """
        if isinstance(resource, Resource):
            self._add("resources", resource.uri, resource, replace=replace)
        else:
            self._add("templates", resource.template.text, resource, replace=replace)

    def add_prompt(self, prompt: Prompt, *, replace: bool = False) -> None:
        """Add a prompt.

        Raises:
            SetupError: Its name is taken, unless it replaces the one that has it.
        """
        self._add("prompts", prompt.name, prompt, replace=replace)

    def add_completion(self, completion: Completion, *, replace: bool = False) -> None:
        """Add a completion.

        Raises:
            SetupError: The argument has one, unless this one replaces it.
        """
        key = (completion.reference, completion.argument)
        self._add("completions", key, completion, replace=replace)

    def remove_tool(self, name: str) -> None:
        """Remove a tool.

        Raises:
            KeyError: There is none of that name.
            SetupError: It is included.
        """
        self._remove("tools", name)

    def remove_resource(self, uri: str) -> None:
        """Remove a resource, or a resource template by its text.

        Raises:
            KeyError: There is none with that URI.
            SetupError: It is included.
        """
        self._remove("templates" if uri in self.templates else "resources", uri)

    def remove_prompt(self, name: str) -> None:
        """Remove a prompt.

        Raises:
            KeyError: There is none of that name.
            SetupError: It is included.
        """
        self._remove("prompts", name)

    def remove_completion(self, reference: str, argument: str) -> None:
        """Remove a completion.

        Raises:
            KeyError: The argument has none.
            SetupError: It is included.
        """
        self._remove("completions", (reference, argument))

    def include(
        self, other: "Registry", *, prefix: str = "", tags: frozenset[str] | None = None
    ) -> None:
        """Have what another registry has, from now on.

        Args:
            other: The other registry.
            prefix: What the names of its tools and prompts begin with here.
            tags: Only what has one of the tags.

        Raises:
            SetupError: A name is taken, or it includes this one.
        """
        if other is self or other in self.ancestors():
            raise SetupError(
                "what is included includes what it would be included in, or is the "
                "same; put what both need into a Toolbox of its own"
            )
        inclusion = Inclusion(into=self, prefix=prefix, tags=tags)
        change = Change()
        for kind in _WHAT:
            for key in other.keys(kind):
                change.carry(other, kind, key, inclusion)
        other.be_included(inclusion)
        self._included.append(inclusion)
        change.make()

    def be_included(self, inclusion: "Inclusion") -> None:
        """Tell of each change, from now on, where this is included."""
        self._included_in.append(weakref.ref(inclusion))

    def inclusions(self) -> list["Inclusion"]:
        """Return where this one is included."""
        alive = [(kept, kept()) for kept in self._included_in]
        self._included_in = [kept for kept, inclusion in alive if inclusion is not None]
        return [inclusion for _, inclusion in alive if inclusion is not None]

    def ancestors(self) -> Iterator["Registry"]:
        """Return what this one is included in, and what that is included in."""
        for inclusion in self.inclusions():
            yield inclusion.into
            yield from inclusion.into.ancestors()

    def keys(self, kind: Kind) -> list[Key]:
        """Return the keys of a kind, in order."""
        return list(self._kept[kind])

    def entry(self, kind: Kind, key: Key) -> "Entry | None":
        """Return what is registered under a key, and where it comes from."""
        component = self._kept[kind].get(key)
        if component is None:
            return None
        return Entry(component, self._sources.get((kind, key), _OWN))

    def apply(
        self, planned: Mapping[tuple[Kind, Key], "Entry | None"]
    ) -> Collection[ListKind]:
        """Make a change that was planned, and return the lists that are other now."""
        changed: dict[ListKind, None] = {}
        for (kind, key), entry in planned.items():
            listed = _LIST[kind]
            if self._replace(kind, key, entry) and listed is not None:
                changed[listed] = None
        self._refresh()
        return changed

    def notify(self, kinds: Iterable[ListKind]) -> None:
        """Tell who listens that these have changed."""
        for kind in kinds:
            for callback in tuple(self._listeners):
                callback(kind)

    def find_resource(
        self, uri: str, admits: Callable[[Component], bool] | None = None
    ) -> tuple[Resource | ResourceTemplate, Mapping[str, str | list[str]]] | None:
        """Find what serves a URI, and the variables of the URI.

        A resource of its own wins over a template, and the template with the
        most literal text over the others.

        Args:
            uri: The URI.
            admits: Which of those that match may be found; all by default.
        """
        resource = self.resources.get(uri)
        if resource is not None and (admits is None or admits(resource)):
            return resource, {}
        if self._by_literal is None:
            self._by_literal = sorted(
                self.templates.values(), key=lambda item: item.template.rank
            )
        for candidate in self._by_literal:
            variables = candidate.template.match(uri)
            if variables is not None and (admits is None or admits(candidate)):
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

    def rules(self, kind: ListKind) -> tuple[Rule, ...]:
        """Return the rules by which some see what others do not, each once."""
        # What is found in an old state is kept in the old dictionary.
        rules = self._rules
        if kind not in rules:
            kinds = [each for each, listed in _LIST.items() if listed == kind]
            found = [
                component.visible
                for each in kinds
                for component in list(self._kept[each].values())
            ]
            rules[kind] = tuple(dict.fromkeys(rule for rule in found if rule))
        return rules[kind]

    def listen(self, callback: Callable[[ListKind], None]) -> Callable[[], None]:
        """Call back with the kind of a list after each change of it.

        Returns:
            A function that ends it.
        """
        self._listeners.append(callback)
        return lambda: self._listeners.remove(callback)

    def _add(
        self, kind: Kind, key: Key, component: Component, *, replace: bool
    ) -> None:
        before = self.entry(kind, key)
        if before is not None and before.sources == _OWN and not replace:
            raise SetupError(
                f"{_WHAT[kind]} {key!r} is already registered; remove it first, or "
                "pass replace=True"
            )
        change = Change()
        change.put(self, kind, key, component, None)
        change.make()

    def _remove(self, kind: Kind, key: Key) -> None:
        entry = self.entry(kind, key)
        if entry is None:
            raise KeyError(key)
        if entry.sources != _OWN:
            raise SetupError(
                f"{_WHAT[kind]} {key!r} is {entry}; remove it where it is registered"
            )
        change = Change()
        change.drop(self, kind, key, None)
        change.make()

    def _replace(self, kind: Kind, key: Key, entry: "Entry | None") -> bool:
        kept = self._kept[kind]
        before = kept.get(key)
        if entry is None:
            kept.pop(key, None)
            self._sources.pop((kind, key), None)
        else:
            self.guards += entry.component.visible is not None
            kept[key] = entry.component
            self._sources[kind, key] = entry.sources
        if before is not None:
            self.guards -= before.visible is not None
        return before is not kept.get(key)

    def _refresh(self) -> None:
        # New dictionaries: what is being worked out from the old state ends in the
        # old ones.
        self.answers = {}
        self._rules = {}
        self._by_literal = None
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


@dataclass(frozen=True, kw_only=True, eq=False)
class Inclusion:
    """One registry that is included in another.

    Attributes:
        into: The other one.
        prefix: What the names of tools and prompts begin with there.
        tags: Only what has one of the tags is there; `None` for everything.
    """

    into: Registry
    prefix: str
    tags: frozenset[str] | None

    def key(self, kind: Kind, key: Key) -> Key:
        """Return the key that something has there."""
        if isinstance(key, str):
            return f"{self.prefix}{key}" if kind in _PREFIXED else key
        reference, argument = key
        return self._reference(reference), argument

    def adapted(self, component: Component) -> Component:
        """Return a component as it is there.

        Raises:
            SetupError: Its name is too long there.
        """
        if not self.prefix or isinstance(component, (Resource, ResourceTemplate)):
            return component
        if isinstance(component, Completion):
            reference = self._reference(component.reference)
            return dataclasses.replace(component, reference=reference)
        name = f"{self.prefix}{component.name}"
        if len(name) > MAX_NAME:
            raise SetupError(
                f"{name!r} is too long for a name, which has at most {MAX_NAME} "
                "characters; include it with a shorter prefix"
            )
        return dataclasses.replace(
            component, name=name, wire={**component.wire, "name": name}
        )

    def _reference(self, reference: str) -> str:
        # A template has a variable; the name of a prompt has none.
        return reference if "{" in reference else f"{self.prefix}{reference}"


class Entry(NamedTuple):
    """What a registry has under a key.

    Attributes:
        component: The component.
        sources: How it came to be included, in each way that it did; nothing
            when it was registered there.
    """

    component: Component
    sources: frozenset[Inclusion]

    def __str__(self) -> str:
        function = innermost(self.component.handler)
        module = getattr(function, "__module__", None) or "builtins"
        name = f"{module}.{getattr(function, '__qualname__', self.component.name)}"
        for source in self.sources:
            prefix = f" with the prefix {source.prefix!r}" if source.prefix else ""
            return f"{name}, included{prefix}"
        return name


_OWN: Final[frozenset[Inclusion]] = frozenset()


def _came(entry: Entry, source: Inclusion | None) -> bool:
    return source in entry.sources or (source is None and entry.sources == _OWN)


class Change:
    """What a registration, a removal or an inclusion comes to, wherever it counts.

    It is worked out in full before it is made, so that a `SetupError` leaves
    everything as it was.
    """

    def __init__(self) -> None:
        self._planned: dict[Registry, dict[tuple[Kind, Key], Entry | None]] = {}

    def put(
        self,
        registry: Registry,
        kind: Kind,
        key: Key,
        component: Component,
        source: Inclusion | None,
    ) -> None:
        """Plan that a registry has something under a key.

        Raises:
            SetupError: The key is taken by something from elsewhere, or one of
                the registries can't have the component.
        """
        sources = _OWN if source is None else frozenset({source})
        entry = Entry(component, sources)
        before = self._find(registry, kind, key)
        if before is not None and not _came(before, source):
            # The same may come in several ways, and is there once.
            if source is None or before.component != component:
                raise SetupError(
                    f"{_WHAT[kind]} {key!r} would be two, {before} and {entry}: "
                    f"{_REMEDY[kind]}"
                )
            self._set(registry, kind, key, before.component, before.sources | sources)
            return
        if isinstance(component, ResourceTemplate):
            self._check_shape(registry, component)
        if registry.check is not None:
            registry.check(kind, component)
        self._plan(registry, kind, key, entry)

    def drop(
        self, registry: Registry, kind: Kind, key: Key, source: Inclusion | None
    ) -> None:
        """Plan that a registry no longer has what came from a source, if it has it."""
        before = self._find(registry, kind, key)
        if before is None or not _came(before, source):
            return
        left = before.sources - {source}
        if left:
            self._set(registry, kind, key, before.component, left)
        else:
            self._plan(registry, kind, key, None)

    def carry(
        self, registry: Registry, kind: Kind, key: Key, inclusion: Inclusion
    ) -> None:
        """Plan that what a registry has under a key is where it is included.

        Raises:
            SetupError: It can't be.
        """
        entry = self._find(registry, kind, key)
        there = inclusion.key(kind, key)
        if entry is None or not self._selects(inclusion, registry, entry.component):
            self.drop(inclusion.into, kind, there, inclusion)
        else:
            component = inclusion.adapted(entry.component)
            self.put(inclusion.into, kind, there, component, inclusion)

    def make(self) -> None:
        """Make the change, and tell who listens."""
        changed = [
            (registry, registry.apply(planned))
            for registry, planned in self._planned.items()
        ]
        for registry, kinds in changed:
            registry.notify(kinds)

    def _find(self, registry: Registry, kind: Kind, key: Key) -> Entry | None:
        planned = self._planned.get(registry, {})
        place = (kind, key)
        return planned[place] if place in planned else registry.entry(kind, key)

    def _set(
        self,
        registry: Registry,
        kind: Kind,
        key: Key,
        component: Component,
        sources: frozenset[Inclusion],
    ) -> None:
        """Plan that what stays the same is included in other ways than before."""
        self._planned.setdefault(registry, {})[kind, key] = Entry(component, sources)

    def _plan(
        self, registry: Registry, kind: Kind, key: Key, entry: Entry | None
    ) -> None:
        self._planned.setdefault(registry, {})[kind, key] = entry
        inclusions = registry.inclusions()
        for inclusion in inclusions:
            self.carry(registry, kind, key, inclusion)
        if kind not in ("prompts", "templates"):
            return
        # Completions are selected, and leave, with what they complete.
        for each in [each for each in registry.completions if each[0] == key]:
            if entry is None:
                self.drop(registry, "completions", each, None)
            for inclusion in inclusions:
                self.carry(registry, "completions", each, inclusion)

    def _selects(
        self, inclusion: Inclusion, registry: Registry, component: Component
    ) -> bool:
        if inclusion.tags is None:
            return True
        if isinstance(component, Completion):
            reference = component.reference
            entry = self._find(registry, "prompts", reference) or self._find(
                registry, "templates", reference
            )
            return entry is not None and bool(inclusion.tags & entry.component.tags)
        return bool(inclusion.tags & component.tags)

    def _check_shape(self, registry: Registry, resource: ResourceTemplate) -> None:
        template = resource.template
        planned = [
            key for kind, key in self._planned.get(registry, ()) if kind == "templates"
        ]
        for key in [*registry.templates, *planned]:
            entry = self._find(registry, "templates", key)
            if entry is None or key == template.text:
                continue
            assert isinstance(entry.component, ResourceTemplate)  # noqa: S101  # the kind
            if entry.component.template.shape == template.shape:
                raise SetupError(
                    f"resource template {template.text!r} matches the same URIs as "
                    f"{key!r}"
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
