"""Throttles that brokers reported beside the rates of a quota group (``throttle-time``), and what they show about a limit.

Under the limit of then, a broker throttled some request. Up to the first one it recorded every request, and so does a broker with
a lower limit. So that request, or an earlier one, is throttled under each limit that is not higher. About a higher limit nothing
follows: the group sent what the limit of then let through, so its rates are lower bounds of its need.

Brokers report throttles of controller mutations that they forward under ``Request``. So a report of that kind counts only where a
sample is above the limit, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from reconciler.model import BucketName, MetricSamples, Verdict
from reconciler.resolution import Resolved
from reconciler.text import amount, count_of
from reconciler.traffic.judging.grouping import Target
from reconciler.traffic.judging.means import Mean
from reconciler.traffic.judging.recorded_throttles import are_enough, old_limit_reason
from reconciler.traffic.kinds import Kind

UNKNOWN_THEN: Final = "the broker reported throttles {seen} under quotas that are not known: give --current"
OTHERS_THEN: Final = (
    "the broker reported throttles {seen}, and the current quotas do not limit this quota group: others were in effect then"
)
PERHAPS_MUTATIONS: Final = (
    "the broker reported throttles {seen}, and no sample is above the limit. Brokers report throttles of "
    "controller_mutation_rate under Request, too"
)


class ReportedVerdict(NamedTuple):
    """``is_censored``: the limit of then held these clients back, so their samples are lower bounds of their need."""

    verdict: Verdict
    reason: str
    is_censored: bool = False


def verdict_of_reports(
    target: Target, members: Sequence[tuple[Mean, Resolved | None]], metrics: MetricSamples, *, then_known: bool
) -> ReportedVerdict | None:
    """What reported throttles decide; ``None``: nothing.

    ``members``: of the target, with the quotas of then, which are known (``then_known``) or not.
    """
    throttled = [(mean, then) for mean, then in members if mean.series.throttled]
    after, key = target.after.value, target.kind.key.value
    limits = [limit for mean, then in throttled if (limit := _limit_of_then(mean, then)) is not None]
    # No limit throttles no request. That is a doubt only where the change takes one away.
    if not throttled or target.undecided or (after is None and not limits):
        return None
    count = max(mean.series.throttled for mean, _ in throttled)
    seen = f"in {count:,} of {count_of(metrics.samples, 'sample')}"
    if limits and target.kind is Kind.REQUEST and metrics.highest <= max(limits):
        return ReportedVerdict(Verdict.INCONCLUSIVE, PERHAPS_MUTATIONS.format(seen=seen))
    if limits and after is not None and after <= max(limits):
        rest = "" if after in limits else f", when it was {amount(key, max(limits))}"
        reason = f"the broker reported throttles under this limit {seen}{rest}"
        return ReportedVerdict(Verdict.THROTTLED, reason, is_censored=are_enough(count, metrics.samples))
    if not are_enough(count, metrics.samples):
        return None
    if limits:
        reason = old_limit_reason(key, max(limits), after, f"these clients {seen}", peak=metrics.highest)
        return ReportedVerdict(Verdict.INCONCLUSIVE, reason, is_censored=True)
    return ReportedVerdict(Verdict.INCONCLUSIVE, (OTHERS_THEN if then_known else UNKNOWN_THEN).format(seen=seen))


def _limit_of_then(mean: Mean, then: Resolved | None) -> float | None:
    """``None``: not known, also where the quotas of then have no such group, so that others were in effect."""
    series = mean.series
    if then is None or (series.has_tags and then.bucket != BucketName(user=series.user or "", client_id=series.client_id or "")):
        return None
    return then.value
