"""Examine a source of recorded traffic: which layout, which brokers and kinds, what is missing, and how to repair it."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from reconciler.errors import TrafficError, UsageError
from reconciler.features.insight.doctor_views import TrafficHealth
from reconciler.features.insight.rate_sources import is_page, split_page
from reconciler.features.prometheus import HttpLogin, Piece, PieceReader, PrometheusApi, open_page, read_login, trusted_reader
from reconciler.model import CurrentState, Entity, Rule, Severity
from reconciler.ports import NO_PROGRESS, Progress
from reconciler.text import list_some
from reconciler.workflows import TrustedTree, metric_rules, read_trusted_mapping

if TYPE_CHECKING:
    from reconciler.features.prometheus import MetricTargets
    from reconciler.traffic import MetricRule
    from reconciler.workflows import Intent, PrometheusRequest

_MOST_JOBS: Final = 50
_MOST_TIME: Final = datetime.timedelta(days=31)
_RECENT_S: Final = 300

_EXPLANATIONS: Final = (
    ("no-client-series", Severity.ERROR,
     ("The metrics server has no series of quota sensors in this time. Brokers have these MBeans only while a quota exists, "
     "and exporters show them only when their rules let them through. Run the command that doctor prints, or check the "
     "rules and the targets of the server. Pages of other programs, such as Redpanda, have no rates of clients at all: the "
     "message names the program and what serves.")),
    ("exporter-unreadable", Severity.ERROR,
     ("The page of an exporter cannot be read, so its broker is not checked. Check the address, and whether the broker runs "
     "with the exporter.")),
    ("partial-answer", Severity.WARNING,
     ("The server left something out and warns of it: Thanos and Mimir with warnings, VictoriaMetrics with isPartial. "
     "Series, brokers and gaps may be missing here. Examine it again when all parts of its storage answer.")),
    ("identity-unknown", Severity.WARNING,
     ("The client of a series is not known. The jmx_exporter's example kafka-kraft-3_0_0 makes metric names of user and "
     "client-id, where case, special characters and the border between both are lost. Put the rules that doctor prints "
     "before the others.")),
    ("series-without-broker", Severity.WARNING,
     ("Each broker limits its own traffic, so that a series without a broker id is of no use. Add a label broker to the "
     "targets in the scrape configuration, or let names of pods and hosts end with the broker id. For a page, name the "
     "broker before its address.")),
    ("broker-without-series", Severity.WARNING,
     ("A broker of the cluster, or a target beside the others, has no series of clients. It may be idle or down, or the "
     "server does not scrape it.")),
    ("kind-without-series", Severity.WARNING,
     ("No client has series of this kind. Brokers measure a kind of traffic only while a quota for it exists, and some "
     "exporters leave MBeans out: Confluent's jmx-monitoring-stacks have no controller mutations.")),
    ("no-pair-series", Severity.INFO,
     ("A series has the identity of the quota group that a broker measures. Without a quota of pairs no series has both "
     "names, and proposals that separate the client-ids of a user stay inconclusive.")),
    ("slow-scrapes", Severity.INFO,
     ("A rate of a broker covers 11 seconds. Scrapes that are further apart miss moments, and never prove that a client was "
     "not throttled.")),
    ("scrape-gaps", Severity.WARNING,
     ("The source has times without samples or lines: the broker was down, the server did not scrape it, or a part of a "
     "recording is missing. These times are not checked.")),
    ("several-exporters", Severity.WARNING,
     ("Two targets show the same broker id. Replicas of one broker count once. Brokers of several clusters must not be "
     "mixed: choose one cluster with --match.")),
)  # fmt: skip
TRAFFIC_RULES: Final[Mapping[str, Rule]] = {
    name: Rule(id=name, severity=severity, explanation=explanation) for name, severity, explanation in _EXPLANATIONS
}
"""By id."""
EXPLAINED: Final[tuple[Mapping[str, Rule], Mapping[str, object]]] = (TRAFFIC_RULES, {})
"""What ``explain`` knows of this feature."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DoctorRequest:
    """What to examine: ``prometheus``, else the pages of ``traffic``. All else is what is known of the cluster.

    With a trusted reference of ``intent``, login and mapping are those of the reference.
    """

    traffic: tuple[str, ...]
    prometheus: PrometheusRequest | None = None
    intent: Intent | None = None
    current: CurrentState | None = None
    mapping: Path | None = None
    http_config: Path | None = None
    """The login for pages of exporters; a server has its own."""

    @property
    def brokers(self) -> tuple[int, ...]:
        """Return the ids of the brokers of the cluster, where it is known."""
        return self.current.brokers if self.current is not None else ()

    def quotas(self) -> Mapping[Entity, Mapping[str, float]] | None:
        """Return the quotas of the cluster, else of the manifests, else ``None``."""
        if self.current is not None:
            return self.current.entities
        return self.intent.desired.values() if self.intent is not None else None

    @property
    def trusted(self) -> TrustedTree | None:
        """The tree of the trusted reference, where one was given."""
        return self.intent.trusted if self.intent is not None else None

    def rules(self, what: str) -> tuple[MetricRule, ...]:
        """Read how series of other names are read. Raises ``UsageError`` for a mapping of files."""
        return metric_rules(read_trusted_mapping(self.mapping, self.trusted), what=what)

    def login(self, path: Path | None) -> HttpLogin:
        """Read the names of a file, as far as it is trusted. Empty without a file."""
        return read_login(path, trusted_reader(self.trusted)) if path is not None else HttpLogin()


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadSource:
    """What was read beside the series. Pages are of one moment. ``unreadable``: why some cannot be read.

    ``others``: by source without a series of quotas, the names of other metrics that it has.
    """

    name: str
    since: datetime.datetime
    until: datetime.datetime
    unreadable: tuple[str, ...] = ()
    others: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def when(self) -> str:
        """The end of a sentence about series that are absent."""
        return "" if self.since == self.until else " in this time"


