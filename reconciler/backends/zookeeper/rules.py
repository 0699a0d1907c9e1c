"""What is refused before ZooKeeper is written: all that a KRaft broker refuses, and what a node cannot hold or a broker not read.

ZooKeeper checks nothing, and one bad node keeps brokers from starting.
"""

from __future__ import annotations

from typing import Final

from reconciler.backends.zookeeper.names import UnwritableNameError
from reconciler.backends.zookeeper.nodes import node_path
from reconciler.model import Alteration, Entity, EntityType, IpVerdict, QuotaKey, ValueType, ip_verdict, refusal

LONGEST_PATH: Final = 150_000
"""A transaction names a path up to five times, and ZooKeeper closes the connection on a request of more than 1 MiB."""


def zookeeper_refusal(alteration: Alteration) -> str | None:
    """Why the alteration is not written; ``None`` when it can be."""
    if refused := refusal(alteration):
        return refused
    try:
        if len(node_path(alteration.entity)) > LONGEST_PATH:
            return f"the name is too long for ZooKeeper: as a path it has more than {LONGEST_PATH} characters"
    except UnwritableNameError as error:
        return str(error)
    sets = {key: value for key, value in alteration.ops.items() if value is not None}
    if sets and (refused := _address_refusal(alteration.entity)):
        return refused
    for key, value in sets.items():
        if QuotaKey(key).value_type is not ValueType.DOUBLE and not value.is_integer():
            return f"Configuration {key} must be a whole number: in ZooKeeper brokers keep its digits, and cannot read others"
    return None


def _address_refusal(entity: Entity) -> str | None:
    address = entity.name(EntityType.IP.value)
    if not isinstance(address, str):
        return None
    if ip_verdict(address) is not IpVerdict.LITERAL:
        return (
            f"{address} is not a literal address; nothing looks names up before ZooKeeper is written, and a broker that cannot "
            "resolve one does not start"
        )
    if "%" in address:
        return f"{address} has a zone: brokers would take the node's name for percent-encoded; give the address without it"
    return None
