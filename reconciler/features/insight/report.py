"""The state of clusters at one moment, for people to look at: declared, live, drift, last runs, and rates against limits."""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

import reconciler
from reconciler.documents import ApplySummary, AuditRecord
from reconciler.errors import BaselineError, FileAccessError, GitError, ManifestError, ReconcilerError, UntrustedError, UsageError
from reconciler.features.insight.observe import Headroom, observe
from reconciler.features.insight.predictions import RunComparison, compare_runs
from reconciler.features.insight.rate_sources import RateRequest
from reconciler.features.insight.runs import RecordedRuns
from reconciler.features.prometheus import trusted_reader
from reconciler.manifest import allocations, budgets_of
from reconciler.model import (
    BaselineOrigin,
    ClusterFailure,
    ClusterIdentity,
    CurrentState,
    DriftClass,
    Entity,
    Finding,
    ManifestCommit,
    Observed,
    Quotas,
    Severity,
    Span,
    ValueExpiry,
    any_matches,
    display_name,
    slug_of,
)
from reconciler.ports import Clock, Progress
from reconciler.workflows import (
    PLACEHOLDER,
    Access,
    GivenBaseline,
    Intent,
    References,
    configured_server,
    current_view,
    divide_totals,
    drift_from,
    for_every,
    given_baseline,
    load_every_intent,
    load_intent,
    quota_reader,
    read_for,
    source_of,
    unread_owners,
    with_lint,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class EntityOverview:
    """One entity on all sides. ``None``: not there, or, for ``live`` of a cluster that was not read, not known."""

    entity: Entity
    """Entity type to name. ``None`` is the default entity of that type."""
    drift: DriftClass | None
    """Of drift, as the command drift has it. ``None``: not compared."""
    declared: Quotas | None
    """``None``: no manifest declares it."""
    live: Quotas | None
    """``None``: not there, or the cluster was not read."""
    owner: str | None = None
    """Owner in the manifest. ``None`` without one."""
    note: str | None = None
    """Note in the manifest. ``None`` without one."""
    source: Span | None = None
    """Where it is declared."""
    protected: bool = False
    """True when spec.protected covers the entity: it is never pruned."""
    in_scope: bool = True
    """False for an entity that no run of this repository writes."""
    expiries: Mapping[str, ValueExpiry] = field(default_factory=dict)
    """By key, the declared values that expire, or expired."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetUse:
    """The budget of an owner for one key on each broker, and how much its entities have of it."""

    owner: str
    """The owner."""
    key: str
    """The quota key."""
    budget: float
    """What the limits may add up to on each broker."""
    allocated: float
    """What they add up to."""
    entities: int
    """How many entities have a limit of this key."""
    used: float | None = None
    """The largest sum of the rates of the owner's quota groups on one broker. ``None`` where rates were not read."""

    @property
    def free(self) -> float:
        """The part of the budget that is not allocated. Negative above the budget."""
        return self.budget - self.allocated


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterOverview:
    """One cluster. ``failure``: why it could not be read; then ``entities`` are what is declared, as far as that is known.

    ``callback`` and ``static_defaults`` (by key): why other limits than its quotas may apply, as ``resolve`` states it.
    ``counts`` has every class of drift when the cluster was read.
    """

    cluster: ClusterIdentity
    """The cluster. A field is ``None`` when its value is not known."""
    prune: str | None = None
    """What an apply does with entities that no manifest declares. ``None`` when the cluster could not be read."""
    observed: Observed | None = None
    """When and from where the quotas were read. ``None`` when the cluster could not be read."""
    complete: bool = True
    """False when only some manifests were read."""
    baseline: BaselineOrigin | None = None
    """What was applied last, for the classes of drift. ``None`` when no baseline was given."""
    counts: Mapping[DriftClass, int] = field(default_factory=dict)
    """Entities by class of drift. ``None`` when the cluster could not be read."""
    entities: tuple[EntityOverview, ...] = ()
    """Declared or live, in canonical order."""
    callback: str | None = None
    """Why the brokers' quotas do not mean what Kafka's own code makes of them. ``None``: they do, as far as is known."""
    static_defaults: Mapping[str, str] = field(default_factory=dict)
    """By key, why a client without a quota may be limited all the same."""
    notes: tuple[str, ...] = ()
    """Sentences for people about what the result covers and what it does not."""
    findings: tuple[Finding, ...] = ()
    """Findings about the manifests and the cluster."""
    failure: ClusterFailure | None = None
    budgets: tuple[BudgetUse, ...] = ()
    """By owner and key."""
    loads: Headroom | None = None
    """Rates of quota groups beside their limits. ``None``: not read."""
    comparisons: tuple[RunComparison, ...] = ()
    """What backtests predicted of the runs of the last 30 days, beside the traffic since, the latest run first."""

    @property
    def shown_name(self) -> str:
        """The name or id of the cluster, ready to be shown."""
        name = self.cluster.name or self.cluster.id
        return display_name(name) if name else "the cluster"

    @property
    def differs(self) -> bool:
        """True when an entity is in a class of drift that is a difference."""
        return any(count for drift, count in self.counts.items() if drift.is_difference)

    @property
    def declared(self) -> int:
        """The number of entities that the manifests declare here."""
        return sum(1 for entity in self.entities if entity.declared is not None)

    @property
    def live(self) -> int | None:
        """The number of entities on the cluster. ``None`` when it was not read."""
        return sum(1 for entity in self.entities if entity.live is not None) if self.observed is not None else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Overview:
    """All of it. ``runs`` are the latest first. ``runs_left_out`` older ones are in the audit files and not here."""

    at: datetime.datetime
    """UTC."""
    version: str
    """Version of kafka-quotas."""
    source: ManifestCommit
    """The commit of the manifests, when they are in git."""
    clusters: tuple[ClusterOverview, ...]
    """One object for each cluster, by name."""
    runs: tuple[AuditRecord, ...] = ()
    runs_left_out: int = 0
    """Older runs of the audit files that are not listed."""
    audited: bool = False
    """True when an audit file was given."""
    notes: tuple[str, ...] = ()
    """Sentences for people about what the result covers and what it does not."""


_NO_CLUSTER: Final = (
    "the paths have no Cluster manifest to report on. Add one, or name the cluster with --bootstrap-server, --zookeeper or "
    "--current"
)
_WITH_GROUPS: Final = (
    "the brokers have the plugin of groups, and this page does not resolve groups. 'kafka-quotas resolve' shows the limits of "
    "clients"
)
_PARALLEL: Final = 8
"""Clusters that are read at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportRequest:
    """Which clusters, and how to reach them: one by its name or by ``access``, or all of the manifests.

    ``{cluster}`` in the names of the baseline and of the snapshot stands for each cluster's slug.
    """

    paths: tuple[str, ...] = (".",)
    cluster: str | None = None
    access: Access = field(default_factory=Access)
    baseline: str | None = None
    """A git reference or file."""
    trusted_ref: str | None = None
    predicted: tuple[ApplySummary, ...] = ()
    """Runs with predictions."""

    @property
    def one(self) -> bool:
        """True when a single cluster is meant."""
        access = self.access
        current = access.current if access.current is not None and PLACEHOLDER not in access.current else None
        return any((self.cluster, access.bootstrap_server, access.zookeeper, current))

    @property
    def has_baselines(self) -> bool:
        """True when every cluster has a baseline of its own."""
        return self.baseline is not None and PLACEHOLDER in self.baseline

    def of_cluster(self, cluster: str | None) -> ReportRequest:
        """The same for one cluster: its snapshot and baseline."""
        slug, access = slug_of(cluster or ""), self.access
        return replace(
            self,
            access=access if access.current is None else replace(access, current=access.current.replace(PLACEHOLDER, slug)),
            baseline=None if self.baseline is None else self.baseline.replace(PLACEHOLDER, slug),
        )


def load_report_intents(asked: ReportRequest) -> tuple[Intent | ClusterFailure, ...]:
    """The manifests' intent for each cluster. Raises ``ManifestError``, ``UsageError``, ``GitError`` or ``UntrustedError``."""
    references = References(trusted=asked.trusted_ref)
    if asked.one:
        intent = load_intent(asked.paths, cluster=asked.cluster, references=references, by_owner=True)
        return (intent,)
    return load_every_intent(asked.paths, fail_on=Severity.ERROR, references=references, if_none=_NO_CLUSTER, by_owner=True)


def make_report(
    intents: Sequence[Intent | ClusterFailure],
    asked: ReportRequest,
    *,
    runs: RecordedRuns | None,
    clock: Clock,
    progress: Progress,
) -> Overview:
    """Read every cluster, some at once. One that cannot be read is in the result with the reason, and stops no other.

    Of a baseline of all: raises ``GitError``, ``ManifestError``, ``BaselineError`` or ``UntrustedError``, and ``UsageError`` for
    a file, which is of one cluster. A cluster's own baseline that cannot be used is a note of the cluster.
    """
    given = None
    if asked.baseline is not None and not asked.has_baselines:
        if len(intents) > 1 and Path(asked.baseline).is_file():
            raise UsageError(
                "a baseline file is of one cluster. Choose it with --cluster, give a git reference, or a name with {cluster} in "
                "it that is another file for each"
            )
        trusted = next((intent.trusted for intent in intents if isinstance(intent, Intent)), None)
        given = given_baseline(asked.baseline, asked.paths, trusted=trusted)

    def read_one(intent: Intent) -> ClusterOverview:
        return _overview(with_lint(intent), asked, given, now=clock.now(), progress=progress)

    read = for_every(intents, read_one, parallel=_PARALLEL)
    recorded = runs or RecordedRuns()
    return Overview(
        at=clock.now(),
        version=reconciler.__version__,
        source=source_of(Path(asked.paths[0])),
        clusters=tuple(
            ClusterOverview(cluster=each.cluster, findings=each.findings, failure=each)
            if isinstance(each, ClusterFailure)
            else each
            for each in read
        ),
        runs=recorded.runs,
        runs_left_out=recorded.left_out,
        audited=runs is not None,
        notes=recorded.notes,
    )


def _overview(
    intent: Intent, asked: ReportRequest, given: GivenBaseline | None, *, now: datetime.datetime, progress: Progress
) -> ClusterOverview:
    name = intent.spec.name
    progress.step(f"reading the quotas of cluster {display_name(name)}" if name else "reading the cluster")
    own = asked.of_cluster(name)
    try:
        with quota_reader(intent.spec, own.access, trusted=intent.trusted) as reader:
            state = read_for(intent, reader)
            try:
                if asked.has_baselines and own.baseline is not None:
                    given = given_baseline(own.baseline, asked.paths, trusted=intent.trusted)
                overview = overview_of(intent, state, source=reader, baseline=given)
            except (BaselineError, FileAccessError, GitError, ManifestError) as error:
                if not asked.has_baselines:
                    raise
                overview = overview_of(intent, state, source=reader)
                overview = replace(overview, notes=(f"the baseline cannot be used: {error}", *overview.notes))
            view = current_view(state, source=reader, name=name, spec=intent.spec)
    except ReconcilerError as error:
        return declared_only(intent, error)
    if asked.predicted:
        compared = compare_runs(asked.predicted, view, intent.spec, intent.trusted, now=now, progress=progress)
        overview = replace(overview, comparisons=compared)
    server = configured_server(intent.spec, intent.trusted)
    if server is None:
        return overview
    owners = {entity.entity: entity.owner for entity in overview.entities if entity.owner is not None}
    rates = RateRequest(server=server, read_file=trusted_reader(intent.trusted))
    try:
        return with_use(replace(overview, loads=observe(view, owners, rates)))
    except ReconcilerError as error:
        return replace(overview, notes=(*overview.notes, f"The rates of quota groups are not known: {error}"))


def overview_of(intent: Intent, state: CurrentState, *, source: object, baseline: GivenBaseline | None = None) -> ClusterOverview:
    """A cluster that was read from ``source``. Raises ``BaselineError`` for a baseline of another cluster."""
    view = current_view(state, source=source, name=intent.spec.name, spec=intent.spec)
    if intent.desired.with_units:
        intent = divide_totals(intent, state)
    drift = drift_from(intent, state, baseline, source=ManifestCommit())
    unreadable = (node.message for node in state.unreadable)
    return ClusterOverview(
        cluster=view.cluster,
        prune=drift.prune.value,
        observed=drift.observed,
        complete=drift.complete,
        baseline=drift.baseline,
        counts=drift.counts,
        entities=tuple(_entities(intent, state.entities, {entity.entity: entity.drift for entity in drift.entities})),
        callback=_WITH_GROUPS if view.caveats.groups else view.caveats.callback,
        static_defaults=view.caveats.static_defaults,
        notes=tuple(dict.fromkeys((*state.notes, *unreadable, *view.notes, *intent.notes, *unread_owners(intent.scope.errors)))),
        findings=drift.findings,
        budgets=tuple(
            BudgetUse(
                owner=each.owner,
                key=each.key.value,
                budget=each.budget.value,
                allocated=each.allocated,
                entities=each.entities,
            )
            for each in allocations(budgets_of(intent.loaded.repository.budgets, intent.spec), intent.desired.entities.values())
        ),
    )


def with_use(overview: ClusterOverview) -> ClusterOverview:
    """The budgets with what their entities use: the largest sum of an owner's rates on one broker."""
    if overview.loads is None or overview.loads.at is None:
        return overview
    sums: dict[tuple[str, str], dict[str, float]] = {}
    for group in overview.loads.groups:
        if group.owner is not None:
            of_brokers = sums.setdefault((group.owner, group.key.value), {})
            of_brokers[group.broker] = of_brokers.get(group.broker, 0.0) + group.rate
    budgets = (
        replace(budget, used=max(sums.get((budget.owner, budget.key), {}).values(), default=0.0)) for budget in overview.budgets
    )
    return replace(overview, budgets=tuple(budgets))


def declared_only(intent: Intent, error: ReconcilerError) -> ClusterOverview:
    """A cluster that could not be read: what is declared, and why there is no more."""
    identity = ClusterIdentity(name=intent.spec.name, id=intent.spec.cluster_id)
    failure = ClusterFailure(
        cluster=identity,
        failure_reason=error.failure_reason,
        message=str(error),
        skipped=isinstance(error, UntrustedError),
        findings=error.findings if isinstance(error, ManifestError) else (),
    )
    return ClusterOverview(
        cluster=identity,
        prune=intent.spec.prune.value,
        complete=intent.desired.complete,
        entities=tuple(_entities(intent, None, {})),
        notes=(*intent.notes, *unread_owners(intent.scope.errors)),
        findings=(*intent.findings, *intent.owner_errors),
        failure=failure,
    )


def _entities(
    intent: Intent, live: Mapping[Entity, Quotas] | None, classes: Mapping[Entity, DriftClass]
) -> Iterator[EntityOverview]:
    """One without a difference is in sync, or, when only some manifests were read, was not compared."""
    desired, known = intent.desired, live or {}
    for entity in sorted(desired.entities.keys() | known.keys() | classes.keys(), key=lambda entity: entity.sort_key):
        declared = desired.entities.get(entity)
        same = DriftClass.IN_SYNC if desired.complete or declared is not None else None
        yield EntityOverview(
            entity=entity,
            drift=None if live is None else classes.get(entity, same),
            declared={key.value: quota.value for key, quota in declared.quotas.items()} if declared else None,
            live=known.get(entity),
            owner=declared.owner if declared else None,
            note=declared.note if declared else None,
            source=declared.source if declared else None,
            protected=bool(intent.spec.safety.protected) and any_matches(intent.spec.safety.protected, entity),
            in_scope=intent.spec.scope.contains(entity),
            expiries={key.value: expiry.of_value for key, expiry in declared.expiries.items()} if declared else {},
        )


def has_failed(overview: Overview) -> bool:
    """True when a cluster could not be read that should have been."""
    return any(cluster.failure is not None and not cluster.failure.skipped for cluster in overview.clusters)
