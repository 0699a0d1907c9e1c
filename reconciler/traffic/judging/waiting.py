"""Throttled buckets with clients that wait: each bucket's requests in, one row a bucket out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import pyarrow as pa

from reconciler.model import BucketVerdict, QuotaKey, Verdict, Waiting
from reconciler.traffic.judging.grouping import Grouping
from reconciler.traffic.judging.verdicts import target_numbers
from reconciler.traffic.kernels.closed_loop import Sent, outcome_of, play
from reconciler.traffic.kernels.exact_totals import Batch, group_of, time_of
from reconciler.traffic.kernels.sampled_rate import Window

MOST_BUCKETS: Final = 20
"""Of the report's rows, the worst ones are played."""
MOST_REQUESTS: Final = 200_000
"""Of one bucket, from the beginning: a second or two of work."""

SCHEMA: Final = pa.schema(
    [
        ("group", pa.int64()), ("connections", pa.int64()), ("requests", pa.int64()), ("complete", pa.bool_()),
        ("throughput", pa.float64()), ("throughput_of_limit", pa.float64()), ("waited", pa.int64()),
        ("wait_median_s", pa.float64()), ("wait_longest_s", pa.float64()), ("behind_longest_s", pa.float64()),
        ("pulse_of_limit", pa.float64()), ("pulse_s", pa.float64()), ("pulse_every_s", pa.float64()),
    ]
)  # fmt: skip
_KEYS: Final = frozenset({QuotaKey.PRODUCER_BYTE_RATE.value, QuotaKey.CONSUMER_BYTE_RATE.value})


def worth_playing(verdicts: Sequence[BucketVerdict], grouping: Grouping) -> dict[int, BucketVerdict]:
    """By target: the worst of those that are certainly throttled for their bytes; of other kinds no measurement vouches."""
    number_of = target_numbers(grouping)
    hit = [v for v in verdicts if v.verdict is Verdict.THROTTLED and v.key in _KEYS and not v.undecided and v.limit_after]
    return {number_of[verdict.place]: verdict for verdict in hit[:MOST_BUCKETS]}


def add_waiting(
    verdicts: Sequence[BucketVerdict], grouping: Grouping, played: Mapping[int, Waiting]
) -> tuple[BucketVerdict, ...]:
    """The same verdicts, with what their clients go through where that was played."""
    number_of = target_numbers(grouping)
    waiting = (None if verdict.undecided else played.get(number_of[verdict.place]) for verdict in verdicts)
    return tuple(
        verdict if known is None else replace(verdict, waiting=known) for verdict, known in zip(verdicts, waiting, strict=True)
    )


def waiting_of(table: pa.Table) -> dict[int, Waiting]:
    """By group, from rows of ``SCHEMA``."""
    return {row.pop("group"): Waiting(**row) for row in table.to_pylist()}


@dataclass(frozen=True, slots=True)
class Player:
    """What every worker needs; small, since it travels with the code."""

    limits: Mapping[int, float]
    refuses: Mapping[int, bool]
    window: Window
    most: int = MOST_REQUESTS

    @classmethod
    def of(cls, grouping: Grouping, groups: Sequence[int], window: Window) -> Player:
        """For these groups, which are targets."""
        of_group = {number: grouping.groups[number] for number in groups}
        return cls(
            limits={
                number: group.after.limit * group.kind.amounts_a_unit
                for number, group in of_group.items()
                if group.after and group.after.limit
            },
            refuses={number: group.kind.refuses for number, group in of_group.items()},
            window=window,
        )

    def rows(self, batches: Iterable[Batch]) -> Iterator[pa.RecordBatch]:
        """One row of ``SCHEMA`` a group. ``batches``: in the order of keys, cut anywhere; ``rows`` are numbers of connections."""
        group, kept, count, total = -1, list[Batch](), 0, 0
        rows: list[dict[str, object]] = []
        for batch in batches:
            of_group = group_of(batch.keys)
            for number in np.unique(of_group).tolist():
                if number != group:
                    rows += self._row(group, kept, total)
                    group, kept, count, total = number, [], 0, 0
                part = batch.part(np.flatnonzero(of_group == number))
                total += len(part)
                if count < self.most:
                    kept.append(part.part(slice(self.most - count)))
                    count += len(kept[-1])
        rows += self._row(group, kept, total)
        yield pa.RecordBatch.from_pylist(rows, schema=SCHEMA)

    def _row(self, group: int, kept: Sequence[Batch], total: int) -> list[dict[str, object]]:
        if not kept:
            return []
        whole = kept[0]
        for more in kept[1:]:
            whole = whole.then(more)
        whole = whole.in_order()
        sent = Sent(times_ms=time_of(whole.keys), records=whole.records, overhead=whole.overhead, connections=whole.rows)
        limit = self.limits[group]
        result = play(sent, limit=limit, refuses=self.refuses[group], window=self.window)
        outcome = outcome_of(sent, result, limit=limit, window=self.window)
        pulses = outcome.pulses
        return [
            {
                "group": group,
                "connections": len(np.unique(sent.connections)),
                "requests": len(whole),
                "complete": result.complete and len(whole) == total,
                "throughput": outcome.throughput,
                "throughput_of_limit": outcome.throughput_of_limit,
                "waited": outcome.waited,
                "wait_median_s": outcome.wait_median_s,
                "wait_longest_s": outcome.wait_longest_s,
                "behind_longest_s": outcome.behind_longest_s,
                "pulse_of_limit": pulses.of_limit if pulses else None,
                "pulse_s": pulses.length_s if pulses else None,
                "pulse_every_s": pulses.every_s if pulses else None,
            }
        ]
