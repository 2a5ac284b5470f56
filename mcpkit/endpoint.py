"""The MCP endpoint over HTTP: bytes and headers in, one reply out.

The order of checks, each before what follows costs anything:

    Host, Origin (403) → method (405) → principal → Content-Type (415),
    Accept (406) → size, while reading (413) → JSON (400) → `dispatch`

Spec 2026-07-28, basic/transports/streamable-http; 2025-11-25, basic/transports.
"""

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeAlias

from starlette.exceptions import HTTPException
from starlette.requests import Request

from mcpkit.cleanup import Cleanup
from mcpkit.context import Context, Session, principal_id
from mcpkit.dispatch import Reply, Response, dispatch, refuse, unread_era
from mcpkit.errors import INTERNAL_ERROR, INVALID_REQUEST, HTTPError, ProtocolError
from mcpkit.exchange import (
    Exchange,
    Message,
    RawHeaders,
    Receive,
    Scope,
    Send,
    raw_headers,
)
from mcpkit.guard import Guard, form_fault
from mcpkit.lifespan import Lifespan
from mcpkit.listening import Listening
from mcpkit.methods.lifecycle import asking_backend, end_session, find_session
from mcpkit.methods.subscriptions import unfollow
from mcpkit.protocol import headers as routing, jsonrpc
from mcpkit.protocol.era import era_of_header, legacy_revision
from mcpkit.protocol.versions import Era
from mcpkit.server import Server, logger

Answer: TypeAlias = tuple[int, RawHeaders, bytes, Cleanup | None]
"""A status, headers, a body, and what is to be done once they are sent."""
Principal: TypeAlias = Callable[[Request], Any]

DEFAULT_MAX_BODY: Final = 4 * 1024 * 1024
"""How large a body may be, in bytes, unless `App(max_body=...)` says otherwise."""

_NO_STATE: Final[Mapping[str, Any]] = {}
_JSON: Final = (b"content-type", b"application/json")
_EMPTY: Final = (b"content-length", b"0")
_GONE: Final = 499

# What a page may read of a reply, and send with a request.
_EXPOSED: Final = b"mcp-session-id, www-authenticate"
_ALLOWED: Final = frozenset(
    {
        b"accept",
        b"authorization",
        b"content-type",
        b"last-event-id",
        routing.VERSION,
        routing.METHOD,
        routing.NAME,
        routing.SESSION,
    }
)
_PREFLIGHT_SECONDS: Final = b"600"


