"""Runs of workflows: what started one, at which commit, and whether it left an artifact of some name."""

from __future__ import annotations

import urllib.parse
from dataclasses import dataclass

from reconciler.integrations.github.api import GitHubApi
from reconciler.integrations.github.comments import unexpected


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkflowRun:
    """One run. ``event``: what started it; ``commit``: whose workflow file it ran, in ``repository``."""

    event: str
    commit: str
    repository: str


def workflow_run(api: GitHubApi, number: int, *, repository: str) -> WorkflowRun:
    """One run by its number. Raises ``ForgeError``."""
    doing = f"read run {number} of {repository}"
    match api.get(f"/repos/{repository}/actions/runs/{number}", doing=doing):
        case {"event": str(event), "head_sha": str(commit), "head_repository": {"full_name": str(where)}}:
            return WorkflowRun(event=event, commit=commit, repository=where)
    raise unexpected(doing)


def has_artifact(api: GitHubApi, number: int, name: str, *, repository: str) -> bool:
    """Whether a run left an artifact of this name, which may have expired. Raises ``ForgeError``."""
    doing = f"list the artifacts of run {number} of {repository}"
    query = urllib.parse.urlencode({"name": name})
    match api.get(f"/repos/{repository}/actions/runs/{number}/artifacts?{query}", doing=doing):
        case {"artifacts": list(listed)}:
            return any(isinstance(one, dict) and one.get("name") == name for one in listed)
    raise unexpected(doing)
