"""Totals of all rows: who sent how much, why other rows are not charged, and when each broker was recorded.

Each function gives the partial sums of a share; ``shuffle.rows.Totals`` says how they are added up.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from reconciler.errors import TrafficError
from reconciler.model import MetricSemantics, Observations
from reconciler.text import list_some
from reconciler.traffic.columns.charged import NEEDED, ChargedRows, charged_rows, moments, number_codes
from reconciler.traffic.judging.grouping import Series
from reconciler.traffic.judging.means import Mean
from reconciler.traffic.kernels.timeline import Integers
from reconciler.traffic.kinds import Kind
from reconciler.traffic.seconds.folder import MINUTE_US, Covered
from reconciler.traffic.shuffle.rows import Totals, add_up
from reconciler.traffic.sources.normal_form import CHARGED, IDENTITY, OF_METRICS, UNREADABLE
from reconciler.traffic.traffic_source import Facts, Source

COUNTED: Final = (*NEEDED, "throttled")
NAMES: Final = ("status", *IDENTITY)
FOLDS: Final = {
    "lines": "sum", "amount": "sum", "largest": "max", "start_us": "min", "end_us": "max", "throttled": "sum",
}  # fmt: skip
SCHEMA: Final = pa.schema(
    [
        ("status", pa.string()), ("broker", pa.int32()), ("kind", pa.string()), ("user", pa.string()), ("client_id", pa.string()),
        ("ip", pa.string()), *((name, pa.int64()) for name in FOLDS),
    ]
)  # fmt: skip
MINUTES: Final = pa.schema([("broker", pa.int32()), ("minute", pa.int64())])
_MOST_HELD: Final = 1_000_000
_KINDS: Final = {kind.value: kind for kind in Kind}


class ClientCounts:
    """Adds up batches with the columns ``COUNTED``; rows that are not charged have no names, and are counted by status."""

    def __init__(self) -> None:
        self._held: list[pa.Table] = [SCHEMA.empty_table()]

    def add(self, rows: ChargedRows, batch: pa.RecordBatch) -> None:
        """``rows`` are those of ``batch``."""
        self.add_table(_of_rows(rows, batch))

    def add_table(self, table: pa.Table) -> None:
        """Rows of ``SCHEMA``."""
        self._held.append(table)
        if sum(table.num_rows for table in self._held) > _MOST_HELD:
            self._held = [self.table()]

    def table(self) -> pa.Table:
        """``SCHEMA``, with one row for each client and each other status."""
        return add_up(pa.concat_tables(self._held), NAMES, FOLDS)


def count_clients(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """``SCHEMA``, one row for each client and each other status of a share."""
    counts = ClientCounts()
    for batch in batches:
        counts.add(charged_rows(batch), batch)
    yield from counts.table().to_batches()


def count_minutes(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """``MINUTES`` since 1970 in which a broker has any row that says when and where, each once."""
    found: set[tuple[int, int]] = set()
    for batch in batches:
        ts_us, broker = moments(batch)
        if not len(ts_us):
            continue
        minute = ts_us // MINUTE_US
        first, lowest = int(minute.min()), int(broker.min())
        span = int(minute.max()) - first + 1
        codes, _ = number_codes((broker - lowest) * span + minute - first, (int(broker.max()) - lowest + 1) * span)
        found.update((code // span + lowest, code % span + first) for code in codes.tolist())
    rows = [{"broker": broker, "minute": minute} for broker, minute in sorted(found)]
    yield pa.RecordBatch.from_pylist(rows, schema=MINUTES)


CLIENT_TOTALS: Final[Totals[pa.RecordBatch]] = Totals(
    name="clients", columns=COUNTED, count=count_clients, schema=SCHEMA, keys=NAMES, folds=FOLDS
)
MINUTE_TOTALS: Final[Totals[pa.RecordBatch]] = Totals(
    name="minutes", columns=("broker", "ts_us"), count=count_minutes, schema=MINUTES, keys=tuple(MINUTES.names), folds={}
)


def minutes_of(table: pa.Table) -> dict[int, Integers]:
    """By broker the minutes of ``MINUTES``, rising, each once."""
    brokers, minutes = (np.asarray(table.column(name).to_numpy(), dtype=np.int64) for name in MINUTES.names)
    return {broker: np.unique(minutes[brokers == broker]) for broker in np.unique(brokers).tolist()}


def _of_rows(rows: ChargedRows, batch: pa.RecordBatch) -> pa.Table:
    columns: dict[str, pa.Array | Integers] = {
        "status": pa.array([CHARGED]).take(pa.array(np.zeros(rows.clients, dtype=np.int64))),
        "broker": rows.broker, "kind": rows.kind, "user": rows.user, "client_id": rows.client_id, "ip": rows.ip,
        **_figures(rows, rows.numbers(batch, "throttled")),
    }  # fmt: skip
    charged = pa.table([pa.array(columns[field.name]).cast(field.type) for field in SCHEMA], schema=SCHEMA)
    others = [{"status": status, "lines": lines} for status, lines in rows.others.items()]
    return pa.concat_tables([charged, pa.Table.from_pylist(others, schema=SCHEMA)]) if others else charged


def _figures(rows: ChargedRows, throttled: Integers) -> dict[str, Integers]:
    count = rows.clients
    lowest, highest = np.iinfo(np.int64).min, np.iinfo(np.int64).max
    amount, largest = np.zeros(count, dtype=np.int64), np.full(count, lowest)
    start, end = np.full(count, highest), np.full(count, lowest)
    np.add.at(amount, rows.of, rows.amount)
    np.maximum.at(largest, rows.of, rows.records)
    np.minimum.at(start, rows.of, rows.ts_us)
    np.maximum.at(end, rows.of, rows.ts_us)
    return {
        "lines": np.bincount(rows.of, minlength=count),
        "amount": amount,
        "largest": largest,
        "start_us": start,
        "end_us": end,
        "throttled": np.bincount(rows.of, weights=throttled, minlength=count).astype(np.int64),
    }


def series_of(counted: pa.Table) -> tuple[Series, ...]:
    """The clients of charged rows, sorted. ``counted``: ``SCHEMA``."""
    charged = counted.filter(pc.field("status") == CHARGED)
    return sorted_series(charged, range(charged.num_rows), requests="lines")


def sorted_series(clients: pa.Table, keys: Iterable[int], *, requests: str = "requests") -> tuple[Series, ...]:
    """Rows with names and figures as series with these keys, sorted. ``requests``: the column that counts them."""
    columns = (clients.column(name).to_pylist() for name in (*NAMES[1:], requests, "amount", "largest", "throttled"))
    found = (
        Series(
            broker=broker, kind=_KINDS[kind], user=user, client_id=client_id, ip=ip,
            requests=lines, amount=amount, key=key, largest=largest, throttled=throttled,
        )
        for broker, kind, user, client_id, ip, lines, amount, largest, throttled, key in zip(*columns, keys, strict=True)
    )  # fmt: skip
    return tuple(sorted(found, key=lambda one: one.sort_key))


def covered(counted: pa.Table) -> Iterator[Covered]:
    """What there is of each broker's charged requests, in the order of brokers."""
    charged = counted.filter(pc.field("status") == CHARGED)
    grouped = charged.group_by("broker").aggregate([("lines", "sum"), ("start_us", "min"), ("end_us", "max")]).sort_by("broker")
    for row in grouped.to_pylist():
        start, end = row["start_us_min"], row["end_us_max"]
        yield Covered(broker=row["broker"], requests=row["lines_sum"], start_us=start, end_us=end)


