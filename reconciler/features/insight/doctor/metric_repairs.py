"""Text to paste when metrics do not show clients: rules of the jmx_exporter, and the command that makes clients visible."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

from reconciler.features.insight.doctor.traffic_health import TrafficRepair
from reconciler.model import Entity
from reconciler.resolution import EXPOSING_VALUES, overridden_by_default_pair
from reconciler.traffic import KEY_OF_KIND, Kind

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
_KINDS: Final = tuple(kind for kind in KEY_OF_KIND if KEY_OF_KIND[kind].value in EXPOSING_VALUES)


def rule_order_repair() -> TrafficRepair:
    """Rules that work in front of any others."""
    title = "Put these rules of the jmx_exporter before all others, and restart the brokers:"
    return TrafficRepair(id=RULE_ORDER, title=title, language="yaml", text=_RULES)


def default_pair_repair(
    kinds: Collection[Kind], quotas: Mapping[Entity, Mapping[str, float]] | None
) -> tuple[TrafficRepair, ...]:
    """The command that makes brokers measure these ``kinds`` by pair; none where it would lift the quotas that are known.

    ``quotas``: those of the cluster, ``None`` when they are not known. The command looks at the cluster itself.
    """
    keys = [KEY_OF_KIND[kind].value for kind in _KINDS if kind in kinds]
    usable = [key for key in keys if not overridden_by_default_pair(quotas or {}, key)]
    if not usable:
        return ()
    options = "".join(f" \\\n  --keys {','.join(usable[index : index + 2])}" for index in range(0, len(usable), 2))
    return (
        TrafficRepair(
            id=DEFAULT_PAIR_QUOTA,
            title="A default pair quota far above any network makes brokers measure every client. This command sets it where it "
            "lifts no other limit:",
            language="sh",
            text=f"kafka-quotas alter --expose-clients --bootstrap-server HOST:9092{options}\n",
        ),
    )
