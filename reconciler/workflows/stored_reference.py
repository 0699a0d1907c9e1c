"""Whether a run of the default branch stored what a git reference has.

Every user who may push can move ``refs/kafka-quotas/*``. GitHub's rules protect branches and tags, and no other references. So a
stored commit names its reference and its run, and the run leaves an artifact whose name has the commit's id, which is a digest
of all that the commit has. Only a run can add artifacts to itself, and only a run at a commit of the default branch counts.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from reconciler.errors import UntrustedError, UsageError
from reconciler.integrations import GitHubApi, github_address, github_token, has_artifact, repository_name, workflow_run
from reconciler.ports import Clock
from reconciler.text import shown
from reconciler.workflows.git_repository import Git, repository_around

SNAPSHOT: Final = "snapshot.json"
_TRAILER: Final = re.compile(r"^Kafka-Quotas-(Reference|Run): (.+)$", re.MULTILINE)
_NUMBER: Final = re.compile(r"[1-9][0-9]{0,18}")
_OWN_EVENTS: Final = frozenset({"push", "schedule", "workflow_dispatch"})
"""What starts a run of this repository's own commits. Others run for a commit of a stranger, or beside one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredReference:
    """A reference that was verified: its commit, and the run that stored it, at a commit of the default branch."""

    ref: str
    commit: str
    run: int
    run_commit: str
    snapshot: bytes | None
    """Its file ``snapshot.json``, where it has one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GitHubRepository:
    """Where the runs are; ``None`` comes from the environment, as GitHub sets it in a workflow."""

    environment: Mapping[str, str]
    repository: str | None = None
    api_url: str | None = None
    token_file: Path | None = None


def verify_reference(
    ref: str, *, branch: str, folder: str, github: GitHubRepository, clock: Clock, patience: float
) -> StoredReference:
    """Read a fetched reference in full (``refs/...``), and ask GitHub about the run that it names.

    ``branch``: a reference to the default branch, whose workflows are trusted. Raises ``UntrustedError`` when no run of it stored
    the reference, ``GitError`` when one of both is not there, ``UsageError`` and ``ForgeError``.
    """
    if not ref.startswith("refs/"):
        raise UsageError(f"{shown(ref)}: write the reference in full, as refs/kafka-quotas/snapshot/prod")
    git = repository_around(folder)
    commit = git.commit(ref)
    number = _run_named_by(git, commit, ref)
    given = github.repository or github.environment.get("GITHUB_REPOSITORY")
    if not given:
        raise UsageError("which repository? Give --repository OWNER/NAME, or set GITHUB_REPOSITORY")
    repository = repository_name(given)
    address = github_address(github.api_url or github.environment.get("GITHUB_API_URL") or None)
    api = GitHubApi(address, github_token(github.environment, github.token_file), clock=clock, patience=patience)
    try:
        run = workflow_run(api, number, repository=repository)
        if run.repository.lower() != repository.lower() or run.event not in _OWN_EVENTS:
            raise _untrusted(ref, f"run {number} is not a run of this repository's own commits ({shown(run.event)})")
        if not git.contains(git.commit(branch), run.commit):
            raise _untrusted(ref, f"run {number} ran commit {shown(run.commit)}, which is not part of {branch}")
        if not has_artifact(api, number, artifact_name(commit), repository=repository):
            raise _untrusted(ref, f"run {number} did not store commit {commit}")
    finally:
        api.close()
    return StoredReference(ref=ref, commit=commit, run=number, run_commit=run.commit, snapshot=git.file(commit, SNAPSHOT))


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
    return UntrustedError(
        f"{ref} is not trusted: {reason}. Another user may have pushed it. Run the workflow that stores it again "
        "(apply.yml or snapshot.yml), and look who pushed it"
    )
