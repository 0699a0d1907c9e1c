"""One-second sums against the exact rate: what they call certain or clear is, for any arrivals, batches and groups."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.traffic.kernels.exact_stream import judge_one
from reconciler.traffic.kernels.exact_totals import GroupVerdict
from reconciler.traffic.kernels.sampled_rate import Era, SampledRate, Window
from reconciler.traffic.kernels.second_sums import SecondsJudge, bounds, keys_of
from tests.support.arrivals import PATTERNS, arrivals
from tests.support.kafka_quota_classes import Rate
from tests.support.quota_oracles import throttle_ms

WINDOW = Window()
SETTINGS = st.builds(
    Window, samples=st.integers(2, 40), sample_ms=st.sampled_from([1000, 2000, 5000, 30_000]), era=st.sampled_from(list(Era))
)
ERAS = st.sampled_from(list(Era))
GROUPS = st.lists(st.tuples(st.sampled_from(PATTERNS), st.integers(0, 10**6), st.integers(1, 250)), min_size=1, max_size=4)


def open_loop_rates(times: np.ndarray, amounts: np.ndarray, window: Window) -> np.ndarray:
    return judge_one(times, amounts, np.zeros_like(amounts), limit=None, unrecords=False, window=window).rate


def cells(times: np.ndarray, amounts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    seconds, places = np.unique(times // 1000, return_inverse=True)
    return seconds, np.bincount(places, weights=amounts).astype(np.int64)


def judged(
    groups: list[tuple[np.ndarray, np.ndarray]], limits: list[float], batch: int, window: Window = WINDOW
) -> list[GroupVerdict]:
    keys = np.concatenate([keys_of(np.full(len(s), number), s) for number, (s, _) in enumerate(groups)])
    amounts = np.concatenate([x for _, x in groups])
    judge = SecondsJudge([np.asarray(limits), np.full(len(limits), np.nan)], window)
    for start in range(0, len(keys), batch):
        judge.feed(keys[start : start + batch], amounts[start : start + batch])
    return list(judge.columns().verdicts())


@given(st.sampled_from(PATTERNS), st.integers(0, 10**6), st.integers(1, 400), ERAS)
def test_the_largest_rate_of_a_second_lies_within_its_bounds(pattern: str, seed: int, count: int, era: Era) -> None:
    times, overhead, records = arrivals(pattern, seed, count)
    amounts = overhead + records
    seconds, sums = cells(times, amounts)
    found = bounds(keys_of(np.zeros(len(seconds), dtype=np.int64), seconds), sums, Window(era=era))
    rates = open_loop_rates(times, amounts, Window(era=era))
    for place, second in enumerate(seconds):
        largest = rates[times // 1000 == second].max()
        assert found.lower[place] * (1 - 1e-12) <= largest <= found.upper[place] * (1 + 1e-12)


@settings(max_examples=100)
@given(SETTINGS, st.sampled_from(PATTERNS), st.integers(0, 10**6), st.integers(1, 400))
def test_bounds_hold_for_other_window_settings(window: Window, pattern: str, seed: int, count: int) -> None:
    times, overhead, records = arrivals(pattern, seed, count)
    amounts = overhead + records
    seconds, sums = cells(times, amounts)
    found = bounds(keys_of(np.full(len(seconds), 3), seconds), sums, window)
    # The plain model, not a faster form of it.
    sensor, rates = SampledRate(window), []
    for at, amount in zip(times.tolist(), amounts.tolist(), strict=True):
        sensor.record(amount, at)
        rates.append(sensor.measure(at)[0])
    for place, second in enumerate(seconds):
        largest = max(rate for rate, at in zip(rates, times.tolist(), strict=True) if at // 1000 == second)
        assert found.lower[place] * (1 - 1e-12) <= largest <= found.upper[place] * (1 + 1e-12)
        assert found.lower[place] <= found.expected[place]


@settings(max_examples=60)
@given(SETTINGS, GROUPS, st.floats(0.3, 1.3), st.integers(1, 60))
def test_batches_may_end_anywhere_under_any_settings(
    window: Window, drawn: list[tuple[str, int, int]], share: float, batch: int
) -> None:
    traffic = [cells(times, overhead + records) for times, overhead, records in (arrivals(*d) for d in drawn)]
    limits = [share * float(x.max()) for _, x in traffic]
    assert judged(traffic, limits, batch, window) == judged(traffic, limits, 10**6, window)


@pytest.mark.parametrize("window", [Window(samples=1), Window(sample_ms=1500), Window(samples=11, sample_ms=600_000)])
def test_settings_of_which_seconds_prove_nothing_are_refused(window: Window) -> None:
    with pytest.raises(ValueError, match="prove nothing"):
        bounds(np.asarray([1, 2]), np.asarray([1, 1]), window)


@given(GROUPS, st.floats(0.3, 1.3), st.integers(1, 300))
def test_certain_seconds_are_throttled_and_clear_ones_are_not(
    drawn: list[tuple[str, int, int]], share: float, batch: int
) -> None:
    traffic = [(times, overhead + records) for times, overhead, records in (arrivals(*one) for one in drawn)]
    limits = [max(1.0, round(share * float(open_loop_rates(*one, WINDOW).max()))) for one in traffic]
    verdicts = judged([cells(*one) for one in traffic], limits, batch)
    assert [v.group for v in verdicts] == list(range(len(traffic)))
    for verdict, (times, amounts), limit in zip(verdicts, traffic, limits, strict=True):
        # Over the limit by less than a millisecond's worth is a throttle of 0: over is what the broker's check says.
        over = np.unique(times[open_loop_rates(times, amounts, WINDOW) > limit] // 1000)
        side, unlimited = verdict.sides
        assert verdict.active == len(np.unique(times // 1000))
        assert side.certain <= len(over) <= side.possible
        assert side.certain <= side.expected <= side.possible
        if len(over) and not side.expected:
            assert side.first_ms is not None
            assert side.first_ms <= 1000 * over[0]
        assert (unlimited.certain, unlimited.possible, unlimited.longest_s) == (0, 0, 0)
        if not side.possible:
            exact = judge_one(times, amounts, np.zeros_like(amounts), limit=limit, unrecords=False, window=WINDOW)
            assert not exact.throttle.any()


@given(st.sampled_from(PATTERNS), st.integers(0, 10**6), st.integers(1, 250), st.floats(1e-10, 1e-3), ERAS)
def test_certain_seconds_have_a_throttle_that_kafkas_int_keeps(
    pattern: str, seed: int, count: int, share: float, era: Era
) -> None:
    times, overhead, records = arrivals(pattern, seed, count)
    amounts = overhead + records
    rate = Rate(11, 1000, era is Era.OVERLAPPING)
    measured = []
    for at, amount in zip(times.tolist(), amounts.tolist(), strict=True):
        rate.record(amount, at)
        measured.append(rate.measure(at))
    limit = share * max(rate for rate, _ in measured)
    throttled = {at // 1000 for at, one in zip(times.tolist(), measured, strict=True) if throttle_ms(*one, limit) > 0}
    (verdict,) = judged([cells(times, amounts)], [limit], 7, Window(era=era))
    side = verdict.sides[0]
    assert side.certain <= len(throttled) <= side.possible


@settings(max_examples=100)
@given(st.sampled_from(PATTERNS), st.integers(0, 10**6), st.integers(1, 300), st.floats(0.2, 1.0))
def test_the_longest_episode_is_that_of_a_plain_loop(pattern: str, seed: int, count: int, share: float) -> None:
    times, overhead, records = arrivals(pattern, seed, count)
    seconds, sums = cells(times, overhead + records)
    found = bounds(keys_of(np.zeros(len(seconds), dtype=np.int64), seconds), sums)
    limit = share * float(found.expected.max())
    marked = (found.expected > limit) & (found.upper > limit)
    best, since, begin, last = 0, None, None, None
    for second, over in zip(seconds.tolist(), marked.tolist(), strict=True):
        if not over:
            begin = None
        elif begin is None or second - last > 11:
            begin = second
        last = second
        if begin is not None and second - begin + 1 > best:
            best, since = second - begin + 1, begin
    side = judged([(seconds, sums)], [limit], 7)[0].sides[0]
    assert (side.longest_s, side.longest_from) == (best, since)


def test_cells_out_of_order_are_refused() -> None:
    with pytest.raises(ValueError, match="rising"):
        bounds(np.asarray([5, 5]), np.asarray([1, 1]))
    judge = SecondsJudge([np.asarray([10.0])])
    judge.feed(np.asarray([100, 101]), np.asarray([1, 1]))
    judge.feed(np.asarray([101, 102, 103]), np.asarray([5, 1, 1]))
    with pytest.raises(ValueError, match="rising"):
        judge.feed(np.asarray([102, 104]), np.asarray([1, 1]))


@settings(max_examples=60)
@given(GROUPS, st.integers(1, 40), st.integers(0, 10**6))
def test_parts_of_a_second_add_up(drawn: list[tuple[str, int, int]], batch: int, seed: int) -> None:
    traffic = [cells(times, overhead + records) for times, overhead, records in (arrivals(*d) for d in drawn)]
    parts = np.random.default_rng(seed).integers(1, 4, 10_000)
    split = []
    for seconds, sums in traffic:
        times = parts[: len(seconds)]
        amounts = np.repeat(sums // times, times)
        amounts[np.cumsum(times) - 1] += sums - sums // times * times
        split.append((np.repeat(seconds, times), amounts))
    limits = [float(x.mean()) for _, x in traffic]
    assert judged(split, limits, batch) == judged(traffic, limits, 1000)
