"""Where the rates of ``headroom`` are from: a Prometheus server, exporters' pages, or the end of recorded traffic.

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
from reconciler.integrations import PAGE_PREFIX, ExporterPage, HttpLogin, PrometheusApi, TooManySamplesError
from reconciler.model import Message, compose
from reconciler.workflows.prometheus_login import read_login
from reconciler.workflows.prometheus_traffic import is_prometheus, prometheus_address

if TYPE_CHECKING:
    from reconciler.traffic import MetricSeries, SeriesReader

WINDOW_S: Final = 300
"""How much of the past is read: for trends, and since when a broker throttles."""
_SHORTEST_WINDOW_S: Final = 60
_UNNUMBERED: Final = 900_000_000
"""Added to the place of an exporter without a broker id, which then stands for the broker."""

Samples = tuple[tuple[float, float], ...]
"""(seconds since 1970, value), oldest first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SeriesSamples:
    """``of_group``: user and client-id are the tags of a quota group; else of a client, which belongs to some group."""

    series: MetricSeries
    samples: Samples
    of_group: bool = True
    throttled: tuple[float, ...] = ()
    """Times at which a throttle is recorded, where no series of throttle times is."""


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


def open_load_source(
    traffic: Sequence[str],
    *,
    http_config: Path | None,
    reader: SeriesReader,
    log_timezone: str = "UTC",
    clock: Callable[[], float] = time.time,
) -> LoadSource:
    """The source that ``--traffic`` names. Raises ``UsageError`` for a mixture, and for an address that is none."""
    pages = [split_page(argument) for argument in traffic if _is_page(argument)]
    servers = [argument for argument in traffic if is_prometheus(argument)]
    login = read_login(http_config) if http_config is not None else None
    if servers:
        if len(traffic) > 1:
            raise UsageError("--traffic prometheus+... stands alone: give one source at a time")
        return _PrometheusLoad(prometheus_address(servers[0]), login, reader, clock)
    if pages:
        if len(pages) < len(traffic):
            raise UsageError("--traffic names pages of exporters and files: give one kind at a time")
        return _PageLoad(pages, login, reader, clock)
    if login is not None:
        raise UsageError("--http-config is for --traffic prometheus+http(s)://HOST and metrics+http(s)://HOST only")
    return _RecordedLoad(traffic, log_timezone)


def _is_page(argument: str) -> bool:
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
        from reconciler.traffic import Unattributed

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


class _PrometheusLoad:
    def __init__(self, address: str, login: HttpLogin | None, reader: SeriesReader, clock: Callable[[], float]) -> None:
        from reconciler.traffic import AnswerReader

        self._api, self._clock = PrometheusApi(address, login), clock
        self._series = _Series(reader)
        self._answers = AnswerReader(reader)

    def read(self) -> LoadReading:
        from reconciler.traffic import ForeignAnswerError, Unattributed, read_answer

        found: list[SeriesSamples] = []
        reasons: Counter[str] = Counter()
        try:
            for one in read_answer(self._answer(), self._answers):
                series = self._series.of(one.labels) if one.read is Unattributed.NO_BROKER else one.read
                if isinstance(series, str):
                    reasons[series] += 1
                elif series is not None:
                    found.append(SeriesSamples(series=series, samples=one.samples))
        except ForeignAnswerError as error:
            raise self._api.foreign(str(error)) from error
        return LoadReading(series=found, brokers=self._series.brokers, notes=tuple(_notes(reasons)))

    def _answer(self) -> bytes:
        """Of as much of the window as the server gives at once."""
        from reconciler.traffic import SERIES_SELECTOR

        end_s = self._clock()
        for length_s in (WINDOW_S, WINDOW_S // 2):
            try:
                return self._api.range_samples(SERIES_SELECTOR, end_s=end_s, length_s=length_s)
            except TooManySamplesError:
                continue
        return self._api.range_samples(SERIES_SELECTOR, end_s=end_s, length_s=_SHORTEST_WINDOW_S)

    def close(self) -> None:
        self._api.close()


class _PageLoad:
    def __init__(
        self,
        pages: Sequence[tuple[int | None, str]],
        login: HttpLogin | None,
        reader: SeriesReader,
        clock: Callable[[], float],
    ) -> None:
        from reconciler.traffic import SERIES_NAMES

        self._pages = [
            ExporterPage(
                address, names=SERIES_NAMES, labels={} if broker is None else {"broker": str(broker)}, login=login, clock=clock
            )
            for broker, address in pages
        ]
        self._series = _Series(reader)
        self._kept: dict[MetricSeries, list[tuple[float, float]]] = {}

    def read(self) -> LoadReading:
        """Every page; one that does not answer is named, and the others count. Raises ``TrafficError`` when none answers."""
        reasons: Counter[str] = Counter()
        errors: list[TrafficError] = []
        newest = 0.0
        for page in self._pages:
            try:
                read = page.read()
            except TrafficError as error:
                errors.append(error)
                continue
            newest = max(newest, read.at_s)
            for labelled, value in read.samples:
                series = self._series.of(labelled.labels)
                if isinstance(series, str):
                    reasons[series] += 1
                elif series is not None:
                    self._kept.setdefault(series, []).append((read.at_s, value))
        if len(errors) == len(self._pages):
            raise errors[0]
        self._forget(newest - WINDOW_S)
        notes = (*(compose("{problem}", problem=str(error)) for error in errors), *_notes(reasons))
        found = [SeriesSamples(series=one, samples=tuple(samples)) for one, samples in self._kept.items()]
        return LoadReading(series=found, brokers=self._series.brokers, notes=notes)

    def close(self) -> None:
        for page in self._pages:
            page.close()

    def _forget(self, before_s: float) -> None:
        for series in [series for series, samples in self._kept.items() if samples[-1][0] <= before_s]:
            del self._kept[series]
        for samples in self._kept.values():
            while samples[0][0] <= before_s:
                del samples[0]


class _RecordedLoad:
    def __init__(self, traffic: Sequence[str], log_timezone: str) -> None:
        self._traffic, self._log_timezone = traffic, log_timezone

    def read(self) -> LoadReading:
        from reconciler.traffic import Source, find_traffic, last_rates, read_batches, require_arrow

        require_arrow()
        traffic = find_traffic(self._traffic)
        if traffic.source is Source.CELLS:
            raise UsageError("headroom reads recorded traffic from Parquet or request logs, not from a folder of compact")
        rates = last_rates(read_batches(traffic, log_timezone=self._log_timezone, also=()))
        series = [
            SeriesSamples(series=rate.series, samples=rate.samples, of_group=rate.of_group, throttled=rate.throttled)
            for rate in rates
        ]
        return LoadReading(series=series)

    def close(self) -> None:
        """Files are closed after each read."""


def merge_series(series: Iterable[SeriesSamples]) -> list[SeriesSamples]:
    """One of each series: two exporters of one broker show the same, and the larger value of a moment counts."""
    found: dict[MetricSeries, SeriesSamples] = {}
    for one in series:
        other = found.get(one.series)
        if other is None:
            found[one.series] = one
        else:
            values = dict(other.samples)
            values.update((at, max(value, values.get(at, value))) for at, value in one.samples)
            found[one.series] = replace(other, samples=tuple(sorted(values.items())))
    return list(found.values())
