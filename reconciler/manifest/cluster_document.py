"""Cluster manifests into ``ClusterSpec``: scope, guards, broker settings and backtest policy.

Fields that the schema refused keep their built-in value; their findings are reported where the schema is checked.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterator
from typing import Final

from reconciler.manifest.collector import Collector, items, mapping, scalar, selector, selectors, text, texts
from reconciler.manifest.documents import ClusterDocument
from reconciler.manifest.moments import parse_moment
from reconciler.manifest.profiles import parse_profiles
from reconciler.manifest.quota_entries import quota_value
from reconciler.manifest.webhooks import parse_webhooks
from reconciler.model import (
    DEFAULT_DAYS,
    KNOWN_KEYS,
    WEEKDAYS,
    Acceptance,
    BacktestPolicy,
    CallbackClass,
    ClusterSpec,
    Connection,
    CountLimit,
    FailRule,
    FreezeWindow,
    GuardLimits,
    HistoryNeeds,
    Isolation,
    LabelMatcher,
    MetricServer,
    Once,
    OwnerChoice,
    Prune,
    QuotaKey,
    RebalancePolicy,
    Recurrence,
    ReductionLimit,
    Scope,
    StrimziOperators,
    Verdict,
    VolumeLimit,
    Weekly,
    WindowKind,
    compose,
)
from reconciler.resolution import BROKER_SETTINGS
from reconciler.text import shown_part
from reconciler.yaml import YamlMapping, YamlNode, YamlScalar

_PRUNE: Final = {prune.value: prune for prune in Prune}
_ISOLATE: Final = {isolation.value: isolation for isolation in Isolation}
_REBALANCE: Final = {policy.value: policy for policy in RebalancePolicy}


def cluster(root: YamlMapping, out: Collector) -> ClusterDocument:
    """A Cluster manifest, as far as it can be understood."""
    metadata, spec = mapping(root, "metadata"), mapping(root, "spec")
    labels = mapping(metadata, "labels")
    scope = mapping(spec, "scope")
    made = ClusterSpec(
        name=text(metadata, "name"),
        labels={k: v.text for k, v in labels.items.items() if isinstance(v, YamlScalar)} if labels else {},
        cluster_id=text(spec, "clusterId"),
        connection=_connection(mapping(spec, "connection"), out),
        scope=Scope(
            include=selectors(scope.items.get("include") if scope else None, out),
            exclude=selectors(scope.items.get("exclude") if scope else None, out),
        ),
        prune=_PRUNE.get(text(spec, "prune") or "", Prune.NEVER),
        rebalance=_REBALANCE.get(text(spec, "rebalance") or "", RebalancePolicy.CONFIRM),
        isolate=_ISOLATE.get(text(spec, "isolate") or "", Isolation.NONE),
        protected=selectors(spec.items.get("protected") if spec else None, out),
        guards=guard_limits(mapping(spec, "guards"), out),
        freeze=freeze_windows(spec, out),
        accept=tuple(_acceptances(items(spec, "accept"), out)),
        backtest=backtest_policy(mapping(spec, "backtest"), out),
        capacity=capacity(mapping(spec, "capacity"), out),
        broker_settings=broker_settings(mapping(spec, "brokerSettings")),
        quota_callback=quota_callback(mapping(spec, "quotaCallback")),
        strimzi=strimzi_operators(mapping(spec, "strimzi"), out),
        traffic=metric_server(mapping(spec, "traffic")),
        notifications=tuple(parse_webhooks(items(spec, "notifications"), out)),
        profiles=parse_profiles(mapping(spec, "profiles"), out),
        span=out.span(root),
        places={name: out.span(node) for name, node in spec.items.items()} if spec else {},
    )
    return ClusterDocument(file=out.file, span=out.span(root), spec=made)


def _connection(node: YamlMapping | None, out: Collector) -> Connection | None:
    if node is None:
        return None
    connection = Connection(
        bootstrap_servers=texts(node, "bootstrapServers"), properties=text(node, "properties"), zookeeper=text(node, "zookeeper")
    )
    if connection.bootstrap_servers and connection.zookeeper:
        out.add("conflicting-connection", "give bootstrapServers or zookeeper, not both", node)
    return connection


def _acceptances(nodes: tuple[YamlNode, ...], out: Collector) -> Iterator[Acceptance]:
    for node in nodes:
        guard, reason, until = text(node, "guard"), text(node, "reason"), scalar(node, "until")
        if guard is None or reason is None or until is None:
            continue
        try:
            day = datetime.date.fromisoformat(until.text)
        except ValueError:
            out.add(
                "invalid-date",
                compose("{until} is not a day written as YYYY-MM-DD", until=shown_part(until.text)),
                until,
            )
            continue
        match = node.items.get("match") if isinstance(node, YamlMapping) else None
        chosen = selector(match, out)
        if match is not None and chosen is None:
            # Without its selector it would accept far more than was written.
            continue
        yield Acceptance(guard=guard, reason=reason, until=day, match=chosen, span=out.span(node))


_LEAST: Final = 1


def broker_settings(node: YamlMapping | None) -> dict[str, int]:
    """Those that are written; what the schema refused is as if it were not."""
    settings = {}
    for name in BROKER_SETTINGS:
        value = node.items.get(name) if node else None
        data = value.data if isinstance(value, YamlScalar) else None
        # To JSON Schema 11.0 is an integer, too.
        if isinstance(data, int | float) and not isinstance(data, bool) and data >= _LEAST and data == int(data):
            settings[name] = int(data)
    return settings


def quota_callback(node: YamlMapping | None) -> CallbackClass | None:
    """The class and its options, nothing of which is looked for here."""
    name, options = text(node, "class"), mapping(node, "options")
    if name is None:
        return None
    written = options.items if options else {}
    return CallbackClass(
        name=name, options={key: v.text for key, v in written.items() if isinstance(v, YamlScalar) and v.data is not None}
    )


def strimzi_operators(node: YamlMapping | None, out: Collector) -> StrimziOperators | None:
    """The users that the User Operator ignores."""
    return None if node is None else StrimziOperators(ignored=selectors(node.items.get("ignoredUsers"), out))


def metric_server(node: YamlMapping | None) -> MetricServer | None:
    """The server of ``spec.traffic``; ``None`` where the schema refused a part, since fewer matchers choose other series."""
    address = text(node, "prometheus")
    if node is None or address is None:
        return None
    days = node.items.get("days")
    try:
        match = tuple(map(LabelMatcher.parse, texts(node, "match")))
    except ValueError:
        return None
    return MetricServer(
        address=address,
        http_config=text(node, "httpConfig"),
        match=match,
        days=days.data if isinstance(days, YamlScalar) and isinstance(days.data, int) and days.data > 0 else DEFAULT_DAYS,
    )


def guard_limits(node: YamlMapping | None, out: Collector) -> GuardLimits:
    """The limits as written, and the built-in ones for the rest."""
    built_in = GuardLimits()
    return GuardLimits(
        too_many_removals=_volume(mapping(node, "too-many-removals"), built_in.too_many_removals, out),
        too_many_changes=_volume(mapping(node, "too-many-changes"), built_in.too_many_changes, out),
        large_reduction=_reduction(mapping(node, "large-reduction"), built_in.large_reduction, out),
        unknown_current_keys=_count(mapping(node, "unknown-current-keys"), out),
    )


def _volume(node: YamlMapping | None, built_in: VolumeLimit, out: Collector) -> VolumeLimit:
    if node is None:
        return built_in
    percent, count, minimum = _number(node, "percent"), _whole(node, "count"), _whole(node, "minimum")
    return VolumeLimit(
        percent=built_in.percent if percent is None else percent,
        count=built_in.count if count is None else count,
        minimum=built_in.minimum if minimum is None else minimum,
        set_in=out.span(node),
    )


def _reduction(node: YamlMapping | None, built_in: ReductionLimit, out: Collector) -> ReductionLimit:
    if node is None:
        return built_in
    factor, keys = _number(node, "factor"), mapping(node, "keys")
    factors = {key: value for key in (keys.items if keys else ()) if (value := _number(keys, key)) is not None}
    return ReductionLimit(
        factor=built_in.factor if factor is None else factor,
        keys={key: value for key, value in factors.items() if key in KNOWN_KEYS},
        set_in=out.span(node),
    )


def _count(node: YamlMapping | None, out: Collector) -> CountLimit:
    return CountLimit() if node is None else CountLimit(count=_whole(node, "count"), set_in=out.span(node))


def _number(node: YamlMapping | None, name: str) -> float | None:
    value = node.data.get(name) if node else None
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _whole(node: YamlMapping, name: str) -> int | None:
    value = node.data.get(name)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


_VERDICTS: Final = {verdict.value: verdict for verdict in Verdict}


def backtest_policy(node: YamlMapping | None, out: Collector) -> BacktestPolicy:
    """The rules as written, and the built-in needs for those that are not."""
    history, built_in = mapping(node, "history"), HistoryNeeds()
    return BacktestPolicy(
        history=HistoryNeeds(
            hours=_number_or_default(history, "hours", built_in.hours),
            coverage_percent=_number_or_default(history, "coveragePercent", built_in.coverage_percent),
        ),
        fail=tuple(_rules(items(node, "fail"), out)),
    )


def capacity(node: YamlMapping | None, out: Collector) -> dict[str, float]:
    """What one broker can do, by key."""
    capacities = {}
    for key in QuotaKey:
        written = node.items.get(key.value) if node else None
        value = quota_value(key, written, None, out) if isinstance(written, YamlScalar) and written.data is not None else None
        if value is not None:
            capacities[key.value] = value.value
    return capacities


def _rules(nodes: tuple[YamlNode, ...], out: Collector) -> Iterator[FailRule]:
    for node in nodes:
        verdicts = tuple(_VERDICTS[word] for word in texts(node, "verdicts") if word in _VERDICTS)
        if not isinstance(node, YamlMapping) or not verdicts:
            continue
        match = selector(node.items.get("match"), out)
        if "match" in node.items and match is None:
            # Without its selector it would fail far more than was written; what is wrong with it has been said.
            continue
        yield FailRule(
            verdicts=verdicts,
            owners=_owners(node.items.get("owners")),
            match=match,
            keys=tuple(key for key in texts(node, "keys") if key in KNOWN_KEYS),
            seconds=int(_number_or_default(node, "seconds", 1)),
            unchanged=node.data.get("unchanged") is True,
            reason=text(node, "reason"),
            span=out.span(node),
        )


def _owners(node: YamlNode | None) -> OwnerChoice | None:
    if node is None:
        return None
    labels = mapping(node, "labels")
    if labels is not None:
        return OwnerChoice(labels={label: value.text for label, value in labels.items.items() if isinstance(value, YamlScalar)})
    return OwnerChoice(names=tuple(item.text for item in getattr(node, "items", ()) if isinstance(item, YamlScalar)))


def _number_or_default(node: YamlMapping | None, name: str, built_in: float) -> float:
    value = node.data.get(name) if node else None
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else built_in


_HOURS: Final = re.compile(r"([01][0-9]|2[0-3]):([0-5][0-9]) ?- ?(?:([01][0-9]|2[0-3]):([0-5][0-9])|24:00)")
_ONCE: Final = ("from", "to")
_WEEKLY: Final = ("days", "hours", "timeZone")
_OF_A_WINDOW: Final = frozenset({"kind", "reason"})
"""Fields of both. With any further one, which the schema refuses, the window may be a misspelt one."""


def freeze_windows(spec: YamlMapping | None, out: Collector) -> tuple[FreezeWindow, ...]:
    """All windows that can be understood; whatever is wrong with the others is an error, so nothing is written without them."""
    return tuple(_windows(items(spec, "freeze"), out))


def _windows(nodes: tuple[YamlNode, ...], out: Collector) -> Iterator[FreezeWindow]:
    for node in nodes:
        if not isinstance(node, YamlMapping) or not node.items:
            # An error of the schema already.
            continue
        when = _recurrence(node, out)
        if when is not None:
            kind = WindowKind.ALLOW if text(node, "kind") == WindowKind.ALLOW else WindowKind.DENY
            yield FreezeWindow(kind=kind, when=when, reason=text(node, "reason"), span=out.span(node))


def _recurrence(node: YamlMapping, out: Collector) -> Recurrence | None:
    once, weekly = (any(name in node.items for name in names) for names in (_ONCE, _WEEKLY))
    if once and weekly:
        out.add("invalid-freeze-window", "a window has from and to, or days, hours and timeZone, not both", node)
        return None
    if not once and not weekly and node.items.keys() <= _OF_A_WINDOW:
        out.add("invalid-freeze-window", "a window needs from or to (once), or days (every week)", node)
    if not once and not weekly:
        return None
    return _once(node, out) if once else _weekly(node, out)


def _once(node: YamlMapping, out: Collector) -> Once | None:
    moments: dict[str, datetime.datetime | None] = {}
    for name in _ONCE:
        written = scalar(node, name)
        moments[name] = None if written is None else parse_moment(written.text)
        if written is not None and moments[name] is None:
            example = "2026-12-23T18:00:00+01:00"
            message = compose(
                "{written} is not a moment with its offset from UTC, such as {example}",
                written=shown_part(written.text),
                example=example,
            )
            out.add("invalid-freeze-window", message, written)
            return None
    start, end = moments["from"], moments["to"]
    if start is not None and end is not None and start >= end:
        out.add("invalid-freeze-window", "the window ends before it begins", node)
        return None
    return Once(start=start, end=end)


def _weekly(node: YamlMapping, out: Collector) -> Weekly | None:
    days = frozenset(WEEKDAYS.index(day) for day in texts(node, "days") if day in WEEKDAYS)
    if not days:
        # Days that are given and none of which is known are an error of the schema already.
        if "days" not in node.items:
            out.add("invalid-freeze-window", "a weekly window needs days, such as [sat, sun]", node)
        return None
    start, end = 0, 1440
    hours = scalar(node, "hours")
    if hours is not None:
        match = _HOURS.fullmatch(hours.text)
        if match is None:
            out.add(
                "invalid-freeze-window",
                compose("{hours} are not hours such as 18:00-08:00 or 09:00-24:00", hours=shown_part(hours.text)),
                hours,
            )
            return None
        start = int(match[1]) * 60 + int(match[2])
        end = 1440 if match[3] is None else int(match[3]) * 60 + int(match[4])
        if start == end:
            out.add("invalid-freeze-window", "the window ends when it begins. For whole days leave hours out", hours)
            return None
    zone = scalar(node, "timeZone")
    if zone is not None and not _known_zone(zone.text):
        message = compose(
            "{zone} is not a time zone. Write a name of the IANA database, such as Europe/Berlin",
            zone=shown_part(zone.text),
        )
        out.add("invalid-freeze-window", message, zone)
        return None
    return Weekly(days=days, start=start, end=end, time_zone=zone.text if zone else "UTC")


def _known_zone(name: str) -> bool:
    from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

    try:
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return False
    return True
