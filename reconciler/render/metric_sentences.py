"""Sentences about a quota group in metrics: samples above the limit, and the share of time that they cover."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from reconciler.model import GAUGE, BucketVerdict, GroupRows, MetricSamples, Observations, PeakBound, Provenance, Verdict
from reconciler.text import count_of, duration, percent_text, rate


def has_only_metrics(verdict: BucketVerdict) -> bool:
    """Whether nothing but metrics is known of a quota group."""
    return verdict.metrics is not None and not verdict.recorded.requests


def sample_text(verdict: BucketVerdict, metrics: MetricSamples) -> str:
    """``8.4 MiB/s sampled``: the highest one."""
    return f"{rate(verdict.key, metrics.highest)} sampled"


def sample_share_text(metrics: MetricSamples) -> str:
    """``0.8 %`` of the samples; nothing without a limit."""
    if metrics.over is None or not metrics.samples:
        return ""
    return _share_text(metrics.over / metrics.samples)


def metrics_words(verdict: BucketVerdict) -> str | None:
    """All that metrics show of a quota group on one broker."""
    metrics = verdict.metrics
    if metrics is None:
        return None
    parts = [*_gauge_words(metrics), f"highest sample {rate(verdict.key, metrics.highest)}"]
    if metrics.throttled_then:
        share = _share_text(metrics.censored_share)
        parts.append(f"a quota throttled these clients in {share} of them, so they are lower bounds")
    return "; ".join(parts)


def not_seen_words(metrics: MetricSamples) -> str:
    """``not seen in 40,320 samples, 11/15 of all moments``."""
    return f"not seen in {count_of(metrics.samples, 'sample')}, {moments_words(metrics)}"


def moments_words(metrics: MetricSamples) -> str:
    """Return the share of the time that gauges show: each looks back on a window."""
    if not metrics.every_s:
        return "for a share of the time that is not known"
    if metrics.moments >= 1:
        return "all moments"
    return f"{metrics.window_s:g}/{metrics.every_s:.0f} of all moments"


def reported_words(metrics: MetricSamples) -> str:
    """``throttles reported in 25 of 30 samples``."""
    return f"throttles reported in {metrics.throttled_then:,} of {count_of(metrics.samples, 'sample')}"


def observation_words(provenance: Provenance) -> Iterator[str]:
    """Yield what the rows of a history are, one clause for each meaning."""
    for observations in provenance.observations:
        if observations.semantics == GAUGE:
            yield f"{_rows_words(observations)} of {count_of(observations.series, 'series', 'series')}"


def censored_words(provenance: Provenance) -> Iterator[str]:
    """Yield a clause about samples that show what an earlier limit let through."""
    for observations in provenance.observations:
        if observations.semantics == GAUGE and observations.throttled_then:
            share = _share_text(observations.throttled_then / observations.rows)
            yield (
                f"quotas throttled clients in {observations.throttled_then:,} of {_rows_words(observations)} ({share}): "
                "these show what the limit of then let through"
            )


def _share_text(share: float) -> str:
    """Return a share with two digits, as intervals need them."""
    return percent_text(share, digits=2)


def _gauge_words(metrics: MetricSamples) -> Iterator[str]:
    most = _share_text(metrics.share_high)
    if metrics.over is None:
        yield f"{count_of(metrics.samples, 'sample')}, {moments_words(metrics)}"
    elif not metrics.over and metrics.throttled_then:
        # A client that a broker throttles stays below the limit between its requests.
        yield f"none of {count_of(metrics.samples, 'sample')} is above the limit, {moments_words(metrics)}"
    elif not metrics.over:
        yield f"{not_seen_words(metrics)}, above the limit in at most {most} of the time (95 %)"
    else:
        share = f"{sample_share_text(metrics)}, 95 % interval {_share_text(metrics.share_low)} to {most}"
        yield f"{metrics.over:,} of {count_of(metrics.samples, 'sample')} above the limit ({share}), {moments_words(metrics)}"
    if metrics.over_before is not None:
        yield f"before {metrics.over_before:,}" if metrics.over_before else "before in none"


def _rows_words(observations: Observations) -> str:
    every = f" every {observations.every_s:.0f} s" if observations.every_s else ""
    return f"{count_of(observations.rows, 'gauge')}{every}"


NEVER: Final = "never"


def over_text(group: GroupRows) -> str:
    """``40 min (0.1 %)``, ``at most 35 s (0.1 %)``, ``never``. Of metrics: ``3 of 40 samples (8 %)``."""
    if all(row.peak.bound is PeakBound.LOWER for row in group.rows):
        return _of_proofs(group)
    time = group.time_over
    if time.seconds:
        return f"{duration(time.seconds)} ({percent_text(time.share)})"
    if group.verdict is Verdict.THROTTLED:
        return "at least once"
    if time.possible:
        return f"at most {duration(time.possible)} ({percent_text(time.possible_share)})"
    known = group.verdict is not Verdict.INCONCLUSIVE and any(row.recorded.requests for row in group.rows)
    return NEVER if known else "not known"


def range_text(group: GroupRows) -> str:
    """``30 min to 1 h``, where whole seconds do not decide; else nothing."""
    time = group.time_over
    if not time.seconds or time.certain >= time.possible:
        return ""
    return f"{duration(time.certain)} to {duration(time.possible)}"


def before_text(group: GroupRows) -> str:
    """The time over the limits of today: ``12 min (5 %)``, ``never``, or nothing where they are not known."""
    time = group.time_over
    if time.before is None:
        return ""
    return f"{duration(time.before)} ({percent_text(time.before_share)})" if time.before else NEVER


def _of_proofs(group: GroupRows) -> str:
    """Samples and logged throttles: they prove a throttle, and never show its length."""
    samples, seconds = group.samples, group.worst.over.seconds
    if samples is None:
        if seconds and not group.worst.over.active:
            return f"logged throttles in {count_of(seconds, 'second')}"
        return "at least once" if group.verdict is Verdict.THROTTLED else "not known"
    if samples.over:
        return f"{samples.over:,} of {count_of(samples.samples, 'sample')} ({sample_share_text(samples)})"
    if samples.throttled_then and group.verdict is not Verdict.POSSIBLE:
        return reported_words(samples)
    if samples.over == 0 and group.verdict is not Verdict.POSSIBLE:
        return not_seen_words(samples)
    return "at least once" if group.verdict is Verdict.THROTTLED else sample_text(group.highest, samples)
