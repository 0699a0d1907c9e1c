"""Rows of a backtest: the worst of each quota group."""

from __future__ import annotations

from reconciler.model import group_verdicts
from tests.support.backtest_reports import verdict


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
    assert [group.worst for group in group_verdicts([first, *others])] == [first, *others[1:]]
    assert len({row.place for row in [first, *others]}) == len(others) + 1
