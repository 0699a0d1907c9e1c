"""``tool verify-ref``: what stored a reference is a run of the default branch, or the reference is not trusted."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.builders import user
from tests.support.command import Done, invoke
from tests.support.forge import Forge
from tests.support.github_server import REPOSITORY, TOKEN, Fault, github_server
from tests.support.manifests import quotas, snapshot

REF = "refs/kafka-quotas/snapshot/prod"


@pytest.fixture
def forge(tmp_path: Path) -> Iterator[Forge]:
    """A repository whose snapshot a trusted run has stored."""
    with github_server() as github:
        made = Forge(tmp_path, github)
        made.work.write("teams/payments.yaml", quotas(({"user": "payments-api"}, {"producer_byte_rate": 1000})))
        made.push()
        made.store(REF, {"snapshot.json": snapshot({user("payments-api"): {"producer_byte_rate": 1000.0}})})
        yield made


def verify(forge: Forge, *options: str) -> Done:
    forge.work.git("fetch", "-q", "origin", "+refs/kafka-quotas/*:refs/kafka-quotas/*", "+refs/heads/*:refs/remotes/origin/*")
    environment = {"GITHUB_API_URL": forge.github.url, "GITHUB_REPOSITORY": REPOSITORY, "GITHUB_TOKEN": TOKEN}
    trusted = ("--branch", "refs/remotes/origin/main", "--workflow", "quotas-apply.yml")
    return invoke("tool", "verify-ref", REF, *trusted, *options, cwd=forge.work.folder, env=environment)


def test_what_a_run_of_the_default_branch_stored_is_trusted(forge: Forge) -> None:
    done = verify(forge, "--snapshot", "a.json")
    assert done.code == 0, done.err
    assert done.out.startswith("Run 1 of commit ")
    assert "payments-api" in (forge.work.folder / "a.json").read_text(encoding="utf-8")


OTHER_RUNS: dict[str, dict[str, Any]] = {
    "a run for a pull request": {"event": "pull_request_target"},
    "a run of a fork": {"head_repository": {"full_name": "fork/quotas"}},
    "another workflow of main": {"path": ".github/workflows/tests.yml"},
}
"""Runs that may leave any artifact, by what they have in place of a trusted one's."""


def forge_reference(forge: Forge, how: str) -> None:
    """What a user who may push, but not to main, makes of the snapshot: the proposal as if it were live."""
    ref, live = (
        "refs/kafka-quotas/snapshot/prod",
        {"snapshot.json": snapshot({user("payments-api"): {"producer_byte_rate": 1100.0}})},
    )
    genuine = forge.ref(ref)
    match how:
        case "no run":
            forge.work.git(
                "push", "-q", "-f", "origin", f"{forge.work.git('commit-tree', f'{genuine}^{{tree}}', '-m', 'x')}:{ref}"
            )
        case "the number of a true run":
            forge.store(ref, live, run=max(forge.github.runs))
        case "a number that no run has":
            forge.store(ref, live, run=999)
        case "the commit of another cluster":
            other = forge.store("refs/kafka-quotas/snapshot/staging", live)
            forge.work.git("push", "-q", "-f", "origin", f"{other}:{ref}")
        case "a run of a branch":
            forge.store(ref, live)
            forge.work.git("checkout", "-q", "-b", "mine")
            forge.github.runs[max(forge.github.runs)] |= {"head_sha": forge.work.commit(), "head_branch": "mine"}
            forge.work.git("push", "-q", "origin", "HEAD:refs/heads/mine")
            forge.work.git("checkout", "-q", "main")
        case "a commit of a pull request that was merged" | "a tag of the branch's name at such a commit":
            forge.store(ref, live)
            forge.work.write("teams/other.yaml", quotas(({"user": "other"}, {"producer_byte_rate": 5})))
            forge.work.git("checkout", "-q", "-b", "change")
            inner = forge.work.commit("it runs what its author wants")
            forge.work.write("teams/other.yaml", quotas(({"user": "other"}, {"producer_byte_rate": 6})))
            forge.work.commit("and looks harmless")
            forge.work.git("checkout", "-q", "main")
            forge.merge()
            branch = "change" if how.startswith("a commit") else "main"
            forge.github.runs[max(forge.github.runs)] |= {"head_sha": inner, "event": "push", "head_branch": branch}
        case "a proof that has expired":
            forge.store(ref, live)
            forge.github.expired |= forge.github.artifacts[max(forge.github.runs)]
        case _:
            forge.store(ref, live)
            forge.github.runs[max(forge.github.runs)] |= OTHER_RUNS[how]


@pytest.mark.parametrize(
    ("how", "reason"),
    [
        ("no run", "does not name the run that stored it"),
        ("the number of a true run", "did not store commit"),
        ("a number that no run has", "is not trusted: cannot read run 999"),
        ("the commit of another cluster", "was stored for 'refs/kafka-quotas/snapshot/staging'"),
        ("a run of a branch", "ran on 'mine', not on 'main'"),
        ("a commit of a pull request that was merged", "ran on 'change', not on 'main'"),
        ("a tag of the branch's name at such a commit", "which never was the newest commit of refs/remotes/origin/main"),
        ("another workflow of main", "ran '.github/workflows/tests.yml', which is not a workflow that stores references"),
        ("a proof that has expired", "proves that it stored the reference has expired. Run the workflow that stores it again"),
        ("a run for a pull request", "is not a run of this repository's own commits"),
        ("a run of a fork", "is not a run of this repository's own commits"),
    ],
)
def test_a_reference_that_no_run_of_the_default_branch_stored_is_not_trusted(forge: Forge, how: str, reason: str) -> None:
    forge_reference(forge, how)
    done = verify(forge, "--snapshot", "a.json")
    assert done.code == 3
    assert reason in done.err
    assert ("Another user may have pushed it" in done.err) == (how != "a proof that has expired")
    assert not (forge.work.folder / "a.json").exists()


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        (
            Fault(status=403, body=b'{"message": "Resource not accessible by integration"}'),
            "The token needs to read workflow runs (in a workflow: permissions: actions: read)",
        ),
        (Fault(status=401, body=b"{}"), "refuses the token"),
    ],
)
def test_a_question_that_github_does_not_answer_accuses_no_user(forge: Forge, fault: Fault, reason: str) -> None:
    forge.github.faults = [fault]
    done = verify(forge)
    assert (done.code, reason in done.err, "Another user" in done.err) == (1, True, False)
