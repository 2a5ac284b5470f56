"""Pages of a list, and the cursors between them.

Spec 2026-07-28, server/utilities/pagination.
"""

import base64
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from mcpkit import App
from mcpkit.errors import INVALID_PARAMS
from tests.calls import EVERY, call
from tests.wire import MODERN

KEY = "k" * 32
NAMES = ["a", "b", "c", "d", "e"]
INVALID = {"code": INVALID_PARAMS, "message": "Invalid cursor"}

LISTS = [
    # method, the key of its list, how a component is named in it
    ("tools/list", "tools", "name"),
    ("prompts/list", "prompts", "name"),
    ("resources/list", "resources", "name"),
    ("resources/templates/list", "resourceTemplates", "name"),
]


def paged(size: int | None = 2, key: str = KEY) -> App:
    """Make an app with five components of each kind."""
    app = App("tests", page_size=size, secret_key=key)
    for name in NAMES:
        add(app, name)
    return app


def add(app: App, name: str) -> None:
    app.add_tool(lambda: "", name=name)
    app.add_prompt(lambda: "", name=name)
    app.add_resource(f"r://{name}", lambda: "", name=name)
    app.add_resource(f"t://{name}/{{x}}", lambda x: x, name=name)


async def pages(
    app: App, method: str, key: str, *, at: str = MODERN
) -> list[list[str]]:
    """Follow the cursors of a list, and return the names on each page."""
    found = []
    params: dict[str, Any] = {}
    while True:
        result = await call(app, method, at=at, **params)
        found.append([item["name"] for item in result[key]])
        if "nextCursor" not in result:
            return found
        params = {"cursor": result["nextCursor"]}


@pytest.mark.parametrize("version", EVERY)
@pytest.mark.parametrize(("method", "key", "name"), LISTS)
async def test_pages_are_in_the_order_of_registration(
    method: str,
    key: str,
    name: str,  # noqa: ARG001  # a column of the table
    version: str,
) -> None:
    app = paged()
    expected = [["a", "b"], ["c", "d"], ["e"]]
    assert await pages(app, method, key, at=version) == expected
    # The second time they come out of what was kept.
    assert await pages(app, method, key, at=version) == expected


SIZES = [
    # page size, pages
    (1, [["a"], ["b"], ["c"], ["d"], ["e"]]),
    (4, [["a", "b", "c", "d"], ["e"]]),
    (5, [NAMES]),
    (6, [NAMES]),
    (None, [NAMES]),
]


@pytest.mark.parametrize(("size", "expected"), SIZES)
async def test_the_last_page_has_no_cursor(
    size: int | None, expected: list[list[str]]
) -> None:
    assert await pages(paged(size), "tools/list", "tools") == expected


async def cursor_of(app: App, method: str = "tools/list", *, at: str = MODERN) -> str:
    cursor = (await call(app, method, at=at))["nextCursor"]
    assert isinstance(cursor, str)
    return cursor


BAD = [
    # id, cursor
    ("empty", ""),
    ("garbage", "garbage"),
    ("a page in base64", base64.b64encode(b'{"page":-1}').decode()),
    ("a number", 5),
    ("zero", 0),
    ("false", False),
    ("an object", {}),
    ("beyond ASCII", "é"),
    ("half a surrogate pair", "\ud800"),
    ("very long", "x" * 100_000),
]


@pytest.mark.parametrize("version", EVERY)
@pytest.mark.parametrize(
    "cursor", [pytest.param(cursor, id=name) for name, cursor in BAD]
)
async def test_a_bad_cursor_is_refused(cursor: Any, version: str) -> None:
    """PAG-01."""
    assert await call(paged(), "tools/list", at=version, cursor=cursor) == INVALID


@pytest.mark.parametrize("size", [2, None])
async def test_no_cursor_and_null_are_the_first_page(size: int | None) -> None:
    """PAG-01."""
    app = paged(size)
    first = await call(app, "tools/list")
    assert await call(app, "tools/list", cursor=None) == first


@pytest.mark.parametrize(("method", "key", "name"), LISTS)
async def test_a_cursor_belongs_to_its_list(method: str, key: str, name: str) -> None:  # noqa: ARG001  # columns of the table
    """PAG-01."""
    app = paged()
    cursor = await cursor_of(app, method)
    for other, _, _ in LISTS:
        answer = await call(app, other, cursor=cursor)
        assert (answer == INVALID) == (other != method)


async def test_every_change_of_a_cursor_is_refused() -> None:
    app = paged()
    cursor = await cursor_of(app)
    for index in range(len(cursor) - 1):
        changed = "A" if cursor[index] != "A" else "B"
        tampered = cursor[:index] + changed + cursor[index + 1 :]
        assert await call(app, "tools/list", cursor=tampered) == INVALID


async def test_a_cursor_of_another_key_is_refused() -> None:
    cursor = await cursor_of(paged(key="x" * 32))
    assert await call(paged(), "tools/list", cursor=cursor) == INVALID


async def test_a_cursor_survives_additions_and_removals_before_it() -> None:
    """Ours: a cursor says after which one the page begins, and not where that is."""
    app = paged()
    cursor = await cursor_of(app)
    add(app, "f")
    app.remove_tool("a")
    following = await call(app, "tools/list", cursor=cursor)
    assert [tool["name"] for tool in following["tools"]] == ["c", "d"]
    app.remove_tool("b")
    assert await call(app, "tools/list", cursor=cursor) == INVALID


async def test_a_cursor_holds_in_every_era() -> None:
    app = paged()
    cursors = {await cursor_of(app, at=version) for version in EVERY}
    assert len(cursors) == 1


PROBE = """
import asyncio
from tests.methods.test_pagination import cursor_of, paged
print(asyncio.run(cursor_of(paged())))
"""


async def test_a_cursor_is_the_same_in_another_process_with_the_key() -> None:
    """Ours."""
    probe = subprocess.run(  # noqa: S603  # our own interpreter
        [sys.executable, "-c", PROBE],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        check=True,
    )
    assert probe.stdout.strip() == await cursor_of(paged())


async def test_no_cursor_makes_an_answer_be_kept_twice() -> None:
    """Ours: what is kept follows from the registry, and not from what clients send."""
    app = paged()
    cursor = await cursor_of(app)
    await call(app, "tools/list", cursor=cursor)
    kept = len(app.registry.answers)
    for index in range(1, 50):
        padded = await call(app, "tools/list", cursor=cursor + "!" * index)
        assert padded == INVALID
    assert len(app.registry.answers) == kept


async def test_a_cursor_is_one_of_its_app() -> None:
    """Ours: tokens are bound to the name of the app."""
    key = "k" * 32
    apps = [App(name, secret_key=key, page_size=1) for name in ("a", "b")]
    for app in apps:
        add(app, "x")
        add(app, "y")
    assert await call(apps[1], "tools/list", cursor=await cursor_of(apps[0])) == INVALID
