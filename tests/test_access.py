"""What only some callers may have, and who asks."""

from dataclasses import dataclass, field
from typing import Any

import pytest

from mcpkit import App, Cache, Context, Result, SetupError
from mcpkit.errors import INTERNAL_ERROR
from mcpkit.guard import Guard
from mcpkit.protocol.content import resource_contents
from tests.calls import EVERY, call, reply
from tests.wire import MODERN


@dataclass(frozen=True)
class User:
    """A caller with one scope."""

    id: str = "ada"
    scopes: frozenset[str] = field(default_factory=lambda: frozenset({"x"}))


PUBLIC = Cache(ttl_ms=5, scope="public")

SHARED: list[tuple[str, dict[str, Any]]] = [
    # id, options of the app
    ("by the app", {"cache_scope": "public"}),
    ("by the method", {"cache": {"resources/read": PUBLIC}}),
    ("by the response", {}),
]


@pytest.mark.parametrize(
    "options", [row[1] for row in SHARED], ids=[r[0] for r in SHARED]
)
async def test_what_needs_scopes_is_never_public(options: dict[str, Any]) -> None:
    """Spec 2026-07-28, server/utilities/caching: Security Considerations."""
    app = App("shop", **options)

    @app.resource("books://secret", scopes=["x"])
    def secret() -> Result:
        contents = resource_contents("books://secret", "s")
        return Result.resource_read(contents, cache_scope="public")

    read = await call(app, "resources/read", by=User(), uri="books://secret")
    assert read["cacheScope"] == "private"


@pytest.mark.parametrize("scope", ["заказ", 'a"b', "a b", "a\nb", ""])
def test_a_scope_that_no_header_can_hold_is_a_setup_error(scope: str) -> None:
    """RFC 6749, section 3.3."""
    app = App("shop")
    with pytest.raises(SetupError, match="is no scope; RFC 6749"):

        @app.tool(scopes=[scope])
        def order() -> None:
            raise NotImplementedError


@pytest.mark.parametrize("version", EVERY)
async def test_a_task_is_no_result_without_the_extension(version: str) -> None:
    """Ours: wire decisions, results."""
    app = App("shop")

    @app.tool
    def work() -> Result:
        return Result.task({"taskId": "1", "status": "working"})

    answer = await call(app, "tools/call", at=version, name="work")
    assert answer["code"] == INTERNAL_ERROR


async def test_completions_leave_with_their_prompt() -> None:
    app = App("shop")

    def review(title: str) -> str:
        raise NotImplementedError

    app.add_prompt(review)
    app.add_completion("review", "title", lambda value: [value])
    app.remove_prompt("review")
    assert app.registry.capabilities == frozenset()
    app.add_prompt(review)
    assert app.registry.completions == {}


def test_a_completion_can_be_removed() -> None:
    app = App("shop")
    app.add_completion("review", "title", lambda value: [value])
    app.remove_completion("review", "title")
    assert app.registry.completions == {}
    with pytest.raises(KeyError):
        app.remove_completion("review", "title")


async def test_a_legacy_client_brings_no_answers() -> None:
    """Spec 2025-11-25: there is no `inputResponses`."""
    app = App("shop")
    seen: list[Any] = []

    @app.tool
    def order(ctx: Context) -> str:
        seen.append(ctx.input.responses)
        return "x"

    for version in EVERY:
        await reply(
            app, "tools/call", at=version, name="order", inputResponses={"a": {"b": 1}}
        )
    assert seen == [{"a": {"b": 1}} if at == MODERN else {} for at in EVERY]


def test_questions_are_a_dict() -> None:
    with pytest.raises(ValueError, match="input_requests is a dict"):
        Result.input_required(["x"])  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("listed", "sent", "admitted"),
    [
        ("https://a.example.com:443", b"https://a.example.com", True),
        ("https://a.example.com", b"https://a.example.com:443", True),
        ("http://a.example.com:80", b"http://a.example.com", True),
        ("https://a.example.com:80", b"https://a.example.com", False),
    ],
)
def test_the_port_that_a_scheme_implies_may_be_left_out(
    listed: str, sent: bytes, *, admitted: bool
) -> None:
    """RFC 6454, section 6.2."""
    guard = Guard(["mcp.example.com"], [listed])
    assert guard.admits_origin(sent, b"mcp.example.com") is admitted


async def test_an_object_is_anything() -> None:
    """Ours: `object` promises nothing, so that no output schema is declared."""
    app = App("shop")

    @app.tool
    def anything() -> object:
        return {"a": 1}

    assert "outputSchema" not in app.registry.tools["anything"].wire
    assert (await call(app, "tools/call", name="anything"))["structuredContent"] == {
        "a": 1
    }
