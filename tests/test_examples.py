"""Every file in examples/ imports, and serves what it claims."""

import importlib
import json
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Final, Literal

import httpx
import pytest
from mcp import Client
from mcp_types import (
    CreateMessageResult,
    ElicitResult,
    ListRootsResult,
    Root,
    TextContent,
)
from pydantic import FileUrl

from mcpkit import App
from mcpkit.extensions.task_wire import IDENTIFIER as TASKS
from mcpkit.protocol import headers as routing
from mcpkit.protocol.era import CLIENT_CAPABILITIES, PROTOCOL_VERSION
from mcpkit.protocol.methods import METHODS
from tests.clients import tour
from tests.clients.processes import serving
from tests.wire import MODERN, check_response

LEGACY: Final = "2025-11-25"
EXAMPLES: Final = Path(__file__).parent.parent / "examples"
FILES: Final = {path.stem for path in EXAMPLES.glob("*.py")}

HELLO: Final = (EXAMPLES / "hello.py").read_text(encoding="utf-8")

# What lists call their elements, and what an element is known by.
LISTS: Final = {
    "tools": ("tools/list", "name"),
    "resources": ("resources/list", "uri"),
    "resourceTemplates": ("resources/templates/list", "uriTemplate"),
    "prompts": ("prompts/list", "name"),
}
MARKS: Final = frozenset({"resultType", "_meta", "ttlMs", "cacheScope"})

ALICE: Final = {"authorization": "Bearer alice-token"}
PAGE: Final = "https://chat.example.com"


@dataclass(frozen=True, kw_only=True)
class Visit:
    """One call to an example, and what is listed there.

    Attributes:
        example: The name of the file.
        lists: The names on the first page of each list; of other kinds there are none.
        method: What is called.
        params: With what.
        answer: The result, or the error.
        served: The name of the ASGI application in the file.
        path: Where in it.
        headers: What the example asks of its callers.
        eras: The versions that it speaks.
    """

    example: str
    lists: Mapping[str, list[str]]
    method: str = "tools/call"
    params: Mapping[str, Any]
    answer: Mapping[str, Any]
    served: str = "app"
    path: str = "/mcp"
    headers: Mapping[str, str] = field(default_factory=dict)
    eras: tuple[str, ...] = (MODERN, LEGACY)


def call(tool: str, **arguments: Any) -> dict[str, Any]:
    return {"name": tool, "arguments": arguments}


def said(text: str, *, failed: bool = False) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": text}], "isError": failed}


def structured(value: Any, text: str) -> dict[str, Any]:
    return {**said(text), "structuredContent": value}


def lacking(**capabilities: Any) -> dict[str, Any]:
    names = ", ".join(capabilities.get("extensions", capabilities))
    return {
        "code": -32021,
        "message": f"Missing required client capability: {names}",
        "data": {"requiredCapabilities": capabilities},
    }


