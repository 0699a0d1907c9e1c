"""Which commit a plan says it was made from."""

from __future__ import annotations

from pathlib import Path

from reconciler.model.plan import ManifestCommit
from reconciler.workflows.git_repository import source_of
from tests.support.git_repository import GitRepository


def test_the_commit_and_whether_the_folder_differs_from_it(tmp_path: Path) -> None:
    repo = GitRepository(tmp_path / "repository")
    repo.write("a/one.yaml", "x")
    repo.write("b/two.yaml", "x")
    commit = repo.commit()
    assert source_of(repo.folder) == source_of(repo.folder / "a" / "one.yaml") == ManifestCommit(commit=commit, dirty=False)
    repo.write("a/new.yaml", "y")
    assert source_of(repo.folder) == source_of(repo.folder / "a") == ManifestCommit(commit=commit, dirty=True)
    assert source_of(repo.folder / "b") == ManifestCommit(commit=commit, dirty=False)


def test_without_a_repository_or_a_commit_nothing_is_known(tmp_path: Path) -> None:
    assert source_of(tmp_path) == source_of(tmp_path / "nowhere" / "x.yaml") == ManifestCommit()
    assert source_of(GitRepository(tmp_path / "empty").folder) == ManifestCommit()


def test_a_repository_among_the_files_runs_nothing_and_is_none(tmp_path: Path) -> None:
    evil = GitRepository(tmp_path / "evil")
    evil.write("q.yaml", "x")
    evil.commit()
    bare = tmp_path / "checkout" / "manifests"
    evil.git("clone", "-q", "--bare", str(evil.folder), str(bare))
    trace = tmp_path / "ran"
    (bare / "config").write_text(
        f"[core]\n\tbare = false\n\tworktree = {bare}\n\trepositoryformatversion = 0\n\tfsmonitor = touch {trace}\n"
    )
    assert source_of(bare) == ManifestCommit()
    assert not trace.exists()
