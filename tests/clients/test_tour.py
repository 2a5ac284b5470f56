"""Real clients, each taking the same tour of examples/everything.py.

What they hold afterwards is compared whole, so that a client that quietly drops
or changes something is seen.
"""

import importlib
import json
import subprocess
from collections.abc import Callable, Coroutine
from types import SimpleNamespace
from typing import Any, Final, Literal

import fastmcp
import pytest
from mcp import Client, MCPError
from mcp_types import (
    SERVER_INFO_META_KEY,
    PromptReference,
    ResourceTemplateReference,
)

from mcpkit import App
from mcpkit.extensions.task_wire import CAPABILITY
from tests.clients import tour
from tests.clients.processes import ROOT, missing

Seen = dict[str, Any]
Mode = Literal["auto", "legacy", "2026-07-28"]

MCP1: Final = ROOT / ".venv-mcp1" / "bin" / "python"

app: App = importlib.import_module("examples.everything").app

PIXEL: Final = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0g"
    "AAAABJRU5ErkJggg=="
)

WEATHER: Final = {"city": "Oslo", "degrees": 3.0, "conditions": ["sun", "wind"]}

DEFINITIONS: Final = {
    "test_simple_text": {
        "name": "test_simple_text",
        "title": "Simple text",
        "description": "Return a text.",
        "inputSchema": {"type": "object", "additionalProperties": False},
        "annotations": {"readOnlyHint": True},
    },
    "test_structured_content": {
        "name": "test_structured_content",
        "description": "Return structured content.",
        "inputSchema": {
            "type": "object",
            "properties": {
                "city": {"type": "string", "description": "The name of a city."},
                "degrees": {"type": "number", "default": 21},
            },
            "required": ["city"],
            "additionalProperties": False,
        },
        "outputSchema": {
            "type": "object",
            "description": "The weather of a city: the output schema of a tool.",
            "properties": {
                "city": {"type": "string"},
                "degrees": {"type": "number", "description": "Degrees Celsius."},
                "conditions": {"type": "array", "items": {"type": "string"}},
            },
            "required": ["city", "degrees", "conditions"],
        },
    },
    "test_x_mcp_header": {
        "name": "test_x_mcp_header",
        "description": (
            "Take an argument that proxies can route by: a header mirrors it."
        ),
        "inputSchema": {
            "type": "object",
            "properties": {"region": {"type": "string", "x-mcp-header": "Region"}},
            "required": ["region"],
            "additionalProperties": False,
        },
    },
}

LISTS: Final = {
    "resources": {
        "resources": [
            {
                "uri": "test://static-text",
                "name": "static_text",
                "description": "Read a text.",
                "mimeType": "text/plain",
            },
            {
                "uri": "test://static-binary",
                "name": "static_binary",
                "description": "Read an image.",
                "mimeType": "image/png",
            },
            {
                "uri": "test://watched-resource",
                "name": "watched_resource",
                "description": "Read what clients may subscribe to.",
                "mimeType": "text/plain",
            },
        ]
    },
    "templates": {
        "resourceTemplates": [
            {
                "uriTemplate": "test://template/{id}/data",
                "name": "template_data",
                "description": "Read the data of one id.",
                "mimeType": "application/json",
            }
        ]
    },
    "prompts": {
        "prompts": [
            {"name": "test_simple_prompt", "description": "Say something simple."},
            {
                "name": "test_prompt_with_arguments",
                "description": "Say something about two arguments.",
                "arguments": [
                    {
                        "name": "arg1",
                        "description": "The first argument.",
                        "required": True,
                    },
                    {
                        "name": "arg2",
                        "description": "The second argument.",
                        "required": True,
                    },
                ],
            },
            {
                "name": "test_prompt_with_embedded_resource",
                "description": "Ask about the contents of a resource.",
                "arguments": [{"name": "resourceUri", "required": True}],
            },
            {"name": "test_prompt_with_image", "description": "Ask about an image."},
            {
                "name": "test_input_required_result_prompt",
                "description": "Ask the user before there is a prompt.",
            },
        ]
    },
}


