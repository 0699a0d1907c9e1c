"""Every guard: trips when it must, not before, and is accepted by its own name only."""

from __future__ import annotations

import datetime

import pytest

from reconciler.errors import UsageError
from reconciler.model.change import Change
from reconciler.model.cluster import Acceptance, ClusterSpec, Prune, RemovalLimit, Scope
from reconciler.model.entity import DEFAULT, Entity
from reconciler.model.plan import GuardResult, GuardStatus
from reconciler.model.selector import MatchKind, Selector, TypeMatch
from reconciler.model.state import CurrentState, DesiredState
from reconciler.planning.diff import difference
from reconciler.policy.guards import GUARDS, Judgement, Situation, judge
from tests.builders import TODAY, client, cluster_spec, current, declared, desired, ip, pair, span, user

RATE = {"producer_byte_rate": 1.0}


def judged(
    wanted: DesiredState, live: CurrentState, spec: ClusterSpec | None = None, accepted: tuple[str, ...] = ()
) -> Judgement:
    chosen = spec or cluster_spec(prune=Prune.ALWAYS)
    changes = difference(wanted, live, scope=chosen.scope, prune=chosen.prune).changes
    return judge(Situation(changes=changes, desired=wanted, current=live, spec=chosen), accepted=accepted, today=TODAY)


def status(judgement: Judgement, guard_id: str) -> GuardStatus:
    return result(judgement, guard_id).status


def result(judgement: Judgement, guard_id: str) -> GuardResult:
    return next(g for g in judgement.guards if g.id == guard_id)


def users(count: int) -> dict[Entity, dict[str, float]]:
    return {user(f"u{n}"): dict(RATE) for n in range(count)}


@pytest.mark.parametrize("entity", [user(), client(), pair("a", DEFAULT), pair(DEFAULT, "app"), pair(DEFAULT, DEFAULT)])
def test_any_change_to_a_default_entity_needs_acceptance(entity: Entity) -> None:
    judgement = judged(desired(declared(entity, producer_byte_rate=5)), current())
    assert status(judgement, "default-entity") is GuardStatus.NEEDS_ACCEPTANCE
    assert str(entity) in result(judgement, "default-entity").message


def test_the_default_ip_is_a_default_entity_too() -> None:
    judgement = judged(desired(declared(ip(), connection_creation_rate=5)), current())
    assert status(judgement, "default-entity") is GuardStatus.NEEDS_ACCEPTANCE


def test_a_literal_name_that_looks_like_the_default_is_not_one() -> None:
    judgement = judged(desired(declared(user("<default>"), producer_byte_rate=5)), current())
    assert status(judgement, "default-entity") is GuardStatus.PASSED


def test_an_unchanged_default_entity_does_not_trip() -> None:
    judgement = judged(desired(declared(user(), producer_byte_rate=1)), current({user(): RATE}))
    assert status(judgement, "default-entity") is GuardStatus.PASSED


@pytest.mark.parametrize(
    ("removed", "live", "limit", "trips"),
    [
        (5, 100, RemovalLimit(), False),
        (6, 100, RemovalLimit(), True),
        (2, 20, RemovalLimit(), False),
        (3, 20, RemovalLimit(), True),
        (3, 20, RemovalLimit(percent=15, count=3), False),
        (4, 40, RemovalLimit(percent=15, count=3), True),
    ],
)
def test_removals_trip_above_the_count_or_the_percentage_and_not_at_them(
    removed: int, live: int, limit: RemovalLimit, trips: bool
) -> None:
    state = users(live)
    kept = [declared(entity, producer_byte_rate=1) for entity in list(state)[removed:]]
    judgement = judged(desired(*kept), current(state), cluster_spec(prune=Prune.ALWAYS, removal_limit=limit))
    assert (status(judgement, "too-many-removals") is GuardStatus.NEEDS_ACCEPTANCE) == trips


def test_a_lost_key_counts_as_a_removal_even_when_the_entity_stays() -> None:
    live = {user(f"u{n}"): {"producer_byte_rate": 1.0, "consumer_byte_rate": 1.0} for n in range(10)}
    wanted = desired(*(declared(e, producer_byte_rate=1) for e in live))
    assert status(judged(wanted, current(live)), "too-many-removals") is GuardStatus.NEEDS_ACCEPTANCE


def test_removals_are_counted_against_what_is_in_scope() -> None:
    scope = Scope(include=(Selector(types=(("user", TypeMatch(kind=MatchKind.NAME, text="u0")),)),))
    judgement = judged(
        desired(declared(user("u0"), consumer_byte_rate=1)), current(users(1000)), cluster_spec(scope=scope, prune=Prune.ALWAYS)
    )
    assert result(judgement, "too-many-removals").measured == "1 of 1 entity (100 %)"


def test_an_empty_desired_state_trips_only_when_pruning_would_remove_something() -> None:
    assert status(judged(desired(), current(users(1))), "empty-desired-state") is GuardStatus.NEEDS_ACCEPTANCE
    assert (
        status(judged(desired(), current(users(1)), cluster_spec(prune=Prune.NEVER)), "empty-desired-state") is GuardStatus.PASSED
    )
    assert status(judged(desired(), current()), "empty-desired-state") is GuardStatus.PASSED
    wanted = desired(declared(user("a"), producer_byte_rate=1))
    assert status(judged(wanted, current(users(1))), "empty-desired-state") is GuardStatus.PASSED


