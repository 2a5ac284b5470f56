"""Legacy sessions: sealed tokens, that any worker with the key can serve."""

import asyncio
import string
import time
from typing import Any

import pytest
from fastapi import Request

from mcpkit import App, Context
from mcpkit.methods.lifecycle import SESSION_SECONDS
from mcpkit.protocol.capabilities import server_capabilities
from mcpkit.protocol.era import LOG_LEVELS
from mcpkit.protocol.sealing import Sealer
from tests.http.bookshop import bookshop
from tests.http.client import (
    JSON_HEADERS,
    LEGACY,
    LEGACY_VERSIONS,
    MODERN,
    call,
    error,
    initialize,
    legacy,
    open_session,
    post,
    result_of,
    send,
)

KEY = "k" * 32
OTHER_KEY = "o" * 32
NOT_FOUND = "Session not found"

versions = pytest.mark.parametrize("version", LEGACY_VERSIONS)


def in_session(token: str) -> dict[str, str]:
    return {"mcp-session-id": token}


async def ping(app: App, token: str, version: str = LEGACY) -> tuple[int, Any]:
    reply = await call(app, version, "ping", headers=in_session(token))
    return reply.status_code, reply.json()


PONG = (200, {"jsonrpc": "2.0", "id": 1, "result": {}})
GONE = (404, error(-32600, NOT_FOUND, request_id=1))


NEGOTIATED = [
    # What a client asks for, and what it is given.
    *((version, version, version) for version in LEGACY_VERSIONS),
    ("SES-13 2024-11-05", "2024-11-05", "2024-11-05"),
    ("SES-13 modern", MODERN, LEGACY),
    ("SES-13 of the future", "2099-01-01", LEGACY),
    ("SES-13 empty", "", LEGACY),
    ("of the past", "2020-01-01", LEGACY),
    ("white space", f" {LEGACY} ", LEGACY),
    ("no version", "latest", LEGACY),
]


@pytest.mark.parametrize(
    ("asked", "given"), [pytest.param(*row, id=name) for name, *row in NEGOTIATED]
)
async def test_initialize_answers_with_a_legacy_version(asked: str, given: str) -> None:
    """SES-13. Spec 2025-11-25, basic/lifecycle: Version Negotiation."""
    reply = await post(bookshop(instructions="Ask."), initialize(asked))
    kinds = ["tools", "resources", "prompts", "completions", "logging"]
    assert result_of(reply) == {
        "protocolVersion": given,
        "capabilities": server_capabilities(kinds, "legacy"),
        "serverInfo": {"name": "bookshop", "version": "1.0.0"},
        "instructions": "Ask.",
    }


@versions
async def test_initialize_opens_a_session_of_visible_ascii(version: str) -> None:
    """Spec 2025-11-25, basic/transports: Session Management."""
    app = bookshop()
    tokens = {await open_session(app, version) for _ in range(20)}
    assert len(tokens) == 20
    visible = set(string.ascii_letters + string.digits + string.punctuation)
    assert all(token and set(token) <= visible for token in tokens)


@pytest.mark.parametrize("header", [*LEGACY_VERSIONS, MODERN, "2099-01-01", "x", ""])
async def test_initialize_is_a_handshake_whatever_the_version_header_says(
    header: str,
) -> None:
    """SES-12, SES-13. Spec 2025-11-25: the header follows the handshake."""
    headers = {**JSON_HEADERS, "mcp-protocol-version": header}
    reply = await post(bookshop(), initialize("2025-06-18"), headers)
    assert result_of(reply)["protocolVersion"] == "2025-06-18"


BAD_PARAMS: list[tuple[str, Any]] = [
    ("no version", {"protocolVersion": None}),
    ("a number as the version", {"protocolVersion": 1}),
    ("no client", {"clientInfo": None}),
    ("a string as the client", {"clientInfo": "tests"}),
    ("no name of the client", {"clientInfo": {"version": "1"}}),
    ("no version of the client", {"clientInfo": {"name": "tests"}}),
    ("a number as the name", {"clientInfo": {"name": 1, "version": "1"}}),
    ("capabilities in an array", {"capabilities": []}),
    ("a string as capabilities", {"capabilities": "all"}),
    ("capabilities without end", {"capabilities": {"experimental": {"x": "y" * 5000}}}),
]


