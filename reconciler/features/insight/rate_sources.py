"""Where the rates of quota groups are from: a Prometheus server, or the pages of exporters, which have one sample each."""

from __future__ import annotations

import contextlib
import datetime
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from reconciler.errors import TrafficError, UsageError
from reconciler.features.prometheus import (
    ExporterPage,
    HttpLogin,
    PrometheusApi,
    TooManySamplesError,
    is_page,
    read_login,
    split_page,
    trusted_reader,
)
from reconciler.model import ClusterSpec, Message, compose, escaped, name_part
from reconciler.workflows import configured_server, configured_traffic, is_prometheus, prometheus_address

if TYPE_CHECKING:
    from reconciler.features.prometheus import Layout, MetricSeries, Unattributed
    from reconciler.model import LabelMatcher, MetricServer
    from reconciler.workflows import TrustedTree

_WINDOWS_S: Final = (300, 150, 60)
"""How much of the past is read, for trends and since when a broker throttles: as much as the server gives at once."""
_SHOWN: Final = 3
_LONGEST: Final = 300
_TARGET_LABELS: Final = ("job", "instance", "pod", "kubernetes_pod_name", "namespace", "cluster")
_UNNUMBERED: Final = 900_000_000
"""Added to the place of an exporter without a broker id, which then stands for the broker."""

Samples = tuple[tuple[float, float], ...]
"""(seconds since 1970, value), oldest first."""


@dataclass(slots=True, kw_only=True)
class RateReading:
    """Samples of the series of quota groups and brokers, joined by their labels."""

    series: dict[MetricSeries, Samples] = field(default_factory=dict)
    brokers: dict[int, str] = field(default_factory=dict)
    """Addresses of the exporters of brokers that have no id, by the number that stands for it."""
    exporters: dict[int, list[str]] = field(default_factory=dict)
    """By broker, the targets of the server that show it."""
    layouts: Counter[Layout] = field(default_factory=Counter)
    """How many series have each layout of names."""
    unknown: dict[Unattributed, list[str]] = field(default_factory=dict)
    """By reason, series whose client or broker is not known."""
    problems: list[Message] = field(default_factory=list)
    """What was not read, and why."""
    pages: dict[str, float] = field(default_factory=dict)
    """By the address of each page that was read, when (seconds since 1970). A page that shows no client was read, too."""

    def add(
        self, labels: Mapping[str, str], read: MetricSeries | Unattributed | None, samples: Iterable[tuple[float, float]]
    ) -> None:
        """Two exporters of one broker show the same, and the larger value of a moment counts."""
        from reconciler.features.prometheus import Unattributed, layout_of, read_series, series_text

        if (layout := layout_of(labels)) is not None:
            self.layouts[layout] += 1
        if read is Unattributed.NO_BROKER and (place := labels.get("instance") or labels.get("pod")):
            numbers = {name: number for number, name in self.brokers.items()}
            number = numbers.get(place, _UNNUMBERED + len(numbers))
            self.brokers[number] = place
            read = read_series({**labels, "broker": str(number)})
        if isinstance(read, Unattributed):
            self.unknown.setdefault(read, []).append(series_text(labels))
        elif read is not None:
            target = ", ".join(f"{name}={labels[name]}" for name in _TARGET_LABELS if labels.get(name))
            targets = self.exporters.setdefault(read.broker, [])
            if target not in targets:
                targets.append(target)
            values = dict(self.series.get(read, ()))
            values.update((at, max(value, values.get(at, value))) for at, value in samples)
            if values:
                self.series[read] = tuple(sorted(values.items()))

    @property
    def notes(self) -> tuple[Message, ...]:
        """Sentences about what is not shown, and why."""
        return (*self.problems, *self._unknown_notes())

    def _unknown_notes(self) -> Iterator[Message]:
        if count := sum(len(series) for reason, series in self.unknown.items() if reason.value != "no-broker"):
            yield compose(
                "The clients of {count} series are not known: the exporter left their names in the metric name only. "
                "kafka-quotas doctor prints the repair.",
                count=count,
            )
        if count := sum(len(series) for reason, series in self.unknown.items() if reason.value == "no-broker"):
            yield compose("{count} series name neither broker nor instance.", count=count)


@dataclass(frozen=True, slots=True, kw_only=True)
class RateRequest:
    """Which rates to read: what ``traffic`` names, else those of the ``server`` of the Cluster manifest.

    ``match``, ``http_config`` override those of the ``server``.
    """

    traffic: tuple[str, ...] = ()
    server: MetricServer | None = None
    match: tuple[LabelMatcher, ...] = ()
    http_config: Path | None = None
    spec: ClusterSpec = field(default_factory=ClusterSpec)
    """The Cluster manifest, for the brokers that recorded traffic is of."""
    trusted: TrustedTree | None = None
    since: datetime.datetime | None = None
    """From when on recorded traffic is read. ``None``: its last minute."""

    @property
    def is_recorded(self) -> bool:
        """Whether the traffic is in files."""
        return bool(self.traffic) and not any(is_page(argument) or is_prometheus(argument) for argument in self.traffic)

    def login(self) -> HttpLogin | None:
        """The login of ``http_config``, whose files no pull request brings. Raises ``FileAccessError``, ``UsageError``."""
        return read_login(self.http_config, trusted_reader(self.trusted)) if self.http_config is not None else None