def said(text: str, *, failed: bool = False) -> Seen:
    return {"content": [{"type": "text", "text": text}], "isError": failed}


ANSWERS: Final = {
    "text": said("This is a simple text response for testing."),
    "structured": {
        **said('{"city":"Oslo","degrees":3.0,"conditions":["sun","wind"]}'),
        "structuredContent": WEATHER,
    },
    "image": {
        "content": [{"type": "image", "data": PIXEL, "mimeType": "image/png"}],
        "isError": False,
    },
    "error": said("This tool intentionally returns an error for testing.", failed=True),
    "bad arguments": said("city: missing", failed=True),
    "mirrored": said("Served in Zürich 1."),
    "read text": {
        "contents": [
            {
                "uri": "test://static-text",
                "mimeType": "text/plain",
                "text": "This is the content of the static text resource.",
            }
        ]
    },
    "read blob": {
        "contents": [
            {"uri": "test://static-binary", "mimeType": "image/png", "blob": PIXEL}
        ]
    },
    "read template": {
        "contents": [
            {
                "uri": "test://template/a%20b/data",
                "mimeType": "application/json",
                "text": '{"id":"a b","data":"Data for ID: a b"}',
            }
        ]
    },
    "prompt": {
        "description": "Say something about two arguments.",
        "messages": [
            {
                "role": "user",
                "content": {
                    "type": "text",
                    "text": "Prompt with arguments: arg1='one', arg2='two'",
                },
            }
        ],
    },
    "completed word": {"completion": {"values": ["paris", "park", "party"]}},
    "completed number": {"completion": {"values": ["123", "124"]}},
}


def refusals(not_found: int) -> Seen:
    return {
        "unknown tool": {"code": -32602, "message": "Unknown tool: no_such_tool"},
        "unknown resource": {
            "code": not_found,
            "message": "Resource not found",
            "data": {"uri": "test://nowhere"},
        },
        "unknown prompt": {"code": -32602, "message": "Unknown prompt: nothing"},
    }


PROMPT: Final = PromptReference(name=tour.PROMPT)
TEMPLATE: Final = ResourceTemplateReference(uri=tour.TEMPLATE)


async def official(url: str, mode: Mode) -> Seen:
    async with Client(url, mode=mode) as client:
        return await tour.take(client, PROMPT, TEMPLATE, MCPError)


async def fast(url: str, mode: Mode) -> Seen:
    async with fastmcp.Client(url, mode=mode) as client:
        # These return what the server sent; the others are in test_fastmcp.py.
        plain = SimpleNamespace(
            list_tools=client.list_tools_mcp,
            list_resources=client.list_resources_mcp,
            list_resource_templates=client.list_resource_templates_mcp,
            list_prompts=client.list_prompts_mcp,
            call_tool=client.call_tool_mcp,
            read_resource=client.read_resource_mcp,
            get_prompt=client.get_prompt_mcp,
            complete=client.complete_mcp,
        )
        return await tour.take(plain, PROMPT, TEMPLATE, MCPError)


