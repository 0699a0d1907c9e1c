"""Rules and the dashboard in a real Prometheus: each alert fires and resolves, every panel finds its series."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from reconciler.features.monitoring.prometheus_rules import QuotaRules, render_prometheus_rules
from reconciler.model.entity import DEFAULT, Entity
from reconciler.resolution.kafka_names import quote_client_id, sanitize_name
from tests.builders import client, pair, user
from tests.support.command import invoke
from tests.support.hostile_names import HOSTILE
from tests.support.manifests import cluster, quotas
from tests.support.metrics_exporter import served
from tests.support.polling import wait_until
from tests.support.prometheus_server import Prometheus, prometheus, promtool

pytestmark = pytest.mark.interop

PAGE = """
kafka_server_Produce_byte_rate{user="alice",client_id="app"} 950000
kafka_server_Produce_throttle_time{user="alice",client_id="app"} 120
kafka_server_Produce_byte_rate{user="bob",client_id="app"} 10
kafka_server_Produce_throttle_time{user="bob",client_id="app"} NaN
kafka_server_fetch_byte_rate{user="carol"} 5
kafka_server_request_request_time{client_id="tool"} 2
kafka_server_quota_mutation_rate{resource="ControllerMutation",user="carol"} 0.5
kafka_server_quota_tokens{resource="ControllerMutation",user="carol"} -25
"""
"""Series of every layout that has labels."""
QUOTAS = quotas(
    ({"user": "alice", "client-id": "app"}, {"producer_byte_rate": 1_000_000}),
    ({"user": {"default": True}, "client-id": {"default": True}}, {"producer_byte_rate": 500_000}),
    ({"user": {"default": True}}, {"consumer_byte_rate": 1_000_000, "controller_mutation_rate": 10}),
    ({"client-id": "tool"}, {"request_percentage": 50}),
    ({"user": "nobody"}, {"producer_byte_rate": 70_000}),
    owner="team",
)


def manifests(folder: Path) -> Path:
    root = folder / "quotas"
    root.mkdir()
    (root / "cluster.yaml").write_text(cluster())
    (root / "quotas.yaml").write_text(QUOTAS)
    return root


def written(folder: Path) -> tuple[Path, dict[str, Any]]:
    """The files of the command: the rules, and the dashboard as JSON."""
    rules, dashboard = folder / "quota-rules.yaml", folder / "dashboard.json"
    done = invoke("rules", str(manifests(folder)), "--out", f"prometheus={rules}", "--out", f"grafana={dashboard}", cwd=folder)
    assert done.code == 0, done.err
    return rules, json.loads(dashboard.read_text())


def hurried(rules: Path) -> Path:
    """The same rules, evaluated each second, with short times."""
    rules.write_text(re.sub(r"(interval|for): (1m|5m|15m)\n", r"\1: 1s\n", rules.read_text()))
    return rules


def labels_of(server: Prometheus, query: str, *names: str) -> dict[tuple[str, ...], float]:
    rows = server.get("query", query=query)["result"]
    return {tuple(row["metric"].get(name, "") for name in names): float(row["value"][1]) for row in rows}


def page_of(text: Callable[[], str]) -> Callable[[str, Mapping[str, str], bytes], tuple[int, str, bytes]]:
    return lambda *_: (200, "text/plain; version=0.0.4", text().encode())


def test_every_alert_fires_and_resolves(tmp_path: Path) -> None:
    rules = hurried(written(tmp_path)[0])
    page = [PAGE]
    groups = yaml.safe_load(rules.read_text())["groups"]
    alerts = {rule["alert"] for group in groups for rule in group["rules"] if "alert" in rule}

    def firing(server: Prometheus) -> dict[str, set[str]]:
        rows = server.get("query", query='ALERTS{alertstate="firing"}')["result"]
        found: dict[str, set[str]] = {}
        for row in rows:
            found.setdefault(row["metric"]["alertname"], set()).add(row["metric"].get("entity", ""))
        return found

    with served(page_of(lambda: page[0])) as port, prometheus(tmp_path, port, rules) as server:
        busy = {
            "KafkaQuotaNearLimit": {"user=alice client-id=app"},
            "KafkaQuotaThrottled": {"user=alice client-id=app", "user=<default>"},
        }
        wait_until(lambda: firing(server) == busy)
        page[0] = "up_anyway 1\n"
        wait_until(lambda: "KafkaQuotaRatesMissing" in firing(server))
        assert not busy.keys() & firing(server).keys()
        assert busy.keys() | {"KafkaQuotaRatesMissing"} == alerts
        page[0] = PAGE.replace("950000", "10").replace(" 120\n", " NaN\n").replace("-25", "25")
        wait_until(lambda: not firing(server))
        for group in server.get("rules")["groups"]:
            assert {rule["health"] for rule in group["rules"]} == {"ok"}, group


def test_alerts_wait_as_long_as_they_should(tmp_path: Path) -> None:
    rules, _ = written(tmp_path)
    rate = 'kafka_server_Produce_byte_rate{user="alice",client_id="app",instance="b1"}'
    labels = {
        "broker": "b1", "user": "alice", "client_id": "app", "key": "producer_byte_rate", "cluster": "prod",
        "entity": "user=alice client-id=app", "level": "1", "owner": "team", "severity": "warning",
    }  # fmt: skip
    alert = {
        "exp_labels": labels,
        "exp_annotations": {
            "summary": "user=alice client-id=app is near its producer_byte_rate on broker b1.",
            "description": "The rate is 90% of the limit, which user=alice client-id=app sets.",
        },
    }
    case = {
        "rule_files": [rules.name],
        "evaluation_interval": "1m",
        # Else promtool takes them in any order, and each group of the chain may lag a minute.
        "group_eval_order": [group["name"] for group in yaml.safe_load(rules.read_text())["groups"]],
        "tests": [
            {
                "interval": "1m",
                "input_series": [{"series": rate, "values": "900000x9 100000x10"}],
                "alert_rule_test": [
                    {"eval_time": "5m", "alertname": "KafkaQuotaNearLimit", "exp_alerts": []},
                    {"eval_time": "7m", "alertname": "KafkaQuotaNearLimit", "exp_alerts": [alert]},
                    {"eval_time": "12m", "alertname": "KafkaQuotaNearLimit", "exp_alerts": []},
                ],
            }
        ],
    }
    (tmp_path / "test.yaml").write_text(yaml.safe_dump(case))

    assert "SUCCESS" in promtool("test", "rules", str(tmp_path / "test.yaml"))


def test_hostile_names_find_their_limits(tmp_path: Path) -> None:
    names = [name for name in HOSTILE if name and "\ud800" not in name]
    entities: dict[Entity, dict[str, float]] = {}
    lines = []
    for number, name in enumerate(names, start=1):
        for entity, labels in (
            (user(name), {"user": sanitize_name(name)}),
            (client(name), {"client_id": quote_client_id(name)}),
            (pair(name, DEFAULT), {"user": sanitize_name(name), "client_id": "other"}),
        ):
            entities[entity] = {"producer_byte_rate": float(number)}
            text = ",".join(f'{label}="{exposed(value)}"' for label, value in labels.items())
            lines.append(f"kafka_server_Produce_byte_rate{{{text}}} {number}")
    made = render_prometheus_rules(QuotaRules(cluster='pr"o\\d\n', entities=entities, owners={user("a|b"): "-->"}))
    rules = tmp_path / "hostile.yaml"
    rules.write_text(made.text)
    hurried(rules)
    assert "SUCCESS" in promtool("check", "rules", str(rules))
    with served(page_of(lambda: "\n".join(lines) + "\n")) as port, prometheus(tmp_path, port, rules) as server:
        wait_until(lambda: server.value("count(kafka_quota_utilization)") == len(entities))
        assert server.value("count(kafka_quota_utilization == 1)") == len(entities)
        assert {name[0] for name in labels_of(server, "kafka_quota_utilization", "entity")} == {str(one) for one in entities}


def exposed(value: str) -> str:
    """A label as exporters write it."""
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
