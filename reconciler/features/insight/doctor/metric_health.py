"""The examination of a metrics server: what its series show of which broker, and findings about the rest."""

from __future__ import annotations

import datetime
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from reconciler.features.insight.doctor.metric_repairs import default_pair_repair, rule_order_repair
from reconciler.features.insight.doctor.traffic_health import (
    BrokerTraffic,
    LayoutUse,
    SourceForm,
    TrafficGap,
    TrafficHealth,
    TrafficRepair,
    UnattributedSeries,
)
from reconciler.features.prometheus import MetricTargets, ScrapeTarget, foreign_page, series_text
from reconciler.model import Entity, Finding, Message, Severity, compose, escaped, name_part
from reconciler.resolution import overridden_by_default_pair
from reconciler.text import count_of, duration, list_some
from reconciler.traffic import KEY_OF_KIND, Kind, Layout, Measure, Unattributed

_CLIENT_KINDS: Final = (Kind.PRODUCE, Kind.FETCH, Kind.REQUEST, Kind.MUTATION)
_WINDOW_S: Final = 11
"""A gauge is the rate of 11 samples of a second: scrapes further apart do not see every moment."""
_CLOCK_MS: Final = 2_000
_SHOWN: Final = 3
_LONGEST_EXAMPLE: Final = 200
_TITLES: Final = {
    Layout.QUOTA_LABELS: "jmx_exporter, rules as in the example kafka-2_0_0",
    Layout.OLD_RULE_ORDER: "jmx_exporter, an older order of the rules of kafka-2_0_0",
    Layout.NAME_ONLY: "jmx_exporter, rules as in the example kafka-kraft-3_0_0: clients in metric names",
    Layout.LOWER_CASE: "Confluent's jmx-monitoring-stacks",
    Layout.DEFAULT_FORMAT: "jmx_exporter without rules, as Amazon MSK",
    Layout.CONTRACT: "kafka_server_quota_* with quota_type",
    Layout.MAPPED: "metrics of the mapping file",
}
_SHARE: Final = {Unattributed.NAME_ONLY, Unattributed.SHARED_NAME}


@dataclass(frozen=True, slots=True, kw_only=True)
class HealthQuestion:
    """What is known beside the series. ``brokers`` and ``quotas``: of the cluster, when they are known."""

    source: str
    since: datetime.datetime
    until: datetime.datetime
    now: datetime.datetime
    brokers: tuple[int, ...] = ()
    quotas: Mapping[Entity, Mapping[str, float]] | None = None
    form: SourceForm = SourceForm.PROMETHEUS
    unreadable: tuple[str, ...] = ()
    """Why pages of exporters cannot be read."""
    others: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """By source without a series of quotas, the names of other metrics that it has."""


def examine_metrics(scraped: MetricTargets, question: HealthQuestion) -> TrafficHealth:
    """The state of a metrics server: brokers, series without a client, findings and repairs."""
    unattributed = scraped.unattributed()
    targets = [target for _, target in sorted(scraped.targets.items())]
    of_clients = [target for target in targets if target.names]
    examination = _Examination(of_clients, targets, unattributed, question, warnings=tuple(scraped.warnings))
    findings = sorted(examination.findings(), key=lambda finding: (finding.severity.rank, finding.id))
    return TrafficHealth(
        source=question.source,
        form=question.form,
        since=question.since,
        until=question.until,
        layouts=tuple(_layouts(of_clients)),
        brokers=tuple(_brokers(of_clients, question)),
        unattributed=tuple(_unattributed(unattributed)),
        findings=tuple(findings),
        repairs=tuple(examination.repairs()),
    )


def _layouts(targets: Iterable[ScrapeTarget]) -> Iterator[LayoutUse]:
    counts: Counter[tuple[Layout, str]] = Counter()
    for target in targets:
        for layout, series in target.layouts.items():
            counts[layout, _title(layout, target)] += series
    for (layout, title), series in sorted(counts.items(), key=lambda item: (-item[1], item[0])):
        yield LayoutUse(id=layout.value, title=title, series=series)


def _title(layout: Layout, target: ScrapeTarget) -> str:
    """Some layouts are distinguished by other series of the same exporter."""
    measures = {key.measure for key in target.keys}
    if layout is Layout.LOWER_CASE:
        if target.layouts[Layout.NAME_ONLY]:
            return _TITLES[Layout.NAME_ONLY]
        if target.layouts[Layout.QUOTA_LABELS]:
            return "queue sizes beside kafka-2_0_0, as koperator"
        if any(key.kind is Kind.MUTATION for key in target.keys) or Measure.QUEUE_SIZE in measures:
            return "Strimzi's metrics-reporter, or the jmx_exporter without rules in lower case"
    return _TITLES[layout]


