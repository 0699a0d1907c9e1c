"""The exact replay on Spark: requests go to their groups, and each group is judged request by request in one worker.

Only distinct series and one row per bucket and broker reach the driver. Results do not depend on how rows are partitioned: sums
are integers, and requests are put in one total order (charge time, then a hash of connection and correlation id, then sizes and
series).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the name all of Spark's own documentation uses

from reconciler.traffic.judging.grouping import Group, Grouping, Series
from reconciler.traffic.kernels.sampled_rate import Window
from reconciler.traffic.kernels.timeline import Integers, Replayed, Timeline
from reconciler.traffic.sources.request_log import CHARGED, FETCH, IDENTITY_COLUMNS

_MICROS: Final = 1_000_000

_SUMMARY_SCHEMA: Final = """
target int, after boolean, requests bigint, throttled bigint, active_seconds bigint, seconds_over bigint,
first_us bigint, longest_s bigint, longest_from_s bigint, peak double
"""
_REQUEST_SCHEMA: Final = """
ts_us bigint, tie bigint, target int, series int, amount bigint, rate double, limit double, throttle_ms bigint,
connection string, correlation_id int, recorded_throttle_ms bigint
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """What the replay of one target found on one side; a side ``before`` counts requests and throttled ones only."""

    target: int
    after: bool
    requests: int
    throttled: int
    active_seconds: int = 0
    seconds_over: int = 0
    first_us: int | None = None
    longest_s: int = 0
    longest_from_s: int | None = None
    peak: float = 0.0


@dataclass(frozen=True, slots=True)
class _Work:
    """What every worker needs; small, since it travels with the code."""

    groups: tuple[Group, ...]
    target_of_series: Integers
    window: Window


def summaries(rows: DataFrame, series: Sequence[Series], grouping: Grouping, window: Window) -> list[Summary]:
    """Judge every charged row of ``rows`` (columns of ``request_log``); one summary for each target and side, sorted."""
    work = _Work(grouping.groups, np.asarray(grouping.target_of_series, dtype=np.int64), window)

    def judge(table: pa.Table) -> pa.Table:
        return _summary_table(table, work)

    assigned = _assigned(rows, series, grouping, _all_groups(grouping))
    collected = assigned.groupBy("group").applyInArrow(judge, _SUMMARY_SCHEMA).collect()
    found: dict[tuple[int, bool], Summary] = {}
    for row in collected:
        one = Summary(**row.asDict())
        other = found.get((one.target, one.after))
        # Earlier buckets may have been several: their counts add up in the one bucket that the change makes of them.
        found[one.target, one.after] = one if other is None else _added(one, other)
    return [found[key] for key in sorted(found)]


def judged_requests(rows: DataFrame, series: Sequence[Series], grouping: Grouping, window: Window) -> DataFrame:
    """One row a charged request under the proposed quotas, in the order of charging. ``rows`` must hold the identity columns."""
    work = _Work(grouping.groups, np.asarray(grouping.target_of_series, dtype=np.int64), window)

    def judge(table: pa.Table) -> pa.Table:
        return _request_table(table, work)

    wanted = {index for index, group in enumerate(grouping.groups) if group.after is not None}
    assigned = _assigned(rows, series, grouping, wanted, identity=True)
    judged = assigned.groupBy("group").applyInArrow(judge, _REQUEST_SCHEMA)
    return judged.orderBy("ts_us", "tie", "series", "amount")


def _all_groups(grouping: Grouping) -> set[int]:
    return set(range(len(grouping.groups)))


def _added(one: Summary, other: Summary) -> Summary:
    return Summary(
        target=one.target, after=one.after, requests=one.requests + other.requests, throttled=one.throttled + other.throttled
    )


def _assigned(
    rows: DataFrame, series: Sequence[Series], grouping: Grouping, wanted: set[int], *, identity: bool = False
) -> DataFrame:
    """Rows with their series and group numbers; a row whose bucket changes is there once for each side."""
    table = [
        (s.broker, s.kind, s.user, s.client_id, index, group)
        for index, s in enumerate(series)
        for group in grouping.groups_of_series[index]
        if group in wanted
    ]
    schema = "broker int, kind int, user string, client_id string, series int, `group` int"
    places = rows.sparkSession.createDataFrame(table, schema)
    charged = rows.where(F.col("status") == CHARGED)
    joined = charged.join(F.broadcast(places), ["broker", "kind", "user", "client_id"])
    columns = ["group", "series", "ts_us", "tie", "records", "overhead"]
    return joined.select(*columns, *(IDENTITY_COLUMNS if identity else ()))


@dataclass(frozen=True, slots=True)
class _Requests:
    """One group's requests in the order of charging."""

    order: Integers
    ts_us: Integers
    series: Integers
    records: Integers
    overhead: Integers

    @property
    def times_ms(self) -> Integers:
        return self.ts_us // 1000


