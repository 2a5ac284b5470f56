"""A result as a response of the older revisions, cut down by what each one lacks."""

import doctest
from typing import Any

import pytest

from mcpkit.errors import INTERNAL_ERROR, ProtocolError
from mcpkit.protocol import legacy as module
from mcpkit.protocol.content import (
    Audio,
    File,
    Image,
    Message,
    ResourceLink,
    Text,
    resource_contents,
)
from mcpkit.protocol.era import SERVER_INFO
from mcpkit.protocol.jsonrpc import Encoded
from mcpkit.protocol.legacy import (
    definition,
    describes_object,
    implementation,
    shape,
    to_response,
)
from mcpkit.protocol.results import Result
from mcpkit.protocol.versions import REVISIONS
from tests.wire import check_response

LATEST, MIDDLE, OLD = "2025-11-25", "2025-06-18", "2025-03-26"
VERSIONS = [LATEST, MIDDLE, OLD, "2024-11-05"]
ICONS = [{"src": "https://example.com/a.png", "mimeType": "image/png"}]
ANNOTATIONS = {"audience": ["user"], "lastModified": "2026-07-28T00:00:00Z"}
OLD_ANNOTATIONS = {"audience": ["user"]}
TEXT = {"type": "text", "text": "3"}
OBJECT = {"type": "object", "properties": {"a": {"type": "integer"}}}


def answer(version: str, method: str, result: Result) -> dict[str, Any]:
    """Return the result in a response that its revision finds valid."""
    response = to_response(1, result, revision=REVISIONS[version])
    check_response(response, method, version)
    members: dict[str, Any] = response["result"]
    return members


TOOL = {
    "name": "add",
    "title": "Add",
    "description": "Adds.",
    "inputSchema": {"type": "object", "title": "addArguments"},
    "outputSchema": OBJECT,
    "annotations": {"title": "Add", "readOnlyHint": True},
    "icons": ICONS,
    "_meta": {"a": 1},
}
RESOURCE = {
    "uri": "a:b",
    "name": "b",
    "title": "B",
    "description": "d",
    "mimeType": "text/plain",
    "size": 1,
    "annotations": ANNOTATIONS,
    "icons": ICONS,
    "_meta": {"a": 1},
}
TEMPLATE = {
    "uriTemplate": "a:{b}",
    "name": "b",
    "title": "B",
    "annotations": ANNOTATIONS,
    "icons": ICONS,
    "_meta": {"a": 1},
}
PROMPT = {
    "name": "p",
    "title": "P",
    "description": "d",
    "arguments": [{"name": "a", "title": "A", "description": "d", "required": True}],
    "icons": ICONS,
    "_meta": {"a": 1},
}


def without(wire: dict[str, Any], *keys: str, **changed: Any) -> dict[str, Any]:
    return {key: value for key, value in wire.items() if key not in keys} | changed


OLD_TOOL = without(TOOL, "icons", "title", "outputSchema", "_meta")
OLD_RESOURCE = without(RESOURCE, "icons", "title", "_meta", annotations=OLD_ANNOTATIONS)
OLD_TEMPLATE = without(TEMPLATE, "icons", "title", "_meta", annotations=OLD_ANNOTATIONS)
OLD_PROMPT = without(
    PROMPT,
    "icons",
    "title",
    "_meta",
    arguments=[{"name": "a", "description": "d", "required": True}],
)

