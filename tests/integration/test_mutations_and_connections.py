"""Mutations and connections under quotas on a real broker, next to what the backtest's kernels say of them."""

from __future__ import annotations

import contextlib
import socket
import time
import uuid
from collections.abc import Iterator

import numpy as np
import pytest
from kafka.protocol.admin import CreateTopicsRequest

from reconciler.features.sandbox.spec import Sandbox
from reconciler.traffic.kernels.exact_stream import judge_one
from reconciler.traffic.kernels.sampled_rate import Window
from reconciler.traffic.kernels.token_bucket import Effects, play
from tests.conftest import SANDBOX_USERS
from tests.support import raw_quotas
from tests.support.polling import wait_until
from tests.support.wire_client import WireClient

pytestmark = pytest.mark.kafka

SOURCE = "127.0.0.2"
"""An address of our own, so that nobody else's connections count."""
_REFUSED = 89


def predicted(asked: list[tuple[int, list[int], bool]], limit: float) -> Effects:
    """Of requests: when, the partitions of each topic, and whether the version is refused."""
    rows = [(at, number, amount, strict, 0) for number, (at, amounts, strict) in enumerate(asked) for amount in amounts]
    times, _, amounts, strict, _ = (np.asarray(column, dtype=np.int64) for column in zip(*rows, strict=True))
    return play(times, amounts, strict.astype(np.bool_), limit, Window())


def create(kafka: Sandbox, client_id: str, version: int, partitions: list[int]) -> tuple[int, int, list[int], int]:
    """On a connection of its own, since a throttled one is not read: begin and end in ms, error codes, throttle in ms."""
    assert kafka.sasl_bootstrap_servers is not None
    topics = [
        CreateTopicsRequest.CreatableTopic(
            name=f"never-made-{number}", num_partitions=count, replication_factor=1, assignments=[], configs=[]
        )
        for number, count in enumerate(partitions)
    ]
    request = CreateTopicsRequest[version](topics=topics, timeout_ms=10_000, validate_only=True)
    with WireClient(kafka.sasl_bootstrap_servers, SANDBOX_USERS[0], client_id) as client:
        begin = time.monotonic_ns() // 1_000_000
        answer = client.ask(request)
        end = time.monotonic_ns() // 1_000_000
    codes = {topic.name: topic.error_code for topic in answer.topics}
    return begin, end, [codes[topic.name] for topic in topics], answer.throttle_time_ms


def test_topics_are_refused_one_by_one_and_old_versions_wait(clean_kafka: Sandbox) -> None:
    limit, client_id = 0.1, f"mutations-{uuid.uuid4()}"
    entity = frozenset({("user", SANDBOX_USERS[0].name), ("client-id", client_id)})
    raw_quotas.alter(clean_kafka.bootstrap_servers, {entity: {"controller_mutation_rate": limit}})
    raw_quotas.settled(clean_kafka.bootstrap_servers)

    begin, end, codes, throttle = create(clean_kafka, client_id, 7, [1, 1, 1, 1])
    first = predicted([(0, [1, 1, 1, 1], True)], limit)
    assert codes == [_REFUSED if refused else 0 for refused in first.refused] == [0, 0, _REFUSED, _REFUSED]
    assert first.throttle[-1] - (end - begin) <= throttle <= first.throttle[-1]

    for version, strict in ((7, True), (5, False)):
        since, until, codes, throttle = create(clean_kafka, client_id, version, [3])
        # What passed between the two requests, at least and at most.
        bounds = [predicted([(0, [1, 1, 1, 1], True), (gap, [3], strict)], limit) for gap in (since - end, until - begin)]
        assert codes == [_REFUSED if found.refused[-1] else 0 for found in bounds[:1]] == [_REFUSED if strict else 0]
        # The answer has what is left of it by then.
        assert bounds[1].throttle[-1] - (until - since) <= throttle <= bounds[0].throttle[-1]


@pytest.fixture
def sockets() -> Iterator[contextlib.ExitStack]:
    with contextlib.ExitStack() as stack:
        yield stack


def test_connections_above_the_rate_of_an_address_are_closed(clean_kafka: Sandbox, sockets: contextlib.ExitStack) -> None:
    limit, count = 5, 70
    raw_quotas.alter(clean_kafka.bootstrap_servers, {frozenset({("ip", SOURCE)}): {"connection_creation_rate": float(limit)}})
    raw_quotas.settled(clean_kafka.bootstrap_servers)
    host, port = clean_kafka.bootstrap_servers.split(",")[0].split(":")
    opened, begin = [], time.monotonic()
    for _ in range(count):
        opened.append(sockets.enter_context(socket.create_connection((host, int(port)), timeout=30, source_address=(SOURCE, 0))))
        opened[-1].setblocking(False)

    def closed() -> int:
        return sum(is_closed(one) for one in opened)

    spread_ms = 999 + int((time.monotonic() - begin) * 1000)

    # When each one was taken from the queue is not known: all at once, and a second after the last, are the ends of what can be.
    ones = np.ones(count, dtype=np.int64)
    kept = [
        int((judge_one(times, ones, 0 * ones, limit=float(limit), unrecords=True, window=Window()).throttle == 0).sum())
        for times in (0 * ones, np.arange(count) * spread_ms // (count - 1))
    ]
    assert kept[0] == 10 * limit
    wait_until(lambda: closed() >= count - max(kept))
    # A refused one is closed after a second; what is open two seconds later stays.
    settled = time.monotonic() + 2
    wait_until(lambda: time.monotonic() > settled)
    assert min(kept) <= count - closed() <= max(kept)


def is_closed(one: socket.socket) -> bool:
    try:
        return one.recv(1) == b""
    except BlockingIOError:
        return False
    except ConnectionError:
        return True
