"""What a reviewer commits or copies: suggestions on the lines of a pull request, and exceptions of a comment."""

from __future__ import annotations

import datetime
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from reconciler.documents import BACKTEST
from reconciler.model import BacktestReport, Entity, Verdict
from tests.builders import user
from tests.features.pull_requests.conftest import github_job, gitlab_job
from tests.support import github_server as hub
from tests.support import gitlab_server as lab
from tests.support.backtest_reports import report_of, verdict
from tests.support.command import Done, invoke
from tests.support.git_repository import GitRepository
from tests.support.github_server import NUMBER, Fault, ForgeServer, pull_request
from tests.support.hostile_names import HOSTILE
from tests.support.manifests import cluster, quotas, snapshot
from tests.support.markdown_views import by_github

MIB = 1024.0**2
CLUSTER = """apiVersion: kafka-quotas/v1
kind: Cluster
metadata: {name: prod}
spec:
  prune: never
"""
QUOTAS = """apiVersion: kafka-quotas/v1
kind: ClientQuotas
metadata: {name: team}
spec:
  # who gets what
  quotas:
    - match: {user: orders}
      quotas:
        producer_byte_rate: 8MiB  # agreed in May
    # the second
    - match: {user: billing}
      quotas: {producer_byte_rate: "2MiB/s", request_percentage: 50}
"""
LIVE = {
    user("orders"): {"producer_byte_rate": 8 * MIB},
    user("billing"): {"producer_byte_rate": 2 * MIB, "request_percentage": 50.0},
}
BLOCK = re.compile(r"^(`{3,})suggestion(?::-0\+0)?\n(.*?)\n\1$", re.DOTALL | re.MULTILINE)


def too_low(name: str, safe: float, **more: Any) -> Any:
    entity = more.pop("entity", user(name))
    return verdict(user=name, entity=entity, verdict=Verdict.THROTTLED, seconds_over=900, seconds_possible=950, safe=safe, **more)


@dataclass
class PullRequest:
    """A repository whose newest commit is proposed to the forge, and the command that a job runs there."""

    work: GitRepository
    server: ForgeServer
    live: dict[Entity, Mapping[str, float]] = field(default_factory=dict)

    def propose(self) -> str:
        """What is in the folder becomes the newest commit of the pull request."""
        head = self.work.commit("a proposal")
        self.server.files = []
        for row in self.work.git("diff", "--name-status", "--no-renames", "main...HEAD").splitlines():
            path = row.split("\t")[1]
            patch = self.work.git("diff", "main...HEAD", "--", path)
            patch = patch[patch.index("@@") :]
            on_gitlab = {"old_path": path, "new_path": path, "diff": patch}
            on_github = {"filename": path, "patch": patch, "status": "modified"}
            self.server.files.append(on_gitlab if isinstance(self.server, lab.GitLabServer) else on_github)
        merge = lab.merge_request(NUMBER, head) if isinstance(self.server, lab.GitLabServer) else pull_request(NUMBER, head)
        self.server.pulls = [merge]
        return head

    def plan(self, *, report: BacktestReport | None = None, code: int = 0) -> Done:
        """Plan the pull request as a job does, and post the comment."""
        head = self.propose()
        (self.work.folder.parent / "now.json").write_text(snapshot(self.live or LIVE))
        done = invoke(
            "plan", ".", "--current", "../now.json", "--trusted-ref", "main", "--out", "json=../plan.json", cwd=self.work.folder
        )
        assert done.code == code, done.out + done.err
        arguments = ["../plan.json"]
        if report is not None:
            (self.work.folder.parent / "backtest.json").write_text(BACKTEST.text(replace(report, cluster="prod")))
            arguments += ["--backtest", "../backtest.json"]
        return self.comment(head, *arguments)

    def comment(self, head: str, *arguments: str) -> Done:
        if isinstance(self.server, lab.GitLabServer):
            variables = {**gitlab_job(self.server.url), "CI_COMMIT_SHA": head}
        else:
            variables = github_job(self.server.url, self.work.folder.parent)
            event = {"pull_request": {"number": NUMBER, "head": {"sha": head}}}
            Path(variables["GITHUB_EVENT_PATH"]).write_text(json.dumps(event))
        done = invoke("comment", *arguments, "--cluster", "prod", cwd=self.work.folder, env=variables)
        assert done.code == 0, done.err
        return done

    @property
    def offered(self) -> list[tuple[str, int, str]]:
        """Path, line and text of each suggestion on the page."""
        rows = []
        for comment in self.server.line_comments.values():
            at = comment.get("position", {})
            block = BLOCK.search(comment["body"])
            assert block is not None, comment["body"]
            rows.append((comment.get("path", at.get("new_path")), comment.get("line", at.get("new_line")), block[2]))
        return rows

    def commit_all(self) -> None:
        """Commit the suggestions as the forge does: the lines of each take the place of the line that it is on."""
        for path, line, text in sorted(self.offered, key=lambda each: -each[1]):
            file = self.work.folder / path
            lines = file.read_text().split("\n")
            lines[line - 1 : line] = text.split("\n")
            file.write_text("\n".join(lines))

    def validated(self) -> Done:
        return invoke("validate", ".", cwd=self.work.folder)


