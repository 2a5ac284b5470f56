"""User interfaces of tools: MCP Apps, `io.modelcontextprotocol/ui`.

    @app.tool(ui="ui://books/card")     the host shows what the tool returns with it
    @app.resource("ui://books/card")    the page: HTML, which the host puts in a frame

A host declares the extension, and the type of pages that it shows. What it is told then
is not told to others:

    a tool with a page      named in its definition; others have the tool without it
    a tool for pages alone  listed, and called; for others it does not exist
    a page                  listed; it is read by whoever has its URI

Spec ext-apps, specification/2026-01-26/apps (SEP-1865).
"""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, Final, Literal, TypeAlias

from mcpkit.context import Context
from mcpkit.errors import SetupError
from mcpkit.extensions.base import Extension
from mcpkit.protocol.content import without_none
from mcpkit.visibility import Rule

IDENTIFIER: Final = "io.modelcontextprotocol/ui"
"""What the extension is called."""

MIME_TYPE: Final = "text/html;profile=mcp-app"
"""The type of a page, and there is no other one yet."""

SCHEME: Final = "ui://"
"""How the URI of a page begins."""

EXTENSION: Final = Extension(identifier=IDENTIFIER)
"""The extension: all that it adds is in definitions and in contents."""

_AUDIENCES: Final = ("model", "app")
_CSP: Final = ("connectDomains", "resourceDomains", "frameDomains", "baseUriDomains")
_PERMISSIONS: Final = ("camera", "microphone", "geolocation", "clipboardWrite")

# Hosts put it into the header of a policy: a space or a semicolon would say more.
_ORIGIN: Final = re.compile(
    r"[a-z][a-z0-9+.-]*://(?:(?:\*\.)?[A-Za-z0-9_.-]+|\[[0-9A-Fa-f:.]+\])(?::[0-9]+)?"
)
_DOMAIN: Final = re.compile(r"[^\s;,'\"]+")

Audience: TypeAlias = Literal["model", "app"]
"""Who may call a tool: the model, or the page of a tool of the same server."""


