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
_COMPLETED: Final = frozenset({"prompts", "templates"})

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
        guards: How many of them a list has for some callers otherwise than for others.
        answers: Encoded answers that follow from what is registered; emptied
            by every change.
        included: What is included, in the order in which it was.
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
        self._listed: dict[tuple[ListKind, View], list[Component]] = {}
        # The templates, the most literal first.
        self._ranked: list[ResourceTemplate] = []
        self._listeners: list[Callable[[ListKind], None]] = []
        # What is registered here; the rest is included.
        self._own: dict[tuple[Kind, Key], Component] = {}
        self.included: list[Inclusion] = []
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
        inclusion = Inclusion(of=other, into=self, prefix=prefix, tags=tags)
        self.included.append(inclusion)
        try:
            change = Change()
            for kind in _WHAT:
                for key in other.keys(kind):
                    change.follow(Place(self, kind, inclusion.there(kind, key)))
            change.check()
        except BaseException:
            self.included.remove(inclusion)
            raise
        other.be_included(inclusion)
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

    def find(self, kind: Kind, key: Key) -> Component | None:
        """Return what there is under a key."""
        return self._kept[kind].get(key)

    def find_own(self, kind: Kind, key: Key) -> Component | None:
        """Return what is registered here under a key, and not included."""
        return self._own.get((kind, key))

    def own(self, kind: Kind, key: Key, component: Component | None) -> None:
        """Have something registered under a key, or nothing any more."""
        self._own.pop((kind, key), None)
        if component is not None:
            self._own[kind, key] = component

    def apply(
        self, planned: Mapping[tuple[Kind, Key], Component | None]
    ) -> Collection[ListKind]:
        """Make a change that was planned, and return the lists that are other now."""
        changed: dict[ListKind, None] = {}
        for (kind, key), component in planned.items():
            listed = _LIST[kind]
            if self._replace(kind, key, component) and listed is not None:
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
        ranked = self._ranked
        if not ranked:
            templates = list(self.templates.values())
            ranked[:] = sorted(templates, key=lambda item: item.template.rank)
        for candidate in ranked:
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
        """Return the rules by which lists differ from one caller to the next."""
        # What is found in an old state is kept in the old dictionary.
        rules = self._rules
        if kind not in rules:
            kinds = [each for each, listed in _LIST.items() if listed == kind]
            found = [
                rule
                for each in kinds
                for component in list(self._kept[each].values())
                for rule in component.rules
            ]
            rules[kind] = tuple(dict.fromkeys(found))
        return rules[kind]

    def listed(self, kind: ListKind, view: View) -> list[Component]:
        """Return what a list has for the callers of one view. It is not to be changed.

        Args:
            kind: The list.
            view: Which of its rules admit the caller.
        """
        kept = self._listed
        if (kind, view) not in kept:
            kept[kind, view] = [
                component
                for each, listed in _LIST.items()
                if listed == kind
                for component in list(self._kept[each].values())
                if component.listed is None or component.listed in view
            ]
        found = kept[kind, view]
        if len(kept) > MAX_ANSWERS:
            kept.pop(next(iter(kept)), None)
        return found

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
        if (kind, key) in self._own and not replace:
            raise SetupError(
                f"{_WHAT[kind]} {key!r} is already registered; remove it first, or "
                "pass replace=True"
            )
        change = Change()
        change.put(self, kind, key, component)
        change.check()
        change.make()

    def _remove(self, kind: Kind, key: Key) -> None:
        if key not in self._kept[kind]:
            raise KeyError(key)
        change = Change()
        if (kind, key) not in self._own:
            claim = next(change.claims(Place(self, kind, key)))
            raise SetupError(
                f"{_WHAT[kind]} {key!r} is {claim}; remove it where it is registered"
            )
        change.put(self, kind, key, None)
        change.check()
        change.make()

    def _replace(self, kind: Kind, key: Key, component: Component | None) -> bool:
        kept = self._kept[kind]
        before = kept.get(key)
        if component is None:
            kept.pop(key, None)
        else:
            self.guards += bool(component.rules)
            kept[key] = component
        if before is not None:
            self.guards -= bool(before.rules)
        return before is not component

    def _refresh(self) -> None:
        # New objects: what is being worked out from the old state ends in the old
        # ones.
        self.answers = {}
        self._rules = {}
        self._listed = {}
        self._ranked = []
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
        of: The one that is included.
        into: The other one.
        prefix: What the names of tools and prompts begin with there.
        tags: Only what has one of the tags is there; `None` for everything.
    """

    of: Registry
    into: Registry
    prefix: str
    tags: frozenset[str] | None

    def there(self, kind: Kind, key: Key) -> Key:
        """Return the key that something has where it is included."""
        if isinstance(key, tuple):
            reference, argument = key
            return self._add(reference), argument
        return f"{self.prefix}{key}" if kind in _PREFIXED else key

    def here(self, kind: Kind, key: Key) -> Key | None:
        """Return the key of what has a key where it is included, if it has any."""
        if isinstance(key, tuple):
            reference, argument = key
            if not _is_template(reference):
                reference = reference.removeprefix(self.prefix)
            here: Key = (reference, argument)
        else:
            here = key.removeprefix(self.prefix) if kind in _PREFIXED else key
        return here if self.there(kind, here) == key else None

    def adapted(self, component: Component) -> Component:
        """Return a component as it is where it is included.

        Raises:
            SetupError: Its name is too long there.
        """
        if not self.prefix or isinstance(component, (Resource, ResourceTemplate)):
            return component
        if isinstance(component, Completion):
            reference = self._add(component.reference)
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

    def _add(self, reference: str) -> str:
        return reference if _is_template(reference) else f"{self.prefix}{reference}"


def _is_template(reference: str) -> bool:
    # A template has a variable, and the name of a prompt none.
    return "{" in reference


class Claim(NamedTuple):
    """What a registry has under a key, or would have.

    Attributes:
        component: The component.
        source: How it came to be included; `None` when it was registered there.
    """

    component: Component
    source: Inclusion | None

    def __str__(self) -> str:
        function = innermost(self.component.handler)
        module = getattr(function, "__module__", None) or "builtins"
        name = f"{module}.{getattr(function, '__qualname__', self.component.name)}"
        if self.source is None:
            return name
        prefix = self.source.prefix
        return f"{name}, included{f' with the prefix {prefix!r}' if prefix else ''}"


class Change:
    """What a registration, a removal or an inclusion comes to, wherever it counts.

    It is worked out in full before it is made, so that a `SetupError` leaves
    everything as it was.
    """

    def __init__(self) -> None:
        self._own: dict[Place, Component | None] = {}
        self._planned: dict[Place, Component | None] = {}
        self._touched: dict[Place, None] = {}

    def put(
        self, registry: Registry, kind: Kind, key: Key, component: Component | None
    ) -> None:
        """Plan that something is registered under a key, or nothing any more.

        Raises:
            SetupError: Its name is too long where it is included.
        """
        place = Place(registry, kind, key)
        self._own[place] = component
        self.follow(place)

    def follow(self, place: "Place") -> None:
        """Plan what a registry has under a key, after what is included in it.

        Raises:
            SetupError: Its name is too long there.
        """
        registry, kind, key = place
        self._touched[place] = None
        before = self._find(place)
        claim = next(self.claims(place), None)
        after = None if claim is None else claim.component
        if before is after or _is_same(before, after):
            return
        self._planned[place] = after
        inclusions = registry.inclusions()
        for inclusion in inclusions:
            self.follow(Place(inclusion.into, kind, inclusion.there(kind, key)))
        if kind not in _COMPLETED:
            return
        # Completions are selected with what they complete.
        for each in [each for each in registry.completions if each[0] == key]:
            for inclusion in inclusions:
                there = inclusion.there("completions", each)
                self.follow(Place(inclusion.into, "completions", there))

    def check(self) -> None:
        """Finish the plan, and refuse one that can't be made.

        Raises:
            SetupError: Two components would have one key, or a registry can't
                have one of them.
        """
        self._drop_completions()
        for place in self._touched:
            self._check(place, self._find(place))

    def make(self) -> None:
        """Make the change, and tell who listens."""
        planned: dict[Registry, dict[tuple[Kind, Key], Component | None]] = {}
        for (registry, kind, key), component in self._planned.items():
            planned.setdefault(registry, {})[kind, key] = component
        for (registry, kind, key), component in self._own.items():
            registry.own(kind, key, component)
        changed = [
            (registry, registry.apply(changes)) for registry, changes in planned.items()
        ]
        for registry, kinds in changed:
            registry.notify(kinds)

    def claims(self, place: "Place") -> Iterator[Claim]:
        """Yield what would be under a key: what is registered there, and included."""
        registry, kind, key = place
        own = self._own[place] if place in self._own else registry.find_own(kind, key)
        if own is not None:
            yield Claim(own, None)
        for inclusion in registry.included:
            here = inclusion.here(kind, key)
            if here is None:
                continue
            component = self._find(Place(inclusion.of, kind, here))
            if component is not None and self._selects(inclusion, component):
                yield Claim(inclusion.adapted(component), inclusion)

    def _find(self, place: "Place") -> Component | None:
        if place in self._planned:
            return self._planned[place]
        return place.registry.find(place.kind, place.key)

    def _selects(self, inclusion: Inclusion, component: Component) -> bool:
        if inclusion.tags is None:
            return True
        completed: Component | None = component
        if isinstance(component, Completion):
            reference = component.reference
            completed = self._find(
                Place(inclusion.of, "prompts", reference)
            ) or self._find(Place(inclusion.of, "templates", reference))
        return completed is not None and bool(inclusion.tags & completed.tags)

    def _drop_completions(self) -> None:
        """Plan that completions leave with what they complete."""
        for place, component in list(self._planned.items()):
            if component is not None or place.kind not in _COMPLETED:
                continue
            for key in list(place.registry.completions):
                if key[0] == place.key:
                    self.put(place.registry, "completions", key, None)

    def _check(self, place: "Place", component: Component | None) -> None:
        registry, kind, key = place
        claims = list(self.claims(place))
        for claim in claims[1:]:
            # The same may come in several ways, and is there once.
            if not _is_same(claims[0].component, claim.component):
                raise SetupError(
                    f"{_WHAT[kind]} {key!r} would be two, {claims[0]} and {claim}: "
                    f"{_REMEDY[kind]}"
                )
        if component is None:
            return
        if isinstance(component, ResourceTemplate):
            self._check_shape(registry, component)
        if registry.check is not None:
            registry.check(kind, component)

    def _check_shape(self, registry: Registry, resource: ResourceTemplate) -> None:
        template = resource.template
        planned = [
            component
            for place, component in self._planned.items()
            if place.registry is registry and isinstance(component, ResourceTemplate)
        ]
        for other in [*registry.templates.values(), *planned]:
            text = other.template.text
            if (
                other.template.shape == template.shape
                and text != template.text
                and self._find(Place(registry, "templates", text)) is not None
            ):
                raise SetupError(
                    f"resource template {template.text!r} matches the same URIs as "
                    f"{text!r}"
                )


class Place(NamedTuple):
    """Where something is registered."""

    registry: Registry
    kind: Kind
    key: Key


def _is_same(one: Component | None, other: Component | None) -> bool:
    """Whether two components are one registration, under the same name."""
    if one is None or other is None:
        return one is other
    return one is other or (one.signature is other.signature and one == other)


def suggestions(name: str, known: Iterable[str]) -> list[str]:
    """Return the known names that a misspelled one may stand for.

    Example:
        >>> suggestions("serch", ["search", "order"])
        ['search']
    """
    if len(name) > _MAX_NAME:
        return []
    return difflib.get_close_matches(name, islice(known, _MAX_CANDIDATES))
