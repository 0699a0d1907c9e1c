"""The rows of a comment's table: each changed limit with the result of the backtest, the worst first."""

from __future__ import annotations

import enum
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from reconciler.model import (
    BacktestReport,
    Entity,
    GroupRows,
    KeyChange,
    NotJudged,
    Plan,
    Span,
    UnjudgedChange,
    Verdict,
    group_verdicts,
)
from reconciler.render import ChangeDirection, direction, effect_order, value_sentences


class RowState(enum.Enum):
    """What the backtest shows about one changed limit, worst first: words for a screen reader, and the sign."""

    REJECTED = ("fails a rule", "⛔")
    """A rule of the policy forbids what the backtest found."""
    THROTTLED = ("throttled", "🔴")
    POSSIBLE = ("possible", "🟡")
    KEPT = ("not removed", "✖")
    """It left the manifests, and stays on the cluster."""
    INCONCLUSIVE = ("inconclusive", "❓")
    NOT_CHECKED = ("not checked", "⚪")
    CLEAR = ("clear", "🟢")
    NO_CLIENT = ("not checked: no client", "⚪")

    @property
    def words(self) -> str:
        """The state in words."""
        return self.value[0]


_RANK: Final = {state: rank for rank, state in enumerate(RowState)}
_DIRECTIONS: Final = {
    ChangeDirection.REMOVED: ("removed", "✖"),
    ChangeDirection.TIGHTENS: ("tightened", "🔻"),
    ChangeDirection.FIRST_LIMIT: ("first limit", "\N{HEAVY PLUS SIGN}"),
    ChangeDirection.LOOSENS: ("loosened", "🔺"),
}
"""The sign of a change where nothing was checked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeRow:
    """One changed limit of one entity. ``groups``: its quota groups in the history, worst first."""

    key: str
    before: tuple[float | None, ...]
    """All earlier limits; empty: not known."""
    after: float | None
    state: RowState
    entity: Entity | None = None
    source: Span | None = None
    removed: bool = False
    direction: ChangeDirection = ChangeDirection.TIGHTENS
    groups: tuple[GroupRows, ...] = ()
    unjudged: UnjudgedChange | None = None
    profile: str | None = None
    """The profile that sets the limit."""
    declared: tuple[str, ...] = ()
    """What the limit was computed from, and why it changes when brokers came or went."""
    as_before: bool = False
    """Whether the cluster differs from the base in this limit already."""

    @property
    def is_folded(self) -> bool:
        """Whether it is not of this change, and no client is known to notice it."""
        return self.as_before and self.state not in (RowState.REJECTED, RowState.THROTTLED, RowState.POSSIBLE)

    @property
    def is_quiet(self) -> bool:
        """Whether the history has no traffic of it, and no rule forbids that."""
        return self.unjudged is not None and self.state in (RowState.NOT_CHECKED, RowState.NO_CLIENT)

    @property
    def unknown(self) -> bool:
        """Whether the backtest has no result for it at all, although it changes."""
        return not self.groups and self.state is not RowState.KEPT

    @property
    def safe(self) -> float | None:
        """The smallest limit that throttles none of its groups, where the proposed one may; a larger one than that."""
        low = [group.worst.advice.safe for group in self.groups if group.verdict in (Verdict.THROTTLED, Verdict.POSSIBLE)]
        known = [value for value in low if value is not None]
        if self.after is None or not known or len(known) < len(low) or max(known) <= self.after:
            return None
        return max(known)

    def sign(self, *, checked: bool) -> tuple[str, str]:
        """Words for a screen reader and the sign; without a backtest those of the direction."""
        by_direction = not checked and self.state is RowState.NOT_CHECKED
        return _DIRECTIONS[self.direction] if by_direction else self.state.value

    @property
    def order(self) -> tuple[int, float, float]:
        """A value that sorts the worst first: the state, the time over the limit, and the size of the change."""
        share = self.groups[0].time_over.share if self.groups else 0.0
        return _RANK[self.state], -share, effect_order(self.direction, self.before[0] if self.before else None, self.after)


def change_rows(plan: Plan, report: BacktestReport | None) -> list[ChangeRow]:
    """One row for each changed limit, for each that is not removed, and for each quota group that is hit by others' changes."""
    results = _Results(report)
    rows = [*_of_plan(plan, results), *_kept(plan), *results.rest()]
    return sorted(rows, key=lambda row: row.order)


