"""Is a response valid in its revision? Asked of every message that a test sees.

The models are those of `mcp-types`, taken as JSON Schemas and made strict: a key
that the revision does not have is a fault, and so is null for an absent one.
`mcp-types` has no models of its own for the revisions before 2025-11-25; what
their official schemas lack is in `LATER`.
"""

import functools
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final, TypeAlias, get_args

import mcp_types
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]  # no stubs
from jsonschema.exceptions import (  # type: ignore[import-untyped]  # no stubs
    SchemaError,
    best_match,
)
from mcp_types.methods import SERVER_RESULTS
from pydantic import TypeAdapter
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import core_schema

MODERN: Final = "2026-07-28"

Keys: TypeAlias = frozenset[str]

_NEW_IN_2025_11_25: Final[Mapping[str, Keys]] = {
    "Implementation": frozenset({"description", "icons", "websiteUrl"}),
    "Prompt": frozenset({"icons"}),
    "Resource": frozenset({"icons"}),
    "ResourceLink": frozenset({"icons"}),
    "ResourceTemplate": frozenset({"icons"}),
    "ServerCapabilities": frozenset({"tasks"}),
    "Tool": frozenset({"execution", "icons"}),
}
_NEW_IN_2025_06_18: Final[Mapping[str, Keys]] = {
    "Annotations": frozenset({"lastModified"}),
    "AudioContent": frozenset({"_meta"}),
    "BlobResourceContents": frozenset({"_meta"}),
    "CallToolResult": frozenset({"structuredContent"}),
    "EmbeddedResource": frozenset({"_meta"}),
    "ImageContent": frozenset({"_meta"}),
    "Implementation": frozenset({"title"}),
    "Prompt": frozenset({"_meta", "title"}),
    "PromptArgument": frozenset({"title"}),
    "Resource": frozenset({"_meta", "title"}),
    "ResourceLink": frozenset({"type"}),  # the whole of it: no block is left
    "ResourceTemplate": frozenset({"_meta", "title"}),
    "TextContent": frozenset({"_meta"}),
    "TextResourceContents": frozenset({"_meta"}),
    "Tool": frozenset({"_meta", "outputSchema", "title"}),
}


def _merged(*tables: Mapping[str, Keys]) -> Mapping[str, Keys]:
    names = {name for table in tables for name in table}
    return {
        name: frozenset().union(*(table.get(name, frozenset()) for table in tables))
        for name in names
    }


LATER: Final[Mapping[str, Mapping[str, Keys]]] = MappingProxyType(
    {
        MODERN: {},
        "2025-11-25": {},
        "2025-06-18": _NEW_IN_2025_11_25,
        "2025-03-26": _merged(_NEW_IN_2025_11_25, _NEW_IN_2025_06_18),
        # It is served as 2025-03-26.
        "2024-11-05": _merged(_NEW_IN_2025_11_25, _NEW_IN_2025_06_18),
    }
)
"""By revision and model, the keys of the models that the revision lacks."""

NEVER_SENT: Final = frozenset({-32002, -32042, *range(-32099, -32022)})
"""The error codes that 2026-07-28 retired, or keeps and has not defined.

Spec 2026-07-28, basic/index: Error Codes.
"""

_TASKS_OF_2025_11_25: Final[Mapping[str, type[Any]]] = MappingProxyType(
    {
        "tasks/cancel": mcp_types.CancelTaskResult,
        "tasks/get": mcp_types.GetTaskResult,
        "tasks/list": mcp_types.ListTasksResult,
        "tasks/result": mcp_types.CallToolResult,
    }
)
"""What the methods of 2025-11-25 result in that `SERVER_RESULTS` leaves out."""

_ERROR_DATA: Final[Mapping[int, type[Any]]] = MappingProxyType(
    {
        -32021: mcp_types.MissingRequiredClientCapabilityErrorData,
        -32022: mcp_types.UnsupportedProtocolVersionErrorData,
    }
)
_REQUEST_SCOPED: Final = (
    mcp_types.PROTOCOL_VERSION_META_KEY,
    mcp_types.CLIENT_CAPABILITIES_META_KEY,
    mcp_types.CLIENT_INFO_META_KEY,
    mcp_types.LOG_LEVEL_META_KEY,
)

