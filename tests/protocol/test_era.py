"""Which era a message belongs to, and every refusal of a modern request, in order."""

from typing import Any

import pytest

from mcpkit.errors import (
    HEADER_MISMATCH,
    INVALID_PARAMS,
    UNSUPPORTED_PROTOCOL_VERSION,
    ProtocolError,
)
from mcpkit.protocol.era import (
    CLIENT_CAPABILITIES,
    CLIENT_INFO,
    LOG_LEVEL,
    LOG_LEVELS,
    PROTOCOL_VERSION,
    check_modern,
    era_of,
    era_of_header,
    is_implementation,
    legacy_revision,
    unsupported_version,
)
from mcpkit.protocol.headers import Headers
from mcpkit.protocol.jsonrpc import error_response
from mcpkit.protocol.versions import ERAS, REVISIONS, Era
from tests.wire import check_response

NEW, LATEST, MIDDLE, OLD = "2026-07-28", "2025-11-25", "2025-06-18", "2025-03-26"
UNKNOWN = "2099-01-01"
MODERN_ONLY: frozenset[Era] = frozenset({"modern"})
LEGACY_ONLY: frozenset[Era] = frozenset({"legacy"})
REQUIRED: dict[str, Any] = {PROTOCOL_VERSION: NEW, CLIENT_CAPABILITIES: {}}


def asking(method: str = "tools/list", **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}


def modern(method: str = "tools/list", /, **meta: Any) -> dict[str, Any]:
    return asking(method, _meta={**REQUIRED, **meta})


def sent(version: str | None = NEW, method: str = "tools/list") -> Headers:
    headers = {b"mcp-method": method.encode(), b"host": b"localhost"}
    if version is not None:
        headers[b"mcp-protocol-version"] = version.encode()
    return headers


ERA: list[tuple[str, dict[str, Any], Headers | None, Era]] = [
    # id, message, headers, era
    ("1 both keys", modern(), None, "modern"),
    ("1 a version alone", asking(_meta={PROTOCOL_VERSION: NEW}), None, "modern"),
    ("1 a version of any type", asking(_meta={PROTOCOL_VERSION: 5}), None, "modern"),
    ("1 capabilities alone", asking(_meta={CLIENT_CAPABILITIES: {}}), None, "modern"),
    ("1 initialize in an envelope", modern("initialize"), None, "modern"),
    ("1 an envelope under a legacy header", modern(), sent(LATEST), "modern"),
    ("2 server/discover", asking("server/discover"), None, "modern"),
    ("2 subscriptions/listen", asking("subscriptions/listen"), None, "modern"),
    ("2 before the header", asking("server/discover"), sent(LATEST), "modern"),
    ("3 a modern header", asking(), sent(NEW), "modern"),
    ("3 an unknown header", asking(), sent(UNKNOWN), "modern"),
    ("3 an empty header", asking(), sent(""), "modern"),
    ("3 a header given twice", asking(), sent(f"{LATEST}\n{NEW}"), "modern"),
    ("4 no sign at all", asking(), None, "legacy"),
    ("4 no headers", asking(), {}, "legacy"),
    ("4 no version header", asking(), sent(None), "legacy"),
    ("4 a legacy header", asking(), sent(LATEST), "legacy"),
    ("4 the first header there was", asking(), sent("2024-11-05"), "legacy"),
    ("4 white space around it", asking(), sent(f" {LATEST}\t"), "legacy"),
    ("4 initialize", asking("initialize"), None, "legacy"),
    ("4 initialize under a modern header", asking("initialize"), sent(NEW), "legacy"),
    ("4 initialize under an unknown one", asking("initialize"), sent("x"), "legacy"),
    ("4 another key of `_meta`", asking(_meta={"progressToken": 1}), None, "legacy"),
    ("4 a key outside `_meta`", asking(**REQUIRED), None, "legacy"),
    ("4 `_meta` that is a string", asking(_meta=PROTOCOL_VERSION), None, "legacy"),
    ("4 params that are a list", {"params": [modern()]}, None, "legacy"),
    ("4 a method that is a list", {"method": ["server/discover"]}, None, "legacy"),
    ("4 a method that is an object", {"method": {}}, sent(LATEST), "legacy"),
    ("4 nothing at all", {}, None, "legacy"),
]


