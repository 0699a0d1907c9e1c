"""The checks of a producer's rows: opened as their columns are, counted, and what the counts mean for a backtest."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from reconciler.errors import TrafficError, UsageError
from reconciler.model import (
    TRAFFIC_SCHEMA,
    CheckState,
    ContractCheck,
    ContractReport,
    Message,
    compose,
    escaped,
    flag_part,
    name_part,
)
from reconciler.text import count_of, duration, list_some
from reconciler.traffic.contract import ROWS, TIMES, Counted, RepeatedRows, count_repeats, count_rows
from reconciler.traffic.judging.verdicts import moment
from reconciler.traffic.shuffle.rows import LocalRows, Rows
from reconciler.traffic.sources.mapped import MappedFiles, normal_batches
from reconciler.traffic.sources.mapping import TrafficMapping
from reconciler.traffic.sources.normal_form import DEFAULT_MOST, EVENT, wrong_type
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


_MOST_AHEAD_S: Final = 300
"""A clock may be wrong by so much."""
_HALF_HOUR_S: Final = 1800
_ZONES: Final = range(1, 29)
"""Offsets of time zones in half hours: up to 14 h."""
_NEAR_S: Final = 120
_MOST_BACK: Final = 0.01
_REPEATS_WARN, _REPEATS_FAIL = 0.001, 0.05
_NONE: Final = Counted()


@dataclass(frozen=True, slots=True, kw_only=True)
class ContractFacts:
    """What is known of the rows. ``counted``: empty where columns or types forbid to read the rows."""

    source: str
    now: datetime.datetime
    counted: Mapping[str, Counted]
    repeats: RepeatedRows
    max_unreadable: float
    bounded: bool = False
    """Whether the rows end at a time that the user chose."""


def check_columns(schemas: Mapping[str, pa.Schema]) -> tuple[ContractCheck, ...]:
    """``columns`` and ``types`` of canonical files, which decide whether rows can be read."""
    return _columns(schemas), _types(schemas)


def contract_report(facts: ContractFacts, columns: Sequence[ContractCheck]) -> ContractReport:
    """All checks. ``columns``: those of ``check_columns``, or the one of a mapping."""
    readable = all(check.state is not CheckState.FAIL for check in columns)
    rows, times = facts.counted.get(ROWS, _NONE), facts.counted.get(TIMES)
    checks = [check(facts) if readable else _skipped(name) for name, check in _CHECKS.items()]
    return ContractReport(
        source=facts.source,
        schema_version=TRAFFIC_SCHEMA.version,
        rows=rows.rows,
        start=None if times is None else moment(times.low),
        end=None if times is None else moment(times.high),
        checks=(*columns, *checks),
    )


def _columns(schemas: Mapping[str, pa.Schema]) -> ContractCheck:
    required = {column.name for column in TRAFFIC_SCHEMA.columns if column.required}
    optional = {column.name for column in TRAFFIC_SCHEMA.columns if not column.required}
    similar: dict[str, str] = {}
    others: set[str] = set()
    for file, schema in schemas.items():
        if missing := [column.name for column in TRAFFIC_SCHEMA.columns if column.name in required - set(schema.names)]:
            hints = [f"{name} may be {near}" for name in missing if (near := _near(name, schema.names))]
            return _check(
                "columns",
                CheckState.FAIL,
                compose(
                    "Missing columns: {missing}.{hint} Add them, or pass {mapping}.",
                    missing=name_part(", ".join(missing)),
                    hint=compose(" {hints}.", hints=name_part(escaped(", ".join(hints)))) if hints else "",
                    mapping=flag_part("--mapping"),
                ),
                example=file,
            )
        similar |= {name: near for name in optional - set(schema.names) if (near := _near(name, schema.names))}
        others |= set(schema.names) - required - optional
    if similar:
        name, near = min(similar.items())
        message = compose(
            "The column {near} may be {name}, and is ignored. Rename it, or pass {mapping}.",
            near=name_part(escaped(near)),
            name=name_part(name),
            mapping=flag_part("--mapping"),
        )
        return _check("columns", CheckState.WARN, message, example=near)
    ignored = f" {count_of(len(others), 'other column')} ignored." if others else ""
    return _check("columns", CheckState.PASSED, f"All required columns are there.{ignored}")


def _near(wanted: str, names: Collection[str]) -> str | None:
    """A name of the schema in another spelling."""
    return next((name for name in sorted(names) if name != wanted and _plain(name) == _plain(wanted)), None)


def _plain(name: str) -> str:
    return "".join(char for char in name.lower() if char.isalnum())


def _types(schemas: Mapping[str, pa.Schema]) -> ContractCheck:
    wall = None
    for file, schema in schemas.items():
        for name, kind, wanted in wrong_type(schema):
            message = compose(
                "The column {name} has the type {kind}, and needs {wanted}.",
                name=name_part(name),
                kind=name_part(str(kind)),
                wanted=name_part(wanted),
            )
            return _check("types", CheckState.FAIL, message, example=file)
        if "ts" in schema.names and getattr(schema.field("ts").type, "tz", None) is None:
            wall = wall or file
    if wall is not None:
        return _check("types", CheckState.WARN, "The times of ts have no time zone, and are read as UTC.", example=wall)
    return _check("types", CheckState.PASSED, "The columns have the types of the schema.")


def _check(name: str, state: CheckState, message: str, *, rows: int = 0, example: str | None = None) -> ContractCheck:
    return ContractCheck(id=name, state=state, message=message, rows=rows, example=example)


def _skipped(name: str) -> ContractCheck:
    return _check(name, CheckState.SKIPPED, "Not checked, because the columns cannot be read.")


_Check = Callable[[ContractFacts], ContractCheck]


def _counting(name: str, state: CheckState, wrong: str, right: str, *counts: str) -> _Check:
    """A check that every row must pass. ``wrong``: follows the number of rows."""

    def check(facts: ContractFacts) -> ContractCheck:
        hits = [facts.counted[count] for count in counts or (name,) if count in facts.counted]
        rows = sum(hit.rows for hit in hits)
        if not rows:
            return _check(name, CheckState.PASSED, right)
        example = next((hit.example for hit in hits if hit.example is not None), None)
        return _check(name, state, f"{count_of(rows, 'row')} {wrong}", rows=rows, example=example)

    return check


def _rows(facts: ContractFacts) -> ContractCheck:
    rows = facts.counted.get(ROWS, _NONE).rows
    if not rows:
        return _check("rows", CheckState.FAIL, "The source has no rows.")
    return _check("rows", CheckState.PASSED, f"{count_of(rows, 'row')}.")


def _time_zone(facts: ContractFacts) -> ContractCheck:
    """Local times that are written as UTC are off by an offset of a time zone."""
    times = facts.counted.get(TIMES)
    if times is None:
        return _check("time-zone", CheckState.SKIPPED, "No row has a usable time.")
    ahead_s = (moment(times.high) - facts.now).total_seconds()
    steps = round(abs(ahead_s) / _HALF_HOUR_S)
    off_s = abs(abs(ahead_s) - steps * _HALF_HOUR_S)
    if ahead_s > 0 and steps in _ZONES and off_s <= _MOST_AHEAD_S:
        message = (
            f"The newest row is {duration(steps * _HALF_HOUR_S)} in the future: the times are probably local times, "
            "written as UTC."
        )
        return _check("time-zone", CheckState.FAIL, message, rows=times.rows, example=moment(times.high).isoformat())
    if ahead_s < 0 and steps in _ZONES and steps % 2 == 0 and off_s <= _NEAR_S and not facts.bounded:
        message = (
            f"The newest row is {duration(steps * _HALF_HOUR_S)} old. If the producer is up to date, its times are local "
            "times, written as UTC."
        )
        return _check("time-zone", CheckState.WARN, message, rows=times.rows, example=moment(times.high).isoformat())
    return _check("time-zone", CheckState.PASSED, "The newest row is not off by whole hours.")


def _time_order(facts: ContractFacts) -> ContractCheck:
    back, rows = facts.counted.get("time-order", _NONE), facts.counted.get(ROWS, _NONE).rows
    if back.rows <= _MOST_BACK * rows:
        return _check("time-order", CheckState.PASSED, "The rows are in the order of time, or nearly.", rows=back.rows)
    message = f"{count_of(back.rows, 'row')} are earlier than the row before. Sorted files are judged faster."
    return _check("time-order", CheckState.WARN, message, rows=back.rows, example=back.example)


def _repeats(facts: ContractFacts) -> ContractCheck:
    repeats = facts.repeats
    share = repeats.repeats / max(1, repeats.looked_at)
    rows = facts.counted.get(ROWS, _NONE).rows
    of = "" if repeats.looked_at >= rows else f", of {repeats.looked_at:,} rows that were compared"
    if share <= _REPEATS_WARN:
        return _check("duplicates", CheckState.PASSED, f"Next to no row is there twice{of}.", rows=repeats.repeats)
    message = f"{count_of(repeats.repeats, 'row')} ({share:.1%}{of}) equal another one in all columns, and count twice."
    example = None if repeats.first_us is None else f"ts={moment(repeats.first_us).isoformat()}"
    state = CheckState.FAIL if share > _REPEATS_FAIL else CheckState.WARN
    return _check("duplicates", state, message, rows=repeats.repeats, example=example)


def _resolution(facts: ContractFacts) -> ContractCheck:
    events, seconds, minutes, long = (
        facts.counted.get(name, _NONE).rows for name in ("events", "seconds-only", "minutes-only", "long-deltas")
    )
    if events > 1 and minutes == events:
        message = "Every request is at a whole minute: rates of a second cannot be judged."
        return _check("resolution", CheckState.FAIL, message, rows=events)
    if events > 1 and seconds == events:
        message = "Every request is at a whole second: its place within the second is not known."
        return _check("resolution", CheckState.WARN, message, rows=events)
    if long:
        message = f"{count_of(long, 'delta')} cover more than a second: they prove throttling, and never clear a quota group."
        return _check("resolution", CheckState.WARN, message, rows=long)
    return _check("resolution", CheckState.PASSED, "The times are fine enough to judge seconds.")


def _unreadable(facts: ContractFacts) -> ContractCheck:
    bad, rows = facts.counted.get("unreadable", _NONE), facts.counted.get(ROWS, _NONE).rows
    if bad.rows > facts.max_unreadable * rows:
        message: str | Message = compose(
            "The backtest cannot read {share} of the rows, and {option} allows {most}.",
            share=f"{bad.rows / rows:.1%}",
            option=flag_part("--max-unreadable"),
            most=f"{facts.max_unreadable:.4g}",
        )
        return _check("unreadable", CheckState.FAIL, message, rows=bad.rows, example=bad.example)
    return _check("unreadable", CheckState.PASSED, "The backtest can read the rows.", rows=bad.rows)


_FAIL, _WARN = CheckState.FAIL, CheckState.WARN
_CHECKS: Final[Mapping[str, _Check]] = {
    "rows": _rows,
    "nulls": _counting(
        "nulls",
        _FAIL,
        "have a null in a column that needs a value.",
        "No needed value is null.",
        *(f"null-{name}" for name in ("ts", "broker", "kind", "amount", "semantics")),
    ),
    "time-range": _counting("time-range", _FAIL, "are before 2000 or after 2099.", "All times are in the years 2000 to 2099."),
    "future": _counting("future", _FAIL, "are in the future.", "No row is in the future."),
    "time-zone": _time_zone,
    "time-order": _time_order,
    "kinds": _counting("kinds", _FAIL, "have an unknown kind.", "All kinds are known."),
    "semantics": _counting("semantics", _FAIL, "have unknown semantics.", "All semantics are known."),
    "amounts": _counting("amounts", _FAIL, "have an amount below 0 or above 4 TiB.", "All amounts are possible."),
    "overhead": _counting(
        "overhead", _WARN, "have an overhead below 0 or above their amount.", "No overhead is larger than its amount."
    ),
    "intervals": _counting(
        "intervals", _FAIL, "are deltas or means without an interval, and are not used.", "Deltas and means have their intervals."
    ),
    "event-intervals": _counting(
        "event-intervals", _WARN, "are events with an interval, which is ignored.", "Events have no interval."
    ),
    "brokers": _counting("brokers", _FAIL, "have a broker id below 0 or above 2147483647.", "All broker ids are possible."),
    "users": _counting(
        "users",
        _WARN,
        "have no user: quotas of users stay undecided for them.",
        "All users are known.",
        "no-user",
    ),
    "client-ids": _counting(
        "client-ids",
        _WARN,
        "have no client-id: quotas of client-ids stay undecided for them.",
        "All client-ids are known.",
        "no-client_id",
    ),
    "addresses": _counting(
        "addresses", _FAIL, "are connections without an address.", "All connections have an address.", "no-ip"
    ),
    "identity-encoding": _counting(
        "identity-encoding",
        _WARN,
        "have a name that looks percent-encoded, begins with User: or has control characters.",
        "Names look like those that clients send.",
    ),
    "duplicates": _repeats,
    "resolution": _resolution,
    "unreadable": _unreadable,
}
"""By id, in the order of the report."""
