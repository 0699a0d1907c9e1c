"""``revert``, ``--audit`` and ``--step-down`` as a user runs them, against a real broker."""

from __future__ import annotations

import json
import signal
from pathlib import Path
from typing import Any

import pytest

from reconciler.features.sandbox.spec import Sandbox
from tests.support import raw_quotas
from tests.support.broker_folder import BrokerFolder
from tests.support.command import running
from tests.support.polling import wait_until
from tests.support.schemas import valid

pytestmark = pytest.mark.kafka

ALICE, RATE = frozenset({("user", "alice")}), "producer_byte_rate"
MIB = 1024.0**2
APPLY = ("apply", "--auto-approve", "--accept", "large-reduction")
REVERT = ("revert", "--auto-approve", "--accept", "too-many-removals", "--accept", "large-reduction", "report.json")


class Repository(BrokerFolder):
    def audit(self) -> list[Any]:
        """The lines of the audit file."""
        return [valid(json.loads(line), "audit") for line in (self.folder / "audit.jsonl").read_text().splitlines()]


@pytest.fixture
def repository(tmp_path: Path, clean_kafka: Sandbox) -> Repository:
    return Repository(tmp_path, clean_kafka)


def test_what_is_no_report_and_what_is_of_another_cluster_stops_early(repository: Repository) -> None:
    (repository.folder / "bad.json").write_text("{}")
    assert repository.run("revert", "bad.json", ".").code == 1
    repository.declare(alice="10MiB")
    report = repository.run(*APPLY, "--validate-only", "--format", "json").json()
    other = {**report, "cluster": {**report["cluster"], "id": "other"}}
    (repository.folder / "report.json").write_text(json.dumps(other))
    edited = repository.run(*REVERT, ".")
    assert (edited.code, "was changed after it was written" in edited.err) == (1, True)


def test_every_run_leaves_a_line_however_it_ends(repository: Repository) -> None:
    repository.declare(alice="10MiB")
    (repository.folder / "client.properties").write_text("client.id=quotas\n")
    audited = ("--audit", "audit.jsonl")
    assert repository.run(*APPLY, *audited).code == 0
    assert repository.run(*APPLY, *audited).code == 0
    assert repository.run(*APPLY, *audited, "--expect-digest", "sha256:no").code == 3
    assert repository.run(*APPLY, *audited, "--bootstrap-server", "127.0.0.1:1").code == 1
    repository.declare(alice="-1")
    assert repository.run(*APPLY, *audited).code == 1
    assert repository.run(*APPLY, *audited, "--step-wait", "3").code == 64
    seen = repository.audit()
    assert [(one["result"], one["failure_reason"]) for one in seen] == [
        ("done", None),
        ("nothing_to_do", None),
        ("refused", "stale-plan"),
        ("failed", "unreachable"),
        ("failed", "invalid-manifests"),
    ]
    assert seen[0]["summary"]["applied"] == 1
    assert [one["cluster"]["name"] for one in seen] == ["test"] * 4 + [None]


def test_an_interrupt_between_steps_tells_the_truth_and_a_second_run_goes_on(repository: Repository) -> None:
    raw_quotas.alter(repository.server, {ALICE: {RATE: 100 * MIB}})
    repository.declare(alice="10MiB")
    stepping = (*APPLY, "--step-down", "2", "--report", "report.json")
    planned = repository.run("plan", ".", "--step-down", "2", "--format", "json").json()
    ways = [note for note in planned["notes"] if "steps:" in note]
    assert ways == ["producer_byte_rate of user=alice in 4 steps: 100 MiB/s → 50 MiB/s → 25 MiB/s → 12.5 MiB/s → 10 MiB/s."]
    with running(*stepping, "--step-wait", "600", "--audit", "audit.jsonl", cwd=repository.folder) as process:
        wait_until(lambda: repository.live() == {ALICE: {RATE: 50 * MIB}})
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=300)
    assert process.returncode == 4
    report = json.loads((repository.folder / "report.json").read_text())
    valid(report, "apply-report")
    assert (report["result"], report["failure_reason"]) == ("partial", "interrupted")
    assert report["changes"][0]["reached"] == {RATE: [50 * MIB]}
    assert repository.audit()[-1]["result"] == "partial"
    assert repository.run(*REVERT, ".", "--validate-only").code == 0
    assert repository.run(*stepping, "--step-wait", "0").code == 0
    assert repository.live() == {ALICE: {RATE: 10 * MIB}}
    assert repository.run(*stepping, "--format", "json").json()["result"] == "nothing_to_do"
