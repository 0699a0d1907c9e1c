"""What means of metrics prove: a throttle, and never that there was none.

A mean over a time says nothing about the seconds in it. But a broker lets no more through without a throttle than its limit
allows over the windows that cover that time. Take the last request of an interval of L seconds, then the last one before its
window, and so on. Each window has the rate ``S / w <= limit`` when nothing is throttled. A window that Kafka fills up to N - 1
samples ends at least as long behind the request before it, so the lengths add up to no more than L and one longest window. An
amount A in L seconds hence proves a throttle under every limit below ``A / (L + longest window)``. A throttle below half a
millisecond is rounded to none, which adds a millisecond to each window.

A gauge is the broker's own rate at a moment. Between the last request and that moment samples only expire, so the rate at that
request was at least ``gauge x (N - 1) samples / longest window``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from reconciler.model import BucketVerdict, Entity, PeakBound, Verdict
from reconciler.traffic.judging.grouping import Grouping, Series, Tables, group_series
from reconciler.traffic.judging.verdicts import moment, target_fields, worst_first
from reconciler.traffic.kernels.sampled_rate import Era, Window
from reconciler.traffic.kernels.second_sums import ROUNDING, longest_throttle_ratio
from reconciler.traffic.kinds import SAMPLED, Kind
from reconciler.traffic.shuffle.rows import Totals, add_up
from reconciler.traffic.sources.normal_form import NOT_AN_EVENT

CLIENT: Final = ("broker", "kind", "user", "client_id", "interval_us")
FOLDS: Final = {"amount": "max", "rows": "sum", "first_us": "min", "last_us": "max"}
"""How the rows of one client and length become one: its largest amount, how many rows, the first and the last time."""
SCHEMA: Final = pa.schema(
    [
        ("broker", pa.int32()), ("kind", pa.string()), ("user", pa.string()), ("client_id", pa.string()),
        *((name, pa.int64()) for name in ("interval_us", *FOLDS)),
    ]
)  # fmt: skip
UNDECIDED: Final = "means are recorded, which can prove throttling and never its absence"
PROVEN: Final = "a recorded mean is above the limit"


@dataclass(frozen=True, slots=True, kw_only=True)
class Mean:
    """The largest mean of one client over times of one length. ``interval_us`` 0: a gauge, whose amount is that of a second.

    ``requests`` of ``series`` counts the rows, ``amount`` of it is the largest.
    """

    series: Series
    interval_us: int
    start_us: int
    end_us: int

    def proven_rate(self, window: Window) -> float:
        """Amounts a second: every limit below this would have throttled a request."""
        longest_ms = window.expiry_ms + (window.sample_ms if window.era is Era.OVERLAPPING else 0) + 1
        if not self.interval_us:
            return self.series.amount * (window.samples - 1) * window.sample_ms / longest_ms
        shortest_ms = max(1, window.samples - 1) * window.sample_ms
        return self.series.amount / (self.interval_us / 1e6 * (1 + 1 / shortest_ms) + longest_ms / 1000)

    def possible_rate(self, window: Window) -> float:
        """What no rate can have exceeded, if all of the amount came at once."""
        shortest_s = max(1, window.samples - 1) * window.sample_ms / 1000
        return self.series.amount / shortest_s if self.interval_us else self.series.amount * window.expiry_ms / 1000 / shortest_s


def means_of(grouped: pa.Table) -> tuple[Mean, ...]:
    """``grouped``: one row for each combination of ``CLIENT``, with the columns of ``FOLDS``. Sorted."""
    found = (
        Mean(
            series=Series(
                broker=row["broker"],
                kind=Kind(row["kind"]),
                user=row["user"],
                client_id=row["client_id"],
                requests=row["rows"],
                amount=row["amount"],
            ),
            interval_us=row["interval_us"],
            start_us=row["first_us"] - row["interval_us"],
            end_us=row["last_us"],
        )
        for row in grouped.to_pylist()
    )
    return tuple(sorted(found, key=lambda one: (one.series.sort_key, one.interval_us)))


def count_means(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """``SCHEMA``, one row a client and length. Only rows with an interval count."""
    for batch in batches:
        if "interval_us" not in batch.schema.names:
            continue
        is_mean = pc.equal(batch.column("status").cast(pa.string()), NOT_AN_EVENT)
        known = batch.filter(pc.and_(is_mean, pc.is_valid(batch.column("interval_us"))))
        made = {
            **{name: known.column(name) for name in CLIENT},
            "amount": pc.add(known.column("records"), known.column("overhead")),
            "rows": pa.repeat(1, known.num_rows),
            "first_us": known.column("ts_us"),
            "last_us": known.column("ts_us"),
        }
        columns = [made[field.name].cast(field.type) for field in SCHEMA]
        yield from add_up(pa.table(columns, schema=SCHEMA), CLIENT, FOLDS).to_batches()


MEAN_TOTALS: Final[Totals[pa.RecordBatch]] = Totals(
    name="means",
    columns=("status", "broker", "kind", "user", "client_id", "interval_us", "records", "overhead", "ts_us"),
    count=count_means,
    schema=SCHEMA,
    keys=CLIENT,
    folds=FOLDS,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class MeanVerdicts:
    """Verdicts of means. ``limiting``: the quotas (entity and key) that limit a client of these means, before or after."""

    verdicts: tuple[BucketVerdict, ...] = ()
    limiting: frozenset[tuple[Entity, str]] = frozenset()

    def merge_into(self, verdicts: Sequence[BucketVerdict]) -> tuple[BucketVerdict, ...]:
        """All verdicts, worst first, one for each group, key and broker.

        What requests or whole seconds show of a group stays, unless only a mean proves a throttle.
        """
        found = {(one.key, one.broker, one.name, one.undecided): one for one in verdicts}
        for one in self.verdicts:
            place = one.key, one.broker, one.name, one.undecided
            known = found.get(place)
            if known is None:
                found[place] = one
            elif one.verdict is Verdict.THROTTLED and known.verdict is not Verdict.THROTTLED:
                found[place] = replace(known, verdict=Verdict.THROTTLED, reason=one.reason)
        return tuple(sorted(found.values(), key=worst_first))


def judge_means(means: Sequence[Mean], before: Tables | None, after: Tables, window: Window) -> MeanVerdicts:
    """A group is certain where a mean proves it, else inconclusive if it is limited."""
    if not means:
        return MeanVerdicts()
    grouping = group_series([one.series for one in means], before, after)
    sides = [*((target.kind, target.after) for target in grouping.targets)]
    sides += [(one.series.kind, earlier) for one, earlier in zip(means, grouping.before_of_series, strict=True) if earlier]
    limiting = {(resolved.source, kind.key.value) for kind, resolved in sides if resolved.source is not None}
    verdicts = tuple(_verdict(index, means, grouping, window) for index in range(len(grouping.targets)))
    return MeanVerdicts(verdicts=verdicts, limiting=frozenset(limiting))


def _verdict(index: int, means: Sequence[Mean], grouping: Grouping, window: Window) -> BucketVerdict:
    target = grouping.targets[index]
    members = [means[member] for member in target.members]
    limit, unit = target.after.value, target.kind.amounts_a_unit
    proven = max(one.proven_rate(window) for one in members) / unit
    most = max(one.possible_rate(window) for one in members) / unit
    certain = False
    if limit is not None and target.kind in SAMPLED and not target.undecided:
        fits = target.kind.is_capped or most < limit * longest_throttle_ratio(window) * (1 - ROUNDING)
        certain = fits and proven > limit * (1 + ROUNDING)
    verdict = Verdict.THROTTLED if certain else Verdict.CLEAR if limit is None and not target.undecided else Verdict.INCONCLUSIVE
    return BucketVerdict(
        **target_fields(index, grouping),
        verdict=verdict,
        requests=0,
        throttled_before=None,
        throttled=None,
        active_seconds=sum(one.series.requests * one.interval_us for one in members) // 1_000_000,
        seconds_certain=int(certain),
        seconds_over=int(certain),
        seconds_possible=int(certain),
        seconds_over_before=None,
        first=moment(min(one.start_us for one in members)) if certain else None,
        longest_s=0,
        longest_from=None,
        peak=proven,
        peak_bound=PeakBound.LOWER,
        members=(),
        reason=PROVEN if certain else UNDECIDED if verdict is Verdict.INCONCLUSIVE else None,
    )
