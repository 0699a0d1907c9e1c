"""``--validate-only`` asks the cluster whatever the guards say, and reports both answers."""

from __future__ import annotations

from pathlib import Path

import pytest

from reconciler.apply import ApplySettings
from reconciler.model.plan import ApplyReport, ApplyResult, ChangeStatus
from reconciler.ports import NO_PROGRESS
from reconciler.render.apply_text import apply_report_lines
from reconciler.render.terminal import plain
from reconciler.text import all_changes
from reconciler.workflows.apply import Approval, Dialogue, apply_manifests
from reconciler.workflows.intent import load_intent
from tests.builders import user
from tests.fakes import FakeClock, FakeCluster, Faults

RATE = "producer_byte_rate"
MANIFEST = f"""apiVersion: kafka-quotas/v1
kind: ClientQuotas
spec:
  quotas:
    - match: {{user: alice}}
      quotas: {{{RATE}: 1MiB}}
    - match: {{user: bob}}
      quotas: {{{RATE}: 1MiB}}
"""
BEFORE = {user("alice"): {RATE: 104857600.0}}


def check(folder: Path, cluster: FakeCluster, *accepted: str) -> ApplyReport:
    (folder / "a.yaml").write_text(MANIFEST)
    approval = Approval(accepted=accepted, settings=ApplySettings(validate_only=True))
    intent = load_intent([str(folder)], cluster=None)
    return apply_manifests(
        intent, cluster, approval, dialogue=Dialogue(confirm=lambda _: False), clock=FakeClock(), progress=NO_PROGRESS
    )


def test_a_guard_that_trips_does_not_keep_the_cluster_from_being_asked(tmp_path: Path) -> None:
    cluster = FakeCluster(BEFORE)
    report = check(tmp_path, cluster)
    assert (report.result, cluster.validations, cluster.writes) == (ApplyResult.REFUSED, 1, 0)
    assert "Guard large-reduction: Cuts producer_byte_rate" in (report.message or "")
    assert (report.message or "").endswith("Apart from that, the cluster would accept all 2 changes")
    assert check(tmp_path, cluster, "large-reduction").result is ApplyResult.DONE


@pytest.mark.parametrize(("number", "words"), [(1, "the change"), (2, "all 2 changes"), (2000, "all 2,000 changes")])
def test_one_accepted_change_is_not_all_changes(number: int, words: str) -> None:
    assert all_changes(number) == words


def test_what_the_cluster_refuses_beside_the_guard_is_named(tmp_path: Path) -> None:
    cluster = FakeCluster(BEFORE, faults=Faults(refuse={user("bob"): (42, "no bobs here")}))
    report = check(tmp_path, cluster)
    assert report.result is ApplyResult.REFUSED
    assert [outcome.status for outcome in report.outcomes].count(ChangeStatus.FAILED) == 1
    text = plain(apply_report_lines(report))
    assert "failed: user=bob: no bobs here (error 42)" in text
    assert "The cluster itself refuses 1 change of 2, too." in text


@pytest.mark.parametrize("digest", ["sha256:" + "0" * 64])
def test_a_plan_that_was_not_reviewed_is_not_asked_about(tmp_path: Path, digest: str) -> None:
    (tmp_path / "a.yaml").write_text(MANIFEST)
    cluster = FakeCluster(BEFORE)
    approval = Approval(expected_digest=digest, settings=ApplySettings(validate_only=True))
    intent = load_intent([str(tmp_path)], cluster=None)
    report = apply_manifests(
        intent, cluster, approval, dialogue=Dialogue(confirm=lambda _: False), clock=FakeClock(), progress=NO_PROGRESS
    )
    assert (report.failure_reason, cluster.validations) == ("stale-plan", 0)
