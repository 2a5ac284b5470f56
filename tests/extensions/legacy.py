"""A client of the legacy era that has tasks, over HTTP in this process."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import count
from typing import Any, Final

from mcpkit import App
from tests.calls import V_2025_11_25
from tests.http.client import JSON_HEADERS, Json, initialize, legacy, post
from tests.http.streaming import PATIENCE, Stream, stream
from tests.rounds import CLIENT

RELATED: Final = "io.modelcontextprotocol/related-task"

_ids: Final = count(1)


@dataclass(frozen=True)
class Peer:
    """A client, and what it has of a session.

    Attributes:
        app: What it speaks to.
        headers: The headers of its requests.
        capabilities: What the server declared.
    """

    app: Any
    headers: Mapping[str, str]
    capabilities: Mapping[str, Any]

    def over(self, app: App) -> "Peer":
        """Return the same client, whose requests reach another worker."""
        return Peer(app, self.headers, self.capabilities)

    async def send(self, method: str, /, **params: Any) -> Any:
        """Send a request, and return its result, or its error where it failed."""
        message = legacy(method, params, request_id=next(_ids))
        reply = (await post(self.app, message, self.headers)).json()
        assert reply["id"] == message["id"]
        return reply["result"] if "result" in reply else reply["error"]

    async def call(self, name: str, /, **arguments: Any) -> Any:
        """Call a tool, and wait for what it comes to."""
        return await self.send("tools/call", name=name, arguments=arguments)

    async def begin(
        self, name: str, /, task: Any = None, meta: Any = None, **arguments: Any
    ) -> str:
        """Call a tool as a task, and return the id of the task."""
        made = await self.send(
            "tools/call",
            name=name,
            arguments=arguments,
            task=task or {},
            **({} if meta is None else {"_meta": meta}),
        )
        task_id: str = made["task"]["taskId"]
        return task_id

    async def state(self, task_id: str) -> Any:
        """Return how a task stands."""
        return await self.send("tasks/get", taskId=task_id)

    async def result(self, task_id: str) -> Any:
        """Wait for the result of a task."""
        async with asyncio.timeout(PATIENCE):
            return await self.send("tasks/result", taskId=task_id)

    async def until(self, task_id: str, status: str) -> Any:
        """Look at a task until it stands so."""
        async with asyncio.timeout(PATIENCE):
            while (state := await self.state(task_id))["status"] != status:
                await asyncio.sleep(0.005)
        return state

    @asynccontextmanager
    async def waiting(self, task_id: str) -> AsyncIterator["Waiting"]:
        """Ask for the result of a task, and read what comes."""
        message = legacy("tasks/result", {"taskId": task_id}, request_id=next(_ids))
        async with stream(self.app, message, self.headers) as opened:
            yield Waiting(opened, message["id"])

    async def answer(self, request_id: Any, **response: Any) -> None:
        """Post a response, which is accepted whatever it is."""
        message = {"jsonrpc": "2.0", "id": request_id, **response}
        reply = await post(self.app, message, self.headers)
        assert (reply.status_code, reply.content) == (202, b"")


@dataclass(frozen=True)
class Waiting:
    """A request for the result of a task, that is open.

    Attributes:
        stream: Its response.
        request_id: Its id.
    """

    stream: Stream
    request_id: int

    async def message(self) -> Json:
        """Read the next message; an event may be there for its id alone."""
        while (message := await self.stream.message()) is None:
            pass
        found: Json = message
        return found

    async def end(self) -> Any:
        """Read the response, which comes next: its result or its error."""
        message = await self.message()
        assert message.get("id") == self.request_id, message
        return message["result"] if "result" in message else message["error"]


async def connect(
    app: App,
    version: str = V_2025_11_25,
    *,
    client: Mapping[str, Any] = CLIENT,
    by: str | None = None,
) -> Peer:
    """Open a session.

    Args:
        app: The app.
        version: The revision.
        client: What the client declares.
        by: Who it is, for an app that knows callers by `x-user`.
    """
    user = {} if by is None else {"x-user": by}
    headers = {**JSON_HEADERS, **user, "mcp-protocol-version": version}
    reply = await post(app, initialize(version, capabilities=client), headers)
    headers["mcp-session-id"] = reply.headers["mcp-session-id"]
    return Peer(app, headers, reply.json()["result"]["capabilities"])


def stranger(app: App, version: str = V_2025_11_25) -> Peer:
    """Return a client that has no session, and is nobody in particular."""
    return Peer(app, {**JSON_HEADERS, "mcp-protocol-version": version}, {})
