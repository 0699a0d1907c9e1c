"""Documents and one cluster into the desired state: overlays merged, claims and scope checked."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from reconciler.manifest.documents import (
    BudgetRule,
    ClientQuotasDocument,
    ClusterChoice,
    ClusterDocument,
    Override,
    QuotaEntry,
    ValueLimit,
)
from reconciler.manifest.groups import GROUPS, PLUGIN_TOTALS, outside_scope
from reconciler.manifest.limits import BUDGETS, LIMITS, ClusterManifests
from reconciler.manifest.profiles import ProfileTable, override_value, settle_entity, with_values
from reconciler.manifest.reading import finding
from reconciler.model import (
    ClusterSpec,
    DesiredEntity,
    DesiredQuota,
    DesiredState,
    Entity,
    Finding,
    Message,
    QuotaKey,
    QuotaProfile,
    Related,
    Scope,
    UnitQuota,
    WrittenQuota,
    compose,
    display_name,
)
from reconciler.text import did_you_mean, shown_part


@dataclass(frozen=True, slots=True, kw_only=True)
class DesiredResult:
    """The desired state of one cluster, and what is wrong with it."""

    state: DesiredState
    findings: tuple[Finding, ...]


def desired_state(
    documents: Sequence[ClientQuotasDocument],
    cluster: ClusterSpec,
    *,
    shown_files: Callable[[str], bool] | None = None,
    limits: Sequence[ValueLimit] = (),
    profiles: Sequence[Mapping[str, QuotaProfile]] = (),
    budgets: Sequence[BudgetRule] = (),
    at: datetime.datetime | None = None,
) -> DesiredResult:
    """Return what the documents, in their order, declare for one cluster. ``at``: the moment; ``None``: before every expiry.

    An entity whose last key an override dropped stays declared, without keys: the cluster shall have none for it.
    ``profiles``: those of the repository, then those of the cluster. With ``shown_files`` only entities of the files it accepts
    are in the state, which is then not complete; all is checked all the same, also what follows values that expire.
    """
    here = tuple(document for document in documents if document.clusters is None or document.clusters.chooses(cluster))
    manifests = ClusterManifests(documents=here, cluster=cluster, limits=limits, profiles=profiles, budgets=budgets, at=at)
    result = _state_at(manifests)
    if any(declared.expiries for declared in result.state.entities.values()):
        after = _state_at(replace(manifests, at=_LAST_MOMENT))
        entities = _with_other_sides(result.state, before=_state_at(replace(manifests, at=None)).state, after=after.state)
        known = frozenset(result.findings)
        more = tuple(problem for problem in after.findings if problem not in known)
        units = tuple(entity for entity, declared in entities.items() if _has_units(declared))
        state = replace(result.state, entities=entities, with_units=units)
        result = DesiredResult(state=state, findings=(*result.findings, *more))
    if shown_files is None:
        return result
    state = result.state
    chosen = {entity: quotas for entity, quotas in state.entities.items() if shown_files(quotas.source.file)}
    units = tuple(entity for entity in state.with_units if entity in chosen)
    return replace(result, state=replace(state, entities=chosen, complete=False, with_units=units))


_LAST_MOMENT: Final = datetime.datetime.max.replace(tzinfo=datetime.UTC)


def _with_other_sides(state: DesiredState, *, before: DesiredState, after: DesiredState) -> dict[Entity, DesiredEntity]:
    """The entities with the values on the other side of each expiry: ``before`` every expiry, and ``after``."""
    entities = dict(state.entities)
    for entity, declared in state.entities.items():
        if declared.expiries:
            expiries = {
                key: replace(expiry, other=_written((before if expiry.expired else after).entities.get(entity), key))
                for key, expiry in declared.expiries.items()
            }
            entities[entity] = replace(declared, expiries=expiries)
    return entities


def _written(declared: DesiredEntity | None, key: QuotaKey) -> DesiredQuota | UnitQuota | None:
    return None if declared is None else declared.quotas.get(key) or declared.units.get(key)


def _has_units(declared: DesiredEntity) -> bool:
    return bool(declared.units) or any(isinstance(expiry.other, UnitQuota) for expiry in declared.expiries.values())


STAGES: Final = (GROUPS, PLUGIN_TOTALS, LIMITS, BUDGETS)
"""In this order: limits and budgets judge what groups declare."""


def _state_at(manifests: ClusterManifests) -> DesiredResult:
    cluster, at = manifests.cluster, manifests.at
    entities: dict[Entity, DesiredEntity] = {}
    findings: list[Finding] = []
    everything = cluster.scope == Scope()
    table: ProfileTable | None = None
    for document in manifests.documents:
        for entry in document.entries:
            declared = entry.declared
            entity = declared.entity
            if entry.overrides or entry.profile is not None or declared.expiring:
                table = table or ProfileTable(manifests.profiles)
                declared = _merged(entry, _override(entry, cluster, findings), table, at)
            first = entities.setdefault(entity, declared)
            if first is not declared:
                findings.append(_claimed_twice(declared, first, cluster))
            elif not everything and not cluster.scope.contains(entity):
                findings.append(outside_scope(declared, cluster))
    findings += table.findings if table is not None else ()
    notes: list[Message] = []
    for stage in STAGES:
        if stage.applies(manifests, entities):
            findings += stage.run(manifests, entities)
            notes += stage.notes(entities)
    units = tuple(entity for entity, declared in entities.items() if declared.units)
    state = DesiredState(entities=entities, with_units=units, at=at, notes=tuple(notes))
    return DesiredResult(state=state, findings=tuple(findings))


def _override(entry: QuotaEntry, cluster: ClusterSpec, findings: list[Finding]) -> Override | None:
    matching = [override for override in entry.overrides if override.clusters.chooses(cluster)]
    if not matching:
        return None
    first = matching[0]
    for later in matching[1:]:
        message = compose(
            "two overrides of {entity} match {cluster}. Their order must not decide",
            entity=entry.declared.entity,
            cluster=_named(cluster),
        )
        related = Related(span=first.span, message="the first override that matches")
        findings.append(finding("overlapping-overrides", message, later.span, related=[related], entity=entry.declared.entity))
    return first


def _merged(entry: QuotaEntry, override: Override | None, table: ProfileTable, at: datetime.datetime | None) -> DesiredEntity:
    """The entry's values over those of its profile, and below those of the override, as they are at a moment."""
    declared = entry.declared
    profile = override.profile if override is not None and override.profile is not None else entry.profile
    if profile is None and override is None:
        return settle_entity(declared, at)
    merged: dict[QuotaKey, WrittenQuota] = {**table.values(profile, declared.entity)} if profile is not None else {}
    own: Mapping[QuotaKey, WrittenQuota | None] = {**declared.quotas, **declared.units, **declared.expiring}
    for values in (own, override.quotas if override is not None else {}):
        for key, written in values.items():
            if written is None:
                merged.pop(key, None)
            else:
                merged[key] = override_value(merged.get(key), written)
    return with_values(declared, merged, at)


