"""The command line: `mcpkit run`."""

import asyncio
import re
import socket
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import httpx
import pytest
from click.testing import CliRunner, Result

from mcpkit import __version__
from mcpkit.cli import bind, find_app, main
from tests.calls import V_2025_11_25, request
from tests.wire import check_response

PATIENCE = 60
"""Seconds after which a test that hangs gives up."""

ONE = """
from mcpkit import App
{name} = App("one")
"""
TWO = """
from mcpkit import App
{name} = App("one")
other = App("two")
"""


@pytest.fixture(autouse=True)
def forgotten(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """Work in a folder of its own, and forget what is imported there."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    before = set(sys.modules)
    yield
    for name in set(sys.modules) - before:
        if str(tmp_path) in str(getattr(sys.modules[name], "__file__", "")):
            del sys.modules[name]


def write(path: str, text: str = ONE, name: str = "app") -> None:
    file = Path(path)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text.format(name=name))


def table(rows: list[Any]) -> list[Any]:
    return [pytest.param(*row, id=name) for name, *row in rows]


FOUND = [
    # id, file, its text, the name of the app in it, target, which app
    ("a file", "server_a.py", ONE, "app", "server_a.py", "one"),
    ("a file elsewhere", "below/server_b.py", ONE, "app", "below/server_b.py", "one"),
    ("a file with a dash", "my-server.py", ONE, "app", "my-server.py", "one"),
    ("a module", "server_c.py", ONE, "app", "server_c", "one"),
    ("a module of a package", "pack_a/server.py", ONE, "app", "pack_a.server", "one"),
    ("a package", "pack_b/__init__.py", ONE, "app", "pack_b", "one"),
    ("a name in a file", "server_d.py", TWO, "app", "server_d.py:other", "two"),
    ("a name in a module", "server_e.py", TWO, "app", "server_e:other", "two"),
    ("a usual name", "server_f.py", TWO, "mcp", "server_f.py", "one"),
    ("another usual name", "server_g.py", TWO, "server", "server_g.py", "one"),
    ("the only one", "server_h.py", ONE, "bookshop", "server_h.py", "one"),
    ("no name after the colon", "server_i.py", ONE, "app", "server_i.py:", "one"),
]


@pytest.mark.parametrize(("path", "text", "name", "target", "found"), table(FOUND))
def test_a_target_names_an_app(
    path: str, text: str, name: str, target: str, found: str
) -> None:
    write(path, text, name)
    assert find_app(target).name == found
    assert find_app(target).name == found


def test_a_file_is_found_by_its_whole_path(tmp_path: Path) -> None:
    write("server_whole.py")
    assert find_app(str(tmp_path / "server_whole.py")).name == "one"


def mcpkit(*arguments: str) -> Result:
    return CliRunner().invoke(main, arguments)


MISSING = [
    # id, file, its text, target, the whole message
    ("no such file", "x.py", ONE, "none.py", "there is no file none.py"),
    ("no such module", "x.py", ONE, "none", "there is no module none"),
    ("no such package", "x.py", ONE, "none.server", "there is no module none.server"),
    (
        "no such module of a package",
        "pack_c/__init__.py",
        ONE,
        "pack_c.none",
        "there is no module pack_c.none",
    ),
    (
        "a folder",
        "folder/x.py",
        ONE,
        "./folder",
        "'./folder' is neither a file nor a module",
    ),
    ("nothing", "x.py", ONE, "", "'' is neither a file nor a module"),
    (
        "no app",
        "server_k.py",
        "{name} = 3",
        "server_k.py",
        "server_k.py has no App: write app = App('name')",
    ),
    (
        "no app of that name",
        "server_l.py",
        ONE,
        "server_l.py:mcp",
        "server_l.py has no App named mcp; there is app. Name one, as in "
        "server_l.py:NAME",
    ),
    (
        "several apps without a usual name",
        "server_m.py",
        TWO.replace("{name}", "first"),
        "server_m.py",
        "server_m.py has no App named app; there is first, other. Name one, as in "
        "server_m.py:NAME",
    ),
    (
        "the name of another module",
        "calendar.py",
        ONE,
        "calendar.py",
        "calendar.py has the name of another module, calendar: rename it",
    ),
]


@pytest.mark.parametrize(("path", "text", "target", "message"), table(MISSING))
def test_what_is_missing_is_told_in_a_line(
    path: str, text: str, target: str, message: str
) -> None:
    import calendar  # noqa: F401, PLC0415  # it must be there before the file is

    write(path, text)
    result = mcpkit("run", target)
    assert (result.exit_code, result.output) == (1, f"Error: {message}\n")


def test_what_a_module_misses_itself_is_its_own_traceback() -> None:
    write("server_n.py", "import no_such_module_at_all  # {name}")
    with pytest.raises(ModuleNotFoundError, match="no_such_module_at_all"):
        find_app("server_n.py")


def test_a_fault_in_the_module_is_its_own_traceback() -> None:
    write("server_o.py", "{name} = 1 / 0")
    with pytest.raises(ZeroDivisionError):
        find_app("server_o.py")


def test_an_error_is_a_click_exception() -> None:
    with pytest.raises(click.ClickException):
        find_app("none.py")


MISUSED = [
    # id, arguments, what the last line says
    (
        "reload with workers",
        ["x.py", "--reload", "--workers", "2"],
        "Error: --reload serves with one worker: leave out --workers",
    ),
    (
        "no workers",
        ["x.py", "--workers", "0"],
        "Error: Invalid value for '--workers': 0 is not in the range x>=1.",
    ),
    (
        "a port that is none",
        ["x.py", "--port", "65536"],
        "Error: Invalid value for '--port': 65536 is not in the range 0<=x<=65535.",
    ),
    ("no target", [], "Error: Missing argument 'TARGET'."),
]


@pytest.mark.parametrize(("arguments", "message"), table(MISUSED))
def test_misuse_is_told_in_a_line(arguments: list[str], message: str) -> None:
    result = mcpkit("run", *arguments)
    assert result.exit_code == 2
    assert result.output.splitlines()[-1] == message


def test_help_says_how_to_run_a_server() -> None:
    result = mcpkit("run", "--help")
    assert result.exit_code == 0
    # Where a line ends is for click to say.
    assert " ".join(result.output.split()) == (
        "Usage: main run [OPTIONS] TARGET "
        "Serve TARGET over HTTP. "
        "TARGET is a file (server.py), a module (package.server), or either with the "
        "name of the app behind a colon (server.py:app). "
        "Options: "
        "--host TEXT The address to listen on. [default: 127.0.0.1] "
        "--port INTEGER RANGE The port to listen on. [default: 8000; 0<=x<=65535] "
        "--workers INTEGER RANGE How many processes serve. They share one key. "
        "[default: 1; x>=1] "
        "--reload Start again when a file changes. "
        "--debug Tell clients what a tool raised. "
        "--help Show this message and exit."
    )
    assert "run  Serve TARGET over HTTP." in mcpkit("--help").output


def test_the_version_is_told() -> None:
    assert mcpkit("--version").output == f"mcpkit, version {__version__}\n"


SERVER = """
import os
from mcpkit import App, ToolError

{name} = App("served", page_size=1)

@app.tool
def fail() -> str:
    raise RuntimeError("told in debug")

@app.tool
def process() -> int:
    return os.getpid()
"""


@dataclass
class Running:
    """A process that serves, and what it has said so far."""

    process: asyncio.subprocess.Process
    said: str = ""

    async def says(self, pattern: str, times: int = 1) -> list[str]:
        """Wait until the process has said something so often, and return it."""
        assert self.process.stdout is not None
        while len(found := re.findall(pattern, self.said)) < times:
            line = await self.process.stdout.readline()
            assert line, self.said
            self.said += line.decode()
        return found

    async def address(self, workers: int = 1) -> str:
        """Wait until every worker is there, and return where they listen."""
        (port,) = await self.says(r"(?:running on|at) http://127\.0\.0\.1:([1-9]\d*)")
        await self.says(STARTED, workers)
        # A worker says that it started just before it listens.
        while True:
            try:
                _, writer = await asyncio.open_connection("127.0.0.1", int(port))
            except ConnectionRefusedError:
                continue
            writer.close()
            await writer.wait_closed()
            return f"http://127.0.0.1:{port}/mcp"


STARTED = r"Application startup complete"


@asynccontextmanager
async def running(*arguments: str) -> AsyncIterator[Running]:
    """Run `mcpkit` on a free port."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        "from mcpkit.cli import main; main()",
        "run",
        "--port",
        "0",
        *arguments,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    try:
        async with asyncio.timeout(PATIENCE):
            yield Running(process)
    finally:
        process.terminate()
        # What it still says must be read, or it may never end.
        async with asyncio.timeout(PATIENCE):
            await process.communicate()


async def post(address: str, message: dict[str, Any], **headers: str) -> httpx.Response:
    """Send a message over a connection of its own."""
    async with httpx.AsyncClient(timeout=PATIENCE) as client:
        return await client.post(
            address, json=message, headers={"Accept": "*/*", **headers}
        )


def legacy(method: str, **params: Any) -> dict[str, Any]:
    return request(method, at=V_2025_11_25, **params)


DEBUGGED = [
    # id, flags, what a client reads
    ("by default", [], "Tool fail failed"),
    ("debug", ["--debug"], "Tool fail failed: RuntimeError: told in debug"),
]


@pytest.mark.parametrize(("flags", "text"), table(DEBUGGED))
async def test_an_app_is_served(flags: list[str], text: str) -> None:
    write("server_p.py", SERVER)
    async with running("server_p.py", *flags) as run:
        address = await run.address()
        assert "Serving served at http://127.0.0.1:0/mcp\n" in run.said
        message = (await post(address, legacy("tools/call", name="fail"))).json()
    check_response(message, "tools/call", "2025-03-26")
    assert message["result"] == {
        "content": [{"type": "text", "text": text}],
        "isError": True,
    }


def test_what_workers_accept_sends_at_once() -> None:
    """Ours: without it, each answer comes 40 milliseconds late, or uvloop is needed."""
    with bind("127.0.0.1", 0) as bound:
        bound.listen()
        with socket.create_connection(bound.getsockname()) as client:
            accepted, _ = bound.accept()
            with accepted:
                level, option = socket.IPPROTO_TCP, socket.TCP_NODELAY
                assert accepted.getsockopt(level, option) != 0
                assert accepted.getpeername() == client.getsockname()


def test_a_port_that_is_taken_is_said_to_be() -> None:
    write("server_r.py", SERVER)
    with bind("127.0.0.1", 0) as bound:
        port = str(bound.getsockname()[1])
        bound.listen()
        result = mcpkit("run", "server_r.py", "--workers", "2", "--port", port)
    assert (result.exit_code, result.output) == (
        1,
        f"Error: 127.0.0.1:{port}: Address already in use\n",
    )


async def test_workers_share_a_key() -> None:
    """Ours: any worker serves any session, and continues any list."""
    write("server_q.py", SERVER)
    hello = legacy(
        "initialize",
        protocolVersion=V_2025_11_25,
        capabilities={},
        clientInfo={"name": "client", "version": "1"},
    )
    async with running("server_q.py", "--workers", "2") as run:
        address = await run.address(workers=2)
        session = (await post(address, hello)).headers["mcp-session-id"]
        headers = {"Mcp-Session-Id": session, "MCP-Protocol-Version": V_2025_11_25}
        processes: set[int] = set()
        cursors: set[str] = set()

        async def ask() -> None:
            called = await post(
                address, legacy("tools/call", name="process"), **headers
            )
            processes.add(called.json()["result"]["structuredContent"]["result"])
            listed = await post(address, legacy("tools/list"), **headers)
            cursors.add(listed.json()["result"]["nextCursor"])

        # Which worker takes a connection is for the kernel to say.
        while len(processes) < 2:
            await asyncio.gather(*(ask() for _ in range(16)))
        (cursor,) = cursors
        for _ in range(10):
            message = legacy("tools/list", cursor=cursor)
            following = (await post(address, message, **headers)).json()["result"]
            assert [tool["name"] for tool in following["tools"]] == ["process"]


async def test_a_changed_file_is_served_again_wherever_it_is() -> None:
    write("below/server_r.py", SERVER)
    message = legacy("tools/call", name="fail")
    async with running("below/server_r.py", "--reload") as run:
        address = await run.address()
        write("below/server_r.py", SERVER.replace("RuntimeError", "ToolError"))
        again = asyncio.create_task(run.says(STARTED, 2))
        # A change before the first look at the file is none: touch it again.
        while not (await asyncio.wait([again], timeout=5))[0]:
            Path("below/server_r.py").touch()
        await again
        result = (await post(address, message)).json()["result"]
    assert result["content"] == [{"type": "text", "text": "told in debug"}]
