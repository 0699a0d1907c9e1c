"""The examination of a metrics server: what its series show of which broker, and findings about the rest."""

from __future__ import annotations

import datetime
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from reconciler.features.insight.doctor_views import (
    BrokerTraffic,
    LayoutUse,
    TrafficGap,
    TrafficHealth,
    TrafficRepair,
    UnattributedSeries,
)
from reconciler.features.insight.traffic_health import TRAFFIC_RULES, DoctorRequest, ReadSource
from reconciler.features.prometheus import (
    Layout,
    MetricSeries,
    MetricTargets,
    ScrapeTarget,
    Unattributed,
    foreign_page,
    series_text,
)
from reconciler.model import CLIENT_KEYS, Entity, Finding, Message, MessagePart, compose, escaped, name_part
from reconciler.resolution import overridden_by_default_pair
from reconciler.text import count_of, duration, list_some, percent_text
from reconciler.traffic import KEY_OF_KIND, Kind, Measure

_WORDS: Final = {
    Kind.PRODUCE: "produced bytes",
    Kind.FETCH: "fetched bytes",
    Kind.REQUEST: "request time",
    Kind.MUTATION: "controller mutations",
}
_WINDOW_S: Final = 11
"""A gauge is the rate of 11 samples of a second: scrapes further apart do not see every moment."""
_SHOWN: Final = 3
_RULES_FIRST: Final = "rule-order"
_PAIR_QUOTA: Final = "default-pair-quota"
_LONGEST_EXAMPLE: Final = 200
_TITLES: Final = {
    Layout.QUOTA_LABELS: "jmx_exporter, rules as in the example kafka-2_0_0, or koperator",
    Layout.OLD_RULE_ORDER: "jmx_exporter, an older order of the rules of kafka-2_0_0: several tags in one label",
    Layout.NAME_ONLY: "jmx_exporter, rules as in the example kafka-kraft-3_0_0: clients in metric names",
    Layout.LOWER_CASE: "Confluent's jmx-monitoring-stacks, Strimzi's metrics-reporter, or rules in lower case",
    Layout.DEFAULT_FORMAT: "jmx_exporter without rules, as Amazon MSK",
    Layout.MAPPED: "metrics of the mapping file",
}
RULE_ORDER: Final = r"""rules:
  # These lines first: the first rule that matches an MBean wins.
  - pattern: kafka.server<type=(\w+), user=(.+), client-id=(.+)><>([a-z-]+)
    name: kafka_server_quota_$4
    type: GAUGE
    labels: {resource: "$1", user: "$2", clientId: "$3"}
  - pattern: kafka.server<type=(\w+), user=(.+)><>([a-z-]+)
    name: kafka_server_quota_$3
    type: GAUGE
    labels: {resource: "$1", user: "$2"}
  - pattern: kafka.server<type=(\w+), client-id=(.+)><>([a-z-]+)
    name: kafka_server_quota_$3
    type: GAUGE
    labels: {resource: "$1", clientId: "$2"}
  - pattern: kafka.server<type=(\w+)><>queue-size
    name: kafka_server_$1_queue_size
    type: GAUGE
  - pattern: kafka.server<type=(socket-.+), ip=(.+)><>(connection-[a-z-]+)
    name: kafka_server_$1_$3
    type: GAUGE
    labels: {ip: "$2"}
  # Then your own rules.
"""
"""Pairs before single tags, since ``user=(.+)`` also matches a pair."""
_EXPOSABLE: Final = tuple(kind for kind in KEY_OF_KIND if kind.key in CLIENT_KEYS)

