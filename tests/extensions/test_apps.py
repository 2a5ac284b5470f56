"""User interfaces of tools, which are for the clients that show some.

Spec ext-apps, specification/2026-01-26/apps (SEP-1865).
"""

import asyncio
import logging
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final

import pytest
from fastmcp import Client as FastMCP
from mcp import Client
from mcp.client.extension import advertise

from mcpkit import (
    UI,
    App,
    Cache,
    Response,
    Result,
    SetupError,
    Toolbox,
    UIOptions,
    dispatch,
)
from mcpkit.context import Session
from mcpkit.extensions.apps import APPS, IDENTIFIER, MIME_TYPE, AppsRule
from mcpkit.extensions.base import Extension
from mcpkit.protocol.content import File, Text, resource_contents
from mcpkit.visibility import Rule
from tests.calls import (
    V_2025_03_26,
    V_2025_06_18,
    V_2025_11_25,
    headers_of,
    request,
    text,
)
from tests.clients.processes import serving
from tests.http.streaming import acknowledged, changed
from tests.methods.test_subscriptions import PATIENCE, Channel
from tests.wire import MODERN, check_response

CARD: Final = "ui://books/card"
HTML: Final = "<!doctype html><title>A book</title>"

SHOWS: Final = {"mimeTypes": [MIME_TYPE]}
NEVER: Final = float("inf")

# Those with `_meta` in definitions.
VERSIONS: Final = (MODERN, V_2025_11_25, V_2025_06_18)


async def ask(
    app: App,
    method: str,
    /,
    *,
    at: str = MODERN,
    apps: Any = None,
    by: Any = None,
    **params: Any,
) -> Any:
    """Send a request, and return its result or its error.

    Args:
        app: The app.
        method: Its method.
        at: The revision; a legacy client has a session.
        apps: What the client declares of the extension; `None` for nothing.
        by: Who calls.
        params: Its params.
    """
    client = {} if apps is None else {"extensions": {IDENTIFIER: apps}}
    replied = await dispatch(
        request(method, at=at, client=client, **params),
        app,
        headers=headers_of(at),
        session=Session("one", at, client, NEVER) if at != MODERN else None,
        principal=by,
    )
    assert isinstance(replied, Response)
    check_response(replied.message, method, at)
    return replied.message.get("result", replied.message.get("error"))


async def tools(app: App, **options: Any) -> dict[str, Any]:
    """Return the `_meta` of each tool of a list, by name."""
    listed = (await ask(app, "tools/list", **options))["tools"]
    return {tool["name"]: tool.get("_meta") for tool in listed}


async def pages(app: App, **options: Any) -> dict[str, Any]:
    """Return the `_meta` of each resource and template of the lists, by URI."""
    found = (await ask(app, "resources/list", **options))["resources"]
    templates = await ask(app, "resources/templates/list", **options)
    found += templates["resourceTemplates"]
    return {
        each.get("uri", each.get("uriTemplate")): each.get("_meta") for each in found
    }


async def read(app: App, uri: str = CARD, **options: Any) -> Any:
    """Return the contents of a resource, or the error."""
    result = await ask(app, "resources/read", uri=uri, **options)
    return result.get("contents", result)


def say() -> str:
    return "Dune"


def shop(**options: Any) -> App:
    app = App("shop", secret_key="k" * 32, **options)
    app.add_tool(say, name="plain", meta={"a": 1})
    app.add_tool(say, name="shown", ui=CARD, meta={"a": 1})
    app.add_tool(say, name="pressed", ui=UI(CARD, visibility=["app"]))
    app.add_tool(say, name="told", ui=UI(visibility=["model"]))
    app.add_resource("books://dune", say)
    app.add_resource(CARD, HTML, ui=UIOptions(prefers_border=False))
    app.add_resource("ui://books/{isbn}", lambda isbn: f"<p>{isbn}", name="any")
    return app


