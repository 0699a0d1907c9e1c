"""What the backtest says of each source of real runs: the same clients under the same limits."""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.fidelity.rehearsal import KEY_OF
from benchmarks.traffic_sources.clients import SHAPES
from benchmarks.traffic_sources.gauges import Requests
from benchmarks.traffic_sources.real_run import RealRun
from benchmarks.traffic_sources.simulated import GAUGE, proven_share
from reconciler.model import BucketVerdict, Verdict
from reconciler.model.entity import Entity

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Group: TypeAlias = tuple[str, str, str]
"""Key, user and client-id."""

EXACT: Final = "request log, each request"
SECONDS: Final = "per-second totals"
GAUGES: Final = {f"gauges, every {every_s} s": every_s for every_s in (5, 15, 30, 60)}
NO_VERDICT: Final = "none"
SOURCES: Final = (EXACT, SECONDS, *GAUGES)
SHARES: Final = (0.5, 0.8, 0.95, 1.0)
"""Limits, as shares of the highest rate. Nothing is throttled at the last one."""
_SCALE: Final = 100
"""Amounts, samples and limits are multiplied by this: recommended values have a smallest one, which this traffic is below."""
_KIND_OF: Final = {key: kind for kind, key in KEY_OF.items()}
_Rows: TypeAlias = Mapping[Group, "BucketVerdict"]
_COLUMNS: Final = ("ts", "interval_ms", "broker", "user", "client_id", "kind", "amount", "semantics")


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """One quota group under one limit. ``throttled`` is the truth; rates are bytes a second, ``None``: the source has none."""

    seed: int
    shape: str
    source: str
    share: float
    throttled: bool
    verdict: str
    true_peak: float
    peak: float | None
    true_recommended: float | None
    recommended: float | None


def groups(run: RealRun) -> dict[Group, Requests]:
    """The requests of each quota group that no limit throttled, in order."""
    found: dict[Group, list[tuple[int, float]]] = defaultdict(list)
    for one in run.requests:
        if is_wide(one.user):
            found[one.key, one.user, one.client_id].append((int(one.at_ms), one.amount))
    return {group: _requests(sorted(rows)) for group, rows in found.items()}


def is_wide(user: str) -> bool:
    """Whether a user is one whose limit throttles nothing."""
    return user.startswith(SHAPES)


def judge(spark: SparkSession, some: Sequence[RealRun], folder: Path) -> Iterator[Judged]:
    """All groups, sources and limits of all runs, in one backtest of each source; files go into ``folder``.

    Each group is there once for each limit, with a user of its own. All runs begin at the same second.
    """
    folder.mkdir(parents=True, exist_ok=True)
    traffic = {(run.seed, *group): requests for run in some for group, requests in groups(run).items()}
    quotas: dict[Entity, dict[str, float]] = defaultdict(dict)
    for (seed, key, user, client_id), requests in traffic.items():
        for share in SHARES:
            quotas[Entity.of({"user": _user(seed, share, user), "client-id": client_id})][key] = _limit(requests, share)
    found = {}
    for number, source in enumerate(SOURCES):
        rows = _events(some) if source in (EXACT, SECONDS) else _samples(some, GAUGES[source])
        _write(folder / f"{number}.parquet", rows)
        found[source] = _verdicts(spark, folder / f"{number}.parquet", quotas, exact=source == EXACT)
    for seed, key, user, client_id in traffic:
        for share, source in itertools.product(SHARES, SOURCES):
            place = key, _user(seed, share, user), client_id
            truth, row = found[EXACT][place], found[source].get(place)
            yield Judged(
                seed=seed,
                shape=user.partition("-")[0],
                source=source,
                share=share,
                throttled=truth.verdict is Verdict.THROTTLED,
                verdict=NO_VERDICT if row is None else row.verdict.value,
                true_peak=truth.peak.rate,
                peak=_highest(source, row),
                true_recommended=truth.advice.recommended,
                recommended=None if row is None else row.advice.recommended,
            )


def _user(seed: int, share: float, user: str) -> str:
    return f"{seed}-{share}-{user}"


def _highest(source: str, row: BucketVerdict | None) -> float | None:
    """Of gauges the highest sample, of which the peak is the part that it proves."""
    if row is None:
        return None
    return row.peak.rate / proven_share(GAUGE, GAUGES[source]) if source in GAUGES else row.peak.rate


def _limit(requests: Requests, share: float) -> float:
    peak = float(requests.rates.max()) * _SCALE
    return float(math.ceil(peak) if share == 1.0 else max(1, math.floor(peak * share)))


def _verdicts(spark: SparkSession, file: Path, quotas: Mapping[Entity, Mapping[str, float]], *, exact: bool) -> _Rows:
    from reconciler.traffic import Backtest, BacktestRequest, find_traffic, open_traffic

    recorded = open_traffic(find_traffic([str(file)]), lambda: spark)
    try:
        report = Backtest(recorded, BacktestRequest(current=None, proposed=quotas, declared=quotas, exact=exact)).report()
    finally:
        recorded.close()
    return {(one.key, one.name.user, one.name.client_id): one for one in report.verdicts}


def _requests(rows: list[tuple[int, float]]) -> Requests:
    times, amounts = zip(*rows, strict=True)
    return Requests(np.asarray(times, dtype=np.int64), np.asarray(amounts, dtype=np.float64))


def _events(some: Sequence[RealRun]) -> Iterator[tuple[object, ...]]:
    for run in some:
        moved_ms = int((some[0].started - run.started) * 1000)
        for (key, user, client_id), requests in groups(run).items():
            for at_ms, amount in zip(requests.times_ms.tolist(), requests.amounts.tolist(), strict=True):
                for share in SHARES:
                    at_us = (at_ms + moved_ms) * 1000
                    yield at_us, 0, 1, _user(run.seed, share, user), client_id, _KIND_OF[key], int(amount) * _SCALE, "event"


def _samples(some: Sequence[RealRun], every_s: int) -> Iterator[tuple[object, ...]]:
    for run in some:
        for gauge in run.gauges:
            if gauge.measure != "byte_rate" or gauge.every_s != every_s or not is_wide(gauge.user):
                continue
            for at_s, value in gauge.samples:
                for share in SHARES:
                    at_us = round((at_s + some[0].started - run.started) * 1e6)
                    user = _user(run.seed, share, gauge.user)
                    yield at_us, 0, 1, user, gauge.client_id, _KIND_OF[gauge.key], int(value * _SCALE), "gauge"


def _write(file: Path, rows: Iterable[tuple[object, ...]]) -> None:
    columns = list(zip(*sorted(rows, key=itemgetter(0)), strict=True))
    types = (pa.timestamp("us", tz="UTC"), pa.int32(), pa.int32(), pa.string(), pa.string(), pa.string(), pa.int64(), pa.string())
    arrays = [pa.array(column, type=kind) for column, kind in zip(columns, types, strict=True)]
    pq.write_table(pa.table(dict(zip(_COLUMNS, arrays, strict=True))), file)
