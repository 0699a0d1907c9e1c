"""The state of clusters at one moment, for people to look at: declared, live, drift, budgets, and what became of predictions."""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from reconciler.errors import ReconcilerError, UntrustedError
from reconciler.features.insight.predictions import RunComparison, compare_runs
from reconciler.manifest import OwnerBudget, allocations, budgets_of
from reconciler.model import (
    ApplyReport,
    ClusterFailure,
    ClusterIdentity,
    CurrentState,
    DriftClass,
    Entity,
    Finding,
    ManifestCommit,
    Observed,
    Prune,
    Quotas,
    Severity,
    Span,
    any_matches,
    display_name,
)
from reconciler.ports import Progress
from reconciler.workflows import (
    Access,
    Intent,
    References,
    current_view,
    divide_totals,
    drift_from,
    failure_of,
    for_every,
    load_every_intent,
    load_intent,
    quota_reader,
    read_for,
    source_of,
    with_lint,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class EntityOverview:
    """One entity on all sides. ``None``: not there, or, for ``live`` of a cluster that was not read, not known.

    ``drift``: ``None`` where it was not compared. ``in_scope``: false for an entity that no run of this repository writes.
    """

    entity: Entity
    drift: DriftClass | None
    declared: Quotas | None
    live: Quotas | None
    owner: str | None = None
    note: str | None = None
    source: Span | None = None
    protected: bool = False
    in_scope: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterOverview:
    """One cluster. ``failure``: why it could not be read; then ``entities`` are what is declared, as far as that is known.

    ``callback`` and ``static_defaults`` (by key): why other limits than its quotas may apply, as ``resolve`` states it.
    ``counts`` has every class of drift when the cluster was read. ``complete``: false when only some manifests were read.
    ``entities`` are in canonical order, ``comparisons`` those of the last 30 days, the latest run first.
    """

    cluster: ClusterIdentity
    prune: Prune = Prune.NEVER
    observed: Observed | None = None
    complete: bool = True
    counts: Mapping[DriftClass, int] = field(default_factory=dict)
    entities: tuple[EntityOverview, ...] = ()
    callback: str | None = None
    static_defaults: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    findings: tuple[Finding, ...] = ()
    failure: ClusterFailure | None = None
    budgets: tuple[OwnerBudget, ...] = ()
    comparisons: tuple[RunComparison, ...] = ()

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
        return sum(entity.declared is not None for entity in self.entities)

    @property
    def live(self) -> int:
        """The number of entities on the cluster, as far as it was read."""
        return sum(entity.live is not None for entity in self.entities)


@dataclass(frozen=True, slots=True, kw_only=True)
class Overview:
    """All clusters at one moment, UTC, by name, and the commit of the manifests, when they are in git."""

    at: datetime.datetime
    source: ManifestCommit
    clusters: tuple[ClusterOverview, ...]

    @property
    def has_failed(self) -> bool:
        """True when a cluster could not be read that should have been."""
        return any(cluster.failure is not None and not cluster.failure.skipped for cluster in self.clusters)


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


def make_report(
    paths: Sequence[str],
    cluster: str | None,
    access: Access,
    *,
    trusted_ref: str | None,
    predicted: Sequence[ApplyReport],
    progress: Progress,
) -> Overview:
    """Read one cluster by its name or by ``access``, or every cluster of the manifests, some at once.

    One that cannot be read is in the result with the reason, and stops no other. ``predicted``: runs with predictions. Raises
    ``ManifestError``, ``UsageError``, ``GitError`` or ``UntrustedError`` for manifests that cannot be read.
    """
    references, now = References(trusted=trusted_ref), datetime.datetime.now(datetime.UTC)
    intents: Sequence[Intent | ClusterFailure]
    if any((cluster, access.bootstrap_server, access.zookeeper, access.current)):
        intents = (load_intent(paths, cluster=cluster, references=references),)
    else:
        intents = load_every_intent(paths, fail_on=Severity.ERROR, references=references, if_none=_NO_CLUSTER)

    def read_one(given: Intent) -> ClusterOverview:
        intent = with_lint(given)
        name = intent.spec.name
        progress.step(f"reading the quotas of cluster {display_name(name)}" if name else "reading the cluster")
        try:
            with quota_reader(intent.spec, access, trusted=intent.trusted) as reader:
                state = read_for(intent, reader)
                overview = overview_of(intent, state, source=reader)
                view = current_view(state, source=reader, name=name, spec=intent.spec)
        except ReconcilerError as error:
            return declared_only(intent, error)
        compared = compare_runs(predicted, view, intent.spec, intent.trusted, now=now, progress=progress)
        return replace(overview, comparisons=compared)

    read = for_every(intents, read_one, parallel=_PARALLEL)
    clusters = tuple(_unread(each) if isinstance(each, ClusterFailure) else each for each in read)
    return Overview(at=now, source=source_of(Path(paths[0])), clusters=clusters)


def _unread(failure: ClusterFailure) -> ClusterOverview:
    return ClusterOverview(cluster=failure.cluster, findings=failure.findings, failure=failure)


def overview_of(intent: Intent, state: CurrentState, *, source: object) -> ClusterOverview:
    """A cluster that was read from ``source``."""
    view = current_view(state, source=source, name=intent.spec.name, spec=intent.spec)
    if intent.desired.with_units:
        intent = divide_totals(intent, state)
    drift = drift_from(intent, state, source=ManifestCommit())
    unreadable = (node.message for node in state.unreadable)
    budgets = budgets_of(intent.loaded.repository.budgets, intent.spec)
    return ClusterOverview(
        cluster=view.cluster,
        prune=drift.prune,
        observed=drift.observed,
        complete=drift.complete,
        counts=drift.counts,
        entities=tuple(_entities(intent, state.entities, {entity.entity: entity.drift for entity in drift.entities})),
        callback=_WITH_GROUPS if view.caveats.groups else view.caveats.callback,
        static_defaults=view.caveats.static_defaults,
        notes=tuple(dict.fromkeys((*state.notes, *unreadable, *view.notes, *intent.notes))),
        findings=drift.findings,
        budgets=tuple(allocations(budgets, intent.desired.entities.values())),
    )


def declared_only(intent: Intent, error: ReconcilerError) -> ClusterOverview:
    """A cluster that could not be read: what is declared, and why there is no more."""
    skipped = isinstance(error, UntrustedError)
    failure = failure_of(intent.spec.name, intent.spec.cluster_id, error, skipped=skipped)
    return ClusterOverview(
        cluster=failure.cluster,
        prune=intent.spec.prune,
        complete=intent.desired.complete,
        entities=tuple(_entities(intent, None, {})),
        notes=intent.notes,
        findings=intent.findings,
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
        )
