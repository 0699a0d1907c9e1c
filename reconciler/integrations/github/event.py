"""What a workflow run knows of its pull request, from GitHub's environment variables and the file of its event."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from reconciler.errors import FileAccessError

_COMMIT: Final = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_NUMBER: Final = re.compile(r"[0-9]{1,20}")


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkflowEvent:
    """Why this run was started. Everything is ``None`` outside a workflow."""

    pull_request: int | None = None
    commit: str | None = None
    """The newest commit of the pull request when the run was started, or the commit that was pushed."""
    head: str | None = None
    """``OWNER:BRANCH`` that a ``workflow_run`` was about; the event does not name the pull request of a fork."""
    pushed: bool = False
    """The commit is on a branch, so its pull request, if any, is merged."""


def read_event(environment: Mapping[str, str]) -> WorkflowEvent:
    """The event of this run. Raises ``FileAccessError`` for a file that cannot be read or is not an event."""
    name = environment.get("GITHUB_EVENT_PATH")
    if not name:
        return WorkflowEvent()
    try:
        document = json.loads(Path(name).read_text(encoding="utf-8"))
    except OSError as error:
        raise FileAccessError(f"cannot read {name}, the event of this run: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise FileAccessError(f"{name} is not the event of a workflow run: {error}") from error
    return event_from_json(document)


def event_from_json(document: object) -> WorkflowEvent:
    """The event in a document, as GitHub's webhooks have it: ``pull_request``, ``issue_comment``, ``workflow_run``, ``push``."""
    match document:
        case {"pull_request": {"number": int(number), **pull}}:
            return WorkflowEvent(pull_request=number, commit=_commit(_inside(pull, "head", "sha")))
        case {"issue": {"number": int(number), "pull_request": {}}}:
            return WorkflowEvent(pull_request=number)
        case {"workflow_run": {**run}}:
            return _of_run(run)
        case {"ref": str(), "after": str(after)}:
            return WorkflowEvent(commit=_commit(after), pushed=True)
    return WorkflowEvent()


def run_link(environment: Mapping[str, str]) -> str | None:
    """Where the log of this run can be read."""
    server, repository, run = (environment.get(f"GITHUB_{name}", "") for name in ("SERVER_URL", "REPOSITORY", "RUN_ID"))
    return f"{server}/{repository}/actions/runs/{run}" if server and repository and _NUMBER.fullmatch(run) else None


def _of_run(run: dict[object, object]) -> WorkflowEvent:
    commit = _commit(run.get("head_sha"))
    listed = run.get("pull_requests")
    match listed:
        case [{"number": int(number)}]:
            return WorkflowEvent(pull_request=number, commit=commit)
    owner, branch = _inside(run, "head_repository", "owner", "login"), run.get("head_branch")
    head = f"{owner}:{branch}" if isinstance(owner, str) and isinstance(branch, str) else None
    return WorkflowEvent(commit=commit, head=head, pushed=run.get("event") == "push")


def _inside(document: object, *keys: str) -> object:
    for key in keys:
        document = document.get(key) if isinstance(document, dict) else None
    return document


def _commit(value: object) -> str | None:
    return value if isinstance(value, str) and _COMMIT.fullmatch(value) else None
