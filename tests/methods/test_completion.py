"""`completion/complete`. Spec 2026-07-28, server/utilities/completion."""

import enum
from typing import Any, Literal

import pytest

from mcpkit import App, Context, ProtocolError, Result
from mcpkit.errors import INTERNAL_ERROR, INVALID_PARAMS, METHOD_NOT_FOUND
from tests.calls import EVERY, V_2025_11_25, call
from tests.wire import MODERN

PROMPT = {"type": "ref/prompt", "name": "review"}
TEMPLATE = {"type": "ref/resource", "uri": "books://{isbn}"}
MANUAL = {"type": "ref/resource", "uri": "docs://manual"}


def completing(handler: Any = None) -> App:
    """Make an app with a prompt and a template, which may complete the prompt."""
    app = App("tests")

    @app.prompt
    def review(title: str, author: str = "") -> str:
        raise NotImplementedError

    @app.resource("books://{isbn}")
    def book(isbn: str) -> str:
        raise NotImplementedError

    @app.resource("docs://manual")
    def manual() -> str:
        raise NotImplementedError

    if handler is not None:
        app.add_completion("review", "title", handler)
    return app


async def complete(
    app: App,
    value: str = "py",
    *,
    ref: dict[str, Any] | None = None,
    at: str = MODERN,
    **params: Any,
) -> Any:
    """Return the completion, or the error where there is none."""
    argument = {"name": "title", "value": value}
    result = await call(
        app,
        "completion/complete",
        at=at,
        **{"ref": PROMPT if ref is None else ref, "argument": argument, **params},
    )
    return result.get("completion", result)


def table(rows: list[Any]) -> list[Any]:
    return [pytest.param(*row, id=name) for name, *row in rows]


RETURNED = [
    # id, value, completion
    ("values", ["python", "pytorch"], {"values": ["python", "pytorch"]}),
    ("a tuple", ("python",), {"values": ["python"]}),
    ("none", [], {"values": []}),
    (
        "a hundred",
        [str(n) for n in range(100)],
        {"values": [str(n) for n in range(100)]},
    ),
    (
        "more than may be sent",
        [str(n) for n in range(101)],
        {"values": [str(n) for n in range(100)], "total": 101, "hasMore": True},
    ),
    (
        "a result",
        Result.completion(["python"], total=10, has_more=True),
        {"values": ["python"], "total": 10, "hasMore": True},
    ),
]


@pytest.mark.parametrize("version", EVERY)
@pytest.mark.parametrize(("value", "completion"), table(RETURNED))
async def test_what_a_completion_returns_is_sent(
    value: Any, completion: dict[str, Any], version: str
) -> None:
    app = completing(lambda: value)
    assert await complete(app, at=version) == completion


async def test_a_completion_is_given_what_it_asks_for() -> None:
    """Spec 2026-07-28, server/utilities/completion: `context.arguments`."""
    app = completing()

    @app.complete("review", "title")
    async def titles(value: str, arguments: dict[str, str], ctx: Context) -> list[str]:
        return [value, *arguments, *arguments.values(), ctx.method]

    @app.complete("review", "author")
    def authors() -> list[str]:
        return ["anyone"]

    settled = {"arguments": {"author": "Herbert"}}
    assert await complete(app, "du", context=settled) == {
        "values": ["du", "author", "Herbert", "completion/complete"]
    }
    assert await complete(app, "du") == {"values": ["du", "completion/complete"]}
    argument = {"name": "author", "value": ""}
    assert await complete(app, argument=argument) == {"values": ["anyone"]}


@pytest.mark.parametrize("reference", [TEMPLATE, MANUAL])
async def test_a_template_is_completed_by_its_text(reference: dict[str, Any]) -> None:
    app = completing()
    app.add_completion("books://{isbn}", "isbn", lambda value: [f"{value}42"])
    argument = {"name": "isbn", "value": "9"}
    completion = await complete(app, ref=reference, argument=argument)
    assert completion == {"values": ["942"] if reference == TEMPLATE else []}


async def test_an_argument_without_a_completion_has_no_values() -> None:
    app = completing(lambda value: [value])
    argument = {"name": "author", "value": "x"}
    assert await complete(app, argument=argument) == {"values": []}


WRONG = [
    # id, params, message
    (
        "no ref",
        {"ref": {}},
        "Invalid params: ref.type must be ref/prompt or ref/resource",
    ),
    ("a text as ref", {"ref": "review"}, "Invalid params: ref must be an object"),
    (
        "an unknown type",
        {"ref": {"type": "ref/tool", "name": "review"}},
        "Invalid params: ref.type must be ref/prompt or ref/resource",
    ),
    (
        "no name",
        {"ref": {"type": "ref/prompt"}},
        "Invalid params: name must be a string",
    ),
    (
        "no URI",
        {"ref": {"type": "ref/resource"}},
        "Invalid params: uri must be a string",
    ),
    (
        "an unknown prompt",
        {"ref": {"type": "ref/prompt", "name": "x"}},
        "Unknown prompt: x",
    ),
    (
        "an unknown resource",
        {"ref": {"type": "ref/resource", "uri": "x://y"}},
        "Unknown resource: x://y",
    ),
    ("no argument", {"argument": None}, "Invalid params: name must be a string"),
    (
        "no value",
        {"argument": {"name": "title"}},
        "Invalid params: value must be a string",
    ),
    (
        "a number as value",
        {"argument": {"name": "title", "value": 3}},
        "Invalid params: value must be a string",
    ),
    (
        "a text as context",
        {"context": "x"},
        "Invalid params: context must be an object",
    ),
    (
        "a number as one of its arguments",
        {"context": {"arguments": {"author": 3}}},
        "Invalid params: author must be a string",
    ),
    (
        "an array as its arguments",
        {"context": {"arguments": []}},
        "Invalid params: arguments must be an object",
    ),
]


