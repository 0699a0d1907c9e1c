"""``compact --follow`` on Structured Streaming: new log files, or records of a Kafka topic, are added to a dataset.

Spark's checkpoint has the files or offsets of each batch, and a batch that was cut short comes again with the same ones. The
manifest that names a batch's totals has the batch's number. So a batch that is there already is passed over, and its totals are
in the dataset once, whenever the job is killed.
"""

from __future__ import annotations

import contextlib
import datetime
import functools
import json
import logging
import signal
import threading
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pyspark.errors import PySparkException
from pyspark.sql import functions as F

from reconciler.errors import ReconcilerError, TrafficError, UsageError
from reconciler.formats import document_text
from reconciler.logs import log_event
from reconciler.model import escaped
from reconciler.traffic.lake_compaction import PROGRAM, LakeRequest, ListedSources, open_store, some_sources
from reconciler.traffic.seconds.day_ledger import STREAM, LakeLedger, LakeSource, StreamPosition
from reconciler.traffic.seconds.day_writer import DayStore, SourceRows, WriteOptions, WrittenDays, write_days
from reconciler.traffic.seconds.lake_files import LakeFiles
from reconciler.traffic.sources.datasets import KAFKA, Dataset, KafkaTopic, address_of
from reconciler.traffic.sources.log_evidence import CLUSTER
from reconciler.traffic.sources.normal_form import COLUMNS
from reconciler.traffic.sources.on_spark import SOURCE_COLUMN, form_of, sourced_rows
from reconciler.traffic.spark_jobs import reason

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from reconciler.traffic.traffic_files import Traffic

_log: Final = logging.getLogger(__name__)
_MARKER: Final = "_kafka-quotas.json"
_SPARK_FILES: Final = frozenset({"commits", "metadata", "offsets", "sources"})
_FILE_COLUMNS: Final = "path string, modificationTime timestamp, length long, content binary"
_POLL_S: Final = 0.2


@dataclass(frozen=True, slots=True, kw_only=True)
class FollowOptions:
    """``once``: end when everything that is there has been read. ``consumer``: settings of Kafka's consumer."""

    checkpoint: str
    once: bool = False
    every_s: float = 60.0
    consumer: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Followed:
    """What a stream did until it ended. ``signal``: what ended it; 0: there was nothing more to read."""

    batches: int
    requests: int
    late: int
    signal: int


def follow(
    spark: SparkSession,
    source: Traffic | KafkaTopic,
    request: LakeRequest,
    options: FollowOptions,
    *,
    clock: Callable[[], datetime.datetime],
    tell: Callable[[str], None],
) -> Followed:
    """Write what comes until a signal, or with ``once`` until nothing is left.

    Raises ``TrafficError`` for traffic that cannot be used and for a checkpoint of another job, and as ``write_days``.
    """
    store = open_store(spark, request.out)
    name = str(source) if isinstance(source, KafkaTopic) else _address(source).name
    stream = _claim(LakeFiles(_place(options.checkpoint)), name, request.out)
    _require_one_checkpoint(store.load(), stream, options.checkpoint)
    stream = replace(stream, checkpoint=options.checkpoint)
    run = _Batches(spark=spark, store=store, source=source, request=request, stream=stream, clock=clock, tell=tell)
    frame = _topic_frame(spark, source, options) if isinstance(source, KafkaTopic) else _file_frame(spark, _address(source))
    writer = frame.writeStream.foreachBatch(run.write).option("checkpointLocation", _place(options.checkpoint))
    writer = writer.trigger(availableNow=True) if options.once else writer.trigger(processingTime=f"{options.every_s} seconds")
    try:
        query = writer.start()
    except PySparkException as error:
        raise TrafficError(f"{escaped(name)} cannot be followed: {escaped(reason(str(error)))}") from None
    with _signals() as ended:
        while query.isActive and not ended.wait(_POLL_S):
            pass
        with run.between_batches:
            query.stop()
    _raise_failure(query, run, name)
    return Followed(batches=run.batches, requests=run.requests, late=run.late, signal=ended.number)


def _raise_failure(query: StreamingQuery, run: _Batches, name: str) -> None:
    if run.failure is not None:
        raise run.failure
    failed = query.exception()
    if failed is not None:
        raise TrafficError(f"{escaped(name)} cannot be followed any further: {escaped(reason(str(failed)))}")


class _Batches:
    """Writes one batch after the other."""

    def __init__(
        self,
        *,
        spark: SparkSession,
        store: DayStore,
        source: Traffic | KafkaTopic,
        request: LakeRequest,
        stream: StreamPosition,
        clock: Callable[[], datetime.datetime],
        tell: Callable[[str], None],
    ) -> None:
        self._spark, self._store, self._source, self._request = spark, store, source, request
        self._stream, self._clock, self._tell = stream, clock, tell
        self.between_batches = threading.Lock()
        """Held while a batch is written, so that the query ends between two."""
        self.failure: ReconcilerError | None = None
        self.batches = self.requests = self.late = 0

    def write(self, frame: DataFrame, batch: int) -> None:
        """The batch of this number."""
        with self.between_batches:
            try:
                written = self._written(frame, batch)
            except ReconcilerError as error:
                self.failure = error
                raise
        self.batches += 1
        self.requests += written.requests
        self.late += written.added_late
        days = f" of {', '.join(written.dates)}" if written.dates else ""
        self._tell(f"batch {batch}: {written.requests:,} requests{days}")
        log_event(_log, "batch written", level=logging.INFO, batch=batch, requests=written.requests, days=written.dates)

    def _written(self, frame: DataFrame, batch: int) -> WrittenDays:
        request = replace(self._request, now=self._clock())
        options = WriteOptions(
            program=PROGRAM,
            days=request.days,
            max_unreadable=request.max_unreadable,
            now=request.now,
            stream=replace(self._stream, batch=batch),
        )
        if isinstance(self._source, KafkaTopic):
            source = LakeSource(id=self._stream.id, name=str(self._source), size=batch, kind=STREAM)
            return write_days(self._store, [source], functools.partial(_topic_rows, frame, source), options)
        listed = self._listed(frame)
        if listed is None:
            return WrittenDays()
        open_rows = functools.partial(listed.open_rows, self._spark, request.log_timezone)
        return write_days(self._store, [*listed.sources.values()], open_rows, options)

    def _listed(self, frame: DataFrame) -> ListedSources | None:
        """The files of a batch that have traffic: other files may come to the same place."""
        assert not isinstance(self._source, KafkaTopic)
        names = sorted(row["path"] for row in frame.select("path").collect())
        wanted = [name for name in names if form_of(name) is not None or ".log" in name.rpartition("/")[2]]
        return some_sources(self._source, wanted) if wanted else None


