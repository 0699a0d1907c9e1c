"""Laws of isolated owners: the owners whose guards pass are written, and no client gets a limit that is in no plan."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from itertools import product

from hypothesis import event, given
from hypothesis import strategies as st

from reconciler.features.isolation.judging import OwnerView, judge_owners
from reconciler.model.cluster import GuardLimits, Prune, ReductionLimit, Scope, VolumeLimit
from reconciler.model.entity import DEFAULT, Entity, EntityName, MatchKind, Selector, TypeMatch
from reconciler.model.plan import Change
from reconciler.model.state import Quotas
from reconciler.planning import difference, quotas_after, sort_for_writing
from reconciler.policy import FREEZE_WINDOW, GuardContext, Judgement, judge
from reconciler.resolution import CLIENT_PRECEDENCE
from tests.builders import cluster_spec, current, declared, desired

NOON = datetime.datetime(2026, 1, 2, 12, tzinfo=datetime.UTC)
OWNERS: tuple[str | None, ...] = ("a", "b", "c", None)
NAMES: tuple[EntityName | None, ...] = ("x", DEFAULT, None)
ENTITIES = (
    *(
        Entity.of({t: n for t, n in (("user", user), ("client-id", client)) if n is not None})
        for user, client in product(NAMES, NAMES)
        if (user, client) != (None, None)
    ),
    *(Entity.of({"ip": name}) for name in (DEFAULT, "10.0.0.1")),
    Entity.of({"user": "y"}),
)
VALUES = st.sampled_from([100.0, 300.0, 1000.0])


def key_of(entity: Entity) -> str:
    return "connection_creation_rate" if "ip" in entity.types else "producer_byte_rate"


STATES = st.dictionaries(st.sampled_from(ENTITIES), VALUES, min_size=2)
OWNERSHIP = st.fixed_dictionaries({entity: st.sampled_from(OWNERS) for entity in ENTITIES})
PROTECTED = st.lists(st.sampled_from(["x", "y"]), max_size=1).map(
    lambda names: tuple(Selector(types=(("user", TypeMatch(kind=MatchKind.NAME, text=name)),)) for name in names)
)
SPECS = st.builds(
    cluster_spec,
    prune=st.sampled_from(Prune),
    protected=PROTECTED,
    guards=st.builds(
        GuardLimits,
        too_many_removals=st.builds(VolumeLimit, percent=st.just(50.0), count=st.integers(0, 2), minimum=st.just(1)),
        too_many_changes=st.builds(VolumeLimit, percent=st.just(50.0), count=st.integers(0, 2)),
        large_reduction=st.builds(ReductionLimit, factor=st.sampled_from([0.01, 0.2, 0.5])),
    ),
)
VOLUME = ("large-reduction", "prune", "too-many-changes", "too-many-removals")
ACCEPTED = st.sampled_from([("default-entity", *VOLUME), ("default-entity", "prune"), ("default-entity",), ()])


class Case:
    """Random states, owners and guards, judged; ``default-entity`` is often accepted, since defaults are what couples owners."""

    def __init__(self, draw: st.DrawFn) -> None:
        self.live = {entity: {key_of(entity): value} for entity, value in draw(STATES).items()}
        wanted = {entity: {key_of(entity): value} for entity, value in draw(STATES).items()}
        self.owners = draw(OWNERSHIP)
        self.spec = draw(SPECS)
        self.accepted = draw(ACCEPTED)
        state = desired(*(declared(entity, **quotas) for entity, quotas in wanted.items()))
        differing = difference(state, current(self.live), scope=Scope(), prune=self.spec.prune)
        self.changes = sort_for_writing(differing.changes, self.live)
        self.context = GuardContext(changes=self.changes, desired=state, current=current(self.live), spec=self.spec, now=NOON)
        self.view = OwnerView(
            owner_of=self.owners.__getitem__,
            selected=draw(st.sampled_from([None, None, frozenset({"a"}), frozenset({"a", "b"})])),
            unread=draw(st.sampled_from([frozenset(), frozenset(), frozenset({"broken"})])),
        )

    def judged(self) -> Judgement:
        return judge_owners(self.context, self.view, accepted=self.accepted)

    def written(self) -> tuple[Change, ...]:
        changes = self.judged().changes
        assert changes is not None
        return changes

    def of(self, owner: str | None) -> tuple[Change, ...]:
        return tuple(change for change in self.changes if self.owners[change.entity] == owner)

    def trips(self, owner: str | None) -> bool:
        """The guards over a cluster that has nothing but this owner's entities."""
        alone = GuardContext(
            changes=self.of(owner),
            desired=desired(*(d for e, d in self.context.desired.entities.items() if self.owners[e] == owner)),
            current=current({e: q for e, q in self.live.items() if self.owners[e] == owner}),
            spec=self.spec,
            now=NOON,
        )
        guards = judge(alone, accepted=self.accepted, leave_out={FREEZE_WINDOW}).guards
        return any(guard.status == "needs-acceptance" for guard in guards)


