"""Reads the broker's request log (JSON since Kafka 2.8) as charged rows in Arrow batches, without Spark.

A line with ``Completed request:`` gives a row for each thing it is charged for: bytes of produce and fetch, time of
threads, topics created or deleted. ``status`` states what became of it; ``CHARGED`` rows carry the series (broker, kind, user,
client id), the charge time and the amount. A line that is charged for nothing has one row. The schema is ``COLUMNS``.
"""

from __future__ import annotations

import functools
import hashlib
import itertools
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from reconciler.collector import pause_collector
from reconciler.errors import TrafficError
from reconciler.model import CONTROLLER, escaped
from reconciler.text import list_some
from reconciler.traffic.kinds import BYTES, Kind
from reconciler.traffic.sources.line_charges import MUTATING, Entry, LineReader, is_strict
from reconciler.traffic.sources.log_documents import MARKER, LineClock, LogLine, Moment, answered_throttle_ms, api_key
from reconciler.traffic.sources.log_evidence import (
    CLUSTER,
    NAMED_BROKERS,
    NAMING,
    REQUEST_NUMBER,
    TOPICS,
    names_of_cluster,
    request_numbers,
)
from reconciler.traffic.sources.log_files import BrokerFiles, has_text, log_parts
from reconciler.traffic.sources.normal_form import (
    CHARGED,
    END_US,
    FIRST_US,
    OTHER_API,
    RECORDED_THROTTLE,
    ROWS,
    UNCLEAR_TIME,
    UNKNOWN_PARTITIONS,
    UNREADABLE,
)

COLUMNS: Final = (
    "status", "broker", "kind", "user", "client_id", "ts_us", "records", "overhead", "throttled", "tie", "detail", "strict",
    "part", "begins_line", TOPICS,
)  # fmt: skip
"""``ts_us``: charge time, microseconds since 1970, UTC. ``records`` + ``overhead``: charged bytes, nanoseconds or partitions.
``throttled``: as recorded, in one row of each request. ``tie``: orders requests of one microsecond by content, so that no
partitioning or file layout changes a result. ``strict`` and ``part``: of mutations, as in the normal form. ``begins_line``: true
in one row of each line. ``topics``: what a line shows of topics, from which those that were extended or deleted get what they
cost."""
SELF_EVIDENCE: Final = (CLUSTER, NAMED_BROKERS, REQUEST_NUMBER)
"""Further columns: what a log shows of itself."""
LOG_KINDS: Final = (Kind.PRODUCE, Kind.FETCH, Kind.REQUEST, Kind.MUTATION)
"""The kinds that a request log has. A connection has no line of its own."""

_TYPES: Final = {
    **{field.name: field.type for field in ROWS}, "begins_line": pa.bool_(), TOPICS: pa.string(), "refused": pa.bool_(),
    "connection": pa.string(), "correlation_id": pa.int32(), "recorded_throttle_ms": pa.int64(), "file": pa.string(),
    CLUSTER: pa.string(), NAMED_BROKERS: pa.string(), REQUEST_NUMBER: pa.int64(),
}  # fmt: skip
_ROWS_A_BATCH: Final = 16_384
_MUTATION: Final = Kind.MUTATION.value
_UNPLACED: Final = dict.fromkeys((CHARGED, UNKNOWN_PARTITIONS), UNCLEAR_TIME)
"""Statuses of rows for which it counts when they were."""
_SHOWN: Final = 200
"""Characters of a line that cannot be read, in ``detail``."""
_CONNECTIONS_KEPT: Final = 100_000
NOT_A_LOG: Final = (
    "no line has 'Completed request:'. Is the logger kafka.request.logger at DEBUG, and is this its file? CSV needs a --mapping"
)
_READABLE: Final = (
    "A line of a broker has its date and time first, and JSON behind 'Completed request:' (kafka-quotas explain record-traffic). "
    "Brokers before 2.8 write no JSON: give their metrics (kafka-quotas explain prometheus)."
)
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


class _Request(NamedTuple):
    """What the rows of one request share."""

    broker: int
    user: str | None = None
    client_id: str | None = None
    ts_us: int | None = None
    connection: str | None = None
    correlation_id: int | None = None
    throttle_ms: float | None = None
    strict: bool | None = None
    cluster: str | None = None
    named_brokers: str | None = None
    detail: str | None = None


