"""Bytes to messages and back, and every builder of an envelope."""

import dataclasses
import doctest
import json
from collections import ChainMap, deque
from collections.abc import Callable
from datetime import UTC, date, datetime
from enum import Enum
from types import MappingProxyType
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given, settings, strategies as st

from mcpkit.errors import INVALID_REQUEST, PARSE_ERROR, ProtocolError
from mcpkit.protocol import jsonrpc, modern
from mcpkit.protocol.jsonrpc import (
    JSON,
    MAX_DEPTH,
    NAMED_ERRORS,
    Encoded,
    Kind,
    ResponseTemplate,
    batch_error,
    decode,
    encode,
    encode_response,
    encode_result,
    encode_value,
    error_response,
    is_error_response,
    is_notification,
    is_object,
    is_request_id,
    kind_of,
    mcp_error,
    notification,
    readable_id,
    request,
    success_response,
    tool_error,
)
from mcpkit.protocol.results import Result
from tests.wire import check_response

MODERN, LEGACY = "2026-07-28", "2025-11-25"


def nested(depth: int, opening: bytes = b"[", closing: bytes = b"]") -> bytes:
    return opening * depth + closing * depth


BOTH_WAYS: list[tuple[str, Any, bytes]] = [
    # id, value, bytes
    ("null", None, b"null"),
    ("true", True, b"true"),
    ("an empty object", {}, b"{}"),
    ("members in their order", {"b": 1, "a": [2, {}]}, b'{"b":1,"a":[2,{}]}'),
    ("zero", 0, b"0"),
    ("a negative integer", -7, b"-7"),
    ("2^53 + 1", 9007199254740993, b"9007199254740993"),
    ("2^63", 9223372036854775808, b"9223372036854775808"),
    ("below -2^63", -9223372036854775809, b"-9223372036854775809"),
    ("2^64", 18446744073709551616, b"18446744073709551616"),
    ("4300 digits", 10**4300 - 1, b"9" * 4300),
    ("a fraction", 0.1, b"0.1"),
    ("an integral fraction", 3.0, b"3.0"),
    ("negative zero", -0.0, b"-0.0"),
    ("text in UTF-8", "Zażółć 世界 😀", '"Zażółć 世界 😀"'.encode()),
    ("a line separator", "\u2028", b'"\xe2\x80\xa8"'),
    ("a zero character", "\x00", b'"\\u0000"'),
    ("a line break", "a\nb", b'"a\\nb"'),
    ("quotes", '"\\', b'"\\"\\\\"'),
    ("an empty key", {"": ""}, b'{"":""}'),
]


@pytest.mark.parametrize(
    ("value", "raw"), [pytest.param(*row, id=name) for name, *row in BOTH_WAYS]
)
def test_a_value_and_its_bytes_are_one(value: Any, raw: bytes) -> None:
    """Spec 2026-07-28, basic/index: Messages; ours: compact, as UTF-8."""
    assert (encode(value), repr(decode(raw))) == (raw, repr(value))


DECODED: list[tuple[str, bytes, Any]] = [
    # id, bytes, value
    ("white space", b" \t\r\n{ } ", {}),
    ("a byte order mark", b"\xef\xbb\xbf[1]", [1]),
    ("an escaped pair of surrogates", b'"\\ud83d\\ude00"', "😀"),
    ("escapes", b'"\\u00e9\\/\\b\\f\\r\\t"', "é/\b\f\r\t"),
    ("a control character that may be", b'"\x7f"', "\x7f"),
    ("an exponent", b"1E2", 100.0),
    ("a number too small", b"1e-999", 0.0),
    ("a long fraction", b"1." + b"0" * 5000, 1.0),
    ("the last of two equal keys", b'{"a":1,"a":2}', {"a": 2}),
    ("128 levels of arrays", nested(128), json.loads(nested(128))),
    (
        "128 levels of objects",
        b'{"a":' * 127 + b"{}" + b"}" * 127,
        json.loads(b'{"a":' * 127 + b"{}" + b"}" * 127),
    ),
    ("many brackets side by side", b"[" + b"[]," * 999 + b"[]]", [[]] * 1000),
    ("brackets in a string", b'"' + b"[" * 999 + b'"', "[" * 999),
    (
        "RPC-15 keys that differ in case",
        b'{"method":"a","Method":"b","name":"c","name\\u0000":"d"}',
        {"method": "a", "Method": "b", "name": "c", "name\x00": "d"},
    ),
    (
        "RPC-15 a name given twice",
        b'{"params":{"name":"safe","name":"evil"}}',
        {"params": {"name": "evil"}},
    ),
]


