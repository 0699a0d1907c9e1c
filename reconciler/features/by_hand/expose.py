"""Make brokers measure every client, with a quota that changes no limit; refused where it would."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from reconciler.errors import BackendError, RefusedError, UsageError
from reconciler.model import CLIENT_KEYS, CurrentState, Entity, QuotaKey, display_name
from reconciler.ports import CallbackInspector, QuotaCluster, StaticDefaultsInspector
from reconciler.resolution import EXPOSING_ENTITY, QuotaTable, overridden_by_default_pair
from reconciler.text import list_some, near_miss, shown
from reconciler.workflows import AlterRequest, ClusterTarget, make_alter_request, read_state

EXPOSING_VALUES: Final[Mapping[str, float]] = {key.value: key.unreachable for key in CLIENT_KEYS}
"""What no client reaches, by key."""
EXPOSED_KEYS: Final = (QuotaKey.PRODUCER_BYTE_RATE.value, QuotaKey.CONSUMER_BYTE_RATE.value)
"""What a history of byte rates needs."""
_SHOWN: Final = 3


def exposed_keys(texts: Sequence[str]) -> tuple[str, ...]:
    """The keys of ``--keys`` as typed. Raises ``UsageError`` for one that no client can be measured by."""
    keys = tuple(dict.fromkeys(key for text in texts for key in text.split(",")))
    for key in keys:
        if key not in EXPOSING_VALUES:
            raise UsageError(f"--keys takes {', '.join(EXPOSING_VALUES)}, not {shown(key)}{near_miss(key, EXPOSING_VALUES)}")
    return keys or EXPOSED_KEYS


@dataclass(frozen=True, slots=True, kw_only=True)
class Exposure:
    """What can be done for some keys."""

    add: Mapping[str, float]
    """Values to set on ``EXPOSING_ENTITY``. No client has another limit then, but for those without any."""
    present: tuple[str, ...]
    """Keys that the default pair has already."""
    notes: Mapping[str, str]
    """By key, a sentence that states why it is not set."""


def exposure(quotas: QuotaTable, keys: Collection[str], *, static: Collection[str] = ()) -> Exposure:
    """Sort the keys by what a default pair would do. ``static``: those that settings of the brokers limit."""
    present = tuple(key for key in keys if key in quotas.get(EXPOSING_ENTITY, {}))
    add, notes = {}, {}
    for key in keys:
        if key in present:
            continue
        if entities := overridden_by_default_pair(quotas, key):
            names = list_some([str(entity) for entity in entities], _SHOWN)
            notes[key] = (
                f"{key} is not set: on user=<default> client-id=<default> it would lift the limit of {names}. "
                "With that limit, brokers measure the clients of this kind already."
            )
        elif key in static:
            notes[key] = (
                f"{key} is not set: it would lift the static limit of the brokers (quota.producer.default, "
                "quota.consumer.default)."
            )
        else:
            add[key] = EXPOSING_VALUES[key]
    return Exposure(add=add, present=present, notes=notes)


def exposing_request(cluster: QuotaCluster, keys: Collection[str], target: ClusterTarget) -> tuple[AlterRequest, Exposure]:
    """Return the alterations and the outcome of each key, by the quotas of the cluster and those that the manifests declare.

    Raises ``RefusedError`` when nothing can be set without lifting a limit, ``WrongClusterError`` and ``BackendError``.
    """
    current = read_state(target.spec, cluster)
    result = exposure(_with_declared(current, target), keys, static=_static_limits(cluster))
    if not result.add and not result.present:
        raise RefusedError(f"Nothing is set. {' '.join(result.notes.values())}")
    live = current.entities.get(EXPOSING_ENTITY, {})
    request = make_alter_request(EXPOSING_ENTITY, add=result.add or {key: live[key] for key in result.present})
    return replace(request, lifts_nothing=True), result


def _with_declared(current: CurrentState, target: ClusterTarget) -> Mapping[Entity, Mapping[str, float]]:
    """The quotas of the cluster, and those that the next apply adds."""
    table = {entity: dict(quotas) for entity, quotas in current.entities.items()}
    for entity, declared in target.desired.entities.items():
        if entity != EXPOSING_ENTITY:
            # Their values make no difference, nor that totals and groups have none yet.
            table.setdefault(entity, {}).update(dict.fromkeys((key.value for key in (*declared.quotas, *declared.units)), 0.0))
    return table


def _static_limits(cluster: QuotaCluster) -> Collection[str]:
    """The keys that settings of the brokers limit. Raises ``RefusedError`` when the brokers may decide otherwise than Kafka."""
    if not isinstance(cluster, CallbackInspector) or not isinstance(cluster, StaticDefaultsInspector):
        raise RefusedError(
            "ZooKeeper does not show the settings of the brokers, and these can limit clients, too. Pass --bootstrap-server"
        )
    try:
        callback, static = cluster.quota_callback(), cluster.static_quota_defaults()
    except BackendError as error:
        raise RefusedError(f"The brokers do not show the settings that can limit clients, too: {error}") from error
    if callback is not None:
        raise RefusedError(
            f"The brokers have the plugin {display_name(callback)}, which decides what a quota limits. "
            "Ask who runs it which quota makes clients visible"
        )
    return {key.value for key in static}
