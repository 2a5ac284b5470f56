"""The official 1.x client has a task of 2025-11-25, which asks in the middle."""

import asyncio
import json
import subprocess
from collections.abc import Iterator

import pytest

from tests.clients.processes import ROOT, missing, serving
from tests.clients.test_tour import MCP1

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module")
def tasking() -> Iterator[str]:
    """The address of a server whose tools are tasks."""
    with serving("tests.clients.tasking:app") as url:
        yield url


def run_mcp1(url: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(  # noqa: S603  # the command is ours
        [MCP1, "-m", "tests.clients.mcp1_tasks", url],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


async def test_the_1_x_client_has_tasks_that_ask(tasking: str) -> None:
    """Spec 2025-11-25, basic/utilities/tasks."""
    if not MCP1.exists():
        missing(".venv-mcp1, the environment of the 1.x client,")
    completed = await asyncio.to_thread(run_mcp1, tasking)
    assert completed.returncode == 0, completed.stderr
    assert json.loads(completed.stdout) == {
        "declared": {"list": {}, "cancel": {}, "requests": {"tools": {"call": {}}}},
        "support": {"prepare": "required", "count": "optional"},
        "begun": ["working", 60_000],
        "last state": ["input_required", "The table is laid"],
        "asked": ["Who comes to Rome?"],
        "result": "Ada comes to Rome",
        "numbers": {"result": [1, 2, 3]},
        "refused": "The task can't be cancelled: it has ended",
        "cancelled": "cancelled",
        "listed": ["completed", "completed", "cancelled"],
    }
