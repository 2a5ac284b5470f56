"""Files as contents: of which type they are, and whether they are text. Ours."""

import doctest
import errno
import os
from pathlib import Path

import pytest

import mcpkit.files
from mcpkit.files import absent, contents_of, guess_type, read_file


def test_the_examples_in_the_docstrings_run() -> None:
    assert doctest.testmod(mcpkit.files).failed == 0


GUESSED = [
    ("a.txt", "text/plain"),
    ("a.md", "text/markdown"),
    ("A.MD", "text/markdown"),
    ("docs/a.html", "text/html"),
    ("a.json", "application/json"),
    ("a.yaml", "application/yaml"),
    ("a.yml", "application/yaml"),
    ("a.toml", "application/toml"),
    ("a.csv", "text/csv"),
    ("a.svg", "image/svg+xml"),
    ("a.png", "image/png"),
    ("a.webp", "image/webp"),
    ("a.pdf", "application/pdf"),
    ("a.txt.gz", "application/gzip"),
    ("a.tar.bz2", "application/octet-stream"),
    ("Makefile", None),
    (".env", None),
    ("a.unheard-of", None),
    ("a", None),
    ("data:text/html,a", None),
]


@pytest.mark.parametrize(("name", "mime_type"), GUESSED)
def test_the_type_is_guessed_by_the_name(name: str, mime_type: str | None) -> None:
    assert guess_type(name) == mime_type


READ = [
    # id, data, name, type, contents and their type
    ("text", b"a", "a.txt", None, ("a", "text/plain")),
    ("no text at all", b"", "a.txt", None, ("", "text/plain")),
    ("beyond ASCII", "é".encode(), "a.md", None, ("é", "text/markdown")),
    ("lines as they are", b"a\r\nb\n", "a.txt", None, ("a\r\nb\n", "text/plain")),
    ("JSON", b"{}", "a.json", None, ("{}", "application/json")),
    ("YAML", b"a: 1", "a.yaml", None, ("a: 1", "application/yaml")),
    ("an image that is text", b"<svg/>", "a.svg", None, ("<svg/>", "image/svg+xml")),
    ("an image", b"a", "a.png", None, (b"a", "image/png")),
    ("a text that is none", b"\xff", "a.txt", None, (b"\xff", "text/plain")),
    ("unknown, and text", b"a", "Makefile", None, ("a", "text/plain")),
    ("unknown", b"\xff", "a", None, (b"\xff", "application/octet-stream")),
    ("unknown, with NUL", b"\0", "a", None, (b"\0", "application/octet-stream")),
    (
        "a declared type",
        b"a",
        "a.png",
        "text/x-a; charset=utf-8",
        ("a", "text/x-a; charset=utf-8"),
    ),
    (
        "a declared type of JSON",
        b"{}",
        "a",
        "application/ld+json",
        ("{}", "application/ld+json"),
    ),
    ("a declared type of bytes", b"a", "a.txt", "a/b", (b"a", "a/b")),
]


@pytest.mark.parametrize(
    ("data", "name", "mime_type", "expected"),
    [pytest.param(*row, id=name) for name, *row in READ],
)
def test_a_file_is_text_or_bytes(
    data: bytes,
    name: str,
    mime_type: str | None,
    expected: tuple[str | bytes, str],
    tmp_path: Path,
) -> None:
    assert contents_of(data, name, mime_type) == expected
    path = tmp_path / name
    path.write_bytes(data)
    assert read_file(path, mime_type) == expected


ABSENT = ["nope", "folder", "file/below", "x" * 300, "pipe", "loop"]


@pytest.mark.parametrize("name", ABSENT)
def test_what_is_no_regular_file_is_not_found(name: str, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").touch()
    (tmp_path / "loop").symlink_to("loop")
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(FileNotFoundError):
        read_file(tmp_path / name)


def test_what_may_not_be_read_is_another_error() -> None:
    refused = PermissionError(errno.EACCES, "Permission denied")
    assert absent(refused) is refused
