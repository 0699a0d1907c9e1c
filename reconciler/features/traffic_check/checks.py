"""Whether rows of a producer keep to the canonical traffic schema: one check for each thing that can be wrong.

A share of the rows is counted at a time. ``Totals`` adds the counts up, in this process and on Spark.
"""

from __future__ import annotations

import datetime
import enum
import functools
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from reconciler.documents import VALUES, Document, row
from reconciler.model import TRAFFIC_SCHEMA, Severity, display_name, escaped
from reconciler.render import Block, Column, Style, line, table
from reconciler.text import count_of, percent_text
from reconciler.traffic import (
    CHARGED,
    MOST_AMOUNT,
    OF_METRICS,
    Flags,
    Integers,
    Kind,
    Rows,
    Totals,
    are_known,
    canonical_rows,
    integers,
    row_hashes,
    times_of,
    wrong_type,
)

_CLOCK: Final = datetime.timedelta(minutes=5)
"""A row is in the future when it is later than this."""
_LONGEST: Final = 200
_SECOND_US, _MINUTE_US = 1_000_000, 60_000_000
_MOST_HASHES: Final = 1_000_000
"""Of more rows than this, repeated ones are looked for in a share: all rows of some hashes."""
_REPEATS_WARN, _REPEATS_FAIL = 0.001, 0.05
_SEMANTICS: Final = ("event", *OF_METRICS)
_ENCODED: Final = r"%[0-9A-Fa-f]{2}|^User:|[\x00-\x1f\x7f]"
_COLUMNS: Final = tuple(column.name for column in TRAFFIC_SCHEMA.columns)
_REQUIRED: Final = tuple(column.name for column in TRAFFIC_SCHEMA.columns if column.required)
_FOLDS: Final = {"rows": "sum", "low": "min", "high": "max"}
_COUNTS: Final = pa.schema([("what", pa.string()), ("example", pa.string()), *((name, pa.int64()) for name in _FOLDS)])
_REPEATS: Final = pa.schema([("hash", pa.int64()), ("rows", pa.int64()), ("low", pa.int64())])


class CheckState(enum.StrEnum):
    """The result of one check."""

    PASSED = "pass"
    """Checks without a violation."""
    WARN = "warn"
    """The backtest reads the rows, and they may not mean what their producer meant."""
    FAIL = "fail"
    """The backtest refuses the rows, or leaves them out."""
    SKIPPED = "skipped"
    """Not checked, because of another result or because no row is concerned."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ContractCheck:
    """One check. ``rows``: those that violate it. ``example``: a name or row of the producer. Escape it in outputs."""

    id: str
    """The name of the check."""
    state: CheckState
    """The result. A failed check means that the backtest refuses the rows or leaves them out."""
    message: str
    """The result as a sentence."""
    rows: int = 0
    """How many rows violate it."""
    example: str | None = None
    """One of these rows, a value of it, or a file, as the producer wrote it. ``None`` when there is none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ContractReport:
    """All checks of one source, in a fixed order. ``start`` and ``end``: of the rows with a usable time."""

    source: str
    """The files, addresses or tables."""
    schema_version: str
    """Version of the canonical traffic schema."""
    rows: int
    """How many rows were read. 0 when the columns cannot be read."""
    start: datetime.datetime | None
    """The first time of a row. ``None`` when no row has a usable time."""
    end: datetime.datetime | None
    """The last time of a row."""
    checks: tuple[ContractCheck, ...]
    """All checks, in a fixed order."""

    def count(self, state: CheckState) -> int:
        """Return the number of checks with this result."""
        return sum(check.state is state for check in self.checks)

    def fails(self, limit: Severity) -> bool:
        """Whether a check is as bad as ``limit``, or worse."""
        return bool(self.count(CheckState.FAIL) or (limit is not Severity.ERROR and self.count(CheckState.WARN)))


