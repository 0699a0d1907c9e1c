"""Rules as a document: what Prometheus would load, for any names, always the same."""

from __future__ import annotations

import json
import math
import re
from typing import Any

import pytest
import yaml
from hypothesis import given

from reconciler.features.monitoring.grafana_dashboard import render_grafana_dashboard
from reconciler.features.monitoring.prometheus_rules import QuotaRules, RuleFile, render_prometheus_rules
from reconciler.features.prometheus.metric_layouts import MetricSeries, read_series, unquote_client_id
from reconciler.model.entity import DEFAULT, Entity
from reconciler.model.quota import CLIENT_KEYS
from reconciler.resolution.kafka_names import quote_client_id, sanitize_name
from reconciler.traffic import Measure
from tests.builders import client, ip, pair, user
from tests.support.hostile_names import NAMES


def rules_of(*entities: tuple[Entity, dict[str, float]], cluster: str = "prod", selector: str = "") -> RuleFile:
    owners = {user("alice"): "team-a"}
    return render_prometheus_rules(QuotaRules(cluster=cluster, entities=dict(entities), owners=owners, selector=selector))


def all_rules(text: str) -> list[dict[str, Any]]:
    return [rule for group in yaml.load(text, yaml.CSafeLoader)["groups"] for rule in group["rules"]]


def limits(text: str) -> list[tuple[dict[str, str], str]]:
    return [(rule["labels"], rule["expr"]) for rule in all_rules(text) if rule.get("record") == "kafka_quota_limit"]


def group_limit(text: str) -> str:
    (rule,) = (rule for rule in all_rules(text) if rule.get("record") == "kafka_quota_group_limit")
    return str(rule["expr"])


def test_a_limit_has_the_entity_its_level_and_its_owner() -> None:
    assert limits(rules_of((user("alice"), {"producer_byte_rate": 1048576.0, "request_percentage": 12.5})).text) == [
        (
            {"cluster": "prod", "user": "alice", "entity": "user=alice", "level": "3", "owner": "team-a", "key": key},
            f"vector({value})",
        )
        for key, value in (("producer_byte_rate", "1048576"), ("request_percentage", "12.5"))
    ]


def test_the_user_called_default_and_the_default_user_are_two() -> None:
    found = limits(rules_of((user("<default>"), {"producer_byte_rate": 1.0}), (user(), {"producer_byte_rate": 2.0})).text)

    assert [(labels["user"], labels["level"]) for labels, _ in found] == [("%3Cdefault%3E", "3"), ("<default>", "6")]


def test_a_client_id_that_kafka_quotes_has_a_limit_for_either_spelling() -> None:
    found = limits(rules_of((client("a*b"), {"producer_byte_rate": 1.0}), (client("c"), {"producer_byte_rate": 1.0})).text)

    assert [labels["client_id"] for labels, _ in found] == ['"a\\*b"', "a*b", "c"]


def test_only_levels_in_use_are_joined_the_strongest_first() -> None:
    text = group_limit(rules_of((user(), {"producer_byte_rate": 1.0}), (user("a"), {"producer_byte_rate": 1.0})).text)

    assert [part.split('level="')[1][0] for part in text.split("\nor ")] == ["3", "6"]
    assert 'user!="",client_id!=""' not in text


def test_entities_that_rules_cannot_compare_are_named() -> None:
    rate = {"producer_byte_rate": 1.0}
    addresses = ((ip("10.0.0.1"), {"connection_creation_rate": 5.0}), (ip(), {"connection_creation_rate": 5.0}))
    made = rules_of((user(), rate), (pair("a", DEFAULT), rate), *addresses, (client("x"), {"producer_byte_rate": math.inf}))

    assert (set(made.left_out), made.limits) == ({client("x"), ip("10.0.0.1"), ip()}, 2)


def test_without_a_limit_the_rules_are_still_good() -> None:
    records = {rule.get("record") for rule in all_rules(rules_of().text)}

    assert "kafka_quota_rate" in records
    assert "kafka_quota_group_limit" not in records


def test_the_order_of_entities_makes_no_difference() -> None:
    entities = [(user("b"), {"producer_byte_rate": 1.0}), (pair("a", DEFAULT), {"consumer_byte_rate": 2.0})]

    assert rules_of(*entities).text == rules_of(*reversed(entities)).text


def test_the_selector_reaches_each_rate() -> None:
    text = rules_of((user("a"), {"producer_byte_rate": 1.0}), selector='job="kafka"').text

    rates = [rule["expr"] for rule in all_rules(text) if rule.get("record") == "kafka_quota_rate"]
    assert len(rates) == 4
    assert all(',job="kafka"}' in expr and '"$1", "instance"' in expr for expr in rates)


SENDABLE = NAMES.filter(lambda name: name != "" and not any("\ud800" <= character <= "\udfff" for character in name))


@given(name=SENDABLE, cluster=SENDABLE)
def test_any_name_is_read_back_from_the_file(name: str, cluster: str) -> None:
    text = rules_of((pair(name, name), {"producer_byte_rate": 1.0}), cluster=cluster).text

    labels, _ = limits(text)[0]
    assert (labels["user"], labels["client_id"]) == (sanitize_name(name), quote_client_id(name))
    assert labels["cluster"] == cluster
    assert unquote_client_id(labels["client_id"]) == name or name.startswith('"')


@pytest.mark.parametrize(("sensor", "measure"), [(None, Measure.RATE), ("throttle_time", Measure.THROTTLE_TIME)])
def test_each_series_of_the_rules_is_one_that_the_reader_of_traffic_knows(sensor: str | None, measure: Measure) -> None:
    quotas = QuotaRules(cluster="prod", entities={}, owners={})
    for key in CLIENT_KEYS:
        expr = quotas.measured(key, sensor)
        (names,), (resource,) = re.findall(r"kafka_server_\((.*?)\)_", expr), re.findall(r'resource=~"\|(.*?)"', expr)
        (rest,) = re.findall(r"\)_(\w+)", expr)
        for kind in names.split("|"):
            labels = {"__name__": f"kafka_server_{kind}_{rest}", "user": "a", "client_id": "b", "broker": "1"}
            series = read_series(labels | ({"resource": resource} if kind == "quota" else {}))
            assert isinstance(series, MetricSeries), labels
            assert (series.user, series.client_id, series.measure, series.kind.key) == ("a", "b", measure, key)


def test_the_dashboard_is_one_json_document_and_its_panels_do_not_overlap() -> None:
    document = json.loads(render_grafana_dashboard('pr"od'))

    covered = [
        (x, y)
        for panel in document["panels"]
        for x in range(panel["gridPos"]["x"], panel["gridPos"]["x"] + panel["gridPos"]["w"])
        for y in range(panel["gridPos"]["y"], panel["gridPos"]["y"] + panel["gridPos"]["h"])
    ]
    assert len(covered) == len(set(covered))
    assert max(x for x, _ in covered) < 24
    assert document["templating"]["list"][1]["current"]["value"] == 'pr"od'
