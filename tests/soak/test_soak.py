"""The soak in its short form, and that a server which is not well is found out."""

from dataclasses import replace
from typing import Any

import pytest

from tests.soak.__main__ import main
from tests.soak.report import (
    HELD,
    STOPS_IN,
    Plan,
    Results,
    Sample,
    as_text,
    checks,
    growth,
)

_MB = 1024 * 1024
_PLAN = Plan(streams=10, rate=2, seconds=100, warm_up=50, stopping=5)


def test_streams_and_calls_are_served_in_flat_memory_and_leave_nothing(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Ours. The table is in the output of a run that fails."""
    code = main(["--quick", "--only", "streams"])
    table = capsys.readouterr().out
    assert (code, "BROKEN" in table) == (0, False), table


def test_a_server_that_is_well_passes_every_check() -> None:
    results = _results()
    assert [check.name for check in checks(results) if not check.holds] == []
    assert "BROKEN" not in as_text(results)


@pytest.mark.parametrize(
    ("broken", "changes"),
    [
        pytest.param(
            ["errors"],
            {"failures": {"read: TimeoutError": 1}},
            id="a call fails",
        ),
        pytest.param(
            ["calls answered well"],
            {"seconds": {"read": [0.01] * 189}},
            id="calls are not made",
        ),
        pytest.param(
            ["changes told to all streams"],
            {"lags": [0.01] * 89},
            id="streams are told too late",
        ),
        pytest.param(
            ["handlers left alone: ended"],
            {"cancelled": 7, "after": {"begun": 7, "ended": 6}},
            id="a handler goes on",
        ),
        pytest.param(
            ["subscriptions when all have gone"],
            {"after": {"subscriptions": 4}},
            id="a stream is left",
        ),
        pytest.param(
            ["fds when all have gone"],
            {"after": {"fds": 2}},
            id="a socket is not the same",
        ),
        pytest.param(
            ["streams completed at the stop"],
            {"completed": 4},
            id="a stream ends without its result",
        ),
        pytest.param(
            ["seconds until it stopped"],
            {"stopped_in": STOPS_IN + 0.1},
            id="it stops late",
        ),
        pytest.param(["seconds until it stopped"], {"stopped_in": None}, id="never"),
        pytest.param(
            ["lines of the server's log"],
            {"said": "Task was destroyed but it is pending!"},
            id="it complains",
        ),
    ],
)
def test_a_server_that_is_not_well_fails_one_check(
    broken: list[str], changes: dict[str, Any]
) -> None:
    results = _results(**changes)
    assert [check.name for check in checks(results) if not check.holds] == broken
    assert as_text(results).count("BROKEN") == 1


@pytest.mark.parametrize(
    ("rss", "blocks", "broken"),
    [
        pytest.param(0, 0, [], id="flat"),
        pytest.param(0.1, 0, ["growth of memory, MB"], id="memory"),
        pytest.param(
            0, 300, ["growth of Python's memory blocks, thousands"], id="blocks"
        ),
    ],
)
def test_memory_that_grows_is_found_out(
    rss: float, blocks: int, broken: list[str]
) -> None:
    samples = [_sample(at, rss * at, blocks * at) for at in range(100)]
    results = replace(_results(), samples=samples)
    assert [check.name for check in checks(results) if not check.holds] == broken


def test_what_grows_while_the_server_warms_up_is_no_growth() -> None:
    samples = [_sample(at, min(at, 49)) for at in range(100)]
    assert all(check.holds for check in checks(replace(_results(), samples=samples)))


def test_growth_is_that_of_the_line_and_not_of_an_outlier() -> None:
    points = [(float(at), 10.0 + at) for at in range(101)]
    assert growth(points) == pytest.approx(100)
    points[50] = (50.0, 1000.0)
    assert growth(points) == pytest.approx(100)


def test_the_text_says_what_went_wrong() -> None:
    text = as_text(_results(failures={"read: TimeoutError: ": 3}, said="oh no"))
    assert "\nWhat went wrong:\n3 times: read: TimeoutError: \n" in text
    assert text.rstrip().endswith("What the server said:\noh no")


def _results(
    after: dict[str, int] | None = None, cancelled: int = 7, **changes: Any
) -> Results:
    """Return what a server leaves that is well, but for some changes."""
    given: dict[str, Any] = {
        "plan": _PLAN,
        "before": _sample(0),
        "opened": _sample(0),
        "samples": [_sample(at) for at in range(100)],
        "after": _sample(100, **(after or {})),
        "seconds": {"read": [0.01] * 200},
        "cancelled": cancelled,
        "lags": [0.01] * 99,
        "told": 990,
        "stopped_in": 0.2,
        "completed": _PLAN.stopping,
        **changes,
    }
    return Results(**given)


def _sample(at: float, grown: float = 0, blocks: int = 0, **counts: int) -> Sample:
    held = {**dict.fromkeys(HELD, 3), "begun": 7, "ended": 7}
    return Sample(
        at=at,
        rss=int((60 + grown) * _MB),
        cpu=at / 10,
        calls=int(at),
        counts={"blocks": 250_000 + blocks, **held, **counts},
    )
