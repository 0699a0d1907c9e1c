"""Cluster manifests into ``ClusterSpec``: scope, guards, broker settings and backtest policy.

Fields that the schema refused keep their built-in value; their findings are reported where the schema is checked.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from enum import StrEnum
from typing import Any, Final

from reconciler.manifest.collector import Collector, items, mapping, scalar, selector, selectors, text, texts
from reconciler.manifest.documents import ClusterDocument
from reconciler.manifest.moments import parse_moment
from reconciler.manifest.profiles import parse_profiles
from reconciler.manifest.quota_entries import quota_value
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
    DeclaredBrokers,
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
    SafetyRules,
    Scope,
    StrimziOperators,
    Verdict,
    VolumeLimit,
    Webhook,
    Weekly,
    WindowKind,
    compose,
)
from reconciler.resolution import BROKER_SETTINGS
from reconciler.text import shown_part
from reconciler.yaml import YamlMapping, YamlNode, YamlScalar, YamlSequence


def cluster(root: YamlMapping, out: Collector) -> ClusterDocument:
    """A Cluster manifest, as far as it can be understood. Only fields that are written are read."""
    metadata, spec = mapping(root, "metadata"), mapping(root, "spec")
    written = spec.items if spec else {}
    # A field of another type than the schema wants is as if it were not there.
    values = {name: read(node, out) for name, (kind, read) in _FIELDS.items() if isinstance(node := written.get(name), kind)}
    known = {name: value for name, value in values.items() if value is not None}

    def some(names: Mapping[str, str]) -> dict[str, Any]:
        return {names[name]: value for name, value in known.items() if name in names}

    labels = mapping(metadata, "labels")
    made = ClusterSpec(
        name=text(metadata, "name"),
        labels={k: v.text for k, v in labels.items.items() if isinstance(v, YamlScalar)} if labels else {},
        safety=SafetyRules(**some(_SAFETY)),
        brokers=DeclaredBrokers(**some(_BROKERS)),
        span=out.span(root),
        places={name: out.span(node) for name, node in written.items()},
        **some(_OTHER),
    )
    return ClusterDocument(file=out.file, span=out.span(root), spec=made)


def _word(words: type[StrEnum]) -> Callable[[YamlScalar, Collector], StrEnum | None]:
    known = {word.value: word for word in words}
    return lambda node, _: known.get(node.text) if node.data is not None else None


def _scope(node: YamlMapping, out: Collector) -> Scope:
    return Scope(include=selectors(node.items.get("include"), out), exclude=selectors(node.items.get("exclude"), out))


def _connection(node: YamlMapping, out: Collector) -> Connection:
    connection = Connection(
        bootstrap_servers=texts(node, "bootstrapServers"), properties=text(node, "properties"), zookeeper=text(node, "zookeeper")
    )
    if connection.bootstrap_servers and connection.zookeeper:
        out.add("conflicting-connection", "give bootstrapServers or zookeeper, not both", node)
    return connection


def _acceptances(nodes: YamlSequence, out: Collector) -> Iterator[Acceptance]:
    for node in nodes.items:
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


def _broker_settings(node: YamlMapping) -> dict[str, int]:
    """Those that are written; what the schema refused is as if it were not."""
    settings = {}
    for name in BROKER_SETTINGS:
        value = node.items.get(name)
        data = value.data if isinstance(value, YamlScalar) else None
        # To JSON Schema 11.0 is an integer, too.
        if isinstance(data, int | float) and not isinstance(data, bool) and data >= _LEAST and data == int(data):
            settings[name] = int(data)
    return settings


def _quota_callback(node: YamlMapping) -> CallbackClass | None:
    """The class and its options, nothing of which is looked for here."""
    name, options = text(node, "class"), mapping(node, "options")
    if name is None:
        return None
    written = options.items if options else {}
    return CallbackClass(
        name=name, options={key: v.text for key, v in written.items() if isinstance(v, YamlScalar) and v.data is not None}
    )


def _metric_server(node: YamlMapping) -> MetricServer | None:
    """The server of ``spec.traffic``; ``None`` where the schema refused a part, since fewer matchers choose other series."""
    address = text(node, "prometheus")
    if address is None:
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


def _guard_limits(node: YamlMapping, out: Collector) -> GuardLimits:
    """The limits as written, and the built-in ones for the rest."""
    limits = {
        name.replace("-", "_"): read(value, out)
        for name, read in _LIMITS.items()
        if isinstance(value := node.items.get(name), YamlMapping)
    }
    return replace(GuardLimits(), **limits)


def _volume(built_in: VolumeLimit) -> Callable[[YamlMapping, Collector], VolumeLimit]:
    def read(node: YamlMapping, out: Collector) -> VolumeLimit:
        percent, count, minimum = _number(node, "percent"), _whole(node, "count"), _whole(node, "minimum")
        return VolumeLimit(
            percent=built_in.percent if percent is None else percent,
            count=built_in.count if count is None else count,
            minimum=built_in.minimum if minimum is None else minimum,
            set_in=out.span(node),
        )

    return read


def _reduction(node: YamlMapping, out: Collector) -> ReductionLimit:
    factor, keys = _number(node, "factor"), mapping(node, "keys")
    factors = {key: value for key in (keys.items if keys else ()) if (value := _number(keys, key)) is not None}
    return ReductionLimit(
        factor=ReductionLimit().factor if factor is None else factor,
        keys={key: value for key, value in factors.items() if key in KNOWN_KEYS},
        set_in=out.span(node),
    )


_LIMITS: Final[Mapping[str, Callable[[YamlMapping, Collector], Any]]] = {
    "too-many-removals": _volume(GuardLimits().too_many_removals),
    "too-many-changes": _volume(GuardLimits().too_many_changes),
    "large-reduction": _reduction,
    "unknown-current-keys": lambda node, out: CountLimit(count=_whole(node, "count"), set_in=out.span(node)),
}


def _number(node: YamlMapping | None, name: str) -> float | None:
    value = node.data.get(name) if node else None
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _whole(node: YamlMapping, name: str) -> int | None:
    value = node.data.get(name)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


_VERDICTS: Final = {verdict.value: verdict for verdict in Verdict}


def _backtest_policy(node: YamlMapping, out: Collector) -> BacktestPolicy:
    """The rules as written, and the built-in needs for those that are not."""
    history, built_in = mapping(node, "history"), HistoryNeeds()
    return BacktestPolicy(
        history=HistoryNeeds(
            hours=_number_or_default(history, "hours", built_in.hours),
            coverage_percent=_number_or_default(history, "coveragePercent", built_in.coverage_percent),
        ),
        fail=tuple(_rules(items(node, "fail"), out)),
    )


def _capacity(node: YamlMapping, out: Collector) -> dict[str, float]:
    """What one broker can do, by key."""
    written = ((key, scalar(node, key.value)) for key in QuotaKey)
    values = ((key, quota_value(key, value, None, out)) for key, value in written if value is not None)
    return {key.value: value.value for key, value in values if value is not None}


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


def _freeze_windows(nodes: YamlSequence, out: Collector) -> Iterator[FreezeWindow]:
    """All windows that can be understood; whatever is wrong with the others is an error, so nothing is written without them."""
    for node in nodes.items:
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


def _webhooks(nodes: YamlSequence) -> Iterator[Webhook]:
    """The webhooks that can be used; the schema reports the others."""
    for node in nodes.items:
        name, url = text(node, "name"), mapping(node, "url")
        variable, file = text(url, "env"), text(url, "file")
        if name is not None and (variable is None) != (file is None):
            yield Webhook(
                name=name,
                format=text(node, "format") or "json",
                variable=variable,
                file=file,
                events=frozenset(texts(node, "events")),
                ca_file=text(node, "caFile"),
            )


_FIELDS: Final[Mapping[str, tuple[type[YamlNode], Callable[[Any, Collector], object]]]] = {
    "clusterId": (YamlScalar, lambda node, _: None if node.data is None else node.text),
    "connection": (YamlMapping, _connection),
    "scope": (YamlMapping, _scope),
    "prune": (YamlScalar, _word(Prune)),
    "rebalance": (YamlScalar, _word(RebalancePolicy)),
    "isolate": (YamlScalar, _word(Isolation)),
    "protected": (YamlSequence, selectors),
    "guards": (YamlMapping, _guard_limits),
    "freeze": (YamlSequence, lambda node, out: tuple(_freeze_windows(node, out))),
    "accept": (YamlSequence, lambda node, out: tuple(_acceptances(node, out))),
    "backtest": (YamlMapping, _backtest_policy),
    "capacity": (YamlMapping, _capacity),
    "brokerSettings": (YamlMapping, lambda node, _: _broker_settings(node)),
    "quotaCallback": (YamlMapping, lambda node, _: _quota_callback(node)),
    "strimzi": (YamlMapping, lambda node, out: StrimziOperators(ignored=selectors(node.items.get("ignoredUsers"), out))),
    "traffic": (YamlMapping, lambda node, _: _metric_server(node)),
    "notifications": (YamlSequence, lambda node, _: tuple(_webhooks(node))),
    "profiles": (YamlMapping, parse_profiles),
}
"""Each field of ``spec``: the node that it is, and its reader. A reader returns ``None`` for what cannot be used."""
_SAFETY: Final = {name: name for name in ("protected", "guards", "freeze", "accept", "isolate")}
_BROKERS: Final = {"capacity": "capacity", "brokerSettings": "settings", "quotaCallback": "callback", "strimzi": "strimzi"}
_OTHER: Final = {
    "clusterId": "cluster_id",
    **{name: name for name in ("connection", "scope", "prune", "rebalance", "backtest", "traffic", "notifications", "profiles")},
}
"""Where the value of each field is: in the safety rules, the declared brokers, or the specification itself."""
