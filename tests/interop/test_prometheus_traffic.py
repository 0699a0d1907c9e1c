"""Backtests of what a real Prometheus scraped, in the layouts of exporters."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.command import invoke
from tests.support.manifests import cluster, quotas
from tests.support.metrics_exporter import served
from tests.support.polling import wait_until
from tests.support.prometheus_server import prometheus

pytestmark = pytest.mark.interop

LAYOUTS = {
    "jmx_exporter kafka-2_0_0": 'kafka_server_quota_byte_rate{resource="Produce",user="alice",clientId="app",broker_id="1"} 5e6',
    "older rule order": 'kafka_server_quota_byte_rate{resource="Produce, user=alice",clientId="app",broker_id="1"} 5e6',
    "Confluent and Strimzi": 'kafka_server_produce_byte_rate{user="alice",client_id="app",broker_id="1"} 5e6',
    "no rules": 'kafka_server_Produce_byte_rate{user="alice",client_id="app",broker_id="1"} 5e6',
}
QUOTAS = quotas(({"user": "alice"}, {"producer_byte_rate": "1MiB"}), ({"user": "bob"}, {"producer_byte_rate": "1MiB"}))


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_gauge_above_the_limit_is_a_verdict_and_the_second_run_reads_the_store(layout: str, tmp_path: Path) -> None:
    quiet = LAYOUTS[layout].replace("alice", "bob").replace("5e6", "1000")
    text = f"{LAYOUTS[layout]}\n{quiet}\n".encode()
    manifests = tmp_path / "quotas"
    manifests.mkdir()
    (manifests / "cluster.yaml").write_text(cluster())
    (manifests / "quotas.yaml").write_text(QUOTAS)
    with served(lambda *_: (200, "text/plain; version=0.0.4", text)) as exporter, prometheus(tmp_path, exporter) as server:
        wait_until(lambda: (server.value('max({__name__=~"kafka_server_.+"})') or 0) == 5e6, within_s=60)
        command = ("backtest", str(manifests), "--traffic", f"prometheus+http://127.0.0.1:{server.port}", "--format", "json")
        done = invoke(*command, "--traffic-store", str(tmp_path / "store"), cwd=tmp_path)
    assert done.code == 0, done.err
    verdicts = {row["bucket"]["user"]: (row["verdict"], row["broker"]) for row in json.loads(done.out)["verdicts"]}
    assert verdicts == {"alice": ("throttled", 1), "bob": ("inconclusive", 1)}
    pages = sorted(path.name for path in (tmp_path / "store").rglob("*.parquet"))
    assert len(pages) in (25, 24)


def test_an_option_of_prometheus_without_prometheus_is_refused(tmp_path: Path) -> None:
    (tmp_path / "quotas.yaml").write_text(quotas(({"user": "alice"}, {"producer_byte_rate": "1MiB"})))
    (tmp_path / "logs").write_text("a line of no request\n")
    done = invoke("backtest", ".", "--traffic", "logs", "--since", "2026-11-22T00:00:00Z", cwd=tmp_path)
    assert (done.code, "--since and --until need Parquet in the canonical traffic schema" in done.err) == (64, True)