@pytest.mark.parametrize(
    ("raw", "value"), [pytest.param(*row, id=name) for name, *row in DECODED]
)
def test_json_is_decoded(raw: bytes, value: Any) -> None:
    """Spec 2026-07-28, basic/index: Messages; ours: the bounds."""
    assert decode(raw) == value


@pytest.mark.parametrize("kind", [bytes, bytearray])
def test_a_body_that_was_collected_needs_no_copy(
    kind: Callable[[bytes], bytes | bytearray],
) -> None:
    assert decode(kind(b'{"a":1}')) == {"a": 1}


UNDECODABLE: list[tuple[str, bytes]] = [
    # id, bytes
    ("RPC-06 a message cut short", b'{"jsonrpc": "2.0", '),
    ("RPC-06 nothing", b""),
    ("RPC-06 no JSON", b"not json"),
    ("white space alone", b" \n"),
    ("two values", b"{} {}"),
    ("a trailing comma", b'{"a":1,}'),
    ("a comment", b"// 1\n1"),
    ("single quotes", b"{'a':1}"),
    ("a bare key", b"{a:1}"),
    ("a leading zero", b"01"),
    ("a bare point", b"1."),
    ("no integer part", b".5"),
    ("a plus sign", b"+1"),
    ("a hexadecimal number", b"0x1"),
    ("NaN", b'{"a":NaN}'),
    ("Infinity", b"[Infinity]"),
    ("minus Infinity", b"-Infinity"),
    ("4301 digits", b"9" * 4301),
    ("a raw line break in a string", b'"a\nb"'),
    ("an unknown escape", b'"\\x41"'),
    ("half an escape", b'"\\u12"'),
    ("half a pair of surrogates", b'"\\ud800"'),
    ("the other half", b'"\\udc00"'),
    ("a pair the wrong way round", b'"\\udc00\\ud800"'),
    ("half a pair in a key", b'{"\\ud800":1}'),
    ("half a pair in UTF-8", b'"\xed\xa0\x80"'),
    ("invalid UTF-8", b'"\xff"'),
    ("UTF-8 that is too long", b'"\xc0\xaf"'),
    ("UTF-8 cut short", b'"\xe4\xb8"'),
    ("UTF-16", "[1]".encode("utf-16")),
    ("a byte order mark alone", b"\xef\xbb\xbf"),
    ("two byte order marks", b"\xef\xbb\xbf\xef\xbb\xbf1"),
    ("a zero byte", b"1\x00"),
    ("129 levels of arrays", nested(129)),
    ("129 levels of objects", b'{"a":' * 128 + b"{}" + b"}" * 128),
    ("129 levels of both", b'[{"a":' * 64 + b"[]" + b"}]" * 64),
    ("129 levels beside much that is flat", b"[[]," * 128 + b"[]" + b"]" * 128),
    ("RPC-16 200 levels", b'{"a":' * 200 + b"{}" + b"}" * 200),
    ("RPC-16 2,000 levels", b'{"a":' * 2_000 + b"{}" + b"}" * 2_000),
    ("RPC-16 100,000 levels", nested(100_000)),
    ("RPC-16 100,000 openings", b"[" * 100_000),
]


@pytest.mark.parametrize(
    "raw", [pytest.param(raw, id=name) for name, raw in UNDECODABLE]
)
def test_anything_else_is_a_parse_error(raw: bytes) -> None:
    """Spec 2026-07-28, schema: ParseError; ours: the bounds."""
    with pytest.raises(ProtocolError) as caught:
        decode(raw)
    assert str(caught.value) == "Parse error"
    assert error_response(caught.value)["error"] == {
        "code": PARSE_ERROR,
        "message": "Parse error",
    }


