"""Measurements of the guards: which entities change, how much changes at once, and when a cluster is frozen.

A weekly freeze window is from one wall-clock time to another. Where clocks change, such a time may come twice or never; both
readings are then taken, and the one that freezes longer counts: in doubt nothing is written.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Final
from zoneinfo import ZoneInfo

from reconciler.model import (
    KNOWN_KEYS,
    Action,
    Change,
    ClusterSpec,
    CurrentState,
    DesiredState,
    Entity,
    Filling,
    FreezeWindow,
    KeyChange,
    Message,
    Once,
    Reason,
    Span,
    Weekly,
    WindowKind,
    any_matches,
    compose,
    display_name,
    join_messages,
    key_part,
    name_part,
)
from reconciler.text import amount_part, count_of, list_entities, moment_text

SHOWN: Final = 3
"""How many names a message lists."""


_DAY: Final = datetime.timedelta(days=1)
_FAR: Final = datetime.datetime(9000, 1, 1, tzinfo=datetime.UTC)
"""Far enough: dates near the calendar's end cannot be calculated with, and mean "for ever"."""
FREEZE_WINDOW: Final = "freeze-window"
"""Its id; a refusal by it alone passes with time."""


def default_entity(context: GuardContext) -> Measurement:
    """A change to a default entity reaches every client that has no quota of its own."""
    changes = tuple(change for change in context.new_changes() if change.entity.has_default)
    removes = all(change.action is Action.DELETE for change in changes)
    what, effect = ("Removes", "loses that limit") if removes else ("Changes", "is affected")
    words = f"{what} {{names}}. Every client there without its own quota {effect}."
    return trip_on_any((change.entity for change in changes), words)


def protected_entity(context: GuardContext) -> Measurement:
    """A change to an entity on the cluster's protected list, which is kept apart from what it protects."""
    protected = context.spec.safety.protected
    touched = (change.entity for change in context.new_changes() if any_matches(protected, change.entity))
    return trip_on_any(touched, "Changes {names}, which the Cluster manifest protects.", context.spec.place("protected"))


def prune(context: GuardContext) -> Measurement:
    """Whole entities that no manifest declares, under ``prune: confirm``."""
    gone = [c.entity for c in context.changes if any(k.reason is Reason.ENTITY_NOT_IN_MANIFEST for k in c.keys)]
    words = f"No manifest declares {{names}}. Pruning would remove {'its' if len(gone) == 1 else 'their'} limits."
    return trip_on_any(gone, words, context.spec.place("prune"))


def rebalance(context: GuardContext) -> Measurement:
    """Parts of a total that change because brokers came or went, under ``rebalance: confirm``."""
    moved = (c.entity for c in context.changes if any(k.brokers_before is not None for k in c.keys))
    words = "The number of brokers changed. Each broker would get another part of the total of {names}."
    return trip_on_any(moved, words, context.spec.place("rebalance"))


def scope_overlap(context: GuardContext) -> Measurement:
    """A change to what another Cluster manifest, for the same real cluster, declares too: the two would undo each other."""
    contested = [c.entity for c in context.changes if c.entity in context.claimed_elsewhere]
    others = sorted({display_name(context.claimed_elsewhere[entity]) for entity in contested})
    named = join_messages(Message([name_part(other)]) for other in others)
    words = "The manifests also declare {names} for {others}, which is the same cluster."
    return trip_on_any(contested, words, context.spec.place("scope"), others=named)


def managed_entity(context: GuardContext) -> Measurement:
    """A change by hand (with alter) to an entity that manifests manage: the next apply undoes it, or no manifest shows it."""
    by_hand = [c.entity for c in context.changes if c.entity in context.managed]
    if not by_hand:
        return trip_on_any((), "")
    first = context.managed[by_hand[0]]
    if first.declared:
        words = "A manifest declares {first}{where}. The next apply restores the declared values. Change the manifest instead."
    else:
        words = "{first} is in the scope of {cluster}{where}, whose quotas come from manifests. Declare it in a manifest."
    cluster = name_part(display_name(context.spec.name)) if context.spec.name else "the manifests"
    where = compose(" ({place})", place=first.place) if first.place else ""
    return trip_on_any(by_hand, words, first.place, first=by_hand[0], cluster=cluster, where=where)


