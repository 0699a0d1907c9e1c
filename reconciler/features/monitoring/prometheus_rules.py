"""Prometheus rules of one cluster's quotas: limits as series, rates of quota groups in one form, and alerts on both.

A quota group is known by the tags of its series: user and client-id, only the user, or only the client-id. For each of these,
the precedence levels that group by the same names decide its limit, the strongest first; so does ``quotaLimit`` of Kafka's
``DefaultQuotaCallback``. Names have the spelling of the exporter's labels, because PromQL cannot decode one.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from reconciler.features.monitoring.rule_layouts import (
    LAYOUT_NAMES,
    LabelCopy,
    LayoutNames,
    RuleLayout,
    SensorSeries,
    named_sensors,
)
from reconciler.model import CLIENT_KEYS, DEFAULT, Entity, EntityName, EntityType, QuotaKey, escaped, in_canonical_order
from reconciler.resolution import (
    CLIENT_LEVELS,
    CLIENT_PRECEDENCE,
    USER_LEVELS,
    NameMatch,
    host_address,
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

NEAR_LIMIT: Final = "KafkaQuotaNearLimit"
THROTTLED: Final = "KafkaQuotaThrottled"
NEVER_USED: Final = "KafkaQuotaNeverUsed"
NO_RATES: Final = "KafkaQuotaRatesMissing"

_LIMITS_A_GROUP: Final = 1_000
"""Prometheus evaluates the rules of a group one after another, and groups beside each other."""
_PEAKS: Final = 168
"""So many peaks are kept of the time without use: of seven days, one an hour."""
_GROUP: Final = "broker, user, client_id, ip, key"
_INFO: Final = "entity, level, owner"
_WHOSE: Final = (
    "{{ if $labels.ip }}ip={{ $labels.ip }}{{ else }}user={{ $labels.user }} client-id={{ $labels.client_id }}{{ end }}"
)
_CONNECTIONS: Final = QuotaKey.CONNECTION_CREATION_RATE


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleOptions:
    """How rules are written. Times are in seconds; ``near`` is a share of the limit; ``selector``: further label matchers."""

    layout: RuleLayout
    broker_label: str = "instance"
    selector: str = ""
    near: float = 0.8
    pending_s: int = 300
    unused_s: int = 7 * 86_400
    interval_s: int = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class QuotaRules:
    """What the rules are about: the limits of one cluster. ``origin``: where the limits are from, for the header."""

    cluster: str
    origin: str
    entities: Mapping[Entity, Mapping[str, float]]
    owners: Mapping[Entity, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleFile:
    """The text of a rule file, and how many limits it has. ``left_out``: by reason entities whose limits are not compared."""

    text: str
    limits: int
    left_out: Mapping[str, tuple[Entity, ...]]


def render_prometheus_rules(quotas: QuotaRules, options: RuleOptions) -> RuleFile:
    """Recording and alert rules as YAML, equal for equal quotas and options."""
    names = LAYOUT_NAMES[options.layout]
    left_out = _left_out(quotas, names)
    limits = list(_limits(quotas, names, left_out))
    groups = [_rates_group(quotas, options, names, limits)]
    groups += [
        _Group(
            name=f"kafka-quotas limits {at // _LIMITS_A_GROUP + 1}", rules=[limit.rule for limit in limits[at:][:_LIMITS_A_GROUP]]
        )
        for at in range(0, len(limits), _LIMITS_A_GROUP)
    ]
    groups += [_peaks_group(quotas, options, has_addresses=any(limit.level is None for limit in limits))]
    by_reason: dict[str, list[Entity]] = {}
    for entity in in_canonical_order(left_out):
        by_reason.setdefault(left_out[entity], []).append(entity)
    return RuleFile(
        text="".join(_document(quotas, options, groups)),
        limits=len(limits),
        left_out={reason: tuple(entities) for reason, entities in by_reason.items()},
    )


def _left_out(quotas: QuotaRules, names: LayoutNames) -> dict[Entity, str]:
    """Entities whose limits rules cannot compare, and why."""
    series = {entity: _series_name(entity) for entity in quotas.entities}
    same = Counter(series.values())
    reasons = {}
    for entity, values in quotas.entities.items():
        name = series[entity]
        if not any(math.isfinite(values.get(key.value, math.nan)) for key in (*CLIENT_KEYS, _CONNECTIONS)):
            reasons[entity] = "no series has the rate of their quotas"
        elif _is_address(entity):
            if names.connections is None:
                reasons[entity] = "this layout has no connection rates of addresses"
            elif name is None and entity.name(EntityType.IP) is not DEFAULT:
                reasons[entity] = "series have addresses, and brokers look up the address of a host name"
            elif name is not None and same[name] > 1:
                reasons[entity] = "several of them are the same address"
        elif level_of(entity) is None:
            reasons[entity] = "no series has the rate of their quotas"
        elif names.is_named_only and name is None:
            reasons[entity] = "metric names without labels do not show which clients a default limits"
        elif names.is_named_only and same[name] > 1:
            reasons[entity] = "several of them have the same metric name"
    return reasons


def _is_address(entity: Entity) -> bool:
    return entity.types == (EntityType.IP.value,)


def _series_name(entity: Entity) -> str | None:
    """The one address of an IP entity, or the one metric name of other entities without labels; ``None``: not one."""
    if _is_address(entity):
        name = entity.name(EntityType.IP)
        return host_address(name) if isinstance(name, str) else None
    user, client_id = entity.name(EntityType.USER), entity.name(EntityType.CLIENT_ID)
    if level_of(entity) is None or DEFAULT in (user, client_id):
        return None
    names = (name if isinstance(name, str) else None for name in (user, client_id))
    return named_sensors(CLIENT_KEYS[0], *names)[0].name


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rule:
    """A recording rule (``record``) or an alert."""

    expr: str
    record: str | None = None
    alert: str | None = None
    pending: str | None = None
    labels: Mapping[str, str]
    annotations: Mapping[str, str] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Group:
    name: str
    rules: Sequence[_Rule]
    interval_s: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Limit:
    """``level``: ``None`` for an address."""

    entity: Entity
    level: int | None
    key: QuotaKey
    rule: _Rule


def _limits(quotas: QuotaRules, names: LayoutNames, left_out: Collection[Entity]) -> Iterator[_Limit]:
    for entity in in_canonical_order(quotas.entities):
        if entity in left_out:
            continue
        level = level_of(entity)
        labels = {
            "cluster": quotas.cluster,
            "user": _user_label(entity.name(EntityType.USER)),
            "client_id": _client_label(entity.name(EntityType.CLIENT_ID), names),
            "ip": _address_label(entity.name(EntityType.IP), names),
            "entity": str(entity),
            "level": "" if level is None else str(level.number),
            "owner": escaped(quotas.owners.get(entity, "")),
        }
        for key in (_CONNECTIONS,) if level is None else CLIENT_KEYS:
            value = quotas.entities[entity].get(key.value)
            if value is not None and math.isfinite(value):
                rule = _Rule(record=LIMIT, expr=f"vector({number_text(value)})", labels={**labels, "key": key.value})
                yield _Limit(entity=entity, level=None if level is None else level.number, key=key, rule=rule)


def _user_label(name: EntityName | None) -> str:
    """``<default>`` is not an encoded name, so it can only be the default."""
    return "" if name is None else "<default>" if name is DEFAULT else sanitize_name(name)


def _client_label(name: EntityName | None, names: LayoutNames) -> str:
    if name is None or name is DEFAULT:
        return "" if name is None else "<default>"
    return quote_client_id(name) if names.quotes_client_ids else name


def _address_label(name: EntityName | None, names: LayoutNames) -> str:
    if name is None or name is DEFAULT:
        return "" if name is None else "<default>"
    # The colons of IPv6 are quoted in a tag, as special characters of a client-id are.
    return _client_label(host_address(name) or name, names)


def _rates_group(quotas: QuotaRules, options: RuleOptions, names: LayoutNames, limits: Sequence[_Limit]) -> _Group:
    levels = {limit.level for limit in limits}
    cluster = {"cluster": quotas.cluster}
    rules = [
        _Rule(
            record=record,
            expr=f"max by (broker, user, client_id) ({_normalised(sensor, options, test)})",
            labels={**cluster, "key": key.value},
        )
        for record, sensors, test in ((RATE, names.rates, ">= 0"), (THROTTLE_TIME, names.throttle_times, "> 0"))
        for key, sensor in sensors.items()
    ]
    rules += [
        _Rule(
            record=MUTED,
            expr=f"max by (broker) ({_with_broker(_selected(sensor, options), options)})",
            labels={**cluster, "key": key.value},
        )
        for key, sensor in names.queue_sizes.items()
    ]
    if names.is_named_only:
        rules += _named_rates(limits, options)
    if names.connections is not None and None in levels:
        series = _with_broker(f"{_selected(names.connections, options)} >= 0", options)
        rules.append(_Rule(record=RATE, expr=f"max by (broker, ip) ({series})", labels={**cluster, "key": _CONNECTIONS.value}))
    if levels:
        rules.append(_Rule(record=GROUP_LIMIT, expr=_group_limits(quotas, levels), labels=cluster))
        matched = f"on ({_GROUP}) group_left ({_INFO})"
        rate, limit = _of(RATE, quotas), _of(GROUP_LIMIT, quotas)
        rules.append(_Rule(record=UTILIZATION, expr=f"{rate} / {matched} {limit}", labels=cluster))
    return _Group(name="kafka-quotas rates", rules=[*rules, *_alerts(quotas, options)], interval_s=options.interval_s)


def _named_rates(limits: Sequence[_Limit], options: RuleOptions) -> Iterator[_Rule]:
    """Series of the quota groups that limits name, with the labels that their metric names lack."""
    for limit in limits:
        user, client_id = (limit.entity.name(kind) for kind in (EntityType.USER, EntityType.CLIENT_ID))
        sensors = named_sensors(limit.key, *(name if isinstance(name, str) else None for name in (user, client_id)))
        labels = {name: limit.rule.labels[name] for name in ("cluster", "user", "client_id", "key")}
        for record, sensor, test in zip((RATE, THROTTLE_TIME), sensors, (">= 0", "> 0"), strict=True):
            yield _Rule(record=record, expr=f"max by (broker) ({_normalised(sensor, options, test)})", labels=labels)


def _normalised(sensor: SensorSeries, options: RuleOptions, test: str) -> str:
    """Series with the labels ``broker``, ``user`` and ``client_id``. Comparing drops NaN, which is not a value here."""
    series = f"{_selected(sensor, options)} {test}"
    for copy in sensor.copies:
        series = _copied(series, copy)
    return _with_broker(series, options)


def _with_broker(series: str, options: RuleOptions) -> str:
    label = options.broker_label
    return series if label == "broker" else _copied(series, LabelCopy(label="broker", source=label))


def _copied(series: str, copy: LabelCopy) -> str:
    return f'label_replace({series}, "{copy.label}", "$1", "{copy.source}", {_quoted(copy.pattern)})'


def _selected(sensor: SensorSeries, options: RuleOptions) -> str:
    matchers = ",".join(filter(None, [*sensor.matchers, options.selector]))
    return f"{sensor.name}{{{matchers}}}" if matchers else sensor.name


def _group_limits(quotas: QuotaRules, levels: Collection[int | None]) -> str:
    """By the names that a group has, its limit: of the strongest level that has one."""
    shapes = {
        frozenset(USER_LEVELS): 'user!="",client_id=""',
        frozenset(CLIENT_LEVELS): 'user="",client_id!=""',
    }
    terms: list[str] = []
    for level in CLIENT_PRECEDENCE:
        if level.number not in levels:
            continue
        shape = next((text for members, text in shapes.items() if level.number in members), 'user!="",client_id!=""')
        matched = ["key"]
        matched += ["user"] if level.user is NameMatch.NAME else []
        matched += ["client_id"] if level.client_id is NameMatch.NAME else []
        terms.append(
            f"0 * {_of(RATE, quotas, shape)} + on ({', '.join(matched)}) group_left ({_INFO}) "
            f"{_of(LIMIT, quotas, f'level={_quoted(str(level.number))}')}"
        )
    if None in levels:
        rate, own, default = (
            _of(series, quotas, test)
            for series, test in ((RATE, 'ip!=""'), (LIMIT, 'ip!="",ip!="<default>"'), (LIMIT, 'ip="<default>"'))
        )
        terms += [
            f"0 * {rate} + on (key, ip) group_left ({_INFO}) {own}",
            f"0 * {rate} + on (key) group_left ({_INFO}) {default}",
        ]
    return f"\nor on ({_GROUP}) ".join(terms)


def _alerts(quotas: QuotaRules, options: RuleOptions) -> Iterator[_Rule]:
    pending = _time(options.pending_s)
    yield _Rule(
        alert=NEAR_LIMIT,
        expr=f"{_of(UTILIZATION, quotas)} > {options.near:g}",
        pending=pending,
        labels={"severity": "warning"},
        annotations={
            "summary": f"{_WHOSE} is near its {{{{ $labels.key }}}} on broker {{{{ $labels.broker }}}}.",
            "description": "The rate is {{ $value | humanizePercentage }} of the limit, which {{ $labels.entity }} sets.",
        },
    )
    throttled, limit = _of(THROTTLE_TIME, quotas), _of(GROUP_LIMIT, quotas)
    yield _Rule(
        alert=THROTTLED,
        expr=f"{throttled} + on ({_GROUP}) group_left ({_INFO}) (0 * {limit})\nor on ({_GROUP}) {throttled}",
        pending=pending,
        labels={"severity": "warning"},
        annotations={
            "summary": f"Broker {{{{ $labels.broker }}}} throttles {_WHOSE} by {{{{ $labels.key }}}}.",
            "description": "A throttle of the last minute took {{ $value | humanize }} ms on average. "
            "The limit is that of {{ $labels.entity }}.",
        },
    )
    yield _Rule(
        alert=NO_RATES,
        expr=f"absent({_of(RATE, quotas)})",
        pending="15m" if options.pending_s >= 300 else pending,
        labels={"severity": "warning"},
        annotations={
            "summary": "No rate of a quota group is known, so no other alert about quotas can fire.",
            "description": f"Prometheus has no series of the layout {options.layout.value}. Check the scrape of the brokers, "
            "and compare with the layout that kafka-quotas doctor reports.",
        },
    )


def _peaks_group(quotas: QuotaRules, options: RuleOptions, *, has_addresses: bool) -> _Group:
    interval_s = max(options.interval_s, options.unused_s // _PEAKS)
    unused, whose = _time(options.unused_s), "(entity, key)"
    peak = _Rule(
        record=PEAK,
        expr=f"max by {whose} (max_over_time({_of(UTILIZATION, quotas)}[{_time(max(interval_s, 2 * options.interval_s))}]))",
        labels={"cluster": quotas.cluster},
    )
    # Neither a limit nor rates that began later than that can be judged.
    judged = f"{_of(LIMIT, quotas)}\nand on () {_of(RATE, quotas)} offset {unused}"
    if has_addresses:
        # Some exporters have rates of clients, and none of addresses.
        clients, addresses = (_of(LIMIT, quotas, test) for test in ('ip=""', 'ip!=""'))
        of_clients = _of(RATE, quotas, 'ip=""')
        judged = (
            f"({clients}\nand on () {of_clients} offset {unused}\n"
            f"or {addresses}\nand on (key) {_of(RATE, quotas)} offset {unused})"
        )
    expr = (
        f"{judged}\n"
        f"and on {whose} {_of(LIMIT, quotas)} offset {unused}\n"
        f"unless on {whose} (max_over_time({_of(PEAK, quotas)}[{unused}]) > 0)"
    )
    alert = _Rule(
        alert=NEVER_USED,
        expr=expr,
        labels={"severity": "info"},
        annotations={
            "summary": f"Nothing used {{{{ $labels.key }}}} of {{{{ $labels.entity }}}} for {unused}.",
            "description": "No client had traffic under this limit. Remove the quota, or correct its names.",
        },
    )
    return _Group(name="kafka-quotas use", rules=[peak, alert], interval_s=interval_s)


def _of(series: str, quotas: QuotaRules, more: str = "") -> str:
    return f"{series}{{cluster={_quoted(quotas.cluster)}{',' if more else ''}{more}}}"


def _quoted(text: str) -> str:
    """A string of PromQL, which has the escapes of Go."""
    return '"' + escaped(text.replace("\\", "\\\\").replace('"', '\\"')) + '"'


def _time(seconds: int) -> str:
    return next(
        f"{seconds // size}{unit}" for size, unit in ((86_400, "d"), (3_600, "h"), (60, "m"), (1, "s")) if seconds % size == 0
    )


def _document(quotas: QuotaRules, options: RuleOptions, groups: Iterable[_Group]) -> Iterator[str]:
    yield f"# Written by kafka-quotas rules for cluster {escaped(quotas.cluster)}. Do not edit: write it anew.\n"
    yield f"# Limits: {quotas.origin}. Layout: {options.layout.value}.\n"
    yield "# docs/monitor.md explains the series and the alerts.\ngroups:\n"
    for group in groups:
        yield f"  - name: {scalar_text(f'{group.name} of {quotas.cluster}')}\n"
        yield f"    interval: {_time(group.interval_s or options.interval_s)}\n    rules:\n"
        for rule in group.rules:
            yield from _rule_lines(rule)


def _rule_lines(rule: _Rule) -> Iterator[str]:
    yield f"      - record: {rule.record}\n" if rule.record is not None else f"      - alert: {rule.alert}\n"
    if "\n" in rule.expr or len(rule.expr) > 80:
        yield "        expr: |-\n"
        yield from (f"          {text}\n" for text in rule.expr.split("\n"))
    else:
        yield f"        expr: {scalar_text(rule.expr)}\n"
    if rule.pending is not None:
        yield f"        for: {rule.pending}\n"
    yield f"        labels: {{{', '.join(f'{name}: {scalar_text(value)}' for name, value in rule.labels.items() if value)}}}\n"
    if rule.annotations:
        yield "        annotations:\n"
        yield from (f"          {name}: {scalar_text(text)}\n" for name, text in rule.annotations.items())
