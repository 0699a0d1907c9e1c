"""Brokers that are lost."""

from __future__ import annotations

import pytest

from reconciler.errors import UsageError
from reconciler.features.simulating.broker_changes import without_brokers


def test_a_lost_brokers_traffic_goes_to_the_others() -> None:
    change = without_brokers((1, 2, 3), {3})
    assert (change.before, change.after, change.title) == ((1, 2, 3), (1, 2), "without broker 3")
    assert change.shares == {3: ((1, 0.5), (2, 0.5))}


@pytest.mark.parametrize(
    ("lost", "message"), [({5}, "the history has no such broker. Its brokers are 1, 2"), ({1, 2}, "names every broker")]
)
def test_a_broker_that_cannot_leave_is_refused(lost: set[int], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        without_brokers((1, 2), lost)