VISITS: Final = [
    Visit(
        example="asking",
        lists={"tools": ["order"]},
        params=call("order", title="Dune"),
        answer=lacking(elicitation={"form": {}}),
    ),
    Visit(
        example="blocks",
        lists={"tools": ["look", "dot"]},
        params=call("dot"),
        answer={
            "content": [
                {
                    "type": "image",
                    "data": "R0lGODlhAQABAIAAAP8AAP///ywAAAAAAQABAAAC",
                    "mimeType": "image/gif",
                }
            ],
            "isError": False,
        },
    ),
    Visit(
        example="browser",
        lists={"tools": ["ping"]},
        params=call("ping"),
        answer=said("pong"),
        served="api",
        headers={**ALICE, "origin": PAGE},
    ),
    Visit(
        example="caching",
        lists={"resources": ["news://today", "shop://terms"]},
        method="resources/read",
        params={"uri": "shop://terms"},
        answer={
            "contents": [
                {"uri": "shop://terms", "mimeType": "text/plain", "text": "Be kind."}
            ]
        },
    ),
    Visit(
        example="caller",
        lists={"tools": ["whoami", "order"]},
        params=call("order", isbn="978-0441013593"),
        answer=said("Ordered 978-0441013593."),
        headers=ALICE,
    ),
    Visit(
        example="briefing",
        lists={"prompts": ["brief"]},
        method="prompts/get",
        params={
            "name": "brief",
            "arguments": {
                "field": "law",
                "topic": "Copyright",
                "style": '{"words": 100}',
            },
        },
        answer={
            "description": "Brief somebody on a topic.",
            "messages": [
                {
                    "role": "user",
                    "content": {
                        "type": "resource",
                        "resource": {
                            "uri": "notes://law/Copyright",
                            "mimeType": "text/plain",
                            "text": "Notes on Copyright.",
                        },
                    },
                },
                {
                    "role": "user",
                    "content": {
                        "type": "text",
                        "text": "Write 100 words on Copyright, in plain words.",
                    },
                },
                {
                    "role": "assistant",
                    "content": {"type": "text", "text": "For whom is it?"},
                },
            ],
        },
    ),
    Visit(
        example="extension",
        lists={"tools": ["look_up"]},
        params=call("look_up", title="Dune"),
        answer=said("Dune is 10.00 EUR."),
    ),
    Visit(
        example="files",
        lists={
            "resources": ["docs://license"],
            "resourceTemplates": ["examples://{+path}", "docs://{name}/source"],
        },
        method="resources/read",
        params={"uri": "examples://hello.py"},
        answer={
            "contents": [
                {
                    "uri": "examples://hello.py",
                    "mimeType": "text/x-python",
                    "text": HELLO,
                }
            ]
        },
    ),
    Visit(
        example="search",
        lists={
            "resourceTemplates": [
                "books://search{?q,lang,year*}",
                "shelves://{floor}{/path*}",
            ],
        },
        method="resources/read",
        params={"uri": "books://search?year=1815&year=1759&lang=fr"},
        answer={
            "contents": [
                {
                    "uri": "books://search?year=1815&year=1759&lang=fr",
                    "mimeType": "application/json",
                    "text": '["Candide"]',
                }
            ]
        },
    ),
    Visit(
        example="catalog",
        lists={
            "resources": ["shop://hours", "shop://stock"],
            "resourceTemplates": ["books://{key}", "books://{key}/cover"],
        },
        method="resources/read",
        params={"uri": "books://dune"},
        answer={
            "contents": [
                {
                    "uri": "books://dune",
                    "mimeType": "text/plain",
                    "text": "Dune, by Frank Herbert",
                }
            ]
        },
    ),
    Visit(
        example="dependencies",
        lists={"tools": ["order"], "resources": ["shop://orders"]},
        params=call("order", title="Dune"),
        answer=said("Ordered Dune."),
        headers=ALICE,
    ),
    Visit(
        example="docstrings",
        lists={"tools": ["convert"]},
        params=call("convert", euros=2),
        answer=said("23.00 NOK"),
    ),
    Visit(
        example="elsewhere",
        lists={"tools": ["print_book"]},
        params=call("print_book", title="Dune"),
        answer=lacking(extensions={TASKS: {}}),
        served="api",
        eras=(MODERN,),
    ),
    Visit(
        example="embedded",
        lists={"tools": ["whoami"]},
        params=call("whoami"),
        answer=said("You are alice."),
        served="api",
        path="/api/mcp",
        headers=ALICE,
    ),
    Visit(
        example="errors",
        lists={"tools": ["divide", "balance", "order"]},
        params=call("divide", a=1, b=0),
        answer=said("b is zero. Ask for another number.", failed=True),
    ),
    Visit(
        example="everything",
        lists={
            "tools": tour.TOOLS,
            "resources": [
                "test://static-text",
                "test://static-binary",
                "test://watched-resource",
            ],
            "resourceTemplates": [tour.TEMPLATE],
            "prompts": [
                "test_simple_prompt",
                tour.PROMPT,
                "test_prompt_with_embedded_resource",
                "test_prompt_with_image",
                "test_input_required_result_prompt",
            ],
        },
        params=call("test_simple_text"),
        answer=said("This is a simple text response for testing."),
    ),
    Visit(
        example="header",
        lists={"tools": ["count"]},
        params=call("count", table="books", region="eu"),
        answer=said("There are 3 rows in books in eu."),
        headers={"mcp-param-region": "eu"},
    ),
    Visit(
        example="hello",
        lists={"tools": ["greet"]},
        params=call("greet", name="Ada"),
        answer=said("Hello, Ada!"),
    ),
    Visit(
        example="hosts",
        lists={"tools": ["ping"]},
        params=call("ping"),
        answer=said("pong"),
    ),
    Visit(
        example="lifespan",
        lists={"tools": ["add_note", "read_notes"]},
        params=call("add_note", text="Bring a hat."),
        answer=said("Kept."),
    ),
    Visit(
        example="live",
        lists={"tools": ["define", "forget"]},
        params=call("forget", name="greeting"),
        answer=said("There is no tool greeting.", failed=True),
    ),
    Visit(
        example="mounted",
        lists={"tools": ["search"]},
        params=call("search", title="Dune"),
        answer=said("There is one copy of Dune."),
        served="api",
        path="/shop/mcp",
    ),
    Visit(
        example="mounted",
        lists={"tools": ["restock"]},
        params=call("restock", title="Dune", copies=2),
        answer=said("Ordered 2 of Dune."),
        served="api",
        path="/staff",
    ),
    Visit(
        example="paging",
        lists={"tools": ["spring", "summer"]},
        params=call("winter"),
        answer=said("In winter you would like it here."),
    ),
    Visit(
        example="prompts",
        lists={"prompts": ["review", "interview"]},
        method="prompts/get",
        params=call("review", title="Dune"),
        answer={
            "description": "Review a book.",
            "messages": [
                {
                    "role": "user",
                    "content": {"type": "text", "text": "Write a kind review of Dune."},
                }
            ],
        },
    ),
    Visit(
        example="questions",
        lists={
            "tools": ["book", "connect", "summarise", "plan", "blocking"],
            "prompts": ["postcard"],
        },
        params=call("connect"),
        answer=lacking(elicitation={"url": {}}),
        eras=(MODERN,),
    ),
    Visit(
        example="resuming",
        lists={"tools": ["ship"]},
        params=call("ship", orders=[1]),
        answer=lacking(extensions={TASKS: {}}),
        eras=(MODERN,),
    ),
    Visit(
        example="returns",
        lists={"tools": ["words", "numbers", "blocks", "both"]},
        params=call("numbers"),
        answer=structured(
            {"day": "2026-07-28", "degrees": 21.5},
            '{"day":"2026-07-28","degrees":21.5}',
        ),
    ),
    Visit(
        example="rounds",
        lists={"tools": ["register"]},
        params=call("register"),
        answer=lacking(elicitation={"form": {}}),
        eras=(MODERN,),
    ),
    Visit(
        example="sans_io",
        lists={"tools": ["greet"]},
        params=call("greet"),
        answer=said("Hello!"),
        eras=(MODERN,),
    ),
    Visit(
        example="schemas",
        lists={"tools": ["query"]},
        params=call("query", table="books"),
        answer=said("The first 10 rows of books."),
    ),
    Visit(
        example="sessions",
        lists={"tools": ["add"]},
        params=call("add", a=1, b=2),
        answer=structured(3, "3"),
        eras=(MODERN,),
    ),
    Visit(
        example="signatures",
        lists={"tools": ["book", "free", "price"]},
        params=call("book", guest={"name": "Ada"}, arrival="2026-07-28"),
        answer=said("A room for Ada, 1 nights from 2026-07-28."),
    ),
    Visit(
        example="streaming",
        lists={"tools": ["stocktake", "export", "index"]},
        params=call("index", pages=1),
        answer=said("Indexed 1 pages."),
    ),
    Visit(
        example="subscriptions",
        lists={
            "tools": ["sell", "close_shop"],
            "resourceTemplates": ["stock://{title}"],
        },
        params=call("sell", title="emma"),
        answer=said("Sold a copy of emma."),
    ),
    Visit(
        example="tasks",
        lists={"tools": ["take_stock"]},
        params=call("take_stock", shelves=4),
        answer=lacking(elicitation={"form": {}}),
    ),
    Visit(
        example="threads",
        lists={"tools": ["blocking", "waiting", "instant"]},
        params=call("blocking"),
        answer=said("done"),
    ),
    Visit(
        example="toolbox",
        lists={"tools": ["billing_invoice", "billing_refund"]},
        params=call("billing_refund", order="7"),
        answer=said("Refunded 7."),
    ),
    Visit(
        example="toolbox",
        lists={"tools": ["invoice"]},
        params=call("invoice", order="7"),
        answer=said("Sent the invoice of 7."),
        served="public",
    ),
    Visit(
        example="tools",
        lists={"tools": ["search"]},
        params=call("search", title="nothing"),
        answer=structured([], "[]"),
        eras=(MODERN,),
    ),
    Visit(
        example="tracing",
        lists={"tools": ["search"]},
        params=call("search", title="Dune"),
        answer=said("There is one copy of Dune."),
    ),
    Visit(
        example="transport",
        lists={"tools": ["add"]},
        params=call("add", a=1, b=2),
        answer=structured(3, "3"),
        eras=(MODERN,),
    ),
    Visit(
        example="ui",
        lists={"tools": ["look_up"]},
        params=call("look_up", title="Dune"),
        answer=structured(
            {"title": "Dune", "copies": 3}, '{"title":"Dune","copies":3}'
        ),
    ),
    Visit(
        example="visible",
        lists={},
        params=call("restock", title="Dune"),
        answer={"code": -32602, "message": "Unknown tool: restock"},
    ),
    Visit(
        example="visible",
        lists={"tools": ["restock", "refund"]},
        params=call("restock", title="Dune"),
        answer=said("Ordered Dune."),
        headers=ALICE,
    ),
    Visit(
        example="watching",
        lists={"tools": ["search", "order"]},
        params=call("order", title="Dune"),
        answer={"code": -32000, "message": "The shop is closed"},
    ),
    Visit(
        example="workers",
        lists={"tools": ["approve", "announce"], "resources": ["shop://news"]},
        method="resources/read",
        params={"uri": "shop://news"},
        answer={
            "contents": [
                {
                    "uri": "shop://news",
                    "mimeType": "text/plain",
                    "text": "There is news.",
                }
            ]
        },
    ),
]

