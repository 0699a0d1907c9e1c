"""Which clients count as throttled after a step, by samples as sources give them, and when a source counts as lost."""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from reconciler.errors import TrafficError, UsageError
from reconciler.features.insight.observe import Headroom, join_limits, observe
from reconciler.features.insight.rate_sources import RateReading, RateRequest, Samples
from reconciler.features.insight.step_watch import SourceWatcher, WatchPace
from reconciler.features.prometheus.metric_layouts import Measure, MetricSeries
from reconciler.model.cluster import Verdict
from reconciler.model.effect import BucketName
from reconciler.model.entity import Entity
from reconciler.model.plan import Action, Change, KeyChange, Reason
from reconciler.model.run_context import Prediction, WatchedStep
from reconciler.resolution.effective_quotas import Caveats
from reconciler.resolution.views import QuotaView, ViewKind
from reconciler.traffic.kinds import Kind
from tests.builders import NOON, user
from tests.fakes import FakeClock
from tests.support.recorder_lines import header, write_members

RATE = "producer_byte_rate"
QUOTAS: Mapping[Entity, Mapping[str, float]] = {user("alice"): {RATE: 200.0}, user("bob"): {RATE: 200.0}, user(): {RATE: 50.0}}
START = NOON.timestamp()
PAGE = "http://b1/metrics"

Groups = Mapping[str, tuple[float, float]]
"""By user the rate, and the throttle time (NaN: none)."""


def change(name: str, after: float | None, before: float = 200.0) -> Change:
    key = KeyChange(key=RATE, before=before, after=after, reason=Reason.VALUE_DIFFERS)
    return Change(entity=user(name), action=Action.UPDATE if after is not None else Action.DELETE, keys=(key,))


ALICE = (change("alice", 100.0),)


class Page:
    """A page whose groups are those of ``at`` after so many seconds of the watch; ``None``: it does not answer.

    ``shown``: what a source makes of the reading.
    """

    def __init__(
        self, clock: FakeClock, at: Callable[[float], Groups | None], shown: Callable[[RateReading], RateReading]
    ) -> None:
        self._clock, self._at, self._shown = clock, at, shown

    def __call__(self, view: QuotaView, since: datetime.datetime | None) -> Headroom:
        return join_limits(view, {}, self._shown(self._read()))

    def _read(self) -> RateReading:
        now_s = self._clock.now().timestamp()
        groups = self._at(self._clock.seconds)
        if groups is None:
            raise TrafficError(f"{PAGE} does not answer.")
        series: dict[MetricSeries, Samples] = {
            MetricSeries(broker=1, kind=Kind.PRODUCE, user=name, client_id=None, measure=measure): ((now_s, value),)
            for name, values in groups.items()
            for measure, value in zip((Measure.RATE, Measure.THROTTLE_TIME), values, strict=True)
        }
        return RateReading(series=series, pages={PAGE: now_s})


def watcher(
    at: Callable[[float], Groups | None],
    *predictions: Prediction,
    caveats: Caveats | None = None,
    shown: Callable[[RateReading], RateReading] = lambda reading: reading,
) -> tuple[SourceWatcher, FakeClock]:
    clock = FakeClock(moves=True)
    view = QuotaView(kind=ViewKind.CLUSTER, entities=QUOTAS, caveats=caveats or Caveats())
    made = SourceWatcher(
        source="the page", view=lambda: view, look=Page(clock, at, shown), predictions=predictions, clock=clock, pace=WatchPace()
    )
    return made, clock


def watch(
    at: Callable[[float], Groups | None], changes: Sequence[Change] = ALICE, *predictions: Prediction
) -> tuple[WatchedStep, float]:
    """What is seen of the first step, and after how many seconds."""
    made, clock = watcher(at, *predictions)
    made.begin(changes)
    return made.watch(changes, step=1, since=NOON, seconds=11.0), clock.seconds


NONE = math.nan


def test_a_client_below_its_limit_is_watched_for_the_whole_time() -> None:
    step, seconds = watch(lambda _: {"alice": (90.0, NONE), "bob": (500.0, 900.0)})
    assert (step.groups, step.throttled, seconds) == (1, (), 12.0), "bob is throttled, and no change is about him"


