"""Prometheus rules of one cluster's quotas: limits as series, rates of quota groups in one form, and alerts on both.

A quota group is known by the tags of its series: user and client-id, only the user, or only the client-id. For each of these,
the precedence levels that group by the same names decide its limit, the strongest first; so does ``quotaLimit`` of Kafka's
``DefaultQuotaCallback``. Names have the spelling of the exporter's labels, because PromQL cannot decode one.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from reconciler.model import CLIENT_KEYS, DEFAULT, Entity, EntityName, EntityType, QuotaKey, escaped, in_canonical_order
from reconciler.resolution import (
    CLIENT_LEVELS,
    CLIENT_PRECEDENCE,
    USER_LEVELS,
    NameMatch,
    level_of,
    quote_client_id,
    sanitize_name,
)
from reconciler.text import number_text
from reconciler.yaml import scalar_text

LIMIT: Final = "kafka_quota_limit"
RATE: Final = "kafka_quota_rate"
THROTTLE_TIME: Final = "kafka_quota_throttle_time_ms"
MUTED: Final = "kafka_quota_muted_connections"
GROUP_LIMIT: Final = "kafka_quota_group_limit"
UTILIZATION: Final = "kafka_quota_utilization"
PEAK: Final = "kafka_quota_peak_utilization"
NEVER_USED: Final = "KafkaQuotaNeverUsed"

_LIMITS_A_GROUP: Final = 1_000
"""Prometheus evaluates the rules of a group one after another, and groups beside each other."""
_INTERVAL_S: Final = 60
_PEAKS: Final = 168
"""So many peaks are kept of the time without use: of seven days, one an hour."""
_GROUP: Final = "broker, user, client_id, key"
_MATCHED: Final = f"on ({_GROUP}) group_left (entity, level, owner)"
_WHOSE: Final = "user={{ $labels.user }} client-id={{ $labels.client_id }}"
_NO_SERIES: Final = "rules compare rates of users and client-ids, and these quotas have none"
_SHAPES: Final = {frozenset(USER_LEVELS): 'user!="",client_id=""', frozenset(CLIENT_LEVELS): 'user="",client_id!=""'}
"""Labels of the quota groups that levels make, where they are not pairs."""
_SENSORS: Final = {
    QuotaKey.PRODUCER_BYTE_RATE: ("Produce", "byte_rate"),
    QuotaKey.CONSUMER_BYTE_RATE: ("Fetch", "byte_rate"),
    QuotaKey.REQUEST_PERCENTAGE: ("Request", "request_time"),
    QuotaKey.CONTROLLER_MUTATION_RATE: ("ControllerMutation", "mutation_rate"),
}
_CHECK: Final = "Check the scrape of the brokers, and compare with the layout that kafka-quotas doctor reports"
_ALERTS: Final = (
    (
        "KafkaQuotaNearLimit",
        "{utilization} > {near:g}",
        f"{_WHOSE} is near its {{{{ $labels.key }}}} on broker {{{{ $labels.broker }}}}.",
        "The rate is {{ $value | humanizePercentage }} of the limit, which {{ $labels.entity }} sets.",
    ),
    (
        "KafkaQuotaThrottled",
        f"{{throttled}} + {_MATCHED} (0 * {{limit}})\nor on ({_GROUP}) {{throttled}}",
        f"Broker {{{{ $labels.broker }}}} throttles {_WHOSE} by {{{{ $labels.key }}}}.",
        "A throttle of the last minute took {{ $value | humanize }} ms on average. The limit is that of {{ $labels.entity }}.",
    ),
    (
        "KafkaQuotaRatesMissing",
        "absent({rate})",
        "No rate of a quota group is known, so no other alert about quotas can fire.",
        f"Prometheus has no series of the layout LAYOUT. {_CHECK}.",
    ),
)
"""Name, expression, summary and description."""

Rule = Mapping[str, str | Mapping[str, str]]
"""A recording or alert rule, in the words and the order of Prometheus."""


class RuleLayout(enum.StrEnum):
    """How an exporter names metrics and labels, by the names that ``doctor`` has for them."""

    DEFAULT_FORMAT = "default-format"
    """``kafka_server_Produce_byte_rate{user, client_id}``: the jmx_exporter without rules, Amazon MSK."""
    QUOTA_LABELS = "quota-labels"
    """``kafka_server_quota_byte_rate{resource, user, clientId}``: the jmx_exporter's example kafka-2_0_0, koperator."""
    LOWER_CASE = "lower-case"
    """``kafka_server_produce_byte_rate{user, client_id}``: Confluent's jmx-monitoring-stacks."""
    STRIMZI = "strimzi"
    """The same names of Strimzi's metrics-reporter, which does not quote client-ids."""

    def series(self, key: QuotaKey, sensor: str | None = None) -> tuple[str, str]:
        """Name and matchers of the series of a client's sensor, ``None``: of the rate.

        ``traffic.sources.metric_layouts`` reads the same series in Python; a test compares both.
        """
        kind, rate = _SENSORS[key]
        if self is RuleLayout.QUOTA_LABELS and sensor != "queue_size":
            return f"kafka_server_quota_{sensor or rate}", f'resource="{kind}"'
        return f"kafka_server_{kind if self is RuleLayout.DEFAULT_FORMAT else kind.lower()}_{sensor or rate}", ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleOptions:
    """How rules are written. Times are in seconds; ``near`` is a share of the limit; ``selector``: further label matchers."""

    layout: RuleLayout
    selector: str = ""
    near: float = 0.8
    pending_s: int = 300
    unused_s: int = 7 * 86_400

    def series(self, key: QuotaKey, sensor: str | None = None, test: str = "") -> str:
        """The series of a client's sensor with the labels ``broker``, ``user`` and ``client_id``."""
        name, matchers = self.layout.series(key, sensor)
        return self.selected(name, matchers, test, client_label="clientId" if matchers else None)

    def selected(self, name: str, matchers: str = "", test: str = "", *, client_label: str | None = None) -> str:
        """Series with the label ``broker``. Comparing drops NaN, which is not a value here."""
        matchers = ",".join(filter(None, (matchers, self.selector)))
        series = f"{name}{{{matchers}}}{test}" if matchers else f"{name}{test}"
        for label, source in (("client_id", client_label), ("broker", "instance")):
            if source not in (None, label):
                series = f'label_replace({series}, "{label}", "$1", "{source}", "(.+)")'
        return series


