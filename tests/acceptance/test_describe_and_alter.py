"""``describe`` and ``alter`` as a user runs them, against a real broker, with Kafka's own tool as the witness."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from reconciler.features.sandbox.spec import Sandbox
from tests.support import raw_quotas
from tests.support.command import Done, invoke
from tests.support.manifests import prod_cluster, quotas
from tests.support.schemas import valid

pytestmark = pytest.mark.kafka

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
    audited = valid(json.loads(line), "audit")
    assert (audited["command"], audited["result"]) == ("alter", "done")
    back = invoke(
        *("revert", "report.json", "--bootstrap-server", shell.server, "--auto-approve", "--accept", "too-many-removals"),
        cwd=shell.folder,
    )
    assert back.code == 0, back.out + back.err
    assert shell.live() == {alice: {"producer_byte_rate": 100 * MIB}}


def test_what_a_broker_refuses_is_told_in_its_words(shell: Shell) -> None:
    done = shell.alter("--name", "ip=no.such.host.invalid", "--add", "connection_creation_rate=1000000")

    assert done.code == 1
    assert "no.such.host.invalid is not a valid IP or resolvable host." in done.out
    assert "ip-host-name" in done.err


def test_another_cluster_than_the_manifests_name_is_neither_shown_nor_altered(shell: Shell) -> None:
    (shell.folder / "cluster.yaml").write_text(prod_cluster("4L6g3nShT-eMCtK--X86sw", shell.server))
    (shell.folder / "quotas.yaml").write_text(quotas(({"user": "alice"}, {"producer_byte_rate": "1GB"})))
    altered = invoke("alter", ".", "--name", "client-id=a", "--add", "producer_byte_rate=2GB", "--auto-approve", cwd=shell.folder)
    shown = invoke("describe", ".", cwd=shell.folder)

    assert (altered.code, shown.code, shown.out) == (3, 3, "")
    assert "4L6g3nShT-eMCtK--X86sw" in altered.err
    assert shell.live() == {}
