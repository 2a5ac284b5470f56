"""One message in, one reply out: the pipeline around a method.

    shape of the message → era → the era's checks → method → capability →
    the method itself → the era's shape → bytes

It is what the endpoint uses, and what a transport of one's own uses in its
place: `dispatch` for the bytes and the HTTP status, `handle_request` for a map.
"""

import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Final, TypeAlias

from mcpkit import observing
from mcpkit.cleanup import Cleanup
from mcpkit.components import abandon
from mcpkit.context import Channel, Context, Session
from mcpkit.errors import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    SERVER_ERROR,
    UNSET,
    HTTPError,
    ProtocolError,
    RequestCancelledError,
    ScopeError,
)
from mcpkit.logs import LogHandler, followed
from mcpkit.methods.common import (
    check_extension,
    check_result_type,
    invalid_params,
    read_cursor,
    read_view,
)
from mcpkit.methods.lifecycle import asking_backend, find_session, seal_session
from mcpkit.methods.routing import SERVED_BY
from mcpkit.protocol import headers as routing, jsonrpc, legacy, modern
from mcpkit.protocol.era import (
    check_modern,
    check_modern_notification,
    era_of,
    era_of_header,
    legacy_revision,
)
from mcpkit.protocol.jsonrpc import Encoded, RequestId, is_object
from mcpkit.protocol.methods import METHODS, Method
from mcpkit.protocol.results import Result
from mcpkit.protocol.versions import Era
from mcpkit.registry import MAX_ANSWERS
from mcpkit.running import Caller, caller_of
from mcpkit.server import Server, logger, printable

MAX_BATCH: Final = 100
"""How many messages a batch of 2025-03-26 may have."""

_MAX_CANCEL_ID_BYTES: Final = 256

ReplyHeaders: TypeAlias = tuple[tuple[str, str], ...]


# Not frozen: one is made for each request, and freezing triples what that costs.
@dataclass(slots=True)
class Response:
    """A reply with a body.

    Attributes:
        status: The HTTP status.
        body: One JSON-RPC response, or an array of them, encoded.
        headers: Further HTTP headers.
        session: The legacy session that the message opened. A transport without
            headers passes it on with the messages that follow.
        cleanup: What dependencies leave to be done once the body is sent, for a
            transport that does it.
    """

    status: int
    body: bytes
    headers: ReplyHeaders = ()
    session: Session | None = None
    cleanup: Cleanup | None = None

    @property
    def message(self) -> Any:
        """The body, decoded. The bounds of what comes in are not asked of it."""
        return json.loads(self.body)


@dataclass(frozen=True, slots=True)
class Accepted:
    """A reply without a body, as notifications get: HTTP 202."""

    status: ClassVar[int] = 202
    body: ClassVar[bytes] = b""
    headers: ClassVar[ReplyHeaders] = ()
    cleanup: ClassVar[None] = None


Reply: TypeAlias = Response | Accepted
"""What a transport does with a message."""

Serve: TypeAlias = Callable[[Server, Context], Coroutine[Any, Any, Result | Encoded]]

_ACCEPTED: Final = Accepted()

_OPEN: Final = frozenset({"raw", "wire"})
"""The kinds of results that may have a `resultType` of an extension."""


async def handle_request(
    message: Any,
    app: Server,
    *,
    headers: routing.Headers | None = None,
    principal: Any = None,
    session: Session | None = None,
) -> dict[str, Any] | None:
    """Handle one decoded message, and return the response as a map.

    Args:
        message: A request, a notification or a response of the client.
        app: The app.
        headers: The HTTP headers as ASGI has them, where there are any.
        principal: Who sends it.
        session: The legacy session, where the transport knows it.

    Returns:
        The response to a request; the error of a malformed
        `notifications/cancelled`; `None` when there is nothing to say.
    """
    reply = await dispatch(
        message, app, headers=headers, principal=principal, session=session
    )
    return reply.message if isinstance(reply, Response) else None


