"""The gauges of real runs at every phase, from those of each second, and what the model of them computes for the same moments."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks.traffic_sources.gauges import Requests
from benchmarks.traffic_sources.judged import Group, groups, is_wide
from benchmarks.traffic_sources.real_run import Gauge, RealRun
from benchmarks.traffic_sources.simulated import GAUGE, INTERVALS_S, Place, ratio_of
from reconciler.traffic.kernels.sampled_rate import Doubles


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelFigure:
    """Real samples beside those of the model, of one job. Deviations are shares of the highest rate of the group.

    ``highest_median`` and ``highest_p95``: of the highest sample of each group, as shares of the model's.
    """

    every_s: int
    samples: int
    equal: float
    deviation_p50: float
    deviation_p95: float
    highest_median: float
    highest_p95: float


def real_ratios(runs: Sequence[RealRun]) -> dict[Place, dict[str, list[float]]]:
    """As ``simulated.ratios``, of the job that scrapes each second, at each whole second of phase."""
    found: dict[Place, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for run, group, requests, gauge in _pairs(runs, 1):
        family = f"real, {group[1].partition('-')[0]}"
        values = _values(run, gauge)[1]
        peak = float(requests.rates.max())
        for every_s in INTERVALS_S:
            by_group = found[GAUGE, family, every_s, run.seconds]
            by_group[f"{run.seed} {group}"] = [ratio_of(peak, values[phase::every_s]) for phase in range(every_s)]
    return found


def model_figure(runs: Sequence[RealRun], every_s: int) -> ModelFigure:
    """Of all quota groups that no limit throttled."""
    deviations, highest = [], []
    for run, _, requests, gauge in _pairs(runs, every_s):
        at_s, values = _values(run, gauge)
        modelled = requests.gauge((at_s * 1000).astype(np.int64))
        deviations.append(np.abs(values - modelled) / requests.rates.max())
        if modelled.max(initial=0.0) > 0:
            highest.append(abs(values.max() / modelled.max() - 1))
    every = np.concatenate(deviations)
    return ModelFigure(
        every_s=every_s,
        samples=len(every),
        equal=float(np.mean(every < 1e-3)),
        deviation_p50=float(np.quantile(every, 0.5)),
        deviation_p95=float(np.quantile(every, 0.95)),
        highest_median=float(np.quantile(highest, 0.5)),
        highest_p95=float(np.quantile(highest, 0.95)),
    )


def _pairs(runs: Sequence[RealRun], every_s: int) -> Iterator[tuple[RealRun, Group, Requests, Gauge]]:
    for run in runs:
        traffic = groups(run)
        for gauge in run.gauges:
            if (gauge.measure, gauge.every_s) == ("byte_rate", every_s) and is_wide(gauge.user):
                group = gauge.key, gauge.user, gauge.client_id
                yield run, group, traffic[group], gauge


def _values(run: RealRun, gauge: Gauge) -> tuple[Doubles, Doubles]:
    """Moments and values during the run."""
    rows = np.asarray([row for row in gauge.samples if run.started <= row[0] < run.started + run.seconds])
    return rows[:, 0], rows[:, 1]
