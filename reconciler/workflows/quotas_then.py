"""The quotas that a cluster had at a time: of the manifests at the commit in effect then, over what the cluster has beside them.

Every source is optional. A source that is missing or cannot be read is named, with what would help.

The history of a quota is in git: the commit in effect at a time, and the commit that set a value.
"""

from __future__ import annotations

import datetime
import os
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from reconciler.errors import BackendError, GitError, ManifestError, ReconcilerError, UsageError
from reconciler.manifest import BrokerFacts, compute_units
from reconciler.model import (
    ClusterIdentity,
    ClusterSpec,
    CurrentState,
    DesiredQuota,
    DesiredState,
    Entity,
    LimitOrigin,
    MissingEvidence,
    ObservedFrom,
    QuotaKey,
    RunRecord,
    UnitQuota,
    WrittenQuota,
)
from reconciler.workflows.backtest import Proposal, propose
from reconciler.workflows.connect import Access, quota_reader, read_state
from reconciler.workflows.git_manifests import ManifestsAt, manifests_at
from reconciler.workflows.git_repository import repository_around
from reconciler.workflows.load import LoadedManifests, desired_for, load_manifests, stop_on

_ORIGINS = {ObservedFrom.SNAPSHOT: "the snapshot", ObservedFrom.BROKER: "the brokers", ObservedFrom.ZOOKEEPER: "ZooKeeper"}
_MOST_STEPS: Final = 20
"""Commits that moved or reformatted the line of a value, and are passed over."""
_APPLIED: Final = ("done", "partial")


