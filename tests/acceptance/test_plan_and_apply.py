"""``plan`` and ``apply`` as a user runs them, against a real broker: streams, files, exit codes, and the broker's state."""

from __future__ import annotations

import json
import signal
import subprocess
from pathlib import Path

import jsonschema
import pytest

from reconciler.features.sandbox.spec import Sandbox
from tests.support import raw_quotas
from tests.support.command import COMMAND, Done, environment, invoke
from tests.support.terminal import Terminal

pytestmark = pytest.mark.kafka

SCHEMAS = Path(__file__).parents[2] / "schemas"
ALICE = frozenset({("user", "alice")})
EVERYBODY = frozenset({("user", None)})


class Repository:
    """A folder with manifests, and the shared broker as its cluster."""

    def __init__(self, folder: Path, sandbox: Sandbox) -> None:
        self.folder = folder
        self.server = sandbox.bootstrap_servers
        self.cluster()
        self.quotas("    - match: {user: alice}\n      quotas: {producer_byte_rate: 10MiB}\n")

    def cluster(self, **spec: str) -> None:
        lines = [f"  {key}: {value}\n" for key, value in {"prune": "confirm", **spec}.items()]
        connection = f'  connection: {{bootstrapServers: ["{self.server}"]}}\n'
        head = "apiVersion: kafka-quotas/v1\nkind: Cluster\nmetadata: {name: test}\nspec:\n"
        (self.folder / "cluster.yaml").write_text(head + connection + "".join(lines))

    def quotas(self, entries: str) -> None:
        head = "apiVersion: kafka-quotas/v1\nkind: ClientQuotas\nmetadata: {name: team}\nspec:\n  quotas:\n"
        (self.folder / "quotas.yaml").write_text(head + entries)

    def run(self, *arguments: str) -> Done:
        return invoke(*arguments, cwd=self.folder)

    def live(self) -> dict[raw_quotas.RawEntity, dict[str, float]]:
        return raw_quotas.describe(self.server)


@pytest.fixture
def repository(tmp_path: Path, clean_kafka: Sandbox) -> Repository:
    return Repository(tmp_path, clean_kafka)


def valid(document: object, schema: str) -> None:
    jsonschema.validate(document, json.loads((SCHEMAS / f"{schema}.v1.schema.json").read_text()))


def test_from_a_first_plan_to_an_empty_one(repository: Repository) -> None:
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


def test_without_a_terminal_and_without_auto_approve_nothing_is_written(repository: Repository) -> None:
    done = repository.run("apply")
    assert done.code == 3
    assert "--auto-approve" in done.out + done.err
    assert repository.live() == {}


def test_a_tripped_guard_refuses_until_it_is_accepted_by_name(repository: Repository) -> None:
    repository.quotas("    - match: {user: {default: true}}\n      quotas: {producer_byte_rate: 1MiB}\n")
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


def test_pruning_asks_and_then_removes_what_no_manifest_declares(repository: Repository) -> None:
    raw_quotas.alter(repository.server, {frozenset({("client-id", "old")}): {"consumer_byte_rate": 5.0}})
    refused = repository.run("apply", "--auto-approve")
    assert refused.code == 3
    assert "client-id=old" in refused.out + refused.err
    done = repository.run("apply", "--auto-approve", "--accept", "prune")
    assert done.code == 0, done.out + done.err
    assert repository.live() == {ALICE: {"producer_byte_rate": 10 * 1024**2}}


def test_a_saved_plan_is_applied_only_while_it_is_what_would_be_written(repository: Repository) -> None:
    assert repository.run("plan", "--out", "json=plan.json").code == 0
    raw_quotas.alter(repository.server, {ALICE: {"producer_byte_rate": 77.0}})
    stale = repository.run("apply", "--auto-approve", "--plan", "plan.json", "--format", "json")
    assert (stale.code, stale.json()["failure_reason"]) == (3, "stale-plan")
    for part in ("user=alice", "not set -> 10485760", "77 -> 10485760"):
        assert part in stale.err
    assert repository.live() == {ALICE: {"producer_byte_rate": 77.0}}
    assert repository.run("plan", "--out", "json=plan.json").code == 0
    assert repository.run("apply", "--auto-approve", "--plan", "plan.json").code == 0


def test_a_saved_plan_that_is_applied_already_is_no_failure_and_writes_nothing(repository: Repository) -> None:
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

    repository.quotas(
        "    - match: {user: alice}\n      quotas: {producer_byte_rate: 10MiB}\n"
        "    - match: {user: bob}\n      quotas: {producer_byte_rate: 1MiB}\n"
    )
    later = repository.run(*saved, "--record-baseline", "later.json")
    assert later.code == 0
    assert "already applied. 1 other change is planned now. Plan again" in later.out
    assert not (repository.folder / "later.json").exists()
    assert repository.live() == {ALICE: {"producer_byte_rate": 10 * 1024**2}}
    raw_quotas.alter(repository.server, {ALICE: {"producer_byte_rate": 77.0}})
    assert repository.run(*saved).code == 3


def test_an_apply_that_is_refused_shows_the_plan_that_it_refused(repository: Repository) -> None:
    repository.quotas("    - match: {user: {default: true}}\n      quotas: {producer_byte_rate: 1MiB}\n")
    refused = repository.run("apply", "--auto-approve")
    assert refused.code == 3
    assert "+ user=<default>" in refused.out
    assert "not set -> 1 MiB/s" in refused.out
    assert refused.out.index("+ user=<default>") < refused.out.index("Refused. Nothing was written.")
    machine = repository.run("apply", "--auto-approve", "--format", "json")
    assert (machine.json()["result"], "+ user=<default>" in machine.err) == ("refused", True)
    stale = repository.run("apply", "--auto-approve", "--expect-digest", "sha256:" + "0" * 64)
    assert (stale.code, "+ user=<default>" in stale.out) == (3, True)


def test_the_wrong_cluster_is_refused(repository: Repository) -> None:
    repository.cluster(clusterId="4L6g3nShT-eMCtK--X86sw")
    for command in (("plan",), ("apply", "--auto-approve")):
        done = repository.run(*command)
        assert done.code == 3
        assert "4L6g3nShT-eMCtK--X86sw" in done.err
    document = repository.run("apply", "--auto-approve", "--format", "json").json()
    valid(document, "apply-report")
    assert (document["result"], document["failure_reason"]) == ("refused", "wrong-cluster")
    assert "4L6g3nShT-eMCtK--X86sw" in document["message"]
    assert repository.live() == {}


def test_a_reader_that_goes_away_is_one_message(repository: Repository) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [*COMMAND, "plan"],
            cwd=repository.folder,
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            env=environment(),
            check=False,
        )
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert "No space left" in done.stderr


@pytest.mark.parametrize(("answer", "code", "written"), [("yes\n", 0, True), ("y\n", 3, False), ("\n", 3, False)])
def test_at_a_terminal_only_yes_applies(repository: Repository, answer: str, code: int, written: bool) -> None:
    terminal = Terminal(repository.folder, "apply")
    terminal.wait_for("Only 'yes' is accepted")
    assert "user=alice" in terminal.seen
    terminal.type(answer)
    assert terminal.end() == code
    assert bool(repository.live()) == written


def test_an_interrupt_at_the_question_writes_nothing(repository: Repository) -> None:
    terminal = Terminal(repository.folder, "apply")
    terminal.wait_for("Only 'yes' is accepted")
    terminal.process.send_signal(signal.SIGINT)
    assert terminal.end() == 130
    assert "Traceback" not in terminal.seen
    assert repository.live() == {}
