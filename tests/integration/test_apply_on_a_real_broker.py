"""The whole writing path against a real broker: what is planned is what the broker holds afterwards, by independent witnesses."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from reconciler.features.sandbox.clients import create_topic, produce_steadily
from reconciler.features.sandbox.spec import Sandbox
from reconciler.model.cluster import ClusterSpec, Prune, Scope
from reconciler.model.entity import DEFAULT, Entity, MatchKind, Selector, TypeMatch
from reconciler.model.plan import ApplyReport, ApplyResult
from reconciler.model.quota import QuotaKey, legal_keys
from reconciler.policy.guards import GUARDS
from reconciler.ports import NO_PROGRESS, QuotaCluster, SystemClock
from reconciler.workflows.apply import UNASKED, Approval, apply_manifests
from reconciler.workflows.connect import Access, open_cluster
from reconciler.workflows.intent import Intent
from reconciler.workflows.plan import make_plan
from tests.builders import client, declared, desired, ip, pair, user
from tests.support import config_command, raw_quotas

pytestmark = pytest.mark.kafka

State = Mapping[Entity, Mapping[str, float]]

NAMES = st.one_of(
    st.just(DEFAULT),
    st.sampled_from(
        ["a", "b", "on", "0123", "null", "<default>", "%40", "é", "😀", " lead", "trail ", "it's", 'say "x"', "two\nlines"]
    ),
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=12),
)
ENTITIES = st.one_of(
    st.fixed_dictionaries({"user": NAMES}),
    st.fixed_dictionaries({"client-id": NAMES}),
    st.fixed_dictionaries({"user": NAMES, "client-id": NAMES}),
    st.fixed_dictionaries({"ip": st.one_of(st.just(DEFAULT), st.sampled_from(["10.0.0.1", "10.0.0.2", "fe80::1"]))}),
).map(Entity.of)
WHOLE = st.integers(1, 2**53).map(float)
# Request and connection rates are high, because the default entities reach this test's own connections.
VALUES = {
    QuotaKey.PRODUCER_BYTE_RATE: WHOLE,
    QuotaKey.CONSUMER_BYTE_RATE: WHOLE,
    QuotaKey.REQUEST_PERCENTAGE: st.floats(min_value=1e3, max_value=1e6),
    QuotaKey.CONTROLLER_MUTATION_RATE: st.floats(min_value=1e-3, max_value=1e6),
    QuotaKey.CONNECTION_CREATION_RATE: st.integers(10_000, 2**31 - 1).map(float),
}


@st.composite
def states(draw: st.DrawFn) -> dict[Entity, dict[str, float]]:
    state = {}
    for entity in draw(st.lists(ENTITIES, unique=True, max_size=8)):
        keys = draw(st.lists(st.sampled_from(legal_keys(entity.types)), unique=True, min_size=1))
        state[entity] = {key.value: draw(VALUES[key]) for key in keys}
    return state


@pytest.fixture
def cluster(clean_kafka: Sandbox) -> Iterator[QuotaCluster]:
    connected = open_cluster(ClusterSpec(), Access(bootstrap_server=clean_kafka.bootstrap_servers))
    yield connected
    connected.close()


def seed(sandbox: Sandbox, state: State) -> None:
    raw_quotas.remove_all(sandbox.bootstrap_servers)
    raw_quotas.alter(sandbox.bootstrap_servers, raw_quotas.raw(state))
    deadline = time.monotonic() + 20
    while raw_quotas.describe(sandbox.bootstrap_servers) != raw_quotas.raw(state):
        assert time.monotonic() < deadline, "the broker does not show what was written"


def intent(state: State, scope: Scope | None = None) -> Intent:
    wanted = desired(*(declared(entity, **quotas) for entity, quotas in state.items()))
    return Intent(spec=ClusterSpec(prune=Prune.ALWAYS, scope=scope or Scope()), desired=wanted, findings=(), paths=())


def run(wanted: Intent, cluster: QuotaCluster) -> ApplyReport:
    approval = Approval(accepted=tuple(GUARDS))
    return apply_manifests(wanted, cluster, approval, dialogue=UNASKED, clock=SystemClock(), progress=NO_PROGRESS)


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture], derandomize=True)
@given(want=states(), live=states(), scoped=st.booleans())
def test_apply_leaves_exactly_the_desired_state_in_scope_and_everything_else_as_it_was(
    cluster: QuotaCluster, clean_kafka: Sandbox, want: State, live: State, scoped: bool
) -> None:
    scope = Scope(include=(Selector(types=(("user", TypeMatch(kind=MatchKind.ANY)),)),)) if scoped else Scope()
    want = {entity: quotas for entity, quotas in want.items() if scope.contains(entity)}
    seed(clean_kafka, live)
    report = run(intent(want, scope), cluster)
    assert report.result in (ApplyResult.DONE, ApplyResult.NOTHING_TO_DO)
    assert report.verified
    outside = {entity: quotas for entity, quotas in live.items() if not scope.contains(entity)}
    assert raw_quotas.describe(clean_kafka.bootstrap_servers) == raw_quotas.raw({**outside, **want})
    assert make_plan(intent(want, scope), cluster, accepted=(), clock=SystemClock()).changes == ()


def sorted_values(line: str) -> str:
    """Kafka's tool prints values in hash order."""
    head, _, values = line.rpartition(" are ")
    return f"{head} are {', '.join(sorted(values.split(', ')))}"


