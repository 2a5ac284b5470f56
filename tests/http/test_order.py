"""The order of checks: of two faults, the one that is checked first is told.

`wire.md` of the project draws it; the statuses are those of Spec 2026-07-28,
basic/transports/streamable-http, and basic/index: Error Codes.
"""

import itertools
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any

import httpx
import pytest
from fastapi import HTTPException, Request
from pydantic import Field

from mcpkit import App, Result
from mcpkit.protocol.era import CLIENT_CAPABILITIES, PROTOCOL_VERSION
from tests.http.bookshop import ASKED
from tests.http.client import (
    JSON_HEADERS,
    LEGACY,
    MODERN,
    check,
    code_of,
    error,
    headers_of,
    legacy,
    modern,
    open_session,
    send,
)

MAX_BODY = 2000


@dataclass(frozen=True)
class Caller:
    """Who calls, with the scopes of a header."""

    id: str
    scopes: tuple[str, ...]


def caller(request: Request) -> Caller:
    """Tell who calls, or refuse to."""
    if request.headers.get("authorization") == "none":
        raise HTTPException(401, "Log in.")
    return Caller("ada", tuple(request.headers["x-scopes"].split()))


def build_app(calls: list[str]) -> App:
    """Build an app with a tool at which everything can go wrong."""
    app = App("order", principal=caller, max_body=MAX_BODY)

    @app.tool(scopes=["write"])
    async def order(
        region: Annotated[str, Field(json_schema_extra={"x-mcp-header": "Region"})],
    ) -> Result:
        calls.append(f"order {region}")
        return Result.input_required({"sure": ASKED})

    return app


@dataclass
class Draft:
    """A request that is being spoiled."""

    message: dict[str, Any]
    headers: dict[str, str]
    verb: str = "POST"
    suffix: bytes = b""

    @property
    def params(self) -> dict[str, Any]:
        """The params of the message."""
        params: dict[str, Any] = self.message["params"]
        return params

    @property
    def content(self) -> bytes:
        """The body."""
        return json.dumps(self.message).encode() + self.suffix


ARGUMENTS = {"name": "order", "arguments": {"region": "north"}}
COMMON = {"x-scopes": "write", "host": "localhost"}


def modern_draft() -> Draft:
    message = modern("tools/call", ARGUMENTS, capabilities={"elicitation": {}})
    headers = {**headers_of(message), **COMMON, "mcp-param-region": "north"}
    return Draft(message, headers)


def legacy_draft() -> Draft:
    headers = {**JSON_HEADERS, **COMMON, "mcp-protocol-version": LEGACY}
    return Draft(legacy("tools/call", ARGUMENTS), headers)


Spoil = Callable[[Draft], object]


@dataclass(frozen=True)
class Fault:
    """One way to spoil a request, and the answer to it."""

    name: str
    spoil: Spoil
    status: int
    answer: Mapping[str, Any]

    def __str__(self) -> str:
        return self.name


def header(name: str, value: str) -> Spoil:
    return lambda draft: draft.headers.update({name: value})


def param(name: str, value: Any) -> Spoil:
    return lambda draft: draft.params.update({name: value})


def unsupported(draft: Draft) -> None:
    draft.params["_meta"][PROTOCOL_VERSION] = "2099-01-01"
    draft.headers["mcp-protocol-version"] = "2099-01-01"


def unknown_method(draft: Draft) -> None:
    draft.message["method"] = "tools/nope"
    if "mcp-method" in draft.headers:
        draft.headers["mcp-method"] = "tools/nope"


def unknown_tool(draft: Draft) -> None:
    draft.params["name"] = "nope"
    if "mcp-name" in draft.headers:
        draft.headers["mcp-name"] = "nope"


def without_capabilities(draft: Draft) -> None:
    draft.params["_meta"][CLIENT_CAPABILITIES] = None


