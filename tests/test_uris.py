"""URI templates: which URI is theirs, and what their variables hold.

Spec 2026-07-28, server/resources: Resource Templates, and Security
Considerations. The subset of RFC 6570 is ours.
"""

import doctest
import re
import time

import pytest
from hypothesis import given, settings, strategies as st

import mcpkit.uris
from mcpkit.uris import MAX_URI_LENGTH, UriTemplate


def test_the_examples_in_the_docstrings_run() -> None:
    assert doctest.testmod(mcpkit.uris).failed == 0


MATCHED = [
    # id, template, URI, variables
    ("one segment", "books://{isbn}", "books://42", {"isbn": "42"}),
    ("two segments", "a://{x}/b/{y}", "a://1/b/2", {"x": "1", "y": "2"}),
    ("no scheme", "users/{id}", "users/me", {"id": "me"}),
    ("nothing but a variable", "{a}", "anything", {"a": "anything"}),
    ("part of a segment", "a://{name}.{ext}", "a://x.txt", {"name": "x", "ext": "txt"}),
    ("the shortest first", "a://{x}-{y}", "a://1-2-3", {"x": "1", "y": "2-3"}),
    ("a text that repeats itself", "a://{x}aa{y}", "a://baaab", {"x": "b", "y": "ab"}),
    ("several segments", "f://{+path}", "f://a/b/c", {"path": "a/b/c"}),
    ("several may be one", "f://{+path}", "f://a", {"path": "a"}),
    ("several, and a slash after", "f://{+path}", "f://a/", {"path": "a/"}),
    ("several before a text", "f://{+path}/meta", "f://a/b/meta", {"path": "a/b"}),
    (
        "several between others",
        "f://{x}/{+path}/{y}.txt",
        "f://1/2/3/4.txt",
        {"x": "1", "path": "2/3", "y": "4"},
    ),
    ("URI-03 a text with metacharacters", "q://x+(1)/{id}", "q://x+(1)/3", {"id": "3"}),
    ("URI-04 a space", "search://{q}", "search://hello%20world", {"q": "hello world"}),
    ("URI-04 beyond ASCII", "search://{q}", "search://caf%C3%A9", {"q": "café"}),
    ("URI-04 a plus is a plus", "search://{q}", "search://a+b", {"q": "a+b"}),
    ("URI-04 an encoded plus", "search://{q}", "search://a%2Bb", {"q": "a+b"}),
    ("URI-01 decoded once", "a://{x}", "a://%252F", {"x": "%2F"}),
    ("URI-01 dots are decoded once", "a://{x}", "a://%252e%252e", {"x": "%2e%2e"}),
    ("raw, beyond ASCII", "a://{x}", "a://é b", {"x": "é b"}),
    ("dots that are a name", "a://{x}", "a://...", {"x": "..."}),
    ("a name that begins with dots", "a://{x}", "a://..a", {"x": "..a"}),
    ("a query is a part of the URI", "a://{x}", "a://b?c=d#e", {"x": "b?c=d#e"}),
    ("an encoded slash among several", "f://{+path}", "f://a%2Fb", {"path": "a/b"}),
]

UNMATCHED = [
    # id, template, URI
    ("another text", "books://{isbn}", "films://42"),
    ("URI-07 another case", "books://{isbn}", "BOOKS://42"),
    ("an empty variable", "books://{isbn}", "books://"),
    ("one segment too many", "books://{isbn}", "books://42/43"),
    ("a text too many", "a://{x}/b", "a://1/b/c"),
    ("a text that is missing", "a://{x}-{y}", "a://1"),
    ("an empty part", "a://{x}-{y}", "a://1-"),
    ("URI-03 any character for a dot", "weather://a.b/{city}", "weather://aXb/paris"),
    ("URI-01 an encoded slash", "f://docs/{name}", "f://docs/..%2F..%2Fetc%2Fpasswd"),
    ("URI-01 a slash in a name", "f://docs/{name}", "f://docs/a%2Fb"),
    ("URI-01 the folder above", "f://docs/{name}", "f://docs/.."),
    ("URI-01 encoded, it is still above", "f://docs/{name}", "f://docs/%2e%2e"),
    ("the folder itself", "f://docs/{name}", "f://docs/."),
    ("URI-01 a backslash", "f://docs/{name}", "f://docs/..%5c"),
    ("URI-01 NUL", "f://docs/{name}", "f://docs/%00"),
    ("URI-04 no UTF-8", "search://{q}", "search://%ff"),
    ("URI-04 no hexadecimal", "search://{q}", "search://%zz"),
    ("URI-04 an encoding cut short", "search://{q}", "search://%4"),
    ("URI-01 above, among several", "f://{+path}", "f://a/../b"),
    ("URI-01 above and encoded, among several", "f://{+path}", "f://a%2F..%2Fb"),
    ("the root, among several", "f://{+path}", "f:///etc/passwd"),
    ("the root and encoded, among several", "f://{+path}", "f://%2Fetc"),
    ("several, but none", "f://{+path}/meta", "f:///meta"),
    ("several, and the text before is missing", "f://{x}/{+path}", "f://1"),
    ("several, and the text after is missing", "f://{+path}/{y}.txt", "f://a/b.pdf"),
    ("nothing is left for several", "f://{x}/{+path}/{y}", "f://1/2"),
]


@pytest.mark.parametrize(
    ("template", "uri", "variables"),
    [pytest.param(*row, id=name) for name, *row in MATCHED],
)
def test_a_uri_matches(template: str, uri: str, variables: dict[str, str]) -> None:
    assert UriTemplate(template).match(uri) == variables


