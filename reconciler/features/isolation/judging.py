"""Guards for each owner alone: a guard that trips withholds the changes of one owner, and those that depend on them.

What is written is the union of the changes of all owners whose guards pass. Two kinds of owners are withheld beside those whose
guards trip: owners whose manifests have errors, and owners whose changes would give a client a limit that is in no plan while
another owner is withheld. A change of a whole cluster, such as one of a profile, is small for each owner. So the guards of
``OF_THE_CLUSTER`` measure the union once more, and one of them that trips stops the whole run.

Of two changes to one key, one may decide what clients of the other get. A new default must wait for the exemption from it, and
a removal must wait for the value that it falls back to. With these rules, every client has its limit of before the run or of the
whole plan.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, TypeAlias

from reconciler.model import (
    Change,
    CurrentState,
    DesiredEntity,
    DesiredState,
    Entity,
    EntityType,
    Finding,
    GuardResult,
    GuardStatus,
    KeyChange,
    Message,
    Quotas,
    Shares,
    WithheldOwner,
    compose,
    name_part,
)
from reconciler.policy import FREEZE_WINDOW, GUARDS, GuardContext, Judgement, by_option, judge
from reconciler.resolution import overlap, strength
from reconciler.text import count_of, list_some

_MOST_NAMED: Final = 5

OF_THE_CLUSTER: Final = frozenset({"empty-desired-state", FREEZE_WINDOW, "too-many-changes", "too-many-removals"})
"""Guards that also, or only, measure the changes of all owners together."""


_ANY: Final = None


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnerView:
    """Who owns what. ``selected``: the owners whose changes are wanted (``None``: all).

    ``errors``: by owner, what is wrong with its manifests. ``unread``: owners whose manifests are left out, so that their changes
    are not known.
    """

    owner_of: Callable[[Entity], str | None]
    selected: frozenset[str] | None = None
    errors: Mapping[str | None, tuple[Finding, ...]] = field(default_factory=dict)
    unread: frozenset[str] = frozenset()

    def wants(self, owner: str | None) -> bool:
        """True for an owner whose changes are planned."""
        return self.selected is None or owner in self.selected


def judge_owners(
    context: GuardContext, view: OwnerView, *, accepted: Sequence[str], advice: Callable[[str], Message] = by_option
) -> Judgement:
    """Measure the guards for each owner with changes, and then for all that are left. Raises ``UsageError`` as ``judge`` does."""
    split = _Split.of(context, view)
    planned = {owner: changes for owner, changes in split.changes.items() if view.wants(owner)}
    judged = {owner: judge(split.alone(owner), accepted=accepted, leave_out={FREEZE_WINDOW}, advice=advice) for owner in planned}
    tripped = {owner: _with_status(each, GuardStatus.NEEDS_ACCEPTANCE, owner) for owner, each in judged.items()}
    errors = {owner: findings for owner, findings in view.errors.items() if view.wants(owner)}
    waits = _waits(split.changes, stopped={o for o in planned if tripped[o] or o in errors}, view=view)
    withheld = tuple(
        WithheldOwner(
            owner=owner,
            changes=planned.get(owner, ()),
            guards=tripped.get(owner, ()),
            findings=errors.get(owner, ()),
            waits_for=waits.get(owner, ()),
        )
        for owner in sorted({*errors, *waits, *(o for o, guards in tripped.items() if guards)}, key=_order)
    )
    stopped = {each.owner for each in withheld}
    written = {owner for owner in planned if owner not in stopped}
    allowed = tuple(change for change in context.changes if view.owner_of(change.entity) in written)
    whole = judge(
        replace(context, changes=allowed, of_all_owners=True),
        accepted=accepted,
        leave_out=frozenset(GUARDS) - OF_THE_CLUSTER,
        advice=advice,
    )
    passed = [guard for o in sorted(written, key=_order) for guard in _with_status(judged[o], GuardStatus.ACCEPTED, o)]
    return Judgement(
        changes=allowed,
        withheld=withheld,
        guards=(*whole.guards, *passed),
        notes=(
            *_notes([whole, *(judged[owner] for owner in sorted(judged, key=_order))]),
            *_left_out(view, unselected=len(context.changes) - sum(map(len, planned.values()))),
        ),
    )


def _left_out(view: OwnerView, *, unselected: int) -> Iterator[Message]:
    """Yield notes on what a plan leaves out: other owners, and changes that errors forbid."""
    if view.selected is not None:
        names = name_part(list_some(sorted(view.selected), _MOST_NAMED))
        left = compose(" {count} of other owners left out.", count=count_of(unselected, "change is", "changes are"))
        yield compose("Planned for owner {names} only.{left}", names=names, left=left if unselected else "")
    if view.unread:
        yield compose(
            "Manifests of {names} have errors, so nothing is pruned and no default entity changes.",
            names=name_part(list_some(sorted(view.unread), _MOST_NAMED)),
        )


def _order(owner: str | None) -> tuple[bool, str]:
    return owner is None, owner or ""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Split:
    """Changes and both states, by owner."""

    context: GuardContext
    changes: Mapping[str | None, tuple[Change, ...]]
    desired: Mapping[str | None, Mapping[Entity, DesiredEntity]]
    current: Mapping[str | None, Mapping[Entity, Quotas]]

    @classmethod
    def of(cls, context: GuardContext, view: OwnerView) -> _Split:
        changes: dict[str | None, list[Change]] = {}
        for change in context.changes:
            changes.setdefault(view.owner_of(change.entity), []).append(change)
        desired: dict[str | None, dict[Entity, DesiredEntity]] = {owner: {} for owner in changes}
        current: dict[str | None, dict[Entity, Quotas]] = {owner: {} for owner in changes}
        for entity, declared in context.desired.entities.items():
            if (owner := view.owner_of(entity)) in desired:
                desired[owner][entity] = declared
        for entity, quotas in context.current.entities.items():
            if (owner := view.owner_of(entity)) in current:
                current[owner][entity] = quotas
        return cls(context=context, changes={o: tuple(each) for o, each in changes.items()}, desired=desired, current=current)

    def alone(self, owner: str | None) -> GuardContext:
        """Return the part of the context that is one owner's: as if the cluster had nothing else."""
        desired: DesiredState = replace(self.context.desired, entities=self.desired[owner])
        current: CurrentState = replace(self.context.current, entities=self.current[owner])
        return replace(self.context, changes=self.changes[owner], desired=desired, current=current)


