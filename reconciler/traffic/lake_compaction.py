"""``compact --out``: the days of recorded traffic into a dataset or a table, once or as new traffic comes."""

from __future__ import annotations

import datetime
import functools
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import reconciler
from reconciler.errors import UsageError
from reconciler.model import escaped
from reconciler.traffic.lake_sources import list_sources, require_compactable
from reconciler.traffic.seconds.day_folders import DayFolders
from reconciler.traffic.seconds.day_ledger import DayRange, oldest_day
from reconciler.traffic.seconds.day_table import DayTable
from reconciler.traffic.seconds.day_writer import DayStore, WriteOptions, WrittenDays, write_days
from reconciler.traffic.seconds.lake_files import LakeFiles
from reconciler.traffic.sources.datasets import address_of, parse_dataset
from reconciler.traffic.sources.parquet_parts import Between

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from reconciler.traffic.traffic_files import Traffic

PROGRAM: Final = f"kafka-quotas {reconciler.__version__}"


@dataclass(frozen=True, slots=True, kw_only=True)
class LakeRequest:
    """``out``: as ``--out`` names it. ``since`` and ``until``: the days to write, from the first on and before the other."""

    out: str
    now: datetime.datetime
    since: datetime.datetime | None = None
    until: datetime.datetime | None = None
    keep_days: int | None = None
    replace: bool = False
    log_timezone: str = "UTC"
    max_unreadable: float = 1.0

    @property
    def days(self) -> DayRange:
        """The days that may be written. Raises ``UsageError`` for times that are not the begin of a day."""
        oldest = oldest_day(self.now.astimezone(datetime.UTC).date(), self.keep_days)
        return DayRange(first=_day(self.since, "--since"), end=_day(self.until, "--until"), oldest=oldest)

    @property
    def between(self) -> Between | None:
        """The time of these days, for tables."""
        if self.since is None and self.until is None:
            return None
        first, end = self.since or datetime.datetime.fromtimestamp(0, datetime.UTC), self.until or self.now
        # The day's first microsecond belongs to it, that of the next day does not.
        return Between(after_us=round(first.timestamp() * 1e6) - 1, until_us=round(end.timestamp() * 1e6) - 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class LakeResult:
    """``written``: what was written. ``empty``: logs without a whole line."""

    written: WrittenDays
    empty: tuple[str, ...] = ()


def compact_days(spark: SparkSession, traffic: Traffic, request: LakeRequest) -> LakeResult:
    """One run. Raises as ``write_days``, and ``UsageError`` for traffic without requests."""
    require_compactable(traffic)
    days = request.days
    store = open_store(spark, request.out)
    listed = list_sources(spark, traffic, between=request.between)
    options = WriteOptions(
        program=PROGRAM,
        days=days,
        replace=request.replace,
        max_unreadable=request.max_unreadable,
        now=request.now,
        gone=listed.gone,
    )
    open_rows = functools.partial(listed.open_rows, spark, request.log_timezone)
    written = write_days(spark, store, [*listed.sources.values()], open_rows, options)
    return LakeResult(written=written, empty=listed.empty)


def open_store(spark: SparkSession, out: str) -> DayStore:
    """Where ``--out`` names. Raises ``UsageError`` for an argument that Spark cannot write to."""
    dataset = parse_dataset(out)
    if dataset is None:
        return DayFolders(spark=spark, files=LakeFiles(address_of(Path(out))))
    if dataset.broker is not None:
        raise UsageError(f"--out {escaped(out)}: write the address without a broker")
    if dataset.is_table:
        return DayTable(spark=spark, name=dataset.name)
    return DayFolders(spark=spark, files=LakeFiles(dataset.name))


def _day(given: datetime.datetime | None, option: str) -> str:
    if given is None:
        return ""
    moment = given.astimezone(datetime.UTC)
    if moment.time() != datetime.time():
        raise UsageError(f"{option} {given.isoformat()}: with --out, days are written whole. Write a midnight of UTC")
    return moment.date().isoformat()
