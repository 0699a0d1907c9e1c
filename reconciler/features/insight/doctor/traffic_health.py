"""The state of a traffic source: what it shows of which broker, what is missing, how to repair it, and the findings."""

from __future__ import annotations

import datetime
import enum
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from reconciler.model import Finding, Rule, Severity

_RULES: Final = (
    Rule(
        id="no-client-series",
        severity=Severity.ERROR,
        explanation="The metrics server has no series of quota sensors in this time. Brokers have these MBeans only while a "
        "quota exists, and exporters show them only when their rules let them through. Run the command that doctor "
        "prints, or check the rules and the targets of the server. Pages of other programs, such as Redpanda, have no rates of "
        "clients at all: the message names the program and what serves.",
    ),
    Rule(
        id="exporter-unreadable",
        severity=Severity.ERROR,
        explanation="The page of an exporter cannot be read. Nothing is known about its broker: check the address, and whether "
        "the broker runs with the exporter.",
    ),
    Rule(
        id="partial-answer",
        severity=Severity.WARNING,
        explanation="The server left something out and warns of it: Thanos and Mimir with warnings, VictoriaMetrics with "
        "isPartial. Series, brokers and gaps may be missing here. Examine it again when all parts of its storage answer.",
    ),
    Rule(
        id="identity-unknown",
        severity=Severity.WARNING,
        explanation="The client of a series is not known. The jmx_exporter's example kafka-kraft-3_0_0 makes metric names of "
        "user and client-id, where case, special characters and the border between both are lost. kafka-quotas looks such names "
        "up among the clients of manifests, snapshot and --known-clients, and uses a name that fits exactly one. Put the "
        "rules that doctor prints before the others.",
    ),
    Rule(
        id="joined-labels",
        severity=Severity.INFO,
        explanation="An older order of the jmx_exporter's rules puts several tags of an MBean into one label, such as "
        'resource="Produce, user=alice". kafka-quotas separates them, dashboards do not. Put the rules for pairs first.',
    ),
    Rule(
        id="series-without-broker",
        severity=Severity.WARNING,
        explanation="Each broker limits its own traffic, so that a series without a broker id is of no use. Add a label broker "
        "to the targets in the scrape configuration, or let names of pods and hosts end with the broker id. For a page, name the "
        "broker before its address.",
    ),
    Rule(
        id="broker-without-series",
        severity=Severity.WARNING,
        explanation="A broker of the cluster, or a target beside the others, has no series of clients. It may be idle or down, "
        "or the server does not scrape it.",
    ),
    Rule(
        id="kind-without-series",
        severity=Severity.WARNING,
        explanation="No client has series of this kind. Brokers measure a kind of traffic only while a quota for it exists, and "
        "some exporters leave MBeans out: Confluent's jmx-monitoring-stacks have no controller mutations.",
    ),
    Rule(
        id="pair-quota-overrides",
        severity=Severity.INFO,
        explanation="A quota of the default user with the default client-id is stronger than quotas of default users, of "
        "client-ids and of default client-ids. It would lift their limits, so doctor does not propose it for this key.",
    ),
    Rule(
        id="no-pair-series",
        severity=Severity.INFO,
        explanation="A series has the identity of the quota group that a broker measures. Without a quota of pairs no series has "
        "both names, and proposals that separate the client-ids of a user stay inconclusive.",
    ),
    Rule(
        id="slow-scrapes",
        severity=Severity.INFO,
        explanation="A rate of a broker covers 11 seconds. Scrapes that are further apart miss moments, and never prove that a "
        "client was not throttled.",
    ),
    Rule(
        id="scrape-gaps",
        severity=Severity.WARNING,
        explanation="The source has times without samples or lines: the broker was down, the server did not scrape it, or a part "
        "of a recording is missing. Nothing is known about these times.",
    ),
    Rule(
        id="broker-restarted",
        severity=Severity.INFO,
        explanation="A restart empties every sensor. Rates of the first 11 seconds are too low, and series return with the next "
        "request of their clients.",
    ),
    Rule(
        id="clock-offset",
        severity=Severity.WARNING,
        explanation="A clock is wrong. Prometheus gives samples its own time, so series stay comparable. Compare them with "
        "request logs only after the clocks agree.",
    ),
    Rule(
        id="several-exporters",
        severity=Severity.WARNING,
        explanation="Two targets show the same broker id. Replicas of one broker count once. Brokers of several clusters must "
        "not be mixed: choose one cluster with --match.",
    ),
)
TRAFFIC_RULES: Final[Mapping[str, Rule]] = {rule.id: rule for rule in _RULES}
"""By id."""
EXPLAINED: Final[tuple[Mapping[str, Rule], Mapping[str, object]]] = (TRAFFIC_RULES, {})
"""What ``explain`` knows of this feature."""


class SourceForm(enum.StrEnum):
    """What was examined."""

    PROMETHEUS = "prometheus"
    EXPORTERS = "exporters"
    """Pages of exporters, each read once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrafficGap:
    """A time without any sample."""

    start: datetime.datetime
    """Its beginning."""
    end: datetime.datetime
    """Its end."""

    @property
    def seconds(self) -> float:
        """How long it is."""
        return (self.end - self.start).total_seconds()


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerTraffic:
    """What a source has of one broker. ``kinds`` and ``measures``: what its series or rows are about.

    ``interval_s``: between two scrapes, ``rows``: samples.
    """

    broker: int
    """The broker's id."""
    exporters: tuple[str, ...] = ()
    """The targets of the server that show this broker."""
    series: int = 0
    """Series of clients and queue sizes."""
    clients: int = 0
    """Different clients: pairs of user and client-id, or addresses."""
    rows: int = 0
    """Samples."""
    kinds: tuple[str, ...] = ()
    """What is shown of clients."""
    measures: tuple[str, ...] = ()
    """What samples are."""
    start: datetime.datetime | None = None
    """The first sample or request."""
    end: datetime.datetime | None = None
    """The last sample or request."""
    interval_s: float | None = None
    """The median of the seconds between two scrapes."""
    coverage: float | None = None
    """The share of the time asked for without gaps."""
    gaps: tuple[TrafficGap, ...] = ()
    """Times without samples, longer than two and a half intervals."""
    restarts: tuple[datetime.datetime, ...] = ()
    """When the broker's process started within the time that was read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LayoutUse:
    """A layout of metric names, and how many series have it."""

    id: str
    """The layout: quota-labels, old-rule-order, name-only, lower-case, default-format, contract or mapped."""
    title: str
    """The configuration that makes this layout, for people."""
    series: int
    """How many series have it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UnattributedSeries:
    """Series whose client or broker is not known. ``example``: the labels of one."""

    reason: str
    """Name-only: the client is in the metric name only, and no known client fits. shared-name: several known clients fit. no-
    broker: no label has a broker id.
    """
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
    form: SourceForm
    """What was examined."""
    since: datetime.datetime | None
    """The beginning of the time that was read."""
    until: datetime.datetime | None
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
    notes: tuple[str, ...] = ()
    """Sentences about what was read."""
