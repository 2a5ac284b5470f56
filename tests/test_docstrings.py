"""Docstrings: what they say of a function, and of its parameters."""

import functools
import sys
from collections.abc import Callable
from dataclasses import dataclass
from textwrap import dedent
from typing import Annotated, Any

import pytest
from pydantic import BaseModel, Field

from mcpkit import App, Context
from mcpkit.docstrings import Docstring, docstring_of, read_docstring
from tests.calls import call


def documented(text: str | None) -> Callable[..., Any]:
    def search(query: str, limit: int = 10, *, strict: bool = False) -> Any:
        raise NotImplementedError

    search.__doc__ = text
    return search


BOTH = {"query": "What to look for.", "limit": "How many."}

READ = [
    # id, docstring, what it says of the function, what it says of parameters
    ("none", None, None, {}),
    ("empty", "", None, {}),
    ("white space", "\n    \n", None, {}),
    ("a line", "Search.", "Search.", {}),
    ("DEC-18 paragraphs", "Search.\n\n    Well.\n    ", "Search.\n\nWell.", {}),
    (
        "Google",
        """Search.

        Args:
            query: What to look for.
            limit: How many.
        """,
        "Search.",
        BOTH,
    ),
    (
        "Google with types, and more sections",
        """Search.

        It takes a while.

        Args:
            query (str): What to look for.
            limit (int, optional): How many.

        Returns:
            list: What was found.

        Raises:
            ValueError: There is none.
        """,
        """Search.

        It takes a while.

        Returns:
            list: What was found.

        Raises:
            ValueError: There is none.
        """,
        BOTH,
    ),
    (
        "Google, several lines",
        """Search.

        Arguments:
            query: What to look
                for: words.

                And more of it.
            limit:
                - one
                - two

        And this, too.
        """,
        "Search.\n\nAnd this, too.",
        {
            "query": "What to look\nfor: words.\n\nAnd more of it.",
            "limit": "- one\n- two",
        },
    ),
    (
        "Google, keywords of their own",
        """Search.

        Args:
            query: What to look for.

        Keyword Args:
            strict: Only that.
        """,
        "Search.",
        {"query": "What to look for.", "strict": "Only that."},
    ),
    (
        "Google, two at once and one without a word",
        """Search.

        Params:
            query, limit: Both.
            strict:
        """,
        "Search.",
        {"query": "Both.", "limit": "Both."},
    ),
    (
        "Google, and nothing else",
        """
        Args:
            query: What to look for.
            limit: How many.
        """,
        None,
        BOTH,
    ),
    (
        "Google, indented by two",
        "Search.\n\nArgs:\n  query: What to look for.\n  limit: How many.",
        "Search.",
        BOTH,
    ),
    (
        "NumPy",
        """Search.

        Parameters
        ----------
        query : str
            What to look for.
        limit : int, optional
            How many.

        Returns
        -------
        list
            What was found.
        """,
        """Search.

        Returns
        -------
        list
            What was found.
        """,
        BOTH,
    ),
    (
        "NumPy, others and two at once",
        """Search.

        Parameters
        ----------
        query, limit : Any
            Both.

        Other Parameters
        ----------------
        strict
            Only that.
        """,
        "Search.",
        {"query": "Both.", "limit": "Both.", "strict": "Only that."},
    ),
    (
        "Sphinx",
        """Search.

        :param query: What to look for.
        :param int limit: How many.
        :type query: str
        :returns: What was found.
        """,
        "Search.\n\n:returns: What was found.",
        BOTH,
    ),
    (
        "Sphinx, several lines",
        """Search.

        :param query: What to look
            for.

            Words.
        :keyword limit: How
        many.
        :raises ValueError: There is none.

        And this, too.
        """,
        "Search.\n\n:raises ValueError: There is none.\n\nAnd this, too.",
        {"query": "What to look\nfor.\n\nWords.", "limit": "How\nmany."},
    ),
    (
        "Sphinx between paragraphs",
        """Search.

        :param query: What to look for.

        And this, too.

        :param limit: How many.
        """,
        "Search.\n\nAnd this, too.",
        BOTH,
    ),
    (
        "what is no parameter stays",
        """Search.

        Args:
            query: What to look for.
            genre: A member of the query.
        """,
        """Search.

        Args:
            query: What to look for.
            genre: A member of the query.
        """,
        {"query": "What to look for."},
    ),
    ("a title alone", "Search.\n\nArgs:\n", "Search.\n\nArgs:", {}),
    (
        "a title above prose",
        "Search.\n\nArgs:\n    They are many\n",
        "Search.\n\nArgs:\n    They are many",
        {},
    ),
    (
        "a title in a sentence",
        "Search.\n\nArgs: query is what to look for.",
        "Search.\n\nArgs: query is what to look for.",
        {},
    ),
    (
        "a title that is not underlined",
        "Search.\n\nParameters\n    query: What.",
        "Search.\n\nParameters\n    query: What.",
        {},
    ),
    (
        "a field without a name",
        "Search.\n\n:param: What.",
        "Search.\n\n:param: What.",
        {},
    ),
    (
        "a field without an end",
        "Search.\n\n:param query",
        "Search.\n\n:param query",
        {},
    ),
]


