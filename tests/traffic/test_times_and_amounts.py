"""Times outside of this century, clock changes, wrong units, amounts that no sum can hold: counted or refused, never a crash."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from reconciler.errors import TrafficError
from tests.support.local_traffic import open_here
from tests.support.recorded_parquet import START

if TYPE_CHECKING:
    from reconciler.traffic.traffic_source import Facts


WRONG_US = {
    "1969": -1_000_000, "1970": 0, "1999": 946_684_799_999_999, "2100": 4_102_444_800_000_000, "2120": 4_733_510_400_000_000,
    "9999": 253_402_300_799_999_999, "first": -(2**62), "last": 2**63 - 1,
}  # fmt: skip
MAPPING = """apiVersion: kafka-quotas/v1
kind: TrafficMapping
spec:
  columns:
    ts: {ts}
    broker: {{constant: 1}}
    user: {{column: u}}
    client_id: {{constant: app}}
    kind: {{constant: produce}}
    amount: {{column: n}}
"""


def opened(path: Path, mapping: Path | None = None, **options: Any) -> Facts:
    from reconciler.traffic import find_traffic
    from reconciler.workflows.traffic_inputs import read_trusted_mapping

    traffic = find_traffic([str(path)], read_trusted_mapping(mapping, None))
    found = open_here(traffic, max_unreadable=1.0, **options)
    try:
        return found.facts
    finally:
        found.close()


def with_rows(path: Path, rows: list[dict[str, Any]], *, unit: str = "us") -> Path:
    """One plain request of alice at ``START``, and these changes of it."""
    good = {
        "ts": round(START.timestamp() * 1_000_000), "interval_ms": 0, "broker": 1, "user": "alice", "client_id": "app",
        "kind": "produce", "amount": 5, "semantics": "event", "overhead": 0,
    }  # fmt: skip
    table = pa.Table.from_pylist([good, *(good | row for row in rows)])
    ticks = {"s": 1_000_000, "ms": 1_000, "us": 1}[unit]
    times = [value // ticks if abs(value) < 2**62 else value for value in table.column("ts").to_pylist()]
    table = table.set_column(0, "ts", pa.array(times, pa.int64()).cast(pa.timestamp(unit, "UTC")))
    pq.write_table(table, path)
    return path


def test_rows_of_other_centuries_are_unreadable_in_columns_and_in_rows(tmp_path: Path) -> None:
    from reconciler.traffic import find_traffic
    from tests.support.traffic_rows import traffic_rows

    for unit in ("ms", "us"):
        path = with_rows(tmp_path / f"{unit}.parquet", [{"ts": value} for value in WRONG_US.values()], unit=unit)
        facts = opened(path)
        assert (facts.requests, facts.unreadable) == (1, len(WRONG_US)), unit
        assert [(part.start, part.end) for part in facts.coverage] == [(START, START)]
    rows = traffic_rows(find_traffic([str(path)]))
    assert sorted(row.status for row in rows) == ["charged", *["unreadable"] * len(WRONG_US)]
    assert {row.ts_us for row in rows if row.status == "unreadable"} == {None}


def test_amounts_that_no_sum_can_hold_are_unreadable(tmp_path: Path) -> None:
    from reconciler.traffic import find_traffic
    from tests.support.traffic_rows import traffic_rows

    huge = [{"amount": amount} for amount in (2**63 - 1, 2**63 - 1, 2**53, 2**42 + 1, -(2**63), -1)]
    odd = [{"amount": 7, "overhead": overhead} for overhead in (2**63 - 1, -(2**63), 8)]
    path = with_rows(tmp_path / "huge.parquet", [*huge, {"amount": 2**42}, *odd])
    facts = opened(path)
    assert (facts.requests, facts.unreadable) == (5, 6)
    rows = [row for row in traffic_rows(find_traffic([str(path)])) if row.status == "charged"]
    assert sorted((row.records, row.overhead) for row in rows) == [(0, 7), (0, 7), (5, 0), (7, 0), (2**42, 0)]


def test_the_night_of_the_clock_change_is_counted_as_unclear(tmp_path: Path) -> None:
    begin = datetime.datetime(2026, 10, 25, 0, 30, tzinfo=datetime.UTC)
    berlin = [begin + datetime.timedelta(minutes=n) for n in range(120)]
    wall = [(one + datetime.timedelta(hours=2 if one.hour < 1 else 1)).strftime("%Y-%m-%d %H:%M:%S") for one in berlin]
    spring = ["2026-03-29 01:59:59", "2026-03-29 02:30:00", "2026-10-25 02:30:00+01:00"]
    csv, mapping = tmp_path / "night.csv", tmp_path / "mapping.yaml"
    csv.write_text("t,u,n\n" + "".join(f"{text},alice,1000\n" for text in wall + spring), encoding="utf-8")
    mapping.write_text(MAPPING.format(ts="{column: t, timezone: Europe/Berlin}"), encoding="utf-8")
    facts = opened(csv, mapping)
    # From 02:30 to 03:00 of summer time, the whole hour of winter time; and the hour that spring has not.
    assert dict(facts.not_charged) == {"unclear-time": 91}
    assert (facts.requests, facts.unreadable) == (32, 0)
    mapping.write_text(MAPPING.format(ts="{column: t}"), encoding="utf-8")
    assert opened(csv, mapping).requests == 123


@pytest.mark.parametrize(
    ("value", "how", "advice"),
    [
        ("1795266000", "unit: ms", "unit: s"),
        ("1795266000.25", "unit: us", "unit: s"),
        ("1795266000000", "unit: s", "unit: ms"),
        ("1795266000000000", "unit: ms", "unit: us"),
        ("1795266000000000000", "unit: us", "unit: ns"),
        ("1795266000000", "timezone: UTC", "unit: ms"),
    ],
)
def test_numbers_in_the_wrong_unit_are_refused_with_the_right_one(tmp_path: Path, value: str, how: str, advice: str) -> None:
    csv, mapping = tmp_path / "a.csv", tmp_path / "mapping.yaml"
    csv.write_text(f"t,u,n\n{value},alice,5\n", encoding="utf-8")
    mapping.write_text(MAPPING.format(ts=f"{{column: t, {how}}}"), encoding="utf-8")
    with pytest.raises(TrafficError, match=rf"'{value}' in column 't' is not a time of .* Write {advice} at columns\.ts"):
        opened(csv, mapping)
    mapping.write_text(MAPPING.format(ts=f"{{column: t, {advice}}}"), encoding="utf-8")
    assert opened(csv, mapping).requests == 1
