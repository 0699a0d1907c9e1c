"""Verdicts as a table of their own: Parquet in a folder or at an address, or a table of a catalog that Spark knows."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pyarrow.parquet as pq

from reconciler.errors import FileAccessError, UsageError
from reconciler.model import VERDICTS_SCHEMA, BucketVerdict, escaped
from reconciler.traffic.sources.datasets import Dataset, address_of, parse_dataset
from reconciler.traffic.spark_jobs import logged_stages
from reconciler.traffic.verdict_rows import arrow_schema, verdict_batches

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_log: Final = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class VerdictStore:
    """Where rows of verdicts go. ``folder``: on this machine; ``None``: ``dataset`` is what only Spark can write."""

    dataset: Dataset
    folder: Path | None

    @property
    def needs_spark(self) -> bool:
        """Whether this process cannot write it."""
        return self.folder is None

    def __str__(self) -> str:
        return str(self.dataset) if self.folder is None else str(self.folder)

    def require_free(self) -> None:
        """Raise ``UsageError`` for a folder of this machine that has files, or a file in its place."""
        if self.folder is None:
            return
        if self.folder.is_dir():
            if any(self.folder.iterdir()):
                raise UsageError(f"--out parquet={self.folder}: the folder is not empty. Name a new one, or remove its files")
        elif self.folder.exists():
            raise UsageError(f"--out parquet={self.folder}: a file has this name. Name a folder")

    def write(self, verdicts: Iterable[BucketVerdict]) -> None:
        """One file with these rows, complete or not there. Raises ``FileAccessError``."""
        assert self.folder is not None
        made = self.folder / f".{uuid.uuid4().hex}"
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            with pq.ParquetWriter(made, arrow_schema(VERDICTS_SCHEMA), compression="zstd") as writer:
                for batch in verdict_batches(verdicts):
                    writer.write_batch(batch)
            made.replace(self.folder / "part-00000.parquet")
        except OSError as error:
            raise FileAccessError(f"cannot write {self.folder}: {error.strerror or error}") from error
        finally:
            made.unlink(missing_ok=True)

    def require_free_on(self, spark: SparkSession) -> None:
        """As ``require_free``, also for addresses and tables. Raises ``TrafficError`` where Spark cannot look."""
        from reconciler.traffic.sources.on_spark import files_at

        self.require_free()
        if self.dataset.is_table:
            if spark.catalog.tableExists(self.dataset.name):
                names = spark.read.table(self.dataset.name).columns
                if names != [column.name for column in VERDICTS_SCHEMA.columns]:
                    raise UsageError(
                        f"--out parquet={self}: the table has other columns than those of verdicts. Name another table"
                    )
        elif self.folder is None and files_at(spark, self.dataset.name):
            raise UsageError(f"--out parquet={escaped(str(self))}: there are files already. Name a new address, or remove them")

    def write_frame(self, frame: DataFrame) -> None:
        """The rows of a frame with the columns of ``VERDICTS_SCHEMA``; those of a table replace its rows."""
        with logged_stages(_log, frame.sparkSession, "verdicts written", where=str(self)):
            self._write(frame)

    def _write(self, frame: DataFrame) -> None:
        if not self.dataset.is_table:
            # An empty folder of this machine is one that Spark would refuse.
            if self.folder is not None and self.folder.is_dir():
                self.folder.rmdir()
            frame.write.parquet(self.dataset.name)
        elif frame.sparkSession.catalog.tableExists(self.dataset.name):
            frame.write.insertInto(self.dataset.name, overwrite=True)
        else:
            frame.writeTo(self.dataset.name).create()


def parse_verdict_store(argument: str) -> VerdictStore:
    """A path, an address or ``table:NAME``. Raises ``UsageError`` for a table without a name."""
    known = parse_dataset(argument)
    if known is None:
        folder = Path(argument)
        return VerdictStore(dataset=Dataset(name=address_of(folder)), folder=folder)
    return VerdictStore(dataset=known, folder=None)
