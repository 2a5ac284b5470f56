"""Content blocks that are read from files."""

import doctest
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mcpkit import App, Audio, File, Image, blocks as module
from mcpkit.protocol import content
from mcpkit.protocol.content import Block
from tests.calls import call_tool

PNG = b"\x89PNG\r\n\x1a\n"
WAV = b"RIFF" + struct.pack("<I", 36) + b"WAVEfmt "
META = {"com.example/a": 1}

READ: list[tuple[str, str, bytes, Callable[[Path], Block], Block]] = [
    # id, file name, what is in it, how it is read, the block
    ("an image", "a.png", PNG, Image.from_path, Image(PNG, "image/png")),
    (
        "an image of another name",
        "a.jpg",
        PNG,
        Image.from_path,
        Image(PNG, "image/png"),
    ),
    ("an image without one", "a", PNG, Image.from_path, Image(PNG, "image/png")),
    ("what its name tells", "a.webp", b"?", Image.from_path, Image(b"?", "image/webp")),
    (
        "a drawing",
        "a.svg",
        b"<!-- --><svg/>",
        Image.from_path,
        Image(b"<!-- --><svg/>", "image/svg+xml"),
    ),
    (
        "an image of a given type",
        "a.bin",
        b"?",
        lambda path: Image.from_path(path, mime_type="image/x"),
        Image(b"?", "image/x"),
    ),
    (
        "an image with everything",
        "a.png",
        PNG,
        lambda path: Image.from_path(path, annotations={"priority": 1}, meta=META),
        Image(PNG, "image/png", annotations={"priority": 1}, meta=META),
    ),
    ("a recording", "a.wav", WAV, Audio.from_path, Audio(WAV, "audio/wav")),
    (
        "a recording by its name",
        "a.mp3",
        b"?",
        Audio.from_path,
        Audio(b"?", "audio/mpeg"),
    ),
    (
        "a recording of a given type",
        "a",
        b"?",
        lambda path: Audio.from_path(path, mime_type="audio/x", meta=META),
        Audio(b"?", "audio/x", meta=META),
    ),
    (
        "a text",
        "a b.md",
        "é".encode(),
        File.from_path,
        File("file:///a%20b.md", "é", "text/markdown"),
    ),
    (
        "no text",
        "a.pdf",
        b"\xff",
        File.from_path,
        File("file:///a.pdf", b"\xff", "application/pdf"),
    ),
    (
        "a file with everything",
        "a.txt",
        b"a",
        lambda path: File.from_path(
            path,
            uri="a:b",
            mime_type="text/x",
            annotations={"audience": ["user"]},
            meta=META,
        ),
        File("a:b", "a", "text/x", annotations={"audience": ["user"]}, meta=META),
    ),
]


@pytest.mark.parametrize(
    ("name", "data", "read", "block"),
    [pytest.param(*row, id=row_id) for row_id, *row in READ],
)
def test_a_block_is_read_from_a_file(
    name: str, data: bytes, read: Callable[[Any], Block], block: Block, tmp_path: Path
) -> None:
    """Ours."""
    path = tmp_path / name
    path.write_bytes(data)
    assert read(path) == block
    assert read(str(path)) == block


NOT_READ: list[tuple[str, str, Callable[[Path], Block], type[Exception], str]] = [
    # id, file name, how it is read, error, what is told
    (
        "a document as an image",
        "a.pdf",
        Image.from_path,
        ValueError,
        "neither the name 'a.pdf' nor",
    ),
    (
        "an image as a recording",
        "a.png",
        Audio.from_path,
        ValueError,
        "tells an audio type; give it a mime_type",
    ),
    ("nobody knows what", "a", Image.from_path, ValueError, "tells an image type"),
    ("none", "b", Image.from_path, FileNotFoundError, "No such file"),
    ("no file", "b", File.from_path, FileNotFoundError, ""),
]


@pytest.mark.parametrize(
    ("name", "read", "error", "told"),
    [pytest.param(*row, id=row_id) for row_id, *row in NOT_READ],
)
def test_a_file_that_is_no_such_block_is_told(
    name: str,
    read: Callable[[Path], Block],
    error: type[Exception],
    told: str,
    tmp_path: Path,
) -> None:
    """Ours."""
    for written in ("a", "a.pdf", "a.png"):
        (tmp_path / written).write_bytes(b"?")
    with pytest.raises(error, match=told or None):
        read(tmp_path / name)


def test_a_block_is_that_of_the_core() -> None:
    assert isinstance(Image(PNG), content.Image)
    assert isinstance(Audio(WAV), content.Audio)
    assert isinstance(File("a:b", "c"), content.File)


async def test_a_file_may_be_gone_before_the_answer_is_sent(tmp_path: Path) -> None:
    """Ours."""
    app = App("tests")

    @app.tool
    def chart() -> Image:
        path = tmp_path / "chart.png"
        path.write_bytes(PNG)
        try:
            return Image.from_path(path)
        finally:
            path.unlink()

    assert await call_tool(app, "chart") == {
        "content": [{"type": "image", "data": "iVBORw0KGgo=", "mimeType": "image/png"}],
        "isError": False,
    }


def test_the_examples_hold() -> None:
    result = doctest.testmod(module)
    assert (result.failed, result.attempted > 0) == (0, True)
