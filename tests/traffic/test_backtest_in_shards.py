"""Quota groups judged in shards on Spark's workers: the rows and the report of one process, whatever the quotas share."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from reconciler.features.verdict_tables.verdict_rows import arrow_schema, verdict_batches
from reconciler.model import DEFAULT, VERDICTS_SCHEMA, BacktestReport, Entity
from reconciler.traffic import Backtest, BacktestRequest, Reading, Traffic, find_traffic, open_traffic
from reconciler.traffic.spark_versions import collect_table
from tests.support import all_kinds

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

PRODUCE, FETCH, TIME, TOPICS, CONNECTIONS = (
    "producer_byte_rate", "consumer_byte_rate", "request_percentage", "controller_mutation_rate", "connection_creation_rate"
)  # fmt: skip
ANYONE, ANY_CLIENT = Entity.of({"user": DEFAULT}), Entity.of({"client-id": DEFAULT})
NOW: Mapping[Entity, Mapping[str, float]] = {
    ANYONE: {PRODUCE: 2_000.0, TIME: 5.0},
    Entity.of({"user": "alice"}): {PRODUCE: 5_000.0, FETCH: 3_000.0},
    Entity.of({"client-id": "app-1"}): {FETCH: 4_000.0},
    Entity.of({"user": "ops"}): {TOPICS: 8.0},
    Entity.of({"ip": "10.0.0.7"}): {CONNECTIONS: 2.0},
}
REGROUPED: Mapping[Entity, Mapping[str, float]] = {
    ANY_CLIENT: {PRODUCE: 1_500.0},
    Entity.of({"user": "alice", "client-id": "app-1"}): {PRODUCE: 700.0},
    Entity.of({"user": "user-3"}): {PRODUCE: 900.0, FETCH: 2_500.0, TIME: 1.0},
    Entity.of({"user": DEFAULT, "client-id": DEFAULT}): {FETCH: 1_000.0},
    Entity.of({"user": "nobody"}): {PRODUCE: 1.0},
    Entity.of({"user": "ops"}): {TOPICS: 4.0},
    Entity.of({"ip": "10.0.0.7"}): {CONNECTIONS: 1.0},
}
RAISED = {**NOW, Entity.of({"user": "alice"}): {PRODUCE: 4_000.0, FETCH: 3_000.0}}


def rows(seed: int) -> Iterator[dict[str, Any]]:
    """Users with clients on three brokers for two minutes; of some requests the user or the client is not known."""
    chosen = random.Random(seed)
    users = [*(f"user-{number}" for number in range(12)), "alice", "a\tb", "", None]
    clients = ["app-1", "app-2", "", "ürsula", None]
    for number in range(6_000):
        user, client = chosen.choice(users), chosen.choice(clients if chosen.random() < 0.2 else clients[:4])
        if user is None and chosen.random() < 0.9:
            user = "alice"
        kind = chosen.choice(["produce", "fetch", "request"])
        amount = chosen.randint(100, 9_000) * (1_000 if kind == "request" else 1)
        yield {
            "ts": all_kinds.START.timestamp() * 1e6 + chosen.randint(0, 120_000_000), "interval_ms": 0,
            "broker": chosen.randint(1, 3), "user": user, "client_id": client, "kind": kind, "amount": amount,
            "semantics": "event", "tie": number, "ip": None, "strict": None, "part": None,
        }  # fmt: skip


@pytest.fixture(scope="module")
def traffic(tmp_path_factory: pytest.TempPathFactory) -> Traffic:
    folder = tmp_path_factory.mktemp("shards") / "traffic"
    folder.mkdir()
    all_kinds.write(folder / "kinds.parquet", all_kinds.rows())
    schema = pq.read_schema(folder / "kinds.parquet")
    table = pa.Table.from_pylist([{**row, "ts": int(row["ts"])} for row in rows(5)], schema.set(0, pa.field("ts", pa.int64())))
    pq.write_table(table.set_column(0, "ts", table.column(0).cast(schema.field(0).type)), folder / "names.parquet")
    return find_traffic([str(folder)])


def question(before: Any, after: Any, **options: Any) -> BacktestRequest:
    return BacktestRequest(current=before, proposed=after, declared=after, **options)


def in_one_process(traffic: Traffic, asked: BacktestRequest) -> BacktestReport:
    recorded = open_traffic(traffic, _no_session, in_process=True)
    return Backtest(recorded, asked).report()


def _no_session() -> Any:
    raise AssertionError


CHANGES = {"regrouped": (NOW, REGROUPED), "raised": (NOW, RAISED), "unknown": (None, REGROUPED), "removed": (REGROUPED, {})}


LARGE = pytest.mark.large
CASES = (
    ("regrouped", False), ("regrouped", True), ("unknown", False), ("removed", True),
    *(pytest.param(*case, marks=LARGE) for case in (("unknown", True), ("raised", False), ("raised", True), ("removed", False))),
)  # fmt: skip


@pytest.mark.parametrize(("change", "exact"), CASES)
def test_rows_and_report_are_those_of_one_process(spark: SparkSession, traffic: Traffic, change: str, exact: bool) -> None:
    from reconciler.features.verdict_tables.sharded import ShardedBacktest, open_sharded

    asked = question(*CHANGES[change], exact=exact)
    expected = in_one_process(traffic, asked)

    opened = open_sharded(traffic, spark, Reading(by_seconds=not exact))
    assert opened is not None
    run = ShardedBacktest(opened, asked)
    report = run.report()

    found = sorted(map(as_text, collect_table(run.verdicts).to_pylist()))
    run.close()
    opened.close()
    table = pa.Table.from_batches(verdict_batches(expected.verdicts), arrow_schema(VERDICTS_SCHEMA))
    assert found == sorted(map(as_text, table.to_pylist()))
    assert report.counts == expected.counts
    shown = [row for row in expected.verdicts if row.changed or row.verdict.value in ("throttled", "possible")]
    assert list(report.verdicts) == shown
    left_out: dict[str, Any] = {"verdicts": (), "group_counts": None}
    assert dataclasses.replace(report, **left_out) == dataclasses.replace(expected, **left_out)


def as_text(row: Mapping[str, Any]) -> str:
    return repr(sorted((name, dict(value) if name == "tags" else value) for name, value in row.items()))
