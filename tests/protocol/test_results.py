"""The neutral result: every builder, and what becomes of what a handler returns."""

import dataclasses
import doctest
from collections.abc import Callable
from typing import Any, get_args

import pytest

from mcpkit.protocol import results as module
from mcpkit.protocol.content import Image, Message, Text, resource_contents
from mcpkit.protocol.jsonrpc import Encoded
from mcpkit.protocol.results import (
    Cache,
    CacheScope,
    Kind,
    Result,
    normalize,
)

TEXT = {"type": "text", "text": "3"}
PICTURE = {"type": "image", "data": "YQ==", "mimeType": "image/png"}
CONTENTS = resource_contents("a:b", "3")
SAID = {"role": "user", "content": TEXT}
ANSWERED = {"role": "assistant", "content": TEXT}
TOOL = {"name": "add", "inputSchema": {"type": "object"}}
ASKED = {"ask": {"method": "roots/list"}}

BUILT: list[tuple[str, Result, Kind, dict[str, Any]]] = [
    # id, result, kind, members
    ("text/2", Result.text("3"), "text", {"content": [TEXT], "isError": False}),
    (
        "structured/2",
        Result.structured({"a": [1, None]}),
        "structured",
        {
            "content": [{"type": "text", "text": '{"a":[1,null]}'}],
            "structuredContent": Encoded(b'{"a":[1,null]}'),
            "isError": False,
        },
    ),
    (
        "structured/2, with content of its own",
        Result.structured({"a": 1}, content=["3", Image(b"a")]),
        "raw",
        {
            "content": [TEXT, PICTURE],
            "structuredContent": {"a": 1},
            "isError": False,
        },
    ),
    (
        "structured/2, of what is encoded already",
        Result.structured(Encoded(b"[1]")),
        "structured",
        {
            "content": [{"type": "text", "text": "[1]"}],
            "structuredContent": Encoded(b"[1]"),
            "isError": False,
        },
    ),
    (
        "structured/2, of null",
        Result.structured(None),
        "structured",
        {
            "content": [{"type": "text", "text": "null"}],
            "structuredContent": Encoded(b"null"),
            "isError": False,
        },
    ),
    (
        "resource/2, of one block",
        Result.resource(PICTURE),
        "resource",
        {"content": [PICTURE], "isError": False},
    ),
    (
        "resource/2, of a list",
        Result.content(["3", Image(b"a"), PICTURE]),
        "resource",
        {"content": [TEXT, PICTURE, PICTURE], "isError": False},
    ),
    (
        "resource/2, of none",
        Result.content([]),
        "resource",
        {"content": [], "isError": False},
    ),
    ("error/2", Result.error("3"), "error", {"content": [TEXT], "isError": True}),
    (
        "error/2, of content",
        Result.error(["3", Image(b"a")]),
        "error",
        {"content": [TEXT, PICTURE], "isError": True},
    ),
    ("raw/1, of nothing", Result.raw({}), "raw", {"content": [], "isError": False}),
    (
        "raw/1",
        Result.raw(
            {"content": [TEXT], "isError": True, "structuredContent": 3, "a": 1}
        ),
        "raw",
        {"content": [TEXT], "isError": True, "structuredContent": 3, "a": 1},
    ),
    ("wire/2", Result.wire({"a": 1}), "wire", {"a": 1}),
    ("tools/1", Result.tools([TOOL]), "tools", {"tools": [TOOL]}),
    (
        "tools/1, a page of them",
        Result.tools([TOOL], "c"),
        "tools",
        {"tools": [TOOL], "nextCursor": "c"},
    ),
    (
        "tools/1, with a cursor that is empty",
        Result.tools([], ""),
        "tools",
        {"tools": [], "nextCursor": ""},
    ),
    (
        "resources/1",
        Result.resources([{"uri": "a:b", "name": "b"}], "c"),
        "resources",
        {"resources": [{"uri": "a:b", "name": "b"}], "nextCursor": "c"},
    ),
    (
        "resource_templates/1",
        Result.resource_templates([{"uriTemplate": "a:{b}", "name": "b"}]),
        "resource_templates",
        {"resourceTemplates": [{"uriTemplate": "a:{b}", "name": "b"}]},
    ),
    (
        "prompts/1",
        Result.prompts([{"name": "p"}]),
        "prompts",
        {"prompts": [{"name": "p"}]},
    ),
    (
        "resource_read/2, of one map",
        Result.resource_read(CONTENTS),
        "resource_read",
        {"contents": [CONTENTS]},
    ),
    (
        "resource_read/2, of a list",
        Result.resource_read([CONTENTS, CONTENTS]),
        "resource_read",
        {"contents": [CONTENTS, CONTENTS]},
    ),
    (
        "prompt_get/2, of one text",
        Result.prompt_get("3"),
        "prompt_get",
        {"messages": [SAID]},
    ),
    (
        "prompt_get/2, of one message",
        Result.prompt_get(Message("3", "assistant")),
        "prompt_get",
        {"messages": [ANSWERED]},
    ),
    (
        "prompt_get/2, of one map",
        Result.prompt_get(SAID),
        "prompt_get",
        {"messages": [SAID]},
    ),
    (
        "prompt_get/2, of a list, with a description",
        Result.prompt_get(
            ["3", Message(Text("3"), "assistant"), SAID], description="d"
        ),
        "prompt_get",
        {"description": "d", "messages": [SAID, ANSWERED, SAID]},
    ),
    (
        "completion/2",
        Result.completion(["a", "b"]),
        "completion",
        {"completion": {"values": ["a", "b"]}},
    ),
    (
        "completion/2, with hints",
        Result.completion(("a",), total=9, has_more=True),
        "completion",
        {"completion": {"values": ["a"], "total": 9, "hasMore": True}},
    ),
    (
        "completion/2, of none",
        Result.completion([], total=0, has_more=False),
        "completion",
        {"completion": {"values": [], "total": 0, "hasMore": False}},
    ),
    (
        "completion/2, of a hundred",
        Result.completion(["a"] * 100),
        "completion",
        {"completion": {"values": ["a"] * 100}},
    ),
    (
        "completion/2, of more than are sent",
        Result.completion([str(number) for number in range(101)]),
        "completion",
        {
            "completion": {
                "values": [str(number) for number in range(100)],
                "total": 101,
                "hasMore": True,
            }
        },
    ),
    (
        "completion/2, of more than are sent, of even more",
        Result.completion(["a"] * 101, total=500, has_more=False),
        "completion",
        {"completion": {"values": ["a"] * 100, "total": 500, "hasMore": True}},
    ),
    ("subscription", Result.subscription({"a": 1}), "subscription", {}),
    (
        "input_required/1, of requests",
        Result.input_required(ASKED),
        "input_required",
        {"inputRequests": ASKED},
    ),
    (
        "input_required/1, of a state",
        Result.input_required(request_state="s"),
        "input_required",
        {"requestState": "s"},
    ),
    (
        "input_required/1, of both",
        Result.input_required(ASKED, "s"),
        "input_required",
        {"inputRequests": ASKED, "requestState": "s"},
    ),
    (
        "input_required/1, of no request and an empty state",
        Result.input_required({}, ""),
        "input_required",
        {"inputRequests": {}, "requestState": ""},
    ),
    ("task/1", Result.task({"taskId": "t"}), "task", {"taskId": "t"}),
]


