"""Everything mcpkit raises on purpose, and the error codes of the wire.

* MCPKitError
  x SetupError       raised while decorators run; a bug in the server's own code
  x ToolError        raised by a handler; the model reads the message
    + AnswerError             the client did not answer a question
  x StoppedError     a handler is stopped: to ask its client, or for good
  x ProtocolError    becomes a JSON-RPC error, with a code, a message, data
    + ResourceNotFoundError   there is no such resource
    + ScopeError              the caller lacks a scope
    + HTTPError               it has an HTTP status of its own

The codes are named as in `schema/2026-07-28/schema.ts`. `RESOURCE_NOT_FOUND`
and `URL_ELICITATION_REQUIRED` belong to older revisions, and the modern shaper
never sends them.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final

PARSE_ERROR: Final = -32700
INVALID_REQUEST: Final = -32600
METHOD_NOT_FOUND: Final = -32601
INVALID_PARAMS: Final = -32602
INTERNAL_ERROR: Final = -32603
SERVER_ERROR: Final = -32000
RESOURCE_NOT_FOUND: Final = -32002
HEADER_MISMATCH: Final = -32020
MISSING_REQUIRED_CLIENT_CAPABILITY: Final = -32021
UNSUPPORTED_PROTOCOL_VERSION: Final = -32022
URL_ELICITATION_REQUIRED: Final = -32042


class _Unset:
    """The type of `UNSET`, for "not given" where `None` is a value."""

    def __repr__(self) -> str:
        return "UNSET"

    def __bool__(self) -> bool:
        return False


UNSET: Final = _Unset()
"""Stands for a value that was not given."""


class MCPKitError(Exception):
    """The root of every exception mcpkit raises on purpose."""


class SetupError(MCPKitError):
    """A decorator or an option was used in a way that can never work.

    Raised while the module that defines the server is imported, so that a
    mistake is a traceback at start-up and not an error at the first request.
    """


class ToolError(MCPKitError):
    """A tool failed in a way the model should hear about.

    The message is sent to the client, as the text of an `isError` result. Any
    other exception reaches the client as "Tool x failed", and the log in full.
    """


class AnswerError(ToolError):
    """A client did not answer what it was asked, in the legacy era.

    It refused, took too long, or went away. The message is fit for the model.
    """


class StoppedError(MCPKitError):
    """What the dependencies of a handler see when it is stopped before its end."""


class InputRequiredError(StoppedError):
    """The handler was stopped to ask its client something, and runs again."""


class RequestCancelledError(StoppedError):
    """Nobody waits for the result of the handler any more."""


class ProtocolError(MCPKitError):
    """The request fails as a whole, with a JSON-RPC error.

    The message and the data are sent as they are: put no secret in them.

    Args:
        code: An integer outside the range that MCP reserves for itself, or one
            of the constants of this module.
        message: One sentence for the developer of the client.
        data: Any JSON value. Left out of the error when it is not given.
    """

    def __init__(self, code: int, message: str, data: Any = UNSET) -> None:
        if isinstance(code, bool) or not isinstance(code, int):
            raise TypeError(f"an error code is an integer, not {code!r}")
        if not isinstance(message, str):
            raise TypeError(f"the message of an error is a string, not {message!r}")
        super().__init__(message)
        self.code = code
        self.message = message
        self.data = data


class ResourceNotFoundError(ProtocolError):
    """There is no such resource: what a template's function raises for a URI."""

    def __init__(self, message: str = "Resource not found", data: Any = UNSET) -> None:
        super().__init__(RESOURCE_NOT_FOUND, message, data)


class ScopeError(ProtocolError):
    """The caller lacks a scope. Over HTTP it is 403, `insufficient_scope`.

    Args:
        scopes: The scopes that are needed.
    """

    def __init__(self, scopes: Iterable[str]) -> None:
        self.scopes = sorted(scopes)
        super().__init__(
            INVALID_REQUEST,
            f"Insufficient scope: {' '.join(self.scopes)} needed",
            {"requiredScopes": self.scopes},
        )


class HTTPError(ProtocolError):
    """A JSON-RPC error that has an HTTP status and headers, where it is sent so.

    Args:
        status: The status, in both eras.
        code: The code of the JSON-RPC error.
        message: Its message.
        data: Its data.
        headers: Headers of the response.
    """

    def __init__(
        self,
        status: int,
        code: int,
        message: str,
        *,
        data: Any = UNSET,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(code, message, data)
        self.status = status
        # Numbers are given too, for Retry-After.
        self.headers = {name: str(value) for name, value in (headers or {}).items()}
