"""What the docstring of a function says, and of which parameter.

A section about parameters is read in the three styles that are in use

    Args:                 Parameters        :param query: What to look for.
        query: What.      ----------
                          query : str
                              What.

by the library docstring_parser. It is an extra, `mcpkit[docstrings]`: without it
the docstring is a description as a whole.
"""

import importlib
import inspect
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from mcpkit.hints import innermost

_GOOGLE: Final = re.compile(
    r"((Keyword|Other) )?(Args|Arguments|Params|Parameters):\s*\Z"
)
_NUMPY: Final = re.compile(r"(Other )?(Args|Arguments|Params|Parameters)\s*\Z")
_UNDERLINE: Final = re.compile(r"-{3,}\s*\Z")
_SPHINX: Final = re.compile(
    r":(param|parameter|arg|argument|key|keyword|type)\b[^:]*:(\s|\Z)"
)


@dataclass(frozen=True, slots=True)
class Docstring:
    """What a docstring says.

    Attributes:
        text: Of the function, `None` when there is no docstring.
        parameters: Of its parameters, by their names.
    """

    text: str | None
    parameters: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Section:
    """Lines about parameters.

    Attributes:
        style: The module of docstring_parser that reads them.
        start: The first line of them.
        end: The line after them.
        text: What is to be read: the same section, with the usual title.
    """

    style: str
    start: int
    end: int
    text: str


def docstring_of(function: Callable[..., Any]) -> str | None:
    """Return the docstring of a function, without its indentation."""
    target = innermost(function)
    if type(function).__call__ is target:
        # For a `__call__` without one, `getdoc` finds that of all callables.
        text = inspect.cleandoc(target.__doc__ or type(function).__doc__ or "")
    else:
        text = inspect.getdoc(target) or ""
    return text.strip() or None


def read_docstring(function: Callable[..., Any]) -> Docstring:
    """Tell what a docstring says of a function from what it says of parameters.

    The text is without the section about parameters, unless that describes what
    is no parameter of the function: nothing that is written gets lost.
    """
    text = docstring_of(function)
    if text is None:
        return Docstring(None)
    lines = text.splitlines()
    sections = list(_sections(lines))
    described = _read(sections)
    if not described:
        return Docstring(text)
    names = _names(function)
    if described.keys() <= names:
        text = _without(lines, sections)
    parameters = {
        name: told for name, told in described.items() if told and name in names
    }
    return Docstring(text or None, parameters)


def _names(function: Callable[..., Any]) -> frozenset[str]:
    code = getattr(innermost(function), "__code__", None)
    count = 0 if code is None else code.co_argcount + code.co_kwonlyargcount
    return frozenset(() if code is None else code.co_varnames[:count])


def _read(sections: list[_Section]) -> dict[str, str]:
    """Return the descriptions of all names in some sections; empty ones, too."""
    described: dict[str, str] = {}
    for section in sections:
        try:
            parser = importlib.import_module(f"docstring_parser.{section.style}")
        except ImportError:
            return {}
        # The library raises a ParseError, which is a RuntimeError, for what is
        # no section after all.
        try:
            found = parser.parse(f"Summary.\n\n{section.text}").params
        except RuntimeError:
            return {}
        for entry in found:
            for name in entry.arg_name.split(","):
                told = (entry.description or "").strip()
                described[name.strip().strip("*`")] = told
    return described


def _without(lines: list[str], sections: list[_Section]) -> str:
    """Return what is left of a docstring without some sections."""
    kept: list[str] = []
    end = 0
    for section in sections:
        kept += lines[end : section.start]
        end = section.end
        while (
            kept and not kept[-1].strip() and not "".join(lines[end : end + 1]).strip()
        ):
            kept.pop()
    return "\n".join([*kept, *lines[end:]]).strip()


def _sections(lines: list[str]) -> Iterator[_Section]:
    index = 0
    while index < len(lines):
        section = _section_at(lines, index)
        if section is not None:
            yield section
        index = index + 1 if section is None else section.end


def _section_at(lines: list[str], index: int) -> _Section | None:
    line = lines[index].strip()
    indent = _indent(lines[index])
    if _GOOGLE.match(line):
        end = _end_of_block(lines, index + 1, indent)
        body = inspect.cleandoc("\n" + "\n".join(lines[index + 1 : end]))
        indented = "\n".join(f"    {told}" for told in body.splitlines())
        return _Section("google", index, end, f"Args:\n{indented}")
    underlined = index + 1 < len(lines) and _UNDERLINE.match(lines[index + 1].strip())
    if underlined and _NUMPY.match(line):
        end = _end_of_numpy(lines, index + 2)
        body = inspect.cleandoc("\n" + "\n".join(lines[index + 2 : end]))
        return _Section("numpydoc", index, end, f"Parameters\n----------\n{body}")
    if _SPHINX.match(line):
        end = _end_of_field(lines, index + 1, indent)
        body = "\n".join(told[indent:] for told in lines[index:end])
        return _Section("rest", index, end, body)
    return None


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _end_of_block(lines: list[str], start: int, indent: int) -> int:
    """Return where what is indented further ends, blank lines at its end left out."""
    end = start
    for index in range(start, len(lines)):
        if not lines[index].strip():
            continue
        if _indent(lines[index]) <= indent:
            break
        end = index + 1
    return end


def _end_of_numpy(lines: list[str], start: int) -> int:
    """Return where the next title is, or the docstring ends."""
    for index in range(start, len(lines) - 1):
        if lines[index].strip() and _UNDERLINE.match(lines[index + 1].strip()):
            return index
    return len(lines)


def _end_of_field(lines: list[str], start: int, indent: int) -> int:
    """Return where a field ends: what follows at once, and what is indented."""
    end = start
    while end < len(lines) and lines[end].strip() and lines[end].strip()[0] not in ":@":
        end += 1
    return max(end, _end_of_block(lines, start, indent))
