"""Metric series of brokers' quota sensors, as exporters name them: whose they are, on which broker, and what they measure.

Sources: the MBeans ``kafka.server:type=Produce|Fetch|Request|ControllerMutation`` of Kafka's ``ClientQuotaManager`` and
``type=socket-server-metrics,ip=`` of its ``ConnectionQuotas``, and what the jmx_exporter's examples, its default format,
Confluent's monitoring stacks, koperator and Strimzi's reporter make of them.
"""

from __future__ import annotations

import enum
import re
import urllib.parse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from reconciler.traffic import Kind, Measure

if TYPE_CHECKING:
    from reconciler.model import LabelMatcher

NAMES_TO_READ: Final = (
    "kafka_server_(quota|[Pp]roduce|[Ff]etch|[Rr]equest|[Cc]ontroller_?[Mm]utation)_.+",
    "kafka_server_socket_server_metrics_connection_accept_rate",
)
"""The series to ask a server for, as regular expressions; ``read_series`` sorts out those of other sensors."""


class Unattributed(enum.StrEnum):
    """Why the client of a series is not known."""

    NAME_ONLY = "name-only"
    """User and client-id are part of the metric name, where case, special characters and the border of both are lost."""
    NO_BROKER = "no-broker"
    """No label has a broker id."""


class Layout(enum.StrEnum):
    """What made the names and labels of a series."""

    QUOTA_LABELS = "quota-labels"
    """``kafka_server_quota_*`` with the kind and the client in labels: the jmx_exporter's example kafka-2_0_0, koperator."""
    OLD_RULE_ORDER = "old-rule-order"
    """The same rules in an older order: several tags of the MBean are in one label."""
    NAME_ONLY = "name-only"
    """User and client-id are in the metric name: the jmx_exporter's example kafka-kraft-3_0_0."""
    LOWER_CASE = "lower-case"
    """``kafka_server_produce_*`` with labels: Confluent's jmx-monitoring-stacks, Strimzi's metrics-reporter."""
    DEFAULT_FORMAT = "default-format"
    """``kafka_server_Produce_*`` with labels: the jmx_exporter without rules, Amazon MSK."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricSeries:
    """What one client does on one broker. ``user`` and ``client_id`` ``None``: not in the series.

    A queue size belongs to the broker and the kind: it has neither user nor client-id. Connections have an ``ip`` only.
    """

    broker: int
    kind: Kind
    user: str | None
    client_id: str | None
    measure: Measure = Measure.RATE
    ip: str | None = None

    @property
    def amounts_a_unit(self) -> float:
        """The factor from a value to amounts of the canonical schema: percent of a thread become nanoseconds."""
        return self.kind.amounts_a_unit if self.measure is Measure.RATE else 1.0


_SENSORS: Final = "(byte_?rate|request_?time|mutation_?rate|throttle_?time|throttle_?time_?ms|tokens|queue_?size)(?:_value)?"
_GENERIC: Final = re.compile(f"kafka_server_quota_{_SENSORS}", re.IGNORECASE)
_OF_KIND: Final = re.compile(f"kafka_server_(produce|fetch|request|controller_?mutation)_{_SENSORS}", re.IGNORECASE)
_NAME_ONLY: Final = re.compile(
    f"kafka_server_(produce|fetch|request|controllermutation)_((?:user|client_id)_(?:.*_)?){_SENSORS}", re.IGNORECASE | re.DOTALL
)
_CONNECTIONS: Final = "kafka_server_socket_server_metrics_connection_accept_rate"
_KINDS: Final = {"produce": Kind.PRODUCE, "fetch": Kind.FETCH, "request": Kind.REQUEST, "controllermutation": Kind.MUTATION}
_RATES: Final = {Kind.PRODUCE: "byterate", Kind.FETCH: "byterate", Kind.REQUEST: "requesttime", Kind.MUTATION: "mutationrate"}
_MEASURES: Final = {
    "throttletime": Measure.THROTTLE_TIME,
    "throttletimems": Measure.THROTTLE_TIME,
    "queuesize": Measure.QUEUE_SIZE,
}
_KIND_LABELS: Final = ("resource", "quotatype", "quotakind", "type", "kind", "quota")
_USER_LABELS: Final = ("user", "principalname", "principal", "username", "quotauser")
_CLIENT_LABELS: Final = ("clientid", "client", "clientname", "quotaclientid")
"""Of users, client-ids and kinds: without case, ``_`` and ``-``, which exporters spell in all ways."""
_OF_GROUPS: Final = frozenset((*_KIND_LABELS, *_USER_LABELS, *_CLIENT_LABELS, "ip"))
_BROKER_LABELS: Final = ("broker", "brokerid", "kafkabrokerid", "kafkanodeid", "nodeid", "node")
_HOST_LABELS: Final = ("pod", "kubernetes_pod_name", "broker", "instance")
"""Not ``node``: on Kubernetes that is the machine, whose number is not a broker's."""
_BROKER: Final = re.compile(r"[0-9]{1,9}", re.ASCII)
_ORDINAL: Final = re.compile(r"[A-Za-z0-9.-]*?[A-Za-z-]([0-9]{1,9})(?:\.[A-Za-z][A-Za-z0-9.-]*)?(?::[0-9]+)?", re.ASCII)
_ADDRESS_AS_NAME: Final = re.compile(r"(?:.*[^0-9])?[0-9]{1,3}(?:-[0-9]{1,3}){3}(?:[.:].*)?", re.DOTALL)
"""``ip-10-0-0-3.ec2.internal`` ends with a part of an address."""
_TAGS: Final = re.compile(r"([^,]*)(?:, user=([^,]*))?(?:, client-id=(.*))?", re.DOTALL)
_USER_AND_CLIENT: Final = re.compile(r"([^,]*), client-id=(.*)", re.DOTALL)


