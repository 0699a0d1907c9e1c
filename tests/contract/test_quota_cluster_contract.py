"""What everything that writes quotas relies on, kept by the cluster in memory, by a real broker and in ZooKeeper alike."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping

import pytest

from reconciler.errors import RequestRefusedError, UnsupportedClusterError
from reconciler.model.entity import DEFAULT, Entity
from reconciler.model.plan import Alteration
from reconciler.model.state import Quotas
from reconciler.ports import EntityFilter, FilterComponent, FilterKind, QuotaCluster
from tests.builders import client, ip, pair, user
from tests.fakes import FakeCluster

pytestmark = pytest.mark.xdist_group("kafka")  # whose servers are asked for by name
EXACT, IS_DEFAULT, ANY = FilterKind.EXACT, FilterKind.DEFAULT, FilterKind.SPECIFIED

TEN_SHAPES = (
    user("a"), user(), client("c"), client(), pair("a", "c"), pair("a", DEFAULT), pair(DEFAULT, "c"), pair(DEFAULT, DEFAULT),
    ip("10.0.0.1"), ip(),
)  # fmt: skip

STRANGE_NAMES = (
    "<default>", 'with "quotes"', "two\nlines", "on", "0123", "null", "~", "%40", "%", "é", "e\u0301", "😀", " leading",
    "trailing ", "User:alice", "CN=a,OU=b", "a=b", "a,b", "\t", "\x00", "\u202e", "x" * 32_767,
)  # fmt: skip


VERSIONS = {"memory": "4.3", "broker": "4.4", "zookeeper": None}
"""What each can tell of the Kafka release."""


@pytest.fixture(params=["memory", *(pytest.param(kind, marks=pytest.mark.kafka) for kind in ("broker", "zookeeper"))])
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def cluster(request: pytest.FixtureRequest, kind: str) -> Iterator[QuotaCluster]:
    if kind == "memory":
        yield FakeCluster()
        return
    if kind == "zookeeper":
        from tests.support.zookeeper_session import zookeeper_cluster

        with zookeeper_cluster(request.getfixturevalue("zookeeper_kafka").zookeeper) as nodes:
            yield nodes
        return
    from reconciler.backends.broker.cluster import BrokerCluster
    from reconciler.backends.broker.settings import ConnectionSettings, parse_servers

    sandbox = request.getfixturevalue("clean_kafka")
    real = BrokerCluster.open(ConnectionSettings(servers=parse_servers((sandbox.bootstrap_servers,))), name="sandbox")
    yield real
    real.close()


def quotas_for(entity: Entity) -> dict[str, float]:
    return (
        {"connection_creation_rate": 7.0} if "ip" in entity.types else {"producer_byte_rate": 1024.0, "request_percentage": 12.5}
    )


def write(cluster: QuotaCluster, wanted: Mapping[Entity, Mapping[str, float | None]]) -> None:
    results = cluster.alter([Alteration(entity=e, ops=dict(q)) for e, q in wanted.items()], validate_only=False)
    assert [(r.entity, r.error_code, r.error) for r in results] == [(e, 0, None) for e in wanted]


def eventually(cluster: QuotaCluster, holds: Callable[[Mapping[Entity, Quotas]], bool]) -> Mapping[Entity, Quotas]:
    """A full read once it holds, or the last one: reads lag writes."""
    deadline = time.monotonic() + 10
    while True:
        seen = cluster.current_state().entities
        if holds(seen) or time.monotonic() > deadline:
            return seen


def described(cluster: QuotaCluster, *components: tuple[str, FilterKind, str | None], strict: bool = False) -> set[Entity]:
    parts = tuple(FilterComponent(entity_type=t, kind=k, name=n) for t, k, n in components)
    return set(cluster.describe(EntityFilter(components=parts, strict=strict)))


def test_all_ten_shapes_are_written_and_read_back(cluster):
    wanted = {e: quotas_for(e) for e in TEN_SHAPES}
    write(cluster, wanted)

    assert eventually(cluster, lambda seen: len(seen) == 10) == wanted


def test_strange_names_survive_the_round_trip(cluster):
    wanted = {make(name): quotas_for(user()) for name in STRANGE_NAMES for make in (user, client, lambda n: pair(n, n))}
    write(cluster, wanted)

    assert eventually(cluster, lambda seen: len(seen) == len(wanted)) == wanted


def test_the_literal_name_default_is_not_the_default(cluster):
    write(cluster, {user("<default>"): {"producer_byte_rate": 1.0}, user(): {"producer_byte_rate": 2.0}})

    seen = eventually(cluster, lambda seen: len(seen) == 2)
    assert seen[user("<default>")] == {"producer_byte_rate": 1.0}
    assert seen[user()] == {"producer_byte_rate": 2.0}
    assert described(cluster, ("user", EXACT, "<default>")) == {user("<default>")}


def test_values_come_back_as_the_same_double(cluster):
    values = {
        "a": {"producer_byte_rate": 2.0**63, "consumer_byte_rate": float(2**53 + 2), "request_percentage": 1.0000001},
        "b": {"controller_mutation_rate": 5e-324, "request_percentage": 1.7976931348623157e308},
    }
    write(cluster, {user(name): quotas for name, quotas in values.items()})

    seen = eventually(cluster, lambda seen: len(seen) == len(values))
    assert seen == {user(name): quotas for name, quotas in values.items()}


def test_a_whole_number_with_noise_is_kept_or_refused_and_never_bent(cluster):
    (result,) = cluster.alter([Alteration(entity=user("a"), ops={"producer_byte_rate": 1.0000001})], validate_only=False)
    # A write after it, so that the first one is visible.
    write(cluster, {user("marker"): {"producer_byte_rate": 1.0}})

    seen = eventually(cluster, lambda seen: user("marker") in seen)
    assert (result.error_code, seen.get(user("a"))) in [(0, {"producer_byte_rate": 1.0000001}), (42, None)]


def test_only_brokers_before_4_4_take_values_that_are_no_numbers(cluster, kind):
    odd = {user("a"): {"request_percentage": math.nan, "controller_mutation_rate": math.inf}}
    if kind != "zookeeper":
        (result,) = cluster.alter([Alteration(entity=e, ops=dict(q)) for e, q in odd.items()], validate_only=False)
        assert (result.error_code, (result.error or "").partition("must be")[2]) == (42, " a finite number")
        return
    write(cluster, odd)

    seen = eventually(cluster, lambda seen: user("a") in seen)[user("a")]
    assert math.isnan(seen["request_percentage"])
    assert seen["controller_mutation_rate"] == math.inf


FILTERS = [
    ((), False, set(TEN_SHAPES) | {user("<default>")}),
    ((), True, set()),
    ((("user", EXACT, "a"),), False, {user("a"), pair("a", "c"), pair("a", DEFAULT)}),
    ((("user", EXACT, "a"),), True, {user("a")}),
    ((("user", IS_DEFAULT, None),), True, {user()}),
    ((("user", ANY, None),), True, {user("a"), user(), user("<default>")}),
    ((("user", ANY, None), ("client-id", ANY, None)), True,
     {pair("a", "c"), pair("a", DEFAULT), pair(DEFAULT, "c"), pair(DEFAULT, DEFAULT)}),
    ((("ip", ANY, None),), True, {ip("10.0.0.1"), ip()}),
    ((("user", EXACT, "<default>"),), True, {user("<default>")}),
    ((("client-id", IS_DEFAULT, None),), False, {client(), pair("a", DEFAULT), pair(DEFAULT, DEFAULT)}),
    ((("user", EXACT, ""),), False, set()),
]  # fmt: skip


@pytest.mark.parametrize(("components", "strict", "expected"), FILTERS)
def test_a_filter_finds_what_kafka_finds(cluster, components, strict, expected):
    write(cluster, {e: quotas_for(e) for e in (*TEN_SHAPES, user("<default>"))})
    eventually(cluster, lambda seen: len(seen) == 11)

    assert described(cluster, *components, strict=strict) == expected


@pytest.mark.parametrize(
    "components",
    [
        [("user", EXACT, "a"), ("user", EXACT, "b")],
        [("", EXACT, "a")],
        [("user", EXACT, None)],
        [("user", IS_DEFAULT, "a")],
        [("ip", ANY, None), ("user", ANY, None)],
    ],
)
def test_a_filter_that_makes_no_sense_is_refused(cluster, components):
    with pytest.raises(RequestRefusedError) as refused:
        described(cluster, *components)

    assert refused.value.error_code == 42


def test_a_filter_for_an_unknown_type_is_unsupported(cluster):
    with pytest.raises(UnsupportedClusterError, match="35"):
        described(cluster, ("group", ANY, None))


def test_validating_writes_nothing(cluster):
    results = cluster.alter([Alteration(entity=e, ops=quotas_for(e)) for e in TEN_SHAPES], validate_only=True)
    # A write after it, so that a validation which did write would be visible before this one.
    write(cluster, {user("marker"): {"producer_byte_rate": 1.0}})

    assert [r.error_code for r in results] == [0] * 10
    assert set(eventually(cluster, lambda seen: user("marker") in seen)) == {user("marker")}


def test_a_refused_entity_keeps_everything_it_had_while_its_neighbours_are_written(cluster):
    write(cluster, {user("a"): {"producer_byte_rate": 1.0}})
    alterations = [
        Alteration(entity=user("a"), ops={"consumer_byte_rate": 5.0, "producer_byte_rate": 0.0}),
        Alteration(entity=user("b"), ops={"producer_byte_rate": 2.0}),
    ]
    results = cluster.alter(alterations, validate_only=False)

    assert [(r.entity, r.error_code, r.error) for r in results] == [
        (user("a"), 42, "Quota producer_byte_rate must be greater than 0"),
        (user("b"), 0, None),
    ]
    seen = eventually(cluster, lambda seen: user("b") in seen)
    assert seen == {user("a"): {"producer_byte_rate": 1.0}, user("b"): {"producer_byte_rate": 2.0}}


def test_results_come_in_the_order_of_the_alterations(cluster):
    names = [f"user-{(i * 7919) % 500}" for i in range(500)]
    alterations = [Alteration(entity=user(n), ops={"producer_byte_rate": -1.0 if n.endswith("3") else 1.0}) for n in names]
    results = cluster.alter(alterations, validate_only=True)

    assert [r.entity for r in results] == [user(n) for n in names]
    assert [r.error_code != 0 for r in results] == [n.endswith("3") for n in names]


def test_removing_what_is_not_there_succeeds_silently(cluster):
    write(cluster, {user("nobody"): {"producer_byte_rate": None, "no_such_key": None}})

    assert cluster.current_state().entities == {}


@pytest.mark.parametrize("validate_only", [True, False])
def test_one_entity_twice_in_a_request_is_never_sent(cluster, validate_only):
    twice = [Alteration(entity=user("a"), ops={k: 1.0}) for k in ("producer_byte_rate", "consumer_byte_rate")]

    with pytest.raises(ValueError, match="twice"):
        cluster.alter(twice, validate_only=validate_only)
    assert cluster.current_state().entities == {}


def test_an_alteration_without_ops_is_never_sent(cluster):
    with pytest.raises(ValueError, match="no ops"):
        cluster.alter([Alteration(entity=user("a"), ops={})], validate_only=False)


def test_more_than_ten_thousand_changed_keys_are_refused_whole_where_there_is_a_limit(cluster, kind):
    keys = ("producer_byte_rate", "consumer_byte_rate", "request_percentage", "controller_mutation_rate")
    many = [Alteration(entity=user(f"u{i}"), ops=dict.fromkeys(keys, 1.0)) for i in range(2501)]

    if kind == "zookeeper":
        # It knows none, because every entity is a transaction of its own.
        cluster.current_state()
        assert {result.error_code for result in cluster.alter(many, validate_only=True)} == {0}
        return
    with pytest.raises(RequestRefusedError) as refused:
        cluster.alter(many, validate_only=False)
    assert refused.value.error_code == 44
    assert cluster.current_state().entities == {}


def test_an_entity_type_that_kafka_does_not_have_is_refused_with_its_words(cluster):
    strange = Entity.of({"client-id-prefix": "a"})
    result = cluster.alter([Alteration(entity=strange, ops={"producer_byte_rate": 1.0})], validate_only=True)[0]

    assert (result.error_code, result.error) == (42, "Unhandled client quota entity type: client-id-prefix")


def test_brokers_are_sorted_and_each_can_be_asked(cluster, kind):
    write(cluster, {user("a"): {"producer_byte_rate": 1.0}})
    eventually(cluster, lambda seen: user("a") in seen)
    ids = [node.id for node in cluster.brokers()]

    assert ids == sorted(ids)
    assert len(ids) == (0 if kind == "zookeeper" else 1)
    assert [cluster.describe(EntityFilter(), broker=number) for number in ids] == [
        {user("a"): {"producer_byte_rate": 1.0}}
    ] * len(ids)


def test_a_state_says_which_cluster_it_is_of(cluster, kind):
    state = cluster.current_state()

    assert state.cluster == cluster.identity()
    assert state.cluster.id
    assert state.cluster.kafka_version == VERSIONS[kind]
    assert state.observed.at.tzinfo is not None
