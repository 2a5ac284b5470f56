"""Content blocks, the contents of resources, and the messages of prompts."""

import base64
import doctest
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
