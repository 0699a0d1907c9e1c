"""Which values of the manifests a backtest recommends to raise, and to what."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final, TypeAlias

from reconciler.formats import BINARY_UNITS, ValueRefusedError, parse_value, value_text
from reconciler.model import (
    BacktestReport,
    DesiredQuota,
    DesiredState,
    Entity,
    ProposedValue,
    QuotaKey,
    Span,
    UnitQuota,
    UnwrittenValue,
    ValueProposals,
    Verdict,
    compose,
    escaped,
)

_Quota: TypeAlias = tuple[Entity, QuotaKey]
_TOO_LOW: Final = (Verdict.THROTTLED, Verdict.POSSIBLE)


def propose_values(report: BacktestReport, desired: DesiredState) -> ValueProposals:
    """The recommended values of quotas that throttle recorded clients, or may; no value becomes smaller.

    A quota may have throttled the clients when they were recorded: then the value is a lower bound, and marked as one.
    A value that several entities take from one place becomes the largest that is recommended for one of them.
    """
    wanted, bounds = _recommended(report)
    users = _entities_of_values(desired)
    largest: dict[tuple[Span, QuotaKey], float] = {}
    unwritten = []
    for (entity, key), value in wanted.items():
        declared = desired.entities.get(entity)
        quota = (declared.quotas.get(key) or declared.units.get(key)) if declared is not None else None
        if quota is None:
            why = compose("the manifests do not declare it. Add {key} to an entry of {entity}", key=key.value, entity=entity)
        elif isinstance(quota, UnitQuota) or not _is_plain(key, quota):
            why = compose(
                "{place} has {text}, from which the value is computed. Change it there",
                place=quota.source,
                text=escaped(quota.text),
            )
        else:
            place = quota.source, key
            largest[place] = max(value, largest.get(place, 0.0))
            continue
        unwritten.append(UnwrittenValue(entity=entity, key=key.value, after=_text(key, value, ""), why=why))
    values = []
    for (source, key), value in largest.items():
        entities = users[source, key]
        quota = desired.entities[entities[0]].quotas[key]
        values.append(
            ProposedValue(
                source=source,
                key=key.value,
                before=quota.text,
                after=_text(key, value, quota.text),
                entities=entities,
                profile=quota.profile,
                is_lower_bound=any((entity, key) in bounds for entity in entities),
            )
        )
    return ValueProposals(
        values=tuple(sorted(values, key=lambda each: (each.source.file, each.source.line, each.source.column))),
        unwritten=tuple(sorted(unwritten, key=lambda each: (each.entity.sort_key, each.key))),
    )


def _recommended(report: BacktestReport) -> tuple[Mapping[_Quota, float], Collection[_Quota]]:
    """The largest of each entity's quota groups, and those that are lower bounds."""
    wanted: dict[_Quota, float] = {}
    bounds = set()
    for row in report.verdicts:
        if row.verdict not in _TOO_LOW or row.limits.entity is None or row.undecided:
            continue
        if row.advice.recommended is None or row.limits.after is None or row.advice.recommended <= row.limits.after:
            continue
        quota = row.limits.entity, QuotaKey(row.key)
        wanted[quota] = max(row.advice.recommended, wanted.get(quota, 0.0))
        if row.recorded.censored:
            bounds.add(quota)
    return wanted, bounds


def _entities_of_values(desired: DesiredState) -> Mapping[tuple[Span, QuotaKey], tuple[Entity, ...]]:
    """Which entities take a value from a place: of a profile, a list of names or a YAML alias more than one."""
    users: dict[tuple[Span, QuotaKey], tuple[Entity, ...]] = {}
    for entity, declared in desired.entities.items():
        for key, quota in declared.quotas.items():
            users[quota.source, key] = (*users.get((quota.source, key), ()), entity)
    return users


def _is_plain(key: QuotaKey, quota: DesiredQuota) -> bool:
    """Whether the text at its place is the value itself."""
    try:
        return parse_value(key, quota.text).number == quota.value
    except ValueRefusedError:
        return False


def _text(key: QuotaKey, number: float, like: str) -> str:
    """A value in the largest unit that has a short text, with the ``/s`` or ``%`` of the text that it replaces."""
    text = value_text(key, number)
    if key.is_bytes:
        units = [f"{number / size:g}{unit}" for unit, size in BINARY_UNITS.items() if number >= size]
        text = next((each for each in reversed(units) if parse_value(key, each).number == number), text)
    ending = next((end for end in ("/s", "%") if like.endswith(end)), "")
    return text + ending if text[-1:] != ending else text
