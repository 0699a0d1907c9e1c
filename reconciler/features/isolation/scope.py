"""Owners that are planned apart: who owns an entity, and whose manifests have errors while those of others are planned."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from reconciler.errors import UsageError
from reconciler.features.isolation.judging import OwnerView, judge_owners
from reconciler.manifest import Owner, owners_of_file
from reconciler.model import Entity, Finding, Isolation, Message, Plan, Severity, compose, name_part
from reconciler.policy import GuardContext, Judgement
from reconciler.text import did_you_mean, shown
from reconciler.workflows import Intent, LoadedManifests, OwnerScope, chosen_cluster, desired_for, owner_lookup, stop_on

WITHHELD_IN_STAGE: Final = "withheld-in-stage"


def scope_of_owners(
    loaded: LoadedManifests, cluster: str | None, owners: Sequence[str], fail_on: Severity
) -> tuple[LoadedManifests, OwnerScope]:
    """Return the manifests without those of owners that have errors, and the scope of a plan of ``owners`` (none: of all).

    Raises ``UsageError`` for an owner that no manifest names, and ``ManifestError`` as ``sound_manifests``.
    """
    scope = OwnerScope(chosen=_chosen(loaded, owners))
    if scope.chosen is None and chosen_cluster(loaded, cluster).safety.isolate is not Isolation.OWNER:
        return loaded, scope
    loaded, errors = sound_manifests(loaded, cluster, fail_on)
    return loaded, replace(scope, errors=errors)


def judge_apart(
    intent: Intent, context: GuardContext, plan: Plan, *, accepted: Sequence[str], advice: Callable[[str], Message]
) -> Judgement:
    """Measure the guards for each owner alone. Raises ``UsageError`` for an accepted id that no guard has."""
    return judge_owners(context, owner_view(intent, plan), accepted=accepted, advice=advice)


def _chosen(loaded: LoadedManifests, owners: Sequence[str]) -> frozenset[str] | None:
    known = {document.owner for document in loaded.documents if document.owner is not None} | set(loaded.repository.owners)
    for name in owners:
        if name not in known:
            hint = did_you_mean(name, known) if known else ". Neither the Repository manifest nor a document names an owner"
            raise UsageError(f"no manifest has the owner {shown(name)}{hint}")
    return frozenset(owners) or None


def sound_manifests(
    loaded: LoadedManifests, cluster: str | None, fail_on: Severity
) -> tuple[LoadedManifests, dict[str | None, tuple[Finding, ...]]]:
    """Leave out the documents of owners with errors, until the rest has none. Returns the rest, and the errors by owner.

    Raises ``ManifestError`` for an error that concerns no owner in particular: one in a Repository or Cluster manifest, or in a
    file that is in no owner's folder and names no owner.
    """
    errors: dict[str | None, tuple[Finding, ...]] = {}
    attribution = _Attribution(loaded)
    findings = loaded.findings
    while wrong := attribution.by_owner(findings, fail_on):
        if None in wrong:
            stop_on(findings, fail_on)
        errors.update({owner: (*errors.get(owner, ()), *more) for owner, more in wrong.items()})
        loaded = replace(
            loaded,
            documents=tuple(d for d in loaded.documents if not attribution.is_of(d.file, d.owner, wrong)),
            findings=tuple(f for f in loaded.findings if not f.severity.at_least(fail_on)),
        )
        findings = (*loaded.findings, *desired_for(loaded, cluster)[2])
    return loaded, errors


class _Attribution:
    """Which owners a file is about."""

    def __init__(self, loaded: LoadedManifests) -> None:
        self._root = loaded.root
        self._owners: Mapping[str, Owner] = loaded.repository.owners
        self._named: dict[str, set[str | None]] = {file: set() for file in loaded.files}
        for document in loaded.documents:
            self._named.setdefault(document.file, set()).add(document.owner)
        self._shared = {spec.span.file for spec in (*loaded.clusters.values(), *loaded.proposed.values()) if spec.span}
        self._shared.add(loaded.repository.file)
        if loaded.proposed_repository is not None:
            self._shared.add(loaded.proposed_repository.file)
        self._known: dict[str, frozenset[str]] = {}

    def owners(self, file: str) -> frozenset[str]:
        """Empty for a file that concerns all owners, or that has no owner."""
        if file in self._shared or file not in self._named:
            return frozenset()
        if file not in self._known:
            relative = os.path.relpath(file, self._root).replace(os.sep, "/") if self._root is not None else file
            self._known[file] = owners_of_file(relative, self._owners, self._named[file])
        return self._known[file]

    def is_of(self, file: str, owner: str | None, wrong: Mapping[str | None, object]) -> bool:
        """True for a document of one of these owners, or in one of their files."""
        return owner in wrong or not wrong.keys().isdisjoint(self.owners(file))

    def by_owner(self, findings: Iterable[Finding], fail_on: Severity) -> dict[str | None, tuple[Finding, ...]]:
        """Errors by owner; ``None``: no owner. One about two files concerns the owners of both."""
        wrong: dict[str | None, tuple[Finding, ...]] = {}
        for finding in findings:
            if not finding.severity.at_least(fail_on):
                continue
            own = self.owners(finding.span.file) if finding.span is not None else frozenset()
            also = self._also(finding) if own else frozenset()
            for owner in (*own, *also) or (None,):
                wrong[owner] = (*wrong.get(owner, ()), finding)
        return wrong

    def _also(self, finding: Finding) -> frozenset[str]:
        """Return the owners of the other claim to an entity: of two claims neither may decide."""
        if finding.id != "duplicate-entity" or finding.span is None:
            return frozenset()
        others = {owner for related in finding.related for owner in self.owners(related.span.file)}
        return frozenset(others) - self.owners(finding.span.file)


def errors_by_owner(
    findings: Iterable[Finding], owner_of: Callable[[Entity], str | None], fail_on: Severity
) -> dict[str | None, tuple[Finding, ...]]:
    """Return the findings of the live state that withhold the owner of their entity, by owner."""
    wrong: dict[str | None, tuple[Finding, ...]] = {}
    for finding in findings:
        if finding.fails(fail_on) and finding.entity is not None:
            owner = owner_of(finding.entity)
            wrong[owner] = (*wrong.get(owner, ()), finding)
    return wrong


def withheld_in_stage(cluster: str) -> Finding:
    """Return why an owner is withheld whose changes an earlier stage withheld: they were never tried."""
    message = compose(
        "The changes of this owner are withheld on cluster {cluster}, in an earlier stage.", cluster=name_part(cluster)
    )
    return Finding(id=WITHHELD_IN_STAGE, severity=Severity.ERROR, message=message)


def owner_view(intent: Intent, plan: Plan) -> OwnerView:
    """Return who owns which change, and whose changes are withheld whatever the guards measure."""
    scope = intent.scope
    owner_of = owner_lookup(intent.desired, intent.owners)
    errors = errors_by_owner(plan.findings, owner_of, intent.fail_on)
    for owner, findings in scope.errors.items():
        errors[owner] = (*findings, *errors.get(owner, ()))
    for owner in {owner_of(change.entity) for change in plan.changes} & scope.withheld_before.keys():
        errors[owner] = (*errors.get(owner, ()), withheld_in_stage(scope.withheld_before[owner]))
    unread = frozenset(owner for owner in scope.errors if owner is not None)
    return OwnerView(owner_of=owner_of, selected=scope.chosen, errors=errors, unread=unread)