def test_a_client_that_is_throttled_is_seen_at_the_next_look() -> None:
    step, seconds = watch(lambda second: {"alice": (190.0, 400.0 if second > 3 else NONE)})
    (group,) = step.exceeding
    assert (group.bucket, group.broker, group.rate, group.limit) == (BucketName(user="alice", client_id=""), "1", 190.0, 100.0)
    assert (seconds, step.seconds, group.throttled, group.accepted) == (4.0, 4.0, 0.5, 0.01)


@pytest.mark.parametrize(
    ("rate", "mean", "exceeds"),
    [
        pytest.param(20.0, lambda _: 300.0, False, id="a throttle from before the step, and the client is far below its limit"),
        pytest.param(20.0, lambda second: 300.0 - second, False, id="its mean falls, as an older part of it is forgotten"),
        pytest.param(60.0, lambda second: 300.0 + second, True, id="a new throttle moves the mean"),
        pytest.param(100.0, lambda _: 300.0, True, id="the client is at its limit"),
    ],
)
def test_a_throttle_time_that_stood_before_the_step_counts_only_with_the_rate_of_a_throttled_client(
    rate: float, mean: Callable[[float], float], exceeds: bool
) -> None:
    step, _ = watch(lambda second: {"alice": (rate, mean(second))})
    assert bool(step.exceeding) is exceeds


def predicted(share: float) -> Prediction:
    return Prediction(
        bucket=BucketName(user="alice", client_id=""), key=RATE, entity=user("alice"), limit=100.0, verdict=Verdict.THROTTLED,
        share=share, share_at_most=share, peak=150.0,
    )  # fmt: skip


def test_what_the_backtest_predicted_is_accepted_and_more_is_not() -> None:
    throttled_from = 8.0
    shown = lambda second: {"alice": (110.0, 400.0 + second if second > throttled_from else NONE)}  # noqa: E731 - as the others
    step, seconds = watch(shown, ALICE, predicted(0.4))
    assert (len(step.throttled), step.exceeding, seconds) == (1, (), 12.0)
    step, seconds = watch(shown, ALICE, predicted(0.1))
    (group,) = step.exceeding
    assert (seconds, group.accepted) == (10.0, 0.11)


def test_a_client_that_falls_back_to_a_default_is_watched() -> None:
    step, _ = watch(lambda second: {"alice": (120.0, 400.0 if second else NONE)}, (change("alice", None),))
    (group,) = step.exceeding
    assert (group.limit, group.bucket.user) == (50.0, "alice")


def test_a_new_default_is_watched_for_every_client_that_it_limits() -> None:
    default = Change(
        entity=user(), action=Action.UPDATE, keys=(KeyChange(key=RATE, before=50.0, after=25.0, reason=Reason.VALUE_DIFFERS),)
    )
    step, _ = watch(lambda _: {"alice": (30.0, NONE), "x": (20.0, NONE), "y": (24.0, NONE)}, (default,))
    assert (step.groups, step.throttled) == (2, ())


def test_a_page_that_is_silent_for_a_while_loses_nothing() -> None:
    step, seconds = watch(lambda second: None if 2 < second < 35 else {"alice": (90.0, NONE)})
    assert (step.exceeding, seconds) == ((), 36.0)


@pytest.mark.parametrize(("cost_s", "looks"), [(0.01, 7), (0.05, 3), (0.1, 2), (5.0, 2)])
def test_a_page_that_takes_long_is_read_less_often(cost_s: float, looks: int) -> None:
    clock = FakeClock(moves=True)
    seen: list[float] = []

    def look(view: QuotaView, since: datetime.datetime | None) -> Headroom:
        seen.append(clock.seconds)
        clock.sleep(cost_s)
        return Page(clock, lambda _: {"alice": (90.0, NONE)}, lambda reading: reading)(view, since)

    view = QuotaView(kind=ViewKind.CLUSTER, entities=QUOTAS)
    made = SourceWatcher(source="the page", view=lambda: view, look=look, predictions=(), clock=clock, pace=WatchPace())
    made.begin(ALICE)
    made.watch(ALICE, step=1, since=NOON, seconds=11.0)
    assert (len(seen), seen[-1] < 20) == (looks, True), seen


def test_a_page_that_stays_silent_is_lost() -> None:
    made, clock = watcher(lambda second: None if second > 2 else {"alice": (90.0, NONE)})
    made.begin(ALICE)
    with pytest.raises(TrafficError, match=r"the page does not show the 42 s after the step\. http://b1/metrics does not answer"):
        made.watch(ALICE, step=1, since=NOON, seconds=11.0)
    assert clock.seconds == 42.0