def check_rows(
    source: str,
    schemas: Mapping[str, pa.Schema],
    rows: Rows[pa.RecordBatch],
    *,
    now: datetime.datetime,
    max_unreadable: float,
) -> ContractReport:
    """Go through the rows twice. ``schemas``: of each file. Only where they are right, the rows are read."""
    columns = _check_columns(schemas), _check_types(schemas)
    if any(check.state is CheckState.FAIL for check in columns):
        message = "Not checked, because the columns cannot be read."
        ids = ("rows", *_VIOLATIONS, "duplicates", "resolution", "unreadable")
        checks = [ContractCheck(id=name, state=CheckState.SKIPPED, message=message) for name in ids]
        counts: Mapping[str, _Count] = {}
    else:
        counts = _count_rows(rows, now + _CLOCK)
        checks = list(_check_counts(counts, rows, max_unreadable))
    times = counts.get("times")
    return ContractReport(
        source=source,
        schema_version=TRAFFIC_SCHEMA.version,
        rows=counts["rows"].rows if counts else 0,
        start=None if times is None else _moment(times.low),
        end=None if times is None else _moment(times.high),
        checks=(*columns, *checks),
    )


def _check_columns(schemas: Mapping[str, pa.Schema]) -> ContractCheck:
    check = functools.partial(ContractCheck, id="columns")
    for file, schema in schemas.items():
        spelled = {_plain(name): name for name in schema.names}
        similar = {name: spelled[_plain(name)] for name in _COLUMNS if name not in schema.names and _plain(name) in spelled}
        if missing := [name for name in _REQUIRED if name not in schema.names]:
            hints = ", ".join(f"{name} may be {escaped(similar[name])}" for name in missing if name in similar)
            message = f"Missing columns: {', '.join(missing)}.{f' {hints}.' if hints else ''} Add them, or rename others."
            return check(state=CheckState.FAIL, message=message, example=file)
        if similar:
            name, near = min(similar.items())
            message = f"The column {escaped(near)} may be {name}, and is ignored. Rename it."
            return check(state=CheckState.WARN, message=message, example=near)
    others = {name for schema in schemas.values() for name in schema.names} - set(_COLUMNS)
    ignored = f" {count_of(len(others), 'other column')} ignored." if others else ""
    return check(state=CheckState.PASSED, message=f"All required columns are there.{ignored}")


def _plain(name: str) -> str:
    return "".join(char for char in name.lower() if char.isalnum())


def _check_types(schemas: Mapping[str, pa.Schema]) -> ContractCheck:
    check = functools.partial(ContractCheck, id="types")
    for file, schema in schemas.items():
        for name, kind, wanted in wrong_type(schema):
            message = f"The column {name} has the type {kind}, and needs {wanted}."
            return check(state=CheckState.FAIL, message=message, example=file)
    for file, schema in schemas.items():
        if "ts" in schema.names and schema.field("ts").type.tz is None:
            message = "The times of ts have no time zone, and are read as UTC."
            return check(state=CheckState.WARN, message=message, example=file)
    return check(state=CheckState.PASSED, message="The columns have the types of the schema.")


class _Batch:
    """Some rows, with their columns as arrays."""

    def __init__(self, batch: pa.RecordBatch, latest: datetime.datetime) -> None:
        self.batch = batch
        times = times_of(batch)
        self.timely, self.ts_us = are_known(times), integers(times)
        self.latest = latest

    def column(self, name: str) -> pa.Array:
        return self.batch.column(name) if name in self.batch.schema.names else pa.nulls(self.batch.num_rows)

    def known(self, name: str) -> Flags:
        return are_known(self.column(name))

    def numbers(self, name: str) -> Integers:
        """0 where they are null or missing."""
        return integers(pc.cast(self.column(name), pa.int64(), safe=False))

    def outside(self, name: str, most: int | Integers) -> Flags:
        return self.known(name) & ((self.numbers(name) < 0) | (self.numbers(name) > most))

    def has_word(self, name: str, words: Iterable[str]) -> Flags:
        return _flags(pc.is_in(self.column(name).cast(pa.string()), value_set=pa.array(list(map(str, words)))))


