"""What a metrics server shows of each exporter: series, scrape times and gaps, collected page by page."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from reconciler.features.prometheus.metric_answers import AnswerReader, Floats, samples_of
from reconciler.features.prometheus.metric_layouts import Layout, MetricSeries, Unattributed, layout_of, read_series
from reconciler.traffic import Integers, MetricRule

_TARGET_LABELS: Final = ("job", "instance", "pod", "kubernetes_pod_name", "namespace", "cluster")
_GAP_FACTOR: Final = 2.5
"""As many intervals without a sample are a gap: one failed scrape is."""

TargetKey = tuple[str, ...]
"""Values of ``_TARGET_LABELS``."""


@dataclass(slots=True)
class ScrapeTarget:
    """One exporter. Times are milliseconds since 1970."""

    labels: Mapping[str, str]
    brokers: set[int] = field(default_factory=set)
    keys: set[MetricSeries] = field(default_factory=set)
    """The series of clients, and the queue sizes."""
    names: set[tuple[tuple[str, str], ...]] = field(default_factory=set)
    layouts: Counter[Layout] = field(default_factory=Counter)
    scrapes: list[Integers] = field(default_factory=list)
    up: list[Integers] = field(default_factory=list)
    """Scrapes that succeeded."""
    is_scraped: bool = False
    """Whether the server has its series ``up``, of successes or failures."""

    @property
    def name(self) -> str:
        """The name that people know: its instance, else its pod."""
        return self.labels.get("instance") or self.labels.get("pod") or self.labels.get("kubernetes_pod_name") or "(no instance)"

    def scrape_times(self) -> Integers:
        """Successful scrapes, rising: those that ``up`` shows, else those of any series."""
        return _merged(self.up or self.scrapes)

    def interval_ms(self) -> int | None:
        """The usual time between scrapes, in tenths of a second."""
        times = self.scrape_times()
        return max(100, int(round(float(np.median(np.diff(times))), -2))) if len(times) > 2 else None

    def gaps(self, since_ms: int, until_ms: int) -> Iterator[tuple[int, int]]:
        """Times without a scrape within those asked for."""
        times, interval = self.scrape_times(), self.interval_ms()
        if not len(times) or interval is None:
            return
        edges = np.concatenate([[since_ms], times, [until_ms]])
        for index in np.flatnonzero(np.diff(edges) > _GAP_FACTOR * interval).tolist():
            yield int(edges[index]), int(edges[index + 1])


class MetricTargets:
    """Takes series with their samples, in any order of time, and knows what each exporter has shown."""

    def __init__(self, rules: Sequence[MetricRule] = ()) -> None:
        self._rules, self._answers = rules, AnswerReader()
        self.unattributed: dict[Unattributed, list[Mapping[str, str]]] = {}
        """The series whose client or broker is not known, by reason."""
        self.targets: dict[TargetKey, ScrapeTarget] = {}
        self.warnings: dict[str, None] = {}
        """Of a server that has left something out, each once."""

    def add_answer(self, body: bytes) -> None:
        """An answer of the server. Raises ``ForeignAnswerError``."""
        answer = self._answers.read(body)
        self.warnings |= dict.fromkeys(answer.warnings)
        for some, samples in samples_of(answer.series):
            ends = np.cumsum(samples.counts).tolist()
            for series, begin, end in zip(some, [0, *ends[:-1]], ends, strict=True):
                labels, times, values = series.label_values(), samples.ts_ms[begin:end], samples.values[begin:end]
                match labels.get("__name__"):
                    case "up":
                        self.add_up(labels, times, values)
                    case _:
                        self.add_series(labels, times)
        self._compact()

    def add_page(self, series: Iterable[Mapping[str, str]], *, at_s: float) -> None:
        """The series of an exporter's page, which was read at ``at_s``."""
        times_ms = np.asarray([round(at_s * 1000)], dtype=np.int64)
        for labels in series:
            self.add_series(labels, times_ms)

    def add_series(self, labels: Mapping[str, str], times_ms: Integers) -> None:
        """A series of clients, or one that looks like it."""
        name = tuple(sorted(labels.items()))
        series = read_series(labels, self._rules)
        if series is None:
            return
        target = self._target(labels)
        target.scrapes.append(times_ms)
        if name in target.names:
            return
        target.names.add(name)
        if (layout := layout_of(labels, self._rules)) is not None:
            target.layouts[layout] += 1
        if isinstance(series, MetricSeries):
            target.keys.add(series)
            target.brokers.add(series.broker)
        else:
            self.unattributed.setdefault(series, []).append(labels)

    def add_up(self, labels: Mapping[str, str], times_ms: Integers, values: Floats) -> None:
        """The server's own series ``up`` of a target."""
        target = self._target(labels)
        target.up.append(times_ms[values > 0])
        target.is_scraped = True

    def _compact(self) -> None:
        """Merge the times of a page, so that memory does not grow with the number of series."""
        for target in self.targets.values():
            target.scrapes = [_merged(target.scrapes)] if target.scrapes else []

    def _target(self, labels: Mapping[str, str]) -> ScrapeTarget:
        key = tuple(labels.get(label, "") for label in _TARGET_LABELS)
        if key not in self.targets:
            self.targets[key] = ScrapeTarget(labels={label: labels[label] for label in _TARGET_LABELS if labels.get(label)})
        return self.targets[key]


def _merged(times: list[Integers]) -> Integers:
    return np.unique(np.concatenate(times)) if times else np.empty(0, dtype=np.int64)
