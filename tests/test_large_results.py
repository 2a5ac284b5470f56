"""Large results take time and memory in proportion to their size."""

import gc
import time
import tracemalloc
from collections.abc import Callable
from typing import Any

import pytest
from pydantic import BaseModel

from mcpkit import App, Image, Response, dispatch
from tests.calls import V_2025_06_18, headers_of, request
from tests.wire import MODERN

SMALL, FACTOR = 250, 16


class Row(BaseModel):
    """A row of a table."""

    number: int
    name: str
    score: float | None = None
    tags: list[str] = []


class Table(BaseModel):
    """A table."""

    rows: list[Row]


def row(number: int) -> Row:
    score = None if number % 2 else number / 3
    return Row(number=number, name=f"name-{number}", score=score, tags=["a", "b_c"])


def rows(count: int) -> list[Row]:
    return [row(number) for number in range(count)]


def dicts(count: int) -> list[dict[str, Any]]:
    return [row(number).model_dump() for number in range(count)]


LARGE: list[tuple[str, Any, Callable[[int], Any]]] = [
    # id, annotation, what makes a value of a size
    ("a text", str, lambda count: "é-x" * 100 * count),
    ("a text in a list", list[str], lambda count: ["é-x" * 100 * count]),
    ("half a pair", str, lambda count: "x" * 100 * count + "\ud800"),
    ("models", list[Row], rows),
    ("a model of models", Table, lambda count: Table(rows=rows(count))),
    ("dicts for models", list[Row], dicts),
    ("dicts", list[dict[str, Any]], dicts),
    ("dicts, unannounced", Any, dicts),
    ("dicts with bytes, unannounced", Any, lambda count: [*dicts(count), b"\xff"]),
    ("numbers", list[float], lambda count: [number / 3 for number in range(count)]),
    ("integers", list[int], lambda count: list(range(count))),
    ("bytes", bytes, lambda count: b"\xff" * 100 * count),
    ("an image", Image, lambda count: Image(b"\xff" * 100 * count)),
    ("texts and images", Any, lambda count: ["x", Image(b"\xff")] * count),
    ("what is wrong", list[Row], lambda count: [{"number": "x"}] * count),
]


def returning(value: Any, hint: Any) -> App:
    app = App("tests")

    def t() -> Any:
        return value

    t.__annotations__ = {"return": hint}
    app.add_tool(t, thread=False)
    return app


async def answer(app: App, version: str) -> bytes:
    message = request("tools/call", name="t", at=version)
    replied = await dispatch(message, app, headers=headers_of(version))
    assert isinstance(replied, Response)
    return replied.body


async def seconds(app: App, version: str) -> float:
    """Return how long an answer takes of the processor, at best."""
    times = []
    # What it takes to look for garbage depends on all that other tests left.
    gc.disable()
    try:
        for _ in range(3):
            started = time.process_time()
            await answer(app, version)
            times.append(time.process_time() - started)
    finally:
        gc.enable()
    return min(times)


@pytest.mark.parametrize("version", [MODERN, V_2025_06_18])
@pytest.mark.parametrize(
    ("hint", "make"), [pytest.param(*it, id=name) for name, *it in LARGE]
)
async def test_a_large_result_takes_time_in_proportion(
    hint: Any, make: Callable[[int], Any], version: str
) -> None:
    """Ours. What is quadratic would take 256 times as long."""
    small = await seconds(returning(make(SMALL), hint), version)
    large = await seconds(returning(make(SMALL * FACTOR), hint), version)
    assert large < 5 * FACTOR * max(small, 0.0005)


@pytest.mark.parametrize("version", [MODERN, V_2025_06_18])
@pytest.mark.parametrize(
    ("hint", "make"), [pytest.param(*it, id=name) for name, *it in LARGE]
)
async def test_a_large_result_takes_memory_in_proportion(
    hint: Any, make: Callable[[int], Any], version: str
) -> None:
    """Ours."""
    app = returning(make(SMALL * FACTOR), hint)
    size = len(await answer(app, version))
    tracemalloc.start()
    try:
        await answer(app, version)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 20 * max(size, 100_000)
