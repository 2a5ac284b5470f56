"""`subscriptions/listen`, `resources/subscribe` and `resources/unsubscribe`."""

import asyncio
from collections.abc import Callable, Mapping
from typing import Any, Final

import pytest

from mcpkit import App, Context, dispatch, handle_request
from mcpkit.backends.memory import MemoryBackend
from mcpkit.context import Session
from tests.calls import call, request
from tests.http.streaming import acknowledged, completed, updated

PATIENCE: Final = 10
"""Seconds after which a test that hangs gives up."""

HOURS: Final = "shop://hours"
FILTER: Final = {"resourceSubscriptions": [HOURS]}


def build(**options: Any) -> App:
    app = App("bookshop", version="1.0.0", **options)

    @app.resource(HOURS)
    async def hours() -> str:
        return "9 to 5"

    return app


class Channel:
    """A channel of one's own: what is sent, and what is done if the client goes."""

    away_since = None

    def __init__(self, *, admits_stream: bool = True) -> None:
        self.admits_stream = admits_stream
        self.sent: asyncio.Queue[Mapping[str, Any]] = asyncio.Queue()
        self.watched: asyncio.Queue[Callable[[], None] | None] = asyncio.Queue()

    async def send(self, _: Context, message: Mapping[str, Any]) -> None:
        """Keep what is sent."""
        await self.sent.put(message)

    async def close(self, _: Context) -> None:
        """Close nothing."""

    def watch(self, _: Context, cancel: Callable[[], None] | None) -> None:
        """Keep what is to be done."""
        self.watched.put_nowait(cancel)

    def unwatch(self) -> None:
        """Do nothing any more."""


async def test_without_a_way_to_stream_there_is_no_such_method() -> None:
    """Ours: a transport of one's own that has no channel."""
    app = build()
    answer = await call(app, "subscriptions/listen", notifications=FILTER)
    assert answer == {"code": -32601, "message": "Method not found"}
    message = request("subscriptions/listen", notifications=FILTER)
    refused = await handle_request(message, app)
    assert refused == {
        "jsonrpc": "2.0",
        "id": 1,
        "error": {"code": -32601, "message": "Method not found"},
    }
    assert len(app.subscriptions) == 0


async def test_a_transport_of_ones_own_streams_over_its_channel() -> None:
    """Spec 2026-07-28, basic/patterns/subscriptions."""
    app, channel = build(), Channel()
    message = request("subscriptions/listen", notifications=FILTER)
    async with asyncio.timeout(PATIENCE):
        serving = asyncio.create_task(dispatch(message, app, channel=channel))
        assert await channel.sent.get() == acknowledged(**FILTER)
        app.notify_resource_updated(HOURS)
        assert await channel.sent.get() == updated(HOURS, 1)
        app.close()
        reply = await serving
    assert (reply.status, getattr(reply, "message", None)) == (200, completed())
    assert len(app.subscriptions) == 0


async def test_a_client_that_goes_ends_its_stream() -> None:
    """Spec 2026-07-28, basic/patterns/subscriptions: Cancellation."""
    app, channel = build(), Channel()
    message = request("subscriptions/listen", notifications=FILTER)
    async with asyncio.timeout(PATIENCE):
        serving = asyncio.create_task(dispatch(message, app, channel=channel))
        await channel.sent.get()
        cancel = await channel.watched.get()
        assert cancel is not None
        cancel()
        reply = await serving
    assert reply.body == b""
    assert len(app.subscriptions) == 0


async def test_a_channel_that_takes_no_stream_is_refused_one() -> None:
    """Ours."""
    message = request("subscriptions/listen", notifications=FILTER)
    channel = Channel(admits_stream=False)
    reply = await dispatch(message, build(), channel=channel)
    assert reply.status == 406
    assert channel.sent.empty()


async def test_it_is_a_method_of_the_modern_era_alone() -> None:
    """Spec 2026-07-28; 2025-11-25 has resources/subscribe in its place."""
    unknown = {"code": -32601, "message": "Method not found"}
    for method in ("resources/subscribe", "resources/unsubscribe"):
        assert await call(build(), method, uri=HOURS) == unknown
        empty = App("empty")
        assert await call(empty, method, at="2025-11-25", uri=HOURS) == unknown


@pytest.mark.parametrize("kind", ["weather", "tool", ""])
def test_only_lists_can_be_announced(kind: Any) -> None:
    with pytest.raises(ValueError, match="one of tools, prompts, resources, not"):
        build().notify_list_changed(kind)


def session(session_id: str = "s") -> Session:
    return Session(session_id, "2025-11-25", {}, expires=2.0**40)


async def test_a_session_of_a_transport_of_ones_own_is_kept_like_others() -> None:
    """Ours: in the backend, for who passes on what is updated."""
    backend = MemoryBackend()
    app = build(backend=backend)

    async def ask(method: str) -> Any:
        message = request(f"resources/{method}", at="2025-11-25", uri=HOURS)
        return await handle_request(message, app, session=session())

    done = {"jsonrpc": "2.0", "id": 1, "result": {}}
    assert await ask("subscribe") == done
    assert await backend.get("session-follows:s") == f'["{HOURS}"]'
    assert await ask("unsubscribe") == done
    assert await backend.get("session-follows:s") is None
    assert await ask("unsubscribe") == done
    assert len(backend) == 0


async def test_a_session_does_not_follow_uris_without_end() -> None:
    """Ours: they are kept for as long as the session lives."""
    app = build()

    @app.resource("shop://{name}")
    async def sold(name: str) -> str:
        return name

    answers = [
        await handle_request(
            request("resources/subscribe", at="2025-11-25", uri=f"shop://{name:08000}"),
            app,
            session=session(),
        )
        for name in range(10_000, 10_033)
    ]
    done = {"jsonrpc": "2.0", "id": 1, "result": {}}
    fault = "The URIs that the session follows are too long"
    refused = {"code": -32602, "message": fault}
    assert answers == [done] * 32 + [{"jsonrpc": "2.0", "id": 1, "error": refused}]


async def test_of_two_that_follow_at_once_none_is_lost() -> None:
    """Ours: another worker has changed what a session follows in between."""

    class Racing(MemoryBackend):
        raced = False

        async def replace(
            self, key: str, old: str | None, new: str | None, ttl: float
        ) -> bool:
            if not self.raced:
                self.raced = True
                await self.put(key, '["books://1"]', ttl)
            return await super().replace(key, old, new, ttl)

    backend = Racing()
    app = build(backend=backend)
    message = request("resources/subscribe", at="2025-11-25", uri=HOURS)
    await handle_request(message, app, session=session())
    assert await backend.get("session-follows:s") == f'["books://1", "{HOURS}"]'


def test_what_is_told_without_anybody_there_is_no_fault() -> None:
    app = build()
    app.notify_resource_updated(HOURS)
    app.notify_list_changed("tools")
    app.close()
