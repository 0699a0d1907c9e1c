"""Every guard: trips when it must, not before, and is accepted by its own name only."""

from __future__ import annotations

import datetime
from dataclasses import replace

import pytest

from reconciler.errors import UsageError
from reconciler.model.cluster import (
    Acceptance,
    ClusterSpec,
    CountLimit,
    FreezeWindow,
    GuardLimits,
    Once,
    Prune,
    ReductionLimit,
    Scope,
    VolumeLimit,
    WindowKind,
)
from reconciler.model.entity import DEFAULT, Entity, MatchKind, Selector, TypeMatch
from reconciler.model.plan import GuardResult, GuardStatus
from reconciler.model.quota import ClusterTotal, QuotaKey
from reconciler.model.state import CurrentState, DeclaredExpiry, DesiredQuota, DesiredState
from reconciler.planning.diff import difference
from reconciler.policy.change_guards import ManagedAt
from reconciler.policy.guards import GUARDS, GuardContext, Judgement, judge
from tests.builders import NOON, TODAY, client, cluster_spec, current, declared, desired, pair, span, user

RATE = {"producer_byte_rate": 1.0}
REMOVALS = GuardLimits().too_many_removals


def judged(
    wanted: DesiredState,
    live: CurrentState,
    spec: ClusterSpec | None = None,
    accepted: tuple[str, ...] = (),
    elsewhere: dict[Entity, str] | None = None,
    managed: dict[Entity, ManagedAt] | None = None,
) -> Judgement:
    chosen = spec or cluster_spec(prune=Prune.ALWAYS)
    changes = difference(wanted, live, scope=chosen.scope, prune=chosen.prune).changes
    context = GuardContext(
        changes=changes,
        desired=wanted,
        current=live,
        spec=chosen,
        now=NOON,
        claimed_elsewhere=elsewhere or {},
        managed=managed or {},
    )
    return judge(context, accepted=accepted)


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


def test_the_removal_of_a_default_entity_gives_no_client_a_new_limit() -> None:
    judgement = judged(desired(), current({user(): RATE}))
    message = result(judgement, "default-entity").message
    assert message.startswith("Removes user=<default>. Every client there without its own quota loses that limit.")


@pytest.mark.parametrize(
    ("removed", "live", "limit", "trips"),
    [
        (5, 100, REMOVALS, False),
        (6, 100, REMOVALS, True),
        (2, 20, REMOVALS, False),
        (3, 20, REMOVALS, True),
        (3, 20, VolumeLimit(percent=15, count=3), False),
        (4, 40, VolumeLimit(percent=15, count=3), True),
        # A percentage is no measure of a small cluster or of one entity.
        (1, 3, REMOVALS, False),
        (2, 3, REMOVALS, False),
        (4, 5, REMOVALS, False),
        (1, 6, REMOVALS, False),
        (2, 6, REMOVALS, True),
        (2, 6, VolumeLimit(percent=10, count=5, minimum=6), False),
        (2, 7, VolumeLimit(percent=10, count=5, minimum=6), True),
        (2, 3, VolumeLimit(percent=10, count=1, minimum=6), True),
        (1, 3, VolumeLimit(percent=10, count=0, minimum=5), True),
    ],
)
def test_removals_trip_above_the_count_or_the_percentage_and_not_at_them(
    removed: int, live: int, limit: VolumeLimit, trips: bool
) -> None:
    state = users(live)
    kept = [declared(entity, producer_byte_rate=1) for entity in list(state)[removed:]]
    spec = cluster_spec(prune=Prune.CONFIRM, guards=GuardLimits(too_many_removals=limit))
    judgement = judged(desired(*kept), current(state), spec)
    wanted = {"prune", "too-many-removals"} if trips else {"prune"}
    assert {guard.id for guard in judgement.guards if guard.status is GuardStatus.NEEDS_ACCEPTANCE} == wanted


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


