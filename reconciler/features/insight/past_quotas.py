"""The history of a quota in git: the commits in effect at a time, the commit that set a value, and its declaring line."""

from __future__ import annotations

import contextlib
import datetime
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from reconciler.cli.traffic_options import ReadingOptions
from reconciler.documents import AuditRecord
from reconciler.errors import BackendError, GitError, ManifestError, UsageError
from reconciler.features.insight.incident import LimitOrigin, MissingEvidence
from reconciler.manifest import compute_units
from reconciler.model import (
    DEFAULT,
    ApplyResult,
    BrokerFacts,
    ClusterIdentity,
    ClusterSpec,
    CurrentState,
    DesiredQuota,
    DesiredState,
    Entity,
    EntityType,
    ObservedFrom,
    QuotaKey,
    UnitQuota,
    WrittenQuota,
)
from reconciler.workflows import (
    Access,
    LoadedManifests,
    ManifestsAt,
    Proposal,
    desired_for,
    load_manifests,
    make_proposal,
    manifests_at,
    quota_reader,
    read_state,
    repository_around,
    stop_on,
)

_MOST_STEPS: Final = 20
"""Commits that moved or reformatted the line of a value, and are passed over."""
_APPLIED: Final = (ApplyResult.DONE, ApplyResult.PARTIAL)


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitThen:
    """The commit of the manifests in effect from ``begin`` on; ``commit``: ``None`` before the first one.

    ``run``: the run of an audit file that applied it; without one the commit counts from its date on.
    """

    commit: str | None
    begin: datetime.datetime
    run: AuditRecord | None = None


def commits_then(
    paths: Sequence[str], since: datetime.datetime, until: datetime.datetime, runs: Sequence[AuditRecord]
) -> tuple[CommitThen, ...]:
    """The commit in effect at ``since``, and each one that came into effect before ``until``, in order of time.

    What runs applied counts from the first of them on, before it the commits of the checked-out branch by their dates. Raises
    ``GitError`` without a repository, or when its history is cut off.
    """
    in_time = sorted((run for run in runs if run.ended < until and _applied_commit(run)), key=lambda run: run.ended)
    applied = [CommitThen(commit=_applied_commit(run), begin=run.ended, run=run) for run in in_time]
    before = [chosen for chosen in applied if chosen.begin <= since]
    if before:
        return (before[-1], *applied[len(before) :])
    git = repository_around(paths[0])
    newest = next((commit for commit, _ in git.dated_commits(until=since, places=[""], most=1)), None)
    if newest is None and git.shallow():
        raise GitError(
            f"the repository {git.top} has no commit from before {since:%Y-%m-%d %H:%M} UTC. This is a shallow clone, fetch its "
            "whole history"
        )
    end = applied[0].begin if applied else until
    dated = git.dated_commits(until=end, since=since, places=[git.place(path) for path in paths])
    later = (CommitThen(commit=commit, begin=at) for commit, at in sorted(dated, key=lambda item: item[1]) if since < at < end)
    return (CommitThen(commit=newest, begin=since), *later, *applied)


def limit_origin(
    then: ManifestsAt, paths: Sequence[str], *, cluster: str | None, entity: Entity, key: str, runs: Sequence[AuditRecord] = ()
) -> LimitOrigin | None:
    """The commit that gave this quota the value that it has in ``then``; ``None`` when the manifests do not declare it.

    A commit that moves or reformats the line is passed over. Raises ``GitError`` when git does not know.
    """
    here, quota = then, declared_quota(then, cluster, entity, key)
    if quota is None:
        return None
    for _ in range(_MOST_STEPS):
        path = here.path(quota.source)
        blamed = here.git.blame_line(here.commit, path, quota.source.line)
        before: DesiredQuota | UnitQuota | None = None
        if blamed.parent is not None:
            # What a parent with errors meant is not known: the line is this commit's in any case.
            with contextlib.suppress(ManifestError, UsageError):
                earlier = manifests_at(blamed.parent, paths)
                before = declared_quota(earlier, cluster, entity, key)
        if before is not None and _meaning(before) == _meaning(quota):
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
            # The first run of this commit or a later one that can have written the entity.
            applied=min(
                (
                    run.ended
                    for run in runs
                    if (commit := _applied_commit(run)) is not None
                    and run.may_have_written(entity)
                    and then.git.contains(commit, blamed.commit)
                ),
                default=None,
            ),
        )
    return None


