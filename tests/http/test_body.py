"""Bodies: how large, how deep, in which encoding, and what follows a bad one."""

import json
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from typing import Any

import pytest

from mcpkit import App
from mcpkit.protocol.jsonrpc import MAX_DEPTH
from tests.http.bookshop import bookshop
from tests.http.client import (
    JSON_HEADERS,
    LEGACY,
    MODERN,
    Lines,
    error,
    headers_of,
    legacy,
    modern,
    post,
    request,
    result_of,
)
from tests.http.serving import HTTPS, Http, connected, head, served, whole

LIMIT = 1000
PING = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'
ASKED = json.loads(PING)
PONG = {"jsonrpc": "2.0", "id": 1, "result": {}}
TOO_LARGE = error(-32600, f"The body is larger than {LIMIT} bytes")
PARSE_ERROR = error(-32700, "Parse error")


def padded(size: int) -> bytes:
    """Return a `ping` of exactly this size."""
    return PING + b" " * (size - len(PING))


def sized() -> App:
    return bookshop(max_body=LIMIT)


SIZES = [
    ("small", len(PING), 200),
    ("one less than the limit", LIMIT - 1, 200),
    ("HTTP-13 the limit", LIMIT, 200),
    ("one more than the limit", LIMIT + 1, 413),
    ("much more", 100 * LIMIT, 413),
]
sizes = pytest.mark.parametrize(
    ("size", "status"), [pytest.param(*row, id=name) for name, *row in SIZES]
)


async def parts(body: bytes, size: int, seen: list[int]) -> AsyncIterator[bytes]:
    for start in range(0, len(body), size):
        seen.append(start)
        yield body[start : start + size]


@sizes
async def test_a_body_is_as_large_as_the_app_says(size: int, status: int) -> None:
    """HTTP-13. Ours."""
    reply = await post(sized(), padded(size))
    expected = PONG if status == 200 else TOO_LARGE
    assert (reply.status_code, reply.json()) == (status, expected)
    assert reply.headers.get("connection") == (None if status == 200 else "close")


@sizes
@pytest.mark.parametrize("part", [1, 400, 1_000_000])
async def test_a_body_without_a_length_is_bounded_too(
    size: int, status: int, part: int
) -> None:
    """HTTP-13. Ours."""
    seen: list[int] = []
    headers = {**JSON_HEADERS, "transfer-encoding": "chunked"}
    reply = await post(sized(), parts(padded(size), part, seen), headers, message=ASKED)
    expected = PONG if status == 200 else TOO_LARGE
    assert (reply.status_code, reply.json()) == (status, expected)
    # What comes after the limit is not asked for.
    assert len(seen) <= LIMIT // part + 1


LENGTHS = [
    ("HTTP-13 ten gigabytes", str(10 * 2**30), 413),
    ("beyond every integer", "9" * 100, 413),
    ("zeros in front", "0" * 30 + str(len(PING)), 200),
    ("HTTP-13 smaller than the body", "3", 200),
    ("negative", "-5", 200),
    ("no number", "many", 200),
    ("empty", "", 200),
    ("digits of another script", "\u0661", 200),
]


@pytest.mark.parametrize(
    ("length", "status"), [pytest.param(*row, id=name) for name, *row in LENGTHS]
)
async def test_what_a_length_says_is_held_against_the_body(
    length: str, status: int
) -> None:
    """Ours: a server below checks lengths, and nothing here relies on it."""
    headers: Lines = [
        *JSON_HEADERS.items(),
        ("content-length", length.encode("utf-8")),
    ]
    seen: list[int] = []
    reply = await post(sized(), parts(PING, 10, seen), headers, message=ASKED)
    expected = PONG if status == 200 else TOO_LARGE
    assert (reply.status_code, reply.json()) == (status, expected)
    # A length that is too large is refused before anything is read.
    assert (seen == []) == (status == 413)


@pytest.mark.parametrize("length", ["many", "5"])
async def test_a_length_that_lies_does_not_open_the_limit(length: str) -> None:
    """HTTP-13. Ours."""
    headers = {**JSON_HEADERS, "content-length": length}
    reply = await post(sized(), parts(padded(5000), 100, []), headers)
    assert (reply.status_code, reply.json()) == (413, TOO_LARGE)


