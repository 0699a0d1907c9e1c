"""Numbers for each broker from totals of a cluster.

Numbers are rounded down, so that their sum never exceeds what was declared. All arithmetic is exact.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace
from fractions import Fraction
from typing import Final

from reconciler.manifest.reading import finding
from reconciler.model import (
    BrokerFacts,
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
    Span,
    UnitQuota,
    ValueType,
    compose,
    display_name,
    flag_part,
    key_part,
)
from reconciler.text import amount_part, list_some

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


class UnitLimits:
    """Computes values of one cluster, and collects what is wrong with them. Equal values are computed once."""

    def __init__(self, facts: BrokerFacts) -> None:
        """``facts``: with at least one broker."""
        self._brokers = len(facts.brokers)
        self._leaders = facts.leaders
        self._known: dict[tuple[QuotaKey, int], tuple[UnitQuota, DesiredQuota | None]] = {}
        self._reported: set[Span] = set()
        self.findings: list[Finding] = []

    def computed(self, declared: DesiredEntity) -> DesiredEntity:
        """The entity with numbers in place of all units that can be computed."""
        quotas, left = dict(declared.quotas), dict(declared.units)
        for key, written in declared.units.items():
            quota = self._quota(key, written, declared.entity)
            if quota is not None:
                quotas[key] = quota
                del left[key]
        expiries = {key: self._computed_expiry(key, expiry, declared.entity) for key, expiry in declared.expiries.items()}
        return replace(declared, quotas=quotas, units=left, expiries=expiries)

    def _computed_expiry(self, key: QuotaKey, expiry: DeclaredExpiry, entity: Entity) -> DeclaredExpiry:
        """Return the expiry with a number on its other side, where that is computed."""
        quota = self._quota(key, expiry.other, entity) if isinstance(expiry.other, UnitQuota) else None
        return expiry if quota is None else replace(expiry, other=quota)

    def _quota(self, key: QuotaKey, written: UnitQuota, entity: Entity) -> DesiredQuota | None:
        """Entities of one profile have the very same value. The value is kept beside its id, so that no other gets that id."""
        known = self._known.get((key, id(written)))
        if known is None:
            result = self._number(key, written, entity)
            quota = None
            if result is not None:
                number, unit = result
                quota = DesiredQuota(value=number, source=written.source, text=written.text, profile=written.profile, unit=unit)
            known = self._known[key, id(written)] = written, quota
        return known[1]

    def _number(self, key: QuotaKey, written: UnitQuota, entity: Entity) -> tuple[float, QuotaUnit] | None:
        unit = written.unit
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
    limits = UnitLimits(facts)
    computed = {entity: limits.computed(desired.entities[entity]) for entity in desired.with_units}
    entities = {**desired.entities, **computed}
    left = tuple(entity for entity in desired.with_units if entities[entity].units)
    return replace(desired, entities=entities, with_units=left), tuple(limits.findings)
