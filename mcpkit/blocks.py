"""Content blocks that are read from a file.

They are those of `mcpkit.protocol.content`, which does no I/O. The file is read
there and then, so that it may be gone before the answer is sent.
"""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self, TypeAlias
from urllib.parse import quote

from mcpkit.files import guess_type, read_file
from mcpkit.protocol import content

AnyPath: TypeAlias = str | os.PathLike[str]


class Image(content.Image):
    """An image.

    Args:
        data: The image's bytes.
        mime_type: What they are. By default they tell it themselves.
        annotations: `audience`, `priority` and `lastModified`, for the client.
        meta: The block's `_meta`.

    Example:
        >>> Image(b"GIF89a").wire()
        {'type': 'image', 'data': 'R0lGODlh', 'mimeType': 'image/gif'}
    """

    __slots__ = ()

    @classmethod
    def from_path(
        cls,
        path: AnyPath,
        *,
        mime_type: str | None = None,
        annotations: Mapping[str, Any] | None = None,
        meta: Mapping[str, Any] | None = None,
    ) -> Self:
        """Read an image from a file.

        Args:
            path: Where it is.
            mime_type: What it is. By default the contents or the name tell it.
            annotations: `audience`, `priority` and `lastModified`.
            meta: The block's `_meta`.

        Raises:
            OSError: The file can't be read.
            ValueError: It does not look like an image.
        """
        data, kind = _read(path, mime_type, "image/")
        return cls(data, kind, annotations=annotations, meta=meta)


class Audio(content.Audio):
    """A recording.

    Args:
        data: The recording's bytes.
        mime_type: What they are. By default they tell it themselves.
        annotations: `audience`, `priority` and `lastModified`, for the client.
        meta: The block's `_meta`.
    """

    __slots__ = ()

    @classmethod
    def from_path(
        cls,
        path: AnyPath,
        *,
        mime_type: str | None = None,
        annotations: Mapping[str, Any] | None = None,
        meta: Mapping[str, Any] | None = None,
    ) -> Self:
        """Read a recording from a file.

        Args:
            path: Where it is.
            mime_type: What it is. By default the contents or the name tell it.
            annotations: `audience`, `priority` and `lastModified`.
            meta: The block's `_meta`.

        Raises:
            OSError: The file can't be read.
            ValueError: It does not look like a recording.
        """
        data, kind = _read(path, mime_type, "audio/")
        return cls(data, kind, annotations=annotations, meta=meta)


class File(content.File):
    """An embedded resource: its contents, as text or bytes, under a URI.

    Args:
        uri: The URI of the resource.
        data: Its contents.
        mime_type: What they are.
        annotations: `audience`, `priority` and `lastModified`, for the client.
        meta: The block's `_meta`.
    """

    __slots__ = ()

    @classmethod
    def from_path(
        cls,
        path: AnyPath,
        *,
        uri: str | None = None,
        mime_type: str | None = None,
        annotations: Mapping[str, Any] | None = None,
        meta: Mapping[str, Any] | None = None,
    ) -> Self:
        """Read a file. What is text by its type and its contents is sent as text.

        Args:
            path: Where it is.
            uri: Its URI. By default its name, as in `file:///notes.md`: what else
                is in the path is nobody's business.
            mime_type: What it is. By default the contents or the name tell it.
            annotations: `audience`, `priority` and `lastModified`.
            meta: The block's `_meta`.

        Raises:
            OSError: The file can't be read.
        """
        path = Path(path)
        data, kind = read_file(path, mime_type)
        named = uri or f"file:///{quote(path.name)}"
        return cls(named, data, kind, annotations=annotations, meta=meta)


def _read(path: AnyPath, mime_type: str | None, family: str) -> tuple[bytes, str]:
    """Return what a file holds, and its MIME type, which is of a family.

    Raises:
        OSError: The file can't be read.
        ValueError: It is of another.
    """
    path = Path(path)
    data = path.read_bytes()
    if mime_type is None:
        mime_type = content.sniff(data, family) or guess_type(path.name) or ""
        if not mime_type.startswith(family):
            raise ValueError(
                f"neither the name {path.name!r} nor what is in the file tells an "
                f"{family[:-1]} type; give it a mime_type"
            )
    return data, mime_type
