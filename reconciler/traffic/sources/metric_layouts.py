r"""Metric series of brokers' quota sensors, as exporters name them: which client's rate on which broker each one is.

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


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricSeries:
    """The sampled rate of one client on one broker. ``user`` and ``client_id`` ``None``: not in the series."""

    broker: int
    kind: Kind
    user: str | None
    client_id: str | None

    @property
    def amounts_a_unit(self) -> float:
        """How many amounts of the canonical schema a value of 1 is: percent of a thread become nanoseconds."""
        return self.kind.amounts_a_unit


_GENERIC: Final = re.compile(r"kafka_server_quota_(byte_rate|request_time|mutation_rate)")
_OF_KIND: Final = re.compile(
    r"kafka_server_(produce|fetch|request|controller_?mutation)_(byte_rate|request_time|mutation_rate)", re.IGNORECASE
)
_NAME_ONLY: Final = re.compile(
    r"kafka_server_(?:produce|fetch|request|controllermutation)_(?:user|client_id)_.+_(?:byte_rate|request_time|mutation_rate)"
)
_KINDS: Final = {
    ("produce", "byte_rate"): Kind.PRODUCE,
    ("fetch", "byte_rate"): Kind.FETCH,
    ("request", "request_time"): Kind.REQUEST,
    ("controllermutation", "mutation_rate"): Kind.MUTATION,
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
    """The client and broker of a series; ``None`` for one that is not the rate of a client.

    ``labels`` has ``__name__``. A series without user and client-id belongs to the broker, not to a client.
    """
    name = labels.get("__name__", "")
    user = next((labels[label] for label in _USER_LABELS if labels.get(label, "") not in _ABSENT), None)
    client_id = next((labels[label] for label in _CLIENT_LABELS if labels.get(label, "") not in _ABSENT), None)
    if match := _GENERIC.fullmatch(name):
        resource = next((labels[label] for label in _KIND_LABELS if label in labels), "")
        # An older order of rules leaves the user in the label of the kind.
        if both := _RESOURCE_AND_USER.fullmatch(resource):
            resource, user = both[1], both[2]
        kind = _KINDS.get((resource.lower(), match[1]))
    elif match := _OF_KIND.fullmatch(name):
        kind = _KINDS.get((match[1].lower().replace("_", ""), match[2].lower()))
    else:
        return Unattributed.NAME_ONLY if _NAME_ONLY.fullmatch(name) else None
    if kind is None or (user is None and client_id is None):
        return None
    broker = broker_of(labels)
    if broker is None:
        return Unattributed.NO_BROKER
    return MetricSeries(
        broker=broker,
        kind=kind,
        user=None if user is None else urllib.parse.unquote(user),
        client_id=None if client_id is None else unquote_client_id(client_id),
    )


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
