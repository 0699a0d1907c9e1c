"""compact --follow of a real topic: every record is counted once, whenever the job is killed."""

from __future__ import annotations

import datetime
import json
import signal
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from reconciler.features.sandbox.clients import create_topic
from reconciler.features.sandbox.spec import Sandbox
from tests.support.command import run
from tests.support.lake_days import compact_process, has_manifest, kill_when, manifest, rows_of
from tests.support.lake_tables import kafka_connector, pyspark_variables
from tests.support.polling import wait_until
from tests.support.recorded_parquet import SCHEMA, START

pytestmark = [pytest.mark.interop, pytest.mark.kafka]


def records(first: int, count: int) -> list[dict[str, Any]]:
    """Requests of two days, each at its own time."""
    return [
        {
            "ts": START + datetime.timedelta(hours=16 * (number % 2), milliseconds=37 * number),
            "interval_ms": 0,
            "broker": number % 3,
            "user": "alice",
            "client_id": None if number % 5 == 0 else "app",
            "kind": "produce",
            "amount": 1000 + number,
            "semantics": "event",
            "throttled": False,
        }
        for number in range(first, first + count)
    ]


def send(servers: str, topic: str, rows: Iterable[dict[str, Any]]) -> None:
    from kafka import KafkaProducer

    producer = KafkaProducer(bootstrap_servers=servers, acks="all")
    for row in rows:
        document = row | {"ts": row["ts"].isoformat()}
        producer.send(topic, json.dumps(document).encode())
    producer.flush(60)
    producer.close(timeout=10)


def counted(out: Path) -> int:
    return sum(day["requests"] for day in manifest(out)["days"]) if has_manifest(out) else 0


def test_a_killed_stream_of_a_topic_loses_and_doubles_nothing(clean_kafka: Sandbox, tmp_path: Path) -> None:
    servers, topic = clean_kafka.bootstrap_servers, "quota-traffic"
    create_topic(servers, topic, partitions=3)
    (tmp_path / "spark.properties").write_text("".join(f"{key}={value}\n" for key, value in kafka_connector()), "utf-8")
    spark = ("--properties-file", "spark.properties")
    follow = ("--follow", "--traffic", f"kafka://{servers}/{topic}", "--out", "lake", "--checkpoint", "checkpoint", *spark)
    env = pyspark_variables()
    send(servers, topic, records(0, 300))
    with compact_process(tmp_path, *follow, "--every", "0.2", env=env) as process:
        wait_until(lambda: counted(tmp_path / "lake") == 300, within_s=300)
        before = len(list((tmp_path / "lake").glob("date=2026-11-21/run=*")))
        send(servers, topic, records(300, 300))
        kill_when(process, lambda: len(list((tmp_path / "lake").glob("date=2026-11-21/run=*"))) > before)
    send(servers, topic, [*records(600, 100)])
    with compact_process(tmp_path, *follow, "--every", "0.2", env=env) as process:
        wait_until(lambda: counted(tmp_path / "lake") >= 700, within_s=300)
        process.send_signal(signal.SIGINT)
        assert process.wait(120) == 130

    pq.write_table(pa.Table.from_pylist(records(0, 700), schema=SCHEMA), tmp_path / "all.parquet")
    done = run("compact", "--traffic", "all.parquet", "--out", "at-once", "--master", "local[2]", cwd=tmp_path)
    assert done.code == 0, done.err
    assert rows_of(tmp_path / "lake") == rows_of(tmp_path / "at-once")
    assert counted(tmp_path / "lake") == 700

    send(servers, topic, [row | {"cluster": name} for row, name in zip(records(700, 2), ("east", "west"), strict=True)])
    mixed = run("compact", *follow, "--once", "--master", "local[2]", cwd=tmp_path, env=env)
    assert mixed.code == 1
    assert "is of 2 clusters, east (kafka://" in mixed.err
    assert counted(tmp_path / "lake") == 700

    again = run("compact", *follow, "--once", "--master", "local[2]", "--checkpoint", "another", cwd=tmp_path, env=env)
    assert again.code == 1
    assert "is in the dataset already, by the checkpoint checkpoint" in again.err
