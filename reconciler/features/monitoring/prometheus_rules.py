"""Prometheus rules of one cluster's quotas: limits as series, rates of quota groups in one form, and alerts on both.

A quota group is known by the tags of its series: user and client-id, only the user, or only the client-id. For each of these,
the precedence levels that group by the same names decide its limit, the strongest first; so does ``quotaLimit`` of Kafka's
``DefaultQuotaCallback``. Names have the spelling of the exporter's labels, because PromQL cannot decode one.
"""

from __future__ import annotations

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
GROUP_LIMIT: Final = "kafka_quota_group_limit"
UTILIZATION: Final = "kafka_quota_utilization"

_LIMITS_A_GROUP: Final = 1_000
"""Prometheus evaluates the rules of a group one after another, and groups beside each other."""
_GROUP: Final = "broker, user, client_id, key"
_MATCHED: Final = f"on ({_GROUP}) group_left (entity, level, owner)"
_WHOSE: Final = "user={{ $labels.user }} client-id={{ $labels.client_id }}"
_SHAPES: Final = {frozenset(USER_LEVELS): 'user!="",client_id=""', frozenset(CLIENT_LEVELS): 'user="",client_id!=""'}
"""Labels of the quota groups that levels make, where they are not pairs."""
_SENSORS: Final = {
    QuotaKey.PRODUCER_BYTE_RATE: ("Produce", "byte_rate"),
    QuotaKey.CONSUMER_BYTE_RATE: ("Fetch", "byte_rate"),
    QuotaKey.REQUEST_PERCENTAGE: ("Request", "request_time"),
    QuotaKey.CONTROLLER_MUTATION_RATE: ("ControllerMutation", "mutation_rate"),
}
_ALERTS: Final = (
    (
        "KafkaQuotaNearLimit",
        "{utilization} > 0.8",
        "5m",
        f"{_WHOSE} is near its {{{{ $labels.key }}}} on broker {{{{ $labels.broker }}}}.",
        "The rate is {{ $value | humanizePercentage }} of the limit, which {{ $labels.entity }} sets.",
    ),
    (
        "KafkaQuotaThrottled",
        f"{{throttled}} + {_MATCHED} (0 * {{limit}})\nor on ({_GROUP}) {{throttled}}",
        "5m",
        f"Broker {{{{ $labels.broker }}}} throttles {_WHOSE} by {{{{ $labels.key }}}}.",
        "A throttle of the last minute took {{ $value | humanize }} ms on average. The limit is that of {{ $labels.entity }}.",
    ),
    (
        "KafkaQuotaRatesMissing",
        "absent({rate})",
        "15m",
        "No rate of a quota group is known, so no other alert about quotas can fire.",
        "Check the scrape of the brokers. 'kafka-quotas doctor --traffic' reports what the exporter shows.",
    ),
)
"""Name, expression, how long it lasts, summary and description."""

