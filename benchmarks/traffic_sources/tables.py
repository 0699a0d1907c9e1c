"""The tables of ``docs/traffic-sources.md``: what stands between two marks is written from the figures, the rest by people."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from benchmarks.fidelity.page import with_figures
from benchmarks.fidelity.tables import Table
from benchmarks.traffic_sources.figures import ErrorFigure, Figures, default_margin
from benchmarks.traffic_sources.judged import SHARES
from benchmarks.traffic_sources.simulated import COUNTER, GAUGE, HISTORIES_S, INTERVALS_S, MarginFigure

_FAMILIES: Final = {
    "steady": "synthetic, steady",
    "diurnal": "synthetic, by day and night",
    "bursty": "synthetic, bursty",
    "cache": "production cache",
    "disk": "disk of a virtual machine",
    "real, steady": "real broker, steady",
    "real, diurnal": "real broker, swinging",
    "real, bursty": "real broker, bursty",
}
_SOURCES: Final = {GAUGE: "gauge", COUNTER: "difference of a counter"}
_VERDICTS: Final = ("throttled", "possible", "clear", "inconclusive")
_MOST: Final = 100.0
"""A larger margin is no margin."""
_DAY_S: Final = 86_400


def write_page(page: Path, figures: Figures) -> None:
    """Replace the figures of a page that has the marks."""
    text = page.read_text(encoding="utf-8")
    page.write_text(page_text(text, figures), encoding="utf-8")


def page_text(text: str, figures: Figures) -> str:
    """The page with these figures."""
    return with_figures(text, list(tables(figures)), about=f"{figures.about}, `{figures.command}`")


def tables(figures: Figures) -> Iterator[Table]:
    """All of them, in the order of the page."""
    real = figures.real
    yield Table(
        title=f"Verdicts on {real['judged']:.0f} real runs of {real['seconds'] / 60:.0f} minutes",
        columns=("source", "limit", "groups", "throttled", *(f"verdict *{name}*" for name in _VERDICTS), "wrong"),
        rows=tuple(_verdict_rows(figures)),
    )
    yield Table(
        title="Peaks and recommended values of the same runs",
        columns=("source", "peak / true peak: 5 %, median, 95 %", "recommended / that of each request", "without", "unsafe"),
        rows=tuple(map(_error_row, figures.errors)),
    )
    yield Table(
        title="Default margins: the upper end of the interval, of the traffic that needs most",
        columns=("source", "history of at least", *(f"every {every_s} s" for every_s in INTERVALS_S)),
        rows=tuple(_default_rows(figures)),
    )
    for source, name in _SOURCES.items():
        yield Table(
            title=f"Margins: the factor that makes the highest {name} safe in 99 % of runs",
            columns=("traffic", "history", "groups", *(f"every {every_s} s" for every_s in INTERVALS_S)),
            rows=tuple(_margin_rows([one for one in figures.margins if one.source == source])),
        )
    yield Table(
        title="Throttled quota groups that gauges find, by how far the highest rate is above the limit",
        columns=("traffic", "history", "every", *(f"limit {share:.0%}: proven / above" for share in SHARES[:-1]), "false"),
        rows=tuple(_found_rows([one for one in figures.margins if one.source == GAUGE])),
    )
    yield Table(
        title=f"Throttles that brokers imposed in {real['runs']:.0f} runs, on {real['throttled']:,.0f} requests",
        columns=("signal", "every", "groups found", "episodes found", "samples", "false alarms"),
        rows=tuple(_signal_rows(figures)),
    )
    yield Table(
        title="Real gauges beside simulated ones",
        columns=("every", "samples", "equal", "deviation: median, 95 %", "deviation of the highest: median, 95 %"),
        rows=tuple(
            (
                f"{one.every_s} s", f"{one.samples:,}", f"{one.equal:.0%}", f"{one.deviation_p50:.2%}, {one.deviation_p95:.1%}",
                f"{one.highest_median:.2%}, {one.highest_p95:.1%}",
            )
            for one in figures.models
        ),
    )  # fmt: skip


def _verdict_rows(figures: Figures) -> Iterator[tuple[str, ...]]:
    for one in figures.verdicts:
        counts = (str(one.verdicts.get(name, 0)) for name in _VERDICTS)
        yield one.source, f"{one.share:.0%} of the peak", str(one.groups), str(one.throttled), *counts, str(one.wrong)


def _error_row(one: ErrorFigure) -> tuple[str, ...]:
    advised = "-" if one.recommended is None else _spread(one.recommended)
    return one.source, _spread(one.peak), advised, str(one.without), "-" if one.unsafe is None else f"{one.unsafe:.1%}"


def _spread(three: Sequence[float]) -> str:
    return ", ".join(f"{value:.2f}" for value in three)


def _margin_rows(some: Sequence[MarginFigure]) -> Iterator[tuple[str, ...]]:
    for family, name in _FAMILIES.items():
        for history_s in sorted({one.history_s for one in some if one.family == family}):
            row = {one.every_s: one for one in some if (one.family, one.history_s) == (family, history_s)}
            groups = str(next(iter(row.values())).groups)
            yield name, _long(history_s), groups, *(_margin(row[every_s]) for every_s in INTERVALS_S)


def _default_rows(figures: Figures) -> Iterator[tuple[str, ...]]:
    for source, name in _SOURCES.items():
        for history_s in reversed(HISTORIES_S):
            factors = (_factor(default_margin(figures, source, every_s, history_s)) for every_s in INTERVALS_S)
            yield name, _long(history_s), *factors


def _margin(one: MarginFigure) -> str:
    return f"{_factor(one.safe)} ({_factor(one.low)} to {_factor(one.high)})"


def _factor(value: float) -> str:
    return "none" if math.isinf(value) or value > _MOST else f"{value:.2f}" if value < 10 else f"{value:.0f}"


def _found_rows(some: Sequence[MarginFigure]) -> Iterator[tuple[str, ...]]:
    for family, name in _FAMILIES.items():
        longest = max((one.history_s for one in some if one.family == family), default=0.0)
        for one in sorted(some, key=lambda one: one.every_s):
            if (one.family, one.history_s) == (family, longest):
                shares = (f"{_of(one.proven, share):.0%} / {_of(one.above, share):.0%}" for share in SHARES[:-1])
                yield name, _long(longest), f"{one.every_s} s", *shares, f"{one.false_proven} / {one.false_above or 0:.1%}"


def _of(by_share: object, share: float) -> float:
    """JSON has texts as keys."""
    assert isinstance(by_share, dict)
    return float(by_share[share] if share in by_share else by_share[str(share)])


def _signal_rows(figures: Figures) -> Iterator[tuple[str, ...]]:
    for one in sorted(figures.signals, key=lambda one: one.signal, reverse=True):
        yield (
            one.signal, f"{one.every_s} s", f"{one.groups_found} of {one.groups}", f"{one.episodes_found} of {one.episodes}",
            f"{one.samples:,}", f"{one.false_samples}",
        )  # fmt: skip


def _long(seconds: float) -> str:
    if seconds >= _DAY_S:
        return f"{seconds / _DAY_S:.0f} day"
    return f"{seconds / 3600:.1f} h".replace(".0 h", " h") if seconds >= 3600 else f"{seconds / 60:.0f} min"
