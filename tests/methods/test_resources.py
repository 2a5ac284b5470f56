"""`resources/list`, `resources/templates/list` and `resources/read`.

Spec 2026-07-28, server/resources.
"""

import base64
import enum
import logging
from typing import Any

import pytest
from pydantic import BaseModel

from mcpkit import (
    App,
    Audio,
    Context,
    File,
    Image,
    ProtocolError,
    ResourceLink,
    Result,
    Text,
    ToolError,
)
from mcpkit.errors import INTERNAL_ERROR, INVALID_PARAMS, RESOURCE_NOT_FOUND
from tests.calls import (
    EVERY,
    LEGACY,
    V_2025_03_26,
    V_2025_06_18,
    V_2025_11_25,
    call,
)
from tests.wire import MODERN

URI = "data://x"


class Color(enum.Enum):
    """A color."""

    RED = "red"


class Point(BaseModel):
    """A place."""

    x: int


def holding(value: Any, **options: Any) -> App:
    """Make an app with one resource that returns a value."""
    app = App("tests")
    app.add_resource(URI, lambda: value, name="x", **options)
    return app


async def read(app: App, uri: str = URI, *, at: str = MODERN, by: Any = None) -> Any:
    """Return the contents of a resource, or the error where reading failed."""
    result = await call(app, "resources/read", at=at, by=by, uri=uri)
    return result.get("contents", result)


def contents(
    mime_type: str | None = None, uri: str = URI, **data: Any
) -> list[dict[str, Any]]:
    return [{"uri": uri, **({"mimeType": mime_type} if mime_type else {}), **data}]


def blob(data: bytes) -> str:
    return base64.b64encode(data).decode()


EVERY_BYTE = bytes(range(256))

READ = [
    # id, value, contents
    ("a text", "x", contents("text/plain", text="x")),
    ("an empty text", "", contents("text/plain", text="")),
    ("half a surrogate pair", "\ud800", contents("text/plain", text="\ufffd")),
    (
        "URI-09 bytes",
        EVERY_BYTE,
        contents("application/octet-stream", blob=blob(EVERY_BYTE)),
    ),
    ("URI-09 no bytes", b"", contents("application/octet-stream", blob="")),
    (
        "URI-09 a bytearray",
        bytearray(b"\xfb\xff"),
        contents("application/octet-stream", blob="+/8="),
    ),
    (
        "URI-09 a memoryview",
        memoryview(b"\xfb\xff"),
        contents("application/octet-stream", blob="+/8="),
    ),
    ("a dict", {"a": 1}, contents("application/json", text='{"a":1}')),
    ("an empty list", [], contents("application/json", text="[]")),
    ("a list of texts", ["a"], contents("application/json", text='["a"]')),
    ("nothing", None, contents("application/json", text="null")),
    ("a number", 3, contents("application/json", text="3")),
    ("a model", Point(x=1), contents("application/json", text='{"x":1}')),
    ("an enum member", Color.RED, contents("application/json", text='"red"')),
    (
        "RES-01 NaN",
        {"a": float("nan")},
        contents("application/json", text='{"a":null}'),
    ),
    ("a block of text", Text("x"), contents("text/plain", text="x")),
    ("an image", Image(b"\xff"), contents("image/png", blob="/w==")),
    ("a recording", Audio(b"\xff"), contents("audio/wav", blob="/w==")),
    ("a file", File("a://b", "c"), contents(uri="a://b", text="c")),
    (
        "several files",
        [File("a://b", "c", "text/css"), File("a://d", b"\xff", "x/y")],
        [
            *contents("text/css", uri="a://b", text="c"),
            *contents("x/y", uri="a://d", blob="/w=="),
        ],
    ),
    ("a tuple of files", (File("a://b", "c"),), contents(uri="a://b", text="c")),
    (
        "RES-13 the meta of contents",
        File("a://b", "c", meta={"k": 1}),
        contents(uri="a://b", text="c", _meta={"k": 1}),
    ),
    (
        "a result",
        Result.resource_read({"uri": "a://b", "text": "c", "_meta": {"k": 1}}),
        contents(uri="a://b", text="c", _meta={"k": 1}),
    ),
]


