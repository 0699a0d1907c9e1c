"""The reusable workflows on the template of ``init``, step by step, against a real broker, a bare remote and GitHub's API.

A proposal is planned and commented on, merged and applied, compared, changed by hand and compared again.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from reconciler.features.pull_requests.verify_ref import artifact_name
from reconciler.features.sandbox.spec import Sandbox
from tests.support import raw_quotas
from tests.support.command import invoke
from tests.support.forge import Forge
from tests.support.github_server import TOKEN, github_server, review
from tests.support.markdown_views import by_github
from tests.support.workflow_runner import JobRun

pytestmark = pytest.mark.kafka

API = frozenset({("user", "payments-api")})
CLICKS = frozenset({("user", "analytics-clickstream")})
PAYMENTS = "teams/payments/quotas.yaml"
MIB = 1024 * 1024
PROPOSAL = "refs/heads/kafka-quotas/drift/staging"
BASELINE, SNAPSHOT = "refs/kafka-quotas/baseline/staging", "refs/kafka-quotas/snapshot/staging"


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")


def only(runs: list[JobRun], job: str | None = None) -> JobRun:
    (one,) = [one for one in runs if job is None or one.job == job]
    assert TOKEN not in one.log
    return one


@pytest.fixture
def forge(tmp_path: Path, clean_kafka: Sandbox) -> Iterator[Forge]:
    """The template with its staging cluster on the shared broker, on main."""
    with github_server() as github:
        made = Forge(tmp_path, github)
        login = {"CLIENT_PROPERTIES": "security.protocol=PLAINTEXT\nclient.id=workflow"}
        made.environments = {"staging": login, "staging-read": login}
        done = invoke("init", "work", "--overwrite", cwd=tmp_path)
        assert done.code == 0, done.err
        folder = made.work.folder
        edit(folder / "clusters/staging.yaml", "kafka.staging.example:9092", clean_kafka.bootstrap_servers)
        (folder / "clusters/production.yaml").unlink()
        # Limits for everybody would slow down the tests' own connections.
        shutil.rmtree(folder / "teams/platform")
        made.push()
        yield made


def comment(forge: Forge) -> str:
    (posted,) = forge.github.comments.values()
    return by_github(str(posted["body"])).text()


def approval(run: JobRun) -> tuple[list[str], str]:
    """The approvers in the audit line of a run, and the commit that the merge made."""
    line = json.loads((run.artifacts["quotas-apply-staging"] / "audit.jsonl").read_text(encoding="utf-8"))
    request = line["context"]["pull_request"]
    assert request["merge_commit"] == line["context"]["job"]["commit"]
    return request["approvers"], request["merge_commit"]


def live(forge: Forge, sandbox: Sandbox) -> dict[Any, dict[str, float]]:
    return raw_quotas.settled(sandbox.bootstrap_servers)


def applied_commit(forge: Forge) -> str:
    """The commit whose manifests the baseline has."""
    return forge.work.git("-C", str(forge.remote), "rev-parse", f"{BASELINE}^")


def tells_drift(forge: Forge, sandbox: Sandbox) -> None:
    """Nothing before, and afterwards a change by hand, is drift."""
    clean = only(forge.on_schedule("quotas-drift.yml")["drift"], "drift")
    assert clean.result == "success", clean.log
    assert clean.environment == "staging-read"
    assert "CLIENT_PROPERTIES" not in clean.log
    assert clean.step("drift").outputs["drifted"] == "false"
    assert "baseline refs/kafka-quotas/baseline/staging" in clean.log

    raw_quotas.alter(sandbox.bootstrap_servers, {CLICKS: {"producer_byte_rate": 7.0 * MIB}})
    drifted = only(forge.on_schedule("quotas-drift.yml")["drift"], "drift")
    assert drifted.result == "failure"
    assert drifted.step("drift").outputs["changed"] == "1"
    (annotation,) = drifted.step("drift").annotations
    assert annotation.startswith("::warning file=teams/analytics/quotas.yaml,line=7,")
    assert "drift/changed" in annotation
    assert "analytics-clickstream" in drifted.summary
    told = only(forge.on_push(forge.ref("refs/heads/main"), "drift.yml", fail_on_drift=False)["drift"])
    assert (told.result, told.step("drift").outputs["drifted"]) == ("success", "true")
    assert len(forge.github.comments) == 1


def test_the_template_s_own_workflows_from_a_proposal_to_drift(forge: Forge, clean_kafka: Sandbox) -> None:
    first = forge.on_push(forge.ref("refs/heads/main"), "quotas-apply.yml")
    applied = only(first["apply"], "apply")
    assert applied.result == "success", applied.log
    assert applied.matrix == {"cluster": "staging", "slug": "staging", "traffic": ""}
    assert applied.environment == "staging"
    assert "CLIENT_PROPERTIES" not in applied.log
    assert applied.concurrency == {"group": "kafka-quotas-apply-staging", "cancel-in-progress": False}
    assert live(forge, clean_kafka)[API]["producer_byte_rate"] == 10 * MIB
    assert applied_commit(forge) == forge.ref("refs/heads/main")
    assert forge.github.comments == {}
    snapshot = json.loads(forge.work.git("-C", str(forge.remote), "cat-file", "blob", f"{SNAPSHOT}:snapshot.json"))
    assert len(snapshot["entities"]) == 4

    edit(forge.work.folder / PAYMENTS, "producer_byte_rate: 10MiB", "producer_byte_rate: 12MiB")
    head, merge = forge.propose()
    proposed = forge.on_pull_request(head, merge, "quotas-pull-request.yml")
    planned = only(proposed["plan"], "plan")
    assert planned.result == "success", planned.log
    assert planned.step("plan").outputs["changes"] == "1"
    assert planned.step("plan").outputs["digest"].startswith("sha256:")
    assert planned.step("plan").outputs["applyable"] == "true"
    assert "12\N{NO-BREAK SPACE}MiB/s" in planned.summary
    assert (
        json.loads((planned.artifacts["quotas-plan-staging"] / "plan.json").read_text(encoding="utf-8"))["summary"]["update"] == 1
    )
    assert ": not checked" in comment(forge)
    assert head[:7] in comment(forge)
    assert live(forge, clean_kafka)[API]["producer_byte_rate"] == 10 * MIB

    forge.github.reviews = [review("alice", "APPROVED"), review("bob", "CHANGES_REQUESTED")]
    merged = only(forge.on_push(forge.merge(), "quotas-apply.yml")["apply"], "apply")
    assert merged.result == "success", merged.log
    assert approval(merged) == (["alice"], forge.ref("refs/heads/main"))
    assert "Merged by merger, approved by alice." in comment(forge)
    assert live(forge, clean_kafka)[API]["producer_byte_rate"] == 12 * MIB
    assert ": applied" in comment(forge)
    assert applied_commit(forge) == forge.ref("refs/heads/main")
    assert "### Kafka quotas, apply: `staging`\n\n**Applied: 1 entity written" in merged.summary
    assert "`producer_byte_rate` | 10\N{NO-BREAK SPACE}MiB/s | 12\N{NO-BREAK SPACE}MiB/s | **written** |" in merged.summary
    assert "{" not in merged.summary

    tells_drift(forge, clean_kafka)


@pytest.fixture
def proposing(forge: Forge) -> Forge:
    """The template applied once, with a token that proposes."""
    assert only(forge.on_push(forge.ref("refs/heads/main"), "apply.yml")["apply"]).result == "success"
    forge.environments["staging-read"] = {**forge.environments["staging-read"], "PROPOSE_TOKEN": TOKEN}
    forge.github.head_of = lambda branch: forge.ref(f"refs/heads/{branch}")
    forge.github.pulls = []
    return forge


def drifted(forge: Forge, how: str) -> JobRun:
    """A run of drift that proposes."""
    return only(forge.on_push(forge.ref("refs/heads/main"), "drift.yml", propose=how, fail_on_drift=False)["drift"])


def merge_proposal(forge: Forge) -> str:
    """The drift's branch becomes a part of main."""
    forge.work.git("fetch", "-q", "origin", PROPOSAL)
    forge.work.git("merge", "-q", "--no-ff", "-m", "a merge", "FETCH_HEAD")
    forge.github.pulls[0]["state"] = "closed"
    return forge.push()