def read_series(labels: Mapping[str, str]) -> MetricSeries | Unattributed | None:
    """Return the client and the measure of a series, the reason why they are not known, or ``None`` for one of another sensor.

    ``labels`` has ``__name__``. Of the series without user and client-id, only the queue size is of use.
    """
    name = labels.get("__name__", "")
    if name == _CONNECTIONS:
        ip = unquote_client_id(labels.get("ip", ""))
        return _located(labels, Kind.CONNECTION, Measure.RATE, ip=ip) if ip else None
    spelled = _spelled(labels)
    user, client_id = _first(spelled, _USER_LABELS), _first(spelled, _CLIENT_LABELS)
    if match := _GENERIC.fullmatch(name):
        resource, user, client_id = _joined_tags(_kind_label(spelled) or "", user, client_id)
        kind, sensor = _KINDS.get(_folded(resource)), match[1]
    elif match := _OF_KIND.fullmatch(name):
        kind, sensor = _KINDS.get(_folded(match[1])), match[2]
    elif match := _NAME_ONLY.fullmatch(name):
        measure = _measure_of(_KINDS[match[1].lower()], match[3])
        return None if measure in (None, Measure.QUEUE_SIZE) else Unattributed.NAME_ONLY
    else:
        return None
    measure = _measure_of(kind, sensor)
    # Each sensor but the queue size is of a client, and the queue size is of none.
    if kind is None or measure is None or (user is None and client_id is None) is not (measure is Measure.QUEUE_SIZE):
        return None
    return _located(
        labels,
        kind,
        measure,
        user=None if user is None else decode_user(user),
        client_id=None if client_id is None else unquote_client_id(client_id),
    )


def layout_of(labels: Mapping[str, str]) -> Layout | None:
    """Return the layout of a series, whether or not its client is known; ``None`` for a series of another sensor."""
    name = labels.get("__name__", "")
    if _GENERIC.fullmatch(name):
        spelled = _spelled(labels)
        if _kind_label(spelled) is None:
            return None
        if any(", " in spelled.get(label, "") for label in ("resource", "user")):
            return Layout.OLD_RULE_ORDER
        return Layout.QUOTA_LABELS
    if match := _OF_KIND.fullmatch(name):
        return Layout.LOWER_CASE if match[1].islower() else Layout.DEFAULT_FORMAT
    return Layout.NAME_ONLY if _NAME_ONLY.fullmatch(name) else None


