"""The brokers that have registered themselves in ZooKeeper, and when it is better to ask them.

Source: Kafka's ``BrokerIdZNode``. Its entries do not tell the release; their format has a version, 5 from Kafka 2.7 on.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from kazoo.exceptions import NoNodeError

from reconciler.model import escaped

if TYPE_CHECKING:
    from kazoo.client import KazooClient

BROKER_IDS: Final = "/brokers/ids"
_OF_2_7: Final = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class RegisteredBroker:
    """A broker that is up. ``endpoint`` is its first one, as it says itself (``SASL_SSL://b1:9093``)."""

    id: int
    endpoint: str | None
    format_version: int


def registered_brokers(client: KazooClient) -> tuple[RegisteredBroker, ...]:
    """Those that are up, by id. Raises kazoo's errors."""
    try:
        names = client.get_children(BROKER_IDS)
    except NoNodeError:
        return ()
    found = [broker for name in names if (broker := _broker(client, name)) is not None]
    return tuple(sorted(found, key=lambda broker: broker.id))


def recommendation(brokers: Sequence[RegisteredBroker]) -> str | None:
    """A note for whoever did not choose ZooKeeper on purpose; ``None`` when there is no broker to ask."""
    if not brokers:
        return None
    is_sure = all(broker.format_version >= _OF_2_7 for broker in brokers)
    place = next((f", such as {escaped(broker.endpoint)}" for broker in brokers if broker.endpoint), "")
    return (
        f"the brokers of this cluster {'are' if is_sure else 'may be'} of Kafka 2.6 or newer and can be asked themselves"
        f"{place}: prefer bootstrapServers, which checks more and shows what brokers obey (--zookeeper ends this advice)"
    )


def _broker(client: KazooClient, name: str) -> RegisteredBroker | None:
    try:
        said = json.loads(client.get(f"{BROKER_IDS}/{name}")[0])
        endpoints = [str(endpoint) for endpoint in said.get("endpoints") or ()]
        return RegisteredBroker(id=int(name), endpoint=next(iter(endpoints), None), format_version=int(said.get("version", 0)))
    except (NoNodeError, ValueError, TypeError, AttributeError):
        return None
