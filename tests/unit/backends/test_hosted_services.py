"""Services that are Kafka by protocol: recognised by their servers' names, and never by anything that looks alike."""

from __future__ import annotations

import pytest

from reconciler.backends.broker.error_messages import foreign_types_notes, service_of
from reconciler.model.entity import Entity
from tests.builders import client, user


@pytest.mark.parametrize(
    ("host", "name"),
    [
        ("pkc-1.eu-west-1.aws.confluent.cloud", "Confluent Cloud"),
        ("PKC-1.confluent.cloud.", "Confluent Cloud"),
        ("boot-a1.c1.kafka-serverless.eu-west-1.amazonaws.com", "Amazon MSK Serverless"),
        ("kafka-1.project.aivencloud.com", "Aiven"),
        ("seed.x.fmc.prd.cloud.redpanda.com", "Redpanda"),
        ("b-1.demo.a1.c2.kafka.eu-west-1.amazonaws.com", None),
        ("confluent.cloud.example.com", None),
        ("notconfluent.cloud", None),
        ("kafka.internal", None),
    ],
)
def test_a_service_is_known_by_the_end_of_its_servers_names(host, name):
    service = service_of(["127.0.0.1", host])

    assert (service and service.name) == name


def test_redpanda_is_known_by_the_id_of_its_clusters():
    service = service_of(["kafka.internal"], "redpanda.0a1b")

    assert service is not None
    assert service.name == "Redpanda"
    assert service_of(["kafka.internal"], "4L6g3nShT-eMCtK--X86sw") is None


def test_only_types_that_kafka_does_not_have_are_noted_and_their_names_are_escaped():
    foreign = Entity.of({"client-id-\x1b[2J": "a"})

    assert foreign_types_notes([user("a"), client("b")]) == ()
    (note,) = foreign_types_notes([user("a"), foreign])
    assert "\x1b" not in note
    assert "client-id-" in note
