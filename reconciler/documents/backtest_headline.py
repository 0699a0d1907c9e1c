"""The answer of a backtest in one or two sentences: a field of its document, and the first line of every output."""

from __future__ import annotations

import enum
from collections.abc import Mapping

from reconciler.model import BacktestReport, Verdict
from reconciler.text import count_of


class Tone(enum.Enum):
    """How good or bad a sentence is."""

    GOOD = "good"
    WARN = "warn"
    BAD = "bad"


def headline(report: BacktestReport) -> tuple[str, Tone]:
    """The answer for the whole change: first what was judged, then what was not. Every output prints these words."""
    counts, unknown = report.counts, judged_words(report)
    words, tone = _changed_words(counts.changed)
    if report.situation is not None:
        words = f"{report.situation}: {words[0].lower()}{words[1:]}"
    if staying := counts.unchanged.get(Verdict.THROTTLED, 0):
        words = f"{words}. {count_of(staying, 'quota group')} {_are(staying)} over a limit that stays"
        tone = Tone.WARN if tone is Tone.GOOD else tone
    # No limit changes in a situation: those that stay are what it asks about.
    if report.situation is not None and (perhaps := counts.unchanged.get(Verdict.POSSIBLE, 0)):
        words = f"{words}. {count_of(perhaps, 'quota group')} might be over a limit that stays"
        tone = Tone.WARN if tone is Tone.GOOD else tone
    if unknown is None:
        return f"{words}.", tone
    nothing_judged = not any(counts.changed.values()) and not counts.unchanged.get(Verdict.THROTTLED)
    return (unknown if nothing_judged else f"{words}. {unknown}"), Tone.WARN if tone is Tone.GOOD else tone


def judged_words(report: BacktestReport) -> str | None:
    """Return how many of the changed quotas were not checked, and of how many the evidence is too thin; ``None``: of none."""
    count, judged = len(report.unjudged), report.judged
    of_all = "" if judged is None else f" of {judged.changed:,}"
    parts = [f"Not checked: {count:,}{of_all} changed quotas (no recorded traffic)."] if count else []
    if judged is not None and judged.too_little:
        parts.append(f"Inconclusive: {judged.too_little:,}{of_all} changed quotas (too little recorded traffic).")
    return " ".join(parts).replace(" 1 changed quotas", " 1 changed quota") or None


def _changed_words(changed: Mapping[Verdict, int]) -> tuple[str, Tone]:
    count, groups = {verdict: changed.get(verdict, 0) for verdict in Verdict}, sum(changed.values())
    among = f"{count_of(groups, 'quota group')} whose limit changes"
    if count[Verdict.THROTTLED]:
        return f"The proposed quotas would have throttled {count[Verdict.THROTTLED]} of {among}", Tone.BAD
    if count[Verdict.POSSIBLE]:
        return f"The proposed quotas might have throttled {count[Verdict.POSSIBLE]} of {among}", Tone.WARN
    if count[Verdict.INCONCLUSIVE]:
        return f"The history does not show enough to clear {count[Verdict.INCONCLUSIVE]} of {among}", Tone.WARN
    if not groups:
        return "No limit of a recorded client changes", Tone.GOOD
    get = f"{count_of(groups, 'quota group')} {'gets' if groups == 1 else 'get'} another limit"
    return f"The proposed quotas would have throttled no recorded request. {get}", Tone.GOOD


def _are(number: int) -> str:
    return "is" if number == 1 else "are"