def test_kafkas_own_tool_prints_what_was_applied_for_all_ten_shapes(cluster: QuotaCluster, clean_kafka: Sandbox) -> None:
    rates = {"producer_byte_rate": 1048576.0, "request_percentage": 1212.5}
    pairs = [pair("u", "c"), pair("u", DEFAULT), pair(DEFAULT, "c"), pair(DEFAULT, DEFAULT)]
    shapes = [user("u"), user(), user("<default>"), client("c"), client(), *pairs]
    want: dict[Entity, dict[str, float]] = {entity: dict(rates) for entity in shapes}
    want |= {ip("10.0.0.7"): {"connection_creation_rate": 5.0}, ip(): {"connection_creation_rate": 5000.0}}
    assert run(intent(want), cluster).result is ApplyResult.DONE
    values = "producer_byte_rate=1048576.0, request_percentage=1212.5"
    types = [("users",), ("clients",), ("users", "clients"), ("ips",)]
    printed = {sorted_values(line) for kinds in types for line in config_command.describe(clean_kafka, *kinds)}
    assert printed == {
        f"Quota configs for user-principal 'u' are {values}",
        f"Quota configs for user-principal '<default>' are {values}",
        f"Quota configs for the default user-principal are {values}",
        f"Quota configs for client-id 'c' are {values}",
        f"Quota configs for the default client-id are {values}",
        f"Quota configs for user-principal 'u', client-id 'c' are {values}",
        f"Quota configs for user-principal 'u', the default client-id are {values}",
        f"Quota configs for the default user-principal, client-id 'c' are {values}",
        f"Quota configs for the default user-principal, the default client-id are {values}",
        "Quota configs for ip '10.0.0.7' are connection_creation_rate=5.0",
        "Quota configs for the default ip are connection_creation_rate=5000.0",
    }


def test_a_client_is_throttled_after_apply_and_not_after_the_removal(cluster: QuotaCluster, clean_kafka: Sandbox) -> None:
    create_topic(clean_kafka.bootstrap_servers, "throttled")

    def longest_throttle_ms() -> float:
        report = produce_steadily(
            clean_kafka.sasl_bootstrap_servers or "",
            "throttled",
            client_id="bulk",
            bytes_per_second=400_000,
            seconds=2,
            login=clean_kafka.user("alice"),
        )
        assert report.record_bytes > 0
        return report.throttle_ms_max

    assert run(intent({user("alice"): {"producer_byte_rate": 10_000.0}}), cluster).verified
    assert longest_throttle_ms() > 0
    assert run(intent({}), cluster).verified
    assert longest_throttle_ms() == 0
