"""What a backtest predicts of a plan: the share of each changed quota group, and that it is of the values that are written."""

from __future__ import annotations

import pytest

from reconciler.errors import StalePlanError
from reconciler.model import Action, Change, KeyChange, Reason, Verdict
from reconciler.policy import predictions_of
from tests.builders import user
from tests.support.backtest_reports import report_of, verdict

KEY = "producer_byte_rate"


def lowered(after: float | None, name: str = "alice") -> Change:
    key = KeyChange(key=KEY, before=300_000.0, after=after, reason=Reason.VALUE_DIFFERS)
    return Change(entity=user(name), action=Action.UPDATE, keys=(key,))


def test_the_worst_broker_of_each_changed_group_is_the_prediction() -> None:
    rows = (
        verdict(broker=2, verdict=Verdict.THROTTLED, seconds_over=400, seconds_possible=600, peak=120_000.0),
        verdict(broker=1),
        verdict(user="bob", entity=user("bob")),
    )

    (made,) = predictions_of(report_of(*rows), [lowered(100_000.0)])

    assert (made.entity, made.bucket.user, made.verdict) == (user("alice"), "alice", Verdict.THROTTLED)
    assert (made.share, made.share_at_most, made.peak) == (0.1, 0.15, 120_000.0)
    assert made.accepted == pytest.approx(0.16)


def test_a_clear_group_accepts_one_part_in_a_hundred() -> None:
    (made,) = predictions_of(report_of(verdict()), [lowered(100_000.0)])
    assert (made.share_at_most, made.accepted) == (0.0, 0.01)


@pytest.mark.parametrize("after", [90_000.0, None])
def test_a_backtest_of_another_value_is_refused(after: float | None) -> None:
    with pytest.raises(StalePlanError, match=r"the backtest judged producer_byte_rate of user=alice at 97\.66 KiB/s"):
        predictions_of(report_of(verdict()), [lowered(after)])


def test_a_group_that_no_change_limits_is_not_predicted() -> None:
    assert predictions_of(report_of(verdict(entity=None, limit_after=None), verdict()), [lowered(5.0, "carol")]) == ()