def schema(also: Sequence[str] = ()) -> pa.Schema:
    """The schema of the batches: ``COLUMNS``, then ``also``: of ``IDENTITY_COLUMNS``, ``SELF_EVIDENCE``, and ``file``."""
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
    unread = iter(lines)
    while batch := _next_batch(reader, unread, also):
        yield batch


@pause_collector()
def _next_batch(reader: _RowReader, unread: Iterator[bytes], also: Sequence[str]) -> pa.RecordBatch | None:
    """Read lines until a batch is full. ``None``: the file has no more rows."""
    for raw in unread:
        at = raw.find(MARKER)
        if at >= 0:
            reader.read(raw, at)
            if len(reader.entries) >= _ROWS_A_BATCH:
                break
    return reader.batch(also) if reader.entries else None


class _RowReader:
    """Of the lines of one file. Requests, and the entries of all of them, wait in lists until they become columns of a batch."""

    def __init__(self, broker: int, file: str, zone: str, kinds: Collection[Kind]) -> None:
        self._broker = broker
        self._file = file
        self._clock = LineClock(zone)
        self._reader = LineReader(kinds)
        self._requests: list[_Request] = []
        self._counts: list[int] = []
        self.entries: list[Entry] = []
        """Of the next batch."""

    def read(self, raw: bytes, at: int) -> None:
        """``at``: where the marker is; a name may contain another one, behind it."""
        start = at + len(MARKER)
        api = api_key(raw, start)
        # Without what the layout of the log writes behind it.
        document = raw[start : raw.rfind(b"}") + 1]
        cluster, named = names_of_cluster(api, raw) if api in NAMING else (None, None)
        if self._reader.wanted is not None and api not in self._reader.wanted:
            request = _Request(self._broker, cluster=cluster, named_brokers=named)
            if api in self._reader.showing:
                self._add_shown(api, document, self._clock.read(raw, at), request)
            else:
                self._add(request, [self._reader.unusable(api, OTHER_API)])
            return
        line = self._reader.decode(api, document)
        moment = self._clock.read(raw, at)
        if api is None or line is None or moment is None:
            self._add_unreadable(api, raw)
            return
        _, colon, user = line.principal.partition(":")
        # The line's time is cut to whole milliseconds: half of one is the best guess for the rest.
        ts_us = moment.micros + 500 - int((line.response_queue_time_ms + line.send_time_ms) * 1000 + 0.5)
        if not colon or not FIRST_US <= ts_us < END_US:
            self._add_unreadable(api, raw)
            return
        if answered := answered_throttle_ms(raw, start):
            line.throttle_time_ms = max(line.throttle_time_ms or 0.0, float(answered))
        header = line.request_header
        request = _Request(
            self._broker,
            user,
            header.client_id or "",
            ts_us,
            line.connection,
            header.correlation_id,
            line.throttle_time_ms,
            cluster=cluster,
            named_brokers=named,
        )
        entries = self._reader.entries(api, line)
        if moment.unclear:
            entries = [entry._replace(topics=None, status=_UNPLACED.get(entry.status, entry.status)) for entry in entries]
        elif api in self._reader.showing and (topics := self._reader.shown_topics(document)) is not None:
            entries[0] = entries[0]._replace(topics=topics)
        if api in MUTATING:
            self._add_mutation(api, line, request, entries)
        else:
            self._add(request, entries)

    def _add_mutation(self, api: int, line: LogLine, request: _Request, entries: Sequence[Entry]) -> None:
        """Topics are charged when the request is begun, before the controller waits for others."""
        self._add(request, [entry for entry in entries if entry.kind != _MUTATION])
        begun = request._replace(
            broker=self._broker if line.is_forwarded else CONTROLLER,
            ts_us=(request.ts_us or 0) - int((line.remote_time_ms or 0.0) * 1000 + 0.5),
            strict=is_strict(api, line.request_header.request_api_version),
        )
        self._add(begun, [entry for entry in entries if entry.kind == _MUTATION])

    def _add_shown(self, api: int | None, document: bytes, moment: Moment | None, request: _Request) -> None:
        """A line that is charged for nothing, with what it shows of topics."""
        entry = self._reader.unusable(api, OTHER_API)
        topics = self._reader.shown_topics(document)
        if topics is not None and moment is not None and not moment.unclear and FIRST_US <= moment.micros < END_US:
            request, entry = request._replace(ts_us=moment.micros), entry._replace(topics=topics)
        self._add(request, [entry])

    def _add_unreadable(self, api: int | None, raw: bytes) -> None:
        detail = _beginning(self._file, raw)
        self._add(_Request(self._broker, detail=detail), [self._reader.unusable(api, UNREADABLE)])

    def _add(self, request: _Request, entries: Sequence[Entry]) -> None:
        self._requests.append(request)
        self._counts.append(len(entries))
        self.entries += entries

    def batch(self, also: Sequence[str]) -> pa.RecordBatch:
        """The rows of the lines since the last batch, of ``schema(also)``."""
        requests: dict[str, Any] = dict(zip(_Request._fields, zip(*self._requests, strict=True), strict=True))
        entries: dict[str, Any] = dict(zip(Entry._fields, zip(*self.entries, strict=True), strict=True))
        request_of = pa.array(np.repeat(np.arange(len(self._counts)), self._counts))
        rows = len(self.entries)
        self._requests, self._counts, self.entries = [], [], []

        def column(name: str) -> pa.Array:
            if name in entries:
                return pa.array(entries[name], _TYPES[name])
            if name == "file":
                return pa.repeat(self._file, rows)
            if name == "throttled":
                made = pc.fill_null(pc.greater(pa.array(requests["throttle_ms"], pa.float64()), 0), pa.scalar(value=False))
            elif name == "tie":
                made = _ties(requests)
            elif name == REQUEST_NUMBER:
                made = request_numbers(requests["connection"], requests["client_id"], requests["correlation_id"])
            elif name == RECORDED_THROTTLE:
                whole = pc.trunc(pa.array(requests["throttle_ms"], pa.float64())).cast(pa.int64())
                made = pc.if_else(pa.array(requests["ts_us"], pa.int64()).is_valid(), pc.fill_null(whole, 0), None)
            else:
                made = pa.array(requests[name], _TYPES[name])
            made = made.take(request_of)
            # A request was throttled once, whatever it costs. Its first topic may be the reason, and each is refused for itself.
            first = pc.or_(column("begins_line"), pc.fill_null(pc.equal(column("part"), 0), pa.scalar(value=False)))
            return pc.or_(pc.and_(made, first), column("refused")) if name == "throttled" else made

        arrow = schema(also)
        return pa.RecordBatch.from_arrays([column(field.name) for field in arrow], schema=arrow)