def test_drift_that_is_adopted_leaves_nothing_to_apply(proposing: Forge, clean_kafka: Sandbox) -> None:
    raw_quotas.alter(clean_kafka.bootstrap_servers, {CLICKS: {"producer_byte_rate": 7.0 * MIB}})
    run = drifted(proposing, "adopt")
    assert run.result == "success", run.log
    assert TOKEN not in run.log
    assert [pull["title"] for pull in proposing.github.pulls] == ["Adopt drift of staging: 1 entity"]
    commit = merge_proposal(proposing)
    again = only(proposing.on_push(commit, "apply.yml")["apply"])
    assert again.result == "success", again.log
    assert "Nothing to do" in again.summary, again.summary
    assert live(proposing, clean_kafka)[CLICKS]["producer_byte_rate"] == 7 * MIB
    assert drifted(proposing, "adopt").step("drift").outputs["drifted"] == "false"
    assert proposing.ref(PROPOSAL) == ""


def test_drift_that_is_reverted_is_restored_by_the_apply_of_its_merge(proposing: Forge, clean_kafka: Sandbox) -> None:
    declared = live(proposing, clean_kafka)
    raw_quotas.alter(clean_kafka.bootstrap_servers, {CLICKS: {"producer_byte_rate": 7.0 * MIB}, API: {"request_percentage": 3.0}})
    assert drifted(proposing, "revert").result == "success"
    assert [pull["title"] for pull in proposing.github.pulls] == ["Revert drift of staging: 2 entities"]
    restored = only(proposing.on_push(merge_proposal(proposing), "apply.yml")["apply"])
    assert restored.result == "success", restored.log
    assert live(proposing, clean_kafka) == declared