@pytest.mark.parametrize(
    "params", [pytest.param(row, id=name) for name, row in BAD_PARAMS]
)
async def test_initialize_with_malformed_params_opens_nothing(params: Any) -> None:
    """RPC-18. Spec 2025-11-25, schema: InitializeRequestParams."""
    reply = await post(bookshop(), initialize(**{"version": LEGACY, **params}))
    answer = reply.json()
    text: str = answer["error"]["message"]
    assert (reply.status_code, answer) == (200, error(-32602, text, request_id=1))
    assert text.startswith("Invalid params: ")
    assert "mcp-session-id" not in reply.headers


@versions
async def test_only_initialize_mints_a_session(version: str) -> None:
    """SES-01."""
    app = bookshop()
    token = await open_session(app, version)
    for headers in ({}, in_session(token)):
        for method in ("ping", "tools/list", "nope"):
            reply = await call(app, version, method, headers=headers)
            assert "mcp-session-id" not in reply.headers


async def test_a_client_may_ask_before_it_says_that_it_is_initialized() -> None:
    """SES-07. Spec 2025-11-25, basic/lifecycle: Initialization."""
    app = bookshop(require_session=True)
    token = await open_session(app)
    assert await ping(app, token) == PONG
    reply = await call(app, LEGACY, "tools/list", headers=in_session(token))
    assert "tools" in result_of(reply)


async def test_a_client_may_ping_before_anything_else() -> None:
    """SES-07. Spec 2025-11-25, basic/lifecycle: pings come before."""
    assert (await call(bookshop(), LEGACY, "ping")).json() == PONG[1]


@versions
async def test_a_session_is_served_by_every_worker_with_the_key(version: str) -> None:
    """SES-06. Ours: nothing is stored."""
    one, two = bookshop(secret_key=KEY), bookshop(secret_key=KEY)
    token = await open_session(one, version)
    assert [await ping(app, token, version) for app in (two, one, two)] == [PONG] * 3


async def test_keys_may_be_rolled_over() -> None:
    """Ours: the first key seals, and all of them open."""
    old = bookshop(secret_key=[OTHER_KEY])
    new = bookshop(secret_key=[KEY, OTHER_KEY])
    last = bookshop(secret_key=[KEY])
    of_old, of_new = await open_session(old), await open_session(new)
    assert [await ping(app, of_old) for app in (old, new, last)] == [PONG, PONG, GONE]
    assert [await ping(app, of_new) for app in (old, new, last)] == [GONE, PONG, PONG]


@pytest.mark.parametrize(
    "stranger",
    [
        pytest.param({"secret_key": OTHER_KEY}, id="another key"),
        pytest.param({}, id="a key of its own"),
        pytest.param({"secret_key": KEY, "name": "other"}, id="another app"),
    ],
)
async def test_a_session_of_a_stranger_is_not_found(stranger: dict[str, Any]) -> None:
    """SES-01. Spec 2025-11-25, basic/transports: Session Management."""
    token = await open_session(bookshop(secret_key=KEY))
    assert await ping(bookshop(**stranger), token) == GONE


async def test_the_session_tells_the_revision_and_not_the_header() -> None:
    """Ours: what was negotiated goes before what a header says."""
    app = bookshop()
    token = await open_session(app, "2025-03-26")
    message = legacy("tools/call", {"name": "add", "arguments": {"a": 1, "b": 1}})
    for header in LEGACY_VERSIONS:
        headers = {
            **JSON_HEADERS,
            **in_session(token),
            "mcp-protocol-version": header,
        }
        reply = await post(app, message, headers)
        assert result_of(reply) == {
            "content": [{"type": "text", "text": "2"}],
            "isError": False,
        }