def _brokers(targets: Sequence[ScrapeTarget], question: HealthQuestion) -> Iterator[BrokerTraffic]:
    since_ms, until_ms = _ms(question.since), _ms(question.until)
    ids = {broker for target in targets for broker in target.brokers}
    for broker in sorted(ids):
        exporters = [target for target in targets if broker in target.brokers]
        keys = {key for target in exporters for key in target.keys if key.broker == broker}
        of_clients = {key for key in keys if key.measure is not Measure.QUEUE_SIZE}
        first = exporters[0]
        times = first.scrape_times()
        gaps = [TrafficGap(start=_at(start), end=_at(end)) for start, end in first.gaps(since_ms, until_ms)]
        interval = first.interval_ms()
        lost_ms = sum(gap.seconds for gap in gaps) * 1000
        yield BrokerTraffic(
            broker=broker,
            exporters=tuple(target.name for target in exporters),
            series=len(keys),
            clients=len({(key.user, key.client_id, key.ip) for key in of_clients}),
            rows=sum(target.samples for target in exporters),
            kinds=tuple(kind.value for kind in Kind if any(key.kind is kind and key.measure is Measure.RATE for key in keys)),
            measures=tuple(measure.value for measure in Measure if any(key.measure is measure for key in keys)),
            start=_at(int(times[0])) if len(times) else None,
            end=_at(int(times[-1])) if len(times) else None,
            interval_s=None if interval is None else interval / 1000,
            coverage=None if interval is None else max(0.0, 1 - lost_ms / (until_ms - since_ms)),
            gaps=tuple(gaps),
            restarts=tuple(_at(start) for start in first.restarts(since_ms)),
        )


def _unattributed(unattributed: Mapping[Unattributed, Sequence[Mapping[str, str]]]) -> Iterator[UnattributedSeries]:
    for reason, series in sorted(unattributed.items()):
        yield UnattributedSeries(reason=reason.value, series=len(series), example=series_text(series[0]))


