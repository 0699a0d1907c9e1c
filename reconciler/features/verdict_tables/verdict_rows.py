"""Verdicts and recommendations as rows of the published tables (``model.VERDICTS_SCHEMA``, ``model.RECOMMENDATIONS_SCHEMA``).

A table is Parquet in a folder or at an address, or a table of a catalog that Spark knows.
"""

from __future__ import annotations

import functools
import logging
import operator
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from reconciler.errors import FileAccessError, UsageError
from reconciler.formats import canonical_bytes, entity_to_json
from reconciler.model import RECOMMENDATIONS_SCHEMA, VERDICTS_SCHEMA, BucketVerdict, Entity, FrameSchema, escaped
from reconciler.traffic import Dataset, address_of, files_at, frame_of_table, logged_stages, parse_dataset

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_TYPES: Final[Mapping[str, pa.DataType]] = {
    "string": pa.string(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "double": pa.float64(),
    "boolean": pa.bool_(),
    "timestamp": pa.timestamp("us", "UTC"),
    "map<string,string>": pa.map_(pa.string(), pa.field("value", pa.string(), nullable=False)),
    "array<double>": pa.list_(pa.float64()),
}


def arrow_schema(schema: FrameSchema) -> pa.Schema:
    """The columns as Arrow and Parquet have them; name, version and meanings are metadata."""
    fields = [
        pa.field(column.name, _TYPES[column.type], nullable=column.nullable, metadata={"comment": column.meaning})
        for column in schema.columns
    ]
    return pa.schema(fields, metadata={"kafka-quotas.schema": schema.name, "kafka-quotas.schema-version": schema.version})


def verdict_table(verdicts: Iterable[BucketVerdict]) -> pa.Table:
    """Return one row each, in their order."""
    return pa.Table.from_pylist(list(map(_verdict, verdicts)), schema=arrow_schema(VERDICTS_SCHEMA))


def recommendation_table(verdicts: Iterable[BucketVerdict]) -> pa.Table:
    """Return one row for each quota group with a recommended value. ``verdicts``: worst first."""
    groups: dict[tuple[object, ...], list[BucketVerdict]] = {}
    for verdict in verdicts:
        if not verdict.undecided and verdict.advice.recommended is not None:
            groups.setdefault((verdict.key, verdict.name), []).append(verdict)
    return pa.Table.from_pylist(list(map(_recommendation, groups.values())), schema=arrow_schema(RECOMMENDATIONS_SCHEMA))


def rows_as_frame(spark: SparkSession, rows: pa.Table, schema: FrameSchema) -> DataFrame:
    """Return a frame of the session with these rows, and the meanings of the columns as their comments."""
    from pyspark.sql.types import StructType

    return frame_of_table(spark, rows, StructType.fromJson(schema.to_spark()))


_PATHS: Final = {
    "limit_before": "limits.lowest_before", "limit_after": "limits.after", "requests": "recorded.requests",
    "uncharged": "recorded.uncharged", "throttled_then": "recorded.throttled", "throttled_before": "replay.before",
    "throttled_after": "replay.throttled", "refused": "replay.refused", "active_seconds": "over.active",
    "seconds_certain": "over.certain", "seconds_over": "over.seconds", "seconds_possible": "over.possible",
    "seconds_over_before": "over.before", "share_over": "over.share", "first": "over.first", "longest_s": "over.longest_s",
    "longest_from": "over.longest_from", "peak": "peak.rate", "censored": "recorded.censored", "peak_bound": "peak.bound",
    "safe": "advice.safe", "recommended": "advice.recommended",
    "recommended_reason": "advice.reason", "margin": "advice.margin", "broker": "broker", "changed": "changed",
    "verdict": "verdict", "reason": "reason", "undecided": "undecided", "headroom": "headroom",
}  # fmt: skip
_READ: Final = {name: operator.attrgetter(path) for name, path in _PATHS.items() if not path.startswith("replay.")}
_REPLAYED: Final = {name: operator.attrgetter(path) for name, path in _PATHS.items() if path.startswith("replay.")}


def _verdict(verdict: BucketVerdict) -> dict[str, Any]:
    """A tag that is absent is null."""
    replayed = {name: None if verdict.replay is None else read(verdict) for name, read in _REPLAYED.items()}
    return {
        "key": verdict.key,
        "user": verdict.name.user or None,
        "client_id": verdict.name.client_id or None,
        "tags": list(verdict.name.other),
        "entity": _entity(verdict.limits.entity),
        "limits_before": list(verdict.limits.before),
        "clients": max(1, len(verdict.recorded.members)),
        **{name: read(verdict) for name, read in _READ.items()},
        **replayed,
    }


def _recommendation(everywhere: Sequence[BucketVerdict]) -> dict[str, Any]:
    limits = [limit for verdict in everywhere if (limit := verdict.limits.lowest_before) is not None]
    return {
        **_verdict(everywhere[0]),
        "brokers": len(everywhere),
        "changed": any(verdict.changed for verdict in everywhere),
        "limit_before": min(limits, default=None),
        "peak": max(verdict.peak.rate for verdict in everywhere),
    }


@functools.lru_cache(maxsize=4096)
def _entity(entity: Entity | None) -> str | None:
    return None if entity is None else canonical_bytes(entity_to_json(entity)).decode()


_log: Final = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class VerdictStore:
    """Where rows of verdicts go. ``folder``: on this machine. ``None``: only Spark can write to ``dataset``."""

    dataset: Dataset
    folder: Path | None

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

    def write(self, rows: pa.Table) -> None:
        """Write one file to the folder, complete or not there. Raises ``FileAccessError``."""
        assert self.folder is not None
        made = self.folder / f".{uuid.uuid4().hex}"
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            pq.write_table(rows, made, compression="zstd")
            made.replace(self.folder / "part-00000.parquet")
        except OSError as error:
            raise FileAccessError(f"cannot write {self.folder}: {error.strerror or error}") from error
        finally:
            made.unlink(missing_ok=True)

    def require_free_on(self, spark: SparkSession) -> None:
        """Raise ``UsageError`` for an address with files or a table of other rows, ``TrafficError`` where Spark cannot look."""
        if not self.dataset.is_table:
            if files_at(spark, self.dataset.name):
                raise UsageError(
                    f"--out parquet={escaped(str(self))}: there are files already. Name a new address, or remove them"
                )
        elif spark.catalog.tableExists(self.dataset.name):
            names = spark.read.table(self.dataset.name).columns
            if names != [column.name for column in VERDICTS_SCHEMA.columns]:
                raise UsageError(f"--out parquet={self}: the table has other columns than those of verdicts. Name another table")

    def write_on(self, spark: SparkSession, rows: pa.Table) -> None:
        """Write the rows to the address, or put them in place of those of the table."""
        frame = rows_as_frame(spark, rows, VERDICTS_SCHEMA)
        with logged_stages(_log, spark, "verdicts written", where=str(self)):
            if not self.dataset.is_table:
                frame.write.parquet(self.dataset.name)
            elif spark.catalog.tableExists(self.dataset.name):
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
