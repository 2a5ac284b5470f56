"""`resources/list`, `resources/templates/list` and `resources/read`.

Spec 2026-07-28, server/resources.
"""

import base64
import datetime
import decimal
import enum
import json
import logging
import threading
import uuid
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from hypothesis import given, settings, strategies as st
from pydantic import BaseModel, Field

from mcpkit import (
    App,
    Audio,
    Context,
    File,
    Image,
    ProtocolError,
    ResourceLink,
    ResourceNotFoundError,
    Result,
    SetupError,
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
    (
        "RES-01 nothing in a structure",
        {"a": None},
        contents("application/json", text='{"a":null}'),
    ),
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
        "several of different kinds",
        ["x", b"\xff", Text("y"), File("a://b", "c")],
        [
            *contents("text/plain", text="x"),
            *contents("application/octet-stream", blob="/w=="),
            *contents("text/plain", text="y"),
            *contents(uri="a://b", text="c"),
        ],
    ),
    (
        "a block and contents in wire form",
        [Text("x"), {"uri": "a://b", "blob": ""}],
        [*contents("text/plain", text="x"), *contents(uri="a://b", blob="")],
    ),
    (
        "RES-13 the meta of every block",
        [Text("x", meta={"k": 1}), Image(b"\xff", meta={"k": 2})],
        [
            *contents("text/plain", text="x", _meta={"k": 1}),
            *contents("image/png", blob="/w==", _meta={"k": 2}),
        ],
    ),
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
    (
        "a result of a file",
        Result.resource_read(File("a://b", "c", "text/css", meta={"k": 1}), ttl_ms=1),
        contents("text/css", uri="a://b", text="c", _meta={"k": 1}),
    ),
    ("a result of a text", Result.resource_read("x"), contents("text/plain", text="x")),
    (
        "a result of several",
        Result.resource_read([Text("x"), b"\xff", {"uri": "a://b", "text": "c"}]),
        [
            *contents("text/plain", text="x"),
            *contents("application/octet-stream", blob="/w=="),
            *contents(uri="a://b", text="c"),
        ],
    ),
    ("a result of none", Result.resource_read([]), []),
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
    ("of a file without one", "text/markdown", File(URI, "x"), {"text": "x"}),
    ("of a result", "text/markdown", Result.resource_read("x"), {"text": "x"}),
    ("of bytes in a list", "image/webp", [b"\xff"], {"blob": "/w=="}),
]  # fmt: skip


@pytest.mark.parametrize(("mime_type", "value", "data"), table(TYPED))
async def test_a_declared_type_is_sent_in_every_place(
    mime_type: str, value: Any, data: dict[str, Any]
) -> None:
    """URI-10."""
    app = holding(value, mime_type=mime_type)

    @app.resource("data://{+x}", mime_type=mime_type)
    def of(x: str) -> Any:
        return value if x else None

    assert await read(app) == contents(mime_type, **data)
    uri = URI if isinstance(value, File) else "data://a/b"
    assert await read(app, "data://a/b") == contents(mime_type, uri=uri, **data)
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
    ("a link among contents", lambda: [Text("x"), ResourceLink("a://b", "b")]),
    ("a number among contents", lambda: [Text("x"), 3]),
    ("nothing among contents", lambda: [Text("x"), None]),
    ("a link in a result", lambda: Result.resource_read(ResourceLink("a://b", "b"))),
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


NOTHING = [
    # id, handler
    ("it returns nothing", lambda: None),
    ("it says so", raiser(ResourceNotFoundError())),
    ("a file that is not there", lambda: Path("/nowhere/at/all")),
    ("a folder", lambda: Path("/")),
    ("one of several files", lambda: [Text("x"), Path("/nowhere/at/all")]),
    ("a file of a result", lambda: Result.resource_read(Path("/nowhere/at/all"))),
]


