"""Components: what their options become, and which options can't work."""

import functools
from collections.abc import Callable
from typing import Annotated, Any

import pytest
from pydantic import Field

from mcpkit import App, SetupError
from mcpkit.components import Tool
from mcpkit.protocol.headers import HeaderParam
from tests.calls import call


def plain() -> str:
    """Say something."""
    raise NotImplementedError


def of_isbn(isbn: str) -> str:
    raise NotImplementedError


def of_isbn_and_more(isbn: str, page: int = 1) -> str:
    raise NotImplementedError


class Unnamed:
    """A tool that is an object."""

    def __call__(self) -> str:  # noqa: D102  # it has none
        raise NotImplementedError

    def __repr__(self) -> str:
        return "<Unnamed>"

    def method(self) -> str:
        """Do it."""
        raise NotImplementedError


class Documented:
    """A tool whose call is documented."""

    def __call__(self) -> str:
        """Call it."""
        raise NotImplementedError


def wrapped(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    return wrapper


NAMED: list[tuple[str, Callable[..., Any], dict[str, Any], str, str | None]] = [
    # id, function, options, name, description
    ("of the function", plain, {}, "plain", "Say something."),
    ("of the options", plain, {"name": "x", "description": "y"}, "x", "y"),
    ("an empty description", plain, {"description": ""}, "plain", None),
    ("DEC-18 no docstring", of_isbn, {}, "of_isbn", None),
    ("of a method", Unnamed().method, {}, "method", "Do it."),
    ("of a lambda", lambda: "", {"name": "x"}, "x", None),
    ("of an object", Unnamed(), {"name": "x"}, "x", "A tool that is an object."),
    ("of a call", Documented(), {"name": "x"}, "x", "Call it."),
    ("of a partial", functools.partial(plain), {"name": "x"}, "x", "Say something."),
    (
        "of a partial that looks like its function",
        functools.update_wrapper(functools.partial(plain), plain),
        {},
        "plain",
        "Say something.",
    ),
    ("of the innermost function", wrapped(plain), {}, "plain", "Say something."),
    ("the longest name", plain, {"name": "x" * 128}, "x" * 128, "Say something."),
]


def table(rows: list[Any]) -> list[Any]:
    return [pytest.param(*row, id=name) for name, *row in rows]


@pytest.mark.parametrize(("function", "options", "name", "description"), table(NAMED))
def test_a_component_is_named_and_described(
    function: Callable[..., Any],
    options: Any,
    name: str,
    description: str | None,
) -> None:
    app = App("tests")
    for component in (
        app.add_tool(function, **options),
        app.add_prompt(function, **options),
    ):
        wire = component.wire
        assert (component.name, wire["name"], wire.get("description")) == (
            name,
            name,
            description,
        )
        assert component.handler is function
        assert None not in wire.values()


def test_a_docstring_is_dedented() -> None:
    """DEC-18."""

    def x() -> str:
        """Say something.

        And then
            something else.
        """
        raise NotImplementedError

    assert App("tests").add_tool(x).wire["description"] == (
        "Say something.\n\nAnd then\n    something else."
    )


def add_tool(function: Any = plain, **options: Any) -> Callable[[], Any]:
    return lambda: App("tests").add_tool(function, **options)


def add_resource(uri: str, function: Any = plain, **options: Any) -> Callable[[], Any]:
    return lambda: App("tests").add_resource(uri, function, **options)


def add_prompt(function: Any = plain, **options: Any) -> Callable[[], Any]:
    return lambda: App("tests").add_prompt(function, **options)


HINTS = "destructiveHint, idempotentHint, openWorldHint, readOnlyHint, title"

IMPOSSIBLE: list[tuple[str, Callable[[], Any], str]] = [
    # id, mistake, the whole message
    ("no function", add_tool(3), "a tool is a function, not 3"),
    (
        "DEC-10 an object without a name",
        add_tool(Unnamed()),
        "a tool from <Unnamed> needs a name: give it name='...'",
    ),
    (
        "DEC-09 a partial without a name",
        add_tool(functools.partial(Unnamed())),
        "a tool from functools.partial(<Unnamed>) needs a name: give it name='...'",
    ),
    (
        "an empty name",
        add_tool(name=""),
        "the name of a tool has 1 to 128 characters, not ''",
    ),
    (
        "a long name",
        add_prompt(name="x" * 129),
        f"the name of a prompt has 1 to 128 characters, not {'x' * 129!r}",
    ),
    (
        "a number as name",
        add_tool(name=3),
        "the name of a tool has 1 to 128 characters, not 3",
    ),
    (
        "an unknown hint",
        add_tool(annotations={"readonly": True}),
        f"tool 'plain': 'readonly' is none of the annotations {HINTS}",
    ),
    (
        "a hint of a tool on a resource",
        add_resource("a://b", annotations={"readOnlyHint": True}),
        "resource 'a://b': 'readOnlyHint' is none of the annotations audience, "
        "lastModified, priority",
    ),
    (
        "an icon without a source",
        add_tool(icons=[{"mimeType": "image/png"}]),
        "plain: an icon is a dict with a src, not {'mimeType': 'image/png'}",
    ),
    (
        "one scope as a text",
        add_tool(scopes="admin"),
        "tool 'plain': scopes is a list of strings, not 'admin'",
    ),
    (
        "numbers as scopes",
        add_prompt(scopes=[1]),
        "prompt 'plain': scopes is a list of strings, not [1]",
    ),
    (
        "no URI",
        add_resource(""),
        "a resource needs its URI: write @app.resource('scheme://name')",
    ),
    (
        "URI-12 a malformed template",
        add_resource("a://{x}/{x}"),
        "resource 'a://{x}/{x}': the URI template 'a://{x}/{x}' names a variable twice",
    ),
    (
        "URI-12 a variable that is no parameter",
        add_resource("a://{name}", of_isbn),
        "resource 'a://{name}': the template's variable 'name' is no parameter of the "
        "function",
    ),
    (
        "URI-12 a parameter that is no variable",
        add_resource("a://b", of_isbn),
        "resource 'a://b': the parameter 'isbn' is no variable of the URI; write "
        "{isbn} into it, or give the parameter a default",
    ),
    (
        "a size of a template",
        add_resource("a://{isbn}", of_isbn, size=3),
        "resource 'a://{isbn}': a template has no size, only its resources have",
    ),
    (
        "a negative time to live",
        add_resource("a://b", ttl_ms=-1),
        "resource 'a://b': ttl_ms is an integer of zero or more, not -1",
    ),
    (
        "an unknown cache scope",
        add_resource("a://b", cache_scope="shared"),
        "resource 'a://b': scope is \"private\" or \"public\", not 'shared'",
    ),
    (
        "public and guarded",
        add_resource("a://b", scopes=["x"], cache_scope="public"),
        "resource 'a://b': what needs scopes can't be cached as public",
    ),
    (
        "a completion that takes something else",
        lambda: App("tests").add_completion("p", "a", of_isbn),
        "completion of 'a' of 'p': the parameter 'isbn' is none of value, arguments "
        "and a Context",
    ),
]


@pytest.mark.parametrize(("mistake", "message"), table(IMPOSSIBLE))
def test_what_cannot_work_is_a_setup_error(
    mistake: Callable[[], Any], message: str
) -> None:
    """Ours: it names the function, what is wrong, and what to write."""
    with pytest.raises(SetupError) as caught:
        mistake()
    assert str(caught.value) == message


async def test_what_is_refused_is_not_registered() -> None:
    app = App("tests")
    with pytest.raises(SetupError):
        app.add_resource("a://b", plain, scopes=["x"], cache_scope="public")
    assert app.registry.resources == {}


async def test_a_parameter_with_a_default_needs_no_variable() -> None:
    """URI-12."""
    app = App("tests")

    @app.resource("books://{isbn}")
    def book(isbn: str, page: int = 1) -> str:
        return f"{isbn} {page}"

    read = await call(app, "resources/read", uri="books://42")
    assert read["contents"][0]["text"] == "42 1"


def test_a_header_that_no_client_can_send_is_a_setup_error() -> None:
    """Spec 2026-07-28, basic/transports/streamable-http: `x-mcp-header`."""
    app = App("tests")

    def route(
        region: Annotated[str, Field(json_schema_extra={"x-mcp-header": "a b"})],
    ) -> str:
        raise NotImplementedError

    with pytest.raises(SetupError) as caught:
        app.add_tool(route)
    assert str(caught.value) == (
        "tool 'route': x-mcp-header of region is 'a b', not a header name"
    )


def test_options_do_not_change_with_what_they_were_made_of() -> None:
    app = App("tests")
    icons = [{"src": "https://example.com/a.png"}]
    annotations = {"readOnlyHint": True}
    scopes = ["a"]
    tool = app.add_tool(plain, icons=icons, annotations=annotations, scopes=scopes)
    icons[0]["src"] = "x"
    annotations["readOnlyHint"] = False
    scopes.append("b")
    assert tool.wire["icons"] == [{"src": "https://example.com/a.png"}]
    assert tool.wire["annotations"] == {"readOnlyHint": True}
    assert tool.scopes == {"a"}


def test_a_parameter_may_travel_in_a_header() -> None:
    """Spec 2026-07-28, basic/transports/streamable-http: `x-mcp-header`."""
    app = App("tests")

    @app.tool
    def route(
        region: Annotated[str, Field(json_schema_extra={"x-mcp-header": "Region"})],
    ) -> str:
        raise NotImplementedError

    tool = app.registry.tools["route"]
    assert isinstance(tool, Tool)
    assert tool.headers == (HeaderParam(header="Mcp-Param-Region", path=("region",)),)
