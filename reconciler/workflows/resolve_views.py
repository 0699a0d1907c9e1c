"""The states that quotas are resolved against: a cluster, a snapshot, the manifests alone, or a cluster after its plan."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Final

from reconciler.errors import BackendError
from reconciler.model import ClusterIdentity, ClusterSpec, CurrentState, ObservedFrom, Prune, display_name
from reconciler.planning import difference, quotas_after
from reconciler.ports import CallbackInspector, StaticDefaultsInspector
from reconciler.resolution import Caveats, QuotaView, ViewKind
from reconciler.text import number_text
from reconciler.workflows.plan import Intent

_FIRST_WITHOUT_STATIC_DEFAULTS: Final = (3, 0)
_STATIC: Final = {"producer_byte_rate": "quota.producer.default", "consumer_byte_rate": "quota.consumer.default"}
_FIRST_TO_ENFORCE_MUTATIONS: Final = (3, 5)
_ASSUMED: Final = "answers assume that brokers resolve quotas as Kafka does"
_NO_VERSION: Final = (
    "the version of the brokers is not known; before Kafka 3.0 their settings quota.producer.default and quota.consumer.default "
    "hold where no quota is set"
)
_ALONE: Final = (
    "these are the manifests alone: quotas that the cluster has beside them (unmanaged, or outside the scope) are not known "
    "here; 'planned' counts them"
)


def current_view(state: CurrentState, *, source: object, name: str | None = None, spec: ClusterSpec | None = None) -> QuotaView:
    """A state as it was read from ``source``, which may tell whether the brokers resolve quotas as Kafka does.

    Where it does not, the Cluster document may.
    """
    callback, notes = _callback(source, state.observed.origin)
    written = _written(spec)
    if written is not None and notes and callback is None:
        callback, notes = written, (written,)
    version = _version(state.cluster.kafka_version)
    static: Mapping[str, str] = {}
    if version is None:
        notes = (*notes, _NO_VERSION)
    elif version < _FIRST_WITHOUT_STATIC_DEFAULTS:
        static = _static_defaults(source, state.cluster.kafka_version)
        notes = (*notes, *dict.fromkeys(static.values()))
    return QuotaView(
        kind=ViewKind.SNAPSHOT if state.observed.origin is ObservedFrom.SNAPSHOT else ViewKind.CLUSTER,
        entities=state.entities,
        cluster=state.cluster.named(name),
        observed=state.observed,
        caveats=Caveats(callback=callback, static_defaults=static),
        notes=(*notes, *_oddities(state, version)),
    )


def manifests_view(intent: Intent) -> QuotaView:
    """What the manifests declare for one cluster, as if that were all."""
    written = _written(intent.spec)
    return QuotaView(
        kind=ViewKind.MANIFESTS,
        entities=intent.desired.values(),
        cluster=ClusterIdentity(name=intent.spec.name, id=intent.spec.cluster_id),
        caveats=Caveats(callback=written),
        notes=(_ALONE, *_incomplete(intent), written or _ASSUMED, *intent.notes),
    )


def planned_view(intent: Intent, current: QuotaView) -> QuotaView:
    """What ``current`` holds once the plan of the manifests is applied: unmanaged entities and those outside the scope stay.

    Raises ``ValueError`` when ``current`` was never observed.
    """
    if current.observed is None:
        raise ValueError("a plan needs a state that was read from somewhere")
    state = CurrentState(cluster=current.cluster, observed=current.observed, entities=current.entities)
    found = difference(intent.desired, state, scope=intent.spec.scope, prune=intent.spec.prune)
    pruned = sum(1 for change in found.changes if change.entity not in intent.desired.entities)
    return replace(
        current,
        kind=ViewKind.PLANNED,
        entities=quotas_after(current.entities, found.changes),
        notes=(*current.notes, *_incomplete(intent), *_pruned(intent.spec, pruned), *intent.notes),
    )


def _written(spec: ClusterSpec | None) -> str | None:
    """Why answers are not known, by the Cluster document."""
    if spec is None or spec.quota_callback is None:
        return None
    return (
        "by the Cluster document the brokers resolve quotas with their own class "
        f"({display_name(spec.quota_callback.name)} stands for it); which limit a client gets is not known here, and backtest "
        "asks that class"
    )


def _callback(source: object, origin: ObservedFrom) -> tuple[str | None, tuple[str, ...]]:
    if not isinstance(source, CallbackInspector):
        who = {ObservedFrom.SNAPSHOT: "a snapshot", ObservedFrom.ZOOKEEPER: "ZooKeeper"}.get(origin, "what was read")
        return None, (f"{_ASSUMED}; {who} does not tell whether they have a client.quota.callback.class",)
    try:
        callback = source.quota_callback()
    except BackendError as error:
        return None, (f"{_ASSUMED}; it could not be checked whether they have a client.quota.callback.class: {error}",)
    if callback is None:
        return None, ()
    reason = (
        f"the brokers resolve quotas with their own client.quota.callback.class, {display_name(callback)}; "
        "which limit a client gets is not known"
    )
    return reason, (reason,)


def _static_defaults(source: object, version: str | None) -> dict[str, str]:
    """By key, why a client without a quota may be limited all the same."""
    about = f"the brokers are of Kafka {version}: where no quota is set, their settings {' and '.join(_STATIC.values())} hold"
    if isinstance(source, StaticDefaultsInspector):
        try:
            known = source.static_quota_defaults()
        except BackendError as error:
            return dict.fromkeys(_STATIC, f"{about}; no broker told them: {error}")
        return {
            key.value: f"where no quota is set, the brokers limit client ids by their setting {_STATIC[key.value]}, "
            f"{number_text(value)} bytes/s"
            for key, value in known.items()
        }
    return dict.fromkeys(_STATIC, f"{about}, which are not among the quotas")


def _oddities(state: CurrentState, version: tuple[int, int] | None) -> Iterator[str]:
    if version is not None and _FIRST_WITHOUT_STATIC_DEFAULTS <= version < _FIRST_TO_ENFORCE_MUTATIONS:
        yield "Kafka 3.0 to 3.4 in KRaft mode stores controller_mutation_rate and does not enforce it"
    foreign = [entity for entity in state.entities if not entity.is_known]
    if foreign:
        types = sorted({entity_type for entity in foreign for entity_type in entity.types})
        yield (
            f"{len(foreign)} entities are of a shape that Kafka does not have ({', '.join(map(display_name, types))}); "
            "whom they limit is not known, and they are left out"
        )


def _incomplete(intent: Intent) -> Iterator[str]:
    if not intent.desired.complete:
        yield "only some of the manifests count here, those that the paths name; nothing is pruned"


def _pruned(spec: ClusterSpec, deleted: int) -> Iterator[str]:
    if deleted and spec.prune is Prune.CONFIRM:
        yield f"{deleted} entities are gone here that apply removes only once guard 'prune' is accepted"


def _version(text: str | None) -> tuple[int, int] | None:
    try:
        major, minor = (text or "").split(".")[:2]
        return int(major), int(minor)
    except ValueError:
        return None
