"""What is logged about requests to a real broker: which went where, how long it took, what came back, and never a secret."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from reconciler.backends.broker.cluster import BrokerCluster
from reconciler.backends.broker.settings import ConnectionSettings, SaslLogin, Security, parse_servers
from reconciler.errors import AuthenticationError
from reconciler.features.sandbox.spec import Sandbox
from tests.support.records import Records, recorded

pytestmark = pytest.mark.kafka


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