def statuses(counted: pa.Table) -> dict[str, int]:
    """How many lines there are of each status, in the order of their names."""
    grouped = counted.group_by("status").aggregate([("lines", "sum")]).sort_by("status")
    return dict(zip(grouped.column("status").to_pylist(), grouped.column("lines_sum").to_pylist(), strict=True))


SAMPLES: Final = 5
"""Of lines that cannot be read, so many are shown."""


def facts_of(
    counted: pa.Table,
    source: Source,
    files: Sequence[str],
    *,
    samples: Callable[[], tuple[str, ...]],
    named: Collection[int] = (),
    means: Sequence[Mean] = (),
    request_step: float | None = None,
    of_requests: bool = True,
) -> Facts:
    """What the traffic is. ``named``: brokers that the lines themselves list. ``request_step``: as ``Provenance`` has it.

    ``of_requests``: charged rows are single requests, and not per-second totals. Raises ``TrafficError`` when no request and no
    metric can be used.
    """
    lines = statuses(counted)
    if not means:
        require_charged(lines, files)
    of_means = (Covered(broker=m.series.broker, requests=0, start_us=m.start_us, end_us=m.end_us) for m in means)
    facts = Facts.of(
        source,
        files,
        covered=(*covered(counted), *of_means),
        statuses=lines,
        throttled_then=throttled_then(counted),
        samples=samples() if lines.get(UNREADABLE) else (),
        named=named,
        request_step=request_step,
    )
    return replace(facts, observations=tuple(_observations(counted, means, of_requests=of_requests)))


def _observations(counted: pa.Table, means: Sequence[Mean], *, of_requests: bool) -> Iterator[Observations]:
    charged = counted.filter(pc.field("status") == CHARGED)
    if charged.num_rows:
        yield Observations(
            semantics="event" if of_requests else "second",
            rows=int(pc.sum(charged.column("lines")).as_py()),
            series=charged.num_rows,
            throttled_then=throttled_then(counted),
        )
    for semantics in MetricSemantics:
        some = [one for one in means if one.semantics is semantics]
        if some:
            most = max(some, key=lambda one: one.series.requests)
            yield Observations(
                semantics=semantics.value,
                rows=sum(one.series.requests for one in some),
                series=len({one.series.sort_key for one in some}),
                every_s=(most.since_us or most.interval_us) / 1e6,
                throttled_then=sum(one.series.throttled for one in some),
            )


def throttled_then(counted: pa.Table) -> int:
    """Charged requests that were throttled when they were recorded."""
    return int(pc.sum(counted.filter(pc.field("status") == CHARGED).column("throttled")).as_py() or 0)


def require_charged(lines: Mapping[str, int], files: Sequence[str]) -> None:
    """Raise ``TrafficError`` when no request can be used."""
    if lines.get(CHARGED):
        return
    whole, unreadable = sum(lines.values()), lines.get(UNREADABLE, 0)
    where = list_some(files, 1)
    if not whole:
        why = "no rows, or no request lines"
    elif unreadable:
        why = f"{unreadable} of {whole} request lines cannot be read (no time stamp before the message, or JSON cut short)"
    elif of_metrics := sum(lines.get(status, 0) for status in OF_METRICS):
        why = f"{of_metrics} of {whole} rows are of metrics, as deltas or means without an interval"
    else:
        why = f"none of the {whole} request lines is a produce or fetch request of a client"
    raise TrafficError(f"recorded traffic {where}: {why}")