@pytest.mark.parametrize(
    ("message", "headers", "era"), [pytest.param(*row, id=name) for name, *row in ERA]
)
def test_a_message_belongs_to_an_era(
    message: dict[str, Any], headers: Headers | None, era: Era
) -> None:
    """Spec 2026-07-28, basic/versioning: Compatibility Matrix; ours: the rules."""
    assert era_of(message, headers) == era


ONE_ERA: list[tuple[str, dict[str, Any], frozenset[Era], Era]] = [
    # id, message, eras of the server, era
    ("a legacy request at a modern server", asking(), MODERN_ONLY, "modern"),
    ("initialize at a modern server", asking("initialize"), MODERN_ONLY, "modern"),
    ("a modern request at a legacy server", modern(), LEGACY_ONLY, "modern"),
    ("a legacy request at a legacy server", asking(), LEGACY_ONLY, "legacy"),
]


@pytest.mark.parametrize(
    ("message", "eras", "era"), [pytest.param(*row, id=name) for name, *row in ONE_ERA]
)
def test_a_server_of_one_era_takes_what_it_can_answer(
    message: dict[str, Any], eras: frozenset[Era], era: Era
) -> None:
    """Spec 2026-07-28, basic/versioning: Compatibility Matrix."""
    assert era_of(message, eras=eras) == era


HEADER_ERA: list[tuple[str, str | None, Era]] = [
    # id, version header, era
    ("none", None, "legacy"),
    ("modern", NEW, "modern"),
    ("legacy", OLD, "legacy"),
    ("unknown", UNKNOWN, "modern"),
    ("modern with white space", f"\t{NEW} ", "modern"),
    ("another kind of white space", f"{LATEST}\x0b", "modern"),
]


@pytest.mark.parametrize(
    ("version", "era"), [pytest.param(*row, id=name) for name, *row in HEADER_ERA]
)
def test_a_header_names_an_era(version: str | None, era: Era) -> None:
    """Ours: what can't be read is answered in the era of its header."""
    assert era_of_header(sent(version)) == era


LEGACY: list[tuple[str, Headers | None, str | None, str]] = [
    # id, headers, version of the session, version
    ("the session's", sent(OLD), LATEST, LATEST),
    ("the header's", sent(MIDDLE), None, MIDDLE),
    ("the header's, trimmed", sent(f" {MIDDLE} "), None, MIDDLE),
    ("the one before headers", sent(None), None, OLD),
    ("the one before headers, with none", {}, None, OLD),
    ("the one before headers, over another transport", None, None, OLD),
    ("the oldest", sent("2024-11-05"), None, "2024-11-05"),
    ("an unknown header", sent(UNKNOWN), None, OLD),
    ("a modern header, as `initialize` may have", sent(NEW), None, OLD),
]


@pytest.mark.parametrize(
    ("headers", "negotiated", "version"),
    [pytest.param(*row, id=name) for name, *row in LEGACY],
)
def test_a_legacy_message_has_a_revision(
    headers: Headers | None, negotiated: str | None, version: str
) -> None:
    """Spec 2025-11-25, basic/transports: Protocol Version Header."""
    assert legacy_revision(headers, negotiated) == REVISIONS[version]


INFO = {"name": "c", "version": "1"}

ACCEPTED: list[tuple[str, dict[str, Any], Headers | None]] = [
    # id, message, headers
    ("under a transport without headers", modern(), None),
    ("META-01 without clientInfo", modern(), sent()),
    ("with clientInfo", modern(**{CLIENT_INFO: INFO}), sent()),
    ("with more of clientInfo", modern(**{CLIENT_INFO: {**INFO, "title": 1}}), sent()),
    *(
        (f"at log level {level}", modern(**{LOG_LEVEL: level}), sent())
        for level in LOG_LEVELS
    ),
    ("with any capabilities", modern(**{CLIENT_CAPABILITIES: {"x": 1}}), sent()),
    ("META-01 with other keys", modern(**{"com.example/a": None}), sent()),
    ("with white space around headers", modern(), sent(f" {NEW}\t", "\ttools/list ")),
    ("a method that there is not", modern("foo/bar"), sent(NEW, "foo/bar")),
    ("a legacy method", modern("ping"), sent(NEW, "ping")),
    ("initialize, in an envelope", modern("initialize"), sent(NEW, "initialize")),
    ("a session's header", modern(), {**sent(), b"mcp-session-id": b"x"}),
]