async def dispatch(
    message: Any,
    app: Server,
    *,
    headers: routing.Headers | None = None,
    principal: Any = None,
    session: Session | None = None,
    scope: Mapping[str, Any] | None = None,
    channel: Channel | None = None,
    cleans_up: bool = False,
) -> Reply:
    """Handle one decoded message.

    Args:
        message: What `jsonrpc.decode` returned.
        app: The app.
        headers: The HTTP headers as ASGI has them; `None` under a transport
            that has none, and then nothing is asked of them.
        principal: Who sends it: a string, an object with an `id` and `scopes`,
            or `None`.
        session: The legacy session, where the transport knows it.
        scope: The ASGI scope of the HTTP request, where there is one.
        channel: How messages reach the client before the response; without one
            they are dropped, and nothing can be asked of a legacy client.
        cleans_up: The caller finishes `reply.cleanup` once it has sent the body.
            By default it is finished before this returns.
    """
    if isinstance(message, list):
        return await _dispatch_batch(message, app, headers, principal, session, scope)
    eras = app.options.eras
    try:
        kind = jsonrpc.kind_of(message)
    except ProtocolError as error:
        era = (
            era_of(message, headers, eras=eras)
            if is_object(message)
            else unread_era(headers, app)
        )
        return refuse(error, era, request_id=jsonrpc.readable_id(message))
    era = era_of(message, headers, eras=eras)
    # The id of a client's response is one of ours, and no request to answer.
    request_id: RequestId | None = message["id"] if kind == "request" else None
    try:
        if era == "legacy":
            session = await _check_session(message, app, headers, principal, session)
            revision = legacy_revision(headers, _version_of(session))
        elif kind == "request":
            revision = check_modern(message, headers, eras=eras, methods=app.methods)
        else:
            revision = check_modern_notification(message, headers, eras=eras)
    except HTTPError as error:
        return refuse(error, era, request_id=request_id, status=error.status)
    except ProtocolError as error:
        return refuse(error, era, request_id=request_id)
    if kind == "request":
        context = Context(
            request_id=message["id"],
            method=message["method"],
            params=message.get("params", {}),
            revision=revision,
            host=app,
            principal=principal,
            headers=headers,
            session=session,
            scope=scope,
            channel=channel,
        )
        watched = app.telemetry.listeners or app.options.access_log
        answer = _observed if watched or LogHandler.in_use else _answer
        return await answer(app, context, cleans_up=cleans_up)
    return _received(app, message, kind, era, session, principal, scope)


def _version_of(session: Session | None) -> str | None:
    return None if session is None else session.version


async def _check_session(
    message: Mapping[str, Any],
    app: Server,
    headers: routing.Headers | None,
    principal: Any,
    session: Session | None,
) -> Session | None:
    if session is not None or message.get("method") == "initialize":
        return session
    token = headers.get(routing.SESSION) if headers else None
    if token is None:
        if app.options.require_session:
            fault = "Mcp-Session-Id is missing: send initialize first"
            raise HTTPError(400, INVALID_REQUEST, fault)
        return None
    return await find_session(app, token.decode("latin-1"), principal)


def _received(
    app: Server,
    message: Mapping[str, Any],
    kind: str,
    era: Era,
    session: Session | None,
    principal: Any,
    scope: Mapping[str, Any] | None,
) -> Reply:
    """Take what is no request: a notification, or a response of the client."""
    if era == "modern":
        return _ACCEPTED
    try:
        with asking_backend():
            if kind == "response":
                if session is not None:
                    app.questions.answer(session.id, message)
            elif message["method"] == "notifications/cancelled":
                return _cancelled(app, message, caller_of(session, principal, scope))
            elif message["method"] not in METHODS:
                logger.debug("unknown notification %r", message["method"])
    except HTTPError as error:
        return refuse(error, era, status=error.status)
    return _ACCEPTED


def _cancelled(app: Server, message: Mapping[str, Any], sender: Caller) -> Reply:
    params = message.get("params", {})
    if not is_object(params):
        return _malformed("params must be an object")
    request_id = params.get("requestId")
    if request_id is None:
        return _ACCEPTED
    if not jsonrpc.is_request_id(request_id) or (
        isinstance(request_id, str)
        and len(request_id.encode("utf-8", "replace")) > _MAX_CANCEL_ID_BYTES
    ):
        return _malformed(
            "requestId must be an integer, or a string of at most "
            f"{_MAX_CANCEL_ID_BYTES} bytes"
        )
    reason = params.get("reason")
    if isinstance(reason, str):
        logger.debug("%r is cancelled: %s", request_id, printable(reason[:200]))
    if not app.running.cancel(sender, request_id):
        error = ProtocolError(SERVER_ERROR, "Too many cancelled requests still run")
        return refuse(error, "legacy", status=200)
    return _ACCEPTED


