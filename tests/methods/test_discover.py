"""`server/discover`. Spec 2026-07-28, server/discover."""

from typing import Any

import pytest

from mcpkit import App
from mcpkit.errors import UNSUPPORTED_PROTOCOL_VERSION
from mcpkit.protocol.era import SERVER_INFO
from tests.calls import V_2025_11_25, call, reply
from tests.wire import MODERN


async def discover(app: App, **params: Any) -> dict[str, Any]:
    """Return the whole result."""
    message = (await reply(app, "server/discover", **params)).message
    result: dict[str, Any] = message["result"]
    return result


async def test_an_empty_app_says_who_it_is() -> None:
    assert await discover(App("tests")) == {
        "resultType": "complete",
        "supportedVersions": [MODERN],
        "capabilities": {"logging": {}},
        "ttlMs": 60_000,
        "cacheScope": "private",
        "_meta": {SERVER_INFO: {"name": "tests", "version": "0.1.0"}},
    }


async def test_an_app_tells_all_that_it_was_given() -> None:
    icons = [{"src": "https://example.com/a.png", "sizes": ["48x48"]}]
    app = App(
        "tests",
        version="2.0",
        title="Tests",
        description="For tests.",
        website_url="https://example.com",
        icons=icons,
        instructions="Call t.",
        logging=False,
        ttl_ms=5,
        cache_scope="public",
    )
    assert await discover(app) == {
        "resultType": "complete",
        "supportedVersions": [MODERN],
        "capabilities": {},
        "instructions": "Call t.",
        "ttlMs": 5,
        "cacheScope": "public",
        "_meta": {
            SERVER_INFO: {
                "name": "tests",
                "version": "2.0",
                "title": "Tests",
                "description": "For tests.",
                "websiteUrl": "https://example.com",
                "icons": icons,
            }
        },
    }


def with_tool(app: App) -> None:
    app.add_tool(lambda: "", name="t")


def with_resource(app: App) -> None:
    app.add_resource("a://b", lambda: "", name="r")


def with_template(app: App) -> None:
    app.add_resource("a://{x}", lambda x: x, name="r")


def with_prompt(app: App) -> None:
    app.add_prompt(lambda: "", name="p")


def with_completion(app: App) -> None:
    app.add_completion("p", "x", lambda value: [value])


KINDS = [
    # capability, what registers it, what else belongs to it
    ("tools", with_tool, {"listChanged"}),
    ("resources", with_resource, {"listChanged", "subscribe"}),
    ("resources", with_template, {"listChanged", "subscribe"}),
    ("prompts", with_prompt, {"listChanged"}),
    ("completions", with_completion, set()),
]


@pytest.mark.parametrize(("capability", "register", "flags"), KINDS)
async def test_capabilities_follow_what_is_registered(
    capability: str, register: Any, flags: set[str]
) -> None:
    """PRM-04."""
    app = App("tests", logging=False)
    assert (await discover(app))["capabilities"] == {}
    register(app)
    declared = (await discover(app))["capabilities"]
    assert declared.keys() == {capability}
    # Which of them depends on whether clients can be told of changes.
    assert declared[capability].keys() <= flags


async def test_a_capability_goes_with_the_last_of_its_kind() -> None:
    app = App("tests", logging=False)
    with_tool(app)
    app.remove_tool("t")
    assert (await discover(app))["capabilities"] == {}


async def test_capabilities_of_ones_own_take_the_place_of_those_that_follow() -> None:
    app = App(
        "tests",
        logging=False,
        capabilities={
            "tools": {"listChanged": False},
            "experimental": {"com.example/y": {}},
        },
    )
    with_tool(app)
    with_prompt(app)
    declared = (await discover(app))["capabilities"]
    assert declared.pop("prompts", None) is not None
    assert declared == {
        "tools": {"listChanged": False},
        "experimental": {"com.example/y": {}},
    }


async def test_what_has_no_pages_is_kept_once() -> None:
    app = App("tests")
    for cursor in (None, "x", "y", 5):
        await discover(app, cursor=cursor)
    assert len(app.registry.answers) == 1


@pytest.mark.parametrize("method", ["server/discover", "tools/list"])
async def test_what_a_client_sends_does_not_change_the_hints_of_a_list(
    method: str,
) -> None:
    """Spec 2026-07-28, server/utilities/caching. A list asks nothing."""
    app = App("tests")
    with_tool(app)
    for _ in range(2):
        result = await call(app, method, inputResponses={}, requestState="x")
        assert (result["ttlMs"], result["cacheScope"]) == (60_000, "private")
        result = await call(app, method)
        assert (result["ttlMs"], result["cacheScope"]) == (60_000, "private")


async def test_an_app_of_one_era_supports_that_era() -> None:
    app = App("tests", eras={"modern"})
    assert (await discover(app))["supportedVersions"] == [MODERN]
    refused = await call(
        app,
        "initialize",
        at=V_2025_11_25,
        protocolVersion=V_2025_11_25,
        capabilities={},
        clientInfo={"name": "c", "version": "1"},
    )
    assert refused == {
        "code": UNSUPPORTED_PROTOCOL_VERSION,
        "message": "Unsupported protocol version",
        "data": {"supported": [MODERN], "requested": V_2025_11_25},
    }