def dangerous(accepted: tuple[str, ...] = ()) -> Judgement:
    """A run in which every guard but the one for empty manifests trips."""
    spec = cluster_spec(
        prune=Prune.CONFIRM,
        protected=(Selector(types=(("user", TypeMatch(kind=MatchKind.ANY)),)),),
        guards=GuardLimits(unknown_current_keys=CountLimit(count=0, set_in=span(5))),
        freeze=(FreezeWindow(kind=WindowKind.DENY, when=Once(), span=span(6)),),
        span=span(),
    )
    live = current({**users(20), user(): {**RATE, "consumer_byte_rate": 15.0, "key_of_the_future": 1.0}})
    totals = DesiredQuota(value=20.0, source=span(), text="clusterTotal: 60", unit=ClusterTotal(value=60.0, brokers=3))
    entity = declared(user(), producer_byte_rate=0.1)
    wanted = desired(replace(entity, quotas={**entity.quotas, QuotaKey.CONSUMER_BYTE_RATE: totals}))
    return judged(wanted, live, spec, accepted, {user(): "prod-b"}, {user(): ManagedAt(declared=True, place=span())})


def emptied(accepted: tuple[str, ...] = ()) -> Judgement:
    return judged(desired(), current({**users(20), user(): dict(RATE)}), cluster_spec(prune=Prune.CONFIRM), accepted)


OFTEN = sorted(set(GUARDS) - {"empty-desired-state"})


@pytest.mark.parametrize("guard_id", OFTEN)
def test_accepting_one_guard_silences_no_other(guard_id: str) -> None:
    assert {g.id for g in dangerous().guards if g.status is GuardStatus.NEEDS_ACCEPTANCE} == set(OFTEN)
    one = dangerous(accepted=(guard_id,))
    assert {g.id for g in one.guards if g.status is GuardStatus.ACCEPTED} == {guard_id}
    assert {g.id for g in one.guards if g.status is GuardStatus.NEEDS_ACCEPTANCE} == set(OFTEN) - {guard_id}


@pytest.mark.parametrize("guard_id", GUARDS)
def test_a_refusal_says_what_was_measured_the_limit_where_it_is_set_and_the_flag(guard_id: str) -> None:
    guard = result(emptied() if guard_id == "empty-desired-state" else dangerous(), guard_id)
    assert guard.advice == f"To accept, pass --accept {guard_id}."
    for part in (guard.measured, guard.limit, guard.set_in):
        assert part in guard.message


@pytest.mark.parametrize(
    ("changed", "live", "limit", "trips"),
    [
        (10, 20, None, False),
        (11, 20, None, True),
        (11, 40, None, False),
        (12, 40, None, False),
        (13, 40, None, True),
        (1, 20, VolumeLimit(percent=5, count=0), False),
        (2, 20, VolumeLimit(percent=5, count=0), True),
    ],
)
def test_changes_trip_above_both_the_count_and_the_percentage(
    changed: int, live: int, limit: VolumeLimit | None, trips: bool
) -> None:
    wanted = desired(*(declared(e, producer_byte_rate=2 if n < changed else 1) for n, e in enumerate(users(live))))
    spec = cluster_spec(guards=GuardLimits(too_many_changes=limit) if limit else GuardLimits())
    assert (status(judged(wanted, current(users(live)), spec), "too-many-changes") is GuardStatus.NEEDS_ACCEPTANCE) == trips