@dataclass(frozen=True, slots=True, kw_only=True)
class QuotaSources:
    """Where quotas may come from. ``paths``: of manifests; empty: those of the working directory, if it has any."""

    paths: tuple[str, ...] = ()
    cluster: str | None = None
    access: Access = field(default_factory=Access)
    runs: tuple[RunRecord, ...] = ()
    """Of audit files."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QuotasThen:
    """What was found. ``proposal``: all quotas as the proposed ones of a backtest; ``None``: no source had any."""

    spec: ClusterSpec
    identity: ClusterIdentity
    paths: tuple[str, ...] = ()
    proposal: Proposal | None = None
    manifests: ManifestsAt | None = None
    evidence: tuple[str, ...] = ()
    missing: tuple[MissingEvidence, ...] = ()
    reachable: bool = False
    """Whether the Cluster manifest or the command line states where the cluster is."""


def read_quotas_then(sources: QuotaSources, moment: datetime.datetime) -> QuotasThen:
    """Read every source that there is.

    Raises ``ManifestError`` and ``UsageError`` for manifests that were named and have errors, and ``FileAccessError`` and
    ``WrongClusterError`` for a snapshot that cannot be used.
    """
    paths, loaded = _loaded(sources)
    spec, desired = ClusterSpec(), DesiredState()
    missing: list[MissingEvidence] = []
    evidence: list[str] = []
    then: ManifestsAt | None = None
    if loaded is None:
        missing.append(
            MissingEvidence(
                what="which commit set the limit",
                because="no manifests were given",
                remedy="give their folder as PATH",
            )
        )
    else:
        spec, desired, _ = desired_for(loaded, sources.cluster)
        runs = tuple(run for run in sources.runs if spec.name is None or run.is_of(ClusterIdentity(name=spec.name)))
        try:
            chosen = commit_then(paths, moment, runs)
            then = manifests_at(chosen.commit, paths)
            desired = _desired_at(then, sources.cluster)
            evidence.append(_commit_words(chosen, moment))
        except (GitError, ManifestError, UsageError) as error:
            then = None
            evidence.append("Quotas: the manifests as they are now")
            missing.append(
                MissingEvidence(
                    what="which commit set the limit", because=str(error), remedy="give PATH in a whole git repository"
                )
            )
        if not sources.runs:
            missing.append(
                MissingEvidence(
                    what="whether and when that commit was applied",
                    because="no audit file was given",
                    remedy="give --audit FILE, which apply --audit and run --audit write",
                )
            )
    current, observed = _current(spec, sources)
    if isinstance(observed, MissingEvidence):
        missing.append(observed)
    else:
        evidence.append(observed)
    identity = ClusterIdentity(name=spec.name, id=current.cluster.id if current is not None else spec.cluster_id)
    proposal = None
    if loaded is not None or current is not None:
        desired, totals = _divided(desired, current)
        missing += totals
        made = propose(desired, current, spec)
        # Only what was in effect is asked about: there is nothing to compare it with.
        proposal = replace(made, current=None)
    return QuotasThen(
        spec=spec,
        identity=identity,
        paths=paths,
        proposal=proposal,
        manifests=then,
        evidence=tuple(evidence),
        missing=tuple(missing),
        reachable=_is_reachable(spec, sources.access),
    )


def _loaded(sources: QuotaSources) -> tuple[tuple[str, ...], LoadedManifests | None]:
    """The manifests as they are now. Those of the working directory count only when they are good."""
    paths = sources.paths or (".",)
    try:
        loaded = load_manifests(paths)
        stop_on(loaded.findings)
    except ReconcilerError:
        if sources.paths or sources.cluster is not None:
            raise
        return (), None
    return paths, loaded


def _desired_at(then: ManifestsAt, cluster: str | None) -> DesiredState:
    loaded = replace(then.loaded, selected=None, complete=True)
    return desired_for(loaded, cluster)[1]


def _divided(desired: DesiredState, current: CurrentState | None) -> tuple[DesiredState, list[MissingEvidence]]:
    """With a number for each broker in place of every total; without the totals when the brokers are not known."""
    facts = BrokerFacts() if current is None else BrokerFacts(brokers=current.brokers, leaders=current.leaders)
    desired, _ = compute_units(desired, facts)
    if not desired.with_units:
        return desired, []
    because = "the number of brokers is not known"
    remedy = "give --current FILE, a snapshot of export, or --bootstrap-server HOST:PORT"
    missing = MissingEvidence(what="limits that are declared as totals of the cluster", because=because, remedy=remedy)
    return replace(desired, with_units=()), [missing]


def _is_reachable(spec: ClusterSpec, access: Access) -> bool:
    known = spec.connection is not None and bool(spec.connection.bootstrap_servers or spec.connection.zookeeper)
    return known or access.bootstrap_server is not None or access.zookeeper is not None


def _current(spec: ClusterSpec, sources: QuotaSources) -> tuple[CurrentState | None, str | MissingEvidence]:
    """What the cluster has or had, with a sentence about it; or why that is not known."""
    what = "quotas that the manifests do not declare"
    if sources.access.current is None and not _is_reachable(spec, sources.access):
        because = "neither a snapshot nor a connection was given"
        return None, MissingEvidence(what=what, because=because, remedy="give --current FILE or --bootstrap-server HOST:PORT")
    try:
        with quota_reader(spec, sources.access) as reader:
            state = read_state(spec, reader)
    except BackendError as error:
        return None, MissingEvidence(what=what, because=str(error), remedy="give --current FILE, a snapshot of export")
    where = _ORIGINS[state.observed.origin]
    return state, f"Quotas beside the manifests: from {where}, read at {state.observed.at:%Y-%m-%d %H:%M:%S} UTC"


def _commit_words(chosen: CommitThen, moment: datetime.datetime) -> str:
    if chosen.run is not None:
        return f"Quotas: the manifests at commit {chosen.commit[:12]}, applied at {chosen.run.ended:%Y-%m-%d %H:%M:%S} UTC"
    return f"Quotas: the manifests at commit {chosen.commit[:12]}, the newest of {moment:%Y-%m-%d %H:%M} UTC by its date"


def proposal_or_empty(then: QuotasThen) -> Proposal:
    """What to judge traffic with."""
    return then.proposal or Proposal(current=None, proposed={}, declared={}, spec=then.spec)


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitThen:
    """The commit of the manifests in effect at a time. ``run``: the run of an audit file that applied it, if one is known."""

    commit: str
    run: RunRecord | None = None


def commit_then(paths: Sequence[str], moment: datetime.datetime, runs: Sequence[RunRecord]) -> CommitThen:
    """The commit that the last run before ``moment`` applied; without runs the newest one of that time on this branch.

    Raises ``GitError`` without a repository, or when its history does not reach back so far.
    """
    applied = [run for run in runs if run.ended <= moment and run.result in _APPLIED and not run.validate_only and run.commit]
    if applied:
        last = max(applied, key=lambda run: run.ended)
        assert last.commit is not None
        return CommitThen(commit=last.commit, run=last)
    git = repository_around(paths[0])
    commit = git.commit_before(moment)
    if commit is None:
        more = ". This is a shallow clone, fetch its whole history" if git.shallow() else ""
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


def current_place(at: ManifestsAt, *, cluster: str | None, entity: Entity, key: str) -> tuple[str, int] | None:
    """The file, relative to the top, and the line of a quota."""
    quota = _declared(at, cluster, entity, key)
    return None if quota is None else (os.path.relpath(quota.source.file, at.folder), quota.source.line)


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
    ended = [
        run.ended
        for run in runs
        if run.commit is not None and run.result in _APPLIED and not run.validate_only and then.git.contains(run.commit, commit)
    ]
    return min(ended, default=None)
