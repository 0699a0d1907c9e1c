r"""Metric series of brokers' quota sensors, as exporters name them: whose they are, on which broker, and what they measure.

Sources: the MBeans ``kafka.server:type=Produce|Fetch|Request|ControllerMutation`` of Kafka's ``ClientQuotaManager``, and what
the jmx_exporter's examples, its default format, Confluent's monitoring stacks, koperator and Strimzi's reporter make of them.
A user is percent-encoded there (Kafka's ``Sanitizer.sanitize``); a client-id with other characters than ``[\w-%\. \t]`` is
quoted as ``ObjectName.quote`` does.
"""

from __future__ import annotations

import enum
import re
import urllib.parse
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from reconciler.traffic.kinds import Kind

SERIES_SELECTOR: Final = '{__name__=~"kafka_server_(quota|[Pp]roduce|[Ff]etch|[Rr]equest|[Cc]ontroller_?[Mm]utation)_.+"}'
"""The series to ask a server for; ``read_series`` sorts out those of other sensors."""


class Unattributed(enum.StrEnum):
    """Why the client of a series is not known."""

    NAME_ONLY = "name-only"
    """User and client-id are part of the metric name, where case and special characters are lost."""
    NO_BROKER = "no-broker"
    """No label has a broker id."""


class Measure(enum.StrEnum):
    """What the samples of a series are."""

    RATE = "rate"
    """The rate that the broker compares with the limit: bytes/s, percent of a thread, mutations/s."""
    THROTTLE_TIME = "throttle-time"
    """Milliseconds: the mean of the throttles of the last minute, NaN without one."""
    TOKENS = "tokens"
    """Tokens left of a controller mutation quota, negative in debt."""
    QUEUE_SIZE = "queue-size"
    """Connections of all clients that the broker has muted for this kind of quota."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricSeries:
    """What one client does on one broker. ``user`` and ``client_id`` ``None``: not in the series.

    A queue size belongs to the broker and the kind: it has neither user nor client-id.
    """

    broker: int
    kind: Kind
    user: str | None
    client_id: str | None
    measure: Measure = Measure.RATE

    @property
    def amounts_a_unit(self) -> float:
        """How many amounts of the canonical schema a value of 1 is: percent of a thread become nanoseconds."""
        return self.kind.amounts_a_unit if self.measure is Measure.RATE else 1.0


_SENSORS: Final = r"(byte_rate|request_time|mutation_rate|throttle_time|throttle_time_ms|tokens|queue_size)"
_GENERIC: Final = re.compile(rf"kafka_server_quota_{_SENSORS}")
_OF_KIND: Final = re.compile(rf"kafka_server_(produce|fetch|request|controller_?mutation)_{_SENSORS}", re.IGNORECASE)
_NAME_ONLY: Final = re.compile(
    r"kafka_server_(?:produce|fetch|request|controllermutation)_(?:user|client_id)_.+_"
    r"(?:byte_rate|request_time|mutation_rate|throttle_time|tokens)"
)
_KINDS: Final = {
    "produce": Kind.PRODUCE,
    "fetch": Kind.FETCH,
    "request": Kind.REQUEST,
    "controllermutation": Kind.MUTATION,
}
_RATES: Final = {
    Kind.PRODUCE: "byte_rate",
    Kind.FETCH: "byte_rate",
    Kind.REQUEST: "request_time",
    Kind.MUTATION: "mutation_rate",
}
_MEASURES: Final = {
    "throttle_time": Measure.THROTTLE_TIME,
    "throttle_time_ms": Measure.THROTTLE_TIME,
    "queue_size": Measure.QUEUE_SIZE,
}
_KIND_LABELS: Final = ("resource", "quota_type", "quota_kind", "type")
_USER_LABELS: Final = ("user", "principal_name")
_CLIENT_LABELS: Final = ("client_id", "clientId", "clientid", "client", "client_name")
_BROKER_LABELS: Final = ("broker", "broker_id", "kafka_broker_id", "kafka_node_id", "node_id")
_HOST_LABELS: Final = ("pod", "kubernetes_pod_name", "instance")
_ABSENT: Final = frozenset({"", "not_applicable"})
_BROKER: Final = re.compile(r"[0-9]{1,9}")
_ORDINAL: Final = re.compile(r"[A-Za-z0-9.-]*?[A-Za-z-]([0-9]{1,9})(?:\.[A-Za-z][A-Za-z0-9.-]*)?(?::[0-9]+)?")
_RESOURCE_AND_USER: Final = re.compile(r"(\w+), user=(.*)", re.DOTALL)
_ESCAPES: Final = re.compile(r"\\([\\\"*?n])")


def read_series(labels: Mapping[str, str]) -> MetricSeries | Unattributed | None:
    """Whose series this is and what it measures; ``None`` for one of another sensor.

    ``labels`` has ``__name__``. Of the series without user and client-id, only the queue size is of use.
    """
    name = labels.get("__name__", "")
    user = next((labels[label] for label in _USER_LABELS if labels.get(label, "") not in _ABSENT), None)
    client_id = next((labels[label] for label in _CLIENT_LABELS if labels.get(label, "") not in _ABSENT), None)
    if match := _GENERIC.fullmatch(name):
        resource = next((labels[label] for label in _KIND_LABELS if label in labels), "")
        # An older order of rules leaves the user in the label of the kind.
        if both := _RESOURCE_AND_USER.fullmatch(resource):
            resource, user = both[1], both[2]
        kind, sensor = _KINDS.get(resource.lower()), match[1]
    elif match := _OF_KIND.fullmatch(name):
        kind, sensor = _KINDS.get(match[1].lower().replace("_", "")), match[2].lower()
    else:
        return Unattributed.NAME_ONLY if _NAME_ONLY.fullmatch(name) else None
    measure = _measure_of(kind, sensor)
    # Each sensor but the queue size is of a client, and the queue size is of none.
    if kind is None or measure is None or (user is None and client_id is None) is not (measure is Measure.QUEUE_SIZE):
        return None
    broker = broker_of(labels)
    if broker is None:
        return Unattributed.NO_BROKER
    return MetricSeries(
        broker=broker,
        kind=kind,
        user=None if user is None else urllib.parse.unquote(user),
        client_id=None if client_id is None else unquote_client_id(client_id),
        measure=measure,
    )


def _measure_of(kind: Kind | None, sensor: str) -> Measure | None:
    if kind is not None and sensor == _RATES[kind]:
        return Measure.RATE
    if sensor == "tokens":
        return Measure.TOKENS if kind is Kind.MUTATION else None
    return _MEASURES.get(sensor)


def broker_of(labels: Mapping[str, str]) -> int | None:
    """The broker id: a label of it, else the number at the end of a pod's or host's name (``kafka-3:7071``)."""
    for label in _BROKER_LABELS:
        if _BROKER.fullmatch(labels.get(label, "")):
            return int(labels[label])
    for label in _HOST_LABELS:
        if match := _ORDINAL.fullmatch(labels.get(label, "")):
            return int(match[1])
    return None


def unquote_client_id(text: str) -> str:
    """The client-id of a label: ``ObjectName.quote`` undone. A client-id is never percent-encoded."""
    if len(text) < 2 or not (text.startswith('"') and text.endswith('"')):
        return text
    return _ESCAPES.sub(lambda match: "\n" if match[1] == "n" else match[1], text[1:-1])