# Spec ext-tasks, tasks: Tasks, Task Creation, Task Polling. They are no part of
# `mcp-types`.
_STATES: Final[Mapping[str, Mapping[str, Any]]] = MappingProxyType(
    {
        "working": {},
        "input_required": {"inputRequests": {"type": "object", "minProperties": 1}},
        "completed": {"result": {"type": "object"}},
        "cancelled": {},
        "failed": {"error": {"type": "object", "required": ["code", "message"]}},
    }
)
"""The states of a task, and the members that it has in each of them alone."""


def _task(result_type: str, status: Mapping[str, Any], **own: Any) -> dict[str, Any]:
    required = {
        "resultType": {"const": result_type},
        "taskId": {"type": "string"},
        "status": status,
        "createdAt": {"type": "string"},
        "lastUpdatedAt": {"type": "string"},
        "ttlMs": {"type": ["integer", "null"]},
        **own,
    }
    optional = {
        "_meta": {"type": "object"},
        "statusMessage": {"type": "string"},
        "pollIntervalMs": {"type": "integer"},
    }
    return {
        "type": "object",
        "properties": {**required, **optional},
        "required": [*required],
        "additionalProperties": False,
    }


_ACKNOWLEDGED: Final[Mapping[str, Any]] = MappingProxyType(
    {
        "properties": {
            "_meta": {"type": "object"},
            "resultType": {"const": "complete"},
        },
        "required": ["resultType"],
        "additionalProperties": False,
    }
)
_TASKS: Final[Mapping[str, Mapping[str, Any]]] = MappingProxyType(
    {
        "tools/call": _task("task", {"enum": [*_STATES]}),
        "tasks/get": {
            "oneOf": [
                _task("complete", {"const": status}, **own)
                for status, own in _STATES.items()
            ]
        },
        "tasks/update": _ACKNOWLEDGED,
        "tasks/cancel": _ACKNOWLEDGED,
    }
)
"""The results of the tasks extension, by method."""


def check_response(message: Mapping[str, Any], method: str, version: str) -> None:
    """Check one decoded JSON-RPC response.

    Args:
        message: The response.
        method: The method of the request that it answers; of no account for an
            error.
        version: The revision that the client speaks.

    Raises:
        AssertionError: The response is not valid, and why.
    """
    assert version in LATER, f"{version!r} is not a revision"
    assert isinstance(message, dict), f"not an object: {message!r}"
    assert message.get("jsonrpc") == "2.0", f"no JSON-RPC 2.0: {message!r}"
    if "error" in message:
        _only(message, {"jsonrpc", "id", "error"})
        _check_error_id(message, version)
        _check_error(message["error"], version)
    else:
        _only(message, {"jsonrpc", "id", "result"})
        assert _is_id(message.get("id")), f"no request id: {message!r}"
        assert isinstance(message.get("result"), dict), f"no result: {message!r}"
        _check_result(message["result"], method, version)


def _only(message: Mapping[str, Any], allowed: set[str]) -> None:
    assert message.keys() <= allowed, f"unknown keys: {message.keys() - allowed}"


def _is_id(value: object) -> bool:
    return isinstance(value, (str, int)) and not isinstance(value, bool)


def _check_error_id(message: Mapping[str, Any], version: str) -> None:
    # Modern errors have no id where the request's is unknown, legacy ones null.
    if version == MODERN:
        fine = "id" not in message or _is_id(message["id"])
    else:
        fine = "id" in message and (message["id"] is None or _is_id(message["id"]))
    assert fine, f"not an id of {version}: {message!r}"


def _check_error(error: Any, version: str) -> None:
    assert isinstance(error, dict), f"not an error object: {error!r}"
    _only(error, {"code", "message", "data"})
    code = error.get("code")
    assert type(code) is int, f"not an error code: {code!r}"
    assert isinstance(error.get("message"), str), f"no message: {error!r}"
    if version == MODERN:
        assert code not in NEVER_SENT, f"{code} is not sent in {version}"
        if code in _ERROR_DATA:
            assert "data" in error, f"{code} has no data"
            _validate(error["data"], _error_data_validator(code), f"data of {code}")