@pytest.mark.parametrize(
    ("after", "limit", "trips"),
    [
        (50, None, False),
        (49, None, True),
        (49, ReductionLimit(factor=0.4), False),
        (79, ReductionLimit(factor=0.1, keys={"producer_byte_rate": 0.8}), True),
        (80, ReductionLimit(factor=0.1, keys={"producer_byte_rate": 0.8}), False),
        (79, ReductionLimit(factor=0.1, keys={"consumer_byte_rate": 0.8}), False),
        (1, ReductionLimit(factor=0), False),
    ],
)
def test_a_value_may_fall_to_the_factor_and_no_further(after: int, limit: ReductionLimit | None, trips: bool) -> None:
    spec = cluster_spec(guards=GuardLimits(large_reduction=limit) if limit else GuardLimits())
    judgement = judged(
        desired(declared(user("a"), producer_byte_rate=after)), current({user("a"): {"producer_byte_rate": 100.0}}), spec
    )
    assert (status(judgement, "large-reduction") is GuardStatus.NEEDS_ACCEPTANCE) == trips


@pytest.mark.parametrize(
    ("now", "then", "expired", "measured"),
    [
        (200, 20, False, "20 %"),
        (90, 20, False, "20 %"),
        (20, 90, False, "20 %"),
        (200, 60, False, None),
        (200, None, False, None),
        (200, 20, True, None),
    ],
)
def test_the_value_that_follows_an_expiry_counts_as_a_reduction_already(
    now: float, then: float | None, expired: bool, measured: str | None
) -> None:
    """No guard measures that change again: it comes with the hour, and not with a pull request."""
    other = None if then is None else DesiredQuota(value=then, source=span(2), text=str(then))
    expiry = DeclaredExpiry(at=NOON + datetime.timedelta(days=1), expired=expired, source=span(1), other=other)
    wanted = replace(declared(user("a"), producer_byte_rate=now), expiries={QuotaKey.PRODUCER_BYTE_RATE: expiry})
    guard = result(judged(desired(wanted), current({user("a"): {"producer_byte_rate": 100.0}})), "large-reduction")
    assert (guard.status is GuardStatus.NEEDS_ACCEPTANCE) == (measured is not None)
    assert measured is None or guard.measured == measured
    assert (" on 2026-01-03" in guard.message) == (measured is not None and then is not None and then < now)


def test_the_worst_reduction_is_told_with_both_values() -> None:
    live = current({user("a"): {"producer_byte_rate": 100.0}, user("b"): {"producer_byte_rate": 100.0}})
    wanted = desired(declared(user("a"), producer_byte_rate=40), declared(user("b"), producer_byte_rate=10))
    guard = result(judged(wanted, live), "large-reduction")
    assert guard.measured == "10 %"
    assert "Cuts producer_byte_rate for user=b from 100 B/s to 10 B/s." in guard.message
    assert "2 entities in all" in guard.message


def test_unknown_keys_are_told_and_refuse_only_above_a_count() -> None:
    live = current({user(n): {**RATE, "key_of_the_future": 1.0} for n in "ab"})
    wanted = desired(*(declared(user(n), producer_byte_rate=1) for n in "ab"))
    warned = judged(wanted, live)
    assert status(warned, "unknown-current-keys") is GuardStatus.PASSED
    assert any("key_of_the_future" in note and "user=a" in note for note in warned.notes)
    for count, trips in ((2, False), (1, True)):
        spec = cluster_spec(guards=GuardLimits(unknown_current_keys=CountLimit(count=count)))
        assert (status(judged(wanted, live, spec), "unknown-current-keys") is GuardStatus.NEEDS_ACCEPTANCE) == trips


def test_what_another_name_of_the_cluster_declares_too_is_contested_when_it_changes() -> None:
    wanted = desired(declared(user("a"), producer_byte_rate=2))
    changed = judged(wanted, current({user("a"): RATE}), elsewhere={user("a"): "prod-b", user("b"): "prod-b"})
    assert status(changed, "scope-overlap") is GuardStatus.NEEDS_ACCEPTANCE
    assert "prod-b" in result(changed, "scope-overlap").message
    unchanged = judged(wanted, current({user("a"): {"producer_byte_rate": 2.0}}), elsewhere={user("a"): "prod-b"})
    assert status(unchanged, "scope-overlap") is GuardStatus.PASSED


