"""A broker whose throttling is compared with what the product's resolution predicts, request by request.

One burst tells which limit holds: with so many bytes in a window that was empty, the throttle time is ``bytes / limit - 10 s``
(eleven samples of one second; Kafka's ``Rate`` and ``QuotaUtils``). What a bucket was charged before is remembered, so that two
clients which share a bucket are seen to, and two which do not are seen not to.
"""

from __future__ import annotations

import itertools
import time
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import unquote

from reconciler.features.sandbox.spec import Sandbox
from reconciler.model import BucketName
from reconciler.model.entity import DEFAULT, Entity, EntityName
from reconciler.resolution.effective_quotas import EffectiveQuotas
from reconciler.resolution.resolver import Resolved, Resolver
from tests.support import jmx, raw_quotas
from tests.support.polling import wait_until
from tests.support.wire_client import ClosedError, WireClient, record_batch

State = Mapping[Entity, Mapping[str, float]]

TOPIC = "burst"
BATCH = record_batch(400_000)
PARTITIONS = 40
KINDS = {"producer_byte_rate": "Produce", "consumer_byte_rate": "Fetch"}
_WINDOW_S = 10
_KEPT_S = 11
_TOKENS_S = 11
_REQUEST_CAP_MS = 1000


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

    def hold(self, state: State) -> None:
        """Makes these the cluster's only quotas, and returns when they are enforced."""
        servers = self._sandbox.bootstrap_servers
        raw_quotas.remove_all(servers)
        raw = {frozenset((kind, None if name is DEFAULT else name) for kind, name in e.parts): dict(q) for e, q in state.items()}
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
            amount, throttle_ms = client.produce(TOPIC, BATCH)
        produced = self._compare("producer_byte_rate", user, client_id, amount, throttle_ms, begun=begun, stays=True)
        # Another connection, because a throttled one is not read from.
        begun, amount = time.monotonic(), _fetched()
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

    def check_request_time(self, user: str, client_id: str | None) -> float | None:
        """Where resolution predicts less than one request's time, a request is throttled as long as Kafka ever does, else not."""
        found = Resolver(self._state, "request_percentage").resolve(user, client_id or "")
        with self._connected(user, client_id) as client:
            _, throttle_ms = client.produce(TOPIC, BATCH)
        expected = _REQUEST_CAP_MS if found.value is not None and found.value < 1e-3 else 0
        assert throttle_ms == expected, (user, client_id, throttle_ms, found)
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


def _fetched() -> int:
    """What Kafka charges for one fetched batch: four bytes and the body of a response of version 12."""
    size = len(BATCH)
    varint = -(-(size + 1).bit_length() // 7)
    return 16 + (1 + len(TOPIC) + 2) + (36 + varint + size)
