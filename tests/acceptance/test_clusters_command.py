"""``kafka-quotas tool clusters``: which clusters a change is about, by what it means and not by which files it touches."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from reconciler.model.plan import slug_of
from tests.support.command import Done, invoke
from tests.support.git_repository import GitRepository
from tests.support.hostile_names import HOSTILE
from tests.support.manifests import cluster, quotas
from tests.support.schemas import valid

ALICE = ({"user": "alice"}, {"producer_byte_rate": 1024})


@pytest.fixture
def repo(tmp_path: Path) -> GitRepository:
    made = GitRepository(tmp_path / "repository")
    for name in ("a", "b", "c"):
        made.write(f"clusters/{name}.yaml", cluster(name))
    made.write("quotas.yaml", quotas(ALICE, clusters=["a", "b"]))
    made.commit()
    made.git("tag", "before")
    return made


def clusters(repo: GitRepository, *arguments: str) -> Done:
    return invoke("tool", "clusters", *arguments, cwd=repo.folder)


def changes(repo: GitRepository, *arguments: str) -> dict[str, tuple[str, list[str]]]:
    done = clusters(repo, "--format", "json", *arguments)
    assert done.code == 0, done.err
    valid(done.json(), "clusters")
    assert [one["name"] for one in done.json()["clusters"]] == sorted(one["name"] for one in done.json()["clusters"])
    return {one["name"]: (one["change"], one["reasons"]) for one in done.json()["clusters"]}


def test_what_means_the_same_is_no_change(repo: GitRepository) -> None:
    repo.write(
        "elsewhere/moved.yaml", f"# words\n{quotas(({'user': 'alice'}, {'producer_byte_rate': '1KiB'}), clusters=['b', 'a'])}"
    )
    repo.git("rm", "-q", "quotas.yaml")
    repo.commit()
    assert changes(repo, "--changed-since", "before") == {name: ("same", []) for name in "abc"}


def test_a_quota_a_setting_a_new_and_a_removed_cluster_are_told_apart(repo: GitRepository) -> None:
    repo.write("quotas.yaml", quotas(({"user": "alice"}, {"producer_byte_rate": 5}), clusters=["a"]))
    repo.write("clusters/c.yaml", cluster("c", prune="always"))
    repo.write("clusters/d.yaml", cluster("d"))
    repo.git("rm", "-q", "clusters/b.yaml")
    repo.commit()
    assert changes(repo, "--changed-since", "before") == {
        "a": ("changed", ["quotas"]),
        "b": ("removed", []),
        "c": ("changed", ["settings"]),
        "d": ("new", []),
    }
    assert changes(repo, "--changed-since", "before", "--cluster", "c") == {"c": ("changed", ["settings"])}


def test_each_cluster_may_have_a_reference_of_its_own_and_one_without_is_new(repo: GitRepository) -> None:
    repo.git("update-ref", "refs/kafka-quotas/baseline/a", "before")
    repo.write("quotas.yaml", quotas(({"user": "alice"}, {"producer_byte_rate": 5}), clusters=["a", "b"]))
    repo.git("update-ref", "refs/kafka-quotas/baseline/b", repo.commit())
    found = changes(repo, "--changed-since", "refs/kafka-quotas/baseline/{cluster}")
    assert found == {"a": ("changed", ["quotas"]), "b": ("same", []), "c": ("new", [])}


def test_outputs_are_a_matrix_on_one_line_without_what_is_not_trusted_yet(repo: GitRepository) -> None:
    hostile = 'x"\n${{ evil }}'
    repo.write("clusters/new.yaml", cluster(hostile))
    repo.write("quotas.yaml", quotas(({"user": "alice"}, {"producer_byte_rate": 5}), clusters=["a", hostile]))
    repo.commit()
    arguments = ("--changed-since", "before", "--out", "outputs=out.txt", "-q")
    assert clusters(repo, *arguments).code == 0
    values = dict(line.split("=", 1) for line in (repo.folder / "out.txt").read_text().splitlines())
    matrix = json.loads(values["matrix"])
    assert [one["cluster"] for one in matrix] == ["a", "b", hostile]
    assert (values["count"], values["untrusted"]) == ("3", "0")
    done = clusters(repo, "--changed-since", "before", "--trusted-ref", "before", "--format", "outputs")
    assert [one["cluster"] for one in json.loads(done.out.splitlines()[2].partition("=")[2])] == ["a", "b"]
    assert done.out.splitlines()[:2] == ["count=2", "untrusted=1"]
    assert "not in the trusted reference" in clusters(repo, "--trusted-ref", "before").out


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("--cluster", "d"), 64, "no manifest declares cluster 'd'"),
        (("--changed-since", "nowhere"), 1, "git knows no commit 'nowhere'"),
        (("--out", "sarif=x"), 64, "--out 'sarif=x': write --out FORMAT=FILE"),
    ],
)
def test_what_cannot_be_compared_is_said(repo: GitRepository, arguments: tuple[str, ...], code: int, words: str) -> None:
    done = clusters(repo, *arguments)
    assert (done.code, words in done.err) == (code, True), done.err


@pytest.mark.parametrize(
    "name", [*HOSTILE, "a..b", "a.lock", "a.", ".a", "-a", "refs/heads/main", "..", "A" * 300, "\ud800"], ids=ascii
)
def test_a_slug_can_be_a_git_reference_a_file_and_an_argument(name: str, tmp_path: Path) -> None:
    slug = slug_of(name)
    assert len(slug) <= 80
    assert not slug.startswith("-")
    assert set(slug) <= set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-")
    assert ".." not in slug
    assert not slug.endswith((".", ".lock"))
    assert slug_of(slug) == slug
