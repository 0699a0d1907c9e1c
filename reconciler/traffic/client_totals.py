"""Totals of all rows: amounts of clients, reasons of other rows, minutes of brokers, and the largest samples of metrics.

Each function gives the partial sums of a share. ``shuffle.rows.Totals`` describes how they are added up.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from reconciler.errors import TrafficError
from reconciler.model import CONTROLLER, GAUGE, Coverage, Observations, escaped
from reconciler.text import list_some
from reconciler.traffic.columns import NEEDED, ChargedRows, charged_rows, fold_by_code, moments, number_codes
from reconciler.traffic.judging.evidence import GAUGE_FOLDS, GAUGES, Gauge
from reconciler.traffic.judging.grouping import Series
from reconciler.traffic.judging.verdicts import UNKNOWN_SECOND, moment
from reconciler.traffic.kernels.sampled_rate import Integers
from reconciler.traffic.kinds import Kind
from reconciler.traffic.seconds.folder import MINUTE_US
from reconciler.traffic.shuffle.rows import PartialSums, Totals
from reconciler.traffic.sources.normal_form import CHARGED, IDENTITY, UNCHARGED, UNCLEAR_TIME, UNREADABLE, UNSTATED
from reconciler.traffic.traffic_source import Facts, Source

COUNTED: Final = (*NEEDED, "throttled")
NAMES: Final = ("status", *IDENTITY)
FOLDS: Final = {
    "lines": "sum", "amount": "sum", "largest": "max", "start_us": "min", "end_us": "max", "throttled": "sum",
    **dict.fromkeys(UNCHARGED.values(), "sum"),
}  # fmt: skip
_NO_MORE: Final = np.iinfo(np.int64)
SCHEMA: Final = pa.schema(
    [
        ("status", pa.string()), ("broker", pa.int32()), ("kind", pa.string()), ("user", pa.string()), ("client_id", pa.string()),
        ("ip", pa.string()), *((name, pa.int64()) for name in FOLDS),
    ]
)  # fmt: skip
MINUTES: Final = pa.schema([("broker", pa.int32()), ("minute", pa.int64())])
_KINDS: Final = {kind.value: kind for kind in Kind}


def count_clients(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """``SCHEMA``, one row for each client and each other status of a share. ``batches``: with the columns ``COUNTED``.

    Clients have the status ``CHARGED``, also those of which no row is charged: they have no lines.
    """
    counts = PartialSums(SCHEMA, NAMES, FOLDS)
    for batch in batches:
        counts.add(count_batch(charged_rows(batch), batch))
    yield from counts.table().to_batches()


def count_minutes(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """``MINUTES`` since 1970 in which a broker has a row with a time and a broker, each once."""
    distinct = PartialSums(MINUTES, MINUTES.names, {})
    for batch in batches:
        distinct.add(minutes_of_rows(*moments(batch)))
    yield from distinct.table().to_batches()


def minutes_of_rows(ts_us: Integers, broker: Integers) -> pa.Table:
    """``MINUTES`` in which there is a row, each once."""
    if not len(ts_us):
        return MINUTES.empty_table()
    minute = ts_us // MINUTE_US
    first, lowest = int(minute.min()), int(broker.min())
    span = int(minute.max()) - first + 1
    codes, _ = number_codes((broker - lowest) * span + minute - first, (int(broker.max()) - lowest + 1) * span)
    return pa.table([pa.array(codes // span + lowest, pa.int32()), pa.array(codes % span + first)], schema=MINUTES)


CLIENT_TOTALS: Final[Totals[pa.RecordBatch]] = Totals(
    name="clients", columns=COUNTED, count=count_clients, schema=SCHEMA, keys=NAMES, folds=FOLDS
)
MINUTE_TOTALS: Final[Totals[pa.RecordBatch]] = Totals(
    name="minutes", columns=("broker", "ts_us"), count=count_minutes, schema=MINUTES, keys=tuple(MINUTES.names), folds={}
)


def minutes_of(table: pa.Table) -> dict[int, Integers]:
    """Return the minutes of ``MINUTES`` of each broker, rising, each once."""
    brokers, minutes = (np.asarray(table.column(name).to_numpy(), dtype=np.int64) for name in MINUTES.names)
    return {broker: np.unique(minutes[brokers == broker]) for broker in np.unique(brokers).tolist()}


def count_batch(rows: ChargedRows, batch: pa.RecordBatch) -> pa.Table:
    """``SCHEMA``: the clients of the charged ``rows`` of ``batch``; other rows have no names, and are counted by status.

    ``UNSTATED`` counts charged rows without ``throttled``.
    """
    charged = count_charged(rows, batch)
    unstated = rows.nulls(batch, "throttled")
    others = [{"status": status, "lines": lines} for status, lines in [*rows.others.items(), (UNSTATED, unstated)] if lines]
    if not others:
        return charged
    uncharged = (count_uncharged(charged_rows(batch, status), status) for status in UNCHARGED if status in rows.others)
    # Sums of seconds have clients by their place: those of charged rows stay the first.
    return pa.concat_tables([charged, *uncharged, pa.Table.from_pylist(others, schema=SCHEMA)])


def count_charged(rows: ChargedRows, batch: pa.RecordBatch) -> pa.Table:
    """``SCHEMA``: the clients of the charged ``rows`` of ``batch``, in their order."""
    count, throttled = rows.clients, rows.numbers(batch, "throttled")
    amount = np.zeros(count, dtype=np.int64)
    start, end = np.full(count, _NO_MORE.max), np.full(count, _NO_MORE.min)
    np.add.at(amount, rows.of, rows.amount)
    np.minimum.at(start, rows.of, rows.ts_us)
    np.maximum.at(end, rows.of, rows.ts_us)
    figures = {
        "lines": np.bincount(rows.of, minlength=count),
        "amount": amount,
        "start_us": start,
        "end_us": end,
        "throttled": np.bincount(rows.of, weights=throttled, minlength=count).astype(np.int64),
        **dict.fromkeys(UNCHARGED.values(), np.zeros(count, dtype=np.int64)),
    }
    return _of_clients(rows, figures)


def count_uncharged(rows: ChargedRows, status: str) -> pa.Table:
    """``SCHEMA``: the clients of ``rows`` of a status of ``UNCHARGED``, and how many rows each has."""
    nothing = np.zeros(rows.clients, dtype=np.int64)
    figures = dict.fromkeys(FOLDS, nothing) | {
        "start_us": nothing + _NO_MORE.max, "end_us": nothing + _NO_MORE.min,
        UNCHARGED[status]: np.bincount(rows.of, minlength=rows.clients),
    }  # fmt: skip
    return _of_clients(rows, figures)


def _of_clients(rows: ChargedRows, figures: Mapping[str, Integers]) -> pa.Table:
    largest = np.full(rows.clients, _NO_MORE.min)
    np.maximum.at(largest, rows.of, rows.records)
    columns: dict[str, pa.Array | Integers] = {
        "status": pa.array([CHARGED]).take(pa.array(np.zeros(rows.clients, dtype=np.int64))),
        "broker": rows.broker, "kind": rows.kind, "user": rows.user, "client_id": rows.client_id, "ip": rows.ip,
        **figures, "largest": largest,
    }  # fmt: skip
    return pa.table([pa.array(columns[field.name]).cast(field.type) for field in SCHEMA], schema=SCHEMA)


def series_of(counted: pa.Table) -> tuple[Series, ...]:
    """The clients, sorted. ``counted``: ``SCHEMA``. A client's key is its place among the charged rows."""
    clients = counted.filter(pc.field("status") == CHARGED)
    figures = (*NAMES[1:], "lines", "amount", "largest", "throttled", "start_us", "end_us")
    columns = (clients.column(name).to_pylist() for name in figures)
    made = [
        Series(
            broker=broker, kind=_KINDS[kind], user=user, client_id=client_id, ip=ip,
            requests=lines, amount=amount, key=key, largest=max(0, largest), throttled=throttled,
            start_us=start if lines else None, end_us=end if lines else None,
        )
        for key, (broker, kind, user, client_id, ip, lines, amount, largest, throttled, start, end)
        in enumerate(zip(*columns, strict=True))
    ]  # fmt: skip
    for name in UNCHARGED.values():
        counts = pc.fill_null(clients.column(name), 0)
        for place in pc.indices_nonzero(counts).to_pylist():
            made[place] = replace(made[place], **{name: counts[place].as_py()})
    return tuple(sorted(made, key=lambda client: client.sort_key))


