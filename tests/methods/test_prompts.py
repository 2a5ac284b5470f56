"""`prompts/list` and `prompts/get`.

Spec 2026-07-28, server/prompts.
"""

import dataclasses
import datetime
import enum
import logging
import uuid
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, Field
from typing_extensions import TypedDict

from mcpkit import (
    App,
    Audio,
    Context,
    File,
    Image,
    Message,
    ProtocolError,
    ResourceLink,
    Result,
    Text,
    ToolError,
)
from mcpkit.errors import INTERNAL_ERROR, INVALID_PARAMS
from tests.calls import EVERY, V_2025_03_26, V_2025_06_18, V_2025_11_25, call
from tests.wire import MODERN


def prompting(value: Any) -> App:
    """Make an app whose prompt `p` returns a value."""
    app = App("tests")
    app.add_prompt(lambda: value, name="p")
    return app


async def get(app: App, name: str = "p", *, at: str = MODERN, **arguments: Any) -> Any:
    return await call(app, "prompts/get", at=at, name=name, arguments=arguments)


def table(rows: list[Any]) -> list[Any]:
    return [pytest.param(*row, id=name) for name, *row in rows]


def said(text: str, role: str = "user") -> dict[str, Any]:
    return {"role": role, "content": {"type": "text", "text": text}}


IMAGE = {"type": "image", "data": "/w==", "mimeType": "image/png"}

AUDIO = {"type": "audio", "data": "/w==", "mimeType": "audio/wav"}


def image() -> dict[str, Any]:
    return {"role": "user", "content": IMAGE}


RETURNED = [
    # id, value, messages
    ("a text", "x", [said("x")]),
    ("an empty text", "", [said("")]),
    ("half a surrogate pair", "\ud800", [said("\ufffd")]),
    ("texts", ["x", "y"], [said("x"), said("y")]),
    ("no messages", [], []),
    ("a message", Message("x", role="assistant"), [said("x", "assistant")]),
    (
        "messages",
        [Message("x"), Message("y", role="assistant")],
        [said("x"), said("y", "assistant")],
    ),
    ("a tuple of them", (Message("x"), "y"), [said("x"), said("y")]),
    ("a dict", {"role": "user", "content": "x"}, [said("x")]),
    (
        "a dict in wire form",
        {"role": "assistant", "content": {"type": "text", "text": "x"}},
        [said("x", "assistant")],
    ),
    ("a block of text", Text("x"), [said("x")]),
    ("an image", Image(b"\xff"), [{"role": "user", "content": IMAGE}]),
    (
        "a message with an image",
        Message(Image(b"\xff"), role="assistant"),
        [{"role": "assistant", "content": IMAGE}],
    ),
    ("a result", Result.prompt_get(["x", Message("y")]), [said("x"), said("y")]),
    (
        "a message of several, each of which is one",
        Message(["x", Image(b"\xff"), Text("y")], role="assistant"),
        [
            said("x", "assistant"),
            {"role": "assistant", "content": IMAGE},
            said("y", "assistant"),
        ],
    ),
    (
        "a result of a message of several",
        Result.prompt_get(Message(["x", "y"])),
        [said("x"), said("y")],
    ),
    (
        "a dict of several",
        {"role": "assistant", "content": ["x", {"type": "text", "text": "y"}]},
        [said("x", "assistant"), said("y", "assistant")],
    ),
    (
        "a dict of a block",
        {"role": "user", "content": Text("x")},
        [said("x")],
    ),
    ("a block in wire form", {"type": "text", "text": "x"}, [said("x")]),
    ("a message of a block in wire form", Message(IMAGE), [image()]),
    ("a recording", Audio(b"\xff"), [{"role": "user", "content": AUDIO}]),
    (
        "a file",
        File("a://b", "c", "text/css"),
        [
            {
                "role": "user",
                "content": {
                    "type": "resource",
                    "resource": {"uri": "a://b", "mimeType": "text/css", "text": "c"},
                },
            }
        ],
    ),
    (
        "all of them",
        ["x", Image(b"\xff"), Message("y")],
        [said("x"), image(), said("y")],
    ),
]


