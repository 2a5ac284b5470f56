"""The official conformance suite, run against examples/everything.py."""

import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import pytest

from tests.clients.processes import missing, serving

HERE: Final = Path(__file__).parent
PROGRAMS: Final = HERE / "node_modules" / ".bin"

ENTRY: Final = re.compile(r"^  - (\S+)$", re.MULTILINE)
FOLDER: Final = re.compile(r"server-(?P<scenario>.+)-\d{4}-\d\d-\d\dT[\d-]+Z\Z")

# revision, how many scenarios the pinned suite has for it
LEGS = [("2026-07-28", 40), ("2025-11-25", 33), ("2025-06-18", 27)]

Checks = Mapping[str, list[dict[str, Any]]]


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with serving("examples.everything:app") as address:
        yield address


@pytest.fixture(scope="module")
def environment() -> dict[str, str]:
    path = f"{PROGRAMS}{os.pathsep}{os.environ['PATH']}"
    if not (PROGRAMS / "conformance").exists():
        missing("the conformance suite of tests/conformance/package.json")
    node = shutil.which("node", path=path)
    if node is None:
        missing("Node 22")
    version = _run([node, "--version"], os.environ).stdout
    if int(version.removeprefix("v").partition(".")[0]) < 22:
        missing(f"Node 22 (there is {version.strip()})")
    return {**os.environ, "PATH": path, "NO_COLOR": "1"}


@pytest.mark.parametrize(("revision", "scenarios"), LEGS)
def test_the_suite_finds_what_its_baseline_lists_and_nothing_else(
    url: str,
    environment: dict[str, str],
    tmp_path: Path,
    revision: str,
    scenarios: int,
) -> None:
    """Ours. With a baseline, warnings count as failures too."""
    baseline = HERE / f"expected-failures.{revision}.yml"
    completed = _run(
        [
            *("conformance", "server", "--url", url),
            *("--suite", "all", "--spec-version", revision, "--timeout", "30000"),
            *("--expected-failures", str(baseline), "-o", str(tmp_path)),
        ],
        environment,
    )
    assert completed.returncode == 0, _report(completed)
    checks = _read_checks(tmp_path)
    assert len(checks) == scenarios
    # The suite ignores an entry that names nothing, so that a typo would stay.
    assert _entries(baseline) == _named(checks, {"FAILURE", "WARNING"})
    # The suite takes what it left out for passed.
    skipped = HERE / f"skipped.{revision}.yml"
    assert _entries(skipped) == _undecided(checks)


def test_the_requirements_of_the_newest_revision_are_met(
    url: str, environment: dict[str, str], tmp_path: Path
) -> None:
    """Ours: the frozen list by which servers are compared."""
    completed = _run(
        [
            *("conformance", "server", "--url", url),
            *("--requirements", "2026-07-28", "--timeout", "30000"),
            *("--expected-failures", str(HERE / "expected-failures.2026-07-28.yml")),
            *("-o", str(tmp_path)),
        ],
        environment,
    )
    assert completed.returncode == 0, _report(completed)


def _run(
    command: list[str], environment: Mapping[str, str]
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(  # noqa: S603  # the command is ours
        command,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def _report(completed: subprocess.CompletedProcess[str]) -> str:
    _, found, summary = completed.stdout.partition("=== SUMMARY ===")
    return summary if found else completed.stdout + completed.stderr


def _read_checks(results: Path) -> Checks:
    """Return the checks of each scenario that ran, by its name."""
    checks = {}
    for file in results.glob("*/checks.json"):
        folder = FOLDER.match(file.parent.name)
        assert folder is not None, file
        checks[folder["scenario"]] = json.loads(file.read_text(encoding="utf-8"))
    return checks


def _entries(file: Path) -> set[str]:
    return set(ENTRY.findall(file.read_text(encoding="utf-8")))


def _named(checks: Checks, statuses: set[str]) -> set[str]:
    """Return the scenarios that have a check with one of these statuses."""
    return {
        scenario
        for scenario, made in checks.items()
        if any(check["status"] in statuses for check in made)
    }


def _undecided(checks: Checks) -> set[str]:
    """Return the checks that were skipped, and the scenarios that decided nothing."""
    skipped = {
        f"{scenario}:{check['id']}"
        for scenario, made in checks.items()
        for check in made
        if check["status"] == "SKIPPED"
    }
    decided = _named(checks, {"SUCCESS", "FAILURE", "WARNING"})
    return skipped | (checks.keys() - decided)