def statuses(counted: pa.Table) -> dict[str, int]:
    """Count the lines of each status, in the order of their names."""
    every = counted.filter(pc.field("status") != UNSTATED)
    grouped = every.group_by("status").aggregate([("lines", "sum")]).sort_by("status")
    return dict(zip(grouped.column("status").to_pylist(), grouped.column("lines_sum").to_pylist(), strict=True))


SAMPLES: Final = 5
"""Of lines that cannot be read, so many are shown."""


def facts_of(
    counted: pa.Table,
    gauges: Sequence[Gauge],
    source: Source,
    files: Sequence[str],
    samples: tuple[str, ...],
    *,
    of_requests: bool,
) -> Facts:
    """Return the facts of the traffic. ``samples``: what is wrong with rows that cannot be read.

    ``of_requests``: charged rows are single requests, and not per-second totals. Raises ``TrafficError`` when no request and no
    metric can be used.
    """
    lines = statuses(counted)
    if not gauges and not lines.get(CHARGED):
        raise _nothing_usable(lines, files, source, samples)
    charged = counted.filter(pc.field("status") == CHARGED)
    grouped = (
        charged.filter(pc.field("lines") > 0)
        .group_by("broker")
        .aggregate([("lines", "sum"), ("start_us", "min"), ("end_us", "max")])
    )
    parts: dict[int, list[tuple[int, int, int]]] = {}
    for broker, *part in zip(*(grouped.column(place).to_pylist() for place in range(4)), strict=True):
        parts.setdefault(broker, []).append(tuple(part))
    for gauge in gauges:
        parts.setdefault(gauge.series.broker, []).append((0, gauge.start_us, gauge.end_us))
    throttled_then = int(pc.sum(charged.column("throttled")).as_py() or 0)
    observations = []
    if charged.num_rows:
        rows, semantics = int(pc.sum(charged.column("lines")).as_py()), "event" if of_requests else "second"
        observations = [Observations(semantics=semantics, rows=rows, series=charged.num_rows, throttled_then=throttled_then)]
    return Facts(
        source=source.value,
        files=tuple(files),
        coverage=tuple(
            Coverage(
                broker=broker,
                requests=sum(requests for requests, _, _ in some),
                start=moment(min(start for _, start, _ in some)),
                end=moment(max(end for _, _, end in some)),
            )
            for broker, some in sorted(parts.items())
            # What is known of the controller alone is in the lines of brokers.
            if broker != CONTROLLER or len(parts) == 1
        ),
        requests=lines.get(CHARGED, 0),
        throttled_then=throttled_then,
        states_throttles=UNSTATED not in counted.column("status").unique().to_pylist(),
        not_charged={status: count for status, count in lines.items() if status not in (CHARGED, UNREADABLE)},
        observations=(*observations, *([_of_gauges(gauges)] if gauges else ())),
        unreadable=lines.get(UNREADABLE, 0),
        unreadable_samples=samples if lines.get(UNREADABLE) else (),
    )


