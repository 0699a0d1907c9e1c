"""What ZooKeeper still has of finished work: replication throttles, users with SCRAM credentials, and nodes without a setting.

Throttles are settings in ``/config/brokers`` and ``/config/topics``. A reassignment is in the topic's node (``adding_replicas``
and ``removing_replicas``, since Kafka 2.4) or in ``/admin/reassign_partitions`` (before, and where a tool asks by ZooKeeper).
"""

from __future__ import annotations

import contextlib
import datetime
import json
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from kazoo.exceptions import NoNodeError

from reconciler.backends.zookeeper.nodes import (
    CONFIG,
    DEFAULT_NODE,
    USERS,
    UnreadableNodeError,
    clients_of,
    name_of_node,
    parents,
    parse_java,
    parse_node,
)
from reconciler.errors import UnsupportedClusterError
from reconciler.ports import ReplicationThrottles

if TYPE_CHECKING:
    from kazoo.client import KazooClient

    from reconciler.backends.zookeeper.session import Pipeline

_BROKERS: Final = f"{CONFIG}/brokers"
_TOPICS: Final = f"{CONFIG}/topics"
_ASSIGNMENTS: Final = "/brokers/topics"
_REASSIGNMENT: Final = "/admin/reassign_partitions"
_RATE: Final = ".replication.throttled.rate"
_REPLICAS: Final = ".replication.throttled.replicas"
_CREDENTIAL: Final = "SCRAM-"


def read_throttles(client: KazooClient, pipeline: Pipeline) -> ReplicationThrottles:
    """Return the throttles that stand, and the reassignments that run. Raises kazoo's errors.

    Settings are read before reassignments: a tool sets a throttle before it starts what it throttles.
    """
    rates: dict[int | None, Mapping[str, str]] = {}
    replicas: dict[str, Mapping[str, str]] = {}
    changed: dict[int | str | None, datetime.datetime] = {}
    for node, config, at in _configs(client, pipeline, _BROKERS):
        limits = {key: text for key, text in config.items() if key.endswith(_RATE) and parse_java(text) is not None}
        if limits and (node.isdecimal() or node == DEFAULT_NODE):
            broker = None if node == DEFAULT_NODE else int(node)
            rates[broker], changed[broker] = limits, at
    for topic, config, at in _configs(client, pipeline, _TOPICS):
        if lists := {key: text for key, text in config.items() if key.endswith(_REPLICAS) and text}:
            replicas[topic], changed[topic] = lists, at
    moving = _reassignments(client, pipeline) if changed else {}
    return ReplicationThrottles(rates=rates, replicas=replicas, moving=moving, changed=changed)


def read_scram_users(client: KazooClient, pipeline: Pipeline) -> frozenset[str]:
    """Return the users with SCRAM credentials. Raises kazoo's errors."""
    named = ((name_of_node(node), config) for node, config, _ in _configs(client, pipeline, USERS))
    return frozenset(
        name for name, config in named if isinstance(name, str) and any(key.startswith(_CREDENTIAL) for key in config)
    )


def removable_nodes(empty: Mapping[str, int], clients: Mapping[str, int]) -> Iterator[tuple[str, int | None]]:
    """Yield path and version of each node that can be removed, in an order in which that succeeds. A folder has no version.

    ``empty``: by path, the versions of nodes without a setting. ``clients``: by a user's path, its number of client-ids.
    """
    left = Counter(clients)
    for path, version in empty.items():
        if above := parents(path):
            left[above[0]] -= 1
            yield path, version
    for path, version in empty.items():
        if not parents(path) and not left[path]:
            if path in clients:
                yield clients_of(path), None
            yield path, version


def _configs(client: KazooClient, pipeline: Pipeline, folder: str) -> Iterator[tuple[str, Mapping[str, str], datetime.datetime]]:
    """Yield name, settings and last change of each node of a folder; none without one, and no node that is not a config."""
    for node, (data, stat) in _read_all(client, pipeline, folder):
        try:
            config = parse_node(data).config
        except UnreadableNodeError:
            continue
        at = datetime.datetime.fromtimestamp(stat.mtime / 1000, datetime.UTC)
        yield node, {key: text for key, text in config.items() if isinstance(text, str)}, at


def _read_all(client: KazooClient, pipeline: Pipeline, folder: str) -> Iterator[tuple[str, tuple[bytes | None, Any]]]:
    try:
        nodes = client.get_children(folder)
    except NoNodeError:
        return
    get = client.get_async
    for node, read in pipeline.ask(lambda node: get(f"{folder}/{node}"), sorted(nodes)):
        if read is not None:
            yield node, read


def _reassignments(client: KazooClient, pipeline: Pipeline) -> Mapping[str, frozenset[int]]:
    """Return, by topic with a running reassignment, the brokers that take part. Raises ``UnsupportedClusterError``."""
    wanted: dict[str, set[int]] = defaultdict(set)
    moving: dict[str, set[int]] = defaultdict(set)
    try:
        with contextlib.suppress(NoNodeError):
            for partition in json.loads(client.get(_REASSIGNMENT)[0])["partitions"]:
                wanted[partition["topic"]].update(partition["replicas"])
        for topic, (data, _) in _read_all(client, pipeline, _ASSIGNMENTS):
            document = json.loads(data or b"{}")
            partitions = document.get("partitions", {})
            moved = (
                partitions
                if topic in wanted
                else {**document.get("adding_replicas", {}), **document.get("removing_replicas", {})}
            )
            for number in moved:
                moving[topic].update(wanted[topic], partitions[number])
    except (ValueError, KeyError, TypeError, AttributeError):
        raise UnsupportedClusterError("ZooKeeper has reassignments of partitions in a form that Kafka does not write") from None
    return {topic: frozenset(brokers) for topic, brokers in moving.items()}
