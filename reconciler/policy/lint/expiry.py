"""Rules about values that expire: soon, or already."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from typing import Final

from reconciler.model import (
    DeclaredExpiry,
    DesiredQuota,
    Entity,
    Finding,
    Message,
    MessagePart,
    QuotaKey,
    Span,
    UnitQuota,
    compose,
    key_part,
    name_part,
)
from reconciler.policy.lint.subject import Subject, lint
from reconciler.text import amount_part, moment_text

SOON: Final = datetime.timedelta(days=7)


def expiring_values(subject: Subject) -> Iterator[Finding]:
    """Once for each place: a profile can be that of many entities."""
    reported: set[Span] = set()
    now = subject.desired.at
    for entity, declared in subject.desired.entities.items():
        for key, expiry in declared.expiries.items():
            if now is None or expiry.source in reported or not (expiry.expired or expiry.at - now <= SOON):
                continue
            reported.add(expiry.source)
            if expiry.expired:
                yield _expired(entity, key, expiry, declared.quotas.get(key))
            else:
                yield _soon(entity, key, expiry)


def _soon(entity: Entity, key: QuotaKey, expiry: DeclaredExpiry) -> Finding:
    message = compose(
        "{key} for {entity} expires on {when}: then {then}. To keep it, move the date in a pull request.",
        key=key_part(key.value),
        entity=entity,
        when=name_part(moment_text(expiry.at)),
        then=_value(key, expiry.other),
    )
    return lint("expires-soon", message, entity=entity, key=key.value, span=expiry.source)


def _expired(entity: Entity, key: QuotaKey, expiry: DeclaredExpiry, now: DesiredQuota | None) -> Finding:
    message = compose(
        "{key} for {entity} expired on {when}: now {value}. Replace the expired value by that.",
        key=key_part(key.value),
        entity=entity,
        when=name_part(moment_text(expiry.at)),
        value=_value(key, now),
    )
    return lint("expired-value", message, entity=entity, key=key.value, span=expiry.source)


def _value(key: QuotaKey, quota: DesiredQuota | UnitQuota | None) -> MessagePart | Message:
    return amount_part(key.value, quota.value) if isinstance(quota, DesiredQuota) else compose("no value of its own")
