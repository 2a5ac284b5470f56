"""URI templates: which URI is theirs, and what their variables hold.

The forms of RFC 6570 that are matched:

    {name}     a segment, or a part of one: never a slash
    {+name}    what may hold slashes
    {/name*}   a list of segments, each behind a slash; there may be none
    {?a,b}     the query, whose variables come in any order, and may be missing
    {&a,b}     the same behind a query that the text begins: `?kind=map{&a,b}`

A template has one `{+name}` or one `{/name*}` at most, and text between its
other variables, so that a URI matches it in one way: each `{name}` is as short
as it can be. A variable that is a list stands as RFC 6570 has it: `{name}` is
`1,2`, `{?name}` is `name=1,2`, and `{?name*}` is `name=1&name=2`.

URIs are compared as they are, byte for byte: nothing is normalised. Variables
are percent-decoded once, as UTF-8. A value that decodes to what could climb out
of its place does not match: a slash in `{name}` or `{/name*}`, a backslash, a
`.` or `..` segment, a root or a drive in `{+name}`, NUL anywhere. Variables of
the query name no place and hold any text, unless they are said to be paths.
Matching takes time linear in the length of the URI.
"""

import itertools
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias
from urllib.parse import quote, unquote

MAX_URI_LENGTH: Final = 8 * 1024
"""The length of the longest URI that is matched, in characters."""

Variables: TypeAlias = dict[str, str | list[str]]
"""What the variables of a URI hold, by name."""

_EXPRESSION: Final = re.compile(r"\{([^{}]*)\}")
_VARIABLES: Final = re.compile(r"([+/?&]?)(\w+\*?(?:,\w+\*?)*)\Z", re.ASCII)
_BAD_PERCENT: Final = re.compile(r"%(?![0-9A-Fa-f]{2})")
_NOT_IN_ONE: Final = re.compile(r"[/?#]")
_ROOT: Final = re.compile(r"/|[A-Za-z]:")

# RFC 3986: what a path may hold as it is, beyond what `quote` never encodes.
_PATH: Final = "/:@!$&'()*+,;="
_MARKS: Final = "-._~"


@dataclass(frozen=True, slots=True)
class _Variable:
    name: str
    form: str
    exploded: bool
    is_list: bool
    is_path: bool


_Part: TypeAlias = str | _Variable


