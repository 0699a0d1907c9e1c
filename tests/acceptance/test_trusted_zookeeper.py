"""``--trusted-ref`` and a cluster in ZooKeeper: where it is, as whom, and whom one trusts there come from the reference."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.certificates import Authority
from tests.support.command import invoke
from tests.support.git_repository import GitRepository
from tests.support.manifests import cluster, quotas

TLS = "zookeeper.ssl.client.enable=true\nzookeeper.ssl.truststore.location={}/ca.pem\n"


@pytest.fixture
def merged(tmp_path: Path) -> GitRepository:
    """A cluster at a port where nobody listens, reached over TLS; a pull request is checked out."""
    made = GitRepository(tmp_path / "repository")
    made.write("prod.yaml", cluster(connection={"zookeeper": "127.0.0.1:1/kafka", "properties": "zk.properties"}))
    made.write("quotas.yaml", quotas(({"user": "alice"}, {"producer_byte_rate": 1000})))
    made.write("zk.properties", TLS.format(made.folder))
    made.write("ca.pem", Authority().pem)
    made.commit()
    made.branch()
    return made


def test_another_place_counts_only_after_merge(merged: GitRepository) -> None:
    merged.write("prod.yaml", cluster(connection={"zookeeper": "127.0.0.2:2/mine", "properties": "zk.properties"}))
    merged.commit()

    assert "ZooKeeper at 127.0.0.1:1 " in invoke("plan", "--trusted-ref", "main", cwd=merged.folder).err
    assert "ZooKeeper at 127.0.0.2:2 " in invoke("plan", cwd=merged.folder).err


def test_an_authority_cannot_be_swapped(merged: GitRepository) -> None:
    assert "cannot be reached" in invoke("plan", "--trusted-ref", "main", cwd=merged.folder).err
    merged.write("ca.pem", Authority().pem)
    merged.commit()

    swapped = invoke("plan", "--trusted-ref", "main", cwd=merged.folder)
    assert swapped.code == 3
    assert "differs from main. A change to it counts only after merge" in swapped.err
