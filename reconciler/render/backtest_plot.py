"""A bucket's rate against its limits over time as inline SVG: shapes only, all words are HTML beside it.

So the drawing can be as wide as a telephone or a sheet of paper without its text becoming too small to read. What is over is
told by place and pattern too, never by colour alone.
"""

from __future__ import annotations

import datetime
import itertools
import operator
from collections.abc import Iterator, Sequence
from typing import Final

from reconciler.model import BucketVerdict, RateSeries
from reconciler.render.backtest_sentences import limit_text, title
from reconciler.render.html_page import text
from reconciler.text import rate

_WIDTH: Final = 1000
_HEIGHT: Final = 260
_STRIP: Final = 14
_PATTERN: Final = "maybe"

PLOT_STYLE: Final = """
figure.plot { break-inside: avoid; margin: .6rem 0 0; }
figure.plot svg { background: #8881; display: block; height: 11rem; width: 100%; }
figure.plot svg.strip { background: #8882; height: .9rem; margin-top: .15rem; }
figure.plot .ends { color: var(--faint); display: flex; font-size: .85rem; gap: .6rem; justify-content: space-between; }
figure.plot .ends span:last-child { text-align: right; }
figure.plot figcaption { display: flex; flex-wrap: wrap; font-size: .85rem; gap: .1rem 1.1rem; }
figure.plot figcaption svg { background: none; display: inline-block; height: .8em; vertical-align: -.05em; width: 1.8em; }
.strip-name { color: var(--faint); font-size: .85rem; margin-top: .3rem; }
.rate { fill: none; stroke: var(--rate); stroke-width: 1.6; vector-effect: non-scaling-stroke; }
.under { fill: var(--rate); opacity: .13; }
.limit { stroke: var(--bad); stroke-width: 2; vector-effect: non-scaling-stroke; }
.earlier { stroke: var(--faint); stroke-dasharray: 6 5; stroke-width: 2; vector-effect: non-scaling-stroke; }
.over { fill: var(--bad); }
.shade { fill: var(--bad); opacity: .16; }
.possible { fill: url(#maybe); }
.gap { fill: url(#unrecorded); }
.blank { stroke: var(--faint); stroke-width: 1.5; }
.hatch { stroke: var(--warn); stroke-width: 3; }
.defs { height: 0; position: absolute; width: 0; }
:root { --rate: #1a5fb4; }
@media (prefers-color-scheme: dark) { :root { --rate: #8ab4f8; } }
@media print {
  :root { --rate: #114; }
  figure.plot svg { height: 6rem; }
  figure.plot, figure.plot * { print-color-adjust: exact; -webkit-print-color-adjust: exact; }
}
"""

DEFINITIONS: Final = (
    f'<svg class="defs" aria-hidden="true"><defs><pattern id="{_PATTERN}" width="6" height="6" patternUnits="userSpaceOnUse" '
    'patternTransform="rotate(45)"><line class="hatch" x1="0" y1="0" x2="0" y2="6"/></pattern>'
    '<pattern id="unrecorded" width="9" height="9" patternUnits="userSpaceOnUse" patternTransform="rotate(-45)">'
    '<line class="blank" x1="0" y1="0" x2="0" y2="9"/></pattern></defs></svg>'
)
"""Once a page: what is drawn as possible is hatched."""


def plot(verdict: BucketVerdict, rates: RateSeries) -> Iterator[str]:
    """A figure: the rate with both limits, below it when it was over, before and after, and what the lines mean."""
    top = _top(verdict, rates)
    limits = [limit for limit in {*verdict.limits_before} if limit is not None and limit != verdict.limit_after]
    yield '<figure class="plot">'
    yield (
        f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" preserveAspectRatio="none" role="img" '
        f'aria-label="{text(_described(verdict, rates))}">'
    )
    yield from _bars([not one for one in rates.recorded], _HEIGHT, "gap")
    yield from _bars(rates.over, _HEIGHT, "shade")
    yield from _curve(rates, top)
    for limit in sorted(limits)[:3]:
        yield _line(limit, top, "earlier")
    if verdict.limit_after is not None:
        yield _line(verdict.limit_after, top, "limit")
    yield "</svg>"
    if rates.over_before is not None:
        yield from _strip("Over the limit that holds now", rates.over_before, None)
    yield from _strip("Over the proposed limit", rates.over, rates.possible)
    end = rates.start + datetime.timedelta(seconds=rates.step_s * len(rates.rate))
    exact = rates.step_s < 60
    yield f'<div class="ends"><span>{_clock(rates.start, exact=exact)}</span><span>{_clock(end, exact=exact)}</span></div>'
    yield f"<figcaption>{''.join(_legend(verdict, rates, limits, top))}</figcaption>"
    yield "</figure>"


def _described(verdict: BucketVerdict, rates: RateSeries) -> str:
    over = sum(rates.over)
    gaps = len(rates.recorded) - sum(rates.recorded)
    missing = f"; {gaps} of {len(rates.recorded)} intervals were not recorded" if gaps else ""
    return f"Rate over time of {title(verdict)}: about {over} seconds are over the proposed limit{missing}"


