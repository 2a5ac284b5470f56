"""Content blocks, the contents of resources, and the messages of prompts."""

import base64
import doctest
import math
import re
from collections.abc import Callable
from datetime import UTC, date, datetime
from typing import Any

import pytest

from mcpkit.protocol import content as module
from mcpkit.protocol.content import (
    Audio,
    BinaryData,
    Block,
    File,
    Image,
    Message,
    ResourceLink,
    Text,
    as_block,
    as_blocks,
    as_contents,
    encode_blob,
    resource_contents,
    without_none,
)
from mcpkit.protocol.jsonrpc import encode
from mcpkit.protocol.modern import to_response
from mcpkit.protocol.results import Result
from tests.wire import check_response

ANNOTATIONS = {"audience": ["user"], "priority": 1}
# In the alphabet for URLs this would be `-__-`.
BYTES, BASE64 = b"\xfb\xff\xfe", "+//+"

BLOCKS: list[tuple[str, Block, dict[str, Any]]] = [
    # id, block, wire
    ("a text", Text("3"), {"type": "text", "text": "3"}),
    ("an empty text", Text(""), {"type": "text", "text": ""}),
    (
        "a text with everything",
        Text("3", annotations=ANNOTATIONS, meta={"a": None}),
        {"type": "text", "text": "3", "annotations": ANNOTATIONS, "_meta": {"a": None}},
    ),
    (
        "an image",
        Image(BYTES),
        {"type": "image", "data": BASE64, "mimeType": "image/png"},
    ),
    (
        "an image of another type",
        Image(BYTES, "image/webp", annotations=ANNOTATIONS),
        {
            "type": "image",
            "data": BASE64,
            "mimeType": "image/webp",
            "annotations": ANNOTATIONS,
        },
    ),
    (
        "a recording",
        Audio(BYTES),
        {"type": "audio", "data": BASE64, "mimeType": "audio/wav"},
    ),
    (
        "a recording of another type",
        Audio(BYTES, "audio/ogg", meta={"a": 1}),
        {"type": "audio", "data": BASE64, "mimeType": "audio/ogg", "_meta": {"a": 1}},
    ),
    (
        "a file of text",
        File("a:b", "3"),
        {"type": "resource", "resource": {"uri": "a:b", "text": "3"}},
    ),
    (
        "a file of bytes",
        File("a:b", BYTES, "image/png", annotations=ANNOTATIONS),
        {
            "type": "resource",
            "resource": {"uri": "a:b", "mimeType": "image/png", "blob": BASE64},
            "annotations": ANNOTATIONS,
        },
    ),
    (
        "a link",
        ResourceLink("a:b", "n"),
        {"type": "resource_link", "uri": "a:b", "name": "n"},
    ),
    (
        "a link with everything",
        ResourceLink("a:b", "n", "N", "d", "text/plain", 0, meta={}),
        {
            "type": "resource_link",
            "uri": "a:b",
            "name": "n",
            "title": "N",
            "description": "d",
            "mimeType": "text/plain",
            "size": 0,
            "_meta": {},
        },
    ),
    (
        "a link with an icon",
        ResourceLink("a:b", "n", icons=[{"src": "a:c"}]),
        {
            "type": "resource_link",
            "uri": "a:b",
            "name": "n",
            "icons": [{"src": "a:c"}],
        },
    ),
]


@pytest.mark.parametrize(
    ("block", "wire"), [pytest.param(*row, id=name) for name, *row in BLOCKS]
)
def test_a_block_has_a_wire_form(block: Block, wire: dict[str, Any]) -> None:
    """Spec 2026-07-28, server/tools: Tool Result; RPC-12: nothing is null."""
    assert block.wire() == wire
    check_response(
        to_response(1, "tools/call", Result.content(block)), "tools/call", "2026-07-28"
    )