def _flags(column: pa.Array) -> Flags:
    return integers(column).astype(np.bool_)


_PASSED, _WARN, _FAIL = CheckState.PASSED, CheckState.WARN, CheckState.FAIL
_NEEDED: Final = ("ts", "broker", "kind", "amount", "semantics")
_VIOLATIONS: Final = {
    "nulls": (_FAIL, f"have no value in one of {', '.join(_NEEDED)}."),
    "time-range": (_FAIL, "are not of the years 2000 to 2099."),
    "future": (_FAIL, "are in the future. Are their times local times, written as UTC?"),
    "kinds": (_FAIL, f"have a kind that is none of {', '.join(Kind)}."),
    "semantics": (_FAIL, f"have semantics that are none of {', '.join(_SEMANTICS)}."),
    "amounts": (_FAIL, f"have an amount below 0 or above {MOST_AMOUNT}."),
    "overhead": (_WARN, "have an overhead below 0 or above their amount."),
    "intervals": (_FAIL, "are deltas or means without an interval."),
    "brokers": (_FAIL, "have a broker id below 0 or above 2147483647."),
    "users": (_WARN, "have no user: quotas of users are inconclusive for them."),
    "client-ids": (_WARN, "have no client-id: quotas of client-ids are inconclusive for them."),
    "addresses": (_FAIL, "are connections without an address."),
    "identity-encoding": (_WARN, "have a name that looks percent-encoded, begins with User: or has control characters."),
}
"""What every row must not be, in the order of the report. The sentence follows the number of rows."""


def _facts(rows: _Batch) -> dict[str, Flags]:
    """The rows of each violation, and those by which ``rows``, ``resolution`` and ``unreadable`` are judged."""
    amount, interval = rows.numbers("amount"), rows.numbers("interval_ms")
    of_address, is_delta = rows.has_word("kind", (Kind.CONNECTION,)), rows.has_word("semantics", ("delta",))
    is_event = rows.timely & rows.has_word("semantics", ("event",))
    encoded = [pc.match_substring_regex(rows.column(name).cast(pa.string()), _ENCODED) for name in ("user", "client_id")]
    status = canonical_rows(rows.batch, ["status"]).column(0).cast(pa.string())
    return {
        "nulls": ~np.logical_and.reduce([rows.known(name) for name in _NEEDED]),
        "time-range": rows.known("ts") & ~rows.timely,
        "future": rows.timely & (rows.ts_us > rows.latest.timestamp() * 1e6),
        "kinds": rows.known("kind") & ~rows.has_word("kind", Kind),
        "semantics": rows.known("semantics") & ~rows.has_word("semantics", _SEMANTICS),
        "amounts": rows.outside("amount", MOST_AMOUNT),
        "overhead": rows.known("amount") & (amount >= 0) & rows.outside("overhead", amount),
        "intervals": (is_delta | rows.has_word("semantics", ("mean",))) & (interval <= 0),
        "brokers": rows.outside("broker", 2**31 - 1),
        "users": ~of_address & ~rows.known("user"),
        "client-ids": ~of_address & ~rows.known("client_id"),
        "addresses": of_address & ~rows.known("ip"),
        "identity-encoding": ~of_address & (_flags(encoded[0]) | _flags(encoded[1])),
        "rows": np.ones(rows.batch.num_rows, dtype=np.bool_),
        "times": rows.timely,
        "events": is_event,
        "seconds-only": is_event & (rows.ts_us % _SECOND_US == 0),
        "minutes-only": is_event & (rows.ts_us % _MINUTE_US == 0),
        "long-deltas": is_delta & (interval > 1000),
        "unreadable": ~_flags(pc.is_in(status, value_set=pa.array([CHARGED, *OF_METRICS]))),
    }


class _Count(NamedTuple):
    """Rows of one kind, with the first example, and the extremes of their times."""

    rows: int = 0
    example: str | None = None
    low: int = 0
    high: int = 0


