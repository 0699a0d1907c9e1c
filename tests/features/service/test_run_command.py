"""``kafka-quotas run`` as a service manager runs it: a process, its signals, its log, its pages, and a real broker."""

from __future__ import annotations

import json
import signal
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from reconciler.features.sandbox.spec import Sandbox
from tests.support import raw_quotas
from tests.support.command import run
from tests.support.manifests import cluster as cluster_document
from tests.support.service_process import running
from tests.support.service_world import rates

PAYMENTS = frozenset({("user", "payments")})
MIB = 1024.0 * 1024


def login(password: str) -> str:
    jaas = f'org.apache.kafka.common.security.plain.PlainLoginModule required username="alice" password="{password}";'
    return f"security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\nsasl.jaas.config={jaas}\n"


@pytest.mark.kafka
def test_a_service_on_a_real_broker_from_a_wrong_password_to_its_end(clean_kafka: Sandbox, tmp_path: Path) -> None:
    folder, log = tmp_path / "quotas", tmp_path / "log"
    folder.mkdir()
    secret = tmp_path / "client.properties"
    secret.write_text(login("a-wrong-one"))
    connection = {"bootstrapServers": [clean_kafka.sasl_bootstrap_servers], "properties": str(secret)}
    (folder / "cluster.yaml").write_text(cluster_document(prune="always", connection=connection))
    (folder / "quotas.yaml").write_text(rates(payments="20MiB"))
    audit = tmp_path / "audit.jsonl"

    with running(folder, log, "--apply", "--interval", "600", "--audit", str(audit)) as service:
        service.until(lambda: "cluster" in service.results())
        assert service.page("/healthz")[0] == 200
        assert service.page("/readyz")[0] == 503
        assert service.metric('passes_total{result="cluster"}') >= 1
        assert {row["reason"] for row in service.events("pass")} == {"authentication"}

        secret.write_text(login("alice-secret"))
        service.until(lambda: "applied" in service.results())
        assert raw_quotas.describe(clean_kafka.bootstrap_servers) == {PAYMENTS: {"producer_byte_rate": 20 * MIB}}
        assert service.page("/readyz")[0] == 200

        raw_quotas.alter(clean_kafka.bootstrap_servers, {PAYMENTS: {"producer_byte_rate": 7e6}})
        raw_quotas.settled(clean_kafka.bootstrap_servers)
        service.process.send_signal(signal.SIGHUP)
        service.until(lambda: service.results().count("applied") == 2)
        assert raw_quotas.describe(clean_kafka.bootstrap_servers) == {PAYMENTS: {"producer_byte_rate": 20 * MIB}}

        (folder / "quotas.yaml").unlink()
        service.until(lambda: service.results()[-1] == "refused")
        (folder / "quotas.yaml").write_text("kind: [")
        service.until(lambda: service.results()[-1] == "invalid")
        assert service.metric("manifests_valid") == 0
        assert service.metric('changes_total{action="update",status="applied"}') == 1
        assert raw_quotas.describe(clean_kafka.bootstrap_servers) == {PAYMENTS: {"producer_byte_rate": 20 * MIB}}

        assert service.end(signal.SIGTERM) == 0
        (stopped,) = service.events("stopped")
        assert (stopped["signal"], stopped["last"]) == (signal.SIGTERM, {"invalid": 1})

    written = [json.loads(line) for line in audit.read_text().splitlines()]
    assert [(line["principal"], line["result"]) for line in written] == [
        ("alice", "done"),
        ("alice", "done"),
        ("alice", "refused"),
    ]
    assert "a-wrong-one" not in log.read_text() + audit.read_text()
    assert "alice-secret" not in log.read_text() + audit.read_text()


@pytest.fixture
def nobody_there(tmp_path: Path) -> Iterator[Path]:
    """Manifests of a cluster that does not answer: the port is taken, and nobody listens."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        connection = {"bootstrapServers": [f"127.0.0.1:{taken.getsockname()[1]}"]}
        folder = tmp_path / "quotas"
        folder.mkdir()
        (folder / "cluster.yaml").write_text(cluster_document(prune="never", connection=connection))
        (folder / "quotas.yaml").write_text(rates(payments="20MiB"))
        yield folder


def test_a_second_one_on_the_same_port_ends_at_once_and_ctrl_c_ends_the_first(nobody_there: Path, tmp_path: Path) -> None:
    with running(nobody_there, tmp_path / "log", fresh=True) as service:
        port = service.events("started")[0]["port"]
        second = run("run", str(nobody_there), "--port", str(port), cwd=tmp_path)

        assert second.code == 1
        assert f"cannot listen on 127.0.0.1:{port}" in second.err
        assert "--port" in second.err
        service.until(lambda: "cluster" in service.results())
        assert service.end(signal.SIGINT) == 130


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--cluster", "prd"), "no manifest declares cluster"),
        (("--bootstrap-server", "b1:x"), "b1:x"),
        (("--interval", "0"), "--interval takes seconds"),
        (("--port", "70000"), "--port takes a number"),
        (("--audit", "file"), "without --apply"),
        (("--accept", "prune"), "unknown option '--accept'"),
    ],
)
def test_a_way_of_calling_that_cannot_work_ends_at_once(nobody_there: Path, options: tuple[str, ...], words: str) -> None:
    done = run("run", str(nobody_there), *(("--port", "0") if "--port" not in options else ()), *options, cwd=nobody_there)

    assert done.code == 64
    assert words in done.err
    assert done.out == ""


def test_without_a_connection_it_ends_at_once(tmp_path: Path) -> None:
    (tmp_path / "quotas.yaml").write_text(rates(payments="20MiB"))
    done = run("run", str(tmp_path), "--port", "0", cwd=tmp_path)
    assert (done.code, "No connection is configured for" in done.err) == (64, True)
