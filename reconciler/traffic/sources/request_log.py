"""Reads the broker's request log (JSON since Kafka 2.8) as charged rows in Arrow batches, without Spark.

A line with ``Completed request:`` gives a row for each thing it is charged for: bytes of produce and fetch, time of
threads, topics created or deleted. ``status`` states what became of it; ``CHARGED`` rows carry the series (broker, kind, user,
client id), the charge time and the amount. A line that is charged for nothing has one row. The schema is ``COLUMNS``.
"""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa

from reconciler.errors import TrafficError
from reconciler.model import CONTROLLER, escaped
from reconciler.text import list_some
from reconciler.traffic.kinds import BYTES, Kind
from reconciler.traffic.sources.line_charges import MUTATING, Entry, LineReader, is_strict
from reconciler.traffic.sources.line_time import LineClock
from reconciler.traffic.sources.log_documents import MARKER, LogLine, api_key, document_of
from reconciler.traffic.sources.log_evidence import (
    CLUSTER,
    NAMED_BROKERS,
    REQUEST_NUMBER,
    RequestNumbers,
    cluster_id,
    named_brokers,
)
from reconciler.traffic.sources.log_files import BrokerFiles, LogPart, has_text, log_parts
from reconciler.traffic.sources.normal_form import (
    END_US,
    FIRST_US,
    OTHER_API,
    UNCLEAR_TIME,
    UNREADABLE,
)

COLUMNS: Final = (
    "status", "broker", "kind", "user", "client_id", "ts_us", "records", "overhead", "throttled", "tie", "detail", "strict",
    "part", "begins_line",
)  # fmt: skip
"""``ts_us``: charge time, microseconds since 1970, UTC. ``records`` + ``overhead``: charged bytes, nanoseconds or partitions.
``throttled``: as recorded. ``tie``: orders requests of one microsecond by content, so that no partitioning or file layout changes
a result. ``strict`` and ``part``: of mutations, as in the normal form. ``begins_line``: true in one row of each line."""
SELF_EVIDENCE: Final = (CLUSTER, NAMED_BROKERS, REQUEST_NUMBER)
"""Further columns: what a log shows of itself."""
LOG_KINDS: Final = (Kind.PRODUCE, Kind.FETCH, Kind.REQUEST, Kind.MUTATION)
"""The kinds that a request log has. A connection has no line of its own."""

_TYPES: Final = {
    "status": pa.string(), "broker": pa.int32(), "kind": pa.string(), "user": pa.string(), "client_id": pa.string(),
    "ts_us": pa.int64(), "records": pa.int64(), "overhead": pa.int64(), "throttled": pa.bool_(), "tie": pa.int64(),
    "detail": pa.string(), "strict": pa.bool_(), "part": pa.int32(), "begins_line": pa.bool_(),
    "connection": pa.string(), "correlation_id": pa.int32(), "recorded_throttle_ms": pa.int64(),
    "file": pa.string(), CLUSTER: pa.string(), NAMED_BROKERS: pa.string(), REQUEST_NUMBER: pa.int64(),
}  # fmt: skip
_ROWS_A_BATCH: Final = 16_384
_MUTATION: Final = Kind.MUTATION.value
_SHOWN: Final = 200
"""Characters of a line that cannot be read, in ``detail``."""
_CONNECTIONS_KEPT: Final = 100_000
_LONGEST_MS: Final = 3_600_000.0
"""An hour: no request takes longer, and what is longer than that is damaged."""
NOT_A_LOG: Final = "no line has 'Completed request:'. Is the logger kafka.request.logger at DEBUG, and is this its file?"
_PARTS_LOOKED_AT: Final = 20
"""Parts that are looked at, spread over all files."""
_PARTS_CUT: Final = 32
_LINES_OF_PART: Final = 50
"""Request lines of each."""
_LEAST_LINES: Final = 50
"""Fewer lines than this prove nothing about the others."""
_LINES_PASSED_OVER: Final = 5_000
"""Other lines of each part that are passed over while looking for request lines."""
_BUFFER: Final = 1 << 20
_DETAILS_SHOWN: Final = 3