def configured_rates(spec: ClusterSpec, trusted: TrustedTree | None) -> RateRequest:
    """The rates that ``spec.traffic`` of the Cluster manifest names. Raises ``GitError`` and ``FileAccessError``."""
    traffic, server = configured_traffic(spec, trusted), configured_server(spec, trusted)
    return RateRequest(traffic=traffic, server=server, spec=spec, trusted=trusted)


def read_rates(request: RateRequest) -> RateReading:
    """The samples up to now.

    Raises ``UsageError`` for no source, for a mixture, and for an address that is none, and ``TrafficError`` for one that cannot
    be read.
    """
    from reconciler.traffic import require_arrow

    require_arrow()
    traffic = request.traffic
    pages = [split_page(argument) for argument in traffic if is_page(argument)]
    servers = [argument for argument in traffic if is_prometheus(argument)]
    if servers:
        if len(traffic) > 1:
            raise UsageError("--traffic prometheus+... stands alone: give one source at a time")
        return _read_server(prometheus_address(servers[0]), request)
    if request.match and traffic:
        raise UsageError("--match is for --traffic prometheus+http(s)://HOST only")
    if pages:
        if len(pages) < len(traffic):
            raise UsageError("--traffic names pages of exporters and files: give one kind at a time")
        return _read_pages(pages, request)
    if traffic:
        raise UsageError("Rates are read from a Prometheus server or pages of exporters. For files, use backtest")
    server = request.server
    if server is None:
        raise UsageError("No traffic is given. Pass --traffic, or PATH of a Cluster manifest that has spec.traffic")
    login = Path(server.http_config) if server.http_config else None
    request = replace(request, match=request.match or server.match, http_config=request.http_config or login)
    return _read_server(server.address, request)


def _read_server(address: str, request: RateRequest) -> RateReading:
    from reconciler.features.prometheus import AnswerReader, ForeignAnswerError, selector_of, timed_values

    reading = RateReading()
    api = PrometheusApi(address, request.login())
    try:
        answer = AnswerReader().read(_newest(api, selector_of(request.match)))
        for answered, samples in timed_values(answer):
            reading.add(answered.label_values(), answered.read, samples)
        if answer.warnings:
            shown = name_part(", ".join(escaped(text) for text in answer.warnings[:_SHOWN])[:_LONGEST])
            partial = "The server warns that its answer is incomplete: {warnings}. Quota groups may be missing."
            reading.problems.append(compose(partial, warnings=shown))
    except ForeignAnswerError as error:
        raise api.foreign(str(error)) from error
    finally:
        api.close()
    return reading


def _newest(api: PrometheusApi, selector: str) -> bytes:
    end_s = time.time()
    for length_s in _WINDOWS_S[:-1]:
        try:
            return api.range_samples(selector, end_s=end_s, length_s=length_s)
        except TooManySamplesError:
            continue
    return api.range_samples(selector, end_s=end_s, length_s=_WINDOWS_S[-1])


def _read_pages(pages: Sequence[tuple[int | None, str]], request: RateRequest) -> RateReading:
    """Every page; one that does not answer is named, and the others count.

    Raises ``TrafficError`` when none answers, or all are those of another program.
    """
    from reconciler.features.prometheus import foreign_page, read_series

    reading, login = RateReading(), request.login()
    errors: list[TrafficError] = []
    foreign: list[Message] = []
    for page in [ExporterPage(address, broker, login=login) for broker, address in pages]:
        try:
            read = page.read()
        except TrafficError as error:
            errors.append(error)
            continue
        finally:
            page.close()
        if not read.samples and (message := foreign_page(page.address, read.others)) is not None:
            foreign.append(message)
            continue
        reading.pages[page.address] = read.at_s
        for labelled, value in read.samples:
            reading.add(labelled.labels, read_series(labelled.labels), ((read.at_s, value),))
    if len(errors) == len(pages):
        raise errors[0]
    if len(errors) + len(foreign) == len(pages):
        raise TrafficError(foreign[0])
    reading.problems += [*(compose("{problem}", problem=str(error)) for error in errors), *foreign]
    return reading


@contextlib.contextmanager
def recorded_pages(traffic: Sequence[str], *, http_config: Path | None) -> Iterator[str]:
    """Yield a folder with what the pages of exporters show now, as recorded samples. It is removed at the end.

    Raises ``UsageError`` for a mixture and for a page without a broker, ``FileAccessError`` and ``TrafficError``.
    """
    from reconciler.features.prometheus import PageColumns, RecordedFolder, exporter_targets

    login = read_login(http_config, None) if http_config is not None else None
    scrapes = []
    for target in exporter_targets(traffic):
        page = ExporterPage(target.address, target.broker, login=login)
        try:
            read = page.read()
        finally:
            page.close()
        scrapes.append(PageColumns().rows(read.samples, at_s=read.at_s, monotonic_s=time.monotonic()))
    with tempfile.TemporaryDirectory(prefix="kafka-quotas-pages-") as folder:
        RecordedFolder(Path(folder)).write(scrapes)
        yield folder
