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
    count = len(report.unjudged)
    if not count:
        return f"{words}.", tone
    limit, effect = ("limits", "Its effect is") if count == 1 else ("limit", "Their effects are")
    unknown = f"Not judged: {count_of(count, 'changed quota')} that {limit} no recorded traffic. {effect} not known."
    only = not any(one.changed for one in report.verdicts)
    nothing_judged = only and not any(one.verdict is Verdict.THROTTLED for one in report.verdicts)
    return (f"Inconclusive. {unknown}" if nothing_judged else f"{words}. {unknown}"), Tone.WARN if tone is Tone.GOOD else tone


def _recorded_words(report: BacktestReport) -> tuple[str, Tone]:
    """Of quota groups with recorded traffic, each counted once by its worst broker."""
    groups = worst_of_buckets(report.verdicts)
    words, tone = _changed_words([one for one in groups if one.changed])
    staying = sum(one.verdict is Verdict.THROTTLED and not one.changed for one in groups)
    if not staying:
        return words, tone
    over = f"{count_of(staying, 'quota group')} {_are(staying)} over a limit that stays"
    return f"{words}. {over}", Tone.WARN if tone is Tone.GOOD else tone


def _changed_words(changed: Sequence[BucketVerdict]) -> tuple[str, Tone]:
    count = {verdict: sum(one.verdict is verdict for one in changed) for verdict in Verdict}
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
