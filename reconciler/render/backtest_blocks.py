"""What a backtest and a simulation look alike in on a terminal: the answer, headings, long lists, and what they rest on."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from reconciler.documents import Tone, headline
from reconciler.model import BacktestReport, Provenance, Verdict, display_name
from reconciler.render.backtest_sentences import history_words
from reconciler.render.layout import Block, Line, Style, Tile, View, heading, labelled, line

_TONES: Final = {Tone.GOOD: Style.GOOD, Tone.WARN: Style.WARN, Tone.BAD: Style.BAD}
VERDICT_STYLES: Final = {
    Verdict.THROTTLED: Style.BAD,
    Verdict.POSSIBLE: Style.WARN,
    Verdict.INCONCLUSIVE: Style.WARN,
    Verdict.CLEAR: Style.GOOD,
}


def answer_line(report: BacktestReport, label: str) -> Line:
    """The headline of the report behind a label."""
    words, tone = headline(report)
    return labelled(f"{label}: ", _TONES[tone], (words, _TONES[tone]))


def heading_lines(title: str, rest: str = "", *, count: int | None = None) -> Iterator[Block]:
    """The title of a section, and what it counts."""
    yield line()
    yield heading(title, (title, Style.STRONG), f" ({rest})" if rest else "", count=count)
    if rest and count is None:
        yield line(pages=((f"{rest[0].upper()}{rest[1:]}.", Style.FAINT),))


def report_view(
    report: BacktestReport, kind: str, blocks: Iterable[Block], *, about: tuple[Line, ...] = (), tiles: tuple[Tile, ...] = ()
) -> View:
    """A backtest or a simulation with its answer."""
    words, tone = headline(report)
    answer, _, rest = words.partition(". ")
    title = answer_line(report, kind.capitalize())
    return View(
        kind=kind,
        cluster=report.cluster,
        title=title,
        answer=line(*title.segments, hang=title.hang, pages=((f"{answer}." if rest else answer, _TONES[tone]),)),
        lead=rest,
        blocks=tuple(blocks),
        about=about,
        tiles=tiles,
        tiles_title="Quota groups, each counted once by its worst broker",
    )


def more_lines(count: int, most: int | None, what: str) -> Iterator[Line]:
    """How many of ``count`` are not shown. ``most``: as many are; ``None``: all."""
    if most is not None and count > most:
        more = f"{count - most:,} more {what}"
        yield line((f"  and {more}. --details shows all", Style.FAINT), pages=((f"{more} are in the JSON report.", Style.FAINT),))


def history_lines(provenance: Provenance, *, samples: bool) -> Iterator[Block]:
    """What the report rests on. ``samples``: with lines that could not be read."""
    yield from heading_lines("What this rests on")
    for sentence, tone in history_words(provenance):
        yield labelled("  Warning: ", Style.WARN, sentence) if tone is not Tone.GOOD else line(f"  {sentence}")
    if samples:
        for sample in provenance.unreadable.samples:
            yield line("    ", (display_name(sample[:160]), Style.FAINT))
