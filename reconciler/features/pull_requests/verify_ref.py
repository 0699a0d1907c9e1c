"""``kafka-quotas tool verify-ref``: whether a run of the default branch stored what a git reference has.

Every user who may push can move ``refs/kafka-quotas/*``. GitHub's rules protect branches and tags, and no other references. So a
stored commit names its reference and its run, and the run leaves an artifact whose name has the commit's id, which is a digest
of all that the commit has. Only a run can add artifacts to itself, and only a run on the default branch, of a named workflow, at
a commit that was its newest counts. A commit that came with a merge never was: its author alone decided what its runs do.
"""

from __future__ import annotations

import contextlib
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Final

from reconciler.cli.declaration import argument, option
from reconciler.cli.results import Result
from reconciler.errors import FileAccessError, ForgeError, UntrustedError, UsageError
from reconciler.features.pull_requests.forge import quoted
from reconciler.features.pull_requests.github import GitHub
from reconciler.files import write_whole
from reconciler.ports import SystemClock
from reconciler.render import line
from reconciler.text import shown
from reconciler.workflows import Git, repository_around

_SNAPSHOT: Final = "snapshot.json"
_PATIENCE_S: Final = 60.0
"""How long rate limits and faults of GitHub may take, in all."""
_TRAILER: Final = re.compile(r"^Kafka-Quotas-(Reference|Run): (.+)$", re.MULTILINE)
_NUMBER: Final = re.compile(r"[1-9][0-9]{0,18}")
_BRANCH: Final = re.compile(r"refs/(?:heads|remotes/[^/]+)/(?P<name>.+)")
_NOT_FOUND: Final = 404
_OWN_EVENTS: Final = frozenset({"push", "schedule", "workflow_dispatch"})
"""What starts a run of this repository's own commits. Others run for a commit of a stranger, or beside one."""
_AGAIN: Final = "Run the workflow that stores it again (the one that calls apply.yml, snapshot.yml or traffic.yml)"


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifyRefArguments:
    """The command line of ``tool verify-ref``. Repository, address and token come from the environment, as in a workflow."""

    ref: str = argument("REF", help="a full reference, as fetched: refs/kafka-quotas/snapshot/prod")
    branch: str = option(
        "--branch", required=True, metavar="REF", help="trust runs of this default branch, such as refs/remotes/origin/main"
    )
    workflow: tuple[str, ...] = option(
        "--workflow",
        required=True,
        metavar="FILE",
        help="trust runs of this file in .github/workflows, such as quotas-apply.yml (repeatable)",
    )
    snapshot: Path | None = option("--snapshot", metavar="FILE", help="write the verified snapshot to this file")


class _Runs(GitHub):
    """Runs of workflows and the artifacts that they left, by GitHub's OpenAPI description (``workflow-run``, ``artifact``)."""

    purpose: ClassVar = "verifying a stored reference"
    subject: ClassVar = "the repository or the run"
    needed: ClassVar = "The token needs to read workflow runs (in a workflow: permissions: actions: read)"

    def expiries(self, number: int, name: str) -> list[object]:
        """List for each artifact of this name that a run left whether it has expired."""
        doing = f"list the artifacts of run {number} of {self.repository}"
        path = f"/repos/{self.repository}/actions/runs/{number}/artifacts?name={quoted(name)}"
        match self.get(path, doing=doing):
            case {"artifacts": list(listed)}:
                return [row.get("expired") for row in listed if isinstance(row, dict) and row.get("name") == name]
        raise self.unexpected(doing)


def run(args: VerifyRefArguments) -> Result:
    """Verify a fetched reference; exit 3 when no trusted run stored it, 1 when that could not be asked.

    Raises ``UntrustedError`` when no trusted run stored the reference, or the proof has expired, ``GitError`` when the reference
    or the branch is not there, ``UsageError``, ``MissingDependencyError``, and ``ForgeError`` when GitHub could not be asked.
    """
    ref, branch = args.ref, _BRANCH.fullmatch(args.branch)
    if not ref.startswith("refs/"):
        raise UsageError(f"{shown(ref)}: write the reference in full, as refs/kafka-quotas/snapshot/prod")
    if branch is None:
        raise UsageError(f"{shown(args.branch)}: write the branch in full, as refs/remotes/origin/main")
    git = repository_around(".")
    commit = git.commit(ref)
    number = _run_named_by(git, commit, ref)
    with contextlib.closing(_Runs.connect(os.environ, clock=SystemClock(), patience=_PATIENCE_S)) as github:
        run_commit = _trusted_commit(github, number, args, branch["name"], git)
        expiries = github.expiries(number, artifact_name(commit))
    if not expiries:
        raise _untrusted(ref, f"run {number} did not store commit {commit}")
    if False not in expiries:
        raise UntrustedError(
            f"{ref} is not trusted any more: the artifact by which run {number} proves that it stored the reference has expired. "
            f"{_AGAIN}"
        )
    if args.snapshot is not None:
        snapshot = git.file(commit, _SNAPSHOT)
        if snapshot is None:
            raise FileAccessError(f"{ref} has no file {_SNAPSHOT}")
        write_whole(args.snapshot, [snapshot.decode()])
    return Result(view=lambda: [line(f"Run {number} of commit {run_commit[:12]} stored {ref}.")])


def _trusted_commit(github: _Runs, number: int, args: VerifyRefArguments, branch: str, git: Git) -> str:
    """The commit of a run of this repository's default branch and workflows. Raises ``UntrustedError`` for any other run."""
    doing = f"read run {number} of {github.repository}"
    try:
        document = github.get(f"/repos/{github.repository}/actions/runs/{number}", doing=doing)
    except ForgeError as error:
        if error.status == _NOT_FOUND:
            raise _untrusted(args.ref, str(error)) from error
        raise
    match document:
        case {
            "event": str(event),
            "head_sha": str(commit),
            "head_branch": str() | None as ran_on,
            "path": str(path),
            "head_repository": {"full_name": str(repository)},
        }:
            # Where GitHub names the reference, too, it stands behind an @.
            workflow = path.partition("@")[0]
        case _:
            raise github.unexpected(doing)
    if repository.lower() != github.repository.lower() or event not in _OWN_EVENTS:
        raise _untrusted(args.ref, f"run {number} is not a run of this repository's own commits ({shown(event)})")
    if ran_on != branch:
        raise _untrusted(args.ref, f"run {number} ran on {shown(ran_on or 'no branch')}, not on {shown(branch)}")
    if workflow not in {f".github/workflows/{name}" for name in args.workflow}:
        reason = f"run {number} ran {shown(workflow)}, which is not a workflow that stores references (--workflow)"
        raise _untrusted(args.ref, reason)
    if not git.was_newest(git.commit(args.branch), commit):
        reason = f"run {number} ran commit {shown(commit)}, which never was the newest commit of {args.branch}"
        raise _untrusted(args.ref, reason)
    return commit


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
