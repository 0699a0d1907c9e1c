"""Computed values and leaders in documents: what is written is read back."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.documents import VALUES
from reconciler.documents.kinds import FieldError
from reconciler.model.quota import ClusterTotal, LeaderSpread, QuotaUnit

NUMBERS = st.integers(1, 2**53).map(float)
UNITS = st.builds(ClusterTotal, value=NUMBERS, per_broker=st.none() | NUMBERS, brokers=st.none() | st.integers(1, 1000))
UNIT, LEADERS = VALUES.kind(QuotaUnit), VALUES.kind(LeaderSpread)
IDS = st.integers(0, 2**31 - 1)


@given(unit=UNITS)
def test_a_computed_value_is_read_as_it_was_written(unit: QuotaUnit) -> None:
    assert UNIT.read(json.loads(json.dumps(UNIT.written(unit)))) == unit


@given(partitions=st.dictionaries(IDS, st.integers(1, 10**6)), leaderless=st.integers(0, 10), absent=st.sets(IDS))
def test_leaders_are_read_as_they_were_written(partitions: dict[int, int], leaderless: int, absent: set[int]) -> None:
    leaders = LeaderSpread(partitions=tuple(sorted(partitions.items())), leaderless=leaderless, absent=tuple(sorted(absent)))

    assert LEADERS.read(json.loads(json.dumps(LEADERS.written(leaders)))) == leaders


def test_a_value_without_a_known_field_is_refused() -> None:
    with pytest.raises(FieldError, match="clusterTotal"):
        UNIT.read({"of": 3})