def _ties(requests: Mapping[str, Any]) -> pa.Array:
    """A number of 64 bits for each request, the same wherever its line is: splitmix64 of its connection and number."""
    mixed = np.array([*map(_connection_hash, requests["connection"])], dtype=np.int64).view(np.uint64)
    numbers = pc.fill_null(pa.array(requests["correlation_id"], pa.int64()), 0).to_numpy().view(np.uint64)
    mixed = mixed + numbers * np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return pa.array((mixed ^ (mixed >> np.uint64(31))).view(np.int64))


@functools.lru_cache(maxsize=_CONNECTIONS_KEPT)
def _connection_hash(connection: str | None) -> int:
    if connection is None:
        return 0
    digest = hashlib.blake2b(connection.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "little", signed=True)


def _beginning(file: str, raw: bytes) -> str:
    """The first part of a line."""
    return f"{file}: {raw[: 4 * _SHOWN].decode('utf-8', 'replace')[:_SHOWN].rstrip()}"


def require_request_lines(logs: Sequence[BrokerFiles], zone: str) -> None:
    """Raise ``TrafficError`` when no line of any file is of a request, or when all that are looked at cannot be read.

    Only files without a request line near the beginning of a part are read further.
    """
    parts = log_parts(logs, _PARTS_CUT)
    rows, samples = 0, list[tuple[str, bytes]]()
    for part in parts[:: max(1, len(parts) // _PARTS_LOOKED_AT)]:
        beginning = itertools.islice(part.lines(), _LINES_PASSED_OVER)
        lines = list(itertools.islice((line for line in beginning if MARKER in line), _LINES_OF_PART))
        for batch in parse_lines(lines, broker=part.broker, file=part.uri, zone=zone):
            if any(status != UNREADABLE for status in batch.column("status").to_pylist()):
                return
            rows += batch.num_rows
        samples += ((part.uri, raw) for raw in lines[:1])
    files = [file for log in logs for file in log.files]
    where = list_some([escaped(file) for file in files], 1)
    if not samples and not any(has_text(file, MARKER) for file in files):
        raise TrafficError(f"recorded traffic {where}: {NOT_A_LOG}")
    if rows >= _LEAST_LINES:
        raise TrafficError(
            f"recorded traffic {where}: none of the {rows} request lines looked at can be read. {_READABLE} For instance, "
            f"{escaped(_beginning(*samples[0]))}"
        )