def _of_gauges(gauges: Sequence[Gauge]) -> Observations:
    most = max(gauges, key=lambda gauge: gauge.series.requests)
    return Observations(
        semantics=GAUGE,
        rows=sum(gauge.series.requests for gauge in gauges),
        series=len(gauges),
        every_s=most.since_us / 1e6,
        throttled_then=sum(gauge.series.throttled for gauge in gauges),
    )


def _nothing_usable(lines: Mapping[str, int], files: Sequence[str], source: Source, samples: Sequence[str]) -> TrafficError:
    """Return the error of traffic without a charged row. ``samples``: what is wrong with rows that cannot be read."""
    whole, unreadable = sum(lines.values()), lines.get(UNREADABLE, 0)
    where, rows = list_some(files, 1), "request lines" if source is Source.LOGS else "rows"
    if not whole:
        why = f"no {rows} exist"
    elif unreadable:
        shown = list_some([escaped(sample) for sample in samples], 1)
        why = f"{unreadable} of {whole} {rows} cannot be read{': ' if shown else ''}{shown}"
    elif unplaced := lines.get(UNCLEAR_TIME):
        why = f"{unplaced} of {whole} {rows} are not counted, since {UNKNOWN_SECOND}, and no other one is of a client"
    else:
        why = f"none of the {whole} {rows} is a produce or fetch request of a client"
    return TrafficError(f"recorded traffic {where}: {why}")