@pytest.mark.parametrize(
    ("docstring", "text", "parameters"),
    [pytest.param(*row, id=name) for name, *row in READ],
)
def test_a_docstring_is_read(
    docstring: str | None, text: str | None, parameters: dict[str, str]
) -> None:
    """Ours: Google's, NumPy's and Sphinx's styles, by docstring_parser."""
    told = None if text is None else dedent(f"        {text}").strip()
    assert read_docstring(documented(docstring)) == Docstring(told, parameters)


GOOGLE = """Search.

    Args:
        query: What to look for.
        limit: How many.
    """


def test_without_the_library_the_docstring_is_the_description(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Ours: a docstring is no mistake."""
    monkeypatch.setitem(sys.modules, "docstring_parser.google", None)
    function = documented(GOOGLE)
    assert read_docstring(function) == Docstring(docstring_of(function))


def tenanted(tenant: str, query: str, ctx: Context) -> Any:
    """Search.

    Args:
        tenant: Whose.
        query: What to look for.
        ctx: The request.
    """
    raise NotImplementedError


class Searcher:
    """Searches."""

    def search(self, query: str) -> Any:
        """Search.

        Args:
            query: What to look for.
        """
        raise NotImplementedError

    def __call__(self, query: str) -> Any:
        """Search.

        :param query: What to look for.
        """
        raise NotImplementedError


def wrap(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError

    return wrapper


QUERY = {"query": {"type": "string", "description": "What to look for."}}
QUERY_AND_TENANT = {"tenant": {"type": "string", "description": "Whose."}, **QUERY}

DESCRIBED = [
    ("with a context", tenanted, QUERY_AND_TENANT),
    ("a partial", functools.partial(tenanted, "acme"), QUERY),
    ("a wrapper", wrap(tenanted), QUERY_AND_TENANT),
    ("a method", Searcher().search, QUERY),
    ("an object", Searcher(), QUERY),
]


@pytest.mark.parametrize(
    ("function", "properties"),
    [pytest.param(*row, id=name) for name, *row in DESCRIBED],
)
def test_a_docstring_describes_the_parameters_of_a_tool(
    function: Callable[..., Any], properties: dict[str, Any]
) -> None:
    """Ours: those that clients do not see are left out without a trace."""
    tool = App("tests").add_tool(function, name="search")
    assert tool.wire["description"] == "Search."
    assert tool.wire["inputSchema"]["properties"] == properties


class Filter(BaseModel):
    """What to leave out."""

    genre: str = Field(description="One of them.")


@dataclass
class Range:
    """From here to there."""

    first: int


def test_what_is_said_nearer_wins() -> None:
    """Ours: a Field's description, and what a class says of itself."""

    def search(
        query: Annotated[str, Field(description="Words.")],
        by: Filter,
        within: Range,
        limit: int = Field(10, description="At most.", alias="top"),
        page: int = Field(1, alias="at"),
    ) -> str:
        """Search.

        Args:
            query: What to look for.
            by: What matters.
            within: Where.
            limit: How many.
            page: Which page.
        """
        raise NotImplementedError

    schema = App("tests").add_tool(search).wire["inputSchema"]
    assert schema["properties"] == {
        "query": {"type": "string", "description": "Words."},
        "by": {"$ref": "#/$defs/Filter", "description": "What matters."},
        "within": {"$ref": "#/$defs/Range", "description": "Where."},
        "top": {"type": "integer", "description": "At most.", "default": 10},
        "at": {"type": "integer", "description": "Which page.", "default": 1},
    }
    assert schema["$defs"] == {
        "Filter": {
            "type": "object",
            "description": "What to leave out.",
            "properties": {"genre": {"type": "string", "description": "One of them."}},
            "required": ["genre"],
        },
        "Range": {
            "type": "object",
            "description": "From here to there.",
            "properties": {"first": {"type": "integer"}},
            "required": ["first"],
            "additionalProperties": False,
        },
    }


def test_a_description_that_is_given_leaves_those_of_the_parameters() -> None:
    tool = App("tests").add_tool(documented(GOOGLE), description="Find.")
    properties = tool.wire["inputSchema"]["properties"]
    assert tool.wire["description"] == "Find."
    assert properties["query"] == {
        "type": "string",
        "description": "What to look for.",
    }


async def test_a_docstring_describes_the_arguments_of_a_prompt() -> None:
    """Spec 2026-07-28, server/prompts: Prompt, `arguments`."""
    app = App("tests")
    app.add_prompt(documented(GOOGLE), name="search")
    listed = await call(app, "prompts/list")
    assert listed["prompts"] == [
        {
            "name": "search",
            "description": "Search.",
            "arguments": [
                {
                    "name": "query",
                    "description": "What to look for.",
                    "required": True,
                },
                {"name": "limit", "description": "How many.", "required": False},
                {"name": "strict", "required": False},
            ],
        }
    ]


async def test_the_docstring_of_a_template_stays_whole() -> None:
    """Ours: no member of a resource template describes its variables."""

    def page(query: str) -> str:
        """Read a page.

        Args:
            query: What to look for.
        """
        raise NotImplementedError

    template = App("tests").add_resource("pages://{query}", page)
    assert template.wire["description"] == docstring_of(page)


class Native:
    """Looks like a function that is not written in Python.

    Args:
        query: What to look for.
    """

    __call__ = max


def test_a_function_that_is_not_written_in_python_keeps_its_docstring() -> None:
    """Ours."""
    function = Native()
    assert read_docstring(function) == Docstring(docstring_of(function))
