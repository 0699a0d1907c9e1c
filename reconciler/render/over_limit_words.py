"""How long a quota group is over its limit, in the same words in every output."""

from __future__ import annotations

from typing import Final

from reconciler.model import BucketVerdict, GroupRows, PeakBound, Verdict
from reconciler.render.metric_sentences import not_seen_words, reported_words, sample_share_text, sample_text
from reconciler.text import count_of, duration, percent_text

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


def row_over_text(row: BucketVerdict) -> str:
    """The same for one broker."""
    return over_text(GroupRows.of_row(row))


def _of_proofs(group: GroupRows) -> str:
    """Samples, averages and logged throttles: they prove a throttle, and never show its length."""
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