def _malformed(fault: str) -> Response:
    error = ProtocolError(INVALID_PARAMS, f"Invalid params: {fault}")
    return refuse(error, "legacy", status=200)


async def _observed(app: Server, context: Context, *, cleans_up: bool) -> Reply:
    """Answer a request, and tell of it, whatever comes of it."""
    began = time.perf_counter()
    try:
        if not LogHandler.in_use:
            return await _answer(app, context, cleans_up=cleans_up)
        answer = partial(_answer, app, context, cleans_up=cleans_up)
        return await followed(app, context, answer)
    finally:
        seconds = time.perf_counter() - began
        if app.options.access_log:
            observing.write(context, seconds)
        if app.telemetry.listeners:
            observing.tell(app, context, seconds)


async def _answer(app: Server, context: Context, *, cleans_up: bool) -> Reply:
    """Run the method of a request that is well formed in its era."""
    try:
        serve: Serve = _through
        if not app.middlewares:
            method = _admit(app, context)
            serve = SERVED_BY.get(context.method, _extended)
            if method.listing:
                kept = _kept(app, context, method)
                if kept is not None:
                    context.outcome = kept
                    encoded = jsonrpc.encode_response(context.request_id, kept)
                    return Response(200, encoded)
                serve = _listed
        work = serve(app, context)
        try:
            waits_for = work.send(None)
        except StopIteration as done:
            result: Result | Encoded = done.value
        else:
            # Only what waits for something can be cancelled, or takes long.
            result = await app.running.finish(context, work, waits_for)
        body = _encode(app, context, result)
        context.outcome = result
    except Exception as error:  # noqa: BLE001  # one request never ends another
        await abandon(context, error)
        return _stopped_with(error, context)
    if context.cleanup is None and context.opened is None:
        return Response(200, body)
    return await _replied(app, context, body, cleans_up=cleans_up)


async def _replied(
    app: Server, context: Context, body: bytes, *, cleans_up: bool
) -> Reply:
    """Return a reply after which something is to be done, or to be known."""
    if context.cleanup is not None:
        return await _ending(body, context.cleanup, cleans_up=cleans_up)
    assert context.opened is not None  # noqa: S101  # or there is nothing to do
    return _opening(body, app, context, context.opened)


async def _through(app: Server, context: Context) -> Result:
    """Run a method with the middleware around it, the first outermost."""
    if not is_object(context.params):
        # It is told what is wrong, and nobody else has to look out for it.
        _admit(app, context)
    if context.method == "initialize":
        # The id of the session is in a header, which a stream would be sent before.
        context.channel = None
    call: Callable[[], Awaitable[Result]] = partial(_served, app, context)
    for middleware in reversed(app.middlewares):
        call = partial(middleware, context, call)
    try:
        result = await call()
    except (Exception, asyncio.CancelledError, GeneratorExit):
        raise
    # An exit ends its request alone, and only a handler is run again with answers.
    except BaseException as error:
        fault = f"middleware can't exit or ask its client: {type(error).__name__}"
        raise RuntimeError(fault) from error
    if not isinstance(result, Result):
        raise TypeError(f"middleware returns a Result, not {type(result).__name__}")
    return result


async def _served(app: Server, context: Context) -> Result:
    """Run a method for the middleware around it, which may do so again."""
    await _end_cleanup(context)
    method = _admit(app, context)
    if method.listing:
        _view(app, context, method)
    began = time.perf_counter()
    try:
        return await SERVED_BY.get(context.method, _extended)(app, context)
    finally:
        context.took = time.perf_counter() - began


async def _extended(app: Server, context: Context) -> Result:
    """Run the method of an extension."""
    try:
        result = await app.served[context.method](context)
    # An exit ends its request alone.
    except (SystemExit, KeyboardInterrupt) as error:
        raise RuntimeError(f"it wanted to exit: {error!r}") from error
    if isinstance(result, Result) and result.kind not in ("input_required", "task"):
        return result
    if not isinstance(result, Mapping):
        what = getattr(result, "kind", type(result).__name__)
        raise TypeError(f"it returned {what!r}, which is no result of such a method")
    return Result.wire(result)


