"""URI templates: which URI is theirs, and what their variables hold.

The forms of RFC 6570 that are matched:

    {name}    one segment, or a part of one: no slash, never `.` or `..`
    {+name}   one or more segments; at most one of them in a template

URIs are compared as they are, byte for byte: nothing is normalised. Variables
are percent-decoded once, as UTF-8. A value that decodes to what could climb out
of its place (a slash or a backslash in `{name}`, a `..` segment, NUL) does not
match. Matching takes time linear in the length of the URI.
"""

import re
from dataclasses import dataclass
from typing import Final
from urllib.parse import quote, unquote

MAX_URI_LENGTH: Final = 8 * 1024
"""The length of the longest URI that is matched, in characters."""

_EXPRESSION: Final = re.compile(r"\{([^{}]*)\}")
_VARIABLE: Final = re.compile(r"(\+?)([A-Za-z_][A-Za-z0-9_]*)\Z")
_BAD_PERCENT: Final = re.compile(r"%(?![0-9A-Fa-f]{2})")


@dataclass(frozen=True, slots=True)
class _Variable:
    name: str
    several: bool


class UriTemplate:
    """A URI template.

    Args:
        text: The template, such as `books://{isbn}`.

    Raises:
        ValueError: It is malformed, or a URI could match it in two ways.

    Example:
        >>> UriTemplate("books://{isbn}/pages/{page}").match("books://42/pages/a%20b")
        {'isbn': '42', 'page': 'a b'}
        >>> UriTemplate("books://{isbn}").match("books://..%2Fsecret") is None
        True
    """

    __slots__ = ("_parts", "literal_length", "text", "variables")

    def __init__(self, text: str) -> None:
        self.text = text
        self._parts = _parse(text)
        variables = [part for part in self._parts if isinstance(part, _Variable)]
        self.variables = tuple(variable.name for variable in variables)
        if not variables:
            raise ValueError(f"the URI template {text!r} has no variables")
        if len(set(self.variables)) != len(self.variables):
            raise ValueError(f"the URI template {text!r} names a variable twice")
        if sum(variable.several for variable in variables) > 1:
            raise ValueError(f"the URI template {text!r} has more than one {{+name}}")
        self.literal_length = sum(
            len(part) for part in self._parts if isinstance(part, str)
        )

    def match(self, uri: str) -> dict[str, str] | None:
        """Return the decoded variables, or `None` when the URI is not of this form."""
        if len(uri) > MAX_URI_LENGTH:
            return None
        parts = self._parts
        # The one variable that may hold slashes takes what the others leave.
        split = next(
            (
                index
                for index, part in enumerate(parts)
                if isinstance(part, _Variable) and part.several
            ),
            None,
        )
        if split is None:
            found = _match_forward(parts, uri, to_end=True)
            return None if found is None else _decoded(parts, found[0])
        head = _match_forward(parts[:split], uri, to_end=False)
        if head is None:
            return None
        rest = uri[head[1] :]
        reverse = [
            part[::-1] if isinstance(part, str) else part
            for part in reversed(parts[split + 1 :])
        ]
        tail = _match_forward(reverse, rest[::-1], to_end=False)
        if tail is None or tail[1] >= len(rest):
            return None
        middle = rest[: len(rest) - tail[1]]
        values = [*head[0], middle, *(value[::-1] for value in reversed(tail[0]))]
        return _decoded(parts, values)

    def expand(self, variables: dict[str, str]) -> str:
        """Return the URI that these variables make.

        Raises:
            KeyError: A variable is missing.
        """
        return "".join(
            part
            if isinstance(part, str)
            else quote(variables[part.name], safe="/" if part.several else "")
            for part in self._parts
        )


def _parse(text: str) -> list[str | _Variable]:
    parts: list[str | _Variable] = []
    end = 0
    for expression in _EXPRESSION.finditer(text):
        literal = text[end : expression.start()]
        variable = _VARIABLE.match(expression[1])
        if variable is None:
            raise ValueError(
                f"{expression[0]!r} in the URI template {text!r} is none of "
                "{name} and {+name}"
            )
        if literal:
            parts.append(literal)
        elif parts:
            raise ValueError(
                f"the URI template {text!r} needs text between two variables"
            )
        parts.append(_Variable(variable[2], several=variable[1] == "+"))
        end = expression.end()
    if end < len(text):
        parts.append(text[end:])
    if any("{" in part or "}" in part for part in parts if isinstance(part, str)):
        raise ValueError(f"the URI template {text!r} has a brace without its pair")
    return parts


def _match_forward(
    parts: list[str | _Variable], uri: str, *, to_end: bool
) -> tuple[list[str], int] | None:
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
    values: list[str] = []
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
        if stop <= position or "/" in value:
            return None
        values.append(value)
        position = stop
    return None if to_end and position != len(uri) else (values, position)


def _decoded(parts: list[str | _Variable], values: list[str]) -> dict[str, str] | None:
    variables = [part for part in parts if isinstance(part, _Variable)]
    decoded = {}
    for variable, value in zip(variables, values, strict=True):
        text = _decode(value)
        if text is None or not _stays_put(text, several=variable.several):
            return None
        decoded[variable.name] = text
    return decoded


def _decode(value: str) -> str | None:
    if _BAD_PERCENT.search(value):
        return None
    try:
        return unquote(value, errors="strict")
    except UnicodeDecodeError:
        return None


def _stays_put(value: str, *, several: bool) -> bool:
    if "\0" in value or "\\" in value or value.startswith("/"):
        return False
    segments = value.split("/")
    if len(segments) > 1 and not several:
        return False
    return ".." not in segments and "." not in segments
