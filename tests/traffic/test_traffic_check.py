"""``kafka-quotas tool check-traffic``: each check fires on the rows it is for, and stays silent on those beside them."""

from __future__ import annotations

import datetime
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import jsonschema
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from reconciler.cli.traffic_options import SparkOptions
from reconciler.errors import UsageError
from reconciler.features.traffic_check.checks import CheckState, ContractCheck, ContractReport
from reconciler.features.traffic_check.command import CheckTrafficArguments, check_traffic
from reconciler.model import Severity
from tests.support.command import Command, Done, invoke
from tests.support.recorded_parquet import START

ROOT = Path(__file__).parents[2]
SCHEMA = json.loads((ROOT / "schemas" / "traffic-check.v1.schema.json").read_text("utf-8"))
NOW = START + datetime.timedelta(days=1, minutes=17)
CANONICAL = pa.schema(
    [
        ("ts", pa.timestamp("us", "UTC")), ("interval_ms", pa.int32()), ("broker", pa.int32()), ("user", pa.string()),
        ("client_id", pa.string()), ("kind", pa.string()), ("amount", pa.int64()), ("semantics", pa.string()),
        ("overhead", pa.int64()), ("ip", pa.string()),
    ]
)  # fmt: skip

Row = dict[str, Any]


def rows(count: int = 100) -> list[Row]:
    """Requests of two clients and a connection, with nothing wrong."""
    made = [
        {
            "ts": START + datetime.timedelta(milliseconds=137 * number),
            "interval_ms": 0,
            "broker": 1 + number % 2,
            "user": "alice" if number % 3 else "",
            "client_id": "app%20 of a team"[:3],
            "kind": "produce",
            "amount": 1000 + number,
            "semantics": "event",
            "overhead": 7,
            "ip": None,
        }
        for number in range(count)
    ]
    made[-1] |= {"kind": "connection", "user": None, "client_id": None, "ip": "10.0.0.7", "amount": 1, "overhead": None}
    return made


def write(path: Path, some: list[Row], schema: pa.Schema = CANONICAL) -> Path:
    pq.write_table(pa.Table.from_pylist(some, schema=schema), path)
    return path


def checked(path: Path, *, now: datetime.datetime = NOW, **options: Any) -> ContractReport:
    given = {"since": None, "until": None, "max_unreadable": 0.01, "fail_on": "error", "format": "text", **options}
    spark = SparkOptions(master=None, conf=(), properties_file=None)
    return check_traffic(CheckTrafficArguments(traffic=(str(path),), spark=spark, **given), now=now)


def states(report: ContractReport) -> dict[str, str]:
    """All checks that did not pass."""
    return {check.id: check.state.value for check in report.checks if check.state is not CheckState.PASSED}


def check_of(report: ContractReport, name: str) -> ContractCheck:
    (check,) = (check for check in report.checks if check.id == name)
    return check


def test_good_rows_pass_every_check(tmp_path: Path) -> None:
    report = checked(write(tmp_path / "a.parquet", rows()))
    assert (states(report), report.rows, report.schema_version) == ({}, 100, "1.0")
    assert report.start == START
    assert report.end == START + datetime.timedelta(milliseconds=137 * 99)
    assert [check.rows for check in report.checks] == [0] * len(report.checks)


def first(**fields: Any) -> Callable[[list[Row]], None]:
    return lambda some: some[0].update(fields)


def shifted(**delta: float) -> Callable[[list[Row]], None]:
    def shift(some: list[Row]) -> None:
        end = some[-1]["ts"]
        for row in some:
            row["ts"] += NOW - end + datetime.timedelta(**delta)

    return shift


def repeated(times: int) -> Callable[[list[Row]], None]:
    return lambda some: some.extend([dict(some[0])] * times)


def whole(step: datetime.timedelta) -> Callable[[list[Row]], None]:
    def move(some: list[Row]) -> None:
        for number, row in enumerate(some):
            row["ts"] = START + number * step

    return move


