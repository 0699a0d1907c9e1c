"""Files of the work tree seen through a trusted reference, and manifests read from a commit."""

from __future__ import annotations

from pathlib import Path

import pytest

from reconciler.errors import FileAccessError, GitError, ManifestError, UntrustedError
from reconciler.model.finding import Span
from reconciler.workflows.git_manifests import manifests_at, relocate_spans, without_spans
from reconciler.workflows.git_repository import repository_around
from reconciler.workflows.trusted import TrustedFiles, declared_at
from tests.builders import declared, user
from tests.support.git_repository import GitRepository
from tests.support.manifests import cluster, quotas

PEM = "-----BEGIN CERTIFICATE-----\nabc\n-----END CERTIFICATE-----\n"


@pytest.fixture
def repo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> GitRepository:
    made = GitRepository(tmp_path / "repository")
    made.write("cluster.yaml", cluster())
    made.write("tls/ca.pem", PEM)
    made.commit()
    made.branch()
    monkeypatch.chdir(made.folder)
    return made


def tree(repo: GitRepository) -> TrustedFiles:
    return manifests_at("main", [str(repo.folder)], same_links=True).files


def test_a_certificate_is_used_while_it_is_what_the_reference_has(repo: GitRepository) -> None:
    trusted = tree(repo)
    trusted.require_same("tls/ca.pem")
    repo.write("tls/ca.pem", PEM.replace("\n", "\r\n"))
    trusted.require_same("tls/ca.pem")
    for replaced in (PEM + "more", PEM[:-2], ""):
        repo.write("tls/ca.pem", replaced)
        with pytest.raises(UntrustedError, match="differs from main"):
            trusted.require_same("tls/ca.pem")
    (repo.folder / "tls" / "ca.pem").unlink()
    with pytest.raises(FileAccessError, match="cannot be read"):
        trusted.require_same("tls/ca.pem")


def test_a_certificate_that_the_pull_request_brings_is_refused_and_one_of_the_machine_is_used(
    repo: GitRepository, tmp_path: Path
) -> None:
    trusted = tree(repo)
    repo.write("tls/mine.pem", PEM)
    trusted.require_same("tls/mine.pem")
    repo.git("add", "tls/mine.pem")
    with pytest.raises(UntrustedError, match="is not in main"):
        trusted.require_same("tls/mine.pem")
    (tmp_path / "system.pem").write_text(PEM)
    trusted.require_same(str(tmp_path / "system.pem"))
    trusted.require_same("../system.pem")


def test_a_file_in_a_submodule_is_never_the_job_s_own(repo: GitRepository, tmp_path: Path) -> None:
    other = GitRepository(tmp_path / "other")
    other.write("client.properties", "x=y\n")
    other.commit()
    repo.git("-c", "protocol.file.allow=always", "submodule", "add", "-q", str(other.folder), "sub")
    with pytest.raises(UntrustedError):
        tree(repo).content("sub/client.properties")


def test_content_is_the_reference_s_whatever_attributes_say(repo: GitRepository) -> None:
    repo.git("checkout", "-q", "main")
    repo.write(".gitattributes", "* text eol=crlf export-subst export-ignore\n")
    repo.write("cluster.yaml", cluster(prune="never"))
    repo.commit()
    assert tree(repo).content("cluster.yaml") == cluster(prune="never").encode()
    assert set(manifests_at("main", ["."]).loaded.clusters) == {"prod"}


def test_names_that_are_hard_for_git_are_read(repo: GitRepository) -> None:
    repo.write("teams/ä b\n'c'/q.yaml", quotas(({"user": "alice"}, {"producer_byte_rate": 1})))
    repo.write("-r/q.yaml", quotas(({"user": "bob"}, {"producer_byte_rate": 1})))
    repo.write(":(glob)x/q.yaml", quotas(({"user": "carol"}, {"producer_byte_rate": 1})))
    repo.commit()
    assert set(declared_at(manifests_at("HEAD", ["."]), "prod").entities) == {user("alice"), user("bob"), user("carol")}
    assert set(declared_at(manifests_at("HEAD", ["-r", "cluster.yaml"]), "prod").entities) == {user("bob")}


def test_what_contradicts_itself_at_a_reference_is_told_with_places_of_the_reference(repo: GitRepository) -> None:
    repo.write("a.yaml", quotas(({"user": "alice"}, {"producer_byte_rate": 1})))
    repo.write("b.yaml", quotas(({"user": "alice"}, {"producer_byte_rate": 2})))
    repo.commit()
    with pytest.raises(ManifestError) as error:
        declared_at(manifests_at("HEAD", ["."]), "prod")
    assert "HEAD:b.yaml:" in str(error.value)
    assert "already declared for cluster prod at HEAD:a.yaml:" in str(error.value)
    assert "/tmp" not in str(error.value)
    (finding,) = error.value.findings
    assert finding.related[0].span.file == "HEAD:a.yaml"


def test_the_temporary_folder_is_gone_afterwards(repo: GitRepository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    places = tmp_path / "temporary"
    places.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(places))
    manifests_at("main", ["."])
    repo.write("cluster.yaml", "nonsense: [")
    repo.commit()
    with pytest.raises(ManifestError):
        manifests_at("HEAD", ["."])
    assert list(places.iterdir()) == []


def test_a_tag_that_is_named_like_the_trusted_branch_is_not_taken_for_it(repo: GitRepository) -> None:
    commit = repo.git("rev-parse", "main")
    repo.write("cluster.yaml", cluster(prune="always"))
    repo.commit()
    repo.git("tag", "main")
    git = repository_around(".")
    for ref in ("main", "main~0", "main^{commit}", "main@{0}"):
        with pytest.raises(GitError, match="refs/tags/main and refs/heads/main"):
            git.commit(ref)
    assert git.commit("refs/heads/main") == commit
    assert git.commit(commit[:12]) == commit


def test_a_hook_s_environment_does_not_choose_the_repository(
    repo: GitRepository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = GitRepository(tmp_path / "other")
    other.commit()
    monkeypatch.setenv("GIT_DIR", str(other.folder / ".git"))
    monkeypatch.setenv("GIT_WORK_TREE", str(other.folder))
    monkeypatch.setenv("GIT_INDEX_FILE", "nowhere")
    (repo.folder / "sub").mkdir()
    assert Path(repository_around("sub").top) == repo.folder.resolve()


def test_places_are_renamed_wherever_they_are_and_nothing_else_changes() -> None:
    one = declared(user("alice"), 7, producer_byte_rate=1.0)
    renamed = relocate_spans(one, lambda span: Span(file=f"main:{span.file}", line=span.line, column=span.column))
    assert (renamed.source.file, [quota.source.file for quota in renamed.quotas.values()]) == (
        "main:quotas.yaml",
        ["main:quotas.yaml"],
    )
    assert renamed != one
    assert without_spans(renamed) == without_spans(one)
    assert relocate_spans(one, lambda span: span) == one