@contextlib.contextmanager
def _topic_rows(
    frame: DataFrame, source: LakeSource, _: Sequence[LakeSource]
) -> Iterator[tuple[SourceRows, Mapping[str, LakeSource]]]:
    fields = ", ".join(f"`{name}` {kind}" for name, kind in (*COLUMNS, (CLUSTER, "string")))
    record = F.from_json(F.col("value").cast("string"), fields)
    rows = frame.select(record.alias("record")).select("record.*").withColumn(SOURCE_COLUMN, F.lit(source.name))
    yield sourced_rows(rows, None, escaped(source.name)), {source.name: source}


def _topic_frame(spark: SparkSession, topic: KafkaTopic, options: FollowOptions) -> DataFrame:
    reader = spark.readStream.format("kafka").option("kafka.bootstrap.servers", topic.servers).option("subscribe", topic.name)
    for key, value in options.consumer:
        reader = reader.option(f"kafka.{key}", value)
    try:
        return reader.option("startingOffsets", "earliest").option("failOnDataLoss", "true").load()
    except PySparkException as error:
        text = str(error)
        if "Failed to find data source: kafka" in text or "Failed to find data source: `kafka`" in text:
            raise TrafficError(
                f"{escaped(str(topic))} needs Spark's connector for Kafka: --conf spark.jars.packages=org.apache.spark:"
                f"spark-sql-kafka-0-10_2.13:{spark.version}"
            ) from None
        raise TrafficError(f"{escaped(str(topic))} cannot be read: {escaped(reason(text))}") from None


def _file_frame(spark: SparkSession, dataset: Dataset) -> DataFrame:
    """The addresses of files as they come. Nothing of them is read for that."""
    reader = spark.readStream.format("binaryFile").schema(_FILE_COLUMNS).option("recursiveFileLookup", "true")
    try:
        return reader.load(dataset.name).select("path")
    except PySparkException as error:
        first = str(error).strip().splitlines()[0]
        raise TrafficError(f"recorded traffic {escaped(dataset.name)} cannot be read: {escaped(first)}") from None


def _address(traffic: Traffic) -> Dataset:
    if len(traffic.datasets) != 1 or traffic.datasets[0].is_table:
        raise UsageError("--follow reads one folder, one address, or kafka://HOST:PORT/TOPIC. Give --traffic once")
    return traffic.datasets[0]


def _place(checkpoint: str) -> str:
    return checkpoint if "://" in checkpoint else address_of(Path(checkpoint))


def _claim(files: LakeFiles, source: str, out: str) -> StreamPosition:
    """The stream of a checkpoint, which gets a file with its name. Raises ``TrafficError`` for that of another job."""
    text = files.read(_MARKER)
    if text is None:
        if _SPARK_FILES & set(files.names("")):
            raise TrafficError(
                f"the checkpoint {escaped(files.root)} is that of another Spark job. Give a folder of its own with --checkpoint"
            )
        document: dict[str, Any] = {"id": uuid.uuid4().hex, "source": source, "out": out}
        if files.create(_MARKER, document_text(document).encode()):
            return StreamPosition(id=str(document["id"]), batch=-1, source=source)
        text = files.read(_MARKER) or b"{}"
    known: dict[str, Any] = json.loads(text)
    if (known.get("source"), known.get("out")) != (source, out):
        raise TrafficError(
            f"the checkpoint {escaped(files.root)} is that of {escaped(str(known.get('source')))} into "
            f"{escaped(str(known.get('out')))}. Give a folder of its own with --checkpoint"
        )
    return StreamPosition(id=str(known["id"]), batch=-1, source=source)


def _require_one_checkpoint(ledger: LakeLedger, stream: StreamPosition, checkpoint: str) -> None:
    """Raise ``TrafficError`` when records of a topic would be read again. Files are known by what they contain."""
    for earlier in ledger.streams.values():
        if earlier.id != stream.id and earlier.source == stream.source and stream.source.startswith(f"{KAFKA}:"):
            raise TrafficError(
                f"{escaped(stream.source)} is in the dataset already, by the checkpoint {escaped(earlier.checkpoint)}. With "
                f"{escaped(checkpoint)}, its records would count twice. Give that one with --checkpoint"
            )


class _Ended:
    """Set by a signal."""

    def __init__(self) -> None:
        self._event = threading.Event()
        self.number = 0

    def by(self, number: int, _: object) -> None:
        """A handler."""
        self.number = number
        self._event.set()

    def wait(self, seconds: float) -> bool:
        """Whether a signal came, waiting that long for it."""
        return self._event.wait(seconds)


@contextlib.contextmanager
def _signals() -> Iterator[_Ended]:
    ended = _Ended()
    if threading.current_thread() is not threading.main_thread():
        yield ended
        return
    before = {number: signal.signal(number, ended.by) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield ended
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