def test_a_throttle_is_seen_although_another_page_is_silent() -> None:
    pages = [{PAGE: START, "http://b2/metrics": START}]
    shown = lambda reading: replace(reading, pages=pages.pop() if pages else reading.pages)  # noqa: E731 - as the others
    made, _ = watcher(lambda second: {"alice": (190.0, 400.0 if second else NONE)}, shown=shown)
    made.begin(ALICE)
    assert made.watch(ALICE, step=1, since=NOON, seconds=11.0).exceeding


def test_idle_brokers_can_be_watched() -> None:
    step, _ = watch(lambda _: {})
    assert (step.groups, step.throttled) == (0, ())


def only_rates(reading: RateReading) -> RateReading:
    rates = {series: samples for series, samples in reading.series.items() if series.measure is Measure.RATE}
    return replace(reading, series=rates)


def old(reading: RateReading) -> RateReading:
    return RateReading(series={series: ((at - 600.0, value),) for series, ((at, value),) in reading.series.items()})


@pytest.mark.parametrize(
    ("shown", "message"), [(only_rates, "rates and no throttle times"), (old, "shows no quota group of now")]
)
def test_a_source_that_shows_too_little_is_refused_before_anything_is_written(
    shown: Callable[[RateReading], RateReading], message: str
) -> None:
    made, _ = watcher(lambda _: {"alice": (90.0, NONE)}, shown=shown)
    with pytest.raises(TrafficError, match=message):
        made.begin(ALICE)


def test_limits_of_a_callback_class_cannot_be_watched() -> None:
    made, _ = watcher(lambda _: {"alice": (90.0, NONE)}, caveats=Caveats(callback="the brokers have a class of their own"))
    with pytest.raises(UsageError, match="--watch needs limits that are known"):
        made.begin(ALICE)


def test_a_server_whose_clock_is_ahead_is_watched_for_the_whole_time_of_its_own_clock() -> None:
    def ahead(reading: RateReading) -> RateReading:
        return RateReading(series={series: ((at + 5.0, value),) for series, ((at, value),) in reading.series.items()})

    made, clock = watcher(lambda _: {"alice": (90.0, NONE)}, shown=ahead)
    made.begin(ALICE)
    made.watch(ALICE, step=1, since=NOON, seconds=11.0)
    assert clock.seconds == 12.0


def test_the_recorder_shows_the_seconds_in_which_a_client_was_throttled(tmp_path: Path) -> None:
    clock = FakeClock(moves=True)
    file = tmp_path / "quota-recorder-1-20260101T000000000Z.jsonl.gz.open"
    rows: list[object] = [header(), ["c", 0, "produce", "alice", ""]]

    def look(view: QuotaView, since: datetime.datetime | None) -> Headroom:
        now = int(clock.now().timestamp())
        rows.extend(["s", second, [0, 90], [0, 400] if second >= START + 5 else []] for second in range(look_from[0], now))
        look_from[0] = now
        write_members(file, rows)
        return observe(view, {}, RateRequest(traffic=(str(file),), since=since))

    look_from = [int(START) - 60]
    view = QuotaView(kind=ViewKind.CLUSTER, entities=QUOTAS)
    made = SourceWatcher(
        source="files", view=lambda: view, look=look, predictions=(), clock=clock, pace=WatchPace(patience_s=60.0)
    )
    made.begin(ALICE)
    step = made.watch(ALICE, step=1, since=NOON, seconds=11.0)
    (group,) = step.exceeding
    assert (group.bucket.user, group.broker, clock.seconds) == ("alice", "1", 6.0)


def test_a_recorder_that_has_just_begun_shows_its_only_second(tmp_path: Path) -> None:
    file = tmp_path / "quota-recorder-1-20260101T000000000Z.jsonl.gz.open"
    write_members(file, [header(), ["c", 0, "produce", "alice", ""], ["s", int(START), [0, 2000]]])
    seen = observe(QuotaView(kind=ViewKind.CLUSTER, entities=QUOTAS), {}, RateRequest(traffic=(str(file),)))
    assert [(load.tags, load.limit) for load in seen.groups] == [({"user": "alice"}, 200.0)]