LISTS: list[tuple[str, str, str, Result, dict[str, Any]]] = [
    # id, version, method, result, members
    (
        "tools whole",
        LATEST,
        "tools/list",
        Result.tools([TOOL], "c"),
        {"tools": [TOOL], "nextCursor": "c"},
    ),
    (
        "META-04 tools without icons",
        MIDDLE,
        "tools/list",
        Result.tools([TOOL]),
        {"tools": [without(TOOL, "icons")]},
    ),
    (
        "tools without titles, output schemas, `_meta`",
        OLD,
        "tools/list",
        Result.tools([TOOL]),
        {"tools": [OLD_TOOL]},
    ),
    (
        "tools of 2024-11-05",
        "2024-11-05",
        "tools/list",
        Result.tools([TOOL]),
        {"tools": [OLD_TOOL]},
    ),
    (
        "resources whole",
        LATEST,
        "resources/list",
        Result.resources([RESOURCE]),
        {"resources": [RESOURCE]},
    ),
    (
        "resources without icons",
        MIDDLE,
        "resources/list",
        Result.resources([RESOURCE]),
        {"resources": [without(RESOURCE, "icons")]},
    ),
    (
        "resources without titles, `_meta`",
        OLD,
        "resources/list",
        Result.resources([RESOURCE]),
        {"resources": [OLD_RESOURCE]},
    ),
    (
        "templates whole",
        LATEST,
        "resources/templates/list",
        Result.resource_templates([TEMPLATE]),
        {"resourceTemplates": [TEMPLATE]},
    ),
    (
        "templates without icons",
        MIDDLE,
        "resources/templates/list",
        Result.resource_templates([TEMPLATE]),
        {"resourceTemplates": [without(TEMPLATE, "icons")]},
    ),
    (
        "templates without titles, `_meta`",
        OLD,
        "resources/templates/list",
        Result.resource_templates([TEMPLATE]),
        {"resourceTemplates": [OLD_TEMPLATE]},
    ),
    (
        "prompts whole",
        LATEST,
        "prompts/list",
        Result.prompts([PROMPT]),
        {"prompts": [PROMPT]},
    ),
    (
        "prompts without icons",
        MIDDLE,
        "prompts/list",
        Result.prompts([PROMPT]),
        {"prompts": [without(PROMPT, "icons")]},
    ),
    (
        "prompts and arguments without titles",
        OLD,
        "prompts/list",
        Result.prompts([PROMPT]),
        {"prompts": [OLD_PROMPT]},
    ),
]


@pytest.mark.parametrize(
    ("version", "method", "result", "members"),
    [pytest.param(*row, id=name) for name, *row in LISTS],
)
def test_definitions_have_what_their_revision_has(
    version: str, method: str, result: Result, members: dict[str, Any]
) -> None:
    """Spec 2025-11-25 and 2025-06-18, changelog: what each one added."""
    assert answer(version, method, result) == members


RICH = {"annotations": ANNOTATIONS, "_meta": {"a": 1}}
CUT = {"annotations": OLD_ANNOTATIONS}
CONTENTS = resource_contents("a:b", "3", "text/plain", {"a": 1})
OLD_CONTENTS = {"uri": "a:b", "mimeType": "text/plain", "text": "3"}
FILE = File("a:b", "3", "text/plain", annotations=ANNOTATIONS, meta={"a": 1})
LINK = ResourceLink("a:b", "b", title="B", annotations=ANNOTATIONS, meta={"a": 1})
LINKED = {"type": "resource_link", "uri": "a:b", "name": "b", "title": "B", **RICH}

BLOCKS: list[tuple[str, Any, dict[str, Any], dict[str, Any]]] = [
    # id, block, what it is from 2025-06-18 on, what it was before
    (
        "a text",
        Text("3", annotations=ANNOTATIONS, meta={"a": 1}),
        {**TEXT, **RICH},
        {**TEXT, **CUT},
    ),
    (
        "an image",
        Image(b"a", annotations=ANNOTATIONS, meta={"a": 1}),
        {"type": "image", "data": "YQ==", "mimeType": "image/png", **RICH},
        {"type": "image", "data": "YQ==", "mimeType": "image/png", **CUT},
    ),
    (
        "a recording",
        Audio(b"a", annotations=ANNOTATIONS, meta={"a": 1}),
        {"type": "audio", "data": "YQ==", "mimeType": "audio/wav", **RICH},
        {"type": "audio", "data": "YQ==", "mimeType": "audio/wav", **CUT},
    ),
    (
        "a file",
        FILE,
        {"type": "resource", "resource": OLD_CONTENTS, **RICH},
        {"type": "resource", "resource": OLD_CONTENTS, **CUT},
    ),
    (
        "a file whose contents have `_meta`",
        {"type": "resource", "resource": CONTENTS},
        {"type": "resource", "resource": CONTENTS},
        {"type": "resource", "resource": OLD_CONTENTS},
    ),
    ("a link, which becomes a text", LINK, LINKED, {"type": "text", "text": "b: a:b"}),
]


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    ("block", "whole", "cut"), [pytest.param(*row, id=name) for name, *row in BLOCKS]
)
def test_blocks_have_what_their_revision_has(
    block: Any, whole: dict[str, Any], cut: dict[str, Any], version: str
) -> None:
    """Spec 2025-06-18, changelog; server/tools: Tool Result, and server/prompts."""
    expected = whole if version in (LATEST, MIDDLE) else cut
    called = answer(version, "tools/call", Result.content(block))
    assert called == {"content": [expected], "isError": False}
    got = answer(
        version, "prompts/get", Result.prompt_get({"role": "user", "content": whole})
    )
    assert got == {"messages": [{"role": "user", "content": expected}]}


