"""Content blocks, the contents of resources, and the messages of prompts.

A handler returns these in place of dictionaries. Each has a `wire` form: the
block as the newest revision has it, which the shapers cut down for older ones.
What is no block is refused where it is made.

Spec 2026-07-28, server/tools: Tool Result, and server/resources: Resource Contents.
"""

import base64
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from types import MappingProxyType
from typing import Any, ClassVar, Final, Literal, TypeAlias

from pydantic_core import SchemaSerializer, core_schema

BinaryData: TypeAlias = bytes | bytearray | memoryview


def encode_blob(data: BinaryData) -> str:
    """Encode binary data as the wire has it: base64 with the standard alphabet."""
    return base64.b64encode(data).decode("ascii")


def without_none(members: Mapping[str, Any]) -> dict[str, Any]:
    """Return the members that have a value: on the wire a key without one is absent."""
    return {key: value for key, value in members.items() if value is not None}


def read_annotations(annotations: Mapping[str, Any]) -> dict[str, Any]:
    """Return annotations as they go on the wire.

    Args:
        annotations: `audience`, `priority` and `lastModified`. The last may be a
            datetime.

    Raises:
        ValueError: One of them is something else.

    Example:
        >>> read_annotations({"priority": 1, "lastModified": datetime(2026, 7, 28)})
        {'priority': 1, 'lastModified': '2026-07-28T00:00:00'}
    """
    wired = {}
    for key, value in annotations.items():
        if key not in _ANNOTATIONS:
            known = ", ".join(_ANNOTATIONS)
            raise ValueError(f"{key!r} is none of the annotations {known}")
        read, expected = _ANNOTATIONS[key]
        wired[key] = read(value)
        if wired[key] is None:
            raise ValueError(f"{key} is {expected}, not {value!r}")
    return wired


def _audience(value: Any) -> list[str] | None:
    if not isinstance(value, (list, tuple, set, frozenset)):
        return None
    return list(value) if all(role in _ROLES for role in value) else None


def _priority(value: Any) -> float | None:
    # A boolean is an int to `isinstance`, and no number of JSON's.
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return value if is_number and 0 <= value <= 1 else None


def _last_modified(value: Any) -> str | None:
    if isinstance(value, date):
        return value.isoformat()
    try:
        datetime.fromisoformat(value)
    except (TypeError, ValueError):
        return None
    return str(value)