def refusal(raw: bytes) -> int | None:
    """Return the code that `raw` is refused with, if it is."""
    try:
        decode(raw)
    except ProtocolError as error:
        return error.code
    return None


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
).filter(lambda value: "inf" not in repr(value))


@settings(max_examples=200, deadline=None)
@given(JSON_VALUES)
def test_decode_undoes_encode(value: JSON) -> None:
    """Ours. Compared by `repr`, to which 1, 1.0 and true are not equal."""
    assert repr(decode(encode(value))) == repr(value)


@settings(max_examples=300, deadline=None)
@given(
    st.binary(max_size=64)
    | st.text('[]{}:,"\\ud8\n0.eE-+tfn ', max_size=64).map(str.encode)
    | JSON_VALUES.map(lambda value: json.dumps(value)[:-1].encode())
)
def test_any_bytes_are_a_value_or_a_parse_error(raw: bytes) -> None:
    """Ours."""
    assert refusal(raw) in (None, PARSE_ERROR)


@settings(max_examples=100, deadline=None)
@given(
    st.lists(
        st.sampled_from([(b"[", b"]"), (b'{"a":', b"}")]), min_size=100, max_size=160
    )
)
def test_what_nests_over_the_bound_is_refused(
    levels: list[tuple[bytes, bytes]],
) -> None:
    """Ours: 128 levels of arrays and objects."""
    opening = b"".join(left for left, _ in levels)
    closing = b"".join(right for _, right in reversed(levels))
    too_deep = len(levels) + 1 > MAX_DEPTH
    assert refusal(opening + b"[]" + closing) == (PARSE_ERROR if too_deep else None)


@dataclasses.dataclass
class Point:
    """Something with a JSON form of its own."""

    x: int
    when: date


ENCODED: list[tuple[str, Any, bytes]] = [
    # id, value, bytes
    ("NaN", [float("nan")], b"[null]"),
    ("the infinities", [float("inf"), float("-inf")], b"[null,null]"),
    ("half a pair of surrogates", "a\ud800b", '"a\ufffdb"'.encode()),
    ("half a pair in a key", {"a": [("\udc00",)]}, '{"a":[["\ufffd"]]}'.encode()),
    ("half a pair beside a whole", "\ud83d\ude00\ud83d", '"😀\ufffd"'.encode()),
    ("half a pair as a key", {"\ud800": 1}, '{"\ufffd":1}'.encode()),
    ("bytes", b"\x00\xffabc", b'"AP9hYmM="'),
    ("a datetime", datetime(2026, 7, 28, tzinfo=UTC), b'"2026-07-28T00:00:00Z"'),
    ("a date", date(2026, 7, 28), b'"2026-07-28"'),
    ("a UUID", UUID(int=1), b'"00000000-0000-0000-0000-000000000001"'),
    ("a dataclass", Point(1, date(2026, 7, 28)), b'{"x":1,"when":"2026-07-28"}'),
    ("a tuple", (1, 2), b"[1,2]"),
    ("what is encoded already is a string of bytes", Encoded(b"[2]"), b'"WzJd"'),
]


@pytest.mark.parametrize(
    ("value", "raw"), [pytest.param(*row, id=name) for name, *row in ENCODED]
)
def test_what_has_no_exact_form_is_encoded_as_the_closest(
    value: Any, raw: bytes
) -> None:
    """Ours: text is real UTF-8, NaN is null, bytes are base64, times ISO 8601."""
    assert encode(value) == raw


@dataclasses.dataclass
class Holder:
    """Something that pydantic was not told of."""

    data: Any


class Half(Enum):
    """Half a pair, by name."""

    HIGH = "\ud800"


COLLECTIONS: list[tuple[str, Callable[[], Any], bytes]] = [
    # id, what makes the value, JSON
    ("the values of a dict", {"a": 1}.values, b"[1]"),
    ("the keys of a dict", {"a": 1}.keys, b'["a"]'),
    ("the items of a dict", {"a": 1}.items, b'[["a",1]]'),
    ("a range", lambda: range(3), b"[0,1,2]"),
    ("a read-only dict", lambda: MappingProxyType({"a": 1}), b'{"a":1}'),
    ("several dicts", lambda: ChainMap({"a": 1}, {"b": 2}), b'{"b":2,"a":1}'),
    ("a deque", lambda: deque([1]), b"[1]"),
    ("an iterator", lambda: iter([1]), b"[1]"),
    ("a generator in a dict", lambda: {"a": (n for n in (1, 2))}, b'{"a":[1,2]}'),
    ("keys of several parts", lambda: {(1, "a"): 1}, b'{"1,a":1}'),
    ("a dataclass", lambda: Holder(1), b'{"data":1}'),
]


