"""Describe's filters and alter's requests against a real broker: random states, and names made to break what shows them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from reconciler.backends.broker.cluster import BrokerCluster
from reconciler.backends.broker.settings import ConnectionSettings, parse_servers
from reconciler.errors import BackendError, RequestRefusedError, UnsupportedClusterError
from reconciler.features.sandbox.spec import Sandbox
from reconciler.model.entity import Entity, MatchKind, Selector, TypeMatch
from reconciler.model.plan import Alteration, ApplyReport, ApplyResult
from reconciler.model.quota import legal_keys
from reconciler.model.state import Quotas
from reconciler.policy.guards import GUARDS
from reconciler.ports import NO_PROGRESS, EntityFilter, FilterComponent, FilterKind, SystemClock
from reconciler.render.state_text import state_as_text
from reconciler.resolution.broker_rules import answer, filter_refusal, nearest_filter
from reconciler.workflows.alter import AlterRequest, alter_entities, make_alter_request
from reconciler.workflows.apply import UNASKED, Approval
from reconciler.workflows.connect import ClusterTarget
from reconciler.workflows.describe import describe_cluster
from tests.builders import client, pair, user
from tests.support import random_filters, raw_quotas
from tests.support.hostile_names import HOSTILE
from tests.support.kip_text import read_description
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


@given(wanted=random_filters.STATES, queries=random_filters.SEVERAL_QUERIES)
@settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture])
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


SENDABLE = [name for name in HOSTILE if name and "\ud800" not in name]

HIGH = {"producer_byte_rate": 1e12, "consumer_byte_rate": 1e12, "connection_creation_rate": 1e6}


def altered(broker: BrokerCluster, request: AlterRequest) -> ApplyReport:
    return alter_entities(
        broker,
        (request,),
        Approval(accepted=tuple(GUARDS)),
        target=ClusterTarget(),
        dialogue=UNASKED,
        clock=SystemClock(),
        progress=NO_PROGRESS,
    )


def only(entity: Entity) -> Selector:
    kinds = (
        (t, TypeMatch(kind=MatchKind.NAME, text=n) if isinstance(n, str) else TypeMatch(kind=MatchKind.DEFAULT))
        for t, n in entity.parts
    )
    return Selector(types=tuple(kinds), strict=True)


@st.composite
def requests(draw: st.DrawFn) -> AlterRequest:
    entity = draw(random_filters.ENTITIES)
    keys = [key.value for key in legal_keys(entity.types)]
    named = draw(st.lists(st.sampled_from(keys), min_size=1, unique=True))
    added = draw(st.sets(st.sampled_from(named)))
    add = {key: HIGH.get(key, 1e9) + draw(st.integers(0, 2)) for key in added}
    return make_alter_request(entity, add=add, delete=[key for key in named if key not in added])


@given(asked=st.lists(requests(), min_size=1, max_size=4))
@settings(max_examples=12)
def test_every_request_leads_to_what_it_asks_for_and_changes_nothing_else(
    broker: BrokerCluster, asked: list[AlterRequest]
) -> None:
    for request in asked:
        before = dict(describe_cluster(broker).entities)
        live = before.pop(request.entity, {})
        wanted = {key: value for key, value in {**live, **request.add}.items() if key not in request.delete}

        report = altered(broker, request)

        expected = ApplyResult.NOTHING_TO_DO if wanted == live else ApplyResult.DONE
        assert (report.result, report.verified) == (expected, True)
        assert describe_cluster(broker).entities == before | ({request.entity: wanted} if wanted else {})


@pytest.mark.parametrize("make", [user, client, lambda name: pair(name, name)], ids=["user", "client-id", "both"])
def test_hostile_names_are_written_found_and_shown_as_they_are(broker: BrokerCluster, kafka_sandbox: Sandbox, make) -> None:
    raw_quotas.remove_all(kafka_sandbox.bootstrap_servers)
    some = SENDABLE[:: 1 if make is user else 6]
    for name in some:
        report = altered(broker, make_alter_request(make(name), add={"producer_byte_rate": 1e12}))
        assert report.result is ApplyResult.DONE, name

    everything = read_description("".join(state_as_text(describe_cluster(broker))))
    assert [name for name in some if everything.get(make(name)) != {"producer_byte_rate": 1e12}] == []
    for name in some[:10]:
        assert read_description("".join(state_as_text(describe_cluster(broker, only(make(name)))))) == {
            make(name): {"producer_byte_rate": 1e12}
        }
