"""Who may speak to an app: Host, Origin, and what a browser asks beforehand."""

from collections.abc import Sequence
from typing import Any

import httpx
import pytest
from fastapi import HTTPException

from mcpkit import App, SetupError
from tests.http.bookshop import bookshop
from tests.http.client import (
    JSON_HEADERS,
    LEGACY,
    MODERN,
    Lines,
    call,
    error,
    headers_of,
    initialize,
    legacy,
    modern,
    post,
    send,
)

Names = Sequence[str] | None

HOSTS: list[tuple[str, Names, str | bytes, bool]] = [
    # `App(allowed_hosts=...)`, the header, and whether it is admitted.
    ("localhost", None, "localhost", True),
    ("HTTP-07 a port", None, "localhost:8000", True),
    ("HTTP-07 upper case", None, "LOCALHOST", True),
    ("the dot of the root", None, "localhost.", True),
    ("IPv4", None, "127.0.0.1:8000", True),
    ("IPv6", None, "[::1]", True),
    ("HTTP-07 IPv6 with a port", None, "[::1]:8000", True),
    ("white space", None, " localhost:8000\t", True),
    ("HTTP-07 a real name", None, "mcp.example.com", False),
    ("an address of the network", None, "192.168.0.7:8000", False),
    ("any address", None, "0.0.0.0:8000", False),
    ("IPv6 without brackets", None, "::1", False),
    ("HTTP-10 a longer name", None, "localhost.evil.com", False),
    ("HTTP-10 a name in front", None, "evil-localhost", False),
    ("HTTP-10 a subdomain", None, "evil.localhost", False),
    ("HTTP-10 an address with more", None, "127.0.0.1.evil.com", False),
    ("HTTP-10 a port with a name", None, "localhost:8000.evil.com", False),
    ("a user", None, "localhost@evil.com", False),
    ("a user of localhost", None, "evil.com@localhost", False),
    ("two ports", None, "localhost:80:80", False),
    ("an empty port", None, "localhost:", False),
    ("a port in letters", None, "localhost:http", False),
    ("a port of another script", None, "localhost:\xb2", False),
    ("a port of six digits", None, "localhost:800000", False),
    ("a path", None, "localhost/evil.com", False),
    ("a fragment", None, "localhost#evil.com", False),
    ("a query", None, "localhost?evil.com", False),
    ("a backslash", None, "localhost\\evil.com", False),
    ("a list", None, "localhost, evil.com", False),
    ("a scheme", None, "http://localhost", False),
    ("NBSP", None, b"localhost\xa0", False),
    ("a NUL", None, "localhost\x00", False),
    ("a space inside", None, "local host", False),
    ("empty", None, "", False),
    ("half a bracket", None, "[::1", False),
    ("a name in brackets", None, "[localhost]", False),
    ("beyond ASCII", None, "l\u043ecalhost".encode(), False),
    ("listed", ["mcp.example.com"], "mcp.example.com", True),
    ("listed, in upper case", ["MCP.example.com"], "mcp.EXAMPLE.com", True),
    ("listed, any port", ["mcp.example.com"], "mcp.example.com:8443", True),
    ("listed, any port said", ["mcp.example.com:*"], "mcp.example.com:1", True),
    ("listed with a port", ["mcp.example.com:8443"], "mcp.example.com:8443", True),
    ("another port", ["mcp.example.com:8443"], "mcp.example.com:8444", False),
    ("no port", ["mcp.example.com:8443"], "mcp.example.com", False),
    ("not listed any more", ["mcp.example.com"], "localhost", False),
    ("beside localhost", ["mcp.example.com", "localhost"], "localhost:80", True),
    ("below a wildcard", ["*.example.com"], "a.example.com", True),
    ("far below a wildcard", ["*.example.com"], "a.b.example.com:80", True),
    ("HTTP-10 at a wildcard", ["*.example.com"], "example.com", False),
    ("HTTP-10 beside a wildcard", ["*.example.com"], "evilexample.com", False),
    ("HTTP-10 past a wildcard", ["*.example.com"], "a.example.com.evil.com", False),
    ("a wildcard with a port", ["*.example.com:80"], "a.example.com:81", False),
    ("IPv6, listed", ["[2001:db8::7]"], "[2001:DB8::7]:8000", True),
    ("every one", ["*"], "evil.example", True),
    ("every one, malformed", ["*"], "???", True),
    ("none", [], "localhost", False),
]


