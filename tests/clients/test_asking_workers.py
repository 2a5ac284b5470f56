"""Clients that are asked three things, by servers of one worker and of several.

In the modern era the workers share nothing but the key. In the legacy era they share
a backend, over which an answer reaches the worker that waits for it.
"""

import asyncio
import json
import os
import subprocess
from collections.abc import Callable, Coroutine, Iterator, Mapping
from types import SimpleNamespace
from typing import Any, Final

import fastmcp
import httpx2
import pytest
from fastmcp.client.transports import StreamableHttpTransport
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp_types import ElicitRequestFormParams, ElicitRequestParams, ElicitResult

from mcpkit.server import SECRET_KEY
from tests import shared_backend
from tests.clients.answers import ANSWERS, PLACE, URI, WORDS, take
from tests.clients.balancing import Balancer
from tests.clients.processes import ROOT, missing, serving
from tests.clients.test_tour import MCP1
from tests.http.client import LEGACY, initialize, legacy, request
from tests.http.serving import Connection, connected, served, whole
from tests.http.test_workers import both
from tests.rounds import CLIENT

TARGET: Final = "tests.clients.asking:app"
KEY: Final = {SECRET_KEY: "k" * 32}

SAID: Final = [WORDS, WORDS]
"""What the resource and the prompt say."""


@pytest.fixture(scope="module")
def four() -> Iterator[str]:
    """The address of four workers that share nothing but the key."""
    with serving(TARGET, workers=4, environment={**os.environ, **KEY}) as url:
        yield url


@pytest.fixture(scope="module")
def one() -> Iterator[str]:
    """The address of one worker."""
    with serving(TARGET) as url:
        yield url


@pytest.fixture(scope="module")
def two() -> Iterator[tuple[str, str]]:
    """The addresses of two workers that share a backend."""
    with shared_backend.serving() as address:
        environment = {**shared_backend.environment(address), **KEY}
        with (
            serving(TARGET, environment=environment) as first,
            serving(TARGET, environment=environment) as second,
        ):
            yield first, second


async def fill_in(
    context: Any,  # noqa: ARG001  # the client passes it by name
    params: ElicitRequestParams,
) -> ElicitResult:
    assert isinstance(params, ElicitRequestFormParams)
    return ElicitResult(action="accept", content=ANSWERS[params.message])


async def elicit(_: str, __: Any, params: Any, context: Any) -> ElicitResult:
    return await fill_in(context, params)


# A connection for each request, so that any worker may get it.
CLOSES: Final = {"connection": "close"}


async def official(url: str, mode: Any) -> list[str]:
    async with httpx2.AsyncClient(headers=CLOSES, timeout=30) as http:
        transport = streamable_http_client(url, http_client=http)
        async with Client(transport, mode=mode, elicitation_callback=fill_in) as client:
            return await take(client)


async def fast(url: str, mode: Any) -> list[str]:
    transport = StreamableHttpTransport(url, headers=CLOSES)
    async with fastmcp.Client(
        transport, mode=mode, elicitation_handler=elicit
    ) as client:

        async def read(uri: str) -> Any:
            return SimpleNamespace(contents=await client.read_resource(uri))

        return await take(
            SimpleNamespace(
                call_tool=client.call_tool,
                read_resource=read,
                get_prompt=client.get_prompt,
            )
        )


