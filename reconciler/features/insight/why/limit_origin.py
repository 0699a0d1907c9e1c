"""The history of a quota in git: the commits in effect at a time, the commit that set a value, and its declaring line."""

from __future__ import annotations

import datetime
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from reconciler.errors import GitError, ManifestError, UsageError
from reconciler.features.insight.runs import RunRecord
from reconciler.features.insight.why.incident import LimitOrigin
from reconciler.model import DesiredQuota, Entity, QuotaKey, UnitQuota, WrittenQuota
from reconciler.workflows import Git, LoadedManifests, ManifestsAt, desired_for, manifests_at, repository_around

_MOST_STEPS: Final = 20
"""Commits that moved or reformatted the line of a value, and are passed over."""
_APPLIED: Final = ("done", "partial")


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitThen:
    """The commit of the manifests in effect from ``begin`` on; ``commit``: ``None`` before the first one.

    ``run``: the run of an audit file that applied it; without one the commit counts from its date on.
    """

    commit: str | None
    begin: datetime.datetime
    run: RunRecord | None = None


def commits_then(
    paths: Sequence[str], since: datetime.datetime, until: datetime.datetime, runs: Sequence[RunRecord]
) -> tuple[CommitThen, ...]:
    """The commit in effect at ``since``, and each one that came into effect before ``until``, in order of time.

    What runs applied counts from the first of them on, before it the commits of the checked-out branch by their dates. Raises
    ``GitError`` without a repository, or when its history is cut off.
    """
    applied = sorted(
        (
            CommitThen(commit=run.source.commit, begin=run.ended, run=run)
            for run in runs
            if run.ended < until and run.result in _APPLIED and not run.validate_only and run.source.commit
        ),
        key=lambda chosen: chosen.begin,
    )
    before = [chosen for chosen in applied if chosen.begin <= since]
    if before:
        return (before[-1], *(chosen for chosen in applied if chosen.begin > since))
    git = repository_around(paths[0])
    places = [git.place(path) for path in paths]
    until = applied[0].begin if applied else until
    return (_newest(git, since, places), *_dated(git, since, until, places), *applied)


def _newest(git: Git, moment: datetime.datetime, places: Sequence[str]) -> CommitThen:
    commit = git.commit_before(moment)
    if commit is None and git.shallow():
        msg = (
            f"the repository {git.top} has no commit from before {moment:%Y-%m-%d %H:%M} UTC. This is a shallow clone, fetch its "
            "whole history"
        )
        raise GitError(msg)
    dated = git.dated_commits(until=moment, places=places, most=1)
    return CommitThen(commit=commit, begin=dated[0][1] if dated else datetime.datetime.min.replace(tzinfo=datetime.UTC))


def _dated(git: Git, since: datetime.datetime, until: datetime.datetime, places: Sequence[str]) -> list[CommitThen]:
    dated = git.dated_commits(until=until, since=since, places=places)
    return [CommitThen(commit=commit, begin=at) for commit, at in sorted(dated, key=lambda item: item[1]) if since < at < until]


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
        before: WrittenQuota | None = None
        if blamed.parent is not None:
            try:
                earlier = manifests_at(blamed.parent, paths)
                before = _declared(earlier, cluster, entity, key)
            except (ManifestError, UsageError):
                # What a parent with errors meant is not known: the line is this commit's in any case.
                before = None
            else:
                if before is not None and _declared_value(before) == _declared_value(quota):
                    here, quota = earlier, before
                    continue
        return LimitOrigin(
            file=path,
            line=blamed.line,
            commit=blamed.commit,
            committed=blamed.committed,
            author=blamed.author,
            subject=blamed.subject,
            before=before.value if isinstance(before, DesiredQuota) else None,
            applied=_first_applied(then, blamed.commit, runs),
        )
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class DeclaredPlace:
    """Where the manifests of the work tree declare a quota, or at least its entity. ``value``: ``None`` without the quota."""

    file: str
    line: int
    value: float | None
    has_key: bool


def place_now(loaded: LoadedManifests, *, cluster: str | None, entity: Entity, key: str) -> DeclaredPlace | None:
    """The declaring line of the work tree; ``None`` when no manifest declares the entity."""
    declared = desired_for(loaded, cluster)[1].entities.get(entity)
    if declared is None:
        return None
    quota = declared.quotas.get(QuotaKey(key)) or declared.units.get(QuotaKey(key))
    source = declared.source if quota is None else quota.source
    value = quota.value if isinstance(quota, DesiredQuota) else None
    return DeclaredPlace(file=os.path.relpath(source.file), line=source.line, value=value, has_key=quota is not None)


def _declared_value(quota: WrittenQuota) -> object:
    """The number, or what the number is computed from."""
    return quota.unit if isinstance(quota, UnitQuota) else quota.value


def _declared(at: ManifestsAt, cluster: str | None, entity: Entity, key: str) -> WrittenQuota | None:
    loaded = replace(at.loaded, selected=None, complete=True)
    _, desired, _ = desired_for(loaded, cluster)
    declared = desired.entities.get(entity)
    return None if declared is None else declared.quotas.get(QuotaKey(key)) or declared.units.get(QuotaKey(key))


def _first_applied(then: ManifestsAt, commit: str, runs: Sequence[RunRecord]) -> datetime.datetime | None:
    """When a run first applied this commit or a later one."""
    applied = ((run.ended, run.source.commit) for run in runs if run.result in _APPLIED and not run.validate_only)
    ended = [at for at, applied_commit in applied if applied_commit is not None and then.git.contains(applied_commit, commit)]
    return min(ended, default=None)
