"""What `from mcpkit import ...` offers, and nothing else."""

import types

import mcpkit


def test_all_is_complete() -> None:
    public = {
        name
        for name, value in vars(mcpkit).items()
        if not name.startswith("_") and not isinstance(value, types.ModuleType)
    }
    assert sorted(mcpkit.__all__) == sorted(public)