def refused_header(name: str, value: str, setting: str) -> str:
    return (
        f"{name} '{value}' is not allowed. To admit it, name it in App({setting}=[...])"
    )


HTTP_FAULTS = [
    Fault(
        "Host",
        header("host", "evil.example"),
        403,
        error(-32600, refused_header("Host", "evil.example", "allowed_hosts")),
    ),
    Fault(
        "Origin",
        header("origin", "http://evil.example"),
        403,
        error(
            -32600,
            refused_header("Origin", "http://evil.example", "allowed_origins"),
        ),
    ),
    Fault(
        "method of HTTP",
        lambda draft: setattr(draft, "verb", "PUT"),
        405,
        error(-32600, "PUT is not allowed here"),
    ),
    Fault(
        "authentication",
        header("authorization", "none"),
        401,
        error(-32600, "Log in."),
    ),
    Fault(
        "Content-Type",
        header("content-type", "text/plain"),
        415,
        error(-32600, "Content-Type must be application/json"),
    ),
    Fault(
        "Accept",
        header("accept", "text/html"),
        406,
        error(-32600, "Accept must admit application/json"),
    ),
    Fault(
        "size",
        lambda draft: setattr(draft, "suffix", draft.suffix + b" " * MAX_BODY),
        413,
        error(-32600, f"The body is larger than {MAX_BODY} bytes"),
    ),
]


def parse_fault(**identified: None) -> Fault:
    return Fault(
        "JSON",
        lambda draft: setattr(draft, "suffix", b"}" + draft.suffix),
        400,
        {**error(-32700, "Parse error"), **identified},
    )


def shape_fault() -> Fault:
    return Fault(
        "JSON-RPC",
        lambda draft: draft.message.update(jsonrpc="1.0"),
        400,
        error(-32600, 'Expected "jsonrpc": "2.0"', request_id=1),
    )


def scope_fault() -> Fault:
    return Fault(
        "scope",
        header("x-scopes", "read"),
        403,
        error(
            -32600,
            "Insufficient scope: write needed",
            request_id=1,
            data={"requiredScopes": ["write"]},
        ),
    )


MODERN_FAULTS = [
    *HTTP_FAULTS,
    parse_fault(),
    shape_fault(),
    Fault(
        "_meta",
        without_capabilities,
        400,
        error(
            -32602,
            f"Invalid params: {CLIENT_CAPABILITIES} must be an object, in _meta",
            request_id=1,
            data={"field": CLIENT_CAPABILITIES},
        ),
    ),
    Fault(
        "version header",
        header("mcp-protocol-version", LEGACY),
        400,
        error(
            -32020,
            "Header mismatch: MCP-Protocol-Version does not match the body",
            request_id=1,
        ),
    ),
    Fault(
        "version",
        unsupported,
        400,
        error(
            -32022,
            "Unsupported protocol version",
            request_id=1,
            data={"supported": [MODERN], "requested": "2099-01-01"},
        ),
    ),
    Fault(
        "Mcp-Method",
        header("mcp-method", "tools/list"),
        400,
        error(
            -32020, "Header mismatch: Mcp-Method does not match the body", request_id=1
        ),
    ),
    Fault(
        "Mcp-Name",
        header("mcp-name", "other"),
        400,
        error(
            -32020, "Header mismatch: Mcp-Name does not match the body", request_id=1
        ),
    ),
    Fault(
        "method",
        unknown_method,
        404,
        error(-32601, "Method not found", request_id=1),
    ),
    Fault(
        "params",
        param("arguments", []),
        200,
        error(-32602, "Invalid params: arguments must be an object", request_id=1),
    ),
    Fault(
        "Mcp-Param",
        header("mcp-param-region", "south"),
        400,
        error(
            -32020,
            "Header mismatch: Mcp-Param-Region does not match the body",
            request_id=1,
        ),
    ),
    scope_fault(),
    Fault(
        "request state",
        param("requestState", "forged"),
        200,
        error(-32602, "Invalid or expired requestState", request_id=1),
    ),
]

