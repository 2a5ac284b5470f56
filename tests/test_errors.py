"""The tree of errors, and the codes of the wire."""

import doctest
from typing import Any

import mcp_types.jsonrpc
import pytest

from mcpkit import errors
from mcpkit.errors import (
    UNSET,
    AnswerError,
    HTTPError,
    InputRequiredError,
    MCPKitError,
    ProtocolError,
    RequestCancelledError,
    ResourceNotFoundError,
    ScopeError,
    SetupError,
    StoppedError,
    ToolError,
)

CODES: list[tuple[str, int]] = [
    # name, code
    ("PARSE_ERROR", -32700),
    ("INVALID_REQUEST", -32600),
    ("METHOD_NOT_FOUND", -32601),
    ("INVALID_PARAMS", -32602),
    ("INTERNAL_ERROR", -32603),
    ("SERVER_ERROR", -32000),
    ("RESOURCE_NOT_FOUND", -32002),
    ("HEADER_MISMATCH", -32020),
    ("MISSING_REQUIRED_CLIENT_CAPABILITY", -32021),
    ("UNSUPPORTED_PROTOCOL_VERSION", -32022),
    ("URL_ELICITATION_REQUIRED", -32042),
]


@pytest.mark.parametrize(("name", "code"), CODES, ids=[name for name, _ in CODES])
def test_a_code_is_that_of_the_schema(name: str, code: int) -> None:
    """Spec 2026-07-28, basic/index: Error Codes; 2025-11-25, schema."""
    assert getattr(errors, name) == code
    assert getattr(mcp_types.jsonrpc, name, code) == code


def test_there_is_no_other_code() -> None:
    named = {name for name, value in vars(errors).items() if isinstance(value, int)}
    assert named == {name for name, _ in CODES}


TREE: list[tuple[type[BaseException], type[BaseException]]] = [
    # class, parent
    (MCPKitError, Exception),
    (SetupError, MCPKitError),
    (ToolError, MCPKitError),
    (AnswerError, ToolError),
    (StoppedError, MCPKitError),
    (InputRequiredError, StoppedError),
    (RequestCancelledError, StoppedError),
    (ProtocolError, MCPKitError),
    (ResourceNotFoundError, ProtocolError),
    (ScopeError, ProtocolError),
    (HTTPError, ProtocolError),
]


@pytest.mark.parametrize(
    ("error", "parent"), TREE, ids=[row[0].__name__ for row in TREE]
)
def test_an_error_has_its_place_in_the_tree(
    error: type[BaseException], parent: type[BaseException]
) -> None:
    """Ours: one root, three kinds."""
    assert error.__bases__ == (parent,)


def test_every_error_of_the_module_is_in_the_tree() -> None:
    defined = {
        value
        for value in vars(errors).values()
        if isinstance(value, type) and issubclass(value, BaseException)
    }
    assert defined == {error for error, _ in TREE}


DATA: list[tuple[str, tuple[Any, ...], Any]] = [
    # id, arguments after the message, data
    ("not given", (), UNSET),
    ("null", (None,), None),
    ("false", (False,), False),
    ("an object", ({"a": 1},), {"a": 1}),
]


@pytest.mark.parametrize(
    ("arguments", "data"), [pytest.param(*row, id=name) for name, *row in DATA]
)
def test_a_protocol_error_has_a_code_a_message_and_data(
    arguments: tuple[Any, ...], data: Any
) -> None:
    """Spec 2026-07-28, basic/index: Error Responses."""
    error = ProtocolError(-32602, "No", *arguments)
    assert (error.code, error.message, error.data, str(error)) == (
        -32602,
        "No",
        data,
        "No",
    )


@pytest.mark.parametrize("code", [0, 1, -1, -32602, 2**40])
def test_any_integer_is_a_code(code: int) -> None:
    assert ProtocolError(code, "No").code == code


@pytest.mark.parametrize("code", ["x", "-32602", 1.0, True, None], ids=repr)
def test_anything_else_is_no_code(code: Any) -> None:
    """Spec 2026-07-28, basic/index: error codes MUST be integers; ERR-04."""
    with pytest.raises(TypeError, match="an error code is an integer, not"):
        ProtocolError(code, "No")


def test_a_scope_error_names_its_scopes_in_order() -> None:
    """Spec 2026-07-28, basic/authorization: Scope Challenge Handling."""
    error = ScopeError({"orders:write", "orders:read"})
    assert error.scopes == ["orders:read", "orders:write"]
    assert (error.code, error.message, error.data) == (
        -32600,
        "Insufficient scope: orders:read orders:write needed",
        {"requiredScopes": ["orders:read", "orders:write"]},
    )


def test_a_value_that_was_not_given_is_falsy_and_says_so() -> None:
    assert (repr(UNSET), bool(UNSET)) == ("UNSET", False)


def test_the_examples_hold() -> None:
    assert doctest.testmod(errors).failed == 0
