"""Layers of values: profiles that entries use, what overrides what, and the values that expire, as they are at a moment."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, TypeAlias

from reconciler.formats import RecordShape, TextShape
from reconciler.manifest.quota_values import LEGAL, QuotasShape
from reconciler.manifest.reading import Collector, finding
from reconciler.model import (
    DeclaredExpiry,
    DesiredEntity,
    DesiredQuota,
    Entity,
    EntityType,
    ExpiringQuota,
    Finding,
    Message,
    ProfileChoice,
    QuotaKey,
    QuotaProfile,
    Related,
    Span,
    UnitQuota,
    WrittenQuota,
    compose,
    key_part,
)
from reconciler.text import did_you_mean, shown_part

ProfileValues: TypeAlias = Mapping[QuotaKey, WrittenQuota]

_IP: Final = (EntityType.IP.value,)


ABOUT_PROFILES: Final = "Named limits that entries use by profile: NAME."
PROFILE: Final = RecordShape(
    None,
    "Limits for the entities that use it.",
    {
        "quotas": QuotasShape(
            "The limits of this profile. Null drops a limit that the Repository manifest gives to the profile.", nullable=True
        ),
        "note": TextShape("What this profile is for."),
    },
    min_properties=1,
)
PROFILE_EXAMPLES: Final = [
    {
        "gold": {"quotas": {"producer_byte_rate": "20MiB", "consumer_byte_rate": "40MiB"}},
        "bronze": {"quotas": {"producer_byte_rate": "2MiB"}},
    }
]


def profile(_: Collector, *, name: str, span: Span, **values: Any) -> QuotaProfile:
    """One of ``spec.profiles`` of a Repository or Cluster manifest."""
    return QuotaProfile(name=name, quotas=values.get("quotas", {}), source=span)


class ProfileTable:
    """The profiles of one cluster, with the findings about those that are used."""

    def __init__(self, layers: Sequence[Mapping[str, QuotaProfile]]) -> None:
        """``layers``: of the repository, then of the cluster. A later one changes the values of an earlier one of its name."""
        self._layers = layers
        self._known: dict[str, dict[QuotaKey, WrittenQuota]] = {}
        self._reported: set[Span] = set()
        self.findings: list[Finding] = []

    def values(self, choice: ProfileChoice, entity: Entity) -> ProfileValues:
        """The values of a profile for an entity that uses it. Without those that the entity cannot have, which are findings."""
        values = self._values(choice)
        legal = LEGAL[entity.types == _IP]
        if values.keys() <= legal:
            return values
        for key in sorted(values.keys() - legal):
            message = compose(
                "profile {profile} sets {key}, which cannot be set for {entity}",
                profile=shown_part(choice.name),
                key=key_part(key.value),
                entity=entity,
            )
            related = Related(span=values[key].source, message="the value of the profile")
            self._add(finding("key-not-for-entity", message, choice.source, related=[related], entity=entity, key=key.value))
        return {key: quota for key, quota in values.items() if key in legal}

    def _values(self, choice: ProfileChoice) -> ProfileValues:
        name = choice.name
        if (known := self._known.get(name)) is not None:
            return known
        definitions = [layer[name] for layer in self._layers if name in layer]
        if not definitions:
            self._add(finding("unknown-profile", self._unknown(name), choice.source))
            return {}
        merged = self._known[name] = {}
        for definition in definitions:
            for key, quota in definition.quotas.items():
                if quota is None:
                    merged.pop(key, None)
                else:
                    merged[key] = override_value(merged.get(key), in_profile(quota, name))
        return merged

    def _unknown(self, name: str) -> Message:
        known = sorted({known for layer in self._layers for known in layer})
        hint = did_you_mean(name, known) if known else ". Neither the Repository nor the Cluster manifest has profiles"
        return compose("the profile {name} does not exist{hint}", name=shown_part(name), hint=hint)

    def _add(self, problem: Finding) -> None:
        """Add a finding unless its place has one already: one entry can have a thousand names."""
        if problem.span is not None and problem.span not in self._reported:
            self._reported.add(problem.span)
            self.findings.append(problem)


def override_value(lower: WrittenQuota | None, upper: WrittenQuota) -> WrittenQuota:
    """``upper`` over what it overrides, which applies again when ``upper`` expires without a ``then``."""
    if isinstance(upper, ExpiringQuota) and upper.then is None and lower is not None:
        return replace(upper, then=lower)
    return upper


def in_profile(quota: WrittenQuota, profile: str) -> WrittenQuota:
    """The value as that of a profile."""
    if not isinstance(quota, ExpiringQuota):
        return _in_profile(quota, profile)
    then = None if quota.then is None else in_profile(quota.then, profile)
    return replace(quota, value=_in_profile(quota.value, profile), then=then)


def _in_profile(quota: DesiredQuota | UnitQuota, profile: str) -> DesiredQuota | UnitQuota:
    return quota._replace(profile=profile) if isinstance(quota, DesiredQuota) else replace(quota, profile=profile)


def settle(written: WrittenQuota, at: datetime.datetime | None) -> tuple[DesiredQuota | UnitQuota | None, DeclaredExpiry | None]:
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