ASKED: Final = [
    pytest.param(
        visit,
        version,
        id=" ".join([visit.example, visit.served, visit.path, *visit.headers, version]),
    )
    for visit in VISITS
    for version in visit.eras
]


def test_every_example_is_visited() -> None:
    assert {visit.example for visit in VISITS} == FILES


@pytest.mark.parametrize("example", sorted(FILES))
def test_an_example_has_an_app(example: str) -> None:
    app = importlib.import_module(f"examples.{example}").app
    # The core alone has none: there it is a function.
    assert isinstance(app, App) is (example != "sans_io")


@pytest.mark.parametrize(("visit", "version"), ASKED)
async def test_an_example_lists_what_it_has(visit: Visit, version: str) -> None:
    listed = {}
    for kind, (method, key) in LISTS.items():
        answer = await ask(visit, version, method)
        if answer.get(kind):
            listed[kind] = [item[key] for item in answer[kind]]
    assert listed == visit.lists


@pytest.mark.parametrize(("visit", "version"), ASKED)
async def test_an_example_answers_a_call(visit: Visit, version: str) -> None:
    answer = await ask(visit, version, visit.method, visit.params)
    assert {k: answer[k] for k in answer if k not in MARKS} == visit.answer


@pytest.mark.parametrize(
    ("example", "result"),
    [("transport", {}), ("sessions", {"structuredContent": {"result": 3}})],
)
def test_an_example_serves_lines_over_a_pipe(
    example: str, result: Mapping[str, Any]
) -> None:
    """What was negotiated is known where the session is passed on."""
    client = {"name": "pipe", "version": "1.0"}
    params = {"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": client}
    lines: list[dict[str, Any]] = [
        {"id": 1, "method": "initialize", "params": params},
        {"method": "notifications/initialized"},
        {"id": 2, "method": "tools/call", "params": call("add", a=1, b=2)},
    ]
    done = subprocess.run(  # noqa: S603  # our own example
        [sys.executable, "-m", f"examples.{example}"],
        input="".join(json.dumps({"jsonrpc": "2.0", **line}) + "\n" for line in lines),
        capture_output=True,
        check=True,
        text=True,
        timeout=30,
        cwd=EXAMPLES.parent,
    )
    opened, called = map(json.loads, done.stdout.splitlines())
    assert opened["result"]["protocolVersion"] == LEGACY
    assert called == {"jsonrpc": "2.0", "id": 2, "result": {**said("3"), **result}}


