"""Laws of drift for random desired, baseline and live states."""

from __future__ import annotations

import itertools
from collections.abc import Mapping

from hypothesis import given
from hypothesis import strategies as st

from reconciler.model.cluster import Prune, Scope
from reconciler.model.drift import DriftClass
from reconciler.model.entity import DEFAULT, Entity, MatchKind, Selector, TypeMatch
from reconciler.model.quota import KNOWN_KEYS
from reconciler.model.state import DesiredState
from reconciler.planning.diff import difference
from reconciler.planning.drift import Comparison, compare
from reconciler.planning.undeclared import needs_decision, overriding_entities, undeclared_in_scope
from reconciler.resolution.resolver import AddressTable, Resolver
from tests.builders import client, current, declared, desired, ip, pair, user

ENTITIES = (
    user("a"),
    user("b"),
    user(),
    client("a"),
    client(),
    pair("a", "a"),
    pair("a", DEFAULT),
    pair(DEFAULT, "a"),
    pair(DEFAULT, DEFAULT),
    ip("10.0.0.1"),
    ip("::ffff:10.0.0.1"),
    ip(),
    Entity.of({"client-id-prefix": "x"}),
)
KNOWN = ("producer_byte_rate", "connection_creation_rate")
values = st.sampled_from((1.0, 2.0))
live_states = st.dictionaries(
    st.sampled_from(ENTITIES), st.dictionaries(st.sampled_from((*KNOWN, "strange")), values, min_size=1), max_size=8
)
baselines = st.dictionaries(st.sampled_from(ENTITIES[:-1]), st.dictionaries(st.sampled_from(KNOWN), values), max_size=8)
scopes = st.sampled_from(
    (Scope(), Scope(include=(Selector(types=(("user", TypeMatch(kind=MatchKind.ANY)),)),)), Scope(exclude=(Selector(types=()),)))
)


prunes = st.sampled_from(Prune)


def state(entities: Mapping[Entity, Mapping[str, float]]) -> DesiredState:
    return desired(*(declared(entity, **quotas) for entity, quotas in entities.items()))


def classes(comparison: Comparison) -> dict[Entity, DriftClass]:
    return {one.entity: one.drift for one in comparison.entities}


def known(quotas: Mapping[str, float]) -> dict[str, float]:
    return {key: value for key, value in quotas.items() if key in KNOWN_KEYS}


@given(baselines, baselines, live_states, scopes, prunes)
def test_every_entity_is_in_exactly_one_class_or_is_nowhere(wanted, was, live, scope, prune) -> None:
    found = compare(state(wanted), live, was, scope=scope, prune=prune)
    told = classes(found)
    assert len(told) == len(found.entities)
    assert sum(found.counts.values()) - found.counts[DriftClass.IN_SYNC] == len(found.entities)
    assert found.counts[DriftClass.DIFFERS] == 0
    assert [one.entity.sort_key for one in found.entities] == sorted(one.entity.sort_key for one in found.entities)
    assert live.keys() <= told.keys() | wanted.keys()


@given(baselines, baselines, live_states, scopes, prunes)
def test_an_entity_that_was_ours_differs_exactly_when_owned_and_live_is_not_desired(wanted, was, live, scope, prune) -> None:
    found = classes(compare(state(wanted), live, was, scope=scope, prune=prune))
    for entity in (*wanted, *was):
        agrees = known(live.get(entity, {})) == wanted.get(entity, {})
        assert found.get(entity, DriftClass.IN_SYNC).is_difference == (scope.contains(entity) and not agrees)


@given(baselines, st.none() | baselines, live_states, scopes, prunes)
def test_what_drift_calls_a_difference_is_what_plan_changes_or_leaves_with_a_warning(wanted, was, live, scope, prune) -> None:
    """The law between the two commands: for any states, with and without a baseline, neither passes over the other."""
    desired_now, earlier = state(wanted), was or {}
    drift = classes(compare(desired_now, live, was, scope=scope, prune=prune))
    planned = {change.entity for change in difference(desired_now, current(live), scope=scope, prune=prune).changes}
    undeclared = undeclared_in_scope(desired_now, live, scope)
    no_longer = {entity for entity in undeclared if entity in earlier} if prune is Prune.NEVER else set()
    others = [entity for entity in undeclared if entity not in earlier]
    every = overriding_entities(others, desired_now, live, scope=scope) if prune is Prune.NEVER else {}
    overrides = {entity for entity, of_entity in every.items() if needs_decision(entity, of_entity, None)}
    assert {entity for entity, kind in drift.items() if kind.is_difference} == planned | no_longer | overrides
    assert not planned & (no_longer | overrides)
    unapplied = {entity for entity, kind in drift.items() if kind is DriftClass.UNAPPLIED}
    assert unapplied <= planned | no_longer
    added = {entity for entity, kind in drift.items() if kind is DriftClass.ADDED}
    assert added == (overrides if prune is Prune.NEVER else {entity for entity in others if entity in planned})


@given(baselines, baselines, live_states, scopes, prunes)
def test_a_baseline_only_names_differences_and_adds_those_that_left_the_manifests(wanted, was, live, scope, prune) -> None:
    def differing(baseline: Mapping[Entity, Mapping[str, float]] | None) -> set[Entity]:
        found = classes(compare(state(wanted), live, baseline, scope=scope, prune=prune))
        return {entity for entity, kind in found.items() if kind.is_difference}

    assert differing(None) <= differing(was)
    assert differing(was) - differing(None) <= {entity for entity in was if entity in live and entity not in wanted}


@given(baselines, live_states, scopes)
def test_an_addition_overrides_exactly_when_some_client_leaves_a_declared_limit_for_it(wanted, live, scope) -> None:
    """Against every client of a small world, resolved by the eight levels with and without the one addition."""
    undeclared = undeclared_in_scope(state(wanted), live, scope)
    found = overriding_entities(undeclared, state(wanted), live, scope=scope)
    declared_now = {entity: quotas for entity, quotas in wanted.items() if scope.contains(entity)}
    table = {**{entity: quotas for entity, quotas in live.items() if not scope.contains(entity)}, **declared_now}
    for entity in undeclared:
        with_it = {**table, entity: live[entity]}
        taken = set()
        without, resolver = Resolver(table, KNOWN[0]), Resolver(with_it, KNOWN[0])
        for name, client_id in itertools.product(("a", "b", "other"), ("", "a", "other")):
            before, after = without.winner(name, client_id), resolver.winner(name, client_id)
            if before and after and after.entity == entity and before.entity in declared_now:
                taken.add(KNOWN[0])
        if entity.name("ip") not in (None, DEFAULT):
            before_all = AddressTable(table).resolve(entity.name("ip")).candidates
            if KNOWN[1] in live[entity] and any(one.entity in declared_now for one in before_all):
                taken.add(KNOWN[1])
        assert set(found.get(entity, {})) == taken


@given(baselines, live_states, scopes, prunes)
def test_when_the_baseline_is_what_is_desired_nothing_is_unapplied(wanted, live, scope, prune) -> None:
    assert compare(state(wanted), live, wanted, scope=scope, prune=prune).counts[DriftClass.UNAPPLIED] == 0


@given(baselines, baselines, scopes, prunes)
def test_when_the_cluster_is_at_the_baseline_nothing_was_changed_by_hand(wanted, was, scope, prune) -> None:
    found = compare(state(wanted), {e: q for e, q in was.items() if q}, was, scope=scope, prune=prune)
    assert found.counts[DriftClass.CHANGED] == found.counts[DriftClass.MISSING] == found.counts[DriftClass.ADDED] == 0
