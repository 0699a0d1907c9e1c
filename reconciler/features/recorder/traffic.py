"""Files of the recorder, the broker plugin in ``recorder/``: what each series was charged in each second of the clock.

A file is a sequence of gzip members with lines of JSON (``LineFormat`` of the recorder). A crash cuts the last member short, and
what is before it is whole. Each sum is that of one second, as a row at the end of it. Amounts of one second add up.
"""

from __future__ import annotations

import functools
import gzip
import logging
import re
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated, Any, ClassVar, Final, cast

import msgspec
import numpy as np
import pyarrow as pa

from reconciler.errors import TrafficError
from reconciler.logs import log_event
from reconciler.model import compose, escaped, flag_part
from reconciler.text import shown_part
from reconciler.traffic import (
    CHARGED,
    DELTA,
    END_US,
    FILE,
    FIRST_US,
    MOST_AMOUNT,
    ROWS,
    SILENT,
    UNREADABLE,
    Between,
    Facts,
    Integers,
    Kind,
    Reading,
    Source,
    SourceFile,
    Traffic,
    require_one,
    with_missing,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from reconciler.traffic import SparkRows

_BYTES_A_TASK: Final = 4_000_000
"""As stored, compressed."""


class RecorderTraffic(Traffic):
    """Files of the recorder in brokers."""

    source: ClassVar[Source] = Source.RECORDER
    takes_time: ClassVar[bool] = True

    @staticmethod
    def claims(path: Path) -> bool:
        """A file of the recorder, or a folder that has one."""
        if path.is_dir():
            return any(map(is_recorder_file, path.rglob("quota-recorder-*")))
        return is_recorder_file(path) and path.exists()

    @classmethod
    def of(cls, arguments: Sequence[str]) -> Traffic:
        """See ``Traffic.of``."""
        return cls(parquet=tuple(dict.fromkeys(file for argument in arguments for file in recorder_files_in(Path(argument)))))

    @property
    def semantics(self) -> str:
        """See ``Traffic.semantics``."""
        return DELTA

    def look(self, log_timezone: str) -> None:
        """Require first lines of the recorder, and of one cluster."""
        del log_timezone
        headers = {file: read_header(Path(file)) for file in self.parquet}
        require_one({header.cluster: escaped(file) for file, header in headers.items() if header and header.cluster is not None})

    def source_file(self, file: str) -> SourceFile | None:
        """Return what is known of a file by its first line, complete or still open; ``None`` while it has none."""
        header = read_header(Path(file))
        return None if header is None else SourceFile.of_beginning(Path(file), b"recorder\n" + header.line)

    def batches(self, reading: Reading) -> Iterator[pa.RecordBatch]:
        """See ``Traffic.batches``."""
        return recorder_rows(self.parquet, with_file="file" in reading.also, between=self.between)

    def rows_on(self, spark: SparkSession, reading: Reading) -> SparkRows[pa.RecordBatch]:
        """See ``Traffic.rows_on``."""
        from reconciler.traffic import kept_rows

        sizes = [Path(file).stat().st_size for file in self.parquet]
        read = functools.partial(recorder_rows, with_file="file" in reading.also, between=self.between)
        return kept_rows(spark, self.parquet, sizes, read, a_task=_BYTES_A_TASK)

    def with_remarks(self, facts: Facts) -> Facts:
        """Return the facts with a note for each file that is not closed."""
        open_files = [Path(file).name for file in self.parquet if file.endswith(OPEN)]
        notes = (
            compose(
                "{file} was not closed: its broker still writes to it, or ended without warning. Its last seconds, as many "
                "as {setting}, can be missing",
                file=shown_part(name),
                setting=flag_part("quota.recorder.flush.seconds"),
            )
            for name in open_files
        )
        return replace(facts, notes=tuple(notes))


_log: Final = logging.getLogger(__name__)
_NAME: Final = re.compile(r"quota-recorder-\d{1,10}-\d{8}T\d{9}Z\.jsonl\.gz(\.open)?")
OPEN: Final = ".open"
_FORMAT: Final = "kafka-quotas-recorder"
_VERSION: Final = 1
_SECOND_US: Final = 1_000_000
_MINUTE_S: Final = 60
_LATE_S: Final = 60
"""A line may add to a second that is so much older than the newest before it."""
_ROWS_A_BATCH: Final = 1 << 18
_LONGEST_LINE: Final = 64 * 1024 * 1024
_MOST_DROPPED: Final = 1_000_000
"""Seconds of one range; more come from a damaged line."""
_SHOWN: Final = 200
_MOST_SERIES: Final = 1 << 24


class ClientLine(msgspec.Struct, array_like=True, tag="c", gc=False):
    """The names of a series; ``None`` is not known."""

    number: Annotated[int, msgspec.Meta(ge=0, lt=_MOST_SERIES)]
    kind: Kind
    user: str | None
    client_id: str | None


class SecondLine(msgspec.Struct, array_like=True, tag="s", gc=False):
    """A second since 1970: series and amount in turn, and series and milliseconds of throttles."""

    second: Annotated[int, msgspec.Meta(ge=FIRST_US // 1_000_000, lt=END_US // 1_000_000)]
    amounts: list[int]
    throttles: list[int] = []


class DroppedLine(msgspec.Struct, array_like=True, tag="d", gc=False):
    """Seconds that are not in the file, both ends included, and the reason."""

    first: int
    last: int
    why: str


_decode: Final = msgspec.json.Decoder(ClientLine | SecondLine | DroppedLine).decode


@dataclass(frozen=True, slots=True, kw_only=True)
class RecorderHeader:
    """A file's first line."""

    broker: int
    cluster: str | None
    line: bytes
    """As it is in the file: no two files begin alike."""


def is_recorder_file(path: Path) -> bool:
    """Whether a path has the name that the recorder gives its files, complete ones and the one it writes to."""
    return _NAME.fullmatch(path.name) is not None


def recorder_files_in(path: Path) -> tuple[str, ...]:
    """A file, or the recorder's files below a folder, by name; a complete one instead of itself still open."""
    if path.is_file():
        return (str(path.resolve()),)
    files = {file.name.removesuffix(OPEN): file for file in sorted(path.rglob("quota-recorder-*"), key=_complete_last)}
    return tuple(str(file.resolve()) for _, file in sorted(files.items()) if is_recorder_file(file))


def read_header(path: Path) -> RecorderHeader | None:
    """The first line; ``None`` while a file has none. Raises ``TrafficError``."""
    with _opened(path) as stream:
        line = next(_whole_lines(stream, path), None)
    if line is None:
        return None
    return _header(line, path)


def recorder_rows(files: Iterable[str], *, with_file: bool = False, between: Between | None = None) -> Iterator[pa.RecordBatch]:
    """Rows of the canonical traffic schema, and with ``with_file`` of ``FILE``: sums of seconds, silent minutes, dropped seconds.

    ``between``: only rows of this time, and those without one.
    """
    for file in files:
        path = Path(file)
        log_event(_log, "file opened", file=file)
        with _opened(path) as stream:
            for batch in _FileRows(path).batches(_whole_lines(stream, path)):
                rows = batch if between is None else between.charged_rows(batch)
                yield rows.append_column(FILE, pa.repeat(path.as_uri(), rows.num_rows)) if with_file else rows


def _complete_last(path: Path) -> tuple[bool, str]:
    return not path.name.endswith(OPEN), str(path)


def _opened(path: Path) -> IO[bytes]:
    try:
        return cast("IO[bytes]", gzip.open(path))
    except FileNotFoundError:
        # The recorder has completed it meanwhile.
        if path.name.endswith(OPEN):
            return _opened(path.with_name(path.name.removesuffix(OPEN)))
        raise TrafficError(f"recorded traffic {escaped(str(path))}: no such file") from None
    except OSError as error:
        raise TrafficError(f"recorded traffic {escaped(str(path))} cannot be read: {error.strerror or error}") from error


def _whole_lines(stream: IO[bytes], path: Path) -> Iterator[bytes]:
    """Yield the lines before the place where a crash cut the file short."""
    try:
        while (line := stream.readline(_LONGEST_LINE)).endswith(b"\n"):
            yield line
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        log_event(_log, "file cut short", level=logging.WARNING, file=str(path), error=str(error))
    except OSError as error:
        raise TrafficError(f"recorded traffic {escaped(str(path))} cannot be read: {error.strerror or error}") from error


def _header(line: bytes, path: Path) -> RecorderHeader:
    where = f"recorded traffic {escaped(str(path))}"
    try:
        document = msgspec.json.decode(line)
    except msgspec.DecodeError:
        document = None
    if not isinstance(document, dict) or document.get("format") != _FORMAT:
        raise TrafficError(f"{where}: the first line is not that of a recorder's file")
    if document.get("version") != _VERSION:
        version = escaped(str(document.get("version")))
        raise TrafficError(
            f"{where}: the file has version {version}, and this kafka-quotas reads {_VERSION}: upgrade kafka-quotas"
        )
    broker, cluster = document.get("broker"), document.get("cluster")
    if type(broker) is not int or not 0 <= broker < 2**31 or not isinstance(cluster, str | None):
        raise TrafficError(f"{where}: the first line names no broker")
    return RecorderHeader(broker=broker, cluster=cluster, line=line)


class _FileRows:
    """The rows of one file, as its lines come."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._broker = -1
        self._places = np.full(64, -1, dtype=np.int64)
        self._clients: list[tuple[str, str | None, str | None]] = []
        self._sums: list[Integers] = []
        """Of series, second, amount and milliseconds of throttles, each of the shape (4, n)."""
        self._size = 0
        self._newest = 0
        self._minutes: set[int] = set()
        self._charged_minutes: set[int] = set()
        self._others: list[dict[str, Any]] = []

    def batches(self, lines: Iterator[bytes]) -> Iterator[pa.RecordBatch]:
        first = next(lines, None)
        if first is None:
            return
        self._broker = _header(first, self._path).broker
        for line in lines:
            try:
                self._add(_decode(line))
            except (msgspec.DecodeError, ValueError, OverflowError, RecursionError):
                self._unreadable(line[:_SHOWN].decode("utf-8", "replace").rstrip("\n"))
            if self._size > _ROWS_A_BATCH:
                yield self._charged(self._newest - _LATE_S)
        yield self._charged(END_US)
        silent = sorted(self._minutes - self._charged_minutes)
        self._others += [{"status": SILENT, "ts_us": minute * _MINUTE_S * _SECOND_US} for minute in silent]
        if self._others:
            yield pa.RecordBatch.from_pylist([{"broker": self._broker, **row} for row in self._others], schema=ROWS)

    def _add(self, line: ClientLine | SecondLine | DroppedLine) -> None:
        if isinstance(line, SecondLine):
            (series, amounts), (throttled, milliseconds) = self._pairs(line.amounts), self._pairs(line.throttles)
            self._minutes.add(line.second // _MINUTE_S)
            self._newest = max(self._newest, line.second)
            for of, amount, throttle in ((series, amounts, 0 * amounts), (throttled, 0 * milliseconds, milliseconds)):
                self._sums.append(np.stack((of, np.full(len(of), line.second), amount, throttle)))
                self._size += len(of)
        elif isinstance(line, ClientLine):
            if line.number >= len(self._places):
                more = np.full(line.number + 1, -1, dtype=np.int64)
                self._places = np.concatenate((self._places, more))
            self._places[line.number] = len(self._clients)
            self._clients.append((line.kind.value, line.user, line.client_id))
        else:
            if not 0 <= line.last - line.first < _MOST_DROPPED:
                raise ValueError(line)
            why = f"the recorder dropped the seconds {line.first} to {line.last} (since 1970): {line.why}"
            for _ in range(line.last - line.first + 1):
                self._unreadable(why)

    def _pairs(self, numbers: list[int]) -> tuple[Integers, Integers]:
        """The places of the clients, and the values. Raises ``ValueError`` for a series without a name."""
        pairs = np.asarray(numbers, dtype=np.int64).reshape(-1, 2)
        series = pairs[:, 0]
        if len(series) and not (0 <= int(series.min()) <= int(series.max()) < len(self._places)):
            raise ValueError(numbers)
        places = self._places[series]
        if (places < 0).any():
            raise ValueError(numbers)
        return places, pairs[:, 1]

    def _unreadable(self, detail: str) -> None:
        self._others.append({"status": UNREADABLE, "detail": detail})

    def _take_until(self, second: int) -> Integers:
        """The sums of the seconds before this one, each pair of series and second once."""
        columns = np.concatenate([np.empty((4, 0), dtype=np.int64), *self._sums], axis=1)
        is_ready = columns[1] < second
        self._sums, columns = [columns[:, ~is_ready]], columns[:, is_ready]
        self._size = self._sums[0].shape[1]
        columns = columns[:, np.lexsort(columns[:2])]
        first = np.flatnonzero((np.diff(columns[:2], prepend=-1) != 0).any(axis=0))
        if not len(first):
            return columns
        return np.concatenate((columns[:2, first], np.add.reduceat(columns[2:], first, axis=1)))

    def _charged(self, until: int) -> pa.RecordBatch:
        series, seconds, amounts, throttles = self._take_until(until)
        # A second in which Kafka took back more than it charged, and one with a throttle alone, charge nothing.
        amounts = np.clip(amounts, 0, None)
        self._charged_minutes.update(np.unique(seconds // _MINUTE_S).tolist())
        count = len(series)
        names = (pa.array([client[place] for client in self._clients], pa.string()) for place in range(3))
        kind, user, client_id = (column.take(pa.array(series)) for column in names)
        columns = {
            "status": pa.array(np.where(amounts > MOST_AMOUNT, UNREADABLE, CHARGED), pa.string()),
            "broker": pa.repeat(pa.scalar(self._broker, pa.int32()), count),
            "kind": kind,
            "user": user,
            "client_id": client_id,
            "ts_us": pa.array(seconds * _SECOND_US + _SECOND_US - 1),
            "records": pa.array(amounts),
            "overhead": pa.repeat(pa.scalar(0, pa.int64()), count),
            "throttled": pa.array(throttles > 0),
            "tie": pa.array(series),
        }
        return with_missing(columns, ROWS.names, count)