@dataclass(frozen=True, slots=True)
class UI:
    """How a tool is shown, and to whom: `@app.tool(ui=UI(...))`.

    Example:
        >>> UI("ui://books/card").wire(found=True)
        {'resourceUri': 'ui://books/card'}
        >>> UI(visibility=["app"]).wire(found=True)
        {'visibility': ['app']}

    Args:
        uri: The page that shows what the tool returns, as it is registered with
            `@app.resource`.
        visibility: Who may call the tool: "model", "app" or both, which is the
            default. One without "model" is for pages, and no model is offered it.

    Raises:
        SetupError: One of them is something else.
    """

    uri: str | None = None
    _: KW_ONLY
    visibility: Sequence[Audience] | None = None

    def __post_init__(self) -> None:
        uri: object = self.uri
        if uri is not None and not (
            isinstance(uri, str) and is_page(uri) and "{" not in uri
        ):
            raise SetupError(f"a UI is at a URI such as 'ui://books/card', not {uri!r}")
        chosen = self.visibility
        if chosen is None:
            if self.uri is None:
                raise SetupError("a UI has a uri, or a visibility, or both")
            return
        if not chosen or not _are_some(chosen, _AUDIENCES):
            raise SetupError(
                f"the visibility of a UI is some of {[*_AUDIENCES]}, not {chosen!r}"
            )

    @property
    def for_model(self) -> bool:
        """Whether a model may call the tool."""
        return self.visibility is None or "model" in self.visibility

    def wire(self, *, found: bool) -> dict[str, Any]:
        """Return it as it goes on the wire.

        Args:
            found: There is such a page. One that there is not can't be named.
        """
        chosen = self.visibility
        return without_none(
            {
                "resourceUri": self.uri if found else None,
                "visibility": None if chosen is None else [*chosen],
            }
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class UIOptions:
    """What a page needs of its host: `@app.resource("ui://…", ui=UIOptions(...))`.

    Without any of it a page has no way out of its frame, save through the host.

    Example:
        >>> UIOptions(permissions=["camera"], prefers_border=True).wire()
        {'permissions': {'camera': {}}, 'prefersBorder': True}

    Args:
        csp: The origins that it may use, such as `https://*.example.com`:
            `connectDomains` for requests, `resourceDomains` for scripts, styles,
            images and fonts, `frameDomains` for frames, `baseUriDomains` for its base.
        permissions: What it asks the browser for: "camera", "microphone",
            "geolocation", "clipboardWrite". It may not be granted.
        domain: The origin that it is to have, in the form that the host documents.
        prefers_border: Whether the host is to draw a border and a background.

    Raises:
        SetupError: One of them is something else.
    """

    csp: Mapping[str, Sequence[str]] | None = None
    permissions: Collection[str] | None = None
    domain: str | None = None
    prefers_border: bool | None = None

    def __post_init__(self) -> None:
        if self.csp is not None:
            _check_csp(self.csp)
        asked = self.permissions
        if asked is not None and not _are_some(asked, _PERMISSIONS):
            known = ", ".join(_PERMISSIONS)
            raise SetupError(f"UIOptions: permissions has {known}, not {asked!r}")
        domain: object = self.domain
        if domain is not None and not (
            isinstance(domain, str) and _DOMAIN.fullmatch(domain)
        ):
            raise SetupError(f"UIOptions: domain is the name of a host, not {domain!r}")
        border: object = self.prefers_border
        if not isinstance(border, bool | None):
            raise SetupError(f"UIOptions: prefers_border is a bool, not {border!r}")

    def wire(self) -> dict[str, Any]:
        """Return it as it goes on the wire."""
        csp, asked = self.csp, self.permissions
        return without_none(
            {
                "csp": csp and {name: [*origins] for name, origins in csp.items()},
                "permissions": None if asked is None else {name: {} for name in asked},
                "domain": self.domain,
                "prefersBorder": self.prefers_border,
            }
        )


def _are_some(given: object, known: Collection[str]) -> bool:
    return (
        isinstance(given, Collection)
        and not isinstance(given, str)
        and all(item in known for item in given)
    )


def _check_csp(csp: object) -> None:
    if not isinstance(csp, Mapping) or not csp.keys() <= {*_CSP}:
        raise SetupError(f"UIOptions: csp is a dict of {', '.join(_CSP)}, not {csp!r}")
    for name, origins in csp.items():
        if isinstance(origins, str):
            raise SetupError(f"UIOptions: {name} is a list: write [{origins!r}]")
        # What can be gone through once would be empty when it is sent.
        if not isinstance(origins, Collection):
            raise SetupError(f"UIOptions: {name} is a list, not {origins!r}")
        for origin in origins:
            if not isinstance(origin, str) or not _ORIGIN.fullmatch(origin):
                raise SetupError(
                    f"UIOptions: {name} has origins such as 'https://cdn.example.com' "
                    f"or 'https://*.example.com', not {origin!r}"
                )


class AppsRule(Rule):
    """Those whose client shows user interfaces, of all or of those of another rule.

    Args:
        rest: The other rule.
    """

    __slots__ = ("rest",)

    def __init__(self, rest: Rule | None = None) -> None:
        super().__init__(None)
        self.rest = rest

    def __eq__(self, other: object) -> bool:
        return isinstance(other, AppsRule) and self.rest == other.rest

    def __hash__(self) -> int:
        return hash((AppsRule, self.rest))

    def __str__(self) -> str:
        return IDENTIFIER if self.rest is None else str(self.rest)

    def admits(self, context: Context) -> bool:
        """Whether the client declared pages, and the caller sees what has this rule.

        Raises:
            Exception: Whatever the other rule raised.
        """
        # Where definitions have no `_meta`, nobody could be told of a page, or that
        # a tool is not for models.
        if not context.revision.definitions:
            return False
        types = (context.extension(IDENTIFIER) or {}).get("mimeTypes")
        if not isinstance(types, list) or MIME_TYPE not in types:
            return False
        return self.rest is None or self.rest.admits(context)


APPS: Final = AppsRule()
"""Those whose client shows user interfaces."""


def is_page(uri: str) -> bool:
    """Whether a URI is that of a page.

    Example:
        >>> is_page("ui://books/card"), is_page("books://card"), is_page("ui://")
        (True, False, False)
    """
    return uri.startswith(SCHEME) and uri != SCHEME


def read_ui(
    given: str | UI | None, meta: Mapping[str, Any] | None, what: str
) -> UI | None:
    """Return how a tool is shown, as its developer gave it.

    Args:
        given: The option `ui`.
        meta: The option `meta`.
        what: What it is, for messages: "tool 'search'".

    Raises:
        SetupError: It is no UI, or `meta` has one too.
    """
    if given is None:
        return None
    _check_meta(meta, what)
    try:
        ui = given if isinstance(given, UI) else UI(given)
    except SetupError as error:
        raise SetupError(f"{what}: {error}") from error
    return ui


def read_page(
    given: UIOptions | None,
    meta: Mapping[str, Any] | None,
    mime_type: str | None,
    what: str,
) -> dict[str, Any]:
    """Return the options of a page that follow from those of its developer.

    Args:
        given: The option `ui`.
        meta: The option `meta`.
        mime_type: The option `mime_type`.
        what: What it is, for messages: "resource 'ui://books/card'".

    Raises:
        SetupError: One of them can't be.
    """
    if mime_type not in (None, "text/html", MIME_TYPE):
        raise SetupError(
            f"{what}: what is at ui:// is of the type {MIME_TYPE!r}, not {mime_type!r}"
        )
    options: dict[str, Any] = {"mime_type": MIME_TYPE}
    if given is None:
        return options
    if not isinstance(given, UIOptions):
        raise SetupError(f"{what}: ui is UIOptions(...), not {given!r}")
    _check_meta(meta, what)
    wire = given.wire()
    return {**options, "meta": {**(meta or {}), "ui": wire}} if wire else options


def _check_meta(meta: Mapping[str, Any] | None, what: str) -> None:
    if meta and "ui" in meta:
        raise SetupError(
            f"{what}: the option ui and 'ui' in meta are the same: drop one"
        )


def as_page(
    contents: Mapping[str, Any], described: Mapping[str, Any] | None
) -> dict[str, Any]:
    """Return contents of a page with its type, and with what it needs of its host.

    Args:
        contents: One of the contents, in wire form. What it has of its own, it keeps.
        described: What the definition of the page has in `_meta.ui`.
    """
    page = dict(contents)
    if page.get("mimeType") in (None, "text/html"):
        page["mimeType"] = MIME_TYPE
    if described is not None:
        page["_meta"] = {"ui": described, **page.get("_meta", {})}
    return page