CASES = st.composite(Case)()  # type: ignore[arg-type]  # a class is called as a function is


@given(CASES)
def test_what_is_written_is_the_union_of_the_owners_that_are_not_withheld(case: Case) -> None:
    judged = case.judged()
    withheld = {each.owner for each in judged.withheld}
    written = {owner for owner in OWNERS if owner not in withheld and case.view.wants(owner)}
    assert judged.changes == tuple(change for change in case.changes if case.owners[change.entity] in written)
    for each in judged.withheld:
        assert each.changes == case.of(each.owner)
        assert each.guards or each.findings or each.waits_for


@given(CASES)
def test_an_owner_is_withheld_when_its_own_guards_trip_or_it_waits_for_one_that_is_not_written(case: Case) -> None:
    judged = case.judged()
    withheld = {each.owner: each for each in judged.withheld}
    unwritten = {*withheld, *(owner for owner in OWNERS if not case.view.wants(owner)), *case.view.unread}
    event(f"{len(withheld)} withheld, {sum(bool(each.waits_for) for each in withheld.values())} wait")
    for owner in OWNERS:
        if not case.of(owner) or not case.view.wants(owner):
            continue
        if case.trips(owner):
            assert withheld[owner].guards
        elif owner in withheld:
            assert set(withheld[owner].waits_for) <= unwritten
            assert withheld[owner].waits_for


def limit(state: Mapping[Entity, Quotas], user: str | None, client: str | None) -> float | None:
    """Kafka's precedence, read once more: the first level that has the key decides."""
    for level in CLIENT_PRECEDENCE:
        names = {
            t: DEFAULT if match == "default" else name
            for t, match, name in (("user", level.user, user), ("client-id", level.client_id, client))
            if match != "absent"
        }
        entity = None if None in names.values() else Entity.of(names)  # type: ignore[arg-type]  # a name that is None ends here
        if entity is not None and (quotas := state.get(entity)):
            return quotas["producer_byte_rate"]
    return None


def address_limit(state: Mapping[Entity, Quotas], address: str) -> float | None:
    for name in (address, DEFAULT):
        if quotas := state.get(Entity.of({"ip": name})):
            return quotas["connection_creation_rate"]
    return None


@given(CASES)
def test_every_client_has_its_limit_of_before_or_the_one_of_the_whole_plan(case: Case) -> None:
    partly = quotas_after(case.live, case.written())
    wholly = quotas_after(case.live, case.changes)
    for user, client in product(("x", "y", "other"), ("x", "y", "other")):
        reviewed = {limit(case.live, user, client), limit(wholly, user, client)}
        assert limit(partly, user, client) in reviewed
    for address in ("10.0.0.1", "10.0.0.2", "10.0.0.3"):
        assert address_limit(partly, address) in {address_limit(case.live, address), address_limit(wholly, address)}


@given(CASES)
def test_no_default_changes_while_manifests_of_an_owner_cannot_be_read(case: Case) -> None:
    if case.view.unread:
        assert not any(change.entity.has_default for change in case.written())


@given(CASES)
def test_guards_of_the_whole_cluster_measure_what_is_written(case: Case) -> None:
    touched = [change for change in case.written() if any(key.before is not None for key in change.keys)]
    live = len(case.live)
    bound = case.spec.safety.guards.too_many_changes
    tripped = {guard.id for guard in case.judged().guards if guard.status == "needs-acceptance"}
    expected = "too-many-changes" not in case.accepted and (
        len(touched) > bound.count and 100 * len(touched) > bound.percent * live
    )
    assert ("too-many-changes" in tripped) == expected
    assert all(guard.owner is None for guard in case.judged().guards if guard.id in tripped)