LEGACY_FAULTS = [
    *HTTP_FAULTS,
    parse_fault(id=None),
    shape_fault(),
    Fault(
        "session",
        header("mcp-session-id", "bogus"),
        404,
        error(-32600, "Session not found", request_id=1),
    ),
    Fault(
        "method", unknown_method, 200, error(-32601, "Method not found", request_id=1)
    ),
    Fault(
        "params",
        param("arguments", []),
        200,
        error(-32602, "Invalid params: arguments must be an object", request_id=1),
    ),
    scope_fault(),
]


async def ask(draft: Draft, calls: list[str]) -> httpx.Response:
    app = build_app(calls)
    reply = await send(app, draft.verb, draft.headers, draft.content)
    check(reply, draft.message, draft.headers)
    return reply


@pytest.mark.parametrize("fault", MODERN_FAULTS, ids=str)
async def test_a_modern_request_with_one_fault_gets_its_answer(fault: Fault) -> None:
    draft, calls = modern_draft(), list[str]()
    fault.spoil(draft)
    reply = await ask(draft, calls)
    assert (reply.status_code, reply.json(), calls) == (fault.status, fault.answer, [])


@pytest.mark.parametrize("fault", LEGACY_FAULTS, ids=str)
async def test_a_legacy_request_with_one_fault_gets_its_answer(fault: Fault) -> None:
    draft, calls = legacy_draft(), list[str]()
    fault.spoil(draft)
    reply = await ask(draft, calls)
    assert (reply.status_code, reply.json(), calls) == (fault.status, fault.answer, [])


UNRELATED = {
    # The header is all that tells the era of what can't be read.
    ("JSON", "version header"),
    # A method that is unknown has no name that a header could mirror.
    ("Mcp-Name", "method"),
}


def pairs(faults: list[Fault]) -> list[Any]:
    return [
        pytest.param(first, second, id=f"{first} before {second}")
        for first, second in itertools.combinations(faults, 2)
        if (first.name, second.name) not in UNRELATED
    ]


@pytest.mark.parametrize(("first", "second"), pairs(MODERN_FAULTS))
async def test_of_two_faults_of_a_modern_request_the_earlier_one_is_told(
    first: Fault, second: Fault
) -> None:
    draft, calls = modern_draft(), list[str]()
    second.spoil(draft)
    first.spoil(draft)
    reply = await ask(draft, calls)
    assert (reply.status_code, reply.json(), calls) == (first.status, first.answer, [])


@pytest.mark.parametrize(("first", "second"), pairs(LEGACY_FAULTS))
async def test_of_two_faults_of_a_legacy_request_the_earlier_one_is_told(
    first: Fault, second: Fault
) -> None:
    draft, calls = legacy_draft(), list[str]()
    second.spoil(draft)
    first.spoil(draft)
    reply = await ask(draft, calls)
    assert (reply.status_code, reply.json(), calls) == (first.status, first.answer, [])


async def test_a_modern_request_without_a_fault_is_served() -> None:
    calls: list[str] = []
    reply = await ask(modern_draft(), calls)
    assert reply.json()["result"]["inputRequests"] == {"sure": ASKED}
    assert (reply.status_code, calls) == (200, ["order north"])


async def test_a_legacy_request_without_a_fault_is_served() -> None:
    """Ours: the handler runs, and asks what needs a session."""
    calls: list[str] = []
    reply = await ask(legacy_draft(), calls)
    assert (reply.status_code, code_of(reply), calls) == (200, -32603, ["order north"])