@pytest.mark.parametrize(
    ("message", "headers"), [pytest.param(*row, id=name) for name, *row in ACCEPTED]
)
def test_a_well_formed_modern_request_is_accepted(
    message: dict[str, Any], headers: Headers | None
) -> None:
    """Spec 2026-07-28, basic/index: `_meta`, per-request protocol fields."""
    assert check_modern(message, headers) == REVISIONS[NEW]


def without(key: str) -> dict[str, Any]:
    return asking(
        _meta={name: value for name, value in REQUIRED.items() if name != key}
    )


ODD_LEVELS: list[Any] = ["trace", "INFO", "", None, 3, ["info"], {}]

MALFORMED: list[tuple[str, dict[str, Any], str, str]] = [
    # id, message, field, what is expected
    (
        "META-01 no params",
        {"method": "server/discover"},
        PROTOCOL_VERSION,
        "a string, in _meta",
    ),
    ("null params", {"method": "a", "params": None}, "params", "an object"),
    ("params in a list", {"method": "a", "params": []}, "params", "an object"),
    ("no `_meta`", asking(), PROTOCOL_VERSION, "a string, in _meta"),
    ("META-01 `_meta` in a string", asking(_meta="x"), "_meta", "an object"),
    ("a null `_meta`", asking(_meta=None), "_meta", "an object"),
    ("`_meta` in a list", asking(_meta=[]), "_meta", "an object"),
    (
        "META-01 an empty `_meta`",
        asking(_meta={}),
        PROTOCOL_VERSION,
        "a string, in _meta",
    ),
    ("no version", without(PROTOCOL_VERSION), PROTOCOL_VERSION, "a string, in _meta"),
    (
        "META-01 a version in a number",
        modern(**{PROTOCOL_VERSION: 5}),
        PROTOCOL_VERSION,
        "a string, in _meta",
    ),
    (
        "a null version",
        modern(**{PROTOCOL_VERSION: None}),
        PROTOCOL_VERSION,
        "a string, in _meta",
    ),
    (
        "META-01 a version alone",
        without(CLIENT_CAPABILITIES),
        CLIENT_CAPABILITIES,
        "an object, in _meta",
    ),
    (
        "META-01 capabilities in a list",
        modern(**{CLIENT_CAPABILITIES: []}),
        CLIENT_CAPABILITIES,
        "an object, in _meta",
    ),
    (
        "null capabilities",
        modern(**{CLIENT_CAPABILITIES: None}),
        CLIENT_CAPABILITIES,
        "an object, in _meta",
    ),
    *(
        (
            name,
            modern(**{CLIENT_INFO: info}),
            CLIENT_INFO,
            "an object with the strings name and version",
        )
        for name, info in {
            "META-01 clientInfo with a name only": {"name": "c"},
            "clientInfo with a version only": {"version": "1"},
            "clientInfo with a number for a name": {"name": 1, "version": "1"},
            "clientInfo with a null version": {"name": "c", "version": None},
            "null clientInfo": None,
            "clientInfo in a string": "c",
        }.items()
    ),
    *(
        (
            f"a log level that is {level!r}",
            modern(**{LOG_LEVEL: level}),
            LOG_LEVEL,
            "one of debug, info, notice, warning, error, critical, alert, emergency",
        )
        for level in ODD_LEVELS
    ),
]


