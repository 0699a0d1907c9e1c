"""Rows of a backtest: altered ones, and the worst of each quota group."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.model import BucketVerdict, Verdict, worst_of_buckets
from reconciler.traffic.judging.verdicts import alter_verdict
from tests.support.backtest_reports import verdict

CHANGES = {
    "verdict": st.sampled_from(Verdict),
    "reason": st.none() | st.text(),
    "recommended": st.none() | st.floats(0, 1e9),
    "margin": st.floats(0, 1),
    "tags": st.lists(st.tuples(st.text(), st.text())).map(tuple),
}


@given(st.fixed_dictionaries({}, optional=CHANGES))
def test_an_altered_row_is_one_that_was_replaced(changes: dict[str, Any]) -> None:
    row = verdict(user="bob", seconds_over=3)
    before = dataclasses.astuple(row)
    altered = alter_verdict(row, **changes)
    assert altered == dataclasses.replace(row, **changes)
    assert (type(altered), dataclasses.astuple(row)) == (BucketVerdict, before)
    with pytest.raises(dataclasses.FrozenInstanceError):
        altered.margin = 1.0  # type: ignore[misc]  # it is what the test is about


def test_a_row_has_no_field_that_rows_do_not_have() -> None:
    with pytest.raises(KeyError, match="recomended"):
        alter_verdict(verdict(), recomended=1.0)


def test_the_worst_row_of_a_quota_group_is_its_first() -> None:
    first = verdict(user="a", broker=2)
    others = [
        verdict(user="a", broker=1),
        verdict(user="b"),
        verdict(user="a", key="consumer_byte_rate"),
        verdict(user="a", client_id="app"),
        verdict(user="a", tags=(("tier", "gold"),)),
        verdict(user="a", undecided=True),
    ]
    assert worst_of_buckets([first, *others]) == (first, *others[1:])
    assert len({row.place for row in [first, *others]}) == len(others) + 1
