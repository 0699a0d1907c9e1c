"""The reusable workflows where no cluster can be reached: pull requests of strangers, broken ones, and those of many clusters."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.builders import user
from tests.support.forge import Forge
from tests.support.github_server import BOT, REPOSITORY, Fault, github_server
from tests.support.manifests import cluster, quotas, snapshot
from tests.support.markdown_views import by_github
from tests.support.workflow_runner import JobRun

NOWHERE = {"bootstrapServers": ["127.0.0.1:1"]}


def declares(rate: int, **spec: Any) -> str:
    return quotas(({"user": "payments-api"}, {"producer_byte_rate": rate}), **spec)


@pytest.fixture
def forge(tmp_path: Path) -> Iterator[Forge]:
    """One guarded cluster that no machine here can reach, and its snapshot."""
    with github_server() as github:
        made = Forge(tmp_path, github)
        made.work.write("clusters/prod.yaml", cluster("prod", connection=NOWHERE, protected=[{"user": "payments-api"}]))
        made.work.write("teams/payments.yaml", declares(1000))
        made.push()
        publish(made, "prod", 1000.0)
        yield made


def publish(forge: Forge, slug: str, rate: float) -> None:
    """What snapshot.yml does."""
    forge.store(
        f"refs/kafka-quotas/snapshot/{slug}", {"snapshot.json": snapshot({user("payments-api"): {"producer_byte_rate": rate}})}
    )


def only(runs: list[JobRun]) -> JobRun:
    (one,) = runs
    return one


def comment(forge: Forge) -> str:
    (posted,) = forge.github.comments.values()
    assert posted["user"]["login"] == BOT
    return by_github(str(posted["body"])).text()


def links_of(forge: Forge) -> list[str]:
    """Where the comment links to in the repository: ``blob/COMMIT/PATH#LINE``."""
    (posted,) = forge.github.comments.values()
    targets = [value for _, key, value in by_github(str(posted["body"])).attributes if key == "href" and value]
    return [target.partition(f"/{REPOSITORY}/")[2] for target in targets if "/blob/" in target]


def test_the_annotation_of_a_guard_is_at_the_proposed_line_and_no_error_of_a_green_job(forge: Forge) -> None:
    forge.work.write("teams/payments.yaml", declares(1100))
    ran = only(forge.on_pull_request(*forge.propose())["plan"])
    assert ran.result == "success"
    assert not [one for one in ran.step("plan").annotations if one.startswith("::error")]
    (guard,) = [one for one in ran.step("plan").annotations if "protected-entity" in one]
    assert guard.startswith("::warning file=teams/payments.yaml,line=4,")
    assert any(link.startswith("blob/main/clusters/prod.yaml#L") for link in links_of(forge))


def test_the_trusted_run_comments_with_the_base_branch_s_settings(forge: Forge) -> None:
    forge.work.write("teams/payments.yaml", declares(1100))
    forge.work.write("clusters/prod.yaml", cluster("prod", connection={"bootstrapServers": ["evil.example:9092"]}))
    forge.work.write("clusters/mine.yaml", cluster("mine", connection={"bootstrapServers": ["other.example:9092"]}))
    head, _ = forge.propose(label="fork:change")
    ran = forge.on_fork_run(head)
    assert only(ran["comment"]).result == "success", only(ran["comment"]).log
    assert ran["clusters"][0].outputs["matrix"] == '[{"cluster":"prod","slug":"prod","traffic":""}]'
    text = comment(forge)
    assert f"commit {head[:7]}" in text
    assert "payments-api" in text
    # The change is linked in the commit of the fork, and the guard in the base branch. Both files are there.
    links = links_of(forge)
    assert f"blob/{head}/teams/payments.yaml#L4" in links
    assert any(link.startswith("blob/main/clusters/prod.yaml#L") for link in links)
    for link in links:
        _, commit, path = link.partition("#")[0].split("/", 2)
        assert forge.work.git("-C", str(forge.remote), "cat-file", "-t", f"{commit}:{path}") == "blob"
    # The protection that the fork takes away still holds, and its connection is not the one that counts.
    assert "protected-entity" in text
    assert "connection of the Cluster manifest prod differs" in text


