"""Brokers do what is written to ZooKeeper behind their back: at once, and after they were started again."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from reconciler.features.sandbox import process
from reconciler.features.sandbox.clients import create_topic, produce_steadily
from reconciler.features.sandbox.launch import wait_until_ready
from reconciler.features.sandbox.spec import Sandbox, SandboxSpec, ZooKeeperSpec
from tests.conftest import SANDBOX_USERS
from tests.support import raw_quotas
from tests.support.change_set import APPLY
from tests.support.zookeeper_repository import ZooKeeperRepository

pytestmark = pytest.mark.kafka

SLOW, FAST = "20KB", "100MB"


def longest_throttle_ms(sandbox: Sandbox, user: str) -> float:
    """How long the broker held back a producer of 400 KB/s; the slow quota lets 200 KB through before."""
    report = produce_steadily(
        sandbox.sasl_bootstrap_servers or "",
        "throttled",
        client_id="bulk",
        bytes_per_second=400_000,
        seconds=2,
        login=sandbox.user(user),
    )
    assert report.record_bytes > 0
    return report.throttle_ms_max


@contextlib.contextmanager
def started_again(sandbox: Sandbox) -> Iterator[None]:
    """End the broker and start another process with the same command."""
    old = sandbox.nodes[0].process
    command = Path(f"/proc/{old.pid}/cmdline").read_bytes().rstrip(b"\0").decode().split("\0")
    process.end([old], grace_s=30)
    new = process.spawn(command, output=sandbox.nodes[0].log_file)
    try:
        ports = {node.id: node.port for node in sandbox.nodes}
        assert wait_until_ready(lambda: sandbox.cluster_id, ports)
        yield
    finally:
        process.end([new], grace_s=10)


@pytest.mark.large
@pytest.mark.parametrize("version", ["3.9.2", pytest.param("2.8.2", marks=pytest.mark.slow)])
def test_a_broker_throttles_by_what_was_applied_through_zookeeper_and_still_does_when_started_again(
    start_kafka: Callable[[SandboxSpec], Sandbox], tmp_path: Path, version: str
) -> None:
    sandbox = start_kafka(SandboxSpec(zookeeper=ZooKeeperSpec(), kafka_version=version, users=SANDBOX_USERS, heap_mb=400))
    repository = ZooKeeperRepository(tmp_path, sandbox)
    create_topic(sandbox.bootstrap_servers, "throttled")
    of_others = [(f"{{user: u{n}, client-id: c}}", "{request_percentage: 100.5}") for n in range(5)]
    repository.declare(("{user: alice}", f"{{producer_byte_rate: {SLOW}}}"), ("{user: bob}", f"{{producer_byte_rate: {FAST}}}"))
    assert repository.run(*APPLY).code == 0

    assert longest_throttle_ms(sandbox, "alice") > 0
    assert longest_throttle_ms(sandbox, "bob") == 0

    repository.declare(("{user: bob}", f"{{producer_byte_rate: {SLOW}}}"), ("{user: alice}", "{}"), *of_others)
    assert repository.run(*APPLY).code == 0
    live = raw_quotas.describe(sandbox.bootstrap_servers)
    nodes = repository.nodes()
    with started_again(sandbox):
        assert raw_quotas.describe(sandbox.bootstrap_servers) == live
        assert repository.nodes() == nodes
        assert repository.run("plan", "--detailed-exitcode").code == 0
        assert longest_throttle_ms(sandbox, "bob") > 0
        assert longest_throttle_ms(sandbox, "alice") == 0
