"""Let a real broker check a plan: the cluster itself, or a local Kafka that has the cluster's state."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from reconciler.apply import ChunkLimits, split_into_requests
from reconciler.errors import AuthorizationError, UsageError
from reconciler.features.sandbox.cluster import seeded_sandbox
from reconciler.model import (
    AlterationResult,
    Change,
    CurrentState,
    Finding,
    ObservedFrom,
    Plan,
    Severity,
    compose,
    in_order,
    name_part,
)
from reconciler.ports import ModeInspector, Progress, QuotaCluster, QuotaReader
from reconciler.resolution import needs_broker
from reconciler.workflows import Intent, read_for

REFUSED: Final = "refused-by-broker"
"""The id of the findings."""

_NO_CLUSTER: Final = (
    "--server-check=cluster asks the live cluster and --current reads a file. --server-check=sandbox works with both"
)
_LIMITS: Final = ChunkLimits()
_NOTHING: Final = "the plan has nothing for a broker to check"
_LOOKED_UP: Final = ". The name was looked up on this machine, and the cluster's own brokers may answer otherwise"


def check_plan(plan: Plan, where: str, reader: QuotaReader, intent: Intent, *, progress: Progress) -> Plan:
    """The plan with what a broker answers to its changes; ``where``: ``cluster`` or ``sandbox``.

    Raises ``UsageError`` when the cluster is to check and ``reader`` is none, and as the two checks.
    """
    if where == "sandbox":
        return check_in_sandbox(plan, read_for(intent, reader), progress=progress)
    if not isinstance(reader, QuotaCluster):
        raise UsageError(_NO_CLUSTER)
    return check_on_cluster(plan, reader, progress=progress)


def check_on_cluster(plan: Plan, cluster: QuotaCluster, *, progress: Progress) -> Plan:
    """The plan with the results of the live cluster's validation. Nothing is written.

    Raises ``AuthorizationError`` when the cluster does not let this principal ask, and other ``BackendError`` children when it
    cannot be asked.
    """
    if not plan.changes:
        return _noted(plan, _NOTHING)
    progress.step(f"asking the cluster to validate {len(plan.changes)} changes")
    try:
        results = validated(plan.changes, cluster)
    except AuthorizationError as error:
        msg = f"{error}. --server-check=sandbox needs no rights on the cluster"
        raise AuthorizationError(msg) from error
    if plan.observed.origin is ObservedFrom.ZOOKEEPER:
        own = "checked by this tool's own copy of the brokers' rules: ZooKeeper checks nothing, and no broker was asked"
        return _noted(plan, own, findings=_refusals(plan.changes, results))
    notes = ["checked by the cluster"]
    if isinstance(cluster, ModeInspector) and cluster.keeps_quotas_in_zookeeper():
        notes.append(
            "the cluster keeps its quotas in ZooKeeper, where a broker checks more when it writes than when it only validates: "
            "a plan that passed can still be refused"
        )
    return _noted(plan, *notes, findings=_refusals(plan.changes, results))


def check_in_sandbox(plan: Plan, current: CurrentState, *, progress: Progress) -> Plan:
    """The plan with what a local Kafka answers that has ``current``; it runs only as long as this takes.

    Raises ``SandboxError`` or ``MissingDependencyError`` when none can be started.
    """
    if not plan.changes:
        return _noted(plan, _NOTHING)
    with seeded_sandbox(plan.cluster.kafka_version, current, progress=progress) as local:
        progress.step(f"asking the local Kafka to validate {len(plan.changes)} changes")
        results = validated(plan.changes, local.cluster)
    findings = _refusals(plan.changes, results, of_host_names=_LOOKED_UP)
    return _noted(plan, f"checked by a local Kafka {local.kafka_version}", *local.notes, findings=findings)


def validated(changes: Sequence[Change], cluster: QuotaCluster) -> tuple[AlterationResult, ...]:
    """The cluster's answers to all changes, asked in requests as large as those of a write, validate-only."""
    results: list[AlterationResult] = []
    for request in split_into_requests(changes, _LIMITS):
        results += cluster.alter([change.alteration() for change in request], validate_only=True)
    return tuple(results)


def _refusals(changes: Sequence[Change], results: Sequence[AlterationResult], *, of_host_names: str = "") -> tuple[Finding, ...]:
    by_entity = {change.entity: change for change in changes}
    return tuple(
        _finding(by_entity[result.entity], result, of_host_names if needs_broker(result.entity) else "")
        for result in results
        if result.error_code
    )


def _finding(change: Change, result: AlterationResult, remark: str) -> Finding:
    reason = name_part(result.error) if result.error else "no reason is given"
    named = [key for key in change.keys if key.key in (result.error or "").split()]
    about = named[0] if len(named) == 1 else None
    source = next((key.source for key in (about, *change.keys) if key is not None and key.source is not None), None)
    return Finding(
        id=REFUSED,
        severity=Severity.ERROR,
        message=compose(
            "A broker refuses this change of {entity}: {reason} (error {code}){remark}",
            entity=change.entity,
            reason=reason,
            code=str(result.error_code),
            remark=remark,
        ),
        span=source,
        entity=change.entity,
        key=about.key if about is not None else None,
    )


def _noted(plan: Plan, *notes: str, findings: Sequence[Finding] = ()) -> Plan:
    return replace(plan, notes=(*plan.notes, *notes), findings=in_order((*plan.findings, *findings)))
