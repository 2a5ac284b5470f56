"""URI templates: which URI is theirs, and what their variables hold.

Spec 2026-07-28, server/resources: Resource Templates, and Security
Considerations; RFC 6570, of which the subset is ours.
"""

import doctest
import re
import time
from typing import Any

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
    ("a query in the text", "a://b?c={x}", "a://b?c=d", {"x": "d"}),
    ("a whole URI", "get://{+url}", "get://a.b/c?d=e#f", {"url": "a.b/c?d=e#f"}),
    ("an encoded slash among several", "f://{+path}", "f://a%2Fb", {"path": "a/b"}),
    ("segments", "f://x{/names*}", "f://x/a/b%20c", {"names": ["a", "b c"]}),
    ("no segments", "f://x{/names*}", "f://x", {"names": []}),
    (
        "segments behind an authority",
        "f://{/names*}",
        "f:///a/b",
        {"names": ["a", "b"]},
    ),
    ("segments alone", "{/names*}", "/a", {"names": ["a"]}),
    ("segments and nothing else", "{/names*}", "", {"names": []}),
    (
        "segments behind a variable",
        "f://{host}{/names*}",
        "f://a/b/c",
        {"host": "a", "names": ["b", "c"]},
    ),
    (
        "segments before a text",
        "f://x{/names*}/edit/{page}",
        "f://x/edit/edit/3",
        {"names": ["edit"], "page": "3"},
    ),
    (
        "no segments before a text",
        "f://{x}{/names*}/edit",
        "f://edit/edit",
        {"x": "edit", "names": []},
    ),
    ("a query", "s://x{?q}", "s://x?q=a", {"q": "a"}),
    ("no query", "s://x{?q}", "s://x", {}),
    ("a query in another order", "s://x{?q,r}", "s://x?r=1&q=2", {"q": "2", "r": "1"}),
    ("a part of a query", "s://x{?q,r}", "s://x?r=1", {"r": "1"}),
    ("an empty value", "s://x{?q}", "s://x?q=", {"q": ""}),
    ("a name without a value", "s://x{?q}", "s://x?q", {"q": ""}),
    ("an encoded name", "s://x{?q}", "s://x?%71=1", {"q": "1"}),
    ("a value with equals signs", "s://x{?q}", "s://x?q=a=b", {"q": "a=b"}),
    ("a value with a question mark", "s://x{?q}", "s://x?q=a?b", {"q": "a?b"}),
    ("a query that is repeated", "s://x{?q}", "s://x?q=1&q=2", {"q": "2"}),
    ("URI-04 a plus in a query", "s://x{?q}", "s://x?q=a+b", {"q": "a+b"}),
    ("URI-04 decoded once in a query", "s://x{?q}", "s://x?q=%2541", {"q": "%41"}),
    ("any text in a query", "s://x{?q}", "s://x?q=../AC%2FDC%5C", {"q": "../AC/DC\\"}),
    ("commas that are text", "s://x{?q}", "s://x?q=a,b", {"q": "a,b"}),
    ("a list in a query", "s://x{?q*}", "s://x?q=a&q=b,c", {"q": ["a", "b,c"]}),
    ("a list of one", "s://x{?q*}", "s://x?q=a", {"q": ["a"]}),
    (
        "a query behind variables",
        "s://{x}/{+y}{?q}",
        "s://a/b/c?q=d",
        {"x": "a", "y": "b/c", "q": "d"},
    ),
    (
        "a query behind segments",
        "s://x{/y*}{?q}",
        "s://x/a?q=b",
        {"y": ["a"], "q": "b"},
    ),
    ("behind a fixed query", "s://x?k=1{&q}", "s://x?k=1&q=2", {"q": "2"}),
    ("a fixed query alone", "s://x?k=1{&q}", "s://x?k=1", {}),
    ("a fixed query in another order", "s://x?k=1{&q}", "s://x?q=2&k=1", {"q": "2"}),
    ("a fixed pair and its name", "s://x?k=1{&k}", "s://x?k=1&k=2", {"k": "2"}),
    ("a variable and a fixed query", "{x}?k=1{&q}", "a?k=1", {"x": "a"}),
    (
        "two expressions of a query",
        "s://x{?q}{&r}",
        "s://x?r=1&q=2",
        {"q": "2", "r": "1"},
    ),
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
    ("a drive, among several", "f://{+path}", "f://C:/secret"),
    ("a query that the template lacks", "a://{x}", "a://b?c=d"),
    ("a fragment", "a://{x}", "a://b#c"),
    ("one segment is missing", "f://{x}/{y}{/names*}", "f://a"),
    ("a slash at the end of segments", "f://x{/names*}", "f://x/a/"),
    ("an empty segment", "f://x{/names*}", "f://x/a//b"),
    ("segments and another text", "f://x{/names*}", "f://xa/b"),
    ("segments and a text that is missing", "f://x{/names*}/edit", "f://x/a"),
    ("segments, and the text before is missing", "f://{x}/y{/names*}", "f://y"),
    ("URI-01 the folder above, a segment", "f://x{/names*}", "f://x/a/.."),
    ("URI-01 an encoded slash in a segment", "f://x{/names*}", "f://x/a%2Fb"),
    ("URI-01 a backslash in a segment", "f://x{/names*}", "f://x/a%5Cb"),
    ("URI-01 NUL in a segment", "f://x{/names*}", "f://x/%00"),
    ("URI-04 no UTF-8 in a segment", "f://x{/names*}", "f://x/%ff"),
    ("an unknown name in a query", "s://x{?q}", "s://x?r=1"),
    ("a known and an unknown name", "s://x{?q}", "s://x?q=1&r=1"),
    ("a query of nothing", "s://x{?q}", "s://x?"),
    ("a pair of nothing", "s://x{?q}", "s://x?q=1&"),
    ("a fragment behind a query", "s://x{?q}", "s://x?q=1#a"),
    ("another case in a query", "s://x{?q}", "s://x?Q=1"),
    ("URI-01 NUL in a query", "s://x{?q}", "s://x?q=%00"),
    ("URI-04 no UTF-8 in a query", "s://x{?q}", "s://x?q=%ff"),
    ("URI-04 no UTF-8 in a name", "s://x{?q}", "s://x?%ff=1"),
    ("no fixed query", "s://x?k=1{&q}", "s://x?q=2"),
    ("no query where one is fixed", "s://x?k=1{&q}", "s://x"),
    ("another fixed query", "s://x?k=1{&q}", "s://x?k=2"),
]