def _meaning(quota: WrittenQuota) -> object:
    """The number, or what the number is computed from."""
    return quota.unit if isinstance(quota, UnitQuota) else quota.value


def _applied_commit(run: AuditRecord) -> str | None:
    return run.run.source.commit if run.result in _APPLIED and run.has_written else None


def declared_quota(at: ManifestsAt, cluster: str | None, entity: Entity, key: str) -> DesiredQuota | UnitQuota | None:
    """Return what the manifests of a commit declare. Raises ``ManifestError`` and ``UsageError`` for unreadable ones."""
    loaded = replace(at.loaded, selected=None, complete=True)
    _, desired, _ = desired_for(loaded, cluster)
    declared = desired.entities.get(entity)
    return None if declared is None else declared.quotas.get(QuotaKey(key)) or declared.units.get(QuotaKey(key))


_ORIGINS: Final = {ObservedFrom.SNAPSHOT: "the snapshot", ObservedFrom.BROKER: "the brokers", ObservedFrom.ZOOKEEPER: "ZooKeeper"}
_MOST_PARTS: Final = 200
_COLUMNS: Final = {EntityType.USER.value: "user", EntityType.CLIENT_ID.value: "client_id"}
_WHICH_COMMIT: Final = "which commit set the limit"


@dataclass(frozen=True, slots=True, kw_only=True)
class IncidentRequest:
    """Which client, when, and where quotas and traffic may come from.

    ``paths``: of manifests; empty: those of the working directory where ``cluster`` is named. ``runs``: of audit files. Without
    ``traffic``, that of the Cluster manifest is read.
    """

    client: Entity
    at: datetime.datetime | None
    since: datetime.datetime
    until: datetime.datetime
    paths: tuple[str, ...] = ()
    cluster: str | None = None
    access: Access = field(default_factory=Access)
    runs: tuple[AuditRecord, ...] = ()
    traffic: tuple[str, ...] = ()
    reading: ReadingOptions | None = None

    @property
    def names(self) -> tuple[tuple[str, str | None], ...]:
        """The names by the columns of traffic; none of an address."""
        return tuple((_COLUMNS[kind], str(name)) for kind, name in self.client.parts if kind in _COLUMNS)


