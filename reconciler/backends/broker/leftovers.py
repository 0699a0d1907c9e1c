"""What a cluster may still have of finished work: replication throttles, and for comparison users with SCRAM credentials.

Requests: DescribeConfigs of each broker and of topics, ListPartitionReassignments (KIP-455), and DescribeUserScramCredentials
(KIP-554). A setting of a broker's properties file is left out: no request removes it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from kafka.protocol.admin import DescribeUserScramCredentialsRequest, ListPartitionReassignmentsRequest

from reconciler.backends.broker.quota_messages import BROKER, TOPIC, settings_request
from reconciler.errors import BackendError
from reconciler.ports import ReplicationThrottles

_RATES: Final = ("leader.replication.throttled.rate", "follower.replication.throttled.rate")
_REPLICAS: Final = ("leader.replication.throttled.replicas", "follower.replication.throttled.replicas")
_SET_ON_TOPIC, _SET_ON_BROKER, _SET_ON_ALL_BROKERS = 1, 2, 3
"""Sources of a setting in DescribeConfigs."""
_UNKNOWN_TOPIC: Final = 3
"""Error code of a topic that was deleted meanwhile."""
_TOPICS_IN_A_REQUEST: Final = 1000
_NO_REASSIGNMENT_MS: Final = 30_000

Ask = Callable[[Callable[[], Any], int | None], Any]
"""Send a request to a broker (any, when ``None``), and return its answer."""
Refuse = Callable[[int, str | None], BackendError]
"""The error for an answer's error code and message."""


def read_throttles(
    ask: Ask, refuse: Refuse, *, brokers: Sequence[int], topics: Sequence[str], controller: int | None
) -> ReplicationThrottles:
    """Return the throttles that stand, and the reassignments that run. Raises ``BackendError``.

    Settings are read before reassignments: a tool sets a throttle before it starts what it throttles.
    """
    rates: dict[int | None, dict[str, str]] = {}
    for broker in brokers:
        for key, value, source in _settings(ask, refuse, BROKER, [str(broker)], _RATES, broker)[str(broker)]:
            if source in (_SET_ON_BROKER, _SET_ON_ALL_BROKERS):
                rates.setdefault(broker if source == _SET_ON_BROKER else None, {})[key] = value
    replicas: dict[str, dict[str, str]] = {}
    for start in range(0, len(topics), _TOPICS_IN_A_REQUEST):
        names = topics[start : start + _TOPICS_IN_A_REQUEST]
        for topic, settings in _settings(ask, refuse, TOPIC, names, _REPLICAS, None).items():
            if lists := {key: value for key, value, source in settings if source == _SET_ON_TOPIC and value}:
                replicas[topic] = lists
    return ReplicationThrottles(rates=rates, replicas=replicas, moving=_reassignments(ask, refuse, controller))


def _settings(
    ask: Ask, refuse: Refuse, kind: int, names: Sequence[str], keys: Sequence[str], broker: int | None
) -> Mapping[str, Sequence[tuple[str, str, int]]]:
    """Return, by resource, triples of setting, value and source."""
    answer = ask(lambda: settings_request(kind, names, keys), broker)
    by_name: dict[str, list[tuple[str, str, int]]] = {name: [] for name in names}
    for result in answer.results:
        if result.error_code == _UNKNOWN_TOPIC:
            continue
        if result.error_code:
            raise refuse(result.error_code, result.error_message)
        by_name[result.resource_name] = [(each.name, each.value or "", each.config_source) for each in result.configs]
    return by_name


def _reassignments(ask: Ask, refuse: Refuse, controller: int | None) -> Mapping[str, frozenset[int]]:
    """Return, by topic with a running reassignment, the brokers that take part."""
    answer = ask(lambda: ListPartitionReassignmentsRequest(timeout_ms=_NO_REASSIGNMENT_MS, topics=None), controller)
    if answer.error_code:
        raise refuse(answer.error_code, answer.error_message)
    return {topic.name: frozenset(_brokers_of(topic.partitions)) for topic in answer.topics}


def _brokers_of(partitions: Iterable[Any]) -> Iterator[int]:
    for partition in partitions:
        yield from (*partition.replicas, *partition.adding_replicas, *partition.removing_replicas)


def read_scram_users(ask: Ask, refuse: Refuse, *, controller: int | None) -> frozenset[str]:
    """Return the users with SCRAM credentials. Raises ``BackendError``, for want of the right to see them, too."""
    # Empty is all, as null is. Kafka 4.4.0 never answers a null from a principal without the right.
    answer = ask(lambda: DescribeUserScramCredentialsRequest(users=[]), controller)
    if answer.error_code:
        raise refuse(answer.error_code, answer.error_message)
    return frozenset(result.user for result in answer.results if not result.error_code)
