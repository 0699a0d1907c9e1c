"""Hours of made-up gauges in the form in which samples of a metrics server are stored, written by arrays."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt

from reconciler.features.prometheus.metric_layouts import MetricSeries
from reconciler.features.prometheus.sample_pages import (
    UNKNOWN,
    SampledClients,
    SampleRows,
    SampleTotals,
    open_samples,
    sample_table,
)
from reconciler.traffic.kinds import Kind

_HOUR_S: Final = 3600


def gauge_clients(brokers: int, series: int) -> list[MetricSeries]:
    """So many producing clients of each broker."""
    return [
        MetricSeries(broker=broker, kind=Kind.PRODUCE, user=f"user-{number % 200}", client_id=f"app-{number}")
        for broker in range(brokers)
        for number in range(series)
    ]


def write_hour(
    file: Path,
    clients: Sequence[MetricSeries],
    rates: npt.NDArray[np.int64],
    *,
    start_s: int,
    step_s: int,
    has_totals: bool = True,
) -> None:
    """One file; ``rates`` has a row for each client and a column for each sample. ``has_totals``: in its footer."""
    steps = rates.shape[1]
    at_us = (start_s + step_s * np.arange(1, steps + 1, dtype=np.int64)) * 1_000_000
    rows = SampleRows(
        ts_us=np.tile(at_us, len(clients)),
        interval_ms=np.full(rates.size, step_s * 1000),
        clients=np.repeat(np.arange(len(clients)), steps),
        amounts=rates.ravel(),
        throttled=np.full(rates.size, UNKNOWN),
    )
    totals = SampleTotals()
    with open_samples(file) as written:
        written.write_table(sample_table(rows, SampledClients(clients)), row_group_size=1 << 20)
        if has_totals:
            totals.add(rows, SampledClients(clients))
            written.add_key_value_metadata(totals.metadata())


def random_rates(rng: np.random.Generator, most: npt.NDArray[np.float64], steps: int = _HOUR_S // 15) -> npt.NDArray[np.int64]:
    """Of clients that are idle for a third of the time; ``most``: what the rates of each stay below."""
    rates = rng.random((len(most), steps)) * most[:, None]
    rates[rng.random(rates.shape) < 0.3] = 0
    return rates.astype(np.int64)