@pytest.mark.parametrize(
    ("template", "uri", "variables"),
    [pytest.param(*row, id=name) for name, *row in MATCHED],
)
def test_a_uri_matches(
    template: str, uri: str, variables: dict[str, str | list[str]]
) -> None:
    assert UriTemplate(template).match(uri) == variables


@pytest.mark.parametrize(
    ("template", "uri"), [pytest.param(*row, id=name) for name, *row in UNMATCHED]
)
def test_a_uri_does_not_match(template: str, uri: str) -> None:
    assert UriTemplate(template).match(uri) is None


def no_form(expression: str, template: str) -> str:
    return (
        f"{expression!r} in the URI template {template!r} is none of {{name}}, "
        "{+name}, {/name*}, {?name} and {&name}"
    )


def ambiguous(template: str, why: str) -> str:
    return f"the URI template {template!r} is ambiguous: {why}"


BETWEEN = "it needs text between two variables"
SEVERAL = "it has more than one {+name} or {/name*}"
BEHIND = "behind {/name*} is a slash, the query, or nothing"
ONE_MARK = "begins with one ?; the variables behind it are {&name}"

MALFORMED = [
    # id, template, the whole message
    ("no variable", "a://b", "the URI template 'a://b' has no variables"),
    ("URI-06 nothing between two", "{a}{b}{c}", ambiguous("{a}{b}{c}", BETWEEN)),
    ("nothing before several", "x{a}{+b}", ambiguous("x{a}{+b}", BETWEEN)),
    ("nothing behind several", "x{+a}{b}", ambiguous("x{+a}{b}", BETWEEN)),
    ("URI-06 segments twice", "{/a*}{/b*}x", ambiguous("{/a*}{/b*}x", SEVERAL)),
    ("several twice", "x://{+a}/{+b}", ambiguous("x://{+a}/{+b}", SEVERAL)),
    ("several and segments", "x://{+a}{/b*}", ambiguous("x://{+a}{/b*}", SEVERAL)),
    ("a text behind segments", "x://y{/a*}.b", ambiguous("x://y{/a*}.b", BEHIND)),
    ("a variable behind segments", "x{/a*}{b}", ambiguous("x{/a*}{b}", BEHIND)),
    ("URI-12 a line break in a name", "x://{a\n}", no_form("{a\n}", "x://{a\n}")),
    (
        "URI-12 one name twice",
        "x://{a}/{a}",
        "the URI template 'x://{a}/{a}' names a variable twice",
    ),
    (
        "URI-12 one name in the path and in the query",
        "x://{a}{?a}",
        "the URI template 'x://{a}{?a}' names a variable twice",
    ),
    ("no name", "x://{}", no_form("{}", "x://{}")),
    ("a name that begins with a digit", "x://{1a}", no_form("{1a}", "x://{1a}")),
    ("a name beyond ASCII", "x://{é}", no_form("{é}", "x://{é}")),
    ("a label", "x://a{.b}", no_form("{.b}", "x://a{.b}")),
    ("a parameter", "x://a{;b}", no_form("{;b}", "x://a{;b}")),
    ("a fragment", "x://a{#b}", no_form("{#b}", "x://a{#b}")),
    ("a prefix", "x://{a:3}", no_form("{a:3}", "x://{a:3}")),
    ("two in one", "x://{a,b}", no_form("{a,b}", "x://{a,b}")),
    ("segments without a star", "x://a{/b}", no_form("{/b}", "x://a{/b}")),
    ("a star without a slash", "x://{a*}", no_form("{a*}", "x://{a*}")),
    (
        "a query that is not at the end",
        "x://a{?q}/b",
        "the query of the URI template 'x://a{?q}/b' is not at its end",
    ),
    (
        "a variable behind the query",
        "x://a{?q}{b}",
        "the query of the URI template 'x://a{?q}{b}' is not at its end",
    ),
    (
        "a query twice",
        "x://a{?q}{?r}",
        f"the query of the URI template 'x://a{{?q}}{{?r}}' {ONE_MARK}",
    ),
    (
        "a query behind a query",
        "x://a?b=c{?q}",
        f"the query of the URI template 'x://a?b=c{{?q}}' {ONE_MARK}",
    ),
    (
        "a query that does not begin",
        "x://a{&q}",
        f"the query of the URI template 'x://a{{&q}}' {ONE_MARK}",
    ),
    (
        "a query of both kinds",
        "x://a?b={c}{&q}",
        "the URI template 'x://a?b={c}{&q}' has a variable between ? and {&name}; "
        "write {?name} for all of them",
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
    ("segments", "{x}{/y*}/{z}/b", "/"),
    ("pairs of a query", "a{?x*,y}", "&x"),
    ("commas of a query", "a{?x}", "?x=,"),
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


ONES = st.text(max_size=20)
MANY = st.lists(ONES, max_size=4)

EXPANDED = [
    # id, template, variables and what each of them may be tried with
    ("two", "a://{x}/b/{y}", {"x": ONES, "y": ONES}),
    ("parts of a segment", "a://{x}-{y}.{z}", {"x": ONES, "y": ONES, "z": ONES}),
    ("several", "a://{+x}/b", {"x": ONES}),
    ("several and parts", "a://{x}.{+y}-{z}", {"x": ONES, "y": ONES, "z": ONES}),
    ("several of segments", "a://{+x}", {"x": MANY.map("/".join)}),
    ("segments", "a://b{/x*}", {"x": MANY}),
    ("segments between others", "a://{x}{/y*}/{z}", {"x": ONES, "y": MANY, "z": ONES}),
    ("a query", "a://{+x}{?y,z*}", {"x": ONES, "y": ONES, "z": MANY}),
    ("a query of lists", "a://b?c=d{&x,y*}", {"x": MANY, "y": MANY}),
]
LISTS = {"a query of lists": ["x"]}


@settings(deadline=None)
@pytest.mark.parametrize(
    ("text", "drawn", "lists"),
    [pytest.param(*row, LISTS.get(name, []), id=name) for name, *row in EXPANDED],
)
@given(data=st.data())
def test_what_is_expanded_matches(
    text: str, drawn: dict[str, Any], lists: list[str], data: st.DataObject
) -> None:
    template = UriTemplate(text, lists=lists)
    variables = {name: data.draw(values) for name, values in drawn.items()}
    try:
        uri = template.expand(variables)
    except ValueError:
        # It has a reason: one of the values can't stand where it would be.
        assert any(map(is_odd, variables.values()))
        return
    assert template.match(uri) == variables
    assert uri.isascii()


def is_odd(value: str | list[str]) -> bool:
    """Whether a value can be refused: it is empty, or could climb out of a place."""
    if isinstance(value, list):
        return not value or any(map(is_odd, value))
    segments = value.split("/")
    return (
        bool(set(value) & set("/\\\0"))
        or not {"", ".", ".."}.isdisjoint(segments)
        or value[1:2] == ":"
    )


PLACES = [
    # id, template, variables, URI
    ("encoded", "a://{x}", {"x": "b c+é?#"}, "a://b%20c%2B%C3%A9%3F%23"),
    ("several", "a://{+x}", {"x": "b c/(d)?"}, "a://b%20c/(d)%3F"),
    ("a percent sign", "a://{x}", {"x": "%2F"}, "a://%252F"),
    ("segments", "a://b{/x*}", {"x": ["c", "d e"]}, "a://b/c/d%20e"),
    ("no segments", "a://b{/x*}", {"x": []}, "a://b"),
    ("a query", "a://b{?x,y}", {"y": "1", "x": "2/3"}, "a://b?x=2%2F3&y=1"),
    ("no query", "a://b{?x,y}", {}, "a://b"),
    ("a list in the query", "a://b{?x*}", {"x": ["1", "2"]}, "a://b?x=1&x=2"),
    ("a fixed query", "a://b?c=d{&x}", {"x": "1"}, "a://b?c=d&x=1"),
    ("marks as they are", "a://{x}-{y}", {"x": "b", "y": "c-d.e"}, "a://b-c-d.e"),
    (
        "marks that would be the template's",
        "a://{x}-{y}",
        {"x": "b-c", "y": "d.e"},
        "a://b%2Dc-d%2Ee",
    ),
]


@pytest.mark.parametrize(
    ("template", "variables", "uri"),
    [pytest.param(*row, id=name) for name, *row in PLACES],
)
def test_variables_are_expanded_where_they_belong(
    template: str, variables: dict[str, str], uri: str
) -> None:
    """RFC 6570, section 3.2."""
    assert UriTemplate(template).expand(variables) == uri
    assert UriTemplate(template).match(uri) == variables


INEXPRESSIBLE = [
    # id, template, variables
    ("nothing", "a://{x}", {"x": ""}),
    ("a slash", "a://{x}", {"x": "b/c"}),
    ("the folder above", "a://{+x}", {"x": "b/../c"}),
    ("NUL", "a://b{?x}", {"x": "\0"}),
    ("an empty list in the query", "a://b{?x*}", {"x": []}),
    ("an empty segment", "a://b{/x*}", {"x": [""]}),
    ("what the template lacks", "a://{x}", {"x": "b", "y": "c"}),
    ("what is too long", "a://{x}", {"x": "b" * MAX_URI_LENGTH}),
]


@pytest.mark.parametrize(
    ("template", "variables"),
    [pytest.param(*row, id=name) for name, *row in INEXPRESSIBLE],
)
def test_what_no_uri_holds_is_refused(template: str, variables: Any) -> None:
    with pytest.raises(ValueError, match=re.escape(f"no URI of the form {template!r}")):
        UriTemplate(template).expand(variables)


COMMAS = [
    # id, template, URI, variables
    ("of a segment", "a://{x}", "a://1,2", {"x": ["1", "2"]}),
    ("of a query", "a://b{?x}", "a://b?x=1,2", {"x": ["1", "2"]}),
    ("of a query, repeated", "a://b{?x}", "a://b?x=1&x=2,3", {"x": ["1", "2", "3"]}),
    ("encoded", "a://{x}", "a://1%2C2", {"x": ["1,2"]}),
]


@pytest.mark.parametrize(
    ("template", "uri", "variables"),
    [pytest.param(*row, id=name) for name, *row in COMMAS],
)
def test_a_list_stands_between_commas(
    template: str, uri: str, variables: dict[str, str]
) -> None:
    """RFC 6570, section 2.4.2: without a star, values are joined with commas."""
    assert UriTemplate(template, lists={"x"}).match(uri) == variables


def test_a_list_has_no_slashes() -> None:
    with pytest.raises(ValueError) as caught:  # noqa: PT011  # the whole message follows
        UriTemplate("a://{+x}", lists={"x"})
    assert str(caught.value) == (
        "'{+x}' in the URI template 'a://{+x}' is no list; write {/x*} for segments"
    )


@pytest.mark.parametrize(
    "value", ["..%2Fa", "/etc/passwd", "a/../b", "C:%5Ca", "a%5Cb", "%00"]
)
def test_a_path_in_a_query_can_not_climb(value: str) -> None:
    """URI-01."""
    template = UriTemplate("a://b{?x,y}", paths={"x"})
    assert template.match(f"a://b?x={value}") is None
    assert template.match("a://b?x=c/d&y=..") == {"x": "c/d", "y": ".."}


SHAPES = [
    # id, templates of one shape, one of another
    ("another name", ["a://{x}/b", "a://{y}/b"], "a://{+x}/b"),
    ("segments", ["a://b{/x*}", "a://b{/y*}"], "a://b/{x}"),
    ("the order of a query", ["a://{x}{?q,r}", "a://{y}{?r,q}"], "a://{x}{?q}"),
]


@pytest.mark.parametrize(
    ("templates", "other"), [pytest.param(*row, id=name) for name, *row in SHAPES]
)
def test_templates_of_one_shape_match_alike(templates: list[str], other: str) -> None:
    shapes = {UriTemplate(template).shape for template in templates}
    assert len(shapes) == 1
    assert UriTemplate(other).shape not in shapes


def test_a_template_knows_its_variables() -> None:
    template = UriTemplate("a://{x}{/y*}{?z,t*}", lists={"x"})
    assert template.variables == ("x", "y", "z", "t")
    assert template.optional == ("z", "t")
    assert template.lists == {"x", "y", "t"}


RANKED = [
    # id, the more literal template, the less literal one
    ("more text", "a://b-{x}", "a://{x}"),
    ("one segment", "a://{x}", "a://{+x}"),
    ("more text before one segment", "a://b/{+x}", "a://{x}"),
]


@pytest.mark.parametrize(
    ("first", "second"), [pytest.param(*row, id=name) for name, *row in RANKED]
)
def test_the_more_literal_template_comes_first(first: str, second: str) -> None:
    assert UriTemplate(first).rank < UriTemplate(second).rank


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


def test_expanding_needs_every_variable() -> None:
    with pytest.raises(KeyError, match="x"):
        UriTemplate("a://{x}").expand({})
