"""One verdict over a plan and its backtest: in the one comment that a reviewer reads, and as the status of the commit."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from reconciler.documents import BACKTEST, FINDINGS, FindingList
from reconciler.errors import FileAccessError
from reconciler.features.pull_requests.comment_verdict import Conclusion
from reconciler.features.pull_requests.plan_comment import LIMIT, body_content, plan_comment
from reconciler.features.pull_requests.sticky_comment import CommentState, CommentStatus, Content, render_sticky_comment
from reconciler.model import BacktestReport, BucketVerdict, FailedBucket, RuleOutcome, Verdict
from reconciler.model.backtest import NotJudged, UnjudgedChange
from reconciler.model.finding import Finding, Severity
from reconciler.model.plan import GuardResult, GuardStatus, KeptEntity, Plan
from reconciler.render.markdown import size
from tests.builders import plan, user
from tests.features.pull_requests.conftest import comment, gitlab_job, planned, raised
from tests.support import gitlab_server as gitlab
from tests.support.backtest_reports import report_of, verdict
from tests.support.command import invoke
from tests.support.comments import plan_body
from tests.support.github_server import HEAD, NUMBER, REPOSITORY, Fault, GitHubServer, pull_request
from tests.support.markdown_views import by_github

HIT = verdict(user="alice", verdict=Verdict.THROTTLED, seconds_over=42, seconds_possible=44)
RULE = RuleOutcome(
    words="no bucket that changes may be throttled",
    reason="gold is never throttled",
    span=None,
    failed=(FailedBucket(bucket=HIT.name, key=HIT.key, broker=1, verdict=Verdict.THROTTLED, seconds=42, owners=("team-a",)),),
)


def report(cluster: str | None = "prod") -> BacktestReport:
    return report_of(HIT, cluster=cluster, rules=(RULE,))


@pytest.fixture
def folder(folder: Path) -> Path:
    (folder / "backtest.json").write_text(BACKTEST.text(report()), encoding="utf-8")
    return folder


def bodies(github: GitHubServer) -> list[str]:
    return [one["body"] for one in github.comments.values()]


def test_one_comment_tells_the_plan_and_the_backtest_and_keeps_both(folder: Path, github: GitHubServer) -> None:
    assert comment(folder, github, "plan.json", "--backtest", "backtest.json").code == 0
    (posted,) = bodies(github)
    seen = by_github(posted)
    assert "The proposed quotas would have throttled 1 of 1 quota group whose limit changes" in seen.text()
    assert "fails gold is never throttled. " in seen.text()
    assert "prod: blocked" in seen.text().splitlines()[1]
    assert seen.rows[0] == ["", "Quota", "Limit per broker", "8\xa0h to 20 Nov 2026"]
    assert seen.rows[1][1:] == ["alice producer", "1\xa0→ 2\xa0B/s", "over 1.1\xa0%"]
    assert 'Rule "gold is never throttled" fails for alice.' in seen.text().partition("Quota")[0]
    assert "To pass: ask the owner of the rule." in seen.text()
    assert comment(folder, github, "--state", "applying", "--cluster", "prod").code == 0
    (posted,) = bodies(github)
    assert "being applied" in posted
    assert "over 1.1\xa0%" in posted
    assert comment(folder, github, "plan.json").code == 0
    (posted,) = bodies(github)
    assert "throttled" not in posted, "a new plan has nothing of the old backtest"
    assert "Nothing was checked against traffic" in posted


def test_what_cannot_be_meant_is_refused_and_nothing_is_posted(folder: Path, github: GitHubServer) -> None:
    (folder / "other.json").write_text(json.dumps({"format_version": "1.0"}), encoding="utf-8")
    for arguments, code, said in (
        (("--state", "applied", "--backtest", "backtest.json"), 64, "--backtest adds to a plan"),
        (("plan.json", "--backtest", "missing.json"), 1, "cannot read missing.json"),
        (("plan.json", "--backtest", "other.json"), 1, "other.json is not a backtest report written by 'backtest --format json'"),
    ):
        done = comment(folder, github, *arguments)
        assert (done.code, done.out) == (code, "")
        assert said in done.err
    assert bodies(github) == []


def content_of(text: str, cluster: str | None = None, found: BacktestReport | None = None) -> Content:
    backtest = None if found is None else BACKTEST.text(found)
    return body_content(text, name="plan.json", cluster=cluster, backtest=backtest, backtest_name="b.json")


def merged(one: Plan, found: BacktestReport) -> Content:
    return content_of(plan_body(one), found=found)


def test_findings_as_json_are_a_comment_too() -> None:
    finding = Finding(id="bad", severity=Severity.ERROR, message="wrong")
    content = content_of(FINDINGS.text(FindingList.of([finding])), cluster="prod")
    assert (content.marker.cluster, content.marker.verdict) == ("prod", "blocked")
    assert "wrong" in "\n".join(content.lines)


def test_a_report_about_another_cluster_is_refused() -> None:
    with pytest.raises(FileAccessError, match=r"b\.json is about cluster 'prod-eu', not 'prod'"):
        merged(planned("alice"), report("prod-eu"))


@pytest.mark.parametrize("entities", [1, 1500])
def test_however_long_the_plan_the_verdict_has_room_and_the_whole_stays_within_its_size(entities: int) -> None:
    one = planned(*(f"user-{n:05}-{n * 7919 % 100_003}" for n in range(entities)))
    many = report_of(HIT, *(verdict(user=f"u{n}", verdict=Verdict.THROTTLED) for n in range(1000)), rules=(RULE,), cluster="prod")
    content = merged(one, many)
    status = CommentStatus(
        state=CommentState.FAILED, commit=HEAD, detail="x " * 900, link="https://github.example.org/o/r/runs/1"
    )
    text = render_sticky_comment(content, status)
    assert size((text,)) <= LIMIT
    assert content.marker.verdict == "blocked"
    assert "throttled **1,001 of 1,001 quota groups**" in text
    assert "fails" in text
    first = by_github(text).rows[1]
    assert (first[1], first[3]) == ("alice producer", "over 1.1\xa0%"), "the group that a rule rejects is the first row"
    assert re.search(r"Left out, .*: [\d,]+ of [\d,]+ changed limits", text)


def test_a_plan_without_changes_stays_silent_unless_the_backtest_found_a_change() -> None:
    assert content_of(plan_body(planned())).empty
    assert merged(planned(), report_of(verdict(changed=False), cluster=None)).empty
    assert not merged(planned(), report()).empty
    unjudged = merged(planned(), report_of(unjudged=(QUIET,), cluster=None))
    assert (unjudged.empty, "| not checked: no client |" in "\n".join(unjudged.lines)) == (False, True)


QUIET = UnjudgedChange(entity=user("quiet"), key="producer_byte_rate", before=1.0, after=2.0, reason=NotJudged.NO_CLIENT)


GUARD = GuardResult(
    id="large-reduction",
    status=GuardStatus.NEEDS_ACCEPTANCE,
    measured="1",
    limit="0",
    set_in="built in",
    message="It trips.",
    advice="To accept, pass --accept large-reduction.",
)
ERROR = Finding(id="bad", severity=Severity.ERROR, message="wrong")
NAME = "kafka-quotas/prod"


def changed(*guards: GuardResult, **more: Any) -> Plan:
    return plan(raised("alice"), guards=guards, **more)


def judged(*verdicts: BucketVerdict, **more: Any) -> BacktestReport:
    return report_of(*verdicts, cluster="prod", **more)


CLEAR = judged(verdict())
KEPT = KeptEntity(entity=user("bob"), quotas={"request_percentage": 5.0}, since="main:a.yaml:3:5")


@pytest.mark.parametrize(
    ("found", "report", "wanted", "conclusion"),
    [
        (changed(findings=(ERROR,)), CLEAR, "blocked", Conclusion.FAILURE),
        (changed(), report(), "blocked", Conclusion.FAILURE),
        (changed(GUARD), CLEAR, "needs acceptance", Conclusion.ACTION_REQUIRED),
        (changed(GUARD), None, "needs acceptance", Conclusion.ACTION_REQUIRED),
        (changed(), None, "not checked", Conclusion.NEUTRAL),
        (changed(), judged(HIT), "throttles clients", Conclusion.NEUTRAL),
        (changed(), judged(verdict(verdict=Verdict.POSSIBLE)), "throttles clients", Conclusion.NEUTRAL),
        (changed(), judged(verdict(verdict=Verdict.INCONCLUSIVE)), "inconclusive", Conclusion.NEUTRAL),
        (planned("quiet"), judged(unjudged=(QUIET,)), "not checked", Conclusion.NEUTRAL),
        (planned("alice", "quiet"), judged(verdict(), unjudged=(QUIET,)), "not checked", Conclusion.NEUTRAL),
        (planned("alice", "nowhere"), CLEAR, "not checked", Conclusion.NEUTRAL),
        (plan(kept=(KEPT,)), None, "not removed", Conclusion.NEUTRAL),
        (changed(), CLEAR, "ready", Conclusion.SUCCESS),
        (changed(replace(GUARD, status=GuardStatus.ACCEPTED, advice=None)), CLEAR, "ready", Conclusion.SUCCESS),
        (planned(), judged(verdict(changed=False)), "no change", Conclusion.SUCCESS),
        (plan(), None, "no change", Conclusion.SUCCESS),
    ],
)
def test_one_verdict_stands_over_plan_and_backtest_and_what_apply_would_refuse_never_passes(
    found: Plan, report: BacktestReport | None, wanted: str, conclusion: Conclusion
) -> None:
    content = plan_comment(found, report=report)
    assert content.marker.verdict == wanted
    text = render_sticky_comment(content, CommentStatus(state=CommentState.PLANNED))
    assert text.splitlines()[1].endswith(f"Kafka quotas for `prod`: {wanted}")
    assert content.check is not None
    assert content.check.conclusion is conclusion
    assert content.check.passes <= found.applyable


@pytest.fixture
def guarded(folder: Path) -> Path:
    """The folder with a plan that a guard stops, and a backtest that is clear."""
    (folder / "plan.json").write_text(plan_body(changed(GUARD)))
    (folder / "backtest.json").write_text(BACKTEST.text(CLEAR))
    return folder


def test_the_planned_commit_is_red_and_green_once_the_guard_is_gone(guarded: Path, github: GitHubServer) -> None:
    done = comment(guarded, github, "plan.json")
    assert done.out.splitlines()[1] == "The status of the commit is action_required."
    (run,) = github.checks
    assert (run["name"], run["head_sha"], run["status"], run["conclusion"]) == (NAME, HEAD, "completed", "action_required")
    assert run["details_url"] == f"https://github.example.org/{REPOSITORY}/pull/{NUMBER}#issuecomment-1001"
    assert run["output"]["title"] == "Needs acceptance"
    assert "**1 guard needs acceptance**: `large-reduction`." in run["output"]["summary"]
    (guarded / "plan.json").write_text(plan_body(changed()))
    comment(guarded, github, "plan.json", "--backtest", "backtest.json")
    assert github.status(NAME) == "success", "a rerun of the same commit has the last word"


def test_a_commit_without_a_plan_fails_and_one_that_changes_nothing_passes_without_a_comment(
    guarded: Path, github: GitHubServer
) -> None:
    assert comment(guarded, github, "--state", "plan-failed", "--cluster", "prod", "--if-there").code == 0
    assert github.status(NAME) == "failure"
    assert comment(guarded, github, "--state", "not-changed", "--cluster", "prod").code == 0
    assert github.status(NAME) == "success"
    assert github.comments == {}


def test_the_status_is_that_of_the_commit_which_was_planned(guarded: Path, github: GitHubServer) -> None:
    github.pulls = [pull_request(NUMBER, "c3" * 20)]
    comment(guarded, github, "plan.json")
    assert github.status(NAME) == "action_required"
    assert github.status(NAME, "c3" * 20) is None, "a push while the job ran has its own job"
    comment(guarded, github, "--state", "applied", "--cluster", "prod")
    assert len(github.checks) == 1, "after the merge the status stays"


def test_a_pull_request_from_a_fork_gets_no_status(guarded: Path, github: GitHubServer) -> None:
    github.pulls = [pull_request(NUMBER, HEAD, label="stranger:change")]
    done = comment(guarded, github, "plan.json")
    assert ("is created" in done.out, "status" in done.out) == (True, False)
    assert github.checks == []


def test_a_token_that_may_not_write_checks_is_a_warning_that_names_the_permission(guarded: Path, github: GitHubServer) -> None:
    github.checking = False
    done = comment(guarded, github, "plan.json")
    assert done.code == 0
    assert "warning: No status was set: cannot set the status kafka-quotas/prod of commit" in done.err
    assert "checks: write" in done.err
    assert "GitHub asks for the permission checks=write" in done.err
    assert len(github.comments) == 1


@pytest.mark.parametrize("status", [403, 500])
def test_a_comment_that_cannot_be_posted_leaves_no_old_status(guarded: Path, github: GitHubServer, status: int) -> None:
    github.faults = [Fault(status=status, method="POST")] * (4 if status == 500 else 1)
    done = comment(guarded, github, "plan.json", "--warn-only")
    assert (done.code, github.comments) == (0, {})
    assert "no comment was posted" in done.err
    assert github.status(NAME) == "action_required"


def test_on_gitlab_a_guard_fails_the_external_job_and_a_neutral_result_passes(guarded: Path) -> None:
    with gitlab.gitlab_server() as server:
        variables = {**gitlab_job(server.url), "CI_PIPELINE_ID": "77"}
        assert invoke("comment", "plan.json", cwd=guarded, env=variables).code == 0
        sent = server.statuses[HEAD, NAME]
        assert (sent["state"], sent["description"], sent["pipeline_id"]) == ("failed", "Needs acceptance", "77")
        (guarded / "plan.json").write_text(plan_body(changed()))
        assert invoke("comment", "plan.json", cwd=guarded, env=variables).code == 0
        assert server.status(NAME) == "success"
        server.checking = False
        weak = invoke("comment", "plan.json", cwd=guarded, env=variables)
        assert weak.code == 0
        assert "for statuses Developer" in weak.err
