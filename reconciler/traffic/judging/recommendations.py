"""The value to write for a quota group, and why.

A recommended value is what was safe in this history, and a margin for what the history has not seen: days that it is too short
for, and the traffic that moves to the other brokers when one is lost.
"""

from __future__ import annotations

import decimal
import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Final

from reconciler.formats import BINARY_UNITS
from reconciler.model import NO_ADVICE, Advice, BucketVerdict, Provenance, QuotaKey, ValueType
from reconciler.text import amount, length_text
from reconciler.traffic.judging.history_gaps import NO_NETWORK_TIME, lacks_network_time

SMALLEST: Final[Mapping[QuotaKey, tuple[float, str]]] = {
    QuotaKey.PRODUCER_BYTE_RATE: (16384.0, "16KiB"),
    QuotaKey.CONSUMER_BYTE_RATE: (16384.0, "16KiB"),
    QuotaKey.REQUEST_PERCENTAGE: (1.0, "1%"),
    QuotaKey.CONTROLLER_MUTATION_RATE: (1.0, "1"),
    QuotaKey.CONNECTION_CREATION_RATE: (1.0, "1"),
}
"""No smaller value is recommended, as a number and as text for a manifest.

16 KiB is a full batch of a producer with default settings (``batch.size``). A quiet history shows little about the next burst,
and a limit below these values protects no broker.
"""


def margin_of(days: float) -> float:
    """A share of the peak: one day's part of the history, as the Kubernetes recommender widens its bounds, 15 % to half of it.

    15 % is that recommender's safety margin, which no length of history replaces.
    """
    return max(0.15, min(0.5, 1 / days)) if days > 0 else 0.5


def broker_loss_factor(key: QuotaKey, brokers: int) -> float:
    """Return the factor of each broker's traffic when one of ``brokers`` is lost. Mutations are all the controller's."""
    return brokers / (brokers - 1) if brokers > 1 and key is not QuotaKey.CONTROLLER_MUTATION_RATE else 1.0


def advice_for(
    verdicts: Sequence[BucketVerdict], provenance: Provenance, regrouped: Collection[tuple[object, ...]] = ()
) -> Iterator[Advice]:
    """Return the advice for each verdict: one value a bucket, good for all of its brokers.

    ``regrouped``: the buckets that had other clients before.
    """
    groups: dict[tuple[object, ...], list[BucketVerdict]] = {}
    for verdict in verdicts:
        groups.setdefault(verdict.group, []).append(verdict)
    advice = {
        group: _advice(everywhere, provenance, None if group in regrouped else _working_limit(everywhere))
        for group, everywhere in groups.items()
    }
    return (advice[verdict.group] for verdict in verdicts)


def _working_limit(everywhere: Sequence[BucketVerdict]) -> float | None:
    """The present limit of a bucket, if it has one, and it throttled no recorded request."""
    limits = {verdict.limits.before for verdict in everywhere}
    if len(limits) > 1 or any(
        verdict.recorded.throttled or verdict.recorded.censored or verdict.undecided for verdict in everywhere
    ):
        return None
    known = limits.pop()
    return known[0] if len(known) == 1 else None