def _count_rows(rows: Rows[pa.RecordBatch], latest: datetime.datetime) -> Mapping[str, _Count]:
    table = rows.total(
        Totals(
            name="rows against the schema",
            columns=_COLUMNS,
            count=functools.partial(_counts_of, latest=latest),
            schema=_COUNTS,
            keys=("what", "example"),
            folds=_FOLDS,
        )
    )
    whole = {"rows": _Count()}
    for counted in sorted(table.to_pylist(), key=lambda each: (each["example"] is None, each["example"] or "")):
        before = whole.get(counted["what"]) or _Count(example=counted["example"], low=counted["low"], high=counted["high"])
        low, high = min(before.low, counted["low"]), max(before.high, counted["high"])
        whole[counted["what"]] = _Count(before.rows + counted["rows"], before.example, low, high)
    return whole


def _counts_of(batches: Iterable[pa.RecordBatch], *, latest: datetime.datetime) -> Iterator[pa.RecordBatch]:
    examples: dict[str, str | None] = {}
    for batch in batches:
        rows, counts = _Batch(batch, latest), []
        for what, chosen in _facts(rows).items():
            if chosen.any():
                if what not in examples:
                    examples[what] = _example(batch, int(np.flatnonzero(chosen)[0]))
                times = rows.ts_us[chosen]
                counts.append(dict(zip(_COUNTS.names, (what, examples[what], len(times), times.min(), times.max()), strict=True)))
        yield pa.RecordBatch.from_pylist(counts, schema=_COUNTS)


def _example(batch: pa.RecordBatch, place: int) -> str:
    """A row, as text: Python has no dates of some years."""
    names = [name for name in _COLUMNS[:8] if name in batch.schema.names]
    return " ".join(f"{name}={batch.column(name).slice(place, 1).cast(pa.string())[0].as_py()}" for name in names)[:_LONGEST]


def _check_counts(counts: Mapping[str, _Count], opened: Rows[pa.RecordBatch], max_unreadable: float) -> Iterator[ContractCheck]:
    rows = counts["rows"].rows
    state, words = (_PASSED, f"{count_of(rows, 'row')}.") if rows else (_FAIL, "The source has no rows.")
    yield ContractCheck(id="rows", state=state, message=words)
    for name, (state, wrong) in _VIOLATIONS.items():
        count = counts.get(name, _Count())
        words = f"{count_of(count.rows, 'row')} {wrong}" if count.rows else "No row violates it."
        result = state if count.rows else _PASSED
        yield ContractCheck(id=name, state=result, message=words, rows=count.rows, example=count.example)
    yield _check_repeats(opened, rows)
    yield _check_resolution({name: count.rows for name, count in counts.items()})
    bad = counts.get("unreadable", _Count())
    state, words = _PASSED, "The backtest can read the rows."
    if bad.rows > max_unreadable * rows:
        share = f"{percent_text(bad.rows / rows)} of the rows"
        state, words = _FAIL, f"The backtest cannot read {share}, and --max-unreadable allows {max_unreadable:.4g}."
    yield ContractCheck(id="unreadable", state=state, message=words, rows=bad.rows, example=bad.example)