async def test_a_browser_may_ask_before_it_has_a_token() -> None:
    """Fetch standard: CORS-preflight fetch; it has no credentials."""
    asked = {
        "origin": PAGE,
        "access-control-request-method": "POST",
        "access-control-request-headers": "authorization,content-type,mcp-method",
    }
    api = importlib.import_module("examples.browser").api
    async with httpx.AsyncClient(
        transport=httpx.ASGITransport(app=api), base_url="http://localhost"
    ) as client:
        preflight = await client.options("/mcp", headers=asked)
        refused = await client.post("/mcp", headers={"origin": PAGE}, json={})
    told = preflight.headers
    assert preflight.status_code == 200
    assert told["access-control-allow-origin"] == PAGE
    assert (
        told["access-control-allow-headers"]
        == (asked["access-control-request-headers"])
    )
    assert refused.status_code == 401
    assert refused.headers["access-control-allow-origin"] == PAGE


# What the user of the client below fills in, and what each tool says then.
FILLED_IN: Final[Mapping[str, Any]] = {
    "city": "Oslo",
    "leaves": "2026-08-01",
    "name": "joan",
    "sure": True,
    "to": "Rome",
}
TOLD: Final = [
    ("asking", "order", {"title": "Dune"}, "Order 7 goes to Oslo."),
    ("questions", "book", {}, "1 to Rome, on 2026-08-01."),
    ("questions", "connect", {}, "Is it connected? Call status."),
    ("questions", "summarise", {"text": "Much."}, "Socks."),
    ("questions", "plan", {}, "Rome: Socks. Files: ['file:///home/ada']"),
    ("questions", "blocking", {}, "file:///home/ada"),
    ("rounds", "register", {}, "You are joan, at try 1."),
]


