"""Clusters of every pinned version and size start, answer, log and stop; those that cannot start say why."""

from __future__ import annotations

import json
import re
import shutil
import socket
import uuid
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from reconciler.errors import SandboxError
from reconciler.features.sandbox.clients import RECORD_BYTES, admin_client, consume_all, create_topic, produce_steadily
from reconciler.features.sandbox.cluster import running
from reconciler.features.sandbox.configuration import LOOPBACK, free_ports
from reconciler.features.sandbox.jars import ZOOKEEPER_VERSIONS
from reconciler.features.sandbox.spec import Login, Sandbox, SandboxSpec, ZooKeeperSpec
from tests.support import raw_quotas
from tests.support.polling import wait_until
from tests.support.processes import commands_with
from tests.support.zookeeper_tree import nodes_below, zookeeper_client

pytestmark = pytest.mark.kafka

Start = Callable[[SandboxSpec], Sandbox]


def requests_of(sandbox: Sandbox, user: str) -> list[str]:
    """The names of the requests a user sent, as the nodes' logs have them."""
    found = []
    for node in sandbox.nodes:
        assert node.request_log_file is not None
        for line in node.request_log_file.read_text("utf-8").splitlines():
            request = json.loads(line[line.index("{") : line.rindex("}") + 1])
            if request["principal"] == f"User:{user}":
                found.append(request["requestHeader"]["requestApiKeyName"])
    return found


@pytest.mark.large
def test_kafka_3_9_starts_with_users_and_logs_their_requests(start_kafka: Start) -> None:
    alice = Login(name="älice = 1", password='p#a "s\\s')
    sandbox = start_kafka(SandboxSpec(kafka_version="3.9.2", users=(alice,), request_log=True))
    assert sandbox.folder.stat().st_mode & 0o077 == 0
    assert sandbox.sasl_bootstrap_servers is not None
    with admin_client(sandbox.sasl_bootstrap_servers, login=alice) as client:
        assert client.list_topics() == []
    wait_until(lambda: "METADATA" in requests_of(sandbox, alice.name))


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        pytest.param({"num.io.threads": "many"}, "num.io.threads", id="while formatting"),
        pytest.param({"authorizer.class.name": "no.such.Class"}, "no.such.Class", id="while starting", marks=pytest.mark.large),
    ],
)
def test_a_failed_start_names_its_log_and_keeps_it(settings: dict[str, str], words: str, start_kafka: Start) -> None:
    with pytest.raises(SandboxError, match=words) as raised:
        start_kafka(SandboxSpec(properties=settings))
    log = log_of(raised.value)
    assert words in log.read_text("utf-8")
    assert not (log.parent / "data").exists()
    shutil.rmtree(log.parents[1])


def log_of(error: SandboxError) -> Path:
    (name,) = re.findall(r"Its log, (\S+), ends with", str(error))
    return Path(name)


@pytest.mark.large
def test_a_port_taken_at_the_last_moment_is_given_up_for_another() -> None:
    with socket.create_server((LOOPBACK, 0)) as squatter:
        taken = squatter.getsockname()[1]
        asked: list[int] = []

        def choose(count: int) -> Sequence[int]:
            asked.append(count)
            return free_ports(count) if len(asked) > 1 else (taken, *free_ports(count - 1))

        with running(SandboxSpec(), choose_ports=choose) as sandbox:
            assert len(asked) == 2
            assert sandbox.nodes[0].port != taken


ALICE = frozenset({("user", "alice@corp")})


@pytest.mark.large
@pytest.mark.parametrize("version", ZOOKEEPER_VERSIONS)
def test_quotas_of_a_broker_are_in_the_zookeeper_that_the_sandbox_names(version: str, start_kafka: Start) -> None:
    require_quotas_in_zookeeper(start_kafka(SandboxSpec(kafka_version=version, zookeeper=ZooKeeperSpec(chroot="/one"))))


def test_quotas_of_the_shared_broker_are_in_the_zookeeper_that_the_sandbox_names(zookeeper_kafka: Sandbox) -> None:
    require_quotas_in_zookeeper(zookeeper_kafka)


def require_quotas_in_zookeeper(sandbox: Sandbox) -> None:
    assert sandbox.zookeeper is not None
    assert sandbox.zookeeper.endswith("/one")
    raw_quotas.alter(sandbox.bootstrap_servers, {ALICE: {"producer_byte_rate": 1000.0}})
    with zookeeper_client(sandbox.zookeeper) as client:
        nodes = nodes_below(client, "/config/users")
    assert nodes == {"/config/users/alice%40corp": b'{"version":1,"config":{"producer_byte_rate":"1000"}}'}


def test_a_zookeeper_that_does_not_start_is_named_with_its_log_and_nothing_is_left_running(start_kafka: Start) -> None:
    broken = ZooKeeperSpec(properties={"tickTime": "soon"})
    with pytest.raises(SandboxError, match=r"ZooKeeper ended while it started.*zookeeper/server\.log") as raised:
        start_kafka(SandboxSpec(zookeeper=broken))
    folder = log_of(raised.value).parents[1]
    assert not (folder / "zookeeper" / "data").exists()
    assert not (folder / "node-1" / "server.log").exists()
    shutil.rmtree(folder)


def test_a_broker_that_does_not_start_takes_its_zookeeper_with_it(start_kafka: Start) -> None:
    with pytest.raises(SandboxError, match="Kafka node 1 ended while it started") as raised:
        start_kafka(SandboxSpec(zookeeper=ZooKeeperSpec(), properties={"num.io.threads": "none"}))
    folder = log_of(raised.value).parents[1]
    assert not (folder / "zookeeper" / "data").exists()
    assert commands_with(str(folder)) == {}
    shutil.rmtree(folder)


RATE = 400_000.0


@pytest.fixture
def topic(clean_kafka: Sandbox) -> str:
    """A topic of its own."""
    name = f"clients-{uuid.uuid4().hex[:8]}"
    create_topic(clean_kafka.bootstrap_servers, name)
    return name


def test_a_consumer_gets_every_byte_a_producer_got_acknowledged(clean_kafka: Sandbox, topic: str) -> None:
    alice, servers = clean_kafka.user("alice"), clean_kafka.sasl_bootstrap_servers
    assert servers is not None
    sent = produce_steadily(servers, topic, client_id="app", bytes_per_second=RATE, seconds=1.0, login=alice)
    assert sent.throttle_ms_max == 0.0
    assert 0 < sent.record_bytes <= RATE * sent.wall_seconds + RECORD_BYTES
    read = consume_all(servers, topic, client_id="reader", seconds=120.0, until_bytes=sent.record_bytes, login=alice)
    assert (read.records, read.record_bytes) == (sent.records, sent.record_bytes)


def test_a_topic_that_cannot_be_is_an_error_in_our_words(clean_kafka: Sandbox) -> None:
    with pytest.raises(SandboxError, match="cannot create topic no blanks"):
        create_topic(clean_kafka.bootstrap_servers, "no blanks")


def test_reading_a_topic_that_is_not_there_is_an_error(clean_kafka: Sandbox) -> None:
    with pytest.raises(SandboxError, match="no such topic"):
        consume_all(clean_kafka.bootstrap_servers, "never-made", client_id="app", seconds=1.0)