async def test_a_client_of_2024_is_served_as_one_of_2025_03() -> None:
    """SES-13. Ours: 2024-11-05 is negotiated, and has batches."""
    app = bookshop()
    headers = {**JSON_HEADERS, **in_session(await open_session(app, "2024-11-05"))}
    added = legacy("tools/call", {"name": "add", "arguments": {"a": 1, "b": 1}})
    result = {"content": [{"type": "text", "text": "2"}], "isError": False}
    answer = {"jsonrpc": "2.0", "id": 1, "result": result}
    assert (await post(app, added, headers)).json() == answer
    assert (await post(app, [added], headers)).json() == [answer]


async def test_a_session_holds_what_the_client_declared() -> None:
    """Spec 2025-11-25, basic/lifecycle: Capability Negotiation."""
    app = App("declared")

    @app.tool
    def declared(ctx: Context) -> dict[str, Any]:
        return dict(ctx.client_capabilities)

    capabilities = {"roots": {"listChanged": True}, "experimental": {"ü": {}}}
    opened = await post(app, initialize(capabilities=capabilities))
    token = opened.headers["mcp-session-id"]
    answers = [
        result_of(
            await call(app, LEGACY, "tools/call", {"name": "declared"}, headers=headers)
        )["structuredContent"]
        for headers in (in_session(token), {})
    ]
    assert answers == [capabilities, {}]


# Ids that are none.


SEALER = Sealer([KEY.encode()])


def sealed(kind: str, age: float) -> str:
    """Seal what a session holds, as the app `bookshop` with the key does."""
    claims = {"v": LEGACY, "c": {}, "i": "x"}
    return SEALER.seal(kind, ["bookshop", None], claims, now=time.time() - age)


UNKNOWN: list[tuple[str, Any]] = [
    ("SES-01 bogus", "bogus"),
    ("empty", ""),
    ("dots", "..."),
    ("SES-01 not ASCII", "\xff\xfe"),
    ("UTF-8", "größe".encode()),
    ("very long", "x" * 100_000),
    ("a NUL", "a\x00b"),
    ("a UUID", "1868a90c-b2b1-4b2e-8c26-9e6b3b3a3c5e"),
]


@versions
@pytest.mark.parametrize("token", [pytest.param(row, id=name) for name, row in UNKNOWN])
async def test_a_session_that_is_none_is_not_found(token: Any, version: str) -> None:
    """SES-01. Spec 2025-11-25, basic/transports: Session Management."""
    calls: list[str] = []
    lines = [
        *JSON_HEADERS.items(),
        ("mcp-protocol-version", version),
        ("mcp-session-id", token),
    ]
    message = legacy("tools/call", {"name": "whoami"})
    reply = await post(bookshop(calls), message, lines)
    assert (reply.status_code, reply.json(), calls) == (*GONE, [])
    deleted = await send(bookshop(), "DELETE", lines)
    assert deleted.status_code == 404


async def test_a_session_that_has_expired_is_not_found() -> None:
    """SES-01. Ours: sessions live for a day."""
    app = bookshop(secret_key=KEY)
    assert await ping(app, sealed("session", SESSION_SECONDS - 60)) == PONG
    assert await ping(app, sealed("session", SESSION_SECONDS + 1)) == GONE


async def test_a_session_that_expires_while_it_is_used_is_not_found() -> None:
    """Ours: what is remembered of a token does not outlive it."""
    app = bookshop(secret_key=KEY)
    token = sealed("session", SESSION_SECONDS - 0.2)
    async with asyncio.timeout(10):
        while (answer := await ping(app, token)) == PONG:
            await asyncio.sleep(0)
    assert answer == GONE


async def test_a_token_of_another_kind_is_no_session() -> None:
    """Ours."""
    app = bookshop(secret_key=KEY, page_size=1)
    assert await ping(app, sealed("cursor", 0)) == GONE
    reply = await call(app, LEGACY, "tools/list")
    assert await ping(app, result_of(reply)["nextCursor"]) == GONE