def unknown_current_keys(context: GuardContext) -> Measurement:
    """Declared entities on which the cluster has keys that this version does not know. Such keys are never written."""
    limit = context.spec.safety.guards.unknown_current_keys
    live = context.current.entities
    unknown = {entity for entity, quotas in live.items() if not KNOWN_KEYS.issuperset(quotas)}
    entities = tuple(entity for entity in context.desired.entities if entity in unknown) if unknown else ()
    warns = limit.count is None
    most = "none, it only warns" if limit.count is None else entity_count(limit.count)
    passed = Measurement(measured=entity_count(len(entities)), limit=most, set_in=limit.set_in, only_warns=warns)
    if len(entities) <= (limit.count or 0):
        return passed
    keys = sorted({display_name(key) for e in entities for key in live[e].keys() - KNOWN_KEYS})[:SHOWN]
    named = join_messages(Message([key_part(key)]) for key in keys)
    words = "The cluster has keys that this version does not know ({keys}) on {names}. They stay as they are."
    return passed.tripped(entities, words, keys=named)


def empty_desired_state(context: GuardContext) -> Measurement:
    """Manifests that declare nothing, where pruning would then remove everything: rather a wrong folder than an intention."""
    declared = sum(1 for d in context.desired.entities.values() if d.quotas)
    passed = Measurement(measured=f"{entity_count(declared)} declared", limit="at least 1 declared")
    removed = tuple(c.entity for c in context.new_changes() if c.action is Action.DELETE) if declared == 0 else ()
    words = "The manifests declare no quota. All {count} in scope would be removed."
    return passed.tripped(removed, words, count=entity_count(len(removed))) if removed else passed


def too_many_removals(context: GuardContext) -> Measurement:
    """Many entities lose a limit at once; a removed limit falls back to the next level, or to none.

    The percentage does not apply to one entity alone, nor to a small cluster: there every removal is a large share.
    """
    limit = context.spec.safety.guards.too_many_removals
    losing = tuple(c.entity for c in context.new_changes() if any(k.after is None for k in c.keys))
    percent, affected = share(losing, context)
    shares = len(losing) > 1 and context.live_in_scope() > limit.minimum
    exceeds = len(losing) > limit.count or (shares and percent > limit.percent)
    within = f"{limit.percent:.3g} % or " if shares else ""
    passed = Measurement(measured=affected, limit=f"{within}{entity_count(limit.count)}", set_in=limit.set_in)
    words = "{affected} in scope would lose limits: {names}."
    return passed.tripped(losing, words, affected=affected) if exceeds else passed


def too_many_changes(context: GuardContext) -> Measurement:
    """Many of the cluster's entities change at once. New entities are not entity_count: they are not part of what exists."""
    limit = context.spec.safety.guards.too_many_changes
    touched = tuple(c.entity for c in context.new_changes() if any(k.before is not None for k in c.keys))
    percent, affected = share(touched, context)
    exceeds = len(touched) > limit.count and percent > limit.percent
    most = f"{limit.percent:.3g} % and {entity_count(limit.count)}"
    passed = Measurement(measured=affected, limit=most, set_in=limit.set_in)
    words = "{affected} in scope would change: {names}."
    return passed.tripped(touched, words, affected=affected) if exceeds else passed


def large_reduction(context: GuardContext) -> Measurement:
    """A new value far below the current one, most often a slip of the unit. Removed keys are for ``too-many-removals``."""
    limit = context.spec.safety.guards.large_reduction
    reduced = [
        (c.entity, k) for c in context.new_changes() for k in c.keys if k.before is not None and _ratio(k) < limit.of(k.key)
    ]
    if not reduced:
        allowed = f"{100 * limit.factor:.3g} % of the current value"
        return Measurement(measured="none", limit=allowed, set_in=limit.set_in)
    entity, key = min(reduced, key=lambda pair: _ratio(pair[1]))
    touched = tuple(dict.fromkeys(entity for entity, _ in reduced))
    after, ratio, least = _lowest(key), 100 * _ratio(key), 100 * limit.of(key.key)
    passed = Measurement(measured=f"{ratio:.3g} %", limit=f"{least:.3g} % of the current value", set_in=limit.set_in)
    return passed.tripped(
        touched,
        "Cuts {key} for {entity} from {before} to {after}{when}.{more}",
        key=key_part(key.key),
        entity=entity,
        before=amount_part(key.key, key.before),
        after=amount_part(key.key, after),
        when=f" on {moment_text(key.expiry.at)}" if key.expiry is not None and after != key.after else "",
        more=f" {entity_count(len(touched))} in all." if len(touched) > 1 else "",
    )


