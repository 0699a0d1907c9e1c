"""The state of a traffic source for a terminal: a row for each broker, findings, and text to paste."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from reconciler.features.insight.doctor.traffic_health import BrokerTraffic, SourceForm, TrafficGap, TrafficHealth
from reconciler.model import display_name, escaped
from reconciler.render import Block, Column, Line, Style, findings_lines, labelled, line, table
from reconciler.text import count_of, duration, list_some

_SHOWN_EXPORTERS: Final = 2
_MOST_GAPS: Final = 5


def traffic_health_lines(health: TrafficHealth) -> tuple[Block, ...]:
    """The examination of a source as lines: summary, a table of brokers, gaps, findings and repairs."""
    return tuple(_lines(health))


def _lines(health: TrafficHealth) -> Iterator[Block]:
    time = ""
    if health.form is SourceForm.EXPORTERS and health.until is not None:
        time = f", {health.until:%Y-%m-%d %H:%M:%S} UTC"
    elif health.since is not None and health.until is not None:
        time = f", {health.since:%Y-%m-%d %H:%M} to {health.until:%Y-%m-%d %H:%M} UTC"
    yield line(("Traffic of ", Style.STRONG), (display_name(health.source), Style.STRONG), time)
    for layout in health.layouts:
        yield line(f"  {layout.title}: {count_of(layout.series, 'series', 'series')}")
    yield line()
    if health.brokers:
        yield _metrics_table(health)
        yield line()
        yield from _gaps(health.brokers)
    if health.findings:
        yield from findings_lines(health.findings)
        yield line()
    for repair in health.repairs:
        yield line((repair.title, Style.STRONG))
        yield line()
        for text in repair.text.splitlines():
            yield line(f"  {text}")
        yield line()
    for note in health.notes:
        yield labelled("Note: ", Style.FAINT, note)
    yield line((_sentence(health), Style.STRONG))


def _metrics_table(health: TrafficHealth) -> Block:
    columns = (
        Column(title="broker", to_the_right=True),
        Column(title="exporter", least=10),
        Column(title="clients", to_the_right=True),
        Column(title="shows", least=12),
        Column(title="every", to_the_right=True),
        Column(title="covered", to_the_right=True),
        Column(title="restarts", to_the_right=True),
    )
    return table(columns, (_metrics_row(broker) for broker in health.brokers))


def _metrics_row(broker: BrokerTraffic) -> tuple[str, ...]:
    shows = [*broker.kinds, *(measure for measure in broker.measures if measure != "rate")]
    return (
        str(broker.broker),
        escaped(list_some(broker.exporters, _SHOWN_EXPORTERS)),
        f"{broker.clients:,}",
        ", ".join(shows),
        "" if broker.interval_s is None else f"{broker.interval_s:g} s",
        _share(broker.coverage),
        str(len(broker.restarts)) if broker.restarts else "",
    )


def _share(share: float | None) -> str:
    """A percentage that is 100 only when nothing is missing."""
    if share is None:
        return ""
    return "100 %" if share >= 1 else f"{min(99.9, share * 100):.1f} %"


def _gaps(brokers: tuple[BrokerTraffic, ...]) -> Iterator[Line]:
    gaps = sorted(((gap, broker.broker) for broker in brokers for gap in broker.gaps), key=lambda item: -item[0].seconds)
    for gap, broker in gaps[:_MOST_GAPS]:
        yield line(f"  No samples of broker {broker} for {duration(gap.seconds)}: {_time(gap)}")
    if len(gaps) > _MOST_GAPS:
        yield line((f"  and {count_of(len(gaps) - _MOST_GAPS, 'shorter gap')} (--format json lists all)", Style.FAINT))
    if gaps:
        yield line()


def _time(gap: TrafficGap) -> str:
    return f"{gap.start:%Y-%m-%d %H:%M:%S} to {gap.end:%H:%M:%S} UTC"


def _sentence(health: TrafficHealth) -> str:
    brokers = count_of(len(health.brokers), "broker")
    clients = sum(broker.clients for broker in health.brokers)
    unknown = sum(unattributed.series for unattributed in health.unattributed)
    more = f", {count_of(unknown, 'series', 'series')} with an unknown client or broker" if unknown else ""
    shown = f"{brokers}, {count_of(clients, 'client')} on them{more}"
    counts = f"{count_of(len(health.findings), 'finding')}." if health.findings else "Nothing to repair."
    return f"{shown}. {counts}"
