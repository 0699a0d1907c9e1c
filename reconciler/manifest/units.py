"""Numbers for each broker from values that are declared otherwise: totals, shares of a capacity, parts of budgets.

Numbers are rounded down, so that their sum never exceeds what was declared. All arithmetic is exact.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Final

from reconciler.manifest.limits import ClusterManifests, Entities, Stage, budgets_of
from reconciler.manifest.reading import finding
from reconciler.model import (
    BrokerFacts,
    BudgetShare,
    DeclaredExpiry,
    DesiredEntity,
    DesiredQuota,
    DesiredState,
    Entity,
    Finding,
    LeaderSpread,
    Message,
    Proportional,
    QuotaKey,
    QuotaUnit,
    Shares,
    Span,
    UnitQuota,
    ValueType,
    compose,
    display_name,
    flag_part,
    key_part,
    name_part,
)
from reconciler.text import amount, amount_part, list_some, shares_text, shown_part

_SHOWN_SHARES: Final = 20
_DECIMALS: Final = 1000
"""A percentage or a rate of mutations is cut after the third decimal."""


def round_down(key: QuotaKey, exact: Fraction) -> float | None:
    """The largest value that the key takes and that is not above ``exact``; ``None`` when not even the smallest is."""
    step = _DECIMALS if key.value_type is ValueType.DOUBLE else 1
    number = float(Fraction(math.floor(exact * step), step))
    if Fraction(number) > exact:
        number = math.nextafter(number, 0.0)
    return number or None


def part_of_total(key: QuotaKey, total: float, brokers: int) -> float | None:
    """Return the part of each broker. All parts together are never more than the total."""
    return round_down(key, Fraction(total) / brokers)


def count_leaders(spread: LeaderSpread | None, topics: tuple[str, ...] | None) -> tuple[Counter[int], int]:
    """Return the partitions that each broker leads, by id, and the number of all. Kafka's own topics count only by name."""
    if spread is None:
        return Counter(), 0
    if not spread.by_topic and topics is None:
        counts = Counter(dict(spread.partitions))
        return counts, counts.total() + spread.leaderless
    chosen = [each for name, each in spread.by_topic.items() if (not name.startswith("__") if topics is None else name in topics)]
    return Counter(leader for leaders, _ in chosen for leader in leaders), sum(count for _, count in chosen)


def share_totals(entities: Iterable[DesiredEntity]) -> dict[tuple[QuotaKey, float | None], Fraction]:
    """The sum of the shares of each capacity: one for each key and written ``of``."""
    totals: dict[tuple[QuotaKey, float | None], Fraction] = {}
    for declared in entities:
        for key, quota in declared.units.items():
            if isinstance(quota.unit, Shares):
                pool = key, quota.unit.of
                totals[pool] = totals.get(pool, Fraction(0)) + quota.unit.count
    return totals