def _check_repeats(opened: Rows[pa.RecordBatch], rows: int) -> ContractCheck:
    counted = opened.total(
        Totals(
            name="repeated rows",
            columns=_COLUMNS,
            count=functools.partial(_hashes_of, bits=(-(-rows // _MOST_HASHES) - 1).bit_length() if rows else 0),
            schema=_REPEATS,
            keys=("hash",),
            folds={"rows": "sum", "low": "min"},
        )
    )
    repeated = counted.filter(pc.field("rows") > 1)
    compared = pc.sum(counted.column("rows")).as_py() or 0
    repeats = (pc.sum(repeated.column("rows")).as_py() or 0) - repeated.num_rows
    share = repeats / max(1, compared)
    of = "" if compared >= rows else f", of {compared:,} rows that were compared"
    if share <= _REPEATS_WARN:
        message = f"Next to no row is there twice{of}."
        return ContractCheck(id="duplicates", state=_PASSED, message=message, rows=repeats)
    message = f"{count_of(repeats, 'row')} ({percent_text(share)}{of}) equal another one in all columns, and count twice."
    state = _FAIL if share > _REPEATS_FAIL else _WARN
    example = f"ts={_moment(pc.min(repeated.column('low')).as_py()).isoformat()}"
    return ContractCheck(id="duplicates", state=state, message=message, rows=repeats, example=example)


def _hashes_of(batches: Iterable[pa.RecordBatch], *, bits: int) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        hashes, ts_us = row_hashes(batch), integers(times_of(batch))
        chosen = hashes & np.int64((1 << bits) - 1) == 0
        ones = np.ones(int(chosen.sum()), dtype=np.int64)
        yield pa.RecordBatch.from_arrays([pa.array(column) for column in (hashes[chosen], ones, ts_us[chosen])], schema=_REPEATS)


def _check_resolution(rows: Mapping[str, int]) -> ContractCheck:
    events, long = rows.get("events", 0), rows.get("long-deltas", 0)
    state, words, count = _PASSED, "The times are fine enough to judge seconds.", 0
    if events > 1 and rows.get("minutes-only") == events:
        state, words, count = _FAIL, "Every request is at a whole minute, which shows no rate of a second.", events
    elif events > 1 and rows.get("seconds-only") == events:
        state, words, count = _WARN, "Every request is at a whole second: its place within the second is not known.", events
    elif long:
        words = f"{count_of(long, 'delta')} cover more than a second: they prove throttling, and never clear a quota group."
        state, count = _WARN, long
    return ContractCheck(id="resolution", state=state, message=words, rows=count)


def _moment(us: int) -> datetime.datetime:
    return datetime.datetime.fromtimestamp(0, datetime.UTC) + datetime.timedelta(microseconds=us)


def counts_of_states(report: ContractReport) -> Mapping[CheckState, int]:
    """Return the number of checks with each state."""
    return {state: report.count(state) for state in CheckState}


TRAFFIC_CHECK: Final = Document(
    cls=ContractReport,
    name="traffic-check",
    title="kafka-quotas tool check-traffic",
    codec=VALUES.extended({ContractReport: row("source schema_version rows start end checks summary", summary=counts_of_states)}),
)


_STYLES: Final = {
    CheckState.PASSED: Style.GOOD,
    CheckState.WARN: Style.WARN,
    CheckState.FAIL: Style.BAD,
    CheckState.SKIPPED: Style.FAINT,
}


def contract_lines(report: ContractReport) -> Iterator[Block]:
    """The whole report, the answer last."""
    name = display_name(report.source)
    time = ""
    if report.start is not None and report.end is not None:
        time = f", {report.start:%Y-%m-%d %H:%M:%S} to {report.end:%Y-%m-%d %H:%M:%S} UTC"
    yield line(("Rows of ", Style.STRONG), (name, Style.STRONG), f", canonical traffic schema {report.schema_version}")
    yield line(f"  {count_of(report.rows, 'row')}{time}")
    yield line()
    cells = []
    for check in report.checks:
        cells.append(((check.state.value, _STYLES[check.state]), check.id, line(check.message, hang=0)))
        if check.example is not None and check.state in (CheckState.WARN, CheckState.FAIL):
            cells.append((("", Style.FAINT), "", line(("for example ", Style.FAINT), display_name(check.example), hang=0)))
    yield table((Column(title="result"), Column(title="check"), Column(title="finding", least=20)), cells)
    yield line()
    failed, warned = report.count(CheckState.FAIL), count_of(report.count(CheckState.WARN), "warning")
    if failed:
        answer = f"{count_of(failed, 'check')} of {len(report.checks)} failed, with {warned}."
    elif report.count(CheckState.WARN):
        answer = f"No check failed, with {warned}."
    else:
        answer = f"All {len(report.checks)} checks passed."
    yield line((answer, Style.STRONG))
