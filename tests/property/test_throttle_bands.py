"""The range of a throttle under small errors of time: the same for any batches, and true to replays made by hand."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.traffic.kernels.exact_stream import NOISE_MS, BandStream, GroupLimits, judge_one, noise_ms
from reconciler.traffic.kernels.exact_totals import ORDER_BITS, Batch
from reconciler.traffic.kernels.sampled_rate import Window
from tests.support.arrivals import PATTERNS, arrivals

WINDOW = Window()
REPLAYS = 4


def history(pattern: str, seed: int, count: int, *, unrecords: bool, share: float) -> tuple[Batch, GroupLimits]:
    times, overhead, records = arrivals(pattern, seed, count)
    order = np.random.default_rng(seed).integers(0, 1 << ORDER_BITS, count)
    batch = Batch(times, order, records, overhead, np.arange(count)).in_order()
    batch = Batch(batch.keys, batch.order, batch.records, batch.overhead, np.arange(count))
    limit = max(1.0, share * (overhead + records).sum() / 10)
    return batch, GroupLimits(np.asarray([limit]), np.asarray([unrecords]))


def banded(batch: Batch, side: GroupLimits, cut: int, most_ms: int) -> tuple[list[int], list[int]]:
    stream = BandStream(side, WINDOW, noise_ms=most_ms, replays=REPLAYS)
    parts = [stream.feed(batch.part(slice(at, at + cut))) for at in range(0, len(batch), cut)] + [stream.finish()]
    rows, low, high = (np.concatenate([getattr(part, name) for part in parts]) for name in ("rows", "low", "high"))
    order = np.argsort(rows)
    assert rows[order].tolist() == list(range(len(batch)))
    return low[order].tolist(), high[order].tolist()


@settings(max_examples=80)
@given(
    pattern=st.sampled_from(PATTERNS),
    seed=st.integers(0, 10**6),
    count=st.integers(1, 200),
    unrecords=st.booleans(),
    share=st.floats(0.05, 1.2),
    cut=st.integers(1, 90),
    most_ms=st.sampled_from((0, 2, NOISE_MS, 150)),
)
def test_a_band_spans_the_replays_with_noise(
    pattern: str, seed: int, count: int, unrecords: bool, share: float, cut: int, most_ms: int
) -> None:
    batch, side = history(pattern, seed, count, unrecords=unrecords, share=share)
    found = []
    for number in range(REPLAYS):
        times = batch.keys + noise_ms(batch.order, number, most_ms)
        order = np.lexsort((batch.order, times))
        judged = judge_one(
            times[order], batch.records[order], batch.overhead[order],
            limit=float(side.limits[0]), unrecords=unrecords, window=WINDOW,
        )  # fmt: skip
        throttle = np.empty(count, dtype=np.int64)
        throttle[order] = np.maximum(judged.throttle, 0)
        found.append(throttle)
    low, high = banded(batch, side, cut, most_ms)
    assert low == np.min(found, axis=0).tolist()
    assert high == np.max(found, axis=0).tolist()


def test_noise_takes_every_value_about_alike_and_differs_between_replays() -> None:
    order = np.random.default_rng(1).integers(0, 1 << ORDER_BITS, 20_000)
    one, other = noise_ms(order, 0), noise_ms(order, 1)
    values, counts = np.unique(one, return_counts=True)
    assert values.tolist() == list(range(-NOISE_MS, NOISE_MS + 1))
    alike = 1 / (2 * NOISE_MS + 1)
    assert counts.min() > 0.85 * alike * len(order)
    assert 0.75 * alike < (one == other).mean() < 1.25 * alike
    assert (noise_ms(np.arange(5_000), 3)[1:] == noise_ms(np.arange(5_000), 3)[:-1]).mean() < 0.3