def run_mcp1(url: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(  # noqa: S603  # the command is ours
        [MCP1, "-m", "tests.clients.mcp1_asking", url],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


async def oldest(url: str, mode: Any) -> list[str]:
    assert mode == "legacy"  # it knows no other
    if not MCP1.exists():
        missing(".venv-mcp1, the environment of the 1.x client,")
    completed = await asyncio.to_thread(run_mcp1, url)
    assert completed.returncode == 0, completed.stderr
    told: list[str] = json.loads(completed.stdout)
    return told


Run = Callable[[str, Any], Coroutine[Any, Any, list[str]]]

MODERN_CLIENTS: dict[str, Run] = {"mcp 2.x": official, "fastmcp": fast}
LEGACY_CLIENTS: dict[str, Run] = {**MODERN_CLIENTS, "mcp 1.x": oldest}

in_modern = pytest.mark.parametrize("run", MODERN_CLIENTS.values(), ids=MODERN_CLIENTS)
in_legacy = pytest.mark.parametrize("run", LEGACY_CLIENTS.values(), ids=LEGACY_CLIENTS)


@in_modern
async def test_modern_clients_are_asked_by_four_workers(four: str, run: Run) -> None:
    """MRTR-06. Spec 2026-07-28, basic/patterns/mrtr: requests are independent."""
    called, *said = await run(four, "auto")
    assert json.loads(called)["words"] == WORDS
    assert said == SAID


@in_legacy
async def test_legacy_clients_are_asked_by_one_worker(one: str, run: Run) -> None:
    """Spec 2025-11-25, client/elicitation."""
    called, *said = await run(one, "legacy")
    assert json.loads(called)["words"] == WORDS
    assert said == SAID


@in_legacy
async def test_legacy_clients_are_asked_by_two_workers(
    two: tuple[str, str], run: Run
) -> None:
    """Spec 2025-11-25, basic/transports: an answer is a request of its own."""
    balancer = Balancer(two)
    with served(balancer, "h11") as port:
        called, *said = await run(f"http://127.0.0.1:{port}/mcp", "legacy")
    assert json.loads(called)["words"] == WORDS
    assert said == SAID
    assert elsewhere(balancer)


def elsewhere(balancer: Balancer) -> bool:
    """Whether an answer came to another worker than the one that had asked."""
    asking = -1
    for server, message in balancer.passed:
        method = (message or {}).get("method")
        if method in ("tools/call", "resources/read", "prompts/get"):
            asking = server
        elif message is not None and method is None and server != asking:
            return True
    return False


# By hand, so that it is certain which worker gets what


def port_of(url: str) -> int:
    port = httpx2.URL(url).port
    assert port is not None
    return port


async def send(
    connection: Connection, message: Mapping[str, Any], headers: Mapping[str, str]
) -> Any:
    """Send a request over a connection, and return what it is answered with."""
    await connection.send(whole(json.dumps(message).encode(), headers))
    reply = await connection.reply()
    assert reply.status == 200, reply
    answer = json.loads(reply.body)
    return answer.get("result", answer.get("error"))


TARGETS: dict[str, tuple[str, dict[str, Any]]] = {
    "a tool": ("tools/call", {"name": "reserve", "arguments": PLACE}),
    "a template": ("resources/read", {"uri": URI}),
    "a prompt": ("prompts/get", {"name": "invitation", "arguments": PLACE}),
}


def answers_to(asked: Any) -> dict[str, Any]:
    return {
        key: {"action": "accept", "content": ANSWERS[it["params"]["message"]]}
        for key, it in asked["inputRequests"].items()
    }


async def ask(
    connection: Connection, method: str, params: Mapping[str, Any], **more: Any
) -> Any:
    message, headers = request(
        "2026-07-28", method, {**params, **more}, capabilities=CLIENT
    )
    return await send(connection, message, headers)


@pytest.mark.parametrize(("method", "params"), TARGETS.values(), ids=TARGETS)
async def test_each_round_is_served_by_another_worker(
    four: str, method: str, params: dict[str, Any]
) -> None:
    """MRTR-06: nothing is stored, and any worker with the key goes on."""
    async with both(port_of(four)) as (first, second):
        result = await ask(first, method, params)
        for worker in (second, first, second):
            responses = answers_to(result)
            state = result["requestState"]
            result = await ask(
                worker, method, params, inputResponses=responses, requestState=state
            )
    assert WORDS in json.dumps(result)
    if method == "tools/call":
        a, b, c, d = result["structuredContent"]["processes"]
        assert (a, b) == (c, d)
        assert a != b


async def test_a_state_for_single_use_is_used_in_one_worker(
    two: tuple[str, str],
) -> None:
    """MRTR-15: of two workers that get it at the same time, one accepts it."""
    once = {"name": "reserve_once", "arguments": PLACE}
    async with connected(port_of(two[0])) as first, connected(port_of(two[1])) as other:
        asked = await ask(first, "tools/call", once)
        retry = {
            "inputResponses": answers_to(asked),
            "requestState": asked["requestState"],
        }
        results = await asyncio.gather(
            *(ask(it, "tools/call", once, **retry) for it in (first, other))
        )
    refused = {"code": -32602, "message": "Invalid or expired requestState"}
    assert results.count(refused) == 1
    [accepted] = [it for it in results if it != refused]
    [question] = accepted["inputRequests"].values()
    assert question["params"]["message"] == "How many come with Ada?"


ACCEPT: Final = {"accept": "application/json, text/event-stream"}


async def test_an_answer_at_another_worker_reaches_the_one_that_waits(
    two: tuple[str, str],
) -> None:
    """Spec 2025-11-25, basic/transports: Sending Messages to the Server."""
    async with httpx2.AsyncClient(timeout=30) as http:
        opened = await http.post(
            two[0], json=initialize(capabilities=CLIENT), headers=ACCEPT
        )
        session = {
            **ACCEPT,
            "mcp-protocol-version": LEGACY,
            "mcp-session-id": opened.headers["mcp-session-id"],
        }
        call = legacy("tools/call", {"name": "reserve", "arguments": PLACE})
        asked = 0
        async with http.stream("POST", two[0], json=call, headers=session) as stream:
            async for line in stream.aiter_lines():
                if not line.startswith("data: {"):
                    continue
                message = json.loads(line.removeprefix("data: "))
                if "method" not in message:
                    break
                content = ANSWERS[message["params"]["message"]]
                answer = {
                    "jsonrpc": "2.0",
                    "id": message["id"],
                    "result": {"action": "accept", "content": content},
                }
                posted = await http.post(two[1], json=answer, headers=session)
                assert posted.status_code == 202
                asked += 1
    assert asked == 3
    assert message["result"]["structuredContent"]["words"] == WORDS
