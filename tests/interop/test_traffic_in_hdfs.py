"""Traffic in a real HDFS gives the answers of the same files on this machine."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.command import run
from tests.support.hdfs_server import HdfsServer, hdfs_server
from tests.support.recorded_parquet import Flow, write_traffic
from tests.traffic.conftest import RECORDINGS

pytestmark = pytest.mark.interop

MANIFEST = """
apiVersion: kafka-quotas/v1
kind: ClientQuotas
metadata: {name: team}
spec:
  quotas:
    - match: {user: alice}
      quotas: {producer_byte_rate: 50KiB}
"""


@pytest.fixture(scope="module")
def hdfs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HdfsServer]:
    with hdfs_server(tmp_path_factory.mktemp("hdfs")) as server:
        yield server


def report_of(work: Path, traffic: str) -> dict[str, Any]:
    (work / "quotas.yaml").write_text(MANIFEST, "utf-8")
    done = run("backtest", "quotas.yaml", "--traffic", traffic, "--master", "local[2]", "--format", "json", cwd=work)
    assert done.code == 0, done.err
    document = json.loads(done.out)
    document["provenance"].pop("files")
    return document


def test_parquet_in_hdfs_gives_the_report_of_the_local_file(hdfs: HdfsServer, tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    (lake / "dt=2026-11-20").mkdir(parents=True)
    write_traffic(lake / "dt=2026-11-20" / "part-0.parquet", [Flow(user="alice", every_s=0.5), Flow(user="bob", broker=2)])
    hdfs.put(lake, "/traffic/")
    report = report_of(tmp_path, f"{hdfs.address}/traffic/lake")
    assert report == report_of(tmp_path, str(lake))
    assert report["summary"]["changed"]["throttled"] == 1


def test_request_logs_in_hdfs_give_the_report_of_the_local_file(hdfs: HdfsServer, tmp_path: Path) -> None:
    log = RECORDINGS / "kafka-4.3.1" / "kafka-request.log.gz"
    hdfs.put(log, "/traffic/kafka-request.log.gz")
    assert report_of(tmp_path, f"7={hdfs.address}/traffic/kafka-request.log.gz") == report_of(tmp_path, f"7={log}")


def test_a_name_node_that_is_away_is_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "quotas.yaml").write_text(MANIFEST, "utf-8")
    away = ("--conf", "spark.hadoop.ipc.client.connect.max.retries=1")
    done = run("backtest", "quotas.yaml", "--traffic", "hdfs://127.0.0.1:9/traffic", "--master", "local[2]", *away, cwd=tmp_path)
    assert (done.code, done.out) == (1, "")
    assert "recorded traffic hdfs://127.0.0.1:9/traffic cannot be read: " in done.err
    assert "Traceback" not in done.err
