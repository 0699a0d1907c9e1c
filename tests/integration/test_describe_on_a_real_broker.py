"""Describe's filters against the answers of a real broker: the reference fixture, random states, and what a broker refuses."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, given, settings

from reconciler.backends.broker.cluster import BrokerCluster
from reconciler.backends.broker.settings import ConnectionSettings, parse_servers
from reconciler.errors import BackendError, RequestRefusedError, UnsupportedClusterError
from reconciler.features.sandbox.spec import Sandbox
from reconciler.model.entity import Entity, MatchKind, Selector, TypeMatch
from reconciler.model.plan import Alteration
from reconciler.model.state import Quotas
from reconciler.ports import EntityFilter, FilterComponent, FilterKind
from reconciler.resolution.broker_rules import answer, filter_refusal, nearest_filter
from reconciler.workflows.describe import describe_cluster
from tests.support import random_filters, raw_quotas
from tests.support.polling import wait_until

pytestmark = pytest.mark.kafka


@pytest.fixture(scope="module")
def broker(kafka_sandbox: Sandbox) -> Iterator[BrokerCluster]:
    raw_quotas.remove_all(kafka_sandbox.bootstrap_servers)
    cluster = BrokerCluster.open(ConnectionSettings(servers=parse_servers((kafka_sandbox.bootstrap_servers,))))
    yield cluster
    cluster.close()
    raw_quotas.remove_all(kafka_sandbox.bootstrap_servers)


def become(broker: BrokerCluster, wanted: dict[Entity, Quotas]) -> None:
    """Bring the broker from any state to this one, and wait until it shows."""
    there = broker.describe(EntityFilter())
    changes = [Alteration(entity=e, ops=dict.fromkeys(there[e])) for e in there if e not in wanted]
    changes += [Alteration(entity=e, ops=dict(wanted[e])) for e in wanted if e not in there]
    if changes:
        assert {result.error_code for result in broker.alter(changes, validate_only=False)} == {0}
        wait_until(lambda: broker.describe(EntityFilter()) == wanted)


@given(
    wanted=random_filters.STATES,
    queries=random_filters.SEVERAL_QUERIES,
)
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_snapshot_is_filtered_exactly_as_a_broker_filters(
    broker: BrokerCluster, wanted: dict[Entity, Quotas], queries: list[Selector]
) -> None:
    become(broker, wanted)

    for query in queries:
        entity_filter = nearest_filter(query)
        assert broker.describe(entity_filter) == answer(entity_filter, wanted), query
        assert describe_cluster(broker, query).entities == {e: q for e, q in wanted.items() if query.matches(e)}, query


REFUSED = [
    (FilterComponent(entity_type="group", kind=FilterKind.SPECIFIED),),
    (FilterComponent(entity_type="", kind=FilterKind.SPECIFIED),),
    (FilterComponent(entity_type="user", kind=FilterKind.EXACT),),
    (FilterComponent(entity_type="user", kind=FilterKind.DEFAULT, name="a"),),
    (FilterComponent(entity_type="user", kind=FilterKind.SPECIFIED, name="a"),),
    (
        FilterComponent(entity_type="user", kind=FilterKind.SPECIFIED),
        FilterComponent(entity_type="user", kind=FilterKind.DEFAULT),
    ),
    (FilterComponent(entity_type="ip", kind=FilterKind.SPECIFIED), FilterComponent(entity_type="user", kind=FilterKind.DEFAULT)),
]


@pytest.mark.parametrize("components", REFUSED, ids=str)
def test_what_a_broker_refuses_we_know_by_code_and_words(broker: BrokerCluster, components: tuple[FilterComponent, ...]) -> None:
    ours = filter_refusal(EntityFilter(components=components))
    assert ours is not None
    code, words = ours

    with pytest.raises(BackendError) as raised:
        broker.describe(EntityFilter(components=components))

    assert f"with error {code}: {words.rstrip('.')}" in str(raised.value)
    assert isinstance(raised.value, UnsupportedClusterError if code == 35 else RequestRefusedError)


def test_a_filter_that_the_broker_refuses_is_told_in_its_words_and_explained(broker: BrokerCluster) -> None:
    with pytest.raises(UnsupportedClusterError) as raised:
        describe_cluster(broker, Selector(types=(("group", TypeMatch(kind=MatchKind.NAME, text="g")),)))

    assert "error 35: Unsupported entity type group" in str(raised.value)
    assert "Kafka filters by user, client-id" in str(raised.value)