Open = Mapping[Unattributed, Sequence[Mapping[str, str]]]
"""By reason, the labels of series whose client or broker is not known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Examined:
    """What the series of a source show. ``targets``: those with series of clients; ``keys``: these series."""

    request: DoctorRequest
    read: ReadSource
    every_target: Sequence[ScrapeTarget]
    targets: Sequence[ScrapeTarget]
    unattributed: Open
    keys: Collection[MetricSeries]
    foreign: Sequence[Message]
    """Of sources that are those of another program."""

    @property
    def silent_kinds(self) -> list[Kind]:
        """The kinds whose rate no series shows."""
        present = {key.kind for key in self.keys if key.measure is Measure.RATE}
        unknown = [labels.get("__name__", "").lower() for series in self.unattributed.values() for labels in series]
        words = {kind: "controllermutation" if kind is Kind.MUTATION else kind.value for kind in _WORDS if kind not in present}
        return [kind for kind, word in words.items() if not any(name.startswith(f"kafka_server_{word}_") for name in unknown)]

    @property
    def measured(self) -> set[Kind]:
        """Kinds of which any attribute of a client is shown."""
        return {key.kind for key in self.keys}

    @property
    def has_pairs(self) -> bool:
        """Whether a series has a user and a client-id."""
        return any(key.user is not None and key.client_id is not None for key in self.keys)


def examine_metrics(scraped: MetricTargets, request: DoctorRequest, read: ReadSource) -> TrafficHealth:
    """The state of a metrics server or of pages: brokers, series without a client, findings and repairs."""
    every_target = [target for _, target in sorted(scraped.targets.items())]
    unattributed = scraped.unattributed
    targets = [target for target in every_target if target.names]
    seen = _Examined(
        request=request,
        read=read,
        every_target=every_target,
        targets=targets,
        unattributed=unattributed,
        keys={key for target in targets for key in target.keys if key.measure is not Measure.QUEUE_SIZE},
        foreign=[message for source, names in read.others.items() if (message := foreign_page(source, names))],
    )
    return TrafficHealth(
        source=read.name,
        since=read.since,
        until=read.until,
        layouts=tuple(_layouts(targets)),
        brokers=tuple(_brokers(targets, read)),
        unattributed=tuple(
            UnattributedSeries(reason=reason.value, series=len(series), example=series_text(series[0]))
            for reason, series in sorted(unattributed.items())
        ),
        findings=tuple(sorted(_findings(seen, scraped.warnings), key=lambda finding: (finding.severity.rank, finding.id))),
        repairs=tuple(_repairs(seen)),
    )


def _layouts(targets: Iterable[ScrapeTarget]) -> Iterator[LayoutUse]:
    counts: Counter[Layout] = Counter()
    for target in targets:
        counts.update(target.layouts)
    for layout, series in counts.most_common():
        yield LayoutUse(id=layout.value, title=_TITLES[layout], series=series)


def _brokers(targets: Sequence[ScrapeTarget], read: ReadSource) -> Iterator[BrokerTraffic]:
    since_ms, until_ms = _ms(read.since), _ms(read.until)
    ids = {broker for target in targets for broker in target.brokers}
    for broker in sorted(ids):
        exporters = [target for target in targets if broker in target.brokers]
        keys = {key for target in exporters for key in target.keys if key.broker == broker}
        of_clients = {key for key in keys if key.measure is not Measure.QUEUE_SIZE}
        first = exporters[0]
        gaps = [TrafficGap(start=_at(start), end=_at(end)) for start, end in first.gaps(since_ms, until_ms)]
        interval = first.interval_ms()
        lost_ms = sum(gap.seconds for gap in gaps) * 1000
        yield BrokerTraffic(
            broker=broker,
            exporters=tuple(target.name for target in exporters),
            series=len(keys),
            clients=len({(key.user, key.client_id, key.ip) for key in of_clients}),
            kinds=tuple(kind.value for kind in Kind if any(key.kind is kind and key.measure is Measure.RATE for key in keys)),
            measures=tuple(measure.value for measure in Measure if any(key.measure is measure for key in keys)),
            interval_s=None if interval is None else interval / 1000,
            coverage=None if interval is None else max(0.0, 1 - lost_ms / (until_ms - since_ms)),
            gaps=tuple(gaps),
        )


def _finding(rule: str, message: str | Message, /, **values: str | int | Message | MessagePart) -> Finding:
    return Finding(
        id=rule,
        severity=TRAFFIC_RULES[rule].severity,
        message=compose(message, **values) if isinstance(message, str) and values else message,
    )


def _findings(seen: _Examined, warnings: Iterable[str]) -> Iterator[Finding]:
    for problem in seen.read.unreadable:
        yield _finding("exporter-unreadable", "{problem}", problem=name_part(problem))
    if some := list(warnings)[:_SHOWN]:
        shown = name_part(", ".join(map(escaped, some))[:_LONGEST_EXAMPLE])
        yield _finding("partial-answer", "The server warns that its answers are incomplete: {warnings}.", warnings=shown)
    source, when = name_part(seen.read.name), seen.read.when
    for message in seen.foreign:
        yield _finding("no-client-series", message)
    if not seen.targets:
        if not seen.foreign:
            yield _finding("no-client-series", "{source} has no series of quota sensors{when}.", source=source, when=when)
        return
    if not seen.keys and not seen.unattributed:
        text = "{source} has queue sizes of brokers, and no series of a client{when}."
        yield _finding("no-client-series", text, source=source, when=when)
    else:
        yield from _names(seen)
        yield from _kinds(seen)
        if seen.keys and not seen.has_pairs:
            yield _finding(
                "no-pair-series",
                "No series has both a user and a client-id, since no quota of pairs exists. A proposal that limits pairs stays "
                "inconclusive.",
            )
    yield from _missing_brokers(seen)
    yield from _times(seen)
    yield from _duplicates(seen)


def _names(seen: _Examined) -> Iterator[Finding]:
    if series := list(seen.unattributed.get(Unattributed.NAME_ONLY, ())):
        yield _finding(
            "identity-unknown",
            "The clients of {count} are unknown: user and client-id are in the metric name only, where case and special "
            "characters are lost. An example: {example}. Change the rules of the exporter.",
            count=count_of(len(series), "series", "series"),
            example=name_part(series_text(series[0])),
        )
    if series := list(seen.unattributed.get(Unattributed.NO_BROKER, ())):
        yield _finding(
            "series-without-broker",
            "{count} have no broker id, for example {example}. {advice}.",
            count=count_of(len(series), "series", "series"),
            example=name_part(series_text(series[0])),
            advice="Add a label broker to the targets of the scrape configuration"
            if seen.read.when
            else "Name the broker before the address: --traffic 1=metrics+http://...",
        )


def _kinds(seen: _Examined) -> Iterator[Finding]:
    quotas = seen.request.quotas() or {}
    for kind in seen.silent_kinds:
        key = kind.key.value
        about = f"No series shows {_WORDS[kind]} ({key})"
        if kind in seen.measured:
            text = f"{about}, but other attributes of the same sensors. Let the exporter show their rates, too."
            yield _finding("kind-without-series", text)
            continue
        reason = "Brokers measure it only while a quota with this key exists."
        if any(key in values for values in quotas.values()):
            reason = "Quotas with this key exist, so either no client has used it, or the exporter leaves its MBeans out."
        yield _finding("kind-without-series", f"{about}. {reason}")


def _missing_brokers(seen: _Examined) -> Iterator[Finding]:
    shown = {broker for target in seen.targets for broker in target.brokers}
    if shown and (missing := sorted(set(seen.request.brokers) - shown)):
        ids = list_some([str(broker) for broker in missing], 10)
        which = f"broker {ids}" if len(missing) == 1 else f"brokers {ids}"
        yield _finding("broker-without-series", f"No series comes from {which} of the cluster.")
    if silent := [target.name for target in seen.every_target if not target.names and target.is_scraped]:
        yield _finding(
            "broker-without-series",
            "{count} beside the others without any client series: {names}. Either no client used these brokers, or no "
            "quota exists, or the exporter leaves the MBeans out.",
            count=count_of(len(silent), "target stands", "targets stand"),
            names=name_part(list_some(silent, _SHOWN)),
        )


def _times(seen: _Examined) -> Iterator[Finding]:
    interval = max((target.interval_ms() or 0 for target in seen.targets), default=0) / 1000
    if interval > _WINDOW_S:
        yield _finding(
            "slow-scrapes",
            f"Scrapes are {interval:g} s apart. A rate covers {_WINDOW_S} s, so that scrapes see "
            f"{percent_text(_WINDOW_S / interval, digits=0)} of all moments. No sample proves that a client was never throttled.",
        )
    since_ms, until_ms = _ms(seen.read.since), _ms(seen.read.until)
    gaps = [(end - start, target.name, start) for target in seen.targets for start, end in target.gaps(since_ms, until_ms)]
    if gaps:
        length, name, start = max(gaps)
        yield _finding(
            "scrape-gaps",
            "{count} without samples, the longest of {length} at {name} from {start}.",
            count=count_of(len(gaps), "gap", "gaps"),
            length=duration(length / 1000),
            name=name_part(name),
            start=f"{_at(start):%Y-%m-%d %H:%M:%S} UTC",
        )


def _duplicates(seen: _Examined) -> Iterator[Finding]:
    by_broker: dict[int, list[ScrapeTarget]] = {}
    for target in seen.targets:
        for broker in target.brokers:
            by_broker.setdefault(broker, []).append(target)
    for broker, targets in sorted(by_broker.items()):
        if len(targets) > 1:
            yield _finding(
                "several-exporters",
                "Broker {broker} has {count}: {names}. Either one broker is scraped twice, or brokers of several "
                "clusters have the same id.",
                broker=broker,
                count=count_of(len(targets), "exporter"),
                names=name_part(list_some([_place(target, targets) for target in targets], _SHOWN)),
            )


def _place(target: ScrapeTarget, others: Sequence[ScrapeTarget]) -> str:
    """Return the name of a target, with the labels in which it differs from the others."""
    names = [name for name in target.labels if name != "instance" and len({other.labels.get(name) for other in others}) > 1]
    more = ", ".join(f"{name}={target.labels[name]}" for name in names)
    return f"{target.name} ({more})" if more else target.name


def _repairs(seen: _Examined) -> Iterator[TrafficRepair]:
    """Yield the texts to paste."""
    if {layout for target in seen.targets for layout in target.layouts} & {Layout.NAME_ONLY, Layout.OLD_RULE_ORDER}:
        title = "Put these rules of the jmx_exporter before all others, and restart the brokers:"
        yield TrafficRepair(id=_RULES_FIRST, title=title, language="yaml", text=RULE_ORDER)
    # What makes a broker of Kafka show its clients changes nothing about another program.
    if not seen.keys and (seen.foreign or (seen.unattributed and seen.targets)):
        return
    kinds = set(seen.silent_kinds) - seen.measured
    if not seen.has_pairs:
        kinds |= seen.measured
    yield from _default_pair_repair(kinds, seen.request.quotas() or {})


def _default_pair_repair(kinds: Collection[Kind], quotas: Mapping[Entity, Mapping[str, float]]) -> Iterator[TrafficRepair]:
    """The command that makes brokers measure these ``kinds`` by pair; none where it would lift the ``quotas`` that are known.

    The command looks at the cluster itself.
    """
    keys = [kind.key.value for kind in _EXPOSABLE if kind in kinds]
    usable = [key for key in keys if not overridden_by_default_pair(quotas, key)]
    if usable:
        options = "".join(f" \\\n  --keys {','.join(usable[at : at + 2])}" for at in range(0, len(usable), 2))
        yield TrafficRepair(
            id=_PAIR_QUOTA,
            title="A default pair quota far above any network makes brokers measure every client. This command sets it where it "
            "lifts no other limit:",
            language="sh",
            text=f"kafka-quotas alter --expose-clients --bootstrap-server HOST:9092{options}\n",
        )


def _ms(at: datetime.datetime) -> int:
    return round(at.timestamp() * 1000)


def _at(ms: int) -> datetime.datetime:
    return datetime.datetime.fromtimestamp(ms / 1000, datetime.UTC)
