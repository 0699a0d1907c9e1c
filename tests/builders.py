"""Small factories with defaults, so that a test shows only what matters."""

from __future__ import annotations

import dataclasses
import datetime
from collections.abc import Mapping

from reconciler.model.cluster import ClusterSpec, DeclaredBrokers, SafetyRules
from reconciler.model.entity import DEFAULT, Entity, EntityName
from reconciler.model.finding import Span
from reconciler.model.plan import Action, ApplyReport, Change, KeyChange, ManifestCommit, Plan, Reason, Summary
from reconciler.model.quota import QuotaKey
from reconciler.model.state import (
    ClusterIdentity,
    CurrentState,
    DesiredEntity,
    DesiredQuota,
    DesiredState,
    Observed,
    ObservedFrom,
)

NOON = datetime.datetime(2026, 1, 2, 12, 0, tzinfo=datetime.UTC)
TODAY = NOON.date()


def span(line: int = 1, file: str = "quotas.yaml", column: int = 1) -> Span:
    return Span(file=file, line=line, column=column)


def user(name: EntityName = DEFAULT) -> Entity:
    return Entity.of({"user": name})


def client(name: EntityName = DEFAULT) -> Entity:
    return Entity.of({"client-id": name})


def pair(user_name: EntityName, client_name: EntityName) -> Entity:
    return Entity.of({"user": user_name, "client-id": client_name})


def ip(name: EntityName = DEFAULT) -> Entity:
    return Entity.of({"ip": name})


def declared(entity: Entity, line: float = 1, /, **quotas: float) -> DesiredEntity:
    values = {QuotaKey(k): DesiredQuota(value=v, source=span(int(line)), text=str(v)) for k, v in quotas.items()}
    return DesiredEntity(entity=entity, quotas=values, source=span(int(line)))


def desired(*entities: DesiredEntity, complete: bool = True) -> DesiredState:
    return DesiredState(entities={e.entity: e for e in entities}, complete=complete)


def current(entities: Mapping[Entity, Mapping[str, float]] | None = None, cluster_id: str = "c1") -> CurrentState:
    return CurrentState(
        cluster=ClusterIdentity(name=None, id=cluster_id, kafka_version="4.3"),
        observed=Observed(at=NOON, origin=ObservedFrom.BROKER),
        entities=dict(entities or {}),
    )


def cluster_spec(**fields: object) -> ClusterSpec:
    of = {part: {f.name: fields.pop(f.name) for f in dataclasses.fields(part) if f.name in fields} for part in _PARTS}
    parts = {name: part(**of[part]) for part, name in _PARTS.items()}
    return ClusterSpec(**{"name": "prod", **parts, **fields})


_PARTS = {SafetyRules: "safety", DeclaredBrokers: "brokers"}


def plan(*changes: object, **fields: object) -> Plan:
    defaults: dict[str, object] = {
        "cluster": ClusterIdentity(name="prod", id="c1", kafka_version="4.3"),
        "source": ManifestCommit(),
        "observed": Observed(at=NOON, origin=ObservedFrom.BROKER),
        "complete": True,
        "summary": Summary(update=len(changes)),
        "changes": tuple(changes),
        "guards": (),
        "digest": "sha256:" + "0" * 64,
    }
    return Plan(**{**defaults, **fields})  # type: ignore[arg-type]  # a test names fields as it likes


def rate_change(entity: Entity, before: float | None = None, after: float | None = 2.0) -> Change:
    key = KeyChange(key=QuotaKey.PRODUCER_BYTE_RATE.value, before=before, after=after, reason=Reason.VALUE_DIFFERS)
    return Change(entity=entity, action=Action.UPDATE, keys=(key,))


def rate_plan(count: int) -> Plan:
    """A first limit for each of so many users."""
    return plan(*(rate_change(user(f"u{number}")) for number in range(count)))


def statuses(report: ApplyReport) -> list[str]:
    return [outcome.status.value for outcome in report.outcomes]