class UnitLimits:
    """Computes values of one cluster, and collects what is wrong with them. Equal values are computed once."""

    def __init__(
        self,
        *,
        facts: BrokerFacts | None = None,
        capacity: Mapping[str, float] | None = None,
        shares: Mapping[tuple[QuotaKey, float | None], Fraction] | None = None,
        budgets: Mapping[tuple[str, QuotaKey], DesiredQuota] | None = None,
    ) -> None:
        """``capacity``: of one broker, by key. ``shares``: from ``share_totals``. ``budgets``: by owner and key.

        Without ``shares`` and ``budgets`` such values stay as they are.
        """
        self._budgets = budgets
        self._brokers = len(facts.brokers) if facts is not None else 0
        self._leaders = facts.leaders if facts is not None else None
        self._capacity = capacity or {}
        self._shares = shares
        self._known: dict[tuple[QuotaKey, str | None, int], tuple[UnitQuota, DesiredQuota | None]] = {}
        self._reported: set[Span] = set()
        self.findings: list[Finding] = []

    def computed(self, declared: DesiredEntity) -> DesiredEntity:
        """The entity with numbers in place of all units that can be computed."""
        quotas, left = dict(declared.quotas), dict(declared.units)
        for key, written in declared.units.items():
            quota = self._quota(key, written, declared)
            if quota is not None:
                quotas[key] = quota
                del left[key]
        expiries = {key: self._computed_expiry(key, expiry, declared) for key, expiry in declared.expiries.items()}
        return replace(declared, quotas=quotas, units=left, expiries=expiries)

    def _computed_expiry(self, key: QuotaKey, expiry: DeclaredExpiry, declared: DesiredEntity) -> DeclaredExpiry:
        """Return the expiry with a number on its other side, where that is computed."""
        quota = self._quota(key, expiry.other, declared) if isinstance(expiry.other, UnitQuota) else None
        return expiry if quota is None else replace(expiry, other=quota)

    def _quota(self, key: QuotaKey, written: UnitQuota, declared: DesiredEntity) -> DesiredQuota | None:
        """Entities of one profile have the very same value. The value is kept beside its id, so that no other gets that id."""
        owner = declared.owner if isinstance(written.unit, BudgetShare) else None
        known = self._known.get((key, owner, id(written)))
        if known is None:
            result = self._number(key, written, declared)
            quota = None
            if result is not None:
                number, unit = result
                quota = DesiredQuota(value=number, source=written.source, text=written.text, profile=written.profile, unit=unit)
            known = self._known[key, owner, id(written)] = written, quota
        return known[1]

    def _number(self, key: QuotaKey, written: UnitQuota, declared: DesiredEntity) -> tuple[float, QuotaUnit] | None:
        unit, entity = written.unit, declared.entity
        if isinstance(unit, Shares):
            return self._share(key, written, unit, entity)
        if isinstance(unit, BudgetShare):
            return self._budget_share(key, written, unit, declared)
        if not self._brokers:
            return None
        if isinstance(unit, Proportional):
            return self._largest_part(key, written, unit, entity)
        number = part_of_total(key, unit.value, self._brokers)
        if number is None:
            message = compose(
                "{total} of {key} in total is too little for {count} brokers: each broker needs at least {least}",
                total=amount_part(key.value, unit.value),
                key=key_part(key.value),
                count=self._brokers,
                least=amount_part(key.value, 1.0),
            )
            self._add("part-too-small", message, written, entity, key)
            return None
        return number if unit.per_broker is None else min(number, unit.per_broker), replace(unit, brokers=self._brokers)

    def _largest_part(
        self, key: QuotaKey, written: UnitQuota, unit: Proportional, entity: Entity
    ) -> tuple[float, QuotaUnit] | None:
        """One number for all brokers: the part of the broker that leads the most."""
        leaders, partitions = count_leaders(self._leaders, unit.topics)
        if not leaders:
            self._add("unknown-leaders", self._unknown_leaders(unit, key), written, entity, key)
            return None
        known = replace(unit, leaders=tuple(sorted(leaders.items())), partitions=partitions)
        number = round_down(key, Fraction(unit.value) * known.most / partitions)
        return None if number is None else (number, known)

    def _unknown_leaders(self, unit: Proportional, key: QuotaKey) -> Message:
        what = "of any topic" if unit.topics is None else f"of {list_some([display_name(topic) for topic in unit.topics], 3)}"
        if self._leaders is None or (self._leaders.partitions and not self._leaders.by_topic):
            return compose(
                "the leaders of partitions {what} are not known here, so {key} cannot be in proportion to them. Snapshots have "
                "no leaders by topic: read the live cluster with {option}, or write {total}",
                what=what,
                key=key_part(key.value),
                option=flag_part("--bootstrap-server"),
                total=flag_part("clusterTotal"),
            )
        return compose(
            "no partition {what} has a leader that can be seen, so {key} cannot be in proportion to them. Check the names of the "
            "topics, read the cluster as a principal that may describe them, or write {total}",
            what=what,
            key=key_part(key.value),
            total=flag_part("clusterTotal"),
        )

    def _share(self, key: QuotaKey, written: UnitQuota, unit: Shares, entity: Entity) -> tuple[float, QuotaUnit] | None:
        if self._shares is None:
            return None
        capacity = unit.of if unit.of is not None else self._capacity.get(key.value)
        if capacity is None:
            message = compose(
                "shares of {key} have no capacity. Write {of}, or {field} of the Cluster manifest",
                key=key_part(key.value),
                of=flag_part("of"),
                field=flag_part(f"spec.capacity.{key.value}"),
            )
            self._add("unknown-capacity", message, written, entity, key)
            return None
        total = self._shares[key, unit.of]
        number = round_down(key, Fraction(capacity) * unit.count / total)
        if number is None:
            message = compose(
                "{text} of {total} shares is less than the smallest value of {key}",
                text=shown_part(written.text),
                total=str(float(total)),
                key=key_part(key.value),
            )
            self._add("part-too-small", message, written, entity, key)
            return None
        return number, replace(unit, of=capacity, total=total)

    def _budget_share(
        self, key: QuotaKey, written: UnitQuota, unit: BudgetShare, declared: DesiredEntity
    ) -> tuple[float, QuotaUnit] | None:
        if self._budgets is None:
            return None
        budget = self._budgets.get((declared.owner, key)) if declared.owner is not None else None
        if budget is None:
            message = compose(
                "{owner} has no budget of {key} here. Write it in {field} of the Repository manifest, or declare a number",
                owner=name_part(display_name(declared.owner)) if declared.owner is not None else "a document without an owner",
                key=key_part(key.value),
                field=flag_part("spec.budgets"),
            )
            self._add("unknown-budget", message, written, declared.entity, key)
            return None
        number = round_down(key, Fraction(budget.value) * unit.percent / 100)
        if number is None:
            message = compose(
                "{text} of a budget of {budget} is less than the smallest value of {key}",
                text=shown_part(written.text),
                budget=amount_part(key.value, budget.value),
                key=key_part(key.value),
            )
            self._add("part-too-small", message, written, declared.entity, key)
            return None
        return number, replace(unit, of=budget.value)

    def _add(self, rule_id: str, message: str, written: UnitQuota, entity: Entity, key: QuotaKey) -> None:
        """Add a finding unless its place has one already: one value can be that of many entities."""
        if written.source not in self._reported:
            self._reported.add(written.source)
            self.findings.append(finding(rule_id, message, written.source, entity=entity, key=key.value))