async def asgi(app: App, *events: Mapping[str, Any]) -> list[Any]:
    """Send a POST as events of ASGI, and return those that come back."""
    sent: list[Any] = []
    waiting: Iterator[Mapping[str, Any]] = iter(events)

    async def receive() -> Any:
        return next(waiting)

    async def send(event: Any) -> None:
        sent.append(event)

    lines = [(b"host", b"localhost")]
    lines += [(k.encode(), v.encode()) for k, v in JSON_HEADERS.items()]
    scope = {"type": "http", "method": "POST", "path": "/mcp", "headers": lines}
    await app(scope, receive, send)
    return sent


@pytest.mark.parametrize(
    "events",
    [
        pytest.param([{"type": "http.disconnect"}], id="at once"),
        pytest.param(
            [
                {"type": "http.request", "body": PING, "more_body": True},
                {"type": "http.disconnect"},
            ],
            id="in the middle",
        ),
    ],
)
async def test_a_client_that_goes_away_is_not_answered(
    events: list[dict[str, Any]],
) -> None:
    """RPC-18. ASGI: HTTP Disconnect."""
    assert await asgi(bookshop(), *events) == []


async def test_events_without_a_body_are_empty_parts() -> None:
    """ASGI: Request, `body` and `more_body` are optional."""
    sent = await asgi(
        bookshop(),
        {"type": "http.request", "more_body": True},
        {"type": "http.request", "body": PING, "more_body": True},
        {"type": "http.request"},
    )
    assert json.loads(sent[1]["body"]) == PONG


def nested(depth: int, opening: str = "[", closing: str = "]") -> bytes:
    """Return a `ping` whose params nest to this depth, the message included."""
    inner = opening * (depth - 2) + "0" + closing * (depth - 2)
    return PING[:-1] + f',"params":{{"a":{inner}}}}}'.encode()


TEXTS = [
    # Bodies that are JSON, however odd.
    ("as it is", PING),
    ("a byte order mark", b"\xef\xbb\xbf" + PING),
    ("white space around it", b" \r\n\t" + PING + b"\n"),
    ("unknown keys", PING[:-1] + b',"x":1}'),
    ("duplicate keys, the last one wins", b'{"method":"nope",' + PING[1:]),
    ("escapes", PING.replace(b"ping", rb"\u0070ing")),
    ("a surrogate pair", PING[:-1] + rb',"params":{"a":"\ud83d\ude00"}}'),
    ("the deepest arrays", nested(MAX_DEPTH)),
    ("the deepest objects", nested(MAX_DEPTH, '{"a":', "}")),
    ("brackets in a string", PING[:-1] + b',"params":{"a":"%b"}}' % (b"[" * 1000)),
    ("many siblings", PING[:-1] + b',"params":{"a":[%b0]}}' % (b"[]," * 1000)),
    ("a great integer", PING[:-1] + b',"params":{"a":%b}}' % (b"9" * 4300)),
    ("a number beyond a double", PING[:-1] + b',"params":{"a":1e999}}'),
    ("an empty key", PING[:-1] + b',"params":{"":null}}'),
    ("a NUL in a string", PING[:-1] + rb',"params":{"\u0000":"\u0000"}}'),
]