def table(rows: list[Any]) -> list[Any]:
    return [pytest.param(*row, id=name) for name, *row in rows]


@pytest.mark.parametrize("version", [MODERN, V_2025_11_25, V_2025_06_18])
@pytest.mark.parametrize(("value", "expected"), table(READ))
async def test_what_a_resource_returns_becomes_contents(
    value: Any, expected: list[dict[str, Any]], version: str
) -> None:
    """Spec 2026-07-28, server/resources: Resource Contents. The mapping is ours."""
    assert await read(holding(value), at=version) == expected


TYPED = [
    # id, type, value, contents
    ("URI-10 a type with parameters", 'text/html; charset=utf-8; profile="a b"', "x",
     {"text": "x"}),
    ("URI-10 a folder", "inode/directory", "x", {"text": "x"}),
    ("of bytes", "image/webp", b"\xff", {"blob": "/w=="}),
    ("of JSON", "application/ld+json", {"a": 1}, {"text": '{"a":1}'}),
    ("of a block", "text/markdown", Text("x"), {"text": "x"}),
]  # fmt: skip


@pytest.mark.parametrize(("mime_type", "value", "data"), table(TYPED))
async def test_a_declared_type_is_sent_in_every_place(
    mime_type: str, value: Any, data: dict[str, Any]
) -> None:
    """URI-10."""
    app = holding(value, mime_type=mime_type)

    @app.resource("of://{x}", mime_type=mime_type)
    def of(x: str) -> Any:
        return value if x else None

    assert await read(app) == contents(mime_type, **data)
    assert await read(app, "of://a") == contents(mime_type, uri="of://a", **data)
    (listed,) = (await call(app, "resources/list"))["resources"]
    (template,) = (await call(app, "resources/templates/list"))["resourceTemplates"]
    assert (listed["mimeType"], template["mimeType"]) == (mime_type, mime_type)


def raiser(error: BaseException) -> Any:
    def raises() -> str:
        raise error

    return raises


WRONG = [
    # id, handler
    ("an error", raiser(RuntimeError("postgres://user:pw@host"))),
    ("a tool's error", raiser(ToolError("x"))),
    ("an exit", raiser(SystemExit(1))),
    ("an object without a JSON form", lambda: object()),  # noqa: PLW0108  # a class is refused
    ("a result of a tool", lambda: Result.text("x")),
    ("a failure of a tool", lambda: Result.error("x")),
    ("a link", lambda: ResourceLink("a://b", "b")),
]


@pytest.mark.parametrize("version", EVERY)
@pytest.mark.parametrize("handler", table(WRONG))
async def test_a_resource_that_fails_tells_nothing(
    handler: Any, version: str, caplog: pytest.LogCaptureFixture
) -> None:
    """ERR-01. Spec 2026-07-28, server/resources: Error Handling."""
    app = App("tests")
    app.add_resource(URI, handler, name="x")
    assert await read(app, at=version) == {
        "code": INTERNAL_ERROR,
        "message": "Internal error",
    }
    (record,) = caplog.records
    assert record.levelno == logging.ERROR
    assert record.getMessage() == f"resources/read: resource {URI!r} failed"
    assert record.exc_info is not None


async def test_a_protocol_error_of_a_resource_is_sent_verbatim() -> None:
    app = App("tests")
    app.add_resource(URI, raiser(ProtocolError(7, "Gone", {"since": 2020})), name="x")
    error = {"code": 7, "message": "Gone", "data": {"since": 2020}}
    assert await read(app) == error
    assert await read(app, at=V_2025_11_25) == error


async def test_a_number_that_becomes_null_is_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """RES-01. Ours."""
    await read(holding({"a": float("inf")}))
    assert [record.getMessage() for record in caplog.records] == [
        f"resource {URI!r}: NaN or an infinity became null: a"
    ]


