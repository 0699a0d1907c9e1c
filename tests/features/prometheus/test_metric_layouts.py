"""Series of exporters: the layouts that were read from real brokers, what is not a client's rate, and the names in them."""

from __future__ import annotations

import itertools
import json
import re
import urllib.parse
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.features.prometheus.metric_layouts import (
    Layout,
    Measure,
    MetricSeries,
    Unattributed,
    broker_of,
    decode_user,
    layout_of,
    read_series,
    selector_of,
    unquote_client_id,
)
from reconciler.resolution.kafka_names import quote_client_id
from reconciler.traffic.kinds import Kind

BROKER = {"instance": "kafka-2:7071", "job": "kafka"}


def series(kind: Kind, user: str | None, client_id: str | None, measure: Measure = Measure.RATE) -> MetricSeries:
    return MetricSeries(broker=2, kind=kind, user=user, client_id=client_id, measure=measure)


def named(name: str, **labels: str) -> dict[str, str]:
    return {"__name__": f"kafka_server_{name}", **labels}


@pytest.mark.parametrize(
    ("labels", "found"),
    [
        # jmx_exporter, example kafka-2_0_0; koperator
        (named("quota_byte_rate", resource="Produce", user="alice", clientId="app"), series(Kind.PRODUCE, "alice", "app")),
        (named("quota_byte_rate", resource="Fetch", user="alice"), series(Kind.FETCH, "alice", None)),
        (named("quota_request_time", resource="Request", clientId="app"), series(Kind.REQUEST, None, "app")),
        # the older order of rules
        (named("quota_byte_rate", clientId="app", resource="Produce, user=alice"), series(Kind.PRODUCE, "alice", "app")),
        (named("quota_byte_rate", resource="Fetch, user=a%2C%20b, client-id=x, y"), series(Kind.FETCH, "a, b", "x, y")),
        (
            named("quota_throttle_time", resource="Request", user='a%20b, client-id="x\\*"'),
            series(Kind.REQUEST, "a b", "x*", Measure.THROTTLE_TIME),
        ),
        # Confluent's monitoring stacks, Strimzi's reporter
        (named("produce_byte_rate", user="alice", client_id="app"), series(Kind.PRODUCE, "alice", "app")),
        # no rules: the default format, Amazon MSK
        (
            named("Fetch_byte_rate", user="CN%3Dorders%2COU%3Dx%20y", client_id='"a\\"b\\*"'),
            series(Kind.FETCH, "CN=orders,OU=x y", 'a"b*'),
        ),
        (named("ControllerMutation_mutation_rate", user="ops"), series(Kind.MUTATION, "ops", None)),
        # a client-id that no quoting made (Strimzi's reporter), and one that looks percent-encoded
        (named("fetch_byte_rate", client_id='"a*"', user="x"), series(Kind.FETCH, "x", '"a*"')),
        (named("fetch_byte_rate", client_id="a%41"), series(Kind.FETCH, None, "a%41")),
        # connections of an address
        (
            named("socket_server_metrics_connection_accept_rate", ip="10.0.0.9"),
            MetricSeries(broker=2, kind=Kind.CONNECTION, user=None, client_id=None, ip="10.0.0.9"),
        ),
        (named("socket_server_metrics_connection_accept_rate", listener="PLAINTEXT"), None),
        # other measures
        (
            named("quota_throttle_time", resource="Fetch", user="alice", clientId="app"),
            series(Kind.FETCH, "alice", "app", Measure.THROTTLE_TIME),
        ),
        (named("request_throttle_time", user="alice"), series(Kind.REQUEST, "alice", None, Measure.THROTTLE_TIME)),
        (
            named("quota_throttle_time_ms", quota_type="Produce", user="alice"),
            series(Kind.PRODUCE, "alice", None, Measure.THROTTLE_TIME),
        ),
        (named("ControllerMutation_tokens", user="ops"), series(Kind.MUTATION, "ops", None, Measure.TOKENS)),
        (named("Produce_queue_size"), series(Kind.PRODUCE, None, None, Measure.QUEUE_SIZE)),
        (named("controllermutation_queue_size"), series(Kind.MUTATION, None, None, Measure.QUEUE_SIZE)),
        # jmx_exporter, example kafka-kraft-3_0_0
        (named("produce_user_alice_client_id_app_byte_rate"), Unattributed.NAME_ONLY),
        (named("controllermutation_client_id_app_tokens"), Unattributed.NAME_ONLY),
        (named("produce_client_id_app_request_time"), None),
        (named("request_user_x_queue_size"), None),
        # series of other sensors
        (named("quota_byte_rate", resource="FetchSessionCache", user="x"), None),
        # a queue size without a kind, or of a client, is of another sensor
        (named("quota_queue_size"), None),
        (named("produce_queue_size", user="alice"), None),
        (named("produce_throttle_time"), None),
        (named("produce_tokens", user="alice"), None),
        (named("request_byte_rate", user="alice"), None),
        (named("request_request_time"), None),
        ({"__name__": "up"}, None),
    ],
)
def test_a_series_of_each_layout(labels: dict[str, str], found: object) -> None:
    assert read_series({**BROKER, **labels}) == found


