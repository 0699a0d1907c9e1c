"""Why a run was made: its CI job, and the pull request whose merge it applies. Unknown facts are absent, never guessed."""

from __future__ import annotations

import datetime
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class JobFacts:
    """The CI job of a run, by the variables of its environment."""

    source: str
    """Where these facts come from."""
    run: str | None = None
    """The address of the job's log."""
    commit: str | None = None
    """The commit that the job was started for."""
    started_by: str | None = None
    """Login of the account that started the job."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MergedRequest:
    """The pull request or merge request that brought the commit of a run, by the API of its forge."""

    source: str
    """Where these facts come from."""
    number: int
    """Its number."""
    url: str | None = None
    """Its page."""
    author: str | None = None
    """Login of the account that opened it."""
    approvers: tuple[str, ...] = ()
    """Logins of the accounts whose last review approves it, sorted."""
    merged_by: str | None = None
    """Login of the account that merged it."""
    merged: datetime.datetime | None = None
    """UTC. When it was merged."""
    merge_commit: str | None = None
    """The commit that the merge made on the target branch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunContext:
    """What is known of the reason for a run."""

    job: JobFacts
    """The job."""
    pull_request: MergedRequest | None = None
    """The merged request. ``None`` when the commit belongs to none, or the forge was not asked or did not answer."""
