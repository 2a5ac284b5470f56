"""What several methods share: who may have what, pages, faults, rounds of questions."""

from collections.abc import Awaitable, Callable, Coroutine, Iterator, Mapping
from types import MappingProxyType
from typing import Any, Final, TypeVar

from mcpkit.asking import request_of
from mcpkit.components import Component, HandlerError, abandon, leave
from mcpkit.context import Context, Input
from mcpkit.errors import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    InputRequiredError,
    ProtocolError,
    ScopeError,
)
from mcpkit.faults import find_non_finite
from mcpkit.protocol.capabilities import (
    check_capabilities,
    missing_capabilities_error,
)
from mcpkit.protocol.inputs import MAX_QUESTIONS, Journal, required_capabilities
from mcpkit.protocol.jsonrpc import encode, is_object
from mcpkit.protocol.results import Kind, Result
from mcpkit.protocol.sealing import MAX_TOKEN_BYTES, SealError
from mcpkit.questions import Question
from mcpkit.registry import ListKind, View, suggestions
from mcpkit.server import Server, logger, printable
from mcpkit.visibility import Rule

C = TypeVar("C", bound=Component)

_LISTS: Final[Mapping[str, ListKind]] = MappingProxyType(
    {
        "tools/list": "tools",
        "resources/list": "resources",
        "resources/templates/list": "resources",
        "prompts/list": "prompts",
    }
)

_MAX_NAME: Final = 200


def invalid_params(message: str, **data: Any) -> ProtocolError:
    """Return the error for params that are wrong."""
    if data:
        return ProtocolError(INVALID_PARAMS, message, data)
    return ProtocolError(INVALID_PARAMS, message)


def internal_error() -> ProtocolError:
    """Return the error that tells a client nothing."""
    return ProtocolError(INTERNAL_ERROR, "Internal error")


def string_param(params: Mapping[str, Any], key: str) -> str:
    """Return a param that must be a string.

    Raises:
        ProtocolError: -32602, it is missing or not a string.
    """
    value = params.get(key)
    if not isinstance(value, str):
        raise invalid_params(f"Invalid params: {key} must be a string")
    return value


def object_param(params: Mapping[str, Any], key: str) -> dict[str, Any]:
    """Return a param that is an object, or empty when it is missing or null.

    Raises:
        ProtocolError: -32602, it is something else.
    """
    value = params.get(key)
    if value is None:
        return {}
    if not is_object(value):
        raise invalid_params(f"Invalid params: {key} must be an object")
    return value


def shortened(name: str) -> str:
    """Return a name that a client sent, at a length that fits a message."""
    return name if len(name) <= _MAX_NAME else f"{name[:_MAX_NAME]}…"


def is_visible(server: Server, context: Context, component: Component) -> bool:
    """Whether the caller sees a component; not, when that can't be told."""
    rule = component.visible
    return rule is None or _admits(server, context, rule)


def read_view(server: Server, context: Context) -> View | None:
    """Return which rules admit the caller, of those that the list at hand has.

    Returns:
        The rules; `None` when all callers see the same.
    """
    kind = _LISTS.get(context.method)
    if kind is None or not server.registry.rules(kind):
        return None
    return view_of(server, context, kind)


def view_of(server: Server, context: Context, kind: ListKind) -> View:
    """Return which rules of a list admit the caller; not those that can't be asked."""
    rules = server.registry.rules(kind)
    return frozenset(rule for rule in rules if _admits(server, context, rule))


def _admits(server: Server, context: Context, rule: Rule) -> bool:
    try:
        return rule.admits(context)
    # What is not known to be seen is not, and an exit ends no server.
    except BaseException as error:  # noqa: BLE001
        message = f"visible={printable(rule)} failed, and hides what it is given to"
        server.fault(context, message, error)
        return False


