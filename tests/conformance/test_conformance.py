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

# With a baseline, be it empty, warnings count as failures. The timeout is that of a
# scenario, in milliseconds.
STRICT: Final = (
    *("--expected-failures", str(HERE / "expected-failures.yml")),
    *("--timeout", "60000"),
)

FOLDER: Final = re.compile(r"server-(?P<scenario>.+)-\d{4}-\d\d-\d\dT[\d-]+Z\Z")

# A revision, how many scenarios the pinned suite has for it, and checks that decide.
LEGS = [("2026-07-28", 40, 152), ("2025-11-25", 33, 83), ("2025-06-18", 27, 56)]

# The scenarios of the tasks extension, and how many checks the pinned suite has in
# each.
TASKS: Final = {
    "tasks-lifecycle": 9,
    "tasks-capability-negotiation": 5,
    "tasks-wire-fields": 4,
    "tasks-request-state-removal": 3,
    "tasks-mrtr-input": 4,
    "tasks-request-headers": 5,
    "tasks-dispatch-and-envelope": 9,
    "tasks-status-notifications": 1,
    "tasks-required-task-error": 3,
    "tasks-mrtr-composition": 2,
}

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


@pytest.mark.parametrize(("revision", "scenarios", "successes"), LEGS)
def test_the_suite_finds_no_fault_and_leaves_nothing_out(
    url: str,
    environment: dict[str, str],
    tmp_path: Path,
    revision: str,
    scenarios: int,
    successes: int,
) -> None:
    """Ours. What it left out, the suite takes for passed."""
    completed = _run(
        [
            *("conformance", "server", "--url", url, *STRICT, "-o", str(tmp_path)),
            *("--suite", "all", "--spec-version", revision),
        ],
        environment,
    )
    assert completed.returncode == 0, _report(completed)
    checks = _read_checks(tmp_path)
    assert _without_success(checks) == []
    made = [check for scenario in checks.values() for check in scenario]
    succeeded = [check for check in made if check["status"] == "SUCCESS"]
    assert (len(checks), len(succeeded)) == (scenarios, successes)


def test_the_suite_finds_no_fault_in_tasks(
    url: str, environment: dict[str, str], tmp_path: Path
) -> None:
    """Spec ext-tasks, tasks. The suite has notifications yet to look at."""
    completed = _run(
        [
            *("conformance", "server", "--url", url, *STRICT, "-o", str(tmp_path)),
            *("--suite", "pending"),
        ],
        environment,
    )
    assert completed.returncode == 0, _report(completed)
    checks = {
        scenario: made
        for scenario, made in _read_checks(tmp_path).items()
        if scenario.startswith("tasks-")
    }
    unwritten = "tasks-status-notifications"
    assert _without_success(checks) == [f"{unwritten}:{unwritten}: SKIPPED", unwritten]
    assert {scenario: len(made) for scenario, made in checks.items()} == TASKS


@pytest.mark.parametrize("revision", ["2026-07-28", "2025-11-25"])
def test_the_requirements_of_a_revision_are_met(
    url: str, environment: dict[str, str], revision: str
) -> None:
    """Ours: the frozen lists by which servers are compared."""
    completed = _run(
        [
            *("conformance", "server", "--url", url, *STRICT),
            *("--requirements", revision),
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


def _without_success(checks: Checks) -> list[str]:
    """Return the checks that failed or were skipped, and scenarios that made none."""
    undone = [
        f"{scenario}:{check['id']}: {check['status']}"
        for scenario, made in checks.items()
        for check in made
        if check["status"] not in ("SUCCESS", "INFO")
    ]
    idle = [
        scenario
        for scenario, made in checks.items()
        if all(check["status"] != "SUCCESS" for check in made)
    ]
    return undone + idle