def test_without_its_token_drift_proposes_nothing_and_says_so(proposing: Forge, clean_kafka: Sandbox) -> None:
    del proposing.environments["staging-read"]["PROPOSE_TOKEN"]
    raw_quotas.alter(clean_kafka.bootstrap_servers, {CLICKS: {"producer_byte_rate": 7.0 * MIB}})
    run = drifted(proposing, "adopt")
    assert (run.result, proposing.github.pulls) == ("success", [])
    assert "nothing proposed" in run.log


def test_a_scheduled_snapshot_renews_the_proof_of_the_baseline(forge: Forge, clean_kafka: Sandbox) -> None:
    assert only(forge.on_push(forge.ref("refs/heads/main"), "quotas-apply.yml")["apply"], "apply").result == "success"
    before, baseline, commit = forge.ref(SNAPSHOT), forge.ref(BASELINE), applied_commit(forge)
    stored = only(forge.on_schedule("quotas-snapshot.yml")["snapshot"], "snapshot")
    assert (stored.result, stored.environment) == ("success", "staging-read")
    assert "CLIENT_PROPERTIES" not in stored.log
    assert forge.ref(SNAPSHOT) != before
    # The baseline is what it was, and its proof is new: GitHub deletes the old one some day.
    assert forge.ref(BASELINE) != baseline
    assert applied_commit(forge) == commit
    forge.github.expired |= {artifact_name(baseline)}
    again = only(forge.on_schedule("quotas-drift.yml")["drift"], "drift")
    assert "baseline refs/kafka-quotas/baseline/staging" in again.log
    forge.environments = {}
    without = only(forge.on_schedule("quotas-drift.yml")["drift"], "drift")
    assert "::notice title=no CLIENT_PROPERTIES::" in without.log


@pytest.mark.large
def test_a_guard_stops_apply_until_it_is_accepted_and_the_cluster_is_found_again(forge: Forge, clean_kafka: Sandbox) -> None:
    base = forge.ref("refs/heads/main")
    assert only(forge.on_push(base, "apply.yml")["apply"]).result == "success"
    edit(forge.work.folder / PAYMENTS, "producer_byte_rate: 10MiB", "producer_byte_rate: 1MiB")
    edit(forge.work.folder / "clusters/staging.yaml", "  prune:", "  guards: {large-reduction: {factor: 0.5}}\n  prune:")
    forge.propose()
    commit = forge.merge()
    refused = only(forge.on_push(commit, "apply.yml", publish_snapshot=True)["apply"])
    assert (refused.result, refused.step("apply").outputs["exit-code"]) == ("failure", "3")
    assert ": apply failed" in comment(forge)
    assert "large-reduction" in comment(forge)
    assert applied_commit(forge) == base
    assert forge.ref(SNAPSHOT)
    assert live(forge, clean_kafka)[API]["producer_byte_rate"] == 10 * MIB

    accepted = forge.on_push(commit, "apply.yml", accept="large-reduction\n")
    assert only(accepted["apply"]).result == "success", only(accepted["apply"]).log
    assert applied_commit(forge) == commit
    assert live(forge, clean_kafka)[API]["producer_byte_rate"] == MIB
    assert ": applied" in comment(forge)

    # Once more, nothing differs: the live state says so, and not what an earlier run stored.
    again = only(forge.on_push(commit, "apply.yml")["apply"])
    assert again.result == "success"
    assert "Nothing to do" in again.summary


