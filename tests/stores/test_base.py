"""What is kept of a task: its key, and the form that its values are kept in."""

import doctest

import pytest

import mcpkit.stores.base
from mcpkit.stores.base import decode_record, encode_record, position
from tests.stores.records import task


def test_the_examples_in_the_docstrings_run() -> None:
    assert doctest.testmod(mcpkit.stores.base).failed == 0


@pytest.mark.parametrize(
    "created", [0.0, 1_750_000_000.0, 1_750_000_000.1234567, 5e-324, 1e300]
)
def test_a_key_is_the_time_and_the_id(created: float) -> None:
    assert position(task("a b", created=created).key) == (created, "a b")


@pytest.mark.parametrize("key", ["", "t", "t 1", " 1", "0x1 t"])
def test_what_is_no_key_is_refused(key: str) -> None:
    with pytest.raises(ValueError, match="could not convert"):
        position(key)


def test_what_is_kept_shares_nothing_with_the_task() -> None:
    asked = {"q-1": {"method": "elicitation/create", "params": {"message": "Sure?"}}}
    row = encode_record(task(asked=asked))
    asked["q-1"]["params"] = {}
    asked["q-2"] = {}
    whole = {"q-1": {"method": "elicitation/create", "params": {"message": "Sure?"}}}
    assert decode_record(row) == task(asked=whole)