async def _end_cleanup(context: Context) -> None:
    """End what an earlier run of a method left open for its answer."""
    cleanup, context.cleanup = context.cleanup, None
    if cleanup is not None:
        await cleanup.finish()


def _stopped_with(error: Exception, context: Context) -> Reply:
    """Return the reply to a request whose method did not come to a result."""
    if isinstance(error, RequestCancelledError):
        logger.info("%s was cancelled", context.method)
        return _ACCEPTED
    if not isinstance(error, ProtocolError):
        # A fault of ours, or a result that has no JSON form.
        logger.error("%s failed", context.method, exc_info=error)
        error = ProtocolError(INTERNAL_ERROR, "Internal error")
    context.outcome = error
    return _failed(error, context.revision.era, context.request_id)


async def _ending(body: bytes, cleanup: Cleanup, *, cleans_up: bool) -> Response:
    if cleans_up:
        return Response(200, body, cleanup.headers, cleanup=cleanup)
    await cleanup.finish()
    return Response(200, body, cleanup.headers)


def _opening(body: bytes, app: Server, context: Context, session: Session) -> Response:
    if context.headers is None:
        return Response(200, body, session=session)
    token = seal_session(app, session, context.principal)
    return Response(200, body, (("mcp-session-id", token),), session)


def _admit(app: Server, context: Context) -> Method:
    """Return the method of a request, if it exists and has params.

    Raises:
        ProtocolError: -32601, there is no such method; -32602, no such params.
    """
    method = app.methods.get(context.method)
    if (
        method is None
        or context.revision.era not in method.eras
        or method.notification
        or not (method.capability is None or app.has(method.capability))
    ):
        raise ProtocolError(METHOD_NOT_FOUND, "Method not found")
    if method.extension is not None and context.revision.era in method.negotiated:
        check_extension(context, method.extension)
    if not is_object(context.params):
        raise invalid_params("Invalid params: params must be an object")
    return method


def _view(app: Server, context: Context, method: Method) -> None:
    """Work out which part of a list a client is to have."""
    # What has no pages must not be kept once for each cursor that it is sent.
    if method.capability is not None:
        context.after = read_cursor(app, context)
    if app.registry.guards:
        context.view = read_view(app, context)


def _kept(app: Server, context: Context, method: Method) -> Encoded | None:
    """Return an answer that follows from the registry alone, if it was encoded."""
    _view(app, context, method)
    answers = app.registry.answers
    key = (context.revision.version, method.name, context.after, context.view)
    encoded = answers.get(key)
    if encoded is not None and app.registry.guards:
        # As many views as there are callers: those asked for last are kept.
        answers.pop(key, None)
        answers[key] = encoded
    return encoded


async def _listed(app: Server, context: Context) -> Encoded:
    """Encode an answer that follows from the registry alone, and keep it."""
    registry = app.registry
    # Emptied by a change that is made while the answer is worked out.
    answers = registry.answers
    result = await SERVED_BY[context.method](app, context)
    encoded = jsonrpc.encode_result(_shape(app, context, result))
    key = (context.revision.version, context.method, context.after, context.view)
    answers[key] = encoded
    if registry.guards and len(answers) > MAX_ANSWERS:
        answers.pop(next(iter(answers)), None)
    return encoded


def _encode(app: Server, context: Context, result: Result | Encoded) -> bytes:
    if isinstance(result, Encoded):
        return jsonrpc.encode_response(context.request_id, result)
    revision = context.revision
    if result.kind == "structured" and revision.definitions and not result.metadata:
        value = result.value
        if isinstance(value, Encoded):
            return _fill(app, context, value, object_schema=result.object_schema)
    return jsonrpc.encode_response(context.request_id, _shape(app, context, result))


def _fill(
    app: Server, context: Context, value: Encoded, *, object_schema: bool | None
) -> bytes:
    """Encode the result of a tool that is but its value, in a template."""
    version = context.revision.version
    template = app.templates.get(version)
    if template is None:
        template = app.templates[version] = jsonrpc.ResponseTemplate(
            lambda mark: _shape(
                app, context, Result(kind="structured", value=mark, object_schema=True)
            )
        )
    content = value
    if context.revision.era == "legacy":
        content = legacy.as_object(value, object_schema=object_schema)
    return template.fill(context.request_id, value, content)