@pytest.mark.parametrize("version", VERSIONS)
def test_contents_have_what_their_revision_has(version: str) -> None:
    """Spec 2025-06-18, schema: ResourceContents."""
    read = answer(version, "resources/read", Result.resource_read(CONTENTS))
    expected = CONTENTS if version in (LATEST, MIDDLE) else OLD_CONTENTS
    assert read == {"contents": [expected]}


SAID = {"role": "user", "content": TEXT}

PLAIN: list[tuple[str, str, Result, dict[str, Any]]] = [
    # id, method, result, members
    ("a text", "tools/call", Result.text("3"), {"content": [TEXT], "isError": False}),
    (
        "a failure",
        "tools/call",
        Result.error("3", cause=RuntimeError("secret")),
        {"content": [TEXT], "isError": True},
    ),
    ("no content", "tools/call", Result.raw({}), {"content": [], "isError": False}),
    (
        "META-04 what the modern era adds",
        "tools/call",
        Result.raw(
            {
                "resultType": "complete",
                "ttlMs": 1,
                "cacheScope": "public",
                "content": [],
            }
        ),
        {"content": [], "isError": False},
    ),
    (
        "META-04 hints of its own",
        "resources/read",
        Result.resource_read([], ttl_ms=1, cache_scope="public"),
        {"contents": []},
    ),
    (
        "a prompt",
        "prompts/get",
        Result.prompt_get(Message("3"), description="d"),
        {"description": "d", "messages": [SAID]},
    ),
    (
        "a completion",
        "completion/complete",
        Result.completion(["a"], total=1),
        {"completion": {"values": ["a"], "total": 1}},
    ),
    ("an empty result", "ping", Result.wire({}), {}),
    (
        "`_meta` of the handler",
        "tools/call",
        Result.raw({"_meta": {"a": 1, "b": 2}}, metadata={"a": 3}),
        {"content": [], "isError": False, "_meta": {"a": 3, "b": 2}},
    ),
    (
        "`_meta` that is no object",
        "tools/call",
        Result.raw({"_meta": 5}, metadata={"a": 3}),
        {"content": [], "isError": False, "_meta": {"a": 3}},
    ),
]


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    ("method", "result", "members"),
    [pytest.param(*row, id=name) for name, *row in PLAIN],
)
def test_a_result_has_no_marks_of_the_modern_era(
    method: str, result: Result, members: dict[str, Any], version: str
) -> None:
    """Spec 2025-11-25, schema; ours: `resultType` and cache hints never."""
    assert answer(version, method, result) == members


STRUCTURED: list[tuple[str, Result, Any, str]] = [
    # id, result, structured content, text
    ("an object", Result.structured({"a": 1}), {"a": 1}, '{"a":1}'),
    ("an empty object", Result.structured({}), {}, "{}"),
    ("a list", Result.structured([1]), {"result": [1]}, "[1]"),
    ("a number", Result.structured(3), {"result": 3}, "3"),
    ("a string", Result.structured("a"), {"result": "a"}, '"a"'),
    ("null", Result.structured(None), {"result": None}, "null"),
    ("false", Result.structured(value=False), {"result": False}, "false"),
    (
        "encoded already",
        Result.structured(Encoded(b"[1]")),
        {"result": [1]},
        "[1]",
    ),
]


