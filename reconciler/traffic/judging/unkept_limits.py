"""Limits that a broker does not keep as they are written.

A throttle of produce or fetch that is longer than 2^31 - 1 ms wraps around in Kafka's int, and may throttle nobody. A fetch asks
the broker's log for no more than an empty window can serve, but the log returns a first batch whole. A batch that is larger than
that is throttled at every try, so the consumer gets no record and stops.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from reconciler.model import BucketVerdict, Entity, Finding, QuotaKey, Severity, Span, Verdict, broker_words
from reconciler.text import number_text
from reconciler.traffic.judging.findings import bucket_words
from reconciler.traffic.judging.grouping import Grouping, Series
from reconciler.traffic.judging.recommendations import safe_byte_rate
from reconciler.traffic.judging.verdicts import row_of, target_numbers
from reconciler.traffic.kernels.sampled_rate import Window
from reconciler.traffic.kernels.second_sums import longest_throttle_ratio
from reconciler.traffic.kinds import Kind

OVERFLOW: Final = "throttle-overflow"
CONSUMER_STOPS: Final = "consumer-stops"
_BYTES: Final = frozenset({QuotaKey.PRODUCER_BYTE_RATE.value, QuotaKey.CONSUMER_BYTE_RATE.value})


@dataclass(frozen=True, slots=True)
class UnkeptLimits:
    """``largest_fetch``: by target, the record bytes of its largest fetch, where that is larger than an empty window's worth."""

    window: Window
    largest_fetch: Mapping[int, int]

    @classmethod
    def of(cls, series: Sequence[Series], grouping: Grouping, window: Window) -> UnkeptLimits:
        """Of the proposed limits."""
        found = {}
        for number, target in enumerate(grouping.targets):
            limit = target.after.value
            if target.kind is Kind.FETCH and limit is not None:
                largest = max(series[member].largest for member in target.members)
                if largest > window.fetch_cap(limit):
                    found[number] = largest
        return cls(window, found)

    def verdicts(self, judged: Sequence[BucketVerdict], grouping: Grouping) -> tuple[BucketVerdict, ...]:
        """The same with a reason where a limit is not kept. A consumer that may stop is not clear."""
        number_of = target_numbers(grouping)
        return tuple(self._verdict(one, None if one.undecided else number_of[row_of(one)]) for one in judged)

    def findings(
        self, verdicts: Sequence[BucketVerdict], grouping: Grouping, sources: Mapping[tuple[Entity, str], Span]
    ) -> Iterator[Finding]:
        """One for each quota and way in which it is not kept; a warning where the change sets it."""
        number_of, seen = target_numbers(grouping), set()
        for one in verdicts:
            target = None if one.undecided else number_of[row_of(one)]
            stops = self.largest_fetch.get(target) if target is not None else None
            for finding_id, words in ((CONSUMER_STOPS, self._stop(one, stops)), (OVERFLOW, self._overflow(one))):
                quota = (finding_id, one.entity or one.name, one.key)
                if words is None or quota in seen:
                    continue
                seen.add(quota)
                yield Finding(
                    id=finding_id,
                    severity=Severity.WARNING if one.changed else Severity.INFO,
                    message=f"{bucket_words(one)} on {broker_words(one.broker)}: {words}",
                    span=sources.get((one.entity, one.key)) if one.entity else None,
                    entity=one.entity,
                    key=one.key,
                )

    def _verdict(self, one: BucketVerdict, target: int | None) -> BucketVerdict:
        stops = self.largest_fetch.get(target) if target is not None else None
        reason = self._stop(one, stops) or self._overflow(one)
        if reason is None or one.verdict is Verdict.INCONCLUSIVE:
            return one
        if stops is not None and one.verdict is Verdict.CLEAR:
            # It gets nothing from the first such batch on.
            return replace(one, verdict=Verdict.POSSIBLE, seconds_possible=one.active_seconds, reason=reason)
        return replace(one, reason=reason)

    def _stop(self, one: BucketVerdict, largest: int | None) -> str | None:
        if largest is None or one.limit_after is None:
            return None
        seconds = (self.window.samples - 1) * self.window.sample_ms / 1000
        enough = safe_byte_rate(largest / seconds)[1]
        return (
            f"a fetch returned {number_text(largest)} bytes of records, more than {seconds:g} s of the limit "
            f"({number_text(self.window.fetch_cap(one.limit_after))} bytes). If one batch is that large, the broker answers "
            f"every try without records and the consumer stops. {enough}/s is enough for such a batch"
        )

    def _overflow(self, one: BucketVerdict) -> str | None:
        limit, ratio = one.limit_after, longest_throttle_ratio(self.window)
        if limit is None or one.key not in _BYTES or one.peak < limit * ratio:
            return None
        return (
            f"the limit of {number_text(limit)} bytes/s is too small for Kafka to keep. The throttle for this traffic exceeds "
            "2^31 - 1 ms, overflows in the broker, and may throttle nobody. Kafka keeps limits from "
            f"{safe_byte_rate(one.peak / ratio)[1]}/s on"
        )
