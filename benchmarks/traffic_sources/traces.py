"""Traffic to simulate gauges of: days of synthetic clients, and recordings of real systems."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow.parquet as pq

from benchmarks.traffic_sources.clients import SHAPES, Shape
from benchmarks.traffic_sources.gauges import Requests
from benchmarks.traffic_sources.packages import fetched, member
from benchmarks.traffic_sources.recordings import RECORDINGS
from reconciler.traffic.kernels.sampled_rate import Doubles

DAY_S: Final = 86_400
_BUSIEST: Final = 300
"""Of a recording, the quota groups with the most requests."""
_FEWEST: Final = 200
"""Requests of a quota group that is worth judging."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """One quota group for ``seconds``, of one ``family`` of traffic; times begin at 0."""

    family: str
    name: str
    seconds: float
    requests: Requests


def synthetic(clients: int, *, seconds: float = DAY_S) -> Iterator[Trace]:
    """So many of each shape."""
    for number_of_shape, shape in enumerate(SHAPES):
        for number in range(clients):
            chance = np.random.default_rng((number_of_shape, number))
            yield Trace(family=shape, name=f"{shape}-{number}", seconds=seconds, requests=_drawn(shape, seconds, chance))


def recorded(folder: Path) -> Iterator[Trace]:
    """The cache and the disk; packages are kept in ``folder`` while the program runs."""
    for family in ("cache", "disk"):
        recording = RECORDINGS[family]
        package = fetched(recording.package, recording.version, folder)
        raw = member(package, recording.ending, folder / Path(recording.ending).name)
        file = folder / f"{family}.parquet"
        recording.make(raw, file)
        raw.unlink()
        yield from _groups(family, file)


def _groups(family: str, file: Path) -> Iterator[Trace]:
    table = pq.read_table(file, columns=["ts", "kind", "user", "client_id", "amount"])
    times_ms = np.asarray(table["ts"].cast("int64")) // 1000
    times_ms -= times_ms.min()
    names = [np.asarray(table[column].cast("string").combine_chunks().dictionary_encode().indices) for column in ("kind", "user")]
    group = names[0].astype(np.int64) * (names[1].max() + 1) + names[1]
    amounts = np.asarray(table["amount"]).astype(np.float64)
    numbers, counts = np.unique(group, return_counts=True)
    busiest = numbers[np.argsort(-counts)][:_BUSIEST]
    order = np.lexsort((times_ms, group))
    borders = np.searchsorted(group[order], [busiest, busiest + 1]).T.tolist()
    for number, (low, high) in zip(busiest.tolist(), borders, strict=True):
        own = order[low:high]
        if len(own) >= _FEWEST:
            yield Trace(
                family=family,
                name=f"{family}-{number}",
                seconds=float(times_ms.max()) / 1000,
                requests=Requests(times_ms[own], amounts[own]),
            )


def _drawn(shape: Shape, seconds: float, chance: np.random.Generator) -> Requests:
    rate = np.exp(chance.uniform(np.log(0.2), np.log(4.0)))
    size = np.exp(chance.uniform(np.log(600), np.log(60_000)))
    draw: Callable[[], Doubles] = {
        "steady": lambda: _poisson(rate, 0.0, seconds, chance),
        "diurnal": lambda: _swinging(rate, seconds, chance),
        "bursty": lambda: _bursts(rate, seconds, chance),
    }[shape]
    times = np.sort(draw())
    sizes = np.ceil(chance.exponential(size, len(times)) + 100)
    return Requests((times * 1000).astype(np.int64), sizes)


def _poisson(rate: float, begin: float, end: float, chance: np.random.Generator) -> Doubles:
    return chance.uniform(begin, end, chance.poisson(rate * max(0.0, end - begin)))


def _swinging(rate: float, seconds: float, chance: np.random.Generator) -> Doubles:
    """High and low once a day."""
    times = _poisson(1.9 * rate, 0.0, seconds, chance)
    height = (1 + 0.9 * np.sin(2 * np.pi * times / DAY_S + chance.uniform(0, 2 * np.pi))) / 1.9
    return times[chance.uniform(size=len(times)) < height]


def _bursts(rate: float, seconds: float, chance: np.random.Generator) -> Doubles:
    """A fifth of the requests at any time; the others in bursts of 1 to 60 s, every 20 s to an hour."""
    every_s, length_s = (np.exp(chance.uniform(np.log(low), np.log(high))) for low, high in ((20, 3600), (1, 60)))
    high = 0.8 * rate * max(1.0, every_s / length_s)
    begins = np.cumsum(chance.exponential(every_s, int(2 * seconds / every_s) + 10) + length_s)
    lengths = chance.exponential(length_s, len(begins))
    ends = np.minimum(begins + lengths, seconds)
    parts = [_poisson(high, begin, end, chance) for begin, end in zip(begins, ends, strict=True) if begin < seconds]
    return np.concatenate([_poisson(0.2 * rate, 0.0, seconds, chance), *parts])