@pytest.mark.parametrize(
    ("result", "content", "text"),
    [pytest.param(*row, id=name) for name, *row in STRUCTURED],
)
def test_structured_content_is_an_object(
    result: Result, content: Any, text: str
) -> None:
    """Spec 2025-06-18, server/tools: Structured Content; ours: how it is wrapped."""
    members = {"content": [{"type": "text", "text": text}], "isError": False}
    whole = {**members, "structuredContent": content}
    assert answer(LATEST, "tools/call", result) == whole
    assert answer(MIDDLE, "tools/call", result) == whole
    assert answer(OLD, "tools/call", result) == members


def test_structured_content_of_a_raw_result_is_wrapped_too() -> None:
    result = Result.raw({"structuredContent": [1]})
    assert answer(LATEST, "tools/call", result) == {
        "content": [],
        "isError": False,
        "structuredContent": {"result": [1]},
    }


def test_the_output_schema_decides_what_is_wrapped() -> None:
    """Ours: a value is wrapped exactly when the schema of its tool is."""
    result = Result.structured({"a": 1})
    result.object_schema = False
    assert answer(LATEST, "tools/call", result)["structuredContent"] == {
        "result": {"a": 1}
    }
    result.object_schema = True
    assert answer(LATEST, "tools/call", result)["structuredContent"] == {"a": 1}


def test_encoded_members_stay_encoded() -> None:
    """Ours: a structured value is encoded once."""
    whole, wrapped = shape(Result.structured({})), shape(Result.structured([1]))
    assert whole["structuredContent"] == Encoded(b"{}")
    assert wrapped["structuredContent"] == Encoded(b'{"result":[1]}')


OBJECTS: list[tuple[str, dict[str, Any], bool]] = [
    # id, schema, whether it admits objects alone
    ("an object", OBJECT, True),
    ("an array", {"type": "array"}, False),
    ("anything", {}, False),
    ("a choice of types", {"type": ["object", "null"]}, False),
    ("a choice of schemas", {"anyOf": [OBJECT]}, False),
    ("a reference", {"$ref": "#/$defs/A", "$defs": {"A": OBJECT}}, True),
    ("a reference to another", {"$ref": "#/$defs/A", "$defs": {"A": {}}}, False),
    ("a reference to nothing", {"$ref": "#/$defs/A"}, False),
    ("a reference elsewhere", {"$ref": "https://example.com/a"}, False),
    ("an object by reference", {"type": "object", "$ref": "#/$defs/A"}, True),
]


@pytest.mark.parametrize(
    ("schema", "truth"), [pytest.param(*row, id=name) for name, *row in OBJECTS]
)
def test_describes_object(schema: dict[str, Any], *, truth: bool) -> None:
    """Spec 2025-11-25, schema: Tool, `outputSchema` of type object."""
    assert describes_object(schema) is truth


