"""``drift --propose``: one branch and pull request, kept true, and left alone where a person has a hand in it."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from tests.builders import user
from tests.support import gitlab_server as gitlab
from tests.support import manifests
from tests.support.command import Done, invoke
from tests.support.forge import Forge
from tests.support.github_server import REPOSITORY, TOKEN, Fault, GitHubServer, github_server
from tests.support.markdown_views import by_github

MIB = 1024 * 1024
RECORDING = Path(__file__).parents[2] / "traffic" / "recordings" / "kafka-4.3.1" / "kafka-request.log.gz"
ALICE, BOB = user("alice"), user("bob")
BRANCH = "refs/heads/kafka-quotas/drift/prod"
QUOTAS = """\
apiVersion: kafka-quotas/v1
kind: ClientQuotas
metadata: {name: team}
spec:
  quotas:
    - match: {user: alice}
      quotas: {producer_byte_rate: 10MiB} # agreed
"""


class Repository(Forge):
    """The commit of main is the baseline, and a snapshot is in place of the cluster."""

    def __init__(self, folder: Path, github: GitHubServer) -> None:
        super().__init__(folder, github)
        self.work.write("cluster.yaml", manifests.cluster())
        self.work.write("quotas.yaml", QUOTAS)
        github.pulls = []
        self.push()
        self.work.git("tag", "applied")
        self.live = {ALICE: {"producer_byte_rate": 7.0 * MIB}}

    def drift(self, mode: str = "adopt", *, token: str = TOKEN, variables: Mapping[str, str] | None = None) -> Done:
        snapshot = self.folder / "live.json"
        snapshot.write_text(manifests.snapshot(self.live))
        github = {"GITHUB_REPOSITORY": REPOSITORY, "GITHUB_API_URL": self.github.url, "GITHUB_TOKEN": token}
        command = ("drift", ".", "--current", str(snapshot), "--baseline", "applied", "--propose", mode)
        return invoke(*command, cwd=self.work.folder, env=variables or github)

    @property
    def state(self) -> list[str]:
        return [str(pull["state"]) for pull in self.github.pulls]


@pytest.fixture
def repository(tmp_path: Path) -> Iterator[Repository]:
    with github_server() as github:
        yield Repository(tmp_path, github)


def test_a_value_that_was_changed_on_the_cluster_comes_back_as_a_pull_request(repository: Repository) -> None:
    before = repository.work.state()
    done = repository.drift()
    assert (done.code, "Pull request #100 proposes to adopt the drift." in done.err) == (0, True), done.err
    assert "+      quotas: {producer_byte_rate: 7MiB} # agreed" in repository.changes(BRANCH)
    (pull,) = repository.github.pulls
    assert (pull["title"], pull["head"]["label"]) == ("Adopt drift of prod: 1 entity", "acme:kafka-quotas/drift/prod")
    assert "**Merge to keep the values of the cluster.**" in pull["body"]
    assert "10\N{NO-BREAK SPACE}MiB/s" in pull["body"]
    assert "      - {user: alice}" in pull["body"]
    status, _, index = repository.work.state()
    assert (status, index) == (before[0], before[2])
    assert TOKEN not in done.err


COUNTS = {"applied": 1, "failed": 0, "unknown": 0, "not_attempted": 0}
CLUSTER = {"name": "prod", "id": "c1", "kafka_version": "4.3"}


def audited(command: str, ended: str, commit: str | None, **more: object) -> str:
    """A line of the audit file."""
    run = {"format_version": "1.0", "started": ended, "ended": ended, "command": command, "cluster": CLUSTER, "result": "done"}
    ending: dict[str, object] = {
        "failure_reason": None,
        "verified": True,
        "validate_only": False,
        "summary": COUNTS,
        "digest": None,
    }
    return json.dumps(
        run | ending | {"accepted": [], "principal": None, "os_user": "ci", "source": {"commit": commit, "dirty": False}} | more
    )


def keep_audit(repository: Repository, *lines: str) -> None:
    """As apply.yml keeps them."""
    git = repository.work
    (repository.folder / "lines").write_text("".join(f"{each}\n" for each in lines))
    blob = git.git("hash-object", "-w", str(repository.folder / "lines"))
    git.git("read-tree", "--empty")
    git.git("update-index", "--add", "--cacheinfo", f"100644,{blob},audit.jsonl")
    commit = git.git("commit-tree", git.git("write-tree"), "-m", "Runs")
    git.git("reset", "-q")
    git.git("update-ref", "refs/kafka-quotas/audit/prod", commit)


def test_the_request_names_since_when_the_cluster_differs_and_who_can_have_changed_it(repository: Repository) -> None:
    commit = repository.work.git("rev-parse", "applied")
    keep_audit(
        repository,
        audited("apply", "2026-01-01T09:00:00Z", commit, result="nothing_to_do"),
        audited("alter", "2026-01-02T10:00:00Z", None, os_user="mallory`|<b>"),
        audited("alter", "2026-01-02T10:30:00Z", None, os_user="trent", entities=[{"user": "alice"}]),
        audited("alter", "2026-01-02T10:45:00Z", None, os_user="peggy", entities=[{"user": "somebody-else"}]),
        audited("alter", "2026-01-02T11:00:00Z", None, cluster={**CLUSTER, "id": "c2"}),
        "not a line",
    )
    assert repository.drift().code == 0
    text = by_github(repository.github.pulls[0]["body"]).text()
    assert "At 2026-01-01 09:00 UTC the cluster had the declared values" in text
    assert "alter of mallory`|<b> until 2026-01-02 10:00 UTC: 1 entity written, a run outside of CI" in text
    assert "alter of trent until 2026-01-02 10:30 UTC: user=alice written, a run outside of CI" in text
    assert ("peggy" in text, "11:00" in text) == (False, False)


def test_a_second_run_changes_nothing_and_other_drift_updates_the_same_one(repository: Repository) -> None:
    repository.drift()
    first = repository.ref(BRANCH)
    again = repository.drift()
    assert "Pull request #100 proposes this already." in again.err
    assert repository.ref(BRANCH) == first
    repository.live = {ALICE: {"producer_byte_rate": 6.0 * MIB}, BOB: {"producer_byte_rate": 1.0 * MIB}}
    assert "Pull request #100 is updated." in repository.drift().err
    assert "+      quotas: {producer_byte_rate: 6MiB} # agreed" in repository.changes(BRANCH)
    assert "found-on-prod-users.yaml" in repository.changes(BRANCH)
    assert [pull["title"] for pull in repository.github.pulls] == ["Adopt drift of prod: 2 entities"]


def test_reverting_is_a_commit_that_changes_no_file(repository: Repository) -> None:
    repository.drift("revert")
    assert repository.changes(BRANCH) == ""
    assert repository.ref(BRANCH) != repository.ref("refs/heads/main")
    (pull,) = repository.github.pulls
    assert "**Merge to restore the declared values.**" in pull["body"]


def test_a_drift_that_is_gone_closes_the_request_and_removes_the_branch(repository: Repository) -> None:
    repository.drift()
    repository.live = {ALICE: {"producer_byte_rate": 10.0 * MIB}}
    assert "The drift is gone, so pull request #100 is closed." in repository.drift().err
    assert (repository.ref(BRANCH), repository.state) == ("", ["closed"])
    assert repository.drift().err == ""


def test_a_branch_that_a_person_pushed_to_is_left_alone(repository: Repository) -> None:
    repository.drift()
    repository.work.git("fetch", "-q", "origin", BRANCH)
    repository.work.git("checkout", "-q", "FETCH_HEAD")
    repository.work.write("quotas.yaml", QUOTAS.replace("10MiB", "8MiB"))
    repository.work.git("commit", "-q", "-a", "--amend", "-m", "Another value")
    repository.work.git("push", "-q", "-f", "origin", f"HEAD:{BRANCH}")
    repository.work.git("checkout", "-q", "main")
    theirs = repository.ref(BRANCH)
    for mode in ("adopt", "revert"):
        assert "is left alone: Somebody pushed to it" in repository.drift(mode).err.replace(
            "kafka-quotas pushed", "Somebody pushed"
        )
    repository.live = {ALICE: {"producer_byte_rate": 10.0 * MIB}}
    repository.drift()
    assert (repository.ref(BRANCH), repository.state) == (theirs, ["open"])


def test_a_request_that_a_person_closed_is_not_opened_again_for_the_same_drift(repository: Repository) -> None:
    repository.drift()
    repository.github.pulls[0]["state"] = "closed"
    assert "pull request #100 with this drift was closed" in repository.drift().err
    repository.live = {ALICE: {"producer_byte_rate": 6.0 * MIB}}
    repository.drift()
    assert sorted(repository.state) == ["closed", "open"]


def test_a_merged_change_that_waits_for_its_apply_is_no_drift_to_propose(repository: Repository) -> None:
    repository.live = {ALICE: {"producer_byte_rate": 10.0 * MIB}}
    repository.work.write("quotas.yaml", QUOTAS.replace("10MiB", "11MiB"))
    repository.push()
    assert repository.drift().code == 0
    assert repository.github.pulls == []


@pytest.mark.parametrize("token", ["", "not-this-one"])
def test_without_a_token_that_counts_nothing_is_pushed(repository: Repository, token: str) -> None:
    done = repository.drift(token=token)
    assert done.code in (1, 64)
    assert "token" in done.err
    assert repository.ref(BRANCH) == ""


def test_a_commit_that_is_not_the_newest_proposes_nothing(repository: Repository) -> None:
    repository.work.write("README.md", "words")
    repository.push()
    repository.work.git("checkout", "-q", "HEAD^")
    assert "this commit is not the newest of main" in repository.drift().err
    assert repository.ref(BRANCH) == ""


def test_a_forge_that_refuses_is_an_error_after_the_drift_was_printed(repository: Repository) -> None:
    repository.github.faults = [Fault(status=403, body=b'{"message": "no"}', method="POST")]
    done = repository.drift()
    assert (done.code, "1 changed" in done.out) == (1, True)
    assert "cannot open a pull request from kafka-quotas/drift/prod" in done.err
    # The next run finds its own branch, and opens the request.
    assert "Pull request #100 proposes to adopt the drift." in repository.drift().err


def test_gitlab_has_the_same_with_a_merge_request(repository: Repository) -> None:
    with gitlab.gitlab_server() as server:
        server.pulls = []
        variables = {
            "GITLAB_CI": "true",
            "CI_API_V4_URL": server.url,
            "CI_PROJECT_ID": gitlab.PROJECT_ID,
            "GITLAB_TOKEN": gitlab.TOKEN,
        }
        assert "Merge request !100 proposes to adopt the drift." in repository.drift(variables=variables).err
        (merge,) = server.pulls
        assert (merge["source_branch"], merge["target_branch"]) == ("kafka-quotas/drift/prod", "main")
        assert "Merge request !100 proposes this already." in repository.drift(variables=variables).err
        repository.live = {ALICE: {"producer_byte_rate": 6.0 * MIB}}
        assert "Merge request !100 is updated." in repository.drift("revert", variables=variables).err
        assert merge["title"] == "Revert drift of prod: 1 entity"
        repository.live = {ALICE: {"producer_byte_rate": 10.0 * MIB}}
        assert "The drift is gone, so merge request !100 is closed." in repository.drift(variables=variables).err
        assert (merge["state"], repository.ref(BRANCH)) == ("closed", "")


def replayed(repository: Repository) -> str:
    """The text of a pull request about a limit that the cluster has far above the declared one."""
    repository.work.write("cluster.yaml", manifests.cluster(traffic={"source": "history"}))
    repository.work.write("quotas.yaml", QUOTAS.replace("10MiB", "10KiB"))
    repository.push()
    repository.work.git("tag", "-f", "applied")
    repository.live = {ALICE: {"producer_byte_rate": 1024.0 * MIB}}
    done = repository.drift("revert")
    assert done.code == 0, done.err
    return str(repository.github.pulls[0]["body"])


def test_the_declared_values_are_replayed_against_the_traffic_of_the_cluster_manifest(repository: Repository) -> None:
    (repository.work.folder / "history").mkdir()
    (repository.work.folder / "history" / "kafka-request.log").write_bytes(gzip.decompress(RECORDING.read_bytes()))
    body = replayed(repository)
    assert "<summary>What recorded traffic shows" in body
    assert "throttled" in body.partition("What recorded traffic shows")[2]


def test_a_request_is_closed_when_nothing_of_the_drift_can_be_adopted_any_more(repository: Repository) -> None:
    repository.drift()
    repository.work.write("quotas.yaml", QUOTAS.replace("{user: alice}", "{user: [alice, bob]}"))
    repository.push()
    repository.work.git("tag", "-f", "applied")
    repository.live = {ALICE: {"producer_byte_rate": 7.0 * MIB}, BOB: {"producer_byte_rate": 10.0 * MIB}}
    done = repository.drift()
    assert "user=alice is not adopted: the entry names other entities, too." in done.err
    assert "Nothing can be proposed, so pull request #100 is closed." in done.err
    assert (repository.state, repository.ref(BRANCH)) == (["closed"], "")