def _in_order(table: pa.Table) -> _Requests:
    columns = {n: table.column(n).to_numpy().astype(np.int64) for n in ("ts_us", "tie", "records", "overhead", "series")}
    order = np.argsort(columns["ts_us"], kind="stable")
    # The dear sort is only for requests of one microsecond, which are rare.
    if np.any(np.diff(columns["ts_us"][order]) == 0):
        order = np.lexsort((columns["series"], columns["records"], columns["overhead"], columns["tie"], columns["ts_us"]))
    return _Requests(order, *(columns[n][order] for n in ("ts_us", "series", "records", "overhead")))


def _replay(requests: _Requests, kind: int, limit: float | None, line: Timeline) -> Replayed:
    if kind == FETCH:
        return line.fetch(requests.overhead, requests.records, limit)
    return line.produce(requests.overhead + requests.records, limit)


def _amounts(requests: _Requests, kind: int, limit: float | None, window: Window) -> Integers:
    """What is charged under a limit."""
    if kind != FETCH or limit is None:
        return requests.overhead + requests.records
    return requests.overhead + np.minimum(requests.records, window.fetch_cap(limit))


def _group_of(table: pa.Table, work: _Work) -> Group:
    return work.groups[int(table.column("group")[0].as_py())]


def _summary_table(table: pa.Table, work: _Work) -> pa.Table:
    group = _group_of(table, work)
    requests = _in_order(table)
    line = Timeline(requests.times_ms, work.window)
    rows: list[Mapping[str, object]] = []
    if group.before is not None:
        throttled = _replay(requests, group.kind, group.before.limit, line).throttle > 0
        rows.extend(_before_rows(work.target_of_series[requests.series], throttled))
    if group.after is not None:
        target = int(work.target_of_series[requests.series[0]])
        rows.append(_after_row(target, requests, group, line, work.window))
    return pa.Table.from_pylist([{**_EMPTY, **row} for row in rows], schema=_SUMMARY_ARROW)


def _before_rows(targets: Integers, throttled: npt.NDArray[np.bool_]) -> Iterator[Mapping[str, object]]:
    for target in np.unique(targets).tolist():
        mine = targets == target
        yield {"target": target, "after": False, "requests": int(mine.sum()), "throttled": int((throttled & mine).sum())}


def _after_row(target: int, requests: _Requests, group: Group, line: Timeline, window: Window) -> Mapping[str, object]:
    limit = group.after.limit if group.after else None
    throttled = _replay(requests, group.kind, limit, line).throttle > 0
    rates = line.open_loop_rates(requests.overhead + requests.records)
    seconds = requests.ts_us // _MICROS
    active = np.unique(seconds)
    over = np.unique(seconds[throttled])
    longest, since = _longest_episode(active, over, window)
    first = int(requests.ts_us[np.argmax(throttled)]) if len(over) else None
    return {
        "target": target, "after": True, "requests": len(seconds), "throttled": int(throttled.sum()),
        "active_seconds": len(active), "seconds_over": len(over), "first_us": first,
        "longest_s": longest, "longest_from_s": since, "peak": float(rates.max()),
    }  # fmt: skip


def _longest_episode(active: Integers, over: Integers, window: Window) -> tuple[int, int | None]:
    """Length in seconds and first second of the longest run of active seconds that are all over; a long pause ends a run."""
    if not len(over):
        return 0, None
    places = np.searchsorted(active, over)
    apart = (np.diff(places) > 1) | (np.diff(over) * 1000 > window.expiry_ms)
    starts = over[np.concatenate(([True], apart))]
    ends = over[np.concatenate((apart, [True]))]
    lengths = ends - starts + 1
    best = int(np.argmax(lengths))
    return int(lengths[best]), int(starts[best])


def _request_table(table: pa.Table, work: _Work) -> pa.Table:
    group = _group_of(table, work)
    requests = _in_order(table)
    limit = group.after.limit if group.after else None
    replayed = _replay(requests, group.kind, limit, Timeline(requests.times_ms, work.window))
    count = len(requests.order)
    moved = table.take(pa.array(requests.order))
    return pa.table(
        {
            "ts_us": requests.ts_us,
            "tie": moved.column("tie"),
            "target": work.target_of_series[requests.series].astype(np.int32),
            "series": requests.series.astype(np.int32),
            "amount": _amounts(requests, group.kind, limit, work.window),
            "rate": replayed.rate,
            "limit": pa.array([limit] * count, pa.float64()),
            "throttle_ms": np.maximum(replayed.throttle, 0),
            **{name: moved.column(name) for name in IDENTITY_COLUMNS},
        }
    )


_EMPTY: Final = {
    "active_seconds": 0, "seconds_over": 0, "first_us": None, "longest_s": 0, "longest_from_s": None, "peak": 0.0,
}  # fmt: skip
_SUMMARY_ARROW: Final = pa.schema(
    [
        ("target", pa.int32()), ("after", pa.bool_()), ("requests", pa.int64()), ("throttled", pa.int64()),
        ("active_seconds", pa.int64()), ("seconds_over", pa.int64()), ("first_us", pa.int64()),
        ("longest_s", pa.int64()), ("longest_from_s", pa.int64()), ("peak", pa.float64()),
    ]
)  # fmt: skip