SCHEMAS: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    # id, output schema, output schema in the legacy era
    ("an object's", OBJECT, OBJECT),
    (
        "an array's",
        {"type": "array", "items": {"type": "integer"}},
        {
            "type": "object",
            "properties": {"result": {"type": "array", "items": {"type": "integer"}}},
            "required": ["result"],
        },
    ),
    (
        "an array's of references",
        {"type": "array", "items": {"$ref": "#/$defs/A"}, "$defs": {"A": OBJECT}},
        {
            "type": "object",
            "properties": {"result": {"type": "array", "items": {"$ref": "#/$defs/A"}}},
            "required": ["result"],
            "$defs": {"A": OBJECT},
        },
    ),
    (
        "a reference to an object's",
        {"$ref": "#/$defs/A", "$defs": {"A": OBJECT}},
        {"type": "object", "$ref": "#/$defs/A", "$defs": {"A": OBJECT}},
    ),
    (
        "a list of lists of itself",
        {
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "type": "array",
            "items": {"anyOf": [{"$ref": "#"}, {"$ref": "#/$defs/A"}]},
            "$defs": {"A": {"properties": {"again": {"$ref": "#"}}}},
        },
        {
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "type": "object",
            "properties": {
                "result": {
                    "type": "array",
                    "items": {
                        "anyOf": [
                            {"$ref": "#/properties/result"},
                            {"$ref": "#/$defs/A"},
                        ]
                    },
                }
            },
            "required": ["result"],
            "$defs": {"A": {"properties": {"again": {"$ref": "#/properties/result"}}}},
        },
    ),
    (
        "a reference to a part, to older definitions, to an anchor",
        {
            "prefixItems": [
                {"$anchor": "first"},
                {"$ref": "#/prefixItems/0"},
                {"$ref": "#/definitions/A"},
                {"$ref": "#first"},
                {"$dynamicRef": "#"},
                {"$recursiveRef": "#"},
            ],
            "definitions": {"A": {"not": {"$ref": "#"}}},
        },
        {
            "type": "object",
            "properties": {
                "result": {
                    "prefixItems": [
                        {"$anchor": "first"},
                        {"$ref": "#/properties/result/prefixItems/0"},
                        {"$ref": "#/properties/result/definitions/A"},
                        {"$ref": "#first"},
                        {"$dynamicRef": "#/properties/result"},
                        {"$ref": "#/properties/result"},
                    ],
                    "definitions": {"A": {"not": {"$ref": "#/properties/result"}}},
                }
            },
            "required": ["result"],
        },
    ),
    (
        "what looks like a reference, and is none",
        {
            "enum": [{"$ref": "#"}],
            "properties": {"$ref": {"const": {"$ref": "#"}}},
            "required": ["$ref"],
        },
        {
            "type": "object",
            "properties": {
                "result": {
                    "enum": [{"$ref": "#"}],
                    "properties": {"$ref": {"const": {"$ref": "#"}}},
                    "required": ["$ref"],
                }
            },
            "required": ["result"],
        },
    ),
    (
        "a document of its own",
        {
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "$id": "https://example.com/s",
            "items": {"$ref": "#/$defs/A"},
            "$defs": {"A": {"$ref": "#"}},
        },
        {
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "type": "object",
            "properties": {
                "result": {
                    "$id": "https://example.com/s",
                    "items": {"$ref": "#/$defs/A"},
                    "$defs": {"A": {"$ref": "#"}},
                }
            },
            "required": ["result"],
        },
    ),
    (
        "anything's",
        {},
        {"type": "object", "properties": {"result": {}}, "required": ["result"]},
    ),
]


@pytest.mark.parametrize(
    ("schema", "sent"), [pytest.param(*row, id=name) for name, *row in SCHEMAS]
)
def test_an_output_schema_is_an_objects(
    schema: dict[str, Any], sent: dict[str, Any]
) -> None:
    """Spec 2025-11-25, server/tools: Output Schema; ours: how it is wrapped."""
    tool = {**OLD_TOOL, "outputSchema": schema}
    listed = answer(LATEST, "tools/list", Result.tools([tool]))
    assert listed == {"tools": [{**OLD_TOOL, "outputSchema": sent}]}
    assert answer(MIDDLE, "tools/list", Result.tools([tool])) == listed


def test_cutting_down_leaves_the_definition_as_it_was() -> None:
    tool, prompt = {**TOOL}, {**PROMPT}
    definition(tool, REVISIONS[OLD])
    definition(prompt, REVISIONS[OLD])
    shape(Result.content(RICH | TEXT), revision=REVISIONS[OLD])
    assert (tool, prompt) == (TOOL, PROMPT)
    assert RICH["annotations"] is ANNOTATIONS
    assert "lastModified" in ANNOTATIONS


INFO = {
    "name": "bookshop",
    "version": "1",
    "title": "Bookshop",
    "description": "d",
    "websiteUrl": "https://example.com",
    "icons": ICONS,
}

