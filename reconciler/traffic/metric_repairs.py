"""Text to paste when metrics do not show clients: rules of the jmx_exporter, and quotas that limit nothing."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Final

from reconciler.model import DEFAULT, Entity, TrafficRepair
from reconciler.traffic.kinds import KEY_OF_KIND, Kind

RULE_ORDER: Final = "rule-order"
DEFAULT_PAIR_QUOTA: Final = "default-pair-quota"
_RULES: Final = r"""rules:
  # These lines first: the first rule that matches an MBean wins.
  - pattern: kafka.server<type=(\w+), user=(.+), client-id=(.+)><>([a-z-]+)
    name: kafka_server_quota_$4
    type: GAUGE
    labels: {resource: "$1", user: "$2", clientId: "$3"}
  - pattern: kafka.server<type=(\w+), user=(.+)><>([a-z-]+)
    name: kafka_server_quota_$3
    type: GAUGE
    labels: {resource: "$1", user: "$2"}
  - pattern: kafka.server<type=(\w+), client-id=(.+)><>([a-z-]+)
    name: kafka_server_quota_$3
    type: GAUGE
    labels: {resource: "$1", clientId: "$2"}
  - pattern: kafka.server<type=(\w+)><>queue-size
    name: kafka_server_$1_queue_size
    type: GAUGE
  - pattern: kafka.server<type=(socket-.+), ip=(.+)><>(connection-[a-z-]+)
    name: kafka_server_$1_$3
    type: GAUGE
    labels: {ip: "$2"}
  # Then your own rules.
"""
"""Pairs before single tags, since ``user=(.+)`` also matches a pair."""
_AMOUNTS: Final[Mapping[Kind, tuple[str, str]]] = {
    Kind.PRODUCE: ("1TB", "1e12"),
    Kind.FETCH: ("1TB", "1e12"),
    Kind.REQUEST: ("1000000%", "1e6"),
    Kind.MUTATION: ("1000000", "1e6"),
}
"""Far above what a broker can serve: as manifests and as kafka-configs write it."""
_DEFAULT_PAIR: Final = Entity.of({"user": DEFAULT, "client-id": DEFAULT})


def rule_order_repair() -> TrafficRepair:
    """Rules that work in front of any others."""
    title = "Put these rules of the jmx_exporter before all others, and restart the brokers:"
    return TrafficRepair(id=RULE_ORDER, title=title, language="yaml", text=_RULES)


def overridden_by_pair(quotas: Mapping[Entity, Mapping[str, float]], key: str) -> tuple[Entity, ...]:
    """Quotas that a default pair quota would override: those of default users, client-ids and default client-ids."""
    weaker = (entity for entity, values in quotas.items() if key in values and _is_weaker(entity))
    return tuple(sorted(weaker, key=str))


def default_pair_repair(
    kinds: Collection[Kind], quotas: Mapping[Entity, Mapping[str, float]] | None
) -> tuple[TrafficRepair, ...]:
    """A quota that limits nothing, so that brokers measure these ``kinds`` by pair; none where it would override quotas.

    ``quotas``: those of the cluster, ``None`` when they are not known.
    """
    usable = [kind for kind in _AMOUNTS if kind in kinds and not overridden_by_pair(quotas or {}, KEY_OF_KIND[kind].value)]
    if not usable:
        return ()
    quoted = "".join(f'        {KEY_OF_KIND[kind].value}: "{_AMOUNTS[kind][0]}"\n' for kind in usable)
    manifest = (
        "apiVersion: kafka-quotas/v1\n"
        "kind: ClientQuotas\n"
        "metadata: {name: visible-traffic}\n"
        "spec:\n"
        "  quotas:\n"
        "    - match: {user: {default: true}, client-id: {default: true}}\n"
        f"      quotas:\n{quoted}"
    )
    command = "".join(_command(some) for some in (usable[index : index + 2] for index in range(0, len(usable), 2)))
    unless = "" if quotas is not None else ", unless default users or client-ids have quotas, which it would override"
    return (
        TrafficRepair(
            id=DEFAULT_PAIR_QUOTA,
            title=f"A default pair quota that limits nothing makes brokers measure every client{unless}. As a manifest:",
            language="yaml",
            text=manifest,
        ),
        TrafficRepair(id=DEFAULT_PAIR_QUOTA, title="The same quota as a command:", language="sh", text=command),
    )


def _command(kinds: Sequence[Kind]) -> str:
    values = ",".join(f"{KEY_OF_KIND[kind].value}={_AMOUNTS[kind][1]}" for kind in kinds)
    return (
        "kafka-configs.sh --bootstrap-server HOST:9092 --alter \\\n"
        f"  --add-config {values} \\\n"
        "  --entity-type users --entity-default --entity-type clients --entity-default\n"
    )


def _is_weaker(entity: Entity) -> bool:
    """Whether the default pair quota is preferred to it: it has a precedence level of 6 to 8."""
    return entity != _DEFAULT_PAIR and (
        entity.types == ("client-id",) or (entity.types == ("user",) and entity.name("user") is DEFAULT)
    )