@pytest.mark.parametrize(
    ("make", "raw"), [pytest.param(*row, id=name) for name, *row in COLLECTIONS]
)
def test_a_collection_of_any_kind_has_a_json_form(
    make: Callable[[], Any], raw: bytes
) -> None:
    """Ours."""
    assert [encode(make()), encode_value(make())] == [raw, raw]


# In the alphabet for URLs this would be `-_8=`.
BYTES = b"\xfb\xff"

WITH_BYTES: list[tuple[str, Callable[[], Any], str]] = [
    # id, what makes the value, JSON
    ("alone", lambda: BYTES, '"+/8="'),
    ("a bytearray", lambda: bytearray(BYTES), '"+/8="'),
    ("a memoryview", lambda: memoryview(BYTES), '"+/8="'),
    ("in a list", lambda: [1, BYTES], '[1,"+/8="]'),
    ("in a dict", lambda: {"a_b": {"c-d": BYTES}}, '{"a_b":{"c-d":"+/8="}}'),
    ("in a tuple", lambda: (BYTES,), '["+/8="]'),
    ("in a set", lambda: {BYTES}, '["+/8="]'),
    ("in a read-only dict", lambda: MappingProxyType({"a": BYTES}), '{"a":"+/8="}'),
    ("in a dataclass", lambda: [Holder([BYTES])], '[{"data":["+/8="]}]'),
    ("as a key", lambda: {BYTES: 1}, '{"+/8=":1}'),
    ("beside other keys", lambda: {(1, 2): BYTES, 3: None}, '{"1,2":"+/8=","3":null}'),
    ("in an iterator", lambda: iter([BYTES]), '["+/8="]'),
    ("beside half a pair", lambda: [Half.HIGH, BYTES], '["\ufffd","+/8="]'),
    ("beside half a pair and a dash", lambda: ["\ud800-", BYTES], '["\ufffd-","+/8="]'),
    ("none, but an underscore", lambda: {"a_b": "-"}, '{"a_b":"-"}'),
    (
        "none, but an iterator that is read once",
        lambda: {"a_b": (n for n in ("-", "c"))},
        '{"a_b":["-","c"]}',
    ),
]


@pytest.mark.parametrize(
    ("make", "raw"), [pytest.param(*row, id=name) for name, *row in WITH_BYTES]
)
def test_bytes_of_a_handler_have_the_standard_alphabet(
    make: Callable[[], Any], raw: str
) -> None:
    """Ours: as in content blocks. RFC 4648, section 4."""
    assert encode_value(make()).decode() == raw


def test_what_is_read_once_and_not_encoded_is_an_error() -> None:
    """Ours: what was read of it is gone, and the rest is not all of it."""
    with pytest.raises(ValueError, match="an iterator can't be read again"):
        encode_value({"a": (n for n in ("b", "\ud800", "c"))})


def circular() -> list[Any]:
    value: list[Any] = []
    value.append(value)
    return value


def bottomless() -> list[Any]:
    value: list[Any] = []
    for _ in range(100_000):
        value = [value]
    return value


UNENCODABLE: dict[str, Callable[[], Any]] = {
    "an object": object,
    "a function": lambda: encode,
    "an object in a list": lambda: [object()],
    "an object beside half a pair": lambda: ["\ud800", object()],
    "a list that holds itself": circular,
    "a list that has no end": bottomless,
}


@pytest.mark.parametrize("make", UNENCODABLE.values(), ids=UNENCODABLE)
def test_what_has_no_json_form_is_a_value_error(make: Callable[[], Any]) -> None:
    """Ours; ERR-04 is of this kind."""
    with pytest.raises(ValueError, match=r"serializ|nests"):
        encode(make())