def test_nothing_of_a_fork_is_run_and_no_file_of_this_machine_is_read(forge: Forge, tmp_path: Path) -> None:
    secret, proof = tmp_path / "secret.yaml", tmp_path / "it-ran"
    secret.write_text("password: hunter2-hunter2\n")
    forge.work.write("teams/payments.yaml", declares(1100))
    (forge.work.folder / "teams/link.yaml").symlink_to(secret)
    forge.work.write(".gitattributes", "*.yaml filter=evil merge=evil diff=evil\n")
    forge.work.write(".githooks/post-checkout", f"#!/bin/sh\ntouch {proof}\n")
    forge.work.write(".gitmodules", '[submodule "x"]\n\tpath = x\n\turl = ext::sh -c "touch it-ran"\n')
    forge.work.write("kafka-quotas", f"#!/bin/sh\ntouch {proof}\n")
    (forge.work.folder / "kafka-quotas").chmod(0o755)
    forge.work.write("json.py", f"open({str(proof)!r}, 'w')\n")
    forge.work.write("reconciler/__init__.py", f"open({str(proof)!r}, 'w')\n")
    head, _ = forge.propose(label="fork:change")
    ran = forge.on_fork_run(head)
    text = comment(forge)
    assert "cannot be planned" in text
    assert "teams/link.yaml" in text
    assert not proof.exists()
    logs = "".join(one.log + one.summary for runs in ran.values() for one in runs) + text
    assert "hunter2" not in logs


def forged(forge: Forge) -> None:
    """What a user who may push, but not to main, makes of the snapshot: the proposal as if it were live, in a run of a fork."""
    live = {"snapshot.json": snapshot({user("payments-api"): {"producer_byte_rate": 1100.0}})}
    forge.store("refs/kafka-quotas/snapshot/prod", live)
    forge.github.runs[max(forge.github.runs)] |= {"head_repository": {"full_name": "fork/quotas"}}


def test_a_snapshot_that_no_run_of_the_default_branch_stored_is_never_planned_with(forge: Forge) -> None:
    forged(forge)
    forge.work.write("teams/payments.yaml", declares(1100))
    head, merge = forge.propose()

    ran = only(forge.on_pull_request(head, merge)["plan"])
    assert (ran.result, ran.step("plan").outcome) == ("failure", "skipped")
    assert "is not a run of this repository's own commits" in ran.log
    assert "::error title=snapshot not trusted::" in ran.log
    assert "No changes" not in ran.log + ran.summary
    forge.propose(label="fork:change")
    trusted = only(forge.on_fork_run(head)["comment"])
    assert (trusted.result, trusted.step("plan").outcome) == ("failure", "skipped")
    assert forge.github.comments == {}


def test_a_plan_that_cannot_be_made_takes_the_place_of_an_older_one(forge: Forge) -> None:
    forge.work.write("teams/payments.yaml", declares(1100))
    assert only(forge.on_pull_request(*forge.propose())["plan"]).result == "success"
    assert "Kafka quotas for prod: needs acceptance" in comment(forge)
    forged(forge)
    forge.work.git("checkout", "-q", "change")
    forge.work.write("teams/payments.yaml", declares(1200))
    head, merge = forge.propose()
    ran = only(forge.on_pull_request(head, merge)["plan"])
    assert ran.result == "failure"
    text = comment(forge)
    assert "Kafka quotas for prod: no plan" in text, ran.log
    assert "No plan of this commit could be made" in text
    assert head[:7] in text
    (posted,) = forge.github.comments.values()
    assert "<summary>The plan of an earlier commit</summary>" in str(posted["body"])


def test_a_fork_that_can_no_longer_be_merged_leaves_no_older_plan_standing(forge: Forge) -> None:
    forge.work.write("teams/payments.yaml", declares(1100))
    head, _ = forge.propose(label="fork:change")
    assert only(forge.on_fork_run(head)["comment"]).result == "success"
    forge.work.write("teams/payments.yaml", declares(1200))
    forge.push()
    ran = forge.on_fork_run(head)["clusters"][0]
    assert (ran.result, "conflict" in ran.log.lower()) == ("failure", True)
    assert "Kafka quotas for prod: no plan" in comment(forge), ran.log


def test_a_question_that_github_does_not_answer_accuses_no_user(forge: Forge) -> None:
    forge.work.write("teams/payments.yaml", declares(1100))
    head, merge = forge.propose()
    forge.github.faults = [Fault(status=403, headers={"retry-after": "4000"})]
    ran = only(forge.on_pull_request(head, merge)["plan"])
    assert (ran.result, ran.step("plan").outcome) == ("failure", "skipped")
    assert "::error title=snapshot not verified::kafka-quotas could not ask GitHub" in ran.log
    assert "the rate limit is reached" in ran.log
    assert "Another user" not in ran.log
