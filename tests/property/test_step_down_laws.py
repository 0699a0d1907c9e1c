"""Whatever the limit, the factor and the target: steps fall, keep to the factor, are legal values, and end where they should."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from reconciler.apply.steps import is_stepped, way_down
from reconciler.model.entity import Entity, EntityType
from reconciler.model.plan import Alteration, KeyChange, Reason
from reconciler.model.quota import IP_KEYS, QuotaKey, ValueType
from reconciler.resolution.broker_rules import refusal

WHOLE = [k for k in QuotaKey if k.value_type is not ValueType.DOUBLE]
DOUBLES = [k for k in QuotaKey if k.value_type is ValueType.DOUBLE]
FACTORS = st.floats(1.01, 1e6)


def lowering(key: QuotaKey, before: float | None, after: float | None) -> KeyChange:
    return KeyChange(key=key.value, before=before, after=after, reason=Reason.VALUE_DIFFERS)


@given(st.sampled_from(WHOLE), st.integers(1, 2**31 - 1), st.integers(1, 2**31 - 1), FACTORS)
def test_whole_values_fall_in_whole_steps_within_the_factor(key: QuotaKey, one: int, other: int, factor: float) -> None:
    before, after = float(max(one, other)), float(min(one, other))
    values = way_down(lowering(key, before, after), factor)
    assert values[-1] == after
    assert all(value.is_integer() and value >= after for value in values)
    for now, then in zip((before, *values), values, strict=False):
        assert then < now or before == after
        assert then >= now / factor or then == now - 1 or len(values) == 1


@given(st.sampled_from(DOUBLES), st.floats(1e-6, 1e12), st.floats(1e-6, 1e12), FACTORS)
def test_fractional_values_fall_within_the_factor(key: QuotaKey, one: float, other: float, factor: float) -> None:
    before, after = max(one, other), min(one, other)
    values = way_down(lowering(key, before, after), factor)
    assert values[-1] == after
    for now, then in zip((before, *values), values, strict=False):
        assert then < now or before == after
        assert then >= now / factor


@given(st.sampled_from(list(QuotaKey)), st.integers(2, 2**31 - 1), st.floats(1.01, 100))
def test_a_broker_takes_every_value_on_the_way(key: QuotaKey, before: int, factor: float) -> None:
    entity = Entity.of({EntityType.IP if key in IP_KEYS else EntityType.USER: "10.0.0.1"})
    for value in way_down(lowering(key, float(before), 1.0), factor):
        assert refusal(Alteration(entity=entity, ops={key.value: value})) is None


@given(st.sampled_from(list(QuotaKey)), st.integers(2, 2**53), st.floats(1.1, 100))
def test_the_number_of_steps_stays_near_the_smallest_possible(key: QuotaKey, before: int, factor: float) -> None:
    change = lowering(key, float(before), 1.0)
    smallest = math.log(before) / math.log(factor)
    assert len(way_down(change, factor)) <= 4 * smallest + 12


@given(st.sampled_from(list(QuotaKey)), FACTORS)
def test_only_reductions_go_in_steps(key: QuotaKey, factor: float) -> None:
    for before, after in ((None, 5.0), (5.0, None), (5.0, 1e7), (math.nan, 5.0), (math.inf, 5.0), (5.0, 5.0), (0.0, 5.0)):
        assert not is_stepped(lowering(key, before, after), factor)
        assert way_down(lowering(key, before, after), factor) == (() if after is None else (after,))