async def test_an_unknown_resource_is_not_found() -> None:
    """Spec 2026-07-28, server/resources: Error Handling; -32002 in the older ones."""
    error = {"message": "Resource not found", "data": {"uri": "zzz://z"}}
    app = holding("x")
    assert await read(app, "zzz://z") == {"code": INVALID_PARAMS, **error}
    for version in LEGACY:
        found = await read(app, "zzz://z", at=version)
        assert found == {"code": RESOURCE_NOT_FOUND, **error}


MALFORMED = [
    # id, params
    ("no URI", {}),
    ("a number", {"uri": 5}),
    ("null", {"uri": None}),
]


@pytest.mark.parametrize("params", table(MALFORMED))
async def test_a_uri_is_a_string(params: dict[str, Any]) -> None:
    assert await call(holding("x"), "resources/read", **params) == {
        "code": INVALID_PARAMS,
        "message": "Invalid params: uri must be a string",
    }


OPAQUE = ["resource://MyHost", "users/me", "custom:thing", "file:///C:/a b", "a://b/"]


@pytest.mark.parametrize("uri", OPAQUE)
@pytest.mark.parametrize("version", EVERY)
async def test_a_uri_is_compared_and_sent_byte_for_byte(uri: str, version: str) -> None:
    """URI-07."""
    app = App("tests")
    app.add_resource(uri, lambda: "x", name="x")
    (listed,) = (await call(app, "resources/list", at=version))["resources"]
    assert listed == {"uri": uri, "name": "x"}
    expected = contents("text/plain", uri=uri, text="x")
    assert await read(app, listed["uri"], at=version) == expected
    for other in (f"{uri}/", uri.upper(), f" {uri}"):
        assert (await read(app, other))["message"] == "Resource not found"


def shelf() -> App:
    """Make an app whose templates overlap."""
    app = App("tests")

    @app.resource("books://{isbn}")
    def book(isbn: str) -> str:
        return f"book {isbn}"

    @app.resource("books://{+path}")
    def anything(path: str) -> str:
        return f"anything {path}"

    @app.resource("books://new-{isbn}")
    def new(isbn: str) -> str:
        return f"new {isbn}"

    @app.resource("books://new-today")
    def today() -> str:
        return "today"

    return app


WINS = [
    # id, URI, text
    ("a resource over all templates", "books://new-today", "today"),
    ("the most literal template", "books://new-1", "new 1"),
    ("the first of two that are as literal", "books://1", "book 1"),
    ("the only one that matches", "books://1/2", "anything 1/2"),
]


@pytest.mark.parametrize(("uri", "expected"), table(WINS))
async def test_which_of_several_matches_wins(uri: str, expected: str) -> None:
    """Ours."""
    assert await read(shelf(), uri) == contents("text/plain", uri=uri, text=expected)


async def test_variables_take_the_type_of_their_parameter() -> None:
    app = App("tests")

    @app.resource("pages://{number}/{color}")
    def page(number: int, color: Color, ctx: Context, lines: int = 3) -> str:
        return f"{number + 1} {color} {lines} {ctx.params['uri']}"

    uri = "pages://1/red"
    text = f"2 Color.RED 3 {uri}"
    assert await read(app, uri) == contents("text/plain", uri=uri, text=text)
    for other in ("pages://one/red", "pages://1/green"):
        assert (await read(app, other))["message"] == "Resource not found"


@pytest.mark.parametrize(
    ("encoded", "decoded"),
    [("hello%20world", "hello world"), ("caf%C3%A9", "café"), ("a+b", "a+b")],
)
async def test_variables_are_decoded_and_the_uri_is_not(
    encoded: str, decoded: str
) -> None:
    """URI-04."""
    app = App("tests")
    app.add_resource("search://{q}", lambda q: q, name="search")
    uri = f"search://{encoded}"
    assert await read(app, uri) == contents("text/plain", uri=uri, text=decoded)


