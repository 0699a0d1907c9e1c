"""Let a real broker check a plan: the cluster itself, or a local Kafka of its version."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from reconciler.apply import ChunkLimits, split_into_requests
from reconciler.backends import BrokerCluster, ConnectionSettings, parse_servers
from reconciler.errors import AuthorizationError, UsageError
from reconciler.features.sandbox.cluster import running
from reconciler.features.sandbox.jars import DEFAULT_KAFKA_VERSION, KRAFT_VERSIONS, ZOOKEEPER_VERSIONS
from reconciler.features.sandbox.spec import SandboxSpec
from reconciler.model import AlterationResult, Change, Finding, ObservedFrom, Plan, Severity, compose, in_order, name_part
from reconciler.ports import ModeInspector, Progress, QuotaCluster, QuotaReader
from reconciler.resolution import needs_broker

REFUSED: Final = "refused-by-broker"
"""The id of the findings."""

_NO_CLUSTER: Final = (
    "--server-check=cluster asks the live cluster and --current reads a file. --server-check=sandbox works with both"
)
_LOOKED_UP: Final = ". The name was looked up on this machine, and the cluster's own brokers may answer otherwise"


def check_plan(plan: Plan, where: str, reader: QuotaReader, *, progress: Progress) -> Plan:
    """The plan with what a broker answers to its changes; ``where``: ``cluster`` or ``sandbox``.

    Raises ``UsageError`` when the cluster is to check and ``reader`` is none, and as the two checks.
    """
    if not plan.changes:
        return replace(plan, notes=(*plan.notes, "the plan has nothing for a broker to check"))
    if where == "sandbox":
        return check_in_sandbox(plan, progress=progress)
    if not isinstance(reader, QuotaCluster):
        raise UsageError(_NO_CLUSTER)
    return check_on_cluster(plan, reader, progress=progress)


def check_on_cluster(plan: Plan, cluster: QuotaCluster, *, progress: Progress) -> Plan:
    """The plan with the results of the live cluster's validation. Nothing is written.

    Raises ``AuthorizationError`` when the cluster does not let this principal ask, and other ``BackendError`` children when it
    cannot be asked.
    """
    notes = ["checked by the cluster"]
    if plan.observed.origin is ObservedFrom.ZOOKEEPER:
        notes = ["checked by this tool's own copy of the brokers' rules: ZooKeeper checks nothing, and no broker was asked"]
    elif isinstance(cluster, ModeInspector) and cluster.keeps_quotas_in_zookeeper():
        notes.append(
            "the cluster keeps its quotas in ZooKeeper, where a broker checks more when it writes than when it only validates: "
            "a plan that passed can still be refused"
        )
    try:
        return _checked(plan, cluster, notes, asking="the cluster", progress=progress)
    except AuthorizationError as error:
        msg = f"{error}. --server-check=sandbox needs no rights on the cluster"
        raise AuthorizationError(msg) from error


def check_in_sandbox(plan: Plan, *, progress: Progress) -> Plan:
    """The plan with what a local Kafka answers, which runs only as long as this takes.

    A broker in KRaft mode looks at an alteration alone, so the local one needs none of the cluster's quotas. Raises
    ``SandboxError`` or ``MissingDependencyError`` when none can be started.
    """
    version, notes = nearest_version(plan.cluster.kafka_version)
    notes = (f"checked by a local Kafka {version}", *notes)
    with running(SandboxSpec(kafka_version=version), progress=progress) as sandbox:
        settings = ConnectionSettings(servers=parse_servers((sandbox.bootstrap_servers,)))
        with contextlib.closing(BrokerCluster.open(settings)) as local:
            return _checked(plan, local, notes, asking="the local Kafka", of_host_names=_LOOKED_UP, progress=progress)


def nearest_version(kafka_version: str | None) -> tuple[str, tuple[str, ...]]:
    """The oldest pinned version from a cluster's (``"3.6"``) on, else the newest; notes on what that leaves open."""
    wanted = _numbers(kafka_version or "")
    if not wanted:
        return DEFAULT_KAFKA_VERSION, ("the cluster's Kafka version is not known",)
    version = min((v for v in KRAFT_VERSIONS if _numbers(v) >= wanted), key=_numbers, default=DEFAULT_KAFKA_VERSION)
    notes = []
    if not version.startswith(f"{kafka_version}."):
        notes.append(f"the cluster runs Kafka {kafka_version}, which may check differently")
    if version in ZOOKEEPER_VERSIONS:
        notes.append("the local Kafka runs without ZooKeeper. A cluster that keeps its quotas in ZooKeeper has other checks")
    return version, tuple(notes)


def _numbers(version: str) -> tuple[int, ...]:
    """``(3, 9)`` of ``"3.9"``; empty for what does not begin with a number."""
    number = re.match(r"\d+(?:\.\d+)*", version, re.ASCII)
    return tuple(map(int, number[0].split("."))) if number else ()


def _checked(
    plan: Plan, cluster: QuotaCluster, notes: Sequence[str], *, asking: str, progress: Progress, of_host_names: str = ""
) -> Plan:
    """The plan with the cluster's answers to all changes, asked in requests as large as those of a write, validate-only."""
    progress.step(f"asking {asking} to validate {len(plan.changes)} changes")
    results: list[AlterationResult] = []
    for request in split_into_requests(plan.changes, ChunkLimits()):
        results += cluster.alter([change.alteration() for change in request], validate_only=True)
    by_entity = {change.entity: change for change in plan.changes}
    refusals = [
        _finding(by_entity[result.entity], result, of_host_names if needs_broker(result.entity) else "")
        for result in results
        if result.error_code
    ]
    return replace(plan, notes=(*plan.notes, *notes), findings=in_order((*plan.findings, *refusals)))


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