@pytest.mark.parametrize(("params", "message"), table(WRONG))
async def test_malformed_params_are_refused(
    params: dict[str, Any], message: str
) -> None:
    app = completing(lambda value: [value])
    error = await complete(app, **params)
    assert error == {"code": INVALID_PARAMS, "message": message}


def failing() -> list[str]:
    raise RuntimeError("secret")


FAILED = [
    # id, handler
    ("it raises", failing),
    ("a text", lambda: "python"),
    ("nothing", lambda: None),
    ("numbers", lambda: [1]),
    ("a result of a tool", lambda: Result.text("x")),
    ("a question", lambda: Result.input_required({}, "x")),
]


@pytest.mark.parametrize("handler", table(FAILED))
async def test_a_completion_that_fails_tells_nothing(
    handler: Any, caplog: pytest.LogCaptureFixture
) -> None:
    assert await complete(completing(handler)) == {
        "code": INTERNAL_ERROR,
        "message": "Internal error",
    }
    (record,) = caplog.records
    assert record.getMessage() == "completion/complete: completion of 'title' failed"


async def test_a_protocol_error_of_a_completion_is_sent_verbatim() -> None:
    def refusing() -> list[str]:
        raise ProtocolError(7, "No")

    error = {"code": 7, "message": "No"}
    assert await complete(completing(refusing)) == error


class Tone(enum.Enum):
    """A tone."""

    KIND = "kind"
    KEEN = "keen"
    HARSH = "harsh"


def choosing() -> App:
    """Make an app with a prompt and a template whose arguments have few values."""
    app = App("tests")

    @app.prompt
    def review(
        title: str,
        tone: Tone,
        stars: Literal[1, 2, 10] = 1,
        lang: Literal["en", "fr"] | None = None,
        flag: Literal[True] | None = None,
        other: Literal["a"] | int = 1,
    ) -> str:
        raise NotImplementedError

    @app.resource("shelf://{tone}{?lang}")
    def shelf(tone: Tone, lang: Literal["en", "fr"] = "en") -> str:
        raise NotImplementedError

    return app


CHOICES = [
    # id, argument, value, values
    ("an enum", "tone", "", ["kind", "keen", "harsh"]),
    ("what begins with what was typed", "tone", "k", ["kind", "keen"]),
    ("in any case", "tone", "K", ["kind", "keen"]),
    ("a whole value", "tone", "kind", ["kind"]),
    ("nothing that begins so", "tone", "x", []),
    ("numbers", "stars", "1", ["1", "10"]),
    ("what may be missing", "lang", "", ["en", "fr"]),
    ("a truth", "flag", "", ["true"]),
    ("what may be something else", "other", "", []),
    ("any text", "title", "", []),
    ("an unknown argument", "x", "", []),
]


@pytest.mark.parametrize("version", EVERY)
@pytest.mark.parametrize(("argument", "value", "values"), table(CHOICES))
async def test_few_values_are_completed_by_themselves(
    argument: str, value: str, values: list[str], version: str
) -> None:
    """Ours: enums and literals."""
    given = {"name": argument, "value": value}
    completion = await complete(choosing(), argument=given, at=version)
    assert completion == {"values": values}


async def test_variables_of_few_values_are_completed_by_themselves() -> None:
    ref = {"type": "ref/resource", "uri": "shelf://{tone}{?lang}"}
    for name, values in (("tone", ["kind", "keen"]), ("lang", [])):
        given = {"name": name, "value": "k"}
        completion = await complete(choosing(), ref=ref, argument=given)
        assert completion == {"values": values}


async def test_a_completion_of_ones_own_comes_first() -> None:
    app = choosing()
    app.add_completion("review", "tone", lambda value: [f"{value}!"])
    given = {"name": "tone", "value": "k"}
    assert await complete(app, argument=given) == {"values": ["k!"]}


def test_few_values_are_completions_that_are_declared() -> None:
    """PRM-04."""
    app = choosing()
    assert app.declared("modern")["completions"] == {}
    app.remove_prompt("review")
    assert app.declared("modern")["completions"] == {}
    app.remove_resource("shelf://{tone}{?lang}")
    assert "completions" not in app.declared("modern")


@pytest.mark.parametrize("version", [MODERN, V_2025_11_25])
async def test_completions_are_a_capability_when_one_is_registered(
    version: str,
) -> None:
    """PRM-04."""
    without, having = completing(), completing(lambda value: [value])
    assert "completions" not in without.declared("modern")
    assert "completions" not in without.declared("legacy")
    assert await complete(without, at=version) == {
        "code": METHOD_NOT_FOUND,
        "message": "Method not found",
    }
    assert having.declared("modern")["completions"] == {}
    assert having.declared("legacy")["completions"] == {}
    assert await complete(having, "x", at=version) == {"values": ["x"]}
