"""Whatever can be called, whatever it is registered as."""

import functools
import inspect
from collections.abc import Callable
from typing import Annotated, Any, Literal

import pytest
from pydantic import Field

from mcpkit import App, Context, SetupError
from tests import postponed
from tests.calls import call

Handler = Callable[..., Any]
Add = Callable[[App, Handler], Any]


def plain(value: str) -> list[str]:
    return [value]


async def coroutine(value: str) -> list[str]:
    return [value]


def positional(value: str, /) -> list[str]:
    return [value]


def keyword(*, value: str) -> list[str]:
    return [value]


def defaulted(value: str = "x") -> list[str]:
    return [value]


def first(ctx: Context, value: str) -> list[str]:
    return [value if ctx.method else ""]


async def last(value: str, ctx: Context | None = None) -> list[str]:
    return [value if ctx else ""]


def annotated(value: Annotated[str, Field(min_length=1)]) -> list[str]:
    return [value]


def chosen(value: Literal["x", "y"]) -> list[str]:
    return [value]


def optional(value: str | None = None) -> list[str]:
    return [value or ""]


def unannotated(value):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN201
    return [value]


def prefixed(prefix: str, value: str) -> list[str]:
    return [value.removeprefix(prefix)]


async def prefixed_later(value: str, prefix: str) -> list[str]:
    return [value.removeprefix(prefix)]


def wrapped(function: Handler) -> Handler:
    """Wrap as decorators do."""

    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    return wrapper


def wrapped_async(function: Handler) -> Handler:
    """Wrap in a coroutine function."""

    @functools.wraps(function)
    async def wrapper(*args: Any, **kwargs: Any) -> Any:
        value = function(*args, **kwargs)
        return await value if inspect.isawaitable(value) else value

    return wrapper


class Methods:
    """A class whose methods are registered."""

    def bound(self, value: str) -> list[str]:
        """Return it."""
        return [value]

    async def bound_async(self, value: str) -> list[str]:
        """Return it."""
        return [value]

    @classmethod
    def of_class(cls, value: str) -> list[str]:
        """Return it."""
        return [value]

    @staticmethod
    async def static(value: str) -> list[str]:
        """Return it."""
        return [value]

    def __call__(self, value: str) -> list[str]:
        """Return it."""
        return [value]


class AsyncObject:
    """An object that is called like a coroutine function."""

    async def __call__(self, value: str) -> list[str]:
        """Return it."""
        return [value]


HANDLERS: list[tuple[str, Handler]] = [
    ("a function", plain),
    ("a coroutine function", coroutine),
    ("a lambda", lambda value: [value]),
    ("DEC-12 positional-only", positional),
    ("keyword-only", keyword),
    ("defaults", defaulted),
    ("a context first", first),
    ("a context last", last),
    ("a constraint", annotated),
    ("a literal", chosen),
    ("an optional", optional),
    ("no annotations", unannotated),
    ("DEC-01 postponed annotations", postponed.listed),
    ("DEC-07 a bound method", Methods().bound),
    ("an async bound method", Methods().bound_async),
    ("a class method", Methods.of_class),
    ("a static method", Methods.static),
    ("a static method in the body of its class", staticmethod(plain)),
    ("an object", Methods()),
    ("DEC-10 an async object", AsyncObject()),
    ("DEC-09 a partial", functools.partial(prefixed, "")),
    ("DEC-09 an async partial", functools.partial(prefixed_later, prefix="")),
    ("a partial of a method", functools.partial(Methods().bound)),
    ("DEC-03 a wrapper", wrapped(plain)),
    ("DEC-03 a wrapper of a coroutine function", wrapped(coroutine)),
    ("an async wrapper", wrapped_async(plain)),
    ("a wrapper of a wrapper", wrapped_async(wrapped(coroutine))),
    ("a wrapper of a partial", wrapped(functools.partial(prefixed, ""))),
    ("a cache", functools.cache(plain)),
]

TEXT = [{"type": "text", "text": "x"}]
CONTENTS = [{"uri": "a://x", "mimeType": "application/json", "text": '["x"]'}]
COMPLETED = {
    "ref": {"type": "ref/resource", "uri": "b://{value}"},
    "argument": {"name": "value", "value": "x"},
}


def complete(app: App, handler: Handler) -> Any:
    app.add_resource("b://{value}", plain)
    return app.add_completion("b://{value}", "value", handler)


KINDS: list[tuple[str, Add, str, dict[str, Any], str, Any]] = [
    # kind, how it is registered, method, params, key of the result, its value
    (
        "tool",
        lambda app, handler: app.add_tool(handler, name="it"),
        "tools/call",
        {"name": "it", "arguments": {"value": "x"}},
        "content",
        [{"type": "text", "text": '["x"]'}],
    ),
    (
        "template",
        lambda app, handler: app.add_resource("a://{value}", handler, name="it"),
        "resources/read",
        {"uri": "a://x"},
        "contents",
        CONTENTS,
    ),
    (
        "prompt",
        lambda app, handler: app.add_prompt(handler, name="it"),
        "prompts/get",
        {"name": "it", "arguments": {"value": "x"}},
        "messages",
        [{"role": "user", "content": TEXT[0]}],
    ),
    (
        "completion",
        complete,
        "completion/complete",
        COMPLETED,
        "completion",
        {"values": ["x"]},
    ),
]