@pytest.mark.parametrize(
    ("result", "kind", "members"), [pytest.param(*row, id=name) for name, *row in BUILT]
)
def test_a_builder_makes_a_result(
    result: Result, kind: Kind, members: dict[str, Any]
) -> None:
    """Seed Snodo.Result: its builders; ConduitMcp.Protocol.Modern: `{:task, task}`."""
    assert (result.kind, result.members()) == (kind, members)


def test_every_kind_has_a_builder() -> None:
    """Seed Snodo.Result: kind/0."""
    assert {kind for _, _, kind, _ in BUILT} == set(get_args(Kind))


@pytest.mark.parametrize(
    "result", [pytest.param(result, id=name) for name, result, *_ in BUILT]
)
def test_the_members_are_a_copy(result: Result) -> None:
    """Ours: a shaper may change what it is given."""
    members = result.members()
    members["added"] = True
    assert "added" not in result.members()


METADATA: dict[str, Callable[..., Result]] = {
    "text/2": lambda **given: Result.text("3", **given),
    "structured/2": lambda **given: Result.structured(3, **given),
    "resource/2": lambda **given: Result.resource([], **given),
    "error/2": lambda **given: Result.error("3", **given),
    "raw/1": lambda **given: Result.raw({}, **given),
    "wire/2": lambda **given: Result.wire({}, **given),
    "resource_read/2": lambda **given: Result.resource_read([], **given),
    "prompt_get/2": lambda **given: Result.prompt_get([], **given),
}


@pytest.mark.parametrize("build", METADATA.values(), ids=METADATA)
def test_a_builder_takes_metadata(build: Callable[..., Result]) -> None:
    """Seed Snodo.Result: `:metadata`, whose string keys are added to `_meta`."""
    assert build(metadata={"com.example/a": 1}).metadata == {"com.example/a": 1}
    assert not build().metadata


def test_the_end_of_a_subscription_is_its_metadata() -> None:
    """Seed Snodo.Result: kind/0, `:subscription`."""
    assert Result.subscription({"a": 1}).metadata == {"a": 1}


def test_an_error_keeps_its_cause_to_itself() -> None:
    """Seed Snodo.Result: error/2, `:error`, which is not sent; ERR-01."""
    cause = RuntimeError("postgres://user:pw@host")
    result = Result.error("It failed", cause=cause)
    assert result.cause is cause
    assert result.members() == {
        "content": [{"type": "text", "text": "It failed"}],
        "isError": True,
    }


