"""Rows of a producer opened for its contract: as their columns are, before anything is left out."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from reconciler.errors import TrafficError, UsageError
from reconciler.model import CheckState, ContractCheck, ContractReport
from reconciler.text import list_some
from reconciler.traffic.contract import ROWS, Counted, RepeatedRows, count_repeats, count_rows
from reconciler.traffic.contract_checks import ContractFacts, check_columns, contract_report
from reconciler.traffic.shuffle.rows import LocalRows, Rows
from reconciler.traffic.sources.mapped import MappedFiles, normal_batches
from reconciler.traffic.sources.mapping import TrafficMapping
from reconciler.traffic.sources.normal_form import DEFAULT_MOST, EVENT
from reconciler.traffic.sources.parquet_parts import footer_of, parts_of, read_ahead
from reconciler.traffic.traffic_files import Traffic
from reconciler.traffic.traffic_source import Source

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_CLOCK: Final = datetime.timedelta(minutes=5)
"""A row is in the future when it is later than this."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Opened:
    """``rows`` is ``None`` when the columns cannot be read."""

    columns: tuple[ContractCheck, ...]
    rows: Rows[pa.RecordBatch] | None


def check_contract(
    traffic: Traffic,
    session: Callable[[], SparkSession],
    *,
    now: datetime.datetime,
    max_unreadable: float = DEFAULT_MOST,
    bounded: bool = False,
) -> ContractReport:
    """Go through the rows twice: on Spark those of datasets, in this process those of files.

    ``bounded``: the rows end at a time that the user chose. Raises ``UsageError`` for traffic of another form, and
    ``TrafficError`` for what cannot be opened.
    """
    if traffic.source not in (Source.NORMAL_FORM, Source.MAPPED):
        raise UsageError(
            "--traffic is not a table with the columns of the canonical traffic schema. For other columns, pass --mapping"
        )
    opened = _of_datasets(traffic, session()) if traffic.datasets else _of_files(traffic)
    counted: Mapping[str, Counted] = {}
    repeats = RepeatedRows()
    if opened.rows is not None:
        counted = count_rows(opened.rows, latest_us=round((now + _CLOCK).timestamp() * 1e6))
        if traffic.mapping is not None and traffic.mapping.semantics != EVENT:
            # Within one second, a mapped delta is as good as an event, and keeps its interval.
            counted = {what: count for what, count in counted.items() if what != "event-intervals"}
        repeats = count_repeats(opened.rows, counted[ROWS].rows) if ROWS in counted else repeats
    facts = ContractFacts(
        source=list_some(traffic.files, 3),
        now=now,
        counted=counted,
        repeats=repeats,
        max_unreadable=max_unreadable,
        bounded=bounded,
    )
    return contract_report(facts, opened.columns)


def _of_files(traffic: Traffic) -> _Opened:
    between = traffic.between
    if traffic.mapping is not None:
        return _mapped(traffic.mapping, lambda mapping: _mapped_files(traffic, mapping))
    schemas = {file: footer_of(file).schema.to_arrow_schema() for file in traffic.parquet}
    columns = check_columns(schemas)
    if not _are_readable(columns):
        return _Opened(columns=columns, rows=None)
    parts = parts_of(traffic.parquet, between=between)
    return _Opened(
        columns=columns, rows=LocalRows(lambda names: read_ahead(batch for part in parts for batch in part.batches(names)))
    )


def _mapped_files(traffic: Traffic, mapping: TrafficMapping) -> Rows[pa.RecordBatch]:
    files, between = MappedFiles.of(traffic.parquet, mapping), traffic.between

    def batches(_: Sequence[str]) -> Iterator[pa.RecordBatch]:
        normal = normal_batches(files.parts, mapping)
        return normal if between is None else map(between.rows_around, normal)

    return LocalRows(batches)


def _of_datasets(traffic: Traffic, spark: SparkSession) -> _Opened:
    from reconciler.traffic.sources.on_spark import list_datasets, unconverted_rows

    listing = list_datasets(spark, traffic.datasets)
    if listing.logs:
        raise UsageError("The address has request logs. Their columns are not those of a producer")
    mapping = traffic.mapping
    if mapping is not None:
        return _mapped(mapping, lambda _: unconverted_rows(spark, traffic.datasets, listing.format, mapping, traffic.between)[1])
    schema, rows = unconverted_rows(spark, traffic.datasets, listing.format, None, traffic.between)
    columns = check_columns({traffic.files[0]: schema})
    return _Opened(columns=columns, rows=rows if _are_readable(columns) else None)


def _mapped(mapping: TrafficMapping, open_rows: Callable[[TrafficMapping], Rows[pa.RecordBatch]]) -> _Opened:
    """Without a column that the mapping names, the rows cannot be read."""
    try:
        rows = open_rows(mapping)
    except TrafficError as error:
        return _Opened(columns=(ContractCheck(id="columns", state=CheckState.FAIL, message=str(error)),), rows=None)
    message = "The columns that the mapping names are there."
    return _Opened(columns=(ContractCheck(id="columns", state=CheckState.PASSED, message=message),), rows=rows)


def _are_readable(columns: Sequence[ContractCheck]) -> bool:
    return all(check.state is not CheckState.FAIL for check in columns)