class _Row(NamedTuple):
    """What differs from row to row of one file."""

    status: str
    broker: int
    kind: str
    user: str | None = None
    client_id: str | None = None
    ts_us: int | None = None
    records: int = 0
    overhead: int = 0
    throttled: bool = False
    connection_number: int = 0
    detail: str | None = None
    strict: bool | None = None
    part: int | None = None
    begins_line: bool = True
    connection: str | None = None
    correlation_id: int | None = None
    recorded_throttle_ms: int | None = None
    cluster: str | None = None
    named_brokers: str | None = None
    request_number: int | None = None


def schema(also: Sequence[str] = ()) -> pa.Schema:
    """Of the batches: ``COLUMNS``, then ``also``: of ``IDENTITY_COLUMNS``, ``SELF_EVIDENCE``, and ``file``."""
    return pa.schema([(name, _TYPES[name]) for name in (*COLUMNS, *also)])


def parse_lines(
    lines: Iterable[bytes],
    *,
    broker: int,
    file: str,
    zone: str = "UTC",
    kinds: Collection[Kind] = BYTES,
    also: Sequence[str] = (),
) -> Iterator[pa.RecordBatch]:
    """Rows of the lines of one file, in batches of ``schema(also)``.

    ``file``: its address, for the column of that name and for ``detail``. ``zone``: that of times without an offset; it exists.
    ``kinds``: what to read, of ``LOG_KINDS``; lines of nothing else are ``OTHER_API``.
    """
    reader = _RowReader(broker, file, zone, kinds)
    rows: list[_Row] = []
    for raw in lines:
        at = raw.find(MARKER)
        if at >= 0:
            rows.extend(reader.rows(raw, at))
            if len(rows) >= _ROWS_A_BATCH:
                yield _batch(rows, file, also)
                rows = []
    if rows:
        yield _batch(rows, file, also)


class _RowReader:
    """Of the lines of one file."""

    def __init__(self, broker: int, file: str, zone: str, kinds: Collection[Kind]) -> None:
        self._broker = broker
        self._file = file
        self._clock = LineClock(zone)
        self._reader = LineReader(kinds)
        self._numbers: dict[str, int] = {}
        self._request_numbers = RequestNumbers()

    def rows(self, raw: bytes, at: int) -> Iterable[_Row]:
        """``at``: where the marker is; a name may contain another one, behind it."""
        start = at + len(MARKER)
        api = api_key(raw, start)
        if not self._reader.wants(api):
            return (self._without_line(self._reader.unusable(api, OTHER_API), api=api, raw=raw),)
        line = self._reader.decode(api, document_of(raw, start))
        moment = self._clock.read(raw, at)
        user = _user_of(line.principal) if line else None
        if api is None or line is None or moment is None or user is None or not _has_sane_times(line):
            return (self._without_line(self._reader.unusable(api, UNREADABLE), detail=self._detail(raw)),)
        # The line's time is cut to whole milliseconds: half of one is the best guess for the rest.
        waited = int((line.response_queue_time_ms + line.send_time_ms) * 1000 + 0.5)
        answered_us = moment.micros + 500 - waited
        if not FIRST_US <= answered_us < END_US:
            return (self._without_line(self._reader.unusable(api, UNREADABLE), detail=self._detail(raw)),)
        entries = [self._reader.unusable(api, UNCLEAR_TIME)] if moment.unclear else self._reader.entries(api, line)
        cluster = cluster_id(api, raw), named_brokers(api, raw)
        return [self._row(api, line, user, answered_us, entry, cluster) for entry in entries]

    def _row(
        self, api: int, line: LogLine, user: str, answered_us: int, entry: Entry, cluster: tuple[str | None, str | None]
    ) -> _Row:
        header = line.request_header
        throttle_ms = line.throttle_time_ms or 0.0
        topic = entry.kind == _MUTATION
        ts_us, broker = answered_us, self._broker
        if topic:
            # Topics are charged when the request is begun, before the controller waits for others.
            ts_us -= int((line.remote_time_ms or 0.0) * 1000 + 0.5)
            broker = broker if line.is_forwarded else CONTROLLER
        return _Row(
            entry.status,
            broker,
            entry.kind,
            user,
            header.client_id or "",
            ts_us,
            entry.records,
            entry.overhead,
            # Once a line, whatever it is charged for.
            throttle_ms > 0 and entry.begins_line,
            self._number_of(line.connection),
            None,
            is_strict(api, header.request_api_version) if topic and api in MUTATING else None,
            entry.part,
            entry.begins_line,
            line.connection,
            header.correlation_id,
            int(throttle_ms),
            *cluster,
            self._request_numbers.of(line.connection, header.client_id or "", header.correlation_id),
        )

    def _without_line(self, entry: Entry, *, detail: str | None = None, api: int | None = None, raw: bytes = b"") -> _Row:
        cluster, named = cluster_id(api, raw), named_brokers(api, raw)
        return _Row(entry.status, self._broker, entry.kind, detail=detail, cluster=cluster, named_brokers=named)

    def _detail(self, raw: bytes) -> str:
        return f"{self._file}: {raw[: 4 * _SHOWN].decode('utf-8', 'replace')[:_SHOWN]}"

    def _number_of(self, connection: str) -> int:
        number = self._numbers.get(connection)
        if number is None:
            if len(self._numbers) >= _CONNECTIONS_KEPT:
                self._numbers.clear()
            digest = hashlib.blake2b(connection.encode("utf-8", "surrogatepass"), digest_size=8).digest()
            number = self._numbers[connection] = int.from_bytes(digest, "little", signed=True)
        return number


