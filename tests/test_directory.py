"""A directory as resources: what is read, listed and completed, and what is not.

Spec 2026-07-28, server/resources: Security Considerations, "Servers MUST sanitize
file paths to prevent directory traversal attacks". The rest is ours.
"""

import base64
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings, strategies as st

from mcpkit import App, SetupError
from mcpkit.directory import MAX_LISTED, Directory
from mcpkit.protocol.results import MAX_COMPLETIONS
from tests.calls import EVERY, V_2025_11_25, call
from tests.wire import MODERN

SECRET = "outside of the directory"  # noqa: S105  # what no test may read
PNG = b"\x89PNG\r\n\xff"

FILES = {
    "readme.md": b"# Read me",
    "guides/start.txt": b"Begin here.",
    "guides/deep/end.txt": b"End here.",
    "guides/logo.png": PNG,
    "a b#?%.md": b"odd",
    "Makefile": b"all:",
    ".env": b"password",
    ".git/config": b"password",
    "guides/.secret/key.txt": b"password",
}


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    return filled(tmp_path)


def filled(folder: Path) -> Path:
    """Make a directory with files, and beside it what must not be read."""
    root = folder / "docs"
    for name, data in FILES.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    (folder / "secret.txt").write_text(SECRET)
    (folder / "docs-old").mkdir()
    (folder / "docs-old" / "secret.txt").write_text(SECRET)
    return root


def serving(docs: Path, uri: str = "docs://", **options: Any) -> App:
    app = App("tests")
    app.add_directory(uri, docs, **options)
    return app


async def read(app: App, uri: str, *, at: str = MODERN) -> Any:
    """Return the one element of the contents, or the message of the error."""
    result = await call(app, "resources/read", uri=uri, at=at)
    if "contents" not in result:
        return result["message"]
    (contents,) = result["contents"]
    return contents


async def complete(app: App, value: str, uri: str = "docs://{+path}") -> Any:
    result = await call(
        app,
        "completion/complete",
        ref={"type": "ref/resource", "uri": uri},
        argument={"name": "path", "value": value},
    )
    return result["completion"]


def table(rows: list[Any]) -> list[Any]:
    return [pytest.param(*row, id=name) for name, *row in rows]


def text(mime_type: str, text: str) -> dict[str, str]:
    return {"mimeType": mime_type, "text": text}


IMAGE = {"mimeType": "image/png", "blob": base64.b64encode(PNG).decode()}

READ = [
    # id, path, contents
    ("a text", "readme.md", text("text/markdown", "# Read me")),
    ("in a folder", "guides/start.txt", text("text/plain", "Begin here.")),
    ("deeper", "guides/deep/end.txt", text("text/plain", "End here.")),
    ("no text", "guides/logo.png", IMAGE),
    ("of no known type", "Makefile", text("text/plain", "all:")),
    ("an encoded name", "a%20b%23%3F%25.md", text("text/markdown", "odd")),
    ("a name as it is", "a b#?%25.md", text("text/markdown", "odd")),
    ("an encoded slash", "guides%2Fstart.txt", text("text/plain", "Begin here.")),
]


@pytest.mark.parametrize("version", EVERY)
@pytest.mark.parametrize(("path", "contents"), table(READ))
async def test_a_file_is_read(
    path: str, contents: dict[str, str], version: str, docs: Path
) -> None:
    uri = f"docs://{path}"
    assert await read(serving(docs), uri, at=version) == {"uri": uri, **contents}


LINKS = {
    "out": "..",
    "out.txt": "../secret.txt",
    "beside": "../docs-old",
    "env.txt": ".env",
    "loop": "loop",
    "dangling": "nowhere",
}

ABSENT = [
    "nope.md",
    "guides",
    "guides/",
    "guides//start.txt",
    "readme.md/",
    "readme.md/x",
    "README.md/../readme.md",
    "../secret.txt",
    "guides/../../secret.txt",
    "..%2Fsecret.txt",
    "%2e%2e/secret.txt",
    "%252e%252e/secret.txt",
    "..%5Csecret.txt",
    "/secret.txt",
    "%2Fetc/passwd",
    "C:/secret.txt",
    "./readme.md",
    "readme.md%00",
    "readme.md%00.png",
    ".env",
    ".git/config",
    "guides/.secret/key.txt",
    "x" * 300,
    "%ff",
    "out/secret.txt",
    "out.txt",
    "beside/secret.txt",
    "env.txt",
    "loop",
    "dangling",
    "pipe",
]


