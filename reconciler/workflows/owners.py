"""Owners that are planned apart: who owns an entity, and whose manifests have errors while those of others are planned."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from reconciler.errors import UsageError
from reconciler.manifest import Owner, owner_of_entity, owners_of_file
from reconciler.model import (
    DesiredState,
    Entity,
    Finding,
    Message,
    Plan,
    Severity,
    compose,
    display_name,
    name_part,
)
from reconciler.policy import OwnerView
from reconciler.text import did_you_mean, list_some, shown
from reconciler.workflows.load import LoadedManifests, desired_for, stop_on

if TYPE_CHECKING:
    from reconciler.workflows.intent import Intent

_MOST_NAMED = 5
WITHHELD_IN_STAGE = "withheld-in-stage"


def check_owners(loaded: LoadedManifests, chosen: Sequence[str]) -> frozenset[str] | None:
    """The owners of ``--owner``; ``None`` for all. Raises ``UsageError`` for one that nothing names."""
    known = {document.owner for document in loaded.documents if document.owner is not None}
    known |= set(loaded.repository.owners)
    require_owners(chosen, known, if_none=". Neither the Repository manifest nor a document names an owner")
    return frozenset(chosen) or None


def require_owners(chosen: Iterable[str], known: Collection[str], *, if_none: str = "") -> None:
    """Raises ``UsageError`` for the first of the chosen owners that is not known. ``if_none``: the hint where no owner is."""
    for name in chosen:
        if name not in known:
            hint = did_you_mean(name, known) if known else if_none
            raise UsageError(f"no manifest has the owner {shown(name)}{hint}")


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


def owner_lookup(desired: DesiredState, owners: Mapping[str, Owner]) -> Callable[[Entity], str | None]:
    """The owner of an entity: whose manifest declares it, else who lists it."""
    known: dict[Entity, str | None] = {}

    def owner_of(entity: Entity) -> str | None:
        if entity not in known:
            declared = desired.entities.get(entity)
            known[entity] = declared.owner if declared is not None else owner_of_entity(entity, owners)
        return known[entity]

    return owner_of


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


def unread_owners(errors: Collection[str | None]) -> Iterator[Message]:
    """Yield a note about the entities that a comparison leaves out when manifests of these owners have errors."""
    if names := sorted(display_name(owner) for owner in errors if owner is not None):
        shown_names = name_part(list_some(names, _MOST_NAMED))
        yield compose("Manifests of {names} have errors. Entities that only these declare are not compared.", names=shown_names)


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
