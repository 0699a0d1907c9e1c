"""The value to write where only metrics are known: the highest sample, times the margin of its resolution."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Final

from reconciler.model import NO_ADVICE, Advice, BucketVerdict, MetricSamples, Provenance, QuotaKey, RowPlace
from reconciler.text import length_text, rate
from reconciler.traffic import SMALLEST, broker_loss_factor, hold_back, margin_of, safe_limit

CENSORED_SHARE: Final = 0.01
"""Of the samples, those taken while a quota throttled the clients, from which on a recommendation is called a lower bound."""
_NOT_ALL: Final = Advice(reason="clients of other series may belong to this quota group, so no value is recommended")
MARGINS: Final = ((5.0, 1.3), (15.0, 1.9), (30.0, 2.9), (60.0, 3.3))
"""Seconds between samples, and the factor by which a safe limit is above the highest of them; rising in both.

Safe in 99 % of runs of a day, for the traffic that needs most; an hour of samples 15 s or more apart has no factor that is of use
for bursty clients. A factor is an estimate and no proof: bursts that are shorter and rarer exceed it. Source:
``benchmarks/traffic_sources.md``.
"""
_JITTER: Final = 1.1
"""Samples up to so many times the longest interval apart have its factor: no clock is exact."""


def margin_factor(every_s: float) -> float | None:
    """Return the factor for samples ``every_s`` seconds apart, in proportion between two rows of the table.

    ``None``, so no recommendation, for an interval that is longer than the table has, or 0, which is not known.
    """
    if every_s <= 0 or every_s > MARGINS[-1][0] * _JITTER:
        return None
    for (less_s, below), (more_s, above) in itertools.pairwise(MARGINS):
        if less_s * _JITTER < every_s <= more_s:
            return round(below + (every_s - less_s) / (more_s - less_s) * (above - below), 2)
    return next((factor for seconds, factor in MARGINS if every_s <= seconds * _JITTER), None)


def recommend_from_metrics(
    verdicts: Sequence[BucketVerdict], *, incomplete: Collection[RowPlace], provenance: Provenance
) -> tuple[BucketVerdict, ...]:
    """The same with ``recommended`` and the reason, one value for all brokers of a quota group, where metrics alone are known.

    No value is called safe: no metric shows that no request was throttled. ``incomplete``: rows of groups that may send more than
    their samples show.
    """
    part_of_it = {verdict.group for verdict in verdicts if verdict.place in incomplete}
    groups: dict[tuple[object, ...], list[tuple[BucketVerdict, MetricSamples]]] = {}
    for verdict in verdicts:
        if verdict.metrics is not None and not verdict.undecided:
            groups.setdefault(verdict.group, []).append((verdict, verdict.metrics))
    advice = {
        group: _NOT_ALL if group in part_of_it else _advice(everywhere, provenance.days, provenance.brokers)
        for group, everywhere in groups.items()
    }
    return tuple(
        verdict if verdict.recorded.requests or verdict.undecided else replace(held, advice=advice.get(verdict.group, NO_ADVICE))
        for verdict, held in zip(verdicts, hold_back(verdicts), strict=True)
    )


def _advice(everywhere: Sequence[tuple[BucketVerdict, MetricSamples]], days: float, brokers: int) -> Advice:
    key = QuotaKey(everywhere[0][0].key)
    if key is QuotaKey.CONTROLLER_MUTATION_RATE:
        return NO_ADVICE
    coarse = next((samples for _, samples in everywhere if samples.factor is None), None)
    if coarse is not None:
        return Advice(reason=f"{_samples_words(coarse)} do not show how high short bursts are, so no value is recommended")
    _, factor, top = max(
        ((samples.highest * (samples.factor or 1), samples.factor or 1, samples) for _, samples in everywhere), key=lambda f: f[0]
    )
    margin, loss = margin_of(days), broker_loss_factor(key, brokers)
    wanted = safe_limit(key, top.highest * factor * (1 + margin) * loss)
    value, text = max(wanted, SMALLEST[key])
    reason = (
        f"{text}: highest sample {rate(key.value, top.highest)} x {factor:g} for {_samples_words(top)}, "
        f"and {100 * margin:.0f} % because the history is {length_text(days * 86_400)} long"
    )
    if loss > 1:
        reason += f", and {100 * (loss - 1):.0f} % because the traffic of a lost broker moves to the other {brokers - 1}"
    if value > wanted[0]:
        reason += f". Recommended values are {text} or more"
    if (share := max(samples.censored_share for _, samples in everywhere)) > CENSORED_SHARE:
        reason += f". Quotas throttled these clients in {100 * share:.0f} % of the samples, so it is a lower bound"
    return Advice(recommended=value, reason=reason, margin=round(factor * (1 + margin) * loss - 1, 6))


def _samples_words(metrics: MetricSamples) -> str:
    """``30 s gauges``."""
    return f"{metrics.every_s:.0f} s gauges" if metrics.every_s else "gauges"