KINDS: list[tuple[str, dict[str, Any], Kind]] = [
    # id, message without its version, kind
    ("a request", {"id": 1, "method": "ping"}, "request"),
    ("a request with params", {"id": 1, "method": "ping", "params": {}}, "request"),
    ("RPC-03 an id in a string", {"id": "1", "method": "ping"}, "request"),
    ("RPC-04 an id that is zero", {"id": 0, "method": "ping"}, "request"),
    ("RPC-04 an id that is empty", {"id": "", "method": "ping"}, "request"),
    ("a negative id", {"id": -1, "method": "ping"}, "request"),
    ("an id of 2^63", {"id": 2**63, "method": "ping"}, "request"),
    ("RPC-15 another Method", {"id": 1, "method": "a", "Method": 1}, "request"),
    (
        "RPC-09 a notification",
        {"method": "notifications/cancelled", "params": {"requestId": 1}},
        "notification",
    ),
    ("RPC-09 an unknown one", {"method": "notifications/odd"}, "notification"),
    ("RPC-09 a request's method", {"method": "tools/call"}, "notification"),
    ("a result", {"id": 1, "result": {}}, "response"),
    ("a null result", {"id": 1, "result": None}, "response"),
    ("an error", {"id": 1, "error": {"code": 1, "message": ""}}, "response"),
    ("an error with a null id", {"id": None, "error": {}}, "response"),
]


@pytest.mark.parametrize(
    ("members", "kind"), [pytest.param(*row, id=name) for name, *row in KINDS]
)
def test_a_message_is_of_one_kind(members: dict[str, Any], kind: Kind) -> None:
    """Spec 2026-07-28, basic/index: Messages."""
    assert kind_of({"jsonrpc": "2.0", **members}) == kind


NO_MESSAGES: list[tuple[str, Any, str]] = [
    # id, what was decoded, what is said
    ("RPC-07 a batch", [{"jsonrpc": "2.0", "id": 1, "method": "a"}], "one JSON-RPC"),
    ("RPC-07 an empty batch", [], "one JSON-RPC"),
    ("null", None, "one JSON-RPC"),
    ("a number", 1, "one JSON-RPC"),
    ("a string", "ping", "one JSON-RPC"),
    ("an empty object", {}, '"jsonrpc": "2.0"'),
    ("no version", {"id": 1, "method": "ping"}, '"jsonrpc": "2.0"'),
    ("version 1", {"jsonrpc": "1.0", "id": 1, "method": "a"}, '"jsonrpc": "2.0"'),
    ("a number for it", {"jsonrpc": 2.0, "id": 1, "method": "a"}, '"jsonrpc": "2.0"'),
    ("nothing to do", {"jsonrpc": "2.0", "id": 1}, "a method"),
    ("both outcomes", {"jsonrpc": "2.0", "id": 1, "result": 1, "error": 1}, "a method"),
    ("an outcome of nothing", {"jsonrpc": "2.0", "result": {}}, "a method"),
    ("RPC-15 a Method", {"jsonrpc": "2.0", "id": 1, "Method": "a"}, "a method"),
    ("a null method", {"jsonrpc": "2.0", "id": 1, "method": None}, "not a string"),
    ("a list for it", {"jsonrpc": "2.0", "id": 1, "method": []}, "not a string"),
    ("RPC-01 a null id", {"jsonrpc": "2.0", "id": None, "method": "a"}, "The id"),
    ("a fraction", {"jsonrpc": "2.0", "id": 1.0, "method": "a"}, "The id"),
    ("a boolean", {"jsonrpc": "2.0", "id": True, "method": "a"}, "The id"),
    ("an object", {"jsonrpc": "2.0", "id": {}, "method": "a"}, "The id"),
    ("a list", {"jsonrpc": "2.0", "id": [1], "method": "a"}, "The id"),
]


@pytest.mark.parametrize(
    ("message", "fault"), [pytest.param(*row, id=name) for name, *row in NO_MESSAGES]
)
def test_anything_else_is_an_invalid_request(message: Any, fault: str) -> None:
    """Spec 2026-07-28, basic/index: Messages, and schema: InvalidRequestError."""
    with pytest.raises(ProtocolError, match=fault) as caught:
        kind_of(message)
    assert caught.value.code == INVALID_REQUEST


