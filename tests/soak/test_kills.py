"""The kills in their short form, and that a task which was lost is found out."""

from typing import Any, Final

import pytest

from tests.soak.kills import INTERRUPTED, Errand, main, outcome_of

_EVERY: Final = ["step-0", "step-1", "step-2"]
_MIDDLE: Final = f"{INTERRUPTED} in the middle of"
_COMPLETED: Final = {
    "status": "completed",
    "result": {"structuredContent": {"steps": _EVERY, "colour": "red"}},
}


def test_no_task_is_lost_or_done_twice_while_workers_are_killed(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Ours. What is printed has the seed, for the same moments again."""
    code = main(["--quick"])
    printed = capsys.readouterr().out
    assert (code, "BROKEN" in printed) == (0, False), printed


def failed(message: str, code: int = -32603) -> dict[str, Any]:
    """Return how a task stands that has failed."""
    return {"status": "failed", "error": {"code": code, "message": message}}


RIGHT: Final = [
    # id, tool, was its worker harmed, what was noted, how it ended, what that is
    ("done", "errand", False, 3, _COMPLETED, "completed"),
    ("done elsewhere", "errand", True, 3, _COMPLETED, "completed"),
    ("in the middle", "errand", True, 1, failed(f"{_MIDDLE} 'step-1'"), "failed"),
    ("after it", "errand", True, 2, failed(f"{_MIDDLE} 'step-1'"), "failed"),
    ("before the first", "errand", True, 0, failed(f"{_MIDDLE} 'step-0'"), "failed"),
    ("with its worker", "chore", True, 1, failed(INTERRUPTED), "failed"),
]

_OTHER: Final = {"structuredContent": {"steps": _EVERY, "colour": "blue"}}

WRONG: Final = [
    ("never", "errand", True, 1, {}),
    ("not ended", "errand", True, 1, {"status": "working"}),
    ("cancelled", "errand", True, 1, {"status": "cancelled"}),
    ("a step is missing", "errand", True, 2, _COMPLETED),
    ("another answer", "errand", True, 3, {"status": "completed", "result": _OTHER}),
    ("another error", "errand", True, 1, failed("Internal error")),
    ("another code", "chore", True, 1, failed(INTERRUPTED, -32000)),
    ("another step", "errand", True, 1, failed(f"{_MIDDLE} 'step-2'")),
    ("resumable, and not resumed", "errand", True, 1, failed(INTERRUPTED)),
    ("its worker is well", "errand", False, 1, failed(f"{_MIDDLE} 'step-1'")),
    ("so is this one", "chore", False, 1, failed(INTERRUPTED)),
]


@pytest.mark.parametrize(
    ("tool", "was_harmed", "steps", "ended", "outcome"),
    [
        pytest.param(*row, id=name)
        for name, *row in (*RIGHT, *((*row, None) for row in WRONG))
    ],
)
def test_what_became_of_a_task_is_told_from_what_can_t_be(
    tool: str,
    was_harmed: bool,  # noqa: FBT001  # a column
    steps: int,
    ended: dict[str, Any],
    outcome: str | None,
) -> None:
    errand = Errand(name="it", tool=tool, steps=3, colour="red", task_id="t")
    errand.was_harmed, errand.ended = was_harmed, ended
    assert outcome_of(errand, _EVERY[:steps]) == outcome


def test_a_step_out_of_order_is_found_out() -> None:
    errand = Errand(name="it", tool="chore", steps=3, colour="red", task_id="t")
    errand.ended = _COMPLETED
    assert outcome_of(errand, _EVERY[::-1]) is None