OVERRIDES: list[tuple[str, dict[str, Any], int | None, CacheScope | None]] = [
    # id, arguments, time, scope
    ("neither", {}, None, None),
    ("a time", {"ttl_ms": 0}, 0, None),
    ("a scope", {"cache_scope": "public"}, None, "public"),
    ("both", {"ttl_ms": 5, "cache_scope": "private"}, 5, "private"),
]


@pytest.mark.parametrize(
    ("arguments", "ttl_ms", "scope"),
    [pytest.param(*row, id=name) for name, *row in OVERRIDES],
)
def test_a_read_may_override_its_cache_hints(
    arguments: dict[str, Any], ttl_ms: int | None, scope: CacheScope | None
) -> None:
    """Seed Snodo.Result: resource_read/2, `:ttl_ms` and `:cache_scope`."""
    result = Result.resource_read(CONTENTS, **arguments)
    assert (result.ttl_ms, result.cache_scope) == (ttl_ms, scope)


def test_a_question_has_requests_or_a_state() -> None:
    """Seed Snodo.Result: input_required/1; Spec 2026-07-28, basic/patterns/mrtr."""
    with pytest.raises(ValueError, match="give input_requests, request_state, or both"):
        Result.input_required()


def test_the_requests_of_a_question_have_keys() -> None:
    """Spec 2026-07-28, basic/patterns/mrtr."""
    asked: Any = [{"method": "roots/list"}]
    with pytest.raises(ValueError, match="input_requests is a dict, not"):
        Result.input_required(asked)


def test_a_structured_value_without_a_json_form_is_a_value_error() -> None:
    with pytest.raises(ValueError, match="a object has no JSON form"):
        Result.structured(object()).members()


CACHES = [(0, "private"), (60_000, "public"), (2**53, "private")]


@pytest.mark.parametrize(("ttl_ms", "scope"), CACHES)
def test_cache_hints_are_a_time_and_a_scope(ttl_ms: int, scope: CacheScope) -> None:
    """Spec 2026-07-28, server/utilities/caching: Cacheable Model."""
    cache = Cache(ttl_ms=ttl_ms, scope=scope)
    assert dataclasses.asdict(cache) == {"ttl_ms": ttl_ms, "scope": scope}


NO_CACHES: list[tuple[str, Any, Any, str]] = [
    # id, time, scope, what is said
    ("META-03 a time in the past", -1, "private", "zero or more, not -1"),
    ("a fraction", 0.5, "private", "zero or more, not 0.5"),
    ("a boolean", True, "private", "zero or more, not True"),
    ("a string", "0", "private", "zero or more, not '0'"),
    ("nothing", None, "private", "zero or more, not None"),
    ("another scope", 0, "shared", "not 'shared'"),
    ("no scope", 0, None, "not None"),
]


@pytest.mark.parametrize(
    ("ttl_ms", "scope", "fault"),
    [pytest.param(*row, id=name) for name, *row in NO_CACHES],
)
def test_other_cache_hints_are_refused(ttl_ms: Any, scope: Any, fault: str) -> None:
    """Spec 2026-07-28, server/utilities/caching: Time-to-Live (TTL) Field."""
    with pytest.raises(ValueError, match=fault):
        Cache(ttl_ms=ttl_ms, scope=scope)


NORMALIZED: list[tuple[str, Any, Result]] = [
    # id, value, result
    ("a string", "3", Result.text("3")),
    ("an empty string", "", Result.text("")),
    ("nothing", None, Result.content([])),
    ("a number", 3, Result.structured(3)),
    ("false", False, Result.structured(value=False)),
    ("a dictionary", {"a": 1}, Result.structured({"a": 1})),
    ("a dictionary like a block", TEXT, Result.structured(TEXT)),
    ("a list", [1, "3"], Result.structured([1, "3"])),
    ("a list of strings", ["3"], Result.structured(["3"])),
    ("an empty list", [], Result.structured([])),
    ("bytes", b"3", Result.structured(b"3")),
    ("a block", Text("3"), Result.content([TEXT])),
    ("an image", Image(b"a"), Result.content([PICTURE])),
    ("a list of blocks", [Text("3"), Image(b"a")], Result.content([TEXT, PICTURE])),
    ("blocks and texts", ("3", Image(b"a")), Result.content([TEXT, PICTURE])),
    (
        "blocks and what is none",
        [Image(b"a"), {"a": 1}, None, 3, b"\xff"],
        Result.content([PICTURE, '{"a":1}', "3", '"/w=="']),
    ),
]


@pytest.mark.parametrize(
    ("value", "result"), [pytest.param(*row, id=name) for name, *row in NORMALIZED]
)
def test_what_a_tool_returns_becomes_a_result(value: Any, result: Result) -> None:
    """Seed Snodo.Result: normalize/1; ours: `None`, and content blocks."""
    assert normalize(value) == result


def test_a_result_stays_as_it_is() -> None:
    """Seed Snodo.Result: normalize/1, a result is returned unchanged."""
    result = Result.text("3")
    assert normalize(result) is result


def test_the_examples_hold() -> None:
    result = doctest.testmod(module)
    assert (result.failed, result.attempted > 0) == (0, True)