def _claimed_twice(later: DesiredEntity, first: DesiredEntity, cluster: ClusterSpec) -> Finding:
    message = compose(
        "{entity} is already declared for {cluster} at {place}. Keep one of the two",
        entity=later.entity,
        cluster=_named(cluster),
        place=first.source,
    )
    related = Related(span=first.source, message="the first declaration")
    return finding("duplicate-entity", message, later.source, related=[related], entity=later.entity)


def _named(cluster: ClusterSpec) -> str:
    return f"cluster {display_name(cluster.name)}" if cluster.name else "the cluster"


def cluster_findings(documents: Sequence[ClientQuotasDocument], clusters: Sequence[ClusterDocument]) -> tuple[Finding, ...]:
    """Return the problems between documents and clusters: names twice, and names or labels that no cluster has."""
    findings: list[Finding] = []
    by_name: dict[str, ClusterDocument] = {}
    for cluster in clusters:
        if cluster.spec.name is None:
            continue
        first = by_name.setdefault(cluster.spec.name, cluster)
        if first is not cluster:
            words = "cluster {cluster} is already declared at {place}. Give one of the two another name"
            name, related = cluster.spec.name, Related(span=first.span, message="the first of this name")
            problem = finding("duplicate-cluster", words, cluster.span, related=[related], place=first.span, cluster=name)
            findings.append(problem)
    specs = [cluster.spec for cluster in clusters]
    for document in documents:
        choices = [override.clusters for entry in document.entries for override in entry.overrides]
        for choice in choices if document.clusters is None else (document.clusters, *choices):
            findings += _choice_findings(choice, by_name, specs)
    return tuple(findings)


def _choice_findings(
    choice: ClusterChoice, by_name: dict[str, ClusterDocument], specs: Sequence[ClusterSpec]
) -> Iterable[Finding]:
    for name, span in choice.names:
        if name not in by_name:
            hint = did_you_mean(name, by_name) if by_name else ". No Cluster manifest was read"
            message = compose("no manifest declares cluster {name}{hint}", name=shown_part(name), hint=hint)
            yield finding("unknown-cluster", message, span)
    if choice.labels is not None and not any(choice.chooses(spec) for spec in specs):
        labels = ", ".join(f"{label}: {value}" for label, value in choice.labels.items())
        yield finding("no-cluster-matches", "no cluster has the labels {labels}", choice.span, labels=labels)