def changed_groups(report: BacktestReport) -> tuple[GroupRows, ...]:
    """Quota groups whose limit changes, each once, by its worst broker."""
    return tuple(group for group in group_verdicts(report.verdicts) if group.changed)


class _Results:
    """What a report states, by entity and by the names of quota groups."""

    def __init__(self, report: BacktestReport | None) -> None:
        self.report = report
        self.unjudged = {(change.entity, change.key): change for change in report.unjudged} if report else {}
        rules = report.rules if report else ()
        self.failed: set[tuple[object, str]] = {(bucket.bucket, bucket.key) for rule in rules for bucket in rule.failed}
        self.failed |= {(change.entity, change.key) for rule in rules for change in rule.unjudged}
        """Quota groups, and entities without traffic, that a rule forbids."""
        self.every = changed_groups(report) if report else ()
        self.used: set[tuple[object, ...]] = set()
        self.listed: set[tuple[Entity, str]] = set()
        self._now: dict[tuple[Entity, str], list[GroupRows]] = defaultdict(list)
        self._before: dict[tuple[Entity, str], list[GroupRows]] = defaultdict(list)
        for group in self.every:
            worst = group.worst
            if worst.limits.entity is not None:
                self._now[worst.limits.entity, worst.key].append(group)
            for entity in dict.fromkeys(entity for row in group.rows for entity in row.limits.entities_before):
                self._before[entity, worst.key].append(group)

    def groups(self, entity: Entity, key: KeyChange) -> tuple[GroupRows, ...]:
        # A limit that is removed is one that its groups had before; others may limit them now, or none.
        known = self._now if key.after is not None else self._before
        groups = known.get((entity, key.key), ())
        self.used.update(group.worst.group for group in groups)
        return tuple(groups)

    def state(self, entity: Entity | None, key: str, groups: Sequence[GroupRows]) -> RowState:
        if self.report is None:
            return RowState.NOT_CHECKED
        if (entity, key) in self.failed or any((group.worst.name, key) in self.failed for group in groups):
            return RowState.REJECTED
        if groups:
            return min((RowState[group.verdict.name] for group in groups), key=_RANK.__getitem__)
        unjudged = self.unjudged.get((entity, key)) if entity else None
        return RowState.NOT_CHECKED if unjudged is None or unjudged.reason is NotJudged.NO_TRAFFIC else RowState.NO_CLIENT

    def rest(self) -> Iterator[ChangeRow]:
        """Yield rows for quota groups that no change of the plan is about and that are not clear."""
        for group in self.every:
            worst = group.worst
            if worst.group in self.used or group.verdict is Verdict.CLEAR:
                continue
            yield ChangeRow(
                key=worst.key,
                before=worst.limits.before,
                after=worst.limits.after,
                state=self.state(None, worst.key, (group,)),
                groups=(group,),
            )
        for (entity, key), unjudged in self.unjudged.items():
            if (entity, key) not in self.listed:
                yield ChangeRow(
                    key=key,
                    before=(unjudged.before,),
                    after=unjudged.after,
                    state=self.state(entity, key, ()),
                    entity=entity,
                    removed=unjudged.after is None,
                    unjudged=unjudged,
                )


def _of_plan(plan: Plan, results: _Results) -> Iterator[ChangeRow]:
    for change in plan.changes:
        for key in change.keys:
            groups = results.groups(change.entity, key)
            results.listed.add((change.entity, key.key))
            yield ChangeRow(
                key=key.key,
                before=(key.before,),
                after=key.after,
                state=results.state(change.entity, key.key, groups),
                entity=change.entity,
                source=key.source,
                profile=key.profile,
                declared=tuple(value_sentences(key, plan.totals.leaders)),
                removed=key.after is None,
                direction=direction(key),
                groups=groups,
                unjudged=results.unjudged.get((change.entity, key.key)),
                as_before=key.as_before,
            )


def _kept(plan: Plan) -> Iterator[ChangeRow]:
    for kept in plan.kept:
        for key, value in sorted(kept.quotas.items()):
            yield ChangeRow(key=key, before=(value,), after=value, state=RowState.KEPT, entity=kept.entity)