READABLE: list[tuple[str, Any, str | int | None]] = [
    # id, what was decoded, its id
    ("an integer", {"id": 7}, 7),
    ("RPC-03 a string", {"id": "7"}, "7"),
    ("RPC-04 zero", {"id": 0}, 0),
    ("RPC-04 an empty string", {"id": ""}, ""),
    ("RPC-01 null", {"id": None}, None),
    ("a boolean", {"id": False}, None),
    ("a fraction", {"id": 0.5}, None),
    ("none", {}, None),
    ("a batch", [{"id": 7}], None),
    ("a string for a message", "id", None),
]


@pytest.mark.parametrize(
    ("message", "request_id"), [pytest.param(*row, id=name) for name, *row in READABLE]
)
def test_a_malformed_message_is_answered_under_its_id_if_it_has_one(
    message: Any, request_id: str | int | None
) -> None:
    """Spec 2026-07-28, basic/index: Error Responses; RPC-06: never an invented id."""
    found = readable_id(message)
    assert (type(found), found) == (type(request_id), request_id)


REQUEST_IDS: list[tuple[object, bool]] = [
    # value, whether it may be an id
    (1, True),
    ("", True),
    (True, False),
    (1.0, False),
    (None, False),
]


@pytest.mark.parametrize(("value", "truth"), REQUEST_IDS)
def test_a_string_or_an_integer_is_an_id(value: object, *, truth: bool) -> None:
    """Spec 2026-07-28, schema: RequestId."""
    assert is_request_id(value) is truth


OBJECTS: list[tuple[object, bool]] = [
    ({}, True),
    ([], False),
    (None, False),
    ("", False),
]


@pytest.mark.parametrize(("value", "truth"), OBJECTS)
def test_a_dictionary_is_an_object(value: object, *, truth: bool) -> None:
    assert is_object(value) is truth


RESPONSES: list[tuple[str, str | int, dict[str, Any], bytes]] = [
    # id, request id, result, bytes
    ("plain members", 1, {"a": 2}, b'{"jsonrpc":"2.0","id":1,"result":{"a":2}}'),
    ("RPC-03 a string id", "1", {}, b'{"jsonrpc":"2.0","id":"1","result":{}}'),
    ("2^63", 2**63, {}, b'{"jsonrpc":"2.0","id":9223372036854775808,"result":{}}'),
    (
        "one member encoded already",
        0,
        {"content": [], "structuredContent": Encoded(b'{"b":3}'), "isError": False},
        b'{"jsonrpc":"2.0","id":0,"result":'
        b'{"content":[],"isError":false,"structuredContent":{"b":3}}}',
    ),
    (
        "no other member",
        "",
        {"structuredContent": Encoded(b"3")},
        b'{"jsonrpc":"2.0","id":"","result":{"structuredContent":3}}',
    ),
    (
        "structured content that is not encoded yet",
        1,
        {"structuredContent": [3]},
        b'{"jsonrpc":"2.0","id":1,"result":{"structuredContent":[3]}}',
    ),
]


@pytest.mark.parametrize(
    ("request_id", "result", "raw"),
    [pytest.param(*row, id=name) for name, *row in RESPONSES],
)
def test_a_response_is_encoded_in_one_go(
    request_id: str | int, result: dict[str, Any], raw: bytes
) -> None:
    """Spec 2026-07-28, basic/index: Result Responses."""
    members = raw.partition(b'"result":')[2][:-1]
    assert encode_response(request_id, result) == raw
    assert encode_result(result) == members
    assert encode_response(request_id, Encoded(members)) == raw


def test_encoding_a_response_leaves_the_result_as_it_was() -> None:
    result: dict[str, Any] = {"structuredContent": Encoded(b"3"), "content": []}
    encode_response(1, result)
    assert result == {"structuredContent": Encoded(b"3"), "content": []}


def test_a_success_response_has_the_result_and_nothing_else() -> None:
    """Seed ExMCP ResponseBuilder: build_success_response/2; RPC-12."""
    assert success_response({"tools": []}, 123) == {
        "jsonrpc": "2.0",
        "id": 123,
        "result": {"tools": []},
    }


