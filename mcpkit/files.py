"""Files as contents: of which type they are, and whether they are text."""

import errno
import functools
import mimetypes
import os
import stat
import types
from collections.abc import Mapping
from pathlib import Path
from typing import BinaryIO, Final

_TYPES: Final[Mapping[str, str]] = types.MappingProxyType(
    {
        ".avif": "image/avif",
        ".jsonl": "application/jsonl",
        ".markdown": "text/markdown",
        ".md": "text/markdown",
        ".rst": "text/x-rst",
        ".toml": "application/toml",
        ".webp": "image/webp",
        ".woff2": "font/woff2",
        ".yaml": "application/yaml",
        ".yml": "application/yaml",
    }
)
"""Types that the Pythons of today do not all know."""

_TEXTS: Final = frozenset(
    {
        "application/ecmascript",
        "application/graphql",
        "application/javascript",
        "application/json",
        "application/jsonl",
        "application/sql",
        "application/toml",
        "application/x-ndjson",
        "application/x-sh",
        "application/x-yaml",
        "application/xml",
        "application/yaml",
    }
)
"""Types that are text although their name does not say so."""

_ABSENT: Final = frozenset(
    {
        errno.ENOENT,
        errno.ENOTDIR,
        errno.EISDIR,
        errno.ENAMETOOLONG,
        errno.ELOOP,
        errno.ENXIO,
    }
)
"""Why a path leads to no file."""

# A pipe that nobody writes to must not hold the thread.
OPEN_FLAGS: Final = (
    os.O_RDONLY
    | getattr(os, "O_BINARY", 0)
    | getattr(os, "O_CLOEXEC", 0)
    | getattr(os, "O_NONBLOCK", 0)
)
"""How a file is opened to be read."""


def guess_type(name: str) -> str | None:
    """Return the MIME type of a file by its name, the same on every machine.

    Example:
        >>> guess_type("a/b.md"), guess_type("b.tar.gz"), guess_type("Makefile")
        ('text/markdown', 'application/gzip', None)
    """
    kind, encoding = _known_types().guess_type(Path(name).name)
    if encoding is not None:
        return "application/gzip" if encoding == "gzip" else "application/octet-stream"
    return kind


@functools.cache
def _known_types() -> mimetypes.MimeTypes:
    # Those of Python itself: what a machine adds differs from one to the next.
    known = mimetypes.MimeTypes()
    for suffix, kind in _TYPES.items():
        known.add_type(kind, suffix)
    return known


def read_file(path: Path, mime_type: str | None = None) -> tuple[str | bytes, str]:
    """Read a file, and tell its MIME type.

    Args:
        path: Where it is.
        mime_type: Its type, when it is known; else it is guessed by the name.

    Returns:
        A text when the type is one of texts and the file is in UTF-8, else its
        bytes; and the type.

    Raises:
        FileNotFoundError: There is no regular file.
        OSError: It can't be read.
    """
    try:
        opened = os.open(path, OPEN_FLAGS)
    except OSError as error:
        raise absent(error) from error
    with regular_file(opened) as file:
        return contents_of(file.read(), path.name, mime_type)


def absent(error: OSError) -> OSError:
    """Return the error in its place: a `FileNotFoundError` when it says so much."""
    return FileNotFoundError(*error.args) if error.errno in _ABSENT else error


def regular_file(descriptor: int) -> BinaryIO:
    """Return an open file, which must be a regular one.

    Raises:
        FileNotFoundError: It is a directory, a pipe or a device. It is closed.
    """
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise FileNotFoundError(errno.ENOENT, "no regular file")
    return os.fdopen(descriptor, "rb")


def contents_of(
    data: bytes, name: str, mime_type: str | None = None
) -> tuple[str | bytes, str]:
    """Return the contents of a file as a text or as bytes, and their MIME type.

    Example:
        >>> contents_of(b"# Hello", "a.md")
        ('# Hello', 'text/markdown')
        >>> contents_of(b"all:", "Makefile")
        ('all:', 'text/plain')
    """
    mime_type = mime_type or guess_type(name)
    if mime_type is not None and not _is_text(mime_type):
        return data, mime_type
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return data, mime_type or "application/octet-stream"
    # Of what is not known, NUL says that it is no text.
    if mime_type is None and "\0" in text:
        return data, "application/octet-stream"
    return text, mime_type or "text/plain"


def _is_text(mime_type: str) -> bool:
    essence = mime_type.partition(";")[0].strip().lower()
    return (
        essence.startswith("text/")
        or essence in _TEXTS
        or essence.endswith(("+json", "+xml", "+yaml"))
    )
