"""Drift classes: every row of the table, what the scope does to them, and which keys are told."""

from __future__ import annotations

import pytest

from reconciler.model.cluster import Prune, Scope
from reconciler.model.drift import DriftClass
from reconciler.model.entity import DEFAULT, Entity, MatchKind, Selector, TypeMatch
from reconciler.planning.diff import difference
from reconciler.planning.drift import Comparison, compare
from reconciler.planning.undeclared import possible_overrides, unalterable_entities, unalterable_notes
from tests.builders import client, current, declared, desired, ip, pair, user

ALICE = user("alice")
ONLY_BOB = Scope(include=(Selector(types=(("user", TypeMatch(kind=MatchKind.NAME, text="bob")),)),))
EVERYTHING = Scope()
Values = dict[str, float] | None
OLD, NEW, OTHER = {"producer_byte_rate": 1.0}, {"producer_byte_rate": 2.0}, {"producer_byte_rate": 3.0}


def compared(
    wanted: Values, was: Values, live: Values, *, has_baseline: bool = True, scope: Scope = EVERYTHING, prune: Prune = Prune.NEVER
) -> Comparison:
    state = desired(*([] if wanted is None else [declared(ALICE, 7, **wanted)]))
    side: dict[Entity, dict[str, float]] = {} if was is None else {ALICE: was}
    return compare(state, {} if live is None else {ALICE: live}, side if has_baseline else None, scope=scope, prune=prune)


def drift_of(comparison: Comparison) -> str:
    (counted,) = [each for each, count in comparison.counts.items() if count]
    return counted.value


@pytest.mark.parametrize(
    ("wanted", "was", "live", "expected"),
    [
        (NEW, OLD, NEW, "in-sync"),
        (NEW, None, NEW, "in-sync"),
        (NEW, OLD, OLD, "unapplied"),
        (NEW, None, None, "unapplied"),
        (None, OLD, OLD, "unapplied"),
        (NEW, {}, None, "unapplied"),
        (NEW, OLD, OTHER, "changed"),
        (NEW, NEW, OTHER, "changed"),
        (NEW, None, OTHER, "changed"),
        (None, OLD, OTHER, "changed"),
        ({}, {}, OTHER, "changed"),
        (NEW, NEW, None, "missing"),
        (NEW, OLD, None, "missing"),
        (None, None, OTHER, "unmanaged"),
    ],
)
def test_the_first_class_that_is_true_counts(wanted: Values, was: Values, live: Values, expected: str) -> None:
    assert drift_of(compared(wanted, was, live)) == expected


def test_what_was_removed_from_the_manifests_and_from_the_cluster_is_nothing() -> None:
    assert sum(compared(None, OLD, None).counts.values()) == 0
    assert sum(compared({}, {}, None).counts.values()) == 0


def test_keys_that_this_tool_does_not_know_are_no_difference_and_are_shown_of_unmanaged_entities() -> None:
    assert drift_of(compared(NEW, NEW, {**NEW, "strange": 1.0})) == "in-sync"
    (one,) = compared(None, None, {**NEW, "strange": 1.0}).entities
    assert [key.key for key in one.keys] == ["producer_byte_rate", "strange"]


def test_only_keys_on_which_two_sides_disagree_are_told_with_all_three_values() -> None:
    wanted = {"producer_byte_rate": 2.0, "consumer_byte_rate": 5.0}
    (one,) = compared(
        wanted, {"producer_byte_rate": 1.0, "consumer_byte_rate": 5.0}, {**wanted, "producer_byte_rate": 9.0}
    ).entities
    (key,) = one.keys
    assert (key.key, key.desired, key.baseline, key.live) == ("producer_byte_rate", 2.0, 1.0, 9.0)
    assert key.source is not None
    assert key.source.line == 7


def test_of_some_manifests_only_what_they_declare_is_compared() -> None:
    state = desired(declared(ALICE, **NEW), complete=False)
    found = compare(state, {user("bob"): NEW, ALICE: NEW}, {user("carol"): OLD}, scope=Scope(), prune=Prune.ALWAYS)
    assert {each: count for each, count in found.counts.items() if count} == {DriftClass.IN_SYNC: 1}


@pytest.mark.parametrize("prune", [Prune.CONFIRM, Prune.ALWAYS])
@pytest.mark.parametrize("has_baseline", [True, False])
def test_what_an_apply_would_prune_is_added(prune: Prune, has_baseline: bool) -> None:
    assert drift_of(compared(None, None, OTHER, has_baseline=has_baseline, prune=prune)) == "added"
    assert drift_of(compared(None, None, {"strange": 1.0}, has_baseline=has_baseline, prune=prune)) == "unmanaged"
    assert drift_of(compared(None, None, OTHER, has_baseline=has_baseline, prune=prune, scope=ONLY_BOB)) == "unmanaged"


RATE = "producer_byte_rate"
CONNECTIONS = "connection_creation_rate"


