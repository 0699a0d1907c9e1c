"""The shared broker of the test run."""

from __future__ import annotations

import pytest

from reconciler.features.sandbox.clients import admin_client, brokers_up
from reconciler.features.sandbox.spec import Sandbox
from tests.support import raw_quotas

pytestmark = pytest.mark.kafka


def test_every_user_can_log_in(kafka_sandbox: Sandbox) -> None:
    assert kafka_sandbox.sasl_bootstrap_servers is not None
    for user in kafka_sandbox.users:
        with admin_client(kafka_sandbox.sasl_bootstrap_servers, login=user) as client:
            assert brokers_up(client) == {1}


def test_a_clean_broker_has_no_quota_left_of_an_earlier_test(clean_kafka: Sandbox) -> None:
    servers = clean_kafka.bootstrap_servers
    alice = frozenset({("user", "alice"), ("client-id", None)})
    raw_quotas.alter(servers, {alice: {"producer_byte_rate": 1024.0}})
    raw_quotas.remove_all(servers)
    assert raw_quotas.describe(servers) == {}
