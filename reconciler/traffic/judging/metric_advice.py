"""The value to write where only metrics are known: the highest sample, times the margin of its resolution."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

from reconciler.model import BucketVerdict, MetricSamples, MetricSemantics, QuotaKey
from reconciler.text import rate
from reconciler.traffic.judging.recommendations import SMALLEST, broker_loss_factor, length_words, margin_of, safe_limit

CENSORED_SHARE: Final = 0.01
"""Of the samples, those taken while a quota throttled the clients, from which on a recommendation is called a lower bound."""
_WORDS: Final = {MetricSemantics.GAUGE: "gauges", MetricSemantics.DELTA: "counters", MetricSemantics.MEAN: "averages"}
_NO_ADVICE: Final[dict[str, Any]] = {"recommended": None, "recommended_reason": None}


def recommend_from_metrics(verdicts: Sequence[BucketVerdict], *, days: float, brokers: int) -> tuple[BucketVerdict, ...]:
    """The same with ``recommended`` and the reason, one value for all brokers of a quota group, where metrics alone are known.

    No value is called safe: no metric shows that no request was throttled. ``days``: the length of the history.
    """
    groups: dict[tuple[object, ...], list[tuple[BucketVerdict, MetricSamples]]] = {}
    for one in verdicts:
        if one.metrics is not None and not one.undecided:
            groups.setdefault((one.key, one.name), []).append((one, one.metrics))
    advice = {place: _advice(everywhere, days, brokers) for place, everywhere in groups.items()}
    return tuple(
        one if one.requests or one.undecided else replace(one, **advice.get((one.key, one.name), _NO_ADVICE)) for one in verdicts
    )


def _advice(everywhere: Sequence[tuple[BucketVerdict, MetricSamples]], days: float, brokers: int) -> dict[str, Any]:
    key = QuotaKey(everywhere[0][0].key)
    if key is QuotaKey.CONTROLLER_MUTATION_RATE:
        return _NO_ADVICE
    coarse = next((one for _, one in everywhere if one.factor is None), None)
    if coarse is not None:
        why = f"{_samples_words(coarse)} do not show how high short bursts are, so no value is recommended"
        return {"recommended": None, "recommended_reason": why}
    _, factor, top = max(((one.highest * (one.factor or 1), one.factor or 1, one) for _, one in everywhere), key=lambda f: f[0])
    margin, loss = margin_of(days), broker_loss_factor(key, brokers)
    wanted = safe_limit(key, top.highest * factor * (1 + margin) * loss)
    value, text = max(wanted, SMALLEST[key])
    reason = (
        f"{text}: highest {'sample' if top.semantics is MetricSemantics.GAUGE else 'average'} {rate(key.value, top.highest)} x "
        f"{factor:g} for {_samples_words(top)}, and {100 * margin:.0f} % because the history is {length_words(days)} long"
    )
    if loss > 1:
        reason += f", and {100 * (loss - 1):.0f} % because the traffic of a lost broker moves to the other {brokers - 1}"
    if value > wanted[0]:
        reason += f". Recommended values are {text} or more"
    if (share := max(one.censored_share for _, one in everywhere)) > CENSORED_SHARE:
        reason += f". Quotas throttled these clients in {100 * share:.0f} % of the samples, so it is a lower bound"
    return {
        "recommended": value,
        "recommended_reason": reason,
        "margin": round(factor * (1 + margin) * loss - 1, 6),
    }


def _samples_words(metrics: MetricSamples) -> str:
    """``30 s gauges``."""
    every = f"{metrics.every_s:.0f} s " if metrics.every_s else ""
    return f"{every}{_WORDS[metrics.semantics]}"