def compute_units(desired: DesiredState, facts: BrokerFacts) -> tuple[DesiredState, tuple[Finding, ...]]:
    """The state with a number for each broker in place of every total, and what is wrong with the totals.

    Without brokers the values are returned as they are.
    """
    if not desired.with_units:
        return desired, ()
    if not facts.brokers:
        return replace(desired, with_units=tuple(entity for entity in desired.with_units if desired.entities[entity].units)), ()
    limits = UnitLimits(facts=facts)
    computed = {entity: limits.computed(desired.entities[entity]) for entity in desired.with_units}
    entities = {**desired.entities, **computed}
    left = tuple(entity for entity in desired.with_units if entities[entity].units)
    return replace(desired, entities=entities, with_units=left), tuple(limits.findings)


def _with_parts(manifests: ClusterManifests, entities: Entities) -> list[Finding]:
    """Put numbers in place of shares and parts of budgets: only the manifests decide about those."""
    with_units = [declared for declared in entities.values() if declared.units]
    limits = UnitLimits(
        capacity=manifests.cluster.brokers.capacity,
        shares=share_totals(with_units),
        budgets=budgets_of(manifests.budgets, manifests.cluster),
    )
    entities.update((declared.entity, limits.computed(declared)) for declared in with_units)
    return limits.findings


def share_notes(entities: Entities) -> Iterator[Message]:
    """One sentence for each capacity that is divided by shares: who has how many of them, and the limit that this gives."""
    pools: dict[tuple[QuotaKey, float, Fraction], list[tuple[Entity, Fraction, float]]] = {}
    for entity, declared in entities.items():
        for key, quota in declared.quotas.items():
            unit = quota.unit
            if isinstance(unit, Shares) and unit.of is not None and unit.total is not None:
                pools.setdefault((key, unit.of, unit.total), []).append((entity, unit.count, quota.value))
    for (key, capacity, total), members in sorted(pools.items()):
        members.sort(key=lambda member: (-member[1], member[0].sort_key))
        texts = [f"{entity} {shares_text(count)} ({amount(key, value)})" for entity, count, value in members]
        yield compose(
            "{capacity} of {key} on each broker {are} {total} shares: {members}.",
            capacity=amount_part(key.value, capacity),
            key=key_part(key.value),
            are="is" if total == 1 else "are",
            total=shares_text(total),
            members=list_some(texts, _SHOWN_SHARES),
        )


UNITS: Final = Stage(
    applies=lambda _, entities: any(declared.units for declared in entities.values()), run=_with_parts, notes=share_notes
)
