"""Let a real broker check a plan: the cluster itself, or a local Kafka that has the cluster's state."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from reconciler.apply import ChunkLimits, split_into_requests
from reconciler.backends import BrokerCluster, ConnectionSettings, parse_servers
from reconciler.errors import AuthorizationError
from reconciler.model import (
    Action,
    Alteration,
    AlterationResult,
    Change,
    CurrentState,
    Entity,
    Finding,
    KeyChange,
    ObservedFrom,
    Plan,
    Quotas,
    Reason,
    Severity,
    compose,
    escaped,
    in_order,
    name_part,
)
from reconciler.ports import ModeInspector, Progress, QuotaCluster
from reconciler.resolution import needs_broker, refusal
from reconciler.sandbox import DEFAULT_KAFKA_VERSION, KAFKA_VERSIONS, SandboxSpec, running

_FIRST_WITHOUT_ZOOKEEPER: Final = 4
_BEFORE_4: Final = next(version for version in KAFKA_VERSIONS if version.startswith("3."))
_MANY_ENTITIES: Final = 20_000
_HEAP_MB: Final = 512
_LARGE_HEAP_MB: Final = 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Seeded:
    """A running sandbox with a state; ``notes`` state what it could not take over."""

    cluster: QuotaCluster
    notes: tuple[str, ...]


def nearest_version(kafka_version: str | None) -> tuple[str, tuple[str, ...]]:
    """The pinned version nearest to a cluster's (``"3.6"``), and notes on what that leaves open."""
    major = (kafka_version or "").partition(".")[0]
    if not major.isascii() or not major.isdigit():
        return DEFAULT_KAFKA_VERSION, ("the cluster's Kafka version is not known",)
    version = DEFAULT_KAFKA_VERSION if int(major) >= _FIRST_WITHOUT_ZOOKEEPER else _BEFORE_4
    notes = (
        []
        if version.startswith(f"{kafka_version}.")
        else [f"the cluster runs Kafka {kafka_version}, which may check differently"]
    )
    if version == _BEFORE_4:
        notes.append("the local Kafka runs without ZooKeeper. A cluster that keeps its quotas in ZooKeeper has other checks")
    return version, tuple(notes)


@contextlib.contextmanager
def seeded_sandbox(version: str, current: CurrentState, *, progress: Progress) -> Iterator[Seeded]:
    """A sandbox of a pinned version with ``current``, for the length of the block."""
    heap = _LARGE_HEAP_MB if len(current.entities) > _MANY_ENTITIES else _HEAP_MB
    with running(SandboxSpec(kafka_version=version, heap_mb=heap), progress=progress) as sandbox:
        settings = ConnectionSettings(servers=parse_servers((sandbox.bootstrap_servers,)))
        with contextlib.closing(BrokerCluster.open(settings)) as cluster:
            yield Seeded(cluster=cluster, notes=seed(cluster, current.entities, progress=progress))


def seed(cluster: QuotaCluster, entities: Mapping[Entity, Quotas], *, progress: Progress) -> tuple[str, ...]:
    """Write a state to an empty cluster; a note on what it does not take: unknown types and keys, values that are refused now."""
    wanted: list[Change] = []
    refused: list[tuple[Entity, str | None]] = []
    for entity, quotas in entities.items():
        refusals = {key: refusal(Alteration(entity=entity, ops={key: value})) for key, value in sorted(quotas.items())}
        refused += ((entity, words) for words in refusals.values() if words is not None)
        keys = tuple(_setting(key, quotas[key]) for key, words in refusals.items() if words is None)
        if keys:
            wanted.append(Change(entity=entity, action=Action.CREATE, keys=keys))
    if wanted:
        progress.step(f"giving the local Kafka the cluster's state: {len(wanted)} entities")
    for request in split_into_requests(wanted, ChunkLimits()):
        results = cluster.alter([change.alteration() for change in request], validate_only=False)
        for change, result in zip(request, results, strict=True):
            if result.error_code:
                refused += ((change.entity, result.error) for _ in change.keys)
    return (_left_out(refused),) if refused else ()


def _setting(key: str, value: float) -> KeyChange:
    return KeyChange(key=key, before=None, after=value, reason=Reason.NOT_IN_CURRENT)


def _left_out(refused: Sequence[tuple[Entity, str | None]]) -> str:
    what = "1 value" if len(refused) == 1 else f"{len(refused)} values"
    entity, words = refused[0]
    example = f"{entity}: {escaped(words) if words else 'no reason given'}"
    return f"the local Kafka did not take {what} of the cluster's present state and checked without: {example}"


REFUSED: Final = "refused-by-broker"
"""The id of the findings."""

_LIMITS: Final = ChunkLimits()
_NOTHING: Final = "the plan has nothing for a broker to check"
_LOOKED_UP: Final = ". The name was looked up on this machine, and the cluster's own brokers may answer otherwise"


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
        raise AuthorizationError(msg, operation=error.operation) from error
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
    # Imported here, so that plans without this check do not pay for the client library.
    from reconciler.workflows.server_check import nearest_version, seeded_sandbox

    version, notes = nearest_version(plan.cluster.kafka_version)
    with seeded_sandbox(version, current, progress=progress) as seeded:
        progress.step(f"asking the local Kafka to validate {len(plan.changes)} changes")
        results = validated(plan.changes, seeded.cluster)
    findings = _refusals(plan.changes, results, of_host_names=_LOOKED_UP)
    return _noted(plan, f"checked by a local Kafka {version}", *notes, *seeded.notes, findings=findings)


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
