"""The command line: `mcpkit run server.py`."""

import importlib
import os
import secrets
import socket
import sys
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Final

import click
import uvicorn

from mcpkit import __version__
from mcpkit.app import App
from mcpkit.errors import SetupError
from mcpkit.server import SECRET_KEY

# How the parent tells its workers what to serve: they are processes of their own.
_TARGET: Final = "MCPKIT_RUN_TARGET"
_DEBUG: Final = "MCPKIT_RUN_DEBUG"

_USUAL_NAMES: Final = ("app", "server", "mcp")


_SHUTDOWN_SECONDS: Final = 15
"""How long clients have to take what they were sent, once the process is to stop."""


@click.group()
@click.version_option(__version__, prog_name="mcpkit")
def main() -> None:
    """Serve MCP apps."""


@main.command()
@click.argument("target")
@click.option(
    "--host", default="127.0.0.1", show_default=True, help="The address to listen on."
)
@click.option(
    "--port",
    default=8000,
    show_default=True,
    type=click.IntRange(0, 65535),
    help="The port to listen on.",
)
@click.option(
    "--workers",
    default=1,
    show_default=True,
    type=click.IntRange(min=1),
    help="How many processes serve. They share one key.",
)
@click.option("--reload", is_flag=True, help="Start again when a file changes.")
@click.option("--debug", is_flag=True, help="Tell clients what a tool raised.")
def run(
    target: str, host: str, port: int, workers: int, *, reload: bool, debug: bool
) -> None:
    """Serve TARGET over HTTP.

    TARGET is a file (server.py), a module (package.server), or either with the
    name of the app behind a colon (server.py:app).
    """
    if reload and workers > 1:
        raise click.UsageError("--reload serves with one worker: leave out --workers")
    # Set before the app is imported, and also where it is set to nothing: each
    # worker would draw a key of its own.
    if not os.environ.get(SECRET_KEY):
        os.environ[SECRET_KEY] = secrets.token_urlsafe(32)
    try:
        app = find_app(target)
    except SetupError as error:
        raise click.ClickException(f"{target}: {error}") from error
    os.environ[_TARGET] = target
    os.environ[_DEBUG] = "1" if debug else ""
    shared = bind(host, port) if workers > 1 and os.name == "posix" else None
    if shared is not None:
        port = shared.getsockname()[1]
    shown = f"[{host}]" if ":" in host else host
    click.echo(f"Serving {app.name} at http://{shown}:{port}{app.path or '/'}")
    if host in ("0.0.0.0", "::"):  # noqa: S104  # to tell what else it takes
        click.echo("Other machines are admitted by App(allowed_hosts=[...]) alone")
    uvicorn.run(
        "mcpkit.cli:served",
        factory=True,
        host=host,
        port=port,
        fd=None if shared is None else shared.fileno(),
        workers=workers,
        reload=reload,
        timeout_graceful_shutdown=_SHUTDOWN_SECONDS,
        # A file is watched where it is, which need not be where we are.
        reload_dirs=[str(_locate(target.partition(":")[0])[0])] if reload else None,
    )


def bind(host: str, port: int) -> socket.socket:
    """Bind the socket that several workers share.

    What they accept on it sends at once what it is given. On one that uvicorn binds,
    asyncio's own event loop holds the end of each answer back for 40 milliseconds.

    Raises:
        click.ClickException: The address is taken, or is not one of this machine.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    bound = socket.socket(family)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    bound.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    try:
        bound.bind((host, port))
    except OSError as error:
        bound.close()
        raise click.ClickException(f"{host}:{port}: {error.strerror}") from error
    bound.set_inheritable(True)
    return bound


def served() -> App:
    """Return the app that `mcpkit run` was asked to serve, in one of its processes."""
    app = find_app(os.environ[_TARGET])
    if os.environ[_DEBUG]:
        app.options = replace(app.options, debug=True)
    return app


def find_app(target: str) -> App:
    """Import the app that a target names.

    Raises:
        click.ClickException: There is no such file, module or app.
    """
    location, _, attribute = target.partition(":")
    module = _import(location)
    found = {name: app for name, app in vars(module).items() if isinstance(app, App)}
    names = [attribute] if attribute else [*_USUAL_NAMES, *found]
    for name in names:
        if name in found and (name in (*_USUAL_NAMES, attribute) or len(found) == 1):
            return found[name]
    if not found:
        raise click.ClickException(f"{location} has no App: write app = App('name')")
    there = ", ".join(sorted(found))
    raise click.ClickException(
        f"{location} has no App named {attribute or 'app'}; there is {there}. "
        f"Name one, as in {location}:NAME"
    )


def _locate(location: str) -> tuple[Path, str]:
    """Return the folder to import from, and the name of the module."""
    if not location.endswith(".py"):
        return Path.cwd(), location
    path = Path(location).resolve()
    if not path.is_file():
        raise click.ClickException(f"there is no file {location}")
    return path.parent, path.stem


def _import(location: str) -> ModuleType:
    folder, name = _locate(location)
    if not all(name.split(".")):
        raise click.ClickException(f"{location!r} is neither a file nor a module")
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))
    try:
        module = importlib.import_module(name)
    except ModuleNotFoundError as error:
        # What the module itself imports and misses is not ours to explain.
        if error.name is None or not f"{name}.".startswith(f"{error.name}."):
            raise
        raise click.ClickException(f"there is no module {location}") from error
    if location.endswith(".py") and not _is_from(module, folder / f"{name}.py"):
        raise click.ClickException(
            f"{location} has the name of another module, {name}: rename it"
        )
    return module


def _is_from(module: ModuleType, path: Path) -> bool:
    return module.__file__ is not None and Path(module.__file__).samefile(path)