ANNOTATED: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    # id, annotations, on the wire
    ("none", {}, {}),
    (
        "all",
        {"audience": ["user", "assistant"], "priority": 0.5},
        {"audience": ["user", "assistant"], "priority": 0.5},
    ),
    ("nobody", {"audience": ()}, {"audience": []}),
    ("a set", {"audience": {"user"}}, {"audience": ["user"]}),
    ("the least", {"priority": 0}, {"priority": 0}),
    ("the most", {"priority": 1}, {"priority": 1}),
    (
        "a datetime",
        {"lastModified": datetime(2026, 7, 28, 1, 2, tzinfo=UTC)},
        {"lastModified": "2026-07-28T01:02:00+00:00"},
    ),
    ("a date", {"lastModified": date(2026, 7, 28)}, {"lastModified": "2026-07-28"}),
    (
        "ISO 8601",
        {"lastModified": "2025-01-12T15:00:58Z"},
        {"lastModified": "2025-01-12T15:00:58Z"},
    ),
]


@pytest.mark.parametrize(
    ("annotations", "wire"), [pytest.param(*row, id=name) for name, *row in ANNOTATED]
)
def test_annotations_have_a_wire_form(
    annotations: dict[str, Any], wire: dict[str, Any]
) -> None:
    """Spec 2026-07-28, server/resources: Annotations."""
    block = Text("3", annotations=annotations)
    assert block.wire() == {"type": "text", "text": "3", "annotations": wire}


NOT_ANNOTATIONS: list[tuple[str, dict[str, Any], str]] = [
    # id, annotations, what is told
    (
        "another audience",
        {"audience": ["model"]},
        'audience is a list of "user" and "assistant", not [\'model\']',
    ),
    (
        "an audience that is no list",
        {"audience": "user"},
        'audience is a list of "user" and "assistant", not \'user\'',
    ),
    (
        "a list of lists",
        {"audience": [["user"]]},
        'audience is a list of "user" and "assistant", not [[\'user\']]',
    ),
    (
        "nothing",
        {"audience": None},
        'audience is a list of "user" and "assistant", not None',
    ),
    ("above all", {"priority": 1.5}, "priority is from 0 to 1, not 1.5"),
    ("below all", {"priority": -1}, "priority is from 0 to 1, not -1"),
    ("no number", {"priority": math.nan}, "priority is from 0 to 1, not nan"),
    ("a truth", {"priority": True}, "priority is from 0 to 1, not True"),
    ("a text", {"priority": "1"}, "priority is from 0 to 1, not '1'"),
    (
        "yesterday",
        {"lastModified": "yesterday"},
        "lastModified is a datetime, or one in ISO 8601, not 'yesterday'",
    ),
    (
        "a number",
        {"lastModified": 3},
        "lastModified is a datetime, or one in ISO 8601, not 3",
    ),
    (
        "Python's name",
        {"last_modified": "2025-01-12"},
        "'last_modified' is none of the annotations audience, lastModified, priority",
    ),
]

KINDS: list[Callable[..., Block]] = [
    lambda **given: Text("3", **given),
    lambda **given: Image(b"", **given),
    lambda **given: Audio(b"", **given),
    lambda **given: File("a:b", "3", **given),
    lambda **given: ResourceLink("a:b", "n", **given),
]


@pytest.mark.parametrize("kind", KINDS, ids=["Text", "Image", "Audio", "File", "Link"])
@pytest.mark.parametrize(
    ("annotations", "told"),
    [pytest.param(*row, id=name) for name, *row in NOT_ANNOTATIONS],
)
def test_other_annotations_are_refused_where_the_block_is_made(
    annotations: dict[str, Any], told: str, kind: Callable[..., Block]
) -> None:
    """Ours. Spec 2026-07-28, schema: Annotations."""
    with pytest.raises(ValueError, match=f"^{re.escape(told)}$"):
        kind(annotations=annotations)


THREE: Any = 3
NOTHING: Any = None
PATH: Any = "a.png"

