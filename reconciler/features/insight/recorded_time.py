"""One stretch of time in recorded traffic: the throttles that brokers recorded, and which quota groups were over their limits.

What brokers recorded is a fact. Seconds over a limit are computed, under the quotas that a caller takes to be those in effect:
verdicts and rates are those of the backtest, over the traffic of this time alone.
"""

from __future__ import annotations

import contextlib
import datetime
import functools
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Final, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from reconciler.errors import TrafficError
from reconciler.features.insight.past_quotas import QuotaPart
from reconciler.model import GAUGE, BucketVerdict, RateSeries
from reconciler.traffic import (
    CHARGED,
    DUPLICATE,
    RECORDED_THROTTLE,
    SILENT,
    UNCLEAR_TIME,
    UNREADABLE,
    Backtest,
    BacktestRequest,
    Grid,
    Kind,
    RecordedThrottle,
    RequestTraffic,
    Totals,
    TrafficSource,
    add_up,
)

_SECOND_US: Final = 1_000_000
_NAMES: Final = ("broker", "kind", "user", "client_id")
_COLUMNS: Final = ("status", "part", "ts_us", *_NAMES, "records", "throttled", "interval_us")
_KEYS: Final = (*_NAMES, "of_samples", "second")
_FOLDS: Final = {
    "requests": "sum", "refused": "sum", "throttle_ms": "sum", "longest_ms": "max", "begin_us": "min", "end_us": "max",
    "interval_us": "max",
}  # fmt: skip
_SCHEMA: Final = pa.schema(
    [
        ("broker", pa.int32()), ("kind", pa.string()), ("user", pa.string()), ("client_id", pa.string()),
        ("of_samples", pa.bool_()), ("second", pa.int64()), *((name, pa.int64()) for name in _FOLDS),
    ]
)  # fmt: skip
_UNUSABLE: Final = pa.array([DUPLICATE, UNREADABLE, UNCLEAR_TIME, SILENT])
Names: TypeAlias = tuple[tuple[str, str | None], ...]
"""Of a client: ``user`` and ``client_id``, as far as they are asked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupTimeline:
    """A quota group on one broker under the quotas of a part of the time, and its rate second by second.

    ``seconds``: ``None`` where its traffic does not show them.
    """

    part: QuotaPart
    verdict: BucketVerdict
    seconds: RateSeries | None


def group_timelines(
    recorded: TrafficSource, question: BacktestRequest, part: QuotaPart, is_asked: Callable[[BucketVerdict], bool]
) -> Iterator[GroupTimeline]:
    """The rates of the quota groups that are asked about, in this part of the time. None where nothing was recorded in it.

    Requests of the time before count in the rates, but a sample of a rate has that time in itself.
    """
    begin = part.begin - _window_of(question) if recorded.series else part.begin
    with contextlib.suppress(TrafficError):
        run = Backtest(between(recorded, begin, part.end), question)
        asked = [verdict for verdict in run.report().verdicts if is_asked(verdict)]
        start = int(part.begin.timestamp())
        grid = Grid(start=start, step_s=1, count=int(part.end.timestamp()) - start + 1)
        rates = run.rates([verdict for verdict in asked if not verdict.undecided and verdict.limits.after is not None], grid)
        yield from (GroupTimeline(part=part, verdict=verdict, seconds=rates.get(verdict.place)) for verdict in asked)


def incident_verdicts(
    recorded: TrafficSource, question: BacktestRequest, *, begin: datetime.datetime, end: datetime.datetime
) -> dict[object, BucketVerdict]:
    """The verdicts of an incident by place, request by request where requests are known. Empty where nothing was recorded."""
    exact = isinstance(recorded, RequestTraffic)
    try:
        part = between(recorded, begin - _window_of(question), end)
        report = Backtest(part, replace(question, exact=exact)).report()
    except TrafficError:
        return {}
    return {verdict.place: verdict for verdict in report.verdicts}


def recorded_throttles(
    recorded: TrafficSource, client: Names | None, *, since: datetime.datetime, until: datetime.datetime
) -> tuple[RecordedThrottle, ...] | None:
    """The throttles that brokers recorded of a client, or of a quota group that may be the client's, in order of time.

    ``client``: ``None`` is every client.

    Times are those of ``since`` to ``until``. ``None``: the source has no place for throttles. ``recorded``: opened with
    ``throttles``.
    """
    if recorded.is_stored or client == ():
        return None
    has_times = RECORDED_THROTTLE in recorded.columns
    work: Totals[pa.RecordBatch] = Totals(
        name="recorded throttles",
        columns=(*_COLUMNS, *((RECORDED_THROTTLE,) if has_times else ())),
        count=functools.partial(
            _count_throttles, client=client, has_times=has_times, begin_us=_micros(since), end_us=_micros(until)
        ),
        schema=_SCHEMA,
        keys=_KEYS,
        folds=_FOLDS,
    )
    rows = recorded.rows.total(work).drop_columns(["second"]).to_pylist()
    made = (RecordedThrottle(kind=Kind(row.pop("kind")), **row) for row in rows)
    return tuple(sorted(made, key=lambda second: (second.begin_us, second.broker, second.kind, str(second))))


def between(recorded: TrafficSource, start: datetime.datetime, end: datetime.datetime) -> TrafficSource:
    """The part of this time. Raises ``TrafficError`` when nothing of that time can be used."""
    return recorded.between(_micros(start), _micros(end))


def _window_of(question: BacktestRequest) -> datetime.timedelta:
    """Return the longest time that a request counts in a sampled rate."""
    window = question.broker.window
    return datetime.timedelta(milliseconds=window.expiry_ms + window.sample_ms)


def _micros(moment: datetime.datetime) -> int:
    return round(moment.timestamp() * _SECOND_US)


def _count_throttles(
    batches: Iterable[pa.RecordBatch], client: Names | None, *, has_times: bool, begin_us: int, end_us: int
) -> Iterator[pa.RecordBatch]:
    """``_SCHEMA``, one row a client, kind and second. A line counts once, and topics that the controller refused beside it."""
    for every in batches:
        batch = every if client is None else every.filter(_are_of(every, client))
        status = batch.column("status").cast(pa.string())
        kind = batch.column("kind").cast(pa.string())
        of_samples = pc.equal(status, GAUGE)
        of_topics = pc.and_(pc.equal(kind, Kind.MUTATION.value), pc.invert(of_samples))
        flagged = pc.fill_null(batch.column("throttled"), fill_value=False)
        # A topic without partitions is one that a quota refused.
        refused = pc.and_(pc.and_(of_topics, flagged), pc.and_(pc.equal(status, CHARGED), pc.equal(batch.column("records"), 0)))
        zero = pa.nulls(batch.num_rows, pa.int64()).fill_null(0)
        ms = pc.fill_null(batch.column(RECORDED_THROTTLE), 0) if has_times else zero
        first = pc.equal(pc.fill_null(batch.column("part"), 0), 0)
        delayed = pc.and_(of_topics, pc.and_(first, pc.greater(ms, 0)))
        throttled = pc.or_(pc.and_(flagged, pc.invert(refused)), delayed)
        counts = pc.and_(pc.or_(throttled, refused), pc.invert(pc.is_in(status, value_set=_UNUSABLE)))
        ts_us = batch.column("ts_us")
        end = pc.add(ts_us, pc.multiply(ms, 1000))
        counts = pc.and_(counts, pc.and_(pc.greater_equal(end, begin_us), pc.less_equal(ts_us, end_us)))
        columns = {
            **{name: batch.column(name) for name in _NAMES},
            "of_samples": of_samples,
            "second": pc.divide(ts_us, _SECOND_US),
            "requests": throttled,
            "refused": refused,
            "throttle_ms": pc.if_else(throttled, ms, 0),
            "longest_ms": ms,
            "begin_us": ts_us,
            "end_us": end,
            # Lines of logs have none.
            "interval_us": pc.fill_null(batch.column("interval_us"), 0) if "interval_us" in batch.schema.names else zero,
        }
        table = pa.table([columns[field.name].cast(field.type) for field in _SCHEMA], schema=_SCHEMA)
        yield from add_up(table.filter(pc.fill_null(counts, fill_value=False)), _KEYS, _FOLDS).to_batches()


def _are_of(batch: pa.RecordBatch, client: Names) -> pa.Array:
    """Return a mask of the rows that may be of the client. A sample has an empty name where its group has no such tag."""
    of_samples = pc.equal(batch.column("status").cast(pa.string()), GAUGE)
    none = pa.nulls(batch.num_rows, pa.bool_()).fill_null(fill_value=False)
    fits, names_one = pc.invert(none), none
    for column, name in client:
        names = batch.column(column).cast(pa.string())
        same = pc.fill_null(pc.equal(names, name), fill_value=False)
        absent = pc.or_(pc.is_null(names), pc.fill_null(pc.and_(of_samples, pc.equal(names, "")), fill_value=False))
        fits = pc.and_(fits, pc.or_(same, absent))
        names_one = pc.or_(names_one, same)
    return pc.and_(fits, names_one)


def has_requests(recorded: TrafficSource, client: Names) -> bool:
    """Whether a client with these names has counted requests in it."""
    return any(all(getattr(series, column) == name for column, name in client) for series in recorded.series)
