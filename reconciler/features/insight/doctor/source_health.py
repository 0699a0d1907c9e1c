"""Examine a source of recorded traffic: which layout, which brokers and kinds, what is missing, and how to repair it."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from reconciler.errors import TrafficError, UsageError
from reconciler.features.insight.doctor.traffic_health import SourceForm, TrafficHealth
from reconciler.features.insight.headroom.rate_sources import is_page, split_page
from reconciler.features.prometheus import HttpLogin, Piece, PieceReader, PrometheusApi, open_page, read_login, trusted_reader
from reconciler.model import CurrentState, Entity
from reconciler.ports import Progress
from reconciler.text import list_some
from reconciler.workflows import TrustedTree, metric_rules, names_of, read_client_names, read_trusted_mapping

if TYPE_CHECKING:
    from reconciler.features.prometheus import MetricTargets
    from reconciler.traffic import ClientNames, MetricRule
    from reconciler.workflows import Intent, PrometheusRequest

_MOST_JOBS: Final = 50
_MOST_TIME: Final = datetime.timedelta(days=31)
_RECENT_S: Final = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class DoctorRequest:
    """What to examine: ``prometheus``, else the pages of ``traffic``. All else is what is known of the cluster.

    With a trusted reference of ``intent``, login, mapping and names of clients are those of the reference.
    """

    traffic: tuple[str, ...]
    prometheus: PrometheusRequest | None = None
    intent: Intent | None = None
    current: CurrentState | None = None
    known_clients: Path | None = None
    mapping: Path | None = None
    http_config: Path | None = None
    """The login for pages of exporters; a server has its own."""

    def quotas(self) -> Mapping[Entity, Mapping[str, float]] | None:
        """Those of the cluster, else those of the manifests, else ``None``."""
        if self.current is not None:
            return self.current.entities
        return self.intent.desired.values() if self.intent is not None else None

    @property
    def trusted(self) -> TrustedTree | None:
        """Who vouches for files, where a reference was given."""
        return self.intent.trusted if self.intent is not None else None

    def names(self) -> ClientNames:
        """Every name of a user or client-id that is known."""
        declared = self.intent.desired.entities if self.intent is not None else {}
        entities: Iterable[Entity] = (*declared, *(self.current.entities if self.current is not None else ()))
        return names_of(entities) | read_client_names(self.known_clients, self.trusted)

    def rules(self, what: str) -> tuple[MetricRule, ...]:
        """How series of other names are read. Raises ``UsageError`` for a mapping of files."""
        return metric_rules(read_trusted_mapping(self.mapping, self.trusted), what=what)

    def login(self, path: Path | None) -> HttpLogin:
        """That of a file, as far as it is trusted; an empty one without a file."""
        return read_login(path, trusted_reader(self.trusted)) if path is not None else HttpLogin()


def examine_traffic(request: DoctorRequest, *, now: datetime.datetime, progress: Progress | None = None) -> TrafficHealth:
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
    raise UsageError("doctor examines a Prometheus server or pages of exporters. For files, use backtest or tool check-traffic")


def _examine_server(
    request: DoctorRequest, server: PrometheusRequest, now: datetime.datetime, progress: Progress | None
) -> TrafficHealth:
    from reconciler.features.insight.doctor.metric_health import HealthQuestion, examine_metrics
    from reconciler.features.prometheus import MetricTargets
    from reconciler.traffic import SeriesReader, selector_of

    until = min(server.until, now)
    if until <= server.since:
        raise UsageError("The time between --since and --until is empty or in the future")
    if until - server.since > _MOST_TIME:
        raise UsageError(f"The time between --since and --until is longer than {_MOST_TIME.days} days")
    rules = request.rules("a Prometheus server")
    reader = SeriesReader(request.names(), rules)
    targets = MetricTargets(reader)
    piece = Piece(server.since.timestamp(), until.timestamp())
    on_wait = progress.step if progress is not None else None
    api = PrometheusApi(server.address, request.login(server.http_config), on_wait=on_wait)
    try:
        _read_series(targets, PieceReader(api, selector_of(rules, server.match)), piece, server, progress)
        jobs = sorted({job for target in targets.targets.values() if (job := target.labels.get("job"))})
        if jobs and len(jobs) <= _MOST_JOBS:
            about = (f'job=~"{"|".join(map(_pattern, jobs))}"', *map(str, server.match))
            states = f'{{__name__=~"up|process_start_time_seconds",{",".join(about)}}}'
            _read_series(targets, PieceReader(api, states), piece, server)
        others = {} if targets.targets else {server.address: _other_names(api, until)}
    finally:
        api.close()
    question = HealthQuestion(
        source=server.address,
        since=server.since,
        until=until,
        now=now,
        brokers=request.current.brokers if request.current is not None else (),
        quotas=request.quotas(),
        others=others,
    )
    return examine_metrics(targets, question)


def _other_names(api: PrometheusApi, until: datetime.datetime) -> tuple[str, ...]:
    """Names of metrics of other programs, of the last minutes."""
    from reconciler.features.prometheus import AnswerReader, foreign_selector

    answer = AnswerReader().read(api.range_samples(foreign_selector(), end_s=until.timestamp(), length_s=_RECENT_S))
    return tuple(dict.fromkeys(series.label_values().get("__name__", "") for series in answer.series))


def _examine_pages(request: DoctorRequest, now: datetime.datetime) -> TrafficHealth:
    """Each page once: there is neither an interval nor a gap to see."""
    from reconciler.features.insight.doctor.metric_health import HealthQuestion, examine_metrics
    from reconciler.features.prometheus import MetricTargets
    from reconciler.traffic import SeriesReader

    if not all(map(is_page, request.traffic)):
        raise UsageError("--traffic names pages of exporters and files: give one kind at a time")
    rules, login = request.rules("an exporter"), request.login(request.http_config)
    targets, unreadable = MetricTargets(SeriesReader(request.names(), rules)), []
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
    question = HealthQuestion(
        source=list_some(addresses, 3),
        since=now,
        until=now,
        now=now,
        brokers=request.current.brokers if request.current is not None else (),
        quotas=request.quotas(),
        form=SourceForm.EXPORTERS,
        unreadable=tuple(unreadable),
        others=others,
    )
    return examine_metrics(targets, question)


def _read_series(
    targets: MetricTargets, reader: PieceReader, piece: Piece, server: PrometheusRequest, progress: Progress | None = None
) -> None:
    for answered in reader.read([piece]):
        for _, answer in answered.answers:
            targets.add_answer(answer)
        if progress is not None:
            share = (answered.piece.end_s - piece.begin_s) / (piece.end_s - piece.begin_s)
            progress.step(f"reading {server.address}: {share:.0%}")


def _pattern(text: str) -> str:
    """A regular expression in a PromQL string: any character that could mean something stands for any character."""
    return "".join(char if char.isalnum() or char in "_-:/ " else "." for char in text)