@pytest.mark.parametrize(
    "uri", ["search://%ff", "search://%zz", "search://..%2F..%2Fetc"]
)
async def test_a_uri_that_can_not_be_decoded_is_not_found(uri: str) -> None:
    """URI-01, URI-04."""
    app = App("tests")
    app.add_resource("search://{q}", lambda q: q, name="search")
    assert await read(app, uri) == {
        "code": INVALID_PARAMS,
        "message": "Resource not found",
        "data": {"uri": uri},
    }


CACHED = [
    # id, options of the resource, value, hints
    ("by default", {}, "x", (60_000, "private")),
    ("of the resource", {"ttl_ms": 5, "cache_scope": "public"}, "x", (5, "public")),
    ("never", {"ttl_ms": 0}, "x", (0, "private")),
    (
        "of the response",
        {"ttl_ms": 5, "cache_scope": "public"},
        Result.resource_read([], ttl_ms=7, cache_scope="private"),
        (7, "private"),
    ),
    (
        "of the response in part",
        {},
        Result.resource_read([], ttl_ms=7),
        (7, "private"),
    ),
]


@pytest.mark.parametrize(("options", "value", "hints"), table(CACHED))
async def test_cache_hints(
    options: dict[str, Any], value: Any, hints: tuple[int, str]
) -> None:
    """Spec 2026-07-28, server/utilities/caching."""
    app = holding(value, **options)
    result = await call(app, "resources/read", uri=URI)
    assert (result["ttlMs"], result["cacheScope"]) == hints
    legacy = await call(app, "resources/read", uri=URI, at=V_2025_11_25)
    assert legacy.keys() == {"contents"}


ICONS = [{"src": "https://example.com/a.png"}]
ANNOTATIONS = {"audience": ["user"], "priority": 0.5}
NEWEST = {
    "name": "manual",
    "title": "Manual",
    "description": "How it works.",
    "icons": ICONS,
    "mimeType": "text/markdown",
    "annotations": ANNOTATIONS,
    "_meta": {"com.example/a": 1},
}


def catalogued() -> App:
    app = App("tests")
    options: dict[str, Any] = {
        "title": "Manual",
        "icons": ICONS,
        "mime_type": "text/markdown",
        "annotations": ANNOTATIONS,
        "meta": {"com.example/a": 1},
    }

    @app.resource("docs://manual", size=120, **options)
    def manual() -> str:
        """How it works."""
        raise NotImplementedError

    @app.resource("docs://{page}", name="manual", **options)
    def page(page: str) -> str:
        """How it works."""
        raise NotImplementedError

    return app


LISTED = [
    # revision, what it lacks
    (MODERN, ()),
    (V_2025_11_25, ()),
    (V_2025_06_18, ("icons",)),
    (V_2025_03_26, ("icons", "title", "_meta")),
]


@pytest.mark.parametrize(("version", "lacking"), LISTED)
async def test_definitions_are_listed_as_the_revision_has_them(
    version: str, lacking: tuple[str, ...]
) -> None:
    """Spec 2026-07-28, server/resources: Listing, and Resource Templates."""
    app = catalogued()
    common = {key: value for key, value in NEWEST.items() if key not in lacking}
    hints = {"ttlMs": 60_000, "cacheScope": "private"} if version == MODERN else {}
    assert await call(app, "resources/list", at=version) == {
        "resources": [{"uri": "docs://manual", "size": 120, **common}],
        **hints,
    }
    assert await call(app, "resources/templates/list", at=version) == {
        "resourceTemplates": [{"uriTemplate": "docs://{page}", **common}],
        **hints,
    }


async def test_resources_are_unknown_methods_where_there_are_none() -> None:
    app = App("tests")
    for method in ("resources/list", "resources/templates/list", "resources/read"):
        assert await call(app, method, uri=URI) == {
            "code": -32601,
            "message": "Method not found",
        }


async def test_templates_alone_are_resources_too() -> None:
    app = App("tests")
    app.add_resource("a://{x}", lambda x: x, name="a")
    assert (await call(app, "resources/list"))["resources"] == []
    assert await read(app, "a://b") == contents("text/plain", uri="a://b", text="b")
