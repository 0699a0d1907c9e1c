"""Logs of brokers as traffic: of requests, or of quota violations."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Final

from reconciler.logs import log_event
from reconciler.traffic.shuffle.rows import LocalRows
from reconciler.traffic.sources.line_time import check_zone
from reconciler.traffic.sources.log_evidence import mark_copies
from reconciler.traffic.sources.log_files import find_logs, log_parts
from reconciler.traffic.sources.request_log import SELF_EVIDENCE, parse_lines, require_request_lines
from reconciler.traffic.sources.topic_events import charge_known_topics
from reconciler.traffic.traffic_files import Reading, Traffic
from reconciler.traffic.traffic_source import Source

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

    from reconciler.traffic.shuffle.on_spark import SparkRows

_log: Final = logging.getLogger(__name__)
_ROWS_A_BATCH: Final = 1 << 16


class RequestLogs(Traffic):
    """Request logs of brokers, whose lines are read once."""

    source: ClassVar[Source] = Source.LOGS

    @staticmethod
    def claims(path: Path) -> bool:
        """Everything: a log may have any name."""
        del path
        return True

    @classmethod
    def of(cls, arguments: Sequence[str]) -> Traffic:
        """As ``Traffic.of``."""
        return cls(logs=find_logs(arguments))

    @property
    def own_columns(self) -> tuple[str, ...]:
        """As ``Traffic.own_columns`` for the evidence of its cluster and of its other brokers."""
        return SELF_EVIDENCE

    def require_identity(self) -> None:
        """Each request has one."""

    def look(self, log_timezone: str) -> None:
        """As ``Traffic.look``."""
        require_request_lines(self.logs, check_zone(log_timezone))

    def batches(self, reading: Reading) -> Iterator[pa.RecordBatch]:
        """As ``Traffic.batches``."""
        zone, kinds, also = reading.log_timezone, reading.kinds, reading.also
        for log in log_parts(self.logs, 1):
            log_event(_log, "file opened", file=log.path, broker=log.broker, begin=log.begin, end=log.end)
            yield from parse_lines(log.lines(), broker=log.broker, file=log.uri, zone=zone, kinds=kinds, also=also)

    def rows_here(self, reading: Reading) -> LocalRows[pa.RecordBatch]:
        """As ``Traffic.rows_here``. Copies are marked, and topics have what they cost."""
        batches = list(self.batches(reading))
        if batches:
            import pyarrow as pa

            batches = mark_copies(pa.Table.from_batches(batches).combine_chunks()).to_batches(_ROWS_A_BATCH)
            batches = charge_known_topics(batches)
        return LocalRows(lambda _: batches)

    def rows_on(self, spark: SparkSession, reading: Reading) -> SparkRows[pa.RecordBatch]:
        """As ``Traffic.rows_on``."""
        from reconciler.traffic.sources.on_spark import request_log_rows

        return request_log_rows(spark, self.logs, log_timezone=reading.log_timezone, also=reading.also, kinds=reading.kinds)