def _check_result(result: dict[str, Any], method: str, version: str) -> None:
    if version == MODERN:
        _check_modern_marks(result)
        if method.startswith("tasks/") or result["resultType"] == "task":
            assert method in _TASKS, f"{method} makes no task"
            _validate(result, Draft202012Validator(_TASKS[method]), "task")
            return
    row = SERVER_RESULTS.get((method, version))
    if version == "2025-11-25":
        row = _TASKS_OF_2025_11_25.get(method, row)
        if method == "tools/call" and "task" in result:
            row = mcp_types.CreateTaskResult
    assert row is not None, f"{version} has no {method}"
    if version == MODERN:
        kind = result["resultType"]
        arms = [arm for arm in get_args(row) or (row,) if _is_kind(arm, kind)]
        assert arms, f"{method} has no result of type {kind!r}"
        row = arms[0]
    _validate(result, _validator(row, version), f"result of {method}")
    for tool in result.get("tools", []):
        _check_schemas(tool)


def _check_modern_marks(result: Mapping[str, Any]) -> None:
    kinds = ("complete", "input_required", "task")
    assert result.get("resultType") in kinds, f"no resultType: {result!r}"
    meta = result.get("_meta", {})
    assert isinstance(meta, dict), f"_meta is not an object: {meta!r}"
    scoped = [key for key in _REQUEST_SCOPED if key in meta]
    assert not scoped, f"_meta of a result has {scoped}"
    if mcp_types.SERVER_INFO_META_KEY in meta:
        info = meta[mcp_types.SERVER_INFO_META_KEY]
        _validate(info, _validator(mcp_types.Implementation, MODERN), "serverInfo")
    if result["resultType"] == "input_required":
        asked = "inputRequests" in result or "requestState" in result
        assert asked, "input_required with neither inputRequests nor requestState"


def _is_kind(arm: type[Any], kind: str) -> bool:
    return (arm.__name__ == "InputRequiredResult") == (kind == "input_required")


def _check_schemas(tool: Mapping[str, Any]) -> None:
    for key in ("inputSchema", "outputSchema"):
        try:
            Draft202012Validator.check_schema(tool.get(key, {}))
        except SchemaError as error:
            raise AssertionError(f"{key} of {tool['name']}: {error.message}") from error


def _validate(value: Any, validator: Draft202012Validator, what: str) -> None:
    fault = best_match(validator.iter_errors(value))
    assert fault is None, f"{what}, at {fault.json_path}: {fault.message}"


@functools.cache
def _validator(model: Any, version: str) -> Draft202012Validator:
    schema = TypeAdapter(model).json_schema(
        by_alias=True, schema_generator=_strict(LATER[version])
    )
    return Draft202012Validator(schema)


@functools.cache
def _error_data_validator(code: int) -> Draft202012Validator:
    schema = TypeAdapter(_ERROR_DATA[code]).json_schema(by_alias=True)
    return Draft202012Validator(schema)


def _strict(later: Mapping[str, Keys]) -> type[GenerateJsonSchema]:
    class Strict(GenerateJsonSchema):
        def model_schema(self, schema: core_schema.ModelSchema) -> JsonSchemaValue:
            generated = super().model_schema(schema)
            name = schema["cls"].__name__
            for key in later.get(name, ()):
                generated["properties"].pop(key)
            if name == "ServerCapabilities":
                # Spec SEP-2133: Server Capabilities, of all revisions.
                generated["properties"]["extensions"] = {"type": "object"}
            # An `EmptyResult` is a `Result`, which the models leave open.
            if name == "Result":
                generated["additionalProperties"] = False
            generated.setdefault("additionalProperties", False)
            return generated

        def default_schema(
            self, schema: core_schema.WithDefaultSchema
        ) -> JsonSchemaValue:
            # A key that may be absent is not null.
            inner = schema["schema"]
            if schema.get("default", ...) is None and inner["type"] == "nullable":
                return self.generate_inner(inner["schema"])
            return super().default_schema(schema)

    return Strict