def _shape(app: Server, context: Context, result: Result) -> dict[str, Any]:
    if result.kind in _OPEN:
        check_result_type(app, context, result)
    if context.revision.era == "legacy":
        return legacy.shape(result, revision=context.revision)
    options = app.options
    return modern.shape(
        context.method,
        result,
        server_info=app.info,
        cache=options.caches.get(context.method, options.cache),
        retry=context.is_retry and app.methods[context.method].may_ask,
    )


def _failed(error: ProtocolError, era: Era, request_id: RequestId) -> Response:
    """Return the response to a request that failed while its method ran."""
    if era == "modern":
        sent = modern.sendable(error)
        if sent.code != error.code and sent.code == INTERNAL_ERROR:
            logger.error("the error code %d may not be sent", error.code)
        status = modern.http_status(sent.code)
    else:
        sent, status = error, 200
    body = _encode_error(sent, request_id)
    if isinstance(error, ScopeError):
        scopes = " ".join(error.scopes)
        challenge = f'Bearer error="insufficient_scope", scope="{scopes}"'
        return Response(403, body, (("www-authenticate", challenge),))
    if isinstance(error, HTTPError):
        return Response(error.status, body, tuple(error.headers.items()))
    return Response(status, body)


def refuse(
    error: ProtocolError,
    era: Era,
    *,
    request_id: RequestId | None = None,
    status: int = 400,
    headers: ReplyHeaders = (),
) -> Response:
    """Return the response to what is refused before a method runs.

    A message without a readable id is answered without one in the modern era,
    and with null in the legacy one.
    """
    unidentified = request_id is None and era == "modern"
    body = _encode_error(error, UNSET if unidentified else request_id)
    return Response(status, body, headers)


def _encode_error(error: ProtocolError, request_id: Any) -> bytes:
    try:
        return jsonrpc.encode(jsonrpc.error_response(error, request_id=request_id))
    except (ValueError, RecursionError) as fault:
        logger.error("the data of an error has no JSON form", exc_info=fault)
        bare = ProtocolError(error.code, error.message)
        return jsonrpc.encode(jsonrpc.error_response(bare, request_id=request_id))


def unread_era(headers: routing.Headers | None, app: Server) -> Era:
    """Tell the era of what could not be read: legacy only if a header says so."""
    if "legacy" not in app.options.eras or not headers:
        return "modern"
    if routing.VERSION not in headers and routing.SESSION not in headers:
        return "modern"
    return era_of_header(headers)


async def _dispatch_batch(
    messages: list[Any],
    app: Server,
    headers: routing.Headers | None,
    principal: Any,
    session: Session | None,
    scope: Mapping[str, Any] | None,
) -> Reply:
    """Answer a batch, in a revision that has them, and refuse it in the others."""
    if "legacy" not in app.options.eras or era_of_header(headers or {}) == "modern":
        error = ProtocolError(INVALID_REQUEST, "Batch requests are not supported")
        return refuse(error, "modern")
    try:
        session = await _check_session({}, app, headers, principal, session)
    except HTTPError as error:
        return refuse(error, "legacy", status=error.status)
    revision = legacy_revision(headers, _version_of(session))
    if not revision.batches:
        return Response(400, jsonrpc.encode(jsonrpc.batch_error(revision.version)))
    if not 0 < len(messages) <= MAX_BATCH:
        fault = f"A batch has 1 to {MAX_BATCH} messages"
        return refuse(ProtocolError(INVALID_REQUEST, fault), "legacy")
    bodies = []
    for message in messages:
        if _is_single(message, app):
            reply: Reply = refuse(
                ProtocolError(INVALID_REQUEST, "Not possible in a batch"),
                "legacy",
                request_id=jsonrpc.readable_id(message),
            )
        else:
            # A task of its own: what one message sets in its context is not seen
            # by the next, and others are served in between.
            reply = await asyncio.create_task(
                dispatch(
                    message,
                    app,
                    headers=headers,
                    principal=principal,
                    session=session,
                    scope=scope,
                )
            )
        if isinstance(reply, Response):
            bodies.append(reply.body)
    return Response(200, b"[%b]" % b",".join(bodies)) if bodies else _ACCEPTED


def _is_single(message: Any, app: Server) -> bool:
    """Whether a message of a batch can only be sent alone."""
    return not is_object(message) or (
        message.get("method") == "initialize"
        or era_of(message, eras=app.options.eras) == "modern"
    )
