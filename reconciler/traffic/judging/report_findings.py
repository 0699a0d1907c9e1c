"""What else a reviewer must know: buckets that the history cannot clear, and brokers whose limits add up to too much."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from reconciler.model import BucketVerdict, CapacityUse, Finding, Severity, Verdict, worst_of_buckets
from reconciler.text import number_text

INCOMPLETE: Final = "history-incomplete"
ABOVE_CAPACITY: Final = "limits-above-capacity"


def report_findings(verdicts: Sequence[BucketVerdict], capacity: Sequence[CapacityUse]) -> Iterator[Finding]:
    """One for each reason why changed quota groups are inconclusive, one for each broker and key above its capacity."""
    reasons: dict[str, list[BucketVerdict]] = {}
    for one in verdicts:
        if one.verdict is Verdict.INCONCLUSIVE and one.changed:
            reasons.setdefault(one.reason or "the history does not show enough", []).append(one)
    for reason, rows in reasons.items():
        count = len(worst_of_buckets(rows))
        what = "1 quota group that this change touches is" if count == 1 else f"{count} quota groups that this change touches are"
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