NO_BLOCKS: list[tuple[str, Callable[[], Block], str]] = [
    # id, what makes it, what is told
    ("a number", lambda: Text(THREE), "a Text takes a string, not a int"),
    ("a path", lambda: Image(PATH), "an Image takes bytes, not a str"),
    ("nothing", lambda: Audio(NOTHING), "an Audio takes bytes, not a NoneType"),
    (
        "an object",
        lambda: File("a:b", THREE),
        "a File takes a string or bytes, not a int",
    ),
    ("no URI", lambda: File(THREE, "3"), "the URI of a File is a string, not a int"),
    (
        "no link",
        lambda: ResourceLink(THREE, "n"),
        "the URI of a ResourceLink is a string, not a int",
    ),
    (
        "no name",
        lambda: ResourceLink("a:b", NOTHING),
        "the name of a ResourceLink is a string, not a NoneType",
    ),
]


@pytest.mark.parametrize(
    ("make", "told"), [pytest.param(*row, id=name) for name, *row in NO_BLOCKS]
)
def test_what_is_no_block_is_refused_where_it_is_made(
    make: Callable[[], Block], told: str
) -> None:
    """Ours."""
    with pytest.raises(TypeError) as caught:
        make()
    assert str(caught.value) == told


IMAGES = [
    # MIME type, how it begins
    ("image/png", b"\x89PNG\r\n\x1a\n\0\0"),
    ("image/jpeg", b"\xff\xd8\xff\xe0\0\x10JFIF"),
    ("image/gif", b"GIF89a\1\0"),
    ("image/gif", b"GIF87a\1\0"),
    ("image/webp", b"RIFF\n\n\n\nWEBPVP8 "),
    ("image/avif", b"\0\0\0\x1cftypavif"),
    ("image/bmp", b"BM\x46\0"),
    ("image/tiff", b"II*\0"),
    ("image/tiff", b"MM\0*"),
    ("image/svg+xml", b'<svg xmlns="http://www.w3.org/2000/svg"/>'),
    ("image/svg+xml", b"\n<?xml version='1.0'?><svg/>"),
    ("image/png", b""),
    ("image/png", b"RIFF\0\0\0\0WAVE"),
]
RECORDINGS = [
    # MIME type, how it begins
    ("audio/wav", b"RIFF\0\0\0\0WAVEfmt "),
    ("audio/mpeg", b"ID3\4\0"),
    ("audio/mpeg", b"\xff\xfb\x90\0"),
    ("audio/ogg", b"OggS\0"),
    ("audio/flac", b"fLaC\0"),
    ("audio/mp4", b"\0\0\0\x20ftypM4A "),
    ("audio/aiff", b"FORM\0\0\0\0AIFF"),
    ("audio/wav", b""),
    ("audio/wav", b"\x89PNG\r\n\x1a\n"),
]


@pytest.mark.parametrize(("mime_type", "data"), IMAGES)
def test_an_image_tells_its_mime_type(mime_type: str, data: bytes) -> None:
    """Ours."""
    assert [Image(data).mime_type, Image(memoryview(data)).wire()["mimeType"]] == [
        mime_type,
        mime_type,
    ]
    assert Image(data, "image/x").mime_type == "image/x"


@pytest.mark.parametrize(("mime_type", "data"), RECORDINGS)
def test_a_recording_tells_its_mime_type(mime_type: str, data: bytes) -> None:
    """Ours."""
    assert [Audio(data).mime_type, Audio(bytearray(data)).wire()["mimeType"]] == [
        mime_type,
        mime_type,
    ]
    assert Audio(data, "audio/x").mime_type == "audio/x"


def test_a_block_in_a_structure_is_encoded_in_its_wire_form() -> None:
    """Ours."""
    assert encode({"a": [Image(BYTES, annotations={"priority": 1})]}) == (
        b'{"a":[{"type":"image","data":"+//+","mimeType":"image/png",'
        b'"annotations":{"priority":1}}]}'
    )


WITH_BYTES: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    # id, block, wire
    (
        "an image",
        {"type": "image", "data": BYTES, "mimeType": "image/png"},
        {"type": "image", "data": BASE64, "mimeType": "image/png"},
    ),
    (
        "a resource",
        {"type": "resource", "resource": {"uri": "a:b", "blob": bytearray(BYTES)}},
        {"type": "resource", "resource": {"uri": "a:b", "blob": BASE64}},
    ),
    (
        "base64 already",
        {"type": "audio", "data": BASE64, "mimeType": "audio/wav"},
        {"type": "audio", "data": BASE64, "mimeType": "audio/wav"},
    ),
]


