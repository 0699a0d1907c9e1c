"""Values that expire: ``{value: 20MiB, until: 2026-12-01, then: 10MiB}``, and which of the two applies at a moment."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final, TypeAlias

from reconciler.manifest.collector import Collector
from reconciler.manifest.moments import lacks_zone, parse_date, parse_moment
from reconciler.model import (
    DeclaredExpiry,
    DesiredEntity,
    DesiredQuota,
    Entity,
    ExpiringQuota,
    QuotaKey,
    UnitQuota,
    WrittenQuota,
    compose,
    flag_part,
)
from reconciler.text import shown_part
from reconciler.yaml import YamlMapping, YamlNode, YamlScalar

VALUE: Final = "value"
UNTIL: Final = "until"
THEN: Final = "then"
FIELDS: Final = frozenset({VALUE, UNTIL, THEN})
_EXAMPLE: Final = flag_part("{value: 20MiB, until: 2026-12-01, then: 10MiB}")

SettledQuota: TypeAlias = DesiredQuota | UnitQuota
ValueReader: TypeAlias = Callable[[YamlNode], SettledQuota | None]


def expiring_quota(
    key: QuotaKey, node: YamlMapping, entity: Entity | None, out: Collector, read: ValueReader
) -> ExpiringQuota | None:
    """A value with ``until``. ``read`` reads the values in it. ``None``, and a finding, for one that cannot be used."""
    if not node.items.keys() <= FIELDS or not node.items.keys() >= {VALUE, UNTIL}:
        message = compose("write a value that expires as {example}, where {then} may be left out", example=_EXAMPLE, then=_THEN)
        out.add("invalid-expiry", message, node, entity=entity, key=key.value)
        return None
    until = _until(key, node.items[UNTIL], entity, out)
    value, then = (_side(key, node.items.get(field), entity, out, read) for field in (VALUE, THEN))
    if until is None or value is None or (then is None and THEN in node.items):
        return None
    return ExpiringQuota(value=value, until=until, then=then, source=out.span(node))


_THEN: Final = flag_part(THEN)


def _side(key: QuotaKey, node: YamlNode | None, entity: Entity | None, out: Collector, read: ValueReader) -> SettledQuota | None:
    """``value`` or ``then``: a number or a computed value, not another value that expires."""
    if node is None:
        return None
    nested = isinstance(node, YamlMapping) and not node.items.keys().isdisjoint(FIELDS)
    if nested or (isinstance(node, YamlScalar) and node.data is None):
        message = compose(
            "{value} and {then} of an expiring value are written as without {until}. To fall back to no value, leave out {then}",
            value=flag_part(VALUE),
            then=_THEN,
            until=flag_part(UNTIL),
        )
        out.add("invalid-expiry", message, node, entity=entity, key=key.value)
        return None
    return read(node)


def _until(key: QuotaKey, node: YamlNode, entity: Entity | None, out: Collector) -> datetime.datetime | None:
    """A date is the start of that day in UTC."""
    if not isinstance(node, YamlScalar) or node.data is None:
        return None
    moment = parse_date(node.text) or parse_moment(node.text)
    if moment is not None:
        return moment
    if lacks_zone(node.text):
        message = compose(
            "{written} has no time zone. Add the offset from UTC, such as {offset}, or {utc} for UTC",
            written=shown_part(node.text),
            offset=flag_part("2026-12-01T18:00+01:00"),
            utc=flag_part("Z"),
        )
    else:
        message = compose(
            "{written} is not a date or a time with its offset from UTC. Write {date}, which is the start of that day in UTC, "
            "or {time}",
            written=shown_part(node.text),
            date=flag_part("2026-12-01"),
            time=flag_part("2026-12-01T18:00+01:00"),
        )
    out.add("invalid-expiry", message, node, entity=entity, key=key.value)
    return None


def override_value(lower: WrittenQuota | None, upper: WrittenQuota) -> WrittenQuota:
    """``upper`` over what it overrides, which applies again when ``upper`` expires without a ``then``."""
    if isinstance(upper, ExpiringQuota) and upper.then is None and lower is not None:
        return replace(upper, then=lower)
    return upper


def in_profile(quota: WrittenQuota, profile: str) -> WrittenQuota:
    """The value as that of a profile."""
    if not isinstance(quota, ExpiringQuota):
        return replace(quota, profile=profile)
    then = None if quota.then is None else in_profile(quota.then, profile)
    return replace(quota, value=replace(quota.value, profile=profile), then=then)


def settle(written: WrittenQuota, at: datetime.datetime | None) -> tuple[SettledQuota | None, DeclaredExpiry | None]:
    """The value at a moment, if there is one then, and its expiry, if it has one."""
    expiry = None
    quota: WrittenQuota | None = written
    while isinstance(quota, ExpiringQuota):
        expired = at is not None and at >= quota.until
        expiry = DeclaredExpiry(at=quota.until, expired=expired, source=quota.source)
        if not expired:
            return quota.value, expiry
        quota = quota.then
    return quota, expiry


def settle_entity(declared: DesiredEntity, at: datetime.datetime | None) -> DesiredEntity:
    """The entity at a moment, without values of which the moment decides."""
    if not declared.expiring:
        return declared
    return with_values(declared, {**declared.quotas, **declared.units, **declared.expiring}, at)


def with_values(declared: DesiredEntity, values: Mapping[QuotaKey, WrittenQuota], at: datetime.datetime | None) -> DesiredEntity:
    """The entity with these values as they are at a moment, in place of its own."""
    quotas: dict[QuotaKey, DesiredQuota] = {}
    units: dict[QuotaKey, UnitQuota] = {}
    expiries: dict[QuotaKey, DeclaredExpiry] = {}
    for key, written in values.items():
        quota, expiry = settle(written, at)
        if expiry is not None:
            expiries[key] = expiry
        if quota.__class__ is DesiredQuota:
            quotas[key] = quota
        elif isinstance(quota, UnitQuota):
            units[key] = quota
    return replace(declared, quotas=quotas, units=units, expiring={}, expiries=expiries)