def test_a_frozen_cluster_trips_only_when_something_would_be_written() -> None:
    window = FreezeWindow(
        kind=WindowKind.DENY, when=Once(end=NOON + datetime.timedelta(hours=1)), reason="audit", span=span(7, "prod.yaml")
    )
    spec = cluster_spec(freeze=(window,))
    wanted = desired(declared(user("a"), producer_byte_rate=1))
    guard = result(judged(wanted, current(), spec), "freeze-window")
    assert guard.status is GuardStatus.NEEDS_ACCEPTANCE
    assert guard.set_in == "prod.yaml:7:1"
    assert "frozen until 2026-01-02T13:00:00Z: audit" in guard.message
    assert status(judged(wanted, current({user("a"): RATE}), spec), "freeze-window") is GuardStatus.PASSED


def test_an_unknown_guard_is_a_usage_error() -> None:
    with pytest.raises(UsageError, match="default-entity"):
        judged(desired(), current(), accepted=("default-entitty",))


def test_accepting_a_guard_that_did_not_trip_is_a_note() -> None:
    judgement = judged(desired(), current(), accepted=("prune",))
    assert status(judgement, "prune") is GuardStatus.PASSED
    assert judgement.notes == ("Guard prune was accepted on the command line but did not trip.",)


def acceptance(until: datetime.date, match: Selector | None = None) -> Acceptance:
    return Acceptance(guard="default-entity", reason="agreed", until=until, match=match, span=span(9))


def test_an_acceptance_in_the_manifest_holds_through_its_last_day_and_not_after() -> None:
    wanted = desired(declared(user(), producer_byte_rate=1))
    today = judged(wanted, current(), cluster_spec(accept=(acceptance(TODAY),)))
    assert status(today, "default-entity") is GuardStatus.ACCEPTED
    assert "agreed" in result(today, "default-entity").message
    late = judged(wanted, current(), cluster_spec(accept=(acceptance(TODAY - datetime.timedelta(days=1)),)))
    assert status(late, "default-entity") is GuardStatus.NEEDS_ACCEPTANCE
    assert any("expired on" in note for note in late.notes)


def test_an_acceptance_for_some_entities_leaves_the_others_guarded() -> None:
    only_user = Selector(types=(("user", TypeMatch(kind=MatchKind.DEFAULT)),), strict=True)
    spec = cluster_spec(accept=(acceptance(TODAY, only_user),))
    user_only = desired(declared(user(), producer_byte_rate=1))
    assert status(judged(user_only, current(), spec), "default-entity") is GuardStatus.ACCEPTED
    both = desired(declared(user(), producer_byte_rate=1), declared(client(), producer_byte_rate=1))
    assert status(judged(both, current(), spec), "default-entity") is GuardStatus.NEEDS_ACCEPTANCE


@pytest.mark.parametrize(
    ("owned", "words"),
    [
        (ManagedAt(declared=True, place=span(7, "teams/a.yaml", 5)), "A manifest declares user=a (teams/a.yaml:7:5)"),
        (ManagedAt(declared=False, place=span(4, "cluster.yaml", 3)), "user=a is in the scope of prod (cluster.yaml:4:3)"),
        (ManagedAt(declared=False, place=None), "user=a is in the scope of prod, whose quotas come from manifests"),
    ],
)
def test_a_change_by_hand_to_what_manifests_own_points_to_them(owned: ManagedAt, words: str) -> None:
    wanted = desired(declared(user("a"), producer_byte_rate=5))
    tripped = result(judged(wanted, current(), managed={user("a"): owned}), "managed-entity")
    assert tripped.status is GuardStatus.NEEDS_ACCEPTANCE
    assert words in tripped.message
    assert tripped.set_in == (str(owned.place) if owned.place else "built in")
    untouched = judged(wanted, current(), managed={user("b"): owned})
    assert status(untouched, "managed-entity") is GuardStatus.PASSED
