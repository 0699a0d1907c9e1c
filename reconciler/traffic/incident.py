"""One stretch of time in recorded traffic: which quota groups were over their limits, second by second, and what brokers logged.

The quotas in effect at that time are the proposed ones of a backtest. Verdicts and rates are those of the backtest, over the
traffic of this time alone.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from reconciler.model import BacktestReport, BucketVerdict, RateSeries
from reconciler.traffic.backtest import Backtest, BacktestRequest
from reconciler.traffic.judging.by_seconds import Grid
from reconciler.traffic.kinds import KEY_OF_KIND, Kind
from reconciler.traffic.request_traffic import RequestTraffic, SecondsTraffic
from reconciler.traffic.seconds.history import SecondsSource
from reconciler.traffic.shuffle.rows import Totals, add_up
from reconciler.traffic.sources.normal_form import CHARGED, EMPTY_THROTTLED, RECORDED_THROTTLE
from reconciler.traffic.sources.violation_log import ThrottledSecond
from reconciler.traffic.traffic_source import TrafficSource
from reconciler.traffic.violation_traffic import ViolationTraffic

_SECOND_US: Final = 1_000_000
_NAMES: Final = ("broker", "kind", "user", "client_id", "second")
_FOLDS: Final = {"requests": "sum", "throttle_ms": "sum", "longest_ms": "max", "begin_us": "min", "end_us": "max"}
_SCHEMA: Final = pa.schema(
    [
        ("broker", pa.int32()), ("kind", pa.string()), ("user", pa.string()), ("client_id", pa.string()),
        ("second", pa.int64()), *((name, pa.int64()) for name in _FOLDS),
    ]
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupTimeline:
    """A quota group on one broker, and its rate second by second; ``None`` where its traffic does not show it."""

    verdict: BucketVerdict
    seconds: RateSeries | None


def group_timelines(
    recorded: TrafficSource,
    question: BacktestRequest,
    *,
    since: datetime.datetime,
    until: datetime.datetime,
    is_asked: Callable[[BucketVerdict], bool],
) -> tuple[BacktestReport, tuple[GroupTimeline, ...]]:
    """The backtest of this time, and the rates of the quota groups that are asked about.

    Requests of a window before ``since`` count, as they do on a broker. Raises ``TrafficError`` for a time without requests.
    """
    begin = since - _window_of(question)
    run = Backtest(_between(recorded, begin, until), question)
    report = run.report()
    asked = [verdict for verdict in report.verdicts if is_asked(verdict)]
    start = int(begin.timestamp())
    grid = Grid(start=start, step_s=1, count=int(until.timestamp()) - start + 1)
    rates = run.rates([verdict for verdict in asked if not verdict.undecided and verdict.limit_after is not None], grid)
    return report, tuple(GroupTimeline(verdict=verdict, seconds=rates.get(verdict.place)) for verdict in asked)


def incident_report(
    recorded: TrafficSource, question: BacktestRequest, *, begin: datetime.datetime, end: datetime.datetime
) -> BacktestReport:
    """The backtest of an incident and the window before it, request by request where requests are known."""
    exact = isinstance(recorded, RequestTraffic)
    return Backtest(_between(recorded, begin - _window_of(question), end), replace(question, exact=exact)).report()


def recorded_throttles(recorded: TrafficSource) -> tuple[ThrottledSecond, ...] | None:
    """The throttles that the brokers logged themselves, in order of time; ``None`` for traffic that has no throttle times.

    ``recorded``: opened with ``throttles``.
    """
    if isinstance(recorded, ViolationTraffic):
        return recorded.throttles
    if not isinstance(recorded, SecondsTraffic):
        return None
    table = recorded.total(_THROTTLES, needs=RECORDED_THROTTLE)
    if table is None:
        return None
    made = (_throttled_second(row) for row in table.to_pylist())
    return tuple(sorted(made, key=lambda second: (second.second, second.broker, second.key, second.user, second.client_id)))


def _window_of(question: BacktestRequest) -> datetime.timedelta:
    """How far back requests count in a sampled rate, at most."""
    window = question.window
    return datetime.timedelta(milliseconds=window.expiry_ms + window.sample_ms)


def _between(recorded: TrafficSource, start: datetime.datetime, end: datetime.datetime) -> TrafficSource:
    if isinstance(recorded, SecondsTraffic | SecondsSource | ViolationTraffic):
        return recorded.between(_micros(start), _micros(end))
    return recorded


def _micros(moment: datetime.datetime) -> int:
    return round(moment.timestamp() * _SECOND_US)


def _throttled_second(row: dict[str, Any]) -> ThrottledSecond:
    return ThrottledSecond(key=KEY_OF_KIND[Kind(row.pop("kind"))].value, **row)


def _count_throttles(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """``_SCHEMA``, one row a client and second. A request for several topics counts once."""
    for batch in batches:
        status = batch.column("status").cast(pa.string())
        counts = pc.is_in(status, value_set=pa.array([CHARGED, EMPTY_THROTTLED]))
        counts = pc.and_(counts, pc.equal(pc.fill_null(batch.column("part"), 0), 0))
        throttled = pc.fill_null(pc.greater(batch.column(RECORDED_THROTTLE), 0), fill_value=False)
        rows = batch.filter(pc.and_(counts, throttled))
        ts_us, ms = rows.column("ts_us"), rows.column(RECORDED_THROTTLE)
        columns = {
            **{name: rows.column(name) for name in _NAMES[:-1]},
            "second": pc.divide(ts_us, _SECOND_US),
            "requests": pa.repeat(1, rows.num_rows),
            "throttle_ms": ms,
            "longest_ms": ms,
            "begin_us": ts_us,
            "end_us": pc.add(ts_us, pc.multiply(ms, 1000)),
        }
        table = pa.table([columns[field.name].cast(field.type) for field in _SCHEMA], schema=_SCHEMA)
        yield from add_up(table, _NAMES, _FOLDS).to_batches()


_THROTTLES: Final[Totals[pa.RecordBatch]] = Totals(
    name="recorded throttles",
    columns=("status", "part", "ts_us", *_NAMES[:-1], RECORDED_THROTTLE),
    count=_count_throttles,
    schema=_SCHEMA,
    keys=_NAMES,
    folds=_FOLDS,
)