async def test_a_client_that_cannot_answer_the_question_is_told_so() -> None:
    """Spec 2026-07-28, basic/index: `_meta`, Client capabilities."""
    draft = modern_draft()
    draft.params["_meta"][CLIENT_CAPABILITIES] = {"sampling": {}}
    reply = await ask(draft, [])
    assert (reply.status_code, reply.json()) == (
        400,
        error(
            -32021,
            "Missing required client capability: elicitation",
            request_id=1,
            data={"requiredCapabilities": {"elicitation": {"form": {}}}},
        ),
    )


async def test_a_missing_scope_is_told_in_a_challenge() -> None:
    """Spec 2026-07-28, basic/authorization: Insufficient Scope."""
    draft = modern_draft()
    draft.headers["x-scopes"] = ""
    reply = await ask(draft, [])
    assert reply.headers["www-authenticate"] == (
        'Bearer error="insufficient_scope", scope="write"'
    )


VERBS = ["PUT", "PATCH", "TRACE", "CONNECT", "PROPFIND", "OPTIONS"]


@pytest.mark.parametrize("verb", VERBS)
async def test_what_is_not_served_names_what_is(verb: str) -> None:
    """HTTP-12. RFC 9110, section 15.5.6."""
    reply = await send(App("a"), verb)
    assert reply.status_code == 405
    assert reply.headers["allow"] == "GET, POST, DELETE"
    assert reply.json() == error(-32600, f"{verb} is not allowed here")


@pytest.mark.parametrize("verb", [*VERBS, "GET", "DELETE"])
async def test_a_modern_only_app_serves_nothing_but_post(verb: str) -> None:
    """HTTP-12. Spec 2026-07-28, basic/transports/streamable-http."""
    reply = await send(App("a", eras={"modern"}), verb)
    assert reply.status_code == 405
    assert reply.headers["allow"] == "POST"
    assert reply.json() == error(-32600, f"{verb} is not allowed here")


LISTENING: list[tuple[str, tuple[str, str | None], int, Mapping[str, Any]]] = [
    # id, what spoils the headers of a GET, status, answer
    (
        "Host",
        ("host", "evil.example"),
        403,
        error(-32600, refused_header("Host", "evil.example", "allowed_hosts")),
    ),
    (
        "Origin",
        ("origin", "http://evil.example"),
        403,
        error(
            -32600,
            refused_header("Origin", "http://evil.example", "allowed_origins"),
        ),
    ),
    ("authentication", ("authorization", "none"), 401, error(-32600, "Log in.")),
    (
        "no session",
        ("mcp-session-id", None),
        400,
        error(-32600, "Mcp-Session-Id is missing", request_id=None),
    ),
    (
        "an unknown session",
        ("mcp-session-id", "bogus"),
        404,
        error(-32600, "Session not found", request_id=None),
    ),
    (
        "Accept",
        ("accept", "application/json"),
        406,
        error(-32600, "Accept must admit text/event-stream", request_id=None),
    ),
]


@pytest.mark.parametrize("with_later", [False, True], ids=["alone", "before others"])
@pytest.mark.parametrize(
    "row", range(len(LISTENING)), ids=[row[0] for row in LISTENING]
)
async def test_who_can_not_listen_is_told_the_first_reason(
    row: int, *, with_later: bool
) -> None:
    """Spec 2025-11-25, basic/transports: Listening for Messages, Session Management."""
    app = build_app([])
    headers: dict[str, str] = {
        **COMMON,
        "accept": "text/event-stream",
        "mcp-session-id": await open_session(app, headers=COMMON),
    }
    faults = LISTENING[row:] if with_later else [LISTENING[row]]
    for _, (name, value), _, _ in reversed(faults):
        if value is None:
            del headers[name]
        else:
            headers[name] = value
    _, _, status, answer = LISTENING[row]
    reply = await send(app, "GET", headers)
    assert (reply.status_code, reply.json()) == (status, answer)


async def test_another_path_is_not_found() -> None:
    for path in ("/", "/mcpx", "/mcp/x", "/MCP", "//mcp"):
        assert (await send(App("a"), "POST", path=path)).status_code == 404
