"""Times outside of this century, clock changes, wrong units, amounts that no sum can hold: counted or refused, never a crash."""

from __future__ import annotations

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


@pytest.mark.parametrize(
    ("value", "wrong", "right"),
    [
        ("1795266000", "us", "s"),
        ("1795266000.25", "us", "s"),
        ("1795266000000", "s", "ms"),
        ("1795266000000000", "ms", "us"),
        ("1795266000000000000", "us", "ns"),
    ],
)
def test_numbers_in_the_wrong_unit_are_refused(tmp_path: Path, value: str, wrong: str, right: str) -> None:
    csv, mapping = tmp_path / "a.csv", tmp_path / "mapping.yaml"
    csv.write_text(f"t,u,n\n{value},alice,5\n", encoding="utf-8")
    mapping.write_text(MAPPING.format(ts=f"{{column: t, unit: {wrong}}}"), encoding="utf-8")
    with pytest.raises(TrafficError, match="none of its first 1 rows can be read with the mapping: column 'ts' has"):
        opened(csv, mapping)
    mapping.write_text(MAPPING.format(ts=f"{{column: t, unit: {right}}}"), encoding="utf-8")
    assert opened(csv, mapping).requests == 1