Rule = Mapping[str, str | Mapping[str, str]]
"""A recording or alert rule, in the words and the order of Prometheus."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QuotaRules:
    """What the rules are about: the limits of one cluster. ``selector``: further label matchers of the series."""

    cluster: str
    entities: Mapping[Entity, Mapping[str, float]]
    owners: Mapping[Entity, str]
    selector: str = ""

    def of(self, series: str, more: str = "") -> str:
        """A recorded series of this cluster. ``more``: further matchers."""
        return f"{series}{{cluster={_quoted(self.cluster)}{',' if more else ''}{more}}}"

    def measured(self, key: QuotaKey, sensor: str | None = None, test: str = "") -> str:
        """The series of a client's sensor with the labels ``broker``, ``user`` and ``client_id``. ``None``: of the rate.

        One selector reads every layout of exporters that has labels: ``kafka_server_Produce_*``, ``kafka_server_produce_*``, and
        ``kafka_server_quota_*`` with the label ``resource``. Comparing (``test``) drops NaN, which is not a value here.
        """
        kind, rate = _SENSORS[key]
        names = f"{kind}|{kind.lower()}|quota"
        matchers = f'__name__=~"kafka_server_({names})_{sensor or rate}",resource=~"|{kind}"'
        series = f"{{{matchers}{',' if self.selector else ''}{self.selector}}}{test}"
        for label, source in (("client_id", "clientId"), ("broker", "instance")):
            series = f'label_replace({series}, "{label}", "$1", "{source}", "(.+)")'
        return series


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleFile:
    """The text of a rule file, and how many limits it has. ``left_out``: entities whose limits are not compared."""

    text: str
    limits: int
    left_out: tuple[Entity, ...]


def render_prometheus_rules(quotas: QuotaRules) -> RuleFile:
    """Recording and alert rules as YAML, equal for equal quotas."""
    left_out: list[Entity] = []
    limits: list[Rule] = []
    levels: set[int] = set()
    for entity in in_canonical_order(quotas.entities):
        level = level_of(entity)
        rules = [] if level is None else list(_limits(entity, level.number, quotas))
        if level is None or not rules:
            left_out.append(entity)
            continue
        limits += rules
        levels.add(level.number)
    groups: dict[str, Sequence[Rule]] = {"rates": [*_rates(quotas, levels), *_alerts(quotas)]}
    for at in range(0, len(limits), _LIMITS_A_GROUP):
        groups[f"limits {at // _LIMITS_A_GROUP + 1}"] = limits[at : at + _LIMITS_A_GROUP]
    lines = [
        f"# Written by kafka-quotas rules for cluster {escaped(quotas.cluster)}. Do not edit: write it anew.\n",
        "# docs/monitor.md explains the series and the alerts.\ngroups:\n",
    ]
    for name, of_group in groups.items():
        lines.append(f"  - name: {scalar_text(f'kafka-quotas {name} of {quotas.cluster}')}\n    interval: 1m\n    rules:\n")
        lines += (line for rule in of_group for line in _rule_lines(rule))
    return RuleFile(text="".join(lines), limits=len(limits), left_out=tuple(left_out))


def _limits(entity: Entity, level: int, quotas: QuotaRules) -> Iterator[Rule]:
    """Yield the limits of an entity. Strimzi's reporter does not quote client-ids, so one that others quote has two."""
    user, client_id = entity.name(EntityType.USER), entity.name(EntityType.CLIENT_ID)
    spellings = dict.fromkeys((_label(client_id, quote_client_id), _label(client_id, str)))
    for key in CLIENT_KEYS:
        value = quotas.entities[entity].get(key.value)
        if value is None or not math.isfinite(value):
            continue
        for spelled in spellings:
            labels = {
                "cluster": quotas.cluster,
                "user": _label(user, sanitize_name),
                "client_id": spelled,
                "entity": str(entity),
                "level": str(level),
                "owner": escaped(quotas.owners.get(entity, "")),
                "key": key.value,
            }
            yield {"record": LIMIT, "expr": f"vector({number_text(value)})", "labels": labels}


def _label(name: EntityName | None, spelling: Callable[[str], str]) -> str:
    """Return a name as a label. ``<default>`` is not an encoded name, so it can only be the default."""
    if name is None or name is DEFAULT:
        return "" if name is None else "<default>"
    return spelling(name)


def _rates(quotas: QuotaRules, levels: Collection[int]) -> Iterator[Rule]:
    cluster = {"cluster": quotas.cluster}
    clients = "broker, user, client_id"
    for record, sensor, test in ((RATE, None, " >= 0"), (THROTTLE_TIME, "throttle_time", " > 0")):
        for key in CLIENT_KEYS:
            expr = f"max by ({clients}) ({quotas.measured(key, sensor, test)})"
            if record == THROTTLE_TIME and key is QuotaKey.CONTROLLER_MUTATION_RATE:
                # Until a controller admits a client again, no throttle time shows it: its debt of tokens by its limit does.
                limit = quotas.of(GROUP_LIMIT, f"key={_quoted(key.value)}")
                debts = f"max by ({clients}) ({quotas.measured(key, 'tokens', ' < 0')})"
                expr += f"\nor on ({clients}) -1000 * {debts}\n/ on ({clients}) {limit}"
            yield {"record": record, "expr": expr, "labels": {**cluster, "key": key.value}}
    if levels:
        yield {"record": GROUP_LIMIT, "expr": _group_limits(quotas, levels), "labels": cluster}
        expr = f"{quotas.of(RATE)} / {_MATCHED} {quotas.of(GROUP_LIMIT)}"
        yield {"record": UTILIZATION, "expr": expr, "labels": cluster}


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


def _alerts(quotas: QuotaRules) -> Iterator[Rule]:
    series = {"utilization": UTILIZATION, "throttled": THROTTLE_TIME, "limit": GROUP_LIMIT, "rate": RATE}
    recorded = {name: quotas.of(record) for name, record in series.items()}
    for alert, expr, pending, summary, description in _ALERTS:
        yield {
            "alert": alert,
            "expr": expr.format(**recorded),
            "for": pending,
            "labels": {"severity": "warning"},
            "annotations": {"summary": summary, "description": description},
        }


def _quoted(text: str) -> str:
    """A string of PromQL, which has the escapes of Go."""
    return '"' + escaped(text.replace("\\", "\\\\").replace('"', '\\"')) + '"'


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
