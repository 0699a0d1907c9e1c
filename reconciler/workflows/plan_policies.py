"""The policies of the Repository manifest over one plan."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Sequence
from dataclasses import replace

from reconciler.documents import plan_to_json
from reconciler.model import ClusterSpec, Entity, Message, Plan, PlanPolicy, in_order
from reconciler.policy import PolicyInput, check_accepted_policies, judge_policies
from reconciler.workflows.load import LoadedManifests


def policies_of(loaded: LoadedManifests, spec: ClusterSpec) -> tuple[PlanPolicy, ...]:
    """Those of the Repository manifest that applies, for one cluster."""
    entries = loaded.repository.policies if loaded.repository is not None else ()
    return tuple(entry.policy for entry in entries if entry.clusters is None or entry.clusters.chooses(spec))


def judged_by_policies(
    plan: Plan,
    policies: Sequence[PlanPolicy],
    *,
    spec: ClusterSpec,
    owner_of: Callable[[Entity], str | None],
    accepted: Sequence[str],
    now: datetime.datetime,
    advice: Callable[[str], Message],
) -> Plan:
    """The plan with a guard for each policy that refuses, and with warnings of the others. Raises ``UsageError``."""
    if not policies:
        check_accepted_policies((), accepted)
        return plan
    about = PolicyInput(document=plan_to_json(plan), changes=plan.changes, owner_of=owner_of, spec=spec, now=now)
    judged = judge_policies(policies, about, accepted=accepted, advice=advice)
    return replace(plan, guards=(*plan.guards, *judged.guards), findings=in_order((*plan.findings, *judged.findings)))
