"""The history of a quota in git: the commit in effect at a time, and the commit that set a value."""

from __future__ import annotations

import datetime
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from reconciler.errors import GitError, ManifestError, UsageError
from reconciler.model import DesiredQuota, Entity, LimitOrigin, QuotaKey, RunRecord
from reconciler.workflows.git_manifests import ManifestsAt, manifests_at
from reconciler.workflows.git_repository import repository_around
from reconciler.workflows.load import desired_for

_MOST_STEPS: Final = 20
"""Commits that moved or reformatted the line of a value, and are passed over."""
_APPLIED: Final = ("done", "partial")


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitThen:
    """The commit of the manifests in effect at a time. ``run``: the run of an audit file that applied it, if one is known."""

    commit: str
    run: RunRecord | None = None


def commit_then(paths: Sequence[str], moment: datetime.datetime, runs: Sequence[RunRecord]) -> CommitThen:
    """The commit that the last run before ``moment`` applied; without runs the newest one of that time on this branch.

    Raises ``GitError`` without a repository, or when its history does not reach back so far.
    """
    applied = [one for one in runs if one.ended <= moment and one.result in _APPLIED and not one.validate_only and one.commit]
    if applied:
        last = max(applied, key=lambda one: one.ended)
        assert last.commit is not None
        return CommitThen(commit=last.commit, run=last)
    git = repository_around(paths[0])
    commit = git.commit_before(moment)
    if commit is None:
        more = "; this is a shallow clone, fetch its whole history" if git.shallow() else ""
        msg = f"the repository {git.top} has no commit from before {moment:%Y-%m-%d %H:%M} UTC{more}"
        raise GitError(msg)
    return CommitThen(commit=commit)


def limit_origin(
    then: ManifestsAt, paths: Sequence[str], *, cluster: str | None, entity: Entity, key: str, runs: Sequence[RunRecord] = ()
) -> LimitOrigin | None:
    """The commit that gave this quota the value that it has in ``then``; ``None`` when the manifests do not declare it.

    A commit that moves or reformats the line is passed over. Raises ``GitError`` when git does not know.
    """
    here, quota = then, _declared(then, cluster, entity, key)
    if quota is None:
        return None
    for _ in range(_MOST_STEPS):
        path = os.path.relpath(quota.source.file, here.folder)
        blamed = here.git.blame_line(here.commit, path, quota.source.line)
        before: DesiredQuota | None = None
        if blamed.parent is not None:
            try:
                earlier = manifests_at(blamed.parent, paths)
                before = _declared(earlier, cluster, entity, key)
            except (ManifestError, UsageError):
                # What a parent with errors meant is not known: the line is this commit's in any case.
                before = None
            else:
                if before is not None and before.value == quota.value:
                    here, quota = earlier, before
                    continue
        return LimitOrigin(
            file=path,
            line=blamed.line,
            commit=blamed.commit,
            committed=blamed.committed,
            author=blamed.author,
            subject=blamed.subject,
            before=None if before is None else before.value,
            applied=_first_applied(then, blamed.commit, runs),
        )
    return None


def current_place(at: ManifestsAt, *, cluster: str | None, entity: Entity, key: str) -> tuple[str, int] | None:
    """The file, relative to the top, and the line of a quota."""
    quota = _declared(at, cluster, entity, key)
    return None if quota is None else (os.path.relpath(quota.source.file, at.folder), quota.source.line)


def _declared(at: ManifestsAt, cluster: str | None, entity: Entity, key: str) -> DesiredQuota | None:
    loaded = replace(at.loaded, selected=None, complete=True)
    _, desired, _ = desired_for(loaded, cluster)
    found = desired.entities.get(entity)
    return None if found is None else found.quotas.get(QuotaKey(key))


def _first_applied(then: ManifestsAt, commit: str, runs: Sequence[RunRecord]) -> datetime.datetime | None:
    """When a run first applied this commit or a later one."""
    ended = [
        one.ended
        for one in runs
        if one.commit is not None and one.result in _APPLIED and not one.validate_only and then.git.contains(one.commit, commit)
    ]
    return min(ended, default=None)