@pytest.mark.parametrize(
    ("add", "method", "params", "key", "value"),
    [pytest.param(*row, id=name) for name, *row in KINDS],
)
@pytest.mark.parametrize(
    "handler", [pytest.param(handler, id=name) for name, handler in HANDLERS]
)
async def test_what_can_be_called_can_be_registered_as_anything(
    handler: Handler,
    add: Add,
    method: str,
    params: dict[str, Any],
    key: str,
    value: Any,
) -> None:
    """Ours: decorators take what a Python author has."""
    app = App("tests")
    add(app, handler)
    answer = await call(app, method, **params)
    assert answer[key] == value


@pytest.mark.parametrize(
    "handler",
    [
        pytest.param(handler, id=name)
        for name, handler in [
            ("a function", functools.partial(plain, "x")),
            ("a coroutine function", functools.partial(coroutine, "x")),
            ("defaults", defaulted),
            ("an object", functools.partial(Methods(), "x")),
            ("a wrapper", wrapped(functools.partial(plain, "x"))),
        ]
    ],
)
async def test_what_takes_nothing_can_be_a_resource(handler: Handler) -> None:
    """Ours."""
    app = App("tests")
    app.add_resource("a://x", handler, name="it")
    answer = await call(app, "resources/read", uri="a://x")
    assert answer["contents"] == CONTENTS


def star_args(*values: str) -> Any:
    raise NotImplementedError


def star_kwargs(value: str, **more: str) -> Any:
    raise NotImplementedError


def generator(value: str) -> Any:
    yield value


async def async_generator(value: str) -> Any:
    yield value


def nowhere(value: "Nowhere") -> Any:  # type: ignore[name-defined]  # noqa: F821
    raise NotImplementedError


def unknown_type(value: Callable[[], str]) -> Any:
    raise NotImplementedError


GENERATOR = (
    "a generator can't be a handler; return a list, and report progress with "
    "ctx.progress"
)

IMPOSSIBLE: list[tuple[str, Handler, str]] = [
    # id, function, what is said
    (
        "variable arguments",
        star_args,
        "*values: str takes arguments without a name; write out the parameters, or "
        "take one dict",
    ),
    (
        "variable keywords",
        star_kwargs,
        "**more: str takes arguments without a name; write out the parameters, or take "
        "one dict",
    ),
    (
        "DEC-07 an unbound method",
        Methods.bound,
        "the parameter 'self' is of a method that is not bound; register the bound "
        "method of an instance instead, below the class",
    ),
    ("DEC-13 a generator", generator, GENERATOR),
    ("DEC-13 an async generator", async_generator, GENERATOR),
    ("DEC-13 a wrapped generator", functools.partial(generator), GENERATOR),
    ("a class", Methods, "register a function that builds it, not a class"),
    (
        "DEC-04 a name that is nowhere",
        nowhere,
        "the annotation 'Nowhere' of the parameter 'value' can't be resolved; define "
        "or import it at module level, not under TYPE_CHECKING",
    ),
    (
        "a type that no JSON becomes",
        unknown_type,
        "the parameter 'value' has the type collections.abc.Callable[[], str], which "
        "no JSON can become; take a pydantic model, a dataclass, a TypedDict, or the "
        "types that they are made of",
    ),
]

WHAT = {
    "tool": "tool 'it'",
    "template": "resource 'a://{value}'",
    "prompt": "prompt 'it'",
    "completion": "completion of 'value' of 'b://{value}'",
}


@pytest.mark.parametrize(
    ("kind", "add"), [pytest.param(name, row[0], id=name) for name, *row in KINDS]
)
@pytest.mark.parametrize(
    ("handler", "message"), [pytest.param(*row, id=name) for name, *row in IMPOSSIBLE]
)
def test_what_cannot_work_is_refused_as_anything(
    handler: Handler, message: str, kind: str, add: Add
) -> None:
    """Ours: the message names the function, the parameter and the remedy."""
    with pytest.raises(SetupError) as caught:
        add(App("tests"), handler)
    assert str(caught.value) == f"{WHAT[kind]}: {message}"


def test_a_classmethod_in_the_body_of_its_class_is_told_where_to_go() -> None:
    """DEC-07."""
    app: Any = App("tests")
    with pytest.raises(SetupError) as caught:

        class Tools:
            @app.tool  # type: ignore[untyped-decorator]  # what is refused
            @classmethod
            def of_class(cls, value: str) -> str:
                raise NotImplementedError

    assert str(caught.value) == (
        "a tool is a function, not a classmethod: register the method of the class "
        "instead, below the class"
    )


DUPLICATES: list[tuple[str, Callable[[App], Any], str]] = [
    ("tool", lambda app: app.add_tool(plain), "tool 'plain'"),
    ("resource", lambda app: app.add_resource("a://x", defaulted), "resource 'a://x'"),
    (
        "template",
        lambda app: app.add_resource("a://{value}", plain),
        "resource template 'a://{value}'",
    ),
    ("prompt", lambda app: app.add_prompt(plain), "prompt 'plain'"),
    (
        "completion",
        lambda app: app.add_completion("p", "value", plain),
        "completion ('p', 'value')",
    ),
]


@pytest.mark.parametrize(
    ("add", "what"), [pytest.param(*row, id=name) for name, *row in DUPLICATES]
)
def test_a_name_is_taken_once(add: Callable[[App], Any], what: str) -> None:
    """DEC-19."""
    app = App("tests")
    add(app)
    with pytest.raises(SetupError) as caught:
        add(app)
    assert str(caught.value) == (
        f"{what} is already registered; remove it first, or pass replace=True"
    )