async def test_a_session_that_was_tampered_with_is_not_found() -> None:
    """SES-01. Ours: of a token every character counts."""
    app = bookshop()
    token = await open_session(app)
    assert await ping(app, token) == PONG
    # The last character of base64 has spare bits, which are no change.
    for place in range(0, len(token) - 1, 7):
        other = "A" if token[place] != "A" else "B"
        assert await ping(app, token[:place] + other + token[place + 1 :]) == GONE
    for changed in (token[:-1], token + "A", token.upper(), token[::-1]):
        assert await ping(app, changed) == GONE


async def test_two_different_sessions_are_none() -> None:
    """SES-01."""
    app = bookshop()
    one, two = await open_session(app), await open_session(app)
    for values in ((one, two), (two, one), (one, "bogus")):
        lines = [*JSON_HEADERS.items(), *(("mcp-session-id", one) for one in values)]
        reply = await post(app, legacy("ping"), lines)
        assert (reply.status_code, reply.json()) == GONE
        assert (await send(app, "DELETE", lines)).status_code == 404
    assert [await ping(app, token) for token in (one, two)] == [PONG, PONG]


# Its end.


async def test_a_session_that_was_ended_is_not_found() -> None:
    """SES-01, SES-03. Spec 2025-11-25, basic/transports: DELETE."""
    app = bookshop()
    ended, kept = await open_session(app), await open_session(app)
    reply = await send(app, "DELETE", in_session(ended))
    assert (reply.status_code, reply.content) == (200, b"")
    assert [await ping(app, token) for token in (ended, kept)] == [GONE, PONG]
    again = await send(app, "DELETE", in_session(ended))
    assert (again.status_code, again.json()) == (
        404,
        error(-32600, NOT_FOUND, request_id=None),
    )


async def test_a_hundred_sessions_can_be_opened_and_ended() -> None:
    """SES-03."""
    app = bookshop()
    statuses = [
        (await send(app, "DELETE", in_session(await open_session(app)))).status_code
        for _ in range(100)
    ]
    assert statuses == [200] * 100


async def test_more_sessions_are_served_than_are_remembered() -> None:
    """Ours: what is remembered of sessions is bounded, and no session needs it."""
    app = bookshop(secret_key=KEY)
    tokens = [sealed("session", age) for age in range(1100)]
    for token in [*tokens, tokens[0], tokens[-1]]:
        assert await ping(app, token) == PONG
    assert len(app.sessions) < len(tokens)


async def test_a_delete_without_a_session_is_refused() -> None:
    """HTTP-12. Ours."""
    reply = await send(bookshop(), "DELETE")
    expected = error(-32600, "Mcp-Session-Id is missing", request_id=None)
    assert (reply.status_code, reply.json()) == (400, expected)


async def test_a_new_session_follows_one_that_was_ended() -> None:
    """Spec 2025-11-25: a client that gets 404 sends initialize again."""
    app = bookshop()
    token = await open_session(app)
    await send(app, "DELETE", in_session(token))
    again = await open_session(app, headers=in_session(token))
    assert await ping(app, again) == PONG


# Where one is required.


@versions
async def test_a_session_may_be_required(version: str) -> None:
    """SES-01. Spec 2025-11-25, basic/transports: 400 without one."""
    calls: list[str] = []
    app = bookshop(calls, require_session=True)
    params = {"name": "whoami"}
    bare = await call(app, version, "tools/call", params)
    fault = "Mcp-Session-Id is missing: send initialize first"
    expected = error(-32600, fault, request_id=1)
    assert (bare.status_code, bare.json(), calls) == (400, expected, [])
    headers = in_session(await open_session(app, version))
    await call(app, version, "tools/call", params, headers=headers)
    assert calls == ["whoami"]


async def test_a_session_is_not_required_unless_the_app_says_so() -> None:
    """SES-06. Ours."""
    assert (await call(bookshop(), LEGACY, "ping")).json() == PONG[1]


