"""Rules about values: numbers that are most likely not meant, cuts that throttle for long, and expiry."""

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
    flag_part,
    key_part,
    name_part,
)
from reconciler.policy.lint.precedence import Subject, lint
from reconciler.text import amount_part, duration, moment_text

DEFAULT_IO_THREADS: Final = 8
DEFAULT_NETWORK_THREADS: Final = 3
WHOLE_BROKER: Final = (DEFAULT_IO_THREADS + DEFAULT_NETWORK_THREADS) * 100.0
"""Percent of one thread that all threads of a broker with Kafka's default settings have together."""
SMALL_PERCENTAGE: Final = 10.0
SMALL_BYTE_RATE: Final = 64 * 1024
REDUCTION_THROTTLES: Final = "reduction-throttles"
WINDOW_SECONDS: Final = 11.0
"""The longest window of a rate with Kafka's default settings (11 samples of one second)."""
LONGEST_SECONDS: Final = 60.0
"""Above this, producers and consumers with default settings run into time-outs."""
_BYTE_KEYS: Final = (QuotaKey.PRODUCER_BYTE_RATE, QuotaKey.CONSUMER_BYTE_RATE)
SOON: Final = datetime.timedelta(days=7)


def odd_values(subject: Subject) -> Iterator[Finding]:
    """The rules about percentages and byte rates: one walk over all values."""
    for entity, declared in subject.desired.entities.items():
        for key, quota in declared.quotas.items():
            if key is QuotaKey.PRODUCER_BYTE_RATE or key is QuotaKey.CONSUMER_BYTE_RATE:
                # A value with a unit was meant in bytes.
                if quota.text[-1:].isdigit():
                    yield from _bare_byte_rate(entity, key, quota)
            elif key is QuotaKey.REQUEST_PERCENTAGE:
                yield from _percentage(entity, key, quota)


def _percentage(entity: Entity, key: QuotaKey, quota: DesiredQuota) -> Iterator[Finding]:
    if WHOLE_BROKER < quota.value < key.unreachable:
        message = compose(
            "{value} % is more than all threads of a broker with Kafka's default settings have "
            f"(({DEFAULT_IO_THREADS} io + {DEFAULT_NETWORK_THREADS} network) x 100 = {WHOLE_BROKER:.0f}). "
            "Unless the brokers have more threads, it limits no client.",
            value=quota.text,
        )
        yield lint("percentage-no-limit", message, entity=entity, key=key, span=quota.source)
    elif quota.value < SMALL_PERCENTAGE:
        message = compose("{value} % of one thread is little. Brokers throttle heartbeats and metadata, too.", value=quota.text)
        yield lint("percentage-small", message, entity=entity, key=key, span=quota.source)


def _bare_byte_rate(entity: Entity, key: QuotaKey, quota: DesiredQuota) -> Iterator[Finding]:
    if quota.value < SMALL_BYTE_RATE:
        message = compose(
            "{value} B/s is very little. Write the unit that is meant, e.g. {example}.",
            value=quota.text,
            example=flag_part(f"{quota.value:.0f}KiB or {quota.value:.0f}B"),
        )
        yield lint("byte-rate-small", message, entity=entity, key=key, span=quota.source)


def reduction_throttles(subject: Subject) -> Iterator[Finding]:
    """Byte rates that go down so far that a client running at its old limit stands still for long.

    ``(rate / limit - 1) x window``, as in Kafka's ``QuotaUtils``; the other keys are capped at a second a request.
    """
    before = subject.before
    if before is None:
        return
    for entity in subject.changed:
        live, declared = before.get(entity), subject.desired.entities.get(entity)
        if live is None or declared is None:
            continue
        for key in _BYTE_KEYS:
            quota, old = declared.quotas.get(key), live.get(key)
            if quota is None or old is None or not old > quota.value:
                continue
            seconds = (old / quota.value - 1) * WINDOW_SECONDS
            # A limit that no client reaches is not a rate of traffic.
            if seconds > LONGEST_SECONDS and old < key.unreachable:
                message = compose(
                    "{key} of {entity} falls to {percent} % of its value. Brokers would throttle a client at its current limit "
                    "for up to {duration} at once. Lower it in steps ({flag}).",
                    key=key_part(key),
                    entity=entity,
                    percent=f"{100 * quota.value / old:.3g}",
                    duration=duration(seconds),
                    flag=flag_part("apply --step-down 2"),
                )
                yield lint(REDUCTION_THROTTLES, message, entity=entity, key=key, span=quota.source)


def expiring_values(subject: Subject) -> Iterator[Finding]:
    """Yield one finding for each place: a profile can be that of many entities."""
    reported: set[Span] = set()
    now = subject.desired.at
    for entity, declared in subject.desired.entities.items():
        for key, expiry in declared.expiries.items():
            if now is None or expiry.source in reported or not (expiry.expired or expiry.at - now <= SOON):
                continue
            reported.add(expiry.source)
            if expiry.expired:
                yield _expired(entity, key, expiry, declared.quotas.get(key) or declared.units.get(key))
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


def _expired(entity: Entity, key: QuotaKey, expiry: DeclaredExpiry, now: DesiredQuota | UnitQuota | None) -> Finding:
    message = compose(
        "{key} for {entity} expired on {when}: now {value}. Replace the expired value by that.",
        key=key_part(key.value),
        entity=entity,
        when=name_part(moment_text(expiry.at)),
        value=_value(key, now),
    )
    return lint("expired-value", message, entity=entity, key=key.value, span=expiry.source)


def _value(key: QuotaKey, quota: DesiredQuota | UnitQuota | None) -> MessagePart | Message:
    if isinstance(quota, UnitQuota):
        return name_part(quota.text)
    return compose("no value of its own") if quota is None else amount_part(key.value, quota.value)
