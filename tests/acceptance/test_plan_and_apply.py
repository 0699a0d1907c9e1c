"""``plan`` and ``apply`` as a user runs them, against a real broker: streams, files, exit codes, and the broker's state."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import pytest

from reconciler.features.sandbox.spec import Sandbox
from tests.support import raw_quotas
from tests.support.broker_folder import BrokerFolder
from tests.support.schemas import valid
from tests.support.terminal import Terminal

pytestmark = pytest.mark.kafka

ALICE = frozenset({("user", "alice")})
EVERYBODY = frozenset({("user", None)})


@pytest.fixture
def repository(tmp_path: Path, clean_kafka: Sandbox) -> BrokerFolder:
    made = BrokerFolder(tmp_path, clean_kafka, prune="confirm")
    made.declare(alice="10MiB")
    return made


def test_from_a_first_plan_to_an_empty_one(repository: BrokerFolder) -> None:
    planned = repository.run("plan", "--detailed-exitcode")
    assert planned.code == 2
    assert "+ user=alice" in planned.out
    assert "quotas.yaml\n  + user=alice\n" in planned.out
    assert repository.live() == {}
    applied = repository.run("apply", "--auto-approve", "--report", "report.json")
    assert applied.code == 0, applied.err
    assert "verified on 1 broker." in applied.out
    assert repository.live() == {ALICE: {"producer_byte_rate": 10 * 1024**2}}
    report = json.loads((repository.folder / "report.json").read_text())
    valid(report, "apply-report")
    assert (report["result"], report["verified"]) == ("done", True)
    empty = repository.run("plan", "--detailed-exitcode")
    assert empty.code == 0
    assert "No changes" in empty.out
    again = repository.run("apply", "--auto-approve", "--format", "json")
    assert (again.code, again.json()["result"]) == (0, "nothing_to_do")


def test_without_a_terminal_and_without_auto_approve_nothing_is_written(repository: BrokerFolder) -> None:
    done = repository.run("apply")
    assert done.code == 3
    assert "--auto-approve" in done.out + done.err
    assert repository.live() == {}


def test_a_tripped_guard_refuses_until_it_is_accepted_by_name(repository: BrokerFolder) -> None:
    repository.quotas(({"user": {"default": True}}, {"producer_byte_rate": "1MiB"}))
    planned = repository.run("plan", "--format", "json", "--detailed-exitcode")
    assert planned.code == 2
    assert planned.json()["applyable"] is False
    refused = repository.run("apply", "--auto-approve", "--format", "json")
    assert refused.code == 3
    valid(refused.json(), "apply-report")
    assert (refused.json()["result"], refused.json()["failure_reason"]) == ("refused", "guard")
    assert "--accept default-entity" in refused.err
    assert repository.live() == {}
    other = repository.run("apply", "--auto-approve", "--accept", "prune")
    assert other.code == 3
    accepted = repository.run("apply", "--auto-approve", "--accept", "default-entity")
    assert accepted.code == 0, accepted.err
    assert repository.live() == {EVERYBODY: {"producer_byte_rate": 1024**2}}


def test_pruning_asks_and_then_removes_what_no_manifest_declares(repository: BrokerFolder) -> None:
    raw_quotas.alter(repository.server, {frozenset({("client-id", "old")}): {"consumer_byte_rate": 5.0}})
    refused = repository.run("apply", "--auto-approve")
    assert refused.code == 3
    assert "client-id=old" in refused.out + refused.err
    done = repository.run("apply", "--auto-approve", "--accept", "prune")
    assert done.code == 0, done.out + done.err
    assert repository.live() == {ALICE: {"producer_byte_rate": 10 * 1024**2}}


def test_a_saved_plan_is_applied_only_while_it_is_what_would_be_written(repository: BrokerFolder) -> None:
    assert repository.run("plan", "--out", "json=plan.json").code == 0
    raw_quotas.alter(repository.server, {ALICE: {"producer_byte_rate": 77.0}})
    stale = repository.run("apply", "--auto-approve", "--plan", "plan.json", "--format", "json")
    assert (stale.code, stale.json()["failure_reason"]) == (3, "stale-plan")
    for part in ("user=alice", "not set -> 10485760", "77 -> 10485760"):
        assert part in stale.err
    assert repository.live() == {ALICE: {"producer_byte_rate": 77.0}}
    assert repository.run("plan", "--out", "json=plan.json").code == 0
    assert repository.run("apply", "--auto-approve", "--plan", "plan.json").code == 0


def test_a_saved_plan_that_is_applied_already_is_no_failure_and_writes_nothing(repository: BrokerFolder) -> None:
    assert repository.run("plan", "--out", "json=plan.json").code == 0
    saved = ("apply", "--auto-approve", "--plan", "plan.json")
    assert repository.run(*saved).code == 0
    again = repository.run(*saved, "--record-baseline", "baseline.json")
    assert (again.code, again.err) == (0, "")
    assert "The saved plan is already applied." in again.out
    assert (repository.folder / "baseline.json").is_file()
    digest = json.loads((repository.folder / "plan.json").read_text())["digest"]
    document = repository.run(*saved, "--expect-digest", digest, "--format", "json").json()
    valid(document, "apply-report")
    assert (document["result"], document["message"]) == ("nothing_to_do", "the saved plan is already applied")
    assert repository.run(*saved, "--expect-digest", "sha256:" + "0" * 64).code == 3

    repository.declare(alice="10MiB", bob="1MiB")
    later = repository.run(*saved, "--record-baseline", "later.json")
    assert later.code == 0
    assert "already applied. 1 other change is planned now. Plan again" in later.out
    assert not (repository.folder / "later.json").exists()
    assert repository.live() == {ALICE: {"producer_byte_rate": 10 * 1024**2}}
    raw_quotas.alter(repository.server, {ALICE: {"producer_byte_rate": 77.0}})
    assert repository.run(*saved).code == 3


def test_an_apply_that_is_refused_shows_the_plan_that_it_refused(repository: BrokerFolder) -> None:
    repository.quotas(({"user": {"default": True}}, {"producer_byte_rate": "1MiB"}))
    refused = repository.run("apply", "--auto-approve")
    assert refused.code == 3
    assert "+ user=<default>" in refused.out
    assert "not set -> 1 MiB/s" in refused.out
    assert refused.out.index("+ user=<default>") < refused.out.index("Refused. Nothing was written.")
    machine = repository.run("apply", "--auto-approve", "--format", "json")
    assert (machine.json()["result"], "+ user=<default>" in machine.err) == ("refused", True)
    stale = repository.run("apply", "--auto-approve", "--expect-digest", "sha256:" + "0" * 64)
    assert (stale.code, "+ user=<default>" in stale.out) == (3, True)


def test_the_wrong_cluster_is_refused(repository: BrokerFolder) -> None:
    repository.cluster(prune="confirm", clusterId="4L6g3nShT-eMCtK--X86sw")
    for command in (("plan",), ("apply", "--auto-approve")):
        done = repository.run(*command)
        assert done.code == 3
        assert "4L6g3nShT-eMCtK--X86sw" in done.err
    document = repository.run("apply", "--auto-approve", "--format", "json").json()
    valid(document, "apply-report")
    assert (document["result"], document["failure_reason"]) == ("refused", "wrong-cluster")
    assert "4L6g3nShT-eMCtK--X86sw" in document["message"]
    assert repository.live() == {}


@pytest.mark.parametrize(("answer", "code", "written"), [("yes\n", 0, True), ("y\n", 3, False), ("\n", 3, False)])
def test_at_a_terminal_only_yes_applies(repository: BrokerFolder, answer: str, code: int, written: bool) -> None:
    terminal = Terminal(repository.folder, "apply")
    terminal.wait_for("Only 'yes' is accepted")
    assert "user=alice" in terminal.seen
    terminal.type(answer)
    assert terminal.end() == code
    assert bool(repository.live()) == written


def test_an_interrupt_at_the_question_writes_nothing(repository: BrokerFolder) -> None:
    terminal = Terminal(repository.folder, "apply")
    terminal.wait_for("Only 'yes' is accepted")
    terminal.process.send_signal(signal.SIGINT)
    assert terminal.end() == 130
    assert "Traceback" not in terminal.seen
    assert repository.live() == {}