@pytest.mark.parametrize(
    ("template", "uri"), [pytest.param(*row, id=name) for name, *row in UNMATCHED]
)
def test_a_uri_does_not_match(template: str, uri: str) -> None:
    assert UriTemplate(template).match(uri) is None


MALFORMED = [
    # id, template, the whole message
    (
        "no variable",
        "a://b",
        "the URI template 'a://b' has no variables",
    ),
    (
        "URI-06 nothing between two",
        "{a}{b}{c}",
        "the URI template '{a}{b}{c}' needs text between two variables",
    ),
    (
        "URI-06 another form",
        "{/a*}{/b*}x",
        "'{/a*}' in the URI template '{/a*}{/b*}x' is none of {name} and {+name}",
    ),
    (
        "URI-12 a line break in a name",
        "x://{a\n}",
        "'{a\\n}' in the URI template 'x://{a\\n}' is none of {name} and {+name}",
    ),
    (
        "URI-12 one name twice",
        "x://{a}/{a}",
        "the URI template 'x://{a}/{a}' names a variable twice",
    ),
    (
        "no name",
        "x://{}",
        "'{}' in the URI template 'x://{}' is none of {name} and {+name}",
    ),
    (
        "a query",
        "x://a{?q}",
        "'{?q}' in the URI template 'x://a{?q}' is none of {name} and {+name}",
    ),
    (
        "several twice",
        "x://{+a}/{+b}",
        "the URI template 'x://{+a}/{+b}' has more than one {+name}",
    ),
    (
        "a brace that is not closed",
        "x://{a",
        "the URI template 'x://{a' has a brace without its pair",
    ),
    (
        "a brace that is not opened",
        "x://{b}/a}",
        "the URI template 'x://{b}/a}' has a brace without its pair",
    ),
]


@pytest.mark.parametrize(
    ("template", "message"), [pytest.param(*row, id=name) for name, *row in MALFORMED]
)
def test_a_malformed_template_is_refused(template: str, message: str) -> None:
    with pytest.raises(ValueError) as caught:  # noqa: PT011  # the whole message follows
        UriTemplate(template)
    assert str(caught.value) == message


HARD = [
    # id, template, a URI that is hard for those who backtrack
    ("commas", "{a},{b},{c}x", ","),
    ("slashes", "a://{x}/{y}/z", "/"),
    ("several and slashes", "a{+x}/{y}", "/"),
    ("several and letters", "{x}a{+y}a{z}b", "a"),
    ("percent signs", "{x}%{y}", "%"),
]


@pytest.mark.parametrize(
    ("template", "character"), [pytest.param(*row, id=name) for name, *row in HARD]
)
@pytest.mark.parametrize("length", [MAX_URI_LENGTH - 1, 50 * 1024])
def test_matching_takes_little_time(template: str, character: str, length: int) -> None:
    """URI-06."""
    compiled = UriTemplate(template)
    start = time.perf_counter()
    compiled.match("a" + character * length)
    assert time.perf_counter() - start < 0.1


def test_a_uri_that_is_too_long_does_not_match() -> None:
    template = UriTemplate("a://{x}")
    longest = "a://".ljust(MAX_URI_LENGTH, "b")
    assert template.match(longest) is not None
    assert template.match(f"{longest}b") is None


VALUES = st.text(min_size=1, max_size=20).filter(
    lambda value: not set(value) & set("/\\\0") and value not in (".", "..")
)


@settings(deadline=None)
@given(VALUES, VALUES)
def test_what_is_expanded_matches(first: str, second: str) -> None:
    template = UriTemplate("a://{x}/b/{y}")
    variables = {"x": first, "y": second}
    assert template.match(template.expand(variables)) == variables


@settings(deadline=None)
@given(st.lists(VALUES, min_size=1, max_size=4))
def test_several_segments_that_are_expanded_match(segments: list[str]) -> None:
    template = UriTemplate("a://{+path}/b")
    variables = {"path": "/".join(segments)}
    assert template.match(template.expand(variables)) == variables


PARTS = st.lists(st.sampled_from(["a", "/", "-", "ab"]), min_size=1, max_size=3)


@settings(deadline=None)
@given(st.data())
def test_matching_agrees_with_a_regular_expression(data: st.DataObject) -> None:
    """One that backtracks, and so finds a match wherever there is one."""
    names = "xyz"[: data.draw(st.integers(1, 3))]
    several = data.draw(st.sampled_from(["", *names]))
    template = pattern = ""
    for name in names:
        literal = "".join(data.draw(PARTS))
        template += f"{literal}{{{'+' * (name == several)}{name}}}"
        pattern += re.escape(literal) + ("([^/].*)" if name == several else "([^/]+)")
    literal = data.draw(st.sampled_from(["", "a", "/b", "-"]))
    template, pattern = template + literal, pattern + re.escape(literal)
    uri = data.draw(st.text(alphabet="ab/-", max_size=12))
    matched = UriTemplate(template).match(uri)
    assert (matched is not None) == (re.fullmatch(pattern, uri) is not None)


def test_expanding_encodes_what_a_segment_may_not_hold() -> None:
    template = UriTemplate("a://{x}/{+y}")
    assert template.expand({"x": "a/b c+é", "y": "d/e f"}) == (
        "a://a%2Fb%20c%2B%C3%A9/d/e%20f"
    )


def test_expanding_needs_every_variable() -> None:
    with pytest.raises(KeyError, match="x"):
        UriTemplate("a://{x}").expand({})