@pytest.mark.parametrize(
    ("message", "field", "expected"),
    [pytest.param(*row, id=name) for name, *row in MALFORMED],
)
def test_a_malformed_envelope_is_refused_by_the_name_of_its_field(
    message: dict[str, Any], field: str, expected: str
) -> None:
    """Spec 2026-07-28, basic/index: `_meta`, per-request protocol fields."""
    assert refusal(message, None) == {
        "code": INVALID_PARAMS,
        "message": f"Invalid params: {field} must be {expected}",
        "data": {"field": field},
    }


def refusal(
    message: dict[str, Any], headers: Headers | None, eras: frozenset[Era] = ERAS
) -> dict[str, Any]:
    with pytest.raises(ProtocolError) as caught:
        check_modern(message, headers, eras=eras)
    response = error_response(caught.value, request_id=message.get("id", 0))
    check_response(response, message["method"], NEW)
    error: dict[str, Any] = response["error"]
    return error


def test_the_version_in_the_body_must_be_served() -> None:
    """Spec 2026-07-28, basic/versioning: Protocol Version Negotiation."""
    assert refusal(modern(**{PROTOCOL_VERSION: UNKNOWN}), sent(UNKNOWN)) == {
        "code": UNSUPPORTED_PROTOCOL_VERSION,
        "message": "Unsupported protocol version",
        "data": {"supported": [NEW], "requested": UNKNOWN},
    }


UNSERVED: list[tuple[str, str, frozenset[Era], list[str]]] = [
    # id, version, eras of the server, supported
    ("a legacy one in an envelope", LATEST, ERAS, [NEW]),
    ("the oldest in an envelope", "2024-11-05", ERAS, [NEW]),
    ("an empty one", "", ERAS, [NEW]),
    ("one with white space", f" {NEW}", ERAS, [NEW]),
    ("an unknown one at a modern server", UNKNOWN, MODERN_ONLY, [NEW]),
    ("a legacy one at a modern server", LATEST, MODERN_ONLY, [NEW]),
    ("a modern one at a legacy server", NEW, LEGACY_ONLY, [LATEST, MIDDLE, OLD]),
]


@pytest.mark.parametrize(
    ("version", "eras", "supported"),
    [pytest.param(*row, id=name) for name, *row in UNSERVED],
)
def test_an_unserved_version_is_told_which_are_served(
    version: str, eras: frozenset[Era], supported: list[str]
) -> None:
    """Spec 2026-07-28, basic/versioning: Protocol Version Negotiation."""
    error = refusal(modern(**{PROTOCOL_VERSION: version}), None, eras)
    assert error["data"] == {"supported": supported, "requested": version}


INITIALIZE: list[tuple[str, dict[str, Any], str]] = [
    # id, message, the version it asked for
    ("a legacy client's", asking("initialize", protocolVersion=LATEST), LATEST),
    ("one without a version", asking("initialize"), ""),
    ("one with an odd version", asking("initialize", protocolVersion=1), ""),
    ("one without params", {"method": "initialize"}, ""),
    ("one with odd params", {"method": "initialize", "params": []}, ""),
]


@pytest.mark.parametrize(
    ("message", "requested"), [pytest.param(*row, id=name) for name, *row in INITIALIZE]
)
def test_initialize_at_a_modern_server_is_told_its_versions(
    message: dict[str, Any], requested: str
) -> None:
    """Spec 2026-07-28, basic/versioning: Backward Compatibility; RPC-10."""
    assert refusal(message, {}, MODERN_ONLY) == {
        "code": UNSUPPORTED_PROTOCOL_VERSION,
        "message": "Unsupported protocol version",
        "data": {"supported": [NEW], "requested": requested},
    }


def test_a_modern_only_server_still_takes_modern_requests() -> None:
    assert check_modern(modern(), sent(), eras=MODERN_ONLY) == REVISIONS[NEW]