class UriTemplate:
    """A URI template.

    Args:
        text: The template, such as `books://{isbn}`.
        lists: The variables that are lists, beside `{/name*}` and `{?name*}`,
            which always are.
        paths: The variables of the query that are paths.

    Attributes:
        variables: The names of the variables, in order.
        optional: Those of the query, which a URI may leave out.
        lists: Those that are lists.
        rank: Smaller for the more literal of two templates that match a URI.
        shape: The template without the names that make no difference: two
            templates of one shape match the same URIs.

    Raises:
        ValueError: It is malformed, or a URI could match it in two ways.

    Example:
        >>> UriTemplate("books://{isbn}/pages/{page}").match("books://42/pages/a%20b")
        {'isbn': '42', 'page': 'a b'}
        >>> UriTemplate("books://{isbn}").match("books://..%2Fsecret") is None
        True
        >>> UriTemplate("map://{/steps*}{?zoom}").match("map:///a/b?zoom=3")
        {'steps': ['a', 'b'], 'zoom': '3'}
    """

    __slots__ = (
        "_fixed",
        "_head",
        "_prefix",
        "_query",
        "_several",
        "_tail",
        "lists",
        "optional",
        "rank",
        "shape",
        "text",
        "variables",
    )

    def __init__(
        self, text: str, *, lists: Collection[str] = (), paths: Collection[str] = ()
    ) -> None:
        parts = _parse(text, lists, paths)
        variables = [part for part in parts if isinstance(part, _Variable)]
        path, query, self._fixed = _split_query(text, parts)
        _check(text, variables, path)
        self.text = text
        self.variables = tuple(variable.name for variable in variables)
        self.optional = tuple(variable.name for variable in query)
        self.lists = frozenset(item.name for item in variables if item.is_list)
        self.shape = _EXPRESSION.sub(_shape, text)
        self._query = {variable.name: variable for variable in query}
        self._several = next(
            (part for part in path if isinstance(part, _Variable) and part.form), None
        )
        split = len(path) if self._several is None else path.index(self._several)
        self._head, self._tail = path[:split], path[split + 1 :]
        literal = sum(len(part) for part in parts if isinstance(part, str))
        self.rank = (-literal, self._several is not None)
        first = path[0] if path else ""
        self._prefix = first if isinstance(first, str) else ""

    def match(self, uri: str) -> Variables | None:
        """Return the decoded variables, or `None` when the URI is not of this form."""
        if not uri.startswith(self._prefix) or len(uri) > MAX_URI_LENGTH:
            return None
        query: Variables | None = {}
        if self._query:
            uri, mark, text = uri.partition("?")
            query = self._match_query(text if mark else None)
        if query is None:
            return None
        found = self._match_path(uri)
        if found is None:
            return None
        variables: Variables = {}
        for variable, raw in found:
            value = _read(variable, raw)
            if value is None:
                return None
            variables[variable.name] = value
        return {**variables, **query}

    def expand(self, variables: Mapping[str, str | Sequence[str]]) -> str:
        """Return the URI that these variables make: the inverse of `match`.

        Raises:
            KeyError: A variable is missing that is not one of the query.
            ValueError: No URI of this form holds these values.
        """
        wanted = {
            name: value if isinstance(value, str) else list(value)
            for name, value in variables.items()
        }
        # A mark stays as it is unless the template would take it for its own.
        for encoded in ("", _MARKS):
            uri = self._expand(wanted, encoded)
            if self.match(uri) == wanted:
                return uri
        raise ValueError(f"no URI of the form {self.text!r} holds these variables")

    def _match_path(self, uri: str) -> list[tuple[_Variable, str]] | None:
        several = self._several
        if several is None:
            return _match_whole(self._head, uri)
        if several.form == "+":
            return self._match_around(several, uri)
        # No other variable holds a slash: their number tells the parts apart.
        pieces = uri.split("/")
        start, stop = _slashes(self._head) + 1, len(pieces) - _slashes(self._tail)
        if start > stop:
            return None
        head = _match_whole(self._head, "/".join(pieces[:start]))
        tail = _match_whole(self._tail, "".join(f"/{item}" for item in pieces[stop:]))
        if head is None or tail is None:
            return None
        middle = "".join(f"/{piece}" for piece in pieces[start:stop])
        return [*head, (several, middle), *tail]

    def _match_around(
        self, several: _Variable, uri: str
    ) -> list[tuple[_Variable, str]] | None:
        """Match with a `{+name}`, which takes what the others leave."""
        head = _match_forward(self._head, uri, to_end=False)
        if head is None:
            return None
        rest = uri[head[1] :]
        backward = [
            part[::-1] if isinstance(part, str) else part
            for part in reversed(self._tail)
        ]
        tail = _match_forward(backward, rest[::-1], to_end=False)
        if tail is None or tail[1] >= len(rest):
            return None
        middle = rest[: len(rest) - tail[1]]
        after = [(variable, raw[::-1]) for variable, raw in reversed(tail[0])]
        return [*head[0], (several, middle), *after]

    def _match_query(self, text: str | None) -> Variables | None:
        missing = list(self._fixed)
        found: dict[str, Any] = {}
        for pair in () if text is None else text.split("&"):
            if pair in missing:
                missing.remove(pair)
                continue
            name, _, raw = pair.partition("=")
            variable = self._query.get(_decode(name) or "")
            # A fragment is no part of a query.
            if variable is None or "#" in raw:
                return None
            value = _read(variable, raw)
            if value is None:
                return None
            # What is repeated is a list, or else the last one counts.
            if variable.is_list:
                found.setdefault(variable.name, []).extend(value)
            else:
                found[variable.name] = value
        return None if missing else found

    def _expand(self, variables: Mapping[str, str | list[str]], encoded: str) -> str:
        parts = [*self._head, *([self._several] if self._several else []), *self._tail]
        path = "".join(
            part
            if isinstance(part, str)
            else _write(part, variables[part.name], encoded)
            for part in parts
        )
        query = [*self._fixed]
        for name, variable in self._query.items():
            if name in variables:
                value = variables[name]
                each = value if variable.exploded else [value]
                query += [f"{name}={_write(variable, item, encoded)}" for item in each]
        return f"{path}?{'&'.join(query)}" if query else path