def examine_traffic(request: DoctorRequest, *, now: datetime.datetime, progress: Progress = NO_PROGRESS) -> TrafficHealth:
    """Read the source and judge it.

    Raises ``UsageError`` for a time that cannot be read, ``TrafficError`` for a server or files that cannot, and
    ``MissingDependencyError`` without the packages.
    """
    from reconciler.traffic import require_arrow

    require_arrow()
    if request.prometheus is not None:
        return _examine_server(request, request.prometheus, now, progress)
    if any(map(is_page, request.traffic)):
        return _examine_pages(request, now)
    raise UsageError("doctor examines a Prometheus server or pages of exporters. For files, use backtest")


def _examine_server(
    request: DoctorRequest, server: PrometheusRequest, now: datetime.datetime, progress: Progress
) -> TrafficHealth:
    from reconciler.features.insight.metric_health import examine_metrics
    from reconciler.features.prometheus import AnswerReader, MetricTargets, foreign_selector, selector_of

    until = min(server.until, now)
    if until <= server.since:
        raise UsageError("The time between --since and --until is empty or in the future")
    if until - server.since > _MOST_TIME:
        raise UsageError(f"The time between --since and --until is longer than {_MOST_TIME.days} days")
    rules = request.rules("a Prometheus server")
    targets = MetricTargets(rules)
    piece = Piece(server.since.timestamp(), until.timestamp())
    api = PrometheusApi(server.address, request.login(server.http_config), on_wait=progress.step)
    try:
        _read_series(targets, PieceReader(api, selector_of(rules, server.match)), piece, server, progress)
        jobs = sorted({job for target in targets.targets.values() if (job := target.labels.get("job"))})
        if jobs and len(jobs) <= _MOST_JOBS:
            about = (f'job=~"{"|".join(map(_pattern, jobs))}"', *map(str, server.match))
            _read_series(targets, PieceReader(api, f"up{{{','.join(about)}}}"), piece, server)
        others: dict[str, tuple[str, ...]] = {}
        if not targets.targets:
            recent = api.range_samples(foreign_selector(), end_s=until.timestamp(), length_s=_RECENT_S)
            names = (series.label_values().get("__name__", "") for series in AnswerReader().read(recent).series)
            others[server.address] = tuple(dict.fromkeys(names))
    finally:
        api.close()
    return examine_metrics(targets, request, ReadSource(name=server.address, since=server.since, until=until, others=others))


def _examine_pages(request: DoctorRequest, now: datetime.datetime) -> TrafficHealth:
    """Each page once: there is neither an interval nor a gap to see."""
    from reconciler.features.insight.metric_health import examine_metrics
    from reconciler.features.prometheus import MetricTargets

    if not all(map(is_page, request.traffic)):
        raise UsageError("--traffic names pages of exporters and files: give one kind at a time")
    rules, login = request.rules("an exporter"), request.login(request.http_config)
    targets, unreadable = MetricTargets(rules), []
    addresses, others = [], {}
    for broker, address in map(split_page, request.traffic):
        page = open_page(address, broker, rules=rules, login=login)
        addresses.append(page.address)
        try:
            read = page.read()
        except TrafficError as error:
            unreadable.append(str(error))
            continue
        finally:
            page.close()
        if not read.samples:
            others[page.address] = read.others
        targets.add_page((series.labels for series, _ in read.samples), at_s=read.at_s)
    read_pages = ReadSource(name=list_some(addresses, 3), since=now, until=now, unreadable=tuple(unreadable), others=others)
    return examine_metrics(targets, request, read_pages)


def _read_series(
    targets: MetricTargets, reader: PieceReader, piece: Piece, server: PrometheusRequest, progress: Progress = NO_PROGRESS
) -> None:
    for answered in reader.read([piece]):
        for _, answer in answered.answers:
            targets.add_answer(answer)
        progress.step(f"reading {server.address}")
        progress.count((answered.piece.end_s - piece.begin_s) / 3600, (piece.end_s - piece.begin_s) / 3600, "hours")


def _pattern(text: str) -> str:
    """A regular expression in a PromQL string: any character that could mean something stands for any character."""
    return "".join(char if char.isalnum() or char in "_-:/ " else "." for char in text)