def _seen(
    server: Server, context: Context, components: Mapping[str, Component]
) -> Iterator[str]:
    """Yield the names that the caller sees."""
    admitted: dict[Rule | None, bool] = {None: True}
    for name, component in list(components.items()):
        rule = component.visible
        if rule is not None and rule not in admitted:
            admitted[rule] = _admits(server, context, rule)
        if admitted[rule]:
            yield name


def unknown(
    server: Server,
    context: Context,
    what: str,
    name: str,
    components: Mapping[str, Component],
) -> ProtocolError:
    """Return the error for a name that nothing has, with those it may stand for.

    What the caller does not see is answered with it too, and does not show in it.

    Args:
        server: The app.
        context: The request.
        what: What was asked for: "tool", "prompt".
        name: The name that the client sent.
        components: What there is, by name.
    """
    similar = suggestions(name, _seen(server, context, components))
    data = {"suggestions": similar} if similar else {}
    return invalid_params(f"Unknown {what}: {shortened(name)}", **data)


def warn_of_null(what: str, value: Any) -> None:
    """Log that NaN or an infinity became null, where the value holds one."""
    path = find_non_finite(value)
    if path is not None:
        path = printable(path or "it")
        logger.warning("%s: NaN or an infinity became null: %s", what, path)


def check_kind(result: Result, *kinds: Kind) -> Result:
    """Return a result that a handler built, when it answers the method at hand.

    Args:
        result: The result.
        kinds: The kinds that it may have; those that a handler ought to build
            come first.

    Raises:
        TypeError: It was built for another method.
    """
    if result.kind not in kinds:
        raise TypeError(f"a {result.kind} result is no answer; {kinds[0]} is")
    return result


def check_scopes(component: Component, context: Context) -> None:
    """Refuse a caller who lacks a scope that the component needs.

    Raises:
        ScopeError: A scope is missing.
    """
    if component.scopes and not component.scopes <= context.scopes:
        raise ScopeError(component.scopes)


def check_extension(context: Context, identifier: str) -> None:
    """Refuse a client that did not declare an extension.

    Raises:
        ProtocolError: -32021, with the extension in its data.
    """
    if context.extension(identifier) is None:
        raise missing_capabilities_error({"extensions": {identifier: {}}})


def check_result_type(server: Server, context: Context, result: Result) -> None:
    """Refuse a result of a type that the client can't know.

    Spec 2026-07-28, basic/index: ResultType.

    Raises:
        ProtocolError: -32021, the client did not declare the extension that has the
            type; -32603, none has.
    """
    kind = result.value.get("resultType") if is_object(result.value) else None
    if kind is None or kind == "complete":
        return
    owner = next(
        (
            extension.identifier
            for extension in server.extensions.values()
            if kind in extension.result_types
        ),
        None,
    )
    # A handle has a builder, which sees to it that the task is there.
    if owner is None or kind == "task" or context.era == "legacy":
        logger.error(
            "%s: no result of the type %s can be sent: result_types of an Extension "
            "names those of 2026-07-28",
            context.method,
            printable(kind),
        )
        raise internal_error()
    check_extension(context, owner)


def check_client(component: Component, context: Context) -> None:
    """Refuse a client that can't answer what the component can't do without.

    Raises:
        ProtocolError: -32021, it lacks a capability.
    """
    if component.needs:
        check_capabilities(component.needs, context.client_capabilities)


def read_cursor(server: Server, context: Context) -> str | None:
    """Return the key that a cursor holds: of the last definition the client has.

    Raises:
        ProtocolError: -32602, it is no cursor of this list.
    """
    cursor = context.params.get("cursor")
    if cursor is None:
        return None
    try:
        key, _ = server.open("cursor", [server.name, context.method], cursor)
    except SealError as error:
        raise invalid_params("Invalid cursor") from error
    return str(key)


