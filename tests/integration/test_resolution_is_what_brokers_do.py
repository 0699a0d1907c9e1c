"""Who is throttled by which limit, and with whom a client shares it: what resolution predicts, a real broker does.

Every test gives a cluster some quotas, lets real clients send and fetch one burst each, and compares the throttle times in the
broker's answers, which tell the limit within a thousandth; the buckets are those of the broker's own metrics.
"""

from __future__ import annotations

import itertools
import random
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from urllib.parse import unquote

import pytest

from reconciler.features.sandbox.clients import create_topic
from reconciler.features.sandbox.cluster import running
from reconciler.features.sandbox.configuration import free_ports
from reconciler.features.sandbox.spec import Login, Sandbox, SandboxSpec
from reconciler.model import BucketName
from reconciler.model.entity import DEFAULT, Entity, EntityName
from reconciler.resolution.effective_quotas import EffectiveQuotas
from reconciler.resolution.resolver import Resolved, Resolver
from tests.builders import client, ip, pair, user
from tests.support import jmx, raw_quotas
from tests.support.polling import wait_until
from tests.support.wire_client import ClosedError, WireClient, record_batch

pytestmark = pytest.mark.kafka

State = Mapping[Entity, Mapping[str, float]]

TOPIC = "burst"

BATCH_BYTES = 400_000

PARTITIONS = 40

KINDS = {"producer_byte_rate": "Produce", "consumer_byte_rate": "Fetch"}

_WINDOW_S = 10

_KEPT_S = 11

_TOKENS_S = 11


@dataclass(frozen=True, slots=True, kw_only=True)
class _Charge:
    """The broker counted ``amount`` at some moment from ``since`` to ``until``."""

    since: float
    until: float
    amount: int


