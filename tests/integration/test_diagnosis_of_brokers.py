"""What is logged about requests to a real broker: which went where, how long it took, what came back, and never a secret."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from reconciler.backends.broker.cluster import BrokerCluster
from reconciler.backends.broker.settings import ConnectionSettings, SaslLogin, Security, parse_servers
from reconciler.errors import AuthenticationError
from reconciler.features.sandbox.spec import Sandbox
from tests.support.command import run
from tests.support.records import Records, recorded

pytestmark = pytest.mark.kafka

HOSTILE = "a\nkafka-quotas: done \u202e"


def opened(servers: str, login: SaslLogin | None = None) -> BrokerCluster:
    connection = ConnectionSettings(servers=parse_servers((servers,)), security=Security(sasl=login), request_seconds=20.0)
    return BrokerCluster.open(connection)


def answered(records: Records, api: str) -> list[dict[str, object]]:
    return [event for event in records.events("broker answered") if event["api"] == api]


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    secret=st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=12, max_size=40).filter(
        lambda text: len(set(text)) > 5
    ),
    mechanism=st.sampled_from(["PLAIN", "SCRAM-SHA-256"]),
)
def test_a_password_is_in_no_record_of_any_logger_at_any_level(kafka_sandbox: Sandbox, secret: str, mechanism: str) -> None:
    assert kafka_sandbox.sasl_bootstrap_servers is not None
    login = SaslLogin(mechanism=mechanism, username="alice", password=secret)

    with recorded() as records, pytest.raises(AuthenticationError):
        opened(kafka_sandbox.sasl_bootstrap_servers, login)

    assert records.all
    assert not records.holds(secret)


def test_a_command_prints_each_request_as_a_line_of_json(clean_kafka: Sandbox, tmp_path: Path) -> None:
    done = run(
        "describe", "--bootstrap-server", clean_kafka.bootstrap_servers, "-v", "--log-format", "json", cwd=tmp_path, timeout=60
    )

    rows = [json.loads(line) for line in done.err.splitlines()]
    (asked,) = [row for row in rows if row.get("api") == "DescribeClientQuotas"]
    assert done.code == 0, done.err
    assert (asked["event"], asked["level"], asked["broker"]) == ("broker answered", "debug", "bootstrap-0")
    assert asked["address"] == clean_kafka.bootstrap_servers
    assert asked["milliseconds"] >= 0.0
    assert not [row for row in rows if not row["logger"].startswith("reconciler")]