@pytest.mark.parametrize("version", VERSIONS)
async def test_a_client_that_shows_pages_is_told_of_them(version: str) -> None:
    """Spec ext-apps: Resource Discovery. The flat key is deprecated, and not sent."""
    app = shop()
    # The second time, lists come out of what was kept, as those of others do.
    for _ in range(2):
        await tools(app, at=version)
        assert await tools(app, at=version, apps=SHOWS) == {
            "plain": {"a": 1},
            "shown": {"a": 1, "ui": {"resourceUri": CARD}},
            "pressed": {"ui": {"resourceUri": CARD, "visibility": ["app"]}},
            "told": {"ui": {"visibility": ["model"]}},
        }
        assert await pages(app, at=version, apps=SHOWS) == {
            "books://dune": None,
            CARD: {"ui": {"prefersBorder": False}},
            "ui://books/{isbn}": None,
        }


OTHERS: Final[list[tuple[str, Any]]] = [
    # What a client declares of the extension, which is not that it shows pages.
    ("nothing", None),
    ("no types", {}),
    ("other types", {"mimeTypes": ["text/html", "text/html+mcp"]}),
    ("a type, and no list", {"mimeTypes": MIME_TYPE}),
    ("no settings", True),
]


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("declared", [pytest.param(it, id=name) for name, it in OTHERS])
async def test_another_client_has_the_tools_alone(version: str, declared: Any) -> None:
    """Spec ext-apps: Client<>Server Capability Negotiation, Graceful Degradation."""
    app = shop()
    for _ in range(2):
        await tools(app, at=version, apps=SHOWS)
        seen = await tools(app, at=version, apps=declared)
        assert seen == {"plain": {"a": 1}, "shown": {"a": 1}, "told": None}
        assert await pages(app, at=version, apps=declared) == {"books://dune": None}


async def test_where_definitions_have_no_meta_nobody_is_told_of_pages() -> None:
    """Spec 2025-03-26, schema: Tool. A model would be offered what is for pages."""
    seen = await tools(shop(), at=V_2025_03_26, apps=SHOWS)
    assert seen == {"plain": None, "shown": None, "told": None}


async def test_a_legacy_client_without_a_session_declared_nothing() -> None:
    message = request("tools/list", at=V_2025_11_25)
    replied = await dispatch(message, shop(), headers=headers_of(V_2025_11_25))
    assert isinstance(replied, Response)
    names = [tool["name"] for tool in replied.message["result"]["tools"]]
    assert names == ["plain", "shown", "told"]


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("name", ["plain", "shown", "pressed", "told"])
async def test_all_tools_are_called_by_a_client_with_pages(
    version: str, name: str
) -> None:
    """Spec ext-apps: Visibility. A host knows who calls, and a server does not."""
    result = await ask(shop(), "tools/call", at=version, apps=SHOWS, name=name)
    assert result["content"] == text("Dune")["content"]


@pytest.mark.parametrize("version", VERSIONS)
async def test_a_tool_for_pages_does_not_exist_without_them(version: str) -> None:
    """Spec ext-apps: Visibility; without "model", no agent calls it."""
    call = partial(ask, shop(), "tools/call", at=version)
    unknown = {"code": -32602, "message": "Unknown tool: pressed"}
    assert await call(name="pressed") == unknown
    # Nor is it what somebody meant.
    assert await call(name="presse") == {**unknown, "message": "Unknown tool: presse"}
    assert (await call(name="shown"))["content"] == text("Dune")["content"]


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("declared", [None, SHOWS])
async def test_a_page_is_read_by_whoever_has_its_uri(
    version: str, declared: Any
) -> None:
    """Spec ext-apps: UI Resource Format. It may be left out of lists, no more."""
    app = shop()
    page = {"uri": CARD, "mimeType": MIME_TYPE, "text": HTML}
    assert await read(app, at=version, apps=declared) == [
        {**page, "_meta": {"ui": {"prefersBorder": False}}}
    ]
    assert await read(app, "ui://books/7", at=version, apps=declared) == [
        {"uri": "ui://books/7", "mimeType": MIME_TYPE, "text": "<p>7"}
    ]