def lines(host: str | bytes, **more: str | bytes) -> Lines:
    return [
        *headers_of(modern("tools/list")).items(),
        ("host", host),
        *more.items(),
    ]


def refusal(header: str, shown: str, setting: str) -> Any:
    text = (
        f"{header} {shown!r} is not allowed. To admit it, name it in "
        f"App({setting}=[...])"
    )
    return error(-32600, text)


def shown(header: str | bytes) -> str:
    raw = header.encode("latin-1") if isinstance(header, str) else header
    return raw[:100].decode("ascii", "replace")


@pytest.mark.parametrize(
    ("allowed", "host", "admitted"),
    [pytest.param(*row, id=name) for name, *row in HOSTS],
)
async def test_a_host_is_admitted_by_its_name(
    allowed: Names, host: str | bytes, *, admitted: bool
) -> None:
    """HTTP-07, HTTP-10. Spec 2026-07-28: Security & Endpoint."""
    calls: list[str] = []
    app = bookshop(calls, allowed_hosts=allowed)
    reply = await post(app, modern("tools/list"), lines(host))
    if admitted:
        assert reply.status_code == 200
    else:
        expected = refusal("Host", shown(host), "allowed_hosts")
        assert (reply.status_code, reply.json()) == (403, expected)


@pytest.mark.parametrize(("allowed", "status"), [(None, 403), (["*"], 200)])
async def test_a_request_without_a_host_is_of_no_host(
    allowed: Names, status: int
) -> None:
    """RFC 9112, section 3.2."""
    request = httpx.Request(
        "POST",
        "http://localhost/mcp",
        headers=headers_of(modern("tools/list")),
        json=modern("tools/list"),
    )
    del request.headers["host"]
    transport = httpx.ASGITransport(app=bookshop(allowed_hosts=allowed))
    reply = await transport.handle_async_request(request)
    assert reply.status_code == status


async def test_two_hosts_are_none() -> None:
    """RFC 9112, section 3.2."""
    headers = [*lines("localhost"), ("host", "evil.example")]
    reply = await post(bookshop(), modern("tools/list"), headers)
    assert reply.status_code == 403


