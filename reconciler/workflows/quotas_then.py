"""The quotas that a cluster had at a time: of the manifests at the commit in effect then, over what the cluster has beside them.

Every source is optional. A source that is missing or cannot be read is named, with what would help.
"""

from __future__ import annotations

import datetime
from dataclasses import dataclass, field, replace

from reconciler.errors import BackendError, GitError, ManifestError, ReconcilerError, UsageError
from reconciler.model import ClusterIdentity, ClusterSpec, CurrentState, DesiredState, MissingEvidence, ObservedFrom, RunRecord
from reconciler.workflows.backtest import Proposal, propose
from reconciler.workflows.connect import Access, quota_reader, read_state
from reconciler.workflows.git_manifests import ManifestsAt, manifests_at
from reconciler.workflows.load import LoadedManifests, desired_for, load_manifests, stop_on
from reconciler.workflows.quota_history import CommitThen, commit_then

_ORIGINS = {ObservedFrom.SNAPSHOT: "the snapshot", ObservedFrom.BROKER: "the brokers", ObservedFrom.ZOOKEEPER: "ZooKeeper"}


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
    """Whether the Cluster manifest or the command line says where the cluster is."""


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
        mine = tuple(one for one in sources.runs if spec.name is None or one.is_of(ClusterIdentity(name=spec.name)))
        try:
            chosen = commit_then(paths, moment, mine)
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
