"""The benchmark itself: every subject answers rightly, and the tables render."""

import json

import pytest

from tests.bench import inprocess
from tests.bench.load import load
from tests.bench.report import TARGETS, Results, as_markdown
from tests.bench.samples import Samples, Summary, summarise
from tests.bench.sockets import checked_request, serving
from tests.bench.startup import IMPORT, MEMORY
from tests.bench.subjects import SUBJECTS
from tests.bench.work import CALL, WORKS


@pytest.fixture(scope="module")
def results() -> Results:
    """A run of a few requests each; what is not measured here is made up."""
    inprocesses = inprocess.run(inprocess.measure(rounds=2, seconds=0.0001))
    startups = Samples(
        {
            IMPORT: {"mcpkit": [11.0, 11.0], "fastapi": [10.0, 10.0]},
            MEMORY: {"mcpkit": [60.0, 60.0], "fastapi": [40.0, 40.0]},
        }
    )
    return Results(
        inprocess=inprocesses,
        growth=inprocess.run(inprocess.measure_growth(rounds=2, seconds=0.0001)),
        sockets=inprocesses,
        startup=startups,
    )


def test_every_subject_answers_rightly_and_is_measured(results: Results) -> None:
    """Ours: a wrong answer fails the measurement itself."""
    assert results.inprocess is not None
    assert {
        (work, key)
        for work, taken in results.inprocess.values.items()
        for key, values in taken.items()
        if len(values) == 2 and min(values) > 0
    } == {
        (work.name, key)
        for key, subject in SUBJECTS.items()
        for work in WORKS
        if work.name not in subject.blank
    }


def test_the_tables_show_every_target_and_every_subject(results: Results) -> None:
    table = as_markdown(results)
    shown = [target.name for target in TARGETS if f"| {target.name} |" in table]
    assert shown == [target.name for target in TARGETS]
    rows = [table.count(f"\n| {subject.name} |") for subject in SUBJECTS.values()]
    assert rows == [2] * len(SUBJECTS)
    assert "| import, in ms | 11 ±0% | 10 ±0% |" in table


def test_a_target_is_kept_or_missed(results: Results) -> None:
    table = as_markdown(results)
    kept = "import fastapi | ≤ 1.2 | 1.10 (1.10 to 1.10) | ok |"
    missed = "MB more than FastAPI's | ≤ 15 | 20.00 (20.00 to 20.00) | missed |"
    assert kept in table
    assert missed in table


def test_what_was_left_out_is_left_out_of_the_tables() -> None:
    table = as_markdown(Results())
    assert [line for line in table.splitlines() if line.startswith("#")] == [
        "### Targets"
    ]


def test_the_results_have_a_json_form(results: Results) -> None:
    kept = json.loads(json.dumps(results.as_json()))
    assert kept["startup"] == {
        IMPORT: {"mcpkit": [11.0, 11.0], "fastapi": [10.0, 10.0]},
        MEMORY: {"mcpkit": [60.0, 60.0], "fastapi": [40.0, 40.0]},
    }
    assert kept["targets"][-1] == {
        "target": "start-up: idle server, MB more than FastAPI's",
        "asked": "≤ 15",
        "measured": 20.0,
        "quartiles": [20.0, 20.0],
        "holds": False,
    }


@pytest.mark.parametrize(
    ("values", "summary"),
    [
        pytest.param([3.0], Summary(3.0, 3.0, 3.0), id="one"),
        pytest.param([1.0, 9.0, 2.0, 4.0, 3.0], Summary(3.0, 2.0, 4.0), id="outlier"),
    ],
)
def test_values_are_summarised_by_their_quartiles(
    values: list[float], summary: Summary
) -> None:
    assert summarise(values) == summary


def test_ratios_are_taken_round_by_round() -> None:
    samples = Samples({"call": {"a": [2.0, 40.0, 6.0], "b": [1.0, 20.0, 2.0]}})
    assert samples.ratio(("call", "a"), ("call", "b")) == Summary(2.0, 2.0, 2.5)
    assert samples.ratio(("call", "a"), ("call", "c")) is None


def test_a_server_is_loaded_and_stops() -> None:
    with serving("mcpkit") as (port, pid):
        rate = load(port, pid, checked_request(port, CALL, "mcpkit"), 0.5)
    assert (rate.requests > 0, rate.share > 0) == (True, True)


def test_an_answer_that_is_not_200_ends_the_load() -> None:
    with (
        serving("mcpkit") as (port, pid),
        pytest.raises(ConnectionError),
    ):
        load(port, pid, b"POST / HTTP/1.1\r\nhost: localhost\r\n\r\n", 30)
