"""Lint of one cluster's state: the rules run over what it shall have, with the severities of the Repository document."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from reconciler.manifest import desired_state
from reconciler.model import Change, ClusterSpec, CurrentState, DesiredState, Entity, Finding, Severity, in_order
from reconciler.planning import quotas_after
from reconciler.policy import Subject, lint_state
from reconciler.workflows.load import LoadedManifests, adjusted


def lint_offline(loaded: LoadedManifests, spec: ClusterSpec, desired: DesiredState) -> tuple[Finding, ...]:
    """What can be said without the cluster; ``desired`` is what ``desired_for`` gave. A filter narrows only what is shown."""
    if loaded.selected is not None:
        desired = desired_state(loaded.documents, spec).state
    found = lint_state(Subject(desired=desired, spec=spec, after=desired.values()))
    return in_order(one for one in adjusted(tuple(found), loaded.lint) if loaded.is_shown(one))


def lint_change(
    spec: ClusterSpec,
    desired: DesiredState,
    current: CurrentState,
    changes: Sequence[Change],
    *,
    severities: Mapping[str, Severity | None],
    rates: Mapping[tuple[Entity, str], float] | None = None,
) -> tuple[Finding, ...]:
    """What can be said of a plan. ``rates``: measured bytes/s per broker by entity and key, where they are known."""
    after = quotas_after(current.entities, changes)
    changed = [change.entity for change in changes]
    subject = Subject(
        desired=desired,
        spec=spec,
        after=after,
        before=current.entities,
        rates=rates or {},
        changed=changed,
        unreadable=current.unreadable,
    )
    return in_order(adjusted(tuple(lint_state(subject)), severities))
