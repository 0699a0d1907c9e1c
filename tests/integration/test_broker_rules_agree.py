"""The tool's own copy of the broker's rules against the broker's validate-only, on thousands of random alterations."""

from __future__ import annotations

import math
import random
import struct
from collections.abc import Callable, Iterator

import pytest

from reconciler.backends.broker.cluster import BrokerCluster
from reconciler.backends.broker.settings import ConnectionSettings, parse_servers
from reconciler.model.entity import DEFAULT, Entity, EntityName
from reconciler.model.plan import Alteration
from reconciler.model.quota import KNOWN_KEYS
from reconciler.resolution.broker_rules import entity_refusal, needs_broker, refusal

pytestmark = pytest.mark.kafka

SEED = 20_260_102
EXAMPLES = 6_000
BATCH = 500

KEYS = (
    *sorted(KNOWN_KEYS),
    "SCRAM-SHA-256",
    "producer_byte_rates",
    "PRODUCER_BYTE_RATE",
    "",
    "leader.replication.throttled.rate",
)
EDGES = (
    0.0, -0.0, 5e-324, 1e-7, 1e-6, 1.0000001e-6, 0.5, 0.9999999, 0.99999999, 1.0, 1.000001, 1.0000001, 1.0000009, 1.0000011,
    999.999999, 1000.0000005, 2.0**31 - 1, 2.0**31 - 0.5, 2.0**31, 2.0**31 + 0.5, 2.0**53 + 2, 2.0**63,
    math.nextafter(2.0**63, math.inf), math.nextafter(2.0**63, 0), 1.7976931348623157e308, math.inf, -math.inf, math.nan,
    -1.0, -5e-324, -1.5,
)  # fmt: skip
NAMES = ("", "a", "alice", "<default>", "%40", " ", "\n", "é", "😀", "User:alice", "*", "null", "0", "x" * 300)
ADDRESSES = (
    "", "1", "1.2", "1.2.3", "1.2.3.4", "010.0.0.1", "0177.0.0.1", "255.255.255.255", "4294967295", "1.16777215", "1.2.65535",
    "0", "09", "::", "::1", "[::1]", "[1.2.3.4]", "[]", "[:]", "[::1", "[::1]]", "::1%0", "::1%99", "::1%", "::%1", "[::1%1]",
    "fe80::1", "FE80::A", "::ffff:1.2.3.4", "::ffff:0:0", "[::ffff:1.2.3.4]", "::1.2.3.4", "::1.2.3.04", "::1.2.3.0256",
    "::1.2.3", "::1.2.3.4:5", "1::2::3", "12345::", "00001::", ":1", ":::", ":", "1:", "1:2:3:4:5:6:7:8", "1:2:3:4:5:6:7",
    "1:2:3:4:5:6:7:8:9", "1:2:3:4:5:6:7::", "::2:3:4:5:6:7:8", "1::2:3:4:5:6:7:8", "1:2:3:4:5:6:7:8::", "1:2:3:4:5:6:1.2.3.4",
    "1:2:3:4:5:6:7:1.2.3.4", "::g", "::1%1a%:", "1.2.3.4:80", "2001:db8::/32", "0:0:0:0:0:0:0:0", "[g]", "[localhost]",
)  # fmt: skip


@pytest.fixture(scope="module")
def broker(kafka_sandbox) -> Iterator[BrokerCluster]:
    cluster = BrokerCluster.open(ConnectionSettings(servers=parse_servers((kafka_sandbox.bootstrap_servers,))))
    yield cluster
    cluster.close()


def random_value(rng: random.Random) -> float:
    makers: tuple[Callable[[], float], ...] = (
        lambda: rng.choice(EDGES),
        lambda: float(rng.randrange(1, 10**9)),
        lambda: rng.randrange(1, 1000) + rng.choice((-1, 1)) * 10 ** rng.uniform(-9, -4),
        lambda: struct.unpack(">d", rng.randbytes(8))[0],
        lambda: rng.uniform(-2, 200),
        lambda: 2.0 ** rng.uniform(28, 70),
    )
    return rng.choices(makers, weights=(4, 3, 3, 1, 1, 1))[0]()


