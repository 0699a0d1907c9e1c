"""Request time, connections and mutations against Kafka's classes as ``kafka_quota_classes`` has them."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.traffic.kernels.exact_stream import ExactStream, GroupLimits, Judged
from reconciler.traffic.kernels.exact_totals import Batch, SideVerdict
from reconciler.traffic.kernels.sampled_rate import Era, Window
from reconciler.traffic.kernels.second_sums import SecondsJudge, keys_of
from reconciler.traffic.kernels.token_bucket import REFUSED, Effects, Topics, judge_bucket, judge_seconds, least_limit, play
from reconciler.traffic.kinds import NANOSECONDS_A_PERCENT
from tests.support.arrivals import PATTERNS, arrivals
from tests.support.kafka_quota_classes import AddressQuota, RequestQuota, Tokens

WINDOWS = [Window(), Window(era=Era.DROPPING), Window(samples=3, sample_ms=2000), Window(samples=5, era=Era.DROPPING)]
ARRIVALS = st.tuples(st.sampled_from(PATTERNS), st.integers(0, 10**6), st.integers(1, 250))


def judged(times: np.ndarray, amounts: np.ndarray, limit: float, window: Window, *, unrecords: bool) -> Judged:
    side = GroupLimits(np.asarray([limit]), np.asarray([unrecords]), np.asarray([True]))
    stream = ExactStream([side], window)
    numbers = np.arange(len(times))
    batch = Batch(times, numbers, amounts, np.zeros_like(amounts), numbers)
    parts = [part.sides[0] for part in (stream.feed(batch), stream.finish()) if part is not None]
    return Judged(*(np.concatenate([getattr(part, name) for part in parts]) for name in Judged.__slots__))


@settings(max_examples=150)
@given(ARRIVALS, st.sampled_from(WINDOWS), st.floats(0.05, 1.2))
def test_request_time_is_held_back_as_kafka_does(drawn: tuple[str, int, int], window: Window, share: float) -> None:
    times, _, records = arrivals(*drawn)
    nanoseconds = records * 50_000
    peak = judged(times, nanoseconds, np.nan, window, unrecords=False).rate.max() / NANOSECONDS_A_PERCENT
    percent = max(0.01, round(float(peak) * share, 2))
    found = judged(times, nanoseconds, percent * NANOSECONDS_A_PERCENT, window, unrecords=False)
    quota = RequestQuota(percent, window.samples, window.sample_ms, spare=window.era is Era.OVERLAPPING)
    wanted = [quota.charge(*one) for one in zip(nanoseconds.tolist(), times.tolist(), strict=True)]
    # Kafka adds up percents in doubles, which may round a half the other way.
    assert np.abs(found.throttle - wanted).max() <= 1
    assert found.throttle.max() <= window.sample_ms


@settings(max_examples=150)
@given(ARRIVALS, st.sampled_from(WINDOWS), st.integers(1, 40))
def test_connections_are_closed_as_kafka_does(drawn: tuple[str, int, int], window: Window, bound: int) -> None:
    times, _, _ = arrivals(*drawn)
    found = judged(times, np.ones_like(times), float(bound), window, unrecords=True)
    quota = AddressQuota(bound, window.samples, window.sample_ms, spare=window.era is Era.OVERLAPPING)
    assert found.throttle.tolist() == [quota.accept(at) for at in times.tolist()]
    assert (found.amount == 1).all()


@pytest.mark.parametrize("era", [Era.OVERLAPPING, Era.DROPPING])
@settings(max_examples=100)
@given(drawn=ARRIVALS, share=st.floats(0.1, 1.1))
def test_seconds_of_request_time_prove_what_kafka_does(era: Era, drawn: tuple[str, int, int], share: float) -> None:
    times, _, records = arrivals(*drawn)
    nanoseconds, window = records * 50_000, Window(era=era)
    rate = judged(times, nanoseconds, np.nan, window, unrecords=False).rate
    percent = max(0.01, float(rate.max()) / NANOSECONDS_A_PERCENT * share)
    quota = RequestQuota(percent, 11, 1000, spare=era is Era.OVERLAPPING)
    held = np.asarray([quota.charge(*one) > 0 for one in zip(nanoseconds.tolist(), times.tolist(), strict=True)])
    seconds, places = np.unique(times // 1000, return_inverse=True)
    sums = np.bincount(places, weights=nanoseconds).astype(np.int64)
    judge = SecondsJudge((np.asarray([percent * NANOSECONDS_A_PERCENT]),), Window(era=era))
    judge.feed(keys_of(np.zeros_like(seconds), seconds), sums)
    (verdict,) = judge.columns().verdicts()
    side = verdict.sides[0]
    # A violation of less than half a millisecond's worth is no throttle.
    over = len(np.unique(times[held | (rate > percent * NANOSECONDS_A_PERCENT * (1 + 1e-9))] // 1000))
    assert side.certain <= over
    assert len(np.unique(times[held] // 1000)) <= side.possible
    assert verdict.peak * (1 + 1e-12) >= rate.max()


REQUESTS = st.lists(
    st.tuples(st.integers(0, 9000), st.lists(st.integers(1, 120), min_size=1, max_size=5), st.booleans()), min_size=1, max_size=40
)
"""The pause before a request in ms, the partitions of its topics, and whether its version is refused."""
Asked = list[tuple[int, list[int], bool]]


LONG_PAUSES = st.lists(
    st.tuples(
        st.sampled_from([0, 400, 60_000, 3_599_999, 3_600_000, 3_600_001, 4_000_000]),
        st.lists(st.integers(1, 50_000), min_size=1, max_size=4),
        st.booleans(),
    ),
    min_size=1,
    max_size=30,
)
"""Requests that leave debts of many hours, and pauses around the one after which a broker forgets them."""


def topics_of(drawn: Asked, start: int = 1_700_000_000_123) -> Topics:
    rows, now = [], start
    for number, (pause, partitions, strict) in enumerate(drawn):
        now += pause
        rows += [(now, number, amount, strict, 0) for amount in partitions]
    times, order, amounts, refused, series = zip(*rows, strict=True)
    return Topics(
        times_ms=np.asarray(times, dtype=np.int64),
        order=np.asarray(order, dtype=np.int64),
        amounts=np.asarray(amounts, dtype=np.int64),
        strict=np.asarray(refused, dtype=np.bool_),
        series=np.asarray(series, dtype=np.int64),
    )


def played(topics: Topics, limit: float, window: Window) -> tuple[list[bool], list[int]]:
    tokens = Tokens(limit, window.samples, window.sample_ms)
    columns = (topics.amounts.tolist(), topics.times_ms.tolist(), topics.strict.tolist())
    found = [(tokens.strict if strict else tokens.permissive)(amount, at) for amount, at, strict in zip(*columns, strict=True)]
    return [one for one, _ in found], [throttle for _, throttle in found]


def effects(topics: Topics, limit: float, window: Window) -> Effects:
    return play(topics.times_ms, topics.amounts, topics.strict, limit, window)


@settings(max_examples=200)
@given(REQUESTS, st.floats(0.1, 60), st.sampled_from([Window(), Window(samples=3, sample_ms=500)]))
def test_each_topic_is_admitted_delayed_or_refused_as_kafka_does(drawn: Asked, limit: float, window: Window) -> None:
    topics = topics_of(drawn)
    found = effects(topics, limit, window)
    admitted, throttles = played(topics, limit, window)
    assert (~found.refused).tolist() == admitted
    assert found.throttle.tolist() == throttles
    assert found.held.tolist() == [not one or throttle > 0 for one, throttle in zip(admitted, throttles, strict=True)]


@settings(max_examples=150)
@given(REQUESTS, st.floats(0.1, 60))
def test_a_bucket_counts_topics_and_seconds(drawn: Asked, limit: float) -> None:
    topics = topics_of(drawn)
    found, batch = judge_bucket(3, topics, (np.nan, limit), Window())
    (verdict,) = found.verdicts()
    admitted, throttles = played(topics, limit, Window())
    held = [not one or throttle > 0 for one, throttle in zip(admitted, throttles, strict=True)]
    before, after = verdict.sides[0], verdict.sides[1]
    assert (verdict.group, before.throttled, after.throttled) == (3, 0, sum(held))
    assert after.certain == len({at // 1000 for at, over in zip(topics.times_ms.tolist(), held, strict=True) if over})
    assert verdict.sides[REFUSED].throttled == admitted.count(False)
    assert (batch.sides[1].throttle > 0).tolist() == held


@settings(max_examples=150)
@given(REQUESTS)
def test_the_peak_of_a_bucket_is_the_least_limit_that_overdraws_nothing(drawn: Asked) -> None:
    topics = topics_of(drawn)
    since = (topics.times_ms - topics.times_ms[0]) / 1000.0
    peak = least_limit(since, since, topics.amounts, Window())
    for limit, overdrawn in ((peak * (1 + 1e-9), False), (peak * (1 - 1e-6), True)):
        tokens, least = Tokens(limit, 11, 1000), 0.0
        for amount, at in zip(topics.amounts.tolist(), topics.times_ms.tolist(), strict=True):
            tokens.take(amount, at)
            least = min(least, tokens.tokens)
        assert (least < 0) is overdrawn


@settings(max_examples=300)
@given(REQUESTS, st.floats(0.5, 60))
def test_seconds_of_mutations_prove_what_kafka_does(drawn: Asked, limit: float) -> None:
    topics = topics_of(drawn)
    (verdict,) = judge_seconds(5, topics.times_ms // 1000, topics.amounts, (np.nan, limit), Window()).verdicts()
    nothing, side = verdict.sides
    assert (nothing.certain, nothing.possible) == (0, 0)
    strict = topics.strict
    for asked in (strict, np.ones_like(strict), np.zeros_like(strict)):
        admitted, throttles = played(Topics(topics.times_ms, topics.order, topics.amounts, asked, topics.series), limit, Window())
        held = np.asarray([not one or throttle > 0 for one, throttle in zip(admitted, throttles, strict=True)])
        over = np.unique(topics.times_ms[held] // 1000)
        assert len(over) <= side.possible
        assert_proven(side, over)
    since = (topics.times_ms - topics.times_ms[0]) / 1000.0
    assert verdict.peak * (1 + 1e-12) >= least_limit(since, since, topics.amounts, Window())


def assert_proven(side: SideVerdict, over: np.ndarray) -> None:
    assert len(over) or not side.certain
    if len(over) and not side.expected:
        assert side.first_ms is not None
        assert side.first_ms <= 1000 * over[0]


@pytest.mark.parametrize("limit", [0.0, -3.0])
def test_a_limit_of_nothing_refuses_new_clients_and_passes_old_ones_by(limit: float) -> None:
    drawn = [(100, [5], True), (100, [5], True), (20_000, [1], True)]
    new, old = topics_of(drawn), topics_of([(pause, amounts, False) for pause, amounts, _ in drawn])
    assert effects(new, limit, Window()).refused.tolist() == [limit < 0, True, True]
    assert not effects(old, limit, Window()).held.any()
    (verdict,) = judge_seconds(0, new.times_ms // 1000, new.amounts, (limit,), Window()).verdicts()
    side = verdict.sides[0]
    assert (side.certain, side.possible) == (0, 2)


@settings(max_examples=150)
@given(LONG_PAUSES, st.sampled_from([0.5, 1.0, 7.0]))
def test_a_broker_forgets_the_debt_of_an_idle_hour(drawn: Asked, limit: float) -> None:
    topics = topics_of(drawn)
    found = effects(topics, limit, Window())
    admitted, throttles = played(topics, limit, Window())
    assert (~found.refused).tolist() == admitted
    assert [ms for ms, refused in zip(found.throttle.tolist(), found.refused, strict=True) if not refused] == [
        ms for ms, was in zip(throttles, admitted, strict=True) if was
    ]
    held = [at // 1000 for at, one in zip(topics.times_ms.tolist(), found.held, strict=True) if one]
    (verdict,) = judge_seconds(0, topics.times_ms // 1000, topics.amounts, (np.nan, limit), Window()).verdicts()
    side = verdict.sides[1]
    assert (side.certain == 0) or held
    assert len(set(held)) <= side.possible


def throttles(topics: Topics, limit: float) -> bool:
    admitted, waits = played(topics, limit, Window())
    return not all(admitted) or any(waits)


@settings(max_examples=200)
@given(st.one_of(REQUESTS, LONG_PAUSES))
def test_the_safe_limit_of_mutations_is_the_smallest_that_throttles_nothing(drawn: Asked) -> None:
    topics = topics_of(drawn)
    found, _ = judge_bucket(0, topics, (np.nan, np.nan), Window())
    (verdict,) = found.verdicts()
    assert verdict.safe <= verdict.peak * (1 + 1e-9)
    assert not throttles(topics, verdict.safe or 1e-3)
    # A delay below half a millisecond is none.
    assert verdict.safe == 0 or throttles(topics, verdict.safe * (1 - 1e-3))
