"""Where the rates of quota groups are from: a Prometheus server, or the pages of exporters.

Each gives samples of series, oldest first. A page has one sample, so samples of earlier reads are kept beside it.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol

from reconciler.errors import TrafficError, UsageError
from reconciler.features.prometheus import (
    PAGE_PREFIX,
    HttpLogin,
    PrometheusApi,
    ReadFile,
    TooManySamplesError,
    open_page,
    read_login,
)
from reconciler.model import Message, compose, escaped, name_part
from reconciler.workflows import is_prometheus, metric_rules, prometheus_address

if TYPE_CHECKING:
    from reconciler.features.prometheus import MetricSeries, SeriesReader
    from reconciler.model import LabelMatcher, MetricServer
    from reconciler.traffic import ClientNames, TrafficMapping

WINDOW_S: Final = 300
"""How much of the past is read: for trends, and since when a broker throttles."""
_SHORTEST_WINDOW_S: Final = 60
_SHOWN: Final = 3
_LONGEST: Final = 300
_UNNUMBERED: Final = 900_000_000
"""Added to the place of an exporter without a broker id, which then stands for the broker."""

Samples = tuple[tuple[float, float], ...]
"""(seconds since 1970, value), oldest first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SeriesSamples:
    """A series of a quota group, or of a broker."""

    series: MetricSeries
    samples: Samples


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadReading:
    """``brokers``: names of brokers that have no id. ``window_s``: how much of the past the samples can show."""

    series: Sequence[SeriesSamples]
    brokers: Mapping[int, str] = field(default_factory=dict)
    notes: tuple[Message, ...] = ()


class LoadSource(Protocol):
    """Reads anew each time."""

    def read(self) -> LoadReading:
        """The samples up to now. Raises ``TrafficError``."""
        ...

    def close(self) -> None:
        """Give connections back."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadOptions:
    """Where rates are from: what ``--traffic`` names, else the ``server`` of the Cluster manifest.

    ``match``, ``http_config`` override those of the ``server``. ``names``: clients to look up in metric names. ``read_file``
    reads the login, and refuses files of a pull request.
    """

    traffic: tuple[str, ...] = ()
    server: MetricServer | None = None
    match: tuple[LabelMatcher, ...] = ()
    http_config: Path | None = None
    mapping: TrafficMapping | None = None
    names: ClientNames | None = None
    read_file: ReadFile | None = None
    clock: Callable[[], float] = time.time

    def login(self) -> HttpLogin | None:
        """The login of ``http_config``. Raises ``FileAccessError``, ``UsageError``."""
        return read_login(self.http_config, self.read_file) if self.http_config is not None else None

    def reader(self, what: str) -> SeriesReader:
        """Reads series of ``what``. Raises ``UsageError`` for a mapping of files."""
        from reconciler.features.prometheus import SeriesReader

        return SeriesReader(self.names, metric_rules(self.mapping, what=what))


def open_load_source(options: LoadOptions) -> LoadSource:
    """The source. Raises ``UsageError`` for none, for a mixture, and for an address that is none."""
    traffic = options.traffic
    pages = [split_page(argument) for argument in traffic if is_page(argument)]
    servers = [argument for argument in traffic if is_prometheus(argument)]
    if servers:
        if len(traffic) > 1:
            raise UsageError("--traffic prometheus+... stands alone: give one source at a time")
        return _PrometheusLoad(prometheus_address(servers[0]), options)
    if options.match and traffic:
        raise UsageError("--match is for --traffic prometheus+http(s)://HOST only")
    if pages:
        if len(pages) < len(traffic):
            raise UsageError("--traffic names pages of exporters and files: give one kind at a time")
        return _PageLoad(pages, options)
    if traffic:
        raise UsageError("headroom reads a Prometheus server or pages of exporters. For files, use backtest")
    server = options.server
    if server is None:
        raise UsageError("No traffic is given. Pass --traffic, or PATH of a Cluster manifest that has spec.traffic")
    login = Path(server.http_config) if server.http_config else None
    return _PrometheusLoad(
        server.address, replace(options, match=options.match or server.match, http_config=options.http_config or login)
    )


def is_page(argument: str) -> bool:
    """Whether a ``--traffic`` argument names the page of an exporter, with or without a broker before it."""
    return argument.partition("=")[2].startswith(PAGE_PREFIX) or argument.startswith(PAGE_PREFIX)


def split_page(argument: str) -> tuple[int | None, str]:
    """Broker and address of ``[BROKER=]metrics+http://HOST:PORT/metrics``."""
    if argument.startswith(PAGE_PREFIX):
        return None, argument.removeprefix(PAGE_PREFIX)
    broker, _, address = argument.partition("=")
    if not (broker.isascii() and broker.isdigit() and len(broker) < 10):
        raise UsageError(f"--traffic {argument!r} begins with no broker id: write BROKER=metrics+http://HOST:PORT/metrics")
    return int(broker), address.removeprefix(PAGE_PREFIX)


class _Series:
    """Series by their labels; a broker without an id gets its exporter's address as name."""

    def __init__(self, reader: SeriesReader) -> None:
        self._reader = reader
        self._read: dict[tuple[tuple[str, str], ...], MetricSeries | None] = {}
        self.brokers: dict[int, str] = {}
        self._places: dict[str, int] = {}

    def of(self, labels: Mapping[str, str]) -> MetricSeries | str | None:
        """The series, why it has no client, or ``None`` for a series of other sensors."""
        key = tuple(labels.items())
        if key in self._read:
            return self._read[key]
        series = self._attributed(labels)
        # A name that is learned later may explain a series.
        if not isinstance(series, str):
            self._read[key] = series
        return series

    def _attributed(self, labels: Mapping[str, str]) -> MetricSeries | str | None:
        from reconciler.features.prometheus import Unattributed

        series = self._reader.read(labels)
        if series is Unattributed.NO_BROKER and (place := labels.get("instance") or labels.get("pod")):
            number = self._places.setdefault(place, _UNNUMBERED + len(self._places))
            self.brokers[number] = place
            series = self._reader.read({**labels, "broker": str(number)})
        return series.value if isinstance(series, Unattributed) else series