def paginate(
    server: Server, context: Context, components: Mapping[str, C]
) -> tuple[list[C], str | None]:
    """Return a page of what the caller sees of a list, and the cursor of the next one.

    A cursor holds the key of the last definition that was sent. It stays valid
    when others come after it, and needs nothing that is stored.

    Args:
        server: The app.
        context: The request.
        components: The components of the list, by key.

    Raises:
        ProtocolError: -32602, the cursor is not one of this list.
    """
    view: View = context.view or frozenset()
    definitions = {
        key: component
        for key, component in list(components.items())
        if component.listed is None or component.listed in view
    }
    keys = list(definitions)
    start = 0
    if context.after is not None:
        if context.after not in definitions:
            raise invalid_params("Invalid cursor")
        start = keys.index(context.after) + 1
    size = server.options.page_size or len(keys)
    page = keys[start : start + size]
    following = None
    if start + size < len(keys):
        binding = [server.name, context.method]
        following = server.seal("cursor", binding, page[-1], dated=False)
    return [definitions[key] for key in page], following


async def read_answers(
    server: Server,
    context: Context,
    target: str,
    arguments: Mapping[str, Any],
    *,
    single_use: bool = False,
) -> None:
    """Check what a retry brings back, and open its request state into the context.

    Args:
        server: The app.
        context: The request.
        target: What is called: a name or a URI.
        arguments: The arguments of the call.
        single_use: The state is good for one retry.

    Raises:
        ProtocolError: -32602, the answers are no objects, or the state is not
            one that was given for this request.
    """
    params = context.params
    answers = params.get("inputResponses")
    if answers is not None and not (
        is_object(answers) and all(is_object(answer) for answer in answers.values())
    ):
        raise invalid_params(
            "Invalid params: inputResponses must be an object of objects"
        )
    state, responses = None, dict(answers or {})
    token = params.get("requestState")
    if token is not None:
        binding = _binding(server, context, target, arguments)
        try:
            kept = await server.open_state(binding, token, single_use=single_use)
            journal = Journal.load(kept[0])
        except (SealError, ValueError) as error:
            logger.info("%s: requestState is refused: %s", context.method, error)
            raise invalid_params("Invalid or expired requestState") from error
        state, responses = kept[1], {**kept[2], **responses}
        context.conversation = server.converse(context, journal)
        context.round = journal.round
    context.input = Input(responses, state)


async def settle(
    server: Server,
    context: Context,
    result: Result,
    target: str,
    arguments: Mapping[str, Any],
    again: Callable[[Server, Context], Awaitable[Result]],
) -> Result:
    """Make what asks the client something fit to be sent, or ask it here and now.

    Args:
        server: The app.
        context: The request.
        result: What the handler built, or was stopped with.
        target: What is called: a name or a URI.
        arguments: The arguments of the call.
        again: The method, for another round with a legacy client.

    Raises:
        ProtocolError: -32021, the client can't answer one of the questions;
            -32603, there is no way to ask them, or the result is a task.
    """
    if result.kind == "task":
        if server.task_host is None or context.method != "tools/call":
            raise internal_error()
        return await server.task_host.handle(context, result)
    requests = {
        key: request_of(asked, context.revision)
        if isinstance(asked, Question)
        else asked
        for key, asked in result.value.get("inputRequests", {}).items()
    }
    state = result.value.get("requestState")
    try:
        required = _required(requests, state)
    except ValueError as error:
        server.fault(context, f"the questions of {target!r} are malformed", error)
        raise internal_error() from error
    if context.era == "legacy" or context.task is not None:
        await _carry(server, context, requests, state, target)
        return await again(server, context)
    check_capabilities(required, context.client_capabilities)
    token = None
    if state is not None or context.conversation is not None:
        token = _sealed(server, context, state, target, arguments)
    return Result.input_required(requests or None, token)


def _required(requests: Mapping[str, Any], state: Any) -> dict[str, Any]:
    if not requests and state is None:
        raise ValueError("there is no question, and no state")
    if len(requests) > MAX_QUESTIONS:
        raise ValueError(f"a round has at most {MAX_QUESTIONS} questions")
    return required_capabilities(requests)


