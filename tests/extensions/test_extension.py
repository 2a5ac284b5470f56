"""Extensions: what an app speaks beyond the protocol, and with whom."""

import logging
from collections.abc import Callable, Collection, Mapping
from functools import partial
from typing import Any

import pytest

from mcpkit import App, Context, ProtocolError, Result, SetupError, dispatch
from mcpkit.dispatch import Response
from mcpkit.extensions.base import Extension, ExtensionMethod
from mcpkit.protocol import jsonrpc
from mcpkit.subscriptions import Topic
from tests.calls import (
    V_2025_11_25,
    call,
    headers_of as of_legacy,
    request,
    text,
)
from tests.http.client import JSON_HEADERS, headers_of, initialize, modern, post
from tests.http.streaming import (
    SUBSCRIPTION,
    acknowledged,
    idle,
    in_session,
    stream,
)

pytestmark = pytest.mark.anyio

WORDS = "com.example/words"
DECLARED: dict[str, Any] = {"extensions": {WORDS: {"longest": 9}}}
MISSING = {
    "code": -32021,
    "message": "Missing required client capability: com.example/words",
    "data": {"requiredCapabilities": {"extensions": {WORDS: {}}}},
}
NOT_THERE = {"code": -32601, "message": "Method not found"}
INTERNAL = {"code": -32603, "message": "Internal error"}


async def count(ctx: Context) -> dict[str, Any]:
    """Count words."""
    words = str(ctx.params.get("text", "")).split()
    return {"count": len(words), "longest": ctx.extension(WORDS)}


def app_with(**options: Any) -> App:
    """Make an app with an extension."""
    app = App("tests", secret_key="k" * 32)
    options = {"identifier": WORDS, "methods": {"words/count": count}, **options}
    app.add_extension(Extension(**options))
    return app


async def ask(
    app: App,
    method: str = "words/count",
    /,
    *,
    client: Mapping[str, Any] = DECLARED,
    **params: Any,
) -> Any:
    """Send a modern request, whose result may be anything."""
    message = request(method, client=client, **params)
    replied = await dispatch(message, app)
    assert isinstance(replied, Response)
    answered = replied.message
    if "error" in answered:
        return answered["error"]
    result = answered["result"]
    assert result.pop("_meta")["io.modelcontextprotocol/serverInfo"]["name"] == "tests"
    return result


# Methods.


async def test_a_method_is_served_to_those_who_declared_its_extension() -> None:
    """Spec SEP-2133: Negotiation; 2026-07-28, basic/index: ResultType."""
    told = await ask(app_with(), text="one two")
    assert told == {"resultType": "complete", "count": 2, "longest": {"longest": 9}}


REFUSED: list[tuple[str, dict[str, Any]]] = [
    ("nothing", {}),
    ("another extension", {"extensions": {"com.example/other": {}}}),
    ("settings that are none", {"extensions": {WORDS: True}}),
    ("extensions that are none", {"extensions": [WORDS]}),
]


@pytest.mark.parametrize(
    "client", [pytest.param(client, id=name) for name, client in REFUSED]
)
async def test_a_client_that_did_not_declare_it_is_told_what_it_lacks(
    client: Any,
) -> None:
    """Spec 2026-07-28, basic/index: Error Codes."""
    assert await ask(app_with(), client=client) == MISSING


async def test_a_method_that_is_not_installed_is_not_there() -> None:
    """Spec 2026-07-28, basic/index: Error Codes."""
    assert await ask(App("tests")) == NOT_THERE


async def test_what_is_installed_need_not_be_advertised() -> None:
    """Ours."""
    app = app_with(advertised=False)
    assert (await ask(app))["count"] == 0
    assert "extensions" not in (await discovered(app))


async def test_a_method_may_be_there_without_negotiation() -> None:
    """Ours."""
    method = ExtensionMethod(serve=count, negotiated=frozenset())
    app = app_with(methods={"words/count": method})
    assert (await ask(app, client={}))["count"] == 0


async def legacy(app: App, capabilities: Any) -> Any:
    """Send a request in a legacy session with these capabilities."""
    opened = await post(app, initialize(capabilities=capabilities), JSON_HEADERS)
    message = {"jsonrpc": "2.0", "id": 1, "method": "words/count", "params": {}}
    in_it = in_session(opened.headers["mcp-session-id"])
    reply = await body_of(app, message, {**JSON_HEADERS, **in_it})
    return reply.get("error", reply.get("result"))


async def body_of(app: App, message: Any, headers: Mapping[str, str]) -> Any:
    async with stream(app, message, headers) as opened:
        return await opened.body()