@pytest.mark.parametrize("version", EVERY)
@pytest.mark.parametrize(("value", "messages"), table(RETURNED))
async def test_what_a_prompt_returns_becomes_messages(
    value: Any, messages: list[dict[str, Any]], version: str
) -> None:
    """PRM-03. Spec 2026-07-28, server/prompts: PromptMessage. The mapping is ours."""
    assert await get(prompting(value), at=version) == {"messages": messages}


async def test_a_link_is_a_text_in_the_first_revision() -> None:
    app = prompting(ResourceLink("a://b", "b"))
    link = {"type": "resource_link", "uri": "a://b", "name": "b"}
    for version in (MODERN, V_2025_11_25, V_2025_06_18):
        message = {"role": "user", "content": link}
        assert await get(app, at=version) == {"messages": [message]}
    first = await get(app, at=V_2025_03_26)
    assert first == {"messages": [said("b: a://b")]}


async def test_a_result_has_a_description_and_meta_of_its_own() -> None:
    """RES-13."""
    app = prompting(Result.prompt_get("x", description="d", metadata={"a/b": 1}))
    expected = {"description": "d", "messages": [said("x")], "_meta": {"a/b": 1}}
    assert await get(app) == expected
    assert await get(app, at=V_2025_11_25) == expected


INVALID = [
    # id, value
    ("nothing", None),
    ("a number", 3),
    ("a dict", {"a": 1}),
    ("another role", {"role": "system", "content": "x"}),
    ("a message of another role", Message("x", role="system")),  # type: ignore[arg-type]
    ("a message of a number", Message(3)),  # type: ignore[arg-type]
    ("a message of what is no content", Message({"a": 1})),
    ("a dict of what is no content", {"role": "user", "content": {"a": 1}}),
    ("a dict of a number", {"role": "user", "content": 3}),
    ("a dict of a wrong block and a right one", {"role": "user", "content": ["x", 3]}),
    ("bytes", b"x"),
    ("a message of bytes", Message(b"x")),  # type: ignore[arg-type]
    ("a list in a list", [["x"]]),
    ("one wrong message of two", ["x", 3]),
    ("a result of a tool", Result.text("x")),
    ("an object", object()),
]