MISMATCHED: list[tuple[str, dict[str, Any], Headers, str]] = [
    # id, message, headers, what is said
    (
        "HDR-01 no version header",
        modern(),
        sent(None),
        "MCP-Protocol-Version is missing",
    ),
    (
        "another version in the header",
        modern(),
        sent(LATEST),
        "MCP-Protocol-Version does not match the body",
    ),
    (
        "HDR-01 an empty version header",
        modern(),
        sent(""),
        "MCP-Protocol-Version does not match the body",
    ),
    (
        "HDR-07 two version headers",
        modern(),
        sent(f"{NEW}\n{LATEST}"),
        "MCP-Protocol-Version does not match the body",
    ),
    (
        "HDR-01 no method header",
        modern(),
        {b"mcp-protocol-version": NEW.encode()},
        "Mcp-Method is missing",
    ),
    (
        "another method in the header",
        modern(),
        sent(NEW, "tools/call"),
        "Mcp-Method does not match the body",
    ),
    (
        "HDR-01 no name header",
        asking("tools/call", _meta=REQUIRED, name="add"),
        sent(NEW, "tools/call"),
        "Mcp-Name is missing",
    ),
]


@pytest.mark.parametrize(
    ("message", "headers", "fault"),
    [pytest.param(*row, id=name) for name, *row in MISMATCHED],
)
def test_a_header_that_disagrees_is_refused(
    message: dict[str, Any], headers: Headers, fault: str
) -> None:
    """Spec 2026-07-28, basic/transports/streamable-http: Server Validation."""
    assert refusal(message, headers) == {
        "code": HEADER_MISMATCH,
        "message": f"Header mismatch: {fault}",
    }


ORDER: list[tuple[str, dict[str, Any], Headers, int]] = [
    # id, message with two faults, headers, code
    (
        "the envelope before the header",
        modern(**{LOG_LEVEL: "odd"}),
        sent(None),
        INVALID_PARAMS,
    ),
    (
        "the envelope before the version",
        asking(_meta={PROTOCOL_VERSION: UNKNOWN}),
        sent(UNKNOWN),
        INVALID_PARAMS,
    ),
    (
        "the version header before the version",
        modern(**{PROTOCOL_VERSION: UNKNOWN}),
        sent(NEW),
        HEADER_MISMATCH,
    ),
    (
        "the version before the other headers",
        modern(**{PROTOCOL_VERSION: UNKNOWN}),
        sent(UNKNOWN, "tools/call"),
        UNSUPPORTED_PROTOCOL_VERSION,
    ),
]


@pytest.mark.parametrize(
    ("message", "headers", "code"),
    [pytest.param(*row, id=name) for name, *row in ORDER],
)
def test_of_two_faults_the_first_is_told(
    message: dict[str, Any], headers: Headers, code: int
) -> None:
    """Ours: a client that disagrees with itself is told so."""
    assert refusal(message, headers)["code"] == code


IMPLEMENTATIONS: list[tuple[str, object, bool]] = [
    # id, value, whether it is an implementation
    ("a name and a version", INFO, True),
    ("empty strings", {"name": "", "version": ""}, True),
    ("more", {**INFO, "icons": []}, True),
    ("no version", {"name": "c"}, False),
    ("a number", {"name": "c", "version": 1}, False),
    ("a list", ["c", "1"], False),
    ("null", None, False),
]


@pytest.mark.parametrize(
    ("value", "truth"), [pytest.param(*row, id=name) for name, *row in IMPLEMENTATIONS]
)
def test_an_implementation_has_a_name_and_a_version(
    value: object, *, truth: bool
) -> None:
    """Spec 2026-07-28, schema: Implementation."""
    assert is_implementation(value) is truth


def test_the_log_levels_are_those_of_syslog() -> None:
    """Spec 2026-07-28, server/utilities/logging: Log Levels."""
    assert LOG_LEVELS == (
        "debug",
        "info",
        "notice",
        "warning",
        "error",
        "critical",
        "alert",
        "emergency",
    )


def test_an_unsupported_version_names_what_the_client_may_retry_with() -> None:
    """Ours: what `server/discover` lists, for `_meta` can carry no legacy version."""
    error = unsupported_version(UNKNOWN)
    assert (error.code, error.message, error.data) == (
        UNSUPPORTED_PROTOCOL_VERSION,
        "Unsupported protocol version",
        {"supported": [NEW], "requested": UNKNOWN},
    )
