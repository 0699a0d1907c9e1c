"""What else a reviewer must know: buckets that the history cannot clear, and brokers whose limits add up to too much."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from reconciler.formats.canonical import number_text
from reconciler.model.backtest import BucketVerdict, CapacityUse, Verdict
from reconciler.model.finding import Finding, Severity

INCOMPLETE: Final = "history-incomplete"
ABOVE_CAPACITY: Final = "limits-above-capacity"


def report_findings(verdicts: Sequence[BucketVerdict], capacity: Sequence[CapacityUse]) -> Iterator[Finding]:
    """One for each reason why changed buckets are inconclusive, one for each broker and key above its capacity."""
    reasons: dict[str, int] = {}
    for one in verdicts:
        if one.verdict is Verdict.INCONCLUSIVE and one.changed:
            reason = one.reason or "the history does not show enough"
            reasons[reason] = reasons.get(reason, 0) + 1
    for reason, count in reasons.items():
        what = "1 bucket that this change touches is" if count == 1 else f"{count} buckets that this change touches are"
        yield Finding(id=INCOMPLETE, severity=Severity.WARNING, message=f"{what} inconclusive: {reason}")
    for use in capacity:
        if use.after > use.capacity:
            yield Finding(id=ABOVE_CAPACITY, severity=Severity.INFO, message=_above(use), key=use.key)


def _above(use: CapacityUse) -> str:
    before = "" if use.before is None else f" (before the change {number_text(use.before)})"
    unlimited = f", and {use.unlimited} buckets have no limit" if use.unlimited else ""
    return (
        f"on broker {use.broker} the {use.key} of the {use.buckets} buckets recorded there add up to {number_text(use.after)}"
        f"{before}, {use.after / use.capacity:.3g} times its capacity of {number_text(use.capacity)}{unlimited}"
    )