def _with_status(judgement: Judgement, status: GuardStatus, owner: str | None) -> tuple[GuardResult, ...]:
    return tuple(replace(guard, owner=owner) for guard in judgement.guards if guard.status is status)


def _waits(
    changes: Mapping[str | None, tuple[Change, ...]], *, stopped: set[str | None], view: OwnerView
) -> dict[str | None, tuple[str | None, ...]]:
    """The owners that must wait for others, with these: found anew until no more owner has to."""
    held = HeldChanges()
    waits: dict[str | None, tuple[str | None, ...]] = {}
    unwritten: set[str | None] = set()
    fresh = {*stopped, *(owner for owner in changes if not view.wants(owner))}
    first = True
    while fresh or first:
        first = False
        for owner in fresh:
            held.add(owner, changes.get(owner, ()))
        unwritten |= fresh
        fresh = set()
        for owner, own in changes.items():
            if owner in unwritten:
                continue
            needed = {before for change in own for before in held.owners_before(change)}
            if any(map(_depends_on_all, own)):
                needed |= view.unread
            if needed:
                waits[owner] = tuple(sorted(needed, key=_order))
                fresh.add(owner)
    return waits


def _depends_on_all(change: Change) -> bool:
    """True for a change that concerns clients of every owner: a default, and a share whose size the shares of others decide."""
    return change.entity.has_default or any(key.unit is not None and isinstance(key.unit, Shares) for key in change.keys)


def _notes(judgements: Sequence[Judgement]) -> tuple[str, ...]:
    """All warnings; of acceptances that did nothing those that did nothing for any owner."""
    counts = Counter(note for each in judgements for note in each.idle)
    notes = [note for each in judgements for note in each.notes if note not in each.idle or counts[note] == len(judgements)]
    return tuple(dict.fromkeys(notes))


_Index: TypeAlias = dict[tuple[str, str | None], list["_HeldKey"]]


@dataclass(frozen=True, slots=True, kw_only=True)
class _HeldKey:
    owner: str | None
    entity: Entity
    key: KeyChange


class HeldChanges:
    """Changes that are not written, for the question which other changes must wait for them."""

    def __init__(self) -> None:
        self._every: dict[str, list[_HeldKey]] = defaultdict(list)
        self._by_user: _Index = defaultdict(list)
        self._by_client: _Index = defaultdict(list)

    def add(self, owner: str | None, changes: Iterable[Change]) -> None:
        """Changes of one owner."""
        for change in changes:
            for key in change.keys:
                held = _HeldKey(owner=owner, entity=change.entity, key=key)
                self._every[key.key].append(held)
                self._by_user[key.key, _named(change.entity, EntityType.USER)].append(held)
                self._by_client[key.key, _named(change.entity, EntityType.CLIENT_ID)].append(held)

    def owners_before(self, change: Change) -> Iterator[str | None]:
        """Owners of changes that a change must wait for, once for each reason."""
        for key in change.keys:
            for held in self._near(change.entity, key.key):
                if held.entity != change.entity and _must_wait(change.entity, key, held) and overlap(change.entity, held.entity):
                    yield held.owner

    def _near(self, entity: Entity, key: str) -> Iterator[_HeldKey]:
        """A superset of the held changes that overlap: most entities name a user, and few others have the same."""
        user, client_id = _named(entity, EntityType.USER), _named(entity, EntityType.CLIENT_ID)
        index, name = (self._by_user, user) if user is not None else (self._by_client, client_id)
        if name is None:
            yield from self._every.get(key, ())
            return
        yield from index.get((key, name), ())
        yield from index.get((key, _ANY), ())


def _named(entity: Entity, entity_type: EntityType) -> str | None:
    name = entity.name(entity_type)
    return name if isinstance(name, str) else None


def _must_wait(entity: Entity, key: KeyChange, held: _HeldKey) -> bool:
    if key.after is None:
        # Where the value goes, another one decides: the held one, before or after its change.
        return True
    creates = held.key.before is None and held.key.after is not None
    return creates and strength(held.entity) < strength(entity)