@pytest.mark.parametrize(
    ("labels", "broker"),
    [
        ({"broker_id": "7", "instance": "kafka-2:7071"}, 7),
        ({"pod": "prod-kafka-11", "instance": "10.0.0.3:9404"}, 11),
        ({"instance": "kafka-2:7071"}, 2),
        ({"instance": "b3.kafka.example.org:7071"}, 3),
        ({"instance": "10.0.0.3:9404"}, None),
        ({"instance": "ip-10-0-0-3.ec2.internal:9404"}, None),
        ({"node": "worker-5", "instance": "10.0.0.3:9404"}, None),
        ({"node": "5"}, 5),
        ({"pod": "prod-kafka-11", "node": "worker-5"}, 11),
        ({"broker": "\u0663"}, None),
        ({"instance": "kafka:7071"}, None),
        ({}, None),
    ],
)
def test_the_broker_is_a_label_or_the_number_of_its_host(labels: dict[str, str], broker: int | None) -> None:
    assert broker_of(labels) == broker
    if broker is None:
        one = {"__name__": "kafka_server_produce_byte_rate", "user": "a", **labels}
        assert read_series(one) is Unattributed.NO_BROKER


@pytest.mark.parametrize(
    ("labels", "layout"),
    [
        (named("quota_byte_rate", resource="Produce", user="a"), Layout.QUOTA_LABELS),
        (named("quota_byte_rate", resource="Produce, user=a"), Layout.OLD_RULE_ORDER),
        (named("quota_byte_rate", quota_type="Produce"), Layout.QUOTA_LABELS),
        (named("produce_user_a_byte_rate"), Layout.NAME_ONLY),
        (named("produce_queue_size"), Layout.LOWER_CASE),
        (named("ControllerMutation_tokens"), Layout.DEFAULT_FORMAT),
        (named("brokertopicmetrics_bytesin_total"), None),
    ],
)
def test_the_layout_of_a_series(labels: dict[str, str], layout: Layout | None) -> None:
    assert layout_of(labels) is layout


def test_the_selector_asks_for_every_name_that_is_read() -> None:
    selector = selector_of()
    pattern = re.compile(selector.removeprefix('{__name__=~"').removesuffix('"}'))
    for name in ("kafka_server_produce_user_a_byte_rate", "kafka_server_quota_tokens"):
        assert pattern.fullmatch(name)
    assert not pattern.fullmatch("kafka_server_brokertopicmetrics_count")
    assert selector_of() == (
        '{__name__=~"kafka_server_(quota|[Pp]roduce|[Ff]etch|[Rr]equest|[Cc]ontroller_?[Mm]utation)_.+'
        '|kafka_server_socket_server_metrics_connection_accept_rate"}'
    )


USER_LABELS = ("user", "User", "USER", "user_name", "userName", "principal", "principal_name", "quota_user")
CLIENT_LABELS = ("clientId", "clientid", "client_id", "client-id", "ClientID", "CLIENT_ID", "client", "clientName")
KIND_LABELS = ("resource", "Resource", "type", "kind", "quota", "quota_type", "quotaKind")


def test_labels_count_in_each_spelling() -> None:
    for user, client_id, kind in itertools.product(USER_LABELS, CLIENT_LABELS, KIND_LABELS):
        labels = named("quota_byte_rate", **{kind: "produce", user: "alice", client_id: "App"}, **BROKER)
        assert read_series(labels) == series(Kind.PRODUCE, "alice", "App"), labels


@pytest.mark.parametrize(
    ("name", "kind", "measure"),
    [
        ("kafka_server_produce_byterate", Kind.PRODUCE, Measure.RATE),
        ("kafka_server_Fetch_byte_rate_value", Kind.FETCH, Measure.RATE),
        ("kafka_server_request_requesttime", Kind.REQUEST, Measure.RATE),
        ("kafka_server_request_throttletime_ms", Kind.REQUEST, Measure.THROTTLE_TIME),
        ("kafka_server_Controller_Mutation_mutation_rate", Kind.MUTATION, Measure.RATE),
    ],
)
def test_attributes_count_in_each_spelling(name: str, kind: Kind, measure: Measure) -> None:
    labels = {"__name__": name, "user": "alice", **BROKER}
    assert read_series(labels) == series(kind, "alice", None, measure)
    assert re.fullmatch(selector_of().removeprefix('{__name__=~"').removesuffix('"}'), name)


@pytest.mark.parametrize("resource", ["Produce", "produce", "PRODUCE", "Controller-Mutation", "controller_mutation"])
def test_a_kind_is_found_among_labels_that_mean_something_else(resource: str) -> None:
    kind, name = (Kind.PRODUCE, "byte_rate") if resource.lower() == "produce" else (Kind.MUTATION, "mutation_rate")
    labels = {"__name__": f"kafka_server_quota_{name}", "type": "kafka", "kind": resource, "user": "alice", **BROKER}
    assert read_series(labels) == series(kind, "alice", None)


def test_of_two_spellings_of_one_label_the_one_with_a_value_counts() -> None:
    labels = {"__name__": "kafka_server_produce_byte_rate", "user": "alice", "clientId": "", "client_id": "app", **BROKER}
    assert read_series(labels) == series(Kind.PRODUCE, "alice", "app")


VECTORS = json.loads((Path(__file__).parent / "metric_names.json").read_text("utf-8"))
"""Made with ``Sanitizer`` of kafka-clients 4.3.1, on Java 17."""
NAMES = st.text(
    st.one_of(st.sampled_from('ab_-AB ,="\\*?\n%~\u212a'), st.characters(codec="utf-8")), min_size=1, max_size=12
) | st.sampled_from(["client_id", "_client_id_", "-"])


def test_names_are_read_as_kafka_writes_them() -> None:
    for vector in VECTORS:
        name = vector["name"]
        assert quote_client_id(name) == vector["client_id"], vector
        assert (decode_user(vector["user"]), unquote_client_id(vector["client_id"])) == (name, name), vector


@given(NAMES)
def test_encoded_names_are_read_back(name: str) -> None:
    assert decode_user(urllib.parse.quote(name, safe="")) == name
    assert unquote_client_id(quote_client_id(name)) == name
