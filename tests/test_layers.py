"""The import direction of mcpkit, as a table that is also a test."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent / "mcpkit"

# Floors from the ground up: a module imports only from rows above its own.
LAYERS: tuple[set[str], ...] = (
    {"mcpkit.errors", "mcpkit.shutdown"},
    {"mcpkit.protocol.sse", "mcpkit.protocol.versions", "mcpkit.telemetry"},
    {"mcpkit.protocol.methods", "mcpkit.protocol.jsonrpc"},
    {
        "mcpkit.protocol.content",
        "mcpkit.protocol.headers",
        "mcpkit.protocol.inputs",
        "mcpkit.protocol.sealing",
        "mcpkit.stores",
        "mcpkit.stores.base",
    },
    {"mcpkit.stores.memory", "mcpkit.stores.sqlite"},
    {"mcpkit.crypto", "mcpkit.protocol.era", "mcpkit.protocol.results"},
    {
        "mcpkit.protocol.capabilities",
        "mcpkit.protocol.legacy",
        "mcpkit.protocol.modern",
    },
    {"mcpkit.protocol", "mcpkit.protocol.notifications"},
    {
        "mcpkit.cleanup",
        "mcpkit.faults",
        "mcpkit.files",
        "mcpkit.hints",
        "mcpkit.markers",
        "mcpkit.replay",
        "mcpkit.threads",
        "mcpkit.uris",
    },
    {
        "mcpkit.blocks",
        "mcpkit.docstrings",
        "mcpkit.schemas",
        "mcpkit.recursion",
        "mcpkit.strict",
    },
    {"mcpkit.arguments", "mcpkit.forms", "mcpkit.keywords", "mcpkit.outputs"},
    {"mcpkit.questions", "mcpkit.validation"},
    {"mcpkit.context", "mcpkit.backends", "mcpkit.backends.base"},
    {"mcpkit.bus"},
    {"mcpkit.dependencies", "mcpkit.logs", "mcpkit.pending", "mcpkit.running"},
    {
        "mcpkit.directory",
        "mcpkit.returns",
        "mcpkit.signature",
    },
    {
        "mcpkit.backends.memory",
        "mcpkit.effects",
        "mcpkit.extensions",
        "mcpkit.extensions.base",
        "mcpkit.extensions.task_record",
        "mcpkit.extensions.task_run",
        "mcpkit.given",
        "mcpkit.variables",
        "mcpkit.visibility",
    },
    {"mcpkit.extensions.apps"},
    {"mcpkit.asking", "mcpkit.components"},
    {"mcpkit.extensions.task_wire"},
    {"mcpkit.registry"},
    {"mcpkit.subscriptions"},
    {"mcpkit.otel", "mcpkit.toolbox"},
    {"mcpkit.server"},
    {"mcpkit.methods.common", "mcpkit.observing"},
    {
        "mcpkit.methods.completion",
        "mcpkit.methods.discover",
        "mcpkit.methods.lifecycle",
        "mcpkit.methods.prompts",
        "mcpkit.methods.resources",
        "mcpkit.methods.subscriptions",
        "mcpkit.methods.tools",
    },
    {"mcpkit.extensions.legacy_tasks", "mcpkit.extensions.task_filter"},
    {"mcpkit.extensions.tasks"},
    {"mcpkit.methods"},
    {"mcpkit.methods.routing"},
    {"mcpkit.dispatch"},
    {"mcpkit.guard", "mcpkit.lifespan"},
    {"mcpkit.exchange"},
    {"mcpkit.listening"},
    {"mcpkit.endpoint"},
    {"mcpkit.router"},
    {"mcpkit.app"},
    {"mcpkit"},
    {"mcpkit.cli"},
)
RANK = {name: rank for rank, row in enumerate(LAYERS) for name in row}


def module_name(path: Path) -> str:
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imported(path: Path) -> Iterator[str]:
    """Every mcpkit module imported anywhere in a file, functions included."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom):
            base = node.module or ""
            for alias in node.names:
                full = f"{base}.{alias.name}"
                yield full if full in RANK else base
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


MODULES = {module_name(path): path for path in sorted(PACKAGE.rglob("*.py"))}


def test_every_module_has_a_layer() -> None:
    assert MODULES.keys() == RANK.keys()


@pytest.mark.parametrize("name", MODULES)
def test_a_module_imports_only_from_lower_layers(name: str) -> None:
    upward = [
        target
        for target in imported(MODULES[name])
        if target.partition(".")[0] == "mcpkit" and RANK[target] >= RANK[name]
    ]
    assert upward == []