ORIGINS: list[tuple[str, Names, Names, str | bytes, bool]] = [
    # `allowed_hosts`, `allowed_origins`, the header, and whether it is admitted.
    ("a page of this machine", None, None, "http://localhost:5173", True),
    ("a page of 127.0.0.1", None, None, "http://127.0.0.1", True),
    ("a page of [::1]", None, None, "http://[::1]:3000", True),
    ("an encrypted page", None, None, "https://localhost", True),
    ("upper case", None, None, "HTTP://LOCALHOST", True),
    ("a page of elsewhere", None, None, "https://evil.example", False),
    ("HTTP-10 a longer name", None, None, "http://localhost.evil.com", False),
    ("HTTP-10 a longer port", None, None, "http://localhost:1234.evil.com", False),
    ("a user", None, None, "http://localhost@evil.com", False),
    ("a user with a password", None, None, "http://localhost:80@evil.com", False),
    ("a path", None, None, "http://localhost/evil", False),
    ("a slash", None, None, "http://localhost/", False),
    ("a query", None, None, "http://localhost?evil", False),
    ("an empty query", None, None, "http://localhost?", False),
    ("a fragment", None, None, "http://localhost#evil", False),
    ("a tab inside", None, None, "http://local\thost", False),
    ("a space inside", None, None, "http:// localhost", False),
    ("a backslash", None, None, "http:\\\\localhost", False),
    ("null", None, None, "null", False),
    ("empty", None, None, "", False),
    ("a file", None, None, "file://", False),
    ("an extension", None, None, "chrome-extension://localhost", False),
    ("no scheme", None, None, "localhost", False),
    ("no name", None, None, "http://", False),
    ("a list", None, None, "http://localhost, http://evil.example", False),
    ("beyond ASCII", None, None, b"http://localhost\xff", False),
    ("half a bracket", None, None, "http://[::1", False),
    ("HTTP-10 listed", None, ["http://localhost:*"], "http://localhost:1234", True),
    (
        "HTTP-10 listed, a longer port",
        None,
        ["http://localhost:*"],
        "http://localhost:1234.evil.com",
        False,
    ),
    (
        "HTTP-10 listed, a longer name",
        None,
        ["http://localhost"],
        "http://localhost.evil.com",
        False,
    ),
    ("listed", None, ["https://app.example.com"], "https://app.example.com", True),
    (
        "listed, in upper case",
        None,
        ["https://App.example.com"],
        "https://app.EXAMPLE.com",
        True,
    ),
    ("another scheme", None, ["https://a.example.com"], "http://a.example.com", False),
    ("another port", None, ["https://a.example.com"], "https://a.example.com:8", False),
    ("a subdomain", None, ["https://example.com"], "https://a.example.com", False),
    (
        "below a wildcard",
        None,
        ["https://*.example.com"],
        "https://a.example.com",
        True,
    ),
    ("at a wildcard", None, ["https://*.example.com"], "https://example.com", False),
    (
        "beside a wildcard",
        None,
        ["https://*.example.com"],
        "https://evilexample.com",
        False,
    ),
    # Who lists origins means these, besides the pages of the host itself.
    ("local, but others are listed", None, ["https://a.b"], "http://127.0.0.1", False),
    ("the page of the host", None, [], "http://localhost:8000", True),
    ("another port of the host", None, [], "http://localhost:8001", False),
    ("every one", None, ["*"], "https://evil.example", True),
    ("every one, null", None, ["*"], "null", True),
    ("every host, no origin", ["*"], None, "https://evil.example", False),
    ("every host, its own page", ["*"], [], "http://localhost:8000", False),
]


@pytest.mark.parametrize(
    ("hosts", "allowed", "origin", "admitted"),
    [pytest.param(*row, id=name) for name, *row in ORIGINS],
)
async def test_an_origin_is_admitted_by_its_parts(
    hosts: Names, allowed: Names, origin: str | bytes, *, admitted: bool
) -> None:
    """HTTP-10. Spec 2026-07-28: Security & Endpoint, 403 for an invalid Origin."""
    app = bookshop(allowed_hosts=hosts, allowed_origins=allowed)
    headers = lines("localhost:8000", origin=origin)
    reply = await post(app, modern("tools/list"), headers)
    if admitted:
        assert reply.status_code == 200
        assert reply.headers["access-control-allow-origin"] == shown(origin)
        assert reply.headers["vary"] == "Origin"
    else:
        expected = refusal("Origin", shown(origin), "allowed_origins")
        assert (reply.status_code, reply.json()) == (403, expected)
        assert "access-control-allow-origin" not in reply.headers


async def test_a_client_that_is_no_browser_has_no_origin() -> None:
    """HTTP-09. Spec 2026-07-28: only an Origin that is present is checked."""
    for allowed in (None, [], ["https://app.example.com"]):
        reply = await call(bookshop(allowed_origins=allowed), MODERN, "tools/list")
        assert reply.status_code == 200
        assert "access-control-allow-origin" not in reply.headers


async def test_the_page_of_a_real_name_may_call_it() -> None:
    """Ours: what is served beside the endpoint needs no setting."""
    app = bookshop(allowed_hosts=["mcp.example.com"])
    headers = lines("mcp.example.com", origin="https://mcp.example.com")
    assert (await post(app, modern("tools/list"), headers)).status_code == 200


