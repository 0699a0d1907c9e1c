"""What only Spark can find as traffic: addresses of its file systems, and tables of its catalogs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
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

    from reconciler.traffic.seconds.days import DayRows
    from reconciler.traffic.shuffle.on_spark import SparkRows
    from reconciler.traffic.shuffle.rows import Rows
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
        from reconciler.traffic.seconds.days import has_days
        from reconciler.traffic.sources.on_spark import columns_of_dataset, list_datasets

        spark, (first, *_) = session(), self.datasets
        listing = list_datasets(spark, self.datasets)
        if listing.logs:
            return DatasetLogs(datasets=self.datasets, logs=listing.logs, between=self.between)
        is_columnar = self.mapping is None and (first.is_table or listing.format == "parquet")
        if is_columnar and has_days(columns_of_dataset(spark, first, listing)):
            return DayTotals(datasets=self.datasets, between=self.between)
        return replace(self, form=listing.format)

    def clusters(self, spark: SparkSession) -> frozenset[str]:
        """As ``Traffic.clusters``."""
        from reconciler.traffic.sources.on_spark import cluster_names

        return cluster_names(spark, self.datasets, self.form, self.mapping, self.between)

    def refused(self) -> UsageError:
        """As ``Traffic.refused``."""
        return UsageError(f"{escaped(str(self.datasets[0]))} is not on this machine: give files or a folder")

    def rows_on(self, spark: SparkSession, reading: Reading) -> SparkRows[pa.RecordBatch]:
        """As ``Traffic.rows_on``. By seconds, rows are read once."""
        from reconciler.traffic.client_seconds import sum_on_spark
        from reconciler.traffic.sources.on_spark import frame_rows

        rows = frame_rows(spark, self.datasets, self.form, self.mapping, self.between, ONE_PASS)
        return sum_on_spark(rows) if reading.by_seconds else rows

    def as_written(self, session: Callable[[], SparkSession]) -> tuple[Mapping[str, pa.Schema], Rows[pa.RecordBatch]]:
        """As ``Traffic.as_written``, of what was listed."""
        from reconciler.traffic.sources.on_spark import unconverted_rows

        schema, rows = unconverted_rows(session(), self.datasets, self.form, self.between)
        return {self.files[0]: schema}, rows


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

    def clusters(self, spark: SparkSession) -> frozenset[str]:
        """Of logs, their lines name it."""
        del spark
        return frozenset()

    def require_identity(self) -> None:
        """Each request has one."""

    def rows_on(self, spark: SparkSession, reading: Reading) -> SparkRows[pa.RecordBatch]:
        """As ``Traffic.rows_on``."""
        from reconciler.traffic.sources.on_spark import log_rows

        zone, also, kinds = reading.log_timezone, reading.also, reading.kinds
        return log_rows(spark, self.logs, log_timezone=zone, also=also, kinds=kinds, between=self.between)


class DayTotals(Traffic):
    """Per-second totals by day, which ``compact`` wrote."""

    source: ClassVar[Source] = Source.CELLS
    has_rows: ClassVar[bool] = False

    def rows_on(self, spark: SparkSession, reading: Reading) -> DayRows:
        """As ``Traffic.rows_on``: a row is a second of a client."""
        from reconciler.traffic.seconds.days import day_rows

        del reading
        return day_rows(spark, self.datasets, self.between)

    def open(self, session: Callable[[], SparkSession], reading: Reading, *, in_process: bool) -> TrafficSource:
        """As ``Traffic.open``."""
        from reconciler.traffic.seconds.days import open_days

        del in_process
        return open_days(self.rows_on(session(), reading), self.files)
