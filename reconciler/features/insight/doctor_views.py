"""The checks of ``doctor`` and the state of a traffic source for a terminal."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from reconciler.features.insight.doctor_documents import (
    BrokerTraffic,
    CheckStatus,
    Checkup,
    SourceForm,
    TrafficHealth,
)
from reconciler.model import display_name, escaped
from reconciler.render import Block, Column, Line, Style, findings_lines, line, table
from reconciler.text import count_of, duration, list_some

_STYLES: Final = {
    CheckStatus.PASSED: Style.GOOD,
    CheckStatus.WARN: Style.WARN,
    CheckStatus.FAIL: Style.BAD,
    CheckStatus.SKIP: Style.FAINT,
}
_ID_COLUMNS: Final = 14
_SHOWN_EXPORTERS: Final = 2
_MOST_GAPS: Final = 5
_BROKERS: Final = (
    Column(title="broker", to_the_right=True),
    Column(title="exporter", least=10),
    Column(title="clients", to_the_right=True),
    Column(title="shows", least=12),
    Column(title="every", to_the_right=True),
    Column(title="covered", to_the_right=True),
)


def checkup_lines(checkup: Checkup) -> Iterator[Block]:
    """The checks as lines, failures and all: support reads them from top to bottom."""
    of = "" if checkup.cluster is None else f" of {display_name(checkup.cluster)}"
    yield line((f"Checkup{of}", Style.STRONG), f", kafka-quotas {checkup.version}")
    yield line()
    for check in checkup.checks:
        hang = 6 + _ID_COLUMNS + 1
        yield line(
            (f"{check.status.value:<6}", _STYLES[check.status]), f"{check.id:<{_ID_COLUMNS}} ", str(check.message), hang=hang
        )
        if check.remedy is not None:
            yield line(" " * hang, ("Remedy: ", Style.STRONG), check.remedy, hang=hang)
    yield line()
    counts = checkup.counts
    failed, warned = count_of(counts[CheckStatus.FAIL], "check"), count_of(counts[CheckStatus.WARN], "warning")
    passed, skipped = counts[CheckStatus.PASSED], f"{counts[CheckStatus.SKIP]} skipped."
    sentence = f"{failed} failed, {warned}, {passed} passed, {skipped}"
    if not counts[CheckStatus.FAIL] and not counts[CheckStatus.WARN]:
        sentence = f"{count_of(passed, 'check')} passed, {skipped}"
    yield line((sentence, Style.STRONG))


def traffic_health_lines(health: TrafficHealth) -> Iterator[Block]:
    """The examination of a source as lines: summary, a table of brokers, gaps, findings and repairs."""
    time = f"{health.since:%Y-%m-%d %H:%M} to {health.until:%Y-%m-%d %H:%M}"
    if health.form is SourceForm.EXPORTERS:
        time = f"{health.until:%Y-%m-%d %H:%M:%S}"
    yield line(("Traffic of ", Style.STRONG), (display_name(health.source), Style.STRONG), f", {time} UTC")
    for layout in health.layouts:
        yield line(f"  {layout.title}: {count_of(layout.series, 'series', 'series')}")
    yield line()
    if health.brokers:
        yield table(_BROKERS, map(_broker_row, health.brokers))
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
    clients = count_of(sum(broker.clients for broker in health.brokers), "client")
    unknown = sum(unattributed.series for unattributed in health.unattributed)
    more = f", {count_of(unknown, 'series', 'series')} with an unknown client or broker" if unknown else ""
    counts = f"{count_of(len(health.findings), 'finding')}." if health.findings else "Nothing to repair."
    yield line((f"{count_of(len(health.brokers), 'broker')}, {clients} on them{more}. {counts}", Style.STRONG))


def _broker_row(broker: BrokerTraffic) -> tuple[str, ...]:
    shows = [*broker.kinds, *(measure for measure in broker.measures if measure != "rate")]
    return (
        str(broker.broker),
        escaped(list_some(broker.exporters, _SHOWN_EXPORTERS)),
        f"{broker.clients:,}",
        ", ".join(shows),
        "" if broker.interval_s is None else f"{broker.interval_s:g} s",
        _share(broker.coverage),
    )


def _share(share: float | None) -> str:
    """A percentage that is 100 only when nothing is missing."""
    if share is None:
        return ""
    return "100 %" if share >= 1 else f"{min(99.9, share * 100):.1f} %"


def _gaps(brokers: tuple[BrokerTraffic, ...]) -> Iterator[Line]:
    gaps = sorted(((gap, broker.broker) for broker in brokers for gap in broker.gaps), key=lambda item: -item[0].seconds)
    for gap, broker in gaps[:_MOST_GAPS]:
        when = f"{gap.start:%Y-%m-%d %H:%M:%S} to {gap.end:%H:%M:%S} UTC"
        yield line(f"  No samples of broker {broker} for {duration(gap.seconds)}: {when}")
    if len(gaps) > _MOST_GAPS:
        yield line((f"  and {count_of(len(gaps) - _MOST_GAPS, 'shorter gap')} (--format json lists all)", Style.FAINT))
    if gaps:
        yield line()