async def test_a_legacy_client_declares_it_with_its_session() -> None:
    """Spec SEP-2133: Client Capabilities."""
    app = app_with()
    assert await legacy(app, DECLARED) == {"count": 0, "longest": {"longest": 9}}
    assert await legacy(app, {}) == MISSING


async def test_a_method_may_be_of_one_era_alone() -> None:
    """Ours."""
    modern_only = ExtensionMethod(serve=count, eras=frozenset({"modern"}))
    app = app_with(methods={"words/count": modern_only})
    assert await legacy(app, DECLARED) == NOT_THERE


async def test_params_are_an_object() -> None:
    """Spec 2025-11-25, basic/index: Requests. In the modern era they have a `_meta`."""
    method = ExtensionMethod(serve=count, negotiated=frozenset())
    app = app_with(methods={"words/count": method})
    message = {"jsonrpc": "2.0", "id": 1, "method": "words/count", "params": [1]}
    replied = await dispatch(message, app, headers=of_legacy(V_2025_11_25))
    assert isinstance(replied, Response)
    fault = "Invalid params: params must be an object"
    assert replied.message["error"] == {"code": -32602, "message": fault}


async def test_a_header_names_what_a_method_is_about() -> None:
    """Spec 2026-07-28, basic/transports: Standard Headers."""
    method = ExtensionMethod(serve=count, named_by="text")
    app = app_with(methods={"words/count": method})
    message = modern("words/count", {"text": "one"}, capabilities=DECLARED)
    headers = headers_of(message)
    for name, expected in (("one", None), ("two", -32020)):
        reply = await body_of(app, message, {**headers, "mcp-name": name})
        assert reply.get("error", {}).get("code") == expected


def raising(error: BaseException) -> Callable[[Context], Any]:
    async def serve(_: Context) -> Any:
        raise error

    return serve


def returning(value: Any) -> Callable[[Context], Any]:
    async def serve(_: Context) -> Any:
        return value

    return serve


FAULTS = [
    ("an exception", raising(ValueError("secret")), INTERNAL),
    ("an exit", raising(SystemExit(3)), INTERNAL),
    ("no result", returning(3), INTERNAL),
    ("nothing", returning(None), INTERNAL),
    ("a result without a JSON form", returning({"a": object()}), INTERNAL),
    (
        "an error of its own",
        raising(ProtocolError(-32000, "Closed.", {"until": 9})),
        {"code": -32000, "message": "Closed.", "data": {"until": 9}},
    ),
    ("a task", returning(Result.task({"taskId": "1"})), INTERNAL),
]


@pytest.mark.parametrize(
    ("serve", "error"), [pytest.param(*row, id=name) for name, *row in FAULTS]
)
async def test_a_fault_in_an_extension_tells_the_client_nothing(
    serve: Any, error: Any
) -> None:
    """Ours."""
    assert await ask(app_with(methods={"words/count": serve})) == error


async def test_middleware_is_around_the_methods_of_extensions() -> None:
    """Ours."""
    app = app_with()

    @app.middleware
    async def number(ctx: Context, call_next: Any) -> Any:
        ctx.params["text"] = "one two three"
        return await call_next()

    assert (await ask(app))["count"] == 3


# What is declared.


async def discovered(app: App) -> Any:
    return (await call(app, "server/discover"))["capabilities"]


async def initialized(app: App) -> Any:
    reply = await post(app, initialize(), JSON_HEADERS)
    return reply.json()["result"]["capabilities"]


SETTINGS = {"languages": ["en"]}


async def test_its_settings_are_declared_in_both_eras() -> None:
    """Spec SEP-2133: Server Capabilities."""
    app = app_with(settings=SETTINGS)
    assert (await discovered(app))["extensions"] == {WORDS: SETTINGS}
    assert (await initialized(app))["extensions"] == {WORDS: SETTINGS}


async def test_an_extension_may_be_declared_in_one_era_alone() -> None:
    """Ours."""
    app = app_with(eras=frozenset({"modern"}))
    assert (await discovered(app))["extensions"] == {WORDS: {}}
    assert "extensions" not in await initialized(app)


GIVEN: list[tuple[str, Any, Any]] = [
    ("beside another", {"a.b/c": {"d": 1}}, {WORDS: {}, "a.b/c": {"d": 1}}),
    ("in its place", {WORDS: {"mine": 1}}, {WORDS: {"mine": 1}}),
    ("not at all", None, None),
]


