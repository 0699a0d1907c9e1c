"""Who is throttled by which limit, and with whom a client shares it: what resolution predicts, a real broker does.

Every test gives a cluster some quotas, lets real clients send and fetch one burst each, and compares the throttle times in the
broker's answers, which tell the limit within a thousandth; the buckets are those of the broker's own metrics.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from reconciler.features.sandbox.clients import create_topic
from reconciler.features.sandbox.cluster import running
from reconciler.features.sandbox.configuration import free_ports
from reconciler.features.sandbox.spec import Login, SandboxSpec
from reconciler.model.entity import DEFAULT, Entity
from tests.builders import client, ip, pair, user
from tests.support import jmx
from tests.support.throttled_broker import KINDS, TOPIC, State, ThrottledBroker

pytestmark = pytest.mark.kafka

LITERAL = "<default>"
RATES = (1e3, 1e2, 1e4, 1e1, 1e5, 1e6, 1e7, 1e8)
"""An order of magnitude apart, and neither rising nor falling: of the winner, then of each weaker level."""
LEVELS = range(1, 9)
ROUNDS = range(14)
LOGINS = tuple(Login(name=f"{part} user,{n}", password="secret") for n in range(60) for part in ("one", "two"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Names:
    """Names that no earlier test has used, so that their buckets are empty."""

    users: tuple[str, str]
    clients: tuple[str, str]


@pytest.fixture(scope="module")
def broker() -> Iterator[ThrottledBroker]:
    (port,) = free_ports(1)
    logins = (*LOGINS, Login(name=LITERAL, password="secret"))
    with running(SandboxSpec(users=logins, heap_mb=512, java_options=jmx.java_options(port))) as sandbox:
        create_topic(sandbox.bootstrap_servers, TOPIC)
        yield ThrottledBroker(sandbox, port)


@pytest.fixture(scope="module")
def numbers() -> Iterator[int]:
    return itertools.count()


@pytest.fixture
def names(numbers: Iterator[int]) -> Names:
    number = next(numbers)
    return names_of(number)


def names_of(number: int) -> Names:
    return Names(
        users=(LOGINS[2 * number].name, LOGINS[2 * number + 1].name),
        clients=(f'app:{number}, "x"', f"é*{number}"),
    )


def entities_by_level(names: Names) -> tuple[Entity, ...]:
    """The eight that are about the first user with the first client id, from the strongest."""
    one, app = names.users[0], names.clients[0]
    return (
        pair(one, app),
        pair(one, DEFAULT),
        user(one),
        pair(DEFAULT, app),
        pair(DEFAULT, DEFAULT),
        user(DEFAULT),
        client(app),
        client(DEFAULT),
    )


def principals(names: Names) -> Iterator[tuple[str, str | None]]:
    """Both users and one called ``<default>``, with every client id: named, literally ``<default>``, empty, and absent."""
    return itertools.product((*names.users, LITERAL), (*names.clients, LITERAL, "", None))


@pytest.mark.parametrize("level", LEVELS)
def test_each_level_holds_over_all_weaker_ones(broker: ThrottledBroker, names: Names, level: int) -> None:
    there = entities_by_level(names)[level - 1 :]
    broker.hold(
        {
            entity: {"producer_byte_rate": rate, "consumer_byte_rate": rate / 10, "controller_mutation_rate": rate / 1e4}
            for entity, rate in zip(there, RATES, strict=False)
        }
    )
    one, app = names.users[0], names.clients[0]
    assert broker.check_bytes(one, app) == (1e3, 1e2)
    assert broker.check_mutations(one, app) == 0.1
    for name, client_id in principals(names):
        broker.check_bytes(name, client_id)
    broker.check_mutations(names.users[1], names.clients[1])


EMPTY_CLIENT_ID = [
    ("pairs alone leave it unlimited", (5, 4, 2, 1), None),
    ("client ids alone leave it unlimited", (8, 7), None),
    ("a default user holds it behind stronger pairs", (8, 7, 6, 5, 4, 2, 1), 6),
    ("a user holds it behind its own pairs", (6, 5, 3, 2, 1), 3),
    ("no default pair, with client ids beside it", (8, 5), None),
]


@pytest.mark.parametrize("absent", [False, True], ids=["empty", "absent"])
@pytest.mark.parametrize(("levels", "wins"), [row[1:] for row in EMPTY_CLIENT_ID], ids=[row[0] for row in EMPTY_CLIENT_ID])
def test_without_a_client_id(
    broker: ThrottledBroker, names: Names, levels: tuple[int, ...], wins: int | None, absent: bool
) -> None:
    by_level = dict(zip(LEVELS, entities_by_level(names), strict=True))
    broker.hold({by_level[level]: {"producer_byte_rate": 10.0 * 3**level} for level in levels})
    expected = None if wins is None else 10.0 * 3**wins
    assert broker.check_bytes(names.users[0], None if absent else "") == (expected, None)


def test_a_literal_default_is_an_ordinary_name(broker: ThrottledBroker, names: Names) -> None:
    one, app = names.users[0], names.clients[0]
    broker.hold({
        user(LITERAL): {"producer_byte_rate": 100.0},
        user(DEFAULT): {"producer_byte_rate": 1_000.0},
        pair(one, LITERAL): {"producer_byte_rate": 10.0},
        pair(LITERAL, LITERAL): {"producer_byte_rate": 500.0},
        client(LITERAL): {"producer_byte_rate": 50.0},
    })  # fmt: skip
    assert broker.check_bytes(LITERAL, app) == (100.0, None)
    assert broker.check_bytes(LITERAL, LITERAL) == (500.0, None)
    assert broker.check_bytes(one, LITERAL) == (10.0, None)
    assert broker.check_bytes(one, app) == (1_000.0, None)
    assert broker.check_bytes(names.users[1], LITERAL) == (1_000.0, None)
    broker.hold({client(LITERAL): {"producer_byte_rate": 200.0}, client(DEFAULT): {"producer_byte_rate": 2_000.0}})
    assert broker.check_bytes(one, LITERAL) == (200.0, None)
    assert broker.check_bytes(one, app) == (2_000.0, None)


def test_an_address_is_limited_by_its_own_quota_or_else_by_the_default(broker: ThrottledBroker) -> None:
    # This test's own connections come from 127.0.0.1.
    own = {ip("127.0.0.1"): {"connection_creation_rate": 10_000.0}}
    broker.hold({**own, ip(): {"connection_creation_rate": 1.0}, ip("127.0.0.2"): {"connection_creation_rate": 1_000.0}})
    assert [broker.check_connections(f"127.0.0.{last}") for last in (1, 2, 3)] == [10_000.0, 1_000.0, 1.0]
    broker.hold({**own, ip("127.0.0.4"): {"connection_creation_rate": 1.0}})
    assert [broker.check_connections(f"127.0.0.{last}") for last in (4, 5)] == [1.0, None]


def random_quotas(seed: int, names: Names) -> State:
    """A few entities of any shape, each with one byte rate or both; the values of a key differ by a factor of three or more."""
    draw = random.Random(seed)
    user_names = (names.users[0], LITERAL, DEFAULT, DEFAULT)
    client_names = (names.clients[0], LITERAL, DEFAULT)
    shapes = draw.choice([("user",), ("client-id",), ("pair",), ("user", "client-id", "pair"), ("user", "client-id", "pair")])
    found: set[Entity] = set()
    for _ in range(draw.randint(1, 6)):
        match draw.choice(shapes):
            case "user":
                found.add(user(draw.choice(user_names)))
            case "client-id":
                found.add(client(draw.choice(client_names)))
            case _:
                found.add(pair(draw.choice(user_names), draw.choice(client_names)))
    state: dict[Entity, dict[str, float]] = {}
    values = {key: draw.sample([10.0, 31.0, 100.0, 316.0, 1000.0, 3162.0], 6) for key in KINDS}
    for entity in sorted(found, key=lambda one: one.sort_key):
        keys = draw.choice([tuple(KINDS), tuple(KINDS), ("producer_byte_rate",), ("consumer_byte_rate",)])
        state[entity] = {key: values[key].pop() for key in keys}
    return state


@pytest.mark.parametrize("seed", ROUNDS)
def test_random_quotas_hold_as_predicted(broker: ThrottledBroker, names: Names, seed: int) -> None:
    broker.hold(random_quotas(seed, names))
    for name, client_id in principals(names):
        broker.check_bytes(name, client_id)


@pytest.mark.parametrize("key", KINDS)
def test_the_brokers_metrics_have_exactly_the_predicted_buckets(broker: ThrottledBroker, names: Names, key: str) -> None:
    for state in ({user(): {key: 1e9}}, {client(): {key: 1e9}}, {pair(DEFAULT, DEFAULT): {key: 1e9}}):
        broker.hold(state)
        for name, client_id in principals(names):
            broker.check_bytes(name, client_id)
    # What earlier tests have charged is among them.
    assert broker.buckets(key) == broker.predicted_buckets(key)
