"""Parts of a total that the cluster has for another number of brokers."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from reconciler.model.cluster import Prune, Scope
from reconciler.model.quota import ClusterTotal, Proportional, QuotaKey
from reconciler.model.state import DesiredEntity, DesiredQuota
from reconciler.planning.diff import brokers_of_part, difference, is_leader_part
from reconciler.planning.drift import compare
from tests.builders import current, desired, span, user

KEY = QuotaKey.PRODUCER_BYTE_RATE


def total(value: float, *, brokers: int, name: str = "alice") -> DesiredEntity:
    quota = DesiredQuota(
        value=float(value // brokers), source=span(), text="total", unit=ClusterTotal(value=value, brokers=brokers)
    )
    return DesiredEntity(entity=user(name), quotas={KEY: quota}, source=span())


@given(value=st.integers(10**6, 2**53), before=st.integers(2, 900), now=st.integers(1, 900))
def test_a_part_names_the_number_of_brokers_that_it_was_computed_for(value: int, before: int, now: int) -> None:
    assume(before != now)

    assert brokers_of_part(ClusterTotal(value=float(value), brokers=now), float(value // before)) == before


@pytest.mark.parametrize("value", [None, 0.0, 60.0, 61.0, 25.0, float("nan"), float("inf"), 20.0])
def test_a_value_that_is_no_part_names_no_brokers(value: float | None) -> None:
    assert brokers_of_part(ClusterTotal(value=60.0, brokers=3), value) is None


@pytest.mark.parametrize(
    ("brokers", "live", "before"),
    [(3, 25.0, 2), (4, 20.0, 3), (2, 25.0, None), (1, 25.0, None), (2, 20.0, 3), (3, 30.0, None), (3, 24.0, None)],
)
def test_the_limit_of_each_broker_counts_as_the_part_of_few_brokers(brokers: int, live: float, before: int | None) -> None:
    assert brokers_of_part(ClusterTotal(value=60.0, per_broker=25.0, brokers=brokers), live) == before


def test_a_total_that_was_not_divided_is_never_compared() -> None:
    wanted = replace(desired(total(60.0, brokers=3)), with_units=(user("alice"),))

    with pytest.raises(ValueError, match="user=alice"):
        difference(wanted, current(), scope=Scope(), prune=Prune.NEVER)
    with pytest.raises(ValueError, match="user=alice"):
        compare(wanted, {}, None, scope=Scope(), prune=Prune.NEVER)


@given(value=st.integers(10**6, 2**53), partitions=st.integers(1, 900), led=st.integers(1, 900))
def test_every_part_by_leaders_is_known_as_one(value: int, partitions: int, led: int) -> None:
    assume(led <= partitions)
    unit = Proportional(value=float(value), partitions=partitions)

    assert is_leader_part(unit, float(value * led // partitions))


@pytest.mark.parametrize("value", [0.0, -20.0, 61.0, 20.5, 25.0, float("nan"), float("inf")])
def test_a_value_that_is_no_part_by_leaders_is_the_authors(value: float) -> None:
    assert not is_leader_part(Proportional(value=60.0, partitions=3), value)
    assert not is_leader_part(Proportional(value=60.0), 20.0)