@pytest.mark.parametrize(
    ("block", "wire"), [pytest.param(*row, id=name) for name, *row in WITH_BYTES]
)
def test_bytes_of_a_block_in_wire_form_become_base64(
    block: dict[str, Any], wire: dict[str, Any]
) -> None:
    """Ours."""
    assert as_block(block) == wire


def test_bytes_of_contents_in_wire_form_become_base64() -> None:
    """Ours."""
    assert as_contents({"uri": "a:b", "blob": BYTES}) == {"uri": "a:b", "blob": BASE64}


def test_a_block_of_no_kind_has_no_members() -> None:
    with pytest.raises(NotImplementedError):
        Block().wire()


BINARY: list[BinaryData] = [BYTES, bytearray(BYTES), memoryview(BYTES)]


@pytest.mark.parametrize("data", BINARY, ids=lambda data: type(data).__name__)
def test_binary_data_becomes_base64_of_the_standard_alphabet(data: BinaryData) -> None:
    """Spec 2026-07-28, schema: BlobResourceContents, `@format byte`."""
    assert encode_blob(data) == BASE64
    assert base64.b64decode(encode_blob(data), validate=True) == BYTES


CONTENTS: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    # id, contents, wire
    ("text", resource_contents("a:b", "3"), {"uri": "a:b", "text": "3"}),
    ("empty text", resource_contents("a:b", ""), {"uri": "a:b", "text": ""}),
    (
        "text of a type",
        resource_contents("a:b", "3", "text/plain", {"a": 1}),
        {"uri": "a:b", "mimeType": "text/plain", "text": "3", "_meta": {"a": 1}},
    ),
    (
        "bytes",
        resource_contents("a:b", BYTES),
        {"uri": "a:b", "mimeType": "application/octet-stream", "blob": BASE64},
    ),
    (
        "no bytes, of a type",
        resource_contents("a:b", b"", "image/png"),
        {"uri": "a:b", "mimeType": "image/png", "blob": ""},
    ),
]


@pytest.mark.parametrize(
    ("contents", "wire"), [pytest.param(*row, id=name) for name, *row in CONTENTS]
)
def test_contents_have_a_wire_form(
    contents: dict[str, Any], wire: dict[str, Any]
) -> None:
    """Spec 2026-07-28, server/resources: Resource Contents."""
    assert contents == wire
    response = to_response(1, "resources/read", Result.resource_read(contents))
    check_response(response, "resources/read", "2026-07-28")


IN_WIRE_FORM = {"uri": "c:d", "text": "3", "_meta": {"a": 1}}

CONTENTS_OF: list[tuple[str, Any, str | None, dict[str, Any]]] = [
    # id, value, declared type, contents
    ("a text", "3", None, resource_contents("a:b", "3", "text/plain")),
    ("a text of a type", "3", "text/css", resource_contents("a:b", "3", "text/css")),
    ("bytes", BYTES, None, resource_contents("a:b", BYTES)),
    (
        "bytes of a type",
        BYTES,
        "image/png",
        resource_contents("a:b", BYTES, "image/png"),
    ),
    (
        "a block of text",
        Text("3", meta={"a": 1}),
        None,
        resource_contents("a:b", "3", "text/plain", {"a": 1}),
    ),
    (
        "an image, which has a type",
        Image(BYTES, "image/gif", meta={"a": 1}),
        "image/png",
        resource_contents("a:b", BYTES, "image/gif", {"a": 1}),
    ),
    ("a recording", Audio(b""), None, resource_contents("a:b", b"", "audio/wav")),
    (
        "a file, which has a URI",
        File("c:d", "3", "text/css", meta={"a": 1}),
        "image/png",
        resource_contents("c:d", "3", "text/css", {"a": 1}),
    ),
    (
        "a file without a type",
        File("c:d", b""),
        "image/png",
        resource_contents("c:d", b"", "image/png"),
    ),
    ("contents in wire form", IN_WIRE_FORM, "a/b", IN_WIRE_FORM),
]


