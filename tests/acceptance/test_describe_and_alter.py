"""``describe`` and ``alter`` as a user runs them, against a real broker, with Kafka's own tool as the witness."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest

from reconciler.features.sandbox.spec import Sandbox
from tests.support import raw_quotas
from tests.support.command import Done, invoke

pytestmark = pytest.mark.kafka

ROOT = Path(__file__).parents[2]
MIB = 1024.0**2


class Shell:
    def __init__(self, folder: Path, sandbox: Sandbox) -> None:
        self.folder = folder
        self.server = sandbox.bootstrap_servers

    def describe(self, *arguments: str) -> Done:
        return invoke("describe", "--bootstrap-server", self.server, *arguments, cwd=self.folder)

    def alter(self, *arguments: str) -> Done:
        return invoke("alter", "--bootstrap-server", self.server, "--auto-approve", *arguments, cwd=self.folder)

    def live(self) -> dict[raw_quotas.RawEntity, dict[str, float]]:
        return raw_quotas.describe(self.server)


@pytest.fixture
def shell(tmp_path: Path, clean_kafka: Sandbox) -> Shell:
    return Shell(tmp_path, clean_kafka)


def schema(name: str) -> dict[str, object]:
    return json.loads((ROOT / "schemas" / f"{name}.v1.schema.json").read_text(encoding="utf-8"))


def raw(names: dict[str, str | None]) -> raw_quotas.RawEntity:
    return frozenset(names.items())


def test_the_example_of_the_kip_works_as_it_stands_there(shell: Shell) -> None:
    there = raw({"user": None, "client-id": "my-client"})
    raw_quotas.alter(shell.server, {there: {"producer_byte_rate": 1e9}})
    done = shell.alter(
        "--names=client-id=my-client",
        "--defaults=user",
        "--add=consumer_byte_rate=2000000000",
        "--delete=producer_byte_rate",
        *("--accept", "default-entity"),
    )
    shown = shell.describe("--names=client-id=my-client", "--defaults=user")

    assert done.code == 0, done.out + done.err
    assert (shown.code, shown.err) == (0, "")
    assert shown.out == "{user=<default>, client-id=my-client}\n  consumer_byte_rate=2000000000\n\n"


def test_altering_is_reported_audited_and_can_be_reverted(shell: Shell) -> None:
    alice = raw({"user": "alice"})
    raw_quotas.alter(shell.server, {alice: {"producer_byte_rate": 100 * MIB}})
    done = shell.alter(
        *("--name", "user=alice", "--add", "producer_byte_rate=200 MiB,request_percentage=1000%"),
        *("--report", "report.json", "--audit", "audit.jsonl"),
    )

    assert done.code == 0, done.err
    assert "~ user=alice\n" in done.out
    assert "verified on 1 broker." in done.out
    assert shell.live() == {alice: {"producer_byte_rate": 200 * MIB, "request_percentage": 1000.0}}
    (line,) = (shell.folder / "audit.jsonl").read_text().splitlines()
    jsonschema.validate(json.loads(line), schema("audit"))
    assert (json.loads(line)["command"], json.loads(line)["result"]) == ("alter", "done")
    back = invoke(
        *("revert", "report.json", "--bootstrap-server", shell.server, "--auto-approve", "--accept", "too-many-removals"),
        cwd=shell.folder,
    )
    assert back.code == 0, back.out + back.err
    assert shell.live() == {alice: {"producer_byte_rate": 100 * MIB}}


def test_what_a_broker_refuses_is_told_in_its_words_and_ours(shell: Shell) -> None:
    done = shell.alter("--name", "ip=no.such.host.invalid", "--add", "connection_creation_rate=1000000")

    assert done.code == 1
    assert "no.such.host.invalid is not a valid IP or resolvable host." in done.out
    assert "The controller and each broker look up the name" in done.out
    assert "ip-host-name" in done.err


CLUSTER = """
apiVersion: kafka-quotas/v1
kind: Cluster
metadata: {{name: test}}
spec:
  prune: never
  clusterId: {cluster_id}
  connection: {{bootstrapServers: ["{server}"]}}
  scope: {{include: [{{user: {{any: true}}}}]}}
"""
QUOTAS = """
apiVersion: kafka-quotas/v1
kind: ClientQuotas
spec:
  quotas:
    - match: {user: alice}
      quotas: {producer_byte_rate: 1GB}
"""


@pytest.fixture
def managed(shell: Shell) -> Shell:
    cluster_id = shell.describe("--format", "json").json()["cluster"]["id"]
    (shell.folder / "cluster.yaml").write_text(CLUSTER.format(cluster_id=cluster_id, server=shell.server))
    (shell.folder / "quotas.yaml").write_text(QUOTAS)
    return shell


def test_another_cluster_than_the_manifests_name_is_neither_shown_nor_altered(managed: Shell) -> None:
    path = managed.folder / "cluster.yaml"
    path.write_text(CLUSTER.format(cluster_id="4L6g3nShT-eMCtK--X86sw", server=managed.server))
    altered = invoke(
        "alter", ".", "--name", "client-id=a", "--add", "producer_byte_rate=2GB", "--auto-approve", cwd=managed.folder
    )
    shown = invoke("describe", ".", cwd=managed.folder)

    assert (altered.code, shown.code, shown.out) == (3, 3, "")
    assert "4L6g3nShT-eMCtK--X86sw" in altered.err
    assert managed.live() == {}
