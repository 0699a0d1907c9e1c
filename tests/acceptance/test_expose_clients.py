"""``alter --expose-clients`` on a real broker: every client keeps its limit, and the printed command takes everything back."""

from __future__ import annotations

import itertools
import shlex
from pathlib import Path

import pytest

from reconciler.features.sandbox.spec import Sandbox
from tests.support import raw_quotas
from tests.support.command import Done, invoke
from tests.support.raw_quotas import RawEntity

pytestmark = pytest.mark.kafka

PAIR: RawEntity = frozenset({("user", None), ("client-id", None)})
ETL: RawEntity = frozenset({("client-id", "etl")})
EVERYTHING = "producer_byte_rate,consumer_byte_rate,request_percentage,controller_mutation_rate"
LEVELS: list[RawEntity] = [
    frozenset({("user", "alice"), ("client-id", "etl")}),
    frozenset({("user", "alice"), ("client-id", None)}),
    frozenset({("user", "bob")}),
    frozenset({("user", None), ("client-id", "app")}),
]
"""Shapes that a default pair does not override."""


def expose(broker: Sandbox, cwd: Path, *more: str) -> Done:
    return invoke("alter", *more, "--bootstrap-server", broker.bootstrap_servers, "--expose-clients", "--auto-approve", cwd=cwd)


def limits(broker: Sandbox, cwd: Path) -> dict[tuple[str, str, str], float | None]:
    """What each client may do, by user, client-id and key."""
    found = {}
    for user, client_id in itertools.product(["alice", "bob", "carol"], ["etl", "app", "other"]):
        names = ("--name", f"user={user}", "--name", f"client-id={client_id}")
        done = invoke("resolve", "--bootstrap-server", broker.bootstrap_servers, *names, "--format", "json", cwd=cwd)
        document = done.json()
        assert document.get("unknown", {}) == {}
        for key in EVERYTHING.split(","):
            found[user, client_id, key] = document["quotas"].get(key, {}).get("value")
    return found


def test_no_client_gets_another_limit_and_the_printed_command_takes_it_back(clean_kafka: Sandbox, tmp_path: Path) -> None:
    servers = clean_kafka.bootstrap_servers
    raw_quotas.alter(servers, {entity: {"consumer_byte_rate": 50_000.0, "request_percentage": 40.0} for entity in LEVELS})
    raw_quotas.alter(servers, {ETL: {"producer_byte_rate": 440_000.0}, frozenset({("user", None)}): {"request_percentage": 90.0}})
    state = raw_quotas.settled(servers)
    before = limits(clean_kafka, tmp_path)

    done = expose(clean_kafka, tmp_path, "--keys", EVERYTHING)

    assert done.code == 0, done.err
    assert raw_quotas.settled(servers) == {**state, PAIR: {"consumer_byte_rate": 1e12, "controller_mutation_rate": 1e6}}
    after = limits(clean_kafka, tmp_path)
    assert after.keys() == before.keys()
    for client, limit in before.items():
        assert after[client] == limit or (limit is None and after[client] in (1e12, 1e6)), client
    assert "producer_byte_rate is not set" in done.err
    assert "it would lift the limit of client-id=etl" in done.err
    assert "it would lift the limit of user=<default>" in done.err

    undo = shlex.split(done.err.strip().splitlines()[-1].removeprefix("kafka-quotas: "))
    assert invoke(*undo[1:], "--auto-approve", cwd=tmp_path).code == 0
    assert raw_quotas.settled(servers) == state
