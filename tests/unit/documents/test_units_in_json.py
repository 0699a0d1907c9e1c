"""Computed values and leaders in documents: what is written is read back."""

from __future__ import annotations

import json
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.documents.reading import FieldError
from reconciler.documents.units import brokers_to_json, leaders_from_json, unit_from_json, unit_to_json
from reconciler.model.units import BudgetShare, ClusterTotal, LeaderSpread, QuotaUnit, Shares

VALUES = st.integers(1, 2**53).map(float)
COUNTS = st.decimals("0.001", 1000, places=3).map(Fraction)
PERCENTS = st.decimals("0.01", 100, places=2).map(Fraction)
UNITS = st.one_of(
    st.builds(ClusterTotal, value=VALUES, brokers=st.none() | st.integers(1, 1000)),
    st.builds(Shares, count=COUNTS, of=st.none() | VALUES, total=st.none() | COUNTS),
    st.builds(BudgetShare, percent=PERCENTS, of=st.none() | VALUES),
)
IDS = st.integers(0, 2**31 - 1)


@given(unit=UNITS)
def test_a_computed_value_is_read_as_it_was_written(unit: QuotaUnit) -> None:
    assert unit_from_json(json.loads(json.dumps(unit_to_json(unit)))) == unit


@given(partitions=st.dictionaries(IDS, st.integers(1, 10**6)), leaderless=st.integers(0, 10), absent=st.sets(IDS))
def test_leaders_are_read_as_they_were_written(partitions: dict[int, int], leaderless: int, absent: set[int]) -> None:
    leaders = LeaderSpread(partitions=tuple(sorted(partitions.items())), leaderless=leaderless, absent=tuple(sorted(absent)))

    assert leaders_from_json(json.loads(json.dumps(brokers_to_json((1, 2), leaders)))) == leaders
    assert leaders_from_json(brokers_to_json((1, 2), None)) is None


@given(partitions=st.dictionaries(IDS, st.integers(1, 10**6), min_size=1, max_size=20))
def test_the_factor_of_a_spread_is_one_only_when_it_is_even(partitions: dict[int, int]) -> None:
    factor = LeaderSpread(partitions=tuple(sorted(partitions.items()))).largest_share(len(partitions))

    assert factor is not None
    assert factor >= 1 - 1e-12
    assert (abs(factor - 1) < 1e-12) == (len(set(partitions.values())) == 1)


def test_a_value_without_a_known_field_is_refused() -> None:
    with pytest.raises(FieldError, match="clusterTotal"):
        unit_from_json({"of": 3})
