"""The table of revisions, row by row."""

import ast
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

import mcpkit
from mcpkit.protocol.versions import (
    ASSUMED,
    LATEST_LEGACY,
    LATEST_MODERN,
    REVISIONS,
    Era,
    Revision,
    versions,
)
from tests.wire import LATER

ROWS = [
    # id, the whole row
    (
        "2026-07-28",
        Revision(
            version="2026-07-28",
            era="modern",
            batches=False,
            icons=True,
            definitions=True,
            elicitation=True,
            url_elicitation=True,
            elicitation_ids=False,
            rich_forms=True,
            sampling_tools=True,
            polling=False,
            tasks=False,
        ),
    ),
    (
        "2025-11-25",
        Revision(
            version="2025-11-25",
            era="legacy",
            batches=False,
            icons=True,
            definitions=True,
            elicitation=True,
            url_elicitation=True,
            elicitation_ids=True,
            rich_forms=True,
            sampling_tools=True,
            polling=True,
            tasks=True,
        ),
    ),
    (
        "2025-06-18",
        Revision(
            version="2025-06-18",
            era="legacy",
            batches=False,
            icons=False,
            definitions=True,
            elicitation=True,
            url_elicitation=False,
            elicitation_ids=False,
            rich_forms=False,
            sampling_tools=False,
            polling=False,
            tasks=False,
        ),
    ),
    (
        "2025-03-26",
        Revision(
            version="2025-03-26",
            era="legacy",
            batches=True,
            icons=False,
            definitions=False,
            elicitation=False,
            url_elicitation=False,
            elicitation_ids=False,
            rich_forms=False,
            sampling_tools=False,
            polling=False,
            tasks=False,
        ),
    ),
]


@pytest.mark.parametrize(("version", "row"), ROWS, ids=[name for name, _ in ROWS])
def test_a_revision_has_what_its_specification_gives_it(
    version: str, row: Revision
) -> None:
    """Spec 2026-07-28, changelog; 2025-11-25 and 2025-06-18, changelog."""
    assert REVISIONS[version] == row


def test_2024_11_05_is_served_as_2025_03_26() -> None:
    """Ours: it is negotiated, so that its clients are not turned away."""
    assert replace(REVISIONS["2024-11-05"], version="2025-03-26") == ASSUMED


def test_there_are_no_other_revisions() -> None:
    assert [*REVISIONS] == [*LATER] == [*(name for name, _ in ROWS), "2024-11-05"]


LISTS = [
    # id, era, versions
    ("both eras", None, ["2026-07-28", "2025-11-25", "2025-06-18", "2025-03-26"]),
    ("modern", "modern", ["2026-07-28"]),
    ("legacy", "legacy", ["2025-11-25", "2025-06-18", "2025-03-26"]),
]


@pytest.mark.parametrize(
    ("era", "expected"), [pytest.param(*row, id=name) for name, *row in LISTS]
)
def test_versions_lists_what_is_advertised_newest_first(
    era: Era | None, expected: list[str]
) -> None:
    """Spec 2026-07-28, basic/versioning: Protocol Version Negotiation."""
    assert versions(era) == expected


def test_the_revisions_that_others_fall_back_to() -> None:
    """Spec 2025-11-25, basic/lifecycle: Version Negotiation, and basic/transports."""
    assert (LATEST_MODERN.version, LATEST_LEGACY.version, ASSUMED.version) == (
        "2026-07-28",
        "2025-11-25",
        "2025-03-26",
    )


def test_the_table_cannot_be_written_to() -> None:
    with pytest.raises(TypeError, match="does not support item assignment"):
        REVISIONS["1900-01-01"] = ASSUMED  # type: ignore[index]  # the point


def test_no_other_module_names_a_version() -> None:
    """Ours: what differs between revisions is a field, never a comparison."""
    named = [
        f"{path.name}: {constant}"
        for path in Path(mcpkit.__file__).parent.rglob("*.py")
        if path.name != "versions.py"
        for constant in _strings(path)
        if constant in REVISIONS
    ]
    assert named == []


def _strings(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value