_ROLES: Final = ("assistant", "user")
_ANNOTATIONS: Final[Mapping[str, tuple[Callable[[Any], Any], str]]] = MappingProxyType(
    {
        "audience": (_audience, 'a list of "user" and "assistant"'),
        "lastModified": (_last_modified, "a datetime, or one in ISO 8601"),
        "priority": (_priority, "from 0 to 1"),
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """One block of content; its subclasses are the kinds there are.

    Args:
        annotations: `audience`, `priority` and `lastModified`, for the client.
        meta: The block's `_meta`.

    Raises:
        TypeError: What it is made of is of another type.
        ValueError: An annotation is not one that there is.
    """

    annotations: Mapping[str, Any] | None = None
    meta: Mapping[str, Any] | None = None

    # Inside of a structure it is encoded in its wire form, too.
    __pydantic_serializer__: ClassVar = SchemaSerializer(
        core_schema.any_schema(
            serialization=core_schema.plain_serializer_function_ser_schema(
                lambda block: block.wire()
            )
        )
    )

    def __post_init__(self) -> None:
        if self.annotations is not None:
            object.__setattr__(self, "annotations", read_annotations(self.annotations))
        self.check()

    def check(self) -> None:
        """Refuse what this kind of block can't be made of.

        Raises:
            TypeError: It is of another type.
        """

    def wire(self) -> dict[str, Any]:
        """Return the block as it goes on the wire."""
        common = {"annotations": self.annotations, "_meta": self.meta}
        return without_none({**self.members(), **common})

    def members(self) -> dict[str, Any]:
        """Return the members that this kind of block has of its own."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class Text(Block):
    """A block of text.

    Example:
        >>> Text("Hello").wire()
        {'type': 'text', 'text': 'Hello'}
    """

    text: str

    def check(self) -> None:
        """Refuse what is no text."""
        _check("a Text takes a string", self.text, (str,))

    def members(self) -> dict[str, Any]:
        """Return the type and the text."""
        return {"type": "text", "text": self.text}


@dataclass(frozen=True, slots=True)
class Image(Block):
    """An image.

    Args:
        data: The image's bytes.
        mime_type: What they are. By default they tell it themselves.
    """

    data: BinaryData
    mime_type: str | None = None

    def check(self) -> None:
        """Refuse what is no binary data, and tell its type."""
        _check("an Image takes bytes", self.data, _BINARY)
        if self.mime_type is None:
            kind = sniff(self.data, "image/") or "image/png"
            object.__setattr__(self, "mime_type", kind)

    def members(self) -> dict[str, Any]:
        """Return the type, the data in base64, and the MIME type."""
        data = encode_blob(self.data)
        return {"type": "image", "data": data, "mimeType": self.mime_type}


@dataclass(frozen=True, slots=True)
class Audio(Block):
    """A recording.

    Args:
        data: The recording's bytes.
        mime_type: What they are. By default they tell it themselves.
    """

    data: BinaryData
    mime_type: str | None = None

    def check(self) -> None:
        """Refuse what is no binary data, and tell its type."""
        _check("an Audio takes bytes", self.data, _BINARY)
        if self.mime_type is None:
            kind = sniff(self.data, "audio/") or "audio/wav"
            object.__setattr__(self, "mime_type", kind)

    def members(self) -> dict[str, Any]:
        """Return the type, the data in base64, and the MIME type."""
        data = encode_blob(self.data)
        return {"type": "audio", "data": data, "mimeType": self.mime_type}


_BINARY: Final = (bytes, bytearray, memoryview)


def _check(expected: str, value: object, classes: tuple[type, ...]) -> None:
    if not isinstance(value, classes):
        raise TypeError(f"{expected}, not a {type(value).__name__}")


# How files of a type begin.
_BEGINNINGS: Final[Mapping[str, re.Pattern[bytes]]] = MappingProxyType(
    {
        kind: re.compile(beginning, re.DOTALL)
        for kind, beginning in {
            "image/png": rb"\x89PNG\r\n\x1a\n",
            "image/jpeg": rb"\xff\xd8\xff",
            "image/gif": rb"GIF8[79]a",
            "image/webp": rb"RIFF.{4}WEBP",
            "image/avif": rb".{4}ftypavi[fs]",
            "image/bmp": rb"BM",
            "image/tiff": rb"II\*\0|MM\0\*",
            "image/svg+xml": rb"\s*(<\?xml|<svg)",
            "audio/wav": rb"RIFF.{4}WAVE",
            "audio/mpeg": rb"ID3|\xff[\xe2-\xff]",
            "audio/ogg": rb"OggS",
            "audio/flac": rb"fLaC",
            "audio/mp4": rb".{4}ftyp(M4A|mp4|isom)",
            "audio/aiff": rb"FORM.{4}AIF[FC]",
        }.items()
    }
)


def sniff(data: BinaryData, family: str) -> str | None:
    """Return the MIME type of data by how it begins, if it is known.

    Args:
        data: The data.
        family: "image/" or "audio/"; of another type it is not.

    Example:
        >>> sniff(b"GIF89a", "image/"), sniff(b"GIF89a", "audio/")
        ('image/gif', None)
    """
    for kind, beginning in _BEGINNINGS.items():
        if kind.startswith(family) and beginning.match(data):
            return kind
    return None


@dataclass(frozen=True, slots=True)
class File(Block):
    """An embedded resource: its contents, as text or bytes, under a URI.

    Args:
        uri: The URI of the resource.
        data: Its contents.
        mime_type: What they are.
    """

    uri: str
    data: str | BinaryData
    mime_type: str | None = None

    def check(self) -> None:
        """Refuse what is neither text nor binary data."""
        _check("the URI of a File is a string", self.uri, (str,))
        _check("a File takes a string or bytes", self.data, (str, *_BINARY))

    def members(self) -> dict[str, Any]:
        """Return the type and the resource."""
        resource = resource_contents(self.uri, self.data, self.mime_type)
        return {"type": "resource", "resource": resource}


@dataclass(frozen=True, slots=True)
class ResourceLink(Block):
    """A link to a resource that the client may read.

    Args:
        uri: The URI of the resource.
        name: Its name.
        title: Its name for people.
        description: What it is.
        mime_type: The type of its contents.
        size: Their size in bytes.
        icons: Its icons, each a dict with `src`, `mimeType`, `sizes`, `theme`.
    """

    uri: str
    name: str
    title: str | None = None
    description: str | None = None
    mime_type: str | None = None
    size: int | None = None
    icons: Sequence[Mapping[str, Any]] | None = None

    def check(self) -> None:
        """Refuse what no client could follow."""
        _check("the URI of a ResourceLink is a string", self.uri, (str,))
        _check("the name of a ResourceLink is a string", self.name, (str,))

    def members(self) -> dict[str, Any]:
        """Return the type and what is known of the resource."""
        return {
            "type": "resource_link",
            "uri": self.uri,
            "name": self.name,
            "title": self.title,
            "description": self.description,
            "mimeType": self.mime_type,
            "size": self.size,
            "icons": self.icons,
        }


def resource_contents(
    uri: str,
    data: str | BinaryData,
    mime_type: str | None = None,
    meta: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Build one element of the `contents` of a resource.

    Args:
        uri: The URI that was read.
        data: Text travels as `text`, bytes as `blob`.
        mime_type: What the data is. Bytes are `application/octet-stream` by default.
        meta: The `_meta` of the contents.

    Example:
        >>> resource_contents("docs://a", b"", "image/png")
        {'uri': 'docs://a', 'mimeType': 'image/png', 'blob': ''}
    """
    if isinstance(data, str):
        body = {"mimeType": mime_type, "text": data}
    else:
        binary = mime_type or "application/octet-stream"
        body = {"mimeType": binary, "blob": encode_blob(data)}
    return without_none({"uri": uri, **body, "_meta": meta})


def as_contents(
    value: Any, uri: str | None = None, mime_type: str | None = None
) -> dict[str, Any]:
    """Return one element of the `contents` of a resource.

    Args:
        value: A text, bytes, a block, or an element in its wire form.
        uri: The URI that was read, for what has none of its own.
        mime_type: What it is, for what does not say so itself.

    Raises:
        TypeError: It is no contents, or has no URI.

    Example:
        >>> as_contents(File("docs://a", "Hello", "text/plain"))
        {'uri': 'docs://a', 'mimeType': 'text/plain', 'text': 'Hello'}
        >>> as_contents(b"", "docs://a", "image/png")
        {'uri': 'docs://a', 'mimeType': 'image/png', 'blob': ''}
    """
    match value:
        case Mapping():
            return _with_base64(value)
        case File():
            kind = value.mime_type or mime_type
            return resource_contents(value.uri, value.data, kind, value.meta)
        case _ if uri is None:
            raise TypeError(f"a {type(value).__name__} has no URI; a File has one")
        case str():
            return resource_contents(uri, value, mime_type or "text/plain")
        case bytes() | bytearray() | memoryview():
            return resource_contents(uri, value, mime_type)
        case Text():
            kind = mime_type or "text/plain"
            return resource_contents(uri, value.text, kind, value.meta)
        case Image() | Audio():
            return resource_contents(uri, value.data, value.mime_type, value.meta)
        case _:
            raise TypeError(f"a {type(value).__name__} is no contents of a resource")


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a prompt, or several of one role.

    Args:
        content: A text or a block. A message holds one: of a list, each is a
            message of its own.
        role: Who says it.

    Example:
        >>> Message("Hello").wire()
        [{'role': 'user', 'content': {'type': 'text', 'text': 'Hello'}}]
    """

    content: str | Block | Mapping[str, Any] | Sequence[str | Block | Mapping[str, Any]]
    role: Literal["user", "assistant"] = "user"

    def wire(self) -> list[dict[str, Any]]:
        """Return the messages as they go on the wire."""
        blocks = as_blocks(self.content)
        return [{"role": self.role, "content": block} for block in blocks]


def as_block(value: str | Block | Mapping[str, Any]) -> dict[str, Any]:
    """Return the wire form of a text, a block, or a block that is a dictionary.

    Raises:
        TypeError: It is none of them.
    """
    match value:
        case str():
            return {"type": "text", "text": value}
        case Block():
            return value.wire()
        case {"type": str()}:
            return _with_base64(value)
        case _:
            raise TypeError(f"a {type(value).__name__} is no content block")


def _with_base64(members: Mapping[str, Any]) -> dict[str, Any]:
    """Return a copy of a block in wire form, in which binary data is base64."""
    wired = dict(members)
    for key, value in members.items():
        match key, value:
            case "data" | "blob", bytes() | bytearray() | memoryview():
                wired[key] = encode_blob(value)
            case "resource", Mapping():
                wired[key] = _with_base64(value)
    return wired


def as_blocks(
    value: str | Block | Mapping[str, Any] | Sequence[str | Block | Mapping[str, Any]],
) -> list[dict[str, Any]]:
    """Return the wire form of one block or of several."""
    if isinstance(value, (str, Block, Mapping)):
        return [as_block(value)]
    return [as_block(item) for item in value]
