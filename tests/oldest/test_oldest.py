"""The oldest releases that pyproject.toml allows do what the newest do."""

import subprocess
from pathlib import Path
from typing import Final

import pytest

from tests.clients.processes import missing

ROOT: Final = Path(__file__).parent.parent.parent
PYTHON: Final = ROOT / ".venv-oldest" / "bin" / "python"
ASKED: Final = (ROOT / "tests" / "oldest.txt").read_text(encoding="utf-8").split()


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the oldest environment's Python, which `make install` sets up."""
    if not PYTHON.exists():
        missing("the environment of the oldest releases")
    return subprocess.run(  # noqa: S603  # the arguments are ours
        [PYTHON, *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def test_the_oldest_environment_has_the_versions_that_are_asked_for() -> None:
    names = [line.partition("==")[0] for line in ASKED]
    script = (
        "import sys, importlib.metadata as m\n"
        "print(*(f'{name}=={m.version(name)}' for name in sys.argv[1:]), sep='\\n')"
    )
    assert run("-c", script, *names).stdout.split() == ASKED


@pytest.mark.parametrize(
    "file",
    [
        "tests/http/test_embedding.py",
        "tests/test_crypto.py",
        "tests/test_dependencies.py",
        "tests/test_docstrings.py",
        "tests/test_given_schemas.py",
        "tests/test_isolation.py",
        "tests/test_otel.py",
        "tests/test_outputs.py",
        "tests/test_recursion.py",
        "tests/test_schema_property.py",
        "tests/test_signature.py",
    ],
)
def test_what_others_make_possible_holds_on_the_oldest_releases(file: str) -> None:
    outcome = run("-m", "pytest", "-q", "-p", "no:cacheprovider", file)
    assert outcome.returncode == 0, outcome.stdout + outcome.stderr
    assert "skipped" not in outcome.stdout