def first(url: str) -> Seen:
    """Take the tour with the 1.x client, and return all that its program printed."""
    if not MCP1.exists():
        missing(".venv-mcp1, the environment of the 1.x client,")
    completed = subprocess.run(  # noqa: S603  # the command is ours
        [MCP1, "-m", "tests.clients.mcp1", url],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert completed.returncode == 0, completed.stderr
    printed: Seen = json.loads(completed.stdout)
    return printed


async def oldest(url: str, mode: Mode) -> Seen:
    assert mode == "legacy"  # it knows no other
    seen: Seen = first(url)["seen"]
    return seen


Tour = Callable[[str, Mode], Coroutine[Any, Any, Seen]]

CLIENTS: list[tuple[str, Tour, Mode]] = [
    ("mcp 2.x", official, "auto"),
    ("mcp 2.x, modern without a probe", official, "2026-07-28"),
    ("mcp 2.x, legacy", official, "legacy"),
    ("fastmcp", fast, "auto"),
    ("fastmcp, legacy", fast, "legacy"),
    ("mcp 1.x", oldest, "legacy"),
]

MODERN: Final = {
    "resultType": "complete",
    "_meta": {SERVER_INFO_META_KEY: app.info},
}
USUAL: Final = {**MODERN, "ttlMs": 60_000, "cacheScope": "private"}
KEPT: Final = {
    "tools": USUAL,
    "resources": USUAL,
    "templates": USUAL,
    "prompts": USUAL,
    "read text": USUAL,
    "read blob": {**USUAL, "ttlMs": 3_600_000},
    "read template": USUAL,
}

# What the newer clients hold for what a legacy server does not send.
FILLED_IN: Final = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}


@pytest.mark.parametrize(
    ("take", "mode"), [pytest.param(*row, id=name) for name, *row in CLIENTS]
)
async def test_a_client_sees_everything_as_it_is(
    url: str, take: Tour, mode: Mode
) -> None:
    """Spec 2026-07-28 and 2025-11-25: server/tools, resources, prompts, completion."""
    seen = await take(url, mode)
    tools = seen.pop("tools")["tools"]
    legacy = mode == "legacy"
    assert [tool["name"] for tool in tools] == tour.TOOLS
    assert {
        tool["name"]: tool for tool in tools if tool["name"] in DEFINITIONS
    } == DEFINITIONS
    assert {stop: _without_marks(held) for stop, held in seen.items()} == {
        **LISTS,
        **ANSWERS,
        **refusals(-32002 if legacy else -32602),
    }


@pytest.mark.parametrize(
    ("take", "mode"),
    [pytest.param(*row, id=name) for name, *row in CLIENTS if row[1] != "legacy"],
)
async def test_modern_results_say_who_sent_them_and_how_long_they_keep(
    url: str, take: Tour, mode: Mode
) -> None:
    """Spec 2026-07-28, basic/index: Responses, and server/utilities/caching."""
    seen = await take(url, mode)
    marks = {
        stop: {key: held[key] for key in (*FILLED_IN, "_meta") if key in held}
        for stop, held in seen.items()
    }
    assert marks == {
        **dict.fromkeys(ANSWERS, MODERN),
        **KEPT,
        **{stop: {} for stop in refusals(0)},
    }


async def test_discovery_introduces_the_server(url: str) -> None:
    """Spec 2026-07-28, server/discover."""
    async with Client(url) as client:
        assert client.protocol_version == "2026-07-28"
        assert client.server_info is not None
        assert tour.dump(client.server_info) == app.info
        assert tour.dump(client.server_capabilities) == app.declared("modern")
        assert client.instructions == app.options.instructions


async def test_a_handshake_introduces_the_server(url: str) -> None:
    """Spec 2025-11-25, basic/lifecycle: Initialization."""
    async with Client(url, mode="legacy") as client:
        assert client.protocol_version == "2025-11-25"
        assert client.server_info is not None
        assert tour.dump(client.server_info) == app.info
        assert tour.dump(client.server_capabilities) == {
            **app.declared("legacy"),
            "tasks": CAPABILITY,
        }
        assert client.instructions == app.options.instructions


def test_the_1x_client_opens_a_session(url: str) -> None:
    """Spec 2025-11-25, basic/lifecycle and basic/utilities/ping."""
    printed = first(url)
    del printed["seen"]
    assert printed == {
        "version": "2025-11-25",
        "server": app.info,
        "capabilities": {**app.declared("legacy"), "tasks": CAPABILITY},
        "instructions": app.options.instructions,
        "has a session": True,
        "ping": {},
    }


def _without_marks(held: Seen) -> Seen:
    """Return what was seen without what only modern results have."""
    return {
        key: value for key, value in held.items() if key not in (*FILLED_IN, "_meta")
    }