@pytest.mark.parametrize(
    ("added", "over", "key"),
    [
        (pair("alice", "x"), user("alice"), RATE),
        (pair("alice", DEFAULT), user("alice"), RATE),
        (pair("bob", "x"), client("x"), RATE),
        (pair(DEFAULT, "x"), client("x"), RATE),
        (pair(DEFAULT, DEFAULT), user(), RATE),
        (user(), client("x"), RATE),
        (user(), client(), RATE),
        (ip("0:0:0:0:0:ffff:a00:1"), ip("10.0.0.1"), CONNECTIONS),
    ],
)
def test_under_never_an_addition_that_overrides_a_declared_limit_is_added_and_says_which(
    added: Entity, over: Entity, key: str
) -> None:
    state = desired(declared(over, **{key: 1.0}))
    live = {over: {key: 1.0}, added: {key: 900.0}}
    (one,) = compare(state, live, None, scope=EVERYTHING, prune=Prune.NEVER).entities
    assert (one.entity, one.drift) == (added, DriftClass.ADDED)
    (row,) = one.keys
    assert row.overrides is not None
    assert (row.overrides.entity, row.overrides.value) == (over, 1.0)


MEETING = [
    (user("alice"), client("x"), RATE),
    (user("alice"), pair(DEFAULT, "x"), RATE),
    (user("alice"), user(), RATE),
    (user("alice"), pair(DEFAULT, DEFAULT), RATE),
    (pair("alice", DEFAULT), client("x"), RATE),
    (client("x"), client(), RATE),
    (pair(DEFAULT, "x"), pair(DEFAULT, DEFAULT), RATE),
    (pair(DEFAULT, "x"), user(), RATE),
    (ip("10.0.0.1"), ip(), CONNECTIONS),
]
"""Pairs of entities of which neither has all clients of the other: they meet only in a client that may not exist."""


@pytest.mark.parametrize(("added", "over", "key"), MEETING)
def test_under_never_an_addition_that_only_may_override_is_unmanaged_and_counted_in_one_sentence(
    added: Entity, over: Entity, key: str
) -> None:
    state = desired(declared(over, **{key: 1.0}))
    live = {over: {key: 1.0}, added: {key: 900.0}}
    found = compare(state, live, None, scope=EVERYTHING, prune=Prune.NEVER)
    (one,) = found.entities
    assert (one.entity, one.drift, [row.overrides for row in one.keys]) == (added, DriftClass.UNMANAGED, [None])
    sentence = possible_overrides(found.overrides, None)
    assert sentence is not None
    assert sentence.startswith("1 entity that no manifest declares overrides a declared limit")
    assert f"{added} overrides {over}." in sentence


@pytest.mark.parametrize(("added", "over", "key"), MEETING)
def test_what_may_override_is_added_when_it_is_new_since_the_baseline(added: Entity, over: Entity, key: str) -> None:
    state = desired(declared(over, **{key: 1.0}))
    live = {over: {key: 1.0}, added: {key: 900.0}}
    for known, drift in ((frozenset({added}), DriftClass.UNMANAGED), (frozenset[Entity](), DriftClass.ADDED)):
        found = compare(state, live, {over: {key: 1.0}}, scope=EVERYTHING, prune=Prune.NEVER, unmanaged_then=known)
        assert [(one.entity, one.drift) for one in found.entities] == [(added, drift)]
        assert (possible_overrides(found.overrides, known) is None) == (drift is DriftClass.ADDED)


@pytest.mark.parametrize(
    ("entity", "reason"),
    [
        (user(""), "such names"),
        (pair("", DEFAULT), "such names"),
        (ip(""), "such names"),
        (ip("db1.example"), "a name that its controller cannot resolve"),
        (ip("010.0.0.1"), "the address that it found for such a name, which may be one that a manifest declares"),
        (ip("10.0.0.0/8"), "a name that its controller cannot resolve"),
        (Entity.of({"user": "a", "ip": "10.0.0.1"}), "such names"),
    ],
)
@pytest.mark.parametrize("prune", list(Prune))
def test_what_no_request_can_change_is_unmanaged_and_named_with_its_reason(entity: Entity, reason: str, prune: Prune) -> None:
    live = {entity: {RATE: 1.0, CONNECTIONS: 1.0}, ALICE: NEW}
    state = desired(declared(ALICE, **NEW))
    (one,) = compare(state, live, {ALICE: NEW, entity: OLD}, scope=EVERYTHING, prune=prune).entities
    assert (one.entity, one.drift) == (entity, DriftClass.UNMANAGED)
    assert difference(state, current(live), scope=EVERYTHING, prune=prune).changes == ()
    named = unalterable_entities(state, live, EVERYTHING)
    (sentence,) = unalterable_notes(named)
    assert named == (entity,)
    assert sentence.startswith(f"{entity} stays on the cluster, and no plan changes it. ")
    assert reason in sentence
