"""``describe --history``: who set a value, in which pull request, and who approved, from git and audit files."""

from __future__ import annotations

import datetime
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from reconciler.documents import AuditedRun, audit_line
from reconciler.model import (
    Action,
    ApplyReport,
    ApplyResult,
    Change,
    ChangeOutcome,
    ChangeStatus,
    ClusterIdentity,
    Entity,
    JobFacts,
    KeyChange,
    ManifestCommit,
    MergedRequest,
    Reason,
    RunContext,
)
from tests.builders import NOON, user
from tests.support import manifests
from tests.support.command import Done, invoke
from tests.support.git_repository import GitRepository

MIB = 1024 * 1024
ALICE = user("alice")
DAY = datetime.timedelta(days=1)


class History:
    """Three values of alice: the first commit, one that a merge brought, and one that was pushed."""

    def __init__(self, folder: Path) -> None:
        self.git = GitRepository(folder / "quotas")
        self.folder = folder
        self.git.write("cluster.yaml", manifests.cluster())
        self.value("1MiB")
        self.first = self.git.commit("Begin", at=NOON)
        self.git.branch("change")
        self.value("2MiB")
        self.change = self.git.commit("Raise alice \x1b[31m", at=NOON + DAY)
        self.git.git("checkout", "-q", "main")
        self.git.git("merge", "-q", "--no-ff", "-m", "Merge", "change", at=NOON + DAY)
        self.merge = self.git.git("rev-parse", "HEAD")
        self.audit = folder / "audit.jsonl"
        self.audit.touch()

    def value(self, text: str) -> None:
        entries = f"    - match: {{user: alice}}\n      quotas: {{producer_byte_rate: {text}}}\n"
        head = "apiVersion: kafka-quotas/v1\nkind: ClientQuotas\nmetadata: {name: team}\nspec:\n  quotas:\n"
        self.git.write("quotas.yaml", head + entries)

    def ran(self, commit: str, request: MergedRequest | None, *, day: int) -> None:
        """A run that applied a commit."""
        job = JobFacts(source="the test", run=f"https://ci.example.org/{day}", commit=commit, started_by="carol")
        self._record("apply", "ci", day, commit, RunContext(job=job, pull_request=request))

    def wrote(self, *entities: Entity, by: str, day: int, commit: str | None = None) -> None:
        """A run of ``alter``, or of ``apply`` of a commit, that changed entities."""
        self._record("alter" if commit is None else "apply", by, day, commit, None, *entities)

    def _record(self, command: str, by: str, day: int, commit: str | None, context: RunContext | None, *entities: Entity) -> None:
        key = KeyChange(key="producer_byte_rate", before=None, after=7 * MIB, reason=Reason.VALUE_DIFFERS)
        changes = [Change(entity=entity, action=Action.CREATE, keys=(key,)) for entity in entities]
        report = ApplyReport(
            cluster=ClusterIdentity(name="prod", id="c1"),
            digest=f"sha256:{'0' * 64}",
            result=ApplyResult.DONE,
            outcomes=tuple(ChangeOutcome(change=change, status=ChangeStatus.APPLIED) for change in changes),
        )
        source = ManifestCommit(commit=commit, dirty=False)
        run = AuditedRun(command=command, started=NOON + day * DAY, os_user=by, source=source, context=context)
        with self.audit.open("a") as file:
            file.write(audit_line(run, report, at=NOON + day * DAY) + "\n")

    def ask(self, live: float, *options: str) -> Done:
        snapshot = self.folder / "live.json"
        snapshot.write_text(manifests.snapshot({ALICE: {"producer_byte_rate": live}}))
        command = ("describe", ".", "--current", str(snapshot), "--history", "--audit", str(self.audit))
        return invoke(*command, *options, cwd=self.git.folder)

    def values(self, live: float) -> list[dict[str, Any]]:
        done = self.ask(live, "--format", "json")
        assert done.code == 0, done.err
        (quota,) = json.loads(done.out)["quotas"]
        values: list[dict[str, Any]] = quota["values"]
        return values


@pytest.fixture
def history(tmp_path: Path) -> History:
    return History(tmp_path)


def test_a_value_leads_to_its_commit_its_pull_request_and_its_approvers(history: History) -> None:
    request = MergedRequest(
        source="the test",
        number=12,
        url="https://x.example/12",
        approvers=("bob", "dora"),
        merged_by="eve",
        merge_commit=history.merge,
    )
    history.ran(history.first, None, day=0)
    history.ran(history.merge, request, day=2)
    done = history.ask(2 * MIB)
    assert done.code == 0, done.err
    assert done.out.splitlines() == [
        "user=alice",
        "  producer_byte_rate: 2 MiB/s",
        "    declared 2 MiB/s at quotas.yaml:7",
        f"      set by Somebody on 2026-01-03 12:00 UTC, commit {history.change[:12]}: 'Raise alice \\u001b[31m'",
        "      in pull request 12 (https://x.example/12), approved by bob, dora, merged by eve",
        "      applied on 2026-01-04 12:00 UTC by https://ci.example.org/2",
        "    before 1 MiB/s at quotas.yaml:7",
        f"      set by Somebody on 2026-01-02 12:00 UTC, commit {history.first[:12]}: 'Begin'",
        "      applied on 2026-01-02 12:00 UTC by https://ci.example.org/0",
    ]


