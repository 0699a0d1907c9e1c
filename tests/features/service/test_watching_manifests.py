"""Manifests that change, break, vanish or are exchanged under a running service, also in a git checkout."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from reconciler.errors import GitError
from reconciler.workflows.drift import given_baseline
from reconciler.workflows.intent import load_intent
from tests.builders import user
from tests.fakes import FakeCluster
from tests.support.git_repository import GitRepository
from tests.support.manifests import cluster as cluster_document
from tests.support.manifests import repository
from tests.support.service_world import ServiceWorld, rates, write_manifests

ALICE = user("alice")

MIB = 1024.0 * 1024

RATE = "producer_byte_rate"


def test_while_the_manifests_are_invalid_nothing_is_read_or_written_and_the_last_state_stays(tmp_path: Path) -> None:
    folder = write_manifests(tmp_path, alice="1MiB")
    world = ServiceWorld(folder, FakeCluster())

    world.run(50)
    assert world.metric("manifests_valid") == 1
    world.cluster.write_from_outside(ALICE, {RATE: 5.0})
    (folder / "quotas.yaml").write_text(rates(alice="1MiB", bob="-3"))
    world.run(250)

    assert world.results == ["applied", "invalid", "invalid", "invalid"]
    assert (world.connects, world.cluster.entities) == (1, {ALICE: {RATE: 5.0}})
    assert world.metric("manifests_valid") == 0
    assert world.metric("drift_entities", class_="in-sync") == 1
    assert any("finding" in line and "quotas.yaml:" in line for line in world.log)

    (folder / "quotas.yaml").write_text(rates(alice="3MiB"))
    world.run(10)

    assert world.results[-1] == "applied"
    assert world.cluster.entities == {ALICE: {RATE: 3 * MIB}}


def _gone(folder: Path) -> None:
    shutil.rmtree(folder)


def _emptied(folder: Path) -> None:
    for file in folder.iterdir():
        file.unlink()


def _without_root(folder: Path) -> None:
    (folder / "kafka-quotas.yaml").unlink()


@pytest.mark.parametrize("vanish", [_gone, _emptied, _without_root])
def test_manifests_that_vanish_are_told_and_never_read_as_an_order_to_remove(
    tmp_path: Path, vanish: Callable[[Path], None]
) -> None:
    folder = write_manifests(tmp_path / "quotas", prune="always", alice="1MiB")
    (folder / "kafka-quotas.yaml").write_text(repository())
    world = ServiceWorld(folder, FakeCluster({ALICE: {RATE: MIB}}))

    world.run(250, at={50: lambda: vanish(folder)})

    assert world.results == ["in_sync", "vanished", "vanished"]
    assert world.cluster.entities == {ALICE: {RATE: MIB}}
    assert (world.cluster.writes, world.connects) == (0, 1)
    assert world.metric("manifests_valid") == 0

    write_manifests(folder, prune="always", alice="20MiB")
    (folder / "kafka-quotas.yaml").write_text(repository())
    world.run(20)

    assert world.cluster.entities == {ALICE: {RATE: 20 * MIB}}


def test_a_path_that_is_emptied_is_told_also_where_its_repository_has_other_manifests(tmp_path: Path) -> None:
    (tmp_path / "kafka-quotas.yaml").write_text(repository())
    (tmp_path / "other.yaml").write_text(rates(bob="1MiB"))
    folder = write_manifests(tmp_path / "team", prune="always", alice="1MiB")
    world = ServiceWorld(folder, FakeCluster({ALICE: {RATE: MIB}}))

    world.run(50, at={20: lambda: _emptied(folder)})

    assert world.results[-1] == "vanished"
    assert world.cluster.writes == 0


def test_one_of_two_paths_that_is_emptied_is_told_too(tmp_path: Path) -> None:
    one, two = write_manifests(tmp_path / "one", prune="always", alice="1MiB"), tmp_path / "two"
    two.mkdir()
    (two / "bob.yaml").write_text(rates(bob="1MiB"))
    cluster = FakeCluster({ALICE: {RATE: MIB}, user("bob"): {RATE: MIB}})
    world = ServiceWorld(one, cluster, paths=(str(one), str(two)))

    world.run(50, at={20: (two / "bob.yaml").unlink})

    assert world.results == ["in_sync", "vanished"]
    assert cluster.writes == 0


def test_the_exchange_of_a_config_map_is_seen(tmp_path: Path) -> None:
    """As the kubelet does it: a hidden folder with a time in its name, a link ..data to it, and links to the files below that."""
    mount = tmp_path / "manifests"
    mount.mkdir()

    def publish(number: int, rate: str) -> None:
        version = mount / f"..2026_11_21_{number}"
        write_manifests(version, alice=rate)
        new = mount / "..data_tmp"
        new.symlink_to(version.name)
        new.replace(mount / "..data")

    publish(1, "1MiB")
    for name in ("cluster.yaml", "quotas.yaml"):
        (mount / name).symlink_to(f"..data/{name}")
    world = ServiceWorld(mount, FakeCluster())

    world.run(20, at={7: lambda: publish(2, "20MiB")})

    assert world.results == ["applied", "applied"]
    assert world.cluster.entities == {ALICE: {RATE: 20 * MIB}}


def test_manifests_that_change_while_they_are_read_are_not_applied_but_read_again(tmp_path: Path) -> None:
    folder = write_manifests(tmp_path, alice="1MiB")
    reads = 0

    def load():
        nonlocal reads
        reads += 1
        intent = load_intent([str(folder)], cluster=None)
        if reads == 1:
            (folder / "quotas.yaml").write_text(rates(alice="20MiB"))
        return (intent,)

    world = ServiceWorld(folder, FakeCluster(), load=load)

    world.run(20)

    assert world.results == ["applied"]
    assert [a.ops for a in world.cluster.took_effect] == [{RATE: 20 * MIB}]


def test_a_file_that_is_no_manifest_any_more_does_not_hide_the_others(tmp_path: Path) -> None:
    folder = write_manifests(tmp_path, prune="always", alice="1MiB")
    world = ServiceWorld(folder, FakeCluster({ALICE: {RATE: MIB}}))

    world.run(50, at={20: (folder / "quotas.yaml").unlink})

    assert world.results == ["in_sync", "refused"]
    assert world.cluster.entities == {ALICE: {RATE: MIB}}
    assert world.metric("guard_tripped", guard="empty-desired-state") == 1


def test_a_cluster_document_that_goes_takes_nothing_with_it(tmp_path: Path) -> None:
    folder = write_manifests(tmp_path, prune="always", alice="1MiB")
    world = ServiceWorld(folder, FakeCluster({ALICE: {RATE: MIB}, user("bob"): {RATE: 1.0}}))
    (folder / "cluster.yaml").write_text(cluster_document(prune="never"))

    world.run(50, at={20: (folder / "cluster.yaml").unlink})

    assert user("bob") in world.cluster.entities


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
