"""The policies of the Repository manifest over one plan."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Sequence
from dataclasses import replace

from reconciler.documents import plan_to_json
from reconciler.manifest import RepositoryPolicy
from reconciler.model import ClusterSpec, Entity, Message, Plan, in_order
from reconciler.policy import PolicyInput, check_accepted_policies, judge_policies
from reconciler.workflows.load import LoadedManifests


def policies_of(loaded: LoadedManifests) -> tuple[RepositoryPolicy, ...]:
    """Those of the Repository manifest that applies."""
    return loaded.repository.policies if loaded.repository is not None else ()


def judged_by_policies(
    plan: Plan,
    policies: Sequence[RepositoryPolicy],
    *,
    spec: ClusterSpec,
    owner_of: Callable[[Entity], str | None],
    accepted: Sequence[str],
    now: datetime.datetime,
    advice: Callable[[str], Message],
) -> Plan:
    """The plan with a guard for each policy that refuses, and with warnings of the others. Raises ``UsageError``."""
    # One command may plan many clusters, and an accepted policy need not be about each of them.
    check_accepted_policies([entry.policy for entry in policies], accepted)
    chosen = [entry.policy for entry in policies if entry.clusters is None or entry.clusters.chooses(spec)]
    if not chosen:
        return plan
    about = PolicyInput(document=plan_to_json(plan), changes=plan.changes, owner_of=owner_of, spec=spec, now=now)
    judged = judge_policies(chosen, about, accepted=accepted, advice=advice)
    return replace(plan, guards=(*plan.guards, *judged.guards), findings=in_order((*plan.findings, *judged.findings)))
