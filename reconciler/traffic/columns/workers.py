"""The columns of Parquet files on Spark: each worker reads parts of them, and Spark brings together what belongs together."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from reconciler.traffic.columns.counting import SCHEMA as COUNTED
from reconciler.traffic.columns.counting import counted
from reconciler.traffic.columns.parts import Part, parts_of, shares
from reconciler.traffic.columns.places import Places
from reconciler.traffic.columns.requests import SCHEMA as REQUESTS
from reconciler.traffic.columns.requests import requests
from reconciler.traffic.columns.seconds import SCHEMA as CELLS
from reconciler.traffic.columns.seconds import cells
from reconciler.traffic.judging.by_seconds import judged_keys
from reconciler.traffic.judging.exact import ExactResult, judged_placed, sampled_groups
from reconciler.traffic.judging.grouping import Grouping, Series
from reconciler.traffic.judging.placing import in_order
from reconciler.traffic.kernels.sampled_rate import Window
from reconciler.traffic.kernels.second_sums import Rule
from reconciler.traffic.kernels.seconds_judge import GroupVerdict


class ColumnFiles:
    """Files in the normal form, whose columns have been looked at before (``read_normal_form``)."""

    def __init__(self, spark: SparkSession, files: Sequence[str]) -> None:
        self._spark = spark
        self._parts = parts_of(files)

    def counted(self) -> DataFrame:
        """Rows as ``counting`` has them, several for a client."""
        # A worker adds up all it reads: the fewer shares, the fewer rows.
        most = int(self._spark.conf.get("spark.sql.shuffle.partitions") or 1)
        return self._on_workers(shares(self._parts, most), counted, COUNTED)

    def by_seconds(
        self, series: Sequence[Series], grouping: Grouping, groups: Collection[int], era: Rule
    ) -> Mapping[int, GroupVerdict]:
        """As ``judged_rows_by_seconds`` judges the rows."""
        return judged_keys(self.cells(series, grouping, groups), grouping.groups, era)

    def cells(self, series: Sequence[Series], grouping: Grouping, groups: Collection[int]) -> DataFrame:
        """Columns ``key``, as ``second_sums.keys_of`` packs groups and seconds, and ``amount``; a key can come again."""
        places = Places.of(series, grouping, groups)

        def work(parts: Iterable[Part]) -> Iterator[pa.RecordBatch]:
            return cells(parts, places)

        return self._on_workers([(part,) for part in self._parts], work, CELLS)

    def exactly(self, series: Sequence[Series], grouping: Grouping, window: Window) -> ExactResult | None:
        """As ``judged_exactly`` judges the rows; ``None`` when something else than ``tie`` has to order them."""
        if not all("tie" in part.whole for part in self._parts):
            return None
        places = Places.of(series, grouping, sampled_groups(grouping))

        def work(parts: Iterable[Part]) -> Iterator[pa.RecordBatch]:
            return requests(parts, places)

        found = self._on_workers([(part,) for part in self._parts], work, REQUESTS)
        return judged_placed(in_order(found), grouping, window)

    def _on_workers(
        self, work: Sequence[Sequence[Part]], go: Callable[[Iterable[Part]], Iterator[pa.RecordBatch]], schema: str
    ) -> DataFrame:
        def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for batch in batches:
                for number in batch.column(0).to_pylist():
                    yield from go(work[number])

        return self._spark.range(0, len(work), 1, max(1, len(work))).mapInArrow(run, schema)