OWN: Final = {"ui": {"prefersBorder": True}}
RETURNED: Final[list[tuple[str, Any, Mapping[str, Any]]]] = [
    # What the function returns, and what its contents have otherwise than a text.
    ("a text", HTML, {}),
    ("bytes", b"<p>", {"blob": "PHA+"}),
    ("a block of text", Text(HTML), {}),
    ("a file of another type of text", File(CARD, HTML, "text/html"), {}),
    ("a file without a type", File(CARD, HTML), {}),
    ("a file with its own meta", File(CARD, HTML, meta=OWN), {"_meta": OWN}),
    ("a result", Result.resource_read(HTML), {}),
    ("built contents", Result.resource_read(resource_contents(CARD, HTML)), {}),
    ("what is no page", File(CARD, HTML, "text/css"), {"mimeType": "text/css"}),
]


@pytest.mark.parametrize(
    ("value", "other"), [pytest.param(*row, id=name) for name, *row in RETURNED]
)
async def test_contents_of_a_page_have_its_type_and_what_it_needs(
    value: Any, other: Mapping[str, Any]
) -> None:
    """Spec ext-apps: Content Requirements; the type MUST be this one."""
    app = App("shop")
    app.add_resource(CARD, lambda: value, name="card", ui=UIOptions(domain="a.b"))
    usual = {"mimeType": MIME_TYPE, "_meta": {"ui": {"domain": "a.b"}}}
    body = {} if "blob" in other else {"text": HTML}
    assert await read(app) == [{"uri": CARD, **usual, **body, **other}]


@pytest.mark.parametrize("returned", [True, False])
async def test_a_page_may_be_a_file(tmp_path: Path, returned: bool) -> None:  # noqa: FBT001  # a parameter of the test
    path = tmp_path / "card.html"
    path.write_text(HTML)
    app = App("shop")
    handler = (lambda: path) if returned else path
    app.add_resource(CARD, handler, name="card", ui=UIOptions(domain="a.b"))
    described = {"mimeType": MIME_TYPE, "_meta": {"ui": {"domain": "a.b"}}}
    assert await read(app) == [{"uri": CARD, **described, "text": HTML}]
    listed = (await ask(app, "resources/list", apps=SHOWS))["resources"]
    size = {} if returned else {"size": len(HTML)}
    assert listed == [{"uri": CARD, "name": "card", **described, **size}]


async def test_html_in_place_of_a_function_is_named_by_its_uri() -> None:
    app = App("shop")
    app.add_resource(CARD, HTML)
    listed = (await ask(app, "resources/list", apps=SHOWS))["resources"]
    assert listed == [{"uri": CARD, "name": "books/card", "mimeType": MIME_TYPE}]


async def test_a_directory_of_pages_is_served(tmp_path: Path) -> None:
    (tmp_path / "card.html").write_text(HTML)
    app = App("shop")
    app.add_directory("ui://books", tmp_path, list_files=True)
    uri = "ui://books/card.html"
    page = {"uri": uri, "mimeType": MIME_TYPE, "text": HTML}
    assert await read(app, uri) == [page]
    assert uri in await pages(app, apps=SHOWS)