@dataclass(frozen=True, slots=True, kw_only=True)
class QuotaRules:
    """What the rules are about: the limits of one cluster. ``origin``: where the limits are from, for the header."""

    cluster: str
    origin: str
    entities: Mapping[Entity, Mapping[str, float]]
    owners: Mapping[Entity, str]

    def of(self, series: str, more: str = "") -> str:
        """A recorded series of this cluster. ``more``: further matchers."""
        return f"{series}{{cluster={_quoted(self.cluster)}{',' if more else ''}{more}}}"


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleFile:
    """The text of a rule file, and how many limits it has. ``left_out``: by reason entities whose limits are not compared."""

    text: str
    limits: int
    left_out: Mapping[str, tuple[Entity, ...]]


def render_prometheus_rules(quotas: QuotaRules, options: RuleOptions) -> RuleFile:
    """Recording and alert rules as YAML, equal for equal quotas and options."""
    left_out: list[Entity] = []
    limits: list[Rule] = []
    levels: set[int] = set()
    for entity in in_canonical_order(quotas.entities):
        level = level_of(entity)
        rules = [] if level is None else list(_limits(entity, level.number, quotas, options.layout))
        if level is None or not rules:
            left_out.append(entity)
            continue
        limits += rules
        levels.add(level.number)
    peak_s = max(_INTERVAL_S, options.unused_s // _PEAKS)
    groups: list[tuple[str, int, Sequence[Rule]]] = [
        ("rates", _INTERVAL_S, [*_rates(quotas, options, levels), *_alerts(quotas, options)])
    ]
    groups += [
        (f"limits {at // _LIMITS_A_GROUP + 1}", _INTERVAL_S, limits[at:][:_LIMITS_A_GROUP])
        for at in range(0, len(limits), _LIMITS_A_GROUP)
    ]
    groups += [("use", peak_s, _never_used(quotas, options, peak_s))]
    lines = [
        f"# Written by kafka-quotas rules for cluster {escaped(quotas.cluster)}. Do not edit: write it anew.\n",
        f"# Limits: {quotas.origin}. Layout: {options.layout.value}.\n",
        "# docs/monitor.md explains the series and the alerts.\ngroups:\n",
    ]
    for name, interval_s, of_group in groups:
        lines.append(f"  - name: {scalar_text(f'kafka-quotas {name} of {quotas.cluster}')}\n")
        lines.append(f"    interval: {_time(interval_s)}\n    rules:\n")
        lines += (line for rule in of_group for line in _rule_lines(rule))
    return RuleFile(text="".join(lines), limits=len(limits), left_out={_NO_SERIES: tuple(left_out)} if left_out else {})


def _limits(entity: Entity, level: int, quotas: QuotaRules, layout: RuleLayout) -> Iterator[Rule]:
    def label(name: EntityName | None, spelling: Callable[[str], str]) -> str:
        """``<default>`` is not an encoded name, so it can only be the default."""
        if name is None or name is DEFAULT:
            return "" if name is None else "<default>"
        return spelling(name)

    for key in CLIENT_KEYS:
        value = quotas.entities[entity].get(key.value)
        if value is None or not math.isfinite(value):
            continue
        labels = {
            "cluster": quotas.cluster,
            "user": label(entity.name(EntityType.USER), sanitize_name),
            "client_id": label(entity.name(EntityType.CLIENT_ID), str if layout is RuleLayout.STRIMZI else quote_client_id),
            "entity": str(entity),
            "level": str(level),
            "owner": escaped(quotas.owners.get(entity, "")),
            "key": key.value,
        }
        yield {"record": LIMIT, "expr": f"vector({number_text(value)})", "labels": labels}


def _rates(quotas: QuotaRules, options: RuleOptions, levels: Collection[int]) -> Iterator[Rule]:
    cluster = {"cluster": quotas.cluster}
    clients = "broker, user, client_id"
    for record, by, sensor, test in (
        (RATE, clients, None, " >= 0"),
        (THROTTLE_TIME, clients, "throttle_time", " > 0"),
        (MUTED, "broker", "queue_size", ""),
    ):
        for key in CLIENT_KEYS:
            expr = f"max by ({by}) ({options.series(key, sensor, test)})"
            if record == THROTTLE_TIME and key is QuotaKey.CONTROLLER_MUTATION_RATE:
                expr += f"\nor on ({clients}) {_debts(quotas, options, clients)}"
            yield {"record": record, "expr": expr, "labels": {**cluster, "key": key.value}}
    if levels:
        yield {"record": GROUP_LIMIT, "expr": _group_limits(quotas, levels), "labels": cluster}
        expr = f"{quotas.of(RATE)} / {_MATCHED} {quotas.of(GROUP_LIMIT)}"
        yield {"record": UTILIZATION, "expr": expr, "labels": cluster}


def _debts(quotas: QuotaRules, options: RuleOptions, clients: str) -> str:
    """Milliseconds until a controller admits a client again, which no throttle time shows: its debt of tokens, by its limit."""
    key = QuotaKey.CONTROLLER_MUTATION_RATE
    limit = quotas.of(GROUP_LIMIT, f"key={_quoted(key.value)}")
    return f"-1000 * max by ({clients}) ({options.series(key, 'tokens', ' < 0')})\n/ on ({clients}) {limit}"


def _group_limits(quotas: QuotaRules, levels: Collection[int]) -> str:
    """Return PromQL for the limit of each group, by the names that it has: that of the strongest level with one."""
    terms: list[tuple[str, str, str]] = []
    """Matchers of groups, labels that agree, matchers of limits."""
    for level in CLIENT_PRECEDENCE:
        if level.number in levels:
            shape = next((text for members, text in _SHAPES.items() if level.number in members), 'user!="",client_id!=""')
            matched = ["key"]
            matched += ["user"] if level.user is NameMatch.NAME else []
            matched += ["client_id"] if level.client_id is NameMatch.NAME else []
            terms.append((shape, ", ".join(matched), f"level={_quoted(str(level.number))}"))
    return f"\nor on ({_GROUP}) ".join(
        f"0 * {quotas.of(RATE, shape)} + on ({matched}) group_left (entity, level, owner) {quotas.of(LIMIT, limits)}"
        for shape, matched, limits in terms
    )


def _alerts(quotas: QuotaRules, options: RuleOptions) -> Iterator[Rule]:
    pending = _time(options.pending_s)
    series = {"utilization": UTILIZATION, "throttled": THROTTLE_TIME, "limit": GROUP_LIMIT, "rate": RATE}
    recorded = {name: quotas.of(record) for name, record in series.items()}
    for alert, expr, summary, description in _ALERTS:
        is_slow = expr.startswith("absent") and options.pending_s >= 300
        yield {
            "alert": alert,
            "expr": expr.format(near=options.near, **recorded),
            "for": "15m" if is_slow else pending,
            "labels": {"severity": "warning"},
            "annotations": {"summary": summary, "description": description.replace("LAYOUT", options.layout.value)},
        }


def _never_used(quotas: QuotaRules, options: RuleOptions, interval_s: int) -> Sequence[Rule]:
    unused, whose = _time(options.unused_s), "(entity, key)"
    over = _time(max(interval_s, 2 * _INTERVAL_S))
    # Neither a limit nor rates that began later than that can be judged.
    judged = f"{quotas.of(LIMIT)}\nand on () {quotas.of(RATE)} offset {unused}"
    expr = (
        f"{judged}\n"
        f"and on {whose} {quotas.of(LIMIT)} offset {unused}\n"
        f"unless on {whose} (max_over_time({quotas.of(PEAK)}[{unused}]) > 0)"
    )
    peak = f"max by {whose} (max_over_time({quotas.of(UTILIZATION)}[{over}]))"
    annotations = {
        "summary": f"Nothing used {{{{ $labels.key }}}} of {{{{ $labels.entity }}}} for {unused}.",
        "description": "No client had traffic under this limit. Remove the quota, or correct its names.",
    }
    return (
        {"record": PEAK, "expr": peak, "labels": {"cluster": quotas.cluster}},
        {"alert": NEVER_USED, "expr": expr, "labels": {"severity": "info"}, "annotations": annotations},
    )


def _quoted(text: str) -> str:
    """A string of PromQL, which has the escapes of Go."""
    return '"' + escaped(text.replace("\\", "\\\\").replace('"', '\\"')) + '"'


def _time(seconds: int) -> str:
    return next(
        f"{seconds // size}{unit}" for size, unit in ((86_400, "d"), (3_600, "h"), (60, "m"), (1, "s")) if seconds % size == 0
    )


def _rule_lines(rule: Rule) -> Iterator[str]:
    start = "      - "
    for field, value in rule.items():
        if field == "labels" and not isinstance(value, str):
            labels = ", ".join(f"{name}: {scalar_text(text)}" for name, text in value.items() if text)
            yield f"{start}labels: {{{labels}}}\n"
        elif not isinstance(value, str):
            yield f"{start}{field}:\n"
            yield from (f"          {name}: {scalar_text(text)}\n" for name, text in value.items())
        elif field == "expr" and ("\n" in value or len(value) > 80):
            yield f"{start}expr: |-\n"
            yield from (f"          {text}\n" for text in value.split("\n"))
        else:
            yield f"{start}{field}: {scalar_text(value) if field == 'expr' else value}\n"
        start = "        "
