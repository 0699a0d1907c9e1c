"""The findings of a backtest: throttled quota groups, and limits that a broker does not keep.

A broker does not keep two kinds of limits as they are written. Before Kafka 4.4, a throttle of produce or fetch that is longer
than 2^31 - 1 ms wraps around in Kafka's int, and may throttle no client. And a fetch asks the broker's log for no more than an
empty window can serve, but the log returns a first batch whole. A batch that is larger than that is throttled at every try, so
the consumer gets no record and stops.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final, NamedTuple, TypeAlias

from reconciler.model import (
    HISTORY_INCOMPLETE,
    BucketName,
    BucketVerdict,
    Entity,
    Filling,
    Finding,
    Message,
    PeakBound,
    QuotaKey,
    RowPlace,
    Severity,
    Span,
    Verdict,
    broker_words,
    bucket_words,
    compose,
    flag_part,
)
from reconciler.text import amount_part, bound_text, duration, number_text, rate_part
from reconciler.traffic.judging.grouping import Grouping, Series
from reconciler.traffic.judging.judged_quotas import Quota
from reconciler.traffic.judging.recommendations import safe_byte_rate, safe_limit
from reconciler.traffic.kernels.sampled_rate import Window
from reconciler.traffic.kernels.second_sums import longest_throttle_ratio
from reconciler.traffic.kinds import Kind

WOULD_THROTTLE: Final = "would-throttle"
ALREADY_OVER: Final = "over-current-limit"
MAY_THROTTLE: Final = "may-throttle"

_WHILE: Final = {
    QuotaKey.PRODUCER_BYTE_RATE: "while producing",
    QuotaKey.CONSUMER_BYTE_RATE: "while fetching",
    QuotaKey.REQUEST_PERCENTAGE: "for its request time",
    QuotaKey.CONTROLLER_MUTATION_RATE: "while creating or deleting partitions",
    QuotaKey.CONNECTION_CREATION_RATE: "while connecting",
}


class _HitQuota(NamedTuple):
    """What a finding about throttles is about. ``certain``: throttled, not only possibly."""

    quota: LimitSource
    key: str
    changed: bool
    certain: bool


def throttle_findings(
    verdicts: Iterable[BucketVerdict], sources: Mapping[Quota, Span], *, of_requests: bool
) -> Iterator[Finding]:
    """A warning for every (entity, key) whose change would have throttled a client; an info where the limit is not what changes.

    What a quota callback limits has no entity: there is one for each bucket.

    An info, too, for a change that might have throttled a client, when there is none that it would have for certain.
    ``verdicts``: worst first. ``sources``: where each proposed value is written. Certain ones come first, each kind worst first.
    ``of_requests``: single requests are known, so that --exact decides.
    """
    hits: dict[_HitQuota, list[BucketVerdict]] = {}
    for verdict in verdicts:
        certain = verdict.verdict is Verdict.THROTTLED
        if certain or (verdict.verdict is Verdict.POSSIBLE and verdict.changed):
            hits.setdefault(_HitQuota(quota_of(verdict), verdict.key, verdict.changed, certain), []).append(verdict)
    for quota, rows in sorted(hits.items(), key=lambda item: not item[0].certain):
        if not quota.certain and quota._replace(certain=True) in hits:
            continue
        entity = rows[0].limits.entity
        yield Finding(
            id=MAY_THROTTLE if not quota.certain else WOULD_THROTTLE if quota.changed else ALREADY_OVER,
            severity=Severity.WARNING if quota.certain and quota.changed else Severity.INFO,
            message=_message(quota, rows, of_requests=of_requests),
            span=sources.get((entity, quota.key)) if entity else None,
            entity=entity,
            key=quota.key,
        )


def _message(quota: _HitQuota, rows: Sequence[BucketVerdict], *, of_requests: bool) -> Message:
    """``rows``: of one ``_HitQuota``, worst first."""
    worst, others = rows[0], len({row.name for row in rows}) - 1
    also = f" (and {others} more {'quota group' if others == 1 else 'quota groups'} of the same quota)" if others else ""
    state = "would have been throttled" if quota.certain else "may have been throttled"
    if quota.certain and not quota.changed:
        state = f"is over its limit, which does not change, and {state}"
    return compose(
        "{group}{also} {state} {doing}, on {broker}{why}",
        group=bucket_words(worst.name),
        also=also,
        state=state,
        doing=_WHILE[QuotaKey(worst.key)],
        broker=broker_words(worst.broker),
        why=_evidence(rows, certain=quota.certain, of_requests=of_requests),
    )


def _evidence(rows: Sequence[BucketVerdict], *, certain: bool, of_requests: bool) -> Message:
    """Return why clients are throttled, or may be: what requests and seconds show, or metrics and what brokers state."""
    worst, key = rows[0], QuotaKey(rows[0].key)
    over, metrics, recommended = worst.over, worst.metrics, worst.advice.recommended
    limit = rate_part(key, worst.limits.after or 0.0)
    if worst.peak.bound is PeakBound.LOWER:
        words = " The highest sample is {highest} against a limit of {limit}."
        highest = "" if metrics is None else compose(words, highest=rate_part(key, metrics.highest), limit=limit)
        advice = "" if recommended is None else compose(" Recommended: {value}.", value=amount_part(key, recommended))
        return compose(": {reason}.{highest}{advice}", reason=worst.reason or "", highest=highest, advice=advice)
    active = f"{duration(over.active)} with traffic"
    long = f"up to {duration(over.possible)} of {active}, probably for {duration(over.seconds)}"
    if certain:
        since = f"{over.longest_from:%H:%M:%S}" if over.longest_from else "?"
        long = f"{duration(over.seconds)} of {active} (longest from {since} UTC for {duration(over.longest_s)})"
    return compose(
        " for {long}: peak {bound}{peak} against a limit of {limit}. {exact}{safe}.",
        long=long,
        bound=worst.peak.bound.words,
        peak=bound_text(key, worst.peak.rate, up=None if worst.peak.bound is PeakBound.EXACT else True),
        limit=limit,
        exact=compose("{flag} decides. ", flag=flag_part("--exact")) if of_requests and not certain else "",
        safe=_safe_part(key, rows),
    )


def _safe_part(key: QuotaKey, rows: Sequence[BucketVerdict]) -> Filling:
    """Return the limit that would have been enough, as a sentence."""
    if any(map(_lacks_safe, rows)):
        if rows[0].recorded.uncharged:
            return "No safe value is known, because some recorded rows could not be counted"
        return "No safe value is known, because a request log lacks the time of network threads"
    safe = max(row.peak.rate if row.advice.safe is None else row.advice.safe for row in rows)
    value = amount_part(key, safe_limit(key, safe)[0])
    if any(row.recorded.censored for row in rows):
        return compose("At least {value} is needed, since quotas throttled these clients when they were recorded", value=value)
    return compose("{value} would have been safe", value=value)


def _lacks_safe(row: BucketVerdict) -> bool:
    return bool(row.recorded.uncharged) or (
        row.advice.safe is None and row.advice.recommended is None and row.advice.reason is not None
    )


CENSORED: Final = (
    "quotas throttled their clients when they were recorded, and the history does not show how much they would have sent. Raise "
    "their limits in steps, and judge the traffic of each step"
)
"""The reason of several such quota groups together."""


def reason_findings(verdicts: Iterable[BucketVerdict]) -> Iterator[Finding]:
    """One for each reason why changed quota groups are inconclusive. Clients that were throttled when recorded have one reason.

    ``verdicts``: worst first.
    """
    reasons: dict[str, list[BucketVerdict]] = {}
    for verdict in verdicts:
        if verdict.verdict is Verdict.INCONCLUSIVE and verdict.changed:
            reason = CENSORED if verdict.recorded.censored else verdict.reason
            reasons.setdefault(reason or "the history does not show enough", []).append(verdict)
    for reason, rows in reasons.items():
        count = len({row.group for row in rows})
        what = (
            "1 quota group that this change touches is" if count == 1 else f"{count:,} quota groups that this change touches are"
        )
        why = rows[0].reason or reason if count == 1 else reason
        yield Finding(
            id=HISTORY_INCOMPLETE,
            severity=Severity.WARNING,
            message=compose("{what} inconclusive: {reason}.", what=what, reason=why),
        )


OVERFLOW: Final = "throttle-overflow"
CONSUMER_STOPS: Final = "consumer-stops"
_BYTES: Final = frozenset({QuotaKey.PRODUCER_BYTE_RATE.value, QuotaKey.CONSUMER_BYTE_RATE.value})


def unkept_findings(
    verdicts: Iterable[BucketVerdict], unkept: Mapping[RowPlace, Mapping[str, str]], sources: Mapping[Quota, Span]
) -> Iterator[Finding]:
    """One for each quota and way in which it is not kept; a warning where the change sets it.

    ``verdicts``: worst first. ``unkept``: by row, what ``unkept_limits`` has of its target.
    """
    worst: dict[tuple[str, LimitSource, str], tuple[BucketVerdict, str]] = {}
    for verdict in verdicts:
        for finding_id, words in unkept.get(verdict.place, {}).items():
            if verdict.recorded.requests:
                worst.setdefault((finding_id, quota_of(verdict), verdict.key), (verdict, words))
    for (finding_id, _, key), (verdict, words) in worst.items():
        entity = verdict.limits.entity
        yield Finding(
            id=finding_id,
            severity=Severity.WARNING if verdict.changed else Severity.INFO,
            message=compose(
                "{group} on {broker}: {words}.",
                group=bucket_words(verdict.name),
                broker=broker_words(verdict.broker),
                words=words,
            ),
            span=sources.get((entity, key)) if entity else None,
            entity=entity,
            key=key,
        )


def unkept_limits(
    judged: Mapping[int, BucketVerdict], series: Sequence[Series], grouping: Grouping, window: Window
) -> dict[int, dict[str, str]]:
    """Return, by target, how a broker does not keep its proposed limit: a clause by the id of the finding about it.

    Targets whose limit is kept are left out. ``judged``: by target.
    """
    ratio, seconds = longest_throttle_ratio(window), (window.samples - 1) * window.sample_ms / 1000
    unkept: dict[int, dict[str, str]] = {}
    for number, verdict in judged.items():
        target, limit = grouping.targets[number], verdict.limits.after
        if limit is None or verdict.key not in _BYTES:
            continue
        largest = max(series[member].largest for member in target.members) if target.kind is Kind.FETCH else 0
        if largest > window.fetch_cap(limit):
            unkept.setdefault(number, {})[CONSUMER_STOPS] = (
                f"a fetch returned {number_text(largest)} bytes of records, more than {seconds:g} s of the limit "
                f"({number_text(window.fetch_cap(limit))} bytes). If one batch is that large, the broker answers "
                f"every try without records and the consumer stops. {safe_byte_rate(largest / seconds)[1]}/s is enough for such "
                "a batch"
            )
        if window.wraps and verdict.peak.rate >= limit * ratio:
            unkept.setdefault(number, {})[OVERFLOW] = (
                f"the limit of {number_text(limit)} bytes/s is too small for Kafka to keep. The throttle for this traffic "
                "exceeds 2^31 - 1 ms, overflows in the broker, and may throttle no client. Kafka keeps limits from "
                f"{safe_byte_rate(verdict.peak.rate / ratio)[1]}/s on"
            )
    return unkept


def with_unkept(verdict: BucketVerdict, ways: Mapping[str, str]) -> BucketVerdict:
    """Return the row with the reason why its limit is not kept. A consumer that may stop is not clear.

    ``ways``: one value or more of ``unkept_limits``.
    """
    if verdict.verdict is Verdict.INCONCLUSIVE:
        return verdict
    row = replace(verdict, reason=next(iter(ways.values())))
    if CONSUMER_STOPS in ways and verdict.verdict is Verdict.CLEAR:
        # It gets nothing from the first such batch on.
        row = replace(row, verdict=Verdict.POSSIBLE, over=replace(row.over, possible=row.over.active))
    return row


LimitSource: TypeAlias = Entity | BucketName
"""The limits of a quota callback are each bucket's own."""


def quota_of(verdict: BucketVerdict) -> LimitSource:
    """The entity whose quota limits a row, or the row's own quota group."""
    return verdict.limits.entity or verdict.name