NO_TEXTS = [
    ("RPC-06 empty", b""),
    ("white space", b" \n"),
    ("RPC-06 no JSON", b"not json"),
    ("RPC-06 truncated", b'{"jsonrpc": "2.0", '),
    ("a trailing comma", PING[:-1] + b",}"),
    ("a comment", PING + b"// ping"),
    ("single quotes", PING.replace(b'"', b"'")),
    ("two messages", PING + PING),
    ("two lines of messages", PING + b"\n" + PING),
    ("a trailing NUL", PING + b"\x00"),
    ("NaN", PING[:-1] + b',"params":{"a":NaN}}'),
    ("Infinity", PING[:-1] + b',"params":{"a":Infinity}}'),
    ("-Infinity", PING[:-1] + b',"params":{"a":-Infinity}}'),
    ("a leading zero", PING[:-1] + b',"params":{"a":01}}'),
    ("a plus", PING[:-1] + b',"params":{"a":+1}}'),
    ("hexadecimal", PING[:-1] + b',"params":{"a":0x1}}'),
    ("a bare point", PING[:-1] + b',"params":{"a":1.}}'),
    ("a lone surrogate", PING[:-1] + rb',"params":{"a":"\ud800"}}'),
    ("a lone low surrogate", PING[:-1] + rb',"params":{"a":"\udc00"}}'),
    ("surrogates in the wrong order", PING[:-1] + rb',"params":{"a":"\udc00\ud800"}}'),
    ("a lone surrogate as a key", PING[:-1] + rb',"params":{"\ud800":1}}'),
    ("a lone surrogate as the id", rb'{"jsonrpc":"2.0","id":"\ud800","method":"ping"}'),
    ("invalid UTF-8", PING[:-1] + b',"params":{"a":"\xff"}}'),
    ("UTF-8 of a surrogate", PING[:-1] + b',"params":{"a":"\xed\xa0\x80"}}'),
    ("overlong UTF-8", PING[:-1] + b',"params":{"a":"\xc0\xaf"}}'),
    ("latin-1", PING[:-1] + b',"params":{"a":"\xfc"}}'),
    ("UTF-16", PING.decode().encode("utf-16")),
    ("UTF-32", PING.decode().encode("utf-32-le")),
    ("a byte order mark alone", b"\xef\xbb\xbf"),
    ("two byte order marks", b"\xef\xbb\xbf" * 2 + PING),
    ("a line break in a string", PING[:-1] + b',"params":{"a":"\n"}}'),
    ("one level too deep", nested(MAX_DEPTH + 1)),
    ("one level of objects too deep", nested(MAX_DEPTH + 1, '{"a":', "}")),
    ("RPC-16 200 levels", nested(200, '{"a":', "}")),
    ("RPC-16 2,000 levels", nested(2_000, '{"a":', "}")),
    ("RPC-16 100,000 levels", nested(100_000, '{"a":', "}")),
    ("RPC-16 100,000 brackets", b"[" * 100_000),
    ("an integer without end", PING[:-1] + b',"params":{"a":%b}}' % (b"9" * 4301)),
    ("an unknown escape", PING[:-1] + rb',"params":{"a":"\x41"}}'),
    ("gzip", b"\x1f\x8b\x08\x00" + PING),
]


@pytest.mark.parametrize("text", [pytest.param(row, id=name) for name, row in TEXTS])
async def test_what_is_json_is_read(text: bytes) -> None:
    """RFC 8259."""
    assert (await post(bookshop(), text)).json() == PONG


@pytest.mark.parametrize("text", [pytest.param(row, id=name) for name, row in NO_TEXTS])
async def test_what_is_no_json_is_a_parse_error_without_an_id(text: bytes) -> None:
    """RPC-06, RPC-16. Spec 2026-07-28, schema: JSONRPCErrorResponse."""
    reply = await post(bookshop(), text)
    assert (reply.status_code, reply.json()) == (400, PARSE_ERROR)


PARSE_ERROR_IDS: list[tuple[str, dict[str, str], dict[str, Any]]] = [
    # The era of what can't be read is in the headers, or unknown.
    ("no header", {}, {}),
    ("a modern version", {"mcp-protocol-version": MODERN}, {}),
    ("an unknown version", {"mcp-protocol-version": "2099-01-01"}, {}),
    ("a legacy version", {"mcp-protocol-version": LEGACY}, {"id": None}),
    ("a session", {"mcp-session-id": "any"}, {"id": None}),
]


@pytest.mark.parametrize(
    ("headers", "identified"),
    [pytest.param(*row, id=name) for name, *row in PARSE_ERROR_IDS],
)
async def test_a_parse_error_has_the_id_of_its_era(
    headers: dict[str, str], identified: dict[str, Any]
) -> None:
    """Spec 2025-11-25, schema: JSONRPCError needs an id, which is unknown."""
    reply = await post(bookshop(), b"{", {**JSON_HEADERS, **headers})
    assert (reply.status_code, reply.json()) == (400, {**PARSE_ERROR, **identified})