def _parse(text: str, lists: Collection[str], paths: Collection[str]) -> list[_Part]:
    parts: list[_Part] = []
    end = 0
    for expression in _EXPRESSION.finditer(text):
        if literal := text[end : expression.start()]:
            parts.append(literal)
        parts += _variables(text, expression, lists, paths)
        end = expression.end()
    if end < len(text):
        parts.append(text[end:])
    if any("{" in part or "}" in part for part in parts if isinstance(part, str)):
        raise ValueError(f"the URI template {text!r} has a brace without its pair")
    return parts


def _variables(
    text: str,
    expression: re.Match[str],
    lists: Collection[str],
    paths: Collection[str],
) -> list[_Variable]:
    match = _VARIABLES.match(expression[1])
    form = match[1] if match else ""
    names = match[2].split(",") if match else []
    starred = [name for name in names if name.endswith("*")]
    in_query = form in ("?", "&")
    # A star belongs to the segments, and may belong to a variable of the query.
    known = in_query or (len(names) == 1 and bool(starred) == (form == "/"))
    if not known or any(name[0].isdigit() for name in names):
        raise ValueError(
            f"{expression[0]!r} in the URI template {text!r} is none of {{name}}, "
            "{+name}, {/name*}, {?name} and {&name}"
        )
    variables = []
    for name in names:
        plain = name.removesuffix("*")
        exploded = plain != name
        is_list = exploded or plain in lists
        if is_list and form == "+":
            raise ValueError(
                f"{expression[0]!r} in the URI template {text!r} is no list; write "
                f"{{/{plain}*}} for segments"
            )
        is_path = not in_query or plain in paths
        variables.append(_Variable(plain, form, exploded, is_list, is_path))
        # `{?a,b}` is `{?a}{&b}`.
        form = "&" if in_query else form
    return variables


def _split_query(
    text: str, parts: list[_Part]
) -> tuple[list[_Part], list[_Variable], tuple[str, ...]]:
    """Tell the path from the variables of the query, and from its fixed pairs."""
    start = next(
        (
            index
            for index, part in enumerate(parts)
            if isinstance(part, _Variable) and part.form in ("?", "&")
        ),
        None,
    )
    if start is None:
        return parts, [], ()
    path = parts[:start]
    query = [part for part in parts[start:] if isinstance(part, _Variable)]
    if len(query) < len(parts) - start or any(
        variable.form not in ("?", "&") for variable in query
    ):
        raise ValueError(f"the query of the URI template {text!r} is not at its end")
    begins = any("?" in part for part in path if isinstance(part, str))
    if begins != (query[0].form == "&") or any(item.form == "?" for item in query[1:]):
        raise ValueError(
            f"the query of the URI template {text!r} begins with one ?; the variables "
            "behind it are {&name}"
        )
    if not begins:
        return path, query, ()
    last = path[-1]
    if not isinstance(last, str) or "?" not in last:
        raise ValueError(
            f"the URI template {text!r} has a variable between ? and {{&name}}; write "
            "{?name} for all of them"
        )
    before, _, fixed = last.partition("?")
    path = [*path[:-1], before] if before else path[:-1]
    return path, query, tuple(fixed.split("&"))