async def test_two_origins_are_none() -> None:
    """RFC 6454, section 7.3: a request has one Origin at most."""
    origin = "http://localhost"
    headers = [*lines("localhost", origin=origin), ("origin", origin)]
    reply = await post(bookshop(), modern("tools/list"), headers)
    assert reply.status_code == 403


@pytest.mark.parametrize("verb", ["POST", "DELETE", "GET", "OPTIONS", "PUT"])
@pytest.mark.parametrize(
    "headers",
    [{"host": "evil.example"}, {"origin": "https://evil.example"}],
    ids=["host", "origin"],
)
async def test_every_method_of_http_is_behind_the_guard(
    verb: str, headers: dict[str, str]
) -> None:
    """Ours."""
    assert (await send(bookshop(), verb, headers)).status_code == 403


async def test_a_long_header_is_not_repeated_at_length() -> None:
    """Ours."""
    reply = await send(bookshop(), "POST", {"host": "x" * 10_000})
    assert reply.json() == refusal("Host", "x" * 100, "allowed_hosts")


BAD_SETTINGS: list[tuple[str, dict[str, Any], str]] = [
    ("a string of hosts", {"allowed_hosts": "example.com"}, "are lists"),
    ("a string of origins", {"allowed_origins": "https://a.b"}, "are lists"),
    ("a URL as a host", {"allowed_hosts": ["https://a.b"]}, "is no host"),
    ("a path of a host", {"allowed_hosts": ["a.b/c"]}, "is no host"),
    ("an empty host", {"allowed_hosts": [""]}, "is no host"),
    ("a host as an origin", {"allowed_origins": ["a.b"]}, "is no origin"),
    ("a path of an origin", {"allowed_origins": ["https://a.b/c"]}, "is no origin"),
    ("an origin of a file", {"allowed_origins": ["file://x"]}, "is no origin"),
]


@pytest.mark.parametrize(
    ("options", "fault"), [pytest.param(*row, id=name) for name, *row in BAD_SETTINGS]
)
def test_a_setting_that_admits_nothing_is_told_at_once(
    options: dict[str, Any], fault: str
) -> None:
    """Ours."""
    with pytest.raises(SetupError, match=fault):
        App("a", **options)


async def test_an_origin_may_be_written_with_a_slash_at_its_end() -> None:
    """Ours: copied from a browser's address bar."""
    app = bookshop(allowed_origins=["https://app.example.com/"])
    headers = lines("localhost", origin="https://app.example.com")
    assert (await post(app, modern("tools/list"), headers)).status_code == 200


# CORS.

ORIGIN = "https://app.example.com"
SENT = [
    "accept",
    "authorization",
    "content-type",
    "last-event-id",
    "mcp-method",
    "mcp-name",
    "mcp-protocol-version",
    "mcp-session-id",
    "mcp-param-region",
    "mcp-param-x-y.z",
]


def pages(**options: Any) -> App:
    return bookshop(allowed_origins=[ORIGIN], **options)


def preflight(*names: str, method: str = "POST") -> dict[str, str]:
    return {
        "origin": ORIGIN,
        "access-control-request-method": method,
        "access-control-request-headers": ",".join(names),
    }


@pytest.mark.parametrize("case", [str.lower, str.upper, str.title])
async def test_a_page_may_send_every_header_of_the_protocol(case: Any) -> None:
    """Fetch standard: CORS-preflight. Spec 2026-07-28: Request Metadata."""
    asked = preflight(*map(case, SENT))
    reply = await send(pages(), "OPTIONS", asked)
    allowed = reply.headers["access-control-allow-headers"]
    assert (reply.status_code, reply.content) == (204, b"")
    assert allowed.split(", ") == SENT
    assert reply.headers["access-control-allow-origin"] == ORIGIN
    assert reply.headers["access-control-allow-methods"] == "GET, POST, DELETE"
    assert reply.headers["access-control-max-age"] == "600"
    assert reply.headers["vary"] == "Origin"