def selector_of(match: Sequence[LabelMatcher] = ()) -> str:
    """The series to ask a server for, as PromQL: those of the known layouts that all of ``match`` select."""
    names = f'__name__=~"{"|".join(NAMES_TO_READ)}"'
    return f"{{{','.join((names, *map(str, match)))}}}"


def is_identity_label(label: str) -> bool:
    """Whether a label is of the quota group or the sensor, so that it differs between layouts of one broker."""
    return label == "__name__" or _folded(label) in _OF_GROUPS


def broker_of(labels: Mapping[str, str]) -> int | None:
    """The broker id: a label of it, else the number at the end of a pod's or host's name (``kafka-3:7071``)."""
    spelled = _spelled(labels)
    for label in _BROKER_LABELS:
        if _BROKER.fullmatch(spelled.get(label, "")):
            return int(spelled[label])
    for label in _HOST_LABELS:
        host = labels.get(label, "")
        if (match := _ORDINAL.fullmatch(host)) and not _ADDRESS_AS_NAME.fullmatch(host):
            return int(match[1])
    return None


def _folded(text: str) -> str:
    return text.lower().replace("_", "").replace("-", "")


def _spelled(labels: Mapping[str, str]) -> dict[str, str]:
    """The labels by their names without case, ``_`` and ``-``. Of two that are alike then, one with a value counts."""
    spelled: dict[str, str] = {}
    for label, value in labels.items():
        folded = _folded(label)
        if not spelled.get(folded):
            spelled[folded] = value
    return spelled


def _first(labels: Mapping[str, str], spellings: Sequence[str]) -> str | None:
    return next((labels[label] for label in spellings if labels.get(label)), None)


def _kind_label(spelled: Mapping[str, str]) -> str | None:
    """The label that names a kind of quota, alone or with other tags behind it; else the first that may."""
    values = [spelled[label] for label in _KIND_LABELS if spelled.get(label)]
    named = (value for value in values if _folded(value.partition(",")[0]) in _KINDS)
    return next(named, values[0] if values else None)


def _joined_tags(resource: str, user: str | None, client_id: str | None) -> tuple[str, str | None, str | None]:
    """Kind, user and client-id where an older order of rules left several tags in one label.

    The tag of a user is percent-encoded, so that it has no comma of its own.
    """
    if match := _TAGS.fullmatch(resource):
        resource, user, client_id = match[1], match[2] or user, match[3] or client_id
    if user is not None and (match := _USER_AND_CLIENT.fullmatch(user)):
        user, client_id = match[1], match[2] or client_id
    return resource, user, client_id


def _measure_of(kind: Kind | None, sensor: str) -> Measure | None:
    sensor = _folded(sensor)
    if kind is not None and sensor == _RATES[kind]:
        return Measure.RATE
    if sensor == "tokens":
        return Measure.TOKENS if kind is Kind.MUTATION else None
    return _MEASURES.get(sensor)


def _located(
    labels: Mapping[str, str],
    kind: Kind,
    measure: Measure,
    *,
    user: str | None = None,
    client_id: str | None = None,
    ip: str | None = None,
) -> MetricSeries | Unattributed:
    broker = broker_of(labels)
    if broker is None:
        return Unattributed.NO_BROKER
    return MetricSeries(broker=broker, kind=kind, user=user, client_id=client_id, measure=measure, ip=ip)


_QUOTED: Final = re.compile(r'"(?:[^"\\*?\n]|\\[\\"*?n])*"', re.DOTALL)
_ESCAPES: Final = re.compile(r"\\([\\\"*?n])")


def decode_user(text: str) -> str:
    """The user of a tag or label."""
    return urllib.parse.unquote(text, errors="replace")


def unquote_client_id(text: str) -> str:
    """The client-id of a label. Text that ``ObjectName.quote`` cannot have made is the client-id itself."""
    if not _QUOTED.fullmatch(text):
        return text
    return _ESCAPES.sub(lambda match: "\n" if match[1] == "n" else match[1], text[1:-1])
