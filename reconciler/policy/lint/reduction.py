"""A lower byte rate under load: how long the first throttle may last."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from reconciler.model import Finding, QuotaKey
from reconciler.policy.lint.subject import Subject, lint

REDUCTION_THROTTLES: Final = "reduction-throttles"
WINDOW_SECONDS: Final = 11.0
"""The longest window of a rate with Kafka's default settings (11 samples of one second)."""
LONGEST_SECONDS: Final = 60.0
"""Above this, producers and consumers with default settings run into time-outs."""

_BYTE_KEYS: Final = (QuotaKey.PRODUCER_BYTE_RATE, QuotaKey.CONSUMER_BYTE_RATE)


def reduction_throttles(subject: Subject) -> Iterator[Finding]:
    """Byte rates that go down so far that a client running at its measured rate, or at its old limit, stands still for long.

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
            rate = subject.rates.get((entity, key.value))
            seconds = ((old if rate is None else rate) / quota.value - 1) * WINDOW_SECONDS
            if seconds > LONGEST_SECONDS:
                basis = "a client at its current limit" if rate is None else "at the measured rate, clients"
                message = (
                    f"{key} of {entity} falls to 1/{old / quota.value:.3g}: {basis} would be held back for up to "
                    f"{_duration(seconds)} at once; lower it in steps (apply --step-down 2)"
                )
                yield lint(REDUCTION_THROTTLES, message, entity=entity, key=key, span=quota.source)


def _duration(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.3g} h"
