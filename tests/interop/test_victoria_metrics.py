"""A real VictoriaMetrics, built from its Go module: the same verdicts and samples as those of Prometheus."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from reconciler.features.sandbox.configuration import free_ports
from tests.support.command import invoke
from tests.support.manifests import cluster, quotas
from tests.support.metrics_exporter import served
from tests.support.polling import wait_until
from tests.support.prometheus_server import ScrapeJob

pytestmark = pytest.mark.interop

SOURCES = Path(__file__).parent / "victoria_metrics"
PACKAGE = "github.com/VictoriaMetrics/VictoriaMetrics/app/victoria-metrics"
DOWNLOADS_S = 600
PAGE = b"""\
kafka_server_quota_byte_rate{resource="Produce",user="alice",clientId="app",broker_id="1"} 5e6
kafka_server_quota_throttle_time{resource="Produce",user="alice",clientId="app",broker_id="1"} 12.5
kafka_server_quota_byte_rate{resource="Produce",user="bob",clientId="app",broker_id="1"} 1000.5
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    go = shutil.which("go")
    assert go, "these tests need Go 1.24 or newer on PATH (https://go.dev); make test needs none"
    built = tmp_path_factory.mktemp("victoria-metrics") / "victoria-metrics"
    done = subprocess.run(
        [go, "build", "-o", str(built), PACKAGE],
        cwd=SOURCES,
        env={**os.environ, "GOTOOLCHAIN": "local", "GOFLAGS": "-mod=readonly"},
        capture_output=True,
        text=True,
        timeout=DOWNLOADS_S,
        check=False,
    )
    assert done.returncode == 0, f"VictoriaMetrics was not built; it needs Go 1.24 or newer and its modules:\n{done.stderr}"
    return built


@pytest.fixture(scope="module")
def server(program: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a server that has scraped an exporter each second for ten seconds."""
    folder = tmp_path_factory.mktemp("data")
    (port,) = free_ports(1)
    address = f"http://127.0.0.1:{port}"

    def samples() -> int:
        query = f"{address}/api/v1/query?query=count_over_time(kafka_server_quota_byte_rate[1m])"
        try:
            with urllib.request.urlopen(query, timeout=5) as answer:
                series = json.load(answer)["data"]["result"]
        except OSError:
            return 0
        return min((int(some["value"][1]) for some in series), default=0)

    with served(lambda *_: (200, "text/plain; version=0.0.4", PAGE)) as exporter, (folder / "log").open("wb") as log:
        (folder / "scrape.json").write_text(json.dumps({"scrape_configs": [ScrapeJob.of(exporter).config()]}))
        options = ("-retentionPeriod=1y", "-search.latencyOffset=0s", f"-promscrape.config={folder / 'scrape.json'}")
        process = subprocess.Popen(
            [str(program), f"-httpListenAddr=127.0.0.1:{port}", f"-storageDataPath={folder / 'data'}", *options],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )
        try:
            wait_until(lambda: process.poll() is not None or samples() >= 10)
            assert process.poll() is None, (folder / "log").read_text()
            yield address
        finally:
            process.terminate()
            process.wait(300)


@pytest.fixture
def manifests(tmp_path: Path) -> Path:
    folder = tmp_path / "quotas"
    folder.mkdir()
    (folder / "cluster.yaml").write_text(cluster())
    limits = (({"user": name}, {"producer_byte_rate": "1MiB"}) for name in ("alice", "bob"))
    (folder / "quotas.yaml").write_text(quotas(*limits))
    return folder


@pytest.mark.parametrize("path", ["", "/prometheus"])
def test_its_samples_give_the_verdicts_of_prometheus(path: str, server: str, manifests: Path, tmp_path: Path) -> None:
    store = ("--traffic-store", str(tmp_path / "store"))
    done = invoke("backtest", str(manifests), "--traffic", f"prometheus+{server}{path}", *store, "--format", "json", cwd=tmp_path)

    assert done.code == 0, done.err
    rows = {row["bucket"]["user"]: row for row in done.json()["verdicts"]}
    assert {name: (row["verdict"], row["broker"]) for name, row in rows.items()} == {
        "alice": ("throttled", 1),
        "bob": ("inconclusive", 1),
    }