def _user_of(principal: str) -> str | None:
    _, colon, name = principal.partition(":")
    return name if colon else None


def _has_sane_times(line: LogLine) -> bool:
    return (
        0 <= line.response_queue_time_ms <= _LONGEST_MS
        and 0 <= line.send_time_ms <= _LONGEST_MS
        and 0 <= (line.local_time_ms or 0.0) <= _LONGEST_MS
        and 0 <= (line.remote_time_ms or 0.0) <= _LONGEST_MS
        and 0 <= (line.throttle_time_ms or 0.0) < 2**31
    )


def _batch(rows: Sequence[_Row], file: str, also: Sequence[str]) -> pa.RecordBatch:
    columns: dict[str, Any] = dict(zip(_Row._fields, zip(*rows, strict=True), strict=True))
    columns["tie"] = _ties(columns["connection_number"], columns["correlation_id"])
    columns["file"] = [file] * len(rows)
    columns[CLUSTER] = columns["cluster"]
    arrow = schema(also)
    return pa.RecordBatch.from_arrays([pa.array(columns[field.name], field.type) for field in arrow], schema=arrow)


def _ties(connections: Sequence[int], correlations: Sequence[int | None]) -> np.ndarray[Any, np.dtype[np.int64]]:
    """A number of 64 bits for each request, the same wherever its line is: splitmix64 of its connection and number."""
    mixed = np.array(connections, dtype=np.int64).view(np.uint64)
    numbers = np.array([number or 0 for number in correlations], dtype=np.int64).view(np.uint64)
    mixed = mixed + numbers * np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return (mixed ^ (mixed >> np.uint64(31))).view(np.int64)


def require_request_lines(logs: Sequence[BrokerFiles], zone: str) -> None:
    """Raise ``TrafficError`` when no line of any file is of a request, or when all that are looked at cannot be read.

    A log with request lines is read as far as its first one; only files without any are read whole.
    """
    files = [file for log in logs for file in log.files]
    where = list_some([escaped(file) for file in files], 1)
    if not any(has_text(file, MARKER) for file in files):
        raise TrafficError(f"recorded traffic {where}: {NOT_A_LOG}")
    parts = log_parts(logs, _PARTS_CUT)
    rows, details = 0, list[str]()
    for part in parts[:: max(1, len(parts) // _PARTS_LOOKED_AT)]:
        for batch in parse_lines(_request_lines(part), broker=part.broker, file=part.uri, zone=zone):
            unreadable = batch.column("status").to_pylist()
            if any(status != UNREADABLE for status in unreadable):
                return
            rows += batch.num_rows
            details += [detail for detail in batch.column("detail").to_pylist() if detail]
    if rows >= _LEAST_LINES:
        shown = "".join(f"\n  {escaped(detail)}" for detail in details[:_DETAILS_SHOWN])
        raise TrafficError(
            f"recorded traffic {where}: none of the {rows} request lines looked at can be read "
            f"(no time stamp before the message, or JSON cut short), for instance:{shown}"
        )


def _request_lines(part: LogPart) -> Iterator[bytes]:
    lines = itertools.islice(part.lines(), _LINES_PASSED_OVER)
    return itertools.islice((line for line in lines if MARKER in line), _LINES_OF_PART)
