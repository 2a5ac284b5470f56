"""What a newcomer gets wrong is refused where it is written, in words that help."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import click
import httpx
import pytest
from fastapi import Depends, FastAPI, Query

from mcpkit import App, SetupError
from mcpkit.cli import find_app


def handler() -> str:
    raise NotImplementedError


def depends(user: Annotated[str, Depends]) -> str:
    raise NotImplementedError


def pages(size: Annotated[int, Query(le=100)] = 10) -> str:
    raise NotImplementedError


app: Any = App("mistakes")

REFUSED: list[tuple[str, Callable[[], Any], str]] = [
    (
        "a title that is no text",
        lambda: app.tool(title=3)(handler),
        "the title of a tool is a string, not 3",
    ),
    (
        "a description that is no text",
        lambda: app.prompt(description=3)(handler),
        "the description of a prompt is a string, not 3",
    ),
    (
        "a MIME type that is no text",
        lambda: app.resource("a://b", mime_type=3)(handler),
        "the mime_type of a resource is a string, not 3",
    ),
    (
        "meta in a list",
        lambda: app.tool(meta=[1])(handler),
        "the meta of a tool is a dict, not [1]",
    ),
    (
        "a thread in words",
        lambda: app.tool(thread="no")(handler),
        "the thread of a tool is True or False, not 'no'",
    ),
    (
        "tags in a number",
        lambda: app.tool(tags=3)(handler),
        "the tags of a tool is a list of strings, not 3",
    ),
    (
        "a hint in words",
        lambda: app.tool(annotations={"readOnlyHint": "yes"}, name="hinted")(handler),
        "tool 'hinted': the annotation readOnlyHint is True or False, not 'yes'",
    ),
    (
        "a misspelt option of a tool",
        lambda: app.tool(scope=["admin"])(handler),
        "a tool has no option 'scope'; it has annotations, asks, description, icons, "
        "input_schema, meta, name, output_schema, resumable, scopes, single_use, "
        "tags, task, thread, title, ui, visible",
    ),
    (
        "a misspelt option of a resource",
        lambda: app.resource("a://b", mimeType="text/html")(handler),
        "a resource has no option 'mimeType'; it has annotations, asks, cache_scope, "
        "description, icons, meta, mime_type, name, scopes, single_use, size, tags, "
        "thread, title, ttl_ms, ui, visible",
    ),
    (
        "an option of a tool on a prompt",
        lambda: app.prompt(annotations={})(handler),
        "a prompt has no option 'annotations'; it has asks, description, icons, meta, "
        "name, scopes, single_use, tags, thread, title, visible",
    ),
    (
        "the name of a tool by position",
        lambda: app.tool("search"),
        "the name of a tool is an option: name='search'",
    ),
    (
        "a resource without its URI",
        lambda: app.resource(handler),
        "a resource needs its URI: write @app.resource('scheme://name')",
    ),
    (
        "an argument marked as FastAPI would have it",
        lambda: app.tool(pages),
        "tool 'pages': the parameter 'size' is marked as a part of an HTTP request; "
        "for an argument write Annotated[..., Field(...)] with pydantic's Field, and "
        "for a part of the URL take a Depends, whose function has that parameter",
    ),
    (
        "a dependency that is not called",
        lambda: app.tool(depends),
        "tool 'depends': the parameter 'user' has a marker of FastAPI that is not "
        "called: add ()",
    ),
    (
        "an icon that is a URL",
        lambda: App("x", icons=["https://example.com/icon.png"]),  # type: ignore[list-item]
        "x: an icon is a dict with a src, not 'https://example.com/icon.png'",
    ),
    (
        "one era as a string",
        lambda: App("x", eras="modern"),  # type: ignore[arg-type]
        "eras is a set: write {'modern'}",
    ),
    (
        "one host as a string",
        lambda: App("x", allowed_hosts="example.com"),
        "allowed_hosts and allowed_origins are lists: write ['example.com']",
    ),
]


@pytest.mark.parametrize(
    ("mistake", "message"), [pytest.param(*row, id=name) for name, *row in REFUSED]
)
def test_a_mistake_is_a_setup_error(mistake: Callable[[], Any], message: str) -> None:
    """Ours."""
    with pytest.raises(SetupError) as caught:
        mistake()
    assert str(caught.value) == message


hosted = FastAPI()
hosted.mount("/tools", app)


@pytest.mark.parametrize(
    ("asgi", "path", "served"), [(app, "/", "/mcp"), (hosted, "/tools/x", "/tools/mcp")]
)
async def test_a_wrong_path_is_told_the_right_one(
    asgi: Any, path: str, served: str
) -> None:
    """Ours."""
    async with httpx.AsyncClient(
        transport=httpx.ASGITransport(app=asgi), base_url="http://localhost"
    ) as client:
        reply = await client.post(path)
    assert (reply.status_code, reply.text) == (
        404,
        f"Not Found: MCP is served at {served}",
    )


def test_a_file_without_an_app_is_told_what_to_write(tmp_path: Path) -> None:
    """Ours."""
    server = tmp_path / "without_an_app.py"
    server.write_text("x = 1\n")
    with pytest.raises(click.ClickException) as caught:
        find_app(str(server))
    assert caught.value.message == f"{server} has no App: write app = App('name')"


FAILING = """
import asyncio
from mcpkit import App, handle_request

app = App("failing")

@app.tool
def fail() -> str:
    raise ConnectionError("the database is down")

params = {"name": "fail"}
call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
asyncio.run(handle_request(call, app))
"""


def test_what_a_tool_raised_is_printed_where_logging_is_not_set_up() -> None:
    """Ours."""
    run = [sys.executable, "-c", FAILING]
    done = subprocess.run(run, capture_output=True, text=True, check=True)  # noqa: S603  # ours
    first, *_, last = done.stderr.splitlines()
    assert (first, last) == (
        "tools/call: tool 'fail' failed",
        "ConnectionError: the database is down",
    )