def opened(folder: Path, server: ForgeServer, *, quotas: str = QUOTAS, cluster: str = CLUSTER) -> PullRequest:
    work = GitRepository(folder / "work")
    work.write("clusters/prod.yaml", cluster)
    work.write("teams/a.yaml", quotas)
    work.commit()
    work.branch()
    return PullRequest(work, server)


@pytest.fixture(params=["github", "gitlab"])
def forge(request: pytest.FixtureRequest) -> Iterator[ForgeServer]:
    with hub.github_server() if request.param == "github" else lab.gitlab_server() as found:
        yield found


def edit(request: PullRequest, before: str, after: str, path: str = "teams/a.yaml") -> None:
    text = (request.work.folder / path).read_text()
    assert before in text
    request.work.write(path, text.replace(before, after))


REPORT = report_of(too_low("orders", 6.25 * MIB), too_low("billing", 1.5 * MIB))


def test_a_safe_value_is_offered_on_its_line_and_turns_the_status_green(tmp_path: Path, forge: ForgeServer) -> None:
    request = opened(tmp_path, forge)
    edit(request, "8MiB  #", "4MiB  #")
    edit(request, '"2MiB/s"', '"1MiB/s"')
    done = request.plan(report=REPORT)
    assert sorted(request.offered) == [
        ("teams/a.yaml", 9, "        producer_byte_rate: 6.25MiB  # agreed in May"),
        ("teams/a.yaml", 12, '      quotas: {producer_byte_rate: "1.5MiB/s", request_percentage: 50}'),
    ]
    bodies = [comment["body"] for comment in forge.line_comments.values()]
    words = "`orders` producer: 6.25 MiB/s is the smallest limit that throttles no recorded request of 8\xa0h."
    assert any(words in body for body in bodies)
    (comment,) = forge.comments.values()
    assert "2 suggestions on changed lines" in comment["body"]
    assert done.out.count("\n") == 2
    request.commit_all()
    assert request.validated().code == 0
    request.plan(report=report_of(verdict(user="orders"), verdict(user="billing", entity=user("billing"))))
    assert forge.line_comments == {}, "what was committed is no longer offered"
    status = forge.status("kafka-quotas/prod", request.work.git("rev-parse", "HEAD"))
    assert status == "success"


def test_a_second_run_changes_nothing_and_a_third_moves_with_the_line(tmp_path: Path, forge: ForgeServer) -> None:
    request = opened(tmp_path, forge)
    edit(request, "8MiB  #", "4MiB  #")
    request.plan(report=REPORT)
    (first,) = forge.line_comments
    forge.requests.clear()
    request.plan(report=REPORT)
    assert [
        each.path for each in forge.seen("POST", "PATCH", "PUT", "DELETE") if "discussions" in each.path or "pulls" in each.path
    ] == []
    request.plan(report=report_of(too_low("orders", 7 * MIB)))
    assert list(forge.line_comments) == [first], "another value is written into the same comment"
    assert "7MiB" in forge.line_comments[first]["body"]
    edit(request, "  # who gets what\n", "  # who gets what\n  # and why\n")
    for comment in forge.line_comments.values():
        comment.update({"line": None} if "line" in comment else {"position": {**comment["position"], "new_line": None}})
    request.plan(report=REPORT)
    assert [line for _, line, _ in request.offered] == [10]
    request.comment(request.work.git("rev-parse", "HEAD"), "--state", "not-changed")
    assert forge.line_comments == {}


def test_a_value_of_a_profile_is_raised_to_the_largest_need_and_says_so(tmp_path: Path, github: hub.GitHubServer) -> None:
    profiles = """apiVersion: kafka-quotas/v1
kind: Repository
spec:
  profiles:
    small:
      quotas:
        producer_byte_rate: 8MiB
"""
    entries = "".join(f"    - {{match: {{user: {name}}}, profile: small}}\n" for name in ("orders", "billing"))
    request = opened(tmp_path, github, quotas=QUOTAS.partition("    - match")[0] + entries)
    request.work.git("checkout", "-q", "main")
    request.work.write("kafka-quotas.yaml", profiles)
    request.work.commit()
    request.work.git("checkout", "-q", "-B", "pull-request")
    request.live = {user(name): {"producer_byte_rate": 8 * MIB} for name in ("orders", "billing")}
    edit(request, "8MiB", "4MiB", "kafka-quotas.yaml")
    request.plan(report=report_of(too_low("orders", 6.25 * MIB), too_low("billing", 7 * MIB)))
    assert request.offered == [("kafka-quotas.yaml", 7, "        producer_byte_rate: 7MiB")]
    (comment,) = github.line_comments.values()
    assert (
        "2 entities take this value. 7 MiB/s, the largest that one of them needs (`billing` producer), throttles"
        in comment["body"]
    )