@pytest.mark.parametrize(("example", "tool", "arguments", "text"), TOLD)
@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_an_example_asks_a_client_of_each_era(
    example: str,
    tool: str,
    arguments: dict[str, Any],
    text: str,
    mode: Literal["auto", "legacy"],
    served: Callable[[str], str],
) -> None:
    async with Client(
        served(example),
        mode=mode,
        elicitation_callback=fill_in,
        sampling_callback=sample,
        list_roots_callback=list_roots,
    ) as client:
        result = await client.call_tool(tool, arguments)
    assert result.content == [TextContent(text=text)]


@pytest.fixture(scope="module")
def served() -> Iterator[Callable[[str], str]]:
    """Serve each example that is asked for, once."""
    with ExitStack() as stack:
        yield cache(lambda name: stack.enter_context(serving(f"examples.{name}:app")))


async def fill_in(
    context: Any,  # noqa: ARG001  # the client passes it by name
    params: Any,
) -> ElicitResult:
    if params.mode == "url":
        return ElicitResult(action="accept")
    asked = params.requested_schema["properties"]
    given = {name: FILLED_IN[name] for name in asked if name in FILLED_IN}
    return ElicitResult(action="accept", content=given)


async def sample(
    context: Any,  # noqa: ARG001  # the client passes it by name
    params: Any,  # noqa: ARG001
) -> CreateMessageResult:
    content = TextContent(text="Socks.")
    return CreateMessageResult(role="assistant", model="parrot", content=content)


async def list_roots(
    context: Any,  # noqa: ARG001  # the client passes it by name
) -> ListRootsResult:
    return ListRootsResult(roots=[Root(uri=FileUrl("file:///home/ada"))])


async def ask(
    visit: Visit, version: str, method: str, params: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Send a request to an example, and return the result or the error."""
    app = getattr(importlib.import_module(f"examples.{visit.example}"), visit.served)
    sent = dict(params or {})
    headers = {routing.VERSION.decode(): version, **visit.headers}
    if version == MODERN:
        sent["_meta"] = {PROTOCOL_VERSION: version, CLIENT_CAPABILITIES: {}}
        headers[routing.METHOD.decode()] = method
        named_by = METHODS[method].named_by
        if named_by is not None:
            headers[routing.NAME.decode()] = sent[named_by]
    message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": sent}
    async with httpx.AsyncClient(
        transport=httpx.ASGITransport(app=app), base_url="http://localhost"
    ) as client:
        reply = await client.post(visit.path, json=message, headers=headers)
    answered = reply.json()
    check_response(answered, method, version)
    outcome: dict[str, Any] = answered.get("result", answered.get("error"))
    return outcome
