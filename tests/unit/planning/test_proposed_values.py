"""Which recommended values may be written."""

from __future__ import annotations

from reconciler.model import DesiredState, Verdict
from reconciler.planning import propose_values
from tests.builders import declared, desired, user
from tests.support.backtest_reports import report_of, verdict


def alice() -> DesiredState:
    return desired(declared(user("alice"), producer_byte_rate=100_000))


def test_a_value_of_clients_that_a_quota_throttled_when_recorded_is_marked_as_a_lower_bound() -> None:
    hit = {"verdict": Verdict.THROTTLED, "recommended": 153_600.0}
    rows = verdict(**hit), verdict(**hit, broker=2, censored=True)
    (safe,) = propose_values(report_of(rows[0]), alice()).values
    (bound,) = propose_values(report_of(*rows), alice()).values
    assert (safe.after, safe.is_lower_bound) == ("150KiB", False)
    assert (bound.after, bound.is_lower_bound) == ("150KiB", True)
