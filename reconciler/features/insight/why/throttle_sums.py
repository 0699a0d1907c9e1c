"""The throttles of an incident as brokers recorded them, added up."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from reconciler.features.insight.why.evidence import SourceEvidence
from reconciler.features.insight.why.incident import RecordedThrottles
from reconciler.features.insight.why.stretches import SHOWN_S, Stretch
from reconciler.model import CONTROLLER

if TYPE_CHECKING:
    from reconciler.traffic import RecordedThrottle


def recorded_in(evidences: Sequence[SourceEvidence], chosen: Stretch) -> RecordedThrottles | None:
    """Those of the source that shows most of them. Two sources may show the same throttle, so they are never added up."""
    made = [_sums(evidence, chosen) for evidence in evidences if evidence.throttles]
    return max((sums for sums in made if sums is not None), key=_shows, default=None)


def _shows(sums: RecordedThrottles) -> tuple[int, int, int]:
    return sums.requests, sums.refused, sums.samples


def _sums(evidence: SourceEvidence, chosen: Stretch) -> RecordedThrottles | None:
    rows = [throttle for throttle in evidence.throttles or () if _is_in(throttle, chosen)]
    if not rows:
        return None
    # A line for topics has a row for its time, and rows for its topics. The first counts it.
    lines = [row for row in rows if not row.of_samples and (row.kind.value != "mutation" or not evidence.is_log)]
    times = [row.longest_ms for row in rows if row.longest_ms]
    return RecordedThrottles(
        source=evidence.source,
        requests=sum(row.requests for row in lines) if evidence.counts_requests else 0,
        refused=_refused(rows) if evidence.is_log else 0,
        seconds=len({row.begin_us // 1_000_000 for row in rows if not row.of_samples}),
        samples=len({(row.broker, row.begin_us) for row in rows if row.of_samples}),
        longest_ms=max(times, default=None),
        sum_ms=sum(row.throttle_ms for row in lines) if times else None,
        brokers=tuple(sorted({row.broker for row in rows if row.broker != CONTROLLER})),
        keys=tuple(sorted({row.key for row in rows})) if not evidence.is_log else (),
    )


def _refused(rows: Sequence[RecordedThrottle]) -> int:
    """A forwarded request has a line of its broker and one of the controller."""
    return max(sum(row.refused for row in rows if (row.broker == CONTROLLER) is here) for here in (True, False))


def _is_in(throttle: RecordedThrottle, chosen: Stretch) -> bool:
    """A sample shows a throttle of the minute before it."""
    late = SHOWN_S if throttle.of_samples else 0
    return throttle.begin_us / 1e6 <= chosen.end + late + 1e-6 and throttle.end_us / 1e6 >= chosen.begin