def test_a_protected_entity_trips_and_says_where_it_is_protected() -> None:
    spec = cluster_spec(
        protected=(Selector(types=(("user", TypeMatch(kind=MatchKind.NAME, text="svc")),)),), span=span(14, "prod.yaml")
    )
    judgement = judged(
        desired(declared(user("svc"), producer_byte_rate=1), declared(user("a"), producer_byte_rate=1)), current(), spec
    )
    guard = result(judgement, "protected-entity")
    assert guard.status is GuardStatus.NEEDS_ACCEPTANCE
    assert guard.set_in == "prod.yaml:14:1"
    assert "user=svc" in guard.message
    assert "user=a" not in guard.message


def test_pruning_asks_only_under_confirm() -> None:
    live = current({**users(30), user("kept"): dict(RATE)})
    wanted = desired(
        *(declared(e, producer_byte_rate=1) for e in list(users(30))[1:]), declared(user("kept"), producer_byte_rate=1)
    )
    assert status(judged(wanted, live, cluster_spec(prune=Prune.CONFIRM)), "prune") is GuardStatus.NEEDS_ACCEPTANCE
    assert status(judged(wanted, live, cluster_spec(prune=Prune.ALWAYS)), "prune") is GuardStatus.PASSED
    assert status(judged(wanted, live, cluster_spec(prune=Prune.NEVER)), "prune") is GuardStatus.PASSED


@pytest.mark.parametrize("guard_id", GUARDS)
def test_accepting_one_guard_silences_no_other(guard_id: str) -> None:
    spec = cluster_spec(prune=Prune.CONFIRM, protected=(Selector(types=(("user", TypeMatch(kind=MatchKind.ANY)),)),), span=span())
    live = current({**users(20), user(): dict(RATE)})
    everything = judged(desired(), live, spec)
    assert {g.status for g in everything.guards} == {GuardStatus.NEEDS_ACCEPTANCE}
    one = judged(desired(), live, spec, accepted=(guard_id,))
    assert {g.id for g in one.guards if g.status is GuardStatus.ACCEPTED} == {guard_id}


@pytest.mark.parametrize("guard_id", GUARDS)
def test_a_refusal_says_what_was_measured_the_limit_where_it_is_set_and_the_flag(guard_id: str) -> None:
    spec = cluster_spec(prune=Prune.CONFIRM, protected=(Selector(types=(("user", TypeMatch(kind=MatchKind.ANY)),)),), span=span())
    guard = result(judged(desired(), current({**users(20), user(): dict(RATE)}), spec), guard_id)
    for part in (guard.measured, guard.limit, guard.set_in, f"--accept {guard_id}"):
        assert part in guard.message


def test_an_unknown_guard_is_a_usage_error() -> None:
    with pytest.raises(UsageError, match="default-entity"):
        judged(desired(), current(), accepted=("default-entitty",))


def test_accepting_a_guard_that_did_not_trip_is_a_note() -> None:
    judgement = judged(desired(), current(), accepted=("prune",))
    assert status(judgement, "prune") is GuardStatus.PASSED
    assert judgement.notes == ("guard prune was accepted on the command line but did not trip",)


def acceptance(until: datetime.date, match: Selector | None = None) -> Acceptance:
    return Acceptance(guard="default-entity", reason="agreed", until=until, match=match, span=span(9))


def test_an_acceptance_in_the_manifest_holds_through_its_last_day_and_not_after() -> None:
    wanted = desired(declared(user(), producer_byte_rate=1))
    today = judged(wanted, current(), cluster_spec(accept=(acceptance(TODAY),)))
    assert status(today, "default-entity") is GuardStatus.ACCEPTED
    assert "agreed" in result(today, "default-entity").message
    late = judged(wanted, current(), cluster_spec(accept=(acceptance(TODAY - datetime.timedelta(days=1)),)))
    assert status(late, "default-entity") is GuardStatus.NEEDS_ACCEPTANCE
    assert any("ended on" in note for note in late.notes)


def test_an_acceptance_for_some_entities_leaves_the_others_guarded() -> None:
    only_user = Selector(types=(("user", TypeMatch(kind=MatchKind.DEFAULT)),), strict=True)
    spec = cluster_spec(accept=(acceptance(TODAY, only_user),))
    user_only = desired(declared(user(), producer_byte_rate=1))
    assert status(judged(user_only, current(), spec), "default-entity") is GuardStatus.ACCEPTED
    both = desired(declared(user(), producer_byte_rate=1), declared(client(), producer_byte_rate=1))
    assert status(judged(both, current(), spec), "default-entity") is GuardStatus.NEEDS_ACCEPTANCE


def test_changes_are_what_guards_look_at() -> None:
    changes: tuple[Change, ...] = ()
    situation = Situation(changes=changes, desired=desired(), current=current(users(3)), spec=cluster_spec())
    assert {g.status for g in judge(situation, accepted=(), today=TODAY).guards} == {GuardStatus.PASSED}
