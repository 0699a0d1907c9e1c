"""The sandbox's producers and consumers, on the shared broker."""

from __future__ import annotations

import threading
import time
import uuid

import pytest

from reconciler.errors import SandboxError
from reconciler.features.sandbox.clients import RECORD_BYTES, admin_client, consume_all, create_topic, produce_steadily
from reconciler.features.sandbox.spec import Sandbox
from tests.support import raw_quotas
from tests.support.polling import wait_until

pytestmark = pytest.mark.kafka

RATE = 400_000.0


@pytest.fixture
def topic(clean_kafka: Sandbox) -> str:
    """A topic of its own."""
    name = f"clients-{uuid.uuid4().hex[:8]}"
    create_topic(clean_kafka.bootstrap_servers, name)
    return name


def test_a_consumer_gets_every_byte_a_producer_got_acknowledged(clean_kafka: Sandbox, topic: str) -> None:
    alice, servers = clean_kafka.user("alice"), clean_kafka.sasl_bootstrap_servers
    assert servers is not None
    sent = produce_steadily(servers, topic, client_id="app", bytes_per_second=RATE, seconds=1.0, login=alice)
    assert (sent.user, sent.client_id, sent.throttle_ms_max) == ("alice", "app", 0.0)
    assert 0 < sent.record_bytes <= RATE * sent.wall_seconds + RECORD_BYTES
    read = consume_all(servers, topic, client_id="reader", seconds=120.0, until_bytes=sent.record_bytes, login=alice)
    assert (read.records, read.record_bytes) == (sent.records, sent.record_bytes)


def test_a_producer_over_its_quota_is_throttled_and_sees_it(clean_kafka: Sandbox, topic: str) -> None:
    alice, servers = clean_kafka.user("alice"), clean_kafka.sasl_bootstrap_servers
    assert servers is not None
    quota = {"producer_byte_rate": 20_000.0}
    raw_quotas.alter(clean_kafka.bootstrap_servers, {frozenset({("user", "alice")}): quota})
    wait_until(lambda: raw_quotas.describe(clean_kafka.bootstrap_servers))
    sent = produce_steadily(servers, topic, client_id="app", bytes_per_second=RATE, seconds=3.0, login=alice)
    assert sent.throttle_ms_max > 0
    assert sent.throttle_ms_average <= sent.throttle_ms_max
    assert sent.record_bytes < RATE * 3


def test_a_client_stops_when_it_is_told(clean_kafka: Sandbox, topic: str) -> None:
    stop = threading.Event()
    stop.set()
    begun = time.monotonic()
    sent = produce_steadily(clean_kafka.bootstrap_servers, topic, client_id="app", bytes_per_second=RATE, seconds=3600, stop=stop)
    read = consume_all(clean_kafka.bootstrap_servers, topic, client_id="app", seconds=3600, stop=stop)
    assert (sent.records, read.records) == (0, 0)
    assert time.monotonic() - begun < 3600


def test_making_a_topic_that_exists_is_no_error(clean_kafka: Sandbox, topic: str) -> None:
    create_topic(clean_kafka.bootstrap_servers, topic)
    with admin_client(clean_kafka.bootstrap_servers) as client:
        assert client.list_topics().count(topic) == 1


def test_a_topic_that_cannot_be_is_an_error_in_our_words(clean_kafka: Sandbox) -> None:
    with pytest.raises(SandboxError, match="cannot create topic no blanks"):
        create_topic(clean_kafka.bootstrap_servers, "no blanks")


def test_reading_a_topic_that_is_not_there_is_an_error(clean_kafka: Sandbox) -> None:
    with pytest.raises(SandboxError, match="no such topic"):
        consume_all(clean_kafka.bootstrap_servers, "never-made", client_id="app", seconds=1.0)