META: Final[list[tuple[str, UIOptions, Any]]] = [
    # What a page needs, and `_meta` on the wire.
    ("nothing", UIOptions(), None),
    (
        "origins",
        UIOptions(
            csp={
                "connectDomains": ["https://a.example.com", "wss://b.example.com:8443"],
                "resourceDomains": ("https://*.example.com", "http://localhost:3000"),
                "frameDomains": ["https://player.example.com", "http://[::1]:80"],
                "baseUriDomains": [],
            }
        ),
        {
            "csp": {
                "connectDomains": ["https://a.example.com", "wss://b.example.com:8443"],
                "resourceDomains": ["https://*.example.com", "http://localhost:3000"],
                "frameDomains": ["https://player.example.com", "http://[::1]:80"],
                "baseUriDomains": [],
            }
        },
    ),
    (
        "permissions",
        UIOptions(
            permissions=["camera", "microphone", "geolocation", "clipboardWrite"]
        ),
        {
            "permissions": {
                "camera": {},
                "microphone": {},
                "geolocation": {},
                "clipboardWrite": {},
            }
        },
    ),
    (
        "permissions as sent",
        UIOptions(permissions={"camera": {}}),
        {"permissions": {"camera": {}}},
    ),
    ("a domain", UIOptions(domain="7f.example.com"), {"domain": "7f.example.com"}),
    ("a border", UIOptions(prefers_border=True), {"prefersBorder": True}),
    ("no border", UIOptions(prefers_border=False), {"prefersBorder": False}),
]


@pytest.mark.parametrize(
    ("options", "sent"), [pytest.param(*row, id=name) for name, *row in META]
)
async def test_what_a_page_needs_is_in_its_definition_and_its_contents(
    options: UIOptions, sent: Any
) -> None:
    """Spec ext-apps: UIResourceMeta; the draft: Metadata Location."""
    app = App("shop")
    app.add_resource(CARD, HTML, ui=options)
    app.add_resource("ui://books/{isbn}", lambda isbn: isbn, name="x", ui=options)
    meta = {} if sent is None else {"_meta": {"ui": sent}}
    for uri in (CARD, "ui://books/7"):
        assert [{**it, "text": ""} for it in await read(app, uri)] == [
            {"uri": uri, "mimeType": MIME_TYPE, "text": "", **meta}
        ]
    found = await pages(app, apps=SHOWS)
    assert [*found.values()] == [meta.get("_meta")] * 2


def add(kind: str, **options: Any) -> Callable[[], Any]:
    """Return a registration that fails."""
    if kind == "tool":
        return lambda: App("x").add_tool(say, **options)
    return lambda: App("x").add_resource(kind, say, **options)


MISTAKES: Final[list[tuple[Callable[[], Any], str]]] = [
    (add("tool", ui="books://card"), "tool 'say': a UI is at a URI such as"),
    (add("tool", ui="ui://"), "not 'ui://'"),
    (add("tool", ui="ui://books/{isbn}"), "not 'ui://books/{isbn}'"),
    (add("tool", ui=3), "tool 'say': a UI is at a URI such as .*, not 3"),
    (add("tool", ui=UIOptions()), "not UIOptions"),
    (add("tool", ui=CARD, meta={"ui": {}}), "tool 'say': the option ui and 'ui'"),
    (UI, "a UI has a uri, or a visibility"),
    (lambda: UI(CARD, visibility=[]), r"some of \['model', 'app'\], not \[\]"),
    (lambda: UI(CARD, visibility="app"), "not 'app'"),  # type: ignore[arg-type]
    (lambda: UI(CARD, visibility=["user"]), r"not \['user'\]"),  # type: ignore[list-item]
    (lambda: UI(CARD, visibility=3), "not 3"),  # type: ignore[arg-type]
    (add("a://b", ui=UIOptions()), "resource 'a://b': ui is for pages alone"),
    (add(CARD, ui=CARD), r"resource 'ui://books/card': ui is UIOptions\(\.\.\.\)"),
    (add(CARD, mime_type="text/css"), "of the type 'text/html;profile=mcp-app', not"),
    (add(CARD, meta={"ui": {}}, ui=UIOptions()), "the option ui and 'ui' in meta"),
    (lambda: App("x").add_resource("a://b", HTML), "the name of a resource is an opt"),
    (lambda: UIOptions(csp=["a"]), "csp is a dict of connectDomains"),  # type: ignore[arg-type]
    (lambda: UIOptions(csp={"connect": []}), r"csp is a dict .*, not {'connect'"),
    (lambda: UIOptions(csp={"frameDomains": "a"}), r"is a list: write \['a'\]"),
    (lambda: UIOptions(csp={"frameDomains": iter(["https://a"])}), "is a list, not <l"),  # type: ignore[dict-item]
    (lambda: UIOptions(csp={"frameDomains": None}), "is a list, not None"),  # type: ignore[dict-item]
    (lambda: UIOptions(permissions="camera"), "permissions has camera, microphone"),
    (lambda: UIOptions(permissions=["midi"]), r"not \['midi'\]"),
    (lambda: UIOptions(domain=""), "domain is the name of a host, not ''"),
    (lambda: UIOptions(domain="a b"), "domain is the name of a host, not 'a b'"),
    (lambda: UIOptions(prefers_border=1), "prefers_border is a bool, not 1"),  # type: ignore[arg-type]
]


