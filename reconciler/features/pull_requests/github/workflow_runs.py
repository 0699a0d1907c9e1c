"""Runs of workflows and the artifacts that they left, by GitHub's OpenAPI description (``workflow-run``, ``artifact``)."""

from __future__ import annotations

import enum
import urllib.parse
from dataclasses import dataclass

from reconciler.features.pull_requests.github.api import GitHubApi
from reconciler.features.pull_requests.github.pull_requests import unexpected


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkflowRun:
    """One run. ``event``: what started it; ``commit``: whose workflow file ``workflow`` it ran, in ``repository``.

    ``branch`` is ``None`` where the commit was on none, and the name of the tag for a tag that was pushed.
    """

    event: str
    commit: str
    repository: str
    branch: str | None
    workflow: str
    """Path of its file: ``.github/workflows/quotas-apply.yml``."""


def workflow_run(api: GitHubApi, number: int, *, repository: str) -> WorkflowRun:
    """One run by its number. Raises ``ForgeError``."""
    doing = f"read run {number} of {repository}"
    match api.get(f"/repos/{repository}/actions/runs/{number}", doing=doing):
        case {
            "event": str(event),
            "head_sha": str(commit),
            "head_branch": str() | None as branch,
            "path": str(workflow),
            "head_repository": {"full_name": str(where)},
        }:
            # Where GitHub names the reference, too, it stands behind an @.
            file = workflow.partition("@")[0]
            return WorkflowRun(event=event, commit=commit, repository=where, branch=branch, workflow=file)
    raise unexpected(doing)


class ArtifactState(enum.Enum):
    """Whether a run left an artifact, and GitHub still has it."""

    KEPT = "kept"
    EXPIRED = "expired"
    MISSING = "missing"


def artifact_state(api: GitHubApi, number: int, name: str, *, repository: str) -> ArtifactState:
    """Whether a run left an artifact of this name. Raises ``ForgeError``."""
    doing = f"list the artifacts of run {number} of {repository}"
    query = urllib.parse.urlencode({"name": name})
    match api.get(f"/repos/{repository}/actions/runs/{number}/artifacts?{query}", doing=doing):
        case {"artifacts": list(listed)}:
            expired = [row.get("expired") for row in listed if isinstance(row, dict) and row.get("name") == name]
            if not expired:
                return ArtifactState.MISSING
            return ArtifactState.KEPT if False in expired else ArtifactState.EXPIRED
    raise unexpected(doing)