@pytest.mark.parametrize("path", ABSENT)
async def test_what_is_no_file_of_the_directory_is_not_found(
    path: str, docs: Path
) -> None:
    """URI-01."""
    add_links(docs)
    for app in (serving(docs), serving(docs, list_files=True)):
        assert await read(app, f"docs://{path}") == "Resource not found"


def add_links(docs: Path) -> None:
    for name, target in LINKS.items():
        (docs / name).symlink_to(target)
    os.mkfifo(docs / "pipe")


STEPS = ["..", ".", "", "guides", "secret.txt", "out", "beside", "docs", "docs-old"]
ODD_STEPS = ["%2e%2e", "%2F", "%5C", "\\", ":", "C:", ".env", "loop", "%00", "\0"]


@pytest.fixture(scope="module")
def linked(tmp_path_factory: pytest.TempPathFactory) -> App:
    docs = filled(tmp_path_factory.mktemp("linked"))
    add_links(docs)
    return serving(docs, hidden=True)


@settings(deadline=None)
@given(st.lists(st.sampled_from([*STEPS, *ODD_STEPS]), max_size=6))
@example(["out", "secret.txt"])
@example(["..", "secret.txt"])
async def test_no_path_leads_out(linked: App, steps: list[str]) -> None:
    """URI-01."""
    path = "/".join(steps)
    found = await read(linked, f"docs://{path}")
    assert found == "Resource not found" or found["text"] != SECRET
    for value in (await complete(linked, path))["values"]:
        assert not {"..", "secret.txt"} & set(value.split("/"))


async def test_links_that_stay_inside_are_followed(docs: Path) -> None:
    (docs / "manual").symlink_to("guides")
    (docs / "first.txt").symlink_to(docs / "guides" / "start.txt")
    app = serving(docs)
    for path in ("manual/start.txt", "first.txt"):
        contents = await read(app, f"docs://{path}")
        assert contents["text"] == "Begin here."


async def test_a_directory_may_be_a_link_itself(docs: Path) -> None:
    link = docs.parent / "current"
    link.symlink_to("docs")
    contents = await read(serving(link), "docs://readme.md")
    assert contents["text"] == "# Read me"


async def test_hidden_files_are_read_when_they_are_asked_for(docs: Path) -> None:
    app = serving(docs, hidden=True)
    for path in (".env", ".git/config", "guides/.secret/key.txt"):
        assert (await read(app, f"docs://{path}"))["text"] == "password"
    assert (await complete(app, ".e"))["values"] == [".env"]
    assert await read(app, "docs://../secret.txt") == "Resource not found"


