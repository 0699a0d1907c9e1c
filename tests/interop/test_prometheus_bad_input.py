"""What real exporters and a real Prometheus do to series: one that ends, clocks apart, a name of 20,000 letters."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from tests.support.command import invoke
from tests.support.manifests import cluster, quotas
from tests.support.metrics_exporter import served
from tests.support.polling import wait_until
from tests.support.prometheus_server import ScrapeJob, prometheus

pytestmark = pytest.mark.interop

LONG = "x" * 20_000
QUOTAS = quotas(
    ({"user": "alice"}, {"producer_byte_rate": "1MiB"}),
    ({"user": "gone"}, {"producer_byte_rate": "1MiB"}),
    ({"user": LONG}, {"producer_byte_rate": "1MiB"}),
)
RATE = 'kafka_server_produce_byte_rate{{user="{user}"}} {value} {at}\n'


class Exporter:
    """A page whose samples have the broker's own time, which is ``ahead_s`` ahead; the client ``gone`` may leave it."""

    def __init__(self, ahead_s: float) -> None:
        self.ahead_s, self.has_gone = ahead_s, False
        self.users = ["alice", LONG]

    def __call__(self, *_: object) -> tuple[int, str, bytes]:
        at = round((time.time() + self.ahead_s) * 1000)
        lines = [RATE.format(user=user, value=5e6, at=at) for user in self.users]
        # Without a time of its own, so that Prometheus marks the series as stale when it ends.
        lines += [] if self.has_gone else ['kafka_server_produce_byte_rate{user="gone"} 7e6\n']
        return 200, "text/plain; version=0.0.4", "".join(lines).encode()


def test_each_is_judged_by_the_samples_that_it_has(tmp_path: Path) -> None:
    manifests = tmp_path / "quotas"
    manifests.mkdir()
    (manifests / "cluster.yaml").write_text(cluster())
    (manifests / "quotas.yaml").write_text(QUOTAS)
    behind, ahead = Exporter(-2.5), Exporter(2.5)
    with served(behind) as one, served(ahead) as other:
        job = ScrapeJob(name="kafka", ports={one: {"broker_id": "1"}, other: {"broker_id": "2"}})
        with prometheus(tmp_path, [job]) as server:
            gone = 'kafka_server_produce_byte_rate{user="gone"}'
            wait_until(lambda: (server.value(f"min(count_over_time({gone}[1m]))") or 0) >= 3, within_s=60)
            behind.has_gone = ahead.has_gone = True
            last = time.time()
            # A series that a scrape lacks is gone at once, not after the five minutes of a look-back.
            wait_until(lambda: server.get("query", query=gone)["result"] == [], within_s=60)
            alice = 'min(count_over_time(kafka_server_produce_byte_rate{user="alice"}[1m]))'
            wait_until(lambda: (server.value(alice) or 0) > 5, within_s=60)
            source = f"prometheus+http://127.0.0.1:{server.port}"
            command = ("backtest", str(manifests), "--traffic", source, "--traffic-store", str(tmp_path / "store"))
            done = invoke(*command, "--format", "json", cwd=tmp_path)
            headroom = invoke(
                "headroom", str(manifests), "--state", "manifests", "--traffic", source, "--format", "json", cwd=tmp_path
            )
    assert done.code == 0, done.err
    verdicts = {(row["bucket"]["user"], row["broker"]): row["verdict"] for row in json.loads(done.out)["verdicts"]}
    assert verdicts == {(user, broker): "throttled" for user in ("alice", "gone", LONG) for broker in (1, 2)}
    rows = stored(tmp_path / "store")
    assert {row["amount"] for row in rows if row["user"] == "gone"} == {7_000_000}, "a stale marker is not a sample"
    assert max(row["ts"].timestamp() for row in rows if row["user"] == "gone") <= last + 1
    of_alice = [row for row in rows if row["user"] == "alice"]
    newest = {broker: max(row["ts"].timestamp() for row in of_alice if row["broker"] == broker) for broker in (1, 2)}
    # Samples of the future are not read yet: one broker is 2.5 s behind, the other one not ahead.
    assert newest[2] - newest[1] > 1, "each broker's samples keep their own time"
    assert {row["bucket"]["user"] for row in json.loads(headroom.out)["groups"]} >= {"alice", LONG}


def stored(store: Path) -> list[dict[str, Any]]:
    return [row for path in sorted(store.rglob("*.parquet")) for row in pq.read_table(path).to_pylist()]