def test_an_old_commit_is_not_applied_over_a_newer_one(forge: Forge, clean_kafka: Sandbox) -> None:
    old = forge.ref("refs/heads/main")
    edit(forge.work.folder / PAYMENTS, "producer_byte_rate: 10MiB", "producer_byte_rate: 11MiB")
    forge.push()
    left = only(forge.on_push(old, "apply.yml")["apply"])
    assert (left.result, left.step("apply").outcome) == ("success", "skipped")
    assert "has a newer commit" in left.step("newest").annotations[0]
    assert live(forge, clean_kafka) == {}
    assert forge.ref(BASELINE) == ""


def test_what_breaks_apply_before_it_has_a_report_is_a_failure_in_the_comment_too(forge: Forge) -> None:
    forge.propose()
    edit(forge.work.folder / PAYMENTS, "producer_byte_rate: 10MiB", "producer_byte_rate: 10XiB")
    broken = only(forge.on_push(forge.merge(), "apply.yml")["apply"])
    assert (broken.result, broken.step("apply").outputs["exit-code"]) == ("failure", "1")
    assert ": apply failed" in comment(forge)
    assert forge.ref(BASELINE) == ""


def test_with_a_preview_only_the_plan_that_was_looked_at_is_applied(forge: Forge, clean_kafka: Sandbox) -> None:
    commit = forge.ref("refs/heads/main")
    shown = forge.on_push(commit, "apply.yml", preview=True)
    preview, applied = only(shown["preview"]), only(shown["apply"])
    assert (preview.environment, applied.environment) == ("staging-read", "staging")
    assert "payments-api" in preview.summary
    assert applied.result == "success", applied.log
    assert live(forge, clean_kafka)[API]["producer_byte_rate"] == 10 * MIB

    edit(forge.work.folder / PAYMENTS, "producer_byte_rate: 10MiB", "producer_byte_rate: 12MiB")
    commit = forge.push()

    def meanwhile(job: str) -> None:
        """While somebody looks at the plan, somebody else changes the cluster."""
        if job == "apply":
            raw_quotas.alter(clean_kafka.bootstrap_servers, {API: {"producer_byte_rate": 3.0 * MIB}})
            raw_quotas.settled(clean_kafka.bootstrap_servers)

    forge.before_job = meanwhile
    refused = only(forge.on_push(commit, "apply.yml", preview=True)["apply"])
    assert (refused.result, refused.step("apply").outputs["exit-code"]) == ("failure", "3")
    assert live(forge, clean_kafka)[API]["producer_byte_rate"] == 3 * MIB
    assert forge.ref(BASELINE) != commit


def test_a_forged_baseline_skips_no_apply_and_is_no_baseline_of_drift(forge: Forge, clean_kafka: Sandbox) -> None:
    assert only(forge.on_push(forge.ref("refs/heads/main"), "apply.yml")["apply"]).result == "success"
    edit(forge.work.folder / PAYMENTS, "producer_byte_rate: 10MiB", "producer_byte_rate: 12MiB")
    forge.propose()
    commit = forge.merge()
    # A user who may push says that this commit is applied already.
    forge.work.git("push", "-q", "-f", "origin", f"{commit}:{BASELINE}")

    drift = only(forge.on_schedule("drift.yml")["drift"])
    assert "baseline not trusted" in drift.log
    assert "does not name the run that stored it" in drift.log
    assert (drift.result, drift.step("drift").outputs["drifted"]) == ("failure", "true")

    applied = only(forge.on_push(commit, "apply.yml")["apply"])
    assert applied.result == "success", applied.log
    assert live(forge, clean_kafka)[API]["producer_byte_rate"] == 12 * MIB
    assert applied_commit(forge) == commit


@pytest.mark.large
def test_only_what_a_push_changes_is_applied_when_that_is_chosen(forge: Forge, clean_kafka: Sandbox) -> None:
    first = forge.ref("refs/heads/main")
    assert only(forge.on_push(first, "apply.yml", only_changed=True)["apply"]).result == "success"
    forge.work.write("README.md", "words")
    second = forge.push()
    assert [one.result for one in forge.on_push(second, "apply.yml", before=first, only_changed=True)["apply"]] == ["skipped"]
    edit(forge.work.folder / PAYMENTS, "producer_byte_rate: 10MiB", "producer_byte_rate: 12MiB")
    assert only(forge.on_push(forge.push(), "apply.yml", before=second, only_changed=True)["apply"]).result == "success"
    assert live(forge, clean_kafka)[API]["producer_byte_rate"] == 12 * MIB
