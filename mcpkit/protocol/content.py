"""Content blocks, the contents of resources, and the messages of prompts.

A handler returns these in place of dictionaries. Each has a `wire` form: the
block as the newest revision has it, which the shapers cut down for older ones.

Spec 2026-07-28, server/tools: Tool Result, and server/resources: Resource Contents.
"""

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

BinaryData: TypeAlias = bytes | bytearray | memoryview


def encode_blob(data: BinaryData) -> str:
    """Encode binary data as the wire has it: base64 with the standard alphabet."""
    return base64.b64encode(data).decode("ascii")


def without_none(members: Mapping[str, Any]) -> dict[str, Any]:
    """Return the members that have a value: on the wire a key without one is absent."""
    return {key: value for key, value in members.items() if value is not None}


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """One block of content; its subclasses are the kinds there are.

    Args:
        annotations: `audience`, `priority` and `lastModified`, for the client.
        meta: The block's `_meta`.
    """

    annotations: Mapping[str, Any] | None = None
    meta: Mapping[str, Any] | None = None

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

    def members(self) -> dict[str, Any]:
        """Return the type and the text."""
        return {"type": "text", "text": self.text}


@dataclass(frozen=True, slots=True)
class Image(Block):
    """An image.

    Args:
        data: The image's bytes.
        mime_type: What they are.
    """

    data: BinaryData
    mime_type: str = "image/png"

    def members(self) -> dict[str, Any]:
        """Return the type, the data in base64, and the MIME type."""
        data = encode_blob(self.data)
        return {"type": "image", "data": data, "mimeType": self.mime_type}


@dataclass(frozen=True, slots=True)
class Audio(Block):
    """A recording.

    Args:
        data: The recording's bytes.
        mime_type: What they are.
    """

    data: BinaryData
    mime_type: str = "audio/wav"

    def members(self) -> dict[str, Any]:
        """Return the type, the data in base64, and the MIME type."""
        data = encode_blob(self.data)
        return {"type": "audio", "data": data, "mimeType": self.mime_type}


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
    """

    uri: str
    name: str
    title: str | None = None
    description: str | None = None
    mime_type: str | None = None
    size: int | None = None

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
            return dict(value)
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
            return dict(value)
        case _:
            raise TypeError(f"a {type(value).__name__} is no content block")


def as_blocks(
    value: str | Block | Mapping[str, Any] | Sequence[str | Block | Mapping[str, Any]],
) -> list[dict[str, Any]]:
    """Return the wire form of one block or of several."""
    if isinstance(value, (str, Block, Mapping)):
        return [as_block(value)]
    return [as_block(item) for item in value]
