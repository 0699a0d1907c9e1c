"""Pages of samples: only rates become amounts."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq

from reconciler.traffic.metric_pages import write_page

ALICE = {"resource": "Produce", "user": "alice", "broker_id": "1"}


def test_only_rates_become_amounts(tmp_path: Path) -> None:
    rate = ({"__name__": "kafka_server_quota_byte_rate", **ALICE}, [(1_000_000_000.0, 5.0)])
    throttled = ({"__name__": "kafka_server_quota_throttle_time", **ALICE}, [(1_000_000_000.0, 7284.0)])
    muted = ({"__name__": "kafka_server_produce_queue_size", "broker_id": "1"}, [(1_000_000_000.0, 3.0)])
    write_page(tmp_path / "page.parquet", [throttled, rate, muted])
    assert pq.read_table(tmp_path / "page.parquet").column("amount").to_pylist() == [5]
