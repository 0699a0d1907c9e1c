"""Clusters of every pinned version and size start, answer, log and stop; those that cannot start say why."""

from __future__ import annotations

import functools
import json
import socket
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from reconciler.errors import SandboxError, UsageError
from reconciler.features.sandbox import process
from reconciler.features.sandbox.clients import admin_client, brokers_up, cluster_id
from reconciler.features.sandbox.cluster import running, runtime_for, start, stop
from reconciler.features.sandbox.configuration import LOOPBACK, free_ports
from reconciler.features.sandbox.spec import Login, Sandbox, SandboxSpec
from tests.support import raw_quotas
from tests.support.polling import wait_until

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


def _has_rate(server: str, entity: raw_quotas.RawEntity) -> bool:
    return raw_quotas.describe(server) == {entity: {"producer_byte_rate": 1000.0}}


@pytest.mark.large
def test_three_nodes_form_one_cluster_and_all_have_what_one_was_told(start_kafka: Start) -> None:
    sandbox = start_kafka(SandboxSpec(nodes=3, heap_mb=256))
    entity: raw_quotas.RawEntity = frozenset({("user", "alice")})
    servers = sandbox.bootstrap_servers.split(",")
    assert len(servers) == 3
    with admin_client(servers[2]) as client:
        assert (brokers_up(client), cluster_id(client)) == ({1, 2, 3}, sandbox.cluster_id)
    raw_quotas.alter(servers[0], {entity: {"producer_byte_rate": 1000.0}})
    for server in servers:
        wait_until(functools.partial(_has_rate, server, entity))


def test_kafka_3_9_starts_with_users_and_logs_their_requests(start_kafka: Start) -> None:
    alice = Login(name="älice = 1", password='p#a "s\\s')
    sandbox = start_kafka(SandboxSpec(kafka_version="3.9.2", users=(alice,), request_log=True))
    assert sandbox.sasl_bootstrap_servers is not None
    with admin_client(sandbox.sasl_bootstrap_servers, login=alice) as client:
        assert brokers_up(client) == {1}
    wait_until(lambda: "METADATA" in requests_of(sandbox, alice.name))


@pytest.mark.large
def test_the_second_broker_maps_the_classes_that_the_first_one_wrote(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    jars = runtime_for("4.3.1").jars
    folder = tmp_path / "jars" / jars[0].parent.name
    folder.mkdir(parents=True)
    for jar in jars:
        (folder / jar.name).symlink_to(jar)
    monkeypatch.setenv("KAFKA_QUOTAS_CACHE", str(tmp_path))
    maps = []
    for _ in range(2):
        with running(SandboxSpec()) as sandbox:
            maps.append(Path(f"/proc/{sandbox.nodes[0].process.pid}/maps").read_text("utf-8"))
    (archive,) = (path for path in folder.iterdir() if not path.is_symlink())
    assert [str(archive) in text for text in maps] == [False, True]


def test_the_block_leaves_no_process_and_no_folder_also_when_it_fails() -> None:
    seen: list[Sandbox] = []

    def use() -> None:
        with running(SandboxSpec()) as sandbox:
            seen.append(sandbox)
            assert sandbox.folder.stat().st_mode & 0o077 == 0
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        use()
    assert not process.is_alive(seen[0].nodes[0].process)
    assert not seen[0].folder.exists()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder for ``start``."""
    return tmp_path / "sandbox"


@pytest.mark.parametrize(
    ("settings", "words"),
    [({"num.io.threads": "many"}, "num.io.threads"), ({"authorizer.class.name": "no.such.Class"}, "no.such.Class")],
    ids=["while formatting", "while starting"],
)
def test_a_failed_start_names_its_log_and_keeps_it(folder: Path, settings: dict[str, str], words: str) -> None:
    with pytest.raises(SandboxError, match=words) as raised:
        start(SandboxSpec(properties=settings), folder)
    logs = [path for path in (folder / "node-1").glob("*.log") if str(path) in str(raised.value)]
    assert words in logs[0].read_text("utf-8")
    assert not (folder / "node-1" / "data").exists()


def test_settings_that_are_the_sandboxs_own_are_refused_before_anything_starts(folder: Path) -> None:
    with pytest.raises(UsageError, match="listeners"):
        start(SandboxSpec(properties={"listeners": "PLAINTEXT://:9092"}), folder)
    assert not folder.exists()


@pytest.mark.large
def test_a_port_taken_at_the_last_moment_is_given_up_for_another(folder: Path) -> None:
    with socket.create_server((LOOPBACK, 0)) as squatter:
        taken = squatter.getsockname()[1]
        asked: list[int] = []

        def choose(count: int) -> Sequence[int]:
            asked.append(count)
            return free_ports(count) if len(asked) > 1 else (taken, *free_ports(count - 1))

        sandbox = start(SandboxSpec(), folder, choose_ports=choose)
        try:
            assert len(asked) == 2
            assert sandbox.nodes[0].port != taken
        finally:
            stop(sandbox)