def _check(text: str, variables: list[_Variable], path: list[_Part]) -> None:
    """Refuse what can't be matched in one way alone."""
    names = {variable.name for variable in variables}
    if not names:
        raise ValueError(f"the URI template {text!r} has no variables")
    if len(names) < len(variables):
        raise ValueError(f"the URI template {text!r} names a variable twice")
    if sum(variable.form in ("+", "/") for variable in variables) > 1:
        raise ValueError(
            f"the URI template {text!r} is ambiguous: it has more than one {{+name}} "
            "or {/name*}"
        )
    for part, following in itertools.pairwise(path):
        if isinstance(part, str):
            continue
        if part.form == "/" and not str(following).startswith("/"):
            raise ValueError(
                f"the URI template {text!r} is ambiguous: behind {{/name*}} is a "
                "slash, the query, or nothing"
            )
        if isinstance(following, _Variable) and following.form != "/":
            raise ValueError(
                f"the URI template {text!r} is ambiguous: it needs text between two "
                "variables"
            )


def _shape(expression: re.Match[str]) -> str:
    form, names = expression[1][0], expression[1][1:]
    if form in "?&":
        return f"{{{form}{','.join(sorted(names.split(',')))}}}"
    return f"{{{form if form in '+/' else ''}}}"


def _slashes(parts: list[_Part]) -> int:
    return sum(part.count("/") for part in parts if isinstance(part, str))


def _match_whole(parts: list[_Part], uri: str) -> list[tuple[_Variable, str]] | None:
    found = _match_forward(parts, uri, to_end=True)
    return None if found is None else found[0]


def _match_forward(
    parts: list[_Part], uri: str, *, to_end: bool
) -> tuple[list[tuple[_Variable, str]], int] | None:
    """Match parts one after the other, each variable as short as it can be.

    Variables hold no slash, so that a shorter match leaves every choice open to
    the parts that follow: no backtracking is needed.

    Args:
        parts: The parts, of which the last is a text unless the match goes
            `to_end`.
        uri: What they are matched with.
        to_end: The match must end where the URI does.

    Returns:
        The raw values and where the match ends, or `None`.
    """
    values: list[tuple[_Variable, str]] = []
    position = 0
    for index, part in enumerate(parts):
        if isinstance(part, str):
            if not uri.startswith(part, position):
                return None
            position += len(part)
            continue
        following = parts[index + 1] if index + 1 < len(parts) else None
        last = index + 2 >= len(parts)
        if following is None:
            stop = len(uri)
        elif last and to_end:
            stop = len(uri) - len(str(following))
        else:
            stop = uri.find(str(following), position + 1)
        value = uri[position:stop]
        if stop <= position or _NOT_IN_ONE.search(value):
            return None
        values.append((part, value))
        position = stop
    return None if to_end and position != len(uri) else (values, position)


def _read(variable: _Variable, raw: str) -> str | list[str] | None:
    """Return what a variable holds, or `None` when it may not hold that."""
    if variable.form == "/":
        items = raw.split("/")[1:]
    elif variable.is_list and not variable.exploded:
        items = raw.split(",")
    else:
        items = [raw]
    values = []
    for item in items:
        value = _decode(item)
        if value is None or not _stays_put(value, variable):
            return None
        values.append(value)
    return values if variable.is_list else values[0]


def _write(variable: _Variable, value: str | list[str], encoded: str) -> str:
    """Return the raw form of what a variable holds."""
    if isinstance(value, list):
        items = [_write(variable, item, encoded) for item in value]
        if variable.form == "/":
            return "".join(f"/{item}" for item in items)
        return ",".join(items)
    raw = quote(value, safe=_PATH if variable.form == "+" else "")
    for mark in encoded:
        raw = raw.replace(mark, f"%{ord(mark):02X}")
    return raw


def _decode(value: str) -> str | None:
    if "%" not in value:
        return value
    if _BAD_PERCENT.search(value):
        return None
    try:
        return unquote(value, errors="strict")
    except UnicodeDecodeError:
        return None


def _stays_put(value: str, variable: _Variable) -> bool:
    """Whether a value leads no further than to its own place."""
    if "\0" in value:
        return False
    if not variable.is_path:
        return True
    segments = value.split("/")
    if variable.form == "/" and value == "":
        return False
    if variable.form in ("", "/"):
        stays = len(segments) == 1
    else:
        stays = _ROOT.match(value) is None
    return stays and "\\" not in value and not {".", ".."} & set(segments)