def test_an_error_response_without_data_has_no_data() -> None:
    """Seed ExMCP ResponseBuilder: build_error_response/4, its first example."""
    assert error_response(-32601, "Method not found", request_id=123) == {
        "jsonrpc": "2.0",
        "id": 123,
        "error": {"code": -32601, "message": "Method not found"},
    }


def test_an_error_response_has_the_data_it_is_given() -> None:
    """Seed ExMCP ResponseBuilder: build_error_response/4, its second example."""
    assert error_response(
        -32602, "Invalid params", {"expected": "string"}, request_id=123
    ) == {
        "jsonrpc": "2.0",
        "id": 123,
        "error": {
            "code": -32602,
            "message": "Invalid params",
            "data": {"expected": "string"},
        },
    }


def test_an_error_response_is_made_of_an_exception() -> None:
    """Seed ExMCP ResponseBuilder: build_error_response/2, its third example."""
    error = ProtocolError(-32601, "Method not found")
    assert error_response(error, request_id=123) == {
        "jsonrpc": "2.0",
        "id": 123,
        "error": {"code": -32601, "message": "Method not found"},
    }


@pytest.mark.parametrize("data", [None, False, 0, "", [], {}], ids=repr)
def test_data_that_is_falsy_was_given(data: Any) -> None:
    """Ours: `data` is left out only when it was not given."""
    whole = {"code": 1, "message": "No", "data": data}
    assert error_response(1, "No", data)["error"] == whole
    assert error_response(ProtocolError(1, "No", data))["error"] == whole
    assert mcp_error("invalid_params", 1, "No", data)["error"]["data"] == data


IDS: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    # id, arguments, what the response has of an id
    ("not given", {}, {}),
    ("null", {"request_id": None}, {"id": None}),
    ("RPC-04 zero", {"request_id": 0}, {"id": 0}),
    ("RPC-04 an empty string", {"request_id": ""}, {"id": ""}),
]


@pytest.mark.parametrize(
    ("arguments", "identified"), [pytest.param(*row, id=name) for name, *row in IDS]
)
def test_an_error_that_answers_no_known_request_has_no_id_or_null(
    arguments: dict[str, Any], identified: dict[str, Any]
) -> None:
    """Spec 2026-07-28, basic/index: Error Responses; RPC-06."""
    error = {"code": -32700, "message": "Parse error"}
    assert error_response(-32700, "Parse error", **arguments) == {
        "jsonrpc": "2.0",
        **identified,
        "error": error,
    }


NAMED: list[tuple[str, int, str]] = [
    # name, code, what it says unless told
    ("parse_error", -32700, "Parse error"),
    ("invalid_request", -32600, "Invalid request"),
    ("method_not_found", -32601, "Method not found"),
    ("invalid_params", -32602, "Invalid params"),
    ("internal_error", -32603, "Internal error"),
    ("server_error", -32000, "Server error"),
    ("resource_not_found", -32002, "Resource not found"),
    ("header_mismatch", -32020, "Header mismatch"),
    (
        "missing_required_client_capability",
        -32021,
        "Missing required client capability",
    ),
    ("unsupported_protocol_version", -32022, "Unsupported protocol version"),
]


@pytest.mark.parametrize(
    ("name", "code", "message"), NAMED, ids=[row[0] for row in NAMED]
)
def test_an_error_is_made_of_its_name(name: str, code: int, message: str) -> None:
    """Seed ExMCP ResponseBuilder: build_mcp_error/2; Spec 2026-07-28, schema."""
    assert mcp_error(name, 123) == {
        "jsonrpc": "2.0",
        "id": 123,
        "error": {"code": code, "message": message},
    }


def test_every_named_error_is_in_the_table() -> None:
    assert [*NAMED_ERRORS] == [name for name, *_ in NAMED]


def test_a_named_error_says_what_it_is_told() -> None:
    """Seed ExMCP ResponseBuilder: build_mcp_error/4, its second example."""
    assert mcp_error("invalid_params", 123, "Missing required field") == {
        "jsonrpc": "2.0",
        "id": 123,
        "error": {"code": -32602, "message": "Missing required field"},
    }


