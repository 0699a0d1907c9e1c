"""All figures of the page: computed from runs, written and read as JSON."""

from __future__ import annotations

import json
import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from benchmarks.traffic_sources.judged import GAUGES, NO_VERDICT, SHARES, SOURCES, Judged
from benchmarks.traffic_sources.real_gauges import ModelFigure, model_figure, real_ratios
from benchmarks.traffic_sources.real_run import RealRun
from benchmarks.traffic_sources.signals import SignalFigure, signals
from benchmarks.traffic_sources.simulated import INTERVALS_S, MarginFigure, Place, Ratios, margin_figure

_INFINITE: Final = ("median", "safe", "low", "high")
FILE: Final = Path(__file__).with_name("figures.json")


@dataclass(frozen=True, slots=True, kw_only=True)
class VerdictFigure:
    """How many quota groups of real runs had which verdict of one source, under limits of one share of their highest rate."""

    source: str
    share: float
    groups: int
    throttled: int
    verdicts: Mapping[str, int]
    wrong: int
    """Verdicts that the truth contradicts: ``throttled`` of others, or ``clear`` of throttled ones."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorFigure:
    """Of one source in real runs: by how much its peak and its recommended value differ from those of each request.

    Low, median and high: the 5 %, 50 % and 95 % quantiles of the quotients. ``unsafe``: the share of groups whose recommended
    value is below the highest rate.
    """

    source: str
    groups: int
    peak: tuple[float, float, float]
    recommended: tuple[float, float, float] | None
    without: int
    """Groups without a recommended value."""
    unsafe: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """What the page shows."""

    about: str
    command: str
    real: Mapping[str, float]
    verdicts: tuple[VerdictFigure, ...]
    errors: tuple[ErrorFigure, ...]
    models: tuple[ModelFigure, ...]
    margins: tuple[MarginFigure, ...]
    signals: tuple[SignalFigure, ...]


def real_facts(runs: Sequence[RealRun], judged: int) -> dict[str, float]:
    """How much traffic the real runs had, and how many of them were judged."""
    return {
        "runs": len(runs),
        "judged": judged,
        "seconds": runs[0].seconds,
        "requests": sum(len(run.requests) for run in runs),
        "throttled": sum(len(run.throttled) for run in runs),
    }


def of_margins(simulated: Mapping[Place, Ratios], runs: Sequence[RealRun]) -> tuple[MarginFigure, ...]:
    """Of simulated and of real gauges."""
    found = {**simulated, **real_ratios(runs)}
    return tuple(margin_figure(place, found[place], SHARES[:-1]) for place in sorted(found))


def default_margin(figures: Figures, source: str, every_s: int, history_s: float) -> float:
    """For a history so long: the upper end of the interval, of the traffic for which it is largest."""
    return max(
        one.high for one in figures.margins if (one.source, one.every_s, one.history_s) == (source, every_s, history_s)
    )  # fmt: skip


def of_signals(runs: Sequence[RealRun]) -> tuple[SignalFigure, ...]:
    """At each interval."""
    return tuple(figure for every_s in INTERVALS_S for figure in signals(runs, every_s))


def of_models(runs: Sequence[RealRun]) -> tuple[ModelFigure, ...]:
    """At each interval."""
    return tuple(model_figure(runs, every_s) for every_s in INTERVALS_S)


def of_verdicts(rows: Sequence[Judged]) -> Iterator[VerdictFigure]:
    """By source and share."""
    for source in SOURCES:
        for share in SHARES:
            some = [row for row in rows if (row.source, row.share) == (source, share)]
            yield VerdictFigure(
                source=source,
                share=share,
                groups=len(some),
                throttled=sum(row.throttled for row in some),
                verdicts=dict(sorted(Counter(row.verdict for row in some).items())),
                wrong=sum(row.verdict == ("clear" if row.throttled else "throttled") for row in some),
            )


def of_errors(rows: Sequence[Judged]) -> Iterator[ErrorFigure]:
    """By source; what is recommended does not depend on the limit."""
    by_source: dict[str, list[Judged]] = defaultdict(list)
    for row in rows:
        if row.share == SHARES[-1] and row.verdict != NO_VERDICT:
            by_source[row.source].append(row)
    for source in (*SOURCES[1:2], *GAUGES):
        some = by_source[source]
        advised = [row for row in some if row.recommended is not None and row.true_recommended is not None]
        quotients = [row.recommended / row.true_recommended for row in advised if row.recommended and row.true_recommended]
        yield ErrorFigure(
            source=source,
            groups=len(some),
            peak=_spread([row.peak / row.true_peak for row in some if row.peak is not None]),
            recommended=_spread(quotients) if quotients else None,
            without=len(some) - len(advised),
            unsafe=sum((row.recommended or 0) < row.true_peak for row in advised) / len(advised) if advised else None,
        )


def _spread(some: Sequence[float]) -> tuple[float, float, float]:
    low, middle, high = np.quantile(some, [0.05, 0.5, 0.95]).tolist()
    return low, middle, high


def write_figures(figures: Figures, path: Path = FILE) -> None:
    """Numbers of four digits; infinite ones are null."""
    path.write_text(json.dumps(_rounded(asdict(figures)), indent=1) + "\n", encoding="utf-8")


def read_figures(path: Path = FILE) -> Figures:
    """What ``write_figures`` wrote."""
    row: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return Figures(
        about=row["about"],
        command=row["command"],
        real=row["real"],
        verdicts=tuple(VerdictFigure(**one) for one in row["verdicts"]),
        errors=tuple(ErrorFigure(**one) for one in row["errors"]),
        models=tuple(ModelFigure(**one) for one in row["models"]),
        margins=tuple(MarginFigure(**_infinite(one)) for one in row["margins"]),
        signals=tuple(SignalFigure(**one) for one in row["signals"]),
    )


def _rounded(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _rounded(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [_rounded(one) for one in value]
    if isinstance(value, float):
        return float(f"{value:.4g}") if math.isfinite(value) else None
    return value


def _infinite(row: Mapping[str, Any]) -> dict[str, Any]:
    return {name: math.inf if value is None and name in _INFINITE else value for name, value in row.items()}