INFOS: list[tuple[str, dict[str, Any]]] = [
    # version, implementation
    ("2026-07-28", INFO),
    (LATEST, INFO),
    (MIDDLE, {"name": "bookshop", "version": "1", "title": "Bookshop"}),
    (OLD, {"name": "bookshop", "version": "1"}),
]


@pytest.mark.parametrize(("version", "info"), INFOS, ids=[row[0] for row in INFOS])
def test_an_implementation_has_what_its_revision_has(
    version: str, info: dict[str, Any]
) -> None:
    """Spec 2025-11-25 and 2025-06-18, schema: Implementation."""
    assert implementation(INFO, REVISIONS[version]) == info
    if version != "2026-07-28":
        handshake = {"protocolVersion": version, "capabilities": {}, "serverInfo": info}
        assert answer(version, "initialize", Result.wire(handshake)) == handshake


ERRORS: list[tuple[str, ProtocolError, dict[str, Any]]] = [
    # id, error, error of the response
    (
        "a missing resource keeps its code",
        ProtocolError(-32002, "Resource not found", {"uri": "a:b"}),
        {"code": -32002, "message": "Resource not found", "data": {"uri": "a:b"}},
    ),
    (
        "RPC-13 an unknown tool",
        ProtocolError(-32602, "Unknown tool: nope"),
        {"code": -32602, "message": "Unknown tool: nope"},
    ),
    (
        "a code that is no longer sent",
        ProtocolError(-32042, "No", None),
        {"code": -32042, "message": "No", "data": None},
    ),
]


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    ("error", "sent"), [pytest.param(*row, id=name) for name, *row in ERRORS]
)
def test_an_error_is_sent_as_it_is(
    error: ProtocolError, sent: dict[str, Any], version: str
) -> None:
    """Spec 2025-11-25, server/resources: Error Handling."""
    response = to_response("1", error, revision=REVISIONS[version])
    assert response == {"jsonrpc": "2.0", "id": "1", "error": sent}
    check_response(response, "resources/read", version)


UNSHAPED: list[tuple[str, Result, str]] = [
    # id, result, what is said
    (
        "a question",
        Result.input_required({"ask": {"method": "roots/list"}}, "s"),
        "MRTR input requests require protocol 2026-07-28",
    ),
    ("a task", Result.task({"taskId": "t"}), "Tasks require protocol 2026-07-28"),
]


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    ("result", "message"), [pytest.param(*row, id=name) for name, *row in UNSHAPED]
)
def test_what_the_era_does_not_have_is_an_internal_error(
    result: Result, message: str, version: str
) -> None:
    """Seed ConduitMcp.Handler: Multi round-trip requests, and Tasks extension."""
    response = to_response(1, result, revision=REVISIONS[version])
    assert response == {
        "jsonrpc": "2.0",
        "id": 1,
        "error": {"code": INTERNAL_ERROR, "message": message},
    }
    check_response(response, "tools/call", version)


def test_a_result_that_nests_deeper_than_a_message_may_is_sent() -> None:
    """Ours: the bounds are for what comes in."""
    value: Any = 1
    for _ in range(200):
        value = [value]
    result = to_response(1, Result.structured(value))["result"]
    assert result["structuredContent"] == {"result": value}


def test_the_examples_hold() -> None:
    result = doctest.testmod(module)
    assert (result.failed, result.attempted > 0) == (0, True)


@pytest.mark.parametrize("version", ["2025-11-25", "2025-06-18", "2025-03-26"])
def test_a_legacy_result_never_names_the_server(version: str) -> None:
    """Ours: `serverInfo` in `_meta` came with 2026-07-28."""
    meta = {SERVER_INFO: {"name": "a", "version": "1"}}
    revision = REVISIONS[version]
    bare = shape(Result.raw({"content": [], "_meta": meta}), revision=revision)
    assert "_meta" not in bare
    kept = shape(
        Result.raw({"_meta": meta}, metadata={"example.com/a": 1}), revision=revision
    )
    assert kept["_meta"] == {"example.com/a": 1}
