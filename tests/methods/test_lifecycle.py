"""`initialize`, `ping`, `logging/setLevel`, and the sessions behind them.

Spec 2025-11-25, basic/lifecycle, basic/transports: Session Management, and
server/utilities/logging.
"""

import time
from typing import Any

import pytest

from mcpkit import App, Context, MemoryBackend, Response, Session, dispatch
from mcpkit.errors import INVALID_PARAMS, METHOD_NOT_FOUND, HTTPError
from mcpkit.methods.lifecycle import end_session, find_session
from mcpkit.protocol.era import LOG_LEVELS
from mcpkit.protocol.headers import SESSION, VERSION
from tests.calls import (
    LEGACY,
    V_2025_03_26,
    V_2025_06_18,
    V_2025_11_25,
    call,
    reply,
    request,
)
from tests.wire import MODERN, check_response

KEY = "k" * 32
CLIENT = {"name": "client", "version": "1"}
HELLO: dict[str, Any] = {
    "protocolVersion": V_2025_11_25,
    "capabilities": {},
    "clientInfo": CLIENT,
}


def equipped(**options: Any) -> App:
    app = App(
        "tests",
        title="Tests",
        icons=[{"src": "https://example.com/a.png"}],
        website_url="https://example.com",
        instructions="Call t.",
        secret_key=KEY,
        **options,
    )
    app.add_tool(lambda: "", name="t")
    return app


INFO = {
    "name": "tests",
    "version": "0.1.0",
    "title": "Tests",
    "websiteUrl": "https://example.com",
    "icons": [{"src": "https://example.com/a.png"}],
}
NEGOTIATED = [
    # asked for, spoken, what the server's info lacks
    (V_2025_11_25, V_2025_11_25, ()),
    (V_2025_06_18, V_2025_06_18, ("icons", "websiteUrl")),
    (V_2025_03_26, V_2025_03_26, ("icons", "websiteUrl", "title")),
    ("2024-11-05", "2024-11-05", ("icons", "websiteUrl", "title")),
    # The modern revision has no handshake.
    (MODERN, V_2025_11_25, ()),
    ("2099-01-01", V_2025_11_25, ()),
    ("", V_2025_11_25, ()),
]


@pytest.mark.parametrize(("asked", "spoken", "lacking"), NEGOTIATED)
async def test_a_version_is_negotiated(
    asked: str, spoken: str, lacking: tuple[str, ...]
) -> None:
    """Spec 2025-11-25, basic/lifecycle: Version Negotiation."""
    message = request("initialize", at=spoken, **{**HELLO, "protocolVersion": asked})
    replied = await dispatch(message, equipped())
    assert isinstance(replied, Response)
    check_response(replied.message, "initialize", spoken)
    result = replied.message["result"]
    assert result.pop("capabilities").keys() == {"tools", "logging"}
    assert result == {
        "protocolVersion": spoken,
        "serverInfo": {key: INFO[key] for key in INFO if key not in lacking},
        "instructions": "Call t.",
    }


MALFORMED = [
    # id, params, message
    (
        "no version",
        {"capabilities": {}, "clientInfo": CLIENT},
        "Invalid params: protocolVersion must be a string",
    ),
    (
        "a number as version",
        {**HELLO, "protocolVersion": 3},
        "Invalid params: protocolVersion must be a string",
    ),
    (
        "an array as capabilities",
        {**HELLO, "capabilities": []},
        "Invalid params: capabilities must be an object",
    ),
    (
        "too many capabilities",
        {**HELLO, "capabilities": {"experimental": {"x": "y" * 4096}}},
        "Invalid params: capabilities are too large",
    ),
    (
        "no client",
        {"protocolVersion": V_2025_11_25, "capabilities": {}},
        "Invalid params: clientInfo must be an object with a name and a version",
    ),
    (
        "a client without a version",
        {**HELLO, "clientInfo": {"name": "client"}},
        "Invalid params: clientInfo must be an object with a name and a version",
    ),
]