INTEGERS = [0, -1, 2**53, 2**53 + 1, 2**63, 2**64 + 1, -(2**70), 10**100]


@pytest.mark.parametrize("version", [MODERN, LEGACY])
@pytest.mark.parametrize("number", INTEGERS)
async def test_integers_are_exact_on_the_way_in_and_out(
    number: int, version: str
) -> None:
    """Ours."""
    params = {"name": "add", "arguments": {"a": number, "b": 1}}
    reply = await post(bookshop(), *request(version, "tools/call", params))
    content = result_of(reply)["structuredContent"]
    assert content == (number + 1 if version == MODERN else {"result": number + 1})


STRINGS = [
    "",
    "ü",
    "日本",
    "🐟",
    "\x00",
    "\u2028\u2029",
    "\ufeff",
    '"\\/',
    "\r\n\t",
    "\x7f",
]


@pytest.mark.parametrize("version", [MODERN, LEGACY])
@pytest.mark.parametrize("text", STRINGS, ids=ascii)
async def test_strings_come_back_as_they_came(text: str, version: str) -> None:
    """Ours."""
    params = {"name": "echo", "arguments": {"text": text}}
    reply = await post(bookshop(), *request(version, "tools/call", params))
    assert result_of(reply)["content"] == [{"type": "text", "text": text}]
    assert reply.content.decode("utf-8")


async def test_text_in_a_reply_is_utf_8_and_not_escaped() -> None:
    """Ours."""
    message = modern("tools/call", {"name": "echo", "arguments": {"text": "日本"}})
    assert "日本".encode() in (await post(bookshop(), message)).content


SHAPES: list[tuple[str, Any, str]] = [
    ("null", None, "Expected one JSON-RPC message"),
    ("true", True, "Expected one JSON-RPC message"),
    ("a number", 1, "Expected one JSON-RPC message"),
    ("a string", "ping", "Expected one JSON-RPC message"),
    ("an empty object", {}, 'Expected "jsonrpc": "2.0"'),
    ("no version", {"id": 1, "method": "ping"}, 'Expected "jsonrpc": "2.0"'),
    ("a number as the version", {**PONG, "jsonrpc": 2.0}, 'Expected "jsonrpc": "2.0"'),
    ("a key in upper case", {"JSONRPC": "2.0", "id": 1, "method": "ping"}, "Expected"),
    ("no method", {"jsonrpc": "2.0", "id": 1}, "Expected a method"),
    ("a null method", legacy("ping") | {"method": None}, "The method is not a string"),
    ("a number as the method", legacy("ping") | {"method": 1}, "The method is"),
    ("a list as the method", legacy("ping") | {"method": ["x"]}, "The method is"),
    ("an object as the method", legacy("ping") | {"method": {}}, "The method is"),
    ("result and error", PONG | {"error": {"code": 1, "message": ""}}, "Expected a"),
    ("a result without an id", {"jsonrpc": "2.0", "result": {}}, "Expected a method"),
]


@pytest.mark.parametrize(
    ("message", "fault"), [pytest.param(*row, id=name) for name, *row in SHAPES]
)
@pytest.mark.parametrize("version", [MODERN, LEGACY, None])
async def test_what_is_no_json_rpc_is_an_invalid_request(
    message: Any, fault: str, version: str | None
) -> None:
    """RPC-18. JSON-RPC 2.0: Request object."""
    named = {} if version is None else {"mcp-protocol-version": version}
    raw = json.dumps(message).encode()
    reply = await post(bookshop(), raw, {**JSON_HEADERS, **named})
    answer = reply.json()
    assert (reply.status_code, answer["error"]["code"]) == (400, -32600)
    assert answer["error"]["message"].startswith(fault)
    given = message.get("id") if isinstance(message, dict) else None
    assert answer.get("id") == given


PARAMS: list[Any] = [None, [], "x", 1, True, [{"name": "add"}]]


