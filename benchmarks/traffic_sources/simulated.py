"""Gauges and counters of many traces at many phases of scraping: how far their highest value is below the highest rate.

A run is one quota group for one length of history at one phase, drawn evenly from the interval. Its ratio is the highest rate of
a request, divided by the highest value that was scraped.
"""

from __future__ import annotations

import gzip
import itertools
import json
import zlib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeAlias

import numpy as np

from benchmarks.traffic_sources.traces import Trace
from reconciler.traffic.kernels.sampled_rate import Doubles

INTERVALS_S: Final = (5, 15, 30, 60)
GAUGE: Final = "gauge"
COUNTER: Final = "counter"
SAFE_SHARE: Final = 0.99
LONGEST_WINDOW_S: Final = 12.001
SHORTEST_WINDOW_S: Final = 10.0
HISTORIES_S: Final = (3600.0, 6 * 3600.0, 86_400.0)
_RESAMPLES: Final = 200

Place: TypeAlias = tuple[str, str, int, float]
"""Source, family, seconds between samples, seconds of history."""
Ratios: TypeAlias = Mapping[str, Sequence[float]]
"""By quota group; infinite where no sample shows the client."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MarginFigure:
    """What a highest sample has to be multiplied by. ``low`` and ``high``: 95 % interval of ``safe``, by drawing groups anew.

    ``proven`` and ``above``: shares of runs in which a limit, by its share of the highest rate, is shown to throttle by the proof
    of the backtest, and by a value above it. ``false_above``: runs with a value above the highest rate of any request. Both
    ``false`` figures are of whole traces: the first samples of a part still show requests before it.
    """

    source: str
    family: str
    every_s: int
    history_s: float
    groups: int
    runs: int
    median: float
    safe: float
    low: float
    high: float
    proven: Mapping[float, float]
    above: Mapping[float, float]
    false_proven: int | None
    false_above: float | None


def ratios(traces: Iterable[Trace], *, phases: int, lengths_s: Sequence[float] = HISTORIES_S) -> dict[Place, Ratios]:
    """Of all runs. A history as long as the trace, or longer, is all of it."""
    found: dict[Place, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for trace in traces:
        chance = np.random.default_rng(zlib.crc32(trace.name.encode()))
        peaks = _peaks(trace, lengths_s)
        for every_s in INTERVALS_S:
            for phase in chance.uniform(0, every_s, phases).tolist():
                for source, length_s, ratio in _of_phase(trace, every_s, phase, peaks):
                    found[source, trace.family, every_s, length_s][trace.name].append(ratio)
    return {**found}


def write_ratios(found: Mapping[Place, Ratios], path: Path) -> None:
    """As gzipped JSON, for ``read_ratios``."""
    with gzip.open(path, "wt", encoding="utf-8") as file:
        json.dump([[list(place), by_group] for place, by_group in found.items()], file)


def read_ratios(path: Path) -> dict[Place, Ratios]:
    """What ``write_ratios`` wrote."""
    with gzip.open(path, "rt", encoding="utf-8") as file:
        return {tuple(place): by_group for place, by_group in json.load(file)}


def margin_figure(place: Place, by_group: Ratios, shares: Sequence[float]) -> MarginFigure:
    """Of the runs of one place."""
    source, family, every_s, history_s = place
    groups = [np.asarray(some) for some in by_group.values()]
    every = np.concatenate(groups)
    chance = np.random.default_rng(1)
    drawn = [
        safe_margin(np.concatenate([groups[number] for number in chance.integers(0, len(groups), len(groups))]))
        for _ in range(_RESAMPLES)
    ]
    low, high = np.quantile(drawn, [0.025, 0.975], method="nearest").tolist()
    proof, cut = proven_share(source, every_s), history_s in HISTORIES_S[:-1]
    return MarginFigure(
        source=source,
        family=family,
        every_s=every_s,
        history_s=history_s,
        groups=len(groups),
        runs=len(every),
        median=float(np.median(every)),
        safe=safe_margin(every),
        low=low,
        high=high,
        proven={share: float(np.mean(every * share < proof)) for share in shares},
        above={share: float(np.mean(every * share < 1)) for share in shares},
        false_proven=None if cut else int(np.sum(every < proof)),
        false_above=None if cut else float(np.mean(every < 1)),
    )


def safe_margin(some: Doubles) -> float:
    """What at least 99 % of the runs do not exceed."""
    return float(np.quantile(some, SAFE_SHARE, method="higher"))


def proven_share(source: str, every_s: float) -> float:
    """The part of a scraped value that some request's rate had for certain, as ``judging.means`` proves it."""
    if source == GAUGE:
        return SHORTEST_WINDOW_S / LONGEST_WINDOW_S
    return every_s / (every_s + LONGEST_WINDOW_S)


def _peaks(trace: Trace, lengths_s: Sequence[float]) -> dict[float, Doubles]:
    """The highest rate of each history, by the length of histories."""
    times, rates = trace.requests.times_ms, trace.requests.rates
    found = {}
    for length_s in sorted({min(length, trace.seconds) for length in lengths_s}):
        borders = np.searchsorted(times, np.arange(int(trace.seconds // length_s) + 1) * length_s * 1000).tolist()
        found[length_s] = np.asarray([rates[low:high].max(initial=0.0) for low, high in itertools.pairwise(borders)])
    return found


def _of_phase(trace: Trace, every_s: int, phase: float, peaks: Mapping[float, Doubles]) -> Iterator[tuple[str, float, float]]:
    at_ms = (np.arange(phase, trace.seconds, every_s) * 1000).astype(np.int64)
    scraped = ((GAUGE, trace.requests.gauge(at_ms), at_ms), (COUNTER, trace.requests.means(at_ms), at_ms[1:]))
    for source, values, moments in scraped:
        for length_s, highest in peaks.items():
            borders = np.searchsorted(moments, np.arange(len(highest) + 1) * length_s * 1000).tolist()
            for peak, (low, high) in zip(highest.tolist(), itertools.pairwise(borders), strict=True):
                if peak > 0:
                    yield source, length_s, ratio_of(peak, values[low:high])


def ratio_of(peak: float, values: Doubles) -> float:
    """Infinite where no sample shows the client."""
    highest = float(values.max(initial=0.0))
    return peak / highest if highest > 0 else float("inf")