class Endpoint:
    """The ASGI application behind the path of an app.

    Args:
        server: The app.
        guard: Who may speak to it.
        principal: Tells who calls, from the HTTP request.
        lifespan: The app's lifespan, if it has one.
        max_body: How large a body may be, in bytes.
    """

    def __init__(
        self,
        server: Server,
        guard: Guard,
        *,
        principal: Principal | None,
        lifespan: Lifespan | None,
        max_body: int,
    ) -> None:
        self._server = server
        self._guard = guard
        self._principal = principal
        self._lifespan = lifespan
        self._replay = server.replay
        # The first request does, whatever the app is.
        self._prepares = True
        self._max_body = max_body
        self._max_digits = len(str(max_body))
        legacy = "legacy" in server.options.eras
        self._methods = ("GET", "POST", "DELETE") if legacy else ("POST",)
        self._listening = Listening(server)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one HTTP request."""
        answer = await self.answer(scope, receive, send)
        if answer is None:
            return
        status, headers, body, cleanup = answer
        try:
            await send(
                {"type": "http.response.start", "status": status, "headers": headers}
            )
            await send({"type": "http.response.body", "body": body})
        finally:
            if cleanup is not None:
                await cleanup.finish()

    async def answer(self, scope: Scope, receive: Receive, send: Send) -> Answer | None:
        """Return the answer to one HTTP request.

        Args:
            scope: What the request is.
            receive: Where its body comes from.
            send: Where an answer goes that is a stream.

        Returns:
            What is to be sent; `None` when nothing is: the client has gone, or
            has had a stream.
        """
        headers = routing.collect(scope["headers"])
        cors: RawHeaders = []
        try:
            cors = self._admit(headers)
            if scope["method"] != "POST":
                return await self._answer_other(scope, receive, send, headers, cors)
            principal = scope.get("state", _NO_STATE).get("principal")
            if self._prepares or principal is not None:
                principal = await self._prepare(scope)
            self._check_form(headers)
            event = await receive()
            body: bytes = event.get("body", b"")
            if event.get("more_body", False) or len(body) > self._max_body:
                event, body = await self._read_on(event, receive)
        except _Refused as refused:
            return _with_headers(refused.reply(), cors)
        if event["type"] == "http.disconnect":
            return _unheard(scope)
        try:
            message = jsonrpc.decode(body)
        except ProtocolError as error:
            reply: Reply = refuse(error, unread_era(headers, self._server))
            return _with_headers(reply, cors)
        exchange = Exchange(receive, send, headers, cors, self._replay)
        try:
            reply = await dispatch(
                message,
                self._server,
                headers=headers,
                principal=principal,
                scope=scope,
                channel=exchange,
                cleans_up=True,
            )
        finally:
            exchange.is_over = True
        if exchange.takes_json:
            return _with_headers(reply, cors)
        return None if await _end_stream(exchange, reply) else _unheard(scope)

    def _admit(self, headers: routing.Headers) -> RawHeaders:
        """Check Host and Origin, and return the headers for a page of the origin.

        Raises:
            _Refused: The host or the origin is not one that is admitted.
        """
        host, origin = headers.get(b"host"), headers.get(b"origin")
        if not self._guard.admits_host(host):
            raise _Refused(403, _setting("Host", host, "allowed_hosts"))
        if origin is None:
            return []
        if not self._guard.admits_origin(origin, host):
            raise _Refused(403, _setting("Origin", origin, "allowed_origins"))
        return [
            (b"access-control-allow-origin", origin),
            (b"access-control-expose-headers", _EXPOSED),
            (b"vary", b"Origin"),
        ]

    def _check_form(self, headers: routing.Headers) -> None:
        """Check the types of the body and of the answer, and the size announced.

        Raises:
            _Refused: One of them can't be served.
        """
        fault = form_fault(
            headers.get(b"content-type"),
            headers.get(b"content-encoding"),
            headers.get(b"accept"),
        )
        if fault is not None:
            raise _Refused(*fault)
        length = headers.get(b"content-length", b"0")
        # A shorter number is below the limit, and a longer one need not be read.
        if (
            len(length) >= self._max_digits
            and length.isdigit()
            and int(length[: self._max_digits + 1]) > self._max_body
        ):
            raise self._too_large()

    async def _read_on(self, event: Message, receive: Receive) -> tuple[Message, bytes]:
        """Read the rest of a body, and return the last event and the body.

        Raises:
            _Refused: The body is larger than it may be.
        """
        body = bytearray(event.get("body", b""))
        while event.get("more_body", False) and len(body) <= self._max_body:
            event = await receive()
            body += event.get("body", b"")
        if len(body) > self._max_body:
            raise self._too_large()
        return event, bytes(body)

    def _too_large(self) -> "_Refused":
        # The rest of the body is not read, so that the connection must end.
        fault = f"The body is larger than {self._max_body} bytes"
        return _Refused(413, fault, {"connection": "close"})

    async def _answer_other(
        self,
        scope: Scope,
        receive: Receive,
        send: Send,
        headers: routing.Headers,
        cors: RawHeaders,
    ) -> Answer | None:
        method = scope["method"]
        if method == "OPTIONS" and cors:
            return _preflight(headers, self._methods, cors)
        if method not in self._methods:
            fault = f"{method} is not allowed here"
            raise _Refused(405, fault, {"allow": ", ".join(self._methods)})
        principal = await self._prepare(scope)
        try:
            session = await self._session(headers, principal)
            if method == "DELETE":
                await self._end(session)
                return _with_headers(Response(200, b""), cors)
            exchange = Exchange(receive, send, headers, cors, self._replay)
            await self._listen(scope, exchange, headers, principal, session)
        except HTTPError as error:
            raise _Refused(error.status, error.message, era="legacy") from error
        return None

    async def _end(self, session: Session) -> None:
        await end_session(self._server, session)
        with asking_backend():
            await unfollow(self._server, session)
        # A worker in which nobody ever waited is not told.
        self._server.replay.end(session.id)

    async def _listen(
        self,
        scope: Scope,
        exchange: Exchange,
        headers: routing.Headers,
        principal: Any,
        session: Session,
    ) -> None:
        if not exchange.admits_stream:
            raise HTTPError(406, INVALID_REQUEST, "Accept must admit text/event-stream")
        context = Context(
            request_id="",
            method="GET",
            params={},
            revision=legacy_revision(headers, session.version),
            host=self._server,
            principal=principal,
            headers=headers,
            session=session,
            scope=scope,
        )
        after = routing.text(headers.get(b"last-event-id"))
        await self._listening.serve(context, session, exchange, after)

    async def _prepare(self, scope: Scope) -> Any:
        """Enter the lifespan where it was not, and return who calls.

        Raises:
            _Refused: The host's callable says no, or something failed.
        """
        try:
            if self._lifespan is not None:
                await self._lifespan.ensure()
            if self._server.task_host is not None:
                self._server.task_host.keep_going()
            self._prepares = self._principal is not None or self._lifespan is not None
            if self._principal is None:
                principal = scope.get("state", _NO_STATE).get("principal")
            else:
                principal = self._principal(Request(scope))
                if inspect.isawaitable(principal):
                    principal = await principal
            principal_id(principal)
        except HTTPException as error:
            raise _Refused(
                error.status_code, str(error.detail), error.headers
            ) from error
        # A caller who can't be told is nobody's caller: the request is not served.
        except Exception as error:
            logger.error("a request could not be prepared", exc_info=error)
            raise _Refused(500, "Internal error") from error
        return principal

    async def _session(self, headers: routing.Headers, principal: Any) -> Session:
        """Return the session that a request is of.

        Raises:
            HTTPError: There is none, or it is unknown; or so is the version.
        """
        token = headers.get(routing.SESSION)
        if token is None:
            raise HTTPError(400, INVALID_REQUEST, "Mcp-Session-Id is missing")
        session = await find_session(self._server, token.decode("latin-1"), principal)
        if era_of_header(headers) == "modern":
            raise HTTPError(400, INVALID_REQUEST, "Unsupported MCP-Protocol-Version")
        return session


class _Refused(Exception):  # noqa: N818  # an outcome, which carries its reply
    """A request is not served."""

    def __init__(
        self,
        status: int,
        message: str,
        headers: Mapping[str, str] | None = None,
        *,
        era: Era = "modern",
    ) -> None:
        super().__init__(message)
        self.status = status
        self.headers = headers or {}
        self.era = era

    def reply(self) -> Response:
        code = INTERNAL_ERROR if self.status >= 500 else INVALID_REQUEST
        error = ProtocolError(code, str(self))
        headers = tuple(self.headers.items())
        return refuse(error, self.era, status=self.status, headers=headers)


def _setting(header: str, value: bytes | None, setting: str) -> str:
    shown = "" if value is None else value[:100].decode("ascii", "replace")
    return (
        f"{header} {shown!r} is not allowed. To admit it, name it in "
        f"App({setting}=[...])"
    )


async def _end_stream(exchange: Exchange, reply: Reply) -> bool:
    """End the stream with its response, and return whether there was one."""
    try:
        return await exchange.finish(reply.body)
    finally:
        if reply.cleanup is not None:
            await reply.cleanup.finish()


def _unheard(scope: Scope) -> Answer | None:
    """Return the answer to a client that has gone before it had any.

    A server needs none. Around an app that is part of another there may be
    middlewares, which fail without one.
    """
    return (_GONE, [_EMPTY], b"", None) if "app" in scope else None


def _with_headers(reply: Reply, cors: RawHeaders) -> Answer:
    body = reply.body
    headers = [_JSON, (b"content-length", b"%d" % len(body))] if body else [_EMPTY]
    if cors:
        headers += cors
    if reply.headers:
        headers += raw_headers(reply.headers)
    return reply.status, headers, body, reply.cleanup


def _preflight(
    headers: routing.Headers, methods: Sequence[str], cors: RawHeaders
) -> Answer:
    """Answer a browser that asks what a page may send."""
    asked = headers.get(b"access-control-request-headers", b"")
    names = [name.strip().lower() for name in asked.split(b",")]
    allowed = [
        name
        for name in names
        if name in _ALLOWED or name.startswith(routing.PARAM_PREFIX)
    ]
    sent = [
        *cors,
        (b"access-control-allow-methods", ", ".join(methods).encode()),
        (b"access-control-allow-headers", b", ".join(allowed)),
        (b"access-control-max-age", _PREFLIGHT_SECONDS),
        _EMPTY,
    ]
    return 204, sent, b"", None