def _advice(everywhere: Sequence[BucketVerdict], history: Provenance, present: float | None) -> Advice:
    """Return the advice, equal in all verdicts of a quota group. It is empty where recorded rows were not counted.

    ``present``: a limit that throttled none of this traffic. No higher one is needed.
    """
    key = QuotaKey(everywhere[0].key)
    if any(verdict.recorded.uncharged for verdict in everywhere):
        # A value for a part of the traffic throttles the rest.
        return NO_ADVICE
    if lacks_network_time(key.value, history.source):
        return Advice(reason=f"no value is recommended: {NO_NETWORK_TIME}")
    loss, margin = broker_loss_factor(key, history.brokers), margin_of(history.days)
    least = max(verdict.peak.least_safe for verdict in everywhere)
    safe, safe_text = safe_limit(key, least)
    wanted = safe_limit(key, least * (1 + margin) * loss)
    value, text = max(wanted, SMALLEST[key])
    why = f"{100 * margin:.0f} % because the history is {length_text(history.days * 86_400)} long (15 % or more)"
    if loss > 1:
        why += f", and {100 * (loss - 1):.0f} % because the traffic of a lost broker moves to the other {history.brokers - 1}"
    reason = (
        f"{safe_text} is the smallest round value at which no request of this history would have been throttled, on any broker. "
        f"{text} adds {why}"
    )
    if value > wanted[0]:
        reason += f". Recommended values are {text} or more"
    if any(verdict.recorded.censored for verdict in everywhere):
        throttled = "throttled" if any(verdict.recorded.throttled for verdict in everywhere) else "may have throttled"
        reason += f". Quotas {throttled} these clients when they were recorded, so both are lower bounds"
    keeps = present if present is not None and least <= present < value else None
    if keeps is not None:
        reason = f"keep {amount(key.value, keeps)}, which no recorded request is over. {reason}"
    kept_margin = round(keeps / least - 1, 6) if keeps is not None and least else 0.0
    return Advice(
        recommended=value if keeps is None else keeps,
        reason=reason,
        safe=safe if keeps is None else min(safe, keeps),
        margin=round((1 + margin) * loss - 1, 6) if keeps is None else kept_margin,
    )


_STEPS: Final = ((2, 0.125), (8, 0.25), (16, 0.5), (64, 1.0), (128, 2.0), (256, 5.0), (512, 10.0), (1024, 25.0))
"""Below each bound, the step of values in one unit; all are whole numbers of bytes from KiB on. At most an eighth is added."""


def safe_byte_rate(peak: float) -> tuple[float, str]:
    """The smallest round value at or above a peak rate, as a number of bytes/s and as text for a manifest (``5.25MiB``).

    ``peak`` is the largest open-loop sampled rate: it does not depend on the limit, and a broker throttles only above the
    limit, so no request of the same history is throttled at any limit from there on. (A fetch limit can only lower what is
    charged.)
    """
    if peak <= 1024:
        whole = float(max(10, math.ceil(peak / 10) * 10))
        return (whole, f"{whole:g}B") if whole < 1024 else (1024.0, "1KiB")
    unit, size = next((u, s) for u, s in reversed(BINARY_UNITS.items()) if peak > s)
    mantissa = peak / size
    step = next((step for bound, step in _STEPS if mantissa < bound), 100.0)
    rounded = math.ceil(mantissa / step) * step
    if rounded >= 1024 and unit != "TiB":
        names = list(BINARY_UNITS)
        unit, rounded = names[names.index(unit) + 1], 1.0
        size *= 1024
    return rounded * size, f"{rounded:g}{unit}"


_DECIMAL_STEPS: Final = ((2, "0.1"), (4, "0.25"), (10, "0.5"))
"""Below each bound of the leading digits, the step of values; at most an eighth is added."""
_SUFFIX: Final = {QuotaKey.REQUEST_PERCENTAGE: "%"}


def safe_limit(key: QuotaKey, peak: float) -> tuple[float, str]:
    """The same for any key, ``peak`` in its unit: ``6%``, ``12.5`` partitions/s, whole connections/s."""
    if key.is_bytes:
        return safe_byte_rate(peak)
    exact = max(decimal.Decimal(repr(float(peak))), decimal.Decimal("0.01"))
    place = decimal.Decimal(10) ** exact.adjusted()
    step = next(decimal.Decimal(step) for bound, step in _DECIMAL_STEPS if exact < bound * place) * place
    if key.value_type is ValueType.INT:
        step = step.to_integral_value(rounding=decimal.ROUND_UP)
    number = float((exact / step).to_integral_value(rounding=decimal.ROUND_CEILING) * step)
    return number, f"{number:.12g}{_SUFFIX.get(key, '')}"
