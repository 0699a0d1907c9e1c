"""A service over a git checkout: the baseline that tells drift apart, and the reference whose guards hold."""

from __future__ import annotations

from pathlib import Path

import pytest

from reconciler.errors import GitError
from reconciler.workflows.drift import given_baseline
from reconciler.workflows.intent import load_intent
from reconciler.workflows.trusted import References
from tests.builders import user
from tests.fakes import FakeCluster
from tests.support.git_repository import GitRepository
from tests.support.manifests import cluster as cluster_document
from tests.support.service_world import ServiceWorld, rates

MIB = 1024.0 * 1024
RATE = "producer_byte_rate"


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> GitRepository:
    repository = GitRepository(tmp_path / "checkout")
    monkeypatch.chdir(repository.folder)
    repository.write("cluster.yaml", cluster_document(prune="never"))
    repository.write("quotas.yaml", rates(alice="1MiB"))
    repository.commit()
    return repository


def test_with_a_baseline_what_was_merged_is_told_from_what_was_changed_by_hand(checkout: GitRepository) -> None:
    checkout.branch()
    checkout.write("more.yaml", rates(bob="1MiB"))
    path = str(checkout.folder)
    cluster = FakeCluster({user("alice"): {RATE: 5.0}})
    world = ServiceWorld(checkout.folder, cluster, applies=False, given=lambda: given_baseline("main", [path]))

    world.run(5)

    assert world.metric("drift_entities", class_="changed") == 1
    assert world.metric("drift_entities", class_="unapplied") == 1
    assert world.metric("drift_entities", class_="differs") == 0


def test_a_baseline_that_cannot_be_read_fails_the_pass_and_nothing_is_written(checkout: GitRepository) -> None:
    path = str(checkout.folder)
    world = ServiceWorld(checkout.folder, FakeCluster(), given=lambda: given_baseline("no-such-branch", [path]))

    world.run(3)

    assert (world.results, world.outcomes[0].reason) == (["failed"], GitError.failure_reason)
    assert (world.connects, world.cluster.writes) == (0, 0)


def test_with_a_trusted_reference_its_cluster_document_holds(checkout: GitRepository) -> None:
    checkout.branch()
    checkout.write("cluster.yaml", cluster_document(prune="always"))
    path = str(checkout.folder)
    cluster = FakeCluster({user("alice"): {RATE: MIB}, user("mallory"): {RATE: 5.0}})
    trusting = References(trusted="main")
    world = ServiceWorld(checkout.folder, cluster, load=lambda: load_intent([path], cluster=None, references=trusting))

    world.run(3)

    assert world.results == ["in_sync"]
    assert user("mallory") in cluster.entities


def test_a_checkout_of_another_commit_under_the_running_service_is_applied(checkout: GitRepository) -> None:
    checkout.branch()
    checkout.write("quotas.yaml", rates(alice="20MiB"))
    checkout.commit()
    checkout.git("checkout", "-q", "main")
    world = ServiceWorld(checkout.folder, FakeCluster())

    world.run(30, at={12: lambda: checkout.git("checkout", "-q", "pull-request")})

    assert world.results == ["applied", "applied"]
    assert world.cluster.entities == {user("alice"): {RATE: 20 * MIB}}
