"""Clients that a real broker throttled while it logged them: no higher limit is clear from that log, and it may throttle them."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from reconciler.model import BucketVerdict, Form, Verdict
from reconciler.model.entity import Entity
from tests.support import raw_quotas
from tests.support.local_traffic import open_here
from tests.support.polling import wait_until
from tests.support.request_log_tail import RequestLogTail
from tests.support.wire_client import WireClient, record_batch

if TYPE_CHECKING:
    from reconciler.features.sandbox.spec import Sandbox

pytestmark = pytest.mark.kafka

OLD, HIGHER = 20_000.0, (30_000.0, 60_000.0)
BATCH = 4_000
SECONDS = 6.0
"""A limit is that of eleven seconds: a client sends ten seconds' worth at once, then is throttled."""
Quotas = Mapping[Entity, Mapping[str, float]]


@dataclass(frozen=True, slots=True)
class Recording:
    """What the broker logged of one run, and how many of its requests it throttled."""

    log: Path
    throttled: Mapping[str, int]
    sent: Mapping[str, int]


class Clients:
    """A producer and a consumer, each with a client-id of its own, that ask again as soon as they are answered."""

    KEYS: Mapping[str, str] = {"producer": "producer_byte_rate", "consumer": "consumer_byte_rate"}

    def __init__(self, sandbox: Sandbox, topic: str) -> None:
        self._sandbox, self._topic = sandbox, topic
        self._run = uuid.uuid4().hex[:8]
        self.names = {role: f"{role}-{self._run}" for role in self.KEYS}

    def quotas(self, limit: float) -> Quotas:
        """This limit for each of them."""
        return {Entity.of({"client-id": self.names[role]}): {key: limit} for role, key in self.KEYS.items()}

    def recorded(self, folder: Path, *, limit: float | None, seconds: float, least: int = 0) -> Recording:
        """A run of both at once under a limit, of at least so many requests each, and the lines that the broker logged of it."""
        raw_quotas.remove_all(self._sandbox.bootstrap_servers)
        if limit is not None:
            wanted = {raw(entity): dict(quotas) for entity, quotas in self.quotas(limit).items()}
            raw_quotas.alter(self._sandbox.bootstrap_servers, wanted)
        raw_quotas.settled(self._sandbox.bootstrap_servers)
        log = RequestLogTail(self._sandbox)
        batch = record_batch(BATCH)
        asks: dict[str, Callable[[WireClient], int]] = {
            "producer": lambda client: client.produce(self._topic, batch)[1],
            "consumer": lambda client: client.fetch_records(self._topic)[1],
        }
        with ThreadPoolExecutor(max_workers=len(asks)) as pool:
            runs = {role: pool.submit(self._ask, role, ask, seconds, least) for role, ask in asks.items()}
            throttles = {role: run.result() for role, run in runs.items()}
        sent = {role: len(found) for role, found in throttles.items()}
        wait_until(lambda: all(self._lines(log, role) >= count for role, count in sent.items()))
        own = folder / "kafka-request.log"
        folder.mkdir()
        own.write_bytes(log.content())
        return Recording(own, {role: sum(ms > 0 for ms in found) for role, found in throttles.items()}, sent)

    def _ask(self, role: str, ask: Callable[[WireClient], int], seconds: float, least: int) -> list[int]:
        server = self._sandbox.sasl_bootstrap_servers
        assert server is not None
        throttles: list[int] = []
        begin = time.monotonic()
        with WireClient(server, self._sandbox.user("alice"), self.names[role]) as client:
            while time.monotonic() - begin < seconds or len(throttles) < least:
                throttles.append(ask(client))
        return throttles

    def _lines(self, log: RequestLogTail, role: str) -> int:
        api = {"producer": '"requestApiKeyName":"PRODUCE"', "consumer": '"requestApiKeyName":"FETCH"'}[role]
        return log.count(api, f'"clientId":"{self.names[role]}"')


def raw(entity: Entity) -> frozenset[tuple[str, str | None]]:
    return frozenset((kind, str(name)) for kind, name in entity.parts)


def judge(log: Path, current: Quotas | None, proposed: Quotas, *, exact: bool) -> dict[str, BucketVerdict]:
    """By key."""
    from reconciler.traffic import Backtest, BacktestRequest, find_traffic

    recorded = open_here(find_traffic([f"1={log}"]), form=Form.EXACT if exact else Form.SECONDS)
    try:
        report = Backtest(recorded, BacktestRequest(current=current, proposed=proposed, declared=proposed, exact=exact)).report()
    finally:
        recorded.close()
    clients = {name for entity in proposed for _, name in entity.parts}
    return {row.key: row for row in report.verdicts if row.name.client_id in clients}


@pytest.fixture
def clients(clean_kafka: Sandbox) -> Clients:
    from kafka.admin import KafkaAdminClient, NewTopic

    topic = f"throttled-{uuid.uuid4()}"
    admin = KafkaAdminClient(bootstrap_servers=clean_kafka.bootstrap_servers)
    try:
        admin.create_topics([NewTopic(topic, 1, 1)])
    finally:
        admin.close()
    return Clients(clean_kafka, topic)


def test_a_log_of_throttled_clients_clears_no_higher_limit(clients: Clients, tmp_path: Path) -> None:
    under = clients.recorded(tmp_path / "under", limit=OLD, seconds=SECONDS)
    assert all(count >= 0.01 * under.sent[role] for role, count in under.throttled.items()), under.throttled
    for limit in HIGHER:
        for exact in (False, True):
            rows = judge(under.log, clients.quotas(OLD), clients.quotas(limit), exact=exact)
            assert {key: (row.verdict, row.recorded.censored) for key, row in rows.items()} == dict.fromkeys(
                clients.KEYS.values(), (Verdict.INCONCLUSIVE, True)
            )
            for row in rows.values():
                assert str(row.reason).startswith(f"the old limit of 19.53 KiB/s throttled {row.recorded.throttled} of ")
                assert "They need at least" in str(row.reason)

    # What these clients do without a limit: each of the higher limits throttles them, also on a slow machine.
    enough = int(2 * 11 * max(HIGHER) / BATCH)
    free = clients.recorded(tmp_path / "free", limit=None, seconds=1.0, least=enough)
    for limit in HIGHER:
        rows = judge(free.log, {}, clients.quotas(limit), exact=True)
        assert {row.verdict for row in rows.values()} == {Verdict.THROTTLED}