class ThrottledBroker:
    """A sandbox with the topic ``TOPIC``, readable by JMX at ``jmx_port``."""

    def __init__(self, sandbox: Sandbox, jmx_port: int) -> None:
        assert sandbox.sasl_bootstrap_servers is not None
        self._sandbox = sandbox
        self._server = sandbox.sasl_bootstrap_servers
        self._jmx_port = jmx_port
        self._charges: dict[str, dict[BucketName, list[_Charge]]] = {key: defaultdict(list) for key in KINDS}
        self._marks = itertools.count(1)
        self._state: State = {}
        self._answers = EffectiveQuotas({})
        self._batch = record_batch(BATCH_BYTES)

    def hold(self, state: State) -> None:
        """Makes these the cluster's only quotas, and returns when they are enforced."""
        servers = self._sandbox.bootstrap_servers
        raw_quotas.remove_all(servers)
        raw = raw_quotas.raw(state)
        raw_quotas.alter(servers, raw)
        wait_until(lambda: raw_quotas.describe(servers) == raw)
        # A broker shows what it is about to enforce. It takes changes in order: once it shows the next one, it is done.
        mark = frozenset({("ip", f"192.0.2.{next(self._marks) % 255}")})
        raw_quotas.alter(servers, {mark: {"connection_creation_rate": 1000.0}})
        wait_until(lambda: mark in raw_quotas.describe(servers))
        self._state = state
        self._answers = EffectiveQuotas(state)

    def check_bytes(self, user: str, client_id: str | None) -> tuple[float | None, float | None]:
        """A burst each of produce and fetch is throttled as resolution predicts; the two limits that were predicted."""
        begun = time.monotonic()
        with self._connected(user, client_id) as client:
            amount, throttle_ms = client.produce(TOPIC, self._batch)
        produced = self._compare("producer_byte_rate", user, client_id, amount, throttle_ms, begun=begun, stays=True)
        # Another connection, because a throttled one is not read from.
        begun, amount = time.monotonic(), _fetched(len(self._batch))
        with self._connected(user, client_id) as client:
            throttle_ms = client.fetch(TOPIC)
        stays = throttle_ms == 0
        return produced, self._compare("consumer_byte_rate", user, client_id, amount, throttle_ms, begun=begun, stays=stays)

    def check_mutations(self, user: str, client_id: str | None) -> float | None:
        """A topic of ``PARTITIONS`` partitions, asked for by a client never seen before, is throttled as resolution predicts."""
        found = Resolver(self._state, "controller_mutation_rate").resolve(user, client_id or "")
        with self._connected(user, client_id) as client:
            begun = time.monotonic()
            throttle_ms = client.try_to_create(PARTITIONS)
        waited_ms = (time.monotonic() - begun) * 1000
        full = 0.0 if found.value is None else max(0.0, (PARTITIONS / found.value - _TOKENS_S) * 1000)
        assert max(0.0, full - waited_ms - 1) <= throttle_ms <= full + 1, (user, client_id, throttle_ms, found)
        return found.value

    def check_connections(self, address: str) -> float | None:
        """A dozen connections from this address of loopback: some are turned away where resolution predicts one a second."""
        answer = self._answers.answer(Entity.of({"ip": address})).quotas.get("connection_creation_rate")
        served = [self._is_served(address) for _ in range(12)]
        assert all(served) == (answer is None or answer.value > 1), (address, served, answer)
        return None if answer is None else answer.value

    def buckets(self, key: str) -> set[BucketName]:
        """What the broker has measured for a byte rate since it started, by its own metric tags."""
        found = jmx.tags(self._sandbox.kafka_version, self._jmx_port, KINDS[key], attribute="byte-rate")
        return {BucketName(user=unquote(tags.get("user", "")), client_id=tags.get("client-id", "")) for tags in found}

    def predicted_buckets(self, key: str) -> set[BucketName]:
        """The buckets that resolution said were charged since the broker started."""
        return set(self._charges[key])

    def _is_served(self, address: str) -> bool:
        try:
            with WireClient(self._server, self._sandbox.users[0], "app", source=address):
                return True
        except (ClosedError, ConnectionError):
            return False

    def _connected(self, user: str, client_id: str | None) -> WireClient:
        return WireClient(self._server, self._sandbox.user(user), client_id)

    def _compare(
        self, key: str, user: str, client_id: str | None, amount: int, throttle_ms: int, *, begun: float, stays: bool
    ) -> float | None:
        resolver = Resolver(self._state, key)
        found = resolver.resolve(user, client_id or "")
        self._require_same_answer(key, user, client_id, found)
        if not resolver.enabled:
            assert throttle_ms == 0
            return None
        now = time.monotonic()
        earlier = self._charges[key][found.bucket]
        low, high = _throttle_range(found.value, earlier, amount, begun, now)
        assert low <= throttle_ms <= high, (key, user, client_id, throttle_ms, found)
        earlier.append(_Charge(since=begun, until=now, amount=amount if stays else 0))
        return found.value

    def _require_same_answer(self, key: str, user: str, client_id: str | None, found: Resolved) -> None:
        """What the command ``resolve`` says of this client is what the broker is compared with."""
        names: dict[str, EntityName] = {"user": user} if client_id is None else {"user": user, "client-id": client_id}
        answer = self._answers.answer(Entity.of(names)).quotas.get(key)
        assert (None if answer is None else (answer.value, answer.source, answer.level)) == (
            found.winner and (found.value, found.source, found.level)
        )
        if answer is not None:
            tags = {"user": found.bucket.user, "client-id": found.bucket.client_id}
            assert answer.bucket == {tag: name for tag, name in tags.items() if name}


def _throttle_range(limit: float | None, earlier: list[_Charge], amount: int, begun: float, now: float) -> tuple[float, float]:
    """In milliseconds. A sample is at most a second long, and kept for eleven seconds after its last charge."""
    if limit is None:
        return 0, 0
    surely = amount + sum(charge.amount for charge in earlier if now - charge.since < _KEPT_S)
    perhaps = amount + sum(charge.amount for charge in earlier if begun - charge.until < _KEPT_S + 2)
    longest_window = _WINDOW_S if all(begun - charge.until > _KEPT_S + 2 for charge in earlier) else _KEPT_S + 1
    low = (surely / limit - longest_window) * 1000
    high = (perhaps / limit - _WINDOW_S) * 1000
    return max(0.0, low - 1), max(0.0, high + 1)


def _fetched(size: int) -> int:
    """What Kafka charges for one fetched batch: four bytes and the body of a response of version 12."""
    varint = -(-(size + 1).bit_length() // 7)
    return 16 + (1 + len(TOPIC) + 2) + (36 + varint + size)


LITERAL = "<default>"

RATES = (1e3, 1e2, 1e4, 1e1, 1e5, 1e6, 1e7, 1e8)

"""An order of magnitude apart, and neither rising nor falling: of the winner, then of each weaker level."""

LEVELS = range(1, 9)

ROUNDS = (*range(7), *(pytest.param(seed, marks=pytest.mark.large) for seed in range(7, 14)))

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
    return Names(users=(LOGINS[2 * number].name, LOGINS[2 * number + 1].name), clients=(f'app:{number}, "x"', f"é*{number}"))


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
