"""The rates of one quota group over time as inline SVG: a line for each broker, limits with labels, axes with units.

Text keeps the size of the page at every width: the curves are one drawing that is stretched, the labels beside it are others
whose places are shares of their width or height.
"""

from __future__ import annotations

import datetime
import itertools
import math
import operator
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from reconciler.model import BucketVerdict, RateSeries
from reconciler.render import html_text as text
from reconciler.text import amount, rate, short_date

MOST_LINES: Final = 6
"""Brokers that have a line; there are as many colours."""
_WIDTH: Final = 1000
_HEIGHT: Final = 200
_BINARY: Final = ((1024.0**4, "TiB/s"), (1024.0**3, "GiB/s"), (1024.0**2, "MiB/s"), (1024.0, "KiB/s"), (1.0, "B/s"))
_STEPS_S: Final = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400)
_TICKS: Final = 8
_LABEL_SHARE: Final = 10.0
"""Percent of the height that a label takes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitLine:
    """A limit in the drawing: ``style`` is ``now``, ``proposed`` or ``safe``, ``words`` its label."""

    style: str
    value: float
    words: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """The y axis: from 0 to ``top``, in ``unit`` of ``size``, with a tick at each of ``ticks``."""

    top: float
    size: float
    unit: str
    ticks: tuple[float, ...]

    def share(self, value: float) -> float:
        """Return the distance from the top, 0 to 1."""
        return 1 - value / self.top


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """The rates of a quota group on one broker. ``style``: the class of its line, the same for a broker in each figure."""

    broker: int
    style: str
    rates: RateSeries


def plot(group: Sequence[BucketVerdict], brokers: Collection[int]) -> Iterator[str]:
    """A figure of one quota group: its rows, each on a broker, of which the first ``MOST_LINES`` with rates are drawn.

    ``brokers``: all of the report; a broker has the colour of its place.
    """
    curves = sorted(_chosen(group, brokers), key=lambda curve: curve.broker)
    if not curves:
        return
    limits = limit_lines(group[0])
    peak = max(max(curve.rates.rate, default=0.0) for curve in curves)
    scale = scale_of(group[0].key, peak, [limit.value for limit in limits])
    yield '<figure class="plot">'
    yield f'<div class="axes" role="img" aria-label="{text(_described(group[0].key, curves, limits))}">'
    yield from _y_axis(scale)
    yield from _drawing(curves, limits, scale)
    yield from _limit_labels(limits, scale)
    yield from _x_axis(curves[0].rates)
    yield "</div>"
    if len(curves) > 1:
        yield f"<figcaption>{' '.join(map(_swatch, curves))}</figcaption>"
    yield "</figure>"


def _chosen(group: Sequence[BucketVerdict], brokers: Collection[int]) -> Iterator[Curve]:
    drawn = [(row.broker, row.rates) for row in group if row.rates is not None][:MOST_LINES]
    order = sorted({*brokers, *(broker for broker, _ in drawn)})
    for broker, rates in drawn:
        place = order.index(broker)
        again = " again" if place // MOST_LINES % 2 else ""
        yield Curve(broker=broker, style=f"rate b{place % MOST_LINES + 1}{again}", rates=rates)


def _swatch(curve: Curve) -> str:
    line = f'<svg class="swatch" viewBox="0 0 26 10" aria-hidden="true"><path class="{curve.style}" d="M0 5H26"/></svg>'
    return f'<span class="amount">{line} broker {curve.broker}</span>'


def limit_lines(verdict: BucketVerdict) -> tuple[LimitLine, ...]:
    """The limits now, proposed and safe, without those that are not known, and equal ones once."""
    after, safe = verdict.limits.after, verdict.advice.safe
    now = sorted(value for value in {*verdict.limits.before} - {after} if value is not None)[:2]
    values = [("now", "now", value) for value in now]
    if after is not None:
        values.append(("proposed", "proposed" if verdict.changed else "limit", after))
    if safe is not None and not verdict.recorded.censored and safe != after:
        values.append(("safe", "safe", safe))
    return tuple(
        LimitLine(style=style, value=value, words=f"{words} {amount(verdict.key, value)}".partition(" (")[0])
        for style, words, value in values
    )


def scale_of(key: str, peak: float, limits: Sequence[float]) -> Scale:
    """Round ticks up to the peak and every limit that is at most four times as high; others are only named at the top."""
    near = [value for value in limits if value <= 4 * peak]
    most = max([peak, *near], default=0.0) * 1.05 or 1.0
    size, unit = next(((size, unit) for size, unit in _BINARY if most >= size), _BINARY[-1])
    if not key.endswith("byte_rate"):
        size, unit = 1.0, rate(key, 1.0).partition(" ")[2]
    step = _round_step(most / size / 4)
    count = math.ceil(most / size / step - 1e-9)
    return Scale(top=count * step * size, size=size, unit=unit, ticks=tuple(number * step * size for number in range(count + 1)))


def _round_step(least: float) -> float:
    power = 10 ** math.floor(math.log10(least))
    return float(next(factor * power for factor in (1, 2, 2.5, 5, 10) if factor * power >= least * (1 - 1e-9)))


def _described(key: str, curves: Sequence[Curve], limits: Sequence[LimitLine]) -> str:
    parts = []
    for curve in curves:
        rates = curve.rates
        missing = len(rates.recorded) - sum(rates.recorded)
        hole = f", {100 * missing / len(rates.recorded):.0f} % of the time not recorded" if missing else ""
        recorded = (value for value, known in zip(rates.rate, rates.recorded, strict=True) if known)
        parts.append(f"broker {curve.broker} up to {rate(key, max(recorded, default=0.0))}{hole}")
    return f"Rate over time: {'; '.join(parts)}. Limits: {', '.join(line.words for line in limits) or 'none'}."


def _y_axis(scale: Scale) -> Iterator[str]:
    yield '<svg class="scale" aria-hidden="true">'
    yield f'<text class="unit" x="86%" y="-1.1em">{text(scale.unit)}</text>'
    for tick in scale.ticks:
        yield f'<text class="unit" x="86%" y="{_percent(scale.share(tick))}" dy=".32em">{tick / scale.size:g}</text>'
    yield "</svg>"


def _drawing(curves: Sequence[Curve], limits: Sequence[LimitLine], scale: Scale) -> Iterator[str]:
    yield f'<svg class="curves" viewBox="0 0 {_WIDTH} {_HEIGHT}" preserveAspectRatio="none" aria-hidden="true">'
    grid = "".join(f"M0 {_short(_HEIGHT * scale.share(tick))}H{_WIDTH}" for tick in scale.ticks)
    yield f'<path class="grid" d="{grid}"/>'
    for begin, end in _holes(curves):
        yield f'<rect class="gap" x="{_short(begin)}" y="0" width="{_short(end - begin)}" height="{_HEIGHT}"/>'
    for curve in curves:
        yield f'<path class="{curve.style}" d="{_path(curve.rates, scale)}"/>'
    for line in limits:
        if line.value <= scale.top:
            yield f'<path class="line {line.style}" d="M0 {_short(_HEIGHT * scale.share(line.value))}H{_WIDTH}"/>'
    yield "</svg>"


def _path(rates: RateSeries, scale: Scale) -> str:
    """A point in the middle of each interval; the path is lifted where nothing was recorded."""
    width, x, parts = _WIDTH / len(rates.rate), 0, []
    for recorded, intervals in itertools.groupby(zip(rates.rate, rates.recorded, strict=True), key=operator.itemgetter(1)):
        values = [value for value, _ in intervals]
        if recorded:
            heights = [_short(_HEIGHT * scale.share(value)) for value in values]
            if len(heights) == 1:
                parts.append(f"M{_short(x * width)} {heights[0]}H{_short((x + 1) * width)}")
            else:
                points = [f"{_short((x + at + 0.5) * width)} {y}" for at, y in enumerate(heights)]
                parts.append("M" + "L".join(points))
        x += len(values)
    return "".join(parts)


def _holes(curves: Sequence[Curve]) -> Iterator[tuple[float, float]]:
    """Yield the begin and end of each time without a recording of a drawn broker, from left to right."""
    missing = [not all(known) for known in zip(*(curve.rates.recorded for curve in curves), strict=False)]
    width, x = _WIDTH / max(len(missing), 1), 0
    for is_missing, run in itertools.groupby(missing):
        length = sum(1 for _ in run)
        if is_missing:
            yield x * width, (x + length) * width
        x += length


def _limit_labels(limits: Sequence[LimitLine], scale: Scale) -> Iterator[str]:
    """Each at the height of its line, or as near as the others leave room; one above the drawing stands at the top."""
    yield '<svg class="limits" aria-hidden="true">'
    order = sorted(limits, key=lambda line: -line.value)
    places = spread([100 * max(scale.share(line.value), 0.0) for line in order])
    for line, place in zip(order, places, strict=True):
        words = f"\N{UPWARDS ARROW} {line.words}" if line.value > scale.top else line.words
        yield f'<text class="{line.style}" x="0" y="{place:.1f}%" dy=".32em">{text(words)}</text>'
    yield "</svg>"


def spread(places: Sequence[float]) -> list[float]:
    """Percentages from top to bottom, moved as little as keeps labels apart and within the drawing."""
    moved: list[float] = []
    for place in places:
        moved.append(max(place, moved[-1] + _LABEL_SHARE) if moved else place)
    low = 100.0
    for at in reversed(range(len(moved))):
        moved[at] = min(moved[at], low)
        low = moved[at] - _LABEL_SHARE
    return moved


def _x_axis(rates: RateSeries) -> Iterator[str]:
    length = max(rates.step_s * len(rates.rate), 1)
    yield '<span class="zone" aria-hidden="true">UTC</span><svg class="moments" aria-hidden="true">'
    for number, (at, words) in enumerate(time_ticks(rates.start, length)):
        between = ' class="between"' if number % 2 else ""
        share = (at - rates.start).total_seconds() / length
        yield f'<text{between} x="{_percent(share)}" y="1em" text-anchor="middle">{text(words)}</text>'
    yield "</svg>"


def time_ticks(start: datetime.datetime, length_s: float) -> list[tuple[datetime.datetime, str]]:
    """Round moments of UTC within ``length_s`` seconds from ``start`` on, with their words.

    The first of a day has its date; where they are days apart, they are dates.
    """
    days = max(math.ceil(length_s / _STEPS_S[-1] / _TICKS), 1)
    step = next((seconds for seconds in _STEPS_S if length_s / seconds <= _TICKS), days * _STEPS_S[-1])
    first = math.ceil(start.timestamp() / step) * step
    moments = range(first, math.floor(start.timestamp() + length_s) + 1, step)
    ticks: list[tuple[datetime.datetime, str]] = []
    for timestamp in moments:
        moment = datetime.datetime.fromtimestamp(timestamp, datetime.UTC)
        time = "" if step >= _STEPS_S[-1] else f"{moment:%H:%M}" if step >= 60 else f"{moment:%H:%M:%S}"
        new = not ticks or ticks[-1][0].date() != moment.date()
        ticks.append((moment, f"{short_date(moment)} {time}".strip() if new else time))
    return ticks


def _percent(share: float) -> str:
    return f"{100 * share:.1f}%"


def _short(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")
