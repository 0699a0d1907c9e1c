"""Series that show one client on one broker twice at a time: replicas of a server, or brokers of several clusters with one id.

Of replicas one is used. Brokers of several clusters are never mixed: the reader has to choose a cluster.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from reconciler.errors import TrafficError
from reconciler.features.prometheus.metric_answers import CLUSTER_LABELS, AnsweredSeries
from reconciler.model import escaped
from reconciler.traffic import MetricSeries, is_identity_label

_REPLICA_LABELS: Final = frozenset(
    {"replica", "__replica__", "prometheus_replica", "prometheus", "receive_replica", "receive", "ruler_replica", "monitor",
     "instance", "pod", "kubernetes_pod_name", "pod_name", "pod_ip", "container", "endpoint", "node", "host", "hostname", "uid"}
)  # fmt: skip
"""They differ between two servers that scrape one broker, or between two exporters beside it."""


class SeveralClustersError(TrafficError):
    """A broker id is that of several brokers."""


@dataclass(frozen=True, slots=True)
class _Shown:
    series: AnsweredSeries
    first_s: float
    last_s: float

    def overlaps(self, other: _Shown) -> bool:
        return self.first_s <= other.last_s and other.first_s <= self.last_s


@dataclass(frozen=True, slots=True)
class Distinct:
    """Series of which no two show one client on one broker at a time. ``replicas``: how many were left out, by their broker."""

    series: tuple[AnsweredSeries, ...]
    replicas: Mapping[int, int]


def drop_replicas(series: Sequence[AnsweredSeries]) -> Distinct:
    """One of the series that show the same. Raises ``SeveralClustersError``."""
    by_key: dict[MetricSeries, list[AnsweredSeries]] = {}
    for answered in series:
        if isinstance(answered.read, MetricSeries):
            by_key.setdefault(answered.read, []).append(answered)
    _require_one_cluster(by_key)
    kept: list[AnsweredSeries] = []
    replicas: dict[int, int] = {}
    for key, same in by_key.items():
        if len(same) == 1:
            kept += same
            continue
        chosen: list[_Shown] = []
        for shown in sorted(
            (_shown(answered) for answered in same), key=lambda candidate: (-candidate.series.count, candidate.series.labels)
        ):
            twice = next((other for other in chosen if shown.overlaps(other)), None)
            if twice is None:
                chosen.append(shown)
                continue
            _require_replica(key.broker, shown.series.label_values(), twice.series.label_values())
            replicas[key.broker] = replicas.get(key.broker, 0) + 1
        kept += (choice.series for choice in sorted(chosen, key=lambda choice: choice.first_s))
    return Distinct(series=tuple(kept), replicas=replicas)


def _shown(series: AnsweredSeries) -> _Shown:
    return _Shown(series, *series.span_s())


def _require_one_cluster(by_key: Mapping[MetricSeries, Sequence[AnsweredSeries]]) -> None:
    """Brokers of several clusters need not have one client in common."""
    targets: dict[int, dict[tuple[str, ...], list[AnsweredSeries]]] = {}
    for key, same in by_key.items():
        for answered in same:
            targets.setdefault(key.broker, {}).setdefault(answered.place, []).append(answered)
    for broker, by_place in targets.items():
        if len(by_place) < 2:
            continue
        spans = [_span(same) for same in by_place.values()]
        for number, later in enumerate(spans):
            if earlier := next((span for span in spans[:number] if later.overlaps(span)), None):
                _require_replica(broker, later.series.label_values(), earlier.series.label_values(), CLUSTER_LABELS)


def _span(series: Iterable[AnsweredSeries]) -> _Shown:
    shown = [_shown(answered) for answered in series]
    return _Shown(shown[0].series, min(span.first_s for span in shown), max(span.last_s for span in shown))


def _require_replica(broker: int, first: Mapping[str, str], second: Mapping[str, str], among: Sequence[str] = ()) -> None:
    names = [name for name in among or sorted({*first, *second}) if first.get(name) != second.get(name)]
    telling = [name for name in names if name not in _REPLICA_LABELS and not is_identity_label(name)]
    if not telling:
        return
    name = min(telling, key=lambda name: CLUSTER_LABELS.index(name) if name in CLUSTER_LABELS else len(CLUSTER_LABELS))
    values = sorted({escaped(first.get(name, "")), escaped(second.get(name, ""))})
    raise SeveralClustersError(
        f'Two sources have samples of broker {broker} at the same time: their label {name} is "{values[0]}" and '
        f'"{values[-1]}". Choose one with --match \'{name}="{values[-1]}"\''
    )