@pytest.mark.parametrize(
    ("params", "message"), [pytest.param(*row, id=name) for name, *row in MALFORMED]
)
async def test_a_malformed_handshake_is_refused(
    params: dict[str, Any], message: str
) -> None:
    error = await call(equipped(), "initialize", at=V_2025_11_25, **params)
    assert error == {"code": INVALID_PARAMS, "message": message}


async def test_capabilities_that_are_missing_are_none() -> None:
    params: dict[str, Any] = {
        "protocolVersion": V_2025_11_25,
        "clientInfo": CLIENT,
    }
    result = await call(equipped(), "initialize", at=V_2025_11_25, **params)
    assert result["protocolVersion"] == V_2025_11_25


async def open_session(app: App, by: Any = None, **params: Any) -> str:
    """Return the token of a new session."""
    message = request("initialize", at=V_2025_11_25, **{**HELLO, **params})
    replied = await dispatch(message, app, headers={}, principal=by)
    assert isinstance(replied, Response)
    ((name, token),) = replied.headers
    assert name == "mcp-session-id"
    return token


async def within(
    app: App, token: str, method: str, by: Any = None, **params: Any
) -> Response:
    """Send a request of a session."""
    headers = {SESSION: token.encode(), VERSION: V_2025_11_25.encode()}
    message = request(method, at=V_2025_11_25, **params)
    replied = await dispatch(message, app, headers=headers, principal=by)
    assert isinstance(replied, Response)
    check_response(replied.message, method, V_2025_11_25)
    return replied


async def test_a_handshake_without_http_opens_no_session() -> None:
    message = request("initialize", at=V_2025_11_25, **HELLO)
    replied = await dispatch(message, equipped())
    assert isinstance(replied, Response)
    assert replied.headers == ()


async def test_a_session_holds_what_was_negotiated() -> None:
    app = equipped()
    seen = []

    @app.tool
    def seeing(ctx: Context) -> str:
        seen.append((ctx.revision.version, ctx.client_capabilities, ctx.era))
        return ""

    token = await open_session(
        app, protocolVersion=V_2025_06_18, capabilities={"roots": {}}
    )
    await within(app, token, "tools/call", name="seeing")
    assert seen == [(V_2025_06_18, {"roots": {}}, "legacy")]


async def test_a_session_is_served_by_every_worker_with_the_key() -> None:
    token = await open_session(equipped())
    replied = await within(equipped(), token, "ping")
    assert (replied.status, replied.message["result"]) == (200, {})


STRANGE = [
    # id, the app that opened it, who opened it, who uses it
    ("another key", App("tests", secret_key="x" * 32), None, None),
    ("another app", App("others", secret_key=KEY), None, None),
    ("another principal", equipped(), "ada", "bob"),
    ("nobody for a principal", equipped(), "ada", None),
    ("a principal for nobody", equipped(), None, "ada"),
]


@pytest.mark.parametrize(
    ("opened", "opener", "user"),
    [pytest.param(*row, id=name) for name, *row in STRANGE],
)
async def test_a_session_of_another_is_unknown(
    opened: App, opener: str | None, user: str | None
) -> None:
    """Ours: as if there were none."""
    token = await open_session(opened, by=opener)
    replied = await within(equipped(), token, "ping", by=user)
    assert replied.status == 404
    assert replied.message["error"] == {"code": -32600, "message": "Session not found"}


async def test_an_ended_session_is_unknown() -> None:
    app = equipped()
    token = await open_session(app)
    assert (await within(app, token, "ping")).status == 200
    session = await find_session(app, token, None)
    await end_session(app, session)
    assert (await within(app, token, "ping")).status == 404


@pytest.mark.parametrize("token", ["", "x", "a.b.c", "é", "x" * 100_000])
async def test_what_is_no_token_is_an_unknown_session(token: str) -> None:
    with pytest.raises(HTTPError) as raised:
        await find_session(equipped(), token, None)
    assert (raised.value.status, raised.value.message) == (404, "Session not found")


class Broken(MemoryBackend):
    """A backend that has lost its connection."""

    async def get(self, key: str) -> str | None:
        """Fail."""
        raise ConnectionError(key)

    def publish(self, message: str) -> None:
        """Fail."""
        raise ConnectionError(message)


