"""The checks of ``doctor``, and the state of a traffic source: values, documents, and lines for a terminal."""

from __future__ import annotations

import datetime
import enum
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from reconciler.documents import VALUES, Document, FindingCounts, row
from reconciler.model import Finding, display_name, escaped
from reconciler.render import Block, Column, Line, Style, findings_lines, line, table
from reconciler.text import count_of, duration, list_some


class CheckStatus(enum.StrEnum):
    """How a check ended."""

    PASSED = "pass"
    """Checks without complaint."""
    WARN = "warn"
    """Checks after which some commands will not work."""
    FAIL = "fail"
    """Checks after which most commands will not work."""
    SKIP = "skip"
    """Checks that could not be made."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DoctorCheck:
    """One check. ``id`` is kebab-case and never changes its meaning. ``remedy`` is what to do about a ``WARN`` or ``FAIL``."""

    id: str = ""
    """Stable name of the check."""
    status: CheckStatus
    """How the check ended. A skipped check could not be made. The message has the reason."""
    message: str
    """What was found, for people."""
    remedy: str | None = None
    """What to do about it, ``None`` when there is nothing to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkup:
    """All checks in the order in which the tool needs what they are about."""

    version: str
    """Version of kafka-quotas."""
    cluster: str | None
    """Name of the cluster in the manifests, ``None`` when none is chosen."""
    checks: tuple[DoctorCheck, ...]
    """All checks, in the order in which the tool needs what they are about."""

    @property
    def counts(self) -> Mapping[CheckStatus, int]:
        """The number of checks by how they ended."""
        return {status: sum(check.status is status for check in self.checks) for status in CheckStatus}

    @property
    def has_failed(self) -> bool:
        """Whether any check failed."""
        return self.counts[CheckStatus.FAIL] > 0


@dataclass(frozen=True, slots=True, kw_only=True)
class TrafficGap:
    """A time without any sample."""

    start: datetime.datetime
    """Its beginning."""
    end: datetime.datetime
    """Its end."""

    @property
    def seconds(self) -> float:
        """The length of the gap in seconds."""
        return (self.end - self.start).total_seconds()


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerTraffic:
    """What a source has of one broker."""

    broker: int
    """The broker's id."""
    exporters: tuple[str, ...] = ()
    """The targets of the server that show this broker."""
    series: int = 0
    """Series of clients and queue sizes."""
    clients: int = 0
    """Different clients: pairs of user and client-id, or addresses."""
    kinds: tuple[str, ...] = ()
    """What is shown of clients."""
    measures: tuple[str, ...] = ()
    """What samples are."""
    interval_s: float | None = None
    """The median of the seconds between two scrapes."""
    coverage: float | None = None
    """The share of the time asked for without gaps."""
    gaps: tuple[TrafficGap, ...] = ()
    """Times without samples, longer than two and a half intervals."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LayoutUse:
    """A layout of metric names, and how many series have it."""

    id: str
    """The layout: quota-labels, old-rule-order, name-only, lower-case, default-format or mapped."""
    title: str
    """The configuration that makes this layout, for people."""
    series: int
    """How many series have it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UnattributedSeries:
    """Series whose client or broker is not known. ``example``: the labels of one."""

    reason: str
    """Name-only: the client is in the metric name only. no-broker: no label has a broker id."""
    series: int
    """How many series."""
    example: str
    """One of them, cut when it is long."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrafficRepair:
    """Text to paste. ``language``: ``yaml`` or ``sh``."""

    id: str
    """Rule-order: rules of the jmx_exporter. default-pair-quota: a quota that limits nothing."""
    title: str
    """What the text is for."""
    language: str
    """The language of the text."""
    text: str
    """The text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrafficHealth:
    """The whole examination of one source. ``brokers`` are sorted by id, ``findings`` by severity."""

    source: str
    """The server's address, or the pages."""
    since: datetime.datetime
    """The beginning of the time that was read."""
    until: datetime.datetime
    """The end of that time."""
    layouts: tuple[LayoutUse, ...] = ()
    """Layouts of metric names that the series have, the most frequent first."""
    brokers: tuple[BrokerTraffic, ...] = ()
    """What the source has of each broker, by id."""
    unattributed: tuple[UnattributedSeries, ...] = ()
    """Series whose client or broker is not known."""
    findings: tuple[Finding, ...] = ()
    """Findings, the worst first."""
    repairs: tuple[TrafficRepair, ...] = ()
    """Text to paste."""


def counts_of_findings(health: TrafficHealth) -> FindingCounts:
    """Number of findings by severity."""
    return FindingCounts.of(health.findings)


CHECKUP: Final = Document(
    cls=Checkup,
    name="checkup",
    title="kafka-quotas doctor",
    codec=VALUES.extended({Checkup: row("version cluster checks summary=counts")}),
)
TRAFFIC_HEALTH: Final = Document(
    cls=TrafficHealth,
    name="doctor",
    title="kafka-quotas traffic source",
    codec=VALUES.extended(
        {
            FindingCounts: row("error warning info"),
            TrafficHealth: row(
                "source since until layouts brokers unattributed findings repairs summary", summary=counts_of_findings
            ),
        }
    ),
)


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
    if health.since == health.until:
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