def _top(verdict: BucketVerdict, rates: RateSeries) -> float:
    """The largest value drawn; a limit far above all traffic is left out of the scale, so that something can be seen."""
    peak = max(rates.rate, default=0.0)
    limits = [limit for limit in (*verdict.limits_before, verdict.limit_after) if limit is not None and limit <= 4 * peak]
    return max([peak, *limits]) * 1.08 or 1.0


def _curve(rates: RateSeries, top: float) -> Iterator[str]:
    """Steps: each interval is as wide as the time it stands for. The curve ends where the recording does."""
    width, x = _WIDTH / len(rates.rate), 0
    for recorded, intervals in itertools.groupby(zip(rates.rate, rates.recorded, strict=True), key=operator.itemgetter(1)):
        begin, values = x, [value for value, _ in intervals]
        x += len(values)
        if not recorded:
            continue
        steps = enumerate((_short(_y(value, top)) for value in values), start=begin)
        points = " ".join(f"{_short(at * width)},{y} {_short((at + 1) * width)},{y}" for at, y in steps)
        ends = _short(begin * width), _short(x * width)
        yield f'<polygon class="under" points="{ends[0]},{_HEIGHT} {points} {ends[1]},{_HEIGHT}"/>'
        yield f'<polyline class="rate" points="{points}"/>'


def _line(limit: float, top: float, style: str) -> str:
    if limit > top:
        return ""
    y = _short(_y(limit, top))
    return f'<line class="{style}" x1="0" x2="{_WIDTH}" y1="{y}" y2="{y}"/>'


def _strip(name: str, over: Sequence[int], possible: Sequence[int] | None) -> Iterator[str]:
    yield f'<div class="strip-name">{text(name)}: {_seconds(over, possible)}</div>'
    yield f'<svg class="strip" viewBox="0 0 {_WIDTH} {_STRIP}" preserveAspectRatio="none" aria-hidden="true">'
    if possible is not None:
        yield from _bars([p if not o else 0 for o, p in zip(over, possible, strict=True)], _STRIP, "possible")
    yield from _bars(over, _STRIP, "over")
    yield "</svg>"


def _seconds(over: Sequence[int], possible: Sequence[int] | None) -> str:
    most = sum(possible) if possible is not None else 0
    at_most = f", {most:,} s at most" if most > sum(over) else ""
    return f"about {sum(over):,} s{at_most}" if sum(over) or at_most else "never"


def _bars(counts: Sequence[int | bool], height: int, style: str) -> Iterator[str]:
    """Runs of marked intervals, each one rectangle and wide enough to be seen."""
    width, begin = _WIDTH / len(counts), None
    for x, count in enumerate((*counts, 0)):
        if count and begin is None:
            begin = x
        elif not count and begin is not None:
            wide = max((x - begin) * width, 3.0)
            yield f'<rect class="{style}" x="{_short(begin * width)}" y="0" width="{_short(wide)}" height="{height}"/>'
            begin = None


def _legend(verdict: BucketVerdict, rates: RateSeries, limits: Sequence[float], top: float) -> Iterator[str]:
    interval = "second" if rates.step_s == 1 else _long(rates.step_s)
    most = rate(verdict.key, max(rates.rate, default=0.0))
    yield _key("rate", f"rate, estimated from whole seconds, the largest of each {interval}: up to {most}")
    if verdict.limit_after is not None:
        off = " (above the drawing)" if verdict.limit_after > top else ""
        yield _key("limit", f"proposed limit {limit_text(verdict.key, verdict.limit_after)}{off}")
    for limit in sorted(limits)[:3]:
        off = " (above the drawing)" if limit > top else ""
        yield _key("earlier", f"limit that holds now {limit_text(verdict.key, limit)}{off}")
    yield _mark("over", "probably over")
    yield _mark("possible", "possibly over")
    if not all(rates.recorded):
        yield _mark("gap", "not recorded")


def _key(style: str, words: str) -> str:
    line = f'<line class="{style}" x1="0" x2="36" y1="8" y2="8"/>'
    return f'<span><svg viewBox="0 0 36 16" aria-hidden="true">{line}</svg> {text(words)}</span>'


def _mark(style: str, words: str) -> str:
    box = f'<rect class="{style}" x="0" y="2" width="36" height="12"/>'
    return f'<span><svg viewBox="0 0 36 16" aria-hidden="true">{box}</svg> {text(words)}</span>'


def _y(value: float, top: float) -> float:
    return _HEIGHT * (1 - value / top)


def _short(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")


def _long(seconds: int) -> str:
    return f"{seconds} s" if seconds < 7200 else f"{seconds / 3600:.1f} hours"


def _clock(moment: datetime.datetime, *, exact: bool) -> str:
    return f"{moment:%Y-%m-%d %H:%M:%S} UTC" if exact else f"{moment:%Y-%m-%d %H:%M} UTC"
