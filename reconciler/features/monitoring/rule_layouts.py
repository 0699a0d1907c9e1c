"""Names that exporters give to brokers' quota sensors, as far as PromQL needs them.

``traffic.sources.metric_layouts`` reads the same series in Python; a test compares both.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from reconciler.model import QuotaKey
from reconciler.resolution import mangle, quote_client_id, sanitize_name


class RuleLayout(enum.StrEnum):
    """How an exporter names metrics and labels, by the names that ``doctor`` has for them."""

    DEFAULT_FORMAT = "default-format"
    """``kafka_server_Produce_byte_rate{user, client_id}``: the jmx_exporter without rules, Amazon MSK."""
    QUOTA_LABELS = "quota-labels"
    """``kafka_server_quota_byte_rate{resource, user, clientId}``: the jmx_exporter's example kafka-2_0_0, koperator."""
    OLD_RULE_ORDER = "old-rule-order"
    """The same rules in an older order: several tags of the MBean are in one label."""
    LOWER_CASE = "lower-case"
    """``kafka_server_produce_byte_rate{user, client_id}``: Confluent's jmx-monitoring-stacks."""
    STRIMZI = "strimzi"
    """The same names of Strimzi's metrics-reporter, which does not quote client-ids."""
    NAME_ONLY = "name-only"
    """``kafka_server_produce_user_alice_client_id_app_byte_rate``: the jmx_exporter's example kafka-kraft-3_0_0."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelCopy:
    """Sets a label to the first group of ``pattern``, where it matches the whole of another label."""

    label: str
    source: str
    pattern: str = "(.+)"


@dataclass(frozen=True, slots=True, kw_only=True)
class SensorSeries:
    """The series of one sensor: the metric, its matchers, and what turns its labels into ``user`` and ``client_id``."""

    name: str
    matchers: tuple[str, ...] = ()
    copies: tuple[LabelCopy, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class LayoutNames:
    """By quota key: the sensors of rate, throttle time and muted connections.

    ``connections``: the rate of new connections of each address. Without labels (``is_named_only``) each quota group has series
    of its own, see ``named_sensors``.
    """

    rates: Mapping[QuotaKey, SensorSeries]
    throttle_times: Mapping[QuotaKey, SensorSeries]
    queue_sizes: Mapping[QuotaKey, SensorSeries]
    connections: SensorSeries | None = None
    quotes_client_ids: bool = True
    is_named_only: bool = False


_KINDS: Final = {
    QuotaKey.PRODUCER_BYTE_RATE: ("Produce", "byte_rate"),
    QuotaKey.CONSUMER_BYTE_RATE: ("Fetch", "byte_rate"),
    QuotaKey.REQUEST_PERCENTAGE: ("Request", "request_time"),
    QuotaKey.CONTROLLER_MUTATION_RATE: ("ControllerMutation", "mutation_rate"),
}


def _by_kind(sensor: str | None, *, lower: bool) -> Mapping[QuotaKey, SensorSeries]:
    return {
        key: SensorSeries(name=f"kafka_server_{kind.lower() if lower else kind}_{sensor or rate}")
        for key, (kind, rate) in _KINDS.items()
    }


_CLIENT_ID: Final = LabelCopy(label="client_id", source="clientId")
_FROM_USER: Final = (
    LabelCopy(label="client_id", source="user", pattern="[^,]*, client-id=(.*)"),
    LabelCopy(label="user", source="user", pattern="([^,]*), client-id=.*"),
)


def _by_resource(sensor: str | None) -> Mapping[QuotaKey, SensorSeries]:
    return {
        key: SensorSeries(name=f"kafka_server_quota_{sensor or rate}", matchers=(f'resource="{kind}"',), copies=(_CLIENT_ID,))
        for key, (kind, rate) in _KINDS.items()
    }


def _by_joined_tags(sensor: str | None) -> Mapping[QuotaKey, SensorSeries]:
    return {
        key: SensorSeries(
            name=f"kafka_server_quota_{sensor or rate}",
            matchers=(f'resource=~"{kind}(, .*)?"',),
            copies=(
                _CLIENT_ID,
                *_FROM_USER,
                LabelCopy(label="user", source="resource", pattern=f"{kind}, user=([^,]*).*"),
                LabelCopy(label="client_id", source="resource", pattern=f"{kind}, (?:user=[^,]*, )?client-id=(.*)"),
            ),
        )
        for key, (kind, rate) in _KINDS.items()
    }


_CONNECTIONS: Final = SensorSeries(name="kafka_server_socket_server_metrics_connection_accept_rate", matchers=('ip!=""',))


def named_sensors(key: QuotaKey, user: str | None, client_id: str | None) -> tuple[SensorSeries, SensorSeries]:
    """Rate and throttle time of one quota group, in a layout whose metric names have user and client-id."""
    kind, rate = _KINDS[key]
    tags = f"user_{sanitize_name(user)}_" if user is not None else ""
    tags += f"client_id_{quote_client_id(client_id)}_" if client_id is not None else ""
    names = (mangle(f"kafka_server_{kind}_{tags}{sensor}") for sensor in (rate, "throttle_time"))
    of_rate, of_throttle_time = (SensorSeries(name=name) for name in names)
    return of_rate, of_throttle_time


def _of_each_kind(*, lower: bool, quotes_client_ids: bool = True, connections: SensorSeries | None = None) -> LayoutNames:
    return LayoutNames(
        connections=connections,
        rates=_by_kind(None, lower=lower),
        throttle_times=_by_kind("throttle_time", lower=lower),
        queue_sizes=_by_kind("queue_size", lower=lower),
        quotes_client_ids=quotes_client_ids,
    )


LAYOUT_NAMES: Final[Mapping[RuleLayout, LayoutNames]] = {
    RuleLayout.DEFAULT_FORMAT: _of_each_kind(lower=False, connections=_CONNECTIONS),
    RuleLayout.QUOTA_LABELS: LayoutNames(
        connections=_CONNECTIONS,
        rates=_by_resource(None),
        throttle_times=_by_resource("throttle_time"),
        queue_sizes=_by_kind("queue_size", lower=True),
    ),
    RuleLayout.OLD_RULE_ORDER: LayoutNames(
        rates=_by_joined_tags(None),
        throttle_times=_by_joined_tags("throttle_time"),
        queue_sizes=_by_kind("queue_size", lower=True),
    ),
    RuleLayout.LOWER_CASE: _of_each_kind(lower=True),
    RuleLayout.STRIMZI: _of_each_kind(lower=True, quotes_client_ids=False, connections=_CONNECTIONS),
    RuleLayout.NAME_ONLY: LayoutNames(
        rates={}, throttle_times={}, queue_sizes=_by_kind("queue_size", lower=True), is_named_only=True
    ),
}
