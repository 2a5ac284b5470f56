"""What `from mcpkit import ...` offers, and nothing else."""

import subprocess
import sys
import types
from typing import Any, Final

import pytest

import mcpkit
from mcpkit.extensions.tasks import Tasks
from mcpkit.stores.memory import MemoryTaskStore
from mcpkit.stores.sqlite import SQLiteTaskStore

# What is loaded when it is asked for.
LATER: Final = {
    "MemoryTaskStore": MemoryTaskStore,
    "SQLiteTaskStore": SQLiteTaskStore,
    "Tasks": Tasks,
}


def test_all_is_complete() -> None:
    public = {
        name
        for name, value in vars(mcpkit).items()
        if not name.startswith("_") and not isinstance(value, types.ModuleType)
    }
    assert {*mcpkit.__all__} == public | LATER.keys()


@pytest.mark.parametrize(("name", "value"), LATER.items())
def test_what_few_need_is_loaded_when_it_is_asked_for(name: str, value: Any) -> None:
    assert getattr(mcpkit, name) is value


@pytest.mark.parametrize("module", ["sqlite3", "mcpkit.extensions.tasks"])
def test_what_few_need_is_not_loaded_for_those_who_do_without(module: str) -> None:
    program = f"import sys, mcpkit; mcpkit.App('a'); print({module!r} in sys.modules)"
    ran = subprocess.run(  # noqa: S603  # the command is ours
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert ran.stdout == "False\n"


def test_what_is_not_there_is_said_to_be_so() -> None:
    with pytest.raises(AttributeError, match="module 'mcpkit' has no attribute 'x'"):
        _ = mcpkit.x
