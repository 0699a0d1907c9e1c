"""A real Prometheus (Debian and Ubuntu: package prometheus) that scrapes one target."""

from __future__ import annotations

import json
import shutil
import subprocess
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

from reconciler.sandbox.ports import free_ports
from tests.support.polling import wait_until


class Prometheus:
    """A real one, asked through its HTTP interface."""

    def __init__(self, port: int) -> None:
        self.port = port
        self._base = f"http://127.0.0.1:{port}"

    def ready(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self._base}/-/ready", timeout=5) as answer:
                return answer.status == 200
        except OSError:
            return False

    def get(self, path: str, **query: str) -> Any:
        with urllib.request.urlopen(f"{self._base}/api/v1/{path}?{urllib.parse.urlencode(query)}", timeout=10) as answer:
            return json.load(answer)["data"]

    def value(self, query: str) -> float | None:
        """Of a query with one answer; nothing when it has none."""
        found = self.get("query", query=query)["result"]
        assert len(found) <= 1, found
        return float(found[0]["value"][1]) if found else None


@contextmanager
def prometheus(folder: Path, target: int, rules: Path | None = None) -> Iterator[Prometheus]:
    """Started in ``folder``; it scrapes ``127.0.0.1:target`` each second."""
    assert shutil.which("prometheus"), "Prometheus is not installed: apt install prometheus"
    if rules is not None:
        shutil.copy(rules, folder / "rules.yaml")
    config = {
        "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
        "rule_files": ["rules.yaml"] if rules else [],
        "scrape_configs": [{"job_name": "kafka-quotas", "static_configs": [{"targets": [f"127.0.0.1:{target}"]}]}],
    }
    (folder / "prometheus.yml").write_text(yaml.safe_dump(config))
    (port,) = free_ports(1)
    with (folder / "prometheus.log").open("wb") as log:
        process = subprocess.Popen(
            [
                "prometheus",
                f"--config.file={folder / 'prometheus.yml'}",
                f"--storage.tsdb.path={folder / 'data'}",
                f"--web.listen-address=127.0.0.1:{port}",
            ],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )
    try:
        server = Prometheus(port)
        wait_until(lambda: process.poll() is not None or server.ready(), within_s=60)
        assert process.poll() is None, (folder / "prometheus.log").read_text()
        yield server
    finally:
        process.terminate()
        process.wait(30)
