"""The exact stream against the plain model of Kafka's rate: patterns of arrivals, windows and eras, groups, batches."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.traffic.kernels.exact_stream import ExactStream, GroupLimits, JudgedBatch, judge_one
from reconciler.traffic.kernels.exact_totals import Batch, GroupVerdict, group_of, pack, time_of
from reconciler.traffic.kernels.sampled_rate import Era, SampledRate, Window, throttle_ms
from tests.support.arrivals import PATTERNS, arrivals

WINDOWS = [Window(), Window(samples=2, sample_ms=3000), Window(samples=1, sample_ms=1000), Window(era=Era.DROPPING)]
SETTINGS = st.sampled_from(WINDOWS) | st.builds(
    Window, samples=st.integers(1, 40), sample_ms=st.sampled_from([1000, 2000, 7000, 30_000]), era=st.sampled_from(list(Era))
)


def model(times: np.ndarray, amounts: np.ndarray, limit: float, window: Window, *, fetch: bool) -> tuple[list[float], list[int]]:
    sensor, rates, throttles = SampledRate(window), [], []
    for at, amount in zip(times.tolist(), amounts.tolist(), strict=True):
        sensor.record(amount, at)
        rate, width = sensor.measure(at)
        rates.append(rate)
        throttles.append(throttle_ms(rate, width, limit))
        if fetch and throttles[-1] > 0:
            sensor.record(-amount, at)
    return rates, throttles


def open_rates(times: np.ndarray, amounts: np.ndarray, window: Window) -> np.ndarray:
    nothing = np.zeros(len(times), dtype=np.int64)
    return judge_one(times, amounts, nothing, limit=None, unrecords=False, window=window).rate


@settings(max_examples=150)
@given(st.sampled_from(PATTERNS), SETTINGS, st.integers(0, 10**6), st.integers(1, 400), st.floats(0.05, 1.5))
def test_produce_and_fetch_equal_the_model_at_every_request(
    pattern: str, window: Window, seed: int, count: int, share: float
) -> None:
    times, overhead, records = arrivals(pattern, seed, count)
    limit = max(1.0, float(np.round(share * open_rates(times, overhead + records, window).max())))

    produce = judge_one(times, records, overhead, limit=limit, unrecords=False, window=window)
    assert (produce.rate.tolist(), produce.throttle.tolist()) == model(times, overhead + records, limit, window, fetch=False)

    fetch = judge_one(times, records, overhead, limit=limit, unrecords=True, window=window)
    capped = overhead + np.minimum(records, window.fetch_cap(limit))
    assert fetch.amount.tolist() == capped.tolist()
    assert (fetch.rate.tolist(), fetch.throttle.tolist()) == model(times, capped, limit, window, fetch=True)


GROUPS = st.lists(
    st.tuples(st.sampled_from(PATTERNS), st.integers(0, 10**6), st.integers(1, 150), st.floats(0.2, 1.2), st.booleans()),
    min_size=1, max_size=4,
)  # fmt: skip
Drawn = list[tuple[str, int, int, float, bool]]


def streamed(drawn: Drawn, window: Window, cut: int) -> tuple[list[JudgedBatch], list[GroupVerdict], list[float]]:
    traffic = [arrivals(*one[:3]) for one in drawn]
    limits = [
        max(1.0, float(np.round(one[3] * open_rates(t, o + r, window).max())))
        for one, (t, o, r) in zip(drawn, traffic, strict=True)
    ]
    keys = np.concatenate([pack(np.full(len(t), number), t) for number, (t, _, _) in enumerate(traffic)])
    third, second = (np.concatenate([one[place] for one in traffic]) for place in (2, 1))
    numbers = np.arange(len(keys))
    # Backwards among requests of one ms: their order must come from ``order``, not from where they stood.
    shuffled = np.lexsort((-numbers, keys))
    whole = Batch(keys, numbers, third, second, numbers).part(shuffled)
    side = GroupLimits(np.asarray(limits), np.asarray([one[4] for one in drawn]))
    stream = ExactStream([side, GroupLimits(np.full(len(drawn), np.nan), side.unrecords)], window)
    parts = [stream.feed(whole.part(slice(at, at + cut))) for at in range(0, len(keys), cut)]
    return [part for part in (*parts, stream.finish()) if part is not None], list(stream.totals().verdicts()), limits


@settings(max_examples=150)
@given(GROUPS, SETTINGS, st.integers(1, 80))
def test_a_stream_cut_anywhere_equals_the_model_of_each_group(drawn: Drawn, window: Window, cut: int) -> None:
    parts, totals, limits = streamed(drawn, window, cut)
    keys = np.concatenate([part.requests.keys for part in parts])
    assert np.concatenate([part.requests.rows for part in parts]).tolist() == list(range(len(keys)))
    rate, throttle, unlimited = (
        np.concatenate([getattr(part.sides[n], name) for part in parts])
        for n, name in ((0, "rate"), (0, "throttle"), (1, "throttle"))
    )
    assert not unlimited.any()
    assert [total.group for total in totals] == list(range(len(drawn)))
    for group, (one, limit, total) in enumerate(zip(drawn, limits, totals, strict=True)):
        times, overhead, records = arrivals(*one[:3])
        amounts = overhead + (np.minimum(records, window.fetch_cap(limit)) if one[4] else records)
        here = group_of(keys) == group
        wanted = model(times, amounts, limit, window, fetch=one[4])
        assert (rate[here].tolist(), throttle[here].tolist()) == wanted
        hit = times[np.asarray(wanted[1]) > 0]
        side = total.sides[0]
        assert total.active == len(np.unique(times // 1000))
        assert (side.throttled, side.certain) == (len(hit), len(np.unique(hit // 1000)))
        assert side.first_ms == (int(hit[0]) if len(hit) else None)
        assert total.peak == open_rates(times, overhead + records, window).max()


@settings(max_examples=100)
@given(st.sampled_from(PATTERNS), st.integers(0, 10**6), st.integers(1, 200))
def test_the_open_loop_peak_is_the_smallest_limit_that_neither_throttles_nor_cuts_a_fetch(
    pattern: str, seed: int, count: int
) -> None:
    times, overhead, records = arrivals(pattern, seed, count)
    window, whole = Window(), overhead + records
    peak = float(open_rates(times, whole, window).max())

    def served_less(limit: float) -> bool:
        capped = overhead + np.minimum(records, window.fetch_cap(limit))
        return bool((capped < whole).any()) or any(model(times, capped, limit, window, fetch=True)[1])

    assert not served_less(peak)
    assert served_less(peak * 0.99)


def test_requests_out_of_order_are_refused() -> None:
    back = np.array([2, 1])
    with pytest.raises(ValueError, match="order"):
        judge_one(back, back, back, limit=1.0, unrecords=False, window=Window())


def test_limits_of_zero_and_below_do_as_kafka_does() -> None:
    times, amounts = np.array([0, 500]), np.array([10, 10])
    for limit in (0.0, -5.0, 0.001, float("nan")):
        judged = judge_one(times, amounts, np.zeros(2, dtype=np.int64), limit=limit, unrecords=False, window=Window())
        assert judged.throttle.tolist() == model(times, amounts, limit, Window(), fetch=False)[1]


def test_keys_hold_their_group_and_time() -> None:
    key = pack(np.asarray([2**20]), np.asarray([2**41]))
    assert (group_of(key).tolist(), time_of(key).tolist()) == ([2**20], [2**41])
