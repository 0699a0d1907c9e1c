"""Verdicts and doctor on what a real Prometheus scrapes from a real exporter in a real broker, in each layout."""

from __future__ import annotations

import json
import os
import re
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from reconciler.features.insight.metric_health import RULE_ORDER
from reconciler.features.sandbox.clients import create_topic, produce_steadily
from reconciler.features.sandbox.spec import Login, SandboxSpec
from tests.support import raw_quotas
from tests.support.command import invoke
from tests.support.exporter_rules import RULES, with_first
from tests.support.jmx_exporter import ExportedCluster, exported_cluster
from tests.support.manifests import cluster, quotas
from tests.support.polling import wait_until
from tests.support.prometheus_server import Prometheus, ScrapeJob, prometheus
from tests.support.schemas import valid

pytestmark = [pytest.mark.kafka, pytest.mark.interop]

USER = Login(name="CN=orders,OU=x y", password="secret")
CLIENT = 'app "x*"'
MANIFEST = quotas(({"user": USER.name, "client-id": CLIENT}, {"producer_byte_rate": "20KiB"}))
LAYOUTS = {
    "quota-labels": "rules as in the example kafka-2_0_0",
    "client-id first": "an older order of the rules",
    "user first": "an older order of the rules",
    "kraft": "rules as in the example kafka-kraft-3_0_0",
    "koperator": "rules as in the example kafka-2_0_0",
    "confluent": "Confluent's jmx-monitoring-stacks",
    "no rules": "jmx_exporter without rules",
}
"""The words of doctor for the layout of each set of rules."""


@dataclass(frozen=True)
class Exporter:
    """Its port, and its configuration, which it reads anew when the file changes."""

    port: int
    config: Path


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Exporter]:
    """A broker under the default pair quota, and a client that produces all the time."""
    folder = tmp_path_factory.mktemp("exported")
    spec = SandboxSpec(users=(USER,), heap_mb=384)
    with exported_cluster(folder, rules=RULES["no rules"], spec=spec) as running:
        servers = running.sandbox.bootstrap_servers
        create_topic(servers, "orders")
        everyone = frozenset({("user", None), ("client-id", None)})
        raw_quotas.alter(servers, {everyone: {"producer_byte_rate": 1e12, "consumer_byte_rate": 1e12, "request_percentage": 1e6}})
        raw_quotas.alter(servers, {frozenset({("ip", "127.0.0.1")}): {"connection_creation_rate": 1000.0}})
        stop = threading.Event()
        sending = threading.Thread(target=_produce, args=(running, stop))
        sending.start()
        try:
            yield Exporter(running.ports[1], folder / "jmx_exporter.yaml")
        finally:
            stop.set()
            sending.join(60)


def _produce(running: ExportedCluster, stop: threading.Event) -> None:
    servers = running.sandbox.sasl_bootstrap_servers or ""
    produce_steadily(
        servers, "orders", client_id=CLIENT, bytes_per_second=100_000, seconds=900, login=USER, stop=stop
    )  # fmt: skip


@contextmanager
def scraped(exported: Exporter, rules: str, folder: Path, wanted: str) -> Iterator[Prometheus]:
    """A Prometheus that scrapes the exporter after it has these rules, and has a sample of a metric."""
    exported.config.write_text(rules, "utf-8")
    os.utime(exported.config, (time.time() + 5, time.time() + 5))
    job = ScrapeJob(name="kafka", ports={exported.port: {"broker_id": "1"}}, interval_s=1)
    with prometheus(folder, [job]) as server:
        query = f'max({{__name__=~"{wanted}"}}) > 40000'
        wait_until(lambda: server.get("query", query=query)["result"])
        wait_until(lambda: samples_of_a_series(server, wanted) > 4)
        yield server


def samples_of_a_series(server: Prometheus, wanted: str) -> int:
    return max((len(row["values"]) for row in server.get("query", query=f'{{__name__=~"{wanted}"}}[5m]')["result"]), default=0)


def written(folder: Path) -> Path:
    manifests = folder / "quotas"
    manifests.mkdir()
    (manifests / "cluster.yaml").write_text(cluster())
    (manifests / "quotas.yaml").write_text(MANIFEST)
    return manifests


def examined(server: Prometheus, folder: Path, *arguments: str) -> dict[str, dict[str, Any]]:
    """The checks of doctor by id."""
    done = invoke(
        "doctor", *arguments, "--traffic", f"prometheus+http://127.0.0.1:{server.port}", "--format", "json", cwd=folder
    )  # fmt: skip
    document = json.loads(done.out)
    valid(document, "checkup")
    assert done.code == 0
    return {check["id"]: check for check in document["checks"]}


@pytest.mark.parametrize("name", [name for name in LAYOUTS if name != "kraft"])
def test_each_layout_gives_the_verdict_and_is_recognised(name: str, exported: Exporter, tmp_path: Path) -> None:
    manifests = written(tmp_path)
    with scraped(exported, RULES[name], tmp_path, "kafka_server_.*[bB]yte_rate") as server:
        source = f"prometheus+http://127.0.0.1:{server.port}"
        command = (
            "backtest",
            str(manifests),
            "--traffic",
            source,
            "--format",
            "json",
            "--traffic-store",
            str(tmp_path / "store"),
        )
        done = invoke(*command, cwd=tmp_path)
        assert done.code == 0, done.err
        health = examined(server, tmp_path, str(manifests))
    found = [row for row in json.loads(done.out)["verdicts"] if row["bucket"].get("user") == USER.name]
    assert [(row["bucket"]["client-id"], row["verdict"], row["broker"]) for row in found] == [(CLIENT, "throttled", 1)]
    assert LAYOUTS[name] in health["series"]["message"]
    shown = health["exporters"]["message"]
    assert shown.startswith(f"broker 1 (job=kafka, instance=127.0.0.1:{exported.port}) shows ")
    kinds = set(shown.rpartition(" shows ")[2].rstrip(".").split(", "))
    assert {"produce", "request"} <= kinds
    assert ("connection" in kinds) is (name in {"koperator", "no rules"})
    assert ("queue-size" in kinds) is (name in {"koperator", "no rules"})
    assert ("names" in health) is (name in {"client-id first", "user first"})
    assert "controller_mutation_rate" in health["keys"]["message"]


def test_unknown_names_are_counted_and_the_printed_rules_repair_them(exported: Exporter, tmp_path: Path) -> None:
    (tmp_path / "broken").mkdir()
    with scraped(exported, RULES["kraft"], tmp_path / "broken", "kafka_server_produce_.*byte_rate") as server:
        broken = examined(server, tmp_path)
    assert "are unknown" in broken["names"]["message"]
    assert "An example: kafka_server_" in broken["names"]["message"]
    repair = broken["names"]["remedy"].partition("\n")[2]
    assert repair == RULE_ORDER
    (tmp_path / "repaired").mkdir()
    with scraped(exported, with_first(RULES["kraft"], repair), tmp_path / "repaired", "kafka_server_quota_byte_rate") as server:
        repaired = examined(server, tmp_path)
        row = server.get("query", query='kafka_server_quota_byte_rate{resource="Produce"} > 0')["result"]
    assert [one["metric"]["user"] for one in row] == ["CN%3Dorders%2COU%3Dx%20y"]
    assert "names" not in repaired
    assert {"connection", "produce", "request", "queue-size"} <= set(re.split(r"[ ,.]+", repaired["exporters"]["message"]))