def test_there_is_no_error_of_an_unknown_name() -> None:
    with pytest.raises(KeyError, match="odd"):
        mcp_error("odd", 1)


@pytest.mark.parametrize("failed", [True, False])
def test_a_tool_error_is_a_result(*, failed: bool) -> None:
    """Seed ExMCP ResponseBuilder: build_tool_error/3."""
    response = tool_error("Tool execution failed", 123, is_error=failed)
    assert response == {
        "jsonrpc": "2.0",
        "id": 123,
        "result": {
            "content": [{"type": "text", "text": "Tool execution failed"}],
            "isError": failed,
        },
    }
    check_response(response, "tools/call", LEGACY)


def test_a_notification_has_no_id() -> None:
    """Seed ExMCP ResponseBuilder: build_notification/2."""
    assert notification("resources/list_changed", {}) == {
        "jsonrpc": "2.0",
        "method": "resources/list_changed",
        "params": {},
    }


def test_a_request_has_all_four_members() -> None:
    """Seed ExMCP ResponseBuilder: build_request/3."""
    assert request("tools/call", {"name": "test"}, "req-123") == {
        "jsonrpc": "2.0",
        "id": "req-123",
        "method": "tools/call",
        "params": {"name": "test"},
    }


def test_a_batch_error_names_the_version() -> None:
    """Seed ExMCP ResponseBuilder: build_batch_error/1."""
    response = batch_error("2025-06-18")
    assert response == {
        "jsonrpc": "2.0",
        "id": None,
        "error": {
            "code": -32600,
            "message": "Batch requests are not supported in protocol version "
            "2025-06-18",
        },
    }
    check_response(response, "", "2025-06-18")


ERRORS: list[tuple[str, dict[str, Any], bool]] = [
    # id, message, whether it is an error response
    ("an error", {"error": {"code": -32601}}, True),
    ("a result", {"result": {}}, False),
]


@pytest.mark.parametrize(
    ("message", "truth"), [pytest.param(*row, id=name) for name, *row in ERRORS]
)
def test_is_error_response(message: dict[str, Any], *, truth: bool) -> None:
    """Seed ExMCP ResponseBuilder: error_response?/1."""
    assert is_error_response(message) is truth


NOTIFICATIONS: list[tuple[str, dict[str, Any], bool]] = [
    # id, message, whether it is a notification
    ("a notification", {"jsonrpc": "2.0", "method": "test"}, True),
    ("a request", {"jsonrpc": "2.0", "id": 1, "method": "test"}, False),
    ("RPC-01 a null id", {"jsonrpc": "2.0", "id": None, "method": "test"}, False),
    ("a response without an id", {"jsonrpc": "2.0", "error": {}}, False),
]


@pytest.mark.parametrize(
    ("message", "truth"), [pytest.param(*row, id=name) for name, *row in NOTIFICATIONS]
)
def test_is_notification(message: dict[str, Any], *, truth: bool) -> None:
    """Seed ExMCP ResponseBuilder: notification?/1."""
    assert is_notification(message) is truth


def test_the_examples_hold() -> None:
    """Seed ExMCP ResponseBuilder: its examples are the doctests."""
    result = doctest.testmod(jsonrpc)
    assert (result.failed, result.attempted > 0) == (0, True)


VALUES = [
    # id, request id, structured value
    ("an object", 1, {"a": [1, 2], "b": "x"}),
    ("a text", "s-1", 'quoted "text" \\ ü \x00'),
    ("a number", -5, 3),
    ("nothing", "", None),
    ("a mark", 0, "content 1"),
]


@pytest.mark.parametrize(
    ("request_id", "value"), [pytest.param(*row, id=name) for name, *row in VALUES]
)
def test_a_template_makes_what_the_shaper_makes(
    request_id: str | int, value: object
) -> None:
    """Ours: what is cut from a shape is that shape."""
    info = {"name": 'a "server" \x00', "version": "1"}

    def shape(content: Encoded) -> dict[str, Any]:
        result = Result.structured(content)
        return modern.shape("tools/call", result, server_info=info)

    encoded = Encoded(encode(value))
    filled = ResponseTemplate(shape).fill(request_id, encoded, encoded)
    assert decode(filled) == decode(encode_response(request_id, shape(encoded)))