@pytest.mark.parametrize(
    ("given", "declared"), [pytest.param(*row, id=name) for name, *row in GIVEN]
)
async def test_capabilities_of_the_app_are_declared_with_it(
    given: Any, declared: Any
) -> None:
    """Ours."""
    app = App("tests", capabilities={"extensions": given})
    app.add_extension(Extension(identifier=WORDS))
    assert (await discovered(app)).get("extensions") == declared


async def test_an_extension_that_comes_late_is_declared_from_then_on() -> None:
    """Ours."""
    app = App("tests")
    assert "extensions" not in await discovered(app)
    app.add_extension(Extension(identifier=WORDS))
    assert (await discovered(app))["extensions"] == {WORDS: {}}


# Types of results.

PARTIAL = "com.example/partial"
RESULTS: list[tuple[str, Result, dict[str, Any], Any]] = [
    (
        "a type of an extension, declared",
        Result.wire({"resultType": PARTIAL, "words": 2}),
        DECLARED,
        {"resultType": PARTIAL, "words": 2},
    ),
    (
        "a type of an extension, not declared",
        Result.wire({"resultType": PARTIAL}),
        {},
        MISSING,
    ),
    (
        "the same in a result of a tool",
        Result.raw({"resultType": PARTIAL}),
        {},
        MISSING,
    ),
    ("a type of none", Result.wire({"resultType": "other"}), DECLARED, INTERNAL),
    ("no string", Result.wire({"resultType": [1]}), DECLARED, INTERNAL),
    ("a task", Result.wire({"resultType": "task"}), DECLARED, INTERNAL),
    (
        "a question",
        Result.wire({"resultType": "input_required", "requestState": "a"}),
        DECLARED,
        INTERNAL,
    ),
    (
        "a complete one",
        Result.wire({"resultType": "complete", "content": []}),
        {},
        {"resultType": "complete", "content": []},
    ),
]


@pytest.mark.parametrize(
    ("result", "client", "answer"),
    [pytest.param(*row, id=name) for name, *row in RESULTS],
)
async def test_a_result_is_of_a_type_that_the_client_knows(
    result: Result, client: Any, answer: Any
) -> None:
    """Spec 2026-07-28, basic/index: ResultType."""
    app = app_with(result_types=frozenset({PARTIAL}))
    app.add_tool(lambda: result, name="work")
    assert await ask(app, "tools/call", client=client, name="work") == answer


async def test_a_legacy_client_knows_no_types_of_results() -> None:
    """Ours."""
    app = app_with(result_types=frozenset({PARTIAL}))
    app.add_tool(lambda: Result.wire({"resultType": PARTIAL}), name="work")
    assert await call(app, "tools/call", at=V_2025_11_25, name="work") == INTERNAL


async def test_what_can_not_be_sent_is_in_the_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Ours: whoever built it reads what to do."""
    app = app_with()
    app.add_tool(lambda: Result.wire({"resultType": "other"}), name="work")
    with caplog.at_level(logging.ERROR):
        await ask(app, "tools/call", name="work")
    assert "type other" in caplog.text
    assert "result_types" in caplog.text


# What may be followed.


class Rivers:
    """What clients may follow: how high rivers are."""

    def __init__(self) -> None:
        self.heights = {"Nile": 3}

    async def read(self, _: Context, value: Any) -> Collection[str]:
        """Return the rivers that there are."""
        if not isinstance(value, list):
            raise ProtocolError(-32602, "Invalid params: rivers must be an array")
        return [name for name in value if name in self.heights]

    async def message(self, _: Context, topic: str) -> dict[str, Any] | None:
        """Return how high a river is."""
        height = self.heights[topic]
        if height < 0:
            raise ValueError("secret")
        params = {"name": topic, "height": height}
        return jsonrpc.notification("notifications/rivers", params)


def follow(client: Any = DECLARED, **wanted: Any) -> Any:
    params = {"notifications": wanted}
    return modern("subscriptions/listen", params, capabilities=client)


def high(height: int) -> dict[str, Any]:
    """Return the notification of how high the Nile is."""
    params = {"name": "Nile", "height": height, "_meta": {SUBSCRIPTION: 1}}
    return jsonrpc.notification("notifications/rivers", params)


async def test_what_an_extension_has_is_followed() -> None:
    """Ours."""
    rivers = Rivers()
    app = app_with(filters={"rivers": rivers})
    async with stream(app, follow(rivers=["Nile", "Styx"])) as opened:
        assert await opened.message() == acknowledged(rivers=["Nile"])
        assert await opened.message() == high(3)
        rivers.heights["Nile"] = 4
        app.subscriptions.told(Topic("rivers", "Nile"))
        assert await opened.message() == high(4)
        # What is as it was is not told of.
        app.subscriptions.told(Topic("rivers", "Nile"))
        rivers.heights["Nile"] = 5
        app.subscriptions.told(Topic("rivers", "Nile"))
        assert await opened.message() == high(5)
    await idle(app)


async def test_a_filter_that_fails_ends_its_stream_and_no_more(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Ours."""
    rivers = Rivers()
    app = app_with(filters={"rivers": rivers})
    async with stream(app, follow(rivers=["Nile"])) as opened:
        await opened.message()
        await opened.message()
        rivers.heights["Nile"] = -1
        with caplog.at_level(logging.ERROR):
            app.subscriptions.told(Topic("rivers", "Nile"))
            [ended] = await opened.rest()
    assert ended == {"jsonrpc": "2.0", "id": 1, "error": INTERNAL}
    assert "secret" in caplog.text