FIRING: Mapping[str, tuple[Callable[[list[Row]], None], dict[str, str], int]] = {
    "null ts": (first(ts=None), {"nulls": "fail"}, 1),
    "null broker": (first(broker=None), {"nulls": "fail"}, 1),
    "null kind": (first(kind=None), {"nulls": "fail"}, 1),
    "null amount": (first(amount=None), {"nulls": "fail"}, 1),
    "null semantics": (first(semantics=None), {"nulls": "fail"}, 1),
    "1970": (first(ts=datetime.datetime(1970, 1, 2, tzinfo=datetime.UTC)), {"time-range": "fail"}, 1),
    "the year 2100": (first(ts=datetime.datetime(2100, 1, 2, tzinfo=datetime.UTC)), {"time-range": "fail"}, 1),
    "a day ahead": (shifted(hours=25), {"future": "fail"}, 100),
    "kind": (first(kind="Produce"), {"kinds": "fail"}, 1),
    "semantics": (first(semantics="request"), {"semantics": "fail"}, 1),
    "a negative amount": (first(amount=-1, overhead=0), {"amounts": "fail"}, 1),
    "5 TiB": (first(amount=5 << 40), {"amounts": "fail"}, 1),
    "overhead above amount": (first(overhead=5000), {"overhead": "warn"}, 1),
    "a negative overhead": (first(overhead=-1), {"overhead": "warn"}, 1),
    "a delta without an interval": (first(semantics="delta", interval_ms=None), {"intervals": "fail"}, 1),
    "a mean of nothing": (first(semantics="mean", interval_ms=0), {"intervals": "fail"}, 1),
    "broker -1": (first(broker=-1), {"brokers": "fail"}, 1),
    "no user": (first(user=None), {"users": "warn"}, 1),
    "no client-id": (first(client_id=None), {"client-ids": "warn"}, 1),
    "no address": (lambda some: some[-1].update(ip=None), {"addresses": "fail"}, 1),
    "encoded": (first(user="CN%3Dalice"), {"identity-encoding": "warn"}, 1),
    "a principal": (first(user="User:alice"), {"identity-encoding": "warn"}, 1),
    "a control character": (first(client_id="a\x1b[2J"), {"identity-encoding": "warn"}, 1),
    "one row twice": (repeated(1), {"duplicates": "warn"}, 1),
    "a tenth of the rows twice": (repeated(12), {"duplicates": "fail"}, 12),
    "whole seconds": (whole(datetime.timedelta(seconds=1)), {"resolution": "warn"}, 100),
    "whole minutes": (whole(datetime.timedelta(minutes=1)), {"resolution": "fail"}, 100),
    "long deltas": (first(semantics="delta", interval_ms=60_000), {"resolution": "warn"}, 1),
}
UNREADABLE = {"nulls", "time-range", "kinds", "semantics", "amounts", "addresses"}
"""Checks whose rows the backtest leaves out: one of a hundred is as many as it allows."""


@pytest.mark.parametrize("name", FIRING)
def test_a_check_fires_alone(name: str, tmp_path: Path) -> None:
    change, expected, count = FIRING[name]
    some = rows()
    change(some)
    report = checked(write(tmp_path / "a.parquet", some))
    assert states(report) == expected
    check = check_of(report, next(iter(expected)))
    assert check.rows == count
    assert check.example is not None or check.id == "resolution"
    assert check_of(report, "unreadable").rows == (1 if UNREADABLE & set(expected) else 0)


STAYING_SILENT: Mapping[str, Callable[[list[Row]], None]] = {
    "an empty name": first(user=""),
    "a per cent sign": first(user="100% sure", client_id="50%"),
    "a clock that is four minutes ahead": shifted(minutes=4),
    "a gauge": first(semantics="gauge", interval_ms=15_000),
    "a delta of a second": first(semantics="delta", interval_ms=1000),
    "exactly 4 TiB": first(amount=1 << 42),
    "nothing counted": first(amount=0, overhead=0),
    "equal requests of different clients": lambda some: some.append({**some[0], "client_id": "other"}),
    "the first moment of 2000": first(ts=datetime.datetime(2000, 1, 1, tzinfo=datetime.UTC)),
}


@pytest.mark.parametrize("name", STAYING_SILENT)
def test_a_neighbour_case_stays_silent(name: str, tmp_path: Path) -> None:
    some = rows(200)
    STAYING_SILENT[name](some)
    assert states(checked(write(tmp_path / "a.parquet", some))) == {}


def test_two_rows_in_a_hundred_that_cannot_be_read_are_too_many(tmp_path: Path) -> None:
    some = rows()
    some[0]["kind"] = some[1]["kind"] = "fetched"
    path = write(tmp_path / "a.parquet", some)
    report = checked(path)
    assert states(report) == {"kinds": "fail", "unreadable": "fail"}
    assert check_of(report, "unreadable").rows == 2
    assert "kind=fetched" in str(check_of(report, "kinds").example)
    assert states(checked(path, max_unreadable=0.02)) == {"kinds": "fail"}


def test_no_rows_are_a_failure(tmp_path: Path) -> None:
    report = checked(write(tmp_path / "a.parquet", []))
    assert check_of(report, "rows").state is CheckState.FAIL
    assert (report.rows, report.start) == (0, None)
    assert report.fails(Severity.ERROR)


def without(*names: str) -> pa.Schema:
    return pa.schema([field for field in CANONICAL if field.name not in names])


def renamed(old: str, new: str) -> pa.Schema:
    return pa.schema([field.with_name(new) if field.name == old else field for field in CANONICAL])


def retyped(name: str, kind: pa.DataType) -> pa.Schema:
    return pa.schema([field.with_type(kind) if field.name == name else field for field in CANONICAL])