@dataclass(frozen=True, slots=True, kw_only=True)
class QuotaPart:
    """A stretch of time with the same quotas. ``proposal``: they are its proposed ones. ``None``: they are not known."""

    begin: datetime.datetime
    end: datetime.datetime
    proposal: Proposal | None = None
    manifests: ManifestsAt | None = None
    words: str | None = None

    def limits_of(self, client: Entity) -> dict[tuple[Entity, str], float] | None:
        """Return the quotas that may limit the client, as far as its names are known. ``None``: the quotas are not known."""
        if self.proposal is None:
            return None
        entities = self.proposal.proposed.items()
        return {(entity, key): value for entity, of in entities if _could_limit(entity, client) for key, value in of.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class QuotasThen:
    """What was found. ``parts`` are in order of time and leave no pause."""

    spec: ClusterSpec
    identity: ClusterIdentity
    parts: tuple[QuotaPart, ...]
    paths: tuple[str, ...] = ()
    assumed: str | None = None
    """Quotas that were read later than this time, and are taken to be those of it."""
    evidence: tuple[str, ...] = ()
    missing: tuple[MissingEvidence, ...] = ()

    def at(self, second: float) -> QuotaPart:
        """The part of a moment, in seconds since 1970."""
        return next((part for part in reversed(self.parts) if part.begin.timestamp() <= second), self.parts[0])


def read_quotas_then(asked: IncidentRequest) -> QuotasThen:
    """Read every source that there is.

    Raises ``ManifestError`` and ``UsageError`` for manifests that were named and have errors, and ``FileAccessError`` and
    ``WrongClusterError`` for a snapshot that cannot be used.
    """
    spec, loaded = ClusterSpec(), None
    if asked.paths or asked.cluster is not None:
        loaded = load_manifests(asked.paths or (".",))
        stop_on(loaded.findings)
        spec = desired_for(loaded, asked.cluster)[0]
    missing: list[MissingEvidence] = []
    current = _current(spec, asked, missing)
    declared = _declared_parts(asked, loaded, spec, QuotaPart(begin=asked.since, end=asked.until), missing)
    parts = _with_current(declared, current, spec, asked.client, missing)
    begins = ["", *(f" from {part.begin:%Y-%m-%d %H:%M:%S} UTC on" for part in parts[1:])]
    evidence = [f"Quotas{when}: {part.words}" for when, part in zip(begins, parts, strict=True) if part.words is not None]
    if current is not None:
        read = f"{_ORIGINS[current.observed.origin]}, read at {current.observed.at:%Y-%m-%d %H:%M:%S} UTC"
        evidence.append(f"Quotas beside the manifests: from {read}")
    return QuotasThen(
        spec=spec,
        identity=ClusterIdentity(name=spec.name, id=current.cluster.id if current is not None else spec.cluster_id),
        parts=parts,
        paths=asked.paths or (".",),
        assumed=_assumed(current, parts, asked.client),
        evidence=tuple(evidence),
        missing=tuple(dict.fromkeys(missing)),
    )


def _could_limit(entity: Entity, client: Entity) -> bool:
    names = dict(client.parts)
    if ("ip" in names) is not ("ip" in entity.types):
        return False
    return all(name is DEFAULT or kind not in names or names[kind] == name for kind, name in entity.parts)


_Declared = tuple[QuotaPart, DesiredState | None]


def _declared_parts(
    asked: IncidentRequest, loaded: LoadedManifests | None, spec: ClusterSpec, whole: QuotaPart, missing: list[MissingEvidence]
) -> list[_Declared]:
    """The parts of a time with what manifests declare in them; ``None`` where that is not known."""
    paths = asked.paths or (".",)
    if loaded is None:
        because, remedy = "no manifests were given", "give their folder as PATH"
        missing.append(MissingEvidence(what=_WHICH_COMMIT, because=because, remedy=remedy))
        return [(whole, DesiredState())]
    runs = tuple(run for run in asked.runs if spec.name is None or run.is_of(ClusterIdentity(name=spec.name)))
    try:
        chosen = commits_then(paths, whole.begin, whole.end, runs)
    except (GitError, UsageError) as error:
        missing.append(MissingEvidence(what=_WHICH_COMMIT, because=str(error), remedy="give PATH in a whole git repository"))
        return [(whole, DesiredState())]
    if len(chosen) > _MOST_PARTS:
        raise UsageError(f"The manifests changed {len(chosen):,} times between --since and --until: narrow it")
    if not asked.runs:
        what = "whether and when " + ("that commit was" if len(chosen) == 1 else "those commits were") + " applied"
        remedy = "give --audit FILE, which apply --audit and run --audit write"
        missing.append(MissingEvidence(what=what, because="no audit file was given", remedy=remedy))
    parts: list[_Declared] = []
    for commit, end in zip(chosen, [*(each.begin for each in chosen[1:]), whole.end], strict=True):
        begin = max(whole.begin, commit.begin)
        part = QuotaPart(begin=begin, end=end, words=_commit_words(commit, begin))
        try:
            parts += _parts_of_commit(part, commit, paths, asked.cluster)
        except (GitError, ManifestError, UsageError) as error:
            what = f"which limits were in effect from {begin:%Y-%m-%d %H:%M:%S} UTC on"
            missing.append(MissingEvidence(what=what, because=str(error)))
            parts.append((part, None))
    return parts


def _parts_of_commit(part: QuotaPart, commit: CommitThen, paths: tuple[str, ...], cluster: str | None) -> Iterator[_Declared]:
    """One, or one for each time until a value expires."""
    if commit.commit is None:
        yield part, DesiredState()
        return
    manifests = manifests_at(commit.commit, paths)
    begin = part.begin
    while begin < part.end:
        desired = desired_for(replace(manifests.loaded, selected=None, complete=True, at=begin), cluster)[1]
        expiry = desired.next_expiry()
        end = part.end if expiry is None or expiry <= begin else min(expiry, part.end)
        yield replace(part, begin=begin, end=end, manifests=manifests), desired
        begin = end


def _with_current(
    declared: Sequence[_Declared], current: CurrentState | None, spec: ClusterSpec, client: Entity, missing: list[MissingEvidence]
) -> tuple[QuotaPart, ...]:
    """The parts with all quotas: those of manifests, over those that no manifest declares at any of these times.

    Parts after each other that have the same quotas for the client are one.
    """
    states = [desired for _, desired in declared if desired is not None]
    by_manifests = {
        (entity, key.value) for state in states for entity, of in state.entities.items() for key in (*of.quotas, *of.units)
    }
    known = {} if current is None else current.entities
    beside = {
        entity: {key: value for key, value in values.items() if (entity, key) not in by_manifests}
        for entity, values in known.items()
    }
    facts = BrokerFacts() if current is None else BrokerFacts(brokers=current.brokers, leaders=current.leaders)
    parts: list[QuotaPart] = []
    for given, desired in declared:
        part = given
        if desired is not None:
            numbers, _ = compute_units(desired, facts)
            if numbers.with_units:
                missing.append(_TOTALS if current is None else replace(_TOTALS, remedy=None))
            made = make_proposal(replace(numbers, with_units=()), None, spec)
            entities = {**beside, **made.proposed}
            proposed = {entity: {**beside.get(entity, {}), **made.proposed.get(entity, {})} for entity in entities}
            made = replace(made, proposed={entity: values for entity, values in proposed.items() if values})
            if current is not None:
                version = current.cluster.kafka_version
                made = replace(made, brokers=current.brokers, leaders=current.leaders, kafka_version=version)
            part = replace(given, proposal=made)
        limits = part.limits_of(client)
        if parts and limits is not None and limits == parts[-1].limits_of(client):
            parts[-1] = replace(parts[-1], end=part.end)
        else:
            parts.append(part)
    return tuple(parts)


_TOTALS: Final = MissingEvidence(
    what="limits that are declared as totals of the cluster",
    because="the number of brokers is not known",
    remedy="give --current FILE, a snapshot of export, or --bootstrap-server HOST:PORT",
)


def _assumed(current: CurrentState | None, parts: Sequence[QuotaPart], client: Entity) -> str | None:
    """Words for quotas that were read from the cluster at a later time, and may limit the client."""
    if current is None or current.observed.at <= parts[0].begin:
        return None
    is_used = any(
        part.proposal is not None and key not in part.proposal.declared.get(entity, {})
        for part in parts
        for entity, key in part.limits_of(client) or ()
    )
    return f"{_ORIGINS[current.observed.origin]} of {current.observed.at:%Y-%m-%d %H:%M:%S} UTC" if is_used else None


def _current(spec: ClusterSpec, asked: IncidentRequest, missing: list[MissingEvidence]) -> CurrentState | None:
    """Return the quotas of the cluster or snapshot. ``None``: they are not known."""
    what, because = "quotas that the manifests do not declare", "neither a snapshot nor a connection was given"
    remedy = "give --current FILE or --bootstrap-server HOST:PORT"
    access, known = asked.access, spec.connection
    is_named = access.current or access.bootstrap_server or access.zookeeper
    if is_named or (known is not None and (known.bootstrap_servers or known.zookeeper)):
        try:
            with quota_reader(spec, access) as reader:
                return read_state(spec, reader)
        except BackendError as error:
            because, remedy = str(error), "give --current FILE, a snapshot of export"
    missing.append(MissingEvidence(what=what, because=because, remedy=remedy))
    return None


def _commit_words(chosen: CommitThen, moment: datetime.datetime) -> str:
    if chosen.commit is None:
        return "the manifests did not exist yet"
    how = f"the newest of {moment:%Y-%m-%d %H:%M} UTC by its date"
    if chosen.run is not None:
        how = f"applied at {chosen.run.ended:%Y-%m-%d %H:%M:%S} UTC"
    return f"the manifests at commit {chosen.commit[:12]}, {how}"
