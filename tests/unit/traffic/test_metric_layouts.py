"""Series of exporters: the layouts that were read from real brokers, and what is not a client's rate."""

from __future__ import annotations

import urllib.parse

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.traffic.kinds import Kind
from reconciler.traffic.sources.metric_layouts import (
    Measure,
    MetricSeries,
    Unattributed,
    broker_of,
    read_series,
    unquote_client_id,
)

BROKER = {"instance": "kafka-2:7071", "job": "kafka"}


def series(kind: Kind, user: str | None, client_id: str | None, measure: Measure = Measure.RATE) -> MetricSeries:
    return MetricSeries(broker=2, kind=kind, user=user, client_id=client_id, measure=measure)


@pytest.mark.parametrize(
    ("labels", "found"),
    [
        # jmx_exporter, example kafka-2_0_0; koperator
        (
            {"__name__": "kafka_server_quota_byte_rate", "resource": "Produce", "user": "alice", "clientId": "app"},
            series(Kind.PRODUCE, "alice", "app"),
        ),
        ({"__name__": "kafka_server_quota_byte_rate", "resource": "Fetch", "user": "alice"}, series(Kind.FETCH, "alice", None)),
        (
            {"__name__": "kafka_server_quota_request_time", "resource": "Request", "clientId": "app"},
            series(Kind.REQUEST, None, "app"),
        ),
        # the older order of rules
        (
            {"__name__": "kafka_server_quota_byte_rate", "clientId": "app", "resource": "Produce, user=alice"},
            series(Kind.PRODUCE, "alice", "app"),
        ),
        # Confluent's monitoring stacks, Strimzi's reporter
        (
            {"__name__": "kafka_server_produce_byte_rate", "user": "alice", "client_id": "app"},
            series(Kind.PRODUCE, "alice", "app"),
        ),
        # no rules: the default format, Amazon MSK
        (
            {"__name__": "kafka_server_Fetch_byte_rate", "user": "CN%3Dorders%2COU%3Dx%20y", "client_id": '"a\\"b\\*"'},
            series(Kind.FETCH, "CN=orders,OU=x y", 'a"b*'),
        ),
        (
            {"__name__": "kafka_server_ControllerMutation_mutation_rate", "user": "ops"},
            series(Kind.MUTATION, "ops", None),
        ),
        # Chitragupta's contract
        (
            {
                "__name__": "kafka_server_quota_byte_rate",
                "quota_type": "Produce",
                "user": "alice",
                "client_id": "not_applicable",
            },
            series(Kind.PRODUCE, "alice", None),
        ),
        # other measures
        (
            {"__name__": "kafka_server_quota_throttle_time", "resource": "Fetch", "user": "alice", "clientId": "app"},
            series(Kind.FETCH, "alice", "app", Measure.THROTTLE_TIME),
        ),
        (
            {"__name__": "kafka_server_request_throttle_time", "user": "alice"},
            series(Kind.REQUEST, "alice", None, Measure.THROTTLE_TIME),
        ),
        (
            {"__name__": "kafka_server_quota_throttle_time_ms", "quota_type": "Produce", "user": "alice"},
            series(Kind.PRODUCE, "alice", None, Measure.THROTTLE_TIME),
        ),
        (
            {"__name__": "kafka_server_ControllerMutation_tokens", "user": "ops"},
            series(Kind.MUTATION, "ops", None, Measure.TOKENS),
        ),
        ({"__name__": "kafka_server_Produce_queue_size"}, series(Kind.PRODUCE, None, None, Measure.QUEUE_SIZE)),
        ({"__name__": "kafka_server_controllermutation_queue_size"}, series(Kind.MUTATION, None, None, Measure.QUEUE_SIZE)),
        # jmx_exporter, example kafka-kraft-3_0_0
        ({"__name__": "kafka_server_produce_user_alice_client_id_app_byte_rate"}, Unattributed.NAME_ONLY),
        # series of other sensors
        ({"__name__": "kafka_server_quota_byte_rate", "resource": "FetchSessionCache", "user": "x"}, None),
        # a queue size without a kind, or of a client, is of another sensor
        ({"__name__": "kafka_server_quota_queue_size"}, None),
        ({"__name__": "kafka_server_produce_queue_size", "user": "alice"}, None),
        ({"__name__": "kafka_server_produce_throttle_time"}, None),
        ({"__name__": "kafka_server_produce_tokens", "user": "alice"}, None),
        ({"__name__": "kafka_server_request_byte_rate", "user": "alice"}, None),
        ({"__name__": "kafka_server_request_request_time"}, None),
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
        ({"instance": "kafka:7071"}, None),
        ({}, None),
    ],
)
def test_the_broker_is_a_label_or_the_number_of_its_host(labels: dict[str, str], broker: int | None) -> None:
    assert broker_of(labels) == broker
    if broker is None:
        one = {"__name__": "kafka_server_produce_byte_rate", "user": "a", **labels}
        assert read_series(one) is Unattributed.NO_BROKER


def quote(text: str) -> str:
    """``ObjectName.quote`` of Java."""
    escaped = "".join("\\n" if char == "\n" else f"\\{char}" if char in '\\"*?' else char for char in text)
    return f'"{escaped}"'


@given(st.text(min_size=1, max_size=40))
def test_users_and_quoted_client_ids_are_read_back(text: str) -> None:
    assert unquote_client_id(quote(text)) == text
    labels = {"__name__": "kafka_server_produce_byte_rate", "user": urllib.parse.quote(text, safe=""), "client_id": quote(text)}
    found = read_series({**BROKER, **labels})
    assert isinstance(found, MetricSeries)
    assert (found.user, found.client_id) == (text, text)
