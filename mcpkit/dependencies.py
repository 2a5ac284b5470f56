"""The parameters that FastAPI fills in, worked out for one request.

How that is done is FastAPI's own business: here it is given the HTTP request,
and a place for what `yield` keeps open, and what it raises is put into the words
of the protocol.

The module is loaded, and FastAPI with it, for the first function that needs it.
"""

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Final, TypeAlias

from fastapi import Request
from fastapi.dependencies.models import Dependant
from fastapi.dependencies.utils import get_dependant, solve_dependencies
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException

from mcpkit.cleanup import Cleanup
from mcpkit.context import Context
from mcpkit.errors import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    INVALID_REQUEST,
    UNSET,
    HTTPError,
    ProtocolError,
    SetupError,
)

Overrides: TypeAlias = Mapping[Callable[..., Any], Callable[..., Any]]
"""Which functions are called in place of which."""

# Without HTTP nothing looks at it, as `_check_transport` makes sure.
_NO_REQUEST: Final[Mapping[str, Any]] = {
    "type": "http",
    "headers": [],
    "query_string": b"",
    "path_params": {},
}


class Dependencies:
    """The parameters of one function that FastAPI fills in.

    Args:
        dependant: FastAPI's own account of them.
        what: Whose they are, for messages: "tool 'search'".
    """

    __slots__ = ("_dependant", "_what")

    def __init__(self, dependant: Dependant, what: str) -> None:
        self._dependant = dependant
        self._what = what

    async def solve(self, context: Context, overrides: Overrides) -> dict[str, Any]:
        """Return the parameters, by name.

        What is to be done later is left at `context.cleanup`, also when this fails.

        Args:
            context: The request.
            overrides: Which functions are called in place of others. Those of a
                FastAPI app that serves the request come second.

        Raises:
            ProtocolError: One of them needs the HTTP request, and there is none.
            BaseException: Whatever a dependency raised.
        """
        cleanup = context.cleanup = Cleanup(self._what, _translate)
        if context.scope is None:
            self._check_transport(overrides)
            request = Request(dict(_NO_REQUEST))
        else:
            request = context.request
            host = getattr(request.scope.get("app"), "dependency_overrides", None)
            overrides = {**host, **overrides} if host else overrides
        # FastAPI, since 0.118, looks for these in the scope, which is a copy.
        request.scope["fastapi_inner_astack"] = cleanup.for_request
        request.scope["fastapi_function_astack"] = cleanup.for_function
        solved = await solve_dependencies(
            request=request,
            dependant=self._dependant,
            dependency_overrides_provider=_Provider(overrides) if overrides else None,
            async_exit_stack=cleanup.for_request,
            embed_body_fields=False,
        )
        if solved.errors:
            raise RequestValidationError(solved.errors)
        cleanup.begin(solved.background_tasks, solved.response)
        return solved.values

    def _check_transport(self, overrides: Overrides) -> None:
        if any(map(_takes_request, _tree(self._dependant, overrides))):
            raise ProtocolError(
                INTERNAL_ERROR,
                f"{self._what} needs the HTTP request, and this message did not come "
                "over HTTP",
            )


def read_dependencies(
    parameters: Iterable[inspect.Parameter], what: str
) -> Dependencies:
    """Work out how the parameters that FastAPI fills in are filled in.

    Args:
        parameters: The parameters, with their annotations resolved.
        what: Whose they are, for messages: "tool 'search'".

    Raises:
        SetupError: FastAPI can't make sense of them, or they ask for what no MCP
            message has.
    """

    def function() -> None:
        """Stand for the function, with those of its parameters alone."""

    function.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [parameter.replace(kind=parameter.KEYWORD_ONLY) for parameter in parameters]
    )
    try:
        dependant = get_dependant(path="", call=function)
    # What FastAPI raises here is of many kinds, assertions among them.
    except Exception as error:
        fault = str(error)
        if str(Context) in fault:
            fault = "one of them takes a Context, which the handler alone can have"
        raise SetupError(
            f"{what}: FastAPI can't work out its dependencies: {fault}"
        ) from error
    for part in _tree(dependant, {}):
        _check_part(part, what)
    return Dependencies(dependant, what)


def _check_part(part: Dependant, what: str) -> None:
    name = getattr(part.call, "__name__", repr(part.call))
    if part.body_params:
        raise SetupError(
            f"{what}: the dependency {name!r} takes {part.body_params[0].name!r} from "
            "the body of the request, which is the MCP message; make it a parameter "
            "of the handler"
        )
    if part.websocket_param_name is not None:
        raise SetupError(
            f"{what}: the dependency {name!r} takes a WebSocket, over which no MCP "
            "comes; take an HTTPConnection"
        )


def _tree(dependant: Dependant, overrides: Overrides) -> Iterator[Dependant]:
    """Return what is worked out, and all that it depends on in turn."""
    yield dependant
    for part in dependant.dependencies:
        call: Any = part.call
        used = overrides.get(call, call)
        yield from _tree(
            part if used is call else get_dependant(path="", call=used), overrides
        )


def _takes_request(dependant: Dependant) -> bool:
    return bool(
        dependant.request_param_name
        or dependant.http_connection_param_name
        or dependant.path_params
        or dependant.query_params
        or dependant.header_params
        or dependant.cookie_params
    )


@dataclass(frozen=True, slots=True)
class _Provider:
    """Where FastAPI looks for overrides."""

    dependency_overrides: Overrides


def _translate(error: BaseException) -> BaseException:
    """Return what an error of FastAPI is in the protocol, or any other as it is."""
    match error:
        case RequestValidationError():
            translated = HTTPError(400, INVALID_PARAMS, _faults(error))
        case HTTPException(status_code=status) if 400 <= status < 600:
            is_text = isinstance(error.detail, str)
            translated = HTTPError(
                status,
                INTERNAL_ERROR if status >= 500 else INVALID_REQUEST,
                error.detail if is_text else _phrase(status),
                data=UNSET if is_text else error.detail,
                headers=error.headers,
            )
        case _:
            return error
    translated.__cause__ = error
    return translated


def _phrase(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return f"HTTP status {status}"


def _faults(error: RequestValidationError) -> str:
    return f"Invalid params: {'; '.join(map(_fault, error.errors()))}"


def _fault(detail: Mapping[str, Any]) -> str:
    """Describe what is wrong with a header, a cookie or a part of the URL."""
    place = " ".join(map(str, detail.get("loc", ()))) or "request"
    kind, message = detail.get("type", ""), detail.get("msg", "invalid")
    if kind == "missing":
        return f"{place}: missing"
    if kind.endswith("_parsing"):
        # The rest of such a message quotes the value.
        message = message.partition(",")[0]
    message = message.removeprefix("Value error, ")
    return f"{place}: {message[:1].lower()}{message[1:]}"
