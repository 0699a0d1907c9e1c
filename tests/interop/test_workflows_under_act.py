"""The workflows of the repository that ``init`` writes, under act, with two brokers, a remote behind TLS and GitHub's API."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from reconciler.features.pull_requests.verify_ref import artifact_name
from reconciler.features.sandbox.cluster import running
from reconciler.features.sandbox.spec import Sandbox, SandboxSpec
from tests.support import raw_quotas
from tests.support.act import ActStep
from tests.support.act_forge import ActForge, act_forge
from tests.support.github_server import review
from tests.support.markdown_views import by_github
from tests.support.metrics_exporter import served

pytestmark = pytest.mark.interop

API = frozenset({("user", "payments-api")})
CLICKS = frozenset({("user", "analytics-clickstream")})
PAYMENTS = "teams/payments/quotas.yaml"
MIB = 1024 * 1024
PROPOSAL = "refs/heads/kafka-quotas/drift/staging"
BASELINE, SNAPSHOT = "refs/kafka-quotas/baseline", "refs/kafka-quotas/snapshot"


@pytest.fixture(scope="module")
def second_broker() -> Iterator[Sandbox]:
    with running(SandboxSpec()) as sandbox:
        yield sandbox


@pytest.fixture
def forge(tmp_path: Path, clean_kafka: Sandbox, second_broker: Sandbox) -> Iterator[ActForge]:
    raw_quotas.remove_all(second_broker.bootstrap_servers)
    servers = {"staging": clean_kafka.bootstrap_servers, "production": second_broker.bootstrap_servers}
    with act_forge(tmp_path, servers) as made:
        yield made


@pytest.fixture
def staging(tmp_path: Path, clean_kafka: Sandbox) -> Iterator[ActForge]:
    """With one cluster only, whose quotas are applied."""
    with act_forge(tmp_path, {"staging": clean_kafka.bootstrap_servers}) as made:
        applied(made)
        yield made


@pytest.fixture
def watched() -> Iterator[str]:
    """The page of an exporter that shows the client of a team, far below its limit, as a source of a watch."""
    labels = '{user="payments-api",}'
    page = f"kafka_server_Produce_byte_rate{labels} 1000.0\nkafka_server_Produce_throttle_time{labels} NaN\n".encode()
    with served(lambda *_: (200, "text/plain; version=0.0.4", page)) as port:
        yield f"1=metrics+http://127.0.0.1:{port}/metrics"


def applied(forge: ActForge) -> None:
    ran = forge.under_act("quotas-apply.yml", forge.pushed(forge.ref("refs/heads/main")))
    assert ran.code == 0, ran.log


def applied_commit(forge: ActForge, cluster: str = "staging") -> str:
    """The commit whose manifests the baseline has."""
    return forge.work.git("-C", str(forge.remote), "rev-parse", f"{BASELINE}/{cluster}^")


def test_from_the_first_apply_over_a_proposal_to_drift_on_two_clusters(forge: ActForge) -> None:
    applied(forge)
    assert forge.live("staging")[API]["producer_byte_rate"] == 10 * MIB
    assert forge.live("production")[API]["producer_byte_rate"] == 20 * MIB
    assert applied_commit(forge) == applied_commit(forge, "production") == forge.ref("refs/heads/main")
    assert forge.github.comments == {}
    snapshot = forge.work.git("-C", str(forge.remote), "cat-file", "blob", f"{SNAPSHOT}/staging:snapshot.json")
    assert len(json.loads(snapshot)["entities"]) == 4

    forge.edit(PAYMENTS, "producer_byte_rate: 10MiB", "producer_byte_rate: 12MiB")
    head, merge = forge.propose()
    proposed = forge.under_act("quotas-pull-request.yml", forge.proposed(head, merge))
    assert proposed.code == 0, proposed.log
    # The value of production is another one: only the cluster that changes is planned.
    assert [job.name.rpartition("/")[2] for job in proposed.jobs if job.steps] == ["Validate", "Plan staging"]
    planned = proposed.job("Plan")
    assert (planned.steps["Plan"].outputs["changes"], planned.steps["Plan"].outputs["applyable"]) == ("1", "true")
    assert "12\N{NO-BREAK SPACE}MiB/s" in planned.summary
    assert json.loads((proposed.artifacts / "quotas-plan-staging/plan.json").read_text())["summary"]["update"] == 1
    assert ": not checked" in forge.comment("staging")
    assert head[:7] in forge.comment("staging")
    assert forge.live("staging")[API]["producer_byte_rate"] == 10 * MIB

    forge.github.reviews = [review("alice", "APPROVED"), review("bob", "CHANGES_REQUESTED")]
    merged = forge.under_act("quotas-apply.yml", forge.pushed(forge.merge()))
    assert merged.code == 0, merged.log
    line = json.loads((merged.artifacts / "quotas-apply-staging/audit.jsonl").read_text())
    assert line["context"]["pull_request"]["approvers"] == ["alice"]
    assert line["context"]["pull_request"]["merge_commit"] == line["context"]["job"]["commit"] == forge.ref("refs/heads/main")
    assert "Merged by merger, approved by alice." in forge.comment("staging")
    kept = forge.work.git("-C", str(forge.remote), "cat-file", "blob", "refs/kafka-quotas/audit/staging:audit.jsonl")
    assert [json.loads(row)["source"]["commit"] for row in kept.splitlines()][1:] == [forge.ref("refs/heads/main")]
    assert forge.live("staging")[API]["producer_byte_rate"] == 12 * MIB
    assert forge.live("production")[API]["producer_byte_rate"] == 20 * MIB
    assert ": applied" in forge.comment("staging")
    assert "**Applied: 1 entity written" in merged.job("Apply to staging").summary
    assert "Nothing to do" in merged.job("Apply to production").summary
    assert len(forge.github.comments) == 1

    same = forge.under_act("quotas-drift.yml", forge.scheduled())
    assert same.code == 0, same.log
    assert "refs/kafka-quotas/baseline/staging (" in same.log
    forge.alter("staging", "analytics-clickstream", "producer_byte_rate", 7.0 * MIB)
    differs = forge.under_act("quotas-drift.yml", forge.scheduled())
    assert differs.code == 1
    assert differs.job("Drift of production").steps["Compare"].outputs["drifted"] == "false"
    compared = differs.job("Drift of staging").steps["Compare"]
    assert (compared.outcome, compared.outputs["changed"]) == ("failure", "1")
    (annotation,) = compared.annotations
    assert annotation.startswith("::warning file=teams/analytics/quotas.yaml,line=7,")
    assert "analytics-clickstream" in compared.summary


def test_a_guard_is_a_red_status_stops_the_merge_and_is_accepted_by_hand(staging: ActForge, watched: str) -> None:
    base = staging.ref("refs/heads/main")
    staging.give("quotas-apply.yml", step_down="4", watch=watched)
    staging.edit(PAYMENTS, "producer_byte_rate: 10MiB", "producer_byte_rate: 1MiB")
    staging.edit("clusters/staging.yaml", "  prune:", "  guards: {large-reduction: {factor: 0.5}}\n  prune:")
    head, merge = staging.propose()
    planned = staging.under_act("quotas-pull-request.yml", staging.proposed(head, merge))
    assert planned.code == 0, planned.log
    assert ": needs acceptance" in staging.comment("staging")
    assert staging.github.status("kafka-quotas/staging", head) == "action_required"

    commit = staging.merge()
    refused = staging.under_act("quotas-apply.yml", staging.pushed(commit))
    assert refused.job("Apply").steps["Apply"].outputs["exit-code"] == "3"
    assert ": apply failed" in staging.comment("staging")
    assert "large-reduction" in staging.comment("staging")
    assert applied_commit(staging) == base
    assert staging.live("staging")[API]["producer_byte_rate"] == 10 * MIB

    by_hand = {**staging.pushed(commit), "event_name": "workflow_dispatch"}
    by_hand["event"] = {**by_hand["event"], "inputs": {"accept": "large-reduction\n"}}
    accepted = staging.under_act("quotas-apply.yml", by_hand)
    assert accepted.code == 0, accepted.log
    assert "in 2 steps: 10 MiB/s → 2.5 MiB/s → 1 MiB/s." in accepted.job("Apply").log
    report = json.loads((accepted.artifacts / "quotas-apply-staging/report.json").read_text())
    assert [(step["groups"], step["throttled"]) for step in report["watch"]["steps"]] == [(1, []), (1, [])]
    assert staging.live("staging")[API]["producer_byte_rate"] == MIB
    assert applied_commit(staging) == commit
    assert ": applied" in staging.comment("staging")


def test_a_proposal_with_errors_fails_with_its_lines_and_one_that_mends_it_passes(staging: ActForge) -> None:
    staging.edit(PAYMENTS, "producer_byte_rate: 10MiB", "producer_byte_rate: 10XiB")
    head, merge = staging.propose()
    broken = staging.under_act("quotas-pull-request.yml", staging.proposed(head, merge))
    assert (broken.code, staging.github.status("kafka-quotas/staging", head)) == (1, "failure")
    (annotation,) = broken.job("Validate").steps["Validate"].annotations
    assert annotation.startswith(f"::error file={PAYMENTS},line=11,")
    assert "cannot be planned" in staging.comment("staging")
    assert "unknown-unit" in broken.job("Plan").summary

    staging.work.git("checkout", "-q", "change")
    staging.edit(PAYMENTS, "10XiB", "11MiB")
    head, merge = staging.propose()
    mended = staging.under_act("quotas-pull-request.yml", staging.proposed(head, merge))
    assert mended.code == 0, mended.log
    assert staging.github.status("kafka-quotas/staging", head) == "neutral"
    assert "11\N{NO-BREAK SPACE}MiB/s" in staging.comment("staging")
    assert "cannot be planned" not in staging.comment("staging")


def test_a_stranger_s_proposal_is_commented_on_by_the_run_that_reads_it_as_data(staging: ActForge, tmp_path: Path) -> None:
    proof = tmp_path / "it-ran"
    staging.edit(PAYMENTS, "producer_byte_rate: 10MiB", "producer_byte_rate: 12MiB")
    staging.work.write("kafka-quotas", f"#!/bin/sh\ntouch {proof}\n")
    staging.work.write("reconciler/__init__.py", f"open({str(proof)!r}, 'w')\n")
    head, merge = staging.propose(label="fork:change")
    own = staging.under_act("quotas-pull-request.yml", staging.proposed(head, merge, owner="fork"))
    assert own.code == 0, own.log
    assert "Comment" not in own.job("Plan").steps
    assert staging.github.comments == {}

    trusted = staging.under_act("quotas-of-forks.yml", staging.planned_of_fork(head))
    assert trusted.code == 0, trusted.log
    assert "12\N{NO-BREAK SPACE}MiB/s" in staging.comment("staging")
    assert head[:7] in staging.comment("staging")
    assert not proof.exists()
    of_acme = staging.under_act("quotas-of-forks.yml", staging.planned_of_fork(head, owner="acme"))
    assert (of_acme.code, of_acme.jobs) == (0, [])


def test_only_the_plan_that_a_reviewer_was_shown_is_applied(staging: ActForge) -> None:
    staging.give("quotas-apply.yml", preview=True)
    staging.edit(PAYMENTS, "producer_byte_rate: 10MiB", "producer_byte_rate: 12MiB")
    shown = staging.under_act("quotas-apply.yml", staging.pushed(staging.push()))
    assert shown.code == 0, shown.log
    assert "payments-api" in shown.job("Plan").summary
    assert staging.live("staging")[API]["producer_byte_rate"] == 12 * MIB

    staging.edit(PAYMENTS, "producer_byte_rate: 12MiB", "producer_byte_rate: 14MiB")
    staging.propose()
    commit = staging.merge()

    def meanwhile(request: object) -> None:
        """Another user changes the cluster when the job that applies begins: it is the first to ask for comments."""
        staging.github.before = lambda request: None
        staging.alter("staging", "payments-api", "producer_byte_rate", 3.0 * MIB)

    staging.github.before = meanwhile
    refused = staging.under_act("quotas-apply.yml", staging.pushed(commit))
    assert refused.job("Apply").steps["Apply"].outputs["exit-code"] == "3"
    assert staging.live("staging")[API]["producer_byte_rate"] == 3 * MIB
    assert applied_commit(staging) != commit


def test_an_old_commit_is_not_applied_over_a_newer_one(staging: ActForge) -> None:
    old = staging.ref("refs/heads/main")
    staging.edit(PAYMENTS, "producer_byte_rate: 10MiB", "producer_byte_rate: 11MiB")
    staging.push()
    left = staging.under_act("quotas-apply.yml", staging.pushed(old))
    assert left.code == 0, left.log
    assert "Apply" not in left.job("Apply").steps
    assert "has a newer commit" in left.job("Apply").steps["Leave an old commit alone"].annotations[0]
    assert staging.live("staging")[API]["producer_byte_rate"] == 10 * MIB


def test_a_scheduled_snapshot_renews_the_proof_of_the_baseline(staging: ActForge) -> None:
    before, baseline, commit = staging.ref(f"{SNAPSHOT}/staging"), staging.ref(f"{BASELINE}/staging"), applied_commit(staging)
    stored = staging.under_act("quotas-snapshot.yml", staging.scheduled())
    assert stored.code == 0, stored.log
    assert staging.ref(f"{SNAPSHOT}/staging") != before
    # The baseline is what it was, and its proof is new: GitHub deletes the old one some day.
    assert staging.ref(f"{BASELINE}/staging") != baseline
    assert applied_commit(staging) == commit
    staging.github.expired |= {artifact_name(baseline)}
    again = staging.under_act("quotas-drift.yml", staging.scheduled())
    assert "refs/kafka-quotas/baseline/staging (" in again.log


def proposing(forge: ActForge, how: str) -> ActStep:
    """A run of drift that proposes and fails for nothing."""
    forge.github.pulls = [pull for pull in forge.github.pulls if pull["title"] != "quotas"]
    ran = forge.under_act("quotas-drift.yml", forge.scheduled())
    assert ran.code == 0, ran.log
    (pull,) = (pull for pull in forge.github.pulls if pull["state"] == "open")
    assert pull["title"].startswith(f"{how} drift of staging: ")
    return ran.job("Drift").steps["Compare"]


def merge_proposal(forge: ActForge) -> str:
    """The branch about drift becomes a part of main."""
    forge.work.git("fetch", "-q", "origin", PROPOSAL)
    forge.work.git("merge", "-q", "--no-ff", "-m", "a merge", "FETCH_HEAD")
    forge.github.pulls[0]["state"] = "closed"
    return forge.push()


def test_drift_that_is_adopted_leaves_nothing_to_apply(staging: ActForge) -> None:
    staging.give("quotas-drift.yml", propose="adopt", fail_on_drift=False)
    staging.push()
    applied(staging)
    staging.alter("staging", "analytics-clickstream", "producer_byte_rate", 7.0 * MIB)
    assert proposing(staging, "Adopt").outputs["drifted"] == "true"
    text = by_github(staging.github.pulls[0]["body"]).text()
    assert "UTC the cluster had the declared values, by the audit of https://github.com/" in text
    assert "user=analytics-clickstream producer_byte_rate: 10 MiB/s by " in text
    again = staging.under_act("quotas-apply.yml", staging.pushed(merge_proposal(staging)))
    assert again.code == 0, again.log
    assert "Nothing to do" in again.job("Apply").summary
    assert staging.live("staging")[CLICKS]["producer_byte_rate"] == 7 * MIB


def test_drift_that_is_reverted_is_restored_by_the_apply_of_its_merge(staging: ActForge) -> None:
    staging.give("quotas-drift.yml", propose="revert", fail_on_drift=False)
    staging.push()
    applied(staging)
    declared = staging.live("staging")
    staging.alter("staging", "analytics-clickstream", "producer_byte_rate", 7.0 * MIB)
    staging.alter("staging", "payments-api", "request_percentage", 3.0)
    assert proposing(staging, "Revert").outputs["changed"] == "2"
    restored = staging.under_act("quotas-apply.yml", staging.pushed(merge_proposal(staging)))
    assert restored.code == 0, restored.log
    assert staging.live("staging") == declared
