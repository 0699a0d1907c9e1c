"""Prometheus itself: it scrapes ``kafka-quotas run``, loads the alert rules, and understands every panel of the dashboard."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest
import yaml

from reconciler.features.sandbox.spec import Sandbox
from tests.support import raw_quotas
from tests.support.manifests import cluster as cluster_document
from tests.support.polling import wait_until
from tests.support.prometheus_server import prometheus, promtool
from tests.support.service_process import Running, running
from tests.support.service_world import rates

pytestmark = pytest.mark.interop

DEPLOY = Path(__file__).parents[2] / "deploy"
RULES = DEPLOY / "prometheus-rules.yaml"
PAYMENTS = frozenset({("user", "payments")})


def started_port(service: Running) -> int:
    (started,) = service.events("started")
    return int(started["port"])


def test_the_alert_rules_are_good_and_fire_when_they_should(tmp_path: Path) -> None:
    assert "8 rules found" in promtool("check", "rules", str(RULES))
    shutil.copy(RULES, tmp_path / RULES.name)
    shutil.copy(Path(__file__).with_name("prometheus_rules_test.yaml"), tmp_path / "test.yaml")

    assert "SUCCESS" in promtool("test", "rules", str(tmp_path / "test.yaml"))


def test_every_alert_is_tried() -> None:
    (group,) = yaml.safe_load(RULES.read_text())["groups"]
    tried = Path(__file__).with_name("prometheus_rules_test.yaml").read_text()
    fires = {row["alertname"] for test in yaml.safe_load(tried)["tests"] for row in test["alert_rule_test"] if row["exp_alerts"]}

    assert fires == {rule["alert"] for rule in group["rules"]}


@pytest.mark.kafka
def test_it_scrapes_a_service_on_a_real_broker_through_drift_and_repair(clean_kafka: Sandbox, tmp_path: Path) -> None:
    folder = tmp_path / "quotas"
    folder.mkdir()
    (folder / "cluster.yaml").write_text(cluster_document(connection={"bootstrapServers": [clean_kafka.bootstrap_servers]}))
    (folder / "quotas.yaml").write_text(rates(payments="20MiB"))

    with (
        running(folder, tmp_path / "log", "--interval", "1") as service,
        prometheus(tmp_path, started_port(service), RULES) as server,
    ):
        wait_until(lambda: server.value('kafka_quotas_drift_entities{class="differs"}') == 1)
        assert server.value("up") == 1
        assert server.value("kafka_quotas_run_applies") == 0
        promtool("check", "metrics", stdin=service.page("/metrics")[1])

        raw_quotas.alter(clean_kafka.bootstrap_servers, {PAYMENTS: {"producer_byte_rate": 20.0 * 1024 * 1024}})
        wait_until(lambda: server.value('kafka_quotas_drift_entities{class="in-sync"}') == 1)
        age = server.value("time() - kafka_quotas_last_success_timestamp_seconds")
        assert age is not None
        assert age < 60

        (folder / "quotas.yaml").write_text("kind: [")
        alert = 'ALERTS{alertname="KafkaQuotasManifestsInvalid"}'
        wait_until(lambda: server.value(alert) == 1)
        (group,) = server.get("rules")["groups"]
        assert [rule["health"] for rule in group["rules"]] == ["ok"] * 8

        for expression in dashboard_expressions():
            server.get("query", query=expression)
        metadata = server.get("metadata")
        assert {name for name in metadata if name.startswith("kafka_quotas_") and not metadata[name][0]["help"]} == set()


def dashboard_expressions() -> list[str]:
    """As Grafana sends them, every instance chosen."""
    panels = json.loads((DEPLOY / "grafana-dashboard.json").read_text())["panels"]
    written = [target["expr"] for panel in panels for target in panel["targets"]]
    assert len(written) > 10
    return [re.sub(r"\$instance", ".*", text).replace("$__rate_interval", "1m") for text in written]
