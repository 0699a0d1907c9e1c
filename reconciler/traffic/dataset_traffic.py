"""What only Spark can find as traffic: addresses of its file systems, and tables of its catalogs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

from reconciler.errors import UsageError
from reconciler.model import escaped
from reconciler.traffic.client_totals import ONE_PASS
from reconciler.traffic.sources.mapping import TrafficMapping
from reconciler.traffic.sources.request_log import SELF_EVIDENCE
from reconciler.traffic.traffic_files import Reading, Traffic
from reconciler.traffic.traffic_source import Source, TrafficSource

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

    from reconciler.traffic.seconds.day_ledger import LakeDay
    from reconciler.traffic.seconds.day_traffic import DayRows
    from reconciler.traffic.shuffle.on_spark import SparkRows
    from reconciler.traffic.sources.datasets import Dataset


@dataclass(frozen=True, slots=True, kw_only=True)
class Datasets(Traffic):
    """Addresses and tables. ``listed`` finds what they have: rows in the canonical schema, logs, or per-second totals by day."""

    source: ClassVar[Source] = Source.NORMAL_FORM
    takes_time: ClassVar[bool] = True

    form: str | None = None
    """The format of files, when they are listed."""

    @classmethod
    def named(cls, datasets: Sequence[Dataset], mapping: TrafficMapping | None) -> Traffic:
        """The datasets. A ``mapping`` names their columns."""
        return (cls if mapping is None else MappedDatasets)(datasets=tuple(datasets), mapping=mapping)

    def listed(self, session: Callable[[], SparkSession]) -> Traffic:
        """As ``Traffic.listed``. Raises ``TrafficError`` and ``UsageError``."""
        from reconciler.traffic.seconds.day_traffic import find_days
        from reconciler.traffic.sources.on_spark import list_datasets

        if (days := find_days(session(), self.datasets, self.between)) is not None:
            return DayTotals(datasets=self.datasets, days=days)
        listing = list_datasets(session(), self.datasets)
        if listing.logs:
            return DatasetLogs(datasets=self.datasets, logs=listing.logs, between=self.between)
        return replace(self, form=listing.format)

    def refused(self) -> UsageError:
        """As ``Traffic.refused``."""
        return UsageError(f"{escaped(str(self.datasets[0]))} is not on this machine: give files or a folder")

    def rows_on(self, spark: SparkSession, reading: Reading) -> SparkRows[pa.RecordBatch]:
        """As ``Traffic.rows_on``. By seconds, rows are read once."""
        from reconciler.traffic.client_seconds import sum_on_spark
        from reconciler.traffic.sources.on_spark import frame_rows

        rows = frame_rows(spark, self.datasets, self.form, self.mapping, self.between, ONE_PASS)
        return sum_on_spark(rows) if reading.by_seconds else rows


class MappedDatasets(Datasets):
    """The same with other columns."""

    source: ClassVar[Source] = Source.MAPPED


class DatasetLogs(Datasets):
    """Request logs at addresses."""

    source: ClassVar[Source] = Source.LOGS

    @property
    def own_columns(self) -> tuple[str, ...]:
        """As ``Traffic.own_columns``."""
        return SELF_EVIDENCE

    def require_identity(self) -> None:
        """Each request has one."""

    def rows_on(self, spark: SparkSession, reading: Reading) -> SparkRows[pa.RecordBatch]:
        """As ``Traffic.rows_on``."""
        from reconciler.traffic.sources.on_spark import log_rows

        zone, also, kinds = reading.log_timezone, reading.also, reading.kinds
        return log_rows(spark, self.logs, log_timezone=zone, also=also, kinds=kinds, between=self.between)


@dataclass(frozen=True, slots=True, kw_only=True)
class DayTotals(Traffic):
    """Per-second totals by day. ``days``: as ``find_days`` has them."""

    source: ClassVar[Source] = Source.CELLS
    has_rows: ClassVar[bool] = False

    days: tuple[DayRows, Sequence[LakeDay]]

    def open(self, session: Callable[[], SparkSession], reading: Reading, *, in_process: bool) -> TrafficSource:
        """As ``Traffic.open``."""
        from reconciler.traffic.seconds.day_traffic import DaysTraffic

        del session, reading, in_process
        return DaysTraffic(*self.days)
