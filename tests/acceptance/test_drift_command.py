"""``drift`` as a user runs it, on snapshots: baselines of both kinds, exit codes, and what cannot be used."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.builders import user
from tests.support.command import Done, invoke
from tests.support.git_repository import GitRepository
from tests.support.manifests import cluster, quotas, snapshot
from tests.support.schemas import valid


def declares(**rates: int) -> str:
    return quotas(*(({"user": name}, {"producer_byte_rate": rate}) for name, rate in rates.items()))


@pytest.fixture
def repo(tmp_path: Path) -> GitRepository:
    """Tagged ``applied`` with four entities; since then one value changed in git, and two things happened on the cluster."""
    made = GitRepository(tmp_path / "repository")
    made.write("cluster.yaml", cluster(prune="never"))
    made.write("quotas.yaml", declares(merged=10, edited=20, removed=30, same=40))
    made.commit()
    made.git("tag", "applied")
    made.write("quotas.yaml", declares(merged=11, edited=20, removed=30, same=40))
    made.commit()
    live = {"merged": 10.0, "edited": 21.0, "same": 40.0, "stranger": 1.0}
    (tmp_path / "live.json").write_text(snapshot({user(name): {"producer_byte_rate": rate} for name, rate in live.items()}))
    return made


def drift(repo: GitRepository, *arguments: str) -> Done:
    return invoke("drift", "--current", "../live.json", "--detailed-exitcode", *arguments, cwd=repo.folder)


def classes(done: Done) -> dict[str, str]:
    document = done.json()
    valid(document, "drift")
    return {one["entity"]["user"]: one["class"] for one in document["entities"]}


def test_a_reference_tells_merged_from_changed_by_hand_and_touches_nothing(repo: GitRepository) -> None:
    before = repo.state()
    done = drift(repo, "--baseline", "applied", "--format", "json")
    assert done.code == 2, done.err
    assert classes(done) == {"merged": "unapplied", "edited": "changed", "removed": "missing", "stranger": "unmanaged"}
    assert done.json()["baseline"] == {"kind": "ref", "name": "applied", "commit": repo.git("rev-parse", "applied")}
    assert repo.state() == before
    assert invoke("drift", "--current", "../live.json", "--baseline", "applied", cwd=repo.folder).code == 0


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("--baseline", "nowhere"), 1, "git knows no commit 'nowhere'"),
        (("--baseline", "quotas.yaml"), 3, "quotas.yaml is not a baseline"),
        (("--baseline", ""), 64, "is not a git reference"),
        (("--bootstrap-server", "127.0.0.1:1"), 64, "exclude each other"),
        (("--all-clusters",), 64, "--all-clusters and --current exclude each other"),
    ],
)
def test_what_cannot_be_used_is_one_clear_sentence(
    repo: GitRepository, arguments: tuple[str, ...], code: int, words: str
) -> None:
    done = drift(repo, *arguments)
    assert (done.code, words in done.err) == (code, True), done.err
    assert done.out == ""