@pytest.mark.parametrize(
    ("value", "mime_type", "contents"),
    [pytest.param(*row, id=name) for name, *row in CONTENTS_OF],
)
def test_a_value_becomes_contents(
    value: Any, mime_type: str | None, contents: dict[str, Any]
) -> None:
    assert as_contents(value, "a:b", mime_type) == contents


def test_what_has_no_uri_is_no_contents_by_itself() -> None:
    with pytest.raises(TypeError) as caught:
        Result.resource_read(Text("3")).members()
    assert str(caught.value) == "a Text has no URI; a File has one"


@pytest.mark.parametrize("value", [3, None, ["3"], ResourceLink("a:b", "c")])
def test_what_is_no_contents_is_refused(value: Any) -> None:
    with pytest.raises(TypeError) as caught:
        as_contents(value, "a:b")
    assert str(caught.value) == (
        f"a {type(value).__name__} is no contents of a resource"
    )


TEXT = {"type": "text", "text": "3"}
ODD = {"type": "text", "text": "3", "_meta": {}}

MESSAGES: list[tuple[str, Message, list[dict[str, Any]]]] = [
    # id, message, wire
    ("a text", Message("3"), [{"role": "user", "content": TEXT}]),
    (
        "a block of the assistant's",
        Message(Text("3"), "assistant"),
        [{"role": "assistant", "content": TEXT}],
    ),
    ("a block in wire form", Message(ODD), [{"role": "user", "content": ODD}]),
    (
        "several, of which each is a message",
        Message(["3", Text("3"), ODD], "assistant"),
        [
            {"role": "assistant", "content": TEXT},
            {"role": "assistant", "content": TEXT},
            {"role": "assistant", "content": ODD},
        ],
    ),
    ("none", Message([]), []),
]


@pytest.mark.parametrize(
    ("message", "wire"), [pytest.param(*row, id=name) for name, *row in MESSAGES]
)
def test_a_message_has_a_wire_form(
    message: Message, wire: list[dict[str, Any]]
) -> None:
    """Spec 2026-07-28, server/prompts: PromptMessage."""
    assert message.wire() == wire


AS_BLOCKS: list[tuple[str, Any, list[dict[str, Any]]]] = [
    # id, value, blocks
    ("a text", "3", [TEXT]),
    ("a block", Text("3"), [TEXT]),
    ("a dictionary", ODD, [ODD]),
    ("none", [], []),
    ("one of each", ["3", Text("3"), ODD], [TEXT, TEXT, ODD]),
    ("a tuple", ("3",), [TEXT]),
]


@pytest.mark.parametrize(
    ("value", "blocks"), [pytest.param(*row, id=name) for name, *row in AS_BLOCKS]
)
def test_one_or_several_become_blocks(value: Any, blocks: list[dict[str, Any]]) -> None:
    """Ours."""
    assert as_blocks(value) == blocks


@pytest.mark.parametrize("value", [3, None, {}, {"text": "3"}, {"type": 3}, b"4"])
def test_what_is_no_content_is_refused(value: Any) -> None:
    with pytest.raises(TypeError) as caught:
        as_block(value)
    assert str(caught.value) == f"a {type(value).__name__} is no content block"


def test_a_dictionary_is_copied() -> None:
    block = as_block(ODD)
    assert (block == ODD, block is ODD) == (True, False)


def test_only_none_is_left_out() -> None:
    """Ours: keys with no value are left out, never null."""
    assert without_none({"a": None, "b": 0, "c": "", "d": [], "e": False}) == {
        "b": 0,
        "c": "",
        "d": [],
        "e": False,
    }


def test_the_examples_hold() -> None:
    result = doctest.testmod(module)
    assert (result.failed, result.attempted > 0) == (0, True)