async def test_a_session_that_is_required_is_no_matter_of_modern_requests() -> None:
    """Spec 2026-07-28, basic/transports/streamable-http: Backward Compatibility."""
    app = bookshop(require_session=True)
    assert "tools" in result_of(await call(app, MODERN, "tools/list"))


@pytest.mark.parametrize("token", ["bogus", "\xff", ""])
async def test_a_modern_request_is_served_whatever_session_it_names(
    token: str,
) -> None:
    """SES-01. Spec 2026-07-28: ignore it, and do not mint or echo session IDs."""
    reply = await call(bookshop(), MODERN, "tools/list", headers=in_session(token))
    assert "tools" in result_of(reply)
    assert "mcp-session-id" not in reply.headers


# Whose it is.


def user(request: Request) -> str | None:
    return request.headers.get("x-user")


def of(name: str | None) -> dict[str, str]:
    return {} if name is None else {"x-user": name}


@pytest.mark.parametrize("owner", ["ada", None])
@pytest.mark.parametrize("caller", ["ada", "bob", "", None])
async def test_a_session_is_served_to_its_owner_alone(
    owner: str | None, caller: str | None
) -> None:
    """Spec 2025-11-25, basic/security_best_practices: Session Hijacking."""
    app = bookshop(principal=user)
    token = await open_session(app, headers=of(owner))
    headers = {**in_session(token), **of(caller)}
    reply = await call(app, LEGACY, "ping", headers=headers)
    assert (reply.status_code, reply.json()) == (PONG if owner == caller else GONE)


async def test_a_session_is_ended_by_its_owner_alone() -> None:
    """Spec 2025-11-25, basic/security_best_practices: Session Hijacking."""
    app = bookshop(principal=user)
    headers = in_session(await open_session(app, headers=of("ada")))
    statuses = [
        (await send(app, "DELETE", {**headers, **of(caller)})).status_code
        for caller in ("bob", None, "ada", "ada")
    ]
    assert statuses == [404, 404, 200, 404]


async def test_a_token_shows_its_holder_no_name() -> None:
    """Ours: the bindings travel as a digest."""
    app = bookshop(principal=user, secret_key=KEY)
    token = await open_session(app, headers=of("ada-lovelace"))
    binding = ["bookshop", "ada-lovelace"]
    opened = SEALER.open("session", binding, token, now=time.time())
    assert (set(opened), opened["v"], opened["c"]) == ({"v", "c", "i"}, LEGACY, {})


# The level of its log.


@versions
@pytest.mark.parametrize("level", LOG_LEVELS)
@pytest.mark.parametrize("has_session", [True, False])
async def test_the_level_of_the_log_can_be_set(
    level: str, version: str, *, has_session: bool
) -> None:
    """Spec 2025-11-25, server/utilities/logging: Setting Log Level."""
    app = bookshop()
    headers = in_session(await open_session(app, version)) if has_session else {}
    params = {"level": level}
    reply = await call(app, version, "logging/setLevel", params, headers=headers)
    assert result_of(reply) == {}


@pytest.mark.parametrize("level", [None, "", "INFO", "trace", 1, [], {}, True])
async def test_a_level_that_is_none_is_refused(level: Any) -> None:
    """Spec 2025-11-25, server/utilities/logging: Error Handling."""
    reply = await call(bookshop(), LEGACY, "logging/setLevel", {"level": level})
    fault = f"Invalid params: level must be one of {', '.join(LOG_LEVELS)}"
    expected = error(-32602, fault, request_id=1)
    assert (reply.status_code, reply.json()) == (200, expected)


async def test_an_app_without_logging_has_no_level() -> None:
    """Ours."""
    app = bookshop(logging=False)
    reply = await call(app, LEGACY, "logging/setLevel", {"level": "info"})
    assert reply.json() == error(-32601, "Method not found", request_id=1)
    opened = await post(app, initialize())
    assert "logging" not in result_of(opened)["capabilities"]
