"""The state of a traffic source: what it shows of which broker, what is missing, and how to repair it."""

from __future__ import annotations

import datetime
import enum
from dataclasses import dataclass

from reconciler.model.finding import Finding


class SourceForm(enum.StrEnum):
    """What was examined."""

    PROMETHEUS = "prometheus"
    EXPORTERS = "exporters"
    """Pages of exporters, each read once."""
    FILES = "files"


@dataclass(frozen=True, slots=True, kw_only=True)
class TrafficGap:
    """A time without any sample."""

    start: datetime.datetime
    end: datetime.datetime

    @property
    def seconds(self) -> float:
        """How long it is."""
        return (self.end - self.start).total_seconds()


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerTraffic:
    """What a source has of one broker. ``kinds`` and ``measures``: what its series or rows are about.

    ``interval_s``: between two scrapes, ``None`` for files. ``rows``: samples of a server, requests of files.
    """

    broker: int
    exporters: tuple[str, ...] = ()
    series: int = 0
    clients: int = 0
    rows: int = 0
    kinds: tuple[str, ...] = ()
    measures: tuple[str, ...] = ()
    start: datetime.datetime | None = None
    end: datetime.datetime | None = None
    interval_s: float | None = None
    coverage: float | None = None
    """The share of the time asked for, or of the file's own span, without gaps."""
    gaps: tuple[TrafficGap, ...] = ()
    restarts: tuple[datetime.datetime, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class LayoutUse:
    """A layout of metric names, and how many series have it."""

    id: str
    title: str
    series: int


@dataclass(frozen=True, slots=True, kw_only=True)
class UnattributedSeries:
    """Series whose client or broker is not known. ``example``: the labels of one."""

    reason: str
    series: int
    example: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TrafficRepair:
    """Text to paste. ``language``: ``yaml`` or ``sh``."""

    id: str
    title: str
    language: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TrafficHealth:
    """The whole examination of one source. ``brokers`` are sorted by id, ``findings`` by severity."""

    source: str
    form: SourceForm
    since: datetime.datetime | None
    until: datetime.datetime | None
    layouts: tuple[LayoutUse, ...] = ()
    brokers: tuple[BrokerTraffic, ...] = ()
    unattributed: tuple[UnattributedSeries, ...] = ()
    findings: tuple[Finding, ...] = ()
    repairs: tuple[TrafficRepair, ...] = ()
    notes: tuple[str, ...] = ()