@pytest.mark.parametrize(("register", "fault"), MISTAKES)
def test_a_mistake_is_told_when_it_is_made(
    register: Callable[[], Any], fault: str
) -> None:
    with pytest.raises(SetupError, match=fault):
        register()


@pytest.mark.parametrize(
    "origin",
    [
        "cdn.example.com",
        "https://cdn.example.com/",
        "https://cdn.example.com/lib",
        "https://a.example.com https://b.example.com",
        "https://a.example.com;script-src",
        "https://a.example.com\n",
        "https://a.*.com",
        "'unsafe-eval'",
        "*",
        "",
        7,
    ],
)
def test_an_origin_is_one_and_no_more(origin: Any) -> None:
    """Spec ext-apps: McpUiResourceCsp. It becomes a part of a header of the host."""
    with pytest.raises(SetupError, match="resourceDomains has origins such as"):
        UIOptions(csp={"resourceDomains": [origin]})


@pytest.mark.parametrize("version", VERSIONS)
async def test_a_page_that_is_not_registered_is_logged_and_not_named(
    version: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Spec ext-apps: Resource Discovery, Behavior; the resource MUST exist."""
    app = App("shop")
    app.add_tool(say, name="shown", ui=CARD)
    app.add_tool(say, name="pressed", ui=UI(CARD, visibility=["app"]))
    seen = partial(tools, app, at=version)
    assert await seen() == {"shown": None}
    assert caplog.record_tuples == []
    assert await seen(apps=SHOWS) == {
        "shown": None,
        "pressed": {"ui": {"visibility": ["app"]}},
    }
    fault = (
        "there is no 'ui://books/card' to show it, and clients are not told of it: "
        "register it with @app.resource('ui://books/card')"
    )
    assert caplog.record_tuples == [
        ("mcpkit", logging.WARNING, f"tool {name!r}: {fault}")
        for name in ("shown", "pressed")
    ]
    # Tools may come before their pages.
    app.add_resource(CARD, HTML)
    assert (await seen(apps=SHOWS))["shown"] == {"ui": {"resourceUri": CARD}}


async def test_a_template_may_hold_the_page_of_a_tool() -> None:
    app = App("shop")
    app.add_tool(say, ui="ui://books/7")
    app.add_resource("ui://books/{isbn}", lambda isbn: isbn, name="any")
    assert await tools(app, apps=SHOWS) == {
        "say": {"ui": {"resourceUri": "ui://books/7"}}
    }


async def test_a_tool_for_pages_may_be_for_some_callers_alone() -> None:
    app = App("shop")
    app.add_tool(say, ui=UI(visibility=["app"]), visible=lambda caller: caller == "ada")
    app.add_resource(CARD, HTML, visible=lambda caller: caller == "ada")
    for caller, declared, seen in [
        ("ada", SHOWS, True),
        ("ada", None, False),
        ("bob", SHOWS, False),
        ("bob", None, False),
    ]:
        who: dict[str, Any] = {"apps": declared, "by": caller}
        assert ("say" in await tools(app, **who)) is seen
        assert (CARD in await pages(app, **who)) is seen
        assert ("content" in await ask(app, "tools/call", name="say", **who)) is seen
        assert isinstance(await read(app, **who), list) is (caller == "ada")


INSTALLED: Final[list[tuple[str, Callable[[Toolbox], Any], bool]]] = [
    ("a tool", lambda box: box.add_tool(say, ui=CARD), True),
    ("for pages", lambda box: box.add_tool(say, ui=UI(visibility=["app"])), True),
    ("a page", lambda box: box.add_resource(CARD, say), True),
    (
        "pages",
        lambda box: box.add_resource("ui://{+path}", lambda path: path, name="x"),
        True,
    ),
    ("others", lambda box: box.add_resource("a://b", say), False),
]


@pytest.mark.parametrize("included", [True, False])
@pytest.mark.parametrize(
    ("register", "has"), [pytest.param(*row, id=name) for name, *row in INSTALLED]
)
async def test_an_app_advertises_the_extension_that_it_uses(
    register: Callable[[Toolbox], Any],
    has: bool,  # noqa: FBT001  # a parameter of the test
    included: bool,  # noqa: FBT001  # a parameter of the test
) -> None:
    """Spec ext-apps: Client<>Server Capability Negotiation; SEP-2133."""
    app, box = App("shop"), Toolbox()
    if included:
        app.include(box)
    # What is declared before it is used is kept no longer than that.
    await ask(app, "server/discover")
    register(box if included else app)
    named: dict[str, Any] | None = {IDENTIFIER: {}} if has else None
    told = await ask(app, "server/discover")
    assert told["capabilities"].get("extensions") == named
    assert await extensions_of_legacy(app) == named


async def extensions_of_legacy(app: App) -> Any:
    """Open a session, and return what the server declares beyond the revision."""
    hello = request(
        "initialize",
        at=V_2025_11_25,
        protocolVersion=V_2025_11_25,
        capabilities={},
        clientInfo={"name": "c", "version": "1"},
    )
    opened = await dispatch(hello, app)
    assert isinstance(opened, Response)
    message = opened.message
    # The capabilities of the revision are no closed set.
    declared = message["result"]["capabilities"].pop("extensions", None)
    check_response(message, "initialize", V_2025_11_25)
    return declared


def test_an_extension_that_is_installed_already_is_left() -> None:
    app = App("shop")
    own = Extension(identifier=IDENTIFIER, settings={"a": 1})
    app.add_extension(own)
    app.add_resource(CARD, HTML)
    assert app.extensions == {IDENTIFIER: own}


PUBLIC: Final[list[tuple[str, Callable[[App], Any], str | None]]] = [
    # What is registered, and the answers that can't be public then.
    ("a tool", lambda app: app.add_tool(say, ui=CARD), "tools/list"),
    ("a page", lambda app: app.add_resource(CARD, HTML), "resources/list"),
    (
        "pages",
        lambda app: app.add_resource("ui://{+path}", lambda path: path, name="x"),
        "resources/templates/list",
    ),
]


@pytest.mark.parametrize(
    ("register", "method"), [pytest.param(*row, id=name) for name, *row in PUBLIC]
)
def test_what_differs_by_the_client_is_not_public(
    register: Callable[[App], Any], method: str
) -> None:
    """Spec 2026-07-28, server/utilities/caching: Choosing a Cache Scope."""
    public = Cache(ttl_ms=1, scope="public")
    with pytest.raises(SetupError, match=f"answers to {method} cached as public"):
        register(App("shop", cache={method: public}))
    # A page is the same to all who read it.
    register(App("shop", cache={"resources/read": public}))


async def test_a_client_without_pages_is_not_told_that_they_changed() -> None:
    """Spec 2026-07-28, basic/patterns/subscriptions; its list is what it was."""
    app = App("shop")
    app.add_resource("books://dune", say)
    filtered = {"resourcesListChanged": True}
    channels = {}
    serving = []
    async with asyncio.timeout(PATIENCE):
        for apps in (True, False):
            channel = channels[apps] = Channel()
            client = {"extensions": {IDENTIFIER: SHOWS}} if apps else {}
            message = request(
                "subscriptions/listen", client=client, notifications=filtered
            )
            listen = dispatch(message, app, channel=channel)
            serving.append(asyncio.create_task(listen))
            assert await channel.sent.get() == acknowledged(**filtered)
        app.add_resource(CARD, HTML)
        told = changed("resources", 1)
        assert await channels[True].sent.get() == told
        app.add_resource("books://emma", say, name="emma")
        for channel in channels.values():
            assert await channel.sent.get() == told
        app.close()
        await asyncio.gather(*serving)
    assert [channel.sent.qsize() for channel in channels.values()] == [0, 0]


async def test_a_public_page_is_read_as_one() -> None:
    app = App("shop")
    app.add_resource(CARD, HTML, cache_scope="public")
    assert (await ask(app, "resources/read", uri=CARD))["cacheScope"] == "public"


def test_lists_are_kept_once_for_all_until_something_is_shown() -> None:
    app = App("shop")
    app.add_tool(say)
    assert app.registry.guards == 0
    app.add_tool(say, name="shown", ui=CARD)
    assert app.registry.guards == 1
    assert app.registry.rules("tools") == (APPS,)
    assert app.registry.rules("resources") == ()
    app.remove_tool("shown")
    assert app.registry.guards == 0
    assert app.registry.rules("tools") == ()


async def test_a_prefix_leaves_the_page_of_a_tool() -> None:
    app, box = App("shop"), Toolbox()
    box.add_tool(say, ui=CARD)
    box.add_resource(CARD, HTML)
    app.include(box, prefix="a_")
    assert await tools(app, apps=SHOWS) == {"a_say": {"ui": {"resourceUri": CARD}}}


def test_rules_are_equal_when_they_ask_the_same() -> None:
    rule = Rule(is_ada)
    assert AppsRule() == APPS
    assert AppsRule(rule) == AppsRule(Rule(is_ada))
    assert len({APPS, AppsRule(), AppsRule(rule), rule, Rule(None)}) == 4
    assert [str(APPS), str(AppsRule(rule))] == [IDENTIFIER, str(rule)]


def is_ada(caller: Any) -> bool:
    raise NotImplementedError


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_the_official_client_is_told_of_pages(mode: Any, url: str) -> None:
    shows = advertise(IDENTIFIER, SHOWS)
    async with Client(url, mode=mode, extensions=[shows]) as client:
        listed = await client.list_tools()
        assert [(tool.name, tool.meta) for tool in listed.tools] == [
            ("look_up", {"ui": {"resourceUri": CARD}}),
            ("sell", {"ui": {"visibility": ["app"]}}),
        ]
        page = (await client.read_resource(CARD)).contents[0]
        assert page.mime_type == MIME_TYPE
        assert page.meta == {"ui": {"prefersBorder": True}}
        sold = await client.call_tool("sell", {"title": "Dune"})
        assert sold.structured_content is not None
        assert sold.structured_content["title"] == "Dune"
    async with Client(url, mode=mode) as client:
        listed = await client.list_tools()
        assert [(tool.name, tool.meta) for tool in listed.tools] == [("look_up", None)]
        assert (await client.list_resources()).resources == []


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_fastmcp_is_told_of_pages(mode: Any, url: str) -> None:
    shows = advertise(IDENTIFIER, SHOWS)
    async with FastMCP(url, mode=mode, extensions=[shows]) as client:
        listed = await client.list_tools()
        assert [tool.name for tool in listed] == ["look_up", "sell"]
        assert [str(page.uri) for page in await client.list_resources()] == [CARD]


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with serving("examples.ui:app") as address:
        yield address