@pytest.mark.parametrize("params", PARAMS)
async def test_params_that_are_no_object_are_invalid_in_the_legacy_era(
    params: Any,
) -> None:
    """RPC-18. Spec 2025-11-25, schema: JSONRPCRequest."""
    for method in ("initialize", "ping", "tools/list", "tools/call"):
        message = {**legacy(method), "params": params}
        reply = await post(bookshop(), json.dumps(message).encode())
        expected = error(
            -32602, "Invalid params: params must be an object", request_id=1
        )
        assert (reply.status_code, reply.json()) == (200, expected)


@pytest.mark.parametrize("params", PARAMS)
async def test_params_that_are_no_object_are_refused_in_the_modern_era(
    params: Any,
) -> None:
    """META-01. Spec 2026-07-28, basic/index: `_meta`."""
    message = {**legacy("tools/list"), "params": params}
    headers = headers_of(modern("tools/list"))
    reply = await post(bookshop(), json.dumps(message).encode(), headers)
    expected = error(
        -32602,
        "Invalid params: params must be an object",
        request_id=1,
        data={"field": "params"},
    )
    assert (reply.status_code, reply.json()) == (400, expected)


# Over a real server, one connection for all.


@pytest.fixture(scope="module", params=HTTPS)
def port(request: pytest.FixtureRequest) -> Iterator[int]:
    http: Http = request.param
    with served(sized(), http) as number:
        yield number


LIST = json.dumps(modern("tools/list", request_id="list")).encode()
LIST_HEADERS = {"mcp-protocol-version": MODERN, "mcp-method": "tools/list"}

FAULTS: list[tuple[str, Callable[[], bytes], int]] = [
    ("no JSON", lambda: whole(b"{"), 400),
    ("empty", lambda: whole(b""), 400),
    ("RPC-16 nested", lambda: whole(b"[" * LIMIT), 400),
    ("invalid UTF-8", lambda: whole(b'"\xff"'), 400),
    ("no JSON-RPC", lambda: whole(b"{}"), 400),
    ("RPC-07 a batch", lambda: whole(b"[]", {"mcp-protocol-version": LEGACY}), 400),
    ("unknown method", lambda: whole(b'{"jsonrpc":"2.0","id":1,"method":"x"}'), 200),
    ("wrong host", lambda: whole(PING, {"host": "evil.example"}), 403),
    ("wrong origin", lambda: whole(PING, {"origin": "http://evil.example"}), 403),
    ("wrong type", lambda: whole(PING, {"content-type": "text/plain"}), 415),
    ("wrong answer", lambda: whole(PING, {"accept": "text/html"}), 406),
    ("unknown session", lambda: whole(PING, {"mcp-session-id": "bogus"}), 404),
    ("GET without a session", lambda: head("GET"), 400),
    (
        "PUT with a body",
        lambda: head("PUT", headers={"content-length": "3"}) + b"abc",
        405,
    ),
    ("DELETE without a session", lambda: head("DELETE"), 400),
    ("another path", lambda: head("POST", "/x", {"content-length": "3"}) + b"abc", 404),
    ("a notification", lambda: whole(b'{"jsonrpc":"2.0","method":"x"}'), 202),
]


async def test_the_next_request_on_the_connection_is_served_whatever_came_before(
    port: int,
) -> None:
    """RPC-16, RPC-18. Ours."""
    async with connected(port) as connection:
        for name, fault, status in FAULTS:
            await connection.send(fault())
            reply = await connection.reply()
            assert (name, reply.status) == (name, status)
            await connection.send(whole(LIST, LIST_HEADERS))
            served = await connection.reply()
            assert (name, served.status) == (name, 200)
            assert json.loads(served.body)["id"] == "list"


async def test_the_answer_to_head_has_no_body(port: int) -> None:
    """RFC 9110, section 9.3.2."""
    async with connected(port) as connection:
        await connection.send(head("HEAD"), head("GET"))
        to_head = await connection.reader.readuntil(b"\r\n\r\n")
        assert to_head.startswith(b"HTTP/1.1 405 ")
        assert (await connection.reply()).status == 400