class _Examination:
    def __init__(
        self,
        targets: Sequence[ScrapeTarget],
        every_target: Sequence[ScrapeTarget],
        unattributed: Mapping[Unattributed, Sequence[Mapping[str, str]]],
        question: HealthQuestion,
        *,
        warnings: Sequence[str] = (),
    ) -> None:
        self._warnings = warnings
        self._targets, self._every_target, self._unattributed, self._question = targets, every_target, unattributed, question
        self._keys = {key for target in targets for key in target.keys if key.measure is not Measure.QUEUE_SIZE}

    def findings(self) -> Iterator[Finding]:
        """In no order."""
        for problem in self._question.unreadable:
            yield _finding("exporter-unreadable", Severity.ERROR, compose("{problem}", problem=name_part(problem)))
        if self._warnings:
            shown = name_part(", ".join(escaped(text) for text in self._warnings[:_SHOWN])[:_LONGEST_EXAMPLE])
            yield _finding(
                "partial-answer",
                Severity.WARNING,
                compose("The server warns that its answers are incomplete: {warnings}.", warnings=shown),
            )
        for message in self._foreign:
            yield _finding("no-client-series", Severity.ERROR, message)
        if not self._targets and not self._foreign:
            yield _finding(
                "no-client-series",
                Severity.ERROR,
                compose(
                    "{source} has no series of quota sensors{when}.", source=name_part(self._question.source), when=self._when
                ),
            )
        if not self._targets:
            return
        if not self._keys and not self._unattributed:
            yield _finding(
                "no-client-series",
                Severity.ERROR,
                compose(
                    "{source} has queue sizes of brokers, and no series of a client{when}.",
                    source=name_part(self._question.source),
                    when=self._when,
                ),
            )
        else:
            yield from self._names()
            yield from self._kinds()
            yield from self._pairs()
        yield from self._missing_brokers()
        yield from self._times()
        yield from self._duplicates()

    def repairs(self) -> Iterator[TrafficRepair]:
        """What to paste."""
        if self._layouts & {Layout.NAME_ONLY, Layout.OLD_RULE_ORDER}:
            yield rule_order_repair()
        if self._foreign and not self._keys:
            # What makes a broker of Kafka show its clients changes nothing about another program.
            return
        needed = set(self._silent_kinds()) - self._measured
        if not self._has_pairs():
            needed |= {key.kind for key in self._keys} & set(_CLIENT_KINDS)
        if not self._unattributed or self._keys or not self._targets:
            yield from default_pair_repair(needed, self._question.quotas)

    @property
    def _of_pages(self) -> bool:
        return self._question.form is SourceForm.EXPORTERS

    @property
    def _when(self) -> str:
        return "" if self._of_pages else " in this time"

    @property
    def _foreign(self) -> tuple[Message, ...]:
        return tuple(message for source, names in self._question.others.items() if (message := foreign_page(source, names)))

    @property
    def _layouts(self) -> set[Layout]:
        return {layout for target in self._targets for layout in target.layouts}

    def _names(self) -> Iterator[Finding]:
        if Layout.OLD_RULE_ORDER in self._layouts:
            yield _finding(
                "joined-labels",
                Severity.INFO,
                "The rules of the jmx_exporter put the user and the kind into one label. kafka-quotas reads them, dashboards "
                "do not. Change the order of the rules.",
            )
        if series := [labels for reason in _SHARE for labels in self._unattributed.get(reason, ())]:
            shared = len(self._unattributed.get(Unattributed.SHARED_NAME, ()))
            yield _finding(
                "identity-unknown",
                Severity.WARNING,
                compose(
                    "The clients of {count} are unknown: user and client-id are in the metric name only, where case and special "
                    "characters are lost. {shared} of these names fit several known clients. An example: {example}. Change the "
                    "rules of the exporter, or name the clients with --known-clients.",
                    count=count_of(len(series), "series", "series"),
                    shared=f"{shared:,}",
                    example=name_part(series_text(series[0])),
                ),
            )
        if series := list(self._unattributed.get(Unattributed.NO_BROKER, ())):
            yield _finding(
                "series-without-broker",
                Severity.WARNING,
                compose(
                    "{count} have no broker id, for example {example}. {advice}.",
                    count=count_of(len(series), "series", "series"),
                    example=name_part(series_text(series[0])),
                    advice="Name the broker before the address: --traffic 1=metrics+http://..."
                    if self._of_pages
                    else "Add a label broker to the targets of the scrape configuration",
                ),
            )

    def _kinds(self) -> Iterator[Finding]:
        for kind in self._silent_kinds():
            key = KEY_OF_KIND[kind].value
            quotas = self._question.quotas
            if kind in self._measured:
                text = f"No series shows {_WORDS[kind]} ({key}), but other attributes of the same sensors. Let the exporter show "
                yield _finding("kind-without-series", Severity.WARNING, f"{text}their rates, too.")
                continue
            if quotas is not None and any(key in values for values in quotas.values()):
                reason = "Quotas with this key exist, so either no client has used it, or the exporter leaves its MBeans out."
            else:
                reason = "Brokers measure it only while a quota with this key exists."
            yield _finding("kind-without-series", Severity.WARNING, f"No series shows {_WORDS[kind]} ({key}). {reason}")
            if overridden := overridden_by_default_pair(quotas or {}, key):
                shown = list_some([str(entity) for entity in overridden], _SHOWN)
                yield _finding(
                    "pair-quota-overrides",
                    Severity.INFO,
                    f"A default pair quota with {key} would override {shown}. Give these clients pair quotas instead.",
                )

    @property
    def _measured(self) -> set[Kind]:
        return {key.kind for key in self._keys}

    def _silent_kinds(self) -> Iterator[Kind]:
        present = {key.kind for key in self._keys if key.measure is Measure.RATE}
        unknown = {
            name for series in self._unattributed.values() for labels in series for name in [labels.get("__name__", "").lower()]
        }
        for kind in _CLIENT_KINDS:
            word = "controllermutation" if kind is Kind.MUTATION else kind.value
            if kind not in present and not any(name.startswith(f"kafka_server_{word}_") for name in unknown):
                yield kind

    def _has_pairs(self) -> bool:
        return any(key.user is not None and key.client_id is not None for key in self._keys)

    def _pairs(self) -> Iterator[Finding]:
        if self._keys and not self._has_pairs():
            yield _finding(
                "no-pair-series",
                Severity.INFO,
                "No series has both a user and a client-id, since no quota of pairs exists. A proposal that limits pairs stays "
                "inconclusive.",
            )

    def _missing_brokers(self) -> Iterator[Finding]:
        seen = {broker for target in self._targets for broker in target.brokers}
        if seen and (missing := sorted(set(self._question.brokers) - seen)):
            yield _finding(
                "broker-without-series",
                Severity.WARNING,
                f"No series comes from {_brokers_words(missing)} of the cluster.",
            )
        silent = [target for target in self._every_target if not target.names and (target.up or target.down)]
        if silent:
            names = list_some([target.name for target in silent], _SHOWN)
            yield _finding(
                "broker-without-series",
                Severity.WARNING,
                compose(
                    "{count} beside the others without any client series: {names}. Either no client used these brokers, or no "
                    "quota exists, or the exporter leaves the MBeans out.",
                    count=count_of(len(silent), "target stands", "targets stand"),
                    names=name_part(names),
                ),
            )

    def _times(self) -> Iterator[Finding]:
        since_ms, until_ms = _ms(self._question.since), _ms(self._question.until)
        slow = [target for target in self._targets if (target.interval_ms() or 0) > _WINDOW_S * 1000]
        if slow:
            interval = max(target.interval_ms() or 0 for target in slow) / 1000
            yield _finding(
                "slow-scrapes",
                Severity.INFO,
                f"Scrapes are {interval:g} s apart. A rate covers {_WINDOW_S} s, so that scrapes see "
                f"{min(1.0, _WINDOW_S / interval):.0%} of all moments. No sample proves that a client was never throttled.",
            )
        gaps = {target.name: list(target.gaps(since_ms, until_ms)) for target in self._targets}
        if with_gaps := {name: missing for name, missing in gaps.items() if missing}:
            longest = max((end - start, name, start) for name, missing in with_gaps.items() for start, end in missing)
            yield _finding(
                "scrape-gaps",
                Severity.WARNING,
                compose(
                    "{count} without samples, the longest of {length} at {name} from {start}.",
                    count=count_of(sum(map(len, with_gaps.values())), "gap", "gaps"),
                    length=duration(longest[0] / 1000),
                    name=name_part(longest[1]),
                    start=f"{_at(longest[2]):%Y-%m-%d %H:%M:%S} UTC",
                ),
            )
        if restarts := [(start, target.name) for target in self._targets for start in target.restarts(since_ms)]:
            latest, name = max(restarts)
            yield _finding(
                "broker-restarted",
                Severity.INFO,
                compose(
                    "Brokers started {count}, last {name} at {start}. A restart empties every sensor: rates of its first 11 s "
                    "are too low.",
                    count=count_of(len(restarts), "time"),
                    name=name_part(name),
                    start=f"{_at(latest):%Y-%m-%d %H:%M:%S} UTC",
                ),
            )
        yield from self._clocks()

    def _clocks(self) -> Iterator[Finding]:
        for target in self._targets:
            offset = target.clock_offset_ms()
            if offset is not None and abs(offset) >= _CLOCK_MS:
                side = "ahead of" if offset > 0 else "behind"
                yield _finding(
                    "clock-offset",
                    Severity.WARNING,
                    compose(
                        "The clock of {name} is at least {offset} {side} the server's: its process would have started at a time "
                        "that the scrapes exclude.",
                        name=name_part(target.name),
                        offset=duration(abs(offset) / 1000),
                        side=side,
                    ),
                )
        newest = max((int(times[-1]) for target in self._targets if len(times := target.scrape_times())), default=None)
        if newest is not None and newest - _ms(self._question.now) >= _CLOCK_MS:
            ahead = duration((newest - _ms(self._question.now)) / 1000)
            yield _finding(
                "clock-offset",
                Severity.WARNING,
                f"The server's clock is at least {ahead} ahead of the clock here: its last sample is from the future.",
            )

    def _duplicates(self) -> Iterator[Finding]:
        by_broker: dict[int, list[ScrapeTarget]] = {}
        for target in self._targets:
            for broker in target.brokers:
                by_broker.setdefault(broker, []).append(target)
        for broker, targets in sorted(by_broker.items()):
            if len(targets) > 1:
                yield _finding(
                    "several-exporters",
                    Severity.WARNING,
                    compose(
                        "Broker {broker} has {count}: {names}. Either one broker is scraped twice, or brokers of several "
                        "clusters have the same id.",
                        broker=broker,
                        count=count_of(len(targets), "exporter"),
                        names=name_part(list_some([_place(target, targets) for target in targets], _SHOWN)),
                    ),
                )


_WORDS: Final = {
    Kind.PRODUCE: "produced bytes",
    Kind.FETCH: "fetched bytes",
    Kind.REQUEST: "request time",
    Kind.MUTATION: "controller mutations",
}


def _place(target: ScrapeTarget, others: Sequence[ScrapeTarget]) -> str:
    """Its name, with the labels in which it differs from the others."""
    names = [name for name in target.labels if name != "instance" and len({other.labels.get(name) for other in others}) > 1]
    more = ", ".join(f"{name}={target.labels[name]}" for name in names)
    return f"{target.name} ({more})" if more else target.name


def _brokers_words(brokers: Collection[int]) -> str:
    ids = list_some([str(broker) for broker in brokers], 10)
    return f"broker {ids}" if len(brokers) == 1 else f"brokers {ids}"


def _finding(name: str, severity: Severity, message: str | Message) -> Finding:
    return Finding(id=name, severity=severity, message=message)


def _ms(at: datetime.datetime) -> int:
    return round(at.timestamp() * 1000)


def _at(ms: int) -> datetime.datetime:
    return datetime.datetime.fromtimestamp(ms / 1000, datetime.UTC)
