"""Fetches at the times they really had: a log under quotas lacks the sizes of those it throttled, one without quotas has them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from benchmarks.fidelity.comparison import BucketId, Pair
from reconciler.traffic.kernels.exact_stream import judge_one
from reconciler.traffic.kernels.sampled_rate import DEFAULT_WINDOW


def fetches_at(some: Sequence[Pair], at_ms: Mapping[int, float]) -> Iterator[Pair]:
    """The same requests, judged by the product's kernel with their sizes (cut already) and these charge times, by number."""
    parts: dict[BucketId, list[Pair]] = defaultdict(list)
    for one in some:
        parts[one.bucket].append(replace(one, at_ms=at_ms[one.number]))
    for part in parts.values():
        yield from _judged(sorted(part, key=lambda one: one.at_ms))


def _judged(part: Sequence[Pair]) -> Iterator[Pair]:
    limit = part[0].limit
    # Half up, as everywhere the product makes milliseconds of a log's microseconds.
    times = np.floor(np.asarray([one.at_ms for one in part]) + 0.5).astype(np.int64)
    amounts = np.asarray([int(one.amount) for one in part], dtype=np.int64)
    records = np.minimum(amounts, DEFAULT_WINDOW.fetch_cap(limit))
    overhead = amounts - records
    judged = judge_one(times, records, overhead, limit=limit, unrecords=True, window=DEFAULT_WINDOW)
    for place, one in enumerate(part):
        yield replace(one, predicted_ms=max(0, int(judged.throttle[place])))
