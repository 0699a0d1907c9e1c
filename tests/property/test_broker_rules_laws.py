"""Laws of the broker's rules, against exact arithmetic and Python's own idea of addresses."""

from __future__ import annotations

import math
from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from reconciler.model.entity import DEFAULT, Entity
from reconciler.model.plan import Alteration
from reconciler.model.quota import QuotaKey, ValueType
from reconciler.resolution.broker_rules import refusal, value_refusal
from tests.builders import user

keys = st.sampled_from(list(QuotaKey))
values = st.one_of(st.floats(), st.integers(1, 2**64).map(float), st.integers(1, 10**6).map(lambda n: n + 1e-6))
names = st.one_of(st.just(DEFAULT), st.text(max_size=6))
entities = st.dictionaries(st.sampled_from(["user", "client-id", "ip", "group"]), names, min_size=1, max_size=3).map(Entity.of)
operations = st.dictionaries(st.one_of(keys.map(str), st.text(max_size=5)), st.one_of(st.none(), values), max_size=4)
BOUNDS = {ValueType.LONG: 2**63, ValueType.INT: 2**31 - 1}


@given(key=keys, value=values)
def test_values_are_judged_as_exact_arithmetic_judges_them(key, value):
    if not math.isfinite(value):
        assert value_refusal(key, value) == f"Quota {key} must be a finite number"
        return
    bound = BOUNDS.get(key.value_type)
    legal = value > 0 and (bound is None or (value <= bound and Fraction(value) % 1 <= Fraction(1e-6)))
    assert (value_refusal(key, value) is None) == legal


@given(entity=entities, ops=operations)
def test_removals_neither_help_nor_hurt(entity, ops):
    with_sets_only = {k: v for k, v in ops.items() if v is not None}
    one = refusal(Alteration(entity=entity, ops=ops))
    other = refusal(Alteration(entity=entity, ops=with_sets_only))
    assert one == other


@given(entity=entities, ops=operations, more=operations)
def test_what_is_refused_stays_refused_with_more_ops(entity, ops, more):
    if refusal(Alteration(entity=entity, ops=ops)) is not None:
        assert refusal(Alteration(entity=entity, ops={**more, **ops})) is not None


@given(name=st.text(min_size=1, max_size=40))
def test_any_name_but_the_empty_one_may_be_a_user(name):
    assert refusal(Alteration(entity=user(name), ops={"producer_byte_rate": 1.0})) is None