def _ratio(key: KeyChange) -> float:
    """New over old; 1 where there is not both, or the old value is none that a limit can have."""
    if key.before is None or not key.before > 0:
        return 1.0
    lowest = _lowest(key)
    return 1.0 if lowest is None else lowest / key.before


def _lowest(key: KeyChange) -> float | None:
    """The new value, or what follows when that expires: no guard measures that change again."""
    later = key.expiry.other if key.expiry is not None and not key.expiry.expired else None
    return later if later is not None and key.after is not None and later < key.after else key.after


@dataclass(frozen=True, slots=True, kw_only=True)
class ManagedAt:
    """Where manifests own an entity: at its entry when they declare it, else at the scope around it, if that is written."""

    declared: bool
    place: Span | None


@dataclass(frozen=True, slots=True, kw_only=True)
class GuardContext:
    """Everything a guard may use. ``now`` has a time zone.

    ``claimed_elsewhere``: entities that the manifests also declare under another name of the same cluster, and that name.
    ``managed``: entities that are changed by hand although manifests own them. ``accepted_fallbacks``: keys that
    get what the manifests declare to follow a value that expired, which was reviewed together with that value.
    """

    changes: tuple[Change, ...]
    desired: DesiredState
    current: CurrentState
    spec: ClusterSpec
    now: datetime.datetime
    claimed_elsewhere: Mapping[Entity, str] = field(default_factory=dict)
    managed: Mapping[Entity, ManagedAt] = field(default_factory=dict)
    accepted_fallbacks: frozenset[tuple[Entity, str]] = frozenset()

    def new_changes(self) -> tuple[Change, ...]:
        """The changes without accepted fallbacks: what nothing has reviewed yet."""
        if not self.accepted_fallbacks:
            return self.changes
        left = []
        for change in self.changes:
            keys = tuple(key for key in change.keys if (change.entity, key.key) not in self.accepted_fallbacks)
            if keys:
                left.append(replace(change, keys=keys))
        return tuple(left)

    def live_in_scope(self) -> int:
        """Entities on the cluster that this repository owns."""
        return sum(1 for entity in self.current.entities if self.spec.scope.contains(entity))


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """The result of a guard. The guard trips exactly when ``entities`` is not empty; ``why``: one or two sentences.

    A guard that only warns makes a note instead of a refusal.
    """

    measured: str
    limit: str
    entities: tuple[Entity, ...] = ()
    why: Message = Message(())
    set_in: Span | None = None
    only_warns: bool = False

    def tripped(self, entities: tuple[Entity, ...], words: str, **fillings: Filling) -> Measurement:
        """The same for these entities. ``words``: the reason, with the field ``names`` for them."""
        return replace(self, entities=entities, why=compose(words, names=list_entities(entities), **fillings))


def trip_on_any(entities: Iterable[Entity], words: str, set_in: Span | None = None, **fillings: Filling) -> Measurement:
    """The result of a guard that trips on any entity, with the reason as ``Measurement.tripped`` takes it."""
    tripped = tuple(entities)
    passed = Measurement(measured=entity_count(len(tripped)), limit="0 entities", set_in=set_in)
    return passed.tripped(tripped, words, **fillings) if tripped else passed


def share(entities: Sequence[Entity], context: GuardContext) -> tuple[float, str]:
    """The share of the entities in scope, in percent and as text."""
    if not entities:
        return 0.0, "0 entities"
    live = context.live_in_scope()
    percent = 100 * len(entities) / live if live else 0.0
    return percent, f"{len(entities):,} of {entity_count(live)} ({percent:.3g} %)"


def entity_count(count: int) -> str:
    """``1 entity``, ``2 entities``."""
    return count_of(count, "entity", "entities")


@dataclass(frozen=True, slots=True, kw_only=True)
class Freeze:
    """A cluster that is frozen. ``window`` is the one that denies, or ``None`` when no window allows.

    ``until`` is the first moment at which it is not (UTC); ``None`` when there is none.
    """

    window: FreezeWindow | None
    until: datetime.datetime | None


def freeze_at(windows: Sequence[FreezeWindow], now: datetime.datetime) -> Freeze | None:
    """The freeze in effect at a moment (with time zone), or ``None``. Deny beats allow; the end of a window is outside of it."""
    if not _frozen(windows, now):
        return None
    denying = (w for w in windows if w.kind is WindowKind.DENY and _contains(w, now))
    return Freeze(window=next(denying, None), until=_thawed(windows, now))


