"""A real Prometheus (Debian and Ubuntu: package prometheus) that scrapes exporters."""

from __future__ import annotations

import json
import shutil
import subprocess
import urllib.parse
import urllib.request
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from reconciler.features.sandbox.configuration import free_ports
from tests.support.polling import wait_until


@dataclass(frozen=True, slots=True, kw_only=True)
class ScrapeJob:
    """Ports of loopback that are scraped every ``interval_s`` whole seconds, each with labels of its own."""

    name: str = "kafka-quotas"
    ports: Mapping[int, Mapping[str, str]] = field(default_factory=dict)
    interval_s: int = 1

    @classmethod
    def of(cls, *ports: int, name: str = "kafka-quotas", interval_s: int = 1) -> ScrapeJob:
        return cls(name=name, ports={port: {} for port in ports}, interval_s=interval_s)

    def config(self) -> dict[str, Any]:
        return {
            "job_name": self.name,
            "scrape_interval": f"{self.interval_s}s",
            "scrape_timeout": f"{min(self.interval_s, 10)}s",
            "static_configs": [{"targets": [f"127.0.0.1:{port}"], "labels": dict(own)} for port, own in self.ports.items()],
        }


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


def promtool(*arguments: str, stdin: str = "") -> str:
    """Its output; a missing program is an error, and so is any complaint."""
    assert shutil.which("promtool"), "promtool is not installed: apt install prometheus"
    done = subprocess.run(["promtool", *arguments], input=stdin, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def fill_history(folder: Path, lines: Iterable[str]) -> None:
    """Samples of earlier hours (lines of the OpenMetrics format, with times) for a server that starts in ``folder``."""
    text = folder / "history.txt"
    text.write_text("".join(f"{line}\n" for line in (*lines, "# EOF")))
    promtool("tsdb", "create-blocks-from", "openmetrics", str(text), str(folder / "data"))


@contextmanager
def prometheus(
    folder: Path, scrape: int | Sequence[ScrapeJob], rules: Path | None = None, *, most_samples: int | None = None
) -> Iterator[Prometheus]:
    """Started in ``folder``. ``scrape`` is a port of loopback, scraped each second, or any number of jobs.

    ``most_samples``: of one query. What ``fill_history`` put into ``folder`` is there, too.
    """
    assert shutil.which("prometheus"), "Prometheus is not installed: apt install prometheus"
    if rules is not None:
        shutil.copy(rules, folder / "rules.yaml")
    jobs = (ScrapeJob.of(scrape),) if isinstance(scrape, int) else scrape
    config = {
        "global": {"evaluation_interval": "1s"},
        "rule_files": ["rules.yaml"] if rules else [],
        "scrape_configs": [job.config() for job in jobs],
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
                *([f"--query.max-samples={most_samples}"] if most_samples else []),
            ],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )
    try:
        server = Prometheus(port)
        wait_until(lambda: process.poll() is not None or server.ready())
        assert process.poll() is None, (folder / "prometheus.log").read_text()
        yield server
    finally:
        process.terminate()
        process.wait(300)