async def test_a_page_may_send_no_other_header() -> None:
    """Ours."""
    asked = preflight("content-type", "x-admin", "cookie", "mcp-paramount", "")
    reply = await send(pages(), "OPTIONS", asked)
    assert reply.headers["access-control-allow-headers"] == "content-type"


async def test_a_modern_app_offers_a_page_nothing_but_post() -> None:
    """Spec 2026-07-28: GET and DELETE are 405."""
    reply = await send(pages(eras={"modern"}), "OPTIONS", preflight())
    assert reply.headers["access-control-allow-methods"] == "POST"


async def test_a_preflight_of_a_page_of_elsewhere_is_refused() -> None:
    """Ours."""
    asked = {**preflight("content-type"), "origin": "https://evil.example"}
    reply = await send(pages(), "OPTIONS", asked)
    expected = refusal("Origin", "https://evil.example", "allowed_origins")
    assert (reply.status_code, reply.json()) == (403, expected)
    assert "access-control-allow-headers" not in reply.headers


async def test_a_preflight_needs_no_login() -> None:
    """Fetch standard: a browser sends no credentials with it."""

    def nobody(_: Any) -> str:
        raise NotImplementedError

    reply = await send(pages(principal=nobody), "OPTIONS", preflight())
    assert reply.status_code == 204


async def test_options_without_an_origin_is_no_preflight() -> None:
    """Ours."""
    reply = await send(pages(), "OPTIONS")
    assert (reply.status_code, reply.headers["allow"]) == (405, "GET, POST, DELETE")


async def test_a_page_may_read_the_session_that_it_opened() -> None:
    """Spec 2025-11-25, basic/transports: Session Management."""
    reply = await post(pages(), initialize(), {**JSON_HEADERS, "origin": ORIGIN})
    exposed = reply.headers["access-control-expose-headers"].split(", ")
    assert "mcp-session-id" in exposed
    assert reply.headers["mcp-session-id"]


ANSWERS: list[tuple[str, bytes, dict[str, str], int]] = [
    ("a result", b'{"jsonrpc":"2.0","id":1,"method":"ping"}', {}, 200),
    ("an error", b'{"jsonrpc":"2.0","id":1,"method":"nope"}', {}, 200),
    ("a notification", b'{"jsonrpc":"2.0","method":"x"}', {}, 202),
    ("a parse error", b"{", {}, 400),
    ("an unknown session", b"{}", {"mcp-session-id": "x"}, 400),
    ("a wrong type", b"{}", {"content-type": "text/plain"}, 415),
    ("a wrong answer", b"{}", {"accept": "text/html"}, 406),
    ("too much", b" " * 2000, {}, 413),
    ("no login", b"{}", {"authorization": "none"}, 401),
]


@pytest.mark.parametrize(
    ("body", "headers", "status"),
    [pytest.param(*row, id=name) for name, *row in ANSWERS],
)
async def test_a_page_may_read_every_answer(
    body: bytes, headers: dict[str, str], status: int
) -> None:
    """Ours: an error that a page can't read looks like a broken network."""

    def login(request: Any) -> str:
        if request.headers.get("authorization") == "none":
            raise HTTPException(401, "Log in.")
        return "ada"

    app = pages(max_body=1000, principal=login)
    reply = await post(app, body, {**JSON_HEADERS, "origin": ORIGIN, **headers})
    assert reply.status_code == status
    assert reply.headers["access-control-allow-origin"] == ORIGIN
    for verb in ("GET", "DELETE"):
        other = await send(app, verb, {"origin": ORIGIN})
        assert other.headers["access-control-allow-origin"] == ORIGIN


async def test_a_legacy_request_of_a_page_is_served() -> None:
    reply = await post(
        pages(),
        legacy("tools/list"),
        {**JSON_HEADERS, "origin": ORIGIN, "mcp-protocol-version": LEGACY},
    )
    assert (reply.status_code, reply.headers["vary"]) == (200, "Origin")