@pytest.mark.parametrize(
    ("schema", "check", "words"),
    [
        (without("broker", "amount"), "columns", "Missing columns: broker, amount."),
        (renamed("client_id", "clientId"), "columns", "client_id may be clientId"),
        (retyped("amount", pa.float64()), "types", "amount has the type double, and needs bigint"),
        (retyped("ts", pa.int64()), "types", "ts has the type int64, and needs timestamp"),
    ],
)
def test_columns_that_cannot_be_read_fail_and_nothing_else_is_checked(
    schema: pa.Schema, check: str, words: str, tmp_path: Path
) -> None:
    write(tmp_path / "a.parquet", rows())
    pq.write_table(schema.empty_table(), tmp_path / "b.parquet")
    report = checked(tmp_path)
    assert check_of(report, check).state is CheckState.FAIL
    assert words in check_of(report, check).message
    assert str(check_of(report, check).example).endswith("b.parquet")
    assert {check.state for check in report.checks[2:]} == {CheckState.SKIPPED}


def test_times_without_a_zone_and_columns_in_another_spelling_are_warnings(tmp_path: Path) -> None:
    schema = retyped("ts", pa.timestamp("us")).append(pa.field("Throttled", pa.bool_()))
    some = [{**row, "ts": row["ts"].replace(tzinfo=None)} for row in rows()]
    report = checked(write(tmp_path / "a.parquet", some, schema))
    assert states(report) == {"columns": "warn", "types": "warn"}
    assert "The column Throttled may be throttled" in check_of(report, "columns").message


def test_only_the_rows_between_since_and_until_count(tmp_path: Path) -> None:
    some = rows()
    some[10]["kind"] = "?"
    path = write(tmp_path / "a.parquet", some)
    report = checked(path, since=START + datetime.timedelta(seconds=5), until=START + datetime.timedelta(seconds=10))
    assert (states(report), report.rows) == ({}, 36)
    with pytest.raises(UsageError, match="is empty"):
        checked(path, since=START, until=START)


def test_traffic_without_columns_of_its_own_is_refused(tmp_path: Path) -> None:
    (tmp_path / "kafka-request.log").write_text("[2026-11-20 08:00:00,000] DEBUG Completed request:{} \n")
    with pytest.raises(UsageError, match="canonical traffic schema"):
        checked(tmp_path)


def run_command(command: Command, folder: Path, *arguments: str, columns: int = 80) -> Done:
    return command("tool", "check-traffic", *arguments, cwd=folder, env={"COLUMNS": str(columns)})


def test_the_command_prints_a_table_and_exits_with_1_on_a_failure(tmp_path: Path) -> None:
    some = rows()
    some[0]["user"] = "a\x1b]0;x\x07%41"
    write(tmp_path / "a.parquet", some)
    warned = run_command(invoke, tmp_path, "--traffic", "a.parquet")
    assert (warned.code, warned.err) == (0, "")
    assert "\x1b" not in warned.out
    assert max(map(len, warned.out.splitlines())) <= 80
    assert warned.out.splitlines()[-1] == "No check failed, with 1 warning."
    strict = run_command(invoke, tmp_path, "--traffic", "a.parquet", "--fail-on", "warning")
    assert (strict.code, strict.out) == (1, warned.out)
    some[1]["kind"] = "?"
    write(tmp_path / "a.parquet", some)
    failed = run_command(invoke, tmp_path, "--traffic", "a.parquet", "--format", "json")
    document = json.loads(failed.out)
    jsonschema.validate(document, SCHEMA)
    assert failed.code == 1
    assert document["summary"] == {"pass": 17, "warn": 1, "fail": 1, "skipped": 0}


def test_without_traffic_the_command_names_the_option(tmp_path: Path) -> None:
    done = run_command(invoke, tmp_path)
    assert (done.code, "required: --traffic" in done.err) == (64, True)
    assert run_command(invoke, tmp_path, "--traffic", "none.parquet").code == 1


@pytest.mark.spark
def test_spark_finds_what_this_process_finds(warm_command: Command, tmp_path: Path) -> None:
    some = rows(3000)
    some[7]["kind"], some[8]["user"], some[9]["broker"] = "?", "User:x", -3
    some += [dict(row) for row in some[:100]]
    (tmp_path / "lake").mkdir()
    write(tmp_path / "lake" / "a.parquet", some[:1600])
    write(tmp_path / "lake" / "b.parquet", some[1600:])
    documents = []
    for source in ("lake", (tmp_path / "lake").as_uri()):
        done = run_command(warm_command, tmp_path, "--traffic", source, "--format", "json")
        assert done.code == 1, done.err
        documents.append({**json.loads(done.out), "source": None})
    assert documents[0] == documents[1]
    assert documents[0]["rows"] == 3100
