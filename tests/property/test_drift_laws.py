"""Laws of drift for random desired, baseline and live states."""

from __future__ import annotations

from collections.abc import Mapping

from hypothesis import given
from hypothesis import strategies as st

from reconciler.model.cluster import Prune, Scope
from reconciler.model.drift import DriftClass
from reconciler.model.entity import Entity
from reconciler.model.quota import KNOWN_KEYS
from reconciler.model.selector import MatchKind, Selector, TypeMatch
from reconciler.model.state import DesiredState
from reconciler.planning.diff import difference
from reconciler.planning.drift import Comparison, compare
from tests.builders import client, current, declared, desired, ip, pair, user

ENTITIES = (user("a"), user("b"), user(), client("a"), pair("a", "a"), ip("10.0.0.1"), Entity.of({"client-id-prefix": "x"}))
KNOWN = ("producer_byte_rate", "consumer_byte_rate")
values = st.sampled_from((1.0, 2.0))
live_states = st.dictionaries(
    st.sampled_from(ENTITIES), st.dictionaries(st.sampled_from((*KNOWN, "strange")), values, min_size=1), max_size=6
)
baselines = st.dictionaries(st.sampled_from(ENTITIES[:-1]), st.dictionaries(st.sampled_from(KNOWN), values), max_size=6)
scopes = st.sampled_from(
    (Scope(), Scope(include=(Selector(types=(("user", TypeMatch(kind=MatchKind.ANY)),)),)), Scope(exclude=(Selector(types=()),)))
)


def state(entities: Mapping[Entity, Mapping[str, float]]) -> DesiredState:
    return desired(*(declared(entity, **quotas) for entity, quotas in entities.items()))


def classes(comparison: Comparison) -> dict[Entity, DriftClass]:
    return {one.entity: one.drift for one in comparison.entities}


def known(quotas: Mapping[str, float]) -> dict[str, float]:
    return {key: value for key, value in quotas.items() if key in KNOWN_KEYS}


@given(baselines, baselines, live_states, scopes)
def test_every_entity_is_in_exactly_one_class_or_is_nowhere(wanted, was, live, scope) -> None:
    found = compare(state(wanted), live, was, scope=scope)
    told = classes(found)
    assert len(told) == len(found.entities)
    assert sum(found.counts.values()) - found.counts[DriftClass.IN_SYNC] == len(found.entities)
    assert found.counts[DriftClass.DIFFERS] == 0
    assert [one.entity.sort_key for one in found.entities] == sorted(one.entity.sort_key for one in found.entities)
    assert live.keys() <= told.keys() | wanted.keys()


@given(baselines, baselines, live_states, scopes)
def test_an_entity_differs_exactly_when_owned_and_live_is_not_desired(wanted, was, live, scope) -> None:
    told = classes(compare(state(wanted), live, was, scope=scope))
    for entity in ENTITIES:
        agrees = known(live.get(entity, {})) == wanted.get(entity, {})
        was_ours = entity in wanted or entity in was
        drift = told.get(entity, DriftClass.IN_SYNC)
        assert drift.is_difference == (scope.contains(entity) and was_ours and not agrees)


@given(baselines, live_states, scopes)
def test_without_a_baseline_drift_is_what_a_plan_without_pruning_would_change(wanted, live, scope) -> None:
    told = classes(compare(state(wanted), live, None, scope=scope))
    planned = difference(state(wanted), current(live), scope=scope, prune=Prune.NEVER)
    assert {entity for entity, drift in told.items() if drift.is_difference} == {change.entity for change in planned.changes}
    assert set(told.values()) <= {DriftClass.DIFFERS, DriftClass.UNMANAGED}


@given(baselines, baselines, live_states, scopes)
def test_a_baseline_only_names_differences_and_adds_those_that_left_the_manifests(wanted, was, live, scope) -> None:
    without = {e for e, drift in classes(compare(state(wanted), live, None, scope=scope)).items() if drift.is_difference}
    with_one = {e for e, drift in classes(compare(state(wanted), live, was, scope=scope)).items() if drift.is_difference}
    assert without <= with_one
    assert with_one - without <= {entity for entity in was if entity in live and entity not in wanted}


@given(baselines, live_states, scopes)
def test_when_the_baseline_is_what_is_desired_nothing_is_unapplied(wanted, live, scope) -> None:
    assert compare(state(wanted), live, wanted, scope=scope).counts[DriftClass.UNAPPLIED] == 0


@given(baselines, baselines, scopes)
def test_when_the_cluster_is_at_the_baseline_nothing_was_changed_by_hand(wanted, was, scope) -> None:
    found = compare(state(wanted), {e: q for e, q in was.items() if q}, was, scope=scope)
    assert found.counts[DriftClass.CHANGED] == found.counts[DriftClass.MISSING] == 0