def test_a_request_that_did_not_bring_the_commit_is_not_named(history: History) -> None:
    """A run applies all commits since the one before, and its own request brought only the last of them."""
    history.git.write("README.md", "words")
    later = history.git.commit("Words", at=NOON + 2 * DAY)
    request = MergedRequest(source="the test", number=13, approvers=("bob",), merge_commit=later)
    history.ran(later, request, day=2)
    history.ran(later, replace(request, merge_commit="--output=x"), day=3)
    newest, oldest = history.values(2 * MIB)
    assert (newest["commit"], "pull_request" in newest, "pull_request" in oldest) == (history.change, False, False)
    assert newest["applied"] == "2026-01-04T12:00:00Z"


def test_a_value_by_other_means_is_said_to_be_one(history: History) -> None:
    done = history.ask(7 * MIB)
    assert "    set by other means: the manifests declare 2 MiB/s. kafka-quotas drift compares" in done.out.splitlines()


def test_the_last_audited_run_that_names_the_entity_is_named(history: History) -> None:
    history.wrote(ALICE, by="mallory\x1b", day=3)
    history.wrote(user("bob"), by="peggy", day=4)
    done = history.ask(7 * MIB)
    assert (
        '    entity last changed by alter of "mallory\\u001b" until 2026-01-05 12:00 UTC, by the audit' in done.out.splitlines()
    )
    (quota,) = json.loads(history.ask(7 * MIB, "--format", "json").out)["quotas"]
    assert (quota["last_write"]["os_user"], quota["last_write"]["entities"]) == ("mallory\x1b", [{"user": "alice"}])


def test_a_later_run_with_too_many_entities_to_name_can_have_changed_it(history: History) -> None:
    history.wrote(ALICE, by="mallory", day=3)
    history.wrote(*(user(f"u{number}") for number in range(51)), by="peggy", day=4)
    words = "    entity can have been changed last by alter of peggy until 2026-01-06 12:00 UTC, by the audit"
    assert words in history.ask(7 * MIB).out.splitlines()


def test_a_run_that_wrote_other_entities_did_not_apply_the_value(history: History) -> None:
    history.wrote(user("bob"), by="ci", day=3, commit=history.merge)
    assert [value["applied"] for value in history.values(2 * MIB)] == [None, None]
    history.wrote(ALICE, by="ci", day=4, commit=history.merge)
    assert history.values(2 * MIB)[0]["applied"] == "2026-01-06T12:00:00Z"


def test_a_value_of_a_profile_leads_to_the_commit_of_the_profile(history: History) -> None:
    history.value("3MiB")
    quotas = (history.git.folder / "quotas.yaml").read_text()
    history.git.write("quotas.yaml", quotas.replace("quotas: {producer_byte_rate: 3MiB}", "profile: gold"))
    profile = (
        "apiVersion: kafka-quotas/v1\nkind: Repository\nspec:\n  profiles:\n    gold: {quotas: {producer_byte_rate: 4MiB}}\n"
    )
    history.git.write("kafka-quotas.yaml", profile)
    commit = history.git.commit("Use a profile", at=NOON + 2 * DAY)
    (value,) = history.values(4 * MIB)[:1]
    assert (value["commit"], value["file"], value["value"]) == (commit, "kafka-quotas.yaml", 4 * MIB)


def test_an_entity_that_no_manifest_declares_has_no_history(history: History) -> None:
    history.git.write("quotas.yaml", manifests.quotas(({"user": "bob"}, {"producer_byte_rate": "1MiB"})))
    history.git.commit("Forget alice", at=NOON + 2 * DAY)
    done = history.ask(2 * MIB)
    assert "    who set it is not known: no manifest declares it, so it was set by other means" in done.out.splitlines()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("describe", "--current", "s.json", "--history"), "--history needs the manifests of the cluster"),
        (("describe", ".", "--current", "s.json", "--audit", "a"), "--audit needs --history"),
    ],
)
def test_what_cannot_be_asked_is_a_usage_error(tmp_path: Path, arguments: tuple[str, ...], words: str) -> None:
    (tmp_path / "cluster.yaml").write_text(manifests.cluster())
    (tmp_path / "s.json").write_text(manifests.snapshot({ALICE: {"producer_byte_rate": 1.0}}))
    done = invoke(*arguments, cwd=tmp_path)
    assert (done.code, words in done.err) == (64, True), done.err


def test_a_shallow_clone_names_nobody(history: History) -> None:
    """git blames the oldest commit that it has for every line."""
    history.git.git("clone", "-q", "--depth", "1", f"file://{history.git.folder}", str(history.folder / "clone"))
    history.git.folder = history.folder / "clone"
    done = history.ask(2 * MIB)
    assert (done.code, done.out) == (1, "")
    assert "--history needs the whole history, and this is a shallow clone" in done.err