_LONGEST_PAUSE_US: Final = 300_000_000
"""Prometheus looks back no further for a sample: a longer time between two is a gap, and not how often a broker is asked."""


def count_gauges(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """``GAUGES``, one row for each client of a share. Rows of requests do not count."""
    sums = PartialSums(GAUGES, IDENTITY, GAUGE_FOLDS)
    for batch in batches:
        if GAUGE in pc.unique(batch.column("status")).to_pylist():
            rows = charged_rows(batch, GAUGE)
            sums.add(gauges_of_rows(rows, rows.numbers(batch, "interval_us"), rows.numbers(batch, "throttled")))
    yield from sums.table().to_batches()


GAUGE_TOTALS: Final[Totals[pa.RecordBatch]] = Totals(
    name="gauges",
    columns=(*NEEDED, "interval_us", "throttled"),
    count=count_gauges,
    schema=GAUGES,
    keys=IDENTITY,
    folds=GAUGE_FOLDS,
)
ONE_PASS: Final = (CLIENT_TOTALS, MINUTE_TOTALS)
"""What one pass over the rows counts, wherever they are."""
ONE_PASS_WITH_GAUGES: Final = (*ONE_PASS, GAUGE_TOTALS)
"""The same with the totals of metrics, which need more columns."""


def gauges_of_rows(rows: ChargedRows, interval: Integers, throttled: Integers) -> pa.Table:
    """``GAUGES`` of samples. ``interval``: microseconds since the sample before, 0 where it is not known."""
    of, since = rows.of, np.where(interval <= _LONGEST_PAUSE_US, interval, 0)
    figures: dict[str, tuple[np.ufunc, Integers]] = {
        "amount": (np.maximum, rows.amount), "rows": (np.add, np.ones(len(of), dtype=np.int64)),
        "first_us": (np.minimum, rows.ts_us), "last_us": (np.maximum, rows.ts_us), "throttled": (np.add, throttled),
        "since_us": (np.add, since), "since_rows": (np.add, (since > 0).astype(np.int64)),
    }  # fmt: skip
    if rows.begins is not None:
        figures = {name: (fold, fold.reduceat(values, rows.begins)) for name, (fold, values) in figures.items()}
        of = of[rows.begins]
    distinct, number = number_codes(of, rows.clients)
    names = {
        "broker": pa.array(rows.broker), "kind": rows.kind, "user": rows.user, "client_id": rows.client_id, "ip": rows.ip,
    }  # fmt: skip
    made: dict[str, pa.Array | Integers] = {
        **{name: column.take(pa.array(distinct)) for name, column in names.items()},
        **{name: fold_by_code(fold, number, values, len(distinct)) for name, (fold, values) in figures.items()},
    }
    return pa.table([pa.array(made[field.name]).cast(field.type) for field in GAUGES], schema=GAUGES)