async def test_a_backend_that_fails_is_an_error_without_its_words() -> None:
    """Ours: the request is answered, and the log has the cause."""
    app = App("broken", backend=Broken())
    token = await open_session(app)
    answer = await within(app, token, "ping")
    assert (answer.status, answer.message) == (
        500,
        {
            "jsonrpc": "2.0",
            "id": 1,
            "error": {"code": -32603, "message": "Internal error"},
        },
    )


@pytest.mark.parametrize(
    "message",
    [
        {"method": "notifications/cancelled", "params": {"requestId": 1}},
        {"id": "q-1", "result": {}},
    ],
    ids=["cancelled", "answer"],
)
async def test_what_the_other_workers_can_not_be_told_is_an_error(
    message: dict[str, Any],
) -> None:
    """Ours: it is no fault of the transport, which is given a reply."""
    app = App("broken", backend=Broken())
    session = Session("s", V_2025_11_25, {}, time.time() + 60)
    answer = await dispatch({"jsonrpc": "2.0", **message}, app, session=session)
    assert isinstance(answer, Response)
    assert (answer.status, answer.message) == (
        500,
        {
            "jsonrpc": "2.0",
            "id": None,
            "error": {"code": -32603, "message": "Internal error"},
        },
    )


async def test_an_app_may_require_a_session() -> None:
    app = equipped(require_session=True)
    replied = await reply(app, "ping", at=V_2025_11_25)
    assert replied.status == 400
    assert replied.message["error"] == {
        "code": -32600,
        "message": "Mcp-Session-Id is missing: send initialize first",
    }
    token = await open_session(app)
    assert (await within(app, token, "ping")).status == 200


async def test_a_principal_is_bound_by_its_id() -> None:
    class User:
        def __init__(self, id: int) -> None:  # noqa: A002  # what a principal has
            self.id = id

    app = equipped()
    token = await open_session(app, by=User(1))
    assert (await within(app, token, "ping", by=User(1))).status == 200
    assert (await within(app, token, "ping", by=User(2))).status == 404


@pytest.mark.parametrize("version", LEGACY)
async def test_ping_is_answered(version: str) -> None:
    """Spec 2025-11-25, basic/utilities/ping."""
    assert await call(equipped(), "ping", at=version) == {}


@pytest.mark.parametrize("level", LOG_LEVELS)
@pytest.mark.parametrize("version", LEGACY)
async def test_a_level_is_set(level: str, version: str) -> None:
    assert await call(equipped(), "logging/setLevel", at=version, level=level) == {}


async def test_a_level_is_kept_with_its_session() -> None:
    app = equipped()
    token = await open_session(app)
    await within(app, token, "logging/setLevel", level="error")
    session = await find_session(app, token, None)
    assert await app.backend.get(f"session-level:{session.id}") == "error"


@pytest.mark.parametrize("level", ["loud", "", "ERROR", None, 3, ["error"], {}])
async def test_an_unknown_level_is_refused(level: Any) -> None:
    answer = await call(equipped(), "logging/setLevel", at=V_2025_11_25, level=level)
    assert answer == {
        "code": INVALID_PARAMS,
        "message": f"Invalid params: level must be one of {', '.join(LOG_LEVELS)}",
    }


async def test_there_is_no_level_without_logging() -> None:
    app = equipped(logging=False)
    answer = await call(app, "logging/setLevel", at=V_2025_11_25, level="error")
    assert answer == {"code": METHOD_NOT_FOUND, "message": "Method not found"}
    hello = await call(app, "initialize", at=V_2025_11_25, **HELLO)
    assert hello["capabilities"].keys() == {"tools"}


@pytest.mark.parametrize("method", ["initialize", "ping", "logging/setLevel"])
async def test_the_modern_era_has_none_of_them(method: str) -> None:
    """Spec 2026-07-28, basic/versioning."""
    replied = await reply(equipped(), method, level="error", **HELLO)
    assert replied.status == 404
    assert replied.message["error"] == {
        "code": METHOD_NOT_FOUND,
        "message": "Method not found",
    }
