"""`initialize`, `ping` and `logging/setLevel`, and the sessions behind them.

A session is a signed token that holds what `initialize` negotiated, so that any
worker with the key can serve it, and nothing is stored. What is kept, in the
backend and until the session would expire anyway: that it was ended, and the
level of its log messages.

Spec 2025-11-25, basic/lifecycle and basic/transports: Session Management.
"""

import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from mcpkit.context import Context, Session, principal_id
from mcpkit.errors import INTERNAL_ERROR, INVALID_REQUEST, HTTPError
from mcpkit.extensions.task_wire import CAPABILITY as TASK_CAPABILITY
from mcpkit.methods.common import invalid_params, object_param, string_param
from mcpkit.protocol.content import without_none
from mcpkit.protocol.era import LOG_LEVELS, is_implementation
from mcpkit.protocol.jsonrpc import encode
from mcpkit.protocol.legacy import implementation
from mcpkit.protocol.results import Result
from mcpkit.protocol.sealing import SealError
from mcpkit.protocol.versions import LATEST_LEGACY, REVISIONS, Revision
from mcpkit.server import LEVEL, Server, logger

SESSION_SECONDS: Final = 24 * 60 * 60
"""How long a session lives."""

_MAX_CAPABILITIES: Final = 4096
"""How large the capabilities of a client may be, in bytes: they travel in a header."""

_REMEMBERED: Final = 1024
"""How many tokens are remembered that were opened already."""

_ENDED: Final = "session-ended:"


async def initialize(server: Server, context: Context) -> Result:
    """Answer `initialize`; over HTTP, open a session.

    An unknown version is answered with the newest legacy one.

    Raises:
        ProtocolError: -32602, the params are malformed.
    """
    params = context.params
    requested = REVISIONS.get(string_param(params, "protocolVersion"), LATEST_LEGACY)
    revision = requested if requested.era == "legacy" else LATEST_LEGACY
    capabilities = object_param(params, "capabilities")
    if not is_implementation(params.get("clientInfo")):
        raise invalid_params(
            "Invalid params: clientInfo must be an object with a name and a version"
        )
    if len(encode(capabilities)) > _MAX_CAPABILITIES:
        raise invalid_params("Invalid params: capabilities are too large")
    context.revision = revision
    context.opened = Session(
        secrets.token_urlsafe(16),
        revision.version,
        capabilities,
        time.time() + SESSION_SECONDS,
    )
    return Result.wire(
        without_none(
            {
                "protocolVersion": revision.version,
                "capabilities": _declared(server, revision),
                "serverInfo": implementation(server.info, revision),
                "instructions": server.options.instructions,
            }
        )
    )


def _declared(server: Server, revision: Revision) -> dict[str, Any]:
    declared = server.declared(revision.era)
    if revision.tasks and server.task_host is not None:
        return {**declared, "tasks": TASK_CAPABILITY}
    return declared


async def ping(server: Server, context: Context) -> Result:  # noqa: ARG001  # a method takes both
    """Answer `ping`."""
    return Result.wire({})


async def set_level(server: Server, context: Context) -> Result:
    """Answer `logging/setLevel`.

    Raises:
        ProtocolError: -32602, there is no such level.
    """
    level = context.params.get("level")
    if level not in LOG_LEVELS:
        raise invalid_params(
            f"Invalid params: level must be one of {', '.join(LOG_LEVELS)}"
        )
    session = context.session
    if session is not None:
        await server.backend.put(
            LEVEL + session.id, str(level), session.expires - time.time()
        )
    return Result.wire({})


def seal_session(server: Server, session: Session, principal: Any) -> str:
    """Return the token of a session that was opened now, for a principal."""
    payload = {"v": session.version, "c": session.capabilities, "i": session.id}
    return server.seal("session", [server.name, principal_id(principal)], payload)


async def find_session(server: Server, token: str, principal: Any) -> Session:
    """Return the session of a token.

    That it was signed by a stranger, belongs to another principal, has expired
    or was ended are one to the client; the log can tell them apart.

    Raises:
        HTTPError: 404, there is none; 500, the backend failed.
    """
    key = (token, principal_id(principal))
    session = server.sessions.get(key)
    if session is None or session.expires <= time.time():
        try:
            session = _read(server, *key)
        except SealError as error:
            logger.info("a session is refused: %s", error)
            raise _no_session() from error
        if len(server.sessions) >= _REMEMBERED:
            server.sessions.clear()
        server.sessions[key] = session
    # Without a context manager, which would take as long as all the rest.
    try:
        ended = await server.backend.get(_ENDED + session.id)
    except Exception as error:
        raise _no_backend(error) from error
    if ended is not None:
        raise _no_session()
    return session


def _no_session() -> HTTPError:
    return HTTPError(404, INVALID_REQUEST, "Session not found")


@contextmanager
def asking_backend() -> Iterator[None]:
    """Answer for a backend that fails.

    Raises:
        HTTPError: 500, it did.
    """
    try:
        yield
    except Exception as error:
        raise _no_backend(error) from error


def _no_backend(error: Exception) -> HTTPError:
    logger.error("the backend failed", exc_info=error)
    return HTTPError(500, INTERNAL_ERROR, "Internal error")


def _read(server: Server, token: str, principal: str | None) -> Session:
    binding = [server.name, principal]
    payload, issued = server.open("session", binding, token, max_age=SESSION_SECONDS)
    expires = issued + SESSION_SECONDS
    return Session(payload["i"], payload["v"], payload["c"], expires)


async def end_session(server: Server, session: Session) -> None:
    """End a session: its token is refused, and its streams end, in all workers.

    Raises:
        HTTPError: 500, the backend failed.
    """
    with asking_backend():
        left = session.expires - time.time()
        await server.backend.put(_ENDED + session.id, "", left)
        server.bus.tell("ended", session.id)