@pytest.mark.parametrize("value", table(INVALID))
async def test_what_is_no_message_is_an_internal_error(
    value: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """PRM-03."""
    assert await get(prompting(value)) == {
        "code": INTERNAL_ERROR,
        "message": "Internal error",
    }
    (record,) = caplog.records
    assert record.getMessage() == "prompts/get: prompt 'p' failed"


@pytest.mark.parametrize(
    "error", [RuntimeError("secret"), ToolError("x"), SystemExit()]
)
@pytest.mark.parametrize("version", EVERY)
async def test_what_a_prompt_raises_is_masked_and_logged(
    error: BaseException, version: str, caplog: pytest.LogCaptureFixture
) -> None:
    """ERR-01. Spec 2026-07-28, server/prompts: Error Handling."""
    app = App("tests")

    @app.prompt
    def p() -> str:
        raise error

    assert await get(app, at=version) == {
        "code": INTERNAL_ERROR,
        "message": "Internal error",
    }
    (record,) = caplog.records
    assert record.levelno == logging.ERROR
    assert record.exc_info is not None
    assert record.exc_info[1] is error


async def test_a_protocol_error_of_a_prompt_is_sent_verbatim() -> None:
    app = App("tests")

    @app.prompt
    def p() -> str:
        raise ProtocolError(7, "No such book", {"isbn": "1"})

    error = {"code": 7, "message": "No such book", "data": {"isbn": "1"}}
    assert await get(app) == error


async def test_annotations_of_content_are_kept() -> None:
    """Spec 2026-07-28, server/prompts: PromptMessage; the first revision has them."""
    annotations = {"audience": ["user"], "priority": 0.5}
    app = prompting(Text("x", annotations=annotations))
    content = {"type": "text", "text": "x", "annotations": annotations}
    for version in EVERY:
        message = {"role": "user", "content": content}
        assert await get(app, at=version) == {"messages": [message]}


def typed() -> App:
    app = App("tests")

    @app.prompt
    def review(
        title: Annotated[str, Field(description="Of the book.", title="Title")],
        stars: int,
        tags: list[str],
        tone: Literal["kind", "harsh"] = "kind",
        ctx: Context | None = None,
    ) -> str:
        """Review a book."""
        assert ctx is not None
        return f"{title!r} {stars!r} {tags!r} {tone!r} {ctx.method}"

    return app


async def test_arguments_take_the_type_of_their_parameter() -> None:
    """PRM-01. Spec 2026-07-28, server/prompts: arguments are strings."""
    result = await get(typed(), "review", title="[1]", stars="3", tags='["a"]')
    text = "'[1]' 3 ['a'] 'kind' prompts/get"
    assert result == {"description": "Review a book.", "messages": [said(text)]}


class Book(BaseModel):
    """A book."""

    title: str
    pages: int = 1


@dataclasses.dataclass
class Author:
    """An author."""

    name: str
    born: int


class Shelf(TypedDict):
    """A shelf."""

    row: int


class Tone(enum.Enum):
    """A tone."""

    KIND = "kind"


ARGUMENTS: list[tuple[str, Any, str, Any]] = [
    # id, type, string, value
    ("PRM-01 a string", str, "3", "3"),
    ("PRM-01 a string that looks like JSON", str, '{"a": 1}', '{"a": 1}'),
    ("PRM-01 a string that looks like a string", str, '"a"', '"a"'),
    ("PRM-01 an empty string", str, "", ""),
    ("PRM-01 an integer", int, "3", 3),
    ("PRM-01 a number", float, "0.5", 0.5),
    ("PRM-01 a truth", bool, "false", False),
    ("PRM-01 a list", list[int], "[1, 2]", [1, 2]),
    ("a list of strings", list[str], '["1"]', ["1"]),
    ("a set", set[int], "[1]", {1}),
    ("a tuple", tuple[str, int], '["a", 1]', ("a", 1)),
    ("a dict", dict[str, int], '{"a": 1}', {"a": 1}),
    ("a model", Book, '{"title": "Emma"}', Book(title="Emma")),
    ("a list of models", list[Book], '[{"title": "Emma"}]', [Book(title="Emma")]),
    (
        "a dataclass",
        Author,
        '{"name": "Jane", "born": 1775}',
        Author(name="Jane", born=1775),
    ),
    ("a TypedDict", Shelf, '{"row": 3}', {"row": 3}),
    ("an optional integer", int | None, "3", 3),
    ("an optional list", list[int] | None, "[1]", [1]),
    ("an optional model", Book | None, '{"title": "Emma"}', Book(title="Emma")),
    ("an enum", Tone, "kind", Tone.KIND),
    ("a literal", Literal["a", "b"], "b", "b"),
    ("a literal number", Literal[1, 2], "2", 2),
    ("a literal number or string", Literal["a", 2], "2", 2),
    ("a date", datetime.date, "2026-07-28", datetime.date(2026, 7, 28)),
    ("a UUID", uuid.UUID, str(uuid.UUID(int=1)), uuid.UUID(int=1)),
    ("a constrained string", Annotated[str, Field(min_length=1)], "x", "x"),
]


@pytest.mark.parametrize(("hint", "string", "value"), table(ARGUMENTS))
async def test_a_string_becomes_what_the_parameter_says(
    hint: Any, string: str, value: Any
) -> None:
    app = App("tests")
    seen = []

    def p(a: Any) -> str:
        seen.append(a)
        return "x"

    p.__annotations__["a"] = hint
    app.add_prompt(p)
    assert await get(app, a=string) == {"messages": [said("x")]}
    assert seen == [value]


UNTYPED: list[tuple[str, Any, str, str]] = [
    # id, type, string, message
    ("PRM-01 no integer", int, "x", "a: input should be a valid integer"),
    ("an empty integer", int, "", "a: input should be a valid integer"),
    ("NaN", float, "nan", "a: expected finite number, got string"),
    ("no JSON", list[int], "1, 2", "a: expected array, got string"),
    ("JSON of another type", list[int], '{"a": 1}', "a: expected array, got object"),
    (
        "a list of something else",
        list[int],
        '["x"]',
        "a.0: input should be a valid integer",
    ),
    ("a model that lacks a field", Book, "{}", "a.title: missing"),
    ("another literal", Literal["a", "b"], "c", "a: input should be 'a' or 'b'"),
    ("another enum", Tone, "KIND", "a: input should be 'kind'"),
]


@pytest.mark.parametrize(("hint", "string", "message"), table(UNTYPED))
async def test_a_string_of_another_type_is_invalid_params(
    hint: Any, string: str, message: str
) -> None:
    app = App("tests")

    def p(a: Any) -> str:
        raise NotImplementedError

    p.__annotations__["a"] = hint
    app.add_prompt(p)
    error = {"code": INVALID_PARAMS, "message": f"Invalid arguments: {message}"}
    assert await get(app, a=string) == error


WRONG = [
    # id, arguments, message
    ("all are missing", {}, "Missing required arguments: title, stars, tags"),
    ("two are missing", {"stars": "3"}, "Missing required arguments: title, tags"),
    (
        "PRM-01 no integer",
        {"title": "x", "stars": "x", "tags": "[]"},
        "Invalid arguments: stars: input should be a valid integer",
    ),
    (
        "PRM-01 a JSON number",
        {"title": "x", "stars": 3, "tags": "[]"},
        "Invalid params: the argument stars must be a string",
    ),
    (
        "null",
        {"title": None, "stars": "3", "tags": "[]"},
        "Invalid params: the argument title must be a string",
    ),
    (
        "an unknown argument",
        {"title": "x", "stars": "3", "tags": "[]", "pages": "3"},
        "Invalid arguments: pages: unknown argument",
    ),
    (
        "several faults",
        {"title": "x", "stars": "x", "tags": "x", "tone": "x"},
        "Invalid arguments: stars: input should be a valid integer\n"
        "tags: expected array, got string\ntone: input should be 'kind' or 'harsh'",
    ),
]


@pytest.mark.parametrize("version", EVERY)
@pytest.mark.parametrize(("arguments", "message"), table(WRONG))
async def test_wrong_arguments_are_invalid_params(
    arguments: dict[str, Any], message: str, version: str
) -> None:
    """Spec 2026-07-28, server/prompts: Error Handling."""
    error = await get(typed(), "review", at=version, **arguments)
    assert error == {"code": INVALID_PARAMS, "message": message}


MALFORMED = [
    # id, params, error
    ("no name", {}, "Invalid params: name must be a string"),
    ("a number as name", {"name": 3}, "Invalid params: name must be a string"),
    (
        "an array as arguments",
        {"name": "review", "arguments": []},
        "Invalid params: arguments must be an object",
    ),
    ("an unknown name", {"name": "zzz"}, "Unknown prompt: zzz"),
]


@pytest.mark.parametrize(("params", "message"), table(MALFORMED))
async def test_a_malformed_request_is_refused(
    params: dict[str, Any], message: str
) -> None:
    error = await call(typed(), "prompts/get", **params)
    assert error == {"code": INVALID_PARAMS, "message": message}


async def test_a_misspelled_prompt_is_answered_with_what_it_may_stand_for() -> None:
    """Ours."""
    assert await get(typed(), "reviews") == {
        "code": INVALID_PARAMS,
        "message": "Unknown prompt: reviews",
        "data": {"suggestions": ["review"]},
    }


@pytest.mark.parametrize("params", [{}, {"arguments": None}, {"arguments": {}}])
async def test_arguments_may_be_missing_null_or_empty(params: dict[str, Any]) -> None:
    result = await call(prompting("x"), "prompts/get", name="p", **params)
    assert result == {"messages": [said("x")]}


NEWEST = {
    "name": "review",
    "title": "Review",
    "description": "Review a book.",
    "icons": [{"src": "https://example.com/a.png"}],
    "arguments": [
        {
            "name": "title",
            "title": "Title",
            "description": "Of the book.",
            "required": True,
        },
        {"name": "tone", "required": False},
    ],
    "_meta": {"com.example/a": 1},
}
LISTED = [
    # revision, keys that it lacks
    (MODERN, ()),
    (V_2025_11_25, ()),
    (V_2025_06_18, ("icons",)),
    (V_2025_03_26, ("icons", "title", "_meta")),
]


@pytest.mark.parametrize(("version", "lacking"), LISTED)
async def test_definitions_are_listed_as_the_revision_has_them(
    version: str, lacking: tuple[str, ...]
) -> None:
    """DEC-18. Spec 2026-07-28, server/prompts: Listing Prompts, and older ones."""
    app = App("tests")

    @app.prompt(
        title="Review",
        icons=[{"src": "https://example.com/a.png"}],
        meta={"com.example/a": 1},
    )
    def review(
        title: Annotated[str, Field(description="Of the book.", title="Title")],
        ctx: Context,
        tone: str = "kind",
    ) -> str:
        """Review a book."""
        raise NotImplementedError

    @app.prompt
    def plain() -> str:
        raise NotImplementedError

    def cut(definition: dict[str, Any]) -> dict[str, Any]:
        return {key: value for key, value in definition.items() if key not in lacking}

    arguments: Any = NEWEST["arguments"]
    expected = {**cut(NEWEST), "arguments": [cut(argument) for argument in arguments]}
    hints = {"ttlMs": 60_000, "cacheScope": "private"} if version == MODERN else {}
    assert await call(app, "prompts/list", at=version) == {
        "prompts": [expected, {"name": "plain"}],
        **hints,
    }


async def test_arguments_are_described_where_they_are_declared() -> None:
    """DEC-18. A type that is described is not a parameter that is."""
    app = App("tests")

    @app.prompt
    def review(
        book: Book,
        tone: Tone = Tone.KIND,
        title: Annotated[str, Field(title="Title", description="Of all.")] = "",
        stars: Annotated[int, Field(description="Up to five.", le=5)] = 3,
        ctx: Context | None = None,
    ) -> str:
        """Review a book."""
        raise NotImplementedError

    (listed,) = (await call(app, "prompts/list"))["prompts"]
    assert listed["arguments"] == [
        {"name": "book", "required": True},
        {"name": "tone", "required": False},
        {
            "name": "title",
            "title": "Title",
            "description": "Of all.",
            "required": False,
        },
        {"name": "stars", "description": "Up to five.", "required": False},
    ]


async def test_a_prompt_with_an_alias_asks_for_the_alias() -> None:
    """DEC-15."""
    app = App("tests")

    @app.prompt
    def p(from_: Annotated[str, Field(alias="from")]) -> str:
        return from_

    (listed,) = (await call(app, "prompts/list"))["prompts"]
    assert listed["arguments"] == [{"name": "from", "required": True}]
    assert (await get(app))["message"] == "Missing required arguments: from"
    assert await get(app, **{"from": "x"}) == {"messages": [said("x")]}


class Plain:
    """What has no schema."""


async def test_what_a_prompt_or_a_resource_says_it_returns_is_not_published() -> None:
    """DEC-28."""
    app = App("tests")

    @app.prompt
    def p() -> Plain:
        raise NotImplementedError

    @app.resource("a://b")
    def r() -> list[Plain]:
        raise NotImplementedError

    assert (await call(app, "prompts/list"))["prompts"] == [{"name": "p"}]
    listed = (await call(app, "resources/list"))["resources"]
    assert listed == [{"uri": "a://b", "name": "r"}]


async def test_prompts_are_unknown_methods_where_there_are_none() -> None:
    app = App("tests")
    for method in ("prompts/list", "prompts/get"):
        assert await call(app, method, name="x") == {
            "code": -32601,
            "message": "Method not found",
        }