GONE_FROM_THE_MIDDLE = f"""{QUOTAS.partition("    # the second")[0]}    # gone soon
    - match:
        user: billing
      quotas:
        producer_byte_rate: 2MiB
        request_percentage: 50
    - {{match: {{user: last}}, quotas: {{request_percentage: 10}}}}
"""


@pytest.mark.parametrize("quotas", [QUOTAS, GONE_FROM_THE_MIDDLE], ids=["last", "middle"])
def test_a_deletion_that_removes_nothing_is_offered_as_an_entry_without_quotas(
    tmp_path: Path, forge: ForgeServer, quotas: str
) -> None:
    request = opened(tmp_path, forge, quotas=quotas)
    lines = quotas.split("\n")
    begin = next(n for n, line in enumerate(lines) if "# the second" in line or "# gone soon" in line)
    end = next((n for n, line in enumerate(lines) if "user: last" in line), len(lines) - 1)
    request.work.write("teams/a.yaml", "\n".join([*lines[:begin], *lines[end:]]))
    request.live = {**LIVE, user("last"): {"request_percentage": 10.0}}
    request.plan()
    (comment,) = forge.comments.values()
    seen = by_github(comment["body"])
    assert "Kafka quotas for prod: not removed" in seen.text()
    assert "To remove 2 kept limits, declare the entity with quotas: {}." in seen.text()
    assert [row[1] for row in seen.rows[1:]] == ["billing producer", "billing request"]
    assert ": stays (prune: never)" in seen.rows[1][2]
    ((path, line, text),) = request.offered
    assert path == "teams/a.yaml"
    assert text.split("\n")[1:] == ["    - match: {user: billing}", "      quotas: {}"]
    assert text.split("\n")[0] == lines[line - 1]
    request.commit_all()
    assert request.validated().code == 0
    plan = invoke("plan", ".", "--current", "../now.json", cwd=request.work.folder)
    assert "user=billing" in plan.out
    assert "1 entity that left the manifests" not in plan.out


def test_an_exception_is_offered_in_the_cluster_manifest_and_validation_asks_for_its_reason(
    tmp_path: Path, forge: ForgeServer
) -> None:
    request = opened(tmp_path, forge)
    edit(request, "8MiB  #", "1MiB  #")
    edit(request, "  prune: never\n", "  prune: confirm\n", "clusters/prod.yaml")
    request.plan()
    ((path, line, text),) = [row for row in request.offered if row[0] == "clusters/prod.yaml"]
    assert (path, line) == ("clusters/prod.yaml", 5)
    assert text.split("\n")[:4] == [
        "  prune: confirm", "  accept:", "    - guard: large-reduction", "      match: {user: orders, strict: true}",
    ]  # fmt: skip
    request.commit_all()
    refused = request.validated()
    assert refused.code == 1
    assert "'reason'" in refused.out + refused.err
    edit(request, "reason: # write why this change is safe", "reason: agreed with the team", "clusters/prod.yaml")
    assert request.validated().code == 0
    plan = invoke("plan", ".", "--current", "../now.json", "--fail-on-guard", cwd=request.work.folder)
    assert plan.code == 0, plan.out


def test_names_cannot_end_the_block_or_notify_anyone(tmp_path: Path, github: hub.GitHubServer) -> None:
    names = list(dict.fromkeys(["```suggestion\n@all\n```", "`", "a: b # c", *HOSTILE[:20]]))
    rows = "".join(f"    - match: {{user: {json.dumps(name)}}}\n      quotas: {{producer_byte_rate: 8MiB}}\n" for name in names)
    request = opened(tmp_path, github, quotas=QUOTAS.partition("    - match")[0] + rows)
    request.live = {user(name): {"producer_byte_rate": 8 * MIB} for name in names}
    edit(request, "8MiB", "4MiB")
    request.plan(report=report_of(*(too_low(name, 5 * MIB) for name in names)))
    assert len(request.offered) == 10
    request.commit_all()
    assert request.validated().code == 0
    assert (request.work.folder / "teams/a.yaml").read_text().count("5MiB") == 10