async def _carry(
    server: Server,
    context: Context,
    requests: Mapping[str, Any],
    state: Any,
    target: str,
) -> None:
    """Ask a legacy client, and put its answers where a retry would have them."""
    # What the function had is not held while a user thinks.
    cleanup, context.cleanup = context.cleanup, None
    if cleanup is not None:
        await cleanup.finish()
    journal = _journal(context)
    _advance(server, context, journal, target)
    # Another one, which counts the questions of the next round from the first.
    context.conversation = server.converse(context, journal)
    responses = await context.conversation.carry(requests)
    context.round = journal.round
    context.input = Input(responses, state)


def _sealed(
    server: Server,
    context: Context,
    state: Any,
    target: str,
    arguments: Mapping[str, Any],
) -> str:
    journal = _journal(context)
    if journal.changed:
        logger.warning(
            "the questions of %r are not those of the round before: they are asked "
            "again",
            target,
        )
    _advance(server, context, journal, target)
    binding = _binding(server, context, target, arguments)
    try:
        kept = [journal.dump(), state, _responses(context, journal)]
        return server.seal_state(binding, kept)
    except SealError as error:
        # What it sends is its own affair, until it does not fit what it gets back.
        if len(encode(context.input.responses)) > MAX_TOKEN_BYTES // 2:
            raise invalid_params(
                "Invalid params: inputResponses are too large"
            ) from error
        server.fault(context, f"{target!r} can't go on asking", error)
        raise internal_error() from error


def _responses(context: Context, journal: Journal) -> dict[str, Any]:
    """Return what a function that was stopped is given again when it is called again.

    One that builds its questions by itself may ask others with the context.
    """
    conversation = context.conversation
    if conversation is None or not conversation.asked:
        return {}
    responses = context.input.responses
    return {key: responses[key] for key in responses if key not in journal.asked}


def _journal(context: Context) -> Journal:
    conversation = context.conversation
    return Journal() if conversation is None else conversation.journal


def _advance(server: Server, context: Context, journal: Journal, target: str) -> None:
    try:
        journal.advance()
    except ValueError as error:
        server.fault(context, f"{target!r} can't go on asking", error)
        raise internal_error() from error


async def run(
    server: Server,
    context: Context,
    component: Component,
    keywords: dict[str, Any],
    what: str,
    make: Callable[[Any], Result | Coroutine[Any, Any, Result]],
) -> Result:
    """Call a resource, a prompt or a completion, whose failure tells a client nothing.

    Args:
        server: The app.
        context: The request.
        component: What is called.
        keywords: Its validated arguments.
        what: What it is, for the log: "prompt 'review'".
        make: Makes a result of what the function returned, or begins to.

    Raises:
        ProtocolError: As the function raised it; -32603 when it failed, or when
            what it returned is no result.
    """
    try:
        made = make(
            await component.call(
                keywords, context, server.threads, server.dependency_overrides
            )
        )
        result = made if isinstance(made, Result) else await made
        if context.cleanup is not None:
            await leave(context, context.cleanup)
    except ProtocolError:
        raise
    except InputRequiredError:
        return paused(context)
    except HandlerError as error:
        cause: BaseException = error.__cause__ or error
    # What it returned has no JSON form or is no result, or it raised a ToolError.
    except Exception as error:  # noqa: BLE001
        cause = error
        await abandon(context, error)
    else:
        return result
    server.fault(context, f"{what} failed", cause)
    raise internal_error() from cause


def paused(context: Context) -> Result:
    """Return the result of a handler that was stopped to ask its client something."""
    assert context.conversation is not None  # noqa: S101  # it has asked
    return Result.input_required(context.conversation.asked, context.input.state)


def _binding(
    server: Server, context: Context, target: str, arguments: Mapping[str, Any]
) -> list[Any]:
    return [server.name, context.method, target, arguments, context.principal_id]
