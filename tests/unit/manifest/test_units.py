"""Values that are totals of the cluster, and the numbers that each broker gets for them."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.manifest.desired import DesiredResult
from reconciler.manifest.units import part_of_total, round_down
from reconciler.model.quota import QuotaKey
from tests.support.desired_text import desired_of
from tests.support.manifests import cluster, quotas


def declared(*values: object, key: str = "producer_byte_rate", **spec: Any) -> tuple[DesiredResult, tuple[str, ...]]:
    names = ("alice", "bob", "carol")
    return desired_of(
        cluster(**spec), quotas(*(({"user": name}, {key: value}) for name, value in zip(names, values, strict=False)))
    )


@pytest.mark.parametrize(
    ("value", "rule"),
    [
        ({"perBroker": "25MiB"}, "invalid-unit"),
        ({"clusterTotal": "60MiB", "perBroker": "60MiB"}, "invalid-unit"),
        ({"clusterTotal": "25MiB", "perBroker": "60MiB"}, "invalid-unit"),
        ({"proportional": "60MiB", "to": "leaders", "perBroker": "25MiB"}, "invalid-unit"),
        ({"clusterTotal": "60MiB", "perBroker": "0"}, "value-not-positive"),
        ({"clusterTotal": "60MiB", "perBroker": None}, "wrong-type"),
    ],
)
def test_a_limit_of_each_broker_stands_beside_a_total_and_is_less(value: object, rule: str) -> None:
    _, findings = declared(value)
    assert findings == (rule,)


@given(total=st.integers(1, 2**53), brokers=st.integers(1, 500))
def test_the_parts_of_a_total_never_exceed_it_and_miss_it_by_less_than_one_for_each_broker(total: int, brokers: int) -> None:
    part = part_of_total(QuotaKey.PRODUCER_BYTE_RATE, float(total), brokers)

    if part is None:
        assert total < brokers
    else:
        assert part.is_integer()
        assert total - brokers < part * brokers <= total


@given(exact=st.fractions(min_value=Fraction(1, 10_000), max_value=10**9))
def test_a_percentage_is_rounded_down_to_three_decimals(exact: Fraction) -> None:
    number = round_down(QuotaKey.REQUEST_PERCENTAGE, exact)

    if number is None:
        assert exact < Fraction(1, 1000)
    else:
        assert exact - Fraction(1, 1000) - Fraction(1, 10**6) < Fraction(number) <= exact


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ({"proportional": "1MiB", "clusterTotal": "1MiB"}, "invalid-unit"),
        ({"clusterTotal": 0}, "value-not-positive"),
        ({"clusterTotal": "3 miles"}, "unknown-unit"),
        ({"clusterTotal": None}, "wrong-type"),
        ({"clusterTotal": {"clusterTotal": 1}}, "wrong-type"),
        ({"clustertotal": 1}, "unknown-field"),
        ({}, "wrong-value"),
    ],
)
def test_what_cannot_be_computed_is_one_error(value: object, problem: str) -> None:
    result, findings = declared(value)

    assert findings == (problem,)
    assert result.state.values() == {}
