"""What was declared in place of a number, and when a value expires, beside the number that each broker enforces."""

from __future__ import annotations

from collections.abc import Iterator

from reconciler.model import ClusterTotal, KeyChange, KeyDrift, LeaderSpread, QuotaUnit
from reconciler.text import expiry_text, rebalance_text, unit_text


def change_sentences(key: KeyChange, leaders: LeaderSpread | None) -> tuple[str, ...]:
    """What the value of a change was computed from, why it changes when brokers came or went, and when it expires.

    None for a plain number.
    """
    return (*_sentences(key.key, key.unit, (key.before, key.after), key.brokers_before, leaders), *_expiry(key))


def drift_sentences(key: KeyDrift) -> tuple[str, ...]:
    """The same for a value that the cluster does not have."""
    return (*_sentences(key.key, key.unit, (key.live, key.desired), key.brokers_before, None), *_expiry(key))


def _expiry(key: KeyChange | KeyDrift) -> tuple[str, ...]:
    return () if key.expiry is None else (expiry_text(key.key, key.expiry),)


def _sentences(
    key: str,
    unit: QuotaUnit | None,
    values: tuple[float | None, float | None],
    brokers_before: int | None,
    leaders: LeaderSpread | None,
) -> Iterator[str]:
    if unit is None:
        return
    yield f"declared: {unit_text(key, unit)}"
    brokers = unit.brokers if isinstance(unit, ClusterTotal) else None
    before, after = values
    if brokers_before is not None and brokers is not None and before is not None and after is not None:
        absent = leaders.absent if leaders is not None else ()
        yield rebalance_text(key, before, after, brokers_before=brokers_before, brokers=brokers, absent=absent)
