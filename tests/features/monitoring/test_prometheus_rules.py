"""Rules as a document: what Prometheus would load, for any names, always the same."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
import yaml
from hypothesis import given

from reconciler.features.monitoring.grafana_dashboard import render_grafana_dashboard
from reconciler.features.monitoring.prometheus_rules import QuotaRules, RuleFile, RuleLayout, RuleOptions, render_prometheus_rules
from reconciler.features.prometheus.metric_layouts import MetricSeries, read_series, unquote_client_id
from reconciler.model.entity import DEFAULT, Entity
from reconciler.model.quota import CLIENT_KEYS
from reconciler.resolution.kafka_names import quote_client_id, sanitize_name
from reconciler.traffic import Measure
from tests.builders import client, ip, pair, user
from tests.support.hostile_names import NAMES


def rules_of(
    *entities: tuple[Entity, dict[str, float]],
    layout: RuleLayout = RuleLayout.DEFAULT_FORMAT,
    cluster: str = "prod",
    **options: Any,
) -> RuleFile:
    quotas = QuotaRules(cluster=cluster, origin="a test", entities=dict(entities), owners={user("alice"): "team-a"})
    return render_prometheus_rules(quotas, RuleOptions(layout=layout, **options))


def all_rules(text: str) -> list[dict[str, Any]]:
    return [rule for group in yaml.safe_load(text)["groups"] for rule in group["rules"]]


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


@pytest.mark.parametrize(("layout", "label"), [(RuleLayout.DEFAULT_FORMAT, '"a\\*b"'), (RuleLayout.STRIMZI, "a*b")])
def test_a_client_id_has_the_spelling_of_the_layout(layout: RuleLayout, label: str) -> None:
    ((labels, _),) = limits(rules_of((client("a*b"), {"producer_byte_rate": 1.0}), layout=layout).text)

    assert labels["client_id"] == label


def test_only_levels_in_use_are_joined_the_strongest_first() -> None:
    text = group_limit(rules_of((user(), {"producer_byte_rate": 1.0}), (user("a"), {"producer_byte_rate": 1.0})).text)

    assert [part.split('level="')[1][0] for part in text.split("\nor ")] == ["3", "6"]
    assert 'user!="",client_id!=""' not in text


def test_entities_that_rules_cannot_compare_are_named() -> None:
    rate = {"producer_byte_rate": 1.0}
    addresses = ((ip("10.0.0.1"), {"connection_creation_rate": 5.0}), (ip(), {"connection_creation_rate": 5.0}))
    made = rules_of((user(), rate), (pair("a", DEFAULT), rate), *addresses, (client("x"), {"producer_byte_rate": math.inf}))

    ((reason, left_out),) = made.left_out.items()
    assert reason == "rules compare rates of users and client-ids, and these quotas have none"
    assert (set(left_out), made.limits) == ({client("x"), ip("10.0.0.1"), ip()}, 2)


def test_without_a_limit_the_rules_are_still_good() -> None:
    records = {rule.get("record") for rule in all_rules(rules_of().text)}

    assert "kafka_quota_rate" in records
    assert "kafka_quota_group_limit" not in records


def test_the_order_of_entities_makes_no_difference() -> None:
    entities = [(user("b"), {"producer_byte_rate": 1.0}), (pair("a", DEFAULT), {"consumer_byte_rate": 2.0})]

    assert rules_of(*entities).text == rules_of(*reversed(entities)).text


def test_options_reach_the_rules() -> None:
    text = rules_of((user("a"), {"producer_byte_rate": 1.0}), near=0.5, pending_s=90, selector='job="kafka"').text

    near = next(rule for rule in all_rules(text) if rule.get("alert") == "KafkaQuotaNearLimit")
    assert (near["expr"], near["for"]) == ('kafka_quota_utilization{cluster="prod"} > 0.5', "90s")
    rates = [rule["expr"] for rule in all_rules(text) if rule.get("record") == "kafka_quota_rate"]
    assert all('{job="kafka"}' in expr and '"$1", "instance"' in expr for expr in rates)


SENDABLE = NAMES.filter(lambda name: name != "" and not any("\ud800" <= character <= "\udfff" for character in name))


@given(name=SENDABLE, cluster=SENDABLE)
def test_any_name_is_read_back_from_the_file(name: str, cluster: str) -> None:
    text = rules_of((pair(name, name), {"producer_byte_rate": 1.0}), cluster=cluster).text

    ((labels, _),) = limits(text)
    assert (labels["user"], labels["client_id"]) == (sanitize_name(name), quote_client_id(name))
    assert labels["cluster"] == cluster
    assert unquote_client_id(labels["client_id"]) == name or name.startswith('"')


@pytest.mark.parametrize("layout", RuleLayout)
@pytest.mark.parametrize(("sensor", "measure"), [(None, Measure.RATE), ("throttle_time", Measure.THROTTLE_TIME)])
def test_the_layout_is_one_that_the_reader_of_traffic_knows(layout: RuleLayout, sensor: str | None, measure: Measure) -> None:
    for key in CLIENT_KEYS:
        name, matcher = layout.series(key, sensor)
        labels = {"__name__": name, "user": "a", "clientId" if matcher else "client_id": "b", "broker": "1"}
        if matcher:
            labels["resource"] = matcher.split('"')[1]
        series = read_series(labels)
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