def random_address(rng: random.Random) -> str:
    if rng.random() < 0.4:
        return rng.choice(ADDRESSES)
    if rng.random() < 0.4:
        return ".".join(str(rng.choice((0, 1, 127, 255, 256, 65_535))) for _ in range(rng.randrange(1, 5)))
    groups = [rng.choice(("0", "1", "ffff", "10000", "000a", "DB8")) for _ in range(rng.randrange(1, 10))]
    if rng.random() < 0.7:
        groups.insert(rng.randrange(len(groups) + 1), "")
    return ":".join(groups)


def random_name(rng: random.Random, entity_type: str, number: int) -> EntityName:
    kind = rng.random()
    if kind < 0.15:
        return DEFAULT
    if entity_type == "ip":
        return random_address(rng)
    return rng.choice(NAMES) if kind < 0.5 else f"name-{number}"


def random_entity(rng: random.Random, number: int) -> Entity:
    shapes = [("user",), ("client-id",), ("user", "client-id"), ("ip",), ("ip", "user"), ("ip", "client-id", "user"), ("group",)]
    shapes += [("user", "User"), ("",)]
    types = rng.choices(shapes, weights=(6, 6, 6, 12, 1, 1, 0.5, 0.5, 0.2))[0]
    return Entity.of({t: random_name(rng, t, number) for t in types})


def random_alteration(rng: random.Random, number: int) -> Alteration:
    entity = random_entity(rng, number)
    fitting = ("connection_creation_rate",) if "ip" in entity.types else tuple(sorted(KNOWN_KEYS - {"connection_creation_rate"}))
    keys = [rng.choice(fitting if rng.random() < 0.85 else KEYS) for _ in range(rng.choice((1, 1, 1, 2, 3)))]
    return Alteration(entity=entity, ops={k: None if rng.random() < 0.15 else random_value(rng) for k in keys})


def alterations() -> list[Alteration]:
    """Distinct by entity inside a batch; host names are left out, because their lookup leaves the machine."""
    rng = random.Random(SEED)
    found: list[Alteration] = []
    seen: set[Entity] = set()
    number = 0
    while len(found) < EXAMPLES:
        if len(found) % BATCH == 0:
            seen.clear()
        number += 1
        made = random_alteration(rng, number)
        if made.entity not in seen and not needs_broker(made.entity):
            seen.add(made.entity)
            found.append(made)
    return found


def one_thing_is_wrong(alteration: Alteration) -> bool:
    """Whether the broker has only one refusal to choose from: with several it names any."""
    entity = alteration.entity
    wrong_parts = sum(entity_refusal(Entity.of({t: n})) is not None for t, n in entity.parts if t != "ip" or n == "")
    wrong_ops = sum(refusal(Alteration(entity=entity, ops={k: v})) is not None for k, v in alteration.ops.items())
    return wrong_parts == 1 or (wrong_parts == 0 and (entity_refusal(entity) is not None or wrong_ops == 1))


def test_the_broker_and_our_copy_of_its_rules_never_disagree(broker):
    everything = alterations()
    accepted = compared = 0
    disagreements = []
    for start in range(0, len(everything), BATCH):
        batch = everything[start : start + BATCH]
        for alteration, result in zip(batch, broker.alter(batch, validate_only=True), strict=True):
            ours = refusal(alteration)
            accepted += result.error_code == 0
            same = (ours is None) == (result.error_code == 0) and result.error_code in (0, 42)
            if ours is not None and one_thing_is_wrong(alteration):
                compared += 1
                same = same and ours == result.error
            if not same:
                disagreements.append((alteration, ours, result.error_code, result.error))

    assert disagreements[:5] == []
    # Worth something only if there was much of everything.
    assert len(everything) == EXAMPLES
    assert accepted > EXAMPLES / 5
    assert compared > EXAMPLES / 5


@pytest.mark.parametrize("name", ["localhost", "LOCALHOST", "127.1"])
def test_names_of_this_machine_are_taken_by_the_broker_and_never_refused_by_us(broker, name):
    alteration = Alteration(entity=Entity.of({"ip": name}), ops={"connection_creation_rate": 5.0})

    assert refusal(alteration) is None
    assert broker.alter([alteration], validate_only=True)[0].error_code == 0