def test_what_the_pull_request_does_not_show_is_left_to_the_comment(tmp_path: Path, forge: ForgeServer) -> None:
    request = opened(tmp_path, forge)
    edit(request, "8MiB  #", "4MiB  #")
    forge.before = lambda each: forge.files.clear() if each.method == "POST" and "status" not in each.path else None
    done = request.plan(report=REPORT)
    assert (request.offered, done.err) == ([], "")
    ((_, comment),) = forge.comments.items()
    assert "safe from 6.25" in comment["body"]


def test_a_refused_suggestion_is_a_warning_and_a_stale_one_is_removed(tmp_path: Path, github: hub.GitHubServer) -> None:
    request = opened(tmp_path, github)
    edit(request, "8MiB  #", "4MiB  #")
    github.faults = [Fault(status=403, body=b'{"message": "no"}', method="POST")]
    done = request.plan(report=REPORT)
    assert "warning: Suggestions were not all posted: cannot suggest a change of line 9 of teams/a.yaml" in done.err
    assert len(github.comments) == 1
    request.plan(report=REPORT)
    (ours,) = github.line_comments.values()
    foreign = github.line_comment(ours["body"], "ann", {"path": "teams/a.yaml", "line": 9})
    request.plan()
    assert list(github.line_comments) == [foreign["id"]], "a marker pasted by another user is not ours"


def test_a_fork_gets_no_suggestions(tmp_path: Path, github: hub.GitHubServer) -> None:
    request = opened(tmp_path, github)
    edit(request, "8MiB  #", "4MiB  #")
    github.before = lambda _: github.pulls.__setitem__(0, pull_request(NUMBER, github.pulls[0]["head"]["sha"], label="x:change"))
    request.plan(report=REPORT)
    assert github.line_comments == {}


ODD = 'a"b`: {x}'
RATES = {user(name): {"producer_byte_rate": 1e6} for name in ("alice", "bob", ODD)}


def comment_on(folder: Path, *rates: tuple[str, int], accept: object = (), code: int = 0) -> str:
    """The comment on manifests with these rates, while the cluster has 1 MB/s for each user since years."""
    (folder / "quotas").mkdir(exist_ok=True)
    (folder / "quotas/cluster.yaml").write_text(cluster(prune="never", accept=accept))
    (folder / "quotas/all.yaml").write_text(quotas(*(({"user": name}, {"producer_byte_rate": rate}) for name, rate in rates)))
    (folder / "now.json").write_text(snapshot(RATES))
    done = invoke("plan", "quotas", "--current", "now.json", "--out", "json=plan.json", cwd=folder)
    assert done.code == code, done.err + done.out
    return invoke("comment", "plan.json", "--dry-run", cwd=folder).out if code == 0 else done.out + done.err


def copied(text: str) -> list[dict[str, Any]]:
    match = re.search(r"(`{3,})yaml\n(.*?)\n\1", text, re.DOTALL)
    assert match is not None, text
    return yaml.safe_load(match[2])["accept"]


def test_an_exception_to_copy_is_about_its_entities_has_a_day_to_come_and_needs_a_reason(tmp_path: Path) -> None:
    rows = copied(comment_on(tmp_path, ("alice", 1000), (ODD, 1000)))
    today = datetime.datetime.now(tz=datetime.UTC).date()
    assert [(row["guard"], row["match"]) for row in rows] == [
        ("large-reduction", {"user": name, "strict": True}) for name in ("alice", ODD)
    ] or [(row["guard"], row["match"]) for row in rows] == [
        ("large-reduction", {"user": name, "strict": True}) for name in (ODD, "alice")
    ]
    assert all(datetime.timedelta(12) < row["until"] - today <= datetime.timedelta(14) for row in rows)
    assert [row["reason"] for row in rows] == [None, None]
    as_it_is = [{**row, "until": str(row["until"])} for row in rows]
    assert "'reason'" in comment_on(tmp_path, ("alice", 1000), accept=as_it_is, code=1)
    written = [{**row, "reason": "agreed with the team."} for row in as_it_is]
    accepted = comment_on(tmp_path, ("alice", 1000), (ODD, 1000), accept=written)
    assert "2 accepted" in accepted or "1 accepted" in accepted
    assert "needs acceptance" not in accepted
    assert ".." not in accepted.partition("Accepted in the manifest")[2][:60]
    # Pasted, it opens the guard for no other client.
    other = comment_on(tmp_path, ("alice", 1000), ("bob", 1000), accept=written)
    assert "1 needs acceptance" in other
    assert [row["match"] for row in copied(other)] == [{"user": "bob", "strict": True}]