@pytest.mark.parametrize("version", EVERY)
@pytest.mark.parametrize("handler", table(NOTHING))
async def test_what_a_resource_does_not_find_is_not_found(
    handler: Any, version: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Spec 2026-07-28, server/resources: Error Handling. What means it is ours."""
    app = App("tests")
    app.add_resource(URI, handler, name="x")
    app.add_resource("data://{x}/y", lambda x: handler(), name="y")  # noqa: ARG005
    code = INVALID_PARAMS if version == MODERN else RESOURCE_NOT_FOUND
    for uri in (URI, "data://x/y"):
        assert await read(app, uri, at=version) == {
            "code": code,
            "message": "Resource not found",
            "data": {"uri": uri},
        }
    assert caplog.records == []


FILES = [
    # id, name, data, declared type, contents
    ("text", "a.md", b"# A", None, contents("text/markdown", text="# A")),
    ("no text", "a.png", b"\xff", None, contents("image/png", blob="/w==")),
    ("unknown text", "A", b"a", None, contents("text/plain", text="a")),
    ("a declared type", "a.md", b"a", "text/x-a", contents("text/x-a", text="a")),
    ("a declared type of bytes", "a.md", b"a", "a/b", contents("a/b", blob="YQ==")),
    ("empty", "a.txt", b"", None, contents("text/plain", text="")),
]


@pytest.mark.parametrize(("name", "data", "mime_type", "expected"), table(FILES))
async def test_a_file_is_read(
    name: str, data: bytes, mime_type: str | None, expected: Any, tmp_path: Path
) -> None:
    """Ours."""
    path = tmp_path / name
    path.write_bytes(data)
    for value in (path, [path], Result.resource_read(path)):
        assert await read(holding(value, mime_type=mime_type)) == expected
    both = [*contents(mime_type or "text/plain", text="x"), *expected]
    assert await read(holding(["x", path], mime_type=mime_type)) == both


async def test_files_are_read_in_threads(tmp_path: Path) -> None:
    """Ours: reading a file holds nobody up, even where the function is async."""
    path = tmp_path / "a.txt"
    path.write_text("x")
    threads: list[str] = []

    class Seen(type(path)):  # type: ignore[misc]  # the class of this platform
        def __fspath__(self) -> str:
            threads.append(threading.current_thread().name)
            return super().__fspath__()  # type: ignore[no-any-return]

    app = App("tests")

    @app.resource(URI)
    async def x() -> Path:
        return Seen(path)

    assert await read(app) == contents("text/plain", text="x")
    assert threads
    assert all(name.startswith("mcpkit") for name in threads)


async def test_a_file_in_place_of_a_function_is_published_with_what_is_known(
    tmp_path: Path,
) -> None:
    path = tmp_path / "guide.md"
    path.write_text("# Guide")
    app = App("tests")
    app.add_resource(URI, path)
    app.add_resource("data://y", path, name="y", mime_type="text/x-y", size=3)
    first = {"name": "guide.md", "mimeType": "text/markdown", "size": 7}
    second = {"name": "y", "mimeType": "text/x-y", "size": 3}
    assert (await call(app, "resources/list"))["resources"] == [
        {"uri": URI, **first},
        {"uri": "data://y", **second},
    ]
    assert await read(app) == contents("text/markdown", text="# Guide")
    path.write_text("# New")
    assert await read(app) == contents("text/markdown", text="# New")
    path.unlink()
    assert (await read(app))["message"] == "Resource not found"


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

    @app.resource("books://{+path}")
    def anything(path: str) -> str:
        return f"anything {path}"

    @app.resource("books://{isbn}")
    def book(isbn: str) -> str:
        return f"book {isbn}"

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
    ("one segment over several", "books://1", "book 1"),
    ("the only one that matches", "books://1/2", "anything 1/2"),
]


@pytest.mark.parametrize(("uri", "expected"), table(WINS))
async def test_which_of_several_matches_wins(uri: str, expected: str) -> None:
    """Ours."""
    assert await read(shelf(), uri) == contents("text/plain", uri=uri, text=expected)


class Level(enum.IntEnum):
    """A level."""

    LOW = 1


VARIABLES: list[tuple[str, Any, str, Any]] = [
    # id, type, raw value, value
    ("a string", str, "3", "3"),
    ("a string that looks like JSON", str, "[1]", "[1]"),
    ("an integer", int, "3", 3),
    ("a negative integer", int, "-3", -3),
    ("a number", float, "1.5", 1.5),
    ("a truth", bool, "true", True),
    ("an enum", Color, "red", Color.RED),
    ("an enum of numbers", Level, "1", Level.LOW),
    ("a literal", Literal["a", "b"], "b", "b"),
    ("a literal number", Literal[1, 2], "2", 2),
    ("a UUID", uuid.UUID, str(uuid.UUID(int=1)), uuid.UUID(int=1)),
    ("a date", datetime.date, "2026-07-28", datetime.date(2026, 7, 28)),
    ("a decimal", decimal.Decimal, "1.10", decimal.Decimal("1.10")),
    ("an optional integer", int | None, "3", 3),
    ("a list", list[str], "a,b", ["a", "b"]),
    ("a list of integers", list[int], "1,2", [1, 2]),
    ("a list of one", list[int], "1", [1]),
    ("a set", set[int], "1,2,1", {1, 2}),
    ("a tuple", tuple[str, int], "a,1", ("a", 1)),
    ("a list of enums", list[Color], "red", [Color.RED]),
    ("an optional list", list[int] | None, "1,2", [1, 2]),
]


@pytest.mark.parametrize(("hint", "raw", "value"), table(VARIABLES))
async def test_variables_take_the_type_of_their_parameter(
    hint: Any, raw: str, value: Any
) -> None:
    """Ours."""
    app = App("tests")
    seen = []

    def of(x: Any, ctx: Context, lines: int = 3) -> str:
        seen.append((x, lines))
        return str(ctx.params["uri"])

    of.__annotations__["x"] = hint
    app.add_resource("of://{x}", of)
    app.add_resource("query://of{?x}", _with_default(of))
    for uri in (f"of://{raw}", f"query://of?x={raw}"):
        assert await read(app, uri) == contents("text/plain", uri=uri, text=uri)
    assert seen == [(value, 3), (value, 3)]


def _with_default(function: Any) -> Any:
    def of(ctx: Context, x: Any = None) -> Any:
        return function(x, ctx)

    of.__annotations__ = {**function.__annotations__}
    return of


WRITTEN = [
    "a",
    "1",
    "n",
    "q",
    "/",
    "..",
    ".",
    "?",
    "&",
    "=",
    "#",
    "+",
    ",",
    ":",
    "of://",
]
ENCODED = [
    "%",
    "%2F",
    "%2e",
    "%00",
    "%ff",
    "%C3%A9",
    "\\",
    "\0",
    "é",
    "{",
    "}",
    "\u2028",
]
PIECES = st.sampled_from(WRITTEN + ENCODED)


@settings(deadline=None)
@given(st.lists(PIECES, max_size=10).map("".join) | st.text(max_size=20))
async def test_no_uri_is_an_internal_error(rest: str) -> None:
    """URI-01, URI-04, URI-06: what names nothing is not found."""
    app = App("tests")
    app.add_resource("of://{n}", lambda n: n, name="a")
    app.add_resource("of://{+path}/x", lambda path: path, name="b")
    app.add_resource("of://a{/n*}{?q,n2*}", _listing, name="c")
    app.add_resource("of:{n}-{q}", _typed, name="d")
    for uri in (f"of://{rest}", f"of:{rest}", rest):
        found = await call(app, "resources/read", uri=uri)
        if "contents" in found:
            (content,) = found["contents"]
            assert content["uri"] == uri
            assert "\0" not in content["text"]
        else:
            assert found == {
                "code": INVALID_PARAMS,
                "message": "Resource not found",
                "data": {"uri": uri},
            }


def _listing(n: list[str], q: str = "", n2: tuple[int, ...] = ()) -> str:
    return f"{n} {q} {n2}"


def _typed(n: int, q: datetime.date) -> str:
    return f"{n} {q}"


NOT_OF_TYPE: list[tuple[str, Any, str]] = [
    # id, type, raw value
    ("no integer", int, "one"),
    ("no integer at all", int, "1.5"),
    ("too long an integer", int, "9" * 5000),
    ("no number", float, "x"),
    ("NaN", float, "nan"),
    ("no truth", bool, "maybe"),
    ("another color", Color, "green"),
    ("the name of a member", Color, "RED"),
    ("another literal", Literal["a", "b"], "c"),
    ("no UUID", uuid.UUID, "1"),
    ("no date", datetime.date, "2026-02-30"),
    ("a list of something else", list[int], "1,x"),
    ("a list that is too short", tuple[str, int], "a"),
    ("out of range", Annotated[int, Field(ge=1)], "0"),
    ("of another form", Annotated[str, Field(pattern="^a+$")], "b"),
]


@pytest.mark.parametrize(("hint", "raw"), table(NOT_OF_TYPE))
async def test_a_variable_that_is_not_of_its_type_is_not_found(
    hint: Any, raw: str
) -> None:
    """Ours."""
    app = App("tests")

    def of(x: Any) -> str:
        raise NotImplementedError

    of.__annotations__["x"] = hint
    app.add_resource("of://{x}", of)
    uri = f"of://{raw}"
    assert await read(app, uri) == {
        "code": INVALID_PARAMS,
        "message": "Resource not found",
        "data": {"uri": uri},
    }


def searching() -> App:
    app = App("tests")

    @app.resource("search://{shelf}{/path*}{?q,lang,tag*}")
    def search(
        shelf: str,
        path: list[str],
        q: str = "",
        lang: Literal["en", "fr"] = "en",
        tag: tuple[str, ...] = (),
    ) -> list[Any]:
        return [shelf, path, q, lang, tag]

    return app


SEARCHED = [
    # URI, arguments
    ("search://a", ["a", [], "", "en", []]),
    ("search://a/b/c%20d", ["a", ["b", "c d"], "", "en", []]),
    ("search://a?q=x%26y&lang=fr", ["a", [], "x&y", "fr", []]),
    ("search://a/b?tag=1&lang=fr&tag=2,3", ["a", ["b"], "", "fr", ["1", "2,3"]]),
    ("search://a?q=1&q=2", ["a", [], "2", "en", []]),
]


@pytest.mark.parametrize(("uri", "arguments"), SEARCHED)
async def test_a_query_is_optional_and_in_any_order(
    uri: str, arguments: list[Any]
) -> None:
    (found,) = await read(searching(), uri)
    assert json.loads(found["text"]) == arguments


@pytest.mark.parametrize(
    "uri", ["search://a?lang=de", "search://a?r=1", "search://a/b/", "search://a?"]
)
async def test_another_query_is_not_found(uri: str) -> None:
    assert (await read(searching(), uri))["message"] == "Resource not found"


async def test_a_path_in_a_query_stays_below() -> None:
    """URI-01."""
    app = App("tests")

    @app.resource("files://read{?file}")
    def files(file: Path = Path("index")) -> str:
        return str(file)

    assert (await read(app, "files://read?file=a/b"))[0]["text"] == "a/b"
    for value in ("..%2Fa", "%2Fetc%2Fpasswd", "a/../../b"):
        found = await read(app, f"files://read?file={value}")
        assert found["message"] == "Resource not found"


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
        {"ttl_ms": 5, "cache_scope": "public"},
        Result.resource_read([], ttl_ms=7),
        (7, "public"),
    ),
    (
        "of the resource, where the response has none",
        {"ttl_ms": 5, "cache_scope": "public"},
        Result.resource_read([]),
        (5, "public"),
    ),
    (
        "of the resource, where the response is in wire form",
        {"ttl_ms": 5},
        Result.wire({"contents": []}),
        (5, "private"),
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


async def test_a_result_may_be_the_same_for_several_resources() -> None:
    app = App("tests")
    shared = Result.resource_read("x")
    app.add_resource("a://b", lambda: shared, name="b", ttl_ms=1, mime_type="a/b")
    app.add_resource("a://c", lambda: shared, name="c", ttl_ms=2, mime_type="a/c")
    for _ in range(2):
        for name, ttl_ms in (("b", 1), ("c", 2)):
            result = await call(app, "resources/read", uri=f"a://{name}")
            assert (result["ttlMs"], result["contents"]) == (
                ttl_ms,
                contents(f"a/{name}", uri=f"a://{name}", text="x"),
            )


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


async def test_a_datetime_says_when_a_resource_was_modified() -> None:
    """Spec 2026-07-28, server/resources: Annotations."""
    now = datetime.datetime(2026, 7, 28, 12, tzinfo=datetime.UTC)
    app = holding("x", annotations={"lastModified": now})
    (listed,) = (await call(app, "resources/list"))["resources"]
    assert listed["annotations"] == {"lastModified": "2026-07-28T12:00:00+00:00"}


def f(isbn: str = "", tags: list[str] | None = None) -> str:
    raise NotImplementedError


IMPOSSIBLE: list[tuple[str, str, dict[str, Any], str]] = [
    # id, URI, options, message
    ("no size", "a://b", {"size": -1}, "size is a number of bytes, not -1"),
    ("a size in words", "a://b", {"size": "3"}, "size is a number of bytes, not '3'"),
    (
        "another audience",
        "a://b",
        {"annotations": {"audience": ["model"]}},
        'audience is a list of "user" and "assistant", not [\'model\']',
    ),
    (
        "an audience that is no list",
        "a://b",
        {"annotations": {"audience": "user"}},
        'audience is a list of "user" and "assistant", not \'user\'',
    ),
    (
        "a priority above all",
        "a://b",
        {"annotations": {"priority": 2}},
        "priority is from 0 to 1, not 2",
    ),
    (
        "no time",
        "a://b",
        {"annotations": {"lastModified": "yesterday"}},
        "lastModified is a datetime, or one in ISO 8601, not 'yesterday'",
    ),
    (
        "an unknown annotation",
        "a://b",
        {"annotations": {"x": 1}},
        "'x' is none of the annotations audience, lastModified, priority",
    ),
    (
        "URI-06 an ambiguous template",
        "{isbn}{tags}",
        {},
        "the URI template '{isbn}{tags}' is ambiguous: it needs text between two "
        "variables",
    ),
    (
        "segments for a parameter that is no list",
        "a://b{/isbn*}",
        {},
        "the variable 'isbn' has a star and so is a list; write isbn: list[str]",
    ),
    (
        "a list with slashes",
        "a://{+tags}",
        {},
        "'{+tags}' in the URI template 'a://{+tags}' is no list; write {/tags*} for "
        "segments",
    ),
]


@pytest.mark.parametrize(("uri", "options", "message"), table(IMPOSSIBLE))
def test_what_cannot_work_is_a_setup_error(
    uri: str, options: Any, message: str
) -> None:
    """Ours: it names the resource, what is wrong, and what to write."""
    with pytest.raises(SetupError) as caught:
        App("tests").add_resource(uri, f, **options)
    assert str(caught.value) == f"resource {uri!r}: {message}"


def test_a_query_needs_a_default() -> None:
    """URI-12."""
    with pytest.raises(SetupError) as caught:
        App("tests").add_resource("a://b{?q}", lambda q: q, name="b")
    assert str(caught.value) == (
        "resource 'a://b{?q}': a URI may leave out 'q', which is in its query; give "
        "the parameter a default"
    )


def test_a_file_that_is_not_there_is_a_setup_error(tmp_path: Path) -> None:
    with pytest.raises(SetupError) as caught:
        App("tests").add_resource("a://b", tmp_path / "c")
    assert str(caught.value) == (
        f"resource 'a://b': there is no file {str(tmp_path / 'c')!r}"
    )


def test_two_templates_never_match_the_same_uris() -> None:
    app = App("tests")
    app.add_resource("a://{x}", lambda x: x, name="a")
    app.add_resource("a://{x}", lambda x: x, name="a", replace=True)
    with pytest.raises(SetupError) as caught:
        app.add_resource("a://{y}", lambda y: y, name="b")
    assert str(caught.value) == (
        "resource template 'a://{y}' matches the same URIs as 'a://{x}'"
    )
    assert list(app.registry.templates) == ["a://{x}"]


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