async def test_requests_that_do_not_wait_for_replies_are_answered_in_turn(
    port: int,
) -> None:
    """RFC 9112, section 9.3.2: pipelining."""
    asked = [json.dumps(legacy("ping", request_id=number)) for number in range(5)]
    async with connected(port) as connection:
        await connection.send(b"".join(whole(body.encode()) for body in asked))
        replies = [await connection.reply() for _ in asked]
    assert [json.loads(reply.body)["id"] for reply in replies] == [0, 1, 2, 3, 4]


async def test_a_body_in_many_parts_is_read_to_its_end(port: int) -> None:
    async with connected(port) as connection:
        parts = [bytes([byte]) for byte in padded(LIMIT)]
        await connection.send(head(headers={"content-length": str(LIMIT)}), *parts)
        assert json.loads((await connection.reply()).body) == PONG


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


CHUNKED = {"transfer-encoding": "chunked"}


async def test_a_body_in_chunks_is_served_up_to_the_limit(port: int) -> None:
    """HTTP-13."""
    async with connected(port) as connection:
        for size in (100, 1):
            body = padded(LIMIT)
            chunks = [
                chunk(body[start : start + size]) for start in range(0, LIMIT, size)
            ]
            await connection.send(head(headers=CHUNKED), *chunks, chunk(b""))
            assert json.loads((await connection.reply()).body) == PONG


async def test_an_endless_body_is_refused_and_its_connection_ends(port: int) -> None:
    """HTTP-13. The refusal comes while the client still sends."""
    async with connected(port) as connection:
        await connection.send(head(headers=CHUNKED), chunk(padded(LIMIT + 1)))
        reply = await connection.reply()
        assert (reply.status, json.loads(reply.body)) == (413, TOO_LARGE)
        assert reply.headers["connection"] == "close"
        assert await connection.is_closed()


async def test_a_body_of_ten_gigabytes_is_refused_before_it_is_sent(port: int) -> None:
    """HTTP-13."""
    async with connected(port) as connection:
        await connection.send(head(headers={"content-length": str(10 * 2**30)}))
        reply = await connection.reply()
        assert (reply.status, json.loads(reply.body)) == (413, TOO_LARGE)
        assert await connection.is_closed()


async def test_a_client_that_waits_to_be_asked_for_the_body_is_asked(port: int) -> None:
    """RFC 9110, section 10.1.1: Expect."""
    expecting = {"expect": "100-continue"}
    async with connected(port) as connection:
        await connection.send(head(headers={**expecting, "content-length": "40"}))
        assert (await connection.reply()).status == 100
        await connection.send(PING)
        assert json.loads((await connection.reply()).body) == PONG
    async with connected(port) as connection:
        await connection.send(head(headers={**expecting, "content-length": "99999"}))
        assert (await connection.reply()).status == 413


@pytest.mark.parametrize("length", ["-5", "many", "1e3", "0x10"])
async def test_a_length_that_is_none_is_refused_by_the_server(
    port: int, length: str
) -> None:
    """HTTP-13. RFC 9112, section 6.3."""
    async with connected(port) as connection:
        await connection.send(head(headers={"content-length": length}) + PING)
        assert (await connection.reply()).status == 400


async def test_a_body_that_is_longer_than_it_says_reaches_no_handler(port: int) -> None:
    """HTTP-13. What is over is no second request: RFC 9112, section 6.3."""
    async with connected(port) as connection:
        await connection.send(whole(PING, {"content-length": "40"}) + b"x" * 2000)
        connection.writer.write_eof()
        answers = await connection.reader.read()
    assert answers.count(b'"jsonrpc"') <= 1
    assert answers.count(b"HTTP/1.1 ") <= 2


async def test_a_client_that_drops_the_connection_harms_nobody(port: int) -> None:
    """RPC-18."""
    for sent in (head(headers={"content-length": "40"}), whole(PING)[:-3], b"POST /mc"):
        async with connected(port) as connection:
            await connection.send(sent)
    async with connected(port) as connection:
        await connection.send(whole(PING))
        assert json.loads((await connection.reply()).body) == PONG
