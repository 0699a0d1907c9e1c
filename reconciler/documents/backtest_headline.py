"""The answer of a backtest in one or two sentences: a field of its document, and the first line of every output."""

from __future__ import annotations

import enum
from collections.abc import Sequence

from reconciler.model import BacktestReport, BucketVerdict, Verdict, worst_of_buckets
from reconciler.text import count_of


class Tone(enum.Enum):
    """How good or bad a sentence is."""

    GOOD = "good"
    WARN = "warn"
    BAD = "bad"


def headline(report: BacktestReport) -> tuple[str, Tone]:
    """The answer for the whole change: first what was judged, then what was not. Every output prints these words."""
    words, tone = _recorded_words(report)
    unknown = judged_words(report)
    if unknown is None:
        return f"{words}.", tone
    only = not any(verdict.changed for verdict in report.verdicts)
    nothing_judged = only and not any(verdict.verdict is Verdict.THROTTLED for verdict in report.verdicts)
    return (f"Inconclusive. {unknown}" if nothing_judged else f"{words}. {unknown}"), Tone.WARN if tone is Tone.GOOD else tone


def judged_words(report: BacktestReport) -> str | None:
    """How many of the changed quotas could be judged, and why the others could not; ``None``: all of them were."""
    count = len(report.unjudged)
    limit, effect = ("limits", "its effect is") if count == 1 else ("limit", "their effects are")
    if report.judged is None:
        if not count:
            return None
        words = f"Not judged: {count_of(count, 'changed quota')} that {limit} no recorded traffic"
        return f"{words}. {effect[0].upper()}{effect[1:]} not known."
    judged = report.judged
    if judged.judged == judged.changed:
        return None
    parts = [f"{count:,} {limit} no recorded traffic, so {effect} not known"] if count else []
    parts += [f"the history shows too little of {judged.too_little:,}"] if judged.too_little else []
    return f"{judged.judged:,} of {count_of(judged.changed, 'changed quota')} could be judged: {', and '.join(parts)}."


def _recorded_words(report: BacktestReport) -> tuple[str, Tone]:
    """Of quota groups with recorded traffic, each counted once by its worst broker."""
    groups = worst_of_buckets(report.verdicts)
    words, tone = _changed_words([group for group in groups if group.changed])
    staying = sum(group.verdict is Verdict.THROTTLED and not group.changed for group in groups)
    if not staying:
        return words, tone
    over = f"{count_of(staying, 'quota group')} {_are(staying)} over a limit that stays"
    return f"{words}. {over}", Tone.WARN if tone is Tone.GOOD else tone


def _changed_words(changed: Sequence[BucketVerdict]) -> tuple[str, Tone]:
    count = {verdict: sum(group.verdict is verdict for group in changed) for verdict in Verdict}
    among = f"{count_of(len(changed), 'quota group')} whose limit changes"
    if count[Verdict.THROTTLED]:
        return f"The proposed quotas would have throttled {count[Verdict.THROTTLED]} of {among}", Tone.BAD
    if count[Verdict.POSSIBLE]:
        return f"The proposed quotas might have throttled {count[Verdict.POSSIBLE]} of {among}", Tone.WARN
    if count[Verdict.INCONCLUSIVE]:
        return f"The history does not show enough to clear {count[Verdict.INCONCLUSIVE]} of {among}", Tone.WARN
    if not changed:
        return "No limit of a recorded client changes", Tone.GOOD
    get = f"{count_of(len(changed), 'quota group')} {'gets' if len(changed) == 1 else 'get'} another limit"
    return f"The proposed quotas would have throttled no recorded request. {get}", Tone.GOOD


def _are(number: int) -> str:
    return "is" if number == 1 else "are"