async def test_a_link_that_takes_the_place_of_a_folder_is_not_followed(
    docs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was found may be replaced before it is opened."""
    target = docs.parent / "docs-old"
    (target / "start.txt").write_text(SECRET)
    found = Directory._find  # noqa: SLF001  # between it and the opening, others write

    def slow(self: Directory, path: str) -> tuple[Path, os.stat_result] | None:
        real = found(self, path)
        (docs / "guides").rename(docs / "before")
        (docs / "guides").symlink_to(target)
        return real

    app = serving(docs)
    monkeypatch.setattr(Directory, "_find", slow)
    assert await read(app, "docs://guides/start.txt") == "Resource not found"


async def test_a_file_that_is_too_large_is_not_found(
    docs: Path, caplog: pytest.LogCaptureFixture
) -> None:
    app = serving(docs, max_size=9, list_files=True)
    assert (await read(app, "docs://readme.md"))["text"] == "# Read me"
    assert await read(app, "docs://guides/start.txt") == "Resource not found"
    (record,) = caplog.records
    path = docs / "guides" / "start.txt"
    assert record.getMessage() == f"{path} is larger than max_size and is not served"
    assert (await complete(app, "guides/s"))["values"] == []
    listed = (await call(app, "resources/list"))["resources"]
    assert "docs://guides/start.txt" not in [item["uri"] for item in listed]


async def test_files_are_read_in_threads(docs: Path) -> None:
    """Ours: reading holds nobody up."""
    app = serving(docs)
    template = app.registry.templates["docs://{+path}"]
    (completion,) = app.registry.completions.values()
    assert template.thread
    assert completion.thread


async def test_without_openat_files_are_read_all_the_same(
    docs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on Windows."""
    monkeypatch.setattr(os, "supports_dir_fd", set())
    app = serving(docs)
    assert (await read(app, "docs://guides/start.txt"))["text"] == "Begin here."
    assert await read(app, "docs://guides") == "Resource not found"


async def test_a_directory_is_one_template(docs: Path) -> None:
    app = serving(docs)
    assert (await call(app, "resources/list"))["resources"] == []
    assert (await call(app, "resources/templates/list"))["resourceTemplates"] == [
        {
            "uriTemplate": "docs://{+path}",
            "name": "docs",
            "description": "The files in docs.",
        }
    ]


async def test_options_are_those_of_resources(docs: Path) -> None:
    app = serving(
        docs,
        name="manual",
        title="Manual",
        description="How it works.",
        mime_type="text/x-doc",
        annotations={"priority": 1},
        meta={"com.example/a": 1},
        scopes=["docs"],
        ttl_ms=5,
    )
    (template,) = (await call(app, "resources/templates/list"))["resourceTemplates"]
    assert template == {
        "uriTemplate": "docs://{+path}",
        "name": "manual",
        "title": "Manual",
        "description": "How it works.",
        "mimeType": "text/x-doc",
        "annotations": {"priority": 1},
        "_meta": {"com.example/a": 1},
    }
    uri = "docs://guides/logo.png"
    assert "Insufficient scope" in await read(app, uri)

    class Reader:
        id = "reader"
        scopes = ("docs",)

    result = await call(app, "resources/read", uri=uri, by=Reader())
    assert result["ttlMs"] == 5
    # It is said to be text, and is none.
    blob = base64.b64encode(PNG).decode()
    assert result["contents"] == [{"uri": uri, "mimeType": "text/x-doc", "blob": blob}]


@pytest.mark.parametrize("version", [MODERN, V_2025_11_25])
async def test_files_may_be_listed(version: str, docs: Path) -> None:
    """Each with what is known of it as of now."""
    add_links(docs)
    (docs / "manual").symlink_to("guides")
    (docs / "D:x").write_text("not for Windows")
    app = serving(docs, list_files=True)
    listed = (await call(app, "resources/list", at=version))["resources"]
    assert listed == [
        {"uri": "docs://Makefile", "name": "Makefile", "size": 4},
        {
            "uri": "docs://a%20b%23%3F%25.md",
            "name": "a b#?%.md",
            "mimeType": "text/markdown",
            "size": 3,
        },
        {
            "uri": "docs://guides/deep/end.txt",
            "name": "guides/deep/end.txt",
            "mimeType": "text/plain",
            "size": 9,
        },
        {
            "uri": "docs://guides/logo.png",
            "name": "guides/logo.png",
            "mimeType": "image/png",
            "size": len(PNG),
        },
        {
            "uri": "docs://guides/start.txt",
            "name": "guides/start.txt",
            "mimeType": "text/plain",
            "size": 11,
        },
        {
            "uri": "docs://readme.md",
            "name": "readme.md",
            "mimeType": "text/markdown",
            "size": 9,
        },
    ]
    for item in listed:
        contents = await read(app, item["uri"], at=version)
        assert contents["uri"] == item["uri"]


async def test_what_is_listed_is_read_as_it_is_when_it_is_read(docs: Path) -> None:
    app = serving(docs, list_files=True)
    (docs / "readme.md").unlink()
    (docs / "readme.md").symlink_to("../secret.txt")
    (docs / "Makefile").write_text("none:")
    (docs / "new.md").write_text("New")
    assert await read(app, "docs://readme.md") == "Resource not found"
    assert (await read(app, "docs://Makefile"))["text"] == "none:"
    assert (await read(app, "docs://new.md"))["text"] == "New"


COMPLETED = [
    # id, value, completion
    ("nothing typed", "", ["Makefile", "a b#?%.md", "guides/", "readme.md"]),
    ("a folder", "gu", ["guides/"]),
    (
        "what is in a folder",
        "guides/",
        ["guides/deep/", "guides/logo.png", "guides/start.txt"],
    ),
    ("the name of a folder", "guides", ["guides/"]),
    ("a file", "guides/s", ["guides/start.txt"]),
    ("a whole name", "readme.md", ["readme.md"]),
    ("another case", "README", []),
    ("in a file", "readme.md/", []),
    ("in nothing", "nope/", []),
    ("a hidden file", ".e", []),
    ("above", "../", []),
    ("above, within", "guides/../", []),
    ("the root", "/", []),
    ("beside", "../docs-old/", []),
    ("NUL", "guides\0/", []),
]


@pytest.mark.parametrize(("value", "expected"), table(COMPLETED))
async def test_paths_are_completed(value: str, expected: list[str], docs: Path) -> None:
    add_links(docs)
    assert await complete(serving(docs), value) == {"values": expected}


async def test_many_paths_are_completed_in_part(docs: Path) -> None:
    for number in range(MAX_COMPLETIONS):
        (docs / f"{number:03}").touch()
    app = serving(docs)
    numbers = [f"{number:03}" for number in range(MAX_COMPLETIONS)]
    assert await complete(app, "0") == {"values": numbers}
    assert await complete(app, "") == {"values": numbers, "hasMore": True}


async def test_names_that_are_no_text_are_left_out(docs: Path) -> None:
    path = os.fsencode(docs) + b"/latin-\xe9.txt"
    try:
        os.close(os.open(path, os.O_CREAT | os.O_WRONLY))
    except OSError:
        pytest.skip("this file system has names in Unicode alone")
    assert await complete(serving(docs, list_files=True), "latin") == {"values": []}


URIS = [
    # id, URI of the directory, template, URI of a file
    ("a scheme", "docs://", "docs://{+path}", "docs://readme.md"),
    ("a folder", "docs://a/", "docs://a/{+path}", "docs://a/readme.md"),
    ("no slash at the end", "docs://a", "docs://a/{+path}", "docs://a/readme.md"),
    ("no slash at all", "docs:", "docs:{+path}", "docs:readme.md"),
    ("files", "file:///srv/docs/", "file:///srv/docs/{+path}", "file:///srv/docs/readme.md"),
]  # fmt: skip


@pytest.mark.parametrize(("base", "template", "uri"), table(URIS))
async def test_paths_follow_the_uri(
    base: str, template: str, uri: str, docs: Path
) -> None:
    app = serving(docs, base)
    assert list(app.registry.templates) == [template]
    assert (await read(app, uri))["uri"] == uri
    assert (await complete(app, "r", template))["values"] == ["readme.md"]


IMPOSSIBLE: list[tuple[str, Callable[[Path], Any], str]] = [
    # id, mistake, message
    (
        "no directory",
        lambda docs: App("tests").add_directory("docs://", docs / "nope"),
        "there is no directory '{docs}/nope'",
    ),
    (
        "a file",
        lambda docs: App("tests").add_directory("docs://", docs / "readme.md"),
        "'{docs}/readme.md' is no directory",
    ),
    (
        "a template",
        lambda docs: App("tests").add_directory("docs://{+path}", docs),
        "the URI of a directory is one such as 'docs://', not 'docs://{{+path}}'; its "
        "variable is added",
    ),
    (
        "no URI",
        lambda docs: App("tests").add_directory("", docs),
        "the URI of a directory is one such as 'docs://', not ''; its variable is "
        "added",
    ),
    (
        "no size",
        lambda docs: App("tests").add_directory("docs://", docs, max_size=0),
        "max_size is one or more, not 0",
    ),
    (
        "a size of all files",
        lambda docs: App("tests").add_directory("docs://", docs, size=3),
        "resource 'docs://{{+path}}': a template has no size, only its resources have",
    ),
    (
        "twice",
        lambda docs: serving(docs).add_directory("docs://", docs),
        "resource template 'docs://{{+path}}' is already registered; remove it first, "
        "or pass replace=True",
    ),
]


@pytest.mark.parametrize(("mistake", "message"), table(IMPOSSIBLE))
def test_what_cannot_work_is_a_setup_error(
    mistake: Callable[[Path], Any], message: str, docs: Path
) -> None:
    with pytest.raises(SetupError) as caught:
        mistake(docs)
    assert str(caught.value) == message.format(docs=docs)


def test_too_many_files_are_not_listed(tmp_path: Path) -> None:
    for number in range(MAX_LISTED + 1):
        (tmp_path / str(number)).touch()
    app = App("tests")
    with pytest.raises(SetupError) as caught:
        app.add_directory("docs://", tmp_path, list_files=True)
    assert str(caught.value) == (
        f"there are more than {MAX_LISTED} files in {str(tmp_path)!r}; leave out "
        "list_files"
    )
    assert app.registry.templates == {}


async def test_a_directory_takes_the_place_of_another(docs: Path) -> None:
    app = serving(docs, list_files=True)
    app.add_directory("docs://", docs / "guides", replace=True)
    assert (await read(app, "docs://start.txt"))["text"] == "Begin here."