def _frozen(windows: Sequence[FreezeWindow], moment: datetime.datetime) -> bool:
    if any(w.kind is WindowKind.DENY and _contains(w, moment) for w in windows):
        return True
    allowing = [w for w in windows if w.kind is WindowKind.ALLOW]
    return bool(allowing) and not any(_contains(w, moment) for w in allowing)


def _thawed(windows: Sequence[FreezeWindow], now: datetime.datetime) -> datetime.datetime | None:
    """Whether it is frozen changes only where a window begins or ends. A week after the last single event, weeks are alike."""
    single = [edge for w in windows if isinstance(w.when, Once) for edge in (w.when.start, w.when.end) if edge is not None]
    near = [moment for moment in (now, *single) if moment < _FAR]
    edges = {edge for window in windows for moment in near for edge in _edges(window, moment)}
    thaws = (edge for edge in sorted(edges) if now < edge < _FAR and not _frozen(windows, edge))
    return next((edge.astimezone(datetime.UTC) for edge in thaws), None)


def _contains(window: FreezeWindow, moment: datetime.datetime) -> bool:
    when = window.when
    if isinstance(when, Once):
        return (when.start is None or when.start <= moment) and (when.end is None or moment < when.end)
    return any(start <= moment < end for start, end in _occurrences(window.kind, when, moment))


def _edges(window: FreezeWindow, moment: datetime.datetime) -> Iterator[datetime.datetime]:
    when = window.when
    if isinstance(when, Once):
        yield from (edge for edge in (when.start, when.end) if edge is not None)
    else:
        for start, end in _occurrences(window.kind, when, moment):
            if start < end:
                yield from (start, end)


def _occurrences(
    kind: WindowKind, weekly: Weekly, moment: datetime.datetime
) -> Iterator[tuple[datetime.datetime, datetime.datetime]]:
    """Yield the windows that begin from two days before a moment to eight days after it, in UTC."""
    today = moment.astimezone(_zone(weekly.time_zone)).date()
    for offset in range(-2, 9):
        day = today + offset * _DAY
        if day.weekday() in weekly.days:
            yield _occurrence(kind, weekly, day)


@lru_cache(maxsize=4096)
def _occurrence(kind: WindowKind, weekly: Weekly, day: datetime.date) -> tuple[datetime.datetime, datetime.datetime]:
    length = weekly.end if weekly.end > weekly.start else weekly.end + 1440
    starts, ends = (_readings(day, minutes, _zone(weekly.time_zone)) for minutes in (weekly.start, length))
    return (min(starts), max(ends)) if kind is WindowKind.DENY else (max(starts), min(ends))


@lru_cache(maxsize=64)
def _zone(name: str) -> ZoneInfo:
    return ZoneInfo(name)


def _readings(day: datetime.date, minutes: int, zone: ZoneInfo) -> tuple[datetime.datetime, datetime.datetime]:
    """A wall-clock time, minutes after a day's midnight, as it may be read where clocks change (elsewhere twice the same)."""
    wall = datetime.datetime.combine(day, datetime.time()) + datetime.timedelta(minutes=minutes)
    first, second = (wall.replace(tzinfo=zone, fold=fold).astimezone(datetime.UTC) for fold in (0, 1))
    return first, second


def freeze_window(context: GuardContext) -> Measurement:
    """Any change while the cluster is frozen. A plan only reports it, and ``apply`` refuses."""
    windows = context.spec.safety.freeze
    frozen = freeze_at(windows, context.now) if windows and context.changes else None
    if frozen is None:
        measured = "not frozen" if context.changes else "no change"
        return Measurement(measured=measured, limit="no change while frozen")
    until = f"until {_utc(frozen.until)}" if frozen.until else "without end"
    reason = "" if frozen.window is None or not frozen.window.reason else compose(": {r}", r=name_part(frozen.window.reason))
    more = " Changes are allowed in its allow windows only." if frozen.window is None else ""
    set_in = (frozen.window.span if frozen.window else None) or context.spec.place("freeze")
    passed = Measurement(measured=f"frozen {until}", limit="no change while frozen", set_in=set_in)
    words = "The cluster is frozen {until}{reason}.{more}"
    return passed.tripped(tuple(c.entity for c in context.changes), words, until=until, reason=reason, more=more)


def _utc(moment: datetime.datetime) -> str:
    return moment.astimezone(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