FILTERS: list[tuple[str, dict[str, Any], Any, int]] = [
    ("not declared", {}, ["Nile"], -32021),
    ("malformed", DECLARED, "Nile", -32602),
    ("too much", DECLARED, ["Nile"] * 1001, -32603),
]


@pytest.mark.parametrize(
    ("client", "wanted", "code"),
    [pytest.param(*row, id=name) for name, *row in FILTERS],
)
async def test_a_filter_is_refused_before_there_is_a_stream(
    client: Any, wanted: Any, code: int
) -> None:
    """Spec 2026-07-28, basic/patterns/subscriptions."""
    app = app_with(filters={"rivers": Rivers()})
    reply = await post(app, follow(client, rivers=wanted))
    assert reply.json()["error"]["code"] == code


# What is told at once.

WRONG: list[tuple[str, dict[str, Any], str]] = [
    ("no domain", {"identifier": "words"}, "a domain of yours, reversed"),
    ("no name", {"identifier": "com.example/"}, "a domain of yours, reversed"),
    ("a digit first", {"identifier": "1com/words"}, "a domain of yours, reversed"),
    ("two names", {"identifier": "com.example/a/b"}, "a domain of yours, reversed"),
    ("no string", {"identifier": 1}, "a domain of yours, reversed"),
    (
        "a method of the protocol",
        {"methods": {"tools/call": count}},
        "'tools/call' is a method of the protocol",
    ),
    (
        "a sync method",
        {"methods": {"words/count": lambda ctx: {}}},  # noqa: ARG005
        "'words/count' is served by an async function",
    ),
    (
        "a type of the protocol",
        {"result_types": frozenset({"complete"})},
        "'complete' is one of the protocol",
    ),
    (
        "a filter of the protocol",
        {"filters": {"toolsListChanged": Rivers()}},
        "'toolsListChanged' is one of the protocol",
    ),
    ("settings that are none", {"settings": [1]}, "settings are a dict of what JSON"),
    (
        "settings without a form",
        {"settings": {"made": object()}},
        "settings are a dict of what JSON has, not {'made': <object",
    ),
]


@pytest.mark.parametrize(
    ("options", "message"), [pytest.param(*row, id=name) for name, *row in WRONG]
)
def test_what_can_not_work_is_told_when_it_is_built(options: Any, message: str) -> None:
    """Spec SEP-2133: Definition; the rest is ours."""
    with pytest.raises(SetupError, match=message):
        Extension(**{"identifier": WORDS, **options})


OTHER = partial(Extension, identifier="com.example/other")
COLLISIONS: list[tuple[str, Extension, str]] = [
    ("itself", Extension(identifier=WORDS), f"'{WORDS}' is installed already"),
    ("a method", OTHER(methods={"words/count": count}), "'words/count'"),
    ("a type", OTHER(result_types=frozenset({PARTIAL})), f"'{PARTIAL}'"),
    ("a filter", OTHER(filters={"rivers": Rivers()}), "'rivers'"),
]


@pytest.mark.parametrize(
    ("other", "message"), [pytest.param(*row, id=name) for name, *row in COLLISIONS]
)
async def test_two_extensions_share_nothing(other: Extension, message: str) -> None:
    """Ours: the message names both, and the first is as it was."""
    app = app_with(result_types=frozenset({PARTIAL}), filters={"rivers": Rivers()})
    with pytest.raises(SetupError, match=message) as raised:
        app.add_extension(other)
    assert WORDS in str(raised.value)
    assert other.identifier in str(raised.value)
    assert (await ask(app))["count"] == 0


async def test_an_extension_changes_nothing_for_others() -> None:
    """Spec SEP-2133: Graceful Degradation."""
    app = app_with(result_types=frozenset({PARTIAL}))
    app.add_tool(lambda: "Done.", name="work")
    assert await call(app, "tools/call", name="work") == text("Done.")