def _notes(reasons: Counter[str]) -> Iterator[Message]:
    if count := reasons["name-only"] + reasons["shared-name"]:
        yield compose(
            "The clients of {count} series are not known: the exporter left their names in the metric name only. "
            "kafka-quotas doctor prints the repair.",
            count=count,
        )
    if count := reasons["no-broker"]:
        yield compose("{count} series name neither broker nor instance.", count=count)


def _partial(warnings: Sequence[str]) -> Iterator[Message]:
    if warnings:
        shown = name_part(", ".join(escaped(text) for text in warnings[:_SHOWN])[:_LONGEST])
        yield compose("The server warns that its answer is incomplete: {warnings}. Quota groups may be missing.", warnings=shown)


class _PrometheusLoad:
    def __init__(self, address: str, options: LoadOptions) -> None:
        from reconciler.features.prometheus import AnswerReader, selector_of

        reader = options.reader("a Prometheus server")
        self._api, self._clock = PrometheusApi(address, options.login()), options.clock
        self._series = _Series(reader)
        self._answers = AnswerReader(reader)
        self._selector = selector_of(reader.rules, options.match)

    def read(self) -> LoadReading:
        from reconciler.features.prometheus import ForeignAnswerError, Unattributed, read_answer

        series_samples: list[SeriesSamples] = []
        reasons: Counter[str] = Counter()
        try:
            answer = read_answer(self._answer(), self._answers)
            for answered in answer.samples:
                series = self._series.of(answered.labels) if answered.read is Unattributed.NO_BROKER else answered.read
                if isinstance(series, str):
                    reasons[series] += 1
                elif series is not None:
                    series_samples.append(SeriesSamples(series=series, samples=answered.samples))
        except ForeignAnswerError as error:
            raise self._api.foreign(str(error)) from error
        notes = (*_partial(answer.warnings), *_notes(reasons))
        return LoadReading(series=series_samples, brokers=self._series.brokers, notes=notes)

    def _answer(self) -> bytes:
        """Of as much of the window as the server gives at once."""
        end_s = self._clock()
        for length_s in (WINDOW_S, WINDOW_S // 2):
            try:
                return self._api.range_samples(self._selector, end_s=end_s, length_s=length_s)
            except TooManySamplesError:
                continue
        return self._api.range_samples(self._selector, end_s=end_s, length_s=_SHORTEST_WINDOW_S)

    def close(self) -> None:
        self._api.close()


class _PageLoad:
    def __init__(self, pages: Sequence[tuple[int | None, str]], options: LoadOptions) -> None:
        reader, login = options.reader("an exporter"), options.login()
        self._pages = [
            open_page(address, broker, rules=reader.rules, login=login, clock=options.clock) for broker, address in pages
        ]
        self._series = _Series(reader)
        self._kept: dict[MetricSeries, list[tuple[float, float]]] = {}

    def read(self) -> LoadReading:
        """Every page; one that does not answer is named, and the others count.

        Raises ``TrafficError`` when none answers, or all are those of another program.
        """
        from reconciler.features.prometheus import foreign_page

        reasons: Counter[str] = Counter()
        errors: list[TrafficError] = []
        foreign: list[Message] = []
        newest = 0.0
        for page in self._pages:
            try:
                read = page.read()
            except TrafficError as error:
                errors.append(error)
                continue
            newest = max(newest, read.at_s)
            if not read.samples and (message := foreign_page(page.address, read.others)) is not None:
                foreign.append(message)
            for labelled, value in read.samples:
                series = self._series.of(labelled.labels)
                if isinstance(series, str):
                    reasons[series] += 1
                elif series is not None:
                    self._kept.setdefault(series, []).append((read.at_s, value))
        if len(errors) == len(self._pages):
            raise errors[0]
        if len(errors) + len(foreign) == len(self._pages):
            raise TrafficError(foreign[0])
        self._forget(newest - WINDOW_S)
        notes = (*(compose("{problem}", problem=str(error)) for error in errors), *foreign, *_notes(reasons))
        series_samples = [SeriesSamples(series=series, samples=tuple(samples)) for series, samples in self._kept.items()]
        return LoadReading(series=series_samples, brokers=self._series.brokers, notes=notes)

    def close(self) -> None:
        for page in self._pages:
            page.close()

    def _forget(self, before_s: float) -> None:
        for series in [series for series, samples in self._kept.items() if samples[-1][0] <= before_s]:
            del self._kept[series]
        for samples in self._kept.values():
            while samples[0][0] <= before_s:
                del samples[0]


def merge_series(series: Iterable[SeriesSamples]) -> list[SeriesSamples]:
    """One of each series: two exporters of one broker show the same, and the larger value of a moment counts."""
    merged: dict[MetricSeries, SeriesSamples] = {}
    for samples in series:
        other = merged.get(samples.series)
        if other is None:
            merged[samples.series] = samples
        else:
            values = dict(other.samples)
            values.update((at, max(value, values.get(at, value))) for at, value in samples.samples)
            merged[samples.series] = replace(other, samples=tuple(sorted(values.items())))
    return list(merged.values())
