"""What the ZooKeeper backend writes states what Kafka 3.9.2 writes; and each reads what the other wrote."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping, Sequence

import pytest

from reconciler.features.sandbox.spec import Sandbox
from reconciler.model.entity import DEFAULT, Entity, EntityName
from reconciler.model.plan import Alteration
from tests.builders import client, ip, pair, user
from tests.support import config_command, raw_quotas, zookeeper_tree
from tests.support.hostile_names import HOSTILE
from tests.support.zookeeper_session import zookeeper_cluster

pytestmark = pytest.mark.kafka

_TAKEN = tuple(name for name in HOSTILE if name and not any("\ud800" <= letter <= "\udfff" for letter in name))

"""Brokers refuse an empty name, and half a surrogate pair has no bytes."""

CLIENT_KEYS = ("producer_byte_rate", "consumer_byte_rate", "request_percentage", "controller_mutation_rate")

WHOLE = frozenset({"producer_byte_rate", "consumer_byte_rate", "connection_creation_rate"})


def random_value(chance: random.Random, key: str) -> float:
    """A value that no client of a test ever reaches, so that a default entity does not hold the tests themselves back."""
    if key in WHOLE:
        most = 2**31 - 1 if key == "connection_creation_rate" else 2**53
        return float(chance.choice([chance.randint(10**6, most), most, 10**6]))
    return chance.choice([chance.uniform(1e4, 1e9), float(chance.randint(10**4, 10**6)), chance.uniform(1e10, 1e300), 12345.5])


def random_state(chance: random.Random, size: int) -> dict[Entity, dict[str, float]]:
    """Entities of all ten shapes, with hostile names, each with one key or more."""
    found: dict[Entity, dict[str, float]] = {}
    names: list[EntityName] = [DEFAULT, *chance.sample(_TAKEN, 12), *(f"user-{number}" for number in range(8))]
    while len(found) < size:
        one, other = chance.choice(names), chance.choice(names)
        address = chance.choice([ip(), ip(f"10.0.{chance.randint(0, 9)}.{chance.randint(1, 9)}")])
        entity = chance.choice([user(one), client(one), pair(one, other), pair(one, other), address])
        keys = ("connection_creation_rate",) if "ip" in entity.types else CLIENT_KEYS
        found[entity] = {key: random_value(chance, key) for key in chance.sample(keys, chance.randint(1, len(keys)))}
    return found


def alterations_to(state: Mapping[Entity, Mapping[str, float | None]]) -> list[Alteration]:
    """What sets all of it."""
    return [Alteration(entity=entity, ops=dict(quotas)) for entity, quotas in state.items()]


PLACES = (
    user("a"), user(), client("c"), client(), pair("a", "c"), pair("a", DEFAULT), pair(DEFAULT, "c"), pair(DEFAULT, DEFAULT),
    ip("10.0.0.1"), ip(), user("a b/ü"), pair("z*", "~"), pair("z*", "+"),
)  # fmt: skip

NO_CONFIG = b'{"version":1,"config":{}}'


def some_alterations(chance: random.Random, count: int) -> list[Alteration]:
    """Each of one entity: sets, and removals of what is there or not."""
    made = []
    for _ in range(count):
        entity = chance.choice(PLACES)
        keys = ("connection_creation_rate",) if "ip" in entity.types else CLIENT_KEYS
        chosen = chance.sample(keys, chance.randint(1, len(keys)))
        made.append(
            Alteration(entity=entity, ops={k: random_value(chance, k) if chance.random() < 0.5 else None for k in chosen})
        )
    return made


def tree(client_of_tree: zookeeper_tree.KazooClient) -> dict[str, object]:
    """The nodes that state something, with numbers as numbers."""
    return {
        path: {key: float(text) for key, text in config.items()}
        for root in zookeeper_tree.ENTITIES
        for path, data in zookeeper_tree.nodes_below(client_of_tree, root).items()
        if (config := json.loads(data or NO_CONFIG)["config"])
    }


def raw_changes(alteration: Alteration) -> Mapping[raw_quotas.RawEntity, Mapping[str, float | None]]:
    (entity,) = raw_quotas.raw({alteration.entity: {}})
    return {entity: alteration.ops}


@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.large)])
def test_any_alterations_leave_the_nodes_that_kafka_leaves(zookeeper_kafka: Sandbox, seed: int) -> None:
    steps = some_alterations(random.Random(seed), 25)
    with (
        zookeeper_tree.zookeeper_client(zookeeper_kafka.zookeeper or "") as nodes,
        zookeeper_cluster(zookeeper_kafka.zookeeper or "") as cluster,
    ):
        after_kafka = []
        for step in steps:
            raw_quotas.alter(zookeeper_kafka.bootstrap_servers, raw_changes(step))
            after_kafka.append(tree(nodes))
        zookeeper_tree.remove_all(nodes)
        for step, expected in zip(steps, after_kafka, strict=True):
            assert [result.error_code for result in cluster.alter([step], validate_only=False)] == [0]
            assert tree(nodes) == expected, step


def test_a_change_leaves_the_notification_that_kafka_leaves(zookeeper_kafka: Sandbox) -> None:
    entities = [user("a b"), pair("a b", DEFAULT), client(), ip("10.0.0.1")]
    changes = {
        e: {"connection_creation_rate" if "ip" in e.types else "producer_byte_rate": 5e6} for e in entities
    }  # fmt: skip

    def told(nodes: zookeeper_tree.KazooClient, already: Sequence[str]) -> set[bytes]:
        names = set(nodes.get_children("/config/changes")) - set(already)
        assert {name[:-10] for name in names} == {"config_change_"}
        return {nodes.get(f"/config/changes/{name}")[0] for name in names}

    with (
        zookeeper_tree.zookeeper_client(zookeeper_kafka.zookeeper or "") as nodes,
        zookeeper_cluster(zookeeper_kafka.zookeeper or "") as cluster,
    ):
        before = nodes.get_children("/config/changes")
        raw_quotas.alter(zookeeper_kafka.bootstrap_servers, raw_quotas.raw(changes))
        by_kafka = told(nodes, before)
        zookeeper_tree.remove_all(nodes)
        before = nodes.get_children("/config/changes")
        cluster.alter(alterations_to(changes), validate_only=False)

        assert told(nodes, before) == by_kafka


@pytest.mark.parametrize("seed", [3, pytest.param(4, marks=pytest.mark.large)])
def test_the_broker_reads_what_was_written_to_its_nodes(zookeeper_kafka: Sandbox, seed: int) -> None:
    # Its own API refuses IPv6 in this mode, because it encodes the colons first; the nodes do not.
    state = random_state(random.Random(seed), 60) | {ip("2001:db8::7"): {"connection_creation_rate": 1e6}}
    with zookeeper_cluster(zookeeper_kafka.zookeeper or "") as cluster:
        assert {result.error_code for result in cluster.alter(alterations_to(state), validate_only=False)} == {0}

        assert raw_quotas.describe(zookeeper_kafka.bootstrap_servers) == raw_quotas.raw(state)
        assert cluster.current_state().entities == state


def test_what_kafkas_own_tool_wrote_is_read_and_the_other_way_round(zookeeper_kafka: Sandbox) -> None:
    entity = pair("CN=a b;O=x", DEFAULT)
    (there,) = raw_quotas.raw({entity: {}})
    config_command.alter(zookeeper_kafka, {there: {"producer_byte_rate": 1048576.0, "request_percentage": 250.5}})
    with zookeeper_cluster(zookeeper_kafka.zookeeper or "") as cluster:
        assert cluster.current_state().entities == {entity: {"producer_byte_rate": 1048576.0, "request_percentage": 250.5}}
        cluster.alter([Alteration(entity=entity, ops={"request_percentage": 1e-5})], validate_only=False)

    (line,) = config_command.describe(zookeeper_kafka, "users", "clients")
    assert line.startswith("Quota configs for user-principal 'CN=a b;O=x', the default client-id are ")
    assert set(line.partition(" are ")[2].split(", ")) == {"producer_byte_rate=1048576.0", "request_percentage=1.0E-5"}


BROKEN = {
    "/config/users/text": b'{"version":1,"config":{"producer_byte_rate":"abc"}}',
    "/config/users/number": b'{"version":1,"config":{"producer_byte_rate":1024}}',
    "/config/users/fraction": b'{"version":1,"config":{"producer_byte_rate":"5.5"}}',
    "/config/users/nonsense": b"hello",
    "/config/users/raw name": b'{"version":1,"config":{"producer_byte_rate":"5"}}',
    "/config/ips/%3A%3A1": b'{"version":1,"config":{"connection_creation_rate":"5"}}',
}


def test_nodes_that_brokers_cannot_read_are_told_of_and_left_as_they_are(zookeeper_kafka: Sandbox) -> None:
    with (
        zookeeper_tree.zookeeper_client(zookeeper_kafka.zookeeper or "") as nodes,
        zookeeper_cluster(zookeeper_kafka.zookeeper or "") as cluster,
    ):
        for path, data in BROKEN.items():
            nodes.create(path, data)
        good: Entity = user("good")
        cluster.alter([Alteration(entity=good, ops={"producer_byte_rate": 1e6})], validate_only=False)
        state = cluster.current_state()

        assert [node.path for node in state.unreadable] == sorted(BROKEN)
        assert state.entities == {good: {"producer_byte_rate": 1e6}, user("fraction"): {"producer_byte_rate": 5.5}}
        refused = cluster.alter([Alteration(entity=user("nonsense"), ops={"producer_byte_rate": 1e6})], validate_only=True)
        assert [result.error_code for result in refused] == [42]
        assert {path: nodes.get(path)[0] for path in BROKEN} == BROKEN
