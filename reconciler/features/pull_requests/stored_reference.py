"""Whether a run of the default branch stored what a git reference has.

Every user who may push can move ``refs/kafka-quotas/*``. GitHub's rules protect branches and tags, and no other references. So a
stored commit names its reference and its run, and the run leaves an artifact whose name has the commit's id, which is a digest
of all that the commit has. Only a run can add artifacts to itself, and only a run on the default branch, of a named workflow, at
a commit that was its newest counts. A commit that came with a merge never was: its author alone decided what its runs do.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from reconciler.errors import ForgeError, UntrustedError, UsageError
from reconciler.features.pull_requests.github.api import VERIFYING, GitHubApi, github_address, github_token
from reconciler.features.pull_requests.github.pull_requests import repository_name
from reconciler.features.pull_requests.github.workflow_runs import ArtifactState, WorkflowRun, artifact_state, workflow_run
from reconciler.ports import Clock
from reconciler.text import shown
from reconciler.workflows import Git, repository_around

SNAPSHOT: Final = "snapshot.json"
_TRAILER: Final = re.compile(r"^Kafka-Quotas-(Reference|Run): (.+)$", re.MULTILINE)
_NUMBER: Final = re.compile(r"[1-9][0-9]{0,18}")
_BRANCH: Final = re.compile(r"refs/(?:heads|remotes/[^/]+)/(?P<name>.+)")
_FOLDER: Final = ".github/workflows/"
_NOT_FOUND: Final = 404
_OWN_EVENTS: Final = frozenset({"push", "schedule", "workflow_dispatch"})
"""What starts a run of this repository's own commits. Others run for a commit of a stranger, or beside one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredReference:
    """A reference that was verified: its commit, and the run of the default branch that stored it."""

    ref: str
    """The full name of the reference."""
    commit: str
    """The commit that it leads to."""
    run: int
    """The id of the run that stored it."""
    run_commit: str
    """The commit that the run had checked out."""
    snapshot: bytes | None
    """Its file ``snapshot.json``, where it has one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GitHubRepository:
    """Where the runs are; ``None`` comes from the environment, as GitHub sets it in a workflow."""

    environment: Mapping[str, str]
    repository: str | None = None
    api_url: str | None = None
    token_file: Path | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TrustedRuns:
    """The runs that may store references: those of the default branch and of these workflow files.

    ``branch``: its reference in full, as fetched. ``workflows``: names of files in ``.github/workflows``.
    """

    branch: str
    workflows: tuple[str, ...]

    @property
    def name(self) -> str:
        """The branch as GitHub names it. Raises ``UsageError`` for a reference to no branch."""
        match = _BRANCH.fullmatch(self.branch)
        if match is None:
            raise UsageError(f"{shown(self.branch)}: write the branch in full, as refs/remotes/origin/main")
        return match["name"]


def verify_reference(
    ref: str, *, trusted: TrustedRuns, folder: str, github: GitHubRepository, clock: Clock, patience: float
) -> StoredReference:
    """Read a fetched reference in full (``refs/...``), and ask GitHub about the run that it names.

    Raises ``UntrustedError`` when no trusted run stored the reference, or the proof has expired, ``GitError`` when the reference
    or the branch is not there, ``UsageError``, ``MissingDependencyError``, and ``ForgeError`` when GitHub could not be asked.
    """
    if not ref.startswith("refs/"):
        raise UsageError(f"{shown(ref)}: write the reference in full, as refs/kafka-quotas/snapshot/prod")
    branch = trusted.name
    git = repository_around(folder)
    commit = git.commit(ref)
    number = _run_named_by(git, commit, ref)
    given = github.repository or github.environment.get("GITHUB_REPOSITORY")
    if not given:
        raise UsageError("which repository? Give --repository OWNER/NAME, or set GITHUB_REPOSITORY")
    repository = repository_name(given)
    address = github_address(github.api_url or github.environment.get("GITHUB_API_URL") or None)
    token = github_token(github.environment, github.token_file)
    api = GitHubApi(address, token, clock=clock, patience=patience, task=VERIFYING)
    try:
        run = _run(api, number, ref=ref, repository=repository)
        if run.repository.lower() != repository.lower() or run.event not in _OWN_EVENTS:
            raise _untrusted(ref, f"run {number} is not a run of this repository's own commits ({shown(run.event)})")
        if run.branch != branch:
            raise _untrusted(ref, f"run {number} ran on {shown(run.branch or 'no branch')}, not on {shown(branch)}")
        if run.workflow not in {f"{_FOLDER}{name}" for name in trusted.workflows}:
            raise _untrusted(
                ref, f"run {number} ran {shown(run.workflow)}, which is not a workflow that stores references (--workflow)"
            )
        if not git.was_newest(git.commit(trusted.branch), run.commit):
            reason = f"run {number} ran commit {shown(run.commit)}, which never was the newest commit of {trusted.branch}"
            raise _untrusted(ref, reason)
        state = artifact_state(api, number, artifact_name(commit), repository=repository)
    finally:
        api.close()
    if state is ArtifactState.MISSING:
        raise _untrusted(ref, f"run {number} did not store commit {commit}")
    if state is ArtifactState.EXPIRED:
        raise UntrustedError(
            f"{ref} is not trusted any more: the artifact by which run {number} proves that it stored the reference has expired. "
            f"{_AGAIN}"
        )
    return StoredReference(ref=ref, commit=commit, run=number, run_commit=run.commit, snapshot=git.file(commit, SNAPSHOT))


def _run(api: GitHubApi, number: int, *, ref: str, repository: str) -> WorkflowRun:
    try:
        return workflow_run(api, number, repository=repository)
    except ForgeError as error:
        if error.status == _NOT_FOUND:
            raise _untrusted(ref, str(error)) from error
        raise


def artifact_name(commit: str) -> str:
    """The artifact by which a run proves that it stored a commit."""
    return f"kafka-quotas-stored-{commit}"


def _run_named_by(git: Git, commit: str, ref: str) -> int:
    trailers = _TRAILER.findall(git.message(commit))
    if sorted(name for name, _ in trailers) != ["Reference", "Run"]:
        raise _untrusted(ref, f"commit {commit} does not name the run that stored it")
    named = dict(trailers)
    if named["Reference"] != ref:
        raise _untrusted(ref, f"commit {commit} was stored for {shown(named['Reference'])}")
    if not _NUMBER.fullmatch(named["Run"]):
        raise _untrusted(ref, f"commit {commit} names no run of GitHub Actions: {shown(named['Run'])}")
    return int(named["Run"])


def _untrusted(ref: str, reason: str) -> UntrustedError:
    return UntrustedError(f"{ref} is not trusted: {reason}. Another user may have pushed it, so look who did. {_AGAIN}")


_AGAIN: Final = "Run the workflow that stores it again (the one that calls apply.yml or snapshot.yml)"
